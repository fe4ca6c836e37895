"""A package of two invented laws about boats, with their texts: small enough that a test can see all of it.

Nothing in it is law. ``World`` holds the tables as rows that a test changes before ``write``.
"""

from __future__ import annotations

import csv
import io
from datetime import date
from pathlib import Path
from typing import Any

from conftest import redescribe

from regatta_tools.provenance.corpus import read_corpus
from regatta_tools.provenance.outcomes import AuditReport, audit_package
from regatta_tools.provenance.readings import NewReading, record
from regatta_tools.tables.package import Package, read, table_specs

US, VN, PARENT = "us-cfr-50-999", "vn-decree-boats", "us-cfr-50-998"
DAY = date(2026, 11, 30)

US_TEXT = """source-id: us-cfr-50-999
title: Rule on boats (invented)
number: 50 CFR Part 999
as-of: 2026-09-01
retrieved-from: written for a test

## § 999.5

§ 999.5 Boats.

(a) Reports. A keeper must tell the owner of a leak

(1) in writing not later than fifteen (15) business days after it is found, and

(2) within 30 calendar days if the boat is abroad.

(b) Fees. The fee may not exceed 2 percent of the price. The keeper keeps at least 12 lamps.

(c) List. By March 31 of each year the keeper sends a list.

(d) Pairs. The master waits 5 days. The mate waits 7 days.

## § 999.9

(a) Words. A boat is a hull of 3 or more planks.
"""
VN_TEXT = """source-id: vn-decree-boats
title: Nghị định về thuyền (bịa)
number: 999/2026/NĐ-CP
as-of: 2026-03

## Điều 5

1. Chủ thuyền báo trong thời hạn ba mươi ngày làm việc:

a) khi thuyền chìm;

b) khi thuyền mất.

2. Mức phạt tối đa là 400.000.000 đồng.
"""


class World:
    """The tables of the package by name, and the texts by file name. All is right until a test changes it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "texts"
        self.texts: dict[str, str | bytes] = {f"{US}.txt": US_TEXT, f"{VN}.txt": VN_TEXT}
        law = {
            "url": "https://example.org",
            "binding": "true",
            "issuer": "Nobody",
            "status": "in-force",
            "effective": "2020-01-01",
        }
        self.tables: dict[str, list[dict[str, str]]] = {
            "cells": [
                {"id": "boats-us", "title": "Boats", "domain": "insurance", "jurisdiction": "US", "languages": "en",
                 "persona": "You keep boats.", "as_of": DAY.isoformat()},
                {"id": "boats-vn", "title": "Boats", "domain": "insurance", "jurisdiction": "VN", "languages": "vi-en",
                 "persona": "You keep boats.", "as_of": DAY.isoformat()},
            ],
            "sources": [
                {"id": US, "title": "Rule on boats (invented)", "jurisdiction": "US", "kind": "regulation",
                 "number": "50 CFR Part 999", **law},
                {"id": PARENT, "title": "Older rule on boats (invented)", "jurisdiction": "US", "kind": "regulation",
                 "number": "50 CFR Part 998", **law},
                {"id": VN, "title": "Decree on boats (invented)", "title_vi": "Nghị định về thuyền (bịa)",
                 "jurisdiction": "VN", "kind": "regulation", "number": "999/2026/NĐ-CP", **law},
            ],
            "requirements": [
                self.requirement("boats-us", 1, "A keeper tells the owner of a leak not later than 15 business days "
                                 "after it is found, and within 30 calendar days if the boat is abroad."),
                self.requirement("boats-us", 2, "The fee is at most 2 percent of the price. The keeper keeps at least "
                                 "12 lamps."),
                self.requirement("boats-us", 3, "The keeper sends a list each year."),
                self.requirement("boats-us", 4, "The master waits 5 days."),
                self.requirement("boats-vn", 1, "The owner reports within 30 working days, and the fine is at most "
                                 "VND 400,000,000.",
                                 "Chủ thuyền báo trong 30 ngày làm việc; phạt tối đa 400.000.000 đồng."),
            ],
            "citations": [
                self.citation("boats-us", 1, 1, US, "50 CFR § 999.5(a)(1)-(2)"),
                self.citation("boats-us", 2, 1, US, "50 CFR § 999.5(b)"),
                self.citation("boats-us", 2, 2, US, "50 CFR § 999.9(a)", role="scope"),
                self.citation("boats-us", 3, 1, US, "50 CFR § 999.5(c)"),
                self.citation("boats-us", 4, 1, US, "50 CFR § 999.5(d)"),
                self.citation("boats-vn", 1, 1, VN, "Điều 5, khoản 1"),
                self.citation("boats-vn", 1, 2, VN, "Điều 5, khoản 2"),
            ],
            "facts": [
                self.fact("boats-us", 1, 1, "duration", "at-most", "15", "day", "business"),
                self.fact("boats-us", 1, 2, "duration", "at-most", "30", "day", "calendar"),
                self.fact("boats-us", 2, 1, "ratio", "at-most", "2", "percent"),
                self.fact("boats-us", 2, 2, "count", "at-least", "12", "item"),
                self.fact("boats-us", 3, 1, "date", "equal", "--03-31", "calendar-date"),
                self.fact("boats-us", 4, 1, "duration", "equal", "5", "day", "unspecified"),
                self.fact("boats-vn", 1, 1, "duration", "at-most", "30", "day", "working"),
                self.fact("boats-vn", 1, 2, "money", "at-most", "400000000", "VND", citation=2),
            ],
        }  # fmt: skip

    @staticmethod
    def requirement(cell: str, number: int, duty: str, duty_vi: str = "") -> dict[str, str]:
        return {
            "id": f"{cell}-r{number:02d}", "cell": cell, "jurisdiction": cell[-2:].upper(), "topic": f"Boats {number}",
            "duty_en": duty, "duty_vi": duty_vi, "actor": "keeper", "observable_test": "A leak.", "status": "active",
        }  # fmt: skip

    @staticmethod
    def citation(cell: str, requirement: int, number: int, source: str, locator: str, role: str = "basis") -> dict:
        key = f"{cell}-r{requirement:02d}"
        return {"id": f"{key}-c{number}", "cell": cell, "requirement": key, "source": source, "locator": locator,
                "role": role}  # fmt: skip

    @staticmethod
    def fact(cell: str, requirement: int, number: int, kind: str, comparator: str, value: str, unit: str,
             day_count: str = "", citation: int = 1) -> dict[str, str]:  # fmt: skip
        key = f"{cell}-r{requirement:02d}"
        return {"id": f"{key}-f{number}", "cell": cell, "requirement": key, "citation": f"{key}-c{citation}",
                "label": f"of boats {number}", "kind": kind, "comparator": comparator, "value": value, "unit": unit,
                "day_count": day_count}  # fmt: skip

    def row(self, key: str) -> dict[str, str]:
        """The row of an id, of whatever table."""
        return next(row for rows in self.tables.values() for row in rows if row.get("id") == key)

    def set(self, key: str, **cells: str) -> None:
        self.row(key).update(cells)

    def edit(self, old: str, new: str, file: str = f"{US}.txt") -> None:
        """Change one place of a text."""
        text = self.texts[file]
        assert isinstance(text, str) and text.count(old) == 1, old
        self.texts[file] = text.replace(old, new)

    def write(self) -> World:
        """Write tables, descriptor and texts. What ``audit.csv`` holds stays."""
        for name, rows in self.tables.items():
            spec = table_specs()[name]
            for cell in ("",) if spec.scope == "package" else ("boats-us", "boats-vn"):
                out = io.StringIO()
                writer = csv.DictWriter(out, spec.columns, restval="", lineterminator="\n")
                writer.writeheader()
                writer.writerows(row for row in rows if not cell or row["cell"] == cell)
                path = self.root / "instruments" / cell / f"{name}.csv"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(out.getvalue(), encoding="utf-8", newline="")
        redescribe(self.root)
        self.folder.mkdir(exist_ok=True)
        for old in self.folder.iterdir():
            old.unlink()
        for file, text in self.texts.items():
            raw = text if isinstance(text, bytes) else text.encode("utf-8")
            (self.folder / file).write_bytes(raw)
        return self

    def package(self) -> Package:
        return read(self.root)

    def corpus(self):
        return read_corpus(self.folder)

    def readings(self, **cells: str) -> list[NewReading]:
        """A clean reading of each citation by one reader, or of what ``cells`` says."""
        given: dict[str, Any] = {
            "outcome": "verified-clean",
            "reader": "Lan",
            "reader_kind": "ai",
            "date": "2026-11-30",
        }
        return [NewReading(row["id"], **given | cells) for row in self.tables["citations"]]

    def read_by(self, *citations: str, **cells: str) -> World:
        """Record readings of all citations, or of those that are named."""
        wanted = [r for r in self.readings(**cells) if not citations or r.citation in citations]
        record(self.package(), self.corpus(), wanted)
        return self

    def audit(self, *, texts: bool = True, **options: Any) -> AuditReport:
        return audit_package(self.package(), self.corpus() if texts else None, **options)


def codes(report: AuditReport) -> set[str]:
    return {finding.code for finding in report.findings}


def outcomes(report: AuditReport) -> dict[str, tuple[str, list[str]]]:
    """Outcome and reasons by requirement."""
    return {item.requirement.key: (item.outcome, item.reasons) for item in report.items}
