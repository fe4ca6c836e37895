"""What a machine can hold against the text of the law, requirement by requirement. No likeness, no model.

For each citation: is the source binding and in force on the date, is its text held, does the locator lead to a passage,
is the passage the one that was read. For each number: does it stand in that passage, with its unit, its kind of days
and its bound. For each quantity of a duty: does a cited passage state it. Words (a form, an element of a list, who is
bound, what is excepted) are left to readers, and the result names them as such.

Outcomes are those of the published audit (protocol, section 7), and ``not-assessed`` where nothing could be read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.provenance import passages
from regatta_tools.provenance.citation_checks import CITED_BY_FORM, number_problem
from regatta_tools.provenance.citations import country
from regatta_tools.provenance.corpus import Corpus, SourceText
from regatta_tools.provenance.locators import language_of, targets_of
from regatta_tools.provenance.quantities import Quantity, dates, quantities
from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, Record
from regatta_tools.text import canonical_json, shown

CLEAN, NOT_ASSESSED = "verified-clean", "not-assessed"
MISSTATES, DEFECT, NON_BINDING = "misstates-current-rule", "citation-defect", "non-binding-source-only"
#: From the gravest to none: the outcome of a requirement is the gravest of what is found on it.
ORDER = (MISSTATES, DEFECT, NON_BINDING, NOT_ASSESSED, CLEAN)
NUMERIC = frozenset({"duration", "money", "ratio", "count"})
#: Up to here numbers without a unit are taken for ways of speaking: laws list three things and do not say "three".
_SMALL = 10
#: What a comparator cannot be in a text that says it: a bound from the other side, or one that takes the limit itself
#: in where the other leaves it out.
_AGAINST = {
    "at-most": {"at-least", "more-than", "less-than"},
    "less-than": {"at-least", "more-than", "at-most"},
    "at-least": {"at-most", "less-than", "more-than"},
    "more-than": {"at-most", "less-than", "at-least"},
}
#: Outcome and rule of each reason, as the published audit sorts them.
REASONS: dict[str, tuple[str, str]] = {
    "wrong-number": (MISSTATES, "A201"),
    "wrong-unit": (MISSTATES, "A202"),
    "wrong-day-count": (MISSTATES, "A203"),
    "wrong-comparator": (MISSTATES, "A204"),
    "superseded": (MISSTATES, "A211"),
    "repealed": (MISSTATES, "A211"),
    "not-yet-effective": (MISSTATES, "A211"),
    "missing-locator": (DEFECT, "A221"),
    "wrong-locator": (DEFECT, "A221"),
    "wrong-instrument": (DEFECT, "A222"),
    "passage-changed": (DEFECT, "A223"),
    "unknown-instrument": (NON_BINDING, "A231"),
    "guidance-as-law": (NON_BINDING, "A231"),
    "model-law-as-law": (NON_BINDING, "A231"),
    "text-not-held": (NOT_ASSESSED, "A241"),
}


@dataclass(frozen=True)
class Trouble:
    """One thing that a check has against a requirement: its reason code, where, and what to say."""

    reason: str
    record: Record = field(repr=False)
    column: str
    message: str

    @property
    def outcome(self) -> str:
        return REASONS[self.reason][0]

    def finding(self) -> Finding:
        return self.record.finding(REASONS[self.reason][1], self.column, self.message)


@dataclass(frozen=True)
class Read:
    """A citation with what was read for it: the text, the passage, and where each fact stands in it.

    ``spans`` maps fact ids to start and end in the normalised passage, where the place is beyond doubt.
    """

    citation: Record = field(repr=False)
    text: SourceText | None
    passage: passages.Passage | None
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Checked:
    """The machine's result on one requirement. ``words`` are the facts that only a reader can compare."""

    requirement: Record = field(repr=False)
    reads: list[Read]
    troubles: list[Trouble]
    words: list[Record] = field(repr=False)

    @property
    def outcome(self) -> str:
        found = {t.outcome for t in self.troubles}
        return next((o for o in ORDER if o in found), CLEAN)


class Index:
    """The tables of a package by what they belong to, so that a check of all requirements stays linear."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.sources = {r.key: r for r in package.table("sources")}
        self.cells = {r.key: r for r in package.table("cells")}
        self.citations = _by(package.table("citations"), "requirement")
        self.facts = _by(package.table("facts"), "requirement")
        self.readings = _by(package.table("audit"), "citation")
        self._shared: dict[tuple[str, str], str] = {}

    def active_citations(
        self, cells: Iterable[str] = (), requirements: Iterable[str] = ()
    ) -> Iterator[tuple[Record, Record]]:
        """(requirement, citation) for every citation of an active requirement, in the order of the table; only of these
        cells and requirements where any are named."""
        wanted, named = {*cells}, {*requirements}
        for citation in self.package.table("citations"):
            requirement = self.package.by_id[citation["requirement"]]
            if requirement["status"] != "active" or (wanted and citation["cell"] not in wanted):
                continue
            if not named or requirement.key in named:
                yield requirement, citation

    def shared(self, what: str, key: str, content: Callable[[], Any]) -> str:
        """Canonical JSON that the hashes of several citations have in common, written once."""
        if (what, key) not in self._shared:
            self._shared[what, key] = canonical_json(content())
        return self._shared[what, key]


def _by(records: Iterable[Record], column: str) -> Mapping[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        found[record[column]].append(record)
    return found


#: Columns that do not bear on a reading, by table: remarks, addresses, the hash of the passage (which a reading has
#: itself). A mended note does not call for a new reading.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "requirements": ("status", "replaced_by"),
    "citations": ("note", "passage_hash", "normalisation"),
    "facts": (),
    "sources": ("note", "url", "title", "title_vi", "issuer"),
}


def item_hash(index: Index, citation: Record) -> str:
    """SHA-256 of what a reading is about: requirement, citation, source and facts as they stand, less :data:`LEFT_OUT`.

    :func:`regatta_tools.provenance.item_hashes.item_hashes` gives those of all citations, and much faster.
    """
    of, source = citation["requirement"], citation["source"]

    def requirement() -> dict[str, str]:
        return _cells(index.package.by_id.get(of), LEFT_OUT["requirements"])

    def facts() -> list[dict[str, str]]:
        return sorted((_cells(f) for f in index.facts.get(of, [])), key=json.dumps)

    def text() -> dict[str, str]:
        return _cells(index.sources.get(source), LEFT_OUT["sources"])

    parts = {
        "citation": canonical_json(_cells(citation, LEFT_OUT["citations"])),
        "facts": index.shared("facts", of, facts),
        "requirement": index.shared("requirement", of, requirement),
        "source": index.shared("source", source, text),
    }
    # Put together this is the canonical JSON of the whole.
    whole = ",".join(f'"{name}":{part}' for name, part in parts.items())
    return hashlib.sha256(f"{{{whole}}}".encode()).hexdigest()


def _cells(record: Record | None, without: tuple[str, ...] = ()) -> dict[str, str]:
    if record is None:
        return {}
    cells = zip(record.spec.columns, record.values, strict=True)
    return {column: text for column, text in cells if text and column not in without}


def check(index: Index, requirement: Record, corpus: Corpus, day: date) -> Checked:
    """Hold one requirement against the held texts, on a day."""
    troubles: list[Trouble] = []
    reads: list[Read] = []
    facts = index.facts.get(requirement.key, [])
    citations = index.citations.get(requirement.key, [])
    troubles += _binding(index, requirement, citations)
    for citation in citations:
        troubles += _force(index, citation, day)
        read, found = read_citation(index, citation, corpus)
        troubles += found
        if read.passage is not None:
            own = [f for f in facts if f["citation"] == citation.key]
            troubles += _facts(index, read, own)
        reads.append(read)
    troubles += _duty(requirement, reads)
    troubles += _against_duty(requirement, facts)
    words = [f for f in facts if f["kind"] not in NUMERIC and f["kind"] != "date"]
    return Checked(requirement, reads, troubles, words)


# Source and force


def _binding(index: Index, requirement: Record, citations: list[Record]) -> list[Trouble]:
    found = []
    for citation in citations:
        source = index.sources.get(citation["source"])
        if citation["role"] != "basis":
            continue
        if source is None:
            what = f"the source {shown(citation['source'])} is none of this package"
            found.append(Trouble("unknown-instrument", citation, "source", what))
        elif source["kind"] in ("model-law", "standard"):
            what = f"{source.key} is a {source['kind']}, which binds nobody by itself"
            found.append(Trouble("model-law-as-law", citation, "source", what))
        elif source["binding"] != "true" or source["kind"] == "guidance":
            found.append(Trouble("guidance-as-law", citation, "source", f"{source.key} binds nobody"))
    if not any(c["role"] == "basis" for c in citations):
        what = "no citation is the basis of the duty"
        found.append(Trouble("missing-locator", requirement, "id", what))
    return found


def _force(index: Index, citation: Record, day: date) -> list[Trouble]:
    """Whether the basis holds on the day; a text that a later one keeps alive does, until the passage's own end."""
    source = index.sources.get(citation["source"])
    if source is None or citation["role"] != "basis":
        return []
    kept = bool(citation["kept_in_force_by"])
    starts = citation["force_from"] or source["effective"]
    # A passage cannot outlive its text, unless a later text keeps it alive.
    ends = min((e for e in (citation["force_to"], "" if kept else source["ends"]) if e), default="")
    when = day.isoformat()
    if starts and starts > when:
        return [Trouble("not-yet-effective", citation, "source", f"{source.key} holds from {starts}, after {when}")]
    if ends and ends < when:
        return [Trouble("repealed", citation, "source", f"{source.key} held until {ends}, before {when}")]
    if kept:
        return []
    if source["status"] == "repealed":
        return [Trouble("repealed", citation, "source", f"{source.key} is repealed")]
    if source["status"] == "not-yet-effective" and not starts:
        return [Trouble("not-yet-effective", citation, "source", f"{source.key} is not in force yet")]
    later = index.sources.get(source["superseded_by"])
    if source["superseded_by"] and (later is None or not later["effective"] or later["effective"] <= when):
        what = f"{source.key} is superseded by {source['superseded_by']}"
        return [Trouble("superseded", citation, "source", what)]
    return []


# Passage


def read_citation(index: Index, citation: Record, corpus: Corpus) -> tuple[Read, list[Trouble]]:
    """Find the passage of a citation, and what stands against it. Facts are not placed yet; see :func:`place_facts`."""
    source = index.sources.get(citation["source"])
    text = corpus.latest(citation["source"])
    nothing = Read(citation, text, None)
    if source is None:
        return nothing, []  # told by _binding
    problem = number_problem(source["number"], source["jurisdiction"]) if source["kind"] in CITED_BY_FORM else None
    if problem:
        return nothing, [Trouble("wrong-instrument", citation, "source", problem)]
    targets, problem = targets_of(citation["locator"], source["jurisdiction"])
    if not targets:
        return nothing, [Trouble("missing-locator", citation, "locator", problem)]
    if text is None:
        return nothing, [Trouble("text-not-held", citation, "source", corpus.why_none(source.key))]
    if text.language != (language := language_of(source["jurisdiction"])):
        what = f"{text.file} is not in the language of the law ({language}), and nothing can be looked up in it"
        return nothing, [Trouble("text-not-held", citation, "source", what)]
    other = _other_instrument(source["number"], citation["locator"], text)
    if other:
        return nothing, [Trouble("wrong-instrument", citation, "source", other)]
    where = country(source["jurisdiction"])
    if any(passages.is_empty_at(text, target, where) for target in targets):
        # What nobody can read is not assessed: an extract may leave out what the law has.
        return nothing, [Trouble("text-not-held", citation, "locator", f"the section is empty in {text.file}")]
    passage, why = passages.find_passages(text, targets, where)
    if passage is None:
        return nothing, [Trouble("wrong-locator", citation, "locator", f"not found in {text.file}: {why}")]
    found = []
    if citation["passage_hash"] and citation["normalisation"] == passages.NORMALISATION:
        if citation["passage_hash"] != passage.sha256:
            what = f"the passage in {text.file} is not the one whose hash is recorded"
            found.append(Trouble("passage-changed", citation, "passage_hash", what))
    elif citation["passage_hash"]:
        what = f"the hash was taken under {shown(citation['normalisation'])}, not {passages.NORMALISATION}"
        found.append(Trouble("passage-changed", citation, "normalisation", what))
    return Read(citation, text, passage), found


# The title of a federal code, and the number of a Vietnamese instrument: what tells one instrument from another.
_US_TITLE = re.compile(r"([0-9]+)\s+(C\.?F\.?R\.?|U\.?S\.?C\.?|CCR|NYCRR|ILCS)(?![A-Za-z])")
_CCR_TITLE = re.compile(r"Cal\. Code Regs\. tit\. ([0-9]+)")
_VN_NUMBER = re.compile(r"[0-9]{1,4}/[0-9]{4}/[A-ZĐ0-9-]+")


def _other_instrument(number: str, locator: str, text: SourceText) -> str:
    """What to say where the held text is by its own header another instrument than the one cited."""
    held = _CCR_TITLE.sub(r"\1 CCR", text.header.get("number", ""))
    for pattern in (_VN_NUMBER, _US_TITLE):
        cited = _instrument(pattern, number)
        if cited and _instrument(pattern, held) and cited not in {_plain(m) for m in pattern.finditer(held)}:
            return f"{text.file} is {held}, not {number}"
        there = _instrument(pattern, locator)
        if there and cited and there != cited:
            return f"the locator names another instrument than {number}"
    return ""


def _instrument(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.search(text)
    return _plain(match) if match else ()


def _plain(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(g.replace(".", "") for g in match.groups() or (match.group(),))


# Facts


def _facts(index: Index, read: Read, facts: list[Record]) -> list[Trouble]:
    assert read.passage is not None
    normal = read.passage.normal
    language = language_of(index.sources[read.citation["source"]]["jurisdiction"])
    anchored = _anchors(index, read)
    troubles = []
    for fact in facts:
        if fact["kind"] == "date":
            found = [d for d in dates(normal, language) if _same_date(d.value, fact["value"])]
            anchor = anchored.get(fact.key)
            if not found:
                what = f"the passage does not state the date {fact['value']}"
                troubles.append(Trouble("wrong-number", fact, "value", what))
            elif anchor is not None and not any(d.start < anchor[1] and anchor[0] < d.end for d in found):
                troubles.append(Trouble("wrong-number", fact, "value", _read_otherwise(normal, anchor)))
            elif len(found) == 1:
                read.spans[fact.key] = found[0].start, found[0].end
        elif fact["kind"] in NUMERIC:
            troubles += _number(fact, normal, language, anchored.get(fact.key), read)
        else:
            troubles += _numbers_in_words(fact, normal, language, anchored.get(fact.key))
    return troubles


def against_facts(index: Index, read: Read) -> list[Trouble]:
    """What the passage of a citation has against the facts that rest on it; nothing where there is no passage."""
    if read.passage is None:
        return []
    read.spans.clear()
    own = [f for f in index.facts.get(read.citation["requirement"], []) if f["citation"] == read.citation.key]
    return _facts(index, read, own)


def place_facts(index: Index, read: Read) -> dict[str, tuple[int, int]]:
    """Where the facts of a citation stand in its passage, as far as the machine places them beyond doubt."""
    against_facts(index, read)
    return dict(read.spans)


def _same_date(stated: str, value: str) -> bool:
    """Whether a stated date is that of a fact; a fact without a year is met by any year."""
    return stated == value or (value.startswith("--") and stated[-6:] == value[-6:])


def _number(fact: Record, normal: str, language: str, anchor: tuple[int, int] | None, read: Read) -> list[Trouble]:
    try:
        value = Decimal(fact["value"])
    except InvalidOperation:
        return []  # the form of the value is checked by F003
    same = [q for q in quantities(normal, language) if q.value == value]
    if not same:
        return [Trouble("wrong-number", fact, "value", f"the passage does not state {fact['value']}")]
    in_unit = [q for q in same if _unit_fits(q, fact["unit"])]
    if not in_unit:
        said = _units(same)
        return [Trouble("wrong-unit", fact, "unit", f"the passage states {fact['value']} {said}, not {fact['unit']}")]
    counted = [q for q in in_unit if fact["unit"] != "day" or q.day_count == fact["day_count"]]
    if not counted:
        said = ", ".join(sorted({q.day_count for q in in_unit}))
        what = f"the passage counts {fact['value']} days as {said}, not as {fact['day_count']}"
        return [Trouble("wrong-day-count", fact, "day_count", what)]
    if anchor is not None:
        counted = [q for q in counted if q.start < anchor[1] and anchor[0] < q.end]
        if not counted:
            return [Trouble("wrong-number", fact, "value", _read_otherwise(normal, anchor))]
    bounds = {q.bound for q in counted}
    if bounds and bounds <= _AGAINST.get(fact["comparator"], set()):
        what = f"the passage bounds it by {' or '.join(sorted(bounds))}, the fact by {fact['comparator']}"
        return [Trouble("wrong-comparator", fact, "comparator", what)]
    if len(counted) == 1:
        read.spans[fact.key] = counted[0].start, counted[0].end
    return []


def _numbers_in_words(fact: Record, normal: str, language: str, anchor: tuple[int, int] | None) -> Iterator[Trouble]:
    """What a machine can compare of a fact in words: each number in it, with its unit, must stand where it was read.

    And where a reader found the fact in nothing but a number, the fact has to say that number.
    """
    stated = quantities(normal, language)
    if anchor is not None:
        stated = tuple(q for q in stated if q.start < anchor[1] and anchor[0] < q.end)
    said = quantities(passages.normalise(fact["value"]), "en")
    for q in said:
        same = [s for s in stated if s.value == q.value]
        if not same:
            where = "the passage" if anchor is None else "the passage, where this fact was read,"
            yield Trouble("wrong-number", fact, "value", f"{where} does not state {q.value}")
        elif q.unit and not any(s.unit in ("", q.unit) for s in same):
            yield Trouble("wrong-unit", fact, "value", f"the passage states {q.value} {_units(same)}, not {q.unit}")
    alone = [s for s in stated if (s.start, s.end) == anchor]
    if alone and not any(q.value == alone[0].value for q in said):
        yield Trouble("wrong-number", fact, "value", _read_otherwise(normal, (alone[0].start, alone[0].end)))


def _read_otherwise(normal: str, anchor: tuple[int, int]) -> str:
    return f"where this fact was read, the passage says {normal[anchor[0] : anchor[1]]!r}"


def _against_duty(requirement: Record, facts: list[Record]) -> list[Trouble]:
    """Whether a duty bounds a number the other way than its fact: then one of the two misstates the law."""
    found = []
    for fact in facts:
        against = _AGAINST.get(fact["comparator"])
        if fact["kind"] not in NUMERIC or against is None:
            continue
        for column, language in (("duty_en", "en"), ("duty_vi", "vi")):
            said = [q for q in quantities(passages.normalise(requirement[column]), language)
                    if str(q.value) == fact["value"] and (_unit_fits(q, fact["unit"]) or not q.unit)]  # fmt: skip
            bounds = {q.bound for q in said}
            if bounds and bounds <= against:
                how = " or ".join(sorted(bounds))
                what = f"{column} bounds {fact['value']} by {how}, the fact by {fact['comparator']}"
                found.append(Trouble("wrong-comparator", fact, "comparator", what))
                break
    return found


def _unit_fits(quantity: Quantity, unit: str) -> bool:
    """Things counted have no unit in a text, and a multiple is often stated as a bare number."""
    if unit in ("item", "decimal-place"):
        return quantity.unit in ("", "times")
    return quantity.unit == unit or (unit == "times" and not quantity.unit)


def _units(found: list[Quantity]) -> str:
    return " or ".join(sorted({q.unit or "without a unit" for q in found}))


def _anchors(index: Index, read: Read) -> dict[str, tuple[int, int]]:
    """Where readers found the facts, from readings of this very passage; the latest reading counts."""
    found: dict[str, tuple[int, int]] = {}
    assert read.passage is not None
    for reading in sorted(index.readings.get(read.citation.key, []), key=lambda r: r["date"]):
        if reading["passage_hash"] == read.passage.sha256:
            try:
                found |= parse_evidence(reading["evidence"])
            except ValueError as error:
                place = f"{reading.file}:{reading.line}"
                mend = "write fact=start-end, separated by spaces"
                raise InputError(f"evidence: {error}", code="U131", place=place, mend=mend) from error
    return found


@lru_cache(maxsize=4096)
def _parsed_evidence(text: str) -> tuple[tuple[str, tuple[int, int]], ...]:
    found = []
    for part in text.split():
        fact, _, span = part.rpartition("=")
        start, _, end = span.partition("-")
        if not fact or not start.isdecimal() or not end.isdecimal() or int(start) >= int(end):
            raise ValueError(f"{part!r} is not of the form fact=start-end")
        found.append((fact, (int(start), int(end))))
    return tuple(found)


def parse_evidence(text: str) -> dict[str, tuple[int, int]]:
    """``fact=start-end`` parts as a mapping. Raises ``ValueError`` for another form."""
    return dict(_parsed_evidence(text))


def render_evidence(spans: Mapping[str, tuple[int, int]]) -> str:
    """The reverse of :func:`parse_evidence`."""
    return " ".join(f"{fact}={start}-{end}" for fact, (start, end) in sorted(spans.items()))


# Duties


def _duty(requirement: Record, reads: list[Read]) -> list[Trouble]:
    """Every quantity and date of a duty must be stated by a cited passage: value, unit and kind of days.

    Only where every cited passage is there: what is not read may state it. Small numbers of things (two forms) are
    often said in other words, and are left out.
    """
    if not reads or any(r.passage is None for r in reads):
        return []
    stated: set[tuple[Any, ...]] = set()
    values: set[Any] = set()
    days: set[str] = set()
    for read in reads:
        assert read.passage is not None
        for language in ("en", "vi"):
            for q in quantities(read.passage.normal, language):
                stated.add((q.value, q.unit, q.day_count))
                values.add(q.value)
            days |= {d.value for d in dates(read.passage.normal, language)}
    troubles = []
    for column, language in (("duty_en", "en"), ("duty_vi", "vi")):
        for q in quantities(passages.normalise(requirement[column]), language):
            if (q.value, q.unit, q.day_count) in stated or (not q.unit and (q.value <= _SMALL or q.value in values)):
                continue
            if q.unit == "times" and (q.value, "", "") in stated:
                continue
            what = f"no cited passage states {_said(q)}"
            reason = "wrong-number" if q.value not in values else "wrong-unit"
            if any(v == q.value and u == q.unit for v, u, _ in stated):
                reason = "wrong-day-count"
            troubles.append(Trouble(reason, requirement, column, what))
        for day in dates(passages.normalise(requirement[column]), language):
            # A date without a year is stated by one with any, and the other way round the year may stand elsewhere.
            if not any(d[-6:] == day.value[-6:] and (d == day.value or "--" in d + day.value) for d in days):
                what = f"no cited passage states the date {day.value}"
                troubles.append(Trouble("wrong-number", requirement, column, what))
    return troubles


def _said(q: Quantity) -> str:
    days = f" ({q.day_count})" if q.day_count else ""
    return f"{q.value} {q.unit}{days}"
