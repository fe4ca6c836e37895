"""Three ways: the workbook, the package as it is now, and the state that both came from.

A record that only one side changed takes that side. A record that both changed otherwise is a conflict,
and so is one that a side removed and the other changed. Rows are compared whole, by the hash that the
workbook carries for each row of its origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from regatta_tools.sheets.grid import Grid, SheetRow
from regatta_tools.sheets.layout import CellTable, Key, key_columns, key_text, keyed, row_hash
from regatta_tools.tables.formatter import in_order

#: Cells of a row, and the row of the sheet that it stands in (0 for none).
Line = tuple[list[str], int]


@dataclass
class Merged:
    """What a table becomes. ``numbers[i]`` is the row of the sheet that ``rows[i]`` stands in, 0 where in none.

    ``changed`` maps a key to the columns that differ. ``conflicts`` holds (row of the sheet or 0, key,
    what happened). ``renamed`` maps removed keys to added ones that hold the same. ``kept`` counts edits
    of the package that the workbook did not know.
    """

    table: CellTable
    rows: list[list[str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    added: dict[str, int] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    conflicts: list[tuple[int, str, str]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    kept: int = 0
    reordered: bool = False

    @property
    def differs(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def as_dict(self) -> dict[str, Any]:
        return {"added": list(self.added), "changed": self.changed, "removed": self.removed}


def merge(table: CellTable, grid: Grid, base: dict[Key, str], *, removals: bool = True) -> Merged:
    """Merge one sheet into its table.

    ``base`` holds the hash of each row at the time of the export. Without ``removals`` a record that is
    gone from the sheet is listed as removed and stays among the rows, unless its id was edited.
    """
    spec = table.spec
    result = Merged(table)
    held = keyed(spec, table.rows)
    listed = keyed(spec, [[row.cells[c] for c in spec.columns] for row in grid.rows])
    brought = {key: (row, sheet_row) for (key, row), sheet_row in zip(listed.items(), grid.rows, strict=True)}
    chosen: dict[Key, Line | None] = {}
    for key, row in held.items():
        origin = base.get(key)
        chosen[key] = (
            _of_both(result, key, row, brought[key], origin) if key in brought else _gone(result, key, row, origin)
        )
    # A new row stands behind the one that it stands behind in the sheet.
    behind: dict[Key | None, list[Line]] = {}
    anchor: Key | None = None
    for key, (row, sheet_row) in brought.items():
        if key in held:
            anchor = key
        elif _is_new(result, key, row, sheet_row, base.get(key)):
            behind.setdefault(anchor, []).append((row, sheet_row.number))
    result.renamed = _renamed(result, held, listed)
    lines = list(behind.get(None, []))
    for key, line in chosen.items():
        if line is None and not removals and key_text(key) not in result.renamed:
            line = held[key], 0
        lines += [*([line] if line else []), *behind.get(key, [])]
    if result.added and in_order(table.rows, spec) == table.rows:
        numbers = {id(row): number for row, number in lines}
        lines = [(row, numbers[id(row)]) for row in in_order([row for row, _ in lines], spec)]
    result.rows, result.numbers = [row for row, _ in lines], [number for _, number in lines]
    result.reordered = [key for key in held if key in brought] != [key for key in brought if key in held]
    return result


def _of_both(result: Merged, key: Key, row: list[str], brought: tuple[list[str], SheetRow], origin: str | None) -> Line:
    """A record that stands on both sides."""
    other, sheet_row = brought
    if other == row:
        return row, sheet_row.number
    columns = [c for c, a, b in zip(result.table.spec.columns, row, other, strict=True) if a != b]
    if origin is None:
        what = f"was added on both sides with other words in {', '.join(columns)}"
    elif row_hash(other) == origin:
        result.kept += 1
        return row, sheet_row.number
    elif row_hash(row) == origin:
        result.changed[key_text(key)] = columns
        return other, sheet_row.number
    else:
        what = f"was changed in the workbook and in the package; they differ in {', '.join(columns)}"
    result.conflicts.append((sheet_row.number, key_text(key), what))
    return row, sheet_row.number


def _gone(result: Merged, key: Key, row: list[str], origin: str | None) -> Line | None:
    """A record of the package that the sheet does not hold."""
    if origin is None:
        result.kept += 1  # it came into the package after the export
    elif row_hash(row) == origin:
        result.removed.append(key_text(key))
        return None
    else:
        what = "was removed from the workbook and changed in the package"
        result.conflicts.append((0, key_text(key), what))
    return row, 0


def _is_new(result: Merged, key: Key, row: list[str], sheet_row: SheetRow, origin: str | None) -> bool:
    """Whether a record that the package does not hold is one to add."""
    if origin is None:
        result.added[key_text(key)] = sheet_row.number
        return True
    if row_hash(row) == origin:
        result.kept += 1  # it was taken out of the package after the export
    else:
        what = "was changed in the workbook and removed from the package"
        result.conflicts.append((sheet_row.number, key_text(key), what))
    return False


def _renamed(result: Merged, held: dict[Key, list[str]], listed: dict[Key, list[str]]) -> dict[str, str]:
    """Removed records whose other cells stand in an added row: an id that was edited (old key -> new key)."""
    names = set(key_columns(result.table.spec))
    others = [i for i, column in enumerate(result.table.spec.columns) if column not in names]

    def rest(row: list[str]) -> tuple[str, ...]:
        return tuple(row[i] for i in others)

    new = {rest(row): key_text(key) for key, row in listed.items() if key_text(key) in result.added}
    gone = {key_text(key): rest(row) for key, row in held.items() if key_text(key) in result.removed}
    return {key: new[cells] for key, cells in gone.items() if cells in new and any(cells)}
