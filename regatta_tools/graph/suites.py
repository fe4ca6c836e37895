"""Suites as triples beside the package, for questions about what they claim."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from regatta_tools.graph import rdf
from regatta_tools.suites.reader import Suite, load_suite
from regatta_tools.tables.model import load_model


def triples(suites: Iterable[Suite]) -> str:
    """Suites, their scenarios and claims in N-Triples. A scenario is ``suite/SUITE/SCENARIO`` below the base of ids."""
    own = load_model()["prefixes"]["regatta"]
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = []
    for suite in suites:
        whole = f"<{rdf.record_iri('suite', suite.id)}>"
        lines.append(f"{whole} {kind} <{own}Suite> .")
        if suite.cell:
            lines.append(f"{whole} <{own}cellName> {rdf.literal(suite.cell)} .")
        for scenario in suite.scenarios:
            name = f"<{rdf.record_iri('suite', suite.id, scenario.id)}>"
            lines += [f"{name} {kind} <{own}Scenario> .", f"{whole} <http://www.w3.org/ns/prov#hadMember> {name} ."]
            for key, value in scenario.claims:
                relation = f"claimed{'Item' if key == 'items' else key.capitalize()}"
                for text in value if isinstance(value, tuple) else (value,):
                    lines.append(f"{name} <{own}{relation}> {rdf.literal(rdf.nfc(text))} .")
    return "".join(f"{line}\n" for line in lines)


def read(paths: Iterable[Path | str]) -> list[Suite]:
    """The suites of files. Raises :class:`~regatta_tools.errors.InputError`."""
    return [load_suite(path) for path in paths]
