"""From the name of a cell to the prompt of a strategy: what ``regatta context`` calls."""

from __future__ import annotations

from typing import Any

from regatta_tools import load
from regatta_tools.generation.context import context_of
from regatta_tools.generation.context import hold_out as held_out
from regatta_tools.generation.strategies import Prompt, build
from regatta_tools.tables.package import Package


def prompt_for(
    cell: str,
    strategy: str,
    n: int = 30,
    *,
    budget: int | None = None,
    hold_out: int = 0,
    seed: str = "0",
    language: str | None = None,
    package: Any = None,
    start: int = 0,
) -> Prompt:
    """The prompt of a strategy for a cell, see :func:`regatta_tools.generation.strategies.build`.

    ``package`` is a folder, or a package that was read; ``hold_out`` the number of rules to take out. Raises
    :class:`~regatta_tools.errors.InputError` where the package has errors, or for what the cell does not have.
    """
    found = package if isinstance(package, Package) else load(package)
    whole = context_of(found, cell, language)
    context, held = held_out(whole, hold_out, seed)
    return build(context, strategy, n, budget=budget, held=held, whole=whole, start=start)
