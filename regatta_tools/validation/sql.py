"""Rules as SQL queries over the package.

Each table of the package becomes a table of an in-memory SQLite database, with the columns of the
schema (all text, empty cells NULL) and ``_record``, the number of the row. See validators/README.md.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.provenance import citation_checks
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import Rule, rules
from regatta_tools.tables.package import Package, table_specs
from regatta_tools.validation.numbers import mentions_number, opposite_bound

_compiled = lru_cache(maxsize=256)(re.compile)


def _matches(pattern: str, text: str | None) -> bool | None:
    return None if text is None else _compiled(pattern).search(text) is not None


def _mentions_number(text: str | None, value: str | None) -> bool | None:
    return None if text is None or value is None else mentions_number(text, value)


def _opposite_bound(text: str | None, value: str | None, comparator: str | None) -> str | None:
    return None if text is None or value is None else opposite_bound(text, value, comparator or "")


@dataclass
class _Needs:
    """What some queries read: columns by table, and the indexes by which they look rows up."""

    columns: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    indexes: set[str] = field(default_factory=set)


class Database:
    """The package as a database in memory, which holds what the queries need that it was told of.

    A package may have a million rows of long texts, and most columns are read by no query. Which are is not guessed:
    SQLite itself says it, of an empty database of the same form. Tables without a file are there, and empty.
    """

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.create_function("matches", 2, _matches, deterministic=True)
        self.connection.create_function("mentions_number", 2, _mentions_number, deterministic=True)
        self.connection.create_function("number_problem", 2, citation_checks.number_problem, deterministic=True)
        self.connection.create_function("number_form", 2, citation_checks.number_form, deterministic=True)
        self.connection.create_function("has_citation_grammar", 1, citation_checks.grammar_of, deterministic=True)
        # Not of the schema: what the citation grammars have to say, by number of the record among the citations.
        self.connection.execute("CREATE TABLE citation_problems (_record INTEGER, about TEXT, message TEXT)")
        self.connection.create_function("opposite_bound", 3, _opposite_bound, deterministic=True)
        self._indexes: dict[str, str] = {}
        self._needs = _Needs()
        for name, spec in table_specs().items():
            columns = ", ".join(f'"{c}" TEXT' for c in spec.columns)
            self.connection.execute(f'CREATE TABLE "{name}" (_record INTEGER PRIMARY KEY, {columns})')
            refs = [column for column, f in spec.fields.items() if f["kind"] == "ref"]
            for column in filter(None, (spec.identifier, *refs)):
                index = f"{name}_{column}"
                self._indexes[index] = f'CREATE INDEX "{index}" ON "{name}" ("{column}")'
                self.connection.execute(self._indexes[index])

    def prepare(self, query: str, parameters: dict[str, Any]) -> None:
        """Note what a query needs. Raises ``sqlite3.Error`` where it is none."""

        def note(action: int, table: str | None, column: str | None, *_: Any) -> int:
            if action == sqlite3.SQLITE_READ and table:
                # A table of which only the rows are counted is read too, with no column.
                self._needs.columns[table].update([column] if column else [])
            return sqlite3.SQLITE_OK

        self.connection.set_authorizer(note)
        try:
            plan = self.connection.execute(f"EXPLAIN QUERY PLAN {query}", parameters).fetchall()
        finally:
            self.connection.set_authorizer(None)
        self._needs.indexes.update(name for *_, step in plan for name in self._indexes if f"INDEX {name} " in step)

    def fill(self, package: Package) -> None:
        """Copy what the queries need, empty cells as NULL."""
        for index in self._indexes:
            self.connection.execute(f'DROP INDEX "{index}"')
        for name, spec in table_specs().items():
            columns = [column for column in spec.columns if column in self._needs.columns.get(name, ())]
            if name not in self._needs.columns:
                continue
            filled = [[cell or None for cell in package.column(name, column)] for column in columns]
            names = ", ".join(f'"{column}"' for column in ("_record", *columns))
            marks = ", ".join("?" * (len(columns) + 1))
            rows = zip(range(len(package.rows(name))), *filled, strict=True)
            self.connection.executemany(f'INSERT INTO "{name}" ({names}) VALUES ({marks})', rows)
        for index in sorted(self._needs.indexes):
            self.connection.execute(self._indexes[index])
        if "citation_problems" in self._needs.columns:
            problems = citation_checks.problems_of(package)
            self.connection.executemany("INSERT INTO citation_problems VALUES (?, ?, ?)", problems)
        self.connection.execute("PRAGMA query_only = ON")


def check(package: Package, as_of: date | None = None) -> list[Finding]:
    """Run every SQL rule over the tables that could be read to the end.

    A rule that asks about another table would report what is merely unread. A query that fails is a
    defect of the rule file and stops the check.
    """
    findings: list[Finding] = []
    unread = re.compile(r"\b(" + "|".join(map(re.escape, sorted(package.incomplete))) + r")\b")
    parameters = {"as_of": as_of.isoformat() if as_of else None}
    chosen = [r for r in rules().values() if r.engine == "sql" and not (package.incomplete and unread.search(r.query))]
    database = Database()
    with closing(database.connection):
        for rule in chosen:
            with _defects_of(rule):
                database.prepare(rule.query, parameters)
        database.fill(package)
        for rule in chosen:
            with _defects_of(rule):
                findings += _findings(rule, database.connection.execute(rule.query, parameters), package)
    return findings


@contextmanager
def _defects_of(rule: Rule) -> Iterator[None]:
    """A query that fails is a defect of the rule file, and stops the check."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, IndexError) as error:
        raise EnvironmentProblem(f"the query of rule {rule.code} fails: {error}", code="E302") from error


def _findings(rule: Rule, cursor: sqlite3.Cursor, package: Package) -> Iterator[Finding]:
    spec = table_specs().get(rule.table)
    if spec is None or rule.field not in spec.fields:
        raise ValueError(f"the schema has no {rule.table}.{rule.field}")
    if len(cursor.description or ()) != 2:
        raise ValueError("it does not give two columns")
    for number, detail in cursor:
        record = package.table(rule.table)[number]
        line, column = record.place(rule.field)
        # SQL joins a text and NULL to NULL: a message is better short than missing.
        message = detail or rule.title
        yield rule.finding(message, file=record.file, line=line, column=column, record=record.key)
