"""Suites, strategies and generators under one judge and one agent (``regatta compare``).

A plan is a YAML file (class ``ComparisonPlan`` of the schema) or a folder of suite files. Suites that it asks for are
generated, every suite is run into a folder of its own, and V1 to V4 and the differences between strategies are taken
from the verdicts. Generation and runs go on where they stopped, and so does a comparison.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.files import replace_file
from regatta_tools.generation import making
from regatta_tools.measures.resampling import RESAMPLES, SEED
from regatta_tools.suites.reader import Suite, load_suite, usable
from regatta_tools.tables.package import Package

SCHEMA_VERSION = "1"
#: Files of suites in a folder. What generation leaves beside them (receipts, journals) ends otherwise.
ENDS = (".yaml", ".yml")
#: What of a plan the runs take.
OF_RUNS = ("judge", "agent", "answers", "seed", "scan", "draws", "arms")
#: How runs ask, which changes no result and is no part of it.
HOW = ("concurrency", "cache", "patience")


@dataclass
class Comparison:
    """What is to be done: suites there are, suites to be generated (``made``: one plan of generation for each
    specification and model), and the settings of the runs."""

    name: str
    files: list[Path]
    made: list[making.Plan]
    settings: dict[str, Any]
    arm: str
    package: Package
    out: Path
    how: dict[str, Any] = field(default_factory=dict)

    def models(self) -> dict[str, list[str]]:
        """The parts that each model plays, for the word on which text goes to whom."""
        parts: dict[str, list[str]] = {}
        for part in ("judge", "agent"):
            parts.setdefault(self.settings.get(part, "embedded"), []).append(part)
        for plan in self.made:
            parts.setdefault(plan.model, []).append("generator")
        return {model: list(dict.fromkeys(plays)) for model, plays in parts.items()}


def plan(
    source: Path | str, *, out: Path | str | None = None, package: Any = None, **settings: Any
) -> Comparison:
    """Read a plan, or a folder of suites; nothing is asked or run.

    ``settings`` (judge, agent, answers, seed, scan, draws, arms) go before those of the plan; ``None`` leaves the
    plan's. :data:`HOW` is passed on to :func:`regatta_tools.run`. ``out`` is the folder of the comparison, by default
    ``comparisons/<name>``. Raises :class:`InputError` for a plan that cannot be used (U002, U241) and what
    :func:`regatta_tools.generation.making.plan` raises.
    """
    from regatta_tools.validation.run import load

    source = Path(source)
    held = package if isinstance(package, Package) else load(package)
    value: dict[str, Any] = {}
    if source.is_dir():
        base, entries, name = source, [""], source.resolve().name
    else:
        value = usable(source, "ComparisonPlan").value
        base, entries, name = source.parent, value.get("suites") or [], value["id"]
    if not entries and not value.get("generate"):
        raise InputError(
            "the plan names neither suites nor what to generate", code="U241", place=str(source),
            mend="write `suites:` (files or folders) or `generate:` (cells, strategies, models)",
        )  # fmt: skip
    folder = Path(out) if out else Path("comparisons") / name
    made = []
    for spec in value.get("generate") or []:
        made += [
            making.plan(
                cell=spec["cells"], strategy=spec["strategies"], model=model, n=spec.get("n") or 30,
                repeat=spec.get("repeats") or 3, seed=spec.get("seed") or "0", language=spec.get("language"),
                budget=spec.get("budget_tokens"), hold_out=spec.get("hold_out") or 0, pairs=bool(spec.get("pairs")),
                out=folder / "suites" / _generator(model), package=held,
            )
            for model in spec["models"]
        ]  # fmt: skip
    files = [path for entry in entries for path in _suite_files(base / entry, source)]
    given = {k: v for k, v in settings.items() if v is not None}
    how = {k: given.pop(k) for k in HOW if k in given}
    unknown = set(given) - set(OF_RUNS)
    if unknown:
        raise TypeError(f"unknown settings: {sorted(unknown)}")
    chosen = {k: value[k] for k in OF_RUNS if value.get(k) is not None} | given
    return Comparison(name, files, made, chosen, value.get("arm") or "joint", held, folder, how)


def _generator(model: str) -> str:
    from regatta_tools.llm import client

    return making.generator_name(model, client.check_model(model))


def _suite_files(path: Path, source: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.iterdir() if p.suffix in ENDS and not p.name.endswith(".labels.yaml"))
    if not found:
        raise InputError(
            "this folder holds no suite", code="U241", place=str(path), mend=f"name files that end in {ENDS[0]}"
        )
    return found


def compare(
    source: Path | str | Comparison, *, out: Path | str | None = None, package: Any = None, parity: bool = False,
    resamples: int = RESAMPLES, resampling_seed: int = SEED, tell: Callable[[str], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Generate, run, score and diagnose; the same call goes on where it stopped.

    ``source`` is a plan file, a folder of suites, or what :func:`plan` returned. Returns ``suites`` (each with how it
    was made and its measures), ``diagnostics`` (as :func:`regatta_tools.diagnose` gives them), ``differences`` (see
    :func:`regatta_tools.measures.differences.differences`), ``parity`` where asked for, and ``notes``.
    """
    from regatta_tools.measures.diagnostics import diagnostics
    from regatta_tools.measures.differences import differences
    from regatta_tools.measures.parity import parity as parity_of
    from regatta_tools.measures.population import population
    from regatta_tools.measures.records import from_runs

    say = tell or (lambda _: None)
    todo = source if isinstance(source, Comparison) else plan(source, out=out, package=package, **settings)
    notes, files = [], list(todo.files)
    for made in todo.made:
        for suite in made.run(lambda p: say(f"{p.suite}: {p.done}/{p.n}, {p.calls} calls")):
            notes += [f"{suite.name}: {note}" for note in suite.notes]
            if suite.path is not None:
                files.append(suite.path)
    suites = _held(files)
    if not suites:
        raise InputError("no suite came out of generation, so there is nothing to compare", code="U241",
                         place=str(todo.out), mend="look into the receipts there")  # fmt: skip
    folders = _run(suites, todo, say)
    how = todo.out / "made.csv"
    replace_file(how, _made_csv(suites))
    records = from_runs(folders, package=todo.package, suites=how)
    people = population(records, arm=todo.arm)
    result: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "comparison": todo.name,
        "settings": {k: _public(v) for k, v in todo.settings.items()},
        "arm": todo.arm,
        "suites": [_row(s, f, people) for s, f in zip(suites, folders)],
        "diagnostics": diagnostics(people, resamples=resamples, seed=resampling_seed),
        "differences": differences(people, resamples=resamples, seed=resampling_seed),
        "parity": parity_of(folders, [s.file for s in suites], arm=todo.arm, resamples=resamples,
                            seed=resampling_seed) if parity else None,
    }  # fmt: skip
    result["notes"] = [*dict.fromkeys([*notes, *_unstated(suites), *_uneven(suites)])]
    return result


def _public(value: Any) -> Any:
    """A model as results name it: a script without the place of its file."""
    return "scripted" if isinstance(value, str) and value.startswith("scripted:") else value


def _held(files: Sequence[Path]) -> list[Suite]:
    """The suites, each of a cell and under a name of its own. Raises :class:`InputError` (U241)."""
    suites: dict[str, Suite] = {}
    for path in files:
        suite = load_suite(path)
        if suite.cell is None:
            raise InputError("the suite does not say for which cell it is", code="U241", place=suite.file,
                             mend="write `cell:` into it")  # fmt: skip
        first = suites.setdefault(suite.id, suite)
        if first is not suite:
            raise InputError(
                f"the suite {suite.id!r} is there already, in {first.file}", code="U241", place=suite.file,
                mend="give every suite a name of its own",
            )  # fmt: skip
    return list(suites.values())


def _run(suites: Sequence[Suite], todo: Comparison, say: Callable[[str], None]) -> list[Path]:
    import regatta_tools

    folders = []
    for number, suite in enumerate(suites, 1):
        say(f"run {number} of {len(suites)}: {suite.id}")
        folder = todo.out / "runs" / suite.id
        regatta_tools.run(suite.file, cell=suite.cell, out=folder, package=todo.package, **todo.settings, **todo.how)
        folders.append(folder)
    return folders


def _made_csv(suites: Sequence[Suite]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["suite", "strategy", "generator", "repeat"])
    for suite in suites:
        if made := suite.made_with:
            writer.writerow([suite.id, made["strategy"], made["generator"], made["repeat"]])
    return out.getvalue().encode("utf-8")


def _row(suite: Suite, folder: Path, people: Any) -> dict[str, Any]:
    from regatta_tools.measures.diagnostics import suite_values

    made = suite.made_with
    row: dict[str, Any] = {
        "suite": suite.id, "cell": suite.cell, "strategy": made.get("strategy"), "generator": made.get("generator"),
        "repeat": made.get("repeat"), "scenarios": len(suite.scenarios), "run": folder.name,
    }  # fmt: skip
    for block in people.of(cell=suite.cell):
        for at, unit in enumerate(block.units):
            if unit.suite == suite.id:
                row["measures"] = {k: None if v[at] != v[at] else float(v[at]) for k, v in suite_values(block).items()}
    return row


def _unstated(suites: Sequence[Suite]) -> list[str]:
    names = [s.id for s in suites if not s.made_with]
    what = "does not say how it was made (`made_with`) and is in no difference between strategies"
    return [f"the suite {name} {what}" for name in names]


def _uneven(suites: Sequence[Suite]) -> list[str]:
    """A word where suites differ in size: a suite of more scenarios finds more by its size alone."""
    sizes = sorted({len(s.scenarios) for s in suites})
    if len(sizes) < 2:
        return []
    return [f"suites have {sizes[0]} to {sizes[-1]} scenarios: the larger find more by their size alone"]
