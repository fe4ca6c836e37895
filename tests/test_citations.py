"""Citations are read whole or refused with the place, and what is read can be written again.

The kinds of bug-cases A4 (Vietnamese numbers), A12 (several sections, ranges, et seq.) and A13 (letters, hyphens,
appendices, no sign) with inputs of our own, and properties over generated citations and over any text.
"""

from __future__ import annotations

import csv
import re
import unicodedata

import pytest
from conftest import ROOT
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.provenance import citation_checks, citations, citations_us, citations_vn, labels
from regatta_tools.provenance.citation_model import MAX_LENGTH, PARAGRAPH
from regatta_tools.provenance.citations import (
    Citation,
    InstrumentNumber,
    NotUnderstood,
    Place,
    Step,
    covers,
    has_grammar,
    law_of,
    parse,
    render,
    same_instrument,
)
from regatta_tools.tables.package import read


def rows(name: str) -> list[dict[str, str]]:
    with (ROOT / "instruments" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def named(text: str, jurisdiction: str = "US") -> list[tuple[str, tuple[str, ...], str]]:
    """Section, labels below it and last label of each place."""
    return [(p.section, p.subdivisions, p.last_label) for p in parse(text, jurisdiction).places]


def refusal(text: str, jurisdiction: str = "US") -> NotUnderstood:
    with pytest.raises(NotUnderstood) as caught:
        parse(text, jurisdiction)
    return caught.value


# The data


SOURCES = {row["id"]: row for row in rows("sources")}
CITED = [
    (row["locator"], SOURCES[row["source"]])
    for cell in sorted(p.parent.name for p in (ROOT / "instruments").glob("*/citations.csv"))
    for row in rows(f"{cell}/citations")
]


def test_every_number_and_locator_of_the_instruments_is_read_whole_and_written_as_it_stands():
    for source in SOURCES.values():
        citation = parse(source["number"], source["jurisdiction"])
        assert render(citation) == source["number"] and law_of(citation) == source["jurisdiction"]
    for locator, source in CITED:
        citation = parse(locator, source["jurisdiction"])
        assert render(citation) == locator and all(p.names_passage for p in citation.places)
        assert covers(parse(source["number"], source["jurisdiction"]), citation), locator


# The tables


REPORTERS = citations_us.reporters()
EXAMPLES = [(r, text, whole) for r in REPORTERS.values() for text, whole in r.examples.items()]


@pytest.mark.parametrize(("reporter", "text", "whole"), EXAMPLES, ids=[text for _, text, _ in EXAMPLES])
def test_every_example_is_read_by_its_own_entry(reporter, text, whole):
    citation = parse(text, reporter.jurisdiction)
    assert citation.system == reporter.system and render(citation) == whole
    assert parse(whole, reporter.jurisdiction) == citation
    assert law_of(citation) == reporter.jurisdiction and has_grammar(reporter.jurisdiction)


@pytest.mark.parametrize("reporter", REPORTERS.values(), ids=list(REPORTERS))
def test_every_way_of_writing_and_every_form_of_section_has_an_example(reporter):
    def matches(way: str, text: str) -> bool:
        words = re.escape(way).replace(r"\{title\}", "[0-9]+")
        return re.search(rf"(^|of |of the |, ){words}([ ,]|$)", text) is not None

    def the_way(text: str) -> str:
        return max((w for w in (*reporter.written, *reporter.of) if matches(w, text)), key=len)

    used = {the_way(text) for text in reporter.examples}
    assert used == set(reporter.written) | set(reporter.of)
    sections = {s for whole in reporter.examples.values() for s in parse(whole, reporter.jurisdiction).sections}
    for pattern in reporter.sections:
        assert any(re.fullmatch(pattern, section) for section in sections), pattern
    for section in sections:
        assert any(re.fullmatch(pattern, section) for pattern in reporter.sections)
    assert any(whole.startswith(reporter.written[0].split("{title}")[-1].strip()) or "{title}" in reporter.written[0]
               for whole in reporter.examples.values())  # fmt: skip


def test_the_table_is_in_order_and_no_way_of_writing_is_of_two_codes():
    assert list(REPORTERS) == sorted(REPORTERS)
    ways = [way for r in REPORTERS.values() for way in r.written]
    assert len(ways) == len(set(ways))
    tails = [way for r in REPORTERS.values() for way in r.of]
    assert len(tails) == len(set(tails))


VIETNAMESE = citations_vn.table()


def test_every_type_and_body_has_an_example_and_every_example_is_read():
    numbers = [citations_vn.parse_number(text) for text in VIETNAMESE.examples]
    assert [str(n) for n in numbers] == list(VIETNAMESE.examples)
    assert {n.type for n in numbers} >= set(VIETNAMESE.types)
    assert {b for n in numbers for b in n.authority.split("-")} >= set(VIETNAMESE.bodies)


def test_no_two_codes_of_the_table_differ_only_in_a_mark():
    for codes in (VIETNAMESE.types, VIETNAMESE.bodies):
        assert len({c.upper().replace("Đ", "D") for c in codes}) == len(codes)


@pytest.mark.parametrize("module, reset", [(citations_us, "reporters"), (citations_vn, "table")])
@pytest.mark.parametrize("text", ["", "a: [", "[]", "X: {}", "types: {}", "X: {jurisdiction: US, name: 1}"])
def test_a_table_that_is_none_is_a_problem_of_the_environment(monkeypatch, tmp_path, module, reset, text):
    file = tmp_path / "table.yaml"
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "_TABLE", file)
    load = getattr(module, reset)
    load.cache_clear()
    try:
        with pytest.raises(EnvironmentProblem) as caught:
            load()
    finally:
        load.cache_clear()
    assert caught.value.exit_code == 3 and caught.value.place == "table.yaml"


# A12: several sections, ranges, et seq.


@pytest.mark.parametrize(
    ("text", "whole", "sections"),
    [
        ("34 C.F.R. §§ 99.31, 99.33", "34 CFR §§ 99.31, 99.33", ("99.31", "99.33")),
        ("34 CFR §§ 99.31 and 99.33", "34 CFR §§ 99.31, 99.33", ("99.31", "99.33")),
        ("34 CFR 99.31, 99.32, and 99.33", "34 CFR §§ 99.31, 99.32, 99.33", ("99.31", "99.32", "99.33")),
        ("34 CFR § 99.31 and § 99.33", "34 CFR §§ 99.31, 99.33", ("99.31", "99.33")),
        ("34 CFR §§ 99.31(a), 99.33", "34 CFR §§ 99.31(a), 99.33", ("99.31", "99.33")),
        ("sections 41 and 42 of title 17", "17 U.S.C. §§ 41, 42", ("41", "42")),
        ("Sections 542.055, 542.056 and 542.057 of the Texas Insurance Code",
         "Tex. Ins. Code §§ 542.055, 542.056, 542.057", ("542.055", "542.056", "542.057")),
        ("225 ILCS 155/10, 155/15", "225 ILCS 155/10, 155/15", ("10", "15")),
    ],
)  # fmt: skip
def test_every_section_is_listed(text, whole, sections):
    citation = parse(text, "US")
    assert citation.sections == sections and render(citation) == whole
    assert len(citation.places) == len(sections) and not any(p.last or p.open_ended for p in citation.places)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("7 CFR §§ 3.4-3.9", "3.4", "3.9"),
        ("7 CFR §§ 3.4–3.9", "3.4", "3.9"),
        ("7 CFR 3.4 through 3.12", "3.4", "3.12"),
        ("33 U.S.C. §§ 1251-1387", "1251", "1387"),
        ("33 U.S.C. 1251-1387", "1251", "1387"),
        ("15 U.S.C. §§ 1601-1601r", "1601", "1601r"),
        ("15 U.S.C. §§ 80b-1 to 80b-21", "80b-1", "80b-21"),
        ("15 U.S.C. §§ 80b-1-80b-21", "80b-1", "80b-21"),
        ("17 CFR §§ 240.10b-5 to 240.10b-18", "240.10b-5", "240.10b-18"),
        ("Tex. Ins. Code §§ 542.055-542.060", "542.055", "542.060"),
        ("C.R.S. §§ 6-1-1301 to 6-1-1313", "6-1-1301", "6-1-1313"),
        ("Neb. Rev. Stat. §§ 44-6001-44-6026", "44-6001", "44-6026"),
        ("Cal. Ins. Code §§ 790-790.15", "790", "790.15"),
    ],
)
def test_a_range_keeps_both_ends_and_names_no_passage(text, first, last):
    citation = parse(text, "US")
    (place,) = citation.places
    assert (place.path[0].label, place.last[0].label) == (first, last) == citation.sections
    assert not place.names_passage and not place.last_label
    assert parse(render(citation), "US") == citation


@pytest.mark.parametrize("text", ["15 U.S.C. § 1693 et seq.", "15 U.S.C. 1693, et seq.", "15 U.S.C. § 1693 et seq"])
def test_et_seq_is_open_ended(text):
    citation = parse(text, "US")
    assert citation.open_ended and not citation.places[0].names_passage
    assert render(citation) == "15 U.S.C. § 1693 et seq." and citation != parse("15 U.S.C. § 1693", "US")


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("7 CFR § 3.4, 3.5", "7 CFR §§ 3.4, 3.5"),
        ("7 CFR §§ 3.4", "7 CFR § 3.4"),
        ("7 CFR §§ 3.4(a), (b)", "7 CFR § 3.4(a), (b)"),
        ("7 CFR § 3.4-3.9", "7 CFR §§ 3.4-3.9"),
        ("33 U.S.C. § 1251-1387", "33 U.S.C. §§ 1251-1387"),
        ("50 U.S.C. app. § 5, 6", "50 U.S.C. app. §§ 5, 6"),
    ],
)
def test_a_sign_for_one_or_several_is_held_to_what_follows(text, suggestion):
    assert refusal(text).suggestion == suggestion


def test_the_end_of_a_range_of_a_regulation_is_written_whole():
    assert "whole" in refusal("29 CFR §§ 778.113-114").why


# A13: no sign, letters and hyphens in sections, appendices, paragraphs


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("46 U.S.C. 30104", "46 U.S.C. § 30104"),
        ("46 USC 30104", "46 U.S.C. § 30104"),
        ("17 C.F.R. 240.14a-8(b)", "17 CFR § 240.14a-8(b)"),
        ("17 CFR § 240.15c3-1", "17 CFR § 240.15c3-1"),
        ("29 CFR § 2560.503-1(h)(3)(i)", "29 CFR § 2560.503-1(h)(3)(i)"),
        ("26 CFR § 1.401(k)-1(a)(2)", "26 CFR § 1.401(k)-1(a)(2)"),
        ("50 U.S.C. app. § 5(b)", "50 U.S.C. app. § 5(b)"),
        ("50 U.S.C. App. 5", "50 U.S.C. app. § 5"),
        ("18 U.S.C. § 2339B", "18 U.S.C. § 2339B"),
        ("42 U.S.C. § 1396r-8(k)(2)", "42 U.S.C. § 1396r-8(k)(2)"),
        ("42 U.S.C. § 300gg–111(a)", "42 U.S.C. § 300gg-111(a)"),
        ("16 U.S.C. § 1a-7", "16 U.S.C. § 1a-7"),
        ("12 CFR § 226.5b(c)", "12 CFR § 226.5b(c)"),
        ("section 924(c)(1)(A) of title 18", "18 U.S.C. § 924(c)(1)(A)"),
        ("42 U.S.C. § 1395x(aaa)", "42 U.S.C. § 1395x(aaa)"),
        ("42 U.S.C. § 1395 note", "42 U.S.C. § 1395 note"),
        ("12 CFR pt. 1026, app. J", "12 CFR Part 1026, Appendix J"),
        ("Supplement I to 12 CFR Part 1026", "12 CFR Part 1026, Supplement I"),
        ("12 CFR Part 225, § 225.352", "12 CFR § 225.352"),
        ("N.Y. Ins. Law § 3224-a(a)", "N.Y. Ins. Law § 3224-a(a)"),
        ("Tex. Ins. Code § 4201.002(1), (1-c)", "Tex. Ins. Code § 4201.002(1), (1-c)"),
        ("45 CFR § 164.402 (definition of “breach”)", '45 CFR § 164.402 (definition of "breach")'),
        ("45 CFR § 158.221(b), introductory clause", "45 CFR § 158.221(b), introductory text"),
    ],
)
def test_a_citation_is_read_whole(text, whole):
    citation = parse(text, "US")
    assert render(citation) == whole and parse(whole, "US") == citation


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("50 U.S.C. app. § 5", "50 U.S.C. § 5"),
        ("18 U.S.C. § 1028A", "18 U.S.C. § 1028"),
        ("17 CFR § 240.10b-5", "17 CFR § 240.10b"),
        ("12 CFR § 1005.10", "12 CFR § 1005.1"),
        ("12 CFR § 226.5a", "12 CFR § 226.5"),
        ("42 U.S.C. § 1395 note", "42 U.S.C. § 1395"),
        ("45 CFR § 158.221(b), introductory text", "45 CFR § 158.221(b)"),
        ("Fla. Stat. § 627.4137", "Fla. Stat. § 627.41370"),
        ("C.R.S. § 10-3-1104.9", "C.R.S. § 10-3-1104"),
        ("23 NYCRR § 500.1", "23 NYCRR § 500.17"),
    ],
)
def test_what_is_longer_is_never_what_is_shorter(one, other):
    first, second = parse(one, "US"), parse(other, "US")
    assert first != second and render(first) != render(second)
    if "introductory" not in one:
        assert not covers(second, first) and not covers(first, second)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("9 CFR § 1.2(a)(1)-(3)", [("1.2", ("a", "1"), "3")]),
        ("9 CFR § 1.2(a)-(c)", [("1.2", ("a",), "c")]),
        ("9 CFR § 1.2(a) to (c)", [("1.2", ("a",), "c")]),
        ("9 CFR § 1.2(b)(2)(i)-(ii)", [("1.2", ("b", "2", "i"), "ii")]),
        ("9 CFR § 1.2(h)-(j)", [("1.2", ("h",), "j")]),
        ("9 CFR § 1.2(a), (d)", [("1.2", ("a",), ""), ("1.2", ("d",), "")]),
        ("9 CFR § 1.2(a)(1) and (3)", [("1.2", ("a", "1"), ""), ("1.2", ("a", "3"), "")]),
        ("9 CFR § 1.2(b)(1)(i), (ii)", [("1.2", ("b", "1", "i"), ""), ("1.2", ("b", "1", "ii"), "")]),
        ("9 CFR § 1.2(1)(a), (1)(b)(I), (2)",
         [("1.2", ("1", "a"), ""), ("1.2", ("1", "b", "I"), ""), ("1.2", ("2",), "")]),
        ("9 CFR § 1.2(a)-(b), (e)", [("1.2", ("a",), "b"), ("1.2", ("e",), "")]),
        ("9 CFR § 1.2(e), (e)(1)(i)-(ii)", [("1.2", ("e",), ""), ("1.2", ("e", "1", "i"), "ii")]),
        ("9 CFR § 1.2(a)(1)-(a)(3)", [("1.2", ("a", "1"), "3")]),
        ("9 CFR § 1.2(c)(1)(i)-(d)(2)", [("1.2", ("c", "1", "i"), "")]),
        ("9 CFR § 1.2(a)(1)(A)-(C)(iv)", [("1.2", ("a", "1", "A"), "")]),
    ],
)  # fmt: skip
def test_paragraphs_lists_and_ranges_of_them(text, places):
    assert named(text) == places
    citation = parse(text, "US")
    assert parse(render(citation), "US") == citation
    assert all(p.names_passage for p in citation.places)


def test_a_range_of_paragraphs_has_its_last_path():
    (place,) = parse("9 CFR § 1.2(c)(1)(i)-(d)(2)", "US").places
    assert [s.label for s in place.last] == ["1.2", "d", "2"]
    (place,) = parse("9 CFR § 1.2(a)(1)(A)-(C)(iv)", "US").places
    assert [s.label for s in place.last] == ["1.2", "a", "1", "C", "iv"]


@pytest.mark.parametrize(
    ("text", "stands_at"),
    [
        ("", ""), ("   ", ""), ("§ 1005.6", "§ 1005.6"), ("see 9 CFR § 1.2", "see"), ("9 CFR", ""), ("9 CFR §", ""),
        ("9 CFR § 1", "1"), ("9 CFR 12", "12"), ("9 CFR § 1.", "1."), ("9 CFR § 1.2.", "."),
        ("9 CFR § 1.2.3", "1.2.3"), ("225 ILCS 155/5(a) to 20(b)", "20(b)"), ("225 ILCS 155/5 to 156/7", "156/7"),
        ("9 CFR § 1.2(a", "(a"), ("9 CFR § 1.2(a)(", "("), ("9 CFR § 1.2(part)", "(part)"),
        ("9 CFR § 1.2(a) foo", " foo"),
        ("9 CFR § 1.2(c)-(a)", "-(a)"), ("9 CFR § 1.2(a)-(a)", "-(a)"), ("9 CFR § 1.2(b)(1)(a)-(b)(2)", "-(b)(2)"),
        ("9 CFR § 1.2(c)(1)(h), (i)(2)", "(i)(2)"), ("9 CFR § 1.2, (a)", "(a)"), ("9 CFR § 1.2 and", " and"),
        ("9 CFR §§ 1.9-1.2", "1.9-1.2"), ("9 CFR § 1.2 et", " et"), ("9 CFR § 1.2(a)-(c) et seq.", " et seq."),
        ("99 U.S.C. § 5", "99"), ("51 CFR § 1.2", "51"), ("9 CFR § 1.2; 42 U.S.C. § 5", "42 U.S.C. § 5"),
        ("Cal. Civ. Code § 5", "Cal."), ("9CFR § 1.2", "9CFR"), ("12 CFR Part 226, § 225.352", ", § 225.352"),
        ("12 CFR Part x", "x"), ("12 CFR Part 5, Subpart", "Subpart"), ("225 ILCS 155/", ""), ("225 ILCS x", "x"),
        ("3 CCR 702-4", "702-4"), ("9 CFR § 1.2(01)", "(01)"), ("Subpart B of 45 CFR", "45 CFR"),
        ("9 CFR § 1.2\n(a)", "\n(a)"), ("9 CFR § 1.2(a), (a) of this section", " of this section"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_told_with_its_place(text, stands_at):
    problem = refusal(text)
    assert problem.text[problem.at :].startswith(stands_at), (problem.at, problem.text[problem.at :])
    assert problem.why and isinstance(problem, InputError) and problem.exit_code == 2
    assert len(problem.message) < 400


def test_prose_is_refused_unread():
    assert refusal("9 CFR § 1.2" + "(a)" * 200).at == MAX_LENGTH


# A4: Vietnamese numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("47/2021/NĐ-CP", InstrumentNumber("47", "2021", "NĐ", "CP")),
        ("05/2019/TT-BTC", InstrumentNumber("05", "2019", "TT", "BTC")),
        ("59/2020/QH14", InstrumentNumber("59", "2020", "", "QH", "14")),
        ("12/2022/QH15", InstrumentNumber("12", "2022", "", "QH", "15")),
        ("11/2012/UBTVQH13", InstrumentNumber("11", "2012", "", "UBTVQH", "13")),
        ("07/2007/PL-UBTVQH11", InstrumentNumber("07", "2007", "PL", "UBTVQH", "11")),
        ("22/2020/QĐ-TTg", InstrumentNumber("22", "2020", "QĐ", "TTg")),
        ("1124/QĐ-NHNN", InstrumentNumber("1124", "", "QĐ", "NHNN")),
        ("03/2021/TT-BKHĐT", InstrumentNumber("03", "2021", "TT", "BKHĐT")),
    ],
)
def test_a_number_is_read_as_serial_year_type_and_body(text, number):
    citation = parse(text, "VN")
    assert citation.instrument == number and not citation.places and render(citation) == text == str(number)
    assert parse(unicodedata.normalize("NFD", text), "VN") == citation


@pytest.mark.parametrize(
    ("text", "suggestion", "said"),
    [
        ("47/2021/N\u00d0-CP", "47/2021/NĐ-CP", "U+00D0"),
        ("47/2021/N\u0189-CP", "47/2021/NĐ-CP", "U+0189"),
        ("03/2021/TT-BKH\u00d0T", "03/2021/TT-BKHĐT", "U+00D0"),
        ("47/2021/n\u00f0-cp", "47/2021/NĐ-CP", "U+00F0"),
        ("47/2021/ND-CP", "47/2021/NĐ-CP", "ND"),
        ("03/2021/TT-BKHDT", "03/2021/TT-BKHĐT", "BKHDT"),
        ("22/2020/QD-TTG", "22/2020/QĐ-TTg", "QD"),
        ("47 /2021/NĐ - CP", "47/2021/NĐ-CP", "spaces"),
        ("47/2021/NĐ\u00a0-\u00a0CP", "47/2021/NĐ-CP", "spaces"),
        ("47/2021/nđ-cp", "47/2021/NĐ-CP", "capitals"),
        ("59/2020/qh14", "59/2020/QH14", "capitals"),
        ("5/2019/TT-BTC", "05/2019/TT-BTC", "two digits"),
        ("005/2019/TT-BTC", "05/2019/TT-BTC", "zeros"),
        ("5/2019/tt-btc", "05/2019/TT-BTC", "capitals"),
        ("2019/TT-BTC/05", "", "SERIAL/YEAR/TYPE-BODY"),
        ("47/21/NĐ-CP", "", "SERIAL/YEAR/TYPE-BODY"),
        ("00/2021/NĐ-CP", "", "two digits"),
        ("47/1921/NĐ-CP", "", "1945"),
        ("47/NĐ-CP", "", "year"),
        ("27/2020/VBHN-NHNN", "", "year"),
        ("47/2021/NĐ-BTC", "", "does not issue"),
        ("47/2021/TT-XYZ", "", "no body XYZ"),
        ("47/2021/XX-CP", "", "no type XX"),
        ("01/2020/TTLT-BTP", "", "another number of bodies"),
        ("01/2020/TT-BTP-BTC", "", "another number of bodies"),
        ("59/2012/QH14", "", "2016 to 2021"),
        ("59/2020/QH99", "", "no term 99"),
        ("59/QH14", "", "year"),
    ],
)
def test_a_number_of_another_form_is_refused_with_the_form_that_is_meant(text, suggestion, said):
    problem = refusal(text, "VN")
    assert problem.suggestion == suggestion and said in problem.why
    if suggestion:
        assert str(parse(suggestion, "VN").instrument) == suggestion


def test_a_law_number_is_no_date():
    number = parse("12/2022/QH15", "VN").instrument
    assert (number.serial, number.year, number.term) == ("12", "2022", "15")


serials = st.integers(1, 3000).map(lambda n: f"{n:02d}")
codes = st.one_of(
    st.tuples(st.integers(2021, 2025).map(str), st.just("QH15")),
    st.tuples(st.integers(2016, 2021).map(str), st.sampled_from(["QH14", "UBTVQH14", "PL-UBTVQH14"])),
    st.tuples(st.integers(1945, 2030).map(str), st.just("NĐ-CP")),
    st.tuples(st.integers(1945, 2030).map(str), st.sampled_from(sorted(VIETNAMESE.bodies)).map("TT-{}".format)),
    st.tuples(st.sampled_from(["", "2020"]), st.sampled_from(sorted(VIETNAMESE.bodies)).map("QĐ-{}".format)),
)
numbers = st.tuples(serials, codes).map(lambda n: "/".join(p for p in (n[0], *n[1]) if p))


@given(numbers, numbers)
def test_the_slug_of_a_number_is_plain_and_collides_with_nothing(one, other):
    first, second = citations_vn.parse_number(one), citations_vn.parse_number(other)
    assert re.fullmatch(r"[0-9]+(-[a-z0-9]+)+", first.slug) and first.slug.isascii()
    assert (first.slug == second.slug) == (one == other)


@given(numbers, st.data())
def test_a_number_written_carelessly_is_refused_and_the_number_is_suggested(number, data):
    careless = data.draw(
        st.sampled_from(
            [
                number.replace("Đ", "\u00d0"), number.replace("Đ", "D"), number.lower(), number.replace("/", " /"),
                number.replace("/", "/ ", 1), number.lstrip("0"), "0" + number, number.replace("-", " - "),
            ]
        )
    )  # fmt: skip
    assume(careless != number)
    assert refusal(careless, "VN").suggestion == number


# Vietnamese locators


@pytest.mark.parametrize(
    ("text", "whole", "places"),
    [
        ("Điều 8", "Điều 8", [("8", (), "")]),
        ("Điều 198a, khoản 3", "Điều 198a, khoản 3", [("198a", ("3",), "")]),
        ("Điều 32đ", "Điều 32đ", [("32đ", (), "")]),
        ("Điều 8, khoản 2-4", "Điều 8, khoản 2-4", [("8", ("2",), "4")]),
        ("Điều 8, khoản 2 đến khoản 4", "Điều 8, khoản 2-4", [("8", ("2",), "4")]),
        ("từ khoản 2 đến khoản 4 Điều 8", "Điều 8, khoản 2-4", [("8", ("2",), "4")]),
        ("Điều 8, khoản 1, điểm a-đ", "Điều 8, khoản 1, điểm a-đ", [("8", ("1", "a"), "đ")]),
        ("Điều 8, điểm a", "Điều 8, điểm a", [("8", ("a",), "")]),
        ("điểm a khoản 1 Điều 8", "Điều 8, khoản 1, điểm a", [("8", ("1", "a"), "")]),
        ("điểm a, b và d khoản 1 Điều 8",
         "Điều 8, khoản 1, điểm a; Điều 8, khoản 1, điểm b; Điều 8, khoản 1, điểm d",
         [("8", ("1", "a"), ""), ("8", ("1", "b"), ""), ("8", ("1", "d"), "")]),
        ("Điều 8, khoản 2 and 3", "Điều 8, khoản 2; Điều 8, khoản 3", [("8", ("2",), ""), ("8", ("3",), "")]),
        ("các khoản 1, 2 và 3 Điều 8", "Điều 8, khoản 1; Điều 8, khoản 2; Điều 8, khoản 3",
         [("8", ("1",), ""), ("8", ("2",), ""), ("8", ("3",), "")]),
        ("Điều 8 khoản 1 điểm e, điểm i(iii), khoản 2",
         "Điều 8, khoản 1, điểm e; Điều 8, khoản 1, điểm i(iii); Điều 8, khoản 2",
         [("8", ("1", "e"), ""), ("8", ("1", "i", "iii"), ""), ("8", ("2",), "")]),
        ("khoản 1 Điều 8 và khoản 2 Điều 9", "Điều 8, khoản 1; Điều 9, khoản 2",
         [("8", ("1",), ""), ("9", ("2",), "")]),
        ("Chương II, Mục 1, Điều 8", "Chương II, Mục 1, Điều 8", [("8", (), "")]),
        ("Phụ lục III Mẫu số 03", "Phụ lục III, Mẫu số 03", [("", (), "")]),
        ("điều 8 Khoản 2", "Điều 8, khoản 2", [("8", ("2",), "")]),
        ("điểm a, khoản 1, Điều 8", "Điều 8, khoản 1, điểm a", [("8", ("1", "a"), "")]),
        ("Điều 8 Phụ lục I", "Phụ lục I, Điều 8", [("8", (), "")]),
        ("Điều 8; Phụ lục I", "Điều 8; Phụ lục I", [("8", (), ""), ("", (), "")]),
        ("Phụ lục I; Điều 8", "Phụ lục I; Điều 8", [("", (), ""), ("8", (), "")]),
        ("46/2023/NĐ-CP, Điều 8", "46/2023/NĐ-CP, Điều 8", [("8", (), "")]),
        ("khoản 1 Điều 8 Nghị định số 46/2023/NĐ-CP", "46/2023/NĐ-CP, Điều 8, khoản 1", [("8", ("1",), "")]),
    ],
)  # fmt: skip
def test_a_vietnamese_locator_is_read_downward_and_upward(text, whole, places):
    assert named(text, "VN") == places
    citation = parse(text, "VN")
    assert render(citation) == whole and parse(whole, "VN") == citation
    assert parse(unicodedata.normalize("NFD", text), "VN") == citation


@pytest.mark.parametrize(
    ("text", "stands_at", "suggestion"),
    [
        ("khoản 2", "khoản 2", ""), ("điểm a khoản 1", "", ""), ("Điều", "", ""), ("Điều 8,", "", ""),
        ("Phụ lục I và Điều 8", "Điều 8", ""), ("Điều 8, Phụ lục I", "Phụ lục I", ""),
        ("Điều 8; khoản 2", "khoản 2", ""), ("Điều 8, điểm a, khoản 2", "khoản 2", ""),
        ("Phụ lục I, khoản 2, Điều 8", "Điều 8", ""), ("Điều 8 và khoản 2", "khoản 2", ""),
        ("Điều 8, khoản 4-2", "-2", ""), ("Điều 8, khoản 2-2", "-2", ""), ("Điều 8, điểm đ-d", "-d", ""),
        ("Điều 8, khoản 1, 2, điểm a", "điểm a", ""), ("Điều 8, khoản 1-2, điểm a", "điểm a", ""),
        ("điểm a khoản 1, 2 Điều 8", "", ""), ("Điều 8, khoản 2ab", "2ab", ""), ("Điều 08", "08", ""),
        ("Điều 8 Luật này", "Luật này", ""), ("Thông tư 46/2023/NĐ-CP, Điều 8", "Thông tư", ""),
        ("Điều 8 46/2023/ND-CP", "ND-CP", ""), ("§ 5", "§ 5", ""), ("12 CFR § 1005.6", "12 CFR", ""),
        ("\u00d0iều 8", "\u00d0", "Điều 8"), ("Dieu 8, khoan 2, diem a", "Dieu", "Điều 8, khoản 2, điểm a"),
        ("Article 8(2)(a)", "Article", "Điều 8, khoản 2, điểm a"), ("Art. 8, clause 2", "Art.", "Điều 8, khoản 2"),
    ],
)  # fmt: skip
def test_a_vietnamese_locator_that_is_not_understood_is_told_with_its_place(text, stands_at, suggestion):
    problem = refusal(text, "VN")
    assert problem.text[problem.at :].startswith(stands_at) and problem.suggestion == suggestion


def test_points_are_counted_in_vietnamese_order():
    letters = "abcdđeghiklmnopqrstuvxy"
    assert sorted(letters, key=lambda x: citations_vn.order("điểm", x)) == list(letters)
    clauses = ["1", "2", "2a", "2b", "2đ", "3", "10"]
    assert sorted(clauses, key=lambda x: citations_vn.order("khoản", x)) == clauses


# Properties: what is written is read again, and nothing is read in part


NUMBERS = [str(n) for n in range(1, 40)]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz", "aa", "bb"]
ROMAN = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xiv"]
KINDS = [LETTERS, NUMBERS, ROMAN, [x.upper() for x in LETTERS], [x.upper() for x in ROMAN]]


@st.composite
def us_places(draw, section: tuple[Step, ...]) -> Place:
    kinds = draw(st.lists(st.sampled_from(KINDS), max_size=4))
    path = [draw(st.sampled_from(kind)) for kind in kinds]
    last: list[str] = []
    if path and draw(st.booleans()):
        cut = draw(st.integers(0, len(path) - 1))
        kind = kinds[cut]
        later = [x for x in kind if kind.index(x) > kind.index(path[cut]) and labels.follows(path[cut], x)]
        if later:
            below = draw(st.lists(st.sampled_from(NUMBERS + ROMAN), max_size=2))
            last = [*path[:cut], draw(st.sampled_from(later)), *below]

    def steps(of: list[str]) -> tuple[Step, ...]:
        return (*section, *(Step(PARAGRAPH, label) for label in of))

    plain = not last
    return Place(
        steps(path),
        steps(last) if last else (),
        open_ended=plain and draw(st.integers(0, 9)) == 0,
    )


SECTIONS = {
    "CFR": ["1005.6", "1005.10", "1005.11", "240.10b-5", "2560.503-1", "226.5a", "275.206(4)-7", "1.401(k)-1"],
    "USC": ["5", "201", "1028A", "1692g", "300gg-111", "1320a-7a", "78u-4", "80a-64", "1395w-22"],
    "Cal. Ins. Code": ["790.03", "10113.71", "1861.01", "1871"],
    "C.R.S.": ["10-3-1104", "10-3-1104.9", "25.5-4-401.2"],
    "Neb. Rev. Stat.": ["44-6011", "44-6007.02"],
    "N.Y. Ins. Law": ["2601", "3224-a"],
    "NYCRR": ["500.17", "86-1.2"],
    "Tex. Ins. Code": ["542.056", "4201.002"],
    "ILCS": ["20", "143.17a", "11-501"],
}
TITLES = {"CFR": "12", "USC": "42", "NYCRR": "23", "ILCS": "225"}


@st.composite
def us_citations(draw) -> Citation:
    system = draw(st.sampled_from(sorted(SECTIONS)))
    places: list[Place] = []
    for section in draw(st.lists(st.sampled_from(SECTIONS[system]), min_size=1, max_size=3, unique=True)):
        above = (Step("act", "155"),) if system == "ILCS" else ()
        places.append(draw(us_places((*above, Step("section", section)))))
    appendix = system == "USC" and draw(st.booleans())
    return Citation(system, TITLES.get(system, ""), tuple(places), appendix)


@given(us_citations())
def test_what_is_written_is_read_again(citation):
    text = render(citation)
    assert parse(text, "US") == citation and render(parse(text, "US")) == text


@st.composite
def vn_citations(draw) -> Citation:
    places = []
    for _ in range(draw(st.integers(1, 3))):
        above = draw(st.sampled_from([(), (Step("Phụ lục", "II"),), (Step("Chương", "II"), Step("Mục", "1"))]))
        if above and draw(st.booleans()):
            places.append(Place(above))
            continue
        path = [*above, Step("Điều", draw(st.sampled_from(["1", "8", "32đ", "198a"])))]
        if draw(st.booleans()):
            path.append(Step("khoản", draw(st.sampled_from(["1", "2", "2a", "10"]))))
        if draw(st.booleans()):
            path.append(Step("điểm", draw(st.sampled_from([*"abcdđeg", "a1"]))))
        last: tuple[Step, ...] = ()
        ends = {"Điều": "200", "khoản": "12", "điểm": "y"}
        if draw(st.booleans()):
            last = (*path[:-1], Step(path[-1].level, ends[path[-1].level]))
        elif path[-1].level == "điểm" and draw(st.booleans()):
            path.append(Step("tiết", draw(st.sampled_from(["i", "iii"]))))
        places.append(Place(tuple(path), last))
    number = draw(st.none() | st.just(InstrumentNumber("46", "2023", "NĐ", "CP")))
    return Citation("VN", places=tuple(places), instrument=number)


@given(vn_citations())
def test_what_is_written_in_vietnamese_is_read_again(citation):
    text = render(citation)
    assert parse(text, "VN") == citation and render(parse(text, "VN")) == text


def said(text: str) -> list[str]:
    """The numbers and labels of a text, in order: what a reading must not lose."""
    return re.findall(r"[0-9]+|(?<=\()[A-Za-z]+(?=\))", text)


HEADS = [
    "12 CFR ", "12 C.F.R. § ", "42 U.S.C. §§ ", "42 U.S.C. ", "50 U.S.C. app. ", "225 ILCS 155/", "sections ",
    "12 CFR Part ", "Cal. Ins. Code § ", "Điều 5", "khoản 2, 3", "điểm a ", "13/2023/NĐ-CP", "Phụ lục I", "",
]  # fmt: skip
PIECES = [
    "§ ", " ", "1005.6", "1005.10", "240.10b-5", "1692g", "201-219", "300gg-111", "(a)", "(b)", "(1)", "(2)", "(i)",
    "(ii)", "(A)", "-", "–", ", ", " and ", " to ", " et seq.", "Part ", "1005", ", Subpart B", ", Appendix J", "20",
    "155/", "/", ".", "; ", " of title 28", " note", " Điều 5", ", khoản 2", ", điểm a", "-4", " và ", "10113.71", "(",
    ")", "Đ", "Ð",
]  # fmt: skip
pieced = st.tuples(st.sampled_from(HEADS), st.lists(st.sampled_from(PIECES), min_size=1, max_size=7)).map(
    lambda p: p[0] + "".join(p[1])
)


@given(pieced | st.text(max_size=40), st.sampled_from(["US", "VN"]))
@settings(max_examples=400)
def test_any_text_is_read_or_refused(text, jurisdiction):
    try:
        citation = parse(text, jurisdiction)
    except NotUnderstood as problem:
        assert 0 <= problem.at <= len(problem.text) and problem.why
        return
    whole = render(citation)
    assert parse(whole, jurisdiction) == citation and render(parse(whole, jurisdiction)) == whole
    # Nothing of the text is lost: every number and label in it stands in what was read, as often or more.
    kept = said(whole)
    for piece in said(unicodedata.normalize("NFC", text)):
        assert piece in kept, (text, whole)


@given(us_citations() | vn_citations(), st.data())
def test_no_prefix_is_taken_for_the_whole_and_no_remainder_is_dropped(citation, data):
    country = "VN" if citation.system == "VN" else "US"
    text = render(citation)
    cut = data.draw(st.integers(1, len(text) - 1))
    more = text + data.draw(st.text("abz059()-.,§ đĐ", min_size=1, max_size=4))
    for changed in (text[:cut], more):
        try:
            again = parse(changed, country)
        except NotUnderstood:
            continue
        assert [x for x in said(changed) if x not in said(render(again))] == []
        assert again != citation or re.sub(r"[\W_]", "", changed) == re.sub(r"[\W_]", "", text)


@given(us_citations(), st.sampled_from("\u00a0\u2009\u202f"), st.sampled_from("‐‑–"))
def test_the_spaces_and_hyphens_of_typesetters_are_taken_as_such(citation, space, hyphen):
    text = render(citation)
    assert parse(text.replace(" ", space).replace("-", hyphen), "US") == citation


# Labels


def test_labels_follow_in_their_ways_of_counting():
    assert labels.follows("h", "i") and labels.follows("i", "ii") and labels.follows("z", "aa")
    assert labels.follows("1", "1-a") and labels.follows("1-c", "2") and labels.follows("9", "10")
    assert not labels.follows("b", "ii") and not labels.follows("a", "1") and not labels.follows("C", "d")
    assert not labels.follows("a", "a") and not labels.counts("part") and not labels.counts("01")


@given(st.integers(1, 80), st.integers(1, 80))
def test_numerals_follow_as_their_numbers_do(one, other):
    numerals = {n: label for label, n in labels._ROMAN.items()}
    ways = labels.counts(numerals[one]), labels.counts(numerals[other])
    assert (ways[0]["lower roman"] < ways[1]["lower roman"]) == (one < other)


# Comparing


@pytest.mark.parametrize(
    ("outer", "inner", "inside"),
    [
        ("12 CFR § 1005.6", "12 CFR § 1005.6(b)(1)", True),
        ("12 CFR § 1005.6", "12 CFR § 1005.6(a)-(c)", True),
        ("12 CFR §§ 1005.6, 1005.11", "12 CFR § 1005.11(c)", True),
        ("12 CFR §§ 1005.6, 1005.11", "12 CFR § 1005.7", False),
        ("12 CFR Part 1005", "12 CFR § 1005.10(c)", True),
        ("12 CFR Part 100", "12 CFR § 1005.10(c)", False),
        ("12 CFR Parts 200-299", "12 CFR § 226.5a", True),
        ("12 CFR Parts 200-299", "12 CFR § 1005.10", False),
        ("12 CFR § 1005.1", "12 CFR § 1005.10", False),
        ("12 CFR §§ 1005.6-1005.11", "12 CFR § 1005.10(a)", True),
        ("12 CFR §§ 1005.6-1005.9", "12 CFR § 1005.10(a)", False),
        ("12 CFR § 1005.6(a)-(c)", "12 CFR § 1005.6(b)(4)", True),
        ("12 CFR § 1005.6(a)-(c)", "12 CFR § 1005.6(d)", False),
        ("12 CFR § 1005.6(a)-(c)", "12 CFR § 1005.6", False),
        ("12 U.S.C. § 1828(a)(4)", "12 U.S.C. § 1828(a)(4)(A)-(B)", True),
        ("12 U.S.C. § 1828(a)(4)", "12 U.S.C. § 1828(a)(40)", False),
        ("12 U.S.C. § 1828", "13 U.S.C. § 1828", False),
        ("15 U.S.C. § 1693 et seq.", "15 U.S.C. § 1693g", True),
        ("15 U.S.C. § 1693 et seq.", "15 U.S.C. § 1692g", False),
        ("50 U.S.C. § 5", "50 U.S.C. app. § 5", False),
        ("225 ILCS 155", "225 ILCS 155/20(a)", True),
        ("225 ILCS 15", "225 ILCS 155/20(a)", False),
        ("Cal. Ins. Code §§ 790-790.15", "Cal. Ins. Code § 790.03(h)", True),
        ("Cal. Ins. Code §§ 790-790.15", "Cal. Ins. Code § 790.2", False),
        ("42 U.S.C. § 1395", "42 U.S.C. § 1395 note", False),
        ("42 U.S.C. § 1395 note", "42 U.S.C. § 1395", False),
        ("42 U.S.C. § 1395 note", "42 U.S.C. § 1395 note", True),
        ("45 CFR § 158.221", "45 CFR § 158.221(b), introductory text", True),
        ("45 CFR § 158.221(b), introductory text", "45 CFR § 158.221(b)(1)", False),
    ],
)
def test_what_lies_within_what(outer, inner, inside):
    assert covers(parse(outer, "US"), parse(inner, "US")) == inside


def test_what_lies_within_what_in_viet_nam():
    def inside(outer: str, inner: str) -> bool:
        return covers(parse(outer, "VN"), parse(inner, "VN"))

    assert inside("46/2023/NĐ-CP", "Điều 5, khoản 2") and inside("46/2023/NĐ-CP", "46/2023/NĐ-CP, Điều 5")
    assert not inside("46/2023/NĐ-CP", "47/2023/NĐ-CP, Điều 5")
    assert inside("Điều 5, khoản 2-4", "Điều 5, khoản 2a, điểm b") and not inside(
        "Điều 5, khoản 2-4", "Điều 5, khoản 10"
    )
    assert inside("Điều 5, điểm a-e", "Điều 5, điểm đ") and not inside("Điều 5, điểm a-d", "Điều 5, điểm đ")


def test_instruments_are_told_apart():
    source = parse("45 CFR §§ 147.128, 147.200", "US")
    assert same_instrument(source, parse("45 CFR § 147.136", "US"))
    for other in ("45 CFR § 149.110", "29 CFR § 147.128", "45 U.S.C. § 147"):
        assert not same_instrument(source, parse(other, "US"))


# The checks


@given(us_citations(), us_citations())
def test_the_short_way_says_what_the_long_one_says(one, other):
    locator, number = render(one), render(other)
    assert citation_checks.locator_problems(locator, number, "US") == citation_checks._problems(locator, number, "US")


@given(us_citations(), st.sampled_from(["(a)", "(part)", "(a)(1)", "(01)", "(a"]))
def test_the_short_way_says_so_of_what_is_added_too(citation, more):
    locator = number = render(citation)
    short = citation_checks.locator_problems(locator + more, number, "US")
    assert short == citation_checks._problems(locator + more, number, "US")


@pytest.mark.parametrize(
    ("locator", "number", "about"),
    [
        ("12 CFR § 1005.6(a", "12 CFR § 1005.6", {"form"}),
        ("12 C.F.R. § 1005.6(a)", "12 CFR § 1005.6", {"canonical"}),
        ("13 CFR § 1005.6(a)", "12 CFR § 1005.6", {"instrument"}),
        ("12 CFR § 1006.6(a)", "12 CFR § 1005.6", {"instrument"}),
        ("12 CFR § 1005.10(a)", "12 CFR § 1005.1", {"outside"}),
        ("12 CFR § 1005.6 et seq.", "12 CFR Part 1005", {"open-ended"}),
        ("12 CFR Part 1005", "12 CFR Part 1005", {"open-ended"}),
        ("12 CFR § 1005.6 note(a)", "12 CFR § 1005.6", {"form"}),
        ("12 CFR Part 1026, Supplement 1(a)", "12 CFR Part 1026", {"form"}),
    ],
)
def test_problems_of_locators(locator, number, about):
    assert {about for about, _ in citation_checks.locator_problems(locator, number, "US")} == about


def test_a_vietnamese_locator_that_repeats_another_number_is_seen():
    def problems(locator: str) -> set[str]:
        return {about for about, _ in citation_checks.locator_problems(locator, "46/2023/NĐ-CP", "VN")}

    assert problems("Điều 5, khoản 2") == problems("46/2023/NĐ-CP, Điều 5, khoản 2") == set()
    assert problems("47/2023/NĐ-CP, Điều 5, khoản 2") == {"instrument"}
    assert problems("46/2023/NĐ-CP") == {"form"} and problems("Chương II") == {"open-ended"}


def test_numbers_are_held_to_their_jurisdiction():
    assert "US-TX" in citation_checks.number_problem("Tex. Ins. Code § 542.056", "US-CA")
    assert "alone" in citation_checks.number_problem("46/2023/NĐ-CP, Điều 5", "VN")
    assert "'46/2023/NĐ-CP'" in citation_checks.number_problem("46/2023/ND-CP", "VN")
    assert citation_checks.number_form("12 C.F.R. § 1005.6", "US") == "12 CFR § 1005.6"
    for jurisdiction in ("DE", "US-WA", "", None):
        assert citation_checks.number_problem("anything", jurisdiction) is None
        assert citation_checks.number_form("anything", jurisdiction) is None


def test_without_a_grammar_nothing_is_said_and_asking_for_one_tells_what_to_do():
    assert not has_grammar("DE") and not has_grammar("US-WA") and has_grammar("US-CA") and has_grammar("VN")
    assert citation_checks.locator_problems("§ 5 Abs. 2", "KWG", "DE") == ()
    with pytest.raises(InputError) as caught:
        parse("§ 5 Abs. 2", "DE")
    assert "docs/citations.md" in caught.value.mend and citations.country("US-CA") == "US"


def test_guidance_is_cited_as_it_comes():
    package = read(ROOT)
    record = package.table("citations")[0]
    source = next(s for s in package.table("sources") if s["id"] == record["source"])
    record.cells["locator"] = "chapter three, second box"
    assert [n for n, _, _ in citation_checks.problems_of(package)] == [0]
    source.cells["kind"] = "guidance"
    assert list(citation_checks.problems_of(package)) == []
    package.incomplete.add("sources")
    source.cells["kind"] = "statute"
    assert list(citation_checks.problems_of(package)) == []


# The page for those who write citations


def test_what_the_page_calls_canonical_is_and_what_it_says_is_read_too():
    text = (ROOT / "docs" / "citations.md").read_text(encoding="utf-8")
    of_us, of_vn = text.split("## Viet Nam")
    checked = 0
    for part, country in ((of_us, "US"), (of_vn.split("## Another jurisdiction")[0], "VN")):
        for canonical, others in re.findall(r"^\| [^`|]+ \| (`[^|]+`) \| ([^|]*)\|$", part, re.MULTILINE):
            whole = re.findall("`([^`]+)`", canonical)
            assert [render(parse(c, country)) for c in whole] == whole
            assert {render(parse(c, country)) for c in re.findall("`([^`]+)`", others)} <= set(whole)
            checked += len(whole)
    assert checked >= 25  # no table of the page has slipped out of the pattern


# The texts that are held


@pytest.mark.shared
def test_the_section_of_every_locator_heads_a_section_of_its_held_text(shared):
    for locator, source in CITED:
        text = (shared / "legal" / "texts" / f"{source['id']}.txt").read_text(encoding="utf-8")
        headings = "\n".join(re.findall(r"^## (.*)$", text, re.MULTILINE))
        for section in parse(locator, source["jurisdiction"]).sections:
            assert re.search(rf"(?<![\w.\-]){re.escape(section)}(?![\w]|[.\-]\w)", headings), locator
