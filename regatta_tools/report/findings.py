"""Findings for people."""

from __future__ import annotations

from regatta_tools.rules.findings import Report


def as_text(report: Report) -> str:
    """One block a finding (place, severity, code, message, mend) and a closing line."""
    lines = []
    for finding in report.findings:
        record = f" ({finding.record})" if finding.record else ""
        lines.append(_plain(f"{finding.place()}: {finding.severity} {finding.code}: {finding.message}{record}"))
        lines.append(_plain(f"    mend: {finding.mend}"))
    files = f"{report.files} file{'s' * (report.files != 1)}"
    what = f"{files}, {report.records} record{'s' * (report.records != 1)}"
    if not report.findings:
        return f"{what}: clean"
    counts = f"{report.errors} error(s), {report.warnings} warning(s)"
    return "\n".join([*lines, "", f"{what}: {counts}. `regatta explain CODE` says why."])


def _plain(line: str) -> str:
    """A line without control characters: names of files and records are foreign, and could drive the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
