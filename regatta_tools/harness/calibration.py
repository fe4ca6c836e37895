"""Hold a judge against labels that somebody gave: J_RC and J_D over every pair of scenario and target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.harness import similarity
from regatta_tools.llm import embedded
from regatta_tools.measures.agreement import compare
from regatta_tools.suites.reader import Labels, Suite, load_labels, load_suite
from regatta_tools.tables.package import Cell, Package
from regatta_tools.validation.run import load

Pair = tuple[str, str, str, bool]


def labelled_pairs(suite: Suite, labels: Labels, cell: Cell) -> list[Pair]:
    """Every (stage, target, scenario, label) of a labelled suite, in order of stage, target and scenario."""
    pairs: list[Pair] = []
    for stage, targets, given in (
        ("rc", [r.key for r in cell.requirements], labels.requirements),
        ("design", [f.key for f in cell.faults], labels.faults),
    ):
        pairs += [(stage, t, s.id, t in given[s.id]) for t in targets for s in suite.scenarios]
    return pairs


def _targets(pairs: list[Pair], stage: str, judged: list[bool]) -> dict[str, int]:
    """How many targets the suite meets by the judge, by the labels and by both: what a scan makes of the verdicts."""
    mine = [p for p in pairs if p[0] == stage]
    by_judge = {p[1] for p, yes in zip(mine, judged, strict=True) if yes}
    by_labels = {p[1] for p in mine if p[3]}
    return {
        "all": len({p[1] for p in mine}),
        "judge": len(by_judge),
        "labels": len(by_labels),
        "both": len(by_judge & by_labels),
    }


def hold_against_labels(
    suite: Path | str, labels: Path | str, *, cell: str, judge: str = "embedded", package: Any = None
) -> dict[str, Any]:
    """Agreement of a judge with labels at both design-side stages.

    Only the embedded judge (the similarity baseline) is held here so far: it costs nothing. Returns
    ``judge``, ``labels`` (who labelled, of what kind) and ``stages`` with the figures of
    :func:`regatta_tools.measures.agreement.compare`.
    """
    held = package if isinstance(package, Package) else load(package)
    chosen = held.cell(cell)
    read = load_suite(suite)
    given = load_labels(labels, read, chosen)
    if not embedded.is_default(judge):
        raise InputError(
            "only the embedded judge can be held against labels so far", code="U112", mend="leave --judge out"
        )
    baseline = similarity.Baseline(chosen)
    limits = similarity.thresholds()["thresholds"]
    scenarios = {s.id: s for s in read.scenarios}
    pairs = labelled_pairs(read, given, chosen)
    stages = {}
    for stage in ("rc", "design"):
        judged = [
            (name, baseline.score(scenarios[name], target) >= limits[stage], label)
            for kind, target, name, label in pairs
            if kind == stage
        ]
        stages[stage] = compare(judged) | {"targets": _targets(pairs, stage, [j for _, j, _ in judged])}
    return {
        "cell": cell,
        "suite": read.id,
        "judge": similarity.NAME,
        "labels": {"by": given.labeller, "kind": given.labeller_kind},
        "stages": stages,
    }
