"""`make schema`: the same bytes everywhere, nothing stale, a schema that keeps its rules, files that work."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regatta_tools import paths, schema_build
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.report import pages
from regatta_tools.tables import descriptor, model

pytest.importorskip("linkml")
ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "schema" / "generated"


def build_elsewhere(folder: Path, seed: str, start: Path) -> subprocess.Popen:
    """Start a build of a copy of the sources in its own process, with another hash seed and folder."""
    shutil.copytree(ROOT / "schema", folder / "schema", ignore=shutil.ignore_patterns("generated"))
    shutil.copytree(ROOT / "instruments", folder / "instruments")
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "TZ": f"UTC-{seed}"}
    command = [sys.executable, "-m", "regatta_tools.schema_build", "--root", str(folder)]
    return subprocess.Popen(command, cwd=start, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def files(folder: Path) -> dict[str, bytes]:
    found = [p for p in (folder / "schema" / "generated").rglob("*") if p.is_file()]
    found += [folder / "regatta_tools" / "datamodel.py", folder / "datapackage.json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("built")
    folders = (base / "a", base / "another folder" / "deeper")
    runs = [build_elsewhere(f, s, w) for f, s, w in zip(folders, ("1", "4"), (Path("/"), base), strict=True)]
    for run in runs:
        output, _ = run.communicate(timeout=120)
        assert run.returncode == 0, output.decode()
    return folders


def test_two_builds_agree_to_the_byte(built: tuple[Path, Path]) -> None:
    first, second = map(files, built)
    assert first.keys() == second.keys() and len(first) > 20
    assert [name for name in first if first[name] != second[name]] == []


def test_committed_files_are_up_to_date(built: tuple[Path, Path]) -> None:
    expected, present = files(built[0]), files(ROOT)
    assert sorted(present) == sorted(expected), "run `make schema`"
    assert [name for name in expected if expected[name] != present[name]] == [], "run `make schema`"


def test_files_are_clean_text(built: tuple[Path, Path]) -> None:
    for name, content in files(built[0]).items():
        text = content.decode("utf-8")
        assert text.endswith("\n") and not text.endswith("\n\n"), name
        assert "\r" not in text and "\\u" not in text, name
        assert str(built[0]) not in text and str(ROOT) not in text, name
        assert "metamodel_version" not in text and "generation_date" not in text, name
        assert not re.search(r"20\d\d-\d\d-\d\dT\d\d:", text), name


# A schema small enough to build in a second or two.

SMALL = """
id: https://example.org/small
name: regatta
version: 0.0.1
prefixes:
  linkml: https://w3id.org/linkml/
  regatta: https://w3id.org/regatta/
  rid: https://w3id.org/regatta/id/
imports: [linkml:types]
default_prefix: regatta
default_range: string
enums:
  Answer:
    permissible_values:
      "yes": {description: It does., meaning: regatta:Yes}
classes:
  Thing:
    class_uri: regatta:Thing
    description: A thing, as in "đồ vật".
    annotations: {table: things, scope: package}
    attributes:
      id: {identifier: true, slot_uri: regatta:id, description: Its name.}
      answer: {range: Answer, slot_uri: regatta:answer, description: What it says.}
"""


def small(folder: Path, text: str = SMALL) -> Path:
    (folder / "schema").mkdir(exist_ok=True)
    (folder / "schema" / "regatta.yaml").write_text(text, encoding="utf-8")
    return folder / "schema" / "regatta.yaml"


def test_check_finds_what_differs_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small(tmp_path)
    assert schema_build.main(["--root", str(tmp_path)]) == 0
    assert schema_build.build(tmp_path) == []
    assert "đồ vật" in (tmp_path / "regatta_tools" / "datamodel.py").read_text(encoding="utf-8")
    capsys.readouterr()
    assert schema_build.main(["--check", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""

    shapes = tmp_path / "schema" / "generated" / "regatta.shacl.ttl"
    lines = shapes.read_text(encoding="utf-8").splitlines(keepends=True)
    shapes.write_text("".join([*lines[:2], "# by hand\n", *lines[2:]]), encoding="utf-8")
    (tmp_path / "datapackage.json").unlink()
    (tmp_path / "schema" / "generated" / "table-schemas" / "gone.json").write_text("{}", encoding="utf-8")
    before = files_below(tmp_path)
    assert schema_build.main(["--check", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 3
    assert "datapackage.json: missing" in said
    assert any(re.search(r"regatta\.shacl\.ttl: line 3 is '# by hand'", line) for line in said)
    assert any("gone.json" in line for line in said)
    assert files_below(tmp_path) == before

    assert len(schema_build.build(tmp_path)) == 3
    assert schema_build.check(tmp_path) == []


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_build_that_fails_leaves_everything(tmp_path: Path) -> None:
    small(tmp_path, SMALL.replace("description: Its name.", "title: x"))
    with pytest.raises(InputError, match=r"Thing\.id: no description"):
        schema_build.build(tmp_path)
    assert list(files_below(tmp_path)) == [str(tmp_path / "schema" / "regatta.yaml")]


# The rules of the schema


def test_our_schema_keeps_its_rules() -> None:
    assert schema_build.invariants(ROOT / "schema" / "regatta.yaml") == []


def test_every_scoped_name_is_still_needed() -> None:
    """An entry of the list that no longer names a conflict would hide the next one."""
    properties: dict[str, set[str]] = {}
    for compiled in model.load_model()["classes"].values():
        for field in compiled["fields"]:
            properties.setdefault(field["name"], set()).add(field["uri"])
    assert sorted(name for name, iris in properties.items() if len(iris) > 1) == sorted(schema_build.SCOPED_NAMES)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("class_uri: regatta:Thing", "title: x", "class Thing: no class_uri"),
        ('description: A thing, as in "đồ vật".', "title: x", "class Thing: no description"),
        (", description: What it says.", "", "Thing.answer: no description"),
        (", meaning: regatta:Yes", "", "the value yes has no meaning"),
        (", scope: package", "", "table and scope go together"),
        ("scope: package", "scope: galaxy", "the scope is galaxy"),
        ("slot_uri: regatta:answer", "slot_uri: regatta:id", "id, answer share https://w3id.org/regatta/id"),
        (
            "classes:\n",
            "classes:\n  Other:\n    class_uri: regatta:Other\n    description: x\n    attributes:\n"
            "      answer: {slot_uri: regatta:other, description: x}\n",
            "answer: several properties under one name",
        ),
        ("default_range: string\n", "default_range: string\nslots: {loose: {}}\n", "slot loose: no description"),
    ],
)
def test_a_schema_that_breaks_a_rule_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert schema_build.invariants(small(tmp_path)) == []
    assert old in SMALL
    found = schema_build.invariants(small(tmp_path, SMALL.replace(old, new)))
    assert len(found) == 1 and said in found[0], found


def test_fields_of_one_property_may_differ_in_language(tmp_path: Path) -> None:
    text = SMALL.replace(
        "      answer:",
        "      name_en: {slot_uri: regatta:name, annotations: {language: en}, description: x}\n"
        "      name_vi: {slot_uri: regatta:name, annotations: {language: vi}, description: x}\n      answer:",
    )
    assert schema_build.invariants(small(tmp_path, text)) == []
    doubled = text.replace("{language: vi}", "{language: en}")
    assert len(schema_build.invariants(small(tmp_path, doubled))) == 1


@pytest.mark.parametrize("typed", ["Yes", "No", "On", "NO", "012", "1:30", "1.0", "2026-01-01", "null", "~"])
@pytest.mark.parametrize("form", ["      {}: {{description: x, meaning: regatta:X}}", "      - {}", "      - text: {}"])
def test_a8_permissible_values_have_to_be_text(tmp_path: Path, typed: str, form: str) -> None:
    """linkml/linkml#2474: YAML 1.1 turns such words into something else, and good data are refused."""
    values = "\n".join(form.format(value) for value in ("fine", typed))
    text = re.sub(r"permissible_values:\n.*", lambda _: f"permissible_values:\n{values}", SMALL)
    found = schema_build.invariants(small(tmp_path, text))
    line = next(n for n, said in enumerate(text.splitlines(), 1) if said == form.format(typed))
    assert len(found) == 1, found
    assert found[0].startswith(f"regatta.yaml:{line}: ") and f'quote it: "{typed}"' in found[0]
    with pytest.raises(InputError, match="quote"):
        model.compile_model(tmp_path / "schema" / "regatta.yaml")
    quoted = text.replace(form.format(typed), form.format(f'"{typed}"'))
    assert not any("quote" in line for line in schema_build.invariants(small(tmp_path, quoted)))


def test_a8_imports_are_followed(tmp_path: Path) -> None:
    path = small(tmp_path, SMALL.replace("imports: [linkml:types]", "imports: [linkml:types, part]"))
    part = "id: https://example.org/part\nname: part\nenums:\n  E:\n    permissible_values: {NO: {}}\n"
    (path.parent / "part.yaml").write_text(part, encoding="utf-8")
    assert [line.split(":")[0] for line in schema_build.invariants(path)] == ["part.yaml"]


# The generated files do what they are for


def test_the_model_agrees_with_the_schema() -> None:
    loaded = model.load_model()
    assert loaded == model.compile_model(ROOT / "schema" / "regatta.yaml")
    citation = loaded["classes"]["Citation"]
    assert citation["uri"] == "http://www.w3.org/ns/oa#SpecificResource"
    assert (citation["table"], citation["scope"], citation["identifier"]) == ("citations", "cell", "id")
    by_name = {field["name"]: field for field in citation["fields"]}
    assert by_name["source"]["kind"] == "ref" and by_name["source"]["ref"] == "Source"
    assert loaded["enums"]["GoldAnswer"]["values"]["yes"]["meaning"] == "http://www.w3.org/ns/earl#passed"
    turns = next(field for field in loaded["classes"]["Scenario"]["fields"] if field["name"] == "turns")
    assert (turns["kind"], turns["class"], turns["multivalued"]) == ("object", "Turn", True)


def test_a_missing_model_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="make schema"):
        model.load_model(tmp_path / "model.json")


def test_json_schema_is_valid_and_closed() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((GENERATED / "regatta.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft201909Validator.check_schema(schema)
    objects = [name for name, part in schema["$defs"].items() if part.get("type") == "object"]
    assert set(objects) == set(model.load_model()["classes"])
    assert [name for name in objects if schema["$defs"][name].get("additionalProperties") is not False] == []


SUITE = {
    "id": "suite-one",
    "language": "vi",
    "scenarios": [
        {
            "id": "S-1",
            "turns": [{"speaker": "user", "text": "Tôi muốn huỷ hợp đồng.\n"}, {"speaker": "agent", "text": " Vâng."}],
            "claims": {"category": "cancellation"},
        }
    ],
}
ISOLATED = """
import json, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("linkml", "linkml_runtime"):
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
from regatta_tools import datamodel
value = json.load(sys.stdin)
print(json.dumps(datamodel.Suite.model_validate(value).model_dump(mode="json", exclude_none=True)))
"""


def test_the_datamodel_needs_no_linkml_and_keeps_what_it_reads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED],
        input=json.dumps(SUITE),
        capture_output=True,
        text=True,
        cwd=ROOT,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == SUITE


@pytest.mark.parametrize(
    "change",
    [
        {"id": "Suite"},
        {"cell": "Insurance US"},
        {"language": "fr"},
        {"scenarios": [{"id": "S-1", "turns": [{"speaker": "judge", "text": "x"}]}]},
        {"scenarios": [{"id": "S-1", "turns": [{"speaker": "user", "text": " "}]}]},
        {"scenarios": [{"id": "S-1", "turns": [{"speaker": "user"}]}]},
        {"tests": []},
    ],
)
def test_datamodel_and_json_schema_refuse_the_same(change: dict) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from pydantic import ValidationError

    from regatta_tools import datamodel

    schema = json.loads((GENERATED / "regatta.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft201909Validator({"$ref": "#/$defs/Suite", "$defs": schema["$defs"]})
    validator.validate(SUITE)
    with pytest.raises(ValidationError):
        datamodel.Suite.model_validate(SUITE | change)
    assert not validator.is_valid(SUITE | change)


def test_a_field_may_be_called_as_its_type() -> None:
    """linkml writes `date: date`, which pydantic cannot build; dates and their absence have to work."""
    from datetime import date

    from regatta_tools import datamodel

    label = {"cell": "us", "probe": "p", "target": "t", "label": "yes", "labeller": "x", "labeller_kind": "ai"}
    read = datamodel.GoldLabel.model_validate(label | {"date": "2026-02-28"})
    assert read.date == date(2026, 2, 28)
    assert datamodel.Source.model_fields["adopted"].is_required() is False
    for wrong in ({}, {"date": "2026-02-30"}):
        with pytest.raises(ValueError):
            datamodel.GoldLabel.model_validate(label | wrong)


def test_a_field_that_is_a_python_word_keeps_its_name() -> None:
    from regatta_tools import datamodel

    fault = {
        "id": "fault-one", "cell": "insurance-us", "class": "threshold", "name": "x", "severity": "low",
        "injection_en": "x", "applies_when": "x", "shows_when": "x", "not_when": "x",
    }  # fmt: skip
    assert datamodel.Fault.model_validate(fault).model_dump(mode="json", exclude_none=True) == fault


# RDF: documents go through the context and are judged by the shapes.

IDS = "https://w3id.org/regatta/id/"
CELL = {
    "@type": "Cell", "id": "insurance-us", "title": "Insurance", "domain": "insurance", "jurisdiction": "US",
    "languages": "vi-en", "persona": "An agent.", "as_of": "2026-01-01",
}  # fmt: skip
DUTY = {
    "@type": "Requirement", "id": "req-one", "cell": "insurance-us", "jurisdiction": "US", "topic": "Cancelling",
    "duty_en": "Say so.", "duty_vi": "Phải nói.", "actor": "The insurer.", "observable_test": "It does not.",
    "status": "active", "valid_from": "2020-02-29",
}  # fmt: skip


def graph_of(*documents: dict):
    rdflib = pytest.importorskip("rdflib")
    context = json.loads((GENERATED / "regatta.context.jsonld").read_text(encoding="utf-8"))["@context"]
    return rdflib.Graph().parse(data=json.dumps({"@context": context, "@graph": list(documents)}), format="json-ld")


def test_context_gives_ids_meanings_languages_and_types() -> None:
    from rdflib import XSD, Literal, URIRef

    graph = graph_of(DUTY)
    subject, regatta = URIRef(IDS + "req-one"), "https://w3id.org/regatta/"
    assert set(graph.objects(subject, URIRef(regatta + "duty"))) == {
        Literal("Say so.", lang="en"),
        Literal("Phải nói.", lang="vi"),
    }
    assert graph.value(subject, URIRef(regatta + "recordStatus")) == URIRef(regatta + "Active")
    assert graph.value(subject, URIRef(regatta + "cell")) == URIRef(IDS + "insurance-us")
    day = graph.value(subject, URIRef("http://schema.org/validFrom"))
    assert day == Literal("2020-02-29", datatype=XSD.date)
    assert len(graph) == len(DUTY) - 1  # all but id, with @type


def test_context_keeps_the_senses_of_one_name_apart() -> None:
    """`models`, `suite` and `RC` mean one thing in the evidence and another in the objects inside it."""
    from rdflib import URIRef

    graph = graph_of(
        {
            "@type": "EvidenceVector",
            "suite": "suite-one",
            "made_with": {"regatta": "0.1.0", "suite": "a" * 64, "models": "b" * 64},
            "models": [{"stage": "rc", "name": "m", "kind": "llm"}],
            "measures": {"RC": 0.5},
            "bounds": {"RC": {"low": 0.25, "high": 0.75}},
            "requirements": [{"id": "req-one", "status": "covered"}],
        }
    )
    values = {(str(p), str(o)) for _, p, o in graph}
    regatta = "https://w3id.org/regatta/"
    assert (regatta + "suite", "suite-one") in values
    assert (regatta + "suiteHash", "a" * 64) in values
    assert (regatta + "modelsHash", "b" * 64) in values
    assert ("http://schema.org/softwareVersion", "0.1.0") in values
    assert (regatta + "RC", "0.5") in values and ("http://schema.org/minValue", "0.25") in values
    assert graph.value(URIRef(IDS + "req-one"), URIRef("http://www.w3.org/ns/earl#outcome")) == URIRef(
        "http://www.w3.org/ns/earl#passed"
    )
    nodes = {p: o for _, p, o in graph if str(p) in (regatta + "modelUse", regatta + "RCBounds")}
    assert len(nodes) == 2


@pytest.fixture(scope="module")
def shapes():
    rdflib = pytest.importorskip("rdflib")
    return rdflib.Graph().parse(GENERATED / "regatta.shacl.ttl")


@pytest.mark.parametrize(
    ("change", "conforms"),
    [
        ({}, True),
        ({"duty_vi": None}, True),
        ({"duty_en": None}, False),
        ({"duty_en": ["One.", "Two."]}, False),
        ({"status": "Active"}, False),
        ({"cell": "insurance-vn"}, False),
        ({"jurisdiction": "us"}, False),
        ({"valid_from": "yesterday"}, False),
        ({"valid_to": "2020-02-29"}, True),
        ({"valid_to": "2020-02-28"}, False),
        ({"topic": None}, False),
    ],
)
def test_shapes_judge_a_record_in_two_languages(shapes, change: dict, conforms: bool) -> None:
    pyshacl = pytest.importorskip("pyshacl")
    judged, _, said = pyshacl.validate(graph_of(CELL, {**DUTY, **change}), shacl_graph=shapes)
    assert judged is conforms, said


def test_ontology_parses_and_speaks_for_itself_only() -> None:
    from rdflib import OWL, RDF, RDFS, Graph, URIRef

    graph = Graph().parse(GENERATED / "regatta.owl.ttl")
    classes = model.load_model()["classes"]
    assert [name for name, c in classes.items() if (URIRef(c["uri"]), RDF.type, OWL.Class) not in graph] == []
    base = model.load_model()["prefixes"]["regatta"]
    labelled = [str(subject) for subject in graph.subjects(RDFS.label) if isinstance(subject, URIRef)]
    assert labelled and [iri for iri in labelled if not iri.startswith(base)] == []
    duty = URIRef(base + "duty")
    restrictions = list(graph.subjects(OWL.onProperty, duty))
    assert {graph.value(node, OWL.allValuesFrom) for node in restrictions} - {None} == {RDF.langString}
    assert [node for node in restrictions if (node, OWL.cardinality, None) in graph] == []


def test_turtle_says_what_the_graph_says() -> None:
    rdflib = pytest.importorskip("rdflib")
    from rdflib.compare import isomorphic

    source = """
    @prefix ex: <https://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    ex:a a ex:C ; ex:p "q\\"uote\\n\\\\", "đ"@vi, 1, true, 1.5, "2026-01-01"^^xsd:date, ex:b,
      <https://example.org/a/b> ; ex:list (1 [ ex:p "x" ] () ex:a) ; ex:node [ ex:p [ ex:q 1 ] ], [ ex:p 2 ] .
    [] a ex:D ; ex:p ex:a .
    """
    graph = rdflib.Graph().parse(data=source, format="turtle")
    text = schema_build.turtle(graph, {"ex": "https://example.org/"}, "Test")
    assert isomorphic(graph, rdflib.Graph().parse(data=text, format="turtle"))
    again = rdflib.Graph().parse(data=source, format="turtle")  # with other names for its blank nodes
    assert schema_build.turtle(again, {"ex": "https://example.org/"}, "Test") == text
    shared = rdflib.Graph().parse(data="<urn:a> <urn:p> _:x . <urn:b> <urn:p> _:x . _:x <urn:q> 1 .", format="turtle")
    circle = rdflib.Graph().parse(data="_:x <urn:p> _:y . _:y <urn:p> _:x .", format="turtle")
    for graph in (shared, circle):
        with pytest.raises(ValueError):
            schema_build.turtle(graph, {}, "Test")


# The descriptor


def package(folder: Path) -> Path:
    cells = folder / "instruments"
    (cells / "insurance-us" / "context").mkdir(parents=True)
    (cells / "insurance-us" / "faults.csv").write_text(
        "id,cell,class,name,severity,injection_en,injection_vi,applies_when,shows_when,not_when,fixture\n"
        'fault-one,insurance-us,threshold,"two\nlines",high,x,,a,b,c,\n',
        encoding="utf-8",
    )
    (cells / "insurance-us" / "fault_values.csv").write_text(
        "cell,fault,fact,parameter,true_expr,faulty_expr\ninsurance-us,fault-one,,p,1,2\n", encoding="utf-8"
    )
    (cells / "cells.csv").write_text(
        "id,title,domain,jurisdiction,languages,persona,as_of,note\n"
        "insurance-us,Insurance,insurance,US,en,An agent,2026-01-01,\n",
        encoding="utf-8",
    )
    (cells / "insurance-us" / "context" / "roles.csv").write_text(
        "id,cell,source,name_en,name_vi,goals_en,goals_vi,limits_en,limits_vi,escalates_to,valid_from,written,note\n",
        encoding="utf-8",
    )
    (cells / "insurance-us" / "notes.csv").write_text("a\n", encoding="utf-8")
    return folder


def test_descriptor_lists_the_files_with_their_content(tmp_path: Path) -> None:
    built = descriptor.build(package(tmp_path))
    resources = {resource["name"]: resource for resource in built["resources"]}
    assert list(resources) == ["cells", "insurance-us-faults", "insurance-us-fault_values", "insurance-us-roles"]
    assert [resource["rows"] for resource in built["resources"]] == [1, 1, 1, 0]
    for resource in built["resources"]:
        content = (tmp_path / resource["path"]).read_bytes()
        assert resource["bytes"] == len(content)
        assert resource["hash"] == "sha256:" + hashlib.sha256(content).hexdigest()
        fields = [field["name"] for field in resource["schema"]["fields"]]
        assert next(csv.reader(content.decode().splitlines())) == fields
    cells = {
        name: field["constraints"].get("enum")
        for name, resource in resources.items()
        for field in resource["schema"]["fields"]
        if field["name"] == "cell"
    }
    assert cells == {key: ["insurance-us"] for key in list(resources)[1:]}
    keys = {
        key["fields"][0]: key["reference"]["resource"]
        for key in resources["insurance-us-fault_values"]["schema"]["foreignKeys"]
    }
    # facts.csv is not there, so its key is left out.
    assert keys == {"cell": "cells", "fault": "insurance-us-faults"}


def test_descriptor_of_nothing(tmp_path: Path) -> None:
    assert descriptor.build(tmp_path)["resources"] == []


@pytest.mark.parametrize(("make", "code"), [("folder", "R001"), ("link", "R015"), ("loop", "R015"), ("pipe", "R001")])
def test_what_is_no_file_of_the_package_is_not_described(tmp_path: Path, make: str, code: str) -> None:
    """And not read: a link may lead to a file without end, and a pipe never answers."""
    folder = package(tmp_path / "package")
    spoilt = folder / "instruments" / "insurance-us" / "faults.csv"
    spoilt.unlink()
    outside = tmp_path / "outside.csv"
    outside.write_text("id\nsecret\n", encoding="utf-8")
    targets = {"link": outside, "loop": spoilt}
    if make in targets:
        spoilt.symlink_to(targets[make])
    else:
        spoilt.mkdir() if make == "folder" else os.mkfifo(spoilt)
    for use in (descriptor.build, pages.read_instruments):
        with pytest.raises(InputError) as caught:
            use(folder)
        assert caught.value.code in (code, "R001") and "faults.csv" in str(caught.value) and caught.value.mend


def test_frictionless_accepts_the_descriptor_and_sees_every_change(tmp_path: Path) -> None:
    frictionless = pytest.importorskip("frictionless")
    folder = package(tmp_path)
    (folder / "datapackage.json").write_text(json.dumps(descriptor.build(folder)), encoding="utf-8")

    def found() -> set[str]:
        return {kind for (kind,) in frictionless.validate(str(folder / "datapackage.json")).flatten(["type"])}

    assert found() == set()
    values = folder / "instruments" / "insurance-us" / "fault_values.csv"
    before = values.read_text(encoding="utf-8")
    values.write_text(before.replace("fault-one", "fault-two"), encoding="utf-8")
    assert found() == {"hash-count", "foreign-key"}
    values.write_text(before + "insurance-us,fault-one,,q,1,2\n", encoding="utf-8")
    assert {"hash-count", "byte-count"} & found()


# Where things are


def test_paths_lead_to_the_checkout() -> None:
    assert paths.root() == ROOT
    assert (paths.schema_dir() / "regatta.yaml").is_file()
    assert paths.generated_dir() == GENERATED
    assert paths.datapackage() == ROOT / "datapackage.json"


def test_paths_without_data_say_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "site-packages" / "regatta_tools")
    with pytest.raises(EnvironmentProblem, match=r"schema/regatta\.yaml"):
        paths.root()
    packaged = tmp_path / "site-packages" / "regatta_tools" / "_data"
    (packaged / "schema").mkdir(parents=True)
    (packaged / "schema" / "regatta.yaml").write_text("id: x\n", encoding="utf-8")
    assert paths.root() == packaged
