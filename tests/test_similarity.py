"""The similarity baseline: what it reads, that it judges one pair at a time, and that its thresholds are fitted."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

import regatta_tools
from regatta_tools.harness import similarity
from regatta_tools.suites.reader import Turn, load_suite

ROOT = Path(__file__).resolve().parents[1]
CELL = "insurance-us"


@pytest.fixture(scope="module")
def cell():
    return regatta_tools.load(ROOT).cell(CELL)


@pytest.fixture(scope="module")
def suite():
    return load_suite(ROOT / "examples" / "suites" / f"{CELL}-claims.yaml")


def test_a_score_lies_between_nothing_and_the_target_itself(cell, suite):
    baseline = similarity.Baseline(cell)
    requirement = cell.requirements[0]
    whole = dataclasses.replace(suite.scenarios[0], turns=(Turn("user", similarity.requirement_text(requirement)),))
    nothing = dataclasses.replace(suite.scenarios[0], context=None, expected=None, turns=(Turn("user", "xyzzy"),))
    assert baseline.score(whole, requirement.key) == pytest.approx(1.0)
    assert baseline.score(nothing, requirement.key) == 0.0
    assert all(0 <= baseline.score(s, r.key) <= 1 for s in suite.scenarios for r in cell.requirements)


def test_a_score_does_not_depend_on_other_scenarios_or_their_order(cell, suite):
    forward, backward = similarity.Baseline(cell), similarity.Baseline(cell)
    pairs = [(s, t.key) for s in suite.scenarios[:8] for t in (*cell.requirements[:5], *cell.faults)]
    there = {(s.id, t): forward.score(s, t) for s, t in pairs}
    back = {(s.id, t): backward.score(s, t) for s, t in reversed(pairs)}
    assert there == back and len(set(there.values())) > 10


def test_claims_and_ids_are_not_read(cell, suite):
    baseline = similarity.Baseline(cell)
    for scenario in suite.scenarios:
        other = dataclasses.replace(
            scenario, id="renamed", claims=(("regulation", similarity.fault_text(cell.faults[0])),)
        )
        assert similarity.scenario_text(other) == similarity.scenario_text(scenario)
        assert baseline.score(other, cell.faults[0].key) == baseline.score(scenario, cell.faults[0].key)


def test_the_thresholds_are_those_that_the_calibration_suite_gives(cell):
    """Fitting again gives the stored file: nobody can tune a threshold by hand, or on the suite that is measured."""
    code = "import runpy, json; m = runpy.run_path('bench/embedded_judges.py'); print(json.dumps(m['fit']()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert json.loads(done.stdout) == similarity.thresholds()
