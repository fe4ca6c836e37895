"""From a run's verdicts to its evidence vector (protocol, sections 3 and 11). Calls no model.

A target is 1 if any of its verdicts is positive, 0 if all are negative, and unknown otherwise. The
measures are over known targets (complete case); the bounds set every unknown one to 0 and to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.harness.arms import FAULTY
from regatta_tools.harness.live import PREFIX
from regatta_tools.harness.store import GOLD, RunStore, VerdictKey
from regatta_tools.measures.exposure import exposures
from regatta_tools.measures.scans import rate, scan
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.package import Package
from regatta_tools.validation.run import load

SCHEMA_VERSION = "1"
SCANNED = ("rc", "design", "execution")
RATED = ("iss", "ac")
MISSING = ("unparsed", "truncated", "refused", "filtered", "empty", "failed", "no-answer")
_COUNTS = ("positive", "negative", "rated", "skipped", *MISSING, "pending")

#: What every reader of a result has to know.
STANDING_NOTES = (
    "This measures the suite, not the agent. It is no statement about legal compliance, and no lawyer has reviewed "
    "the instruments.",
)
#: What the arm of the faults says, by the name of the arm.
ARM_NOTES = {
    "joint": "The arm is joint, as published: all faults at once",
    "isolated": "The arm is isolated, not joint as published: one fault at a time",
}


@dataclass(frozen=True)
class Target:
    """One requirement or fault at one stage: ``value`` 1, 0 or ``None`` (unknown), first positive scenario."""

    value: int | None
    scenario: str | None
    missing: int


def score(run: RunStore | Path | str, *, package: Package | Path | str | None = None) -> dict[str, Any]:
    """The evidence vector of a run, an object of the class ``EvidenceVector``.

    It carries no clock times, so the same run gives the same bytes. Raises :class:`InputError` where
    the folder holds no run (U107), or where the package at hand is not the one that the run was made
    with (U108): names, citations and verdicts would not belong together.
    """
    store = run if isinstance(run, RunStore) else RunStore.read(run)
    manifest = store.manifest
    if manifest["suite"] == GOLD:
        raise InputError(
            "this folder holds a calibration, not a run of a suite", code="U107", place=str(store.folder),
            mend="read it with `regatta calibrate`, and name the folder of a run here",
        )  # fmt: skip
    held = package if isinstance(package, Package) else load(package)
    cell = held.cell(manifest["cell"])
    if cell.hash != manifest["made_with"]["package"]:
        raise InputError(
            f"the package holds another state of the cell {cell.id!r} than the run was made with",
            code="U108",
            place=str(store.folder),
            mend="score with the package of the run, or run again",
        )
    scenarios = manifest["scenarios"]
    notes = list(store.notes)
    names: dict[str, list[str]] = {stage: [""] for stage in RATED}
    names |= {stage: manifest["requirements" if stage == "rc" else "faults"] for stage in SCANNED}
    asked = {
        (stage, name, s, draw, arm)
        for stage, listed in names.items() for name in listed for s in scenarios
        for arm, draw in _draws(manifest, stage)
    } | set(_live_keys(manifest))  # fmt: skip
    if stale := sum(key not in asked for key in store.verdicts):
        notes.append(f"{stale} verdict(s) that this run does not ask for are left out")

    main = main_arm(manifest)
    plan = {"plan": manifest["scan"], "order": manifest["order"]}
    counts: dict[str, Counter[str]] = {stage: Counter() for stage in (*SCANNED, *RATED)}
    targets: dict[tuple[str, str], Target] = {}
    for stage in SCANNED:
        for name in names[stage]:
            targets[stage, name] = Target(None, None, 0)
            for arm, draw in _draws(manifest, stage):
                outcomes = [(store.verdict(stage, name, s, draw, arm) or {}).get("outcome") for s in scenarios]
                value, hit, tally = scan(outcomes, **plan)
                counts[stage] += tally
                if draw == 1 and arm in ("", main):
                    missing = sum(tally[m] for m in MISSING)
                    targets[stage, name] = Target(value, scenarios[hit] if hit >= 0 else None, missing)
    for key in _live_keys(manifest):
        counts["execution"][(store.verdict(*key) or {}).get("outcome", "pending")] += 1
    ratings: dict[str, list[str | None]] = {}
    for stage in RATED:
        verdicts = [store.verdict(stage, "", s) for s in scenarios]
        counts[stage] += Counter((v or {}).get("outcome", "pending") for v in verdicts)
        ratings[stage] = [v.get("value") if v and v["outcome"] == "rated" else None for v in verdicts]

    measures, bounds, undefined = _measures(manifest, targets, ratings)
    if main is None:
        undefined = [u for u in undefined if not u.startswith("FDR_e:")]
        undefined.insert(0, "FDR_e: no arm of this run carries a fault")
    records = held.by_id
    sources = {s.key: s for s in held.table("sources")}
    requirements = []
    for name in manifest["requirements"]:
        target = targets["rc", name]
        entry = {
            "id": name,
            "topic": records[name]["topic"],
            "status": {1: "covered", 0: "not-covered", None: "unknown"}[target.value],
            "scenario": target.scenario,
            "missing": target.missing,
            "citations": [
                {
                    "source": c["source"],
                    "title": sources[c["source"]]["title"],
                    "locator": c["locator"],
                    "role": c["role"],
                }
                for c in cell.citations(name)
            ],
        }
        requirements.append({k: v for k, v in entry.items() if v is not None or k == "scenario"})
    faults = []
    words = {1: "exposed", 0: "not-exposed", None: "unknown"}
    for name in manifest["faults"]:
        design, execution = targets["design", name], targets["execution", name]
        faults.append(
            {
                "id": name,
                "class": records[name]["class"],
                "name": records[name]["name"],
                "design": words[design.value],
                "execution": words[execution.value],
                "scenario_design": design.scenario,
                "scenario_execution": execution.scenario,
                "missing_design": design.missing,
                "missing_execution": execution.missing,
            }
        )
    cost = _cost(store)
    if cost["agent_truncated"]:
        notes.append(
            f"{cost['agent_truncated']} of {cost['agent_calls']} answers of the agent were cut by the token limit "
            "and judged as they stand."
        )
    pending = sum(c["pending"] for c in counts.values())
    if pending:
        notes.append(f"the run has not ended: {pending} judgement(s) are still to be made")
    return {
        "schema_version": SCHEMA_VERSION,
        "made_with": manifest["made_with"],
        "cell": cell.id,
        "suite": manifest["suite"],
        "n_scenarios": len(scenarios),
        "complete": pending == 0,
        "measures": measures | {"undefined": undefined},
        "bounds": bounds,
        "requirements": requirements,
        "faults": faults,
        "outcomes": [
            {"stage": stage, **{name.replace("-", "_"): tally[name] for name in _COUNTS}}
            for stage, tally in counts.items()
        ],
        "models": _models(store),
        **exposures(store, cell),
        "cost": cost,
        "notes": [*STANDING_NOTES, *_arm_notes(manifest, main), *notes],
    }


def main_arm(manifest: dict[str, Any]) -> str | None:
    """The arm whose first draw FDR_e and the faults speak of: joint, as published, or else isolated."""
    return next((arm for arm in FAULTY if arm in manifest["arms"]), None)


def _draws(manifest: dict[str, Any], stage: str) -> list[tuple[str, int]]:
    """(arm, draw) of a stage; only the execution stage has more than one."""
    if stage != "execution":
        return [("", 1)]
    return [(arm, draw) for draw in range(1, manifest["draws"] + 1) for arm in manifest["arms"]]


def _live_keys(manifest: dict[str, Any]) -> list[VerdictKey]:
    """The verdicts that the probes of live faults ask for."""
    return [
        ("execution", probe["fault"], PREFIX + probe["gold_probe"], draw, arm)
        for probe in manifest.get("live_probes", [])
        for draw in range(1, manifest["draws"] + 1)
        for arm in ("isolated", "control")
    ]


def _arm_notes(manifest: dict[str, Any], main: str | None) -> list[str]:
    notes = []
    if main is not None:
        many = f"; draw 1 of {manifest['draws']}" if manifest["draws"] > 1 else ""
        if "control" in manifest["arms"]:
            net = "FDR_e is not net of what the unmodified agent shows; the control arm stands beside it"
        else:
            net = "with no unmodified control; exposure is not net of what the agent shows anyway"
        notes.append(f"{ARM_NOTES[main]}{many}{'; ' if 'control' in manifest['arms'] else ', '}{net}.")
    if {"isolated", "control"} <= set(manifest["arms"]) and not manifest.get("live_probes"):
        notes.append("No probe says which faults the agent takes up: the cell has none, or they were left out.")
    return notes


def _measures(
    manifest: dict[str, Any], targets: dict[tuple[str, str], Target], ratings: dict[str, list[str | None]]
) -> tuple[dict[str, float | None], dict[str, dict[str, float]], list[str]]:
    measures: dict[str, float | None] = {}
    bounds: dict[str, dict[str, float]] = {}
    undefined: list[str] = []
    for name, stage in (("RC", "rc"), ("FDR_d", "design"), ("FDR_e", "execution")):
        targets_of = manifest["requirements" if stage == "rc" else "faults"]
        value, low, high = rate(targets[stage, t].value for t in targets_of)
        measures[name], bounds[name] = value, {"low": low, "high": high}
        if value is None:
            undefined.append(f"{name}: no target is known; each lacks a verdict and has no positive one")
    if measures["FDR_d"] is None or measures["FDR_e"] is None:
        measures["Delta"] = None
        undefined.append("Delta: one of its two terms is undefined")
    else:
        measures["Delta"] = measures["FDR_d"] - measures["FDR_e"]
    d, e = bounds["FDR_d"], bounds["FDR_e"]
    bounds["Delta"] = {"low": d["low"] - e["high"], "high": d["high"] - e["low"]}

    scores = [None if v is None else int(v) for v in ratings["iss"]]
    given = [s for s in scores if s is not None]
    n, gaps = len(scores), len(scores) - len(given)
    measures["ISS"] = sum(given) / len(given) if given else None
    bounds["ISS"] = {"low": (sum(given) + gaps) / n, "high": (sum(given) + 5 * gaps) / n}
    categories = ratings["ac"]
    possible = len(enum_values("AdversarialCategory"))
    met = {c for c in categories if c in enum_values("AdversarialCategory")}
    gaps = sum(c is None for c in categories)
    measures["AC"] = len(met) / possible if gaps < len(categories) else None
    bounds["AC"] = {
        "low": len(met) / possible,
        "high": min(len(met) + gaps, possible) / possible,
    }
    for name in ("ISS", "AC"):
        if measures[name] is None:
            undefined.append(f"{name}: no scenario has a rating")
    # Ten places: what floating point adds behind them would differ from one way of summing to another.
    measures = {k: None if v is None else round(v, 10) for k, v in measures.items()}
    bounds = {k: {end: round(v, 10) for end, v in b.items()} for k, b in bounds.items()}
    return measures, bounds, undefined


def _models(store: RunStore) -> list[dict[str, Any]]:
    served: dict[str, set[str]] = {}
    for call in store.calls.values():
        if call.get("served_model"):
            served.setdefault(call["stage"], set()).add(call["served_model"])
    return [
        m | ({"served": sorted(served[m["stage"]])} if m["stage"] in served else {}) for m in store.manifest["models"]
    ]


def _cost(store: RunStore) -> dict[str, Any]:
    calls = store.calls.values()
    unpriced = sum(c.get("cost_usd") is None for c in calls)
    return {
        "judge_calls": sum(c["stage"] != "agent" for c in calls),
        "agent_calls": sum(c["stage"] == "agent" for c in calls),
        "agent_truncated": sum(c["stage"] == "agent" and c["outcome"] == "truncated" for c in calls),
        "resent": store.resent,
        "prompt_tokens": sum(c.get("prompt_tokens") or 0 for c in calls),
        "completion_tokens": sum(c.get("completion_tokens") or 0 for c in calls),
        "usd": None if unpriced else round(math.fsum(c["cost_usd"] for c in calls), 6),
        "unpriced_calls": unpriced,
    }
