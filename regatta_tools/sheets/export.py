"""``regatta sheet out``: a cell of the package as one Excel workbook."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.files import replace_file
from regatta_tools.sheets.bring_back import is_open_elsewhere, require_whole
from regatta_tools.sheets.grid import HEADER_KEY, OURS, Note, header_note, origin_of, read_book
from regatta_tools.sheets.layout import (
    BASE,
    COVER,
    EXPLAINED,
    LISTS,
    LOST,
    MAX_UNITS,
    READ_ONLY,
    CellTable,
    Origin,
    cover_facts,
    escaped,
    key_columns,
    key_text,
    keyed,
    looked_up,
    units,
)
from regatta_tools.sheets.merge import merge
from regatta_tools.sheets.opening import open_workbook, refused
from regatta_tools.tables.model import enum_values, load_model
from regatta_tools.tables.package import Package, locate, read

_WIDEST, _NARROWEST, _HIGHEST = 60, 9, 409  # widths in characters, height in points (Excel's most)
_HEAD, _SHADE, _QUIET = "1F3A5F", "E8EEF5", "F5F5F5"
_LAST_ROW = 1_048_576


@dataclass
class Exported:
    """What :func:`sheet_out` wrote: the file, rows by table, and the notes carried over from an older workbook."""

    file: Path
    cell: str
    tables: dict[str, int] = field(default_factory=dict)
    notes: int = 0
    lost: int = 0
    open_elsewhere: bool = False


def sheet_out(cell: str, *, out: Path | str | None = None, package: Any = None, overwrite: bool = False) -> Exported:
    """Write the tables of a cell as one workbook and return what was written.

    ``out`` is the file (default: ``CELL.xlsx`` here). Where it is there already it must be a workbook of
    the same cell; people's notes on its cells are carried over, by record and column. Edits in it that
    are not in the package, and sheets or columns of its owner, stop the export unless ``overwrite``
    says that they may go.

    Raises :class:`InputError` for an unknown cell (U103), a table that could not be read (U143), a text
    too long for a spreadsheet (U144), and a file that must not be overwritten (U145).
    """
    held = read(locate(package))
    record = next((r for r in held.table("cells") if r.key == cell), None)
    if record is None:
        names = ", ".join(r.key for r in held.table("cells")) or "(none)"
        raise InputError(f"the package has no cell {cell!r}", code="U103", mend=f"use one of: {names}")
    tables = require_whole(held, cell)
    _see_that_it_fits(tables)
    path = Path(out) if out is not None else Path(f"{cell}.xlsx")
    if path.suffix.lower() != ".xlsx":
        raise refused(path, "a workbook needs the ending .xlsx", f"-o {path.with_suffix('.xlsx')}", "U145")
    notes = _notes_of(path, held, cell, tables, overwrite) if path.exists() else []

    shown = looked_up(held)
    contents = {t.file: (held.root / t.file).read_bytes() for t in (*tables.values(), *shown.values())}
    origin = Origin.of(cell, load_model()["version"], tables | shown, contents)
    workbook = _Workbook(tables, shown, notes)
    workbook.cover(origin, record["title"], record["languages"])
    workbook.sheets()
    lost = workbook.lost_notes()
    workbook.lists()
    workbook.base(origin)
    stream = io.BytesIO()
    workbook.book.save(stream)
    elsewhere = is_open_elsewhere(path)
    replace_file(path, stream.getvalue())
    counts = {name: len(t.rows) for name, t in tables.items()}
    return Exported(path, cell, counts, len(notes), lost, elsewhere)


def _see_that_it_fits(tables: dict[str, CellTable]) -> None:
    for table in tables.values():
        for key, row in keyed(table.spec, table.rows).items():
            for column, text in zip(table.spec.columns, row, strict=True):
                if units(escaped(text)) >= MAX_UNITS:
                    what = f"{column} of {key_text(key)} is too long for a spreadsheet, which cuts at {MAX_UNITS:,}"
                    mend = "edit this table as CSV, or say it in fewer words"
                    raise InputError(what, code="U144", place=table.file, mend=mend)


def _notes_of(path: Path, held: Package, cell: str, tables: dict[str, CellTable], overwrite: bool) -> list[Note]:
    """The notes in a workbook that is to be overwritten, once nothing else in it can be lost."""
    opened, threads = open_workbook(path)
    origin = origin_of(opened)
    if origin is None or origin.cell != cell:
        what = "this is no workbook of `regatta sheet out`" if origin is None else f"it is of the cell {origin.cell!r}"
        raise refused(path, f"the file is there already, and {what}", "give -o another file", "U145")
    known = {n: t for n, t in tables.items() if n in origin.tables}
    specs = [t.spec for t in (*known.values(), *looked_up(held).values())]
    book = read_book(path.name, opened, threads, origin, specs)
    if not overwrite:
        damage = [f.address for f in book.findings if f.finding.severity == "error"]
        edits = [f"{name}: {key}" for name, t in known.items() for key in _edits(t, book, name)]
        if damage or edits or book.foreign:
            listed = [*damage, *edits, *book.foreign]
            more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
            what = "the workbook holds what is not in the package: " + ", ".join(listed[:5]) + more
            mend = f"regatta sheet in {path} first; or -o another file; or --overwrite drops it (notes are kept)"
            raise refused(path, what, mend, "U145")
    return book.notes


def _edits(table: CellTable, book: Any, name: str) -> list[str]:
    """Records that the workbook holds otherwise than the package, by an edit in the workbook."""
    grid = book.grids.get(name)
    if grid is None or not grid.usable:
        return []
    base = book.origin.rows.get(name, {}) if book.origin.rows is not None else {}
    merged = merge(table, grid, base)
    return [*merged.added, *merged.changed, *merged.removed, *(key for _, key, _ in merged.conflicts)]


class _Workbook:
    """The workbook in the making."""

    def __init__(self, tables: dict[str, CellTable], shown: dict[str, CellTable], notes: list[Note]) -> None:
        from openpyxl import Workbook

        self.book = Workbook()
        self.tables, self.shown = tables, shown
        self.by_class = {t.spec.class_name: name for name, t in (tables | shown).items()}
        self.notes = {(n.sheet, n.key, n.column): n for n in notes if n.key and n.column}
        self.unplaced = [n for n in notes if not (n.key and n.column)]
        self.enums: dict[str, str] = {}

    # -- the first sheet --

    def cover(self, origin: Origin, title: str, languages: str) -> None:
        from openpyxl.styles import Alignment, Font, PatternFill

        sheet = self.book.active
        sheet.title = COVER
        wrap = Alignment(wrap_text=True, vertical="top")
        widths = (22, 24, 72)
        for letter, width in zip("ABC", widths, strict=True):
            sheet.column_dimensions[letter].width = width
        texts = [f"REGATTA: {title}", ""]
        for language in ("vi", "en") if languages.startswith("vi") else ("en",):
            texts += [*EXPLAINED[language], ""]
        for number, text in enumerate(texts, 1):
            _put(sheet.cell(number, 1), text).alignment = wrap
            sheet.merge_cells(start_row=number, end_row=number, start_column=1, end_column=3)
            _set_height(sheet, number, [text], [sum(widths)])
        sheet["A1"].font = Font(name="Calibri", bold=True, size=14)
        sheet.row_dimensions[1].height = 22
        facts = cover_facts(origin, title, self.tables | self.shown)
        head = facts[4]
        for number, line in enumerate(facts, len(texts) + 1):
            for column, text in enumerate(line, 1):
                cell = _put(sheet.cell(number, column), text)
                if line == head or (column == 1 and len(line) == 2):
                    cell.font = Font(name="Calibri", bold=True)
                if line == head:
                    cell.fill = PatternFill("solid", fgColor=_SHADE)
        sheet.page_setup.fitToHeight = 0
        sheet.sheet_properties.pageSetUpPr.fitToPage = True
        _protect(sheet)

    # -- the tables --

    def sheets(self) -> None:
        for name, table in (self.tables | self.shown).items():
            sheet = self.book.create_sheet(name)
            self._fill(sheet, table)
            if name in READ_ONLY:
                _protect(sheet)
                sheet.sheet_properties.tabColor = "999999"
            else:
                self._validate(sheet, table)

    def _fill(self, sheet: Any, table: CellTable) -> None:
        from openpyxl.comments import Comment
        from openpyxl.styles import Alignment, Font, PatternFill
        from openpyxl.utils import get_column_letter

        spec = table.spec
        wrap = Alignment(wrap_text=True, vertical="top")
        shaded = {"cell", *key_columns(spec)}
        shade = PatternFill("solid", fgColor=_QUIET if spec.name in READ_ONLY else _SHADE)
        keys = [key_text(key) for key in keyed(spec, table.rows)]
        for at, column in enumerate(spec.columns, 1):
            texts = [row[at - 1] for row in table.rows]
            letter = get_column_letter(at)
            about = sheet.column_dimensions[letter]
            about.width = _width(column, texts)
            # New rows take the format of the column: text, so that nothing typed there is converted.
            about.number_format, about.alignment = "@", wrap
            head = _put(sheet.cell(1, at), column)
            head.font = Font(name="Calibri", bold=True, color="FFFFFF")
            head.fill = PatternFill("solid", fgColor=_HEAD)
            head.alignment = Alignment(vertical="top")
            head.comment = Comment(self._head_note(spec, column), OURS, height=150, width=340)
            for number, text in enumerate(texts, 2):
                cell = _put(sheet.cell(number, at), text)
                cell.alignment = wrap
                if column in shaded or spec.name in READ_ONLY:
                    cell.fill = shade
                note = self.notes.pop((spec.name, keys[number - 2], column), None)
                if note is not None:
                    cell.comment = Comment(escaped(note.text), note.author or " ", height=120, width=260)
        widths = [sheet.column_dimensions[get_column_letter(at)].width for at in range(1, len(spec.columns) + 1)]
        for number, row in enumerate(table.rows, 2):
            _set_height(sheet, number, row, widths)
        sheet.freeze_panes = "B2" if spec.identifier else "A2"
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(spec.columns))}{len(table.rows) + 1}"
        sheet.print_title_rows = "1:1"
        sheet.page_setup.orientation, sheet.page_setup.fitToHeight = "landscape", 0
        sheet.sheet_properties.pageSetUpPr.fitToPage = True

    def _head_note(self, spec: Any, column: str) -> str:
        """The description of a column, and below it what people noted there."""
        note = self.notes.pop((spec.name, HEADER_KEY, column), None)
        ours = header_note(spec, column)
        return escaped(f"{ours}\n\n{note.text}" if note else ours)

    # -- drop-downs --

    def _validate(self, sheet: Any, table: CellTable) -> None:
        from openpyxl.utils import get_column_letter
        from openpyxl.worksheet.datavalidation import DataValidation

        for at, (column, about) in enumerate(table.spec.fields.items(), 1):
            letter = get_column_letter(at)
            rule = self._validation(about, f"{letter}2")
            if rule is None:
                continue
            validation = DataValidation(**rule, allow_blank=not about["required"], showErrorMessage=True)
            validation.errorTitle = column
            validation.error = _said(about)
            validation.add(f"{letter}2:{letter}{_LAST_ROW}")
            sheet.add_data_validation(validation)

    def _validation(self, about: dict[str, Any], first: str) -> dict[str, str] | None:
        kind = about["kind"]
        if kind == "enum":
            return {"type": "list", "formula1": self._enum(about["enum"])}
        if kind == "boolean":
            return {"type": "list", "formula1": '"true,false"'}
        if kind == "ref" and about["ref"] in self.by_class:
            # The range grows with the rows of the other sheet.
            ids = f"{self.by_class[about['ref']]}!$A"
            return {"type": "list", "formula1": f"OFFSET({ids}$2,0,0,MAX(1,COUNTA({ids}:$A)-1),1)"}
        if kind == "date":
            shape = f'LEN({first})=10,MID({first},5,1)="-",MID({first},8,1)="-",ISNUMBER(DATEVALUE({first}))'
            return {"type": "custom", "formula1": f"AND({shape})"}
        return None

    def _enum(self, name: str) -> str:
        """The range of the values of an enumeration on the sheet ``lists``."""
        if name not in self.enums:
            from openpyxl.utils import get_column_letter

            letter = get_column_letter(len(self.enums) + 1)
            self.enums[name] = f"{LISTS}!${letter}$2:${letter}${len(enum_values(name)) + 1}"
        return self.enums[name]

    def lists(self) -> None:
        from openpyxl.styles import Font

        sheet = self.book.create_sheet(LISTS)
        for column, name in enumerate(self.enums, 1):
            values = enum_values(name)
            for number, text in enumerate((name, *values), 1):
                _put(sheet.cell(number, column), text)
            sheet.cell(1, column).font = Font(name="Calibri", bold=True)
            sheet.column_dimensions[sheet.cell(1, column).column_letter].width = _width(name, list(values))
        sheet.freeze_panes = "A2"
        sheet.sheet_properties.tabColor = "999999"
        _protect(sheet)

    # -- what else there is --

    def lost_notes(self) -> int:
        """Notes whose record or column is gone, on a sheet of their own. Returns how many there are."""
        from openpyxl.styles import Alignment

        left = [*self.unplaced, *self.notes.values()]
        if left:
            sheet = self.book.create_sheet(LOST)
            lines = [["sheet", "record", "column", "author", "note"]]
            lines += [[n.sheet or n.address, n.key, n.column, n.author, n.text] for n in left]
            for number, line in enumerate(lines, 1):
                for column, text in enumerate(line, 1):
                    _put(sheet.cell(number, column), text).alignment = Alignment(wrap_text=True, vertical="top")
            for letter, width in zip("ABCDE", (20, 28, 18, 18, 70), strict=True):
                sheet.column_dimensions[letter].width = width
        return len(left)

    def base(self, origin: Origin) -> None:
        sheet = self.book.create_sheet(BASE)
        for number, line in enumerate(origin.lines(), 1):
            for column, text in enumerate(line, 1):
                _put(sheet.cell(number, column), text)
        sheet.sheet_state = "veryHidden"


@cache
def _estimated_height() -> type:
    """A height that the spreadsheet may change: openpyxl would fix every height that it is given."""
    from openpyxl.worksheet.dimensions import RowDimension

    return type("Estimated", (RowDimension,), {"customHeight": False})


def _set_height(sheet: Any, number: int, texts: Iterable[str], widths: Iterable[float]) -> None:
    """Give a row the height of its wrapped text; Excel fits it anew when the row is edited."""
    lines = max(
        sum(math.ceil(max(len(line), 1) / width) for line in text.split("\n"))
        for text, width in zip(texts, widths, strict=True)
    )
    height = min(_HIGHEST, 15 * lines)
    sheet.row_dimensions[number] = _estimated_height()(sheet, index=number, ht=height)


def _put(cell: Any, text: str) -> Any:
    """Write text as text: never a number, date or formula, whatever it looks like."""
    if text:
        cell.value = escaped(text)
        # openpyxl takes "=x" for a formula and "#REF!" for an error value.
        cell.data_type = "s"
        if text[0] in "=+-@":
            cell.quotePrefix = True
    cell.number_format = "@"
    return cell


def _protect(sheet: Any) -> None:
    """Against slips, not against people: there is no password."""
    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
    sheet.protection.autoFilter = sheet.protection.sort = False


def _width(name: str, texts: list[str]) -> float:
    """Wide enough for short texts and for the name of the column with its filter button; longer texts wrap."""
    longest = max((len(line) for text in texts for line in text.split("\n")), default=0)
    return max(_NARROWEST, len(name) + 4, _WIDEST if longest > 120 else min(longest + 2, 36))


def _said(about: dict[str, Any]) -> str:
    """What a spreadsheet says of a value that does not fit (Excel shows at most 225 characters)."""
    if about["kind"] == "date":
        text = "Write the date as text: 2026-11-30."
    elif about["kind"] == "ref":
        text = "Take a record that the other sheet lists, or add it there first."
    else:
        text = "Take a value of the list."
    return f"{text} {about['description']}"[:225]
