"""Keys and references: what JSON Schema cannot see because it looks at one record at a time.

Keys are compared in Unicode form NFC: two ids that look the same are the same. Everything is asked of whole columns;
records are made only for what is wrong.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, Record, table_specs
from regatta_tools.text import shown


def check(package: Package) -> list[Finding]:
    """Findings for ids and keys that occur twice, and references that lead nowhere.

    Ids are unique over all tables, since the graph gives every record one name. A reference into a table of which rows
    could not be read may be right, so it is passed over: what could not be read is a finding already.
    """
    ids = _Ids(package)
    return [*ids.twice(), *_keys_twice(package), *_dangling(package, ids)]


def _column(package: Package, table: str, column: str) -> list[str]:
    """The cells of a column in Unicode form NFC."""
    cells = package.column(table, column)
    return cells if all(map(str.isascii, cells)) else [unicodedata.normalize("NFC", cell) for cell in cells]


def _repeated(keys: Sequence[object]) -> Iterator[tuple[int, int]]:
    """The places of keys that stand before already, with the place of the first. Empty keys are none."""
    if len(set(keys)) == len(keys):
        return
    first: dict[object, int] = {}
    for place, key in enumerate(keys):
        if key and first.setdefault(key, place) != place:
            yield place, first[key]


class _Ids:
    """The ids of all tables that have them, one after another."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.ids: list[str] = []
        self.starts: list[int] = []
        self.tables: list[str] = []
        self.by_class: dict[str, set[str]] = {}
        specs = table_specs()
        for name in package.names:
            spec = specs[name]
            if spec.identifier:
                ids = _column(package, name, spec.identifier)
                self.by_class[spec.class_name] = set(ids) - {""}
                self.starts.append(len(self.ids))
                self.tables.append(name)
                self.ids += ids

    def record(self, place: int) -> Record:
        number = bisect_right(self.starts, place) - 1
        return self.package.table(self.tables[number])[place - self.starts[number]]

    def twice(self) -> Iterator[Finding]:
        for place, earlier in _repeated(self.ids):
            record, first = self.record(place), self.record(earlier)
            what = f"id {shown(self.ids[place])} is already at {first.file}:{first.line}"
            yield record.finding("K001", record.spec.identifier or "", what)

    def class_of(self, key: str) -> str | None:
        """The class of the first record that has an id."""
        return self.record(self.ids.index(key)).spec.class_name if key in self.ids else None


def _keys_twice(package: Package) -> Iterator[Finding]:
    specs = table_specs()
    for name in package.names:
        spec = specs[name]
        for columns in spec.unique_keys.values():
            found = zip(*(_column(package, name, column) for column in columns), strict=True)
            keys = [key if all(key) else None for key in found]
            for place, earlier in _repeated(keys):
                record, first = package.table(name)[place], package.table(name)[earlier]
                # A whole row that stands twice is told once, by its id.
                if not (spec.identifier and first.key == record.key):
                    shows = ", ".join(f"{c} {shown(v)}" for c, v in zip(columns, keys[place] or (), strict=True))
                    yield record.finding("K002", columns[-1], f"{shows} is already at {first.file}:{first.line}")


def _dangling(package: Package, ids: _Ids) -> Iterator[Finding]:
    specs = table_specs()
    unknowable = {specs[name].class_name for name in package.incomplete if name in specs}
    for name in package.names:
        for column, field in specs[name].fields.items():
            if field["kind"] != "ref" or field["ref"] in unknowable:
                continue
            cells = _column(package, name, column)
            missing = set(cells) - ids.by_class.get(field["ref"], set()) - {""}
            for place in [i for i, cell in enumerate(cells) if cell in missing] if missing else ():
                other = ids.class_of(cells[place])
                hint = f" (it is a {other})" if other is not None else ""
                what = f"{column} {shown(cells[place])} is no {field['ref']} of this package{hint}"
                yield package.table(name)[place].finding("K003", column, what)
