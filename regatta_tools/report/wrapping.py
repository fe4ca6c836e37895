"""Text for terminals of any width from 40 columns."""

from __future__ import annotations

import shutil
import textwrap


def width() -> int:
    """Columns of the terminal, within 40 and 100; 100 where there is none."""
    return max(40, min(100, shutil.get_terminal_size((100, 24)).columns))


def wrap(text: str, first: str, rest: str) -> list[str]:
    """A text of ours as lines of :func:`width`; ``first`` and ``rest`` stand before them.

    Long words are broken. What may hold foreign text, or names of the law in two words, is folded by
    :func:`regatta_tools.report.findings.folded`.
    """
    # A section sign stays with its number: textwrap breaks at ordinary blanks only.
    held = text.replace("§ ", "§\u00a0")
    lines = textwrap.wrap(held, width(), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.replace("§\u00a0", "§ ") for line in lines] or [first]
