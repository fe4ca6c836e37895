"""A provider that answers from a stored run: the same prompt gets the reply that it got then, offline and free.

Use it as the model name ``replay:RUN``, RUN being the folder of a run. A call that failed then fails again, with the
same words. A prompt that the run never sent fails: a replay invents nothing.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools.llm.types import Reply, Request
from regatta_tools.text import sha256_json

PREFIX = "replay:"
_SAID = (
    "outcome", "text", "finish_reason", "served_model", "prompt_tokens", "completion_tokens", "cost_usd", "error",
)  # fmt: skip


def is_replay(model: str) -> bool:
    return model.startswith(PREFIX)


def models(model: str) -> dict[str, dict[str, Any]]:
    """Who judged and answered in the stored run, by stage, as its manifest has it (class ``ModelUse``).

    A run that replays it takes these entries for its own manifest, so that its evidence names the models that spoke.
    Raises :class:`~regatta_tools.errors.InputError` (U107) where the folder holds no run.
    """
    return {entry["stage"]: entry for entry in _read(model)[0]}


def complete(request: Request) -> Reply:
    """The stored reply to a request, found by the hash of its messages, temperature, token limit and seed."""
    _, calls = _read(request.model)
    held = calls.get(prompt_hash(request))
    if held is None:
        return Reply("failed", error="the stored run holds no call with this prompt", cost_usd=0.0)
    said = {name: held[name] for name in _SAID if name in held}
    return Reply(**said, attempts=held.get("attempts", 1), cached=held.get("cached", False))


def prompt_hash(request: Request) -> str:
    """The hash under which a journal names a prompt."""
    return sha256_json([[dict(m) for m in request.messages], request.temperature, request.max_tokens, request.seed])


def _read(model: str) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    from regatta_tools.harness.store import JOURNAL, RunStore

    folder = Path(model.removeprefix(PREFIX))
    try:
        state = (folder / JOURNAL).stat()
    except OSError:
        RunStore.read(folder)
        return [], {}
    return _stored(folder, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _stored(folder: Path, _changed: int, _size: int) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    from regatta_tools.harness.store import RunStore

    store = RunStore.read(folder)
    return store.manifest["models"], {call["prompt_hash"]: call for call in store.calls.values()}
