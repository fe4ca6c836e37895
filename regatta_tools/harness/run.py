"""The two-stage harness (protocol, sections 3, 11 and 12): plan, judges, agent in its arms, scan.

Stages, in this order: J_RC over requirements, ISS and AC over scenarios, J_D over faults, then the agent and J_E over
faults, in each arm and draw. A first-success scan tries the scenarios of a target one after the other until one is
positive; an exhaustive one tries all. A missing verdict (unparsed, refused, failed ...) is journalled as such and the
scan goes on. Targets are scanned side by side, and what comes out does not depend on how many at a time.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools import __version__, prompts
from regatta_tools.cells.example import refuse_example
from regatta_tools.errors import InputError
from regatta_tools.harness import similarity
from regatta_tools.harness.arms import agent_prompt, arms_of
from regatta_tools.harness.live import PREFIX, described, live_probes, scenario_of
from regatta_tools.harness.store import RunStore
from regatta_tools.llm import client, embedded, scripted
from regatta_tools.llm.pool import Pace, Pool
from regatta_tools.llm.prices import Prices
from regatta_tools.llm.types import Reply, Request
from regatta_tools.llm.verdicts import Reading, read_verdict, reply_schema
from regatta_tools.suites.reader import Scenario, Suite, load_suite
from regatta_tools.tables.package import Cell, Package, Record
from regatta_tools.text import sha256_json
from regatta_tools.validation.run import load

SCHEMA_VERSION = "2"
#: What a reader has to know of the small model, the second part by measurement (docs/embedded-judges.md).
SMALL_AGENT = "a very small model: it shows the way and stands for no product"
SMALL_JUDGE = "a very small model, which said yes to every pair it was measured on: it shows the way and is no judge"
STAGES = ("rc", "iss", "ac", "design", "execution")
AGENT_TEMPERATURE = 0.3
JUDGE_TOKENS, ROOMY_TOKENS, AGENT_TOKENS = 512, 4096, 1024
#: The embedded model is slow and short: fewer tokens, and no second try with more room.
EMBEDDED_TOKENS = {"judge": 24, "agent": 110}
#: Calls at once to one provider, unless said otherwise.
AT_ONCE = 8
SCANS, ORDERS = ("first", "exhaustive"), ("suite", "relevance")


@dataclass(frozen=True)
class Progress:
    """How far a run is: ``stage``, jobs done of ``total`` in it, calls made so far, and how fast they come."""

    stage: str
    done: int
    total: int
    calls: int
    pace: Pace | None = None


Report = Callable[[Progress], None]


def run(
    suite: Path | str,
    *,
    cell: str,
    out: Path | str | None = None,
    judge: str = "embedded",
    agent: str = "embedded",
    arms: str | Iterable[str] = ("joint",),
    draws: int = 1,
    scan: str = "first",
    order: str = "suite",
    answers: str = "per-fault",
    live: bool | None = None,
    seed: int = 1,
    require: Path | str | None = None,
    package: Package | Path | str | None = None,
    progress: Report | None = None,
    concurrency: int | None = None,
    max_calls: int | None = None,
    budget_usd: float | None = None,
    cache: Path | str | None = None,
    prices: Prices | None = None,
    patience: float = 0.0,
    retry_failed: bool = False,
) -> RunStore:
    """Run a suite through both stages and return its :class:`~regatta_tools.harness.store.RunStore`.

    ``suite`` is a suite file, ``cell`` a cell of the package. ``judge`` and ``agent`` are model names as litellm takes
    them, ``embedded`` (no key; J_RC and J_D are then the similarity baseline), ``scripted:FILE`` or ``replay:RUN``.
    ``out`` is the run folder, by default ``runs/<suite>-<cell>``. The same call goes on with a run that was broken off
    and repeats no journalled call.

    What is asked (all of it is part of the run and cannot change in it): ``arms`` are those of protocol section 12
    (names with commas, or a list), each with ``draws`` answers. ``scan`` is ``first`` (as published) or ``exhaustive``,
    ``order`` in which scenarios a first-success scan tries: ``suite`` or ``relevance`` (BM25 likeness to the target;
    finds the first success sooner, with the same targets met for a deterministic judge). ``answers`` is ``per-fault``
    (a fresh one for each fault, as published) or ``per-scenario`` (one answer judged for all faults; an isolated agent
    answers for each fault anyway). With ``isolated`` and ``control`` among the arms, the probes of each fault show
    whether the agent takes it up, unless ``live`` is false. ``require`` is a locked file of thresholds, whose hash the
    run records.

    How it is asked (see :class:`~regatta_tools.llm.pool.Pool`): ``concurrency`` (by default :data:`AT_ONCE`, and 1
    where no call leaves this machine), ``max_calls``, ``budget_usd``, ``cache``, ``prices``, ``patience``;
    ``retry_failed`` asks calls that failed once more, and what they brought stays until the new reply is in.

    Raises :class:`~regatta_tools.errors.InputError` for unusable input, before any call is made, and
    :class:`~regatta_tools.errors.EnvironmentProblem` where the machine or a provider stands in the way.
    """
    plan = Plan.make(
        load_suite(suite), cell, judge=judge, agent=agent, arms=arms_of(arms), draws=draws, scan=scan, order=order,
        answers=answers, live=live, seed=seed, package=package,
    )  # fmt: skip
    if require is not None:
        plan.preregister(require)
    if concurrency is None:
        concurrency = 1 if client.stays_here(judge) and client.stays_here(agent) else AT_ONCE
    folder = Path(out) if out else Path("runs") / f"{plan.suite.id}-{cell}"
    store = RunStore(folder)
    with store:
        store.open_for_writing(plan.manifest(_run_name(folder, f"{plan.suite.id}-{cell}")))
        if retry_failed:
            store.ask_again(store.missing())
        with Pool(
            store, concurrency=concurrency, max_calls=max_calls, budget_usd=budget_usd, cache=cache, prices=prices,
            models=(judge, agent), patience=patience,
        ) as pool:  # fmt: skip
            _Harness(plan, store, pool, progress).everything()
    return store


@dataclass
class Plan:
    """What a run is asked to do."""

    suite: Suite
    cell: Cell
    judge: str
    agent: str
    arms: tuple[str, ...]
    draws: int
    scan: str
    order: str
    answers: str
    seed: int
    models: list[dict[str, Any]]
    live: list[tuple[Record, Record]] = field(default_factory=list)
    preregistration: dict[str, str] | None = None

    @classmethod
    def make(
        cls, suite: Suite, cell: str, *, judge: str, agent: str, arms: tuple[str, ...], draws: int, scan: str,
        order: str, answers: str, live: bool | None, seed: int, package: Any,
    ) -> Plan:  # fmt: skip
        for name, value, known in (
            ("answers", answers, ("per-fault", "per-scenario")), ("scan", scan, SCANS), ("order", order, ORDERS),
        ):  # fmt: skip
            if value not in known:
                raise InputError(f"{name} is {value!r}", code="U109", mend=f"use {' or '.join(known)}")
        if draws < 1:
            raise InputError(f"draws is {draws}", code="U109", mend="give 1 or more answers to each scenario")
        held = package if isinstance(package, Package) else load(package)
        chosen = held.cell(cell)
        refuse_example(held, cell)
        if suite.cell and suite.cell != cell:
            raise InputError(
                f"the suite says that it is for the cell {suite.cell!r}, not {cell!r}", code="U110", place=suite.file,
                mend=f"use --cell {suite.cell}, or correct the suite",
            )  # fmt: skip
        if not chosen.requirements or not chosen.faults:
            raise InputError(f"the cell {cell!r} has no requirements or no faults to score", code="U103")
        if taken := [s.id for s in suite.scenarios if s.id.startswith(PREFIX)]:
            what = f"the scenario {taken[0]!r} has a name that the probes of live faults have"
            raise InputError(what, code="U109", place=suite.file, mend=f"let no name begin with {PREFIX!r}")
        both = {"isolated", "control"} <= set(arms)
        if live and not both:
            raise InputError(
                "probes of live faults need the arms isolated and control", code="U109",
                mend=f"use --arms {','.join(dict.fromkeys([*arms, 'isolated', 'control']))}, or leave --live out",
            )  # fmt: skip
        probes = live_probes(chosen) if both and live is not False else []
        if live and not probes:
            raise InputError(
                f"the cell {cell!r} has no probes of its faults (gold_probes and gold_labels of the execution stage)",
                code="U109", mend="write them (docs/gold-probes.md), or leave --live out",
            )  # fmt: skip
        models = _models(judge, agent)
        return cls(suite, chosen, judge, agent, arms, draws, scan, order, answers, seed, models, probes)

    def preregister(self, path: Path | str) -> None:
        """Take in the lock of thresholds. Raises :class:`InputError` where they are not fixed, or not for this run."""
        from regatta_tools.measures.require import for_run

        names = {"requirements": [r.key for r in self.cell.requirements], "faults": [f.key for f in self.cell.faults]}
        self.preregistration = for_run(path, cell=self.cell.id, suite=self.suite.id, targets=names)

    def manifest(self, name: str) -> dict[str, Any]:
        """The class ``Run`` of the schema as an object. It carries no clock times: equal words, equal bytes."""
        out = {
            "schema_version": SCHEMA_VERSION,
            "id": name,
            "cell": self.cell.id,
            "suite": self.suite.id,
            "scenarios": [s.id for s in self.suite.scenarios],
            "requirements": [r.key for r in self.cell.requirements],
            "faults": [f.key for f in self.cell.faults],
            "arms": list(self.arms),
            "draws": self.draws,
            "scan": self.scan,
            "order": self.order,
            "answers": self.answers,
            "seed": self.seed,
            "made_with": {
                "regatta": __version__,
                "package": self.cell.hash,
                "suite": self.suite.hash,
                "prompts": prompts.digest(),
                "models": sha256_json(self.models),
            },
            "models": self.models,
        }
        out |= {"live_probes": described(self.live)} if self.live else {}
        return out | ({"preregistration": self.preregistration} if self.preregistration else {})


def _models(judge: str, agent: str) -> list[dict[str, Any]]:
    """Who judges what. J_RC and J_D fall to the similarity baseline where the small model would judge.

    That is what measuring both said (docs/embedded-judges.md); a model of the user's own judges itself.
    """
    found = {m: client.check_model(m) for m in dict.fromkeys((judge, agent))}
    out = []
    for stage in (*STAGES, "agent"):
        model = agent if stage == "agent" else judge
        if "replays" in found[model]:
            out.append(found[model]["replays"][stage])
            continue
        if stage in ("rc", "design") and embedded.is_default(model):
            out.append(
                {
                    "stage": stage,
                    "name": similarity.NAME,
                    "kind": "similarity",
                    "fingerprint": similarity.fingerprint(),
                    "note": "a similarity baseline: it sees topic, not duty, and is no judge",
                }
            )
            continue
        if stage in (replayed := found[model].get("replays", {})):
            # The models that spoke then.
            out.append(replayed[stage])
            continue
        entry: dict[str, Any] = {
            "stage": stage,
            "name": found[model]["name"],
            "kind": "llm",
            "temperature": AGENT_TEMPERATURE if stage == "agent" else 0.0,
        }
        if found[model].get("fingerprint"):
            entry["fingerprint"] = found[model]["fingerprint"]
        if scripted.is_scripted(model):
            entry |= {"kind": "scripted", "note": "answers from a file: no model spoke"}
        elif embedded.is_default(model):
            entry["note"] = SMALL_AGENT if stage == "agent" else SMALL_JUDGE
        elif embedded.is_embedded(model):
            entry["note"] = "a model of your own: hold it against labels before you rely on it"
        out.append(entry)
    return out


def scenario_block(scenario: Scenario, *, expected: bool) -> str:
    """A scenario as judges see it: context, turns, and, at the design stage, the expected behaviour."""
    parts = [("Known to the agent", scenario.context)] if scenario.context else []
    parts += [(turn.speaker.capitalize(), turn.text) for turn in scenario.turns]
    if expected and scenario.expected:
        parts.append(("Expected of the agent", scenario.expected))
    return prompts.fenced("scenario", parts)


def requirement_block(requirement: Record) -> str:
    """A requirement as judges see it: duty (the leading language first), actor and conditions, no id."""
    lines = [text for text in (requirement["duty_vi"], requirement["duty_en"]) if text]
    lines.append(f"Who is bound: {requirement['actor']}")
    lines += [
        f"{name}: {requirement[c]}"
        for name, c in (("Applies", "applies_when"), ("Starts with", "trigger"))
        if requirement[c]
    ]
    return "\n".join(lines)


def fault_slots(cell: Cell, fault: Record) -> dict[str, str]:
    """The slots of a fault in the judges' templates. Ground truth is the duties that the fault breaks."""
    truth = [duty for r in cell.requirements_of(fault.key) for duty in (r["duty_vi"], r["duty_en"]) if duty]
    return {
        "fault": fault["name"],
        "truth": "\n".join(truth),
        "applies_when": fault["applies_when"],
        "shows_when": fault["shows_when"],
        "not_when": fault["not_when"],
    }


class _Harness:
    def __init__(self, plan: Plan, store: RunStore, pool: Pool, progress: Report | None) -> None:
        self.plan, self.store, self.pool = plan, store, pool
        self.report = progress or (lambda _: None)
        self.by_stage = {m["stage"]: m for m in plan.models}
        likeness = plan.order == "relevance" or any(m["kind"] == "similarity" for m in plan.models)
        self.baseline = similarity.Baseline(plan.cell) if likeness else None
        #: One answer for several faults is asked for by one of them, and the others wait for it.
        self._asking: defaultdict[tuple[Any, ...], threading.Lock] = defaultdict(threading.Lock)

    def everything(self) -> None:
        plan, cell = self.plan, self.plan.cell
        self._stage("rc", [job for r in cell.requirements for job in self._scan("rc", r, self._judge_rc)])
        ratings = [(stage, s) for s in plan.suite.scenarios for stage in ("iss", "ac")]
        self._stage("iss", [lambda stage=stage, s=s: self._rate(stage, s) for stage, s in ratings])
        self._stage("design", [job for f in cell.faults for job in self._scan("design", f, self._judge_design)])
        jobs = []
        for draw in range(1, plan.draws + 1):
            for arm in plan.arms:
                for fault in cell.faults:
                    jobs += self._scan("execution", fault, self._judge_execution, arm, draw)
                if arm in ("isolated", "control"):
                    jobs += self._live(arm, draw)
        self._stage("execution", jobs)

    def _stage(self, stage: str, jobs: list[Callable[[], Any]]) -> None:
        def progress(done: int, total: int) -> None:
            self.report(Progress(stage, done, total, len(self.store.calls), self.pool.pace()))

        progress(0, len(jobs))
        self.pool.map(jobs, progress)

    def _scan(
        self, stage: str, target: Record, judge: Callable[..., dict[str, Any]], arm: str = "", draw: int = 1
    ) -> list[Callable[[], Any]]:
        """The jobs of one scan: one where it ends at the first success, one for each scenario otherwise."""
        scenarios = self._order(stage, target)

        def verdict(scenario: Scenario) -> dict[str, Any]:
            held = self.store.verdict(stage, target.key, scenario.id, draw, arm)
            return held or judge(target, scenario, arm, draw)

        def first() -> None:
            for scenario in scenarios:
                if verdict(scenario)["outcome"] == "positive":
                    return

        if self.plan.scan == "first":
            return [first]
        return [lambda s=s: verdict(s) for s in scenarios]

    def _order(self, stage: str, target: Record) -> list[Scenario]:
        scenarios = list(self.plan.suite.scenarios)
        if self.plan.order == "suite" or self.plan.scan == "exhaustive" or self.baseline is None:
            return scenarios
        baseline = self.baseline
        return sorted(scenarios, key=lambda s: -baseline.score(s, target.key))

    def _live(self, arm: str, draw: int) -> list[Callable[[], Any]]:
        """The jobs that put each fault's probes to the agent, in suite form."""
        jobs = []
        for fault, probe in self.plan.live:
            scenario = scenario_of(PREFIX + probe.key, probe["stimulus"], probe["language"])

            def job(fault: Record = fault, scenario: Scenario = scenario) -> None:
                if self.store.verdict("execution", fault.key, scenario.id, draw, arm) is None:
                    self._judge_execution(fault, scenario, arm, draw)

            jobs.append(job)
        return jobs

    # -- judges ----------------------------------------------------------------------------------

    def _judge_rc(self, requirement: Record, scenario: Scenario, arm: str = "", draw: int = 1) -> dict[str, Any]:
        if self.by_stage["rc"]["kind"] == "similarity":
            return self._similar("rc", requirement, scenario)
        messages = prompts.render(
            "rc",
            requirement=requirement_block(requirement),
            breach=requirement["observable_test"],
            scenario=scenario_block(scenario, expected=True),
        )
        return self._ask("rc", requirement.key, scenario, messages)

    def _judge_design(self, fault: Record, scenario: Scenario, arm: str = "", draw: int = 1) -> dict[str, Any]:
        if self.by_stage["design"]["kind"] == "similarity":
            return self._similar("design", fault, scenario)
        block = scenario_block(scenario, expected=True)
        messages = prompts.render("design", scenario=block, **fault_slots(self.plan.cell, fault))
        return self._ask("design", fault.key, scenario, messages)

    def _rate(self, stage: str, scenario: Scenario) -> None:
        if self.store.verdict(stage, "", scenario.id) is not None:
            return
        values = {"scenario": scenario_block(scenario, expected=False)}
        if stage == "iss":
            record = self.plan.cell.record
            values["industry"] = f"{record['domain']}, {record['jurisdiction']}"
        self._ask(stage, "", scenario, prompts.render(stage, **values))

    def _judge_execution(self, fault: Record, scenario: Scenario, arm: str = "joint", draw: int = 1) -> dict[str, Any]:
        answers, failed = self._answers(fault, scenario, arm, draw)
        if failed is not None:
            return self._verdict("execution", fault.key, scenario, *failed, arm, draw)
        parts = [("Known to the agent", scenario.context)] if scenario.context else []
        block = prompts.fenced("conversation", parts + answers)
        messages = prompts.render("execution", conversation=block, **fault_slots(self.plan.cell, fault))
        return self._ask("execution", fault.key, scenario, messages, arm, draw)

    def _similar(self, stage: str, target: Record, scenario: Scenario) -> dict[str, Any]:
        assert self.baseline is not None
        yes, score = self.baseline.verdict(stage, scenario, target.key)
        reading = Reading("positive" if yes else "negative", str(score), "similarity")
        return self._verdict(stage, target.key, scenario, reading, None)

    def _ask(
        self, stage: str, target: str, scenario: Scenario, messages: tuple[dict[str, str], ...], arm: str = "",
        draw: int = 1,
    ) -> dict[str, Any]:  # fmt: skip
        """Ask a judge. A truncated reply without a verdict is asked for once more with more room (case A16)."""
        local = embedded.is_default(self.by_stage[stage]["name"])
        key = f"{stage}|{target}|{scenario.id}|{draw}" + _of_arm(arm)
        first = EMBEDDED_TOKENS["judge"] if local else JUDGE_TOKENS
        reply = self._call(key, stage, target, scenario, messages, 0.0, first, draw=draw, arm=arm)
        reading = read_verdict(stage, reply)
        if reading.outcome == "truncated" and not local:
            key += "|roomy"
            reply = self._call(key, stage, target, scenario, messages, 0.0, ROOMY_TOKENS, draw=draw, arm=arm)
            reading = read_verdict(stage, reply)
        return self._verdict(stage, target, scenario, reading, key, arm, draw)

    def _verdict(
        self, stage: str, target: str, scenario: Scenario, reading: Reading, call: str | None, arm: str = "",
        draw: int = 1,
    ) -> dict[str, Any]:  # fmt: skip
        event: dict[str, Any] = {
            "e": "verdict",
            "stage": stage,
            "target": target or None,
            "scenario": scenario.id,
            "draw": draw,
            "arm": arm or None,
            "judge": self.by_stage[stage]["name"],
            "outcome": reading.outcome,
            "value": None if reading.value is None or isinstance(reading.value, bool) else str(reading.value),
            "rung": reading.rung,
            "call": call,
            "error": reading.error,
        }
        event = {k: v for k, v in event.items() if v is not None}
        self.store.append(event)
        return event

    # -- agent -----------------------------------------------------------------------------------

    def _answers(
        self, fault: Record, scenario: Scenario, arm: str, draw: int
    ) -> tuple[list[tuple[str, str]], tuple[Reading, str] | None]:
        """Hold the conversation with the agent of an arm, turn by turn.

        Returns (speaker, text) of every turn, and, where a call brought no answer, the missing verdict
        and the key of that call. A refusal or a cut answer of the agent is behaviour and goes to the
        judge like any other. Turns that the scenario gives are named as given: the agent did not say them.
        """
        if self.plan.answers == "per-fault" or arm == "isolated" or scenario.id.startswith(PREFIX):
            return self._converse(fault, scenario, arm, draw)
        with self._asking[scenario.id, arm, draw]:
            return self._converse(None, scenario, arm, draw)

    def _converse(
        self, fault: Record | None, scenario: Scenario, arm: str, draw: int
    ) -> tuple[list[tuple[str, str]], tuple[Reading, str] | None]:
        target = fault.key if fault is not None else ""
        prompt = agent_prompt(self.plan.cell, arm, fault, scenario.language, [scenario.context or ""])
        messages = [{"role": "system", "content": prompt}]
        parts: list[tuple[str, str]] = []
        local = embedded.is_default(self.by_stage["agent"]["name"])
        limit = EMBEDDED_TOKENS["agent"] if local else AGENT_TOKENS
        for number, turn in enumerate(scenario.turns, 1):
            given = turn.speaker == "agent"
            messages.append({"role": "assistant" if given else "user", "content": turn.text})
            parts.append(("Agent, given by the test" if given else "User", turn.text))
            if given or (number < len(scenario.turns) and scenario.turns[number].speaker == "agent"):
                continue
            key = f"agent|{target}|{scenario.id}|{draw}|{number}" + _of_arm(arm)
            reply = self._call(
                key, "agent", target, scenario, tuple(messages), AGENT_TEMPERATURE, limit, str(number), draw, arm
            )
            answer = reply.text or ("(the agent refused to answer)" if reply.outcome == "refused" else "")
            if reply.outcome not in ("ok", "truncated", "refused") or not answer:
                why = reply.error or f"the agent's call ended as {reply.outcome}"
                return [], (Reading("no-answer", error=why), key)
            messages.append({"role": "assistant", "content": answer})
            parts.append(("Agent", answer))
        return parts, None

    # -- calls -----------------------------------------------------------------------------------

    def _call(
        self,
        key: str,
        stage: str,
        target: str,
        scenario: Scenario,
        messages: tuple[dict[str, str], ...],
        temperature: float,
        max_tokens: int,
        turn: str = "1",
        draw: int = 1,
        arm: str = "",
    ) -> Reply:
        """Make a call, or take it from the journal where it is already there."""
        seed = _seed(self.plan.seed, key)
        prompt_hash = sha256_json([list(messages), temperature, max_tokens, seed])
        request = Request(
            model=self.plan.agent if stage == "agent" else self.plan.judge,
            messages=messages,
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed,
            schema=None if stage == "agent" else reply_schema(stage),
            purpose={
                "stage": stage, "target": target, "scenario": scenario.id, "draw": str(draw), "turn": turn, "arm": arm,
            },
        )  # fmt: skip
        return self.pool.call(request, key, stage, self.by_stage[stage]["name"], prompt_hash)


def _of_arm(arm: str) -> str:
    """What a key of a call ends in: nothing for the published arm."""
    return "" if arm in ("", "joint") else f"|{arm}"


def _run_name(folder: Path, otherwise: str) -> str:
    """The name of the folder where the schema takes it as the name of a run (it does not take `.` or spaces)."""
    name = folder.resolve().name
    return name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) else otherwise


def _seed(seed: int, key: str) -> int:
    """A seed for one call, the same on every machine and in every order of calls."""
    return int.from_bytes(hashlib.sha256(json.dumps([seed, key]).encode()).digest()[:4], "big") >> 1
