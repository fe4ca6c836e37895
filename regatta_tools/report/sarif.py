"""Findings as SARIF 2.1.0 (OASIS), the form that code scanning services read."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any
from urllib.parse import quote

from regatta_tools import __version__
from regatta_tools.report.findings import strict_json
from regatta_tools.report.places import from_repository
from regatta_tools.rules.findings import Finding, Report, identity
from regatta_tools.rules.registry import Rule, rules

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {"error": "error", "warning": "warning", "info": "note"}
_ROOT = "%SRCROOT%"


def as_text(report: Report) -> str:
    return strict_json(as_log(report))


def as_log(report: Report) -> dict[str, Any]:
    """A log with one run. All rules of the registry are in it, so that a clean log says what was checked."""
    path = from_repository(report)
    known = rules()
    index = {code: number for number, code in enumerate(known)}
    seen: Counter[str] = Counter()
    results = [_result(finding, path(finding.file), index, seen) for finding in report.findings]
    for waived in report.waived:
        result = _result(waived.finding, path(waived.finding.file), index, seen)
        reason = f"{waived.reason} (waived by {waived.by} until {waived.until})"
        results.append(result | {"suppressions": [{"kind": "external", "justification": reason}]})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "REGATTA",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(rule) for rule in known.values()],
                    }
                },
                "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
                # Columns count characters, not UTF-16 units, which is the default.
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {
            "text": f"{rule.why}\n\nTo mend it: {rule.mend}",
            "markdown": f"{_markdown(rule.why)}\n\n**To mend it:** {_markdown(rule.mend)}",
        },
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"since": rule.since, "engine": rule.engine},
    }


def _result(finding: Finding, path: str, index: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    record = f" ({finding.record})" if finding.record else ""
    result: dict[str, Any] = {"ruleId": finding.code}
    if finding.code in index:
        result["ruleIndex"] = index[finding.code]
    result["level"] = _LEVEL[finding.severity]
    result["message"] = {"text": f"{finding.message}{record}\nTo mend it: {finding.mend}"}
    if finding.file:
        # What concerns a whole file points to its first line: services show nothing without one.
        region = {"startLine": finding.line or 1}
        if finding.line and finding.column:
            region["startColumn"] = finding.column
        place: dict[str, Any] = {"artifactLocation": _artifact(path), "region": region}
        result["locations"] = [{"physicalLocation": place}]
    # The same finding keeps its fingerprint when lines move; one that occurs twice gets a number.
    digest = hashlib.sha256("\0".join((*identity(finding), path)).encode("utf-8", "backslashreplace")).hexdigest()
    seen[digest] += 1
    result["partialFingerprints"] = {"regattaFinding/v1": f"{digest}:{seen[digest]}"}
    return result


def _artifact(path: str) -> dict[str, str]:
    address = quote(path, safe="/")
    if path.startswith("/"):
        return {"uri": f"file://{address}"}
    if path[1:2] == ":":  # a drive of Windows
        return {"uri": f"file:///{path[0]}:{quote(path[2:], safe='/')}"}
    return {"uri": address, "uriBaseId": _ROOT}


def _markdown(text: str) -> str:
    """Plain text in Markdown: what could be read as a link or as HTML is escaped, code between backticks stays."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        for sign in "\\<[*_":
            parts[number] = parts[number].replace(sign, f"\\{sign}")
    return "`".join(parts)
