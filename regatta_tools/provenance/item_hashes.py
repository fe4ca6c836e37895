"""The hashes of all items at once: what :func:`.checks.item_hash` gives one by one, made of whole columns.

A package may have 300,000 citations, and the gate (:mod:`regatta_tools.validation.readings_gate`) asks for all of them
on every check. So each text is written as JSON once, however often it stands in its column.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from json.encoder import encode_basestring, encode_basestring_ascii

from regatta_tools.provenance.checks import LEFT_OUT
from regatta_tools.tables.package import Package, table_specs


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
    sha256 = hashlib.sha256
    return [
        sha256(b'{"citation":' + body.encode() + shared[of] + sources.get(source, b"{}}")).hexdigest()
        for body, of, source in zip(
            _bodies(package, "citations"),
            package.column("citations", "requirement"),
            package.column("citations", "source"),
            strict=True,
        )
    ]


def _bodies(package: Package, table: str) -> list[str]:
    """Each row of a table as canonical JSON: columns by name, without empty cells and what is left out."""
    parts: list[list[str]] = []
    for column in sorted(set(table_specs()[table].columns) - set(LEFT_OUT[table])):
        cells = package.column(table, column)
        told = set(cells)
        name = f',"{column}":'
        if len(told) > len(cells) // 2:
            parts.append([name + encode_basestring(cell) if cell else "" for cell in cells])
        elif told != {""}:
            written = {cell: name + encode_basestring(cell) if cell else "" for cell in told}
            parts.append(list(map(written.__getitem__, cells)))
    return [f"{{{row[1:]}}}" for row in map("".join, zip(*parts, strict=True))]


def _facts(package: Package) -> dict[str, list[str]]:
    """The facts of each requirement, in the order that :func:`.checks.item_hash` gives them."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    ids = map(encode_basestring_ascii, package.column("facts", "id"))
    for number, (key, of) in enumerate(zip(ids, package.column("facts", "requirement"), strict=True)):
        found[of].append((key, number))
    bodies = _bodies(package, "facts")
    columns, rows = table_specs()["facts"].columns, package.rows("facts")

    def whole(fact: tuple[str, int]) -> str:
        return json.dumps({c: cell for c, cell in zip(columns, rows[fact[1]], strict=True) if cell})

    for facts in found.values():
        if len(facts) > 1:
            # The id comes first in a row, and decides unless it is missing or stands twice.
            told = {key for key, _ in facts}
            facts.sort(key=None if len(told) == len(facts) and '""' not in told else whole)
    return {of: [bodies[number] for _, number in facts] for of, facts in found.items()}
