"""Do the intervals of V3 cover what they promise? Studies are simulated from known populations of suites.

    python bench/coverage.py [STUDIES]       a line a setting, by default from 1,000 studies (a minute)

docs/measures.md has the table. A smaller simulation runs with the tests.
"""

from __future__ import annotations

import sys
from typing import Any

import measures
import numpy as np

from regatta_tools.measures import diagnostics
from regatta_tools.measures.resampling import Resampler

CELLS, FAULTS, RESAMPLES = 5, 5, 600
#: Suites a cell, spread of the ease of suites, strength of what links the stages of one suite and fault (logits).
SETTINGS = {
    "12, weak": (12, 0.5, 1.0),
    "12, none": (12, 0.0, 0.0),
    "12, strong": (12, 0.0, 2.0),
    "6, weak": (6, 0.5, 1.0),
}


def study(rng: Any, n: int, ease: float, link: float, d: Any, e: Any) -> tuple[Any, Any]:
    """Verdicts of n suites on the faults of one cell at both stages; ``d`` and ``e`` are the logits of the faults."""
    common = rng.normal(size=(n, 1)) * ease + rng.normal(size=(n, FAULTS)) * link
    return tuple((rng.logistic(size=(n, FAULTS)) < logits + common).astype(float) for logits in (d, e))


def coverage(setting: tuple[int, float, float], studies: int) -> dict[str, float]:
    """Share of studies whose intervals of alpha, Delta and the per-fault margin hold the true value."""
    n, ease, link = setting
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.3, (2, CELLS, FAULTS))
    many = [study(rng, 200_000, ease, link, *logits[:, c]) for c in range(CELLS)]
    true = {
        "alpha": np.mean([(d == e).mean() for d, e in many]),
        "Delta": np.mean([d.mean() - e.mean() for d, e in many]),
        "corrected": np.mean([2 * ((d - d.mean(0)) * (e - e.mean(0))).mean() for d, e in many]),
    }
    true["as printed"] = true["corrected"]
    met = dict.fromkeys(("alpha", "Delta", "as printed", "corrected"), 0)
    for seed in range(studies):
        drawn = [study(rng, n, ease, link, *logits[:, c]) for c in range(CELLS)]
        blocks = measures.blocks(np.stack([d for d, _ in drawn]), np.stack([e for _, e in drawn]))
        sums = [diagnostics.pair_sums(b) for b in blocks]
        draws = Resampler(RESAMPLES, seed)
        moved, base = diagnostics._v3_resampled(blocks, sums, draws, faults_too=False)
        known = [np.full(FAULTS, n)] * CELLS
        corrected = float(np.mean([diagnostics._per_fault(s.sum(axis=1), k)[1] for s, k in zip(sums, known)]))
        found = {
            "alpha": draws.interval(moved["alpha"])[0],
            "Delta": draws.interval(moved["delta"])[0],
            "as printed": draws.interval(moved["alpha"] - base)[0],
            "corrected": diagnostics._jackknife(sums, known, corrected, draws.level),
        }
        for name, (low, high) in found.items():
            met[name] += low <= true[name] <= high
    return {name: count / studies for name, count in met.items()}


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name, setting in SETTINGS.items():
        print(name, {k: round(float(v), 3) for k, v in coverage(setting, studies).items()})


if __name__ == "__main__":
    main()
