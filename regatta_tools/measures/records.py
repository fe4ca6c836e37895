"""Verdicts in one tidy form: the class ``VerdictRecord`` of the schema, one row a judgement.

Rows come from run stores (:func:`from_runs`), from a table of a user's own (:func:`from_table`, CSV or Parquet) or from
the public archive (:mod:`regatta_tools.measures.archive`). All of them go through the same check, which the schema
decides: what a cell may hold, and then what rows may say together. What is wrong is told with file and line, and
nothing is computed from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding, FindingsProblem
from regatta_tools.tables.model import enum_values, load_model
from regatta_tools.text import readable, shown

CLASS = "VerdictRecord"
SCANNED = ("rc", "design", "execution")
#: So many faults of one kind are told with their line, the others counted.
MOST_ALIKE = 5
#: Bytes of a table that are read at a time, and the most that one quoted cell may span.
BLOCK, MOST_QUOTED = 4 << 20, 64 << 20
#: What makes two rows the same judgement.
KEY = ("run", "suite", "cell", "stage", "target", "scenario", "draw", "arm", "judge")
_PLURAL = {"strategy": "strategies", "suite_hash": "hashes"}
#: In what runs of one suite have to agree.
SETTINGS = ("answers", "arms", "draws", "scan", "order")
#: What one run says once.
OF_A_RUN = ("suite", "cell", "strategy", "generator", "repeat", "suite_hash")


@lru_cache(maxsize=1)
def columns() -> tuple[str, ...]:
    """The columns of a table of verdicts, in schema order."""
    return tuple(f["name"] for f in load_model()["classes"][CLASS]["fields"])


@lru_cache(maxsize=1)
def required() -> frozenset[str]:
    """The columns that a table must have and fill."""
    return frozenset(f["name"] for f in load_model()["classes"][CLASS]["fields"] if f["required"])


class RecordProblem(FindingsProblem):
    """Verdicts that cannot be used."""

    what = "verdicts"


@dataclass
class Targets:
    """What a suite of one cell is measured against. ``faults`` maps ids to classes (``None``: unknown)."""

    requirements: list[str] = field(default_factory=list)
    faults: dict[str, str | None] = field(default_factory=dict)


@dataclass
class Records:
    """Checked verdicts.

    ``frame`` is a :class:`pandas.DataFrame` with the columns of the schema: texts as categories (missing where empty),
    ``draw`` and ``repeat`` as integers (0 where empty). ``targets`` holds the requirements and faults of each cell,
    ``scenarios`` the scenarios of each run where the run itself names them. ``notes`` are for the reader of a result.
    """

    frame: Any
    targets: dict[str, Targets]
    scenarios: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    source: str = ""

    def __len__(self) -> int:
        return len(self.frame)

    def to_csv(self, path: Path | str) -> None:
        """Write the rows as a table that :func:`from_table` reads back. Raises :class:`EnvironmentProblem`."""
        from regatta_tools.files import replace_file

        frame = self.frame.copy()
        frame["repeat"] = frame["repeat"].astype("object").where(frame["repeat"] > 0, "")
        replace_file(path, frame.to_csv(index=False, lineterminator="\n", na_rep="").encode("utf-8"))


class Rows:
    """Rows while they are read: each column as codes into its distinct texts, and the line of each row."""

    def __init__(self) -> None:
        from array import array

        self.codes = {name: array("i") for name in columns()}
        # Code 0 is the empty text, which stands for nothing.
        self.texts: dict[str, dict[str, int]] = {name: {"": 0} for name in columns()}
        self.files: list[str] = []
        self.file_of = array("i")
        self.lines = array("i")

    def __len__(self) -> int:
        return len(self.lines)

    def start(self, file: str) -> None:
        """What follows stands in this file."""
        self.files.append(file)

    def add(self, row: Mapping[str, Any], line: int = 0) -> None:
        """Add one row; columns that it does not name are empty."""
        for name, codes in self.codes.items():
            value = row.get(name)
            texts = self.texts[name]
            text = "" if value is None else str(value)
            code = texts.get(text)
            if code is None:
                code = texts[text] = len(texts)
            codes.append(code)
        self.file_of.append(len(self.files) - 1)
        self.lines.append(line)

    def add_block(self, header: Sequence[str], rows: list[list[str]], lines: Iterable[int]) -> None:
        """Add many rows of texts at once."""
        for index, name in enumerate(header):
            texts = self.texts[name]
            column = [row[index] for row in rows]
            for text in dict.fromkeys(column):
                if text not in texts:
                    texts[text] = len(texts)
            self.codes[name].extend(map(texts.__getitem__, column))
        self._end_block(header, len(rows), lines)

    def add_columns(self, found: Mapping[str, tuple[Any, list[str]]], lines: range) -> None:
        """Add many rows at once, each column as codes (rows,) into a list of texts."""
        import numpy as np

        for name, (codes, names) in found.items():
            texts = self.texts[name]
            for text in names:
                if text not in texts:
                    texts[text] = len(texts)
            here = np.array([texts[text] for text in names], np.int32)
            self.codes[name].frombytes(here[codes].tobytes())
        self._end_block(found, len(lines), lines)

    def _end_block(self, header: Iterable[str], count: int, lines: Iterable[int]) -> None:
        from array import array

        for name in self.codes.keys() - set(header):
            self.codes[name].frombytes(bytes(4 * count))
        self.file_of.extend(array("i", [len(self.files) - 1]) * count)
        self.lines.extend(lines)

    def column(self, name: str) -> Any:
        """The codes of a column as an array of shape (rows,)."""
        import numpy as np

        return np.frombuffer(self.codes[name], dtype=np.int32) if len(self) else np.zeros(0, np.int32)

    def place(self, row: int) -> tuple[str, int]:
        return self.files[self.file_of[row]], self.lines[row]


class _Findings:
    """Findings by kind, the first ones with their place and the others counted."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.found: list[Finding] = []
        self.more = 0

    def say(self, code: str, numbers: Any, message: Any, mend: str = "") -> None:
        """Say something of rows, by their numbers; ``message`` is a text or a function of the number."""
        for number in numbers[:MOST_ALIKE]:
            file, line = self.rows.place(int(number))
            text = message(int(number)) if callable(message) else message
            self.found.append(Finding(code, "error", readable(file), line, 0, "", text, mend))
            mend = ""  # once is enough
        self.more += max(0, len(numbers) - MOST_ALIKE)

    def stop(self) -> None:
        if self.found:
            raise RecordProblem(sorted(self.found, key=lambda f: (f.file, f.line)), self.more)


def from_table(
    path: Path | str, *, package: Any = None, any_target: bool = False, judges: Sequence[str] = ()
) -> Records:
    """Read a CSV or Parquet table of verdicts.

    The header names columns of the class ``VerdictRecord`` in any order; those that are not required may be left out.
    Targets must be of the package (``None``: the one at hand) or of the public archive, unless ``any_target``; then
    the targets of a cell are those that occur, and ``fault_class`` says the class of a fault. ``judges`` keeps the rows
    of these judges only. Raises :class:`RecordProblem` with every finding, :class:`InputError` where the file cannot
    be read at all.
    """
    path = Path(path)
    rows = Rows()
    rows.start(str(path))
    if path.suffix.lower() in (".parquet", ".pq"):
        _read_parquet(path, rows)
    else:
        _read_csv(path, rows)
    known = None if any_target else _Known(package)
    return checked(rows, known, judges=judges, source=readable(str(path)))


def _read_csv(path: Path, rows: Rows) -> None:
    from regatta_tools.tables.reader import read_content

    try:
        stream = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from error
    with stream:
        try:
            first = stream.readline()
        except OSError as error:
            raise _unreadable(path, error) from error
        head = first.decode("utf-8-sig", "replace").strip("\r\n")
        header = _header(path, head)
        line = 2
        for block in _blocks(stream, path):
            if (found := _plain_block(block, header)) is not None:
                count = block.count(b"\n")
                rows.add_columns(found, range(line, line + count))
                line += count
                continue
            table = read_content(first + block, str(path), header)
            if table.findings:
                shift = line - 2
                moved = [
                    Finding(f.code, f.severity, f.file, f.line + shift if f.line > 1 else f.line, f.column, f.record,
                            f.message, f.mend)
                    for f in table.findings
                ]  # fmt: skip
                raise RecordProblem(moved[:MOST_ALIKE], max(0, len(moved) - MOST_ALIKE))
            ends = block.count(b"\n") + (not block.endswith(b"\n"))
            if len(table.rows) == ends:
                lines: Iterable[int] = range(line, line + ends)
            else:
                lines = [n + line - 2 for n in table.lines]
            rows.add_block(header, table.rows, lines)
            line += ends
        if line == 2 and not head:
            raise InputError("the file is empty", code="U208", place=str(path), mend=f"columns: {', '.join(columns())}")


def _plain_block(block: bytes, header: list[str]) -> dict[str, tuple[Any, list[str]]] | None:
    """The columns of a block of lines in which nothing is quoted and nothing odd, else ``None``.

    Most tables are such all over, and a compiled parser reads them many times faster. It would accept what the reader
    of tables refuses, so what is not beyond doubt is left to that one, which also knows the place.
    """
    import csv
    import io

    import numpy as np
    import pandas as pd

    from regatta_tools.tables.reader import _shows_all
    from regatta_tools.tables.spreadsheet import is_forbidden

    if b'"' in block or b"\r" in block or not block.endswith(b"\n"):
        return None
    try:
        if not _shows_all(block.decode("utf-8")):
            return None
    except UnicodeDecodeError:
        return None
    signs = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(signs == 10)
    commas = np.searchsorted(np.flatnonzero(signs == 44), ends)
    if (np.diff(commas, prepend=0) != len(header) - 1).any():
        return None
    # Columns by number: a header that says the same twice has been refused.
    frame = pd.read_csv(
        io.BytesIO(block), header=None, dtype="category", na_filter=False, quoting=csv.QUOTE_NONE,
        skip_blank_lines=False, encoding="utf-8", engine="c",
    )  # fmt: skip
    if frame.shape != (len(ends), len(header)):
        return None
    found = {}
    for index, name in enumerate(header):
        texts = [str(c) for c in frame[index].cat.categories]
        if any(x != x.strip() or is_forbidden(x) for x in texts):
            return None
        found[name] = (frame[index].cat.codes.to_numpy(), texts)
    return found


def _header(path: Path, head: str) -> list[str]:
    names = [name.strip().strip('"') for name in head.split(",")]
    parts = []
    if unknown := [n for n in names if n not in columns()]:
        parts.append("unknown: " + ", ".join(shown(n) for n in unknown[:10]))
    if missing := sorted(required() - set(names)):
        parts.append("missing: " + ", ".join(missing))
    if twice := [n for n, count in Counter(names).items() if count > 1]:
        parts.append("twice: " + ", ".join(twice))
    if parts:
        hint = "the delimiter must be a comma; " if max(head.count(";"), head.count("\t")) > head.count(",") else ""
        finding = Finding(
            "U201", "error", readable(str(path)), 1, 1, "", "the header is not one of verdicts: " + "; ".join(parts),
            f"{hint}columns are {', '.join(columns())}",
        )  # fmt: skip
        raise RecordProblem([finding])
    return names


def _blocks(stream: Any, path: Path) -> Iterator[bytes]:
    """The rest of a file in pieces that end with a row: at a line end outside quotes."""
    kept = b""
    while True:
        try:
            piece = stream.read(BLOCK)
        except OSError as error:
            raise _unreadable(path, error) from error
        kept += piece
        if not piece:
            break
        end = kept.rfind(b"\n") + 1
        while end and kept.count(b'"', 0, end) % 2:
            end = kept.rfind(b"\n", 0, end - 1) + 1
        if end:
            yield kept[:end]
            kept = kept[end:]
        elif len(kept) > MOST_QUOTED:
            break  # a quote that never closes: the reader of tables says where it opens
    if kept.strip():
        yield kept


def _read_parquet(path: Path, rows: Rows) -> None:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow, which is not installed", code="U208", place=str(path),
            mend="pip install 'regatta-tools[parquet]', or give a CSV file",
        ) from error  # fmt: skip
    except OSError as error:
        raise _unreadable(path, error) from error
    except Exception as error:  # pyarrow has errors of its own for a file that is no Parquet
        raise InputError(f"no Parquet table: {error}", code="U208", place=str(path)) from error
    header = _header(path, ",".join(map(str, frame.columns)))
    texts = []
    for name in header:
        column = frame[name]
        if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
            column = column.astype("Int64")  # integers with gaps, which Parquet writers often make floats
        texts.append(["" if missing else str(value) for value, missing in zip(column.tolist(), column.isna())])
    # A Parquet file has no lines; the number of the row, from 1, stands for it.
    rows.add_block(header, [list(row) for row in zip(*texts)], range(1, len(frame) + 1))


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be read: {error.strerror or error}", code="U208", place=str(path),
                      mend="name a CSV or Parquet file of verdicts")  # fmt: skip


# Whatever was named


def from_any(
    archive: Path | str | None, runs: Sequence[Path | str], records: Records | Path | str, *, package: Any = None,
    suites: Path | str | None = None, any_target: bool = False, judges: Sequence[str] = (),
) -> Records:  # fmt: skip
    """The verdicts of the archive, of runs, or of a table: of the first that is given."""
    if archive:
        from regatta_tools.measures.archive import from_archive

        return from_archive(archive)
    if runs:
        return from_runs(runs, package=package, suites=suites, judges=judges)
    if isinstance(records, Records):
        return records
    return from_table(records, package=package, any_target=any_target, judges=judges)


# Run stores


def from_runs(
    folders: Sequence[Path | str], *, package: Any = None, suites: Path | str | None = None, judges: Sequence[str] = ()
) -> Records:
    """The verdicts of runs. ``suites`` is a CSV file that says how suites were made (see :func:`read_suites`).

    A judgement that a scan still has to make is ``pending``; one that it need not make is no row. Raises
    :class:`InputError` where a folder holds no run (U107) and :class:`RecordProblem` where runs do not go together.
    """
    from regatta_tools.harness.live import PREFIX
    from regatta_tools.harness.store import JOURNAL, RunStore

    if not folders:
        raise InputError("no run was named", code="U208", mend="name the folders of runs, such as runs/*")
    made = read_suites(suites) if suites else {}
    rows, scenarios, notes = Rows(), {}, []
    stores = [RunStore.read(folder) for folder in folders]
    names = _run_names(stores)
    _together(stores, names)
    targets: dict[str, Targets] = {}
    classes = _known(package)
    for store, name in zip(stores, names):
        manifest = store.manifest
        cell = manifest["cell"]
        held = classes.get(cell, Targets()).faults
        if lost := [f for f in manifest["faults"] if f not in held]:
            raise InputError(
                f"the package does not hold the fault {lost[0]!r} of the cell {cell!r}", code="U203",
                place=str(store.folder), mend="name the package of the run with --package",
            )  # fmt: skip
        targets[cell] = Targets(list(manifest["requirements"]), {f: held[f] for f in manifest["faults"]})
        scenarios[name] = manifest["scenarios"]
        notes += [f"{store.folder}: {note}" for note in store.notes]
        rows.start(str(store.folder / JOURNAL))
        held = pending = 0
        for row, journalled in _rows_of(store, name, made.get(manifest["suite"], {})):
            rows.add(row)
            held, pending = held + journalled, pending + (not journalled)
        probes = sum(key[2].startswith(PREFIX) for key in store.verdicts)
        if stale := len(store.verdicts) - held - probes:
            notes.append(f"{store.folder}: {stale} verdict(s) that the run does not ask for are left out")
        if pending:
            notes.append(f"{store.folder}: the run has not ended, {pending} judgement(s) are still to be made")
        said: dict[str, list[str]] = {}
        for model in manifest["models"]:
            if model.get("note"):
                said.setdefault(f"{model['name']}, {model['note']}", []).append(model["stage"])
        notes += [f"{', '.join(stages)}: {what}" for what, stages in said.items()]
    unused = sorted(set(made) - {s.manifest["suite"] for s in stores})
    if unused:
        notes.append(f"{suites}: no run has the suite {', '.join(unused)}")
    result = checked(rows, targets, judges=judges, source=f"{len(stores)} run(s)", scenarios=scenarios)
    result.notes += dict.fromkeys(notes)
    return result


def read_suites(path: Path | str) -> dict[str, dict[str, str]]:
    """Read a CSV file with the columns suite, strategy, generator, repeat: how each suite was made."""
    from regatta_tools.tables.reader import read_table

    header = ["suite", "strategy", "generator", "repeat"]
    table = read_table(Path(path), str(path), header)
    if table.findings:
        raise RecordProblem(table.findings[:MOST_ALIKE], max(0, len(table.findings) - MOST_ALIKE))
    made: dict[str, dict[str, str]] = {}
    for row, line in zip(table.rows, table.lines):
        if row[0] in made:
            what = f"the suite {shown(row[0])} stands twice"
            raise RecordProblem([Finding("U204", "error", str(path), line, 1, row[0], what, "say it once")])
        made[row[0]] = dict(zip(header[1:], row[1:]))
    return made


def _run_names(stores: Sequence[Any]) -> list[str]:
    """A name for each run: its own, with a number where two folders hold runs of one name."""
    names: list[str] = []
    for store in stores:
        name, number = store.manifest["id"], 1
        while name in names:
            number += 1
            name = f"{store.manifest['id']}.{number}"
        names.append(name)
    return names


def _together(stores: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse runs that are not of one population: changed cells or suites, copies, one suite under two settings."""
    findings: list[Finding] = []
    cells: dict[str, tuple[str, str]] = {}
    suites: dict[str, tuple[str, str]] = {}
    seen: dict[tuple[str, str], list[tuple[Any, str]]] = {}

    def say(code: str, store: Any, message: str, mend: str) -> None:
        findings.append(Finding(code, "error", readable(str(store.folder / "run.json")), 0, 0, "", message, mend))

    for store, name in zip(stores, names):
        manifest, made = store.manifest, store.manifest["made_with"]
        cell, suite = manifest["cell"], manifest["suite"]
        first = cells.setdefault(cell, (made["package"], name))
        if first[0] != made["package"]:
            say("U206", store, f"the cell {cell!r} is in another state than in the run {first[1]!r}",
                "run the suites again with one state of the package")  # fmt: skip
        first = suites.setdefault(suite, (made["suite"], name))
        if first[0] != made["suite"]:
            say("U206", store, f"the suite {suite!r} has another hash than in the run {first[1]!r}: it changed",
                "give the changed suite a name of its own, or run it again")  # fmt: skip
        for other, its_name in seen.setdefault((suite, cell), []):
            held = other.manifest
            if held["made_with"] != made or any(held[k] != manifest[k] for k in SETTINGS):
                say("U205", store, f"the suite {suite!r} was run under other settings in the run {its_name!r}",
                    "name one of the two")  # fmt: skip
            elif held["seed"] == manifest["seed"]:
                say("U204", store, f"the run {its_name!r} holds the same suite with the same seed: a copy, no new draw",
                    "name one of the two, or make another draw with another --seed")  # fmt: skip
        seen[suite, cell].append((store, name))
    if findings:
        raise RecordProblem(findings)


def _rows_of(store: Any, name: str, made: Mapping[str, str]) -> Iterator[tuple[dict[str, Any], bool]]:
    """The rows of one run, each with whether the journal holds it (else it is pending)."""
    manifest = store.manifest
    judges = {m["stage"]: m["name"] for m in manifest["models"]}
    common = {"run": name, "suite": manifest["suite"], "cell": manifest["cell"],
              "suite_hash": manifest["made_with"]["suite"], **made}  # fmt: skip
    arms = [(arm, draw) for draw in range(1, manifest["draws"] + 1) for arm in manifest["arms"]]
    stages = [("rc", manifest["requirements"]), ("design", manifest["faults"]), ("execution", manifest["faults"])]
    for stage, targets in (*stages, ("iss", [""]), ("ac", [""])):
        for target in targets:
            for arm, draw in arms if stage == "execution" else [("", 1)]:
                verdicts = [store.verdict(stage, target, s, draw, arm) for s in manifest["scenarios"]]
                hits = [bool(v) and stage in SCANNED and v["outcome"] == "positive" for v in verdicts]
                for at, (scenario, verdict) in enumerate(zip(manifest["scenarios"], verdicts)):
                    ended = manifest["scan"] == "first" and any(hits[:at] if manifest["order"] == "suite" else hits)
                    if verdict is None and ended:
                        continue
                    row = common | {"stage": stage, "target": target, "scenario": scenario, "draw": draw}
                    if stage == "execution":
                        row["arm"] = arm
                    if verdict is None:
                        yield row | {"judge": judges.get(stage, "unknown"), "outcome": "pending"}, False
                        continue
                    value = verdict.get("value") if stage in ("iss", "ac") else None
                    yield row | {"judge": verdict["judge"], "outcome": verdict["outcome"], "value": value}, True


class _Known(Mapping[str, Targets]):
    """The targets of a package, which is only read when a row is not of the study."""

    def __init__(self, package: Any) -> None:
        self._package, self._held = package, None

    def _targets(self) -> dict[str, Targets]:
        if self._held is None:
            self._held = _known(self._package)
        return self._held

    def __getitem__(self, cell: str) -> Targets:
        return self._targets()[cell]

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets())

    def __len__(self) -> int:
        return len(self._targets())


def _known(package: Any) -> dict[str, Targets]:
    """The targets of every cell of a package, active ones; ``package`` is one, a path, or ``None``."""
    from regatta_tools.tables.package import Package
    from regatta_tools.validation.run import load

    held = package if isinstance(package, Package) else load(package)
    found = {}
    for record in held.table("cells"):
        cell = held.cell(record.key)
        found[cell.id] = Targets([r.key for r in cell.requirements], {f.key: f["class"] for f in cell.faults})
    return found


# The check


def checked(
    rows: Rows,
    known: Mapping[str, Targets] | None,
    *,
    judges: Sequence[str] = (),
    source: str = "",
    scenarios: Mapping[str, list[str]] | None = None,
) -> Records:
    """Check rows and make them :class:`Records`.

    ``known`` holds the targets of each cell; ``None`` takes those that occur. Raises :class:`RecordProblem`.
    """
    import numpy as np

    if not len(rows):
        raise InputError("there are no verdicts", code="U208", place=source, mend="name runs or a table with rows")
    found = _Findings(rows)
    _check_cells(rows, found)
    found.stop()  # what follows compares values that have their form
    _check_fields(rows, found)
    found.stop()
    keep = np.ones(len(rows), bool)
    if judges:
        texts = rows.texts["judge"]
        if lost := [j for j in judges if j not in texts]:
            there = ", ".join(t for t in texts if t)
            raise InputError(
                f"no verdict is by the judge {lost[0]!r}", code="U207", place=source, mend=f"judges: {there}"
            )
        keep = np.isin(rows.column("judge"), [texts[j] for j in judges])
    _check_runs(rows, found)
    _check_duplicates(rows, found, keep)
    targets = _check_targets(rows, found, known)
    found.stop()
    frame = _frame(rows)
    return Records(frame[keep].reset_index(drop=True) if judges else frame, targets, dict(scenarios or {}), [], source)


def _check_cells(rows: Rows, found: _Findings) -> None:
    """What each cell may hold, as the schema has it, asked once for every distinct text."""
    import numpy as np

    from regatta_tools.tables.package import typed
    from regatta_tools.tables.shape import column_validator

    for spec in load_model()["classes"][CLASS]["fields"]:
        name = spec["name"]
        if spec["required"] and len(empty := np.flatnonzero(rows.column(name) == 0)):
            found.say("U201", empty, f"{name} is empty", "fill it")
        engine = column_validator(CLASS, name)
        if engine is None:
            continue
        texts = [t for t in rows.texts[name] if t]
        values = [typed(t, spec["kind"]) for t in texts]
        if engine.is_valid(values):
            continue
        for text, value in zip(texts, values):
            if not engine.is_valid([value]):
                where = np.flatnonzero(rows.column(name) == rows.texts[name][text])
                found.say("U201", where, f"{name} is {shown(text)}", _form(spec))


def _form(spec: Mapping[str, Any]) -> str:
    if "enum" in spec:
        return f"{spec['name']} is one of: {', '.join(enum_values(spec['enum']))}"
    if spec["kind"] == "integer":
        return f"{spec['name']} is a whole number from {spec.get('minimum', 0)}"
    return f"{spec['name']} has the form {spec['pattern']}" if "pattern" in spec else spec["description"]


def _check_fields(rows: Rows, found: _Findings) -> None:
    """What the cells of one row may say together."""
    import numpy as np

    def where(condition: Any) -> Any:
        return np.flatnonzero(condition)

    def has(name: str, *texts: str) -> Any:
        return np.isin(rows.column(name), [rows.texts[name].get(t, -1) for t in texts])

    filled = {name: rows.column(name) > 0 for name in ("target", "scenario", "arm", "value", "fault_class")}
    scanned, iss, ac = has("stage", *SCANNED), has("stage", "iss"), has("stage", "ac")
    whole_ac = ac & ~filled["scenario"]
    answered = has("outcome", "positive", "negative")
    rated = has("outcome", "rated")
    for condition, message in (
        (has("stage", "agent"), "stage is agent: an answer of the agent is no verdict"),
        (scanned & ~filled["target"], "the target is missing"),
        (iss & filled["target"], "iss has no target"),
        (iss & ~filled["scenario"], "iss is about a scenario, which is missing"),
        (ac & (filled["target"] == filled["scenario"]), "ac has a scenario, or a category as target, and not both"),
        (has("stage", "execution") & ~filled["arm"], "the arm is missing"),
        (~has("stage", "execution") & filled["arm"], "only the execution stage has an arm"),
        (scanned & rated, "rated is no outcome of this stage"),
        (iss & answered, "positive and negative are no outcomes of iss: it is rated"),
        (ac & filled["scenario"] & answered, "a scenario is rated for ac: the category stands in value"),
        (whole_ac & rated, "a category is met (positive) or not (negative), not rated"),
        (rated & ~filled["value"], "rated, and the value is missing"),
        (filled["fault_class"] & ~has("stage", "design", "execution"), "only a fault has a fault_class"),
        (iss & rated & ~has("value", "1", "2", "3", "4", "5"), "iss is a whole number from 1 to 5"),
        (
            ac & rated & ~has("value", "none", *enum_values("AdversarialCategory")),
            "the category is none of: none, " + ", ".join(enum_values("AdversarialCategory")),
        ),
        (
            whole_ac & ~has("target", *enum_values("AdversarialCategory")),
            "the category is none of: " + ", ".join(enum_values("AdversarialCategory")),
        ),
    ):
        if condition.any():
            found.say("U202", where(condition), message)


def _combined(columns_: Sequence[Any]) -> Any:
    """One integer for each row that is equal where all columns are equal. Arrays of shape (rows,)."""
    import numpy as np

    code = np.zeros(len(columns_[0]), np.int64)
    span = 1
    for column in columns_:
        size = int(column.max(initial=0)) + 1
        if span * size >= 1 << 62:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            span = int(code.max(initial=0)) + 1
        code = code * size + column
        span *= size
    return code


def _check_runs(rows: Rows, found: _Findings) -> None:
    """One run says one thing of its suite; one name of a suite stands for one hash."""
    import numpy as np

    for within, names, code in (("run", OF_A_RUN, "U205"), ("suite", ("suite_hash",), "U206")):
        group = rows.column(within)
        for name in names:
            values = rows.column(name)
            if name == "suite_hash":
                filled = np.flatnonzero(values > 0)  # not every table has hashes
                if not len(filled):
                    continue
            else:
                filled = np.arange(len(rows))
            held, first = np.unique(group[filled], return_index=True)
            first_of = np.zeros(len(rows.texts[within]), np.int64)
            first_of[held] = filled[first]
            odd = filled[values[filled] != values[first_of[group[filled]]]]
            if not len(odd):
                continue
            # One place for each run or suite that is mixed: all further rows of it would say the same.
            odd = odd[np.sort(np.unique(group[odd], return_index=True)[1])]

            def message(row: int, name: str = name, within: str = within, first_of: Any = first_of) -> str:
                there = int(first_of[rows.column(within)[row]])
                words = [_text(rows, name, at) or "empty" for at in (row, there)]
                whose = f"{within} {shown(_text(rows, within, row))}"
                said = f"mixes {_PLURAL.get(name, name + 's')}: {name}"
                if within == "suite":
                    said = "changed: its hash"
                here, other = (shown(word, 20) for word in words)
                return f"the {whose} {said} is {here} here and {other} on line {rows.lines[there]}"

            mend = (
                "give a suite that changed a name of its own"
                if name == "suite_hash"
                else f"one run is one suite in one cell: give the others a run of their own (column {name})"
            )
            found.say(code, odd, message, mend)


def _text(rows: Rows, name: str, row: int) -> str:
    wanted = rows.codes[name][row]
    return next(text for text, code in rows.texts[name].items() if code == wanted)


def _check_duplicates(rows: Rows, found: _Findings, keep: Any) -> None:
    import numpy as np

    for names, code, what, mend in (
        (KEY, "U204", "the same verdict stands on line", "keep one row a judgement; another answer has another draw"),
        (
            KEY[:-1], "U207", "another judge gave a verdict on the same thing on line",
            "choose a judge with --judge; two judges are compared by agreement, not pooled",
        ),
    ):  # fmt: skip
        at = np.flatnonzero(keep)
        code_of = _combined([rows.column(name) for name in names])[at]
        order = np.argsort(code_of, kind="stable")
        ordered = code_of[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if not len(again):
            continue
        pairs = {int(at[order[i]]): int(at[order[i - 1]]) for i in again}
        numbers = sorted(pairs)
        found.say(code, numbers, lambda row, pairs=pairs, what=what: f"{what} {rows.lines[pairs[row]]}", mend)
        return


def _check_targets(rows: Rows, found: _Findings, known: Mapping[str, Targets] | None) -> dict[str, Targets]:
    """Unknown cells and targets; the targets of the cells that occur."""
    import numpy as np

    parts = [rows.column(n) for n in ("cell", "stage", "target", "fault_class")]
    _, first = np.unique(_combined(parts), return_index=True)
    texts = {n: list(rows.texts[n]) for n in ("cell", "stage", "target", "fault_class")}
    out: dict[str, Targets] = {}
    for row in sorted(first.tolist()):
        cell, stage, target, fault_class = (texts[n][rows.codes[n][row]] for n in texts)
        if stage in ("iss", "ac"):
            target = ""  # a category, which has been checked
        fresh = cell not in out
        held = out.setdefault(cell, Targets())
        of_cell = _of_cell(cell, target, known)
        if of_cell is None:
            if fresh or target:
                what = f"the cell {shown(cell)} is not known"
                mend = "name its package with --package, or take ids as they stand with --any-target"
                found.say("U203", [row], what, mend)
            continue
        if not target:
            continue
        if known is None:
            if stage == "rc" and target not in held.requirements:
                held.requirements.append(target)
            elif stage != "rc":
                before = held.faults.setdefault(target, fault_class or None)
                if fault_class and before and before != fault_class:
                    what = f"the fault {shown(target)} has the class {fault_class} here and {before} elsewhere"
                    found.say("U202", [row], what)
                held.faults[target] = before or fault_class or None
            continue
        if held.faults and held.faults is not of_cell.faults:
            what = f"the cell {cell!r} mixes targets of the study with those of the package"
            found.say("U205", [row], what, "diagnose them apart")
            continue
        held.requirements, held.faults = of_cell.requirements, of_cell.faults
        listed: Any = held.requirements if stage == "rc" else held.faults
        if target not in listed:
            kind = "requirement" if stage == "rc" else "fault"
            other = _cell_of(target, known)
            if other and other != cell:
                what = f"{kind} {shown(target)} is of the cell {other!r}, and the row says {cell!r}: cells are mixed"
                found.say("U205", [row], what, "give each row the cell of its target")
            else:
                what = f"unknown {kind} {shown(target)} in the cell {cell!r}"
                found.say("U203", [row], what, "correct it, or name the package that has it with --package")
        elif stage != "rc" and fault_class and held.faults[target] not in (None, fault_class):
            what = f"the fault {shown(target)} has the class {held.faults[target]}, not {fault_class}"
            found.say("U202", [row], what, "correct the class, or leave the column out")
    return out


def _cell_of(target: str, known: Mapping[str, Targets]) -> str | None:
    """The cell that has a target, if any."""
    from regatta_tools.measures.archive import targets_of_the_study

    held = targets_of_the_study() if target.startswith("study-") else known
    return next((c for c, t in held.items() if target in t.requirements or target in t.faults), None)


def _of_cell(cell: str, target: str, known: Mapping[str, Targets] | None) -> Targets | None:
    """The targets against which a row is held: those of the package, or of the study where the id is one of the
    study's."""
    if known is None:
        return Targets()
    from regatta_tools.measures.archive import targets_of_the_study

    study = targets_of_the_study().get(cell)
    # A row without a target says nothing of whose cell it is.
    return study if target.startswith("study-") or (study and not target) else known.get(cell)


def _frame(rows: Rows) -> Any:
    import numpy as np
    import pandas as pd

    data = {}
    for name in columns():
        codes = rows.column(name)
        texts = list(rows.texts[name])
        if name in ("draw", "repeat"):
            values = np.array([int(t) if re.fullmatch("[0-9]+", t) else 0 for t in texts], np.int32)
            data[name] = values[codes]
        else:
            data[name] = pd.Categorical.from_codes(codes - 1, categories=texts[1:])
    return pd.DataFrame(data)
