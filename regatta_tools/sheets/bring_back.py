"""``regatta sheet in``: a workbook back into the package, if it is fit for it.

Everything is found before anything is written: the damage of the spreadsheet, conflicts with the
package as it is now, and what the checks say of the package as it would be. An import never makes a
package worse: an error that was not there before stops it.
"""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.files import replace_files
from regatta_tools.rules.findings import Finding, identity, ordered
from regatta_tools.sheets.grid import Book, Note, SheetFinding, origin_of, read_book
from regatta_tools.sheets.layout import (
    READ_ONLY,
    CellTable,
    Origin,
    cell_tables,
    key_columns,
    key_text,
    keyed,
    looked_up,
    row_hash,
)
from regatta_tools.sheets.merge import Merged, merge
from regatta_tools.sheets.opening import open_workbook, refused
from regatta_tools.tables.package import DESCRIPTOR, Package, locate, read
from regatta_tools.tables.reader import LOSING, Table
from regatta_tools.tables.writing import csv_bytes, json_bytes, locate_for_writing, renewed
from regatta_tools.text import shown
from regatta_tools.validation.run import check_package

#: Signs that spreadsheets put in while one types, and what was typed.
_TYPOGRAPHIC = dict.fromkeys("“”„", '"') | dict.fromkeys("‘’‚", "'") | {"…": "..."}
_REPLACED = {"©": "(c)", "®": "(r)", "™": "(tm)"}


@dataclass
class BroughtBack:
    """The result of :func:`sheet_in`. ``written`` names the files that were written (none with ``check``).

    ``to_read`` are the requirements that have to be read again after the edit. Nobody could read them before, so that
    they are unread (A001) is no reason not to write.
    """

    file: str
    cell: str
    findings: list[SheetFinding] = field(default_factory=list)
    changes: dict[str, Merged] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    to_read: list[str] = field(default_factory=list)
    open_elsewhere: bool = False

    @property
    def ok(self) -> bool:
        return not any(f.finding.severity == "error" and not f.before for f in self.findings)

    @property
    def differs(self) -> bool:
        return any(m.differs for m in self.changes.values())

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "file": self.file,
            "cell": self.cell,
            "changes": {name: merged.as_dict() for name, merged in self.changes.items() if merged.differs},
            "kept_from_package": sum(m.kept for m in self.changes.values()),
            "findings": [f.as_dict() for f in self.findings],
            "notes": [n.as_dict() for n in self.notes],
            "written": self.written,
            "to_read": self.to_read,
        }


def sheet_in(
    workbook: Path | str,
    *,
    package: Any = None,
    cell: str | None = None,
    check: bool = False,
    allow_removals: bool = False,
) -> BroughtBack:
    """Bring a workbook of ``regatta sheet out`` back into the package that it came from.

    ``check`` only says what would be done. ``cell`` insists on a cell. Without ``allow_removals`` a
    record that is missing in the workbook is an error. Files are written only where no error is found
    that was not there before, and only those whose rows changed.

    Raises :class:`InputError` for a file that is no such workbook (U140, U141, U142) or a package that
    cannot be read or written, and :class:`EnvironmentProblem` where the disk does not take a file.
    """
    path = Path(workbook)
    root = locate(package) if check else locate_for_writing(package)
    held = read(root)
    opened, threads = open_workbook(path)
    origin = origin_of(opened)
    if origin is None:
        mend = "name a workbook that `regatta sheet out` of this version made"
        raise refused(path, "this workbook was not made by `regatta sheet out`", mend, "U142")
    _see_that_it_belongs(path, held, origin, cell)
    tables = require_whole(held, origin.cell)
    before = {t.file: (root / t.file).read_bytes() for t in tables.values()}

    exported = {n: t for n, t in tables.items() if n in origin.tables}
    specs = [t.spec for t in (*exported.values(), *looked_up(held).values())]
    book = read_book(path.name, opened, threads, origin, specs)
    result = BroughtBack(str(path), origin.cell, notes=book.notes, open_elsewhere=is_open_elsewhere(path))
    bases = _bases(book, exported, before)
    for name, table in exported.items():
        grid = book.grids.get(name)
        if grid is not None and grid.usable and name in bases:
            merged = merge(table, grid, bases[name], removals=allow_removals)
            result.changes[name] = merged
            _say_merged(book, name, merged, allow_removals)
            _say_signs(book, name, merged)
    _say_read_only(book)

    broken = any(f.finding.code in ("X001", "X002", "X017") for f in book.findings)
    contents = {m.table.file: csv_bytes(m.table.spec.columns, m.rows) for m in result.changes.values() if m.differs}
    rows = {m.table.file: len(m.rows) for m in result.changes.values()}
    result.findings = list(book.findings)
    # A workbook that lacks a sheet says nothing about the package as it would be.
    if not broken:
        found = _checked(book, held, result.changes, contents, rows)
        result.to_read = [f.finding.record for f in found if f.finding.code == "A001" and not f.before]
        result.findings += [f for f in found if f.finding.code != "A001" or f.before]
    # Renewing the words of the descriptor would hide that a row of such a file was lost.
    stale = [f for f in held.findings if f.code == "R011" and f.file in contents]
    result.findings += [SheetFinding(f, "") for f in stale]
    if result.ok and contents and not check:
        _write(root, held, before, contents, rows)
        result.written = sorted(contents)
    return result


def _see_that_it_belongs(path: Path, held: Package, origin: Origin, wanted: str | None) -> None:
    cells = [r.key for r in held.table("cells")]
    if wanted and wanted != origin.cell:
        what = f"this is a workbook of the cell {origin.cell!r}, not of {wanted!r}"
        raise refused(path, what, f"use --cell {origin.cell}, or name another file", "U142")
    if origin.cell not in cells:
        what = f"this is a workbook of the cell {shown(origin.cell)}, which the package does not have"
        raise refused(path, what, "name the package with --package; it has " + (", ".join(cells) or "none"), "U142")


def require_whole(held: Package, cell: str) -> dict[str, CellTable]:
    """The tables of a cell. Raises :class:`InputError` where rows of one of them could not be read."""
    tables = cell_tables(held, cell)
    files = {t.file for t in tables.values()}
    lost = [f for f in held.findings if f.code in LOSING and f.file in files]
    if lost:
        what = f"{lost[0].message} [{lost[0].code}]; rows of the cell could not be read"
        raise InputError(what, code="U143", place=lost[0].place(), mend="mend the file first: `regatta validate`")
    if not tables:
        what = f"the cell {cell!r} has no tables"
        raise InputError(what, code="U143", place=str(held.root), mend="`regatta cell new` writes them")
    return tables


def is_open_elsewhere(path: Path) -> bool:
    """Whether a spreadsheet program holds the file: what was typed and not saved is not in it."""
    return any((path.parent / name).exists() for name in (f"~${path.name}", f".~lock.{path.name}#"))


def _bases(book: Book, tables: dict[str, CellTable], before: dict[str, bytes]) -> dict[str, dict[Any, str]]:
    """The hash of each row at the time of the export, by table and key."""
    now = Origin.of(book.origin.cell, book.origin.schema, tables, before)
    if book.origin.rows is not None:
        return {name: book.origin.rows.get(name, {}) for name in tables}
    bases = {}
    for name in tables:
        if book.origin.tables[name] == now.tables[name]:
            bases[name] = (now.rows or {})[name]  # the package is still that state
        else:
            book.say("X017", name, "the hidden sheet is gone, and the package has changed since the export")
    return bases


def _say_merged(book: Book, name: str, merged: Merged, allow_removals: bool) -> None:
    grid = book.grids[name]
    for number, key, what in merged.conflicts:
        address = grid.address(number, merged.table.spec.columns[0]) if number else name
        book.say("X011", address, f"the record {what}", key)
    again = merged.renamed
    if not allow_removals:
        for key in merged.removed:
            hint = f"; the new record {again[key]} holds the same: was its id changed?" if key in again else ""
            book.say("X010", name, f"the record has no row any more{hint}", key)
    if merged.reordered:
        book.say("X018", name, "the rows stand in another order than in the package")


def _say_signs(book: Book, name: str, merged: Merged) -> None:
    """Signs that came in with an edit: those that stood there before are the author's own."""
    grid, spec = book.grids[name], merged.table.spec
    held = {key_text(key): row for key, row in keyed(spec, merged.table.rows).items()}
    for row in grid.rows:
        key = key_text(tuple(row.cells[c] for c in key_columns(spec)))
        before = held.get(key, [""] * len(spec.columns))
        for column, was in zip(spec.columns, before, strict=True):
            for code, signs in (("X014", _TYPOGRAPHIC), ("X015", _REPLACED)):
                found = sorted({c for c in row.cells[column] if c in signs} - set(was))
                if found:
                    said = ", ".join(f"{c} (for {signs[c]})" for c in found)
                    book.say(code, grid.address(row.number, column), f"{column} now holds {said}", key)


def _say_read_only(book: Book) -> None:
    """Edits in sheets for looking up, which nobody would ever see again."""
    if book.origin.rows is None:
        return
    for name in READ_ONLY:
        grid = book.grids.get(name)
        if grid is None or not grid.usable:
            continue
        known = set(book.origin.rows.get(name, {}).values())
        columns = list(grid.letters)  # in the order of the schema
        for row in grid.rows:
            if row_hash([row.cells[c] for c in columns]) not in known:
                address = grid.address(row.number, columns[0])
                book.say("X016", address, "this row is not as it was exported", row.cells[columns[0]])


# -- the package as it would be ----------------------------------------------------------------------


def _checked(
    book: Book, held: Package, changes: dict[str, Merged], contents: dict[str, bytes], rows: dict[str, int]
) -> list[SheetFinding]:
    """What the checks say of the package as it would be: of this cell all, of others what is new."""
    old = Counter(identity(f) for f in check_package(held))
    with tempfile.TemporaryDirectory(prefix="regatta-") as folder:
        after = _as_it_would_be(held, Path(folder), contents, rows)
        found = check_package(after)
    files = {m.table.file for m in changes.values()}
    place = _addresses(after, {m.table.file: m for m in changes.values()}, book)
    damaged = {f.address for f in book.findings if f.finding.code in ("X005", "X006", "X007", "X013")}
    findings = []
    for finding in ordered(found):
        known = old[identity(finding)] > 0
        old[identity(finding)] -= 1
        address = place(finding)
        # Of a cell whose text is lost, that is all there is to say.
        if address not in damaged and (finding.file in files or not known):
            findings.append(SheetFinding(finding, address, before=known))
    return findings


def _as_it_would_be(held: Package, folder: Path, contents: dict[str, bytes], rows: dict[str, int]) -> Package:
    """The package with new contents, in a folder of its own: what is checked is what would be read."""
    for file in held.files:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if file in contents:
            target.write_bytes(contents[file])
        elif (held.root / file).is_file():
            shutil.copyfile(held.root / file, target)
    descriptor = renewed(held.descriptor, contents, rows)
    (folder / DESCRIPTOR).write_bytes(json_bytes(descriptor))
    (folder / "instruments").mkdir(exist_ok=True)
    return read(folder)


def _addresses(after: Package, merged: dict[str, Merged], book: Book) -> Callable[[Finding], str]:
    """A function from findings on CSV files to addresses in the workbook (empty where the row is in no sheet)."""
    tables: dict[str, Table] = {r.file: r.table for r in after}

    def place(finding: Finding) -> str:
        table, plan = tables.get(finding.file), merged.get(finding.file)
        if table is None or plan is None or finding.line <= 1:
            return ""
        index = bisect_right(table.lines, finding.line) - 1
        if index < 0 or index >= len(plan.numbers) or not plan.numbers[index]:
            return ""
        places = [table.place(index, i) for i in range(len(plan.table.spec.columns))]
        at = max(bisect_right(places, (finding.line, finding.column)) - 1, 0)
        name = PurePosixPath(finding.file).stem
        return book.grids[name].address(plan.numbers[index], plan.table.spec.columns[at])

    return place


def _write(
    root: Path, held: Package, before: dict[str, bytes], contents: dict[str, bytes], rows: dict[str, int]
) -> None:
    """Write the tables that changed, and let the descriptor follow."""
    for file in contents:
        if (root / file).read_bytes() != before[file]:
            what = "another program changed the file while the workbook was read; no file is written"
            raise EnvironmentProblem(what, code="E308", place=file, mend="give the command again")
    descriptor = json_bytes(renewed(held.descriptor, contents, rows))
    replace_files({root / file: content for file, content in contents.items()} | {root / DESCRIPTOR: descriptor})
