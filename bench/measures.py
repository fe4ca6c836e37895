"""How fast the measures are: resampling beside scipy, and a million verdicts in a whole process.

    python bench/measures.py            the measurement, printed (about a minute)
    python bench/measures.py --tiny     a look at whether it works

The ratio comes from one run, the tools in turn, so that it holds although a shared machine changes its speed. One
thread.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before numpy is imported: the target is one core

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from regatta_tools.measures import diagnostics
from regatta_tools.measures.archive import targets_of_the_study
from regatta_tools.measures.population import Block, Unit
from regatta_tools.measures.records import columns
from regatta_tools.measures.resampling import Resampler

GENERATORS, CELLS, SUITES, FAULTS = 3, 5, 12, 5


def verdicts(seed: int = 1) -> tuple[Any, Any]:
    """Design and execution verdicts of 180 suites, two arrays of shape (strata, suites, faults)."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=(GENERATORS * CELLS, 1, FAULTS))
    suite = rng.normal(size=(GENERATORS * CELLS, SUITES, 1)) / 2
    return tuple((rng.logistic(size=(GENERATORS * CELLS, SUITES, FAULTS)) < ease + suite).astype(float) for _ in "de")


def blocks(d: Any, e: Any) -> list[Block]:
    held = []
    for i in range(len(d)):
        generator, cell = f"g{i // CELLS}", f"c{i % CELLS}"
        n = len(d[i])
        units = [Unit(f"s{k}", cell, "S1", generator, k + 1) for k in range(n)]
        asked = {"rc": np.zeros(n, bool), "design": np.ones(n, bool), "execution": np.ones(n, bool)}
        none = np.full((n, 3), np.nan)
        held.append(
            Block(cell, generator, units, [], [f"f{k}" for k in range(FAULTS)], [None] * FAULTS, np.zeros((n, 0)), d[i],
                  e[i][:, :, None], asked, np.ones((n, 1), bool), none, none)
        )  # fmt: skip
    return held


def ours(held: list[Block], resamples: int) -> list[float]:
    """The interval of the margin over the per-fault baseline, with all that V3 resamples besides."""
    draws = Resampler(resamples)
    moved, base = diagnostics._v3_resampled(held, [diagnostics.pair_sums(b) for b in held], draws, faults_too=False)
    return draws.interval(moved["alpha"] - base)[0] or []


def theirs(d: Any, e: Any, resamples: int) -> list[float]:
    """The same by scipy, which calls a function of Python once a resample. Suites are drawn by their number."""
    strata = np.arange(len(d))[:, None]

    def margin(*drawn: Any) -> float:
        at = np.stack(drawn)
        a, b = d[strata, at], e[strata, at]
        p, q = a.mean(axis=1), b.mean(axis=1)
        return float((a == b).mean() - (p * q + (1 - p) * (1 - q)).mean())

    numbers = tuple(np.arange(d.shape[1]) for _ in d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stats.bootstrap(numbers, margin, vectorized=False, n_resamples=resamples, method="percentile", rng=1)
    return [float(found.confidence_interval.low), float(found.confidence_interval.high)]


def resampling(resamples: int, rounds: int) -> dict[str, Any]:
    d, e = verdicts()
    held = blocks(d, e)
    times: dict[str, list[float]] = {"ours": [], "scipy": []}
    ends = {}
    for _ in range(rounds):
        for name, call in (("ours", lambda: ours(held, resamples)), ("scipy", lambda: theirs(d, e, resamples))):
            start = time.process_time()
            ends[name] = call()
            times[name].append(time.process_time() - start)
    # Two sets of random numbers: the ends may differ by what resampling moves them, and not by more.
    if max(abs(a - b) for a, b in zip(ends["ours"], ends["scipy"])) > 0.15 * (ends["scipy"][1] - ends["scipy"][0]):
        raise RuntimeError(f"the two do not compute the same: {ends}")
    seconds = {name: min(t) for name, t in times.items()}
    return {"seconds": seconds, "ratio": seconds["scipy"] / seconds["ours"], "interval": ends["ours"]}


def write_table(path: Path, suites: int, scenarios: int) -> int:
    """A table of verdicts, one a scenario, of suites in the cells of the study; returns the number of rows."""
    rng = np.random.default_rng(3)
    cells = list(targets_of_the_study().items())
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns(), restval="", lineterminator="\n")
        writer.writeheader()
        for number in range(suites):
            cell, targets = cells[number % len(cells)]
            common = {"run": f"run-{number}", "suite": f"suite-{number}", "cell": cell, "draw": 1, "judge": "judge/one",
                      "strategy": f"S{number // 5 % 4 + 1}", "generator": f"g{number // 20 % 3}"}  # fmt: skip
            for stage, names in (
                ("rc", targets.requirements),
                ("design", targets.faults),
                ("execution", targets.faults),
            ):
                arm = {"arm": "joint"} if stage == "execution" else {}
                for target in names:
                    outcomes = rng.choice(["negative", "positive", "unparsed"], size=scenarios, p=[0.97, 0.02, 0.01])
                    for k, outcome in enumerate(outcomes):
                        writer.writerow(
                            common | arm | {"stage": stage, "target": target, "scenario": f"s{k}", "outcome": outcome}
                        )
                    rows += scenarios
    return rows


def summary(suites: int, scenarios: int) -> dict[str, Any]:
    """`regatta diagnose --records` on such a table as a process: seconds by the clock and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "verdicts.csv"
        rows = write_table(table, suites, scenarios)
        main_ = "from regatta_tools.cli.main import main; main()"
        command = [sys.executable, "-c", main_, "diagnose", "--records", str(table),
                   "--format", "json", "--output", str(Path(folder) / "out.json")]  # fmt: skip
        start = time.perf_counter()
        child = subprocess.Popen(command)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"left with {child.returncode}")
        result = json.loads((Path(folder) / "out.json").read_text(encoding="utf-8"))
        if sum(n for by in result["missing"]["outcomes"].values() for n in by.values()) != rows:
            raise RuntimeError("rows were lost")
        return {"rows": rows, "bytes": table.stat().st_size, "wall": wall,
                "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small numbers: does it work?")
    tiny = parser.parse_args().tiny
    found = resampling(500 if tiny else 10_000, 1 if tiny else 3)
    s = found["seconds"]
    print(f"{500 if tiny else 10_000:,} resamples of {GENERATORS * CELLS * SUITES} suites x {FAULTS} faults, one core:")
    print(f"  ours {s['ours']:.3f} s, scipy.stats.bootstrap {s['scipy']:.2f} s, ratio {found['ratio']:.0f}")
    rounds = [summary(*((12, 3) if tiny else (960, 30))) for _ in range(1 if tiny else 3)]
    wall = statistics.median(r["wall"] for r in rounds)
    print(
        f"{rounds[0]['rows']:,} verdicts ({rounds[0]['bytes'] / 1e6:.0f} MB) from a CSV file to V1 to V4, whole "
        "process:"
    )
    print(f"  {wall:.1f} s by the clock, {min(r['cpu'] for r in rounds):.1f} s of CPU, "
          f"peak {max(r['peak_mb'] for r in rounds):.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
