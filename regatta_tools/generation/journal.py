"""The journal of one generated suite: an append-only file of every call, from which generation goes on.

The first line is the plan, ``{"e": "plan", ...}``; then come ``start`` (a call is about to be sent), ``call`` (as it
came back, with the raw text) and ``stop`` (the model could not be asked; the call counts as not made). Each ``call`` is
on the disk before it is read. Half a last line, after a kill, moves to a file ``.damaged`` beside it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.files import append_line, cannot_write
from regatta_tools.harness.store import line_of
from regatta_tools.llm.types import KEPT, Reply


class Journal:
    """Open for writing as a context manager. ``calls`` are those that came back, by key.

    Raises :class:`InputError` (U236) where the file was begun under another plan, (U237) where it is no journal, and
    :class:`EnvironmentProblem` where it cannot be written.
    """

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        self.path, self.plan = path, plan
        self.calls: dict[str, dict[str, Any]] = {}
        self.resent = 0
        self._open: set[str] = set()
        self._descriptor: int | None = None

    def __enter__(self) -> Journal:
        try:
            raw = self.path.read_bytes() if self.path.exists() else b""
            whole = raw.rfind(b"\n") + 1
            self._read(raw[:whole])
            if whole < len(raw):
                with self.path.with_suffix(".damaged").open("ab") as stream:
                    stream.write(raw[whole:] + b"\n")
                os.truncate(self.path, whole)
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        if not whole:
            self.append({"e": "plan", **self.plan})
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read(self, raw: bytes) -> None:
        for number, line in enumerate(raw.splitlines(), 1):
            try:
                event = json.loads(line)
                kind = event.pop("e")
                if number == 1:
                    if kind != "plan":
                        raise ValueError
                    self._same(event)
                elif kind == "start":
                    self.resent += event["key"] in self._open
                    self._open.add(event["key"])
                elif kind == "stop":
                    self._open.discard(event["key"])
                    self.calls.pop(event["key"], None)
                elif kind == "call" and all(name in event for name in ("key", "prompt_hash", "outcome")):
                    self._open.discard(event["key"])
                    self.calls[event["key"]] = event
                else:
                    raise ValueError
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise InputError(
                    "this is no journal of generation", code="U237", place=f"{self.path}:{number}",
                    mend="bring the file back as it was, or give --out another folder",
                ) from error  # fmt: skip

    def _same(self, held: dict[str, Any]) -> None:
        changed = [name for name in {**held, **self.plan} if held.get(name) != self.plan.get(name)]
        if changed:
            said = (f"{n} was {held.get(n)!r}, is {self.plan.get(n)!r}" for n in changed if n != "hashes")
            what = "; ".join(said) or "the context, the prompts or the form changed"
            raise InputError(
                f"this suite was begun with other settings, so it cannot go on: {what}", code="U236",
                place=str(self.path), mend="give --out another folder, or bring back what changed",
            )  # fmt: skip

    def held(self, key: str, prompt_hash: str) -> Reply | None:
        """The journalled reply to the very same prompt."""
        event = self.calls.get(key)
        if event is None or event["prompt_hash"] != prompt_hash:
            return None
        return Reply.journalled(event)

    def keep(self, key: str, prompt_hash: str, reply: Reply) -> None:
        """Write down how a call came back."""
        said = {name: getattr(reply, name) for name in KEPT if getattr(reply, name) is not None}
        event = {"e": "call", "key": key, "prompt_hash": prompt_hash, **said, "attempts": reply.attempts}
        self.append(event)
        self.calls[key] = {k: v for k, v in event.items() if k != "e"}

    def append(self, event: dict[str, Any]) -> None:
        """Write one event, whole or not at all."""
        assert self._descriptor is not None
        if event["e"] == "start":
            self.resent += event["key"] in self._open
        try:
            append_line(self._descriptor, line_of(event), sync=event["e"] != "start")
        except OSError as error:
            raise cannot_write(self.path, error) from error
