"""One call to one model: retries, timeouts and outcomes.

Four ways lead to a model: the scripted provider is a file, the embedded one runs in this process through litellm,
OpenAI's plain form goes out as it is (:mod:`~regatta_tools.llm.transport`), and everything else through litellm.
What a provider does wrong (no choices, no message, no content, a filter, a dropped connection) becomes the outcome of
that one call and never an exception, so that a run goes on (cases A17 and A18). An exception is kept
for what makes every further call useless: a wrong key, an unknown model, missing weights, a provider
that asks to be left alone for longer than :data:`MAX_WAIT`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.llm import embedded, replay, scripted, transport
from regatta_tools.llm.types import Reply, Request

#: Tries of one call, the first included.
ATTEMPTS = 4
#: Tries of one call that end in a timeout: each has already taken as long as a whole call may.
TIMEOUTS = 2
#: Longest wait in seconds that a provider's Retry-After may ask for; beyond it the run stops.
MAX_WAIT = 60.0
#: Seconds that a call may take beyond its timeout, which litellm's transport applies to each read alone.
GRACE = 1.0
_KEYLIKE = re.compile(r"\b(sk|pk|rk|key|xai|gsk|hf)[-_][A-Za-z0-9_*-]{6,}|\bAIza[A-Za-z0-9_-]{20,}|(?<=Bearer )\S+")
_REVISION = re.compile(r"([-@:._](v?[0-9]+|latest|preview|(20)?[0-9]{2}-?[0-9]{2}-?[0-9]{2}|[0-9]{4}))+")
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
    warnings.filterwarnings("ignore", message=r"Items? .* on TypedDict class")
    return litellm


def stays_here(model: str) -> bool:
    """Whether a model is a script, a stored run, or runs in this process: it costs nothing and nothing leaves."""
    return scripted.is_scripted(model) or embedded.is_embedded(model) or replay.is_replay(model)


def check_model(model: str) -> dict[str, Any]:
    """Find out whether a model can be asked, before anything is spent.

    Returns what identifies it (``name``, and a ``fingerprint`` where one is known; for a stored run ``replays``, the
    manifest's entries by stage, which stand for it in the manifest of a new run). Raises
    :class:`InputError` for a name that nothing knows, :class:`EnvironmentProblem` for missing weights
    or a missing key.
    """
    if scripted.is_scripted(model):
        return {"name": "scripted", "fingerprint": scripted.fingerprint(model)}
    if replay.is_replay(model):
        return {"name": "replay", "replays": replay.models(model)}
    if embedded.is_embedded(model):
        found = embedded.fingerprint(model)
        return {"name": found["name"], "fingerprint": _digest(found)}
    unknown = InputError(
        f"no provider knows the model {model!r}",
        code="U106",
        mend="name it as litellm does (provider/model), `embedded`, `scripted:FILE` or `replay:RUN`",
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
    missing = needed.get("missing_keys") and not needed.get("keys_in_environment", True)
    if missing and not _otherwise_known(model):
        raise EnvironmentProblem(
            f"model {model!r} needs {', '.join(needed['missing_keys'])} in the environment",
            code="E303",
            mend="set it, or leave the model out to use the embedded one",
        )
    return {"name": model}


def _otherwise_known(model: str) -> bool:
    """Whether a provider needs less than litellm's list of keys says: Ollama has an address of its own, and Amazon's
    clients find keys in profiles, roles and tokens too."""
    provider = _provider(model)[1]
    if provider in ("ollama", "ollama_chat"):
        return True
    others = ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
              "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")  # fmt: skip
    return provider == "bedrock" and any(os.environ.get(name) for name in others)


@functools.lru_cache(maxsize=64)
def _provider(model: str) -> tuple[str, str, str]:
    name, provider, _, address = _litellm().get_llm_provider(model)
    return str(name), str(provider), str(address or "")


def provider_of(model: str) -> tuple[str, str, str]:
    """The name of a model at its provider, the provider, and its address where one is set; all as litellm has them.

    For a model that :func:`check_model` knows, and neither scripted nor embedded.
    """
    name, provider, address = _provider(model)
    if provider in transport.PLAIN:
        names = transport.PLAIN[provider][0]
        address = transport.address(provider) if any(os.environ.get(n) for n in names) else address
    return name, provider, address


#: Calls to one model, one after the other, that do not reach it before it is left alone.
UNREACHED = 3


def out_of_reach(model: str, reply: Reply) -> EnvironmentProblem:
    """The error for a model that does not answer at all (E307)."""
    return EnvironmentProblem(
        f"the model {model!r} does not answer: {reply.error} ({reply.attempts} tries)", code="E307",
        mend="see that it can be reached; the same command goes on where it stopped",
    )  # fmt: skip


class Reach:
    """Whether a model can be reached at all, for calls that are made one after the other."""

    def __init__(self, model: str) -> None:
        self.model, self.answered, self.lost = model, False, 0

    def told(self, reply: Reply) -> None:
        """Take in how a call ended. Raises :func:`out_of_reach` where the first one, or :data:`UNREACHED` in a row, did
        not reach the model."""
        self.lost = self.lost + 1 if reply.unreachable else 0
        self.answered = self.answered or not reply.unreachable
        if self.lost and (not self.answered or self.lost == UNREACHED):
            raise out_of_reach(self.model, reply)


def same_model(asked: str, served: str | None) -> bool:
    """Whether a model that answered, by its own account, is the one that was asked for.

    A date or a revision that the provider adds to the name (``-2026-10-01``, ``@20261001``, ``:0``, ``-v1``) does not
    make it another model, and neither do the provider's and a publisher's names in front. Where nothing was said it
    counts as the same: nothing speaks against it.
    """
    if not served or stays_here(asked):
        return True
    want, got = (re.split(r"[/\\]", name.strip().casefold())[-1] for name in (asked, served))
    for short, long in ((want, got), (got, want)):
        # Bedrock puts region and publisher in front, with dots: us.anthropic.claude-...
        for start in (long, long.rpartition("anthropic.")[2], long.partition(".")[2]):
            if start == short or (short and start.startswith(short) and _REVISION.fullmatch(start[len(short) :])):
                return True
    return False


def _digest(found: dict[str, Any]) -> str:
    from regatta_tools.text import sha256_json

    return sha256_json(found)


@dataclass(frozen=True)
class Try:
    """One try. ``wait`` is the seconds before another, ``None`` where there is none to make; ``throttled`` says that
    the provider asked for fewer calls."""

    reply: Reply
    wait: float | None = None
    throttled: bool = False


class Gate:
    """What a call passes before and after each try. This one lets everything through; a pool has stricter ones."""

    #: Tries of a call to which the provider answers "too many" before it has failed, besides those that fail
    #: otherwise; ``None`` counts them together.
    throttles: int | None = None

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self.sleep = sleep
        #: Calls in flight; to cancel one ends it with :class:`~regatta_tools.llm.types.Abandoned`.
        self.flying: set[transport.Flight] = set()

    @contextlib.contextmanager
    def passage(self) -> Iterator[Callable[[Try], None]]:
        """The place in which one try is made. The function is told of its end."""
        yield lambda done: None


def complete(request: Request, *, sleep: Callable[[float], None] = time.sleep, gate: Gate | None = None) -> Reply:
    """Send one request and return its reply.

    Transient failures (rate limit, server error, dropped connection, timeout) are tried again up to
    :data:`ATTEMPTS` times with growing waits, or as long as Retry-After says up to :data:`MAX_WAIT`.
    The whole of one try takes at most ``request.timeout`` seconds and :data:`GRACE`. Raises
    :class:`EnvironmentProblem` for a wrong key, a model that the provider does not have, and a longer
    wait than :data:`MAX_WAIT`; :class:`~regatta_tools.llm.types.Abandoned` where the gate closes. May be called from
    any thread; a model in this process from the main thread alone, so that Ctrl-C ends it.
    """
    if scripted.is_scripted(request.model):
        return _sendable(scripted.complete(request))
    if replay.is_replay(request.model):
        return replay.complete(request)
    gate = gate or Gate(sleep)
    local = embedded.is_embedded(request.model)
    timeouts = failures = throttled = lost = attempt = 0
    while True:
        attempt += 1
        with gate.passage() as ended:
            made = _embedded(request) if local else _once(request, gate)
            ended(made)
        lost += made.reply.lost
        reply = replace(_sendable(made.reply), attempts=attempt, lost=lost)
        timeouts += reply.finish_reason == "timeout"
        throttled += made.throttled
        failures += not (made.throttled and gate.throttles)
        if made.wait is None or local or failures == ATTEMPTS or timeouts == TIMEOUTS or throttled == gate.throttles:
            return reply
        if made.wait > MAX_WAIT:
            raise EnvironmentProblem(
                f"the provider of {request.model!r} asks for a wait of {made.wait:.0f} s, more than {MAX_WAIT:.0f} s",
                code="E307",
                mend="give the same command again later: it goes on where it stopped",
            )
        gate.sleep(max(made.wait, min(0.5 * 2**attempt, MAX_WAIT)))


def _sendable(reply: Reply) -> Reply:
    """A reply whose text can be written and sent on: a lone half of a surrogate pair is in no encoding."""
    return replace(
        reply,
        text=reply.text.encode("utf-8", "replace").decode("utf-8"),
        error=None if reply.error is None else reply.error.encode("utf-8", "replace").decode("utf-8"),
    )


def _once(request: Request, gate: Gate) -> Try:
    """One try over the network."""
    name, provider, _ = _provider(request.model)
    if _is_plain(name, provider):
        return _plain(name, provider, request, gate)
    return _through_litellm(request, gate)


# -- OpenAI's form as it is ----------------------------------------------------------------------


def _is_plain(name: str, provider: str) -> bool:
    if provider not in transport.PLAIN or not transport.address(provider) or name.startswith("responses/"):
        return False
    return _mode(name) in (None, "chat")


@functools.lru_cache(maxsize=64)
def _mode(name: str) -> str | None:
    return (_litellm().model_cost.get(name) or {}).get("mode")


@functools.lru_cache(maxsize=256)
def _settings(name: str, provider: str, temperature: float, max_tokens: int, seed: bool) -> str:
    """The settings of a call as this model takes them (some name the token limit otherwise, some have no temperature).

    As JSON, so that nobody changes what is kept. litellm knows them.
    """
    _litellm()
    from litellm.utils import get_optional_params

    wanted = {"temperature": temperature, "max_tokens": max_tokens} | ({"seed": 1} if seed else {})
    found = get_optional_params(model=name, custom_llm_provider=provider, drop_params=True, **wanted)
    found |= found.pop("extra_body", None) or {}
    found.pop("stream", None)
    return json.dumps(found)


def _plain(name: str, provider: str, request: Request, gate: Gate) -> Try:
    payload = {"model": name, "messages": [dict(m) for m in request.messages]}
    payload |= json.loads(_settings(name, provider, request.temperature, request.max_tokens, request.seed is not None))
    if "seed" in payload:
        payload["seed"] = request.seed
    url = f"{transport.address(provider)}/chat/completions"
    try:
        answer = transport.post(url, transport.headers(provider), payload, request.timeout, gate.flying)
    except transport.TooSlow as error:
        return _too_slow(str(error))
    except transport.Broken as error:
        return Try(Reply("failed", error=_clean(error), unreachable=True, lost=int(error.sent)), 0.0)
    found = _object(answer.body.decode("utf-8", "replace"))
    error, status = (found or {}).get("error"), answer.status
    if status == 200 and not error:
        if found is None or {"choices", "usage"}.isdisjoint(found):
            what = "the answer is not a chat completion: " + answer.body[:80].decode("utf-8", "replace")
            return Try(Reply("failed", error=_clean(what), unreachable=True, lost=1), 0.0)
        key = os.environ.get(transport.PLAIN[provider][1], "")
        return Try(_without(_reply(found, request.model), {key}))
    text, code = _told(error, answer)
    # An error in the body of an answer with status 200.
    if status == 200 and code is not None and str(code).isdecimal():
        status = int(code)
    return _refused(request, status, text, f"{text} {code}", _retry_after(answer.headers))


def _told(error: Any, answer: transport.Answer) -> tuple[str, Any]:
    """What the provider says of an error, and its code for it."""
    if isinstance(error, dict):
        return str(error.get("message") or error), error.get("code")
    return str(error or answer.body[:300].decode("utf-8", "replace") or f"status {answer.status}"), None


def _too_slow(why: str) -> Try:
    return Try(Reply("failed", finish_reason="timeout", error=why, unreachable=True, lost=1), 0.0)


def _refused(request: Request, status: int | None, text: str, whole: str, wait: float) -> Try:
    """The outcome of a call that the provider answered with an error. Raises where every further call is useless."""
    text = _clean(text)
    if status in (400, 403, 422) and _MODERATED.search(whole):
        return Try(Reply("filtered", finish_reason="content_filter", error=text))
    if status == 401:
        raise EnvironmentProblem(
            f"the provider refuses the key for {request.model!r}", code="E303", mend="check the key in the environment"
        )
    if status in (402, 403, 404):
        what = {402: "asks for payment for", 403: "does not allow this key to use", 404: "does not have"}[status]
        raise EnvironmentProblem(
            f"the provider {what} the model {request.model!r}: {text}",
            code="E303",
            mend="check the name of the model, the key and the address of the provider",
        )
    if status in (400, 413, 422):
        return Try(Reply("failed", error=text))
    throttled = status in (429, 529) or (status == 503 and wait > 0)
    return Try(Reply("failed", error=text, unreachable=True), wait, throttled)


# -- through litellm -----------------------------------------------------------------------------


def _options(name: str, request: Request) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": name,
        "messages": [dict(m) for m in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "timeout": request.timeout,
        "num_retries": 0,
        "max_retries": 0,
    }
    return options | ({} if request.seed is None else {"seed": request.seed})


def _embedded(request: Request) -> Try:
    litellm = _litellm()
    embedded.register()
    options = _options(embedded.litellm_name(request.model), request)
    if request.schema is not None:
        options["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": request.schema},
        }
    try:
        response = litellm.completion(**options)
    except EnvironmentProblem:
        raise
    except Exception as error:
        if isinstance(error, TimeoutError | litellm.exceptions.Timeout):
            late = f"no reply within {request.timeout:g} s"
            return Try(Reply("failed", finish_reason="timeout", error=late))
        return Try(Reply("failed", error=_clean(error)))
    return Try(replace(_reply(response, request.model), cost_usd=0.0))


def _through_litellm(request: Request, gate: Gate) -> Try:
    litellm = _litellm()
    # Another model must never answer in silence for the one that was asked: no fallbacks of any kind.
    options = _options(request.model, request) | {"fallbacks": None, "context_window_fallback_dict": None}
    bodies: list[str] = []
    options["logger_fn"] = lambda event: bodies.append(str(event.get("original_response") or ""))
    try:
        response = transport.run(lambda: litellm.acompletion(**options), request.timeout + GRACE, gate.flying)
    except EnvironmentProblem:
        raise
    except Exception as error:
        # Whatever a provider or its library throws is the outcome of this call (A17).
        made = _after_error(litellm, error, bodies, request)
        return replace(made, reply=_without(made.reply, _secrets()))
    return Try(_without(_reply(response, request.model), _secrets()))


def _after_error(litellm: Any, error: Exception, bodies: list[str], request: Request) -> Try:
    """The outcome of a call that litellm answered with an exception."""
    body = next((b for b in map(_object, bodies) if b and not {"choices", "usage", "error"}.isdisjoint(b)), None)
    if body is not None and not body.get("error"):
        # The provider answered, in a form that litellm does not take (message: null): read it here.
        return Try(_reply(body, request.model))
    status = getattr(error, "status_code", None)
    text = str(error)
    if body is not None and isinstance(body["error"], dict):
        # An error in the body of an answer with status 200.
        code = body["error"].get("code")
        status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else status
        text = str(body["error"].get("message") or text)
    if isinstance(error, TimeoutError | litellm.exceptions.Timeout):
        return _too_slow(f"no reply within {request.timeout:g} s")
    if isinstance(error, litellm.exceptions.ContentPolicyViolationError):
        return Try(Reply("filtered", finish_reason="content_filter", error=_clean(text)))
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    made = _refused(request, status, text, f"{text} {getattr(error, 'body', '')}", _retry_after(headers))
    if isinstance(error, litellm.exceptions.APIConnectionError):
        made = replace(made, reply=replace(made.reply, lost=1))
    return made


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _retry_after(headers: Any) -> float:
    """Seconds that the provider asks to wait: a number, or the distance to a date (RFC 9110, 10.2.3)."""
    text = str(headers.get("retry-after") or "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else 0.0
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _reply(response: Any, asked: str) -> Reply:
    """Read a chat completion, litellm's object or the provider's own JSON, of whatever form it turns out to be."""
    from regatta_tools.llm import prices

    usage = _get(response, "usage")
    # No prompt has no tokens: litellm writes 0 where the provider said nothing.
    sent = _count(_get(usage, "prompt_tokens")) or None
    received = _count(_get(usage, "completion_tokens")) if sent else None
    known: dict[str, Any] = {
        "served_model": _text(_get(response, "model")) or None,
        "prompt_tokens": sent,
        "completion_tokens": received,
        "cost_usd": prices.pinned().cost(asked, sent, received),
    }
    choices = _get(response, "choices")
    if not isinstance(choices, list) or not choices:
        return Reply("empty", error="the reply holds no choices", **known)
    reason = _text(_get(choices[0], "finish_reason")) or None
    # The provider's own word, where litellm put OpenAI's in its place.
    own = _get(_get(choices[0], "provider_specific_fields"), "native_finish_reason")
    known["finish_reason"] = _text(own) or reason
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


def _secrets() -> set[str]:
    """Values of the environment that look like keys."""
    return {value for name, value in os.environ.items() if len(value) >= 8 and _SECRET_NAME.search(name)}


def _without(reply: Reply, secrets: set[str]) -> Reply:
    """A reply in which no key stands, should a gateway echo the one that was sent."""
    told = (reply.text, reply.served_model, reply.finish_reason)
    for key in sorted(secrets, key=len, reverse=True):
        if len(key) >= 8 and any(key in (text or "") for text in told):
            told = tuple(text and text.replace(key, "(key)") for text in told)
    text, served, reason = told
    return replace(reply, text=text or "", served_model=served, finish_reason=reason)


def _clean(error: Any) -> str:
    """One line of an error without keys, and without a library's own traceback."""
    text = " ".join(str(error).split("Traceback (most recent call last)")[0].split())
    for value in sorted(_secrets(), key=len, reverse=True):
        text = text.replace(value, "(key)")
    text = re.sub(r"(?<=://)[^/@\s]+@", "", _KEYLIKE.sub("(key)", text))
    return text if len(text) <= 300 else text[:297] + "..."
