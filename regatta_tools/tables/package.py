"""The package of instruments: descriptor and tables read into records that know their place.

The way of the data: ``datapackage.json`` names the files, the compiled schema
(``schema/generated/model.json``) says what columns they have, :mod:`regatta_tools.tables.reader` reads
them, and everything later (checks, graph, harness) works on the :class:`Record` objects made here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from regatta_tools import paths
from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rule
from regatta_tools.tables.model import load_model
from regatta_tools.tables.reader import Table, read_table
from regatta_tools.text import sha256_json, shown

DESCRIPTOR = "datapackage.json"
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


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

    @property
    def columns(self) -> list[str]:
        return list(self.fields)


def table_specs() -> dict[str, TableSpec]:
    """All tables of the schema by name, in schema order."""
    specs = {}
    for name, cls in load_model()["classes"].items():
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


@dataclass
class Record:
    """One row. ``cells`` holds the text of every column; empty text means absent."""

    spec: TableSpec
    cells: dict[str, str]
    table: Table
    row: int

    @property
    def file(self) -> str:
        return self.table.file

    @property
    def line(self) -> int:
        return self.table.lines[self.row]

    def place(self, column: str) -> tuple[int, int]:
        """Line and column of a cell of this record, from 1."""
        return self.table.place(self.row, self.spec.columns.index(column))

    @property
    def key(self) -> str:
        """The id, or the values of the first unique key joined by ``--``, or the line where there is neither."""
        if self.spec.identifier:
            return self.cells[self.spec.identifier]
        for names in self.spec.unique_keys.values():
            return "--".join(self.cells[n] for n in names)
        return f"{self.file}:{self.line}"

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    def get(self, column: str) -> str | None:
        """The text of a column, ``None`` where it is empty."""
        return self.cells[column] or None

    def finding(self, code: str, column: str, message: str, mend: str = "") -> Finding:
        """A finding of a rule about one cell of this record."""
        line, position = self.place(column)
        return rule(code).finding(message, file=self.file, line=line, column=position, record=self.key, mend=mend)

    def as_object(self) -> dict[str, Any]:
        """The record as the JSON object that the JSON Schema describes (absent where empty).

        Cells that do not have the form of their type stay text, so that a schema check can refuse them.
        """
        out: dict[str, Any] = {}
        for name, spec in self.spec.fields.items():
            text = self.cells[name]
            if text:
                out[name] = _typed(text, spec["kind"])
        return out


def _typed(text: str, kind: str) -> Any:
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind == "integer" and re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        return int(text)
    if kind in ("float", "decimal") and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return float(text)
    return text


@dataclass
class Package:
    """A package as read.

    ``records`` maps table names to records over all files of that table, in file order. ``findings``
    is what reading objects to; :func:`regatta_tools.validate` adds what the checks find.
    ``incomplete`` names the tables of which rows are missing, by one of those findings: that something
    is not there says nothing about them.
    """

    root: Path
    descriptor: dict[str, Any] = field(repr=False)
    records: dict[str, list[Record]] = field(default_factory=dict, repr=False)
    files: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    incomplete: set[str] = field(default_factory=set)

    def table(self, name: str) -> list[Record]:
        return self.records.get(name, [])

    def __iter__(self) -> Iterator[Record]:
        for records in self.records.values():
            yield from records

    @property
    def count(self) -> int:
        return sum(len(r) for r in self.records.values())

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


def _unsafe(root: Path, name: Any) -> str | None:
    """Why a path must not be opened, or ``None``. Decided from the text first, before anything is touched."""
    if not isinstance(name, str) or not name:
        return "is not the name of a file"
    if not name.isprintable():
        return "holds a character that cannot be printed"
    if _SCHEME.match(name) or name.startswith(("//", "\\\\")):
        return "is an address or a drive, not a path inside the package"
    if "\\" in name:
        return "holds a backslash"
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or name.startswith("~"):
        return "leaves the package"
    # realpath follows links without opening what they lead to, and bears links that form a loop.
    if not Path(os.path.realpath(root / name)).is_relative_to(os.path.realpath(root)):
        return "leads out of the package through a link"
    return None


def read(path: Any = None) -> Package:
    """Read a package and keep what is wrong with it as findings.

    Raises :class:`InputError` only where there is no usable descriptor: without one, nothing says what
    the package is.
    """
    root = locate(path)
    place = str(root / DESCRIPTOR)
    try:
        descriptor = json.loads((root / DESCRIPTOR).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        what = f"the descriptor cannot be read: {error}"
        raise InputError(what, code="U102", place=place, mend="run `make schema`") from error
    resources = descriptor.get("resources") if isinstance(descriptor, dict) else None
    if not isinstance(resources, list) or not resources:
        raise InputError("the descriptor lists no resources", code="U102", place=place, mend="run `make schema`")

    package = Package(root, descriptor)
    specs = table_specs()
    seen: set[str] = set()
    for resource in resources:
        _read_resource(package, specs, resource if isinstance(resource, dict) else {}, seen)
    for found in sorted((root / "instruments").rglob("*")):
        name = found.relative_to(root).as_posix()
        if found.suffix.lower() == ".csv" and name not in seen:
            package.findings.append(rule("R016").finding(f"the file is not listed in {DESCRIPTOR}", file=name))
            package.incomplete.add(found.stem)
    return package


def _read_resource(package: Package, specs: dict[str, TableSpec], resource: dict[str, Any], seen: set[str]) -> None:
    """Read the files of one resource (one, as we write them; a list of paths is the older form)."""
    listed = resource.get("path")
    tables = []
    for name in listed if isinstance(listed, list) and listed else [listed]:
        reason = _unsafe(package.root, name)
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
        spec = _spec_of(specs, file)
        if spec is None:
            what, mend = "the schema knows no table for this file", "name and place it as the schema does"
            package.findings.append(rule("R016").finding(what, file=file, mend=mend))
            package.incomplete.add(PurePosixPath(file).stem)
            continue
        tables.append(_read_file(package, spec, file))
    _check_described(package, resource, tables)


def _spec_of(specs: dict[str, TableSpec], file: str) -> TableSpec | None:
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
    package.findings.extend(table.findings)
    if not table.complete:
        package.incomplete.add(spec.name)
    records = [
        Record(spec, dict(zip(spec.columns, row, strict=True)), table, index) for index, row in enumerate(table.rows)
    ]
    package.records.setdefault(spec.name, []).extend(records)
    if spec.scope == "package":
        return table
    folder = PurePosixPath(file).parts[1]
    for record in records:
        # An empty cell is a finding of the schema check.
        if record["cell"] not in (folder, ""):
            what = f"cell is {shown(record['cell'])} in the folder of {folder!r}"
            package.findings.append(record.finding("K004", "cell", what))
    return table


def _check_described(package: Package, resource: dict[str, Any], tables: list[Table]) -> None:
    """Compare files with what the descriptor says of them: a lost row must not go unseen.

    Files that could not be read to the end have an error already, and another count for that reason.
    """
    if not tables or not all(t.complete for t in tables):
        return
    actual = {"rows": sum(len(t.rows) for t in tables), "bytes": sum(t.size for t in tables)}
    said = [
        f"it says {resource[key]:,} {key}, the file has {count:,}"
        for key, count in actual.items()
        if isinstance(resource.get(key), int) and resource[key] != count
    ]
    digest = resource.get("hash")
    # No standard says what the hash of several files is.
    if not said and digest and len(tables) == 1 and str(digest).removeprefix("sha256:") != tables[0].sha256:
        said = ["the hash is another"]
    if said:
        what = f"{DESCRIPTOR} describes another state of this file: {said[0]}"
        package.findings.append(rule("R011").finding(what, file=tables[0].file))
