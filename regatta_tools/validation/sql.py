"""Rules as SQL queries over the package.

Each table of the package becomes a table of an in-memory SQLite database, with the columns of the
schema (all text, empty cells NULL) and ``_record``, the number of the row. See validators/README.md.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import date

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rules
from regatta_tools.tables.package import Package, table_specs
from regatta_tools.validation.numbers import mentions_number


def _matches(pattern: str, text: str | None) -> bool | None:
    return None if text is None else re.search(pattern, text) is not None


def _mentions_number(text: str | None, value: str | None) -> bool | None:
    return None if text is None or value is None else mentions_number(text, value)


def database(package: Package) -> sqlite3.Connection:
    """The package as a database. Tables without a file are there, and empty."""
    connection = sqlite3.connect(":memory:")
    for name, spec in table_specs().items():
        columns = ", ".join(f'"{c}" TEXT' for c in spec.columns)
        connection.execute(f'CREATE TABLE "{name}" (_record INTEGER PRIMARY KEY, {columns})')
        marks = ", ".join("?" * (len(spec.columns) + 1))
        connection.executemany(
            f'INSERT INTO "{name}" VALUES ({marks})',
            ((i, *(r.get(c) for c in spec.columns)) for i, r in enumerate(package.table(name))),
        )
        if spec.identifier:
            connection.execute(f'CREATE INDEX "{name}_{spec.identifier}" ON "{name}" ("{spec.identifier}")')
        for column, field in spec.fields.items():
            if field["kind"] == "ref":
                connection.execute(f'CREATE INDEX "{name}_{column}" ON "{name}" ("{column}")')
    connection.create_function("matches", 2, _matches, deterministic=True)
    connection.create_function("mentions_number", 2, _mentions_number, deterministic=True)
    connection.execute("PRAGMA query_only = ON")
    return connection


def check(package: Package, as_of: date | None = None) -> list[Finding]:
    """Run every SQL rule over the tables that could be read to the end.

    A rule that asks about another table would report what is merely unread. A query that fails is a
    defect of the rule file and stops the check.
    """
    findings: list[Finding] = []
    specs = table_specs()
    unread = re.compile(r"\b(" + "|".join(map(re.escape, sorted(package.incomplete))) + r")\b")
    connection = database(package)
    try:
        for rule in rules().values():
            if rule.engine != "sql" or (package.incomplete and unread.search(rule.query)):
                continue
            try:
                if rule.table not in specs or rule.field not in specs[rule.table].fields:
                    raise ValueError(f"the schema has no {rule.table}.{rule.field}")
                cursor = connection.execute(rule.query, {"as_of": as_of.isoformat() if as_of else None})
                if len(cursor.description or ()) != 2:
                    raise ValueError("it does not give two columns")
                for number, detail in cursor:
                    record = package.table(rule.table)[number]
                    line, column = record.place(rule.field)
                    # SQL joins a text and NULL to NULL: a message is better short than missing.
                    message = detail or rule.title
                    findings.append(
                        rule.finding(message, file=record.file, line=line, column=column, record=record.key)
                    )
            except (sqlite3.Error, ValueError, TypeError, IndexError) as error:
                raise EnvironmentProblem(f"the query of rule {rule.code} fails: {error}", code="E302") from error
    finally:
        connection.close()
    return findings
