"""A panel of judges: the prompts of judges remade outside a run, and a second judge over the pairs of a stored one.

What a judge is asked stands in :func:`judge_messages` for calibration and labels, in the same words as in
:mod:`regatta_tools.harness.run` (a test holds them together). A second judge gets the very prompts that the first one
got, as the run kept them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from regatta_tools import prompts
from regatta_tools.errors import InputError
from regatta_tools.harness.kept import prompts as kept_prompts
from regatta_tools.harness.store import RunStore
from regatta_tools.llm import client, embedded, replay, scripted
from regatta_tools.llm.pool import Pool
from regatta_tools.llm.types import Request
from regatta_tools.llm.verdicts import Reading, read_verdict, reply_schema
from regatta_tools.suites.reader import Scenario
from regatta_tools.tables.package import Cell
from regatta_tools.text import sha256_json

PANEL = "panel"
#: Judges' stages in the order of a run.
STAGES = ("rc", "iss", "ac", "design", "execution")
#: Whose model a name speaks of, whoever serves it.
_FAMILIES = {
    "openai": r"gpt|o[1-9](-|$)|chatgpt", "anthropic": "claude", "google": "gemini|gemma", "meta": "llama",
    "alibaba": "qwen|qwq", "mistral": "mi[sx]tral|magistral|codestral", "deepseek": "deepseek", "cohere": "command",
    "microsoft": r"phi-?[0-9]", "xai": "grok",
}  # fmt: skip


def judge_messages(
    cell: Cell, stage: str, target: str, scenario: Scenario, answer: str | None = None
) -> tuple[dict[str, str], ...]:
    """The prompt that a judge of ``stage`` gets for one pair, byte for byte as in a run.

    ``target`` is a requirement (rc) or fault (design, execution) of the cell, ``answer`` the agent's answer to the last
    turn (execution).
    """
    from regatta_tools.harness.run import fault_slots, requirement_block, scenario_block

    if stage == "rc":
        record = next(r for r in cell.requirements if r.key == target)
        return prompts.render(
            "rc", requirement=requirement_block(record), breach=record["observable_test"],
            scenario=scenario_block(scenario, expected=True),
        )  # fmt: skip
    slots = fault_slots(cell, next(f for f in cell.faults if f.key == target))
    if stage == "design":
        return prompts.render("design", scenario=scenario_block(scenario, expected=True), **slots)
    parts = [("Known to the agent", scenario.context)] if scenario.context else []
    parts += [("Agent, given by the test" if t.speaker == "agent" else "User", t.text) for t in scenario.turns]
    block = prompts.fenced("conversation", [*parts, ("Agent", answer or "")])
    return prompts.render("execution", conversation=block, **slots)


def limits(judge: str) -> tuple[int, int | None]:
    """Token limits of a judge: of its reply, and of the second try where that was cut (``None``: there is none)."""
    from regatta_tools.harness.run import EMBEDDED_TOKENS, JUDGE_TOKENS, ROOMY_TOKENS

    return (EMBEDDED_TOKENS["judge"], None) if embedded.is_default(judge) else (JUDGE_TOKENS, ROOMY_TOKENS)


class Asking:
    """Asks one judge, journals calls and verdicts in ``store`` as a run does, and repeats none that is there."""

    def __init__(self, judge: str, models: Sequence[dict[str, Any]], store: RunStore, pool: Pool, seed: int) -> None:
        self.judge, self.store, self.pool, self.seed = judge, store, pool, seed
        self.names = {m["stage"]: m["name"] for m in models}

    def held(self, stage: str, target: str, scenario: str, draw: int = 1, arm: str = "") -> dict[str, Any] | None:
        return self.store.verdict(stage, target, scenario, draw, arm)

    def ask(
        self, stage: str, target: str, scenario: str, messages: Sequence[dict[str, str]], draw: int = 1, arm: str = ""
    ) -> dict[str, Any]:  # fmt: skip
        """The verdict of one pair. A truncated reply without one is asked for once more with more room (A16)."""
        if (held := self.held(stage, target, scenario, draw, arm)) is not None:
            return held
        first, roomy = limits(self.judge)
        tail = f"|{arm}" if arm not in ("", "joint") else ""
        key = f"{stage}|{target}|{scenario}|{draw}{tail}"
        purpose = {"stage": stage, "target": target, "scenario": scenario, "draw": str(draw), "turn": "1", "arm": arm}
        reading = self._read(key, stage, messages, first, purpose)
        if reading.outcome == "truncated" and roomy is not None:
            key += "|roomy"
            reading = self._read(key, stage, messages, roomy, purpose)
        return self.note(stage, target, scenario, reading, key, draw, arm)

    def _read(
        self, key: str, stage: str, messages: Sequence[dict[str, str]], limit: int, purpose: dict[str, str]
    ) -> Reading:  # fmt: skip
        from regatta_tools.harness.run import _seed

        seed = _seed(self.seed, key)
        request = Request(
            self.judge, tuple(messages), 0.0, limit, seed, reply_schema(stage), purpose=purpose
        )  # fmt: skip
        digest = sha256_json([[dict(m) for m in messages], 0.0, limit, seed])
        return read_verdict(stage, self.pool.call(request, key, stage, self.names[stage], digest))

    def note(
        self, stage: str, target: str, scenario: str, reading: Reading, call: str | None, draw: int = 1, arm: str = ""
    ) -> dict[str, Any]:  # fmt: skip
        value = None if reading.value is None or isinstance(reading.value, bool) else str(reading.value)
        event: dict[str, Any] = {
            "e": "verdict", "stage": stage, "target": target or None, "scenario": scenario, "draw": draw,
            "arm": arm or None, "judge": self.names[stage], "outcome": reading.outcome, "value": value,
            "rung": reading.rung, "call": call, "error": reading.error,
        }  # fmt: skip
        event = {k: v for k, v in event.items() if v is not None}
        self.store.append(event)
        return event


# -- a second judge ------------------------------------------------------------------------------


def slug(judge: str) -> str:
    """A folder name for a judge: readable, and never that of another."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", Path(judge).name or judge).strip("-.")[:40] or "judge"
    return f"{plain}-{sha256_json(judge)[:8]}"


def rejudge(
    run: Path | str,
    judge: str,
    *,
    stages: Sequence[str] = (),
    concurrency: int | None = None,
    max_calls: int | None = None,
    budget_usd: float | None = None,
    cache: Any = None,
    prices: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> RunStore:
    """Have another judge judge the pairs of a stored run, from the prompts that its own judge got.

    The verdicts go into a store of their own, ``RUN/panel/<judge>``; the same call goes on where it was broken off.
    Pairs that no model judged (a similarity baseline, an agent that gave no answer) have no prompt: the first are left
    out and the second carried over, both told in the store's ``notes``. Raises :class:`InputError` (U107 no run, U186
    no prompt was kept, U108 the run was changed since) before any call is made.
    """
    from regatta_tools.harness.run import AT_ONCE, _models

    first = RunStore.read(run)
    wanted = set(stages or STAGES)
    sent = {p["prompt_hash"]: p["messages"] for p in kept_prompts(first.folder)}
    jobs, baseline, silent, lost = [], 0, [], 0
    for key, verdict in sorted(first.verdicts.items()):
        if key[0] not in wanted:
            continue
        call = first.calls.get(verdict.get("call") or "")
        if verdict["outcome"] == "no-answer":
            silent.append((key, verdict))
        elif verdict.get("call") is None:
            baseline += 1
        elif call is None or call["prompt_hash"] not in sent:
            lost += 1
        else:
            jobs.append((key, sent[call["prompt_hash"]]))
    if not jobs:
        raise InputError(
            "no prompt of this run is there to be put to another judge"
            + (f": {baseline} pair(s) were judged by a likeness of words" if baseline else ""),
            code="U186", place=str(first.folder),
            mend="name a run that a model judged, made by this version, with its prompts.jsonl",
        )  # fmt: skip
    models = [m for m in _models_of(judge, _models) if m["stage"] in wanted]
    manifest = first.manifest | {"models": models, "id": slug(judge)}
    manifest["made_with"] = first.manifest["made_with"] | {"models": sha256_json(models)}
    store = RunStore(first.folder / PANEL / slug(judge))
    if concurrency is None:
        concurrency = 1 if client.stays_here(judge) else AT_ONCE
    with store:
        store.open_for_writing(manifest)
        with Pool(
            store, concurrency=concurrency, max_calls=max_calls, budget_usd=budget_usd, cache=cache, prices=prices,
            models=(judge,),
        ) as pool:  # fmt: skip
            asking = Asking(judge, models, store, pool, first.manifest["seed"])
            for (stage, target, scenario, draw, arm), verdict in silent:
                if asking.held(stage, target, scenario, draw, arm) is None:
                    asking.note(
                        stage, target, scenario, Reading("no-answer", error=verdict.get("error")), None, draw, arm
                    )  # fmt: skip
            pool.map(
                [lambda k=k, m=m: asking.ask(k[0], k[1], k[2], m, k[3], k[4]) for k, m in jobs], progress
            )  # fmt: skip
    for count, what in (
        (baseline, "were judged by a likeness of words and have no prompt"), (lost, "have no kept prompt"),
    ):  # fmt: skip
        if count:
            store.notes.append(f"{count} pair(s) {what}: they were not put to the second judge")
    return store


def _models_of(judge: str, models: Callable[[str, str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Who judges what, where ``judge`` itself judges every stage, the similarity baseline none."""
    found = {m["stage"]: m for m in models(judge, judge) if m["stage"] != "agent"}
    same = found["execution"]
    return [found[s] if found[s]["kind"] != "similarity" else same | {"stage": s} for s in STAGES]


def panel_of(run: Path | str) -> list[RunStore]:
    """The stores of the judges that judged a run after its own, by name."""
    folder = Path(run) / PANEL
    return [RunStore.read(p.parent) for p in sorted(folder.glob("*/run.json"))]


def panel_agreement(run: Path | str, *, seed: int = 1, resamples: int = 2000) -> dict[str, Any]:
    """Agreement of a run's judge with its panel, stage by stage.

    Returns ``run``, ``judges`` (name, and the verdicts without a value by kind), ``flags`` (shared vendors), ``stages``
    (stage to an object of :func:`regatta_tools.measures.agreement.agree`, scenarios resampled) and ``notes``.
    """
    import numpy as np

    from regatta_tools.measures.agreement import of_ratings
    from regatta_tools.measures.ratings import Group, Ratings
    from regatta_tools.tables.model import enum_values

    first, others = RunStore.read(run), panel_of(run)
    if not others:
        raise InputError(
            "no second judge has judged this run", code="U186", place=str(first.folder),
            mend="regatta rejudge RUN --judge MODEL",
        )  # fmt: skip
    stores = [first, *others]
    scales = {"iss": ["1", "2", "3", "4", "5"], "ac": ["none", *enum_values("AdversarialCategory")]}
    out: dict[str, Any] = {"run": str(first.folder), "judges": [], "flags": [], "stages": {}, "notes": []}
    for stage in STAGES:
        judged = [s for s in others if any(k[0] == stage for k in s.verdicts)]
        keys = [k for k in first.verdicts if k[0] == stage and any(k in s.verdicts for s in judged)]
        if not judged or not keys:
            continue
        scale = scales.get(stage, ["negative", "positive"])
        names = _names([_name(s, stage) for s in [first, *judged]])
        codes = np.full((len(keys), len(names)), -1, np.int64)
        missing: list[Counter[str]] = [Counter() for _ in names]
        for column, store in enumerate([first, *judged]):
            for row, key in enumerate(keys):
                verdict = store.verdicts.get(key)
                said = "pending" if verdict is None else verdict.get("value") or verdict["outcome"]
                if said in scale:
                    codes[row, column] = scale.index(said)
                else:
                    missing[column][said] += 1
        group = Group({"stage": stage}, ["|".join(map(str, k[1:])) for k in keys], names, scale, codes, missing,
                      None, [k[2] for k in keys])  # fmt: skip
        weights = "quadratic" if stage == "iss" else "nominal"
        out["stages"][stage] = of_ratings(Ratings([group], True, str(first.folder)), weights, seed, resamples)
    for store in stores:
        kinds = Counter(v["outcome"] for v in store.verdicts.values())
        out["judges"].append({
            "name": _name(store, "execution"), "verdicts": len(store.verdicts),
            "missing": {k: n for k, n in sorted(kinds.items()) if k not in ("positive", "negative", "rated")},
        })  # fmt: skip
    for store in stores:
        out["flags"] += shared_vendors(store.manifest["models"] + [
            m for m in first.manifest["models"] if m["stage"] == "agent" and store is not first
        ])  # fmt: skip
    out["flags"] = list(dict.fromkeys(out["flags"]))
    vendors = {vendor_of(_name(s, "execution")) for s in stores}
    if len(vendors) == 1:
        out["notes"].append(f"All judges are of one vendor ({vendors.pop()}): they may share their errors.")
    if first.manifest["scan"] == "first":
        out["notes"].append(
            "The run ended each scan at its first yes, so the pairs are those that its own judge came to: agreement is "
            "one of these pairs, not of all."
        )
    out["notes"].append("Agreement of two models says that they agree, not that they are right.")
    return out


def _name(store: RunStore, stage: str) -> str:
    models = {m["stage"]: m["name"] for m in store.manifest["models"]}
    return models.get(stage) or next(iter(models.values()))


def _names(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    out = []
    for name in names:
        seen[name] += 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


# -- vendors -------------------------------------------------------------------------------------


def vendor_of(model: str) -> str | None:
    """Whose model a name speaks of, as far as the name tells; ``None`` where it does not, and for scripts."""
    if scripted.is_scripted(model) or replay.is_replay(model) or model == "scripted":
        return None
    name = re.split(r"[/:]", model.casefold())[-1] if not embedded.is_embedded(model) else model.casefold()
    for vendor, pattern in _FAMILIES.items():
        if re.search(rf"(^|[^a-z])({pattern})", name):
            return vendor
    if embedded.is_embedded(model) or "smollm" in name:
        return "embedded"
    return model.casefold().split("/")[0] if "/" in model else None


def shared_vendors(models: Sequence[dict[str, Any]], generator: str | None = None) -> list[str]:
    """What to mind about who judges whom: a judge of the same vendor as the agent, or as the generator of the suite.

    ``models`` are entries of the class ``ModelUse``; ``generator`` is the model that wrote the suite, where it is
    stated (``made_with.model`` of a suite).
    """
    agents = {m["name"] for m in models if m["stage"] == "agent"}
    judges = {m["name"] for m in models if m["stage"] != "agent" and m.get("kind") != "similarity"}
    flags = []
    for judge in sorted(judges):
        vendor = vendor_of(judge)
        for what, others in (("agent", sorted(agents)), ("generator of the suite", [generator] if generator else [])):
            for other in others:
                if other == judge and vendor_of(judge) is not None:
                    flags.append(f"The judge and the {what} are one model ({judge}): it may favour its own words.")
                elif vendor is not None and vendor_of(other) == vendor:
                    flags.append(
                        f"The judge ({judge}) and the {what} ({other}) are of one vendor ({vendor}): it may favour "
                        "answers like its own."
                    )
    return flags


# -- the ladder ----------------------------------------------------------------------------------


def rungs(store: RunStore) -> dict[str, dict[str, int]]:
    """How often a verdict was read on each rung of the ladder, by stage (docs/judges.md)."""
    found: dict[str, Counter[str]] = {}
    for verdict in store.verdicts.values():
        if verdict.get("rung"):
            found.setdefault(verdict["stage"], Counter())[verdict["rung"]] += 1
    return {stage: dict(sorted(tally.items())) for stage, tally in sorted(found.items())}
