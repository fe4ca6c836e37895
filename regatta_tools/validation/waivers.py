"""Waivers: findings that a person accepts for a time, with a reason (``instruments/waivers.csv``).

A waiver takes the findings of one rule on one record out of the report and sets them apart, so that nothing is
accepted in silence. It cannot hide that something could not be read, and it ends: after its last day it is an
error of its own and the finding is back.
"""

from __future__ import annotations

from datetime import date

from regatta_tools.rules.findings import Finding, Waived
from regatta_tools.rules.registry import rules
from regatta_tools.tables.package import Package, Record
from regatta_tools.text import shown

#: Engines whose rules say that records cannot be read, told apart or understood. Were such a finding accepted,
#: everything said of the rest would be said of something else. Nor can a rule about waivers be waived.
UNWAIVABLE = frozenset({"reader", "schema", "keys", "suite", "sheet", "waiver", "audit"})


def apply(
    package: Package, findings: list[Finding], today: date, *, usual: bool = True
) -> tuple[list[Finding], list[Waived]]:
    """Set the findings that are waived on the day ``today`` apart, and add what is wrong with the waivers.

    Returns the findings that stay and those that are waived. ``usual`` says that the rules ran for the
    usual date: with another one (``--as-of``) other findings come up, so that a waiver which none of them
    needs is no news. The same holds where rows could not be read: nothing is said of what is not there.
    """
    waivers = package.table("waivers")
    if not waivers:
        return findings, []
    faulty = {(f.file, f.line) for f in findings if f.file in {w.file for w in waivers}}
    known = {r.key for r in package}
    needed = {(f.code, f.record) for f in findings}
    in_force: dict[tuple[str, str], Record] = {}
    own: list[Finding] = []
    for waiver in waivers:
        # A row that is not even of its form waives nothing, and has its finding.
        if (waiver.file, waiver.line) in faulty:
            continue
        code, record = waiver["rule"], waiver["record"]
        rule = rules().get(code)
        if rule is None:
            own.append(waiver.finding("W003", "rule", f"there is no rule {shown(code)}"))
        elif rule.engine in UNWAIVABLE:
            own.append(waiver.finding("W003", "rule", f"rule {code} ({rule.title.lower()}) cannot be waived"))
        elif record not in known:
            if not package.incomplete:
                own.append(waiver.finding("W004", "record", f"there is no record {shown(record)}"))
        elif waiver["until"] < today.isoformat():
            what = f"the waiver of {code} on {shown(record)} ended on {waiver['until']}, before {today}"
            own.append(waiver.finding("W001", "until", what))
        elif (code, record) in needed:
            in_force[code, record] = waiver
        elif usual and not package.incomplete:
            own.append(waiver.finding("W002", "rule", f"rule {code} finds nothing on {shown(record)}"))
    stay, waived = own, []
    for finding in findings:
        waiver = in_force.get((finding.code, finding.record))
        if waiver is None:
            stay.append(finding)
        else:
            waived.append(Waived(finding, waiver["reason"], waiver["by"], waiver["until"]))
    return stay, waived
