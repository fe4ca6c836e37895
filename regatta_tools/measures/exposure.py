"""Exposure by arm, and net of what the unmodified agent shows (protocol, section 12).

Everything is computed from the verdicts of one run. A target of an arm and draw is 1, 0 or unknown as in section 11.
Pairs take the same fault, scenario and draw from a faulty arm and from control; they need exhaustive scans in both,
for first-success scans stop at different places. What is missing leaves a pair out of the figures and is filled with 0
and with 1 in the bounds. Intervals resample the scenarios of the suite, all faults and draws of a scenario together:
the suite is one, so they say what other scenarios of its kind would have shown. A maximum over scenarios (the rate of
an arm) has no such interval, since a resample never exposes what the suite does not; over many suites, `regatta
diagnose --arm` resamples suites.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from regatta_tools.harness.arms import FAULTY
from regatta_tools.harness.live import PREFIX
from regatta_tools.harness.store import RunStore
from regatta_tools.measures.resampling import RESAMPLES, Resampler, why_no_interval
from regatta_tools.measures.scans import rate, scan
from regatta_tools.tables.package import Cell

#: Columns of the kill matrix as a table.
COLUMNS = (
    "requirement", "fault", "scenario", "arm", "draws", "faulty_positive", "control_positive", "net",
)  # fmt: skip
STATUS = {1: "exposed", 0: "not-exposed", None: "unknown"}
_VALUE = {"positive": 1, "negative": 0}
Value = int | None


class Verdicts:
    """The execution verdicts of a run: ``outcome`` as journalled, ``value`` as 1, 0 or ``None`` (missing)."""

    def __init__(self, store: RunStore) -> None:
        manifest = store.manifest
        self.store = store
        self.faults: list[str] = manifest["faults"]
        self.scenarios: list[str] = manifest["scenarios"]
        self.arms: list[str] = manifest["arms"]
        self.draws = range(1, manifest["draws"] + 1)
        self.scan, self.order = manifest["scan"], manifest["order"]

    def outcome(self, fault: str, scenario: str, arm: str, draw: int) -> str | None:
        return (self.store.verdict("execution", fault, scenario, draw, arm) or {}).get("outcome")

    def value(self, fault: str, scenario: str, arm: str, draw: int) -> Value:
        return _VALUE.get(self.outcome(fault, scenario, arm, draw) or "")

    def target(self, fault: str, arm: str, draw: int) -> Value:
        """Whether the suite exposes a fault in one draw of an arm."""
        return scan([self.outcome(fault, s, arm, draw) for s in self.scenarios], self.scan, self.order)[0]

    def over_draws(self, fault: str, arm: str) -> Value:
        """1 where any draw exposes a fault, 0 where none does, ``None`` where that is not known."""
        values = [self.target(fault, arm, d) for d in self.draws]
        return 1 if 1 in values else None if None in values else 0


def exposures(store: RunStore, cell: Cell, *, resamples: int = RESAMPLES) -> dict[str, Any]:
    """The part of the evidence vector on arms: ``arms``, and where the run has the arms for it ``exposure``,
    ``masking``, ``live_faults``, ``kills``, ``paired`` (why there are no pairs)."""
    held = Verdicts(store)
    live = _live(store)
    out: dict[str, Any] = {"arms": _arms(held, live)}
    if {"joint", "isolated"} <= set(held.arms):
        out["masking"] = [_masking(held, f) for f in held.faults]
    if live:
        out["live_faults"] = live
    faulty = [a for a in held.arms if a in FAULTY]
    if not faulty or held.arms == ["joint"]:
        return out
    if "control" not in held.arms:
        return out | {"paired": "net exposure needs the control arm: run with --arms " + ",".join([*faulty, "control"])}
    if held.scan != "exhaustive":
        return out | {
            "paired": "net exposure needs exhaustive scans: first-success scans stop at different places in the two "
            "arms, which breaks the pairs; run with --scan exhaustive"
        }
    draws = Resampler(resamples)
    out["exposure"] = [row for arm in faulty for row in _net(held, arm, draws)]
    out["kills"] = [row for row in kill_matrix(held, cell) if row["faulty_positive"] or row["control_positive"]]
    return out


def _arms(held: Verdicts, live: list[dict[str, Any]]) -> list[dict[str, Any]]:
    alive = {row["fault"] for row in live if row["status"] == "live"}
    rows = []
    for draw in held.draws:
        for arm in held.arms:
            faults = [_arm_fault(held, f, arm, draw) for f in held.faults]
            known = {f: held.target(f, arm, draw) for f in held.faults}
            value, low, high = rate(known.values())
            row: dict[str, Any] = {"arm": arm, "draw": draw, "rate": _round(value), "rate_bounds": _bounds(low, high)}
            if live:
                row["live_rate"] = _round(rate(known[f] for f in held.faults if f in alive)[0])
            for name in ("positive", "missing"):
                row[name] = sum(f[name] for f in faults)
            row["probes"] = sum(f["positive"] + f["negative"] for f in faults)
            rows.append(row | {"faults": faults})
    return rows


def _arm_fault(held: Verdicts, fault: str, arm: str, draw: int) -> dict[str, Any]:
    outcomes = [held.outcome(fault, s, arm, draw) for s in held.scenarios]
    value, hit, counts = scan(outcomes, held.scan, held.order)
    known = counts["positive"] + counts["negative"]
    row = {"fault": fault, "status": STATUS[value], "positive": counts["positive"], "negative": counts["negative"]}
    row["missing"] = counts.total() - known - counts["skipped"] - counts["pending"]
    return row | ({"scenario": held.scenarios[hit]} if hit >= 0 else {})


def _masking(held: Verdicts, fault: str) -> dict[str, Any]:
    alone, together = held.over_draws(fault, "isolated"), held.over_draws(fault, "joint")
    row: dict[str, Any] = {"fault": fault, "isolated": STATUS[alone], "joint": STATUS[together], "masked": None}
    if alone == 0 or together == 1:
        row["masked"] = False
    elif alone == 1 and together == 0:
        row["masked"] = True
    return row


# Pairs


def _net(held: Verdicts, arm: str, draws: Resampler) -> list[dict[str, Any]]:
    """Net exposure of one faulty arm: a row for each fault, then one for all together."""
    import numpy as np

    shape = (len(held.faults), len(held.scenarios), len(held.draws))
    pair = np.full((2, *shape), np.nan)
    for at, side in enumerate((arm, "control")):
        for f, fault in enumerate(held.faults):
            for s, scenario in enumerate(held.scenarios):
                for d, draw in enumerate(held.draws):
                    value = held.value(fault, scenario, side, draw)
                    pair[at, f, s, d] = np.nan if value is None else value
    rows = [{"arm": arm, "fault": f} | _row(pair[:, [at]], draws) for at, f in enumerate(held.faults)]
    exposed = [row["exposed"] for row in rows]
    value, low, high = rate(None if e is None else int(e) for e in exposed)
    whole = {"arm": arm} | _row(pair, draws)
    return [*rows, whole | {"exposed": _round(value), "exposed_bounds": _bounds(low, high)}]


def _row(pair: Any, draws: Resampler) -> dict[str, Any]:
    """Counts, net and its interval of pairs of shape (2, faults, scenarios, draws): faulty, control."""
    import numpy as np

    faulty, control = pair
    known = ~np.isnan(faulty) & ~np.isnan(control)
    kinds = {
        "both": (faulty == 1) & (control == 1), "faulty_only": (faulty == 1) & (control == 0),
        "control_only": (faulty == 0) & (control == 1), "neither": (faulty == 0) & (control == 0),
    }  # fmt: skip
    counts = {name: int(found.sum()) for name, found in kinds.items()}
    number = int(known.sum())
    row: dict[str, Any] = {"known_pairs": number, **counts, "unknown": int((~known).sum())}
    row["net"] = _round((counts["faulty_only"] - counts["control_only"]) / number) if number else None
    low = np.nan_to_num(faulty, nan=0.0) - np.nan_to_num(control, nan=1.0)
    high = np.nan_to_num(faulty, nan=1.0) - np.nan_to_num(control, nan=0.0)
    row["net_bounds"] = _bounds(float(low.mean()), float(high.mean()))
    # A pair that could still turn out to show the fault in the faulty agent alone.
    could = bool(((low < high) & (high == 1)).any())
    one = counts["faulty_only"] > 0
    row["exposed"] = 1.0 if one else None if could else 0.0
    row["exposed_bounds"] = _bounds(float(one), float(one or could))
    return row | _interval(np.where(known, faulty - control, 0.0), known, draws)


def _interval(difference: Any, known: Any, draws: Resampler) -> dict[str, Any]:
    """95 % interval of the mean difference over known pairs, arrays of shape (faults, scenarios, draws)."""
    import numpy as np

    scenarios = difference.shape[1]
    reason = why_no_interval([scenarios], "scenario")
    found: list[float] | None = None
    if reason is None:
        counts = draws.counts(scenarios, "scenarios")
        with np.errstate(invalid="ignore"):
            moved = (difference.sum(axis=(0, 2)) @ counts) / (known.sum(axis=(0, 2)) @ counts)
        found, reason = draws.interval(moved)
    if found is None:
        return {"why_no_interval": reason}
    return {"interval": _bounds(*found)}


# The kill matrix


def kill_matrix(held: Verdicts, cell: Cell) -> list[dict[str, Any]]:
    """Every entry of the kill matrix, in order of arm, fault, obligation and scenario: class ``Kill``, each draw of
    which both verdicts are known counted."""
    rows = []
    for arm in (a for a in held.arms if a in FAULTY):
        for fault in held.faults:
            for requirement in cell.requirements_of(fault):
                for scenario in held.scenarios:
                    pairs = [[held.value(fault, scenario, a, d) for a in (arm, "control")] for d in held.draws]
                    known = [p for p in pairs if None not in p]
                    rows.append(
                        {
                            "requirement": requirement.key, "fault": fault, "scenario": scenario, "arm": arm,
                            "draws": len(known), "faulty_positive": sum(p[0] or 0 for p in known),
                            "control_positive": sum(p[1] or 0 for p in known),
                        }
                    )  # fmt: skip
    return rows


def kill_table(store: RunStore, *, package: Any = None) -> str:
    """The whole kill matrix of a run as CSV; ``net`` is empty where no draw has both verdicts. Raises
    :class:`~regatta_tools.errors.InputError` (U118) where the run has no pairs."""
    from regatta_tools.errors import InputError
    from regatta_tools.tables.package import Package
    from regatta_tools.validation.run import load

    held = Verdicts(store)
    if "control" not in held.arms or held.scan != "exhaustive" or not set(held.arms) & set(FAULTY):
        raise InputError(
            "this run has no kill matrix: it takes a faulty arm and control, both scanned to the end",
            code="U118", place=str(store.folder), mend="run with --arms joint,isolated,control --scan exhaustive",
        )  # fmt: skip
    whole = package if isinstance(package, Package) else load(package)
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in kill_matrix(held, whole.cell(store.manifest["cell"])):
        net = (row["faulty_positive"] - row["control_positive"]) / row["draws"] if row["draws"] else ""
        writer.writerow(row | {"net": net if net == "" else f"{net:g}"})
    return out.getvalue()


# Live faults


def _live(store: RunStore) -> list[dict[str, Any]]:
    """What the probes of each fault said, where the run put any (class ``LiveResult``)."""
    probes: dict[str, list[str]] = {}
    for row in store.manifest.get("live_probes", []):
        probes.setdefault(row["fault"], []).append(PREFIX + row["gold_probe"])
    draws = range(1, store.manifest["draws"] + 1)
    rows = []
    for fault, names in probes.items():
        pairs = [
            [_VALUE.get((store.verdict("execution", fault, n, d, arm) or {}).get("outcome", ""))
             for arm in ("isolated", "control")]
            for n in names for d in draws
        ]  # fmt: skip
        isolated, control = ([p[at] for p in pairs] for at in (0, 1))
        rows.append(
            {
                "fault": fault, "status": _live_status(pairs), "probes": len(pairs),
                "isolated_positive": isolated.count(1), "control_positive": control.count(1),
                "missing": isolated.count(None) + control.count(None),
            }
        )  # fmt: skip
    return rows


def _live_status(pairs: Sequence[list[Value]]) -> str:
    """Live: some probe shows the fault with it alone and not without it, the same draw in both."""
    if [1, 0] in pairs:
        return "live"
    if any(isolated != 0 and control != 1 for isolated, control in pairs):
        return "unknown"  # a missing verdict could still make it live
    return "shown-anyway" if [1, 1] in pairs else "not-live"


def _round(value: float | None) -> float | None:
    """Ten places: what floating point adds behind them would differ from one way of summing to another."""
    return None if value is None else round(value, 10)


def _bounds(low: float, high: float) -> dict[str, float]:
    return {"low": round(low, 10), "high": round(high, 10)}
