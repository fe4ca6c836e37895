"""Rules that a query cannot say: those that compute."""

from __future__ import annotations

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, Record
from regatta_tools.text import shown
from regatta_tools.validation.expressions import (
    ExpressionError,
    evaluate,
    names_in,
    parse_inputs,
    parse_value,
    render,
    same,
)


def check(package: Package) -> list[Finding]:
    """Work every fault probe and compare: ground truth cannot contradict the injection.

    Empty cells and references that lead nowhere are findings of earlier checks, and so is a probe whose
    expression cannot be read: each is told once.
    """
    findings: list[Finding] = []
    values: dict[tuple[str, str], Record] = {}
    unreadable: set[tuple[str, str]] = set()
    for value in package.table("fault_values"):
        key = value["fault"], value["parameter"]
        values.setdefault(key, value)
        for column in ("true_expr", "faulty_expr"):
            try:
                names_in(value[column] or "0")
            except ExpressionError as error:
                findings.append(value.finding("P005", column, str(error)))
                unreadable.add(key)
    for probe in package.table("fault_probes"):
        key = probe["fault"], probe["parameter"]
        if key in unreadable or not all(probe[c] for c in ("fault", "parameter", "inputs")):
            continue
        if key in values:
            findings += _work(probe, values[key])
        elif "fault_values" not in package.incomplete and probe["fault"] in package.by_id:
            what = f"fault {shown(probe['fault'])} has no parameter {shown(probe['parameter'])}"
            findings.append(probe.finding("P006", "parameter", what))
    return findings


def _work(probe: Record, value: Record) -> list[Finding]:
    findings = []
    try:
        inputs = parse_inputs(probe["inputs"])
    except ExpressionError as error:
        return [probe.finding("P005", "inputs", str(error))]
    results = {}
    for side, column in (("true_expr", "true_result"), ("faulty_expr", "faulty_result")):
        if not value[side] or not probe[column]:
            continue
        try:
            results[column] = evaluate(value[side], inputs)
        except ExpressionError as error:
            findings.append(probe.finding("P005", "inputs", f"{side} of {value['parameter']!r}: {error}"))
            continue
        if not same(results[column], parse_value(probe[column])):
            what = f"{column} is {shown(probe[column])}, but {value[side]} gives {shown(render(results[column]))}"
            findings.append(probe.finding("P003", column, what))
    if len(results) == 2 and same(results["true_result"], results["faulty_result"]):
        findings.append(probe.finding("P004", "faulty_result", "the true and the faulty side give the same result"))
    return findings
