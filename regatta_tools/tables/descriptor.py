"""The Data Package descriptor of instruments/: which files there are, in what form, with what content.

``make schema`` writes what :func:`build` returns to ``datapackage.json``. Every CSV file is a resource
of its own, because Frictionless reads several files of one resource as one text: it drops the headers
of all but the first and glues rows where a file lacks its last line break.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

from regatta_tools import paths
from regatta_tools.errors import InputError
from regatta_tools.rules.registry import rule
from regatta_tools.safety import unsafe
from regatta_tools.tables.model import load_model
from regatta_tools.tables.reader import Table, read_raw

_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
# Written out though some are defaults: readers differ in theirs, and the reader of tables.reader
# accepts nothing else.
DIALECT: dict[str, Any] = {
    "delimiter": ",",
    "lineTerminator": "\n",
    "quoteChar": '"',
    "doubleQuote": True,
    "header": True,
    "skipInitialSpace": False,
}


def build(
    root: Path, *, model: dict[str, Any] | None = None, tables: dict[str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the descriptor of the package at ``root`` (Data Package version 2).

    Resources are the CSV files that exist: package tables first, then the tables of each cell in
    alphabetical order of the cells, each in schema order. Names are ``sources`` or
    ``insurance-us-requirements``. ``hash`` is ``sha256:`` and the hexadecimal digest of the file,
    ``bytes`` its size, and ``rows`` (ours) its number of records without the header. Foreign keys point
    to tables of the same cell or of the package; one whose table has no file is left out. Files that the
    schema does not know are not listed. ``model`` and ``tables`` default to the compiled model and
    generated Table Schemas of this installation. No time stamp goes in. Raises
    :class:`~regatta_tools.errors.InputError` for a file that no CSV reader gets through, or that is none.
    """
    model = load_model() if model is None else model
    tables = _generated_tables() if tables is None else tables
    scopes = {c["table"]: c["scope"] for c in model["classes"].values() if c["table"]}
    folder = root / "instruments"
    cells = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    files: list[tuple[str, str, str | None, Path]] = []  # resource name, table, cell, file
    for cell in [None, *cells]:
        for table, scope in scopes.items():
            if (scope == "package") != (cell is None):
                continue
            place = {"package": folder, "cell": folder / (cell or ""), "context": folder / (cell or "") / "context"}
            file = place[scope] / f"{table}.csv"
            if os.path.lexists(file):
                files.append((_name(table, cell), table, cell, file))
    names = {name for name, *_ in files}
    resources = []
    for name, table, cell, file in files:
        content = table_content(root, file.relative_to(root).as_posix())
        resources.append(
            {
                "name": name,
                "type": "table",
                "path": file.relative_to(root).as_posix(),
                "description": tables[table].get("description", ""),
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "bytes": len(content),
                "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
                "rows": _rows(content, file.relative_to(root).as_posix()),
                "dialect": dict(DIALECT),
                "schema": _resolved(tables[table], table, cell, scopes, names),
            }
        )
    return {
        "$schema": _PROFILE,
        "name": "regatta-instruments",
        "title": "REGATTA instruments",
        "description": (
            "Legal obligations with their sources (C1), planted faults (C2), and the probes on which judges are "
            "calibrated, for each cell of domain and jurisdiction. A research instrument, no legal advice."
        ),
        "version": model["version"],
        "licenses": [
            {
                "name": "CC-BY-4.0",
                "path": "https://creativecommons.org/licenses/by/4.0/",
                "title": "Creative Commons Attribution 4.0 International",
            }
        ],
        "resources": resources,
    }


def table_content(root: Path, file: str) -> bytes:
    """The bytes of a table of a package, ``file`` as its path from ``root``.

    Raises :class:`~regatta_tools.errors.InputError` for what :func:`regatta_tools.validate` would refuse to open: a
    link that leads out of the package, what is no file, or one beyond measure. None of them is opened.
    """
    table = Table(file)
    if reason := unsafe(root, file):
        raise InputError(f"the path {reason}", code="R015", place=file, mend=rule("R015").mend)
    content = read_raw(root / file, table)
    if content is None:
        (finding,) = table.findings
        raise InputError(finding.message, code=finding.code, place=file, mend="put the table there, or take this away")
    return content


def _generated_tables() -> dict[str, dict[str, Any]]:
    folder = paths.generated_dir() / "table-schemas"
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}


def _name(table: str, cell: str | None) -> str:
    return table if cell is None else f"{cell}-{table}"


def _rows(content: bytes, place: str) -> int:
    """Count records, the header left out. A blank line counts: the reader objects to it, it is not to vanish here."""
    text = content.decode("utf-8", errors="replace")  # the reader of tables.reader reports bad bytes
    try:
        return max(sum(1 for _ in csv.reader(io.StringIO(text, newline=""), strict=True)) - 1, 0)
    except csv.Error as err:
        raise InputError(f"The file cannot be read as CSV: {err}", place=place, mend="regatta validate") from err


def _resolved(
    schema: dict[str, Any], table: str, cell: str | None, scopes: dict[str, str], names: set[str]
) -> dict[str, Any]:
    """Copy a Table Schema for one file: foreign keys name resources, and the column ``cell`` holds that cell alone."""
    resolved = copy.deepcopy(schema)
    # A schema inside a resource goes by the descriptor's version, and its name is the resource's.
    for key in ("$schema", "name"):
        resolved.pop(key, None)
    kept = []
    for key in resolved.pop("foreignKeys", []):
        target = key["reference"]["resource"]
        if target:
            target = _name(target, None if scopes[target] == "package" else cell)
            if target not in names:
                continue
        key["reference"]["resource"] = target
        kept.append(key)
    if kept:
        resolved["foreignKeys"] = kept
    if cell is not None:
        # A row of another cell in this folder points to a cell that is there, so no foreign key objects.
        for field in resolved["fields"]:
            if field["name"] == "cell":
                field["constraints"] = {**field.get("constraints", {}), "enum": [cell]}
    return resolved
