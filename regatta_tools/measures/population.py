"""From single verdicts to what each suite says of each target (protocol, sections 3 and 11).

A target of a suite is 1 if any of its verdicts is positive, 0 if every scenario has a negative one (or one verdict
says so for the whole suite), and unknown (NaN) otherwise. The unit of everything that follows is a *suite in a cell*.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from regatta_tools.measures.records import SCANNED, Records
from regatta_tools.tables.model import enum_values

UNSTATED = "unstated"
MEASURES = ("RC", "FDR_d", "FDR_e", "Delta", "ISS", "AC")
#: Outcomes that carry a verdict. All others are missing verdicts, counted by kind.
CARRY = ("positive", "negative", "rated")


@dataclass(frozen=True)
class Unit:
    """A suite in a cell. What nobody says of it is :data:`UNSTATED`."""

    suite: str
    cell: str
    strategy: str
    generator: str
    repeat: int


@dataclass
class Block:
    """The suites of one cell by one generator.

    ``rc`` has the shape (suites, requirements), ``design`` (suites, faults), ``execution`` (suites, faults, draws), of
    1, 0 and NaN for unknown. ``asked`` says of each stage which suites it was asked of, ``drawn`` which draws a suite
    has, shape (suites, draws). ``iss`` and ``ac`` have the shape (suites, 3): value, least and greatest.
    """

    cell: str
    generator: str
    units: list[Unit]
    requirements: list[str]
    faults: list[str]
    classes: list[str | None]
    rc: Any
    design: Any
    execution: Any
    asked: dict[str, Any]
    drawn: Any
    iss: Any
    ac: Any

    def strategies(self) -> list[str]:
        return [u.strategy for u in self.units]

    def filled(self, stage: str, value: float) -> Any:
        """The array of a stage with every unknown target of a suite that was asked set to ``value``."""
        import numpy as np

        array = getattr(self, stage)
        asked = self.drawn[:, None, :] if stage == "execution" else self.asked[stage][:, None]
        return np.where(np.isnan(array) & asked, value, array)

    def part(self, chosen: Any) -> Block:
        """The same for some of the suites (a mask of shape (suites,))."""
        return Block(
            self.cell, self.generator, [u for u, c in zip(self.units, chosen) if c], self.requirements, self.faults,
            self.classes, self.rc[chosen], self.design[chosen], self.execution[chosen],
            {k: v[chosen] for k, v in self.asked.items()}, self.drawn[chosen], self.iss[chosen], self.ac[chosen],
        )  # fmt: skip


@dataclass
class Population:
    """All suites, in blocks by generator and cell, with the counts of outcomes by stage."""

    blocks: list[Block]
    outcomes: dict[str, dict[str, int]]
    judges: dict[str, list[str]]
    notes: list[str] = field(default_factory=list)
    source: str = ""

    @property
    def generators(self) -> list[str]:
        return list(dict.fromkeys(b.generator for b in self.blocks))

    @property
    def cells(self) -> list[str]:
        return sorted({b.cell for b in self.blocks})

    @property
    def strategies(self) -> list[str]:
        return sorted({u.strategy for b in self.blocks for u in b.units})

    def of(self, *, generator: str | None = None, cell: str | None = None) -> list[Block]:
        return [b for b in self.blocks if generator in (None, b.generator) and cell in (None, b.cell)]


def population(records: Records, *, arm: str = "joint") -> Population:
    """Put verdicts together by suite and target.

    Of the execution stage only ``arm`` is taken. A suite that several runs hold is one suite: its coverage and design
    verdicts are those of the first run, and the execution stage of each run is a draw of its own.
    """
    import numpy as np
    import pandas as pd

    frame = records.frame
    notes = list(records.notes)
    stage = frame["stage"]
    other = (stage == "execution") & (frame["arm"] != arm)
    if other.any():
        arms = ", ".join(sorted(frame.loc[other, "arm"].dropna().unique()))
        notes.append(f"{int(other.sum())} verdicts of other arms ({arms}) are left out: the arm is {arm}")
        frame = frame[~other]
    outcomes = _outcomes(frame)
    if records.scenarios:
        _count_skipped(records, outcomes)

    keys = ["generator", "cell", "strategy", "repeat", "suite"]
    texts = {k: frame[k].cat.add_categories([UNSTATED]).fillna(UNSTATED) for k in ("generator", "strategy")}
    parts = [texts.get(k, frame[k]) for k in keys]
    codes = [p.cat.codes.to_numpy() if hasattr(p, "cat") else p.to_numpy() for p in parts]
    first, unit_of = _groups(codes)
    rows = [tuple(p.iloc[i] for p in parts) for i in first]
    order = sorted(range(len(rows)), key=lambda i: tuple(map(str, rows[i])))
    # The order of generators is that in which they come, the rest is sorted.
    coming = {
        g: n for n, g in enumerate(dict.fromkeys(rows[i][0] for i in sorted(range(len(first)), key=lambda i: first[i])))
    }
    order.sort(key=lambda i: coming[rows[i][0]])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    unit_of = rank[unit_of]
    units = [Unit(str(r[4]), str(r[1]), str(r[2]), str(r[0]), int(r[3])) for r in (rows[i] for i in order)]

    frame = frame.assign(_unit=unit_of)
    frame, draw_of = _draws(frame, notes)
    frame = frame.assign(_draw=draw_of)
    wanted = _scenario_counts(frame, records)

    blocks = []
    block_names = [(u.generator, u.cell) for u in units]
    by_block = pd.Series(range(len(units))).groupby([f"{g}\0{c}" for g, c in block_names], sort=False).indices
    for name, members in by_block.items():
        generator, cell = name.split("\0")
        blocks.append(_block(frame, generator, cell, units, members, records, wanted))
    judges = {
        str(s): [str(j) for j in sorted(group["judge"].dropna().unique())]
        for s, group in frame.groupby("stage", observed=True)
    }
    return Population(blocks, outcomes, judges, notes, records.source)


def _groups(codes: list[Any]) -> tuple[Any, Any]:
    """For rows described by several codes: the first row of each distinct combination, and the number of each row's."""
    import numpy as np

    combined = np.zeros(len(codes[0]), np.int64)
    for code in codes:
        code = code.astype(np.int64) + 1
        combined = combined * (int(code.max(initial=0)) + 1) + code
        if combined.max(initial=0) > 1 << 40:
            combined = np.unique(combined, return_inverse=True)[1]
    _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
    return first, inverse


def _outcomes(frame: Any) -> dict[str, dict[str, int]]:
    counts = frame.groupby(["stage", "outcome"], observed=True).size()
    found: dict[str, dict[str, int]] = {s: {} for s in (*SCANNED, "iss", "ac") if s in set(frame["stage"].unique())}
    for (stage, outcome), count in counts.items():
        found[str(stage)][str(outcome)] = int(count)
    return found


def _count_skipped(records: Records, outcomes: dict[str, dict[str, int]]) -> None:
    """Verdicts that were not asked for because a scan had succeeded; known where a run names its scenarios."""
    rows = records.frame[records.frame["stage"].isin(SCANNED)]
    sizes = rows.groupby(["run", "stage", "target", "draw"], observed=True).size().reset_index(name="n")
    for stage, group in sizes.groupby("stage", observed=True):
        skipped = sum(len(records.scenarios.get(run, [])) - n for run, n in zip(group["run"], group["n"]))
        outcomes[str(stage)]["skipped"] = max(0, int(skipped))


def _draws(frame: Any, notes: list[str]) -> tuple[Any, Any]:
    """The rows that count, and the number of the draw of each (from 0) within its suite."""
    import numpy as np

    run = frame["run"].cat.codes.to_numpy().astype(np.int64)
    at = np.full(int(run.max(initial=0)) + 1, len(run))
    np.minimum.at(at, run, np.arange(len(run)))
    came = np.argsort(np.argsort(at))[run]  # runs by the order in which they come
    stage = frame["stage"].cat.codes.to_numpy().astype(np.int64)
    unit, draw = frame["_unit"].to_numpy().astype(np.int64), frame["draw"].to_numpy().astype(np.int64)
    step = came * (int(draw.max(initial=0)) + 1) + draw
    combined = (unit * (int(stage.max(initial=0)) + 1) + stage) * (int(step.max(initial=0)) + 1) + step
    held, inverse = np.unique(combined, return_inverse=True)
    group = held // (int(step.max(initial=0)) + 1)
    start = np.searchsorted(group, group)  # the first step of each suite and stage
    number = (np.arange(len(held)) - start)[inverse]
    keep = (frame["stage"] == "execution").to_numpy() | (number == 0)
    if dropped := int((~keep).sum()):
        notes.append(
            f"{dropped} further verdicts on coverage, design or ratings of a suite that was judged already are "
            "left out; "
            "its further answers count as draws"
        )
    return frame[keep], number[keep]


def _scenario_counts(frame: Any, records: Records) -> Any:
    """The number of scenarios of each suite: what its run says, else the scenarios that occur."""
    import numpy as np

    units = frame["_unit"].to_numpy()
    counts = np.zeros(int(units.max(initial=-1)) + 1, np.int64)
    scenario = frame["scenario"].cat.codes.to_numpy().astype(np.int64)
    seen = scenario >= 0
    if seen.any():
        span = int(scenario.max()) + 1
        pairs = np.unique(units[seen].astype(np.int64) * span + scenario[seen])
        counts += np.bincount(pairs // span, minlength=len(counts))
    if records.scenarios:
        runs = frame.drop_duplicates("_unit")
        for unit, run in zip(runs["_unit"], runs["run"]):
            counts[unit] = max(counts[unit], len(records.scenarios.get(str(run), [])))
    return counts


def _block(
    frame: Any, generator: str, cell: str, units: list[Unit], members: Any, records: Records, wanted: Any
) -> Block:
    import numpy as np

    members = np.asarray(members)
    targets = records.targets[cell]
    local = np.full(len(units), -1)
    local[members] = np.arange(len(members))
    rows = frame[local[frame["_unit"].to_numpy()] >= 0]
    arrays: dict[str, Any] = {}
    asked: dict[str, Any] = {}
    drawn = np.zeros((len(members), 1), bool)
    for stage in SCANNED:
        names = targets.requirements if stage == "rc" else list(targets.faults)
        part = rows[(rows["stage"] == stage).to_numpy()]
        values, present = _values(part, names, local, len(members), wanted[members])
        asked[stage] = present.any(axis=1)
        arrays[stage] = values if stage == "execution" else values[:, :, 0]
        if stage == "execution":
            drawn = present
    return Block(
        cell, generator, [units[m] for m in members], list(targets.requirements), list(targets.faults),
        list(targets.faults.values()), arrays["rc"], arrays["design"], arrays["execution"], asked, drawn,
        _iss(rows, local, len(members)), _ac(rows, local, len(members)),
    )  # fmt: skip


def _values(part: Any, names: list[str], local: Any, suites: int, wanted: Any) -> tuple[Any, Any]:
    """The values of targets, shape (suites, targets, draws), and which draws were asked of a suite, (suites, draws)."""
    import numpy as np

    draws = int(part["_draw"].max()) + 1 if len(part) else 1
    shape = (suites, len(names), draws)
    number = {name: i for i, name in enumerate(names)}
    of_code = np.array([number.get(str(c), -1) for c in part["target"].cat.categories], np.int64)
    target = of_code[part["target"].cat.codes.to_numpy()] if len(part) else np.zeros(0, np.int64)
    at = np.ravel_multi_index(
        (local[part["_unit"].to_numpy()], np.maximum(target, 0), part["_draw"].to_numpy()), shape
    ) if len(part) and names else np.zeros(0, np.int64)  # fmt: skip
    at = at[target >= 0] if len(at) else at
    part = part[target >= 0]
    outcome = part["outcome"]
    size = int(np.prod(shape))

    def count(condition: Any) -> Any:
        return np.bincount(at[condition], minlength=size).reshape(shape)

    positive, negative = (outcome == "positive").to_numpy(), (outcome == "negative").to_numpy()
    whole = part["scenario"].isna().to_numpy()
    ones, zeros = count(positive), count(negative & ~whole)
    settled = count(negative & whole) > 0
    missing = count(~positive & ~negative) > 0
    complete = settled | ((zeros > 0) & (zeros >= wanted[:, None, None]))
    values = np.where(ones > 0, 1.0, np.where(complete & ~missing, 0.0, np.nan))
    present = (ones + zeros + settled + missing).sum(axis=1) > 0
    return values, present


def _iss(rows: Any, local: Any, suites: int) -> Any:
    """Mean rating of each suite with its least and greatest value, shape (suites, 3); NaN where nothing was rated."""
    import numpy as np

    part = rows[(rows["stage"] == "iss").to_numpy()]
    unit = local[part["_unit"].to_numpy()]
    rated = (part["outcome"] == "rated").to_numpy()
    categories = np.array([int(c) if str(c).isdecimal() else 0 for c in part["value"].cat.categories] or [0])
    value = categories[part["value"].cat.codes.to_numpy()][rated] if len(part) else np.zeros(0)
    total = np.bincount(unit[rated], value, minlength=suites)
    n, all_ = np.bincount(unit[rated], minlength=suites), np.bincount(unit, minlength=suites)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([total / n, (total + (all_ - n)) / all_, (total + 5 * (all_ - n)) / all_], axis=1)


def _ac(rows: Any, local: Any, suites: int) -> Any:
    """Categories met of six in each suite with the least and greatest value, shape (suites, 3)."""
    import numpy as np

    part = rows[(rows["stage"] == "ac").to_numpy()]
    categories = enum_values("AdversarialCategory")
    met = np.zeros((suites, len(categories)), bool)
    unit = local[part["_unit"].to_numpy()]
    whole, outcome = part["scenario"].isna().to_numpy(), part["outcome"]
    rated = (outcome == "rated").to_numpy()
    for number, name in enumerate(categories):
        by_scenario = rated & (part["value"] == name).to_numpy()
        by_suite = whole & (part["target"] == name).to_numpy() & (outcome == "positive").to_numpy()
        met[unit[by_scenario | by_suite], number] = True
    known = rated | outcome.isin(["positive", "negative"]).to_numpy()
    gaps = np.bincount(unit[~known], minlength=suites)
    all_ = np.bincount(unit, minlength=suites)
    n = met.sum(axis=1).astype(float)
    value = np.where(all_ > gaps, n / len(categories), np.nan)
    low = np.where(all_ > 0, n / len(categories), np.nan)
    high = np.where(all_ > 0, np.minimum(n + gaps, len(categories)) / len(categories), np.nan)
    return np.stack([value, low, high], axis=1)


def missing_of(outcomes: dict[str, dict[str, int]]) -> Counter[str]:
    """Missing verdicts by kind over all stages."""
    counts: Counter[str] = Counter()
    for by_outcome in outcomes.values():
        counts.update({k: v for k, v in by_outcome.items() if k not in (*CARRY, "skipped")})
    return counts
