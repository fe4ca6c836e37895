"""Agreement: of a judge with labels (:func:`compare`), and of any raters with each other (:func:`agree`).

References: Clopper and Pearson (1934) and Wilson (1927) for intervals of a proportion; Cohen (1960) for kappa; the
coefficients of :mod:`regatta_tools.measures.coefficients`; docs/agreement.md has each formula with its trap.
A figure that is not defined is ``None`` with the reason, never 0, 1 or NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
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


# Agreement of raters


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion, without continuity correction; ``n`` must be positive."""
    from scipy.stats import norm

    if n <= 0 or not 0 <= successes <= n:
        raise ValueError("successes must lie between 0 and n, and n be positive")
    z = float(norm.ppf((1 + level) / 2))
    p, centre = successes / n, (successes + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(n * p * (1 - p) + z * z / 4)
    # At the ends the formula gives 0 and 1 but for rounding.
    return (0.0 if successes == 0 else centre - half), (1.0 if successes == n else centre + half)


def binomial_test(successes: int, n: int, rate: float = 0.5) -> float:
    """Exact two-sided p: the chance of all counts that are no likelier than the one seen. ``n`` must be positive."""
    from scipy.stats import binomtest

    return float(binomtest(successes, n, rate).pvalue)


def mcnemar(first_only: int, second_only: int) -> float | None:
    """Exact two-sided p of McNemar's test; ``None`` where no pair differs. It takes pairs as independent."""
    n = first_only + second_only
    return binomial_test(first_only, n) if n else None


#: Keys of the figures with the name for people; the second holds for two categories, the third with weights.
NAMES = {
    "agreement": ("raw agreement", "raw agreement", "weighted agreement"),
    "kappa": ("Cohen's kappa", "Cohen's kappa", "weighted kappa"),
    "fleiss": ("Scott's pi / Fleiss' kappa",) * 3,
    "conger": ("Conger's kappa",) * 3,
    "brennan_prediger": ("Brennan-Prediger", "PABAK", "Brennan-Prediger, weighted"),
    "ac": ("Gwet's AC1", "Gwet's AC1", "Gwet's AC2"),
    "alpha": ("Krippendorff's alpha",) * 3,
    "alpha_ordinal": ("Krippendorff's alpha, ordinal",) * 3,
    "spearman": ("Spearman's rank correlation",) * 3,
}
DESCRIBES = "describes only: it takes pairs as independent, and the pairs of one suite are not"
#: Beyond it one answer is so common that chance agreement is high and kappa low at any agreement.
MUCH_PREVALENCE = 0.6
#: Cells of the array of draws that is held in memory at a time.
CHUNK = 4_000_000


def agree(
    *files: Path | str,
    item: Sequence[str] = (),
    rater: str = "rater",
    value: str = "value",
    rater_columns: Sequence[str] = (),
    scale: Sequence[str] = (),
    weights: str = "nominal",
    strata: str | None = None,
    cluster: str | None = None,
    by: Sequence[str] = (),
    missing: Sequence[str] = (),
    package: Any = None,
    seed: int = 1,
    resamples: int = 10_000,
) -> dict[str, Any]:
    """Agreement of two raters or more, from one CSV table of ratings or from label files of one suite.

    See :func:`regatta_tools.measures.ratings.read` for the forms of input and for what is refused. ``weights`` is
    ``nominal``, ``linear`` or ``quadratic``, the last two on a declared ``scale`` of at least three values. Intervals
    (95 %) resample items, or clusters, within strata. Returns plain objects: for each group ``figures`` (value, low,
    high, n, reason), ``pairs`` (two raters each: table, agreement with Clopper-Pearson and Wilson intervals, kappa,
    prevalence and bias index, direction of disagreements) and ``raters`` (ratings, and what is missing by kind).
    A figure that is not defined is ``None`` with the reason. Formulas and sources: docs/agreement.md. Raises
    :class:`~regatta_tools.errors.InputError`.
    """
    from regatta_tools.errors import InputError
    from regatta_tools.measures import coefficients
    from regatta_tools.measures.ratings import read

    if weights not in coefficients.WEIGHTS:
        raise InputError(f"weights are {weights!r}", code="U216", mend=f"use {', '.join(coefficients.WEIGHTS)}")
    if resamples < 100:
        raise InputError(f"{resamples} resamples give no interval", code="U216", mend="use 1,000 or more")
    ratings = read(
        files, item=item, rater=rater, value=value, rater_columns=rater_columns, scale=scale, strata=strata,
        cluster=cluster, by=by, missing=missing, package=package,
    )  # fmt: skip
    size = len(ratings.groups[0].scale)
    if weights != "nominal" and (not ratings.declared or size < 3):
        what = "no scale is declared, and a category that nobody used would move the weights"
        raise InputError(
            what if not ratings.declared else f"weights need a scale of three values or more, not {size}",
            code="U216", place=ratings.source, mend="name all its values in order, such as --scale 1,2,3,4,5",
        )  # fmt: skip
    return of_ratings(ratings, weights, seed, resamples)


def of_ratings(ratings: Any, weights: str = "nominal", seed: int = 1, resamples: int = 10_000) -> dict[str, Any]:
    """Agreement of ratings that are read already (:class:`~regatta_tools.measures.ratings.Ratings`), as :func:`agree`
    returns it. Weights other than ``nominal`` need a declared scale of three values or more."""
    groups = [_of_group(g, ratings.declared, weights, seed, resamples) for g in ratings.groups]
    unit = "clusters" if ratings.groups[0].clusters is not None else "items"
    within = " within strata" if ratings.groups[0].strata is not None else ""
    notes = list(ratings.notes)
    if within:
        notes.append(
            "Strata fix how many items of each kind are compared. Where that is not how often they occur, every figure "
            "is one of this sample, and chance-corrected ones most of all."
        )
    if not ratings.declared:
        notes.append(
            "The scale is made of the values that occur. PABAK and AC1 depend on how many values there could be: "
            "declare them with --scale."
        )
    return {
        "schema_version": "1",
        "source": ratings.source,
        "weights": weights,
        "scale": ratings.groups[0].scale,
        "scale_declared": ratings.declared,
        "resampling": {"unit": unit, "within": "strata" if within else None, "resamples": resamples, "seed": seed,
                       "level": 0.95},
        "groups": groups,
        "notes": notes,
    }  # fmt: skip


def _of_group(group: Any, declared: bool, kind: str, seed: int, resamples: int) -> dict[str, Any]:
    import numpy as np

    from regatta_tools.measures import coefficients as co

    q, raters, codes = len(group.scale), len(group.raters), group.codes
    layout, w = co.Layout(q, raters), co.weights(kind, q)
    rows = co.features(codes, q)
    sums = rows.sum(axis=0)
    given = (codes >= 0).sum(axis=1)
    paired = int((given >= 2).sum())
    values = _figures_of(sums, layout, w, kind)
    draws, why_not = _draws(rows, group, seed, resamples)
    moved = None
    if draws is not None:
        parts = [_figures_of(s, layout, w, kind) for s in draws]
        moved = {name: np.concatenate([p[name] for p in parts]) for name in values}
    figures = {}
    for name, value in values.items():
        reason = _why_undefined(name, float(value), group, paired, declared)
        if not np.isfinite(value) or (paired < 2 and name != "agreement"):
            figures[name] = asdict(Figure(None, None, None, paired, reason))
        elif reason:  # exactly 0: one rater never varies
            figures[name] = asdict(Figure(0.0, None, None, paired, reason))
        else:
            low, high, reason = _interval(moved and moved[name], why_not)
            figures[name] = asdict(Figure(_tidy(value), low, high, paired, reason))
    agreement = figures["agreement"]
    # What is missing could have gone either way: all items, and pairs of raters in them, agree or differ.
    possible = raters * (raters - 1) / 2 * len(codes)
    both = given * (given - 1) / 2
    met = float((layout.part(rows, "pairs") * w).sum(axis=(-1, -2)) @ both)
    bounds = [met / possible, (met + possible - float(both.sum())) / possible] if possible else [0.0, 1.0]
    agreement["bounds"] = {"low": _tidy(bounds[0]), "high": _tidy(bounds[1])}
    errors = _errors(group, codes, q, w, figures)
    return {
        "by": group.name,
        "items": len(codes),
        "items_rated_twice": paired,
        "clusters": None if group.clusters is None else len(set(group.clusters)),
        "strata": None if group.strata is None else dict(sorted(Counter(group.strata).items())),
        "raters": [
            {"name": name, "ratings": int((codes[:, i] >= 0).sum()), "missing": dict(sorted(group.missing[i].items())),
             "shares": _shares(codes[:, i], group.scale)}
            for i, name in enumerate(group.raters)
        ],
        "names": {n: NAMES[n][2 if kind != "nominal" else q == 2] for n in figures},
        "figures": figures,
        "standard_errors": errors,
        "pairs": [_of_pair(group, a, b, w, kind) for a, b in combinations(range(raters), 2)],
    }  # fmt: skip


def _tidy(value: Any) -> float:
    """Twelve places: what floating point adds behind them differs from one way of summing to another."""
    return round(float(value), 12) + 0.0


def _shares(codes: Any, scale: list[str]) -> dict[str, float] | None:
    given = codes[codes >= 0]
    return {v: _tidy((given == i).mean()) for i, v in enumerate(scale)} if len(given) else None


def _figures_of(sums: Any, layout: Any, w: Any, kind: str) -> dict[str, Any]:
    """The figures that are reported, each of the shape of ``sums`` without its last axis."""
    from regatta_tools.measures import coefficients as co

    found = co.coefficients(sums, layout, w)
    if layout.q > 2 and kind != "nominal":
        coincidences = layout.part(sums, "coincidences")
        found["alpha_ordinal"] = co.alpha(coincidences, co.distances("ordinal", coincidences))
    if layout.raters == 2:
        found.pop("conger")  # Cohen's kappa where no rating is missing
    if layout.q > 2 and kind == "nominal":
        found.pop("spearman", None)  # nobody said that the categories have an order
    return {name: found[name] for name in NAMES if name in found}


def _draws(rows: Any, group: Any, seed: int, resamples: int) -> tuple[Any, str | None]:
    """Sums of features over resamples, in chunks of shape (some, features); ``None`` and why where there are none.

    Units that are alike are drawn together: how often each kind comes up in a resample is multinomial.
    """
    import numpy as np

    n = len(rows)
    clusters = group.clusters if group.clusters is not None else list(range(n))
    strata = group.strata if group.strata is not None else [""] * n
    place: dict[Any, int] = {}
    at = np.array([place.setdefault(c, len(place)) for c in clusters], np.int64)
    sums = np.zeros((len(place), rows.shape[1]))
    np.add.at(sums, at, rows)
    stratum = [""] * len(place)
    for number, name in zip(at, strata):
        stratum[number] = name
    sizes = Counter(stratum)
    what = "cluster" if group.clusters is not None else "item"
    if len(place) < 2:
        return None, f"one {what} gives no interval" if place else "there is no item"
    if group.strata is not None and min(sizes.values()) < 2:
        alone = sum(s < 2 for s in sizes.values())
        return None, f"{alone} of {len(sizes)} strata hold one {what} only, and resampling would take it for certain"
    rng = np.random.default_rng(seed)
    kinds = []
    for name in sorted(sizes):
        members = sums[[i for i, s in enumerate(stratum) if s == name]]
        alike, counts = np.unique(members.round(9), axis=0, return_counts=True)
        kinds.append((alike, counts))
    widest = max(len(alike) for alike, _ in kinds)
    step = max(1, min(resamples, CHUNK // max(widest, rows.shape[1])))
    chunks = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        total = np.zeros((size, rows.shape[1]))
        for alike, counts in kinds:
            total += rng.multinomial(counts.sum(), counts / counts.sum(), size=size) @ alike
        chunks.append(total)
    return chunks, None


def _interval(values: Any, why_not: str | None) -> tuple[float | None, float | None, str | None]:
    import numpy as np

    if values is None:
        return None, None, why_not
    defined = values[np.isfinite(values)]
    if len(defined) < len(values) / 2:
        return None, None, "the figure is not defined in most resamples"
    if np.ptp(defined) < 1e-9:
        return None, None, "no interval: every resample gives this value"
    low, high = np.quantile(defined, [0.025, 0.975])
    return _tidy(low), _tidy(high), None


def _why_undefined(name: str, value: float, group: Any, paired: int, declared: bool) -> str | None:
    """Why a figure is not defined, or what makes it 0 whatever the agreement."""
    import numpy as np

    codes = group.codes
    if paired == 0:
        return "no item has two ratings"
    if paired == 1 and name != "agreement":
        return "too few: one item has two ratings"
    both = codes[(codes >= 0).sum(axis=1) >= 2]
    used = np.unique(both[both >= 0])
    if not np.isfinite(value):
        if name in ("ac", "brennan_prediger"):
            return "only one category was used, and no scale says what else there could be"
        if name == "spearman":
            return "at least one of the two raters used one category only, and ranks of equals have no order"
        if len(used) == 1 and name.startswith("alpha"):
            return f"only one category was used ({group.scale[used[0]]}), so nothing could have differed"
        if len(used) == 1:
            return f"only one category was used ({group.scale[used[0]]}), so chance agreement is 1"
        return "chance agreement is 1"
    if name == "kappa" and codes.shape[1] == 2:
        for at, rater in enumerate(group.raters):
            if len(np.unique(both[:, at])) == 1:
                return f"{rater} used one category only, so kappa is 0 at any agreement"
    return None


def _errors(group: Any, codes: Any, q: int, w: Any, figures: dict[str, Any]) -> dict[str, Any]:
    """Standard errors by formula, which take items as independent."""
    import numpy as np

    from regatta_tools.measures import coefficients as co

    out: dict[str, Any] = {}
    if "kappa" in figures and figures["kappa"]["value"] is not None and figures["kappa"]["reason"] is None:
        table = _table(codes[:, 0], codes[:, 1], q)
        found = co.kappa_errors(table, w)
        if found is not None:
            out["kappa"] = {"se": _tidy(found[0]), "se_if_zero": _tidy(found[1])}
    if figures["ac"]["value"] is not None:
        error = co.ac_error((codes[:, :, None] == np.arange(q)).sum(axis=1), w)
        if error is not None:
            out["ac"] = {"se": _tidy(error)}
    return out


def _table(a: Any, b: Any, q: int) -> Any:
    """Counts of two raters' answers, shape (q, q), rows the first."""
    import numpy as np

    both = (a >= 0) & (b >= 0)
    return np.bincount(a[both] * q + b[both], minlength=q * q).reshape(q, q)


def _of_pair(group: Any, a: int, b: int, w: Any, kind: str) -> dict[str, Any]:
    """What two raters say, over the items that both rated."""
    import numpy as np

    from regatta_tools.measures import coefficients as co

    scale, q = group.scale, len(group.scale)
    table = _table(group.codes[:, a], group.codes[:, b], q)
    n, same = int(table.sum()), int(np.trace(table))
    names = [group.raters[a], group.raters[b]]
    agreement: dict[str, Any] = asdict(proportion(same, n, "item was rated by both"))
    agreement["wilson"] = dict(zip(("low", "high"), wilson(same, n))) if n else None
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    specific = {
        v: (_tidy(2 * table[i, i] / (rows[i] + columns[i])) if rows[i] + columns[i] else None)
        for i, v in enumerate(scale)
    }
    kappa = _plain(co.of_table(table.astype(float), w)["kappa"]) if n else None
    reason = None
    if n < 2:
        kappa, reason = None, "too few items were rated by both"
    elif kappa is None:
        reason = "only one category was used, so chance agreement is 1"
    else:
        for rater, marginal in zip(names, (rows, columns)):
            if (marginal > 0).sum() == 1:
                kappa, reason = 0.0, f"{rater} used one category only, so kappa is 0 at any agreement"
    out: dict[str, Any] = {
        "raters": names,
        "n": n,
        "table": table.tolist(),
        "agreement": agreement,
        "agreement_on": specific,
        "kappa": {"value": kappa, "reason": reason},
    }
    two = q == 2
    not_two = f"it is defined for two categories, and the scale has {q}" if not two else "no item was rated by both"
    for name, index in (("prevalence_index", table[0, 0] - table[-1, -1]), ("bias_index", rows[0] - columns[0])):
        known = two and n
        out[name] = {"value": _tidy(abs(index) / n) if known else None, "reason": None if known else not_two}
    out["direction"] = _direction(table, scale, names, kind)
    prevalence = out["prevalence_index"]["value"]
    out["notes"] = []
    if prevalence is not None and prevalence >= MUCH_PREVALENCE:
        out["notes"].append(
            f"one answer is far more common (prevalence index {prevalence:.2f}): chance agreement is high, and kappa "
            "is low or unstable at any raw agreement. Read PABAK, AC1 and the agreement on each answer beside it."
        )
    return out


def _plain(value: Any) -> float | None:
    import numpy as np

    return _tidy(value) if np.isfinite(value) else None


def _direction(table: Any, scale: list[str], names: list[str], kind: str) -> dict[str, Any]:
    """Which way two raters differ. ``first_more`` counts items on which the first rater stands higher on the scale."""
    import numpy as np

    upper, lower = int(np.triu(table, 1).sum()), int(np.tril(table, -1).sum())
    out: dict[str, Any] = {"differ": upper + lower, "by_value": {}}
    for i, v in enumerate(scale):
        out["by_value"][v] = {
            "first_only": int(table[i].sum() - table[i, i]), "second_only": int(table[:, i].sum() - table[i, i])
        }  # fmt: skip
    ordered = len(scale) == 2 or kind != "nominal"
    out["higher"] = {"first": lower, "second": upper} if ordered else None
    p = mcnemar(lower, upper) if ordered else None
    if not ordered:
        reason: str | None = "the categories have no declared order (weights are nominal)"
    else:
        reason = "no pair differs" if p is None else None
    out["mcnemar"] = {"p": p, "reason": reason, "note": DESCRIBES}
    if ordered and upper != lower:
        who, more, less = (names[0], lower, upper) if lower > upper else (names[1], upper, lower)
        word = f"says {scale[-1]!r} more often" if len(scale) == 2 else "stands higher on the scale"
        out["in_words"] = f"{who} {word}: {more} of {more + less} disagreements"
    elif ordered:
        out["in_words"] = "neither more often" if upper else "no disagreement"
    elif upper + lower:
        out["in_words"] = f"{upper + lower} disagreements, no order of the categories is declared"
    else:
        out["in_words"] = "no disagreement"
    return out
