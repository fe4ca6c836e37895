"""The whole check of a package or a suite file, in the order in which findings build on each other."""

from __future__ import annotations

import os
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding, Report, ordered
from regatta_tools.tables.package import DESCRIPTOR, Package, locate, read

#: Endings of suite and label files.
SUITE_ENDINGS = (".yaml", ".yml", ".json")


def check_package(package: Package, *, as_of: date | None = None) -> list[Finding]:
    """All findings on a package as read: reading, schema, keys and references, rules.

    ``as_of`` replaces each cell's own date in the rules about time. Rules that compare tables run only
    over tables whose files could be read, and a rule says nothing on a cell that is not even of its
    form: the first thing that is wrong is a finding already, and would only be told again.
    """
    from regatta_tools.validation import keys, python_rules, schema, sql

    form = schema.check(package)
    malformed = {(f.file, f.line, f.column) for f in form}
    rules = [*sql.check(package, as_of), *python_rules.check(package)]
    rules = [f for f in rules if (f.file, f.line, f.column) not in malformed]
    return ordered([*package.findings, *form, *keys.check(package), *rules])


def parse_as_of(value: Any) -> date | None:
    """An ISO date from text. Raises :class:`InputError` for anything else."""
    if isinstance(value, datetime):
        return value.date()
    if value is None or isinstance(value, date):
        return value
    try:
        # fromisoformat alone takes 20261130 and week dates too.
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", str(value)):
            return date.fromisoformat(str(value))
    except ValueError:
        pass
    raise InputError(f"{str(value)!r} is not a date", code="U104", mend="write it as 2026-11-30")


def validate(path: Any = None, *, as_of: Any = None) -> Report:
    """See :func:`regatta_tools.validate`."""
    when = parse_as_of(as_of)
    if path is not None:
        given = Path(path)
        if given.suffix.lower() in SUITE_ENDINGS and given.name != DESCRIPTOR and not os.path.isdir(given):
            from regatta_tools.suites.reader import check_file

            return check_file(given)
    root = locate(path)
    package = read(root)
    findings = check_package(package, as_of=when)
    return Report(tuple(findings), files=len(package.files), records=package.count, checked=str(root))


def load(path: Any = None) -> Package:
    """Read a package for use. Raises :class:`InputError` where reading or the checks find an error."""
    package = read(path)
    errors = [f for f in check_package(package) if f.severity == "error"]
    if errors:
        first = errors[0]
        raise InputError(
            f"the package has {len(errors)} error(s), the first: {first.message}",
            code=first.code,
            place=first.place(),
            mend="run `regatta validate` and mend what it lists",
        )
    return package
