"""The gold probes and labels of the package: shape, balance, and numbers that follow from the computed probes."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from regatta_tools.generation.leak import GRAM

INSTRUMENTS = Path(__file__).parents[1] / "instruments"
CELLS = sorted(path.parent.name for path in INSTRUMENTS.glob("*/gold_probes.csv"))


def rows(cell: str, table: str) -> list[dict[str, str]]:
    with (INSTRUMENTS / cell / f"{table}.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def stage(cell: str, name: str) -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in rows(cell, "gold_probes") if row["stage"] == name}


def labels(cell: str, name: str) -> list[dict[str, str]]:
    probes = stage(cell, name)
    return [row for row in rows(cell, "gold_labels") if row["probe"] in probes]


def own(cell: str, name: str) -> dict[str, list[dict[str, str]]]:
    """Labels by fault, of the six probes that were written for it: each has three yes, and near misses are marked.

    Probes are numbered in blocks of six a fault, in the order of writing.
    """
    positive = {row["probe"]: row["target"] for row in labels(cell, name) if row["label"] == "yes"}
    number = {probe: int(re.search(r"-[ed](\d+)", probe)[1]) for probe in stage(cell, name)}
    block_fault = {(number[probe] - 1) // 6: fault for probe, fault in positive.items()}
    found: dict[str, list[dict[str, str]]] = {}
    for row in labels(cell, name):
        if block_fault[(number[row["probe"]] - 1) // 6] == row["target"]:
            found.setdefault(row["target"], []).append(row)
    return found


def test_cells_have_gold():
    assert {"banking-vn", "fintech-us"} <= set(CELLS)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", ["design", "execution"])
def test_six_per_fault_three_and_three_with_near_misses(cell, name):
    faults = {row["id"] for row in rows(cell, "faults")}
    found = own(cell, name)
    assert set(found) == faults
    times = 2 if name == "execution" and cell.endswith("-vn") else 1
    for fault, given in found.items():
        counts = Counter((row["label"], row["near_miss"]) for row in given)
        expected = {("yes", ""): 2, ("yes", "true"): 1, ("no", ""): 2, ("no", "true"): 1}
        assert counts == {key: n * times for key, n in expected.items()}, fault
    every = Counter(row["probe"] for row in labels(cell, name))
    assert set(every.values()) == {len(faults)}, "each probe is labelled against all faults"
    assert set(every) == set(stage(cell, name))


@pytest.mark.parametrize("cell", CELLS)
def test_every_requirement_has_a_positive_and_a_near_miss(cell):
    active = {row["id"] for row in rows(cell, "requirements") if row["status"] == "active"}
    given = labels(cell, "rc")
    assert {row["target"] for row in given} <= active
    assert {row["target"] for row in given if row["label"] == "yes"} == active
    assert {row["target"] for row in given if row["label"] == "no" and row["near_miss"] == "true"} == active


@pytest.mark.parametrize("cell", [c for c in CELLS if c.endswith("-vn")])
def test_both_languages(cell):
    for name in ("rc", "design"):
        counts = Counter(row["language"] for row in stage(cell, name).values())
        assert counts["en"] * 3 >= sum(counts.values())
        assert counts["vi"] > counts["en"]
    verdicts = {(row["probe"], row["target"]): row["label"] for row in labels(cell, "execution")}
    for (probe, target), label in verdicts.items():
        other = probe[:-2] + {"vi": "en", "en": "vi"}[probe[-2:]]
        assert stage(cell, "execution")[probe]["language"] == probe[-2:]
        assert verdicts[other, target] == label


@pytest.mark.parametrize("cell", CELLS)
def test_no_run_of_words_is_shared_with_the_context(cell):
    """Twice the n-gram of the leak measure: shorter runs are common phrases."""

    def grams(text: str, n: int) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    for language, size in GRAM.items():
        n = size * 2
        context = set()
        for path in (INSTRUMENTS / cell / "context").glob("*.csv"):
            with path.open(encoding="utf-8", newline="") as handle:
                for row in csv.DictReader(handle):
                    for text in row.values():
                        context |= grams(text or "", n)
        assert context
        for row in rows(cell, "gold_probes"):
            if row["language"] == language:
                shared = (grams(row["stimulus"], n) | grams(row["answer"], n)) & context
                assert not shared, (row["id"], shared)


_NUMBER = re.compile(r"\d{4}-\d\d-\d\d|\d+(?:[.,]\d+)*")


def numbers(text: str) -> set[str]:
    """Numbers and dates as in ``fault_probes``: thousands without marks, a decimal point, no zeros at the end."""
    found = set()
    for token in _NUMBER.findall(text):
        if re.fullmatch(r"\d{4}-\d\d-\d\d", token):
            found.add(token)
        elif re.fullmatch(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*", token) and not token.startswith("0"):
            found.add(re.sub(r"[.,]", "", token))
            found.add(str(float(token.replace(",", "."))) if re.fullmatch(r"\d+[.,]\d+", token) else token)
        else:
            found.add(_plain(token.replace(",", ".")))
    return found | {_plain(token) for token in found}


def _plain(token: str) -> str:
    return token.rstrip("0").rstrip(".") if token.count(".") == 1 else token


@pytest.mark.parametrize("cell", CELLS)
def test_answers_hold_the_computed_results(cell):
    """Where a probe states all inputs of a computed fault probe, a yes holds its faulty and a no its true result."""
    probes, checked = stage(cell, "execution"), 0
    given = rows(cell, "fault_probes")
    for fault, labelled in own(cell, "execution").items():
        for label in labelled:
            probe = probes[label["probe"]]
            known, answer = numbers(probe["stimulus"]), numbers(probe["answer"])
            fits: dict[int, set[str]] = {}
            for row in given:
                result = row["faulty_result" if label["label"] == "yes" else "true_result"]
                values = {_plain(part.split("=")[1]) for part in row["inputs"].split("; ")}
                if row["fault"] == fault and _NUMBER.fullmatch(result) and values <= known:
                    fits.setdefault(len(values), set()).add(_plain(result))
            if fits and "0" not in fits[max(fits)]:
                assert fits[max(fits)] & answer, (probe["id"], fits, answer)
                checked += 1
    assert checked >= 4


def test_nothing_is_labelled_by_a_person():
    """The page says that an AI wrote and labelled all: if that changes, the page has to."""
    for cell in CELLS:
        assert {row["labeller_kind"] for row in rows(cell, "gold_labels")} == {"ai"}
