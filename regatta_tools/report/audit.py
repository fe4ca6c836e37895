"""The audit for people: per obligation what was read, and a table like the published one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from regatta_tools.provenance.checks import ORDER
from regatta_tools.provenance.outcomes import AuditReport, Item

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
    lines: list[str] = []
    for finding in report.findings:
        record = f" ({finding.record})" if finding.record else ""
        lines += [
            f"{finding.place()}: {finding.severity} {finding.code}: {finding.message}{record}",
            f"    mend: {finding.mend}",
        ]
    if lines:
        lines.append("")
    lines += [_line(item) for item in report.items]
    when = report.as_of or "the date of each cell"
    against = f"against the texts in {report.texts}" if report.texts else "by recorded readings alone (no --texts)"
    lines += ["", f"As of {when}, {against}.", as_table(report), "", NO_LAWYER]
    return "\n".join(lines)


def _line(item: Item) -> str:
    kinds = Counter(r["reader_kind"] for r in item.readings if r["current"])
    readers = ", ".join(f"{n} by {kind}" for kind, n in sorted(kinds.items())) or "none"
    dates = sorted({e["text_date"] for e in item.evidence if e.get("text_date")})
    of = f"; texts of {', '.join(dates)}" if dates else ""
    why = f" ({', '.join(item.reasons)})" if item.reasons else ""
    line = f"{item.requirement.key}  {_SAID[item.outcome]}{why}; readings: {readers}{of}"
    return line + "".join(f"\n    open: {what}" for what in item.open)


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


def agreement_text(found: list[dict[str, Any]]) -> str:
    """Agreement of readers, a line a pair."""
    if not found:
        return "No two readers have read the same citation as it is."
    lines = []
    for pair in found:
        low, high = pair["interval"]
        kappa = "undefined: only one category used" if pair["kappa"] is None else f"{pair['kappa']:.2f}"
        lines.append(
            f"{' and '.join(pair['readers'])}: agree on {pair['agree']} of {pair['n']} "
            f"[{low:.2f}, {high:.2f}], kappa {kappa}"
        )
        lines += [f"    they differ on {c}" for c in pair["disagreements"]]
    return "\n".join(lines)
