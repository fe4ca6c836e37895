"""Checks of whole columns and files say what the slow way, record by record, says: each shortcut against its oracle."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, one_cell
from hypothesis import given
from hypothesis import strategies as st

from regatta_tools.provenance import checks, citation_checks
from regatta_tools.rules.registry import rules
from regatta_tools.safety import Below, references_at_most, unsafe, unsafe_references
from regatta_tools.tables import reader
from regatta_tools.tables.package import Package, Record, read, table_specs
from regatta_tools.tables.shape import validator
from regatta_tools.text import sha256_json
from regatta_tools.validation import expressions, keys, mentions, numbers, schema, sql
from regatta_tools.validation.run import check_package

COLUMNS = ["id", "title", "note"]
PIECES = [
    "a",
    "é",
    "đ",
    " ",
    ",",
    '"',
    '""',
    "\n",
    "\r\n",
    "\r",
    "\t",
    "=",
    "-",
    "0",
    "\u00a0",
    "\ufffd",
    "e\u0301",
    "\x1f",
]
CELLS = st.text(st.sampled_from("abé đ0.-"), max_size=4) | st.sampled_from(
    ["", "x, y", 'say "so"', "two\nlines", "=1", "-1"]
)


# Reading a file


def written(rows: list[list[str]], end: str) -> str:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text

    return "".join(",".join(map(cell, row)) + end for row in [COLUMNS, *rows])


def both_ways(text: str, monkeypatch) -> tuple[reader.Table, reader.Table]:
    fast = reader.read_content(text.encode("utf-8"), "t.csv", COLUMNS)
    with monkeypatch.context() as patch:
        patch.setattr(reader, "_read_faultless", lambda *_: False)
        return fast, reader.read_content(text.encode("utf-8"), "t.csv", COLUMNS)


def said(table: reader.Table) -> list[Any]:
    places = [table.place(row, cell) for row in range(len(table.rows)) for cell in range(len(COLUMNS))]
    return [table.header, table.rows, table.lines, table.offsets, table.findings, places, table.sha256]


@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=5), end=st.sampled_from(["\n", "\r\n"]))
def test_a_file_is_read_the_same_at_once_and_row_by_row(monkeypatch, rows, end):
    fast, slow = both_ways(written(rows, end), monkeypatch)
    assert said(fast) == said(slow)


@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=4), data=st.data())
def test_a_file_with_anything_put_in_is_read_the_same(monkeypatch, rows, data):
    text = written(rows, "\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at:]
    fast, slow = both_ways(text, monkeypatch)
    assert said(fast) == said(slow)


def test_every_character_that_nobody_sees_is_left_to_the_slow_way():
    for code in (*range(0xD800), *range(0xE000, sys.maxunicode + 1)):
        text = f"id\nab{chr(code)}\n"
        if reader._INVISIBLE.search(text):
            assert not reader._shows_all(text) and not reader._shows_all(text + "đ"), hex(code)


def test_a_file_that_changed_since_it_was_read_has_no_places(package_copy):
    record = read(package_copy).table("facts")[3]
    assert record.line == 5
    record = read(package_copy).table("facts")[3]
    file = package_copy / record.file
    file.write_text("another\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    assert (record.place("value"), record.line) == ((0, 0), 0)
    file.unlink()
    assert read(package_copy).findings and record.finding("F003", "value", "odd").place() == record.file


# Records and columns


def test_records_are_made_once_and_what_is_set_in_one_is_seen_by_checks_of_columns(package_copy):
    package = read(package_copy)
    record = package.table("facts")[0]
    assert package.table("facts")[0] is record and package.records["facts"][0] is record
    before = dict(record.cells)
    record.cells["value"] = "x"
    record.cells.update(unit="times")
    assert (record["value"], record.get("unit"), package.rows("facts")[0]) == ("x", "times", record.values)
    assert package.column("facts", "value")[0] == "x" and record.cells == {**before, "value": "x", "unit": "times"}
    for change in (
        lambda: record.cells.pop("value"),
        lambda: record.cells.clear(),
        lambda: record.cells.setdefault("x"),
    ):
        with pytest.raises(TypeError):
            change()
    with pytest.raises(KeyError):
        record.cells["no such column"] = "x"


def test_columns_are_those_of_the_rows_kept_or_not(package_copy):
    package = read(package_copy)
    package.table("faults")  # some tables as records, others as read
    for _ in range(2):
        with package.columns_kept():
            for name in package.names:
                columns = [package.column(name, column) for column in table_specs()[name].columns]
                assert [list(row) for row in zip(*columns, strict=True)] == package.rows(name)
                assert package.column(name, table_specs()[name].columns[0]) is columns[0]
    assert package.column("waivers", "rule") == []


def test_the_descriptor_is_there_when_somebody_asks(package_copy):
    described = json.loads((package_copy / "datapackage.json").read_text(encoding="utf-8"))
    package = read(package_copy)
    assert package.descriptor == described and package.descriptor is package.descriptor


# Form, keys and references


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Package:
    return read(one_cell(tmp_path_factory.mktemp("package")))


@given(data=st.data())
def test_the_schema_objects_to_the_same_records_by_columns_and_one_by_one(package, data):
    record = data.draw(st.sampled_from([r for records in package.records.values() for r in records[:5]]))
    column = data.draw(st.sampled_from(record.spec.columns))
    before = record[column]
    record.cells[column] = data.draw(
        st.sampled_from(["", "x", "2026-02-30", "true", "day", "US", "1"]) | st.text(max_size=5)
    )
    try:
        wrong = {
            (name, index)
            for name, records in package.records.items()
            for index, r in enumerate(records)
            if not validator(r.spec.class_name).is_valid(r.as_object())
        }
        assert {(n, i) for n in package.names for i in schema._suspects(package, table_specs()[n])} == wrong
    finally:
        record.cells[column] = before


def keys_one_by_one(package: Package) -> set[tuple[str, str, tuple[int, int]]]:
    """Code, file and place of what is wrong with keys and references, by the definition."""
    found = set()
    first: dict[Any, Record] = {}
    for record in package:
        spec = record.spec
        if spec.identifier and record[spec.identifier] and first.setdefault(record.key, record) is not record:
            found.add(("K001", record.file, record.place(spec.identifier)))
    for record in package:
        for name, columns in record.spec.unique_keys.items():
            values = tuple(record[c] for c in columns)
            other = first.setdefault((record.spec.name, name, values), record) if all(values) else record
            if other is not record and not (record.spec.identifier and other.key == record.key):
                found.add(("K002", record.file, record.place(columns[-1])))
        for column, field in record.spec.fields.items():
            if field["kind"] == "ref" and record[column]:
                known = (r for r in package if r.spec.class_name == field["ref"])
                if all(r.key != record[column] for r in known):
                    found.add(("K003", record.file, record.place(column)))
    return found


@given(
    sources=st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", ""])] * 2), max_size=4),
    links=st.lists(st.tuples(*[st.sampled_from(["a", "b", "f", ""])] * 3), max_size=5),
)
def test_keys_and_references_are_those_of_the_definition(sources, links):
    def table(name: str, file: str, rows: list[dict[str, str]]) -> list[Record]:
        spec = table_specs()[name]
        cells = [[row.get(column, "") for column in spec.columns] for row in rows]
        text = "".join(",".join(row) + "\n" for row in [spec.columns, *cells])
        read_table = reader.Table(file, spec.columns, cells, kept_text=text)
        return [Record(spec, row, read_table, index) for index, row in enumerate(cells)]

    named = [dict(zip(("cell", "fault", "requirement"), row, strict=True)) for row in links]
    package = Package(Path(), {}, {
        "sources": table("sources", "s.csv", [{"id": i, "superseded_by": s} for i, s in sources]),
        "faults": table("faults", "f.csv", [{"id": "f"}]),
        "fault_requirements": table("fault_requirements", "l.csv", named),
    })  # fmt: skip
    assert {(f.code, f.file, (f.line, f.column)) for f in keys.check(package)} == keys_one_by_one(package)


# Rules as queries


def whole_database(package: Package) -> sqlite3.Connection:
    """Every table with every column, nothing left out and no index."""
    database = sql.Database()
    database._needs.columns = {name: set(spec.columns) for name, spec in table_specs().items()} | {
        "citation_problems": {"about"}
    }
    database.fill(package)
    return database.connection


@pytest.mark.parametrize("cell", ["insurance-us", "banking-vn"])
def test_a_rule_finds_the_same_in_what_it_needs_and_in_everything(tmp_path, cell):
    package = read(one_cell(tmp_path, cell))
    for name in package.names:  # spoilt widely, so that the rules have something to find
        records = package.table(name)
        for column in table_specs()[name].columns[1:]:
            for at in range(0, len(records) - 1, 2 + len(column)):
                records[at].cells[column] = records[at + 1][column] if at % 3 else ""
    parameters = {"as_of": "2031-01-01"}
    chosen = [rule for rule in rules().values() if rule.engine == "sql"]
    with closing(whole_database(package)) as whole:
        everything = {r.code: sorted(map(repr, whole.execute(r.query, parameters))) for r in chosen}
    assert sum(map(bool, everything.values())) > 5
    for rule in chosen:
        database = sql.Database()
        with closing(database.connection) as connection:
            database.prepare(rule.query, parameters)
            database.fill(package)
            assert sorted(map(repr, connection.execute(rule.query, parameters))) == everything[rule.code], rule.code


def test_only_what_rules_read_is_copied(package):
    database = sql.Database()
    with closing(database.connection) as connection:
        database.prepare("SELECT _record, 'x' FROM requirements WHERE status = 'active'", {"as_of": None})
        database.fill(package)
        filled = connection.execute("SELECT count(status), count(duty_en), count(*) FROM requirements").fetchone()
        assert filled == (25, 0, 25)
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (0,)


def test_a_table_is_there_for_a_query_that_only_counts_its_rows(package):
    database = sql.Database()
    query = "SELECT _record, (SELECT count(*) FROM facts) FROM cells"
    with closing(database.connection) as connection:
        database.prepare(query, {})
        database.fill(package)
        assert connection.execute(query).fetchall() == [(0, len(package.rows("facts")))]


def test_a_check_leaves_the_package_as_it_was(package):
    before = [[*record.values] for record in package]
    assert check_package(package) == check_package(package)
    assert [record.values for record in package] == before and package._columns is None


# Paths and references


PATHS = [
    *("a/b.csv", "a/../b.csv", "../b.csv", "a/..", "/a/b.csv", "~/b.csv", "a//b.csv", "a/./b.csv", "c:/b.csv"),
    *("a\\b.csv", "a/con.csv", "a/b.csv ", "a /b.csv", "a/\u0007.csv", "//a/b", "a/", "", ".", "http://a/b.csv"),
    *("in/b.csv", "in/link.csv", "out/b.csv", "in/loop/b.csv", "in/gone.csv", None, 3, ["a"]),
]


@pytest.mark.parametrize("name", PATHS, ids=repr)
def test_many_paths_are_judged_as_one_is(tmp_path, name):
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (root / "in" / "b.csv").write_text("x", encoding="utf-8")
    for link, target in (
        ("in/link.csv", tmp_path / "elsewhere"),
        ("out", tmp_path / "elsewhere"),
        ("in/loop", root / "in/loop"),
    ):
        (root / link).symlink_to(target)
    below = Below(root)
    assert [below.unsafe(name), below.unsafe(name)] == [unsafe(root, name)] * 2


JSON = st.recursive(
    st.none() | st.sampled_from(["x", "../x", "https://a/b", '"$ref": "x"', 'a\\"schema": "b', "é"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$ref", "schema", "profile", "title", "$schema", "resources", "extrapaths"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(content=JSON, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_no_reference_is_missed_by_counting_them_first(tmp_path, content, ascii_only, indent):
    text = json.dumps(content, ensure_ascii=ascii_only, indent=indent)
    assert list(unsafe_references(tmp_path, content, references_at_most(text))) == list(
        unsafe_references(tmp_path, content)
    )


def test_a_key_written_with_an_escape_is_counted_as_unknown():
    assert references_at_most('{"\\u0024ref": "../x"}') is None


# Numbers, words, formulas


@given(
    parts=st.lists(
        st.sampled_from(["15", "1,500", "15.5", "fifteen", "st", ".", ",", " ", "-", "x", "é", "٣", "twenty-five"]),
        max_size=7,
    ),
    value=st.sampled_from(["15", "1", "5", "15.5", "1500", "0", "25", "5.5", "-15", "015", "x", ""]),
)
def test_a_number_that_stands_in_a_text_is_one_of_its_numbers(parts, value):
    text = "".join(parts)
    if numbers._stands_in(text, value):
        assert Decimal(value).normalize() in numbers.numbers_in(text)


@given(start=st.dates(date(1990, 1, 1), date(2090, 1, 1)), count=st.integers(0, 400))
def test_business_days_are_those_of_a_calendar(start, count):
    wanted = start
    for _ in range(count):
        wanted += timedelta(days=1 + (wanted.weekday() == 4) * 2 + (wanted.weekday() == 5))
    assert expressions.evaluate(f"add_business_days(d, {count})", {"d": start}) == wanted


WORDS = sorted(
    {
        *mentions._BEGINS["en"],
        *mentions._BEGINS["vi"],
        "hundred",
        "mươi",
        "trăm",
        "nghìn",
        "million",
        "and",
        "linh",
        "thứ",
        "ngày",
    }
)


@given(
    words=st.lists(
        st.sampled_from(
            [*WORDS, "tháng", "năm", "3", "15", "2027", "01/01/2027", "2027-01-01", "5:30", "pm", "9h", "March"]
        ),
        max_size=6,
    ),
    language=st.sampled_from(["en", "vi"]),
)
def test_what_is_looked_for_first_is_in_all_that_is_found(words, language):
    text = " ".join(words)
    for sign, pattern, _ in mentions._PATTERNS[language]:
        assert sign.search(text) or not pattern.search(text), pattern.pattern
    lower = [word.lower() for word in words if word.isalpha()]
    for at, word in enumerate(lower):
        if mentions._number_at(lower, at, language)[1] or mentions._like_a_number(lower, at, language):
            assert word in mentions._BEGINS[language]


@given(data=st.data())
def test_a_plain_vietnamese_locator_has_no_problem_by_the_grammar_either(data):
    letter = st.sampled_from("abcdđeghiklmnopqrstuvxy")
    text = f"Điều {data.draw(st.integers(1, 9999))}{data.draw(letter | st.just(''))}"
    if data.draw(st.booleans()):
        text += f", khoản {data.draw(st.integers(1, 999))}{data.draw(letter | st.just(''))}"
        text += data.draw(st.just("") | letter.map(", điểm {}".format))
    assert citation_checks._SIMPLE_VN.fullmatch(text) and citation_checks._own_problems(text, "VN") == ()


def test_the_shipped_package_is_settled_by_the_short_ways():
    """They are worth having: hardly a file or text of the real package needs the long ones."""
    tables = [table for parts in read(ROOT)._unmade.values() for _, table in parts]
    assert len(tables) > 30 and all(table.known_offsets is None and not table.kept_text for table in tables)


def test_the_hash_of_an_item_put_together_is_that_of_the_whole():
    package = read(ROOT)
    index = checks.Index(package)
    for citation in package.table("citations")[::7]:
        facts = [f for f in package.table("facts") if f["requirement"] == citation["requirement"]]
        whole = {
            "requirement": checks._cells(package.by_id[citation["requirement"]], ("status", "replaced_by")),
            "citation": checks._cells(citation, ("note", "passage_hash", "normalisation")),
            "source": checks._cells(package.by_id[citation["source"]], ("note", "url", "title", "title_vi", "issuer")),
            "facts": sorted(map(checks._cells, facts), key=json.dumps),
        }
        assert checks.item_hash(index, citation) == sha256_json(whole)
