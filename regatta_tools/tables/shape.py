"""The form of a record or file: the generated JSON Schema, and a fast validator for each class of it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from regatta_tools import paths
from regatta_tools.errors import EnvironmentProblem


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The generated JSON Schema. Raises :class:`EnvironmentProblem` where the file is missing or damaged."""
    path = paths.generated_dir() / "regatta.schema.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"the schema cannot be read: {error}", place=path.name, mend="make schema") from error


def class_schema(name: str) -> dict[str, Any]:
    """A stand-alone JSON Schema for one class of the schema."""
    whole = document()
    return {"$schema": whole["$schema"], "$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}


@lru_cache(maxsize=64)
def validator(name: str) -> Any:
    """The fast validator of a class."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(class_schema(name), validate_formats=True)


def columns_decide(name: str, columns: list[str]) -> bool:
    """Whether a record of a class is right where its required columns are filled and the value of each column is right.

    So it is where the class says nothing else, such as that two columns exclude each other.
    """
    schema = document()["$defs"][name]
    known = {"additionalProperties", "description", "properties", "required", "title", "type"}
    return schema.keys() <= known and schema["type"] == "object" and set(columns) <= set(schema["properties"])


def column_validator(name: str, column: str) -> Any:
    """The fast validator of a list of values of one column, or ``None`` where every text is right."""
    items = {k: v for k, v in document()["$defs"][name]["properties"][column].items() if k != "description"}
    if items.keys() <= {"type"} and "string" in items["type"]:
        return None
    return _list_validator(json.dumps(items, sort_keys=True))


@lru_cache(maxsize=128)
def _list_validator(items: str) -> Any:
    """The fast validator of a list of values of one form, which many columns share."""
    import jsonschema_rs

    whole = document()
    schema = {"$schema": whole["$schema"], "type": "array", "items": json.loads(items)}
    if "$ref" in items:
        schema["$defs"] = whole["$defs"]
    return jsonschema_rs.validator_for(schema, validate_formats=True)
