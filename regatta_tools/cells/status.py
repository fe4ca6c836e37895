"""How far a cell is: the six steps of the protocol, section 8, each with its evidence.

A step is ``done`` where nothing that this version can see is missing, ``begun`` where something is there,
and ``open`` where nothing is. The worked example of a new cell counts for nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools.cells.example import EXAMPLE, example_in
from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.package import Cell, Package, Record, locate, read
from regatta_tools.validation.run import check_package

REQUIREMENTS, FAULTS = 25, 5
_WORKED_OUT = ("fault_values.csv", "fault_probes.csv")


@dataclass
class Step:
    """One step. ``evidence`` is what there is, ``missing`` what is not, ``command`` what shows it."""

    number: int
    name: str
    state: str
    evidence: str
    missing: list[str] = field(default_factory=list)
    command: str = ""
    counts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass
class CellStatus:
    """The steps of one cell. ``errors`` counts findings of severity error in its files."""

    cell: str
    title: str
    steps: list[Step]
    errors: int = 0
    example: str = ""

    def as_dict(self) -> dict[str, Any]:
        return self.__dict__ | {"steps": [s.as_dict() for s in self.steps]}


def cell_status(cell: str | None = None, *, package: Any = None, runs: Path | str = "runs") -> list[CellStatus]:
    """The status of one cell, or of all cells of a package.

    ``runs`` is the folder whose subfolders are runs. A package with errors has a status too: half-written
    cells are what the command is for. Raises :class:`InputError` (U103) for an unknown cell.
    """
    held = read(locate(package))
    names = [r.key for r in held.table("cells")]
    if cell is not None and cell not in names:
        raise InputError(f"the package has no cell {cell!r}", code="U103", mend=f"use one of: {', '.join(names)}")
    findings = check_package(held)
    found_runs = _runs(Path(runs))
    return [_status(held, name, findings, found_runs) for name in ([cell] if cell else names)]


def _status(held: Package, name: str, findings: list[Finding], runs: list[dict[str, Any]]) -> CellStatus:
    cell = Cell(held, name)
    own = [f for f in findings if f.file.startswith(f"instruments/{name}/") or (f.record == name)]
    left = example_in(held, name)
    steps = [
        _sources(held, name),
        _obligations(held, cell),
        _faults(held, name, own),
        _audit(held, name),
        _runs_step(cell, runs),
        _diagnostics(name, runs),
    ]
    return CellStatus(
        name,
        cell.record["title"],
        steps,
        errors=sum(f.severity == "error" for f in own),
        example=left.key if left is not None else "",
    )


def _own(held: Package, table: str, cell: str) -> list[Record]:
    """The records of a cell without those of the worked example."""
    marks = (f"{cell}-{EXAMPLE}", f"{cell}-fault-{EXAMPLE}")

    def worked(record: Record) -> bool:
        names = [record.key, *(record[c] for c in ("requirement", "fault") if c in record.spec.fields)]
        return any(name == mark or name.startswith(f"{mark}-") for name in names for mark in marks)

    return [r for r in held.cell_records(table, cell) if not worked(r)]


def _state(there: bool, missing: list[str]) -> str:
    return "open" if not there else "begun" if missing else "done"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _sources(held: Package, cell: str) -> Step:
    citations = _own(held, "citations", cell)
    by_id = {r.key: r for r in held.table("sources")}
    cited = {c["source"] for c in citations}
    sources = [by_id[s] for s in sorted(cited) if s in by_id]
    kinds = Counter(s["kind"] for s in sources)
    binding = sum(s["binding"] == "true" for s in sources)
    missing = []
    if unknown := sorted(cited - set(by_id)):
        missing.append(f"{_number(len(unknown), 'cited source')} not in sources.csv: {', '.join(unknown[:5])}")
    if sources and not binding:
        missing.append("a source that binds")
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    text = f"{_number(len(sources), 'source')} cited" + (f" ({listed}; {binding} binding)" if sources else "")
    counts = {"sources": len(sources), "binding": binding, "kinds": dict(kinds)}
    if not sources:
        missing.append("the governing texts, in instruments/sources.csv, and citations of them")
    return Step(
        1,
        "sources listed",
        _state(bool(sources), missing),
        text,
        missing,
        f"regatta query obligations-by-source --set cell={cell}",
        counts,
    )


def _obligations(held: Package, cell: Cell) -> Step:
    active = [r for r in _own(held, "requirements", cell.id) if r["status"] == "active"]
    citations, facts = _own(held, "citations", cell.id), _own(held, "facts", cell.id)
    based = {c["requirement"] for c in citations if c["role"] == "basis"}
    missing = []
    if len(active) < REQUIREMENTS:
        missing.append(_number(REQUIREMENTS - len(active), "obligation") + " to write")
    if len(active) > REQUIREMENTS:
        missing.append(f"the protocol has {REQUIREMENTS}: retire {len(active) - REQUIREMENTS}")
    if without := [r.key for r in active if r.key not in based]:
        missing.append(f"a basis in law for {_listed(without)}")
    text = f"{len(active)} of {REQUIREMENTS} obligations"
    text += f", {_number(len(citations), 'citation')}, {_number(len(facts), 'fact')}"
    counts = {
        "requirements": len(active),
        "citations": len(citations),
        "facts": len(facts),
        "based": len(active) - len(without),
    }
    return Step(2, "obligations written", _state(bool(active), missing), text, missing, "regatta validate", counts)


def _listed(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _faults(held: Package, cell: str, findings: list[Finding]) -> Step:
    faults = _own(held, "faults", cell)
    keys = {f.key for f in faults}
    linked = {r["fault"] for r in _own(held, "fault_requirements", cell)}
    valued = {r["fault"] for r in _own(held, "fault_values", cell)}
    probes = [p for p in _own(held, "fault_probes", cell) if p["fault"] in keys]
    wrong = [f for f in findings if f.file.endswith(_WORKED_OUT) and f.severity == "error"]
    broken = {f.record for f in wrong}
    classes = Counter(f["class"] for f in faults)
    missing = [f"a fault of the class {c}" for c in enum_values("FaultClass") if not classes[c]]
    missing += [f"{classes[c] - 1} too many of the class {c}" for c in enum_values("FaultClass") if classes[c] > 1]
    for names, what in ((linked, "the requirements that it breaks"), (valued, "values or formulas of both sides")):
        if without := sorted(keys - names):
            missing.append(f"{what}: {_listed(without)}")
    if wrong:
        missing.append(
            f"{_number(len(wrong), 'error')} in values or probes ({', '.join(sorted({f.code for f in wrong}))})"
        )
    worked = sum(p.key not in broken for p in probes)
    listed = ", ".join(f"{c} {n}" for c, n in classes.items())
    text = f"{len(faults)} of {FAULTS} faults" + (f" ({listed})" if faults else "")
    text += f", {worked} of {_number(len(probes), 'probe')} worked out and right" if probes else ""
    counts = {"faults": len(faults), "classes": dict(classes), "probes": len(probes), "probes_right": worked}
    return Step(
        3,
        "faults written",
        _state(bool(faults), missing),
        text,
        missing,
        f"regatta query faults-with-ground-truth --set cell={cell}",
        counts,
    )


def _audit(held: Package, cell: str) -> Step:
    """Readings that count: the last of each reader on the citation as it stands today."""
    from regatta_tools.provenance.checks import CLEAN, Index
    from regatta_tools.provenance.outcomes import latest

    index = Index(held)
    active = {r.key for r in _own(held, "requirements", cell) if r["status"] == "active"}
    citations = [c for c in _own(held, "citations", cell) if c["requirement"] in active]
    by_kind: Counter[str] = Counter()
    read_count = adverse = stale = 0
    for citation in citations:
        current, old = latest(index, citation)
        stale += old and not current
        read_count += bool(current)
        adverse += any(r["outcome"] != CLEAN for r in current)
        for kind in {r["reader_kind"] for r in current}:
            by_kind[kind] += 1
    unread = len(citations) - read_count
    missing = []
    if unread or not citations:
        missing.append(
            _number(unread, "citation") + " without a reading that counts" if citations else "citations to read"
        )
    if stale:
        missing.append(f"{_number(stale, 'citation')} read before the item changed")
    if adverse:
        missing.append(f"{_number(adverse, 'citation')} with another outcome than {CLEAN}")
    kinds = ", ".join(f"{by_kind[kind]} by {_KINDS[kind]}" for kind in _KINDS if by_kind[kind])
    text = f"{read_count} of {_number(len(citations), 'citation')} read" + (f" ({kinds})" if kinds else "")
    if not by_kind["lawyer"]:
        text += "; none by a lawyer"
    counts = {"citations": len(citations), "read": read_count, "adverse": adverse, "by_kind": dict(by_kind)}
    return Step(
        4, "citations audited", _state(bool(read_count), missing), text, missing, f"regatta audit --cell {cell}", counts
    )


_KINDS = {"lawyer": "a lawyer", "human": "a person", "ai": "an AI", "machine": "a program"}


def _runs(folder: Path) -> list[dict[str, Any]]:
    """The runs below a folder: manifest, folder and whether every verdict is there."""
    from regatta_tools.harness.store import RUN, RunStore

    found = []
    for path in sorted(folder.glob(f"*/{RUN}")) if folder.is_dir() else []:
        try:
            store = RunStore.read(path.parent)
        except InputError:
            continue  # of another version, or damaged: `regatta score` says what is wrong with it
        found.append({"folder": path.parent.as_posix(), "store": store})
    return found


def _runs_step(cell: Cell, runs: list[dict[str, Any]]) -> Step:
    own = [r for r in runs if r["store"].manifest["cell"] == cell.id]
    now = [r for r in own if r["store"].manifest["made_with"]["package"] == cell.hash]
    whole = [r for r in now if _complete(r["store"], cell)]
    missing = []
    if not own:
        missing.append("a run of a suite against the cell")
    elif not now:
        missing.append("a run with the cell as it is now: it has changed since")
    elif not whole:
        missing.append("a run that went to its end: give its command again")
    text = f"{_number(len(own), 'run')} found"
    if own:
        text += f", {len(now)} with the cell as it is, {len(whole)} complete"
    command = f"regatta score {(whole or now or own)[-1]['folder']}" if own else f"regatta run SUITE --cell {cell.id}"
    counts = {"runs": [r["folder"] for r in own], "current": len(now), "complete": len(whole)}
    return Step(5, "harness run", _state(bool(own), missing), text, missing, command, counts)


def _complete(store: Any, cell: Cell) -> bool:
    from regatta_tools.measures.evidence import score

    try:
        return bool(score(store, package=cell.package)["complete"])
    except InputError:
        return False


def _diagnostics(cell: str, runs: list[dict[str, Any]]) -> Step:
    suites = sorted({r["store"].manifest["suite"] for r in runs if r["store"].manifest["cell"] == cell})
    text = f"none recorded; runs of {_number(len(suites), 'suite')} to compare"
    missing = ["V1 to V4 over a population of suites (docs/new-cell.md)"]
    return Step(6, "diagnostics V1-V4", "open", text, missing, "", {"suites": suites})
