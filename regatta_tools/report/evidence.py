"""The evidence vector for people, uncovered obligations first."""

from __future__ import annotations

from typing import Any

from regatta_tools.report.wrapping import wrap

STAGES = {
    "rc": "coverage",
    "iss": "specificity",
    "ac": "attacks",
    "design": "design",
    "execution": "execution",
    "agent": "agent",
}


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def as_text(evidence: dict[str, Any]) -> str:
    """Summary of an evidence vector (class ``EvidenceVector``) for a terminal of any width from 40 columns."""
    lines: list[str] = []
    lines += wrap(
        f"Suite {evidence['suite']} ({evidence['n_scenarios']} scenarios) in cell {evidence['cell']}", "", "  "
    )
    if not evidence["complete"]:
        lines += ["", *wrap("THE RUN HAS NOT ENDED: what follows is preliminary.", "", "")]
    lines += ["", "Who judged"]
    for line in who_judged(evidence["models"]):
        lines += wrap(line, "  ", "    ")
    by_status: dict[str, list[dict[str, Any]]] = {"not-covered": [], "unknown": [], "covered": []}
    for requirement in evidence["requirements"]:
        by_status[requirement["status"]].append(requirement)

    heads = {
        "not-covered": "Obligations that no scenario tests",
        "unknown": "Obligations about which verdicts are missing",
        "covered": "Obligations that a scenario tests",
    }
    for status, head in heads.items():
        items = by_status[status]
        if not items and status != "not-covered":
            continue
        lines += ["", *wrap(f"{head}: {len(items)} of {len(evidence['requirements'])}", "", "  ")]
        for item in items:
            by = f"  [{item['scenario']}]" if item["scenario"] else ""
            lines += wrap(f"{item['id']}  {item['topic']}{by}", "  - ", "    ")
            if status != "covered":
                for citation in _citations(item["citations"]):
                    lines += wrap(citation, "      ", "        ")

    lines += ["", "Faults, as designed and as run"]
    for fault in evidence["faults"]:
        design = fault["design"] + (f" [{fault['scenario_design']}]" if fault["scenario_design"] else "")
        execution = fault["execution"] + (f" [{fault['scenario_execution']}]" if fault["scenario_execution"] else "")
        lines += wrap(f"{fault['name']} ({fault['class']})", "  - ", "    ")
        lines += wrap(f"design: {design}; execution: {execution}", "      ", "      ")

    lines += _by_arm(evidence)
    lines += ["", "Measures (bounds over what is missing)"]
    names = {
        "RC": "coverage of requirements",
        "FDR_d": "faults exposed, as designed",
        "FDR_e": "faults exposed, as run",
        "Delta": "FDR_d - FDR_e",
        "ISS": "industry specificity, 1 to 5",
        "AC": "share of six attack categories",
    }
    for name, what in names.items():
        bound = evidence["bounds"][name]
        value = _number(evidence["measures"][name])
        lines += wrap(f"{name:<6}{value:>10}  [{bound['low']:.2f}, {bound['high']:.2f}]  {what}", "  ", "    ")
    for reason in evidence["measures"]["undefined"]:
        lines += wrap(reason, "  ", "    ")

    lines += ["", "Verdicts"]
    for row in evidence["outcomes"]:
        counts = ", ".join(f"{k.replace('_', '-')} {v}" for k, v in row.items() if k != "stage" and v)
        lines += wrap(f"{STAGES[row['stage']]}: {counts or 'none'}", "  ", "    ")
    cost = evidence["cost"]
    price = (
        f"{cost['usd']:.2f} USD" if cost["usd"] is not None else f"price unknown for {cost['unpriced_calls']} call(s)"
    )
    lines += wrap(
        f"{cost['judge_calls']} judge calls, {cost['agent_calls']} agent calls, "
        f"{cost['prompt_tokens'] + cost['completion_tokens']} tokens, {price}",
        "  ",
        "    ",
    )
    lines += ["", "Before you use this"]
    for note in evidence["notes"]:
        lines += wrap(note, "  - ", "    ")
    return "\n".join(lines)


def _by_arm(evidence: dict[str, Any]) -> list[str]:
    """Arms, net exposure, masking and live faults; nothing where the run has one draw of the joint arm alone."""
    arms = evidence["arms"]
    if [row["arm"] for row in arms] == ["joint"]:
        return []
    names = {fault["id"]: fault["name"] for fault in evidence["faults"]}
    lines = ["", "Faults that show, by arm"]
    for row in arms:
        found = f"{_number(row['rate'])} {_span(row['rate_bounds'])}"
        live = f", of live faults {_number(row['live_rate'])}" if "live_rate" in row else ""
        counts = f"{row['positive']} of {row['probes']} answers"
        counts += f", {row['missing']} missing" if row["missing"] else ""
        lines += wrap(f"{row['arm']}, draw {row['draw']}: {found}{live}; {counts}", "  ", "    ")
    if "exposure" in evidence:
        lines += ["", *wrap("Net of the unmodified agent, paired on fault, scenario and draw", "", "  ")]
        for row in evidence["exposure"]:
            who = names.get(row.get("fault", ""), "all faults")
            why = row.get("why_no_interval")
            interval = f"no interval: {why}" if why else f"95 % {_span(row['interval'])}"
            lines += wrap(f"{row['arm']}, {who}: net {_number(row['net'])}, {interval}", "  - ", "    ")
            counts = f"faulty only {row['faulty_only']}, both {row['both']}, control only {row['control_only']}, "
            counts += f"neither {row['neither']}, unknown {row['unknown']}; bounds {_span(row['net_bounds'])}"
            lines += wrap(counts, "      ", "      ")
    if "paired" in evidence:
        lines += ["", *wrap(f"Net exposure is undefined: {evidence['paired']}", "", "  ")]
    if "masking" in evidence:
        words = {True: "masked by the others", False: "not masked", None: "unknown"}
        lines += ["", "Alone and beside the others"]
        for row in evidence["masking"]:
            text = f"{names[row['fault']]}: alone {row['isolated']}, joint {row['joint']}: {words[row.get('masked')]}"
            lines += wrap(text, "  - ", "    ")
    if "live_faults" in evidence:
        lines += ["", "Does the agent take the fault up?"]
        for row in evidence["live_faults"]:
            text = f"{names[row['fault']]}: {row['status']} ({row['isolated_positive']} of {row['probes']} probes with "
            text += f"it, {row['control_positive']} without any, {row['missing']} verdicts missing)"
            lines += wrap(text, "  - ", "    ")
    return lines


def _span(interval: dict[str, float]) -> str:
    return f"[{interval['low']:.2f}, {interval['high']:.2f}]"


def who_judged(models: list[dict[str, Any]]) -> list[str]:
    """One line a judge or agent: for what, by what name, and what a reader has to know of it."""
    stages: dict[tuple[str, str], list[str]] = {}
    from regatta_tools.llm.client import same_model

    for model in models:
        # A provider may answer with another model than was asked for.
        other = [name for name in model.get("served", []) if not same_model(model["name"], name)]
        note = "; ".join(filter(None, [f"served as {', '.join(other)}" if other else "", model.get("note", "")]))
        stages.setdefault((model["name"], note), []).append(STAGES[model["stage"]])
    return [f"{', '.join(what)}: {name}{', ' + note if note else ''}" for (name, note), what in stages.items()]


def _citations(citations: list[dict[str, Any]]) -> list[str]:
    """One text a source, its title before its locators; the basis alone where there is one."""
    basis = [c for c in citations if c["role"] == "basis"] or citations
    by_source: dict[str, list[dict[str, Any]]] = {}
    for citation in basis:
        by_source.setdefault(citation["source"], []).append(citation)
    return [
        f"{found[0]['title']}: {'; '.join(dict.fromkeys(c['locator'] for c in found))}" for found in by_source.values()
    ]


def agreement_text(result: dict[str, Any]) -> str:
    """Agreement of a judge with labels, for people."""
    labels = result["labels"]
    lines = wrap(
        f"{result['judge']} against labels of {result['suite']} by {labels['by']} ({labels['kind']})",
        "",
        "  ",
    )
    for stage, figures in result["stages"].items():
        lines.append(f"  J_{'RC' if stage == 'rc' else 'D'}, {figures['pairs']} pairs")
        for name in ("agreement", "sensitivity", "specificity", "kappa"):
            lines += wrap(f"{name:<12} {_figure(figures[name])}", "    ", "      ")
        met = figures["targets"]
        what = "requirements covered" if stage == "rc" else "faults exposed"
        counts = f"{met['judge']} of {met['all']} by the judge, {met['labels']} by the labels, {met['both']} by both"
        lines += wrap(f"{what} by the suite: {counts}", "    ", "      ")
    return "\n".join(lines)


def _figure(figure: dict[str, Any]) -> str:
    if figure["value"] is None:
        return f"undefined: {figure['reason']}"
    if figure["low"] is None:
        return f"{figure['value']:.2f} ({figure['reason']})"
    return f"{figure['value']:.2f}  [{figure['low']:.2f}, {figure['high']:.2f}]  n={figure['n']}"
