"""A workbook as text cells with addresses, and the damage that spreadsheets do to them.

Nothing is guessed: a cell that is no longer text (a number, a date, a formula) is a finding, because
the text that stood there is lost: 1005.10 has become 1005.1, and 3-4 the fourth of March.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from openpyxl.utils import get_column_letter

from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rule
from regatta_tools.sheets.layout import (
    BASE,
    COVER,
    LOST,
    MAX_UNITS,
    OTHER_SHEETS,
    Origin,
    described,
    escaped,
    key_columns,
    key_text,
    origin_from_cover,
    unescaped,
    units,
)
from regatta_tools.sheets.opening import Threads
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import TableSpec
from regatta_tools.text import shown

#: The author of notes that REGATTA itself writes on headers.
OURS = "REGATTA"
#: Stands for the key of a note on a header.
HEADER_KEY = "(header)"
_ERRORS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#SPILL!", "#CALC!", "Err:502")


@dataclass(frozen=True)
class SheetFinding:
    """A finding with the address in the workbook (``requirements!E7``), and whether it was there before."""

    finding: Finding
    address: str
    before: bool = False

    def as_dict(self) -> dict[str, Any]:
        return self.finding.as_dict() | {"address": self.address, "before": self.before}


@dataclass(frozen=True)
class Note:
    """A note or comment that somebody put on a cell of a record. ``address`` is empty for one without a row."""

    sheet: str
    key: str
    column: str
    author: str
    text: str
    address: str = ""

    def as_dict(self) -> dict[str, str]:
        return dict(self.__dict__)


@dataclass
class SheetRow:
    """One row: its number in the sheet, the text of each column, and the columns whose text is lost."""

    number: int
    cells: dict[str, str]
    damaged: set[str] = field(default_factory=set)


@dataclass
class Grid:
    """One sheet read as a table. ``letters`` says where a column stands; ``usable`` is false without its header."""

    name: str
    letters: dict[str, str] = field(default_factory=dict)
    rows: list[SheetRow] = field(default_factory=list)
    usable: bool = False
    foreign: list[str] = field(default_factory=list)

    def address(self, row: int, column: str) -> str:
        return f"{self.name}!{self.letters.get(column, 'A')}{row}"


@dataclass
class Book:
    """A workbook as read. ``foreign`` names sheets and columns that are none of ours."""

    file: str
    origin: Origin
    grids: dict[str, Grid] = field(default_factory=dict)
    findings: list[SheetFinding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def say(self, code: str, address: str, message: str, record: str = "", mend: str = "") -> None:
        self.findings.append(
            SheetFinding(rule(code).finding(message, file=self.file, record=record, mend=mend), address)
        )


def origin_of(workbook: Any) -> Origin | None:
    """The state that a workbook came from: from its hidden sheet, or else from its first one."""
    for name, read in ((BASE, Origin.from_lines), (COVER, origin_from_cover)):
        if name in workbook.sheetnames and (origin := read(_lines(workbook[name]))) is not None:
            return origin
    return None


def read_book(file: str, workbook: Any, threads: Threads, origin: Origin, specs: Iterable[TableSpec]) -> Book:
    """Read the sheets of the tables in ``specs``, and keep what is wrong with them as findings."""
    book = Book(file, origin)
    wanted = {spec.name: spec for spec in specs}
    for name, spec in wanted.items():
        if name in workbook.sheetnames:
            book.grids[name] = _read_grid(book, workbook[name], spec)
        else:
            like = next((n for n in workbook.sheetnames if n.strip().casefold() == name), None)
            hint = f"; is it the sheet {shown(like)}?" if like else ""
            book.say("X001", name, f"there is no sheet {name!r}{hint}")
    for name in workbook.sheetnames:
        if name not in wanted and name not in OTHER_SHEETS:
            book.say("X004", name, f"the sheet {shown(name)} holds no table of the cell")
            book.foreign.append(f"the sheet {shown(name)}")
    for grid in book.grids.values():
        book.foreign += grid.foreign
    _read_notes(book, workbook, threads, wanted)
    return book


# -- cells -------------------------------------------------------------------------------------------


def _cell_text(cell: Any) -> tuple[str, str, str]:
    """The text of a cell, and where it is not text the rule code and what it is."""
    value, kind = cell.value, cell.data_type
    if value is None:
        return "", "", ""
    if kind == "f":
        formula = str(getattr(value, "text", value))
        return formula, "X006", f"the formula {shown(formula)}"
    if kind == "e" or value in _ERRORS:
        return str(value), "X007", f"the error value {value}"
    if kind == "b":
        return str(value).lower(), "X005", f"the truth value {str(value).upper()}"
    if kind == "d":
        return str(value).removesuffix(" 00:00:00"), "X005", f"the date {str(value).removesuffix(' 00:00:00')}"
    if kind == "n":
        return str(value), "X005", f"the number {value}"
    return unescaped(str(value)), "", ""


def _lines(sheet: Any) -> list[list[str]]:
    """All rows of a sheet as texts, without the empty cells behind the last one."""
    lines = []
    for row in sheet.iter_rows():
        line = [_cell_text(cell)[0] for cell in row]
        while line and not line[-1]:
            line.pop()
        if line:
            lines.append(line)
    return lines


def _read_grid(book: Book, sheet: Any, spec: TableSpec) -> Grid:
    grid = Grid(spec.name)
    rows = list(sheet.iter_rows())
    below = next((i for i, row in enumerate(rows[1:20], 2) if _has_header(row, spec)), 0)
    if below and not _has_header(rows[0], spec):
        what, mend = f"the header stands in row {below}, not in the first", "delete the rows above the header"
        book.say("X002", f"{spec.name}!A{below}", what, mend=mend)
        return grid
    if not _read_header(book, grid, [_cell_text(cell)[0].strip() for cell in rows[0]], spec):
        return grid
    at_letter = {get_column_letter(cell.column): i for i, cell in enumerate(rows[0])}
    positions = {column: at_letter[letter] for column, letter in grid.letters.items()}
    others = set(range(len(rows[0]))) - set(positions.values())
    gap = False
    strays: dict[str, list[int]] = {}
    for number, row in enumerate(rows[1:], 2):
        for i in others:
            if _cell_text(row[i])[0]:
                strays.setdefault(get_column_letter(row[i].column), []).append(number)
        read = {column: _cell_text(row[i]) for column, i in positions.items()}
        if not any(text for text, _, _ in read.values()):
            gap = True
            continue
        kept = SheetRow(number, {column: text for column, (text, _, _) in read.items()})
        grid.rows.append(kept)
        key = _key_of(kept, spec)
        if gap:
            book.say("X012", f"{spec.name}!A{number}", "an empty row stands above this one", key)
            gap = False
        for column, (text, code, what) in read.items():
            if code:
                kept.damaged.add(column)
                book.say(code, grid.address(number, column), f"{column} holds {what}, not text", key)
            elif units(escaped(text)) >= MAX_UNITS:
                kept.damaged.add(column)
                what = f"{column} fills a cell to the last character ({MAX_UNITS:,})"
                book.say("X013", grid.address(number, column), what, key)
    _say_strays(book, grid, strays, rows[0])
    _say_merged_and_hidden(book, grid, sheet)
    return grid


def _key_of(row: SheetRow, spec: TableSpec) -> str:
    return key_text(tuple(row.cells[c] for c in key_columns(spec)))


def _has_header(row: Any, spec: TableSpec) -> bool:
    return set(spec.columns) <= {_cell_text(cell)[0].strip() for cell in row}


def _read_header(book: Book, grid: Grid, header: list[str], spec: TableSpec) -> bool:
    """Find the columns by name; false where one is missing or stands twice, as no cell could be trusted then."""
    missing = [c for c in spec.columns if c not in header]
    twice = [c for c in spec.columns if header.count(c) > 1]
    unknown = [h for h in header if h and h not in spec.columns]
    if missing or twice:
        parts = [f"{what}: {', '.join(names)}" for what, names in (("missing", missing), ("twice", twice)) if names]
        if missing and unknown:
            parts.append("unknown: " + ", ".join(shown(h, 40) for h in unknown[:10]))
        mend = "make the first row exactly: " + ", ".join(spec.columns)
        book.say("X002", f"{spec.name}!A1", "the header is not that of the table (" + "; ".join(parts) + ")", mend=mend)
        return False
    grid.letters = {c: get_column_letter(header.index(c) + 1) for c in spec.columns}
    grid.usable = True
    order = [h for h in header if h in spec.columns]
    if order != spec.columns:
        moved = next(i for i, (is_, was) in enumerate(zip(order, spec.columns, strict=True)) if is_ != was)
        book.say("X003", grid.address(1, order[moved]), "the columns stand in another order; they are read by name")
    return True


def _say_strays(book: Book, grid: Grid, strays: dict[str, list[int]], header: Any) -> None:
    names = {get_column_letter(cell.column): _cell_text(cell)[0] for cell in header}
    for letter, name in names.items():
        rows = strays.get(letter, [])
        if letter in grid.letters.values() or (not rows and not name):
            continue
        called = f"the column {shown(name, 40)}" if name else "a column without a name"
        book.say("X004", f"{grid.name}!{letter}1", f"{called} is none of the table ({len(rows)} cells filled)")
        grid.foreign.append(f"{called} of {grid.name}")


def _say_merged_and_hidden(book: Book, grid: Grid, sheet: Any) -> None:
    for area in sorted(str(r) for r in sheet.merged_cells.ranges):
        book.say("X008", f"{grid.name}!{area}", "cells are merged: a spreadsheet keeps the first and drops the others")
    filled = {row.number for row in grid.rows}
    rows = sorted(n for n, about in sheet.row_dimensions.items() if about.hidden and n in filled)
    columns = sorted(letter for letter, about in sheet.column_dimensions.items() if about.hidden)
    for what, names in (("row", rows), ("column", columns)):
        if names:
            listed = ", ".join(map(str, names[:20])) + (", ..." if len(names) > 20 else "")
            book.say("X009", grid.name, f"{len(names)} {what}(s) hidden ({listed}); they are read all the same")


# -- notes -------------------------------------------------------------------------------------------


def _read_notes(book: Book, workbook: Any, threads: Threads, specs: dict[str, TableSpec]) -> None:
    for sheet in workbook.worksheets:
        if sheet.title == LOST:
            book.notes += [Note(*[*line, "", "", "", "", ""][:5]) for line in _lines(sheet)[1:]]
            continue
        grid = book.grids.get(sheet.title) or Grid(sheet.title)
        spec = specs.get(sheet.title)
        columns = {letter: column for column, letter in grid.letters.items()}
        keys = {row.number: _key_of(row, spec) for row in grid.rows} if spec else {}
        for row in sheet.iter_rows():
            for cell in row:
                found = threads.get((sheet.title, cell.coordinate))
                comment = getattr(cell, "comment", None)
                if not found and comment is None:
                    continue
                column = columns.get(get_column_letter(cell.column), "")
                author, text = _told(found) if found else (comment.author or "", unescaped(comment.text or ""))
                key = HEADER_KEY if cell.row == 1 and column else keys.get(cell.row, "")
                if key == HEADER_KEY and spec and not found:
                    text = _without_ours(text, author, spec, column, book.origin.schema)
                if text.strip():
                    book.notes.append(Note(sheet.title, key, column, author, text, f"{sheet.title}!{cell.coordinate}"))


def _told(thread: list[tuple[str, str]]) -> tuple[str, str]:
    """A thread as one note: who began it, and the text with the name before each answer."""
    author, first = thread[0]
    return author, "\n".join([first, *(f"{who}: {text}" for who, text in thread[1:])])


def _without_ours(text: str, author: str, spec: TableSpec, column: str, schema: str) -> str:
    """What people wrote in the note of a header, below the description that REGATTA put there."""
    ours = header_note(spec, column)
    if text.startswith(ours):
        return text.removeprefix(ours).strip()
    # The description of another version of the schema is ours too.
    older = author == OURS and schema != load_model()["version"] and text.startswith(f"{spec.name}.{column}")
    return "" if older else text


def header_note(spec: TableSpec, column: str) -> str:
    """The description of a column as REGATTA writes it on its header."""
    about = spec.fields[column]
    values = load_model()["enums"][about["enum"]]["values"] if about["kind"] == "enum" else {}
    return described(spec.name, column, about, values)
