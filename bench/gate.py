"""How fast the gate, the export and the queries are, beside the tools that do a part of the same.

    python bench/gate.py            the quick measurement, printed (a few minutes)
    python bench/gate.py --write    the whole one (an hour), which writes docs/benchmarks.md

Everything is measured in one run on one synthetic package a size (bench/synthetic.py). Commands are whole processes,
the tools in turn (A B C, A B C), so that a ratio holds although a shared machine changes its speed.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import importlib.metadata
import io
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import synthetic
import yaml

from regatta_tools import __version__, paths
from regatta_tools.tables.package import read, table_specs

BIN = Path(sys.executable).parent
SCHEMA = paths.root() / "schema"
#: A grouped question over the whole graph, in SPARQL that both engines know.
GROUPED = """
PREFIX regatta: <https://w3id.org/regatta/>
PREFIX dcterms: <http://purl.org/dc/terms/>
SELECT ?cell ?kind (COUNT(?fact) AS ?facts) (COUNT(DISTINCT ?requirement) AS ?requirements) WHERE {
  ?fact a regatta:Fact ; regatta:cell ?cell ; dcterms:type ?kind ; regatta:requirement ?requirement .
} GROUP BY ?cell ?kind ORDER BY ?cell ?kind
"""


@dataclass(frozen=True)
class Plan:
    """What is measured: numbers of requirements, and how often."""

    as_stands: dict[int, int]  # requirements -> rounds of all tools on the package as it stands
    bound: int | None  # requirements at which the others are stopped once they took longer than the target allows
    merged: dict[int, tuple[int, int]]  # requirements -> rounds of regatta, and of the others in their best layout
    export: dict[int, int]
    query: dict[int, int]
    starts: int
    spoiled: bool


PLANS = {
    "tiny": Plan({25: 1}, 50, {25: (1, 1)}, {25: 1}, {25: 1}, 1, False),
    "quick": Plan({250: 2}, None, {1000: (3, 2)}, {250: 2}, {1000: 3}, 5, False),
    "whole": Plan(
        {250: 3},
        100_000,
        {1000: (5, 3), 10_000: (3, 1), 100_000: (2, 1)},
        {1000: 2, 10_000: 1},
        {1000: 5, 10_000: 3},
        7,
        True,
    ),
}


# Measuring


@dataclass(frozen=True)
class Cost:
    """What processes took: seconds by the clock and of the processors, and the peak memory of the largest one."""

    wall: float
    cpu: float
    peak_mb: float
    stopped: bool = False  # the last process was ended before it was done

    def __add__(self, other: Cost) -> Cost:
        peak = max(self.peak_mb, other.peak_mb)
        return Cost(self.wall + other.wall, self.cpu + other.cpu, peak, self.stopped or other.stopped)


Commands = list[list[str]]


def run(commands: Commands, folder: Path, *, may_fail: bool = False, most_cpu: float | None = None) -> Cost:
    """Run commands one after another and say what they took, as the operating system accounts for them.

    A tool that has used ``most_cpu`` seconds of the processors is ended there by the operating system. Raises
    ``RuntimeError`` where one leaves with another code than 0, since a tool that gives up early is not fast.
    """
    total = Cost(0, 0, 0)
    for command in commands:
        limit = None if most_cpu is None else math.ceil(most_cpu - total.cpu)
        with tempfile.TemporaryFile() as said:
            start = time.perf_counter()
            child = subprocess.Popen(
                command, cwd=folder, stdout=said, stderr=subprocess.STDOUT, preexec_fn=partial(_limit_cpu, limit)
            )
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - start
            child.returncode = os.waitstatus_to_exitcode(status)
            stopped = limit is not None and child.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
            if not stopped and child.returncode and not may_fail:
                said.seek(0)
                text = said.read().decode("utf-8", "replace")
                raise RuntimeError(f"{' '.join(command)} left with {child.returncode}: {text[-500:]}")
        total += Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, stopped)
        if stopped:
            break
    return total


def _limit_cpu(seconds: int | None) -> None:
    """In the child, before the tool starts: the operating system ends it after so many seconds of processor time."""
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (max(seconds, 1), max(seconds, 1) + 5))


def in_turn(tools: dict[str, Callable[[], Cost]], rounds: dict[str, int]) -> dict[str, list[Cost]]:
    """The costs of each tool: one of each in turn, as many rounds as each has."""
    costs: dict[str, list[Cost]] = {name: [] for name in tools}
    for number in range(max(rounds.values())):
        for name, tool in tools.items():
            if number < rounds[name]:
                costs[name].append(tool())
                print(f"  {name}: {costs[name][-1].wall:.1f} s", file=sys.stderr, flush=True)
    return costs


def ratios(others: list[Cost], ours: list[Cost]) -> list[float]:
    """How many times longer the other took, by processor time, round by round.

    Processor time, because it is what the tools need; the clock adds what else the machine was doing.
    """
    return [other.cpu / own.cpu for other, own in zip(others, ours, strict=False)]


#: What is wanted of `regatta validate`: so many times faster than each.
WANTED = {"frictionless": 10, "linkml": 20}


def bounds(material: Material, size: int, others: list[str]) -> dict[str, Cost]:
    """Our cost of a package as it stands, and the others', each stopped once it took 5 % longer than is wanted."""
    root = material.package(size)
    found = {"regatta": run(regatta("validate"), root)}
    for name in others:
        commands = frictionless() if name == "frictionless" else linkml(root, material.records(size), {"sources"})
        found[name] = run(commands, root, most_cpu=max(found["regatta"].cpu * WANTED[name] * 1.05, 2))
        print(f"  {name}: {found[name]}", file=sys.stderr, flush=True)
    return found


def spread(values: Iterable[float], form: str = ".1f") -> str:
    """Median, and least and most where there are several values."""
    found = sorted(values)
    middle = format(statistics.median(found), form)
    return middle if len(found) < 2 else f"{middle} [{found[0]:{form}}, {found[-1]:{form}}]"


# Material


class Material:
    """The packages of all sizes in the layouts that the tools take, made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.schema = folder / "schema"
        self.counts: dict[int, int] = {}

    def package(self, size: int) -> Path:
        root = self.folder / f"package-{size}"
        if not root.exists():
            print(f"making {size} requirements", file=sys.stderr, flush=True)
            synthetic.write(root, size)
        self.counts[size] = sum(
            resource["rows"] for resource in json.loads(_text(root / "datapackage.json"))["resources"]
        )
        return root

    def merged(self, size: int) -> Path:
        root = self.folder / f"merged-{size}"
        if not root.exists():
            synthetic.merge(self.package(size), root)
        return root

    def records(self, size: int) -> Path:
        """One JSON file a class, and all of them in ``Container.json``."""
        root = self.folder / f"records-{size}"
        if not root.exists():
            package = read(self.package(size))
            tables = {name: [r.as_object() for r in rows] for name, rows in package.records.items() if rows}
            root.mkdir()
            for name, rows in tables.items():
                _write_json(root / f"{table_specs()[name].class_name}.json", rows)
            # linkml-convert cannot handle a slot whose name is a word of Python.
            for row in tables.get("faults", []):
                row["fault_class"] = row.pop("class")
            _write_json(root / "Container.json", tables)
        return root

    def container_schema(self) -> Path:
        """A copy of the schema with a class that holds all tables, without which linkml-convert takes one record."""
        target = self.schema / "container.yaml"
        if not target.exists():
            self.schema.mkdir()
            for file in SCHEMA.glob("*.yaml"):
                text = _text(file).replace("      class: {range: FaultClass", "      fault_class: {range: FaultClass")
                (self.schema / file.name).write_text(text, encoding="utf-8")
            prefixes = yaml.safe_load(_text(SCHEMA / "core.yaml"))["prefixes"]
            tables = {
                name: {"range": spec.class_name, "multivalued": True, "inlined_as_list": True}
                for name, spec in table_specs().items()
            }
            container = {
                "id": "https://w3id.org/regatta/bench", "name": "bench", "prefixes": prefixes, "imports": ["regatta"],
                "default_prefix": "regatta", "default_range": "string",
                "classes": {"Container": {"tree_root": True, "attributes": tables}},
            }  # fmt: skip
            target.write_text(yaml.safe_dump(container, sort_keys=False), encoding="utf-8")
        return target


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


# The tools


def regatta(*arguments: str) -> Commands:
    return [[str(BIN / "regatta"), *arguments]]


def frictionless() -> Commands:
    return [[str(BIN / "frictionless"), "validate", "datapackage.json"]]


def linkml(root: Path, records: Path, as_json: set[str]) -> Commands:
    """One call a class, with the CSV files below ``root``, or with one JSON file for the tables ``as_json``."""
    head = [str(BIN / "linkml"), "validate", "-s", str(SCHEMA / "regatta.yaml"), "-C"]
    commands = []
    for name, spec in table_specs().items():
        files = [str(file) for file in sorted((root / "instruments").rglob(f"{name}.csv"))]
        if name in as_json and files:
            files = [str(records / f"{spec.class_name}.json")]
        if files:
            commands.append([*head, spec.class_name, *files])
    return commands


def validation(material: Material, size: int, rounds: dict[str, int], *, merged: bool) -> dict[str, list[Cost]]:
    """The costs of validating one package by each tool, as it stands or in the layout that suits the others best."""
    root = material.package(size)
    others = material.merged(size) if merged and "frictionless" in rounds else root
    tools: dict[str, Callable[[], Cost]] = {
        "regatta": lambda: run(regatta("validate"), root),
        "frictionless": lambda: run(frictionless(), others),
    }
    if "linkml" in rounds:
        commands = linkml(root, material.records(size), {*table_specs()} if merged else {"sources"})
        tools["linkml"] = lambda: run(commands, root)
    return in_turn({name: tools[name] for name in rounds}, rounds)


def export(material: Material, size: int, rounds: dict[str, int]) -> dict[str, list[Cost]]:
    """The costs of writing one package as Turtle. Ours checks the package first; linkml's check is switched off."""
    root = material.package(size)
    out = material.folder / "out"
    tools: dict[str, Callable[[], Cost]] = {"regatta": lambda: run(regatta("export", "-o", f"{out}-regatta.ttl"), root)}
    if "linkml" in rounds:
        source = material.records(size) / "Container.json"
        options = ["-C", "Container", "--no-validate", "-P", "_base=https://w3id.org/regatta/id/", "-t", "ttl"]
        command = [str(BIN / "linkml-convert"), "-s", str(material.container_schema()), *options]
        tools["linkml"] = lambda: run([[*command, "-o", f"{out}-linkml.ttl", str(source)]], root)
    return in_turn(tools, rounds)


def ask(engine: str, root: Path) -> None:
    """In a process of its own: load the graph of a package, ask the grouped question, print what both took."""
    from regatta_tools.graph import rdf

    text = "".join(rdf.ntriples(read(root)))
    start = time.process_time()
    if engine == "rdflib":
        import rdflib

        graph = rdflib.Graph().parse(data=text, format="nt")
        loaded = time.process_time()
        rows = len(list(graph.query(GROUPED)))
    else:
        store = rdf.store_of(text)
        loaded = time.process_time()
        rows = len(list(store.query(GROUPED)))
    print(json.dumps({"load": loaded - start, "query": time.process_time() - loaded, "rows": rows}))


def stages(root: Path) -> None:
    """In a process of its own: validate a package step by step, and print the processor time of each step."""
    from regatta_tools.garbage import search_paused
    from regatta_tools.validation import keys, run, schema

    taken = {}

    def timed(name: str, step: Callable[[], object]) -> object:
        start = time.process_time()
        result = step()
        taken[name] = time.process_time() - start
        return result

    with search_paused():
        package = timed("reading", lambda: read(root))
        with package.columns_kept():
            timed("form", lambda: schema.check(package))
            timed("keys and references", lambda: keys.check(package))
        timed("all checks", lambda: run.check_package(package))
    taken["rules"] = taken.pop("all checks") - taken["form"] - taken["keys and references"]
    print(json.dumps(taken))


def queries(material: Material, size: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Seconds to load and to answer, by engine, the engines in turn."""
    found: dict[str, list[dict[str, float]]] = {"pyoxigraph": [], "rdflib": []}
    root = material.package(size)
    for _ in range(rounds):
        for engine, answers in found.items():
            command = [sys.executable, __file__, "--ask", engine, str(root)]
            answers.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
            print(f"  {engine}: {answers[-1]}", file=sys.stderr, flush=True)
    if len({answer["rows"] for answers in found.values() for answer in answers}) != 1:
        raise RuntimeError(f"the engines do not agree: {found}")
    return found


# What each finds

Change = Callable[[list[list[str]]], object]


def _rows(table: str, change: Change) -> Callable[[Path], str]:
    """Spoils the rows of a table (its header the first) in the first cell of the package."""

    def spoil(root: Path) -> str:
        file = _first(root, table)
        rows = list(csv.reader(io.StringIO(_text(file), newline="")))
        change(rows)
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        file.write_bytes(out.getvalue().encode("utf-8"))
        return table

    return spoil


def _cell(table: str, column: str, text: str, row: int = 1) -> Callable[[Path], str]:
    """Spoils one cell of the first cell of the package; rows count from 1."""

    def change(rows: list[list[str]]) -> None:
        rows[row][rows[0].index(column)] = text

    return _rows(table, change)


def _text_of(table: str, old: str, new: str, most: int = -1) -> Callable[[Path], str]:
    """Spoils the text of a file."""

    def spoil(root: Path) -> str:
        file = _first(root, table)
        file.write_bytes(_text(file).replace(old, new, most).encode("utf-8"))
        return table

    return spoil


def _first(root: Path, table: str) -> Path:
    return min((root / "instruments").rglob(f"{table}.csv"))


def _swap(rows: list[list[str]]) -> None:
    for row in rows:
        row[1], row[2] = row[2], row[1]


def _cite_again(rows: list[list[str]]) -> None:
    rows.append([rows[1][0].replace("-c1", "-c9"), *rows[1][1:]])


#: What is wrong, and what makes it so.
SPOILED: dict[str, Callable[[Path], str]] = {
    "a row is lost and the descriptor tells": _rows("facts", lambda rows: rows.pop()),
    "a required cell is empty": _cell("requirements", "topic", ""),
    "a value is not in its list": _cell("facts", "kind", "length"),
    "a date is none": _cell("requirements", "valid_from", "2026-02-30"),
    "an id does not have its form": _cell("faults", "id", "Fault 1"),
    "an id stands twice in a table": _cell("facts", "id", "synthetic-us-c00001-r01-f1", 2),
    "one passage is cited twice under two ids": _rows("citations", _cite_again),
    "a reference leads nowhere": _cell("citations", "source", "no-such-source"),
    "a row is of another cell than its folder": _cell("facts", "cell", "synthetic-vn-c00002"),
    "two columns stand in another order": _rows("fault_requirements", _swap),
    "a quote never closes": _text_of("citations", ",35 CFR", ',"35 CFR', 1),
    "the delimiter is a semicolon": _text_of("fault_requirements", ",", ";"),
    "a text is not in Unicode form NFC": _cell("requirements", "topic", unicodedata.normalize("NFD", "Tiền")),
    "a fact has a number that its duty has not": _cell("facts", "value", "97"),
    "a unit does not fit its kind": _cell("facts", "unit", "USD"),
    "a locator is of no known form": _cell("citations", "locator", "somewhere in the act"),
    "a requirement has no basis": _cell("citations", "role", "scope"),
    "a probe's result is not what its formula gives": _cell("fault_probes", "true_result", "1.00", 9),
    "a fault breaks no requirement": _rows("fault_requirements", lambda rows: rows.pop()),
}
#: The one case in which the descriptor is not renewed, as an author would do after an edit.
UNSEEN_BY_ITS_AUTHOR = "a row is lost and the descriptor tells"


def spoiled(folder: Path) -> list[tuple[str, str, bool, bool]]:
    """For each thing that is wrong: the codes that regatta gives, whether frictionless and whether linkml object.

    ``linkml validate`` is given the file that was spoiled.
    """
    found = []
    for number, (what, spoil) in enumerate(SPOILED.items()):
        root = folder / f"spoiled-{number}"
        synthetic.write(root, 50)
        table = spoil(root)
        if what != UNSEEN_BY_ITS_AUTHOR:
            _renew(root)
        done = subprocess.run([*regatta("validate", "--format", "json")[0]], cwd=root, capture_output=True, check=False)
        codes = sorted({finding["code"] for finding in json.loads(done.stdout)["findings"]})
        objects = subprocess.run(frictionless()[0], cwd=root, capture_output=True, check=False).returncode != 0
        found.append((what, ", ".join(codes), objects, _linkml_objects(root, table)))
        print(f"  {found[-1]}", file=sys.stderr, flush=True)
    return found


def _renew(root: Path) -> None:
    """Make the descriptor say what the files are like now, whatever is wrong with them."""
    descriptor = json.loads(_text(root / "datapackage.json"))
    for listed in descriptor["resources"]:
        raw = (root / listed["path"]).read_bytes()
        listed |= {
            "bytes": len(raw),
            "hash": f"sha256:{hashlib.sha256(raw).hexdigest()}",
            "rows": len(raw.splitlines()) - 1,
        }
    _write_json(root / "datapackage.json", descriptor)


def _linkml_objects(root: Path, table: str) -> bool:
    command = next(c for c in linkml(root, root, set()) if c[-1].endswith(f"{table}.csv"))
    done = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)
    # Every "true" in a CSV file is refused, which is no finding about the spoiled cell.
    errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line or "Error" in line]
    return bool([line for line in errors if "is not of type 'boolean' in /binding" not in line])


# The document


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown; figures stand to the right."""
    marks = ["---" if index == 0 else "---:" for index in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, marks, *rows])


def _costs(costs: list[Cost]) -> list[str]:
    peak = max(cost.peak_mb for cost in costs)
    return [spread(c.wall for c in costs), spread(c.cpu for c in costs), f"{peak:,.0f}", str(len(costs))]


class Document:
    """Measures by a plan and writes what was found."""

    def __init__(self, plan: Plan, folder: Path, others: list[str]) -> None:
        self.plan, self.others = plan, others
        self.material = Material(folder)
        self.verdicts: list[str] = []

    def text(self, command: str) -> str:
        start, load = datetime.datetime.now(datetime.UTC), os.getloadavg()[0]
        parts = [self.as_stands(), self.merged(), self.linear(), self.export(), self.query(), self.starts()]
        if self.plan.spoiled:
            parts.append(self.found())
        names = ("frictionless", "linkml", "linkml-runtime", "rdflib", "pyoxigraph", "jsonschema-rs")
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
        head = f"""# Benchmarks

Written by `{command}`. Do not edit: run it again.

- {start:%Y-%m-%d %H:%M} UTC; {os.cpu_count()} processors ({_processor()}), {platform.system()} {platform.machine()},
  Python {platform.python_version()}; load average {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end, this
  run's own share in it.
- regatta-tools {__version__}, {versions}.
- The data are made by `bench/synthetic.py` in the proportions of the shipped package: 1,000 requirements are 40 cells
  with 13,320 rows in 322 files. Nothing in them is law.
- Figures are median [least, most] over the runs stated. *wall* is seconds by the clock, *cpu* the processor time of the
  whole process with its start, *MB* the peak memory of its largest process. Tools run in turn. Ratios are of processor
  time, run by run, since the clock of a shared machine shows what else it was doing.

"""
        targets = "## Targets\n\n" + "\n".join(self.verdicts) + "\n"
        return head + targets + "\n" + "\n".join(parts)

    def target(self, what: str, values: list[float], least: float) -> None:
        if values:
            met = "met" if statistics.median(values) >= least else "**not met**"
            self.verdicts.append(f"- {what}: {spread(values)} times, at least {least:.0f} wanted: {met}.")

    def _validation(self, plan: dict[int, tuple[int, int]], *, merged: bool) -> str:
        rows = []
        self.measured: dict[int, list[Cost]] = getattr(self, "measured", {})
        for size, (own, other) in plan.items():
            rounds = {"regatta": own, **dict.fromkeys(self.others, other)}
            costs = validation(self.material, size, rounds, merged=merged)
            if merged:
                self.measured[size] = costs["regatta"]
            for name, found in costs.items():
                ratio = "" if name == "regatta" else spread(ratios(found, costs["regatta"]))
                rows.append([f"{size:,}", name, *_costs(found), ratio])
            last = size == max(plan)
            for name, least in WANTED.items():
                if name in costs and last:
                    layout = "its best layout" if merged else "the package as it stands"
                    what = f"`regatta validate` against `{name} validate` on {layout}, {size:,} requirements"
                    self.target(what, ratios(costs[name], costs["regatta"]), least)
        return table(["requirements", "tool", "wall", "cpu", "MB", "runs", "ratio"], rows)

    def as_stands(self) -> str:
        plan = {size: (rounds, rounds) for size, rounds in self.plan.as_stands.items()}
        return f"""## Validation of the package as it stands

The same files for all: `regatta validate`; `frictionless validate datapackage.json`, foreign keys included; and
`linkml validate -s schema/regatta.yaml -C CLASS FILES`, one call a class with all files of its table (`sources` as
JSON, because linkml refuses every `true` in a CSV file).

{self._validation(plan, merged=False)}
{self._bounds()}
A package of many small files is unkind to the other two: frictionless reads the table that a foreign key leads to
anew for each file that refers to it, and linkml loads the schema anew for each CSV file. So larger packages are
measured in another layout.
"""

    def _bounds(self) -> str:
        """What is known of a package so large that waiting for the others would take days."""
        size = self.plan.bound
        if size is None:
            return ""
        found = bounds(self.material, size, self.others)
        own = found.pop("regatta")
        rows = [[f"{size:,}", "regatta", *_costs([own]), ""]]
        for name, cost in found.items():
            times = cost.cpu / own.cpu
            shown = f"more than {times:.1f}" if cost.stopped else f"{times:.1f}"
            rows.append([f"{size:,}", name + (" (stopped, not done)" if cost.stopped else ""), *_costs([cost]), shown])
            met = "met" if times >= WANTED[name] else "**not met**"
            self.verdicts.append(
                f"- `regatta validate` against `{name} validate` on the package as it stands, {size:,} requirements: "
                f"{shown} times, at least {WANTED[name]} wanted: {met}."
            )
        return f"""
With {size:,} requirements the other tools were ended once they had used 5 % more processor time than the target
allows; how long they would have taken is not known.

{table(["requirements", "tool", "wall", "cpu", "MB", "runs", "ratio"], rows)}
"""

    def merged(self) -> str:
        return f"""## Validation in the layout that suits the others best

The same rows. For frictionless one CSV file a table, with the same Table Schemas and foreign keys; for linkml one JSON
file a class, which it reads faster than CSV. REGATTA reads the package as it stands, every file of every cell, since it
has no other layout. It also compares hashes, and runs all its rules.

{self._validation(self.plan.merged, merged=True)}
"""

    def linear(self) -> str:
        rows = []
        for size, costs in sorted(self.measured.items()):
            count = self.material.counts[size]
            each = [cost.cpu / count * 1e6 for cost in costs]
            rows.append([f"{size:,}", f"{count:,}", spread(c.wall for c in costs), spread(each), _costs(costs)[2]])
        per_row = {
            size: statistics.median(c.cpu / self.material.counts[size] for c in costs)
            for size, costs in self.measured.items()
        }
        least, most = min(per_row), max(per_row)
        growth = per_row[most] / per_row[least]
        self.verdicts.append(
            f"- Linear: a row takes {growth:.2f} times as long in {most:,} requirements as in {least:,}"
            f" (the start is in both): {'met' if growth <= 1.3 else '**not met**'}."
        )
        largest = self.material.package(most)
        command = [sys.executable, __file__, "--stages", str(largest)]
        taken = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        whole = sum(taken.values())
        steps = [[name, f"{seconds:.1f}", f"{seconds / whole:.0%}"] for name, seconds in taken.items()]
        return f"""## Growth of `regatta validate`

{table(["requirements", "rows", "wall", "microseconds of cpu a row", "MB"], rows)}

Where the time goes with {most:,} requirements (one run). *Rules* are what the other two do not do: everything that is
said in `validators/` about the law, facts, faults and pairs of languages.

{table(["step", "cpu", "share"], steps)}
"""

    def export(self) -> str:
        rows = []
        for size, rounds in self.plan.export.items():
            wanted = {"regatta": rounds} | ({"linkml": rounds} if "linkml" in self.others else {})
            costs = export(self.material, size, wanted)
            for name, found in costs.items():
                ratio = "" if name == "regatta" else spread(ratios(found, costs["regatta"]))
                rows.append([f"{size:,}", name, *_costs(found), ratio])
            if size == max(self.plan.export) and "linkml" in costs:
                what = f"`regatta export` against `linkml-convert`, {size:,} requirements"
                self.target(what, ratios(costs["linkml"], costs["regatta"]), 10)
        return f"""## Export to RDF (Turtle)

`regatta export` reads the package as it stands and checks it first, since a package with errors is not exported.
`linkml-convert --no-validate` is given one JSON document with all records, and a copy of the schema with a class that
holds them and another name for the slot `class`, without which it does not run.

{table(["requirements", "tool", "wall", "cpu", "MB", "runs", "ratio"], rows)}
"""

    def query(self) -> str:
        rows = []
        for size, rounds in self.plan.query.items():
            found = queries(self.material, size, rounds)
            own, other = found["pyoxigraph"], found["rdflib"]
            times = [o["query"] / max(a["query"], 1e-6) for o, a in zip(other, own, strict=True)]
            for name, answers in found.items():
                query, load = (spread((a[key] for a in answers), ".3f") for key in ("query", "load"))
                ratio = spread(times) if name == "rdflib" else ""
                rows.append([f"{size:,}", name, query, load, f"{answers[0]['rows']:,.0f}", str(rounds), ratio])
            if size == max(self.plan.query):
                self.target(f"A grouped query against rdflib, {size:,} requirements", times, 20)
        return f"""## A grouped query

Facts and requirements counted by cell and kind, on the same graph, in a process of its own each. REGATTA asks by
pyoxigraph. Seconds of processor time; the ratio is of the query alone.

```sparql{GROUPED}```

{table(["requirements", "engine", "query", "loading", "rows of the answer", "runs", "ratio"], rows)}
"""

    def starts(self) -> str:
        root = paths.root()
        tools = {
            "`regatta --help`": lambda: run(regatta("--help"), root),
            "`regatta validate` of the shipped package": lambda: run(regatta("validate"), root, may_fail=True),
        }
        costs = in_turn(tools, dict.fromkeys(tools, self.plan.starts))
        rows = []
        for name, found in costs.items():
            wall, cpu = (spread((getattr(cost, key) for cost in found), ".2f") for key in ("wall", "cpu"))
            rows.append([name, wall, cpu, *_costs(found)[2:]])
        return f"""## Start

{table(["command", "wall", "cpu", "MB", "runs"], rows)}
"""

    def found(self) -> str:
        rows = [
            [what, codes or "**nothing**", "yes" if objects else "no", "yes" if refuses else "no"]
            for what, codes, objects, refuses in spoiled(self.material.folder)
        ]
        return f"""## What is found

A package of two cells, spoiled in one place each time (its descriptor renewed afterwards, but for the first). Whether
the tool leaves with an error, and the codes that REGATTA gives (`regatta explain CODE`). linkml is given the file that
was spoiled. All three look at types, required cells, lists of values and patterns.

{table(["what is wrong", "regatta", "frictionless", "linkml"], rows)}
"""


def _processor() -> str:
    try:
        lines = _text(Path("/proc/cpuinfo")).splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="measure the whole and write docs/benchmarks.md")
    parser.add_argument("--plan", choices=sorted(PLANS), help="default: quick, or whole with --write")
    parser.add_argument("--others", default="frictionless,linkml", help="tools to measure beside regatta")
    parser.add_argument("--work", type=Path, help="folder for the data, kept (default: a temporary one)")
    parser.add_argument("--ask", nargs=2, metavar=("ENGINE", "PACKAGE"), help=argparse.SUPPRESS)
    parser.add_argument("--stages", type=Path, metavar="PACKAGE", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.ask:
        ask(chosen.ask[0], Path(chosen.ask[1]))
        return
    if chosen.stages:
        stages(chosen.stages)
        return
    plan = PLANS[chosen.plan or ("whole" if chosen.write else "quick")]
    others = [name for name in chosen.others.split(",") if name]
    command = "python bench/gate.py" + (" --write" if chosen.write else "")
    with tempfile.TemporaryDirectory(prefix="regatta-bench-") as folder:
        work = chosen.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        text = Document(plan, work, others).text(command)
    if chosen.write:
        (paths.root() / "docs" / "benchmarks.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
