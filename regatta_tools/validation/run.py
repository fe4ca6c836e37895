"""The whole check of a package or a suite file, in the order in which findings build on each other."""

from __future__ import annotations

import os
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.garbage import search_paused
from regatta_tools.rules.findings import Finding, Report, Waived, ordered
from regatta_tools.tables.package import DESCRIPTOR, Package, locate, read

#: Endings of suite and label files.
SUITE_ENDINGS = (".yaml", ".yml", ".json")
#: States of packages that :func:`load` found to be without an error, with the day on which it did.
_SOUND: set[tuple[str, date]] = set()


def check_package(package: Package, *, as_of: date | None = None, today: date | None = None) -> list[Finding]:
    """All findings on a package as read that no waiver takes out; see :func:`check_with_waivers`."""
    return check_with_waivers(package, as_of=as_of, today=today)[0]


@search_paused()
def check_with_waivers(
    package: Package, *, as_of: date | None = None, today: date | None = None
) -> tuple[list[Finding], list[Waived]]:
    """The findings on a package as read (reading, schema, keys and references, rules), and those that are waived.

    ``as_of`` replaces each cell's own date in the rules about time. Rules that compare tables run only
    over tables whose files could be read, and a rule says nothing on a cell that is not even of its
    form: the first thing that is wrong is a finding already, and would only be told again.

    A waiver ends by the calendar, not with the law of a cell: its last day is held against ``today``, by
    default ``as_of`` where that is given and else the day of the check. No clock is read in a package
    without waivers.
    """
    from regatta_tools.validation import (
        damage,
        fault_pairs,
        keys,
        languages,
        python_rules,
        readings_gate,
        schema,
        separation,
        sql,
        waivers,
    )

    with package.columns_kept():
        form = schema.check(package)
        found = keys.check(package)
        rules = sql.check(package, as_of)
        for part in (python_rules, fault_pairs, languages, separation, damage):
            rules += part.check(package)
        rules += readings_gate.check(package, [*package.findings, *form, *found, *rules])
    malformed = {(f.file, f.line, f.column) for f in form}
    rules = [f for f in rules if (f.file, f.line, f.column) not in malformed]
    findings = ordered([*package.findings, *form, *found, *rules])
    if not package.table("waivers"):
        return findings, []
    findings, waived = waivers.apply(package, findings, today or as_of or date.today(), usual=as_of is None)
    return ordered(findings), waived


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


def validate(path: Any = None, *, as_of: Any = None, today: Any = None, changed_since: str | None = None) -> Report:
    """See :func:`regatta_tools.validate`."""
    when, day = parse_as_of(as_of), parse_as_of(today)
    report = _report(path, when, day)
    if changed_since is None:
        return report
    from regatta_tools.validation import readings_gate
    from regatta_tools.validation.changes import brought_in, changed_lines

    new = brought_in(report, changed_since, lambda before: _report(before, when, day))
    if not any(f.code == "A001" for f in new.findings):
        return new
    package = read(Path(report.checked))
    return readings_gate.at_the_change(new, package, changed_lines(package.root, changed_since))


@search_paused()
def _report(path: Any, as_of: date | None, today: date | None) -> Report:
    if path is not None:
        given = Path(path)
        if given.suffix.lower() in SUITE_ENDINGS and given.name != DESCRIPTOR and not os.path.isdir(given):
            from regatta_tools.suites.reader import check_file

            return check_file(given)
    root = locate(path)
    package = read(root)
    findings, waived = check_with_waivers(package, as_of=as_of, today=today)
    return Report(
        tuple(findings), files=len(package.files), records=package.count, checked=str(root), waived=tuple(waived)
    )


def load(path: Any = None, *, today: Any = None) -> Package:
    """Read a package for use. Raises :class:`InputError` where reading or the checks find an error.

    What is waived on the day ``today`` (default: the day of the call) is no error here either. Bytes that this process
    has found sound are read again and not checked again: whoever scores a hundred runs loads one package.
    """
    package = read(path)
    day = parse_as_of(today)
    # By the day, since a waiver ends.
    state = (package.state(), day or date.today())
    if state in _SOUND and not package.findings:
        return package
    errors = [f for f in check_package(package, today=day) if f.severity == "error"]
    if errors:
        first = errors[0]
        raise InputError(
            f"the package has {len(errors)} error{'s' * (len(errors) != 1)}, the first: {first.message}",
            code=first.code,
            place=first.place(),
            mend="run `regatta validate` and mend what it lists",
        )
    _SOUND.add(state)
    return package
