"""Readings: who read which citation, on which text, and found what. The file ``audit.csv`` of a cell is only added to.

A reading names the text and the passage by hash, and the item (requirement, citation, source, facts) by hash too: when
the law's text or the item changes, the reading still stands in the file and no longer counts. Readings that disagree
are all kept.

The review sheet (:func:`todo`, then :func:`import_sheet`) carries the work to readers and back. Its passages come from
the user's own texts and go into the sheet alone.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.provenance import checks
from regatta_tools.provenance.checks import CLEAN, NOT_ASSESSED, Index
from regatta_tools.provenance.corpus import Corpus
from regatta_tools.tables.descriptor import build
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.package import DESCRIPTOR, Package, Record, table_specs
from regatta_tools.tables.writing import csv_bytes, json_bytes, replace_files
from regatta_tools.text import shown

#: Columns of the review sheet: what the reader needs, then what the reader fills in.
GIVEN = ("citation", "requirement", "topic", "duty_en", "duty_vi", "actor", "applies_when", "role", "source", "number",
         "locator", "text", "text_date", "passage", "facts")  # fmt: skip
FILLED = ("outcome", "reason_code", "reason", "evidence", "decision", "reader", "reader_kind", "date")


@dataclass(frozen=True)
class NewReading:
    """What a reader says of one citation. ``row`` is where it stands in a sheet, for messages; 0 where it does not."""

    citation: str
    outcome: str
    reader: str
    reader_kind: str
    date: str
    reason_code: str = ""
    reason: str = ""
    evidence: str = ""
    decision: str = ""
    row: int = 0


def record(package: Package, corpus: Corpus, readings: Sequence[NewReading]) -> list[str]:
    """Add readings to the audit files of their cells; returns the new ids.

    All are checked before anything is written: the first that cannot stand raises :class:`InputError`. An outcome
    other than ``not-assessed`` needs a held text with the passage: a reading without evidence is refused.
    """
    index = Index(package)
    citations = {r.key: r for r in package.table("citations")}
    numbers = Counter(r["citation"] for r in package.table("audit"))
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for reading in readings:
        citation = citations.get(reading.citation)
        if citation is None:
            raise _refused(reading, f"there is no citation {shown(reading.citation)}", "name one of citations.csv")
        row = _row(index, corpus, citation, reading)
        numbers[citation.key] += 1
        row["id"] = f"{citation.key}-a{numbers[citation.key]}"
        rows[citation["cell"]].append(row)
    _write(package, rows)
    return [row["id"] for added in rows.values() for row in added]


def _row(index: Index, corpus: Corpus, citation: Record, reading: NewReading) -> dict[str, str]:
    for name, enum in (("outcome", "AuditOutcome"), ("reader_kind", "LabellerKind"), ("reason_code", "AuditReason")):
        value = getattr(reading, name)
        if value not in enum_values(enum) and not (name == "reason_code" and not value):
            raise _refused(reading, f"{name} is {shown(value)}", f"use one of: {', '.join(enum_values(enum))}")
    if not reading.reader.strip():
        raise _refused(reading, "nobody is named as the reader", "say who read")
    try:
        date.fromisoformat(reading.date)
    except ValueError as error:
        raise _refused(reading, f"{shown(reading.date)} is not a date", "write it as 2026-11-30") from error
    if reading.outcome == CLEAN and reading.reason_code:
        raise _refused(reading, "a clean reading has a reason code", "leave it out, or change the outcome")
    if reading.outcome not in (CLEAN, NOT_ASSESSED) and not (reading.reason_code and reading.reason.strip()):
        raise _refused(reading, "an adverse outcome says why", "give reason_code and reason")
    read, _ = checks.read_citation(index, citation, corpus)
    if reading.outcome != NOT_ASSESSED and read.passage is None:
        what = f"the outcome {reading.outcome} has no evidence: the passage is not held"
        raise _refused(reading, what, "name the texts with --texts, or record not-assessed")
    evidence = _evidence(index, read, reading)
    return {
        "id": "",
        "cell": citation["cell"],
        "requirement": citation["requirement"],
        "citation": citation.key,
        "outcome": reading.outcome,
        "reason_code": reading.reason_code,
        "reason": " ".join(reading.reason.split()),
        "reader": reading.reader.strip(),
        "reader_kind": reading.reader_kind,
        "date": reading.date,
        "text_hash": read.text.sha256 if read.text else "",
        "passage_hash": read.passage.sha256 if read.passage else "",
        "item_hash": checks.item_hash(index, citation),
        "evidence": evidence,
        "decision": " ".join(reading.decision.split()),
    }


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


# Review sheets


def todo(package: Package, corpus: Corpus | None, *, cells: Iterable[str] = (), everything: bool = False) -> bytes:
    """A review sheet in CSV of the citations without a current reading by a person (or of all).

    Where a corpus is given the sheet has each passage, from the reader's own texts.
    """
    from regatta_tools.provenance.outcomes import latest

    index = Index(package)
    wanted = set(cells)
    out = io.StringIO()
    writer = csv.DictWriter(out, [*GIVEN, *FILLED], lineterminator="\n", restval="")
    writer.writeheader()
    for citation in package.table("citations"):
        requirement = package.by_id[citation["requirement"]]
        if requirement["status"] != "active" or (wanted and citation["cell"] not in wanted):
            continue
        current, _ = latest(index, citation)
        if everything or not any(r["reader_kind"] in ("human", "lawyer") for r in current):
            writer.writerow(_todo_row(index, corpus, requirement, citation))
    return out.getvalue().encode("utf-8")


def _todo_row(index: Index, corpus: Corpus | None, requirement: Record, citation: Record) -> dict[str, str]:
    from regatta_tools.tables.spreadsheet import neutral

    source = index.sources[citation["source"]]
    read = checks.read_citation(index, citation, corpus)[0] if corpus else checks.Read(citation, None, None)
    facts = [
        f"{f.key}: {f['label']} {f['comparator']} {f['value']} {f['unit']} {f['day_count']}".strip()
        for f in index.facts.get(requirement.key, [])
        if f["citation"] == citation.key
    ]
    row = {
        "citation": citation.key,
        "requirement": requirement.key,
        **{c: requirement[c] for c in ("topic", "duty_en", "duty_vi", "actor", "applies_when")},
        "role": citation["role"],
        "source": source["title"],
        "number": source["number"],
        "locator": citation["locator"],
        "text": read.text.file if read.text else "",
        "text_date": read.text.date if read.text else "",
        "passage": read.passage.normal if read.passage else "",
        "facts": "; ".join(facts),
    }
    return {k: neutral(v) for k, v in row.items()}


def import_sheet(path: Path) -> list[NewReading]:
    """The filled rows of a review sheet, CSV or XLSX. Rows without an outcome are passed over.

    Raises :class:`InputError` for a file that is no such sheet.
    """
    rows = _sheet_rows(path)
    header = rows[0] if rows else []
    missing = [c for c in ("citation", *FILLED) if c not in header]
    if missing:
        mend = "take the sheet that `regatta audit todo` writes"
        raise InputError(f"columns are missing: {', '.join(missing)}", code="U131", place=f"{path}:1", mend=mend)
    found = []
    for number, cells in enumerate(rows[1:], 2):
        row = dict(zip(header, [*cells, *[""] * (len(header) - len(cells))]))
        if row["outcome"].strip():
            values: dict[str, Any] = {k: row[k].strip() for k in FILLED}
            found.append(NewReading(citation=row["citation"].strip(), row=number, **values))
    if not found:
        raise InputError("no row has an outcome", code="U131", place=str(path), mend="fill in the column outcome")
    return found


def _sheet_rows(path: Path) -> list[list[str]]:
    try:
        if path.suffix.lower() == ".xlsx":
            from openpyxl import load_workbook

            book = load_workbook(path, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            return [["" if v is None else _cell(v) for v in row] for row in sheet.iter_rows(values_only=True)]
        text = path.read_text(encoding="utf-8-sig")
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, ValueError, EOFError) as error:
        raise InputError(f"the sheet cannot be read: {error}", code="U131", place=str(path)) from error
    except Exception as error:  # openpyxl lets errors of zip and XML through under their own names
        if type(error).__module__.split(".")[0] in ("zipfile", "xml", "openpyxl", "lxml", "defusedxml"):
            raise InputError(f"the sheet cannot be read: {error}", code="U131", place=str(path)) from error
        raise


def _cell(value: Any) -> str:
    return value.date().isoformat() if hasattr(value, "date") else str(value)


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
