"""The package of instruments: descriptor and tables read into records that know their place.

The way of the data: ``datapackage.json`` names the files, the compiled schema
(``schema/generated/model.json``) says what columns they have, :mod:`regatta_tools.tables.reader` reads
them, and everything later (checks, graph, harness) works on the :class:`Record` objects made here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from regatta_tools import paths
from regatta_tools.errors import InputError
from regatta_tools.garbage import search_paused
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rule
from regatta_tools.safety import Below, references_at_most, unsafe, unsafe_references
from regatta_tools.tables.model import load_model
from regatta_tools.tables.reader import Table, read_table
from regatta_tools.text import sha256_json, shown

DESCRIPTOR = "datapackage.json"
#: Larger descriptors are refused unread, and so are longer lists of files: each costs a look at the disk.
MAX_DESCRIPTOR = 256 * 1024 * 1024
MAX_FILES = 100_000


@dataclass(frozen=True)
class TableSpec:
    """What the schema says of one table: its class, columns and keys."""

    name: str
    class_name: str
    scope: str
    uri: str
    identifier: str | None
    unique_keys: dict[str, list[str]]
    fields: dict[str, dict[str, Any]]

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns in their order. Shared: do not change it."""
        return list(self.fields)

    @cached_property
    def position(self) -> dict[str, int]:
        """The number of each column, from 0."""
        return {name: index for index, name in enumerate(self.fields)}


_specs: tuple[dict[str, Any], dict[str, TableSpec]] = ({}, {})


def table_specs() -> dict[str, TableSpec]:
    """All tables of the schema by name, in schema order. Shared: do not change it."""
    global _specs
    model = load_model()
    if _specs[0] is not model:
        _specs = model, _specs_of(model)
    return _specs[1]


def _specs_of(model: dict[str, Any]) -> dict[str, TableSpec]:
    specs = {}
    for name, cls in model["classes"].items():
        if cls.get("table"):
            specs[cls["table"]] = TableSpec(
                name=cls["table"],
                class_name=name,
                scope=cls["scope"],
                uri=cls["uri"],
                identifier=cls.get("identifier"),
                unique_keys=cls.get("unique_keys") or {},
                fields={f["name"]: f for f in cls["fields"]},
            )
    return specs


class Record:
    """One row: the text of every column, with its place. Empty text means absent.

    ``values`` holds the texts in the order of the columns. It is the list of the table itself, since a package may have
    a million rows.
    """

    __slots__ = ("row", "spec", "table", "values")

    def __init__(self, spec: TableSpec, cells: Mapping[str, str] | list[str], table: Table, row: int) -> None:
        self.spec, self.table, self.row = spec, table, row
        self.values = cells if isinstance(cells, list) else [cells[column] for column in spec.columns]

    def __repr__(self) -> str:
        return f"Record({self.spec.name}, {dict(self.cells)!r})"

    @property
    def cells(self) -> Cells:
        """The texts by column."""
        return Cells(self)

    @property
    def file(self) -> str:
        return self.table.file

    @property
    def line(self) -> int:
        return self.table.lines[self.row]

    def place(self, column: str) -> tuple[int, int]:
        """Line and column of a cell of this record, from 1."""
        return self.table.place(self.row, self.spec.position[column])

    @property
    def key(self) -> str:
        """The id, or the values of the first unique key joined by ``--``, or the line where there is neither."""
        if self.spec.identifier:
            return self[self.spec.identifier]
        for names in self.spec.unique_keys.values():
            return "--".join(self[n] for n in names)
        return f"{self.file}:{self.line}"

    def __getitem__(self, column: str) -> str:
        return self.values[self.spec.position[column]]

    def get(self, column: str) -> str | None:
        """The text of a column, ``None`` where it is empty."""
        return self.values[self.spec.position[column]] or None

    def finding(self, code: str, column: str, message: str, mend: str = "") -> Finding:
        """A finding of a rule about one cell of this record."""
        line, position = self.place(column)
        return rule(code).finding(message, file=self.file, line=line, column=position, record=self.key, mend=mend)

    def as_object(self) -> dict[str, Any]:
        """The record as the JSON object that the JSON Schema describes (absent where empty).

        Cells that do not have the form of their type stay text, so that a schema check can refuse them.
        """
        fields = self.spec.fields.items()
        return {name: typed(text, f["kind"]) for (name, f), text in zip(fields, self.values, strict=True) if text}


class Cells(dict[str, str]):
    """The cells of a record by column. What is set here is set in the record; columns cannot be added or taken out."""

    __slots__ = ("_record",)

    def __init__(self, record: Record) -> None:
        super().__init__(zip(record.spec.columns, record.values, strict=True))
        self._record = record

    def __setitem__(self, column: str, text: str) -> None:
        self._record.values[self._record.spec.position[column]] = text
        super().__setitem__(column, text)

    def update(self, *others: Any, **named: str) -> None:
        for column, text in dict(*others, **named).items():
            self[column] = text

    def _fixed(self, *_: Any) -> Any:
        raise TypeError("a record has the columns of its table")

    __delitem__ = pop = popitem = clear = setdefault = _fixed
    __ior__ = _fixed


def typed(text: str, kind: str) -> Any:
    """The value of a filled cell of a kind as JSON has it, or the text where it has not the form of its kind."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind == "integer" and re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        return int(text)
    if kind in ("float", "decimal") and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return float(text)
    return text


class Package:
    """A package as read.

    ``records`` maps table names to records over all files of that table, in file order. ``findings``
    is what reading objects to; :func:`regatta_tools.validate` adds what the checks find.
    ``incomplete`` names the tables of which rows are missing, by one of those findings: that something
    is not there says nothing about them.
    """

    def __init__(
        self, root: Path, descriptor: dict[str, Any] | bytes, records: dict[str, list[Record]] | None = None
    ) -> None:
        self.root = root
        self._descriptor = descriptor
        self.files: list[str] = []
        self.findings: list[Finding] = []
        self.incomplete: set[str] = set()
        self._records = {} if records is None else records
        # Tables as read whose rows have not been made records yet: checks of whole columns do without.
        self._unmade: dict[str, list[tuple[TableSpec, Table]]] = {}
        self._columns: dict[str, list[list[str]]] | None = None
        self._bytes_read: list[tuple[str, str]] = []

    def state(self) -> str:
        """SHA-256 over the descriptor and the bytes of every file as they were read."""
        said = self._descriptor.decode("utf-8-sig") if isinstance(self._descriptor, bytes) else self._descriptor
        return sha256_json([said, self._bytes_read])

    @property
    def descriptor(self) -> dict[str, Any]:
        """What ``datapackage.json`` says."""
        if isinstance(self._descriptor, bytes):
            self._descriptor = json.loads(self._descriptor.decode("utf-8-sig"))
        return self._descriptor

    def add(self, spec: TableSpec, table: Table) -> None:
        """Add the rows of one file to a table."""
        self._records.setdefault(spec.name, [])
        self._unmade.setdefault(spec.name, []).append((spec, table))

    @property
    def names(self) -> list[str]:
        """The tables of the package, in the order in which they were read."""
        return list(self._records)

    def table(self, name: str) -> list[Record]:
        """The records of a table, in file order; none where the package has no such table."""
        made = self._records.get(name, [])
        for spec, table in self._unmade.pop(name, ()):
            made.extend(Record(spec, row, table, index) for index, row in enumerate(table.rows))
        return made

    def rows(self, name: str) -> list[list[str]]:
        """The rows of a table: the ``values`` of its records in their order, without making records."""
        return list(chain.from_iterable(self._parts(name)))

    def _parts(self, name: str) -> Iterator[list[list[str]]]:
        yield [record.values for record in self._records.get(name, ())]
        for _, table in self._unmade.get(name, ()):
            yield table.rows

    @cached_property
    def _specs(self) -> dict[str, TableSpec]:
        return table_specs()

    def column(self, name: str, column: str) -> list[str]:
        """The cells of one column of a table, in the order of its records. Do not change it."""
        spec = self._specs[name]
        kept = {} if self._columns is None else self._columns
        if name not in kept:
            columns: list[list[str]] = [[] for _ in spec.columns]
            for rows in self._parts(name):
                for whole, part in zip(columns, zip(*rows, strict=True), strict=False):
                    whole.extend(part)
            kept[name] = columns
        return kept[name][spec.position[column]]

    @contextmanager
    def columns_kept(self) -> Iterator[None]:
        """Within it columns are put together once, and no record may be changed."""
        self._columns = {}
        try:
            yield
        finally:
            self._columns = None

    @property
    def records(self) -> dict[str, list[Record]]:
        for name in list(self._unmade):
            self.table(name)
        return self._records

    def __iter__(self) -> Iterator[Record]:
        for records in self.records.values():
            yield from records

    @property
    def count(self) -> int:
        """The number of records."""
        unmade = sum(len(table.rows) for tables in self._unmade.values() for _, table in tables)
        return unmade + sum(len(records) for records in self._records.values())

    @cached_property
    def by_id(self) -> dict[str, Record]:
        """Records that have an id, by id (the first one where an id occurs twice)."""
        found: dict[str, Record] = {}
        for record in self:
            if record.spec.identifier:
                found.setdefault(record.key, record)
        return found

    def cell_records(self, table: str, cell: str) -> list[Record]:
        return [r for r in self.table(table) if r["cell"] == cell]

    def cell(self, cell: str) -> Cell:
        """The judging rules of one cell. Raises :class:`InputError` where the package has no such cell."""
        names = [r.key for r in self.table("cells")]
        if cell not in names:
            raise InputError(
                f"the package has no cell {cell!r}",
                code="U103",
                mend="use one of: " + (", ".join(names) or "(none)"),
            )
        return Cell(self, cell)


@dataclass
class Cell:
    """The judging rules of a cell: active requirements and faults, in file order, with what belongs to them."""

    package: Package
    id: str

    @cached_property
    def record(self) -> Record:
        return next(r for r in self.package.table("cells") if r.key == self.id)

    @cached_property
    def requirements(self) -> list[Record]:
        return [r for r in self.package.cell_records("requirements", self.id) if r["status"] == "active"]

    @cached_property
    def faults(self) -> list[Record]:
        return self.package.cell_records("faults", self.id)

    def citations(self, requirement: str) -> list[Record]:
        return [r for r in self.package.cell_records("citations", self.id) if r["requirement"] == requirement]

    def requirements_of(self, fault: str) -> list[Record]:
        links = [r for r in self.package.cell_records("fault_requirements", self.id) if r["fault"] == fault]
        return [self.package.by_id[r["requirement"]] for r in links]

    def values_of(self, fault: str) -> list[Record]:
        return [r for r in self.package.cell_records("fault_values", self.id) if r["fault"] == fault]

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the cell's judging rules and the sources that they cite, in canonical JSON.

        Ontology context, gold probes and audit readings are left out: they do not change a score.
        """
        tables = ("requirements", "citations", "facts", "faults", "fault_requirements", "fault_values")
        content: dict[str, Any] = {
            table: sorted(
                (r.cells for r in self.package.cell_records(table, self.id)),
                key=lambda cells: json.dumps(cells, sort_keys=True),
            )
            for table in tables
        }
        cited = {r["source"] for r in self.package.cell_records("citations", self.id)}
        content["sources"] = sorted(
            (r.cells for r in self.package.table("sources") if r.key in cited), key=lambda cells: cells["id"]
        )
        content["cell"] = self.record.cells
        return sha256_json(content)


def locate(path: Any = None) -> Path:
    """The root folder of a package.

    ``path`` is a folder that holds a descriptor, or the descriptor. ``None`` takes the current folder
    where it holds one, so that whoever edits a clone checks the clone, and else the package that this
    installation carries.
    """
    if path is None:
        # os.path answers no, rather than raise, where the current folder has been deleted.
        if os.path.isfile(DESCRIPTOR) and os.path.isdir("instruments"):
            return Path.cwd()
        return paths.root()
    given = Path(path)
    mend = f"name a folder with a {DESCRIPTOR}, that file, or a suite file (.yaml, .yml, .json)"
    try:
        is_file, is_folder = given.is_file(), given.is_dir()
        has_descriptor = is_folder and (given / DESCRIPTOR).is_file()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", code="U101", place=str(path), mend=mend) from error
    if is_file and given.name == DESCRIPTOR:
        return given.parent
    if has_descriptor and str(path):
        return given
    if is_folder and str(path):
        message = f"no {DESCRIPTOR} in this folder"
    elif is_file and given.suffix.lower() == ".csv":
        message, mend = "a table is checked with its package", f"name the folder that holds {DESCRIPTOR}"
    else:
        message = "neither a package nor a suite file" if is_file else "no such file or folder"
    raise InputError(message, code="U101", place=str(path), mend=mend)


@search_paused()
def read(path: Any = None) -> Package:
    """Read a package and keep what is wrong with it as findings.

    Raises :class:`InputError` only where there is no usable descriptor: without one, nothing says what
    the package is.
    """
    root = locate(path)
    raw, resources, unsafe_ones = _descriptor(root)
    package = Package(root, raw)
    for key, text, reason in unsafe_ones:
        package.findings.append(rule("R015").finding(f"{key} {shown(text)} {reason}", file=DESCRIPTOR))
    specs, below = table_specs(), Below(root)
    seen: set[str] = set()
    for resource in resources:
        _read_resource(package, specs, resource, seen, below)
    for name in _tables_below(package, "instruments"):
        if name not in seen:
            package.findings.append(rule("R016").finding(f"the file is not listed in {DESCRIPTOR}", file=name))
            package.incomplete.add(PurePosixPath(name).stem)
    return package


def _descriptor(root: Path) -> tuple[bytes, list[dict[str, Any]], list[tuple[str, str, str]]]:
    """The bytes of a descriptor, what reading needs of its resources, and its unsafe references.

    The list of resources is one, and not beyond measure. Of a large package the whole takes half a gigabyte.
    """
    path = root / DESCRIPTOR

    def refused(message: str) -> InputError:
        return InputError(f"the descriptor {message}", code="U102", place=str(path), mend="run `make schema`")

    if reason := unsafe(root, DESCRIPTOR):
        raise refused(reason)
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= MAX_DESCRIPTOR else b"null"
        text = raw.decode("utf-8-sig")
        descriptor = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise refused(f"cannot be read: {error}") from error
    if size > MAX_DESCRIPTOR:
        raise refused(f"has {size:,} bytes, more than {MAX_DESCRIPTOR:,}")
    resources = descriptor.get("resources") if isinstance(descriptor, dict) else None
    if not isinstance(resources, list) or not resources:
        raise refused("lists no resources")
    listed = [r.get("path") if isinstance(r, dict) else None for r in resources]
    count = sum(len(path) if isinstance(path, list) else 1 for path in listed)
    if count > MAX_FILES:
        raise refused(f"lists {count:,} files, more than {MAX_FILES:,}")
    needed = ("path", "rows", "bytes", "hash")
    facts = [{key: r[key] for key in needed if key in r} if isinstance(r, dict) else {} for r in resources]
    return raw, facts, list(unsafe_references(root, descriptor, references_at_most(text)))


def _tables_below(package: Package, folder: str) -> list[str]:
    """The names of all CSV files below a folder of the package, sorted. Links to folders are not followed.

    Not ``rglob``: it calls itself for each level, and a pull request may hold a thousand.
    """
    found: list[str] = []
    if os.path.lexists(package.root / folder) and (reason := unsafe(package.root, folder)):
        package.findings.append(rule("R015").finding(f"the folder {folder} {reason}", file=folder))
        return found
    waiting = [folder]
    while waiting:
        name = waiting.pop()
        try:
            with os.scandir(package.root / name) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{name}/{entry.name}")
                    if entry.name.lower().endswith(".csv"):
                        found.append(f"{name}/{entry.name}")
        except OSError as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError) or name != folder:
                what = f"the folder cannot be read: {error.strerror or error}"
                package.findings.append(rule("R001").finding(what, file=name))
    return sorted(found)


def _read_resource(
    package: Package, specs: dict[str, TableSpec], resource: dict[str, Any], seen: set[str], below: Below
) -> None:
    """Read the files of one resource (one, as we write them; a list of paths is the older form)."""
    listed = resource.get("path")
    tables = []
    for name in listed if isinstance(listed, list) and listed else [listed]:
        reason = below.unsafe(name)
        if reason:
            package.findings.append(rule("R015").finding(f"path {shown(name)} {reason}", file=DESCRIPTOR))
            if isinstance(name, str):
                package.incomplete.add(re.split(r"[/\\]", name)[-1].removesuffix(".csv"))
            continue
        file = PurePosixPath(name).as_posix()
        if file in seen:
            package.findings.append(rule("R018").finding(f"path {shown(name)} is listed already", file=DESCRIPTOR))
            continue
        seen.add(file)
        spec = spec_of(specs, file)
        if spec is None:
            what, mend = "the schema knows no table for this file", "name and place it as the schema does"
            package.findings.append(rule("R016").finding(what, file=file, mend=mend))
            package.incomplete.add(PurePosixPath(file).stem)
            continue
        tables.append(_read_file(package, spec, file))
    _check_described(package, resource, tables)


def spec_of(specs: dict[str, TableSpec], file: str) -> TableSpec | None:
    """The table that a file holds, by its name and depth: ``instruments[/cell[/context]]/table.csv``."""
    parts = PurePosixPath(file).parts
    spec = specs.get(parts[-1].removesuffix(".csv")) if file.endswith(".csv") else None
    scope = {2: "package", 3: "cell", 4: "context"}.get(len(parts))
    if spec is None or parts[0] != "instruments" or scope != spec.scope:
        return None
    return spec if scope != "context" or parts[2] == "context" else None


def _read_file(package: Package, spec: TableSpec, file: str) -> Table:
    table = read_table(package.root / file, file, spec.columns)
    package.files.append(file)
    package._bytes_read.append((file, table.sha256))
    package.findings.extend(table.findings)
    if not table.complete:
        package.incomplete.add(spec.name)
    package.add(spec, table)
    if spec.scope == "package":
        return table
    folder = PurePosixPath(file).parts[1]
    at = spec.position["cell"]
    for index, row in enumerate(table.rows):
        if row[at] == folder:
            row[at] = folder  # one text for all rows, not one each
        elif row[at]:  # an empty cell is a finding of the schema check
            what = f"cell is {shown(row[at])} in the folder of {folder!r}"
            package.findings.append(Record(spec, row, table, index).finding("K004", "cell", what))
    return table


def _check_described(package: Package, resource: dict[str, Any], tables: list[Table]) -> None:
    """Compare files with what the descriptor says of them: a lost row must not go unseen.

    Files that could not be read to the end have an error already, and another count for that reason.
    """
    if not tables or not all(t.complete for t in tables):
        return
    actual = {"rows": sum(len(t.rows) for t in tables), "bytes": sum(t.size for t in tables)}
    unsaid = [key for key in actual if type(resource.get(key)) is not int]  # true is an int, and no number of rows
    if len(tables) == 1 and not isinstance(resource.get("hash"), str):
        unsaid.append("hash")
    if unsaid:
        what = f"{DESCRIPTOR} does not say the {' and '.join(unsaid)} of this file"
        package.findings.append(rule("R011").finding(what, file=tables[0].file))
        return
    said = [
        f"it says {resource[key]:,} {key}, the file has {count:,}"
        for key, count in actual.items()
        if resource[key] != count
    ]
    digest = resource.get("hash")
    # No standard says what the hash of several files is.
    if not said and len(tables) == 1 and digest.removeprefix("sha256:") != tables[0].sha256:
        said = ["the hash is another"]
    if said:
        what = f"{DESCRIPTOR} describes another state of this file: {said[0]}"
        package.findings.append(rule("R011").finding(what, file=tables[0].file))
