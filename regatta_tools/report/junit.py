"""Findings as JUnit XML, which CI servers show as tests: a suite a file, a case for each rule and record.

There is no one standard; this keeps to what Jenkins, GitLab and the Ant schema have in common: counts on the
root and on each suite, at most one ``failure`` or ``skipped`` in a case, and never an empty report.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from regatta_tools.report.findings import as_lines, closing
from regatta_tools.report.places import from_repository
from regatta_tools.rules.findings import Finding, Report
from regatta_tools.rules.registry import rules

#: What XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_Case = tuple[str, str, str]  # file, rule, record


def as_text(report: Report) -> str:
    """Errors are failures; warnings are cases that pass and say so; what is waived is skipped with its reason."""
    path = from_repository(report)
    found: dict[_Case, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault((path(finding.file), finding.code, finding.record), []).append(finding)
    waived: dict[_Case, list[str]] = {}
    for entry in report.waived:
        key = path(entry.finding.file), entry.finding.code, entry.finding.record
        waived.setdefault(key, []).append(f"waived by {entry.by} until {entry.until}: {entry.reason}")

    root = xml.Element("testsuites", {"name": report.made_by})
    for file in sorted({key[0] for key in (*found, *waived)}):
        suite = xml.SubElement(root, "testsuite", {"name": _legal(file or "package")})
        for key, findings in found.items():
            if key[0] == file:
                _add_findings(_add_case(suite, key, findings[0].line), findings)
        for key, reasons in waived.items():
            if key[0] == file and key not in found:
                xml.SubElement(_add_case(suite, key, 0), "skipped", {"message": _legal("; ".join(reasons))})
    if not len(root):
        # Servers take a report without cases for a failed one.
        suite = xml.SubElement(root, "testsuite", {"name": "package"})
        xml.SubElement(suite, "testcase", {"classname": "package", "name": _legal(closing(report)), "time": "0"})
    for suite in root:
        _count(suite, [suite])
    _count(root, list(root))
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode")


def _add_case(suite: xml.Element, key: _Case, line: int) -> xml.Element:
    file, code, record = key
    known = rules().get(code)
    name = " ".join(part for part in (code, record, f"({known.title})" if known else "") if part)
    attributes = {"classname": _legal(file or "package"), "name": _legal(name), "time": "0"}
    if file:
        attributes["file"] = _legal(file)
    if line:
        attributes["line"] = str(line)
    return xml.SubElement(suite, "testcase", attributes)


def _add_findings(case: xml.Element, findings: list[Finding]) -> None:
    known = rules().get(findings[0].code)
    lines = [line for finding in findings for line in as_lines(finding)]
    text = _legal("\n".join([*lines, *([f"    why:  {known.why}"] if known else [])]))
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        failure = {"message": _legal(errors[0].message), "type": errors[0].code}
        xml.SubElement(case, "failure", failure).text = text
    else:
        xml.SubElement(case, "system-out").text = text


def _count(element: xml.Element, suites: list[xml.Element]) -> None:
    """Counts of one suite, or of the root over all of them."""
    cases = [case for suite in suites for case in suite.iter("testcase")]
    element.set("tests", str(len(cases)))
    element.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    element.set("errors", "0")
    if element.tag == "testsuite":
        element.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    element.set("time", "0")


def _legal(text: str) -> str:
    return _ILLEGAL.sub("", text)
