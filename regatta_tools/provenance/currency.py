"""What starts or ends soon: the days on which a checklist that is true today is true no longer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from regatta_tools.provenance.checks import Index
from regatta_tools.tables.package import Record

#: A day further away is no news of anything.
MOST_DAYS = 36_525


@dataclass(frozen=True)
class Change:
    """One day on which a record starts or ends to hold.

    ``day`` is the first day (``event`` is ``starts``) or the last one (``ends``). ``requirements`` are the active
    requirements that rest on the record.
    """

    day: date
    event: str
    record: Record = field(repr=False)
    column: str
    requirements: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "date": self.day.isoformat(),
            "event": self.event,
            "table": self.record.spec.name,
            "record": self.record.key,
            "column": self.column,
            "requirements": list(self.requirements),
        }


def upcoming(index: Index, requirements: list[Record], within: int, as_of: date | None = None) -> list[Change]:
    """What of some requirements starts after their date, or ends on it or after, not later than ``within`` days on.

    The date is ``as_of``, by default that of the requirement's cell. Told are citations (``force_from``, ``force_to``),
    their sources and what supersedes these or keeps them in force (``effective``, ``ends``), facts and requirements
    (``valid_from``, ``valid_to``), by day.
    """
    found: dict[tuple[date, str, str, str], Record] = {}
    resting: dict[tuple[date, str, str, str], list[str]] = defaultdict(list)
    for requirement in requirements:
        day = as_of or date.fromisoformat(index.cells[requirement["cell"]]["as_of"])
        for record, starts, ends in _records(index, requirement):
            for event, column in (("starts", starts), ("ends", ends)):
                if not record[column]:
                    continue
                when = date.fromisoformat(record[column])
                if day + timedelta(days=event == "starts") <= when <= day + timedelta(days=within):
                    key = when, event, record.key, column
                    found[key] = record
                    if requirement.key not in resting[key]:
                        resting[key].append(requirement.key)
    return [
        Change(key[0], key[1], found[key], key[3], tuple(resting[key]))
        for key in sorted(found, key=lambda k: (k[0], found[k].spec.name, k[2], k[3]))
    ]


def _records(index: Index, requirement: Record) -> Iterator[tuple[Record, str, str]]:
    """The records that a requirement rests on, each with the columns of its first and its last day."""
    yield requirement, "valid_from", "valid_to"
    for fact in index.facts.get(requirement.key, []):
        yield fact, "valid_from", "valid_to"
    for citation in index.citations.get(requirement.key, []):
        yield citation, "force_from", "force_to"
        source = index.sources[citation["source"]]
        yield source, "effective", "ends"
        for other in (source["superseded_by"], citation["kept_in_force_by"]):
            if other in index.sources:
                yield index.sources[other], "effective", "ends"
