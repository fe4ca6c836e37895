"""A plan for people and for tables."""

from __future__ import annotations

import csv
import io
from typing import Any

from regatta_tools.report.wrapping import wrap

THINGS = {"repeats": "repeats", "targets": "targets of a cell", "draws": "draws"}


def as_text(result: dict[str, Any]) -> str:
    """The result of :func:`regatta_tools.measures.power.power` for a terminal of any width from 40 columns."""
    design = result["design"]
    about = f"{result['verdicts']:,} verdicts ({result['source']})" if result["source"] else "stated variances"
    lines = wrap(f"Planning a comparison of two strategies by {result['measure']}, from {about}", "", "  ")
    lines += wrap(
        f"design: {design['cells']} cell(s) x {design['generators']} generator(s) x {design['repeats']} repeat(s) = "
        f"{design['suites_of_a_strategy']} suites of a strategy; {design['targets']} targets of a cell, "
        f"{design['draws']} draw(s)",
        "  ", "    ",
    )  # fmt: skip
    adjusted = f", shared by {result['comparisons']} comparisons" if result["comparisons"] > 1 else ""
    lines += wrap(f"power {result['power']:.0%}, two-sided test at {1 - result['level']:.3g}{adjusted}", "  ", "    ")
    lines += ["", "Where verdicts vary"]
    for row in result["variances"]:
        if row["reason"] and row["planned_with"] is None:
            lines += wrap(f"{row['effect']:<26}{'':>9}        {row['reason']}", "  ", "    ")
            continue
        value = row["planned_with"] if row["stated"] else row["estimate"]
        value = row["planned_with"] if value is None else value
        share = f"{row['share']:6.1%}" if row["share"] is not None else ""
        lines += wrap(f"{row['effect']:<26}{value:>9.4f} {share}{' (stated)' if row['stated'] else ''}", "  ", "    ")
    for scope in result["scopes"]:
        lines += ["", *wrap(f"For {scope['scope']}", "", "  ")]
        if scope["minimum_detectable"] is None:
            lines += wrap(f"minimum detectable difference: none, {scope['reason']}", "  ", "    ")
        else:
            text = f"minimum detectable difference: {scope['minimum_detectable']:.3f}"
            basis = f"standard error {scope['se']:.4f}, {scope['df']:.1f} degrees of freedom"
            lines += wrap(f"{text} ({basis})", "  ", "    ")
        if scope["power_at_difference"] is not None:
            chance = scope["power_at_difference"]
            lines += wrap(f"a difference of {result['difference']:g} is seen with chance {chance:.2f}", "  ", "    ")
        for key, word in THINGS.items():
            needed = scope["needed"][key]
            value = str(needed["value"]) if needed["value"] is not None else needed["reason"]
            lines += wrap(f"{word} that it takes, all else as it is: {value}", "    ", "      ")
    lines += ["", "Before you use this"]
    for note in result["notes"]:
        lines += wrap(note, "  - ", "    ")
    return "\n".join(lines)


COLUMNS = ("scope", "repeats", "suites_of_a_strategy", "minimum_detectable", "reason")


def as_csv(result: dict[str, Any]) -> str:
    """One row for each scope and number of repeats. What is not defined has an empty cell and a reason."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for scope in result["scopes"]:
        for point in scope["curve"]:
            value = point["minimum_detectable"]
            cells = ["", scope["reason"] or "no difference is large enough"] if value is None else [repr(value), ""]
            writer.writerow([scope["scope"], point["repeats"], point["suites_of_a_strategy"], *cells])
    return out.getvalue()
