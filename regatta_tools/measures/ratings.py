"""Ratings that are to be compared: read from a table or from label files, each item by two raters or more.

A table is *tidy* (one row a rating, with columns for item, rater and value) or *wide* (one row an item, one column a
rater). An empty cell is no rating. Neither is an outcome that carries no verdict (unparsed, refused ...): it is counted
by kind and never taken for an answer, unless the declared scale holds it. What is wrong is told with file, line and
column, and then nothing is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding, FindingsProblem
from regatta_tools.tables.model import enum_values
from regatta_tools.text import readable, shown

#: So many findings of one kind are told with their place, the others counted.
MOST_ALIKE = 5
#: More categories than this, on no declared scale, are no ratings but names or measurements.
MOST_CATEGORIES = 50
#: More raters than this would make a table of pairs that nobody reads.
MOST_RATERS = 50
#: Endings of label files.
LABELS = (".yaml", ".yml", ".json")
NOTHING = "no rating"


class RatingProblem(FindingsProblem):
    """Ratings that cannot be used."""

    what = "ratings"


@dataclass
class Group:
    """The ratings of one value of the column ``--by`` (one group without it).

    ``codes`` is an array of shape (items, raters): positions on the scale, and -1 for no rating. ``strata`` and
    ``clusters`` name those of each item, or are ``None``. ``missing`` counts, for each rater, why there is no rating.
    """

    name: dict[str, str]
    items: list[str]
    raters: list[str]
    scale: list[str]
    codes: Any
    missing: list[Counter[str]]
    strata: list[str] | None = None
    clusters: list[str] | None = None


@dataclass
class Ratings:
    """Ratings in groups. ``declared`` says whether somebody said what the scale is."""

    groups: list[Group]
    declared: bool
    source: str
    notes: list[str] = field(default_factory=list)


@dataclass
class _Rating:
    """One rating with its place."""

    group: tuple[str, ...]
    item: str
    rater: str
    value: str
    stratum: str
    cluster: str
    row: int


class _Findings:
    """Findings by kind: the first few with their place, the others counted."""

    def __init__(self, file: str) -> None:
        self.file = readable(file)
        self.found: list[Finding] = []
        self.kinds: Counter[str] = Counter()

    def say(self, code: str, kind: str, place: tuple[int, int], message: str, mend: str = "") -> None:
        self.kinds[kind] += 1
        if self.kinds[kind] <= MOST_ALIKE:
            first = mend if self.kinds[kind] == 1 else ""
            self.found.append(Finding(code, "error", self.file, *place, "", message, first))

    def stop(self) -> None:
        if self.found:
            more = sum(max(0, n - MOST_ALIKE) for n in self.kinds.values())
            raise RatingProblem(sorted(self.found, key=lambda f: (f.line, f.column)), more)


def missing_words() -> frozenset[str]:
    """Outcomes of the schema that carry no verdict."""
    return frozenset(enum_values("RecordOutcome")) - {"positive", "negative", "rated"}


def read(
    files: Sequence[Path | str],
    *,
    item: Sequence[str] = (),
    rater: str = "rater",
    value: str = "value",
    rater_columns: Sequence[str] = (),
    scale: Sequence[str] = (),
    strata: str | None = None,
    cluster: str | None = None,
    by: Sequence[str] = (),
    missing: Sequence[str] = (),
    package: Any = None,
) -> Ratings:
    """Read ratings from one CSV table, or from two label files or more of one suite.

    ``item`` names the columns that say what was rated (tidy and wide; by default ``item`` where it is there),
    ``rater`` and ``value`` those of a tidy table, ``rater_columns`` those of a wide one. ``scale`` lists the values in
    order. ``strata`` and ``cluster`` are columns; ``strata`` may also be a rater, whose ratings are then the strata.
    ``missing`` are further words for no rating. Raises :class:`RatingProblem` with places, :class:`InputError` for a
    file that cannot be read at all.
    """
    paths = [Path(f) for f in files]
    if not paths:
        raise InputError("no file was named", code="U210", mend="name a CSV file of ratings, or two label files")
    if twice := [s for s, n in Counter(scale).items() if n > 1]:
        raise InputError(f"the scale holds {twice[0]!r} twice", code="U213", mend="say each value once, in order")
    if all(p.suffix.lower() in LABELS for p in paths):
        return _from_labels(paths, package, strata, cluster)
    if len(paths) > 1:
        raise InputError(
            "several files are compared only where all are label files", code="U210", place=str(paths[1]),
            mend="put the ratings of a table into one CSV file",
        )  # fmt: skip
    return _from_csv(paths[0], _Words(
        list(item), rater, value, list(rater_columns), list(scale), strata, cluster, list(by), frozenset(missing)
    ))  # fmt: skip


@dataclass
class _Words:
    item: list[str]
    rater: str
    value: str
    rater_columns: list[str]
    scale: list[str]
    strata: str | None
    cluster: str | None
    by: list[str]
    missing: frozenset[str]


def _from_csv(path: Path, words: _Words) -> Ratings:
    from regatta_tools.tables.reader import Table, read_content, read_raw

    first = Table(str(path))
    raw = read_raw(path, first)
    if raw is not None:
        # The header is the table's own, so it is read first and the whole is then held against it.
        head = raw.partition(b"\n")[0].decode("utf-8-sig", "replace").strip("\r")
        import csv

        header = next(csv.reader([head]), [])
        first = read_content(raw, str(path), header)
    if first.findings:
        where = "U210" if first.findings[0].code == "R001" else first.findings[0].code
        if where == "R012":
            raise InputError("the file is empty", code="U210", place=str(path), mend="add a header and ratings")
        if where == "U210":
            raise InputError(first.findings[0].message, code=where, place=str(path), mend="check the path")
        raise RatingProblem(first.findings[:MOST_ALIKE], max(0, len(first.findings) - MOST_ALIKE))
    if not first.rows:
        raise InputError("the table has a header and no ratings", code="U210", place=str(path), mend="add rows")
    tidy = not words.rater_columns and {words.rater, words.value} <= set(first.header)
    found = _Findings(str(path))
    _check_header(first, words, tidy, found)
    found.stop()
    listed = list(_tidy(first, words)) if tidy else list(_wide(first, words))
    order = None if tidy else words.rater_columns or _raters(first.header, words)
    return _gathered(listed, order, first, words, found, tidy)


def _check_header(table: Any, words: _Words, tidy: bool, found: _Findings) -> None:
    header = table.header
    there = f"columns: {', '.join(header)}"
    for name, count in Counter(header).items():
        if count > 1:
            found.say("U211", "twice", table.place(-1, header.index(name)), f"the column {shown(name)} stands twice")
    wanted = [(n, "--item") for n in words.item] + [(n, "--by") for n in words.by]
    wanted += [(n, "--rater-columns") for n in words.rater_columns]
    wanted += [(words.cluster, "--cluster")] if words.cluster else []
    if words.strata and not tidy:
        wanted += [(words.strata, "--strata")]
    for name, option in wanted:
        if name not in header:
            found.say("U211", f"no {name}", (1, 1), f"there is no column {shown(name)} ({option})", there)
    if tidy and not words.item and "item" not in header:
        found.say("U211", "item", (1, 1), "no column says what was rated", f"name it with --item; {there}")
    if not tidy and not found.found:
        raters = words.rater_columns or _raters(header, words)
        if len(raters) < 2:
            text = "a table of ratings has the columns item, rater and value, or two columns of raters or more"
            found.say("U211", "raters", (1, 1), text, f"name them with --rater-columns A,B; {there}")


def _raters(header: Sequence[str], words: _Words) -> list[str]:
    """The columns of a wide table that hold ratings where nobody names them: all that are nothing else."""
    rest = {*(words.item or ["item"]), *words.by, words.cluster}
    raters = [name for name in header if name not in rest]
    without = [name for name in raters if name != words.strata]
    # The strata may be the answers of one of two raters, as in the study's check by an expert.
    return without if len(without) >= 2 else raters


def _tidy(table: Any, words: _Words) -> Any:
    at = {name: i for i, name in enumerate(table.header)}
    items = [at[n] for n in words.item or ["item"]]
    groups = [at[n] for n in words.by]
    stratum, cluster = at.get(words.strata or ""), at.get(words.cluster or "")
    rater, value = at[words.rater], at[words.value]
    for number, row in enumerate(table.rows):
        yield _Rating(
            tuple(row[i] for i in groups), " / ".join(row[i] for i in items), row[rater], row[value],
            "" if stratum is None else row[stratum], "" if cluster is None else row[cluster], number,
        )  # fmt: skip


def _wide(table: Any, words: _Words) -> Any:
    at = {name: i for i, name in enumerate(table.header)}
    named = words.item or (["item"] if "item" in at else [])
    groups = [at[n] for n in words.by]
    stratum, cluster = at.get(words.strata or ""), at.get(words.cluster or "")
    for number, row in enumerate(table.rows):
        item = " / ".join(row[at[n]] for n in named) if named else f"row {number + 1}"
        for name in words.rater_columns or _raters(table.header, words):
            yield _Rating(
                tuple(row[i] for i in groups), item, name, row[at[name]],
                "" if stratum is None else row[stratum], "" if cluster is None else row[cluster], number,
            )  # fmt: skip


def _gathered(
    listed: list[_Rating], raters: list[str] | None, table: Any, words: _Words, found: _Findings, tidy: bool
) -> Ratings:
    """Check ratings and put them into groups."""
    at = {name: i for i, name in enumerate(table.header)}
    no_rating = (missing_words() | words.missing) - set(words.scale)

    def place(rating: _Rating, column: str) -> tuple[int, int]:
        return table.place(rating.row, at.get(rating.rater if not tidy and column == words.value else column, 0))

    if tidy:
        for rating in listed:
            if not rating.rater:
                found.say("U212", "no rater", place(rating, words.rater), "the rater is missing", "name every rater")
    if not raters:
        raters = list(dict.fromkeys(r.rater for r in listed if r.rater))
    known = {v: i for i, v in enumerate(words.scale)}
    for rating in listed:
        if not rating.item.strip(" /"):
            found.say("U212", "no item", place(rating, (words.item or ["item"])[0]), "the item is missing", "name it")
        if words.scale and rating.value and rating.value not in known and rating.value not in no_rating:
            message = f"{shown(rating.value)} of {shown(rating.rater)} is not on the scale"
            mend = f"the scale is {', '.join(words.scale)}; words for no rating are named with --missing"
            found.say("U213", "scale", place(rating, words.value), message, mend)
    if len(raters) < 2:
        only = f"only {shown(raters[0])} rated anything" if raters else "nobody rated anything"
        found.say("U212", "one rater", (2, 1), f"{only}: agreement needs two raters", "add the ratings of another one")
    if len(raters) > MOST_RATERS:
        text = f"{len(raters)} raters, more than {MOST_RATERS}"
        found.say("U212", "many raters", (2, 1), text, "see that the column of raters is named rightly (--rater)")
    scale = list(words.scale)
    if not scale:
        seen = {r.value for r in listed if r.value and r.value not in no_rating}
        if len(seen) > MOST_CATEGORIES:
            message = f"{len(seen)} different values on no declared scale: these are names or measurements"
            mend = "name the raters with --rater-columns, or the scale with --scale"
            found.say("U213", "many", (2, 1), message, mend)
        scale = _in_order(seen)
    _duplicates(listed, table, words, found, tidy)
    found.stop()
    gaps = Counter(r.value or NOTHING for r in listed if not r.value or r.value in no_rating)
    if sum(gaps.values()) == len(listed):
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(gaps.items()))
        raise InputError(f"every rating is missing ({kinds})", code="U210", place=found.file, mend="add ratings")

    by_rater_stratum = words.strata if words.strata in raters else None
    if words.strata and words.strata not in at and by_rater_stratum is None:
        raise InputError(
            f"there is no column and no rater {words.strata!r} for the strata", code="U211", place=found.file,
            mend=f"columns: {', '.join(table.header)}; raters: {', '.join(raters)}",
        )  # fmt: skip
    groups: dict[tuple[str, ...], dict[str, dict[str, _Rating]]] = {}
    for rating in listed:
        groups.setdefault(rating.group, {}).setdefault(rating.item, {})[rating.rater] = rating
    code = {v: i for i, v in enumerate(scale)}
    made = []
    for name, held in groups.items():
        made.append(_group(dict(zip(words.by, name)), held, raters, scale, code, words, by_rater_stratum, found, place))
    found.stop()
    return Ratings(made, bool(words.scale), found.file)


def _duplicates(listed: list[_Rating], table: Any, words: _Words, found: _Findings, tidy: bool) -> None:
    first: dict[tuple[Any, ...], int] = {}
    for rating in listed:
        key = (rating.group, rating.item, rating.rater)
        before = first.setdefault(key, rating.row)
        if before != rating.row:
            line = table.lines[before]
            message = f"{shown(rating.rater)} rated {shown(rating.item)} on line {line} already"
            mend = "keep one rating of an item by a rater; further columns that tell items apart are named with --item"
            found.say("U214", "twice", (table.lines[rating.row], 1), message, mend)


def _in_order(values: set[str]) -> list[str]:
    """Values in the order of their numbers where all are numbers, and of the alphabet otherwise."""
    try:
        return sorted(values, key=lambda v: (float(v), v))
    except ValueError:
        return sorted(values)


def _group(
    name: dict[str, str], held: dict[str, dict[str, _Rating]], raters: list[str], scale: list[str],
    code: dict[str, int], words: _Words, rater_stratum: str | None, found: _Findings, place: Any,
) -> Group:  # fmt: skip
    import numpy as np

    codes = np.full((len(held), len(raters)), -1, np.int64)
    missing: list[Counter[str]] = [Counter() for _ in raters]
    strata: list[str] | None = [] if words.strata else None
    clusters: list[str] | None = [] if words.cluster else None
    for number, ratings in enumerate(held.values()):
        for at, rater in enumerate(raters):
            text = ratings[rater].value if rater in ratings else ""
            codes[number, at] = code.get(text, -1)
            if codes[number, at] < 0:
                missing[at][text or NOTHING] += 1
        one = next(iter(ratings.values()))
        for other in ratings.values():
            for what, column in (("stratum", words.strata), ("cluster", words.cluster)):
                mine, its = getattr(one, what), getattr(other, what)
                if column and mine != its:
                    message = f"{shown(other.item)} is in the {what} {shown(its)} here and in {shown(mine)} before"
                    found.say("U215", what, place(other, column), message, f"an item is in one {what}")
        if strata is not None:
            stratum = one.stratum
            if rater_stratum is not None:
                stratum = (ratings[rater_stratum].value if rater_stratum in ratings else "") or NOTHING
            strata.append(stratum)
        if clusters is not None:
            clusters.append(one.cluster)
    return Group(name, list(held), list(raters), scale, codes, missing, strata, clusters)


# Label files


def _from_labels(paths: list[Path], package: Any, strata: str | None, cluster: str | None) -> Ratings:
    """Label files of one suite in one cell. What an entry does not list is labelled no: the cell says what is asked."""
    import numpy as np

    from regatta_tools.suites.reader import usable
    from regatta_tools.tables.package import Package
    from regatta_tools.validation.run import load

    if len(paths) < 2:
        raise InputError(
            "one label file holds one rater: agreement needs two", code="U212", place=str(paths[0]),
            mend="name the label file of another reader too; a judge is held against labels with regatta calibrate",
        )  # fmt: skip
    if cluster not in (None, "scenario", "target"):
        raise InputError(f"labels have no {cluster!r}", code="U211", mend="--cluster scenario, or --cluster target")
    held = package if isinstance(package, Package) else load(package)
    sheets = [usable(p, "LabelSet") for p in paths]
    first = sheets[0].value
    cell = held.cell(first["cell"])
    targets = {"rc": [r.key for r in cell.requirements], "design": [f.key for f in cell.faults]}
    keys = {"rc": "requirements", "design": "faults"}
    scenarios = [e["scenario"] for e in first["labels"]]
    raters: list[str] = []
    yes: list[set[tuple[str, str, str]]] = []
    for path, sheet in zip(paths, sheets):
        found = _Findings(str(path))
        value = sheet.value
        if (value["suite"], value["cell"]) != (first["suite"], first["cell"]):
            wanted = f"{first['suite']!r} in {first['cell']!r}"
            message = f"labels of {value['suite']!r} in {value['cell']!r}, not of {wanted}"
            found.say("U215", "suite", sheet.place(("suite",)), message, "compare labels of one suite in one cell")
        seen: set[str] = set()
        marked: set[tuple[str, str, str]] = set()
        for number, entry in enumerate(value["labels"]):
            name = entry["scenario"]
            if name in seen:
                where = sheet.place(("labels", number, "scenario"))
                found.say("U214", "twice", where, f"scenario {shown(name)} has more than one entry", "keep one")
            seen.add(name)
            for stage, key in keys.items():
                for at, target in enumerate(entry.get(key) or []):
                    if target not in targets[stage]:
                        message = f"unknown target {shown(target)} in the cell {cell.id!r}"
                        found.say("U213", "target", sheet.place(("labels", number, key, at)), message, "correct it")
                    marked.add((stage, target, name))
        for other in sorted(set(scenarios) ^ seen)[:MOST_ALIKE]:
            whose = "here" if other not in seen else f"in {readable(str(paths[0]))}"
            message = f"scenario {shown(other)} has no entry {whose}"
            found.say("U215", "scenarios", sheet.place(("labels",)), message, "label the same scenarios")
        found.stop()
        rater = value["labeller"]
        raters.append(rater if rater not in raters else f"{rater} ({readable(path.name)})")
        yes.append(marked)
    groups = []
    for stage, names in targets.items():
        keyed = [(stage, t, s) for t in names for s in scenarios]
        codes = np.array([[int(k in marked) for marked in yes] for k in keyed], np.int64)
        part = {"scenario": [k[2] for k in keyed], "target": [k[1] for k in keyed]}
        its_strata = part.get(strata or "") or _by_rater(strata, raters, codes)
        groups.append(Group(
            {"stage": stage}, [f"{t} / {s}" for _, t, s in keyed], raters, ["no", "yes"], codes,
            [Counter() for _ in raters], its_strata, part[cluster or "scenario"],
        ))  # fmt: skip
    notes = [] if cluster else ["The pairs of one scenario hang together, so scenarios are resampled, not pairs."]
    return Ratings(groups, True, ", ".join(readable(str(p)) for p in paths), notes)


def _by_rater(strata: str | None, raters: list[str], codes: Any) -> list[str] | None:
    if strata is None:
        return None
    if strata not in raters:
        raise InputError(f"labels have no stratum {strata!r}", code="U211", mend=f"raters: {', '.join(raters)}")
    return [("no", "yes")[c] for c in codes[:, raters.index(strata)]]
