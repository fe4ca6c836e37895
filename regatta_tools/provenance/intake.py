"""Taking a text of the law that a user has: plain text, HTML, a PDF with a text layer, or eCFR XML, cut into sections.

Sections are recognised by headings at the start of a line: ``§ 1005.6 Title``, ``Section 12. Title``,
``Điều 5. Title``; in eCFR XML by its own elements (DIV8 sections, DIV9 appendices); and in a text that has them
already, by lines ``## LOCATOR``. Nothing is guessed: a heading that stands there twice is refused, and so is a text
without any.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.provenance.corpus import MAX_BYTES, cut
from regatta_tools.text import decode, shown

_BY_HAND = "put a line `## LOCATOR` above each section (`## § 1005.6(b)`, `## Điều 5`) and give the text file"
#: Letters of a page below which it has no text layer to speak of.
_FEW = 8
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl"})


@dataclass(frozen=True)
class Taken:
    """What was taken from a file: sections as heading and body, and what whoever took it should know (``notes``)."""

    sections: tuple[tuple[str, str], ...] = field(repr=False)
    notes: tuple[str, ...] = ()


def take(path: Path) -> Taken:
    """Read a file and cut it into sections. Raises :class:`InputError` (U132) where that cannot be done whole."""
    raw = _bytes(path)
    head = raw.lstrip()[:200].lower()
    if raw.startswith(b"%PDF-"):
        text, notes = _pdf_text(path)
        return _by_headings(path, text, notes)
    content, problem = decode(raw)
    if problem is not None:
        mend = "save it as UTF-8; of a workbook or a Word file, save the text"
        raise _refused(path, problem[0], mend, problem[1])
    if head.startswith((b"<!doctype html", b"<html")) or path.suffix.lower() in (".html", ".htm", ".xhtml"):
        return _by_headings(path, html_text(content), ())
    if head.startswith(b"<?xml") or path.suffix.lower() == ".xml":
        return _from_xml(path, raw)
    return _by_headings(path, content, ())


def _bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise _refused(path, "this is no file", "name the file with the text")
        if path.stat().st_size > MAX_BYTES:
            raise _refused(path, f"the file has more than {MAX_BYTES:,} bytes", "take the part that is cited")
        return path.read_bytes()
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror or error}", "see that it may be read") from error


def _refused(path: Path, message: str, mend: str, line: int = 0) -> InputError:
    return InputError(message, code="U132", place=f"{path}:{line}" if line else str(path), mend=mend)


# Headings

# A number alone, or with a title behind it; "§ 1005.6(b) of this section" at the start of a line is no heading.
_TITLE = r"(?:[ \t]*$|\.?[ \t]+[\[“\"]?[A-ZÀ-Ỹ][^\n]{0,250}$|\.[ \t]*$)"
_HEADINGS = (
    re.compile(rf"^[ \t]*(§[ \t]*[0-9][0-9A-Za-z]*(?:[.:\-–][0-9A-Za-z]+)*)(?![\w(]){_TITLE}", re.M),
    re.compile(
        rf"^[ \t]*((?:Section|SECTION|Sec\.|SEC\.)[ \t]+[0-9][0-9A-Za-z]*(?:[.\-][0-9A-Za-z]+)*)(?![\w(]){_TITLE}", re.M
    ),
    re.compile(
        r"^[ \t]*((?:Điều|ĐIỀU)[ \t]+[0-9]+[a-zđ]?(?=[ \t]*$|[.:])"
        r"|(?:Phụ lục|PHỤ LỤC)(?:[ \t]+[IVXLC0-9]+)?(?=[ \t]*$))"
        r"(?:[.:][^\n]{0,300}|[ \t]*)$",
        re.M,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class _Piece:
    """What stands from one heading to the next; ``start`` and ``line`` are where it begins."""

    heading: str
    body: str
    start: int
    line: int


def _by_headings(path: Path, text: str, notes: tuple[str, ...]) -> Taken:
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    if re.search(r"^## +\S", text, re.M):
        return Taken(tuple((s.heading, s.body) for s in cut(text)), notes)
    found = max(([*pattern.finditer(text)] for pattern in _HEADINGS), key=len)
    if not found:
        what = "no section is recognised: no line begins with § 5, Section 5 or Điều 5"
        raise _refused(path, what, _BY_HAND)
    breaks = [m.start() for m in re.finditer("\n", text)]
    ends = [m.start() for m in found[1:]] + [len(text)]
    pieces = _without_contents(
        [
            _Piece(_heading(m.group(1)), text[m.start() : end].strip(), m.start(), bisect_left(breaks, m.start(1)) + 1)
            for m, end in zip(found, ends)
        ]
    )
    _refuse_doubled(path, pieces)
    bare = [piece for piece in pieces if piece.body.strip().rstrip(".:") == piece.heading.rstrip(".:")]
    if len(bare) == len(pieces):
        what = f"{bare[0].heading} has no text below its heading" if len(bare) == 1 else "no section has any text"
        raise _refused(path, what, "take the text with the words of the sections", bare[0].line)
    alone = [piece.heading for piece in pieces if "\n" not in piece.body.strip()]
    if alone:
        notes = (*notes, f"nothing stands below the line of the heading: {', '.join(alone)}")
    before = len(text[: pieces[0].start].strip())
    if before:
        notes = (*notes, f"{before:,} characters before the first section are left out")
    return Taken(tuple((piece.heading, _titles_as_notes(_guarded(piece.body))) for piece in pieces), notes)


def _heading(text: str) -> str:
    """A heading as locators write it: ``§ 12``, ``§ 300gg-5``, ``Section 12``, ``Điều 5``, ``Phụ lục II``."""
    text = " ".join(text.split()).replace("–", "-")
    text = re.sub(r"^phụ lục", "Phụ lục", text, flags=re.I)
    text = re.sub(r"^§ ?", "§ ", text)
    text = re.sub(r"^(section|sec\.) ", "Section ", text, flags=re.I)
    return re.sub(r"^điều ", "Điều ", text, flags=re.I)


def _without_contents(pieces: list[_Piece]) -> list[_Piece]:
    """The sections, without a table of contents: bare headings, each of which comes again with its words.

    Below the last heading of a table stands what comes before the first section, so that one may have words.
    """
    again = next((n for n, piece in enumerate(pieces) if n and piece.heading == pieces[0].heading), 0)
    if again and not any("\n" in piece.body for piece in pieces[: again - 1]):
        later = {piece.heading for piece in pieces[again:]}
        if all(piece.heading in later for piece in pieces[:again]):
            pieces = pieces[again:]
    full = {piece.heading for piece in pieces if "\n" in piece.body}
    return [piece for piece in pieces if "\n" in piece.body or piece.heading not in full]


def _refuse_doubled(path: Path, pieces: list[_Piece]) -> None:
    first: dict[str, _Piece] = {}
    for piece in pieces:
        other = first.setdefault(piece.heading, piece)
        if other is not piece:
            what = f"{piece.heading} is headed twice, in lines {other.line} and {piece.line}"
            raise _refused(path, what, _BY_HAND, piece.line)


def _guarded(body: str) -> str:
    """A body whose lines are all text: in the corpus a line with ``>`` in front is a note, with ``## `` a heading."""
    return re.sub(r"^(?=>|## )", " ", body, flags=re.M)


# The title of a chapter or subpart, which stands behind the last words of a section and before the next one.
_CHAPTER = re.compile(
    r"\n[ \t]*(?:(?:Chương|CHƯƠNG|Mục|MỤC|Phần|PHẦN)[ \t]+[IVXLC0-9]+"
    r"|(?:Subpart|SUBPART|Subchapter|SUBCHAPTER)[ \t]+[A-Z]+)"
    r"(?![\w(])[^\n.;:]{0,160}(?:\n+[^\n.;:]{1,200}){0,4}$"
)


def _titles_as_notes(body: str) -> str:
    """A body whose trailing chapter title is a note: it belongs to what comes next, and to no passage."""
    match = _CHAPTER.search(body)
    if not match:
        return body
    title = " ".join(match.group().split())
    return f"{body[: match.start()].rstrip()}\n\n> {title}"


# HTML

_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "br", "center", "dd", "div", "dl", "dt", "fieldset", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre",
    "section", "table", "tbody", "tfoot", "thead", "tr", "ul",
))  # fmt: skip
_HIDDEN = frozenset(("script", "style", "head", "template", "noscript", "svg", "nav"))


class _Html(HTMLParser):
    """The text of a page: blocks as paragraphs, cells of a table apart, scripts and navigation left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _HIDDEN:
            self.hidden.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n\n")
        elif tag in ("td", "th", "sup"):  # 30<sup>1</sup> is not 301
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.hidden:
            del self.hidden[self.hidden.index(tag) :]
        elif tag == "body":
            self.hidden.clear()
        elif tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def html_text(content: str) -> str:
    """The text of an HTML page, a blank line between blocks."""
    parser = _Html()
    parser.feed(content)
    parser.close()
    return _paragraphs("".join(parser.parts))


def _paragraphs(text: str) -> str:
    blocks = (" ".join(block.split()) for block in text.split("\n\n"))
    return "\n\n".join(block for block in blocks if block)


# PDF


def _pdf_text(path: Path) -> tuple[str, tuple[str, ...]]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise _refused(path, "the PDF is encrypted", "save it without a password")
        pages = [page.extract_text() or "" for page in reader.pages]
    except InputError:
        raise
    except (PyPdfError, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        # A damaged file makes pypdf raise whatever its parts raise.
        what = f"the PDF cannot be read: {type(error).__name__}: {shown(str(error), 120)}"
        raise _refused(path, what, "take the file anew, or give its text as a text file") from error
    bare = [str(n) for n, page in enumerate(pages, 1) if sum(map(str.isalpha, page)) < _FEW]
    if len(bare) == len(pages):
        what = "the PDF has no text layer: it holds pictures of pages"
        raise _refused(path, what, "take a PDF with text, or read it with OCR and check every number")
    notes = (f"pages without text: {', '.join(bare)}",) if bare else ()
    return "\n".join(pages).translate(_LIGATURES), notes


# XML of the eCFR

_INLINE = frozenset(["I", "E", "B", "SU", "SUB", "FR", "AC", "U", "SUP", "A"])
_NOTES = frozenset(["CITA", "SOURCE", "AUTH", "SECAUTH", "APPRO", "EDNOTE", "EFFDNOT", "FTNT"])


def _from_xml(path: Path, raw: bytes) -> Taken:
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(raw)
        sections = [*_divisions(root)]
    except ParseError as error:
        raise _refused(path, f"this is no XML: {error}", "take the file anew", error.position[0]) from error
    except DefusedXmlException as error:
        raise _refused(
            path, "the XML declares entities, which are not read", "take the file from its publisher"
        ) from error
    except RecursionError as error:
        raise _refused(path, "the XML is nested too deeply", "take the file anew") from error
    except (ValueError, LookupError) as error:  # an encoding that nobody knows
        raise _refused(path, f"the XML cannot be read: {error}", "save it as UTF-8") from error
    if not sections:
        raise _refused(path, "the XML has no DIV8 section of the eCFR", f"take the XML of the eCFR, or {_BY_HAND}")
    twice = {h for h, _ in sections if sum(h == other for other, _ in sections) > 1}
    if twice:
        raise _refused(path, f"{min(twice)} stands there twice", "take one part of one title")
    return Taken(tuple(sections))


def _divisions(root: Any) -> Iterator[tuple[str, str]]:
    for division in root.iter():
        if division.tag not in ("DIV8", "DIV9"):
            continue
        name = " ".join(division.get("N", "").split())
        if division.tag == "DIV8":
            name = f"§ {name.lstrip('§ ')}"
        blocks = [*_blocks(division)]
        yield name, "\n\n".join(f"> {text}" if note else _guarded(text) for text, note in blocks if text)


def _blocks(element: Any, note: bool = False) -> Iterator[tuple[str, bool]]:
    """The blocks of text of an element in their order, each with whether it is an editor's note."""
    words = [element.text or ""]
    for child in element:
        if child.tag in _INLINE:
            # 30<SU>1</SU> is not 301.
            words.append((" " if child.tag in ("SU", "SUP") else "") + "".join(child.itertext()))
        else:
            yield " ".join("".join(words).split()), note
            words = []
            yield from _blocks(child, note or child.tag in _NOTES)
        words.append(child.tail or "")
    yield " ".join("".join(words).split()), note
