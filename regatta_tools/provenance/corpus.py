"""The source corpus: texts of the law that a user holds, by source id, cut into sections.

A corpus is a folder of text files in UTF-8. The project ships none: the law's text stays with whoever read it, and
the package keeps locators, facts and hashes. One file is one text of one source on one date::

    source-id: us-cfr-12-1005
    title: Electronic Fund Transfers (Regulation E)
    number: 12 CFR Part 1005
    as-of: 2026-09-29
    retrieved-from: where it was taken from
    retrieved: 2026-11-30

    ## § 1005.6(a)

    (a) Conditions for liability. ...

The header ends at the first empty line. Each ``## `` heading begins a section and is the locator of what follows.
``as-of`` begins with the date of the text (``2026-09-29``, or a month, ``2026-09``); a text whose header gives none is
undated, which is said wherever it is used. The file is named ``SOURCE.txt``, or ``SOURCE@DATE.txt`` where several
versions of one source are held.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import stat
import unicodedata
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path

from regatta_tools.errors import InputError
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rule
from regatta_tools.text import decode, shown

#: A title of the Code of Federal Regulations has some tens of megabytes; more is no text of a source.
MAX_BYTES = 64 * 1024 * 1024
ENDING = ".txt"
#: Header keys without which a text cannot be told from another.
NEEDED = ("source-id", "as-of")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?(?![0-9])")
#: Letters that Vietnamese has and English has not, and the share of them above which a text is Vietnamese (law: 0.15).
_VIETNAMESE = re.compile("[ăđơưạ-ỹĂĐƠƯẠ-Ỹ]")
_SHARE = 0.05
_HEADING = re.compile(r"^## +(\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """One section of a text: its heading (a locator in the words of the text), body and line of the heading."""

    heading: str
    body: str = field(repr=False)
    line: int


@dataclass(frozen=True)
class SourceText:
    """One text of one source, as held.

    ``date`` is ISO text of the day or month that the text states, or empty. ``sha256`` is that of the file's bytes:
    a reading names the text that it read by it.
    """

    source: str
    file: str
    header: dict[str, str] = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)
    sha256: str

    @cached_property
    def date(self) -> str:
        match = _DATE.match(self.header.get("as-of", ""))
        return match.group() if match else ""

    @property
    def title(self) -> str:
        return self.header.get("title", "")

    @cached_property
    def language(self) -> str:
        """``vi`` for a text in Vietnamese letters, else ``en``."""
        return language_of_text("".join(section.body for section in self.sections))


@dataclass
class Corpus:
    """The texts of a folder, by source id, each list with the latest text last.

    ``findings`` says what is wrong, ``unusable`` names the sources of files that are no text for one of these reasons;
    ``files`` counts what was looked at.
    """

    folder: Path
    texts: dict[str, list[SourceText]] = field(default_factory=dict, repr=False)
    findings: list[Finding] = field(default_factory=list)
    unusable: set[str] = field(default_factory=set)
    files: int = 0

    def latest(self, source: str) -> SourceText | None:
        """The latest text of a source, an undated one only where there is no other; see :meth:`why_none`."""
        held = self.texts.get(source, [])
        return held[-1] if held and not self._doubled(held) else None

    def why_none(self, source: str) -> str:
        """What to say where there is no latest text. Texts of one date are none: nobody can say which of them holds."""
        if self._doubled(self.texts.get(source, [])):
            return f"two texts of {source} have one date, and nobody can say which of them holds"
        if source in self.unusable:
            return f"the text of {source} that is held cannot be used"
        return f"no text of {source} is held"

    @staticmethod
    def _doubled(held: list[SourceText]) -> bool:
        return len(held) > 1 and held[-1].date == held[-2].date

    def find(self, source: str, sha256: str) -> SourceText | None:
        """The held text with this hash."""
        return next((t for t in self.texts.get(source, ()) if t.sha256 == sha256), None)


def read_corpus(folder: Path | str) -> Corpus:
    """Read all texts of a folder. Raises :class:`InputError` where there is no such folder.

    A text that cannot be used is a finding (A101 to A105) and is not in ``texts``: what rests on it is then not
    assessed, and never passes for want of a text.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            "no folder with texts of the law",
            code="U130",
            place=str(folder),
            mend="name the folder with --texts, or make one with `regatta sources add`",
        )
    corpus = Corpus(folder)
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() == ENDING:
            corpus.files += 1
            text = read_text(path, path.name, corpus.findings)
            if text is None:
                corpus.unusable.add(source_of(path.name))
            else:
                corpus.texts.setdefault(text.source, []).append(text)
    for source, held in corpus.texts.items():
        held.sort(key=lambda text: (text.date, text.file))
        corpus.findings += _same_date(source, held)
    return corpus


def language_of_text(text: str) -> str:
    """``vi`` for a text in Vietnamese letters, else ``en``: what the two countries of the package write law in."""
    letters = sum(map(str.isalpha, text))
    return "vi" if letters and len(_VIETNAMESE.findall(text)) / letters > _SHARE else "en"


def source_of(file: str) -> str:
    """The id of the source that a file of the corpus is named by."""
    return Path(file).stem.partition("@")[0]


def _same_date(source: str, held: list[SourceText]) -> list[Finding]:
    found = []
    for earlier, later in itertools.pairwise(held):
        if earlier.date == later.date:
            when = f"of {later.date}" if later.date else "without a date"
            found.append(_finding("A105", later.file, 1, f"{earlier.file} is a text {when} of {source} too"))
    return found


def read_text(path: Path, file: str, findings: list[Finding]) -> SourceText | None:
    """Read one text. What is wrong with it is appended to ``findings``; ``None`` where it cannot be used."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
            what = "not a file" if not stat.S_ISREG(facts.st_mode) else f"more than {MAX_BYTES:,} bytes"
            findings.append(_finding("A101", file, 0, f"the text cannot be read: {what}"))
            return None
        raw = path.read_bytes()
    except OSError as error:
        findings.append(_finding("A101", file, 0, f"the text cannot be read: {error.strerror or error}"))
        return None
    content, problem = decode(raw)
    if problem is not None:
        message, line, column = problem
        findings.append(_finding("A101", file, line, message, column))
        return None
    return parse_text(content, file, hashlib.sha256(raw).hexdigest(), findings)


def parse_text(content: str, file: str, sha256: str, findings: list[Finding]) -> SourceText | None:
    """A text from its characters. See :func:`read_text`."""
    content = unicodedata.normalize("NFC", content.replace("\r\n", "\n"))
    header, start = _header(content)
    missing = [key for key in NEEDED if not header.get(key)]
    if missing:
        findings.append(_finding("A102", file, 1, f"the header lacks {', '.join(missing)}"))
        return None
    source, _, dated = Path(file).stem.partition("@")
    stated = _DATE.match(header["as-of"])
    when = stated.group() if stated else ""
    wrong = ""
    if header["source-id"] != source:
        wrong = f"the header says source {shown(header['source-id'])}"
    elif when and not is_day_or_month(when):
        wrong = f"as-of is {when}, which is no day of the calendar"
    elif dated and dated != when:
        wrong = f"the file is named by the date {shown(dated)}, and as-of says {shown(header['as-of'])}"
    if wrong:
        findings.append(_finding("A102", file, 1, wrong))
        return None
    sections = cut(content, start)
    if not sections:
        findings.append(_finding("A103", file, 1, "the text has no section"))
        return None
    for section in sections:
        if not section.body.strip():
            findings.append(_finding("A104", file, section.line, f"the section {section.heading!r} is empty"))
    return SourceText(source, file, header, tuple(sections), sha256)


def is_day_or_month(text: str) -> bool:
    try:
        date.fromisoformat(text if len(text) == 10 else f"{text}-01")
    except ValueError:
        return False
    return True


def _header(content: str) -> tuple[dict[str, str], int]:
    """The header and the offset at which the text begins."""
    header: dict[str, str] = {}
    at = 0
    for line in content.splitlines(keepends=True):
        key, sign, value = line.partition(":")
        if not line.strip() or line.startswith("## ") or not sign or not re.fullmatch("[a-z][a-z-]*", key):
            break
        header.setdefault(key, value.strip())
        at += len(line)
    return header, at


def cut(content: str, start: int = 0) -> list[Section]:
    """The sections of a text, from an offset on: what stands below each ``## `` heading."""
    heads = list(_HEADING.finditer(content, start))
    ends = [head.start() for head in heads[1:]] + [len(content)]
    return [
        Section(head.group(1), content[head.end() : end].strip("\n"), content.count("\n", 0, head.start()) + 1)
        for head, end in zip(heads, ends)
    ]


def _finding(code: str, file: str, line: int, message: str, column: int = 0) -> Finding:
    return rule(code).finding(message, file=file, line=line, column=column or (1 if line else 0))
