"""A process that has imported everything and forks one run after the other, each to be killed.

``python kill_driver.py SUITE``: for each line on standard input, the folder of a run, it forks a child that makes that
run or goes on with it, says the child's number, and, when the child is gone, how it ended. Forked before any thread is
started.
"""

from __future__ import annotations

import inspect
import os
import sys

import regatta_tools
from regatta_tools.llm import client

MODEL = "openai/fake"


def go_on(folder: str, suite: str, package: object) -> None:
    at_once = {"concurrency": 8} if "concurrency" in inspect.signature(regatta_tools.run).parameters else {}
    regatta_tools.run(suite, cell="insurance-us", judge=MODEL, agent=MODEL, out=folder, package=package, **at_once)


def main(suite: str) -> None:
    package = regatta_tools.load()
    client.check_model(MODEL)
    client._settings("fake", "openai", 0.0, 1, True)
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                go_on(line.rstrip("\n"), suite, package)
                code = 0
            finally:
                os._exit(code)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
