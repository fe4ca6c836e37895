"""Four engines that are not ours judge the examples of the rules, and docs/parity.md says which of them sees what.

    .venv/bin/python tests/parity.py            # write docs/parity.md
    .venv/bin/python tests/parity.py --check    # write nothing; exit 1 where it differs

The engines: linkml's validator on the objects of the records; Frictionless on the files, by the descriptor that
``make schema`` writes; our check against the generated JSON Schema, held to the reference implementation; pySHACL with
the generated shapes on the graph. They see a valid and an invalid file for every rule. Where the verdict is not ours,
``tests/parity.yaml`` has to say so, with the reason.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from remake_examples import write

from regatta_tools import paths
from regatta_tools.documents import SyntaxProblem, read_document
from regatta_tools.rules.registry import rules
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import DESCRIPTOR, Package, read
from regatta_tools.validation.examples import Example, assemble, examples

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "parity.yaml"
PAGE = ROOT / "docs" / "parity.md"
ENGINES = {"linkml": "LinkML", "frictionless": "Frictionless", "json-schema": "JSON Schema", "shacl": "SHACL"}
_SUITES = ("suite.yaml", "labels.yaml")


# What the engines are given


@dataclass
class Case:
    """One example in its package (``example`` is ``None`` for the base alone, or for the shipped package)."""

    root: Path
    example: Example | None = None

    @property
    def is_suite(self) -> bool:
        return self.example is not None and self.example.file in _SUITES

    @cached_property
    def package(self) -> Package:
        return read(self.root)

    @cached_property
    def document(self) -> tuple[str, dict[str, Any]] | None:
        """Class and value of a suite or label file; ``None`` where it cannot be parsed, so that no engine gets it."""
        try:
            value = read_document(self.root / self.example.file).value
        except SyntaxProblem:
            return None
        return ("LabelSet" if self.example.file == "labels.yaml" else "Suite"), value

    def objects(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Class and object of all that can be read."""
        if not self.is_suite:
            for record in self.package:
                yield record.spec.class_name, record.as_object()
        elif self.document is not None:
            yield self.document


def cases(chosen: Iterable[Example], folder: Path) -> list[Case]:
    """The base alone, then each example in a package of its own below ``folder``."""
    found = [Case(assemble(None, folder / "base"))]
    for example in chosen:
        name = f"{example.code}-{'valid' if example.right else 'invalid'}"
        found.append(Case(assemble(example, folder / name), example))
    return found


# LinkML and JSON Schema judge one object at a time


def refused_by_objects(judge: Callable[[str, dict[str, Any]], bool], all_cases: list[Case]) -> list[bool]:
    """Whether an engine refuses an object of each case. Equal objects (most come from the base) are judged once."""
    known: dict[tuple[str, str], bool] = {}

    def refused(name: str, value: dict[str, Any]) -> bool:
        key = name, json.dumps(value, sort_keys=True, default=str)
        if key not in known:
            known[key] = judge(name, value)
        return known[key]

    return [any(refused(*pair) for pair in case.objects()) for case in all_cases]


def linkml(all_cases: list[Case]) -> list[bool]:
    from linkml.validator import Validator
    from linkml.validator.plugins import JsonschemaValidationPlugin

    # Closed, as the tables are: a column that the schema does not know is an error.
    engine = Validator(
        str(ROOT / "schema" / "regatta.yaml"), validation_plugins=[JsonschemaValidationPlugin(closed=True)]
    )
    return refused_by_objects(lambda name, value: next(engine.iter_results(value, name), None) is not None, all_cases)


def json_schema(all_cases: list[Case]) -> list[bool]:
    """Our engine and the reference one; raises ``AssertionError`` where they differ on an object."""
    import jsonschema

    from regatta_tools.tables.shape import class_schema, validator

    draft = jsonschema.Draft201909Validator

    @lru_cache
    def reference(name: str) -> Any:
        return draft(class_schema(name), format_checker=draft.FORMAT_CHECKER)

    def refuses(name: str, value: dict[str, Any]) -> bool:
        verdict = not validator(name).is_valid(value)
        assert verdict is not reference(name).is_valid(value), (name, value)
        return verdict

    return refused_by_objects(refuses, all_cases)


# Frictionless judges files


@dataclass
class Tables:
    """Frictionless, with what it has found of a file kept.

    A file is judged again only where it, its description or the keys that it points to are others: Frictionless
    takes half a second to open the descriptor of a small package.
    """

    base: dict[str, dict[str, Any]]
    known: dict[str, bool] = field(default_factory=dict)

    def refuses(self, case: Case) -> bool:
        from frictionless import FrictionlessException, Package

        descriptor = json.loads((case.root / DESCRIPTOR).read_text(encoding="utf-8"))
        resources = {r["name"]: self._described(r) for r in descriptor["resources"]}
        keys = {name: self._key(case.root, resource, resources) for name, resource in resources.items()}
        fresh = [name for name, key in keys.items() if key not in self.known]
        needed = {*fresh, *(k["reference"]["resource"] for name in fresh for k in foreign_keys(resources[name]))}
        try:
            package = Package(
                {"resources": [r for name, r in resources.items() if name in needed]}, basepath=str(case.root)
            )
        except FrictionlessException:
            return True
        for name in fresh:
            self.known[keys[name]] = not package.get_resource(name).validate().valid
        return len(resources) < len(descriptor["resources"]) or any(self.known[key] for key in keys.values())

    def _described(self, resource: dict[str, Any]) -> dict[str, Any]:
        """A line of a short descriptor as `make schema` would write it, without what is for people."""
        listed = resource["path"]
        full = self.base.get((listed if isinstance(listed, str) else listed[0]).removeprefix("./"), {})
        return full | resource

    def _key(self, root: Path, resource: dict[str, Any], resources: dict[str, Any]) -> str:
        parts: list[Any] = [resource]
        for name, columns in [(resource["name"], None)] + [
            (k["reference"]["resource"], k["reference"]["fields"]) for k in foreign_keys(resource)
        ]:
            target = resources.get(name)
            listed = target["path"] if target else []
            for path in [listed] if isinstance(listed, str) else listed:
                parts.append(content(root / path, columns))
        return json.dumps(parts, sort_keys=True)


def foreign_keys(resource: dict[str, Any]) -> list[dict[str, Any]]:
    return [k for k in resource.get("schema", {}).get("foreignKeys", []) if k["reference"]["resource"]]


def content(path: Path, columns: list[str] | None) -> Any:
    """What a verdict can depend on: the hash of a file, or of a file that is pointed to the values of some columns."""
    if ".." in path.parts or not path.is_file():
        return None
    raw = path.read_bytes()
    if columns is not None:
        try:
            rows = csv.DictReader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True)
            return sorted([row[c] for c in columns] for row in rows)
        except (UnicodeDecodeError, csv.Error, KeyError, TypeError):
            pass
    return hashlib.sha256(raw).hexdigest()


def full_resources(root: Path) -> dict[str, dict[str, Any]]:
    """The resources of a package as `make schema` describes them, by path, without words for people."""
    from regatta_tools.tables.descriptor import build

    found = {}
    for resource in build(root)["resources"]:
        schema = resource["schema"]
        schema["fields"] = [
            {k: v for k, v in f.items() if k not in ("description", "rdfType", "categories")} for f in schema["fields"]
        ]
        found[resource["path"]] = {
            k: v for k, v in resource.items() if k not in ("rows", "bytes", "hash", "description")
        }
    return found


def frictionless(all_cases: list[Case]) -> list[bool]:
    tables: dict[Path, Tables] = {}
    out = []
    for case in all_cases:
        # An example is described as the base is: its own files may be beyond a description.
        root = case.root if case.example is None else all_cases[0].root
        engine = tables.setdefault(root, Tables(full_resources(root)))
        out.append(False if case.is_suite else engine.refuses(case))
    return out


# SHACL judges the graph


def shacl(all_cases: list[Case]) -> list[bool]:
    """One run over a graph in which the records of each case stand under names of their own.

    A case brings in its records that are not those of the base, those that point to one of them, and of what these
    point to no more than the class: the shapes look no further than one step.
    """
    import pyshacl
    from rdflib import Graph, URIRef
    from rdflib.namespace import SH

    base_lines = by_subject(all_cases[0])
    text, focus = [], []
    for number, case in enumerate(all_cases):
        lines = by_subject(case)
        other = {s for s in {*lines, *base_lines} if lines.get(s) != base_lines.get(s)} if number else {*lines}
        chosen = {s for s, own in lines.items() if s in other or not other.isdisjoint(objects_of(own))}
        near = {o for s in chosen for o in objects_of(lines[s]) if o in lines} - chosen
        kept = [line for s in chosen for line in lines[s]]
        kept += [line for s in near for line in lines[s] if f"> <{RDF_TYPE}> <" in line]
        prefix = record_base() + f"case-{number}/"
        text += [line.replace(f"<{record_base()}", f"<{prefix}") for line in kept]
        focus += [URIRef(s.replace(record_base(), prefix)) for s in chosen]
    graph = Graph().parse(data="".join(text), format="nt")
    shapes = Graph().parse(ROOT / "schema" / "generated" / "regatta.shacl.ttl")
    _, report, _ = pyshacl.validate(graph, shacl_graph=shapes, focus_nodes=focus)
    found = {
        int(str(node).removeprefix(record_base() + "case-").split("/")[0])
        for node in report.objects(None, SH.focusNode)
    }
    return [number in found for number in range(len(all_cases))]


RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def record_base() -> str:
    from regatta_tools.graph.rdf import id_base

    return id_base()


def by_subject(case: Case) -> dict[str, list[str]]:
    """The N-Triples of a case by subject; of a suite by way of the JSON-LD context, its inner objects under names."""
    from regatta_tools.graph.rdf import ntriples

    if case.is_suite:
        text = suite_triples(*case.document) if case.document else ""
    else:
        text = "".join(ntriples(case.package))
    found: dict[str, list[str]] = {}
    for line in text.splitlines(keepends=True):
        subject = line[1 : line.index(">")]
        if subject.startswith(record_base()):
            found.setdefault(subject, []).append(line)
    return found


def objects_of(lines: list[str]) -> set[str]:
    return {line[line.rindex("> <") + 3 : -4] for line in lines if line.endswith("> .\n")}


def suite_triples(name: str, value: Any) -> str:
    from rdflib import BNode, Graph, URIRef

    if not isinstance(value, dict):
        return ""
    context = json.loads((paths.generated_dir() / "regatta.context.jsonld").read_text(encoding="utf-8"))["@context"]
    graph = Graph().parse(data=json.dumps({"@context": context, **typed(name, value)}, default=str), format="json-ld")
    named = Graph()
    for triple in graph:
        named.add(tuple(URIRef(f"{record_base()}node-{n}") if isinstance(n, BNode) else n for n in triple))
    return named.serialize(format="nt")


def typed(name: str, value: Any) -> Any:
    """An object and those in it with their classes, which the context does not give to what stands inside."""
    classes = {f["name"]: f["class"] for f in load_model()["classes"][name]["fields"] if f["kind"] == "object"}
    if not isinstance(value, dict):
        return value
    inner = {
        key: [typed(classes[key], v) for v in part] if isinstance(part, list) else typed(classes[key], part)
        for key, part in value.items()
        if key in classes
    }
    return {"@type": name, **value, **inner}


JUDGES: dict[str, Callable[[list[Case]], list[bool]]] = {
    "linkml": linkml, "frictionless": frictionless, "json-schema": json_schema, "shacl": shacl,
}  # fmt: skip


def verdicts(all_cases: list[Case]) -> dict[str, list[bool]]:
    """Whether each engine refuses each case. Two engines work at a time: half of the work is Frictionless."""
    order = sorted(JUDGES, key=lambda engine: engine != "frictionless")
    with ProcessPoolExecutor(2) as pool:
        futures = {engine: pool.submit(JUDGES[engine], all_cases) for engine in order}
        return {engine: futures[engine].result() for engine in JUDGES}


# The list of differences


@dataclass(frozen=True)
class Difference:
    """One engine that judges one example otherwise than we do, and why."""

    engine: str
    code: str
    right: bool
    reason: str


def listed() -> list[Difference]:
    """What tests/parity.yaml says. Raises ``ValueError`` for an entry that is not of its form or stands twice."""
    value = read_document(LIST).value
    found: list[Difference] = []
    for entry in value["differences"]:
        if set(entry) != {"engines", "example", "reason", "rules"} or entry["example"] not in ("valid", "invalid"):
            raise ValueError(f"an entry has engines, example (valid or invalid), reason and rules: {entry}")
        if unknown := {*entry["engines"]} - {*ENGINES} | {*entry["rules"]} - {*rules()}:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        found += [
            Difference(engine, code, entry["example"] == "valid", " ".join(entry["reason"].split()))
            for engine in entry["engines"]
            for code in entry["rules"]
        ]
    keys = [(d.engine, d.code, d.right) for d in found]
    if twice := {key for key in keys if keys.count(key) > 1}:
        raise ValueError(f"listed twice: {sorted(twice)}")
    return found


# The page

_HEAD = """# Which engine sees what

`regatta validate` checks more than a schema language can say. How much more, and where an engine of another hand comes
to the same verdict, is shown here by the [examples of the rules](../examples/rules/README.md): for each rule a small
package with one file that is wrong, and one with a file that is right. Four engines judge all of them:

- **LinkML**: linkml's validator on the objects of the records, with the schema itself;
- **Frictionless**: the files, by the descriptor that `make schema` writes;
- **JSON Schema**: our check against the generated JSON Schema; jsonschema, the reference implementation, is asked the
  same and has to agree on every object;
- **SHACL**: pySHACL, with the generated shapes, on the graph of the package.

`sees` means that the engine refuses the wrong file, `no` that it lets it pass, with the number of the reason below.
{counts}
{valid}

A file that cannot be read is sometimes seen by SHACL because of what is then missing in the graph. Rules on workbooks
(X) are about no package and are not in the table.

Made from `tests/parity.yaml` by `.venv/bin/python tests/parity.py`; `tests/test_parity.py` runs the engines and fails
on a difference that is not listed, and on a listed one that is none any more.
"""
_ALL_RIGHT = "All of them accept every right file, and the package of instruments."


def page() -> str:
    """The text of docs/parity.md."""
    differences = listed()
    numbers: dict[str, int] = {}
    named: dict[str, set[str]] = {}
    cells: dict[tuple[str, str], str] = {}
    for difference in sorted(differences, key=lambda d: (d.code, list(ENGINES).index(d.engine))):
        if not difference.right:
            number = numbers.setdefault(difference.reason, len(numbers) + 1)
            cells[difference.code, difference.engine] = f"no ({number})"
            named.setdefault(difference.reason, set()).add(difference.engine)
    refused = [d for d in differences if d.right]
    valid = "" if refused else _ALL_RIGHT
    folders = {e.code: e.folder.parent.name for e in judged()}
    seen = {engine: sum((code, engine) not in cells for code in folders) for engine in ENGINES}
    counts = f"Of {len(folders)} rules " + ", ".join(f"{ENGINES[e]} sees {count}" for e, count in seen.items()) + "."
    lines = [_HEAD.format(counts=counts, valid=valid).rstrip()]
    if refused:
        lines += ["\n## Right files that an engine refuses\n"]
        lines += [f"- {ENGINES[d.engine]}, {d.code}: {d.reason}" for d in refused]
    lines += ["\n## Wrong files\n", f"| rule | what is wrong | {' | '.join(ENGINES.values())} |"]
    lines += ["| --- | --- |" + " --- |" * len(ENGINES)]
    for code, folder in sorted(folders.items()):
        verdicts = " | ".join(cells.get((code, engine), "sees") for engine in ENGINES)
        lines.append(f"| [{code}](../examples/rules/{folder}) | {rules()[code].title} | {verdicts} |")
    lines += ["\n## Reasons\n", *(f"{n}. {of(named[reason])}: {reason}" for reason, n in numbers.items())]
    return "\n".join(lines) + "\n"


def of(engines: set[str]) -> str:
    return "All" if engines == {*ENGINES} else ", ".join(ENGINES[e] for e in ENGINES if e in engines)


def judged() -> list[Example]:
    """The examples that the engines are shown: all but those on workbooks."""
    return [e for e in examples() if rules()[e.code].engine != "sheet"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page differs")
    check = parser.parse_args().check
    text = page()
    if PAGE.is_file() and PAGE.read_bytes() == text.encode("utf-8"):
        return 0
    print(PAGE.relative_to(ROOT).as_posix())
    if not check:
        write(PAGE, text)
    return int(check)


if __name__ == "__main__":
    sys.exit(main())
