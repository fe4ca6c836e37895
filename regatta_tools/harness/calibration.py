"""Hold a judge against labels that somebody gave: J_RC and J_D over every pair of scenario and target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regatta_tools.cells.example import refuse_example
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


def _targets(judged: list[tuple[str, bool, bool]]) -> dict[str, int]:
    """How many targets the suite meets by the judge, by the labels and by both: what a scan makes of the verdicts.

    ``judged`` holds (target, judge says yes, label says yes), one entry a pair.
    """
    by_judge = {target for target, yes, _ in judged if yes}
    by_labels = {target for target, _, label in judged if label}
    return {
        "all": len({target for target, _, _ in judged}),
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
    refuse_example(held, cell)
    read = load_suite(suite)
    given = load_labels(labels, read, chosen)
    if not embedded.is_default(judge):
        raise InputError(
            "only the embedded judge can be held against labels so far", code="U112", mend="leave --judge out"
        )
    baseline = similarity.Baseline(chosen)
    scenarios = {s.id: s for s in read.scenarios}
    stages: dict[str, Any] = {}
    for stage in ("rc", "design"):
        judged = [
            (name, target, baseline.verdict(stage, scenarios[name], target)[0], label)
            for kind, target, name, label in labelled_pairs(read, given, chosen)
            if kind == stage
        ]
        stages[stage] = compare([(name, yes, label) for name, _, yes, label in judged])
        stages[stage]["targets"] = _targets([(target, yes, label) for _, target, yes, label in judged])
    return {
        "cell": cell,
        "suite": read.id,
        "judge": similarity.NAME,
        "labels": {"by": given.labeller, "kind": given.labeller_kind},
        "stages": stages,
    }
