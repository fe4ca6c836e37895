"""One call through litellm, against a server on this machine that does wrong (A16, A17, A18)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from email.utils import formatdate
from pathlib import Path

import fault_server
import pytest
from fault_server import body, completion, cut, drip, silent, status, text

import regatta_tools
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.llm import client
from regatta_tools.llm.types import Request

ROOT = Path(__file__).resolve().parent.parent
SECRET = "sk-live-0123456789abcdefXYZ"
MODEL = "openai/fake"
TOOL_CALL = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.fixture(scope="module")
def running():
    with fault_server.serving() as server:
        yield server


#: Tests of one call that hold for both ways out: OpenAI's form as it is, and litellm.
BOTH = {
    "test_a_plain_reply_comes_back_with_its_usage",
    "test_messages_arrive_byte_for_byte",
    "test_an_odd_choice_is_the_outcome_of_its_call",
    "test_odd_choices_are_an_empty_reply",
    "test_odd_usage_is_unknown_and_not_zero",
    "test_content_in_parts_is_put_together",
    "test_half_a_surrogate_pair_can_be_journalled_and_sent_on",
    "test_retry_after_is_waited_for",
    "test_a_wait_beyond_the_cap_stops_the_run_at_once",
    "test_a_passing_failure_is_tried_again",
    "test_a_lasting_failure_is_an_outcome_with_its_reason",
    "test_nobody_listens",
    "test_a_call_ends_where_the_server_does_not",
    "test_ctrl_c_comes_through_a_call_that_hangs",
    "test_a_call_outside_the_main_thread_works_and_leaves_no_alarm",
    "test_a_wrong_key_or_model_stops_the_run",
    "test_a_refused_request_is_the_outcome_of_its_call_and_not_sent_again",
    "test_an_error_in_a_body_with_status_200_is_read",
    "test_no_error_shows_a_key",
}


def pytest_generate_tests(metafunc):
    if metafunc.function.__name__ in BOTH:
        metafunc.parametrize("way", ["plain", "litellm"], indirect=True)


@pytest.fixture
def way(request, monkeypatch):
    said = getattr(request, "param", "plain")
    if said == "litellm":
        monkeypatch.setattr(client, "_is_plain", lambda *_: False)
    return said


@pytest.fixture
def server(running, monkeypatch, way):
    monkeypatch.setenv("OPENAI_API_BASE", running.base)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    running.script()
    return running


class Waits(list):
    """In place of time.sleep."""

    def __call__(self, seconds):
        self.append(seconds)


def ask(waits=None, timeout=10.0, **options):
    request = Request(MODEL, ({"role": "user", "content": "Is it covered?"},), timeout=timeout, **options)
    return client.complete(request, sleep=Waits() if waits is None else waits)


# -- what goes out and what comes back -----------------------------------------------------------


def test_a_plain_reply_comes_back_with_its_usage(server):
    server.script(text('{"covered": true}'))
    reply = ask(
        temperature=0.0,
        max_tokens=33,
        seed=5,
        schema={"type": "object"},
        purpose={"stage": "rc", "target": "secret-id"},
    )
    assert (reply.outcome, reply.text, reply.finish_reason) == ("ok", '{"covered": true}', "stop")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.attempts) == (7, 3, 1)
    assert "fake-served" in reply.served_model
    # No price is known for this model, and an unknown price is not zero.
    assert reply.cost_usd is None
    (sent,) = server.requests
    assert sent["messages"] == [{"role": "user", "content": "Is it covered?"}]
    assert (sent["model"], sent["temperature"], sent["max_tokens"], sent["seed"]) == ("fake", 0.0, 33, 5)
    assert "secret-id" not in json.dumps(sent)


def test_messages_arrive_byte_for_byte(server):
    odd = "{{name}} {# {% raw %} {0} %s $HOME \\n \\\\ ]]> \u2028 Luật Đất đai Điều 5 \U0001f6a2 \t tab"
    server.script(text(odd))
    reply = client.complete(Request(MODEL, ({"role": "system", "content": odd}, {"role": "user", "content": odd})))
    assert [m["content"] for m in server.requests[0]["messages"]] == [odd, odd]
    assert reply.text == odd


@pytest.mark.parametrize(
    ("message", "finish", "outcome", "says"),
    [
        (None, "content_filter", "filtered", "filter"),
        (None, "stop", "empty", "no message"),
        ({"role": "assistant", "content": None, "tool_calls": []}, "stop", "empty", "no text"),
        (
            {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
            "tool_calls", "empty", "tool call",
        ),
        ({"role": "assistant", "content": ""}, "stop", "empty", "no text"),
        ({"role": "assistant", "content": None}, "length", "truncated", "limit"),
        ({"role": "assistant", "content": "half"}, "length", "truncated", None),
        ({"role": "assistant", "content": "x"}, "content_filter", "filtered", "filter"),
        ({"role": "assistant", "content": None, "refusal": "I will not."}, "stop", "refused", "I will not."),
        ({"role": "assistant", "content": 7}, "stop", "empty", "no text"),
        ({}, "stop", "empty", "no text"),
        ([], "stop", "empty", "no text"),
        ("text", "stop", "empty", "no text"),
    ],
)  # fmt: skip
def test_an_odd_choice_is_the_outcome_of_its_call(server, message, finish, outcome, says):
    server.script(body(completion(message, finish)))
    reply = ask()
    assert reply.outcome == outcome
    assert says is None or says in reply.error
    # One request: an odd answer is an answer, and its tokens were used.
    assert len(server.requests) == reply.attempts == 1
    assert (reply.prompt_tokens, reply.completion_tokens) == (7, 3)
    assert not reply.unreachable


@pytest.mark.parametrize("choices", [[], None, "none", 3, {}, [None], [[]], "missing"])
def test_odd_choices_are_an_empty_reply(server, choices):
    value = completion(None, choices=choices)
    if choices == "missing":
        value.pop("choices")
    server.script(body(value))
    reply = ask()
    assert (reply.outcome, reply.text) == ("empty", "")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "usage", [None, {}, "many", {"total_tokens": 9}, {"prompt_tokens": None, "completion_tokens": -1}]
)
def test_odd_usage_is_unknown_and_not_zero(server, usage):
    server.script(body(completion({"role": "assistant", "content": "Yes."}, usage=usage)))
    reply = ask()
    assert (reply.outcome, reply.text) == ("ok", "Yes.")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cost_usd) == (None, None, None)


def test_content_in_parts_is_put_together(server):
    parts = [{"type": "text", "text": '{"covered":'}, {"type": "text", "text": " true}"}]
    server.script(body(completion({"role": "assistant", "content": parts})))
    reply = ask()
    assert (reply.outcome, reply.text) == ("ok", '{"covered": true}')


def test_half_a_surrogate_pair_can_be_journalled_and_sent_on(server):
    raw = json.dumps(completion({"role": "assistant", "content": "a\ud800b"})).encode()
    assert b"\\ud800" in raw
    server.script(body(raw))
    reply = ask()
    assert (reply.outcome, reply.text) == ("ok", "a?b")


# -- tries and waits -----------------------------------------------------------------------------


def test_retry_after_is_waited_for(server):
    server.script(status(429, retry_after="2"), status(429, retry_after="2"), text("Yes."))
    waits = Waits()
    reply = ask(waits)
    assert (reply.outcome, reply.attempts, len(server.requests)) == ("ok", 3, 3)
    assert len(waits) == 2 and all(2 <= w <= 4 for w in waits)


@pytest.mark.parametrize("code", [429, 503])
def test_a_date_in_retry_after_is_waited_for(server, code):
    server.script(status(code, retry_after=formatdate(time.time() + 30, usegmt=True)), text("Yes."))
    waits = Waits()
    assert ask(waits).outcome == "ok"
    assert len(waits) == 1 and 25 <= waits[0] <= 31


@pytest.mark.parametrize("code", [429, 503])
def test_a_wait_beyond_the_cap_stops_the_run_at_once(server, code):
    server.script(status(code, retry_after="3600"), text("Yes."))
    waits = Waits()
    with pytest.raises(EnvironmentProblem, match="3600 s") as caught:
        ask(waits)
    assert (caught.value.exit_code, caught.value.code) == (3, "E307")
    assert "same command" in caught.value.mend
    assert waits == [] and len(server.requests) == 1


@pytest.mark.parametrize("odd", ["", "soon", "-5", "nan", "Mon, 99 Foo 2026"])
def test_an_unreadable_retry_after_falls_back_to_own_waits(server, odd):
    server.script(status(429, retry_after=odd), text("Yes."))
    waits = Waits()
    assert ask(waits).outcome == "ok"
    assert len(waits) == 1 and 0 < waits[0] <= 5


def test_tries_are_spread_and_end(server):
    server.script(otherwise=status(429))
    waits = Waits()
    reply = ask(waits)
    assert (reply.outcome, reply.unreachable) == ("failed", True)
    assert len(server.requests) == reply.attempts == client.ATTEMPTS
    assert waits == sorted(waits) and waits[0] >= 0.5 and waits[-1] > waits[0]


@pytest.mark.parametrize(
    "act", [status(500, "oops"), status(502), status(503), cut, body(b"<html>hi</html>"), body(b""), body(b"null")]
)
def test_a_passing_failure_is_tried_again(server, act):
    server.script(act, text("Yes."))
    waits = Waits()
    reply = ask(waits)
    assert (reply.outcome, reply.attempts, len(waits)) == ("ok", 2, 1)


@pytest.mark.parametrize("act", [status(500, "oops"), cut, body(b"<html>hi</html>")])
def test_a_lasting_failure_is_an_outcome_with_its_reason(server, act):
    server.script(otherwise=act)
    reply = ask()
    assert (reply.outcome, reply.text, reply.attempts) == ("failed", "", client.ATTEMPTS)
    assert reply.unreachable and reply.error and "\n" not in reply.error and "Traceback" not in reply.error


def test_nobody_listens(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    reply = ask()
    assert (reply.outcome, reply.unreachable) == ("failed", True)


@pytest.mark.parametrize("act", [silent, drip])
def test_a_call_ends_where_the_server_does_not(server, act):
    server.script(otherwise=act)
    started = time.monotonic()
    reply = ask(timeout=0.4)
    assert time.monotonic() - started < 2 * (0.4 + client.GRACE) + 2
    assert (reply.outcome, reply.unreachable, reply.attempts) == ("failed", True, client.TIMEOUTS)
    assert "0.4 s" in reply.error


def test_every_request_of_the_harness_has_a_finite_timeout():
    assert 0 < Request(MODEL, ()).timeout <= 600


def test_ctrl_c_comes_through_a_call_that_hangs(server):
    server.script(otherwise=silent)
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask(timeout=30)
    assert time.monotonic() - started < 5


def test_a_call_outside_the_main_thread_works_and_leaves_no_alarm(server):
    server.script(text("Yes."), text("No."))
    replies = []
    worker = threading.Thread(target=lambda: replies.append(ask()))
    worker.start()
    worker.join(20)
    before = signal.getsignal(signal.SIGALRM)
    replies.append(ask())
    assert [r.text for r in replies] == ["Yes.", "No."]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0) and signal.getsignal(signal.SIGALRM) == before


# -- what makes every further call useless -------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "says"),
    [(401, "key"), (402, "payment"), (403, "does not allow"), (404, "does not have")],
)
def test_a_wrong_key_or_model_stops_the_run(server, code, says):
    server.script(status(code, f"Incorrect API key provided: {SECRET}"))
    with pytest.raises(EnvironmentProblem, match=says) as caught:
        ask()
    assert (caught.value.exit_code, caught.value.code) == (3, "E303")
    assert len(server.requests) == 1 and SECRET not in str(caught.value) and "fake" in str(caught.value)


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (status(400, "bad"), "failed"),
        (status(413, "too long"), "failed"),
        (status(400, "This model's maximum context length is 10 tokens", code="context_length_exceeded"), "failed"),
        (status(400, "withheld", code="content_filter"), "filtered"),
        (status(400, "The response was filtered due to the content management policy"), "filtered"),
        (status(403, "Your input was flagged by moderation"), "filtered"),
        (body({"error": {"message": "prompt too odd", "code": 400}}), "failed"),
    ],
)
def test_a_refused_request_is_the_outcome_of_its_call_and_not_sent_again(server, act, outcome):
    server.script(act)
    reply = ask()
    assert (reply.outcome, reply.unreachable, reply.attempts) == (outcome, False, 1)
    assert reply.error and len(server.requests) == 1


def test_an_error_in_a_body_with_status_200_is_read(server):
    server.script(body({"error": {"message": "upstream is down", "code": 502}}), text("Yes."))
    assert ask().outcome == "ok"
    server.script(otherwise=body({"error": {"message": "upstream is down", "code": "502"}}))
    reply = ask()
    assert reply.unreachable and "upstream is down" in reply.error


@pytest.mark.parametrize("name", ["nonsense", "no-such-provider/model", "", " ", "/", "gpt", "embeddedx"])
def test_an_unknown_model_is_told_before_any_request(server, name):
    with pytest.raises(InputError, match="no provider knows the model") as caught:
        client.check_model(name)
    assert (caught.value.exit_code, caught.value.code) == (2, "U106")
    assert server.requests == []


def test_a_missing_key_is_told_before_any_request(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EnvironmentProblem, match="OPENAI_API_KEY") as caught:
        client.check_model(MODEL)
    assert caught.value.exit_code == 3 and server.requests == []


def test_an_empty_key_is_a_missing_one(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(EnvironmentProblem, match="OPENAI_API_KEY"):
        client.check_model(MODEL)
    assert server.requests == [] and os.environ["OPENAI_API_KEY"] == ""


def test_a_known_model_with_a_key_asks_nothing_yet(server):
    assert client.check_model(MODEL) == {"name": MODEL}
    assert server.requests == []


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [400, 401, 402, 403, 404, 429, 500])
def test_no_error_shows_a_key(server, monkeypatch, code):
    monkeypatch.setenv("OTHER_api_token", "hush-hush-hush")
    echo = f"key {SECRET}, Bearer {SECRET}, hush-hush-hush, sk-other-abcdef123456, http://me:pass-word@host/v1"
    server.script(otherwise=status(code, echo))
    try:
        shown = ask().error
    except EnvironmentProblem as problem:
        shown = str(problem)
    for secret in (SECRET, "hush-hush", "abcdef123456", "pass-word"):
        assert secret not in shown


# -- through the harness -------------------------------------------------------------------------


def suite_file(folder, scenarios=2):
    path = folder / "suite.json"
    turns = [{"speaker": "user", "text": "What is the deadline?"}]
    path.write_text(
        json.dumps({"id": "server-suite", "scenarios": [{"id": f"s{i}", "turns": turns} for i in range(scenarios)]}),
        encoding="utf-8",
    )
    return path


def answering(handler):
    """A judge that says no and an agent that talks, told apart by the form that the prompt asks for."""
    prompt = json.dumps(handler.server.requests[-1])
    for key, value in (
        ("covered", "false"),
        ("exposed", "false"),
        ("manifested", "false"),
        ("score", "3"),
        ("category", '"none"'),
    ):
        if f'{{\\"{key}\\":' in prompt:
            return text(f'{{"{key}": {value}}}')(handler)
    return text("Fifteen days.")(handler)


def run_it(folder):
    return regatta_tools.run(
        suite_file(folder), cell="insurance-us", judge=MODEL, agent=MODEL, answers="per-scenario", out=folder / "run",
        concurrency=1,
    )  # fmt: skip


def verdicts(store):
    return {k: (v["outcome"], v.get("value"), v.get("call")) for k, v in store.verdicts.items()}


@pytest.fixture(scope="module")
def unbroken(running, tmp_path_factory):
    """The store of a run in which nothing went wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_BASE", running.base)
        patch.setenv("OPENAI_API_KEY", SECRET)
        running.script(otherwise=answering)
        return run_it(tmp_path_factory.mktemp("unbroken"))


@pytest.fixture
def one_try(monkeypatch):
    monkeypatch.setattr(client, "ATTEMPTS", 1)


def test_a_run_goes_on_over_replies_of_every_odd_form(server, tmp_path, one_try):
    odd = [
        body(completion(None, choices=[])),
        body(completion(None, "content_filter")),
        body(completion({"role": "assistant", "content": None, "tool_calls": []})),
        text(""),
        text(None, refusal="No."),
        text("Perhaps."),
        status(400, "bad"),
        status(500, f"oops {SECRET}"),
    ]
    server.script(answering, *odd, otherwise=answering)
    store = run_it(tmp_path)
    outcomes = [v["outcome"] for v in store.verdicts.values()]
    assert outcomes[:9] == [
        "negative",
        "empty",
        "filtered",
        "empty",
        "empty",
        "refused",
        "unparsed",
        "failed",
        "failed",
    ]
    assert set(outcomes[9:]) <= {"negative", "rated"}
    assert len(outcomes) == 2 * (25 + 2 + 5 + 5)
    evidence = regatta_tools.score(store.folder)
    rc = next(row for row in evidence["outcomes"] if row["stage"] == "rc")
    assert {k: v for k, v in rc.items() if k != "stage" and v} == {
        "negative": 42, "empty": 3, "filtered": 1, "refused": 1, "unparsed": 1, "failed": 2
    }  # fmt: skip
    # 7 in and 3 out for every reply that carried its usage: all but the two errors.
    calls = len(store.calls)
    assert evidence["cost"]["prompt_tokens"] == 7 * (calls - 2) and evidence["cost"]["completion_tokens"] == 3 * (
        calls - 2
    )
    assert (evidence["cost"]["usd"], evidence["cost"]["unpriced_calls"]) == (None, calls)
    assert SECRET not in (store.folder / "journal.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("good", [0, 30, 55])
def test_an_outage_stops_the_run_and_leaves_no_missing_verdicts_behind(server, unbroken, tmp_path, one_try, good):
    server.script(*[answering] * good, otherwise=status(500, f"down {SECRET}"))
    with pytest.raises(EnvironmentProblem, match="does not answer") as caught:
        run_it(tmp_path)
    assert (caught.value.exit_code, caught.value.code) == (3, "E307")
    assert SECRET not in str(caught.value)
    # A server that never answered is told after one call, an outage after a few, not after a thousand.
    assert len(server.requests) - good == (3 if good else 1)
    lines = (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    journal = [json.loads(line) for line in lines]
    assert sum(e["e"] == "call" and e["outcome"] == "ok" for e in journal) == good
    server.script(otherwise=answering)
    again = run_it(tmp_path)
    assert verdicts(again) == verdicts(unbroken)
    assert len(server.requests) == len(unbroken.calls) - good
    assert again.resent == 0 and again.notes == []


@pytest.mark.parametrize("act", [status(401, SECRET), status(404), status(429, retry_after="3600")])
def test_a_run_that_has_to_stop_keeps_what_it_has(server, unbroken, tmp_path, act):
    server.script(*[answering] * 20, otherwise=act)
    with pytest.raises(EnvironmentProblem) as caught:
        run_it(tmp_path)
    assert caught.value.exit_code == 3 and len(server.requests) == 21
    assert SECRET not in (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8") + str(caught.value)
    server.script(otherwise=answering)
    again = run_it(tmp_path)
    assert verdicts(again) == verdicts(unbroken)
    assert len(server.requests) == len(unbroken.calls) - 20 and again.resent == 0


def test_ctrl_c_in_a_call_that_hangs_leaves_at_once_with_130(server, unbroken, tmp_path):
    """The whole command: out of the call, out of litellm, out of the interpreter."""
    server.script(*[answering] * 5, otherwise=silent)
    suite = suite_file(tmp_path)
    words = ["run", str(suite), "--cell", "insurance-us", "--judge", MODEL, "--agent", MODEL]
    words += ["--answers", "per-scenario", "--out", str(tmp_path / "run"), "--concurrency", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from regatta_tools.cli.main import main; main()", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True, encoding="utf-8",
    )
    end = time.monotonic() + 60
    while len(server.requests) < 6 and time.monotonic() < end:
        time.sleep(0.05)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() - sent < 10
    assert "interrupted" in err and "Traceback" not in err + out and SECRET not in err
    server.script(otherwise=answering)
    again = run_it(tmp_path)
    assert verdicts(again) == verdicts(unbroken)
    assert (len(server.requests), again.resent) == (len(unbroken.calls) - 5, 1)


# -- quiet and offline ---------------------------------------------------------------------------


def test_litellm_prints_nothing_and_asks_nobody_else(server):
    """A fresh process: import, check, and calls of every kind. Only this machine is spoken to."""
    acts = (
        text("Yes."), status(400, "bad"), body(completion(None, "content_filter")), body(b"<html>"), status(500),
        status(404), body(completion({"role": "assistant", "content": [{"type": "text", "text": "x"}]})),
    )  # fmt: skip
    server.script(*acts, *acts)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(
            """
            import os, sys
            outside = []
            def watch(event, arguments):
                if event not in ("socket.connect", "socket.getaddrinfo"):
                    return
                host = arguments[1][0] if event == "socket.connect" else arguments[0]
                if host not in ("127.0.0.1", "localhost", None):
                    outside.append(host)
                    raise OSError("this test asks nobody outside")
            sys.addaudithook(watch)
            from regatta_tools.errors import EnvironmentProblem, InputError
            from regatta_tools.llm import client
            from regatta_tools.llm.types import Request
            try:
                client.check_model("no-such-provider/model")
            except InputError:
                pass
            client.check_model("openai/fake")
            outcomes = []
            client.ATTEMPTS = 1
            request = Request("openai/fake", ({"role": "user", "content": "q"},))
            for number in range(14):
                if number == 7:
                    client._is_plain = lambda *_: False  # the same through litellm
                try:
                    outcomes.append(client.complete(request).outcome)
                except EnvironmentProblem as problem:
                    outcomes.append(problem.code)
            assert outcomes == 2 * ["ok", "failed", "filtered", "failed", "failed", "E303", "ok"], outcomes
            assert outside == [], outside
            """
        )],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={k: v for k, v in os.environ.items() if k != "LITELLM_LOCAL_MODEL_COST_MAP"}, encoding="utf-8",
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
