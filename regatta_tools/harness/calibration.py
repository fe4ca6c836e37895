"""Hold a judge against labels that somebody gave.

:func:`calibrate` puts the gold probes of the package to a judge, with the prompts of a run, and counts its errors:
J_RC, J_D and J_E. :func:`hold_against_labels` holds the similarity baseline against the labels of a whole suite.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from regatta_tools import __version__, prompts
from regatta_tools.cells.example import refuse_example
from regatta_tools.errors import InputError
from regatta_tools.files import replace_file
from regatta_tools.harness import panel, similarity
from regatta_tools.harness.live import scenario_of
from regatta_tools.harness.store import GOLD, RunStore
from regatta_tools.llm import client, embedded
from regatta_tools.llm.pool import Pool
from regatta_tools.llm.verdicts import Reading
from regatta_tools.measures.agreement import compare
from regatta_tools.measures.calibration import part
from regatta_tools.suites.reader import Labels, Suite, load_labels, load_suite
from regatta_tools.tables.package import Cell, Package, Record
from regatta_tools.text import sha256_json
from regatta_tools.validation.run import load

Pair = tuple[str, str, str, bool]
SCHEMA_VERSION = "1"
GOLD_STAGES = ("rc", "design", "execution")
STORE = Path("runs") / "calibration"
#: What is said where all labels were given by models.
BY_AI = "All labels were given by an AI. No person has labelled these probes, and no lawyer."


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


# -- gold probes ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gold:
    """One labelled pair: ``label`` is ``None`` where labellers differ (contested)."""

    stage: str
    probe: Record
    target: str
    label: bool | None
    near_miss: bool


def gold_pairs(cell: Cell) -> list[Gold]:
    """The labelled pairs of a cell in order of stage, probe and target.

    Raises :class:`InputError` (U180, with file and line) for a label of no probe or of no target of its stage, an
    execution probe without an answer, and any other with one.
    """
    probes = {p.key: p for p in cell.package.cell_records("gold_probes", cell.id)}
    requirements, faults = {r.key for r in cell.requirements}, {f.key for f in cell.faults}
    for probe in probes.values():
        if bool(probe["answer"].strip()) != (probe["stage"] == "execution"):
            what = "an execution probe has an answer, and no other has one"
            raise _wrong(probe, "answer", f"the probe {probe.key!r}: {what}", "correct stage or answer")
    given: dict[tuple[str, str], list[Record]] = {}
    for label in cell.package.cell_records("gold_labels", cell.id):
        stage = probes[label["probe"]]["stage"] if label["probe"] in probes else None
        if stage is None:
            raise _wrong(label, "probe", f"there is no probe {label['probe']!r}", "correct the name")
        if label["target"] not in (requirements if stage == "rc" else faults):
            what = "active requirement" if stage == "rc" else "fault"
            message = f"{label['target']!r} is no {what} of the cell {cell.id!r}"
            raise _wrong(label, "target", message, f"a label of a probe of the stage {stage} names one")
        given.setdefault((label["probe"], label["target"]), []).append(label)
    out = []
    for (name, target), labels in given.items():
        said = {label["label"] for label in labels}
        near = any(label["near_miss"] == "true" for label in labels)
        out.append(Gold(probes[name]["stage"], probes[name], target, said == {"yes"} if len(said) == 1 else None, near))
    return sorted(out, key=lambda g: (GOLD_STAGES.index(g.stage), g.probe.key, g.target))


def _wrong(record: Record, column: str, message: str, mend: str) -> InputError:
    line, at = record.place(column)
    return InputError(message, code="U180", place=f"{record.table.file}:{line}:{at}", mend=mend)


def gold_hash(cell: Cell) -> str:
    """SHA-256 over the gold probes and labels of a cell, whatever their order."""
    rows = [
        sorted(sha256_json(dict(r.cells)) for r in cell.package.cell_records(table, cell.id))
        for table in ("gold_probes", "gold_labels")
    ]
    return sha256_json(rows)


# -- calibration ---------------------------------------------------------------------------------


def calibrate(
    judge: str = "embedded",
    *,
    cells: Iterable[str] = (),
    stages: Iterable[str] = (),
    package: Package | Path | str | None = None,
    folder: Path | str | None = None,
    seed: int = 1,
    concurrency: int | None = None,
    max_calls: int | None = None,
    budget_usd: float | None = None,
    cache: Any = None,
    prices: Any = None,
    retry_failed: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Put the gold probes to a judge and return its figures, an object of the class ``Calibration``.

    ``judge`` is a model name as :func:`regatta_tools.run` takes it. ``cells`` and ``stages`` narrow it down (default:
    every cell that has probes, all stages). Calls and verdicts are journalled below ``folder`` (default
    ``runs/calibration``), one run a cell, under a hash of all that decides a verdict: the same call goes on and repeats
    no journalled call, and whatever changes begins anew. The file of the figures is written beside them, see
    :func:`file_of`. ``max_calls`` and ``budget_usd`` hold for all cells together, earlier sittings included;
    ``retry_failed`` asks calls that failed once more. Missing verdicts are counted apart and never as "no". Raises
    :class:`InputError` (U180 a probe is wrong, U181 there is none) before any call is made.
    """
    from regatta_tools.harness.run import AT_ONCE, _models

    held = package if isinstance(package, Package) else load(package)
    asked = set(stages) or set(GOLD_STAGES)
    if unknown := asked - set(GOLD_STAGES):
        raise InputError(f"no stage {sorted(unknown)[0]!r}", code="U109", mend=f"use {', '.join(GOLD_STAGES)}")
    chosen = _cells(held, list(cells))
    gold = {c.id: [g for g in gold_pairs(c) if g.stage in asked] for c in chosen}
    chosen = [c for c in chosen if gold[c.id]]
    if not chosen:
        raise InputError(
            "there is no gold probe of these cells and stages", code="U181",
            mend="docs/calibration.md says how gold_probes.csv and gold_labels.csv are written",
        )  # fmt: skip
    models = [m for m in _models(judge, judge) if m["stage"] in asked]
    if concurrency is None:
        concurrency = 1 if client.stays_here(judge) else AT_ONCE
    root, base = Path(folder) if folder else STORE, _configuration(judge, models)
    pairs: list[tuple[Cell, Gold, dict[str, Any]]] = []
    served: dict[str, set[str]] = {}
    done, total = 0, sum(len(gold[c.id]) for c in chosen)
    sent, spent = 0, 0.0
    for cell in chosen:
        manifest = _manifest(cell, gold[cell.id], models, base, seed)
        store = RunStore(root / manifest["id"])
        with store:
            store.open_for_writing(manifest)
            if retry_failed:
                store.ask_again(store.missing())
            with Pool(
                store, concurrency=concurrency, cache=cache, prices=prices, models=(judge,),
                max_calls=None if max_calls is None else max(0, max_calls - sent),
                budget_usd=None if budget_usd is None else max(0.0, budget_usd - spent),
            ) as pool:  # fmt: skip
                asking = panel.Asking(judge, models, store, pool, seed)
                before = done

                def told(n: int, of: int, before: int = before) -> None:
                    if progress is not None:
                        progress(before + n, total)

                found = pool.map(_jobs(cell, gold[cell.id], models, asking, seed), told)
        done, sent, spent = done + len(found), sent + store.sent, spent + store.spent_usd
        order = _by_seed(gold[cell.id], seed)
        pairs += [(cell, g, v) for g, v in zip(order, found, strict=True)]
        for call in store.calls.values():
            if call.get("served_model"):
                served.setdefault(call["stage"], set()).add(call["served_model"])
    result = _result(judge, models, served, base, chosen, pairs)
    replace_file(file_of(result, root), (json.dumps(result, ensure_ascii=False, indent=1) + "\n").encode())
    return result


def file_of(calibration: dict[str, Any], folder: Path | str | None = None) -> Path:
    """Where the figures of a calibration stand: a file named by the hash of the judge's whole configuration."""
    return (Path(folder) if folder else STORE) / f"{calibration['judge_hash'][:16]}.json"


def _cells(package: Package, named: list[str]) -> list[Cell]:
    if named:
        for name in named:
            refuse_example(package, name)
        return [package.cell(name) for name in dict.fromkeys(named)]
    with_probes = {r["cell"] for r in package.table("gold_probes")}
    return [package.cell(r.key) for r in package.table("cells") if r.key in with_probes]


def parsing_hash() -> str:
    """SHA-256 of the code that reads verdicts: a change of one letter of it may change a verdict."""
    source = resources.files("regatta_tools.llm").joinpath("verdicts.py").read_bytes()
    return hashlib.sha256(source.replace(b"\r\n", b"\n")).hexdigest()


def _configuration(judge: str, models: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first, roomy = panel.limits(judge)
    return {
        "models": list(models), "tokens": [first] if roomy is None else [first, roomy], "prompts": prompts.digest(),
        "parsing": parsing_hash(),
    }  # fmt: skip


def _manifest(
    cell: Cell, gold: list[Gold], models: list[dict[str, Any]], base: dict[str, Any], seed: int
) -> dict[str, Any]:
    """The manifest of the run that a cell's calibration is, of the class ``Run``: each probe stands for a scenario."""
    from regatta_tools.harness.run import SCHEMA_VERSION as RUN_VERSION

    state = {**base, "rules": cell.hash, "gold": gold_hash(cell), "seed": seed}
    return {
        "schema_version": RUN_VERSION,
        "id": f"{cell.id}-{sha256_json(state)[:16]}",
        "cell": cell.id,
        "suite": GOLD,
        "scenarios": list(dict.fromkeys(g.probe.key for g in gold)),
        "requirements": [r.key for r in cell.requirements],
        "faults": [f.key for f in cell.faults],
        "arms": ["joint"], "draws": 1, "scan": "exhaustive", "order": "suite", "answers": "per-scenario",
        "seed": seed,
        "made_with": {
            "regatta": __version__, "package": cell.hash, "suite": gold_hash(cell), "prompts": base["prompts"],
            "models": sha256_json(models),
        },
        "models": models,
    }  # fmt: skip


def _by_seed(gold: list[Gold], seed: int) -> list[Gold]:
    """Pairs in an order that says nothing of their labels and follows from the seed."""
    return sorted(gold, key=lambda g: sha256_json([seed, g.stage, g.probe.key, g.target]))


def _jobs(
    cell: Cell, gold: list[Gold], models: list[dict[str, Any]], asking: panel.Asking, seed: int
) -> list[Callable[[], dict[str, Any]]]:
    kinds = {m["stage"]: m["kind"] for m in models}
    baseline = similarity.Baseline(cell) if "similarity" in kinds.values() else None

    def judge(pair: Gold) -> dict[str, Any]:
        name = pair.probe.key
        if (held := asking.held(pair.stage, pair.target, name)) is not None:
            return held
        scenario = scenario_of(name, pair.probe["stimulus"], pair.probe["language"])
        if kinds[pair.stage] == "similarity":
            assert baseline is not None
            yes, score = baseline.verdict(pair.stage, scenario, pair.target)
            reading = Reading("positive" if yes else "negative", str(score), "similarity")
            return asking.note(pair.stage, pair.target, name, reading, None)
        messages = panel.judge_messages(cell, pair.stage, pair.target, scenario, pair.probe["answer"])
        return asking.ask(pair.stage, pair.target, name, messages, arm="joint" if pair.stage == "execution" else "")

    return [lambda pair=pair: judge(pair) for pair in _by_seed(gold, seed)]


def _result(
    judge: str, models: list[dict[str, Any]], served: dict[str, set[str]], base: dict[str, Any], cells: list[Cell],
    pairs: list[tuple[Cell, Gold, dict[str, Any]]],
) -> dict[str, Any]:  # fmt: skip
    named = [m | ({"served": sorted(served[m["stage"]])} if m["stage"] in served else {}) for m in models]
    configuration = base | {
        "models": named,
        "calibrated_cells": [{"cell": c.id, "rules": c.hash, "gold": gold_hash(c)} for c in cells],
    }
    labellers: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        probes = {g.probe.key for c, g, _ in pairs if c.id == cell.id}
        for label in cell.package.cell_records("gold_labels", cell.id):
            if label["probe"] in probes:
                labellers[label["labeller"], label["labeller_kind"]] += 1
    notes = [BY_AI] if {kind for _, kind in labellers} <= {"ai", "machine"} else []
    notes += [
        "Intervals take pairs as independent. Those of one probe hang together, so they are rather narrow.",
        "Gold probes were written to be clear or to be near misses. A run holds other pairs, on which the judge may "
        "err more or less often.",
    ]
    notes += [f"{n}: {m['note']}" for n, m in {m["name"]: m for m in models if m.get("note")}.items()]
    return {
        "schema_version": SCHEMA_VERSION,
        # Not the name as it was typed: a file may lie elsewhere on another machine, and the models say what it holds.
        "judge": named[0]["name"] if len({m["name"] for m in named}) == 1 else judge,
        "judge_hash": sha256_json(configuration),
        "configuration": configuration,
        "labelled_by": [
            {"labeller": who, "labeller_kind": kind, "label_count": n} for (who, kind), n in sorted(labellers.items())
        ],
        "parts": _parts(cells, pairs),
        "notes": notes,
    }


def _parts(cells: list[Cell], pairs: list[tuple[Cell, Gold, dict[str, Any]]]) -> list[dict[str, Any]]:
    """For each stage: all cells, each cell, each language, near misses and the others; no part is empty."""
    out = []
    for stage in GOLD_STAGES:
        mine = [(c, g, v) for c, g, v in pairs if g.stage == stage]
        languages = sorted({g.probe["language"] for _, g, _ in mine})
        whole = {"cell": cells[0].id} if len(cells) == 1 else {}
        views: list[tuple[dict[str, Any], Callable[[Cell, Gold], bool]]] = [(whole, lambda c, g: True)]
        if len(cells) > 1:
            views += [({"cell": cell.id}, lambda c, g, i=cell.id: c.id == i) for cell in cells]
        if len(languages) > 1:
            views += [(whole | {"language": one}, lambda c, g, i=one: g.probe["language"] == i) for one in languages]
        if any(g.near_miss for _, g, _ in mine):
            views += [(whole | {"near_miss": near}, lambda c, g, i=near: g.near_miss is i) for near in (True, False)]
        for named, takes in views:
            seen = [(g, v) for c, g, v in mine if takes(c, g)]
            judged = [(g.label, v["outcome"]) for g, v in seen if g.label is not None]
            if seen:
                out.append(part(stage, judged, **named, contested=len(seen) - len(judged)))
    return out


def load_calibration(path: Path | str) -> dict[str, Any]:
    """Read a file of :func:`calibrate`. Raises :class:`InputError` (U182) where it is none."""
    from regatta_tools.tables.shape import validator

    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", code="U101", place=str(path)) from error
    except (ValueError, RecursionError):
        value = None
    if not validator("Calibration").is_valid(value):
        raise InputError(
            "this is no calibration", code="U182", place=str(path), mend="name a file that `regatta calibrate` wrote"
        )  # fmt: skip
    return value


# -- a run in the light of a calibration ---------------------------------------------------------


def part_of(calibration: dict[str, Any], stage: str, cell: str) -> dict[str, Any] | None:
    """The figures of a stage in a cell, near misses and languages together."""
    for found in calibration["parts"]:
        whole = found.get("language") is None and found.get("near_miss") is None
        if whole and found["stage"] == stage and found.get("cell") == cell:
            return found
    return None


def why_not_of(calibration: dict[str, Any], manifest: dict[str, Any], stage: str) -> str | None:
    """Why a calibration does not speak of the judge of a run at a stage; ``None`` where it does."""
    settings = ("name", "kind", "temperature", "fingerprint")
    ours = {m["stage"]: {k: m.get(k) for k in settings} for m in manifest["models"]}
    theirs = {m["stage"]: {k: m.get(k) for k in settings} for m in calibration["configuration"]["models"]}
    if stage not in theirs:
        return "the calibration does not hold this stage"
    if ours[stage] != theirs[stage]:
        other, own = theirs[stage]["name"], ours[stage]["name"]
        what = f"{own} with other settings" if other == own else f"{other}, the run was judged by {own}"
        return f"the calibration is of {what}"
    if calibration["configuration"]["prompts"] != manifest["made_with"]["prompts"]:
        return "the prompts have changed between calibration and run"
    rules = {c["cell"]: c["rules"] for c in calibration["configuration"]["calibrated_cells"]}
    if manifest["cell"] not in rules:
        return f"the calibration does not hold the cell {manifest['cell']}"
    if rules[manifest["cell"]] != manifest["made_with"]["package"]:
        return "requirements or faults have changed between calibration and run"
    return None


def of_run(run: RunStore | Path | str, calibration: dict[str, Any] | Path | str) -> list[dict[str, Any]]:
    """Corrected rates of a run, one entry a stage (rc, design, execution; there each arm).

    Each has ``stage``, ``arm``, ``probes`` (:func:`regatta_tools.measures.calibration.corrected` over all judged pairs)
    and ``scan`` (:func:`~regatta_tools.measures.calibration.scan_correction` over targets); what is not given says why.
    The rate over probes needs an exhaustive scan: one that ends at its first yes chooses its probes by their verdicts.
    """
    from regatta_tools.measures.calibration import METHOD, corrected, scan_correction
    from regatta_tools.measures.scans import scan

    store = run if isinstance(run, RunStore) else RunStore.read(run)
    held = calibration if isinstance(calibration, dict) else load_calibration(calibration)
    manifest = store.manifest
    out = []
    for stage in GOLD_STAGES:
        for arm in manifest["arms"] if stage == "execution" else [""]:
            entry: dict[str, Any] = {"stage": stage, "arm": arm or None}
            found = part_of(held, stage, manifest["cell"])
            reason = why_not_of(held, manifest, stage) or (None if found else "the calibration has no such probes")
            if reason or found is None:
                none = {"probes": {"value": None, "reason": reason}, "scan": {"at_least": None, "reason": reason}}
                out.append(entry | none)
                continue
            names, values = manifest["requirements" if stage == "rc" else "faults"], []
            tally: Counter[str] = Counter()
            for name in names:
                outcomes = [
                    (store.verdict(stage, name, s, 1, arm) or {}).get("outcome") for s in manifest["scenarios"]
                ]  # fmt: skip
                tally.update(o for o in outcomes if o)
                values.append(scan(outcomes, plan=manifest["scan"], order=manifest["order"])[0])
            known = [v for v in values if v is not None]
            n = tally["positive"] + tally["negative"]
            if manifest["scan"] == "exhaustive":
                probes = corrected(tally["positive"], n, found, missing=tally.total() - n)
            else:
                why = "the scan ended at its first yes, so its verdicts are no sample: run with --scan exhaustive"
                probes = {"observed": None, "n": n, "value": None, "low": None, "high": None, "clipped": False,
                          "method": METHOD, "reason": why}  # fmt: skip
            scans = scan_correction(sum(known), len(known), len(manifest["scenarios"]), found)
            out.append(entry | {"probes": probes, "scan": scans})
    return out
