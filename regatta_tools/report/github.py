"""Findings as workflow commands of GitHub Actions, which annotate the line of a pull request."""

from __future__ import annotations

from regatta_tools.report.findings import closing, waived_lines
from regatta_tools.report.places import from_repository
from regatta_tools.rules.findings import Finding, Report
from regatta_tools.rules.registry import rules

_COMMAND = {"error": "error", "warning": "warning", "info": "notice"}


def as_text(report: Report) -> str:
    """One command a finding; what is waived and the closing line follow as plain lines of the log."""
    path = from_repository(report)
    commands = (_command(finding, path(finding.file)) for finding in report.findings)
    return "\n".join([*commands, *waived_lines(report), closing(report)])


def _command(finding: Finding, path: str) -> str:
    known = rules().get(finding.code)
    place = {"file": path} if finding.file else {}
    if finding.line and place:
        place["line"] = str(finding.line)
        if finding.column:
            place["col"] = str(finding.column)
    title = f"{finding.code}: {known.title}" if known else finding.code
    record = f" ({finding.record})" if finding.record else ""
    lines = [f"{finding.message}{record}", *([f"Why: {known.why}"] if known else []), f"Mend: {finding.mend}"]
    properties = ",".join(f"{key}={_property(value)}" for key, value in {**place, "title": title}.items())
    return f"::{_COMMAND[finding.severity]} {properties}::{_data(chr(10).join(lines))}"


def _data(text: str) -> str:
    """Escape what would end the command, as actions/toolkit does."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
