"""The bench: its synthetic package is sound, and its scripts run at tiny size. No time is asserted."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

import regatta_tools
from regatta_tools.tables.package import read, table_specs

BENCH = ROOT / "bench"


@pytest.fixture(scope="module")
def bench() -> tuple[ModuleType, ModuleType]:
    """The modules synthetic and gate, which import each other as scripts of one folder do."""
    sys.path.insert(0, str(BENCH))
    try:
        return importlib.import_module("synthetic"), importlib.import_module("gate")
    finally:
        sys.path.remove(str(BENCH))


@pytest.fixture(scope="module")
def package(bench, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("synthetic") / "package"
    bench[0].write(root, 250)
    return root


def test_the_synthetic_package_is_clean_and_of_the_size_asked_for(package):
    report = regatta_tools.validate(package)
    assert report.findings == ()
    assert len(read(package).table("requirements")) == 250
    assert {c.key.split("-")[1] for c in read(package).table("cells")} == {"us", "vn"}


def test_it_has_the_proportions_of_the_shipped_package(package):
    made, shipped = read(package), read(ROOT)
    per = {p: len(p.table("requirements")) for p in (made, shipped)}
    judging = {n for n, spec in table_specs().items() if spec.scope != "context" and not n.startswith("gold_")}
    for name in judging & set(shipped.names) - {"cells", "requirements"}:
        here, there = (len(p.table(name)) / per[p] for p in (made, shipped))
        assert here == pytest.approx(there, rel=0.15), name


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_texts(bench, package, tmp_path):
    bench[0].write(tmp_path / "again", 250)
    bench[0].write(tmp_path / "other", 250, seed=2)
    files = sorted(p.relative_to(package) for p in package.rglob("*") if p.is_file())
    assert all((tmp_path / "again" / f).read_bytes() == (package / f).read_bytes() for f in files)
    assert any((tmp_path / "other" / f).read_bytes() != (package / f).read_bytes() for f in files)


def test_nothing_in_it_passes_for_law(package):
    for source in read(package).table("sources"):
        assert source["title"].startswith("Synthetic text")
        assert (
            source["number"].startswith(("35 CFR § ", "53 U.S.C. § ", "Cal. Ins. Code § 9"))
            or "/NĐ-CP" in source["number"]
        )
        assert "example.org" in source["url"] and "No law" in source["note"]


def test_numbers_run_on_without_touching(bench):
    """Sources of a hundred thousand requirements still have numbers of their own."""
    synthetic = bench[0]
    words = synthetic.Words(synthetic.random.Random(1))
    seen: set[str] = set()
    for number in (1, 2, 3, 1999, 2000, 3999, 4000):
        cell = synthetic.Cell(number, words)
        rows = [synthetic._source(cell, (number - 1) * 13 + i)[0] for i in range(13)]
        official = {row[table_specs()["sources"].position["number"]] for row in rows}
        assert len(official) == 13 and not official & seen
        seen |= official


def test_what_is_spoiled_is_found(bench, tmp_path):
    synthetic, gate = bench
    for number, (what, spoil) in enumerate(gate.SPOILED.items()):
        root = tmp_path / str(number)
        synthetic.write(root, 50)
        assert spoil(root) in table_specs()
        if what != gate.UNSEEN_BY_ITS_AUTHOR:
            gate._renew(root)
        assert not regatta_tools.validate(root).ok, what


def test_the_merged_layout_has_the_same_rows(bench, package, tmp_path):
    bench[0].merge(package, tmp_path / "merged")
    described = json.loads((tmp_path / "merged" / "datapackage.json").read_text(encoding="utf-8"))
    whole = read(package)
    assert [r["name"] for r in described["resources"]] == [n for n in table_specs() if whole.table(n)]
    for name, records in whole.records.items():
        with (tmp_path / "merged" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file))[1:] == [r.values for r in records]


def test_the_measurement_runs_and_says_what_it_measured(bench, tmp_path, capsys):
    bench[1].main(["--plan", "tiny", "--others", "", "--work", str(tmp_path)])
    text = capsys.readouterr().out
    assert text.startswith("# Benchmarks") and "| 25 | regatta | " in text and "| 25 | rdflib | " in text


@pytest.mark.parametrize("script", ["gate.py", "synthetic.py"])
def test_the_scripts_have_a_help(script):
    done = subprocess.run([sys.executable, BENCH / script, "--help"], capture_output=True, check=True)
    assert b"bench/" + script.encode() in done.stdout


def test_a_tool_that_fails_is_not_fast(bench, tmp_path):
    with pytest.raises(RuntimeError, match="left with 2"):
        bench[1].run(bench[1].regatta("validate", "no such folder"), tmp_path)
