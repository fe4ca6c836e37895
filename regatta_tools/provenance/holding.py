"""Holding texts of the law: which there are, whether they can be used, adding one, and what a new version touches."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.files import replace_file
from regatta_tools.provenance import checks
from regatta_tools.provenance.checks import Index, Read, Trouble
from regatta_tools.provenance.corpus import ENDING, Corpus, SourceText, is_day_or_month, language_of_text, parse_text
from regatta_tools.provenance.intake import take
from regatta_tools.provenance.locators import language_of
from regatta_tools.rules.findings import Finding, ordered
from regatta_tools.rules.registry import rule
from regatta_tools.tables.package import Package, Record
from regatta_tools.text import readable, shown

LANGUAGES = {"en": "English", "vi": "Vietnamese"}


# What is held


@dataclass(frozen=True)
class Holding:
    """The texts of one source, the latest last. ``citations`` counts the citations of active requirements.

    ``known`` is false where the package has no such source.
    """

    source: str
    texts: tuple[SourceText, ...] = field(repr=False)
    citations: int
    known: bool

    def as_dict(self) -> dict[str, Any]:
        texts = [
            {"file": t.file, "date": t.date or None, "sections": len(t.sections), "sha256": t.sha256, "title": t.title}
            for t in self.texts
        ]
        return {"source": self.source, "known": self.known, "citations": self.citations, "texts": texts}


def holdings(package: Package, corpus: Corpus) -> list[Holding]:
    """All sources of the package, and those that only the folder knows, each with its texts; by id."""
    known = {r.key for r in package.table("sources")}
    active = {r.key for r in package.table("requirements") if r["status"] == "active"}
    cited = Counter(c["source"] for c in package.table("citations") if c["requirement"] in active)
    return [
        Holding(source, tuple(corpus.texts.get(source, ())), cited[source], source in known)
        for source in sorted(known | corpus.texts.keys())
    ]


def verify(package: Package, corpus: Corpus) -> list[Finding]:
    """What is wrong with held texts: A101 to A105 on each file, A106 and A107 where it does not fit the package.

    Files are named from the folder of the corpus.
    """
    sources = {r.key: r for r in package.table("sources")}
    found = list(corpus.findings)
    for source, texts in corpus.texts.items():
        for text in texts:
            if source not in sources:
                found.append(_finding("A106", text, f"the package has no source {shown(source)}"))
            elif text.language != (wanted := language_of(sources[source]["jurisdiction"])):
                found.append(
                    _finding("A107", text, f"the text is in {LANGUAGES[text.language]}, the law in {LANGUAGES[wanted]}")
                )
    return ordered(found)


def _finding(code: str, text: SourceText, message: str) -> Finding:
    return rule(code).finding(message, file=text.file, line=1, column=1)


# Adding a text


@dataclass(frozen=True)
class Added:
    """A text that was added: the file it became, its sections, and what whoever added it should know."""

    path: Path
    text: SourceText = field(repr=False)
    notes: tuple[str, ...]


def add(
    package: Package,
    corpus: Corpus,
    path: Path,
    *,
    source: str,
    as_of: str,
    retrieved_from: str = "",
    today: date | None = None,
) -> Added:
    """Cut a file into sections (:func:`regatta_tools.provenance.intake.take`) and put it into the folder of the corpus.

    It becomes ``SOURCE.txt``, or ``SOURCE@DATE.txt`` where a text of the source is held already, whole or not at all.
    ``as_of`` is the day or month that the text states. Raises :class:`InputError` for a source that the package does
    not have, a second text of one date, a text in another language than the law, and whatever ``take`` refuses.
    """
    record = next((r for r in package.table("sources") if r.key == source), None)
    if record is None:
        mend = "add it to sources.csv first, or name one that is there (`regatta sources list`)"
        raise InputError(f"the package has no source {shown(source)}", code="U103", mend=mend)
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?", as_of) or not is_day_or_month(as_of):
        raise InputError(f"{shown(as_of)} is not a date", code="U104", mend="write it as 2026-11-30, or 2026-11")
    target = _target(corpus, source, as_of)
    taken = take(path)
    language = language_of_text("".join(body for _, body in taken.sections))
    if language != (wanted := language_of(record["jurisdiction"])):
        what = f"the text is in {LANGUAGES[language]}, and the law of {source} in {LANGUAGES[wanted]}"
        raise InputError(what, code="A107", place=str(path), mend=rule("A107").mend)
    header = {
        "source-id": source,
        "title": record["title_vi"] or record["title"],
        "number": record["number"],
        "as-of": as_of,
        "retrieved-from": retrieved_from or f"file {readable(path.name)}",
        "retrieved": (today or date.today()).isoformat(),
    }
    lines = [f"{key}: {' '.join(value.split())}" for key, value in header.items()]
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in taken.sections)
    content = "\n".join(lines) + f"\n\n{body}\n"
    text, notes = _as_read(content, target.name, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, content.encode("utf-8"))
    return Added(target, text, (*taken.notes, *notes))


def _target(corpus: Corpus, source: str, as_of: str) -> Path:
    """Where the new text goes. Raises :class:`InputError` where a text of the date, or the file, is there already."""
    held = corpus.texts.get(source, [])
    same = next((t for t in held if t.date == as_of), None)
    name = f"{source}@{as_of}{ENDING}" if held or source in corpus.unusable else f"{source}{ENDING}"
    target = corpus.folder / name
    if same is not None or target.exists():
        there = same.file if same else name
        what = f"{there} is a text of {source} of {as_of} already" if same else f"{there} is there already"
        raise InputError(
            what, code="A105", place=str(corpus.folder / there), mend="delete it first, or correct --as-of"
        )
    return target


def _as_read(content: str, name: str, path: Path) -> tuple[SourceText, tuple[str, ...]]:
    """The text as the corpus will read it, so that nothing is written that cannot be used."""
    from hashlib import sha256

    findings: list[Finding] = []
    text = parse_text(content, name, sha256(content.encode("utf-8")).hexdigest(), findings)
    errors = [f for f in findings if f.severity == "error"]
    if text is None or errors:
        raise InputError(errors[0].message, code=errors[0].code, place=str(path), mend=errors[0].mend)
    return text, tuple(f.message for f in findings)


# Two versions


@dataclass(frozen=True)
class Touched:
    """A citation whose passage differs between two texts of its source.

    ``state`` is ``changed``, ``gone`` (the newer text does not have it) or ``new`` (the older one had not).
    ``facts`` are what the newer passage says against facts of the citation and the older one did not.
    """

    citation: Record = field(repr=False)
    state: str
    old: Read = field(repr=False)
    new: Read = field(repr=False)
    facts: tuple[Trouble, ...]
    why: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "citation": self.citation.key,
            "requirement": self.citation["requirement"],
            "cell": self.citation["cell"],
            "locator": self.citation["locator"],
            "state": self.state,
            "old_hash": self.old.passage.sha256 if self.old.passage else None,
            "new_hash": self.new.passage.sha256 if self.new.passage else None,
            "why": self.why,
            "facts": [{"fact": t.record.key, "reason": t.reason, "message": t.message} for t in self.facts],
        }


@dataclass(frozen=True)
class Difference:
    """What a newer text of a source touches. ``same`` are the citations whose passage is the same in both.

    ``absent`` are those whose passage stands in neither of the two texts.
    """

    source: str
    old: SourceText = field(repr=False)
    new: SourceText = field(repr=False)
    touched: tuple[Touched, ...]
    same: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def requirements(self) -> list[str]:
        """The requirements with a passage that is touched."""
        return sorted({t.citation["requirement"] for t in self.touched})

    def as_dict(self) -> dict[str, Any]:
        sides = {
            side: {"file": text.file, "date": text.date or None, "sha256": text.sha256}
            for side, text in (("old", self.old), ("new", self.new))
        }
        return {
            "source": self.source,
            **sides,
            "requirements": self.requirements,
            "touched": [t.as_dict() for t in self.touched],
            "same": list(self.same),
            "absent": list(self.absent),
        }


def diff(package: Package, corpus: Corpus, source: str, old: str = "", new: str = "") -> Difference:
    """Compare two held texts of a source, citation by citation of the active requirements, by the hash of the passage.

    ``old`` and ``new`` are dates or names of files; by default the two latest texts. Raises :class:`InputError` where
    the source or a version is not there.
    """
    index = Index(package)
    if source not in index.sources:
        mend = "name one that `regatta sources list` lists"
        raise InputError(f"the package has no source {shown(source)}", code="U103", mend=mend)
    held = corpus.texts.get(source, [])
    if bool(old) != bool(new):
        raise InputError("one version is named", code="U103", mend="name both, the older one first, or none")
    if not old and len(held) < 2:
        what = f"two texts of a source are compared, and of {source} there is {len(held) or 'none'}"
        mend = "add the other with `regatta sources add`"
        if source in corpus.unusable:
            what, mend = f"{what} that can be used", "`regatta sources verify` says what is wrong with what is held"
        raise InputError(what, code="U103", place=str(corpus.folder), mend=mend)
    if not old and held[-1].date == held[-2].date:
        what = f"{held[-2].file} and {held[-1].file} have one date, and nobody can say which came first"
        mend = "correct one of the dates, or name both files, the older one first"
        raise InputError(what, code="A105", place=str(corpus.folder), mend=mend)
    first, second = (_version(held, source, old), _version(held, source, new)) if old else held[-2:]
    active = {r.key for r in package.table("requirements") if r["status"] == "active"}
    citations = [c for c in package.table("citations") if c["source"] == source and c["requirement"] in active]
    touched, same, absent = [], [], []
    for citation in citations:
        before, _ = _read(index, citation, corpus, first)
        after, why = _read(index, citation, corpus, second)
        if before.passage is None and after.passage is None:
            absent.append(citation.key)
        elif before.passage and after.passage and before.passage.sha256 == after.passage.sha256:
            same.append(citation.key)
        else:
            touched.append(_touched(index, citation, before, after, why))
    return Difference(source, first, second, tuple(touched), tuple(same), tuple(absent))


def _version(held: list[SourceText], source: str, name: str) -> SourceText:
    found = [t for t in held if name in (t.date, t.file)]
    if len(found) != 1:
        known = ", ".join(t.date or t.file for t in held) or "none is held"
        how = "more than one text" if found else "no text"
        raise InputError(f"{how} of {source} is {shown(name)}", code="U103", mend=f"name a date or a file of: {known}")
    return found[0]


def _read(index: Index, citation: Record, corpus: Corpus, text: SourceText) -> tuple[Read, str]:
    """A citation read in one version, and why there is no passage."""
    read, troubles = checks.read_citation(index, citation, Corpus(corpus.folder, {text.source: [text]}))
    return read, "" if read.passage or not troubles else troubles[0].message


def _touched(index: Index, citation: Record, before: Read, after: Read, why: str) -> Touched:
    known = {(t.record.key, t.reason) for t in checks.against_facts(index, before)}
    facts = [t for t in checks.against_facts(index, after) if (t.record.key, t.reason) not in known]
    state = "gone" if after.passage is None else "new" if before.passage is None else "changed"
    return Touched(citation, state, before, after, tuple(facts), why if state == "gone" else "")
