"""Suites written by a model: asked in batches, read, checked, freed of near-duplicates, topped up.

One suite is a cell, a strategy, a language and a repeat. Its calls are made one after the other, so that the same
replies give the same suite; each is journalled, and the same command goes on where it stopped without asking again.
What a reply lacks, what is malformed, in the wrong language or there already is counted, never mended in silence.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools import __version__
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.files import cannot_write, replace_file
from regatta_tools.generation import duplicates, form, prompts
from regatta_tools.generation.context import Context, HoldOut, context_of, hold_out
from regatta_tools.generation.journal import Journal
from regatta_tools.generation.strategies import Prompt, build
from regatta_tools.llm import client, embedded, scripted
from regatta_tools.llm.types import Reply, Request
from regatta_tools.tables.package import Package
from regatta_tools.text import sha256_json

#: As published (protocol, section 4).
TEMPERATURE = 0.3
#: Scenarios of one call, and rounds in which missing ones are asked for again.
BATCH, TOP_UPS = 10, 3
#: Room for the reply: tokens of one scenario by language, and of the whole.
SCENARIO_TOKENS, MOST_TOKENS = {"en": 600, "vi": 1100}, 12_000
TIMEOUT = 600.0
#: The embedded model holds 4,096 tokens and is slow: one scenario a call, and a small prompt.
SMALL_TOKENS, SMALL_BUDGET = 420, {"en": 700, "vi": 800}
#: Words of a scenario's opening in the list of those that are written already.
OPENING = 15
POOR = (
    "written by a very small model that was held to sentences of the language: it shows the way, and the suite is poor "
    "and tests nothing"
)
RECEIPT_VERSION = "1"


@dataclass(frozen=True)
class Progress:
    """How far a suite is: scenarios that it has of ``n``, and calls made for it."""

    suite: str
    done: int
    n: int
    calls: int


@dataclass
class Made:
    """One suite after generation. ``path`` is ``None`` where it has no scenario; ``counts`` as in the receipt."""

    name: str
    path: Path | None
    receipt: Path
    n: int
    scenarios: int
    unpaired: int
    counts: dict[str, dict[str, int]]
    calls: int
    notes: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.scenarios == self.n and not self.unpaired

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "path": str(self.path) if self.path else None, "receipt": str(self.receipt),
            "asked_for": self.n, "scenarios": self.scenarios, "complete": self.complete, "counts": self.counts,
            "calls": self.calls, "notes": self.notes,
        }  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One suite to be made. ``whole`` is the context before the hold-out."""

    context: Context
    whole: Context
    held: HoldOut
    strategy: str
    repeat: int
    model: str
    generator: str
    known: dict[str, Any]
    n: int
    seed: str
    budget: int | None
    batch: int
    pairs: bool
    folder: Path

    @property
    def file(self) -> str:
        cell = self.context.cell
        leading = cell.record["languages"].split("-")[0]
        language = "" if self.context.language == leading else f"-{self.context.language}"
        return f"{cell.id}-{self.strategy}{language}{'-pairs' if self.pairs else ''}-r{self.repeat}"

    @property
    def suite(self) -> str:
        """The id: as the file, with the generator, so that no two suites of a comparison share it."""
        return f"{self.file}-{self.generator}".lower().replace("_", "-").replace(".", "-")

    @property
    def small(self) -> bool:
        return embedded.is_default(self.model)

    def path(self, end: str) -> Path:
        return self.folder / f"{self.file}{end}"

    def prompt(self, n: int, start: int) -> Prompt:
        if not self.small or self.budget is not None:
            return build(
                self.context, self.strategy, n, budget=self.budget, held=self.held, whole=self.whole, start=start
            )
        try:
            budget = SMALL_BUDGET[self.context.language]
            return build(self.context, self.strategy, n, budget=budget, held=self.held, whole=self.whole, start=start)
        except InputError as error:
            least = re.search(r"\d+$", error.mend)
            if error.code != "U232" or least is None:
                raise
            budget = int(least[0])
            return build(self.context, self.strategy, n, budget=budget, held=self.held, whole=self.whole, start=start)

    def plan(self) -> dict[str, Any]:
        """What the journal is held to: equal words, or the suite does not go on."""
        small = self.context.language if self.small else None
        return {
            "suite": self.suite, "cell": self.context.cell.id, "strategy": self.strategy, "repeat": self.repeat,
            "language": self.context.language, "pairs": self.pairs, "model": self.known["name"],
            "fingerprint": self.known.get("fingerprint"), "n": self.n, "seed": self.seed, "temperature": TEMPERATURE,
            "budget_tokens": self.budget, "hold_out": len(self.held.rules), "batch": self.batch,
            "hashes": {"context": self.context.hash, "prompts": prompts.digest(),
                       "form": sha256_json(form.reply_schema(self.batch, small=small))},
        }  # fmt: skip


@dataclass
class Plan:
    """Suites to be made, before anything is asked. ``calls`` is the least number of calls that they take, and
    ``most`` the greatest; ``tokens`` what the prompts of the least have together."""

    jobs: list[Job]
    model: str
    folder: Path
    calls: int
    most: int
    tokens: int

    def run(self, progress: Callable[[Progress], None] | None = None) -> Iterator[Made]:
        """Make the suites one after the other. Raises :class:`EnvironmentProblem` where the model is out of reach."""
        import filelock

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(str(self.folder / ".lock"), timeout=0)
            lock.acquire()
        except filelock.Timeout as error:
            raise EnvironmentProblem(
                "another process writes to this folder", code="E306", place=str(self.folder),
                mend="wait for it, or use --out",
            ) from error  # fmt: skip
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        try:
            reached = client.Reach(self.model)
            for job in self.jobs:
                yield _Maker(job, reached, progress or (lambda _: None)).make()
        finally:
            lock.release()


def plan(
    *,
    cell: str | Iterable[str],
    strategy: str | Iterable[str],
    model: str,
    n: int = 30,
    repeat: int = 3,
    seed: str | int = "0",
    language: str | None = None,
    budget: int | None = None,
    hold_out: int = 0,
    batch: int | None = None,
    pairs: bool = False,
    out: Path | str | None = None,
    package: Any = None,
) -> Plan:
    """What ``regatta generate`` would make; nothing is asked or written.

    ``cell`` and ``strategy`` are one name or several, ``out`` is the folder of the suites (default:
    ``suites/<generator>``), ``batch`` the scenarios of one call. Raises :class:`InputError` for what cannot be made
    (U103, U230 to U235, U238) and what the model's name says (U106), :class:`EnvironmentProblem` for a missing key.
    """
    from regatta_tools.validation.run import load

    cells = [cell] if isinstance(cell, str) else list(cell)
    strategies = [strategy] if isinstance(strategy, str) else list(strategy)
    for name, value in (("repeat", repeat), ("batch", 1 if batch is None else batch)):
        if value < 1:
            raise InputError(f"{name} is {value}", code="U235", mend="give at least 1")
    held = package if isinstance(package, Package) else load(package)
    known = client.check_model(model)
    generator = generator_name(model, known)
    folder = Path(out) if out else Path("suites") / generator
    size = 1 if embedded.is_default(model) else batch or BATCH
    jobs = []
    for one in cells:
        whole = context_of(held, one, language)
        if pairs and len(whole.cell.record["languages"].split("-")) < 2:
            what = f"the cell {one} is written in one language, so there are no pairs"
            raise InputError(what, code="U238", mend="leave --pairs out, or take a Vietnamese cell")
        context, taken = hold_out_of(whole, hold_out, str(seed))
        jobs += [
            Job(context, whole, taken, name, number, model, generator, known, n, str(seed), budget, size, pairs, folder)
            for name in dict.fromkeys(strategies)
            for number in range(1, repeat + 1)
        ]
    calls = most = tokens = 0
    for job in jobs:
        first = job.prompt(min(job.batch, n), 0)
        asked = max(1, min(first.asked, job.batch))
        rounds = -(-n // asked)
        more = n if pairs else 0
        calls, most = calls + rounds + more, most + (rounds + 2 * more) * (1 + TOP_UPS)
        tokens += rounds * first.tokens
    return Plan(jobs, model, folder, calls, most, tokens)


#: So that the option of :func:`plan` may have the same name.
hold_out_of = hold_out


def generate(**options: Any) -> list[Made]:
    """Make suites; ``options`` are those of :func:`plan`, and ``progress``. Sends text to the model that is named."""
    progress = options.pop("progress", None)
    return list(plan(**options).run(progress))


def generator_name(model: str, known: dict[str, Any]) -> str:
    """The name of a generator in comparisons: letters, digits, dots and hyphens."""
    if scripted.is_scripted(model):
        return f"scripted-{known['fingerprint'][:8]}"
    name = re.sub(r"[^A-Za-z0-9.]+", "-", known["name"]).strip("-.")
    return name or "model"


class _Maker:
    """Makes one suite."""

    def __init__(self, job: Job, reach: client.Reach, tell: Callable[[Progress], None]) -> None:
        self.job, self.reach, self.tell = job, reach, tell
        self.language = job.context.language
        self.accepted: list[dict[str, Any]] = []
        self.runs: list[duplicates.Runs] = []
        self.replies: Counter[str] = Counter()
        self.items: Counter[str] = Counter()
        self.calls: list[dict[str, Any]] = []
        self.prompts: dict[str, dict[str, Any]] = {}
        self.cost: float | None = 0.0

    def make(self) -> Made:
        job = self.job
        with Journal(job.path(".journal.jsonl"), job.plan()) as self.journal:
            start = 0
            for number in range(1 + TOP_UPS):
                missing = job.n - len(self.accepted)
                while missing > 0 and len(self.accepted) < job.n:
                    prompt = job.prompt(min(job.batch, missing), start)
                    asked = min(prompt.asked, missing)
                    self._ask(prompt, asked, number, start)
                    start, missing = start + asked, missing - asked
            scenarios = self._paired() if job.pairs else [self._entry(i, s) for i, s in enumerate(self.accepted, 1)]
            resent = self.journal.resent
        return self._write(scenarios, resent)

    # -- asking ----------------------------------------------------------------------------------

    def _ask(self, prompt: Prompt, asked: int, number: int, start: int) -> None:
        key = f"{number}|{start}|{asked}"
        text = prompt.text
        if self.accepted and not self.job.small:
            lines = "\n".join(f"- {_opening(s)}" for s in self.accepted)
            text += "\n\n" + prompts.render("already", self.language, lines=lines)
        small = self.language if self.job.small else None
        reply = self._call(key, text, asked, self.language, form.reply_schema(asked, small=small))
        reading = form.read_reply(reply)
        self.replies[reading.outcome] += 1
        fits = len(reading.items) == len(prompt.cases) == asked
        entry: dict[str, Any] = {
            "key": key, "round": number, "asked": asked, "prompt": prompt.receipt.hashes["prompt"],
            "outcome": reading.outcome, "rung": reading.rung, "why": reading.why, "items": len(reading.items),
            "already_listed": len(self.accepted) if text != prompt.text else 0, "rejected": [],
        }  # fmt: skip
        self.prompts.setdefault(entry["prompt"], {"tokens": prompt.tokens, "receipt": prompt.receipt.as_dict()})
        self.items["asked"] += asked
        self.items["missing"] += max(0, asked - len(reading.items))
        for at, raw in enumerate(reading.items):
            self._take(raw, at, prompt.cases[at].items if fits else (), entry)
        self.calls.append({k: v for k, v in entry.items() if v not in ("", [])})
        self.tell(Progress(self.job.file, len(self.accepted), self.job.n, len(self.calls)))

    def _take(self, raw: Any, at: int, drawn: tuple[str, ...], entry: dict[str, Any]) -> None:
        self.items["received"] += 1
        item = form.read_item(raw, self.language)
        outcome, why = item.outcome, item.why
        if outcome == "accepted":
            runs = duplicates.runs(item.value, self.language)
            twin = duplicates.twin_of(runs, self.runs)
            if twin is not None:
                outcome, why = "duplicate", f"of {_name(twin + 1)}"
            elif len(self.accepted) == self.job.n:
                outcome, why = "surplus", "there are enough"
            else:
                if drawn:
                    item.value.setdefault("claims", {})["items"] = list(drawn)
                self.accepted.append(item.value)
                self.runs.append(runs)
        self.items[outcome] += 1
        if outcome != "accepted":
            entry["rejected"].append({"item": at + 1, "outcome": outcome, "why": why})

    def _call(self, key: str, text: str, asked: int, language: str, schema: dict[str, Any]) -> Reply:
        job = self.job
        room = SMALL_TOKENS if job.small else min(MOST_TOKENS, 200 + asked * SCENARIO_TOKENS[language])
        words = [job.seed, job.context.cell.id, job.strategy, job.context.language, job.repeat, key]
        seed = int.from_bytes(hashlib.sha256(json.dumps(words).encode()).digest()[:4], "big") >> 1
        messages = ({"role": "user", "content": text},)
        prompt_hash = sha256_json([list(messages), TEMPERATURE, room, seed])
        reply = self.journal.held(key, prompt_hash)
        if reply is None:
            purpose = {"stage": "generate", "target": job.strategy, "scenario": job.context.cell.id,
                       "draw": str(job.repeat), "turn": key}  # fmt: skip
            request = Request(job.model, messages, TEMPERATURE, room, seed, schema, TIMEOUT, purpose)
            self.journal.append({"e": "start", "key": key})
            try:
                reply = client.complete(request)
                self.reach.told(reply)
            except EnvironmentProblem:
                self.journal.append({"e": "stop", "key": key})
                raise
            self.journal.keep(key, prompt_hash, reply)
        self.cost = None if self.cost is None or reply.cost_usd is None else self.cost + reply.cost_usd
        return reply

    # -- pairs -----------------------------------------------------------------------------------

    def _paired(self) -> list[dict[str, Any]]:
        """Every scenario with its version in the other language, each asked for until it fits, a bounded time."""
        job = self.job
        other = next(n for n in job.context.cell.record["languages"].split("-") if n != self.language)
        small = other if job.small else None
        entries = []
        for at, scenario in enumerate(self.accepted, 1):
            name = _name(at)
            said = {key: scenario[key] for key in form.WRITTEN if key in scenario}
            said["claims"] = {k: v for k, v in said.pop("claims", {}).items() if k in form.CLAIMED}
            shown = json.dumps(said, ensure_ascii=False, indent=1)
            text = prompts.render("translate", other, scenario=shown)
            version, outcome, why = None, "", ""
            for number in range(1 + TOP_UPS):
                key = f"pair|{at}|{number}"
                reading = form.read_reply(self._call(key, text, 1, other, form.reply_schema(1, small=small)))
                self.replies[reading.outcome] += 1
                version, outcome, why = _version(reading, scenario, other)
                self.items[f"pair {outcome}"] += 1
                entry = {"key": key, "pair": name, "outcome": reading.outcome, "version": outcome, "why": why}
                self.calls.append({k: v for k, v in entry.items() if v})
                if version is not None:
                    break
            self.tell(Progress(job.file, at, job.n, len(self.calls)))
            if version is None:
                entries.append(self._entry(at, scenario))
                continue
            entries.append({**self._entry(at, scenario), "id": f"{name}-{self.language}", "pair": name})
            entries.append({**self._entry(at, version), "id": f"{name}-{other}", "language": other, "pair": name})
        return entries

    def _entry(self, at: int, scenario: dict[str, Any]) -> dict[str, Any]:
        order = ("context", "turns", "expected", "claims")
        return {"id": _name(at), "language": self.language, **{k: scenario[k] for k in order if k in scenario}}

    # -- writing ---------------------------------------------------------------------------------

    def _write(self, scenarios: list[dict[str, Any]], resent: int) -> Made:
        job, notes = self.job, []
        unpaired = sum("pair" not in s for s in scenarios) if job.pairs else 0
        if job.small:
            notes.append(POOR)
        if short := job.n - len(self.accepted):
            notes.append(f"{short} of {job.n} scenarios are missing after {TOP_UPS} rounds of topping up")
        if unpaired:
            notes.append(f"{unpaired} scenarios have no version in the other language")
        if resent:
            notes.append(f"{resent} call(s) in flight at a kill were sent again")
        counts = {"replies": dict(sorted(self.replies.items())), "items": dict(sorted(self.items.items()))}
        receipt: dict[str, Any] = {
            "schema_version": RECEIPT_VERSION,
            "suite": job.suite,
            "file": f"{job.file}.yaml" if scenarios else None,
            "suite_hash": None,
            "asked_for": job.n,
            "scenarios": len(self.accepted),
            "complete": len(self.accepted) == job.n and not unpaired,
            "plan": job.plan(),
            "regatta": __version__,
            "counts": counts,
            "cost_usd": self.cost,
            "receipt": _told(self.prompts, job.whole),
            "prompts": self.prompts,
            "calls": self.calls,
            "notes": notes,
        }
        path = job.path(".yaml")
        if scenarios:
            value = {"id": job.suite, "cell": job.context.cell.id, "language": self.language, "scenarios": scenarios}
            receipt["suite_hash"] = _checked(value)
        raw = (json.dumps(receipt, ensure_ascii=False, indent=1) + "\n").encode("utf-8")
        replace_file(job.path(".receipt.json"), raw)
        if scenarios:
            origin = {
                "generator": job.generator, "strategy": job.strategy, "repeat": job.repeat, "model": job.known["name"],
                "fingerprint": job.known.get("fingerprint"), "temperature": TEMPERATURE, "seed": job.seed,
                "regatta": __version__, "prompts": prompts.digest(), "context_hash": job.context.hash,
                "receipt": hashlib.sha256(raw).hexdigest(), "note": POOR if job.small else None,
            }  # fmt: skip
            scenarios = value.pop("scenarios")
            value |= {"made_with": {k: v for k, v in origin.items() if v is not None}, "scenarios": scenarios}
            _checked(value)
            replace_file(path, as_yaml(value))
        return Made(
            job.file, path if scenarios else None, job.path(".receipt.json"), job.n, len(self.accepted), unpaired,
            counts, len(self.calls), notes,
        )  # fmt: skip


def _name(number: int) -> str:
    return f"s{number:02d}"


def _opening(scenario: dict[str, Any]) -> str:
    words = scenario["turns"][0]["text"].split()
    return " ".join(words[:OPENING]) + (" ..." if len(words) > OPENING else "")


def _version(
    reading: form.Reading, scenario: dict[str, Any], language: str
) -> tuple[dict[str, Any] | None, str, str]:
    """The other version of a scenario, or why a reply is none: it has to have the same turns and the same numbers."""
    if len(reading.items) != 1:
        return None, "no-version", reading.why or f"{len(reading.items)} scenarios"
    item = form.read_item(reading.items[0], language)
    if item.outcome != "accepted":
        return None, item.outcome, item.why
    speakers = [[turn["speaker"] for turn in value["turns"]] for value in (scenario, item.value)]
    if speakers[0] != speakers[1] or bool(scenario.get("context")) != bool(item.value.get("context")):
        return None, "other-turns", "the versions do not have the same turns or context"
    if form.numbers(scenario) != form.numbers(item.value):
        return None, "other-numbers", "the versions do not have the same numbers"
    if drawn := scenario.get("claims", {}).get("items"):
        item.value.setdefault("claims", {})["items"] = drawn
    return item.value, "accepted", ""


def _told(seen: dict[str, dict[str, Any]], whole: Context) -> dict[str, Any]:
    """Every item of the cell once: in how many of the prompts it stood, or why in none (as the first prompt has it)."""
    receipts = [entry["receipt"] for entry in seen.values()]
    times = Counter(e["id"] for r in receipts for e in r["included"])
    reasons = {e["id"]: e["reason"] for r in reversed(receipts) for e in r["left_out"]}
    return {
        "prompts": len(receipts),
        "hold_out": receipts[0]["hold_out"] if receipts else None,
        "included": [{"id": i.id, "kind": i.kind, "prompts": times[i.id]} for i in whole.items if times[i.id]],
        "left_out": [{"id": i.id, "kind": i.kind, "reason": reasons.get(i.id, "nothing was asked")}
                     for i in whole.items if not times[i.id]],
    }  # fmt: skip


def _checked(value: dict[str, Any]) -> str:
    """The hash of a suite, read back by the reader of suites. Raises :class:`InputError` where it does not take it."""
    from regatta_tools.suites.reader import load_suite

    with tempfile.TemporaryDirectory(prefix="regatta-suite-") as folder:
        path = Path(folder) / "suite.yaml"
        path.write_bytes(as_yaml(value))
        read = load_suite(path)
    same = [[t.text for t in s.turns] for s in read.scenarios]
    if same != [[t["text"] for t in s["turns"]] for s in value["scenarios"]]:
        raise AssertionError("a suite is read otherwise than it was written")
    return read.hash


def as_yaml(value: dict[str, Any]) -> bytes:
    """A suite as YAML that YAML 1.1 and 1.2 read alike: what could be a number or a word of the syntax is quoted."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: Any, content: str) -> Any:
        plain = re.match(r"[^\W\d_]", content) and "\n" not in content
        return dumper.represent_scalar("tag:yaml.org,2002:str", content, style=None if plain else '"')

    Dumper.add_representer(str, text)
    return yaml.dump(value, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=110).encode("utf-8")
