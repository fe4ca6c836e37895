"""Records as RDF: names, terms, shapes, and the way back."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import one_cell, redescribe
from graph_packages import ODD_IDS, TEXT, in_memory, ordered, packages
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from regatta_tools import paths
from regatta_tools.errors import InputError
from regatta_tools.graph import rdf
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import Package, read, table_specs

rdflib = pytest.importorskip("rdflib")
ox = pytest.importorskip("pyoxigraph")

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.fixture(scope="module")
def package() -> Package:
    return read(paths.root())


def graph_of(package: Package) -> Any:
    return rdflib.Graph().parse(data="".join(rdf.ntriples(package)), format="nt")


# The schema allows the way there and back


def test_enum_values_that_a_table_can_hold_have_meanings_of_their_own():
    model = load_model()
    by_enum = {f["enum"] for spec in table_specs().values() for f in spec.fields.values() if f["kind"] == "enum"}
    for name in by_enum:
        values = model["enums"][name]["values"]
        assert len({v["meaning"] for v in values.values()}) == len(values), name
    # and over all of them, so that an answer can show the word instead of the IRI
    texts: dict[str, set[str]] = {}
    for name in by_enum:
        for text, value in model["enums"][name]["values"].items():
            texts.setdefault(value["meaning"], set()).add(text)
    assert {iri: found for iri, found in texts.items() if len(found) > 1} == {}


def test_tables_have_classes_of_their_own_and_columns_that_can_be_told_apart():
    specs = table_specs().values()
    assert len({spec.uri for spec in specs}) == len(specs)
    for spec in specs:
        keys = [(f["uri"], f.get("language", "")) for f in spec.fields.values()]
        assert len(set(keys)) == len(keys), spec.name
        assert rdf.RDF_TYPE not in {uri for uri, _ in keys}


# Names


@RELAXED
@given(st.lists(TEXT, min_size=1, max_size=3), st.lists(TEXT, min_size=1, max_size=3))
@example(["a/b"], ["a", "b"])
@example(["a--b", "c"], ["a", "b--c"])
@example(["%2F"], ["/"])
@example([""], ["", ""])
@example([" "], ["%20"])
def test_names_are_valid_reversible_and_different(one: list[str], other: list[str]):
    iri = rdf.record_iri(*one)
    assert re.fullmatch(r"https://w3id\.org/regatta/id/[A-Za-z0-9_\-/%]*", iri)
    assert ox.NamedNode(iri).value == iri  # refuses what is no IRI
    assert rdf.record_parts(iri) == tuple(one)
    assert (iri == rdf.record_iri(*other)) == (one == other)


@RELAXED
@given(st.text("abz%2F/.-_ é", max_size=8))
def test_only_the_one_form_of_a_name_is_read(tail: str):
    iri = rdf.id_base() + tail
    try:
        parts = rdf.record_parts(iri)
    except ValueError:
        return
    assert rdf.record_iri(*parts) == iri


def test_a_lone_surrogate_is_refused():
    with pytest.raises(InputError):
        rdf.record_iri("a\ud800")


@pytest.mark.parametrize("form", ["turtle", "nt", "json-ld"])
def test_names_survive_each_serialisation(form: str):
    graph = rdflib.Graph()
    graph.bind("rid", rdf.id_base())
    p = rdflib.URIRef("http://purl.org/dc/terms/identifier")
    for name in ODD_IDS:
        graph.add((rdflib.URIRef(rdf.record_iri("t", name)), p, rdflib.Literal(name)))
        if name:
            graph.add((rdflib.URIRef(rdf.record_iri(name)), p, rdflib.Literal(name)))
    text = graph.serialize(format=form)
    again = rdflib.Graph().parse(data=text, format=form)
    assert set(again) == set(graph)
    assert {rdf.record_parts(str(s))[-1] for s in again.subjects()} == set(ODD_IDS)
    for s, _, o in again:
        assert rdf.record_parts(str(s))[-1] == str(o)


def test_equal_keys_of_two_tables_are_two_subjects():
    link = {"cell": "c", "fault": "f", "requirement": "pay"}
    value = {"cell": "c", "fault": "f", "fact": "", "parameter": "pay", "true_expr": "1", "faulty_expr": "2"}
    package = in_memory({"fault_requirements": [link], "fault_values": [value]})
    assert len({r.key for r in package}) == 1
    assert len({rdf.subject(r) for r in package}) == 2


# Terms


@pytest.mark.parametrize(
    ("text", "kind", "language", "term"),
    [
        ("a", "string", "", '"a"'),
        ("nợ", "string", "vi", '"nợ"@vi'),
        ('say "x"\\\n', "string", "", '"say \\"x\\"\\\\\\n"'),
        ("2024-02-29", "date", "", '"2024-02-29"^^<http://www.w3.org/2001/XMLSchema#date>'),
        ("2023-02-29", "date", "", '"2023-02-29"'),
        ("20240229", "date", "", '"20240229"'),
        ("true", "boolean", "", '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
        ("TRUE", "boolean", "", '"TRUE"'),
        ("-12", "integer", "", '"-12"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("012", "integer", "", '"012"'),
        ("0.50", "decimal", "", '"0.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ("0.50", "float", "", '"0.50"^^<http://www.w3.org/2001/XMLSchema#float>'),
        ("https://x.invalid/a b", "uri", "", '"https://x.invalid/a b"^^<http://www.w3.org/2001/XMLSchema#anyURI>'),
    ],
)
def test_a_text_becomes_the_term_of_its_kind_or_stays_plain(text: str, kind: str, language: str, term: str):
    assert rdf.typed_literal(text, kind, language) == term


def test_a_package_gives_the_same_bytes_twice_and_one_triple_a_line(package: Package):
    text = "".join(rdf.ntriples(package))
    assert text == "".join(rdf.ntriples(package))
    once = text.split("\n")[:-1]
    assert all(line.endswith(" .") for line in once) and text.count("\n") == len(once)
    cells = sum(1 for record in package for text in record.cells.values() if text)
    notations = sum(f"<{rdf.NOTATION}>" in line for line in once)
    assert len(once) == package.count + cells + notations and notations > 10


def test_enum_values_show_their_words(package: Package):
    graph = graph_of(package)
    for record in package:
        for column, field in record.spec.fields.items():
            if field["kind"] == "enum" and record[column]:
                meaning = graph.value(rdflib.URIRef(rdf.subject(record)), rdflib.URIRef(field["uri"]))
                assert [str(o) for o in graph.objects(meaning, rdflib.SKOS.notation)] == [record[column]]
                assert rdf.short(str(meaning)) == record[column]


def test_two_engines_hold_the_same_triples(package: Package):
    of_store = {(q.subject.value, q.predicate.value, str(q.object)) for q in rdf.store(package)}
    of_rdflib = {(str(s), str(p), o.n3()) for s, p, o in graph_of(package)}
    # rdflib writes line ends in long quotes; compare as terms
    again = rdflib.Graph()
    for s, p, o in of_store:
        again.add((rdflib.URIRef(s), rdflib.URIRef(p), rdflib.util.from_n3(o)))
    assert {(str(s), str(p), o.n3()) for s, p, o in again} == of_rdflib
    assert len(of_store) == len(of_rdflib) == len(set("".join(rdf.ntriples(package)).splitlines()))


# There and back


@pytest.mark.parametrize("through", ["text", "store", "rdflib", "turtle", "json-ld"])
def test_the_real_package_comes_back_whole(package: Package, tmp_path: Path, through: str):
    if through not in ("text", "store"):
        # rdflib takes its time: one cell, with all its tables. tests/test_export.py brings all cells back from files.
        package = read(one_cell(tmp_path, "banking-vn", gold=True))
    if through == "text":
        graph: Any = "".join(rdf.ntriples(package))
    elif through == "store":
        graph = rdf.store(package)
    else:
        graph = graph_of(package)
        if through != "rdflib":
            graph = rdflib.Graph().parse(data=graph.serialize(format=through), format=through)
    found = rdf.records_from(graph)
    assert set(found) == {name for name, rows in package.records.items() if rows}
    for name, rows in found.items():
        assert ordered(rows) == ordered(r.cells for r in package.table(name)), name


@settings(RELAXED, max_examples=40)
@given(packages())
def test_any_text_comes_back(records: dict[str, list[dict[str, str]]]):
    package = in_memory(records)
    text = "".join(rdf.ntriples(package))
    for graph in (text, rdf.store(package), rdflib.Graph().parse(data=text, format="nt")):
        found = rdf.records_from(graph)
        assert {n: ordered(rows) for n, rows in found.items()} == {n: ordered(rows) for n, rows in records.items()}


def test_two_values_in_one_column_are_not_passed_over():
    s, p = "<https://w3id.org/regatta/id/x>", "<http://purl.org/dc/terms/title>"
    with pytest.raises(InputError, match="two values for title"):
        rdf.records_from(f'{s} <{rdf.RDF_TYPE}> <https://w3id.org/regatta/Cell> .\n{s} {p} "a" .\n{s} {p} "b" .\n')


# Vietnamese, from files


@pytest.fixture
def vietnamese(tmp_path: Path) -> Package:
    import csv

    tables = {
        "instruments/sources.csv": [
            {
                "id": "vn-nd-46-2023",
                "title": "Decree 46/2023",
                "title_vi": "Nghị định số 46/2023/NĐ-CP",
                "jurisdiction": "VN",
                "kind": "regulation",
                "binding": "true",
                "issuer": "Chính phủ",
                "number": "46/2023/NĐ-CP",
                "status": "in-force",
                "url": "https://example.invalid/46",
            }
        ],
        "instruments/cells.csv": [
            {
                "id": "insurance-vn",
                "title": "Insurance, Viet Nam",
                "domain": "insurance",
                "jurisdiction": "VN",
                "languages": "vi-en",
                "persona": "Trợ lý",
                "as_of": "2026-11-30",
            }
        ],
        "instruments/insurance-vn/requirements.csv": [
            {
                "id": "insurance-vn-r01",
                "cell": "insurance-vn",
                "jurisdiction": "VN",
                "topic": "Claims: pay in time",
                "duty_en": "Pay within 15 days.",
                "duty_vi": "Doanh nghiệp bảo hiểm phải trả tiền trong 15 ngày, Điều 5 §2.",
                "actor": "doanh nghiệp bảo hiểm",
                "observable_test": "t",
                "status": "active",
            }
        ],
    }
    specs = table_specs()
    for name, rows in tables.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, specs[path.stem].columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    redescribe(tmp_path)
    package = read(tmp_path)
    assert package.findings == [] and package.count == 3
    return package


def test_vietnamese_text_stays_readable(vietnamese: Package):
    text = "".join(rdf.ntriples(vietnamese))
    assert '"Doanh nghiệp bảo hiểm phải trả tiền trong 15 ngày, Điều 5 §2."@vi' in text
    assert '"Pay within 15 days."@en' in text and '"Nghị định số 46/2023/NĐ-CP"@vi' in text
    assert "\\u" not in text and unicodedata.is_normalized("NFC", text)
    found = rdf.records_from(graph_of(vietnamese))
    assert ordered(found["requirements"]) == ordered(r.cells for r in vietnamese.table("requirements"))


def test_decomposed_text_meets_composed_text(vietnamese: Package):
    from regatta_tools.graph import query

    for form in ("NFC", "NFD"):
        given_text = unicodedata.normalize(form, "BẢO HIỂM")
        result = query.run_named(vietnamese, "obligations-by-actor", {"contains": given_text})
        assert [row[1] for row in result.rows] == ["insurance-vn-r01"]
    assert "doanh nghiệp bảo hiểm" in query.as_json(result) and "doanh nghiệp bảo hiểm" in query.as_csv(result)


# Shapes


def violations(graph: Any) -> Counter[tuple[str, str]]:
    pyshacl = pytest.importorskip("pyshacl")
    shapes = rdflib.Graph().parse(paths.generated_dir() / "regatta.shacl.ttl")
    _, report, _ = pyshacl.validate(graph, shacl_graph=shapes)
    sh = rdflib.SH
    return Counter(
        (str(report.value(v, sh.sourceConstraintComponent)).partition("#")[2], str(report.value(v, sh.resultPath)))
        for v in report.subjects(rdflib.RDF.type, sh.ValidationResult)
    )


def expected_violations(package: Package) -> Counter[tuple[str, str]]:
    """Columns of kind ``uri`` are xsd:anyURI literals, as in the JSON-LD context; linkml's shapes want an IRI there.

    Nothing else may differ. Where a shape asks for the literal, nothing is expected.
    """
    shapes = rdflib.Graph().parse(paths.generated_dir() / "regatta.shacl.ttl")
    found: Counter[tuple[str, str]] = Counter()
    for record in package:
        for column, field in record.spec.fields.items():
            if field["kind"] == "uri" and record[column]:
                path = rdflib.URIRef(field["uri"])
                for node in shapes.objects(rdflib.URIRef(record.spec.uri), rdflib.SH.property):
                    if (node, rdflib.SH.path, path) in shapes and (node, rdflib.SH.nodeKind, rdflib.SH.IRI) in shapes:
                        found["NodeKindConstraintComponent", field["uri"]] += 1
    return found


def test_the_shapes_accept_the_package(package: Package):
    assert violations(graph_of(package)) == expected_violations(package)


def test_the_shapes_accept_two_languages(vietnamese: Package):
    assert violations(graph_of(vietnamese)) == expected_violations(vietnamese)


@pytest.mark.parametrize(
    ("column", "text", "component"),
    [
        ("status", "", "MinCountConstraintComponent"),
        ("status", "abolished", "InConstraintComponent"),
        ("binding", "yes", "DatatypeConstraintComponent"),
        ("adopted", "2024-02-30", "DatatypeConstraintComponent"),
        ("superseded_by", "nobody", "ClassConstraintComponent"),
        ("jurisdiction", "Viet Nam", "PatternConstraintComponent"),
    ],
)
def test_the_shapes_object_to_what_is_wrong(vietnamese: Package, column: str, text: str, component: str):
    record = vietnamese.table("sources")[0]
    record.cells[column] = text
    found = violations(graph_of(vietnamese)) - expected_violations(vietnamese)
    assert found == Counter({(component, record.spec.fields[column]["uri"]): 1})
