"""What a run would take, before anything is spent: calls, tokens, money, and which text goes to whom.

The plan is made by the harness itself: the run is played in a temporary folder by a script that finds nothing, so that
every scan goes to its end, and the prompts that it makes are counted. So calls are bounds: exact for an exhaustive
scan, and for a first-success scan what the worst suite takes. Beside them stands one more call for each reply that the
token limit cuts (case A16); how many those are, no plan knows.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regatta_tools.harness.kept import prompts
from regatta_tools.llm import embedded
from regatta_tools.llm.prices import Prices, pinned, tokens_at_most

#: An answer and a verdict of usual length, in tokens: assumptions of the estimate, not of the bound.
ANSWER_TOKENS, VERDICT_TOKENS = 250, 16
#: What stands for the agent's answer in the prompts that are counted.
_FILLER = "An answer of the agent stands here."
_REPLIES = [
    {"when": {"stage": "rc"}, "text": '{"covered": false}'},
    {"when": {"stage": "iss"}, "text": '{"score": 3}'},
    {"when": {"stage": "ac"}, "text": '{"category": "none"}'},
    {"when": {"stage": "design"}, "text": '{"exposed": false}'},
    {"when": {"stage": "execution"}, "text": '{"manifested": false}'},
    {"when": {}, "text": _FILLER},
]


def plan(
    suite: Path | str, *, cell: str, judge: str = "embedded", agent: str = "embedded", prices: Prices | None = None,
    count: Callable[[str], int] | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Plan a run; ``options`` are those of :func:`regatta_tools.run` (answers, arms, draws, scan, package ...).

    Returns ``judge_calls_max``, ``agent_calls_max``, ``retries_max`` (judge calls that a cut reply would ask once
    more), ``by_stage`` (calls for each stage), ``tokens`` and ``usd`` (each ``estimate`` and ``max``; the price is
    ``None`` where it is not known), ``models`` (the same for each model), ``sends`` (lines: which text goes to whom)
    and ``assumes``. Tokens are counted with ``cl100k_base``, the bound by bytes. Asks no model and needs no key. Raises
    :class:`~regatta_tools.errors.InputError` for unusable input, as the run would.
    """
    import regatta_tools
    from regatta_tools.generation import tokens
    from regatta_tools.harness.store import RunStore
    from regatta_tools.llm.disclosure import disclosure

    prices, count = prices or pinned(), count or tokens.count
    with tempfile.TemporaryDirectory(prefix="regatta-plan-") as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"replies": _REPLIES}), encoding="utf-8")
        who = f"scripted:{script}"
        store: RunStore = regatta_tools.run(suite, cell=cell, judge=who, agent=who, out=Path(folder) / "run", **options)
        sent = {p["prompt_hash"]: p for p in prompts(store.folder)}
        calls = list(store.calls.values())
    # The similarity baseline of the embedded default asks no model.
    free = {"rc", "design"} if embedded.is_default(judge) else set()
    calls = [c for c in calls if c["stage"] not in free]
    stages = Counter(c["stage"] for c in calls)
    sides = {"judge": _Side(judge), "agent": _Side(agent)}
    for call in calls:
        sides["agent" if call["stage"] == "agent" else "judge"].add(sent[call["prompt_hash"]], call["stage"], count)
    models = [{"part": part, "model": side.model} | side.row(prices) for part, side in sides.items()]
    plays: dict[str, list[str]] = {}
    for part, side in sides.items():
        plays.setdefault(side.model, []).append(part)
    return {
        "suite": str(store.manifest["suite"]),
        "cell": cell,
        "scenarios": len(store.manifest["scenarios"]),
        "judge_calls_max": sides["judge"].calls,
        "agent_calls_max": sides["agent"].calls,
        "retries_max": 0 if embedded.is_default(judge) else sides["judge"].calls,
        "by_stage": dict(stages),
        "tokens": {k: sum(m["tokens"][k] for m in models) for k in ("estimate", "max")},
        "usd": {
            k: None if any(m["usd"][k] is None for m in models) else round(sum(m["usd"][k] for m in models), 6)
            for k in ("estimate", "max")
        },
        "models": models,
        "sends": disclosure(plays),
        "prices": {"dated": prices.dated, "source": prices.source, "sha256": prices.sha256},
        "assumes": f"estimate: answers of {ANSWER_TOKENS} tokens, verdicts of {VERDICT_TOKENS}; max: every reply as "
        "long as its limit, prompts by bytes",
    }


class _Side:
    """The calls to judge or agent, added up."""

    def __init__(self, model: str) -> None:
        self.model, self.calls = model, 0
        self.prompt = self.prompt_max = self.reply = self.reply_max = 0

    def add(self, sent: dict[str, Any], stage: str, count: Callable[[str], int]) -> None:
        messages = sent["messages"]
        answers = sum(m["content"].count(_FILLER) for m in messages)
        self.calls += 1
        self.prompt += sum(count(m["content"]) for m in messages) + answers * ANSWER_TOKENS
        # An answer is as long as the agent's limit at most; what it has in bytes, the next prompt has in tokens.
        self.prompt_max += tokens_at_most(messages) + answers * _LONGEST
        self.reply += ANSWER_TOKENS if stage == "agent" else VERDICT_TOKENS
        self.reply_max += int(sent["max_tokens"])

    def row(self, prices: Prices) -> dict[str, Any]:
        usd = [prices.cost(self.model, *t) for t in ((self.prompt, self.reply), (self.prompt_max, self.reply_max))]
        return {
            "calls": self.calls,
            "tokens": {"estimate": self.prompt + self.reply, "max": self.prompt_max + self.reply_max},
            "usd": dict(zip(("estimate", "max"), (None if u is None else round(u, 6) for u in usd))),
        }


#: Tokens that an answer of 1,024 tokens has at most for another model's tokenizer: it is taken to have at most eight
#: bytes a token.
_LONGEST = 8 * 1024
