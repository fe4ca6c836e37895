"""Spoiling a copy of the package in one place."""

from __future__ import annotations

import csv
import io
import os
import shutil
from pathlib import Path

from conftest import one_cell, redescribe

from regatta_tools.provenance import checks
from regatta_tools.tables.package import read, table_specs
from regatta_tools.tables.writing import csv_bytes


def on_disk(name: str) -> str:
    """The name of a file as Python has it here: where the locale knows no UTF-8, each odd byte by itself (PEP 383)."""
    return os.fsdecode(name.encode("utf-8"))


class Sheet:
    """One table of a package copy as rows that can be changed; ``save`` writes it and renews the descriptor."""

    def __init__(self, root: Path, table: str, cell: str = "insurance-us") -> None:
        self.root = root
        folder = "instruments" if table in ("sources", "cells", "waivers") else f"instruments/{cell}"
        self.file = f"{folder}/{table}.csv"
        text = (root / self.file).read_text(encoding="utf-8")
        self.header, *self.rows = csv.reader(io.StringIO(text, newline=""))

    def find(self, start: str, column: str = "") -> int:
        """The number of the first row whose id (or another column) begins with a text."""
        at = self.header.index(column) if column else 0
        return next(i for i, row in enumerate(self.rows) if row[at].startswith(start))

    def set(self, row: int | str, **cells: str) -> int:
        """Change cells of a row; returns the number of the row."""
        number = self.find(row) if isinstance(row, str) else row
        for column, value in cells.items():
            self.rows[number][self.header.index(column)] = value
        return number

    def line(self, row: int) -> int:
        """The physical line on which a row starts, by counting line ends of the rows before it."""
        return 2 + row + sum(cell.count("\n") for r in self.rows[:row] for cell in r)

    def save(self, row: int = 0) -> tuple[str, int]:
        """Write the table. Returns its file and the line of a row."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        (self.root / self.file).write_text(out.getvalue(), encoding="utf-8", newline="")
        redescribe(self.root)
        return self.file, self.line(row)


def add_table(root: Path, table: str, *rows: dict[str, str], cell: str = "insurance-us") -> tuple[str, int]:
    """Write a table that the package does not have (waivers, context); the file and the line of its first row."""
    spec = table_specs()[table]
    folder = root / "instruments" / (f"{cell}/context" if spec.scope == "context" else "")
    if spec.scope == "context":
        shutil.rmtree(folder, ignore_errors=True)  # what a test writes stands alone
    folder.mkdir(exist_ok=True)
    out = io.StringIO()
    writer = csv.DictWriter(out, spec.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    file = folder / f"{table}.csv"
    file.write_text(out.getvalue(), encoding="utf-8", newline="")
    redescribe(root)
    return file.relative_to(root).as_posix(), 2


def read_again(root: Path) -> None:
    """Let every reading be one of what the package says now, as if all had been read again after a test's edit."""
    package = read(root)
    index = checks.Index(package)
    files: dict[str, list[list[str]]] = {}
    for reading in package.table("audit"):
        citation = package.by_id[reading["citation"]]
        reading.cells.update(item_hash=checks.item_hash(index, citation), passage_hash=citation["passage_hash"])
        files.setdefault(reading.file, []).append(reading.values)
    for file, rows in files.items():
        (root / file).write_bytes(csv_bytes(table_specs()["audit"].columns, rows))
    redescribe(root)


def another_cell(root: Path, cell: str) -> None:
    """Put another real cell into the place of the one in a package copy."""
    shutil.rmtree(root / "instruments")
    one_cell(root, cell)
