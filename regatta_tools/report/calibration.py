"""Calibrations, corrected rates and panels of judges, for people."""

from __future__ import annotations

from typing import Any

from regatta_tools.report.agreement import _group
from regatta_tools.report.wrapping import wrap

NAMES = {"rc": "J_RC, coverage", "design": "J_D, design", "execution": "J_E, execution"}


def as_text(calibration: dict[str, Any]) -> str:
    """An object of the class ``Calibration`` for a terminal."""
    lines = wrap(f"Calibration of {calibration['judge']} on gold probes", "", "  ")
    for who in calibration["labelled_by"]:
        kind = {"ai": "an AI", "human": "a person", "lawyer": "a lawyer", "machine": "a program"}[who["labeller_kind"]]
        lines += wrap(f"labelled by {who['labeller']} ({kind}): {who['label_count']} labels", "  ", "    ")
    stage = ""
    for part in calibration["parts"]:
        if part["stage"] != stage:
            stage = part["stage"]
            lines += ["", NAMES[stage]]
        lines += wrap(f"{_where(part)}: {part['labelled_pairs']} pairs", "  ", "    ")
        lines += wrap(f"sensitivity {_share(part['sensitivity'], part['missing_yes'])}", "      ", "        ")
        lines += wrap(f"specificity {_share(part['specificity'], part['missing_no'])}", "      ", "        ")
        if part["missing_verdicts"]:
            kinds = ", ".join(f"{m['outcome']} {m['verdict_count']}" for m in part["missing_verdicts"])
            lines += wrap(f"no verdict: {kinds}", "      ", "        ")
        if part["contested"]:
            lines += wrap(f"{part['contested']} pair(s) on which labellers differ are left out", "      ", "        ")
    lines += ["", "Before you use this"]
    for note in calibration["notes"]:
        lines += wrap(note, "  - ", "    ")
    lines += wrap(f"The judge as it was asked: {calibration['judge_hash'][:16]}", "  - ", "    ")
    return "\n".join(lines)


def _where(part: dict[str, Any]) -> str:
    words = [part.get("cell") or "all cells"]
    if part.get("language"):
        words.append(f"in {part['language']}")
    if part.get("near_miss") is not None:
        words.append("near misses" if part["near_miss"] else "without near misses")
    return ", ".join(words)


def _share(figure: dict[str, Any], lost: int) -> str:
    missing = ""
    if lost:
        missing = f"; with missing verdicts {figure['bound_low']:.2f} to {figure['bound_high']:.2f}"
    if figure["value"] is None:
        return f"undefined: {figure['reason']}{missing}"
    span = f"[{figure['low']:.2f}, {figure['high']:.2f}]"
    return f"{figure['value']:.2f}  {span}  n={figure['pairs_judged']}{missing}"


def of_run_text(rates: list[dict[str, Any]]) -> str:
    """What :func:`regatta_tools.harness.calibration.of_run` gives, for a terminal."""
    lines = ["Corrected for the judge's errors on gold probes"]
    for entry in rates:
        arm = f", {entry['arm']}" if entry["arm"] else ""
        lines += wrap(f"{NAMES[entry['stage']]}{arm}", "  ", "    ")
        probes, scan = entry["probes"], entry["scan"]
        if probes["value"] is None:
            lines += wrap(f"rate over probes: not corrected: {probes['reason']}", "    ", "      ")
        else:
            text = f"rate over probes: {probes['observed']:.3f} observed, {probes['value']:.3f} corrected"
            cut = ", put to the end of the scale" if probes["clipped"] else ""
            lines += wrap(f"{text} [{probes['low']:.3f}, {probes['high']:.3f}]{cut}", "    ", "      ")
        if scan["at_least"] is None:
            if scan["reason"] != probes.get("reason"):
                lines += wrap(f"rate over targets: not corrected: {scan['reason']}", "    ", "      ")
        else:
            text = f"rate over targets: at least {scan['at_least']:.3f}, were probes independent"
            lines += wrap(text, "    ", "      ")
    return "\n".join(lines)


def panel_text(result: dict[str, Any]) -> str:
    """What :func:`regatta_tools.harness.panel.panel_agreement` gives, for a terminal."""
    lines = wrap(f"Judges of {result['run']}", "", "  ")
    for judge in result["judges"]:
        missing = ", ".join(f"{kind} {n}" for kind, n in judge["missing"].items())
        text = f"{judge['name']}: {judge['verdicts']} verdicts" + (f"; missing: {missing}" if missing else "")
        lines += wrap(text, "  - ", "    ")
    for found in result["stages"].values():
        for group in found["groups"]:
            lines += ["", *_group(group)]
    lines += ["", "Before you use this"]
    for note in [*result["flags"], *result["notes"]]:
        lines += wrap(note, "  - ", "    ")
    return "\n".join(lines)
