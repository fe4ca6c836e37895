"""A workbook from outside, opened with care.

Kinds that only look like XLSX are refused with what to do about them, and sizes are looked at before
anything is unpacked. XML is read by openpyxl, which uses defusedxml where it is installed (it is a
dependency of REGATTA), so entities are refused. External links are not followed and macros are
refused.
"""

from __future__ import annotations

import posixpath
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.text import shown

#: Bytes of the file, bytes unpacked, and parts. A workbook of a cell has some 100 kB, 1 MB and 30 parts.
MAX_FILE, MAX_UNPACKED, MAX_PARTS = 32 * 1024 * 1024, 64 * 1024 * 1024, 2_000
#: Cells of the rectangle that a sheet spans.
MAX_SPAN = 1_000_000

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SAVE_AS = "open it in the spreadsheet program and save it as Excel workbook (.xlsx)"
_THREADED = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
#: (sheet, address) -> [(author, text)], oldest first.
Threads = dict[tuple[str, str], list[tuple[str, str]]]


def refused(path: Path, message: str, mend: str, code: str = "U140") -> InputError:
    """The error for a file that cannot be used as a workbook."""
    return InputError(message, code=code, place=str(path), mend=mend)


def open_workbook(path: Path) -> tuple[Any, Threads]:
    """Open an XLSX file and return openpyxl's workbook and the threaded comments.

    Shared strings come as they stand in the file; :func:`regatta_tools.sheets.layout.unescaped` gives
    the text. Raises :class:`InputError` (U140, U141 where it is too large) for whatever is no usable
    workbook.
    """
    _look_at(path)
    import openpyxl.xml

    if not openpyxl.xml.DEFUSEDXML:
        what = "defusedxml is not there or switched off, and foreign XML is not read without it"
        raise EnvironmentProblem(what, code="E309", mend="pip install defusedxml; unset OPENPYXL_DEFUSEDXML")
    try:
        with warnings.catch_warnings():
            # openpyxl warns of every extension that it does not keep; nothing is saved from here.
            warnings.simplefilter("ignore")
            _look_at_ranges(path)
            workbook = _read(path)
        threads = _threads(path)
    except InputError:
        raise
    except MemoryError as error:
        raise refused(path, "the workbook does not fit into memory", "save it without what is not needed") from error
    except Exception as error:
        # A damaged file makes openpyxl raise whatever its parts raise: KeyError, TypeError, ParseError, ...
        what = f"the workbook cannot be read: {type(error).__name__}: {shown(str(error), 120)}"
        raise refused(path, what, _SAVE_AS) from error
    for sheet in workbook.worksheets:
        if sheet.max_row * sheet.max_column > MAX_SPAN:
            corner = f"{sheet.title}!{sheet.calculate_dimension()}"
            mend = "delete the empty rows and columns behind the table, and save"
            raise refused(path, f"a sheet spans {corner}, far beyond its table", mend, "U141")
    return workbook, threads


def _look_at(path: Path) -> None:
    """Refuse by kind and size, from the first bytes and the directory of the archive alone."""
    try:
        if not path.is_file():
            what = "this is a folder" if path.is_dir() else "no such file"
            raise refused(path, what, "name a workbook that `regatta sheet out` made")
        size = path.stat().st_size
        if size > MAX_FILE:
            raise refused(path, f"the file has {size:,} bytes, more than {MAX_FILE:,}", "is it the right file?", "U141")
        with path.open("rb") as stream:
            head = stream.read(1024 * 1024)
    except OSError as error:
        mend = "see that it is a file and may be read; close it where it is open in Excel"
        raise refused(path, f"cannot be opened: {error.strerror or error}", mend) from error
    if head.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in head:
            mend = "take the password off in Excel (File, Info, Protect Workbook) and save"
            raise refused(path, "the workbook is encrypted with a password", mend)
        raise refused(path, "this is a workbook of the old kind (.xls)", _SAVE_AS)
    if not zipfile.is_zipfile(path):
        text = "this is no XLSX workbook (no zip archive)"
        if path.suffix.lower() in (".csv", ".txt", ".tsv"):
            raise refused(path, text, "a CSV table is edited in place and checked with `regatta validate`")
        raise refused(path, text, _SAVE_AS)
    try:
        with zipfile.ZipFile(path) as archive:
            _look_into(path, archive)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise refused(path, f"the file is damaged: {error}", _SAVE_AS) from error


def _look_into(path: Path, archive: zipfile.ZipFile) -> None:
    parts = archive.infolist()
    unpacked = sum(part.file_size for part in parts)
    if len(parts) > MAX_PARTS or unpacked > MAX_UNPACKED:
        what = f"the workbook has {len(parts):,} parts of {unpacked:,} bytes unpacked"
        limits = f"more than {MAX_PARTS:,} parts or {MAX_UNPACKED:,} bytes"
        raise refused(path, f"{what}, {limits}", "is it the right file?", "U141")
    names = [part.filename for part in parts]
    if len(set(names)) < len(names):
        raise refused(path, "the file is damaged: a part stands in it twice", _SAVE_AS)
    if any(part.flag_bits & 1 for part in parts):
        raise refused(path, "the file is encrypted", "take the password off and save again")
    if "[Content_Types].xml" not in names:
        kind = archive.read("mimetype")[:100].decode("ascii", "replace") if "mimetype" in names else ""
        if "opendocument" in kind:
            raise refused(path, "this is an OpenDocument file (.ods)", _SAVE_AS)
        raise refused(path, "this is a zip archive and no XLSX workbook", _SAVE_AS)
    types = archive.read("[Content_Types].xml")
    if b"macroEnabled" in types or any(name.lower().endswith("vbaproject.bin") for name in names):
        raise refused(path, "the workbook carries macros (.xlsm)", "save it as workbook without macros (.xlsx)")
    if "xl/workbook.bin" in names:
        raise refused(path, "this is a binary workbook (.xlsb)", _SAVE_AS)


def _look_at_ranges(path: Path) -> None:
    """Refuse ranges that openpyxl would fill with cells, one by one: merged areas, links and notes of whole sheets."""
    with zipfile.ZipFile(path) as archive:
        # All parts: a relation may lead to any of them, whatever its name.
        for name in archive.namelist():
            with archive.open(name) as stream:
                span = _span(stream)
            if span > MAX_SPAN:
                what = f"{name} merges or links {span:,} cells, far beyond a table"
                raise refused(path, what, "unmerge whole rows and columns, and save", "U141")


def _span(stream: Any) -> int:
    """How many cells the merged areas, links and notes of a part cover; 0 for what is no XML."""
    from xml.etree.ElementTree import ParseError

    from openpyxl.utils import range_boundaries
    from openpyxl.xml.functions import iterparse

    span = 0
    try:
        for _, node in iterparse(stream):
            kind = node.tag.rpartition("}")[2]
            if kind in ("mergeCell", "hyperlink", "comment") and ":" in node.get("ref", ""):
                left, top, right, bottom = range_boundaries(node.get("ref"))
                # A whole column or row has no bounds.
                sides = (right or 16_384) - (left or 1) + 1, (bottom or 1_048_576) - (top or 1) + 1
                span += sides[0] * sides[1]
            elif kind in ("c", "row", "si"):
                node.clear()
    except ParseError:
        return 0
    return span


def _read(path: Path) -> Any:
    from openpyxl.cell.text import Text
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.xml.constants import SHARED_STRINGS
    from openpyxl.xml.functions import iterparse

    class Reader(ExcelReader):
        """openpyxl's reader, with shared strings as they stand: its own drops every ``x005F_``."""

        def read_strings(self) -> None:
            part = self.package.find(SHARED_STRINGS)
            if part is None:
                return
            with self.archive.open(part.PartName[1:]) as stream:
                for _, node in iterparse(stream):
                    if node.tag == f"{_MAIN}si":
                        self.shared_strings.append(Text.from_tree(node).content)
                        node.clear()

    # By a stream: openpyxl goes by the ending of a name otherwise.
    with path.open("rb") as stream:
        reader = Reader(stream, keep_links=False)
        reader.read()
    return reader.wb


def _threads(path: Path) -> Threads:
    """The threaded comments of Excel 365, which openpyxl does not know.

    Excel writes a note beside each thread, whose text begins with an explanation in the language of the
    program; the thread itself is the better text.
    """
    from openpyxl.xml.functions import fromstring

    threads: Threads = {}
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        if not any("threadedcomment" in name.lower() for name in names):
            return threads
        people = {}
        for name in sorted(n for n in names if re.fullmatch(r"xl/persons/[^/]+\.xml", n)):
            for person in fromstring(archive.read(name)).iter(f"{{{_THREADED}}}person"):
                people[person.get("id", "")] = person.get("displayName", "")

        def related(part: str) -> dict[str, tuple[str, str]]:
            """Relations of a part: id -> (kind, part)."""
            folder, file = posixpath.split(part)
            rels = f"{folder}/_rels/{file}.rels"
            if rels not in names:
                return {}
            found = {}
            for relation in fromstring(archive.read(rels)).iter(_RELATION):
                target = relation.get("Target", "")
                target = target[1:] if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
                found[relation.get("Id", "")] = (relation.get("Type", ""), target)
            return found

        sheets = related("xl/workbook.xml")
        for sheet in fromstring(archive.read("xl/workbook.xml")).iter(f"{_MAIN}sheet"):
            _, part = sheets.get(sheet.get(_R_ID, ""), ("", ""))
            for kind, target in related(part).values():
                if not kind.endswith("/threadedComment") or target not in names:
                    continue
                for comment in fromstring(archive.read(target)).iter(f"{{{_THREADED}}}threadedComment"):
                    text = comment.findtext(f"{{{_THREADED}}}text") or ""
                    place = sheet.get("name", ""), comment.get("ref", "").replace("$", "")
                    threads.setdefault(place, []).append((people.get(comment.get("personId", ""), ""), text))
    return threads
