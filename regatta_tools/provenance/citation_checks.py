"""What the citation grammars have to say about the tables: the material of the rules C001 to C010.

A package can hold some hundred thousand citations and is checked on every edit, so a text is read once, and of a
locator like ``12 CFR § 1005.6(b)(1)`` only the head is held against the source: the labels behind it cannot change
the instrument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from regatta_tools.provenance.citation_model import Citation, NotUnderstood
from regatta_tools.provenance.citations import country, covers, has_grammar, law_of, parse, render, same_instrument
from regatta_tools.provenance.labels import counts
from regatta_tools.tables.package import Package, table_specs
from regatta_tools.text import shown

#: Kinds of sources that are cited by number, section and paragraph. Guidance and standards are cited as they come.
CITED_BY_FORM = ("statute", "regulation")

#: What a problem is about, and what it says.
Problem = tuple[str, str]
_CACHE = 1 << 16
# One section, and labels: the form of nearly all locators of the US.
_SIMPLE_VN = re.compile(r"Điều [1-9][0-9]{0,3}[a-zđ]?(?:, khoản [1-9][0-9]{0,2}[a-zđ]?(?:, điểm [a-zđ])?)?")
_SIMPLE = re.compile(r"([^()§]*(?:§|ILCS) [0-9][^()\s,;]*)((?:\([0-9A-Za-z]{1,4}\))+)")


@lru_cache(maxsize=_CACHE)
def _read(text: str, land: str) -> Citation | NotUnderstood:
    try:
        return parse(text, land)
    except NotUnderstood as problem:
        # Kept for long, so without the frames in which it arose.
        problem.__traceback__ = problem.__cause__ = problem.__context__ = None
        return problem


def _said(problem: NotUnderstood) -> str:
    return problem.message + (f"; what is meant may be {problem.suggestion!r}" if problem.suggestion else "")


def grammar_of(jurisdiction: str | None) -> bool | None:
    """Whether there is a citation grammar for a jurisdiction; ``None`` for none, as SQL has it."""
    return has_grammar(jurisdiction) if jurisdiction else None


def number_problem(number: str | None, jurisdiction: str | None) -> str | None:
    """Why ``sources.number`` is not a citation of the law of its jurisdiction, or ``None``."""
    if not number or not jurisdiction or not has_grammar(jurisdiction):
        return None
    citation = _read(number, country(jurisdiction))
    if isinstance(citation, NotUnderstood):
        return _said(citation)
    if law_of(citation) != jurisdiction:
        return f"{shown(number)} is law of {law_of(citation)}, and the source is of {jurisdiction}"
    if citation.system == "VN" and (citation.instrument is None or citation.places):
        return f"{shown(number)} has to be the number of the instrument alone"
    return None


def number_form(number: str | None, jurisdiction: str | None) -> str | None:
    """How ``sources.number`` is written canonically, where that is another text; else ``None``."""
    if not number or not jurisdiction or number_problem(number, jurisdiction) or not has_grammar(jurisdiction):
        return None
    citation = _read(number, country(jurisdiction))
    if isinstance(citation, NotUnderstood) or render(citation) == number:
        return None
    return render(citation)


def locator_problems(locator: str, number: str, jurisdiction: str) -> tuple[Problem, ...]:
    """What is wrong with a locator in a source of a number and jurisdiction. Empty where there is no grammar.

    The problems are about its ``form`` (not understood), its ``canonical`` form, the ``instrument`` (another one than
    the source's), a place ``outside`` what the source's number names, or that it is ``open-ended`` (names no passage).
    """
    if not has_grammar(jurisdiction):
        return ()
    land = country(jurisdiction)
    if land == "VN":
        if _SIMPLE_VN.fullmatch(locator):
            return ()
        citation = _read(locator, land)
        if isinstance(citation, Citation) and citation.instrument is None:
            return _own_problems(locator, land)
    elif (match := _SIMPLE.fullmatch(locator)) and _labels_fine(match[2]) and not _problems(match[1], number, land):
        return ()
    return _problems(locator, number, land)


@lru_cache(maxsize=4096)
def _labels_fine(labels: str) -> bool:
    return all(counts(label) for label in labels[1:-1].split(")("))


@lru_cache(maxsize=_CACHE)
def _own_problems(locator: str, land: str) -> tuple[Problem, ...]:
    citation = _read(locator, land)
    if isinstance(citation, NotUnderstood):
        return (("form", _said(citation)),)
    problems = []
    if not citation.places:
        problems.append(("form", f"{shown(locator)} names an instrument and no place in it"))
    if (whole := render(citation)) != locator:
        problems.append(("canonical", f"{shown(locator)} is written {whole!r}"))
    if not all(place.names_passage for place in citation.places):
        what = '"et seq."' if citation.open_ended else "a whole part or a range of sections"
        problems.append(("open-ended", f"{shown(locator)} is {what}, which is no passage"))
    return tuple(problems)


@lru_cache(maxsize=_CACHE)
def _problems(locator: str, number: str, land: str) -> tuple[Problem, ...]:
    own = _own_problems(locator, land)
    if locator == number:
        return own
    citation, source = _read(locator, land), _read(number, land)
    if isinstance(citation, NotUnderstood) or isinstance(source, NotUnderstood):
        return own
    if covers(source, citation):
        return own
    if not same_instrument(source, citation):
        return (*own, ("instrument", f"{shown(locator)} is not of the instrument of its source, {shown(number)}"))
    return (*own, ("outside", f"{shown(locator)} is not within {shown(number)}, which is what the source covers"))


def problems_of(package: Package) -> Iterator[tuple[int, str, str]]:
    """Number of the record among the citations, what it is about and what to say, for every problem of a package.

    Nothing is said where citations or sources could not be read to the end: what they lack is unread, not wrong.
    """
    if package.incomplete & {"citations", "sources"}:
        return
    of = table_specs()["sources"].position
    sources = {
        row[of["id"]]: (row[of["number"]], row[of["jurisdiction"]])
        for row in package.rows("sources")
        if row[of["kind"]] in CITED_BY_FORM
    }
    of = table_specs()["citations"].position
    source, locator = of["source"], of["locator"]
    for number, row in enumerate(package.rows("citations")):
        cited = sources.get(row[source])
        if cited is not None and row[locator]:
            for about, message in locator_problems(row[locator], *cited):
                yield number, about, message
