"""Damage that leaves every row well formed: columns out of step, and texts that a code page has spoiled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, table_specs
from regatta_tools.text import shown

#: Tables whose ids begin with the id of what a row belongs to, and the columns that hold it.
BELONGS = (
    ("requirements", "cell"),
    ("faults", "cell"),
    ("citations", "requirement"),
    ("facts", "requirement"),
    ("fault_probes", "fault"),
    ("audit", "requirement"),
    ("audit", "citation"),
)

# The bytes 80 to BF as the Western code page of Windows shows them, or as Latin-1 does.
_TRAIL = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
# UTF-8 read in that code page: what stands for the letters of Latin and Vietnamese, for quotes and dashes, and for a
# byte-order mark. A capital before a closing quote or a dash is left out, since texts end so ("XÃ”).
# The first character is one set, and looked back at, because a search for one set is many times faster.
_MISREAD = re.compile(
    f"[ÂÃÄÅÆáâï](?:(?<=[ÂÃÄÅÆ])[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘“•˜™š›œžŸ]|(?<=á)[º»][{_TRAIL}]|(?<=â)[{_TRAIL}]{{2}}|(?<=ï)»¿)"
)
# What a code page does not have is saved as a question mark: a letter inside a word, the sign before a number.
_LOST = re.compile(r"\?(?:(?<=[^\W\d_]\?)[^\W\d_]|(?<![^\s(]\?)\?* ?\d|(?<=\s\?)\s)")
_ADDRESS = re.compile(r"\S+://\S+")


def check(package: Package) -> list[Finding]:
    """Findings of K006, K007 and S006, which look at columns and say nothing of what other rules say already."""
    return [*_out_of_step(package), *_across_cells(package), *_garbled(package)]


def _out_of_step(package: Package) -> Iterator[Finding]:
    """Rows whose id does not begin with the id of what they belong to (K006).

    One column that was sorted or moved by itself keeps every cell in form and every reference alive. What is no
    id at all, or leads nowhere, has its finding already.
    """
    specs = table_specs()
    ids: dict[str, set[str]] = {}
    for spec in specs.values():
        if spec.identifier:
            ids[spec.class_name] = set(package.column(spec.name, spec.identifier))
    for name, column in BELONGS:
        known = ids[specs[name].fields[column]["ref"]]
        pairs = zip(package.column(name, "id"), package.column(name, column), strict=True)
        for index, (own, other) in enumerate(pairs):
            if not own.startswith(other + "-") and own and other in known:
                what = f"the id {shown(own)} does not begin with the {column} {shown(other)}"
                yield package.table(name)[index].finding("K006", "id", what)


def _across_cells(package: Package) -> Iterator[Finding]:
    """References from one cell to a record of another (K007): each cell is measured by itself."""
    specs = table_specs()
    cell_of: dict[str, str] = {}
    for spec in specs.values():
        if spec.identifier and "cell" in spec.fields:
            own, cells = (package.column(spec.name, column) for column in (spec.identifier, "cell"))
            cell_of.update(zip(own, cells, strict=True))
    for name, spec in specs.items():
        if "cell" not in spec.fields:
            continue
        for column in (c for c, field in spec.fields.items() if field["kind"] == "ref" and c != "cell"):
            others = map(cell_of.get, package.column(name, column))
            for index, (other, cell) in enumerate(zip(others, package.column(name, "cell"), strict=True)):
                if other and other != cell and cell:
                    record = package.table(name)[index]
                    what = f"{column} {shown(record[column])} belongs to the cell {shown(other)}"
                    yield record.finding("K007", column, what)


def _garbled(package: Package) -> Iterator[Finding]:
    """Texts that show the marks of another code page (S006)."""
    for name, spec in table_specs().items():
        for column, field in spec.fields.items():
            if field["kind"] != "string":
                continue
            cells = package.column(name, column)
            # Nearly every column is settled at once.
            whole = "\n".join(cells)
            if (whole.isascii() or not _MISREAD.search(whole)) and not _LOST.search(whole):
                continue
            for index, cell in enumerate(cells):
                if found := _MISREAD.search(cell):
                    sign = f"{shown(found.group())}, which is UTF-8 read in another code page"
                elif found := _LOST.search(_ADDRESS.sub("", cell)):
                    around = found.string[max(found.start() - 1, 0) : found.end()].strip()
                    sign = f"{shown(around)}, a question mark where a letter or a sign has to be"
                else:
                    continue
                yield package.table(name)[index].finding("S006", column, f"{column} holds {sign}")
