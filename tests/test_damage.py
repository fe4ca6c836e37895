"""Damage to the real package: what editors, spreadsheets, disks and hands do to it, and what is seen of it.

Each kind of damage is done to a copy of the real package and checked twice: with the descriptor as it was (the editor
went straight to `regatta validate`) and with a renewed one (the editor ran `make schema` first, and so told the
package that the damage is meant). docs/limits-of-the-gate.md says for each kind what is seen; the tests at the end
hold that page to what happens here.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, one_cell, redescribe
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import regatta_tools
from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import DESCRIPTOR, Package, read, table_specs
from regatta_tools.validation.run import check_package

PAGE = ROOT / "docs" / "limits-of-the-gate.md"
CELLS = sorted(path.name for path in (ROOT / "instruments").iterdir() if path.is_dir())
SPECS = table_specs()
#: What nothing is judged by: of these tables only the form is looked at under a renewed descriptor.
BESIDE = {name for name, spec in SPECS.items() if spec.scope == "context" or name.startswith("gold_")}
Rows = list[list[str]]


@dataclass(frozen=True)
class Hurt:
    """Where a damage has to be seen. ``file`` empty: anywhere; ``line`` 0: somewhere in the file. ``after``: also
    under a renewed descriptor."""

    file: str
    line: int = 0
    after: bool = True


class Copy:
    """A copy of the package, or of one cell of it, that is spoilt and mended again and again."""

    def __init__(self, root: Path, cell: str | None) -> None:
        self.root = root
        if cell:
            judging(root, cell)
        else:
            for path in (p for p in (ROOT / "instruments").rglob("*.csv") if p.stem not in BESIDE):
                target = root / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
            redescribe(root)
        self.descriptor = (root / DESCRIPTOR).read_bytes()
        self.good = {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*.csv"))}
        self.filled = [file for file in self.good if self.rows(file)]

    def mend(self) -> None:
        (self.root / DESCRIPTOR).write_bytes(self.descriptor)
        for file, content in self.good.items():
            path = self.root / file
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)

    def table(self, file: str) -> str:
        return file.rsplit("/", 1)[1].removesuffix(".csv")

    def text(self, file: str) -> str:
        return self.good[file].decode("utf-8")

    def grid(self, file: str) -> Rows:
        """Header and rows."""
        return list(csv.reader(io.StringIO(self.text(file), newline=""), strict=True))

    def rows(self, file: str) -> Rows:
        return self.grid(file)[1:]

    def write(self, file: str, content: Rows | str | bytes) -> None:
        if isinstance(content, list):
            content = as_csv(content)
        raw = content.encode("utf-8") if isinstance(content, str) else content
        assume(raw != (self.root / file).read_bytes())
        (self.root / file).write_bytes(raw)

    def findings(self) -> list[Finding]:
        return list(regatta_tools.validate(self.root, today="2026-11-30").findings)

    def findings_after_renewal(self) -> list[Finding] | InputError:
        """The findings under a renewed descriptor, or the error with which `make schema` refuses to renew it."""
        try:
            redescribe(self.root)
        except InputError as error:
            return error
        return self.findings()


def judging(root: Path, cell: str) -> Path:
    """A copy of one cell without the tables that nothing is judged by."""
    for path in one_cell(root, cell).rglob("*.csv"):
        if path.stem in BESIDE:
            path.unlink()
    redescribe(root)
    return root


def as_csv(grid: Rows, **form: Any) -> str:
    out = io.StringIO()
    csv.writer(out, **{"lineterminator": "\n"} | form).writerows(grid)
    return out.getvalue()


def line_of(grid: Rows, row: int) -> int:
    """The physical line on which a row of a grid starts (row 0 is the header)."""
    return as_csv(grid[:row]).count("\n") + 1


def errors_at(findings: list[Finding], hurt: Hurt) -> list[Finding]:
    found = [f for f in findings if f.severity == "error" and hurt.file in ("", f.file)]
    return [f for f in found if f.line == hurt.line] if hurt.line else found


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str | None], Copy]:
    made: dict[str | None, Copy] = {}

    def copy(cell: str | None) -> Copy:
        if cell not in made:
            made[cell] = Copy(tmp_path_factory.mktemp(cell or "all"), cell)
        made[cell].mend()
        return made[cell]

    return copy


# The kinds of damage. Each changes a copy and says where that has to be seen.

Draw = Callable[..., Any]
Spoil = Callable[[Copy, Draw], list[Hurt]]
DAMAGE: dict[str, Spoil] = {}
#: Kinds that are seen under a renewed descriptor in part only; each has a witness below.
PARTLY: set[str] = set()


def damage(name: str, *, partly: bool = False) -> Callable[[Spoil], Spoil]:
    def keep(spoil: Spoil) -> Spoil:
        DAMAGE[name] = spoil
        if partly:
            PARTLY.add(name)
        return spoil

    return keep


def any_file(copy: Copy, draw: Draw, *tables: str) -> str:
    return draw(st.sampled_from([f for f in copy.filled if not tables or copy.table(f) in tables]))


def any_cell(
    copy: Copy, draw: Draw, kinds: set[str], where: Callable[[str], bool] = bool
) -> tuple[str, Rows, int, int]:
    """A file with its grid, and row and column of a cell of some kind of column, whose text is as asked for."""
    file = any_file(copy, draw)
    fields = [*SPECS[copy.table(file)].fields.values()]
    grid = copy.grid(file)
    found = [
        (i, j)
        for i, row in enumerate(grid)
        for j, cell in enumerate(row)
        if i and fields[j]["kind"] in kinds and where(cell)
    ]
    assume(found)
    return file, grid, *draw(st.sampled_from(found))


def two_of_one_table(copy: Copy, draw: Draw) -> list[str]:
    table = draw(st.sampled_from(sorted({copy.table(file) for file in copy.filled if file.count("/") > 1})))
    files = [file for file in copy.filled if copy.table(file) == table]
    return draw(st.lists(st.sampled_from(files), min_size=2, max_size=2, unique=True))


def spoil_cell(copy: Copy, draw: Draw, kinds: set[str], change: Callable[[str], str], where: Any = bool) -> list[Hurt]:
    """Change one cell; to be seen on the line of its row."""
    file, grid, row, column = any_cell(copy, draw, kinds, where)
    grid[row][column] = change(grid[row][column])
    copy.write(file, grid)
    return [Hurt(file, line_of(grid, row))]


TEXT = {"string", "ref", "enum", "date", "boolean", "uri", "integer", "float", "decimal"}
CODECS = ["ascii", "latin-1", "cp1252", "cp1258", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@damage("saved in another encoding")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file, codec = any_file(copy, draw), draw(st.sampled_from(CODECS))
    raw = copy.text(file).encode(codec, "replace")
    copy.write(file, raw)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return [Hurt(file, raw[: error.start].count(b"\n") + 1)]
    # UTF-16 of plain letters is full of zeros. What ASCII does not have is question marks, and not each of them shows.
    return [Hurt(file)]


def as_western(text: str) -> str:
    """UTF-8 read in the Western code page of Windows, which shows its five free places as control characters."""
    return "".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in text.encode("utf-8"))


@damage("read in another encoding and saved as UTF-8")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    misread = draw(st.sampled_from([as_western, lambda text: text.encode("utf-8").decode("latin-1")]))
    copy.write(file, misread(copy.text(file)))
    first = next(i for i, row in enumerate(copy.grid(file)) if not "".join(row).isascii())
    return [Hurt(file, line_of(copy.grid(file), first))]


@damage("letters with marks decomposed (NFD)")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file, grid = (name := any_file(copy, draw)), copy.grid(name)
    whole = draw(st.booleans())
    spoilt = [[unicodedata.normalize("NFD", cell) for cell in row] for row in grid]
    rows = [i for i, row in enumerate(grid) if row != spoilt[i]]
    assume(rows)
    chosen = rows if whole else [draw(st.sampled_from(rows))]
    copy.write(file, [spoilt[i] if i in chosen else row for i, row in enumerate(grid)])
    return [Hurt(file, line_of(grid, i)) for i in chosen]


@damage("another delimiter")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    copy.write(file, as_csv(copy.grid(file), delimiter=draw(st.sampled_from(";\t|"))))
    return [Hurt(file, 1)]


@damage("header changed: two names swapped, one lost, one renamed, or none left")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    header, *rows = copy.grid(file)
    i, j = draw(st.lists(st.integers(0, len(header) - 1), min_size=2, max_size=2, unique=True))
    how = draw(st.sampled_from(["swap", "name", "case", "none"]))
    if how == "swap":
        header[i], header[j] = header[j], header[i]
    elif how != "none":
        header[i] = "" if how == "name" else header[i].upper()
    copy.write(file, rows if how == "none" else [header, *rows])
    return [Hurt(file, 1)]


@damage("two columns swapped with their names")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid = copy.grid(file)
    i, j = draw(st.lists(st.integers(0, len(grid[0]) - 1), min_size=2, max_size=2, unique=True))
    for row in grid:
        row[i], row[j] = row[j], row[i]
    copy.write(file, grid)
    return [Hurt(file, 1)]


@damage("empty columns or cells at the end of rows")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid, more = copy.grid(file), [""] * draw(st.integers(1, 3))
    first = draw(st.integers(0, len(grid) - 1))
    only = draw(st.booleans())
    copy.write(file, [row + more if i == first or (i > first and not only) else row for i, row in enumerate(grid)])
    return [Hurt(file, line_of(grid, first))]


@damage("empty rows")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid = copy.grid(file)
    at = draw(st.sampled_from([len(grid), draw(st.integers(1, len(grid)))]))
    if draw(st.booleans()):
        copy.write(file, [*grid[:at], *[[""] * len(grid[0])] * draw(st.integers(1, 3)), *grid[at:]])
    else:
        copy.write(file, as_csv(grid[:at]) + "\n" * draw(st.integers(1, 3)) + as_csv(grid[at:]))
    return [Hurt(file, line_of(grid, at))]


@damage("straight quotes made typographic", partly=True)
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    text = re.sub('"([^"]*)"', "“\\1”", copy.text(file))
    copy.write(file, text)
    grid = list(csv.reader(io.StringIO(text, newline="")))
    odd = [i for i, row in enumerate(grid) if len(row) != len(grid[0])]
    return [Hurt(file, grid_line(text, odd[0]) if odd else 0, after=bool(odd))]


def grid_line(text: str, row: int) -> int:
    """The physical line of a row, by the standard parser's own count."""
    reader = csv.reader(io.StringIO(text, newline=""))
    for _ in range(row):
        next(reader)
    return reader.line_num + 1


@damage("file cut off at any byte", partly=True)
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    raw = copy.good[file][: draw(st.integers(0, len(copy.good[file]) - 1))]
    copy.write(file, raw)
    try:
        grid = list(csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        return [Hurt(file)]
    # The end of a row, or of the last cell of one: what is left has its form.
    whole = bool(grid) and len(grid[-1]) == len(copy.grid(file)[0])
    header = whole and grid[0] == copy.grid(file)[0]
    return [Hurt(file, after=not header)]


@damage("file emptied")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    copy.write(file, draw(st.sampled_from([b"", b"\n\n", b"\xef\xbb\xbf"])))
    return [Hurt(file)]


@damage("file gone")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    (copy.root / file).unlink()
    # A descriptor made anew does not know of it; what rested on its records does.
    return [Hurt(file, after=False), Hurt("")]


@damage("a cell inserted or removed, the rest of the row moved")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid = copy.grid(file)
    row, column = draw(st.integers(1, len(grid) - 1)), draw(st.integers(0, len(grid[0]) - 1))
    if draw(st.booleans()):
        grid[row].insert(column, draw(st.sampled_from(["", "x"])))
    else:
        del grid[row][column]
    copy.write(file, grid)
    return [Hurt(file, line_of(grid, row))]


@damage("a cell moved into the next column", partly=True)
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file, grid, row, column = any_cell(copy, draw, TEXT)
    assume(column + 1 < len(grid[0]))
    grid[row][column + 1], grid[row][column] = grid[row][column], ""
    copy.write(file, grid)
    required = [*SPECS[copy.table(file)].fields.values()][column]["required"]
    return [Hurt(file, line_of(grid, row), after=required)]


@damage("one byte changed", partly=True)
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    raw = bytearray(copy.good[file])
    raw[draw(st.integers(0, len(raw) - 1))] ^= draw(st.integers(1, 255))
    copy.write(file, bytes(raw))
    return [Hurt(file, after=False)]


@damage("an id turned into a number or a date by a spreadsheet")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    turned = st.sampled_from(["10", "1005.1", "2.00E+10", "04-Mar", "2.1E+07", "12/05/2003", "Mar-04", "46000"])
    ids = {"ref"}
    if draw(st.booleans()):
        return spoil_cell(copy, draw, ids, lambda _: draw(turned))
    file, grid, row, _ = any_cell(copy, draw, TEXT)
    assume(grid[0][0] == "id")
    grid[row][0] = draw(turned)
    copy.write(file, grid)
    return [Hurt(file, line_of(grid, row))]


@damage("a day in another form, or as a spreadsheet counts it")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    def change(day: str) -> str:
        year, month, date = day.split("-")
        forms = [f"{date}/{month}/{year}", f"{month}/{date}/{year}", "46000", f"{date}.{month}.{year}", f"{day} 00:00"]
        return draw(st.sampled_from([*forms, f"{int(date)}-Jan-{year[2:]}", f"{year}-{int(month)}-{int(date)}x"]))

    return spoil_cell(copy, draw, {"date"}, change)


@damage("true and false as a spreadsheet writes them")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    return spoil_cell(
        copy, draw, {"boolean"}, lambda word: draw(st.sampled_from([word.upper(), word.title(), "1", "x"]))
    )


@damage("a value of a list in other letters")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    change = st.sampled_from([str.upper, str.title, lambda word: word.replace("-", " ") + " ", lambda word: word + "s"])
    return spoil_cell(copy, draw, {"enum"}, lambda word: draw(change)(word))


@damage("white space at the edge of a cell")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    space = st.sampled_from([" ", "  ", "\t", "\n"])
    return spoil_cell(copy, draw, TEXT, lambda text: draw(space) + text if draw(st.booleans()) else text + draw(space))


@damage("a character that nobody sees inside a cell")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    def change(text: str) -> str:
        at = draw(st.integers(0, len(text)))
        return text[:at] + draw(st.sampled_from("\u00a0\u00ad\u200b\u200e\u2060\ufeff\ufffd\x07")) + text[at:]

    return spoil_cell(copy, draw, TEXT, change)


@damage("a quote lost or added")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    text = copy.text(file)
    body = text.index("\n") + 1
    quotes = [i for i, sign in enumerate(text) if sign == '"' and i >= body]
    if quotes and draw(st.booleans()):
        at = draw(st.sampled_from(quotes))
        text = text[:at] + text[at + 1 :]
    else:
        at = draw(st.integers(body, len(text) - 1))
        text = text[:at] + '"' + text[at:]
    copy.write(file, text)
    # An open quote is told where it opens or where the next one stands: no later than two rows further.
    return [Hurt(file)]


@damage("a row twice")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid = copy.grid(file)
    row = draw(st.integers(1, len(grid) - 1))
    at = draw(st.integers(row + 1, len(grid)))
    grid.insert(at, list(grid[row]))
    copy.write(file, grid)
    return [Hurt(file, line_of(grid, at))]


@damage("a row under a second id", partly=True)
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid = copy.grid(file)
    assume(grid[0][0] == "id")
    row = list(grid[draw(st.integers(1, len(grid) - 1))])
    row[0] += "-again"
    grid.append(row)
    copy.write(file, grid)
    # A second obligation has no basis and a second fault breaks nothing; a second source, probe or reading is one more.
    alone = copy.table(file) in ("sources", "fault_probes", "audit")
    return [Hurt(file, line_of(grid, len(grid) - 1), after=not alone)]


def referrers(copy: Copy, key: str) -> list[Hurt]:
    """The rows that refer to an id."""
    found = []
    for file in copy.filled:
        grid = copy.grid(file)
        refs = [i for i, field in enumerate(SPECS[copy.table(file)].fields.values()) if field["kind"] == "ref"]
        found += [Hurt(file, line_of(grid, i)) for i, row in enumerate(grid) if i and any(row[c] == key for c in refs)]
    return found


@damage("a row lost", partly=True)
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid = copy.grid(file)
    row = grid.pop(draw(st.integers(1, len(grid) - 1)))
    copy.write(file, grid)
    pointing = referrers(copy, row[0]) if grid[0][0] == "id" else []
    moved = [Hurt(hurt.file, 0 if hurt.file == file else hurt.line) for hurt in pointing]
    # Before the renewal the file itself is named; the rows that lost what they point to are named in both states.
    return [Hurt(file, after=False), *moved]


@damage("an id with a letter too many or too few")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw)
    grid = copy.grid(file)
    assume(grid[0][0] == "id")
    row = draw(st.integers(1, len(grid) - 1))
    key = grid[row][0]
    pointing = referrers(copy, key)
    assume(pointing)
    grid[row][0] = draw(st.sampled_from([key + "x", key[:-1] + "xx"]))
    copy.write(file, grid)
    return pointing


@damage("two files of different tables swapped")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    one, other = draw(st.lists(st.sampled_from(copy.filled), min_size=2, max_size=2, unique=True))
    assume(copy.table(one) != copy.table(other))
    copy.write(one, copy.good[other])
    copy.write(other, copy.good[one])
    return [Hurt(one, 1), Hurt(other, 1)]


@damage("a file of another cell in its place, or the two swapped")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    one, other = two_of_one_table(copy, draw)
    copy.write(one, copy.good[other])
    if draw(st.booleans()):
        copy.write(other, copy.good[one])
        return [Hurt(one, 2), Hurt(other, 2)]
    return [Hurt(one, 2)]


@damage("a column of ids taken from another cell")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    one, other = two_of_one_table(copy, draw)
    spec = SPECS[copy.table(one)]
    names = [
        n for n, field in spec.fields.items() if n in ("id", "cell") or (n in ("requirement", "fault", "citation"))
    ]
    column = spec.position[draw(st.sampled_from(names))]
    grid, source = copy.grid(one), copy.rows(other)
    for row, taken in zip(grid[1:], source, strict=False):
        row[column] = taken[column]
    copy.write(one, grid)
    return [Hurt(one, 2)]


@damage("one column of ids sorted or moved by a row, the others not")
def _(copy: Copy, draw: Draw) -> list[Hurt]:
    file = any_file(copy, draw, "citations", "facts", "fault_probes")
    grid = copy.grid(file)
    column = draw(st.sampled_from(["id", {"fault_probes": "fault"}.get(copy.table(file), "requirement")]))
    at = grid[0].index(column)
    move_column(grid, at, draw(st.sampled_from([*MOVES])))
    copy.write(file, grid)
    parent = SPECS[copy.table(file)].position[{"fault_probes": "fault"}.get(copy.table(file), "requirement")]
    odd = [i for i, row in enumerate(grid) if i and not row[0].startswith(f"{row[parent]}-")]
    assume(odd)
    return [Hurt(file, line_of(grid, odd[0]))]


def move_column(grid: Rows, column: int, how: str) -> None:
    for row, cell in zip(grid[1:], MOVES[how]([row[column] for row in grid[1:]]), strict=True):
        row[column] = cell


#: What happens to one column while the others stay: Excel's classics.
MOVES: dict[str, Callable[[list[str]], list[str]]] = {
    "moved by a row": lambda cells: [cells[-1], *cells[:-1]],
    # A spreadsheet puts empty cells last, whichever way it sorts.
    "sorted": lambda cells: sorted(cells, key=lambda cell: (not cell, cell.casefold())),
    "sorted downwards": lambda cells: [*sorted(filter(None, cells), reverse=True), *[c for c in cells if not c]],
}


# Every kind is seen


@pytest.mark.parametrize("name", DAMAGE)
@given(data=st.data())
@settings(max_examples=3, suppress_health_check=[*HealthCheck])
def test_damage_is_seen_where_it_was_done(copies, name, data):
    several = "another cell" in name
    copy = copies(None if several else data.draw(st.sampled_from([*CELLS, *CELLS, None]), "cell"))
    try:
        hurts = DAMAGE[name](copy, data.draw)
        before = copy.findings()
        for hurt in hurts:
            assert errors_at(before, hurt if hurt.after else Hurt(hurt.file)), (hurt, before[:5])
        after = copy.findings_after_renewal()
        if isinstance(after, InputError):
            assert after.place in {hurt.file for hurt in hurts}
            return
        for hurt in hurts:
            assert not hurt.after or errors_at(after, hurt), (hurt, after[:5])
        assert name in PARTLY or any(hurt.after for hurt in hurts), "a kind that can pass after renewal is listed so"
    finally:
        copy.mend()


#: Other ways of writing the same content, which the reader takes.
SAME: dict[str, Callable[[str], bytes]] = {
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode("utf-8"),
    "a byte-order mark": lambda text: text.encode("utf-8-sig"),
    "quotes round every cell": lambda text: as_csv([*csv.reader(io.StringIO(text))], quoting=csv.QUOTE_ALL).encode(),
    "no line end after the last row": lambda text: text.removesuffix("\n").encode("utf-8"),
}


@pytest.mark.parametrize("name", SAME)
@given(data=st.data())
@settings(max_examples=4)
def test_another_writing_of_the_same_content_is_taken_once_the_descriptor_knows(copies, name, data):
    copy = copies(data.draw(st.sampled_from(CELLS)))
    file = any_file(copy, data.draw)
    try:
        records = read(copy.root).rows(copy.table(file))
        copy.write(file, SAME[name](copy.text(file)))
        assert {(f.code, f.file) for f in copy.findings()} == {("R011", file)}
        assert copy.findings_after_renewal() == []
        assert read(copy.root).rows(copy.table(file)) == records
    finally:
        copy.mend()


def test_the_shipped_files_are_written_as_the_tests_write_them(copies):
    """Otherwise a changed cell would come with changes of form, and those might be what is seen."""
    copy = copies(None)
    assert {file: as_csv(copy.grid(file)).encode("utf-8") for file in copy.good} == copy.good


# What is not seen once the descriptor is renewed: one witness each, in the real package

WITNESSES: dict[str, Callable[[Copy], str]] = {}
HOME = "instruments/insurance-us/"


def witness(name: str) -> Callable[[Callable[[Copy], str]], None]:
    def keep(spoil: Callable[[Copy], str]) -> None:
        WITNESSES[name] = spoil

    return keep


def with_row(copy: Copy, table: str, start: str, change: Callable[[list[str], dict[str, int]], None]) -> str:
    """Change the first row of a table that begins with a text."""
    file = f"{HOME}{table}.csv"
    grid = copy.grid(file)
    change(next(row for row in grid if row[0].startswith(start)), SPECS[table].position)
    copy.write(file, grid)
    return file


@witness("a row lost")
def _(copy: Copy) -> str:
    file = f"{HOME}fault_probes.csv"
    grid = copy.grid(file)
    # Another probe works the same parameter.
    grid.remove(next(row for row in grid if row[0] == f"{HOME.split('/')[1]}-fault-business-day-clock-p1"))
    copy.write(file, grid)
    return file


@witness("file cut off at any byte")
def _(copy: Copy) -> str:
    file = f"{HOME}faults.csv"
    # Inside the last cell of the last row, which is in quotes.
    text = copy.text(file)
    assert text.endswith('"\n')
    copy.write(file, text[:-3] + '"')
    return file


@witness("a row under a second id")
def _(copy: Copy) -> str:
    file = f"{HOME}fault_probes.csv"
    grid = copy.grid(file)
    copy.write(file, [*grid, [f"{grid[-1][0]}-again", *grid[-1][1:]]])
    return file


@witness("straight quotes made typographic")
def _(copy: Copy) -> str:
    file = f"{HOME}faults.csv"
    copy.write(file, copy.text(file).replace("'", "’"))
    return file


@witness("a cell moved into the next column")
def _(copy: Copy) -> str:
    def change(row: list[str], at: dict[str, int]) -> None:
        assert row[at["evidence"]] and not row[at["decision"]]
        row[at["decision"]], row[at["evidence"]] = row[at["evidence"]], ""

    return with_row(copy, "audit", "insurance-us-r01", change)


@witness("one byte changed")
def _(copy: Copy) -> str:
    def change(row: list[str], at: dict[str, int]) -> None:
        row[at["shows_when"]] = row[at["shows_when"]].swapcase()[:1] + row[at["shows_when"]][1:]

    return with_row(copy, "faults", "insurance-us-fault-business", change)


@witness("a text of a fault that says something else")
def _(copy: Copy) -> str:
    def change(row: list[str], at: dict[str, int]) -> None:
        row[at["shows_when"]] = "The assistant says nothing."

    return with_row(copy, "faults", "insurance-us-fault-business", change)


# What only the gate of readings sees once the descriptor is renewed: the obligation is not the one that was read

REREAD: dict[str, Callable[[Copy], str]] = {}


def reread(name: str) -> Callable[[Callable[[Copy], str]], None]:
    """Each names the requirement that has to be read again."""

    def keep(spoil: Callable[[Copy], str]) -> None:
        REREAD[name] = spoil

    return keep


@reread("a text of an obligation that says something else")
def _(copy: Copy) -> str:
    def change(row: list[str], at: dict[str, int]) -> None:
        row[at["observable_test"]] = "The assistant says nothing."

    with_row(copy, "requirements", "insurance-us-r05", change)
    return "insurance-us-r05"


@reread("a limit changed in the duty and in its fact")
def _(copy: Copy) -> str:
    def fact(row: list[str], at: dict[str, int]) -> None:
        assert row[at["value"]] == "45"
        row[at["value"]] = "60"

    def duty(row: list[str], at: dict[str, int]) -> None:
        row[at["duty_en"]] = row[at["duty_en"]].replace("45th", "60th")

    with_row(copy, "facts", "insurance-us-r05-f3", fact)
    with_row(copy, "requirements", "insurance-us-r05", duty)
    return "insurance-us-r05"


@reread("another passage of the same text cited")
def _(copy: Copy) -> str:
    def change(row: list[str], at: dict[str, int]) -> None:
        assert row[at["locator"]].endswith("(b)(4)")
        row[at["locator"]] = row[at["locator"]].replace("(b)(4)", "(b)(3)")

    with_row(copy, "citations", "insurance-us-r02-c4", change)
    return "insurance-us-r02"


@pytest.mark.parametrize("name", REREAD)
def test_an_obligation_that_is_not_the_one_that_was_read_is_seen_by_that_alone(copies, name):
    copy = copies("insurance-us")
    try:
        requirement = REREAD[name](copy)
        after = [(f.code, f.record) for f in copy.findings_after_renewal() if f.severity == "error"]
        assert after == [("A001", requirement)]
    finally:
        copy.mend()


@pytest.mark.parametrize("name", WITNESSES)
def test_the_page_says_truly_what_is_not_seen(copies, name):
    copy = copies("insurance-us")
    try:
        file = WITNESSES[name](copy)
        assert errors_at(copy.findings(), Hurt(file)), "before the renewal, everything is"
        after = copy.findings_after_renewal()
        assert [f for f in after if f.severity == "error"] == [], "it is seen now: say so on the page"
    finally:
        copy.mend()


@given(data=st.data())
@settings(max_examples=12, suppress_health_check=[*HealthCheck])
def test_damage_to_the_tables_beside_is_seen_before_the_descriptor_is_renewed(tmp_path_factory, data):
    """Context and gold probes: whatever an editor did to a file is an error in that file."""
    root = one_cell(tmp_path_factory.mktemp("beside"), data.draw(st.sampled_from(CELLS)), gold=True)
    file = data.draw(st.sampled_from(sorted(p for p in root.rglob("*.csv") if p.stem in BESIDE)))
    lines = file.read_text(encoding="utf-8").split("\n")
    how = data.draw(st.sampled_from(["row gone", "row twice", "rows in another order", "file gone", "file emptied"]))
    at = data.draw(st.integers(1, len(lines) - 2))
    if how == "row gone":
        del lines[at]
    elif how == "row twice":
        lines.insert(at, lines[at])
    elif how == "rows in another order":
        lines[1:-1] = [*lines[2:-1], lines[1]]
    file.write_text("" if how == "file emptied" else "\n".join(lines), encoding="utf-8", newline="")
    if how == "file gone":
        file.unlink()
    found = [f for f in regatta_tools.validate(root).findings if f.severity == "error"]
    assert file.relative_to(root).as_posix() in {f.file for f in found}, how


# Cells of one column that change places, the classic of spreadsheets


def errors_of_move(package: Package, table: str, column: str, how: str) -> int | None:
    """How many errors there are after a move, or ``None`` where it changes nothing."""
    rows, at = package.rows(table), SPECS[table].position[column]
    before = [row[at] for row in rows]
    after = MOVES[how](before)
    if after == before:
        return None
    try:
        for row, cell in zip(rows, after, strict=True):
            row[at] = cell
        return sum(f.severity == "error" for f in check_package(package, today=date(2026, 11, 30)))
    finally:
        for row, cell in zip(rows, before, strict=True):
            row[at] = cell


@pytest.fixture(scope="session")
def packages(tmp_path_factory) -> dict[str, Package]:
    """One package for each cell, read: what is changed in its rows is checked, and no descriptor stands against it."""
    return {cell: read(judging(tmp_path_factory.mktemp(cell), cell)) for cell in CELLS}


def loose_columns() -> dict[str, set[str]]:
    """The columns of which the page says that their cells can change places unseen, by table."""
    lines = re.findall(r"^\| (\w+) \| ([a-z_, ]+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    return {table: set(columns.split(", ")) for table, columns in lines if table in SPECS}


@pytest.mark.parametrize("cell", CELLS)
def test_no_other_column_can_be_moved_unseen(packages, cell):
    loose, package = loose_columns(), packages[cell]
    unseen = [
        (table, column)
        for table in package.names
        for column in SPECS[table].columns
        if column not in loose.get(table, set()) and errors_of_move(package, table, column, "moved by a row") == 0
    ]
    assert not unseen, "name them on the page"


@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[*HealthCheck])
def test_no_other_column_can_be_sorted_unseen(packages, data):
    loose, package = loose_columns(), packages[data.draw(st.sampled_from(CELLS))]
    table = data.draw(st.sampled_from(package.names))
    column = data.draw(st.sampled_from([c for c in SPECS[table].columns if c not in loose.get(table, set())]))
    errors = errors_of_move(package, table, column, data.draw(st.sampled_from([*MOVES])))
    assume(errors is not None)
    assert errors, "name it on the page"


@pytest.mark.parametrize("table", loose_columns() if PAGE.is_file() else [])
def test_each_column_that_the_page_names_can(packages, table):
    tries = [(package, how) for package in packages.values() for how in MOVES]
    seen = [
        column
        for column in sorted(loose_columns()[table])
        if all(errors_of_move(package, table, column, how) != 0 for package, how in tries)
    ]
    assert not seen, "a rule sees it now: take it off the page"


# The page


def test_the_page_names_every_kind_with_what_is_seen():
    text = PAGE.read_text(encoding="utf-8")
    found = dict(re.findall(r"^\| ([^|]+) \| yes \| (yes|in part|no) \|", text, re.M))
    wanted = {name: "in part" if name in PARTLY else "yes" for name in DAMAGE}
    wanted |= {name: "no" for name in WITNESSES if name not in DAMAGE} | dict.fromkeys(REREAD, "yes")
    assert found == wanted
    assert set(WITNESSES) >= PARTLY, "each has a witness"
    for name in SAME:
        assert f"- {name}" in text
