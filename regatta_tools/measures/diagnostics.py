"""The diagnostics V1 to V4 and figure 2 of the protocol (sections 3, 5, 11 and 13), from the verdicts of many suites.

Every rate is over what is known (complete case) and carries bounds over all values of what is missing. Intervals
resample suites within a cell and generator, the faults and draws of a suite kept together; beside them stand wider
ones that resample the faults of a cell too. What is not defined is ``None``, and ``undefined`` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from regatta_tools.measures.population import MEASURES, UNSTATED, Block, Population, missing_of, population
from regatta_tools.measures.records import Records, from_any
from regatta_tools.measures.resampling import RESAMPLES, SEED, Resampler, permutation_value, why_no_interval
from regatta_tools.tables.model import enum_values

SCHEMA_VERSION = "1"
#: Columns of the sums over pairs of one suite and fault: pairs known, design yes, execution yes, both; pairs of two
#: draws known, of which they differ.
N, D, E, B, M, X = range(6)
POOLED_NULL = (
    "the stages are independent and every fault is as hard as every other: chance ignores the difficulty of faults"
)
PER_FAULT_NULL = (
    "within a fault and cell the stages are independent: suites could swap their answers, faults keep their difficulty"
)
NULLS = {
    "alpha_0": POOLED_NULL,
    "per_fault": PER_FAULT_NULL,
    "upper": "two answers of the agent differ from each other as often as the stages do",
    "rho_by_chance": "the suites of a generator and cell could swap their strategies",
}
DESCRIBES = "describes only: the test takes pairs as independent, and the pairs of one suite are not"


class _Why:
    """Collects why figures are undefined, by their place in the result."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def say(self, place: str, reason: str | None) -> None:
        if reason:
            self.reasons[place] = reason

    def interval(self, place: str, draws: Resampler, values: Any, reason: str | None) -> list[float] | None:
        if reason is None:
            found, reason = draws.interval(values)
            if reason is None:
                return found
        self.say(place, reason)
        return None


def diagnose(
    *,
    archive: Path | str | None = None,
    runs: Sequence[Path | str] = (),
    records: Records | Path | str | None = None,
    package: Any = None,
    suites: Path | str | None = None,
    any_target: bool = False,
    judges: Sequence[str] = (),
    arm: str = "joint",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Any]:
    """Compute V1 to V4 and figure 2 of the study's archive, of runs, or of a table of verdicts.

    Exactly one of ``archive`` (folder), ``runs`` (folders) and ``records`` (a table, or :class:`Records`) is given.
    ``suites`` says how the suites of runs were made (columns suite, strategy, generator, repeat). Returns plain
    objects: ``V1``, ``V2``, ``V3``, ``V4``, ``figure_2``, the same by cell under ``cells``, each suite under
    ``suites``, ``missing``, ``undefined`` (why a figure is null, by its place) and ``notes`` (what the numbers do not
    support). Intervals are lists of two numbers. Raises :class:`~regatta_tools.errors.InputError` for input that
    cannot be used.
    """
    from regatta_tools.errors import InputError

    given = [bool(archive), bool(runs), records is not None]
    if sum(given) != 1:
        what = "nothing was named to diagnose" if not any(given) else "more than one kind of input was named"
        raise InputError(what, code="U208", mend="name RUNS, or --records FILE, or --archive DIR")
    for name, unused in (("suites", suites and not runs), ("any_target", any_target and records is None),
                         ("judges", judges and archive)):  # fmt: skip
        if unused:
            raise InputError(f"{name} says nothing about this kind of input", code="U208", mend="leave it out")
    if resamples < 100:
        raise InputError(f"{resamples} resamples give no interval", code="U208", mend="use 1,000 or more")
    held = from_any(
        archive, runs, records, package=package, suites=suites, any_target=any_target, judges=judges
    )  # type: ignore[arg-type]
    return diagnostics(population(held, arm=arm), resamples=resamples, seed=seed)


def diagnostics(people: Population, *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Any]:
    """The diagnostics of a population of suites; see :func:`diagnose` for the form of the result."""
    draws, why = Resampler(resamples, seed), _Why()
    whole = {g: people.of(generator=g) for g in people.generators}
    result: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "source": people.source}
    result["V1"] = _v1(whole, draws, why)
    result |= _scope(whole, draws, why, "")
    result["V2_order"] = _orders(result["V2"], why)
    result["cells"] = {}
    for cell in people.cells:
        blocks = {g: people.of(generator=g, cell=cell) for g in people.generators}
        blocks = {g: b for g, b in blocks.items() if b}
        place = f"cells.{cell}."
        detection = _detection(list(blocks.values()))
        for stage, value in detection.items():
            why.say(f"{place}detection.{stage}", None if value is not None else "no verdict of this stage is known")
        result["cells"][cell] = {"suites": sum(len(b[0].units) for b in blocks.values()), "detection": detection}
        result["cells"][cell] |= _scope(blocks, draws, why, place)
    result["suites"] = _suites(people)
    result["missing"] = _missing(people)
    result["judges"] = people.judges
    result["nulls"] = NULLS
    result["resampling"] = {
        "resamples": resamples, "seed": seed, "level": draws.level,
        "interval": "suites are resampled within cell and generator, the faults and draws of a suite together; "
        "within strategy too for figure_2 and V4",
        "faults_too": "the faults of a cell are resampled besides, each with all its suites",
    }  # fmt: skip
    result["undefined"] = why.reasons
    result["notes"] = _notes(people, result)
    return _plain(result)


def stages(people: Population, *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Any]:
    """V3 alone, by generator."""
    draws = Resampler(resamples, seed)
    return _plain({g: _v3(people.of(generator=g), draws, _Why(), "V3") for g in people.generators})


def _scope(blocks: dict[str, list[Block]], draws: Resampler, why: _Why, place: str) -> dict[str, Any]:
    """V2, V3, V4 and figure 2 of the blocks of each generator."""
    out: dict[str, Any] = {"V2": {}, "V3": {}, "V4": {}, "figure_2": {}}
    for generator, held in blocks.items():
        out["V2"][generator] = _v2(held, draws, why, f"{place}V2.{generator}")
        out["V3"][generator] = _v3(held, draws, why, f"{place}V3.{generator}")
        out["V4"][generator], out["figure_2"][generator] = _v4(held, draws, why, place, generator)
    return out


def _divide(a: Any, b: Any) -> Any:
    """a / b, NaN where b is 0. Arrays of any one shape."""
    import numpy as np

    b = np.asarray(b, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(b > 0, np.asarray(a, float) / np.where(b > 0, b, 1.0), np.nan)


# V1, difficulty


def _v1(whole: dict[str, list[Block]], draws: Resampler, why: _Why) -> dict[str, Any]:
    """Distribution of delta(r), the generators weighted equally (protocol, section 5)."""
    import numpy as np

    items: list[dict[str, Any]] = []
    cells = sorted({b.cell for blocks in whole.values() for b in blocks})
    for cell in cells:
        held = [b for blocks in whole.values() for b in blocks if b.cell == cell and b.asked["rc"].any()]
        if not held:
            continue
        value, low, high, suites = _difficulty(held)
        items += [
            {"cell": cell, "target": t, "delta": v, "bounds": [lo, hi], "suites": int(n)}
            for t, v, lo, hi, n in zip(held[0].requirements, value, low, high, suites)
        ]
    figures: dict[str, Any] = _spread(items)
    place = "V1"
    if not items:
        for name in figures:
            why.say(f"{place}.{name}", "no suite was judged for coverage")
        return figures | {"by_cell": {}, "items": [], "hard_tail": []}
    _say_undefined(figures, place, why)
    moved = _difficulty_resampled(whole, cells, draws)
    sizes = [int(b.asked["rc"].sum()) for blocks in whole.values() for b in blocks if b.asked["rc"].any()]
    reason = why_no_interval(sizes)
    both = np.concatenate(list(moved.values()))
    figures["intervals"] = _spread_intervals(both, draws, why, place, reason)
    figures["by_cell"] = {}
    for cell in moved:
        mine = [i for i in items if i["cell"] == cell]
        figures["by_cell"][cell] = _spread(mine)
        _say_undefined(figures["by_cell"][cell], f"{place}.by_cell.{cell}", why)
        own = [int(b.asked["rc"].sum()) for bs in whole.values() for b in bs if b.cell == cell and b.asked["rc"].any()]
        figures["by_cell"][cell]["intervals"] = _spread_intervals(
            moved[cell], draws, why, f"{place}.by_cell.{cell}", why_no_interval(own)
        )
    items.sort(key=lambda i: (i["delta"] is None or np.isnan(i["delta"]), i["delta"], i["target"]))
    figures["items"] = items
    figures["hard_tail"] = [i["target"] for i in items if i["delta"] is not None and i["delta"] < 0.25 - 1e-9]
    return figures


def _say_undefined(figures: dict[str, Any], place: str, why: _Why) -> None:
    for name, value in figures.items():
        if value is None:
            nothing = "no requirement is known: each lacks a verdict and has no positive one"
            why.say(f"{place}.{name}", nothing if figures["mean"] is None else "fewer than two requirements are known")


def _difficulty(held: list[Block]) -> tuple[Any, Any, Any, Any]:
    """delta(r) of one cell with its bounds and the number of suites known, arrays of shape (requirements,)."""
    import numpy as np

    found = []
    for fill in (None, 0.0, 1.0):
        rates = []
        for block in held:
            rc = block.rc if fill is None else block.filled("rc", fill)
            rates.append(_divide(np.nansum(rc, axis=0), (~np.isnan(rc)).sum(axis=0)))
        stacked = np.stack(rates)
        found.append(_divide(np.nansum(stacked, axis=0), (~np.isnan(stacked)).sum(axis=0)))
    known = sum((~np.isnan(b.rc)).sum(axis=0) for b in held)
    return (*found, known)


def _difficulty_resampled(whole: dict[str, list[Block]], cells: list[str], draws: Resampler) -> dict[str, Any]:
    """delta(r) in every resample, by cell, arrays of shape (requirements, resamples)."""
    import numpy as np

    moved = {}
    for cell in cells:
        total: Any = 0.0
        count: Any = 0.0
        for blocks in whole.values():
            for block in blocks:
                if block.cell != cell or not block.asked["rc"].any():
                    continue
                part = block.part(block.asked["rc"])
                weights = draws.counts(len(part.units), part.generator, cell)
                known = ~np.isnan(part.rc)
                rate = _divide(np.where(known, part.rc, 0.0).T @ weights, known.T.astype(float) @ weights)
                total, count = total + np.nan_to_num(rate), count + ~np.isnan(rate)
        if not np.isscalar(count):
            moved[cell] = _divide(total, count)
    return moved


def _spread(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean, median, standard deviation (n-1) and tails of the difficulties of some requirements."""
    import numpy as np

    # The mean of three twelfths may miss a quarter by a rounding error; twelve places are more than 180 suites need.
    found = {}
    for name, values in (
        ("value", [i["delta"] for i in items]),
        ("low", [i["bounds"][0] for i in items]),
        ("high", [i["bounds"][1] for i in items]),
    ):
        array = np.array(values, float)
        array = array[~np.isnan(array)]
        near = np.round(array, 12)
        found[name] = {
            "mean": float(array.mean()) if len(array) else None,
            "median": float(np.median(array)) if len(array) else None,
            "sd": float(array.std(ddof=1)) if len(array) > 1 else None,
            "above_90": int((near > 0.9).sum()) if len(array) else None,
            "below_25": int((near < 0.25).sum()) if len(array) else None,
            "never": int((near == 0).sum()) if len(array) else None,
        }
    low, high = found["low"], found["high"]
    bounds = {}
    if low["mean"] is not None:
        bounds = {k: [low[k], high[k]] for k in ("mean", "median", "above_90")}
        bounds |= {k: [high[k], low[k]] for k in ("below_25", "never")}
    return found["value"] | {"requirements": len(items), "bounds": bounds}


def _spread_intervals(moved: Any, draws: Resampler, why: _Why, place: str, reason: str | None) -> dict[str, Any]:
    """Intervals of mean and median from difficulties in every resample, shape (requirements, resamples)."""
    import numpy as np

    known = moved[~np.isnan(moved).all(axis=1)]
    found = {name: np.full(draws.resamples, np.nan) for name in ("mean", "median")}
    somewhere = ~np.isnan(known).all(axis=0)
    found["mean"][somewhere] = np.nanmean(known[:, somewhere], axis=0)
    found["median"][somewhere] = np.nanmedian(known[:, somewhere], axis=0)
    return {name: why.interval(f"{place}.intervals.{name}", draws, values, reason) for name, values in found.items()}


# V2, profiles


def _v2(blocks: list[Block], draws: Resampler, why: _Why, place: str) -> dict[str, Any]:
    """Detection rate of each fault class at both stages."""
    import numpy as np

    out: dict[str, Any] = {}
    classes = [c for c in enum_values("FaultClass") if any(c in b.classes for b in blocks)]
    if any(c is None for b in blocks for c in b.classes):
        why.say(
            place, "the class of some faults is not known: give the column fault_class, or the package that has them"
        )
    for name in classes:
        row: dict[str, Any] = {}
        for stage in ("design", "execution"):
            key = f"{place}.{name}.{stage}"
            ones = known = low = high = asked = 0.0
            moved_ones: Any = 0.0
            moved_known: Any = 0.0
            sizes, faults = [], 0
            for block in blocks:
                of_class = np.array([c == name for c in block.classes])
                array = getattr(block, stage)[:, of_class]
                if not array.size:
                    continue
                is_known = ~np.isnan(array)
                fill0, fill1 = block.filled(stage, 0.0)[:, of_class], block.filled(stage, 1.0)[:, of_class]
                ones, known = ones + np.nansum(array), known + is_known.sum()
                low, high, asked = low + np.nansum(fill0), high + np.nansum(fill1), asked + (~np.isnan(fill0)).sum()
                per_suite = np.nansum(array.reshape(len(array), -1), axis=1)
                per_known = is_known.reshape(len(array), -1).sum(axis=1)
                weights = draws.counts(len(array), block.generator, block.cell)
                moved_ones, moved_known = moved_ones + per_suite @ weights, moved_known + per_known @ weights
                sizes.append(int((per_known > 0).sum()))
                faults += int(of_class.sum())
            row[stage] = ones / known if known else None
            row[f"{stage}_n"] = int(known)
            row[f"{stage}_bounds"] = [low / asked, high / asked] if asked else None
            if not known:
                why.say(key, f"no verdict of the {stage} stage on a fault of this class is known")
                reason: str | None = "the rate is not defined"
            else:
                reason = why_no_interval([s for s in sizes if s])
            rates = _divide(moved_ones, moved_known)
            row[f"{stage}_interval"] = why.interval(f"{key}_interval", draws, rates, reason)
            row["faults"] = faults
        out[name] = row
    return out


def _orders(v2: dict[str, Any], why: _Why) -> dict[str, Any]:
    """The order of the classes in each generator, and how alike the orders of two generators are (Spearman)."""
    out: dict[str, Any] = {}
    for stage in ("design", "execution"):
        rates = {
            g: {c: row[stage] for c, row in by_class.items() if row[stage] is not None} for g, by_class in v2.items()
        }
        orders = {g: sorted(r, key=lambda c, r=r: (-r[c], c)) for g, r in rates.items()}
        alike = {}
        for one, two in combinations(v2, 2):
            both = [c for c in rates[one] if c in rates[two]]
            value, reason = _spearman([rates[one][c] for c in both], [rates[two][c] for c in both])
            alike[f"{one} ~ {two}"] = value
            why.say(f"V2_order.{stage}.spearman.{one} ~ {two}", reason)
        out[stage] = {"orders": orders, "spearman": alike}
    if len(v2) < 2:
        why.say(
            "V2_order", "one generator: whether the order of the classes is stable across generators cannot be said"
        )
    return out


def _spearman(a: list[float], b: list[float]) -> tuple[float | None, str | None]:
    from scipy.stats import spearmanr

    if len(a) < 3:
        return None, "fewer than three classes"
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None, "all classes have one rate"
    return float(spearmanr(a, b).statistic), None


# V3, the two stages


def pair_sums(block: Block) -> Any:
    """Sums over the draws of each suite and fault, shape (6, suites, faults): see :data:`N` to :data:`X`."""
    import numpy as np

    d, e = block.design[:, :, None], block.execution
    known = ~np.isnan(d) & ~np.isnan(e)
    d, e0 = np.where(known, d, 0.0), np.where(known, e, 0.0)
    held = ~np.isnan(e)
    pairs = np.zeros(block.design.shape)
    differ = np.zeros(block.design.shape)
    for one, two in combinations(range(e.shape[2]), 2):
        both = held[:, :, one] & held[:, :, two]
        pairs += both
        differ += both & (e[:, :, one] != e[:, :, two])
    sums = [known.sum(axis=2), d.sum(axis=2), e0.sum(axis=2), (d * e0).sum(axis=2), pairs, differ]
    return np.stack([np.asarray(s, float) for s in sums])


def _agreement(t: Any) -> dict[str, Any]:
    """Figures of pooled sums; ``t`` has the shape (6, ...)."""
    n = t[N]
    p, q = _divide(t[D], n), _divide(t[E], n)
    alpha = _divide(n - t[D] - t[E] + 2 * t[B], n)
    chance = p * q + (1 - p) * (1 - q)
    return {
        "alpha": alpha,
        "alpha_0": chance,
        "margin": alpha - chance,
        "kappa": _divide(alpha - chance, 1 - chance),
        "delta": p - q,
        "differ": _divide(t[X], t[M]),
    }


def _per_fault(t: Any, suites: Any) -> tuple[Any, Any]:
    """Baseline of each fault, and its margin times n/(n-1); ``t`` (6, faults), ``suites`` (faults,)."""
    import numpy as np

    figures = _agreement(t)
    scale = np.where(suites > 1, suites / np.maximum(suites - 1, 1), np.nan)
    return figures["alpha_0"], figures["margin"] * scale


def _v3(blocks: list[Block], draws: Resampler, why: _Why, place: str) -> dict[str, Any]:
    import numpy as np

    sums = [pair_sums(b) for b in blocks]
    total = sum((s.sum(axis=(1, 2)) for s in sums), np.zeros(6))
    figures = _agreement(total)
    n, d, e, both = (int(total[i]) for i in (N, D, E, B))
    out: dict[str, Any] = {
        "table": [[both, d - both], [e - both, n - d - e + both]],
        "pairs": n,
        "suites": sum(int((s[N].sum(axis=1) > 0).sum()) for s in sums),
        "draws": max((b.execution.shape[2] for b in blocks), default=0),
    }
    suites = [(s[N] > 0).sum(axis=0) for s in sums]
    base, corrected = zip(*(_per_fault(s.sum(axis=1), k) for s, k in zip(sums, suites)), strict=True)
    baseline, margin_corrected = _mean(np.concatenate(base)), _mean(np.concatenate(corrected))

    sizes = [int((s[N].sum(axis=1) > 0).sum()) for s in sums]
    reason = why_no_interval([s for s in sizes if s]) if n else "no pair of stages is known"
    moved, moved_base = _v3_resampled(blocks, sums, draws, faults_too=False)
    wide, wide_base = _v3_resampled(blocks, sums, draws, faults_too=True)
    few = max(len(b.faults) for b in blocks) < 2
    wide_reason = reason or ("one fault a cell: faults cannot be resampled" if few else None)

    for name in ("alpha", "alpha_0", "margin", "kappa", "delta"):
        value = float(figures[name])
        out[name] = None if np.isnan(value) else value
    if not n:
        for name in ("alpha", "alpha_0", "margin", "kappa", "delta", "disagreement"):
            why.say(f"{place}.{name}", "no pair of a design and an execution verdict is known")
    out["interval"] = why.interval(f"{place}.interval", draws, moved["alpha"], reason)
    out["margin_interval"] = why.interval(f"{place}.margin_interval", draws, moved["margin"], reason)
    out["delta_interval"] = why.interval(f"{place}.delta_interval", draws, moved["delta"], reason)
    out |= _kappa(d, e, n, out["kappa"], moved["kappa"], draws, why, place, reason)
    out["disagreement"] = None if out["alpha"] is None else 1 - out["alpha"]

    if n and max(k.max(initial=0) for k in suites) < 2:
        # With one suite a fault's rates are 0 or 1, and its chance agreement is its agreement.
        baseline = None
        why.say(f"{place}.per_fault", "one suite a fault: its baseline would be its own agreement")
    margin = None if baseline is None or out["alpha"] is None else out["alpha"] - baseline
    out["per_fault"] = {
        "baseline": baseline,
        "margin": margin,
        "interval": why.interval(f"{place}.per_fault.interval", draws, moved["alpha"] - moved_base, reason),
        "margin_corrected": margin_corrected,
        "interval_corrected": None,
        "p": None,
    }
    if margin_corrected is None:
        why.say(f"{place}.per_fault.margin_corrected", "a fault with one suite has no margin of its own")
    elif (found := _jackknife(sums, suites, margin_corrected, draws.level)) is None:
        what = reason or "the jackknife needs three suites a fault, and suites that differ"
        why.say(f"{place}.per_fault.interval_corrected", what)
    else:
        out["per_fault"]["interval_corrected"] = found
    if margin is not None and reason is None:
        permuted = _permuted_margin(blocks, draws)
        if np.ptp(permuted) < 1e-12:
            why.say(
                f"{place}.per_fault.p", "every permutation gives the same margin: a stage is constant within each fault"
            )
        else:
            out["per_fault"]["p"] = permutation_value(margin, permuted)
    elif margin is not None:
        why.say(f"{place}.per_fault.p", f"no permutation: {reason}")
    elif not n:
        why.say(f"{place}.per_fault", "no pair of a design and an execution verdict is known")
    out["upper"] = _upper(figures, moved, out, draws, why, place, reason)
    out["faults_too"] = {
        "interval": why.interval(f"{place}.faults_too.interval", draws, wide["alpha"], wide_reason),
        "margin_interval": why.interval(f"{place}.faults_too.margin_interval", draws, wide["margin"], wide_reason),
        "delta_interval": why.interval(f"{place}.faults_too.delta_interval", draws, wide["delta"], wide_reason),
        "per_fault_interval": why.interval(
            f"{place}.faults_too.per_fault_interval", draws, wide["alpha"] - wide_base, wide_reason
        ),
    }
    out["bounds"] = _v3_bounds(blocks, why, place)
    out["description"] = _independent_pairs(out["table"], why, place)
    return out


def _mean(values: Any) -> float | None:
    import numpy as np

    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _v3_resampled(
    blocks: list[Block], sums: list[Any], draws: Resampler, *, faults_too: bool
) -> tuple[dict[str, Any], Any]:
    """The pooled figures and the per-fault baseline of every resample, arrays of shape (resamples,)."""
    total: Any = 0.0
    base: Any = 0.0
    count: Any = 0.0
    for block, held in zip(blocks, sums):
        key = ("v3", faults_too, block.generator, block.cell)
        part = draws.once(key, lambda block=block, held=held: _block_resampled(block, held, draws, faults_too))
        total, base, count = total + part[0], base + part[1], count + part[2]
    return _agreement(total), _divide(base, count)


def _block_resampled(block: Block, held: Any, draws: Resampler, faults_too: bool) -> tuple[Any, Any, Any]:
    """Sums of one block in every resample, (6, resamples); the sum of its faults' baselines, and their number."""
    import numpy as np

    n, faults = held.shape[1:]
    weights = draws.counts(n, block.generator, block.cell)
    # The faults of a cell are the same for every generator, and so are their resamples.
    times = draws.counts(faults, "faults", block.cell) if faults_too else np.ones((faults, 1))
    if not faults_too and (held[N] == 1).all() and not held[M].any():
        # Nothing is missing and there is one draw, so most columns are constants, and one product gives the others.
        total = np.zeros((6, draws.resamples))
        d, e = held[D].T, held[E].T
        moved = np.concatenate([d, e, [d.sum(axis=0), e.sum(axis=0), held[B].sum(axis=1)]]) @ weights
        total[N], total[[D, E, B]] = n * faults, moved[2 * faults :]
        # The sum over faults of p q + (1 - p)(1 - q).
        base = 2 * np.einsum("fr,fr->r", moved[:faults], moved[faults : 2 * faults]) / n**2
        base += faults - (total[D] + total[E]) / n
        return total, base, faults
    moved = (held.transpose(0, 2, 1).reshape(-1, n) @ weights).reshape(6, faults, -1)
    own = _agreement(moved)["alpha_0"]
    known = ~np.isnan(own)
    return (moved * times).sum(axis=1), (np.nan_to_num(own) * times).sum(axis=0), (known * times).sum(axis=0)


def _jackknife(sums: list[Any], suites: list[Any], value: float, level: float) -> list[float] | None:
    """Interval of the corrected per-fault margin: suites left out one at a time within each stratum, t on n - 1 a
    stratum.

    The percentile interval of the margin as printed is centred on a figure that is biased once by the sample and once
    more by the resample, and is too narrow for both; docs/measures.md has the simulation. Jackknife: Tukey (1958); for
    strata, Wolter (2007), chapter 4. ``None`` where it is not defined.
    """
    import numpy as np
    from scipy.stats import t as student

    faults = sum(int((k > 1).sum()) for k in suites)
    variance, freedom = 0.0, 0
    for held, known in zip(sums, suites):
        there = held[:, held[N].sum(axis=1) > 0]
        n = there.shape[1]
        if not n or not (known > 1).any():
            continue
        if known[known > 1].min() < 3:
            return None
        left = there.sum(axis=1, keepdims=True) - there  # (6, suites, faults)
        known_left = known - (there[N] > 0)
        scale = np.where(known_left > 1, known_left / np.maximum(known_left - 1, 1), np.nan)
        changed = np.nansum(_agreement(left)["margin"] * scale, axis=1) / faults
        variance += (n - 1) / n * ((changed - changed.mean()) ** 2).sum()
        freedom += n - 1
    if variance < 1e-20:
        return None
    half = float(student.ppf((1 + level) / 2, freedom)) * variance**0.5
    return [value - half, value + half]


def _kappa(
    d: int, e: int, n: int, value: float | None, moved: Any, draws: Resampler, why: _Why, place: str, reason: str | None
) -> dict[str, Any]:
    """kappa with its interval, and a word where one stage says one thing only (prevalence trap)."""
    one = [name for name, ones in (("design", d), ("execution", e)) if n and ones in (0, n)]
    if n and value is None:
        why.say(f"{place}.kappa", "both stages say the same of every pair, so chance agreement is 1")
        why.say(f"{place}.kappa_interval", "kappa is not defined")
        return {"kappa": None, "kappa_interval": None}
    if one:
        what = f"the {one[0]} stage says one thing only, so kappa is 0 at any agreement"
        why.say(f"{place}.kappa_interval", what)
        return {"kappa": 0.0, "kappa_interval": None}
    return {"kappa": value, "kappa_interval": why.interval(f"{place}.kappa_interval", draws, moved, reason)}


def _permuted_margin(blocks: list[Block], draws: Resampler) -> Any:
    """The per-fault margin when the suites of a cell swap their execution verdicts, shape (resamples,).

    Whole suites are swapped, so that what hangs together within a suite stays together.
    """
    import numpy as np

    n: Any = 0.0
    agree: Any = 0.0
    base: Any = 0.0
    count: Any = 0.0
    for block in blocks:
        key = ("permuted", block.generator, block.cell)
        t = draws.once(key, lambda block=block: _permuted_sums(block, draws))
        chance = _agreement(t)["alpha_0"]
        base, count = base + np.nansum(chance, axis=0), count + (~np.isnan(chance)).sum(axis=0)
        n = n + t[N].sum(axis=0)
        agree = agree + (t[N] - t[D] - t[E] + 2 * t[B]).sum(axis=0)
    return _divide(agree, n) - _divide(base, count)


def _permuted_sums(block: Block, draws: Resampler) -> Any:
    """Sums of each fault in every order of the suites' execution verdicts, shape (6, faults, resamples)."""
    import numpy as np

    n, faults = block.design.shape
    orders = draws.orders(n, block.generator, block.cell)
    both = np.stack([(~np.isnan(block.design)).astype(float), np.nan_to_num(block.design)])  # known, yes
    e, known_e = np.nansum(block.execution, axis=2), (~np.isnan(block.execution)).sum(axis=2).astype(float)
    t = np.zeros((6, faults, draws.resamples))
    complete = (both[0] == 1).all() and (known_e == known_e[0]).all()
    for f in range(faults):
        columns = both[:, :, f].T
        if complete:  # the order changes neither how many are known nor how many say yes
            t[N, f], t[D, f], t[E, f] = known_e[:, f].sum(), both[1, :, f] @ known_e[:, f], e[:, f].sum()
            t[B, f] = e[:, f][orders] @ both[1, :, f]
        else:
            t[N, f], t[D, f] = (known_e[:, f][orders] @ columns).T
            t[E, f], t[B, f] = (e[:, f][orders] @ columns).T
    return t


def _upper(
    figures: dict[str, Any], moved: dict[str, Any], out: dict[str, Any], draws: Resampler, why: _Why, place: str,
    reason: str | None,
) -> dict[str, Any]:  # fmt: skip
    """mean_k Pr[D != E_k] - Pr[E_1 != E_2]: do the stages differ more than two answers of the agent do?"""
    import numpy as np

    differ = float(figures["differ"])
    if np.isnan(differ) or out["alpha"] is None:
        what = "one draw of the agent's answers: how much two draws differ is not known"
        for name in ("value", "interval", "draws_differ"):
            why.say(f"{place}.upper.{name}", what)
        return {"value": None, "interval": None, "draws_differ": None}
    values = 1 - moved["alpha"] - moved["differ"]
    return {
        "value": 1 - out["alpha"] - differ,
        "interval": why.interval(f"{place}.upper.interval", draws, values, reason),
        "draws_differ": differ,
    }


def _v3_bounds(blocks: list[Block], why: _Why, place: str) -> dict[str, Any]:
    """Least and greatest values over all values of what is missing, of suites that both stages were asked of."""
    import numpy as np

    agree = unknown = n = 0.0
    p, q = np.zeros(3), np.zeros(3)
    for block in blocks:
        asked = block.asked["design"][:, None] & block.drawn
        wanted = np.broadcast_to(asked[:, None, :], block.execution.shape)
        d = np.broadcast_to(block.design[:, :, None], block.execution.shape)
        e = block.execution
        known = wanted & ~np.isnan(d) & ~np.isnan(e)
        agree += (known & (d == e)).sum()
        unknown += (wanted & ~known).sum()
        n += wanted.sum()
        for sums, array in ((p, d), (q, e)):
            sums += [(wanted & (array == 1)).sum(), (wanted & np.isnan(array)).sum(), wanted.sum()]
    if not n:
        why.say(f"{place}.bounds", "no suite was judged at both stages")
        return {"alpha": None, "alpha_0": None, "delta": None, "unknown_pairs": 0}
    p_ends, q_ends = ([s[0] / s[2], (s[0] + s[1]) / s[2]] for s in (p, q))
    corners = [a * b + (1 - a) * (1 - b) for a in p_ends for b in q_ends]  # bilinear: extremes are at corners
    return {
        "alpha": [agree / n, (agree + unknown) / n],
        "alpha_0": [min(corners), max(corners)],
        "delta": [p_ends[0] - q_ends[1], p_ends[1] - q_ends[0]],
        "unknown_pairs": int(unknown),
    }


def _independent_pairs(table: list[list[int]], why: _Why, place: str) -> dict[str, Any]:
    """McNemar (exact) and Fisher's exact test of the table, which take its pairs as independent."""
    from scipy.stats import fisher_exact

    from regatta_tools.measures.agreement import mcnemar

    margins = [*map(sum, table), *map(sum, zip(*table))]
    found = {
        "mcnemar_p": mcnemar(table[0][1], table[1][0]),
        "fisher_p": float(fisher_exact(table).pvalue) if all(margins) else None,
    }
    for name, reason in (("mcnemar_p", "the stages never differ"), ("fisher_p", "a stage says one thing only")):
        if found[name] is None:
            why.say(f"{place}.description.{name}", reason)
    return found | {"note": DESCRIBES}


# V4 and figure 2, strategies


def suite_values(block: Block, fill: float | None = None) -> dict[str, Any]:
    """The measures of each suite, arrays of shape (suites,); NaN where a measure is not defined.

    With ``fill`` every unknown target is 0 or 1; then ISS and AC take their least or greatest value.
    """
    import numpy as np

    out: dict[str, Any] = {}
    for name, stage in (("RC", "rc"), ("FDR_d", "design"), ("FDR_e", "execution")):
        array = getattr(block, stage) if fill is None else block.filled(stage, fill)
        flat = array.reshape(len(array), -1)
        out[name] = _divide(np.nansum(flat, axis=1), (~np.isnan(flat)).sum(axis=1))
    if fill is None:
        out["Delta"] = out["FDR_d"] - out["FDR_e"]
    else:
        other = block.filled("execution", 1 - fill).reshape(len(block.units), -1)
        out["Delta"] = out["FDR_d"] - _divide(np.nansum(other, axis=1), (~np.isnan(other)).sum(axis=1))
    column = 0 if fill is None else 1 if fill == 0 else 2
    out["ISS"], out["AC"] = block.iss[:, column], block.ac[:, column]
    return {name: out[name] for name in MEASURES}


def _v4(
    blocks: list[Block], draws: Resampler, why: _Why, place: str, generator: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    import numpy as np

    names = sorted({s for b in blocks for s in b.strategies()})
    # Masks of shape (strategies, suites).
    members = [np.array([[u.strategy == s for u in b.units] for s in names]) for b in blocks]
    values = [suite_values(b) for b in blocks]
    low, high = [suite_values(b, 0.0) for b in blocks], [suite_values(b, 1.0) for b in blocks]
    sizes = [int(m.sum()) for member in members for m in member if m.any()]
    reason = why_no_interval(sizes)
    all_moved = _strategy_resampled(blocks, members, names, values, draws)
    by_chance = _ranges_by_chance(blocks, names, values, draws)
    v4: dict[str, Any] = {}
    figure: dict[str, Any] = {}
    for measure in MEASURES:
        key = f"{place}V4.{generator}.{measure}"
        means = _by_strategy(members, [v[measure] for v in values])
        ends = [_by_strategy(members, [v[measure] for v in fills]) for fills in (low, high)]
        moved = all_moved[MEASURES.index(measure)]
        wide = None
        if measure in ("FDR_d", "FDR_e", "Delta"):
            wide = _faults_too(blocks, members, names, measure, draws)
        wide_reason = reason or ("faults cannot be resampled" if max(len(b.faults) for b in blocks) < 2 else None)
        row: dict[str, Any] = {
            "strategies": dict(zip(names, map(_number, means))),
            "rho": None,
            "intervals": {},
            "bounds": {n: _pair(lo, hi) for n, lo, hi in zip(names, *ends)},
        }
        for i, name in enumerate(names):
            if np.isnan(means[i]):
                for part in ("strategies", "intervals", "bounds"):
                    if part != "bounds" or row["bounds"][name] is None:
                        why.say(f"{key}.{part}.{name}", f"no suite of this strategy has {measure}")
                row["intervals"][name] = None
                continue
            row["intervals"][name] = why.interval(f"{key}.intervals.{name}", draws, moved[:, i], reason)
        defined = ~np.isnan(means)
        if defined.sum() < 2:
            what = "nobody says how the suites were made" if names == [UNSTATED] else "fewer than two strategies"
            why.say(f"{key}.rho", f"{what}: there is nothing to separate")
        else:
            row["rho"] = float(np.ptp(means[defined]))
            row["rho_interval"] = why.interval(f"{key}.rho_interval", draws, np.ptp(moved[:, defined], axis=1), reason)
            row["rho_bounds"] = _rho_bounds(ends[0][defined], ends[1][defined])
            row["rho_by_chance"] = _rho_by_chance(by_chance[MEASURES.index(measure)], row["rho"])
            if wide is not None:
                row["faults_too"] = {
                    "rho_interval": why.interval(
                        f"{key}.faults_too.rho_interval", draws, np.ptp(wide[:, defined], axis=1), wide_reason
                    )
                }
        v4[measure] = row
        if measure == "Delta":
            for i, name in enumerate(names):
                where = f"{place}figure_2.{generator}.{name}"
                undefined = "no suite of this strategy was judged at both stages" if np.isnan(means[i]) else None
                why.say(f"{where}.delta", undefined)
                figure[name] = {
                    "delta": _number(means[i]),
                    "interval": why.interval(f"{where}.interval", draws, moved[:, i], undefined or reason),
                    "faults_too": why.interval(f"{where}.faults_too", draws, wide[:, i], undefined or wide_reason),
                    "bounds": row["bounds"][name],
                    "suites": sum(int(m[i].sum()) for m in members),
                }
    return v4, figure


def _number(value: Any) -> float | None:
    return None if value != value else float(value)


def _pair(low: Any, high: Any) -> list[float] | None:
    return None if low != low or high != high else [float(low), float(high)]


def _by_strategy(members: list[Any], values: list[Any]) -> Any:
    """Mean over the suites of each strategy that have a value, shape (strategies,)."""
    import numpy as np

    total = sum(m @ np.nan_to_num(v) for m, v in zip(members, values))
    count = sum(m @ (~np.isnan(v)).astype(float) for m, v in zip(members, values))
    return _divide(total, count)


def _stacked(values: dict[str, Any]) -> Any:
    """The measures of each suite with 0 for what is not defined, and whether each is, shape (2 * measures, suites)."""
    import numpy as np

    array = np.stack([values[m] for m in MEASURES])
    return np.concatenate([np.nan_to_num(array), (~np.isnan(array)).astype(float)])


def _strategy_resampled(
    blocks: list[Block], members: list[Any], names: list[str], values: list[dict[str, Any]], draws: Resampler
) -> Any:
    """Means by strategy in every resample of suites within cell and strategy, (measures, resamples, strategies)."""
    import numpy as np

    out = []
    for i, name in enumerate(names):
        total = np.zeros((2 * len(MEASURES), draws.resamples))
        for block, member, value in zip(blocks, members, values):
            n = int(member[i].sum())
            if not n:
                continue
            at = (block.generator, block.cell, name)
            total += draws.once(
                ("strategy", *at),
                lambda value=value, mask=member[i], n=n, at=at: _stacked(value)[:, mask] @ draws.counts(n, *at),
            )
        out.append(_divide(total[: len(MEASURES)], total[len(MEASURES) :]))
    return np.stack(out, axis=2)


def _faults_too(blocks: list[Block], members: list[Any], names: list[str], measure: str, draws: Resampler) -> Any:
    """The same of one measure when the faults of each cell are resampled too, shape (resamples, strategies)."""
    import numpy as np

    out = []
    for i, name in enumerate(names):
        stages = {}
        for stage in ("design", "execution"):
            total = np.zeros((2, draws.resamples))
            for block, member in zip(blocks, members):
                if member[i].any():
                    key = ("strategy, faults too", stage, block.generator, block.cell, name)
                    total += draws.once(
                        key,
                        lambda block=block, mask=member[i], stage=stage, name=name: _rates_both_ways(
                            block, mask, stage, name, draws
                        ),
                    )
            stages[stage] = _divide(total[0], total[1])
        d, e = stages["design"], stages["execution"]
        out.append({"FDR_d": d, "FDR_e": e, "Delta": d - e}[measure])
    return np.stack(out, axis=1)


def _rates_both_ways(block: Block, mask: Any, stage: str, name: str, draws: Resampler) -> Any:
    """Sums of yes and of known verdicts in every resample of suites and of faults, shape (2, resamples)."""
    import numpy as np

    array = getattr(block, stage)[mask]
    if array.ndim == 2:
        array = array[:, :, None]
    weights = draws.counts(len(array), block.generator, block.cell, name)
    times = draws.counts(len(block.faults), "faults", block.cell)
    parts = (np.nansum(array, axis=2), (~np.isnan(array)).sum(axis=2).astype(float))
    return np.stack([((part.T @ weights) * times).sum(axis=0) for part in parts])


def _rho_bounds(low: Any, high: Any) -> list[float] | None:
    """Least and greatest range of strategies whose means lie between ``low`` and ``high``, arrays (strategies,)."""
    import numpy as np

    if np.isnan(low).any() or np.isnan(high).any():
        return None
    most = max(float(high[i] - low[j]) for i in range(len(low)) for j in range(len(low)) if i != j)
    return [max(0.0, float(low.max() - high.min())), max(0.0, most)]


def _ranges_by_chance(blocks: list[Block], names: list[str], values: list[dict[str, Any]], draws: Resampler) -> Any:
    """The ranges that chance alone gives, when the suites of a cell swap their strategies, (measures, resamples)."""
    import numpy as np

    means = []
    for name in names:
        total = np.zeros((draws.resamples, 2 * len(MEASURES)))
        for block, value in zip(blocks, values):
            mask = np.array([u.strategy == name for u in block.units])
            if mask.any():
                key = ("chance", block.generator, block.cell, name)
                total += draws.once(
                    key,
                    lambda block=block, value=value, mask=mask: (
                        mask[draws.orders(len(mask), block.generator, block.cell)].astype(float) @ _stacked(value).T
                    ),
                )
        means.append(_divide(total[:, : len(MEASURES)], total[:, len(MEASURES) :]))
    stacked = np.stack(means)
    with np.errstate(invalid="ignore"):
        return (np.fmax.reduce(stacked) - np.fmin.reduce(stacked)).T


def _rho_by_chance(ranges: Any, rho: float) -> dict[str, float] | None:
    import numpy as np

    if np.isnan(ranges).any() or np.ptp(ranges) < 1e-12:
        return None
    return {"mean": float(ranges.mean()), "p95": float(np.quantile(ranges, 0.95)), "p": permutation_value(rho, ranges)}


# The rest of a result


def _detection(blocks: list[list[Block]]) -> dict[str, Any]:
    """Detection rates of one cell, pooled over its generators."""
    import numpy as np

    out = {}
    for stage in ("design", "execution"):
        arrays = [getattr(b, stage) for held in blocks for b in held]
        ones, known = sum(np.nansum(a) for a in arrays), sum((~np.isnan(a)).sum() for a in arrays)
        out[stage] = float(ones / known) if known else None
    return out


def _suites(people: Population) -> list[dict[str, Any]]:
    out = []
    for block in people.blocks:
        value, low, high = suite_values(block), suite_values(block, 0.0), suite_values(block, 1.0)
        for i, unit in enumerate(block.units):
            row: dict[str, Any] = {
                "suite": unit.suite, "cell": unit.cell, "strategy": unit.strategy, "generator": unit.generator,
                "repeat": unit.repeat or None,
            }  # fmt: skip
            row |= {m: _number(value[m][i]) for m in MEASURES}
            row["bounds"] = {m: _pair(low[m][i], high[m][i]) for m in MEASURES}
            out.append(row)
    return out


def _missing(people: Population) -> dict[str, Any]:
    import numpy as np

    unknown, asked = {}, {}
    for stage in ("rc", "design", "execution"):
        filled = [b.filled(stage, 0.0) for b in people.blocks]
        asked[stage] = int(sum((~np.isnan(f)).sum() for f in filled))
        unknown[stage] = asked[stage] - int(sum((~np.isnan(getattr(b, stage))).sum() for b in people.blocks))
    return {"outcomes": people.outcomes, "targets": asked, "unknown_targets": unknown}


def _notes(people: Population, result: dict[str, Any]) -> list[str]:
    """What the numbers support and what they do not, as far as the data themselves say it."""
    notes = [
        "The numbers measure suites, not agents. They say nothing about legal compliance, and no lawyer has "
        "reviewed the "
        "instruments."
    ]
    sizes = {(b.generator, b.cell): len(b.units) for b in people.blocks}
    suites = sum(sizes.values())
    if suites == 1:
        notes.append("One suite: every figure describes this suite. No interval, and no statement on suites like it.")
    elif min(sizes.values()) < 2:
        lone = sum(n < 2 for n in sizes.values())
        notes.append(
            f"{lone} of {len(sizes)} cells (by generator) hold one suite: intervals that would need them are left out."
        )
    elif min(sizes.values()) < 10:
        notes.append(
            f"As few as {min(sizes.values())} suites in a cell: intervals by resampling so few come out too narrow."
        )
    if people.strategies == [UNSTATED]:
        notes.append("Nobody says how the suites were made: strategies are not compared (V4, figure 2).")
    elif len(people.strategies) == 1:
        notes.append("One strategy: there is nothing to separate (V4).")
    else:
        per = [n for b in people.blocks for n in _tally(b.strategies()).values()]
        if min(per) < 5:
            notes.append(
                f"As few as {min(per)} suites a strategy in a cell: a difference between strategies describes "
                "these suites. "
                "rho is never below 0 and grows by chance alone; compare it with rho_by_chance."
            )
    if len(people.generators) == 1:
        notes.append("One generator: whether profiles are stable across generators (V2) cannot be said.")
    if len(people.cells) == 1:
        notes.append("One cell: nothing here carries over to another domain or law.")
    if faults := max((len(b.faults) for b in people.blocks), default=0):
        notes.append(
            f"{faults} faults a cell, chosen and not drawn: a rate of a class describes its faults and carries no "
            "claim "
            "about the class. The intervals that resample faults too are the ones for new faults."
        )
    if all(v["upper"]["value"] is None for v in result["V3"].values()):
        notes.append(
            "One draw of each answer: whether the stages differ more than the agent differs from itself (the "
            "upper bound "
            "of V3) cannot be said. Another run of the suites with another seed gives a second draw."
        )
    missing = missing_of(people.outcomes)
    if missing:
        kinds = ", ".join(f"{k} {v}" for k, v in sorted(missing.items()))
        notes.append(
            f"Missing verdicts: {kinds}. Rates leave out the targets that are unknown for it; the bounds set them "
            "all to 0 "
            "and all to 1."
        )
    judges = sorted({j for s, names in people.judges.items() for j in names})
    if any(j.startswith("similarity/") for j in judges) and not any("similarity baseline" in n for n in people.notes):
        notes.append(
            "Coverage or design was judged by a similarity baseline: it sees topic, not duty, and is no judge."
        )
    for stage, names in people.judges.items():
        if len(names) > 1:
            notes.append(
                f"Suites were judged by different judges at the stage {stage} ({', '.join(names)}): they differ "
                "in both."
            )
    return [*notes, *people.notes]


def _tally(names: list[str]) -> dict[str, int]:
    return {n: names.count(n) for n in names}


def _plain(value: Any) -> Any:
    """Numbers of numpy as plain ones, NaN as ``None``."""
    import math

    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value
