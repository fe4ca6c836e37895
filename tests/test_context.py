"""Ontology context: what it holds, that it tells no answers, that a hold-out is whole, that receipts are true."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import ROOT, one_cell, redescribe
from hypothesis import given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.cli.context import context as command
from regatta_tools.errors import InputError
from regatta_tools.generation import leak, prompts, strategies, tokens
from regatta_tools.generation.context import (
    Context,
    context_of,
    drawing_order,
    hold_out,
    record_texts,
    traces,
    without,
)
from regatta_tools.generation.run import prompt_for
from regatta_tools.generation.strategies import STRATEGIES, build
from regatta_tools.graph import query
from regatta_tools.report import generation as page
from regatta_tools.tables.package import Package, read, table_specs

CELLS = sorted(path.name for path in (ROOT / "instruments").iterdir() if path.is_dir())
VIETNAMESE = [cell for cell in CELLS if cell.endswith("-vn")]
ITEM_TABLES = ("roles", "rules", "concepts", "decisions", "handoffs")
BUDGETS = (None, 5000, 2600, 1500)


@lru_cache(maxsize=1)
def package() -> Package:
    return read(ROOT)


@lru_cache(maxsize=32)
def context(cell: str, language: str | None = None) -> Context:
    return context_of(package(), cell, language)


def of_file(cell: str, table: str) -> list[dict[str, str]]:
    with (ROOT / "instruments" / cell / "context" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def spoilt(root: Path, cell: str, table: str, row: int, **cells: str) -> Package:
    """One real cell as a package with a changed row of its context."""
    one_cell(root, cell)
    path = root / "instruments" / cell / "context" / f"{table}.csv"
    rows = of_file(cell, table)
    rows[row].update(cells)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    redescribe(root)
    return read(root)


# What the context holds


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_has_a_context_of_useful_breadth(cell: str):
    sizes = {table: len(of_file(cell, table)) for table in ITEM_TABLES}
    assert 6 <= sizes["roles"] <= 10 and 12 <= sizes["rules"] <= 20 and 10 <= sizes["concepts"] <= 14, sizes
    assert sizes["decisions"] >= 6 and 6 <= sizes["handoffs"] <= 8, sizes
    law = [r for r in of_file(cell, "rules") if r["source"]]
    assert 0 < len(law) < sizes["rules"], "law and practice"
    touched = {h[k] for h in of_file(cell, "handoffs") for k in ("from_role", "to_role")}
    touched |= {d["role"] for d in of_file(cell, "decisions")} | {m["role"] for m in of_file(cell, "role_metrics")}
    touched |= {r["role"] for r in of_file(cell, "rules")} | {r["escalates_to"] for r in of_file(cell, "roles")}
    buyers = {f"{cell}-role-{name}" for name in ("customer", "patient", "policyholder")}
    assert {r["id"] for r in of_file(cell, "roles")} - touched <= buyers, "every role at work has a link"


@pytest.mark.parametrize("cell", CELLS)
def test_every_item_is_dated_and_in_every_language_of_its_cell(cell: str):
    for table in ITEM_TABLES:
        spec = table_specs()[table]
        pairs = [c.removesuffix("_en") for c in spec.columns if c.endswith("_en")]
        for row in of_file(cell, table):
            assert date.fromisoformat(row["written"]) <= date.fromisoformat("2026-12-31"), row["id"]
            for stem in pairs:
                assert bool(row[f"{stem}_vi"]) == bool(row[f"{stem}_en"] and cell in VIETNAMESE), (row["id"], stem)
            if table == "concepts" and row["formula_en"]:
                assert row["unit"] and row["healthy_range_en"], row["id"]


@pytest.mark.parametrize("cell", CELLS)
def test_rules_of_law_rest_on_sources_in_force_that_the_cell_cites(cell: str):
    sources = {s.key: s for s in package().table("sources")}
    cited = {c["source"] for c in package().cell_records("citations", cell)}
    for rule in of_file(cell, "rules"):
        assert bool(rule["source"]) == bool(rule["locator"]), rule["id"]
        if rule["source"]:
            source = sources[rule["source"]]
            assert rule["source"] in cited and source["binding"] == "true", rule["id"]
            assert source["status"] in ("in-force", "partly-in-force"), rule["id"]


@pytest.mark.shared
@pytest.mark.parametrize("cell", CELLS)
def test_locators_of_rules_lead_to_passages_of_the_held_texts(cell: str, shared: Path):
    for rule in (r for r in of_file(cell, "rules") if r["source"]):
        text = (shared / "legal" / "texts" / f"{rule['source']}.txt").read_text(encoding="utf-8")
        heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
        for locator in rule["locator"].split("; "):
            article, _, clause = locator.partition(" khoản ")
            found = [h for h in heads if re.match(re.escape(article) + r"(?!\w)", h)]
            assert any(not clause or f"khoản {clause}" in h or "khoản" not in h for h in found), (rule["id"], locator)


def test_no_text_is_that_of_the_predecessor(shared: Path):
    """The predecessor's context taught breadth; no run of six words of ours is one of its."""
    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", unicodedata.normalize("NFC", text).lower())
        return {tuple(words[i : i + 6]) for i in range(len(words) - 5)}

    folder = shared / "archive" / "ontology_context"
    if not folder.is_dir():
        pytest.skip("the archive is not there")
    theirs = set()
    for path in folder.glob("*.json"):
        theirs |= {r for text in _strings(json.loads(path.read_text(encoding="utf-8"))) for r in runs(text)}
    assert len(theirs) > 1000
    for cell in CELLS:
        for item in context(cell).items:
            for text in (*item.texts("en"), *item.texts("vi")):
                assert not runs(text) & theirs, (item.id, runs(text) & theirs)


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [s for v in value.values() for s in _strings(v)]
    return [s for v in value for s in _strings(v)] if isinstance(value, list) else [str(value)]


# Leak


@pytest.mark.parametrize("cell", CELLS)
def test_the_context_stays_below_every_threshold(cell: str):
    found = leak.overlap(package(), cell)
    assert found.beyond() == [], found
    assert found.items == sum(len(of_file(cell, table)) for table in ITEM_TABLES)


@pytest.mark.parametrize(("cell", "language"), [*((c, "en") for c in CELLS), *((c, "vi") for c in VIETNAMESE)])
def test_half_a_duty_planted_in_one_item_is_seen(tmp_path: Path, cell: str, language: str):
    duty = package().cell_records("requirements", cell)[4][f"duty_{language}"].split()
    planted = " ".join(duty[: len(duty) // 2])
    spoiled = spoilt(tmp_path, cell, "rules", 0, **{f"statement_{language}": planted})
    found = leak.overlap(spoiled, cell)
    assert "item" in found.beyond() and found.worst == of_file(cell, "rules")[0]["id"]


@pytest.mark.parametrize("cell", CELLS)
def test_legal_values_planted_in_an_item_are_seen(tmp_path: Path, cell: str):
    values = sorted(v for v in leak.legal_values(package(), cell) if v.endswith((" day", " percent", " month")))
    words = {"day": "days", "percent": "percent", "month": "months"}
    said = [f"{number} {words[unit]}" for number, unit in (v.split() for v in values)]
    assert len(values) > len(leak.legal_values(package(), cell)) * leak.THRESHOLDS["numbers"]
    spoiled = spoilt(tmp_path, cell, "handoffs", 0, time_limit_en="Within " + ", or ".join(said) + ".")
    found = leak.overlap(spoiled, cell)
    assert "numbers" in found.beyond()
    assert {value for _, value in found.numbers_found} >= set(values)


def test_the_share_of_words_is_what_it_says():
    """Counted in another way: each n-gram of each item is looked for in the judging texts as text."""
    cell = "fintech-us"
    judging = [re.findall(r"\w+", text.lower()) for text in leak.judging_texts(package(), cell, "en")]
    together = "|".join(f" {' '.join(words)} " for words in judging)
    shares, both, total = {}, 0, 0
    for table in ITEM_TABLES:
        for row in of_file(cell, table):
            grams = set()
            for column, text in row.items():
                words = re.findall(r"\w+", text.lower()) if column.endswith("_en") else []
                grams |= {f" {' '.join(words[i : i + 4])} " for i in range(len(words) - 3)}
            found = sum(gram in together for gram in grams)
            both, total = both + found, total + len(grams)
            shares[row["id"]] = found / len(grams)
    measured = leak.overlap(package(), cell)
    assert measured.item == pytest.approx(max(shares.values())) == pytest.approx(shares[measured.worst])
    assert measured.whole == pytest.approx(both / total)


# Hold-out


@pytest.mark.parametrize("cell", CELLS)
def test_no_trace_of_any_rule_is_left_when_it_is_held_out(cell: str):
    whole = context(cell)
    texts = list(record_texts(whole))
    for rule in whole.of_kind("rule"):
        assert traces(whole, [rule.id], texts), "the check sees the rule while it is there"
        left, held = without(whole, [rule.id])
        assert traces(whole, [rule.id], record_texts(left)) == []
        assert {i.id for i in left.items} | set(held.removed) == {i.id for i in whole.items}
        assert not {i.id for i in left.items} & set(held.removed)
        leaning = {row["id"] for t in ITEM_TABLES for row in of_file(cell, t) if row.get("leans_on") == rule.id}
        assert leaning | {rule.id} <= set(held.removed)
        assert len(held.removed) < 8, "and not half of the context"


@pytest.mark.parametrize("cell", CELLS)
@given(data=st.data())
@settings(max_examples=4)
def test_prompts_tell_nothing_of_rules_that_were_held_out(cell: str, data: st.DataObject):
    whole = context(cell)
    count = data.draw(st.integers(1, len(whole.of_kind("rule"))))
    left, held = hold_out(whole, count, data.draw(st.text("abc0", max_size=3)))
    assert len(held.rules) == count == len(set(held.rules))
    for strategy in STRATEGIES:
        done = build(left, strategy, 60, held=held, whole=whole)
        assert traces(whole, held.rules, [done.text]) == []
        said = {e.id: e.reason for e in done.receipt.left_out}
        assert {said[r] for r in held.rules} == {"held out"}
        assert all(said[name] == reason for name, reason in held.removed.items())


def test_an_item_that_only_mentions_a_rule_goes_with_it(tmp_path: Path):
    rule = of_file("fintech-us", "rules")[3]
    text = f"Asks whether {rule['name_en'].upper()} plays a part."
    spoiled = context_of(spoilt(tmp_path, "fintech-us", "decisions", 6, pattern_en=text, leans_on=""), "fintech-us")
    planted = of_file("fintech-us", "decisions")[6]["id"]
    assert any(planted in t for t in record_texts(spoiled))
    left, held = without(spoiled, [rule["id"]])
    assert held.removed[planted] == f"mentions {rule['id']}, which is held out" and planted not in left.by_id
    # Without looking at mentions, the reader of traces would have found it.
    kept = replace(spoiled, items=tuple(i for i in spoiled.items if i.id == planted))
    assert traces(spoiled, [rule["id"]], record_texts(kept))


def test_rules_are_drawn_by_a_hash_in_every_process_alike():
    names = [r["id"] for r in of_file("banking-vn", "rules")]
    for seed in ("0", "july", "Đợt 1"):
        by_hand = sorted(names, key=lambda n: hashlib.sha256(f"{seed}\0banking-vn\0{n}".encode()).digest())
        assert drawing_order(context("banking-vn"), seed) == by_hand
    assert drawing_order(context("banking-vn"), "0") != drawing_order(context("banking-vn"), "1")
    code = (
        "from regatta_tools.generation.context import *\nfrom regatta_tools.tables.package import read\n"
        "print(drawing_order(context_of(read('.'), 'banking-vn'), '0'))"
    )
    for hashing in ("1", "2"):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONHASHSEED": hashing, "PATH": ""},
                              capture_output=True, encoding="utf-8", check=True)  # fmt: skip
        assert done.stdout.strip() == str(drawing_order(context("banking-vn"), "0"))


# Receipts


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("cell", CELLS)
def test_every_item_is_accounted_for_and_none_is_cut(cell: str, budget: int | None):
    everything = Counter(row["id"] for table in ITEM_TABLES for row in of_file(cell, table))
    for strategy in STRATEGIES:
        if strategy == "S2" and budget == 1500 and cell in VIETNAMESE:
            continue  # the situations alone are long in Vietnamese
        done = build(context(cell), strategy, 10, budget=budget)
        told, left = done.receipt.included, done.receipt.left_out
        assert Counter(e.id for e in (*told, *left)) == everything
        assert all(e.tokens for e in told)
        assert {e.reason.partition(":")[0] for e in left} <= {"strategy", "retrieval", "budget"}
        assert done.tokens == tokens.count(done.text) and (budget is None or done.tokens <= budget)
        assert "\\u" not in done.text and "{{" not in done.text and unicodedata.is_normalized("NFC", done.text)
        language = context(cell).language
        own = {"S2": ("name", "goals", "limits")}.get(strategy)
        for entry in told:
            item = context(cell).by_id[entry.id]
            wanted = [item.text(c, language) for c in own] if own else item.texts(language)
            if strategy == "S3" and item.kind == "handoff":
                wanted = [item.text(c, language) for c in ("trigger", "required_context", "time_limit")]
            # Prose writes the first letter of a name as a capital; every text stands in the prompt to its end.
            missing = [w for w in wanted if w.rstrip(".") not in done.text and w[1:].rstrip(".") not in done.text]
            assert not missing, (entry.id, missing)
        for entry in left:
            texts = [t for t in context(cell).by_id[entry.id].texts(language) if len(t) > 60]
            assert not [t for t in texts if t[:30] in done.text or t[-30:] in done.text], entry.id


@pytest.mark.parametrize("cell", CELLS)
def test_a_small_budget_cuts_off_no_layer_of_s4_and_leaves_no_loose_end(cell: str):
    done = build(context(cell), "S4", 10, budget=5000 if cell in VIETNAMESE else 2600)
    assert {e.kind for e in done.receipt.included} >= {"role", "rule", "metric", "decision", "handoff"}
    assert any(e.reason.startswith("budget: ") for e in done.receipt.left_out)
    names = {e.id for e in done.receipt.included}
    assert set(re.findall(r"\[([a-z0-9-]+)\]", done.text)) == names


@given(cell=st.sampled_from(CELLS), strategy=st.sampled_from(STRATEGIES), budget=st.integers(1, 9000))
@settings(max_examples=25)
def test_a_budget_is_kept_or_refused_with_the_least_that_would_do(cell: str, strategy: str, budget: int):
    try:
        done = build(context(cell), strategy, 5, budget=budget)
    except InputError as error:
        assert error.code == "U232"
        least = int(re.findall(r"\d+", error.mend)[-1])
        assert least > budget
        assert build(context(cell), strategy, 5, budget=least).tokens <= least
        with pytest.raises(InputError):
            build(context(cell), strategy, 5, budget=least - 1)
    else:
        assert done.tokens <= budget
        assert strategy == "S1" or done.receipt.included


@pytest.mark.parametrize("cell", VIETNAMESE)
def test_both_languages_tell_the_same_items(cell: str):
    for strategy in ("S2", "S4"):
        vi, en = (build(context(cell, language), strategy) for language in ("vi", "en"))
        assert [e.id for e in vi.receipt.included] == [e.id for e in en.receipt.included]
        assert [(c.kind, c.items) for c in vi.cases] == [(c.kind, c.items) for c in en.cases]
        assert "Viết bằng tiếng Việt" in vi.text and "Write in English" in en.text
    plain = build(context(cell, "en"), "S4").text
    assert sum(not w.isascii() for w in plain.split()) < 0.02 * len(plain.split())


# Strategies


@pytest.mark.parametrize("cell", CELLS)
def test_s1_names_the_industry_and_no_rule(cell: str):
    done = build(context(cell), "S1")
    assert done.receipt.included == () and done.cases == ()
    industry = context(cell).cell.record["domain"]
    assert prompts.words()[context(cell).language]["industries"][industry] in done.text
    sources = package().table("sources")
    names = [t for s in sources for t in (s["number"], s["title"], s["title_vi"]) if t]
    names += [t for i in context(cell).items for language in ("en", "vi") if (t := i.text("name", language))]
    assert not [n for n in names if n.lower() in done.text.lower()]
    law = r"Decree|Circular|\bAct\b|CFR|U\.S\.C|Regulation [A-Z]\b|Nghị định|Thông tư|\bLuật\b|\d{4}"
    assert not re.search(law, done.text)


@pytest.mark.parametrize("cell", ["fintech-us", "banking-vn"])
def test_s2_crosses_every_persona_with_every_situation(cell: str):
    roles = [i.text("name", context(cell).language) for i in context(cell).of_kind("role")]
    kinds = list(prompts.words()[context(cell).language]["situations"].values())
    done = build(context(cell), "S2", 10_000)
    lines = re.findall(r"^\d+\. (.+)$", done.text, re.MULTILINE)
    assert Counter(lines) == Counter(f"{role} / {kind}" for role in roles for kind in kinds)
    first = build(context(cell), "S2", 12).cases
    assert {c.items[0] for c in first} == {i.id for i in context(cell).of_kind("role")}
    assert len({c.line.partition(" / ")[2] for c in first}) >= 8


def test_s3_ranks_as_bm25_says():
    """An own BM25 (Lucene's form) and reciprocal rank fusion over the same passages give the same order."""
    cell = context("banking-vn")
    plan = strategies._Retrieval(cell, 5, 0)
    words = {i.id: re.findall(r"(?u)\b\w\w+\b", plan.render(i).lower()) for i in cell.items}
    mean = sum(map(len, words.values())) / len(words)
    fused: Counter[str] = Counter()
    for text in prompts.words()["vi"]["situations"].values():
        scores = dict.fromkeys(words, 0.0)
        for word in set(re.findall(r"(?u)\b\w\w+\b", text.lower())):
            having = sum(word in w for w in words.values())
            idf = math.log(1 + (len(words) - having + 0.5) / (having + 0.5))
            for name, doc in words.items():
                tf = doc.count(word)
                scores[name] += idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * len(doc) / mean))
        ranked = sorted((-round(s, 6), name) for name, s in scores.items() if s > 0)
        fused.update({name: 1 / (60 + rank) for rank, (_, name) in enumerate(ranked, start=1)})
    order = sorted(fused, key=lambda name: (-round(fused[name], 9), name))
    assert [i.id for i in plan.candidates] == order[: strategies.RETRIEVED]
    for cell_name in CELLS:
        text = build(context(cell_name), "S3").text
        assert f"{cell_name}-" not in text and not re.search(r"\[[a-z]", text.partition("{")[0])


@pytest.mark.parametrize("cell", CELLS)
def test_s4_asks_for_every_case_that_the_structure_holds(cell: str):
    cases = Counter((c.kind, c.items[0]) for c in build(context(cell), "S4", 10_000).cases)
    wanted = Counter()
    kinds = {"rule": ("rule-positive", "rule-negative"), "metric": ("computation",), "role": ("limit",),
             "decision": ("decision",), "handoff": ("handoff",)}  # fmt: skip
    for item in context(cell).items:
        wanted.update((kind, item.id) for kind in kinds.get(item.kind, ()))
    assert cases == wanted
    first = build(context(cell), "S4", 12)
    assert {c.kind for c in first.cases} == {kind for both in kinds.values() for kind in both}
    assert len(re.findall(r"^\d+\. \[", first.text, re.MULTILINE)) == 12
    later = build(context(cell), "S4", 12, start=12)
    assert not {c.line for c in first.cases} & {c.line for c in later.cases}
    round_again = build(context(cell), "S4", 12, start=sum(wanted.values()))
    assert round_again.cases == first.cases


def test_prompts_show_no_number_of_a_law_and_no_locator():
    for cell in CELLS:
        for strategy in STRATEGIES:
            text = build(context(cell), strategy).text
            assert not re.search(r"§|Điều \d|khoản \d", text)
            assert not [s["number"] for s in package().table("sources") if s["number"] in text]


def test_tokens_are_those_of_the_named_vocabulary_without_a_network(monkeypatch):
    import socket

    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("a socket was opened"))
    tokens._encoding.cache_clear()
    # Known counts of cl100k_base (openai/openai-cookbook, How to count tokens with tiktoken).
    assert tokens.count("antidisestablishmentarianism") == 6
    assert tokens.count("2 + 2 = 4") == 7
    assert tokens.count("お誕生日おめでとう") == 9
    assert tokens.count("") == 0 and tokens.count("<|endoftext|>") > 1


def test_the_hash_of_a_prompt_moves_with_templates_and_context(tmp_path: Path):
    plain = build(context("fintech-us"), "S4").receipt.hashes
    other = context_of(spoilt(tmp_path, "fintech-us", "roles", 0, name_en="somebody else"), "fintech-us")
    moved = build(other, "S4").receipt.hashes
    assert plain["prompts"] == moved["prompts"] and plain["context"] != moved["context"]
    assert plain["prompt"] != moved["prompt"]
    assert build(context("fintech-us"), "S1").receipt.hashes["prompt"] == build(other, "S1").receipt.hashes["prompt"]


# The command


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(command, list(words))
    if isinstance(done.exception, InputError):
        return done.exception.exit_code, "", str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_gives_the_exact_prompt_and_vietnamese_as_itself():
    words = ["--cell", "banking-vn", "--strategy", "S4", "--budget-tokens", "3000"]
    code, out, err = run(*words)
    expected = prompt_for("banking-vn", "S4", budget=3000, package=package())
    assert code == 0 and out == expected.text + "\n" and "left out, budget" in err
    code, out, _ = run(*words, "--format", "json")
    value = json.loads(out)
    assert code == 0 and value["prompt"] == expected.text and value["tokens"] == expected.tokens
    assert set(value["receipt"]) >= {"included", "left_out", "hashes", "tokenizer", "budget_tokens"}
    assert "\\u" not in out and "khách hàng" in out
    assert all(set(e) == {"id", "kind", "reason"} for e in value["receipt"]["left_out"])
    _, out, _ = run("--cell", "fintech-us", "--strategy", "S4", "--hold-out", "2", "--seed", "x", "--format", "json")
    assert len(json.loads(out)["receipt"]["hold_out"]["rules"]) == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--cell", "nowhere", "--strategy", "S4"], "U103"), (["--cell", "fintech-us", "--strategy", "s4"], "U234"),
        (["--cell", "fintech-us", "--strategy", "S4", "-n", "0"], "U235"),
        (["--cell", "fintech-us", "--strategy", "S4", "--language", "vi"], "U231"),
        (["--cell", "fintech-us", "--strategy", "S4", "--budget-tokens", "10"], "U232"),
        (["--cell", "fintech-us", "--strategy", "S1", "--budget-tokens", "10"], "U232"),
        (["--cell", "fintech-us", "--strategy", "S4", "--budget-tokens", "-1"], "U232"),
        (["--cell", "fintech-us", "--strategy", "S4", "--hold-out", "99"], "U233"),
        (["--cell", "fintech-us", "--strategy", "S4", "--hold-out", "-1"], "U233"),
    ],
)  # fmt: skip
def test_bad_words_are_told_with_a_code_and_a_mend(words: list[str], code: str):
    exit_code, _, message = run(*words)
    assert exit_code == 2 and f"[{code}]" in message and "mend: " in message
    assert code == "U103" or f"| {code} |" in (ROOT / "docs" / "generation.md").read_text(encoding="utf-8")


def test_a_cell_without_context_says_where_it_belongs(package_copy: Path):
    for file in (package_copy / "instruments" / "insurance-us" / "context").iterdir():
        file.unlink()
    redescribe(package_copy)
    code, _, message = run("--cell", "insurance-us", "--strategy", "S1", "--package", str(package_copy))
    assert code == 2 and "U230" in message and "instruments/insurance-us/context" in message


# Around it


def test_the_page_is_current():
    path = ROOT / "docs" / "generation.md"
    text = path.read_text(encoding="utf-8")
    assert page.renewed(text, package()) == text, "python -m regatta_tools.report.generation"


def test_a_labelled_probe_takes_its_obligation_off_the_list(package_copy: Path):
    folder = package_copy / "instruments" / "insurance-us"
    ids = [r.key for r in read(package_copy).table("requirements")]
    (folder / "gold_probes.csv").write_text(
        "id,cell,stage,language,stimulus,answer\ninsurance-us-g1,insurance-us,rc,en,A claim is late.,\n",
        encoding="utf-8",
    )
    columns = list(table_specs()["gold_labels"].columns)
    with (folder / "gold_labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for target, label in zip(ids, ("yes", "no")):
            writer.writerow({"cell": "insurance-us", "probe": "insurance-us-g1", "target": target, "label": label,
                             "labeller": "A. Reader", "labeller_kind": "human", "date": "2026-11-30"})  # fmt: skip
    redescribe(package_copy)
    assert regatta_tools.validate(package_copy).ok
    rows = query.run_named(read(package_copy), "obligations-without-scenario").rows
    assert sorted(r[0] for r in rows) == sorted(set(ids) - {ids[0]})
