"""The canonical form of the tables, and bringing files into it without losing anything.

Canonical: UTF-8 without byte-order mark, commas, LF, a line end after the last row; columns in schema
order; rows in natural order of their ids (``r2`` before ``r10``), or of their keys where a table has no
ids; quotes only round cells that need them; cells in Unicode form NFC without white space at their edges.

A file is read by the delimiter and the order of columns that its own header shows. The set of its records
is the same before and after, which is checked on the bytes that would be written. A file that cannot be
read beyond doubt is refused with the finding of the reader, and left as it is.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.files import replace_files
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rule
from regatta_tools.safety import unsafe
from regatta_tools.tables.package import DESCRIPTOR, TableSpec, spec_of, table_specs
from regatta_tools.tables.reader import LOSING, Table, read_content, read_raw
from regatta_tools.tables.writing import csv_bytes, json_bytes, renewed
from regatta_tools.text import decode

Row = list[str]
#: Delimiters that a file may have, by name. Only the first is canonical.
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_LONE_RETURN = re.compile("\r(?!\n)")
_DIGITS = re.compile("([0-9]+)")


# One file


@dataclass(frozen=True)
class Formatted:
    """One file as it stands and as it should be.

    ``after`` is ``None`` where the file is refused; ``refusals`` then says why. ``steps`` says in words
    what differs. ``rows_before`` and ``rows_after`` count records without the header, as the reader does.
    """

    file: str
    before: bytes = field(repr=False)
    after: bytes | None = field(default=None, repr=False)
    steps: tuple[str, ...] = ()
    refusals: tuple[Finding, ...] = ()
    rows_before: int = 0
    rows_after: int = 0

    @property
    def refused(self) -> bool:
        return self.after is None

    @property
    def changed(self) -> bool:
        return self.after is not None and self.after != self.before

    def first_difference(self) -> tuple[int, str, str] | None:
        """The first line that differs: its number, what it is, what it should be. ``None`` where nothing does."""
        if not self.changed:
            return None
        assert self.after is not None
        is_, should = (content.decode("utf-8").split("\n") for content in (self.before, self.after))
        number = next(i for i in range(max(len(is_), len(should))) if is_[i : i + 1] != should[i : i + 1])
        ends = (lines[number] if number < len(lines) else "(end of file)" for lines in (is_, should))
        return number + 1, *ends


def format_content(raw: bytes, file: str, spec: TableSpec) -> Formatted:
    """Bring the bytes of one file into canonical form. ``file`` is the name to report; nothing is written."""
    text, problem = decode(raw)
    if problem is not None:
        return Formatted(file, raw, refusals=tuple(read_content(raw, file, spec.columns).findings))
    delimiter, header = _header_of(text, spec.columns)
    # Exchanging two signs keeps every place, so that the reader's findings are true of the file itself.
    exchange = str.maketrans({delimiter: ",", ",": delimiter})
    table = read_content(text.translate(exchange).encode("utf-8"), file, header or spec.columns)
    if refusals := _refusals(table):
        return Formatted(file, raw, refusals=refusals)

    named = [_normal(name) for name in table.header]
    order = [named.index(column) for column in spec.columns]
    present = [[row[at] for at in order] for row in table.rows]
    if delimiter != ",":
        present = [[cell.translate(exchange) for cell in row] for row in present]
    normal = [row for row in ([_normal(cell) for cell in row] for row in present) if any(row)]
    rows = in_order(normal, spec)
    after = csv_bytes(spec.columns, rows)

    again = read_content(after, file, spec.columns)
    if not again.complete:
        # A normal form can be longer than what was typed, and then too long for a cell.
        return Formatted(file, raw, refusals=tuple(f for f in again.findings if f.code in LOSING))
    if again.header != spec.columns or Counter(map(tuple, again.rows)) != Counter(map(tuple, normal)):
        raise AssertionError(f"formatting {file} would change its records")
    steps = [
        step
        for step, taken in (
            ("byte-order mark dropped", raw.startswith(b"\xef\xbb\xbf")),
            (f"{DELIMITERS[delimiter]}s to commas", delimiter != ","),
            ("CRLF to LF", "\r\n" in text),
            ("columns in the order of the schema", named != spec.columns),
            ("empty rows dropped", len(normal) < len(present) or _blank_lines(table) > 0),
            ("text to NFC", not unicodedata.is_normalized("NFC", text)),
            ("white space at the edges of cells dropped", any(c != c.strip() for r in [named, *present] for c in r)),
            ("rows in order", rows != normal),
            ("line end after the last row", not text.endswith("\n")),
        )
        if taken
    ]
    if after != raw and not steps:
        steps = ["quotes only where they are needed"]
    return Formatted(file, raw, after, tuple(steps), rows_before=len(table.rows), rows_after=len(rows))


def in_order(rows: Iterable[Row], spec: TableSpec) -> list[Row]:
    """Rows (cells in schema order) sorted by id or key, and by all their cells where that leaves a choice."""
    names = [spec.identifier] if spec.identifier else next(iter(spec.unique_keys.values()), spec.columns)
    at = [spec.columns.index(name) for name in names]
    return sorted(rows, key=lambda row: ([natural_key(row[i]) for i in at], row))


def natural_key(text: str) -> list[tuple[int, int, str, str]]:
    """A key by which runs of digits sort by their value: ``r2 < r10``, ``us-9 < us-usc``. Total: no two texts tie."""
    parts = _DIGITS.split(text)
    key = []
    for number, part in enumerate(parts):
        if number % 2:
            value = part.lstrip("0")  # not through int, which refuses thousands of digits
            key.append((0, len(value), value, part))
        elif part:
            key.append((1, 0, part, ""))
    return key


def _normal(cell: str) -> str:
    return unicodedata.normalize("NFC", cell.replace("\r\n", "\n")).strip()


def _header_of(text: str, columns: list[str]) -> tuple[str, Row | None]:
    """The delimiter that makes the first record the header of the table, and that record as it stands.

    Where none does, the one that the first line looks like, and ``None``: the reader then says what is wrong.
    """
    wanted = sorted(columns)
    for sign in DELIMITERS:
        try:
            header = next(csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True), [])
        except csv.Error:
            continue
        if sorted(_normal(name) for name in header) == wanted:
            return sign, header
    first = text.partition("\n")[0]
    return max(DELIMITERS, key=first.count), None


def _refusals(table: Table) -> tuple[Finding, ...]:
    """The findings after which a row could be missing or another one; empty where all rows are known."""
    if _LONE_RETURN.search(table.text):
        return tuple(f for f in table.findings if f.code in LOSING or f.message.startswith("carriage return"))
    losing = tuple(f for f in table.findings if f.code in LOSING)
    return () if _blank_lines(table) == len(losing) else losing


def _blank_lines(table: Table) -> int:
    """How many of the findings are rows without any content, which can be dropped."""
    wrong = [f.line for f in table.findings if f.code == "R007"]
    if not wrong:
        return 0
    lines = table.text.split("\n")
    # Line 0 stands for rows that are counted and not named: they could be any.
    return sum(line > 0 and not lines[line - 1].strip() for line in wrong)


# Files of packages


@dataclass(frozen=True)
class FormatReport:
    """What was done, or with ``check`` would be done, in one package.

    ``undescribed`` are files that ``datapackage.json`` does not describe, neither as they were nor as they
    are: an edit that is still to be described, or a row that was lost.
    """

    root: Path
    check: bool
    files: tuple[Formatted, ...]
    undescribed: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[Formatted, ...]:
        return tuple(f for f in self.files if f.changed)

    @property
    def refused(self) -> tuple[Formatted, ...]:
        return tuple(f for f in self.files if f.refused)

    @property
    def ok(self) -> bool:
        """Whether every file is canonical now."""
        return not self.refused and not (self.check and self.changed)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        files = []
        for formatted in self.files:
            state = "refused" if formatted.refused else "changed" if formatted.changed else "unchanged"
            entry: dict[str, Any] = {"file": formatted.file, "state": state, "steps": list(formatted.steps)}
            if difference := formatted.first_difference():
                entry |= dict(zip(("line", "is", "should_be"), difference, strict=True))
            entry["findings"] = [f.as_dict() for f in formatted.refusals]
            files.append(entry)
        return {
            "ok": self.ok,
            "check": self.check,
            "package": str(self.root),
            "files": files,
            "undescribed": list(self.undescribed),
        }


def format_paths(paths: Sequence[Path | str], *, check: bool = False) -> list[FormatReport]:
    """Bring files into canonical form, or with ``check`` only say which are not.

    A path is a package folder, its descriptor, a folder inside a package (all tables below it) or a table.
    Each file is replaced whole or left as it is, and keeps its permissions. What ``datapackage.json`` says of
    a file is renewed where it was true of the file before: a row that was lost before stays visible (R011).
    Raises :class:`InputError` for a path that is not in a package, before anything is written, and
    :class:`EnvironmentProblem` where a file cannot be written.
    """
    wanted: dict[Path, set[str]] = {}
    descriptors: dict[Path, dict[str, Any]] = {}
    for path in paths:
        root, below, names = _tables_below(path)
        if root not in descriptors:
            descriptors[root] = _read_descriptor(root)
        if below:
            # A table that is gone, or is a folder, is no reason to call the others canonical.
            names += [name for name in _described(descriptors[root]) if name.startswith(below)]
        wanted.setdefault(root, set()).update(names)
    return [_format_package(root, sorted(names), descriptors[root], check) for root, names in wanted.items()]


def _tables_below(path: Path | str) -> tuple[Path, str, list[str]]:
    """The package that a path is in, the folder that it means (empty for a table), and the tables that it means.

    Folder and tables are paths from the package.
    """
    if not str(path) or "\0" in str(path):
        raise InputError("no such file or folder", code="U101", place=str(path) or "''", mend="name a package")
    given = Path(os.path.realpath(path))
    mend = f"name a folder with a {DESCRIPTOR} and instruments/, or something inside one"
    try:
        exists = given.exists()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", code="U101", place=str(path), mend=mend) from error
    if not exists:
        raise InputError("no such file or folder", code="U101", place=str(path), mend=mend)
    for root in (given, *given.parents):
        if (root / DESCRIPTOR).is_file() and (root / "instruments").is_dir():
            break
    else:
        raise InputError("this is not in a package", code="U101", place=str(path), mend=mend)
    if given.is_dir() or given == root / DESCRIPTOR:
        below = root / "instruments" if given in (root, root / DESCRIPTOR) else given
        found = sorted(p for p in below.rglob("*") if p.suffix.lower() == ".csv" and not p.is_dir())
        return root, below.relative_to(root).as_posix() + "/", [p.relative_to(root).as_posix() for p in found]
    return root, "", [given.relative_to(root).as_posix()]


def _format_package(root: Path, names: list[str], descriptor: dict[str, Any], check: bool) -> FormatReport:
    files = [_format_file(root, name) for name in names]
    described = _described(descriptor)
    if not check:
        _write(root, descriptor, [f for f in files if f.changed])
    undescribed = [
        f.file
        for f in files
        if f.after is not None
        and f.file in described
        and not _fits(described[f.file], f.before, f.rows_before)
        and not _fits(described[f.file], f.after, f.rows_after)
    ]
    return FormatReport(root, check, tuple(files), tuple(undescribed))


def _format_file(root: Path, name: str) -> Formatted:
    if reason := unsafe(root, name):
        return Formatted(name, b"", refusals=(rule("R015").finding(f"the path {reason}", file=name),))
    spec = spec_of(table_specs(), name)
    if spec is None:
        what = "the schema knows no table for this file"
        mend = "name and place it as the schema does"
        return Formatted(name, b"", refusals=(rule("R016").finding(what, file=name, mend=mend),))
    table = Table(name)
    raw = read_raw(root / name, table)
    return Formatted(name, b"", refusals=tuple(table.findings)) if raw is None else format_content(raw, name, spec)


def _write(root: Path, descriptor: dict[str, Any], changed: list[Formatted]) -> None:
    """Write files, and let the descriptor follow those that it described before."""
    for formatted in changed:
        if read_raw(root / formatted.file, Table(formatted.file)) != formatted.before:
            raise EnvironmentProblem(
                "another program changed the file while it was being formatted; no file is written",
                code="E308",
                place=formatted.file,
                mend="give the command again",
            )
    described = _described(descriptor)
    follow = [f for f in changed if f.file in described and _fits(described[f.file], f.before, f.rows_before)]
    contents = {root / f.file: _content(f) for f in changed}
    if follow:
        rows = {f.file: f.rows_after for f in follow}
        contents[root / DESCRIPTOR] = json_bytes(renewed(descriptor, {f.file: _content(f) for f in follow}, rows))
    replace_files(contents)


def _content(formatted: Formatted) -> bytes:
    assert formatted.after is not None
    return formatted.after


# The descriptor


def _read_descriptor(root: Path) -> dict[str, Any]:
    path = root / DESCRIPTOR
    try:
        descriptor = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        what = f"the descriptor cannot be read: {error}"
        raise InputError(what, code="U102", place=str(path), mend="run `make schema`") from error
    if not isinstance(descriptor, dict) or not isinstance(descriptor.get("resources"), list):
        raise InputError("the descriptor lists no resources", code="U102", place=str(path), mend="run `make schema`")
    return descriptor


def _described(descriptor: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The resources of one file each, by file. (What is said of several files together is not renewed here.)"""
    found: dict[str, dict[str, Any]] = {}
    for resource in descriptor["resources"]:
        path = resource.get("path") if isinstance(resource, dict) else None
        if isinstance(path, list) and len(path) == 1:
            path = path[0]
        if isinstance(path, str):
            found.setdefault(path, resource)
    return found


def _facts(content: bytes, rows: int) -> dict[str, Any]:
    return {"bytes": len(content), "hash": f"sha256:{hashlib.sha256(content).hexdigest()}", "rows": rows}


def _fits(resource: dict[str, Any], content: bytes, rows: int) -> bool:
    """Whether what a resource says of a file is true of a content."""
    facts = _facts(content, rows)
    said = {key: value for key, value in resource.items() if key in facts}
    if isinstance(said.get("hash"), str):
        said["hash"] = "sha256:" + said["hash"].removeprefix("sha256:")
    return said.items() <= facts.items()
