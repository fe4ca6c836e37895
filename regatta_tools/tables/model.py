"""The schema as plain data, so that no run has to import linkml (2.6 s).

:func:`compile_model` reads the LinkML schema; ``make schema`` stores what it returns as
``schema/generated/model.json``; :func:`load_model` reads that file with the standard library.

Form of a model::

    {"name", "version", "prefixes": {prefix: iri},
     "classes": {name: {
        "uri": iri, "description", "abstract": bool,
        "table": str | None, "scope": "package" | "cell" | "context" | None,
        "identifier": field name | None, "unique_keys": {key name: [field name]},
        "fields": [{"name", "uri": iri, "required": bool, "multivalued": bool, "kind",
                    "enum" | "ref" | "class" | "pattern" | "minimum" | "maximum" | "language",
                    "description"}]}},
     "enums": {name: {"description", "values": {text: {"meaning": iri | None, "description"}}}}}

``kind`` is one of ``string boolean integer float decimal date uri enum ref object``. A ``ref`` holds the
identifier of a record of the class under ``ref``; an ``object`` is a record of the class under
``class`` written in place. Optional keys are absent where they say nothing. ``pattern`` is the
schema's own regular expression, which is *searched* for (so it carries its anchors). Fields are in
the order of the columns, see :func:`ordered_slots`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools import paths
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.safety import unsafe
from regatta_tools.text import shown

_DEFAULT_RANK = 50

# A type is known by its own name, by that of the type it refines, or by its XSD datatype. The name
# comes first because uriorcurie carries xsd:anyURI and is none.
_KIND_BY_NAME = {
    "string": "string", "boolean": "boolean", "integer": "integer", "float": "float", "double": "float",
    "decimal": "decimal", "date": "date", "datetime": "datetime", "time": "time", "uri": "uri",
    "uriorcurie": "string", "curie": "string", "ncname": "string", "objectidentifier": "string",
    "nodeidentifier": "string", "jsonpointer": "string", "jsonpath": "string", "sparqlpath": "string",
    "date_or_datetime": "string",
}  # fmt: skip
_XSD = "http://www.w3.org/2001/XMLSchema#"
_KIND_BY_XSD = {
    "string": "string", "boolean": "boolean", "integer": "integer", "int": "integer", "long": "integer",
    "nonNegativeInteger": "integer", "positiveInteger": "integer", "float": "float", "double": "float",
    "decimal": "decimal", "date": "date", "dateTime": "datetime", "time": "time", "anyURI": "uri",
}  # fmt: skip
# The kinds that REGATTA's own tables and files use; the Table Schema generator knows more.
_OWN_KINDS = {"string", "boolean", "integer", "float", "decimal", "date", "uri"}


def load_model(path: Path | str | None = None) -> dict[str, Any]:
    """Return the compiled model; ``None`` means the one that belongs to this installation.

    The result is cached and shared: do not change it. Raises
    :class:`~regatta_tools.errors.EnvironmentProblem` where the file is missing or damaged.
    """
    return _load(Path(path) if path is not None else paths.generated_dir() / "model.json")


def enum_values(name: str) -> tuple[str, ...]:
    """The permissible values of an enumeration of the schema, in schema order (``KeyError`` for unknown names)."""
    return tuple(load_model()["enums"][name]["values"])


@lru_cache(maxsize=8)
def _load(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise EnvironmentProblem(
            f"The compiled schema cannot be read: {err}", place=path.name, mend="make schema"
        ) from err


def compile_model(schema_path: Path | str) -> dict[str, Any]:
    """Compile a LinkML schema into a model (form: see the module).

    Raises :class:`~regatta_tools.errors.InputError` for a schema that cannot be loaded, for
    permissible values that YAML does not read as text, and for ranges that have no kind.
    """
    view = open_view(schema_path)
    enums = {
        str(name): {
            "description": enum.description or "",
            "values": {
                str(text): {
                    "meaning": view.expand_curie(value.meaning) if value.meaning else None,
                    "description": value.description or "",
                }
                for text, value in enum.permissible_values.items()
            },
        }
        for name, enum in sorted(view.all_enums().items())
    }
    return {
        "name": str(view.schema.name),
        "version": str(view.schema.version or ""),
        "prefixes": own_prefixes(view),
        "classes": {str(name): _compile_class(view, name) for name in view.all_classes()},
        "enums": enums,
    }


def _compile_class(view: Any, name: str) -> dict[str, Any]:
    cls = view.get_class(name)
    identifier = view.get_identifier_slot(name)
    return {
        "uri": view.get_uri(cls, expand=True),
        "description": cls.description or "",
        "abstract": bool(cls.abstract or cls.mixin),
        "table": annotation(cls, "table"),
        "scope": annotation(cls, "scope"),
        "identifier": str(identifier.name) if identifier else None,
        "unique_keys": unique_keys(view, name),
        "fields": [_compile_field(view, name, slot) for slot in ordered_slots(view, name)],
    }


def _compile_field(view: Any, class_name: str, slot: Any) -> dict[str, Any]:
    kind, target = slot_kind(view, class_name, slot)
    if kind not in _OWN_KINDS | {"enum", "ref", "object"}:
        raise InputError(f"{class_name}.{slot.name} has the range {slot.range}, for which there is no kind ({kind}).")
    field: dict[str, Any] = {
        "name": str(slot.name),
        "uri": slot_iri(view, slot),
        "required": bool(slot.required or slot.identifier),
        "multivalued": bool(slot.multivalued),
        "kind": kind,
    }
    if target:
        field["class" if kind == "object" else kind] = target
    if kind not in ("ref", "object"):
        found = patterns(view, slot)
        if len(found) > 1:
            raise InputError(f"{class_name}.{slot.name} has several patterns (its own and its type's): {found}.")
        if found:
            field["pattern"] = found[0]
    for key, bound in bounds(view, slot).items():
        field[key] = bound
    if language := annotation(slot, "language"):
        field["language"] = language
    field["description"] = slot.description or ""
    return field


# Reading a schema: shared by the model, the Table Schema generator and `make schema`.


def open_view(schema_path: Path | str) -> Any:
    """Open a LinkML schema with its imports and return linkml's ``SchemaView``.

    Raises
    :class:`~regatta_tools.errors.InputError` for a file that is missing or no schema, and for
    permissible values that YAML 1.1 does not read as text (see :func:`unquoted_values`).
    """
    path = Path(schema_path)
    if not path.is_file():
        raise InputError("There is no such schema file.", place=str(schema_path))
    check_imports(path)
    if troubles := unquoted_values(path):
        raise InputError("\n".join(troubles), mend="Put the values in quotes.")
    try:
        from linkml_runtime.utils.schemaview import SchemaView
    except ImportError as err:
        raise EnvironmentProblem("linkml is not installed; reading a schema needs it.", mend="make setup") from err
    try:
        view = SchemaView(str(path))
        view.all_classes()
    except Exception as err:  # linkml raises whatever its loaders raise
        raise InputError(f"linkml cannot load the schema: {err}", place=str(schema_path)) from err
    return view


def check_imports(schema_path: Path | str) -> list[Path]:
    """The files of a schema: its own and those it imports, which all have to lie in its folder.

    linkml follows an import to any path or address. Here the only addresses are those of linkml's own
    schemas (``linkml:types``), which come with it, and a path may not leave the folder of the schema.
    Raises :class:`~regatta_tools.errors.InputError` for any other import before it is looked at.
    """
    import yaml

    first = Path(schema_path).resolve()
    found: list[Path] = []
    waiting = [first]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue  # linkml says what is missing, and from where
        found.append(file)
        try:
            # As values, for a merge key can bring in what no key of the file says.
            content = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, ValueError, RecursionError) as err:
            raise InputError(f"The schema is no readable YAML: {err}", place=file.name) from err
        if not isinstance(content, dict):
            raise InputError("The schema holds no mapping at its top.", place=file.name)
        listed = content.get("imports") or []
        for name in listed if isinstance(listed, list) else [listed]:
            if isinstance(name, str) and re.fullmatch(r"linkml:[a-z_]+", name):
                continue  # whatever the schema says the prefix stands for, linkml takes its own
            reason = unsafe(first.parent, name)
            # linkml's readers differ in where they start from, the importing file or the first: both have to be inside.
            if reason is None and not (file.parent / f"{name}.yaml").resolve().is_relative_to(first.parent):
                reason = "leads out of the folder of the schema"
            if reason:
                raise InputError(f"The import {shown(name)} {reason}.", place=file.name)
            waiting.append((file.parent / f"{name}.yaml").resolve())
    return found


def unquoted_values(schema_path: Path | str) -> list[str]:
    """List the permissible values that YAML 1.1 reads as something other than text.

    Unquoted ``Yes``, ``NO`` or ``on`` become booleans, ``012`` becomes 10, ``1:30`` becomes 90, and
    a date becomes a date: data that holds the words as typed would then be refused
    (linkml/linkml#2474). Each entry names file and line. Local imports are followed.
    """
    import yaml

    troubles: list[str] = []

    def check(node: Any, file: Path) -> None:
        if node.tag == "tag:yaml.org,2002:str":
            return
        typed = node.value if isinstance(node, yaml.ScalarNode) else "(a list or mapping)"
        read_as = node.tag.rsplit(":", 1)[-1]
        place = f"{file.name}:{node.start_mark.line + 1}"
        troubles.append(f'{place}: the permissible value {typed} is read as {read_as}; quote it: "{typed}"')

    def walk(node: Any, file: Path) -> None:
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                walk(item, file)
        if not isinstance(node, yaml.MappingNode):
            return
        for key, value in node.value:
            if key.value == "permissible_values":
                entries = value.value if isinstance(value, yaml.CollectionNode) else []
                for entry in entries:
                    # A mapping holds (text, value) pairs; a list holds texts or {text: ...}.
                    body = entry[1] if isinstance(entry, tuple) else entry
                    if isinstance(entry, tuple):
                        check(entry[0], file)
                    elif isinstance(body, yaml.ScalarNode):
                        check(body, file)
                    if isinstance(body, yaml.MappingNode):
                        for inner_key, inner in body.value:
                            if inner_key.value == "text":
                                check(inner, file)
            walk(value, file)

    for file in check_imports(schema_path):
        walk(yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader), file)
    return troubles


def ordered_slots(view: Any, class_name: str) -> list[Any]:
    """Return the induced slots of a class in the order of its columns.

    Slots come before attributes and ancestors before descendants, so that shared columns lead;
    then ``rank`` decides (50 where there is none), and equal ranks keep that order.
    """
    induced = {str(slot.name): slot for slot in view.class_induced_slots(class_name)}
    lineage = [view.get_class(name) for name in reversed(view.class_ancestors(class_name))]
    order = [str(name) for cls in lineage for name in cls.slots]
    order += [str(name) for cls in lineage for name in cls.attributes]
    order += list(induced)
    names = [name for name in dict.fromkeys(order) if name in induced]
    return sorted((induced[name] for name in names), key=lambda slot: _DEFAULT_RANK if slot.rank is None else slot.rank)


def slot_kind(view: Any, class_name: str, slot: Any) -> tuple[str, str | None]:
    """Return the kind of a slot and, for ``enum``, ``ref`` and ``object``, the name of its range.

    Besides the kinds of a model there are ``datetime`` and ``time``. Raises
    :class:`~regatta_tools.errors.InputError` for a range that the schema does not define.
    """
    name = str(slot.range or "string")
    if name in view.all_enums():
        return "enum", name
    if name in view.all_classes():
        # A class with a mere key is always written in place: a key is unique within its owner only.
        refers = view.get_identifier_slot(name) and not view.is_inlined(slot)
        return ("ref" if refers else "object"), name
    if name in view.all_types():
        return type_kind(view, name), None
    raise InputError(f"{class_name}.{slot.name} has the range {name}, which the schema does not define.")


def type_kind(view: Any, name: str) -> str:
    """Return the kind of a LinkML type, by the nearest ancestor that is known."""
    for ancestor in view.type_ancestors(name):
        if str(ancestor) in _KIND_BY_NAME:
            return _KIND_BY_NAME[str(ancestor)]
        uri = view.get_type(ancestor).uri
        iri = view.expand_curie(uri) if uri else ""
        if iri.startswith(_XSD) and iri[len(_XSD) :] in _KIND_BY_XSD:
            return _KIND_BY_XSD[iri[len(_XSD) :]]
    return "string"


def patterns(view: Any, slot: Any) -> list[str]:
    """Return the patterns that hold for a slot: its own, then those of its type and the types above."""
    found = [slot.pattern]
    if str(slot.range) in view.all_types():
        found += [view.induced_type(name).pattern for name in view.type_ancestors(slot.range)]
    return list(dict.fromkeys(str(pattern) for pattern in found if pattern))


def bounds(view: Any, slot: Any) -> dict[str, int | float]:
    """Return ``minimum`` and ``maximum`` of a slot, the tighter of its own and its types'."""
    holders = [slot]
    if str(slot.range) in view.all_types():
        holders += [view.get_type(name) for name in view.type_ancestors(slot.range)]
    result: dict[str, int | float] = {}
    for key, pick in (("minimum", max), ("maximum", min)):
        values = [_number(getattr(holder, f"{key}_value")) for holder in holders]
        values = [value for value in values if value is not None]
        if values:
            result[key] = pick(values)
    return result


def _number(value: Any) -> int | float | None:
    if value is None:
        return None
    number = float(value)
    return int(number) if number.is_integer() else number


def unique_keys(view: Any, class_name: str) -> dict[str, list[str]]:
    """Return the unique keys of a class and its ancestors, as field names."""
    found: dict[str, list[str]] = {}
    for name in reversed(view.class_ancestors(class_name)):
        for key, value in view.get_class(name).unique_keys.items():
            found[str(key)] = [str(slot) for slot in value.unique_key_slots]
    return found


def annotation(element: Any, tag: str) -> str | None:
    """Return the value of an annotation of a schema element as text, or ``None``."""
    notes = element.annotations
    return str(notes[tag].value) if tag in notes else None


def slot_iri(view: Any, slot: Any) -> str:
    """Return the full IRI of a slot: its ``slot_uri``, or one made of the default prefix and its name."""
    return view.expand_curie(slot.slot_uri) if slot.slot_uri else view.get_uri(slot, expand=True)


def own_prefixes(view: Any) -> dict[str, str]:
    """Return the prefixes that the schema and its own imports declare, linkml's left out."""
    found: dict[str, str] = {}
    for schema in view.schema_map.values():
        if re.match(r"https://w3id\.org/linkml/", str(schema.id)):
            continue
        for prefix in schema.prefixes.values():
            found.setdefault(str(prefix.prefix_prefix), str(prefix.prefix_reference))
    return dict(sorted(found.items()))
