"""Language parity: are faults detected alike by a scenario in Vietnamese and by the same scenario in English?

The unit is the *pair*: two scenarios of one suite with the same name in ``pair``, in two languages. Verdicts on a
fault are compared pair by pair, so that what makes a scenario easy cancels. Every scenario has to be judged: a scan
that stopped at its first success leaves pairs that nobody can compare, which count as missing (kind ``skipped``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.measures.resampling import RESAMPLES, SEED, Resampler

STAGES = ("design", "execution")
UNIT = "the pair of scenarios, resampled within run; a pair keeps all its faults and draws"


def parity(
    runs: Sequence[Path | str], suites: Sequence[Path | str], *, arm: str = "joint", resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Any]:  # fmt: skip
    """Difference in detection, Vietnamese minus English, by fault and over all faults of each cell and stage.

    ``runs`` are run folders, ``suites`` the suite files that they ran (they say which scenarios are a pair). Returns
    ``cells`` (cell -> stage -> ``faults`` and ``all``), each figure with ``vi`` and ``en`` (rates over pairs that are
    known in both languages), ``difference``, ``interval``, ``bounds`` (over all values of missing verdicts), ``pairs``
    (known in both), ``only_vi`` and ``only_en`` (pairs that differ; over draws, pairs with a higher rate), ``missing``
    by kind and ``reason`` where there is no interval. Raises :class:`InputError` (U240) where nothing is paired.
    """
    from regatta_tools.harness.store import RunStore
    from regatta_tools.suites.reader import load_suite

    held = {}
    for path in suites:
        suite = load_suite(path)
        held[suite.id] = suite
    draws = Resampler(resamples, seed)
    tables: dict[tuple[str, str], list[Any]] = {}
    used, notes = 0, []
    for folder in runs:
        store = RunStore.read(folder)
        suite = held.get(store.manifest["suite"])
        if suite is None:
            raise InputError(
                f"the suite {store.manifest['suite']!r} of this run was not named", code="U240", place=str(folder),
                mend="name its file too: it says which scenarios are a pair",
            )  # fmt: skip
        if suite.hash != store.manifest["made_with"]["suite"]:
            raise InputError("this is not the suite that was run: it changed", code="U206", place=suite.file)
        pairs = pairs_of(suite)
        used += len(pairs)
        for stage in STAGES:
            tables.setdefault((store.manifest["cell"], stage), []).append(
                (f"{store.manifest['id']}\0{folder}", store.manifest["faults"], _table(store, pairs, stage, arm))
            )
    if not used:
        raise InputError(
            "no scenario stands in two languages: there are no pairs", code="U240",
            mend="give scenarios of one suite the same `pair` (regatta generate --pairs)",
        )  # fmt: skip
    cells: dict[str, Any] = {}
    for (cell, stage), parts in sorted(tables.items()):
        cells.setdefault(cell, {})[stage] = found = _figures(parts, draws)
        if found["all"]["missing"].get("skipped"):
            notes.append(
                f"{cell}, {stage}: {found['all']['missing']['skipped']} verdicts were skipped by a first-success scan: "
                "run with --scan exhaustive for parity"
            )
    return {"pairs": used, "unit": UNIT, "arm": arm, "resamples": resamples, "seed": seed, "cells": cells,
            "notes": notes}  # fmt: skip


def pairs_of(suite: Any) -> list[tuple[str, str]]:
    """The names of the Vietnamese and the English scenario of each pair, in suite order.

    Raises :class:`InputError` (U240) where more than two scenarios share a pair, or two in one language do.
    """
    found: dict[str, dict[str, str]] = {}
    for scenario in suite.scenarios:
        if scenario.pair is None:
            continue
        by_language = found.setdefault(scenario.pair, {})
        if scenario.language in by_language:
            raise InputError(
                f"the pair {scenario.pair!r} has two scenarios in {scenario.language}", code="U240", place=suite.file,
                mend="a pair is one scenario in each of two languages",
            )  # fmt: skip
        by_language[scenario.language] = scenario.id
    return [(p["vi"], p["en"]) for p in found.values() if {"vi", "en"} <= p.keys()]


def _table(store: Any, pairs: list[tuple[str, str]], stage: str, arm: str) -> tuple[Any, Counter[str]]:
    """Verdicts as 1, 0 and NaN, shape (pairs, faults, draws, 2 languages), and what is missing by kind."""
    import numpy as np

    verdicts: dict[tuple[str, str], dict[int, str]] = {}
    for v in store.verdicts.values():
        if v["stage"] == stage and v.get("arm", arm) == arm:
            verdicts.setdefault((v["target"], v["scenario"]), {})[int(v["draw"])] = v["outcome"]
    numbers = sorted({d for by_draw in verdicts.values() for d in by_draw}) or [1]
    faults = store.manifest["faults"]
    table = np.full((len(pairs), len(faults), len(numbers), 2), np.nan)
    missing: Counter[str] = Counter()
    for i, pair in enumerate(pairs):
        for j, fault in enumerate(faults):
            for k, draw in enumerate(numbers):
                for side, name in enumerate(pair):
                    outcome = verdicts.get((fault, name), {}).get(draw, "skipped")
                    if outcome in ("positive", "negative"):
                        table[i, j, k, side] = outcome == "positive"
                    else:
                        missing[outcome] += 1
    return table, missing


def _figures(parts: list[Any], draws: Resampler) -> dict[str, Any]:
    missing: Counter[str] = sum((p[2][1] for p in parts), Counter())
    faults = list(dict.fromkeys(f for p in parts for f in p[1]))
    by_fault = {}
    for fault in faults:
        tables = [(key, table[:, names.index(fault)][:, None]) for key, names, (table, _) in parts if fault in names]
        by_fault[fault] = _figure(tables, draws)
    whole = _figure([(key, table) for key, _, (table, _) in parts], draws)
    return {"all": whole | {"missing": dict(missing)}, "faults": by_fault}


def _figure(tables: list[tuple[str, Any]], draws: Resampler) -> dict[str, Any]:
    """Figures over runs; each table has the shape (pairs, faults, draws, 2)."""
    import numpy as np

    total = np.zeros(3)  # known, yes in Vietnamese, yes in English
    moved: Any = np.zeros((2, draws.resamples))
    low = high = cells = 0.0
    known_pairs = 0
    differ = [0, 0]
    for key, table in tables:
        both = ~np.isnan(table).any(axis=3)
        yes = np.where(both[..., None], table, 0.0)
        n, sides = both.sum(axis=(1, 2)), yes.sum(axis=(1, 2))  # (pairs,), (pairs, 2)
        gap = sides[:, 0] - sides[:, 1]
        total += [n.sum(), *sides.sum(axis=0)]
        known_pairs += int((n > 0).sum())
        differ[0] += int((gap > 0).sum())
        differ[1] += int((gap < 0).sum())
        if len(n):
            moved = moved + np.stack([gap, n]) @ draws.counts(len(n), "parity", key)
        least = np.where(np.isnan(table), [0.0, 1.0], table)
        most = np.where(np.isnan(table), [1.0, 0.0], table)
        low, high = low + (least[..., 0] - least[..., 1]).sum(), high + (most[..., 0] - most[..., 1]).sum()
        cells += both.size
    out: dict[str, Any] = {
        "vi": None, "en": None, "difference": None, "interval": None, "reason": None,
        "bounds": [float(low / cells), float(high / cells)] if cells else None,
        "pairs": known_pairs, "only_vi": differ[0], "only_en": differ[1],
    }  # fmt: skip
    if not total[0]:
        out["reason"] = "no pair is known in both languages"
        return out
    out["vi"], out["en"] = float(total[1] / total[0]), float(total[2] / total[0])
    out["difference"] = out["vi"] - out["en"]
    if known_pairs < 2:
        out["reason"] = "one pair gives no interval"
    elif differ == [0, 0]:
        # Exact bound on the share of pairs that differ, none having been seen to (Clopper and Pearson, 1934).
        most = 1 - 0.025 ** (1 / known_pairs)
        out["reason"] = f"no pair differs: at most {most:.0%} of such pairs do (exact 95 % bound)"
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.where(moved[1] > 0, moved[0] / moved[1], np.nan)
        out["interval"], out["reason"] = draws.interval(values)
    return out
