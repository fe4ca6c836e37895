"""LinkML to Table Schema: one Frictionless schema for each class that is a table.

For any LinkML schema, not only REGATTA's::

    from regatta_tools.tables.tableschema import table_schemas
    table_schemas("schema.yaml")                 # {"requirements": {"fields": [...], ...}, ...}

    python -m regatta_tools.tables.tableschema schema.yaml --class Person -o out/

======================================  ==========================================================
LinkML                                  Table Schema (datapackage.org, version 2)
======================================  ==========================================================
class, ``class_uri``, ``description``   the schema, ``rdfType``, ``description``
induced slots, by ``rank``              ``fields`` in that order
``range`` (type)                        ``type`` and ``format``
``range`` (enum)                        ``constraints.enum``; ``categories`` of value and label
``range`` (class with an identifier)    ``foreignKeys``; type and pattern of the identifier
``identifier``, ``key``                 ``primaryKey``
``unique_keys``                         ``uniqueKeys``
``required``, ``pattern``, bounds       ``constraints``
``slot_uri``                            ``rdfType`` (full IRI)
======================================  ==========================================================

A table is named by the class's annotation ``table``, or by its name in snake case. LinkML searches
for a pattern while Table Schema matches the whole value, so patterns are rewritten
(:func:`full_match`). A slot that holds a list or an object has no place in a CSV cell: that is an
error, or with ``skipped`` a slot left out. linkml is imported only when a schema is read.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError, RegattaError
from regatta_tools.tables import model as m

_PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"
# Explicit, because readers differ in their defaults: Frictionless takes "1" and "TRUE" for true, and
# with bareNumber false it would strip a currency sign.
_FIELD_BY_KIND: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "uri": {"type": "string", "format": "uri"},
    "boolean": {"type": "boolean", "trueValues": ["true"], "falseValues": ["false"]},
    "integer": {"type": "integer", "bareNumber": True},
    "float": {"type": "number", "bareNumber": True, "decimalChar": "."},
    "decimal": {"type": "number", "bareNumber": True, "decimalChar": "."},
    "date": {"type": "date", "format": "default"},
    "datetime": {"type": "datetime", "format": "default"},
    "time": {"type": "time", "format": "default"},
}


def table_schemas(
    schema_path: Path | str, classes: list[str] | None = None, *, skipped: list[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the Table Schemas of a LinkML schema, by table name.

    ``classes`` are class names; by default those with a ``table`` annotation, or, where no class has
    one, every class that can have records and is no container (``tree_root``). For ``skipped`` see
    :func:`table_schema`. Raises :class:`~regatta_tools.errors.InputError` for a schema that cannot
    be read, an unknown class, or two classes that would share a table.
    """
    view = m.open_view(schema_path)
    if classes is None:
        concrete = [name for name in view.all_classes() if not _abstract(view, name)]
        marked = [name for name in concrete if m.annotation(view.get_class(name), "table")]
        classes = marked or [name for name in concrete if not view.get_class(name).tree_root]
    found: dict[str, dict[str, Any]] = {}
    owner: dict[str, str] = {}
    for name in classes:
        schema = table_schema(view, str(name), skipped=skipped)
        table = table_name(view, str(name))
        if table in found:
            raise InputError(f"The classes {owner[table]} and {name} would both be the table {table}.")
        found[table], owner[table] = schema, str(name)
    return found


def table_schema(view: Any, class_name: str, *, skipped: list[str] | None = None) -> dict[str, Any]:
    """Return the Table Schema of one class.

    ``view`` comes from :func:`regatta_tools.tables.model.open_view`. Foreign keys name tables; a
    reference to the class itself names ``""``. Where ``skipped`` is a list, slots that no cell can
    hold are left out and a line about each is appended to it; otherwise they raise
    :class:`~regatta_tools.errors.InputError`, as do abstract and unknown classes.
    """
    if class_name not in view.all_classes():
        raise InputError(f"The schema has no class {class_name}.", mend=f"Known: {', '.join(view.all_classes())}")
    cls = view.get_class(class_name)
    if _abstract(view, class_name):
        raise InputError(f"{class_name} is {'abstract' if cls.abstract else 'a mixin'}: it has no records of its own.")
    fields, foreign = [], []
    for slot in m.ordered_slots(view, class_name):
        if trouble := _unfit(view, class_name, slot):
            if skipped is None:
                raise InputError(
                    f"{class_name}.{slot.name} {trouble}, which a CSV cell cannot hold.",
                    mend="Put the values in a table of their own that refers to this one, or leave the slot out.",
                )
            skipped.append(f"{class_name}.{slot.name} is left out: it {trouble}.")
            continue
        kind, target = m.slot_kind(view, class_name, slot)
        fields.append(_field(view, class_name, slot, kind, target))
        # An abstract class has no table of its own, so no foreign key can name one.
        if kind == "ref" and not _alternatives(slot) and not _abstract(view, target):
            resource = "" if target == class_name else table_name(view, target)
            key = str(view.get_identifier_slot(target).name)
            foreign.append({"fields": [str(slot.name)], "reference": {"resource": resource, "fields": [key]}})
    names = {field["name"] for field in fields}
    identifier = view.get_identifier_slot(class_name, use_key=True)
    unique = [key for key in m.unique_keys(view, class_name).values() if names.issuperset(key)]
    schema: dict[str, Any] = {"$schema": _PROFILE, "name": table_name(view, class_name)}
    if cls.title:
        schema["title"] = str(cls.title)
    if cls.description:
        schema["description"] = cls.description
    schema |= {"rdfType": view.get_uri(cls, expand=True), "fields": fields, "missingValues": [""]}
    if identifier and str(identifier.name) in names:
        schema["primaryKey"] = [str(identifier.name)]
    if unique:
        schema["uniqueKeys"] = unique
    if foreign:
        schema["foreignKeys"] = foreign
    return schema


def table_name(view: Any, class_name: str) -> str:
    """Return the table of a class: its annotation ``table``, or its name in snake case."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name)
    return m.annotation(view.get_class(class_name), "table") or re.sub(r"\W+", "_", words).lower()


def full_match(pattern: str) -> str:
    """Rewrite a pattern that is searched for into one that matches the whole value.

    Anchors at the edge of an alternative are dropped and an edge without one is opened, so
    ``^a|b$`` (begins with a, or ends with b) becomes ``(a[\\s\\S]*|[\\s\\S]*b)``. Frictionless puts
    ``^`` and ``$`` round the result; without the group, an alternative would escape them. The result
    uses no anchor unless the pattern has one inside a group.

    A limit of Frictionless: its ``$`` also accepts a value that ends in a line break.
    """
    flags = re.match(r"\(\?([aiLmsux]+)\)", pattern)  # such flags may only stand at the very start
    if flags:
        pattern = pattern[flags.end() :]
    parts = [_closed(part) for part in _alternatives_of(pattern)]
    result = parts[0] if len(parts) == 1 else f"({'|'.join(parts)})"
    return f"(?{flags[1]}:{result})" if flags else result


_ANYTHING = r"[\s\S]*"


def _closed(part: str) -> str:
    start = end = _ANYTHING
    if part.startswith("^"):
        part, start = part[1:], ""
    elif part.startswith(r"\A"):
        part, start = part[2:], ""
    for tail in ("$", r"\Z"):
        body = part[: -len(tail)]
        # An even number of backslashes before it, or the anchor is a plain character.
        if part.endswith(tail) and (len(body) - len(body.rstrip("\\"))) % 2 == 0:
            return f"{start}{body}"
    return f"{start}{part}{end}"


def _alternatives_of(pattern: str) -> list[str]:
    """Split at the bars that stand outside groups, character classes and escapes."""
    parts, depth, start, i, in_class = [], 0, 0, 0, False
    while i < len(pattern):
        char = pattern[i]
        if char == "\\":
            i += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
            # A closing bracket that comes first is a plain character.
            i += 1 + pattern.startswith("^", i + 1)
            i -= not pattern.startswith("]", i)
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "|" and depth == 0:
            parts.append(pattern[start:i])
            start = i + 1
        i += 1
    return [*parts, pattern[start:]]


def _alternatives(slot: Any) -> list[Any]:
    """Return the ranges of a slot that may be one of several (``any_of``, ``exactly_one_of``)."""
    return [option for option in [*slot.any_of, *slot.exactly_one_of] if option.range]


def _abstract(view: Any, class_name: str) -> bool:
    cls = view.get_class(class_name)
    return bool(cls.abstract or cls.mixin)


def _unfit(view: Any, class_name: str, slot: Any) -> str:
    """Say why a slot has no place in a cell, or nothing."""
    if slot.multivalued:
        return "holds several values"
    names = [str(option.range) for option in _alternatives(slot)] or [str(slot.range or "string")]
    for name in names:
        if name in view.all_classes():
            if not view.get_identifier_slot(name):
                return f"holds an object of {name}, which has no identifier to refer to"
            if slot.inlined or slot.inlined_as_list:
                return f"holds an object of {name} in place"
    return ""


def _field(view: Any, class_name: str, slot: Any, kind: str, target: str | None) -> dict[str, Any]:
    field: dict[str, Any] = {"name": str(slot.name)}
    enum: list[tuple[str, str]] = []
    texts = m.patterns(view, slot) if kind != "ref" else []
    limits = m.bounds(view, slot)
    options = _alternatives(slot)
    if options:
        # Table Schema knows no union. Enumerations join; anything else is only known to be text.
        field |= _FIELD_BY_KIND["string"]
        texts, limits = [str(slot.pattern)] if slot.pattern else [], {}
        if all(str(option.range) in view.all_enums() for option in options):
            enum = [value for option in options for value in _values(view, str(option.range))]
    elif kind == "enum":
        field |= _FIELD_BY_KIND["string"]
        enum = _values(view, target)
    elif kind == "ref":
        identifier = view.get_identifier_slot(target)
        key_kind, _ = m.slot_kind(view, target, identifier)
        field |= _FIELD_BY_KIND.get(key_kind, _FIELD_BY_KIND["string"])
        texts, limits = m.patterns(view, identifier), m.bounds(view, identifier)
    else:
        field |= _FIELD_BY_KIND[kind]
    if slot.equals_string is not None and field["type"] == "string":
        enum = [(str(slot.equals_string), "")]
    elif slot.equals_string_in and field["type"] == "string":
        enum = [(str(text), "") for text in slot.equals_string_in]
    if slot.title:
        field["title"] = str(slot.title)
    if slot.description:
        field["description"] = slot.description
    field["rdfType"] = m.slot_iri(view, slot)
    constraints: dict[str, Any] = {}
    if slot.required or slot.identifier or slot.key:
        constraints["required"] = True
    # Only text can have a pattern in Table Schema, only numbers take LinkML's bounds.
    if texts and field["type"] == "string":
        constraints["pattern"] = _joined([full_match(text) for text in texts])
    if field["type"] in ("integer", "number"):
        constraints |= limits
    if enum:
        constraints["enum"] = list(dict(enum))
        if any(label for _, label in enum):
            field["categories"] = [{"value": value, "label": label or value} for value, label in dict(enum).items()]
    if constraints:
        field["constraints"] = constraints
    return field


def _joined(texts: list[str]) -> str:
    """All of several patterns have to hold: look ahead for each but the last."""
    return "".join(f"(?=(?:{text})$)" for text in texts[:-1]) + (f"(?:{texts[-1]})" if len(texts) > 1 else texts[-1])


def _values(view: Any, name: str) -> list[tuple[str, str]]:
    """Return the values of an enumeration with their descriptions, those it inherits first.

    An enumeration that is filled from elsewhere (a query, a vocabulary) has values nobody can list
    here; then nothing is returned, which constrains nothing.
    """
    enum = view.get_enum(name)
    if enum.reachable_from or enum.matches or enum.concepts or enum.code_set or enum.include:
        return []
    found: list[tuple[str, str]] = []
    for parent in [*([enum.is_a] if enum.is_a else []), *enum.inherits]:
        found += _values(view, str(parent))
    return found + [(str(text), value.description or "") for text, value in enum.permissible_values.items()]


def main(argv: list[str] | None = None) -> int:
    """Command line: print the Table Schemas as JSON, or write one file a table. Returns an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m regatta_tools.tables.tableschema", description="Table Schemas from a LinkML schema."
    )
    parser.add_argument("schema", help="the LinkML schema (YAML)")
    parser.add_argument("--class", dest="classes", action="append", metavar="C", help="class to take; may be repeated")
    parser.add_argument("--skip", action="store_true", help="leave out slots that no CSV cell can hold, and say so")
    parser.add_argument("-o", dest="folder", metavar="DIR", help="write DIR/TABLE.json; without it, print")
    args = parser.parse_args(argv)
    skipped: list[str] | None = [] if args.skip else None
    try:
        found = table_schemas(args.schema, args.classes, skipped=skipped)
    except RegattaError as err:
        print(f"error: {err}", file=sys.stderr)
        return err.exit_code
    for line in skipped or []:
        print(f"warning: {line}", file=sys.stderr)
    if args.folder is None:
        shown = next(iter(found.values())) if len(found) == 1 else found
        print(json.dumps(shown, ensure_ascii=False, indent=2))
        return 0
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for table, schema in found.items():
        text = json.dumps(schema, ensure_ascii=False, indent=2) + "\n"
        (folder / f"{table}.json").write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
