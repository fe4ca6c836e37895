"""Suites and labels: what is typed is what is read, everything has its place, and nothing foreign is run."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from helpers import on_disk
from hypothesis import given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools import documents as places
from regatta_tools.documents import SyntaxProblem, parse
from regatta_tools.errors import InputError
from regatta_tools.suites.reader import check_file, load_labels, load_suite
from regatta_tools.tables.package import read

DEMO = ROOT / "examples/suites/insurance-us-demo.yaml"

# Texts that some reader or other takes for something else.
TRAPS = ["NO", "no", "Yes", "on", "off", "y", "n", "~", "null", "Null", "true", "False", "012", "0o14", "0x1F", "1:30",
    "1:30:00",
         "1_000", "1e5", "1.", ".5", "+1", "-0", ".inf", ".nan", "NaN", "2026-11-30", "=", "<<", "", " ", "- a",
         "a: b", "a #b", "#",
         "{{name}}", "{# note", "{% raw %}", "{0}", "%s", "$HOME", "{injection_bill_text}", "!tag", "&a", "*a", "[",
         "{", "|", ">",
         "'", '"', "\\", "\t", "a\tb", "a\n", "\na", "a\n\nb", "a  b", " a", "a ", "Điều 5", "😀", "\ufeffa", "\u200b",
         "\x85", "\u2028",
         "\x00", "\x1b[31m", "\u0301", "a\r\nb", "---", "...", "%YAML 1.1", "@a", "`a`", "?", ": ", ","]  # fmt: skip
texts = st.sampled_from(TRAPS) | st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\ufffe\uffff"), max_size=12
)
scalars = (
    texts | st.integers(-(10**15), 10**15) | st.booleans() | st.none() | st.floats(-1e9, 1e9).map(lambda x: round(x, 3))
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def typed(value):
    """A value with its types, for 1 == True == 1.0 in Python."""
    if isinstance(value, dict):
        return {k: typed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [typed(v) for v in value]
    return type(value).__name__, value


def leaves(value, path=()):
    yield path, value
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))


def text_at(text: str, place: tuple[int, int]) -> str:
    line, column = place
    return "\n".join(text.split("\n")[line - 1 :])[column - 1 :]


# Values and places


@given(
    value=values,
    indent=st.sampled_from([None, 0, 2, "\t"]),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\n \n\n"]),
)
@settings(max_examples=200)
def test_json_is_read_as_written_with_every_place(value, indent, ascii_only, end):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).replace("\n", end)
    document = parse(text, is_json=True)
    assert typed(document.value) == typed(value)
    decoder = json.JSONDecoder()
    nodes = list(leaves(value))
    assert set(document.places) == {path for path, _ in nodes}
    for path, inner in nodes:
        # What stands at the place is the value itself, as the library reads it from there.
        rest = text_at(text, document.places[path])
        assert typed(decoder.raw_decode(rest)[0]) == typed(inner)
        if path and isinstance(path[-1], str):
            assert decoder.raw_decode(text_at(text, document.keys[path]))[0] == path[-1]


@given(value=values, flow=st.booleans(), unicode=st.booleans(), width=st.sampled_from([20, 80, 10**6]))
@settings(max_examples=200)
def test_quoted_yaml_is_read_as_written_with_every_place(value, flow, unicode, width):
    # Quoted, so that the dumper's rules (1.1) and ours (1.2) do not differ; other scalars are marked by their tag.
    text = yaml.dump(
        value, Dumper=Quoting, default_flow_style=flow, allow_unicode=unicode, width=width, sort_keys=False
    )
    if places._ODD_BREAK.search(text):
        with pytest.raises(SyntaxProblem, match="line break"):
            parse(text)
        return
    document = parse(text)
    assert typed(document.value) == typed(value)
    for path, inner in leaves(value):
        rest = text_at(text, document.places[path])
        if isinstance(inner, str):
            assert rest.startswith('"')
            assert yaml.safe_load(rest[: scalar_end(rest)]) == inner
        elif not isinstance(inner, (dict, list)):
            assert rest.startswith(yaml.safe_dump(inner).split("\n")[0])
        if path and isinstance(path[-1], str):
            assert text_at(text, document.keys[path])[0] in '"?'


class Quoting(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def scalar_end(text: str) -> int:
    return re.compile(r'"(?:[^"\\]|\\.)*"', re.S).match(text).end()


@pytest.mark.parametrize(
    ("typed_text", "value"),
    [
        ("NO", "NO"), ("no", "no"), ("Yes", "Yes"), ("on", "on"), ("off", "off"), ("y", "y"), ("012", "012"),
        ("1:30", "1:30"),
        ("1_000", "1_000"), ("2026-11-30", "2026-11-30"), ("0x1F", "0x1F"), ("0b1", "0b1"), ("~", None),
        ("null", None), ("", None),
        ("true", True), ("FALSE", False), ("tRue", "tRue"), ("1", 1), ("-1", -1), ("+1", 1), ("1.5", 1.5),
        ("1e5", 1e5), (".5", 0.5),
        ("'1'", "1"), ('"true"', "true"), ("!!str 1", "1"), ("!!str NO", "NO"), ("! 12", 12), (".inf", ".inf"),
        (".nan", ".nan"),
        ("<<", "<<"), ("=", "="), ("00", "00"), ("1.2.3", "1.2.3"), ("12 CFR", "12 CFR"), ("Infinity", "Infinity"),
    ],
)  # fmt: skip
def test_plain_words_are_read_by_the_core_schema_of_yaml_1_2(typed_text, value):
    for text in (f"a: {typed_text}\n", f"- {typed_text}\n", f"{{a: {typed_text} }}\n"):
        (read_value,) = parse(text).value if text.startswith("-") else parse(text).value.values()
        assert typed(read_value) == typed(value)


@given(word=st.sampled_from(["NO", "on", "012", "1:30", "yes", "off", "1_000", "2026-11-30", "Điều"]))
def test_keys_that_other_readers_change_stay_words(word):
    assert parse(f"{word}: 1\n").value == {word: 1}


def test_places_count_characters_and_lines_as_an_editor_does():
    text = "# 😀\r\na: 😀😀\r\nb:\r\n  - đ\r\n  - {c: [x, 😀, y]}\r\n"
    document = parse(text)
    for path, value in leaves(document.value):
        if isinstance(value, str):
            line, column = document.places[path]
            assert text.split("\r\n")[line - 1][column - 1 :].startswith(value)
    assert document.places[("b", 1, "c", 2)] == (5, 16)
    assert document.keys[("b", 1, "c")] == (5, 6)


# What is refused, and where


def problem(text: str, is_json: bool = False) -> tuple[str, int, int]:
    with pytest.raises(SyntaxProblem) as caught:
        parse(text, is_json=is_json)
    assert caught.value.message and caught.value.message.isprintable() and len(caught.value.message) < 300
    return caught.value.code, caught.value.line, caught.value.column


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1", ("U001", 1, 6)), ("a: [1\n", ("U001", 2, 1)), ("a: b: c", ("U001", 1, 5)),
        ("a:\n\t- b", ("U001", 2, 1)), ("a: 'x", ("U001", 1, 6)),
        ("a: 1\n b: 2", ("U001", 2, 3)), ("---\na\n---\nb\n", ("U001", 3, 1)), ("a: *none", ("U001", 1, 4)),
        ("a: \x00", ("U001", 1, 4)),
        ("a: b\n\x1bc: d", ("U001", 2, 1)), ("a: b\x7f", ("U001", 1, 5)), ("a: x\u2028y", ("U001", 1, 5)),
        ("a: x\x85y", ("U001", 1, 5)),
        ("a: x\ry", ("U001", 1, 5)), ("a: 1\nb: 2\na: 3", ("U006", 3, 1)), ("x:\n  - {a: 1, a: 2}", ("U006", 2, 12)),
        ("a: 1\n'a': 2", ("U006", 2, 1)), ("1: x", ("U002", 1, 1)), ("true: x", ("U002", 1, 1)),
        ("? [a]\n: x", ("U002", 1, 3)),
        ("a: !!python/object/apply:os.system [exit]", ("U002", 1, 4)), ("a: !x b", ("U002", 1, 4)),
        ("a: !!binary aGk=", ("U002", 1, 4)),
        ("a: !!set {b}", ("U002", 1, 4)), ("!!omap [a: 1]", ("U002", 1, 1)), ("a: !!int '1'", ("U002", 1, 4)),
        ("a: 1e999", ("U001", 1, 4)),
        ("a: " + "9" * 5000, ("U001", 1, 4)), ("a: 99999999999999999999", ("U001", 1, 4)),
        ('a: "\\ud83d"', ("U001", 1, 7)),
        ("a: &x [*x]", ("U001", 0, 0)), ("[" * 100_000, ("U001", 1, 1001)), ("@a", ("U001", 1, 1)),
        ("%YAML 9.9\n--- a", ("U001", 1, 1)),
    ],
    ids=lambda x: None if isinstance(x, tuple) else repr(x)[:20],
)  # fmt: skip
def test_yaml_that_is_none_is_refused_with_its_place(text, expected):
    code, line, column = problem(text)
    # Columns of syntax errors are libyaml's business; those of our own refusals are ours.
    assert (code, line) == expected[:2]
    if code != "U001" or ("\\u" not in text and re.search("[\x00-\x08\x1b\x7f\x85\u2028\r]", text)):
        assert column == expected[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("U001", 1, 1)), ("{", ("U001", 1, 2)), ('{"a": 1,}', ("U001", 1, 8)), ("[1,]", ("U001", 1, 3)),
        ("{'a': 1}", ("U001", 1, 2)),
        ('{"a": NaN}', ("U001", 1, 7)), ('{"a":\n [1, -Infinity]}', ("U001", 2, 6)),
        ('{"NaN": 1,\n "b": Infinity}', ("U001", 2, 7)),
        ('{"a": 1,\n "b": {"a": 1},\n "a": 2}', ("U006", 3, 2)), ('[{"x": "a"}, {"a": 1, "a": "a"}]', ("U006", 1, 23)),
        ('{"a": "a", "\\u0061": 1}', ("U006", 1, 12)), ('{"a": 1e999}', ("U001", 1, 7)),
        ('{"a": ' + "9" * 5000 + "}", ("U001", 1, 7)),
        ('{"a": "\\ud800"}', ("U001", 1, 7)), ('{"\\udc00": 1}', ("U001", 1, 2)), ('{"a": "x\ny"}', ("U001", 1, 9)),
        ("[1] [2]", ("U001", 1, 5)),
        ("a: 1", ("U001", 1, 1)), ("// c\n[]", ("U001", 1, 1)), ("[" * 100_000, ("U001", 0, 0)),
        ('{"a":' * 50_000, ("U001", 0, 0)),
    ],
    ids=lambda x: None if isinstance(x, tuple) else repr(x)[:20],
)  # fmt: skip
def test_json_that_is_none_is_refused_with_its_place(text, expected):
    found = problem(text, is_json=True)
    # A trailing comma is named before or behind it, by the version of the library.
    assert found[:2] == expected[:2] and abs(found[2] - expected[2]) <= 1
    if found[0] == "U006":
        assert found == expected


def test_a_tag_never_makes_anything_run(tmp_path):
    mark = tmp_path / "ran"
    for tag in (
        "python/object/apply:os.system",
        "python/object/new:os.system",
        "python/name:os.system",
        "python/module:os",
    ):
        for text in (f'!!{tag} ["touch {mark}"]', f'a: !!{tag} "touch {mark}"', f'? !!{tag} ["touch {mark}"]\n: 1'):
            assert problem(text)[0] in ("U001", "U002")
    assert not mark.exists()


BOMBS = {
    "aliases": "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
    "mappings": "a0: &a0 {k: x}\n" + "".join(f"a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}}}\n" for i in range(1, 40)),
    "long text": "a: &a " + "x" * 1_000_000 + "\nb: [" + ",".join(["*a"] * 10_000) + "]\n",
    "commas": "[" + "0," * 4_000_000 + "0]",
    "itself": "a: &a {b: *a}\n",
    "deep": "- " * 200_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_unfolds_without_end_is_refused_in_bounds(tmp_path, name):
    """In a process of its own, with a limit on memory, so that a missing bound cannot pass as a slow machine."""
    (tmp_path / "bomb.yaml").write_text(BOMBS[name], encoding="utf-8")
    (tmp_path / "bomb.json").write_text("[" + "0," * 4_000_000 + "0]", encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from regatta_tools.suites.reader import check_file\n"
        "print(*[f.code for f in check_file(Path(sys.argv[1])).findings])"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))

    for file in ["bomb.yaml"] + ["bomb.json"] * (name == "commas"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / file)],
            capture_output=True,
            text=True,
            preexec_fn=limit,
            cwd=ROOT,
            encoding="utf-8",
        )
        assert (done.stdout.strip(), done.returncode) == ("U001", 0), done.stderr[-400:]


def test_aliases_in_measure_are_taken():
    value = parse("a: &a {speaker: user, text: Hi}\nb: [*a, *a]\n").value
    assert value["b"] == [{"speaker": "user", "text": "Hi"}] * 2


@given(content=st.binary(max_size=120), is_json=st.booleans())
@settings(max_examples=200)
def test_no_content_makes_a_check_raise(tmp_path, content, is_json):
    path = tmp_path / ("suite.json" if is_json else "suite.yaml")
    path.write_bytes(content)
    report = check_file(path)
    assert report.files == 1 and not report.ok
    for finding in report.findings:
        assert finding.message and finding.mend and finding.code.startswith("U")


@given(value=values)
@settings(max_examples=150)
def test_no_value_makes_a_check_raise(tmp_path, value):
    path = tmp_path / "suite.json"
    for whole in (value, {"id": "x", "scenarios": value}, {"labels": value}, [{"id": "a", "turns": value}]):
        path.write_text(json.dumps(whole), encoding="utf-8")
        report = check_file(path)
        assert not report.ok
        lines = path.read_text(encoding="utf-8").split("\n")
        for finding in report.findings:
            assert finding.message.strip() and len(finding.message) < 1200
            assert 1 <= finding.line <= len(lines)


# Encoding


@given(at=st.integers(0, 40), byte=st.integers(0x80, 0xFF), bom=st.booleans())
def test_a_byte_that_is_not_utf_8_is_named(tmp_path, at, byte, bom):
    text = "id: x\ntitle: Điều khoản\nscenarios:\n  - id: a\n"
    at = next(i for i in range(at, len(text) + 1) if i == len(text) or text[i].isascii())
    mark = b"\xef\xbb\xbf" if bom else b""
    head = text[:at].encode("utf-8")
    path = tmp_path / "suite.yaml"
    path.write_bytes(mark + head + bytes([byte]) + text[at:].encode("utf-8"))
    (finding,) = check_file(path).findings
    before = text[:at].split("\n")
    assert (finding.code, finding.line, finding.column) == ("U005", len(before), len(before[-1]) + 1)
    assert f"byte {len(mark) + len(head)} (0x{byte:02x})" in finding.message


def test_a_byte_order_mark_is_accepted_and_utf_16_is_named(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + DEMO.read_bytes())
    assert check_file(path).ok and load_suite(path).hash == load_suite(DEMO).hash
    path.write_bytes(DEMO.read_text(encoding="utf-8").encode("utf-16"))
    (finding,) = check_file(path).findings
    assert finding.code == "U005" and "UTF-16" in finding.message


# Suites


def scenario(name: str = "a", **more) -> dict:
    return {"id": name, "turns": [{"speaker": "user", "text": "Hello"}], **more}


def suite(*scenarios, **more) -> dict:
    return {"id": "x", "scenarios": list(scenarios) or [scenario()], **more}


def written(tmp_path: Path, value, name: str = "suite.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def found(path: Path) -> list[str]:
    return [f.code for f in check_file(path).findings]


@pytest.mark.parametrize(
    "name", ["empty.yaml", "none.yaml", "list.json", "mapping.json", "null.json", "words.yaml", "title.yaml"]
)
def test_a_suite_without_scenarios_is_one_finding(tmp_path, name):
    content = {"empty": "", "none": "# only a remark\n", "list": "[]", "mapping": '{"id": "x", "scenarios": []}',
        "null": "null",
               "words": "id: x\nscenarios:\n", "title": "id: x\ntitle: y\n"}[name.split(".")[0]]  # fmt: skip
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert found(path) == ["U003"]
    with pytest.raises(InputError) as caught:
        load_suite(path)
    assert caught.value.code == "U003" and caught.value.exit_code == 2


def test_a_misspelt_key_is_named_where_it_stands_even_if_it_is_that_of_the_scenarios(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text("id: x\nscenarioes:\n  - id: a\n", encoding="utf-8")
    findings = check_file(path).findings
    assert {(f.code, f.line, f.column) for f in findings} == {("U003", 1, 1), ("U002", 2, 1)}
    assert "scenarioes" in " ".join(f.message for f in findings)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_bare_list_is_a_suite_named_after_its_file(tmp_path, form):
    value = [scenario("a"), scenario("b")]
    for name, wanted in (
        ("My Claims_2", "my-claims-2"),
        ("2026", "suite-2026"),
        ("Điều 5", "dieu-5"),
        ("Đie\u0302\u0300u 5", "dieu-5"),
        ("…", "suite"),
        ("縮", "suite"),
    ):
        path = tmp_path / on_disk(f"{name}.{form}")
        path.write_text(json.dumps(value) if form == "json" else yaml.safe_dump(value), encoding="utf-8")
        assert check_file(path).ok and check_file(path).records == 2
        assert load_suite(path).id == wanted
    path = tmp_path / f"bad.{form}"
    bad_yaml = "- id: a\n  turns:\n  - {speaker: user, text: x}\n  extra: 1\n"
    path.write_text(bad_yaml if form == "yaml" else '[{"id": "a",\n"x": 1}]', encoding="utf-8")
    places = [(f.code, f.line) for f in check_file(path).findings]
    assert places == ([("U002", 4)] if form == "yaml" else [("U002", 1), ("U002", 2)])


def test_one_scenario_as_a_whole_file_is_said_to_be_one(tmp_path):
    path = written(tmp_path, scenario())
    (finding,) = check_file(path).findings
    assert finding.code == "U002" and "one scenario" in finding.message


@pytest.mark.parametrize("value", ["x", 1, True, 1.5])
def test_a_file_of_one_word_is_no_suite(tmp_path, value):
    (finding,) = check_file(written(tmp_path, value)).findings
    assert finding.code == "U002" and "mapping" in finding.message


WRONG = [
    ({"id": 1}, ("id",)), ({"id": "A b"}, ("id",)), ({"cell": "§ 5"}, ("cell",)), ({"language": "fr"}, ("language",)),
    ({"scenarios": {}}, ("scenarios",)), ({"scenarios": "a"}, ("scenarios",)), ({"scenarios": [1]}, ("scenarios", 0)),
    ({"scenarios": [scenario(turns=[])]}, ("scenarios", 0, "turns")), ({"scenarios": [scenario(turns={})]},
    ("scenarios", 0, "turns")),
    ({"scenarios": [scenario(turns=["hi"])]}, ("scenarios", 0, "turns", 0)),
    ({"scenarios": [scenario(turns=[{"speaker": "bot", "text": "x"}])]}, ("scenarios", 0, "turns", 0, "speaker")),
    ({"scenarios": [scenario(turns=[{"speaker": "user", "text": ""}])]}, ("scenarios", 0, "turns", 0, "text")),
    ({"scenarios": [scenario(turns=[{"speaker": "user", "text": " \n\t"}])]}, ("scenarios", 0, "turns", 0, "text")),
    ({"scenarios": [scenario(turns=[{"speaker": "user", "text": 12}])]}, ("scenarios", 0, "turns", 0, "text")),
    ({"scenarios": [scenario(turns=[{"text": "x"}])]}, ("scenarios", 0, "turns", 0)),
    ({"scenarios": [scenario(context=5)]}, ("scenarios", 0, "context")), ({"scenarios": [scenario(expected=["x"])]},
    ("scenarios", 0, "expected")),
    ({"scenarios": [scenario(claims=[])]}, ("scenarios", 0, "claims")),
    ({"scenarios": [scenario(claims={"category": 1})]}, ("scenarios", 0, "claims", "category")),
    ({"scenarios": [scenario(language="VI")]}, ("scenarios", 0, "language")), ({"scenarios": [scenario("ok"),
    {"id": "b"}]}, ("scenarios", 1)),
    ({"scenarios": [scenario("a b")]}, ("scenarios", 0, "id")), ({"scenarios": [scenario("")]}, ("scenarios", 0, "id")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "path"), WRONG, ids=lambda x: None if isinstance(x, dict) else ".".join(map(str, x))
)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_wrong_value_is_one_finding_where_it_stands(tmp_path, change, path, form):
    value = suite() | change
    text = json.dumps(value, indent=1) if form == "json" else yaml.safe_dump(value, sort_keys=False)
    file = tmp_path / f"suite.{form}"
    file.write_text(text, encoding="utf-8")
    (finding,) = check_file(file).findings
    assert finding.code == "U002"
    assert (finding.line, finding.column) == parse(text, is_json=form == "json").places[path]
    where = ".".join(str(p + 1) if isinstance(p, int) else p for p in path)
    assert finding.message.startswith(f"{where}: ")
    with pytest.raises(InputError) as caught:
        load_suite(file)
    assert caught.value.place == f"{file}:{finding.line}:{finding.column}"


@pytest.mark.parametrize("path", [(), ("scenarios", 0), ("scenarios", 0, "turns", 0), ("scenarios", 0, "claims")])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_unknown_keys_are_named_one_by_one_where_they_stand(tmp_path, path, form):
    value = suite(scenario(claims={"category": "x"}))
    inner = value
    for step in path:
        inner = inner[step]
    inner |= {"zeta": 1, "expekted": ["a"]}
    text = json.dumps(value, indent=1) if form == "json" else yaml.safe_dump(value, sort_keys=False)
    file = tmp_path / f"suite.{form}"
    file.write_text(text, encoding="utf-8")
    findings = check_file(file).findings
    assert [f.code for f in findings] == ["U002", "U002"]
    for finding, key in zip(findings, ("zeta", "expekted")):
        assert repr(key) in finding.message
        assert text_at(text, (finding.line, finding.column)).lstrip('"').startswith(key)


@given(names=st.lists(st.sampled_from(["a", "b", "c", "A"]), min_size=1, max_size=6))
def test_a_name_that_comes_again_is_found_each_time(tmp_path, names):
    path = written(tmp_path, suite(*map(scenario, names)))
    findings = check_file(path).findings
    again = [i for i, n in enumerate(names) if n in names[:i]]
    assert [f.code for f in findings] == ["U004"] * len(again)
    document = parse(path.read_text(encoding="utf-8"), is_json=True)
    assert [(f.line, f.column) for f in findings] == [document.places[("scenarios", i, "id")] for i in again]
    assert [f"number {names.index(f.record) + 1}" in f.message for f in findings] == [True] * len(again)


@given(speakers=st.lists(st.sampled_from(["user", "agent"]), min_size=1, max_size=5))
def test_the_last_turn_is_the_user_s(tmp_path, speakers):
    path = written(tmp_path, suite(scenario(turns=[{"speaker": s, "text": "x"} for s in speakers])))
    findings = check_file(path).findings
    assert [f.code for f in findings] == ([] if speakers[-1] == "user" else ["U007"])
    if findings:
        place = parse(path.read_text(encoding="utf-8"), is_json=True).places[
            ("scenarios", 0, "turns", len(speakers) - 1)
        ]
        assert (findings[0].line, findings[0].column) == place


# Case A20: words of the user reach the reader byte for byte


@given(
    text=(st.sampled_from(TRAPS) | st.text(st.characters(blacklist_categories=("Cs",)), min_size=1)).filter(
        lambda t: t.strip()
    )
)
@settings(max_examples=150)
def test_what_the_user_says_is_kept_byte_for_byte(tmp_path, text):
    if not re.search(r"\S", text):
        return
    value = suite(
        scenario(turns=[{"speaker": "user", "text": text}], context=text, expected=text, claims={"category": text})
    )
    as_json = tmp_path / "suite.json"
    as_json.write_text(json.dumps(value), encoding="utf-8")
    as_yaml = tmp_path / "suite.yaml"
    as_yaml.write_text(yaml.dump(value, Dumper=Quoting), encoding="utf-8")
    for path in (as_json, as_yaml):
        (read_back,) = load_suite(path).scenarios
        assert read_back.turns[0].text == text
        assert read_back.context == read_back.expected == text
        assert dict(read_back.claims) == {"category": text}
    assert load_suite(as_json).hash == load_suite(as_yaml).hash


# The hash


def changed(value: dict, path: tuple, new) -> dict:
    copy = json.loads(json.dumps(value))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return copy


BASE = suite(
    scenario("a", context="c", expected="e", claims={"category": "x", "regulation": "r"}), scenario("b"),
    language="en", cell="c", title="t"
)  # fmt: skip
JUDGED = [
    ("scenarios", 0, "id"),
    ("scenarios", 0, "context"),
    ("scenarios", 0, "expected"),
    ("scenarios", 0, "turns", 0, "text"),
]
UNJUDGED = [
    ("scenarios", 0, "claims", "category"),
    ("scenarios", 0, "claims", "regulation"),
    ("title",),
    ("cell",),
    ("id",),
]


@given(text=st.from_regex(r"[a-z]{2,9}", fullmatch=True).filter(lambda t: t not in ("a", "b", "user")))
@settings(max_examples=20)
def test_every_judged_part_changes_the_hash_and_no_other_does(tmp_path, text):
    def digest(value) -> str:
        return load_suite(written(tmp_path, value)).hash

    base = digest(BASE)
    seen = [base]
    for path in JUDGED:
        seen.append(digest(changed(BASE, path, text)))
    seen.append(digest(changed(BASE, ("scenarios", 0, "language"), "vi")))
    seen.append(digest(changed(BASE, ("language",), "vi")))
    seen.append(digest(changed(BASE, ("scenarios", 0, "context"), None)))
    seen.append(digest(changed(BASE, ("scenarios",), BASE["scenarios"][::-1])))
    seen.append(digest(changed(BASE, ("scenarios",), BASE["scenarios"][:1])))
    turns = [{"speaker": "agent", "text": "Hi"}, {"speaker": "user", "text": "Hello"}]
    seen.append(digest(changed(BASE, ("scenarios", 0, "turns"), turns)))
    turns = [{"speaker": "user", "text": "Hi"}, {"speaker": "user", "text": "Hello"}]
    seen.append(digest(changed(BASE, ("scenarios", 0, "turns"), turns)))
    assert len(set(seen)) == len(seen)
    for path in UNJUDGED:
        assert digest(changed(BASE, path, text)) == base, path
    assert digest(changed(BASE, ("scenarios", 0, "claims"), None)) == base
    # A language that is written out and one that is inherited are the same.
    assert digest(changed(BASE, ("scenarios", 0, "language"), "en")) == base


def test_the_hash_does_not_move_with_the_form_of_the_file(tmp_path):
    value = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    assert load_suite(written(tmp_path, value)).hash == load_suite(DEMO).hash
    assert re.fullmatch("[0-9a-f]{64}", load_suite(DEMO).hash)


# Labels


@pytest.fixture(scope="module")
def cell():
    return read(ROOT).cell("insurance-us")


def labels(**more) -> dict:
    base = {"suite": "x", "cell": "insurance-us", "labeller": "me", "labeller_kind": "ai", "date": "2026-11-30"}
    return (
        base
        | {"labels": [{"scenario": "a", "requirements": ["insurance-us-r01"], "faults": []}, {"scenario": "b"}]}
        | more
    )


def entries(*items) -> dict:
    return {"labels": list(items)}


A, B = {"scenario": "a"}, {"scenario": "b"}


def test_labels_that_fit_are_read(tmp_path, cell):
    two = load_suite(written(tmp_path, suite(scenario("a"), scenario("b"))))
    path = written(tmp_path, labels(), "labels.json")
    assert check_file(path).ok and check_file(path).records == 2
    given_labels = load_labels(path, two, cell)
    assert given_labels.requirements == {"a": {"insurance-us-r01"}, "b": frozenset()}
    assert given_labels.faults == {"a": frozenset(), "b": frozenset()}
    assert (given_labels.labeller, given_labels.labeller_kind) == ("me", "ai")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"suite": "y"}, ("suite",)), ({"cell": "banking-vn"}, ("suite",)), (entries(A), ("labels",)),
        (entries(A, B, {"scenario": "c"}), ("labels", 2, "scenario")), (entries(A, B, A), ("labels", 2, "scenario")),
        (entries(B, {"scenario": "A"}), ("labels", 1, "scenario")),
        (entries(A, B | {"requirements": ["insurance-us-r01", "insurance-us-r99"]}), ("labels", 1, "requirements", 1)),
        (entries(A, B | {"faults": ["insurance-us-r01"]}), ("labels", 1, "faults", 0)),
        (entries(A, B | {"requirements": ["insurance-us-fault-sar-tipping"]}), ("labels", 1, "requirements", 0)),
    ],
)  # fmt: skip
def test_a_label_that_fits_nothing_is_refused_where_it_stands(tmp_path, cell, change, path):
    two = load_suite(written(tmp_path, suite(scenario("a"), scenario("b"))))
    file = written(tmp_path, labels(**change), "labels.json")
    assert check_file(file).ok, "the form is right; only the suite shows that it does not fit"
    with pytest.raises(InputError) as caught:
        load_labels(file, two, cell)
    line, column = parse(file.read_text(encoding="utf-8"), is_json=True).places[path]
    assert caught.value.code == "U008" and caught.value.place == f"{file}:{line}:{column}" and caught.value.mend


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (labels(labels=[]), "empty"), (labels(labels={}), "list"), (labels(labeller_kind="robot"),
        "machine, ai, human, lawyer"),
        (labels(date="yesterday"), "date"), (labels(date="2026-02-30"), "date"), (labels(extra=1), "'extra'"),
        (labels(labels=[{"scenario": "a", "faults": "x"}]), "list"), (labels(labels=[{"requirements": []}]),
        "'scenario'"),
        ({k: v for k, v in labels().items() if k != "labels"}, "'labels'"),
        ({k: v for k, v in labels().items() if k != "date"}, "'date'"),
    ],
)  # fmt: skip
def test_a_label_file_of_another_form_is_one_finding(tmp_path, cell, value, says):
    path = written(tmp_path, value)
    (finding,) = check_file(path).findings
    assert finding.code == "U002" and says in finding.message
    with pytest.raises(InputError):
        load_labels(path, load_suite(DEMO), cell)


def test_an_empty_label_file_is_refused(tmp_path, cell):
    path = tmp_path / "labels.yaml"
    for content in ("", "[]", "x"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            load_labels(path, load_suite(DEMO), cell)
        assert caught.value.code == "U002"


# Files


def test_what_cannot_be_opened_is_an_error_of_input(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    for name in ("none.yaml", "folder.yaml", "loop.yaml", "x" * 5000 + ".yaml", "a\0b.yaml"):
        for call in (check_file, load_suite):
            with pytest.raises(InputError) as caught:
                call(tmp_path / name)
            assert caught.value.code == "U101" and caught.value.exit_code == 2


def test_a_pipe_is_read_and_an_endless_one_is_not(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, DEMO.read_bytes()[:60_000])
    os.close(writing)
    try:
        assert load_suite(f"/dev/fd/{reading}").id == "insurance-us-demo"
    finally:
        os.close(reading)
    start = time.process_time()
    with pytest.raises(InputError, match="more than"):
        load_suite("/dev/zero")
    assert time.process_time() - start < 10


def test_the_example_suites_are_clean():
    # Those of the rules are wrong on purpose, and have tests of their own.
    for path in sorted(p for p in (ROOT / "examples").rglob("*.yaml") if "rules" not in p.parts):
        report = regatta_tools.validate(path)
        assert report.ok and report.records > 0, path


def test_an_unknown_key_is_told_with_the_known_ones(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "id: x\nscenarios:\n  - id: a\n    expectd: hi\n    turns:\n      - {speaker: user, text: Hi}\n",
        encoding="utf-8",
    )
    (finding,) = check_file(path).findings
    assert (finding.code, finding.line) == ("U002", 4)
    assert "expected" in finding.mend and "turns" in finding.mend and "speaker" not in finding.mend


def test_the_commonest_slips_of_yaml_are_told_in_plain_words(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "id: x\nscenarios:\n  - id: a\n    turns:\n      - speaker: user\n        text: Note: my claim\n",
        encoding="utf-8",
    )
    (finding,) = check_file(path).findings
    assert (finding.code, finding.line) == ("U001", 6) and "quotes" in finding.message
