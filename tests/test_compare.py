"""Comparison of strategies and of languages: what is claimed, what is not, and that it goes on where it stopped."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import NO, faults, package
from test_generate import SUBJECTS, VI, item, said, viet

import regatta_tools
from regatta_tools.cli.compare import compare as command
from regatta_tools.errors import InputError
from regatta_tools.generation.making import as_yaml
from regatta_tools.harness import compare as comparing
from regatta_tools.measures.differences import REPEATS, differences
from regatta_tools.measures.parity import pairs_of, parity
from regatta_tools.measures.population import Block, Population, Unit
from regatta_tools.report import compare as report
from regatta_tools.suites.reader import check_file, load_suite

CELL = "insurance-us"


# Constructed populations


def block(rates: dict[str, list[float]], *, cell: str = "c", generator: str = "g", faults: int = 20) -> Block:
    """Suites with these values of FDR_d (multiples of 1/``faults``); at the execution stage nothing was asked."""
    units, rows = [], []
    for strategy, values in rates.items():
        for repeat, value in enumerate(values, 1):
            units.append(Unit(f"{strategy}{repeat}", cell, strategy, generator, repeat))
            ones = round(value * faults)
            rows.append([1.0] * ones + [0.0] * (faults - ones))
    n = len(units)
    return Block(
        cell, generator, units, ["r"], [f"f{i}" for i in range(faults)], [None] * faults,
        np.full((n, 1), np.nan), np.array(rows), np.full((n, faults, 1), np.nan),
        {"rc": np.zeros(n, bool), "design": np.ones(n, bool), "execution": np.zeros(n, bool)},
        np.zeros((n, 1), bool), np.full((n, 3), np.nan), np.full((n, 3), np.nan),
    )  # fmt: skip


def found(*blocks: Block, generator: str = "g", **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    result = differences(Population(list(blocks), {}, {}), **({"resamples": 2000} | options))
    return {(r["a"], r["b"]): r for r in result["by_generator"][generator]["FDR_d"]}


def test_a_difference_that_spans_zero_is_called_not_separated():
    row = found(block({"S1": [0.2, 0.6, 0.5], "S4": [0.4, 0.7, 0.45]}))["S1", "S4"]
    assert row["difference"] == pytest.approx(np.mean([0.2, 0.6, 0.5]) - np.mean([0.4, 0.7, 0.45]))
    assert row["interval"][0] < 0 < row["interval"][1] and row["verdict"] == "not separated"
    assert row["suites"] == [3, 3] and row["strata"] == 1
    assert "not separated" in row["says"] and "3 and 3 suites" in row["says"] and "[" in row["says"]
    assert not any(word in row["says"] for word in ("better", "best", "higher", "wins"))


def test_a_difference_that_does_not_is_called_one_with_interval_and_suites():
    cells = [block({"S1": [0.2, 0.25, 0.15], "S4": [0.7, 0.65, 0.8]}, cell=c) for c in "ab"]
    row = found(*cells)["S1", "S4"]
    assert row["interval"][1] < 0 and row["verdict"] == "difference"
    assert "a difference, higher with S4" in row["says"] and "6 and 6 suites" in row["says"]
    assert f"[{row['interval'][0]:+.2f}, {row['interval'][1]:+.2f}]" in row["says"] and "better" not in row["says"]


@pytest.mark.parametrize("n", [1, 2])
def test_with_fewer_repeats_it_says_too_few_however_large_the_difference(n):
    row = found(block({"S1": [0.0, 0.05, 0.0][:n], "S4": [1.0, 0.95, 0.9]}))["S1", "S4"]
    assert row["verdict"] == "too few" and row["interval"] is None and str(REPEATS) in row["reason"]
    assert "too few" in row["says"] and "higher" not in row["says"]


def test_suites_that_do_not_vary_give_no_interval():
    row = found(block({"S1": [0.0] * 3, "S4": [1.0] * 3}))["S1", "S4"]
    assert row["verdict"] == "undefined" and row["interval"] is None and "do not differ" in row["reason"]


def test_missing_verdicts_that_could_turn_it_leave_it_open():
    cells = [block({"S1": [0.2, 0.25, 0.15], "S4": [0.6, 0.55, 0.7]}, cell=c) for c in "ab"]
    for b in cells:
        b.design[:3, :] = np.where(np.arange(20) < 12, np.nan, b.design[:3, :] * 0)
        b.design[:3, 19] = [1.0, 0.0, 1.0]
    row = found(*cells)["S1", "S4"]
    assert row["interval"][1] < 0 and row["bounds"][0] < 0 < row["bounds"][1]
    assert row["verdict"] == "open" and "could turn it" in row["says"]


def test_cells_that_only_one_strategy_was_tried_in_do_not_count():
    easy, hard = [0.8, 0.9, 0.85], [0.2, 0.1, 0.15]
    row = found(block({"S1": easy}, cell="easy"), block({"S1": hard, "S4": [0.15, 0.2, 0.25]}, cell="hard"))["S1", "S4"]
    assert row["strata"] == 1 and row["suites"] == [3, 3] and row["difference"] == pytest.approx(-0.05)
    none = found(block({"S1": easy}, cell="easy"), block({"S4": hard}, cell="hard"))["S1", "S4"]
    assert none["difference"] is None and none["verdict"] == "undefined" and "no cell" in none["reason"]


def test_generators_are_kept_apart_and_joined():
    one = block({"S1": [0.2, 0.3, 0.25], "S2": [0.4, 0.5, 0.6]}, generator="g")
    two = block({"S1": [0.6, 0.7, 0.8], "S2": [0.6, 0.75, 0.7]}, generator="h")
    result = differences(Population([one, two], {}, {}), resamples=500)
    assert set(result["by_generator"]) == {"g", "h"}
    apart = [result["by_generator"][g]["FDR_d"][0]["difference"] for g in "gh"]
    assert result["all"]["FDR_d"][0]["difference"] == pytest.approx(np.mean(apart))
    assert result["all"]["FDR_d"][0]["strata"] == 2
    assert differences(Population([one], {}, {}), resamples=500)["all"] is None


@given(st.lists(st.integers(0, 20), min_size=6, max_size=6), st.integers(0, 3))
@settings(max_examples=15)
def test_the_words_follow_the_interval(counts, seed):
    values = [c / 20 for c in counts]
    row = found(block({"S1": values[:3], "S2": values[3:]}), resamples=200, seed=seed)["S1", "S2"]
    if row["interval"] is None:
        assert row["verdict"] in ("too few", "undefined") and row["reason"]
    else:
        spans = row["interval"][0] <= 0 <= row["interval"][1]
        assert (row["verdict"] == "not separated") == spans
        assert ("a difference" in row["says"]) == (not spans)
        assert row["bounds"] == pytest.approx([row["difference"]] * 2)


def test_the_error_is_that_of_the_textbook_and_six_pairs_make_intervals_wider():
    """One pair in one cell is Welch's interval (scipy) up to the resampled quantile; six pairs share the level."""
    from scipy.stats import norm, t

    rng = np.random.default_rng(3)
    values = {s: list(rng.integers(2, 18, 12) / 20) for s in ("S1", "S2", "S3", "S4")}
    pair = found(block({s: values[s] for s in ("S1", "S2")}), resamples=20_000)["S1", "S2"]
    a, b = (np.array(values[s]) for s in ("S1", "S2"))
    parts = [x.var(ddof=1) / len(x) for x in (a, b)]
    freedom = sum(parts) ** 2 / sum(p**2 / (len(x) - 1) for p, x in zip(parts, (a, b)))
    half = t.ppf(0.975, freedom) * sum(parts) ** 0.5
    assert pair["interval"] == pytest.approx([a.mean() - b.mean() - half, a.mean() - b.mean() + half], abs=0.02)
    six = found(block(values), resamples=20_000)
    assert len(six) == 6
    wider = np.ptp(six["S1", "S2"]["interval"]) / np.ptp(pair["interval"])
    bonferroni = norm.ppf(1 - 0.025 / 6) / norm.ppf(0.975)
    assert 1.15 < wider < 1.1 * bonferroni


@pytest.mark.parametrize("cells", [1, 5])
def test_strategies_that_do_not_differ_are_hardly_ever_called_different(cells):
    """Four equal strategies, three suites each: some pair is called different in at most about 5 % of studies."""
    rng = np.random.default_rng(cells)
    false, studies = 0, 80
    for study in range(studies):
        blocks = []
        for c in range(cells):
            ease = rng.uniform(0.3, 0.7)
            blocks.append(block({s: list(np.clip(rng.normal(ease, 0.15, 3), 0, 1)) for s in ("S1", "S2", "S3", "S4")},
                                cell=f"c{c}"))  # fmt: skip
        rows = found(*blocks, resamples=200, seed=study)
        false += any(r["verdict"] == "difference" for r in rows.values())
    assert false / studies <= 0.05 + 2.5 * (0.05 * 0.95 / studies) ** 0.5, false / studies


# Parity


def paired_suite(folder: Path, n: int) -> Path:
    scenarios = []
    for i in range(n):
        vi, en = viet(VI[i % len(VI)] + f" số {i}"), item(SUBJECTS[i % len(SUBJECTS)] + f" number {i}")
        for language, value in (("vi", vi), ("en", en)):
            scenarios.append({"id": f"s{i}-{language}", "language": language, "pair": f"s{i}", "turns": value["turns"]})
    path = folder / "paired.yaml"
    path.write_bytes(as_yaml({"id": "paired", "cell": "banking-vn", "scenarios": scenarios}))
    return path


def judged(folder: Path, suite: Path, *yes: tuple[str, str], entries: list[Any] | None = None, **options: Any) -> Path:
    """A run in which the design judge says yes of these (fault, scenario)."""
    replies = [{"when": {"stage": "design", "target": f, "scenario": s}, "text": '{"exposed": true}'} for f, s in yes]
    script = folder / "judge.json"
    script.write_text(json.dumps({"replies": [*(entries or []), *replies, *NO]}), encoding="utf-8")
    who = f"scripted:{script}"
    out = folder / "run"
    regatta_tools.run(suite, cell="banking-vn", out=out, judge=who, agent=who, answers="per-scenario",
                      package=package(), **({"scan": "exhaustive"} | options))  # fmt: skip
    return out


def test_parity_by_fault_against_a_count_by_hand(tmp_path):
    suite = paired_suite(tmp_path, 8)
    first, second = [f.key for f in package().cell("banking-vn").faults][:2]
    yes = [(first, f"s{i}-vi") for i in range(6)] + [(first, f"s{i}-en") for i in range(2)] + [(second, "s0-en")]
    unparsed = {"when": {"stage": "design", "target": first, "scenario": "s7-en"}, "text": "perhaps"}
    run = judged(tmp_path, suite, *yes, entries=[unparsed])
    result = parity([run], [suite], resamples=2000)
    assert result["pairs"] == 8
    rows = result["cells"]["banking-vn"]["design"]["faults"]
    one = rows[first]
    assert (one["pairs"], one["only_vi"], one["only_en"]) == (7, 4, 0)
    assert one["difference"] == pytest.approx(6 / 7 - 2 / 7) and one["interval"][0] > 0
    assert one["bounds"] == pytest.approx([3 / 8, 4 / 8]), "the pair that is not known counts both ways"
    assert rows[second]["difference"] == pytest.approx(-1 / 8)
    others = [r for f, r in rows.items() if f not in (first, second)]
    assert all(r["difference"] == 0 and r["interval"] is None and "no pair differs" in r["reason"] for r in others)
    whole = result["cells"]["banking-vn"]["design"]["all"]
    assert whole["missing"] == {"unparsed": 1} and whole["difference"] == pytest.approx((6 - 2 + 0 - 1) / 39)
    text = "\n".join(report.parity_lines(result))
    assert first in text and "unparsed" in text and "+0.57" in text


def test_the_interval_of_parity_is_that_of_resampled_pairs(tmp_path):
    suite = paired_suite(tmp_path, 8)
    fault = package().cell("banking-vn").faults[0].key
    run = judged(tmp_path, suite, *((fault, f"s{i}-vi") for i in range(4)), (fault, "s6-en"))
    row = parity([run], [suite], resamples=4000)["cells"]["banking-vn"]["design"]["faults"][fault]
    gaps = np.array([1, 1, 1, 1, 0, 0, -1, 0])
    drawn = np.random.default_rng(9).choice(gaps, (20_000, 8)).mean(axis=1)
    assert row["interval"] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.13)


def test_a_scan_that_stopped_early_is_missing_and_never_no(tmp_path):
    suite = paired_suite(tmp_path, 3)
    fault = package().cell("banking-vn").faults[0].key
    run = judged(tmp_path, suite, (fault, "s0-vi"), scan="first")
    result = parity([run], [suite], resamples=200)
    row = result["cells"]["banking-vn"]["design"]["faults"][fault]
    assert row["difference"] is None and "no pair is known" in row["reason"]
    assert row["bounds"] == pytest.approx([-2 / 3, 1])
    assert result["cells"]["banking-vn"]["design"]["all"]["missing"]["skipped"] == 5
    assert any("exhaustive" in note for note in result["notes"])


def test_what_is_no_pair_is_told(tmp_path):
    suite = paired_suite(tmp_path, 1)
    raw = suite.read_text(encoding="utf-8")
    twice = tmp_path / "twice.yaml"
    twice.write_text(raw.replace("language: en", "language: vi"), encoding="utf-8")
    with pytest.raises(InputError, match="two scenarios in vi"):
        pairs_of(load_suite(twice))
    alone = tmp_path / "alone.yaml"
    alone.write_text(raw.replace("pair: s0", "title: x").replace("  title: x\n", ""), encoding="utf-8")
    run = judged(tmp_path, alone)
    with pytest.raises(InputError, match="no pairs") as error:
        parity([run], [alone])
    assert error.value.code == "U240"


# The whole way


def scripted(folder: Path) -> str:
    """Writes, judges and answers: the design judge says yes of the first fault where a text holds a word."""
    path = folder / "all.json"
    replies = [
        {"when": {"stage": "generate", "target": "S1"}, "text": said(item(SUBJECTS[0]), item(SUBJECTS[1]))},
        {"when": {"stage": "generate", "target": "S4"}, "text": said(item(SUBJECTS[2]), item(SUBJECTS[3]))},
        {"when": {"stage": "design", "target": faults()[0], "contains": SUBJECTS[2]}, "text": '{"exposed": true}'},
        *NO,
    ]
    path.write_text(json.dumps({"replies": replies}, ensure_ascii=False), encoding="utf-8")
    return f"scripted:{path}"


def plan_file(folder: Path, model: str, **more: Any) -> Path:
    value = {
        "id": "small", "judge": model, "agent": model, "answers": "per-scenario",
        "generate": [{"cells": [CELL], "strategies": ["S1", "S4"], "models": [model], "n": 2, "repeats": 2}],
    } | more  # fmt: skip
    path = folder / "plan.yaml"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_plan_is_generated_run_and_compared_and_goes_on(tmp_path, monkeypatch):
    plan = plan_file(tmp_path, scripted(tmp_path))
    assert check_file(plan).ok
    out = tmp_path / "out"
    first = comparing.compare(plan, out=out, package=package(), resamples=200)
    assert [(s["strategy"], s["repeat"]) for s in first["suites"]] == [("S1", 1), ("S1", 2), ("S4", 1), ("S4", 2)]
    assert [s["measures"]["FDR_d"] for s in first["suites"]] == [0, 0, 0.2, 0.2]
    (generator,) = first["differences"]["by_generator"]
    rows = first["differences"]["by_generator"][generator]["FDR_d"]
    assert [r["verdict"] for r in rows] == ["too few"] and rows[0]["difference"] == pytest.approx(-0.2)
    assert first["diagnostics"]["V4"][generator]["FDR_d"]["rho"] == pytest.approx(0.2)
    assert {"V1", "V2", "V3", "V4"} <= set(first["diagnostics"])
    text = report.as_text(first)
    assert "too few" in text and "V3  Do the two stages" in text and "simultaneous" in text
    rows = list(csv.DictReader(io.StringIO(report.as_csv(first))))
    assert {r["kind"] for r in rows} == {"suite", "difference"}
    assert all(r["value"] or r["reason"] for r in rows if r["kind"] == "difference")
    json.dumps(first, allow_nan=False)

    from regatta_tools.llm import client

    monkeypatch.setattr(client, "complete", lambda *a, **k: pytest.fail("asked again"))
    assert comparing.compare(plan, out=out, package=package(), resamples=200) == first
    assert sorted(p.name for p in (out / "runs").iterdir()) == sorted(s["run"] for s in first["suites"])


def test_a_folder_of_suites_by_people(tmp_path):
    """Suites that say how they were made are compared; one that does not is told and left out of the differences."""
    folder = tmp_path / "suites"
    folder.mkdir()
    for number, made in enumerate(({"generator": "team", "strategy": "by-hand", "repeat": 1}, None), 1):
        value: dict[str, Any] = {"id": f"suite-{number}", "cell": CELL}
        value |= {"made_with": made} if made else {}
        value["scenarios"] = [{"id": f"s{i}", "turns": item(SUBJECTS[i])["turns"]} for i in range(number)]
        (folder / f"{number}.yaml").write_bytes(as_yaml(value))
    model = scripted(tmp_path)
    words = [str(folder), "--out", str(tmp_path / "out"), "--judge", model, "--agent", model, "--answers",
             "per-scenario", "--format", "json", "--resamples", "100"]  # fmt: skip
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output + str(done.exception)
    result = json.loads(done.stdout)
    assert any("suite-2 does not say how it was made" in n for n in result["notes"])
    assert any("1 to 2 scenarios" in n for n in result["notes"]) and str(tmp_path) not in json.dumps(result["settings"])
    assert result["differences"]["by_generator"]["team"]["FDR_d"] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"id": "x"}, "U241"), ({"id": "x", "suites": ["nowhere.yaml"]}, "U101"), ({"id": "x", "wrong": 1}, "U002"),
        ({"id": "x", "generate": [{"cells": [CELL], "strategies": ["S9"], "models": ["scripted:all.json"]}]}, "U234"),
        ({"id": "x", "generate": [{"cells": [CELL], "strategies": ["S1"]}]}, "U002"),
        ({"id": "x", "suites": ["empty"]}, "U241"), ({"id": "x", "suites": ["same.yaml", "same.yaml"]}, "U241"),
        ({"id": "x", "suites": ["cell.yaml"]}, "U241"),
    ],
)  # fmt: skip
def test_plans_that_cannot_be_used(tmp_path, content, code, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scripted(tmp_path)
    (tmp_path / "empty").mkdir()
    scenarios = [{"id": "s", "turns": item("x")["turns"]}]
    (tmp_path / "same.yaml").write_bytes(as_yaml({"id": "same", "cell": CELL, "scenarios": scenarios}))
    (tmp_path / "cell.yaml").write_bytes(as_yaml({"id": "cell", "scenarios": scenarios}))
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError) as error:
        comparing.compare(path, out=tmp_path / "out", package=package())
    assert error.value.code == code and not (tmp_path / "out").exists()
