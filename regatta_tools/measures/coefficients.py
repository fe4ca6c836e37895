"""Coefficients of agreement as functions of sums over items, so that a resample is a product of matrices.

Every coefficient here is a function of sums over items of a row of features (:func:`features`), and takes those sums
with any number of leading axes. What is not defined is NaN here, and only here;
:mod:`regatta_tools.measures.agreement` turns it into ``None`` with the reason.

References: Cohen (1960, 1968); Scott (1955); Fleiss (1971); Conger (1980); Brennan and Prediger (1981); Byrt, Bishop
and Carlin (1993); Gwet (2008; 2014, chapters 2 to 4, for weights and missing ratings); Krippendorff (2011); Fleiss,
Cohen and Everitt (1969) for standard errors of kappa.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: A chance agreement this close to 1 leaves nothing to divide by.
EPSILON = 1e-12
METRICS = ("nominal", "ordinal", "interval", "ratio")
WEIGHTS = ("nominal", "linear", "quadratic")


def weights(kind: str, q: int) -> Any:
    """Agreement weights on a scale of ``q`` steps, shape (q, q): 1 on the diagonal, 0 at the ends of the scale.

    Distances are between positions on the declared scale (1, 2, 5 are three even steps). Raises ``ValueError``.
    """
    import numpy as np

    if kind == "nominal" or q < 2:
        return np.eye(q)
    distance = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / (q - 1)
    if kind == "linear":
        return 1 - distance
    if kind == "quadratic":
        return 1 - distance**2
    raise ValueError(f"weights are one of: {', '.join(WEIGHTS)}")


@dataclass(frozen=True)
class Layout:
    """Where the features of ``q`` categories and ``raters`` raters (0: unnamed) stand in a row."""

    q: int
    raters: int

    @property
    def size(self) -> int:
        return 3 + 3 * self.q**2 + self.q * (1 + self.raters)

    def part(self, sums: Any, name: str) -> Any:
        """One part of the sums: ``rated``, ``paired`` and ``ratings`` of shape (...), matrices of shape (..., q, q),
        ``share`` of shape (..., q), ``by_rater`` of shape (..., raters, q)."""
        q, lead = self.q, sums.shape[:-1]
        scalars = ("rated", "paired", "ratings")
        if name in scalars:
            return sums[..., scalars.index(name)]
        start = 3
        for part in ("pairs", "coincidences", "joint"):
            if name == part:
                return sums[..., start : start + q * q].reshape(*lead, q, q)
            start += q * q
        if name == "share":
            return sums[..., start : start + q]
        return sums[..., start + q :].reshape(*lead, self.raters, q)


def features(codes: Any, q: int) -> Any:
    """The features of each item: ``codes`` of shape (items, raters) holds categories from 0, and -1 for no rating."""
    import numpy as np

    codes = np.asarray(codes)
    n, raters = codes.shape
    given = (codes[:, :, None] == np.arange(q)).astype(float)
    joint = given[:, 0, :, None] * given[:, 1, None, :] if raters == 2 else np.zeros((n, q, q))
    return np.concatenate(
        [features_of_counts(given.sum(axis=1), joint=joint), given.reshape(n, raters * q)], axis=1
    )


def features_of_counts(counts: Any, joint: Any = None) -> Any:
    """The features of items known by how many raters chose each category, shape (items, q)."""
    import numpy as np

    counts = np.asarray(counts, dtype=float)
    n, q = counts.shape
    total = counts.sum(axis=1)
    paired = total >= 2
    products = counts[:, :, None] * (counts[:, None, :] - np.eye(q))
    with np.errstate(divide="ignore", invalid="ignore"):
        coincidences = np.where(paired[:, None, None], products / (total - 1)[:, None, None], 0.0)
        pairs = np.where(paired[:, None, None], coincidences / total[:, None, None], 0.0)
        share = np.where(total[:, None] > 0, counts / total[:, None], 0.0)
    scalars = np.stack([total > 0, paired, total * paired], axis=1).astype(float)
    joint = np.zeros((n, q, q)) if joint is None else joint
    flat = [a.reshape(n, q * q) for a in (pairs, coincidences, joint)]
    return np.concatenate([scalars, *flat, share], axis=1)


def _beyond(agreement: Any, chance: Any) -> Any:
    """(observed - chance) / (1 - chance), NaN where chance leaves nothing."""
    import numpy as np

    left = 1 - chance
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left > EPSILON, (agreement - chance) / np.where(left > EPSILON, left, 1), np.nan)


def _divide(a: Any, b: Any) -> Any:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(b) > 0, a / np.where(np.asarray(b) > 0, b, 1), np.nan)


def coefficients(sums: Any, layout: Layout, w: Any) -> dict[str, Any]:
    """Every coefficient from the sums of features, shape (..., features); each result has the shape (...).

    ``agreement`` is over items with two ratings or more; ``fleiss`` is Scott's pi for two raters;
    ``brennan_prediger`` is PABAK for two categories; ``ac`` is AC1, and AC2 with weights; ``conger`` is Cohen's kappa
    for any number of raters.
    """
    import numpy as np

    q, part = layout.q, lambda name: layout.part(sums, name)
    out: dict[str, Any] = {}
    agreement = _divide((part("pairs") * w).sum(axis=(-1, -2)), part("paired"))
    out["agreement"] = agreement
    share = _divide(part("share"), part("rated")[..., None])
    out["fleiss"] = _beyond(agreement, (share[..., :, None] * share[..., None, :] * w).sum(axis=(-1, -2)))
    total = w.sum()
    if q > 1:
        out["brennan_prediger"] = _beyond(agreement, np.full_like(agreement, total / q**2))
        out["ac"] = _beyond(agreement, total / (q * (q - 1)) * (share * (1 - share)).sum(axis=-1))
    else:
        out["brennan_prediger"] = out["ac"] = np.full_like(agreement, np.nan)
    out["alpha"] = alpha(part("coincidences"), 1 - w)
    if layout.raters:
        out["conger"] = _conger(agreement, part("by_rater"), w)
    if layout.raters == 2:
        out |= of_table(part("joint"), w)
    return out


def _conger(agreement: Any, by_rater: Any, w: Any) -> Any:
    import numpy as np

    raters = by_rater.shape[-2]
    p = _divide(by_rater, by_rater.sum(axis=-1, keepdims=True))
    summed = p.sum(axis=-2)
    # Chance that two different raters meet: all pairs of raters, without a rater with himself.
    both = summed[..., :, None] * summed[..., None, :] - np.einsum("...gk,...gl->...kl", p, p)
    return _beyond(agreement, (both * w).sum(axis=(-1, -2)) / (raters * (raters - 1)))


def alpha(coincidences: Any, distance: Any) -> Any:
    """Krippendorff's alpha from coincidences, shape (..., q, q), and squared distances, broadcast to the same shape."""
    marginal = coincidences.sum(axis=-1)
    n = marginal.sum(axis=-1)
    observed = (coincidences * distance).sum(axis=(-1, -2))
    expected = (marginal[..., :, None] * marginal[..., None, :] * distance).sum(axis=(-1, -2))
    # Undefined where all ratings are alike: nothing could have differed.
    return 1 - _divide((n - 1) * observed, expected)


def distances(metric: str, coincidences: Any, values: Any = None) -> Any:
    """Squared distances of a metric of Krippendorff (2011), shape (..., q, q); ``values``: numbers of the scale."""
    import numpy as np

    q = coincidences.shape[-1]
    values = np.arange(1.0, q + 1) if values is None else np.asarray(values, dtype=float)
    if metric == "nominal":
        return 1 - np.eye(q)
    if metric == "interval":
        return np.subtract.outer(values, values) ** 2
    if metric == "ratio":
        total = np.add.outer(values, values)
        return np.where(total != 0, np.subtract.outer(values, values) / np.where(total != 0, total, 1), 0) ** 2
    if metric != "ordinal":
        raise ValueError(f"a metric is one of: {', '.join(METRICS)}")
    marginal = coincidences.sum(axis=-1)
    middle = np.cumsum(marginal, axis=-1) - marginal / 2
    return (middle[..., :, None] - middle[..., None, :]) ** 2


def of_table(joint: Any, w: Any) -> dict[str, Any]:
    """What two raters' table says, shape (..., q, q), rows the first rater: ``kappa`` and ``spearman``."""
    import numpy as np

    n = joint.sum(axis=(-1, -2))
    p = _divide(joint, n[..., None, None])
    rows, columns = p.sum(axis=-1), p.sum(axis=-2)
    chance = (rows[..., :, None] * columns[..., None, :] * w).sum(axis=(-1, -2))
    out = {"kappa": _beyond((p * w).sum(axis=(-1, -2)), chance)}
    # Midranks follow from the marginals, so rank correlation is a function of the table.
    x, y = (np.cumsum(m, axis=-1) - m / 2 - 0.5 for m in (rows, columns))
    spread = np.sqrt((rows * x**2).sum(axis=-1) * (columns * y**2).sum(axis=-1))
    moment = np.einsum("...kl,...k,...l->...", p, x, y)
    out["spearman"] = np.where(spread > EPSILON, moment / np.where(spread > EPSILON, spread, 1), np.nan)
    return out


# Standard errors by formula. They take items as independent.


def kappa_errors(table: Any, w: Any) -> tuple[float, float] | None:
    """Standard errors of (weighted) kappa, in general and where kappa is 0 (Fleiss, Cohen and Everitt 1969).

    ``table`` has the shape (q, q) and holds counts. ``None`` where kappa is not defined.
    """
    import numpy as np

    table = np.asarray(table, dtype=float)
    n = table.sum()
    if not n:
        return None
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    chance = float(rows @ w @ columns)
    if 1 - chance <= EPSILON:
        return None
    value = (float((p * w).sum()) - chance) / (1 - chance)
    mean = (w @ columns)[:, None] + (w.T @ rows)[None, :]
    inner = float((p * (w - mean * (1 - value)) ** 2).sum()) - (value - chance * (1 - value)) ** 2
    null = float((np.outer(rows, columns) * (w - mean) ** 2).sum()) - chance**2
    return tuple(float(np.sqrt(max(v, 0.0) / n)) / (1 - chance) for v in (inner, null))  # type: ignore[return-value]


def ac_error(counts: Any, w: Any, *, corrected: bool = True) -> float | None:
    """Standard error of AC1 or AC2 from counts by category, shape (items, q) (Gwet 2008; 2014, section 5).

    ``corrected`` divides by n - 1, as published for ratings of many raters; the form for a table of two divides by n.
    ``None`` where it is not defined.
    """
    import numpy as np

    counts = np.asarray(counts, dtype=float)
    counts = counts[counts.sum(axis=1) > 0]
    n, q = counts.shape
    total = counts.sum(axis=1)
    paired = total >= 2
    if n < 2 or q < 2 or not paired.any():
        return None
    share = counts / total[:, None]
    prior = share.mean(axis=0)
    scale = w.sum() / (q * (q - 1))
    chance = scale * float((prior * (1 - prior)).sum())
    own = np.where(paired, (counts * (counts @ w - 1)).sum(axis=1) / np.where(paired, total * (total - 1), 1), 0)
    agreement = own.sum() / paired.sum()
    if 1 - chance <= EPSILON:
        return None
    value = (agreement - chance) / (1 - chance)
    each = n / paired.sum() * (own - chance * paired) / (1 - chance)
    each = each - 2 * (1 - value) * (scale * (share @ (1 - prior)) - chance) / (1 - chance)
    return float(np.sqrt(((each - value) ** 2).sum() / (n * (n - 1 if corrected else n))))


def fleiss_test(counts: Any) -> tuple[float, float, float] | None:
    """Fleiss' kappa with its standard error where it is 0, and z. Every item has the same number of ratings.

    ``counts`` has the shape (items, q). Reference: Fleiss, Nee and Landis (1979). ``None`` where it is not defined.
    """
    import numpy as np

    counts = np.asarray(counts, dtype=float)
    totals = counts.sum(axis=1)
    if not len(counts) or totals.min() != totals.max() or totals[0] < 2:
        return None
    n, r = len(counts), totals[0]
    p = counts.sum(axis=0) / (n * r)
    spread = float((p * (1 - p)).sum())
    if spread <= EPSILON:
        return None
    sums = features_of_counts(counts).sum(axis=0)
    value = float(coefficients(sums, Layout(len(p), 0), np.eye(len(p)))["fleiss"])
    variance = 2 / (n * r * (r - 1)) * (spread**2 - float((p * (1 - p) * (1 - 2 * p)).sum())) / spread**2
    error = float(np.sqrt(variance))
    return value, error, value / error
