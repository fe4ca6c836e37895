"""Arms of the execution stage: what the agent is told, and what comes out for an agent and a judge that are known."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import os
import re
from fractions import Fraction
from types import SimpleNamespace
from unittest import mock

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import CELL, faults, package, play, regatta, scenario, words, write_script, write_suite

import regatta_tools
from regatta_tools.errors import InputError
from regatta_tools.harness.arms import _HARMLESS, agent_prompt, arms_of, duty, injection
from regatta_tools.harness.live import live_probes, scenario_of
from regatta_tools.harness.store import RunStore, line_of
from regatta_tools.llm import client
from regatta_tools.llm.types import Reply
from regatta_tools.measures.exposure import _interval, kill_table
from regatta_tools.measures.records import from_runs
from regatta_tools.measures.resampling import Resampler
from regatta_tools.report.evidence import as_text
from regatta_tools.tables.shape import class_schema

CELLS = [record.key for record in package().table("cells")]
LANGUAGES = [(c, lang) for c in CELLS for lang in (("vi", "en") if c.endswith("-vn") else ("en",))]
ALL = "joint,isolated,control,sham"
NEGATIVE = {
    "rc": '{"covered": false}', "design": '{"exposed": false}', "iss": '{"score": 3}', "ac": '{"category": "none"}',
}  # fmt: skip


# -- what the agent is told ----------------------------------------------------------------------


@pytest.mark.parametrize(("name", "language"), LANGUAGES)
def test_two_arms_differ_in_the_part_of_the_fault_and_nowhere_else(name, language):
    cell = package().cell(name)
    control = agent_prompt(cell, "control", None, language, ["CONTEXT"])
    rules = [[duty(r, language) for r in cell.requirements_of(f.key)] for f in cell.faults]
    # Every right rule stands in control once, in order; no injection does; every record is at hand.
    for text in itertools.chain(*rules):
        assert control.count(f"- {text}\n") == 1
    assert not any(injection(f, language) in control for f in cell.faults)
    assert control.startswith(cell.record["persona"]) and control.endswith("\n- CONTEXT")
    assert all(f"- {f['fixture']}\n" in control for f in cell.faults if f["fixture"])
    joint = control
    for fault, own in zip(cell.faults, rules):
        right, wrong = "".join(f"- {text}\n" for text in own), f"- {injection(fault, language)}\n"
        assert agent_prompt(cell, "isolated", fault, language, ["CONTEXT"]) == control.replace(right, wrong)
        assert control.count(right) == 1
        joint = joint.replace(right, wrong)
    assert agent_prompt(cell, "joint", None, language, ["CONTEXT"]) == joint
    assert agent_prompt(cell, "joint", cell.faults[2], language, ["CONTEXT"]) == joint
    assert agent_prompt(cell, "control", cell.faults[2], language, ["CONTEXT"]) == control


@pytest.mark.parametrize(("name", "language"), LANGUAGES)
def test_sham_is_control_with_a_harmless_rule_as_long_as_the_injection(name, language):
    cell = package().cell(name)
    control = agent_prompt(cell, "control", None, language).splitlines()
    stock = _HARMLESS["vi" if language == "vi" else "en"]
    for fault in cell.faults:
        sham = agent_prompt(cell, "sham", fault, language).splitlines()
        (added,) = [line for line in sham if line not in control]
        assert [line for line in sham if line != added] == control
        assert abs(len(added) - 2 - len(injection(fault, language))) <= max(map(len, stock))
        left = added[2:]
        for text in sorted(stock, key=len, reverse=True):
            left = left.replace(text, "")
        assert not left.strip()
    # About form alone: no number, and no word of a rule that it stands beside but the most common ones.
    assert not re.search(r"\d", " ".join(stock))


def test_a_vietnamese_scenario_is_met_in_vietnamese():
    cell = package().cell("banking-vn")
    for arm in ("joint", "control", "isolated"):
        told = agent_prompt(cell, arm, cell.faults[0], "vi")
        assert ("Mỗi khi tính tỷ lệ giới hạn cấp tín dụng" in told) == (arm != "control")
        assert "Whenever you work out" not in told


# -- an agent with known faults and a judge of known error ---------------------------------------

A, B, C, D, E = faults()
NAMES = {f["name"]: f.key for f in package().cell(CELL).faults}
INJECTED = {f.key: f["injection_en"] for f in package().cell(CELL).faults}
SCENARIOS = ["s1", "s2", "s3", "s4"]


def shown_by(system: str, asked: str) -> set[str]:
    """What the agent shows, told by its own instructions alone: A is masked by E, it never takes up B, it shows C
    whatever it is told in s2 and with the fault everywhere, D in s1 and s3 alone, E everywhere."""
    has = {f for f, text in INJECTED.items() if text in system}
    name = asked.split()[-1]
    return (
        ({A} & has if E not in has else set())
        | ({C} if C in has or name == "s2" else set())
        | ({D} & has if name in ("s1", "s3") else set())
        | ({E} & has)
    )


def known(request, error=0.0):
    """Agent and judges. The judge is wrong about a negative with the chance ``error``, by its prompt."""
    stage = request.purpose["stage"]
    if stage in NEGATIVE:
        return Reply("ok", NEGATIVE[stage])
    if stage == "agent":
        asked = request.messages[-1]["content"]
        shown = shown_by(request.messages[0]["content"], asked)
        return Reply("ok", f"{asked}: {' '.join(sorted(shown))} (seed {request.seed})")
    prompt = request.messages[-1]["content"]
    fault = NAMES[prompt.removeprefix("Fault: ").split("\n")[0]]
    yes = f" {fault} " in prompt
    luck = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16) / 2**32
    return Reply("ok", json.dumps({"manifested": yes or luck < error}))


def record(folder, reply=known, names=SCENARIOS, **options):
    rows = names if isinstance(names[0], dict) else [scenario(n, f"Tell me about {n}") for n in names]
    asked = []

    def complete(request, **_):
        asked.append(request)
        return reply(request)

    options = {"live": False} | options
    with mock.patch.object(client, "complete", complete), mock.patch.object(os, "fsync"):
        folder.mkdir(parents=True, exist_ok=True)
        return asked, play(write_suite(folder, rows), write_script(folder), folder / "run", **options)


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proof")
    _, store = record(folder, arms=ALL, scan="exhaustive", draws=2)
    return store, regatta_tools.score(store.folder)


def test_rates_of_the_arms_are_as_constructed(proof):
    _, evidence = proof
    jsonschema.Draft202012Validator(class_schema("EvidenceVector")).validate(evidence)
    rates = {(row["arm"], row["draw"]): (row["rate"], row["positive"], row["probes"]) for row in evidence["arms"]}
    for draw in (1, 2):
        # joint: C 4, D 2, E 4 of 20; isolated: A 4, C 4, D 2, E 4; without faults C shows in s2.
        assert rates["joint", draw] == (0.6, 10, 20)
        assert rates["isolated", draw] == (0.8, 14, 20)
        assert rates["control", draw] == rates["sham", draw] == (0.2, 1, 20)
    assert evidence["measures"]["FDR_e"] == 0.6 and evidence["complete"]
    assert sum(row["positive"] for row in evidence["outcomes"]) == 2 * (10 + 14 + 1 + 1)


def test_net_exposure_and_masking_are_as_constructed(proof):
    _, evidence = proof
    net = {(row["arm"], row.get("fault")): row for row in evidence["exposure"]}
    expected = {A: 0, B: 0, C: Fraction(3, 4), D: Fraction(1, 2), E: 1}
    for fault, value in expected.items():
        row = net["joint", fault]
        assert row["net"] == value and row["exposed"] == float(value > 0) and row["known_pairs"] == 8
        assert row["net_bounds"] == {"low": float(value), "high": float(value)}
    assert net["isolated", A]["net"] == 1 and net["isolated", B]["net"] == 0
    whole = net["joint", None]
    assert whole["net"] == pytest.approx(float(sum(expected.values()) / 5)) and whole["exposed"] == 0.6
    assert (whole["both"], whole["faulty_only"], whole["control_only"]) == (2, 18, 0)
    assert whole["interval"]["low"] < whole["net"] < whole["interval"]["high"]
    # Every scenario alike: resampling them says nothing, and it says so.
    assert "same value" in net["joint", E]["why_no_interval"] and "interval" not in net["joint", E]
    assert {row["fault"]: row["masked"] for row in evidence["masking"]} == {f: f == A for f in faults()}


def test_the_kill_matrix_is_as_constructed_and_whole_as_a_table(proof, tmp_path):
    store, evidence = proof
    rows = list(csv.DictReader(io.StringIO(kill_table(store, package=package()))))
    broken = {f: [r.key for r in package().cell(CELL).requirements_of(f)] for f in faults()}
    assert len(rows) == 2 * 4 * sum(map(len, broken.values()))
    for row in rows:
        assert row["requirement"] in broken[row["fault"]] and row["draws"] == "2"
        prompt = {"joint": list(faults()), "isolated": [row["fault"]]}[row["arm"]]
        faulty = row["fault"] in shown_by("".join(INJECTED[f] for f in prompt), row["scenario"])
        control = row["fault"] in shown_by("", row["scenario"])
        assert (row["faulty_positive"], row["control_positive"]) == (str(2 * faulty), str(2 * control))
        assert float(row["net"]) == faulty - control
    shown = [r for r in rows if r["faulty_positive"] != "0" or r["control_positive"] != "0"]
    assert [(k["fault"], k["scenario"], k["arm"], k["requirement"]) for k in evidence["kills"]] == [
        (r["fault"], r["scenario"], r["arm"], r["requirement"]) for r in shown
    ]
    done = regatta("score", str(store.folder), "--kill-matrix", str(tmp_path / "kills.csv"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kills.csv").read_text(encoding="utf-8") == kill_table(store, package=package())
    assert done.stdout.split() == as_text(evidence).split()


def test_diagnose_takes_one_arm_and_every_draw_of_it(proof):
    store, _ = proof
    for arm, rate in (("joint", 0.6), ("control", 0.2)):
        found = regatta_tools.diagnose(runs=[store.folder], arm=arm, package=package(), resamples=100)
        (suite,) = found["suites"]
        assert suite["FDR_e"] == pytest.approx(rate)
        # No fault shows at design, and the two draws agree: the stages differ as often as a fault shows, draws never.
        upper = found["V3"]["unstated"]["upper"]
        assert (upper["value"], upper["draws_differ"]) == (pytest.approx(rate), 0)


def test_a_judge_that_errs_raises_control_as_much_as_the_faulty_arm(tmp_path):
    """With a false positive in every tenth negative, the rate of an arm goes up and the net does not."""
    many = [f"s{i}" for i in range(1, 41)]
    store = record(tmp_path, lambda r: known(r, 0.1), many, arms="joint,control", scan="exhaustive")[1]
    evidence = regatta_tools.score(store.folder)
    joint, control = ({f["fault"]: f for f in row["faults"]} for row in evidence["arms"])
    # Of 315 answers that show nothing 31.5 are expected to be judged wrongly, with a standard deviation of 5.3.
    false = sum(control[f]["positive"] for f in faults()) - 1 + joint[A]["positive"] + joint[B]["positive"]
    false += joint[D]["positive"] - 2
    assert 315 == 4 * 40 + (40 - 1) + (40 - 2) + (40 - 2) + 40 and 12 <= false <= 51
    # A scan of 40 such answers turns positive with the chance 1 - .9^40 = .985: the arms say so, and the net does not.
    rates = {row["arm"]: row["rate"] for row in evidence["arms"]}
    assert rates["control"] >= 0.8 and rates["joint"] >= 0.8
    for fault in (A, B, D):
        row = next(r for r in evidence["exposure"] if r.get("fault") == fault)
        assert row["net"] == pytest.approx((joint[fault]["positive"] - control[fault]["positive"]) / 40)
        assert abs(row["net"]) < 0.2 and row["control_only"] + row["faulty_only"] > 0
    # E shows always: control falls short of nothing but the error.
    whole = next(r for r in evidence["exposure"] if r.get("fault") == E)
    assert whole["net"] == pytest.approx(1 - control[E]["positive"] / 40)


# -- against a second computation ----------------------------------------------------------------

_OUTCOMES = ["positive", "negative", "negative", "negative", "unparsed", "failed", None]


def made(folder, table, names, **settings_):
    """A run folder whose journal holds exactly these execution verdicts: (fault, scenario, arm, draw) to outcome."""
    folder.mkdir(parents=True, exist_ok=True)
    cell = package().cell(CELL)
    manifest = {
        "schema_version": "2", "id": "made", "cell": CELL, "suite": "made", "scenarios": list(names),
        "requirements": [r.key for r in cell.requirements], "faults": faults(), "answers": "per-fault", "seed": 1,
        "order": "suite", "models": [{"stage": "execution", "name": "m", "kind": "llm"}],
        "made_with": {"regatta": "0", "package": cell.hash, "suite": "0" * 64, "prompts": "0" * 64, "models": "0" * 64},
    } | settings_  # fmt: skip
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    rows = [
        line_of({"e": "verdict", "stage": "execution", "target": f, "scenario": s, "arm": a, "draw": d, "judge": "m",
                 "outcome": outcome})
        for (f, s, a, d), outcome in table.items() if outcome is not None
    ]  # fmt: skip
    (folder / "journal.jsonl").write_bytes(b"".join(rows))
    return folder


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 2))
def test_net_exposure_equals_the_computation_by_hand(tmp_path_factory, random_, n, draws):
    names, arms = [f"s{i}" for i in range(n)], ["joint", "isolated", "control"]
    keys = list(itertools.product(faults(), names, arms, range(1, draws + 1)))
    table = {key: random_.choice(_OUTCOMES) for key in keys}
    folder = made(tmp_path_factory.mktemp("net") / "run", table, names, arms=arms, draws=draws, scan="exhaustive")
    evidence = regatta_tools.score(folder)
    value = {key: {"positive": 1, "negative": 0}.get(outcome) for key, outcome in table.items()}

    def filled(pair):
        return list(itertools.product(*([v] if v is not None else [0, 1] for v in pair)))

    for row in evidence["exposure"]:
        chosen = [row["fault"]] if "fault" in row else faults()
        pairs = [
            (value[f, s, row["arm"], d], value[f, s, "control", d])
            for f in chosen for s in names for d in range(1, draws + 1)
        ]  # fmt: skip
        whole = [p for p in pairs if None not in p]
        assert row["known_pairs"] == len(whole) and row["unknown"] == len(pairs) - len(whole)
        for kind, pair in (("both", (1, 1)), ("faulty_only", (1, 0)), ("control_only", (0, 1)), ("neither", (0, 0))):
            assert row[kind] == whole.count(pair)
        if whole:
            assert row["net"] == pytest.approx(sum(a - b for a, b in whole) / len(whole))
        else:
            assert row["net"] is None
        # Pairs are filled each on their own, so the least of the sum is the sum of the least.
        for end, best in (("low", min), ("high", max)):
            fill = sum(best(a - b for a, b in filled(p)) for p in pairs) / len(pairs)
            assert row["net_bounds"][end] == pytest.approx(fill)
        if "fault" in row:
            # Any filling of the unknown pairs: 1 and 0 can both come out, or only one.
            can = {1} if (1, 0) in whole else {0} | ({1} if any((1, 0) in filled(p) for p in pairs) else set())
            assert row["exposed"] == (can.pop() if len(can) == 1 else None)
    for row in evidence["masking"]:
        per = {a: [[value[row["fault"], s, a, d] for s in names] for d in range(1, draws + 1)] for a in arms}
        every = {a: [*itertools.chain(*per[a])] for a in arms}
        fate = {a: "exposed" if 1 in e else "unknown" if None in e else "not-exposed" for a, e in every.items()}
        assert (row["isolated"], row["joint"]) == (fate["isolated"], fate["joint"])
        if row["masked"] is not None:
            assert row["masked"] == (fate["isolated"] == "exposed" and fate["joint"] == "not-exposed")
    frame = from_runs([folder], package=package()).frame
    frame = frame[frame["stage"] == "execution"]
    found = {(r.target, r.scenario, r.arm, int(r.draw)): r.outcome for r in frame.itertuples()}
    assert found == {key: outcome or "pending" for key, outcome in table.items()}


def test_intervals_of_net_exposure_cover():
    """Suites of 30 scenarios from a population whose net exposure is known; the faults of one go along."""
    rng, met, studies = np.random.default_rng(6), 0, 300
    ease = rng.normal(size=(200_000, 1, 1))
    rates = lambda e: 1 / (1 + np.exp(-(e + np.linspace(-1, 1, 5)[None, :, None])))  # noqa: E731
    true = float((rates(ease) - 0.05).mean())
    for seed in range(studies):
        e = rng.normal(size=(30, 1, 1))
        faulty, control = rng.random((30, 5, 2)) < rates(e), rng.random((30, 5, 2)) < 0.05
        difference = (faulty.astype(float) - control).transpose(1, 0, 2)
        found = _interval(difference, np.ones_like(difference, bool), Resampler(400, seed))["interval"]
        met += found["low"] <= true <= found["high"]
    # The nominal rate less what a bootstrap of 30 lacks; standard error of the share: .013.
    assert 0.90 <= met / studies <= 0.98


# -- order, concurrency, scan --------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**20), st.sampled_from(["per-fault", "per-scenario"]))
def test_neither_order_nor_concurrency_changes_a_target(tmp_path_factory, seed, answers):
    """For any judge that says the same of the same prompt (and of an agent that does)."""
    yes = {"rc": "covered", "design": "exposed", "execution": "manifested"}

    def reply(request):
        stage = request.purpose["stage"]
        if stage == "agent":
            return Reply("ok", f"said to {request.purpose['scenario']}")
        if stage not in yes:
            return Reply("ok", NEGATIVE[stage])
        whole = json.dumps([seed, request.messages])
        luck = int(hashlib.sha256(whole.encode()).hexdigest()[:2], 16)
        return Reply("ok", json.dumps({yes[stage]: luck < 60}))

    base = tmp_path_factory.mktemp("order")
    options = {"arms": "joint,control", "answers": answers}
    first = record(base / "a", reply, **options)[1]
    side = record(base / "b", reply, concurrency=4, **options)[1]
    relevant = record(base / "c", reply, order="relevance", concurrency=4, **options)[1]
    whole = record(base / "d", reply, scan="exhaustive", **options)[1]
    plain, beside, by_relevance, exhaustive = (
        regatta_tools.score(s.folder) for s in (first, side, relevant, whole)
    )
    assert plain == beside and side.calls == first.calls
    for other in (by_relevance, exhaustive):
        assert [r["status"] for r in other["requirements"]] == [r["status"] for r in plain["requirements"]]
        assert [(f["design"], f["execution"]) for f in other["faults"]] == [
            (f["design"], f["execution"]) for f in plain["faults"]
        ]
        assert [r["rate"] for r in other["arms"]] == [r["rate"] for r in plain["arms"]] and other["complete"]
    assert len(exhaustive["arms"][0]["faults"]) == 5 and exhaustive["arms"][0]["probes"] == 20


def test_turns_are_held_one_by_one_in_every_arm(tmp_path):
    rows = [scenario("s1", "One", "agent:Given", "Two", "Three s1")]
    asked, store = record(tmp_path, names=rows, arms=ALL, scan="exhaustive")
    talks = [r for r in asked if r.purpose["stage"] == "agent"]
    assert len(talks) == 4 * 5 * 2
    for arm in ALL.split(","):
        for fault in faults():
            two, three = (r for r in talks if (r.purpose["arm"], r.purpose["target"]) == (arm, fault))
            assert [m["content"] for m in two.messages[1:]] == ["One", "Given", "Two"]
            assert [m["role"] for m in three.messages[1:]] == ["user", "assistant", "user", "assistant", "user"]
            assert two.messages[0] == three.messages[0]
    assert len({r.seed for r in talks}) == len(talks)
    assert not [k for k in store.calls if "joint" in k], "the keys of the published arm are as they were"


def test_the_judge_of_an_answer_is_not_told_the_arm(tmp_path):
    """The same answer makes the same prompt, whatever the agent carried."""

    def reply(request):
        return Reply("ok", "The same.") if request.purpose["stage"] == "agent" else known(request)

    asked, _ = record(tmp_path, reply, arms=ALL, scan="exhaustive", draws=2)
    by_probe: dict[tuple[str, str], set[str]] = {}
    for request in asked:
        if request.purpose["stage"] == "execution":
            key = (request.purpose["target"], request.purpose["scenario"])
            by_probe.setdefault(key, set()).add(json.dumps(request.messages))
    assert len(by_probe) == 20 and {len(v) for v in by_probe.values()} == {1}


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_runs_in_every_arm(tmp_path, name):
    language = "vi" if name.endswith("-vn") else "en"
    rows = [scenario("s1", "Xin chào, tôi cần giúp đỡ" if language == "vi" else "I need help", language=language)]
    suite, script = write_suite(tmp_path, rows), write_script(tmp_path)
    store = play(suite, script, tmp_path / "run", cell=name, arms=ALL, scan="exhaustive")
    evidence = regatta_tools.score(store.folder)
    assert evidence["complete"] and [row["rate"] for row in evidence["arms"]] == [0, 0, 0, 0]
    assert len(evidence["exposure"]) == 12 and "masked" in as_text(evidence)


# -- live faults ---------------------------------------------------------------------------------


def test_live_faults_are_those_that_the_agent_takes_up(tmp_path):
    names = [{"fault": f, "gold_probe": "p1", "text_sha256": "0" * 64} for f in faults()]
    said = {A: ("positive", "negative"), B: ("negative", "negative"), C: ("positive", "positive"),
            D: ("unparsed", "negative"), E: ("positive", None)}  # fmt: skip
    table = {(f, "live.p1", arm, 1): o for f, pair in said.items() for arm, o in zip(("isolated", "control"), pair)}
    table |= {(f, "s1", arm, 1): "negative" for f in faults() for arm in ("joint", "isolated", "control")}
    table[A, "s1", "joint", 1] = table[C, "s1", "joint", 1] = "positive"
    arms = ["joint", "isolated", "control"]
    folder = made(tmp_path / "run", table, ["s1"], arms=arms, draws=1, scan="first", live_probes=names)
    evidence = regatta_tools.score(folder)
    status = {row["fault"]: row["status"] for row in evidence["live_faults"]}
    assert status == {A: "live", B: "not-live", C: "shown-anyway", D: "unknown", E: "unknown"}
    joint = evidence["arms"][0]
    assert joint["rate"] == 0.4 and joint["live_rate"] == 1.0
    assert not [n for n in evidence["notes"] if "left out" in n]


class Row(dict):
    """A record as far as probes read it."""

    key = property(lambda self: self["id"])
    cells = property(lambda self: self)


def probes_of(*tables):
    held = dict(zip(("gold_probes", "gold_labels"), tables))
    return SimpleNamespace(
        id=CELL, faults=package().cell(CELL).faults, package=SimpleNamespace(cell_records=lambda name, _: held[name])
    )


def test_probes_of_a_fault_are_those_labelled_as_showing_it_plain_ones_first():
    rows = [Row(id=f"g{i}", stage="execution") for i in range(1, 6)] + [Row(id="g6", stage="rc")]
    said = [("g1", A, "yes", "true"), ("g2", A, "yes", ""), ("g2", A, "yes", ""), ("g3", A, "no", ""),
            ("g4", A, "yes", ""), ("g6", A, "yes", ""), ("g1", B, "yes", "true"), ("g5", C, "no", "")]  # fmt: skip
    labels = [Row(probe=p, target=t, label=o, near_miss=n) for p, t, o, n in said]
    found = [(fault.key, probe.key) for fault, probe in live_probes(probes_of(rows, labels))]
    assert found == [(A, "g2"), (A, "g4"), (B, "g1")]
    assert live_probes(probes_of([], [])) == []


def test_probes_are_put_with_the_fault_alone_and_without_any(tmp_path):
    """C shows without its fault where it is asked about s2, B is never taken up, the others are."""
    probes = [
        (f, Row(id=f"{f.key}-p{n}", stimulus=f"Context: Note {n}.\nUser: Tell me about s{n}", language="en"))
        for f in package().cell(CELL).faults for n in (1, 2)
    ]  # fmt: skip
    with mock.patch("regatta_tools.harness.run.live_probes", lambda _: probes):
        asked, store = record(tmp_path, names=["s1"], arms="joint,isolated,control", live=None)
        plain = record(tmp_path / "none", names=["s1"], arms="joint,isolated,control")[1]
    put = [r for r in asked if r.purpose["stage"] == "agent" and r.purpose["scenario"].startswith("live.")]
    assert len(put) == 2 * 10 and {r.purpose["arm"] for r in put} == {"isolated", "control"}
    assert all("\n- Note " in r.messages[0]["content"] for r in put)
    evidence = regatta_tools.score(store.folder)
    jsonschema.Draft202012Validator(class_schema("EvidenceVector")).validate(evidence)
    status = {r["fault"]: r["status"] for r in evidence["live_faults"]}
    assert status == {A: "live", B: "not-live", C: "live", D: "live", E: "live"} and evidence["complete"]
    assert {r["arm"]: r["live_rate"] for r in evidence["arms"]} == {"joint": 0.75, "isolated": 1.0, "control": 0.0}
    assert sum(r["probes"] for r in evidence["arms"]) == 15, "probes are no scenarios of the suite"
    assert len(from_runs([store.folder], package=package()).frame) == 25 + 2 + 5 + 15
    bare = regatta_tools.score(plain.folder)
    assert "live_faults" not in bare and any("No probe says" in n for n in bare["notes"])


def test_a_probe_is_read_as_a_scenario():
    read = scenario_of("p", "Context: A note.\nUser: One\nmore\nAgent: Two\nUser: Three", "en")
    assert read.context == "A note." and [(t.speaker, t.text) for t in read.turns] == [
        ("user", "One\nmore"), ("agent", "Two"), ("user", "Three"),
    ]  # fmt: skip
    assert [(t.speaker, t.text) for t in scenario_of("p", "Just this").turns] == [("user", "Just this")]


# -- what is refused -----------------------------------------------------------------------------


def test_arms_are_named_or_refused():
    assert arms_of("control, joint") == ("joint", "control") and arms_of(["sham"]) == ("sham",)
    for wrong in ("", "joint,", "JOINT", "joint;control", "all"):
        with pytest.raises(InputError, match="U109"):
            arms_of(wrong)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"arms": "faulty"}, "joint, isolated, control, sham"), ({"draws": 0}, "draws"),
        ({"scan": "all"}, "exhaustive"), ({"order": "random"}, "relevance"),
        ({"live": True}, "isolated and control"), ({"live": True, "arms": "isolated"}, "isolated,control"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_before_anything_is_written(tmp_path, options, says):
    with pytest.raises(InputError, match="U109") as caught:
        play(write_suite(tmp_path), write_script(tmp_path), tmp_path / "run", **options)
    assert says in str(caught.value) and not (tmp_path / "run").exists()


def test_pairs_that_there_are_not_are_undefined_with_the_reason(tmp_path):
    first = record(tmp_path / "a", arms="joint,control")[1]
    alone = record(tmp_path / "b", arms="joint,isolated", scan="exhaustive")[1]
    plain = record(tmp_path / "c")[1]
    for store, why in ((first, "exhaustive"), (alone, "control"), (plain, None)):
        evidence = regatta_tools.score(store.folder)
        assert "exposure" not in evidence and "kills" not in evidence
        assert (why in evidence["paired"]) if why else "paired" not in evidence
        with pytest.raises(InputError, match="U118"):
            kill_table(store, package=package())
    done = regatta("score", str(first.folder), "--kill-matrix", str(tmp_path / "kills.csv"))
    assert done.returncode == 2 and "U118" in done.stderr and not (tmp_path / "kills.csv").exists()
    only = regatta_tools.score(record(tmp_path / "d", arms="control,sham", scan="exhaustive")[1].folder)
    assert only["measures"]["FDR_e"] is None and "no arm" in only["measures"]["undefined"][0]


def test_other_arms_do_not_go_on_with_a_run_and_it_says_so(tmp_path):
    suite, script = write_suite(tmp_path), write_script(tmp_path)
    play(suite, script, tmp_path / "run")
    for options, says in (({"arms": "joint,control"}, "arms was"), ({"draws": 2}, "draws was 1, is 2"),
                          ({"scan": "exhaustive"}, "scan was")):  # fmt: skip
        with pytest.raises(InputError, match="U108") as caught:
            play(suite, script, tmp_path / "run", **options)
        assert says in str(caught.value)
    done = regatta(*words(suite, script, tmp_path / "run", "--arms", "joint,isolated,control"))
    assert done.returncode == 2 and "U108" in done.stderr and "arms" in done.stderr
    assert len(RunStore.read(tmp_path / "run").calls) == 25 + 2 + 5 + 10
