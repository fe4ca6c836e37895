"""Runs REGATTA's functions under an audit hook, and says which files were opened and which connections were tried.

    python tests/watched.py ALLOWED OUTSIDE < jobs.json > results.json

Run by tests/test_cases.py in a process of its own, since a hook cannot be taken out again. ``jobs`` is a list of
``["validate" | "fmt" | "schema", path]``. No connection is let through. Of opened and listed paths those are kept that
lie below OUTSIDE and not below ALLOWED.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg")
FILES = ("open", "os.listdir", "os.scandir")


def validate(path: str) -> Any:
    import regatta_tools

    return [[f.code, f.severity, f.file, f.message] for f in regatta_tools.validate(path).findings]


def fmt(path: str) -> Any:
    from regatta_tools.tables.formatter import format_paths

    return str(format_paths([path], check=True))[:2000]


def schema(path: str) -> Any:
    from regatta_tools.tables.tableschema import table_schemas

    return sorted(table_schemas(path))


JOBS: dict[str, Callable[[str], Any]] = {"validate": validate, "fmt": fmt, "schema": schema}


def main(allowed: str, outside: str) -> None:
    jobs = json.load(sys.stdin)
    for path in ("regatta_tools.validation.run", "regatta_tools.tables.tableschema", "linkml_runtime.utils.schemaview"):
        __import__(path)
    tried: list[str] = []
    watching = False

    def below(path: str, folder: str) -> bool:
        return os.path.abspath(path).startswith(folder + os.sep)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not watching:
            return
        if event in NETWORK:
            tried.append(f"{event} {arguments[-1] if event == 'socket.connect' else arguments[:2]}")
            raise PermissionError("no request leaves this process")
        if event in FILES and isinstance(arguments[0], str | bytes):
            path = os.fsdecode(arguments[0])
            if (below(path, outside) and not below(path, allowed) and path != allowed) or "://" in path:
                tried.append(f"{event} {path}")

    sys.addaudithook(hook)
    results = []
    for name, path in jobs:
        tried.clear()
        watching = True
        try:
            said: Any = JOBS[name](path)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        watching = False
        results.append({"said": said, "tried": list(tried)})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
