"""The prompts of a run as they were sent, beside its journal.

``prompts.jsonl`` has one line for each prompt, found by the hash that the journal names: messages, temperature, token
limit, seed. It is written before the call is sent and not forced to the disk: a run goes on without it, and what a
power cut takes from it is missing from :mod:`regatta_tools.harness.showing` and nowhere else.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from regatta_tools.files import cannot_write

PROMPTS = "prompts.jsonl"
_HASH = re.compile(rb'\{"prompt_hash":"([0-9a-f]{64})"')


class Kept:
    """The prompts of one run folder. Not for several threads at once: the store holds its lock around it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROMPTS
        self._stream: IO[bytes] | None = None
        self._known: set[bytes] = set()

    def open_for_writing(self) -> None:
        """Take up the file; half a last line is cut away. Raises :class:`OSError`."""
        whole = 0
        if self.path.exists():
            with self.path.open("rb") as stream:
                for line in stream:
                    if line.endswith(b"\n"):
                        whole += len(line)
                        if found := _HASH.match(line):
                            self._known.add(found[1])
            if whole < self.path.stat().st_size:
                os.truncate(self.path, whole)
        self._stream = self.path.open("ab", buffering=0)

    def add(self, prompt_hash: str, sent: dict[str, Any]) -> None:
        """Keep a prompt once. Raises :class:`EnvironmentProblem` where the disk does not take it."""
        key = prompt_hash.encode()
        if self._stream is None or key in self._known:
            return
        text = json.dumps({"prompt_hash": prompt_hash} | sent, ensure_ascii=False, separators=(",", ":"))
        line = text.encode("utf-8", "backslashreplace") + b"\n"
        size = os.fstat(self._stream.fileno()).st_size
        try:
            if self._stream.write(line) != len(line):
                raise OSError(28, os.strerror(28))
        except OSError as error:
            try:
                os.ftruncate(self._stream.fileno(), size)
            except OSError:
                self.close()
            raise cannot_write(self.path, error) from error
        self._known.add(key)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def prompts(folder: Path) -> Iterator[dict[str, Any]]:
    """The kept prompts of a run, in the order in which they were first sent; none where there is no such file."""
    try:
        stream = (folder / PROMPTS).open("rb")
    except OSError:
        return
    with stream:
        for line in stream:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and isinstance(value.get("prompt_hash"), str):
                yield value


def prompt(folder: Path, prompt_hash: str) -> dict[str, Any] | None:
    """The prompt with this hash, as it was sent."""
    return next((p for p in prompts(folder) if p["prompt_hash"] == prompt_hash), None)
