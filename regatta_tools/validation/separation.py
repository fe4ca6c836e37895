"""Judging rules and ontology context are curated apart, so that no generator is handed the answer sheet (O001).

Protocol, section 2. Two things give an answer away: the id of a requirement or fault, and its words. The texts
of the context are few and those of the judging rules many, so an index is made of the context alone and the
judging rules are read past it once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, Record, table_specs
from regatta_tools.text import shown

#: So many words in a row, the same in both texts, are taken over and no chance. Vietnamese is written in
#: syllables, of which a word has one or two, and its law has set phrases of nine ("cơ quan nhà nước có thẩm
#: quyền yêu cầu"): there it takes more.
RUN = {"en": 8, "vi": 14}
#: Words of an entry of the index. A run of n words holds an entry that begins at a multiple of n - _GRAM + 1.
_GRAM = 4
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_WORD = re.compile(r"\w+")
#: What tells the answer, by table and column. What a table of the context repeats of other columns (topic,
#: actor, name) tells a generator nothing that it could not know.
JUDGING = {
    "requirements": ("duty_en", "duty_vi", "applies_when", "trigger", "observable_test"),
    "faults": ("injection_en", "injection_vi", "applies_when", "shows_when", "not_when", "fixture"),
    "fault_values": ("true_expr", "faulty_expr"),
}


class _Text(NamedTuple):
    """One text of the context, as words in small letters."""

    record: Record
    column: str
    words: list[str]


def check(package: Package) -> list[Finding]:
    """Findings for texts of the context that name a judging record or repeat its words.

    Each text of the context is told once for an id and once for a run of words.
    """
    texts = _context(package)
    if not texts:
        return []
    return [*_named(package, texts), *_repeated(package, texts)]


def _context(package: Package) -> list[_Text]:
    texts = []
    for name, spec in table_specs().items():
        if spec.scope != "context":
            continue
        for record in package.table(name):
            for column, text in record.cells.items():
                if text and column != "cell":
                    texts.append(_Text(record, column, _WORD.findall(text.lower())))
    return texts


def _named(package: Package, texts: list[_Text]) -> list[Finding]:
    judging = {r.key: r for name in ("requirements", "faults") for r in package.table(name) if r.key}
    findings = []
    for text in texts:
        found = next((i for i in _ids(text.record[text.column]) if i in judging), None)
        if found is not None:
            what = f"names the {judging[found].spec.class_name.lower()} {found}"
            findings.append(text.record.finding("O001", text.column, f"{text.column} {what}"))
    return findings


def _ids(text: str) -> list[str]:
    """Everything in a text that could be an id, and what it begins with: r01-c1 is a citation of r01."""
    found = []
    for match in _ID.finditer(text.lower()):
        parts = match.group().split("-")
        found += ["-".join(parts[:size]) for size in range(2, len(parts) + 1)]
    return found


def _repeated(package: Package, texts: list[_Text]) -> list[Finding]:
    findings: dict[int, Finding] = {}
    for length in sorted(set(RUN.values())):
        index = _Index(texts, length)
        for table, columns in JUDGING.items():
            for column in columns:
                if RUN["vi" if column.endswith("_vi") else "en"] != length:
                    continue
                at = table_specs()[table].position[column]
                for number, row in enumerate(package.rows(table)):
                    words = _WORD.findall(row[at].lower())
                    for text, place, other in index.found_in(words):
                        if text in findings:
                            continue
                        first, last = _run(words, place, texts[text].words, other)
                        quoted = shown(" ".join(words[first:last]), 120)
                        judging = f"{column} of {package.table(table)[number].key}"
                        what = f"{texts[text].column} repeats {last - first} words of {judging}: {quoted}"
                        findings[text] = texts[text].record.finding("O001", texts[text].column, what)
    return list(findings.values())


class _Index:
    """All runs of ``length`` words of some texts, and the short runs by which one is suspected."""

    def __init__(self, texts: list[_Text], length: int) -> None:
        self.length = length
        self.runs: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        self.grams: set[tuple[str, ...]] = set()
        for number, text in enumerate(texts):
            words = text.words
            for at in range(len(words) - length + 1):
                self.runs[tuple(words[at : at + length])].append((number, at))
            if len(words) >= length:
                self.grams.update(tuple(words[at : at + _GRAM]) for at in range(len(words) - _GRAM + 1))

    def found_in(self, words: list[str]) -> Iterator[tuple[int, int, int]]:
        """The number of each text that shares a run with ``words``, with the places of the run in these and in it.

        A text is given once for each run: the runs that were found are taken out of the index, so that a phrase
        that every record and every text has costs no more than another.
        """
        step = self.length - _GRAM + 1
        for at in range(0, len(words) - _GRAM + 1, step):
            if tuple(words[at : at + _GRAM]) not in self.grams:
                continue
            for start in range(max(0, at - step + 1), at + 1):
                for number, place in self.runs.pop(tuple(words[start : start + self.length]), ()):
                    yield number, start, place


def _run(one: list[str], at: int, other: list[str], place: int) -> tuple[int, int]:
    """The run of equal words around two places that are equal: first and last place in the one list."""
    before = 0
    while at - before > 0 and place - before > 0 and one[at - before - 1] == other[place - before - 1]:
        before += 1
    after = 0
    while at + after < len(one) and place + after < len(other) and one[at + after] == other[place + after]:
        after += 1
    return at - before, at + after
