"""What scanning by relevance saves against suite order, with a judge that says what the labels say.

    python bench/scan_order.py            print the page
    python bench/scan_order.py --write    write docs/scan-order.md

The harness itself runs each labelled example suite twice, with a script made of its labels as judge, and the calls in
its journal are counted. Both runs must meet the same targets.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import regatta_tools
from regatta_tools import paths
from regatta_tools.harness.calibration import labelled_pairs
from regatta_tools.suites.reader import load_labels, load_suite

CELL = "insurance-us"
SUITES = ("suites/insurance-us-claims", "suites/insurance-us-demo", "calibration/insurance-us")
WORDS = {"rc": "coverage", "design": "design"}
YES = {"rc": '{"covered": true}', "design": '{"exposed": true}'}
REST = [
    {"when": {"stage": "rc"}, "text": '{"covered": false}'},
    {"when": {"stage": "design"}, "text": '{"exposed": false}'},
    {"when": {"stage": "execution"}, "text": '{"manifested": false}'},
    {"when": {"stage": "iss"}, "text": '{"score": 3}'},
    {"when": {"stage": "ac"}, "text": '{"category": "none"}'},
    {"when": {"stage": "agent"}, "text": "An answer."},
]


def measured(name: str, folder: Path, package: Any) -> dict[str, dict[str, int]]:
    """Judge calls of one suite by stage: ``suite``, ``relevance``, ``least`` (one for a target that is met, one for
    each scenario where it is not), ``most`` (every pair), and ``targets`` that are ``met`` of all."""
    base = paths.root() / "examples" / name
    suite, cell = load_suite(base.with_suffix(".yaml")), package.cell(CELL)
    pairs = labelled_pairs(suite, load_labels(base.with_suffix(".labels.yaml"), suite, cell), cell)
    said: dict[tuple[str, str], list[str]] = {}
    for stage, target, scenario, label in pairs:
        said.setdefault((stage, target), []).extend([scenario] if label else [])
    entries = [
        {"when": {"stage": stage, "target": target, "scenario": where}, "text": YES[stage]}
        for (stage, target), where in said.items()
        if where
    ]
    script = folder / "labels.json"
    script.write_text(json.dumps({"replies": [*entries, *REST]}), encoding="utf-8")
    out: dict[str, dict[str, int]] = {}
    met: dict[str, set[tuple[str, str]]] = {}
    for order in ("suite", "relevance"):
        store = regatta_tools.run(
            base.with_suffix(".yaml"), cell=CELL, judge=f"scripted:{script}", agent=f"scripted:{script}", order=order,
            out=folder / order, package=package, concurrency=1,
        )  # fmt: skip
        met[order] = {(k[0], k[1]) for k, v in store.verdicts.items() if v["outcome"] == "positive"}
        for stage in WORDS:
            out.setdefault(stage, {})[order] = sum(c["stage"] == stage for c in store.calls.values())
    if met["suite"] != met["relevance"]:
        raise SystemExit(f"{name}: the two orders meet other targets")
    n = len(suite.scenarios)
    for stage, row in out.items():
        listed = [where for (of, _), where in said.items() if of == stage]
        row |= {"targets": len(listed), "met": sum(map(bool, listed)), "most": n * len(listed)}
        row["least"] = sum(1 if where else n for where in listed)
    return out


def page() -> str:
    package = regatta_tools.load()
    lines = [
        "# Scanning by relevance",
        "",
        "Written by `python bench/scan_order.py --write`. Do not edit: run it again.",
        "",
        "A first-success scan asks the judge about one scenario after the other until one is positive. With `--order",
        "relevance` it begins with the scenarios whose words are most like those of the target (BM25, as in",
        "`regatta_tools/harness/similarity.py`). With a judge that gives the same verdict whenever it is asked, the",
        "same targets are met; which scenario is named first may differ. A target that no scenario meets costs every",
        "scenario in either order, and an exhaustive scan asks every pair, so neither saves anything.",
        "",
        "Measured on the labelled example suites of insurance-us: the harness runs with a judge that says what the",
        "labels say. *Least* is one call for a target that is met and every scenario for one that is not: what no",
        "order can go below. *Saved* is the share of the calls above that floor.",
        "",
        "| suite | stage | targets met | suite order | by relevance | least | saved |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in SUITES:
        with tempfile.TemporaryDirectory(prefix="regatta-order-") as folder:
            rows = measured(name, Path(folder), package)
        for stage, row in rows.items():
            above = row["suite"] - row["least"]
            saved = f"{100 * (row['suite'] - row['relevance']) / above:.0f} %" if above else "nothing to save"
            where = name.split("/")[1] + (" (calibration)" if name.startswith("calibration") else "")
            lines.append(
                f"| {where} | {WORDS[stage]} | "
                f"{row['met']} of {row['targets']} | {row['suite']} | {row['relevance']} | {row['least']} | {saved} |"
            )
    lines += [
        "",
        "The thresholds of the similarity baseline were fitted on the calibration suite; the order uses no threshold.",
        "One cell in one language and suites of one hand: a first look, not a promise for yours.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    text = page()
    if "--write" in sys.argv[1:]:
        (paths.root() / "docs" / "scan-order.md").write_text(text, encoding="utf-8")
    print(text)
