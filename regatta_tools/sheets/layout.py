"""What both directions agree on: names of sheets, text in cells, keys of rows, the state a workbook came from."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from regatta_tools.tables.package import Package, TableSpec, table_specs
from regatta_tools.text import sha256_json

#: Version of the layout below. A workbook of another one is refused.
FORMAT = "1"
COVER, LISTS, BASE, LOST = "about", "lists", "regatta-base", "notes without a row"
#: Tables of the package that a workbook shows for looking up and that are not read back.
READ_ONLY = ("sources",)
#: Sheets that are ours and hold no table of the cell.
OTHER_SHEETS = (COVER, LISTS, BASE, LOST, *READ_ONLY)
#: Most UTF-16 units that Excel keeps in one cell; what is longer it cuts without a word.
MAX_UNITS = 32_767

Key = tuple[str, ...]
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
# What XML 1.0 cannot hold, or gives back as something else (each becomes an escape, which begins with an
# underscore), and an underscore that would start an escape.
_UNFIT = "\x00-\x08\x0b-\x1f\ufffe\uffff"
_TO_ESCAPE = re.compile(f"[{_UNFIT}]|_(?=x[0-9A-Fa-f]{{4}}[_{_UNFIT}])")


def escaped(text: str) -> str:
    """Text as OOXML strings hold it (``ST_Xstring``): ``_xHHHH_`` for what XML cannot carry as itself.

    A literal ``_x000D_`` in the data would come back as a carriage return, so its underscore is
    escaped too. Inverse of :func:`unescaped`.
    """
    return _TO_ESCAPE.sub(lambda m: f"_x{ord(m[0]):04X}_", text)


def unescaped(text: str) -> str:
    """The text that an OOXML string stands for."""
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)), text)


def units(text: str) -> int:
    """Length in UTF-16 units, as spreadsheets count."""
    return len(text) + sum(ord(c) > 0xFFFF for c in text)


@dataclass
class CellTable:
    """One table of a cell: rows as lists of text in the order of ``spec.columns``."""

    spec: TableSpec
    file: str
    rows: list[list[str]] = field(repr=False)


def cell_tables(package: Package, cell: str) -> dict[str, CellTable]:
    """The tables of a cell that have a file, by name, in the order of the schema."""
    found = {}
    for name, spec in table_specs().items():
        if spec.scope == "package":
            continue
        folder = PurePosixPath("instruments", cell, *(["context"] if spec.scope == "context" else []))
        file = str(folder / f"{name}.csv")
        if file in package.files:
            rows = [list(r.values) for r in package.table(name) if r.file == file]
            found[name] = CellTable(spec, file, rows)
    return found


def looked_up(package: Package) -> dict[str, CellTable]:
    """The read-only tables, by name."""
    return {
        name: CellTable(spec, f"instruments/{name}.csv", [list(r.values) for r in package.table(name)])
        for name, spec in table_specs().items()
        if name in READ_ONLY
    }


def key_columns(spec: TableSpec) -> list[str]:
    """The columns that say which record a row is: the id, or else the first unique key."""
    if spec.identifier:
        return [spec.identifier]
    return next(iter(spec.unique_keys.values()), spec.columns)


def keyed(spec: TableSpec, rows: list[list[str]]) -> dict[Key, list[str]]:
    """Rows by key. A key that stands again gets a number behind it, so that no row is lost."""
    at = [spec.columns.index(c) for c in key_columns(spec)]
    found: dict[Key, list[str]] = {}
    seen: dict[Key, int] = {}
    for row in rows:
        key = tuple(row[i] for i in at)
        seen[key] = seen.get(key, 0) + 1
        found[key if seen[key] == 1 else (*key, f"#{seen[key]}")] = row
    return found


def key_text(key: Key) -> str:
    """A key for people."""
    return "--".join(key) or "(empty)"


def row_hash(row: list[str]) -> str:
    """128 bits of SHA-256 over the cells of a row."""
    return sha256_json(row)[:32]


@dataclass
class Origin:
    """The state of the package from which a workbook was made.

    ``tables`` holds the SHA-256 of each CSV file, ``rows`` the hash of each row by table and key.
    ``rows`` is ``None`` where the workbook lost the sheet that holds them.
    """

    cell: str
    schema: str
    tables: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[Key, str]] | None = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, cell: str, schema: str, tables: dict[str, CellTable], contents: dict[str, bytes]) -> Origin:
        """The origin of a workbook that is made now; ``contents`` holds the bytes of each table's file."""
        hashes = {name: hashlib.sha256(contents[table.file]).hexdigest() for name, table in tables.items()}
        rows = {
            name: {key: row_hash(row) for key, row in keyed(table.spec, table.rows).items()}
            for name, table in tables.items()
        }
        return cls(cell, schema, hashes, rows)

    def lines(self) -> list[list[str]]:
        """The rows of the hidden sheet."""
        lines = [["format", FORMAT], ["cell", self.cell], ["schema", self.schema]]
        lines += [["table", name, digest] for name, digest in self.tables.items()]
        for name, rows in (self.rows or {}).items():
            lines += [["row", name, digest, json.dumps(key, ensure_ascii=False)] for key, digest in rows.items()]
        return lines

    @classmethod
    def from_lines(cls, lines: list[list[str]]) -> Origin | None:
        """Read what :meth:`lines` wrote; ``None`` where it is not whole."""
        heads = {line[0]: line[1] for line in lines if len(line) > 1 and line[0] in ("format", "cell", "schema")}
        if set(heads) != {"format", "cell", "schema"} or heads["format"] != FORMAT:
            return None
        origin = cls(heads["cell"], heads["schema"])
        try:
            for kind, *rest in lines:
                if kind == "table":
                    origin.tables[rest[0]] = rest[1]
                    origin.rows.setdefault(rest[0], {})  # type: ignore[union-attr]  # a dict by default
                elif kind == "row":
                    origin.rows[rest[0]][tuple(json.loads(rest[2]))] = rest[1]  # type: ignore[index]
        except (IndexError, KeyError, ValueError, TypeError):
            return None
        return origin


def cover_facts(origin: Origin, title: str, tables: dict[str, CellTable]) -> list[list[str]]:
    """What the first sheet says of the state, for people, and for a workbook that lost its hidden sheet."""
    facts = [["cell", origin.cell], ["title", title], ["schema version", origin.schema], ["workbook format", FORMAT]]
    facts += [["sheet", "rows", "SHA-256 of the file as exported"]]
    return facts + [[name, str(len(table.rows)), origin.tables[name]] for name, table in tables.items()]


def origin_from_cover(lines: list[list[str]]) -> Origin | None:
    """The origin as the first sheet tells it, without its rows."""
    values = {line[0]: line[1:] for line in lines if len(line) > 1}
    wanted = ("cell", "schema version", "workbook format")
    if any(name not in values for name in wanted) or values["workbook format"][0] != FORMAT:
        return None
    tables = {n: v[1] for n, v in values.items() if n in table_specs() and len(v) > 1 and len(v[1]) == 64}
    return Origin(values["cell"][0], values["schema version"][0], tables, None)


#: Lines of the first sheet. Both languages stand there where the cell is Vietnamese.
EXPLAINED: dict[str, tuple[str, ...]] = {
    "en": (
        "This workbook holds the tables of one cell. The CSV files of the package stay what counts. Edit, save as "
        ".xlsx, then bring your edits back:",
        "    regatta sheet in FILE.xlsx --check      says what would change, and what is wrong",
        "    regatta sheet in FILE.xlsx      writes the CSV files",
        "Every cell is text on purpose. Write dates as 2026-11-30 and numbers with a point (0.5). No formulas, no "
        "merged cells, no renamed sheets or columns. Shaded columns say which record a row is.",
        "Add rows anywhere. Removing rows has to be confirmed (--allow-removals), because a filtered copy loses rows "
        "too.",
        "The sheets `sources` and `lists` are for looking up and are not read back. Notes on cells are kept when you "
        "export onto this file again (regatta sheet out); do that before you go on editing.",
    ),
    "vi": (
        "Tệp này chứa các bảng của một lĩnh vực ở một quốc gia. Các tệp CSV của gói vẫn là bản chính. Hãy sửa, lưu "
        "dạng .xlsx, rồi đưa chỉnh sửa trở lại:",
        "    regatta sheet in TỆP.xlsx --check      cho biết những gì sẽ thay đổi và những gì sai",
        "    regatta sheet in TỆP.xlsx      ghi vào các tệp CSV",
        "Mọi ô đều là văn bản, có chủ ý. Viết ngày theo dạng 2026-11-30, số thập phân dùng dấu chấm (0.5). Không dùng "
        "công thức, không gộp ô, không đổi tên trang tính hay cột. Các cột tô nền cho biết hàng là bản ghi nào.",
        "Có thể thêm hàng ở bất kỳ chỗ nào. Việc xóa hàng phải được xác nhận (--allow-removals), vì một bản sao đã lọc "
        "cũng làm mất hàng.",
        "Các trang `sources` và `lists` chỉ để tra cứu, không được đọc lại. Ghi chú trên ô được giữ khi xuất lần nữa "
        "vào chính tệp này (regatta sheet out); hãy làm vậy trước khi sửa tiếp.",
    ),
}


def described(table: str, name: str, spec: dict[str, Any], values: dict[str, Any]) -> str:
    """The header note of a column: its name, what the schema says of it, and its values."""
    lines = [f"{table}.{name}" + (" (required)" if spec["required"] else ""), spec["description"]]
    lines += [f"- {value}: {about['description']}" for value, about in values.items()]
    return "\n".join(lines)
