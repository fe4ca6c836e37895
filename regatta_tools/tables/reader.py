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
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rule
from regatta_tools.tables.spreadsheet import FIRST, is_forbidden
from regatta_tools.text import decode, line_column, shown

#: Larger files are refused before they are read (a table of the package has a few hundred rows).
MAX_BYTES = 256 * 1024 * 1024
#: Lines of a file: each row costs a hundred bytes of memory, however short it is.
MAX_LINES = 5_000_000
#: Characters of one cell. The standard parser's own limit is global, and libraries raise it.
MAX_CELL = 131_072
#: So many invisible characters are named with their place, the others counted: a binary file has millions.
MOST_INVISIBLE = 20
#: So many rows or cells with the same kind of fault are named with their place, the others counted.
MOST_ALIKE = 1_000
#: Findings after which rows are missing or not to be trusted.
LOSING = frozenset({"R001", "R002", "R003", "R004", "R005", "R006", "R007", "R012", "R017"})

# Controls but tab and line ends, soft hyphen, zero-width and directional marks, non-breaking spaces,
# line and paragraph separators, byte-order mark inside the text, replacement character, lone carriage return.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00a0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f"
    "\ufeff\ufff9-\ufffd]|\r(?!\n)"
)
#: What shows of ASCII, and the line end.
_SHOWN = bytes([*range(0x20, 0x7F), 0x0A])
_SIGNS = sorted(FIRST - set("\t\r\n"))
_BARE = re.compile(r'[^",\n]*')
_CELL_END = re.compile(r",|\r?\n|\Z")


@dataclass
class Table:
    """One file as read.

    ``header`` and ``rows`` are lists of text cells. ``findings`` is what the reader objects to. ``size`` is in
    bytes and ``sha256`` hexadecimal, both of the file as it stands. Places are worked out when somebody asks, and the
    text of a file without a fault is read again for them.
    """

    file: str
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list, repr=False)
    known_lines: list[int] | None = field(default=None, repr=False)
    findings: list[Finding] = field(default_factory=list)
    kept_text: str = field(default="", repr=False)
    known_offsets: list[int] | None = field(default=None, repr=False)
    size: int = 0
    sha256: str = ""
    path: Path | None = None
    broken_off: bool = False

    @property
    def text(self) -> str:
        """The text of the file; empty where it has changed since it was read, and then no place can be told."""
        if not self.kept_text and self.path is not None:
            with suppress(OSError):
                raw = self.path.read_bytes()
                if hashlib.sha256(raw).hexdigest() == self.sha256:
                    self.kept_text = decode(raw)[0]
        return self.kept_text

    @property
    def lines(self) -> list[int]:
        """The physical line on which each row starts (the header is line 1)."""
        self._locate()
        return self.known_lines or [0] * len(self.rows)

    @property
    def offsets(self) -> list[int]:
        """The offset into ``text`` at which each row starts."""
        self._locate()
        return self.known_offsets or []

    def _locate(self) -> None:
        """Work out where the rows start. Only of a file without a fault are the places not known from reading it."""
        if self.known_offsets is None and self.rows:
            again = Table(self.file, kept_text=self.text)
            _parse(again)
            self.known_lines, self.known_offsets = again.known_lines, again.known_offsets

    @property
    def complete(self) -> bool:
        """Whether every row of the file is in ``rows``."""
        return not self.broken_off and not any(f.code in LOSING for f in self.findings)

    def place(self, row: int, cell: int) -> tuple[int, int]:
        """Line and column (from 1, in characters) at which a cell of a row starts; row -1 is the header.

        Both are 0 where the file has changed since it was read.
        """
        if not self.text:
            return 0, 0
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
    raw = read_raw(path, table)
    if raw is None:
        return table
    table = read_content(raw, file, columns)
    if not table.findings:
        # A package may have a million rows, and hardly any of them is asked for its place.
        table.kept_text, table.path = "", path
    return table


def read_raw(path: Path, table: Table) -> bytes | None:
    """The bytes of a file, or ``None`` where ``table`` has been given a finding that says why not."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            # A pipe or a device would block or never end.
            table.say("R001", "this is not a file" + (" but a folder" if stat.S_ISDIR(facts.st_mode) else ""))
            return None
        if facts.st_size > MAX_BYTES:
            table.say("R017", f"the file has {facts.st_size:,} bytes, more than {MAX_BYTES:,}")
            return None
        return path.read_bytes()
    except FileNotFoundError:
        table.say("R001", "the file is not there")
    except OSError as error:
        table.say("R001", f"the file cannot be read: {error.strerror or error}")
    return None


def read_content(raw: bytes, file: str, columns: list[str]) -> Table:
    """Read the bytes of a file as a table, as :func:`read_table` does."""
    table = Table(file, size=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    text, problem = decode(raw)
    if problem is not None:
        table.say("R002", *problem)
        return table
    table.kept_text = text
    if not text.strip():
        table.say("R012", "the file is empty")
        return table

    if (count := text.count("\n")) > MAX_LINES:
        table.say("R017", f"the file has {count:,} lines, more than {MAX_LINES:,}")
        return table
    if _read_faultless(table, columns):
        return table
    _invisible(table)
    whole = _delimiter(table) and _parse(table)
    # A lone carriage return ends the reading with a finding of its own, which elsewhere loses nothing.
    table.broken_off = not whole
    if not whole and not table.header:
        return table
    # Rows before the place at which the quoting breaks are rows like others.
    if not _header(table, columns):
        table.rows, table.known_lines, table.known_offsets = [], [], []
        return table
    _cells(table, columns)
    return table


def _read_faultless(table: Table, columns: list[str]) -> bool:
    """Fill header and rows of a file in which nothing is wrong, which nearly every file is.

    False where anything may be wrong, and then nothing has been done: the steps that look for the place decide. Here
    the same is asked of a whole file at once, which is many times faster.
    """
    text = table.text
    if not _shows_all(text) or not _quotes_stand_right(text):
        return False
    try:
        with _cell_limit():
            header, *rows = csv.reader(text.splitlines(keepends=True), strict=True)
    except csv.Error:
        return False
    cells = [cell for row in rows for cell in row]
    if header != columns or {*map(len, rows)} - {len(columns)} or cells != [*map(str.strip, cells)]:
        return False
    if _may_hold_formula(text) and any(map(is_forbidden, cells)):
        return False
    # Half of the cells repeat another one of the file, and equal ones may be one text in memory.
    same: dict[str, str] = {}
    table.header, table.rows = header, [[*map(same.setdefault, row, row)] for row in rows]
    return True


def _shows_all(text: str) -> bool:
    """Whether a text is in Unicode form NFC and holds no character of ``_INVISIBLE``.

    What Python calls printable leaves out all of them but two, and also the tab and rare characters, for which the
    slow way is good enough.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if text.isascii():
        return not text.encode().translate(None, _SHOWN)
    shows = text.replace("\n", "").isprintable() and "\ufffc" not in text and "\ufffd" not in text
    return shows and unicodedata.is_normalized("NFC", text)


def _may_hold_formula(text: str) -> bool:
    """Whether a cell may begin with a character of ``FIRST``; white space, which is told otherwise, is left out.

    The header begins the text, and each cell stands behind a comma, a line end or a quote.
    """
    return any(sign in text and any(before + sign in text for before in ',\n"') for sign in _SIGNS)


def _quotes_stand_right(text: str) -> bool:
    """Whether every quote opens or closes a whole cell or is doubled inside one, as :func:`_walk` wants it."""
    if '"' not in text:
        return True
    pieces = text.split('"')
    if len(pieces) % 2 == 0:
        return False
    # What stands outside quotes. Between two that touch there is nothing: a doubled quote.
    first, *between, last = pieces[::2]
    return (
        first[-1:] in ("", ",", "\n")
        and last[:1] in ("", ",", "\n", "\r")
        and all(p[0] in ",\r\n" and p[-1] in ",\n" for p in between if p)
    )


def _invisible(table: Table) -> None:
    matches = _INVISIBLE.finditer(table.text)
    for match in islice(matches, MOST_INVISIBLE):
        offset, char = match.start(), match.group()
        if char == "\r":
            what = "carriage return without a line feed"
        else:
            what = f"invisible character U+{ord(char):04X} ({unicodedata.name(char, 'control character').lower()})"
        table.say("R008", what, *line_column(table.text, offset))
    if others := sum(1 for _ in matches):
        table.say("R008", f"{others:,} more invisible characters in this file")


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
    with _cell_limit():
        return _parse_rows(table)


@contextmanager
def _cell_limit() -> Iterator[None]:
    """Within it the standard parser refuses a cell of more than ``MAX_CELL`` characters."""
    others = csv.field_size_limit(MAX_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(others)


def _parse_rows(table: Table) -> bool:
    text = table.text
    lines = table.known_lines = []
    offsets = table.known_offsets = []
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
            lines.append(line)
            offsets.append(offset)
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
    parts = [f"column {index} has no name" for index, name in enumerate(header, 1) if not name.strip()][:30]
    named = Counter(h for h in header if h.strip())
    for what, names in (
        ("missing", [c for c in columns if c not in header]),
        ("unknown", [shown(h) for h in named if h not in columns]),
        ("twice", [shown(h) for h, count in named.items() if count > 1]),
    ):
        if names:
            parts.append(f"{what}: " + ", ".join(names[:30]))
    mend = "make the first line exactly: " + ",".join(columns)
    if not parts:
        parts.append("the columns stand in another order")
        mend = "run `regatta fmt`, which moves the columns back with their cells: " + ",".join(columns)
    differs = next((i for i, h in enumerate(header) if i >= len(columns) or h != columns[i]), 0)
    table.say(
        "R003",
        "the header is not that of this table (" + "; ".join(parts) + ")",
        *table.place(-1, differs),
        mend=mend,
    )
    return False


def _cells(table: Table, columns: list[str]) -> None:
    """Check rows cell by cell, and drop those of a wrong width."""
    width = len(columns)
    normal = unicodedata.is_normalized("NFC", table.text)
    kept: list[int] = []
    said: Counter[str] = Counter()

    def say(code: str, what: str, index: int, cell: int, record: str) -> None:
        said[code] += 1
        if said[code] <= MOST_ALIKE:
            table.say(code, what, *table.place(index, cell), record=record)

    for index, row in enumerate(table.rows):
        record = row[0] if row and columns[0] == "id" else ""
        if len(row) != width:
            what = f"has {len(row)} cells, the header has {width}" if row else "is empty"
            say("R007", f"the row {what}", index, 0, record)
            continue
        kept.append(index)
        for cell, value in enumerate(row):
            if value != value.strip():
                say("R010", f"{columns[cell]} begins or ends with white space", index, cell, record)
            if not normal and not unicodedata.is_normalized("NFC", value):
                say("R009", f"{columns[cell]} is not in Unicode form NFC", index, cell, record)
            if is_forbidden(value):
                say("R019", f"{columns[cell]} is a formula for a spreadsheet: {shown(value, 40)}", index, cell, record)
    for code, count in said.items():
        if count > MOST_ALIKE:
            table.say(code, f"{count - MOST_ALIKE:,} more like this in this file")
    table.known_lines = [table.lines[i] for i in kept]
    table.known_offsets = [table.offsets[i] for i in kept]
    table.rows = [table.rows[i] for i in kept]
