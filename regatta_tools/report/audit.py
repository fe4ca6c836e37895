"""The audit for people: per obligation what was read, and a table like the published one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from regatta_tools.provenance.checks import ORDER
from regatta_tools.provenance.currency import Change
from regatta_tools.provenance.outcomes import AuditReport, Item
from regatta_tools.report.findings import as_lines, plain, strict_json

if TYPE_CHECKING:
    from regatta_tools.provenance.model_reading import Plan, Read

_SAID = {
    "misstates-current-rule": "misstates the current rule",
    "citation-defect": "citation defect",
    "non-binding-source-only": "non-binding, unidentifiable or unverifiable source only",
    "verified-clean": "verified clean",
    "not-assessed": "not assessed",
}
NO_LAWYER = (
    "No lawyer has read these obligations. A machine compares words and numbers; readers are named with their kind."
)


def as_text(report: AuditReport) -> str:
    """What speaks against an obligation first, then the clean ones in a line each, then the table."""
    lines = [line for finding in report.findings for line in as_lines(finding)]
    if lines:
        lines.append("")
    lines += [_line(item) for item in report.items]
    when = report.as_of or "the date of each cell"
    against = f"against the texts in {report.texts}" if report.texts else "by recorded readings alone (no --texts)"
    if report.upcoming is not None:
        lines += ["", *_upcoming(report.upcoming)]
    lines += ["", plain(f"As of {when}, {against}."), *_since(report), as_table(report), "", NO_LAWYER]
    return "\n".join(lines)


def closing(report: AuditReport) -> str:
    """One line: how many requirements have each outcome that occurs."""
    counts = ", ".join(f"{n} {_SAID[outcome]}" for outcome, n in report.summary.items() if n)
    return f"{len(report.items)} requirement{'s' * (len(report.items) != 1)}: {counts or 'none'}"


def _since(report: AuditReport) -> list[str]:
    if not report.since:
        return []
    older = f"{report.older} older finding{'s' * (report.older != 1)}"
    return [plain(f"Only obligations that were touched since {report.since}; {older} not shown.")]


def _upcoming(changes: list[Change]) -> list[str]:
    if not changes:
        return ["Nothing starts or ends within these days."]
    lines = ["What starts or ends:"]
    for change in changes:
        column = f"{change.record.spec.name}.{change.column}"
        lines.append(f"  {change.day}  {change.event.ljust(6)}  {change.record.key} ({column})")
        if change.requirements != (change.record.key,):
            lines.append(f"      of {', '.join(change.requirements)}")
    return lines


def _line(item: Item) -> str:
    kinds = Counter(r["reader_kind"] for r in item.readings if r["current"])
    readers = ", ".join(f"{n} by {kind}" for kind, n in sorted(kinds.items())) or "none"
    dates = sorted({e["text_date"] for e in item.evidence if e.get("text_date")})
    of = f"; texts of {', '.join(dates)}" if dates else ""
    why = f" ({', '.join(item.reasons)})" if item.reasons else ""
    line = plain(f"{item.requirement.key}  {_SAID[item.outcome]}{why}; readings: {readers}{of}")
    return line + "".join(f"\n    open: {plain(what)}" for what in item.open)


def as_table(report: AuditReport) -> str:
    """Outcomes by cell, in the order of the published table."""
    cells = sorted({item.requirement["cell"] for item in report.items})
    counts = Counter((item.requirement["cell"], item.outcome) for item in report.items)
    width = max((len(c) for c in cells), default=4)
    wide = max(len(s) for s in _SAID.values())
    lines = ["".ljust(wide) + "".join(f"  {c.rjust(width)}" for c in cells) + "    all"]
    for outcome in ORDER:
        row = [counts[cell, outcome] for cell in cells]
        lines.append(_SAID[outcome].ljust(wide) + "".join(f"  {str(n).rjust(width)}" for n in row) + f"  {sum(row):5d}")
    return "\n".join(lines)


def plan_text(plan: Plan) -> str:
    """What would be sent to whom, before anything is."""
    lines = [f"{len(plan.questions)} question(s), a passage each, would go to {plan.vendor}"]
    lines += [f"  {file}: {count} passage(s), {size:,} characters" for file, (count, size) in plan.texts().items()]
    lines.append(f"recorded as readings of an AI by {plan.reader!r}")
    if plan.known:
        lines.append(f"{plan.known} citation(s) this reader has read as they stand")
    lines += [f"{citation} cannot be asked about: {why}" for citation, why in plan.unasked.items()]
    return "\n".join(plain(line) for line in lines)


def read_text(plan: Plan, done: Read) -> str:
    """What came of each question that is not a clean reading, and the counts."""
    lines = [f"{c}: {o}: {done.why[c]}" for c, o in done.outcomes.items() if o != "verified-clean"]
    counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(done.counts.items()))
    lines.append(f"{len(done.added)} readings added ({counts or 'nothing asked'}); {done.calls} calls")
    if any(outcome not in ORDER for outcome in done.outcomes.values()):
        lines.append("what was not read is recorded nowhere, and is still to be read")
    return "\n".join(plain(line) for line in lines)


def agreement_text(found: list[dict[str, Any]]) -> str:
    """Agreement of readers, a line a pair."""
    if not found:
        return "No two readers have read the same citation as it is."
    lines = []
    for pair in found:
        low, high = pair["interval"]
        kappa = "undefined: only one category used" if pair["kappa"] is None else f"{pair['kappa']:.2f}"
        lines.append(
            f"{plain(' and '.join(pair['readers']))}: agree on {pair['agree']} of {pair['n']} "
            f"[{low:.2f}, {high:.2f}], kappa {kappa}"
        )
        lines += [f"    they differ on {c}" for c in pair["disagreements"]]
    return "\n".join(lines)


def as_json(report: AuditReport) -> str:
    """The report as strict JSON."""
    return strict_json(report.as_dict())


#: Forms of an audit besides those of findings.
FORMS: dict[str, Callable[[AuditReport], str]] = {"text": as_text, "json": as_json, "table": as_table}
