"""Waivers: what they take out of the findings, how they end, and what they cannot do."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import Sheet, add_table, read_again
from hypothesis import given
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.cli.main import cli
from regatta_tools.errors import InputError
from regatta_tools.report.findings import as_text
from regatta_tools.rules.registry import rules
from regatta_tools.tables.package import read
from regatta_tools.validation import run
from regatta_tools.validation.run import check_with_waivers, load
from regatta_tools.validation.waivers import UNWAIVABLE

FAULT = "insurance-us-fault-sar-tipping"
UNTIL = "2026-12-31"


def waiver(**changes: str) -> dict[str, str]:
    row = {"rule": "F005", "record": "insurance-us-r05-f1", "reason": "Being read again.", "by": "A. Reader"}
    return row | {"until": UNTIL} | changes


@pytest.fixture
def spoilt(package_copy: Path) -> Path:
    """A package with one error that may be waived: F005 on a fact."""
    facts = Sheet(package_copy, "facts")
    facts.set("insurance-us-r05-f1", day_count="working")
    facts.save()
    read_again(package_copy)
    assert [f.code for f in regatta_tools.validate(package_copy).findings] == ["F005"]
    return package_copy


def test_a_waiver_takes_the_finding_out_and_tells_it_apart(spoilt):
    (before,) = regatta_tools.validate(spoilt).findings
    add_table(spoilt, "waivers", waiver())
    report = regatta_tools.validate(spoilt, today=UNTIL)
    assert report.ok and report.findings == () and report.errors == report.warnings == 0
    (waived,) = report.waived
    assert waived.finding == before
    assert (waived.reason, waived.by, waived.until) == ("Being read again.", "A. Reader", UNTIL)
    assert report.as_dict()["waived"] == [before.as_dict() | {"reason": waived.reason, "by": waived.by, "until": UNTIL}]
    said = as_text(report).splitlines()
    assert said[-1].endswith("clean, 1 waived")
    assert all(word in said[-2] for word in ("F005", before.record, UNTIL, "A. Reader", "Being read again."))


def test_a_package_is_loaded_as_long_as_its_waivers_hold(spoilt):
    add_table(spoilt, "waivers", waiver())
    assert load(spoilt, today=UNTIL).count > 200
    with pytest.raises(InputError) as caught:
        load(spoilt, today="2027-01-01")
    assert caught.value.code in ("F005", "W001")


@given(st.integers(-400, 400))
def test_the_last_day_is_the_last_day(spoilt, days):
    add_table(spoilt, "waivers", waiver())
    day = date.fromisoformat(UNTIL) + timedelta(days=days)
    report = regatta_tools.validate(spoilt, today=day)
    if days <= 0:
        assert report.findings == () and len(report.waived) == 1
    else:
        assert sorted(f.code for f in report.findings) == ["F005", "W001"] and report.waived == ()
        (ended,) = (f for f in report.findings if f.code == "W001")
        assert (ended.file, ended.line) == ("instruments/waivers.csv", 2) and UNTIL in ended.message


def test_the_day_is_given_or_that_of_as_of_or_the_clocks(spoilt, monkeypatch):
    class Clock(date):
        asked = 0

        @classmethod
        def today(cls) -> date:
            cls.asked += 1
            return date(2027, 1, 1)

    monkeypatch.setattr(run, "date", Clock)
    package = read(spoilt)
    check_with_waivers(package)
    assert Clock.asked == 0, "no clock is read without waivers"
    add_table(spoilt, "waivers", waiver())
    package = read(spoilt)
    assert not check_with_waivers(package, today=date(2026, 12, 31))[0]
    assert not check_with_waivers(package, as_of=date(2026, 12, 31))[0]
    assert Clock.asked == 0
    assert {f.code for f in check_with_waivers(package)[0]} == {"F005", "W001"} and Clock.asked == 1


def test_every_finding_of_the_rule_on_the_record_is_waived_and_no_other(package_copy):
    facts = Sheet(package_copy, "facts")
    for row in ("insurance-us-r05-f1", "insurance-us-r01-f1"):
        facts.set(row, day_count="working")
    facts.save()
    add_table(package_copy, "waivers", waiver())
    report = regatta_tools.validate(package_copy, today=UNTIL)
    assert {f.record for f in report.findings if f.code == "F005"} == {"insurance-us-r01-f1"}
    assert {(w.finding.code, w.finding.record) for w in report.waived} == {("F005", "insurance-us-r05-f1")}


def test_a_record_without_an_id_is_named_by_its_key(package_copy):
    links, faults = Sheet(package_copy, "fault_requirements"), Sheet(package_copy, "requirements")
    faults.set("insurance-us-r21", status="retired")
    faults.save()
    key = f"{FAULT}--insurance-us-r21"
    assert [f.record for f in regatta_tools.validate(package_copy).findings if f.code == "P009"] == [key]
    add_table(package_copy, "waivers", waiver(rule="P009", record=key))
    report = regatta_tools.validate(package_copy, today=UNTIL)
    assert [w.finding.record for w in report.waived] == [key] and "P009" not in {f.code for f in report.findings}
    assert links.find(FAULT, "fault") >= 0


@pytest.mark.parametrize("code", [c for c, r in rules().items() if r.engine in UNWAIVABLE])
def test_what_cannot_be_read_or_told_apart_cannot_be_waived(spoilt, code):
    add_table(spoilt, "waivers", waiver(), waiver(rule=code, record="insurance-us-r05-f1"))
    findings = regatta_tools.validate(spoilt, today=UNTIL).findings
    assert [(f.code, f.line) for f in findings] == [("W003", 3)] and code in findings[0].message


def test_the_rules_that_may_be_waived_are_those_that_judge_content():
    assert {r.engine for r in rules().values() if r.engine not in UNWAIVABLE} == {"sql", "python"}


def test_a_waiver_does_not_hide_that_a_cell_is_not_of_its_form(package_copy):
    faults = Sheet(package_copy, "faults")
    faults.set(FAULT, severity="High")
    faults.save()
    add_table(package_copy, "waivers", waiver(rule="S003", record=FAULT))
    report = regatta_tools.validate(package_copy, today=UNTIL)
    assert {f.code for f in report.findings} == {"S003", "W003"} and not report.waived


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"rule": "Z999"}, "W003"), ({"rule": "f005"}, "W003"), ({"record": "nowhere"}, "W004"),
     ({"until": "soon"}, "S002"),
     ({"until": ""}, "S001"), ({"reason": ""}, "S001"), ({"by": ""}, "S001"), ({"rule": "F001"}, "W002")],
)  # fmt: skip
def test_a_waiver_that_is_not_right_waives_nothing(spoilt, changes, code):
    add_table(spoilt, "waivers", waiver(**changes))
    report = regatta_tools.validate(spoilt, today=UNTIL)
    assert sorted(f.code for f in report.findings) == sorted(["F005", code]) and not report.waived


def test_a_waiver_that_stands_twice_is_a_double_key(spoilt):
    add_table(spoilt, "waivers", waiver(), waiver(by="B. Reader"))
    report = regatta_tools.validate(spoilt, today=UNTIL)
    assert [(f.code, f.line) for f in report.findings] == [("K002", 3)]
    assert [w.by for w in report.waived] == ["A. Reader"]


def test_on_another_date_nothing_is_said_of_waivers_that_nobody_needs(package_copy):
    add_table(package_copy, "waivers", waiver(rule="T006", record="insurance-us-r01"))
    assert [f.code for f in regatta_tools.validate(package_copy, today=UNTIL).findings] == ["W002"]
    assert regatta_tools.validate(package_copy, as_of="2026-11-30").findings == ()


def test_a_table_that_cannot_be_read_makes_no_waiver_superfluous(spoilt):
    add_table(spoilt, "waivers", waiver(), waiver(rule="F001", record="insurance-us-r01-f1"))
    (spoilt / "instruments" / "insurance-us" / "facts.csv").write_bytes(b"")
    assert [f.code for f in regatta_tools.validate(spoilt, today=UNTIL).findings] == ["R012"]


def test_unread_waivers_waive_nothing(spoilt):
    file, _ = add_table(spoilt, "waivers", waiver())
    (spoilt / file).write_bytes((spoilt / file).read_bytes() + b'x,"\n')
    report = regatta_tools.validate(spoilt, today=UNTIL)
    # Rows before the place that cannot be read hold; that the file is broken is an error of its own.
    assert [f.code for f in report.findings] == ["R005"] and len(report.waived) == 1
    (spoilt / file).write_bytes(b"rule;record\n")
    assert [f.code for f in regatta_tools.validate(spoilt, today=UNTIL).findings] == ["F005", "R004"]


def test_the_command_tells_what_is_waived(spoilt):
    add_table(spoilt, "waivers", waiver(until="9999-12-31"))
    told = CliRunner().invoke(cli, ["validate", str(spoilt), "--as-of", "2026-11-30"])
    assert re.search(r"waived until 9999-12-31 by A\. Reader: F005", told.output), told.output
    answer = CliRunner().invoke(cli, ["validate", str(spoilt), "--format", "json", "--as-of", "2026-11-30"])
    assert [w["code"] for w in json.loads(answer.output)["waived"]] == ["F005"]
