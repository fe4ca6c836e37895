"""How often the interval of a corrected rate holds the true rate: judge and calibration drawn anew each time.

    python bench/calibration.py [TIMES]

Prints a table in Markdown. Rows: true rate, sensitivity, specificity, gold pairs a label. ``covered`` counts the
intervals that hold the true rate, among the draws in which a correction is given at all; ``naive`` is the exact
interval of the observed rate, corrected as if the calibration were without error.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

from regatta_tools.measures.agreement import clopper_pearson
from regatta_tools.measures.calibration import corrected

N, SEED = 300, 20261201


def simulate(p: float, se: float, sp: float, pairs: int, times: int) -> tuple[float, float, float, float]:
    """Coverage, coverage of the naive interval, mean width, and the share of draws that are refused."""
    rng = np.random.default_rng([SEED, int(1000 * p), int(1000 * se), int(1000 * sp), pairs])
    met = naive = refused = 0
    width = 0.0
    for _ in range(times):
        tp, tn = int(rng.binomial(pairs, se)), int(rng.binomial(pairs, sp))
        positives = int(rng.binomial(N, p * se + (1 - p) * (1 - sp)))
        found = corrected(positives, N, {
            "true_positive": tp, "false_negative": pairs - tp, "true_negative": tn, "false_positive": pairs - tn,
        })  # fmt: skip
        if found["value"] is None:
            refused += 1
            continue
        met += found["low"] <= p <= found["high"]
        width += found["high"] - found["low"]
        low, high = ((x + tn / pairs - 1) / (tp / pairs + tn / pairs - 1) for x in clopper_pearson(positives, N))
        naive += low <= p <= high
    given = times - refused
    return (met / given, naive / given, width / given, refused / times) if given else (np.nan, np.nan, np.nan, 1.0)


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{times} draws a row, {N} probes judged, intervals of 95 %.\n")
    print("| true rate | sensitivity | specificity | gold pairs a label | covered | naive | width | refused |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for p, (se, sp), pairs in itertools.product((0.02, 0.1, 0.4), ((0.95, 0.98), (0.9, 0.9), (0.7, 0.8)), (15, 75)):
        covered, naive, width, refused = simulate(p, se, sp, pairs, times)
        print(f"| {p} | {se} | {sp} | {pairs} | {covered:.3f} | {naive:.3f} | {width:.2f} | {refused:.3f} |")


if __name__ == "__main__":
    main()
