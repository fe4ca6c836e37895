"""The worked example that a new cell begins with: how it is known, and that nothing is scored with it."""

from __future__ import annotations

from regatta_tools.errors import InputError
from regatta_tools.tables.package import Package, Record

#: Ends the ids of the worked example: ``telecom-us-example``, ``telecom-us-fault-example``.
EXAMPLE = "example"


def example_in(package: Package, cell: str) -> Record | None:
    """The requirement or the fault of the worked example, where the cell still holds one of them."""
    for table, key in (("requirements", f"{cell}-{EXAMPLE}"), ("faults", f"{cell}-fault-{EXAMPLE}")):
        record = package.by_id.get(key)
        if record is not None and record.spec.name == table:
            return record
    return None


def refuse_example(package: Package, cell: str) -> None:
    """Raise :class:`InputError` (U103) where a cell still holds the worked example.

    It is an item of another cell: a result with it would say nothing of this one.
    """
    record = example_in(package, cell)
    if record is not None:
        raise InputError(
            f"the cell {cell!r} still holds the worked example {record.key!r}, and nothing is scored with it",
            code="U103",
            place=f"{record.file}:{record.line}",
            mend="put items of the cell in its place (`regatta explain P014`)",
        )
