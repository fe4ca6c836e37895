"""Where the schema, the instruments and the rules are: in a checkout, or inside the installed wheel.

A wheel carries them under ``regatta_tools/_data`` with the same layout as the checkout
(``force-include`` in ``pyproject.toml``), so everything below holds for both.
"""

from __future__ import annotations

from pathlib import Path

from regatta_tools.errors import EnvironmentProblem

_PACKAGE = Path(__file__).resolve().parent
_MARK = Path("schema") / "regatta.yaml"


def root() -> Path:
    """Return the folder that holds ``schema/``, ``instruments/``, ``validators/`` and ``datapackage.json``.

    The checkout wins over the packaged copy: a package folder whose parent holds
    ``schema/regatta.yaml`` is one. Raises :class:`~regatta_tools.errors.EnvironmentProblem` where
    neither is there, as in an installation that lost its data files.
    """
    for folder in (_PACKAGE.parent, _PACKAGE / "_data"):
        if (folder / _MARK).is_file():
            return folder
    raise EnvironmentProblem(
        "The schema that belongs to regatta-tools is missing: neither a checkout nor packaged data hold "
        f"{_MARK.as_posix()}.",
        mend="Install regatta-tools again, or work from a complete checkout.",
    )


def schema_dir() -> Path:
    """Return the folder of the LinkML schema."""
    return root() / "schema"


def generated_dir() -> Path:
    """Return the folder of what ``make schema`` writes (JSON Schema, SHACL, OWL, context, model)."""
    return schema_dir() / "generated"


def instruments_dir() -> Path:
    """Return the folder of the CSV tables; it may not exist in a schema-only checkout."""
    return root() / "instruments"


def validators_dir() -> Path:
    """Return the folder of the declarative rules."""
    return root() / "validators"


def datapackage() -> Path:
    """Return the path of the Data Package descriptor."""
    return root() / "datapackage.json"
