"""Do the intervals of net exposure cover what they promise? Suites are simulated from known populations of scenarios.

    python bench/exposure_coverage.py [STUDIES]      a line a setting, by default from 1,000 studies (ten seconds)

docs/runs.md has the figures. A smaller simulation runs with the tests.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from regatta_tools.measures.exposure import _interval
from regatta_tools.measures.resampling import Resampler

FAULTS, RESAMPLES, MANY = 5, 1_000, 200_000
#: Scenarios, draws, spread of the ease of scenarios (logits), false positives of the judge, share of missing pairs.
SETTINGS = {
    "30 scenarios": (30, 1, 1.0, 0.05, 0.0),
    "30 scenarios, 3 draws": (30, 3, 1.0, 0.05, 0.0),
    "30 scenarios, a tenth missing": (30, 1, 1.0, 0.05, 0.1),
    "30 scenarios, few exposures": (30, 1, 1.0, 0.02, 0.0),
    "10 scenarios": (10, 1, 1.0, 0.05, 0.0),
}


def suite(rng: Any, n: int, draws: int, spread: float, error: float, base: float) -> tuple[Any, Any]:
    """Verdicts of the faulty arm and of control, shape (faults, scenarios, draws); faults of a scenario go along."""
    logits = rng.normal(size=(1, n, 1)) * spread + base + np.linspace(-1, 1, FAULTS)[:, None, None]
    shows = rng.random((FAULTS, n, draws)) < 1 / (1 + np.exp(-logits))
    faulty, control = shows | (rng.random(shows.shape) < error), rng.random(shows.shape) < error
    return faulty.astype(float), control.astype(float)


def coverage(setting: tuple[int, int, float, float, float], studies: int, base: float) -> tuple[float, float]:
    """The true net, and the share of studies whose interval holds it (a study without an interval does not)."""
    n, draws, spread, error, lost = setting
    rng = np.random.default_rng(12)
    faulty, control = suite(rng, MANY, 1, spread, error, base)
    true, met = float((faulty - control).mean()), 0
    for seed in range(studies):
        faulty, control = suite(rng, n, draws, spread, error, base)
        known = rng.random(faulty.shape) >= lost
        found = _interval(np.where(known, faulty - control, 0.0), known, Resampler(RESAMPLES, seed)).get("interval")
        met += found is not None and found["low"] <= true <= found["high"]
    return true, met / studies


if __name__ == "__main__":
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for name, setting in SETTINGS.items():
        true, share = coverage(setting, studies, -3.0 if "few" in name else 0.0)
        print(f"{name:<32} net {true:.3f}   95 % intervals met it in {100 * share:.1f} of 100", flush=True)
