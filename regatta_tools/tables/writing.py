"""Writing tables: rows to CSV bytes, and the descriptor's words about them."""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.tables.package import DESCRIPTOR, locate

_CARRIED = Path(__file__).resolve().parent.parent / "_data"  # the package inside an installed wheel


def csv_bytes(columns: list[str], rows: Iterable[list[str]]) -> bytes:
    """A table in the dialect of the package: UTF-8, LF, commas, quotes only where a cell needs them."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([columns, *rows])
    return out.getvalue().encode("utf-8")


def json_bytes(content: Any) -> bytes:
    """A descriptor as the schema build writes it."""
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def renewed(descriptor: dict[str, Any], contents: Mapping[str, bytes], rows: Mapping[str, int]) -> dict[str, Any]:
    """A copy of a descriptor whose ``bytes``, ``hash`` and ``rows`` are those of the new ``contents``.

    Both mappings are by path inside the package. Only these files are renewed: a file that somebody
    changed otherwise stays described as it was, so that R011 keeps saying so. Raises
    :class:`InputError` for a file that has no resource of its own.
    """
    result = copy.deepcopy(descriptor)
    own = {}
    for resource in result["resources"]:
        path = resource.get("path")
        own[path[0] if isinstance(path, list) and len(path) == 1 else str(path)] = resource
    for file, content in contents.items():
        if file not in own:
            mend = "describe one file a resource: `make schema`"
            raise InputError(f"{DESCRIPTOR} has no resource of its own for {file}", code="U102", mend=mend)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        own[file].update({"bytes": len(content), "hash": digest, "rows": rows[file]})
    return result


def locate_for_writing(path: Any = None) -> Path:
    """The root of a package that may be written to.

    Without ``path`` that is the current folder and nothing else: a command must not change a package
    that nobody named. The package inside an installation is refused, because the next update of
    REGATTA would throw the work away.
    """
    if path is None and not (os.path.isfile(DESCRIPTOR) and os.path.isdir("instruments")):
        raise InputError(
            f"the current folder holds no package ({DESCRIPTOR} and instruments/), and this command writes to one",
            code="U101",
            mend="go to the folder of your package, or name it with --package",
        )
    root = locate(path)
    if root.resolve().is_relative_to(_CARRIED):
        raise InputError(
            "this is the package inside the installation of REGATTA, which an update would overwrite",
            code="U101",
            place=str(root),
            mend="work in a folder of your own; docs/new-cell.md says how to start one",
        )
    return root

