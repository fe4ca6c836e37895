"""Gold probes put to a judge of known error, corrected rates, and when there is none."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import one_cell, redescribe
from hypothesis import given
from hypothesis import strategies as st
from scripted_runs import CELL, play, write_script, write_suite
from scripted_runs import package as shipped

import regatta_tools
from regatta_tools.cli.main import cli
from regatta_tools.errors import InputError
from regatta_tools.harness import calibration as cal
from regatta_tools.harness import panel
from regatta_tools.harness.kept import prompts as kept_prompts
from regatta_tools.harness.live import scenario_of
from regatta_tools.harness.store import RunStore
from regatta_tools.measures.agreement import clopper_pearson
from regatta_tools.measures.calibration import corrected, false_alarm, scan_correction
from regatta_tools.tables.shape import validator

FAULTS = [f.key for f in shipped().cell(CELL).faults]
REQUIREMENTS = [r.key for r in shipped().cell(CELL).requirements][:2]
KEYS = {"rc": "covered", "design": "exposed", "execution": "manifested"}


@pytest.fixture(autouse=True)
def no_disk_waits(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


def counts(tp: int, fn: int, tn: int, fp: int) -> dict:
    return {"true_positive": tp, "false_negative": fn, "true_negative": tn, "false_positive": fp}


def write(root: Path, probes: list[dict], labels: list[dict]) -> None:
    """Put gold tables into a package of one cell."""
    for name, rows, columns in (
        ("gold_probes", probes, ["id", "cell", "stage", "language", "stimulus", "answer"]),
        ("gold_labels", labels, ["cell", "probe", "target", "label", "near_miss", "labeller", "labeller_kind", "date"]),
    ):
        with (root / "instruments" / CELL / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows({"cell": CELL, **row} for row in rows)
    redescribe(root)


def probe(number: int, stage: str, **more: str) -> dict:
    answer = {"answer": f"Answer {number}."} if stage == "execution" else {}
    text = f"Context: Known {number}.\nUser: Question {number}?\nExpected: Right {number}."
    text = f"Context: Known {number}.\nUser: Question {number}?" if stage == "execution" else text
    return {"id": f"{CELL}-g{number:02}", "stage": stage, "language": "en", "stimulus": text, **answer, **more}


def label(number: int, target: str, said: str, **more: str) -> dict:
    who = {"labeller": "test", "labeller_kind": "ai", "date": "2026-12-01"}
    return {"probe": f"{CELL}-g{number:02}", "target": target, "label": said, **who, **more}


@pytest.fixture(scope="module")
def gold(tmp_path_factory) -> Path:
    """A package with ten probes: 4 rc, 2 design, 4 execution, the last labelled for two faults each."""
    root = one_cell(tmp_path_factory.mktemp("gold"))
    probes = [probe(n, "rc") for n in range(1, 5)] + [probe(n, "design") for n in (5, 6)]
    probes += [probe(n, "execution") for n in range(7, 11)]
    labels = [label(n, REQUIREMENTS[0], "yes" if n < 3 else "no", near_miss="true" if n in (2, 4) else "")
              for n in range(1, 5)]  # fmt: skip
    labels += [label(5, FAULTS[0], "yes"), label(6, FAULTS[0], "no")]
    labels += [label(n, f, "yes" if n < 9 and f == FAULTS[0] else "no") for n in range(7, 11) for f in FAULTS[:2]]
    write(root, probes, labels)
    return root


@pytest.fixture(scope="module")
def package(gold):
    return regatta_tools.load(gold)


def says(stage: str, number: int | list[int], target: str | None, value: bool | None, **more) -> dict:
    """An entry of a script: what the judge says of a probe."""
    numbers = number if isinstance(number, list) else [number]
    when = {"stage": stage, "scenario": [f"{CELL}-g{n:02}" for n in numbers]} | ({"target": target} if target else {})
    text = "Perhaps." if value is None else json.dumps({KEYS[stage]: value})
    return {"when": when, "text": text} | more


def script(folder: Path, *entries: dict) -> str:
    return f"scripted:{write_script(folder, *entries)}"


# -- counts --------------------------------------------------------------------------------------


def test_a_judge_of_known_error_comes_out_as_it_was_made(tmp_path, package):
    judge = script(
        tmp_path, says("rc", 1, None, True), says("rc", 2, None, None), says("rc", 3, None, True),
        says("design", 5, None, True), says("execution", [7, 9], FAULTS[0], True),
    )  # fmt: skip
    found = cal.calibrate(judge, package=package, folder=tmp_path / "c")
    assert validator("Calibration").is_valid(found)
    whole = {p["stage"]: p for p in found["parts"] if "near_miss" not in p}
    names = ("true_positive", "false_negative", "true_negative", "false_positive", "missing_yes", "missing_no")
    assert {s: tuple(p[n] for n in names) for s, p in whole.items()} == {
        "rc": (1, 0, 1, 1, 1, 0), "design": (1, 0, 1, 0, 0, 0), "execution": (1, 1, 5, 1, 0, 0),
    }  # fmt: skip
    sensitivity = whole["rc"]["sensitivity"]
    assert (sensitivity["value"], sensitivity["bound_low"], sensitivity["bound_high"]) == (1.0, 0.5, 1.0)
    assert (sensitivity["low"], sensitivity["high"]) == clopper_pearson(1, 1)
    near = {p.get("near_miss"): [p[n] for n in names] for p in found["parts"] if p["stage"] == "rc"}
    assert (near[True], near[False]) == ([0, 0, 1, 0, 1, 0], [1, 0, 0, 1, 0, 0])
    assert found["labelled_by"] == [{"labeller": "test", "labeller_kind": "ai", "label_count": 14}]
    assert cal.BY_AI in found["notes"]


def test_a_calibration_is_no_run_that_could_be_scored(tmp_path, package):
    cal.calibrate(script(tmp_path), package=package, folder=tmp_path / "c")
    folder = next((tmp_path / "c").glob("*/run.json")).parent
    with pytest.raises(InputError) as caught:
        regatta_tools.score(folder)
    assert caught.value.code == "U107" and "calibration" in caught.value.message


def test_it_is_resumed_without_repeating_a_call_and_gives_the_same_bytes(tmp_path, package):
    judge = script(tmp_path)
    with pytest.raises(Exception, match="max-calls"):
        cal.calibrate(judge, package=package, folder=tmp_path / "c", max_calls=5)
    first = cal.calibrate(judge, package=package, folder=tmp_path / "c")
    store = RunStore.read(next((tmp_path / "c").glob("*/run.json")).parent)
    assert len(store.calls) == store.sent == 14
    raw = cal.file_of(first, tmp_path / "c").read_bytes()
    assert cal.calibrate(judge, package=package, folder=tmp_path / "c") == first
    assert RunStore.read(store.folder).sent == 14 and cal.file_of(first, tmp_path / "c").read_bytes() == raw
    assert cal.load_calibration(cal.file_of(first, tmp_path / "c")) == first


def test_whatever_can_change_a_verdict_changes_the_hash(tmp_path, package, gold, monkeypatch):
    def of(**options):
        return cal.calibrate(folder=tmp_path / "c", **({"package": package} | options))["judge_hash"]

    one = script(tmp_path)
    base = of(judge=one)
    assert of(judge=one) == base
    other = f"scripted:{write_script(tmp_path, says('rc', 1, None, True), name='other.json')}"
    hashes = {base, of(judge=other), of(judge=one, stages=["rc"])}
    for where, name in ((cal, "parsing_hash"), (cal, "gold_hash"), (cal.prompts, "digest")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, lambda *_: "0" * 64)
            hashes.add(of(judge=one))
    assert len(hashes) == 6


def test_languages_and_contested_pairs_stand_apart(tmp_path):
    root = one_cell(tmp_path)
    labels = [label(1, REQUIREMENTS[0], "yes"), label(2, REQUIREMENTS[0], "yes"), label(2, REQUIREMENTS[0], "no")]
    labels[2] |= {"labeller": "a person", "labeller_kind": "human"}
    labels.append(label(3, REQUIREMENTS[0], "no"))
    write(root, [probe(1, "rc", language="vi"), probe(2, "rc"), probe(3, "rc")], labels)
    found = cal.calibrate(script(tmp_path), package=root, folder=tmp_path / "c")
    views = {p.get("language"): (p["labelled_pairs"], p["contested"]) for p in found["parts"]}
    assert views == {None: (2, 1), "en": (1, 1), "vi": (1, 0)}
    assert cal.BY_AI not in found["notes"]
    assert {w["labeller_kind"] for w in found["labelled_by"]} == {"ai", "human"}


@pytest.mark.parametrize(
    ("probes", "labels", "says_"),
    [
        ([probe(1, "rc")], [label(1, FAULTS[0], "yes")], "no active requirement"),
        ([probe(1, "design")], [label(1, REQUIREMENTS[0], "yes")], "no fault"),
        ([probe(1, "execution", answer="")], [label(1, FAULTS[0], "yes")], "has an answer"),
        ([probe(1, "rc", answer="Yes.")], [label(1, REQUIREMENTS[0], "yes")], "no other has one"),
    ],
)
def test_a_wrong_probe_is_told_with_its_place_before_any_call(tmp_path, probes, labels, says_):
    root = one_cell(tmp_path)
    write(root, probes, labels)
    with pytest.raises(InputError, match=says_) as error:
        cal.calibrate(script(tmp_path), package=root, folder=tmp_path / "c")
    assert error.value.code == "U180" and re.search(r"gold_(probes|labels)\.csv:[2-9]:[0-9]+$", error.value.place)
    assert not (tmp_path / "c").exists()


def test_no_probe_and_no_calibration_are_told(tmp_path):
    root = one_cell(tmp_path)
    for table in ("gold_probes", "gold_labels"):
        (root / "instruments" / CELL / f"{table}.csv").unlink(missing_ok=True)
    redescribe(root)
    with pytest.raises(InputError) as error:
        cal.calibrate(script(tmp_path), package=root, folder=tmp_path / "c")
    assert error.value.code == "U181"
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    for name, code in (("x.json", "U182"), ("none.json", "U101")):
        with pytest.raises(InputError) as error:
            cal.load_calibration(tmp_path / name)
        assert error.value.code == code


# -- blind, and the prompts of a run -------------------------------------------------------------


def test_the_prompts_are_those_of_a_run(tmp_path):
    """The same scenario, as a suite in a run and as a probe: byte for byte the same prompts."""
    text = "Context: Filed on 2 March.\nUser: Hello\nAgent: What?\nUser: When will you\nanswer?\nExpected: In time."
    scenario = scenario_of("s1", text, "en")
    suite = write_suite(tmp_path, [{
        "id": "s1", "context": scenario.context, "expected": scenario.expected, "language": "en",
        "turns": [{"speaker": t.speaker, "text": t.text} for t in scenario.turns],
    }])  # fmt: skip
    store = play(suite, write_script(tmp_path), tmp_path / "run")
    sent = {p["prompt_hash"]: p["messages"] for p in kept_prompts(store.folder)}
    cell = shipped().cell(CELL)
    checked = 0
    for (stage, target, *_), verdict in store.verdicts.items():
        if stage in KEYS:
            made = panel.judge_messages(cell, stage, target, scenario, "Within fifteen days.")
            prompt = sent[store.calls[verdict["call"]]["prompt_hash"]]
            assert list(made) == prompt
            checked += 1
    assert checked == 35


def test_no_prompt_of_a_probe_names_an_id_a_label_or_a_near_miss(tmp_path, package):
    found = cal.calibrate(script(tmp_path), package=package, folder=tmp_path / "c")
    folder = next((tmp_path / "c").glob("*/run.json")).parent
    prompts = json.dumps([p["messages"] for p in kept_prompts(folder)], ensure_ascii=False)
    assert "Question 1?" in prompts and found
    for secret in (f"{CELL}-g", *FAULTS, *REQUIREMENTS, "near_miss", "near miss", "gold"):
        assert secret not in prompts


# -- corrected rates -----------------------------------------------------------------------------


def test_the_estimator_is_that_of_rogan_and_gladen():
    """se 90 %, sp 80 %, p 30 %: q = .27 + .14 = .41, by hand."""
    found = corrected(41, 100, counts(90, 10, 80, 20))
    assert found["value"] == pytest.approx(0.3) and not found["clipped"]
    assert found["low"] < 0.3 < found["high"]


def test_it_is_clipped_and_says_so():
    found = corrected(8, 50, counts(45, 5, 40, 10))
    assert (found["value"], found["clipped"], found["low"]) == (0.0, True, 0.0) and 0 < found["high"] < 0.2
    # A fifth should be positive by error alone: none in fifty is another judge or other probes, and no rate of 0.
    assert "does not fit" in corrected(0, 50, counts(45, 5, 40, 10))["reason"]
    assert corrected(50, 50, counts(45, 5, 40, 10))["value"] == 1.0


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.data())
def test_a_corrected_rate_is_within_its_interval_or_has_a_reason(tp, fn, tn, fp, data):
    n = data.draw(st.integers(0, 200))
    found = corrected(data.draw(st.integers(0, n)), n, counts(tp, fn, tn, fp))
    if found["reason"]:
        assert found["value"] is found["low"] is found["high"] is None
    else:
        assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
        assert tp / (tp + fn) + tn / (tn + fp) > 1


def test_a_judge_that_guesses_is_not_corrected():
    for held in (counts(8, 7, 8, 7), counts(15, 0, 0, 15), counts(9, 6, 9, 6)):
        assert "chance" in corrected(10, 30, held)["reason"]
    assert "no pair labelled" in corrected(10, 30, counts(0, 0, 10, 0))["reason"]
    assert "no pair labelled" in corrected(10, 30, counts(10, 0, 0, 0))["reason"]
    assert corrected(0, 0, counts(15, 0, 15, 0))["reason"]


@pytest.mark.parametrize(("p", "se", "sp", "m"), [(0.1, 0.9, 0.95, 60), (0.4, 0.8, 0.9, 30), (0.02, 0.95, 0.97, 75)])
def test_intervals_cover(p, se, sp, m):
    """Judge and calibration drawn anew each time: the interval holds the true rate about as often as it says."""
    rng, n, times, met, plain = np.random.default_rng(7), 300, 800, 0, 0
    for _ in range(times):
        tp, tn = int(rng.binomial(m, se)), int(rng.binomial(m, sp))
        positives = int(rng.binomial(n, p * se + (1 - p) * (1 - sp)))
        found = corrected(positives, n, counts(tp, m - tp, tn, m - tn))
        assert found["reason"] is None
        met += found["low"] <= p <= found["high"]
        low, high = clopper_pearson(positives, n)
        youden = tp / m + tn / m - 1
        plain += (low + tn / m - 1) / youden <= p <= (high + tn / m - 1) / youden
    assert met / times >= 0.93
    # What the interval is for: without the calibration's own error it would cover too rarely.
    assert plain < met


def test_a_scan_of_thirty_says_nothing_after_fifteen_negatives():
    """Protocol, section 12, and the upper bound .218 of no error in 15 (1 - .025^(1/15))."""
    few = counts(15, 0, 15, 0)
    alarm = false_alarm(30, few)
    assert (alarm["low"], alarm["high"]) == (0.0, pytest.approx(1 - (0.025 ** (1 / 15)) ** 30))
    found = scan_correction(10, 25, 30, few)
    assert found["at_least"] is None and "0.218" in found["reason"] and "says nothing" in found["reason"]
    assert corrected(10, 30, few)["reason"] is None


def test_a_scan_is_corrected_where_the_judge_hardly_errs():
    many = counts(290, 10, 3000, 0)
    found = scan_correction(10, 25, 30, many)
    assert found["reason"] is None and 0.2 < found["at_least"] < 0.4
    # Of 25 scans that deserve no, each positive with at most this chance, so few would be positive by error.
    assert found["false_alarm"]["high"] == pytest.approx(1 - 0.025 ** (30 / 3000))
    assert scan_correction(10, 25, 30, counts(1, 299, 3000, 0))["reason"]
    assert scan_correction(0, 0, 30, many)["reason"] and scan_correction(0, 25, 30, many)["at_least"] == 0.0
    # The example of the protocol: 2 % and 30 scenarios make 45 %.
    assert false_alarm(30, counts(10, 0, 98, 2))["value"] == pytest.approx(0.45, abs=0.01)


@pytest.fixture(scope="module")
def exhaustive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exhaustive")
    judge = write_script(folder, {"when": {"stage": "rc", "scenario": "s1"}, "text": '{"covered": true}'})
    suite = write_suite(folder, 3)
    return judge, {
        scan: play(suite, judge, folder / scan, scan=scan, answers="per-scenario") for scan in ("first", "exhaustive")
    }  # fmt: skip


def test_rates_of_a_run(exhaustive, gold, tmp_path):
    judge, runs = exhaustive
    found = cal.calibrate(f"scripted:{judge}", package=gold, folder=tmp_path)
    # Enough labelled pairs, so that the figures are figures.
    part = cal.part_of(found, "rc", CELL)
    part |= counts(95, 5, 190, 10)
    rates = {r["stage"]: r for r in cal.of_run(runs["exhaustive"], found)}
    assert rates["rc"]["probes"]["observed"] == pytest.approx(1 / 3)
    assert rates["rc"]["probes"] == corrected(25, 75, part)
    assert rates["rc"]["scan"] == scan_correction(25, 25, 3, part)
    assert "chance" in rates["design"]["probes"]["reason"]
    first = {r["stage"]: r for r in cal.of_run(runs["first"], found)}
    assert "first yes" in first["rc"]["probes"]["reason"] and first["rc"]["scan"] == rates["rc"]["scan"]


def test_a_calibration_of_another_judge_prompt_or_cell_is_not_used(exhaustive, gold, tmp_path):
    judge, runs = exhaustive
    found = cal.calibrate(f"scripted:{judge}", package=gold, folder=tmp_path)
    manifest = runs["first"].manifest
    assert cal.why_not_of(found, manifest, "rc") is None
    other = json.loads(json.dumps(found))
    other["configuration"]["models"][0]["fingerprint"] = "0" * 64
    assert "other settings" in cal.why_not_of(other, manifest, "rc")
    for path, word in (("prompts", "prompts"), ("calibrated_cells", "cell")):
        other = json.loads(json.dumps(found))
        other["configuration"][path] = [] if path == "calibrated_cells" else "0" * 64
        assert word in cal.why_not_of(other, manifest, "rc")
        for rate in cal.of_run(runs["first"], other):
            assert word in rate["probes"]["reason"] and word in rate["scan"]["reason"]


def test_rungs_are_counted(exhaustive):
    _, runs = exhaustive
    found = panel.rungs(runs["exhaustive"])
    assert found["rc"] == {"as-is": 75} and found["execution"] == {"as-is": 15}


# -- the command ---------------------------------------------------------------------------------


def test_the_command(gold, tmp_path, exhaustive):
    judge, runs = exhaustive
    words = ["calibrate", "--judge", f"scripted:{judge}", "--package", str(gold), "--folder", str(tmp_path / "c")]
    told = CliRunner().invoke(cli, [*words, "--run", str(runs["exhaustive"].folder), "--out", str(tmp_path / "o.json")])
    assert told.exit_code == 0, told.output
    assert "No person has labelled" in told.output and "sensitivity" in told.output and "not corrected" in told.output
    found = cal.load_calibration(tmp_path / "o.json")
    told = CliRunner().invoke(cli, [*words, "--format", "json"])
    assert json.loads(told.stdout) == found
    assert CliRunner().invoke(cli, ["calibrate", "suite.yaml"]).exit_code == 2
