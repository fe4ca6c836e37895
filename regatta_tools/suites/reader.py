"""Suites, label sets and thresholds: read, checked against the schema, with the place of everything that is wrong."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools.documents import Document, Path_, Place, SyntaxProblem, read_document
from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding, Report, ordered
from regatta_tools.rules.registry import rule
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import Cell
from regatta_tools.text import readable, sha256_json, shown

# Keys by which a label file is known even where `labels` itself is misspelt.
_LABEL_KEYS = frozenset({"labels", "labeller", "labeller_kind", "suite"})
_PLAN_KEYS = frozenset({"suites", "generate"})


@dataclass(frozen=True)
class Turn:
    """One utterance; ``speaker`` is ``user`` or ``agent``."""

    speaker: str
    text: str


@dataclass(frozen=True)
class Scenario:
    """One test case. ``claims`` (what the author says it is about) is for people, never for judges."""

    id: str
    language: str
    turns: tuple[Turn, ...]
    context: str | None = None
    expected: str | None = None
    claims: tuple[tuple[str, Any], ...] = ()
    #: The name that its versions in two languages share.
    pair: str | None = None


@dataclass(frozen=True)
class Suite:
    """A list of scenarios. ``hash`` is over everything that can change a verdict, so over claims it is not.

    ``made_with`` says how it was made (class ``SuiteOrigin``), where anybody says it.
    """

    id: str
    scenarios: tuple[Scenario, ...]
    title: str = ""
    cell: str | None = None
    hash: str = ""
    file: str = ""
    made_with: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Labels:
    """Complete labels of a suite: for each scenario the requirements and faults that are labelled yes."""

    suite: str
    cell: str
    labeller: str
    labeller_kind: str
    requirements: dict[str, frozenset[str]]
    faults: dict[str, frozenset[str]]


def _open(path: Path) -> Document:
    try:
        return read_document(path)
    except FileNotFoundError as error:
        raise InputError("no such file", code="U101", place=str(path), mend="check the path") from error
    except IsADirectoryError as error:
        raise InputError("this is a folder, not a suite file", code="U101", place=str(path)) from error
    except (OSError, ValueError) as error:
        # ValueError: a path with a null character.
        what = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(what, code="U101", place=str(path)) from error


def check_file(path: Path) -> Report:
    """Check a file of a suite, of labels or of thresholds.

    Raises :class:`InputError` only where the file cannot be opened.
    """
    try:
        document = _open(path)
    except SyntaxProblem as problem:
        finding = rule(problem.code).finding(problem.message, file=str(path), line=problem.line, column=problem.column)
        return Report((finding,), files=1, records=0, checked=str(path))
    value = document.value
    class_name, key = "Suite", "scenarios"
    if isinstance(value, dict) and "scenarios" not in value:
        if "thresholds" in value:
            class_name, key = "Preregistration", "thresholds"
        elif not _PLAN_KEYS.isdisjoint(value):
            class_name, key = "ComparisonPlan", "suites"
        elif not _LABEL_KEYS.isdisjoint(value):
            class_name, key = "LabelSet", "labels"
    findings = _check(document, str(path), class_name)
    items = value.get(key) if isinstance(value, dict) else value
    return Report(tuple(findings), files=1, records=len(items) if isinstance(items, list) else 0, checked=str(path))


def _check(document: Document, file: str, class_name: str) -> list[Finding]:
    from regatta_tools.tables.shape import validator

    findings: list[Finding] = []

    def say(code: str, message: str, place: Place, record: str = "", mend: str = "") -> None:
        line, column = place
        findings.append(rule(code).finding(message, file=file, line=line, column=column, record=record, mend=mend))

    whole = document.value
    is_list = class_name == "Suite" and isinstance(whole, list)
    empty = whole is None or (is_list and not whole)
    if class_name == "Suite" and isinstance(whole, dict):
        if "turns" in whole and "scenarios" not in whole:
            say("U002", "the file holds one scenario, not a list of them (put `- ` before it)", document.place(()))
            return findings
        empty = whole.get("scenarios") in (None, [])
    if empty:
        what = "the suite holds no scenarios" if class_name == "Suite" else "the file is empty"
        say("U003" if class_name == "Suite" else "U002", what, document.place(("scenarios",)))
        if not isinstance(whole, dict):
            return findings
    value = _as_suite(whole, file) if class_name == "Suite" else whole
    if not isinstance(value, dict):
        say("U002", f"the file holds {_kind(value)}, not a mapping", document.place(()))
        return findings
    for error in _leaves(validator(class_name).iter_errors(value)):
        path = tuple(error.instance_path)
        if empty and (path == ("scenarios",) or (not path and getattr(error.kind, "property", "") == "scenarios")):
            continue  # said already
        at = path[1:] if is_list else path  # a bare list has no key `scenarios` around it
        record = _name_of(value, path)
        if error.kind.name == "additionalProperties":
            known = ", ".join(sorted(_known_keys(class_name, path)))
            for key in error.kind.unexpected:
                mend = f"keys that may stand here: {known}"
                say("U002", f"{_where(path)}: unknown key {shown(key)}", document.key_place((*at, key)), record, mend)
        else:
            say("U002", f"{_where(path)}: {_explain(error, _at(value, path))}", document.place(at), record)
    if class_name == "Suite" and not findings:
        seen: dict[str, int] = {}
        for index, scenario in enumerate(value["scenarios"]):
            at = (index,) if is_list else ("scenarios", index)
            name = scenario["id"]
            first = seen.setdefault(name, index)
            if first != index:
                message = f"scenario {shown(name)} is already number {first + 1}"
                say("U004", message, document.place((*at, "id")), name)
            if scenario["turns"][-1]["speaker"] != "user":
                last = (*at, "turns", len(scenario["turns"]) - 1)
                say("U007", "the last turn is not the user's", document.place(last), name)
    if class_name == "Preregistration" and not findings:
        from regatta_tools.measures.require import problems

        for at, message, mend in problems(value):
            say("U002", f"{_where(at)}: {message}", document.place(at), "", mend)
    return ordered(findings)


def _leaves(errors: Iterable[Any]) -> Iterator[Any]:
    """Errors in which an optional part is judged by its own form, not as `neither that nor nothing`."""
    for error in errors:
        if error.kind.name == "anyOf":
            yield from _leaves(error.kind.context[0])
        else:
            yield error


def _as_suite(value: Any, file: str) -> Any:
    """A bare list of scenarios is a suite named after its file."""
    if isinstance(value, list):
        # The same name for a file whichever Unicode form its system keeps names in.
        stem = unicodedata.normalize("NFKD", Path(readable(file)).stem.lower().replace("đ", "d"))
        name = "-".join(re.findall("[a-z0-9]+", "".join(c for c in stem if not unicodedata.combining(c))))
        return {"id": name if name[:1].isalpha() else f"suite-{name}".rstrip("-"), "scenarios": value}
    return value


def _kind(value: Any) -> str:
    names = {str: "a text", list: "a list", type(None): "nothing", dict: "a mapping", bool: "true or false"}
    return names.get(type(value), "a number")


def _known_keys(class_name: str, path: Path_) -> list[str]:
    """The keys that the schema knows at a path."""
    classes = load_model()["classes"]
    for step in path:
        if isinstance(step, str):
            class_name = next(f["class"] for f in classes[class_name]["fields"] if f["name"] == step)
    return [f["name"] for f in classes[class_name]["fields"]]


def _where(path: Path_) -> str:
    return ".".join(str(p + 1) if isinstance(p, int) else p for p in path) or "the file"


def _at(value: Any, path: Path_) -> Any:
    for step in path:
        value = value[step]
    return value


def _explain(error: Any, value: Any) -> str:
    """What is wrong with ``value``, by the keyword of the schema that refuses it."""
    keyword, details = error.kind.name, error.kind.as_dict()
    if keyword == "required":
        return f"the key {details['property']!r} is missing"
    if keyword == "minItems":
        return "the list is empty"
    if keyword == "enum":
        return f"{shown(value)} is not one of: {', '.join(map(str, details['options']))}"
    if keyword == "type":
        names = {"string": "a text", "array": "a list", "object": "a mapping", "null": "nothing"}
        wanted = [names.get(t, t) for t in details["types"] if t != "null" or len(details["types"]) == 1]
        quote = " (put it in quotes)" if "string" in details["types"] and isinstance(value, (bool, int, float)) else ""
        return f"{_kind(value)} where {' or '.join(wanted)} belongs{quote}"
    if keyword == "pattern":
        if isinstance(value, str) and not value.strip():
            return "the text is empty"
        return f"{shown(value)} is not of the form {details['pattern']}"
    if keyword == "format":
        return f"{shown(value)} is not a {details['format']}"
    return error.message[:200]


def _name_of(value: dict[str, Any], path: Path_) -> str:
    """The name of the scenario that a path leads into, where it has one."""
    if len(path) >= 2:
        entry = _at(value, path[:2])
        if isinstance(entry, dict):
            name = entry.get("id", entry.get("scenario", ""))
            return name if isinstance(name, str) else ""
    return ""


def usable(path: Path, class_name: str) -> Document:
    """A file held against a class of the schema, with the places of its values.

    Raises :class:`InputError` with the first finding where there is one.
    """
    try:
        document = _open(path)
    except SyntaxProblem as problem:
        place = f"{path}:{problem.line}:{problem.column}" if problem.line else str(path)
        raise InputError(problem.message, code=problem.code, place=place, mend=rule(problem.code).mend) from problem
    findings = _check(document, str(path), class_name)
    if findings:
        first = findings[0]
        more = f" (and {len(findings) - 1} more: regatta validate {path})" if len(findings) > 1 else ""
        raise InputError(first.message + more, code=first.code, place=first.place(), mend=first.mend)
    return document


def load_suite(path: Path | str) -> Suite:
    """Read a suite. Raises :class:`InputError` with file, line and column where it is not one."""
    path = Path(path)
    value = _as_suite(usable(path, "Suite").value, str(path))
    scenarios = tuple(
        Scenario(
            id=s["id"],
            language=s.get("language") or value.get("language") or "en",
            turns=tuple(Turn(t["speaker"], t["text"]) for t in s["turns"]),
            context=s.get("context"),
            expected=s.get("expected"),
            claims=_claims(s.get("claims") or {}),
            pair=s.get("pair"),
        )
        for s in value["scenarios"]
    )
    judged = [
        {
            "id": s.id,
            "language": s.language,
            "turns": [[t.speaker, t.text] for t in s.turns],
            "context": s.context,
            "expected": s.expected,
        }
        for s in scenarios
    ]
    return Suite(
        id=value["id"],
        scenarios=scenarios,
        title=value.get("title") or "",
        cell=value.get("cell"),
        hash=sha256_json(judged),
        file=str(path),
        made_with=value.get("made_with") or {},
    )


def _claims(given: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in given.items() if v is not None))


def load_labels(path: Path | str, suite: Suite, cell: Cell) -> Labels:
    """Read labels and hold them against the suite and the cell that they are for.

    Raises :class:`InputError` (rule U008) where a label fits nothing or a scenario has no entry:
    agreement over half-matching labels would be a wrong number, not a smaller one.
    """
    path = Path(path)
    document = usable(path, "LabelSet")
    value = document.value

    def refuse(message: str, *at: str | int) -> InputError:
        place = ":".join(map(str, (path, *document.place(at))))
        return InputError(message, code="U008", place=place, mend=rule("U008").mend)

    if (value["suite"], value["cell"]) != (suite.id, cell.id):
        what = f"the labels are for suite {value['suite']!r} in cell {value['cell']!r}"
        raise refuse(f"{what}, not for {suite.id!r} in {cell.id!r}", "suite")
    known = {"requirements": {r.key for r in cell.requirements}, "faults": {f.key for f in cell.faults}}
    out: dict[str, dict[str, frozenset[str]]] = {"requirements": {}, "faults": {}}
    missing = {s.id for s in suite.scenarios}
    for index, entry in enumerate(value["labels"]):
        name = entry["scenario"]
        if name not in missing:
            twice = name in out["faults"]
            what = "has more than one entry" if twice else "is not in the suite"
            raise refuse(f"scenario {name!r} {what}", "labels", index, "scenario")
        missing.remove(name)
        for kind, targets in known.items():
            given = entry.get(kind) or []
            for number, target in enumerate(given):
                if target not in targets:
                    what = f"scenario {name!r} names {target!r}, which cell {cell.id!r} does not have"
                    raise refuse(what, "labels", index, kind, number)
            out[kind][name] = frozenset(given)
    if missing:
        raise refuse("scenarios without an entry: " + ", ".join(sorted(missing)[:5]), "labels")
    return Labels(value["suite"], value["cell"], value["labeller"], value["labeller_kind"], **out)
