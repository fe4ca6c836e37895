"""The audit of a checklist of another making: requirements in prose, with their sources in prose.

The predecessor of this project published 125 requirements in such a form: JSON files with ``industry`` and a list of
``requirements``, each with ``id``, ``source`` and ``requirement``. Their sources are citations as people write them,
and nobody has tied them to texts, facts or dates. So a machine sees less of them than of a package, and this module
says which of the outcomes of the published audit (protocol, section 7) it can show, and leaves the rest open:

- ``non-binding-source-only``: every source that the prose names is guidance, a model law or standard, or cannot be
  identified (:mod:`regatta_tools.provenance.prose`);
- ``citation-defect``: the law that is named is out of force by ``sources.csv`` or by the closing article of a held
  text; no source leads to a passage (a whole act, a chapter, a range of articles); the place named is not in a text
  that holds enough to know; or it does not state a number of the requirement;
- ``misstates-current-rule``: the place named states that very thing with another number, unit, kind of days or bound.

What is left is ``not-assessed``, with why. A requirement against which nothing speaks is *not read* (``not-read``): no
machine calls it clean. And absence is shown by whole passages alone: what an extract leaves out may say it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from regatta_tools.documents import Document, SyntaxProblem, read_document
from regatta_tools.errors import InputError
from regatta_tools.provenance import passages, prose
from regatta_tools.provenance.checks import (
    _AGAINST,
    CLEAN,
    DEFECT,
    MISSTATES,
    NON_BINDING,
    NOT_ASSESSED,
    ORDER,
    REASONS,
)
from regatta_tools.provenance.citation_model import Citation, NotUnderstood
from regatta_tools.provenance.citations import country, covers, has_grammar, law_of, parse, render, same_instrument
from regatta_tools.provenance.corpus import Corpus, Section, SourceText
from regatta_tools.provenance.locators import language_of, targets_of
from regatta_tools.provenance.outcomes import NOT_READ
from regatta_tools.provenance.passages import Passage, Target
from regatta_tools.provenance.prose import LAW, UNKNOWN, Mention
from regatta_tools.provenance.quantities import Quantity, dates, quantities
from regatta_tools.rules.findings import Finding, ordered
from regatta_tools.tables.package import Package, Record
from regatta_tools.text import shown

#: A source is named in words that no grammar and no table knows: nothing follows from that.
NOT_UNDERSTOOD = "citation-not-understood"
#: The law that is cited is out of force: that is shown of the citation, and whether the rule lives on is not.
_OF_CITATION = frozenset({"repealed", "superseded", "not-yet-effective"})
#: Outcomes of the published audit of the predecessor's 125 items (protocol, section 7).
PUBLISHED = {MISSTATES: 24, DEFECT: 46, NON_BINDING: 31, NOT_ASSESSED: 0, CLEAN: 24}
_PUBLISHED_CELLS = {"fintech": 25, "insurance": 25, "healthcare": 25, "banking_vn": 25, "insurance_vn": 25}
#: A header line that says that a text holds the whole instrument, so that what is not there does not exist.
EXTENT = ("extent", "complete")
_NEEDED = ("id", "source", "requirement")
_MAX_ITEMS = 10_000


# Checklists


@dataclass(frozen=True)
class Entry:
    """One requirement of a checklist: its own words, its sources in prose, and where it stands."""

    id: str
    cell: str
    source: str
    statement: str
    file: str
    line: int


def read_checklist(folder: Path | str) -> list[Entry]:
    """The requirements of all JSON files of a folder, in order of file and place.

    Raises :class:`InputError` (U135), with file and line, where there is none, a file is not JSON or of another shape,
    or an id stands twice.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise _unusable("no folder with a checklist", str(folder), "name the folder with the JSON files")
    try:
        files = sorted(p for p in folder.iterdir() if p.suffix.lower() == ".json")
    except OSError as error:
        raise _unusable(f"it cannot be read: {error.strerror or error}", str(folder), "make it readable") from error
    if not files:
        raise _unusable("the folder has no JSON file", str(folder), "name the folder with the JSON files")
    entries: list[Entry] = []
    seen: dict[str, Entry] = {}
    for path in files:
        for entry in _read_file(path):
            if (other := seen.get(entry.id)) is not None:
                what = f"the id {shown(entry.id)} stands in {other.file}:{other.line} already"
                raise _unusable(what, f"{path}:{entry.line}", "give each requirement an id of its own")
            seen[entry.id] = entry
            entries.append(entry)
    return entries


def _read_file(path: Path) -> list[Entry]:
    try:
        document = read_document(path)
    except SyntaxProblem as problem:
        place = f"{path}:{problem.line}:{problem.column}" if problem.line else str(path)
        raise _unusable(problem.message, place, "mend the JSON") from problem
    except OSError as error:
        raise _unusable(f"it cannot be read: {error.strerror or error}", str(path), "make it readable") from error
    content = document.value
    if not isinstance(content, dict):
        raise _shape(path, document, (), "is no object with industry and requirements")
    cell, listed = content.get("industry"), content.get("requirements")
    if not isinstance(cell, str) or not cell.strip():
        raise _shape(path, document, ("industry",), "has no industry (a text)")
    if not isinstance(listed, list) or not listed:
        raise _shape(path, document, ("requirements",), "has no requirements (a list)")
    if len(listed) > _MAX_ITEMS:
        raise _shape(path, document, ("requirements",), f"has more than {_MAX_ITEMS:,} requirements")
    return [_entry(path, document, cell, n, item) for n, item in enumerate(listed)]


def _entry(path: Path, document: Document, cell: str, number: int, item: Any) -> Entry:
    at: tuple[str | int, ...] = ("requirements", number)
    if not isinstance(item, dict):
        raise _shape(path, document, at, f"has a requirement that is no object: {shown(item)}")
    for key in _NEEDED:
        if not isinstance(item.get(key), str) or not item[key].strip():
            what = f"has a requirement ({shown(item.get('id', number + 1))}) without {key} (a text)"
            raise _shape(path, document, (*at, key), what)
        if len(item[key]) > prose.MAX_PROSE:
            raise _shape(path, document, (*at, key), f"has {key} of more than {prose.MAX_PROSE:,} characters")
    line = document.place(at)[0]
    return Entry(item["id"], cell, item["source"].strip(), item["requirement"].strip(), path.name, line)


def _shape(path: Path, document: Document, at: tuple[str | int, ...], what: str) -> InputError:
    line, column = document.place(at)
    return _unusable(
        f"the checklist {what}", f"{path}:{line}:{column}",
        "give industry and requirements, each of which has id, source and requirement (docs/audit-checklist.md)",
    )  # fmt: skip


def _unusable(message: str, place: str, mend: str) -> InputError:
    return InputError(message, code="U135", place=place, mend=mend)


# What is held


@dataclass(frozen=True)
class Repeal:
    """A clause of a held text that ends another instrument: which, from when (ISO text), and where it is written."""

    number: str
    starts: str
    text: SourceText = field(repr=False)
    heading: str
    clause: str = field(repr=False)


_KIND = "(?:Bộ luật|Luật|Pháp lệnh|Nghị định|Thông tư|Quyết định)"
_VN_NUMBER = "[0-9]+/[0-9]{4}/[A-ZĐ0-9-]+"
# A whole instrument that ends: its number comes first in the clause, so nothing in it (khoản 2 Điều 1 ...) is meant.
_ENDS = re.compile(rf"^(?:[0-9]+\. |[a-zđ]\) )?{_KIND}(?: số)? ({_VN_NUMBER})[^;]* hết hiệu lực(?! một phần)")
_REPLACES = re.compile(rf"{_KIND} này thay thế (?:cho )?{_KIND}(?: số)? ({_VN_NUMBER})")
_RESERVE = re.compile(r"\b(?:trừ|tiếp tục)\b")
_STARTS = re.compile(rf"{_KIND} này có hiệu lực(?: thi hành)?(?: kể)? từ (?=ngày [0-9])")
# The heading of a section that amends an article of another text: Điều 14 (sửa đổi Điều 32 Nghị định 46/2023/NĐ-CP).
_AMENDS = re.compile(rf"\((?:sửa đổi|bổ sung|thay thế|bãi bỏ)[^()]*?Điều ([0-9]+[a-zđ]?)[^()]*?({_VN_NUMBER})\)")
# Where something is left out: by whoever made an extract, or by a converter that lost the label of a paragraph.
_GAP = re.compile(r"\[(?:…|\.\.\.)\]|^[ \t]*(?:\([0-9A-Za-z]{1,5}\)[ \t]*)*\(\)", re.MULTILINE)
_PART_ONLY = re.compile(
    r"\bpart\)|\(part\b|, part\b|trích|excerpt|introductory|as printed|as quoted|rendered", re.IGNORECASE
)


class Library:
    """The held texts by the law that they are, and what texts and ``sources.csv`` say of its force."""

    def __init__(self, package: Package, corpus: Corpus) -> None:
        self.corpus = corpus
        self.rows: dict[str, Record] = {r.key: r for r in package.table("sources")}
        self.kept = {c["source"] for c in package.table("citations") if c["kept_in_force_by"]}
        latest = [corpus.latest(source) for source in sorted(corpus.texts)]
        self.texts = [(c, text) for text in latest if text is not None for c in self._law_of(text)]
        self.law = [(c, row) for row in self.rows.values() if (c := _read(row["number"], row["jurisdiction"]))]

    def _law_of(self, text: SourceText) -> list[Citation]:
        """The law that a text is, by its header or its source. Behind the first Vietnamese number come amendments."""
        number = text.header.get("number", "")
        row = self.rows.get(text.source)
        cited = [m.citation for m in prose.mentions(number[: prose.MAX_PROSE]) if m.citation is not None]
        if not cited and row is not None and (own := _read(row["number"], row["jurisdiction"])):
            cited = [own]
        return cited[:1] if cited and cited[0].instrument else cited

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers of Vietnamese instruments that texts or ``sources.csv`` know."""
        return frozenset(str(c.instrument) for c, _ in [*self.texts, *self.law] if c.instrument)

    def candidates(self, citation: Citation) -> list[tuple[Citation, SourceText]]:
        """Texts that may hold a passage of a citation; of a code, all texts of its title."""
        return [(c, text) for c, text in self.texts if _same(c, citation)]

    def of(self, citation: Citation) -> list[SourceText]:
        """Texts of the very instrument: the decree, the part of a regulation, the section of a code."""
        divided = citation.instrument is not None or citation.system == "CFR"
        found = [t for c, t in self.candidates(citation) if divided or covers(c, citation)]
        return list({text.file: text for text in found}.values())

    @cached_property
    def repeals(self) -> dict[str, list[Repeal]]:
        """By number, the clauses of held texts by which Vietnamese instruments end as a whole."""
        found: dict[str, list[Repeal]] = defaultdict(list)
        for law, text in self.texts:
            if law.instrument is None:
                continue
            starts = self._starts(text)
            for section in text.sections:
                for line in map(passages.normalise, section.body.splitlines()):
                    match = _ENDS.match(line) or _REPLACES.search(line)
                    if match is not None and not _RESERVE.search(line):
                        own = dates(line[line.find("hết hiệu lực") :], "vi") if "hết hiệu lực" in line else ()
                        day = own[0].value if own else starts
                        found[match.group(1)].append(Repeal(match.group(1), day, text, section.heading, line))
        return found

    def _starts(self, text: SourceText) -> str:
        """The day from which a text has force, by its own words, else by ``sources.csv``; empty where neither says."""
        for section in text.sections:
            line = passages.normalise(section.body)
            if (match := _STARTS.search(line)) and (day := dates(line[match.end() : match.end() + 60], "vi")):
                return day[0].value
        return self.rows[text.source]["effective"] if text.source in self.rows else ""

    @cached_property
    def amended(self) -> dict[tuple[str, str], str]:
        """By number and article, the file of a held text that amends the article."""
        return {
            (number, article): text.file
            for _, text in self.texts
            for section in text.sections
            for article, number in _AMENDS.findall(section.heading)
        }


def _read(number: str, jurisdiction: str) -> Citation | None:
    try:
        return parse(number, jurisdiction) if has_grammar(jurisdiction) else None
    except NotUnderstood:
        return None


def _same(held: Citation, cited: Citation) -> bool:
    return same_instrument(held, cited) and (held.instrument is None) == (cited.instrument is None)


# Passages


@dataclass
class Look:
    """A law that prose names, and what was found of it.

    ``whole`` says that all of the passage is held and is the current wording as far as the texts tell, so that what is
    not in it is not in the law. ``absent`` says that the place named does not exist, ``why`` what else stands in the
    way.
    """

    mention: Mention
    texts: list[SourceText] = field(default_factory=list)
    text: SourceText | None = None
    passage: Passage | None = None
    whole: bool = False
    absent: bool = False
    why: str = ""
    differs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def citation(self) -> Citation:
        assert self.mention.citation is not None  # a look is taken at law alone
        return self.mention.citation

    @property
    def language(self) -> str:
        return language_of(law_of(self.citation))


def _look(library: Library, mention: Mention) -> Look:
    """Look a law up: the passage that is held wholly, else the latest text that has it."""
    look = Look(mention)
    citation = look.citation
    look.texts = library.of(citation)
    targets, look.why = targets_of(render(citation), law_of(citation))
    if not targets:
        return look
    found = []
    for law, text in library.candidates(citation):
        passage, why = passages.find_passages(text, targets, country(law_of(citation)))
        if passage is not None and passage.normal:
            found.append((_whole(library, citation, text, targets, passage), text.date, text.file, text, passage))
        elif _absent(law, citation, text, targets):
            look.text, look.absent, look.why = text, True, why
    if found:
        look.whole, _, _, look.text, look.passage = max(found, key=lambda f: f[:3])
        look.absent = False
    elif not look.absent:
        held = f"{', '.join(t.file for t in look.texts)} does not hold it" if look.texts else "no text of it is held"
        look.why = held
    return look


def _whole(library: Library, citation: Citation, text: SourceText, targets: Sequence[Target], passage: Passage) -> bool:
    """Whether a passage is all that the place named has, in the wording in force as far as is known."""
    if _GAP.search(passage.text) or any(_PART_ONLY.search(h) for h in passage.headings):
        return False
    row = library.rows.get(text.source)
    if row is not None and text.date and row["amended"][: len(text.date)] > text.date:
        return False  # the copy is older than the last amendment
    number = str(citation.instrument or "")
    if any((number, t.section.removeprefix("Điều ")) in library.amended for t in targets):
        return False
    return all(_heading_holds(heading, targets, country(law_of(citation))) for heading in passage.headings)


def _heading_holds(heading: str, targets: Sequence[Target], land: str) -> bool:
    """Whether a section with this heading holds a target to its end, and not only what is below it."""
    for target in targets:
        heads = passages.heading_paths(heading, target.section, land)
        if heads is None:
            continue
        if not target.path and heads:
            return False
        if any(len(h) > len(target.path) and h[: len(target.path)] == target.path for h in heads):
            return False
    return True


def _absent(law: Citation, citation: Citation, text: SourceText, targets: Sequence[Target]) -> bool:
    """Whether a text without a passage shows that there is none.

    Either it says of itself that it is complete and is of what is cited, or it holds a whole section without the
    paragraph.
    """
    key, value = EXTENT
    if text.header.get(key) == value and covers(law, citation):
        return True
    land = country(law_of(citation))
    return any(
        passages.heading_paths(section.heading, target.section, land) == [] and _lacks(section, target, land)
        for target in targets
        for section in text.sections
    )


def _lacks(section: Section, target: Target, land: str) -> bool:
    """Whether a section that is held whole has labels, and lacks one of the target."""
    if not target.path or _GAP.search(section.body) or _PART_ONLY.search(section.heading):
        return False
    node = (passages.us_tree if land == "US" else passages.vn_tree)(section.body)
    for label in target.path:
        below = node.named(label)
        if not below:
            return bool(node.children)
        if len(below) > 1:
            return False
        node = below[0]
    return False


# Numbers

_TIME = frozenset({"minute", "hour", "day", "week", "month", "year"})
_UPPER, _LOWER = frozenset({"at-most", "less-than"}), frozenset({"at-least", "more-than"})
# As people write them in English: VND 400,000,000; VND 150M; $500M; 91-180d.
_MONEY = re.compile(r"\b(VND|USD) ?([0-9][0-9.,]*[0-9]|[0-9])(?: ?(M|million|billion|bn|B)\b)?")
_DOLLARS = re.compile(r"(\$[0-9][0-9.,]*) ?(M|B|bn)\b")
_DAYS = re.compile(r"(?<=[0-9])d\b")
_SCALE = {"M": "million", "B": "billion", "bn": "billion"}


def statement_quantities(statement: str) -> list[Quantity]:
    """The quantities with a unit that a requirement states, in English or with Vietnamese words."""
    text = passages.normalise(statement)
    text = _MONEY.sub(lambda m: " ".join(p for p in (m[2], _SCALE.get(m[3], m[3]), m[1]) if p), text)
    text = _DAYS.sub(" days", _DOLLARS.sub(lambda m: f"{m[1]} {_SCALE[m[2]]}", text))
    found = [q for q in quantities(text, "en") if q.unit not in ("", "times")]
    taken = [(q.start, q.end) for q in found]
    found += [
        q
        for q in quantities(text, "vi")
        if q.unit in _TIME | {"VND"} and not any(q.start < end and start < q.end for start, end in taken)
    ]
    return sorted(found, key=lambda q: q.start)


def _days_agree(one: str, other: str) -> bool:
    """Days without a word are calendar days; working and business days are one kind in two tongues."""
    plain = ("", "unspecified", "calendar")
    return (one in plain) == (other in plain)


def _states(said: Quantity, there: Quantity) -> bool:
    return (said.value, said.unit) == (there.value, there.unit) and _days_agree(said.day_count, there.day_count)


def _shown(q: Quantity) -> str:
    days = f" ({q.day_count})" if q.day_count not in ("", "unspecified") else ""
    return f"{q.value:,f} {q.unit}{days}"


def _compare(library: Library, statement: str, looks: Sequence[Look]) -> list[str]:
    """Hold the quantities of a requirement against the passages of its law. Differences go to the looks.

    Returns what could not be decided: quantities that no held passage states, where not all passages are held whole.
    """
    read = [(look, q) for look in looks if look.passage for q in quantities(look.passage.normal, look.language)]
    conclusive = all(look.whole for look in looks)
    undecided = []
    for said in statement_quantities(statement):
        exact = [(look, q) for look, q in read if _states(said, q)]
        if exact:
            bounds = {q.bound for _, q in exact}
            if conclusive and bounds <= _AGAINST.get(said.bound, set()):
                look, there = exact[0]
                by = " or ".join(sorted(bounds))
                what = f"the requirement bounds {_shown(said)} by {said.bound}, the passage by {by}"
                _differ(look, "wrong-comparator", what, there)
        elif not conclusive:
            undecided.append(_shown(said))
        else:
            _differ(*_difference(library, said, looks, read))
    return undecided


def _differ(look: Look, reason: str, what: str, there: Quantity | None = None) -> None:
    found: dict[str, Any] = {"reason": reason, "what": what}
    if there is not None:
        found["passage_at"] = [there.start, there.end]
    if found not in look.differs:
        look.differs.append(found)


def _difference(
    library: Library, said: Quantity, looks: Sequence[Look], read: Sequence[tuple[Look, Quantity]]
) -> tuple[Look, str, str, Quantity | None]:
    """How whole passages differ from a quantity that none of them states.

    It misstates the law only where a passage puts *one* other quantity in its place: the same number of other days or
    of another unit of time, or the only number of that unit that is bounded from the same side. Else all that is shown
    is that the place named does not say it.
    """
    head = f"the requirement says {_shown(said)}, the passage "
    for look, q in read:
        if (q.value, q.unit) == (said.value, said.unit):
            return look, "wrong-day-count", f"{head}{_shown(q)}", q
    if said.unit in _TIME and not any(q.unit == said.unit for _, q in read):
        for look, q in read:
            if q.value == said.value and q.unit in _TIME:
                return look, "wrong-unit", f"{head}{_shown(q)}", q
    rivals = [(look, q) for look, q in read if q.unit == said.unit and _one_side(q.bound, said.bound)]
    if len({(q.value, q.day_count) for _, q in rivals}) == 1:
        look, q = rivals[0]
        return look, "wrong-number", f"{head}{_shown(q)}, and no other number of that unit with such a bound", q
    places = _stands_in(said, {t.file: t for look in looks for t in look.texts}.values(), looks[0].language)
    where = f"; it stands in {', '.join(places)}" if places else ""
    return looks[0], "wrong-locator", f"{head}does not state it{where}", None


def _one_side(one: str, other: str) -> bool:
    return any(one in side and other in side for side in (_UPPER, _LOWER))


def _stands_in(said: Quantity, texts: Iterable[SourceText], language: str, most: int = 5) -> list[str]:
    """The places of some texts in which a quantity stands, by heading and labels of the innermost subdivision."""
    tree = passages.vn_tree if language == "vi" else passages.us_tree

    def states(words: str) -> bool:
        return any(_states(said, q) for q in quantities(passages.normalise(words), language))

    found = []
    for text in texts:
        for section in text.sections:
            if not states(section.body):
                continue
            node, path = tree(section.body), []
            while below := next((c for c in node.children if states(section.body[c.start : c.end])), None):
                node = below
                path.append(f"({below.label})")
            found.append(f"{text.file}: {section.heading}{' at ' + ''.join(path) if path else ''}")
    return found[:most]


# Items


@dataclass
class ChecklistItem:
    """The audit of one requirement of a checklist, in the form of an item of the audit of a package.

    Raises ``ValueError`` where an adverse outcome, or a reason of one, has no evidence that says what differs.
    """

    entry: Entry
    outcome: str
    reasons: list[str]
    evidence: list[dict[str, Any]]
    open: list[str]

    def __post_init__(self) -> None:
        if self.outcome in (NOT_ASSESSED, CLEAN):
            return
        shown_by = {d["reason"] for e in self.evidence for d in e.get("differs", ())}
        unproven = [r for r in self.reasons if r in REASONS and REASONS[r][0] != NOT_ASSESSED and r not in shown_by]
        if unproven or not shown_by:
            raise ValueError(f"{self.entry.id}: the outcome {self.outcome} has no evidence of {unproven or 'anything'}")

    def as_dict(self) -> dict[str, Any]:
        return {
            "requirement": self.entry.id,
            "cell": self.entry.cell,
            "outcome": self.outcome,
            "reasons": self.reasons,
            "readings": [],
            "evidence": self.evidence,
            "open": self.open,
            "place": f"{self.entry.file}:{self.entry.line}",
        }


@dataclass
class ChecklistReport:
    """The audit of a checklist on a day (ISO text) against a folder of texts."""

    checklist: str
    texts: str
    as_of: str
    items: list[ChecklistItem]
    findings: list[Finding]

    @property
    def summary(self) -> dict[str, int]:
        """How many requirements have each outcome; all outcomes are there, also with 0."""
        counts = Counter(item.outcome for item in self.items)
        return {outcome: counts[outcome] for outcome in ORDER}

    @property
    def not_assessed(self) -> dict[str, int]:
        """The first reason of the items that are not assessed. Against those ``not-read`` the machine finds nothing."""
        counts = Counter(i.reasons[0] for i in self.items if i.outcome == NOT_ASSESSED)
        return {reason: counts[reason] for reason in (NOT_READ, "text-not-held", NOT_UNDERSTOOD)}

    @property
    def published(self) -> dict[str, int] | None:
        """What was published of this checklist, where it is the predecessor's by its cells and numbers of items."""
        cells = Counter(item.entry.cell for item in self.items)
        return PUBLISHED if cells == _PUBLISHED_CELLS else None

    @property
    def ok(self) -> bool:
        """Whether no requirement has an adverse outcome and no text is unusable."""
        adverse = any(item.outcome not in (CLEAN, NOT_ASSESSED) for item in self.items)
        return not adverse and not any(f.severity == "error" for f in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "as_of": self.as_of,
            "checklist": self.checklist,
            "texts": self.texts,
            "summary": self.summary,
            "not_assessed": self.not_assessed,
            "published": self.published,
            "items": [item.as_dict() for item in self.items],
            "findings": [f.as_dict() for f in self.findings],
        }


def audit_checklist(
    package: Package, corpus: Corpus, entries: Iterable[Entry], *, as_of: date, checklist: str = ""
) -> ChecklistReport:
    """Give each requirement of a checklist its outcome, on a day."""
    library = Library(package, corpus)
    items = [_item(library, entry, as_of.isoformat()) for entry in entries]
    return ChecklistReport(checklist, corpus.folder.as_posix(), as_of.isoformat(), items, ordered(corpus.findings))


def run_checklist(folder: Any, *, texts: Any, package: Any = None, as_of: Any = None) -> ChecklistReport:
    """``regatta audit --checklist``: see :func:`audit_checklist`.

    The package is needed for what ``sources.csv`` says of the force of sources. Without ``as_of``, the day is the
    latest of its cells.
    """
    from regatta_tools.provenance.run import open_corpus, open_package
    from regatta_tools.validation.run import parse_as_of

    when = parse_as_of(as_of)
    entries = read_checklist(folder)
    corpus = open_corpus(texts)
    own = open_package(package)
    if when is None:
        days = [cell["as_of"] for cell in own.table("cells") if cell["as_of"]]
        when = date.fromisoformat(max(days)) if days else date.today()
    return audit_checklist(own, corpus, entries, as_of=when, checklist=Path(folder).as_posix())


def _item(library: Library, entry: Entry, day: str) -> ChecklistItem:
    mentions = prose.mentions(entry.source, library.numbers)
    looks = {m: _look(library, m) for m in mentions if m.kind == LAW}
    in_force = []
    for look in looks.values():
        out = _out_of_force(library, look.citation, day)
        if out is not None:
            look.differs.append(out)
        else:
            in_force.append(look)
    placed = [look for look in in_force if look.mention.names_passage]
    understood = all(m.kind != UNKNOWN for m in mentions)
    if in_force and not placed and understood:
        for look in in_force:
            _differ(look, "missing-locator", f"{render(look.citation)}: {look.why}")
    for look in placed:
        if look.absent:
            _differ(look, "wrong-locator", f"{render(look.citation)} is not there: {look.why}")
    readable = [look for look in placed if not look.absent]
    undecided = _compare(library, entry.statement, readable) if readable else []
    evidence = [_evidence(entry, m, looks.get(m)) for m in mentions]
    if not looks and understood:
        for shown_by, mention in zip(evidence, mentions):
            shown_by["differs"] = [{"reason": mention.reason, "what": f"{shown(mention.written)}: {mention.says}"}]
    outcome, reasons = _outcome(evidence, readable, understood, undecided)
    return ChecklistItem(entry, outcome, reasons, evidence, _open(readable, undecided))


def _outcome(
    evidence: list[dict[str, Any]], placed: list[Look], understood: bool, undecided: list[str]
) -> tuple[str, list[str]]:
    """The gravest of what was found, with all reasons; else why nothing was assessed."""
    reasons = {d["reason"] for e in evidence for d in e.get("differs", ())}
    unread = []
    if any(look.passage is None for look in placed) or undecided:
        unread.append("text-not-held")
    if not understood:
        unread.append(NOT_UNDERSTOOD)
    if not reasons:
        return NOT_ASSESSED, unread or [NOT_READ]
    gravest = min(ORDER.index(_outcome_of(r)) for r in reasons)
    return ORDER[gravest], [*sorted(reasons, key=lambda r: (ORDER.index(_outcome_of(r)), r)), *unread]


def _outcome_of(reason: str) -> str:
    return DEFECT if reason in _OF_CITATION else REASONS[reason][0]


def _out_of_force(library: Library, citation: Citation, day: str) -> dict[str, Any] | None:
    """Why the law cited has no force on a day, and where that is written; ``None`` where nothing says so."""
    for law, row in library.law:
        if not _same(law, citation) or not (covers(law, citation) or not citation.places) or row.key in library.kept:
            continue
        if (found := _by_row(library, row, day)) is not None:
            line = row.place("status")[0]
            return {"reason": found[0], "what": found[1], "record": row.key, "place": f"{row.file}:{line}"}
    for repeal in library.repeals.get(str(citation.instrument or ""), []):
        if repeal.starts and repeal.starts <= day:
            what = f"{repeal.number} is out of force from {repeal.starts}, by {repeal.heading} of {repeal.text.file}"
            return {
                "reason": "repealed", "what": what, "text": repeal.text.file, "text_date": repeal.text.date or None,
                "text_hash": repeal.text.sha256, "section": repeal.heading,
                "passage_hash": passages.passage_hash(repeal.clause),
            }  # fmt: skip
    return None


def _by_row(library: Library, row: Record, day: str) -> tuple[str, str] | None:
    if row["status"] == "repealed" or (row["ends"] and row["ends"] < day):
        return "repealed", f"{row.key} is out of force" + (f" since {row['ends']}" if row["ends"] else "")
    if row["effective"] > day:
        return "not-yet-effective", f"{row.key} holds from {row['effective']}"
    later = library.rows.get(row["superseded_by"])
    if row["superseded_by"] and (later is None or later["effective"] <= day):
        return "superseded", f"{row.key} is superseded by {row['superseded_by']}"
    return None


def _evidence(entry: Entry, mention: Mention, look: Look | None) -> dict[str, Any]:
    """What was read for one source of a requirement; the law in hashes and places, no word of it."""
    out: dict[str, Any] = {"citation": mention.written, "at": [mention.start, mention.end], "names": mention.kind}
    if mention.says:
        out["says"] = mention.says
    if look is None:
        return out
    out["locator"] = render(look.citation)
    text = look.text or (look.texts[0] if look.texts else None)
    if text is not None:
        out |= {"source": text.source, "text": text.file, "text_date": text.date or None, "text_hash": text.sha256}
    if look.passage is not None:
        out |= {"sections": list(look.passage.headings), "passage_hash": look.passage.sha256, "whole": look.whole}
    else:
        out["why"] = look.why
    there = quantities(look.passage.normal, look.language) if look.passage else ()
    elsewhere = [q for q in statement_quantities(entry.statement) if not any(_states(q, t) for t in there)]
    places = {_shown(q): _stands_in(q, look.texts, look.language) for q in elsewhere}
    if stands := {said: where for said, where in places.items() if where}:
        out["stands_in"] = stands  # where a reader may look; it decides nothing
    if look.differs:
        out["differs"] = look.differs
    return out


def _open(looks: list[Look], undecided: list[str]) -> list[str]:
    """What is left for a reader."""
    todo = ["no person has read it"]
    unread = [render(look.citation) for look in looks if look.passage is None]
    if unread:
        todo.append(f"not held: {', '.join(unread)}")
    extracts = [render(look.citation) for look in looks if look.passage is not None and not look.whole]
    if extracts:
        todo.append(f"held in part, or in an older wording: {', '.join(extracts)}")
    if undecided:
        todo.append(f"not found in what is held: {', '.join(dict.fromkeys(undecided))}")
    undated = sorted({look.text.file for look in looks if look.text is not None and not look.text.date})
    if undated:
        todo.append(f"the date of the text is not known: {', '.join(undated)}")
    return todo
