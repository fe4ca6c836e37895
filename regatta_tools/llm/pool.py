"""Calls at once: journal, cache, limits and money, one :class:`Pool` for one run.

Every call of a run goes through :meth:`Pool.call`, from any thread. A call that the journal already holds with the
same prompt is taken from there; else it is looked up in the cache, journalled as started, paid for out of the budget,
sent, and journalled as it came back. :meth:`Pool.map` runs the jobs that make the calls over threads.

How many calls are in flight at once to one provider follows what the provider takes: one more for each round of calls
that went well, half as many when it answers "too many" (additive increase, multiplicative decrease; Chiu and Jain,
Computer Networks and ISDN Systems 17, 1989). A Retry-After holds back every call to that provider.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.harness.store import RunStore
from regatta_tools.llm import client, embedded, replay
from regatta_tools.llm.cache import Cache
from regatta_tools.llm.prices import Prices, pinned
from regatta_tools.llm.types import KEPT, Abandoned, Reply, Request

T = TypeVar("T")

#: Tries of one call to which the provider answers "too many" before the call has failed (about six minutes).
THROTTLES = 12
#: Seconds that running calls get to end in when the run stops for a reason that leaves them useful.
DRAIN = 5.0
#: Longest pause in seconds between two tries while an outage is waited out.
PAUSE = 60.0


class BudgetSpent(EnvironmentProblem):
    """A limit that the user set is reached (E312): a clean stop, from which the same command goes on."""


@dataclass(frozen=True)
class Pace:
    """How far the calls are. ``made`` were answered in ``seconds``, ``cached`` came out of the cache, ``flying`` are on
    their way; ``cost_usd`` is what the run cost so far, earlier sittings included, as far as prices are known."""

    made: int
    cached: int
    flying: int
    seconds: float
    cost_usd: float
    unpriced: int

    @property
    def per_minute(self) -> float:
        return 60 * self.made / self.seconds if self.seconds > 0 else 0.0


class Lane:
    """The calls to one provider: how many may be in flight, and until when none may start."""

    def __init__(self, most: int, stopping: threading.Event) -> None:
        self.most, self.limit, self.stopping = most, float(most), stopping
        self.flying = 0
        self.held_until = self.cut_at = 0.0
        self.change = threading.Condition()

    def enter(self) -> float:
        """Wait for a place; the time of entry. Raises :class:`Abandoned` where the run stops."""
        with self.change:
            while True:
                if self.stopping.is_set():
                    raise Abandoned
                now = time.monotonic()
                if now >= self.held_until and self.flying < int(self.limit):
                    self.flying += 1
                    return now
                self.change.wait(min(0.5, max(0.001, self.held_until - now)) if now < self.held_until else 0.5)

    def leave(self) -> None:
        with self.change:
            self.flying -= 1
            self.change.notify()

    def told(self, made: client.Try, entered: float) -> None:
        """Take in how a try ended."""
        with self.change:
            now = time.monotonic()
            if made.throttled:
                # One cut for all calls that were in flight together.
                if entered >= self.cut_at:
                    self.limit, self.cut_at = max(1.0, self.limit / 2), now
                if made.wait and made.wait <= client.MAX_WAIT:
                    self.held_until = max(self.held_until, now + made.wait)
            elif not made.reply.unreachable and self.limit < self.most:
                self.limit = min(float(self.most), self.limit + 1 / self.limit)
                self.change.notify()


class Purse:
    """Money and number of calls, over the whole run. ``None`` is no limit."""

    def __init__(
        self, store: RunStore, prices: Prices, max_calls: int | None, budget: float | None, stopping: threading.Event
    ) -> None:
        self.store, self.prices, self.max_calls, self.budget, self.stopping = store, prices, max_calls, budget, stopping
        self.spent, self.reserved = store.spent_usd, 0.0
        self.change = threading.Condition()

    def count(self) -> None:
        """Raise :class:`BudgetSpent` where no further call may be sent. Called before its start is journalled."""
        if self.max_calls is not None and self.store.sent >= self.max_calls:
            raise _spent(f"all {self.max_calls} calls of --max-calls are made", "--max-calls")

    def reserve(self, request: Request) -> float:
        """Set aside what a try may cost at most (0 without a budget). Raises :class:`BudgetSpent` where it is not
        there, and not before calls in flight, whose estimates are high, have been settled."""
        most = self.prices.at_most(request)
        if self.budget is None:
            return most or 0.0
        if most is None:
            self.prices.refuse_unpriced([request.model])
            raise AssertionError(request.model)
        with self.change:
            while self.spent + self.reserved + most > self.budget:
                if self.stopping.is_set():
                    raise Abandoned
                if self.reserved == 0.0:
                    raise _spent(
                        f"{self.spent:.4f} of {self.budget:g} dollars are spent, and the next call may cost {most:.4f}",
                        "--budget-usd",
                    )
                self.change.wait(0.5)
            self.reserved += most
        return most

    def settle(self, reserved: float, cost: float) -> None:
        """Give back what was set aside and take what it cost."""
        with self.change:
            # Whole again, whatever the roundings of many sums.
            self.reserved = max(0.0, self.reserved - reserved) if self.budget is not None else 0.0
            if self.reserved < 1e-12:
                self.reserved = 0.0
            self.spent += cost
            self.change.notify_all()


def _spent(what: str, option: str) -> BudgetSpent:
    return BudgetSpent(what, code="E312", mend=f"raise {option}; the same command goes on where it stopped")


class _Passage(client.Gate):
    """One call on its way through lane and purse."""

    throttles = THROTTLES

    def __init__(self, pool: Pool, request: Request) -> None:
        super().__init__(self._wait)
        self.pool, self.request = pool, request
        self.lane = pool._lane(request.model)
        self.flying = pool._flying
        #: Whether a try is out; if it is abandoned there, nobody knows what became of it.
        self.out = False
        self.lost_usd = 0.0

    def _wait(self, seconds: float) -> None:
        if self.pool._stopping.wait(seconds):
            raise Abandoned

    @contextlib.contextmanager
    def passage(self) -> Iterator[Callable[[client.Try], None]]:
        entered = self.lane.enter()
        purse, reserved, cost = self.pool.purse, 0.0, 0.0
        try:
            reserved = purse.reserve(self.request)
            cost = reserved  # until it is known what became of it
            self.out = True

            def ended(made: client.Try) -> None:
                nonlocal cost
                self.out = False
                self.lane.told(made, entered)
                cost = self.pool._cost(self.request, made.reply, reserved)
                if made.reply.lost:
                    self.lost_usd += cost

            try:
                yield ended
            except EnvironmentProblem:
                self.out, cost = False, 0.0
                raise
            finally:
                purse.settle(reserved, cost)
        finally:
            self.lane.leave()


class Pool:
    """The calls of one run, to be used as a context manager.

    ``store`` is open for writing. ``concurrency`` is the most calls in flight at once to one provider; a model in this
    process gets one at a time, in the main thread. ``max_calls`` and ``budget_usd`` are limits over the whole run, with
    what its journal already holds. ``cache`` is a folder of replies (or a :class:`~regatta_tools.llm.cache.Cache`),
    shared between runs; ``prices`` a :class:`~regatta_tools.llm.prices.Prices`, by default the pinned ones. ``models``
    are those that will be asked: with a budget, one without a known price is refused here (U171), before anything is
    spent. ``patience`` is the number of seconds for which an outage of a model that has answered before is waited out;
    0 stops at once (E307).
    """

    def __init__(
        self, store: RunStore, *, concurrency: int = 8, max_calls: int | None = None, budget_usd: float | None = None,
        cache: Cache | Path | str | None = None, prices: Prices | None = None, models: Iterable[str] = (),
        patience: float = 0.0,
    ) -> None:  # fmt: skip
        self.store, self.concurrency, self.patience = store, max(1, concurrency), patience
        self.prices = prices or pinned()
        if budget_usd is not None:
            self.prices.refuse_unpriced(models)
        self.cache = cache if cache is None or isinstance(cache, Cache) else Cache(cache)
        self._stopping = threading.Event()
        self.purse = Purse(store, self.prices, max_calls, budget_usd, self._stopping)
        self._lock = threading.Lock()
        self._lanes: dict[tuple[str, ...], Lane] = {}
        self._flying: set[Any] = set()
        #: Calls that only the main thread may make (a model in this process), while it waits in :meth:`map`.
        self._main: queue.SimpleQueue[Any] | None = None
        #: Per model the calls that did not reach it, and when, since it last replied; no entry where it never did.
        self._unreached: dict[str, list[tuple[str, float]]] = {}
        self._answered: dict[str, float] = {}
        self._began, self._made, self._cached, self._unpriced = time.monotonic(), 0, 0, 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        """No call starts any more, those in flight are given up."""
        self._stopping.set()
        for future in list(self._flying):
            future.cancel()

    def pace(self) -> Pace:
        """How far the calls are; from any thread, at any time."""
        flying = sum(lane.flying for lane in self._lanes.values())
        seconds = time.monotonic() - self._began
        return Pace(self._made, self._cached, flying, seconds, self.purse.spent, self._unpriced)

    # -- one call --------------------------------------------------------------------------------

    def call(self, request: Request, key: str, stage: str, model_name: str, prompt_hash: str) -> Reply:
        """Make a call, or take it from the journal where it is already there. May be called from any thread.

        ``key`` names the call in the journal, ``model_name`` is how the journal names the model, ``prompt_hash`` the
        SHA-256 of the messages and settings: a journalled call with another hash is made anew. Raises
        :class:`BudgetSpent`, :class:`EnvironmentProblem` for what makes every further call useless (a wrong key, a
        model that is out of reach, E307), and :class:`~regatta_tools.llm.types.Abandoned` where another call of the
        pool has raised.
        """
        held = self.store.held(key)
        if held is not None and held["prompt_hash"] == prompt_hash:
            return Reply.journalled(held)
        if self._stopping.is_set():
            raise Abandoned
        self._keep_prompt(request, prompt_hash)
        began = time.monotonic()
        cache = self.cache if not replay.is_replay(request.model) else None
        reply = cache.get(request) if cache is not None else None
        lost_usd = 0.0
        if reply is None:
            reply, lost_usd = self._made_anew(request, key)
        with self._lock:
            self._made += not reply.cached
            self._cached += reply.cached
            self._unpriced += reply.cost_usd is None
        event = {
            "e": "call", "key": key, "stage": stage, "model": model_name, "prompt_hash": prompt_hash,
            **{n: getattr(reply, n) for n in KEPT}, "attempts": reply.attempts, "cached": reply.cached or None,
            "lost_usd": lost_usd or None,
        }  # fmt: skip
        self.store.append({k: v for k, v in event.items() if v is not None})
        if cache is not None:
            cache.put(request, reply)
        self._out_of_reach(request, key, reply, began)
        return reply

    def _keep_prompt(self, request: Request, prompt_hash: str) -> None:
        sent = {
            "messages": [dict(m) for m in request.messages], "temperature": request.temperature,
            "max_tokens": request.max_tokens, "seed": request.seed,
        }  # fmt: skip
        self.store.keep_prompt(prompt_hash, sent)

    def _made_anew(self, request: Request, key: str) -> tuple[Reply, float]:
        """Send a call; its reply, and what lost tries may have cost."""
        self.purse.count()
        unknown = self.store.unanswered(key)
        if unknown and (most := self.prices.at_most(request)):
            # In flight at a kill: the provider may have charged for it.
            self.purse.settle(0.0, unknown * most)
        self.store.append({"e": "start", "key": key})
        way = _Passage(self, request)
        try:
            reply = self._patiently(request, way)
        except EnvironmentProblem:
            self.store.append({"e": "stop", "key": key})
            raise
        except Abandoned:
            if not way.out:
                self.store.append({"e": "stop", "key": key})
            raise
        if reply.unreachable and self._stopping.is_set():
            self.store.append({"e": "stop", "key": key})
            raise Abandoned
        if not client.stays_here(request.model):
            reply = replace(
                reply, cost_usd=self.prices.cost(request.model, reply.prompt_tokens, reply.completion_tokens)
            )
        return reply, way.lost_usd

    def _patiently(self, request: Request, way: _Passage) -> Reply:
        """Send a call, and while its model is out of reach for everybody, again and again for as long as is allowed."""
        began, pause, tries, lost = time.monotonic(), 5.0, 0, 0
        failed_first: float | None = None
        while True:
            round_began = time.monotonic()
            reply = self._send(request, way)
            tries, lost = tries + reply.attempts, lost + reply.lost
            reply = replace(reply, attempts=tries, lost=lost)
            if not reply.unreachable:
                self._answered[request.model] = time.monotonic()
                return reply
            last = self._answered.get(request.model)
            # Others were answered after it first failed, and then it failed again: it is this call, not the way.
            alone = failed_first is not None and last is not None and failed_first < last < round_began
            if last is None or alone or time.monotonic() - began + pause > self.patience:
                return reply
            failed_first = failed_first or time.monotonic()
            way.sleep(pause)
            pause = min(2 * pause, PAUSE)

    def _send(self, request: Request, way: _Passage) -> Reply:
        if embedded.is_embedded(request.model) and self._main is not None:
            answer: queue.SimpleQueue[tuple[Reply | None, BaseException | None]] = queue.SimpleQueue()
            self._main.put((request, answer))
            reply, error = answer.get()
            if error is not None:
                raise error
            assert reply is not None
            return reply
        if client.stays_here(request.model):
            return client.complete(request)
        return client.complete(request, gate=way)

    def _lane(self, model: str) -> Lane:
        who = ("here",) if client.stays_here(model) else client.provider_of(model)[1:]
        with self._lock:
            return self._lanes.setdefault(who, Lane(self.concurrency, self._stopping))

    def _cost(self, request: Request, reply: Reply, at_most: float) -> float:
        """What a try cost; where the answer was lost or does not say, what it may have cost at most."""
        if reply.lost:
            return at_most
        if reply.outcome == "failed":
            return 0.0
        cost = self.prices.cost(request.model, reply.prompt_tokens, reply.completion_tokens)
        return at_most if cost is None else cost

    def _out_of_reach(self, request: Request, key: str, reply: Reply, began: float) -> None:
        """Stop the run where the model is out of reach, and not this call alone (E307).

        That is where the first call to a model does not reach it, or :data:`~regatta_tools.llm.client.UNREACHED` calls
        do not and none that began after them does. The journal then takes those calls back, so that the same command
        asks them again.
        """
        model = request.model
        with self._lock:
            lost = self._unreached.get(model)
            if not reply.unreachable:
                # What was on its way when the others failed says nothing of the way as it is now.
                self._unreached[model] = [(name, when) for name, when in lost or [] if when >= began]
                return
            taken_back = [name for name, _ in lost or []] + [key]
            if not self._stopping.is_set():
                if lost is not None and len(taken_back) < client.UNREACHED:
                    lost.append((key, time.monotonic()))
                    return
                self._stopping.set()
                reason: BaseException = client.out_of_reach(model, reply)
            else:
                reason = Abandoned()
            self._unreached[model] = []
        for name in taken_back:
            self.store.append({"e": "stop", "key": name})
        raise reason

    # -- many jobs -------------------------------------------------------------------------------

    def map(self, jobs: Iterable[Callable[[], T]], progress: Callable[[int, int], None] | None = None) -> list[T]:
        """Run jobs without arguments over threads; their results in the order of the jobs.

        To be called from one thread at a time. ``progress(done, of)`` is called in that thread. On the first exception
        of a job, or Ctrl-C, no new job starts, and the exception is raised once: when the calls that are out have ended
        (a spent budget: they are paid for), after :data:`DRAIN` seconds at most (a provider that cannot be used), or at
        once (Ctrl-C). A running job ends with :class:`~regatta_tools.llm.types.Abandoned` at its next call. After an
        exception the pool makes no call any more.
        """
        if self._stopping.is_set():
            raise RuntimeError("the pool has stopped")
        waiting = list(jobs)
        results: list[Any] = [None] * len(waiting)
        report = progress or (lambda done, of: None)
        if self.concurrency == 1 or len(waiting) < 2:
            try:
                for number, job in enumerate(waiting):
                    results[number] = job()
                    report(number + 1, len(waiting))
            except BaseException:
                self._stop()
                raise
            return results
        inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threads = self._threads(waiting, results, inbox)
        self._main = inbox
        try:
            for thread in threads:
                thread.start()
            self._serve(inbox, len(waiting), report)
        except BaseException as error:
            self._stopping.set()
            self._drain(threads, inbox, error)
            raise
        finally:
            self._main = None
        return results

    def _threads(
        self, jobs: list[Callable[[], T]], results: list[Any], inbox: queue.SimpleQueue[Any]
    ) -> list[threading.Thread]:
        todo, lock = iter(range(len(jobs))), threading.Lock()

        def work() -> None:
            while not self._stopping.is_set():
                with lock:
                    number = next(todo, None)
                if number is None:
                    return
                try:
                    results[number] = jobs[number]()
                except BaseException as error:
                    self._stopping.set()
                    inbox.put(error)
                    return
                inbox.put(None)

        # Daemons: a script that sleeps, or a library that does not come back, must not hold up the exit.
        count = min(self.concurrency, len(jobs))
        return [threading.Thread(target=work, name=f"regatta-{n}", daemon=True) for n in range(1, count + 1)]

    def _serve(self, inbox: queue.SimpleQueue[Any], total: int, report: Callable[[int, int], None]) -> None:
        """Wait for the jobs; make the calls for them that only this thread may make."""
        done = 0
        while done < total:
            try:
                # With a timeout, so that Ctrl-C is heard on every system.
                item = inbox.get(timeout=0.5)
            except queue.Empty:
                continue
            if isinstance(item, Abandoned):
                # Another job has raised; its exception is on its way.
                continue
            if isinstance(item, BaseException):
                raise item
            if item is None:
                done += 1
                report(done, total)
            else:
                _answer(*item)

    def _drain(self, threads: list[threading.Thread], inbox: queue.SimpleQueue[Any], first: BaseException) -> None:
        """Let what is out come in, for as long as it is worth it."""
        end = time.monotonic()
        if isinstance(first, BudgetSpent):
            end = float("inf")
        elif isinstance(first, EnvironmentProblem):
            end += DRAIN
        try:
            while any(t.is_alive() for t in threads) and time.monotonic() < end:
                _turn_away(inbox, 0.05)
        finally:
            self._stop()
            end = time.monotonic() + 1.0
            while any(t.is_alive() for t in threads) and time.monotonic() < end:
                _turn_away(inbox, 0.02)


def _answer(request: Request, answer: queue.SimpleQueue[Any]) -> None:
    try:
        answer.put((client.complete(request), None))
    except Exception as error:
        answer.put((None, error))
    except BaseException:
        answer.put((None, Abandoned()))
        raise


def _turn_away(inbox: queue.SimpleQueue[Any], seconds: float) -> None:
    with contextlib.suppress(queue.Empty):
        item = inbox.get(timeout=seconds)
        if isinstance(item, tuple):
            item[1].put((None, Abandoned()))
