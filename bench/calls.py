"""Throughput of calls: 64 at once of 200 ms each, against a server in a process of its own.

    python bench/calls.py [--calls N] [--write]

It measures, in one process, the whole way of a judge's call (prompt kept, start and call and verdict journalled, call
on the disk before it counts) beside what transports alone do: litellm, and urllib3 without any of our work.
``--write`` writes docs/benchmarks-calls.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

AT_ONCE, SECONDS = 64, 0.2
PROMPT = "Is the obligation tested by this scenario? " * 40
REPLY = '{"covered": false}'
REPEATS = 5

SERVER = """
import asyncio, json, sys
body = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "fake", "choices": [{"index": 0,
    "message": {"role": "assistant", "content": sys.argv[2]}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 400, "completion_tokens": 6, "total_tokens": 406}}).encode()
answer = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            lines = head.lower().split(b"\\r\\n")
            size = next(int(l.split(b":")[1]) for l in lines if l.startswith(b"content-length:"))
            await reader.readexactly(size)
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(answer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def ours(calls: int, folder: Path) -> None:
    """Through the pool, with all that a run journals."""
    from regatta_tools.harness.store import RunStore
    from regatta_tools.llm.pool import Pool
    from regatta_tools.llm.replay import prompt_hash
    from regatta_tools.llm.types import Reply, Request
    from regatta_tools.llm.verdicts import read_verdict

    with RunStore(folder) as store:
        store.open_for_writing({"made_with": {}})
        with Pool(store, concurrency=AT_ONCE) as pool:

            def job(number: int) -> Reply:
                key = f"rc|r{number}|s1|1"
                request = Request("openai/fake", ({"role": "user", "content": PROMPT + str(number)},), max_tokens=50)
                reply = pool.call(request, key, "rc", "openai/fake", prompt_hash(request))
                read = read_verdict("rc", reply)
                store.append({"e": "verdict", "stage": "rc", "target": f"r{number}", "scenario": "s1", "draw": 1,
                              "judge": "openai/fake", "outcome": read.outcome, "call": key})  # fmt: skip
                return reply

            replies = pool.map([lambda n=n: job(n) for n in range(calls)])
    assert len(store.verdicts) == calls and all(r.text == REPLY for r in replies)


def with_litellm(calls: int, _: Path) -> None:
    from regatta_tools.llm.client import _litellm

    litellm = _litellm()

    async def everything() -> None:
        at_once = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with at_once:
                said = await litellm.acompletion(
                    model="openai/fake", messages=[{"role": "user", "content": PROMPT + str(number)}], temperature=0.0,
                    max_tokens=50, timeout=30, num_retries=0, max_retries=0,
                )  # fmt: skip
                assert said.choices[0].message.content == REPLY

        await asyncio.gather(*(one(n) for n in range(calls)))

    asyncio.run(everything())


def with_urllib3(calls: int, _: Path) -> None:
    import urllib3

    pool = urllib3.PoolManager(maxsize=AT_ONCE, retries=False, timeout=30)
    todo, lock = iter(range(calls)), threading.Lock()
    url = os.environ["OPENAI_API_BASE"] + "/chat/completions"

    def work() -> None:
        while True:
            with lock:
                number = next(todo, None)
            if number is None:
                return
            body = json.dumps({"model": "fake", "messages": [{"role": "user", "content": PROMPT + str(number)}]})
            got = pool.request("POST", url, body=body.encode(), headers={"Content-Type": "application/json"})
            assert got.json()["choices"][0]["message"]["content"] == REPLY

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


WAYS: dict[str, tuple[str, Callable[[int, Path], None]]] = {
    "regatta": ("a judge's call of a run, journal and verdict included", ours),
    "urllib3": ("urllib3 from 64 threads, nothing else", with_urllib3),
    "litellm": ("litellm.acompletion on one event loop, nothing else", with_litellm),
}


def measure(calls: int) -> dict[str, dict[str, float]]:
    """Per way the best of :data:`REPEATS`: wall seconds, share of the ideal, milliseconds of processor time a call."""
    out: dict[str, dict[str, float]] = {}
    ideal = calls / AT_ONCE * SECONDS
    with tempfile.TemporaryDirectory(prefix="regatta-bench-") as folder:
        for name, (_, way) in WAYS.items():
            way(AT_ONCE, Path(folder) / f"{name}-warm")
            shares, works = [], []
            for number in range(REPEATS):
                wall, work = time.perf_counter(), time.process_time()
                way(calls, Path(folder) / f"{name}-{number}")
                wall, work = time.perf_counter() - wall, time.process_time() - work
                shares.append(ideal / wall)
                works.append(1000 * work / calls)
            shares.sort(), works.sort()
            out[name] = {"best": shares[-1], "median": shares[REPEATS // 2], "work": works[REPEATS // 2]}
            print(f"{name}: {shares[-1]:.1%} of the ideal at best, {out[name]['median']:.1%} in the middle, "
                  f"{out[name]['work']:.2f} ms of work a call", flush=True)  # fmt: skip
    return out


def page(found: dict[str, dict[str, float]], calls: int, load: float) -> str:
    rows = "\n".join(
        f"| {WAYS[name][0]} | {row['best']:.1%} | {row['median']:.1%} | {row['work']:.2f} |"
        for name, row in found.items()
    )
    own = found["regatta"]["work"] - found["urllib3"]["work"]
    share = found["regatta"]["median"] / found["urllib3"]["median"]
    work, room, each = found["litellm"]["work"], 1000 * SECONDS / AT_ONCE, f"{SECONDS * 1000:.0f} ms"
    machine = f"{os.cpu_count()} processors, Python {platform.python_version()}"
    return f"""# What a call costs us

Written by `python bench/calls.py --write`. {calls} calls, {AT_ONCE} at once, each answered after {each} by a server
in a process of its own on the same machine ({machine}). The load was {load:.1f} when it began: other
work shared the machine. The ideal is `calls / {AT_ONCE} x {SECONDS} s`, {REPEATS} repeats.

| way | of the ideal, best | of the ideal, median | processor ms a call |
| --- | --- | --- | --- |
{rows}

Work a call in all: **{found["regatta"]["work"]:.2f} ms** of processor time, {own:.2f} ms of it beside the
transport's. The aim is at least 95 % of the ideal and under 5 ms. Of what urllib3 alone reaches here we
reach {share:.0%}.

litellm alone needs {work:.1f} ms of work a call, in one process. That is more than the {room:.1f} ms which
{AT_ONCE} calls of {each} leave for each. So OpenAI's plain form (`openai/`, `hosted_vllm/`) is sent by urllib3 from
the thread that asks, with litellm's knowledge of which settings a model takes. Every other provider goes through
litellm, which is fast enough for calls that take seconds.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1920)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks-calls.md")
    options = parser.parse_args()
    words = [sys.executable, "-c", SERVER, str(SECONDS), REPLY]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        os.environ.update(OPENAI_API_BASE=f"http://127.0.0.1:{port}/v1", OPENAI_API_KEY="sk-none", NO_PROXY="127.0.0.1")
        load = os.getloadavg()[0]
        found = measure(options.calls)
        if options.write:
            from regatta_tools.files import replace_file

            replace_file(ROOT / "docs" / "benchmarks-calls.md", page(found, options.calls, load).encode())
    finally:
        server.terminate()
        server.wait(10)


if __name__ == "__main__":
    main()
