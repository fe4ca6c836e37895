"""The public archive of the study (protocol, section 9) as records.

The archive holds one verdict a suite and target (whether any scenario succeeded), not one a scenario, so its rows have
no scenario but for a positive one of which the archive names the scenario. What its names become is in
``archive.yaml``.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools.documents import Document, SyntaxProblem, read_document
from regatta_tools.errors import InputError
from regatta_tools.measures.records import RecordProblem, Records, Rows, Targets, checked
from regatta_tools.rules.findings import Finding
from regatta_tools.text import readable, shown

#: The archive does not say which model judged.
JUDGE = "study"
FOLDER = "results-summary"


@lru_cache(maxsize=1)
def mapping() -> dict[str, Any]:
    """``archive.yaml``. Shared: do not change it."""
    return read_document(Path(__file__).with_name("archive.yaml")).value


@lru_cache(maxsize=1)
def targets_of_the_study() -> dict[str, Targets]:
    """The study's requirements and faults under the ids that they have here, by cell."""
    names = mapping()
    found = {}
    for industry, cell in names["cells"].items():
        own = f"study-{cell['cell']}"
        found[cell["cell"]] = Targets(
            [f"{own}-r{n:02}" for n in range(1, names["requirements_in_a_cell"] + 1)],
            {f"{own}-f{n}": names["classes"][c] for n, c in enumerate(names["faults"][industry], 1)},
        )
    return found


def from_archive(folder: Path | str) -> Records:
    """Read the archive in ``folder`` (which holds ``results-summary/``).

    Raises :class:`InputError` where a file is not there, and :class:`RecordProblem` with file and line where an id is
    not known or an entry has not the archive's form.
    """
    root = Path(folder)
    base = root / FOLDER if (root / FOLDER).is_dir() else root
    rows = Rows()
    notes = []
    for suffix, generator in mapping()["generators"].items():
        reader = _Reader(rows, generator)
        for kind in ("coverage", "fdr"):
            reader.read(base / f"{kind}_results{suffix}.json", kind)
        notes += reader.notes()
    result = checked(rows, targets_of_the_study(), source=readable(str(root)))
    result.notes += notes
    return result


class _Reader:
    """The two files of one generator."""

    def __init__(self, rows: Rows, generator: str) -> None:
        self.rows, self.generator = rows, generator
        self.suites: dict[str, set[str]] = {"coverage": set(), "fdr": set()}

    def read(self, path: Path, kind: str) -> None:
        try:
            self.document = read_document(path)
        except FileNotFoundError as error:
            raise InputError(
                "the archive has no such file", code="U209", place=readable(str(path)),
                mend="name the folder that holds results-summary/",
            ) from error  # fmt: skip
        except OSError as error:
            what = f"cannot be read: {error.strerror or error}"
            raise InputError(what, code="U209", place=readable(str(path))) from error
        except SyntaxProblem as problem:
            place = f"{readable(str(path))}:{problem.line}"
            # A key that stands twice is a suite with two sets of verdicts.
            raise InputError(problem.message, code="U209", place=place, mend="fetch the file again") from problem
        self.file = str(path)
        self.rows.start(self.file)
        if not isinstance(self.document.value, dict):
            raise self._problem((), "this is no mapping of suites")
        for name, entry in self.document.value.items():
            self.suites[kind].add(name)
            common, industry = self._suite(name)
            try:
                (self._coverage if kind == "coverage" else self._faults)((name,), entry, common, industry)
            except (KeyError, TypeError, AttributeError) as error:
                what = f"the suite {shown(name)} has not the form of the archive: {type(error).__name__} {error}"
                raise self._problem((name,), what) from error

    def notes(self) -> list[str]:
        """Suites of which one stage is missing."""
        odd = self.suites["coverage"] ^ self.suites["fdr"]
        return [f"{self.generator}: {name} is in one of the two files only" for name in sorted(odd)]

    def _problem(self, path: tuple[Any, ...], message: str, code: str = "U209", mend: str = "") -> RecordProblem:
        document: Document = self.document
        line, column = document.key_place(path)
        return RecordProblem([Finding(code, "error", readable(self.file), line, column, "", message, mend)])

    def _suite(self, name: str) -> tuple[dict[str, Any], str]:
        """What the name of a suite says, such as G1_baseline_fintech_rep1."""
        names = mapping()
        body, _, repeat = name.rpartition("_rep")
        for start, strategy in names["strategies"].items():
            industry = body.removeprefix(f"{start}_")
            if body.startswith(f"{start}_") and industry in names["cells"] and repeat.isdecimal():
                suite = f"{self.generator}-{name}"
                return {
                    "run": suite, "suite": suite, "cell": names["cells"][industry]["cell"], "strategy": strategy,
                    "generator": self.generator, "repeat": int(repeat), "draw": 1, "judge": JUDGE,
                }, industry  # fmt: skip
        mend = "names are made of a strategy, an industry and a repeat: " + ", ".join(names["strategies"])
        raise self._problem((name,), f"the name {shown(name)} is of no strategy and industry", "U203", mend)

    def _target(self, path: tuple[Any, ...], text: Any, industry: str, kind: str) -> str:
        cell = mapping()["cells"][industry]
        prefix = cell[kind] + ("-F" if kind == "fault" else "-")
        number = str(text).removeprefix(prefix)
        target = f"study-{cell['cell']}-" + (f"f{number}" if kind == "fault" else f"r{number}")
        held = targets_of_the_study()[cell["cell"]]
        if not str(text).startswith(prefix) or target not in (held.faults if kind == "fault" else held.requirements):
            what = f"unknown {kind} {shown(text)} in a suite of {industry}"
            raise self._problem(path, what, "U203", f"ids of this cell begin with {prefix}")
        return target

    def _add(self, path: tuple[Any, ...], common: dict[str, Any], **cells: Any) -> None:
        self.rows.add(common | cells, self.document.key_place(path)[0])

    def _yes(self, path: tuple[Any, ...], value: Any) -> str:
        if not isinstance(value, bool):
            raise self._problem(path, f"{path[-1]} is {shown(value)}, neither true nor false")
        return "positive" if value else "negative"

    def _coverage(self, at: tuple[Any, ...], entry: Any, common: dict[str, Any], industry: str) -> None:
        for n, item in enumerate(entry["rc"]):
            path = (*at, "rc", n)
            target = self._target((*path, "requirement_id"), item["requirement_id"], industry, "requirement")
            outcome = self._yes((*path, "covered"), item["covered"])
            self._add((*path, "requirement_id"), common, stage="rc", target=target, outcome=outcome)
        for n, item in enumerate(entry["iss"]):
            path = (*at, "iss", n, "iss_score")
            # A rating that is not there is missing, and of a kind that the archive does not tell.
            rated = item["iss_score"] is not None
            self._add(
                path, common, stage="iss", scenario=item["scenario_id"], value=item["iss_score"] if rated else None,
                outcome="rated" if rated else "unparsed",
            )  # fmt: skip
        for key, outcome in (("covered", "positive"), ("not_covered", "negative")):
            for n, category in enumerate(entry["ac"][key]):
                path = (*at, "ac", key, n)
                if category not in mapping()["categories"]:
                    raise self._problem(path, f"unknown category {shown(category)}", "U203")
                self._add(path, common, stage="ac", target=mapping()["categories"][category], outcome=outcome)

    def _faults(self, at: tuple[Any, ...], entry: Any, common: dict[str, Any], industry: str) -> None:
        stages = (("design", "stage_a", "design_covered", {}),
                  ("execution", "stage_b", "execution_detected", {"arm": "joint"}))  # fmt: skip
        for stage, key, verdict, more in stages:
            for n, item in enumerate(entry[key]):
                path = (*at, key, n)
                target = self._target((*path, "fault_id"), item["fault_id"], industry, "fault")
                named = mapping()["classes"].get(item["category"])
                if named is None:
                    raise self._problem((*path, "category"), f"unknown class {shown(item['category'])}", "U203")
                outcome = self._yes((*path, verdict), item[verdict])
                scenario = item["detecting_scenario"] if outcome == "positive" else None
                self._add(
                    (*path, "fault_id"), common | more, stage=stage, target=target, fault_class=named,
                    scenario=scenario, outcome=outcome,
                )  # fmt: skip
