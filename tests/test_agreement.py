"""Agreement against second computations, published values, and what is not defined (A22)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from regatta_tools.measures.agreement import clopper_pearson, compare, kappa_of, proportion
from regatta_tools.report.evidence import agreement_text

WORKED = Path(__file__).resolve().parent.parent.parent / "shared" / "cases" / "worked-statistics.json"
shared = pytest.mark.skipif(not WORKED.is_file(), reason="../shared/cases/worked-statistics.json is absent")


def worked(name):
    return next(c for c in json.loads(WORKED.read_text(encoding="utf-8")) if c["id"] == name)


def pairs(both=0, judge_only=0, label_only=0, neither=0, clusters=10):
    kinds = (
        [(True, True)] * both + [(True, False)] * judge_only + [(False, True)] * label_only + [(False, False)] * neither
    )
    return [(f"s{i % clusters}", *kind) for i, kind in enumerate(kinds)]


# -- exact intervals -----------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.8, 0.9, 0.95, 0.99]),
)
@example((0, 1), 0.95)
@example((1, 1), 0.95)
def test_exact_intervals_are_those_of_scipy(case, level):
    from scipy.stats import binomtest

    k, n = case
    low, high = clopper_pearson(k, n, level)
    oracle = binomtest(k, n).proportion_ci(confidence_level=level, method="exact")
    assert math.isclose(low, oracle.low, abs_tol=1e-9) and math.isclose(high, oracle.high, abs_tol=1e-9)
    assert 0 <= low <= k / n <= high <= 1
    # By definition: at each end, what was seen or more extreme has half of the rest as its chance.
    tail = (1 - level) / 2
    if k:
        assert math.isclose(
            sum(math.comb(n, i) * low**i * (1 - low) ** (n - i) for i in range(k, n + 1)), tail, rel_tol=1e-6
        )
    else:
        assert low == 0


@pytest.mark.parametrize(("k", "n"), [(1, 0), (0, 0), (-1, 5), (6, 5), (0, -1)])
def test_no_interval_of_nothing(k, n):
    with pytest.raises(ValueError):
        clopper_pearson(k, n)


def test_the_published_bound_of_the_uncovered_pairs():
    """25 of 25 confirmed: exact two-sided lower bound .8628 (protocol, section 6)."""
    low, high = clopper_pearson(25, 25)
    assert round(low, 4) == 0.8628 and high == 1.0
    assert math.isclose(low, 0.025 ** (1 / 25))


@shared
@pytest.mark.shared
@pytest.mark.parametrize("name", ["S13", "S14"])
def test_published_exact_intervals(name):
    seen = 0
    for case in worked(name)["cases"]:
        published = case.get("exact") or case.get("ci")
        low, high = clopper_pearson(case["x"], case["n"], case.get("level", 0.95))
        digits = max(len(str(p).partition(".")[2]) for p in published)
        assert abs(low - published[0]) <= 0.6 * 10**-digits and abs(high - published[1]) <= 0.6 * 10**-digits
        seen += 1
    assert seen >= 4


# -- kappa ---------------------------------------------------------------------------------------


def kappa_by_hand(a, b, c, d):
    """From the list of ratings: observed minus expected over one minus expected, by counting pairs of marginals."""
    judge = [1] * (a + b) + [0] * (c + d)
    label = [1] * a + [0] * b + [1] * c + [0] * d
    n = len(judge)
    observed = sum(j == t for j, t in zip(judge, label, strict=True)) / n
    expected = sum(j == t for j in judge for t in label) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


_count = st.integers(0, 25)


@settings(max_examples=200, deadline=None)
@given(_count, _count, _count, _count)
@example(30, 0, 0, 0)
@example(0, 0, 0, 7)
@example(29, 1, 0, 0)
def test_kappa_equals_the_count_of_pairs(a, b, c, d):
    assume(a + b + c + d)
    want, got = kappa_by_hand(a, b, c, d), kappa_of((a, b, c, d))
    assert (got is None) == (want is None)
    assert got is None or (math.isclose(got, want, abs_tol=1e-12) and -1 <= got <= 1)
    # It does not matter who is called the judge, nor which answer is called yes.
    for other in ((a, c, b, d), (d, c, b, a)):
        again = kappa_of(other)
        assert (again is None) == (got is None) and (got is None or math.isclose(again, got, abs_tol=1e-12))


def test_kappa_of_nothing_is_undefined():
    assert kappa_of((0, 0, 0, 0)) is None


@shared
@pytest.mark.shared
def test_published_kappas_of_two_by_two_tables():
    case = worked("S06")
    for name, ((a, b), (c, d)) in case["tables"].items():
        assert round(kappa_of((a, b, c, d)), 2) == case["published"][name]
        assert math.isclose(kappa_of((a, b, c, d)), case["recomputed"][name], abs_tol=1e-12)


def test_the_published_kappas_follow_from_their_counts():
    """Protocol, section 6: 43 of 50 with all seven disagreements judge-positive, and 35 of 40 with five."""
    result = compare(pairs(both=18, judge_only=7, neither=25))
    assert (result["pairs"], result["agreement"]["value"]) == (50, 0.86)
    assert round(result["kappa"]["value"], 2) == 0.72
    assert result["sensitivity"]["value"] == 1.0
    assert round(kappa_of((15, 5, 0, 20)), 2) == 0.75 and (15 + 20) / 40 == 0.875


# -- compare -------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.booleans()), max_size=30))
def test_compare_counts_and_is_strict_json(listed):
    result = compare(listed)
    table = result["table"]
    assert result["pairs"] == len(listed) == sum(table.values())
    yes = [j for _, j, label in listed if label]
    no = [j for _, j, label in listed if not label]
    for name, judged, right in (("sensitivity", yes, True), ("specificity", no, False)):
        figure = result[name]
        assert figure["n"] == len(judged)
        if judged:
            assert figure["value"] == sum(j is right for j in judged) / len(judged)
            assert (figure["low"], figure["high"]) == clopper_pearson(sum(j is right for j in judged), len(judged))
        else:
            assert figure["value"] is None and "no pair" in figure["reason"]
    kappa = result["kappa"]
    assert (kappa["value"] is None) <= bool(kappa["reason"])
    if kappa["low"] is not None:
        assert -1 <= kappa["low"] <= kappa["high"] <= 1
    assert compare(listed) == result, "the same seed gives the same interval"
    json.loads(json.dumps(result, allow_nan=False))


@pytest.mark.parametrize("yes", [True, False])
def test_kappa_where_everyone_says_the_same_is_undefined_and_named(yes):
    result = compare([(f"s{i}", yes, yes) for i in range(30)])
    kappa = result["kappa"]
    assert (kappa["value"], kappa["low"], kappa["high"]) == (None, None, None)
    assert "only one category" in kappa["reason"]
    # Agreement of 30 in 30 stands beside it, with its exact interval.
    for figure in (result["agreement"], result["sensitivity" if yes else "specificity"]):
        assert (figure["value"], figure["n"], figure["high"]) == (1.0, 30, 1.0)
        assert math.isclose(figure["low"], 0.025 ** (1 / 30))
    other = result["specificity" if yes else "sensitivity"]
    assert other["value"] is None and other["n"] == 0 and other["reason"]


@pytest.mark.parametrize(
    ("table", "who"),
    [
        ((29, 1, 0, 0), "judge"),
        ((0, 0, 1, 29), "judge"),
        ((29, 0, 1, 0), "labels"),
        ((0, 1, 0, 29), "labels"),
        ((0, 9, 0, 0), "judge"),
    ],
)
def test_kappa_is_exactly_zero_where_one_side_never_varies_and_warns(table, who):
    result = compare(pairs(*table, clusters=30))
    kappa = result["kappa"]
    assert (kappa["value"], kappa["low"], kappa["high"]) == (0, None, None)
    assert kappa["reason"].startswith(f"the {who} used one category only")
    assert result["agreement"]["value"] == (table[0] + table[3]) / sum(table)


@pytest.mark.parametrize("listed", [[], [("s1", True, True)]])
def test_too_few_pairs_are_named(listed):
    kappa = compare(listed)["kappa"]
    assert kappa["value"] is None and kappa["reason"] == "too few pairs"


def test_one_scenario_gives_a_value_and_no_interval():
    kappa = compare(pairs(5, 1, 1, 5, clusters=1))["kappa"]
    assert kappa["value"] == kappa_of((5, 1, 1, 5)) and kappa["low"] is None and kappa["reason"]


def test_the_interval_resamples_scenarios_and_not_pairs():
    """The same table: one pair a scenario, against scenarios that agree or disagree as a whole."""
    loose = compare([(f"s{i}", j, t) for i, (_, j, t) in enumerate(pairs(20, 5, 5, 20))])["kappa"]
    blocks = [(f"s{i // 10}", j, t) for i, (_, j, t) in enumerate(pairs(20, 5, 5, 20))]
    tight = compare(blocks)["kappa"]
    assert loose["value"] == tight["value"]
    assert tight["high"] - tight["low"] > 1.3 * (loose["high"] - loose["low"])


def test_a_bootstrap_interval_is_near_the_one_of_the_large_sample_formula():
    """Fleiss, Cohen and Everitt's standard error for 2x2 tables, with one pair a scenario."""
    a, b, c, d = 300, 60, 40, 200
    n = a + b + c + d
    kappa = compare([(f"s{i}", j, t) for i, (_, j, t) in enumerate(pairs(a, b, c, d))])["kappa"]
    po, p1, p2 = (a + d) / n, (a + b) / n, (a + c) / n
    pe = p1 * p2 + (1 - p1) * (1 - p2)
    k = (po - pe) / (1 - pe)
    first = a / n * (1 - (p1 + p2) * (1 - k)) ** 2 + d / n * (1 - (2 - p1 - p2) * (1 - k)) ** 2
    second = (1 - k) ** 2 * (b / n * (p2 + 1 - p1) ** 2 + c / n * (p1 + 1 - p2) ** 2)
    se = math.sqrt((first + second - (k - pe * (1 - k)) ** 2) / (n * (1 - pe) ** 2))
    assert math.isclose((kappa["high"] - kappa["low"]) / (2 * 1.959964), se, rel_tol=0.1)


def test_a_proportion_of_nothing_is_undefined():
    figure = proportion(0, 0, "pair is labelled yes")
    assert figure.value is None and figure.reason == "no pair is labelled yes"


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_agreement_as_text_fits_and_names_what_is_undefined(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    result = {
        "judge": "similarity/bm25", "suite": "insurance-us-claims", "labels": {"by": "the authors", "kind": "human"},
        "stages": {
            stage: compare(judged) | {"targets": {"all": 25, "judge": 11, "labels": 4, "both": 3}}
            for stage, judged in (("rc", pairs(5, 1, 1, 5)), ("design", pairs(neither=30)))
        },
    }  # fmt: skip
    text = agreement_text(result)
    assert max(map(len, text.splitlines())) <= columns
    flat = " ".join(text.split())
    assert "only one category was used" in flat and "no pair is labelled yes" in flat
    assert "requirements covered by the suite: 11 of 25 by the judge, 4 by the labels, 3 by both" in flat
    assert "nan" not in flat.lower().split() and "None" not in flat
