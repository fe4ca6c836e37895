"""The CSV reader and the package around it: no row is lost or changed without a finding at the right place."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import unicodedata
from pathlib import Path

import pytest
from conftest import redescribe
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from regatta_tools.errors import InputError
from regatta_tools.tables import package as package_module
from regatta_tools.tables import reader
from regatta_tools.tables.package import Package, read, table_specs
from regatta_tools.tables.reader import read_table
from regatta_tools.tables.spreadsheet import is_forbidden
from regatta_tools.validation.keys import check as check_keys

COLUMNS = ["id", "title", "note"]
HEADER = "id,title,note\n"
REQUIREMENTS = "instruments/insurance-us/requirements.csv"

chunks = st.sampled_from(
    [",", '"', '""', "\n", "\r\n", "a", "B", "Điều", "bệnh", "縮", "😀", " ", ";", "|", "1", "-", "'"]
)
cells = st.lists(chunks, max_size=5).map("".join)
tables = st.lists(st.lists(cells, min_size=3, max_size=3), max_size=6)
quoting = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
line_end = st.sampled_from(["\n", "\r\n"])


def written(rows: list[list[str]], quote: int, end: str) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=quote, lineterminator=end).writerows([COLUMNS, *rows])
    return out.getvalue()


def read_text(folder: Path, content: str | bytes, columns: list[str] = COLUMNS) -> reader.Table:
    path = folder / "table.csv"
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return read_table(path, "table.csv", columns)


def codes(table: reader.Table) -> list[str]:
    return [f.code for f in table.findings]


def only(table: reader.Table) -> tuple[str, int, int]:
    """The one finding of a table, with its place."""
    assert len(table.findings) == 1, table.findings
    found = table.findings[0]
    assert found.mend and found.file == "table.csv" and found.severity == "error"
    return found.code, found.line, found.column


# Round trips


@given(rows=tables, quote=quoting, end=line_end, bom=st.booleans(), final=st.booleans())
@settings(max_examples=150)
def test_what_the_csv_module_writes_is_read_back_with_its_places(tmp_path, rows, quote, end, bom, final):
    text = written(rows, quote, end)
    text = text if final else text.removesuffix(end)
    table = read_text(tmp_path, ("\ufeff" if bom else "") + text)
    assert table.header == COLUMNS
    assert table.rows == rows
    edges = {(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if cell != cell.strip()}
    formulas = {(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if is_forbidden(cell)}
    assert sorted(codes(table)) == ["R010"] * len(edges) + ["R019"] * len(formulas)

    # Places, worked out from the text as it was written, cell by cell.
    def form(cell: str) -> str:
        marks = quote == csv.QUOTE_ALL or any(c in cell for c in ',"\r\n')
        return '"' + cell.replace('"', '""') + '"' if marks else cell

    offset, seen = 0, set()
    for index, row in enumerate([COLUMNS, *rows], -1):
        for number, cell in enumerate(row):
            assert text.startswith(form(cell), offset)
            before = text[:offset].split("\n")
            place = len(before), len(before[-1]) + 1
            assert table.place(index, number) == place
            if number == 0 and index >= 0:
                assert table.lines[index] == place[0]
            if index >= 0 and (cell != cell.strip() or is_forbidden(cell)):
                seen.add(place)
            offset += len(form(cell)) + (1 if number < 2 else len(end))
    assert {(f.line, f.column) for f in table.findings} == seen


@given(rows=tables, quote=quoting, end=line_end, data=st.data())
@settings(max_examples=300)
def test_one_wrong_quote_or_comma_never_passes_as_other_rows(tmp_path, rows, quote, end, data):
    text = written(rows, quote, end)
    start = len(",".join(COLUMNS)) if quote == csv.QUOTE_MINIMAL else text.index("\n") + 1
    places = [i for i, c in enumerate(text) if i >= start and c in '",']
    if data.draw(st.booleans(), "insert") or not places:
        at = data.draw(st.integers(start, len(text)))
        spoilt = text[:at] + '"' + text[at:]
    else:
        at = data.draw(st.sampled_from(places))
        spoilt = text[:at] + text[at + 1 :]
    table = read_text(tmp_path, spoilt)
    if table.complete:
        # Then the strict parser of the library finds a table of the same width, and the same one.
        again = list(csv.reader(io.StringIO(spoilt, newline=""), strict=True))
        assert again == [COLUMNS, *table.rows]
        assert {len(row) for row in again} == {3}
    else:
        found = table.findings[-1]
        assert found.line >= 1 and found.message
    for row in table.rows:
        assert len(row) == 3


@given(row=st.lists(st.sampled_from(["a", "b c", "Điều 5", ""]), min_size=3, max_size=3), data=st.data())
def test_a_quote_inside_a_bare_cell_is_named_at_its_place(tmp_path, row, data):
    line = ",".join(row)
    at = data.draw(st.integers(0, len(line)))
    before = line[:at]
    assume(before and not before.endswith(","))
    table = read_text(tmp_path, f'{HEADER}x,y,z\n{before}"{line[at:]}\n')
    assert only(table) == ("R006", 3, at + 1)


# Case A7: a last row without a line end; case A2: delimiters and line ends


@given(count=st.integers(1, 5), end=line_end, quoted=st.booleans())
def test_a_missing_final_newline_loses_no_row(tmp_path, count, end, quoted):
    last = '"z"' if quoted else "z"
    body = end.join(f"r{i},title,{last}" for i in range(count))
    table = read_text(tmp_path, "id,title,note" + end + body)
    assert not table.findings
    assert table.rows == [[f"r{i}", "title", "z"] for i in range(count)]


@given(sign=st.sampled_from(";\t|"), rows=tables, quote=quoting, end=line_end, bom=st.booleans())
def test_another_delimiter_is_named_and_nothing_else(tmp_path, sign, rows, quote, end, bom):
    out = io.StringIO()
    csv.writer(out, delimiter=sign, quoting=quote, lineterminator=end).writerows([COLUMNS, *rows])
    # A tab inside a cell of our own would be told as well, so cells hold none.
    table = read_text(tmp_path, ("\ufeff" if bom else "") + out.getvalue())
    assert only(table) == ("R004", 1, 1)
    assert not table.rows
    assert {";": "semicolon", "\t": "tab", "|": "vertical bar"}[sign] in table.findings[0].message


def test_a_line_that_names_the_delimiter_for_a_spreadsheet_is_no_header(tmp_path):
    assert only(read_text(tmp_path, "sep=;\nid;title;note\na;b;c\n")) == ("R004", 1, 1)


def test_trailing_delimiters_are_rows_or_columns_too_many(tmp_path):
    table = read_text(tmp_path, "id,title,note\na,b,c,\nd,e,f\n")
    assert only(table) == ("R007", 2, 1)
    assert table.rows == [["d", "e", "f"]] and table.lines == [3]
    table = read_text(tmp_path, "id,title,note,\na,b,c,\n")
    assert only(table) == ("R003", 1, 15)
    assert "column 4 has no name" in table.findings[0].message


# Case A1: byte-order mark and encoding


@given(rows=tables, quote=quoting, end=line_end, bom=st.booleans(), byte=st.integers(0x80, 0xFF), data=st.data())
def test_one_byte_that_is_not_utf_8_is_named_with_line_column_and_offset(tmp_path, rows, quote, end, bom, byte, data):
    text = written(rows, quote, end)
    # Before an ASCII character or at the end, no byte from 0x80 on is UTF-8 by itself.
    at = data.draw(st.sampled_from([i for i in range(len(text) + 1) if i == len(text) or text[i].isascii()]))
    head = text[:at].encode("utf-8")
    mark = b"\xef\xbb\xbf" if bom else b""
    table = read_text(tmp_path, mark + head + bytes([byte]) + text[at:].encode("utf-8"))
    before = text[:at].split("\n")
    assert only(table) == ("R002", len(before), len(before[-1]) + 1)
    assert f"byte {len(mark) + len(head)} (0x{byte:02x})" in table.findings[0].message
    assert not table.rows and not table.text


def test_a_byte_order_mark_and_a_latin_1_word_far_down(tmp_path):
    rows = b"".join(b"OB-%03d,t,n\n" % i for i in range(1, 401))
    table = read_text(tmp_path, b"\xef\xbb\xbfid,title,note\n" + rows + b"OB-401,Ph\xed th\xe1ng,n")
    assert only(table) == ("R002", 402, 10)
    table = read_text(tmp_path, b"\xef\xbb\xbfid,title,note\n" + rows)
    assert not table.findings and table.header[0] == "id" and len(table.rows) == 400


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1258", "latin-1"])
def test_other_encodings_are_refused(tmp_path, codec):
    text = "id,title,note\na,Pháp,c\n"
    table = read_text(tmp_path, text.encode(codec))
    assert table.findings and not table.rows
    assert table.findings[0].code in ("R002", "R008")
    if codec == "utf-16":
        assert "UTF-16" in table.findings[0].message
    assert len(table.findings) < 30


# Quotes


def test_an_open_quote_is_named_where_it_opens(tmp_path):
    table = read_text(tmp_path, HEADER + 'a,b,c\nd,"e,f\ng,h,i\nj,k,l\n')
    assert only(table) == ("R005", 3, 3)
    assert table.rows == [["a", "b", "c"]]


def test_an_open_quote_that_a_later_one_ends_is_named_at_both_ends(tmp_path):
    table = read_text(tmp_path, HEADER + 'a,"b,c\nd,"e",f\n')
    assert only(table) == ("R006", 3, 4)
    assert "2:3" in table.findings[0].message


@pytest.mark.parametrize("line", ['a,"b" ,c', 'a,"b"x,c', 'a,b"c",d', 'a, "b",c'])
def test_text_around_a_quoted_cell_is_refused(tmp_path, line):
    code, where, column = only(read_text(tmp_path, HEADER + line + "\n"))
    assert (code, where) == ("R006", 2)
    # The place is the character that may not stand there: after a closing quote, or the quote itself.
    assert line[column - 1] in ' x"'


# Headers


@pytest.mark.parametrize(
    ("header", "column", "says"),
    [
        ("title,id,note", 1, "another order"),
        ("id,note,title", 4, "another order"),
        ("id,title", 1, "missing: note"),
        ("id,titel,note", 4, "unknown: 'titel'"),
        ("id,title,note,extra", 15, "unknown: 'extra'"),
        ("id,,note", 4, "column 2 has no name"),
        ("id,title, ", 10, "column 3 has no name"),
        ("id,title,title", 10, "twice: 'title'"),
        ("ID,Title,Note", 1, "unknown: 'ID'"),
        ('"id",title,"extra"', 12, "unknown: 'extra'"),
    ],
)
def test_a_wrong_header_is_one_finding_that_says_what_is_wrong(tmp_path, header, column, says):
    table = read_text(tmp_path, f"{header}\na,b,c\n")
    assert only(table) == ("R003", 1, column)
    assert says in table.findings[0].message
    assert "id,title,note" in table.findings[0].mend
    assert not table.rows


def test_quoted_headers_are_headers(tmp_path):
    table = read_text(tmp_path, '"id","title","note"\na,b,c\n')
    assert not table.findings and table.rows == [["a", "b", "c"]]


# Rows


@given(width=st.integers(0, 6).filter(lambda w: w != 3), good=st.integers(0, 3))
def test_a_row_of_another_width_is_left_out_and_named(tmp_path, width, good):
    rows = [["r", "t", "n"]] * good
    text = HEADER + "r,t,n\n" * good + ",".join(["q"] * width) + "\n" + "s,t,n\n"
    table = read_text(tmp_path, text)
    assert only(table) == ("R007", good + 2, 1)
    assert table.rows == [*rows, ["s", "t", "n"]]
    assert table.lines == [*range(2, good + 2), good + 3]
    assert not table.complete


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n", b"  \r\n\n"])
def test_an_empty_file_is_called_empty(tmp_path, content):
    assert only(read_text(tmp_path, content)) == ("R012", 0, 0)


def test_a_header_alone_is_a_table_without_rows(tmp_path):
    table = read_text(tmp_path, HEADER)
    assert not table.findings and not table.rows and table.complete


def invisible() -> list[str]:
    odd = [chr(i) for i in range(0x110000) if unicodedata.category(chr(i)) in ("Cc", "Zl", "Zp")]
    odd += list("\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff\ufffd\u2009\u202f")
    return [c for c in odd if c not in "\t\n\r"]


@pytest.mark.parametrize("char", [c for c in invisible() if c not in "\u2009"])
def test_each_invisible_character_is_named_at_its_place(tmp_path, char):
    table = read_text(tmp_path, f'{HEADER}a,"x\nđ{char}y",c\n')
    assert only(table) == ("R008", 3, 2)
    assert f"U+{ord(char):04X}" in table.findings[0].message
    assert table.rows == [["a", f"x\nđ{char}y", "c"]]


def test_a_lone_carriage_return_is_one_finding_a_place(tmp_path):
    assert only(read_text(tmp_path, f"{HEADER}a,b\rb,c\n")) == ("R008", 2, 4)
    assert only(read_text(tmp_path, f'{HEADER}a,"b\rb",c\n')) == ("R008", 2, 5)


_WHOLE = [["a", "b", "c"], ["d", "e f", "g"], ["h", "i", "j"]]


@given(st.integers(0, 60), st.sampled_from(['"', "\r", "\n", ",", "\x00", "\u200b", ";", '""', "\r\n", '",']))
def test_a_table_that_lacks_rows_never_passes_for_whole(tmp_path, at, sign):
    """Whatever is put into a file: where a row is gone, no rule may take the rows that are left for all."""
    text = HEADER + "".join(",".join(row) + "\n" for row in _WHOLE)
    table = read_text(tmp_path, text[:at] + sign + text[at:])
    assert not table.complete or len(table.rows) >= len(_WHOLE)
    assert table.complete or table.findings


def test_a_file_of_invisible_characters_does_not_drown_the_report(tmp_path):
    table = read_text(tmp_path, HEADER + "a,b,c\n" + "\u200b" * 200_000)
    assert len(table.findings) < 30
    assert "199,980 more" in next(f.message for f in table.findings if "more" in f.message)


@given(st.sampled_from(["Luật Bệnh", "Điều khoản", "ế", "Å"]), st.integers(0, 2))
def test_decomposed_text_is_named_by_cell(tmp_path, word, at):
    row = ["a", "b", "c"]
    row[at] = unicodedata.normalize("NFD", word)
    assume(row[at] != word)
    table = read_text(tmp_path, HEADER + "đ,đ,đ\n" + ",".join(row) + "\n")
    assert only(table) == ("R009", 3, 1 + 2 * at)
    row[at] = word
    assert not read_text(tmp_path, HEADER + ",".join(row) + "\n").findings


@pytest.mark.parametrize("others", [10, 10**9])
def test_a_huge_cell_is_refused_with_its_place_and_a_large_one_is_not(tmp_path, others):
    """Whatever limit other libraries have set for the process (frictionless sets one), which is left as it was."""
    before, limit = csv.field_size_limit(others), reader.MAX_CELL
    try:
        huge_cells(tmp_path, limit)
        assert csv.field_size_limit() == others
    finally:
        csv.field_size_limit(before)


def huge_cells(tmp_path, limit):
    assert only(read_text(tmp_path, f"{HEADER}a,b,c\nd,{'x' * (limit + 1)},f\n")) == ("R017", 3, 3)
    assert only(read_text(tmp_path, f'{HEADER}a,b,c\nd,"{"x" * (limit + 1)}",f\n')) == ("R017", 3, 3)
    assert not read_text(tmp_path, f"{HEADER}a,{'x' * limit},c\n").findings


def test_an_open_quote_over_a_huge_rest_is_still_an_open_quote(tmp_path):
    rest = "row,of,text\n" * 20_000
    assert only(read_text(tmp_path, f'{HEADER}a,"b,c\n{rest}')) == ("R005", 2, 3)


def test_a_file_over_the_limit_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_BYTES", 10)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    path = tmp_path / "table.csv"
    with path.open("w", encoding="utf-8") as handle:
        handle.write(HEADER)
    assert codes(read_table(path, "table.csv", COLUMNS)) == ["R017"]


def test_what_is_no_file_is_named_and_not_waited_for(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    for name, says in (("folder", "folder"), ("pipe", "not a file"), ("loop", "cannot be read"), ("none", "not there")):
        table = read_table(tmp_path / f"{name}.csv", f"{name}.csv", COLUMNS)
        assert codes(table) == ["R001"]
        assert says in table.findings[0].message


def test_a_file_that_the_system_will_not_give_is_named(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "table.csv").write_text(HEADER, encoding="utf-8")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    table = read_table(tmp_path / "table.csv", "table.csv", COLUMNS)
    assert codes(table) == ["R001"] and "Permission denied" in table.findings[0].message


@given(content=st.binary(max_size=200), text=st.booleans())
@settings(max_examples=300)
def test_no_content_makes_the_reader_raise(tmp_path, content, text):
    table = read_text(tmp_path, HEADER.encode() + content if text else content)
    assert table.rows or table.findings or content == b""
    for row in table.rows:
        assert len(row) == 3


# The package


def describe(root: Path, **changes) -> None:
    """Change the entry of requirements.csv in the descriptor."""
    path = root / "datapackage.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    entry = next(r for r in value["resources"] if r["path"] == REQUIREMENTS)
    entry.update(changes)
    path.write_text(json.dumps(value), encoding="utf-8")


def found(package: Package) -> list[tuple[str, str]]:
    return [(f.code, f.file) for f in package.findings]


def test_the_package_itself_reads_clean(package_copy):
    package = read(package_copy)
    assert not package.findings and not package.incomplete
    lines = {p.name: len(list(csv.reader(p.open(encoding="utf-8", newline="")))) for p in package_copy.rglob("*.csv")}
    assert {s: len(package.table(s)) + 1 for s in package.records} == {n[:-4]: c for n, c in lines.items()}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'"x"', b"null", b"{}", b'{"resources": []}', b'{"resources": {}}', b"\xff\xfe", b"[" * 200_000,
     b'{"resources": ' + b"9" * 5000 + b"}", b'{"resources": NaN}'],
)  # fmt: skip
def test_a_descriptor_that_is_none_is_one_error(package_copy, content):
    (package_copy / "datapackage.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(package_copy)
    assert caught.value.code == "U102" and "datapackage.json" in caught.value.place and caught.value.exit_code == 2


def test_a_descriptor_may_carry_a_byte_order_mark(package_copy):
    path = package_copy / "datapackage.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert not read(package_copy).findings


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir(), lambda p: os.mkfifo(p)])
def test_a_folder_without_a_descriptor_is_no_package(package_copy, make):
    (package_copy / "datapackage.json").unlink()
    make(package_copy / "datapackage.json")
    with pytest.raises(InputError) as caught:
        read(package_copy)
    assert caught.value.code == "U101"


@pytest.mark.parametrize("name", ["", "nowhere", "x" * 5000, "a\0b", "notes.json", "instruments/sources.csv"])
def test_a_path_that_is_no_package_is_one_error(package_copy, monkeypatch, name):
    monkeypatch.chdir(package_copy)
    (package_copy / "notes.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(name)
    assert caught.value.code == "U101" and caught.value.mend


def test_a_current_folder_that_is_gone_does_not_matter(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert read(None).count


UNSAFE = [
    "/etc/hostname", "../secret.csv", "instruments/../../secret.csv", "instruments/a/../../../b.csv", "a\\..\\b.csv",
    "instruments\\sources.csv", "file:///etc/hostname", "http://127.0.0.1:9/x.csv", "C:/x.csv", "c:x.csv",
    "//host/share.csv",
    "\\\\host\\share.csv", "~/x.csv", "~root/x.csv", "data:text/csv,id", "instruments/so\0urces.csv",
    "instruments/a\nb.csv",
    "instruments/\ud800.csv", "", None, 7, {}, [], ["/etc/hostname"],
    "..", "instruments/link.csv", "instruments/out/sources.csv",
]  # fmt: skip


@pytest.mark.parametrize("path", UNSAFE, ids=repr)
def test_a_path_out_of_the_package_is_refused_unopened(package_copy, monkeypatch, path):
    secret = package_copy.parent / "secret.csv"
    secret.write_text("secret", encoding="utf-8")
    (package_copy / "instruments/link.csv").symlink_to(secret)
    (package_copy / "instruments/out").symlink_to(package_copy.parent)
    describe(package_copy, path=path)
    opened: list[str] = []
    monkeypatch.setattr(
        package_module, "read_table", lambda p, file, columns: opened.append(file) or read_table(p, file, columns)
    )
    package = read(package_copy)
    refused = [f for f in package.findings if f.code == "R015"]
    assert len(refused) == 1 and refused[0].file == "datapackage.json"
    listed = {r["path"] for r in package.descriptor["resources"] if r["path"] != path}
    assert set(opened) == listed
    # Nothing was lost without a word: the table that the entry stood for is reported as not listed.
    assert ("R016", REQUIREMENTS) in found(package)


def test_a_link_within_the_package_is_followed_and_a_loop_is_named(package_copy):
    real = package_copy / "instruments/insurance-us/requirements.csv"
    shutil.move(real, package_copy / "kept.csv")
    real.symlink_to(package_copy / "kept.csv")
    assert not read(package_copy).findings
    real.unlink()
    real.symlink_to(real.name)
    assert found(read(package_copy)) == [("R001", REQUIREMENTS)]


def test_a_pipe_in_place_of_a_table_does_not_block(package_copy):
    (package_copy / REQUIREMENTS).unlink()
    os.mkfifo(package_copy / REQUIREMENTS)
    assert found(read(package_copy)) == [("R001", REQUIREMENTS)]


@pytest.mark.parametrize(
    "name",
    ["sources2.csv", "insurance-us/odd.csv", "insurance-us/cells.csv", "x/y/facts.csv", "SOURCES.CSV", "facts.csv"],
)
def test_a_table_that_takes_no_part_is_named_listed_or_not(package_copy, name):
    path = package_copy / "instruments" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("id\n", encoding="utf-8")
    assert found(read(package_copy)) == [("R016", f"instruments/{name}")]
    value = json.loads((package_copy / "datapackage.json").read_text(encoding="utf-8"))
    value["resources"].append({"name": "odd", "path": f"instruments/{name}"})
    (package_copy / "datapackage.json").write_text(json.dumps(value), encoding="utf-8")
    assert found(read(package_copy)) == [("R016", f"instruments/{name}")]


def test_a_table_of_another_ending_is_no_table(package_copy):
    (package_copy / REQUIREMENTS).rename(package_copy / REQUIREMENTS.replace(".csv", ".txt"))
    describe(package_copy, path=REQUIREMENTS.replace(".csv", ".txt"))
    assert found(read(package_copy)) == [("R016", REQUIREMENTS.replace(".csv", ".txt"))]


@pytest.mark.parametrize(
    "again", [REQUIREMENTS, "./" + REQUIREMENTS, REQUIREMENTS.replace("/", "//"), [REQUIREMENTS] * 2]
)
def test_a_file_that_is_listed_twice_is_read_once(package_copy, again):
    count = read(package_copy).count
    value = json.loads((package_copy / "datapackage.json").read_text(encoding="utf-8"))
    value["resources"].append({"name": "again", "path": again})
    (package_copy / "datapackage.json").write_text(json.dumps(value), encoding="utf-8")
    package = read(package_copy)
    assert {c for c, _ in found(package)} == {"R018"} and package.count == count


def test_a_list_of_paths_is_read_as_its_parts(package_copy):
    describe(package_copy, path=[REQUIREMENTS])
    assert not read(package_copy).findings
    facts = "instruments/insurance-us/facts.csv"
    value = json.loads((package_copy / "datapackage.json").read_text(encoding="utf-8"))
    first = next(r for r in value["resources"] if r["path"] == [REQUIREMENTS])
    second = next(r for r in value["resources"] if r["path"] == facts)
    value["resources"].remove(second)
    first.update(
        path=[REQUIREMENTS, facts], rows=first["rows"] + second["rows"], bytes=first["bytes"] + second["bytes"]
    )
    (package_copy / "datapackage.json").write_text(json.dumps(value), encoding="utf-8")
    assert not read(package_copy).findings
    first["rows"] += 1
    (package_copy / "datapackage.json").write_text(json.dumps(value), encoding="utf-8")
    assert found(read(package_copy)) == [("R011", REQUIREMENTS)]


def lines_of(root: Path) -> list[bytes]:
    return (root / REQUIREMENTS).read_bytes().splitlines(keepends=True)


@given(number=st.integers(1, 25))
@settings(max_examples=10)
def test_a_row_that_went_missing_is_seen(tmp_path_factory, number):
    root = tmp_path_factory.mktemp("package")
    shutil.copytree(Path(__file__).parents[1] / "instruments", root / "instruments")
    redescribe(root)
    lines = lines_of(root)
    (root / REQUIREMENTS).write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
    package = read(root)
    assert found(package) == [("R011", REQUIREMENTS)] and "24" in package.findings[0].message


def test_two_rows_that_were_glued_are_seen(package_copy):
    lines = lines_of(package_copy)
    (package_copy / REQUIREMENTS).write_bytes(b"".join(lines[:5]) + lines[5].rstrip(b"\n") + b"".join(lines[6:]))
    package = read(package_copy)
    assert found(package) == [("R007", REQUIREMENTS)] and package.findings[0].line == 6
    assert package.incomplete == {"requirements"}


def test_a_row_too_wide_before_a_quote_that_never_closes(package_copy):
    lines = lines_of(package_copy)
    (package_copy / REQUIREMENTS).write_bytes(lines[0] + b"a,b\n" + b"".join(lines[1:3]) + b'x,"y\n')
    package = read(package_copy)
    assert [(f.code, f.line) for f in package.findings] == [("R005", 5), ("R007", 2)]
    assert len(package.table("requirements")) == 2


def test_a_wrong_header_before_a_quote_that_never_closes(tmp_path):
    table = read_text(tmp_path, 'id,note,title\na,b,c\nd,"e\n')
    assert sorted(codes(table)) == ["R003", "R005"] and not table.rows
    assert only(read_text(tmp_path, 'id,"note,title\na,b,c\n')) == ("R005", 1, 4)


@pytest.mark.parametrize("changes", [{"rows": 24}, {"bytes": 1}, {"hash": "sha256:" + "0" * 64}, {"hash": "md5:0"}])
def test_what_the_descriptor_says_wrongly_is_one_finding(package_copy, changes):
    describe(package_copy, **changes)
    assert found(read(package_copy)) == [("R011", REQUIREMENTS)]


def test_a_final_newline_that_went_missing_is_another_state_and_no_lost_row(package_copy):
    path = package_copy / REQUIREMENTS
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    package = read(package_copy)
    assert found(package) == [("R011", REQUIREMENTS)] and len(package.table("requirements")) == 25
    redescribe(package_copy)
    assert not read(package_copy).findings


def test_a_row_of_another_cell_is_named(package_copy):
    path = package_copy / REQUIREMENTS
    path.write_text(
        path.read_text(encoding="utf-8").replace("-r01,insurance-us,", "-r01,banking-vn,"), encoding="utf-8"
    )
    redescribe(package_copy)
    package = read(package_copy)
    assert [(f.code, f.file, f.line, f.column, f.record) for f in package.findings] == [
        ("K004", REQUIREMENTS, 2, len("insurance-us-r01,") + 1, "insurance-us-r01")
    ]


# Keys, by the comparison itself


def a_package(*files: tuple[str, str, list[list[str]]]) -> Package:
    """A package made of (table, file, rows), without reading; rows are filled up with empty cells."""
    package = Package(Path("."), {})
    for name, file, rows in files:
        spec = table_specs()[name]
        full = [row + [""] * (len(spec.columns) - len(row)) for row in rows]
        text = "".join(",".join(row) + "\n" for row in [spec.columns, *full])
        offsets = [sum(len(line) + 1 for line in text.split("\n")[: i + 1]) for i in range(len(full))]
        table = reader.Table(file, spec.columns, full, list(range(2, len(full) + 2)), [], text, offsets)
        package.records.setdefault(name, []).extend(
            package_module.Record(spec, dict(zip(spec.columns, row)), table, i) for i, row in enumerate(full)
        )
    return package


@given(word=st.sampled_from(["bệnh", "điều", "luật", "phí"]), left=st.booleans())
def test_ids_that_look_the_same_are_the_same(word, left):
    pair = [word, unicodedata.normalize("NFD", word)]
    assert pair[0] != pair[1]
    pair = pair if left else pair[::-1]
    package = a_package(("requirements", "a.csv", [[pair[0]]]), ("faults", "b.csv", [[pair[1]]]))
    findings = check_keys(package)
    assert [(f.code, f.file, f.line) for f in findings] == [("K001", "b.csv", 2)]
    assert "a.csv:2" in findings[0].message
    links = a_package(("fault_requirements", "a.csv", [["c", pair[0], "r"], ["c", pair[1], "r"]]))
    assert [f.code for f in check_keys(links) if f.code != "K003"] == ["K002"]


@given(
    ids=st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=6),
    split=st.integers(0, 6),
)
def test_duplicates_are_found_in_one_file_and_across_files(ids, split):
    package = a_package(
        ("sources", "one.csv", [[i] for i in ids[:split]]), ("sources", "two.csv", [[i] for i in ids[split:]])
    )
    findings = check_keys(package)
    filled = [i for i in ids if i]
    assert [f.code for f in findings] == ["K001"] * (len(filled) - len(set(filled)))
    for finding in findings:
        first = ids.index(finding.record)
        file, line = ("one.csv", first + 2) if first < split else ("two.csv", first - split + 2)
        assert f"already at {file}:{line}" in finding.message
        assert (finding.file, finding.line) != (file, line)
