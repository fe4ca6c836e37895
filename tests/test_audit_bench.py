"""The mutation benchmark of the audit: its list of pitfalls is whole, its figures stand in the pages, and it runs."""

from __future__ import annotations

import importlib
import itertools
import random
import re
import sys
from datetime import date
from types import ModuleType

import pytest
from conftest import ROOT
from scipy.stats import beta

from regatta_tools.documents import read_document
from regatta_tools.provenance import checks
from regatta_tools.tables.package import read

CELLS = ["banking-vn", "fintech-us", "healthcare-us", "insurance-us", "insurance-vn"]
DAY = date(2026, 11, 30)


@pytest.fixture(scope="module")
def mutations() -> ModuleType:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return importlib.import_module("audit_mutations")
    finally:
        sys.path.remove(str(ROOT / "bench"))


@pytest.mark.parametrize("cell", CELLS)
def test_each_pitfall_is_an_edit_or_left_out_with_a_reason(cell):
    entries = read_document(ROOT / "bench" / "audit_pitfalls" / f"{cell}.yaml").value
    active = {r.key for r in read(ROOT).table("requirements") if r["cell"] == cell and r["status"] == "active"}
    assert {entry["requirement"] for entry in entries} == active, "each obligation has pitfalls"
    for entry in entries:
        assert entry["pitfall"].strip() and ("edits" in entry) != ("excluded" in entry), entry
        assert entry.get("edits") or entry.get("excluded", "").strip(), entry


def test_the_pages_have_the_figures_and_their_intervals():
    short = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    whole = (ROOT / "docs" / "audit-benchmark.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| ([a-z-]+) \| (\d+) \| (\d+) \| (\d\.\d{3}) \[(\d\.\d{3}), (\d\.\d{3})\] \| (.+) \|$", re.M)
    found = row.findall(short)
    assert len(found) == 16
    for name, n, seen, share, low, high, aim in found:
        total, k = int(n), int(seen)
        bounds = (
            beta.ppf(0.025, k, total - k + 1) if k else 0.0,
            beta.ppf(0.975, k + 1, total - k) if k < total else 1.0,
        )
        assert (share, low, high) == (f"{k / total:.3f}", *(f"{b:.3f}" for b in bounds)), name
        assert f"| {name} | {n} | {share} | [{low}, {high}] |" in whole, name
        if name not in ("actor", "inverted"):
            aimed = 0.9 if name == "pitfall" else 0.98
            assert aim == f"> {aimed:.2f} {'met' if k / total > aimed else '**not met**'}"
    missed = whole.partition("<!-- missed -->")[2].partition("<!-- /missed -->")[0]
    lost = sum(int(n) - int(seen) for name, n, seen, *_ in found if name not in ("actor", "inverted"))
    assert len(missed.strip().splitlines()) == lost
    entries = [e for c in CELLS for e in read_document(ROOT / "bench" / "audit_pitfalls" / f"{c}.yaml").value]
    pitfalls = next(int(n) for name, n, *_ in found if name == "pitfall")
    assert f"{len(entries)} pitfalls, of which {pitfalls} are edits" in whole
    assert sum("edits" in entry for entry in entries) == pitfalls


def test_marks_are_replaced_alone(mutations, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb\n", encoding="utf-8")
    mutations.marked(page, "x", "new")
    assert page.read_text(encoding="utf-8") == "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n"
    with pytest.raises(SystemExit, match="lacks the marks"):
        mutations.marked(page, "y", "new")


@pytest.mark.shared
def test_some_mutations_of_each_kind_are_seen_and_the_clean_are_left_alone(mutations, corpus):
    bench = mutations.Bench(read(ROOT), corpus, DAY)
    assert {checked.outcome for checked in bench.clean.values()} == {checks.CLEAN}
    for operator in mutations.OPERATORS:
        drawn = list(itertools.islice(operator(bench, random.Random(7)), 0, 300, 60))
        assert drawn, operator.__name__
        for mutation in drawn:
            seen = bench.spoilt(mutation, bare=False)
            assert seen.outcome not in (checks.CLEAN, checks.NOT_ASSESSED), (operator.__name__, mutation)
    actors = list(itertools.islice(mutations.actor(bench, random.Random(7)), 3))
    assert {bench.spoilt(m, bare=False).outcome for m in actors} == {checks.CLEAN}, "the actor is words"
