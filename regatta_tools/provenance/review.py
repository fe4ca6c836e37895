"""The review sheet: it carries citations to readers and their readings back, as CSV or as an Excel workbook.

Its passages come from the user's own texts and go into the sheet alone. It names item and passage by hash: what was
changed while the sheet was out is refused when it comes back, because the reader has read other words.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.provenance import checks
from regatta_tools.provenance.checks import Index
from regatta_tools.provenance.corpus import Corpus
from regatta_tools.provenance.outcomes import latest
from regatta_tools.provenance.readings import NewReading
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.package import Package, Record
from regatta_tools.tables.spreadsheet import neutral, restored
from regatta_tools.text import decode, shown

#: What the reader needs, then what the reader fills in.
GIVEN = ("citation", "requirement", "topic", "duty_en", "duty_vi", "actor", "applies_when", "role", "source", "number",
         "locator", "text", "text_date", "passage", "facts", "item_hash", "text_hash", "passage_hash")  # fmt: skip
FILLED = ("outcome", "reason_code", "reason", "evidence", "decision", "reader", "reader_kind", "date")
COLUMNS = (*GIVEN, *FILLED)
#: What comes back. ``citation`` and the hashes are given; the rest of what is given is not read again.
_BACK = ("citation", "item_hash", "passage_hash", *FILLED)
#: What comes back where it is there: the evidence for whoever takes the sheet back and holds no text.
_EVIDENCE = ("passage", "text_hash")
_CHOICES = {"outcome": "AuditOutcome", "reason_code": "AuditReason", "reader_kind": "LabellerKind"}
#: Characters that a cell of Excel holds; what is longer is cut and says so.
_CELL = 32_767
_WIDTHS = {"duty_en": 60, "duty_vi": 60, "passage": 90, "facts": 50, "reason": 50}


#: Which citations go into a sheet: without a reading that counts by a person, or by anybody, or all of them.
NO_PERSON, UNREAD, ALL = "no-person", "unread", "all"


def todo(
    package: Package, corpus: Corpus | None, *, cells: Iterable[str] = (), requirements: Iterable[str] = (),
    which: str = NO_PERSON,
) -> bytes:  # fmt: skip
    """A review sheet in CSV of the citations without a reading by a person that counts (or as ``which`` says).

    Where a corpus is given the sheet has each passage, from the reader's own texts. Texts that a spreadsheet would run
    have an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for row in _rows(package, corpus, set(cells), set(requirements), which):
        writer.writerow({k: neutral(v) for k, v in row.items()})
    return out.getvalue().encode("utf-8")


def todo_workbook(
    package: Package, corpus: Corpus | None, *, cells: Iterable[str] = (), requirements: Iterable[str] = (),
    which: str = NO_PERSON,
) -> bytes:  # fmt: skip
    """The same as an Excel workbook, with lists to choose from. All cells are text, so nothing is run or converted."""
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    from regatta_tools.sheets.layout import escaped

    book = Workbook()
    sheet = book.active
    sheet.title = "review"
    rows = _rows(package, corpus, set(cells), set(requirements), which)
    for number, row in enumerate([{c: c for c in COLUMNS}, *rows], 1):
        for at, column in enumerate(COLUMNS, 1):
            cell = sheet.cell(number, at)
            if row.get(column):
                cell.value, cell.data_type = escaped(_cut(row[column])), "s"
                cell.quotePrefix = row[column][0] in "=+-@"
            cell.number_format = "@"
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    for at, column in enumerate(COLUMNS, 1):
        letter = get_column_letter(at)
        sheet.column_dimensions[letter].width = _WIDTHS.get(column, 22)
        sheet.cell(1, at).font = Font(bold=True)
        if column in _CHOICES:
            choice = DataValidation(type="list", formula1=f"={_listed(book, column)}", allow_blank=True)
            choice.add(f"{letter}2:{letter}{len(rows) + 1}")
            sheet.add_data_validation(choice)
    sheet.freeze_panes = "B2"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _cut(text: str) -> str:
    note = " [cut here: a cell of Excel holds no more; the CSV sheet has all of it]"
    return text if len(text.encode("utf-16-le")) // 2 <= _CELL else text[: _CELL // 2] + note


def _listed(book: Any, column: str) -> str:
    """Put the values of a column into the sheet of lists, and return where they stand."""
    sheet = book["lists"] if "lists" in book.sheetnames else book.create_sheet("lists")
    at = 1 if sheet.cell(1, 1).value is None else sheet.max_column + 1
    values = sorted(enum_values(_CHOICES[column]))
    for number, value in enumerate([column, *values], 1):
        sheet.cell(number, at, value)
    letter = sheet.cell(1, at).column_letter
    return f"lists!${letter}$2:${letter}${len(values) + 1}"


def wanted(
    package: Package, *, cells: Iterable[str] = (), requirements: Iterable[str] = (), which: str = NO_PERSON
) -> list[dict[str, str]]:
    """The rows of a review sheet without passages, by the names of :data:`COLUMNS`."""
    return _rows(package, None, set(cells), set(requirements), which)


def _rows(
    package: Package, corpus: Corpus | None, wanted: set[str], named: set[str], which: str
) -> list[dict[str, str]]:
    index = Index(package)
    found = []
    for requirement, citation in index.active_citations(wanted, named):
        read = checks.read_citation(index, citation, corpus)[0] if corpus else checks.Read(citation, None, None)
        current, _ = latest(index, citation, read.passage.sha256 if read.passage else "")
        persons = [r for r in current if r["reader_kind"] in ("human", "lawyer")]
        if which == ALL or not (current if which == UNREAD else persons):
            found.append(_row(index, requirement, read))
    return found


def _row(index: Index, requirement: Record, read: checks.Read) -> dict[str, str]:
    citation = read.citation
    source = index.sources[citation["source"]]
    facts = [
        f"{f.key}: {f['label']} {f['comparator']} {f['value']} {f['unit']} {f['day_count']}".strip()
        for f in index.facts.get(requirement.key, [])
        if f["citation"] == citation.key
    ]
    return {
        "citation": citation.key,
        "requirement": requirement.key,
        **{c: requirement[c] for c in ("topic", "duty_en", "duty_vi", "actor", "applies_when")},
        "role": citation["role"],
        "source": source["title"],
        "number": source["number"],
        "locator": citation["locator"],
        "text": read.text.file if read.text else "",
        "text_date": read.text.date if read.text else "",
        "passage": read.passage.normal if read.passage else "",
        "facts": "; ".join(facts),
        "item_hash": checks.item_hash(index, citation),
        "text_hash": read.text.sha256 if read.text and read.passage else "",
        "passage_hash": read.passage.sha256 if read.passage else "",
    }


# Back


def import_sheet(path: Path) -> list[NewReading]:
    """The filled rows of a review sheet, CSV or XLSX. Rows without an outcome are passed over.

    Raises :class:`InputError` for a file that is no such sheet, and for a row that is filled in without an outcome.
    """
    rows = _workbook_rows(path) if path.suffix.lower() == ".xlsx" else _csv_rows(path)
    header = rows[0] if rows else []
    missing = [c for c in _BACK if header.count(c) != 1]
    if missing:
        mend = "take the sheet that `regatta audit todo` writes, saved with commas and in UTF-8"
        raise _unusable(path, f"columns are missing, or there twice: {', '.join(missing)}", mend, 1)
    found = []
    for number, cells in enumerate(rows[1:], 2):
        if len(cells) > len(header) and any(cells[len(header) :]):
            raise _unusable(path, "the row has more cells than the header", "put a text with commas in quotes", number)
        row = dict(zip(header, [*cells, *[""] * (len(header) - len(cells))]))
        values = {k: row[k].strip() for k in _BACK} | {k: row.get(k, "").strip() for k in _EVIDENCE}
        values["passage"] = restored(values["passage"])
        if values["outcome"]:
            found.append(NewReading(row=number, **values))
        elif values["reason"] or values["reason_code"] or values["decision"]:
            raise _unusable(path, "the row says something and has no outcome", "fill in the column outcome", number)
    if not found:
        raise _unusable(path, "no row has an outcome", "fill in the column outcome")
    return found


def _unusable(path: Path, message: str, mend: str = "", row: int = 0) -> InputError:
    return InputError(message, code="U131", place=f"{path}:{row}" if row else str(path), mend=mend)


def _csv_rows(path: Path) -> list[list[str]]:
    try:
        text, problem = decode(path.read_bytes())
    except OSError as error:
        raise _unusable(path, f"the sheet cannot be read: {error.strerror or error}") from error
    if problem is not None:
        raise _unusable(path, problem[0], "save it as CSV UTF-8", problem[1])
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return list(reader)
    except csv.Error as error:
        raise _unusable(path, f"the sheet is no CSV: {error}", "save it as CSV UTF-8", reader.line_num) from error


def _workbook_rows(path: Path) -> list[list[str]]:
    from regatta_tools.sheets.opening import open_workbook

    book, _ = open_workbook(path)
    if not book.worksheets:
        raise _unusable(path, "the workbook has no sheet of cells")
    return [[_cell(path, cell) for cell in row] for row in book.worksheets[0].iter_rows()]


def _cell(path: Path, cell: Any) -> str:
    from regatta_tools.sheets.layout import unescaped

    value = cell.value
    if value is None:
        return ""
    if cell.data_type in ("f", "e"):
        what = f"{cell.coordinate} holds {shown(str(value))}, a formula or its error"
        raise _unusable(path, what, "type the text, with an apostrophe in front", cell.row)
    if isinstance(value, datetime):
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else unescaped(str(value))
