"""Agreement of a judge with labels: sensitivity, specificity and kappa, each with an interval.

References: Clopper and Pearson (1934) for the exact interval of a proportion; Cohen (1960) for kappa.
A figure that is not defined is ``None`` with the reason, never 0, 1 or NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

RESAMPLES = 2000


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval over ``n`` pairs.

    What is not defined is ``None``, and ``reason`` says why; beside a value it says what to mind.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a proportion. ``n`` must be positive (``ValueError``)."""
    from scipy.stats import beta

    if n <= 0 or not 0 <= successes <= n:
        raise ValueError("successes must lie between 0 and n, and n be positive")
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, n - successes + 1))
    high = 1.0 if successes == n else float(beta.ppf(1 - tail, successes + 1, n - successes))
    return low, high


def proportion(successes: int, n: int, what: str) -> Figure:
    if n == 0:
        return Figure(None, None, None, 0, f"no {what}")
    return Figure(successes / n, *clopper_pearson(successes, n), n)


def kappa_of(table: Sequence[float]) -> float | None:
    """Cohen's kappa of a 2x2 table (both yes, judge only, label only, both no).

    ``None`` where it is not defined: an empty table, or chance agreement of 1.
    """
    a, b, c, d = table
    n = a + b + c + d
    if not n:
        return None
    chance = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2
    return None if chance >= 1 else ((a + d) / n - chance) / (1 - chance)


def compare(pairs: Sequence[tuple[str, bool, bool]], *, seed: int = 1) -> dict[str, Any]:
    """Hold a judge against labels.

    ``pairs`` holds (cluster, judge says yes, label says yes), one entry a pair judged. Intervals of
    sensitivity and specificity are exact (Clopper-Pearson) and take pairs as independent; that of
    kappa is a bootstrap over clusters (scenarios), since the pairs of one scenario hang together.
    Returns ``pairs``, ``table`` (counts) and the figures ``agreement``, ``sensitivity``,
    ``specificity`` and ``kappa`` as plain objects.
    """
    table = [0, 0, 0, 0]
    clusters: dict[str, list[int]] = {}
    for cluster, judged, label in pairs:
        index = (0 if label else 1) if judged else (2 if label else 3)
        table[index] += 1
        clusters.setdefault(cluster, [0, 0, 0, 0])[index] += 1
    a, b, c, d = table
    return {
        "pairs": len(pairs),
        "table": {"both": a, "judge_only": b, "label_only": c, "neither": d},
        "agreement": asdict(proportion(a + d, len(pairs), "pair")),
        "sensitivity": asdict(proportion(a, a + c, "pair is labelled yes")),
        "specificity": asdict(proportion(d, b + d, "pair is labelled no")),
        "kappa": asdict(_kappa(table, list(clusters.values()), seed)),
    }


def _kappa(table: list[int], clusters: list[list[int]], seed: int) -> Figure:
    import numpy as np

    n = sum(table)
    if n < 2:
        return Figure(None, None, None, n, "too few pairs")
    value = kappa_of(table)
    if value is None:
        return Figure(None, None, None, n, "only one category was used, so chance agreement is 1")
    a, b, c, d = table
    for who, constant in (("judge", 0 in (a + b, c + d)), ("labels", 0 in (a + c, b + d))):
        if constant:
            # The prevalence trap: agreement may be high, and no resample can say anything else than 0.
            return Figure(0.0, None, None, n, f"the {who} used one category only, so kappa is 0 at any agreement")
    if len(clusters) < 2:
        return Figure(value, None, None, n, "one scenario gives no interval")
    counts = np.asarray(clusters, dtype=float)
    draws = np.random.default_rng(seed).integers(0, len(counts), size=(RESAMPLES, len(counts)))
    values = [k for k in (kappa_of(tuple(row)) for row in counts[draws].sum(axis=1)) if k is not None]
    if len(values) < RESAMPLES / 2:
        return Figure(value, None, None, n, "most resamples use one category only")
    low, high = np.quantile(values, [0.025, 0.975])
    return Figure(value, float(low), float(high), n)
