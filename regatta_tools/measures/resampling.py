"""Resampling of suites within strata, all at once.

A resample of a stratum of n suites draws n of them with replacement. What a statistic needs of a stratum are sums over
its suites, so a resample is *counts* (how often each suite was drawn), and the sums of all resamples are one product of
matrices, (columns, suites) by (suites, resamples). The faults and draws of a suite stay together, as columns.

References: Efron and Tibshirani (1993), chapters 6, 8 and 13 (percentile interval); Owen (2007), The pigeonhole
bootstrap (both ways); Phipson and Smyth (2010) for the value of a permutation test.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

RESAMPLES, SEED, LEVEL = 10_000, 1, 0.95
#: Up to so many units in a stratum, resamples are counted by comparing bytes (a count fits into one).
FEW = 128


class Resampler:
    """Draws for one analysis. A stratum draws from a stream of its own, named by its key, so that its interval does not
    move when another stratum comes or goes."""

    def __init__(self, resamples: int = RESAMPLES, seed: int = SEED, level: float = LEVEL) -> None:
        self.resamples, self.seed, self.level = resamples, seed, level
        self._held: dict[tuple[Any, ...], Any] = {}

    def once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What ``make`` returns, made once for each key: one cell's part serves the whole and the cell itself."""
        if key not in self._held:
            self._held[key] = make()
        return self._held[key]

    def stream(self, *key: str) -> Any:
        """The random generator of a key."""
        import numpy as np

        digest = hashlib.sha256("\0".join(key).encode()).digest()
        words = [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 16, 4)]
        return np.random.default_rng([self.seed, *words])

    def counts(self, n: int, *key: str) -> Any:
        """How often each of n units was drawn, an array of shape (n, resamples) whose columns sum to n."""
        return self.once(("counts", n, *key), lambda: self._counts(n, *key))

    def _counts(self, n: int, *key: str) -> Any:
        import numpy as np

        drawn = self.stream("counts", *key).integers(0, n, size=(n, self.resamples), dtype=np.uint32)
        if n > FEW:
            at = drawn.astype(np.int64) * self.resamples + np.arange(self.resamples)
            counts = np.bincount(at.ravel(), minlength=self.resamples * n).reshape(n, self.resamples)
        else:
            # Comparing bytes n times over is faster than counting, as long as n is small.
            small = drawn.astype(np.uint8)
            counts = np.empty((n, self.resamples), np.uint8)
            for unit in range(n):
                np.add.reduce((small == unit).view(np.uint8), axis=0, dtype=np.uint8, out=counts[unit])
        return counts.astype(np.float64)

    def orders(self, n: int, *key: str) -> Any:
        """Random orders of n units, shape (resamples, n)."""
        import numpy as np

        def make() -> Any:
            order = np.argsort(self.stream("orders", *key).random((self.resamples, n)), axis=1)
            return order.astype(np.int16 if n < 1 << 15 else np.int64)

        return self.once(("orders", n, *key), make)

    def interval(self, values: Any) -> tuple[list[float] | None, str | None]:
        """The percentile interval of resampled values, shape (resamples,), or ``None`` with the reason."""
        import numpy as np

        values = np.asarray(values)
        defined = values[~np.isnan(values)]
        if len(defined) < self.resamples / 2:
            return None, "the figure is not defined in most resamples"
        if np.ptp(defined) < 1e-12:
            return None, "all resamples give the same value: resampling cannot say how uncertain it is"
        tail = (1 - self.level) / 2
        low, high = np.quantile(defined, [tail, 1 - tail])
        return [float(low), float(high)], None


def permutation_value(observed: float, permuted: Any) -> float:
    """One-sided p of a permutation test: the share of orders, the observed one among them, that reach ``observed``."""
    return float((1 + (permuted >= observed - 1e-12).sum()) / (1 + len(permuted)))


def why_no_interval(sizes: Sequence[int], what: str = "suite") -> str | None:
    """Why strata of these sizes give no interval, or ``None`` where they do."""
    if not sizes:
        return f"there is no {what}"
    if max(sizes) < 2:
        return f"one {what} gives no interval" if len(sizes) == 1 else f"one {what} in each stratum gives no interval"
    if min(sizes) < 2:
        single = sum(s < 2 for s in sizes)
        return f"{single} of {len(sizes)} strata hold one {what} only, and resampling would take it for certain"
    return None
