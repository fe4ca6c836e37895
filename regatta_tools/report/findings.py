"""Findings in the forms that people and programs read: a dictionary of writers, which the command offers."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import groupby
from typing import Any

from regatta_tools.report.wrapping import width
from regatta_tools.rules.findings import Finding, Report


def as_text(report: Report) -> str:
    """One block a finding (place, severity, code, message, mend), a line for each that is waived, a closing line."""
    lines = listed(report.findings)
    return "\n".join([*lines, *([""] if lines else []), *waived_lines(report), closing(report)])


def listed(findings: Iterable[Finding]) -> list[str]:
    """A line a finding with its mend below; where several in a row have one mend, it stands once, behind the last."""
    lines = []
    for (_, mend), group in groupby(findings, lambda f: (f.code, f.mend)):
        heads = [as_line(finding) for finding in group]
        of = f" of these {len(heads)}" if len(heads) > 1 else ""
        lines += [*heads, plain(f"    mend{of}: {mend}")]
    return lines


def as_line(finding: Finding) -> str:
    """The place of a finding, its severity, code, message and record."""
    record = f" ({finding.record})" if finding.record else ""
    return plain(f"{finding.place()}: {finding.severity} {finding.code}: {finding.message}{record}")


def as_lines(finding: Finding) -> list[str]:
    """The two lines of a finding that stands alone."""
    return listed([finding])


def waived_lines(report: Report) -> list[str]:
    """A line for each finding that is waived."""
    return [
        plain(f"waived until {w.until} by {w.by}: {w.finding.code} ({w.finding.record}): {w.reason}")
        for w in report.waived
    ]


def counted(number: int, what: str) -> str:
    """A number with its noun, as in ``1 error`` and ``2 errors``."""
    return f"{number} {what}{'s' * (number != 1)}"


def closing(report: Report) -> str:
    """The last line: what was read, and how many findings there are."""
    read = f"{counted(report.files, 'file')}, {counted(report.records, 'record')}"
    if report.findings:
        found = f"{counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}"
    else:
        found = "nothing new" if report.since else "clean"
    since = f" since {report.since}" if report.since else ""
    waived = f", {len(report.waived)} waived" if report.waived else ""
    older = f"; {counted(report.older, 'older finding')} not shown" if report.since else ""
    help_ = ". `regatta explain CODE` says why." if report.findings else ""
    return plain(f"{read}: {found}{since}{waived}{older}{help_}")


def as_json(report: Report) -> str:
    """The report as strict JSON."""
    return strict_json(report.as_dict())


def strict_json(value: Any) -> str:
    """JSON that every reader takes: no NaN, and no half of a surrogate pair. Text stays as itself."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _in(module: str) -> Callable[[Report], str]:
    """A writer of its own module, which is imported when it is used."""

    def write(report: Report) -> str:
        return import_module(f"regatta_tools.report.{module}").as_text(report)

    return write


#: Forms of a report by name, each a function from a report to a text without a last line end.
WRITERS: dict[str, Callable[[Report], str]] = {
    "text": as_text,
    "json": as_json,
    "github": _in("github"),
    "sarif": _in("sarif"),
    "junit": _in("junit"),
}


def folded(text: str, first: str = "", rest: str = "    ") -> list[str]:
    """A text as lines of :func:`width`, broken at blanks; ``first`` and ``rest`` stand before them."""
    # A section sign and the word before a number stay with it.
    held = re.sub(r"(§+|Điều|khoản|điểm) ", "\\1\u00a0", plain(text))
    lines = textwrap.wrap(
        held, width(), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace("\u00a0", " ") for line in lines] or [first.rstrip()]


def plain(line: str) -> str:
    """A line without control characters: names of files and records are foreign, and could drive the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
