"""Faults of a cell are planted together (protocol, section 3): do two of them contradict each other? (P011)

What data can show: two faults break one requirement, give one fact or one parameter another wrong side, or one
computes with what the other turns. That two instructions contradict each other in words no rule sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, table_specs
from regatta_tools.text import shown
from regatta_tools.validation.expressions import ExpressionError, names_in

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def check(package: Package) -> list[Finding]:
    """One finding for each row by which a fault comes into conflict with an earlier fault of its cell.

    A row is held against the first other fault that has the same thing, not against all of them, so the
    work grows with the rows. That the cell of a row is that of its fault is checked elsewhere (K004).
    """
    return [*_requirements(package), *_values(package)]


def _requirements(package: Package) -> Iterator[Finding]:
    spec = table_specs()["fault_requirements"]
    cell, fault, requirement = (spec.position[c] for c in ("cell", "fault", "requirement"))
    breaks: dict[tuple[str, str], str] = {}
    for index, row in enumerate(package.rows(spec.name)):
        first = breaks.setdefault((row[cell], row[requirement]), row[fault])
        if row[requirement] and first != row[fault]:
            what = f"{first} breaks {row[requirement]} too"
            yield package.table(spec.name)[index].finding("P011", "requirement", what)


def _values(package: Package) -> Iterator[Finding]:
    spec = table_specs()["fault_values"]
    columns = ("cell", "fault", "fact", "parameter", "true_expr", "faulty_expr")
    rows = [_Value(*row) for row in map(itemgetter(*(spec.position[c] for c in columns)), package.rows(spec.name))]
    facts: dict[tuple[str, str], _Value] = {}
    parameters: dict[tuple[str, str], _Value] = {}
    for index, value in enumerate(rows):
        first = facts.setdefault((value.cell, value.fact), value) if value.fact else value
        same = parameters.setdefault((value.cell, value.parameter), value)
        if value.differs(first, "faulty_expr"):
            what = f"{first.fault} takes {shown(first.faulty_expr)} for the same fact {value.fact}"
            yield package.table(spec.name)[index].finding("P011", "faulty_expr", what)
        elif value.differs(same, "true_expr") or value.differs(same, "faulty_expr"):
            what = f"{same.fault} has a parameter {value.parameter!r} with other formulas"
            yield package.table(spec.name)[index].finding("P011", "parameter", what)
    for index, value in enumerate(rows):
        for column in ("true_expr", "faulty_expr"):
            expression = getattr(value, column)
            turned = {name: parameters.get((value.cell, name)) for name in _NAME.findall(expression)}
            turned = {name: other for name, other in turned.items() if other and other.fault != value.fault}
            # Most expressions use no such word, and need not be read for it; in quotes it is no name.
            for name in sorted(turned.keys() & _names(expression)) if turned else ():
                what = f"computes with {name!r}, which {turned[name].fault} turns"
                yield package.table(spec.name)[index].finding("P011", column, what)


class _Value(NamedTuple):
    """What is needed of a row of fault_values."""

    cell: str
    fault: str
    fact: str
    parameter: str
    true_expr: str
    faulty_expr: str

    def differs(self, other: _Value, column: str) -> bool:
        """Whether another fault has another formula, white space aside. An empty one has its own finding."""
        one, two = getattr(self, column), getattr(other, column)
        return self.fault != other.fault and bool(one and two) and "".join(one.split()) != "".join(two.split())


def _names(expression: str) -> set[str]:
    try:
        return names_in(expression)
    except ExpressionError:
        return set()  # P005 says so
