"""Near-duplicates among scenarios: the overlap of runs of words (Jaccard; resemblance of Broder 1997)."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

#: Words in a run. Vietnamese is written in syllables, of which a word has one or two.
RUN = {"en": 3, "vi": 5}
#: From this share of common runs on, two scenarios are one. In a text of 60 English words, four words changed far
#: apart leave .66 and eight leave .41.
THRESHOLD = 0.6
_WORD = re.compile(r"\w+")

Runs = frozenset[tuple[str, ...]]


def runs(scenario: dict[str, Any], language: str) -> Runs:
    """The runs of words of a scenario: turns, context and expected behaviour, in small letters, claims left out.

    Numbers count as words, so that the same case one day before and one day after a limit may be two scenarios.
    """
    texts = [turn["text"] for turn in scenario["turns"]]
    texts += [scenario.get("context") or "", scenario.get("expected") or ""]
    words = _WORD.findall(unicodedata.normalize("NFC", "\n".join(texts)).casefold())
    size = RUN[language]
    if len(words) <= size:
        return frozenset([tuple(words)])
    return frozenset(tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def resemblance(one: Runs, other: Runs) -> float:
    """Share of runs that both have of those that either has, 0 to 1."""
    return len(one & other) / len(one | other)


def twin_of(new: Runs, others: list[Runs]) -> int | None:
    """The first of ``others`` that is a near-duplicate, by its place; ``None`` where there is none."""
    return next((at for at, held in enumerate(others) if resemblance(new, held) >= THRESHOLD), None)
