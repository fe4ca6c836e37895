"""Readings: who read which citation, on which text, and found what. The file ``audit.csv`` of a cell is only added to.

A reading names the text and the passage by hash, and the item (requirement, citation, source, facts) by hash too: when
the law's text or the item changes, the reading still stands in the file and no longer counts. Readings that disagree
are all kept.

What was read is shown in one of two ways: by a held text, in which the locator leads to the passage; or by the words
themselves, which have to be the passage whose hash the citation has. Neither is taken on anybody's word.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.files import replace_files
from regatta_tools.provenance import checks, passages
from regatta_tools.provenance.checks import CLEAN, NOT_ASSESSED, Index
from regatta_tools.provenance.citations import country
from regatta_tools.provenance.corpus import Corpus
from regatta_tools.provenance.locators import targets_of
from regatta_tools.tables.descriptor import build
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.package import DESCRIPTOR, Package, Record, table_specs
from regatta_tools.tables.reader import read_content
from regatta_tools.tables.writing import csv_bytes, json_bytes
from regatta_tools.text import decode, shown
from regatta_tools.validation.run import parse_as_of


@dataclass(frozen=True)
class NewReading:
    """What a reader says of one citation.

    ``item_hash`` and ``passage_hash`` say what the reader had before them, where a sheet carries it: the reading is
    refused where that is no longer what the package and the texts have. ``passage`` is the words that were read and
    ``text_hash`` the text that they are from, for readers who hold no text. ``row`` is where it stands in a sheet, for
    messages; 0 where it does not.
    """

    citation: str
    outcome: str
    reader: str
    reader_kind: str
    date: str
    reason_code: str = ""
    reason: str = ""
    evidence: str = ""
    decision: str = ""
    item_hash: str = ""
    passage_hash: str = ""
    passage: str = ""
    text_hash: str = ""
    row: int = 0


def record(package: Package, corpus: Corpus | None, readings: Sequence[NewReading]) -> list[str]:
    """Add readings to the audit files of their cells; returns the new ids.

    All are checked before anything is written: the first that cannot stand raises :class:`InputError`. An outcome
    other than ``not-assessed`` needs a held text with the passage or, without a ``corpus``, the words of the passage
    whose hash the citation has: a reading without evidence is refused. A reading that is there already, word for word,
    is not added again: a sheet may come back twice, each time fuller.
    """
    index = Index(package)
    citations = {r.key: r for r in package.table("citations")}
    numbers: dict[str, int] = defaultdict(int)
    known = set()
    for old in package.table("audit"):
        numbers[old["citation"]] = max(numbers[old["citation"]] + 1, _number(old.key))
        known.add(_said(old.cells))
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for reading in readings:
        citation = citations.get(reading.citation)
        if citation is None:
            raise _refused(reading, f"there is no citation {shown(reading.citation)}", "name one of citations.csv")
        row = _row(index, corpus, citation, reading)
        if _said(row) in known:
            continue
        known.add(_said(row))
        _check_form(reading, row)
        numbers[citation.key] += 1
        row["id"] = f"{citation.key}-a{numbers[citation.key]}"
        rows[citation["cell"]].append(row)
    if rows:
        _write(package, rows)
    return [row["id"] for added in rows.values() for row in added]


def words_of(path: Path) -> str:
    """The text of a file with the words that were read. Raises :class:`InputError` for what is no text."""
    try:
        text, problem = decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", code="U131", place=str(path)) from error
    if problem is not None:
        raise InputError(problem[0], code="U131", place=f"{path}:{problem[1]}", mend="save it as UTF-8")
    if not text.strip():
        raise InputError("the passage is empty", code="U131", place=str(path), mend="put the words that you read there")
    return text


def _number(key: str) -> int:
    """The number at the end of the id of a reading; 0 where there is none."""
    match = re.search(r"-a([0-9]+)$", key)
    return int(match.group(1)) if match else 0


def _said(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[c] for c in table_specs()["audit"].columns if c != "id")


def _row(index: Index, corpus: Corpus | None, citation: Record, reading: NewReading) -> dict[str, str]:
    for name, enum in (("outcome", "AuditOutcome"), ("reader_kind", "LabellerKind"), ("reason_code", "AuditReason")):
        value = getattr(reading, name)
        if value not in enum_values(enum) and not (name == "reason_code" and not value):
            raise _refused(reading, f"{name} is {shown(value)}", f"use one of: {', '.join(enum_values(enum))}")
    if not reading.reader.strip():
        raise _refused(reading, "nobody is named as the reader", "say who read")
    try:
        parse_as_of(reading.date)
    except InputError as error:
        raise _refused(reading, f"{shown(reading.date)} is not a date", "write it as 2026-11-30") from error
    if reading.outcome == CLEAN and reading.reason_code:
        raise _refused(reading, "a clean reading has a reason code", "leave it out, or change the outcome")
    if reading.outcome not in (CLEAN, NOT_ASSESSED) and not (reading.reason_code and reading.reason.strip()):
        raise _refused(reading, "an adverse outcome says why", "give reason_code and reason")
    if reading.item_hash not in ("", checks.item_hash(index, citation)):
        what = f"{citation.key} was changed after the sheet was written"
        raise _refused(reading, what, "take a new sheet and read it again")
    read, text_hash = _read(index, corpus, citation, reading)
    if reading.passage_hash not in ("", read.passage.sha256 if read.passage else ""):
        what = f"the passage of {citation.key} is not the one that the sheet had"
        raise _refused(reading, what, "name the same texts with --texts, or take a new sheet and read it again")
    if reading.outcome != NOT_ASSESSED and read.passage is None:
        what = f"the outcome {reading.outcome} has no evidence: the passage is not held"
        mend = "name the texts with --texts, give the words that were read (docs/reading.md), or record not-assessed"
        raise _refused(reading, what, mend)
    evidence = _evidence(index, read, reading)
    # In one line and NFC, as the tables have it.
    words = {
        k: " ".join(unicodedata.normalize("NFC", getattr(reading, k)).split()) for k in ("reason", "reader", "decision")
    }
    return {
        "id": "",
        "cell": citation["cell"],
        "requirement": citation["requirement"],
        "citation": citation.key,
        "outcome": reading.outcome,
        "reason_code": reading.reason_code,
        "reason": words["reason"],
        "reader": words["reader"],
        "reader_kind": reading.reader_kind,
        "date": reading.date,
        "text_hash": text_hash,
        "passage_hash": read.passage.sha256 if read.passage else "",
        "item_hash": checks.item_hash(index, citation),
        "evidence": evidence,
        "decision": words["decision"],
    }


def _read(index: Index, corpus: Corpus | None, citation: Record, reading: NewReading) -> tuple[checks.Read, str]:
    """What was read, and the hash of its text: looked up in the corpus, or held against the hash that is recorded."""
    if corpus is not None:
        read, _ = checks.read_citation(index, citation, corpus)
        return read, read.text.sha256 if read.text else ""
    if not reading.passage.strip():
        return checks.Read(citation, None, None), ""
    add = "add the text (`regatta sources add`) and name it with --texts"
    if not citation["passage_hash"] or citation["normalisation"] != passages.NORMALISATION:
        what = f"{citation.key} has no hash of its passage, against which the words that were read could be held"
        raise _refused(reading, what, add)
    where = index.sources[citation["source"]]["jurisdiction"]
    targets, _ = targets_of(citation["locator"], where)
    passage = passages.known_passage(reading.passage, targets, country(where), citation["passage_hash"])
    if passage is None:
        what = f"the words that were read do not hold the passage of {citation.key} whose hash is recorded"
        mend = f"give the whole section, word for word; if the law or the copy has changed, {add}"
        raise _refused(reading, what, mend)
    own = hashlib.sha256(reading.passage.encode("utf-8", "surrogatepass")).hexdigest()
    return checks.Read(citation, None, passage), reading.text_hash or own


def _check_form(reading: NewReading, row: dict[str, str]) -> None:
    """Raise :class:`InputError` for a row with a text that no table may hold (a formula, an invisible character)."""
    try:
        table = read_content(csv_bytes([*row], [[*row.values()]]), "", [*row])
    except UnicodeEncodeError as error:
        raise _refused(reading, "half of a character, which is no text", "write it anew") from error
    if table.findings:
        raise _refused(reading, table.findings[0].message, table.findings[0].mend)


def _evidence(index: Index, read: checks.Read, reading: NewReading) -> str:
    """Where the facts stand: what the reader says, besides what the machine places beyond doubt."""
    try:
        given = checks.parse_evidence(reading.evidence)
    except ValueError as error:
        raise _refused(reading, str(error), "write fact=start-end, separated by spaces") from error
    facts = {f.key for f in index.facts.get(read.citation["requirement"], []) if f["citation"] == read.citation.key}
    for fact, (_, end) in given.items():
        if fact not in facts:
            raise _refused(reading, f"{fact} is no fact of {read.citation.key}", "name a fact of this citation")
        if read.passage is None or end > len(read.passage.normal):
            raise _refused(
                reading, f"{fact} is placed behind the end of the passage", "count in the normalised passage"
            )
    return checks.render_evidence(checks.place_facts(index, read) | given)


def _refused(reading: NewReading, message: str, mend: str) -> InputError:
    place = f"row {reading.row}" if reading.row else reading.citation
    return InputError(message, code="U131", place=place, mend=mend)


def _write(package: Package, rows: Mapping[str, list[dict[str, str]]]) -> None:
    columns = table_specs()["audit"].columns
    described = build(package.root) == package.descriptor
    contents = {}
    for cell, added in rows.items():
        path = package.root / "instruments" / cell / "audit.csv"
        old = path.read_bytes() if path.is_file() else csv_bytes(columns, [])
        if not old.endswith(b"\n"):
            raise InputError("the last row has no line end", place=str(path), mend="run `regatta fmt`")
        new = csv_bytes(columns, [[row[c] for c in columns] for row in added])
        contents[path] = old + new.split(b"\n", 1)[1]
    replace_files(contents)
    if described:
        # Only where it described the package before: a lost row elsewhere must stay a finding.
        replace_files({package.root / DESCRIPTOR: json_bytes(build(package.root))})


# Agreement between readers


def agreement(package: Package) -> list[dict[str, Any]]:
    """For each pair of readers: on how many citations both have read the same item, and how often they agree.

    Clean against not clean; the exact interval is Clopper and Pearson's, and kappa is undefined where one of the two
    used one category only.
    """
    from regatta_tools.measures.agreement import clopper_pearson, kappa_of

    last: dict[tuple[str, str], dict[tuple[str, str], bool]] = defaultdict(dict)
    for reading in package.table("audit"):
        if reading["outcome"] != NOT_ASSESSED:
            who = reading["reader_kind"], reading["reader"]
            last[who][reading["citation"], reading["item_hash"]] = reading["outcome"] == CLEAN
    readers = sorted(last)
    found = []
    for at, one in enumerate(readers):
        for two in readers[at + 1 :]:
            both = sorted(last[one].keys() & last[two].keys())
            if not both:
                continue
            pairs = Counter((last[one][k], last[two][k]) for k in both)
            agree = pairs[True, True] + pairs[False, False]
            table = [pairs[True, True], pairs[True, False], pairs[False, True], pairs[False, False]]
            found.append(
                {
                    "readers": [" ".join(one), " ".join(two)],
                    "n": len(both),
                    "agree": agree,
                    "agreement": agree / len(both),
                    "interval": list(clopper_pearson(agree, len(both))),
                    "kappa": kappa_of(table),
                    "disagreements": [c for c, h in both if last[one][c, h] != last[two][c, h]],
                }
            )
    return found
