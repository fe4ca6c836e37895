"""Build hook: puts schema, instruments, validators and examples into the wheel, below ``regatta_tools/_data``.

A plain ``force-include`` would also copy them into editable installs, where they would hide later edits.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What a checkout has beside the package and a wheel needs inside it (see regatta_tools/paths.py).
CARRIED = ("schema", "instruments", "validators", "examples", "datapackage.json")


class CarryData(BuildHookInterface):
    """Adds :data:`CARRIED` to standard wheels, and to nothing else."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"].update({name: f"regatta_tools/_data/{name}" for name in CARRIED})
