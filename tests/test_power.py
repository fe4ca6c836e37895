"""Planning against simulation: variances are found again, and a difference is seen as often as the plan says."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.cli.power import power as command
from regatta_tools.errors import InputError
from regatta_tools.measures.power import (
    EFFECTS,
    MEASURES,
    SCOPES,
    Design,
    components,
    error,
    minimum_detectable,
    observations,
    power,
    power_of,
)
from regatta_tools.report.power import as_csv, as_text


def made(rng, variances, *, cells=2, targets=5, strategies=4, generators=3, repeats=3, draws=2, drop=0.0):
    """Data of the model, with normal effects of the given variances: (y, factors)."""
    rows = []
    for c, t, s, g, r, k in itertools.product(
        range(cells), range(targets), range(strategies), range(generators), range(repeats), range(draws)
    ):
        suite = ((c * strategies + s) * generators + g) * repeats + r
        rows.append((c, c * targets + t, s, g, suite, k))
    rows = np.array(rows)
    if drop:
        rows = rows[rng.random(len(rows)) > drop]
    factors = dict(zip(("cell", "target", "strategy", "generator", "suite", "draw"), rows.T))
    y = np.full(len(rows), 0.5)
    for effect, variance in variances.items():
        code = np.zeros(len(rows), int)
        for name in EFFECTS[effect]:
            code = code * (factors[name].max() + 1) + factors[name]
        y += rng.normal(0, math.sqrt(variance), code.max() + 1)[code]
    return y, factors


def estimates(y, factors):
    return components(y, factors, EFFECTS)


@pytest.mark.parametrize("drop", [0.0, 0.25])
def test_variances_are_found_again(drop):
    """The mean estimate over 40 data sets is the true variance, balanced or not: the method is unbiased."""
    truth = {"target": 0.06, "strategy-target": 0.03, "generator-target": 0.02, "suite": 0.02, "suite-target": 0.05,
             "draw": 0.08, "cell": 0.03, "strategy": 0.01}  # fmt: skip
    rng = np.random.default_rng(5)
    found = [estimates(*made(rng, truth, drop=drop)) for _ in range(40)]
    for effect in EFFECTS:
        values = np.array([f[effect] for f in found])
        assert abs(values.mean() - truth.get(effect, 0.0)) < 4 * values.std(ddof=1) / math.sqrt(40) + 1e-9, effect
    # Where there is much to learn from (360 suites and faults, two draws each), one data set comes near too.
    assert np.std([f["draw"] for f in found]) < 0.01


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 6))
def test_one_way_balanced_is_the_analysis_of_variance(seed, groups, size):
    """With one factor, symmetric sums are the textbook estimator: (MSB - MSW) / n, and MSW."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(groups, size)) + rng.normal(size=(groups, 1))
    factors = {"a": np.repeat(np.arange(groups), size), "unit": np.arange(groups * size)}
    found = components(y.ravel(), factors, {"a": ("a",), "rest": ("unit",)})
    within = ((y - y.mean(axis=1, keepdims=True)) ** 2).sum() / (groups * (size - 1))
    between = size * ((y.mean(axis=1) - y.mean()) ** 2).sum() / (groups - 1)
    assert found["rest"] == pytest.approx(within) and found["a"] == pytest.approx((between - within) / size)


def test_what_cannot_be_told_apart_is_said():
    rng = np.random.default_rng(1)
    y, factors = made(rng, {"suite-target": 1.0}, cells=1, generators=1, draws=1, strategies=4)
    found = estimates(y, factors)
    assert found["draw"] == "there is one draw" and found["cell"] == "there is one cell"
    assert found["strategy-generator"] == "there is one generator" and isinstance(found["suite-target"], float)
    y, factors = made(rng, {"suite-target": 1.0}, repeats=1, draws=1)
    found = estimates(y, factors)
    assert found["strategy-generator-cell"] == "it cannot be told from suite"
    assert found["strategy-generator-target"] == "it cannot be told from suite-target"
    one = {name: np.zeros(1, int) for name in factors}
    assert all(isinstance(v, str) for v in estimates(np.ones(1), one).values())
    none = {name: np.zeros(0, int) for name in factors}
    assert set(estimates(np.zeros(0), none).values()) == {"there are no verdicts"}


# -- power ---------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.floats(0.05, 2), st.floats(2, 200), st.sampled_from([0.9, 0.95, 0.99]))
def test_power_is_that_of_statsmodels(difference, df, level):
    """A t test of one mean with n = df + 1: the same noncentral t."""
    from statsmodels.stats.power import TTestPower

    oracle = TTestPower().power(difference, nobs=df + 1, alpha=1 - level, df=df)
    se = 1 / math.sqrt(df + 1)
    if not math.isnan(oracle):
        assert power_of(difference, se, df, level=level) == pytest.approx(oracle, abs=2e-4)


@settings(max_examples=40)
@given(st.floats(0.005, 0.3), st.floats(2, 300), st.sampled_from([0.5, 0.8, 0.95]), st.integers(1, 6))
def test_the_minimum_detectable_difference_has_the_power_asked(se, df, wanted, comparisons):
    found = minimum_detectable(se, df, power=wanted, comparisons=comparisons)
    assert power_of(found, se, df, comparisons=comparisons) == pytest.approx(wanted, abs=1e-6)
    assert power_of(0.0, se, df) == pytest.approx(0.05, abs=2e-4), "with no difference it is the error of the test"
    assert found >= minimum_detectable(se, df, power=wanted), "more comparisons ask for more"


def t_test(y, factors):
    """What a reader would do: suite means, cell and generator taken out, the two strategies by t."""
    means = np.bincount(factors["suite"], y) / np.bincount(factors["suite"])
    first = np.unique(factors["suite"], return_index=True)[1]
    strategy, cell, generator = (factors[f][first] for f in ("strategy", "cell", "generator"))
    spread, df, difference, strata = 0.0, 0, 0.0, 0
    for c, g in itertools.product(np.unique(cell), np.unique(generator)):
        here = [means[(cell == c) & (generator == g) & (strategy == s)] for s in (0, 1)]
        difference += here[0].mean() - here[1].mean()
        spread += sum(((h - h.mean()) ** 2).sum() for h in here)
        df += sum(len(h) - 1 for h in here)
        strata += 1
        size = len(here[0])
    se = math.sqrt(spread / df * 2 / (size * strata))
    return difference / strata / se, df


def test_a_difference_that_can_be_seen_is_seen_as_often_as_said():
    """400 studies of the minimum detectable difference at 80 %: seen in about 80 of 100; in 5 where there is none."""
    from scipy.stats import t

    rng = np.random.default_rng(9)
    variances = {"suite": 0.004, "suite-target": 0.03, "draw": 0.06}
    design = Design(cells=2, generators=2, repeats=4, targets=5, draws=2)
    se, df = error(design, variances, "these targets")
    assert df == 2 * (16 - 4)
    step = minimum_detectable(se, df, power=0.8)
    seen = {0.0: 0, step: 0}
    for difference in seen:
        for _ in range(400):
            y, factors = made(rng, variances | {"target": 0.1, "cell": 0.05}, cells=2, strategies=2, generators=2,
                              repeats=4, draws=2)  # fmt: skip
            value, freedom = t_test(y + difference * (factors["strategy"] == 0), factors)
            seen[difference] += abs(value) > t.isf(0.025, freedom)
    assert freedom == df
    # Four standard errors of 400 tries.
    assert abs(seen[step] / 400 - 0.8) < 0.08 and abs(seen[0.0] / 400 - 0.05) < 0.044, seen


def test_yes_or_no_verdicts_follow_the_plan():
    """Each suite has a rate of its own (beta), and verdicts are yes or no: the plan's error is the one that is seen."""
    rng = np.random.default_rng(13)
    rate, spread, design = 0.5, 0.02, Design(repeats=10, targets=5)
    size = rate * (1 - rate) / spread - 1
    suites = rng.beta(rate * size, (1 - rate) * size, (4000, 2, 10))
    means = rng.binomial(5, suites).mean(axis=2) / 5
    seen = (means[:, 0] - means[:, 1]).std()
    planned = power(rate=rate, variances={"suite": spread}, repeats=10, targets=5)
    se = planned["scopes"][0]["se"]
    assert se == pytest.approx(seen, rel=0.05)
    assert se == pytest.approx(error(design, {"suite": spread, "suite-target": 0.25 - spread}, "these targets")[0])
    # Taking verdicts for independent promises more than there is.
    naive = power(rate=rate, repeats=10, targets=5)
    assert naive["scopes"][0]["se"] < 0.9 * se and "hang together" in naive["notes"][0]


@pytest.mark.parametrize("scope", list(SCOPES))
def test_the_error_of_each_scope_is_the_spread_of_new_studies(scope):
    """Effects that are random in a scope are drawn anew in each study, all others stay the same."""
    rng = np.random.default_rng(17)
    variances = {"suite": 0.01, "suite-target": 0.05, "strategy-target": 0.04, "strategy-cell": 0.03,
                 "strategy-generator": 0.02}  # fmt: skip
    moving = {e: v for e, v in variances.items() if e in SCOPES[scope]}
    design = Design(cells=3, generators=2, repeats=2, targets=4)
    seen = []
    for _ in range(500):
        y, factors = made(rng, moving, cells=3, generators=2, repeats=2, targets=4, strategies=2, draws=1)
        seen.append(y[factors["strategy"] == 0].mean() - y[factors["strategy"] == 1].mean())
    assert error(design, variances, scope)[0] == pytest.approx(np.std(seen), rel=0.12)


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 5), st.floats(0, 0.05), st.floats(0.001, 0.1))
def test_more_of_anything_never_hurts(repeats, targets, draws, suite, rest):
    variances = {"suite": suite, "suite-target": rest, "draw": 0.05, "strategy-target": 0.02}
    design = Design(cells=2, generators=2, repeats=repeats, targets=targets, draws=draws)
    for scope in ("these targets", "new targets"):
        before = error(design, variances, scope)[0]
        for more in ({"repeats": repeats + 1}, {"targets": targets + 1}, {"draws": draws + 1}):
            assert error(Design(**(design.__dict__ | more)), variances, scope)[0] < before + 1e-15


def test_what_is_needed_is_the_least_that_is_enough():
    result = power(rate=0.5, variances={"suite": 0.01}, cells=5, generators=3, difference=0.1)
    needed = result["scopes"][0]["needed"]
    for key in ("repeats", "targets"):
        n = needed[key]["value"]

        def chance(number, key=key):
            options = {"rate": 0.5, "variances": {"suite": 0.01}, "cells": 5, "generators": 3} | {key: number}
            return power(**options)["scopes"][0]["power_at_difference"]

        assert chance(n) >= 0.8 and (n == 1 or chance(n - 1) < 0.8)
    # Draws cannot help where nothing says how much draws vary; it says what is left.
    assert needed["draws"]["value"] in (None, 1)
    few = power(rate=0.5, variances={"suite": 0.05}, repeats=3, difference=0.1)["scopes"][0]["needed"]["targets"]
    assert few["value"] is None and "no number is enough" in few["reason"]


# -- from verdicts -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(shared):
    from regatta_tools.measures.archive import from_archive

    return from_archive(shared / "archive")


@pytest.mark.shared
@pytest.mark.parametrize("measure", MEASURES)
def test_variances_of_the_archive_sum_to_the_spread_of_its_suites(archive, measure):
    """Two computations of one thing: the error of a difference of strategies from the variances, and from the spread of
    the three repeats in each stratum, which knows nothing of effects."""
    from regatta_tools.measures.population import population

    y, factors = observations(population(archive), measure)
    targets = 25 if measure == "RC" else 5
    assert len(y) == 180 * targets and not np.isnan(y).any()
    found, design = components(y, factors, EFFECTS), Design(5, 3, 3, targets)
    # As estimated, those below zero included.
    total = 2 * sum(found[e] / design.divisor(e) for e in ("suite", "suite-target"))
    means = np.bincount(factors["suite"], y) / targets
    first = np.unique(factors["suite"], return_index=True)[1]
    stratum = (100 * factors["strategy"] + 10 * factors["cell"] + factors["generator"])[first]
    spread = np.mean([means[stratum == s].var(ddof=1) for s in np.unique(stratum)])
    assert total == pytest.approx(2 * spread / 45, rel=1e-9)
    # What is planned with leaves out what is below zero, so it errs on the side of more.
    known = {e: v for e, v in found.items() if isinstance(v, float)}
    assert error(design, known, "these targets")[0] ** 2 >= total - 1e-15


@pytest.mark.shared
def test_the_archive_gives_a_plan(archive):
    result = power(records=archive, comparisons=6)
    assert result["design"] == {
        "cells": 5, "generators": 3, "repeats": 3, "targets": 5, "draws": 1, "suites_of_a_strategy": 45,
    }  # fmt: skip
    assert result["verdicts"] == 900 and result["mean"] == pytest.approx(451 / 900)
    these, new, all_new = (s["minimum_detectable"] for s in result["scopes"])
    assert these < new < all_new
    shares = [v["share"] for v in result["variances"] if v["share"] is not None]
    assert sum(shares) == pytest.approx(1)
    strict = json.loads(json.dumps(result, allow_nan=False))
    assert next(v for v in strict["variances"] if v["effect"] == "draw")["reason"] == "there is one draw"
    assert "planned with as zero" in " ".join(result["notes"])


def test_a_run_gives_what_it_can(tmp_path):
    """One run has one suite: no variance of suites can be known, and it says so instead of inventing one."""
    from scripted_runs import package, play, write_script, write_suite

    play(write_suite(tmp_path, 2), write_script(tmp_path), tmp_path / "run")
    result = power(runs=[tmp_path / "run"], package=package())
    assert all(s["minimum_detectable"] is None and s["reason"] for s in result["scopes"])
    assert json.dumps(result, allow_nan=False) and "cannot be told apart" in " ".join(result["notes"])


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rate": 0.0},
        {"rate": 1.0},
        {"rate": 0.5, "variances": {"suite": 0.3}},
        {"rate": 0.5, "variances": {"nothing": 0.1}},
        {"rate": 0.5, "variances": {"suite": -0.1}},
        {"rate": 0.5, "variances": {"suite": math.nan}},
        {"rate": 0.5, "measure": "ISS"},
        {"rate": 0.5, "measure": "Delta"},
        {"rate": 0.5, "difference": 0.0},
        {"rate": 0.5, "chance": 1.0},
        {"archive": "x", "runs": ["y"]},
    ],
)
def test_what_cannot_be_planned_is_refused(options):
    with pytest.raises(InputError) as caught:
        power(**options)
    assert caught.value.mend and caught.value.code in ("U230", "U208")


@pytest.mark.parametrize("columns", [40, 200])
def test_the_command(monkeypatch, columns, tmp_path):
    monkeypatch.setenv("COLUMNS", str(columns))
    words = ["--rate", "0.5", "--variance", "suite=0.01", "--repeats", "10"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= columns
    assert "minimum detectable difference" in " ".join(done.stdout.split())
    done = CliRunner().invoke(command, [*words, "--format", "json", "--measure", "RC"])
    result = json.loads(done.stdout)
    assert result["design"]["targets"] == 25 and result == json.loads(
        json.dumps(regatta_tools.power(rate=0.5, variances={"suite": 0.01}, repeats=10, measure="RC"))
    )
    rows = list(csv.DictReader(io.StringIO(as_csv(result))))
    assert len(rows) == 3 * 8 and all(r["minimum_detectable"] or r["reason"] for r in rows)
    assert CliRunner().invoke(command, ["--rate", "0.5", "--variance", "suite"]).exit_code == 2
    assert set(MEASURES) == {"RC", "FDR_d", "FDR_e", "Delta"} and as_text(result)
