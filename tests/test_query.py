"""Questions to the package: right answers by two engines, and nothing but answers."""

from __future__ import annotations

import csv
import http.server
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from regatta_tools import paths
from regatta_tools.cli.query import query as command
from regatta_tools.errors import InputError
from regatta_tools.graph import export, query, rdf
from regatta_tools.tables.package import Package, read

rdflib = pytest.importorskip("rdflib")
ox = pytest.importorskip("pyoxigraph")

ROOT = Path(__file__).resolve().parent.parent
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
POSIX = pytest.mark.skipif(os.name != "posix", reason="no resource limits and no SIGINT to a child on this system")
A10 = ['x") || true) } #', "x\\u0022) || true) } #", "x') || true) } #", "x\\", '"""', "?actor", "%s"]


@pytest.fixture(scope="module")
def package() -> Package:
    return read(paths.root())


@pytest.fixture(scope="module")
def graph(package: Package) -> Any:
    return rdflib.Graph().parse(data="".join(rdf.ntriples(package)), format="nt")


@pytest.fixture(scope="module")
def two_cells(package: Package) -> tuple[Package, Any]:
    """One cell of each language, for rdflib: over all five it takes a minute for one of the queries."""
    part = export.of_cells(package, ["banking-vn", "insurance-us"])
    return part, rdflib.Graph().parse(data="".join(rdf.ntriples(part)), format="nt")


@pytest.fixture(scope="module")
def store(package: Package) -> Any:
    return rdf.store(package)


def by_rdflib(graph: Any, package: Package, name: str, values: dict[str, str]) -> query.Result:
    """The same question to rdflib, with the values bound by initBindings."""
    asked = query.named_query(name)
    bindings = {}
    for key, (kind, value) in query.bind(asked, values).items():
        form, text, datatype = query.binding_term(key, kind, value, package)
        plain = datatype in ("", rdf.XSD + "string")  # rdflib tells "a" from "a"^^xsd:string
        bindings[key] = (
            rdflib.URIRef(text)
            if form == "iri"
            else rdflib.Literal(text, datatype=None if plain else rdflib.URIRef(datatype))
        )
    found = graph.query(asked.text, initNs=query.prefixes(), initBindings=bindings)
    answer = {"kind": "table", "columns": [str(v) for v in found.vars], "rows": []}
    for row in found:
        answer["rows"].append(
            [
                None if t is None
                else ["iri", str(t), ""] if isinstance(t, rdflib.URIRef)
                else ["literal", str(t), str(t.datatype or rdf.XSD + "string")]
                for t in row
            ]
        )  # fmt: skip
    return query._result(answer, asked.hidden)


def by_oxigraph(store: Any, text: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """pyoxigraph as the child calls it, without the child."""
    found = store.query(text, prefixes=query.prefixes(), substitutions={ox.Variable(k): v for k, v in values.items()})
    return [tuple(solution) for solution in found]


# Right answers

CONTEXT = ("roles", "metrics", "handoffs", "rules")
CASES = [
    ("cell-overview", {}),
    ("cell-overview", {"cell": "insurance-us"}),
    ("facts-of-requirement", {"requirement": "insurance-us-r07"}),
    ("facts-of-requirement", {"requirement": "insurance-us-r01"}),
    ("faults-with-ground-truth", {}),
    ("faults-with-ground-truth", {"fault": "insurance-us-fault-gross-premium-mlr", "cell": "insurance-us"}),
    ("obligations-by-actor", {}),
    ("obligations-by-actor", {"contains": "INSURER", "cell": "insurance-us"}),
    ("obligations-by-actor", {"contains": A10[0]}),
    ("obligations-by-jurisdiction", {}),
    ("obligations-by-jurisdiction", {"jurisdiction": "US-CA"}),
    ("obligations-by-jurisdiction", {"jurisdiction": "US", "cell": "insurance-us"}),
    ("obligations-by-jurisdiction", {"jurisdiction": "VN", "language": "vi"}),
    ("obligations-by-actor", {"language": "vi", "cell": "banking-vn"}),
    ("faults-with-ground-truth", {"language": "vi"}),
    ("obligations-by-source", {}),
    ("obligations-by-source", {"source": "us-ca-ccr-10-2695", "cell": "insurance-us"}),
    ("requirements-without-fault", {}),
    ("requirements-without-fault", {"cell": "insurance-us"}),
    ("short-deadlines", {}),
    ("short-deadlines", {"days": "2.5", "cell": "insurance-us"}),
    ("short-deadlines", {"days": "100000"}),
    *((f"context-{kind}", {}) for kind in CONTEXT),
    *((f"context-{kind}", {"cell": "banking-vn", "language": "vi"}) for kind in CONTEXT),
    ("rules-without-scenario", {}),
    ("rules-without-scenario", {"cell": "banking-vn", "language": "vi"}),
    ("obligations-without-scenario", {}),
    ("obligations-without-scenario", {"cell": "banking-vn"}),
    ("sources-changed-since", {"since": "1900-01-01"}),
    ("sources-changed-since", {"since": "2020-07-02"}),
]


def test_every_named_query_has_a_case_and_every_parameter_a_value():
    given_values = {(name, key) for name, values in CASES for key in values}
    assert {name for name, _ in CASES} == set(query.named())
    assert {(q.name, p) for q in query.named().values() for p in q.parameters} <= given_values
    for q in query.named().values():
        assert q.title and "ORDER BY" in q.text and all(p.help for p in q.parameters.values())


@pytest.mark.parametrize(("name", "values"), CASES, ids=lambda c: c if isinstance(c, str) else ",".join(c) or "-")
def test_two_engines_give_one_answer(two_cells: tuple[Package, Any], name: str, values: dict[str, str]):
    ours = query.run_named(two_cells[0], name, values)
    theirs = by_rdflib(two_cells[1], two_cells[0], name, values)
    assert ours.columns == theirs.columns and ours.kind == "table"
    assert ours.rows == theirs.rows
    assert len(set(ours.rows)) == len(ours.rows)
    assert not set(query.named_query(name).hidden) & set(ours.columns)


def test_obligations_by_source_are_the_citations(package: Package):
    result = query.run_named(package, "obligations-by-source")
    at = [result.columns.index(c) for c in ("source", "locator", "role", "requirement")]
    found = sorted(tuple(row[i] for i in at) for row in result.rows)
    assert found == sorted((c["source"], c["locator"], c["role"], c["requirement"]) for c in package.table("citations"))
    one = query.run_named(package, "obligations-by-source", {"source": found[0][0]})
    assert one.rows == [r for r in result.rows if r[0] == found[0][0]]


def test_obligations_by_actor_are_a_filter(package: Package):
    result = query.run_named(package, "obligations-by-actor", {"contains": "Insurer"})
    wanted = [r for r in package.table("requirements") if r["status"] == "active" and "insurer" in r["actor"].lower()]
    assert sorted(r[1] for r in result.rows) == sorted(r.key for r in wanted)
    assert 0 < len(wanted) < len(package.table("requirements"))


def test_short_deadlines_are_the_periods_of_the_tables(package: Package):
    days = {"minute": Fraction(1, 1440), "hour": Fraction(1, 24), "day": 1, "week": 7, "month": 30, "year": 365}
    active = {r.key for r in package.table("requirements") if r["status"] == "active"}
    facts = [f for f in package.table("facts") if f["kind"] == "duration" and f["requirement"] in active]
    for limit in ("30", "1.5", "100000"):
        result = query.run_named(package, "short-deadlines", {"days": limit})
        wanted = sorted(
            (f["requirement"], f["label"], f["value"], f["unit"])
            for f in facts
            if Fraction(f["value"]) * days[f["unit"]] < Fraction(limit)
        )
        column = result.columns.index
        found = [
            tuple(row[column(c)] for c in ("requirement", "what", "value", "unit")) for row in result.rows
        ]  # fmt: skip
        assert sorted(found) == wanted
        assert [row[0] for row in result.rows] == sorted(row[0] for row in result.rows)
    assert len(found) == len(facts) > 20


def test_hours_are_parts_of_a_day():
    nt = "".join(
        f"<http://x/{i}> <{p}> {o} .\n"
        for i, (value, unit) in enumerate([("36", "HR"), ("90", "MIN"), ("2", "WK"), ("10", "HR")])
        for p, o in [
            (rdf.RDF_TYPE, "<https://w3id.org/regatta/Fact>"),
            ("http://purl.org/dc/terms/type", "<https://w3id.org/regatta/DurationFact>"),
            ("https://w3id.org/regatta/unit", f"<http://qudt.org/vocab/unit/{unit}>"),
            ("https://w3id.org/regatta/value", f'"{value}"'),
            ("https://w3id.org/regatta/comparator", "<http://x/c>"),
            ("http://www.w3.org/2000/01/rdf-schema#label", '"l"'),
            ("https://w3id.org/regatta/requirement", "<http://x/r>"),
            ("https://w3id.org/regatta/citation", "<http://x/cit>"),
        ]
    ) + "".join(
        f"<http://x/{s}> <{p}> {o} .\n"
        for s, p, o in [
            ("r", "https://w3id.org/regatta/cell", "<http://x/cell>"),
            ("r", "https://w3id.org/regatta/recordStatus", "<https://w3id.org/regatta/Active>"),
            ("r", "http://purl.org/dc/terms/title", '"t"'),
            ("cit", "http://www.w3.org/ns/oa#hasSource", "<http://x/s>"),
            ("cit", "https://w3id.org/regatta/locator", '"l"'),
            ("s", "http://purl.org/dc/terms/title", '"t"'),
        ]
    )
    limit = ox.Literal("30", datatype=ox.NamedNode(rdf.XSD + "decimal"))
    rows = by_oxigraph(rdf.store_of(nt), query.named_query("short-deadlines").text, {"days": limit})
    assert [Decimal(row[0].value) for row in rows] == [Decimal("0.06"), Decimal("0.42"), Decimal("1.5"), Decimal(14)]


def test_sources_changed_since_looks_at_three_dates(package: Package):
    for since in ("2000-01-01", "2021-07-14", "2021-07-15"):
        result = query.run_named(package, "sources-changed-since", {"since": since})
        wanted = [s.key for s in package.table("sources") if max(s["adopted"], s["effective"], s["amended"]) >= since]
        assert [row[0] for row in result.rows] == sorted(wanted)
    assert 0 < len(wanted) < len(package.table("sources"))


def test_requirements_without_fault_are_the_rest(package: Package):
    broken = {link["requirement"] for link in package.table("fault_requirements")}
    active = {r.key for r in package.table("requirements") if r["status"] == "active"}
    result = query.run_named(package, "requirements-without-fault")
    assert [row[0] for row in result.rows] == sorted(active - broken)
    assert broken


def test_faults_show_every_value_and_every_broken_obligation(package: Package):
    result = query.run_named(package, "faults-with-ground-truth")
    rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    links = {(x["fault"], x["requirement"]) for x in package.table("fault_requirements")}
    assert {(r["fault"], r["requirement"]) for r in rows} == links
    values = {(x["fault"], x["parameter"], x["true_expr"], x["faulty_expr"]) for x in package.table("fault_values")}
    valued = [r for r in rows if r["parameter"] is not None]
    assert {(r["fault"], r["parameter"], r["true_value"], r["faulty_value"]) for r in valued} == values
    # A broken obligation on which no value of its fault rests is shown all the same.
    assert {(r["fault"], r["requirement"]) for r in rows if r["parameter"] is None}.isdisjoint(
        (r["fault"], r["requirement"]) for r in valued
    )
    assert all(r["locator"] and r["source"] and r["duty"] for r in rows)
    facts = {f.key: f for f in package.table("facts")}
    for value in package.table("fault_values"):
        if value["fact"]:
            fact = facts[value["fact"]]
            beside = [r for r in rows if (r["fault"], r["parameter"]) == (value["fault"], value["parameter"])]
            citation = package.by_id[fact["citation"]]
            assert [(r["requirement"], r["source"], r["locator"]) for r in beside] == [
                (fact["requirement"], citation["source"], citation["locator"])
            ]


def test_overview_counts(package: Package):
    result = query.run_named(package, "cell-overview")
    rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    assert [r["cell"] for r in rows] == sorted(c.key for c in package.table("cells"))
    for row in rows:
        cell = row["cell"]
        citations = package.cell_records("citations", cell)
        assert (row["facts"], row["citations"], row["faults"]) == (
            len(package.cell_records("facts", cell)), len(citations), len(package.cell_records("faults", cell))
        )  # fmt: skip
        assert row["sources"] == len({c["source"] for c in citations})
        assert row["obligations"] == len(package.cell(cell).requirements)
        assert row["gold_probes"] == len(package.cell_records("gold_probes", cell))


# Against the files, read by other means: no package, no graph, no schema

INSTRUMENTS = ROOT / "instruments"
EVERY_CELL = sorted(path.name for path in INSTRUMENTS.iterdir() if path.is_dir())


def of_file(table: str, cell: str = "") -> list[dict[str, str]]:
    """The rows of a table of one cell, or of all cells, by the csv module alone."""
    found = []
    for folder in (
        [INSTRUMENTS] if table in ("sources", "cells") else [INSTRUMENTS / c for c in EVERY_CELL if cell in ("", c)]
    ):
        path = folder / f"{table}.csv"
        if not path.exists():
            path = folder / "context" / f"{table}.csv"
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                found += list(csv.DictReader(file))
    return found


def counted(name: str, cell: str) -> Any:
    """What a named query should list for a cell (all cells where it is empty), as a sorted list of keys."""
    requirements = {r["id"]: r for r in of_file("requirements", cell)}
    active = {key for key, r in requirements.items() if r["status"] == "active"}
    citations = of_file("citations", cell)
    faults = of_file("faults", cell)
    links = [(x["fault"], x["requirement"]) for x in of_file("fault_requirements", cell)]
    match name:
        case "cell-overview":
            rows = []
            for c in [c["id"] for c in of_file("cells") if cell in ("", c["id"])]:
                mine = of_file("citations", c)
                rows.append((
                    c, sum(r["status"] == "active" for r in of_file("requirements", c)), len(of_file("facts", c)),
                    len(mine), len({m["source"] for m in mine}), len(of_file("faults", c)),
                    len(of_file("gold_probes", c)),
                ))  # fmt: skip
            return sorted(rows)
        case "obligations-by-actor" | "obligations-by-jurisdiction":
            return sorted(active)
        case "obligations-by-source":
            return sorted((c["source"], c["requirement"], c["role"], c["locator"]) for c in citations)
        case "requirements-without-fault":
            return sorted(active - {requirement for _, requirement in links})
        case "obligations-without-scenario":
            labels = of_file("gold_labels", cell)
            return sorted(active - {label["target"] for label in labels if label["label"] == "yes"})
        case "context-roles":
            measured = [link["role"] for link in of_file("role_metrics", cell)]
            roles = of_file("roles", cell)
            return sorted((r["id"], r["name_en"], r["escalates_to"], measured.count(r["id"])) for r in roles)
        case "context-metrics":
            measured = [(link["concept"], link["role"]) for link in of_file("role_metrics", cell)]
            metrics = [c for c in of_file("concepts", cell) if c["formula_en"]]
            links = [(c, role) for c in metrics for role in [r for m, r in measured if m == c["id"]] or [""]]
            return sorted((c["id"], c["formula_en"], c["unit"], c["healthy_range_en"], role) for c, role in links)
        case "context-handoffs":
            keys = ("id", "from_role", "to_role", "trigger_en", "time_limit_en", "leans_on")
            return sorted(tuple(h[k] for k in keys) for h in of_file("handoffs", cell))
        case "rules-without-scenario":  # no suite is named, so none claims anything
            return sorted(r["id"] for r in of_file("rules", cell))
        case "context-rules":
            leaning = [i["leans_on"] for t in ("concepts", "decisions", "handoffs") for i in of_file(t, cell)]
            keys = ("id", "statement_en", "source", "locator")
            return sorted((*(r[k] for k in keys), leaning.count(r["id"])) for r in of_file("rules", cell))
        case "short-deadlines":
            days = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}
            periods = [f for f in of_file("facts", cell) if f["kind"] == "duration" and f["requirement"] in active]
            return sorted(
                (f["requirement"], f["label"], f["value"], f["unit"])
                for f in periods
                if float(f["value"]) * days[f["unit"]] < 30
            )
        case "faults-with-ground-truth":
            facts = {f["id"]: f for f in of_file("facts", cell)}
            basis = [(c["requirement"], c["source"], c["locator"]) for c in citations if c["role"] == "basis"]
            place = {c["id"]: (c["source"], c["locator"]) for c in citations}
            rows = []
            for fault in (f["id"] for f in faults):
                values = [v for v in of_file("fault_values", cell) if v["fault"] == fault]
                for requirement in (r for f, r in links if f == fault):
                    beside = [v for v in values if v["fact"] and facts[v["fact"]]["requirement"] == requirement]
                    rows += [(fault, requirement, v["parameter"], *place[facts[v["fact"]]["citation"]]) for v in beside]
                    loose = [v["parameter"] for v in values if not v["fact"]]
                    if not loose and not beside:
                        loose = [""]
                    rows += [(fault, r, v, s, where) for v in loose for r, s, where in basis if r == requirement]
            return sorted(rows)
    raise AssertionError(name)


BY_CELL = [name for name, asked in sorted(query.named().items()) if "cell" in asked.parameters]
KEYS = {
    "cell-overview": ("cell", "obligations", "facts", "citations", "sources", "faults", "gold_probes"),
    "obligations-by-source": ("source", "requirement", "role", "locator"),
    "short-deadlines": ("requirement", "what", "value", "unit"),
    "context-roles": ("role", "name", "passes_on_to", "metrics"),
    "context-metrics": ("metric", "formula", "unit", "healthy_range", "role"),
    "context-handoffs": ("handoff", "from_role", "to_role", "trigger", "how_soon", "leans_on"),
    "rules-without-scenario": ("rule",),
    "context-rules": ("rule", "statement", "source", "locator", "leaning"),
    "faults-with-ground-truth": ("fault", "requirement", "parameter", "source", "locator"),
}


def listed(result: query.Result, columns: tuple[str, ...]) -> list[Any]:
    at = [result.columns.index(column) for column in columns]
    rows = [tuple("" if row[i] is None else row[i] for i in at) for row in result.rows]
    return sorted(row[0] if len(columns) == 1 else row for row in rows)


# Each query over all cells, and over one cell in turn: each is a child process.
@pytest.mark.parametrize(
    ("name", "cell"), [(n, c) for i, n in enumerate(BY_CELL) for c in ("", EVERY_CELL[i % len(EVERY_CELL)])]
)
def test_each_query_lists_what_the_files_of_each_cell_hold(package: Package, name: str, cell: str):
    result = query.run_named(package, name, {"cell": cell} if cell else {})
    wanted = counted(name, cell)
    assert listed(result, KEYS.get(name, ("requirement",))) == wanted
    assert wanted or name in ("short-deadlines", "obligations-without-scenario")
    titles = {s["id"]: s["title_vi"] or s["title"] for s in of_file("sources")}
    if "source_title" in result.columns:
        shown = set(listed(result, ("source", "source_title")))
        assert shown == {(source, titles[source]) for source, _ in shown}
        assert cell != "banking-vn" or any(ord(c) > 0x1E9F for _, title in shown for c in title)


@pytest.mark.parametrize("cell", EVERY_CELL)
def test_the_facts_of_each_obligation_are_those_of_the_files(package: Package, store: Any, cell: str):
    text = query.named_query("facts-of-requirement").text
    facts = of_file("facts", cell)
    titles = {s["id"]: s["title_vi"] or s["title"] for s in of_file("sources")}
    cited = {c["id"]: c for c in of_file("citations", cell)}
    for requirement in (r["id"] for r in of_file("requirements", cell)):
        # The engine without the child: 125 children would take a minute.
        found = store.query(
            text, prefixes=query.prefixes(),
            substitutions={ox.Variable("requirement"): ox.NamedNode(rdf.record_iri(requirement))},
        )  # fmt: skip
        rows = sorted((rdf.short(s["fact"].value), s["value"].value, s["source_title"].value) for s in found)
        assert rows == sorted(
            (f["id"], f["value"], titles[cited[f["citation"]]["source"]])
            for f in facts
            if f["requirement"] == requirement
        )


@pytest.mark.parametrize("since", ["1900-01-01", "2024-07-01", "2026-01-01", "2030-01-01"])
def test_changed_sources_are_those_of_the_file(package: Package, since: str):
    dates = ("adopted", "effective", "amended")
    wanted = [s for s in of_file("sources") if any(s[d] >= since for d in dates if s[d])]
    result = query.run_named(package, "sources-changed-since", {"since": since})
    assert listed(result, ("source", "title", "title_en")) == sorted(
        (s["id"], s["title_vi"] or s["title"], s["title"] if s["title_vi"] else "") for s in wanted
    )


def test_duties_come_in_the_language_asked_for(package: Package):
    result = query.run_named(package, "obligations-by-jurisdiction", {"language": "vi"})
    assert listed(result, ("requirement", "duty")) == sorted(
        (r["id"], r["duty_vi"]) for r in of_file("requirements") if r["duty_vi"]
    )
    english = query.run_named(package, "obligations-by-jurisdiction", {})
    assert listed(english, ("duty",)) == sorted(r["duty_en"] for r in of_file("requirements"))


# Bound, never pasted (bug case A10)


@pytest.mark.parametrize("payload", A10)
def test_payloads_find_nothing(package: Package, payload: str):
    assert query.run_named(package, "obligations-by-actor", {"contains": payload}).rows == []


def test_the_payloads_would_work_if_they_were_pasted(graph: Any):
    pasted = 'SELECT ?v { ?r regatta:actor ?v FILTER(CONTAINS(STR(?v), "%s")) }'
    assert len(graph.query(pasted % "no such words", initNs=query.prefixes())) == 0
    for payload in A10[:2]:
        assert len(graph.query(pasted % payload, initNs=query.prefixes())) > 0


@settings(RELAXED, max_examples=60)
@given(contains=st.text("aàâbcđeêinôơrsuưt \"'\\u0022{}()|#\n§", max_size=6))
@example(contains='"')
def test_any_text_is_a_filter_and_no_more(package: Package, store: Any, contains: str):
    asked = query.named_query("obligations-by-actor").text
    contains = unicodedata.normalize("NFC", contains)
    rows = by_oxigraph(store, asked, {"contains": ox.Literal(contains), "language": ox.Literal("en")})
    wanted = [
        r for r in package.table("requirements") if r["status"] == "active" and contains.lower() in r["actor"].lower()
    ]
    assert sorted(rdf.short(row[1].value) for row in rows) == sorted(r.key for r in wanted)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", "2024-02-30"), ("date", "20240229"), ("date", "today"), ("integer", "1.5"), ("integer", "x"),
        ("integer", "9" * 30), ("decimal", "1,5"), ("decimal", "1e3"), ("decimal", ""), ("id", "insurance-us-r99"),
        ("id", "Điều 5"), ("colour", "red"),
    ],
)  # fmt: skip
def test_values_of_another_type_are_refused(package: Package, kind: str, value: str):
    with pytest.raises(InputError) as caught:
        query.run_query(package, "SELECT ?x { ?x ?p ?o }", {"x": (kind, value)})
    assert caught.value.code == "U124" and "'x'" in caught.value.message


def test_a_mistyped_id_is_told_what_is_near(package: Package):
    with pytest.raises(InputError) as caught:
        query.run_named(package, "facts-of-requirement", {"requirement": "insurance-us-r7"})
    assert "insurance-us-r" in caught.value.mend


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("cell-overview", {"cell": "banking-us"}, ["no record of cells", "banking-vn", "insurance-us"]),
        ("requirements-without-fault", {"cell": "insurance-us-r01"}, ["an id in requirements", "insurance-us"]),
        ("facts-of-requirement", {"requirement": "insurance-us"}, ["an id in cells", "insurance-us-r"]),
        ("facts-of-requirement", {"requirement": ""}, ["no record of requirements"]),
        ("faults-with-ground-truth", {"fault": "insurance-us-fault-sar-tiping"}, ["insurance-us-fault-sar-tipping"]),
        ("obligations-by-source", {"source": "vn-law-32-2024"}, ["vn-law-32-2024-qh15"]),
        ("obligations-by-jurisdiction", {"jurisdiction": "US-WY"}, ["has this jurisdiction", "US-CA", "VN"]),
        ("obligations-by-jurisdiction", {"jurisdiction": "vn"}, ["has this jurisdiction", "VN"]),
    ],
)
def test_a_name_that_is_not_there_is_no_empty_answer(
    package: Package, name: str, values: dict[str, str], words: list[str]
):
    with pytest.raises(InputError) as caught:
        query.run_named(package, name, values)
    assert caught.value.code == "U124" and caught.value.exit_code == 2
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_every_parameter_that_names_a_record_says_of_which_table():
    for asked in query.named().values():
        for name, parameter in asked.parameters.items():
            assert parameter.type != "id", f"{asked.name}: {name}"
    for kind in ("id:nothing", "id:fault_values", "column:nothing", "id:", "column", "text:topic"):
        with pytest.raises(InputError):
            query.parse_header(f"# param: a {kind} optional -- help\nASK {{}}")
    known = query.parse_header(
        "# param: a id:sources optional -- help\n# param: b column:topic required -- help\nASK {}"
    )
    assert [p.type for p in known.parameters.values()] == ["id:sources", "column:topic"]


def test_an_empty_answer_names_the_records_that_are_not_there():
    text = "SELECT ?p { rid:insurance-us-r99 ?p rid:insurance-us . FILTER('rid:no-such' != \"x\") } # rid:neither"
    result = invoke("--text", text, "--package", str(ROOT))
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "The query can be read and found nothing.", "  rid:insurance-us-r99 is no record of the package"
    ]  # fmt: skip


def test_words_that_the_graph_does_not_have_are_named_and_no_others():
    package = read(ROOT)
    own = rdf.id_base().removesuffix("id/")
    used = set(re.findall(f"<{re.escape(own)}([A-Za-z]+)>", "".join(rdf.ntriples(package))))
    assert len(used) > 60
    assert query.unknown_names(" ".join(f"regatta:{word}" for word in used), package) == []
    for name, asked in query.named().items():
        assert query.unknown_names(asked.text, package) == [], name
    found = query.unknown_names("ASK { ?r regatta:recordStatuss regatta:Retired ; dcterms:nosuch regatta:at }", package)
    assert [line.split()[0] for line in found] == ["regatta:recordStatuss", "regatta:at"] and "recordStatus" in found[0]


@pytest.mark.parametrize(
    ("name", "values", "code", "word"),
    [
        ("obligations", {}, "U123", "obligations-by-source"),
        ("facts-of-requirement", {}, "U124", "requirement"),
        ("sources-changed-since", {}, "U124", "since"),
        ("short-deadlines", {"day": "3"}, "U124", "days"),
    ],
)
def test_unknown_and_missing_names(package: Package, name: str, values: dict[str, str], code: str, word: str):
    with pytest.raises(InputError) as caught:
        query.run_named(package, name, values)
    assert caught.value.code == code and word in str(caught.value)


def test_a_variable_that_is_not_projected_cannot_be_bound(package: Package):
    with pytest.raises(InputError) as caught:
        query.run_query(package, "SELECT ?s { ?s ?p ?o FILTER(?o = ?w) }", {"w": ("text", "US")})
    assert caught.value.code == "U124" and "?w" in caught.value.message


def test_bound_would_lie_about_a_parameter(package: Package, store: Any):
    text = "SELECT ?s ?w { ?s a regatta:Cell FILTER(!BOUND(?w) || ?s = ?w) }"
    lie = by_oxigraph(store, text, {"w": ox.NamedNode("http://x/no-cell")})
    assert lie, "pyoxigraph now binds before BOUND: the refusal can go"
    with pytest.raises(InputError) as caught:
        query.run_query(package, text, {"w": ("text", "x")})
    assert caught.value.code == "U124" and caught.value.place == "line 1, column 42"


@pytest.mark.parametrize(
    "header",
    [
        "# param: a text", "# param: a text optional", "# param: a colour optional -- help",
        "# param: a text maybe -- help", "# hide:", "# param: a-b text optional -- help",
        "# param: a text optional -- one\n# param: a text optional -- two",
    ],
)  # fmt: skip
def test_header_lines_that_are_not_understood(header: str):
    with pytest.raises(InputError) as caught:
        query.parse_header(f"# a comment\n{header}\nSELECT * {{}}", origin="q.rq")
    assert caught.value.code == "U124" and re.match(r"q\.rq:[23]$", caught.value.place)


# Read-only and offline


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    hits: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hits.append(self.path)
            self.send_response(500)
            self.end_headers()

        do_GET = do_HEAD = do_POST

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/", hits
        made.shutdown()


REMOTE = [
    ("SELECT * { SERVICE <{u}> { ?s ?p ?o } }", "line 1, column 12"),
    ("SELECT * {\n  ?a ?b ?c .\n  sErViCe silent <{u}> { ?s ?p ?o } }", "line 3, column 3"),
    ("SELECT * { \\u0053ERVICE <{u}> { ?s ?p ?o } }", "line 1, column 12"),
    ("SELECT * { S\\U00000045RVICE <{u}> { ?s ?p ?o } }", "line 1, column 12"),
    ("SELECT * { { SELECT ?s { OPTIONAL { SERVICE <{u}> { ?s ?p ?o } } } } }", None),
    ("SELECT * { { } UNION { SERVICE <{u}> { ?s ?p ?o } } }", None),
    ("SELECT * { ?a ?b ?c MINUS { SERVICE <{u}> { ?s ?p ?o } } }", None),
    ("SELECT * { ?a ?b ?c FILTER NOT EXISTS { SERVICE <{u}> { ?s ?p ?o } } }", None),
    ("SELECT (EXISTS { SERVICE <{u}> { ?s ?p ?o } } AS ?x) { ?a ?b ?c }", None),
    ("SELECT * { GRAPH ?g { SERVICE <{u}> { ?s ?p ?o } } }", None),
    ("SELECT * { VALUES ?u { <{u}> } SERVICE ?u { ?s ?p ?o } }", None),
    ("ASK { SERVICE <{u}> { ?s ?p ?o } }", None),
    ("CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <{u}> { ?s ?p ?o } }", None),
    ("DESCRIBE ?s { SERVICE <{u}> { ?s ?p ?o } }", None),
    ("SELECT * { # \\u000A SERVICE <{u}> { ?s ?p ?o } \n }", None),
    ("SELECT * FROM <{u}> { ?s ?p ?o }", "line 1, column 10"),
    ("SELECT * fRoM nAmEd <{u}> { GRAPH ?g { ?s ?p ?o } }", "line 1, column 10"),
    ("ASK FROM <{u}> { ?s ?p ?o }", None),
    ("DESCRIBE <{u}> FROM <{u}>", None),
]


@pytest.mark.parametrize(("text", "place"), REMOTE, ids=range(len(REMOTE)))
def test_nothing_remote_is_asked(package: Package, server: tuple[str, list[str]], text: str, place: str | None):
    url, hits = server
    with pytest.raises(InputError) as caught:
        query.run_query(package, text.replace("{u}", url))
    assert caught.value.code == "U122"
    assert place is None or caught.value.place == place
    assert hits == []


@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE <{u}>", "ASK { <{u}> ?p ?o }", "SELECT * { GRAPH <{u}> { ?s ?p ?o } }",
        "BASE <{u}> SELECT * { <x> ?p ?o }",
        "PREFIX x: <{u}> SELECT * { x:service x:from ?service FILTER(?service = 'SERVICE <{u}>' ) } # SERVICE <{u}> {}",
        "SELECT ('FROM <{u}>' AS ?from) ('a' AS ?service) {}", 'SELECT (\'\'\'it\'s "SERVICE" <{u}>\'\'\' AS ?x) {}',
        "SELECT (IRI('{u}') AS ?x) { }",
    ],
)  # fmt: skip
def test_addresses_and_words_that_only_look_like_it_are_allowed(package: Package, server: Any, text: str):
    url, hits = server
    query.run_query(package, text.replace("{u}", url))
    assert hits == []


@POSIX
def test_the_child_could_not_ask_if_it_wanted_to(server: tuple[str, list[str]]):
    """Were SERVICE to pass the check, the child has no sockets. Without that, pyoxigraph does ask."""
    url, hits = server
    code = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from regatta_tools.graph import query
if sys.argv[3] == "free":
    query._confine = lambda seconds: None
try:
    request = {"ntriples": "", "bindings": {}, "prefixes": {}, "cpu_seconds": 9, "max_rows": 9, "text": ""}
    query._evaluate(request, sys.argv[2])
except query._Refused as refused:
    print(refused.error["code"])
"""
    asked = f"SELECT * {{ SERVICE <{url}> {{ ?s ?p ?o }} }}"
    for how, seen in (("confined", 0), ("free", 1)):
        run = subprocess.run(
            [sys.executable, "-I", "-c", code, json.dumps(sys.path), asked, how],
            capture_output=True, text=True, timeout=60, check=False, encoding="utf-8",
        )  # fmt: skip
        assert run.stdout == "U122\n", run.stderr
        assert len(hits) == seen


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("LOAD <http://127.0.0.1:9/>", "U121", "line 1, column 1"),
        ("PREFIX a: <http://x/>\nInsert DATA { a:b a:c 1 }", "U121", "line 2, column 1"),
        ("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "U121", "line 1, column 1"),
        ("D\\u0045LETE WHERE { ?s ?p ?o }", "U121", "line 1, column 1"),
        ("WITH <http://x/> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "U121", "line 1, column 1"),
        ("CLEAR ALL", "U121", "line 1, column 1"),
        ("SELECT * { ?s ?p ?o } ; DROP ALL", "U120", None),
        ("SELECT *\n{ ?s nope:a ?o }", "U120", "line 2, column 6"),
        ("SELECT * {\n ?s ?p 'a\n }", "U120", "line 2, column 10"),
        ("SELECT * { ?s ?p }", "U120", None),
        ("", "U120", "line 1, column 1"),
        ("hello", "U120", None),
        ("SELECT ('\\u005Cu0022' AS ?x) {}", "U120", "line 1, column 10"),
        ("SELECT ('\\uD800' AS ?x) {}", "U120", "line 1, column 10"),
        ("SELECT ('\\UFFFFFFFF' AS ?x) {}", "U120", "line 1, column 10"),
        ("SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o }", "U120", None),
        ("SELECT ?a " + "{" * 3000 + "?a ?b ?c" + "}" * 3000, "U120", None),
    ],
)
def test_what_is_no_query_is_refused_with_its_place(text: str, code: str, place: str | None):
    # What the child does, without the child. Grouping without GROUP BY is seen by the engine alone.
    with pytest.raises(query._Refused) as caught:
        request = {"ntriples": "", "bindings": {}, "prefixes": {}, "cpu_seconds": 9, "max_rows": 9, "text": text}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(query, "_confine", lambda seconds: None)
            query._evaluate(request, query.check(text, query.prefixes()))
    error = caught.value.error
    assert error["code"] == code, error
    assert re.fullmatch(r"line \d+, column \d+", error["place"])
    assert place is None or error["place"] == place


@pytest.mark.parametrize(("text", "code"), [("CLEAR ALL", "U121"), ("SELECT * {\n ?s ?p }", "U120")])
def test_the_child_brings_its_refusals(package: Package, text: str, code: str):
    with pytest.raises(InputError) as caught:
        query.run_query(package, text, origin="my.rq")
    assert caught.value.code == code and re.fullmatch(r"my\.rq, line \d, column \d", caught.value.place)


@pytest.mark.parametrize("name", sorted(query.named()))
def test_named_queries_pass_the_check_that_they_are_spared(name: str):
    asked = query.named_query(name)
    assert query.check(asked.text, query.prefixes(), asked.parameters) == asked.text


def escaped(text: str, seed: int) -> str:
    """The text with about a third of its characters written as code-point escapes, some at full length."""
    dice = random.Random(seed)
    forms = (lambda c: c, lambda c: c, lambda c: c, lambda c: f"\\u{ord(c):04X}", lambda c: f"\\U{ord(c):08x}")
    return "".join(dice.choice(forms)(c) for c in text)


@settings(RELAXED, max_examples=60)
@given(st.integers(0, 10**9))
def test_escapes_neither_hide_a_service_nor_change_a_query(seed: int):
    with pytest.raises(query._Refused) as caught:
        query.check(escaped("SELECT * { ?a ?b 'Điều 5' . SERVICE <http://x/> { ?s ?p ?o } }", seed), {})
    assert caught.value.error["code"] == "U122"
    plain = "SELECT ?s { ?s ?p 'customer service, Điều 5' FILTER(?p != <http://x/face>) }"
    assert query.check(escaped(plain, seed), {}) == plain


FORBIDDEN = [
    "LOAD <{u}>", "LOAD SILENT <{u}> INTO GRAPH <{u}>", "INSERT DATA { <a:a> <a:b> 1 }",
    "DELETE DATA { <a:a> <a:b> 1 }", "INSERT { ?s ?p 1 } WHERE { ?s ?p ?o }", "DELETE WHERE { ?s ?p ?o }",
    "WITH <{u}> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "CLEAR DEFAULT", "DROP SILENT ALL", "CREATE GRAPH <{u}>",
    "ADD <{u}> TO DEFAULT", "MOVE DEFAULT TO <{u}>", "COPY DEFAULT TO <{u}>", "SELECT * FROM <{u}> { ?s ?p ?o }",
    "SELECT * FROM NAMED <{u}> { ?s ?p ?o }", "ASK FROM <{u}> { ?s ?p ?o }", "DESCRIBE ?s FROM <{u}> { ?s ?p 1 }",
    "CONSTRUCT { } WHERE { SERVICE SILENT <{u}> { ?s ?p ?o } }", "SELECT * { SERVICE <{u}> { ?s ?p ?o } }",
    "ASK { { SERVICE ?x { ?s ?p ?o } } UNION { } }",
]  # fmt: skip
#: What may stand before a query; names and words in it look like keywords of reading.
PROLOGUES = [
    "", "# SELECT * {}\n", "BASE <{u}>\n", "PREFIX select: <{u}>\n", "PREFIX ask: <{u}> # ASK {}\n",
    "PREFIX load: <{u}>\nPREFIX service: <{u}>\n", "# \\u000A\n", "\ufeff",
]  # fmt: skip


@settings(RELAXED, max_examples=250)
@given(st.sampled_from(FORBIDDEN), st.sampled_from(PROLOGUES), st.booleans(), st.integers(0, 10**6))
def test_no_dress_makes_an_update_or_an_address_pass(text: str, prologue: str, with_escapes: bool, seed: int):
    """Case, comments, line ends, prologues and code-point escapes, in any mixture."""
    dice = random.Random(seed)
    words = []
    for word in text.split(" "):
        if re.fullmatch("[A-Z]+", word):
            word = "".join(dice.choice((c.upper(), c.lower())) for c in word)
        words += [word, dice.choice((" ", "\n", "\t", " # SELECT ?x {\r\n", " #\n", "\r\n"))]
    dressed = (prologue + "".join(words)).replace("{u}", "http://127.0.0.1:9/")
    dressed = escaped(dressed, seed) if with_escapes else dressed
    with pytest.raises(query._Refused) as caught:
        query.check(dressed, query.prefixes())
    # U120 where the dress makes it no SPARQL at all: a byte-order mark, an escape that makes an escape.
    allowed = {"U121", "U122"} | ({"U120"} if "\ufeff" in prologue or "\\" in prologue else set())
    assert caught.value.error["code"] in allowed, dressed


# Limits

ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"


def test_a_query_that_never_ends_is_stopped(package: Package, monkeypatch: pytest.MonkeyPatch):
    started: list[subprocess.Popen[bytes]] = []

    class Watched(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(query.subprocess, "Popen", Watched)
    begin = time.monotonic()
    with pytest.raises(InputError) as caught:
        query.run_query(package, ENDLESS, limit_seconds=1.5)
    assert caught.value.code == "U125" and "1.5 seconds" in caught.value.message
    assert time.monotonic() - begin < 10
    assert [process.returncode is not None for process in started] == [True]


def test_more_rows_than_the_limit_are_an_error(package: Package, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(query, "MAX_ROWS", 5)
    assert len(query.run_query(package, "SELECT ?s { ?s ?p ?o } LIMIT 5").rows) == 5
    with pytest.raises(InputError) as caught:
        query.run_query(package, "SELECT ?s { ?s ?p ?o } LIMIT 6")
    assert caught.value.code == "U125"


@POSIX
def test_ctrl_c_ends_the_command_and_its_child(tmp_path: Path):
    code = "import sys; from regatta_tools.cli.query import query; query(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--text", ENDLESS, "--package", str(ROOT)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + 20
        child = ""
        while not child and children.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
            child = children.read_text(encoding="utf-8").strip()
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, err = process.communicate(timeout=20)
        assert time.monotonic() - begin < 5
        assert process.returncode not in (0, None) and "Traceback" not in err, err
        if child:
            assert not Path(f"/proc/{child}").exists()
    finally:
        process.kill()


# Forms of an answer


def test_values_of_each_type(package: Package):
    text = """SELECT (1 AS ?whole) (1.50 AS ?part) (1e0 AS ?double) (1e0/0 AS ?endless) (true AS ?yes) ("x"@vi AS ?word)
      (rid:insurance-us AS ?record) (regatta:AtMost AS ?meaning) (<http://x/y> AS ?other) (?nothing AS ?none)
      ("2024-02-29"^^xsd:date AS ?day) (10.0 AS ?ten) (123456789012345678901234567890 AS ?big) { }"""
    result = query.run_query(package, text)
    assert result.rows == [
        (1, Decimal("1.5"), 1.0, "INF", True, "x", "insurance-us", "at-most", "http://x/y", None, "2024-02-29",
         Decimal(10), 123456789012345678901234567890)
    ]  # fmt: skip
    [row] = json.loads(query.as_json(result), parse_constant=pytest.fail)
    assert row["part"] == 1.5 and row["none"] is None and row["yes"] is True and row["ten"] == 10
    assert (
        query.as_csv(result)
        .splitlines()[1]
        .startswith("1,1.5,1.0,INF,true,x,insurance-us,at-most,http://x/y,,2024-02-29,10,")
    )


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ('=HYPERLINK("http://x.invalid","see")', '\'=HYPERLINK("http://x.invalid","see")'),
        ("@SUM(1)", "'@SUM(1)"), ("+1 (555) 0100", "'+1 (555) 0100"), ("-0.25", "-0.25"), ("-1+1", "'-1+1"),
        ("\t=1", "'\t=1"), ("\r=1", "'\r=1"), ("- item", "'- item"), ("a=b", "a=b"), ("", ""),
        ("-5", "-5"), ("+5", "'+5"),
        (-5, "-5"), (Decimal("-0.25"), "-0.25"), (-0.25, "-0.25"), (True, "true"), (None, ""),
    ],
)  # fmt: skip
def test_csv_runs_no_formula_and_spoils_no_number(cell: Any, shown: str):
    text = query.as_csv(query.Result(["a", "b"], [(cell, "x")]))
    assert list(csv.reader(io.StringIO(text, newline=""), strict=True)) == [["a", "b"], [shown, "x"]]
    assert text.endswith("\r\n")


CELLS = st.one_of(
    st.none(), st.integers(), st.booleans(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
)


@settings(RELAXED, max_examples=150)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, st.text("ab \nđờ語", max_size=120)), max_size=4),
    width=st.integers(20, 130),
)
def test_every_form_holds_every_cell(rows: list[tuple[Any, ...]], width: int):
    result = query.Result(["one", "two_words", "three"], rows)
    assert json.loads(query.as_json(result), parse_constant=pytest.fail) == [
        dict(zip(result.columns, row, strict=True)) for row in rows
    ]
    table = query.as_table(result, width)
    lines = table.split("\n")
    assert all(query._width(line) <= width for line in lines)
    assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in table if c != "\n")  # no escape codes, no bidi
    read_back = list(csv.reader(io.StringIO(query.as_csv(result), newline=""), strict=True))
    assert len(read_back) == len(rows) + 1


@settings(RELAXED, max_examples=150)
@given(text=st.text("abcdef  \nđờ語", max_size=200), width=st.integers(4, 60))
def test_wrapping_loses_nothing(text: str, width: int):
    lines = query._wrap(text, width, indent="  ")
    assert all(query._width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_narrow_terminal_gets_blocks(package: Package):
    result = query.run_named(package, "facts-of-requirement", {"requirement": "insurance-us-r07"})
    narrow, wide = query.as_table(result, 60), query.as_table(result, 1000)
    assert "fact: insurance-us-r07-f1\n" in narrow and max(map(len, narrow.splitlines())) <= 60
    assert wide.splitlines()[0].split() == result.columns
    assert "".join(wide.split()).count("29CFR§2560.503-1(f)(2)(i)") == "".join(narrow.split()).count(
        "29CFR§2560.503-1(f)(2)(i)"
    )


def test_ask_and_triples(package: Package):
    ask = query.run_query(package, "ASK { rid:insurance-us a regatta:Cell }")
    assert [query.write(ask, form) for form in ("table", "json", "csv")] == ["true\n", "true\n", "answer\r\ntrue\r\n"]
    for text in ("DESCRIBE rid:insurance-us", "CONSTRUCT WHERE { rid:insurance-us ?p ?o }"):
        triples = query.run_query(package, text)
        found = rdflib.Graph().parse(data=query.write(triples, "table"), format="nt")
        record = package.by_id["insurance-us"]
        assert len(found) == 1 + sum(1 for text in record.cells.values() if text)
        assert rdf.records_from(found) == {"cells": [dict(record.cells)]}
        for form in ("csv", "json"):
            with pytest.raises(InputError) as caught:
                query.write(triples, form)
            assert caught.value.code == "U126"


# The command


def invoke(*words: str) -> Any:
    return CliRunner().invoke(command, [*words], env={"COLUMNS": "100"})


@pytest.mark.parametrize(
    "words",
    [
        (), ("short-deadlines", "--text", "ASK {}"), ("short-deadlines", "--set", "days"),
        ("--file", "no-such-file.rq"), ("short-deadlines", "--set", "days=1", "--set", "days=2"),
        ("--list", "short-deadlines"), ("--text", "ASK {}", "--format", "x"),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_2(words: tuple[str, ...]):
    result = invoke(*words)
    assert result.exit_code == 2 and "Usage:" in result.stderr and result.stdout == ""


def test_the_list_names_every_query_and_parameter():
    for form in ("table", "csv", "json"):
        out = invoke("--list", "--format", form)
        assert out.exit_code == 0
        shown = out.stdout.replace("\\n", "\n")
        for name, asked in query.named().items():
            assert name in shown
            for parameter in asked.parameters:
                # In the table the words after it may stand in the next line.
                assert re.search(rf"\b{parameter}\b" + ("" if form == "table" else r" \("), shown)


def test_the_command_writes_each_form_and_no_colour():
    words = ("short-deadlines", "--set", "days=3", "--package", str(ROOT))
    table, text, data = (invoke(*words, "--format", form) for form in ("table", "csv", "json"))
    assert (table.exit_code, text.exit_code, data.exit_code) == (0, 0, 0)
    assert "\x1b" not in table.stdout and max(map(len, table.stdout.splitlines())) <= 100
    rows = json.loads(data.stdout)
    read_back = list(csv.DictReader(io.StringIO(text.stdout, newline="")))
    assert [r["requirement"] for r in rows] == [r["requirement"] for r in read_back] and rows
    assert "\\u" not in data.stdout and "§" in data.stdout


def test_an_empty_answer_says_so_and_is_no_error():
    result = invoke("obligations-by-actor", "--set", f"contains={A10[0]}", "--package", str(ROOT), "--format", "json")
    assert result.exit_code == 0 and json.loads(result.stdout) == [] and "found nothing" in result.stderr


def test_a_file_may_declare_its_parameters(tmp_path: Path):
    file = tmp_path / "since.rq"
    docs = (ROOT / "docs" / "queries.md").read_text(encoding="utf-8")
    [example_text] = re.findall(r"```sparql\n(.*?)```", docs, re.DOTALL)
    file.write_text("\ufeff" + example_text, encoding="utf-8")
    result = invoke("--file", str(file), "--set", "since=2000-01-01", "--package", str(ROOT), "--format", "csv")
    assert result.exit_code == 0 and result.stdout_bytes.startswith(b"source,adopted\r\n")
    assert result.stdout.count("\n") > 2
    missing = invoke("--file", str(file), "--package", str(ROOT))
    assert isinstance(missing.exception, InputError) and missing.exception.code == "U124"
    file.write_text("SELECT * { ?s ?p", encoding="utf-8")
    wrong = invoke("--file", str(file), "--package", str(ROOT))
    assert isinstance(wrong.exception, InputError) and wrong.exception.place.startswith(f"{file}, line 1")
    file.write_bytes(b"ASK { ?s ?p '\xff' }")
    assert isinstance(invoke("--file", str(file)).exception, InputError)


def test_a_text_of_ones_own_binds_words(package: Package):
    text = "SELECT ?r ?where { ?r a regatta:Requirement ; eli:jurisdiction ?where }"
    result = invoke("--text", text, "--set", "where=US-CA", "--package", str(ROOT), "--format", "json")
    wanted = {r.key for r in package.table("requirements") if r["jurisdiction"] == "US-CA"}
    assert {row["r"] for row in json.loads(result.stdout)} == wanted


def test_the_command_loads_nothing_heavy():
    code = "import sys, regatta_tools.cli.query; print(sorted({'rdflib', 'pyoxigraph', 'csv'} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True, encoding="utf-8"
    )
    assert run.stdout.strip() == "[]"


def test_the_page_names_the_queries_and_codes():
    page = (ROOT / "docs" / "queries.md").read_text(encoding="utf-8")
    between = page.partition("<!-- named -->\n")[2].partition("<!-- /named -->")[0]
    assert between == query.catalogue()
    assert set(re.findall(r"^(U\d+)  ", query.__doc__ or "", re.MULTILINE)) == set(
        re.findall(r"^\| (U\d+) \|", page, re.MULTILINE)
    )
