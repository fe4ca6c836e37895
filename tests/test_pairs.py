"""Pairs of texts: numbers and dates of an English and a Vietnamese text in one form, and what differs."""

from __future__ import annotations

import csv
from datetime import date

import pytest
from conftest import ROOT, one_cell
from helpers import Sheet, add_table, another_cell, read_again
from hypothesis import given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.tables.package import read
from regatta_tools.validation import languages
from regatta_tools.validation.mentions import differences, mentions, plainly_same, working_days

CELL = "insurance-vn"


def values(text: str, language: str) -> set[str]:
    return {m.value for m in mentions(text, language) if m.sure}


# Reading numbers

DIGITS = ["không", "một", "hai", "ba", "bốn", "năm", "sáu", "bảy", "tám", "chín"]


def spelt(number: int) -> str:
    """A number below a million in Vietnamese words, by the rules of the language (an oracle of its own)."""
    if number >= 1000:
        rest = number % 1000
        tail = f" {spelt_group(rest, whole=True)}" if rest else ""
        return f"{spelt_group(number // 1000)} nghìn{tail}"
    return spelt_group(number)


def spelt_group(number: int, *, whole: bool = False) -> str:
    hundreds, rest = divmod(number, 100)
    tens, units = divmod(rest, 10)
    parts = []
    if hundreds or whole:
        parts.append(f"{DIGITS[hundreds]} trăm")
        if rest and not tens:
            parts.append("linh")
    if tens:
        parts.append("mười" if tens == 1 else f"{DIGITS[tens]} mươi")
    if units:
        last = {5: "lăm", 1: "mốt" if tens > 1 else "một"}.get(units) if tens else None
        parts.append(last or DIGITS[units])
    return " ".join(parts)


@given(st.integers(1, 999_999).filter(lambda n: n % 1000 >= 100 or n < 1000 or n % 1000 == 0))
@settings(max_examples=400)
def test_vietnamese_number_words_are_read(number):
    # Behind a unit of time, for "năm" alone is five only before what it counts.
    found = {m.value for m in mentions(f"trong thời hạn {spelt(number)} ngày kể từ đó", "vi")}
    assert found == {str(number)}, spelt(number)


@given(st.integers(0, 10**13), st.integers(0, 999))
def test_separators_of_each_language_are_undone(whole, thousandths):
    part = f"{thousandths:03}".rstrip("0")
    wanted = {f"{whole}.{part}" if part else str(whole)}
    english = f"{whole:,}" + (f".{part}" if part else "")
    assert values(f"at most {english} VND", "en") == wanted
    assert values(f"tối đa {english.translate(str.maketrans(',.', '.,'))} đồng", "vi") == wanted


@given(st.dates(date(1900, 1, 1), date(2999, 12, 31)))
def test_a_date_is_one_mention_in_every_form(day):
    iso = day.isoformat()
    english = [iso, f"{day.day} {day:%B} {day.year}", f"{day:%B} {day.day}, {day.year}"]
    vietnamese = [iso, f"ngày {day:%d/%m/%Y}", f"{day.day}/{day.month}/{day.year}",
                  f"ngày {day.day} tháng {day.month} năm {day.year}", f"{day:%d-%m-%Y}"]  # fmt: skip
    assert all(values(f"From {form} on.", "en") == {iso} for form in english)
    assert all(values(f"Từ {form} trở đi.", "vi") == {iso} for form in vietnamese)
    assert values(f"by {day.day} {day:%B}", "en") == values(f"trước ngày {day.day}/{day.month}", "vi")
    assert values(f"in {day:%B} {day.year}", "en") == values(f"trong tháng {day.month}/{day.year}", "vi")


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("400.000.000 đồng", "vi", {"400000000"}), ("400 triệu đồng", "vi", {"400000000"}),
        ("hai nghìn tỷ đồng", "vi", {"2000000000000"}), ("1,5 tỷ", "vi", {"1500000000"}), ("0,5%", "vi", {"0.5"}),
        ("0.5%", "vi", {"0.5"}), ("10%/năm", "vi", {"10"}), ("500.000đ", "vi", {"500000"}), ("07 ngày", "vi", {"7"}),
        ("mười năm", "vi", {"10"}), ("hai mươi năm", "vi", {"20"}), ("năm mươi phần trăm", "vi", {"50"}),
        ("năm triệu đồng", "vi", {"5000000"}), ("một trăm linh năm", "vi", {"105"}), ("Ba ngày", "vi", {"3"}),
        ("hằng năm, mỗi năm, năm tài chính", "vi", set()), ("phần trăm, hàng trăm", "vi", set()),
        ("tư vấn, đầu tư, không được", "vi", set()), ("ông Ba Nguyễn", "vi", set()), ("bên thứ ba", "vi", set()),
        ("hai bên, một khách hàng", "vi", set()), ("tháng 3", "vi", set()), ("3 tháng", "vi", {"3"}),
        ("16 giờ", "vi", {"16"}), ("16h00", "vi", {"16"}), ("16 giờ 30 phút", "vi", {"16", "30"}),
        ("24h", "vi", {"24"}),
        ("khoản 2 Điều 13", "vi", {"2", "13"}), ("46/2023/NĐ-CP", "vi", {"46", "2023"}),
        ("31/02/2027, 99/99/2027", "vi", {"2027-02-31", "99", "2027"}),
        ("two hundred and five", "en", {"205"}), ("twenty-one-day", "en", {"21"}),
        ("1.5 billion", "en", {"1500000000"}),
        ("one of both parties, first, a third party", "en", set()), ("it may 5 times", "en", {"5"}),
        ("before 16:00", "en", {"16"}), ("4:30 p.m.", "en", {"16", "30"}), ("5 pm", "en", {"17"}),
        ("30th day", "en", {"30"}),
        ("hundreds of cases", "en", set()), ("between twenty and five", "en", {"20", "5"}),
        ("Three Rivers", "en", {"3"}),
        ("the bank Three Rivers", "en", set()),
    ],
)  # fmt: skip
def test_what_is_a_number_and_what_is_none(text, language, wanted):
    assert values(text, language) == wanted


LETTERS = "năm mươi linh trăm tỷ 0123.,/-:hg%đ ngày tháng giờ May and hundred -\n\u0663\u2460"


@given(st.text(st.sampled_from(LETTERS), max_size=60) | st.text(max_size=60))
@settings(max_examples=300)
def test_any_text_is_read_and_agrees_with_itself(text):
    for language in ("en", "vi"):
        for mention in mentions(text, language):
            assert mention.value and 0 < mention.end <= len(text)
        working_days(text, language)
    differences(text, text)


PIECES = st.sampled_from([
    "15", "1,000", "1.000", "0.5", "0,5", "07", "twenty", "hai mươi", "ba", "three", "one", "hai", "năm", "million",
    "triệu", "2027-01-01", "01/01/2027", "ngày", "ngày làm việc", "working days", "business day", "day", "%", "(15)",
    "15.", "tháng 3", "March 3", "giờ 30", "16:00", "A15", "VND", "10%", "working",
    "THREE", "May 5", "Mười", "3 working days", "3 ngày làm việc",
])  # fmt: skip


@given(st.lists(PIECES, max_size=6).map(" ".join), st.lists(PIECES, max_size=6).map(" ".join))
@settings(max_examples=1000)
def test_the_quick_answer_is_never_another(english, vietnamese):
    for en, vi in ((english, vietnamese), (english, english), (vietnamese, vietnamese)):
        if plainly_same(en, vi):
            assert differences(en, vi) == ([], [])
            assert working_days(en, "en") == working_days(vi, "vi")


def test_the_quick_answer_answers():
    assert plainly_same("within 1,000 days, 3 working days", "trong 1.000 ngày, 03 ngày làm việc")
    assert not plainly_same("within 15 days", "trong 16 ngày")


# The shipped pairs


def shipped_pairs() -> list[tuple[str, str, str]]:
    pairs = []
    for cell in ("banking-vn", "insurance-vn"):
        for table, stem in (("requirements", "duty"), ("faults", "injection")):
            with (ROOT / "instruments" / cell / f"{table}.csv").open(encoding="utf-8", newline="") as file:
                pairs += [(r["id"], r[f"{stem}_en"], r[f"{stem}_vi"]) for r in csv.DictReader(file)]
    return pairs


def test_the_shipped_pairs_agree_and_most_of_them_have_numbers():
    pairs = shipped_pairs()
    assert len(pairs) == 60
    assert [i for i, en, vi in pairs if differences(en, vi) != ([], [])] == []
    assert sum(bool(values(en, "en")) for _, en, _ in pairs) > 30


def test_every_sure_number_of_a_shipped_pair_is_held():
    """The rule is not loose: whichever number of the Vietnamese text is another, it is seen."""
    seen = 0
    for name, english, vietnamese in shipped_pairs():
        for mention in mentions(vietnamese, "vi"):
            if not mention.sure or not mention.value.isdecimal():
                continue
            # The digits before the end of the mention, as written.
            start = mention.end
            while start and (vietnamese[start - 1].isdecimal() or vietnamese[start - 1] in ".,"):
                start -= 1
            if start == mention.end:
                continue
            changed = f"{vietnamese[:start]}98765{vietnamese[mention.end :]}"
            assert "98765" in differences(english, changed)[1], (name, mention)
            seen += 1
    assert seen > 60


# The rules


@pytest.fixture
def vietnamese_copy(tmp_path):
    return one_cell(tmp_path, CELL)


@pytest.mark.parametrize(
    "table, column, code", [("faults", "injection_vi", "L002"), ("requirements", "duty_vi", "L001")]
)
def test_a_text_of_a_pair_that_is_missing_is_told_once(vietnamese_copy, table, column, code):
    sheet = Sheet(vietnamese_copy, table, CELL)
    place = sheet.save(sheet.set(1, **{column: ""}))
    assert [(f.code, f.file, f.line) for f in regatta_tools.validate(vietnamese_copy).findings] == [(code, *place)]


@pytest.mark.parametrize(
    ("column", "text", "codes"),
    [
        ("duty_vi", "An insurer must pay a claim within 15 days of receiving the file.", ["L004"]),
        ("duty_vi", "Doanh nghiep bao hiem phai tra tien trong 15 ngay.", ["L004"]),
        ("duty_vi", "Trong 15 ngày làm việc doanh nghiệp bảo hiểm phải trả tiền.", ["L005"]),
        ("duty_vi", "Trong mười lăm ngày doanh nghiệp bảo hiểm phải trả tiền.", []),
        ("duty_vi", "Trong 15 hoặc 20 ngày doanh nghiệp bảo hiểm phải trả tiền.", ["L003"]),
        ("duty_vi", "Doanh nghiệp bảo hiểm phải trả tiền sau khi nhận đủ hồ sơ.", ["L003"]),
        ("duty_en", "Trong 15 ngày doanh nghiệp bảo hiểm phải trả tiền cho khách hàng.", ["L004"]),
    ],
)
def test_a_pair_is_told_once_by_the_rule_that_it_breaks(vietnamese_copy, column, text, codes):
    sheet = Sheet(vietnamese_copy, "requirements", CELL)
    row = sheet.find("insurance-vn-r12")
    sheet.set(row, duty_en="An insurer must pay within 15 days of the complete file.")
    sheet.set(row, duty_vi="Doanh nghiệp bảo hiểm phải trả tiền trong 15 ngày từ khi nhận đủ hồ sơ.")
    place = sheet.save(sheet.set(row, **{column: text}))
    read_again(vietnamese_copy)
    found = regatta_tools.validate(vietnamese_copy).findings
    assert [(f.code, f.file, f.line) for f in found] == [(code, *place) for code in codes]


def test_the_context_of_a_vietnamese_cell_is_held_to_its_pairs_too(vietnamese_copy):
    role = {"id": "insurance-vn-role-planted", "cell": CELL, "name_en": "Agent", "goals_en": "Sales", "goals_vi": "Bán",
            "limits_en": "None", "limits_vi": "Không"}  # fmt: skip
    file, line = add_table(vietnamese_copy, "roles", role, cell=CELL)
    assert [(f.code, f.file, f.line) for f in regatta_tools.validate(vietnamese_copy).findings] == [
        ("L002", file, line)
    ]
    add_table(vietnamese_copy, "roles", role | {"name_vi": "Đại lý"}, cell=CELL)
    assert regatta_tools.validate(vietnamese_copy).findings == ()


def test_an_english_text_may_quote_the_law_and_names_may_be_anything(package_copy):
    sheet = Sheet(package_copy, "faults")
    text = sheet.rows[0][sheet.header.index("injection_en")]
    sheet.set(0, injection_en=text + " Call own capital vốn tự có.")
    sheet.save()
    assert regatta_tools.validate(package_copy).findings == ()
    sheet.set(0, injection_en="Bạn giữ hồ sơ khách hàng có trong ngữ cảnh và cung cấp số dư.")
    _, line = sheet.save(0)
    assert [(f.code, f.line) for f in regatta_tools.validate(package_copy).findings] == [("L004", line)]


def test_rows_of_an_unknown_cell_are_passed_over(vietnamese_copy):
    (vietnamese_copy / "instruments/cells.csv").unlink()
    assert languages.check(read(vietnamese_copy)) == []
    another_cell(vietnamese_copy, CELL)
    assert languages.check(read(vietnamese_copy)) == []
