"""V1 to V4 and figure 2: the study's figures, independent oracles, missing verdicts, what is undefined."""

from __future__ import annotations

import csv
import importlib
import io
import itertools
import json
import re
import sys
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import regatta
from verdict_tables import CELL, FAULTS, TARGETS, row, suite_rows, write

import regatta_tools
from regatta_tools.cli.main import cli
from regatta_tools.errors import InputError
from regatta_tools.measures import diagnostics as diag
from regatta_tools.measures import reproduction
from regatta_tools.measures.population import Block, Unit, population
from regatta_tools.measures.records import from_table
from regatta_tools.measures.resampling import FEW, Resampler, permutation_value, why_no_interval
from regatta_tools.report import diagnose as report

GENERATORS = ("frontier", "72b", "26b")
CLASSES = ("missing-regulation", "threshold", "metric-error", "role-boundary", "adversarial-vulnerability")


def strict(text):
    """JSON as a strict reader takes it."""

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def block(d, e, cell="c", generator="g", strategies=None):
    """A block of suites from verdicts: ``d`` (suites, faults), ``e`` (suites, faults) or (suites, faults, draws)."""
    d, e = np.asarray(d, float), np.asarray(e, float)
    e = e[:, :, None] if e.ndim == 2 else e
    n, faults = d.shape
    units = [Unit(f"s{i}", cell, (strategies or ["S1"] * n)[i], generator, i + 1) for i in range(n)]
    asked = {"rc": np.zeros(n, bool), "design": np.ones(n, bool), "execution": np.ones(n, bool)}
    none = np.full((n, 3), np.nan)
    return Block(cell, generator, units, [], [f"f{i}" for i in range(faults)], ["threshold"] * faults, np.zeros((n, 0)),
                 d, e, asked, np.ones((n, e.shape[2]), bool), none, none)  # fmt: skip


def v3(blocks, resamples=500, seed=1):
    why = diag._Why()
    return diag._plain(diag._v3(blocks, Resampler(resamples, seed), why, "V3.g")), why.reasons


def some_blocks(seed=0, cells=2, n=6, faults=3, draws=1):
    rng = np.random.default_rng(seed)
    return [
        block(rng.random((n, faults)) < 0.6, rng.random((n, faults, draws)) < 0.5, cell=f"c{i}") for i in range(cells)
    ]


# The study


@pytest.fixture(scope="module")
def study(shared):
    return regatta_tools.diagnose(archive=shared / "archive")


@pytest.mark.shared
def test_every_published_figure_comes_out(study):
    rows = reproduction.compare(study)
    assert len(rows) == len(reproduction.published()["figures"]) + len(reproduction.published()["claims"]) > 100
    assert [r for r in rows if r.mismatch] == []


@pytest.mark.shared
def test_a_changed_figure_does_not_come_out(study):
    """A comparison that always agrees would be none."""
    spoiled = json.loads(json.dumps(study))
    spoiled["V3"]["72b"]["alpha"] += 0.001
    spoiled["V1"]["never"] = 21
    spoiled["V3"]["26b"]["delta_interval"][0] -= 0.02
    spoiled["V2_order"]["execution"]["orders"]["26b"].reverse()
    odd = {r.name for r in reproduction.compare(spoiled) if r.mismatch}
    assert {"72b, alpha", "never covered", "26b, interval of Delta"} <= odd
    assert "Execution order missing > threshold > metric in all three generators" in odd


@pytest.mark.shared
def test_the_form_of_the_json(study):
    assert set(study["V1"]) >= {"mean", "median", "sd", "above_90", "below_25", "never", "by_cell"}
    assert tuple(study["V2"]) == tuple(study["V3"]) == tuple(study["V4"]) == GENERATORS
    for generator in GENERATORS:
        assert set(study["V2"][generator]) == set(CLASSES)
        assert all({"design", "execution"} <= set(r) for r in study["V2"][generator].values())
        v = study["V3"][generator]
        assert {"table", "alpha", "alpha_0", "interval", "kappa", "delta", "delta_interval", "per_fault"} <= set(v)
        assert {"baseline", "margin", "interval", "margin_corrected"} <= set(v["per_fault"])
        assert np.shape(v["table"]) == (2, 2) and sum(map(sum, v["table"])) == v["pairs"] == 300
        for measure in ("RC", "FDR_d", "FDR_e", "Delta", "ISS", "AC"):
            strategies = study["V4"][generator][measure]["strategies"]
            assert list(strategies) == ["S1", "S2", "S3", "S4"]
            assert study["V4"][generator][measure]["rho"] == pytest.approx(
                max(strategies.values()) - min(strategies.values())
            )
    assert strict(json.dumps(study, allow_nan=False)) == study


@pytest.mark.shared
def test_cells_add_up_to_the_whole(study):
    for generator in GENERATORS:
        tables = [study["cells"][c]["V3"][generator]["table"] for c in study["cells"]]
        assert np.sum(tables, axis=0).tolist() == study["V3"][generator]["table"]
        baselines = [study["cells"][c]["V3"][generator]["per_fault"]["baseline"] for c in study["cells"]]
        assert np.mean(baselines) == pytest.approx(study["V3"][generator]["per_fault"]["baseline"])
    assert sum(v["requirements"] for v in study["V1"]["by_cell"].values()) == 125
    assert sum(v["never"] for v in study["V1"]["by_cell"].values()) == study["V1"]["never"]
    assert len(study["V1"]["hard_tail"]) == study["V1"]["below_25"] and len(study["suites"]) == 180


@pytest.mark.shared
def test_the_page_on_reproduction_is_what_the_command_writes(study, shared):
    rows, outside = reproduction.beside(shared / "archive", study)
    command = "regatta diagnose --archive DIR --reproduction docs/reproduction.md"
    page = report.reproduction_page(study, rows, outside, command)
    assert (ROOT / "docs/reproduction.md").read_text(encoding="utf-8") == page


@pytest.mark.shared
def test_the_command_on_the_archive(shared, tmp_path):
    page = tmp_path / "page.md"
    words = ["--archive", shared / "archive", "--reproduction", page, "--output", tmp_path / "out.txt"]
    assert command(*words) == ""
    text = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert "Published beside recomputed" in text and "Not in the archive" in text
    assert max(map(len, text.splitlines())) <= 120
    # So few resamples move the ends of intervals, and the page says by how much instead of passing over it.
    published = page.read_text(encoding="utf-8")
    assert "within resampling error" in published or "differs" in published


def test_published_figures_have_a_place_and_a_way_to_ours():
    held = reproduction.published()
    for entry in held["figures"]:
        assert entry["place"] and ("/" in entry["ours"] or entry["ours"] in reproduction.COMPUTED)
    used = {e["ours"] for e in held["figures"] if "/" not in e["ours"]} | {e["ours"] for e in held["claims"]}
    assert used == set(reproduction.COMPUTED) | set(reproduction.CLAIMS), "a computation that nobody asks for"
    assert all(e["why"] for e in held["outside"])


@pytest.mark.parametrize(
    ("value", "printed", "ours"),
    [(0.045, ".05", ".05"), (0.0449999, ".05", ".04"), (-0.1667, "-.17", "-.17"), (0.09, "+.09", "+.09"),
     (22.0, "22", "22"), (32.3333, "32.3", "32.3"), (0.62, ".62", ".62"), (1.05, ".95", "1.05"),
     (-0.0041, "-.004", "-.004")],
)  # fmt: skip
def test_figures_are_rounded_as_they_are_printed(value, printed, ours):
    assert reproduction._rounded(value, printed) == ours


def test_an_interval_that_is_not_the_printed_one_is_explained_or_differs():
    entry = {"group": "V3", "name": "x", "place": "6"}
    printed = ["-.01", ".09"]
    same = reproduction._interval_row(entry, printed, [[-0.012, 0.0949]])
    near = reproduction._interval_row(entry, printed, [[-0.0152, 0.09], [-0.0148, 0.091]])
    far = reproduction._interval_row(entry, printed, [[-0.03, 0.09], [-0.029, 0.09]])
    assert (same.mismatch, same.note) == ("", "") and near.mismatch == "" and "2 seeds" in near.note
    assert far.mismatch == "differs"


# Independent oracles


@given(st.integers(0, 10_000))
@settings(max_examples=8)
def test_v3_against_other_libraries(seed):
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.contingency_tables import mcnemar

    blocks = some_blocks(seed)
    d, e = (np.concatenate([getattr(b, s).reshape(-1) for b in blocks]) for s in ("design", "execution"))
    v, _ = v3(blocks, resamples=100)
    assert v["alpha"] == pytest.approx((d == e).mean()) and v["delta"] == pytest.approx(d.mean() - e.mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kappa = cohen_kappa_score(d, e)
    assert v["kappa"] == (pytest.approx(kappa) if not np.isnan(kappa) else None)
    assert v["description"]["mcnemar_p"] == pytest.approx(mcnemar(v["table"], exact=True).pvalue)
    # Agreement beyond the chance of one fault is twice the covariance of its two stages.
    twice = [2 * np.cov(b.design[:, f], b.execution[:, f, 0])[0, 1] for b in blocks for f in range(3)]
    assert v["per_fault"]["margin_corrected"] == pytest.approx(np.mean(twice), abs=1e-12)
    assert v["per_fault"]["margin"] == pytest.approx(np.mean(twice) * 5 / 6, abs=1e-12)


def test_intervals_against_scipy():
    from scipy.stats import bootstrap

    blocks = some_blocks(3, cells=3, n=10, faults=4)

    def margin(*drawn):
        pairs = [(b.design[i], b.execution[i, :, 0]) for b, i in zip(blocks, drawn)]
        alpha = np.mean([(d == e).mean() for d, e in pairs])
        p, q = (np.concatenate([x[k].mean(axis=0) for x in pairs]) for k in (0, 1))
        return alpha - (p * q + (1 - p) * (1 - q)).mean()

    numbers = tuple(np.arange(10) for _ in blocks)
    found = bootstrap(
        numbers, margin, vectorized=False, n_resamples=4000, method="percentile", rng=5
    ).confidence_interval
    ours = v3(blocks, resamples=4000)[0]["per_fault"]["interval"]
    width = found.high - found.low
    assert ours == pytest.approx([found.low, found.high], abs=0.08 * width)


def test_the_jackknife_is_the_one_that_leaves_suites_out():
    blocks = some_blocks(4, cells=3, n=5, faults=4)

    def corrected(held):
        return np.mean([2 * np.cov(b.design[:, f], b.execution[:, f, 0])[0, 1] for b in held for f in range(4)])

    variance = 0.0
    for i, b in enumerate(blocks):
        left = [
            corrected([*blocks[:i], b.part(np.arange(5) != k), *blocks[i + 1 :]])
            for k in range(5)
        ]  # fmt: skip
        variance += 4 / 5 * np.sum((np.array(left) - np.mean(left)) ** 2)
    from scipy.stats import t

    half = t.ppf(0.975, 12) * variance**0.5
    low, high = v3(blocks)[0]["per_fault"]["interval_corrected"]
    assert (low, high) == pytest.approx((corrected(blocks) - half, corrected(blocks) + half))


def test_the_permutation_null_is_centred_on_the_per_fault_baseline():
    """Its mean agreement is the baseline, so the permuted margin has mean zero; without a link p is anything."""
    blocks = some_blocks(5, n=8)
    permuted = diag._permuted_margin(blocks, Resampler(20_000))
    assert permuted.mean() == pytest.approx(0, abs=0.002)
    linked = [block(b.design, b.design, cell=b.cell) for b in blocks]
    assert v3(linked)[0]["per_fault"]["p"] < 0.01
    assert permutation_value(0.5, np.array([0.1, 0.5, 0.6])) == pytest.approx(3 / 4)


def test_missing_verdicts_take_the_general_way_to_the_same_figures():
    """The short way of complete verdicts and the general one agree; a second, empty draw makes the general one run."""
    blocks = some_blocks(6)
    padded = [
        block(b.design, np.concatenate([b.execution, np.full_like(b.execution, np.nan)], axis=2), b.cell)
        for b in blocks
    ]
    for b in padded:
        b.drawn[:, 1] = False
    one, two = v3(blocks)[0], v3(padded)[0]
    for name in ("alpha", "interval", "margin_interval", "delta_interval", "kappa_interval", "faults_too", "bounds"):
        assert two[name] == (pytest.approx(one[name]) if isinstance(one[name], float | list) else one[name]), name
    for name, value in one["per_fault"].items():
        assert two["per_fault"][name] == pytest.approx(value), name


def test_counts_are_those_of_draws_with_replacement():
    for n in (1, 3, FEW, FEW + 1):
        counts = Resampler(400, 2).counts(n, "key")
        assert counts.shape == (n, 400) and (counts.sum(axis=0) == n).all() and counts.min() >= 0
    draws = Resampler(20_000, 2)
    counts = draws.counts(5, "a")
    assert counts.mean(axis=1) == pytest.approx(np.ones(5), abs=0.03)
    assert counts.var(axis=1) == pytest.approx(np.full(5, 0.8), abs=0.04)
    assert np.corrcoef(counts[0], draws.counts(5, "b")[0])[0, 1] == pytest.approx(0, abs=0.03)
    assert (counts == Resampler(20_000, 2).counts(5, "a")).all() and (
        counts != Resampler(20_000, 3).counts(5, "a")
    ).any()


def test_another_cell_does_not_move_the_interval_of_a_cell(tmp_path):
    rng = np.random.default_rng(1)
    rows = {c: [] for c in ("fintech-us", "insurance-us")}
    for cell, i in itertools.product(rows, range(6)):
        rows[cell] += suite_rows(f"{cell}-{i}", (rng.random(5) < 0.5) * 1, [(rng.random(5) < 0.5) * 1], cell=cell)
    one = regatta_tools.diagnose(records=write(tmp_path / "a.csv", rows["fintech-us"]), resamples=300)
    both = itertools.chain(*rows.values())
    two = regatta_tools.diagnose(records=write(tmp_path / "b.csv", both), resamples=300)
    assert two["cells"]["fintech-us"]["V3"] == one["cells"]["fintech-us"]["V3"]


# Intervals cover


def test_intervals_cover_what_they_promise():
    """Suites from a known population. The published interval of the per-fault margin misses more often than it says."""
    rng = np.random.default_rng(11)
    a, b = rng.normal(0, 1.2, (3, 5)), rng.normal(0, 1.2, (3, 5))

    def suites(n, cell):
        link, ease = rng.normal(size=(n, 5)) * 1.5, rng.normal(size=(n, 1)) / 2
        return ((rng.logistic(size=(n, 5)) < x[cell] + link + ease).astype(float) for x in (a, b))

    many = [tuple(suites(40_000, c)) for c in range(3)]
    true = {
        "interval": np.mean([(d == e).mean() for d, e in many]),
        "delta_interval": np.mean([d.mean() - e.mean() for d, e in many]),
        "corrected": np.mean([2 * ((d - d.mean(0)) * (e - e.mean(0))).mean() for d, e in many]),
    }
    true["printed"] = true["corrected"]
    met = dict.fromkeys(true, 0)
    times = 150
    for seed in range(times):
        blocks = [block(*suites(12, c), cell=f"c{c}") for c in range(3)]
        sums = [diag.pair_sums(x) for x in blocks]
        draws = Resampler(300, seed)
        moved, base = diag._v3_resampled(blocks, sums, draws, faults_too=False)
        known = [np.full(5, 12)] * 3
        corrected = float(np.mean([diag._per_fault(s.sum(axis=1), k)[1] for s, k in zip(sums, known)]))
        found = {
            "interval": draws.interval(moved["alpha"])[0],
            "delta_interval": draws.interval(moved["delta"])[0],
            "printed": draws.interval(moved["alpha"] - base)[0],
            "corrected": diag._jackknife(sums, known, corrected, 0.95),
        }
        for name, (low, high) in found.items():
            met[name] += low <= true[name] <= high
    share = {name: n / times for name, n in met.items()}
    assert 0.88 <= share["interval"] <= 0.99 and 0.88 <= share["delta_interval"] <= 0.99, share
    assert share["corrected"] >= 0.91, share
    assert share["printed"] < share["corrected"] - 0.03, share


# Missing verdicts and what is undefined

VALUE = st.sampled_from([0, 1, None])


@given(
    st.lists(
        st.tuples(st.lists(VALUE, min_size=5, max_size=5), st.lists(VALUE, min_size=5, max_size=5)),
        min_size=1,
        max_size=3,
    )
)
@settings(max_examples=6)
def test_rates_and_bounds_against_filling_by_hand(tmp_path, suites):
    rows = [r for i, (d, e) in enumerate(suites) for r in suite_rows(f"s{i}", d, [e])]
    result = regatta_tools.diagnose(records=write(tmp_path / "a.csv", rows), resamples=100)
    pairs = [(x, y) for d, e in suites for x, y in zip(d, e)]
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    v = result["V3"]["unstated"]
    assert v["pairs"] == len(known)
    if known:
        assert v["alpha"] == pytest.approx(np.mean([x == y for x, y in known]))
    else:
        assert v["alpha"] is None and "V3.unstated.alpha" in result["undefined"]
    # The least and greatest agreement and Delta over all ways of filling.
    agree = [x == y for x, y in known]
    assert v["bounds"]["alpha"] == pytest.approx(
        [sum(agree) / len(pairs), (len(pairs) - len(known) + sum(agree)) / len(pairs)]
    )
    low = sum((x or 0) - (1 if y is None else y) for x, y in pairs) / len(pairs)
    high = sum((1 if x is None else x) - (y or 0) for x, y in pairs) / len(pairs)
    assert v["bounds"]["delta"] == pytest.approx([low, high])
    for name, row_ in result["V2"]["unstated"].items():
        at = list(FAULTS.values()).index(name)
        for stage, k in (("design", 0), ("execution", 1)):
            values = [s[k][at] for s in suites]
            held = [x for x in values if x is not None]
            assert row_[stage] == (pytest.approx(np.mean(held)) if held else None)
            ends = [sum(x or 0 for x in values) / len(values), sum(1 if x is None else x for x in values) / len(values)]
            assert row_[f"{stage}_bounds"] == pytest.approx(ends)
    assert result["missing"]["unknown_targets"]["design"] == sum(x is None for x, _ in pairs)


@given(st.lists(st.lists(VALUE, min_size=4, max_size=4), min_size=2, max_size=6))
@settings(max_examples=6)
def test_v1_against_a_plain_computation(tmp_path, suites):
    rows = [r for i, rc in enumerate(suites) for r in suite_rows(f"s{i}", [], [], rc=rc + [0] * 21)]
    v = regatta_tools.diagnose(records=write(tmp_path / "a.csv", rows), resamples=100)["V1"]
    columns = [*zip(*suites), *[(0,) * len(suites)] * 21]
    delta = [np.mean(k) for c in columns if (k := [x for x in c if x is not None])]
    assert v["mean"] == pytest.approx(np.mean(delta)) and v["median"] == pytest.approx(np.median(delta))
    assert v["sd"] == pytest.approx(np.std(delta, ddof=1)) and v["never"] == sum(x == 0 for x in delta)
    assert v["below_25"] == sum(x < 0.25 - 1e-9 for x in delta) and v["above_90"] == sum(x > 0.9 + 1e-9 for x in delta)
    never = [sum(not any(c) and None not in c for c in columns), sum(not any(c) for c in columns)]
    assert v["bounds"]["never"] == never


def made(tmp_path, rows, **options):
    return regatta_tools.diagnose(records=write(tmp_path / "a.csv", rows), resamples=200, **options)


def test_a_quarter_is_not_below_a_quarter(tmp_path):
    """Three generators with 2, 3 and 4 of 12 suites: their mean is a quarter, whatever binary fractions make of it."""
    rows = []
    for generator, hits in (("g1", 2), ("g2", 3), ("g3", 4)):
        for i in range(12):
            rows += suite_rows(f"{generator}-{i}", [], [], rc=[int(i < hits)], generator=generator)
    v = made(tmp_path, rows)["V1"]
    assert v["items"][0]["delta"] == pytest.approx(0.25) and v["below_25"] == 0


def test_generators_weigh_equally_in_v1(tmp_path):
    rows = [r for i in range(4) for r in suite_rows(f"a{i}", [], [], rc=[1], generator="a")]
    rows += suite_rows("b0", [], [], rc=[0], generator="b")
    assert made(tmp_path, rows)["V1"]["mean"] == pytest.approx(0.5)


def test_both_stages_say_the_same_of_everything(tmp_path):
    """Of the kind of case A22: 0/0 is undefined, never 0, 1 or NaN."""
    result = made(tmp_path, [r for i in range(3) for r in suite_rows(f"s{i}", [1] * 5, [[1] * 5])])
    v = result["V3"]["unstated"]
    assert v["alpha"] == 1 and v["table"] == [[15, 0], [0, 0]]
    assert v["kappa"] is None and "chance agreement is 1" in result["undefined"]["V3.unstated.kappa"]
    for name in ("interval", "delta_interval", "kappa_interval", "margin_interval"):
        assert v[name] is None and result["undefined"][f"V3.unstated.{name}"]
    assert v["per_fault"]["p"] is None and v["description"]["fisher_p"] is None
    text = report.as_text(result)
    assert "kappa undefined (both stages say the same" in text and "nan" not in text.lower()


def test_one_stage_says_one_thing_only(tmp_path):
    result = made(tmp_path, [r for i in range(3) for r in suite_rows(f"s{i}", [1] * 5, [[1, 1, 1, 1, i % 2]])])
    v = result["V3"]["unstated"]
    assert v["kappa"] == 0 and v["alpha"] == pytest.approx(13 / 15) and v["kappa_interval"] is None
    assert "kappa is 0 at any agreement" in " ".join(report.as_text(result).split())


def test_one_suite_has_no_interval_and_says_so(tmp_path):
    result = made(tmp_path, list(suite_rows("a", [1, 0, 1, 0, 1], [[1, 1, 0, 0, 1]], rc=[1, 0])))
    pairs = [path for path, value in report._leaves(result) if "interval" in path and value is not None]
    assert pairs == []
    assert "one suite gives no interval" in result["undefined"]["V3.unstated.interval"]
    assert result["V3"]["unstated"]["per_fault"]["margin"] is None, "one suite agrees with itself as chance has it"
    assert any(n.startswith("One suite:") for n in result["notes"]) and "{" not in report.as_text(result).split("V1")[1]


@pytest.mark.filterwarnings("error")
def test_everything_missing(tmp_path):
    rows = list(suite_rows("a", [None] * 5, [[None] * 5], rc=[None] * 25)) + list(
        suite_rows("b", [None] * 5, [[None] * 5])
    )
    rows += [row("a", "iss", outcome="failed", value=""), row("a", "ac", outcome="truncated", value="")]
    result = made(tmp_path, rows)
    assert result["V1"]["mean"] is None and result["V1"]["bounds"]["mean"] == [0, 1]
    assert result["V3"]["unstated"]["alpha"] is None and result["V3"]["unstated"]["bounds"]["delta"] == [-1, 1]
    assert result["missing"]["outcomes"]["design"] == {"refused": 10}
    first = result["suites"][0]
    assert first["ISS"] is None and first["AC"] is None and first["bounds"]["ISS"] == [1, 5]
    for path, value in report._leaves(result):
        if value is None and not path.startswith(("suites.", "V1.items")):
            assert any(path.startswith(known) for known in result["undefined"]), path
    assert "refused 45" in " ".join(result["notes"])
    report.as_text(result), report.as_csv(result)


def test_a_stage_that_nobody_ran_is_not_missing(tmp_path):
    result = made(tmp_path, [r for i in range(3) for r in suite_rows(f"s{i}", [1, 0, 1, 0, i % 2], [])])
    assert result["missing"]["targets"]["execution"] == 0 and result["V3"]["unstated"]["bounds"]["alpha"] is None
    assert result["V2"]["unstated"]["threshold"]["execution_bounds"] is None
    assert "no suite was judged for coverage" in result["undefined"]["V1.mean"]


def test_why_strata_give_no_interval():
    assert why_no_interval([2, 5]) is None
    assert "one suite gives" in why_no_interval([1]) and "one suite in each" in why_no_interval([1, 1])
    assert "1 of 2 strata" in why_no_interval([1, 4]) and "there is no" in why_no_interval([])


def test_two_draws_are_averaged_as_the_study_averaged_them(tmp_path):
    rng = np.random.default_rng(2)
    d = rng.integers(0, 2, (6, 5))
    e = rng.integers(0, 2, (6, 2, 5))
    v = made(tmp_path, [r for i in range(6) for r in suite_rows(f"s{i}", d[i], e[i])])["V3"]["unstated"]
    agree = (d[:, None, :] == e).mean()
    assert v["alpha"] == pytest.approx(agree) and v["pairs"] == 60 and v["draws"] == 2
    assert v["upper"]["draws_differ"] == pytest.approx((e[:, 0] != e[:, 1]).mean())
    assert v["upper"]["value"] == pytest.approx(1 - agree - (e[:, 0] != e[:, 1]).mean()) and v["upper"]["interval"]


def test_other_arms_are_left_out_and_said(tmp_path):
    rows = list(suite_rows("a", [1] * 5, [[0] * 5]))
    rows += [r | {"arm": "control", "outcome": "positive"} for r in rows if r["stage"] == "execution"]
    path = write(tmp_path / "a.csv", rows)
    result = regatta_tools.diagnose(records=path, resamples=100)
    assert result["V3"]["unstated"]["delta"] == 1 and any("other arms (control)" in n for n in result["notes"])
    assert regatta_tools.diagnose(records=path, resamples=100, arm="control")["V3"]["unstated"]["delta"] == 0


def test_scenarios_that_were_never_judged_leave_a_target_unknown(tmp_path):
    """A suite of three scenarios: one negative verdict is no negative target."""
    rows = [row(scenario=f"s{i}") for i in (1, 2, 3)]
    rows += [row(target=list(FAULTS)[1], scenario="s1"), row(target=list(FAULTS)[2], scenario="s2", outcome="positive")]
    b = population(from_table(write(tmp_path / "a.csv", rows))).blocks[0]
    assert b.design[0, 0] == 0 and np.isnan(b.design[0, 1]) and b.design[0, 2] == 1 and np.isnan(b.design[0, 3])


def test_rho_is_held_against_chance(tmp_path):
    """Strategies that are one and the same still differ by chance; one that stands out does not."""
    rng = np.random.default_rng(4)
    rows = []
    for i in range(24):
        rc = np.concatenate([(rng.random(13) < 0.5) * 1, [int(i % 4 == 0)] * 12])
        rows += suite_rows(
            f"s{i}", (rng.random(5) < 0.5) * 1, [(rng.random(5) < 0.5) * 1], rc=rc, strategy=f"S{i % 4 + 1}"
        )
    v4 = made(tmp_path, rows)["V4"]["unstated"]
    assert v4["RC"]["rho_by_chance"]["p"] < 0.02 < v4["FDR_d"]["rho_by_chance"]["p"]
    assert v4["FDR_d"]["rho_by_chance"]["mean"] > 0.05, "a range is not 0 when nothing differs"
    assert set(v4["FDR_d"]["faults_too"]) == {"rho_interval"}


# Outputs


def command(*words):
    """What the command writes to standard output, in this process."""
    done = CliRunner().invoke(cli, ["diagnose", *map(str, words), "--resamples", "100"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Of the kind of case A25: undefined figures, and names that look like numbers that are none."""
    path = tmp_path_factory.mktemp("odd") / "a.csv"
    rows = [
        r
        for i in range(2)
        for r in suite_rows(f"Infinity{i}", [1] * 5, [[1] * 5], judge="NaN Infinity BaNaNa", strategy="NaN")
    ]
    return write(path, rows)


def test_json_is_strict_and_names_are_untouched(odd):
    result = strict(command("--records", odd, "--format", "json"))
    assert result["V3"]["unstated"]["kappa"] is None and result["undefined"]["V3.unstated.kappa"]
    assert result["judges"]["design"] == ["NaN Infinity BaNaNa"] and "NaN" in result["figure_2"]["unstated"]
    assert {s["suite"] for s in result["suites"]} == {"Infinity0", "Infinity1"}


def test_csv_has_empty_cells_with_a_reason(odd):
    rows = {r["figure"]: r for r in csv.DictReader(io.StringIO(command("--records", odd, "--format", "csv")))}
    kappa = rows["V3.unstated.kappa"]
    assert (kappa["value"], kappa["low"], kappa["high"]) == ("", "", "") and "chance agreement" in kappa["reason"]
    assert rows["V3.unstated.alpha"]["value"] == "1.0" and rows["V3.unstated.table.both"]["value"] == "10"
    assert not [r for r in rows.values() if {"nan", "inf", "None"} & {r["value"], r["low"], r["high"]}]


def test_plots_are_whole_files_of_both_kinds(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(7)
    rows = []
    for i in range(8):
        rows += suite_rows(f"s{i}", (rng.random(5) < 0.5) * 1, [(rng.random(5) < 0.5) * 1],
                           rc=(rng.random(25) < 0.4) * 1, strategy=f"S{i % 2 + 1}", generator="g")  # fmt: skip
    table = write(tmp_path / "a.csv", rows)
    command("--records", table, "--plots", tmp_path / "plots")
    from regatta_tools.report.plots import FIGURES

    for name in FIGURES:
        png, svg = tmp_path / "plots" / f"{name}.png", tmp_path / "plots" / f"{name}.svg"
        assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and "</svg>" in svg.read_text(encoding="utf-8")
        assert not re.search(r"<dc:date>", svg.read_text(encoding="utf-8")), "two runs must give one file"


def test_plots_without_matplotlib_are_told(monkeypatch, tmp_path):
    from regatta_tools.errors import EnvironmentProblem
    from regatta_tools.report.plots import draw

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EnvironmentProblem, match=r"regatta-tools\[plots\]"):
        draw({}, tmp_path)


def test_a_folder_that_takes_no_plots_is_told(odd, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    done = regatta("diagnose", "--records", str(odd), "--plots", str(tmp_path / "file"), "--resamples", "100")
    assert done.returncode == 3 and "cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_text_says_what_one_cell_and_one_generator_do_not_support(tmp_path):
    rows = [
        r for i in range(3) for r in suite_rows(f"s{i}", [1, 0, 1, 0, i % 2], [[1, 1, 0, 0, i % 2]], rc=[i % 2] * 25)
    ]
    text = report.as_text(made(tmp_path, rows))
    said = " ".join(text.split())
    for words in (
        "One cell:", "One generator:", "As few as 3 suites in a cell", "One draw of each answer", "describes only",
        "null of per_fault", "5 faults a cell, chosen and not drawn",
    ):  # fmt: skip
        assert words in said, words


@pytest.mark.parametrize(
    "options", [{"resamples": 5}, {}, {"runs": ["a"], "records": "b"}, {"records": "a", "suites": "b"}]
)
def test_the_api_refuses_what_gives_no_result(options):
    with pytest.raises(InputError):
        regatta_tools.diagnose(**options)


def test_the_bench_measures_the_same_thing_twice():
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        bench = importlib.import_module("measures")
    finally:
        sys.path.remove(str(ROOT / "bench"))
    found = bench.resampling(1000, 1)  # raises where the two intervals are not of one statistic
    assert found["ratio"] > 0 and found["interval"][0] < found["interval"][1]


def test_the_bench_table_is_summarised_without_loss(tmp_path):
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        bench = importlib.import_module("measures")
    finally:
        sys.path.remove(str(ROOT / "bench"))
    path = tmp_path / "a.csv"
    rows = bench.write_table(path, 10, 3)
    held = from_table(path)
    assert len(held) == rows == 10 * 35 * 3 and set(held.targets) == set(TARGETS) and CELL in held.targets
