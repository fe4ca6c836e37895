"""The audit for people: per obligation what was read, and a table like the published one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from regatta_tools.provenance.checks import CLEAN, ORDER
from regatta_tools.provenance.currency import Change
from regatta_tools.provenance.outcomes import AuditReport, Item
from regatta_tools.report.findings import counted, folded, listed, plain, strict_json

if TYPE_CHECKING:
    from regatta_tools.provenance.model_reading import Plan, Read

_SAID = {
    "misstates-current-rule": "misstates the current rule",
    "citation-defect": "citation defect",
    "non-binding-source-only": "non-binding, unidentifiable or unverifiable source only",
    "verified-clean": "verified clean",
    "not-assessed": "not assessed",
}
#: Heads of the columns of the table, in two lines.
_HEADS = {
    "misstates-current-rule": ("misstates", "the rule"),
    "citation-defect": ("citation", "defect"),
    "non-binding-source-only": ("non-", "binding*"),
    "not-assessed": ("not", "assessed"),
    "verified-clean": ("verified", "clean"),
}
_FOOT = "* non-binding, unidentifiable or unverifiable source only"
_READERS = {"lawyer": "a lawyer", "human": "a person", "ai": "an AI"}
_MACHINE = "A machine compares words and numbers; readers are named with their kind."
NO_LAWYER = f"No lawyer has read these obligations. {_MACHINE}"


def as_text(report: AuditReport) -> str:
    """What speaks against an obligation first, then the obligations in a line each, what is open, and the table."""
    lines = listed(report.findings)
    if lines:
        lines.append("")
    common = _common(report.items)
    for item in report.items:
        lines += folded(_line(item, bool(report.texts)), rest="      ")
        for what in item.open:
            lines += [] if what in common else folded(f"open: {what}", "    ", " " * 10)
    if report.upcoming is not None:
        lines += ["", *_upcoming(report.upcoming)]
    when = report.as_of or "the date of each cell"
    against = f"against the texts in {report.texts}" if report.texts else "by recorded readings alone (no --texts)"
    lines += ["", *folded(f"As of {when}, {against}.", rest=""), *_since(report), "", as_table(report)]
    if common:
        whom = "Open" if len(report.items) == 1 else f"Open for all {len(report.items)}"
        lines += ["", *folded(f"{whom}: {'; '.join(common)}.", rest="")]
    return "\n".join([*lines, "", *_meaning(report), *folded(_lawyers(report.items), rest="")])


def closing(report: AuditReport) -> str:
    """One line: how many requirements have each outcome that occurs."""
    counts = ", ".join(f"{n} {_SAID[outcome]}" for outcome, n in report.summary.items() if n)
    return f"{counted(len(report.items), 'requirement')}: {counts or 'none'}"


def _since(report: AuditReport) -> list[str]:
    if not report.since:
        return []
    older = counted(report.older, "older finding")
    return folded(f"Only obligations that were touched since {report.since}; {older} not shown.", rest="")


def _upcoming(changes: list[Change]) -> list[str]:
    if not changes:
        return ["Nothing starts or ends within these days."]
    lines = ["What starts or ends:"]
    for change in changes:
        column = f"{change.record.spec.name}.{change.column}"
        lines.append(plain(f"  {change.day}  {change.event.ljust(6)}  {change.record.key} ({column})"))
        if not all(change.record.key.startswith(r) for r in change.requirements):
            lines += folded(f"of {', '.join(change.requirements)}", " " * 6, " " * 9)
    return lines


def _common(items: list[Item]) -> list[str]:
    """What is open for every one of several items: said once."""
    if not items:
        return []
    return [what for what in items[0].open if all(what in item.open for item in items)]


def _line(item: Item, texts: bool) -> str:
    """The outcome of an item, and who stands behind it: a machine that held it against texts, and readers by kind."""
    kinds = Counter(r["reader_kind"] for r in item.readings if r["current"])
    read = " and ".join(f"{_READERS[kind]} ({counted(kinds[kind], 'reading')})" for kind in _READERS if kinds[kind])
    by = " and ".join(([] if not texts else ["machine"]) + [_READERS[kind] for kind in _READERS if kinds[kind]])
    dates = sorted({e["text_date"] for e in item.evidence if e.get("text_date")})
    of = f"; texts of {', '.join(dates)}" if dates else ""
    why = f" ({', '.join(item.reasons)})" if item.reasons else ""
    if item.outcome == CLEAN:
        return f"{item.requirement.key}  {_SAID[CLEAN]} by {by}{of}"
    return f"{item.requirement.key}  {_SAID[item.outcome]}{why}; read by {read or 'nobody as it stands'}{of}"


def _lawyers(items: list[Item]) -> str:
    """Of how many obligations a lawyer has read a citation; where of none, the words that everybody has to see."""
    read = sum(any(r["current"] and r["reader_kind"] == "lawyer" for r in item.readings) for item in items)
    if not read:
        return NO_LAWYER
    return f"A lawyer has read citations of {read} of these {counted(len(items), 'obligation')}. {_MACHINE}"


def _meaning(report: AuditReport) -> list[str]:
    """What "verified clean" rests on here, where anything is: without it the words say too much."""
    kinds = {r["reader_kind"] for i in report.items if i.outcome == CLEAN for r in i.readings if r["current"]}
    if not kinds:
        return []
    who = ", ".join(_READERS[kind] for kind in _READERS if kind in kinds)
    read = f"every citation has a clean reading as it stands, here by {who}"
    machine = "no check of the machine speaks against the item"
    machine = machine if report.texts else "nothing was held against a text now"
    return folded(f'"Verified clean" says: {read}; {machine}.', rest="")


def as_table(report: AuditReport) -> str:
    """Outcomes by cell, in the order of the published table; below, by whom the clean ones were read."""
    cells = sorted({item.requirement["cell"] for item in report.items})
    counts = Counter((item.requirement["cell"], item.outcome) for item in report.items)
    wide = max(len(c) for c in [*cells, "all"])
    heads = [[_HEADS[o][n] for o in ORDER] + [("", "all")[n]] for n in (0, 1)]
    sizes = [max(len(a), len(b), 4) + 2 for a, b in zip(*heads, strict=True)]

    def row(name: str, values: list[str]) -> str:
        return (name.ljust(wide) + "".join(v.rjust(size) for v, size in zip(values, sizes, strict=True))).rstrip()

    def numbers(name: str, of: list[str]) -> str:
        counted_ = [sum(counts[cell, outcome] for cell in of) for outcome in ORDER]
        return row(name, [str(n) for n in (*counted_, sum(counted_))])

    lines = [row("", heads[0]), row("", heads[1]), *(numbers(cell, [cell]) for cell in cells)]
    return "\n".join([*lines, numbers("all", cells), _FOOT])


def todo_text(rows: list[dict[str, str]]) -> str:
    """The citations that are to be read, below their obligation, and how to get the sheet."""
    lines = []
    for requirement in dict.fromkeys(row["requirement"] for row in rows):
        own = [row for row in rows if row["requirement"] == requirement]
        lines += folded(f"{requirement}  {own[0]['topic']}")
        for row in own:
            lines += folded(f"{row['citation']}  {row['locator']}, {row['source']} ({row['role']})", "    ", " " * 8)
    of = counted(len({row["requirement"] for row in rows}), "obligation")
    count = f"{counted(len(rows), 'citation')} of {of} to read"
    sheet = "`-o review.xlsx` writes the sheet to fill in, with --texts DIR also the passages (docs/reading.md)"
    return "\n".join([*lines, "", *folded(f"{count}. {sheet}." if rows else "Nothing is to be read.", rest="")])


def plan_text(plan: Plan) -> str:
    """What would be sent to whom, before anything is."""
    lines = [f"{counted(len(plan.questions), 'question')}, a passage each, would go to {plan.vendor}"]
    for file, (count, size) in plan.texts().items():
        lines.append(f"  {file}: {counted(count, 'passage')}, {size:,} characters")
    lines.append(f"recorded as readings of an AI by {plan.reader!r}")
    if plan.known:
        lines.append(f"{counted(plan.known, 'citation')} read before by this reader, and unchanged")
    lines += [f"{citation} cannot be asked about: {why}" for citation, why in plan.unasked.items()]
    return "\n".join(plain(line) for line in lines)


def read_text(plan: Plan, done: Read) -> str:
    """What came of each question that is not a clean reading, and the counts."""
    lines = [f"{c}: {o}: {done.why[c]}" for c, o in done.outcomes.items() if o != "verified-clean"]
    counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(done.counts.items()))
    added, calls = counted(len(done.added), "reading"), counted(done.calls, "call")
    lines.append(f"{added} added ({counts or 'nothing asked'}); {calls}")
    if any(outcome not in ORDER for outcome in done.outcomes.values()):
        lines.append("what was not read is recorded nowhere, and is still to be read")
    return "\n".join(plain(line) for line in lines)


def agreement_text(found: list[dict[str, Any]]) -> str:
    """Agreement of readers, a pair after the other."""
    if not found:
        return "No two readers have read the same citation as it is."
    lines = []
    for pair in found:
        low, high = pair["interval"]
        kappa = "undefined: only one category used" if pair["kappa"] is None else f"{pair['kappa']:.2f}"
        lines += folded(
            f"{' and '.join(pair['readers'])}: agree on {pair['agree']} of {pair['n']} "
            f"[{low:.2f}, {high:.2f}], kappa {kappa}"
        )
        lines += [plain(f"    they differ on {c}") for c in pair["disagreements"]]
    return "\n".join(lines)


def as_json(report: AuditReport) -> str:
    """The report as strict JSON."""
    return strict_json(report.as_dict())


#: Forms of an audit besides those of findings.
FORMS: dict[str, Callable[[AuditReport], str]] = {"text": as_text, "json": as_json, "table": as_table}
