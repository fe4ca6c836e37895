"""Findings: what a check has to say, with the place and the mend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

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


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by file, place, then code, so that every run reports in the same order; equal ones are kept once."""
    return sorted(
        set(findings), key=lambda f: (f.file, f.line, f.column, _ORDER[f.severity], f.code, f.record, f.message)
    )


@dataclass(frozen=True)
class Report:
    """The result of :func:`regatta_tools.validate`.

    ``files`` and ``records`` count what was read; ``ok`` is true where no finding is an error.
    """

    findings: tuple[Finding, ...]
    files: int
    records: int
    checked: str = ""

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
        """The JSON form: ``ok``, ``files``, ``records``, ``findings``."""
        return {
            "ok": self.ok,
            "files": self.files,
            "records": self.records,
            "findings": [f.as_dict() for f in self.findings],
        }
