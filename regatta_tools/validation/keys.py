"""Keys and references: what JSON Schema cannot see because it looks at one record at a time."""

from __future__ import annotations

import unicodedata

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, Record, table_specs
from regatta_tools.text import shown


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def check(package: Package) -> list[Finding]:
    """Findings for ids and keys that occur twice, and references that lead nowhere.

    Keys are compared in Unicode form NFC: two ids that look the same are the same. Ids are unique over
    all tables, since the graph gives every record one name. A reference into a table of which rows
    could not be read may be right, so it is passed over: what could not be read is a finding already.
    """
    findings: list[Finding] = []
    ids: dict[str, Record] = {}
    by_class: dict[str, set[str]] = {}
    for record in package:
        spec = record.spec
        if spec.identifier and record[spec.identifier]:
            key = _nfc(record[spec.identifier])
            by_class.setdefault(spec.class_name, set()).add(key)
            first = ids.setdefault(key, record)
            if first is not record:
                what = f"id {shown(key)} is already at {first.file}:{first.line}"
                findings.append(record.finding("K001", spec.identifier, what))
    unknowable = {s.class_name for s in table_specs().values() if s.name in package.incomplete}
    seen: dict[tuple[str, ...], Record] = {}
    for record in package:
        for name, columns in record.spec.unique_keys.items():
            values = tuple(_nfc(record[c]) for c in columns)
            if not all(values):
                continue
            first = seen.setdefault((record.spec.name, name, *values), record)
            # A whole row that stands twice is told once, by its id.
            if first is not record and not (record.spec.identifier and first.key == record.key):
                key = ", ".join(f"{c} {shown(v)}" for c, v in zip(columns, values, strict=True))
                findings.append(record.finding("K002", columns[-1], f"{key} is already at {first.file}:{first.line}"))
        for column, field in record.spec.fields.items():
            value = _nfc(record[column])
            if field["kind"] != "ref" or not value or field["ref"] in unknowable:
                continue
            if value not in by_class.get(field["ref"], set()):
                other = ids.get(value)
                hint = f" (it is a {other.spec.class_name})" if other is not None else ""
                what = f"{column} {shown(value)} is no {field['ref']} of this package{hint}"
                findings.append(record.finding("K003", column, what))
    return findings
