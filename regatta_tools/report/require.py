"""What became of thresholds, for people."""

from __future__ import annotations

from typing import Any

from regatta_tools.report.wrapping import wrap

WORDS = {"met": "MET", "not-met": "NOT MET", "undecided": "UNDECIDED"}
FIXED = {
    "recorded": "fixed before the run",
    "before": "dated before the run",
    "changed": "CHANGED SINCE THEY WERE LOCKED",
    "other": "NOT THOSE THAT THE RUN RECORDED",
    "afterwards": "FIXED AFTERWARDS",
    "unlocked": "NEVER LOCKED",
}


def as_text(decision: dict[str, Any]) -> str:
    """A decision (class ``Decision``) for a terminal of any width from 40 columns."""
    lines = wrap(f"Thresholds {decision['thresholds_id']}: {WORDS[decision['outcome']]}", "", "  ")
    lines += wrap(f"{FIXED[decision['fixed']]}: {decision['reason']}", "  ", "    ")
    for result in decision["results"]:
        ends = [f"{key.replace('_', ' ')} {result[key]:g}" for key in ("at_least", "at_most") if key in result]
        asked = " and ".join(ends) or ", ".join(result["targets"])
        lines += wrap(f"{WORDS[result['outcome']]:<10} {result['measure']} {asked}: {result['reason']}", "  ", "    ")
    return "\n".join(lines)
