"""Thresholds that a suite has to reach: fixed before a run, and what became of them (met, not met, undecided).

A threshold is met or not met only where nothing that is missing could turn it: the bounds of protocol section 11 lie on
one side of it. A file is locked by a hash over all it says; a run that is started with it records that hash, and so
shows that the thresholds were there first. The rest is dates, which prove little and are called what they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regatta_tools.documents import Document, SyntaxProblem, parse
from regatta_tools.errors import InputError
from regatta_tools.files import cannot_write, replace_file
from regatta_tools.text import sha256_json

CLASS = "Preregistration"
#: Least and greatest value of each measure.
RANGES = {"RC": (0, 1), "FDR_d": (0, 1), "FDR_e": (0, 1), "Delta": (-1, 1), "ISS": (1, 5), "AC": (0, 1)}
#: Measures that are a share of targets, with the list of the evidence and the key that says what became of each.
SHARES = {"RC": ("requirements", "status"), "FDR_d": ("faults", "design"), "FDR_e": ("faults", "execution")}
TARGETS = {
    "covered": ("requirements", "status"),
    "exposed-design": ("faults", "design"),
    "exposed-execution": ("faults", "execution"),
}
YES = frozenset({"covered", "exposed"})
#: Exit codes of `regatta score --require`. 2 and 3 are taken by what cannot be used or done at all.
EXIT_CODES = {"met": 0, "not-met": 1, "undecided": 4}
NOT_FIXED = 5
#: How the thresholds may stand to the run for the outcome to count.
FIXED = frozenset({"recorded", "before"})
#: Evidence is rounded to ten places; a bound this close to a threshold reaches it.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Preregistration:
    """A file of thresholds. ``sha256`` is the hash of what it says now, ``lock`` (at, sha256) what was fixed."""

    value: dict[str, Any]
    sha256: str
    file: str
    document: Document = field(repr=False)

    @property
    def lock(self) -> dict[str, str] | None:
        return self.value.get("lock")

    @property
    def changed(self) -> bool:
        """Whether the file says something else than what was locked."""
        return self.lock is not None and self.lock["sha256"] != self.sha256

    def place(self, *path: str | int) -> str:
        return ":".join(map(str, (self.file, *self.document.place(path))))


def content_hash(value: Mapping[str, Any]) -> str:
    """SHA-256 of all that a file of thresholds says but its lock. Comments and layout do not count."""
    return sha256_json({k: v for k, v in value.items() if k != "lock" and v is not None})


def problems(value: Any) -> list[tuple[tuple[str | int, ...], str, str]]:
    """What the schema cannot say of thresholds: (path, message, mend). ``value`` has the form of the schema."""
    found: list[tuple[tuple[str | int, ...], str, str]] = []
    if value.get("lock"):
        try:
            datetime.fromisoformat(value["lock"]["at"])
        except ValueError:
            found.append((("lock", "at"), f"{value['lock']['at']} is no time", "write it with `regatta require lock`"))
    for number, threshold in enumerate(value["thresholds"]):
        at: tuple[str | int, ...] = ("thresholds", number)
        measure = threshold["measure"]
        ends = {k: threshold[k] for k in ("at_least", "at_most") if threshold.get(k) is not None}
        targets = threshold.get("targets") or []
        if measure in TARGETS:
            if ends:
                key = next(iter(ends))
                found.append(((*at, key), f"{measure} is about targets and takes no number", "name targets"))
            if not targets:
                found.append((at, f"{measure} names no targets", "list them under targets"))
            if threshold.get("decided_by") == "interval":
                found.append(((*at, "decided_by"), "named targets are no sample: no interval", "leave decided_by out"))
            if len(set(targets)) < len(targets):
                found.append(((*at, "targets"), "a target stands twice", "name each once"))
            continue
        if targets:
            mend = f"for named targets the measure is one of {', '.join(TARGETS)}"
            found.append(((*at, "targets"), f"{measure} is over all targets and names none", mend))
        if not ends:
            found.append((at, f"nothing is asked of {measure}", "say at_least or at_most"))
        low, high = RANGES[measure]
        for name, end in ends.items():
            if not low <= end <= high:
                found.append(((*at, name), f"{measure} lies between {low} and {high}, not at {end}", "correct it"))
        if len(ends) == 2 and ends["at_least"] > ends["at_most"]:
            found.append(((*at, "at_most"), "at_most lies below at_least: nothing can meet both", "correct one"))
        if threshold.get("decided_by") == "interval" and measure not in SHARES:
            mend = f"use bounds, or one of {', '.join(SHARES)}"
            found.append(((*at, "decided_by"), f"one run gives no interval of {measure}", mend))
    return found


def read(path: Path | str) -> Preregistration:
    """Read a file of thresholds. Raises :class:`InputError` with file, line and column where it is none."""
    from regatta_tools.suites.reader import usable

    document = usable(Path(path), CLASS)
    return Preregistration(document.value, content_hash(document.value), str(path), document)


def lock(path: Path | str, *, again: bool = False, now: datetime | None = None) -> Preregistration:
    """Write the lock into a file of thresholds, and return it as it then stands.

    A file that is locked and unchanged is left as it is. One that changed is refused (U221) unless ``again``: then it
    is fixed anew, with a new date. Raises :class:`InputError`, and :class:`EnvironmentProblem` where it cannot be
    written.
    """
    held = read(path)
    if held.lock is not None:
        if not held.changed:
            return held
        if not again:
            raise InputError(
                f"the thresholds changed after they were locked on {held.lock['at']}", code="U221",
                place=held.place("lock", "sha256"),
                mend="bring back what was locked, or fix them anew, for later runs, with --again",
            )  # fmt: skip
    fixed = {"at": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"), "sha256": held.sha256}
    text = _with_lock(held, fixed)
    try:
        again_read = parse(text, is_json=Path(path).suffix.lower() == ".json").value
    except SyntaxProblem:
        again_read = None
    if not isinstance(again_read, dict) or again_read.get("lock") != fixed or content_hash(again_read) != held.sha256:
        raise InputError(
            "the lock cannot be added to this file", code="U222", place=str(path),
            mend="write the file with one key a line, not in braces, and an older lock at its end",
        )  # fmt: skip
    replace_file(path, text.encode("utf-8"))
    return read(path)


def _with_lock(held: Preregistration, fixed: dict[str, str]) -> str:
    path = Path(held.file)
    if path.suffix.lower() == ".json":
        return json.dumps(held.value | {"lock": fixed}, ensure_ascii=False, indent=2) + "\n"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise cannot_write(path, error) from error
    if held.lock is not None:
        # An older lock of ours stands at the end; what follows it would be lost, and the check after this sees that.
        text = "".join(text.splitlines(keepends=True)[: held.document.key_place(("lock",))[0] - 1])
    end = "" if text.endswith("\n") else "\n"
    return f'{text}{end}lock:\n  at: "{fixed["at"]}"\n  sha256: "{fixed["sha256"]}"\n'


def for_run(path: Path | str, *, cell: str, suite: str, targets: Mapping[str, list[str]]) -> dict[str, str]:
    """The lock that a run records when it starts.

    Raises :class:`InputError` where the file is not fixed, or not for this cell, suite and targets.
    """
    held = read(path)
    if held.lock is None:
        raise InputError(
            "the thresholds are not locked, so the run could not show that they were there first", code="U220",
            place=str(path), mend=f"regatta require lock {path}",
        )  # fmt: skip
    if held.changed:
        raise InputError(
            f"the thresholds changed after they were locked on {held.lock['at']}", code="U221",
            place=held.place("lock", "sha256"),
            mend=f"bring back what was locked, or regatta require lock --again {path}",
        )  # fmt: skip
    _fits(held, cell, suite, targets)
    return dict(held.lock)


def _fits(held: Preregistration, cell: str, suite: str, targets: Mapping[str, list[str]]) -> None:
    for name, own in (("cell", cell), ("suite", suite)):
        if held.value.get(name) not in (None, own):
            raise InputError(
                f"the thresholds are for the {name} {held.value[name]!r}, and the run is of {own!r}", code="U223",
                place=held.place(name), mend="name the thresholds of this run",
            )  # fmt: skip
    for number, threshold in enumerate(held.value["thresholds"]):
        for at, target in enumerate(threshold.get("targets") or []):
            kind = TARGETS[threshold["measure"]][0]
            if target not in targets[kind]:
                raise InputError(
                    f"{target!r} is not one of the {kind} of the run", code="U223",
                    place=held.place("thresholds", number, "targets", at), mend="correct it, or name the right file",
                )  # fmt: skip


def decide(path: Path | str, evidence: Mapping[str, Any], run: Any) -> dict[str, Any]:
    """Hold the evidence of a run against thresholds: an object of the class ``Decision``.

    ``run`` is the :class:`~regatta_tools.harness.store.RunStore` of the evidence. Raises :class:`InputError` where the
    file is none or is for another run. The exit code of a decision is :func:`exit_code`.
    """
    held = read(path)
    targets = {kind: [t["id"] for t in evidence[kind]] for kind in ("requirements", "faults")}
    _fits(held, evidence["cell"], evidence["suite"], targets)
    results = [_result(t, evidence) for t in held.value["thresholds"]]
    outcomes = {r["outcome"] for r in results}
    fixed, reason = fixed_when(held, run)
    return {
        "thresholds_id": held.value["id"],
        "outcome": next((o for o in ("not-met", "undecided") if o in outcomes), "met"),
        "fixed": fixed,
        "reason": reason,
        "sha256": held.sha256,
        **({"lock": held.lock} if held.lock else {}),
        "results": results,
    }


def exit_code(decision: Mapping[str, Any]) -> int:
    """0 met, 1 not met, 4 undecided; 5 where the thresholds are not shown to have been fixed before the run."""
    return EXIT_CODES[decision["outcome"]] if decision["fixed"] in FIXED else NOT_FIXED


def fixed_when(held: Preregistration, run: Any) -> tuple[str, str]:
    """How a file of thresholds stands to a run: a value of ``FixedWhen``, and how that is known."""
    if held.lock is None:
        return "unlocked", "the file is not locked: nothing says when its thresholds were written"
    at = held.lock["at"]
    if held.changed:
        return "changed", f"the file says something else than what was locked on {at}"
    recorded = run.manifest.get("preregistration")
    if recorded is not None:
        if recorded["sha256"] == held.sha256:
            return "recorded", f"locked on {at}, and the run recorded this very hash when it started"
        return "other", f"the run recorded other thresholds when it started (locked on {recorded['at']})"
    started = _started(run)
    if started is None:
        return "afterwards", f"locked on {at}; the run did not record it, and its start is not known"
    when = started.strftime("%Y-%m-%dT%H:%M:%SZ")
    if datetime.fromisoformat(at) > started:
        return "afterwards", f"locked on {at}, after the run started (on {when}, by the time of run.json)"
    return "before", (
        f"locked on {at}, before the run started (on {when}, by the time of run.json); the run did not record it, "
        "so this rests on dates alone"
    )


def _started(run: Any) -> datetime | None:
    """When a run started: run.json is written once, before the first call."""
    try:
        return datetime.fromtimestamp((run.folder / "run.json").stat().st_mtime, UTC)
    except OSError:
        return None


def _result(threshold: Mapping[str, Any], evidence: Mapping[str, Any]) -> dict[str, Any]:
    measure, basis = threshold["measure"], threshold.get("decided_by") or "bounds"
    out: dict[str, Any] = {"measure": measure, "decided_by": basis}
    out |= {k: threshold[k] for k in ("at_least", "at_most", "targets") if threshold.get(k) is not None}
    if measure in TARGETS:
        return out | _of_targets(threshold, evidence)
    low, high = (evidence["bounds"][measure][k] for k in ("low", "high"))
    said = f"{measure} lies between {low:.3f} and {high:.3f} whatever is missing"
    if low == high:
        said = f"{measure} is {low:.3f}"
    if basis == "interval":
        low, high = _interval(measure, evidence)
        said += f"; exact 95 % interval over targets {low:.3f} to {high:.3f}"
    outcome = outcome_of(low, high, threshold.get("at_least"), threshold.get("at_most"))
    return out | {
        "observed": evidence["measures"][measure], "low": low, "high": high, "outcome": outcome, "reason": said,
    }  # fmt: skip


def outcome_of(low: float, high: float, at_least: float | None, at_most: float | None) -> str:
    """``met`` where all of [low, high] lies where it should, ``not-met`` where none does, else ``undecided``."""
    least = -float("inf") if at_least is None else at_least - TOLERANCE
    most = float("inf") if at_most is None else at_most + TOLERANCE
    if low >= least and high <= most:
        return "met"
    return "not-met" if high < least or low > most else "undecided"


def _interval(measure: str, evidence: Mapping[str, Any]) -> tuple[float, float]:
    """Exact interval over targets, from its low end with all unknown ones 0 to its high end with all of them 1."""
    from regatta_tools.measures.agreement import clopper_pearson

    kind, key = SHARES[measure]
    statuses = [t[key] for t in evidence[kind]]
    ones = sum(s in YES for s in statuses)
    unknown = statuses.count("unknown")
    ends = clopper_pearson(ones, len(statuses))[0], clopper_pearson(ones + unknown, len(statuses))[1]
    return round(ends[0], 10), round(ends[1], 10)


def _of_targets(threshold: Mapping[str, Any], evidence: Mapping[str, Any]) -> dict[str, Any]:
    kind, key = TARGETS[threshold["measure"]]
    status = {t["id"]: t[key] for t in evidence[kind]}
    names = threshold["targets"]
    unknown = [n for n in names if status[n] == "unknown"]
    failed = [n for n in names if status[n] not in YES and n not in unknown]
    reached = len(names) - len(unknown) - len(failed)
    parts = [f"{reached} of {len(names)} reached"]
    parts += [f"not: {', '.join(failed)}"] if failed else []
    parts += [f"verdicts are missing: {', '.join(unknown)}"] if unknown else []
    known = len(names) - len(unknown)
    return {
        "observed": round(reached / known, 10) if known else None,
        "low": round(reached / len(names), 10),
        "high": round((reached + len(unknown)) / len(names), 10),
        "outcome": "not-met" if failed else "undecided" if unknown else "met",
        "reason": "; ".join(parts),
    }
