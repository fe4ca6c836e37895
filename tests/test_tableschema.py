"""The LinkML -> Table Schema generator, on small schemas and with Frictionless as the judge of the data."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regatta_tools.errors import InputError
from regatta_tools.tables import model, tableschema

frictionless = pytest.importorskip("frictionless")
pytest.importorskip("linkml_runtime")

HEAD = """
id: https://example.org/zoo
name: zoo
prefixes:
  linkml: https://w3id.org/linkml/
  zoo: https://example.org/zoo/
  dcterms: http://purl.org/dc/terms/
imports: [linkml:types]
default_prefix: zoo
default_range: string
"""

ZOO = (
    HEAD
    + """
types:
  code: {typeof: string, pattern: "^[a-z]+$"}
  short_code: {typeof: code, pattern: "^.{1,3}$"}
slots:
  id: {identifier: true, range: code, slot_uri: dcterms:identifier, description: Name.}
  remark: {rank: 99}
classes:
  Named:
    abstract: true
    slots: [id, remark]
    attributes:
      label: {required: true}
  Housed:
    mixin: true
    attributes:
      house: {range: House}
  House:
    is_a: Named
    attributes:
      built: {range: date}
  Animal:
    is_a: Named
    mixins: [Housed]
    class_uri: zoo:Beast
    description: A beast.
    annotations: {table: beasts}
    attributes:
      last: {rank: 80}
      first: {rank: 10}
      tame: {range: boolean}
      legs: {range: integer, minimum_value: 0, maximum_value: 8}
      weight: {range: decimal, minimum_value: 0.5}
      home: {range: uri}
      kind: {range: Kind}
      anything: {range: Named}
      mother: {range: Animal}
      tag: {range: short_code}
      seen: {range: datetime}
    unique_keys:
      tag: {unique_key_slots: [tag, house]}
enums:
  Kind:
    permissible_values:
      bird: {description: It has feathers.}
      "no": {}
"""
)


def write(folder: Path, text: str, name: str = "schema.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    return tableschema.table_schemas(write(tmp_path_factory.mktemp("zoo"), ZOO), ["Animal", "House"])


@pytest.fixture(scope="module")
def beasts(zoo: dict[str, dict]) -> dict[str, dict]:
    return {field["name"]: field for field in zoo["beasts"]["fields"]}


def errors(schema: dict, csv_text: str, folder: Path) -> list[tuple[int | None, str | None, str]]:
    """What Frictionless finds: row, field, type of the error. Foreign keys need a package and are left out."""
    write(folder, csv_text, "data.csv")
    alone = {key: value for key, value in schema.items() if key != "foreignKeys"}
    resource = frictionless.Resource.from_descriptor(
        {"name": "data", "path": "data.csv", "schema": alone}, basepath=str(folder)
    )
    report = resource.validate()
    return [tuple(row) for row in report.flatten(["rowNumber", "fieldName", "type"])]


def row(beasts: dict[str, dict], **values: str) -> str:
    values = {"id": "ant", "label": "x", **values}
    return ",".join(beasts) + "\n" + ",".join(values.get(name, "") for name in beasts) + "\n"


def test_ancestors_lead_and_rank_decides(beasts: dict[str, dict]) -> None:
    assert list(beasts) == [
        "first",  # 10
        "id", "label", "house",  # 50: slots, then attributes, each from the ancestors down
        "tame", "legs", "weight", "home", "kind", "anything", "mother", "tag", "seen",
        "last", "remark",  # 80, 99
    ]  # fmt: skip


def test_names_iris_and_keys(zoo: dict[str, dict], beasts: dict[str, dict]) -> None:
    assert set(zoo) == {"beasts", "house"}
    assert zoo["beasts"]["rdfType"] == "https://example.org/zoo/Beast"
    assert zoo["beasts"]["description"] == "A beast."
    assert beasts["id"]["rdfType"] == "http://purl.org/dc/terms/identifier"
    assert beasts["kind"]["rdfType"] == "https://example.org/zoo/kind"
    assert zoo["beasts"]["primaryKey"] == ["id"]
    assert zoo["beasts"]["uniqueKeys"] == [["tag", "house"]]
    assert zoo["beasts"]["missingValues"] == [""]
    # Named is abstract: there is no table that `anything` could point to.
    assert zoo["beasts"]["foreignKeys"] == [
        {"fields": ["house"], "reference": {"resource": "house", "fields": ["id"]}},
        {"fields": ["mother"], "reference": {"resource": "", "fields": ["id"]}},
    ]


def test_enumerations_carry_their_labels(beasts: dict[str, dict]) -> None:
    assert beasts["kind"]["constraints"] == {"enum": ["bird", "no"]}
    assert beasts["kind"]["categories"] == [
        {"value": "bird", "label": "It has feathers."},
        {"value": "no", "label": "no"},
    ]


def test_frictionless_accepts_every_schema(zoo: dict[str, dict]) -> None:
    for schema in zoo.values():
        frictionless.Schema.from_descriptor(json.loads(json.dumps(schema)))


GOOD = {
    "first": "Được §", "tame": "true", "legs": "8", "weight": "0.5", "home": "https://example.org/a", "kind": "no",
    "mother": "bee", "tag": "abc", "house": "den", "seen": "2026-01-02T03:04:05Z",
}  # fmt: skip


def test_good_data_pass(zoo: dict[str, dict], beasts: dict[str, dict], tmp_path: Path) -> None:
    assert errors(zoo["beasts"], row(beasts, **GOOD), tmp_path) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""), ("id", "Ant"), ("id", "ant1"), ("label", ""), ("tame", "TRUE"), ("tame", "1"), ("tame", "yes"),
        ("legs", "9"), ("legs", "-1"), ("legs", "4.0"), ("legs", "4 legs"), ("weight", "0.4"), ("weight", "$5"),
        ("home", "nowhere"), ("kind", "Bird"), ("mother", "B"), ("tag", "abcd"), ("tag", "AB"), ("house", "9"),
        ("seen", "yesterday"),
    ],
)  # fmt: skip
def test_bad_data_are_refused(
    zoo: dict[str, dict], beasts: dict[str, dict], tmp_path: Path, field: str, value: str
) -> None:
    found = errors(zoo["beasts"], row(beasts, **{**GOOD, field: value}), tmp_path)
    assert found, f"{field}={value!r} passed"
    assert {(number, name) for number, name, _ in found if name} <= {(2, field)}


def test_foreign_keys_work_in_a_package(zoo: dict[str, dict], beasts: dict[str, dict], tmp_path: Path) -> None:
    write(tmp_path, "id,label,built,remark\nden,Den,,\n", "house.csv")
    second = row(beasts, id="bee", house="hole", mother="ant").splitlines()[1]
    write(tmp_path, f"{row(beasts, house='den')}{second}\n", "beasts.csv")
    resources = [{"name": name, "path": f"{name}.csv", "schema": zoo[name]} for name in zoo]
    write(tmp_path, json.dumps({"name": "zoo", "resources": resources}), "datapackage.json")
    report = frictionless.validate(str(tmp_path / "datapackage.json"))
    assert [kind for kind in report.flatten(["rowNumber", "type"]) if kind[1] != "foreign-key"] == []
    assert [number for number, _ in report.flatten(["rowNumber", "type"])] == [3]


def test_duplicate_identifiers_are_refused(zoo: dict[str, dict], beasts: dict[str, dict], tmp_path: Path) -> None:
    twice = row(beasts) + row(beasts).splitlines()[1] + "\n"
    assert "primary-key" in {kind for *_, kind in errors(zoo["beasts"], twice, tmp_path)}


@pytest.mark.parametrize(
    ("slot", "reason"),
    [
        ("names: {multivalued: true}", "several values"),
        ("part: {range: Part}", "no identifier"),
        ("lot: {range: Lot}", "no identifier"),
        ("friend: {range: Thing, inlined: true}", "in place"),
    ],
)
def test_what_no_cell_can_hold_is_refused_or_left_out(tmp_path: Path, slot: str, reason: str) -> None:
    schema = write(
        tmp_path,
        HEAD
        + f"""
classes:
  Part: {{attributes: {{size: {{}}}}}}
  Lot: {{attributes: {{number: {{key: true}}}}}}
  Thing:
    attributes:
      id: {{identifier: true}}
      {slot}
""",
    )
    name = slot.split(":")[0]
    with pytest.raises(InputError, match=rf"Thing\.{name} .*{reason}"):
        tableschema.table_schemas(schema, ["Thing"])
    skipped: list[str] = []
    found = tableschema.table_schemas(schema, ["Thing"], skipped=skipped)["thing"]
    assert [field["name"] for field in found["fields"]] == ["id"]
    assert "foreignKeys" not in found
    assert len(skipped) == 1 and f"Thing.{name}" in skipped[0]


def test_abstract_unknown_and_doubled_tables_are_refused(tmp_path: Path) -> None:
    schema = write(tmp_path, ZOO)
    for name, message in (("Named", "abstract"), ("Housed", "mixin"), ("Nobody", "no class Nobody")):
        with pytest.raises(InputError, match=message):
            tableschema.table_schemas(schema, [name])
    clash = write(tmp_path, ZOO.replace("table: beasts", "table: house"))
    with pytest.raises(InputError, match="House and Animal would both be the table house"):
        tableschema.table_schemas(clash, ["House", "Animal"])
    with pytest.raises(InputError, match="no such schema"):
        tableschema.table_schemas(tmp_path / "none.yaml")
    with pytest.raises(InputError):
        tableschema.table_schemas(write(tmp_path, "classes: [", "broken.yaml"))


OTHERS = (
    HEAD
    + """
settings: {letters: "[A-Z]+"}
classes:
  Container:
    tree_root: true
    attributes:
      people: {range: PersonRecord, multivalued: true, inlined_as_list: true}
  PersonRecord:
    attributes:
      ssn: {identifier: true, range: integer}
      initials: {structured_pattern: {syntax: "{letters}", interpolated: true}}
      status: {any_of: [{range: Alive}, {range: Dead}]}
      age: {any_of: [{range: integer}, {range: Alive}]}
      species: {equals_string: human}
      mood: {range: Mood}
      colour: {range: Colour}
  Pet:
    attributes:
      name: {key: true}
      owner: {range: PersonRecord, required: true}
enums:
  Alive: {permissible_values: {alive: {}}}
  Dead: {permissible_values: {dead: {description: Gone.}}}
  Mood: {inherits: [Alive], permissible_values: {glad: {}}}
  Colour: {reachable_from: {source_ontology: obo:pato, source_nodes: [PATO:1]}}
"""
)


def test_schemas_of_other_shape(tmp_path: Path) -> None:
    """No table annotations, a container, a mere key, structured patterns, unions, open enumerations."""
    found = tableschema.table_schemas(write(tmp_path, OTHERS))
    assert set(found) == {"person_record", "pet"}
    person = {field["name"]: field for field in found["person_record"]["fields"]}
    assert found["person_record"]["primaryKey"] == ["ssn"]
    assert re.fullmatch(person["initials"]["constraints"]["pattern"], "AB")
    assert not re.fullmatch(person["initials"]["constraints"]["pattern"], "ABc")
    assert person["status"]["constraints"]["enum"] == ["alive", "dead"]
    assert person["age"]["type"] == "string" and "constraints" not in person["age"]
    assert person["species"]["constraints"]["enum"] == ["human"]
    assert person["mood"]["constraints"]["enum"] == ["alive", "glad"]
    assert "constraints" not in person["colour"]
    # A reference has the type of what it refers to, or the foreign key could never match.
    assert found["pet"]["fields"][1]["type"] == "integer"
    assert found["pet"]["primaryKey"] == ["name"] and found["pet"]["fields"][0]["constraints"]["required"]
    assert found["pet"]["foreignKeys"][0]["reference"] == {"resource": "person_record", "fields": ["ssn"]}
    for schema in found.values():
        frictionless.Schema.from_descriptor(json.loads(json.dumps(schema)))


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^a|b$", ["ax", "xb", "a", "b"], ["xa", "bx", ""]),
        ("^(a|b)$", ["a", "b"], ["ab", "ax", "xb"]),
        ("^a$|^b$", ["a", "b"], ["ab", "ax", "xb"]),
        (r"\S", ["a", " a ", "\na"], ["", " ", "\n"]),
        (r"^a\$", ["a$", "a$b"], ["a", "ba$"]),
        (r"^a\\$", ["a\\"], ["a\\b", "a$"]),
        ("^[|$]$", ["|", "$"], ["||", "", "a"]),
        ("^[]|]x|y$", ["]x", "|xz", "ay"], ["x", "ya"]),
        ("^[^]a]$", ["b"], ["]", "a", "bb"]),
        ("(?i)^abc$", ["abc", "ABC"], ["abcd"]),
        ("(^a|b$)", ["ax", "xb"], ["xa", "bx"]),
        ("", ["", "a"], []),
    ],
)
def test_patterns_keep_their_meaning(pattern: str, good: list[str], bad: list[str]) -> None:
    # As Frictionless uses it: anchors put round it without a group.
    compiled = re.compile(f"^{tableschema.full_match(pattern)}$")
    for text in good + bad:
        assert bool(re.search(pattern, text)) is (text in good), "the example itself is wrong"
        assert bool(compiled.match(text)) is (text in good), (compiled.pattern, text)


BODY = st.lists(st.sampled_from(["a", "b", r"\$", "[ab]", "(a|b)", "a*", "."]), max_size=3)


@settings(max_examples=300, deadline=None)
@given(
    parts=st.lists(st.tuples(st.sampled_from(["", "^"]), BODY, st.sampled_from(["", "$"])), min_size=1, max_size=3),
    text=st.text("ab$|^", max_size=5),
)
def test_patterns_agree_with_a_search(parts: list[tuple[str, list[str], str]], text: str) -> None:
    pattern = "|".join(start + "".join(body) + end for start, body, end in parts)
    assert bool(re.search(pattern, text)) == bool(re.match(f"^{tableschema.full_match(pattern)}$", text)), pattern


def test_quoting_is_asked_for_where_yaml_misreads(tmp_path: Path) -> None:
    schema = write(tmp_path, HEAD + "enums:\n  E:\n    permissible_values:\n      Yes: {}\n      ok: {}\n")
    with pytest.raises(InputError, match=r'schema\.yaml:\d+: .* value Yes is read as bool; quote it: "Yes"'):
        tableschema.table_schemas(schema)


def test_model_fields_are_in_column_order(tmp_path: Path) -> None:
    text = ZOO.replace("      seen: {range: datetime}\n", "")
    path = write(tmp_path, text.replace('{typeof: code, pattern: "^.{1,3}$"}', "{typeof: code}"))
    compiled = model.compile_model(path)["classes"]["Animal"]
    columns = tableschema.table_schemas(path, ["Animal"])["beasts"]["fields"]
    assert [field["name"] for field in compiled["fields"]] == [field["name"] for field in columns]
    kinds = {field["name"]: field["kind"] for field in compiled["fields"]}
    assert kinds["mother"] == "ref" and kinds["kind"] == "enum" and kinds["weight"] == "decimal"


def test_command_line(tmp_path: Path) -> None:
    schema = write(tmp_path, ZOO)
    run = [sys.executable, "-m", "regatta_tools.tables.tableschema", str(schema)]
    done = subprocess.run(
        [*run, "--class", "Animal", "-o", str(tmp_path / "out")], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["beasts.json"]
    assert json.loads((tmp_path / "out" / "beasts.json").read_text(encoding="utf-8"))["primaryKey"] == ["id"]
    failed = subprocess.run([*run, "--class", "Nobody"], capture_output=True, text=True, encoding="utf-8")
    assert failed.returncode == 2
    assert "no class Nobody" in failed.stderr and "Traceback" not in failed.stderr
