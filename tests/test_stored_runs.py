"""What a run would take, and what a stored run shows: plan, runs, show, export, replay."""

from __future__ import annotations

import csv
import json
import socket

import pytest
from click.testing import CliRunner
from scripted_runs import CELL, ROOT, faults, package, play, requirements, scenario, verdicts, write_script, write_suite

import regatta_tools
from regatta_tools.cli.main import cli
from regatta_tools.errors import InputError
from regatta_tools.harness import showing
from regatta_tools.harness.planning import plan
from regatta_tools.llm import client
from regatta_tools.llm.disclosure import disclosure, refuse_unasked
from regatta_tools.measures.evidence import score


def command(*words):
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def planned(suite, **options):
    return plan(suite, cell=CELL, judge="scripted:x", agent="scripted:y", package=package(), count=len, **options)


# -- plan ----------------------------------------------------------------------------------------


def test_thirty_scenarios_take_what_was_published(tmp_path, monkeypatch):
    """Protocol, section 3: 1,110 judge calls and 150 agent calls. No key, nothing sent."""
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("nothing is to be sent"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    suite = write_suite(tmp_path, 30)
    words = ("plan", suite, "--cell", CELL, "--package", ROOT, "--judge", "gpt-4o-mini", "--agent", "gpt-4o-mini")
    made = json.loads(command(*words, "--format", "json"))
    assert (made["judge_calls_max"], made["agent_calls_max"]) == (1110, 150)
    assert made["by_stage"] == {"rc": 750, "iss": 30, "ac": 30, "design": 150, "execution": 150, "agent": 150}
    assert 0 < made["usd"]["estimate"] < made["usd"]["max"] and made["tokens"]["estimate"] < made["tokens"]["max"]
    (line,) = made["sends"]
    assert "openai" in line and "scenarios" in line and "faults" in line


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"answers": "per-scenario"},
        {"arms": "joint,control", "draws": 2},
        {"arms": "joint,isolated,control,sham", "scan": "exhaustive"},
        {"arms": "isolated,sham", "answers": "per-scenario", "draws": 3},
    ],
)
def test_a_plan_counts_what_the_protocol_asks_for(tmp_path, options):
    """Counted by hand from sections 3 and 12; the second scenario has two turns for the agent to answer."""
    suite = write_suite(tmp_path, [scenario("a"), scenario("b", "One?", "agent:Given.", "Two?", "Three?")])
    made = planned(suite, live=False, **options)
    arms, draws = options.get("arms", "joint").split(","), options.get("draws", 1)
    n, answers = 2, 1 + 2
    assert made["by_stage"]["rc"] == n * len(requirements()) and made["by_stage"]["design"] == n * len(faults())
    assert made["judge_calls_max"] == n * (len(requirements()) + 2 + len(faults()) * (1 + len(arms) * draws))
    shared = options.get("answers") == "per-scenario"
    asked = sum(1 if shared and arm != "isolated" else len(faults()) for arm in arms)
    assert made["agent_calls_max"] == answers * asked * draws


def test_a_run_takes_no_more_than_its_plan_and_an_exhaustive_one_just_that(tmp_path):
    suite = write_suite(tmp_path, 3)
    script = write_script(
        tmp_path,
        {"when": {"stage": "rc", "target": requirements()[:9], "scenario": "s1"}, "text": '{"covered": true}'},
        {"when": {"stage": "execution", "scenario": "s2"}, "text": '{"manifested": true}'},
    )
    for number, options in enumerate(
        ({}, {"scan": "exhaustive"}, {"scan": "exhaustive", "arms": "joint,control", "draws": 2})
    ):
        made = planned(suite, **options)
        store = play(suite, script, tmp_path / f"run{number}", **options)
        judges = sum(c["stage"] != "agent" for c in store.calls.values())
        agents = len(store.calls) - judges
        assert judges <= made["judge_calls_max"] and agents <= made["agent_calls_max"]
        exact = (judges, agents) == (made["judge_calls_max"], made["agent_calls_max"])
        assert exact == ("scan" in options)


def test_the_bound_of_tokens_holds_where_the_agent_talks_to_its_limit(tmp_path):
    suite = write_suite(tmp_path, [scenario("a", "One?", "Two?")])
    made = planned(suite)
    long = "x " * 4000
    store = play(suite, write_script(tmp_path, {"when": {"stage": "agent"}, "text": long}), tmp_path / "run")
    spent = sum(len(m["content"].encode()) // 8 for p in showing.prompts(store.folder) for m in p["messages"])
    assert spent <= made["tokens"]["max"]


def test_the_embedded_default_asks_no_model_where_the_baseline_judges(tmp_path):
    made = plan(write_suite(tmp_path, 2), cell=CELL, package=package(), count=len)
    assert set(made["by_stage"]) == {"iss", "ac", "execution", "agent"}
    assert made["usd"] == {"estimate": 0, "max": 0} and made["sends"] == [] and made["retries_max"] == 0
    text = command("plan", write_suite(tmp_path, 2), "--cell", CELL, "--package", ROOT)
    assert "at most 14 judge calls and 10 agent calls" in text and "nothing leaves this machine" in text


# -- who gets what -------------------------------------------------------------------------------


def test_who_gets_which_text_is_said_once_for_each_vendor(monkeypatch):
    monkeypatch.setenv("OPENAI_API_BASE", "https://models.example.test/v1")
    both = disclosure({"openai/a": ["judge"], "anthropic/b": ["agent"]})
    assert len(both) == 2 and "models.example.test" in both[0] and "the agent's answers" in both[0]
    assert "anthropic" in both[1] and "planted faults" in both[1] and "answers" not in both[1]
    for address in ("http://127.0.0.1:8000/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1"):
        monkeypatch.setenv("OPENAI_API_BASE", address)
        assert disclosure({"openai/a": ["judge", "agent"]}) == []
    assert disclosure({"embedded": ["judge"], "scripted:x": ["agent"], "replay:y": ["judge"]}) == []
    for yes, terminal in ((True, False), (False, True)):
        refuse_unasked(both, yes=yes, terminal=terminal)
    refuse_unasked([], yes=False, terminal=False)
    with pytest.raises(InputError, match="nothing was sent") as caught:
        refuse_unasked(both, yes=False, terminal=False)
    assert caught.value.code == "U137" and "--yes" in caught.value.mend


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", True),
        ("gpt-4o-mini", None, True),
        ("anthropic/claude-x-4", "claude-x-4-20260901", True),
        ("bedrock/us.anthropic.claude-x-4-20260901-v1:0", "claude-x-4-20260901", True),
        ("hosted_vllm/meta/Llama-8B", "meta/Llama-8B", True),
        ("scripted:x", "scripted", True),
        ("openai/gpt-4o", "gpt-4o-mini", False),
        ("openai/gpt-4o-mini", "gpt-4o", False),
        ("openai/gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("anthropic/claude-x-4", "claude-y-4", False),
    ],
)
def test_another_model_that_answers_is_seen(asked, served, same):
    assert client.same_model(asked, served) is same


# -- stored runs ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    script = write_script(
        folder,
        {"when": {"stage": "rc", "target": requirements()[0]}, "text": '{"covered": true}'},
        {"when": {"stage": "rc", "target": requirements()[1]}, "text": "Có lẽ."},
        {"when": {"stage": "agent", "target": faults()[0], "scenario": "s1"}, "outcome": "failed", "error": "gone"},
    )
    suite = write_suite(folder, 2)
    return suite, play(suite, script, folder / "runs" / "one")


def test_runs_are_listed_with_their_state(made, tmp_path):
    _, store = made
    root = store.folder.parent
    (root / "broken").mkdir(exist_ok=True)
    (root / "broken" / "run.json").write_text("{", encoding="utf-8")
    half = root / "half"
    half.mkdir(exist_ok=True)
    (half / "run.json").write_bytes((store.folder / "run.json").read_bytes())
    lines = (store.folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (half / "journal.jsonl").write_bytes(b"".join(lines[:30]))
    rows = {row["folder"].rpartition("/")[2]: row for row in showing.runs(root, package=package())}
    assert set(rows) == {"one", "half", "broken"} and "U107" in rows["broken"]["problem"]
    assert rows["one"]["complete"] and rows["one"]["pending"] == 0 and rows["one"]["usd"] == 0
    assert rows["one"]["missing"] == {"no-answer": 1, "unparsed": 2} and rows["one"]["calls"] == len(store.calls)
    assert not rows["half"]["complete"] and rows["half"]["pending"] > 0
    text = command("runs", "--in", root, "--package", ROOT)
    assert text.count("\n") == 3 and "1 no-answer, 2 unparsed" in text and "no JSON" in text
    with pytest.raises(InputError, match="no such folder"):
        showing.runs(tmp_path / "missing")
    assert showing.runs(tmp_path) == []


def test_a_call_is_shown_with_what_went_out_and_came_back(made):
    _, store = made
    key = f"execution|{faults()[1]}|s2|1"
    text = command("show", store.folder, key)
    assert "[system]" in text and "By when must my claim be acknowledged?" in text and "Within fifteen days." in text
    assert '{"manifested": false}' in text and f"verdict execution {faults()[1]} s2: negative" in text
    found = json.loads(command("show", store.folder, key, "--format", "json"))
    assert found["prompt_fits"] and found["call"]["outcome"] == "ok" and len(found["verdicts"]) == 1


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_everything_is_exported_once(made, tmp_path, ending):
    _, store = made
    to = tmp_path / f"all.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    CliRunner().invoke(cli, ["runs", "export", str(store.folder), "--to", str(to)], catch_exceptions=False)
    if ending == "jsonl":
        rows = [json.loads(line) for line in to.read_text(encoding="utf-8").splitlines()]
    elif ending == "csv":
        with to.open(encoding="utf-8", newline="") as stream:
            rows = [{k: v or None for k, v in row.items()} for row in csv.DictReader(stream)]
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(to).to_pylist()
    assert list(rows[0]) == list(showing.COLUMNS)
    # Every verdict and every call, the agent's answers too.
    judged = [r for r in rows if r["outcome"]]
    assert len(judged) == len(store.verdicts)
    assert {r["call"] for r in rows} - {None} == set(store.calls)
    answers = [r for r in rows if r["stage"] == "agent"]
    assert len(answers) == 10 and sum(r["text"] == "Within fifteen days." for r in answers) == 9
    assert {r["outcome"] for r in judged} == {"positive", "negative", "rated", "unparsed", "no-answer"}
    assert all("Có lẽ" in r["text"] for r in judged if r["outcome"] == "unparsed")
    assert all(json.loads(r["prompt"])[0]["role"] == "system" for r in rows)


def test_a_table_of_another_form_is_refused(made, tmp_path):
    with pytest.raises(InputError, match="U173"):
        showing.export(made[1].folder, tmp_path / "all.xlsx")
    assert list(tmp_path.iterdir()) == []


# -- replay --------------------------------------------------------------------------------------


def test_a_replay_gives_the_same_evidence_byte_for_byte_without_a_network(made, tmp_path, monkeypatch):
    suite, store = made
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("nothing is to be sent"))
    who = f"replay:{store.folder}"
    for at_once in (1, 8):
        again = regatta_tools.run(
            suite, cell=CELL, judge=who, agent=who, out=tmp_path / str(at_once) / "one", package=package(),
            concurrency=at_once,
        )  # fmt: skip
        assert verdicts(again) == verdicts(store)
        one, other = (score(s.folder, package=package()) for s in (store, again))
        assert json.dumps(one, ensure_ascii=False) == json.dumps(other, ensure_ascii=False)


def test_a_replay_invents_nothing(made, tmp_path):
    _, store = made
    who = f"replay:{store.folder}"
    again = regatta_tools.run(
        write_suite(tmp_path, [scenario("s1", "Another question?")]), cell=CELL, judge=who, agent=who,
        out=tmp_path / "run", package=package(),
    )  # fmt: skip
    assert {v["outcome"] for v in again.verdicts.values()} == {"failed", "no-answer"}
    with pytest.raises(InputError, match="U107"):
        client.check_model(f"replay:{tmp_path / 'nowhere'}")
