"""Verdicts in one tidy form: from tables, runs and the archive; what is wrong is told with file and line."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess

import pandas as pd
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import faults, play, regatta, requirements, write_script, write_suite
from verdict_tables import CATEGORIES, CELL, FAULTS, REQUIREMENTS, TARGETS, row, suite_rows, write

import regatta_tools
from regatta_tools.errors import InputError
from regatta_tools.measures import archive, records
from regatta_tools.measures.population import population
from regatta_tools.measures.records import RecordProblem, from_runs, from_table
from regatta_tools.tables.model import enum_values

FAULT = next(iter(FAULTS))


def lists(held):
    """The rows of records as lists of texts, empty where nothing stands."""
    frame = held.frame.copy()
    for name in frame:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), "").map(str)
    return frame.to_numpy().tolist()


# The form


def test_a_record_says_every_outcome_of_a_verdict_and_pending():
    assert enum_values("RecordOutcome") == (*enum_values("VerdictOutcome"), "pending")


def test_what_counts_as_missing_is_all_that_carries_no_verdict():
    from regatta_tools.measures.evidence import MISSING
    from regatta_tools.measures.population import CARRY

    assert set(enum_values("RecordOutcome")) == {*CARRY, *MISSING, "pending"}


def test_a_table_comes_back_as_it_was_written(tmp_path):
    rows = [row(), row(stage="execution", draw=2), row(stage="iss"), row(stage="ac", value="role-confusion"),
            row(stage="rc", run="run-2", strategy="NA", generator="nan", repeat=3, judge="NaN Infinity BaNaNa"),
            row(stage="ac", target=CATEGORIES[0], scenario="", outcome="positive", value="")]  # fmt: skip
    held = from_table(write(tmp_path / "a.csv", rows))
    held.to_csv(tmp_path / "b.csv")
    again = from_table(tmp_path / "b.csv")
    assert lists(again) == lists(held)
    assert held.frame.loc[4, "strategy"] == "NA" and held.frame.loc[4, "generator"] == "nan"
    assert held.frame.loc[4, "judge"] == "NaN Infinity BaNaNa" and held.frame.loc[1, "draw"] == 2
    assert held.frame.loc[0, "repeat"] == 0 and held.frame.loc[4, "repeat"] == 3


def test_columns_stand_in_any_order_and_optional_ones_may_be_left_out(tmp_path):
    header = ["outcome", "judge", "draw", "target", "stage", "cell", "suite", "run"]
    held = from_table(write(tmp_path / "a.csv", [row(scenario="")], header))
    assert held.frame.loc[0, "target"] == FAULT and held.frame["scenario"].isna().all()


@given(st.data())
@settings(max_examples=12)
def test_quoted_and_bare_tables_are_read_alike(tmp_path, data):
    """Quoted tables take the slow reader, bare ones the compiled one."""
    name = st.text("abcXYZ019._-", min_size=1, max_size=6).map(lambda t: f"x{t}")
    judge = st.text("abc é ạ/1.0", min_size=1, max_size=8).map(lambda t: f"j{t}j")
    rows = [
        row(data.draw(name), scenario=f"s{i}", judge=data.draw(judge), repeat=data.draw(st.sampled_from(["", 1, 7])))
        for i in range(data.draw(st.integers(1, 6)))
    ]
    rows = [r | {"run": f"r{i}"} for i, r in enumerate(rows)]
    bare = write(tmp_path / "bare.csv", rows)
    quoted = tmp_path / "quoted.csv"
    with bare.open(encoding="utf-8", newline="") as one, quoted.open("w", encoding="utf-8", newline="") as two:
        csv.writer(two, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(csv.reader(one))
    assert lists(from_table(bare)) == lists(from_table(quoted))


def test_blocks_end_where_rows_end(tmp_path, monkeypatch):
    rows = [row(scenario=f"s{i}", judge=f'a "quoted"\njudge {i % 3}' if i % 2 else "m") for i in range(60)]
    whole = from_table(write(tmp_path / "a.csv", rows))
    monkeypatch.setattr(records, "BLOCK", 64)
    assert lists(from_table(tmp_path / "a.csv")) == lists(whole)


def test_a_line_is_the_physical_one_through_breaks_in_cells(tmp_path, monkeypatch):
    rows = [row(scenario=f"s{i}", judge="two\nlines") for i in range(9)]
    rows[8]["target"] = "study-fintech-us-f9"
    for block in (1 << 20, 64):
        monkeypatch.setattr(records, "BLOCK", block)
        with pytest.raises(RecordProblem) as caught:
            from_table(write(tmp_path / "a.csv", rows))
        assert caught.value.findings[0].line == 2 + 8 * 2


def test_parquet_is_read_like_csv(tmp_path):
    pytest.importorskip("pyarrow")
    rows = [row(), row(stage="execution", repeat=2), row("b", repeat=1)]
    rows[0]["repeat"] = rows[1]["repeat"]
    frame = pd.DataFrame([{k: v for k, v in r.items() if v != ""} for r in rows])
    assert frame["value" if "value" in frame else "arm"].isna().any()
    frame.to_parquet(tmp_path / "a.parquet")
    assert lists(from_table(tmp_path / "a.parquet")) == lists(from_table(write(tmp_path / "a.csv", rows)))
    (tmp_path / "no.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match="no Parquet"):
        from_table(tmp_path / "no.parquet")


def test_targets_may_be_ones_own(tmp_path):
    rows = [row(cell="tax-fr", target="tax-fr-f1", fault_class="threshold"),
            row(cell="tax-fr", target="tax-fr-f2"), row(stage="rc", cell="tax-fr", target="tax-fr-r1")]  # fmt: skip
    path = write(tmp_path / "a.csv", rows)
    with pytest.raises(RecordProblem, match="--any-target"):
        from_table(path)
    held = from_table(path, any_target=True).targets["tax-fr"]
    assert held.faults == {"tax-fr-f1": "threshold", "tax-fr-f2": None} and held.requirements == ["tax-fr-r1"]


# What is wrong

OTHER = TARGETS["insurance-us"].requirements[0]
WRONG = {
    "unknown requirement": ([row(stage="rc", target="study-fintech-us-r99")], "U203", 2, "unknown requirement"),
    "unknown fault": ([row(), row(target=REQUIREMENTS[0])], "U203", 3, "unknown fault"),
    "unknown cell": ([row(), row(cell="tax-fr", target="tax-fr-f1")], "U203", 3, "the cell 'tax-fr' is not known"),
    "target of another cell": ([row(stage="rc", target="insurance-us-r01")], "U205", 2, "cells are mixed"),
    "the same verdict": ([row(), row("b"), row()], "U204", 4, "stands on line 2"),
    "the same verdict, other outcome": ([row(), row(outcome="positive")], "U204", 3, "stands on line 2"),
    "two judges": ([row(), row(judge="n")], "U207", 3, "another judge"),
    "a run with two suites": ([row(), row("b", run="run-a")], "U205", 3, "mixes suites"),
    "a run with two cells": (
        [row(), row(cell="insurance-us", stage="rc", target=OTHER)], "U205", 3, "mixes cells",
    ),
    "a suite that changed": (
        [row(suite_hash="a" * 64), row(run="run-2", scenario="s2", suite_hash="b" * 64)], "U206", 3, "changed",
    ),
    "no such outcome": ([row(outcome="yes")], "U201", 2, "outcome is 'yes'"),
    "draw 0": ([row(draw=0)], "U201", 2, "draw is '0'"),
    "draw 1.0": ([row(draw="1.0")], "U201", 2, "draw is '1.0'"),
    "no judge": ([row(judge="")], "U201", 2, "judge is empty"),
    "no target": ([row(target="")], "U202", 2, "target is missing"),
    "no arm": ([row(stage="execution", arm="")], "U202", 2, "arm is missing"),
    "an arm at design": ([row(arm="joint")], "U202", 2, "only the execution stage"),
    "rated at design": ([row(outcome="rated", value="3")], "U202", 2, "rated is no outcome"),
    "iss of 6": ([row(stage="iss", value="6")], "U202", 2, "from 1 to 5"),
    "ac of nothing known": ([row(stage="ac", value="magic")], "U202", 2, "category is none of"),
    "an answer of the agent": ([row(stage="agent", target="", arm="")], "U202", 2, "no verdict"),
    "class and fault": ([row(fault_class="metric-error")], "U202", 2, "has the class threshold"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path, name):
    rows, code, line, words = WRONG[name]
    path = write(tmp_path / "a.csv", rows)
    with pytest.raises(RecordProblem) as caught:
        from_table(path, package=ROOT)
    found = [f for f in caught.value.findings if f.code == code]
    assert [(f.line, f.file) for f in found] == [(line, str(path))], caught.value
    assert words in found[0].message and found[0].severity == "error"


FILES = {
    "no file": (None, "cannot be read"),
    "nothing": (b"", "header"),
    "a header alone": (b"run,suite,cell,stage,target,draw,judge,outcome\n", "there are no verdicts"),
    "semicolons": (b"run;suite;cell;stage;target;draw;judge;outcome\na;b\n", "comma"),
    "a column that nobody knows": (b"run,suite,cell,stage,target,draw,judge,outcome,colour\n", "unknown: 'colour'"),
    "a column too few": (b"run,suite,cell,stage,target,draw,judge\n", "missing: outcome"),
    "a row too short": (b"run,suite,cell,stage,target,draw,judge,outcome\na,b\n", ":2"),
    "no UTF-8": (b"run,suite,cell,stage,target,draw,judge,outcome\na,b,c,d,e,1,\xff,positive\n", "not UTF-8"),
    "an open quote": (b'run,suite,cell,stage,target,draw,judge,outcome\na,b,c,d,e,1,"m,positive\n', "never closes"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_tables_of_verdicts(tmp_path, name):
    raw, words = FILES[name]
    path = tmp_path / "a.csv"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(InputError) as caught:
        from_table(path)
    assert words in str(caught.value) and "a.csv" in str(caught.value) and caught.value.exit_code == 2


def test_many_faults_of_one_kind_are_counted(tmp_path):
    rows = [row(scenario=f"s{i}", outcome="yes") for i in range(40)]
    with pytest.raises(RecordProblem, match=r"(?s)40 findings.*and 35 more") as caught:
        from_table(write(tmp_path / "a.csv", rows))
    assert len(caught.value.findings) == records.MOST_ALIKE


def test_one_of_two_judges_is_chosen(tmp_path):
    path = write(tmp_path / "a.csv", [row(), row(judge="n", outcome="positive"), row("b", judge="n")])
    assert lists(from_table(path, judges=["n"])) == [r for r in lists_of(path) if "n" in r]
    with pytest.raises(InputError, match="no verdict is by the judge 'x'"):
        from_table(path, judges=["x"])


def lists_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    at = records.columns().index("repeat")
    return [[*r[:at], r[at] or "0", *r[at + 1 :]] for r in rows]


def test_the_command_tells_findings_and_leaves_with_2(tmp_path):
    path = write(tmp_path / "a.csv", [row(), row(), row("b", target="study-fintech-us-f9")])
    done = regatta("diagnose", "--records", str(path), "--output", str(tmp_path / "out.txt"))
    assert done.returncode == 2 and not (tmp_path / "out.txt").exists()
    assert f"{path}:3: the same verdict stands on line 2 [U204]" in done.stderr
    assert f"{path}:4: unknown fault 'study-fintech-us-f9'" in done.stderr and "mend:" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing was named"),
        (["runs/x", "--records", "y.csv"], "more than one kind"),
        (["no/such/run"], "holds no run"),
    ],
)
def test_what_to_diagnose_is_said_once(words, said):
    done = regatta("diagnose", *words)
    assert done.returncode == 2 and said in done.stderr and done.stdout == ""


# Run stores


def yes(stage, *targets):
    answer = {"rc": "covered", "design": "exposed", "execution": "manifested"}[stage]
    return [{"when": {"stage": stage, "target": t}, "text": json.dumps({answer: True})} for t in targets]


def test_a_run_says_in_records_what_it_says_in_its_score(tmp_path):
    suite = write_suite(tmp_path, 2)
    refused = {"when": {"stage": "design", "target": faults()[1]}, "text": "no idea at all"}
    script = write_script(tmp_path, *yes("rc", *requirements()[:10]), *yes("execution", faults()[2]), refused)
    store = play(suite, script, tmp_path / "run")
    held = from_runs([tmp_path / "run"], package=ROOT)
    evidence = regatta_tools.score(store)
    people = population(held)
    result = regatta_tools.diagnose(records=held, resamples=200)["suites"][0]
    for name, value in evidence["measures"].items():
        if name != "undefined":
            assert result[name] == pytest.approx(value), name
            assert result["bounds"][name] == pytest.approx(list(evidence["bounds"][name].values())), name
    for stage in evidence["outcomes"]:
        counts = {k.replace("_", "-"): v for k, v in stage.items() if k != "stage" and v}
        assert {k: v for k, v in people.outcomes[stage["stage"]].items() if v} == counts


def test_a_run_that_was_broken_off_has_pending_verdicts(tmp_path):
    play(write_suite(tmp_path, 2), write_script(tmp_path), tmp_path / "run")
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:40]))
    held = from_runs([tmp_path / "run"], package=ROOT)
    pending = int((held.frame["outcome"] == "pending").sum())
    assert pending and any(f"{pending} judgement(s) are still to be made" in note for note in held.notes)
    result = regatta_tools.diagnose(records=held, resamples=200)
    assert result["V3"]["unstated"]["alpha"] is None and result["V3"]["unstated"]["bounds"]["alpha"] == [0, 1]


def test_runs_that_do_not_go_together_are_refused(tmp_path):
    script = write_script(tmp_path)
    play(write_suite(tmp_path, 1), script, tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    with pytest.raises(RecordProblem, match="the same seed: a copy") as caught:
        from_runs([tmp_path / "one", tmp_path / "copy"], package=ROOT)
    assert caught.value.findings[0].code == "U204" and caught.value.exit_code == 2
    play(write_suite(tmp_path, 2), script, tmp_path / "two")
    with pytest.raises(RecordProblem, match="has another hash than in the run 'one': it changed") as caught:
        from_runs([tmp_path / "one", tmp_path / "two"], package=ROOT)
    assert caught.value.findings[0].code == "U206" and "two" in caught.value.findings[0].file
    play(write_suite(tmp_path, 1), script, tmp_path / "three", answers="per-scenario", seed=4)
    with pytest.raises(RecordProblem, match="other settings"):
        from_runs([tmp_path / "one", tmp_path / "three"], package=ROOT)


def test_another_seed_is_another_draw_and_gives_the_upper_bound(tmp_path):
    suite = write_suite(tmp_path, 1)
    play(suite, write_script(tmp_path, *yes("execution", faults()[0])), tmp_path / "one")
    # The script is part of what a run is made with, so the second draw differs by its answers alone.
    first = (tmp_path / "one" / "journal.jsonl").read_text(encoding="utf-8")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    run = json.loads((tmp_path / "two" / "run.json").read_text(encoding="utf-8"))
    (tmp_path / "two" / "run.json").write_text(json.dumps(run | {"id": "two", "seed": 2}), encoding="utf-8")
    swapped = [
        json.dumps(json.loads(line) | {"outcome": "positive"}) if f'"execution","target":"{faults()[1]}"' in line
        and '"e":"verdict"' in line else line for line in first.splitlines()
    ]  # fmt: skip
    (tmp_path / "two" / "journal.jsonl").write_text("\n".join(swapped) + "\n", encoding="utf-8")
    result = regatta_tools.diagnose(runs=[tmp_path / "one", tmp_path / "two"], package=ROOT, resamples=200)
    v = result["V3"]["unstated"]
    # Design says no to all five; the first draw shows one fault, the second two of which one is the same.
    assert v["draws"] == 2 and v["pairs"] == 10 and len(result["suites"]) == 1
    assert v["upper"]["draws_differ"] == pytest.approx(1 / 5)
    assert v["upper"]["value"] == pytest.approx((1 / 5 + 2 / 5) / 2 - 1 / 5)


def test_a_file_says_how_the_suites_of_runs_were_made(tmp_path):
    for name in ("one", "two"):
        play(write_suite(tmp_path, 1, name=name), write_script(tmp_path), tmp_path / name)
    made = tmp_path / "suites.csv"
    made.write_text("suite,strategy,generator,repeat\none,S1,people,1\ntwo,S2,people,1\nthree,S1,,\n", encoding="utf-8")
    held = from_runs([tmp_path / "one", tmp_path / "two"], package=ROOT, suites=made)
    assert population(held).strategies == ["S1", "S2"] and population(held).generators == ["people"]
    assert any("no run has the suite three" in note for note in held.notes)
    made.write_text("suite,strategy,generator,repeat\none,S1,,\none,S2,,\n", encoding="utf-8")
    with pytest.raises(RecordProblem, match="stands twice"):
        from_runs([tmp_path / "one"], package=ROOT, suites=made)


# The archive


def test_the_mapping_names_every_target_of_the_study_once():
    names = archive.mapping()
    assert len(names["cells"]) == len(names["faults"]) == 5
    requirements_ = [r for t in TARGETS.values() for r in t.requirements]
    faults_ = [f for t in TARGETS.values() for f in t.faults]
    assert len(set(requirements_)) == 125 and len(set(faults_)) == 25
    for held in TARGETS.values():
        assert sorted(held.faults.values()) == sorted(enum_values("FaultClass"))
    assert sorted(names["categories"].values()) == sorted(enum_values("AdversarialCategory"))
    own = regatta_tools.load(ROOT).by_id
    assert not set(requirements_ + faults_) & set(own), "the study's ids must not be taken for ours"


@pytest.mark.shared
def test_the_archive_becomes_records_without_loss(shared, tmp_path):
    held = archive.from_archive(shared / "archive")
    counts = held.frame.groupby("stage", observed=True).size().to_dict()
    assert counts == {"rc": 180 * 25, "iss": 180 * 30, "ac": 180 * 6, "design": 900, "execution": 900}
    # Every class that the mapping gives a fault is the one that the archive's own rows give it.
    for name, group in held.frame.dropna(subset=["fault_class"]).groupby("target", observed=True):
        cell = group["cell"].iloc[0]
        assert set(group["fault_class"]) == {TARGETS[cell].faults[name]}
    held.to_csv(tmp_path / "a.csv")
    assert lists(from_table(tmp_path / "a.csv")) == lists(held)
    # The archive carries sums of its own, which ours must meet.
    raw = json.loads((shared / "archive/results-summary/fdr_results.json").read_text(encoding="utf-8"))
    result = {s["suite"]: s for s in regatta_tools.diagnose(records=held, resamples=100)["suites"]}
    for name, entry in raw.items():
        assert result[f"frontier-{name}"]["FDR_d"] == pytest.approx(entry["fdr_design"])
        assert result[f"frontier-{name}"]["FDR_e"] == pytest.approx(entry["fdr_execution"])


SPOILED = {
    "unknown id": ('"fault_id": "FT-F2"', '"fault_id": "FT-F7"', "unknown fault 'FT-F7' in a suite of fintech"),
    "id of another cell": ('"fault_id": "FT-F2"', '"fault_id": "IN-F2"', "unknown fault 'IN-F2'"),
    "fault twice": ('"fault_id": "FT-F2"', '"fault_id": "FT-F1"', "has the class"),
    "neither true nor false": ('"design_covered": true', '"design_covered": "yes"', "neither true nor false"),
    "no such suite": ('"G1_baseline_fintech_rep1"', '"G9_magic_fintech_rep1"', "is of no strategy"),
    "suite twice": ('"G1_baseline_fintech_rep2"', '"G1_baseline_fintech_rep1"', "stands twice"),
    "key missing": ('"stage_b"', '"stage_c"', "has not the form"),
    "no JSON": ("{", "[", "JSON"),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_archive_is_told_with_file_and_line(shared, tmp_path, name):
    folder = tmp_path / "results-summary"
    shutil.copytree(shared / "archive/results-summary", folder)
    old, new, words = SPOILED[name]
    file = folder / "fdr_results.json"
    text = file.read_text(encoding="utf-8")
    line = 2 if name == "key missing" else text[: text.index(old)].count("\n") + 1
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        archive.from_archive(tmp_path)
    assert words in str(caught.value) and caught.value.exit_code == 2
    if name != "no JSON":
        assert f"fdr_results.json:{line}" in str(caught.value)


def test_no_archive_is_told(tmp_path):
    done = regatta("diagnose", "--archive", str(tmp_path))
    assert done.returncode == 2 and "the archive has no such file" in done.stderr


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom regatta_tools.cli.main import main\n"
        "try:\n    main(['diagnose', '--help'])\nexcept SystemExit:\n    pass\n"
        "print('HEAVY', [m for m in ('numpy', 'pandas', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    words = [__import__("sys").executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_rows_of_suites_are_what_they_say(tmp_path):
    """The helper of the other tests: whole-suite verdicts by fault and draw."""
    rows = list(suite_rows("a", [1, 0, None, 0, 1], [[1, 1, 1, 0, 0], [0, 0, 0, 0, None]], rc=[1, 0]))
    block = population(from_table(write(tmp_path / "a.csv", rows))).blocks[0]
    assert block.design[0].tolist()[:2] == [1, 0] and block.execution.shape == (1, 5, 2)
    assert str(block.design[0][2]) == "nan" and block.execution[0, :, 1].tolist()[:4] == [0, 0, 0, 0]
    assert block.rc[0].tolist()[:2] == [1, 0] and block.cell == CELL
