"""Schema check of records: the generated JSON Schema, by the fast engine.

``jsonschema`` is the reference engine that the fast one is held to (tests/test_validation.py); both
read the same file, ``schema/generated/regatta.schema.json``.
"""

from __future__ import annotations

import re
from typing import Any

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.package import Package, Record, TableSpec, table_specs, typed
from regatta_tools.tables.shape import class_schema, column_validator, columns_decide, validator
from regatta_tools.text import shown

# What spreadsheets turn ids into: 3-4 -> 04-Mar, 12-5-3 -> 12/05/2003, 2E10 -> 2.00E+10, 0010 -> 10.
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|thg ?\d)[a-z0-9]*"
_SPREADSHEET = re.compile(
    r"[-+]?\d+([.,]\d+)?(e[-+]?\d+)?"
    rf"|\d{{1,4}}[-/. ](\d{{1,2}}|{_MONTH})([-/. ]\d{{1,4}})?|{_MONTH}[-/. ]\d{{1,4}}",
    re.I,
)
_WANTED = {
    "boolean": "not true or false",
    "date": "not a date as 2026-11-30",
    "integer": "not a whole number",
    "uri": "not an address",
}


def check(package: Package) -> list[Finding]:
    """Findings for every cell that is not of the form that the schema gives it."""
    findings: list[Finding] = []
    for spec in table_specs().values():
        for index in _suspects(package, spec):
            record = package.table(spec.name)[index]
            errors = validator(spec.class_name).iter_errors(record.as_object())
            findings += [_finding(record, error) for error in errors]
    return findings


def _suspects(package: Package, spec: TableSpec) -> list[int]:
    """The numbers of the rows that the schema may object to.

    A class of ours says of a record which columns it has, which are required, and of each column what its value is
    like, and no more (:func:`~regatta_tools.tables.shape.columns_decide`). So a record is right where each of its
    cells is, and equal cells need to be looked at once.
    """
    if not columns_decide(spec.class_name, spec.columns):
        return [*range(len(package.rows(spec.name)))]
    required = class_schema(spec.class_name)["$defs"][spec.class_name].get("required", [])
    suspects: set[int] = set()
    for name, field in spec.fields.items():
        cells = package.column(spec.name, name)
        wrong = {""} if name in required and "" in cells else set()
        engine = column_validator(spec.class_name, name)
        if engine is not None:
            wrong |= _wrong(engine, [*({*cells} - {""})], field["kind"])
        if wrong:
            suspects.update(index for index, cell in enumerate(cells) if cell in wrong)
    return sorted(suspects)


def _wrong(engine: Any, values: list[str], kind: str) -> set[str]:
    """The values of a column that the engine objects to. They are all looked at in one call, as a list."""
    if engine.is_valid([typed(value, kind) for value in values]):
        return set()
    return {value for value in values if not engine.is_valid([typed(value, kind)])}


def _finding(record: Record, error: Any) -> Finding:
    """One error of the engine as a finding. An object of cells has no depth, so a path is a column."""
    keyword = str(error.schema_path[-1])
    if keyword == "required":
        name = error.kind.property
        return record.finding("S001", name, f"{name} is empty and has to be filled")
    if not error.instance_path:
        # No schema of ours says such a thing of a whole row today; it must not pass if one comes to.
        return record.finding("S002", record.spec.columns[0], f"the row is not of its form: {error.message}")
    name = str(error.instance_path[0])
    spec, value = record.spec.fields[name], record[name]
    # The engine calls an optional column anyOf (its own form, or nothing).
    code = "S003" if spec["kind"] == "enum" else "S004" if keyword == "pattern" else "S002"
    mend = ""
    if code == "S003":
        allowed = enum_values(spec["enum"])
        what = "which is not one of its values"
        same = next((a for a in allowed if a.lower() == value.strip().lower()), None)
        mend = f"write it as {same!r}" if same else f"use one of: {', '.join(allowed)}"
    elif code == "S004" and name == record.spec.identifier and _SPREADSHEET.fullmatch(value):
        code, what = "S005", "which looks like a spreadsheet's conversion of an id"
    elif code == "S004":
        what = f"which is not of the form {spec.get('pattern') or 'of its type'}"
    else:
        what = _WANTED.get(spec["kind"], f"which is not of type {spec['kind']}")
    return record.finding(code, name, f"{name} is {shown(value)}, {what}", mend)
