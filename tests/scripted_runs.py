"""Small runs with the scripted provider, for the tests of store, harness and score."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import regatta_tools
from regatta_tools.harness.store import RunStore
from regatta_tools.tables.package import Package

ROOT = Path(__file__).resolve().parent.parent
CELL = "insurance-us"
CLI = [sys.executable, "-c", "from regatta_tools.cli.main import main; main()"]

#: The plainest judges and agent; entries put before these win.
NO = [
    {"when": {"stage": "rc"}, "text": '{"covered": false}'},
    {"when": {"stage": "iss"}, "text": '{"score": 3}'},
    {"when": {"stage": "ac"}, "text": '{"category": "none"}'},
    {"when": {"stage": "design"}, "text": '{"exposed": false}'},
    {"when": {"stage": "agent"}, "text": "Within fifteen days."},
    {"when": {"stage": "execution"}, "text": '{"manifested": false}'},
]


@lru_cache(maxsize=1)
def package() -> Package:
    """The package of this checkout, read once. Do not change it."""
    return regatta_tools.load(ROOT)


def requirements() -> list[str]:
    return [r.key for r in package().cell(CELL).requirements]


def faults() -> list[str]:
    return [f.key for f in package().cell(CELL).faults]


def scenario(name: str, *turns: str, **more: Any) -> dict[str, Any]:
    """A scenario; a turn that begins with ``agent:`` is given to the agent."""
    spoken = [
        {"speaker": "agent", "text": t.removeprefix("agent:")}
        if t.startswith("agent:")
        else {"speaker": "user", "text": t}
        for t in turns or ("By when must my claim be acknowledged?",)
    ]
    return {"id": name, "turns": spoken} | more


def write_suite(folder: Path, scenarios: list[dict[str, Any]] | int = 1, name: str = "tiny") -> Path:
    if isinstance(scenarios, int):
        scenarios = [scenario(f"s{i}") for i in range(1, scenarios + 1)]
    path = folder / "suite.json"
    path.write_text(json.dumps({"id": name, "scenarios": scenarios}, ensure_ascii=False), encoding="utf-8")
    return path


def write_script(folder: Path, *first: dict[str, Any], delay: float = 0, name: str = "script.json") -> Path:
    path = folder / name
    entries = [*first, *NO]
    path.write_text(
        json.dumps({"replies": [e | {"delay": delay} if delay else e for e in entries]}, ensure_ascii=False),
        encoding="utf-8",
    )
    return path


def play(suite: Path, script: Path, out: Path, **options: Any) -> RunStore:
    """Run in this process."""
    settings = {"cell": CELL, "judge": f"scripted:{script}", "agent": f"scripted:{script}", "package": package()}
    return regatta_tools.run(suite, out=out, **(settings | options))


def words(suite: Path, script: Path, out: Path, *more: str) -> list[str]:
    """The same run as words of the command line."""
    who = f"scripted:{script}"
    return ["run", str(suite), "--cell", CELL, "--judge", who, "--agent", who, "--out", str(out), *more]


def regatta(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    options = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 120, "check": False} | options
    return subprocess.run([*CLI, *arguments], **options)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*CLI, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
        encoding="utf-8",
    )


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]


def verdicts(store: RunStore | Path) -> dict[Any, Any]:
    """Every verdict with all that was journalled of it, by its key."""
    return dict((store if isinstance(store, RunStore) else RunStore.read(store)).verdicts)
