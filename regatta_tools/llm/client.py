"""One call to one model: retries, timeouts and outcomes, all providers through litellm.

Only the scripted provider does not pass through litellm: it is a file, not a model. What a provider
does wrong (no choices, no message, no content, a filter, a dropped connection) becomes the outcome of
that one call and never an exception, so that a run goes on (cases A17 and A18). An exception is kept
for what makes every further call useless: a wrong key, an unknown model, missing weights, a provider
that asks to be left alone for longer than :data:`MAX_WAIT`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.llm import embedded, scripted
from regatta_tools.llm.types import Reply, Request

#: Tries of one call, the first included.
ATTEMPTS = 4
#: Tries of one call that end in a timeout: each has already taken as long as a whole call may.
TIMEOUTS = 2
#: Longest wait in seconds that a provider's Retry-After may ask for; beyond it the run stops.
MAX_WAIT = 60.0
#: Seconds that a call may take beyond its timeout, which the transport applies to each read alone.
GRACE = 1.0
_KEYLIKE = re.compile(r"\b(sk|pk|rk|key|xai|gsk|hf)[-_][A-Za-z0-9_*-]{6,}|\bAIza[A-Za-z0-9_-]{20,}|(?<=Bearer )\S+")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_MODERATED = re.compile(r"content.?(filter|policy|management)|moderat|flagged|safety", re.IGNORECASE)


def _litellm() -> Any:
    """Import litellm once, quiet and offline (it would fetch its price list while being imported)."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    litellm.drop_params = True
    litellm.telemetry = False
    # A reply of an odd form makes it print a warning with its own path; the reply is read here all the same.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    return litellm


def check_model(model: str) -> dict[str, Any]:
    """Find out whether a model can be asked, before anything is spent.

    Returns what identifies it (``name``, and a ``fingerprint`` where one is known). Raises
    :class:`InputError` for a name that nothing knows, :class:`EnvironmentProblem` for missing weights
    or a missing key.
    """
    if scripted.is_scripted(model):
        return {"name": "scripted", "fingerprint": scripted.fingerprint(model)}
    if embedded.is_embedded(model):
        found = embedded.fingerprint(model)
        return {"name": found["name"], "fingerprint": _digest(found)}
    unknown = InputError(
        f"no provider knows the model {model!r}",
        code="U106",
        mend="name it as litellm does (provider/model), `embedded`, or `scripted:FILE`",
    )
    if not model.strip():
        raise unknown
    litellm = _litellm()
    # A variable that is there and empty holds no key; litellm would find that out at the first call.
    blank = {n: os.environ.pop(n) for n, value in list(os.environ.items()) if not value and _SECRET_NAME.search(n)}
    try:
        litellm.get_llm_provider(model)
        needed = litellm.validate_environment(model)
    except Exception as error:
        raise unknown from error
    finally:
        os.environ.update(blank)
    if not needed.get("keys_in_environment", True) and needed.get("missing_keys"):
        raise EnvironmentProblem(
            f"model {model!r} needs {', '.join(needed['missing_keys'])} in the environment",
            code="E303",
            mend="set it, or leave the model out to use the embedded one",
        )
    return {"name": model}


def provider_of(model: str) -> tuple[str, str, str]:
    """The name of a model at its provider, the provider, and its address where one is set; all as litellm has them.

    For a model that :func:`check_model` knows, and neither scripted nor embedded.
    """
    name, provider, _, address = _litellm().get_llm_provider(model)
    return str(name), str(provider), str(address or "")


def _digest(found: dict[str, Any]) -> str:
    from regatta_tools.text import sha256_json

    return sha256_json(found)


def complete(request: Request, *, sleep: Callable[[float], None] = time.sleep) -> Reply:
    """Send one request and return its reply.

    Transient failures (rate limit, server error, dropped connection, timeout) are tried again up to
    :data:`ATTEMPTS` times with growing waits, or as long as Retry-After says up to :data:`MAX_WAIT`.
    The whole of one try takes at most ``request.timeout`` seconds and :data:`GRACE`. Raises
    :class:`EnvironmentProblem` for a wrong key, a model that the provider does not have, and a longer
    wait than :data:`MAX_WAIT`.
    """
    if scripted.is_scripted(request.model):
        return _sendable(scripted.complete(request))
    litellm = _litellm()
    local = embedded.is_embedded(request.model)
    if local:
        embedded.register()
    name = embedded.litellm_name(request.model) if local else request.model
    timeouts = 0
    for attempt in range(1, ATTEMPTS + 1):
        reply, wait = _once(litellm, name, request, local)
        reply = replace(_sendable(reply), attempts=attempt)
        timeouts += reply.finish_reason == "timeout"
        if wait is None or local or attempt == ATTEMPTS or timeouts == TIMEOUTS:
            break
        if wait > MAX_WAIT:
            raise EnvironmentProblem(
                f"the provider of {request.model!r} asks for a wait of {wait:.0f} s, more than {MAX_WAIT:.0f} s",
                code="E307",
                mend="give the same command again later: it goes on where it stopped",
            )
        sleep(max(wait, 0.5 * 2**attempt))
    return reply


def _sendable(reply: Reply) -> Reply:
    """A reply whose text can be written and sent on: a lone half of a surrogate pair is in no encoding."""
    return replace(
        reply,
        text=reply.text.encode("utf-8", "replace").decode("utf-8"),
        error=None if reply.error is None else reply.error.encode("utf-8", "replace").decode("utf-8"),
    )


def _once(litellm: Any, name: str, request: Request, local: bool) -> tuple[Reply, float | None]:
    """One try. The second value is the wait in seconds before another, ``None`` where there is none to make."""
    options: dict[str, Any] = {
        "model": name,
        "messages": [dict(m) for m in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "timeout": request.timeout,
        "num_retries": 0,
        "max_retries": 0,
    }
    if request.seed is not None:
        options["seed"] = request.seed
    if request.schema is not None and local:
        options["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": request.schema},
        }
    bodies: list[str] = []
    if not local:
        options["logger_fn"] = lambda event: bodies.append(str(event.get("original_response") or ""))
    try:
        response = litellm.completion(**options) if local else _within(litellm, options, request.timeout)
    except EnvironmentProblem:
        raise
    except Exception as error:
        # Whatever a provider or its library throws is the outcome of this call (A17).
        return _after_error(litellm, error, bodies, request, local)
    reply = _reply(response, None if local else _cost(litellm, response))
    return (replace(reply, cost_usd=0.0) if local else reply), None


class _TimeIsUp(BaseException):
    """Raised by the alarm; no ``Exception``, so that no library takes it for one of its own."""


def _within(litellm: Any, options: dict[str, Any], seconds: float) -> Any:
    """A call with an end to it.

    The transport's timeout counts from byte to byte, so a server that sends a blank now and then (some
    do to keep a connection open) could hold a run for ever. An alarm ends it. A thread that is waited
    for and given up would do as well until the interpreter exits: then it can die holding the lock of
    an import, and the exit hangs (seen with litellm 1.110). Without an alarm (Windows, or not in the
    main thread) the transport's timeout alone holds.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return litellm.completion(**options)

    def ring(*_: Any) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            # It rings again every second, should the first one be swallowed somewhere.
            signal.setitimer(signal.ITIMER_REAL, seconds + GRACE, 1.0)
            return litellm.completion(**options)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _TimeIsUp:
        raise TimeoutError(f"no whole reply within {seconds:g} s") from None
    finally:
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)


def _after_error(
    litellm: Any, error: Exception, bodies: list[str], request: Request, local: bool
) -> tuple[Reply, float | None]:
    """The outcome of a call that litellm answered with an exception."""
    body = next((b for b in map(_object, bodies) if b and not {"choices", "usage", "error"}.isdisjoint(b)), None)
    if body is not None and not body.get("error"):
        # The provider answered, in a form that litellm does not take (message: null): read it here.
        return _reply(body, None), None
    status = getattr(error, "status_code", None)
    text = _clean(error)
    if body is not None and isinstance(body["error"], dict):
        # An error in the body of an answer with status 200.
        code = body["error"].get("code")
        status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else status
        text = _clean(body["error"].get("message") or text)
    if isinstance(error, TimeoutError | litellm.exceptions.Timeout):
        reason = str(error) if isinstance(error, TimeoutError) else f"no reply within {request.timeout:g} s"
        return Reply("failed", finish_reason="timeout", error=reason, unreachable=not local), 0.0
    if local:
        return Reply("failed", error=text), None
    if isinstance(error, litellm.exceptions.ContentPolicyViolationError) or (
        status in (400, 403, 422) and _MODERATED.search(f"{text} {getattr(error, 'body', '')}")
    ):
        return Reply("filtered", finish_reason="content_filter", error=text), None
    if status == 401:
        raise EnvironmentProblem(
            f"the provider refuses the key for {request.model!r}", code="E303", mend="check the key in the environment"
        ) from error
    if status in (402, 403, 404):
        what = {402: "asks for payment for", 403: "does not allow this key to use", 404: "does not have"}[status]
        raise EnvironmentProblem(
            f"the provider {what} the model {request.model!r}: {text}",
            code="E303",
            mend="check the name of the model, the key and the address of the provider",
        ) from error
    if status in (400, 413, 422):
        return Reply("failed", error=text), None
    return Reply("failed", error=text, unreachable=True), _retry_after(error)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _retry_after(error: Any) -> float:
    """Seconds that the provider asks to wait: a number, or the distance to a date (RFC 9110, 10.2.3)."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    text = str(headers.get("retry-after") or "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else 0.0
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _reply(response: Any, cost: float | None) -> Reply:
    """Read a chat completion, litellm's object or the provider's own JSON, of whatever form it turns out to be."""
    usage = _get(response, "usage")
    # No prompt has no tokens: litellm writes 0 where the provider said nothing.
    sent = _count(_get(usage, "prompt_tokens")) or None
    known: dict[str, Any] = {
        "served_model": _text(_get(response, "model")) or None,
        "prompt_tokens": sent,
        "completion_tokens": _count(_get(usage, "completion_tokens")) if sent else None,
        "cost_usd": cost if sent else None,
    }
    choices = _get(response, "choices")
    if not isinstance(choices, list) or not choices:
        return Reply("empty", error="the reply holds no choices", **known)
    reason = _text(_get(choices[0], "finish_reason")) or None
    known["finish_reason"] = reason
    message = _get(choices[0], "message")
    content, refusal = _text(_get(message, "content")), _text(_get(message, "refusal"))
    if refusal:
        return Reply("refused", text=content, error=_clean(refusal), **known)
    if reason == "content_filter":
        return Reply("filtered", text=content, error="a content filter withheld the reply", **known)
    if not content:
        if reason == "length":
            return Reply("truncated", error="the token limit was spent before any text", **known)
        called = "a tool call instead of text" if _get(message, "tool_calls") else "no text"
        return Reply(
            "empty", error="the reply holds no message" if message is None else f"the reply holds {called}", **known
        )
    return Reply("truncated" if reason == "length" else "ok", text=content, **known)


def _text(value: Any) -> str:
    """A text, or the texts of a list of content parts; nothing where it is neither."""
    if isinstance(value, list):
        return "".join(_text(_get(part, "text")) for part in value)
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _cost(litellm: Any, response: Any) -> float | None:
    try:
        cost = litellm.completion_cost(completion_response=response)
    except Exception:
        return None
    return float(cost) if cost else None


def _clean(error: Any) -> str:
    """One line of an error without keys, and without a library's own traceback."""
    text = " ".join(str(error).split("Traceback (most recent call last)")[0].split())
    secrets = {value for name, value in os.environ.items() if len(value) >= 8 and _SECRET_NAME.search(name)}
    for value in sorted(secrets, key=len, reverse=True):
        text = text.replace(value, "(key)")
    text = re.sub(r"(?<=://)[^/@\s]+@", "", _KEYLIKE.sub("(key)", text))
    return text if len(text) <= 300 else text[:297] + "..."
