"""The package and the schema as files of RDF: one set of triples in three forms, and the way back."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import ROOT, one_cell
from graph_packages import ODD_IDS, in_memory, ordered, packages, triples
from helpers import Sheet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regatta_tools import paths
from regatta_tools.cli.export import export as command
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.graph import export, rdf
from regatta_tools.tables.descriptor import build
from regatta_tools.tables.formatter import format_content
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import Package, read, table_specs
from regatta_tools.validation.run import check_package

rdflib = pytest.importorskip("rdflib")
ox = pytest.importorskip("pyoxigraph")

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
FORMS = list(export.FORMATS)
OF_RDFLIB = {"turtle": "turtle", "ntriples": "nt", "jsonld": "json-ld"}
CELLS = sorted(p.name for p in (ROOT / "instruments").iterdir() if p.is_dir())
MAIN = "from regatta_tools.cli.main import main; main()"
pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")


@pytest.fixture(scope="module")
def package() -> Package:
    return read(paths.root())


@pytest.fixture(scope="module")
def texts(package: Package) -> dict[str, str]:
    return {form: written(package, form) for form in FORMS}


def written(package: Package, form: str) -> str:
    return "".join(export.FORMATS[form](package))


def parsed(text: str, form: str) -> Iterator[Any]:
    """The graph of a text by two parsers that share no code."""
    yield export.parse(text, form)
    yield rdflib.Graph().parse(data=text, format=OF_RDFLIB[form])


def rows_of(package: Package) -> dict[str, list[Any]]:
    return {name: ordered(r.cells for r in rows) for name, rows in package.records.items() if rows}


# The same triples in every form, and the records out of each


@pytest.mark.parametrize("form", FORMS)
def test_all_cells_come_back_from_each_form_by_two_parsers(package: Package, texts: dict[str, str], form: str):
    assert {c["cell"] for c in package.table("requirements")} == set(CELLS) and len(CELLS) == 5
    expected = triples(rdf.store(package))
    for graph in parsed(texts[form], form):
        assert triples(graph) == expected
        assert {name: ordered(rows) for name, rows in rdf.records_from(graph).items()} == rows_of(package)


@settings(RELAXED, max_examples=60)
@given(packages())
def test_any_package_comes_back_from_each_form(records: dict[str, list[dict[str, str]]]):
    package = in_memory(records)
    expected = triples(rdf.store(package))
    for form in FORMS:
        for graph in parsed(written(package, form), form):
            assert triples(graph) == expected, form
            assert {n: ordered(rows) for n, rows in rdf.records_from(graph).items()} == rows_of(package), form


@pytest.mark.parametrize("form", FORMS)
def test_odd_ids_come_back_equal(form: str):
    """Bug case A11: spaces, §, quotes, slashes, number signs, Đ, and what looks encoded already."""
    odd = [name for name in ODD_IDS if name]
    sources = [dict.fromkeys(table_specs()["sources"].columns, "") | {"id": name} for name in odd]
    for row, name in zip(sources, odd[1:] + odd[:1], strict=True):
        row["superseded_by"] = name
    links = [{"cell": a, "fault": a, "requirement": b} for a in odd for b in odd]
    values = [dict.fromkeys(table_specs()["fault_values"].columns, "") | {"parameter": a, "fault": a} for a in odd]
    values.append(dict.fromkeys(table_specs()["fault_values"].columns, "") | {"cell": "no key at all"})
    package = in_memory({"sources": sources, "fault_requirements": links, "fault_values": values})
    for graph in parsed(written(package, form), form):
        found = rdf.records_from(graph)
        assert {name: ordered(rows) for name, rows in found.items()} == rows_of(package)
        assert len(triples(graph)) == sum(1 for r in package for t in r.cells.values() if t) + package.count


@pytest.mark.parametrize("form", FORMS)
def test_texts_of_another_form_than_their_type_stay_texts(form: str):
    row = dict.fromkeys(table_specs()["sources"].columns, "") | {
        "id": "s", "adopted": "2024-02-30", "binding": "TRUE", "status": "abolished", "url": "nowhere at all",
        "title": "@id", "title_vi": "Nghị định số 46/2023/NĐ-CP",
    }  # fmt: skip
    for graph in parsed(written(in_memory({"sources": [row]}), form), form):
        assert rdf.records_from(graph) == {"sources": [row]}
        literals = {value: (language, datatype) for _, _, value, language, datatype in triples(graph)}
        for text in ("2024-02-30", "TRUE", "abolished", "@id"):
            assert literals[text] == ("", rdf.XSD + "string")
        assert literals["Nghị định số 46/2023/NĐ-CP"][0] == "vi"


# Form of the text


def test_equal_packages_give_equal_bytes_whatever_the_process(texts: dict[str, str]):
    code = "import sys; from regatta_tools.cli.main import main; main(['export', '--format', sys.argv[1]])"
    for form, seed in zip(FORMS, ("1", "2", "3"), strict=True):
        environment = os.environ | {
            "PYTHONHASHSEED": seed, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40",
            "TZ": "Asia/Ho_Chi_Minh",
        }  # fmt: skip
        run = subprocess.run(
            [sys.executable, "-c", code, form], cwd=ROOT, env=environment, capture_output=True, timeout=120, check=False
        )
        assert run.returncode == 0 and run.stderr == b"", run.stderr
        assert run.stdout == texts[form].encode("utf-8")


@pytest.mark.parametrize("form", FORMS)
def test_vietnamese_stays_as_it_is(texts: dict[str, str], form: str):
    assert "Luật Các tổ chức tín dụng" in texts[form] and "\\u" not in texts[form] and "\r" not in texts[form]
    assert unicodedata.is_normalized("NFC", texts[form]) and texts[form].endswith("\n")


def test_turtle_has_one_block_a_record_in_the_order_of_the_tables(package: Package, texts: dict[str, str]):
    blocks = [block for block in texts["turtle"].split("\n\n") if not block.startswith(("#", "@"))]
    subjects = [block.split(maxsplit=1)[0] for block in blocks if re.match(r"\S+ a ", block)]
    names = {f"rid:{r.key}" if r.spec.identifier else f"<{rdf.subject(r)}>" for r in package}
    assert len(subjects) == len(set(subjects)) == package.count and set(subjects) == names
    with_ids = [s.removeprefix("rid:") for s in subjects if s.startswith("rid:")]
    assert with_ids == [r.key for r in package if r.spec.identifier]
    # Full IRIs only where a prefix would need escapes: names of more than one part.
    written_out = set(re.findall(r"<(\S+?)>", texts["turtle"])) - set(load_model()["prefixes"].values())
    assert {iri for iri in written_out if "/id/" not in iri} == {"http://www.w3.org/1999/02/22-rdf-syntax-ns#"}


def test_a_descriptor_cannot_leave_its_comment(package: Package):
    hostile = {
        "title": "a\n<urn:x> <urn:y> <urn:z> .\r# \u2028b\x85c\0",
        "version": "\ud800 1",
        "description": ["no text"],
        "licenses": {"name": "x"},
    }
    spoiled = Package(package.root, hostile, {"cells": package.table("cells")})
    text = written(spoiled, "turtle")
    heading = text.partition("@prefix")[0]
    assert heading.count("\n") == 2 and heading.startswith("# a <urn:x>")
    for graph in parsed(text, "turtle"):
        assert triples(graph) == triples(rdf.store(spoiled))
    assert heading.encode("utf-8")


def test_json_ld_holds_the_objects_of_the_json_schema(package: Package, texts: dict[str, str]):
    from regatta_tools.tables import shape

    document = json.loads(texts["jsonld"])
    context = json.loads((paths.generated_dir() / "regatta.context.jsonld").read_text(encoding="utf-8"))
    assert document["@context"] == context["@context"]
    found = {}
    for node in document["@graph"]:
        if "@type" in node:
            name = node.pop("@id", None)
            plain = {key: value for key, value in node.items() if key not in ("@type", "dcterms:identifier")}
            found[name or node["id"]] = plain
            assert node.get("dcterms:identifier") == node.get("id")
            assert [e.message for e in shape.validator(node["@type"]).iter_errors(plain)] == []
    assert found == {rdf.subject(r).removeprefix(rdf.id_base()): r.as_object() for r in package}
    lines = texts["jsonld"].splitlines()
    assert sum(line.startswith('{"@type"') for line in lines) == package.count


# A part of the package


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_comes_with_its_sources_and_conforms(package: Package, cell: str):
    part = export.of_cells(package, [cell])
    assert {r["cell"] for r in part if "cell" in r.spec.fields} == {cell}
    assert [r.key for r in part.table("cells")] == [cell]
    for name, spec in table_specs().items():
        if "cell" in spec.fields:
            assert part.table(name) == package.cell_records(name, cell)
    cited = {c[column] for c in part.table("citations") for column in ("source", "kept_in_force_by")} - {""}
    replaced = {s["superseded_by"] for s in part.table("sources")} - {""}
    assert {s.key for s in part.table("sources")} == cited | replaced
    pyshacl = pytest.importorskip("pyshacl")
    shapes = rdflib.Graph().parse(paths.generated_dir() / "regatta.shacl.ttl")
    graph = rdflib.Graph().parse(data=written(part, "turtle"), format="turtle")
    conforms, _, said = pyshacl.validate(graph, shacl_graph=shapes)
    assert conforms, said


def test_all_cells_together_are_the_package(package: Package):
    whole = export.of_cells(package, CELLS)
    assert rows_of(whole) == {name: rows for name, rows in rows_of(package).items() if name != "waivers"}
    assert written(whole, "ntriples") == written(package, "ntriples") or package.table("waivers")


def test_an_unknown_cell_is_told_with_the_known_ones(package: Package):
    with pytest.raises(InputError) as caught:
        export.of_cells(package, ["banking-vn", "banking-us"])
    assert caught.value.code == "U103" and all(cell in caught.value.mend for cell in CELLS)


# Shapes see what is wrong in an exported file


@pytest.mark.parametrize(
    ("table", "row", "cells", "component"),
    [
        ("requirements", "insurance-us-r01", {"duty_en": ""}, "QualifiedMinCountConstraintComponent"),
        ("requirements", "insurance-us-r01", {"actor": ""}, "MinCountConstraintComponent"),
        ("requirements", "insurance-us-r01", {"jurisdiction": "california"}, "PatternConstraintComponent"),
        ("citations", "insurance-us-r01-c1", {"role": "ground"}, "InConstraintComponent"),
        ("citations", "insurance-us-r01-c1", {"requirement": "insurance-us-r99"}, "ClassConstraintComponent"),
        ("facts", "insurance-us-r01-f1", {"unit": "days"}, "InConstraintComponent"),
        ("facts", "insurance-us-r01-f1", {"valid_from": "1 January 2026"}, "DatatypeConstraintComponent"),
    ],
)
def test_planted_faults_are_seen_by_the_shapes(
    package_copy: Path, table: str, row: str, cells: dict[str, str], component: str
):
    pyshacl = pytest.importorskip("pyshacl")
    sheet = Sheet(package_copy, table)
    sheet.save(sheet.set(row, **cells))
    graph = rdflib.Graph().parse(data=written(read(package_copy), "jsonld"), format="json-ld")
    shapes = rdflib.Graph().parse(paths.generated_dir() / "regatta.shacl.ttl")
    _, report, said = pyshacl.validate(graph, shacl_graph=shapes)
    results = list(report.subjects(rdflib.RDF.type, rdflib.SH.ValidationResult))
    components = {str(report.value(r, rdflib.SH.sourceConstraintComponent)).partition("#")[2] for r in results}
    assert component in components, said
    assert {str(report.value(r, rdflib.SH.focusNode)) for r in results} == {rdf.record_iri(row)}


# The schema


def canonical(text: str, form: str) -> set[str]:
    kinds = {"turtle": ox.RdfFormat.TURTLE, "ntriples": ox.RdfFormat.N_TRIPLES, "jsonld": ox.RdfFormat.JSON_LD}
    dataset = ox.Dataset(ox.parse(text.encode("utf-8"), format=kinds[form]))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return {str(quad) for quad in dataset}


@pytest.mark.parametrize("what", sorted(export.SCHEMA_FILES))
def test_the_schema_says_the_same_in_each_form(what: str):
    expected = canonical(export.schema(what, "turtle"), "turtle")
    assert len(expected) > 500
    for form in ("ntriples", "jsonld"):
        text = export.schema(what, form)
        assert text == export.schema(what, form) and text.endswith("\n")
        assert canonical(text, form) == expected
    again = rdflib.Graph().parse(data=export.schema(what, "jsonld"), format="json-ld")
    assert len(again) == len(expected)


def test_every_word_of_the_export_is_declared(package: Package):
    """Each class, property and enum value in use is declared in the ontology, or a term of RDF or SKOS itself."""
    owl = rdflib.Graph().parse(data=export.schema("schema", "turtle"), format="turtle")
    graph = rdflib.Graph().parse(data=written(package, "ntriples"), format="nt")
    kinds = rdflib.OWL
    declared = {t: set(owl.subjects(rdflib.RDF.type, t)) for t in set(owl.objects(None, rdflib.RDF.type))}
    classes = declared[kinds.Class]
    properties = set().union(*(declared.get(k, set()) for k in (kinds.ObjectProperty, kinds.DatatypeProperty)))
    of_records = set(graph.objects(None, rdflib.RDF.type))
    assert of_records <= classes
    used = set(graph.predicates()) - {rdflib.RDF.type, rdflib.SKOS.notation}
    assert used - properties == set()
    records = set(graph.subjects(rdflib.RDF.type))
    objects = {o for o in graph.objects() if isinstance(o, rdflib.URIRef)} - of_records
    values = objects - records
    assert values and values - declared[kinds.NamedIndividual] == set()


# The way back


def test_the_way_back_works_as_the_page_prints_it(package, texts, tmp_path, monkeypatch):
    printed = (ROOT / "docs" / "graph.md").read_text(encoding="utf-8").partition("## And back")[2]
    code = printed.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("regatta.ttl").write_text(texts["turtle"], encoding="utf-8")
    exec(code, {})
    assert {p.as_posix() for p in Path().rglob("*.csv")} == {r.file for r in package}


@pytest.mark.parametrize("form", ["turtle"])  # the records of each form are compared above
def test_a_file_becomes_the_package_again(package: Package, texts: dict[str, str], tmp_path: Path, form: str):
    for name, text in export.tables_from(export.parse(texts[form], form)).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        table = format_content(text.encode("utf-8"), name, table_specs()[path.stem])
        assert table.after == text.encode("utf-8"), f"{name} is not as `regatta fmt` has it"
    (tmp_path / "datapackage.json").write_text(json.dumps(build(tmp_path)), encoding="utf-8")
    again = read(tmp_path)
    assert rows_of(again) == rows_of(package)
    assert set(again.files) == {r.file for r in package}
    assert [f for f in check_package(again) if f.severity == "error"] == []
    # and once more round, now in the order that the way back gives
    assert written(again, form) == written(read(tmp_path), form)
    assert triples(export.parse(written(again, form), form)) == triples(rdf.store(package))


@settings(RELAXED, max_examples=40)
@given(packages(), st.sampled_from(FORMS))
def test_no_cell_of_a_graph_leads_out_of_the_package(records: dict[str, list[dict[str, str]]], form: str):
    package = in_memory(records)
    safe = all(
        re.fullmatch("[a-z0-9-]+", r["cell"]) for r in package if r.spec.scope != "package" and "cell" in r.spec.fields
    )
    try:
        tables = export.tables_from(export.parse(written(package, form), form))
    except InputError as error:
        assert not safe and error.code == "U127"
        return
    assert safe
    for name, text in tables.items():
        assert re.fullmatch(r"instruments(/[a-z0-9-]+(/context)?)?/[a-z_]+\.csv", name)
        table = Path(name).stem
        read_back = csv.DictReader(io.StringIO(text, newline=""))
        assert all(row in [r.cells for r in package.table(table)] for row in read_back)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("turtle", "<a> <b> <c> ."), ("turtle", "@prefix"), ("ntriples", "rid:x a rid:y ."), ("jsonld", "{"),
        ("jsonld", '{"@context": "http://127.0.0.1:9/context.jsonld", "@id": "http://x/", "a": 1}'),
        ("jsonld", '{"@context": ["file:///etc/hostname"]}'), ("turtle", b"\xff"), ("jsonld", ""),
    ],
)  # fmt: skip
def test_what_is_not_of_the_form_is_told(form: str, text: str | bytes):
    with pytest.raises(InputError) as caught:
        export.parse(text, form)
    assert caught.value.code == "U127" and form in caught.value.message and len(str(caught.value)) < 400


# The command


def invoke(*words: str) -> Any:
    return CliRunner().invoke(command, [*words])


@pytest.mark.parametrize("form", FORMS)
def test_the_file_is_what_goes_to_the_screen(tmp_path: Path, form: str):
    out = tmp_path / "out.rdf"
    shown = invoke("--cell", "insurance-vn", "--format", form)
    quiet = invoke("--cell", "insurance-vn", "--format", form, "--output", str(out))
    assert (shown.exit_code, quiet.exit_code, quiet.output) == (0, 0, "")
    assert out.read_bytes() == shown.stdout_bytes and [p.name for p in tmp_path.iterdir()] == ["out.rdf"]
    assert invoke("--cell", "insurance-vn", "--format", form, "-o", "-").stdout_bytes == shown.stdout_bytes


@pytest.mark.parametrize("what", sorted(export.SCHEMA_FILES))
def test_the_command_writes_the_schema(what: str):
    generated = (paths.generated_dir() / export.SCHEMA_FILES[what]).read_bytes()
    assert invoke("--what", what).stdout_bytes == generated
    assert invoke("--what", what, "--format", "ntriples").stdout_bytes.decode() == export.schema(what, "ntriples")


@pytest.mark.parametrize(
    "words",
    [
        ("--format", "rdfxml"), ("--what", "everything"), ("--what", "schema", "--cell", "insurance-us"),
        ("--what", "shapes", "--package", "."), ("insurance-us",),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_2(words: tuple[str, ...]):
    result = invoke(*words)
    assert result.exit_code == 2 and "Usage:" in result.stderr and result.stdout == ""


def test_a_package_with_errors_is_not_exported(package_copy: Path, tmp_path: Path):
    sheet = Sheet(package_copy, "citations")
    place, line = sheet.save(sheet.set("insurance-us-r01-c1", role="ground"))
    out = tmp_path / "out.ttl"
    out.write_text("before", encoding="utf-8")
    result = invoke("--package", str(package_copy), "--output", str(out))
    assert isinstance(result.exception, InputError) and result.exception.exit_code == 2
    assert result.exception.place.startswith(f"{place}:{line}") and out.read_text(encoding="utf-8") == "before"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path):
    out = tmp_path / "out.ttl"
    out.write_text("before", encoding="utf-8")

    def broken() -> Iterator[str]:
        yield "half"
        raise InputError("no more")

    with pytest.raises(InputError):
        export.write_file(out, broken())
    assert out.read_text(encoding="utf-8") == "before" and [p.name for p in tmp_path.iterdir()] == ["out.ttl"]
    stream = io.BytesIO()
    with pytest.raises(InputError):
        export.write_stream(stream, broken())
    assert stream.getvalue() == b""
    for place in (tmp_path, tmp_path / "no" / "out.ttl"):
        with pytest.raises(EnvironmentProblem) as caught:
            export.write_file(place, ["text"])
        assert caught.value.exit_code == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_told():
    words = [sys.executable, "-c", MAIN, "export", "--cell", "banking-vn"]
    with open("/dev/full", "wb") as full:
        on_screen = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    to_file = subprocess.run([*words, "-o", "/dev/full"], cwd=ROOT, capture_output=True, timeout=120, check=False)
    for run in (on_screen, to_file):
        assert run.returncode == 3 and b"Traceback" not in run.stderr and b"[E30" in run.stderr, run.stderr


def test_a_reader_that_has_enough_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "export", "--format", "ntriples"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None and process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


def test_the_command_loads_nothing_heavy():
    code = "import sys, regatta_tools.cli.export; print(sorted({'rdflib', 'pyoxigraph', 'csv'} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True, encoding="utf-8"
    )
    assert run.stdout.strip() == "[]"


def test_the_cost_grows_with_the_rows(tmp_path: Path):
    """Ten times the records take about ten times the calls: counted, since clocks are shared."""
    package = read(one_cell(tmp_path, "insurance-us"))
    many = Package(package.root, package.descriptor, {name: rows * 10 for name, rows in package.records.items()})

    def calls(of: Package, form: str) -> int:
        count = 0

        def seen(frame: Any, event: str, _: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(seen)
        try:
            for _ in export.FORMATS[form](of):
                pass
        finally:
            sys.setprofile(None)
        return count

    for form in FORMS:
        calls(package, form)  # caches that are made once
        assert calls(many, form) < 10.5 * calls(package, form)
