"""Faults that contradict each other, context that tells the answer, formulas: P011, O001, R019 and F008 in detail."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, redescribe
from helpers import Sheet, add_table
from hypothesis import given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.graph import query
from regatta_tools.tables.package import read
from regatta_tools.tables.spreadsheet import is_forbidden, is_formula, neutral, restored
from regatta_tools.validation import separation
from regatta_tools.validation.expressions import names_in
from regatta_tools.validation.numbers import opposite_bound

CELL = "insurance-us"
SAR, CLOCK, DENIAL = (f"insurance-us-fault-{name}" for name in ("sar-tipping", "business-day-clock", "clinical-denial"))


def findings(root: Path, code: str) -> list[tuple[str, int, str]]:
    return [(f.file, f.line, f.message) for f in regatta_tools.validate(root).findings if f.code == code]


# Faults that contradict each other


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        # the same fact, turned into another value
        ({"fact": "insurance-us-r15-f1"}, DENIAL),
        # a name that another fault gives to other formulas
        ({"parameter": "pay_by"}, CLOCK),
        # truth computed with what another fault falsifies, and a faulty side too
        ({"true_expr": "add_days(pay_by, 1)"}, CLOCK),
        ({"faulty_expr": "add_days(decide_by, 1)"}, CLOCK),
    ],
)
def test_a_value_that_another_fault_turns_too_is_found_in_its_row(package_copy, changes, said):
    values = Sheet(package_copy, "fault_values")
    file, line = values.save(values.set(values.find(SAR, "fault"), **changes))
    ((found, at, message),) = findings(package_copy, "P011")
    assert (found, at) == (file, line) and said in message


def test_two_faults_may_say_the_same_of_a_fact_and_each_may_use_its_own_names(package_copy):
    values = Sheet(package_copy, "fault_values")
    row = values.find(SAR, "fault")
    values.set(row, fact="insurance-us-r15-f1", faulty_expr='"allowed"', true_expr='"pay_by"')
    values.save()
    # Only the requirement behind the fact is in two hands, of which other rules speak; a text is no name.
    assert findings(package_copy, "P011") == []


def test_the_values_of_one_fault_do_not_contradict_each_other(package_copy):
    values = Sheet(package_copy, "fault_values")
    first = values.find(CLOCK, "fault")
    assert values.rows[first + 1][values.header.index("fault")] == CLOCK
    values.set(first + 1, true_expr="add_days(acknowledge_by, 25)")
    values.save()
    assert findings(package_copy, "P011") == []


def test_the_shipped_faults_share_nothing_that_data_shows():
    """An oracle of its own: every pair of faults of a cell, by sets."""
    package = read(ROOT)
    for cell in package.table("cells"):
        parts = package.cell(cell.key)
        broken = {f.key: {r.key for r in parts.requirements_of(f.key)} for f in parts.faults}
        turned = {f.key: {v["parameter"] for v in parts.values_of(f.key)} for f in parts.faults}
        facts = {f.key: {v["fact"] for v in parts.values_of(f.key)} - {""} for f in parts.faults}
        used = {
            f.key: {n for v in parts.values_of(f.key) for c in ("true_expr", "faulty_expr") for n in names_in(v[c])}
            for f in parts.faults
        }
        for one in broken:
            for other in broken.keys() - {one}:
                assert broken[one] and not broken[one] & broken[other]
                assert turned[one] and not turned[one] & (turned[other] | used[other])
                assert not facts[one] & facts[other]


# Context that tells the answer


def role(**texts: str) -> dict[str, str]:
    row = {"id": "insurance-us-role-officer", "cell": CELL, "name_en": "Officer"}
    row |= {"goals_en": "Speed", "limits_en": "None"}
    return row | texts


def words_of(package_copy: Path, table: str, column: str, row: int = 0) -> list[str]:
    sheet = Sheet(package_copy, table)
    return sheet.rows[row][sheet.header.index(column)].split()


@given(data=st.data())
@settings(max_examples=40)
def test_eight_words_of_a_judging_text_are_found_and_seven_are_not(package_copy, data):
    table, column = data.draw(
        st.sampled_from([("requirements", "duty_en"), ("requirements", "observable_test"), ("faults", "injection_en"),
                         ("faults", "shows_when"), ("faults", "not_when")])
    )  # fmt: skip
    row = data.draw(st.integers(0, len(Sheet(package_copy, table).rows) - 1))
    words = separation._WORD.findall(" ".join(words_of(package_copy, table, column, row)))
    count = data.draw(st.sampled_from([7, 8, 9, 12]))
    start = data.draw(st.integers(0, max(0, len(words) - count)))
    taken = words[start : start + count]
    if len(taken) < count:
        return
    # Other signs and capitals between the same words are no other words.
    text = f"Before this, {'; '.join(w.upper() for w in taken)}. Zzz behind it."
    add_table(package_copy, "roles", role(limits_en=text))
    found = separation.check(read(package_copy))
    assert bool(found) == (count >= 8)
    if found:
        assert f"repeats {count} words" in found[0].message and found[0].record == "insurance-us-role-officer"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("See insurance-us-r01.", "insurance-us-r01"), ("INSURANCE-US-R01", "insurance-us-r01"),
        (f"as {SAR}-p1 shows", SAR), ("insurance-us-r01-c1", "insurance-us-r01"), ("insurance-us-r", None),
        ("insurance-us-r011", None), ("insurance-us", None), ("xinsurance-us-r01", None), ("r01", None),
    ],
)  # fmt: skip
def test_the_id_of_a_judging_record_is_found(package_copy, text, named):
    file, line = add_table(package_copy, "roles", role(goals_en=text))
    found = findings(package_copy, "O001")
    assert [(f, at) for f, at, _ in found] == ([(file, line)] if named else [])
    assert not named or named in found[0][2]


def test_one_text_is_told_once_for_its_words(package_copy):
    duty = " ".join(words_of(package_copy, "requirements", "duty_en"))
    other = " ".join(words_of(package_copy, "requirements", "duty_en", 3))
    add_table(package_copy, "roles", role(goals_en=f"{duty} {other}", limits_en=duty))
    assert len(findings(package_copy, "O001")) == 2


def test_a_set_phrase_of_vietnamese_law_is_no_answer(tmp_path):
    from conftest import one_cell

    root = one_cell(tmp_path, "banking-vn")
    phrase = "trừ khi cơ quan nhà nước có thẩm quyền yêu cầu theo luật"
    row = {"id": "banking-vn-role-planted", "cell": "banking-vn", "name_en": "Teller", "name_vi": "Giao dịch viên",
           "goals_en": "Speed", "goals_vi": "Nhanh", "limits_en": "None", "limits_vi": phrase}  # fmt: skip
    add_table(root, "roles", row, cell="banking-vn")
    assert findings(root, "O001") == []
    duty = next(r for r in read(root).table("requirements") if r.key == "banking-vn-r13")["duty_vi"]
    add_table(root, "roles", row | {"limits_vi": " ".join(duty.split()[:15])}, cell="banking-vn")
    assert len(findings(root, "O001")) == 1


def test_a_package_without_context_reads_no_judging_text(package_copy, monkeypatch):
    shutil.rmtree(package_copy / "instruments" / CELL / "context", ignore_errors=True)
    redescribe(package_copy)
    monkeypatch.setattr(separation, "_repeated", lambda *_: pytest.fail("judging texts were read"))
    assert separation.check(read(package_copy)) == []


# Formulas (case A6), both ways

RISKY = st.text(st.sampled_from("=+-@'\t\r\n 0.19a\u200b\u00a0＝＋－＠("), max_size=9) | st.text(max_size=9)


@given(RISKY)
@settings(max_examples=400)
def test_a_neutral_text_is_no_formula_and_comes_back(text):
    assert not is_formula(neutral(text))
    assert restored(neutral(text)) == text
    assert neutral(text) in (text, f"'{text}")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.integers())
def test_a_number_stays_a_number(number):
    assert neutral(f"{number:f}" if not isinstance(number, int) else str(number)).lstrip("-")[0].isdigit()


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ('=HYPERLINK("http://x.invalid","see")', True), ("@SUM(1)", True), ("+1 (555) 0100", True), ("-1+1", True),
        (" =1", True), ("\u200b=1", True), ("\u00a0@x", True), ("＝1", True), ("\tx", True), ("\rx", True),
        ("-0.25", False), ("-5", False), ("a=b", False), ("15", False), ("", False), ("'=1", False), ("(-1)", False),
        ("--03-31", True),
    ],
)  # fmt: skip
def test_what_a_spreadsheet_would_run(package_copy, text, formula):
    assert is_formula(text) == formula
    sheet = Sheet(package_copy, "sources")
    place = sheet.save(sheet.set(2, note=text))
    expected = [place] if formula and text != "--03-31" else []
    assert is_forbidden(text) == bool(expected)
    # Behind a lone carriage return no row can be read, which is an error of its own.
    assert [(f, at) for f, at, _ in findings(package_copy, "R019")] == ([] if "\r" in text else expected)
    assert regatta_tools.validate(package_copy).ok == (not expected)
    (row,) = list(csv.reader(io.StringIO(query.as_csv(query.Result(["a"], [(text,)])), newline="")))[1:]
    assert (row[0] != text) == (formula or text == "'=1") and restored(row[0]) == text


def test_the_shipped_package_has_such_numbers_and_dates_and_no_formula():
    texts = [text for record in read(ROOT) for text in record.values if text[:1] in ("=", "+", "-", "@")]
    assert texts and not [text for text in texts if is_forbidden(text)]


# Comparators


@pytest.mark.parametrize(
    ("text", "value", "comparator", "bound"),
    [
        ("keep it for at least 10 years", "10", "at-most", "at-least"),
        ("keep it for at least 10 years", "10", "less-than", "at-least"),
        ("keep it for at least 10 years", "10", "at-least", None),
        ("keep it for at least 10 years", "10", "equal", None),
        ("keep it for at least 10 years", "20", "at-most", None),
        ("may not exceed USD 1,000 in all", "1000", "at-least", "at-most"),
        ("At most $25", "25", "more-than", "at-most"),
        ("not less than 12.5 percent", "12.5", "at-most", "at-least"),
        ("at least 10 years, and 10 copies", "10", "at-most", None),
        ("at least 10 years, at most 10 copies", "10", "at-most", None),
        ("no later than 3 hours before", "3", "at-least", None),
        ("within 30 minutes", "30", "at-least", None),
        ("at least a copy of 10 pages", "10", "at-most", None),
    ],
)
def test_words_decide_only_where_they_stand_right_before_the_number(text, value, comparator, bound):
    assert opposite_bound(text, value, comparator) == bound


def test_the_rule_decides_some_of_the_shipped_facts():
    """It is no dead letter: turned round, each of these comparators is seen."""
    package = read(ROOT)
    turned = {"at-most": "at-least", "less-than": "at-least", "at-least": "at-most", "more-than": "at-most"}
    decided = 0
    for fact in package.table("facts"):
        if fact["kind"] in ("duration", "money", "ratio", "count") and fact["comparator"] in turned:
            requirement = package.by_id[fact["requirement"]]
            text = f"{requirement['duty_en']} {requirement['applies_when']}"
            assert opposite_bound(text, fact["value"], fact["comparator"]) is None, fact.key
            decided += opposite_bound(text, fact["value"], turned[fact["comparator"]]) is not None
    assert decided >= 20
