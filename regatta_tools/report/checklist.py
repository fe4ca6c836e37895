"""The audit of a checklist for people: what speaks against each requirement, and a table beside the published one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from regatta_tools.provenance.checklist import ChecklistItem, ChecklistReport
from regatta_tools.provenance.checks import ORDER
from regatta_tools.report.audit import _SAID as SAID
from regatta_tools.report.findings import counted, folded, listed, plain, strict_json

_OPEN = {
    "not-read": "nothing speaks against it, and nobody has read it",
    "text-not-held": "a text of its law is not held, or only in part",
    "citation-not-understood": "a source is named in words that no grammar knows",
}
NO_READER = "Nobody has read these requirements for this report. A machine calls none of them clean."


def as_text(report: ChecklistReport) -> str:
    """Each requirement with what was found of it, then the table."""
    lines = listed(report.findings)
    if lines:
        lines.append("")
    lines += [line for item in report.items for line in _lines(item)]
    lines += ["", plain(f"As of {report.as_of}, against the texts in {report.texts}."), as_table(report), "", NO_READER]
    return "\n".join(lines)


def _lines(item: ChecklistItem) -> list[str]:
    where = plain(f"{item.entry.file}:{item.entry.line}")
    lines = folded(f"{item.entry.id}  {SAID[item.outcome]} ({', '.join(item.reasons)})  {where}", rest="      ")
    for evidence in item.evidence:
        for differs in evidence.get("differs", ()):
            lines += folded(f"{differs['reason']}: {differs['what']}", "    ", "        ")
            by = differs if "text" in differs else evidence
            if "text" in by:
                lines.append(f"        {by['text']} of {by['text_date'] or 'an unknown date'}, {by['text_hash'][:12]}")
        for said, places in evidence.get("stands_in", {}).items():
            lines += folded(f"to look at: {said} stands in {'; '.join(places)}", "    ", "        ")
    return lines + [line for what in item.open for line in folded(f"open: {what}", "    ", "        ")]


def as_table(report: ChecklistReport) -> str:
    """Outcomes by cell, the published ones beside the sum where they are known, and why items are not assessed."""
    cells = sorted({item.entry.cell for item in report.items})
    counts = Counter((item.entry.cell, item.outcome) for item in report.items)
    reasons = Counter((i.entry.cell, i.reasons[0]) for i in report.items if i.outcome == "not-assessed")
    published = report.published
    wide = max(len(s) for s in [*SAID.values(), *(f"  {s}" for s in _OPEN.values())])
    widths = [max(len(c), 3) for c in cells]

    def row(name: str, numbers: list[int], last: str = "") -> str:
        shown = "".join(f"  {n:{w}d}" for n, w in zip(numbers, widths))
        return f"{name.ljust(wide)}{shown}  {sum(numbers):5d}{last}"

    head = "".join(f"  {plain(c).rjust(w)}" for c, w in zip(cells, widths))
    lines = [f"{''.ljust(wide)}{head}    all" + ("  published" if published else "")]
    for outcome in ORDER:
        last = f"  {published[outcome] or '-':>9}" if published else ""
        lines.append(row(SAID[outcome], [counts[c, outcome] for c in cells], last))
        if outcome == "not-assessed":
            lines += [row(f"  {said}", [reasons[c, reason] for c in cells]) for reason, said in _OPEN.items()]
    return "\n".join(lines)


def as_json(report: ChecklistReport) -> str:
    return strict_json(report.as_dict())


def closing(report: ChecklistReport) -> str:
    """One line: how many requirements have each outcome that occurs."""
    counts = ", ".join(f"{n} {SAID[outcome]}" for outcome, n in report.summary.items() if n)
    return f"{counted(len(report.items), 'requirement')}: {counts}"


FORMS: dict[str, Callable[[ChecklistReport], str]] = {"text": as_text, "json": as_json, "table": as_table}
