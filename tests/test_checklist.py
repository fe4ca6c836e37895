"""The audit of checklists of another making: citations in prose, outcomes with their evidence, unusable input.

The law in these tests is invented, and its numbers are of no instrument that exists; only the tests that take the
``shared`` fixture read real texts and the predecessor's checklist, and nothing of either stands here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from datetime import date
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import ROOT
from helpers import Sheet
from hypothesis import given
from hypothesis import strategies as st

from regatta_tools.errors import InputError
from regatta_tools.provenance import checklist, prose
from regatta_tools.provenance.checks import NON_BINDING, REASONS
from regatta_tools.provenance.citations import covers, parse, render, same_instrument
from regatta_tools.provenance.corpus import read_corpus
from regatta_tools.tables.package import Package, read

DAY = date(2026, 11, 30)


@lru_cache(maxsize=1)
def own() -> Package:
    """The package of the project."""
    return read(ROOT)


# Citations in prose


def law(text: str, known: tuple[str, ...] = ()) -> list[str]:
    return [render(m.citation) for m in prose.mentions(text, known) if m.citation is not None]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Nghị định 98/2031/NĐ-CP, Article 20", ["98/2031/NĐ-CP, Điều 20"]),
        ("Nghị định 98/2031/NĐ-CP (SHORT), Articles 9-15", ["98/2031/NĐ-CP, Điều 9-15"]),
        ("Point a, Clause 2, Article 20 of Decree 98/2031/NĐ-CP", ["98/2031/NĐ-CP, Điều 20, khoản 2, điểm a"]),
        ("Decree No. 98/2031/NĐ-CP, Article 20(2)(a)", ["98/2031/NĐ-CP, Điều 20, khoản 2, điểm a"]),
        ("NĐ 98/2031, Article 20.2", ["98/2031/NĐ-CP, Điều 20, khoản 2"]),
        ("điểm đ khoản 1 Điều 3 Thông tư 07/2031/TT-BTC", ["07/2031/TT-BTC, Điều 3, khoản 1, điểm đ"]),
        ("TT 07/2031, Chapter II", ["07/2031/TT-BTC, Chương II"]),
        ("Circular 7/2031", ["07/2031/TT-BTC"]),
        ("TT 08/2031", []),  # no instrument of that beginning is known
        ("Luật PCRT 2022 (Law 14/2022/QH15), Article 25", ["14/2022/QH15, Điều 25"]),
        ("Article 25 of the Law on Anti-Money Laundering 2022", ["14/2022/QH15, Điều 25"]),
        ("Law on Anti-Money Laundering, Article 25", []),  # there was an earlier law of this name
        ("Law on Anti-Money Laundering 2012, Article 25", []),
        ("50 CFR §999.11(c)(2); 54 USC §99901", ["50 CFR § 999.11(c)(2)", "54 U.S.C. § 99901"]),
        ("50 CFR 999.11 and 54 USC 99901", ["50 CFR § 999.11", "54 U.S.C. § 99901"]),
        ("50 CFR §999 (the rule)", ["50 CFR Part 999"]),
        ("An Invented Act (54 USC §99901)", ["54 U.S.C. § 99901"]),
        ("Regulation B §1002.14", ["12 CFR § 1002.14"]),
        ("Regulation B (12 CFR §1002)", ["12 CFR Part 1002"]),
        ("Regulation E (12 CFR 1005.11)", ["12 CFR § 1005.11"]),  # the name is the instrument of the place
        ("Tex. Ins. Code § 9999.056, as applied", ["Tex. Ins. Code § 9999.056"]),
        ("Decree 98/2031/ND-CP, Article 20", []),  # no letter of a number is mended in silence
        ("Conditions of nothing in particular", []),
    ],
)
def test_citations_are_found_in_prose(written: str, meant: list[str]) -> None:
    assert law(written, ("07/2031/TT-BTC", "98/2031/NĐ-CP")) == meant


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("An Invented Model Act (Model #9999), section 4", "model-law-as-law"),
        ("FATF Recommendation 99", "model-law-as-law"),
        ("ISO 99999", "model-law-as-law"),
        ("Invented Agency Guidance 2031-1", "guidance-as-law"),
        ("công văn về việc gì đó", "guidance-as-law"),
        ("State codes on invented matters", "unknown-instrument"),
        ("Standards of the trade (typical)", "unknown-instrument"),
        ("SBV invented regulations", "unknown-instrument"),
    ],
)
def test_words_that_name_no_law(written: str, reason: str) -> None:
    (mention,) = prose.mentions(written)
    assert (mention.kind, mention.reason) == (prose.NOT_LAW, reason)
    assert mention.says


def test_beside_a_law_what_looks_like_a_citation_is_not_passed_over() -> None:
    kinds = [(m.kind, m.written) for m in prose.mentions("Invented Act §302, 50 CFR §999.11")]
    assert kinds == [("not-understood", "Invented Act §302"), ("law", "50 CFR §999.11")]


def test_every_name_is_supported_by_a_source_of_ours() -> None:
    """A name is words of its source's title, or their first letters, and its number is that source's instrument."""
    sources = {r.key: r for r in own().table("sources")}
    for name in prose.names():
        row = sources[name.source]
        land = row["jurisdiction"]
        assert same_instrument(parse(row["number"], land), parse(name.number, land)), name
        titles = f"{row['title']} {row['title_vi']}".casefold()
        words = re.findall(r"\w+", titles)
        initials = "".join(w[0] for w in re.findall(r"\w+", row["title_vi"].casefold()))
        for word in re.findall(r"\w+", name.words.casefold()):
            assert any(word in (w, w.removesuffix("s")) for w in words) or word in initials, (name, word)


def test_no_title_of_binding_law_is_taken_for_something_else() -> None:
    for row in own().table("sources"):
        for words in prose.not_law():
            assert REASONS[words.reason][0] == NON_BINDING
            found = [t for t in (row["title"], row["title_vi"], row["number"]) if words.pattern.search(t)]
            assert row["binding"] != "true" or not found, (row.key, words)


NUMBERS = [r["number"] for r in own().table("sources") if r["kind"] in ("statute", "regulation")]


@given(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3, unique=True), st.sampled_from(["", " (the rule)"]))
def test_numbers_of_sources_are_found_in_any_list(numbers: list[str], comment: str) -> None:
    found = [m.citation for m in prose.mentions("; ".join(n + comment for n in numbers)) if m.citation]
    for number in numbers:
        own = parse(number, "VN" if "/" in number else "US")
        assert any(c is not None and (covers(c, own) or covers(own, c)) for c in found), number
    assert len(found) <= len(numbers)


PIECES = [
    "12 CFR §1005.11",
    "Article 2",
    "98/2031/NĐ-CP",
    "; ",
    ", ",
    " (",
    ")",
    "§",
    "Luật PCRT 2022",
    "NAIC",
    "Điều 3",
]


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=8).map("".join)))
def test_mentions_stand_where_they_say(text: str) -> None:
    text = unicodedata.normalize("NFC", text)
    found = prose.mentions(text)
    assert all(text[m.start : m.end] == m.written for m in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert bool(found) == any(part.strip() for part in re.split(r"[;\n]", text))
    decomposed = prose.mentions(unicodedata.normalize("NFD", text))
    assert [m.citation for m in decomposed] == [m.citation for m in found]


# Outcomes


def text_of(folder: Path, source: str, number: str, sections: dict[str, str], **header: str) -> None:
    """Write one invented text."""
    head = {"source-id": source, "title": "Invented for a test", "number": number, "as-of": "2026-01-01"} | header
    lines = [f"{key}: {value}" for key, value in head.items()]
    body = [f"\n## {heading}\n\n{words}" for heading, words in sections.items()]
    (folder / f"{source}.txt").write_text("\n".join([*lines, *body]) + "\n", encoding="utf-8")


def listed(folder: Path, *pairs: tuple[str, str], name: str = "invented.json", prefix: str = "X") -> Path:
    """Write a checklist of sources and statements."""
    folder.mkdir(exist_ok=True)
    items = [{"id": f"{prefix}-{n}", "source": s, "requirement": r} for n, (s, r) in enumerate(pairs, 1)]
    (folder / name).write_text(
        json.dumps({"industry": "invented", "requirements": items}, ensure_ascii=False, indent=1), encoding="utf-8"
    )
    return folder


PART = {
    "§ 999.1": "(a) The office answers within 15 business days. (1) It files it.\n\n(b) It keeps it at least 6 years.",
    "§ 999.2": "A fee is at most $40. It is returned not later than 20 days after the request.",
    "§ 999.3": "The office acts within 45 days. It replies within 60 days and pays within 70 days.",
    "§ 999.4(a)": "(a) Where the sum is more than 3 percent, […] it is paid.",
    "§ 999.5": "(a) The office keeps the file for 30 months.\n\n(b) It answers.",
}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    text_of(folder, "us-cfr-50-999", "50 CFR Part 999", PART)
    articles = {
        "Điều 1": "1. Cơ quan trả lời trong thời hạn 15 ngày làm việc.\n\n2. Phí không quá 400 triệu đồng.",
        "Điều 2": "Cơ quan lưu hồ sơ ít nhất 05 năm.",
    }
    text_of(folder, "vn-decree-98-2031-nd-cp", "98/2031/NĐ-CP", articles)
    return folder


def audited(folder: Path, texts: Path, *pairs: tuple[str, str], package: Path = ROOT) -> list[checklist.ChecklistItem]:
    entries = checklist.read_checklist(listed(folder / "list", *pairs))
    return checklist.audit_checklist(
        (own() if package == ROOT else read(package)), read_corpus(texts), entries, as_of=DAY
    ).items


@pytest.mark.parametrize(
    ("source", "statement", "outcome", "reasons"),
    [
        # Nothing speaks against these, and nobody has read them: no machine calls them clean.
        ("50 CFR §999.1", "Answer within 15 business days", "not-assessed", ["not-read"]),
        ("50 CFR §999.2", "Take a fee of at most $40", "not-assessed", ["not-read"]),
        ("50 CFR §999.1", "Keep the file", "not-assessed", ["not-read"]),
        ("NĐ 98/2031, Article 1", "Answer within 15 business days; fee up to VND 400M", "not-assessed", ["not-read"]),
        ("Decree 98/2031/NĐ-CP, Article 1(2)", "Fee up to VND 400,000,000", "not-assessed", ["not-read"]),
        ("50 CFR §999.4(a)", "Pay where it is more than 3%", "not-assessed", ["not-read"]),
        # The passage puts one other quantity in its place.
        ("50 CFR §999.1", "Answer within 15 days", "misstates-current-rule", ["wrong-day-count"]),
        ("50 CFR §999.1(a)", "Answer within 10 business days", "misstates-current-rule", ["wrong-number"]),
        ("50 CFR §999.2", "Take a fee of at most $50", "misstates-current-rule", ["wrong-number"]),
        ("50 CFR §999.2", "Take a fee of at least $40", "misstates-current-rule", ["wrong-comparator"]),
        ("50 CFR §999.5", "Keep the file for 30 days", "misstates-current-rule", ["wrong-unit"]),
        ("NĐ 98/2031, Article 2", "Keep at least 10 years", "misstates-current-rule", ["wrong-number"]),
        # It does not state the number, and which of its own is meant nobody but a reader can say.
        ("50 CFR §999.3", "Act within 50 days", "citation-defect", ["wrong-locator"]),
        ("50 CFR §999.2", "Keep for at least 6 years", "citation-defect", ["wrong-locator"]),
        # What is not there, and what is merely not held.
        ("50 CFR §999.1(c)", "Answer", "citation-defect", ["wrong-locator"]),
        ("50 CFR §999.9", "Answer", "not-assessed", ["text-not-held"]),
        ("50 CFR §999.4(a)", "Pay where it is more than 5%", "not-assessed", ["text-not-held"]),
        ("50 CFR §999.4", "Pay where it is more than 5%", "not-assessed", ["text-not-held"]),
        ("54 USC §99901", "Answer", "not-assessed", ["text-not-held"]),
        ("50 CFR §999.1; 54 USC §99901", "Answer within 99 days", "not-assessed", ["text-not-held"]),
        # No source leads to a passage.
        ("50 CFR §999", "Answer", "citation-defect", ["missing-locator"]),
        ("NĐ 98/2031, Articles 1-2", "Answer", "citation-defect", ["missing-locator"]),
        ("NĐ 98/2031, Chapter II", "Answer", "citation-defect", ["missing-locator"]),
        ("50 CFR §999.1; NĐ 98/2031", "Answer", "not-assessed", ["not-read"]),
        ("Invented Act §302; 50 CFR §999", "Answer", "not-assessed", ["citation-not-understood"]),
        # Not law.
        ("Model Act of nobody", "Answer", "non-binding-source-only", ["model-law-as-law"]),
        ("Guidance; Model Act", "Answer", "non-binding-source-only", ["guidance-as-law", "model-law-as-law"]),
        ("Guidance of nobody; 50 CFR §999.1", "Answer", "not-assessed", ["not-read"]),
        ("Guidance of nobody; Invented Act", "Answer", "not-assessed", ["citation-not-understood"]),
    ],
)  # fmt: skip
def test_outcomes(tmp_path: Path, texts: Path, source: str, statement: str, outcome: str, reasons: list[str]) -> None:
    (item,) = audited(tmp_path, texts, (source, statement))
    assert (item.outcome, item.reasons) == (outcome, reasons), item.evidence
    shown = {d["reason"] for e in item.evidence for d in e.get("differs", ())}
    assert shown == (set(reasons) if outcome != "not-assessed" else set())


def test_evidence_names_text_place_and_difference(tmp_path: Path, texts: Path) -> None:
    (item,) = audited(tmp_path, texts, ("50 CFR §999.1(a)", "Answer within 10 business days"))
    (evidence,) = item.evidence
    held = read_corpus(texts).latest("us-cfr-50-999")
    assert held is not None
    assert (evidence["text"], evidence["text_date"], evidence["text_hash"]) == (held.file, "2026-01-01", held.sha256)
    assert evidence["locator"] == "50 CFR § 999.1(a)"
    (differs,) = evidence["differs"]
    start, end = differs["passage_at"]
    assert "(a) The office answers within 15 business days."[start:end] == "15"
    assert "10 day (business)" in differs["what"]
    assert "15 day (business)" in differs["what"]


def test_where_a_number_stands_instead_is_said(tmp_path: Path, texts: Path) -> None:
    items = audited(
        tmp_path, texts, ("50 CFR §999.2", "Keep for at least 6 years"), ("50 CFR §999.9", "Keep for 6 years")
    )
    for item in items:
        assert item.evidence[0]["stands_in"] == {"6 year": ["us-cfr-50-999.txt: § 999.1 at (b)"]}


def test_an_outcome_without_evidence_is_refused() -> None:
    entry = checklist.Entry("X-1", "invented", "s", "r", "f.json", 1)
    proof = [{"citation": "s", "differs": [{"reason": "missing-locator", "what": "w"}]}]
    checklist.ChecklistItem(entry, "citation-defect", ["missing-locator"], proof, [])
    for reasons, evidence in (([], []), (["missing-locator"], []), (["missing-locator", "repealed"], proof)):
        with pytest.raises(ValueError, match="has no evidence"):
            checklist.ChecklistItem(entry, "citation-defect", reasons, evidence, [])


def test_only_a_text_that_is_complete_shows_that_a_section_does_not_exist(tmp_path: Path, texts: Path) -> None:
    text_of(texts, "us-cfr-50-999", "50 CFR Part 999", PART, extent="complete")
    (item,) = audited(tmp_path, texts, ("50 CFR §999.9", "Answer"))
    assert (item.outcome, item.reasons) == ("citation-defect", ["wrong-locator"])
    assert item.evidence[0]["text"] == "us-cfr-50-999.txt"


def test_an_amended_article_shows_no_misstatement(tmp_path: Path, texts: Path) -> None:
    wrong = ("NĐ 98/2031, Article 2", "Keep at least 10 years")
    amending = {"Điều 7 (sửa đổi Điều 2 Nghị định 98/2031/NĐ-CP)": "Cơ quan lưu hồ sơ lâu hơn."}
    text_of(texts, "vn-decree-99-2031-nd-cp", "99/2031/NĐ-CP", amending)
    (item,) = audited(tmp_path, texts, wrong)
    assert (item.outcome, item.reasons) == ("not-assessed", ["text-not-held"])


def test_a_copy_older_than_the_last_amendment_shows_no_misstatement(
    tmp_path: Path, texts: Path, package_copy: Path
) -> None:
    number = Sheet(package_copy, "sources")
    row = number.set("us-tx-ins-542", amended="2026-06-01")
    number.save(row)
    sections = {"§ 542.056": "The office answers within 15 business days."}
    for day, outcome in (("2026-05-31", "not-assessed"), ("2026-06-01", "misstates-current-rule")):
        text_of(texts, "us-tx-ins-542", "Tex. Ins. Code § 542.056", sections, **{"as-of": day})
        (item,) = audited(tmp_path, texts, ("Tex. Ins. Code § 542.056", "Answer within 9 days"), package=package_copy)
        assert item.outcome == outcome


CLOSING = "1. Nghị định này có hiệu lực thi hành từ ngày 01 tháng 01 năm {year}.\n\n2. {clause}"


@pytest.mark.parametrize(
    ("year", "clause", "repealed"),
    [
        (2026, "Nghị định số 98/2031/NĐ-CP về gì đó hết hiệu lực kể từ ngày Nghị định này có hiệu lực.", True),
        (2026, "Nghị định này thay thế Nghị định số 98/2031/NĐ-CP.", True),
        (2026, "Nghị định số 98/2031/NĐ-CP hết hiệu lực từ ngày 01 tháng 12 năm 2026.", False),
        (2027, "Nghị định số 98/2031/NĐ-CP hết hiệu lực kể từ ngày Nghị định này có hiệu lực thi hành.", False),
        (2026, "Điều 4 Nghị định số 98/2031/NĐ-CP hết hiệu lực kể từ ngày Nghị định này có hiệu lực thi hành.", False),
        (2026, "Nghị định số 98/2031/NĐ-CP hết hiệu lực, trừ Điều 2.", False),
        (2026, "Nghị định số 98/2031/NĐ-CP tiếp tục có hiệu lực cho đến khi hết hiệu lực.", False),
    ],
)  # fmt: skip
def test_a_held_text_says_what_it_ends(tmp_path: Path, texts: Path, year: int, clause: str, repealed: bool) -> None:
    closing = {"Điều 9": CLOSING.format(year=year, clause=clause)}
    text_of(texts, "vn-decree-99-2031-nd-cp", "99/2031/NĐ-CP", closing)
    (item,) = audited(tmp_path, texts, ("NĐ 98/2031, Article 2", "Keep at least 5 years"))
    assert item.reasons == (["repealed"] if repealed else ["not-read"])
    if repealed:
        (differs,) = item.evidence[0]["differs"]
        assert item.outcome == "citation-defect"
        assert (differs["text"], differs["section"]) == ("vn-decree-99-2031-nd-cp.txt", "Điều 9")
        assert re.fullmatch("[0-9a-f]{64}", differs["text_hash"])


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"status": "repealed"}, "repealed"),
        ({"ends": "2026-11-29"}, "repealed"),
        ({"ends": "2026-11-30"}, None),
        ({"effective": "2026-12-01"}, "not-yet-effective"),
        ({"superseded_by": "us-tx-ins-4201-156"}, "superseded"),
    ],
)
def test_the_sources_of_the_package_say_what_is_out_of_force(
    tmp_path: Path, texts: Path, package_copy: Path, cells: dict[str, str], reason: str | None
) -> None:
    sheet = Sheet(package_copy, "sources")
    _, line = sheet.save(sheet.set("us-tx-ins-542", **cells))
    (item,) = audited(tmp_path, texts, ("Tex. Ins. Code § 542.056", "Answer"), package=package_copy)
    if reason is None:
        assert (item.outcome, item.reasons) == ("not-assessed", ["text-not-held"])
    else:
        (differs,) = item.evidence[0]["differs"]
        assert (item.outcome, differs["reason"]) == ("citation-defect", reason)
        assert differs["place"] == f"instruments/sources.csv:{line}"


def test_what_a_later_text_keeps_alive_is_not_called_dead(tmp_path: Path, texts: Path) -> None:
    """73/2016 is repealed by sources.csv, and some of its articles live on: which, is for a reader to say."""
    rows = {r.key: r for r in own().table("sources")}
    assert rows["vn-decree-73-2016-nd-cp"]["status"] == "repealed"
    (item,) = audited(tmp_path, texts, ("73/2016/NĐ-CP, Article 63", "Answer"))
    assert (item.outcome, item.reasons) == ("not-assessed", ["text-not-held"])


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("at or above VND 150M or VND 400,000,000", [(150_000_000, "VND"), (400_000_000, "VND")]),
        ("over $500M, $10,000 and $2.5 million", [(500_000_000, "USD"), (10_000, "USD"), (2_500_000, "USD")]),
        ("91-180d past due", [(91, "day"), (180, "day")]),
        ("within 48 hours", [(48, "hour")]),
        ("trong thời hạn ba mươi ngày", [(30, "day")]),
        ("Model #900 §4.D and Group 3", []),
        ("a 21-calendar-day period", [(21, "day")]),
    ],
)
def test_quantities_as_people_write_them(statement: str, found: list[tuple[int, str]]) -> None:
    assert [(int(q.value), q.unit) for q in checklist.statement_quantities(statement)] == found


# Input and output


GOOD: dict[str, Any] = {"industry": "x", "requirements": [{"id": "A", "source": "s", "requirement": "r"}]}


def without(key: str) -> dict[str, Any]:
    return {"industry": "x", "requirements": [{k: v for k, v in GOOD["requirements"][0].items() if k != key}]}


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b"{", "not JSON", 1),
        (b'{"industry": "x",\n "requirements": [}', "not JSON", 2),
        (b"\xff\xfe{}", "UTF-8", 1),
        (b"", "not JSON", 1),
        (b"[]", "no object", 1),
        (b"null", "no object", 1),
        (b'{"requirements": []}', "no industry", 1),
        (b'{"industry": "x"}', "no requirements", 1),
        (b'{"industry": "x",\n"requirements": []}', "no requirements", 2),
        (b'{"industry": "x", "requirements": {"a": 1}}', "no requirements", 1),
        (b'{"industry": "x",\n"requirements": [\n"a"]}', "no object", 3),
        (json.dumps(without("id")).encode(), "without id", 1),
        (json.dumps(without("source"), indent=0).encode(), "without source", 4),
        (json.dumps(without("requirement")).encode(), "without requirement", 1),
        (b'{"industry": "x", "requirements": [\n{"id": 7, "source": "s", "requirement": "r"}]}', "without id", 2),
        (b'{"industry": "x", "requirements": [{"id": "A", "id": "B"}]}', "twice", 1),
        (json.dumps({"industry": "x", "requirements": [GOOD["requirements"][0] | {"source": "s" * 1001}]}).encode(),
         "more than 1,000 characters", 1),
        (json.dumps({"industry": "x", "requirements": GOOD["requirements"] * 2}, indent=0).encode(), "already", 9),
    ],
)  # fmt: skip
def test_unusable_checklists(tmp_path: Path, content: bytes, message: str, line: int) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        checklist.read_checklist(tmp_path)
    assert caught.value.code == "U135"
    assert caught.value.mend
    assert re.search(rf"a\.json:{line}(:|$)", caught.value.place), caught.value.place


def test_folders_without_a_checklist(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "empty").mkdir()
    for folder, message in (
        (tmp_path / "nothing", "no folder"),
        (tmp_path / "empty", "no JSON"),
        (tmp_path, "cannot be"),
    ):
        with pytest.raises(InputError, match=message):
            checklist.read_checklist(folder)


def test_an_id_of_two_files_is_told_with_both(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        listed(tmp_path, ("s", "r"), name=name)
    with pytest.raises(InputError, match=r"a\.json:[0-9]+ already") as caught:
        checklist.read_checklist(tmp_path)
    assert "b.json" in caught.value.place


KEYS = st.sampled_from(["industry", "requirements", "id", "source", "requirement"])
JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@given(JSON)
def test_no_json_gives_a_traceback(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    folder = tmp_path_factory.mktemp("json")
    (folder / "a.json").write_text(json.dumps(value), encoding="utf-8")
    try:
        entries = checklist.read_checklist(folder)
    except InputError as error:
        assert error.code == "U135"
    else:
        assert [e.id for e in entries] == [r["id"] for r in value["requirements"]]


def command(*words: object) -> Any:
    from regatta_tools.cli.audit import audit

    return CliRunner().invoke(audit, [str(w) for w in words])


def test_the_command(tmp_path: Path, texts: Path) -> None:
    clean = listed(tmp_path / "clean", ("50 CFR §999.1", "Answer within 15 business days"))
    wrong = listed(tmp_path / "wrong", ("50 CFR §999.1", "Answer within 15 days"), ("Model Act", "Answer"))
    assert command("--checklist", clean, "--texts", texts).exit_code == 0
    result = command("--checklist", wrong, "--texts", texts, "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["summary"] == dict(Counter(i["outcome"] for i in report["items"])) | {
        k: 0 for k in report["summary"] if k not in {i["outcome"] for i in report["items"]}
    }
    assert sum(report["summary"].values()) == 2
    assert report["published"] is None
    keys = {"requirement", "cell", "outcome", "reasons", "readings", "evidence"}
    assert all(keys <= set(item) and item["readings"] == [] for item in report["items"])
    text = command("--checklist", wrong, "--texts", texts).stdout
    assert "wrong-day-count: the requirement says 15 day, the passage 15 day (business)" in text
    assert "published" not in command("--checklist", wrong, "--texts", texts, "--format", "table").stdout
    out = tmp_path / "out.json"
    assert command("--checklist", wrong, "--texts", texts, "--format", "json", "--output", out).exit_code == 1
    assert json.loads(out.read_text(encoding="utf-8")) == report


def test_usage_of_the_command(tmp_path: Path, texts: Path) -> None:
    folder = listed(tmp_path / "list", ("50 CFR §999.1", "Answer"))
    for words in (("--cell", "x"), ("--requirement", "x"), ("--within-days", "3"), ("--format", "sarif")):
        assert command("--checklist", folder, "--texts", texts, *words).exit_code == 2


# The predecessor's checklist


@pytest.fixture(scope="module")
def report(shared: Path) -> checklist.ChecklistReport:
    return checklist.run_checklist(shared / "archive/regulatory_checklists", texts=shared / "legal/texts")


def test_all_items_of_the_predecessor_have_one_outcome_with_evidence(report: checklist.ChecklistReport) -> None:
    assert len(report.items) == 125
    assert sum(report.summary.values()) == 125
    assert sum(report.not_assessed.values()) == report.summary["not-assessed"]
    assert report.summary["verified-clean"] == 0, "no machine calls an item clean"
    assert report.published == checklist.PUBLISHED
    for item in report.items:
        differs = [d for e in item.evidence for d in e.get("differs", ())]
        assert bool(differs) == (item.outcome != "not-assessed"), item.entry.id
        if item.outcome == "misstates-current-rule" or "wrong-locator" in item.reasons:
            (shown,) = [e for e in item.evidence if "differs" in e]
            assert {"text", "text_hash", "locator", "passage_hash"} <= set(shown)


def test_an_independent_recount(shared: Path, report: checklist.ChecklistReport) -> None:
    """Counted again from the sources alone, by marks that this test looks for itself."""
    law_marks = re.compile(r"\b[0-9]+ (?:USC|CFR)\b|[0-9]+/20[0-9]{2}|\bLuật\b|Regulation [A-Z]\b")
    other_names = re.compile(r"Sarbanes|Executive Order|Conditions of Participation$|Severity Index|Regulation V")
    place = re.compile(r"(?:USC|CFR|Regulation B) §[0-9]+[a-z]*[.(-]|USC §[0-9]|Article [0-9]+(?!-)")
    expected: dict[str, set[str]] = {"not-binding": set(), "no-place": set(), "unknown": set()}
    for path in sorted((shared / "archive/regulatory_checklists").glob("*.json")):
        for item in json.loads(path.read_text(encoding="utf-8"))["requirements"]:
            source = item["source"]
            if other_names.search(source) and not place.search(source):
                expected["unknown"].add(item["id"])
            elif not law_marks.search(source):
                expected["not-binding"].add(item["id"])
            elif not place.search(source):
                expected["no-place"].add(item["id"])
    repealed = {i.entry.id for i in report.items if "13/2023" in i.entry.source}
    found = {o: {i.entry.id for i in report.items if i.outcome == o} for o in report.summary}
    assert found["non-binding-source-only"] == expected["not-binding"]
    assert {i.entry.id for i in report.items if i.reasons[0] == "citation-not-understood"} == expected["unknown"]
    assert {i.entry.id for i in report.items if i.reasons == ["missing-locator"]} == expected["no-place"] - repealed
    assert {i.entry.id for i in report.items if i.reasons == ["repealed"]} == repealed
    others = found["citation-defect"] - repealed - expected["no-place"]
    assert others == {i.entry.id for i in report.items if i.reasons == ["wrong-locator"]}


#: Items whose outcome was seen by reading the held texts, and why it is right.
READ = {
    "FT-05": ("citation-defect", "wrong-locator", "(b) tells to identify owners; the quarter stands in (d)(1)"),
    "FT-17": ("not-assessed", "not-read", "§ 1005.11(c)(1) has the ten business days"),
    "FT-20": ("not-assessed", "not-read", "12 U.S.C. 5531 is held whole, and the item has no number"),
    "FT-01": ("not-assessed", "text-not-held", "§ 1010.311 has the sum; 31 U.S.C. 5313 is not held"),
    "FT-14": ("not-assessed", "citation-not-understood", "an act by name that no source of ours supports"),
    "HC-03": ("not-assessed", "not-read", "§ 164.524(b)(2)(i) has the 30 days"),
    "HC-05": ("not-assessed", "not-read", "§ 164.404(b) has the 60 calendar days"),
    "HC-18": ("not-assessed", "not-read", "§ 164.530(j)(2) has the six years"),
    "HC-19": ("citation-defect", "missing-locator", "all of 42 CFR Part 482"),
    "IN-04": ("non-binding-source-only", "model-law-as-law", "a model act"),
    "BV-22": ("citation-defect", "repealed", "Điều 42 of 356/2025/NĐ-CP ends 13/2023/NĐ-CP on 2026-01-01"),
    "IV-18": ("citation-defect", "repealed", "the same"),
    "BV-25": (
        "not-assessed",
        "not-read",
        "Điều 135 limits credit and says nothing of boards: words, which readers see",
    ),
    "IV-06": ("not-assessed", "text-not-held", "Điều 26 is not held; the 21 days stand in Điều 35"),
    "IV-11": ("citation-defect", "missing-locator", "a chapter and a whole circular; the sums stand in Điều 6"),
    "IV-23": ("citation-defect", "missing-locator", "two circulars as a whole"),
}


@pytest.mark.parametrize("key", READ)
def test_items_whose_texts_were_read(report: checklist.ChecklistReport, key: str) -> None:
    item = next(i for i in report.items if i.entry.id == key)
    outcome, reason, why = READ[key]
    assert (item.outcome, item.reasons[0]) == (outcome, reason), why


def test_where_the_numbers_of_unheld_places_stand(report: checklist.ChecklistReport) -> None:
    stands = {i.entry.id: [e.get("stands_in", {}) for e in i.evidence] for i in report.items}
    assert stands["IV-06"] == [{"21 day (calendar)": ["vn-law-08-2022-qh15.txt: Điều 35"]}]
    assert stands["FT-05"] == [{"25 percent": ["us-cfr-31-1010.txt: § 1010.230(a)-(d) at (d)(1)"]}]
    assert stands["IV-11"][0]["150,000,000 VND"] == ["vn-decree-67-2023-nd-cp.txt: Điều 6 at (1)"]


def test_the_page_shows_the_table_of_this_checklist(report: checklist.ChecklistReport) -> None:
    from regatta_tools.report.checklist import as_table

    page = (ROOT / "docs/audit-checklist.md").read_text(encoding="utf-8")
    table = "\n".join(line.rstrip() for line in as_table(report).splitlines())
    assert table in page
    law = [i for i in report.items if any(e["names"] == "law" for e in i.evidence)]
    held = [i for i in law if any("passage_hash" in e for e in i.evidence)]
    numbers = sum(bool(checklist.statement_quantities(i.entry.statement)) for i in held)
    assert f"{len(law)} of the items name law; of {len(held)} a passage is held, and {numbers} of these" in page
    for reason, count in Counter(i.reasons[0] for i in report.items).items():
        row = next(line for line in page.splitlines() if line.startswith("|") and f"`{reason}`" in line)
        assert re.search(rf"\| {count}\b", row) or len(re.findall(r"[A-Z]{2}-[0-9]{2}", row)) == count, reason
    for item in report.items:
        if item.reasons[0] in ("not-read", "citation-not-understood", "repealed", "wrong-locator"):
            assert item.entry.id in page, "the page lists these items"
