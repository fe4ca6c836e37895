"""Thresholds: fixed before a run, shown where they changed, and met only where nothing missing could turn them."""

from __future__ import annotations

import itertools
import json
import os
from datetime import UTC, datetime, timedelta

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import CELL, ROOT, faults, package, play, requirements, write_script, write_suite

import regatta_tools
from regatta_tools.cli.main import cli
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.harness.store import RunStore
from regatta_tools.measures.agreement import clopper_pearson
from regatta_tools.measures.evidence import score
from regatta_tools.measures.require import (
    NOT_FIXED,
    RANGES,
    content_hash,
    decide,
    exit_code,
    lock,
    outcome_of,
    read,
)
from regatta_tools.report.require import as_text
from regatta_tools.tables.shape import class_schema

TEXT = """# Cái cần đạt; a comment stays.
id: release-one
cell: insurance-us
suite: tiny
thresholds:
  - measure: RC
    at_least: 0.02
    why: "một lý do"
  - measure: FDR_e   # exposure
    at_most: 0.9
"""
EARLY = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)


def write(folder, text=TEXT, name="thresholds.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def of(*thresholds, **more):
    return yaml.safe_dump({"id": "t", "thresholds": list(thresholds)} | more, sort_keys=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run in which one requirement is covered, one has no verdict, and no fault is exposed."""
    folder = tmp_path_factory.mktemp("made")
    script = write_script(
        folder,
        {"when": {"stage": "rc", "target": requirements()[0]}, "text": '{"covered": true}'},
        {"when": {"stage": "rc", "target": requirements()[1]}, "text": "hm"},
    )
    play(write_suite(folder, 2), script, folder / "run")
    return RunStore.read(folder / "run")


@pytest.fixture(scope="module")
def evidence(made):
    return score(made, package=package())


def decided(folder, made, evidence, *thresholds):
    path = write(folder, of(*thresholds), f"t{len(list(folder.iterdir()))}.yaml")
    lock(path, now=EARLY)
    return decide(path, evidence, made)


# -- met, not met, undecided ---------------------------------------------------------------------


@settings(max_examples=200)
@given(st.lists(st.sampled_from([0, 1, None]), min_size=1, max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_a_threshold_is_decided_exactly_where_no_filling_could_turn_it(values, least, most):
    """Against every way in which the missing verdicts could have come out."""
    n = len(values)
    at_least, at_most = least / n, most / n
    shares = [sum(f) / n for f in itertools.product(*[[v] if v is not None else [0, 1] for v in values])]
    found = outcome_of(min(shares), max(shares), at_least, at_most)
    fine = [at_least - 1e-9 <= s <= at_most + 1e-9 for s in shares]
    one_side = all(s < at_least - 1e-9 for s in shares) or all(s > at_most + 1e-9 for s in shares)
    assert (found == "met") == all(fine) and (found == "not-met") == one_side


@pytest.mark.parametrize(
    ("threshold", "outcome"),
    [
        ({"measure": "RC", "at_least": 1 / 25}, "met"),
        ({"measure": "RC", "at_least": 0.05}, "undecided"),
        ({"measure": "RC", "at_least": 2 / 25}, "undecided"),
        ({"measure": "RC", "at_least": 0.09}, "not-met"),
        ({"measure": "RC", "at_most": 0.08}, "met"),
        ({"measure": "RC", "at_most": 0.05}, "undecided"),
        ({"measure": "RC", "at_least": 0.02, "at_most": 0.03}, "not-met"),
        ({"measure": "FDR_e", "at_least": 0.1}, "not-met"),
        ({"measure": "FDR_e", "at_least": 0.1, "decided_by": "interval"}, "undecided"),
        ({"measure": "FDR_e", "at_least": 0.6, "decided_by": "interval"}, "not-met"),
        ({"measure": "Delta", "at_most": 0.0}, "met"),
        ({"measure": "ISS", "at_least": 3.5}, "not-met"),
        ({"measure": "AC", "at_most": 0.0}, "met"),
    ],
)
def test_measures_against_thresholds(tmp_path, made, evidence, threshold, outcome):
    decision = decided(tmp_path, made, evidence, threshold)
    assert [r["outcome"] for r in decision["results"]] == [outcome] and decision["outcome"] == outcome
    assert exit_code(decision) == {"met": 0, "not-met": 1, "undecided": 4}[outcome]
    jsonschema.validate(decision, class_schema("Decision"))
    json.dumps(decision, allow_nan=False)


def test_the_interval_is_exact_and_holds_what_is_missing(tmp_path, made, evidence):
    threshold = {"measure": "RC", "at_least": 0.5, "decided_by": "interval"}
    result = decided(tmp_path, made, evidence, threshold)["results"][0]
    assert result["low"] == pytest.approx(clopper_pearson(1, 25)[0])
    assert result["high"] == pytest.approx(clopper_pearson(2, 25)[1])


def test_named_targets(tmp_path, made, evidence):
    covered, unknown, no = requirements()[0], requirements()[1], requirements()[2]
    for targets, outcome in (([covered], "met"), ([covered, unknown], "undecided"), ([unknown, no], "not-met")):
        decision = decided(tmp_path, made, evidence, {"measure": "covered", "targets": targets})
        assert decision["outcome"] == outcome
    result = decided(tmp_path, made, evidence, {"measure": "exposed-design", "targets": faults()[:2]})["results"][0]
    assert (result["low"], result["high"], result["outcome"]) == (0, 0, "not-met") and faults()[0] in result["reason"]


def test_one_that_is_not_met_outweighs_what_is_undecided(tmp_path, made, evidence):
    undecided, not_met = {"measure": "RC", "at_least": 0.05}, {"measure": "FDR_e", "at_least": 0.1}
    assert decided(tmp_path, made, evidence, undecided, {"measure": "AC", "at_most": 1})["outcome"] == "undecided"
    assert decided(tmp_path, made, evidence, undecided, not_met)["outcome"] == "not-met"


def test_a_run_that_has_not_ended_decides_what_it_can(tmp_path, made):
    """What is still to be judged counts as missing."""
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "run.json").write_bytes((made.folder / "run.json").read_bytes())
    (folder / "journal.jsonl").write_bytes(b"")
    store = RunStore.read(folder)
    decision = decided(tmp_path, store, score(store, package=package()), {"measure": "RC", "at_least": 0.5})
    assert decision["outcome"] == "undecided" and decision["results"][0]["observed"] is None


# -- fixed before --------------------------------------------------------------------------------


def test_a_lock_is_added_once_and_keeps_the_text(tmp_path):
    path = write(tmp_path)
    held = lock(path, now=EARLY)
    assert path.read_text(encoding="utf-8").startswith(TEXT)
    assert held.lock == {"at": "2020-01-02T03:04:05Z", "sha256": held.sha256} and not held.changed
    before = path.read_bytes()
    assert lock(path).lock == held.lock and path.read_bytes() == before
    # Comments and layout may change, words may not.
    text = path.read_text(encoding="utf-8").replace("  # exposure", "")
    path.write_text("# another comment\n" + text, encoding="utf-8")
    assert not read(path).changed
    path.write_text(path.read_text(encoding="utf-8").replace("0.02", "0.01"), encoding="utf-8")
    assert read(path).changed
    with pytest.raises(InputError, match="changed after they were locked") as caught:
        lock(path)
    assert caught.value.code == "U221" and ":14:" in caught.value.place
    again = lock(path, again=True)
    assert not again.changed and again.lock["at"] > held.lock["at"]
    assert path.read_text(encoding="utf-8").count("lock:") == 1


@settings(max_examples=50)
@given(st.sampled_from(list(RANGES)), st.integers(0, 100), st.text("abc '\"#:\né", max_size=12), st.booleans())
def test_any_file_survives_its_lock(tmp_path_factory, measure, percent, why, as_json):
    """Locked, a file says what it said, and its hash is over that alone."""
    low, high = RANGES[measure]
    threshold = {"measure": measure, "at_least": low + (high - low) * percent / 100, "why": why}
    value = {"id": "t", "thresholds": [threshold]}
    text = json.dumps(value) if as_json else yaml.safe_dump(value, allow_unicode=True)
    path = write(tmp_path_factory.mktemp("any"), text, "t.json" if as_json else "t.yaml")
    held = lock(path)
    assert {k: v for k, v in held.value.items() if k != "lock"} == value
    assert held.lock["sha256"] == content_hash(value)


def test_a_lock_that_cannot_be_added_leaves_the_file(tmp_path):
    path = write(tmp_path, "{id: t, thresholds: [{measure: RC, at_least: 0.5}]}\n")
    with pytest.raises(InputError) as caught:
        lock(path)
    assert caught.value.code == "U222" and path.read_text(encoding="utf-8").startswith("{id")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_lock_that_cannot_be_written_is_said(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    path = write(folder)
    folder.chmod(0o500)
    try:
        with pytest.raises(EnvironmentProblem):
            lock(path)
    finally:
        folder.chmod(0o700)


def run_with(folder, thresholds, name="run", **options):
    return play(write_suite(folder, 1), write_script(folder), folder / name, require=thresholds, **options)


def test_a_run_records_the_hash_and_the_decision_says_so(tmp_path):
    path = write(tmp_path)
    lock(path, now=EARLY)
    store = run_with(tmp_path, path)
    held = read(path)
    assert json.loads((store.folder / "run.json").read_text(encoding="utf-8"))["preregistration"] == held.lock
    decision = decide(path, score(store, package=package()), store)
    assert decision["fixed"] == "recorded" and exit_code(decision) in (0, 1)

    # Changed: shown, and its outcome does not count.
    path.write_text(path.read_text(encoding="utf-8").replace("0.02", "0"), encoding="utf-8")
    decision = decide(path, score(store, package=package()), store)
    assert (decision["fixed"], exit_code(decision)) == ("changed", NOT_FIXED)
    assert decision["sha256"] != decision["lock"]["sha256"] and "CHANGED" in as_text(decision)
    # Locked anew: no longer what the run recorded, even with an old date on it.
    lock(path, again=True, now=EARLY)
    decision = decide(path, score(store, package=package()), store)
    assert (decision["fixed"], exit_code(decision)) == ("other", NOT_FIXED)


def test_without_a_record_the_dates_speak(tmp_path, made, evidence):
    path = write(tmp_path)
    assert decide(path, evidence, made)["fixed"] == "unlocked"
    started = datetime.fromtimestamp((made.folder / "run.json").stat().st_mtime, UTC)
    for shift, fixed, code in ((-60, "before", {0, 1}), (60, "afterwards", {NOT_FIXED})):
        path = write(tmp_path)
        lock(path, now=started + timedelta(seconds=shift))
        decision = decide(path, evidence, made)
        assert decision["fixed"] == fixed and exit_code(decision) in code
    assert "after the run started" in decision["reason"] and "FIXED AFTERWARDS" in as_text(decision)


def test_a_run_takes_only_what_is_fixed(tmp_path):
    path = write(tmp_path)
    with pytest.raises(InputError, match="not locked") as caught:
        run_with(tmp_path, path)
    assert caught.value.code == "U220" and not (tmp_path / "run").exists()
    lock(path)
    path.write_text(path.read_text(encoding="utf-8").replace("0.02", "0.5"), encoding="utf-8")
    with pytest.raises(InputError, match="changed"):
        run_with(tmp_path, path)
    for text, words in (
        (TEXT.replace("suite: tiny", "suite: other"), "suite 'other'"),
        (TEXT.replace("cell: insurance-us", "cell: banking-vn"), "cell 'banking-vn'"),
        (of({"measure": "covered", "targets": ["insurance-us-r99"]}), "insurance-us-r99"),
        (of({"measure": "exposed-design", "targets": [requirements()[0]]}), requirements()[0]),
    ):
        path = write(tmp_path, text)
        lock(path)
        with pytest.raises(InputError) as caught:
            run_with(tmp_path, path)
        assert caught.value.code == "U223" and words in str(caught.value) and f"{path}:" in caught.value.place


def test_a_run_goes_on_only_with_its_thresholds(tmp_path):
    path = write(tmp_path)
    lock(path, now=EARLY)
    run_with(tmp_path, path)
    run_with(tmp_path, path)  # the same words: nothing to do
    run_with(tmp_path, None)  # without them it goes on, and keeps what it recorded
    assert RunStore.read(tmp_path / "run").manifest["preregistration"]["at"] == "2020-01-02T03:04:05Z"
    other = write(tmp_path, TEXT.replace("0.02", "0.01"), "other.yaml")
    lock(other)
    with pytest.raises(InputError, match="the thresholds changed"):
        run_with(tmp_path, other)
    run_with(tmp_path, None, "plain")
    with pytest.raises(InputError, match="started without thresholds"):
        run_with(tmp_path, path, "plain")


# -- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "1:1", "empty"),
        ("id: t\nthresholds: []\n", "2:13", "empty"),
        ("id: t\nthresholds:\n  - measure: RC\n", "3:5", "nothing is asked"),
        ("id: t\nthresholds:\n  - measure: rc\n    at_least: 1\n", "3:14", "'rc' is not one of"),
        ("id: t\nthresholds:\n  - measure: RC\n    at_least: 80\n", "4:15", "between 0 and 1"),
        ("id: t\nthresholds:\n  - measure: RC\n    atleast: 0.8\n", "4:5", "unknown key"),
        ("id: t\nthresholds:\n  - measure: RC\n    at_least: '0.8'\n", "4:15", "a text where"),
        ("id: t\nthresholds:\n  - measure: RC\n    at_least: 0.9\n    at_most: 0.8\n", "5:14", "nothing can meet both"),
        ("id: t\nthresholds:\n  - measure: ISS\n    at_least: 3\n    decided_by: interval\n", "5:17", "no interval"),
        ("id: t\nthresholds:\n  - measure: covered\n", "3:5", "names no targets"),
        ("id: t\nthresholds:\n  - measure: covered\n    targets: [a]\n    at_least: 1\n", "5:15", "takes no number"),
        ("id: t\nthresholds:\n  - measure: covered\n    targets: [a, a]\n", "4:14", "twice"),
        ("id: t\nthresholds:\n  - measure: RC\n    at_least: 1\n    targets: [a]\n", "5:14", "names none"),
        ("id: t\nthresholds:\n  - measure: RC\n    at_least: .nan\n", "4:15", "a text where"),
        ("id: t\nid: u\nthresholds: []\n", "2:1", "twice"),
        (TEXT + "lock:\n  at: '2020-13-01T00:00:00Z'\n  sha256: '" + "0" * 64 + "'\n", "12:7", "no time"),
    ],
)
def test_what_is_wrong_has_its_place(tmp_path, text, place, words):
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        lock(path)
    assert words in str(caught.value) and caught.value.place == f"{path}:{place}"
    if text:
        report = regatta_tools.validate(path)
        assert not report.ok and any(f.place() == f"{path}:{place}" for f in report.findings)


def test_regatta_validate_knows_thresholds(tmp_path):
    path = write(tmp_path)
    report = regatta_tools.validate(path)
    assert report.ok and report.records == 2
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "none.yaml")


# -- the command ---------------------------------------------------------------------------------


def test_from_lock_to_exit_code(tmp_path, monkeypatch):
    """The way of a CI: lock, run, score; each outcome leaves with its own code."""
    monkeypatch.chdir(ROOT)
    runner = CliRunner()
    suite, script = write_suite(tmp_path, 1), write_script(tmp_path)
    who = f"scripted:{script}"
    for number, (threshold, code) in enumerate(
        [
            ({"measure": "RC", "at_most": 0.5}, 0),
            ({"measure": "RC", "at_least": 0.5}, 1),
            ({"measure": "FDR_e", "at_least": 0.3, "decided_by": "interval"}, 4),
        ]
    ):
        path = write(tmp_path, of(threshold), f"t{number}.yaml")
        done = runner.invoke(cli, ["require", "lock", str(path)])
        assert done.exit_code == 0 and "sha256" in done.output
        folder = str(tmp_path / f"run{number}")
        words = ["run", str(suite), "--cell", CELL, "--judge", who, "--agent", who, "--out", folder]
        done = runner.invoke(cli, [*words, "--require", str(path)])
        assert done.exit_code == 0 and f"--require {path}" in done.output
        done = runner.invoke(cli, ["score", folder, "--require", str(path)])
        assert done.exit_code == code and "fixed before the run" in done.output
        done = runner.invoke(cli, ["score", folder, "--require", str(path), "--format", "json"])
        assert done.exit_code == code
        evidence = json.loads(done.stdout)
        jsonschema.validate(evidence, class_schema("EvidenceVector"))
        assert evidence["decision"]["fixed"] == "recorded"
        assert runner.invoke(cli, ["score", folder]).exit_code == 0
    path.write_text(path.read_text(encoding="utf-8").replace("0.3", "0.0"), encoding="utf-8")
    done = runner.invoke(cli, ["score", folder, "--require", str(path)])
    assert done.exit_code == NOT_FIXED and "CHANGED SINCE THEY WERE LOCKED" in done.output
    for code in (*map(str, (0, 1, 4, 5)),):
        assert code in runner.invoke(cli, ["score", "--help"]).output


@pytest.mark.parametrize("columns", [40, 200])
def test_text_fits(monkeypatch, tmp_path, made, evidence, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    named = {"measure": "covered", "targets": requirements()[:9]}
    decision = decided(tmp_path, made, evidence, {"measure": "RC", "at_least": 0.05}, named)
    text = as_text(decision)
    assert max(map(len, text.splitlines())) <= columns
    flat = " ".join(text.split())
    assert "UNDECIDED RC at least 0.05" in flat and "NOT MET" in flat
