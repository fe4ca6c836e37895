"""A comparison of strategies for people and for tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from regatta_tools.measures.population import MEASURES
from regatta_tools.report import diagnose
from regatta_tools.report.wrapping import wrap

_STAGES = {"design": "as designed", "execution": "as run"}


def as_text(result: Mapping[str, Any]) -> str:
    """The result of :func:`regatta_tools.harness.compare.compare` for a terminal."""
    lines = [f"Comparison {result['comparison']}: {len(result['suites'])} suites"]
    head = f"  {'strategy':<10}{'generator':<26}{'cell':<16}{'r':>2} {'n':>4}" + "".join(f"{m:>8}" for m in MEASURES)
    lines += ["", head]
    for row in result["suites"]:
        figures = row.get("measures") or {}
        shown = "".join(f"{'-' if figures.get(m) is None else format(figures[m], '.2f'):>8}" for m in MEASURES)
        lines.append(f"  {row['strategy'] or '-':<10}{(row['generator'] or '-')[:25]:<26}{row['cell']:<16}"
                     f"{row['repeat'] or '-':>2} {row['scenarios']:>4}{shown}")  # fmt: skip
    lines += ["", *_differences(result["differences"])]
    if result.get("parity"):
        lines += ["", *parity_lines(result["parity"])]
    lines += ["", diagnose.as_text(result["diagnostics"])]
    if result["notes"]:
        lines += ["", "Before you use this"]
        for note in result["notes"]:
            lines += wrap(note, "  - ", "    ")
    return "\n".join(lines)


def _differences(found: Mapping[str, Any]) -> list[str]:
    lines = ["Differences between strategies (first minus second, averaged over cells and generators)"]
    lines += wrap(f"unit: {found['unit']}; {found['multiplicity']}; {found['repeats']} suites of each strategy in each "
                  "cell and by each generator are needed", "  ", "  ")  # fmt: skip
    scopes = list(found["by_generator"].items())
    if found["all"] is not None:
        scopes.append(("all generators", found["all"]))
    for name, by_measure in scopes:
        rows = [row for rows in by_measure.values() for row in rows]
        lines.append(f"  {name}" + ("" if rows else ": fewer than two strategies, nothing to compare"))
        for row in rows:
            lines += wrap(row["says"], "    ", "      ")
    return lines


def parity_lines(found: Mapping[str, Any]) -> list[str]:
    """Language parity by cell, stage and fault."""
    lines = [f"Language parity: {found['pairs']} pairs, detection in Vietnamese minus English"]
    lines += wrap(f"unit: {found['unit']}", "  ", "  ")
    for cell, stages in found["cells"].items():
        for stage, figures in stages.items():
            lines.append(f"  {cell}, {_STAGES[stage]}")
            for name, row in (*figures["faults"].items(), ("all faults", figures["all"])):
                lines += wrap(f"{name}: {_parity(row)}", "    ", "      ")
            if missing := figures["all"]["missing"]:
                said = ", ".join(f"{v} {k}" for k, v in sorted(missing.items()))
                lines += wrap(f"missing verdicts: {said}", "    ", "      ")
    for note in found["notes"]:
        lines += wrap(note, "  - ", "    ")
    return lines


def _parity(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return f"undefined ({row['reason']})"
    bounds = row["bounds"]
    missing = f" (missing: {bounds[0]:+.2f} to {bounds[1]:+.2f})" if bounds[1] - bounds[0] > 1e-12 else ""
    interval = "" if row["interval"] is None else f" [{row['interval'][0]:+.2f}, {row['interval'][1]:+.2f}]"
    why = f"; no interval: {row['reason']}" if row["interval"] is None else ""
    return (f"{row['difference']:+.2f}{interval}{missing}, {row['vi']:.2f} and {row['en']:.2f} over {row['pairs']} "
            f"pairs, {row['only_vi']} higher in Vietnamese, {row['only_en']} in English{why}")  # fmt: skip


COLUMNS = ("kind", "scope", "measure", "a", "b", "value", "low", "high", "bound_low", "bound_high", "n", "verdict",
           "reason")  # fmt: skip


def as_csv(result: Mapping[str, Any]) -> str:
    """One row for each suite and measure, each difference and each figure of parity; undefined cells are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in (*_suite_rows(result), *_difference_rows(result), *parity_rows(result.get("parity"))):
        writer.writerow(["" if v is None else repr(v) if isinstance(v, float) else v for v in row])
    return out.getvalue()


def _suite_rows(result: Mapping[str, Any]) -> Iterator[list[Any]]:
    for row in result["suites"]:
        for measure, value in (row.get("measures") or {}).items():
            yield ["suite", row["suite"], measure, row["strategy"], row["generator"], value, None, None, None, None,
                   row["scenarios"], None, None]  # fmt: skip


def _difference_rows(result: Mapping[str, Any]) -> Iterator[list[Any]]:
    found = result["differences"]
    for scope, by_measure in (*found["by_generator"].items(), ("all generators", found["all"] or {})):
        for measure, rows in by_measure.items():
            for row in rows:
                yield ["difference", scope, measure, row["a"], row["b"], row["difference"],
                       *(row["interval"] or [None, None]), *(row["bounds"] or [None, None]), sum(row["suites"]),
                       row["verdict"], row["reason"]]  # fmt: skip


def parity_rows(found: Mapping[str, Any] | None) -> Iterator[list[Any]]:
    for cell, stages in (found or {"cells": {}})["cells"].items():
        for stage, figures in stages.items():
            for name, row in (*figures["faults"].items(), ("all faults", figures["all"])):
                yield ["parity", cell, stage, name, None, row["difference"], *(row["interval"] or [None, None]),
                       *(row["bounds"] or [None, None]), row["pairs"], None, row["reason"]]  # fmt: skip
