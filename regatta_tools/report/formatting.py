"""What `regatta fmt` did, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regatta_tools.report.findings import as_lines, plain
from regatta_tools.tables.formatter import FormatReport
from regatta_tools.tables.package import DESCRIPTOR
from regatta_tools.text import shown


def as_text(reports: Sequence[FormatReport]) -> str:
    """A line for each file that is not as it should be or was not, and a closing line."""
    lines: list[str] = []
    for report in reports:
        for formatted in report.files:
            if formatted.refused:
                for finding in formatted.refusals:
                    lines += as_lines(finding)
            elif report.check and (difference := formatted.first_difference()):
                number, is_, should = difference
                lines.append(plain(f"{formatted.file}:{number}: {'; '.join(formatted.steps)}"))
                lines += [plain(f"    is:        {shown(is_)}"), plain(f"    should be: {shown(should)}")]
            elif formatted.changed:
                lines.append(plain(f"{formatted.file}: {'; '.join(formatted.steps)}"))
        if report.undescribed:
            lines.append(plain(f"{DESCRIPTOR} describes another state of: {', '.join(report.undescribed)}"))
            lines.append("    mend: look at `git diff` for rows that were lost; if all is meant, run `make schema`")
    files = sum(len(r.files) for r in reports)
    changed, refused = (sum(len(getattr(r, kind)) for r in reports) for kind in ("changed", "refused"))
    if not changed and not refused:
        counts = "canonical"
    else:
        done = "to format" if any(r.check for r in reports) else "formatted"
        counts = f"{changed} {done}, {refused} refused, {files - changed - refused} canonical"
    return "\n".join([*lines, f"{files} file{'s' * (files != 1)}: {counts}"])


def as_dict(reports: Sequence[FormatReport]) -> dict[str, Any]:
    """The JSON form: ``ok`` and one entry a package."""
    return {"ok": all(report.ok for report in reports), "packages": [report.as_dict() for report in reports]}
