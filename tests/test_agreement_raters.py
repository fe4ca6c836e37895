"""`regatta agree`: what it reads and refuses, what is undefined (A22), strict results (A25), what intervals cover."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import ROOT, package

import regatta_tools
from regatta_tools.cli.agree import agree as command
from regatta_tools.errors import InputError
from regatta_tools.measures import agreement
from regatta_tools.measures.agreement import agree
from regatta_tools.measures.coefficients import Layout, coefficients, features
from regatta_tools.measures.ratings import Group, RatingProblem
from regatta_tools.report.agreement import as_csv, as_text

LABELS = ROOT / "examples" / "suites" / "insurance-us-claims.labels.yaml"


def table(folder, header, rows, name="ratings.csv"):
    path = folder / name
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    path.write_text(out.getvalue(), encoding="utf-8")
    return path


def two(folder, *pairs, header=("item", "judge", "human")):
    return table(folder, header, [(f"i{n}", *pair) for n, pair in enumerate(pairs)])


def strict(result):
    """As a strict reader has it: no NaN, no infinity."""

    def refuse(word):
        raise AssertionError(word)

    return json.loads(json.dumps(result, ensure_ascii=False, allow_nan=False), parse_constant=refuse)


# -- the study's figures -------------------------------------------------------------------------


def study(folder, both, judge_only, neither):
    rows = [("yes", "yes")] * both + [("yes", "no")] * judge_only + [("no", "no")] * neither
    return two(folder, *rows)


def test_the_human_check_of_the_study(tmp_path):
    """Protocol, section 6: .86, kappa .72 with [.52, .88] by bootstrap within the judge's verdicts, all one way."""
    group = agree(study(tmp_path, 18, 7, 25), scale=["no", "yes"], strata="judge")["groups"][0]
    assert group["strata"] == {"no": 25, "yes": 25}
    kappa, pair = group["figures"]["kappa"], group["pairs"][0]
    assert round(group["figures"]["agreement"]["value"], 2) == 0.86
    assert [round(kappa[k], 2) for k in ("value", "low", "high")] == [0.72, 0.52, 0.88]
    assert pair["direction"]["higher"] == {"first": 7, "second": 0}
    assert pair["direction"]["in_words"] == "judge says 'yes' more often: 7 of 7 disagreements"
    assert pair["direction"]["mcnemar"]["p"] == 2 * 0.5**7 and "describes only" in pair["direction"]["mcnemar"]["note"]
    # Within these strata kappa is (number confirmed) / 25, so its interval follows from a binomial.
    from scipy.stats import binom

    assert [kappa["low"], kappa["high"]] == [binom.ppf(q, 25, 18 / 25) / 25 for q in (0.025, 0.975)]


def test_the_probes_of_the_study(tmp_path):
    group = agree(study(tmp_path, 15, 5, 20), scale=["no", "yes"], strata="judge")["groups"][0]
    assert (group["figures"]["agreement"]["value"], round(group["figures"]["kappa"]["value"], 2)) == (0.875, 0.75)


# -- forms of input ------------------------------------------------------------------------------


def test_tidy_and_wide_say_the_same(tmp_path):
    pairs = [("yes", "no"), ("no", "no"), ("yes", "yes"), ("", "yes"), ("no", "yes"), ("yes", "yes")]
    wide = two(tmp_path, *pairs)
    rows = [(f"i{n}", who, v) for n, pair in enumerate(pairs) for who, v in zip(("judge", "human"), pair)]
    tidy = table(tmp_path, ["item", "rater", "value"], [r for r in rows if r[2]], "tidy.csv")
    one, other = agree(wide), agree(tidy)
    assert one["groups"] == other["groups"]
    assert one["groups"][0]["raters"][0]["missing"] == {"no rating": 1}
    # Five of six items have two ratings, of which three agree; the sixth could go either way.
    figure = one["groups"][0]["figures"]["agreement"]
    assert (figure["value"], figure["n"]) == (0.6, 5)
    assert figure["bounds"] == {"low": pytest.approx(3 / 6), "high": pytest.approx(4 / 6)}


def test_verdicts_of_two_judges_by_stage(tmp_path):
    """A table of verdicts as it is: items told apart by several columns, raters and values under other names."""
    header = ["run", "stage", "target", "scenario", "judge", "outcome"]
    rows = []
    for n in range(12):
        for judge in ("a", "b"):
            outcome = "positive" if (n + (judge == "b" and n < 2)) % 2 else "negative"
            rows.append(("r", "rc", f"t{n % 3}", f"s{n}", judge, outcome))
            rows.append(("r", "design", "f1", f"s{n}", judge, "refused" if n == 5 and judge == "b" else "negative"))
    path = table(tmp_path, header, rows)
    result = agree(
        path, item=["run", "target", "scenario"], rater="judge", value="outcome", by=["stage"], cluster="scenario",
        scale=["negative", "positive"],
    )  # fmt: skip
    by = {g["by"]["stage"]: g for g in result["groups"]}
    assert by["rc"]["clusters"] == 12 and by["rc"]["figures"]["agreement"]["value"] == pytest.approx(10 / 12)
    assert by["design"]["raters"][1]["missing"] == {"refused": 1}
    assert by["design"]["items_rated_twice"] == 11 and by["design"]["figures"]["kappa"]["value"] is None


def test_missing_outcomes_are_no_category_unless_the_scale_says_so(tmp_path):
    path = two(tmp_path, ("positive", "refused"), ("negative", "negative"), ("unsure", "positive"))
    group = agree(path, scale=["negative", "positive"], missing=["unsure"])["groups"][0]
    assert (group["items_rated_twice"], group["raters"][1]["missing"]) == (1, {"refused": 1})
    assert group["raters"][0]["missing"] == {"unsure": 1}
    assert agree(path, scale=["negative", "positive", "refused", "unsure"])["groups"][0]["items_rated_twice"] == 3


def label_file(folder, name, change=lambda text: text):
    path = folder / f"{name}.yaml"
    text = LABELS.read_text(encoding="utf-8").replace("REGATTA authors (AI-written, AI-labelled)", name)
    path.write_text(change(text), encoding="utf-8")
    return path


def test_label_files_are_compared_by_stage(tmp_path):
    one = label_file(tmp_path, "one")
    first = "requirements: [insurance-us-r01]"
    other = label_file(tmp_path, "other", lambda t: t.replace(first, "requirements: []", 1))
    result = agree(one, other, package=package(), resamples=500)
    by = {g["by"]["stage"]: g for g in result["groups"]}
    assert (by["rc"]["items"], by["rc"]["clusters"], by["design"]["items"]) == (30 * 25, 30, 30 * 5)
    pair = by["rc"]["pairs"][0]
    assert pair["raters"] == ["one", "other"] and pair["agreement"]["value"] == 749 / 750
    assert pair["direction"]["in_words"] == "one says 'yes' more often: 1 of 1 disagreements"
    assert by["design"]["figures"]["kappa"]["value"] == 1 and by["design"]["figures"]["kappa"]["low"] is None


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda t: t.replace("- scenario: s02", "- scenario: s99"), "U215", "s02"),
        (lambda t: t.replace("- scenario: s02", "- scenario: s01"), "U214", "more than one entry"),
        (lambda t: t.replace("[insurance-us-r01]", "[insurance-us-r99]"), "U213", "insurance-us-r99"),
        (lambda t: t.replace("suite: insurance-us-claims", "suite: another"), "U215", "another"),
        (lambda t: t.replace("labels:", "lables:"), "U002", "labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused_with_their_place(tmp_path, change, code, words):
    one, other = label_file(tmp_path, "one"), label_file(tmp_path, "other", change)
    with pytest.raises(InputError) as caught:
        agree(one, other, package=package())
    assert f"[{code}]" in str(caught.value) and words in str(caught.value)
    assert f"{other}:" in str(caught.value)


def test_one_label_file_is_too_few(tmp_path):
    with pytest.raises(InputError, match="needs two"):
        agree(LABELS, package=package())


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "rows", "options", "code", "place"),
    [
        ("item,rater,value", ["i1,a,yes", "i1,b,maybe", "i2,a,no"], {"scale": ["no", "yes"]}, "U213", "3:6"),
        ("item,rater,value", ["i1,a,yes", "i1,b,no", "i1,a,yes"], {}, "U214", "4:1"),
        ("item,rater,value", ["i1,a,yes", ",b,no"], {}, "U212", "3:1"),
        ("item,rater,value", ["i1,a,yes", "i1,,no", "i1,b,no"], {}, "U212", "3:4"),
        ("item,rater,value", ["i1,a,yes", "i2,a,no"], {}, "U212", "2:1"),
        ("item,a,b", ["i1,yes,no", "i2,yes,yse"], {"scale": ["no", "yes"]}, "U213", "3:8"),
        ("item,a,b", ["i1,yes,no", "i1,yes,yes"], {}, "U214", "3:1"),
        ("item,a", ["i1,yes"], {}, "U211", "1:1"),
        ("item,a,b", ["i1,yes,no"], {"rater_columns": ["a", "c"]}, "U211", "1:1"),
        ("item,a,a", ["i1,yes,no"], {}, "U211", "1:6"),
        ("item,a,b", ["i1,yes,no"], {"cluster": "suite"}, "U211", "1:1"),
        ("item,rater,value,suite", ["i1,a,yes,x", "i1,b,no,y"], {"cluster": "suite"}, "U215", "3:9"),
        ("item,a,b", [f"i{n},name{n},other{n}" for n in range(40)], {}, "U213", "2:1"),
        ("item,a,b", ["i1,yes"], {}, "R007", "2"),
        ('item,a,b', ['i1,"yes,no'], {}, "R005", "2"),
    ],
)  # fmt: skip
def test_findings_have_file_line_and_column(tmp_path, header, rows, options, code, place):
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    with pytest.raises(RatingProblem) as caught:
        agree(path, **options)
    assert any(f.code == code for f in caught.value.findings), caught.value
    assert f"{path}:{place}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "is empty"), ("item,a,b\n", "no ratings"), ("item,a,b\ni1,,\ni2,refused,\n", "every rating is missing")],
)
def test_nothing_to_compare_is_said(tmp_path, text, words):
    path = tmp_path / "ratings.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        agree(path)


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(InputError, match="not there"):
        agree(tmp_path / "none.csv")
    with pytest.raises(InputError, match="folder"):
        agree(tmp_path)
    with pytest.raises(InputError, match="label files"):
        agree(two(tmp_path, ("a", "b")), LABELS)
    with pytest.raises(InputError, match="no file"):
        agree()


def test_weights_need_a_declared_scale(tmp_path):
    path = two(tmp_path, ("1", "2"), ("3", "3"), ("5", "4"))
    for options in ({}, {"scale": ["1", "2"]}):
        with pytest.raises(InputError):
            agree(path, weights="linear", **options)
    full = agree(path, weights="quadratic", scale=list("12345"))["groups"][0]
    assert {"alpha_ordinal", "spearman"} <= set(full["figures"]) and full["names"]["ac"] == "Gwet's AC2"
    with pytest.raises(InputError, match="weights"):
        agree(path, weights="cubic", scale=list("12345"))


def test_many_findings_of_one_kind_are_counted(tmp_path):
    path = two(tmp_path, *[("yes", "maybe")] * 30)
    with pytest.raises(RatingProblem) as caught:
        agree(path, scale=["no", "yes"])
    assert len(caught.value.findings) == 5 and "30 findings" in str(caught.value) and "25 more" in str(caught.value)


# -- what is not defined (A22) -------------------------------------------------------------------


def test_everyone_says_the_same(tmp_path):
    result = agree(two(tmp_path, *[("yes", "yes")] * 30))
    group = result["groups"][0]
    for name in ("kappa", "fleiss", "alpha", "spearman", "ac", "brennan_prediger"):
        figure = group["figures"][name]
        assert (figure["value"], figure["low"], figure["high"]) == (None, None, None) and figure["reason"]
    assert "only one category" in group["figures"]["kappa"]["reason"]
    exact = group["pairs"][0]["agreement"]
    assert (exact["value"], exact["high"], exact["n"]) == (1.0, 1.0, 30)
    assert exact["low"] == pytest.approx(0.025 ** (1 / 30))
    # On a declared scale there was something else to say, and PABAK and AC1 are defined; kappa is not.
    declared = agree(two(tmp_path, *[("yes", "yes")] * 30), scale=["no", "yes"])["groups"][0]
    assert declared["figures"]["ac"]["value"] == declared["figures"]["brennan_prediger"]["value"] == 1
    assert declared["figures"]["kappa"]["value"] is None


def test_a_judge_that_never_varies_has_kappa_exactly_zero_and_a_warning(tmp_path):
    pair = [("yes", "yes")] * 29 + [("yes", "no")]
    group = agree(two(tmp_path, *pair))["groups"][0]
    kappa = group["figures"]["kappa"]
    assert (kappa["value"], kappa["low"]) == (0.0, None) and "judge used one category only" in kappa["reason"]
    assert group["figures"]["spearman"]["value"] is None
    assert "prevalence index 0.97" in group["pairs"][0]["notes"][0]
    assert group["pairs"][0]["kappa"]["value"] == 0.0


def test_one_item_is_too_few(tmp_path):
    group = agree(two(tmp_path, ("yes", "no")))["groups"][0]
    for name, figure in group["figures"].items():
        if name != "agreement":
            assert figure["value"] is None and "too few" in figure["reason"]
    assert group["pairs"][0]["kappa"]["value"] is None


def test_no_item_with_two_ratings(tmp_path):
    group = agree(two(tmp_path, ("yes", ""), ("", "no")))["groups"][0]
    assert all(f["value"] is None and f["reason"] == "no item has two ratings" for f in group["figures"].values())
    assert group["figures"]["agreement"]["bounds"] == {"low": 0.0, "high": 1.0}
    assert group["pairs"][0]["agreement"]["value"] is None


def test_a_stratum_of_one_gives_no_interval(tmp_path):
    path = two(tmp_path, ("yes", "yes"), ("no", "no"), ("no", "yes"), ("no", "no"))
    figure = agree(path, strata="judge")["groups"][0]["figures"]["kappa"]
    assert figure["value"] == 0.5 and figure["low"] is None and "strata hold one" in figure["reason"]


# -- strict results (A25) ------------------------------------------------------------------------

cell = st.sampled_from(["", "no", "yes", "refused"])


@settings(max_examples=60)
@given(st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=12), st.sampled_from([[], ["no", "yes"]]))
def test_results_are_strict_and_say_why(tmp_path_factory, rows, scale):
    folder = tmp_path_factory.mktemp("strict")
    path = table(folder, ["item", "a", "b", "c"], [(f"NaN Infinity BaNaNa {n}", *r) for n, r in enumerate(rows)])
    if not any(v in ("no", "yes") for r in rows for v in r):
        with pytest.raises(InputError):
            agree(path, scale=scale, resamples=100)
        return
    result = agree(path, scale=scale, resamples=100)
    strict(result)
    group = result["groups"][0]
    for figure in group["figures"].values():
        assert (figure["value"] is None or figure["low"] is None) == bool(figure["reason"])
        if figure["low"] is not None:
            assert figure["low"] <= figure["high"]
    for at, rater in enumerate(group["raters"]):
        assert sum(rater["missing"].values()) + rater["ratings"] == len(rows)
        assert Counter(r[at] or "no rating" for r in rows if r[at] in ("", "refused")) == rater["missing"]
    text = as_text(result)
    assert "None" not in text and not {"nan", "inf"} & set(text.lower().split())
    for row in csv.DictReader(io.StringIO(as_csv(result))):
        assert "nan" not in (row["value"], row["low"], row["high"])
        assert row["value"] or row["reason"]
    assert agree(path, scale=scale, resamples=100) == result, "the same seed gives the same result"


def test_the_command(tmp_path):
    path = two(tmp_path, ("có", "không"), ("có", "có"), ("không", "không"), ("có", "có"))
    done = CliRunner().invoke(command, [str(path), "--scale", "không,có", "--format", "json", "--resamples", "200"])
    assert done.exit_code == 0, done.output
    assert "không" in done.stdout and json.loads(done.stdout)["scale"] == ["không", "có"]
    out = tmp_path / "out.csv"
    done = CliRunner().invoke(command, [str(path), "--format", "csv", "--output", str(out), "--resamples", "200"])
    assert done.exit_code == 0 and out.read_text(encoding="utf-8").startswith("group,raters,figure,")
    assert regatta_tools.agree(path, resamples=200)["groups"][0]["items"] == 4


@pytest.mark.parametrize("columns", [40, 200])
def test_text_fits(monkeypatch, tmp_path, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [("a", "1", "2", "2"), ("b", "2", "2", ""), ("c", "4", "4", "4"), ("d", "5", "4", "5")]
    path = table(tmp_path, ["item", "one", "two", "three"], rows)
    text = as_text(agree(path, weights="linear", scale=list("12345"), resamples=200))
    assert max(map(len, text.splitlines())) <= columns and "Krippendorff's alpha, ordinal" in " ".join(text.split())


# -- intervals -----------------------------------------------------------------------------------


def group_of(codes, clusters=None, strata=None):
    codes = np.asarray(codes)
    raters = [f"r{i}" for i in range(codes.shape[1])]
    empty = [Counter() for _ in raters]
    return Group({}, [str(i) for i in range(len(codes))], raters, ["no", "yes"], codes, empty, strata, clusters)


def figures(group, resamples=400, seed=1):
    return agreement._of_group(group, True, "nominal", seed, resamples)["figures"]


def draw_pairs(rng, n):
    """Pairs with P(yes, yes) .4, one only .1 each, neither .4: agreement .8, kappa .6."""
    return np.array([(1, 1), (1, 0), (0, 1), (0, 0)])[rng.choice(4, size=n, p=[0.4, 0.1, 0.1, 0.4])]


def test_intervals_cover():
    """Of 150 samples of 60 independent items, about 95 % of the intervals hold the true value."""
    rng = np.random.default_rng(7)
    truth = {"agreement": 0.8, "kappa": 0.6, "alpha": 0.6, "ac": 0.6, "brennan_prediger": 0.6}
    hits = Counter()
    for _ in range(150):
        found = figures(group_of(draw_pairs(rng, 60)), 300)
        hits.update(name for name, value in truth.items() if found[name]["low"] <= value <= found[name]["high"])
    # Three standard errors of 150 draws below .95, less the known shortfall of percentile intervals (two points).
    assert all(hits[name] >= 150 * 0.88 for name in truth), hits


def test_only_resampling_clusters_covers_where_items_hang_together():
    """Ten copies of each of 30 independent pairs: intervals over items are far too narrow, over clusters right."""
    rng = np.random.default_rng(11)
    hits = Counter()
    for _ in range(60):
        codes = np.repeat(draw_pairs(rng, 30), 10, axis=0)
        clusters = [str(i // 10) for i in range(300)]
        for how, group in (("items", group_of(codes)), ("clusters", group_of(codes, clusters))):
            found = figures(group, 300)["kappa"]
            # No interval (all 30 pairs agree) is no cover.
            hits[how] += found["low"] is not None and found["low"] <= 0.6 <= found["high"]
    assert hits["clusters"] >= 51 and hits["items"] <= 36, hits


def test_drawing_kinds_of_items_is_drawing_items():
    """The multinomial shortcut against resampling done plainly, item by item within strata."""
    rng = np.random.default_rng(3)
    codes = draw_pairs(rng, 50)
    strata = [str(c) for c in codes[:, 0]]
    chunks, why = agreement._draws(features(codes, 2), group_of(codes, strata=strata), 1, 8_000)
    assert why is None
    ours = np.concatenate([coefficients(c, Layout(2, 2), np.eye(2))["kappa"] for c in chunks])
    plain = []
    members = [np.flatnonzero(codes[:, 0] == s) for s in (0, 1)]
    for _ in range(8_000):
        a, b = np.concatenate([codes[rng.choice(m, len(m))] for m in members]).T
        po, pa, pb = (a == b).mean(), a.mean(), b.mean()
        pe = pa * pb + (1 - pa) * (1 - pb)
        plain.append((po - pe) / (1 - pe))
    # Two samples of 8,000 of one distribution lie this close (Kolmogorov and Smirnov, error 1 in 10,000).
    from scipy.stats import ks_2samp

    assert ks_2samp(ours.round(9), np.round(plain, 9)).statistic < 2.23 * (2 / 8_000) ** 0.5
