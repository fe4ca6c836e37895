"""Recording the hashes of passages in ``citations.csv``, so that a changed text or locator is seen later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from regatta_tools.errors import InputError
from regatta_tools.files import replace_files
from regatta_tools.provenance import checks, passages
from regatta_tools.provenance.corpus import Corpus
from regatta_tools.tables.package import DESCRIPTOR, Package
from regatta_tools.tables.writing import csv_bytes, json_bytes, renewed


@dataclass
class Hashed:
    """What :func:`record_hashes` did: ids of citations by whether their hash is new, changed, right or not there."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)
    untaken: dict[str, str] = field(default_factory=dict)


def record_hashes(
    package: Package, corpus: Corpus, *, cells: Iterable[str] = (), requirements: Iterable[str] = (),
    changed: bool = False,
) -> Hashed:  # fmt: skip
    """Write the hash of each held passage, and the name of its form, into ``citations.csv``.

    ``cells`` and ``requirements`` (ids) narrow it down.
    A hash that differs from the recorded one says that the passage is another than was read. It is replaced only with
    ``changed``; without, :class:`InputError` names the first, and nothing is written.
    """
    index, wanted, named = checks.Index(package), set(cells), set(requirements)
    result = Hashed()
    rows: dict[str, list[list[str]]] = defaultdict(list)
    for citation in package.table("citations"):
        values = dict(citation.cells)
        if (not wanted or citation["cell"] in wanted) and (not named or citation["requirement"] in named):
            read, troubles = checks.read_citation(index, citation, corpus)
            if read.passage is None:
                result.untaken[citation.key] = troubles[0].message if troubles else "the passage is not held"
            else:
                now = {"passage_hash": read.passage.sha256, "normalisation": passages.NORMALISATION}
                _count(result, citation.key, {k: values[k] for k in now}, now)
                values |= now
        rows[citation.file].append([values[c] for c in citation.spec.columns])
    if result.changed and not changed:
        raise InputError(
            f"{len(result.changed)} passages are not those whose hash is recorded, the first: {result.changed[0]}",
            code="A223",
            mend="read them again (`regatta audit` lists them), then give --changed",
        )
    columns = package.table("citations")[0].spec.columns if package.table("citations") else []
    contents = {file: csv_bytes(columns, cells) for file, cells in rows.items()}
    contents = {f: c for f, c in contents.items() if (package.root / f).read_bytes() != c}
    if contents:
        descriptor = renewed(package.descriptor, contents, {f: len(rows[f]) for f in contents})
        files = {package.root / f: c for f, c in contents.items()}
        replace_files(files | {package.root / DESCRIPTOR: json_bytes(descriptor)})
    return result


def _count(result: Hashed, key: str, recorded: dict[str, str], now: dict[str, str]) -> None:
    if not recorded["passage_hash"]:
        result.new.append(key)
    elif recorded == now:
        result.right.append(key)
    else:
        result.changed.append(key)
