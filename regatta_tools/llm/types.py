"""The two records that pass between the harness and any provider.

Nothing here imports a provider library, so the harness, the tests and the command line can
speak about calls without paying for the import of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: How one call ended, before anyone reads a verdict in it (protocol, section 11).
#: ``ok``: the provider finished a text. ``truncated``: the token limit cut it. ``refused``: the
#: provider marked a refusal. ``filtered``: a content filter withheld it. ``empty``: no choice, no
#: message or no text (a bare tool call counts here). ``failed``: no reply came at all.
CallOutcome = Literal["ok", "truncated", "refused", "filtered", "empty", "failed"]


#: What of a reply a journal keeps.
KEPT = (
    "outcome", "text", "finish_reason", "served_model", "prompt_tokens", "completion_tokens", "cost_usd", "error",
)  # fmt: skip


class Abandoned(BaseException):
    """Ends a call, and the job that made it, because the run stops.

    No ``Exception``: nobody is to take it for the outcome of a call.
    """


@dataclass(frozen=True)
class Request:
    """One call to a model.

    ``messages`` are chat messages (``{"role": ..., "content": ...}``), sent as they stand.
    ``schema`` is a JSON Schema that the reply should follow; a provider that can constrain its
    decoding does so, one that cannot ignores it, and the parser never relies on it.
    ``timeout`` is seconds for the whole call, retries not included.
    """

    model: str
    messages: tuple[dict[str, str], ...]
    temperature: float = 0.0
    max_tokens: int = 256
    seed: int | None = None
    schema: dict[str, Any] | None = None
    timeout: float = 120.0
    #: What the call is for (stage, target, scenario, draw, turn). Never sent to a model: a judge that
    #: saw it would not be blind. The scripted provider matches on it.
    purpose: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What came back, kept as it came.

    ``text`` is the raw reply (empty where there was none), ``finish_reason`` the provider's own
    word, ``served_model`` the model that answered by its own account. Token counts and
    ``cost_usd`` are ``None`` where unknown: an unknown price is never zero.
    ``error`` says in one line what went wrong where ``outcome`` is not ``ok``.
    ``unreachable`` marks a failure of the way to the model (no connection, timeout, server error after
    all tries) as against one of this very call: the next call may well fare no better.
    """

    outcome: CallOutcome
    text: str = ""
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    error: str | None = None
    attempts: int = 1
    unreachable: bool = False
    cached: bool = False
    lost: int = 0

    @classmethod
    def journalled(cls, event: Mapping[str, Any]) -> Reply:
        """The reply that a journal holds."""
        said = {name: event[name] for name in KEPT if name in event}
        return cls(**said, attempts=event.get("attempts", 1), cached=event.get("cached", False))
