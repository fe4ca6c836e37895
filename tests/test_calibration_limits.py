"""`regatta calibrate` over several cells: one limit for all of them, and failed calls asked once more."""

from __future__ import annotations

import json
import os

import pytest
import scripted_runs as runs
from click.testing import CliRunner

from regatta_tools.cli.main import cli
from regatta_tools.errors import EnvironmentProblem
from regatta_tools.harness.calibration import calibrate, gold_pairs


@pytest.fixture(autouse=True)
def no_disk_waits(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def two():
    """Two cells with gold probes, and how many design pairs each has."""
    package = runs.package()
    pairs = {c.key: sum(g.stage == "design" for g in gold_pairs(package.cell(c.key))) for c in package.table("cells")}
    found = [(cell, n) for cell, n in pairs.items() if n][:2]
    assert len(found) == 2
    return found


def calls(folder):
    lines = [line for f in folder.rglob("journal.jsonl") for line in f.read_text(encoding="utf-8").splitlines()]
    return sum('"e":"call"' in line for line in lines)


def test_a_limit_of_calls_holds_for_all_cells_together(two, tmp_path):
    (first, n), (second, m) = two
    options = {"cells": [first, second], "stages": ["design"], "package": runs.package(), "folder": tmp_path / "c"}
    judge = f"scripted:{runs.write_script(tmp_path)}"
    for most in (n + 3, n + 5):
        with pytest.raises(EnvironmentProblem) as stopped:
            calibrate(judge, **options, max_calls=most)
        assert stopped.value.code == "E312" and calls(tmp_path / "c") == most
    found = calibrate(judge, **options, max_calls=n + m)
    assert calls(tmp_path / "c") == n + m
    whole = next(p for p in found["parts"] if "cell" not in p and "language" not in p and "near_miss" not in p)
    # A judge that always says no: nothing that is there is seen, and all that is not there is let be.
    assert whole["sensitivity"]["value"] == 0.0 and whole["specificity"]["value"] == 1.0
    assert whole["labelled_pairs"] + whole["contested"] == n + m and whole["missing_verdicts"] == []


def test_failed_calls_are_missing_until_they_are_asked_again(two, tmp_path):
    cell, n = two[0]
    script = runs.write_script(tmp_path, {"when": {"stage": "design"}, "outcome": "failed", "error": "cut"})
    words = ["calibrate", "--judge", f"scripted:{script}", "--cell", cell, "--stage", "design", "--format", "json",
             "--folder", str(tmp_path / "c"), "--package", str(runs.ROOT)]  # fmt: skip

    def part(*more):
        done = CliRunner().invoke(cli, [*words, *more])
        assert done.exit_code == 0, done.output
        return next(p for p in json.loads(done.stdout)["parts"] if "near_miss" not in p and "language" not in p)

    lost = part()
    assert lost["sensitivity"]["value"] is None
    assert lost["missing_verdicts"] == [{"outcome": "failed", "verdict_count": lost["labelled_pairs"]}]
    assert part() == lost and calls(tmp_path / "c") == n
    assert part("--retry-failed") == lost and calls(tmp_path / "c") == 2 * n
