"""Citations of law as values: read, written, and compared, for the countries that have a grammar.

    citation = parse("12 CFR § 1005.11(c)(2)(i)", "US")
    citation.places[0].section, citation.places[0].subdivisions     # '1005.11', ('c', '2', 'i')
    parse("Điều 5, khoản 2-4", "VN").places[0].last_label           # '4'

The same text may stand in ``sources.number`` and ``citations.locator``; docs/citations.md describes both for those who
write them. ``parse(render(c), j) == c`` for every citation ``c`` that was parsed, and a text is understood whole or
:class:`NotUnderstood` is raised.
"""

from __future__ import annotations

import re
from functools import lru_cache

from regatta_tools.errors import InputError
from regatta_tools.provenance import citations_us, citations_vn
from regatta_tools.provenance.citation_model import (
    Citation,
    InstrumentNumber,
    NotUnderstood,
    Place,
    Step,
)
from regatta_tools.provenance.labels import follows

__all__ = [
    "Citation", "InstrumentNumber", "NotUnderstood", "Place", "Step",
    "covers", "has_grammar", "law_of", "parse", "render", "same_instrument",
]  # fmt: skip

_GRAMMARS = {"US": citations_us, "VN": citations_vn}


def country(jurisdiction: str) -> str:
    """``US`` for ``US-CA``."""
    return jurisdiction.partition("-")[0]


@lru_cache(maxsize=256)
def has_grammar(jurisdiction: str) -> bool:
    """Whether citations of a jurisdiction can be read: its country has a grammar and, in the US, the state a code."""
    if country(jurisdiction) == "US":
        return jurisdiction in citations_us.jurisdictions()
    return country(jurisdiction) in _GRAMMARS


def parse(text: str, jurisdiction: str) -> Citation:
    """The citation that ``text`` is, by the grammar of the country of ``jurisdiction`` (``US``, ``US-CA``, ``VN``).

    Raises :class:`NotUnderstood`, with the place in the text, for what that grammar does not read whole, and
    :class:`InputError` where the country has no grammar.
    """
    grammar = _GRAMMARS.get(country(jurisdiction))
    if grammar is None:
        raise InputError(f"there is no citation grammar for {jurisdiction!r}", mend="see docs/citations.md")
    return grammar.parse(text)


def render(citation: Citation) -> str:
    """A citation in its canonical form."""
    grammar = citations_vn if citation.system == citations_vn.SYSTEM else citations_us
    return grammar.render(citation)


def law_of(citation: Citation) -> str:
    """The jurisdiction whose law a citation is: ``US-CA`` for the California Insurance Code."""
    if citation.system == citations_vn.SYSTEM:
        return "VN"
    return citations_us.reporters()[citation.system].jurisdiction


def same_instrument(source: Citation, citation: Citation) -> bool:
    """Whether a citation is of the instrument that ``source`` is: a title of a code, a part of a regulation, a decree.

    A Vietnamese locator that names no instrument is of whichever it stands beside.
    """
    if (source.system, source.title, source.appendix) != (citation.system, citation.title, citation.appendix):
        return False
    if source.instrument and citation.instrument and source.instrument != citation.instrument:
        return False
    if any(p.path[0].level == "part" and p.last for p in source.places):
        return True  # a range of parts: whether the citation is in it is for covers() to say
    return _divisions(citation) <= _divisions(source)


def _divisions(citation: Citation) -> set[str]:
    """Parts of a regulation or acts of a chapter in which a citation is; empty in codes that have sections alone."""
    if citation.system == citations_vn.SYSTEM:
        return set()
    reporter = citations_us.reporters()[citation.system]
    if reporter.act:
        return {p.path[0].label for p in citation.places}
    return {citations_us.part_of(p) for p in citation.places} if reporter.part else set()


def covers(outer: Citation, inner: Citation) -> bool:
    """Whether every place of ``inner`` lies in a place of ``outer``, as far as that can be told without the text.

    A citation without places is the whole instrument and covers all of it. Labels between the ends of a range are taken
    to count on. Of an open-ended place only its start is looked at, for nothing says where it ends. A note to a section
    (``§ 1395 note``) is no part of the section.
    """
    if not same_instrument(outer, inner):
        return False
    return not outer.places or all(any(_within(place, o, outer) for o in outer.places) for place in inner.places)


def _within(place: Place, outer: Place, citation: Citation) -> bool:
    if outer.note or place.note == "note":
        return (place.path, place.note) == (outer.path, outer.note)
    return _holds(outer, place.path, citation) and (not place.last or _holds(outer, place.last, citation))


def _holds(outer: Place, path: tuple[Step, ...], citation: Citation) -> bool:
    if outer.path[0].level == "part" and path[0].level == "section":
        ends = [outer.path[0].label, *([outer.last[0].label] if outer.last else [])]
        part = path[0].label.split(".", 1)[0]
        return len(outer.path) == 1 and _number(ends[0]) <= _number(part) <= _number(ends[-1])
    if not outer.last and not outer.open_ended:
        return path[: len(outer.path)] == outer.path
    depth = len(outer.path) - 1
    if outer.open_ended:
        return path[0].level == outer.path[0].level and not _before(path[0], outer.path[0], citation)
    differ = next(n for n, (a, b) in enumerate(zip(outer.path, outer.last)) if a != b)
    if path[:differ] != outer.path[:differ] or len(path) <= differ:
        return False
    step = path[differ]
    if step in (outer.path[differ], outer.last[differ]):
        # Below an end that is itself a path, only that path is sure to be inside.
        end = outer.path if step == outer.path[differ] else outer.last
        return differ == depth or path[: len(end)] == end
    return _before(outer.path[differ], step, citation) and _before(step, outer.last[differ], citation)


def _before(one: Step, other: Step, citation: Citation) -> bool:
    if one.level != other.level:
        return False
    if citation.system == citations_vn.SYSTEM:
        return citations_vn.order(one.level, one.label) < citations_vn.order(other.level, other.label)
    if one.level == "section":
        reporter = citations_us.reporters()[citation.system]
        return reporter.key(one.label) < reporter.key(other.label)
    return follows(one.label, other.label)


def _number(part: str) -> tuple[int, str]:
    match = re.match("[0-9]+", part)
    return (int(match.group()), part[match.end() :]) if match else (0, part)
