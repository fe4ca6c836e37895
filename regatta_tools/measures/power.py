"""Planning: how small a difference between strategies a study can detect, how much it takes, where variance lies.

The model is linear in the probability of a positive target. A verdict (suite, target) is the sum of a mean and of
effects of cell, target, strategy, generator, their pairs, the suite, the suite on the target, and the draw of the
agent's answer. Variances of effects are estimated by symmetric sums of squared differences (Koch 1967), which need no
balance and no distribution, and may come out below zero: then they are shown as they are and planned with as zero.

Two strategies that are tried on the same cells, targets and generators share these; what is left in their difference is
in :func:`error`. Power is that of a two-sided t test (Cohen 1988, chapter 2), degrees of freedom after Satterthwaite
(1946). Assumptions: docs/planning.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError

MEASURES = ("RC", "FDR_d", "FDR_e", "Delta")
#: Effects with their factors. ``target`` is a requirement or a fault, which belongs to one cell, as a suite does.
EFFECTS: dict[str, tuple[str, ...]] = {
    "cell": ("cell",),
    "target": ("target",),
    "strategy": ("strategy",),
    "generator": ("generator",),
    "strategy-cell": ("strategy", "cell"),
    "strategy-generator": ("strategy", "generator"),
    "strategy-target": ("strategy", "target"),
    "generator-cell": ("generator", "cell"),
    "generator-target": ("generator", "target"),
    "strategy-generator-cell": ("strategy", "generator", "cell"),
    "strategy-generator-target": ("strategy", "generator", "target"),
    "suite": ("suite",),
    "suite-target": ("suite", "target"),
    "draw": ("suite", "target", "draw"),
}
#: What differs between two strategies, by what is taken for a sample of more like it.
SCOPES: dict[str, tuple[str, ...]] = {
    "these targets": ("suite", "suite-target", "draw"),
    "new targets": ("suite", "suite-target", "draw", "strategy-target", "strategy-generator-target"),
    "new targets, cells and generators": (
        "suite", "suite-target", "draw", "strategy-target", "strategy-generator-target", "strategy-cell",
        "strategy-generator", "strategy-generator-cell",
    ),
}  # fmt: skip
MOST = 100_000
#: Points at which a distribution is evaluated.
POINTS = 2000


@dataclass(frozen=True)
class Design:
    """A study: each strategy makes ``repeats`` suites in each cell by each generator; a cell has ``targets``."""

    cells: int = 1
    generators: int = 1
    repeats: int = 3
    targets: int = 5
    draws: int = 1

    @property
    def suites(self) -> int:
        """Suites of one strategy."""
        return self.cells * self.generators * self.repeats

    def divisor(self, effect: str) -> int:
        """Over how many levels of an effect the mean of one strategy is taken."""
        return {
            "suite": self.suites,
            "suite-target": self.suites * self.targets,
            "draw": self.suites * self.targets * self.draws,
            "strategy-target": self.cells * self.targets,
            "strategy-cell": self.cells,
            "strategy-generator": self.generators,
            "strategy-generator-cell": self.cells * self.generators,
            "strategy-generator-target": self.cells * self.generators * self.targets,
        }[effect]

    def degrees(self, effect: str) -> int:
        """Degrees of freedom on which the part of an effect can be estimated, for two strategies."""
        strata = self.cells * self.generators
        if effect in ("suite", "suite-target", "draw"):
            # Without repeats the suites of other cells and generators have to stand for them.
            return 2 * (self.suites - strata) if self.repeats > 1 else max(1, self.suites - 1)
        levels = {"strategy-target": self.cells * (self.targets - 1), "strategy-cell": self.cells - 1,
                  "strategy-generator": self.generators - 1}  # fmt: skip
        return max(1, levels.get(effect, self.divisor(effect) - 1))


# Variances from data


def components(y: Any, factors: Mapping[str, Any], effects: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Variances of effects by symmetric sums.

    ``y`` has the shape (n,), each factor is an array of n codes from 0. Returns for each effect its variance, or the
    reason (a text) why it cannot be estimated. The last effect that can be told apart takes in all that is finer.
    Reference: Koch (1967). The mean of (y_i - y_j)^2 / 2 over pairs is the sum of the variances of all effects in
    which the two differ; one such equation for each way of sharing factors.
    """
    import numpy as np

    y = np.asarray(y, dtype=float)
    y = y - y.mean() if len(y) else y
    groups: dict[tuple[str, ...], Any] = {}

    def group(names: Sequence[str]) -> Any:
        """Number of the group of each row that shares these factors."""
        key = tuple(sorted(set(names)))
        if key not in groups:
            code = np.zeros(len(y), np.int64)
            for name in key:
                span = int(np.max(factors[name], initial=0)) + 1
                code = np.unique(code * span + factors[name], return_inverse=True)[1]
            groups[key] = code
        return groups[key]

    def pairs(names: Sequence[str]) -> float:
        n = np.bincount(group(names)).astype(float)
        return float((n * (n - 1)).sum() / 2)

    def squares(names: Sequence[str]) -> float:
        code = group(names)
        n, s, q = (np.bincount(code, w) for w in (np.ones(len(y)), y, y * y))
        return float((n * q - s * s).sum())

    out: dict[str, Any] = {}
    kept: dict[str, Sequence[str]] = {}
    for name, its in effects.items():
        if not len(y):
            out[name] = "there are no verdicts"
            continue
        if single := [f for f in its if not group([f]).any()]:
            out[name] = f"there is one {single[0]}"
            continue
        levels = int(group(its).max())
        same = next(
            (k for k, f in kept.items() if int(group(f).max()) == levels == int(group([*its, *f]).max())), None
        )
        if same is not None:
            # Of two effects that cannot be told apart the later one is the finer, and what planning needs.
            out[same] = f"it cannot be told from {name}"
            del kept[same]
        kept[name] = its
    names = list(kept)
    if not names:
        return out
    rows = [()] + [kept[n] for n in names[:-1]]
    matrix = np.array([[2 * (pairs(s) - pairs((*s, *kept[n]))) for n in names] for s in rows])
    sums = np.array([squares(s) for s in rows])
    scale = matrix.max(axis=1, keepdims=True)
    usable = scale[:, 0] > 0
    if not usable.all() or np.linalg.matrix_rank(matrix / np.where(scale > 0, scale, 1)) < len(names):
        return out | dict.fromkeys(names, "the data do not tell the effects apart: too few levels are crossed")
    solved = np.linalg.solve(matrix / scale, sums / scale[:, 0])
    return out | {n: float(v) for n, v in zip(names, solved)}


def observations(people: Any, measure: str) -> tuple[Any, dict[str, Any]]:
    """Verdicts of a :class:`~regatta_tools.measures.population.Population` as (y, factors), unknown ones left out."""
    import numpy as np

    ys: list[float] = []
    rows: list[tuple[str, ...]] = []
    for number, block in enumerate(people.blocks):
        design = block.rc if measure == "RC" else block.design
        array = {"RC": design[:, :, None], "FDR_d": design[:, :, None], "FDR_e": block.execution}.get(measure)
        if array is None:
            array = design[:, :, None] - block.execution
        names = block.requirements if measure == "RC" else block.faults
        for s, t, k in np.argwhere(~np.isnan(array)):
            unit = block.units[s]
            ys.append(float(array[s, t, k]))
            suite = f"{number}.{s}"
            rows.append((block.cell, f"{block.cell} {names[t]}", unit.strategy, block.generator, suite, str(k)))
    factors = {}
    for at, name in enumerate(("cell", "target", "strategy", "generator", "suite", "draw")):
        factors[name] = np.unique([r[at] for r in rows], return_inverse=True)[1] if rows else np.zeros(0, np.int64)
    return np.array(ys), factors


def _design_of(factors: Mapping[str, Any]) -> Design:
    """The design of data, rounded down where it is not balanced."""
    import numpy as np

    def levels(*names: str) -> int:
        return len(np.unique(np.stack([factors[n] for n in names]), axis=1).T) if len(factors["suite"]) else 0

    cells, generators = levels("cell"), levels("generator")
    repeats = levels("suite") // max(1, levels("strategy") * cells * generators)
    return Design(
        max(1, cells), max(1, generators), max(1, repeats), max(1, levels("target") // max(1, cells)),
        max(1, levels("suite", "target", "draw") // max(1, levels("suite", "target"))),
    )  # fmt: skip


# Power


def error(design: Design, variances: Mapping[str, float], scope: str) -> tuple[float, float]:
    """Standard error of the difference of two strategies' means, and its degrees of freedom (Satterthwaite 1946)."""
    parts = {e: 2 * max(0.0, variances.get(e, 0.0)) / design.divisor(e) for e in SCOPES[scope]}
    total = sum(parts.values())
    if total <= 0:
        return 0.0, 0.0
    # The parts of one suite are estimated together, as the spread of suite means.
    together = sum(parts[e] for e in ("suite", "suite-target", "draw"))
    weight = together**2 / design.degrees("suite")
    weight += sum(v**2 / design.degrees(e) for e, v in parts.items() if e not in ("suite", "suite-target", "draw"))
    return total**0.5, total**2 / weight


def power_of(difference: float, se: float, df: float, *, level: float = 0.95, comparisons: int = 1) -> float:
    """Chance that a two-sided t test sees a true difference. ``comparisons`` divides its error (Bonferroni)."""
    from scipy.special import ndtr

    critical, scales = _t(df, (1 - level) / 2 / comparisons)
    shift = abs(difference) / se
    return float((ndtr(shift - critical * scales) + ndtr(-shift - critical * scales)).mean())


@lru_cache(maxsize=512)
def _t(df: float, tail: float) -> tuple[float, Any]:
    """The critical value of t, and points of the distribution of the estimated error over the true one.

    The chance under a noncentral t is a mean over these points; scipy's own nct gives NaN where it is close to 1.
    """
    import numpy as np
    from scipy.stats import chi2, t

    points = (np.arange(POINTS) + 0.5) / POINTS
    return float(t.isf(tail, df)), np.sqrt(chi2.ppf(points, df) / df)


def minimum_detectable(
    se: float, df: float, *, power: float = 0.8, level: float = 0.95, comparisons: int = 1
) -> float | None:
    """The true difference that is seen with the chance ``power``; ``None`` where there is no variance to plan with."""
    from scipy.optimize import brentq

    if se <= 0:
        return None
    high = se
    while power_of(high, se, df, level=level, comparisons=comparisons) < power:
        high *= 2
    return float(
        brentq(lambda d: power_of(d, se, df, level=level, comparisons=comparisons) - power, 0, high, xtol=1e-9)
    )


def power(
    *,
    archive: Path | str | None = None,
    runs: Sequence[Path | str] = (),
    records: Any = None,
    suites: Path | str | None = None,
    package: Any = None,
    any_target: bool = False,
    judges: Sequence[str] = (),
    arm: str = "joint",
    measure: str = "FDR_e",
    rate: float | None = None,
    variances: Mapping[str, float] | None = None,
    cells: int | None = None,
    generators: int | None = None,
    repeats: int | None = None,
    targets: int | None = None,
    draws: int | None = None,
    difference: float = 0.1,
    chance: float = 0.8,
    level: float = 0.95,
    comparisons: int = 1,
) -> dict[str, Any]:
    """Minimum detectable difference between two strategies, what it takes for ``difference``, and where variance lies.

    Variances come from verdicts (``archive``, ``runs`` or ``records``, as :func:`regatta_tools.diagnose` takes them) or
    are stated: ``rate`` (the mean, so that all variances of a yes-or-no verdict sum to rate (1 - rate)) and
    ``variances`` of effects (:data:`EFFECTS`); what is stated replaces what was estimated. The design is that of the
    data where a number is not given, else one cell, one generator, three repeats, one draw, and 25 requirements or
    5 faults. Returns plain objects. Raises :class:`~regatta_tools.errors.InputError`.
    """
    stated = dict(variances or {})
    _check(measure, rate, stated, difference, chance, level)
    given = bool(archive) or bool(runs) or records is not None
    estimated: dict[str, Any] = {}
    mean, n, source, base, notes = rate, 0, None, Design(targets=25 if measure == "RC" else 5), []
    if given:
        people = _people(archive, runs, records, suites, package, any_target, judges, arm)
        y, factors = observations(people, measure)
        if not len(y):
            raise InputError(f"there are no verdicts to compute {measure} from", code="U208", place=people.source)
        estimated = components(y, factors, EFFECTS)
        mean, n, source, base = float(y.mean()), len(y), people.source, _design_of(factors)
        notes += _data_notes(estimated)
    elif measure == "Delta" and "suite-target" not in stated:
        raise InputError(
            "a difference of stages has no variance that follows from a rate", code="U230",
            mend="state --variance suite-target=..., or plan from verdicts",
        )  # fmt: skip
    elif rate is None and "suite-target" not in stated:
        raise InputError(
            "nothing says how much verdicts vary", code="U230",
            mend="name RUNS, --records or --archive, or say --rate (the detection rate you expect)",
        )  # fmt: skip
    planned = {e: max(0.0, v) for e, v in estimated.items() if isinstance(v, float)} | stated
    if not given and "suite-target" not in planned:
        assert rate is not None
        rest = rate * (1 - rate) - sum(stated.values())
        if rest < 0:
            raise InputError(
                f"the stated variances sum to {sum(stated.values()):.3f}, more than a yes-or-no verdict has at the "
                f"rate {rate} ({rate * (1 - rate):.3f})",
                code="U230", mend="state smaller ones",
            )  # fmt: skip
        planned["suite-target"] = rest
        if not stated:
            notes.append(
                "No variance was stated, so the verdicts of a suite count as independent. They hang together, and a "
                "study needs more than this says: state --variance suite=..., or plan from verdicts."
            )
    chosen = {"cells": cells, "generators": generators, "repeats": repeats, "targets": targets, "draws": draws}
    design = Design(**{k: getattr(base, k) if v is None else v for k, v in chosen.items()})
    if design.draws > 1 and not isinstance(estimated.get("draw"), float) and "draw" not in stated:
        notes.append("The variance of draws is not known apart, so further draws are taken to help nothing.")
    how = {"level": level, "comparisons": comparisons}
    scopes = [_scope(name, design, planned, difference, chance, measure, how) for name in SCOPES]
    return {
        "schema_version": "1",
        "measure": measure,
        "source": source,
        "verdicts": n,
        "mean": None if mean is None else round(mean, 10),
        "variances": _variance_rows(estimated, stated, planned),
        "design": {**design.__dict__, "suites_of_a_strategy": design.suites},
        "difference": difference,
        "power": chance,
        **how,
        "scopes": scopes,
        "notes": [*notes, *ASSUMPTIONS],
    }


ASSUMPTIONS = (
    "Two strategies are compared on the same cells, targets and generators, each suite made anew.",
    "Variances are those of verdicts as the judge gives them; a judge that errs adds to them or hides a difference.",
    "The test is a t test on means of suites; its level is only about right for few suites or rates near 0 or 1.",
)


def _check(
    measure: str, rate: float | None, stated: Mapping[str, float], difference: float, chance: float, level: float
) -> None:
    def refuse(message: str, mend: str) -> InputError:
        return InputError(message, code="U230", mend=mend)

    if measure not in MEASURES:
        raise refuse(f"the measure is {measure!r}", f"use one of {', '.join(MEASURES)}")
    if rate is not None and not 0 < rate < 1:
        raise refuse(f"the rate is {rate}: verdicts that are all the same have no variance", "say one between 0 and 1")
    for name, value in stated.items():
        if name not in EFFECTS:
            raise refuse(f"there is no effect {name!r}", f"effects: {', '.join(EFFECTS)}")
        if not 0 <= value <= 1:
            raise refuse(f"the variance of {name} is {value}", "a variance lies between 0 and 1")
    for name, value in (("difference", difference), ("power", chance), ("level", level)):
        if not 0 < value < 1:
            raise refuse(f"the {name} is {value}", "say one between 0 and 1")


def _people(
    archive: Any, runs: Any, records: Any, suites: Any, package: Any, any_target: bool, judges: Any, arm: str
) -> Any:
    from regatta_tools.measures.population import population
    from regatta_tools.measures.records import from_any

    if sum([bool(archive), bool(runs), records is not None]) > 1:
        raise InputError("more than one kind of input was named", code="U208", mend="name RUNS, --records or --archive")
    held = from_any(archive, runs, records, package=package, suites=suites, any_target=any_target, judges=judges)
    return population(held, arm=arm)


def _data_notes(estimated: Mapping[str, Any]) -> list[str]:
    notes = []
    if below := [e for e, v in estimated.items() if isinstance(v, float) and v < 0]:
        notes.append(f"Estimated below zero, so no larger than noise, and planned with as zero: {', '.join(below)}.")
    if not isinstance(estimated.get("suite"), float) or not isinstance(estimated.get("suite-target"), float):
        notes.append("The variance of suites cannot be told apart in these data; what is planned with is a part of it.")
    return notes


def _variance_rows(
    estimated: Mapping[str, Any], stated: Mapping[str, float], planned: Mapping[str, float]
) -> list[dict[str, Any]]:
    total = sum(planned.values())
    rows = []
    for effect in EFFECTS:
        found = estimated.get(effect)
        number = round(found, 12) if isinstance(found, float) else None
        used = planned.get(effect)
        reason = found if isinstance(found, str) else None
        if reason is None and number is None and effect not in planned:
            reason = "nobody stated it: taken as 0"
        rows.append({
            "effect": effect,
            "estimate": number,
            "planned_with": None if used is None else round(used, 12),
            "share": round(used / total, 12) if used is not None and total > 0 else None,
            "stated": effect in stated,
            "reason": None if effect in stated else reason,
        })  # fmt: skip
    return rows


def _scope(
    name: str, design: Design, planned: Mapping[str, float], difference: float, chance: float, measure: str,
    how: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    from dataclasses import replace

    se, df = error(design, planned, name)
    most = 2 if measure == "Delta" else 1

    def detectable(its_se: float, its_df: float) -> float | None:
        value = minimum_detectable(its_se, its_df, power=chance, **how)
        return None if value is None or value > most else round(value, 8)

    found = detectable(se, df)
    why = "no difference is large enough" if se > 0 else "no variance of what is random here is known or above zero"
    needed: dict[str, Any] = {}
    for key in ("repeats", "targets", "draws"):
        needed[key] = _needed(key, design, planned, name, difference, chance, how)
    curve = []
    for repeats in (1, 2, 3, 5, 10, 20, 50, 100):
        its_se, its_df = error(replace(design, repeats=repeats), planned, name)
        curve.append({
            "repeats": repeats,
            "suites_of_a_strategy": replace(design, repeats=repeats).suites,
            "minimum_detectable": detectable(its_se, its_df),
        })  # fmt: skip
    return {
        "scope": name,
        "random": [e for e in SCOPES[name] if planned.get(e)],
        "se": round(se, 10),
        "df": round(df, 4),
        "minimum_detectable": found,
        "power_at_difference": round(power_of(difference, se, df, **how), 10) if se > 0 else None,
        "reason": why if found is None else None,
        "needed": needed,
        "curve": curve,
    }


def _needed(
    key: str, design: Design, planned: Mapping[str, float], scope: str, difference: float, chance: float,
    how: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """The least number of one thing, all else as it is, with which the difference is seen with the chance wanted."""
    from dataclasses import replace

    def enough(number: int) -> bool:
        se, df = error(replace(design, **{key: number}), planned, scope)
        return se > 0 and power_of(difference, se, df, **how) >= chance

    if error(design, planned, scope)[0] <= 0:
        return {"value": None, "reason": "no variance is known or above zero"}
    if not enough(MOST):
        best = minimum_detectable(*error(replace(design, **{key: MOST}), planned, scope), power=chance, **how)
        return {"value": None, "reason": f"no number is enough: what else varies leaves {best:.3f} at best"}
    low, high = 0, 1
    while not enough(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return {"value": high, "reason": None}
