"""The examples of rules on workbooks: what somebody did in one, in words that a browser shows, done here for true.

An example is a ``workbook.yaml``: a list of what was done to the workbook that ``regatta sheet out`` writes of the cell
``example-us`` of the base package, one verb an entry::

    - write: {sheet: facts, row: example-us-r01-f1, column: value, number: 15}

Rows are named by the first cell of the record, columns by their header, so that a new column of the schema changes
nothing here. The verbs are the functions below.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.comments import Comment
from openpyxl.styles import PatternFill

from regatta_tools.documents import read_document
from regatta_tools.sheets.bring_back import BroughtBack, sheet_in
from regatta_tools.sheets.export import sheet_out
from regatta_tools.sheets.layout import BASE
from regatta_tools.validation.examples import descriptor_text

CELL = "example-us"


def brought_back(example: Path, root: Path, exported: Path) -> BroughtBack:
    """Do what an example says to a copy of ``exported``, and ask what bringing it back to ``root`` would do."""
    book = root.parent / f"{root.name}.xlsx"
    workbook = openpyxl.load_workbook(exported)
    for entry in read_document(example).value:
        ((verb, what),) = entry.items()
        if verb == "in_the_package":
            in_the_package(root, **what)
        else:
            VERBS[verb](workbook, **what)
    workbook.save(book)
    return sheet_in(book, package=root, check=True)


def export(root: Path) -> Path:
    """The workbook that ``regatta sheet out`` writes of the cell of the package at ``root``."""
    return sheet_out(CELL, out=root.parent / "exported.xlsx", package=root).file


def in_the_package(root: Path, table: str, row: str, column: str, text: str) -> None:
    """Somebody else changes a cell of the package after the export."""
    path = root / "instruments" / CELL / f"{table}.csv"
    header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    next(r for r in rows if r[0] == row)[header.index(column)] = text
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    file = root / "datapackage.json"
    file.write_text(descriptor_text(json.loads(file.read_text(encoding="utf-8")), root), encoding="utf-8", newline="")


def _column(sheet: Any, column: str) -> int:
    return next(cell.column for cell in sheet[1] if cell.value == column)


def _row(sheet: Any, row: str) -> int:
    return next(cells[0].row for cells in sheet.iter_rows() if cells[0].value == row)


def _cell(workbook: Any, sheet: str, row: str, column: str) -> Any:
    page = workbook[sheet]
    return page.cell(_row(page, row), _column(page, column))


def write(workbook: Any, sheet: str, row: str, column: str, length: int = 0, **what: Any) -> None:
    """Write a ``text``, a ``number``, a ``formula`` or an ``error`` value; a text comes again up to a ``length``."""
    cell = _cell(workbook, sheet, row, column)
    ((kind, value),) = what.items()
    if kind == "text":
        cell.value = (value * (length // len(value) + 1))[:length] if length else value
        cell.data_type, cell.number_format = "s", "@"
    elif kind in ("number", "formula", "error"):
        cell.value = value
    else:
        raise ValueError(kind)


def write_header(workbook: Any, sheet: str, column: str, text: str) -> None:
    """Change the name of a column."""
    workbook[sheet].cell(1, _column(workbook[sheet], column)).value = text


def write_beside(workbook: Any, sheet: str, header: str, row: str, text: str) -> None:
    """Put a column of one's own beside the table."""
    page = workbook[sheet]
    at = page.max_column + 1
    for number, value in ((1, header), (_row(page, row), text)):
        page.cell(number, at).value = value
        page.cell(number, at).number_format = "@"


def comment(workbook: Any, sheet: str, row: str, column: str, text: str) -> None:
    """Put a note on a cell."""
    _cell(workbook, sheet, row, column).comment = Comment(text, "A reader")


def colour(workbook: Any, sheet: str, row: str, column: str) -> None:
    """Colour a cell."""
    _cell(workbook, sheet, row, column).fill = PatternFill("solid", fgColor="FFFF99")


def swap_columns(workbook: Any, sheet: str, columns: list[str]) -> None:
    """Let two columns change places, with their headers."""
    one, other = (_column(workbook[sheet], column) for column in columns)
    for cells in workbook[sheet].iter_rows():
        cells[one - 1].value, cells[other - 1].value = cells[other - 1].value, cells[one - 1].value


def swap_rows(workbook: Any, sheet: str, rows: list[str]) -> None:
    """Let two rows change places."""
    one, other = (_row(workbook[sheet], row) for row in rows)
    for a, b in zip(workbook[sheet][one], workbook[sheet][other]):
        a.value, b.value = b.value, a.value


def merge(workbook: Any, sheet: str, column: str, rows: list[str]) -> None:
    """Merge the cells of a column from one row to another."""
    page = workbook[sheet]
    column_at, (first, last) = _column(page, column), [_row(page, row) for row in rows]
    page.merge_cells(start_row=first, end_row=last, start_column=column_at, end_column=column_at)


def hide_row(workbook: Any, sheet: str, row: str) -> None:
    """Hide a row."""
    workbook[sheet].row_dimensions[_row(workbook[sheet], row)].hidden = True


def flatten_row(workbook: Any, sheet: str, row: str) -> None:
    """Make a row so low that one line of it shows."""
    workbook[sheet].row_dimensions[_row(workbook[sheet], row)].height = 12


def delete_row(workbook: Any, sheet: str, row: str) -> None:
    """Delete a row."""
    workbook[sheet].delete_rows(_row(workbook[sheet], row))


def empty_row_above(workbook: Any, sheet: str, row: str) -> None:
    """Put an empty row above a row."""
    workbook[sheet].insert_rows(_row(workbook[sheet], row))


def add_row(workbook: Any, sheet: str, **cells: str) -> None:
    """Write a record of one's own below the last one."""
    page = workbook[sheet]
    at = max(row[0].row for row in page.iter_rows() if row[0].value) + 1
    for column, text in cells.items():
        cell = page.cell(at, _column(page, column))
        cell.value, cell.data_type, cell.number_format = text, "s", "@"


def remove_sheet(workbook: Any, sheet: str) -> None:
    """Delete a sheet."""
    del workbook[sheet]


def move_sheet(workbook: Any, sheet: str, by: int) -> None:
    """Move a sheet among the others."""
    workbook.move_sheet(sheet, by)


def forget_the_export(workbook: Any) -> None:
    """Delete the hidden sheet that keeps the state that was exported."""
    del workbook[BASE]


VERBS: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (
        write, write_header, write_beside, comment, colour, swap_columns, swap_rows, merge, hide_row, flatten_row,
        delete_row, empty_row_above, add_row, remove_sheet, move_sheet, forget_the_export,
    )
}  # fmt: skip
