"""A similarity baseline for J_RC and J_D: BM25 between scenario and target, with a calibrated threshold.

It sees topic, not duty: a scenario that only mentions a subject scores like one that tests it. It is
here because it needs no key and, on labelled scenarios, ranks better than the embedded language model
(docs/embedded-judges.md holds the measurement). Every output names it as what it is.

The score of a scenario for a target is the BM25 weight of the target's words that occur in the
scenario, divided by the weight of all of the target's words: 0 to 1, and independent of the other
scenarios of the suite, as a judge has to be. Word weights (inverse document frequency) come from all
targets of the cell.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from regatta_tools.suites.reader import Scenario
from regatta_tools.tables.package import Cell, Record
from regatta_tools.text import sha256_json

NAME = "similarity/bm25"


def requirement_text(requirement: Record) -> str:
    columns = ("topic", "duty_en", "duty_vi", "actor", "observable_test")
    return " ".join(requirement[c] for c in columns if requirement[c])


def fault_text(fault: Record) -> str:
    columns = ("name", "injection_en", "injection_vi", "applies_when", "shows_when")
    return " ".join(fault[c] for c in columns if fault[c])


def scenario_text(scenario: Scenario) -> str:
    """What the baseline reads of a scenario: context, turns and expected behaviour, never its claims."""
    return " ".join(filter(None, [scenario.context, *(t.text for t in scenario.turns), scenario.expected]))


@lru_cache(maxsize=1)
def thresholds() -> dict[str, Any]:
    """The calibrated thresholds with how they were found, as ``bench/embedded_judges.py`` wrote them."""
    return json.loads(resources.files("regatta_tools.harness").joinpath("similarity.json").read_text(encoding="utf-8"))


class Baseline:
    """The baseline for one cell. ``score`` is for any scenario and target id of the cell."""

    def __init__(self, cell: Cell) -> None:
        import bm25s

        self._bm25s = bm25s
        targets = [(r.key, requirement_text(r)) for r in cell.requirements]
        targets += [(f.key, fault_text(f)) for f in cell.faults]
        self.index = {key: i for i, (key, _) in enumerate(targets)}
        # English stop words only where the cell is in English: Vietnamese syllables would be hit by chance.
        self.stopwords = "en" if cell.record["languages"] == "en" else []
        documents = [self._words(text) for _, text in targets]
        self.model = bm25s.BM25(method="lucene")
        self.model.index(documents, show_progress=False)
        self.own = [float(self.model.get_scores(self._known(d))[i]) if d else 0.0 for i, d in enumerate(documents)]
        self._cache: dict[str, list[float]] = {}

    def _words(self, text: str) -> list[str]:
        """Distinct words of a text, in alphabetical order so that sums come out the same everywhere."""
        tokens = self._bm25s.tokenize([text], stopwords=self.stopwords, return_ids=False, show_progress=False)[0]
        return sorted(set(tokens))

    def _known(self, words: list[str]) -> list[str]:
        return [w for w in words if w in self.model.vocab_dict]

    def score(self, scenario: Scenario, target: str) -> float:
        """Similarity of ``scenario`` and ``target``, 0 to 1, rounded to six places."""
        text = scenario_text(scenario)
        if text not in self._cache:
            words = self._known(self._words(text))
            raw = self.model.get_scores(words) if words else [0.0] * len(self.index)
            self._cache[text] = [
                round(min(1.0, float(s) / o), 6) if o > 0 else 0.0 for s, o in zip(raw, self.own, strict=True)
            ]
        return self._cache[text][self.index[target]]

    def verdict(self, stage: str, scenario: Scenario, target: str) -> tuple[bool, float]:
        """Whether the score reaches the calibrated threshold of a stage (``rc`` or ``design``), and the score."""
        score = self.score(scenario, target)
        return score >= thresholds()["thresholds"][stage], score


def fingerprint() -> str:
    """SHA-256 of what decides the baseline's verdicts besides the texts."""
    from importlib.metadata import version

    return sha256_json({"name": NAME, "bm25s": version("bm25s"), "thresholds": thresholds()["thresholds"]})
