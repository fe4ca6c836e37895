"""The gate: no active requirement without a clean reading of each of its citations, as they stand (A001 to A003).

No text of the law is needed. A reading names by hash what was read: the item (requirement, citation, source, facts) and
the passage, whose hash the citation has too. Whatever was edited since has another hash, and the reading no longer
counts. Which readings count is decided as by the audit (:func:`regatta_tools.provenance.outcomes.latest`).

A cell is held to it once it is complete, or from its first reading on: a cell that is being written may be checked
before anybody has read it, and no cell gets out by losing its readings. Everything is asked of whole columns; records
are made only for what is wrong.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from regatta_tools.provenance.checks import CLEAN, NOT_ASSESSED
from regatta_tools.provenance.item_hashes import item_hashes
from regatta_tools.rules.findings import Finding, Report
from regatta_tools.tables.package import Package

#: What a reading is about, and the readings. Where rows of these could not be read, nothing is said.
TABLES = frozenset({"requirements", "citations", "facts", "sources", "audit"})
#: Active requirements of a complete cell (protocol, section 8; rule P007).
COMPLETE = 25
#: Citations that one finding names before it says how many more there are.
_NAMED = 4
_NUMBER = re.compile(r"-a([0-9]+)$")
_EVIDENCE = re.compile(r"(?:[^\s=]+=[0-9]+-[0-9]+(?: |$))*")


class _Reading(NamedTuple):
    """One row of ``audit.csv``. ``reader`` is its kind and its name."""

    outcome: str
    reason_code: str
    reader: tuple[str, str]
    date: str
    item: str
    passage: str

    @property
    def who(self) -> str:
        return f"{self.reader[1]} ({self.reader[0]})"

    def counts(self, item: str, passage: str) -> bool:
        """Whether it was made on the item and the passage as they are, and with evidence."""
        if self.item != item:
            return False
        if self.passage and passage:
            return self.passage == passage
        return bool(self.passage) or self.outcome == NOT_ASSESSED


def check(package: Package, found: Iterable[Finding]) -> list[Finding]:
    """The findings of the gate. ``found`` is what was found before.

    A requirement of which a record of its own has an error already (itself, a citation, a fact, a source, a reading) is
    passed over: the error is to be mended first, and the reading comes after.
    """
    if TABLES & package.incomplete:
        return []
    gated = _gated(package)
    if not gated:
        return []
    findings = [*_without_evidence(package), *_taken_out(package)]
    unread = _unread(package, gated)
    if unread:
        told = _Told(package, [*found, *findings])
        requirements = package.table("requirements")
        for place, why, citation in unread:
            if not told.about(place):
                finding = requirements[place].finding("A001", "id", why)
                if citation is not None:
                    # Of several citations one alone is to be read again: it is the one that was changed.
                    there = package.table("citations")[citation]
                    finding = replace(finding, file=there.file, line=there.line)
                findings.append(finding)
    return findings


def at_the_change(report: Report, package: Package, touched: Mapping[str, Iterable[range]]) -> Report:
    """The report with each A001 at the record that was touched, where the line of its requirement was not.

    Hashes tell that an item was changed; which of its rows it was, the lines of a change tell.
    """

    def moved(finding: Finding) -> Finding:
        if finding.code != "A001" or on(finding.file, finding.line):
            return finding
        for table in ("facts", "citations", "sources"):
            for record in package.table(table):
                about = record.key in cited[finding.record] if table == "sources" else (
                    record["requirement"] == finding.record)  # fmt: skip
                if about and on(record.file, record.line):
                    return replace(finding, file=record.file, line=record.line, column=1)
        return finding

    def on(file: str, line: int) -> bool:
        return any(line in lines for lines in touched.get(file, ()))

    cited: dict[str, set[str]] = defaultdict(set)
    for citation in package.table("citations"):
        cited[citation["requirement"]].add(citation["source"])
    return replace(report, findings=tuple(moved(f) for f in report.findings))


def _gated(package: Package) -> set[str]:
    """The cells that have readings or are complete."""
    active = Counter(
        cell
        for cell, status in zip(
            package.column("requirements", "cell"), package.column("requirements", "status"), strict=True
        )
        if status == "active"
    )
    return set(package.column("audit", "cell")) | {cell for cell, count in active.items() if count >= COMPLETE}


# A001


def _unread(package: Package, gated: set[str]) -> list[tuple[int, str, int | None]]:
    """The places of active requirements of gated cells without a clean reading, each with what is missing.

    The last is the place of the citation that is meant, where it is one of several.
    """
    items = item_hashes(package)
    ids, passages = package.column("citations", "id"), package.column("citations", "passage_hash")
    # Nearly all citations have one reading, which is clean and counts: only for the others it is looked at.
    read = package.column("audit", "citation")
    counted = Counter(read)
    columns = (package.column("audit", c) for c in ("item_hash", "passage_hash", "outcome", "reader_kind"))
    last = {c: what[:3] for c, what in zip(read, zip(*columns, strict=True), strict=True) if what[3] != "machine"}
    doubtful = [
        place
        for place, (citation, item, passage) in enumerate(zip(ids, items, passages, strict=True))
        if counted[citation] != 1 or not passage or last.get(citation) != (item, passage, CLEAN)
    ]
    readings = _readings(package, {ids[place] for place in doubtful})
    of = package.column("citations", "requirement")
    missing: dict[str, list[int]] = defaultdict(list)
    for place in doubtful:
        counting = {r.reader: r for r in readings[ids[place]] if r.counts(items[place], passages[place])}
        if not counting or any(r.outcome != CLEAN for r in counting.values()):
            missing[of[place]].append(place)
    cited = Counter(of)
    # Of those whose other citations count: they tell whether what all share is as it was read.
    others: dict[str, list[int]] = defaultdict(list)
    partly = {key for key, places in missing.items() if len(places) < cited[key]}
    for place, key in enumerate(of) if partly else ():
        if key in partly and place not in missing[key]:
            others[key].append(place)
    readings |= _readings(package, {ids[place] for places in others.values() for place in places})
    found = []
    columns = (package.column("requirements", c) for c in ("id", "cell", "status"))
    for place, (key, cell, status) in enumerate(zip(*columns, strict=True)):
        if status != "active" or cell not in gated or (key in cited and key not in missing):
            continue
        if key not in cited:
            found.append((place, "it has no citation that could have been read", None))
            continue
        about = [(ids[c], items[c], passages[c], readings[ids[c]]) for c in missing[key]]
        stale = {(r.reader, r.date) for *_, rows in about for r in rows[-1:]}
        counting = {
            (r.reader, r.date) for c in others[key] for r in readings[ids[c]] if r.counts(items[c], passages[c])
        }
        alone = stale <= counting and bool(others[key])  # read together with others that still count
        changed = "the requirement, a fact, the citation or its source"
        if alone:
            changed = "the citation or its source"
        elif len(about) > 1:
            changed = "the requirement or a fact (or every citation)"
        one = missing[key][0] if len(about) == 1 and alone else None
        found.append((place, _why(key, about, changed), one))
    return found


def _readings(package: Package, wanted: set[str]) -> dict[str, list[_Reading]]:
    """The readings of some citations in the order of the table, those of machines left out."""
    names = ("citation", "outcome", "reason_code", "reader_kind", "reader", "date", "item_hash", "passage_hash")
    found: dict[str, list[_Reading]] = defaultdict(list)
    columns = (package.column("audit", name) for name in names)
    for citation, outcome, code, kind, reader, day, item, passage in zip(*columns, strict=True):
        if kind != "machine" and citation in wanted:
            found[citation].append(_Reading(outcome, code, (kind, reader), day, item, passage))
    return found


def _why(requirement: str, about: list[tuple[str, str, str, list[_Reading]]], changed: str) -> str:
    """What keeps the readings of citations from being clean ones, each reason once with the citations that have it."""
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)  # by the words before and behind the citations
    for citation, item, passage, rows in about:
        last = {r.reader: r for r in rows if r.counts(item, passage)}
        adverse = [r for r in last.values() if r.outcome != CLEAN]
        if adverse:
            code = f" ({adverse[-1].reason_code})" if adverse[-1].reason_code else ""
            words = f"{adverse[-1].who} read ", f" as {adverse[-1].outcome}{code}"
        elif not rows:
            words = "nobody has read ", ""
        elif any(r.item == item for r in rows):
            words = "", f": its passage_hash is not of the passage that {rows[-1].who} read on {rows[-1].date}"
        else:
            words = "", f": {changed} was changed after {rows[-1].who} read it on {rows[-1].date}"
        reasons[words].append(citation)
    return "; ".join(f"{head}{_listed(requirement, named)}{tail}" for (head, tail), named in reasons.items())


def _listed(requirement: str, citations: list[str]) -> str:
    """Citations of one requirement, the later ones without its id: ``x-r01-c1, c2``."""
    first, *others = citations[:_NAMED]
    short = [first, *(other.removeprefix(f"{requirement}-") for other in others)]
    more = len(citations) - len(short)
    return ", ".join(short) + (f" and {more} more" if more else "")


class _Told:
    """What was found before on the records of a requirement."""

    def __init__(self, package: Package, found: Iterable[Finding]) -> None:
        errors = [f for f in found if f.severity == "error"]
        # An error that is waived is accepted, and takes no requirement out of the gate.
        accepted = {(w["rule"], w["record"]) for w in package.table("waivers")}
        self.records = {f.record for f in errors if f.record and (f.code, f.record) not in accepted}
        self.lines = {(f.file, f.line) for f in errors if not f.record and f.line}
        self.requirements = package.table("requirements")
        self.own: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        if not self.records and not self.lines:
            return
        sources = {r.key: r for r in package.table("sources")}
        for table in ("citations", "facts", "audit"):
            for record in package.table(table):
                self.own[record["requirement"]].append((record.key, record.file, record.line))
                if table == "citations" and record["source"] in sources:
                    source = sources[record["source"]]
                    self.own[record["requirement"]].append((source.key, source.file, source.line))

    def about(self, place: int) -> bool:
        """Whether something was."""
        if not self.records and not self.lines:
            return False
        record = self.requirements[place]
        own = [(record.key, record.file, record.line), *self.own.get(record.key, ())]
        return any(key in self.records or (file, line) in self.lines for key, file, line in own)


# A002


def _without_evidence(package: Package) -> Iterator[Finding]:
    """Readings whose outcome nothing shows. `regatta audit record` writes none; somebody did by hand."""
    alike = set(package.column("audit", "outcome")) == {CLEAN}
    hashes = {*package.column("audit", "text_hash"), *package.column("audit", "passage_hash")}
    if alike and "" not in hashes and all(map(_EVIDENCE.fullmatch, set(package.column("audit", "evidence")))):
        return
    names = ("outcome", "text_hash", "passage_hash", "reason_code", "reason", "evidence")
    columns = (package.column("audit", name) for name in names)
    for place, (outcome, text, passage, code, reason, evidence) in enumerate(zip(*columns, strict=True)):
        column, what = "", ""
        if outcome != NOT_ASSESSED and not (text and passage):
            column = "passage_hash" if text else "text_hash"
            what = f"the outcome {outcome} names no {'passage' if text else 'text'} that was read"
        elif outcome not in (CLEAN, NOT_ASSESSED) and not (code and reason):
            column = "reason" if code else "reason_code"
            what = f"the outcome {outcome} does not say {'why' if code else 'what in particular is wrong'}"
        elif evidence and not _EVIDENCE.fullmatch(evidence):
            column, what = "evidence", "the places of the facts are not of the form fact=start-end"
        if what:
            yield package.table("audit")[place].finding("A002", column, what)


# A003


def _taken_out(package: Package) -> Iterator[Finding]:
    """Readings whose number shows that an earlier one of the citation is gone. They are numbered from 1."""
    ids, citations = package.column("audit", "id"), package.column("audit", "citation")
    if ids == [f"{citation}-a1" for citation in citations]:
        return  # one reading a citation, which is the first
    counted = Counter(citations)
    several: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, (key, citation) in enumerate(zip(ids, citations, strict=True)):
        if counted[citation] > 1 or key != f"{citation}-a1":
            number = _NUMBER.search(key)
            several[citation].append((int(number.group(1)) if number else 0, place))
    for citation, numbered in several.items():
        numbers = {number for number, _ in numbered}
        for number, place in sorted(numbered):
            if number == 0 or (number > 1 and number - 1 not in numbers):
                gone = f"there is no reading {citation}-a{number - 1} before it"
                what = gone if number else f"its id is not of the form {citation}-a1"
                yield package.table("audit")[place].finding("A003", "id", what)
