"""The two-stage harness (protocol, sections 3, 11 and 12): plan, judges, agent, first-success scan.

Stages, in this order: J_RC over requirements, ISS and AC over scenarios, J_D over faults, then the
faulty agent and J_E over faults. Within a target the scenarios are tried in suite order until one is
positive. A missing verdict (unparsed, refused, failed ...) is journalled as such and the scan goes on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regatta_tools import __version__, prompts
from regatta_tools.cells.example import refuse_example
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.harness import similarity
from regatta_tools.harness.store import RunStore
from regatta_tools.llm import client, embedded, scripted
from regatta_tools.llm.types import Reply, Request
from regatta_tools.llm.verdicts import Reading, read_verdict, reply_schema
from regatta_tools.suites.reader import Scenario, Suite, load_suite
from regatta_tools.tables.package import Cell, Package, Record
from regatta_tools.text import sha256_json
from regatta_tools.validation.run import load

SCHEMA_VERSION = "1"
#: What a reader has to know of the small model, the second part by measurement (docs/embedded-judges.md).
SMALL_AGENT = "a very small model: it shows the way and stands for no product"
SMALL_JUDGE = "a very small model, which said yes to every pair it was measured on: it shows the way and is no judge"
STAGES = ("rc", "iss", "ac", "design", "execution")
AGENT_TEMPERATURE = 0.3
JUDGE_TOKENS, ROOMY_TOKENS, AGENT_TOKENS = 512, 4096, 1024
#: The embedded model is slow and short: fewer tokens, and no second try with more room.
EMBEDDED_TOKENS = {"judge": 24, "agent": 110}
#: Calls to one model, one after the other, that do not reach it before the run stops.
UNREACHED = 3


@dataclass(frozen=True)
class Progress:
    """How far a run is: ``stage``, targets done of ``total`` in it, calls made so far."""

    stage: str
    done: int
    total: int
    calls: int


Report = Callable[[Progress], None]


def run(
    suite: Path | str,
    *,
    cell: str,
    out: Path | str | None = None,
    judge: str = "embedded",
    agent: str = "embedded",
    answers: str = "per-fault",
    seed: int = 1,
    require: Path | str | None = None,
    package: Package | Path | str | None = None,
    progress: Report | None = None,
) -> RunStore:
    """Run a suite through both stages and return its :class:`~regatta_tools.harness.store.RunStore`.

    ``suite`` is a suite file, ``cell`` a cell of the package. ``judge`` and ``agent`` are model names
    as litellm takes them, ``embedded`` (no key; J_RC and J_D are then the similarity baseline) or
    ``scripted:FILE``. ``answers`` is ``per-fault`` (as published) or ``per-scenario``. ``out`` is the
    run folder, by default ``runs/<suite>-<cell>``. The same call goes on with a run that was broken
    off and repeats no journalled call. ``require`` is a locked file of thresholds, whose hash the run records when it
    starts (see :mod:`regatta_tools.measures.require`).

    Raises :class:`~regatta_tools.errors.InputError` for unusable input, before any call is made, and
    :class:`~regatta_tools.errors.EnvironmentProblem` where the machine or a provider stands in the way.
    """
    if answers not in ("per-fault", "per-scenario"):
        raise InputError(f"answers is {answers!r}", code="U109", mend="use per-fault or per-scenario")
    plan = Plan.make(load_suite(suite), cell, judge, agent, answers, seed, package)
    if require is not None:
        plan.preregister(require)
    folder = Path(out) if out else Path("runs") / f"{plan.suite.id}-{cell}"
    store = RunStore(folder)
    with store:
        store.open_for_writing(plan.manifest(_run_name(folder, f"{plan.suite.id}-{cell}")))
        _Harness(plan, store, progress).everything()
    return store


@dataclass
class Plan:
    """What a run is asked to do."""

    suite: Suite
    cell: Cell
    judge: str
    agent: str
    answers: str
    seed: int
    models: list[dict[str, Any]]
    preregistration: dict[str, str] | None = None

    @classmethod
    def make(cls, suite: Suite, cell: str, judge: str, agent: str, answers: str, seed: int, package: Any) -> Plan:
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
        return cls(suite, chosen, judge, agent, answers, seed, _models(judge, agent))

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
            "arm": "joint",
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
        return out | ({"preregistration": self.preregistration} if self.preregistration else {})


def _models(judge: str, agent: str) -> list[dict[str, Any]]:
    """Who judges what. J_RC and J_D fall to the similarity baseline where the small model would judge.

    That is what measuring both said (docs/embedded-judges.md); a model of the user's own judges itself.
    """
    found = {m: client.check_model(m) for m in dict.fromkeys((judge, agent))}
    out = []
    for stage in (*STAGES, "agent"):
        model = agent if stage == "agent" else judge
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
    def __init__(self, plan: Plan, store: RunStore, progress: Report | None) -> None:
        self.plan, self.store = plan, store
        self.report = progress or (lambda _: None)
        self.by_stage = {m["stage"]: m for m in plan.models}
        self.baseline: similarity.Baseline | None = None
        #: Per model the calls since its last reply that did not reach it; no entry where none ever replied.
        self.unreached: dict[str, list[str]] = {}

    def everything(self) -> None:
        cell, scenarios = self.plan.cell, self.plan.suite.scenarios
        for index, requirement in enumerate(cell.requirements):
            self._tell("rc", index, len(cell.requirements))
            self._scan("rc", requirement, lambda s, r=requirement: self._judge_rc(r, s))
        for index, scenario in enumerate(scenarios):
            self._tell("iss", index, len(scenarios))
            for stage in ("iss", "ac"):
                if self.store.verdict(stage, "", scenario.id) is None:
                    self._rate(stage, scenario)
        for index, fault in enumerate(cell.faults):
            self._tell("design", index, len(cell.faults))
            self._scan("design", fault, lambda s, f=fault: self._judge_design(f, s))
        for index, fault in enumerate(cell.faults):
            self._tell("execution", index, len(cell.faults))
            self._scan("execution", fault, lambda s, f=fault: self._judge_execution(f, s))
        self._tell("execution", len(cell.faults), len(cell.faults))

    def _tell(self, stage: str, done: int, total: int) -> None:
        self.report(Progress(stage, done, total, len(self.store.calls)))

    def _scan(self, stage: str, target: Record, judge: Callable[[Scenario], dict[str, Any]]) -> None:
        for scenario in self.plan.suite.scenarios:
            verdict = self.store.verdict(stage, target.key, scenario.id) or judge(scenario)
            if verdict["outcome"] == "positive":
                return

    # -- judges ----------------------------------------------------------------------------------

    def _judge_rc(self, requirement: Record, scenario: Scenario) -> dict[str, Any]:
        if self.by_stage["rc"]["kind"] == "similarity":
            return self._similar("rc", requirement, scenario)
        messages = prompts.render(
            "rc",
            requirement=requirement_block(requirement),
            breach=requirement["observable_test"],
            scenario=scenario_block(scenario, expected=True),
        )
        return self._ask("rc", requirement.key, scenario, messages)

    def _judge_design(self, fault: Record, scenario: Scenario) -> dict[str, Any]:
        if self.by_stage["design"]["kind"] == "similarity":
            return self._similar("design", fault, scenario)
        block = scenario_block(scenario, expected=True)
        messages = prompts.render("design", scenario=block, **fault_slots(self.plan.cell, fault))
        return self._ask("design", fault.key, scenario, messages)

    def _rate(self, stage: str, scenario: Scenario) -> None:
        values = {"scenario": scenario_block(scenario, expected=False)}
        if stage == "iss":
            record = self.plan.cell.record
            values["industry"] = f"{record['domain']}, {record['jurisdiction']}"
        self._ask(stage, "", scenario, prompts.render(stage, **values))

    def _judge_execution(self, fault: Record, scenario: Scenario) -> dict[str, Any]:
        answers, failed = self._answers(fault, scenario)
        if failed is not None:
            return self._verdict("execution", fault.key, scenario, *failed)
        parts = [("Known to the agent", scenario.context)] if scenario.context else []
        block = prompts.fenced("conversation", parts + answers)
        messages = prompts.render("execution", conversation=block, **fault_slots(self.plan.cell, fault))
        return self._ask("execution", fault.key, scenario, messages)

    def _similar(self, stage: str, target: Record, scenario: Scenario) -> dict[str, Any]:
        self.baseline = self.baseline or similarity.Baseline(self.plan.cell)
        yes, score = self.baseline.verdict(stage, scenario, target.key)
        reading = Reading("positive" if yes else "negative", str(score), "similarity")
        return self._verdict(stage, target.key, scenario, reading, None)

    def _ask(self, stage: str, target: str, scenario: Scenario, messages: tuple[dict[str, str], ...]) -> dict[str, Any]:
        """Ask a judge. A truncated reply without a verdict is asked for once more with more room (case A16)."""
        local = embedded.is_default(self.plan.judge)
        key = f"{stage}|{target}|{scenario.id}|1"
        first = EMBEDDED_TOKENS["judge"] if local else JUDGE_TOKENS
        reply = self._call(key, stage, target, scenario, messages, 0.0, first)
        reading = read_verdict(stage, reply)
        if reading.outcome == "truncated" and not local:
            key += "|roomy"
            reply = self._call(key, stage, target, scenario, messages, 0.0, ROOMY_TOKENS)
            reading = read_verdict(stage, reply)
        return self._verdict(stage, target, scenario, reading, key)

    def _verdict(
        self, stage: str, target: str, scenario: Scenario, reading: Reading, call: str | None
    ) -> dict[str, Any]:
        event: dict[str, Any] = {
            "e": "verdict",
            "stage": stage,
            "target": target or None,
            "scenario": scenario.id,
            "draw": 1,
            "arm": "joint" if stage == "execution" else None,
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

    def _answers(self, fault: Record, scenario: Scenario) -> tuple[list[tuple[str, str]], tuple[Reading, str] | None]:
        """Hold the conversation with the faulty agent, turn by turn.

        Returns (speaker, text) of every turn, and, where a call brought no answer, the missing verdict
        and the key of that call. A refusal or a cut answer of the agent is behaviour and goes to the
        judge like any other. Turns that the scenario gives are named as given: the agent did not say them.
        """
        target = "" if self.plan.answers == "per-scenario" else fault.key
        messages = [{"role": "system", "content": self._agent_prompt(scenario)}]
        parts: list[tuple[str, str]] = []
        local = embedded.is_default(self.plan.agent)
        limit = EMBEDDED_TOKENS["agent"] if local else AGENT_TOKENS
        for number, turn in enumerate(scenario.turns, 1):
            given = turn.speaker == "agent"
            messages.append({"role": "assistant" if given else "user", "content": turn.text})
            parts.append(("Agent, given by the test" if given else "User", turn.text))
            if given or (number < len(scenario.turns) and scenario.turns[number].speaker == "agent"):
                continue
            key = f"agent|{target}|{scenario.id}|1|{number}"
            reply = self._call(key, "agent", target, scenario, tuple(messages), AGENT_TEMPERATURE, limit, str(number))
            answer = reply.text or ("(the agent refused to answer)" if reply.outcome == "refused" else "")
            if reply.outcome not in ("ok", "truncated", "refused") or not answer:
                why = reply.error or f"the agent's call ended as {reply.outcome}"
                return [], (Reading("no-answer", error=why), key)
            messages.append({"role": "assistant", "content": answer})
            parts.append(("Agent", answer))
        return parts, None

    def _agent_prompt(self, scenario: Scenario) -> str:
        """Base prompt, all faults of the cell (the joint arm), fixtures, and the scenario's own context."""
        rules, notes = [], []
        for fault in self.plan.cell.faults:
            own = fault["injection_vi"] if scenario.language == "vi" else ""
            rules.append(f"- {own or fault['injection_en']}")
            if fault["fixture"]:
                notes.append(f"- {fault['fixture']}")
        if scenario.context:
            notes.append(f"- {scenario.context}")
        held = "Records at hand:\n" + "\n".join(notes) if notes else ""
        return prompts.render("agent", persona=self.plan.cell.record["persona"], rules="\n".join(rules), notes=held)[0][
            "content"
        ]

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
    ) -> Reply:
        """Make a call, or take it from the journal where it is already there."""
        model = self.plan.agent if stage == "agent" else self.plan.judge
        seed = _seed(self.plan.seed, key)
        prompt_hash = sha256_json([list(messages), temperature, max_tokens, seed])
        held = self.store.calls.get(key)
        if held is not None and held["prompt_hash"] == prompt_hash:
            return _from_journal(held)
        request = Request(
            model=model,
            messages=messages,
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed,
            schema=None if stage == "agent" else reply_schema(stage),
            purpose={"stage": stage, "target": target, "scenario": scenario.id, "draw": "1", "turn": turn},
        )
        self.store.append({"e": "start", "key": key})
        reply = self._reach(request, key)
        event: dict[str, Any] = {
            "e": "call",
            "key": key,
            "stage": stage,
            "model": self.by_stage[stage]["name"],
            "prompt_hash": prompt_hash,
            "outcome": reply.outcome,
            "text": reply.text,
            "finish_reason": reply.finish_reason,
            "served_model": reply.served_model,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "cost_usd": reply.cost_usd,
            "error": reply.error,
            "attempts": reply.attempts,
        }
        self.store.append({k: v for k, v in event.items() if v is not None})
        return reply

    def _reach(self, request: Request, key: str) -> Reply:
        """Send a request, and stop the run where the model is out of reach, not this call alone.

        That is where the first call to a model does not reach it, or :data:`UNREACHED` calls in a row do
        not. The journal then takes those calls back, so that the same command asks them again.
        """
        try:
            reply = client.complete(request)
        except EnvironmentProblem:
            self.store.append({"e": "stop", "key": key})
            raise
        if not reply.unreachable:
            self.unreached[request.model] = []
            return reply
        out_of_reach = [*self.unreached.get(request.model, []), key]
        if request.model in self.unreached and len(out_of_reach) < UNREACHED:
            self.unreached[request.model] = out_of_reach
            return reply
        for name in out_of_reach:
            self.store.append({"e": "stop", "key": name})
        raise EnvironmentProblem(
            f"the model {request.model!r} does not answer: {reply.error} ({reply.attempts} tries)",
            code="E307",
            mend="see that it can be reached; the same command goes on where it stopped",
        )


def _run_name(folder: Path, otherwise: str) -> str:
    """The name of the folder where the schema takes it as the name of a run (it does not take `.` or spaces)."""
    name = folder.resolve().name
    return name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) else otherwise


def _from_journal(event: dict[str, Any]) -> Reply:
    names = (
        "outcome",
        "text",
        "finish_reason",
        "served_model",
        "prompt_tokens",
        "completion_tokens",
        "cost_usd",
        "error",
    )
    return Reply(**{name: event[name] for name in names if name in event}, attempts=event.get("attempts", 1))


def _seed(seed: int, key: str) -> int:
    """A seed for one call, the same on every machine and in every order of calls."""
    return int.from_bytes(hashlib.sha256(json.dumps([seed, key]).encode()).digest()[:4], "big") >> 1
