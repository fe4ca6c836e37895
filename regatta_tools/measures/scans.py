"""The value of a target from the verdicts of a scan, and the mean over targets (protocol, sections 3 and 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def scan(
    outcomes: Sequence[str | None], plan: str = "first", order: str = "suite"
) -> tuple[int | None, int, Counter[str]]:
    """Replay a scan over the outcomes of one target in suite order.

    ``outcomes[i]`` is the outcome for scenario ``i``, ``None`` where there is no verdict yet. Returns
    the value of the target, the index of the first positive verdict (-1 where there is none) and the
    counts by outcome, with ``skipped`` and ``pending``. After its success a first-success scan skips what comes later
    in the suite, or, in another order, whatever has no verdict; an exhaustive scan skips nothing.
    """
    counts: Counter[str] = Counter()
    hit = next((i for i, o in enumerate(outcomes) if o == "positive"), -1)
    met = hit >= 0 and plan == "first"
    for index, outcome in enumerate(outcomes):
        if met and (index > hit if order == "suite" else outcome is None):
            counts["skipped"] += 1
        else:
            counts[outcome or "pending"] += 1
    if hit >= 0:
        return 1, hit, counts
    return (0 if outcomes and counts["negative"] == len(outcomes) else None), -1, counts


def rate(values: Iterable[int | None]) -> tuple[float | None, float, float]:
    """Mean over known values with the bounds over all: (complete case, low, high). Shape: any number of 0, 1, None."""
    listed = list(values)
    known = [v for v in listed if v is not None]
    n, ones, unknown = len(listed), sum(known), len(listed) - len(known)
    if not n:
        return None, 0.0, 1.0
    return (ones / len(known) if known else None), ones / n, (ones + unknown) / n
