"""From the words of a citation to the places in a held text that it names."""

from __future__ import annotations

from functools import lru_cache

from regatta_tools.provenance.citation_model import NotUnderstood, Place
from regatta_tools.provenance.citations import country, has_grammar, parse
from regatta_tools.provenance.passages import Target

#: Languages of the texts of the law, by country.
_LANGUAGES = {"VN": "vi"}


def language_of(jurisdiction: str) -> str:
    """The language in which the texts of a jurisdiction are read: ``vi`` for Viet Nam, else ``en``."""
    return _LANGUAGES.get(country(jurisdiction), "en")


@lru_cache(maxsize=4096)
def targets_of(locator: str, jurisdiction: str) -> tuple[tuple[Target, ...], str]:
    """The places that a locator names, all of them; none, and why, where it names no passage.

    A range of sections and "et seq." name no passage: nobody can say which of their words carry a duty.
    """
    if not locator.strip():
        return (), "the citation has no locator"
    if not has_grammar(jurisdiction):
        return (), f"there is no citation grammar for {jurisdiction}: the locator cannot be looked up"
    try:
        citation = parse(locator, jurisdiction)
    except NotUnderstood as error:
        return (), str(error)
    if not citation.places:
        return (), "the locator names a whole instrument and no place in it"
    targets = []
    for place in citation.places:
        if not place.names_passage or not place.section:
            return (), "the locator names no single passage (a range of sections, et seq., or a whole part)"
        if place.last and not place.last_label:
            return (), "the locator names a range whose ends are not on one level"
        targets.append(Target(_section(place), place.subdivisions, place.last_label))
    return tuple(targets), ""


def _section(place: Place) -> str:
    """The section as headings name it: ``Điều 5``, ``1005.6``, and ``155/20`` where an act holds the section."""
    act = next((s.label for s in place.path if s.level == "act"), "")
    vietnamese = any(s.level == "Điều" for s in place.path)
    return f"Điều {place.section}" if vietnamese else f"{act}/{place.section}" if act else place.section
