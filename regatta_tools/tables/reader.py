"""Reading one CSV file with places: text in, rows out, every cell with its line and column.

The dialect is fixed (comma, double quote doubled inside quotes, UTF-8 with or without byte-order
mark, LF or CRLF). Nothing is guessed and nothing is dropped: what does not fit becomes a finding with
its line and column. The rows come from the standard library's strict parser; places are worked out
only for cells that somebody asks about, so that clean files stay cheap.
"""

from __future__ import annotations

import csv
import hashlib
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rule
from regatta_tools.text import decode, line_column, shown

#: Larger files are refused before they are read (a table of the package has a few hundred rows).
MAX_BYTES = 256 * 1024 * 1024
#: Characters of one cell. The standard parser's own limit is global, and libraries raise it.
MAX_CELL = 131_072
#: So many invisible characters are named with their place, the others counted: a binary file has millions.
MOST_INVISIBLE = 20
#: Findings after which rows are missing or not to be trusted.
LOSING = frozenset({"R001", "R002", "R003", "R004", "R005", "R006", "R007", "R012", "R017"})

# Controls but tab and line ends, soft hyphen, zero-width and directional marks, non-breaking spaces,
# line and paragraph separators, byte-order mark inside the text, replacement character, lone carriage return.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00a0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f"
    "\ufeff\ufff9-\ufffd]|\r(?!\n)"
)
_BARE = re.compile(r'[^",\n]*')
_CELL_END = re.compile(r",|\r?\n|\Z")


@dataclass
class Table:
    """One file as read.

    ``header`` and ``rows`` are lists of text cells; ``lines[i]`` is the physical line on which row
    ``i`` starts (the header is line 1). ``findings`` is what the reader objects to. ``size`` is in
    bytes and ``sha256`` hexadecimal, both of the file as it stands.
    """

    file: str
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list, repr=False)
    lines: list[int] = field(default_factory=list, repr=False)
    findings: list[Finding] = field(default_factory=list)
    text: str = field(default="", repr=False)
    offsets: list[int] = field(default_factory=list, repr=False)
    size: int = 0
    sha256: str = ""

    @property
    def complete(self) -> bool:
        """Whether every row of the file is in ``rows``."""
        return not any(f.code in LOSING for f in self.findings)

    def place(self, row: int, cell: int) -> tuple[int, int]:
        """Line and column (from 1, in characters) at which a cell of a row starts; row -1 is the header."""
        offset, line = (0, 1) if row < 0 else (self.offsets[row], self.lines[row])
        starts, _ = _walk(self.text, offset)
        if cell >= len(starts):
            return line, 1
        start = starts[cell]
        line_start = self.text.rfind("\n", 0, start) + 1
        return line + self.text.count("\n", offset, start), start - line_start + 1

    def say(self, code: str, message: str, line: int = 0, column: int = 0, record: str = "", mend: str = "") -> None:
        """Add a finding about this file."""
        self.findings.append(
            rule(code).finding(message, file=self.file, line=line, column=column, record=record, mend=mend)
        )


def _walk(text: str, offset: int) -> tuple[list[int], tuple[str, int] | None]:
    """Walk the quotes of the record that starts at ``offset``.

    Returns the offsets of its cells and, where the quoting is wrong, the rule code with the offset of
    the place. The standard parser is not strict enough (it lets a quote inside a bare cell pass) and
    gives no places.
    """
    starts = []
    at = offset
    while True:
        starts.append(at)
        if text.startswith('"', at):
            end = text.find('"', at + 1)
            while end >= 0 and text.startswith('"', end + 1):
                end = text.find('"', end + 2)
            if end < 0:
                return starts, ("R005", at)
            end += 1
            if not _CELL_END.match(text, end):
                return starts, ("R006", end)
        else:
            end = _BARE.match(text, at).end()  # type: ignore[union-attr]  # matches the empty text at least
            if text.startswith('"', end):
                return starts, ("R006", end)
        if not text.startswith(",", end):
            return starts, None
        at = end + 1


def read_table(path: Path, file: str, columns: list[str]) -> Table:
    """Read ``path`` as a table whose header must be exactly ``columns``.

    ``file`` is the name to report. Never raises for content: the result's ``findings`` say what is
    wrong, and ``rows`` holds what could be read beyond doubt (none where the header is wrong, since no
    cell could be trusted to its column).
    """
    table = Table(file)
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            # A pipe or a device would block or never end.
            table.say("R001", "this is not a file" + (" but a folder" if stat.S_ISDIR(facts.st_mode) else ""))
            return table
        if facts.st_size > MAX_BYTES:
            table.say("R017", f"the file has {facts.st_size:,} bytes, more than {MAX_BYTES:,}")
            return table
        raw = path.read_bytes()
    except FileNotFoundError:
        table.say("R001", "the file is not there")
        return table
    except OSError as error:
        table.say("R001", f"the file cannot be read: {error.strerror or error}")
        return table
    table.size, table.sha256 = len(raw), hashlib.sha256(raw).hexdigest()

    text, problem = decode(raw)
    if problem is not None:
        table.say("R002", *problem)
        return table
    table.text = text
    if not text.strip():
        table.say("R012", "the file is empty")
        return table

    _invisible(table)
    whole = _delimiter(table) and _parse(table)
    if not whole and not table.header:
        return table
    # Rows before the place at which the quoting breaks are rows like others.
    if not _header(table, columns):
        table.rows, table.lines, table.offsets = [], [], []
        return table
    _cells(table, columns)
    return table


def _invisible(table: Table) -> None:
    offsets = [m.start() for m in _INVISIBLE.finditer(table.text)]
    for offset in offsets[:MOST_INVISIBLE]:
        char = table.text[offset]
        if char == "\r":
            what = "carriage return without a line feed"
        else:
            what = f"invisible character U+{ord(char):04X} ({unicodedata.name(char, 'control character').lower()})"
        table.say("R008", what, *line_column(table.text, offset))
    if len(offsets) > MOST_INVISIBLE:
        table.say("R008", f"{len(offsets) - MOST_INVISIBLE:,} more invisible characters in this file")


def _delimiter(table: Table) -> bool:
    """Whether the first line has the comma as its delimiter (checked before quotes, which depend on it)."""
    first = table.text.partition("\n")[0]
    for sign, name in ((";", "semicolon"), ("\t", "tab"), ("|", "vertical bar")):
        if first.count(sign) > first.count(","):
            table.say("R004", f"the delimiter looks like a {name}", 1, 1)
            return False
    return True


def _parse(table: Table) -> bool:
    """Fill header, rows, lines and offsets; false where the quoting makes the rows unknowable."""
    others = csv.field_size_limit(MAX_CELL)
    try:
        return _parse_rows(table)
    finally:
        csv.field_size_limit(others)


def _parse_rows(table: Table) -> bool:
    text = table.text
    position = 0

    def physical_lines() -> Iterator[str]:
        nonlocal position
        while position < len(text):
            end = text.find("\n", position)
            end = len(text) if end < 0 else end + 1
            line, position = text[position:end], end
            yield line

    reader = csv.reader(physical_lines(), strict=True)
    offset, line = 0, 1
    while True:
        row, error = None, None
        try:
            row = next(reader)
        except StopIteration:
            return True
        except csv.Error as raised:
            error = raised
        if error is not None or '"' in text[offset:position]:
            starts, problem = _walk(text, offset)
            if problem is not None:
                _say_quotes(table, *problem, starts[-1])
                return False
        if row is None:
            longest = max(zip(starts, [*starts[1:], position], strict=True), key=lambda cell: cell[1] - cell[0])
            if longest[1] - longest[0] > MAX_CELL:
                what = f"a cell has more than {MAX_CELL:,} characters"
                table.say("R017", what, *line_column(text, longest[0]))
            elif "\r" not in text[offset:position]:
                table.say("R006", f"the row cannot be read: {error}", *line_column(text, offset))
            # Else a lone carriage return, which has its finding already.
            return False
        if offset == 0:
            table.header = row
        else:
            table.rows.append(row)
            table.lines.append(line)
            table.offsets.append(offset)
        line += text.count("\n", offset, position)
        offset = position


def _say_quotes(table: Table, code: str, where: int, cell: int) -> None:
    line, column = line_column(table.text, where)
    if code == "R005":
        what = "a quote opens here and never closes"
    elif table.text[cell] == '"':
        # The fault may lie at either end: a quote that was never closed ends at the next one that opens.
        what = "text follows the quote that closes the cell begun at {}:{}".format(*line_column(table.text, cell))
    else:
        what = "a quote stands inside a bare cell"
    table.say(code, what, line, column)


def _header(table: Table, columns: list[str]) -> bool:
    header = table.header
    if header == columns:
        return True
    parts = [f"column {index} has no name" for index, name in enumerate(header, 1) if not name.strip()]
    named = [h for h in header if h.strip()]
    for what, names in (
        ("missing", [c for c in columns if c not in header]),
        ("unknown", [shown(h) for h in dict.fromkeys(named) if h not in columns]),
        ("twice", [shown(h) for h in dict.fromkeys(named) if header.count(h) > 1]),
    ):
        if names:
            parts.append(f"{what}: " + ", ".join(names[:30]))
    if not parts:
        parts.append("the columns stand in another order")
    differs = next((i for i, h in enumerate(header) if i >= len(columns) or h != columns[i]), 0)
    table.say(
        "R003",
        "the header is not that of this table (" + "; ".join(parts) + ")",
        *table.place(-1, differs),
        mend="make the first line exactly: " + ",".join(columns),
    )
    return False


def _cells(table: Table, columns: list[str]) -> None:
    """Check rows cell by cell, and drop those of a wrong width."""
    width = len(columns)
    normal = unicodedata.is_normalized("NFC", table.text)
    kept: list[int] = []
    for index, row in enumerate(table.rows):
        record = row[0] if row and columns[0] == "id" else ""
        if len(row) != width:
            what = f"has {len(row)} cells, the header has {width}" if row else "is empty"
            table.say("R007", f"the row {what}", table.lines[index], 1, record)
            continue
        kept.append(index)
        for cell, value in enumerate(row):
            if value != value.strip():
                what = f"{columns[cell]} begins or ends with white space"
                table.say("R010", what, *table.place(index, cell), record=record)
            if not normal and not unicodedata.is_normalized("NFC", value):
                what = f"{columns[cell]} is not in Unicode form NFC"
                table.say("R009", what, *table.place(index, cell), record=record)
    table.rows = [table.rows[i] for i in kept]
    table.lines = [table.lines[i] for i in kept]
    table.offsets = [table.offsets[i] for i in kept]
