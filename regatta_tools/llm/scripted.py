"""A provider that answers from a file: deterministic, offline, for tests and for trying things out.

The file (YAML or JSON) holds ``replies``, a list of entries tried in order; the first that fits answers:

``when``
    what the call is for, any of ``stage``, ``target``, ``scenario``, ``draw``, ``turn``, ``arm``
    (all given ones must be equal; a list means any of its values), and ``contains``, a text that must
    occur in the messages. Left out, the entry always fits.
``text``, ``finish_reason``, ``outcome``, ``error``, ``delay`` (seconds)
    the reply. ``outcome`` is one of ok, truncated, refused, filtered, empty, failed.

Use it as the model name ``scripted:FILE``.
"""

from __future__ import annotations

import hashlib
import math
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from regatta_tools.errors import InputError
from regatta_tools.llm.types import CallOutcome, Reply, Request

PREFIX = "scripted:"
_WHEN = {"stage", "target", "scenario", "draw", "turn", "arm", "contains"}
_ENTRY = {"when", "text", "finish_reason", "outcome", "error", "delay"}


def is_scripted(model: str) -> bool:
    return model.startswith(PREFIX)


def fingerprint(model: str) -> str:
    """SHA-256 of the script. Raises :class:`InputError` where the file cannot be used."""
    entries(model)
    return hashlib.sha256(Path(model.removeprefix(PREFIX)).read_bytes()).hexdigest()


def entries(model: str) -> tuple[dict[str, Any], ...]:
    """The checked entries of a script. Raises :class:`InputError` where the file is not of the form above."""
    path = Path(model.removeprefix(PREFIX))
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"the script cannot be read: {error.strerror}", code="U101", place=str(path)) from error
    return _entries(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _entries(path: Path, _changed: int, _size: int) -> tuple[dict[str, Any], ...]:
    from regatta_tools.documents import SyntaxProblem, read_document

    try:
        value = read_document(path).value
    except SyntaxProblem as problem:
        raise InputError(problem.message, code=problem.code, place=f"{path}:{problem.line}") from problem
    except OSError as error:
        raise InputError(f"the script cannot be read: {error.strerror}", code="U101", place=str(path)) from error
    replies = value.get("replies") if isinstance(value, dict) else None
    if not isinstance(replies, list) or not replies:
        raise InputError("the script holds no list `replies`", code="U105", place=str(path))
    for number, entry in enumerate(replies, 1):
        if not _well_formed(entry):
            raise InputError(f"reply {number} of the script is not of its form", code="U105", place=str(path))
    return tuple(replies)


def _well_formed(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) - _ENTRY or not isinstance(entry.get("when", {}), dict):
        return False
    texts = (entry.get("text", ""), entry.get("finish_reason", ""), entry.get("error", ""))
    delay = entry.get("delay", 0)
    return (
        not set(entry.get("when", {})) - _WHEN
        and entry.get("outcome", "ok") in get_args(CallOutcome)
        and all(isinstance(t, str) for t in texts)
        and isinstance(delay, int | float)
        and not isinstance(delay, bool)
        and math.isfinite(delay)
        and delay >= 0
    )


def complete(request: Request) -> Reply:
    """Answer from the script. A call that no entry fits ends as ``failed``: silence is never an answer."""
    whole = "\n".join(m["content"] for m in request.messages)
    for entry in entries(request.model):
        if _fits(entry.get("when", {}), request.purpose, whole):
            if entry.get("delay"):
                time.sleep(float(entry["delay"]))
            text = entry.get("text", "")
            return Reply(
                outcome=entry.get("outcome") or ("ok" if text else "empty"),
                text=text,
                finish_reason=entry.get("finish_reason", "stop"),
                served_model="scripted",
                prompt_tokens=len(whole.split()),
                completion_tokens=len(text.split()),
                cost_usd=0.0,
                error=entry.get("error"),
            )
    return Reply("failed", error="no entry of the script fits this call", served_model="scripted", cost_usd=0.0)


def _fits(when: dict[str, Any], purpose: dict[str, str], whole: str) -> bool:
    for key, wanted in when.items():
        if key == "contains":
            if str(wanted) not in whole:
                return False
        elif purpose.get(key) not in ([str(w) for w in wanted] if isinstance(wanted, list) else [str(wanted)]):
            return False
    return True
