"""A plan of a run, and stored runs, as text."""

from __future__ import annotations

from typing import Any

_STAGES = {
    "rc": "coverage of requirements",
    "iss": "specificity",
    "ac": "attacks",
    "design": "faults as designed",
    "execution": "faults as run",
    "agent": "answers of the agent",
}

_HEAD = (
    "key", "stage", "model", "served_model", "outcome", "finish_reason", "error", "attempts", "prompt_tokens",
    "completion_tokens", "cost_usd", "cached",
)  # fmt: skip


def as_text(plan: dict[str, Any]) -> str:
    """The plan as lines for people."""
    lines = [
        f"{plan['suite']} on {plan['cell']}, {plan['scenarios']} scenarios: at most {plan['judge_calls_max']:,} judge "
        f"calls and {plan['agent_calls_max']:,} agent calls",
        *(f"  {_STAGES.get(stage, stage)}: {n:,}" for stage, n in plan["by_stage"].items()),
    ]
    if plan["retries_max"]:
        lines.append("  a judge's reply that its token limit cuts is asked for once more, beside these")
    for row in plan["models"]:
        usd = row["usd"]
        price = "no price known" if usd["max"] is None else f"about ${usd['estimate']:.2f}, at most ${usd['max']:.2f}"
        lines.append(
            f"{row['part']} {row['model']}: {row['calls']:,} calls, about {row['tokens']['estimate']:,} tokens, {price}"
        )
    lines.append(f"prices: {plan['prices']['source']}, {plan['prices']['dated']}; {plan['assumes']}")
    return "\n".join([*lines, *(plan["sends"] or ["nothing leaves this machine"])])


def runs_as_text(rows: list[dict[str, Any]]) -> str:
    """One line a run."""
    if not rows:
        return "no runs here"
    out = []
    for row in rows:
        if "problem" in row:
            out.append(f"{row['folder']}: {row['problem']}")
            continue
        missing = ", ".join(f"{n} {kind}" for kind, n in row["missing"].items())
        price = "price not known" if row["usd"] is None else f"${row['usd']:.4f}"
        state = "complete" if row["complete"] else f"{row['pending']} judgements to be made"
        out.append(
            f"{row['folder']}: {row['suite']} on {row['cell']}, {state}, {row['calls']} calls, {price}"
            + (f", without a verdict: {missing}" if missing else "")
        )
    return "\n".join(out)


def call_as_text(found: dict[str, Any]) -> str:
    """A call: prompt, reply, and what was read in it."""
    call = found["call"]
    head = [f"{name}: {call[name]}" for name in _HEAD if name in call]
    prompt = found["prompt"]
    if prompt is None:
        sent = ["-- the prompt was not kept --"]
    else:
        settings = ", ".join(f"{k} {prompt[k]}" for k in ("temperature", "max_tokens", "seed") if prompt[k] is not None)
        fits = "" if found["prompt_fits"] else " (its hash is not the journal's: changed since)"
        sent = [f"-- sent ({settings}){fits} --"]
        for message in prompt["messages"]:
            sent += [f"[{message['role']}]", message["content"]]
    read = [
        f"verdict {v['stage']} {v.get('target', '')} {v['scenario']}: {v['outcome']}"
        + "".join(f", {n} {v[n]}" for n in ("value", "rung", "error") if n in v)
        for v in found["verdicts"]
    ]
    return "\n".join(
        [*head, *sent, "-- came back --", call.get("text", ""), "-- read in it --", *(read or ["nothing"])]
    )
