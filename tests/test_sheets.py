"""Workbooks: out and in is the identity, every kind of damage is told with its cell, and nothing is lost on the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import ROOT, one_cell, redescribe
from helpers import Sheet
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openpyxl.comments import Comment

import regatta_tools
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.rules.registry import rules
from regatta_tools.sheets import opening
from regatta_tools.sheets.bring_back import BroughtBack, sheet_in
from regatta_tools.sheets.export import sheet_out
from regatta_tools.sheets.grid import origin_of, read_book
from regatta_tools.sheets.layout import BASE, COVER, LOST, escaped, unescaped
from regatta_tools.sheets.opening import open_workbook
from regatta_tools.tables.package import read, table_specs
from regatta_tools.tables.writing import csv_bytes

CELL = "insurance-us"
MAIN = "from regatta_tools.cli.main import main; main()"


def regatta(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=cwd, env=os.environ | environment, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of a few records of one real cell: workbooks are slow to write. Copy it before spoiling it."""
    root = one_cell(tmp_path_factory.mktemp("small") / "package")
    shutil.rmtree(root / "instruments" / CELL / "context")
    redescribe(root)
    fault = "insurance-us-fault-business-day-clock"
    links = Sheet(root, "fault_requirements")
    kept = {"insurance-us-r01", "insurance-us-r02", "insurance-us-r05", "insurance-us-r06", fault}
    kept |= {row[links.header.index("requirement")] for row in links.rows if fault in row}
    obligations = ("requirements", "citations", "facts", "audit")
    for name in (*obligations, "faults", "fault_requirements", "fault_values", "fault_probes"):
        table = Sheet(root, name)
        columns = [c for c in ("requirement", "fault") if c in table.header] or ["id"]
        table.rows = [row for row in table.rows if {row[table.header.index(c)] for c in columns} <= kept]
        table.save()
    cited = {row[3] for row in Sheet(root, "citations").rows}
    sources = Sheet(root, "sources")
    sources.rows = [row for row in sources.rows if row[0] in cited]
    sources.save()
    assert not [f for f in regatta_tools.validate(root).findings if f.severity == "error"]
    return root


@pytest.fixture
def package_copy(small: Path, tmp_path: Path) -> Path:
    """A small package that a test may spoil."""
    return Path(shutil.copytree(small, tmp_path / "package"))


@pytest.fixture
def exported(package_copy: Path) -> tuple[Path, Path]:
    """A package and a workbook of its cell."""
    book = package_copy.parent / "cell.xlsx"
    sheet_out(CELL, out=book, package=package_copy)
    return package_copy, book


def edit(book: Path, change: Callable[[Any], None]) -> None:
    """Change a workbook as a person would, and save it."""
    workbook = openpyxl.load_workbook(book)
    change(workbook)
    workbook.save(book)


def put(sheet: Any, address: str, text: str) -> None:
    """Type a text into a cell of the format Text."""
    cell = sheet[address]
    cell.value, cell.data_type, cell.number_format = text, "s", "@"


def at(sheet: Any, key: str, column: str) -> str:
    """The address of a cell by record and column."""
    letters = {cell.value: cell.column_letter for cell in sheet[1]}
    row = next(row[0].row for row in sheet.iter_rows() if row[0].value == key)
    return f"{letters[column]}{row}"


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def codes(result: BroughtBack) -> set[str]:
    """The codes of what is new."""
    return {f.finding.code for f in result.findings if not f.before}


def rows_of(book: Path, root: Path) -> dict[str, list[list[str]]]:
    """The rows of each table as they stand in a workbook."""
    workbook, threads = open_workbook(book)
    origin = origin_of(workbook)
    assert origin is not None
    specs = [s for s in table_specs().values() if s.name in workbook.sheetnames]
    grids = read_book(book.name, workbook, threads, origin, specs).grids
    return {name: [[row.cells[c] for c in table_specs()[name].columns] for row in g.rows] for name, g in grids.items()}


def as_excel_saves(book: Path) -> None:
    """Move the texts into the table of shared strings, where Excel, LibreOffice and others keep them."""
    with zipfile.ZipFile(book) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    strings: list[str] = []

    def shared(match: re.Match[str]) -> str:
        strings.append(match["text"])
        return f'{match["head"]} t="s"><v>{len(strings) - 1}</v></c>'

    inline = re.compile(r'(?P<head><c [^>]*?) t="inlineStr"><is>(?P<text><t.*?</t>)</is></c>', re.S)
    for name in list(parts):
        if name.startswith("xl/worksheets/sheet"):
            parts[name] = inline.sub(shared, parts[name].decode("utf-8")).encode("utf-8")
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    entry = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'.encode()
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"</Types>", entry)
    items = "".join(f"<si>{text}</si>" for text in strings)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts["xl/sharedStrings.xml"] = f'<sst xmlns="{main}">{items}</sst>'.encode()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


# Out and in


@pytest.mark.parametrize("cell", sorted(p.parent.name for p in (ROOT / "instruments").glob("*/requirements.csv")))
def test_a_cell_comes_back_byte_for_byte(tmp_path, cell):
    root = one_cell(tmp_path / "package", cell, gold=cell == "insurance-us")
    book = tmp_path / "cell.xlsx"
    done = sheet_out(cell, out=book, package=root)
    for shared in (False, True) if cell in ("insurance-us", "banking-vn") else (False,):
        if shared:
            as_excel_saves(book)
        found = rows_of(book, root)
        assert set(done.tables) | {"sources"} == set(found)
        for name, rows in found.items():
            folder = {"package": "", "cell": cell, "context": f"{cell}/context"}[table_specs()[name].scope]
            file = root / "instruments" / folder / f"{name}.csv"
            assert csv_bytes(table_specs()[name].columns, rows) == file.read_bytes(), name
        before = files(root)
        result = sheet_in(book, package=root)
        assert (codes(result), result.written, result.notes, result.differs) == (set(), [], [], False)
        assert files(root) == before


# Characters that the reader takes; the others are findings before anybody exports (R008, R009, R010).
_TEXT = st.text(
    st.one_of(
        st.sampled_from("=+-@'\"_x0005FDd,;\n\t ảễộđĐ₫§“…©😀#/"),
        st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp", "Co", "Cn"), max_codepoint=0x1F9FF),
    ),
    max_size=40,
)
_TRAPS = [
    "_x000D_", "_x005F_", "x005F_", "_x005F_x000D_", "_x0041_x0042_", "=1+1", "-5", "+84", "@SUM(1)", "#REF!",
    "a\r\nb", "0010", "1005.10", "2E10", "3-4", "TRUE", "1/2", "2026-11-30", "'quoted", '"', "Điều 5\nkhoản 1", "😀",
    "a" * 32_000,
]  # fmt: skip


@given(st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=6))
@example([(a, b) for a, b in zip(_TRAPS, reversed(_TRAPS), strict=True)])
@settings(max_examples=8)
def test_any_text_comes_back(small, tmp_path_factory, texts):
    root = Path(shutil.copytree(small, tmp_path_factory.mktemp("p") / "package"))
    table = Sheet(root, "requirements")
    model = list(table.rows[0])
    table.rows = []
    for number, (duty, topic) in enumerate(texts):
        row = list(model)
        row[0] = f"insurance-us-r{number:02}"
        row[table.header.index("duty_en")], row[table.header.index("topic")] = duty, topic
        table.rows.append(row)
    table.save()
    book = root.parent / "cell.xlsx"
    sheet_out(CELL, out=book, package=root)
    for shared in (False, True):
        if shared:
            as_excel_saves(book)
        # "#REF!" is what a broken formula leaves, whoever typed it: the export keeps it, the import asks.
        assert rows_of(book, root)["requirements"] == table.rows
        result = sheet_in(book, package=root, check=True)
        assert not result.differs
        assert {f.finding.code for f in result.findings if not f.before} <= {"X007"}


@given(st.text(st.sampled_from("_x0005FDd1A\r\x01\ufffe"), max_size=30) | st.text(max_size=30))
@example("_x000D_")
@example("_x0041_x0042_")
@example("_x0000\r")
def test_escapes_are_undone(text):
    there = escaped(text)
    assert unescaped(there) == text
    assert "\r" not in there and "\x01" not in there


def test_what_the_workbook_offers(exported):
    """Text format everywhere, drop-downs, descriptions, a frozen header, shaded ids, sheets for looking up."""
    root, book = exported
    workbook = openpyxl.load_workbook(book)
    specs = table_specs()
    assert workbook.sheetnames[0] == COVER and workbook[BASE].sheet_state == "veryHidden"
    for name in ("requirements", "citations", "facts", "faults"):
        sheet, spec = workbook[name], specs[name]
        assert sheet.freeze_panes == "B2"
        assert all(cell.number_format == "@" for row in sheet.iter_rows() for cell in row)
        assert all(cell.data_type in "sn" and not isinstance(cell.value, int | float) for row in sheet for cell in row)
        for column, cell in zip(spec.columns, sheet[1], strict=True):
            assert cell.value == column and spec.fields[column]["description"] in cell.comment.text
            assert sheet.column_dimensions[cell.column_letter].number_format == "@"
        offered = {str(v.sqref).split(":")[0][:-1]: v for v in sheet.data_validations.dataValidation}
        for column, cell in zip(spec.columns, sheet[1], strict=True):
            kind = spec.fields[column]["kind"]
            validation = offered.get(cell.column_letter)
            if kind == "enum":
                listed = re.fullmatch(r"lists!\$([A-Z]+)\$2:\$[A-Z]+\$(\d+)", validation.formula1)
                values = [c.value for c in workbook["lists"][listed[1]][1 : int(listed[2])]]
                assert values == list(regatta_tools.tables.model.enum_values(spec.fields[column]["enum"]))
            elif kind == "date":
                assert validation.type == "custom" and cell.column_letter in validation.formula1
            elif kind == "ref" and spec.fields[column]["ref"] != "Cell":
                assert validation.formula1.split("(")[1].split("!")[0] in workbook.sheetnames
        assert sheet["A2"].fill.fgColor.rgb != sheet["D2"].fill.fgColor.rgb
    assert workbook["sources"].protection.sheet and not workbook["facts"].protection.sheet
    shown = [str(cell.value or "") for row in workbook[COVER].iter_rows() for cell in row]
    assert CELL in shown
    for resource in json.loads((root / "datapackage.json").read_text(encoding="utf-8"))["resources"]:
        if resource["name"].startswith(f"{CELL}-"):
            assert resource["hash"].removeprefix("sha256:") in shown, "the first sheet names each table as exported"


def test_the_first_sheet_speaks_the_languages_of_the_cell(tmp_path):
    said = {}
    for cell in ("insurance-us", "insurance-vn"):
        root = one_cell(tmp_path / cell, cell)
        sheet_out(cell, out=tmp_path / f"{cell}.xlsx", package=root)
        sheet = openpyxl.load_workbook(tmp_path / f"{cell}.xlsx")[COVER]
        said[cell] = " ".join(str(row[0].value or "") for row in sheet.iter_rows())
    assert "Mọi ô đều là văn bản" in said["insurance-vn"] and "Every cell is text" in said["insurance-vn"]
    assert "văn bản" not in said["insurance-us"] and "Every cell is text" in said["insurance-us"]


def test_text_that_looks_like_a_formula_is_text(package_copy, tmp_path):
    table = Sheet(package_copy, "requirements")
    texts = ['=HYPERLINK("http://x.invalid","see")', "@SUM(1)", "+1 (555) 0100", "-0.25"]
    for number, text in enumerate(texts):
        table.set(number, trigger=text)
    table.save()
    book = tmp_path / "cell.xlsx"
    sheet_out(CELL, out=book, package=package_copy)
    sheet = openpyxl.load_workbook(book)["requirements"]
    column = [cell.value for cell in sheet[1]].index("trigger")
    for number, text in enumerate(texts, 2):
        cell = sheet.cell(number, column + 1)
        assert (cell.value, cell.data_type, cell.quotePrefix) == (text, "s", True)
    with zipfile.ZipFile(book) as archive:
        xml = b"".join(archive.read(n) for n in archive.namelist() if n.startswith("xl/worksheets/sheet"))
    assert b"<f>" not in xml and b"<f " not in xml
    assert not sheet_in(book, package=package_copy, check=True).differs


# Damage: one case a code. What spoils the workbook, and the address of the finding.
Spoil = Callable[[Any], str]
CASES: dict[str, tuple[Spoil, set[str]]] = {}


def case(code: str, *companions: str) -> Callable[[Spoil], Spoil]:
    def keep(spoil: Spoil) -> Spoil:
        CASES[code] = spoil, set(companions)
        return spoil

    return keep


def value_case(code: str, value: Any, sheet: str = "facts", column: str = "value", key: str = "insurance-us-r05-f2"):
    @case(code)
    def spoil(workbook: Any) -> str:
        address = at(workbook[sheet], key, column)
        workbook[sheet][address].value = value
        return f"{sheet}!{address}"


@case("X001")
def _(workbook: Any) -> str:
    del workbook["faults"]
    return "faults"


@case("X002")
def _(workbook: Any) -> str:
    workbook["facts"]["E1"] = "Label"
    return "facts!A1"


@case("X003")
def _(workbook: Any) -> str:
    sheet = workbook["facts"]
    for row in sheet.iter_rows():
        (row[4].value, row[5].value) = (row[5].value, row[4].value)
    return "facts!E1"


@case("X004")
def _(workbook: Any) -> str:
    put(workbook["facts"], "P1", "my remarks")
    put(workbook["facts"], "P7", "look again")
    return "facts!P1"


value_case("X005", 15)
value_case("X006", "=14+1")
value_case("X007", "#REF!")


@case("X008")
def _(workbook: Any) -> str:
    # Cells that are empty anyway: merging them loses nothing yet, and the next one does.
    workbook["faults"].merge_cells("G2:G3")
    return "faults!G2:G3"


@case("X009")
def _(workbook: Any) -> str:
    workbook["facts"].row_dimensions[5].hidden = True
    return "facts"


@case("X010")
def _(workbook: Any) -> str:
    sheet = workbook["fault_probes"]
    sheet.delete_rows(4)
    return "fault_probes"


@case("X012")
def _(workbook: Any) -> str:
    workbook["facts"].insert_rows(10)
    return "facts!A11"


@case("X013", "F002")
def _(workbook: Any) -> str:
    sheet = workbook["requirements"]
    address = at(sheet, "insurance-us-r05", "duty_en")
    put(sheet, address, "word " * 6_553 + "wo")
    return f"requirements!{address}"


@case("X014")
def _(workbook: Any) -> str:
    sheet = workbook["requirements"]
    address = at(sheet, "insurance-us-r05", "actor")
    put(sheet, address, "so-called “insurer”…")
    return f"requirements!{address}"


@case("X015")
def _(workbook: Any) -> str:
    sheet = workbook["citations"]
    address = at(sheet, "insurance-us-r05-c1", "note")
    put(sheet, address, "see ©(1)")
    return f"citations!{address}"


@case("X016")
def _(workbook: Any) -> str:
    put(workbook["sources"], "C2", "Another title")
    return "sources!A2"


@case("X018")
def _(workbook: Any) -> str:
    sheet = workbook["facts"]
    for a, b in zip(sheet[3], sheet[4], strict=True):
        a.value, b.value = b.value, a.value
    return "facts"


def spoil_package(code: str) -> Callable[[Path, Path], str]:
    """The two codes that need an edit of the package between export and import."""

    def conflict(root: Path, book: Path) -> str:
        table = Sheet(root, "facts")
        table.save(table.set("insurance-us-r05-f2", label="as the package says"))
        address = []

        def change(workbook: Any) -> None:
            address.append(at(workbook["facts"], "insurance-us-r05-f2", "label"))
            put(workbook["facts"], address[0], "as the workbook says")

        edit(book, change)
        return "facts!A" + re.sub("[A-Z]", "", address[0])

    def unknown(root: Path, book: Path) -> str:
        table = Sheet(root, "facts")
        table.save(table.set("insurance-us-r05-f2", label="as the package says"))
        edit(book, lambda workbook: workbook.remove(workbook[BASE]))
        return "facts"

    return {"X011": conflict, "X017": unknown}[code]


def test_every_code_of_workbooks_has_a_case():
    assert set(CASES) | {"X011", "X017"} == {code for code, rule in rules().items() if rule.engine == "sheet"}


@pytest.mark.parametrize("code", [*sorted(CASES), "X011", "X017"])
def test_damage_is_told_by_its_own_code_at_its_cell(exported, code):
    root, book = exported
    if code in CASES:
        spoil, companions = CASES[code]
        places = []
        edit(book, lambda workbook: places.append(spoil(workbook)))
        address = places[0]
    else:
        address, companions = spoil_package(code)(root, book), set()
    before = files(root)
    result = sheet_in(book, package=root)
    assert codes(result) - companions == {code}
    found = [f for f in result.findings if f.finding.code == code]
    assert address in {f.address for f in found}
    assert all(f.finding.message and f.finding.mend for f in found)
    severity = rules()[code].severity
    assert result.ok == (severity != "error")
    if severity == "error":
        assert files(root) == before, "an error writes nothing"


@pytest.mark.parametrize("shared", [False, True])
def test_case_a5_ids_that_a_spreadsheet_converted(exported, shared):
    """0010, 1005.10, 2E10, 3-4 and 21000021, as a spreadsheet gives them back: numbers, a date, and their texts."""
    root, book = exported
    values = [10, 1005.1, 2e10, datetime(2026, 3, 4), 21000021]
    texts = ["2.00E+10", "04-Mar", "2.1E+07"]

    def change(workbook: Any) -> None:
        sheet = workbook["facts"]
        for row, value in enumerate(values, 2):
            sheet.cell(row, 1).value = value
        for row, text in enumerate(texts, 7):
            put(sheet, f"A{row}", text)

    edit(book, change)
    if shared:
        as_excel_saves(book)
    result = sheet_in(book, package=root, check=True)
    said = {f.address: f.finding for f in result.findings}
    for row in range(2, 7):
        assert said[f"facts!A{row}"].code == "X005"
    assert "1005.1," in said["facts!A3"].message
    for row in range(7, 10):
        assert said[f"facts!A{row}"].code == "S005"
    gone = [f for f in result.findings if f.finding.code == "X010"]
    assert len(gone) == 8 and not result.ok


def test_what_the_checks_say_carries_file_line_and_address(exported):
    root, book = exported
    edit(book, lambda wb: put(wb["facts"], at(wb["facts"], "insurance-us-r05-f2", "unit"), "days"))
    result = sheet_in(book, package=root, check=True)
    (found,) = [f for f in result.findings if f.finding.code == "S003"]
    file = root / found.finding.file
    line = file.read_text(encoding="utf-8").split("\n")[found.finding.line - 1]
    assert line.startswith("insurance-us-r05-f2,") and line[found.finding.column - 1 :].startswith("day,")
    sheet = openpyxl.load_workbook(book)["facts"]
    assert found.address == "facts!" + at(sheet, "insurance-us-r05-f2", "unit")


@pytest.mark.parametrize(
    ("text", "code"),
    [("claims ", "R010"), ("Đie\u0302\u0300u", "R009"), ("a\u00a0b", "R008"), ("a\u200bb", "R008"), ("", "S001")],
)
def test_text_that_the_package_refuses_is_told_with_its_cell(exported, text, code):
    root, book = exported
    edit(book, lambda wb: put(wb["requirements"], at(wb["requirements"], "insurance-us-r06", "actor"), text))
    result = sheet_in(book, package=root)
    sheet = openpyxl.load_workbook(book)["requirements"]
    address = "requirements!" + at(sheet, "insurance-us-r06", "actor")
    assert [(f.finding.code, f.address) for f in result.findings] == [(code, address)]
    assert not result.ok and not result.written


def test_a_row_that_stands_twice_is_told_at_the_second(exported):
    root, book = exported

    def change(workbook: Any) -> None:
        sheet = workbook["facts"]
        sheet.append([cell.value for cell in sheet[4]])

    edit(book, change)
    result = sheet_in(book, package=root)
    last = openpyxl.load_workbook(book)["facts"].max_row
    assert "K001" in codes(result) and not result.written
    assert {f.address for f in result.findings if f.finding.code == "K001"} == {f"facts!A{last}"}


def test_merged_headers_are_told(exported):
    root, book = exported
    edit(book, lambda workbook: workbook["facts"].merge_cells("P1:Q1"))
    assert codes(sheet_in(book, package=root, check=True)) == {"X008"}
    edit(book, lambda workbook: workbook["facts"].merge_cells("A1:B1"))
    found = sheet_in(book, package=root, check=True).findings
    assert {f.finding.code for f in found} >= {"X002"} and not sheet_in(book, package=root).written


def test_a_header_that_slid_down_is_told_with_its_row(exported):
    root, book = exported
    edit(book, lambda workbook: workbook["facts"].insert_rows(1, 2))
    (found,) = sheet_in(book, package=root, check=True).findings
    assert (found.finding.code, found.address) == ("X002", "facts!A3") and "row 3" in found.finding.message


def test_an_id_that_was_edited_is_recognised(exported):
    root, book = exported
    edit(book, lambda wb: put(wb["fault_probes"], "A2", "insurance-us-fault-other-p1"))
    (found,) = [f for f in sheet_in(book, package=root, check=True).findings if f.finding.code == "X010"]
    assert "insurance-us-fault-other-p1" in found.finding.message and "was its id changed" in found.finding.message


# Writing


def test_edits_are_written_and_described(exported):
    root, book = exported
    before = files(root)

    def change(workbook: Any) -> None:
        sheet = workbook["requirements"]
        put(sheet, at(sheet, "insurance-us-r06", "topic"), "CO: hồ sơ khiếu nại")
        probes = workbook["fault_probes"]
        row = [cell.value for cell in probes[2]]
        row[0] = "insurance-us-fault-business-day-clock-p9"
        probes.append(row)

    edit(book, change)
    told = sheet_in(book, package=root, check=True)
    assert files(root) == before and told.differs and not told.written
    result = sheet_in(book, package=root)
    assert result.ok and not result.findings
    assert result.written == [f"instruments/{CELL}/{n}.csv" for n in ("fault_probes", "requirements")]
    assert result.changes["requirements"].changed == {"insurance-us-r06": ["topic"]}
    assert list(result.changes["fault_probes"].added) == ["insurance-us-fault-business-day-clock-p9"]
    after = files(root)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {*result.written, "datapackage.json"} and set(after) == set(before)
    # The small package is not complete, and who edits an obligation has it read again after it is written.
    assert told.to_read == result.to_read == ["insurance-us-r06"]
    assert {(f.code, f.record) for f in regatta_tools.validate(root).findings} == {
        ("P007", CELL), ("A001", "insurance-us-r06")
    }  # fmt: skip
    ids = [r.key for r in read(root).table("fault_probes")]
    assert ids == sorted(ids), "a table that was in order stays in order"
    assert "CO: hồ sơ khiếu nại" in (root / f"instruments/{CELL}/requirements.csv").read_text(encoding="utf-8")
    # Only the rows that changed differ.
    old, new = (c[f"instruments/{CELL}/requirements.csv"].splitlines() for c in (before, after))
    assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


def test_removals_have_to_be_asked_for(exported):
    root, book = exported

    def change(workbook: Any) -> None:
        sheet = workbook["fault_probes"]
        row = next(r[0].row for r in sheet.iter_rows() if r[0].value == "insurance-us-fault-business-day-clock-p4")
        sheet.delete_rows(row)

    edit(book, change)
    before = files(root)
    assert codes(sheet_in(book, package=root)) == {"X010"} and files(root) == before
    result = sheet_in(book, package=root, allow_removals=True)
    assert result.ok and result.changes["fault_probes"].removed == ["insurance-us-fault-business-day-clock-p4"]
    assert "insurance-us-fault-business-day-clock-p4" not in {r.key for r in read(root)}
    assert regatta_tools.validate(root).ok


def test_three_ways(exported):
    """Each side's own edits hold; the same edit on both sides is none; rows new in the package stay."""
    root, book = exported
    table = Sheet(root, "facts")
    table.set("insurance-us-r05-f1", label="edited in the package")
    table.set("insurance-us-r05-f2", label="the same on both sides")
    table.rows.append(["insurance-us-r05-f9", *table.rows[table.find("insurance-us-r05-f2")][1:]])
    table.set(len(table.rows) - 1, label="new in the package")
    table.save()

    def change(workbook: Any) -> None:
        sheet = workbook["facts"]
        put(sheet, at(sheet, "insurance-us-r05-f2", "label"), "the same on both sides")
        put(sheet, at(sheet, "insurance-us-r06-f1", "label"), "edited in the workbook")

    edit(book, change)
    result = sheet_in(book, package=root)
    assert result.ok and result.changes["facts"].changed == {"insurance-us-r06-f1": ["label"]}
    assert result.changes["facts"].kept == 2
    labels = {r.key: r["label"] for r in read(root).table("facts")}
    assert labels["insurance-us-r05-f1"] == "edited in the package"
    assert labels["insurance-us-r05-f2"] == "the same on both sides"
    assert labels["insurance-us-r05-f9"] == "new in the package"
    assert labels["insurance-us-r06-f1"] == "edited in the workbook"
    assert not sheet_in(book, package=root).written, "once is enough"


@pytest.mark.parametrize("side", ["workbook", "package"])
def test_removed_on_one_side_and_changed_on_the_other(exported, side):
    root, book = exported
    key = "insurance-us-fault-business-day-clock-p4"

    def in_package(remove: bool) -> None:
        table = Sheet(root, "fault_probes")
        row = table.find(key)
        if remove:
            del table.rows[row]
        else:
            table.set(row, inputs=table.rows[row][table.header.index("inputs")].replace("=", " = "))
        table.save()

    def in_workbook(remove: bool) -> None:
        def change(workbook: Any) -> None:
            sheet = workbook["fault_probes"]
            address = at(sheet, key, "inputs")
            if remove:
                sheet.delete_rows(sheet[address].row)
            else:
                put(sheet, address, str(sheet[address].value).replace("=", " = "))

        edit(book, change)

    in_package(side == "package")
    in_workbook(side == "workbook")
    before = files(root)
    result = sheet_in(book, package=root, allow_removals=True)
    assert codes(result) == {"X011"} and files(root) == before
    assert [f.finding.record for f in result.findings] == [key]


def test_an_error_that_was_there_before_does_not_stop_a_mend(package_copy, tmp_path):
    table = Sheet(package_copy, "facts")
    table.set("insurance-us-r05-f2", unit="days")
    table.save(table.set("insurance-us-r06-f1", unit="hours"))
    book = tmp_path / "cell.xlsx"
    sheet_out(CELL, out=book, package=package_copy)
    edit(book, lambda wb: put(wb["facts"], at(wb["facts"], "insurance-us-r05-f2", "unit"), "day"))
    result = sheet_in(book, package=package_copy)
    assert result.ok and result.written
    assert [(f.finding.record, f.before) for f in result.findings] == [("insurance-us-r06-f1", True)]
    edit(book, lambda wb: put(wb["facts"], at(wb["facts"], "insurance-us-r06-f1", "kind"), "period"))
    assert not sheet_in(book, package=package_copy).ok, "a new error in the same row does"


def test_a_row_lost_in_the_package_is_not_described_away(exported):
    root, book = exported
    edit(book, lambda wb: put(wb["facts"], at(wb["facts"], "insurance-us-r05-f2", "label"), "another label"))
    file = root / f"instruments/{CELL}/facts.csv"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    before = files(root)
    result = sheet_in(book, package=root)
    assert codes(result) == {"R011"} and files(root) == before
    redescribe(root)
    assert sheet_in(book, package=root).written, "once somebody has said that it is meant"


def test_a_package_that_changed_meanwhile_is_not_overwritten(exported, monkeypatch):
    root, book = exported
    edit(book, lambda wb: put(wb["requirements"], at(wb["requirements"], "insurance-us-r06", "topic"), "Another topic"))
    file = root / f"instruments/{CELL}/requirements.csv"
    from regatta_tools.sheets import bring_back

    def meanwhile(*given: Any) -> Any:
        file.write_bytes(file.read_bytes() + b"x")
        return real(*given)

    real = bring_back._checked
    monkeypatch.setattr(bring_back, "_checked", meanwhile)
    with pytest.raises(EnvironmentProblem, match="another program"):
        sheet_in(book, package=root)
    assert file.read_bytes().endswith(b"x")


def test_a_disk_that_takes_nothing_leaves_all_as_it_was(exported, monkeypatch):
    root, book = exported
    edit(book, lambda wb: put(wb["requirements"], at(wb["requirements"], "insurance-us-r06", "topic"), "Another topic"))
    before = files(root)
    calls = []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentProblem, match="disk is full"):
        sheet_in(book, package=root)
    assert files(root) == before


# Notes


def test_notes_are_kept_by_record_and_column(exported):
    root, book = exported

    def change(workbook: Any) -> None:
        sheet = workbook["facts"]
        sheet[at(sheet, "insurance-us-r05-f2", "value")].comment = Comment(
            escaped("Kiểm tra lại số này _x000D_"), "Lan"
        )
        sheet["H1"].comment = Comment(sheet["H1"].comment.text + "\n\nof the copy of May", "REGATTA")
        workbook["fault_probes"]["B3"].comment = Comment("why this one?", "Ann")
        # A row comes in above: the notes have to move with their records.
        sheet.insert_rows(2)
        for cell, value in zip(sheet[2], [c.value for c in sheet[3]], strict=True):
            cell.value = value
        put(sheet, "A2", "insurance-us-r01-f0")
        put(sheet, at(sheet, "insurance-us-r01-f0", "label"), "another name")

    edit(book, change)
    result = sheet_in(book, package=root)
    assert result.ok and list(result.changes["facts"].added) == ["insurance-us-r01-f0"]
    said = {(n.sheet, n.key, n.column, n.author, n.text) for n in result.notes}
    probe = read(root).table("fault_probes")[1].key
    assert ("facts", "insurance-us-r05-f2", "value", "Lan", "Kiểm tra lại số này _x000D_") in said
    assert ("facts", "(header)", "value", "REGATTA", "of the copy of May") in said
    assert ("fault_probes", probe, "cell", "Ann", "why this one?") in said and len(said) == 3

    for _ in range(2):  # and again: they do not wear off
        done = sheet_out(CELL, out=book, package=root)
        assert (done.notes, done.lost) == (3, 0)
        kept = {(n.sheet, n.key, n.column, n.author, n.text) for n in sheet_in(book, package=root).notes}
        assert kept == said
        assert not sheet_in(book, package=root).differs

    table = Sheet(root, "fault_probes")
    del table.rows[1]
    table.save()
    done = sheet_out(CELL, out=book, package=root)
    assert (done.notes, done.lost) == (3, 1)
    (line,) = [[c.value for c in row] for row in openpyxl.load_workbook(book)[LOST].iter_rows(min_row=2)]
    assert line == ["fault_probes", probe, "cell", "Ann", "why this one?"]
    assert {(n.sheet, n.key, n.column, n.author, n.text) for n in sheet_in(book, package=root).notes} == said
    assert sheet_out(CELL, out=book, package=root).lost == 1


def test_threads_of_excel_are_read(exported):
    """A threaded comment as Excel 365 writes it, beside the note in which it explains itself."""
    root, book = exported
    edit(
        book,
        lambda wb: setattr(wb["facts"]["D4"], "comment", Comment("[Threaded comment]\n\nYour version ...", "tc={1}")),
    )
    with zipfile.ZipFile(book) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    number = next(i for i, s in enumerate(openpyxl.load_workbook(book).sheetnames, 1) if s == "facts")
    space = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
    parts["xl/threadedComments/threadedComment1.xml"] = (
        f'<ThreadedComments xmlns="{space}"><threadedComment ref="D4" dT="2026-11-30T10:00:00.00" personId="{{A}}" '
        f'id="{{1}}"><text>Điều này còn hiệu lực?</text></threadedComment>'
        f'<threadedComment ref="D4" personId="{{B}}" id="{{2}}" parentId="{{1}}"><text>Yes, see (c)(1).</text>'
        f"</threadedComment></ThreadedComments>"
    ).encode()
    parts["xl/persons/person.xml"] = (
        f'<personList xmlns="{space}"><person displayName="Lan" id="{{A}}"/>'
        f'<person displayName="Ann" id="{{B}}"/></personList>'
    ).encode()
    rels = f"xl/worksheets/_rels/sheet{number}.xml.rels"
    link = (
        '<Relationship Id="rId99" Type="http://schemas.microsoft.com/office/2017/10/relationships/threadedComment" '
        'Target="../threadedComments/threadedComment1.xml"/></Relationships>'
    )
    parts[rels] = parts[rels].decode().replace("</Relationships>", link).encode()
    with zipfile.ZipFile(book, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    (note,) = sheet_in(book, package=root).notes
    assert (note.author, note.text, note.address) == (
        "Lan",
        "Điều này còn hiệu lực?\nAnn: Yes, see (c)(1).",
        "facts!D4",
    )
    sheet_out(CELL, out=book, package=root)
    assert [n.text for n in sheet_in(book, package=root).notes] == [note.text]


def test_an_export_does_not_overwrite_edits(exported):
    root, book = exported
    clean = book.read_bytes()
    for change, told in (
        (lambda wb: put(wb["facts"], "E3", "edited"), "facts: insurance-us-r02-f1"),
        (lambda wb: wb.create_sheet("my notes"), "'my notes'"),
        (lambda wb: put(wb["facts"], "P1", "mine"), "'mine'"),
        (lambda wb: wb["facts"].delete_rows(5), "facts: "),
        (lambda wb: setattr(wb["facts"]["H3"], "value", 5), "facts!H3"),
    ):
        book.write_bytes(clean)
        edit(book, change)
        held = book.read_bytes()
        with pytest.raises(InputError) as caught:
            sheet_out(CELL, out=book, package=root)
        assert caught.value.code == "U145" and told in caught.value.message and book.read_bytes() == held
        sheet_out(CELL, out=book, package=root, overwrite=True)
        assert not sheet_in(book, package=root).findings
    other = book.parent / "other.xlsx"
    openpyxl.Workbook().save(other)
    held = other.read_bytes()
    for overwrite in (False, True):
        with pytest.raises(InputError, match="no workbook of"):
            sheet_out(CELL, out=other, package=root, overwrite=overwrite)
    assert other.read_bytes() == held


# Files that are no such workbook


def archive_of(path: Path, **parts: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml").replace("_bin", ".bin"), content)


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 1000
TYPES = b"<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'></Types>"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.xlsx", b"", "no XLSX workbook"),
        ("a.csv", b"id,cell\n", "edited in place"),
        ("a.xls", OLE, "old kind"),
        ("a.xlsx", OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        ("a.xlsx", b"PK\x03\x04" + b"\x00" * 100, "no XLSX workbook"),
        ("a.ods", {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}, "OpenDocument"),
        ("a.zip", {"x": b"y"}, "no XLSX workbook"),
        ("a.xlsm", {"[Content_Types]_xml": b"<x>application/vnd.ms-excel.sheet.macroEnabled.main+xml</x>"}, "macros"),
        ("a.xlsx", {"[Content_Types]_xml": TYPES, "xl__vbaProject_bin": b"x"}, "macros"),
        ("a.xlsb", {"[Content_Types]_xml": TYPES, "xl__workbook_bin": b"x"}, "binary"),
        ("a.xlsx", {"[Content_Types]_xml": TYPES}, "cannot be read"),
        ("a.xlsx", {"[Content_Types]_xml": b"<Types"}, "cannot be read"),
    ],
)
def test_files_of_other_kinds_are_refused_with_the_mend(exported, name, content, told):
    root, book = exported
    path = book.parent / name
    if isinstance(content, dict):
        archive_of(path, **content)
    else:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        sheet_in(path, package=root, check=True)
    assert told in str(caught.value) and caught.value.code == "U140" and caught.value.mend


def test_a_workbook_of_somebody_else(exported):
    root, book = exported
    other = book.parent / "other.xlsx"
    openpyxl.Workbook().save(other)
    with pytest.raises(InputError, match="not made by"):
        sheet_in(other, package=root)
    with pytest.raises(InputError, match="not of 'banking-vn'"):
        sheet_in(book, package=root, cell="banking-vn")
    vn = one_cell(book.parent / "vn", "insurance-vn")
    with pytest.raises(InputError, match="does not have"):
        sheet_in(book, package=vn, check=True)
    for missing in (book.parent / "nowhere.xlsx", book.parent):
        with pytest.raises(InputError) as caught:
            sheet_in(missing, package=root)
        assert caught.value.code == "U140"


def test_bombs_are_refused_before_they_are_unpacked(exported, monkeypatch):
    root, book = exported
    bomb = book.parent / "bomb.xlsx"
    shutil.copyfile(book, bomb)
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("xl/media/x", b"\0" * (opening.MAX_UNPACKED + 1))
    assert bomb.stat().st_size < opening.MAX_FILE
    with pytest.raises(InputError) as caught:
        sheet_in(bomb, package=root, check=True)
    assert caught.value.code == "U141" and "unpacked" in caught.value.message

    shutil.copyfile(book, bomb)
    with zipfile.ZipFile(bomb, "a") as archive:
        for number in range(opening.MAX_PARTS):
            archive.writestr(f"xl/media/{number}", b"")
    with pytest.raises(InputError, match="parts"):
        sheet_in(bomb, package=root, check=True)

    shutil.copyfile(book, bomb)
    edit(bomb, lambda wb: put(wb["facts"], "XFD1048576", "far out"))
    with pytest.raises(InputError, match="far beyond its table"):
        sheet_in(bomb, package=root, check=True)

    monkeypatch.setattr(opening, "MAX_FILE", 1000)
    with pytest.raises(InputError, match="bytes"):
        sheet_in(book, package=root, check=True)


ALL = "A1:XFD1048576"


@pytest.mark.parametrize(
    ("part", "before", "bomb"),
    [
        ("xl/worksheets/sheet2.xml", "<dataValidations", f'<mergeCells><mergeCell ref="{ALL}"/></mergeCells>'),
        ("xl/worksheets/sheet2.xml", "<dataValidations", '<mergeCells><mergeCell ref="A:XFD"/></mergeCells>'),
        ("xl/worksheets/sheet2.xml", "<pageMargins", f'<hyperlinks><hyperlink ref="{ALL}"/></hyperlinks>'),
        ("xl/comments/comment1.xml", "</commentList>", f'<comment ref="{ALL}" authorId="0"><text/></comment>'),
    ],
)
def test_ranges_that_would_fill_the_memory_are_refused(exported, part, before, bomb):
    root, book = exported
    with zipfile.ZipFile(book) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert before.encode() in parts[part]
    parts[part] = parts[part].replace(before.encode(), (bomb + before).encode())
    with zipfile.ZipFile(book, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(InputError) as caught:
        sheet_in(book, package=root, check=True)
    assert caught.value.code == "U141"


def test_entities_are_refused(exported):
    root, book = exported
    with zipfile.ZipFile(book) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    for part in ("xl/worksheets/sheet2.xml", "xl/workbook.xml", "[Content_Types].xml", "xl/styles.xml"):
        with zipfile.ZipFile(book, "w") as archive:
            for name, content in parts.items():
                head, sep, rest = content.partition(b"?>")
                body = (head + sep + laughs + rest) if sep else laughs + content
                archive.writestr(name, body if name == part else content)
        with pytest.raises(InputError, match=r"Entities|cannot be read"):
            sheet_in(book, package=root, check=True)


@given(st.data())
@settings(max_examples=14)
def test_a_damaged_file_never_ends_in_a_traceback(small, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("d")
    root, book = Path(shutil.copytree(small, folder / "package")), folder / "cell.xlsx"
    sheet_out(CELL, out=book, package=root)
    with zipfile.ZipFile(book) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = data.draw(st.sampled_from(sorted(parts)))
    content = bytearray(parts[name])
    kind = data.draw(st.sampled_from(["cut", "drop", "flip", "part"]))
    if kind == "cut":
        content = content[: data.draw(st.integers(0, len(content)))]
    elif kind == "drop":
        start = data.draw(st.integers(0, max(len(content) - 1, 0)))
        del content[start : start + data.draw(st.integers(1, 200))]
    elif kind == "flip" and content:
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with zipfile.ZipFile(book, "w") as archive:
        for part, held in parts.items():
            if part != name or kind != "part":
                archive.writestr(part, bytes(content) if part == name else held)
    before = files(root)
    try:
        result = sheet_in(book, package=root)
    except InputError as error:
        assert error.code in ("U140", "U141", "U142") and error.mend
    else:
        # What can be read is either as it was, or told; a whole text that became another one is an edit.
        assert result.written or files(root) == before


def test_reading_tables_that_cannot_be_exported(package_copy, tmp_path):
    table = Sheet(package_copy, "requirements")
    table.save(table.set(0, duty_en="w" * 33_000))
    with pytest.raises(InputError) as caught:
        sheet_out(CELL, out=tmp_path / "x.xlsx", package=package_copy)
    assert caught.value.code == "U144" and "duty_en of insurance-us-r01" in caught.value.message
    file = package_copy / table.file
    file.write_bytes(file.read_bytes() + b"one,cell\n")
    for call in (lambda: sheet_out(CELL, out=tmp_path / "x.xlsx", package=package_copy),):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "U143" and "R007" in caught.value.message
    with pytest.raises(InputError, match="no cell"):
        sheet_out("nowhere", package=package_copy)
    with pytest.raises(InputError, match=r"\.xlsx"):
        sheet_out(CELL, out=tmp_path / "x.ods", package=ROOT)
    assert not list(tmp_path.glob("*.xlsx"))


def test_the_hidden_sheet_may_be_lost_while_the_package_is_the_same(exported):
    root, book = exported

    def change(workbook: Any) -> None:
        workbook.remove(workbook[BASE])
        put(workbook["requirements"], at(workbook["requirements"], "insurance-us-r06", "topic"), "Another topic")

    edit(book, change)
    result = sheet_in(book, package=root)
    assert result.ok and result.changes["requirements"].changed == {"insurance-us-r06": ["topic"]}


# The command


def test_the_command_in_a_package_of_ones_own(exported):
    root, _ = exported
    done = regatta("sheet", "out", CELL, cwd=root, COLUMNS="40")
    assert done.returncode == 0, done.stderr
    book = root / f"{CELL}.xlsx"
    edit(book, lambda wb: put(wb["facts"], at(wb["facts"], "insurance-us-r05-f2", "unit"), "days"))
    done = regatta("sheet", "in", book.name, cwd=root, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 1 and "S003" in done.stdout and "facts!" in done.stdout and not done.stderr
    done = regatta("sheet", "in", book.name, "--check", "--format", "json", cwd=root)
    value = json.loads(done.stdout)
    assert done.returncode == 1 and value["ok"] is False and value["findings"][0]["address"].startswith("facts!")
    edit(book, lambda wb: put(wb["facts"], at(wb["facts"], "insurance-us-r05-f2", "unit"), "day"))
    edit(book, lambda wb: put(wb["requirements"], at(wb["requirements"], "insurance-us-r06", "topic"), "Điều mới"))
    done = regatta("sheet", "in", book.name, cwd=root, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    told = done.stdout
    assert done.returncode == 0 and "~ insurance-us-r06: topic" in told and "written:" in told
    assert "to be read again against the law (1 requirement; regatta audit todo --unread): insurance-us-r06" in told
    done = regatta("sheet", "in", book.name, cwd=root)
    assert done.stdout.strip().endswith("nothing to bring back; 1 finding was there before")


def test_the_command_writes_to_no_package_that_nobody_named(exported, tmp_path):
    root, book = exported
    done = regatta("sheet", "in", str(book), cwd=tmp_path / "..")
    assert done.returncode == 2 and "--package" in done.stderr and "Traceback" not in done.stderr
    done = regatta("sheet", "in", str(book), "--package", str(root), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
