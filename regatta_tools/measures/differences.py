"""Differences between strategies, with simultaneous intervals, and in words that claim no more than these allow.

A difference is taken within each cell and generator in which both strategies have suites, and averaged over these
strata with equal weight: a strategy that was tried in an easy cell gains nothing by it. The unit is the suite; what is
inferred is about other suites made in the same way, for these requirements and faults.

Suites are resampled within generator, cell and strategy, and the means rescaled by root n/(n-1) (Rao and Wu, JASA 83,
1988), since a plain resample of three suites is too narrow by the root of 2/3. The intervals of all pairs of
strategies by one measure hold together with 95 % (largest studentised deviation, single step: Hothorn, Bretz and
Westfall, Biometrical Journal 50, 2008), widened by the ratio of Student's t to the normal quantile, with degrees of
freedom after Satterthwaite (1946). Between measures and between generators nothing is adjusted.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from regatta_tools.measures.diagnostics import suite_values
from regatta_tools.measures.population import MEASURES, UNSTATED, Block, Population
from regatta_tools.measures.resampling import RESAMPLES, SEED, Resampler

#: Fewest suites of each strategy in each cell by each generator for an interval.
REPEATS = 3
MULTIPLICITY = (
    "simultaneous 95 % intervals over all pairs of strategies of one measure (max-t); measures and generators are not "
    "adjusted for each other"
)
#: What a difference comes to. Only the first says that strategies differ.
VERDICTS = ("difference", "open", "not separated", "too few", "undefined")


def differences(people: Population, *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Any]:
    """Differences of every measure between every pair of strategies, for each generator and over all of them.

    Returns ``by_generator`` (generator -> measure -> list of pairs) and ``all`` (the same over generators, where there
    are several), with ``unit``, ``multiplicity`` and ``repeats``. A pair has ``a``, ``b``, ``difference`` (a minus b),
    ``interval``, ``bounds`` (over all values of what is missing), ``suites`` of both, ``strata``, ``verdict`` (one of
    :data:`VERDICTS`), ``says`` (the sentence) and ``reason`` where there is no interval.
    """
    draws = Resampler(resamples, seed)
    out: dict[str, Any] = {
        "unit": "the suite, resampled within generator, cell and strategy",
        "multiplicity": MULTIPLICITY,
        "repeats": REPEATS,
        "by_generator": {g: _measures(people.of(generator=g), draws) for g in people.generators},
        "all": None,
    }
    if len(people.generators) > 1:
        out["all"] = _measures(people.blocks, draws)
    return out


def _measures(blocks: list[Block], draws: Resampler) -> dict[str, list[dict[str, Any]]]:
    names = sorted({s for b in blocks for s in b.strategies()} - {UNSTATED})
    values = [[suite_values(b, fill) for b in blocks] for fill in (None, 0.0, 1.0)]
    return {m: _pairs(m, blocks, names, values, draws) for m in MEASURES}


class _Stratum:
    """The suites of one strategy in one cell by one generator that have a value of the measure."""

    def __init__(self, block: Block, strategy: str, values: Any, measure: str, draws: Resampler) -> None:
        import numpy as np

        mine = np.array([u.strategy == strategy for u in block.units])
        known = values[mine]
        self.key = (block.generator, block.cell)
        self.there = bool(mine.any())
        self.values = known[~np.isnan(known)]
        self.n = len(self.values)
        self.mean = float(self.values.mean()) if self.n else float("nan")
        #: Of the mean.
        self.variance = float(self.values.var(ddof=1)) / self.n if self.n > 1 else float("nan")
        self.moved = None
        if self.n > 1:
            raw = self.values @ draws.counts(self.n, block.generator, block.cell, strategy) / self.n
            self.moved = (raw - self.mean) * (self.n / (self.n - 1)) ** 0.5


def _pairs(
    measure: str, blocks: list[Block], names: list[str], values: list[list[dict[str, Any]]], draws: Resampler
) -> list[dict[str, Any]]:
    import numpy as np

    known, low, high = ([v[measure] for v in by_block] for by_block in values)
    strata = {(b.generator, b.cell, s): _Stratum(b, s, v, measure, draws) for b, v in zip(blocks, known) for s in names}
    rows, moved, errors = [], [], []
    for a, b in combinations(names, 2):
        shared = [k for k in dict.fromkeys((x.generator, x.cell) for x in blocks)
                  if strata[(*k, a)].n and strata[(*k, b)].n]  # fmt: skip
        sides = [[strata[(*k, s)] for k in shared] for s in (a, b)]
        row: dict[str, Any] = {
            "a": a, "b": b, "difference": None, "interval": None, "bounds": None,
            "suites": [sum(s.n for s in side) for side in sides], "strata": len(shared), "verdict": "undefined",
            "reason": None, "says": "",
        }  # fmt: skip
        rows.append(row)
        if not shared:
            row["reason"] = f"no cell and generator has suites of both with {measure}"
            continue
        count = len(shared)
        row["difference"] = float(np.mean([x.mean - y.mean for x, y in zip(*sides)]))
        ends = [
            _filled(blocks, shared, first, a) - _filled(blocks, shared, second, b)
            for first, second in ((low, high), (high, low))
        ]
        row["bounds"] = None if np.isnan(ends).any() else [float(ends[0]), float(ends[1])]
        fewest = min(s.n for side in sides for s in side)
        if fewest < REPEATS:
            row["verdict"] = "too few"
            row["reason"] = f"{fewest} suite{'s' * (fewest != 1)} in some cell, and {REPEATS} are needed"
            continue
        parts = [s.variance for side in sides for s in side]
        variance = sum(parts) / count**2
        if variance < 1e-20:
            row["verdict"] = "undefined"
            row["reason"] = "suites of one strategy and cell do not differ: resampling cannot say how uncertain it is"
            continue
        freedom = sum(parts) ** 2 / sum(v**2 / (s.n - 1) for v, s in zip(parts, [s for x in sides for s in x]))
        deviation = sum(x.moved - y.moved for x, y in zip(*sides)) / count
        row["_error"], row["_freedom"] = variance**0.5, freedom
        moved.append(np.abs(deviation) / variance**0.5)
        errors.append(row)
    if errors:
        from scipy.stats import norm, t

        largest = float(np.quantile(np.max(moved, axis=0), draws.level))
        # What Student's t adds at the error of one of so many pairs.
        tail = (1 - draws.level) / 2 / len(errors)
        for row in errors:
            wider = float(t.ppf(1 - tail, row["_freedom"]) / norm.ppf(1 - tail))
            half = largest * wider * row.pop("_error")
            row.pop("_freedom")
            row["interval"] = [row["difference"] - half, row["difference"] + half]
            row["verdict"] = _verdict(row)
    for row in rows:
        row["says"] = says(measure, row)
    return rows


def _filled(blocks: list[Block], shared: list[tuple[str, str]], values: list[Any], strategy: str) -> float:
    """The mean over strata of a strategy when what is missing is set to one end."""
    import numpy as np

    means = []
    for block, v in zip(blocks, values):
        if (block.generator, block.cell) in shared:
            mine = v[np.array([u.strategy == strategy for u in block.units])]
            means.append(float(np.nanmean(mine)) if not np.isnan(mine).all() else float("nan"))
    return float(np.mean(means))


def _verdict(row: dict[str, Any]) -> str:
    low, high = row["interval"]
    if low <= 0 <= high:
        return "not separated"
    bounds = row["bounds"]
    return "open" if bounds is None or bounds[0] <= 0 <= bounds[1] else "difference"


def says(measure: str, row: dict[str, Any]) -> str:
    """The sentence of a pair. It calls no strategy better; it says where a measure is higher, and how far that goes."""
    pair, n = f"{measure} of {row['a']} and {row['b']}", f"{row['suites'][0]} and {row['suites'][1]} suites"
    if row["verdict"] in ("too few", "undefined"):
        shown = "" if row["difference"] is None else f", {row['difference']:+.2f} in these suites"
        return f"{pair}: {row['verdict']} ({row['reason']}){shown}"
    low, high = row["interval"]
    measured = f"{row['difference']:+.2f} [{low:+.2f}, {high:+.2f}], {n}"
    if row["verdict"] == "not separated":
        return f"{pair}: not separated, {measured}"
    more = row["a"] if row["difference"] > 0 else row["b"]
    if row["verdict"] == "open":
        ends = "" if row["bounds"] is None else f" ({row['bounds'][0]:+.2f} to {row['bounds'][1]:+.2f})"
        return f"{pair}: open, {measured}, since missing verdicts could turn it{ends}"
    return f"{pair}: a difference, higher with {more}, {measured}"
