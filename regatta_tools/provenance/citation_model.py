"""What a citation says, as values: the instrument, and the places in it from the section down.

One shape for every country, so that whoever looks for a passage walks the same steps in a federal regulation and in
a Vietnamese law. The grammars that read and write it are :mod:`regatta_tools.provenance.citations_us` and
:mod:`regatta_tools.provenance.citations_vn`; :mod:`regatta_tools.provenance.citations` chooses between them.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from regatta_tools.errors import InputError
from regatta_tools.text import shown

#: A citation is short. What is longer is prose, and is refused before anything looks at it.
MAX_LENGTH = 300
#: The level of the labels in brackets below a US section. Codes name it paragraph, subsection, clause ... and differ.
PARAGRAPH = "paragraph"

# The levels that hold text to read. A part, an act or a chapter only holds such levels.
_HOLDS_TEXT = ("section", "appendix", "supplement", "Điều", "Phụ lục")
# Spaces and hyphens of typesetters, one character for one, so that places in the text stay what they are.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000", " "),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
        **dict.fromkeys("\u201c\u201d\u201e", '"'),
    }
)


class NotUnderstood(InputError):
    """A text that no grammar reads whole.

    ``at`` is the offset (from 0, in the text in NFC) from which it is not understood, ``why`` says what stands there,
    and ``suggestion`` is how it could be written where that can be told. It is never taken over by itself.
    """

    def __init__(self, text: str, at: int, why: str, suggestion: str = "") -> None:
        self.text, self.at, self.why, self.suggestion = text, at, why, suggestion
        rest = text[at : at + 20]
        place = f"at character {at + 1} ({shown(rest)})" if rest.strip() else "at its end"
        mend = f"if it is what is meant, write {suggestion!r}" if suggestion else "see docs/citations.md for the forms"
        super().__init__(f"{shown(text)} is not understood {place}: {why}", mend=mend)


@dataclass(frozen=True)
class Step:
    """One level of a path: ``section`` 1005.6, ``paragraph`` b, ``Điều`` 5, ``khoản`` 2."""

    level: str
    label: str


@dataclass(frozen=True)
class Place:
    """A place in an instrument.

    ``path`` leads from the section (or part, article, annex) down. Where ``last`` is given, the place is a range from
    ``path`` to ``last``, both ends included; what lies between is for the text to say, not for the grammar.
    ``open_ended`` is "et seq.": from here on, to an end that the citation does not name. ``note`` narrows a place to
    what has no label of its own: ``introductory text``, ``note``, or a term that is defined (``definition of "bank"``).
    """

    path: tuple[Step, ...]
    last: tuple[Step, ...] = ()
    open_ended: bool = False
    note: str = ""

    @property
    def section(self) -> str:
        """The number of the section, article or Điều; empty where the path names none (a whole part, an annex)."""
        return next((s.label for s in self.path if s.level in ("section", "Điều")), "")

    @property
    def subdivisions(self) -> tuple[str, ...]:
        """The labels below the section, as ``('b', '1', 'i')``."""
        levels = [s.level for s in self.path]
        below = next((n for n, level in enumerate(levels) if level in ("section", "Điều")), None)
        return () if below is None else tuple(s.label for s in self.path[below + 1 :])

    @property
    def last_label(self) -> str:
        """The label at which a range of siblings in one section ends, as c in ``(b)(1)(a)-(c)``; else empty."""
        siblings = len(self.last) == len(self.path) and self.last[:-1] == self.path[:-1]
        return self.last[-1].label if siblings and self.names_passage else ""

    @property
    def names_passage(self) -> bool:
        """Whether the place is one passage: within one section, article or annex, and with both its ends named."""
        within = next((n for n, s in enumerate(self.path) if s.level in _HOLDS_TEXT), None)
        if within is None or self.open_ended:
            return False
        return not self.last or self.last[: within + 1] == self.path[: within + 1]


@dataclass(frozen=True)
class InstrumentNumber:
    """The number of a Vietnamese instrument: ``13/2023/NĐ-CP`` is serial 13 of 2023, a decree (NĐ) of the Government.

    ``year`` is empty where that type is numbered without one. ``term`` is that of the National Assembly: 15 in
    ``14/2022/QH15``, which is law 14 of 2022 and no date.
    """

    serial: str
    year: str
    type: str
    authority: str
    term: str = ""

    def __str__(self) -> str:
        code = f"{self.type}{'-' if self.type and self.authority else ''}{self.authority}{self.term}"
        return "/".join(part for part in (self.serial, self.year, code) if part)

    @property
    def slug(self) -> str:
        """The number as part of an id, ``13-2023-nd-cp``. No two numbers of the table have the same."""
        return re.sub(r"[/-]+", "-", str(self).lower().replace("đ", "d"))


@dataclass(frozen=True)
class Citation:
    """An instrument, and places in it.

    ``system`` is a key of the table of reporters (``CFR``, ``USC``, ``Cal. Ins. Code``) or ``VN``; ``title`` the
    title or chapter where the system has them. ``appendix`` is that of a title of the U.S. Code (``50 U.S.C. app.``).
    ``instrument`` is the number of a Vietnamese text, and ``None`` for a locator that leaves it to its source. Without
    ``places`` the citation is the whole instrument.
    """

    system: str
    title: str = ""
    places: tuple[Place, ...] = ()
    appendix: bool = False
    instrument: InstrumentNumber | None = None

    @property
    def sections(self) -> tuple[str, ...]:
        """Every section that is named, in order, the ends of ranges among them, each once."""
        named = [s.label for p in self.places for s in (*p.path, *p.last) if s.level in ("section", "Điều")]
        return tuple(dict.fromkeys(named))

    @property
    def open_ended(self) -> bool:
        """Whether any place is open-ended."""
        return any(p.open_ended for p in self.places)

    @property
    def in_appendix(self) -> bool:
        """Whether it leads into an appendix, a supplement or an annex."""
        levels = ("appendix", "supplement", "Phụ lục")
        return self.appendix or any(s.level in levels for p in self.places for s in p.path)


class Scanner:
    """A text that is read from left to right, token by token, and has to be read whole."""

    def __init__(self, text: str, start: int = 0, end: int | None = None) -> None:
        self.text = text
        self.plain = text.translate(_PLAIN)
        self.at = start
        self.end = len(text) if end is None else end

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The token of ``pattern`` here, past which the reading goes on; ``None``, and no move, where it is not."""
        match = pattern.match(self.plain, self.at, self.end)
        if match is not None:
            self.at = match.end()
        return match

    def sees(self, pattern: re.Pattern[str]) -> bool:
        """Whether a token of ``pattern`` comes next."""
        return pattern.match(self.plain, self.at, self.end) is not None

    @property
    def done(self) -> bool:
        return self.at >= self.end

    def problem(self, why: str, at: int | None = None, suggestion: str = "") -> NotUnderstood:
        """The error that says ``why`` the text is not understood, here or at an offset."""
        return NotUnderstood(self.text, self.at if at is None else at, why, suggestion)


def prepared(text: str) -> str:
    """A text in NFC. Raises :class:`NotUnderstood` for one that no citation can be: empty, or longer than prose."""
    text = unicodedata.normalize("NFC", text)
    if not text.strip():
        raise NotUnderstood(text, 0, "it is empty")
    if len(text) > MAX_LENGTH:
        raise NotUnderstood(text, MAX_LENGTH, f"a citation has at most {MAX_LENGTH} characters")
    if text != text.strip():
        raise NotUnderstood(
            text, 0 if text[0].isspace() else len(text.rstrip()), "white space at an edge", text.strip()
        )
    return text
