"""Random kills: the verdicts of an unbroken run, and no journalled call made again.

Six in the suite; ``REGATTA_KILLS=50 pytest tests/test_kills.py`` is the whole proof.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import fault_server
import pytest
from fault_server import slow, text
from scripted_runs import ROOT, write_suite

import regatta_tools
from regatta_tools.harness.store import RunStore
from regatta_tools.text import sha256_json

AT_ONCE = 8
KILLS = int(os.environ.get("REGATTA_KILLS", "6"))


def hash_of(asked):
    return sha256_json([asked["messages"], asked["temperature"], asked["max_tokens"], asked["seed"]])


def judge_and_agent(handler):
    """Answers by the prompt alone, of every kind that a verdict can be read in or not."""
    prompt = json.dumps(handler.asked["messages"])
    luck = int(sha256_json(handler.asked["messages"])[:4], 16)
    key = next(
        (k for k in ("covered", "exposed", "manifested", "score", "category") if f'{{\\"{k}\\":' in prompt), None
    )
    if key is None:
        said = f"Fifteen days, says number {luck % 7}."
    elif luck % 11 == 0:
        said = "Perhaps."
    else:
        value = {"score": str(1 + luck % 5), "category": '"none"'}.get(key, "true" if luck % 9 == 1 else "false")
        said = f'{{"{key}": {value}}}'
    slow(0.004, text(said))(handler)


def outcomes(folder):
    return {k: (v["outcome"], v.get("value"), v.get("call")) for k, v in RunStore.read(folder).verdicts.items()}


def journalled(folder):
    path = folder / "journal.jsonl"
    raw = path.read_bytes() if path.exists() else b""
    rows = [json.loads(line) for line in raw.split(b"\n")[:-1]]
    return [e["prompt_hash"] for e in rows if e["e"] == "call"]


class Driver:
    def __init__(self, suite: Path) -> None:
        words = [sys.executable, str(ROOT / "tests" / "kill_driver.py"), str(suite)]
        self.process = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        assert self.said() == "ready"

    def said(self) -> str:
        return self.process.stdout.readline().strip()

    def go(self, folder: Path, seconds: float | None) -> int:
        """Start the run; kill it after so many seconds. The exit code, negative for a signal."""
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        child = int(self.said())
        timer = threading.Timer(seconds or 0, os.kill, (child, signal.SIGKILL)) if seconds is not None else None
        if timer:
            timer.start()
        code = int(self.said())
        if timer:
            timer.cancel()
        return code

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture
def server(monkeypatch):
    with fault_server.serving() as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.base)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield server


def test_random_kills_lose_nothing_and_repeat_nothing(server, tmp_path):
    suite, chance = write_suite(tmp_path, 3), random.Random(50)
    driver = Driver(suite)
    server.script(otherwise=judge_and_agent)
    began = time.monotonic()
    assert driver.go(tmp_path / "unbroken", None) == 0
    took = time.monotonic() - began
    expected = outcomes(tmp_path / "unbroken")
    asked_of_unbroken = Counter(map(hash_of, server.requests))
    assert max(asked_of_unbroken.values()) == 1 and len({v[0] for v in expected.values()}) >= 4

    killed, round_number = 0, 0
    while killed < KILLS:
        folder = tmp_path / f"run{round_number}"
        round_number += 1
        server.script(otherwise=judge_and_agent)
        code, kills = -9, 0
        while code != 0:
            before = journalled(folder)
            seen = len(server.requests)
            # Several kills to a run.
            code = driver.go(folder, chance.uniform(0.1, took * 0.6))
            assert code in (0, -signal.SIGKILL)
            kills += code != 0
            again = {*map(hash_of, server.requests[seen:])} & {*before}
            assert not again, "a journalled call was made again"
            now = journalled(folder)
            assert now[: len(before)] == before and len(now) == len({*now})
        killed += kills
        assert outcomes(folder) == expected
        stored = RunStore.read(folder)
        # Every request was journalled as started, and one too many was in flight at a kill.
        assert sum(stored.starts.values()) >= len(server.requests) >= len(stored.calls)
        assert len(server.requests) - len(stored.calls) <= stored.resent <= AT_ONCE * kills
        evidence, other = regatta_tools.score(folder), regatta_tools.score(tmp_path / "unbroken")
        for one in (evidence, other):
            one["cost"].pop("resent")
            one.pop("notes")
        assert json.dumps(evidence) == json.dumps(other)
    driver.close()
    print(f"{killed} kills in {round_number} runs of {len(expected)} verdicts")
