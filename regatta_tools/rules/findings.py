"""Findings: what a check has to say, with the place and the mend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from regatta_tools.errors import InputError

Severity = Literal["error", "warning", "info"]
_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    ``file`` is relative to the root of what was checked, with forward slashes. ``line`` and
    ``column`` count from 1 (characters, not bytes); 0 where the finding concerns the whole file.
    ``record`` is the id of the record, or empty. ``mend`` says what to do about it.
    """

    code: str
    severity: Severity
    file: str
    line: int
    column: int
    record: str
    message: str
    mend: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def place(self) -> str:
        parts = [self.file or "-"]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


# Places inside a message: where a first one stands, where a cell begins, the offset of a byte, the number of an entry.
_MOVING = re.compile(
    r"(?<=\.csv):\d+(?::\d+)?|(?<=begun at )\d+:\d+|(?<=^byte )\d+"
    r"|(?<=^scenarios\.)\d+|(?<=^labels\.)\d+|(?<=is already number )\d+"
)


def identity(finding: Finding) -> tuple[str, str, str, str]:
    """What makes two findings the same one though lines have moved: code, file, record and message."""
    return finding.code, finding.file, finding.record, _MOVING.sub("", finding.message)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by file, place, then code, so that every run reports in the same order; equal ones are kept once.

    What is said of a whole file stands behind what is said of its lines: that it was edited since it was described
    (R011) is the last thing to mend.
    """
    return sorted(
        set(findings),
        key=lambda f: (f.file, not f.line, f.line, f.column, _ORDER[f.severity], f.code, f.record, f.message),
    )


@dataclass(frozen=True)
class Waived:
    """A finding that a person accepts until a day (``YYYY-MM-DD``, that day included), with the reason."""

    finding: Finding
    reason: str
    by: str
    until: str

    def as_dict(self) -> dict[str, Any]:
        return {**self.finding.as_dict(), "reason": self.reason, "by": self.by, "until": self.until}


@dataclass(frozen=True)
class Report:
    """The result of :func:`regatta_tools.validate`.

    ``files`` and ``records`` count what was read; ``ok`` is true where no finding is an error. Where only
    what a change brought in was asked for, ``since`` is the revision before it and ``older`` the number of
    findings that were there before and are left out. ``waived`` holds what a waiver of the package takes
    out of the findings: it counts for nothing and is always told. ``made_by`` is the command behind it.
    """

    findings: tuple[Finding, ...]
    files: int
    records: int
    checked: str = ""
    since: str = ""
    older: int = 0
    waived: tuple[Waived, ...] = ()
    made_by: str = "regatta validate"

    @property
    def errors(self) -> int:
        return sum(f.severity == "error" for f in self.findings)

    @property
    def warnings(self) -> int:
        return sum(f.severity == "warning" for f in self.findings)

    @property
    def ok(self) -> bool:
        return self.errors == 0

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the counts, ``findings``, ``waived``, and after a change ``since`` and ``older``."""
        return {
            "ok": self.ok,
            "files": self.files,
            "records": self.records,
            **({"since": self.since, "older": self.older} if self.since else {}),
            "findings": [f.as_dict() for f in self.findings],
            "waived": [w.as_dict() for w in self.waived],
        }


class FindingsProblem(InputError):
    """A table that cannot be used. ``findings`` holds what is wrong with its places; ``more`` is how many others."""

    #: What the table is one of.
    what = "rows"

    def __init__(self, findings: Sequence[Finding], more: int = 0) -> None:
        self.findings = list(findings)
        count = len(self.findings) + more
        lines = []
        for finding in self.findings:
            lines.append(f"  {finding.place()}: {finding.message} [{finding.code}]")
            if finding.mend:
                lines.append(f"    mend: {finding.mend}")
        if more:
            lines.append(f"  and {more} more")
        head = f"the {self.what} cannot be used, {count} finding{'s' * (count != 1)}, and nothing was computed:"
        super().__init__("\n".join([head, *lines]))
