"""The published figures beside ours (``published.yaml``; protocol, section 6).

A figure matches where ours, rounded to the printed digits, is the printed one. An interval of the study comes from its
own random numbers: it matches too where the printed end lies within what ours moves over some seeds, and the page says
so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools.documents import read_document
from regatta_tools.measures.agreement import clopper_pearson, kappa_of

#: Added to the seed: the ends of our intervals are looked at over these seeds too.
OTHER_SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Row:
    """One published figure. ``mismatch`` is empty where ours is the same, else what differs; ``note`` explains."""

    group: str
    name: str
    place: str
    published: str
    ours: str
    mismatch: str = ""
    note: str = ""


@lru_cache(maxsize=1)
def published() -> dict[str, Any]:
    """``published.yaml``. Shared: do not change it."""
    return read_document(Path(__file__).with_name("published.yaml")).value


def compare(result: Mapping[str, Any], others: list[Mapping[str, Any]] | None = None) -> list[Row]:
    """Every published figure beside that of ``result``; ``others`` are V3 of the same data under other seeds."""
    rows = []
    for entry in published()["figures"]:
        printed, path = entry["printed"], entry["ours"]
        value = _find(result, path)
        scale = entry.get("times", 1)
        if isinstance(printed, list):
            ends = [value] + [_find({"V3": o}, path) for o in others or [] if path.startswith("V3/")]
            rows.append(_interval_row(entry, printed, ends))
            continue
        ours = None if value is None else _rounded(value * scale, printed)
        mismatch = "" if ours is not None and Decimal(ours) == Decimal(printed) else "differs"
        rows.append(Row(entry["group"], entry["name"], entry["place"], printed, ours or "undefined", mismatch))
    for entry in published()["claims"]:
        holds, figures = CLAIMS[entry["ours"]](result)
        mismatch = "" if holds else "does not hold"
        rows.append(Row("In words", entry["name"], entry["place"], "yes", "yes" if holds else "no", mismatch, figures))
    return rows


def beside(archive: Path | str, result: Mapping[str, Any]) -> tuple[list[Row], list[dict[str, str]]]:
    """The rows for a result of the archive, and the published figures that the archive cannot give.

    Other seeds are only drawn where an interval is not the printed one.
    """
    rows = compare(result)
    if any(r.mismatch for r in rows):
        from regatta_tools.measures.archive import from_archive
        from regatta_tools.measures.diagnostics import stages
        from regatta_tools.measures.population import population

        people, resamples = population(from_archive(archive)), result["resampling"]["resamples"]
        seed = result["resampling"]["seed"]
        rows = compare(result, [stages(people, resamples=resamples, seed=seed + k) for k in OTHER_SEEDS])
    return rows, published()["outside"]


def _interval_row(entry: Mapping[str, Any], printed: list[str], ends: list[Any]) -> Row:
    head = (entry["group"], entry["name"], entry["place"], "[{}, {}]".format(*printed))
    if ends[0] is None:
        return Row(*head, "undefined", "differs")
    ours = "[{}, {}]".format(*(_rounded(v, p) for v, p in zip(ends[0], printed)))
    if all(Decimal(_rounded(v, p)) == Decimal(p) for v, p in zip(ends[0], printed)):
        return Row(*head, ours)
    within = True
    for i, text in enumerate(printed):
        half = float(Decimal(1).scaleb(-_digits(text))) / 2
        found = [e[i] for e in ends]
        within &= min(found) - half - 1e-9 <= float(text) <= max(found) + half + 1e-9
    spread = "; ".join(f"{min(e[i] for e in ends):.4f} to {max(e[i] for e in ends):.4f}" for i in (0, 1))
    if within:
        return Row(*head, ours, "", f"within resampling error: over {len(ends)} seeds the ends lie at {spread}")
    return Row(*head, ours, "differs", f"over {len(ends)} seeds the ends lie at {spread}")


def _find(result: Mapping[str, Any], path: str) -> Any:
    if "/" not in path:
        return COMPUTED[path](result)
    value: Any = result
    for step in path.split("/"):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _digits(printed: str) -> int:
    return len(printed.partition(".")[2])


def _rounded(value: float, printed: str) -> str:
    """A value with the digits of a printed one, in its manner (no leading zero; a plus sign where it has one)."""
    digits = _digits(printed)
    # Ten places first: .045 must not become .04 because its nearest double is a little below.
    exact = Decimal(f"{value:.10f}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    text = f"{exact:+.{digits}f}" if printed.startswith("+") else f"{exact:.{digits}f}"
    return text.replace("0.", ".", 1) if printed.lstrip("+-").startswith(".") else text


# From published counts


def _human_design_interval(_: Any) -> list[float]:
    """18 of 25 judge-positive and 25 of 25 judge-negative pairs confirmed, each stratum resampled by itself."""
    import numpy as np

    from regatta_tools.measures.resampling import Resampler

    draws = Resampler()
    agree = np.array([1.0] * 18 + [0.0] * 7)
    moved = agree @ draws.counts(25, "human check, judge-positive")  # the other stratum agrees in every resample
    found, _ = draws.interval(np.array([kappa_of((k, 25 - k, 0, 25)) for k in moved]))
    return found or []


def _ranges(result: Mapping[str, Any], *measures: str) -> list[float]:
    return [v[m]["rho"] for v in result["V4"].values() for m in measures]


def _of_class(result: Mapping[str, Any], name: str, stage: str) -> list[float]:
    return [v[name][stage] for v in result["V2"].values()]


COMPUTED: dict[str, Callable[[Any], Any]] = {
    "floor_of_v2": lambda r: max(
        _of_class(r, "role-boundary", "execution") + _of_class(r, "adversarial-vulnerability", "execution")
    ),
    "least_rho_rc": lambda r: min(_ranges(r, "RC")),
    "greatest_rho_rc": lambda r: max(_ranges(r, "RC")),
    "least_rho_detection": lambda r: min(_ranges(r, "FDR_d", "FDR_e")),
    "greatest_rho_detection": lambda r: max(_ranges(r, "FDR_d", "FDR_e")),
    "least_rho_iss": lambda r: min(_ranges(r, "ISS")),
    "greatest_rho_iss": lambda r: max(_ranges(r, "ISS")),
    "human_design_agreement": lambda _: 43 / 50,
    "human_design_kappa": lambda _: kappa_of((18, 7, 0, 25)),
    "human_design_interval": _human_design_interval,
    "uncovered_lower": lambda _: clopper_pearson(25, 25)[0],
    "uncovered_lower_one_sided": lambda _: clopper_pearson(25, 25, 0.90)[0],
    "human_execution_agreement": lambda _: 35 / 40,
    "human_execution_kappa": lambda _: kappa_of((15, 5, 0, 20)),
    "retest_rescan": lambda _: 143 / 180,
    "audit_partition": lambda _: 24 + 46 + 31 + 24,
    "judge_calls": lambda _: 25 * 30 + 2 * 30 + 5 * 30 + 5 * 30,
    "false_detection": lambda _: 1 - (1 - 0.02) ** 30,
}


# In words


def _cells_between(result: Mapping[str, Any]) -> tuple[bool, str]:
    means = {c: v["mean"] for c, v in result["V1"]["by_cell"].items()}
    order = sorted(means, key=means.__getitem__)
    return order[0] == "insurance-us" and order[-1] == "banking-vn", _said(means)


def _same_order(result: Mapping[str, Any]) -> tuple[bool, str]:
    wanted = ["missing-regulation", "threshold", "metric-error"]
    orders = result["V2_order"]["execution"]["orders"]
    return all(o[:3] == wanted for o in orders.values()), "; ".join(f"{g}: {', '.join(o)}" for g, o in orders.items())


def _floor(result: Mapping[str, Any]) -> tuple[bool, str]:
    orders = result["V2_order"]["execution"]["orders"]
    holds = all(set(o[3:]) == {"role-boundary", "adversarial-vulnerability"} for o in orders.values())
    rates = [
        f"{v:.2f}" for c in ("role-boundary", "adversarial-vulnerability") for v in _of_class(result, c, "execution")
    ]
    return holds, ", ".join(rates)


def _swap(result: Mapping[str, Any]) -> tuple[bool, str]:
    gaps = {g: v["metric-error"]["design"] - v["role-boundary"]["design"] for g, v in result["V2"].items()}
    return [g for g, gap in gaps.items() if gap > 0] == ["72b"], "metric - role: " + _said(gaps)


def _lower_bound(result: Mapping[str, Any]) -> tuple[bool, str]:
    lows = {g: v["margin_interval"][0] for g, v in result["V3"].items()}
    return min(lows.values()) > 0, "lower ends: " + _said(lows)


def _third(result: Mapping[str, Any]) -> tuple[bool, str]:
    lows = {g: v["per_fault"]["interval"][0] for g, v in result["V3"].items()}
    return lows["26b"] <= 0, "lower ends: " + _said(lows)


def _signs(result: Mapping[str, Any]) -> tuple[bool, str]:
    signs = {g: {v["delta"] > 0 for v in by.values()} for g, by in result["figure_2"].items()}
    uniform = [g for g, s in signs.items() if len(s) == 1]
    return len(uniform) == 2 and len(signs) == 3, "uniform: " + ", ".join(uniform)


def _saturated(result: Mapping[str, Any]) -> tuple[bool, str]:
    means = {g: sum(v["AC"]["strategies"].values()) / len(v["AC"]["strategies"]) for g, v in result["V4"].items()}
    return sum(m >= 0.9 for m in means.values()) == 2, "mean AC (taken as: .9 or more): " + _said(means)


def _said(values: Mapping[str, float]) -> str:
    return ", ".join(f"{k} {v:.3f}" for k, v in values.items())


CLAIMS: dict[str, Callable[[Any], tuple[bool, str]]] = {
    "cells_between": _cells_between,
    "same_order": _same_order,
    "floor": _floor,
    "swap": _swap,
    "lower_bound": _lower_bound,
    "third_includes_zero": _third,
    "signs": _signs,
    "saturated": _saturated,
}
