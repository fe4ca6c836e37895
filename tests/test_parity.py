"""Four engines against ours, over the examples of the rules and the shipped package (see parity.py)."""

from __future__ import annotations

import parity
import pytest
from parity import ENGINES, JUDGES, LIST, PAGE, Case, Difference, listed

ROOT = parity.ROOT


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The base, the examples and the shipped package, and whether each engine refuses each of them."""
    cases = [*parity.cases(parity.judged(), tmp_path_factory.mktemp("parity")), Case(ROOT)]
    refused = parity.verdicts(cases)
    assert all(len(verdicts) == len(cases) for verdicts in refused.values())
    return cases, refused


@pytest.fixture(scope="module")
def found(judged):
    """What the engines judge otherwise than we do: engine, rule and whether the example is right."""
    cases, refused = judged
    return {
        (engine, case.example.code, case.example.right)
        for engine, verdicts in refused.items()
        for case, verdict in zip(cases, verdicts)
        if case.example is not None and verdict is case.example.right
    }


def told(keys):
    return "\n".join(f"{e}: {code} {'valid' if right else 'invalid'}" for e, code, right in sorted(keys))


def test_every_difference_is_listed_with_its_reason(found):
    assert not (unlisted := found - {(d.engine, d.code, d.right) for d in listed()}), (
        f"not in {LIST.name}:\n{told(unlisted)}"
    )


def test_every_listed_difference_is_one(found):
    assert not (gone := {(d.engine, d.code, d.right) for d in listed()} - found), (
        f"in {LIST.name}, and no difference any more:\n{told(gone)}"
    )


def test_each_engine_sees_something_and_no_engine_sees_all(found):
    """If an engine saw nothing it would not have been running."""
    wrong = {e.code for e in parity.judged() if not e.right}
    for engine in ENGINES:
        missed = {code for e, code, right in found if e == engine and not right}
        assert {"S001", "S002", "S003", "S004"} <= wrong - missed and missed, engine


@pytest.mark.parametrize("engine", list(ENGINES))
def test_every_engine_accepts_the_shipped_package_and_the_base(judged, engine):
    cases, refused = judged
    assert [v for case, v in zip(cases, refused[engine]) if case.example is None] == [False, False]


def test_what_is_kept_from_one_case_to_the_next_decides_nothing(tmp_path):
    chosen = [e for e in parity.judged() if e.code in ("K002", "K003", "K004", "T001") and not e.right]
    base, *cases = parity.cases(chosen, tmp_path)
    for engine in ("frictionless", "shacl"):
        forward = JUDGES[engine]([base, *cases])
        assert set(forward) == {True, False} and forward[1:] == JUDGES[engine]([base, *cases[::-1]])[:0:-1]
    assert forward[1:] == [JUDGES["shacl"]([base, case])[1] for case in cases]


def test_the_page_is_made_of_the_list():
    assert PAGE.read_bytes().decode("utf-8") == parity.page(), "run .venv/bin/python tests/parity.py"


def test_the_page_names_a_right_file_that_is_refused(monkeypatch):
    monkeypatch.setattr(parity, "listed", lambda: [Difference("shacl", "T001", True, "Because.")])
    text = parity.page()
    assert "- SHACL, T001: Because." in text and "All of them accept" not in text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{engines: [shacl], example: invalid, rules: [T999], reason: x}", "T999"),
        ("{engines: [shackle], example: invalid, rules: [T001], reason: x}", "shackle"),
        ("{engines: [shacl], example: wrong, rules: [T001], reason: x}", "valid or invalid"),
        ("{engines: [shacl], example: invalid, rules: [T001, T001], reason: x}", "twice"),
    ],
)
def test_a_list_that_is_not_of_its_form_is_refused(tmp_path, monkeypatch, entry, message):
    path = tmp_path / "parity.yaml"
    path.write_text(f"differences:\n  - {entry}\n", encoding="utf-8")
    monkeypatch.setattr(parity, "LIST", path)
    with pytest.raises(ValueError, match=message):
        parity.listed()
