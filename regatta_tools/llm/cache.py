"""Replies kept by what was asked, in a folder that several runs share.

A reply is found by the hash of all that could change it: the model (with the fingerprint of its weights or script, or
the provider's address), messages, temperature, token limit, seed, schema and draw. Only what a model said is kept: a
call that failed, was filtered or came back empty is asked again. One file holds one reply and is written whole, so
several runs may share a folder at the same time. A file that cannot be read is as good as none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.files import cannot_write, replace_file
from regatta_tools.llm import embedded, scripted
from regatta_tools.llm.types import Reply, Request
from regatta_tools.text import sha256_json

VERSION = 1
#: Outcomes that are kept.
SAID = ("ok", "truncated", "refused")
_KEPT = ("outcome", "text", "finish_reason", "served_model", "prompt_tokens", "completion_tokens", "error")


class Cache:
    """A folder of replies. Raises :class:`EnvironmentProblem` where it cannot be made."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._who: dict[str, list[str]] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def key(self, request: Request) -> str:
        """The hash under which the reply to a request is kept."""
        if request.model not in self._who:
            self._who[request.model] = _identity(request.model)
        return sha256_json(
            [
                VERSION,
                self._who[request.model],
                [dict(m) for m in request.messages],
                request.temperature,
                request.max_tokens,
                request.seed,
                request.schema,
                request.purpose.get("draw", "1"),
            ]
        )

    def get(self, request: Request) -> Reply | None:
        """The kept reply, marked as cached and free of charge; ``None`` where there is none."""
        key = self.key(request)
        try:
            held: Any = json.loads(self._path(key).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(held, dict) or held.get("key") != key or held.get("outcome") not in SAID:
            return None
        return Reply(**{n: held[n] for n in _KEPT if n in held}, cost_usd=0.0, cached=True)

    def put(self, request: Request, reply: Reply) -> None:
        """Keep what a model said. Raises :class:`EnvironmentProblem` where the disk does not take it."""
        if reply.outcome not in SAID or reply.cached:
            return
        key = self.key(request)
        held = {"key": key} | {n: getattr(reply, n) for n in _KEPT if getattr(reply, n) is not None}
        path = self._path(key)
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        replace_file(path, (json.dumps(held, ensure_ascii=False) + "\n").encode("utf-8"))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"


def _identity(model: str) -> list[str]:
    """What tells one model from another of the same name."""
    from regatta_tools.llm import client

    if scripted.is_scripted(model):
        return ["scripted", scripted.fingerprint(model)]
    if embedded.is_embedded(model):
        return ["embedded", str(client.check_model(model)["fingerprint"])]
    try:
        return [model, *client.provider_of(model)[1:]]
    except EnvironmentProblem:
        raise
    except Exception:
        # A name that no provider knows: the call itself will say so.
        return [model]
