"""Passages: what a locator cuts out of a held text, and the one form in which it is hashed."""

from __future__ import annotations

import re
import unicodedata

import pytest
import test_law_texts as independent
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from regatta_tools.provenance.corpus import parse_text
from regatta_tools.provenance.locators import targets_of
from regatta_tools.provenance.passages import (
    Target,
    find_passage,
    find_passages,
    heading_paths,
    normalise,
    passage_hash,
    us_tree,
    vn_tree,
)
from regatta_tools.tables.package import read

# A rule of our own, with what real ones do to a reader: a title in the line of the first paragraph, letters after
# Roman numerals, a reference to another paragraph, a list of definitions that counts anew.
US = """source-id: us-cfr-99-1
title: Rule on boats
number: 99 CFR Part 1
as-of: 2026-01-02

## § 1.5

§ 1.5 Boats.

(a) General. (1) A keeper must tell the owner within 5 days.

(2) Paragraph (a)(1) of this section does not bind a ferry.

(b) Words. In this section:

(1) Boat means:

(i) a hull of 3 metres; or

(ii) a raft.

(1) Keeper means whoever keeps 2 boats.

(c)(1) (i) A ferry must land

(A) at dawn, and

(B) at dusk.

(ii) It may wait 7 days.

(2)

(i) At night it stays.

(h) Light. It shows 1 light.

(i) Sound. It gives 2 signals.

(j) Rest.

> [99 FR 1, Jan. 1, 2026]

## § 1.50

(a) Another section, 9 days.

## § 1.6(b)(2)-(3)

(2) Second, 20 days.

(3) Third, 30 days.
"""
VN = """source-id: vn-decree-1
title: Nghị định về thuyền
number: 01/2026/NĐ-CP
as-of: 2026-03

## Điều 5

Điều 5. Thời hạn

(Điều 5 Nghị định số 01/2026/NĐ-CP, có hiệu lực thi hành kể từ ngày 01/07/2026)

1. Chủ thuyền báo trong 03 ngày làm việc:

a) khi thuyền chìm;

d) khi thuyền mất;

đ) khi thuyền cháy.

2. Không quá 13% số thuyền được nghỉ.

10. Thuyền nhỏ được miễn.

## Điều 51

1. Điều khác.

## Điều 7 khoản 2 (amended by Điều 1 Nghị định 02/2026/NĐ-CP)

“2. Thuyền đỗ tối đa 30 ngày.”

3. Sửa đổi, bổ sung khoản 4 như sau:

“4. Thuyền được đỗ thêm 10 ngày.”

## Điều 16 (sửa đổi Điều 51 khoản 3)

Bãi bỏ khoản 3.
"""


def held(text: str):
    name = re.match("source-id: (.*)", text).group(1)
    return parse_text(text, f"{name}.txt", "0" * 64, [])


def words(text: str, target: Target, country: str) -> str:
    passage, why = find_passage(held(text), target, country)
    assert passage is not None, why
    return passage.normal


@pytest.mark.parametrize(
    ("target", "has", "lacks"),
    [
        (Target("1.5", ("a", "1")), "(a) General. (1) A keeper must tell the owner within 5 days.", "ferry"),
        (Target("1.5", ("a", "2")), "does not bind a ferry", "5 days"),
        (Target("1.5", ("a",)), "within 5 days", "3 metres"),
        (Target("1.5", ("c", "1", "i")), "A ferry must land (A) at dawn, and (B) at dusk.", "7 days"),
        (Target("1.5", ("c", "1", "i", "B")), "A ferry must land (B) at dusk.", "at dawn"),
        (Target("1.5", ("c", "1", "i"), "ii"), "It may wait 7 days", "At night"),
        (Target("1.5", ("c", "2", "i")), "At night it stays", "7 days"),
        (Target("1.5", ("i",)), "2 signals", "1 light"),
        (Target("1.5", ("h",), "i"), "1 light. (i) Sound. It gives 2 signals", "Rest"),
        (Target("1.5", ("j",)), "Rest", "99 FR 1"),
        (Target("1.6", ("b", "2")), "20 days", "30 days"),
        (Target("1.6", ("b", "2"), "3"), "30 days", "9 days"),
        (Target("1.5"), "2 signals", "9 days"),
    ],
)
def test_a_us_passage_is_the_paragraph_with_the_words_that_lead_to_it(target, has, lacks):
    found = words(US, target, "US")
    assert has in found
    assert lacks not in found


@pytest.mark.parametrize(
    ("target", "has", "lacks"),
    [
        (Target("Điều 5", ("1", "đ")), "trong 03 ngày làm việc: đ) khi thuyền cháy", "chìm"),
        (Target("Điều 5", ("1", "a"), "đ"), "khi thuyền mất", "13%"),
        (Target("Điều 5", ("2",)), "Không quá 13%", "ngày làm việc"),
        (Target("Điều 5", ("10",)), "được miễn", "13%"),
        (Target("Điều 7", ("2",)), "tối đa 30 ngày", "10 ngày"),
        (Target("Điều 7", ("4",)), "10 ngày", "30 ngày"),
    ],
)
def test_a_vietnamese_passage_is_the_clause_with_the_words_that_lead_to_it(target, has, lacks):
    found = words(VN, target, "VN")
    assert has in found
    assert lacks not in found
    assert "01/07/2026" not in found, "the codification's own line is no law"


@pytest.mark.parametrize("sign", ["(1)|(2)", "“1.|“2.", "1.|2."])
def test_the_sign_before_a_label_belongs_to_its_own_clause(sign):
    one, two = sign.split("|")
    body = f"Điều 9. Neo\n\n{one} Thuyền phải neo.\n\n{two} Thuyền được rời bến."
    text = f"source-id: vn-neo\ntitle: Neo\nnumber: 9/2026/ND\nas-of: 2026-01-02\n\n## Điều 9\n\n{body}\n"
    for label, own in (("1", f"{one} Thuyền phải neo."), ("2", f"{two} Thuyền được rời bến.")):
        assert words(text, Target("Điều 9", (label,)), "VN") == normalise(f"Điều 9. Neo {own}")


@pytest.mark.parametrize(
    ("text", "country", "target", "why"),
    [
        (US, "US", Target("1.5", ("a", "3")), "has no 1.5(a)(3)"),
        (US, "US", Target("1.5", ("b", "1")), "more than one 1.5(b)(1)"),
        (US, "US", Target("1.5", ("c", "1"), "9"), "has no 1.5(c)(1)-(9)"),
        (US, "US", Target("1.7"), "has no section 1.7"),
        (US, "US", Target("1.6", ("a",)), "has no 1.6(a)"),
        (VN, "VN", Target("Điều 5", ("3",)), "has no Điều 5(3)"),
        (VN, "VN", Target("Điều 1"), "has no section Điều 1"),
    ],
)
def test_what_is_not_there_is_said_and_never_replaced_by_what_is_near(text, country, target, why):
    passage, reason = find_passage(held(text), target, country)
    assert passage is None
    assert why in reason


def test_section_5_is_not_section_50_and_an_amending_article_is_not_the_amended_one():
    assert heading_paths("§ 1.50", "1.5", "US") is None
    assert heading_paths("§ 1005.10", "1005.1", "US") is None
    assert heading_paths("§ 240.10b-5", "240.10b", "US") is None
    assert heading_paths("Điều 51", "Điều 5", "VN") is None
    assert heading_paths("Điều 16 (sửa đổi Điều 51 khoản 3)", "Điều 51", "VN") is None
    assert heading_paths("Điều 17 khoản 1 điểm e, điểm i, khoản 2", "Điều 17", "VN") == [("1", "e"), ("1", "i"), ("2",)]


def test_all_places_of_a_citation_or_none():
    text = held(US)
    both, _ = find_passages(text, [Target("1.5", ("i",)), Target("1.50", ("a",))], "US")
    assert "2 signals" in both.normal and "9 days" in both.normal
    assert find_passages(text, [Target("1.5", ("i",)), Target("1.99")], "US")[0] is None


# The form that is hashed


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.lists(st.sampled_from(["Điều", "một", "“ngày”", "15", "–", "phải", "a"]), min_size=1), st.data())
def test_wrapping_form_and_typography_do_not_change_the_hash(parts, data):
    spaces = st.sampled_from([" ", "\n", "  ", "\r\n", "\u00a0", "\t"])
    other = parts[0] + "".join(data.draw(spaces) + p for p in parts[1:])
    other = unicodedata.normalize("NFD", other).replace("“", '"').replace("”", '"').replace("–", "-")
    assert passage_hash(other) == passage_hash(" ".join(parts))


@given(st.text(alphabet="abc 15đ", min_size=1), st.text(alphabet="abc 15đ", min_size=1))
def test_other_words_have_another_hash(one, two):
    assert (passage_hash(one) == passage_hash(two)) == (normalise(one) == normalise(two))


@given(st.text(alphabet="(abi1AvIx2)\n .—-", max_size=200))
def test_any_text_has_a_tree_whose_nodes_lie_inside_each_other(body):
    for tree in (us_tree(body), vn_tree(body)):
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            ends = node.start
            for child in node.children:
                assert ends <= child.start <= child.end <= node.end
                ends = child.end
            waiting += node.children


# The real package against the real texts


def test_every_citation_of_the_package_leads_to_its_passage(corpus):
    package = read(ROOT)
    sources = {r.key: r for r in package.table("sources")}
    lost = []
    for citation in package.table("citations"):
        jurisdiction = sources[citation["source"]]["jurisdiction"]
        targets, why = targets_of(citation["locator"], jurisdiction)
        text = corpus.latest(citation["source"])
        passage = None
        if targets and text is not None:
            passage, why = find_passages(text, targets, jurisdiction.split("-")[0])
        if passage is None or not passage.normal:
            lost.append(f"{citation.key}: {why}")
    assert not lost


def test_no_passage_has_words_that_an_independent_reader_does_not_find_at_the_same_locator(corpus):
    """test_law_texts.py cuts passages by code of its own, more coarsely: ours may be narrower, never wider."""
    package = read(ROOT)
    # There the independent reader loses an inner list, or takes a Roman (i) of the definitions for the letter (i).
    known = {"healthcare-us-r20-c4", "healthcare-us-r13-c7"}
    wider, compared = [], 0
    for citation in package.table("citations"):
        if not citation["cell"].endswith("-us") or citation.key in known:
            continue
        targets, _ = targets_of(citation["locator"], "US")
        ours, _ = find_passages(corpus.latest(citation["source"]), targets, "US")
        theirs = independent.passage(independent.held(citation["source"]), citation["locator"])
        compared += 1
        more = set(re.findall(r"\w{3,}", ours.normal)) - set(re.findall(r"\w{3,}", normalise(theirs)))
        if more:
            wider.append((citation.key, sorted(more)[:5]))
    assert compared > 200
    assert not wider
