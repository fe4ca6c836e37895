"""Rates corrected for a judge's errors: by hand, against the definition, and by simulation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta_tools.measures.calibration import corrected, false_alarm, part, scan_correction, why_no_correction
from regatta_tools.tables.shape import validator


def judge(detected, yes, rejected, no):
    """A calibration in which so many of the pairs labelled yes, and of those labelled no, were judged right."""
    right = [(True, "positive")] * detected + [(False, "negative")] * rejected
    wrong = [(True, "negative")] * (yes - detected) + [(False, "positive")] * (no - rejected)
    return part("rc", right + wrong)


counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_sensitivity_and_specificity_by_hand():
    """15 of 15: the exact lower bound is .025^(1/15) = .7820, two-sided."""
    found = judge(15, 15, 12, 15)
    sensitivity, specificity = found["sensitivity"], found["specificity"]
    assert (sensitivity["value"], sensitivity["high"], sensitivity["pairs_judged"]) == (1.0, 1.0, 15)
    assert math.isclose(sensitivity["low"], 0.025 ** (1 / 15)) and round(sensitivity["low"], 3) == 0.782
    # 12 of 15: published table of Clopper-Pearson bounds.
    assert (round(specificity["low"], 3), specificity["value"], round(specificity["high"], 3)) == (0.519, 0.8, 0.957)
    assert (sensitivity["bound_low"], sensitivity["bound_high"]) == (1.0, 1.0)
    assert validator("CalibrationPart").is_valid(found)


def test_missing_verdicts_are_no_verdicts():
    """8 right of 9 with a verdict, 3 without: between 8/12 and 11/12, and the figure itself is 8/9."""
    pairs = [(True, "positive")] * 8 + [(True, "negative")] + [(True, "unparsed")] * 2 + [(True, "refused")]
    pairs += [(False, "negative")] * 5 + [(False, "failed")]
    found = part("execution", pairs, cell="insurance-us", near_miss=False, contested=2)
    sensitivity, specificity = found["sensitivity"], found["specificity"]
    assert sensitivity["value"] == 8 / 9 and sensitivity["pairs_judged"] == 9
    assert (sensitivity["bound_low"], sensitivity["bound_high"]) == (8 / 12, 11 / 12)
    assert specificity["value"] == 1.0 and (specificity["bound_low"], specificity["bound_high"]) == (5 / 6, 1.0)
    assert (found["labelled_pairs"], found["missing_yes"], found["missing_no"], found["contested"]) == (18, 3, 1, 2)
    kinds = {m["outcome"]: m["verdict_count"] for m in found["missing_verdicts"]}
    assert kinds == {"failed": 1, "refused": 1, "unparsed": 2}
    assert found["cell"] == "insurance-us" and found["near_miss"] is False and "language" not in found
    assert validator("CalibrationPart").is_valid(found)


def test_a_share_of_nothing_is_none():
    found = part("rc", [(True, "failed")])
    for name in ("sensitivity", "specificity"):
        assert found[name]["value"] is None and found[name]["low"] is None and found[name]["reason"]
    assert corrected(1, 2, found)["value"] is None and validator("CalibrationPart").is_valid(found)


def test_the_corrected_rate_by_hand():
    """q = .40, se = .90, sp = .80: (.40 + .80 - 1) / (.90 + .80 - 1) = .20 / .70 = 2/7."""
    found = corrected(40, 100, judge(90, 100, 80, 100))
    assert math.isclose(found["value"], 2 / 7) and not found["clipped"] and found["reason"] is None
    assert found["low"] < 2 / 7 < found["high"]
    # Lang and Reiczigel, step by step: shares 91/102, 81/102, (40 + z2/2)/(100 + z2).
    z = 1.959963984540054
    q, se, sp = (40 + z * z / 2) / (100 + z * z), 91 / 102, 81 / 102
    p = (q + sp - 1) / (se + sp - 1)
    centre = p + 2 * z * z * (p * se * (1 - se) / 102 - (1 - p) * sp * (1 - sp) / 102)
    variance = q * (1 - q) / (100 + z * z) + p**2 * se * (1 - se) / 102 + (1 - p) ** 2 * sp * (1 - sp) / 102
    half = z * math.sqrt(variance) / (se + sp - 1)
    assert math.isclose(found["low"], centre - half) and math.isclose(found["high"], centre + half)


def test_a_perfect_judge_changes_no_rate_and_stays_uncertain():
    found = corrected(12, 40, judge(15, 15, 15, 15))
    assert math.isclose(found["value"], 0.3)
    large = corrected(12, 40, judge(5000, 5000, 5000, 5000))
    assert found["high"] - found["low"] > large["high"] - large["low"], "fifteen probes a side leave doubt"
    # A calibration without end leaves the uncertainty of the rate alone: Wilson's centre and Wald's width there.
    q, n = (12 + 3.8415 / 2) / (40 + 3.8415), 40 + 3.8415
    assert abs(large["high"] - (q + 1.95996 * math.sqrt(q * (1 - q) / n))) < 0.002


def test_what_falls_outside_is_clipped_and_said():
    """q = .17 below the false-positive rate of .20: (.17 - .20) / .70 = -.043."""
    found = corrected(17, 100, judge(90, 100, 80, 100))
    assert found["value"] == 0.0 and math.isclose(found["unclipped"], -0.03 / 0.7)
    assert found["low"] == 0.0 and found["clipped"]
    above = corrected(95, 100, judge(90, 100, 80, 100))
    assert above["value"] == 1.0 and above["high"] == 1.0 and above["clipped"]


def test_verdicts_that_the_calibration_leaves_no_room_for_are_no_rate():
    """At 20 % of false positives, none in 100 has a chance of .8^100: an interval from 0 to 0 would look certain."""
    for positives, rate in ((0, "false-positive rate"), (1000, "sensitivity")):
        n = 100 if not positives else 1000
        found = corrected(positives, n, judge(70, 100, 80, 100))
        assert found["value"] is None and found["low"] is None and rate in found["reason"]
        assert "does not fit this run" in found["reason"] and found["observed"] == positives / n


def test_missing_verdicts_of_a_run_are_bounds():
    found = corrected(40, 100, judge(90, 100, 80, 100), missing=25)
    assert math.isclose(found["bound_low"], (40 / 125 - 0.2) / 0.7)
    assert math.isclose(found["bound_high"], (65 / 125 - 0.2) / 0.7)


@pytest.mark.parametrize("counts", [(8, 15, 8, 15), (15, 15, 0, 15), (1, 1, 1, 1)])
def test_a_judge_not_clearly_better_than_chance_corrects_nothing(counts):
    found = corrected(5, 10, judge(*counts))
    assert found["value"] is None and found["low"] is None and "not clearly above 0" in found["reason"]
    assert found["observed"] == 0.5, "what was seen stays to be read"


@pytest.mark.parametrize("bad", [(-1, 5), (6, 5), (0, -1)])
def test_counts_that_cannot_be(bad):
    with pytest.raises(ValueError):
        corrected(*bad, judge(9, 10, 9, 10))
    with pytest.raises(ValueError):
        scan_correction(*bad, 30, judge(9, 10, 9, 10))


def test_a_scan_of_thirty_after_fifteen_negatives_says_nothing():
    """0 of 15: the upper bound of f is 1 - .025^(1/15) = .218, and 1 - .782^30 = .9994."""
    found = false_alarm(30, judge(15, 15, 15, 15))
    assert round(found["rate"]["high"], 3) == 0.218 and found["rate"]["low"] == 0.0
    assert math.isclose(found["high"], 1 - 0.025 ** (30 / 15)) and found["high"] > 0.999
    scans = scan_correction(4, 5, 30, judge(15, 15, 15, 15))
    assert scans["at_least"] is None and scans["reason"] == found["refused"] and scans["observed"] == 4
    assert "says nothing" in found["refused"]
    # What is said to be needed is needed: one negative fewer is refused, so many are not.
    needed = found["negatives_needed"]
    assert false_alarm(30, judge(15, 15, needed, needed))["refused"] is None
    assert false_alarm(30, judge(15, 15, needed - 1, needed - 1))["refused"]
    # 2 % of false positives make 45 % of 30 (protocol, section 12).
    assert round(false_alarm(30, judge(15, 15, 980, 1000))["value"], 2) == 0.45


def test_a_scan_without_negatives_or_with_a_judge_by_chance():
    assert scan_correction(1, 5, 5, judge(5, 5, 0, 0))["reason"]
    # An informative rate (always yes, so every scan is positive) corrects nothing all the same.
    always = false_alarm(5, judge(100, 100, 0, 100))
    assert always["low"] > 0.99 and "not clearly above 0" in always["refused"]
    with pytest.raises(ValueError):
        false_alarm(0, judge(5, 5, 5, 5))


def test_scans_by_hand():
    """f of .0228 at most: false alarm of half the scans at worst. 5 of 5 targets positive and none truly so has a
    chance of .5^5 = .031, above .025, so nothing is shown; 6 of 6 has .5^6 = .016, so one at least is (.5^5 again)."""
    needed = false_alarm(30, judge(15, 15, 15, 15))["negatives_needed"]
    good = judge(40, 40, needed, needed)
    assert 0.49 < false_alarm(30, good)["high"] <= 0.5
    assert scan_correction(5, 5, 30, good)["at_least"] == 0.0
    assert scan_correction(6, 6, 30, good)["at_least"] == 1 / 6
    assert scan_correction(0, 6, 30, good)["at_least"] == 0.0 and scan_correction(0, 0, 30, good)["reason"]


@given(counts, counts, counts, st.integers(0, 20))
def test_every_correction_is_whole_or_refused(seen, yes, no, missing):
    calibration = judge(*yes, *no)
    found = corrected(*seen, calibration, missing=missing)
    assert (found["value"] is None) == (found["reason"] is not None)
    if found["reason"] != why_no_correction(calibration):
        assert "does not fit" in found["reason"] and not 0 <= found["unclipped"] <= 1
    if found["value"] is not None:
        assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
        assert found["bound_low"] <= found["value"] + 1e-9 and found["value"] <= found["bound_high"] + 1e-9
        assert found["clipped"] or 0 <= found["unclipped"] <= 1


@pytest.mark.parametrize(
    ("rate", "se", "sp", "n", "gold"),
    [(0.6, 0.8, 0.8, 100, 90), (0.3, 0.95, 0.97, 1000, 45)],
)
def test_intervals_cover(rate, se, sp, n, gold):
    """400 worlds of known rate and errors: the interval holds the rate in 93 % or more of them.

    The last world shows what the calibration's share is: 1,000 verdicts and 45 probes a side, where an interval that
    took the calibration for certain covers far less.
    """
    import numpy as np

    worlds = 400
    random = np.random.default_rng(7)
    q = rate * se + (1 - rate) * (1 - sp)
    drawn = zip(random.binomial(n, q, worlds), random.binomial(gold, se, worlds), random.binomial(gold, sp, worlds))
    held = certain = made = 0
    for seen, detected, rejected in drawn:
        calibration = judge(int(detected), gold, int(rejected), gold)
        found = corrected(int(seen), n, calibration)
        if found["value"] is None:
            continue
        made += 1
        held += found["low"] <= rate <= found["high"]
        half = 1.96 * math.sqrt(seen / n * (1 - seen / n) / n) / (detected / gold + rejected / gold - 1)
        certain += abs(found["unclipped"] - rate) <= half
    assert made > 0.99 * worlds and 0.93 <= held / made <= 0.995
    if n == 1000:
        assert certain / made < 0.85
