"""The evidence vector against a second computation of it, and the evidence as text."""

from __future__ import annotations

import itertools
import json
import re
from fractions import Fraction
from unittest import mock

import jsonschema
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scripted_runs import CELL, ROOT, faults, package, play, regatta, requirements, write_script, write_suite

import regatta_tools
from regatta_tools.errors import InputError
from regatta_tools.harness import run as harness
from regatta_tools.harness.store import RunStore, line_of
from regatta_tools.measures.evidence import rate, scan
from regatta_tools.report.evidence import as_text
from regatta_tools.tables.model import enum_values
from regatta_tools.tables.shape import class_schema

CATEGORIES = enum_values("AdversarialCategory")
MISSING = ("unparsed", "truncated", "refused", "filtered", "empty", "failed", "no-answer")
SCANNED = ("rc", "design", "execution")


def targets(stage):
    return requirements() if stage == "rc" else faults()


def manifest(names, held=None):
    """That of a run of the given scenarios, made without a call."""
    held = held or package()
    cell = held.cell(CELL)
    models = [{"stage": s, "name": "m", "kind": "llm"} for s in (*harness.STAGES, "agent")]
    return {
        "schema_version": "2",
        "id": "made",
        "cell": CELL,
        "suite": "made",
        "scenarios": list(names),
        "requirements": [r.key for r in cell.requirements],
        "faults": [f.key for f in cell.faults],
        "arms": ["joint"],
        "draws": 1,
        "scan": "first",
        "order": "suite",
        "answers": "per-fault",
        "seed": 1,
        "models": models,
        "made_with": {"regatta": "0", "package": cell.hash, "suite": "0" * 64, "prompts": "0" * 64, "models": "0" * 64},
    }


def store_of(table, names, folder, held=None):
    """Write a run folder whose journal holds exactly the verdicts of a table (None: no verdict)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(manifest(names, held)), encoding="utf-8")
    rows = []
    for (stage, target, name), outcome in table.items():
        if outcome is None:
            continue
        row = {"e": "verdict", "stage": stage, "scenario": name, "draw": 1, "judge": "m"}
        row |= ({"target": target} if target else {}) | ({"arm": "joint"} if stage == "execution" else {})
        row |= (
            {"outcome": outcome}
            if outcome in ("positive", "negative", *MISSING)
            else {"outcome": "rated", "value": outcome}
        )
        rows.append(line_of(row))
    (folder / "journal.jsonl").write_bytes(b"".join(rows))
    return folder


def draw_table(random_, names, style):
    weights = {
        "mixed": [2, 6, *[1] * len(MISSING), 1],
        "mostly negative": [1, 60, *[1] * len(MISSING), 0],
        "nothing known": [0, 0, *[1] * len(MISSING), 1],
        "all known": [1, 3, *[0] * len(MISSING), 0],
        "unfinished": [1, 3, *[0] * len(MISSING), 6],
    }[style]
    table = {}
    for stage in SCANNED:
        for target in targets(stage):
            for name in names:
                table[stage, target, name] = random_.choices(["positive", "negative", *MISSING, None], weights)[0]
    gone = random_.random()
    for stage, values in (("iss", "12345"), ("ac", [*CATEGORIES, "none"])):
        for name in names:
            value = random_.choice([*MISSING, None]) if random_.random() < gone else random_.choice(values)
            table[stage, "", name] = value
    return table


# -- an independent computation ------------------------------------------------------------------


def by_hand(table, names):
    """Measures, bounds and counts by brute force with pandas: every filling of what is missing is tried."""
    frame = pd.DataFrame(
        [(*key, outcome) for key, outcome in table.items()], columns=["stage", "target", "scenario", "outcome"]
    )
    frame["outcome"] = frame["outcome"].astype(object).where(frame["outcome"].notna(), "pending")
    frame["place"] = frame["scenario"].map({n: i for i, n in enumerate(names)})
    measures, bounds, status, counts = {}, {}, {}, {}
    fills = {}
    for stage, label in (("rc", "RC"), ("design", "FDR_d"), ("execution", "FDR_e")):
        rows = frame[frame.stage == stage].sort_values("place").copy()
        positive = rows.outcome.eq("positive")
        rows["earlier"] = positive.groupby(rows.target).cumsum() - positive.astype(int)
        rows["effective"] = rows.outcome.where(rows.earlier == 0, "skipped")
        counts[stage] = rows.effective.value_counts().to_dict()
        groups = rows.groupby("target")
        one = groups.outcome.apply(lambda s: (s == "positive").any())
        zero = groups.outcome.apply(lambda s: (s == "negative").all())
        first = rows[positive].groupby("target").scenario.first()
        status[stage] = {t: (1 if one[t] else 0 if zero[t] else None, first.get(t)) for t in targets(stage)}
        known = one[one | zero]
        measures[label] = Fraction(int(known.sum()), len(known)) if len(known) else None
        unknown = int((~one & ~zero).sum())
        # All fillings of k unknown targets give the sums 0..k.
        fills[label] = [Fraction(int(one.sum()) + k, len(one)) for k in range(unknown + 1)]
        bounds[label] = (min(fills[label]), max(fills[label]))
    d, e = measures["FDR_d"], measures["FDR_e"]
    measures["Delta"] = None if d is None or e is None else d - e
    both = [a - b for a, b in itertools.product(fills["FDR_d"], fills["FDR_e"])]
    bounds["Delta"] = (min(both), max(both))
    for stage, possible in (("iss", [1, 2, 3, 4, 5]), ("ac", [*CATEGORIES, "none"])):
        rows = frame[frame.stage == stage]
        named = rows.outcome.isin([str(p) for p in possible])
        counts[stage] = rows.outcome.where(~named, "rated").value_counts().to_dict()
        given_ = rows.outcome[named].tolist()
        gaps = int((~named).sum())
        if stage == "iss":
            value = lambda s: Fraction(sum(map(int, s)), len(s))  # noqa: E731
        else:
            value = lambda s: Fraction(len(set(s) - {"none"}), 6)  # noqa: E731
        label = stage.upper()
        measures[label] = value(given_) if given_ else None
        every = [value([*given_, *fill]) for fill in itertools.product(possible, repeat=gaps)]
        bounds[label] = (min(every), max(every))
    return measures, bounds, status, counts


def check(evidence, table, names):
    measures, bounds, status, counts = by_hand(table, names)
    for label, value in measures.items():
        got = evidence["measures"][label]
        assert (got is None) == (value is None), label
        assert got is None or abs(got - value) < 1e-9
        low, high = evidence["bounds"][label]["low"], evidence["bounds"][label]["high"]
        assert abs(low - bounds[label][0]) < 1e-9 and abs(high - bounds[label][1]) < 1e-9, label
        assert low <= high and (got is None or low - 1e-9 <= got <= high + 1e-9)
        assert any(reason.startswith(f"{label}:") for reason in evidence["measures"]["undefined"]) == (got is None)
    words = {1: "covered", 0: "not-covered", None: "unknown"}
    for row in evidence["requirements"]:
        value, first = status["rc"][row["id"]]
        assert (row["status"], row["scenario"]) == (words[value], first)
    words = {1: "exposed", 0: "not-exposed", None: "unknown"}
    for row in evidence["faults"]:
        for stage in ("design", "execution"):
            value, first = status[stage][row["id"]]
            assert (row[stage], row[f"scenario_{stage}"]) == (words[value], first)
    for row in evidence["outcomes"]:
        got = {k.replace("_", "-"): v for k, v in row.items() if k != "stage" and v}
        assert got == counts[row["stage"]]
        many = len(targets(row["stage"])) if row["stage"] in SCANNED else 1
        assert sum(got.values()) == many * len(names)
    assert evidence["complete"] == (not any(c.get("pending") for c in counts.values()))


_styles = st.sampled_from(["mixed", "mostly negative", "nothing known", "all known", "unfinished"])


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3), _styles)
def test_score_equals_the_computation_by_hand(tmp_path_factory, random_, n, style):
    names = [f"s{i}" for i in range(n, 0, -1)]
    table = draw_table(random_, names, style)
    folder = store_of(table, names, tmp_path_factory.mktemp("score"))
    evidence = regatta_tools.score(folder)
    check(evidence, table, names)
    # Form: strict JSON, of the schema, and the same bytes again.
    text = json.dumps(evidence, allow_nan=False)
    jsonschema.Draft202012Validator(class_schema("EvidenceVector")).validate(json.loads(text))
    assert json.dumps(regatta_tools.score(folder), allow_nan=False) == text


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3), _styles)
def test_whatever_is_missing_turns_out_to_be_stays_within_the_bounds(tmp_path_factory, random_, n, style):
    names = [f"s{i}" for i in range(1, n + 1)]
    table = draw_table(random_, names, style)
    before = regatta_tools.score(store_of(table, names, tmp_path_factory.mktemp("before")))
    share, filled = random_.choice([0.3, 1.0]), dict(table)
    possible = {stage: ["positive", "negative"] for stage in SCANNED} | {
        "iss": list("12345"),
        "ac": [*CATEGORIES, "none"],
    }
    for key, outcome in table.items():
        if (outcome is None or outcome in MISSING) and random_.random() < share:
            filled[key] = random_.choice(possible[key[0]])
    after = regatta_tools.score(store_of(filled, names, tmp_path_factory.mktemp("after")))
    for label, bound in before["bounds"].items():
        value, inner = after["measures"][label], after["bounds"][label]
        assert bound["low"] - 1e-9 <= inner["low"] <= inner["high"] <= bound["high"] + 1e-9
        assert value is None or bound["low"] - 1e-9 <= value <= bound["high"] + 1e-9
        if share == 1.0:
            # Nothing is missing any more: value and both bounds are one number.
            assert value == inner["low"] == inner["high"]


@given(st.lists(st.sampled_from(["positive", "negative", *MISSING, None]), max_size=8))
@example([])
def test_a_target_is_one_zero_or_unknown(outcomes):
    value, first, counts = scan(outcomes)
    assert sum(counts.values()) == len(outcomes)
    if "positive" in outcomes:
        assert (value, first) == (1, outcomes.index("positive"))
        assert counts["skipped"] == len(outcomes) - first - 1
    else:
        assert first == -1 and counts["skipped"] == 0
        assert value == (0 if outcomes and set(outcomes) == {"negative"} else None)


def test_a_missing_verdict_is_never_a_zero():
    for kind in (*MISSING, None):
        assert scan(["negative", kind, "negative"])[0] is None
        assert scan(["negative", kind, "positive"])[0] == 1


def test_a_rate_over_nothing_is_undefined():
    assert rate([]) == (None, 0.0, 1.0)
    assert rate([None, None]) == (None, 0.0, 1.0)
    assert rate([1, 0, None, 0]) == (1 / 3, 0.25, 0.5)


def test_the_example_of_the_protocol_by_hand(tmp_path):
    """Ten of 25 covered and five unknown: complete case 10/20, bounds 10/25 and 15/25."""
    names = ["s1", "s2"]
    table = {}
    for i, r in enumerate(requirements()):
        table["rc", r, "s1"] = "negative"
        table["rc", r, "s2"] = "positive" if i < 10 else "refused" if i < 15 else "negative"
    for stage, hits in (("design", 3), ("execution", 1)):
        for i, f in enumerate(faults()):
            table[stage, f, "s1"] = "positive" if i < hits else "negative"
            table[stage, f, "s2"] = None if i < hits else "negative"
    table |= {
        ("iss", "", "s1"): "4",
        ("iss", "", "s2"): "refused",
        ("ac", "", "s1"): "none",
        ("ac", "", "s2"): CATEGORIES[0],
    }
    evidence = regatta_tools.score(store_of(table, names, tmp_path / "run"))
    measures = {k: v for k, v in evidence["measures"].items() if k != "undefined"}
    assert measures == {"RC": 0.5, "FDR_d": 0.6, "FDR_e": 0.2, "Delta": 0.4, "ISS": 4.0, "AC": round(1 / 6, 10)}
    assert evidence["bounds"]["RC"] == {"low": 0.4, "high": 0.6}
    assert evidence["bounds"]["ISS"] == {"low": 2.5, "high": 4.5}
    assert evidence["bounds"]["Delta"] == {"low": 0.4, "high": 0.4}
    # A verdict not asked for because the scan had succeeded is skipped, not missing and not pending.
    assert evidence["complete"] and evidence["notes"][-1].startswith("The arm is joint")


# -- cost ----------------------------------------------------------------------------------------


def test_calls_tokens_and_prices_add_up(tmp_path):
    def call(key, stage, **more):
        return {"e": "call", "key": key, "stage": stage, "model": "m", "prompt_hash": "0" * 64, "outcome": "ok"} | more

    folder = store_of({}, ["s1"], tmp_path / "run")
    rows = [
        {"e": "start", "key": "a"},
        {"e": "start", "key": "a"},
        call("a", "rc", prompt_tokens=7, completion_tokens=3, cost_usd=0.25, served_model="m-2"),
        call("b", "agent", prompt_tokens=5, completion_tokens=1, cost_usd=0.5, served_model="m-1"),
        call("c", "rc", outcome="failed", cost_usd=0.0, served_model="m-1"),
    ]
    journal = folder / "journal.jsonl"
    journal.write_bytes(b"".join(map(line_of, rows)))
    cost = {
        "judge_calls": 2,
        "agent_calls": 1,
        "agent_truncated": 0,
        "resent": 1,
        "prompt_tokens": 12,
        "completion_tokens": 4,
        "usd": 0.75,
        "unpriced_calls": 0,
    }
    evidence = regatta_tools.score(folder)
    assert evidence["cost"] == cost
    assert [m.get("served") for m in evidence["models"]] == [["m-1", "m-2"], None, None, None, None, ["m-1"]]
    # One call without a price, and the sum is not known: never zero, never the rest.
    journal.write_bytes(b"".join(map(line_of, [*rows, call("d", "iss", prompt_tokens=1)])))
    cost |= {"judge_calls": 3, "prompt_tokens": 13, "usd": None, "unpriced_calls": 1}
    assert regatta_tools.score(folder)["cost"] == cost


# -- what score says of itself -------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored")
    script = write_script(
        folder,
        {"when": {"stage": "rc", "target": requirements()[0]}, "text": '{"covered": true}'},
        {"when": {"stage": "rc", "target": requirements()[1], "scenario": "s2"}, "outcome": "refused", "error": "no"},
        {"when": {"stage": "execution", "target": faults()[0]}, "text": "maybe"},
    )
    return play(write_suite(folder, 2), script, folder / "run")


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_command_gives_what_the_function_gives(made, tmp_path):
    out = tmp_path / "evidence.json"
    done = regatta("score", str(made.folder), "--format", "json", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == out.read_text(encoding="utf-8")
    assert strict(done.stdout) == regatta_tools.score(made.folder) == regatta_tools.score(made)
    again = regatta("score", str(made.folder), "--format", "json")
    assert again.stdout == done.stdout
    text = regatta("score", str(made.folder))
    assert text.returncode == 0 and requirements()[2] in text.stdout


def test_evidence_carries_no_time(made):
    with mock.patch("time.time", return_value=1e9), mock.patch("time.monotonic", return_value=1e9):
        first = json.dumps(regatta_tools.score(made.folder))
    assert json.dumps(regatta_tools.score(made.folder)) == first
    assert not re.search(r"\d{4}-\d\d-\d\dT|\d\d:\d\d:\d\d", first)
    keys = set(re.findall(r'"([a-z_]+)":', first))
    assert not {k for k in keys if re.search(r"time|date|host|user|path|seconds", k)}
    assert str(ROOT) not in first and str(made.folder) not in first


def test_every_citation_is_named_with_its_title(made):
    titles = {s.key: s["title"] for s in package().table("sources")}
    rows = {r["id"]: r for r in regatta_tools.score(made.folder)["requirements"]}
    assert list(rows) == requirements()
    for name, row in rows.items():
        given_ = [(c["source"], c["title"], c["locator"]) for c in row["citations"]]
        assert given_ == [
            (c["source"], titles[c["source"]], c["locator"])
            for c in package().table("citations")
            if c["requirement"] == name
        ]
        assert given_


def test_an_unfinished_run_says_so(made, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_bytes((made.folder / "run.json").read_bytes())
    lines = (made.folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 3]))
    evidence = regatta_tools.score(folder)
    assert evidence["complete"] is False
    pending = sum(row["pending"] for row in evidence["outcomes"])
    assert any(f"{pending} judgement" in note for note in evidence["notes"]) and pending > 0
    assert "THE RUN HAS NOT ENDED" in as_text(evidence)
    assert evidence["measures"]["FDR_e"] is None and evidence["bounds"]["FDR_e"] == {"low": 0.0, "high": 1.0}
    # A run that was begun and asked nothing yet.
    (folder / "journal.jsonl").unlink()
    empty = regatta_tools.score(folder)
    assert [k for k, v in empty["measures"].items() if v is None] == ["RC", "FDR_d", "FDR_e", "Delta", "ISS", "AC"]
    assert len(empty["measures"]["undefined"]) == 6
    strict(json.dumps(empty, allow_nan=False))
    assert len(re.findall(r"^  \w+ +undefined  \[", as_text(empty), re.MULTILINE)) == 6


def test_another_package_is_refused(made):
    changed = regatta_tools.load(ROOT)
    changed.cell_records("citations", "insurance-us")[0].cells["locator"] += " (2)"
    from regatta_tools.measures.evidence import score

    with pytest.raises(InputError, match="another state of the cell") as caught:
        score(made.folder, package=changed)
    assert (caught.value.exit_code, caught.value.code) == (2, "U108")


def test_a_score_of_nothing_is_refused_with_exit_2(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        done = regatta("score", str(path))
        assert done.returncode == 2 and "holds no run" in done.stderr and done.stdout == ""
        assert "Traceback" not in done.stderr


def test_a_place_that_takes_no_evidence_is_told_with_exit_3(made, tmp_path):
    done = regatta("score", str(made.folder), "--out", str(tmp_path))
    assert done.returncode == 3 and "cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_names_that_look_like_numbers_stay_themselves(tmp_path):
    """A25: undefined measures beside a title made of the words that a text replace would hit."""
    name = "NaN Infinity BaNaNa -Infinity null nan"
    held = regatta_tools.load(ROOT)
    cell = held.cell(CELL)
    cell.requirements[0].cells["topic"] = name
    cell.faults[0].cells["name"] = name
    held.by_id[cell.citations(cell.requirements[0].key)[0]["source"]].cells["title"] = name
    from regatta_tools.measures.evidence import score

    folder = store_of({}, ["NaN", "Infinity"], tmp_path / "run", held)
    evidence = score(folder, package=held)
    text = json.dumps(evidence, ensure_ascii=False, indent=2, allow_nan=False)
    read = strict(text)
    assert read["requirements"][0]["topic"] == read["faults"][0]["name"] == name
    assert name in {c["title"] for c in read["requirements"][0]["citations"]}
    assert read["measures"]["RC"] is None and read["measures"]["undefined"]
    shown = " ".join(as_text(evidence).split())
    assert shown.count(name) >= 3 and "undefined" in shown
    assert "nan" not in re.sub(re.escape(name), "", shown).lower().split()
    assert RunStore.read(folder).manifest["scenarios"] == ["NaN", "Infinity"]


# -- the text ------------------------------------------------------------------------------------


def squeezed(text):
    return "".join(text.split())


@pytest.fixture(params=["made", "nothing known", "all known"])
def evidence(request, made, tmp_path):
    if request.param == "made":
        return regatta_tools.score(made.folder)
    import random

    names = ["a-scenario-with-a-very-long-name.that-no-line-of-forty-columns-can-hold_01", "s2"]
    return regatta_tools.score(store_of(draw_table(random.Random(3), names, request.param), names, tmp_path / "run"))


def test_the_text_fits_and_loses_nothing(evidence, monkeypatch):
    shown = {}
    for columns in (40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown[columns] = as_text(evidence)
        assert max(map(len, shown[columns].splitlines())) <= columns
        assert not re.search(r"[ \t]$", shown[columns], re.MULTILINE)
    assert squeezed(shown[40]) == squeezed(shown[80]) == squeezed(shown[200])
    whole = squeezed(shown[40])
    parts = [evidence["suite"], evidence["cell"], *evidence["notes"], *evidence["measures"]["undefined"]]
    for row in evidence["requirements"]:
        parts += [row["id"], row["topic"], *([row["scenario"]] if row["scenario"] else [])]
        if row["status"] != "covered":
            basis = [c for c in row["citations"] if c["role"] == "basis"] or row["citations"]
            parts += [p for c in basis for p in (c["title"], c["locator"])]
    for row in evidence["faults"]:
        parts += [row["name"], row["class"], f"design: {row['design']}", f"execution: {row['execution']}"]
    for row in evidence["outcomes"]:
        parts += [f"{k.replace('_', '-')} {v}" for k, v in row.items() if k != "stage" and v]
    for name, bound in evidence["bounds"].items():
        value = evidence["measures"][name]
        parts += [
            f"{name}{'undefined' if value is None else format(value, '.2f')}[{bound['low']:.2f},{bound['high']:.2f}]"
        ]
    missing = [p for p in parts if squeezed(p) not in whole]
    assert missing == []


def test_what_is_not_covered_comes_first_with_its_law(made, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    evidence = regatta_tools.score(made.folder)
    text = as_text(evidence)
    heads = ["Obligations that no scenario tests: 23 of 25", "Obligations about which verdicts are missing: 1 of 25"]
    heads += [
        "Obligations that a scenario tests: 1 of 25",
        "Faults, as designed and as run",
        "Measures",
        "Verdicts",
        "Before you use this",
    ]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)
    assert requirements()[2] in text[places[0] : places[1]]
    assert requirements()[1] in text[places[1] : places[2]]
    assert f"{requirements()[0]}" in text[places[2] : places[3]] and "[s1]" in text[places[2] : places[3]]


def test_locators_stand_behind_the_title_of_their_source(made):
    evidence = regatta_tools.score(made.folder)
    row = next(r for r in evidence["requirements"] if r["id"] == requirements()[2])
    row["citations"] = [
        {"source": "a", "title": "First Act", "locator": "1 U.S.C. § 1", "role": "basis"},
        {"source": "b", "title": "Second Rules: Part B", "locator": "2 CFR § 2", "role": "basis"},
        {"source": "a", "title": "First Act", "locator": "1 U.S.C. § 3(a)", "role": "basis"},
        {"source": "a", "title": "First Act", "locator": "1 U.S.C. § 1", "role": "basis"},
        {"source": "c", "title": "Third Act", "locator": "§ 9", "role": "definition"},
    ]
    text = as_text(evidence)
    assert "First Act: 1 U.S.C. § 1; 1 U.S.C. § 3(a)\n" in text
    assert "Second Rules: Part B: 2 CFR § 2\n" in text
    assert "Third Act" not in text
    row["citations"] = row["citations"][-1:]
    assert "Third Act: § 9\n" in as_text(evidence)


def test_the_california_rules_are_named(made, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    sources = {s.key: s["title"] for s in package().table("sources")}
    row = next(
        c for c in package().table("citations") if c["requirement"] == "insurance-us-r03" and c["role"] == "basis"
    )
    assert f"      {sources[row['source']]}: {row['locator']}" in as_text(regatta_tools.score(made.folder))


def test_a_model_that_answers_in_place_of_another_is_named():
    from regatta_tools.report.evidence import who_judged

    model = {"stage": "rc", "name": "a/x", "kind": "llm"}
    assert who_judged([model | {"served": ["y-2026"]}]) == ["coverage: a/x, served as y-2026"]
    assert who_judged([model | {"served": ["a/x"], "note": "n"}]) == ["coverage: a/x, n"]
