"""Renews ``examples/rules`` after the schema or a shipped requirement has changed.

    .venv/bin/python tests/remake_examples.py            # write what differs, and name it
    .venv/bin/python tests/remake_examples.py --check    # write nothing; exit 1 where something would be written

The legal tables of the base package are taken over from the shipped cells, row by row, with ids of their own
(:data:`TAKEN`), so that an example never says of the law what the instruments do not say. The other tables of the
base and the examples are kept by hand. A change reaches them cell by cell: a new column comes in empty, a row that
an example has from the base follows the base, and what an example changes on purpose stays. A line that cannot be
read as a row (some examples are broken on purpose) is left as it is and named, to be mended by hand.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "examples" / "rules"
BASE = RULES / "base"

Row = dict[str, str]


@dataclass(frozen=True)
class Taken:
    """What one cell of the base takes from a shipped cell: ids without the cell's name, in their new order."""

    cell: str
    title: str
    requirements: tuple[str, ...]
    faults: tuple[str, ...]
    #: Rows that examples add, so the base does without them; rows of fault_values by their parameter.
    left_out: frozenset[str] = field(default_factory=frozenset)


TAKEN = {
    "example-us": Taken(
        "insurance-us",
        "Example, United States",
        ("r01", "r04", "r21"),
        ("fault-business-day-clock", "fault-sar-tipping"),
        frozenset({"pay_by", "fault-business-day-clock-p3", "fault-business-day-clock-p6"}),
    ),
    "example-vn": Taken(
        "insurance-vn",
        "Example, Viet Nam",
        ("r23", "r17", "r12"),
        ("fault-thirty-day-claims",),
        frozenset({"r17-c2", "r17-f4", "r17-f5"}),
    ),
}
_NOTE = "A cell for examples of the rules. Its rows are taken over from {}, without change but for their ids."
_LEGAL = ("sources", "requirements", "citations", "facts", "faults", "fault_requirements", "fault_values",
          "fault_probes")  # fmt: skip


def columns(table: str) -> list[str]:
    from regatta_tools.tables.package import table_specs

    return table_specs()[table].columns


def shipped(table: str, cell: str = "") -> list[Row]:
    with (ROOT / "instruments" / cell / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def text_of(header: list[str], rows: list[Row]) -> str:
    """A table as the package writes it: comma, quotes where needed, line feed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([row.get(column, "") for column in header] for row in rows)
    return out.getvalue()


# The base


def legal_tables() -> dict[str, str]:
    """The legal tables of the base, by path from it, as the shipped cells have them."""
    found: dict[str, str] = {}
    cells, cited = [], set()
    for name, taken in TAKEN.items():
        tables = cell_rows(name, taken)
        cited |= {row[c] for row in tables["citations"] for c in ("source", "kept_in_force_by")}
        for table, rows in tables.items():
            found[f"instruments/{name}/{table}.csv"] = text_of(columns(table), rows)
        cell = next(row for row in shipped("cells") if row["id"] == taken.cell)
        cells.append({**cell, "id": name, "title": taken.title, "note": _NOTE.format(taken.cell)})
    found["instruments/cells.csv"] = text_of(columns("cells"), cells)
    sources = [row for row in shipped("sources") if row["id"] in cited]
    found["instruments/sources.csv"] = text_of(columns("sources"), sources)
    return found


def cell_rows(name: str, taken: Taken) -> dict[str, list[Row]]:
    """The rows of one cell of the base, by table, under their new ids."""
    full = {table: shipped(table, taken.cell) for table in _LEGAL[1:]}
    requirements = [f"{taken.cell}-{r}" for r in taken.requirements]
    faults = [f"{taken.cell}-{f}" for f in taken.faults]
    left = {f"{taken.cell}-{x}" for x in taken.left_out} | taken.left_out

    def keep(table: str, row: Row) -> bool:
        if row.get("id") in left or row.get("parameter") in left:
            return False
        if table == "requirements":
            return row["id"] in requirements
        if table == "faults":
            return row["id"] in faults
        if "fault" in row and row["fault"] not in faults:
            return False
        return row.get("requirement", requirements[0]) in requirements

    rows = {table: [row for row in full[table] if keep(table, row)] for table in full}
    # A value whose fact is not here, and the probes that work it, stay behind.
    facts = {row["id"] for row in rows["facts"]} | {""}
    rows["fault_values"] = [row for row in rows["fault_values"] if row["fact"] in facts]
    worked = {(row["fault"], row["parameter"]) for row in rows["fault_values"]}
    rows["fault_probes"] = [row for row in rows["fault_probes"] if (row["fault"], row["parameter"]) in worked]

    def place(row: Row) -> int:
        name = row.get("requirement") or row["id"]
        return requirements.index(name) if name in requirements else 0

    for table in ("requirements", "citations", "facts"):
        rows[table].sort(key=place)
    ids = {f"{taken.cell}-{old}": f"{name}-r{number:02}" for number, old in enumerate(taken.requirements, 1)}
    return {table: [{c: renamed(v, ids, taken.cell, name) for c, v in row.items()} for row in rows[table]]
            for table in rows}  # fmt: skip


def renamed(value: str, ids: dict[str, str], old: str, new: str) -> str:
    """A cell with the ids of the base: ``insurance-us-r22-c1`` becomes ``example-us-r02-c1``."""
    head, tail = value[: len(old) + 4], value[len(old) + 4 :]
    if head in ids and (not tail or tail.startswith("-")):
        return ids[head] + tail
    return new + value[len(old) :] if value == old or value.startswith(f"{old}-fault-") else value


# Readings, which only the examples of their own rules have: with them a cell is held to having been read

AUDITED = "example-us"


def readings(base: dict[str, str]) -> list[Row]:
    """The shipped readings of what the base takes from a cell, with the hashes that its items have here.

    ``base`` is the text of each table of the base by its path.
    """
    from regatta_tools.provenance import checks
    from regatta_tools.tables.descriptor import build
    from regatta_tools.tables.package import read

    taken = TAKEN[AUDITED]
    ids = {f"{taken.cell}-{old}": f"{AUDITED}-r{number:02}" for number, old in enumerate(taken.requirements, 1)}
    with tempfile.TemporaryDirectory(prefix="regatta-") as name:
        root = Path(name)
        for path, text in base.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8", newline="")
        (root / "datapackage.json").write_text(json.dumps(build(root)), encoding="utf-8")
        package = read(root)
    index = checks.Index(package)
    hashes = {c.key: checks.item_hash(index, c) for c in package.table("citations") if c["cell"] == AUDITED}
    found = []
    for row in shipped("audit", taken.cell):
        new = {column: renamed(value, ids, taken.cell, AUDITED) for column, value in row.items()}
        if new["citation"] in hashes:
            places = (place.partition("=") for place in row["evidence"].split())
            evidence = [renamed(fact, ids, taken.cell, AUDITED) + sign + at for fact, sign, at in places]
            facts = {f.key for f in package.table("facts")}
            evidence = [place for place in evidence if place.partition("=")[0] in facts]
            found.append({**new, "item_hash": hashes[new["citation"]], "evidence": " ".join(evidence)})
    return sorted(found, key=lambda row: row["id"])


#: The hash of no item: what a reading names that was made before the item was changed.
BEFORE = hashlib.sha256(b"the item before it was changed").hexdigest()


def _again(first: Row) -> Callable[[list[Row]], list[Row]]:
    """An earlier reading of the first citation, of which ``first`` says what is different, before the one it has."""

    def change(rows: list[Row]) -> list[Row]:
        later = {**rows[0], "id": f"{rows[0]['citation']}-a2", "date": "2026-12-01"}
        return [{**rows[0], **first}, later, *rows[1:]]

    return change


def _first(cells: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**rows[0], **cells}, *rows[1:]]


_UNREAD = {"outcome": "not-assessed", "reason_code": "text-not-held", "reason": "", "text_hash": "",
           "passage_hash": "", "evidence": ""}  # fmt: skip
#: What each example does to the readings.
READ: dict[str, Callable[[list[Row]], list[Row]]] = {
    "A001-not-read/valid-read-again": _again({"item_hash": BEFORE}),
    "A001-not-read/invalid-changed-after-it-was-read": _first({"item_hash": BEFORE}),
    "A002-reading-without-evidence/valid-not-assessed-at-first": _again(_UNREAD),
    "A002-reading-without-evidence/invalid-no-passage": _first({"passage_hash": ""}),
    "A003-reading-taken-out/valid-two-in-order": _again({}),
    "A003-reading-taken-out/invalid-first-one-gone": lambda rows: _again({})(rows)[1:],
}


def read_examples(base: dict[str, str]) -> dict[Path, str]:
    """The examples of the rules on readings, by file."""
    rows = readings(base)
    return {
        RULES / folder / "instruments" / AUDITED / "audit.csv": text_of(columns("audit"), change(rows))
        for folder, change in READ.items()
    }


# Carrying a change of the base into tables that are kept by hand


def key_of(row: list[str], header: list[str], table: str) -> tuple[str, ...]:
    """What a row is known by: its id, or the columns of its first unique key."""
    from regatta_tools.tables.package import table_specs

    spec = table_specs()[table]
    names = [spec.identifier] if spec.identifier else next(iter(spec.unique_keys.values()), [])
    return tuple(row[header.index(name)] for name in names if name in header) or tuple(row)


def carried(text: str, old_base: str, new_base: str, header: list[str], table: str) -> tuple[str, list[int]]:
    """An example's text after its base has changed, and the numbers of the lines to be mended by hand."""
    old_header, *old_rows = list(csv.reader(io.StringIO(old_base, newline=""))) or [header]
    _, *new_rows = list(csv.reader(io.StringIO(new_base, newline=""))) or [header]
    old = {key_of(row, old_header, table): row for row in old_rows}
    new = {key_of(row, header, table): row for row in new_rows}
    old_lines = dict(zip(old_base.splitlines(keepends=True)[1:], old_rows))
    if len(old_lines) != len(old_rows):
        raise SystemExit(f"{table}: a row of the base stands on several lines, which this script does not carry")
    out, hard, lines = [], [], text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if number == 1 and line.removeprefix("\ufeff") == text_of(old_header, []):
            out.append(line.replace(text_of(old_header, []), text_of(header, [])))
            continue
        row = old_lines.get(line) or parsed(line, len(old_header))
        if row is None or number == 1:
            hard.append(number)
            out.append(line)
            continue
        before = old.get(key_of(row, old_header, table))
        after = new.get(key_of(row, old_header, table))
        if line in old_lines and after is None:
            continue  # the base has dropped the row
        mine, was = dict(zip(old_header, row)), dict(zip(old_header, before or []))
        now = dict(zip(header, after or []))
        cells = [now[c] if after and (c not in mine or mine[c] == was.get(c)) else mine.get(c, "") for c in header]
        out.append(text_of(cells, []))
    fresh = [row for key, row in new.items() if key not in old]
    return "".join(out) + "".join(text_of(row, []) for row in fresh), hard


def parsed(line: str, width: int) -> list[str] | None:
    """The cells of a line that is a whole row in the dialect of the package, else ``None``."""
    try:
        rows = list(csv.reader([line], strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 and len(rows[0]) == width and text_of(rows[0], []) == line else None


def renewed() -> tuple[dict[Path, str], list[str]]:
    """Every file that has to change, with its new text, and what is left to do by hand."""
    changed: dict[Path, str] = {}
    by_hand: list[str] = []
    legal = legal_tables()
    base: dict[str, tuple[str, str]] = {}  # path -> text of the base before and after
    for path in sorted({*legal, *(p.relative_to(BASE).as_posix() for p in BASE.rglob("*.csv"))}):
        file = BASE / path
        old = file.read_text(encoding="utf-8") if file.is_file() else ""
        new = legal.get(path)
        if new is None:
            header = columns(file.stem)
            reheaded = text_of(header, list(csv.DictReader(io.StringIO(old, newline=""))))
            new = old if old.startswith(",".join(header) + "\n") else reheaded
        base[path] = old, new
        if new != old:
            changed[file] = new
    for folder in sorted(RULES.glob("[A-Z]*/*")):
        for file in sorted(folder.rglob("*.csv")):
            old, new = base.get(file.relative_to(folder).as_posix(), ("", ""))
            if old == new:
                continue
            name = file.relative_to(ROOT).as_posix()
            try:
                text = file.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                by_hand.append(f"{name}: not UTF-8")
                continue
            after, hard = carried(text, old, new, columns(file.stem), file.stem)
            by_hand += [f"{name}:{number}" for number in hard]
            if after != text:
                changed[file] = after
    for file, text in read_examples({path: new for path, (_, new) in base.items()}).items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            changed[file] = text
    return changed, by_hand


def write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    from regatta_tools.files import replace_file

    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text.encode("utf-8"))


def described() -> dict[Path, str]:
    """The descriptor of the base, where it does not say what its files are."""
    from regatta_tools.validation.examples import descriptor_text

    file = BASE / "datapackage.json"
    text = file.read_text(encoding="utf-8")
    new = descriptor_text(json.loads(text), BASE)
    return {file: new} if new != text else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs")
    check = parser.parse_args().check
    changed, by_hand = renewed()
    for file, text in changed.items():
        print(file.relative_to(ROOT).as_posix())
        if not check:
            write(file, text)
    # The descriptor counts the tables as they now stand.
    for file, text in described().items():
        changed[file] = text
        print(file.relative_to(ROOT).as_posix())
        if not check:
            write(file, text)
    for line in by_hand:
        print(f"by hand: {line}")
    return 1 if (check and changed) or by_hand else 0


if __name__ == "__main__":
    sys.exit(main())
