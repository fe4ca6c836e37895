"""Many calls at once: nothing lost, nothing invented, limits kept, whatever provider and disk do."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import signal
import threading
import time
from collections import Counter

import fault_server
import pytest
from fault_server import body, completion, cut, silent, slow, status, text
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import events, play, write_script, write_suite

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.harness.store import RunStore
from regatta_tools.llm import client, pool, prices
from regatta_tools.llm.cache import Cache
from regatta_tools.llm.pool import BudgetSpent, Pool
from regatta_tools.llm.replay import prompt_hash
from regatta_tools.llm.types import Abandoned, Reply, Request

MODEL = "openai/fake"
SECRET = "sk-live-0123456789abcdefXYZ"


@pytest.fixture(scope="module")
def running():
    with fault_server.serving() as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    monkeypatch.setenv("OPENAI_API_BASE", running.base)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    running.script()
    # Imports litellm, which takes seconds.
    client.check_model(MODEL)
    return running


@pytest.fixture
def hurried(monkeypatch):
    """Own waits of a hundredth; Retry-After is kept."""
    real = pool._Passage._wait
    monkeypatch.setattr(pool._Passage, "_wait", lambda self, seconds: real(self, seconds / 100))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manifest")
    return play(write_suite(folder), write_script(folder), folder / "run").manifest


@contextlib.contextmanager
def opened(folder, manifest):
    with RunStore(folder) as store:
        store.open_for_writing(manifest)
        yield store


def question(number, **options):
    """A call that the server can tell from others."""
    said = {"role": "user", "content": f"question {number}."}
    return Request(MODEL, (said,), max_tokens=50, seed=number, timeout=10.0, **options)


def ask(pool, number, **options):
    request = question(number, **options)
    return pool.call(request, f"rc|r{number}|s1|1", "rc", "fake", prompt_hash(request))


def jobs(pool, numbers):
    return [lambda n=n: ask(pool, n) for n in numbers]


def number_of(asked):
    return int(asked["messages"][-1]["content"].removeprefix("question ").rstrip("."))


def told(handler):
    """Answer with the number of the question."""
    text(f"answer {number_of(handler.asked)}")(handler)


def calls(folder):
    return [e for e in events(folder) if e["e"] == "call"]


# -- order, threads, journal ---------------------------------------------------------------------


def test_results_come_in_order_and_calls_at_once(server, manifest, tmp_path):
    server.script(otherwise=slow(0.1, told))
    seen = []
    # The loop of calls and the watch are one for the process; an earlier test may have started them.
    before = {t.name for t in threading.enumerate()}
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=8) as made:
        began = time.monotonic()
        replies = made.map(jobs(made, range(40)), lambda done, of: seen.append((done, of)))
        took = time.monotonic() - began
    assert [r.text for r in replies] == [f"answer {n}" for n in range(40)]
    assert server.most_in_flight == 8 and 0.5 <= took < 3
    assert seen == [(n, 40) for n in range(1, 41)]
    kinds = Counter(e["e"] for e in events(tmp_path / "run"))
    assert kinds == {"start": 40, "call": 40}
    left = {n for t in threading.enumerate() if (n := t.name).startswith("regatta-")}
    assert left - before <= {"regatta-watch"}


def test_a_journalled_call_is_not_made_again_and_another_prompt_is(server, manifest, tmp_path):
    server.script(otherwise=told)
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        first = made.map(jobs(made, range(6)))
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        again = made.map(jobs(made, range(6)))
        assert again == first and len(server.requests) == 6
        other = question(99)
        assert made.call(other, "rc|r3|s1|1", "rc", "fake", prompt_hash(other)).text == "answer 99"
    assert len(server.requests) == 7


def test_the_first_exception_is_raised_once_and_no_job_starts_after_it(server, manifest, tmp_path):
    server.script(otherwise=slow(0.05, told))
    begun = []

    def job(number):
        begun.append(number)
        if number == 5:
            raise ValueError("of the job")
        return ask(made, number)

    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=4) as made:
        with pytest.raises(ValueError, match="of the job"):
            made.map([lambda n=n: job(n) for n in range(50)])
        assert len(begun) < 15
        with pytest.raises(Abandoned):
            ask(made, 60)
        with pytest.raises(RuntimeError):
            made.map([])


@pytest.mark.parametrize("concurrency", [1, 6])
def test_ctrl_c_answers_at_once_and_keeps_what_is_there(server, manifest, tmp_path, concurrency):
    server.script(*[told] * 12, otherwise=silent)
    timer = threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT))
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=concurrency) as made:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            made.map(jobs(made, range(30)))
        began = time.monotonic()
    assert time.monotonic() - began < 1
    assert sum(e["outcome"] == "ok" for e in calls(tmp_path / "run")) == 12
    server.script(otherwise=told)
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        replies = made.map(jobs(made, range(30)))
    assert [r.text for r in replies] == [f"answer {n}" for n in range(30)]
    # Those in flight may have been answered and paid; the others were never sent.
    assert RunStore.read(tmp_path / "run").resent == concurrency and len(server.requests) == 18


def test_a_model_in_this_process_is_asked_from_the_main_thread_one_call_at_a_time(manifest, tmp_path, monkeypatch):
    inside, threads = [], set()

    def complete(request, **_):
        inside.append(1)
        threads.add(threading.current_thread())
        assert len(inside) == 1
        inside.pop()
        return Reply("ok", text="Yes.", cost_usd=0.0)

    monkeypatch.setattr(client, "complete", complete)
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=8) as made:
        asked = [Request("embedded", ({"role": "user", "content": str(n)},)) for n in range(20)]
        replies = made.map(
            [lambda r=r: made.call(r, r.messages[0]["content"], "rc", "embedded", prompt_hash(r)) for r in asked]
        )
    assert len(replies) == 20 and threads == {threading.main_thread()}


# -- a provider that does wrong ------------------------------------------------------------------


class Moody:
    """A server that does wrong at random and writes down what it truly said: per question the last whole answer."""

    def __init__(self, seed):
        self.chance, self.said, self.lock = random.Random(seed), {}, threading.Lock()

    def __call__(self, handler):
        number = number_of(handler.asked)
        with self.lock:
            roll, word = self.chance.random(), self.chance.randrange(10**9)
        verdict = f'{{"covered": {"true" if word % 2 else "false"}}}' if word % 5 else f"perhaps {word}"
        acts = [
            (0.06, status(429), None),
            (0.06, status(429, retry_after="0.1"), None),
            (0.06, status(500, f"oops {SECRET}"), None),
            (0.04, cut, None),
            (0.04, body(b"<html>gateway</html>"), None),
            (0.05, body(completion(None, "content_filter")), ("filtered", "")),
            (0.05, body(completion(None, choices=[])), ("empty", "")),
            (0.05, text(None, refusal="No."), ("refused", "")),
            (0.05, text(f"half {word}", "length"), ("truncated", f"half {word}")),
            (0.05, slow(0.05, text(verdict)), ("ok", verdict)),
            (1.0, text(verdict), ("ok", verdict)),
        ]  # fmt: skip
        act, outcome = self.pick(acts, roll)
        if outcome is not None:
            with self.lock:
                assert number not in self.said, f"question {number} was asked again after an answer"
                self.said[number] = outcome
        act(handler)

    @staticmethod
    def pick(acts, roll):
        for share, act, outcome in acts:
            if roll < share:
                return act, outcome
            roll -= share
        raise AssertionError(roll)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_reply_is_lost_and_none_invented(server, manifest, tmp_path, monkeypatch, hurried, seed):
    monkeypatch.setattr(client, "ATTEMPTS", 30)
    moody = Moody(seed)
    server.script(otherwise=moody)
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=16) as made:
        replies = made.map(jobs(made, range(200)))
    assert {n: (r.outcome, r.text) for n, r in enumerate(replies)} == moody.said
    stored = RunStore.read(tmp_path / "run")
    journal = {int(k.split("|")[1][1:]): (c["outcome"], c.get("text", "")) for k, c in stored.calls.items()}
    assert journal == moody.said and stored.notes == [] and stored.resent == 0
    assert len({c["key"] for c in calls(tmp_path / "run")}) == len(calls(tmp_path / "run")) == 200
    assert len({o for o, _ in moody.said.values()}) == 5
    kept = b"".join(p.read_bytes() for p in (tmp_path / "run").iterdir())
    assert SECRET.encode() not in kept


def test_a_wait_that_one_call_is_told_holds_back_all(server, manifest, tmp_path):
    arrived = []

    def act(handler):
        arrived.append(time.monotonic())
        (status(429, retry_after="1") if len(arrived) == 5 else told)(handler)

    server.script(otherwise=act)
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=4) as made:
        replies = made.map(jobs(made, range(20)))
    assert [r.text for r in replies] == [f"answer {n}" for n in range(20)]
    # Three may have been on their way already; then nobody comes for a second.
    late = sorted(arrived)[8:]
    assert late and min(late) - arrived[4] >= 0.95


def test_calls_at_once_follow_what_the_provider_takes(server, manifest, tmp_path, hurried):
    refused = []

    def act(handler):
        with server.turn:
            many = server.in_flight > 3
        if many:
            refused.append(1)
            status(429)(handler)
        else:
            slow(0.03, told)(handler)

    server.script(otherwise=act)
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=16) as made:
        replies = made.map(jobs(made, range(150)))
        limit = made._lane(MODEL).limit
    assert [r.text for r in replies] == [f"answer {n}" for n in range(150)]
    assert 1 <= limit < 8 and 0 < len(refused) < 150


@pytest.mark.parametrize("good", [0, 30])
def test_an_outage_stops_the_run_and_leaves_no_failed_call_behind(server, manifest, tmp_path, monkeypatch, good):
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    server.script(*[told] * good, otherwise=status(500, "down"))
    with opened(tmp_path / "run", manifest) as store:
        with Pool(store, concurrency=8) as made, pytest.raises(EnvironmentProblem, match="does not answer") as caught:
            made.map(jobs(made, range(60)))
        assert caught.value.code == "E307"
    held = RunStore.read(tmp_path / "run")
    assert {c["outcome"] for c in held.calls.values()} <= {"ok"} and len(held.calls) == good
    server.script(otherwise=told)
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=8) as made:
        made.map(jobs(made, range(60)))
    assert len(server.requests) == 60 - good and RunStore.read(tmp_path / "run").resent == 0


def test_an_outage_is_waited_out_with_patience(server, manifest, tmp_path, monkeypatch, hurried):
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    down = threading.Event()

    def act(handler):
        if len(server.requests) == 20:
            down.set()
            threading.Timer(0.6, down.clear).start()
        (status(503, "down") if down.is_set() else told)(handler)

    server.script(otherwise=act)
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=4, patience=60) as made:
        replies = made.map(jobs(made, range(50)))
    assert [r.text for r in replies] == [f"answer {n}" for n in range(50)]
    assert max(r.attempts for r in replies) > 1


def test_a_call_that_fails_alone_is_its_own_outcome_even_with_patience(
    server, manifest, tmp_path, monkeypatch, hurried
):
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    server.script(otherwise=lambda h: (status(500) if number_of(h.asked) == 7 else slow(0.02, told))(h))
    with opened(tmp_path / "run", manifest) as store, Pool(store, concurrency=4, patience=600) as made:
        replies = made.map(jobs(made, range(40)))
    assert [r.outcome for r in replies].count("failed") == 1 and replies[7].outcome == "failed"


def test_a_verdict_of_a_call_that_another_thread_took_back_does_not_stand(manifest, tmp_path):
    verdict = {"e": "verdict", "stage": "rc", "target": "t", "scenario": "s1", "draw": 1, "judge": "j"}
    call = {"e": "call", "key": "k", "stage": "rc", "model": "m", "prompt_hash": "0" * 64, "outcome": "failed"}
    with opened(tmp_path / "run", manifest) as store:
        for event in (
            {"e": "start", "key": "k"}, call, {"e": "stop", "key": "k"}, verdict | {"outcome": "failed", "call": "k"},
        ):  # fmt: skip
            store.append(event)
        assert store.verdicts == {} and store.calls == {}
    assert RunStore.read(tmp_path / "run").verdicts == {}


# -- keys ----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=12, max_size=40),
    st.sampled_from(["text", "model", "finish", "refusal", "error", "error-type", "header", "html", "reason"]),
    st.sampled_from([200, 400, 401, 403, 404, 413, 429, 500, 503]),
    st.booleans(),
)
def test_a_key_that_a_server_echoes_reaches_neither_store_nor_message(
    running, manifest, tmp_path_factory, key, where, code, plain
):
    folder = tmp_path_factory.mktemp("key") / "run"
    said = f"You sent Bearer {key} and {key}."
    act = {
        "text": text(said),
        "model": body(completion({"role": "assistant", "content": "x"}, model=key)),
        "finish": text("x", f"stop {key}"),
        "refusal": text(None, refusal=said),
        "error": status(code, said),
        "error-type": body({"error": {"message": "no", "type": said, "code": key}}, code),
        "header": body({"error": {"message": "no"}}, code, {"X-Echo": said, "Retry-After": key}),
        "html": body(f"<html>{said}".encode(), code),
        "reason": body({"error": said}, code),
    }[where]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_BASE", running.base)
        patch.setenv("OPENAI_API_KEY", key)
        patch.setattr(client, "ATTEMPTS", 1)
        patch.setattr(pool._Passage, "throttles", 1)
        if not plain:
            patch.setattr(client, "_is_plain", lambda *_: False)
        running.script(otherwise=act)
        shown = ""
        with opened(folder, manifest) as store, Pool(store) as made:
            try:
                ask(made, 1)
            except EnvironmentProblem as problem:
                shown = str(problem)
    assert any(key in str(seen) for seen in running.headers_seen)
    assert key not in shown
    for path in folder.iterdir():
        assert key.encode() not in path.read_bytes()


# -- money and numbers ---------------------------------------------------------------------------


@pytest.fixture
def priced(tmp_path):
    """The server says 7 tokens in and 3 out: at these prices 0.0131 dollars a call."""
    path = tmp_path / "prices.json"
    path.write_text(
        json.dumps({"usd_per_million_tokens": {MODEL: {"in": 1000, "out": 2033.3333333333333}}}), encoding="utf-8"
    )
    return prices.load(path)


def test_a_budget_is_never_exceeded_and_the_same_command_goes_on(server, manifest, tmp_path, priced):
    server.script(otherwise=slow(0.02, told))
    with opened(tmp_path / "run", manifest) as store:
        with Pool(store, concurrency=16, budget_usd=0.5, prices=priced, models=[MODEL]) as made:
            with pytest.raises(BudgetSpent, match=r"0\.5 dollars are spent") as caught:
                made.map(jobs(made, range(100)))
            assert made.purse.reserved == 0
        assert (caught.value.exit_code, caught.value.code) == (3, "E312") and "--budget-usd" in caught.value.mend
    first = len(server.requests)
    # A call may cost 0.128 at most, so some of the half dollar is left, and less than one call might cost.
    assert first * 0.0131 <= 0.5 < first * 0.0131 + 0.15
    assert RunStore.read(tmp_path / "run").resent == 0
    with opened(tmp_path / "run", manifest) as store:
        assert store.spent_usd == pytest.approx(first * 0.0131)
        with Pool(store, budget_usd=2, prices=priced) as made:
            replies = made.map(jobs(made, range(100)))
    assert len(replies) == len(server.requests) == 100


@settings(max_examples=12)
@given(st.floats(0.0, 0.6), st.integers(1, 12), st.integers(0, 2**30))
def test_no_budget_is_exceeded_whatever_goes_wrong(running, manifest, tmp_path_factory, budget, at_once, seed):
    """What the server may have charged for: every answer that it gave or began to give."""
    folder = tmp_path_factory.mktemp("budget")
    price = prices.Prices({MODEL: ("", 1000.0, 2000.0)}, "", "", "")
    chance, lock, charged = random.Random(seed), threading.Lock(), []

    def act(handler):
        with lock:
            roll = chance.random()
        if roll < 0.15:
            charged.append(0.013)
            return cut(handler)
        if roll < 0.3:
            return status(429)(handler)
        charged.append(0.013)
        return told(handler)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_BASE", running.base)
        patch.setenv("OPENAI_API_KEY", SECRET)
        real = pool._Passage._wait
        patch.setattr(pool._Passage, "_wait", lambda self, seconds: real(self, seconds / 1000))
        running.script(otherwise=act)
        with (
            opened(folder / "run", manifest) as store,
            Pool(store, concurrency=at_once, budget_usd=budget, prices=price) as made,
            contextlib.suppress(EnvironmentProblem),
        ):
            made.map(jobs(made, range(60)))
    assert sum(charged) <= budget + 1e-9


def test_a_model_without_a_price_is_refused_before_anything_is_spent(server, manifest, tmp_path):
    server.script(otherwise=told)
    with opened(tmp_path / "run", manifest) as store:
        with pytest.raises(InputError, match="openai/fake") as caught:
            Pool(store, budget_usd=1, models=["scripted:x", MODEL])
        assert caught.value.code == "U171" and "--prices" in caught.value.mend
        with Pool(store, budget_usd=1) as made, pytest.raises(InputError, match="U171"):
            ask(made, 1)
    assert server.requests == []


def test_max_calls_counts_what_was_sent_in_the_whole_run(server, manifest, tmp_path):
    server.script(otherwise=told)
    for limit, held in ((10, 10), (10, 10), (25, 25)):
        with (
            opened(tmp_path / "run", manifest) as store,
            Pool(store, concurrency=6, max_calls=limit) as made,
            pytest.raises(BudgetSpent, match="--max-calls"),
        ):
            made.map(jobs(made, range(40)))
        assert len(server.requests) == held == len(calls(tmp_path / "run"))


def test_prices_are_pinned_and_an_unknown_one_is_none():
    held = prices.pinned()
    assert held.cost("openai/fake", 10, 10) is None and held.cost("no/such", 1, 1) is None
    assert held.cost("scripted:x", 10, None) is None and held.cost("embedded", 10, 10) == 0.0
    assert len(held.sha256) == 64 and held.dated and "litellm" in held.source
    # By hand: dollars per million tokens, in and out, as the file has them.
    provider, into, out = held.models["gpt-4o-mini"]
    assert (
        held.cost("openai/gpt-4o-mini", 1_000_000, 2_000_000)
        == pytest.approx(into + 2 * out)
        == held.cost("gpt-4o-mini", 1_000_000, 2_000_000)
    )
    assert provider == "openai" and held.cost("anthropic/gpt-4o-mini", 1, 1) is None


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"usd_per_million_tokens": {}}', '{"usd_per_million_tokens": {"m": {"in": 1}}}',
                '{"usd_per_million_tokens": {"m": {"in": -1, "out": 1}}}', '{"usd_per_million_tokens": {"m": 3}}'],
)  # fmt: skip
def test_a_file_that_holds_no_prices_is_refused(tmp_path, content):
    path = tmp_path / "prices.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        prices.load(path)
    assert (caught.value.code, caught.value.place) == ("U170", str(path))
    with pytest.raises(InputError, match="U170"):
        prices.load(tmp_path / "missing.json")


@given(st.text())
def test_no_tokenizer_makes_more_tokens_than_the_bound(words):
    from regatta_tools.generation.tokens import count

    assert count(words) <= prices.tokens_at_most([{"role": "user", "content": words}])


# -- cache ---------------------------------------------------------------------------------------


def test_a_cached_reply_is_shared_between_runs_and_free(server, manifest, tmp_path, priced):
    odd = {3: status(400, "bad"), 4: body(completion(None, "content_filter")), 5: text("")}
    server.script(otherwise=lambda h: odd.get(number_of(h.asked), told)(h))
    for run in ("a", "b"):
        with opened(tmp_path / run, manifest) as store, Pool(store, cache=tmp_path / "cache", prices=priced) as made:
            replies = made.map(jobs(made, range(10)))
    # Ten, and once more the three that said nothing.
    assert len(server.requests) == 13
    held = RunStore.read(tmp_path / "b").calls
    assert [n for n, r in enumerate(replies) if not r.cached] == [3, 4, 5]
    assert {k for k, c in held.items() if not c.get("cached")} == {f"rc|r{n}|s1|1" for n in (3, 4, 5)}
    assert all(c["cost_usd"] == 0 for c in held.values() if c.get("cached"))
    assert RunStore.read(tmp_path / "a").calls["rc|r0|s1|1"]["cost_usd"] == pytest.approx(0.0131)
    started = sorted(e["key"] for e in events(tmp_path / "b") if e["e"] == "start")
    assert started == [f"rc|r{n}|s1|1" for n in (3, 4, 5)]


def test_everything_that_could_change_a_reply_is_in_its_key(server, tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    base = question(1)
    other = [
        Request("openai/other", base.messages, max_tokens=50, seed=1),
        Request(MODEL, (*base.messages, {"role": "user", "content": "x"}), max_tokens=50, seed=1),
        Request(MODEL, base.messages, max_tokens=51, seed=1),
        Request(MODEL, base.messages, max_tokens=50, seed=2),
        Request(MODEL, base.messages, 0.3, max_tokens=50, seed=1),
        Request(MODEL, base.messages, max_tokens=50, seed=1, schema={"type": "object"}),
        Request(MODEL, base.messages, max_tokens=50, seed=1, purpose={"draw": "2"}),
    ]
    keys = {cache.key(r) for r in [base, *other]}
    assert len(keys) == 8
    # What a call is for, and how long it may take, changes nothing.
    assert cache.key(Request(MODEL, base.messages, max_tokens=50, seed=1, timeout=3, purpose={"stage": "ac"})) in keys
    cache.put(base, Reply("ok", text="Yes.", cost_usd=1.0))
    assert Cache(tmp_path).get(base) == Reply("ok", text="Yes.", cost_usd=0.0, cached=True)
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    assert Cache(tmp_path).get(base) is None


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]", b'{"outcome": "ok"}', b"\xff", b'{"key": "x"}'])
def test_a_spoilt_file_in_the_cache_is_as_good_as_none(server, tmp_path, content):
    cache = Cache(tmp_path)
    cache.put(question(1), Reply("ok", text="Yes."))
    (file,) = tmp_path.glob("*/*.json")
    file.write_bytes(content)
    assert cache.get(question(1)) is None
    cache.put(question(1), Reply("ok", text="No."))
    assert cache.get(question(1)).text == "No."


# -- the journal under many threads --------------------------------------------------------------


def test_calls_share_a_flush_and_none_counts_before_it(server, manifest, tmp_path, monkeypatch):
    server.script(otherwise=told)
    real, flushed = os.fsync, []
    folder = tmp_path / "run"

    def fsync(descriptor):
        size = os.fstat(descriptor).st_size
        time.sleep(0.005)
        real(descriptor)
        flushed.append(size)

    with opened(folder, manifest) as store, Pool(store, concurrency=16) as made:
        monkeypatch.setattr(os, "fsync", fsync)

        def job(number):
            reply = ask(made, number)
            # The line of this call ends within what a flush that has returned had seen.
            line = f'"answer {number}"'.encode()
            raw = (folder / "journal.jsonl").read_bytes()
            assert raw.index(b"\n", raw.index(line)) < max(flushed)
            return reply

        made.map([lambda n=n: job(n) for n in range(120)])
    assert len(flushed) < 100


def test_a_disk_that_keeps_nothing_stops_every_thread_and_nothing_pretends(server, manifest, tmp_path, monkeypatch):
    server.script(otherwise=slow(0.02, told))
    real, count = os.fsync, []

    def fsync(descriptor):
        count.append(1)
        if len(count) > 3:
            raise OSError(errno.ENOSPC, "full")
        real(descriptor)

    with opened(tmp_path / "run", manifest) as store:
        monkeypatch.setattr(os, "fsync", fsync)
        with Pool(store, concurrency=8) as made, pytest.raises(EnvironmentProblem, match="the disk is full"):
            made.map(jobs(made, range(60)))
        with pytest.raises(EnvironmentProblem, match="E305"):
            store.append({"e": "start", "key": "x"})
        kept = set(store.calls)
    monkeypatch.undo()
    assert {c["key"] for c in calls(tmp_path / "run")} == kept
    held = RunStore.read(tmp_path / "run")
    assert held.notes == [] and set(held.calls) == kept and 0 < len(kept) < 60


def test_threads_that_write_leave_whole_lines_in_an_order_of_their_own(manifest, tmp_path):
    def write(thread):
        for n in range(40):
            key = f"k{thread}-{n}"
            store.append({"e": "start", "key": key})
            store.append({"e": "call", "key": key, "stage": "rc", "model": "m", "prompt_hash": "0" * 64,
                          "outcome": "ok", "text": "Điều 5 " * 50})  # fmt: skip

    with opened(tmp_path / "run", manifest) as store:
        threads = [threading.Thread(target=write, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    again = RunStore.read(tmp_path / "run")
    assert again.notes == [] and len(again.calls) == 480 and again.calls == store.calls
    assert again.resent == 0


# -- asking again what failed --------------------------------------------------------------------


def verdict(call, outcome, **more):
    return {"e": "verdict", "stage": "rc", "target": "r", "scenario": "s1", "draw": 1, "judge": "j",
            "outcome": outcome, "call": call} | more  # fmt: skip


def test_the_old_outcome_stays_until_the_new_one_is_in(server, manifest, tmp_path):
    key = "rc|r1|s1|1"
    server.script(told, status(400, "bad"), otherwise=told)
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        ask(made, 0)
        assert ask(made, 1).outcome == "failed"
        store.append(verdict(key, "failed"))
        before = dict(store.verdicts)
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        assert store.missing() == [key] and store.ask_again(store.missing()) == 1
        assert store.verdict("rc", "r", "s1") is None and store.verdicts == before
        assert ask(made, 0).text == "answer 0" and len(server.requests) == 2
        assert ask(made, 1).text == "answer 1" and len(server.requests) == 3
        # Killed here: the call is in and its verdict is not.
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        assert store.verdicts == before and store.verdict("rc", "r", "s1") is None
        assert ask(made, 1).text == "answer 1" and len(server.requests) == 3
        store.append(verdict(key, "positive"))
    store = RunStore.read(tmp_path / "run")
    assert store.verdict("rc", "r", "s1")["outcome"] == "positive" and store.missing() == []


def test_an_outage_while_asking_again_leaves_the_old_outcome(server, manifest, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    server.script(status(400, "bad"), otherwise=status(500, "down"))
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        ask(made, 1)
        store.append(verdict("rc|r1|s1|1", "failed", error="bad"))
    for _ in range(2):
        with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
            store.ask_again(store.missing())
            with pytest.raises(EnvironmentProblem, match="E307"):
                ask(made, 1)
    store = RunStore.read(tmp_path / "run")
    assert store.calls["rc|r1|s1|1"]["error"] == "bad" and store.verdicts["rc", "r", "s1", 1, ""]["error"] == "bad"


def test_what_is_missing_is_named_by_kind(manifest, tmp_path):
    with opened(tmp_path / "run", manifest) as store:
        for n, (outcome, said) in enumerate([("ok", "negative"), ("ok", "unparsed"), ("failed", "failed"),
                                             ("refused", "refused")]):  # fmt: skip
            key = f"k{n}"
            store.append({"e": "call", "key": key, "stage": "rc", "model": "m", "prompt_hash": "0" * 64,
                          "outcome": outcome})  # fmt: skip
            store.append(verdict(key, said, target=f"r{n}"))
    assert store.missing() == ["k2"]
    assert store.missing(["unparsed", "refused"]) == ["k1", "k3"]


# -- prompts -------------------------------------------------------------------------------------


def test_every_prompt_is_kept_once_and_found_by_its_hash(server, manifest, tmp_path):
    from regatta_tools.harness.showing import show

    server.script(otherwise=told)
    folder = tmp_path / "run"
    for _ in range(2):
        with opened(folder, manifest) as store, Pool(store) as made:
            made.map(jobs(made, range(12)))
    lines = (folder / "prompts.jsonl").read_bytes().splitlines()
    assert len(lines) == 12
    found = show(folder, "rc|r7|s1|1")
    assert found["prompt"]["messages"] == [{"role": "user", "content": "question 7."}] and found["prompt_fits"]
    assert (found["call"]["text"], found["verdicts"]) == ("answer 7", [])
    assert show(folder, "r7")["call"]["key"] == "rc|r7|s1|1" == show(folder, "rc|r7")["call"]["key"]
    number = list(RunStore.read(folder).calls).index("rc|r7|s1|1") + 1
    assert show(folder, str(number)) == found
    for wrong in ("0", "13", "nothing", "rc|"):
        with pytest.raises(InputError, match="U173"):
            show(folder, wrong)
    # Half a line after a kill is cut away, and the prompt is written when it is next sent.
    raw = (folder / "prompts.jsonl").read_bytes()
    (folder / "prompts.jsonl").write_bytes(raw[:-10])
    assert show(folder, json.loads(lines[0])["messages"][0]["content"].removeprefix("question ").rstrip(".").join(
        ("rc|r", "|s1")))["prompt_fits"]  # fmt: skip
    with opened(folder, manifest):
        pass
    assert (folder / "prompts.jsonl").read_bytes() == b"".join(line + b"\n" for line in lines[:-1])


def test_without_its_prompts_a_run_still_goes_on_and_shows_its_calls(server, manifest, tmp_path):
    from regatta_tools.harness.showing import show, table

    server.script(otherwise=told)
    with opened(tmp_path / "run", manifest) as store, Pool(store) as made:
        made.map(jobs(made, range(3)))
    (tmp_path / "run" / "prompts.jsonl").unlink()
    assert show(tmp_path / "run", "1")["prompt"] is None
    assert [row["prompt"] for row in table(tmp_path / "run")] == [None] * 3
