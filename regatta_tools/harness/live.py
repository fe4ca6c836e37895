"""Probes that show whether a fault is live for the agent at hand (protocol, section 12).

A fault that the agent does not take up cannot be exposed by any suite. Its probes are the gold probes of the execution
stage that are labelled as showing it: their stimulus is put to the agent with this fault alone and without any, and
judged like any scenario.
"""

from __future__ import annotations

import re
from typing import Any

from regatta_tools.suites.reader import Scenario, Turn
from regatta_tools.tables.package import Cell, Record
from regatta_tools.text import sha256_json

#: Probes for each fault.
PROBES = 2
PREFIX = "live."
_PART = re.compile(r"^(Context|User|Agent|Expected):[ \t]*", re.MULTILINE)


def scenario_of(name: str, stimulus: str, language: str = "") -> Scenario:
    """A scenario from text whose parts begin a line with ``Context:``, ``User:``, ``Agent:`` or ``Expected:``.

    Text without any such line is what the user says.
    """
    found = list(_PART.finditer(stimulus))
    context: list[str] = []
    expected: list[str] = []
    turns: list[Turn] = []
    if not found:
        turns.append(Turn("user", stimulus.strip()))
    for at, part in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(stimulus)
        text = stimulus[part.end() : end].strip()
        if part[1] == "Context":
            context.append(text)
        elif part[1] == "Expected":
            expected.append(text)
        else:
            turns.append(Turn(part[1].lower(), text))
    return Scenario(
        id=name, turns=tuple(turns), context="\n".join(context), expected="\n".join(expected), language=language
    )


def live_probes(cell: Cell) -> list[tuple[Record, Record]]:
    """(fault, probe) for every fault of the cell that has probes: plain ones before near misses, in order of ids."""
    probes = {p.key: p for p in cell.package.cell_records("gold_probes", cell.id) if p["stage"] == "execution"}
    shown: dict[str, dict[str, bool]] = {}
    for label in cell.package.cell_records("gold_labels", cell.id):
        if label["label"] == "yes" and label["probe"] in probes:
            near = shown.setdefault(label["target"], {})
            near[label["probe"]] = near.get(label["probe"], False) or label.cells.get("near_miss") == "true"
    out = []
    for fault in cell.faults:
        near = shown.get(fault.key, {})
        out += [(fault, probes[key]) for key in sorted(near, key=lambda k: (near[k], k))[:PROBES]]
    return out


def described(probes: list[tuple[Record, Record]]) -> list[dict[str, Any]]:
    """Which probes a run puts, for its manifest: fault, probe, and the hash of the text."""
    hashes = [sha256_json([probe["stimulus"], probe["language"]]) for _, probe in probes]
    return [
        {"fault": fault.key, "gold_probe": probe.key, "text_sha256": digest}
        for (fault, probe), digest in zip(probes, hashes)
    ]
