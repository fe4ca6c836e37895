"""Quantities of legal texts: value, unit, kind of days and bound, by place."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta_tools.provenance.quantities import dates, quantities


def said(text: str, language: str = "en") -> list[tuple[str, str, str, str]]:
    return [(format(q.value.normalize(), "f"), q.unit, q.day_count, q.bound) for q in quantities(text, language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not later than the 15th day after", [("15", "day", "unspecified", "at-most")]),
        ("within fifteen (15) calendar days", [("15", "day", "calendar", "at-most")]),
        ("at least two business days before", [("2", "day", "business", "at-least")]),
        ("no later than 3 hours prior to service", [("3", "hour", "", "at-least")]),
        ("at least every 90 days", [("90", "day", "unspecified", "at-most")]),
        ("until midnight of the third business day", [("3", "day", "business", "at-most")]),
        ("may be extended one time by the plan", [("1", "", "", "at-most")]),
        ("within the following limits, up to 24 hours: (A) 4 hours for adults 18 years of age or older; (B) 2 hours",
         [("24", "hour", "", "at-most"), ("4", "hour", "", "at-most"), ("18", "year", "", "at-least"),
          ("2", "hour", "", "at-most")]),
        ("the list of Điều 58, khoản 3 by 31 March 2027", []),
        ("30 or 45 days", [("30", "day", "unspecified", ""), ("45", "day", "unspecified", "")]),
        ("a 60-day period", [("60", "day", "unspecified", "")]),
        ("more than $1,000.50 in cash", [("1000.5", "USD", "", "more-than")]),
        ("$1 million or more", [("1000000", "USD", "", "at-least")]),
        ("exceeds 36 percent", [("36", "percent", "", "more-than")]),
        ("⅛ of 1 percentage point", [("0.125", "percent", "", ""), ("1", "percent", "", "")]),
        ("one-half of the premium", [("0.5", "", "", "")]),
        ("one hundred eighty days", [("180", "day", "unspecified", "")]),
        ("twenty-four months", [("24", "month", "", "")]),
        ("10 work days", [("10", "day", "working", "")]),
        ("section 15 and § 1005.6(b)(1) of 12 CFR part 1005", []),
        ("on January 15, 2026 at 9:30", []),
        ("paragraph (b)(2) of this section; (3) another", []),
        ("in no event more than forty days", [("40", "day", "unspecified", "at-most")]),
        ("a claim not paid for more than forty days", [("40", "day", "unspecified", "")]),
        ("may not exceed the following rates: (a) 13 percent; (b) 21 percent", [
            ("13", "percent", "", "at-most"), ("21", "percent", "", "at-most"),
        ]),
        ("2 hours for ages 9 to 17 and 1 hour under 9", [
            ("2", "hour", "", ""), ("9", "", "", ""), ("17", "", "", ""), ("1", "hour", "", ""),
            ("9", "", "", "less-than"),
        ]),
    ],
)  # fmt: skip
def test_english(text, expected):
    assert said(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("không quá 13% vốn tự có", [("13", "percent", "", "at-most")]),
        ("trong thời hạn 03 ngày làm việc", [("3", "day", "working", "at-most")]),
        ("ba mươi ngày", [("30", "day", "unspecified", "")]),
        ("mười lăm ngày, hai mươi mốt tháng", [("15", "day", "unspecified", ""), ("21", "month", "", "")]),
        ("năm năm kể từ ngày", [("5", "year", "", "")]),
        ("tối thiểu 05 năm", [("5", "year", "", "at-least")]),
        ("từ 400.000.000 đồng trở lên", [("400000000", "VND", "", "at-least")]),
        ("100 (một trăm) triệu đồng", [("100000000", "VND", "", "")]),
        ("1.000 (một nghìn) đô la Mỹ", [("1000", "USD", "", "")]),
        ("0,05% mỗi ngày", [("0.05", "percent", "", "")]),
        ("năm mươi phần trăm", [("50", "percent", "", "")]),
        ("quá hạn đến 90 ngày", [("90", "day", "unspecified", "at-most")]),
        ("từ 91 ngày đến 180 tháng", [("91", "day", "unspecified", "at-least"), ("180", "month", "", "at-most")]),
        ("chậm nhất 15 ngày trước ngày thu giữ", [("15", "day", "unspecified", "at-least")]),
        ("theo khoản 2 Điều 136 và Thông tư số 18/2024/TT-NHNN ngày 28 tháng 6 năm 2024", []),
        ("không có thời hạn", []),
    ],
)
def test_vietnamese(text, expected):
    assert said(text, "vi") == expected


@given(st.integers(1, 999), st.sampled_from(["days", "business days", "calendar days", "hours", "percent"]))
def test_a_number_stands_where_it_is_said_to_stand(number, unit):
    text = f"The bank must answer within {number} {unit} of the request."
    if 1900 <= number <= 2099:
        return
    (found,) = quantities(text, "en")
    assert text[found.start : found.end] == str(number)
    assert found.value == Decimal(number) and found.bound == "at-most"


@given(st.integers(1, 10**12))
def test_vietnamese_separators(number):
    text = f"số tiền {number:,} đồng".replace(",", ".")
    (found,) = quantities(text, "vi")
    assert (found.value, found.unit) == (Decimal(number), "VND")


@given(st.text(max_size=300), st.sampled_from(["en", "vi"]))
def test_any_text_is_read_without_an_error_and_places_are_in_order(text, language):
    ends = 0
    for q in quantities(text, language):
        assert ends <= q.start < q.end <= len(text)
        ends = q.end
    for d in dates(text, language):
        assert 0 <= d.start < d.end <= len(text)


def test_dates():
    assert [d.value for d in dates("by March 31 and on January 1, 2027", "en")] == ["--03-31", "2027-01-01"]
    assert [d.value for d in dates("ngày 31/3, từ ngày 01 tháng 01 năm 2027", "vi")] == ["--03-31", "2027-01-01"]
    assert not dates("Điều 31 khoản 3", "vi")
