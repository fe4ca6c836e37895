"""What ``regatta generate`` is about to do and has done, for people."""

from __future__ import annotations

from collections.abc import Sequence

from regatta_tools.generation.making import Made, Plan

_OUTCOMES = ("malformed", "wrong-language", "duplicate", "surplus", "missing")


def plan_text(plan: Plan, sends: Sequence[str]) -> str:
    """Suites, calls and tokens, and which text goes to whom."""
    suites = len(plan.jobs)
    lines = [f"{suites} suite{'s' * (suites != 1)} to {plan.folder}: {plan.calls} calls at least, {plan.most} at most; "
             f"{plan.tokens:,} tokens of prompts at least"]  # fmt: skip
    return "\n".join([*lines, *(sends or ["nothing leaves this machine"])])


def made_text(made: Made) -> str:
    """One suite: how many scenarios, and what became of replies and items."""
    where = str(made.path) if made.path else "no suite was written"
    lines = [f"{made.name}: {made.scenarios} of {made.n} scenarios, {made.calls} calls ({where})"]
    replies = {k: v for k, v in made.counts["replies"].items() if k != "read"}
    items = {k: made.counts["items"].get(k, 0) for k in _OUTCOMES}
    pairs = {k: v for k, v in made.counts["items"].items() if k.startswith("pair ")}
    for name, counts in (("replies", replies), ("items", items), ("versions", pairs)):
        if said := ", ".join(f"{v} {k.removeprefix('pair ')}" for k, v in counts.items() if v):
            lines.append(f"  {name}: {said}")
    return "\n".join([*lines, *(f"  note: {note}" for note in made.notes), f"  receipt: {made.receipt}"])
