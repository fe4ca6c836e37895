"""The grammar of Vietnamese citations: numbers of instruments, and locators of Điều, khoản and điểm.

A number is never mended in silence. ``ND-CP`` for ``NĐ-CP``, a look-alike of Đ, a space, a lower-case letter or a
serial of one digit is refused with the form that may be meant. ``instruments_vn.yaml`` has the types and bodies.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.provenance.citation_model import (
    Citation,
    InstrumentNumber,
    NotUnderstood,
    Place,
    Scanner,
    Step,
    prepared,
)

SYSTEM = "VN"
_TABLE = Path(__file__).with_name("instruments_vn.yaml")
#: Letters that look like Đ (U+0110) and đ (U+0111) and are others.
LOOK_ALIKES = {"\u00d0": "Đ", "\u0189": "Đ", "\u00f0": "đ", "\u0256": "đ"}
#: The order of points (điểm). Vietnamese has no f, j, w and z; old texts use some of them all the same.
_LETTERS = "abcdđefghijklmnopqrstuvwxyz"
_FIRST_YEAR = 1945


@dataclass(frozen=True)
class Table:
    """``instruments_vn.yaml`` as read: see there."""

    types: dict[str, dict[str, Any]]
    bodies: dict[str, str]
    terms: dict[str, tuple[int, int]]
    examples: tuple[str, ...]


@lru_cache(maxsize=1)
def table() -> Table:
    """The types and bodies of instruments. Raises :class:`EnvironmentProblem` where the file is not of its form."""
    from regatta_tools.documents import SyntaxProblem, read_document

    try:
        raw = read_document(_TABLE).value
        terms = {term: (int(first), int(last)) for term, (first, last) in raw["terms"].items()}
        for entry in raw["types"].values():
            if entry["year"] not in ("yes", "no", "either") or not entry["name"]:
                raise ValueError("a type needs a name, and year: yes, no or either")
        return Table(dict(raw["types"]), dict(raw["bodies"]), terms, tuple(raw["examples"]))
    except (SyntaxProblem, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise EnvironmentProblem(
            f"the table of Vietnamese instruments cannot be used: {error}", code="E302", place=_TABLE.name,
            mend="reinstall REGATTA",
        ) from error  # fmt: skip


# Numbers of instruments

_CODE = "[A-ZĐ][A-Za-zĐ]*"
_NUMBER = re.compile(
    r"([0-9]+)/(?:([0-9]{4})/)?"
    rf"((?:PL-|NQ-)?(UBTVQH|QH)([0-9]{{1,2}})|([A-ZĐ]+)-({_CODE}(?:-{_CODE})*))"
)
_LOOK_ALIKE = re.compile("[" + "".join(LOOK_ALIKES) + "]")


def parse_number(text: str) -> InstrumentNumber:
    """The number of an instrument. Raises :class:`NotUnderstood`, with the meant form where that can be told."""
    text = prepared(text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _misshapen(text)
    serial, year, _, assembly, _, type_, bodies = match.groups()
    year = year or ""
    if len(serial) < 2 or (serial[0] == "0" and len(serial) > 2) or not int(serial):
        known = f"{int(serial):02d}{text[len(serial) :]}" if int(serial) else ""
        raise NotUnderstood(text, 0, "a serial below 10 has two digits, and no serial has more zeros", known)
    if year and int(year) < _FIRST_YEAR:
        raise NotUnderstood(text, match.start(2), f"no instrument in force is of a year before {_FIRST_YEAR}")
    if assembly:
        return _of_the_assembly(text, match)
    entry = table().types.get(type_)
    if entry is None:
        raise NotUnderstood(text, match.start(6), f"there is no type {type_} in the table", _suggestion(text))
    if bool(year) != (entry["year"] == "yes") and entry["year"] != "either":
        need = "has to stand between serial and type" if entry["year"] == "yes" else "is no part of its number"
        raise NotUnderstood(text, match.start(3), f"the year of a {entry['english']} ({type_}) {need}")
    at = match.start(7)
    several = bodies.split("-")
    for body in several:
        if body not in table().bodies:
            raise NotUnderstood(text, at, f"there is no body {body} in the table", _suggestion(text))
        if body not in entry.get("bodies", (body,)):
            raise NotUnderstood(text, at, f"{body} does not issue a {entry['english']} ({type_})")
        at += len(body) + 1
    if (len(several) > 1) != ("joint" in entry):
        raise NotUnderstood(text, match.start(7), f"a {entry['english']} ({type_}) names another number of bodies")
    return InstrumentNumber(serial, year, type_, bodies)


def _of_the_assembly(text: str, match: re.Match[str]) -> InstrumentNumber:
    """Laws and resolutions of the National Assembly, ordinances and resolutions of its Standing Committee."""
    serial, year, code, assembly, term = match.groups()[:5]
    type_ = code.partition("-")[0] if "-" in code else ""
    if type_ and assembly == "QH":
        raise NotUnderstood(text, match.start(3), "a number of the National Assembly has QH and the term alone")
    if not year:
        raise NotUnderstood(text, match.start(3), "the year has to stand between serial and QH")
    span = table().terms.get(term)
    if span is None:
        raise NotUnderstood(text, match.start(5), f"there is no term {term} of the National Assembly in the table")
    if not span[0] <= int(year) <= span[1]:
        when = f"term {term} of the National Assembly is {span[0]} to {span[1]}"
        raise NotUnderstood(text, match.start(2), f"{when}, and {year} is not in it")
    return InstrumentNumber(serial, year, type_, assembly, term)


def _misshapen(text: str) -> NotUnderstood:
    """Why a text has not the form of a number: the first thing that people get wrong."""
    odd = _LOOK_ALIKE.search(text)
    meant = _suggestion(text)
    if odd is not None:
        name = unicodedata.name(odd.group())
        right = LOOK_ALIKES[odd.group()]
        why = f"this is U+{ord(odd.group()):04X} ({name}), and {right} is U+{ord(right):04X}"
        return NotUnderstood(text, odd.start(), why, meant)
    space = re.search(r"\s", text)
    if space is not None and meant:
        return NotUnderstood(text, space.start(), "a number has no spaces", meant)
    lower = re.search(r"[a-zđ]", text.replace("TTg", "TTG"))
    if lower is not None and meant:
        return NotUnderstood(text, lower.start(), "type and body are in capitals", meant)
    start = re.match(r"[0-9]*/?(?:[0-9]{4}/)?", text)
    at = start.end() if start and start.end() < len(text) else 0
    return NotUnderstood(text, at, "a number is SERIAL/YEAR/TYPE-BODY, as 13/2023/NĐ-CP, or SERIAL/YEAR/QH15", meant)


@lru_cache(maxsize=1)
def _folded() -> tuple[dict[str, str], dict[str, str]]:
    def fold(code: str) -> str:
        return code.upper().replace("Đ", "D")

    return {fold(t): t for t in table().types}, {fold(b): b for b in table().bodies}


def _suggestion(text: str) -> str:
    """The number that is probably meant, or nothing. What is suggested is itself of the form."""
    plain = unicodedata.normalize("NFC", Scanner(text).plain)
    plain = re.sub(r"^(?:[^\W\d]+\s+)*(?:số\s+)?(?=[0-9])", "", plain)
    for odd, right in LOOK_ALIKES.items():
        plain = plain.replace(odd, right)
    plain = re.sub(r"\s+", "", plain).upper()
    match = re.fullmatch(r"([0-9]{1,6})/(?:([0-9]{4})/)?([A-ZĐ]+[0-9]{0,2})(?:-([A-ZĐ-]+[0-9]{0,2}))?", plain)
    if match is None or not int(match.group(1)):
        return ""
    types, bodies = _folded()
    serial, year, first, rest = match.groups()

    def known(code: str, codes: dict[str, str]) -> str:
        return codes.get(code.replace("Đ", "D"), code)

    code = first if rest is None else "-".join([known(first, types), *(known(b, bodies) for b in rest.split("-"))])
    candidate = "/".join(p for p in (f"{int(serial):02d}", year, code) if p)
    if candidate == text:
        return ""
    try:
        return str(parse_number(candidate))
    except NotUnderstood:
        return ""


# Locators

#: Levels from the outermost in, with what a label of each looks like.
_LEVELS: dict[str, str] = {
    "Phụ lục": r"[IVXL]+[a-zđ]?|[0-9]{1,3}[a-zđ]?",
    "Mẫu số": r"[0-9]{1,3}[a-zđ]?",
    "Phần": r"[IVXL]+|[0-9]{1,2}",
    "Chương": r"[IVXL]+[a-zđ]?|[0-9]{1,2}[a-zđ]?",
    "Mục": r"[IVXL]+|[0-9]{1,3}[a-zđ]?",
    "Điều": r"[1-9][0-9]{0,3}(?:[a-zđ][0-9]?)?",
    "khoản": r"[1-9][0-9]{0,2}[a-zđ]?",
    "điểm": r"[a-zđ][0-9]{0,2}",
    "tiết": r"[ivx]{1,6}|[0-9]{1,2}|[a-zđ]",
}
_RANK = {level: n for n, level in enumerate(_LEVELS)}
_CONTAINERS = ("Phụ lục", "Phần", "Chương", "Mục")
_TOPS = (*_CONTAINERS, "Điều")
_KEYWORD = re.compile(r"(?:[Cc]ác +)?(?:từ +)?(" + "|".join(_LEVELS) + r")(?![^\W_])", re.IGNORECASE)
_LABELS = {level: re.compile(rf"(?:{label})(?![^\W_])") for level, label in _LEVELS.items()}
_SUBPOINT = re.compile(r"\(([ivx]{1,6})\)")
_SPACE = re.compile(" *")
_SEPARATOR = re.compile(r" *; *| *, *(?:(?:và|and) +)?| +(?:và|and|&) +| +")
_BETWEEN = re.compile(r" *; *| *, *(?:(?:và|and) +)?| +(?:và|and|&) +")
_TO = re.compile(r" *- *| +(?:đến +hết|đến|to) +")
_INSTRUMENT = re.compile(
    r"(?:của +)?(?:(Bộ luật|Luật|Pháp lệnh|Nghị quyết|Nghị định|Thông tư liên tịch|Thông tư|Quyết định|Chỉ thị) +)?"
    r"(?:số +)?([0-9]+ ?/[^\s,;]+)"
)
_OTHER_WORDS = {
    "article": "Điều", "art.": "Điều", "dieu": "Điều", "clause": "khoản", "khoan": "khoản", "point": "điểm",
    "diem": "điểm", "chapter": "Chương", "chuong": "Chương", "annex": "Phụ lục",
    "appendix": "Phụ lục", "phu luc": "Phụ lục",
}  # fmt: skip
_ENGLISH_PATH = re.compile(r"(Điều [0-9]+[a-zđ]?)\(([0-9]+[a-zđ]?)\)(?:\(([a-zđ])\))?")


@dataclass(frozen=True)
class _Token:
    """A level with the labels that stand behind its word: one, a range, or a list."""

    level: str
    labels: tuple[tuple[str, str, str], ...]  # (label, sub-point, last label of a range)
    at: int
    before: str  # what stands between it and the token before: a space, a comma, or "và"

    @property
    def single(self) -> bool:
        return len(self.labels) == 1 and not self.labels[0][2]


def parse(text: str) -> Citation:
    """The citation that a text is: a number, a locator, or both. Raises :class:`NotUnderstood` for anything else."""
    text = prepared(text)
    odd = _LOOK_ALIKE.search(text)
    if text[0].isdigit() and (" " not in text or odd is not None):
        return Citation(SYSTEM, instrument=parse_number(text))
    if odd is not None:
        right = LOOK_ALIKES[odd.group()]
        why = f"this is U+{ord(odd.group()):04X} ({unicodedata.name(odd.group())}), and {right} is U+{ord(right):04X}"
        raise NotUnderstood(text, odd.start(), why, text.translate(str.maketrans(LOOK_ALIKES)))
    try:
        return _locator(text)
    except NotUnderstood as problem:
        if not problem.suggestion and (meant := _suggested_locator(text)):
            raise NotUnderstood(text, problem.at, problem.why, meant) from problem
        if not problem.suggestion and re.match("[0-9]+ ?/", text):
            raise _misshapen(text) from problem
        raise


def _locator(text: str) -> Citation:
    scan = Scanner(text)
    groups: list[list[_Token]] = [[]]  # a semicolon begins anew
    instrument: InstrumentNumber | None = None
    before = ""
    while True:
        if instrument is None and (match := scan.take(_INSTRUMENT)):
            instrument = _named(text, match)
        elif keyword := scan.take(_KEYWORD):
            level = next(k for k in _LEVELS if k.lower() == keyword.group(1).lower())
            groups[-1].append(_token(scan, level, keyword.start(), before))
        else:
            raise scan.problem("here has to stand Điều, khoản, điểm or another level")
        if scan.done:
            break
        between = scan.take(_SEPARATOR)
        if between is None or scan.done:
            raise scan.problem("this does not belong to a locator")
        before = between.group().strip()
        if before == ";" and groups[-1]:
            groups.append([])
    places = [place for tokens in groups if tokens for place in _places(scan, tokens)]
    return Citation(SYSTEM, places=tuple(places), instrument=instrument)


def _named(text: str, match: re.Match[str]) -> InstrumentNumber:
    word, written = match.groups()
    try:
        number = parse_number(written)
    except NotUnderstood as problem:
        raise NotUnderstood(text, match.start(2) + problem.at, problem.why) from problem
    names = {t["name"] for key, t in table().types.items() if key == number.type}
    if number.authority in ("QH", "UBTVQH") and not number.type:
        names = {"Bộ luật", "Luật", "Nghị quyết", "Pháp lệnh"}
    if word and word not in names:
        raise NotUnderstood(text, match.start(1), f"{written} is not the number of a {word}")
    return number


def _token(scan: Scanner, level: str, at: int, before: str) -> _Token:
    """The labels behind the word of a level: ``2``, ``2-4``, ``1, 2 và 3``, ``a``, ``i(iii)``."""
    scan.take(_SPACE)
    found = [_label(scan, level)]
    while True:
        here = scan.at
        # A bare label goes on with the list; the word of a level, or an instrument, ends it.
        if not scan.take(_BETWEEN) or scan.sees(_KEYWORD) or scan.sees(_INSTRUMENT) or not scan.sees(_LABELS[level]):
            scan.at = here
            return _Token(level, tuple(found), at, before)
        found.append(_label(scan, level))


def _label(scan: Scanner, level: str) -> tuple[str, str, str]:
    first = scan.take(_LABELS[level])
    if first is None:
        raise scan.problem(f"here has to stand the label of a {level}")
    below = scan.take(_SUBPOINT) if level == "điểm" else None
    before = scan.at
    if not scan.take(_TO):
        return first.group(), below.group(1) if below else "", ""
    word = scan.take(_KEYWORD)
    if word is not None and word.group(1).lower() != level.lower():
        raise scan.problem(f"a range of {level} ends with a {level}", word.start())
    scan.take(_SPACE)
    last = scan.take(_LABELS[level])
    if last is None or below is not None:
        raise scan.problem(f"here has to stand the last {level} of the range", before)
    if not order(level, first.group()) < order(level, last.group()):
        raise scan.problem("the range does not run forward", before)
    return first.group(), "", last.group()


def order(level: str, label: str) -> tuple[int, ...]:
    """The place of a label among those of its level: 2 before 2a before 3, d before đ before e."""
    match = re.fullmatch(r"([0-9]*)([IVXLivxl]*)([a-zđ]?)([0-9]*)", label)
    number, numeral, letter, added = match.groups() if match else ("", "", "", "")
    if level == "điểm" or (level == "tiết" and len(label) == 1):
        return (_LETTERS.index(label[0]) if label[0] in _LETTERS else 0, int(label[1:] or 0))
    value = int(number) if number else _roman(numeral)
    return (value, _LETTERS.index(letter) + 1 if letter else 0, int(added or 0))


def _roman(numeral: str) -> int:
    values = [{"i": 1, "v": 5, "x": 10, "l": 50}[sign] for sign in numeral.lower()]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0]))


def _places(scan: Scanner, tokens: Sequence[_Token]) -> list[Place]:
    """The places that tokens name. Vietnamese drafters write upward (điểm a khoản 1 Điều 5), lists of data downward."""
    levels = [_RANK[t.level] for t in tokens]
    turn = next((n for n in range(1, len(levels)) if levels[n] != levels[0]), None)
    upward = turn is not None and levels[turn] < levels[0]
    _unambiguous(scan, tokens, upward)
    places: list[Place] = []
    path: list[Step] = []
    inner: _Token | None = None  # the innermost level, whose labels are not yet part of the path
    for token in reversed(tokens) if upward else tokens:
        if inner is not None and _RANK[token.level] > _RANK[inner.level]:
            label, below, _ = inner.labels[0]
            if not inner.single or below:
                why = f"which {inner.level} this belongs to cannot be told: write each whole"
                raise scan.problem(why, token.at)
            path.append(Step(inner.level, label))
        elif inner is not None:
            if inner.level == "điểm" and token.level == "khoản" and all(s.level != "khoản" for s in path):
                raise scan.problem("whether this is the khoản of the điểm cannot be told: write each whole", token.at)
            places += _named_by(path, inner, upward)
            while path and _RANK[path[-1].level] >= _RANK[token.level]:
                path.pop()
            if path and token.level == "Điều":
                why = f"whether this Điều is in {path[-1].level} {path[-1].label} cannot be told: write each whole"
                raise scan.problem(why, token.at)
        if not path and token.level not in _TOPS:
            raise scan.problem(f"the Điều of this {token.level} is not named", token.at)
        inner = token
    if inner is not None:
        places += _named_by(path, inner, upward)
    return places[::-1] if upward else places


def _unambiguous(scan: Scanner, tokens: Sequence[_Token], upward: bool) -> None:
    """Refuse what can be two places or one in the other: Điều 5 và khoản 2; Điều 5, Phụ lục I."""
    for one, other in pairwise(tokens):
        deeper = _RANK[other.level] > _RANK[one.level]
        joined = (not upward and deeper and other.before not in ("", ",")) or (
            upward and not deeper and other.before and other.level != one.level and other.level in _CONTAINERS
        )
        if joined:
            raise scan.problem(f"whether {one.level} and {other.level} are one place cannot be told", other.at)


def _named_by(path: Sequence[Step], token: _Token, upward: bool) -> list[Place]:
    """The places that the labels of a token name below a path."""
    found = []
    for label, below, last in reversed(token.labels) if upward else token.labels:
        steps = (*path, Step(token.level, label))
        end = (*path, Step(token.level, last)) if last else ()
        found.append(Place((*steps, Step("tiết", below)) if below else steps, end))
    return found


def _suggested_locator(text: str) -> str:
    """The locator that is probably meant by one in English or without marks, or nothing."""
    words = text
    for other, level in _OTHER_WORDS.items():
        words = re.sub(rf"(?<!\w){re.escape(other)}(?!\w)", level, words, flags=re.IGNORECASE)
    words = re.sub(r"(?<!\w)paragraph(?!\w)", "khoản", words, flags=re.IGNORECASE)
    words = _ENGLISH_PATH.sub(lambda m: f"{m[1]}, khoản {m[2]}" + (f", điểm {m[3]}" if m[3] else ""), words)
    if words == text:
        return ""
    try:
        return render(_locator(words))
    except NotUnderstood:
        return ""


def render(citation: Citation) -> str:
    """A citation in canonical form, which :func:`parse` reads as the same citation."""
    places = "; ".join(_written(place) for place in citation.places)
    return ", ".join(part for part in (str(citation.instrument or ""), places) if part)


def _written(place: Place) -> str:
    words: list[str] = []
    for n, step in enumerate(place.path):
        last = f"-{place.last[n].label}" if place.last and place.last[n] != step else ""
        if step.level == "tiết" and words and words[-1].startswith("điểm "):
            words[-1] += f"({step.label})"
        else:
            words.append(f"{step.level} {step.label}{last}")
    return ", ".join(words)
