"""Citations in prose: "Nghị định 116/2013/NĐ-CP, Article 20", "Regulation B (12 CFR §1002)", "NAIC Model Act".

The grammars of :mod:`regatta_tools.provenance.citations` read a text whole or not at all. Prose has words around and
between citations, so here the longest stretches are sought that a grammar reads whole, from left to right. What prose
writes otherwise than law does is put into the words of the grammar first, and each such step is said in the result:

- English words of Vietnamese law: Article, Clause, Point, Chapter; Decree, Circular, Law; the short forms NĐ and TT;
- a number without its end, as ``NĐ 46/2023`` or ``Luật 08/2022``, where only one known instrument has that beginning;
- the section sign before the number of a whole part, as ``12 CFR §1002``;
- names of instruments, from ``prose.yaml``.

A part of prose (parts are set apart by semicolons) in which no law is found is held against the words of ``prose.yaml``
that name guidance, model laws, or nothing that can be identified. What fits none of them is *not understood*, which is
said and decides nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.provenance import citations_us, citations_vn
from regatta_tools.provenance.citation_model import Citation, NotUnderstood
from regatta_tools.provenance.citations import covers, parse, render

_TABLE = Path(__file__).with_name("prose.yaml")
#: Prose that names sources is a line or two. What is longer is no such thing, and is refused by who reads checklists.
MAX_PROSE = 1000
#: Characters of the longest stretch that is tried as one citation.
MAX_STRETCH = 160

LAW, NOT_LAW, UNKNOWN = "law", "not-law", "not-understood"


@dataclass(frozen=True)
class Mention:
    """One source that prose names.

    ``start`` and ``end`` are the place of ``written`` in the prose (in NFC), in characters. ``kind`` is :data:`LAW`,
    with its ``citation``; :data:`NOT_LAW`, with the ``reason`` of the audit; or :data:`UNKNOWN`. ``says`` is what the
    words are, or how they were taken where not as they stand; empty where there is nothing to say.
    """

    start: int
    end: int
    written: str
    kind: str
    citation: Citation | None = None
    reason: str = ""
    says: str = ""

    @property
    def names_passage(self) -> bool:
        """Whether it leads to one passage, or several, each with both its ends."""
        places = self.citation.places if self.citation else ()
        return bool(places) and all(p.names_passage and p.section for p in places)


@dataclass(frozen=True)
class Name:
    """A name of an instrument: its words, the instrument's number, and the source row that supports it."""

    words: str
    number: str
    source: str

    @property
    def vietnamese(self) -> bool:
        return "/" in self.number


@dataclass(frozen=True)
class Words:
    """Words that name no law, with the reason of the audit and what the report says."""

    pattern: re.Pattern[str]
    reason: str
    says: str


@lru_cache(maxsize=1)
def names() -> tuple[Name, ...]:
    """The names of ``prose.yaml``, the longest first."""
    found = [Name(words, e["number"], e["source"]) for e in _table()["names"] for words in e["names"]]
    return tuple(sorted(found, key=lambda n: -len(n.words)))


@lru_cache(maxsize=1)
def not_law() -> tuple[Words, ...]:
    """The words of ``prose.yaml`` that name no law, in the order in which they are tried."""
    return tuple(Words(re.compile(e["words"]), e["reason"], e["says"]) for e in _table()["not_law"])


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    from regatta_tools.documents import SyntaxProblem, read_document

    try:
        raw = read_document(_TABLE).value
        for entry in raw["names"]:
            parse(entry["number"], "VN" if "/" in entry["number"] else "US")
            if not entry["source"] or not all(isinstance(n, str) for n in entry["names"]):
                raise ValueError(f"a name of {entry['number']} is not of the form")
        for entry in raw["not_law"]:
            re.compile(entry["words"])
            if not (entry["reason"] and entry["says"]):
                raise ValueError(f"{entry['words']} needs reason and says")
        return dict(raw)
    except (SyntaxProblem, NotUnderstood, OSError, ValueError, TypeError, KeyError, re.error) as error:
        raise EnvironmentProblem(
            f"the table of names cannot be used: {error}", code="E302", place=_TABLE.name, mend="reinstall REGATTA"
        ) from error


def mentions(prose: str, known: Iterable[str] = ()) -> tuple[Mention, ...]:
    """What prose names as sources, in order.

    ``known`` are numbers of Vietnamese instruments (``67/2023/TT-BTC``) by which a short one can be completed.
    """
    prose = unicodedata.normalize("NFC", prose)
    known = frozenset(known)
    found: list[Mention] = []
    for start, end in _parts(prose):
        found += _of_part(prose, start, end, known)
    return tuple(_once(found))


def _parts(prose: str) -> Iterator[tuple[int, int]]:
    """Start and end of the parts of prose: between semicolons that stand in no bracket, without space at the edges."""
    depth, begin = 0, 0
    for at, sign in enumerate([*prose, ";"]):
        depth = max(0, depth + (sign == "(") - (sign == ")"))
        if sign in ";\n" and (not depth or at >= len(prose)):
            part = prose[begin:at]
            if part.strip():
                yield begin + len(part) - len(part.lstrip()), begin + len(part.rstrip())
            begin = at + 1


def _of_part(prose: str, start: int, end: int, known: frozenset[str]) -> list[Mention]:
    laws = list(_laws(prose, start, end, known))
    if laws:
        return sorted([*laws, *_left_over(prose, start, end, laws)], key=lambda m: m.start)
    part = prose[start:end]
    for words in not_law():
        if words.pattern.search(part):
            return [Mention(start, end, part, NOT_LAW, reason=words.reason, says=words.says)]
    return [Mention(start, end, part, UNKNOWN, says="names nothing that the tables know")]


def _left_over(prose: str, start: int, end: int, laws: list[Mention]) -> Iterator[Mention]:
    """What stands beside the laws of a part and looks like a citation too: it has a number or a section sign."""
    edges = [start, *(e for m in laws for e in (m.start, m.end)), end]
    for begin, stop in zip(edges[::2], edges[1::2]):
        words = prose[begin:stop].strip(" ,.()[]&")
        if re.search(r"[0-9]|§", words):
            at = prose.index(words, begin)
            says = "looks like a citation and is read by no grammar"
            yield Mention(at, at + len(words), words, UNKNOWN, says=says)


def _laws(prose: str, start: int, end: int, known: frozenset[str]) -> Iterator[Mention]:
    """The longest stretches of a part that are citations, from left to right."""
    begins = [
        i
        for i in range(start, end)
        if (prose[i].isalnum() or prose[i] == "§") and (i == start or prose[i - 1] in " (,[/")
    ]
    ends = [j for j in range(end, start, -1) if prose[j - 1] not in " (,[" and (j == end or prose[j] in " ),.:]")]
    done = start
    for begin in begins:
        if begin < done or not _begins().match(prose, begin, end):
            continue
        for stop in ends:
            if stop <= begin:
                break
            if stop - begin > MAX_STRETCH:
                continue
            taken = _taken(prose[begin:stop], known)
            if taken is not None:
                citation, says = taken
                yield Mention(begin, stop, prose[begin:stop], LAW, citation, says=says)
                done = stop
                break


@lru_cache(maxsize=1)
def _called() -> re.Pattern[str]:
    """Any of the names."""
    return re.compile("|".join(re.escape(n.words).replace(r"\ ", " +") for n in names()), re.IGNORECASE)


@lru_cache(maxsize=1)
def _begins() -> re.Pattern[str]:
    """What a citation can begin with. A grammar is asked of nothing else, so that long prose stays cheap."""
    codes = (
        re.escape(way).replace(r"\{title\}", "[0-9]+").replace(r"\ ", " +")
        for reporter in citations_us.reporters().values()
        for way in reporter.written
    )
    levels = "|".join([*_LEVELS, *_LEVELS.values()])
    kinds = "|".join(pattern.pattern for pattern, _ in _kinds())
    us = rf"{'|'.join(codes)}|§|(?i:sections?|secs?\.|subpart|appendix|supplement)\b"
    return re.compile(rf"{us}|(?i:(?:{levels})\b|{kinds}|{_called().pattern})|[0-9]{{1,4}}/[0-9A-ZĐ]")


def _taken(words: str, known: frozenset[str]) -> tuple[Citation, str] | None:
    """The citation that a stretch of prose is, and how it was taken; ``None`` where it is none."""
    for written, country in _ways(words, known):
        try:
            citation = parse(written, country)
        except NotUnderstood:
            continue
        if country == "VN" and citation.instrument is None:
            continue
        return citation, "" if written == words else f"taken as {render(citation)}"
    return None


def _ways(words: str, known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The forms in which a grammar may read a stretch of prose, as it stands first."""
    named = _named(words)
    if not re.search("[0-9]", words) and named == words:
        return
    if words[0].isdigit() or words[0].isupper():
        yield words, "US"
        if part := re.fullmatch(r"([0-9]+ C\.?F\.?R\.?) *(?:§+ *)?([1-9][0-9]{0,3}[a-z]?)", words):
            yield f"{part[1]} Part {part[2]}", "US"
    if named != words and "/" not in named:
        yield named, "US"
    # One instrument, whose number may stand in brackets once more.
    if 1 <= len(_SHORT_NUMBER.findall(named)) <= 2:
        yield _in_vietnamese(named, known), "VN"


def _named(words: str) -> str:
    """A stretch with the number in place of the name with which it begins, or that it has behind a locator."""
    if not _called().search(words):
        return words
    for name in names():
        pattern = re.escape(name.words).replace(r"\ ", " +")
        if name.vietnamese:
            year = name.number.split("/")[1]
            found = re.search(rf"(?<!\w){pattern},? +(?:of +|năm +)?\(?{year}\)?(?!\w)", words, re.IGNORECASE)
            if found:
                return f"{words[: found.start()]}Luật {name.number}{words[found.end() :]}"
        elif found := re.match(rf"{pattern}(?!\w)", words):
            rest = words[found.end() :].lstrip(" ,")
            if not rest:
                return name.number
            if rest[0] in "§0123456789" or re.match(r"[Ss]ec", rest):
                return f"{name.number.partition(' Part')[0]} {rest}"
    return words


# Vietnamese law in English words

_LEVELS = {
    "Điều": r"articles?|arts?\.", "khoản": r"clauses?|paragraphs?", "điểm": r"points?", "Chương": r"chapters?",
    "Phụ lục": r"annex(?:es)?|appendix|appendices",
}  # fmt: skip
_NUMBER = r"[0-9]+/(?:[0-9]{4}/)?[A-ZĐ][A-Za-zĐ0-9-]*"
_SHORT_NUMBER = re.compile("[0-9]+/(?:[0-9]{4}(?![0-9])|[A-ZĐ]{2})")


@lru_cache(maxsize=1)
def _kinds() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The ways of writing a kind of instrument before its number, with the Vietnamese word."""
    ways = {"law": "Luật", "luật": "Luật", "ordinance": "Pháp lệnh"}
    for key, entry in citations_vn.table().types.items():
        ways |= {key: entry["name"], key.replace("Đ", "D"): entry["name"], entry["english"]: entry["name"]}
    return tuple(
        (re.compile(rf"(?<!\w){re.escape(way)} +(?:[Nn]o\.? *|số +)?(?=[0-9]+ ?/)", re.IGNORECASE), f"{name} ")
        for way, name in ways.items()
    )


def _in_vietnamese(words: str, known: frozenset[str]) -> str:
    """A stretch in the words of Vietnamese law: ``NĐ 46/2023, Article 70`` is ``Nghị định 46/2023/NĐ-CP, Điều 70``."""
    for pattern, name in _kinds():
        words = pattern.sub(name, words)
    words = re.sub(r"(Nghị định|Thông tư|Luật|Quyết định) (?:số )?([0-9]+)/([0-9]{4})(?![0-9/])",
                   lambda m: f"{m[1]} {_completed(m[1], m[2], m[3], known)}", words)  # fmt: skip
    # Brackets that hold no label: a short name (PDPD), or the number once more.
    words = re.sub(rf"({_NUMBER}) \((?:[^()0-9]* )?\1\)", r"\1", words)
    words = re.sub(r" \([^()0-9]{2,}\)", "", words)
    for level, ways in _LEVELS.items():
        words = re.sub(rf"(?<!\w)(?:{ways}) +(?=[0-9IVXa-zđ])", f"{level} ", words, flags=re.IGNORECASE)
    # Article 20.2(a) and Article 20(2)(a) are Điều 20, khoản 2, điểm a.
    words = re.sub(r"(Điều [0-9]+[a-zđ]?)(?:\.([0-9]+)|\(([0-9]+[a-zđ]?)\))(?:\(([a-zđ])\))?",
                   lambda m: f"{m[1]}, khoản {m[2] or m[3]}" + (f", điểm {m[4]}" if m[4] else ""), words)  # fmt: skip
    words = re.sub(r" +(?:of|in) +(?:the +)?(?=Điều|khoản|Nghị|Thông|Luật|Quyết|Pháp|Chỉ)", " ", words)
    return re.sub(r"(?<=[0-9IVXa-zđ]) +(?=Nghị|Thông|Luật|Quyết|Pháp|Chỉ)", " của ", words)


def _completed(kind: str, serial: str, year: str, known: frozenset[str]) -> str:
    """The whole number of an instrument: a decree is one of the Government; else as the one that is known to exist."""
    begin = f"{int(serial):02d}/{year}/"
    if kind == "Nghị định":
        return f"{begin}NĐ-CP"
    form = {"Thông tư": "TT-", "Luật": "QH", "Quyết định": "QĐ-"}[kind]
    fitting = [n for n in known if n.startswith(begin + form)]
    return fitting[0] if len(fitting) == 1 else f"{serial}/{year}"


def _once(found: list[Mention]) -> list[Mention]:
    """Each law once; a whole instrument only where no place in it is named, as in Regulation E (12 CFR 1005.11)."""
    out: list[Mention] = []
    for mention in found:
        if mention.citation is None:
            out.append(mention)
        elif not any(m.citation == mention.citation for m in out):
            whole = not mention.names_passage and any(
                m is not mention and m.citation and m.names_passage and covers(mention.citation, m.citation)
                for m in found
            )
            if not whole:
                out.append(mention)
    return [replace(m, written=m.written.strip()) for m in out]
