"""Tables of verdicts for the tests of records and diagnostics: rows as dictionaries, and their file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from regatta_tools.measures.archive import targets_of_the_study
from regatta_tools.measures.records import columns

CELL = "fintech-us"
TARGETS = targets_of_the_study()
REQUIREMENTS, FAULTS = TARGETS[CELL].requirements, TARGETS[CELL].faults
CATEGORIES = ("prompt-injection", "data-exfiltration")


def row(suite: str = "a", stage: str = "design", target: str | None = None, **more: Any) -> dict[str, Any]:
    """One row of the study's fintech cell that is right as it stands."""
    first = {"rc": REQUIREMENTS[0], "iss": "", "ac": ""}.get(stage, next(iter(FAULTS)))
    cells = {
        "run": f"run-{suite}",
        "suite": suite,
        "cell": CELL,
        "stage": stage,
        "draw": 1,
        "judge": "m",
        "scenario": "s1",
    }
    cells |= {
        "target": first if target is None else target,
        "outcome": "rated" if stage in ("iss", "ac") else "negative",
    }
    if stage == "execution":
        cells["arm"] = "joint"
    if stage in ("iss", "ac"):
        cells["value"] = "3" if stage == "iss" else "none"
    return cells | more


def suite_rows(
    suite: str,
    design: Iterable[int | None],
    execution: Iterable[Iterable[int | None]],
    *,
    rc: Iterable[int | None] = (),
    cell: str = CELL,
    **more: Any,
) -> Iterator[dict[str, Any]]:
    """Whole-suite verdicts: design and execution (a list a draw) by fault, rc by requirement; ``None`` is a refusal."""
    targets = TARGETS[cell]
    common = {"run": f"run-{suite}", "suite": suite, "cell": cell, "judge": "m", "draw": 1} | more

    def outcome(value: int | None) -> str:
        return {1: "positive", 0: "negative", None: "refused"}[value]

    for target, value in zip(targets.requirements, rc):
        yield common | {"stage": "rc", "target": target, "outcome": outcome(value)}
    for target, value in zip(targets.faults, design):
        yield common | {"stage": "design", "target": target, "outcome": outcome(value)}
    for draw, values in enumerate(execution, 1):
        for target, value in zip(targets.faults, values):
            yield common | {
                "stage": "execution", "target": target, "draw": draw, "arm": "joint", "outcome": outcome(value)
            }  # fmt: skip


def write(path: Path, rows: Iterable[dict[str, Any]], header: Iterable[str] | None = None) -> Path:
    """Write rows as a CSV table with the columns of the schema, or some of them."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(
            stream, list(header or columns()), restval="", extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
    return path
