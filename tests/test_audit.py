"""The provenance audit: each of its rules, outcomes, readings, hashes, and the command."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from audit_world import DAY, PARENT, US, US_TEXT, VN, World, codes, outcomes
from conftest import ROOT, redescribe
from defusedxml import ElementTree
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog
from test_cli_validate import invoke, regatta

import regatta_tools
from regatta_tools.errors import InputError
from regatta_tools.provenance import checks, review
from regatta_tools.provenance.checks import CLEAN, DEFECT, MISSTATES, NON_BINDING, NOT_ASSESSED, ORDER, Index
from regatta_tools.provenance.corpus import parse_text, read_corpus
from regatta_tools.provenance.hashes import record_hashes
from regatta_tools.provenance.outcomes import NOT_READ, STALE, audit_package, latest
from regatta_tools.provenance.passages import NORMALISATION
from regatta_tools.provenance.readings import NewReading, agreement, record
from regatta_tools.report.findings import listed
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rules
from regatta_tools.tables.package import read

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The invented package, written and read by one reader, all clean."""
    return World(tmp_path).write().read_by()


@pytest.fixture
def unread(tmp_path: Path) -> World:
    return World(tmp_path).write()


def audit_file(world: World, cell: str = "boats-us") -> Path:
    return world.root / "instruments" / cell / "audit.csv"


def test_the_invented_package_is_clean_for_the_gate_and_the_audit(world):
    assert not [f for f in regatta_tools.validate(world.root).findings if f.severity == "error"]
    report = world.audit()
    assert report.ok and report.findings == []
    assert [*outcomes(report).values()] == [(CLEAN, [])] * 5
    assert report.summary == dict.fromkeys(ORDER, 0) | {CLEAN: 5}


# The rules: what is wrong raises the code and nothing else, what is nearly so does not

Change = Callable[[World], None]
WRONG: list[tuple[str, str, str, Change]] = []  # code, name, outcome of the item, change
RIGHT: list[tuple[str, str, Change]] = []


def wrong(code: str, outcome: str) -> Callable[[Change], Change]:
    def keep(change: Change) -> Change:
        WRONG.append((code, change.__name__, outcome, change))
        return change

    return keep


def right(code: str) -> Callable[[Change], Change]:
    def keep(change: Change) -> Change:
        RIGHT.append((code, change.__name__, change))
        return change

    return keep


def text_of(file: str, old: str, new: str) -> Change:
    return lambda world: world.edit(old, new, file)


def cells_of(key: str, **cells: str) -> Change:
    return lambda world: world.set(key, **cells)


WRONG += [
    ("A101", "latin-1", NOT_ASSESSED, lambda w: w.texts.update({f"{US}.txt": US_TEXT.encode("cp1252")})),
    ("A101", "utf-16", NOT_ASSESSED, lambda w: w.texts.update({f"{US}.txt": US_TEXT.encode("utf-16")})),
    ("A102", "no date", NOT_ASSESSED, text_of(f"{US}.txt", "as-of: 2026-09-01\n", "")),
    ("A102", "empty date", NOT_ASSESSED, text_of(f"{US}.txt", "as-of: 2026-09-01", "as-of:")),
    ("A102", "no such day", NOT_ASSESSED, text_of(f"{US}.txt", "as-of: 2026-09-01", "as-of: 2026-02-30")),
    ("A102", "no such month", NOT_ASSESSED, text_of(f"{US}.txt", "as-of: 2026-09-01", "as-of: 2026-13 (about)")),
    ("A102", "another source", NOT_ASSESSED, text_of(f"{US}.txt", f"source-id: {US}", f"source-id: {PARENT}")),
    ("A102", "no header", NOT_ASSESSED, lambda w: w.texts.update({f"{US}.txt": US_TEXT[US_TEXT.index("##") :]})),
    ("A103", "no heading", NOT_ASSESSED, lambda w: w.texts.update({f"{US}.txt": US_TEXT.replace("## ", "")})),
    ("A103", "empty", NOT_ASSESSED, lambda w: w.texts.update({f"{US}.txt": US_TEXT[: US_TEXT.index("##")]})),
    ("A201", "number", MISSTATES, cells_of("boats-us-r01-f1", value="16")),
    ("A201", "duty", MISSTATES, cells_of("boats-us-r02", duty_en="The fee is at most 4 percent of the price.")),
    ("A201", "date", MISSTATES, cells_of("boats-us-r03-f1", value="--03-30")),
    ("A201", "money", MISSTATES, cells_of("boats-vn-r01-f2", value="40000000")),
    ("A201", "text", MISSTATES, text_of(f"{VN}.txt", "ba mươi ngày", "hai mươi ngày")),
    ("A201", "date of a duty", MISSTATES, cells_of("boats-us-r03", duty_en="The keeper sends a list by 30 June.")),
    ("A201", "many things of a duty", MISSTATES, cells_of("boats-us-r03", duty_en="Of 400 boats a list is sent.")),
    ("A201", "number in words", MISSTATES,
     cells_of("boats-us-r04-f1", kind="form", value="6 days of waiting", unit="", day_count="")),
    ("A202", "unit in words", MISSTATES,
     cells_of("boats-us-r04-f1", kind="form", value="5 months of waiting", unit="", day_count="")),
    ("A202", "unit", MISSTATES, cells_of("boats-us-r01-f2", unit="month", day_count="")),
    ("A202", "money", MISSTATES, cells_of("boats-vn-r01-f2", unit="USD")),
    ("A203", "calendar", MISSTATES, cells_of("boats-us-r01-f1", day_count="calendar")),
    ("A203", "unspecified", MISSTATES, cells_of("boats-us-r04-f1", day_count="working")),
    ("A203", "duty", MISSTATES, cells_of("boats-us-r04", duty_en="The master waits 5 business days.")),
    ("A204", "ratio", MISSTATES, cells_of("boats-us-r02-f1", comparator="at-least")),
    ("A204", "text", MISSTATES, text_of(f"{VN}.txt", "tối đa là", "tối thiểu là")),
    ("A204", "without the limit", MISSTATES, cells_of("boats-us-r02-f1", comparator="less-than")),
    ("A204", "more than the least", MISSTATES, text_of(f"{US}.txt", "at least 12", "more than 12")),
    ("A211", "repealed", MISSTATES, cells_of(US, status="repealed")),
    ("A211", "ended", MISSTATES, cells_of(US, ends="2026-11-29")),
    ("A211", "future", MISSTATES, cells_of(US, status="not-yet-effective", effective="")),
    ("A211", "starts", MISSTATES, cells_of("boats-us-r01-c1", force_from="2026-12-01")),
    ("A211", "superseded", MISSTATES, cells_of(US, superseded_by=PARENT)),
    ("A221", "section", DEFECT, cells_of("boats-us-r01-c1", locator="50 CFR § 999.6(a)(1)-(2)")),
    ("A221", "paragraph", DEFECT, cells_of("boats-us-r01-c1", locator="50 CFR § 999.5(a)(3)")),
    ("A221", "et seq.", DEFECT, cells_of("boats-us-r01-c1", locator="50 CFR § 999.5 et seq.")),
    ("A221", "range of sections", DEFECT, cells_of("boats-us-r01-c1", locator="50 CFR §§ 999.5-999.9")),
    ("A221", "prose", DEFECT, cells_of("boats-us-r01-c1", locator="the rule on boats")),
    ("A221", "no basis", DEFECT, cells_of("boats-us-r04-c1", role="scope")),
    ("A221", "point", DEFECT, cells_of("boats-vn-r01-c1", locator="Điều 5, khoản 1, điểm đ")),
    ("A222", "part", DEFECT, text_of(f"{US}.txt", "50 CFR Part 999", "49 CFR Part 999")),
    ("A222", "no number of this law", DEFECT, cells_of(US, number="50 CFR Part 999", jurisdiction="US-CA")),
    ("A222", "number", DEFECT, text_of(f"{VN}.txt", "999/2026/NĐ-CP", "998/2026/NĐ-CP")),
    ("A222", "Đ", DEFECT, text_of(f"{VN}.txt", "999/2026/NĐ-CP", "999/2026/QĐ-TTg")),
    ("A223", "hash", DEFECT, cells_of("boats-us-r04-c1", passage_hash="0" * 64, normalisation=NORMALISATION)),
    ("A223", "form", DEFECT, cells_of("boats-us-r04-c1", passage_hash="0" * 64, normalisation="regatta-passage/0")),
    ("A231", "guidance", NON_BINDING, cells_of(US, kind="guidance")),
    ("A231", "not binding", NON_BINDING, cells_of(US, binding="false")),
    ("A231", "model law", NON_BINDING, cells_of(US, kind="model-law")),
    ("A231", "standard", NON_BINDING, cells_of(VN, kind="standard")),
    ("A241", "no text", NOT_ASSESSED, lambda w: w.texts.pop(f"{US}.txt")),
]  # fmt: skip
RIGHT += [
    ("A101", "byte-order mark", lambda w: w.texts.update({f"{US}.txt": US_TEXT.encode("utf-8-sig")})),
    ("A101", "line ends", lambda w: w.texts.update({f"{US}.txt": US_TEXT.replace("\n", "\r\n").encode()})),
    ("A101", "other files", lambda w: w.texts.update({"notes.md": b"\xff", "README": b"\xff"})),
    ("A102", "undated", text_of(f"{US}.txt", "as-of: 2026-09-01", "as-of: not stated on the page")),
    ("A102", "month", text_of(f"{US}.txt", "as-of: 2026-09-01", "as-of: 2026-09 (about)")),
    ("A102", "named by date", lambda w: w.texts.update({f"{US}@2026-09-01.txt": w.texts.pop(f"{US}.txt")})),
    ("A103", "one section", text_of(f"{US}.txt", "\n## § 999.9", "\n## § 999.8\n\nx\n\n## § 999.9")),
    ("A104", "filled", text_of(f"{US}.txt", "\n## § 999.9", "\n## § 999.8\n\n(a) Reserved.\n\n## § 999.9")),
    ("A105", "two dates", lambda w: w.texts.update({f"{US}@2025-01.txt": dated("2025-01")})),
    ("A105", "dated and undated", lambda w: w.texts.update({f"{US}@.txt": dated("not stated")})),
    ("A201", "thousands", text_of(f"{VN}.txt", "400.000.000 đồng", "400 triệu đồng")),
    ("A201", "words", text_of(f"{US}.txt", "within 30 calendar", "within thirty calendar")),
    ("A201", "decimals", cells_of("boats-us-r02-f1", value="2.0")),
    ("A201", "date of a duty", cells_of("boats-us-r03", duty_en="The keeper sends a list by 31 March 2027.")),
    ("A201", "few things of a duty", cells_of("boats-us-r03", duty_en="The keeper sends 2 lists each year.")),
    ("A201", "number in words", cells_of("boats-us-r04-f1", kind="form", value="5 days of waiting", unit="",
                                         day_count="")),
    ("A202", "per cent", text_of(f"{US}.txt", "2 percent", "2%")),
    ("A203", "working", text_of(f"{VN}.txt", "ba mươi ngày làm việc", "30 ngày làm việc")),
    ("A204", "no bound", text_of(f"{US}.txt", "may not exceed 2 percent", "is 2 percent")),
    ("A211", "kept in force", lambda w: (w.set(US, status="repealed"),
                                         [w.set(r["id"], kept_in_force_by=PARENT)
                                          for r in w.tables["citations"] if r["source"] == US])),
    ("A211", "superseded later", lambda w: (w.set(US, superseded_by=PARENT), w.set(PARENT, effective="2027-01-01"))),
    ("A211", "last day", cells_of(US, ends="2026-11-30")),
    ("A211", "first day", cells_of("boats-us-r01-c1", force_from="2026-11-30")),
    ("A221", "whole paragraph", cells_of("boats-us-r01-c1", locator="50 CFR § 999.5(a)")),
    ("A221", "two places", cells_of("boats-us-r01-c1", locator="50 CFR § 999.5(a)(1), (a)(2)")),
    ("A221", "article", cells_of("boats-vn-r01-c1", locator="Điều 5")),
    ("A222", "held without number", text_of(f"{US}.txt", "number: 50 CFR Part 999\n", "")),
    ("A222", "two numbers", text_of(f"{US}.txt", "50 CFR Part 999", "49 CFR Part 1, 50 CFR Part 999")),
    ("A231", "guidance beside the basis", lambda w: (w.set(PARENT, kind="guidance", binding="false"),
                                                     w.set("boats-us-r02-c2", source=PARENT,
                                                           locator="50 CFR § 998.9(a)"),
                                                     w.texts.update({f"{PARENT}.txt": US_TEXT.replace("999", "998")}))),
    ("A241", "role without force", cells_of("boats-us-r02-c2", role="exception")),
]  # fmt: skip


def dated(day: str) -> str:
    return US_TEXT.replace("as-of: 2026-09-01", f"as-of: {day}")


@wrong("A104", CLEAN)
def empty_section_that_nobody_cites(world):
    world.edit("\n## § 999.9", "\n## § 999.8\n\n## § 999.9")


@wrong("A105", NOT_ASSESSED)
def two_texts_of_one_day(world):
    world.texts[f"{US}@2026-09-01.txt"] = US_TEXT


@wrong("A105", NOT_ASSESSED)
def two_texts_without_a_day(world):
    world.texts[f"{US}.txt"] = dated("not stated")
    world.texts[f"{US}@.txt"] = dated("unknown")


@wrong("A242", NOT_ASSESSED)
def nobody_read_it(world):
    audit_file(world).unlink()


@wrong("A242", NOT_ASSESSED)
def only_a_machine_read_it(world):
    audit_file(world).unlink()
    world.write().read_by("boats-us-r01-c1", reader_kind="machine")


@wrong("A242", NOT_ASSESSED)
def a_reader_could_not_assess_it(world):
    world.read_by("boats-us-r01-c1", reader="Minh", outcome="not-assessed", reason="Half of the page is missing.")


@wrong("A242", NOT_ASSESSED)
def a_clean_reading_names_no_passage(world):
    rows = list(csv.DictReader(audit_file(world).open(encoding="utf-8", newline="")))
    write_audit(world, [row | {"passage_hash": ""} for row in rows])


@wrong("A243", NOT_ASSESSED)
def the_item_was_changed_after_it_was_read(world):
    world.set("boats-us-r01", duty_en="A keeper tells the owner of a leak.")


@wrong("A243", NOT_ASSESSED)
def the_passage_was_changed_after_it_was_read(world):
    world.edit("A keeper must tell", "A master must tell")


@wrong("A251", DEFECT)
def one_reader_found_it_wrong(world):
    world.read_by("boats-us-r01-c1", reader="Minh", outcome=DEFECT, reason_code="wrong-locator", reason="It is (e).")


@right("A242")
def a_machine_reads_besides(world):
    world.read_by(reader_kind="machine", reader="check", outcome=MISSTATES, reason_code="wrong-number", reason="16")


@right("A243")
def what_does_not_bear_on_the_reading_was_changed(world):
    world.set("boats-us-r01-c1", note="Another remark.")
    world.set(US, url="https://example.org/boats", note="Seen.")
    world.edit("A keeper must tell the owner of a leak", "A keeper must\ntell  the owner of a leak")


@right("A251")
def the_same_reader_takes_it_back(world):
    one_reader_found_it_wrong(world)
    world.read_by("boats-us-r01-c1", reader="Minh")


@right("A223")
def the_text_was_wrapped_anew(world):
    record_hashes(world.package(), world.corpus())
    world.tables["citations"] = [
        row for cell in ("boats-us", "boats-vn")
        for row in csv.DictReader((world.root / f"instruments/{cell}/citations.csv").open(encoding="utf-8", newline=""))
    ]  # fmt: skip
    world.edit("The master waits 5 days. The mate", "The master   waits 5\ndays.\nThe mate")


def write_audit(world: World, rows: list[dict[str, str]], cell: str = "boats-us") -> None:
    with audit_file(world, cell).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    redescribe(world.root)


#: Rules on the fit of texts and package have their cases in test_sources.py.
ELSEWHERE = {"A106", "A107"}


def test_every_rule_of_the_audit_has_a_wrong_and_a_right_case():
    declared = {code for code, rule in rules().items() if rule.engine == "audit"}
    assert {case[0] for case in WRONG} == declared - ELSEWHERE
    assert {case[0] for case in RIGHT} == declared - ELSEWHERE


# What of the readings is about the item that a case changes, and comes along: a changed item was read before.
READING = {"A242", "A243"}


@pytest.mark.parametrize(("code", "name", "outcome", "change"), WRONG, ids=[f"{c}-{n}" for c, n, *_ in WRONG])
def test_what_is_wrong_raises_its_code_alone(world, code, name, outcome, change):
    before = outcomes(world.audit())
    change(world)
    report = world.write().audit()
    found = codes(report)
    assert code in found
    # A text that cannot be used is the reason why nothing is held.
    assert found - ({"A241"} if code in ("A101", "A102", "A103", "A105") else set()) - READING - {code} == set()
    assert {f.severity for f in report.findings if f.code == code} == {rules()[code].severity}
    assert report.ok == (rules()[code].severity != "error")
    for finding in report.findings:
        if finding.code not in ("A101", "A102", "A103", "A104", "A105"):
            assert (world.root / finding.file).is_file() and finding.line > 1 and finding.record and finding.mend
        else:
            assert Path(finding.file).parent == world.folder
    changed = {key: now for key, now in outcomes(report).items() if now != before[key]}
    assert {now for now, _ in changed.values()} - {NOT_ASSESSED} == {outcome} - {NOT_ASSESSED, CLEAN}
    assert bool(changed) == (outcome != CLEAN)
    assert report.summary[CLEAN] < 5 or outcome == CLEAN


@pytest.mark.parametrize(("code", "name", "change"), RIGHT, ids=[f"{c}-{n}" for c, n, _ in RIGHT])
def test_what_is_nearly_wrong_raises_nothing(world, code, name, change):
    change(world)
    report = world.write().audit()
    assert codes(report) <= ({"A242", "A243"} - {code}) and report.ok
    # What was changed needs a new reading; then all is clean again.
    report = world.read_by(reader="Lan", date="2026-12-01").audit()
    assert report.findings == [] and report.summary[CLEAN] == 5


def test_another_number_of_the_passage_is_seen_by_the_place_that_a_reader_recorded(world):
    """5 days and 7 days stand in one passage: only the place tells which of them is the master's."""
    evidence = {r["citation"]: r["evidence"] for r in world.package().table("audit")}["boats-us-r04-c1"]
    assert evidence.startswith("boats-us-r04-f1=")
    world.set("boats-us-r04-f1", value="7")
    world.set("boats-us-r04", duty_en="The master waits 7 days.")
    report = world.write().audit(requirements=["boats-us-r04"])
    (item,) = report.items
    assert (item.outcome, item.reasons) == (MISSTATES, ["wrong-number"])
    assert "'5'" in next(f for f in report.findings if f.code == "A201").message


def test_another_date_of_the_passage_is_seen_by_the_place_that_a_reader_recorded(world):
    world.edit("By March 31 of each year", "By March 31 of each year, in 2020 by May 31,")
    world.write().read_by("boats-us-r03-c1", reader="Minh")
    world.set("boats-us-r03-f1", value="--05-31")
    (finding,) = [f for f in world.write().audit().findings if f.code == "A201"]
    assert finding.record == "boats-us-r03-f1" and "says 'March 31'" in finding.message


def test_words_where_a_reader_found_a_number_must_say_it(world):
    world.set("boats-us-r04-f1", kind="form", value="until the boat is back", unit="", day_count="")
    (finding,) = [f for f in world.write().audit().findings if f.code == "A201"]
    assert finding.record == "boats-us-r04-f1" and "says '5'" in finding.message


def test_evidence_that_was_spoilt_by_hand_is_named_by_its_line(world):
    rows = list(csv.DictReader(audit_file(world).open(encoding="utf-8", newline="")))
    for text in ("f1", "boats-us-r01-f1=9-3", "boats-us-r01-f1=a-b"):
        write_audit(world, [{**row, "evidence": text} for row in rows])
        with pytest.raises(InputError) as caught:
            world.audit()
        assert caught.value.code == "U131" and caught.value.place == "instruments/boats-us/audit.csv:2"


# Outcomes


def test_the_gravest_outcome_wins(world):
    world.set("boats-us-r01-f1", value="16")  # misstates
    world.set("boats-us-r01-c1", passage_hash="0" * 64, normalisation=NORMALISATION)  # defect
    world.set(US, kind="guidance")  # non-binding
    report = world.write().audit(requirements=["boats-us-r01"])
    assert outcomes(report)["boats-us-r01"] == (MISSTATES, ["wrong-number", "passage-changed", "guidance-as-law"])
    world.set("boats-us-r01-f1", value="15")
    assert outcomes(world.write().audit())["boats-us-r01"] == (DEFECT, ["passage-changed", "guidance-as-law"])
    world.set("boats-us-r01-c1", passage_hash="", normalisation="")
    assert outcomes(world.write().audit())["boats-us-r01"] == (NON_BINDING, ["guidance-as-law"])
    world.set(US, kind="regulation")
    assert outcomes(world.write().audit())["boats-us-r01"] == (CLEAN, [])


def test_clean_needs_the_machine_and_a_reading_of_every_citation(unread):
    assert outcomes(unread.audit())["boats-us-r02"] == (NOT_ASSESSED, [NOT_READ])
    unread.read_by("boats-us-r02-c1")
    report = unread.audit()
    assert outcomes(report)["boats-us-r02"] == (NOT_ASSESSED, [NOT_READ])
    unread.read_by("boats-us-r02-c2")
    assert outcomes(unread.audit())["boats-us-r02"] == (CLEAN, [])
    unread.set("boats-us-r02-f1", value="3")
    assert outcomes(unread.write().audit())["boats-us-r02"][0] == MISSTATES


def test_without_texts_readings_alone_speak(world):
    report = world.audit(texts=False)
    assert report.summary[CLEAN] == 5 and report.texts == "" and all(not item.evidence for item in report.items)
    assert all("not held against a text: none was given" in item.open for item in report.items)
    world.set("boats-us-r01-f1", value="16")
    assert outcomes(world.write().audit(texts=False))["boats-us-r01"] == (NOT_ASSESSED, [STALE])
    audit_file(world).unlink()
    assert outcomes(world.write().audit(texts=False))["boats-us-r02"] == (NOT_ASSESSED, [NOT_READ])


def test_not_assessed_is_never_a_pass(world):
    """Whatever takes the evidence away takes the clean outcome away, and says so in a finding."""
    for file in list(world.texts):
        kept = world.texts.pop(file)
        report = world.write().audit()
        for item in report.items:
            resting = {e["citation"] for e in item.evidence if "passage_hash" not in e}
            assert (item.outcome == CLEAN) == (not resting)
            assert bool(resting) == any(f.record in resting for f in report.findings if f.code == "A241")
        assert 0 < report.summary[NOT_ASSESSED] < 5
        world.texts[file] = kept


def test_an_empty_section_is_not_assessed_and_no_pass(world):
    world.texts[f"{US}.txt"] = US_TEXT.replace("(a) Words. A boat is a hull of 3 or more planks.", "> [note]")
    report = world.write().audit()
    assert outcomes(report)["boats-us-r02"] == (NOT_ASSESSED, ["text-not-held"])
    world.texts[f"{US}.txt"] = US_TEXT[: US_TEXT.index("(a) Words")]
    report = world.write().audit()
    assert outcomes(report)["boats-us-r02"] == (NOT_ASSESSED, ["text-not-held"]) and "A104" in codes(report)


def test_the_latest_text_is_read_and_an_undated_one_only_where_there_is_no_other(world):
    world.texts[f"{US}@2026-11-01.txt"] = dated("2026-11-01").replace("fifteen (15)", "sixteen (16)")
    world.texts[f"{US}@.txt"] = dated("not stated").replace("fifteen (15)", "seventeen (17)")
    report = world.write().audit(requirements=["boats-us-r01"])
    assert outcomes(report)["boats-us-r01"][0] == MISSTATES
    assert {e["text"] for e in report.items[0].evidence} == {f"{US}@2026-11-01.txt"}
    del world.texts[f"{US}@2026-11-01.txt"]
    assert world.write().audit(requirements=["boats-us-r01"]).summary[CLEAN] == 1


def test_readers_who_disagree_are_both_kept_and_the_adverse_one_counts(world):
    world.read_by("boats-us-r03-c1", reader="Minh", reader_kind="lawyer", outcome=MISSTATES,
                  reason_code="wrong-actor", reason="It binds the owner.")  # fmt: skip
    (item,) = world.audit(requirements=["boats-us-r03"]).items
    assert (item.outcome, item.reasons) == (MISSTATES, ["wrong-actor"])
    assert [(r["reader"], r["outcome"], r["current"]) for r in item.readings] == [
        ("Lan", CLEAN, True), ("Minh", MISSTATES, True),
    ]  # fmt: skip
    assert "no lawyer has read it" not in item.open and "no person has read it" not in item.open
    (pair,) = agreement(world.package())
    assert (pair["readers"], pair["n"], pair["agree"]) == (["ai Lan", "lawyer Minh"], 1, 0)
    assert pair["disagreements"] == ["boats-us-r03-c1"]


def test_a_reading_of_a_passage_that_is_no_longer_there_does_not_count_even_where_the_hash_was_renewed(world):
    record_hashes(world.package(), world.corpus())
    path = world.folder / f"{US}.txt"
    path.write_text(US_TEXT.replace("sends a list", "sends a table"), encoding="utf-8", newline="")
    assert outcomes(world.audit())["boats-us-r03"] == (DEFECT, ["passage-changed"])
    record_hashes(world.package(), world.corpus(), changed=True)
    report = world.audit()
    assert outcomes(report)["boats-us-r03"] == (NOT_ASSESSED, [STALE]) and report.summary[CLEAN] == 4
    # And without the texts, by the hash that the citation has now.
    assert outcomes(world.audit(texts=False))["boats-us-r03"] == (NOT_ASSESSED, [STALE])
    index = Index(world.package())
    (citation,) = index.citations["boats-us-r03"]
    assert latest(index, citation) == ([], True)


def test_the_date_decides_what_is_law(world):
    world.set(US, ends="2026-12-31")
    world.write().read_by(date="2026-12-01")
    assert world.audit().summary[CLEAN] == 5
    report = world.audit(as_of=DAY.replace(year=2027))
    assert report.summary == dict.fromkeys(ORDER, 0) | {MISSTATES: 4, CLEAN: 1} and report.as_of == "2027-11-30"


# Readings


def test_a_reading_is_written_with_its_evidence(unread):
    (key,) = record(unread.package(), unread.corpus(), unread.readings()[:1])
    (reading,) = unread.package().table("audit")
    text = unread.corpus().latest(US)
    read_, _ = checks.read_citation(Index(unread.package()), unread.package().table("citations")[0], unread.corpus())
    assert (reading.key, key) == ("boats-us-r01-c1-a1",) * 2
    assert (reading["text_hash"], reading["passage_hash"]) == (text.sha256, read_.passage.sha256)
    for fact, (start, end) in checks.parse_evidence(reading["evidence"]).items():
        assert read_.passage.normal[start:end] in {"fifteen", "15", "30"} and fact.startswith("boats-us-r01-f")
    # From its first reading on the cell is held to being read; the other cell is not.
    errors = [f for f in regatta_tools.validate(unread.root).findings if f.severity == "error"]
    assert [(f.code, f.record) for f in errors] == [("A001", f"boats-us-r{n:02d}") for n in (2, 3, 4)]


REFUSED = {
    "no such citation": {"citation": "boats-us-r09-c1"},
    "no such outcome": {"outcome": "clean"},
    "no such kind": {"reader_kind": "robot"},
    "no such reason": {"outcome": DEFECT, "reason_code": "wrong", "reason": "x"},
    "nobody": {"reader": " "},
    "no date": {"date": "30/11/2026"},
    "a date of another form": {"date": "20261130"},
    "no such day": {"date": "2026-02-30"},
    "clean with a reason code": {"reason_code": "wrong-number"},
    "adverse without a reason": {"outcome": DEFECT, "reason_code": "wrong-locator"},
    "adverse without a code": {"outcome": DEFECT, "reason": "It is not there."},
    "evidence of another form": {"evidence": "boats-us-r01-f1"},
    "evidence of another fact": {"evidence": "boats-us-r02-f1=1-2"},
    "evidence behind the end": {"evidence": "boats-us-r01-f1=1-99999"},
    "a formula as reason": {"outcome": DEFECT, "reason_code": "wrong-locator", "reason": '=HYPERLINK("x")'},
    "a formula as reader": {"reader": "@Lan"},
    "an invisible letter": {"reader": "La\u200bn"},
    "half a character": {"decision": "\ud800"},
    "another item": {"item_hash": "0" * 64},
    "another passage": {"passage_hash": "0" * 64},
}


@pytest.mark.parametrize("cells", REFUSED.values(), ids=REFUSED)
def test_a_reading_that_cannot_stand_is_refused_and_nothing_is_written(world, cells):
    before = {p: p.read_bytes() for p in world.root.rglob("*") if p.is_file()}
    good = world.readings(reader="Minh")[1:]
    bad = NewReading(**{**vars(world.readings(reader="Minh")[0]), "row": 7, **cells})
    with pytest.raises(InputError) as caught:
        record(world.package(), world.corpus(), [*good, bad])
    assert caught.value.code == "U131" and caught.value.place == "row 7" and caught.value.mend
    assert {p: p.read_bytes() for p in world.root.rglob("*") if p.is_file()} == before


def test_an_outcome_without_a_held_passage_is_refused_and_not_assessed_is_taken(unread):
    del unread.texts[f"{US}.txt"]
    unread.write()
    with pytest.raises(InputError, match="has no evidence"):
        unread.read_by("boats-us-r01-c1")
    unread.read_by("boats-us-r01-c1", outcome=NOT_ASSESSED, reason_code="text-not-held")
    (reading,) = unread.package().table("audit")
    assert (reading["text_hash"], reading["passage_hash"], reading["evidence"]) == ("", "", "")


# A reader who holds no text


FEES = "(b) Fees. The fee may not exceed 2 percent of the price. The keeper keeps at least 12 lamps."
PARAGRAPH = f"§ 999.5 Boats.\n\n{FEES}"
WRAPPED = f"  § 999.5  Boats. {FEES}\n".replace(" exceed", "\r\nexceed").replace(" The keeper", "\nThe keeper")
SECTION = US_TEXT.partition("## § 999.5\n")[2].partition("## § 999.9")[0]


@pytest.fixture
def hashed(world):
    """The package with the hashes of its passages."""
    record_hashes(world.package(), world.corpus())
    return world


@pytest.mark.parametrize("words", [
    PARAGRAPH, WRAPPED, SECTION, f"Title 50, part 999\nread on 2026-12-01\n{SECTION}",
], ids=["the paragraph", "wrapped anew", "the section", "with lines above"])  # fmt: skip
def test_the_words_that_were_read_are_the_evidence_where_no_text_is_held(hashed, tmp_path, words):
    file = tmp_path / "words.txt"
    file.write_text(words, encoding="utf-8", newline="")
    code, out, err = invoke("audit", "record", "boats-us-r02-c1", "--outcome", CLEAN, "--reader", "Minh", "--kind",
                            "human", "--passage", file, "--package", hashed.root)  # fmt: skip
    assert (code, out.strip(), err) == (0, "boats-us-r02-c1-a2", "")
    reading, held = hashed.package().by_id["boats-us-r02-c1-a2"], hashed.package().by_id["boats-us-r02-c1-a1"]
    for column in ("passage_hash", "item_hash", "evidence"):
        assert reading[column] == held[column]
    assert reading["text_hash"] == hashlib.sha256(words.encode()).hexdigest(), "what was read is these words"
    (item,) = (i for i in hashed.audit().items if i.requirement.key == "boats-us-r02")
    assert {(r["reader"], r["current"]) for r in item.readings} == {("Lan", True), ("Minh", True)}
    assert regatta_tools.validate(hashed.root).ok


@pytest.mark.parametrize(("words", "what"), [
    (PARAGRAPH.replace("12", "13"), "do not hold the passage"),
    (SECTION.replace("(b) Fees", "(e) Fees"), "do not hold the passage"),
    (PARAGRAPH.replace(" may", ""), "do not hold the passage"), ("\ufeff \n", "empty"), (b"\xff\xfe", "UTF-8"),
], ids=["a number", "another paragraph", "a word lost", "empty", "another encoding"])  # fmt: skip
def test_other_words_are_no_evidence(hashed, tmp_path, words, what):
    file, before = tmp_path / "words.txt", audit_file(hashed).read_bytes()
    file.write_bytes(words if isinstance(words, bytes) else words.encode())
    code, out, err = invoke("audit", "record", "boats-us-r02-c1", "--outcome", CLEAN, "--reader", "Minh", "--kind",
                            "human", "--passage", file, "--package", hashed.root)  # fmt: skip
    assert (code, out) == (2, "") and what in err and "U131" in err
    assert audit_file(hashed).read_bytes() == before


def test_without_text_or_words_or_a_hash_nothing_but_not_assessed_is_recorded(hashed, monkeypatch):
    monkeypatch.delenv("REGATTA_TEXTS", raising=False)
    said = ("--reader", "Minh", "--kind", "human", "--package", hashed.root)
    code, _, err = invoke("audit", "record", "boats-us-r02-c1", "--outcome", CLEAN, *said)
    assert code == 2 and "has no evidence" in err and "docs/reading.md" in err
    assert invoke("audit", "record", "boats-us-r02-c1", "--outcome", NOT_ASSESSED, *said)[0] == 0
    hashed.write()  # and with it the hashes are gone
    file = hashed.root / "words.txt"
    file.write_text(PARAGRAPH, encoding="utf-8")
    code, _, err = invoke("audit", "record", "boats-us-r02-c1", "--outcome", CLEAN, "--passage", file, *said)
    assert code == 2 and "has no hash of its passage" in err and "regatta sources add" in err


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_sheet_with_the_passages_comes_back_to_who_holds_no_text(hashed, tmp_path, monkeypatch, ending):
    monkeypatch.delenv("REGATTA_TEXTS", raising=False)
    write = review.todo if ending == ".csv" else review.todo_workbook
    sheet, bare = tmp_path / f"review{ending}", tmp_path / f"bare{ending}"
    for path, corpus in ((sheet, hashed.corpus()), (bare, None)):
        path.write_bytes(write(hashed.package(), corpus))
        if ending == ".csv":
            path.write_bytes(filled(path.read_bytes(), **SAID))
        else:
            from openpyxl import load_workbook

            book = load_workbook(path)
            for column, value in SAID.items():
                book.worksheets[0].cell(2, review.COLUMNS.index(column) + 1).value = value
            book.save(path)
    code, _, err = invoke("audit", "import", bare, "--package", hashed.root)
    assert code == 2 and "has no evidence" in err and "row 2" in err
    code, out, err = invoke("audit", "import", sheet, "--package", hashed.root)
    assert (code, out, err) == (0, "1 reading added\n", "")
    reading, held = hashed.package().by_id["boats-us-r01-c1-a2"], hashed.package().by_id["boats-us-r01-c1-a1"]
    for column in ("text_hash", "passage_hash", "item_hash", "evidence"):
        assert reading[column] == held[column], column


def test_what_was_just_edited_is_audited_and_read_before_the_descriptor_knows_of_it(hashed):
    path = hashed.root / "instruments" / "boats-us" / "facts.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("at-most,15", "at-most,16"), encoding="utf-8", newline="")
    at = ("--package", hashed.root, "--texts", hashed.folder)
    assert "R011" in {f.code for f in regatta_tools.validate(hashed.root).findings}
    code, out, _ = invoke("audit", *at)
    assert code == 1 and "does not state 16" in out
    code, out, _ = invoke("audit", "todo", "--unread", *at)
    assert code == 0 and "boats-us-r01-c1" in out
    code, _, err = invoke("audit", "hash", *at)
    assert code == 2 and "R011" in err, "a hash is written over the whole table, which has to be the one described"


@given(
    st.lists(
        st.tuples(st.sampled_from(["Lan", "Minh"]), st.sampled_from(range(7)), st.booleans()), min_size=1, max_size=6
    )
)
@settings(max_examples=15)
def test_readings_are_only_added(tmp_path_factory, batches):
    world = World(tmp_path_factory.mktemp("world")).write()
    seen: set[str] = set()
    for number, (reader, citation, clean) in enumerate(batches, 1):
        files = {cell: audit_file(world, cell) for cell in ("boats-us", "boats-vn")}
        before = {cell: path.read_bytes() if path.is_file() else b"" for cell, path in files.items()}
        said = {} if clean else {"outcome": DEFECT, "reason_code": "wrong-locator", "reason": "No."}
        new = world.readings(reader=reader, date=f"2026-11-{number:02d}", **said)[citation]
        added = record(world.package(), world.corpus(), [new])
        assert len(added) == 1 and not seen & {*added}
        seen.update(added)
        after = {cell: path.read_bytes() if path.is_file() else b"" for cell, path in files.items()}
        for cell in files:
            assert after[cell].startswith(before[cell])
        assert sum(after[cell] != before[cell] for cell in files) == 1
        assert not read(world.root).findings, "the descriptor is renewed with the readings"
    assert {r.key for r in world.package().table("audit")} == seen


def test_ids_stay_unique_where_rows_were_merged_from_two_branches(world):
    rows = list(csv.DictReader(audit_file(world).open(encoding="utf-8", newline="")))
    first = rows[0]
    write_audit(world, [{**first, "id": f"{first['citation']}-a3"}, *rows[1:]])
    world.read_by(first["citation"], reader="Minh")
    keys = [r.key for r in world.package().table("audit")]
    assert len({*keys}) == len(keys) and f"{first['citation']}-a4" in keys
    # Two are gone, and that stays a finding whatever is added.
    errors = [f for f in regatta_tools.validate(world.root).findings if f.severity == "error"]
    assert [(f.code, f.record) for f in errors] == [("A003", f"{first['citation']}-a3")]


def test_the_same_reading_is_not_added_twice(world):
    before = audit_file(world).read_bytes()
    assert record(world.package(), world.corpus(), world.readings()) == []
    assert audit_file(world).read_bytes() == before
    assert len(record(world.package(), world.corpus(), [*world.readings(reader="Minh")[:2]] * 2)) == 2


def test_the_descriptor_is_renewed_only_where_it_described_the_package(world):
    lost = world.root / "instruments/boats-us/facts.csv"
    lost.write_bytes(b"".join(lost.read_bytes().splitlines(keepends=True)[:-1]))
    before = (world.root / "datapackage.json").read_bytes()
    assert [f.code for f in read(world.root).findings]
    world.read_by("boats-us-r01-c1", reader="Minh")
    assert (world.root / "datapackage.json").read_bytes() == before
    assert {f.file for f in read(world.root).findings} >= {"instruments/boats-us/facts.csv"}


# The review sheet


def filled(sheet: bytes, **cells: str) -> bytes:
    """A sheet with the first row filled in."""
    header, first, *rest = csv.reader(io.StringIO(sheet.decode("utf-8"), newline=""))
    for column, value in cells.items():
        first[header.index(column)] = value
    out = io.StringIO()
    csv.writer(out).writerows([header, first, *rest])
    return out.getvalue().encode("utf-8-sig")


SAID = {"outcome": CLEAN, "reader": "Trần Thị Lan", "reader_kind": "human", "date": "2026-12-01",
        "decision": "Giữ nguyên."}  # fmt: skip


def test_a_sheet_goes_out_and_comes_back_as_csv(world, tmp_path):
    # A passage that a spreadsheet would take for a formula, and a duty as well.
    world.edit("(a) Reports. A keeper", "-1 (a) Reports. A keeper")
    world.set("boats-us-r01", duty_en="-not later than 15 business days; abroad, within 30 calendar days")
    world.set("boats-us-r01-c1", locator="50 CFR § 999.5")
    world.texts[f"{US}.txt"] = US_TEXT.replace("§ 999.5 Boats.", "-7 boats").replace("(a) Reports", "=(a) Reports")
    world.write()
    sheet = review.todo(world.package(), world.corpus())
    rows = list(csv.DictReader(io.StringIO(sheet.decode("utf-8"), newline="")))
    assert len(rows) == len(world.tables["citations"]) and list(rows[0]) == list(review.COLUMNS)
    assert rows[0]["passage"].startswith("'-7 boats") and rows[0]["duty_en"].startswith("'-not later")
    path = tmp_path / "review.csv"
    path.write_bytes(filled(sheet, **SAID))
    (reading,) = review.import_sheet(path)
    (key,) = record(world.package(), world.corpus(), [reading])
    got = world.package().by_id[key]
    assert {k: got[k] for k in SAID} == SAID and got["citation"] == "boats-us-r01-c1"
    left = list(csv.DictReader(io.StringIO(review.todo(world.package(), world.corpus()).decode("utf-8"), newline="")))
    assert [r["citation"] for r in left] == [r["citation"] for r in rows[1:]]
    everything = review.todo(world.package(), None, which=review.ALL, cells=["boats-us"])
    assert everything.count(b"boats-us-r01-c1") and b"boats-vn" not in everything


def test_a_sheet_goes_out_and_comes_back_as_a_workbook(world, tmp_path):
    from openpyxl import load_workbook

    world.texts[f"{US}.txt"] = US_TEXT.replace("(c) List. By", "(c) List. _x0041_ By")
    world.set("boats-us-r01", duty_en="-not later than 15 business days; abroad, within 30 calendar days")
    world.write()
    path = tmp_path / "review.xlsx"
    path.write_bytes(review.todo_workbook(world.package(), world.corpus()))
    book = load_workbook(path)
    sheet = book.worksheets[0]
    header = [cell.value for cell in sheet[1]]
    assert header == list(review.COLUMNS) and sheet.max_row == 1 + len(world.tables["citations"])
    assert {cell.data_type for row in sheet.iter_rows() for cell in row if cell.value} == {"s"}
    assert sheet.cell(2, header.index("duty_en") + 1).value.startswith("-not later")
    lists = {next(iter(v.sqref.ranges)).min_col: v.formula1 for v in sheet.data_validations.dataValidation}
    assert set(lists) == {header.index(c) + 1 for c in ("outcome", "reason_code", "reader_kind")}
    for column, value in {**SAID, "date": DAY}.items():
        sheet.cell(2, header.index(column) + 1).value = value
    book.save(path)
    (reading,) = review.import_sheet(path)
    assert (reading.outcome, reading.reader, reading.date) == (CLEAN, SAID["reader"], DAY.isoformat())
    assert len(record(world.package(), world.corpus(), [reading])) == 1
    sheet.cell(2, header.index("reason") + 1).value = "=1+1"
    book.save(path)
    with pytest.raises(InputError, match="formula"):
        review.import_sheet(path)


def test_a_passage_longer_than_a_cell_of_excel_is_cut_and_says_so(world, tmp_path):
    from openpyxl import load_workbook

    world.edit("By March 31", "A long duty. " * 4000 + "By March 31")
    path = tmp_path / "review.xlsx"
    path.write_bytes(review.todo_workbook(world.write().package(), world.corpus()))
    at = review.COLUMNS.index("passage") + 1
    texts = [row[at - 1].value for row in load_workbook(path).worksheets[0].iter_rows(min_row=2)]
    assert sum("[cut here" in text for text in texts) == 1 and max(map(len, texts)) < 32_767
    assert b"[cut here" not in review.todo(world.package(), world.corpus())


def test_what_changed_while_the_sheet_was_out_is_refused(world, tmp_path):
    path = tmp_path / "review.csv"
    path.write_bytes(filled(review.todo(world.package(), world.corpus()), **SAID))
    world.set("boats-us-r01", actor="master")
    world.write()
    with pytest.raises(InputError, match="changed after the sheet"):
        record(world.package(), world.corpus(), review.import_sheet(path))
    world.set("boats-us-r01", actor="keeper")
    world.edit("A keeper must tell", "A master must tell")
    world.write()
    with pytest.raises(InputError, match="not the one that the sheet had"):
        record(world.package(), world.corpus(), review.import_sheet(path))


BAD_SHEETS = {
    "empty": b"",
    "other columns": b"a,b\n1,2\n",
    "semicolons": b";".join(c.encode() for c in review.COLUMNS) + b"\n",
    "no outcome": b",".join(c.encode() for c in review.COLUMNS) + b"\n",
    "latin-1": ",".join(review.COLUMNS).encode() + "\nđề".encode("utf-16"),
    "open quote": b'citation,outcome\n"a',
    "nul": b"citation\x00,outcome\n",
}


@pytest.mark.parametrize("raw", BAD_SHEETS.values(), ids=BAD_SHEETS)
@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_what_is_no_review_sheet_is_refused(tmp_path, raw, ending):
    path = tmp_path / f"review{ending}"
    path.write_bytes(raw)
    with pytest.raises(InputError) as caught:
        review.import_sheet(path)
    assert caught.value.place.startswith(str(path))


def test_a_row_with_words_and_no_outcome_is_not_passed_over(world, tmp_path):
    path = tmp_path / "review.csv"
    path.write_bytes(filled(review.todo(world.package(), None), reason="It binds the owner."))
    with pytest.raises(InputError, match="no outcome"):
        review.import_sheet(path)


# Hashes


def test_hashes_are_recorded_once_and_a_changed_passage_only_when_told(world):
    done = record_hashes(world.package(), world.corpus())
    assert len(done.new) == 7 and not done.changed and not done.untaken
    assert regatta_tools.validate(world.root).ok and world.audit().summary[CLEAN] == 5
    before = {p: p.read_bytes() for p in world.root.rglob("*") if p.is_file()}
    again = record_hashes(world.package(), world.corpus())
    assert (len(again.right), again.new, again.changed) == (7, [], [])
    assert {p: p.read_bytes() for p in world.root.rglob("*") if p.is_file()} == before
    path = world.folder / f"{US}.txt"
    path.write_text(US_TEXT.replace("waits 7 days", "waits 8 days"), encoding="utf-8", newline="")
    before[path] = path.read_bytes()
    with pytest.raises(InputError, match="boats-us-r04-c1"):
        record_hashes(world.package(), world.corpus())
    assert {p: p.read_bytes() for p in world.root.rglob("*") if p.is_file()} == before
    assert record_hashes(world.package(), world.corpus(), changed=True).changed == ["boats-us-r04-c1"]
    assert not record_hashes(world.package(), world.corpus()).changed


def test_hashes_of_one_cell_or_requirement_leave_the_others_alone(world):
    at = ("--package", world.root, "--texts", world.folder)
    code, out, _ = invoke("audit", "hash", "--requirement", "boats-us-r03", *at)
    assert code == 0 and out.startswith("1 new, 0 changed")
    assert invoke("audit", "hash", "--requirement", "boats-us-r99", *at)[0] == 2
    world.write()
    done = record_hashes(world.package(), world.corpus(), cells=["boats-vn"])
    assert done.new == ["boats-vn-r01-c1", "boats-vn-r01-c2"]
    assert {c.key for c in world.package().table("citations") if c["passage_hash"]} == {*done.new}


# Garbage


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda t: t.encode("utf-8", "surrogatepass")))
@settings(max_examples=150)
def test_any_bytes_as_a_text_are_findings_or_a_text_and_never_an_error(tmp_path_factory, raw):
    folder = tmp_path_factory.mktemp("texts")
    (folder / f"{US}.txt").write_bytes(raw)
    corpus = read_corpus(folder)
    assert bool(corpus.texts) != (US in corpus.unusable)
    assert corpus.texts or {f.code for f in corpus.findings} <= {"A101", "A102", "A103"}


@given(st.data())
@settings(max_examples=60)
def test_a_text_that_was_damaged_anywhere_is_audited_without_an_error(tmp_path_factory, data):
    world = WORLDS.get("one") or WORLDS.setdefault("one", World(tmp_path_factory.mktemp("world")).write().read_by())
    raw = bytearray(US_TEXT.encode("utf-8"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=6))
        if not raw:
            break
    (world.folder / f"{US}.txt").write_bytes(bytes(raw))
    report = audit_package(world.package(), world.corpus())
    json.dumps(report.as_dict(), allow_nan=False)
    assert sum(report.summary.values()) == 5
    # A clean outcome means that the very passage that was read is still there.
    kept = {r["citation"]: r["passage_hash"] for r in world.package().table("audit")}
    for item in report.items:
        if item.outcome == CLEAN:
            assert all(kept[e["citation"]] == e["passage_hash"] for e in item.evidence)


WORLDS: dict[str, World] = {}


def test_what_is_no_file_or_too_large_is_a_finding(world, monkeypatch):
    (world.folder / "folder.txt").mkdir()
    monkeypatch.setattr("regatta_tools.provenance.corpus.MAX_BYTES", 600)
    corpus = read_corpus(world.folder)
    assert {f.code for f in corpus.findings} == {"A101"} and corpus.unusable == {"folder", US}
    assert corpus.why_none(US).endswith("cannot be used") and corpus.why_none("other").startswith("no text")


def test_a_header_key_given_twice_and_a_heading_in_the_header():
    found: list = []
    text = parse_text("source-id: a\nas-of: 2026-01-01\nas-of: 2027-01-01\n## § 1\n\nx\n", "a.txt", "", found)
    assert text.date == "2026-01-01" and [s.heading for s in text.sections] == ["§ 1"] and not found


# The command


def test_the_command_leaves_with_0_1_or_2(world, tmp_path):
    at = ("--package", world.root, "--texts", world.folder)
    code, out, err = invoke("audit", *at)
    assert (code, err) == (0, "") and "No lawyer has read these obligations" in out
    world.set("boats-us-r01-f1", value="16")
    world.write()
    code, out, err = invoke("audit", *at)
    assert (code, err) == (1, "") and "instruments/boats-us/facts.csv:2:" in out and "error A201" in out
    assert invoke("audit", *at, "--cell", "boats-vn")[0] == 0
    assert invoke("audit", *at, "--requirement", "boats-us-r02")[0] == 0
    for arguments, what in [
        (("--cell", "boats"), "boats-us, boats-vn"),
        (("--requirement", "boats-us-r99"), "no requirement"),
        (("--requirement", "boats-us-r01", "--cell", "boats-vn"), "of another cell"),
        (("--as-of", "30/11/2026"), "is not a date"),
        (("--within-days", "-1"), "not in the range"),
        (("--within-days", "9999999999"), "not in the range"),
        (("--format", "xml"), "is not one of"),
        (("--texts", tmp_path / "nowhere"), "no folder"),
        (("--package", tmp_path / "nowhere"), ""),
        (("--texts", world.root / "datapackage.json"), "is a file"),
        (("agreement",), "write options behind agreement"),
        (("nothing",), "No such command"),
    ]:  # fmt: skip
        code, out, err = invoke("audit", *at, *arguments)
        assert (code, out) == (2, "") and what in err and "Traceback" not in err, arguments


def test_a_package_that_cannot_be_followed_is_refused_and_a_wrong_one_is_audited(world):
    at = ("--package", world.root, "--texts", world.folder)
    for key, cells in [
        ("boats-us", {"as_of": "30.11.2026"}),
        ("boats-us-r01-c1", {"source": "nowhere"}),
        ("boats-us-r01-f1", {"citation": "nowhere"}),
        ("boats-us-r01-c1", {"requirement": "nowhere"}),
        (US, {"ends": "soon"}),
    ]:
        kept = dict(world.row(key))
        world.set(key, **cells)
        world.write()
        for command in ((), ("todo",), ("hash",), ("agreement",)):
            given = at if command != ("agreement",) else at[:2]
            code, _, err = invoke("audit", *command, *given)
            assert code == 2 and "mend:" in err and "defect of REGATTA" not in err, (key, command)
        world.set(key, **dict.fromkeys(cells, "") | {c: v for c, v in kept.items() if c in cells})
    (world.root / "datapackage.json").write_text("{", encoding="utf-8")
    assert invoke("audit", *at)[0] == 2


def test_json_is_strict_and_says_where_everything_is(world):
    code, out, _ = invoke("audit", "--package", world.root, "--texts", world.folder, "--format", "json")
    report = json.loads(out, parse_constant=pytest.fail)
    assert code == 0 and report["ok"] and report["summary"][CLEAN] == 5 and "upcoming" not in report
    text = world.corpus().latest(VN)
    (item,) = (i for i in report["items"] if i["requirement"] == "boats-vn-r01")
    assert set(item) == {"requirement", "cell", "outcome", "reasons", "readings", "evidence", "open"}
    for evidence in item["evidence"]:
        assert (evidence["text"], evidence["text_date"], evidence["text_hash"]) == (text.file, "2026-03", text.sha256)
        citation = world.package().by_id[evidence["citation"]]
        found, _ = checks.read_citation(Index(world.package()), citation, world.corpus())
        assert evidence["passage_hash"] == found.passage.sha256 and evidence["sections"] == ["Điều 5"]
        for fact, (start, end) in evidence["facts"].items():
            assert found.passage.normal[start:end] in ("ba mươi", "400.000.000") and fact.startswith("boats-vn-r01")
    assert text.sections[0].body not in out, "no text of the law leaves the user's folder"


@pytest.mark.parametrize("form", ["text", "json", "table", "github", "sarif", "junit"])
def test_each_form_holds_the_findings_and_goes_to_a_file(world, form):
    world.set("boats-us-r01-f1", value="16")
    world.texts["unknown.txt"] = b"\xff"
    world.write()
    at = ("--package", world.root, "--texts", world.folder, "--format", form)
    code, out, err = invoke("audit", *at)
    assert (code, err) == (1, "")
    findings = world.audit().findings
    if form == "sarif":
        SarifLog.model_validate_json(out)
        results = json.loads(out)["runs"][0]["results"]
        assert [r["ruleId"] for r in results] == [f.code for f in findings]
        places = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].rpartition("/")[2] for r in results}
        assert {"facts.csv", "unknown.txt"} <= places
        for result in results:  # each address leads to a file
            address = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            assert Path(address.removeprefix("file://")).is_file()
    elif form == "junit":
        root = ElementTree.fromstring(out.split("\n", 1)[1])
        assert root.get("name") == "regatta audit"
        cases = root.iter("testcase")
        assert sum(c.find("failure") is not None for c in cases) == sum(f.severity == "error" for f in findings)
    elif form == "github":
        assert out.count("::error ") == sum(f.severity == "error" for f in findings)
        assert "title=A201" in out and "title=A101" in out
    elif form != "table":
        assert all(f.message in out or json.dumps(f.message)[1:-1] in out for f in findings)
    target = world.root / f"report.{form}"
    code, told, _ = invoke("audit", *at, "--output", target)
    assert code == 1 and target.read_text(encoding="utf-8") == f"{out.rstrip()}\n"
    assert told == "5 requirements: 1 misstates the current rule, 4 verified clean\n"
    code, _, err = invoke("audit", *at, "--output", world.root / "nowhere" / "x")
    assert code == 3 and "cannot be written" in err


def test_what_starts_or_ends_soon(world):
    world.set("boats-us-r01-c1", force_to="2026-12-31")
    world.set("boats-us-r01-f1", valid_to="2026-12-31")
    world.set("boats-us-r01-f2", valid_from="2027-01-01")
    world.set(US, superseded_by=PARENT)
    world.set(PARENT, effective="2027-01-29")
    world.set("boats-vn-r01", valid_from="2026-11-30", valid_to="2026-11-30")
    world.write()
    report = world.audit(within=60)
    us = [f"boats-us-r0{n}" for n in range(1, 5)]
    assert [(c.day.isoformat(), c.event, c.record.key, c.column, [*c.requirements]) for c in report.upcoming] == [
        ("2026-11-30", "ends", "boats-vn-r01", "valid_to", ["boats-vn-r01"]),
        ("2026-12-31", "ends", "boats-us-r01-c1", "force_to", ["boats-us-r01"]),
        ("2026-12-31", "ends", "boats-us-r01-f1", "valid_to", ["boats-us-r01"]),
        ("2027-01-01", "starts", "boats-us-r01-f2", "valid_from", ["boats-us-r01"]),
        ("2027-01-29", "starts", PARENT, "effective", us),
    ]
    assert [c.day.isoformat() for c in world.audit(within=59).upcoming][-1] == "2027-01-01"
    assert world.audit().upcoming is None
    assert world.audit(within=30, as_of=DAY.replace(year=2030)).upcoming == []
    code, out, _ = invoke("audit", "--package", world.root, "--within-days", "60", "--cell", "boats-us")
    assert code == 0 and "2027-01-01  starts  boats-us-r01-f2 (facts.valid_from)" in out and "boats-vn" not in out
    out = invoke("audit", "--package", world.root, "--within-days", "60", "--format", "json")[1]
    assert json.loads(out)["upcoming"] == [c.as_dict() for c in report.upcoming]


def test_the_shipped_cell_of_vietnamese_banks_shows_the_turn_of_the_year():
    report = audit_package(read(ROOT), None, as_of=DAY, cells=["banking-vn"], within=60)
    assert {c.day.isoformat() for c in report.upcoming} >= {"2026-12-31", "2027-01-01"}
    assert all(r.startswith("banking-vn-") for c in report.upcoming for r in c.requirements)


def test_the_whole_way_on_the_command_line_under_the_c_locale(tmp_path):
    folder = tmp_path / "thuyền bè"
    folder.mkdir()
    world = World(folder).write()
    at = ("--package", world.root, "--texts", world.folder)
    done = regatta("audit", "hash", *at, **C_LOCALE)
    assert done.returncode == 0 and b"7 new" in done.stdout, done.stderr
    sheet = folder / "rà soát.csv"
    assert regatta("audit", "todo", *at, "-o", sheet, **C_LOCALE).returncode == 0
    sheet.write_bytes(filled(sheet.read_bytes(), **SAID))
    done = regatta("audit", "import", sheet, *at, **C_LOCALE)
    assert (done.returncode, done.stdout) == (0, b"1 reading added\n"), done.stderr
    done = regatta("audit", "import", sheet, *at, **C_LOCALE)
    assert (done.returncode, done.stdout) == (0, b"0 readings added, 1 known already\n")
    said = ("--outcome", CLEAN, "--reader", "Lê Văn Đạt", "--kind", "human", "--date", "2026-12-02")
    done = regatta("audit", "record", "boats-vn-r01-c1", *said, *at, **C_LOCALE)
    assert (done.returncode, done.stdout) == (0, b"boats-vn-r01-c1-a1\n"), done.stderr
    assert {r["reader"] for r in world.package().table("audit")} == {SAID["reader"], "Lê Văn Đạt"}
    done = regatta("audit", *at, "--format", "json", **C_LOCALE)
    report = json.loads(done.stdout.decode("utf-8"))
    assert done.returncode == 0 and report["texts"].endswith("thuyền bè/texts")
    assert regatta("audit", "agreement", "--package", world.root, **C_LOCALE).returncode == 0
    assert not read(world.root).findings


def test_what_is_to_be_read_is_listed_in_few_words(world, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    at = ("--package", world.root)
    code, out, err = invoke("audit", "todo", "--list", *at)
    assert (code, err) == (0, "") and max(map(len, out.splitlines())) <= 60
    assert out.count("-c") == len(world.tables["citations"]) and "7 citations of 5 obligations to read" in out
    assert "Nothing is to be read." in invoke("audit", "todo", "--list", "--unread", *at)[1]
    assert invoke("audit", "todo", "--list", "-o", world.root / "x.csv", *at)[0] == 2


def test_a_mend_that_several_findings_share_is_said_once():
    one, two, other = (
        Finding("A201", "error", "a.csv", n, 1, "r", f"m{n}", mend) for n, mend in ((1, "do"), (2, "do"), (3, "x"))
    )
    assert listed([one, two, other]) == [
        "a.csv:1:1: error A201: m1 (r)", "a.csv:2:1: error A201: m2 (r)", "    mend of these 2: do",
        "a.csv:3:1: error A201: m3 (r)", "    mend: x",
    ]  # fmt: skip
    assert listed([one, other, two])[1::2] == ["    mend: do", "    mend: x", "    mend: do"]


@pytest.mark.parametrize("columns", ["40", "80"])
def test_the_report_fits_the_terminal_and_says_once_what_is_open_for_all(world, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    out = invoke("audit", "--package", world.root, "--texts", world.folder)[1]
    lines = out.split("\n\n")[0].splitlines() + out.split("\n\n")[-1].splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert out.count("no person has read it") == 1 and "verified clean by machine and an AI" in " ".join(out.split())
    assert "verified clean by an AI" in " ".join(invoke("audit", "--package", world.root)[1].split())
    world.read_by("boats-us-r01-c1", reader="Minh", reader_kind="human")
    out = " ".join(invoke("audit", "--package", world.root, "--texts", world.folder)[1].split())
    assert "boats-us-r01 verified clean by machine and a person and an AI" in out
    assert out.count("no person has read it") == 4


# The shipped package


def test_the_shipped_obligations_give_no_false_alarm(corpus):
    """The machine has nothing against the 125 against the texts that they were written from."""
    package = read(ROOT)
    index = Index(package)
    active = [r for r in package.table("requirements") if r["status"] == "active"]
    assert len(active) == 125
    found = {}
    for requirement in active:
        checked = checks.check(index, requirement, corpus, DAY)
        if checked.troubles:
            found[requirement.key] = [t.message for t in checked.troubles]
        assert all(r.passage is not None for r in checked.reads) or checked.troubles
    assert found == {}
    assert [f for f in corpus.findings if f.severity == "error"] == []
