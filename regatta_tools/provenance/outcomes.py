"""The audit of a package: what the machine holds against the texts, joined with who has read what.

A requirement is *verified clean* only where both stand: no check of the machine speaks against it, and somebody (a
model, a person, a lawyer) has read each of its citations, as they are today, on the passage that is held (both are
named by hash), and found them clean. Without the texts the machine's part is left out and the readings alone speak.
What nobody has read, or no text is held of, is *not assessed*, which is no outcome of the audit (protocol, section 7).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from regatta_tools.provenance import checks
from regatta_tools.provenance.checks import CLEAN, NOT_ASSESSED, ORDER, Checked, Index
from regatta_tools.provenance.corpus import Corpus
from regatta_tools.provenance.currency import Change, upcoming
from regatta_tools.provenance.holding import verify
from regatta_tools.rules.findings import Finding, Report, ordered
from regatta_tools.tables.package import Package, Record
from regatta_tools.text import readable

#: Reasons of ``not-assessed`` besides ``text-not-held``.
NOT_READ, STALE = "not-read", "reading-stale"
#: Rules on texts of the law, whose findings stand in the folder of the texts and not in the package.
TEXTS = frozenset({"A101", "A102", "A103", "A104", "A105", "A107"})


@dataclass
class Item:
    """The audit of one requirement, as in the JSON report.

    ``reasons`` are reason codes, gravest first; ``readings`` all readings of its citations with ``current`` (made on
    the item as it is) or not; ``evidence`` what was read for each citation; ``open`` what is still to be done.
    """

    requirement: Record = field(repr=False)
    outcome: str
    reasons: list[str]
    readings: list[dict[str, Any]]
    evidence: list[dict[str, Any]]
    open: list[str]
    findings: list[Finding] = field(repr=False, default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: ``requirement``, ``cell``, ``outcome``, ``reasons``, ``readings``, ``evidence``, ``open``."""
        return {
            "requirement": self.requirement.key,
            "cell": self.requirement["cell"],
            "outcome": self.outcome,
            "reasons": self.reasons,
            "readings": self.readings,
            "evidence": self.evidence,
            "open": self.open,
        }


@dataclass
class AuditReport:
    """The audit of a package on a day.

    ``texts`` is the folder of the corpus, empty where none was given. ``findings`` are those on the package and, with
    the folder before the name of the file, on the texts. ``upcoming`` is what starts or ends soon, ``None`` where
    nobody asked. ``files`` and ``records`` count what was read of the package at ``checked``. Where only what a change
    touched was asked for, ``since`` is the revision before it and ``older`` counts the findings that were there before.
    """

    as_of: str
    texts: str
    items: list[Item]
    findings: list[Finding]
    upcoming: list[Change] | None = None
    files: int = 0
    records: int = 0
    checked: str = ""
    since: str = ""
    older: int = 0

    @property
    def summary(self) -> dict[str, int]:
        """How many requirements have each outcome; all outcomes are there, also with 0."""
        counts = Counter(item.outcome for item in self.items)
        return {outcome: counts[outcome] for outcome in ORDER}

    @property
    def ok(self) -> bool:
        """Whether nothing is adverse and nothing is an error; after a change, of what it brought in."""
        adverse = not self.since and any(item.outcome not in (CLEAN, NOT_ASSESSED) for item in self.items)
        return not adverse and not any(f.severity == "error" for f in self.findings)

    def as_report(self) -> Report:
        """The findings for the writers of findings (github, sarif, junit), each at its place in the repository."""
        # Texts are named from the current folder, and writers count from the package.
        findings = (replace(f, file=os.path.abspath(f.file)) if f.code in TEXTS else f for f in self.findings)
        return Report(
            tuple(findings), files=self.files, records=self.records, checked=self.checked, since=self.since,
            older=self.older, made_by="regatta audit",
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; ``upcoming``, ``since`` and ``older`` are there where they were asked for."""
        soon = {} if self.upcoming is None else {"upcoming": [change.as_dict() for change in self.upcoming]}
        return {
            "ok": self.ok,
            "as_of": self.as_of,
            "texts": self.texts,
            **({"since": self.since, "older": self.older} if self.since else {}),
            "summary": self.summary,
            **soon,
            "items": [item.as_dict() for item in self.items],
            "findings": [f.as_dict() for f in self.findings],
        }


def audit_package(
    package: Package,
    corpus: Corpus | None,
    *,
    as_of: date | None = None,
    cells: Iterable[str] = (),
    requirements: Iterable[str] = (),
    within: int | None = None,
) -> AuditReport:
    """Audit the active requirements of a package, all or those of some cells or ids.

    ``as_of`` replaces each cell's own date. Without a ``corpus`` only readings speak. With ``within``, a number of
    days, the report has what starts or ends so soon.
    """
    index = Index(package)
    wanted, named = set(cells), set(requirements)
    items = []
    for requirement in package.table("requirements"):
        if requirement["status"] != "active" or (wanted and requirement["cell"] not in wanted):
            continue
        if not named or requirement.key in named:
            items.append(_item(index, requirement, corpus, as_of))
    findings = [f for item in items for f in item.findings]
    if corpus is not None:
        folder = readable(corpus.folder.as_posix())
        # That the package does not know a source (A106) has no bearing on what it has.
        findings += [replace(f, file=f"{folder}/{f.file}") for f in verify(package, corpus) if f.code in TEXTS]
    audited = [item.requirement for item in items]
    return AuditReport(
        as_of=as_of.isoformat() if as_of else "",
        texts=readable(corpus.folder.as_posix()) if corpus else "",
        items=items,
        findings=ordered(findings),
        upcoming=None if within is None else upcoming(index, audited, within, as_of),
        files=len(package.files),
        records=package.count,
        checked=str(package.root),
    )


def _item(index: Index, requirement: Record, corpus: Corpus | None, as_of: date | None) -> Item:
    day = as_of or date.fromisoformat(index.cells[requirement["cell"]]["as_of"])
    checked = checks.check(index, requirement, corpus, day) if corpus is not None else None
    citations = index.citations.get(requirement.key, [])
    held = {r.citation.key: r.passage.sha256 for r in checked.reads if r.passage} if checked else {}
    readings = {c.key: latest(index, c, held.get(c.key, "")) for c in citations}
    outcome, reasons = _outcome(checked, readings)
    findings = [t.finding() for t in checked.troubles] if checked else []
    findings += [_adverse(r) for current, _ in readings.values() for r in current if r["outcome"] != CLEAN]
    if outcome == NOT_ASSESSED and reasons[:1] in ([NOT_READ], [STALE]):
        code = "A242" if reasons[0] == NOT_READ else "A243"
        findings.append(requirement.finding(code, "id", _unread(readings)))
    return Item(
        requirement,
        outcome,
        reasons,
        [_reading(r, current) for c in citations for r, current in history(index, c, held.get(c.key, ""))],
        [_evidence(read) for read in checked.reads] if checked else [],
        _open(checked, readings),
        findings,
    )


# Readings


def history(index: Index, citation: Record, passage: str = "") -> list[tuple[Record, bool]]:
    """All readings of a citation in the order of the file, each with whether it counts.

    It does where it was made on the item as it is and on the passage as it is: ``passage`` is the hash of the held one,
    and where none is held, that of the citation speaks. An outcome that names no passage is without evidence.
    """
    item = checks.item_hash(index, citation)
    passage = passage or citation["passage_hash"]

    def counts(reading: Record) -> bool:
        if reading["item_hash"] != item:
            return False
        read = reading["passage_hash"]
        return read == passage if read and passage else bool(read) or reading["outcome"] == NOT_ASSESSED

    return [(r, counts(r)) for r in index.readings.get(citation.key, [])]


def latest(index: Index, citation: Record, passage: str = "") -> tuple[list[Record], bool]:
    """The readings of a citation that count, the last of each reader, machines left out; and whether others exist.

    ``passage`` as in :func:`history`.
    """
    last: dict[tuple[str, str], Record] = {}
    stale = False
    for reading, current in history(index, citation, passage):
        if reading["reader_kind"] == "machine":
            continue
        if current:
            last[reading["reader_kind"], reading["reader"]] = reading
        elif reading["passage_hash"] or reading["outcome"] == NOT_ASSESSED:
            stale = True
    return list(last.values()), stale


def _outcome(checked: Checked | None, readings: dict[str, tuple[list[Record], bool]]) -> tuple[str, list[str]]:
    """The gravest of what machine and readers found; clean only where every citation was read as it is."""
    outcomes: set[str] = set()
    reasons: Counter[str] = Counter()
    if checked is not None:
        for trouble in checked.troubles:
            outcomes.add(trouble.outcome)
            reasons[trouble.reason] += 1
    for current, _ in readings.values():
        for reading in current:
            outcomes.add(reading["outcome"])
            if reading["reason_code"]:
                reasons[reading["reason_code"]] += 1
    adverse = next((o for o in ORDER if o in outcomes and o not in (NOT_ASSESSED, CLEAN)), None)
    named = sorted(reasons, key=lambda r: (_rank(r), r))
    if adverse:
        return adverse, named
    if NOT_ASSESSED in outcomes:
        return NOT_ASSESSED, named or ["text-not-held"]
    unread = [stale for current, stale in readings.values() if not current]
    if unread or not readings:
        return NOT_ASSESSED, [STALE if any(unread) else NOT_READ]
    return CLEAN, []


def _adverse(reading: Record) -> Finding:
    """The finding of a reading that is not clean, at its row."""
    who = f"{reading['reader']} ({reading['reader_kind']})"
    if reading["outcome"] == NOT_ASSESSED:
        return reading.finding("A242", "outcome", f"{reading['citation']}: {who} could not assess it")
    code = f" ({reading['reason_code']})" if reading["reason_code"] else ""
    why = f": {reading['reason']}" if reading["reason"] else ""
    return reading.finding("A251", "outcome", f"{who} read {reading['citation']} as {reading['outcome']}{code}{why}")


def _rank(reason: str) -> int:
    outcome = checks.REASONS[reason][0] if reason in checks.REASONS else checks.MISSTATES
    return ORDER.index(outcome)


def _unread(readings: dict[str, tuple[list[Record], bool]]) -> str:
    unread = [c for c, (current, _) in readings.items() if not current]
    stale = sum(readings[c][1] for c in unread)
    what = f"{len(unread)} of {len(readings)} citations have no reading that counts"
    return what + (f" ({stale} read before a change of item or passage)" if stale else "")


def _reading(reading: Record, current: bool) -> dict[str, Any]:
    keys = ("id", "citation", "outcome", "reason_code", "reason", "reader", "reader_kind", "date", "text_hash",
            "passage_hash", "decision")  # fmt: skip
    return {key: reading[key] for key in keys if reading[key]} | {"current": current}


# Evidence


def _evidence(read: checks.Read) -> dict[str, Any]:
    """What was read for one citation: the text by name, date and hash, the passage by hash, facts by their place."""
    out: dict[str, Any] = {
        "citation": read.citation.key,
        "source": read.citation["source"],
        "locator": read.citation["locator"],
        "role": read.citation["role"],
    }
    if read.text is not None:
        out |= {"text": read.text.file, "text_date": read.text.date or None, "text_hash": read.text.sha256}
    if read.passage is not None:
        out |= {
            "sections": list(read.passage.headings),
            "passage_hash": read.passage.sha256,
            "facts": {fact: list(span) for fact, span in sorted(read.spans.items())},
        }
    return out


def _open(checked: Checked | None, readings: dict[str, tuple[list[Record], bool]]) -> list[str]:
    """What nobody has done yet."""
    todo = []
    kinds = {r["reader_kind"] for current, _ in readings.values() for r in current}
    if not kinds & {"human", "lawyer"}:
        todo.append("no person has read it")
    elif "lawyer" not in kinds:
        todo.append("no lawyer has read it")
    if checked is None:
        todo.append("not held against a text: none was given")
    else:
        undated = sorted({r.text.file for r in checked.reads if r.text is not None and not r.text.date})
        if undated:
            todo.append(f"the date of the text is not known: {', '.join(undated)}")
        if checked.words:
            one = len(checked.words) == 1
            what = "1 fact is" if one else f"{len(checked.words)} facts are"
            todo.append(f"{what} words, which the machine does not compare")
    return todo
