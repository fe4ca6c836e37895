"""The rules: each code is raised by what it is about, at the right place, and by nothing else."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import ROOT, one_cell, redescribe
from helpers import Sheet, add_table, another_cell, read_again
from hypothesis import given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.rules import registry
from regatta_tools.rules.findings import Finding, ordered
from regatta_tools.rules.registry import Rule, rules
from regatta_tools.suites.reader import check_file, load_labels, load_suite
from regatta_tools.tables import package as package_module
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.package import DESCRIPTOR, read, table_specs
from regatta_tools.tables.shape import class_schema, validator
from regatta_tools.text import shown
from regatta_tools.validation import sql
from regatta_tools.validation.numbers import mentions_number, numbers_in
from regatta_tools.validation.run import check_package, load, parse_as_of

CELL = "insurance-us"
REQUIREMENTS = "instruments/insurance-us/requirements.csv"
SOURCES = "instruments/sources.csv"
Place = tuple[str, int]
Spoil = Callable[[Path], Place]

# One case a code: what spoils the package, and where the finding is. Codes that cannot but come along stand
# behind it. The table is held against the registry below, so a new rule needs a case.
CASES: dict[str, tuple[Spoil, set[str]]] = {}


def case(code: str, *companions: str) -> Callable[[Spoil], Spoil]:
    def keep(spoil: Spoil) -> Spoil:
        CASES[code] = spoil, set(companions)
        return spoil

    return keep


def cells_case(code: str, table: str, row: str, *companions: str, **cells: str) -> None:
    """A case that changes some cells of one row and is found in that row."""

    @case(code, *companions)
    def spoil(root: Path) -> Place:
        sheet = Sheet(root, table)
        return sheet.save(sheet.set(row, **cells))


def bytes_case(code: str, change: Callable[[list[bytes]], list[bytes]], line: int, file: str = SOURCES) -> None:
    """A case that changes the lines of a file, which needs no new descriptor."""

    @case(code)
    def spoil(root: Path) -> Place:
        path = root / file
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
        return file, line


@case("B001")
def _(root: Path) -> Place:
    Sheet(root, "citations").set("insurance-us-r04-c1")
    sheet = Sheet(root, "citations")
    sheet.set("insurance-us-r04-c1", role="scope")
    sheet.save()
    requirements = Sheet(root, "requirements")
    return requirements.file, requirements.line(requirements.find("insurance-us-r04"))


def by_source(code: str, **cells: str) -> None:
    """A case that changes the source of r04 and is found at its citation."""

    @case(code)
    def spoil(root: Path) -> Place:
        citations, sources = Sheet(root, "citations"), Sheet(root, "sources")
        row = citations.find("insurance-us-r04-c1")
        sources.set(citations.rows[row][citations.header.index("source")], **cells)
        sources.save()
        return citations.file, citations.line(row)


by_source("B002", binding="false")
by_source("B003", status="repealed")
by_source("T003", ends="2020-01-01")
cells_case("A001", "requirements", "insurance-us-r04", actor="broker")
cells_case("A002", "audit", "insurance-us-r04-c1-a1", text_hash="")
cells_case("A003", "audit", "insurance-us-r04-c1-a1", id="insurance-us-r04-c1-a2")
cells_case("C001", "citations", "insurance-us-r04-c1", locator="10 CCR § 2695.7(h")
cells_case("C002", "sources", "us-ca-ccr", number="10 CCR § 2695.5, 2695.7")
cells_case("C003", "citations", "insurance-us-r04-c1", locator="11 CCR § 2695.7(h)")
cells_case("C004", "citations", "insurance-us-r04-c1", locator="10 CCR § 2695.7 et seq.")
cells_case("C007", "citations", "insurance-us-r04-c1", locator="10 CCR 2695.7 (h)")
cells_case("C008", "citations", "insurance-us-r04-c1", locator="10 CCR § 2695.8(h)")
cells_case("C009", "sources", "us-ca-ccr", number="10 CCR §§ 2695.5 and 2695.7")
cells_case("C010", "requirements", "insurance-us-r17", jurisdiction="US-CA")
cells_case("F001", "facts", "insurance-us-r01-f1", unit="", day_count="")
cells_case("F002", "facts", "insurance-us-r05-f2", value="16")
cells_case("F003", "facts", "insurance-us-r05-f2", value="30 days")
cells_case("F005", "facts", "insurance-us-r05-f1", day_count="working")
cells_case("F004", "facts", "insurance-us-r01-f1", citation="insurance-us-r02-c1")
cells_case("L001", "requirements", "insurance-us-r01", duty_vi="Trong 15 ngày")
cells_case("T001", "requirements", "insurance-us-r01", valid_from="2026-02-01", valid_to="2026-01-31")
cells_case("T002", "facts", "insurance-us-r01-f1", valid_from="2026-02-01", valid_to="2026-01-31")
cells_case("S001", "sources", "us-ca-ccr", title="")
cells_case("S002", "sources", "us-ca-ccr", adopted="15/12/1992")
cells_case("S003", "faults", "insurance-us-fault-sar", severity="High")
cells_case("S004", "fault_probes", "insurance-us-fault-sar", id="SAR § 1")
cells_case("S005", "fault_probes", "insurance-us-fault-sar", id="2.00E+10")
cells_case("K003", "citations", "insurance-us-r01-c1", source="nowhere")
cells_case("K004", "fault_probes", "insurance-us-fault-sar", "K003", "K007", cell="banking-vn")
cells_case("K006", "citations", "insurance-us-r09-c1", requirement="insurance-us-r10")
cells_case("S006", "sources", "us-ca-ccr", note="Quỹ hỗ trợ § 5".encode().decode("cp1252"))
cells_case("P003", "fault_probes", "insurance-us-fault-business-day-clock-p1", true_result="2026-03-18")
cells_case("P006", "fault_probes", "insurance-us-fault-business-day-clock-p4", parameter="other")


@case("C005")
def _(root: Path) -> Place:
    citations, requirements = Sheet(root, "citations"), Sheet(root, "requirements")
    requirements.set("insurance-us-r04", jurisdiction="US-TX")
    requirements.save()
    return citations.file, citations.line(citations.find("insurance-us-r04-c1"))


@case("C006")
def _(root: Path) -> Place:
    # A German source of a German duty: nothing is wrong, and its citations are not checked.
    requirements, sources = Sheet(root, "requirements"), Sheet(root, "sources")
    requirements.set("insurance-us-r25", jurisdiction="DE")
    requirements.save()
    return sources.save(sources.set("us-ne-stat-44-rbc", jurisdiction="DE"))


@case("K001")
def _(root: Path) -> Place:
    sheet = Sheet(root, "fault_probes")
    sheet.rows.append(list(sheet.rows[0]))
    return sheet.save(len(sheet.rows) - 1)


@case("K002")
def _(root: Path) -> Place:
    sheet = Sheet(root, "fault_requirements")
    sheet.rows.append(list(sheet.rows[0]))
    return sheet.save(len(sheet.rows) - 1)


@case("K005", "P007")
def _(root: Path) -> Place:
    sheet = Sheet(root, "cells")
    sheet.rows.append(list(sheet.rows[0]))
    return sheet.save(sheet.set(1, id="banking-us"))


@case("K007")
def _(root: Path) -> Place:
    shutil.rmtree(root / "instruments")
    shutil.copytree(ROOT / "instruments", root / "instruments")
    sheet = Sheet(root, "fault_requirements")
    sheet.rows.append([CELL, "insurance-us-fault-business-day-clock", "fintech-us-r01"])
    return sheet.save(len(sheet.rows) - 1)


@case("P001")
def _(root: Path) -> Place:
    sheet = Sheet(root, "fault_requirements")
    del sheet.rows[sheet.find("insurance-us-fault-sar", "fault")]
    sheet.save()
    faults = Sheet(root, "faults")
    return faults.file, faults.line(faults.find("insurance-us-fault-sar"))


@case("P002")
def _(root: Path) -> Place:
    sheet = Sheet(root, "fault_probes")
    del sheet.rows[sheet.find("insurance-us-fault-sar")]
    sheet.save()
    values = Sheet(root, "fault_values")
    return values.file, values.line(values.find("insurance-us-fault-sar", "fault"))


@case("P004")
def _(root: Path) -> Place:
    values, probes = Sheet(root, "fault_values"), Sheet(root, "fault_probes")
    values.set(values.find("insurance-us-fault-sar", "fault"), faulty_expr='"prohibited"')
    values.save()
    return probes.save(probes.set("insurance-us-fault-sar", faulty_result="prohibited"))


@case("P005")
def _(root: Path) -> Place:
    values = Sheet(root, "fault_values")
    return values.save(values.set(values.find("insurance-us-fault-sar", "fault"), true_expr="open('x')"))


@case("P008")
def _(root: Path) -> Place:
    # The same date by another number: the probes still agree, the fact is not used.
    values = Sheet(root, "fault_values")
    row = values.find("insurance-us-fault-business-day-clock", "fault")
    return values.save(values.set(row, true_expr="add_days(notice, 10 + 5)"))


@case("P009", "P007")
def _(root: Path) -> Place:
    requirements, links = Sheet(root, "requirements"), Sheet(root, "fault_requirements")
    requirements.set("insurance-us-r21", status="retired")
    requirements.save()
    return links.file, links.line(links.find("insurance-us-r21", "requirement"))


@case("P010")
def _(root: Path) -> Place:
    values = Sheet(root, "fault_values")
    row = values.find("insurance-us-fault-sar", "fault")
    return values.save(values.set(row, fact="insurance-us-r06-f1"))


@case("P014")
def _(root: Path) -> Place:
    for name in ("audit", "citations", "facts", "requirements"):
        sheet = Sheet(root, name)
        row = sheet.find("insurance-us-r25")
        sheet.rows = [[c.replace("insurance-us-r25", "insurance-us-example") for c in cells] for cells in sheet.rows]
        sheet.save()
    return sheet.file, sheet.line(row)


@case("P007")
def _(root: Path) -> Place:
    requirements = Sheet(root, "requirements")
    requirements.set("insurance-us-r25", status="retired")
    requirements.save()
    return "instruments/cells.csv", 2


@case("R001")
def _(root: Path) -> Place:
    (root / SOURCES).unlink()
    return SOURCES, 0


bytes_case("R002", lambda lines: [*lines[:3], b"\xe9" + lines[3], *lines[4:]], 4)
bytes_case("R003", lambda lines: [lines[0].replace(b"title,title_vi", b"title_vi,title"), *lines[1:]], 1)
bytes_case("R004", lambda lines: [line.replace(b",", b";") for line in lines], 1)
bytes_case("R005", lambda lines: [*lines, b'x,"y\n'], 20)
bytes_case("R006", lambda lines: [lines[0], b'x,y"z",\n', *lines[1:]], 2)
bytes_case("R007", lambda lines: [*lines[:2], b"x,y\n", *lines[2:]], 3)
bytes_case("R012", lambda lines: [], 0)
bytes_case("R017", lambda lines: [*lines[:2], b"x," + b"y" * 140_000 + b"\n", *lines[2:]], 3)
bytes_case("R011", lambda lines: [*lines[:4], *lines[5:]], 0, "instruments/insurance-us/fault_probes.csv")
cells_case("R008", "sources", "us-ca-ccr", note="a\u200bb")
cells_case("R009", "sources", "us-ca-ccr", note=unicodedata.normalize("NFD", "Điều lệ"))
cells_case("R010", "sources", "us-ca-ccr", note=" a")


cells_case("R019", "sources", "us-ca-ccr", note='=HYPERLINK("http://x.invalid","see")')
cells_case("F007", "facts", "insurance-us-r23-f1", valid_from="2024-01-01")
cells_case("F008", "facts", "insurance-us-r13-f1", comparator="at-most")
cells_case("T006", "requirements", "insurance-us-r01", valid_from="2027-01-01")
cells_case("T007", "sources", "us-ca-ccr", effective="1990-01-01")
cells_case("P013", "faults", "insurance-us-fault-sar", fixture="")
cells_case("L002", "faults", "insurance-us-fault-sar", injection_vi="Không có lý do thì từ chối.")
by_source("T004", superseded_by="us-tx-ins-542")


@case("F006")
def _(root: Path) -> Place:
    # 30 and 45 days, each for a case of its own, become two times for one case.
    facts = Sheet(root, "facts")
    one = dict(zip(facts.header, facts.rows[facts.find("insurance-us-r05-f2")], strict=True))
    return facts.save(facts.set("insurance-us-r05-f3", label=one["label"], clock_start=one["clock_start"]))


@case("P011")
def _(root: Path) -> Place:
    links = Sheet(root, "fault_requirements")
    row = list(links.rows[links.find("insurance-us-fault-clinical", "fault")])
    row[links.header.index("requirement")] = "insurance-us-r21"
    links.rows.append(row)
    return links.save(len(links.rows) - 1)


@case("P012")
def _(root: Path) -> Place:
    values, probes, faults = (Sheet(root, t) for t in ("fault_values", "fault_probes", "faults"))
    del values.rows[values.find("insurance-us-fault-sar", "fault")]
    values.save()
    del probes.rows[probes.find("insurance-us-fault-sar")]
    probes.save()
    return faults.file, faults.line(faults.find("insurance-us-fault-sar"))


@case("T005")
def _(root: Path) -> Place:
    another_cell(root, "insurance-vn")
    sources, citations = Sheet(root, "sources"), Sheet(root, "citations", "insurance-vn")
    sources.set("vn-decree-97-2026", effective="2027-01-01")
    sources.save()
    return citations.file, citations.line(citations.find("insurance-vn-r17-c2"))


def pair_case(code: str, row: str, column: str, *changes: tuple[str, str], table: str = "requirements") -> None:
    """A case that changes words of one text of a pair in a Vietnamese cell."""

    @case(code)
    def spoil(root: Path) -> Place:
        another_cell(root, "insurance-vn")
        sheet = Sheet(root, table, "insurance-vn")
        number = sheet.find(row)
        text = sheet.rows[number][sheet.header.index(column)]
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return sheet.save(sheet.set(number, **{column: text}))


pair_case("L003", "insurance-vn-r12", "duty_vi", ("15 ngày", "mười sáu ngày"))
pair_case("L005", "insurance-vn-r23", "duty_vi", ("3 ngày làm việc", "3 ngày"))


@case("L004")
def _(root: Path) -> Place:
    another_cell(root, "insurance-vn")
    faults = Sheet(root, "faults", "insurance-vn")
    row = faults.find("insurance-vn-fault-thirty")
    at = faults.header.index("injection_vi")
    marks = unicodedata.normalize("NFD", faults.rows[row][at].replace("đ", "d").replace("Đ", "D"))
    return faults.save(faults.set(row, injection_vi="".join(c for c in marks if not unicodedata.combining(c))))


@case("O001")
def _(root: Path) -> Place:
    requirements = Sheet(root, "requirements")
    duty = requirements.rows[requirements.find("insurance-us-r21")][requirements.header.index("duty_en")]
    taken = " ".join(duty.split()[2:14])
    role = {"id": "insurance-us-role-officer", "cell": CELL, "name_en": "Officer"}
    role |= {"goals_en": "Speed", "limits_en": taken}
    return add_table(root, "roles", role)


def waiver_case(code: str, rule: str, record: str, until: str) -> None:
    @case(code)
    def spoil(root: Path) -> Place:
        waiver = {"rule": rule, "record": record, "reason": "Agreed.", "by": "A. Reader", "until": until}
        return add_table(root, "waivers", waiver)


waiver_case("W001", "P013", "insurance-us-fault-sar-tipping", "2020-01-01")
waiver_case("W002", "P013", "insurance-us-fault-sar-tipping", "9999-12-31")
waiver_case("W003", "K001", "insurance-us-fault-sar-tipping", "9999-12-31")
waiver_case("W004", "P013", "insurance-us-fault-nowhere", "9999-12-31")


def descriptor_case(code: str, *companions: str, place: str = DESCRIPTOR):
    def decorate(change: Callable[[list[dict[str, Any]]], None]) -> None:
        @case(code, *companions)
        def spoil(root: Path) -> Place:
            path = root / DESCRIPTOR
            value = json.loads(path.read_text(encoding="utf-8"))
            change(value["resources"])
            path.write_text(json.dumps(value), encoding="utf-8")
            return place, 0

    return decorate


@descriptor_case("R015")
def _(resources: list[dict[str, Any]]) -> None:
    resources.append({"name": "x", "path": "../x.csv"})


@descriptor_case("R016", place=SOURCES)
def _(resources: list[dict[str, Any]]) -> None:
    del resources[0]


@descriptor_case("R018")
def _(resources: list[dict[str, Any]]) -> None:
    resources.append(resources[0])


def suite_case(code: str, text: str | bytes, line: int) -> None:
    @case(code)
    def spoil(root: Path) -> Place:
        file = root / "suite.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return str(file), line


ONE = "  - id: a\n    turns:\n      - {speaker: user, text: Hello}\n"
suite_case("U001", "id: x\nscenarios: [\n", 3)
suite_case("U002", "id: x\nscenarios:\n" + ONE + "    notes: x\n", 6)
suite_case("U003", "id: x\nscenarios: []\n", 2)
suite_case("U004", "id: x\nscenarios:\n" + ONE + ONE, 6)
suite_case("U005", b"id: x\nscenarios:\n  - id: \xe9\n", 3)
suite_case("U006", "id: x\nscenarios:\n" + ONE + "    id: b\n", 6)
suite_case("U007", "id: x\nscenarios:\n" + ONE + "      - {speaker: agent, text: Hi}\n", 6)


@case("U008")
def _(root: Path) -> Place:
    suite, labels = root / "suite.yaml", root / "labels.yaml"
    suite.write_text("id: x\nscenarios:\n" + ONE, encoding="utf-8")
    head = f"suite: x\ncell: {CELL}\nlabeller: me\nlabeller_kind: ai\ndate: 2026-11-30\nlabels:\n"
    labels.write_text(head + "  - scenario: a\n    faults: [nothing]\n", encoding="utf-8")
    return str(labels), 8


def test_every_rule_has_a_case():
    # Those of workbooks have theirs in test_sheets.py: they spoil a workbook, not a package.
    # Those of the audit need texts of the law, and have theirs in test_audit.py.
    assert set(CASES) == {code for code, rule in rules().items() if rule.engine not in ("sheet", "audit")}


#: Rules that find no error, or find it elsewhere: their edits make readings stale, which is another finding (A001).
READ_AGAIN = {"C006", "C007", "C009", "C010", "P014", "T005"}


@pytest.mark.parametrize("code", sorted(CASES))
def test_a_rule_is_raised_by_what_it_is_about_and_by_nothing_else(package_copy, code):
    spoil, companions = CASES[code]
    file, line = spoil(package_copy)
    if code in READ_AGAIN:
        read_again(package_copy)
    if code == "U008":
        cell = read(package_copy).cell(CELL)
        with pytest.raises(InputError) as caught:
            load_labels(file, load_suite(package_copy / "suite.yaml"), cell)
        assert caught.value.code == code and caught.value.place.startswith(f"{file}:{line}:")
        return
    report = check_file(Path(file)) if code.startswith("U") else regatta_tools.validate(package_copy)
    assert {f.code for f in report.findings} == {code} | companions
    found = [f for f in report.findings if f.code == code]
    assert (file, line) in {(f.file, f.line) for f in found}, found
    assert report.ok == (rules()[code].severity != "error")
    for finding in report.findings:
        assert finding.message and finding.mend and finding.severity == rules()[finding.code].severity


def test_codes_in_the_sources_and_in_the_registry_are_the_same():
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "regatta_tools").rglob("*.py")))
    used = set(re.findall(r'"([ABFKLOPRSTWX]\d{3}|U0\d\d)"', text))
    declared = {code for code, rule in rules().items() if rule.engine != "sql"}
    assert used == declared


def test_sql_rules_point_at_columns_of_the_schema():
    specs = table_specs()
    for rule in rules().values():
        if rule.engine == "sql":
            assert rule.field in specs[rule.table].columns, rule.code


def test_the_package_is_clean_and_counted():
    report = regatta_tools.validate(ROOT)
    assert report.ok and not report.findings
    tables = list((ROOT / "instruments").rglob("*.csv"))
    assert report.files == len(tables)
    assert report.records == sum(len(records) for records in read(ROOT).records.values()) > 200


# One message each: a file that cannot be read speaks for what rests on it


def spoil_delimiter(text: bytes) -> bytes:
    return text.replace(b",", b";")


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "R002": lambda text: text[:-2] + b"\xff" + text[-2:],
    "R003": lambda text: b"x" + text,
    "R004": spoil_delimiter,
    "R005": lambda text: text + b'x,"\n',
    "R006": lambda text: text + b'x"y\n',
    "R007": lambda text: text + b"x\n",
    "R012": lambda text: b"",
}
FILES = sorted(
    p.relative_to(ROOT).as_posix()
    for p in [*(ROOT / "instruments").glob("*.csv"), *(ROOT / "instruments" / CELL).glob("*.csv")]
)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_cannot_be_read_is_one_finding_and_no_avalanche(tmp_path, file):
    package_copy = one_cell(tmp_path / "package", gold=True)
    path = package_copy / file
    good = path.read_bytes()
    for code, spoil in KINDS.items():
        path.write_bytes(spoil(good))
        report = regatta_tools.validate(package_copy)
        assert [(f.code, f.file) for f in report.findings] == [(code, file)]
    path.unlink()
    assert [(f.code, f.file) for f in regatta_tools.validate(package_copy).findings] == [("R001", file)]


def test_what_does_not_rest_on_the_lost_file_is_still_checked(package_copy):
    sheet = Sheet(package_copy, "faults")
    sheet.set("insurance-us-fault-sar", severity="High")
    sheet.save()
    sheet = Sheet(package_copy, "fault_probes")
    sheet.set(0, true_result="2020-01-01")
    sheet.save()
    (package_copy / SOURCES).write_bytes(b"")
    assert [f.code for f in regatta_tools.validate(package_copy).findings] == ["P003", "S003", "R012"]


# No cell makes a check raise, and nothing is said without words

POOL = ["", "x", "0010", "1e999999999", "2026-02-30", "2026-11-30", "--02-30", "NaN", "sNaN", "true", "True", "active",
        "insurance-us-r01", "Đ", "a'b", "%s", "{x}", "9" * 400, "-", ";", "=", "a=1", "add_days(a, 1)", "1/0",
        "day"]  # fmt: skip


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """One real cell with all its tables: the properties below check it some hundred times."""
    return read(one_cell(tmp_path_factory.mktemp("package"), gold=True))


@given(data=st.data())
@settings(max_examples=120)
def test_any_cell_may_hold_anything(package, data):
    record = data.draw(st.sampled_from([r for records in package.records.values() for r in records[:4]]))
    columns = data.draw(st.lists(st.sampled_from(record.spec.columns), min_size=1, max_size=3, unique=True))
    before = dict(record.cells)
    try:
        for column in columns:
            record.cells[column] = data.draw(st.sampled_from(POOL) | st.text(max_size=8).filter(lambda t: t != "None"))
        findings = check_package(package)
    finally:
        record.cells.update(before)
    for finding in findings:
        assert isinstance(finding.message, str) and finding.message.strip() and "None" not in finding.message
        assert finding.mend and finding.file and finding.line > 0 and finding.column > 0
        assert len(finding.message) < 700
    assert len({(f.file, f.line, f.column) for f in findings if f.code.startswith("S")}) == sum(
        f.code.startswith("S") for f in findings
    ), "one finding of form a cell"


@given(data=st.data())
@settings(max_examples=60)
def test_a_finding_points_at_the_text_of_its_cell(package, data):
    record = data.draw(st.sampled_from([r for records in package.records.values() for r in records]))
    column = data.draw(st.sampled_from(record.spec.columns))
    line, at = record.place(column)
    rest = "\n".join((package.root / record.file).read_text(encoding="utf-8").split("\n")[line - 1 :])[at - 1 :]
    assert rest.removeprefix('"').replace('""', '"').startswith(record[column])


# Case A5, A8, A11: ids and values as typed

spreadsheet = st.one_of(
    st.from_regex(r"0{0,2}[0-9]{1,8}", fullmatch=True),
    st.from_regex(r"[0-9]{1,4}[.,][0-9]{1,3}", fullmatch=True),
    st.from_regex(r"[0-9][.][0-9]{2}E\+[0-9]{2}", fullmatch=True),
    st.dates().map(lambda d: d.strftime("%d-%b")),
    st.dates().map(lambda d: d.strftime("%b-%y")),
    st.dates().map(lambda d: d.strftime("%m/%d/%Y")),
    st.dates().map(lambda d: d.isoformat()),
)


def with_id(package, text: str) -> list[Finding]:
    """The findings on one probe, which nothing refers to, with another id."""
    record = package.table("fault_probes")[0]
    before = record.cells["id"]
    record.cells["id"] = text
    try:
        return check_package(package)
    finally:
        record.cells["id"] = before


@given(text=spreadsheet)
@settings(max_examples=60)
def test_an_id_that_a_spreadsheet_turned_is_called_that(package, text):
    (finding,) = with_id(package, text)
    assert finding.code == "S005" and repr(text) in finding.message


@pytest.mark.parametrize("text", ["10", "1005.1", "2.00E+10", "04-Mar", "2.1E+07", "Mar-04", "12/5/2003", "04-Thg3"])
def test_the_reported_conversions(package, text):
    (finding,) = with_id(package, text)
    assert finding.code == "S005"


@given(text=st.text(min_size=1, max_size=12) | st.from_regex(r"[A-Za-z0-9§ \"/#%._-]{1,12}", fullmatch=True))
@settings(max_examples=100)
def test_an_id_is_of_the_form_or_refused(package, text):
    codes = [f.code for f in with_id(package, text)]
    if re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", text):
        # Another id than its neighbours have may also look like a column that slipped.
        assert [c for c in codes if c != "K006"] in ([], ["K001"], ["K003"])
    else:
        assert len(codes) == 1 and codes[0] in ("S004", "S005")


@pytest.mark.parametrize(
    "text", ["12 CFR § 1005.6", 'OB "quoted"', "a/b#c", "Điều 5", "a%20b", "-a", "a--b", "a-", "A"]
)
def test_ids_that_no_address_bears_are_refused(package, text):
    (finding,) = with_id(package, text)
    assert finding.code == "S004"


@given(st.sampled_from(["1005.10", "0010", "2E10", "1.0", "1_000", "NaN", "null", "NA", "Yes", "NO", "012", "1:30"]))
def test_texts_stay_as_typed(tmp_path_factory, text):
    root = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "instruments", root / "instruments")
    sheet = Sheet(root, "sources")
    sheet.set(0, number=text, note=text)
    sheet.save()
    record = read(root).table("sources")[0]
    assert record["number"] == record["note"] == text == record.as_object()["number"]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (name, column)
        for name, records in read(ROOT).records.items()
        for column, field in records[0].spec.fields.items()
        if field["kind"] == "enum"
    ],
)
def test_a_value_outside_its_list_is_shown_as_typed_with_the_list(package, table, column):
    record = package.table(table)[0]
    allowed = enum_values(record.spec.fields[column]["enum"])
    before = record.cells[column]
    for typed in (
        "NO",
        "Yes",
        "no such",
        allowed[0].upper() if allowed[0].islower() else allowed[0].lower(),
        "012",
        "1:30",
    ):
        if typed in allowed:
            continue
        record.cells[column] = typed
        try:
            findings = [f for f in check_package(package) if f.code.startswith("S")]
        finally:
            record.cells[column] = before
        assert [(f.code, f.line) for f in findings] == [("S003", record.line)]
        assert repr(typed) in findings[0].message
        same = next((a for a in allowed if a.lower() == typed.lower()), None)
        assert (f"write it as {same!r}" if same else ", ".join(allowed)) in findings[0].mend


@pytest.mark.parametrize(
    ("table", "column", "typed", "code"),
    [("facts", "unit", "days", "S003"), ("facts", "unit", "DAY", "S003"), ("sources", "id", "2.00E+10", "S005"),
     ("cells", "id", "Insurance", "S004"), ("requirements", "duty_en", "", "S001"), ("citations", "source", "", "S001"),
     ("facts", "value", "", "S001"), ("fault_values", "true_expr", "", "S001"),
     ("fault_probes", "true_result", "", "S001"),
     ("fault_probes", "inputs", "", "S001"), ("fault_probes", "parameter", "", "S001"), ("facts", "kind", "", "S001")],
)  # fmt: skip
def test_a_cell_that_is_not_of_its_form_gets_no_second_finding(package, table, column, typed, code):
    record = package.table(table)[0]
    before = record.cells[column]
    record.cells[column] = typed
    try:
        findings = check_package(package)
    finally:
        record.cells[column] = before
    here = [f.code for f in findings if (f.file, f.line, f.column) == (record.file, *record.place(column))]
    assert here == [code]
    if column != "id" and (table, column) != ("citations", "source"):
        # Nor does the rest of the row, as a rule would have it that takes empty for wrong.
        others = [f.code for f in findings if (f.file, f.line) == (record.file, record.line)]
        assert others == [code]


# Case A9: keys across tables and files


@given(data=st.data())
@settings(max_examples=30)
def test_an_id_that_another_record_has_is_a_duplicate(package, data):
    records = [r for r in package if r.spec.identifier]
    first, second = sorted(
        data.draw(st.lists(st.sampled_from(range(len(records))), min_size=2, max_size=2, unique=True))
    )
    record, other = records[second], records[first]
    before = record.cells["id"]
    record.cells["id"] = other["id"]
    try:
        found = [f for f in check_package(package) if f.code == "K001"]
    finally:
        record.cells["id"] = before
    assert [(f.file, f.line, f.record) for f in found] == [(record.file, record.line, other["id"])]
    assert f"{other.file}:{other.line}" in found[0].message


@given(data=st.data())
@settings(max_examples=30)
def test_a_reference_to_a_record_of_another_class_says_what_it_is(package, data):
    record = data.draw(st.sampled_from(package.table("citations")))
    column, wanted = data.draw(st.sampled_from([("source", "Source"), ("requirement", "Requirement")]))
    target = data.draw(st.sampled_from([r for r in package if r.spec.identifier and r.spec.class_name != wanted]))
    before = record.cells[column]
    record.cells[column] = target["id"]
    try:
        found = [f for f in check_package(package) if f.code == "K003"]
    finally:
        record.cells[column] = before
    assert len(found) == 1 and f"it is a {target.spec.class_name}" in found[0].message
    assert (found[0].line, found[0].column) == record.place(column)


# The two engines


def a_valid(spec) -> dict[str, Any]:
    """A record of a class with all columns filled."""
    by_kind = {"string": "a", "ref": "a", "date": "2026-11-30", "boolean": True, "uri": "https://example.org/"}
    by_pattern = {"sha256": "0" * 64, "jurisdiction": "US"}
    out = {}
    for name, field in spec.fields.items():
        value = enum_values(field["enum"])[0] if field["kind"] == "enum" else by_kind[field["kind"]]
        pattern = field.get("pattern")
        if pattern and not re.search(pattern, value):
            value = next(v for v in by_pattern.values() if re.search(pattern, v))
        out[name] = value
    return out


VALUES = [
    "", " ", "a", "a-b", "a--b", "A", "0010", "US", "US-CA", "us", "0" * 64, "F" * 64, "2026-11-30", "2026-02-30",
    "2026-1-1",
    "20261130", "2026-11-30T00:00:00", "０１", "yes", "en", "vi", "day", "basis", "true", True, False, None, 1, 1.5, [],
    {}, ["a"],
    "Đ", "e\u0301", "\u0000", "a\tb",
]  # fmt: skip
FORMATS = jsonschema.Draft201909Validator.FORMAT_CHECKER


@pytest.mark.parametrize("table", list(table_specs()))
def test_the_fast_engine_agrees_with_the_reference(table):
    spec = table_specs()[table]
    reference = jsonschema.Draft201909Validator(class_schema(spec.class_name), format_checker=FORMATS)
    fast = validator(spec.class_name)
    valid = a_valid(spec)
    assert reference.is_valid(valid) and fast.is_valid(valid)
    # Without its optional helpers the reference does not look at addresses.
    columns = [n for n, f in spec.fields.items() if f["kind"] != "uri" or "uri" in FORMATS.checkers]
    refused = 0

    @given(st.dictionaries(st.sampled_from([*columns, "unknown"]), st.sampled_from([*VALUES, ...]), max_size=3))
    @settings(max_examples=60)
    def agree(changes):
        nonlocal refused
        value = {k: v for k, v in (valid | changes).items() if v is not ...}
        assert reference.is_valid(value) == fast.is_valid(value), changes
        refused += not fast.is_valid(value)

    agree()
    assert refused > 5


def test_the_engines_agree_on_every_record_and_on_records_with_one_cell_changed(package):
    for record in package:
        assert validator(record.spec.class_name).is_valid(record.as_object())

    references = {
        s.class_name: jsonschema.Draft201909Validator(class_schema(s.class_name), format_checker=FORMATS)
        for s in table_specs().values()
    }

    @given(data=st.data())
    @settings(max_examples=150)
    def agree(data):
        record = data.draw(st.sampled_from(list(package)))
        columns = [n for n, f in record.spec.fields.items() if f["kind"] != "uri" or "uri" in FORMATS.checkers]
        column = data.draw(st.sampled_from(columns))
        before = record.cells[column]
        record.cells[column] = data.draw(
            st.sampled_from([v for v in VALUES if isinstance(v, str)]) | st.text(max_size=6)
        )
        try:
            value = record.as_object()
            name = record.spec.class_name
            assert references[name].is_valid(value) == validator(name).is_valid(value)
        finally:
            record.cells[column] = before

    agree()


def test_a_column_that_is_empty_is_named_each_time(package_copy):
    sheet = Sheet(package_copy, "sources")
    for column in ("title", "issuer", "number"):
        sheet.set(1, **{column: ""})
    sheet.save()
    findings = regatta_tools.validate(package_copy).findings
    assert [f.code for f in findings] == ["S001"] * 3
    assert [f.message.split()[0] for f in findings] == ["title", "issuer", "number"]


# The registry


def rule_text(**changes: str | None) -> str:
    fields = {
        "code": "Z001",
        "severity": "error",
        "title": "A",
        "why": "B",
        "mend": "C",
        "since": "0.1.0",
        "engine": "reader",
    }
    fields.update({k: v for k, v in changes.items() if v is not None})
    return "".join(f"{k}: {json.dumps(v)}\n" for k, v in fields.items() if k not in changes or changes[k] is not None)


SQL = {"engine": "sql", "table": "cells", "field": "id", "query": "SELECT _record, id FROM cells"}


def test_a_rule_file_of_the_form_is_taken(tmp_path):
    (tmp_path / "Z001-a.yaml").write_text(rule_text(), encoding="utf-8")
    (tmp_path / "Z002-b.yaml").write_text(rule_text(code="Z002", **SQL), encoding="utf-8")
    (tmp_path / "README.md").write_text("words", encoding="utf-8")
    found = rules(tmp_path)
    assert list(found) == ["Z001", "Z002"] and found["Z002"].query == SQL["query"]


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "- a", "x", "{}", rule_text(why=None), rule_text(extra="x"), rule_text(severity="fatal"),
        rule_text(engine="magic"), rule_text(engine="sql"), rule_text(**(SQL | {"engine": "reader"})),
        rule_text(title=""),
        rule_text(mend=" "), rule_text(code="Z002"), rule_text(code="z001"),
        rule_text() + "title: again\n", "code: NO\n",
        rule_text(since=None) + "since: 0.1\n", rule_text(title=None) + "title: [a]\n", "a: &a [*a]", "\x00",
        rule_text(title=None) + "title: !!python/object/apply:os.system [exit]\n", "caf\xe9".encode("latin-1"),
    ],
    ids=range(23),
)  # fmt: skip
def test_a_rule_file_that_is_none_stops_the_check(tmp_path, text):
    (tmp_path / "Z000-good.yaml").write_text(rule_text(code="Z000"), encoding="utf-8")
    (tmp_path / "Z001-bad.yaml").write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    with pytest.raises(EnvironmentProblem) as caught:
        rules(tmp_path)
    assert caught.value.code == "E302" and "Z001-bad.yaml" in caught.value.place and caught.value.exit_code == 3


def test_other_ways_of_losing_rules_stop_the_check_too(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(EnvironmentProblem):
            rules(folder)
    (tmp_path / "Z001-a.yaml").write_text(rule_text(), encoding="utf-8")
    (tmp_path / "Z001-b.yml").write_text(rule_text(), encoding="utf-8")
    with pytest.raises(EnvironmentProblem, match="twice"):
        registry.rules.cache_clear() or rules(tmp_path)
    (tmp_path / "Z001-b.yml").unlink()
    (tmp_path / "Z002-b.yaml").mkdir()
    with pytest.raises(EnvironmentProblem):
        registry.rules.cache_clear() or rules(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"table": "nothing"}, {"field": "nothing"}, {"query": "SELECT"}, {"query": "SELECT _record FROM cells"},
        {"query": "SELECT _record, 'x' FROM nothing"}, {"query": "DELETE FROM cells"}, {"query": "SELECT 99, 'x'"},
        {"query": "SELECT 'a', 'x'"}, {"query": "SELECT _record, matches('(', id) FROM cells"}, {"query": ""},
        {"query": "SELECT 0, 'x'; DROP TABLE cells"},
    ],
)  # fmt: skip
def test_a_query_that_fails_stops_the_check(package, monkeypatch, changes):
    rule = Rule("Z001", "error", "A", "B", "C", "0", **(SQL | changes))
    monkeypatch.setattr(sql, "rules", lambda: {"Z001": rule})
    with pytest.raises(EnvironmentProblem, match="Z001"):
        sql.check(package)


def test_a_query_without_words_says_the_title(package, monkeypatch):
    rule = Rule(
        "Z001",
        "error",
        "A title",
        "B",
        "C",
        "0",
        **(SQL | {"query": "SELECT _record, 'x' || NULL FROM cells WHERE id = 'insurance-us'"}),
    )
    monkeypatch.setattr(sql, "rules", lambda: {"Z001": rule})
    assert [f.message for f in sql.check(package)] == ["A title"]


def test_a_rule_is_added_by_a_file(package_copy, monkeypatch, tmp_path):
    folder = tmp_path / "validators"
    shutil.copytree(ROOT / "validators", folder)
    text = rule_text(**(SQL | {"query": "SELECT _record, 'seen ' || id FROM cells WHERE id = 'insurance-us'"}))
    (folder / "Z001-seen.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(registry.paths, "validators_dir", lambda: folder)
    registry.rules.cache_clear()
    try:
        report = regatta_tools.validate(package_copy)
    finally:
        registry.rules.cache_clear()
    assert [(f.code, f.message, f.line, f.column) for f in report.findings] == [("Z001", "seen insurance-us", 2, 1)]


# Facts: forms and numbers


@given(day=st.dates(min_value=date(1900, 1, 1)), year=st.booleans())
def test_a_day_of_the_calendar_is_a_date(package, day, year):
    assert date_codes(package, day.isoformat() if year else day.strftime("--%m-%d")) == []


@pytest.mark.parametrize(
    "text", ["2026-02-30", "2025-02-29", "--02-30", "--13-01", "2026-00-10", "26-1-1", "2026-11", "May 1"]
)
def test_no_day_of_the_calendar_is_no_date(package, text):
    assert date_codes(package, text) == ["F003"]


def test_the_last_of_february_needs_no_year(package):
    assert date_codes(package, "--02-29") == [] == date_codes(package, "2024-02-29")


def date_codes(package, text: str) -> list[str]:
    record = package.table("facts")[0]
    before = dict(record.cells)
    record.cells.update(kind="date", unit="calendar-date", day_count="", value=text)
    try:
        # That the fact was changed after it was read is a finding too, and not about dates.
        return [f.code for f in check_package(package) if f.code != "A001"]
    finally:
        record.cells.update(before)


UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()  # noqa: SIM905
ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("words", "number"),
    [*zip(UNITS, range(17)), *zip(ORDINALS, range(14)), ("twenty", 20), ("thirtieth", 30), ("ninety-nine", 99),
     ("Forty-second", 42), ("thirty-day", 30), ("twenty-five-day", 25), ("30-day", 30), ("15th", 15), ("1st", 1),
     ("1,000", 1000), ("1,000.50", 1000.5), ("$25", 25), ("15%", 15), ("0.80", 0.8), ("(15)", 15), ("15.", 15),
     ("twice", 2)],
)  # fmt: skip
def test_a_number_is_found_in_digits_and_in_words(words, number):
    for text in (words, f"within {words} of it", f"({words})"):
        assert mentions_number(text, str(number)), text


@pytest.mark.parametrize(
    ("text", "number"),
    [("150", "15"), ("15.5", "15"), ("1,500", "500"), ("1,500", "1"), ("A15", "15"), ("2015", "15"),
    ("twenty-five", "20"),
     ("twenty-five", "5"), ("tenant", "10"), ("someone", "1"), ("often", "10"), ("", "0"), ("weight", "8"),
     ("15", "sNaN"),
     ("15", "1e999999999"), ("15", "many"), ("fifteen", "5")],
)  # fmt: skip
def test_a_number_is_not_found_within_another(text, number):
    assert not mentions_number(text, number)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_are_found_exactly(one, other):
    text = f"at most {one:,} and {other} days"
    assert numbers_in(text) == {one, other}


# Dates of the law


def test_as_of_moves_the_check(package_copy):
    report = regatta_tools.validate(package_copy, as_of="1990-01-01")
    assert {f.code for f in report.findings} == {"T003", "T006"}
    assert all("on 1990-01-01" in f.message for f in report.findings)
    # A passage with dates of its own goes by them, and so does a requirement.
    requirements = Sheet(package_copy, "requirements")
    for row in range(len(requirements.rows)):
        requirements.set(row, valid_from="1980-01-01")
    requirements.save()
    sheet = Sheet(package_copy, "citations")
    for row in range(len(sheet.rows)):
        sheet.set(row, force_from="1980-01-01")
    sheet.save()
    read_again(package_copy)
    assert regatta_tools.validate(package_copy, as_of="1990-01-01").ok
    assert not regatta_tools.validate(package_copy, as_of=date(1979, 12, 31)).ok
    assert regatta_tools.validate(package_copy, as_of=datetime(1980, 1, 1, 12)).ok


@pytest.mark.parametrize("value", ["", "x", "2026-13-01", "2026-02-30", "20261130", "2026-W01-1", "30.11.2026", 5])
def test_as_of_is_a_date(value):
    with pytest.raises(InputError) as caught:
        parse_as_of(value)
    assert caught.value.code == "U104" and caught.value.exit_code == 2


# Findings and reports


def test_the_order_of_findings_is_that_of_places():
    some = [Finding("K001", "error", f, line, 1, "", "m", "d") for f in ("b", "a") for line in (9, 10, 2)]
    assert [(f.file, f.line) for f in ordered([*some, *some])] == [
        ("a", 2),
        ("a", 9),
        ("a", 10),
        ("b", 2),
        ("b", 9),
        ("b", 10),
    ]


@given(st.text(max_size=300))
def test_a_shown_value_is_short_and_printable(text):
    quoted = shown(text)
    assert len(quoted) < 80 * 10 + 40 and quoted.isprintable()
    if len(text) <= 80:
        assert quoted == repr(text)


def test_a_package_with_errors_is_not_loaded(package_copy):
    assert load(package_copy).count == read(package_copy).count > 200
    sheet = Sheet(package_copy, "faults")
    row = sheet.set(0, severity="High")
    file, line = sheet.save(row)
    with pytest.raises(InputError) as caught:
        load(package_copy)
    assert caught.value.code == "S003" and caught.value.place.startswith(f"{file}:{line}:")


def test_a_package_with_a_warning_is_loaded(package_copy):
    CASES["P007"][0](package_copy)
    package = load(package_copy)
    assert len(package.cell(CELL).requirements) == 24
    with pytest.raises(InputError, match=CELL) as caught:
        package.cell("banking-vn")
    assert caught.value.code == "U103"


def test_what_changes_a_score_changes_the_hash_of_the_cell_and_nothing_else_does(package_copy):
    first = read(package_copy).cell(CELL).hash
    changes = [("requirements", 0, "duty_en"), ("citations", 0, "locator"), ("facts", 0, "label"),
        ("faults", 0, "shows_when"),
               ("fault_values", 0, "true_expr"), ("cells", 0, "persona"),
               ("sources", "us-ca-ccr", "title")]  # fmt: skip
    seen = {first}
    for table, row, column in changes:
        sheet = Sheet(package_copy, table)
        sheet.set(row, **{column: "changed"})
        sheet.save()
        seen.add(read(package_copy).cell(CELL).hash)
    assert len(seen) == len(changes) + 1
    last = read(package_copy).cell(CELL).hash
    for table in ("requirements", "citations", "faults"):
        sheet = Sheet(package_copy, table)
        sheet.rows.reverse()
        sheet.save()
    sheet = Sheet(package_copy, "fault_probes")
    sheet.set(0, true_result="changed")
    sheet.save()
    assert read(package_copy).cell(CELL).hash == last


def test_a_schema_file_that_is_gone_is_a_problem_of_the_environment(monkeypatch, tmp_path):
    from regatta_tools.tables import shape

    monkeypatch.setattr(shape.paths, "generated_dir", lambda: tmp_path)
    shape.document.cache_clear()
    try:
        with pytest.raises(EnvironmentProblem):
            shape.document()
        (tmp_path / "regatta.schema.json").write_text("{", encoding="utf-8")
        with pytest.raises(EnvironmentProblem):
            shape.document()
    finally:
        shape.document.cache_clear()


def test_the_installed_package_is_found_from_anywhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert package_module.locate() == ROOT
    (tmp_path / DESCRIPTOR).write_text("{}", encoding="utf-8")
    assert package_module.locate() == ROOT
    (tmp_path / "instruments").mkdir()
    assert package_module.locate() == tmp_path
    redescribe(tmp_path)
    with pytest.raises(InputError) as caught:
        read()
    assert caught.value.code == "U102"


@pytest.mark.parametrize("table", ["citations", "facts"])
def test_the_same_thing_under_another_id_is_seen(package_copy, table):
    """Case A9: two rows equal in what they say, with different ids."""
    sheet = Sheet(package_copy, table)
    row = list(sheet.rows[0])
    row[0] += "-again"
    sheet.rows.append(row)
    file, line = sheet.save(len(sheet.rows) - 1)
    assert [(f.code, f.file, f.line) for f in regatta_tools.validate(package_copy).findings] == [("K002", file, line)]


@pytest.mark.parametrize("table", ["citations", "facts", "requirements"])
def test_a_row_that_stands_twice_is_told_once(package_copy, table):
    sheet = Sheet(package_copy, table)
    sheet.rows.append(list(sheet.rows[0]))
    file, line = sheet.save(len(sheet.rows) - 1)
    found = [(f.code, f.file, f.line) for f in regatta_tools.validate(package_copy).findings if f.code.startswith("K")]
    assert found == [("K001", file, line)]


CLOCK = "insurance-us-fault-business-day-clock"


@pytest.mark.parametrize(
    ("table", "row", "column", "cells", "code"),
    [
        ("facts", "insurance-us-r01-f1", "id", {"value": "16"}, "P008"),
        ("facts", "insurance-us-r01-f1", "id", {"day_count": "business"}, "P008"),
        ("facts", "insurance-us-r01-f1", "id", {"day_count": "business"}, "F005"),
        ("fault_values", CLOCK, "fault", {"true_expr": "add_days(notice, 16)"}, "P008"),
        ("fault_values", CLOCK, "fault", {"true_expr": "add_business_days(notice, 15)"}, "P008"),
    ],
)
def test_ground_truth_cannot_leave_the_facts(package_copy, table, row, column, cells, code):
    """Duty, fact and formula are tied by number and by kind of days: whichever is edited alone is seen."""
    sheet = Sheet(package_copy, table)
    sheet.set(sheet.find(row, column), **cells)
    sheet.save()
    assert code in {f.code for f in regatta_tools.validate(package_copy).findings}


def test_a_new_number_in_duty_and_fact_needs_the_formula_too(package_copy):
    requirements, facts = Sheet(package_copy, "requirements"), Sheet(package_copy, "facts")
    row = requirements.find("insurance-us-r01")
    duty = requirements.rows[row][requirements.header.index("duty_en")]
    requirements.set(row, duty_en=duty.replace("15 calendar", "16 calendar"))
    requirements.save()
    facts.set("insurance-us-r01-f1", value="16")
    facts.save()
    read_again(package_copy)
    assert {f.code for f in regatta_tools.validate(package_copy).findings} == {"P008"}


@pytest.mark.parametrize(
    ("duty", "stated"),
    [
        ("A business must answer within 15 days.", False),
        ("A business must answer within 15 calendar days.", False),
        ("A firm must answer within 15 business days.", True),
        ("A firm must answer within 15 business or trading days.", True),
        ("A firm must answer in a 15-business-day period.", True),
    ],
)
def test_a_kind_of_days_is_stated_of_days_and_of_nothing_else(package_copy, duty, stated):
    """F005: the word alone says nothing; it has to stand with the days."""
    requirements, facts = Sheet(package_copy, "requirements"), Sheet(package_copy, "facts")
    requirements.set("insurance-us-r05", duty_en=duty, applies_when="")
    requirements.save()
    facts.set("insurance-us-r05-f1", value="15", unit="day", day_count="business", kind="duration")
    facts.save()
    found = {f.record for f in regatta_tools.validate(package_copy).findings if f.code == "F005"}
    assert ("insurance-us-r05-f1" in found) is not stated
