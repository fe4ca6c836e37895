"""What a judge's known errors say of its verdicts: sensitivity, specificity, and rates corrected for both.

References: Clopper and Pearson (1934) for the intervals of sensitivity and specificity; Rogan and Gladen (American
Journal of Epidemiology 107, 1978) for the corrected rate; Lang and Reiczigel (Preventive Veterinary Medicine 113, 2014)
for its interval, which carries the uncertainty of the rate seen and of both halves of the calibration. All of them take
probes as independent, and the probes of one suite are not. Missing verdicts (protocol, section 11) are in no figure:
they are counted apart, and bounds say what they could have made of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from regatta_tools.measures.agreement import clopper_pearson, proportion

LEVEL = 0.95
METHOD = "Rogan and Gladen (1978), interval of Lang and Reiczigel (2014)"
#: A chance of false alarm of a scan whose interval is wider than this says nothing of the scan.
WIDEST = 0.5
INDEPENDENT = "it takes probes as independent, and those of one suite are not: this illustrates, a control arm measures"


def part(
    stage: str, judged: Iterable[tuple[bool, str]], *, cell: str | None = None, language: str | None = None,
    near_miss: bool | None = None, contested: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Sensitivity and specificity over (label, outcome) pairs, an object of the class ``CalibrationPart``.

    An outcome is ``positive``, ``negative``, or the kind of a missing verdict. Both shares are over pairs with a
    verdict, with exact 95 % intervals; their bounds say what they would be if every missing verdict were wrong, or
    right. ``cell``, ``language`` and ``near_miss`` say which pairs these are, ``contested`` how many are left out
    because their labellers differ. A share of nothing has a reason and no value.
    """
    judged = list(judged)
    kinds = Counter(o for _, o in judged if o not in ("positive", "negative"))
    counts = Counter((label, "missing" if o in kinds else o) for label, o in judged)
    right, missed, lost = (counts[True, o] for o in ("positive", "negative", "missing"))
    cleared, alarms, unseen = (counts[False, o] for o in ("negative", "positive", "missing"))
    named = {"cell": cell, "language": language, "near_miss": near_miss}
    return {
        "stage": stage,
        **{k: v for k, v in named.items() if v is not None},
        "labelled_pairs": counts.total(),
        "contested": contested,
        "true_positive": right,
        "false_negative": missed,
        "true_negative": cleared,
        "false_positive": alarms,
        "missing_yes": lost,
        "missing_no": unseen,
        "missing_verdicts": [{"outcome": kind, "verdict_count": n} for kind, n in sorted(kinds.items())],
        "sensitivity": _share(right, right + missed, lost, "labelled yes"),
        "specificity": _share(cleared, cleared + alarms, unseen, "labelled no"),
    }


def _share(right: int, n: int, lost: int, what: str) -> dict[str, Any]:
    figure = asdict(proportion(right, n, f"pair {what} got a verdict"))
    figure["pairs_judged"] = figure.pop("n")
    whole = n + lost
    return figure | {
        "bound_low": right / whole if whole else 0.0,
        "bound_high": (right + lost) / whole if whole else 1.0,
    }


def _counts(found: dict[str, Any]) -> tuple[int, int, int, int]:
    """Detected of labelled yes, rejected of labelled no; pairs with a verdict alone."""
    tp, fn, tn, fp = (found[k] for k in ("true_positive", "false_negative", "true_negative", "false_positive"))
    return tp, tp + fn, tn, tn + fp


def why_no_correction(found: dict[str, Any]) -> str | None:
    """Why verdicts cannot be corrected by a part of a calibration, ``None`` where they can.

    The lower bound of sensitivity + specificity - 1 is made of both exact lower bounds: it fails in 5 % of calibrations
    at most (Bonferroni), however the two hang together.
    """
    detected, yes, rejected, no = _counts(found)
    for n, what in ((yes, "yes"), (no, "no")):
        if not n:
            return f"no pair labelled {what} got a verdict"
    low = clopper_pearson(detected, yes, LEVEL)[0] + clopper_pearson(rejected, no, LEVEL)[0] - 1
    if low > 0:
        return None
    seen = detected / yes + rejected / no - 1
    return (
        f"sensitivity + specificity - 1 is {seen:.2f} with a lower bound of {low:.2f}, so it is not clearly above 0: "
        "the judge may say no more than chance"
    )


def corrected(positives: int, n: int, found: dict[str, Any], *, missing: int = 0) -> dict[str, Any]:
    """The share of probes that are truly positive, behind ``positives`` verdicts of ``n``.

    p = (q + sp - 1) / (se + sp - 1) with q = positives / n (Rogan and Gladen 1978); ``low`` and ``high`` are the 95 %
    interval of Lang and Reiczigel (2014). What falls outside 0 to 1 is clipped: ``clipped`` says so, and ``unclipped``
    is the estimate as computed. ``missing`` verdicts are not in ``n``; ``bound_low`` and ``bound_high`` are what it is
    with all of them no, and all yes. Where no correction can be made, or verdicts and calibration contradict each
    other, ``value`` is ``None`` with the ``reason``. For
    single probes, not for scans: see :func:`scan_correction`. ``ValueError`` for counts that cannot be.
    """
    if n < 0 or missing < 0 or not 0 <= positives <= n:
        raise ValueError("positive verdicts lie between 0 and the number of verdicts")
    out: dict[str, Any] = {"observed": positives / n if n else None, "n": n, "missing": missing, "method": METHOD}
    reason = why_no_correction(found) or (None if n else "no probe got a verdict")
    if reason:
        none = dict.fromkeys(("value", "low", "high", "unclipped", "bound_low", "bound_high"))
        return out | none | {"clipped": False, "reason": reason}
    value = _rogan_gladen(positives / n, found)
    low, high = _lang_reiczigel(positives, n, found)
    if high <= 0 or low >= 1:
        # Clipping would leave one point, which looks certain.
        none = dict.fromkeys(("value", "low", "high", "bound_low", "bound_high"))
        which, rate = ("fewer", "false-positive rate") if high <= 0 else ("more", "sensitivity")
        reason = (
            f"there are {which} positive verdicts ({positives} of {n}) than the judge's {rate} on the gold probes "
            "leaves room for: the calibration does not fit this run"
        )
        return out | none | {"unclipped": value, "clipped": False, "reason": reason}
    ends = [_clip(_rogan_gladen((positives + more) / (n + missing), found)) for more in (0, missing)]
    return out | {
        "value": _clip(value),
        # An interval that was cut at the end where the estimate was cut would else leave it out.
        "low": min(_clip(low), _clip(value)),
        "high": max(_clip(high), _clip(value)),
        "unclipped": value,
        "clipped": not all(0 <= x <= 1 for x in (value, low, high)),
        "bound_low": ends[0],
        "bound_high": ends[1],
        "reason": None,
    }


def _clip(share: float) -> float:
    return min(1.0, max(0.0, share))


def _rogan_gladen(seen: float, found: dict[str, Any]) -> float:
    detected, yes, rejected, no = _counts(found)
    return (seen + rejected / no - 1) / (detected / yes + rejected / no - 1)


def _lang_reiczigel(positives: int, n: int, found: dict[str, Any]) -> tuple[float, float]:
    """The interval before clipping: all three shares are drawn towards the middle, then a Wald interval is shifted."""
    from scipy.stats import norm

    detected, yes, rejected, no = _counts(found)
    z2 = float(norm.ppf((1 + LEVEL) / 2)) ** 2
    n_se, n_sp, n_q = yes + 2, no + 2, n + z2
    se, sp, q = (detected + 1) / n_se, (rejected + 1) / n_sp, (positives + z2 / 2) / n_q
    p = (q + sp - 1) / (se + sp - 1)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    shift = 2 * z2 * (p * of_se - (1 - p) * of_sp)
    spread = math.sqrt(q * (1 - q) / n_q + p**2 * of_se + (1 - p) ** 2 * of_sp) / (se + sp - 1)
    half = math.sqrt(z2) * spread
    return p + shift - half, p + shift + half


def false_alarm(n: int, found: dict[str, Any]) -> dict[str, Any]:
    """The chance that a scan of ``n`` probes which all deserve no comes out positive: 1 - (1 - f)^n.

    ``rate`` is the false-positive rate f, with its exact 95 % interval; ``value``, ``low`` and ``high`` carry it over.
    ``refused`` is the reason why scans are not corrected by it: its interval is wider than :data:`WIDEST`, or the
    judge is not clearly better than chance; else ``None``. ``negatives_needed`` is how many pairs labelled no, all
    judged no, would do. ``ValueError`` for ``n`` below 1.
    """
    if n < 1:
        raise ValueError("a scan has one probe or more")
    _, _, rejected, no = _counts(found)
    rate = asdict(proportion(no - rejected, no, "pair labelled no got a verdict"))
    most = 1 - (1 - WIDEST) ** (1 / n)
    out: dict[str, Any] = {"n": n, "rate": rate, "value": None, "low": None, "high": None}
    out["negatives_needed"] = math.ceil(math.log((1 - LEVEL) / 2) / math.log(1 - most))
    if rate["value"] is None:
        return out | {"refused": rate["reason"]}
    out |= {name: 1 - (1 - rate[name]) ** n for name in ("value", "low", "high")}
    if out["high"] - out["low"] > WIDEST:
        refused = (
            f"the false-positive rate lies between {rate['low']:.3f} and {rate['high']:.3f} ({no - rejected} of {no} "
            f"pairs labelled no), so a scan of {n} that deserves no is positive by error with a chance between "
            f"{out['low']:.2f} and {out['high']:.2f}: it says nothing"
        )
        return out | {"refused": refused}
    return out | {"refused": why_no_correction(found)}


def scan_correction(positives: int, targets: int, n: int, found: dict[str, Any]) -> dict[str, Any]:
    """What the judge's false positives leave of ``positives`` of ``targets`` after scans of ``n`` probes each.

    ``at_least`` is a lower bound (95 %) of the share of targets that are truly positive: the least with which so many
    positive scans have a chance of 2.5 % or more while f is at the upper end of its interval. ``reason`` says why there
    is none, see :func:`false_alarm`; ``note`` what it rests on. ``ValueError`` for counts that cannot be.
    """
    if not 0 <= positives <= targets:
        raise ValueError("positive targets lie between 0 and the number of targets")
    alarm = false_alarm(n, found)
    out = {"observed": positives, "targets": targets, "false_alarm": alarm, "at_least": None, "note": INDEPENDENT}
    if alarm["refused"] or not targets:
        return out | {"reason": alarm["refused"] or "no target has a verdict"}
    from scipy.stats import binom

    tail = (1 - LEVEL) / 2
    fits = (k for k in range(positives + 1) if binom.sf(positives - k - 1, targets - k, alarm["high"]) > tail)
    return out | {"at_least": next(fits) / targets, "reason": None}
