"""The hashes of all items at once: what :func:`.checks.item_hash` gives one by one, made of whole columns.

A package may have 300,000 citations, and the gate (:mod:`regatta_tools.validation.readings_gate`) asks for all of them
on every check. So each text is written as JSON once, however often it stands in its column.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import repeat
from json.encoder import encode_basestring, encode_basestring_ascii

from regatta_tools.provenance.checks import LEFT_OUT
from regatta_tools.tables.package import Package, table_specs
from regatta_tools.text import canonical_json


def item_hashes(package: Package) -> list[str]:
    """The hash of the item of each citation, in the order of the table; the same as :func:`.checks.item_hash`.

    A citation of what is no requirement gets the hash of an empty one.
    """
    facts = _facts(package)
    # What the citations of a requirement have in common is put together and encoded once.
    shared = defaultdict(lambda: b',"facts":[],"requirement":{},"source":')
    ids = package.column("requirements", "id")
    bodies = dict.fromkeys(facts, "{}") | dict(zip(ids, _bodies(package, "requirements"), strict=True))
    for key, body in bodies.items():
        shared[key] = f',"facts":[{",".join(facts.get(key, ()))}],"requirement":{body},"source":'.encode()
    sources = {
        key: f"{body}}}".encode()
        for key, body in zip(package.column("sources", "id"), _bodies(package, "sources"), strict=True)
    }
    sha256, join = hashlib.sha256, b"".join
    return [
        sha256(join((b'{"citation":', body.encode(), shared[of], sources.get(source, b"{}}")))).hexdigest()
        for body, of, source in zip(
            _bodies(package, "citations"),
            package.column("citations", "requirement"),
            package.column("citations", "source"),
            strict=True,
        )
    ]


def _bodies(package: Package, table: str) -> list[str]:
    """Each row of a table as canonical JSON: columns by name, without empty cells and what is left out."""
    columns = sorted(set(table_specs()[table].columns) - set(LEFT_OUT[table]))
    told = {column: set(package.column(table, column)) for column in columns}
    # The first column that no row leaves empty: those before it bring a comma behind them, those after it one before.
    always = next((column for column in columns if "" not in told[column]), None)
    parts: list[Iterable[str]] = [repeat("{")]
    for column in columns:
        if told[column] == {""}:
            continue
        cells = package.column(table, column)
        before, behind = "," * (column > (always or "")), "," * (column < (always or ""))
        name = f'{before}"{column}":'
        if "" not in told[column] and len(told[column]) > len(cells) // 2:
            parts += [repeat(name), map(encode_basestring, cells)]
        else:
            written = {cell: f"{name}{encode_basestring(cell)}{behind}" if cell else "" for cell in told[column]}
            parts.append(map(written.__getitem__, cells))
    if always is not None:
        return list(map("".join, zip(*parts, repeat("}"))))
    return [canonical_json(row) for row in _filled(package, table)]


def _filled(package: Package, table: str) -> Iterator[dict[str, str]]:
    """The filled cells of each row, without what is left out."""
    columns, out = table_specs()[table].columns, LEFT_OUT[table]
    for row in package.rows(table):
        yield {column: cell for column, cell in zip(columns, row, strict=True) if cell and column not in out}


def _facts(package: Package) -> dict[str, list[str]]:
    """The facts of each requirement, in the order that :func:`.checks.item_hash` gives them."""
    ids = list(map(encode_basestring_ascii, package.column("facts", "id")))
    bodies, of = _bodies(package, "facts"), package.column("facts", "requirement")
    body_of = dict(zip(ids, bodies, strict=True))
    if len(body_of) == len(ids) and '""' not in body_of:
        # The id comes first in a row and decides alone.
        keys: dict[str, list[str]] = defaultdict(list)
        for key, requirement in zip(ids, of, strict=True):
            keys[requirement].append(key)
        return {requirement: [body_of[key] for key in sorted(own)] for requirement, own in keys.items()}
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for cells, body, requirement in zip(_filled(package, "facts"), bodies, of, strict=True):
        found[requirement].append((json.dumps(cells), body))
    return {requirement: [body for _, body in sorted(own)] for requirement, own in found.items()}
