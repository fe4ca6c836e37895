"""Cases A1 to A13 and A23, drawn from public bug reports about other tools, as tests of their kinds.

Most are tested where the code is that they are about; :data:`COVERED` names those tests, and one test here checks
that they exist. What follows is what only the whole shows: the same kinds through `regatta validate`, and that a
package cannot lead anybody out of it.
"""

from __future__ import annotations

import ast
import csv
import importlib
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from conftest import ROOT, redescribe
from helpers import Sheet
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding
from regatta_tools.safety import unsafe, unsafe_references
from regatta_tools.tables.formatter import format_paths
from regatta_tools.tables.model import check_imports
from regatta_tools.tables.package import DESCRIPTOR, read
from regatta_tools.text import shown

HOME = "instruments/insurance-us"

COVERED: dict[str, list[str]] = {
    "A1": [
        "test_reader.test_one_byte_that_is_not_utf_8_is_named_with_line_column_and_offset",
        "test_reader.test_a_byte_order_mark_and_a_latin_1_word_far_down",
        "test_cli_validate.test_a_byte_order_mark_is_no_error",
    ],
    "A2": [
        "test_reader.test_another_delimiter_is_named_and_nothing_else",
        "test_reader.test_trailing_delimiters_are_rows_or_columns_too_many",
        "test_reader.test_what_the_csv_module_writes_is_read_back_with_its_places",
        "test_reader.test_a_wrong_header_is_one_finding_that_says_what_is_wrong",
    ],
    "A3": [
        "test_reader.test_ids_that_look_the_same_are_the_same",
        "test_reader.test_decomposed_text_is_named_by_cell",
        "test_graph.test_decomposed_text_meets_composed_text",
    ],
    "A4": [
        "test_citations.test_a_number_of_another_form_is_refused_with_the_form_that_is_meant",
        "test_citations.test_a_number_written_carelessly_is_refused_and_the_number_is_suggested",
        "test_citations.test_the_slug_of_a_number_is_plain_and_collides_with_nothing",
        "test_citations.test_a_law_number_is_no_date",
    ],
    "A5": [
        "test_validation.test_an_id_that_a_spreadsheet_turned_is_called_that",
        "test_validation.test_the_reported_conversions",
        "test_validation.test_texts_stay_as_typed",
        "test_sheets.test_case_a5_ids_that_a_spreadsheet_converted",
    ],
    "A6": [
        "test_query.test_csv_runs_no_formula_and_spoils_no_number",
        "test_sheets.test_text_that_looks_like_a_formula_is_text",
        "test_validation.test_a_rule_is_raised_by_what_it_is_about_and_by_nothing_else",
    ],
    "A7": [
        "test_reader.test_a_missing_final_newline_loses_no_row",
        "test_reader.test_a_list_of_paths_is_read_as_its_parts",
        "test_reader.test_two_rows_that_were_glued_are_seen",
        "test_reader.test_a_row_that_went_missing_is_seen",
    ],
    "A8": [
        "test_schema_build.test_a8_permissible_values_have_to_be_text",
        "test_schema_build.test_a8_imports_are_followed",
        "test_validation.test_a_value_outside_its_list_is_shown_as_typed_with_the_list",
    ],
    "A9": [
        "test_reader.test_duplicates_are_found_in_one_file_and_across_files",
        "test_validation.test_the_same_thing_under_another_id_is_seen",
        "test_validation.test_a_row_that_stands_twice_is_told_once",
    ],
    "A10": [
        "test_query.test_payloads_find_nothing",
        "test_query.test_any_text_is_a_filter_and_no_more",
        "test_query.test_what_is_no_query_is_refused_with_its_place",
        "test_query.test_nothing_remote_is_asked",
    ],
    "A11": [
        "test_graph.test_names_are_valid_reversible_and_different",
        "test_graph.test_names_survive_each_serialisation",
        "test_validation.test_ids_that_no_address_bears_are_refused",
    ],
    "A12": [
        "test_citations.test_every_section_is_listed",
        "test_citations.test_a_range_keeps_both_ends_and_names_no_passage",
        "test_citations.test_et_seq_is_open_ended",
    ],
    "A13": [
        "test_citations.test_a_citation_is_read_whole",
        "test_citations.test_what_is_longer_is_never_what_is_shorter",
        "test_citations.test_no_prefix_is_taken_for_the_whole_and_no_remainder_is_dropped",
    ],
    "A23": [
        "test_reader.test_a_path_out_of_the_package_is_refused_unopened",
        "test_query.test_the_child_could_not_ask_if_it_wanted_to",
        "test_formatter.test_links_and_unknown_tables_are_refused",
    ],
}


@pytest.mark.parametrize("case", COVERED)
def test_the_tests_that_cover_a_case_exist(case):
    for name in COVERED[case]:
        module, function = name.split(".")
        assert callable(getattr(importlib.import_module(module), function)), name


def validated(root: Path) -> list[Finding]:
    """The findings on a package, by the command line's own way to it."""
    return list(regatta_tools.validate(root).findings)


def places(findings: list[Finding], *codes: str) -> set[tuple[str, str, int]]:
    return {(f.code, f.file, f.line) for f in findings if not codes or f.code in codes}


# A1: a byte-order mark at the start, an odd byte far down


def test_no_writer_adds_a_byte_order_mark_and_no_reader_replaces_a_byte():
    """The codec that takes a mark stands where something is read, and what reads tables replaces no byte."""
    for path in sorted((ROOT / "regatta_tools").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            words = [a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)]
            if "utf-8-sig" in words:
                assert name in ("open", "read_text", "decode"), (path, node.lineno)
                assert not {"w", "wb", "a", "x"} & set(words), (path, node.lineno)
            if path.name in ("text.py", "documents.py", "reader.py", "package.py", "formatter.py"):
                assert name not in ("open", "read_text", "decode") or "replace" not in words, (path, node.lineno)


@given(row=st.integers(1, 20), word=st.sampled_from(["Phí tháng", "§ 5", "naïve", "Điều 5"]), bom=st.booleans())
@settings(max_examples=10)
def test_a1_through_validate(tmp_path_factory, whole_cell, row, word, bom):
    root = whole_cell(tmp_path_factory.mktemp("a1"))
    path = root / f"{HOME}/facts.csv"
    lines = path.read_bytes().split(b"\n")
    odd = word.encode("cp1258", "replace")
    cells = lines[row].split(b",")
    before = b",".join(cells[:4]) + b","
    lines[row] = before + odd + b"," + b",".join(cells[5:])
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + b"\n".join(lines))
    at = next(i for i, byte in enumerate(odd) if byte > 127)
    [found] = [f for f in validated(root) if f.code == "R002"]
    assert (found.line, found.column) == (row + 1, len(before.decode("utf-8")) + at + 1)
    offset = path.read_bytes().index(before + odd) + len(before) + at
    assert f"byte {offset} (0x{odd[at]:02x})" in found.message


@pytest.fixture(scope="session")
def whole_cell(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Copies of one real cell, made from one that was made once."""
    from shutil import copytree

    from conftest import one_cell

    first = one_cell(tmp_path_factory.mktemp("cell"))
    return lambda root: copytree(first, root, dirs_exist_ok=True)


# A2: semicolons, CRLF, line feeds inside cells, a trailing delimiter


@given(
    notes=st.lists(st.sampled_from(["", "x", "line 1\nline 2", "line 1\r\nline 2", "a;b", "a, b", '"q"']), min_size=18),
    end=st.sampled_from(["\n", "\r\n"]),
    sign=st.sampled_from(";,"),
)
@settings(max_examples=12)
def test_a2_line_ends_and_delimiters_through_validate(tmp_path_factory, whole_cell, notes, end, sign):
    root = whole_cell(tmp_path_factory.mktemp("a2"))
    sheet = Sheet(root, "sources")
    for row, note in zip(range(len(sheet.rows)), notes, strict=False):
        sheet.set(row, note=note)
    out = io.StringIO()
    csv.writer(out, delimiter=sign, lineterminator=end).writerows([sheet.header, *sheet.rows])
    (root / sheet.file).write_bytes(out.getvalue().encode("utf-8"))
    if sign == ";":
        assert places(validated(root)) == {("R004", sheet.file, 1)}
        return
    redescribe(root)
    kept = [record["note"] for record in read(root).table("sources")]
    assert kept == [row[-1] for row in sheet.rows]
    assert {f.code for f in validated(root)} <= {"R019"}


# A3: the same name composed and decomposed


def test_a3_two_rows_that_differ_only_in_form_are_one_row_twice(package_copy):
    sheet = Sheet(package_copy, "facts")
    first = list(sheet.rows[0])
    first[0], first[sheet.header.index("label")] = f"{first[0]}9", "thời hạn"
    again = list(first)
    again[0], again[sheet.header.index("label")] = f"{first[0]}8", unicodedata.normalize("NFD", "thời hạn")
    sheet.rows += [first, again]
    file, line = sheet.save(len(sheet.rows) - 1)
    found = [f for f in validated(package_copy) if f.code in ("R009", "K002")]
    assert places(found) == {("R009", file, line), ("K002", file, line)}
    assert f"{file}:{line - 1}" in next(f.message for f in found if f.code == "K002")
    assert next(f.column for f in found if f.code == "R009") > 1


# A4, A12, A13: citations, through the rules


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ("18/2024/N\u00d0-CP", ["U+00D0", "18/2024/NĐ-CP"]), ("18/2024/ND-CP", ["18/2024/NĐ-CP"]),
        ("18 /2024/NĐ - CP", ["18/2024/NĐ-CP"]), ("18/2024/nđ-cp", ["18/2024/NĐ-CP"]),
        ("6/2021/TT-NHNN", ["06/2021/TT-NHNN"]), ("18/2024/NĐ-CP", []), ("31/2024/QH15", []),
    ],
)  # fmt: skip
def test_a4_a_number_is_taken_as_it_stands_or_refused_with_what_is_meant(package_copy, number, says):
    sheet = Sheet(package_copy, "sources")
    row = list(sheet.rows[0])
    for column, text in {"id": "vn-one-more", "title_vi": "Văn bản", "jurisdiction": "VN", "number": number}.items():
        row[sheet.header.index(column)] = text
    sheet.rows.append(row)
    file, line = sheet.save(len(sheet.rows) - 1)
    found = [f for f in validated(package_copy) if f.code in ("C002", "C009")]
    assert places(found) == ({("C002", file, line)} if says else set())
    for words in says:
        assert words in found[0].message
    assert read(package_copy).by_id["vn-one-more"]["number"] == number, "suggested, never rewritten"


@pytest.mark.parametrize("name", ["Nghị định", "Đ", "Ð", "N\u0110-CP", "dj-1", "đ-1"])
def test_a4_ids_are_plain_letters(package_copy, name):
    sheet = Sheet(package_copy, "fault_probes")
    file, line = sheet.save(sheet.set(0, id=name))
    codes = {f.code for f in validated(package_copy) if (f.file, f.line) == (file, line)}
    assert codes == ({"K006"} if name == "dj-1" else {"S004"})


@pytest.mark.parametrize(
    ("locator", "codes"),
    [
        ("10 CCR §§ 2695.5(e), 2695.7(b)", []), ("10 CCR §§ 2695.5-2695.7", ["C004", "C008"]),
        ("10 CCR § 2695.7 et seq.", ["C004"]), ("10 CCR § 2695.7(b)(1", ["C001"]), ("10 CCR 2695.7x(b)", ["C001"]),
        ("§ 2695.7", ["C001"]), ("10 CCR App. § 2695.7", ["C001"]), ("section 2695.7(b)(1) and more", ["C001"]),
        ("11 CCR § 2695.7(b)(1)", ["C003"]), ("10 CCR § 2695.6(b)(1)", ["C008"]), ("10 CCR 2695.7(b)(1)", ["C007"]),
    ],
)  # fmt: skip
def test_a12_a13_a_basis_is_read_whole_or_refused(package_copy, locator, codes):
    sheet = Sheet(package_copy, "citations")
    row = sheet.find("insurance-us-r04-c1")
    assert sheet.rows[row][sheet.header.index("role")] == "basis"
    file, line = sheet.save(sheet.set(row, locator=locator))
    found = [f for f in validated(package_copy) if f.code.startswith("C0")]
    assert places(found) == {(code, file, line) for code in codes}, found


# A5: ids and sections that a spreadsheet takes for numbers


def test_a5_a_section_never_equals_another_that_is_the_same_number(package_copy):
    """45 CFR § 158.24 and § 158.240: equal as numbers, two passages as texts."""
    sheet = Sheet(package_copy, "citations")
    row = list(sheet.rows[sheet.find("insurance-us-r12-c1")])
    at = {name: sheet.header.index(name) for name in ("id", "locator", "role")}
    row[at["role"]] = "scope"
    for number, section in enumerate(("158.24", "158.240", "158.2400"), 7):
        more = list(row)
        more[at["id"]], more[at["locator"]] = f"insurance-us-r12-c{number}", f"45 CFR § {section}(c)"
        sheet.rows.append(more)
    sheet.save()
    assert not [f for f in validated(package_copy) if f.code in ("K001", "K002")]
    texts = [record["locator"] for record in read(package_copy).table("citations")]
    assert {"45 CFR § 158.24(c)", "45 CFR § 158.240(c)", "45 CFR § 158.2400(c)"} <= set(texts)


# A6: texts that a spreadsheet would run


@pytest.mark.parametrize(
    "text", ["=1+1", "+1 (555) 0199", "-x", "@SUM(1)", "=cmd|' /C calc'!A0", "＝1+1", "-0.25", "- note", "a=1", "§ 5"]
)
def test_a6_the_package_says_what_would_run_and_carries_it_unchanged(package_copy, text):
    sheet = Sheet(package_copy, "sources")
    file, line = sheet.save(sheet.set(0, note=text))
    before = (package_copy / file).read_bytes()
    runs = text not in ("-0.25", "a=1", "§ 5")
    assert places(validated(package_copy), "R019") == ({("R019", file, line)} if runs else set())
    format_paths([package_copy])
    assert (package_copy / file).read_bytes() == before
    assert read(package_copy).table("sources")[0]["note"] == text


# A7: parts


@given(st.sets(st.sampled_from(["requirements", "citations", "facts", "faults", "fault_values", "fault_probes"])))
@settings(max_examples=8)
def test_a7_parts_without_a_last_line_end_lose_nothing(tmp_path_factory, whole_cell, tables):
    root = whole_cell(tmp_path_factory.mktemp("a7"))
    count = read(root).count
    for table in tables:
        path = root / f"{HOME}/{table}.csv"
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert {f.file for f in validated(root)} == {f"{HOME}/{table}.csv" for table in tables}
    redescribe(root)
    assert validated(root) == [] and read(root).count == count


@pytest.mark.parametrize("said", [None, "5", 5.0, True, [], float("nan")])
@pytest.mark.parametrize("key", ["rows", "bytes", "hash"])
def test_a7_a_descriptor_that_does_not_say_how_much_there_is_protects_nothing(package_copy, key, said):
    path = package_copy / DESCRIPTOR
    value = json.loads(path.read_text(encoding="utf-8"))
    resource = next(r for r in value["resources"] if r["path"].endswith("facts.csv"))
    resource[key] = said
    if said is None:
        del resource[key]
    path.write_text(json.dumps(value), encoding="utf-8")
    assert places(validated(package_copy)) == {("R011", f"{HOME}/facts.csv", 0)}


# A8: words that YAML 1.1 takes for something else, in what REGATTA itself reads


@given(
    word=st.sampled_from(["Yes", "No", "NO", "On", "off", "y", "012", "1:30", "0o7", "1_000", "2026-11-30", "=", "<<"])
)
def test_a8_words_in_suites_stay_words(tmp_path_factory, word):
    path = tmp_path_factory.mktemp("a8") / "suite.yaml"
    text = f"id: x\nscenarios:\n  - id: {word}\n    turns:\n      - {{speaker: user, text: {word}}}\n"
    path.write_text(text, encoding="utf-8")
    from regatta_tools.documents import read_document

    scenario = read_document(path).value["scenarios"][0]
    assert scenario["id"] == word == scenario["turns"][0]["text"]


# A9: duplicates over several cells


def test_a9_one_id_in_two_files_names_both_places(package_copy):
    one, other = Sheet(package_copy, "facts"), Sheet(package_copy, "citations")
    key = other.rows[3][0]
    file, line = one.save(one.set(0, id=key))
    found = [f for f in validated(package_copy) if f.code == "K001"]
    assert {f.file for f in found} <= {file, other.file} and len(found) == 1
    both = f"{found[0].file}:{found[0].line} {found[0].message}"
    assert f"{file}:{line}" in both and f"{other.file}:{other.line(3)}" in both


# A10, A11: names and values on their way into queries and graphs


@given(
    text=st.sampled_from(['x") || true) } #', "x\\u0022) || true) } #", "<> . } DROP ALL", "§ 5", "a%20b", "Điều 5"])
)
@settings(max_examples=3)
def test_a10_a11_odd_text_in_the_data_comes_out_of_the_graph_as_it_went_in(tmp_path_factory, whole_cell, text):
    from regatta_tools.graph import query

    root = whole_cell(tmp_path_factory.mktemp("a10"))
    sheet = Sheet(root, "requirements")
    sheet.set(0, topic=text)
    sheet.save()
    asked = query.parse_header("SELECT ?t WHERE { ?r <http://purl.org/dc/terms/subject> ?t }")
    rows = query.run_query(read(root), asked.text, query.bind(asked, {}), origin="").rows
    topics = [record["topic"] for record in read(root).table("requirements")]
    if not rows:  # the topic has another property: ask for any
        asked = query.parse_header("SELECT ?t WHERE { ?r ?p ?t }")
        rows = query.run_query(read(root), asked.text, query.bind(asked, {}), origin="").rows
    assert text in topics and any(text == str(cell) for row in rows for cell in row)


# A23: paths that leave the package


def outward(outside: Path) -> list[str]:
    """Ways out of a package that lies below ``outside``, each to something that is there or would be asked for."""
    secret = outside / "secret.csv"
    return [
        "../secret.csv", "instruments/../../secret.csv", "instruments/insurance-us/../../../secret.csv", str(secret),
        "/etc/hostname", "instruments\\..\\..\\secret.csv", "..\\secret.csv", f"file://{secret}", f"file:{secret}",
        "http://127.0.0.1:9/x.csv", "HTTPS://127.0.0.1:9/x.csv", "ftp://127.0.0.1:9/x.csv", "s3://127.0.0.1:9/x.csv",
        "zip://../secret.csv", "data:text/csv,id", "//127.0.0.1/share/x.csv", "\\\\127.0.0.1\\share\\x.csv",
        "C:\\secret.csv", "c:secret.csv", "~/secret.csv", "~root/secret.csv", "instruments/.. /.. /secret.csv",
        "instruments/.../secret.csv", "instruments/facts.csv:stream", "instruments/nul", "instruments/aux.csv",
        "instruments/out/secret.csv", "instruments/link.csv", "instruments/chain.csv",
    ]  # fmt: skip


@pytest.fixture
def trap(tmp_path: Path, whole_cell: Any) -> Path:
    """A package beside secrets, with links that lead to them."""
    root = whole_cell(tmp_path / "outside" / "package")
    outside = root.parent
    (outside / "secret.csv").write_text("id,title\nsecret,told\n", encoding="utf-8")
    (outside / "secret.yaml").write_text("id: https://example.org/s\nname: s\n", encoding="utf-8")
    (outside / "secret.json").write_text('{"fields": []}', encoding="utf-8")
    (root / "instruments/out").symlink_to(outside)
    (root / "instruments/link.csv").symlink_to(outside / "secret.csv")
    (root / "instruments/chain.csv").symlink_to(root / "instruments/link.csv")
    return root


def watched(root: Path, jobs: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Run jobs in a process that notes what they open outside of ``root`` and lets no connection through."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/watched.py"), str(root), str(root.parent)],
        input=json.dumps(jobs), capture_output=True, encoding="utf-8", timeout=120, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a23_the_watch_sees_what_it_has_to_see(trap):
    """A schema outside is opened when it is what one asks for: then the watch says so."""
    [seen] = watched(trap, [("schema", str(trap.parent / "secret.yaml"))])
    assert any("secret.yaml" in event for event in seen["tried"])


def test_a23_no_path_of_a_descriptor_leads_out(trap):
    value = json.loads((trap / DESCRIPTOR).read_text(encoding="utf-8"))
    ways = outward(trap.parent)
    value["resources"] += [{"name": f"x{i}", "path": way} for i, way in enumerate(ways)]
    value["resources"] += [{"name": "list", "path": ways}, *ways]
    (trap / DESCRIPTOR).write_text(json.dumps(value), encoding="utf-8")
    plain, form = watched(trap, [("validate", str(trap)), ("fmt", str(trap))])
    assert plain["tried"] == [] == form["tried"]
    refused = [message for code, _, _, message in plain["said"] if code == "R015"]
    for way in ways:
        assert any(shown(way) in message for message in refused), way
    others = {(code, file) for code, _, file, _ in plain["said"] if code != "R015"}
    assert others == {("R016", "instruments/link.csv"), ("R016", "instruments/chain.csv")}


FOLLOWED = ["$schema", "profile", "schema", "dialect", "extrapaths", "basepath", "package", "$ref"]


def test_a23_no_reference_of_a_descriptor_leads_out(trap):
    """Others would follow them (frictionless loads a schema or a profile that is an address), so they are refused."""
    value = json.loads((trap / DESCRIPTOR).read_text(encoding="utf-8"))
    assert not [f for f in validated(trap) if f.code == "R015"], "profiles that everybody knows by name are no way out"
    first, second, *_ = value["resources"]
    ways = outward(trap.parent)
    value["custom"] = [{key: way} for key in FOLLOWED for way in ways]
    value["profile"], first["schema"], first["dialect"] = ways[0], ways[1], ways[2]
    second["schema"]["$schema"], second["dialect"]["profile"], second["extrapaths"] = ways[3], ways[4], ways[5:7]
    put(trap, value)
    plain, form = watched(trap, [("validate", str(trap)), ("fmt", str(trap))])
    assert plain["tried"] == [] == form["tried"]
    said = [message for code, _, _, message in plain["said"] if code == "R015"]
    for key in FOLLOWED:
        for way in ways:
            assert any(message.startswith(f"{key} {shown(way)} ") for message in said), (key, way)
    put(trap, value | {"custom": []})
    assert len([f for f in validated(trap) if f.code == "R015"]) == 7


@given(st.sampled_from(FOLLOWED), st.sampled_from(["schemas/x.json", "./x.json", "dialect.json", "a/b/c d.json"]))
def test_a23_references_inside_are_no_matter(tmp_path_factory, key, name):
    root = tmp_path_factory.mktemp("in")
    assert [*unsafe_references(root, {"resources": [{"path": "http://x.invalid/", key: name}]})] == []
    known = {"$schema": "https://datapackage.org/profiles/2.0/datapackage.json", "profile": "tabular-data-package"}
    people = {"licenses": [{"path": "https://example.org/"}], "sources": [{"path": "https://example.org/"}]}
    assert [*unsafe_references(root, known | people | {"homepage": "https://example.org/"})] == []


@pytest.mark.parametrize("link", ["descriptor", "instruments", "cell", "table"])
def test_a23_no_link_leads_out(trap, link):
    outside = trap.parent
    moved = {"descriptor": DESCRIPTOR, "instruments": "instruments", "cell": HOME, "table": f"{HOME}/facts.csv"}[link]
    (trap / "instruments/out").unlink()
    (trap / moved).rename(outside / "moved")
    (trap / moved).symlink_to(outside / "moved")
    plain, form = watched(trap, [("validate", str(trap)), ("fmt", str(trap))])
    assert plain["tried"] == [] == form["tried"]
    if link == "descriptor":
        assert "leads out of the package through a link" in plain["said"]
    else:
        codes = {code for code, severity, *_ in plain["said"] if severity == "error"}
        assert "R015" in codes and codes <= {"R015", "R016", "K003", "B001", "F004", "P001"}


NAMES = st.lists(
    st.sampled_from(["..", ".", "a", "x.csv", " ", ":", "/", "\\", "~", "c:", "con", "nul.csv", ". ", "é", "*", "?"]),
    min_size=1, max_size=6,
).map("".join)  # fmt: skip


@given(NAMES | st.text(max_size=12))
@settings(max_examples=500)
def test_a23_what_is_let_through_means_the_same_on_every_system(tmp_path_factory, name):
    root = tmp_path_factory.getbasetemp()
    if unsafe(root, name) is not None:
        return
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    assert windows.parts == posix.parts and not windows.is_absolute() and not windows.drive
    assert not windows.is_reserved() and ".." not in windows.parts
    assert all(part == part.rstrip(". ") for part in windows.parts)
    assert PureWindowsPath("C:/package", name).is_relative_to("C:/package")
    assert windows.as_posix() == posix.as_posix()


HEAD = "id: https://example.org/x\nname: x\nprefixes: {linkml: 'https://w3id.org/linkml/', x: 'https://example.org/'}\n"
BODY = "default_prefix: x\nclasses: {A: {class_uri: 'x:A', description: a, attributes: {id: {identifier: true}}}}\n"


def schemas(folder: Path) -> Iterator[tuple[str, str]]:
    """Schemas whose imports lead out, each in a file of its own; and the words of the refusal."""
    outside = folder.parent
    ways = [
        "../secret", str(outside / "secret"), "a/../../secret", "a\\..\\..\\secret", "..\\secret",
        f"file://{outside / 'secret'}", "http://127.0.0.1:9/secret", "https://127.0.0.1:9/secret", "x:../secret",
        "x:secret", "linkml:../../secret", "linkml:", "linkml:types/../../x", "//127.0.0.1/secret", "~/secret",
        "link", "c:secret",
    ]  # fmt: skip
    for way in ways:
        yield f"imports: [linkml:types, {json.dumps(way)}]\n", way
    yield "imports: ../secret\n", "../secret"
    yield "base: &b {imports: [../secret]}\n<<: *b\n", "../secret"
    yield "imports: [inner/one]\n", "../../secret"
    yield "imports: [5]\n", "5"
    yield "imports: {a: ../secret}\n", "{'a': '../secret'}"


def test_a23_no_import_of_a_schema_leads_out(trap):
    folder = trap / "schema"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/one.yaml").write_text(HEAD.replace("name: x", "name: one") + "imports: [../../secret]\n", "utf-8")
    (folder / "link.yaml").symlink_to(trap.parent / "secret.yaml")
    jobs, wanted = [], []
    for number, (imports, way) in enumerate(schemas(folder)):
        path = folder / f"s{number}.yaml"
        path.write_text(HEAD + imports + BODY, encoding="utf-8")
        jobs.append(("schema", str(path)))
        wanted.append(way)
    (folder / "core.yaml").write_text(HEAD.replace("name: x", "name: core"), encoding="utf-8")
    good = folder / "good.yaml"
    good.write_text(HEAD + "imports: [linkml:types, core, ./core]\n" + BODY, encoding="utf-8")
    results = watched(trap, [*jobs, ("schema", str(good))])
    assert results[-1] == {"said": ["a"], "tried": []}
    for result, way in zip(results, wanted, strict=False):
        assert result["tried"] == [], way
        assert result["said"].startswith("InputError: ") and shown(way) in result["said"], result


def test_a23_the_shipped_schema_stays_in_its_folder():
    files = check_imports(ROOT / "schema/regatta.yaml")
    assert {f.name for f in files} == {p.name for p in (ROOT / "schema").glob("*.yaml")}
    assert all(f.parent == (ROOT / "schema").resolve() for f in files)


def test_a23_a_package_is_validated_without_a_network():
    [result] = watched(ROOT, [("validate", str(ROOT))])
    assert result["tried"] == [] and isinstance(result["said"], list)


# Sizes, depths, odd types: a package of foreign origin can be anything


def put(root: Path, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (root / DESCRIPTOR).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("entry", [{"path": "x.csv"}, {"path": ["x.csv"] * 1000}, None, "x", 5, [[]]], ids=str)
def test_a_descriptor_with_a_million_entries_is_refused_at_once(package_copy, entry):
    count = 1000 if isinstance(entry, dict) and isinstance(entry["path"], list) else 1_000_000
    put(package_copy, '{"resources": [' + ",".join([json.dumps(entry)] * count) + "]}")
    with pytest.raises(InputError, match="lists 1,000,000 files, more than") as caught:
        read(package_copy)
    assert caught.value.code == "U102"


def test_a_descriptor_beyond_measure_is_refused_unread(package_copy):
    with (package_copy / DESCRIPTOR).open("r+b") as handle:
        handle.truncate(300 * 1024 * 1024)
    with pytest.raises(InputError, match="more than"):
        read(package_copy)


LEAVES = st.sampled_from(["", "x", "../x", "\\0", "\\ud800", f"{HOME}/facts.csv"])
KEYS = st.sampled_from(["path", "name", "schema", "rows", "resources"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data())
@settings(max_examples=25)
def test_any_type_anywhere_in_a_descriptor_is_findings_or_one_error(tmp_path_factory, whole_cell, data):
    root = whole_cell(tmp_path_factory.mktemp("types"))
    value = json.loads((root / DESCRIPTOR).read_text(encoding="utf-8"))
    holder = data.draw(st.sampled_from([value, *value["resources"], value["resources"][0]["schema"]]))
    holder[data.draw(st.sampled_from(sorted(holder)))] = data.draw(json_values)
    put(root, value)
    try:
        findings = validated(root)
    except InputError as error:
        assert error.code == "U102" and error.mend
    else:
        for finding in findings:
            assert finding.message and finding.mend and "Traceback" not in finding.message


def test_folders_a_thousand_deep_are_walked(package_copy, monkeypatch):
    depth = 1200
    monkeypatch.chdir(package_copy / "instruments")
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    Path("facts.csv").write_text("id\n", encoding="utf-8")
    try:
        [found] = validated(package_copy)
    finally:  # nobody who tidies up recursively would get through
        os.unlink("facts.csv")
        for _ in range(depth):
            os.chdir("..")
            os.rmdir("d")
    assert found.code == "R016" and found.file == "instruments/" + "d/" * depth + "facts.csv"


def test_loops_of_links_and_pipes_end(package_copy):
    (package_copy / "instruments/round").symlink_to(package_copy / "instruments")
    (package_copy / "instruments/self.csv").symlink_to("self.csv")
    os.mkfifo(package_copy / "instruments/pipe.csv")
    (package_copy / "instruments/device.csv").symlink_to("/dev/zero")
    assert {(f.code, f.file) for f in validated(package_copy)} == {
        ("R016", f"instruments/{name}.csv") for name in ("self", "pipe", "device")
    }
    value = json.loads((package_copy / DESCRIPTOR).read_text(encoding="utf-8"))
    value["resources"] += [{"path": f"instruments/{name}.csv"} for name in ("self", "pipe", "device")]
    put(package_copy, value)
    assert {(f.code, f.file) for f in validated(package_copy)} == {
        ("R016", "instruments/self.csv"), ("R016", "instruments/pipe.csv"), ("R015", DESCRIPTOR),
        ("R016", "instruments/device.csv"),
    }  # fmt: skip


HUGE = {
    "one cell": (lambda head: head + "x," + "y" * 3_000_000 + "\n", "R017"),
    "one row of commas": (lambda head: head + "," * 400_000 + "\n", "R007"),
    "a header of commas": (lambda head: "," * 400_000 + "\n", "R003"),
    "a header of names": (lambda head: ",".join(map(str, range(300_000))) + "\n", "R003"),
    "short rows": (lambda head: head + "x\n" * 300_000, "R007"),
    "empty rows": (lambda head: head + "\n" * 300_000, "R007"),
    "zeros": (lambda head: head + "\0" * 3_000_000, "R008"),
    "quotes": (lambda head: head + '"' * 3_000_001, "R005"),
    "spaces": (lambda head: head + (" ," * (head.count(",")) + " \n") * 5_000, "R010"),
    "more lines than memory": (lambda head: head + "x\n" * 5_100_000, "R017"),
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_table_is_few_findings_in_little_time(package_copy, name):
    import time

    path = package_copy / f"{HOME}/faults.csv"
    head = path.read_text(encoding="utf-8").split("\n")[0] + "\n"
    make, code = HUGE[name]
    path.write_text(make(head), encoding="utf-8")
    start = time.process_time()
    findings = validated(package_copy)
    assert time.process_time() - start < 30
    alike = [f for f in findings if f.file.endswith("faults.csv") and f.code == code]
    assert alike and len(alike) <= 1_001
    assert all(len(f.message) < 1_000 for f in alike)


@pytest.mark.parametrize(
    "text",
    [
        "a-" * 60_000, "1,111" * 25_000, "(" * 120_000, "1+" * 60_000, "twenty-" * 18_000, "9" * 130_000,
        "§ 1.1, " * 18_000, "Điều 1, " * 16_000,
    ],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_a_cell_of_the_greatest_size_costs_no_time(package_copy, text):
    """No pattern of a rule runs for ever on a long text, in whatever column it stands."""
    import time

    for table in ("requirements", "citations", "facts", "faults", "fault_values", "fault_probes", "sources"):
        sheet = Sheet(package_copy, table)
        own = [column for column in sheet.header if column not in ("id", "cell", "requirement", "fault", "source")]
        sheet.set(0, **dict.fromkeys(own, text))
        sheet.save()
    start = time.process_time()
    assert validated(package_copy)
    assert time.process_time() - start < 20


# Any bytes in any file


def main_leaves_with(*arguments: str) -> tuple[int, str]:
    """Run the command in this process. Returns its exit code and what it said."""
    import click
    from click.testing import CliRunner

    from regatta_tools.cli import main

    result = CliRunner().invoke(click.Command("regatta", callback=lambda: main.main(list(arguments))), [])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


TABLES = ["requirements", "citations", "facts", "faults", "fault_requirements", "fault_values", "fault_probes"]
FILES = [DESCRIPTOR, "instruments/sources.csv", "instruments/cells.csv", *(f"{HOME}/{table}.csv" for table in TABLES)]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory, whole_cell) -> Path:
    return whole_cell(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("file", FILES)
@given(data=st.data())
@settings(max_examples=12)
def test_any_bytes_leave_with_an_exit_code_and_no_traceback(fuzzed, file, data):
    path = fuzzed / file
    good = path.read_bytes()
    how = data.draw(st.sampled_from(["all", "piece", "flip"]))
    if how == "all":
        raw = data.draw(st.binary(max_size=300))
    else:
        at = data.draw(st.integers(0, len(good)))
        size = data.draw(st.integers(0, 40))
        noise = data.draw(st.binary(max_size=40)) if how == "piece" else bytes(b ^ 0x80 for b in good[at : at + size])
        raw = good[:at] + noise + good[at + size :]
    try:
        path.write_bytes(raw)
        form = data.draw(st.sampled_from(["text", "json"]))
        code, said = main_leaves_with("validate", str(fuzzed), "--format", form)
    finally:
        path.write_bytes(good)
    assert code in (0, 1, 2, 3) and "Traceback" not in said and "E399" not in said, said
    if raw != good and file != DESCRIPTOR:
        assert code == 1, "nothing is changed unseen"
    if form == "json" and code in (0, 1):
        json.loads(said, parse_constant=lambda name: pytest.fail(name))


@given(
    st.binary(max_size=400) | st.text("[]{}:,-&*!|>'\"\n aé0", max_size=60).map(str.encode),
    st.sampled_from(["yaml", "json"]),
)
@settings(max_examples=100)
def test_any_bytes_as_a_suite_leave_with_an_exit_code(tmp_path_factory, raw, ending):
    path = tmp_path_factory.getbasetemp() / f"suite.{ending}"
    path.write_bytes(raw)
    code, said = main_leaves_with("validate", str(path))
    assert code in (0, 1) and "Traceback" not in said and "E399" not in said, said


@given(
    st.text(max_size=30)
    | st.sampled_from(["\0", "a\0b", "/", ".", "..", "http://127.0.0.1:9/", "x" * 5000, "\udc80", "-", "--"])
)
@settings(max_examples=60)
def test_any_path_leaves_with_an_exit_code(tmp_path_factory, text):
    assume("\0" not in text)  # no system passes a command such a character
    text = os.fsdecode(text.encode("utf-8", "surrogateescape"))
    assume(not os.path.exists(text))
    code, said = main_leaves_with("validate", "--", text)
    assert code == 2 and "Traceback" not in said and "E399" not in said, said
    assert re.search(r"U101|no such", said)
