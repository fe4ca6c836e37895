"""Coefficients of agreement against published examples, libraries of other hands, and their definitions by counting."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from regatta_tools.measures.agreement import binomial_test, mcnemar, wilson
from regatta_tools.measures.coefficients import (
    METRICS,
    WEIGHTS,
    Layout,
    ac_error,
    alpha,
    coefficients,
    distances,
    features,
    features_of_counts,
    fleiss_test,
    kappa_errors,
    of_table,
    weights,
)

WORKED = Path(__file__).resolve().parent.parent.parent / "shared" / "cases" / "worked-statistics.json"


def published(function):
    absent = pytest.mark.skipif(not WORKED.is_file(), reason="../shared/cases/worked-statistics.json is absent")
    return pytest.mark.shared(absent(function))


def worked(name):
    return next(c for c in json.loads(WORKED.read_text(encoding="utf-8")) if c["id"] == name)


def to_digits(value, printed):
    """Whether a value is the printed one, to as many digits as are printed (a last digit may be rounded either way)."""
    digits = len(str(printed).partition(".")[2])
    return abs(value - printed) <= 0.51 * 10**-digits


def kappa(table, w=None):
    table = np.array(table, float)
    return float(of_table(table, np.eye(len(table)) if w is None else w)["kappa"])


def of(codes, q, w=None):
    """Every coefficient of ratings of shape (items, raters), as floats."""
    codes = np.array(codes)
    sums = features(codes, q).sum(axis=0)
    w = np.eye(q) if w is None else w
    return {k: float(v) for k, v in coefficients(sums, Layout(q, codes.shape[1]), w).items()}


def expand(table):
    return [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]


def rated(case):
    """Items by raters, categories from 0, -1 for none."""
    return np.array([[-1 if v is None else v - 1 for v in row] for row in case["ratings"]]).T


# -- published examples --------------------------------------------------------------------------


@published
def test_s01_kappa_of_three_categories():
    case = worked("S01")
    table = np.array(case["table"], float)
    p = table / table.sum()
    assert to_digits(np.trace(p), case["published"]["po"])
    assert to_digits(float(p.sum(1) @ p.sum(0)), case["published"]["pe"])
    assert to_digits(kappa(table), case["published"]["kappa"])
    assert math.isclose(kappa_errors(table, np.eye(3))[0], case["recomputed"]["ase"], abs_tol=1e-12)


@published
def test_s02_kappa_with_weights_of_ones_own():
    case = worked("S02")
    d = np.array(case["disagreement_weights"], float)
    assert to_digits(kappa(case["table"], 1 - d / d.max()), case["published"]["kappa"])


@published
@pytest.mark.parametrize(("name", "kind"), [("S03", "nominal"), ("S04", "linear")])
def test_s03_s04_errors_interval_and_test(name, kind):
    from scipy.stats import norm

    case = worked(name)
    w, printed = weights(kind, 3), case["published"]
    value, (se, null) = kappa(case["table"], w), kappa_errors(case["table"], w)
    assert to_digits(value, printed["kappa"]) and to_digits(se, printed["ase"]) and to_digits(null, printed["ase0"])
    for end, sign in zip(printed["ci95"], (-1, 1)):
        assert to_digits(value + sign * norm.ppf(0.975) * se, end)
    assert to_digits(value / null, printed["z"])
    assert to_digits(2 * norm.sf(value / null), printed["p_two_sided"])


@published
def test_s05_weights_on_four_grades():
    case = worked("S05")
    printed, again = case["published"], case["recomputed"]
    assert to_digits(kappa(case["table"]), printed["kappa"])
    assert to_digits(kappa_errors(case["table"], np.eye(4))[0], printed["ase"])
    for kind in ("linear", "quadratic"):
        w = weights(kind, 4)
        value, se = kappa(case["table"], w), kappa_errors(case["table"], w)[0]
        assert math.isclose(value, again[kind], abs_tol=1e-12)
        assert math.isclose(se, again[f"{kind}_ase"], abs_tol=1e-12)
        if kind in printed:
            assert to_digits(value, printed[kind]) and to_digits(se, printed[f"{kind}_ase"])


@published
def test_s06_two_by_two():
    case = worked("S06")
    for name, table in case["tables"].items():
        assert to_digits(kappa(table), case["published"][name])
        assert math.isclose(of(expand(table), 2)["kappa"], case["recomputed"][name], abs_tol=1e-12)


@published
def test_s07_six_coefficients():
    case = worked("S07")
    printed, found = case["published"], of(expand(case["table"]), 3)
    ours = {"cohen": "kappa", "scott": "fleiss", "ac1": "ac", "krippendorff": "alpha"}
    for name in ("cohen", "scott", "ac1", "brennan_prediger", "krippendorff", "agreement"):
        assert to_digits(found[ours.get(name, name)], printed[name]), name
    assert to_digits(kappa_errors(case["table"], np.eye(3))[0], printed["cohen_se"])
    counts = (np.array(expand(case["table"]))[:, :, None] == np.arange(3)).sum(axis=1)
    assert to_digits(ac_error(counts, np.eye(3), corrected=False), printed["ac1_se"])
    # Published for a table of two raters, it divides by n; for many raters (S12) by n - 1.
    assert math.isclose(ac_error(counts, np.eye(3)) * math.sqrt(99 / 100), ac_error(counts, np.eye(3), corrected=False))


@published
@pytest.mark.parametrize("name", ["S08", "S09"])
def test_s08_s09_fleiss(name):
    case = worked(name)
    value, _, z = fleiss_test(case["counts"])
    assert to_digits(value, case["published"]["kappa"])
    assert math.isclose(value, case["recomputed"]["kappa"], abs_tol=1e-12)
    if "z" in case["published"]:
        assert to_digits(z, case["published"]["z"])


@published
def test_s10_the_scale_decides():
    """Published on the values that occur (1, 2, 3, 4, 6 as five even steps); the whole scale gives another number."""
    case = worked("S10")
    pairs = list(zip(case["rater2"], case["rater3"]))
    seen = sorted({v for pair in pairs for v in pair})
    assert seen == [1, 2, 3, 4, 6]
    for scale, wanted in ((seen, case["published"]), (range(1, 7), case["recomputed_full_scale_1_6"])):
        at = {v: i for i, v in enumerate(scale)}
        codes = [[at[v] for v in pair] for pair in pairs]
        for kind in ("linear", "quadratic"):
            assert to_digits(of(codes, len(at), weights(kind, len(at)))["kappa"], round(wanted[kind], 9)), kind
        assert to_digits(of(codes, len(at))["kappa"], case["published"]["unweighted"])


@published
@pytest.mark.parametrize("metric", METRICS)
def test_s11_alpha_by_metric(metric):
    case = worked("S11")
    coincidences = Layout(5, 4).part(features(rated(case), 5).sum(axis=0), "coincidences")
    value = float(alpha(coincidences, distances(metric, coincidences)))
    assert to_digits(value, case["published"][metric])
    assert math.isclose(value, case["recomputed"][metric], abs_tol=1e-12)


@published
def test_s12_many_raters_with_gaps():
    case = worked("S12")
    found, printed = of(rated(case), 5), case["published"]
    ours = {"ac1": "ac", "krippendorff": "alpha"}
    for name in ("ac1", "fleiss", "conger", "brennan_prediger", "krippendorff", "agreement"):
        assert to_digits(found[ours.get(name, name)], printed[name]), name
    counts = (rated(case)[:, :, None] == np.arange(5)).sum(axis=1)
    assert to_digits(ac_error(counts, np.eye(5)), printed["ac1_se"])


@published
def test_s13_wilson():
    for case in worked("S13")["cases"]:
        for value, printed in zip(wilson(case["x"], case["n"]), case["wilson"]):
            assert to_digits(value, printed)


@published
def test_s14_exact_test():
    tested = [c for c in worked("S14")["cases"] if "p" in c]
    assert len(tested) == 3
    for case in tested:
        assert to_digits(binomial_test(case["x"], case["n"], case["p0"]), case["p"])


# -- libraries of other hands --------------------------------------------------------------------


def _pairs(q):
    category = st.integers(0, q - 1)
    return st.tuples(st.just(q), st.lists(st.tuples(category, category), min_size=2, max_size=40))


pairs_of = st.integers(2, 5).flatmap(_pairs)


@settings(max_examples=60)
@given(pairs_of, st.sampled_from(WEIGHTS))
def test_kappa_is_that_of_scikit_learn_and_statsmodels(case, kind):
    import warnings

    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    q, pairs = case
    a, b = (list(x) for x in zip(*pairs))
    value = of(pairs, q, weights(kind, q))["kappa"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = cohen_kappa_score(a, b, labels=list(range(q)), weights=None if kind == "nominal" else kind)
    if math.isnan(value):
        assert len(set(a) | set(b)) == 1
        return
    assert math.isclose(value, oracle, abs_tol=1e-12)
    table = np.array([[pairs.count((i, j)) for j in range(q)] for i in range(q)], float)
    errors = kappa_errors(table, weights(kind, q))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale = None if kind == "nominal" else np.arange(q)
        other = cohens_kappa(table, weights=scale, wt=None if kind == "nominal" else kind)
    assert math.isclose(value, other.kappa, abs_tol=1e-9)
    if other.var_kappa > 1e-12:
        assert math.isclose(errors[0], math.sqrt(other.var_kappa), rel_tol=1e-6)
        assert math.isclose(errors[1], math.sqrt(other.var_kappa0), rel_tol=1e-6)


@settings(max_examples=60)
@given(st.integers(2, 5), st.integers(2, 4), st.data())
def test_fleiss_is_that_of_statsmodels(raters, q, data):
    from statsmodels.stats.inter_rater import fleiss_kappa

    item = st.lists(st.integers(0, q - 1), min_size=raters, max_size=raters)
    codes = np.array(data.draw(st.lists(item, min_size=2, max_size=20)))
    counts = (codes[:, :, None] == np.arange(q)).sum(axis=1)
    assume(len(set(codes.ravel().tolist())) > 1)
    assert math.isclose(of(codes, q)["fleiss"], fleiss_kappa(counts), abs_tol=1e-12)
    assert math.isclose(fleiss_test(counts)[0], fleiss_kappa(counts), abs_tol=1e-12)
    assert math.isclose(of(codes, q)["brennan_prediger"], fleiss_kappa(counts, method="randolph"), abs_tol=1e-12)


@settings(max_examples=60)
@given(pairs_of)
def test_spearman_is_that_of_scipy(case):
    from scipy.stats import spearmanr

    q, pairs = case
    a, b = zip(*pairs)
    value = of(pairs, q)["spearman"]
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(value)
    else:
        assert math.isclose(value, spearmanr(a, b).statistic, abs_tol=1e-9)


@settings(max_examples=100)
@given(
    st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95, 0.99])
)
@example((0, 20), 0.95)
@example((20, 20), 0.95)
def test_wilson_is_that_of_statsmodels(case, level):
    from statsmodels.stats.proportion import proportion_confint

    k, n = case
    oracle = proportion_confint(k, n, alpha=1 - level, method="wilson")
    found = wilson(k, n, level)
    assert all(math.isclose(a, b, abs_tol=1e-12) for a, b in zip(found, oracle))
    assert 0 <= found[0] <= k / n <= found[1] <= 1


@settings(max_examples=60)
@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_that_of_statsmodels(b, c):
    from statsmodels.stats.contingency_tables import mcnemar as theirs

    if b + c == 0:
        assert mcnemar(b, c) is None
    else:
        assert math.isclose(mcnemar(b, c), theirs([[5, b], [c, 7]], exact=True).pvalue, rel_tol=1e-9)


# -- definitions, by counting --------------------------------------------------------------------


def by_counting(codes, q, w):
    """Every coefficient from its definition, over pairs of ratings, in exact fractions. ``w`` holds fractions."""
    items = [[c for c in item if c >= 0] for item in codes]
    items = [i for i in items if i]
    paired = [i for i in items if len(i) > 1]

    def mean(values):
        values = list(values)
        return sum(values, Fraction(0)) / len(values)

    observed = mean(mean(w[a][b] for a, b in itertools.permutations(i, 2)) for i in paired)
    share = [mean(Fraction(i.count(k), len(i)) for i in items) for k in range(q)]
    steps = list(itertools.product(range(q), repeat=2))
    total = sum(w[k][m] for k, m in steps)
    chance = {
        "fleiss": sum(w[k][m] * share[k] * share[m] for k, m in steps),
        "brennan_prediger": total / q**2,
        "ac": total / (q * (q - 1)) * sum(p * (1 - p) for p in share),
    }
    out = {name: None if c == 1 else (observed - c) / (1 - c) for name, c in chance.items()}
    out["agreement"] = observed
    # Krippendorff: within items each rating meets the others of its item, by chance every other rating.
    values = [c for i in paired for c in i]
    within = sum(mean(1 - w[a][b] for a, b in itertools.permutations(i, 2)) * len(i) for i in paired)
    across = sum(1 - w[a][b] for a, b in itertools.permutations(values, 2))
    out["alpha"] = None if across == 0 else 1 - within * (len(values) - 1) / across
    # Conger: two different raters, each by the shares of his own ratings.
    shares = []
    for rater in zip(*codes):
        given_ = [c for c in rater if c >= 0]
        shares.append([Fraction(given_.count(k), len(given_)) for k in range(q)] if given_ else None)
    if all(s is not None for s in shares):
        c = mean(sum(w[k][m] * a[k] * b[m] for k, m in steps) for a, b in itertools.permutations(shares, 2))
        out["conger"] = None if c == 1 else (observed - c) / (1 - c)
    return out


@settings(max_examples=120)
@given(st.integers(2, 4), st.integers(2, 4), st.sampled_from(WEIGHTS), st.data())
def test_coefficients_are_their_definitions(q, raters, kind, data):
    item = st.lists(st.integers(-1, q - 1), min_size=raters, max_size=raters)
    codes = data.draw(st.lists(item, min_size=1, max_size=8))
    assume(any(sum(c >= 0 for c in i) > 1 for i in codes))
    power = {"nominal": None, "linear": 1, "quadratic": 2}[kind]
    w = [
        [Fraction(int(i == j)) if power is None else 1 - Fraction(abs(i - j), q - 1) ** power for j in range(q)]
        for i in range(q)
    ]
    found, wanted = of(codes, q, weights(kind, q)), by_counting(codes, q, w)
    for name, value in wanted.items():
        if value is None:
            assert math.isnan(found[name]), name
        else:
            assert math.isclose(found[name], float(value), abs_tol=1e-9), name


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(-1, 2), min_size=3, max_size=3), min_size=2, max_size=10), st.randoms())
def test_who_is_asked_first_and_the_order_of_items_do_not_matter(codes, random_):
    assume(any(sum(c >= 0 for c in i) > 1 for i in codes))
    before = of(codes, 3)
    shuffled = [list(i) for i in codes]
    random_.shuffle(shuffled)
    order = random_.sample(range(3), 3)
    after = of([[i[k] for k in order] for i in shuffled], 3)
    for name, value in before.items():
        assert (math.isnan(value) and math.isnan(after[name])) or math.isclose(value, after[name], abs_tol=1e-9), name


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=2, max_size=8))
def test_counts_say_what_ratings_say(counts):
    """Named and unnamed raters give the same, wherever names play no part."""
    raters = max(map(sum, counts))
    assume(raters >= 2 and any(sum(c) > 1 for c in counts))
    codes = [[k for k, n in enumerate(c) for _ in range(n)] for c in counts]
    codes = [c + [-1] * (raters - len(c)) for c in codes]
    named = of(codes, 3)
    unnamed = coefficients(features_of_counts(counts).sum(axis=0), Layout(3, 0), np.eye(3))
    for name, value in unnamed.items():
        both_undefined = math.isnan(float(value)) and math.isnan(named[name])
        assert both_undefined or math.isclose(float(value), named[name], abs_tol=1e-9), name


def test_the_paradox_of_kappa():
    """The same raw agreement with even and with uneven marginals (the prevalence trap): kappa falls, AC1 does not."""
    even, uneven = [[40, 9], [6, 45]], [[80, 10], [5, 5]]
    assert np.trace(even) == np.trace(uneven) == 85
    assert kappa(even) > 2 * kappa(uneven)
    assert of(expand(uneven), 2)["ac"] > of(expand(even), 2)["ac"] > kappa(even)
    assert of(expand(even), 2)["brennan_prediger"] == of(expand(uneven), 2)["brennan_prediger"] == pytest.approx(0.7)
