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
