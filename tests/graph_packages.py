"""Packages made in memory, sound or not, for the tests of the graph and of its files."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import Package, Record, table_specs

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# Bug case A11, and what else has bitten: percent signs, dot segments, nothing at all.
ODD_IDS = [
    "12 CFR § 1005.6",
    'OB "quoted"',
    "a/b#c",
    "Điều 5",
    "a%20b",
    "a b",
    ".",
    "..",
    "a..b",
    "",
    "?x=1&y",
    "<\\^`{|>",
    "@type",
    "_:b",
    "http://x.invalid/",
]


def in_memory(records: dict[str, list[dict[str, str]]]) -> Package:
    specs = table_specs()
    made = {}
    for name, rows in records.items():
        # As much of a table as a record asks for: its file, and the line of each row.
        table: Any = SimpleNamespace(file=f"{name}.csv", lines=list(range(2, len(rows) + 2)))
        made[name] = [Record(specs[name], row, table, index) for index, row in enumerate(rows)]
    return Package(Path("."), {}, made)


def ordered(rows: Any) -> list[tuple[tuple[str, str], ...]]:
    """Rows without the order that a graph does not keep."""
    return sorted(tuple(sorted(row.items())) for row in rows)


def cell_text(field: dict[str, Any], *, filled: bool) -> st.SearchStrategy[str]:
    kind = field["kind"]
    name = st.from_regex(r"[a-z][a-z0-9]{0,3}(-[a-z0-9]{1,3}){0,2}", fullmatch=True)
    by_kind = {
        "enum": lambda: st.sampled_from([*load_model()["enums"][field["enum"]]["values"], "no such value"]),
        "ref": lambda: name | TEXT.filter(bool) | st.sampled_from([odd for odd in ODD_IDS if odd]),
        "date": lambda: st.dates().map(str) | st.just("2024-02-30"),
        "boolean": lambda: st.sampled_from(["true", "false", "yes"]),
        "uri": lambda: TEXT.filter(bool),
    }
    made = by_kind.get(kind, lambda: TEXT.filter(bool))().map(lambda t: unicodedata.normalize("NFC", t))
    return made if filled else st.just("") | made


@st.composite
def packages(draw: st.DrawFn) -> dict[str, list[dict[str, str]]]:
    """A few records of a few tables, sound or not, with keys of their own."""
    drawn: dict[str, list[dict[str, str]]] = {}
    taken: set[Any] = set()
    names = draw(st.lists(st.sampled_from(sorted(table_specs())), min_size=1, max_size=3, unique=True))
    for table in names:
        spec = table_specs()[table]
        key = [spec.identifier] if spec.identifier else next(iter(spec.unique_keys.values()), [])
        for _ in range(draw(st.integers(1, 2))):
            row = {n: draw(cell_text(f, filled=n in key)) for n, f in spec.fields.items()}
            name = (None if spec.identifier else table, *(row[n] for n in key))
            if name not in taken:
                taken.add(name)
                drawn.setdefault(table, []).append(row)
    return drawn


def triples(graph: Any) -> set[tuple[str, str, str, str, str]]:
    """Subject, predicate, object, language and datatype of each triple of an rdflib graph or a pyoxigraph store."""
    found: Counter[tuple[str, str, str, str, str]] = Counter()
    if hasattr(graph, "quads_for_pattern"):
        for quad in graph:
            o = quad.object
            more = (o.language or "", o.datatype.value) if hasattr(o, "language") else ("", "iri")
            found[quad.subject.value, quad.predicate.value, o.value, *more] += 1
    else:
        for s, p, o in graph:
            more = ("", "iri")
            if hasattr(o, "language"):
                of_language = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
                plain = "http://www.w3.org/2001/XMLSchema#string"
                more = (o.language or "", of_language if o.language else str(o.datatype or plain))
            found[str(s), str(p), str(o), *more] += 1
    return set(found)
