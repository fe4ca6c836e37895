"""What leaves this machine: litellm's calls on one event loop, and the plain form of OpenAI's protocol as it is.

litellm speaks to every provider, at 7 ms of work a call (docs/benchmarks-calls.md): 64 calls of 200 ms at once would
need more than two processors. The form that most servers speak, ``POST /chat/completions``, is therefore sent by
urllib3 from the thread that asks. litellm still says who the provider is and which settings a model takes.

Either way a call has an end: transports count their timeouts from byte to byte, so a server that sends a blank now and
then could hold a call for ever.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import functools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from regatta_tools.llm.types import Abandoned

T = TypeVar("T")

#: Providers of litellm whose chat is OpenAI's own form: environment variables of the address and of the key.
PLAIN = {
    "openai": (("OPENAI_BASE_URL", "OPENAI_API_BASE"), "OPENAI_API_KEY", "https://api.openai.com/v1"),
    "hosted_vllm": (("HOSTED_VLLM_API_BASE",), "HOSTED_VLLM_API_KEY", ""),
}
#: A reply beyond this size in bytes is no reply to what was asked.
LARGEST = 32 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """An HTTP answer as it came: ``status``, ``headers`` in lower case, ``body`` in bytes."""

    status: int
    headers: dict[str, str]
    body: bytes


class Broken(Exception):
    """No whole answer came. ``sent`` says whether the request had left, so that it may have been answered and paid."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Flight(Protocol):
    """A call in flight. To cancel it makes it end with :class:`Abandoned`."""

    def cancel(self) -> Any: ...


class TooSlow(TimeoutError):
    """The whole call took longer than it may."""


class _Loop:
    """An event loop in a thread of its own. It is a daemon that is stopped and waited for before the interpreter goes:
    a thread that dies holding the lock of an import would hang the exit.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="regatta-calls", daemon=True)
        self.thread.start()
        atexit.register(self.close)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def close(self) -> None:
        if self.loop.is_closed() or not self.thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self.loop)
        self.thread.join(10)

    async def _end(self) -> None:
        here = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not here]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=2)
        self.loop.stop()


@functools.cache
def _shared() -> _Loop:
    return _Loop()


_making = threading.Lock()


def run(coroutine: Callable[[], Coroutine[Any, Any, T]], seconds: float, flying: set[Any]) -> T:
    """Wait for a call on the shared loop, for at most ``seconds``. May be called from any thread.

    ``flying`` holds the :class:`Flight` while it lasts. Ctrl-C in the main thread cancels it. Raises :class:`TooSlow`.
    """

    async def limited() -> T:
        async with asyncio.timeout(seconds):
            return await coroutine()

    with _making:
        shared = _shared()
    future = asyncio.run_coroutine_threadsafe(limited(), shared.loop)
    flying.add(future)
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise Abandoned from None
    except TimeoutError:
        raise TooSlow(f"no whole reply within {seconds:g} s") from None
    except BaseException:
        future.cancel()
        raise
    finally:
        flying.discard(future)


class _Sent:
    """A request that urllib3 makes in this thread, and that another thread can end by closing its connection."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds
        self.connection: Any = None
        self.cancelled = self.late = False

    def cancel(self) -> None:
        self.cancelled = True
        self._cut()

    def expire(self) -> None:
        self.late = True
        self._cut()

    def _cut(self) -> None:
        held = getattr(self.connection, "sock", None)
        if held is not None:
            with suppress(OSError, ValueError):
                # Below TLS, which would want to say goodbye first.
                socket.socket.shutdown(held, socket.SHUT_RDWR)


_here = threading.local()


class _Watch:
    """Ends requests that have had their time. One thread looks four times a second while any is out."""

    def __init__(self) -> None:
        self.out: set[_Sent] = set()
        self.change = threading.Condition()
        threading.Thread(target=self._look, name="regatta-watch", daemon=True).start()

    def add(self, sent: _Sent) -> None:
        with self.change:
            self.out.add(sent)
            if len(self.out) == 1:
                self.change.notify()

    def _look(self) -> None:
        while True:
            with self.change:
                while not self.out:
                    self.change.wait()
                now = time.monotonic()
                late = [sent for sent in self.out if sent.until < now]
            for sent in late:
                sent.expire()
            time.sleep(0.25)


@functools.cache
def _watch() -> _Watch:
    return _Watch()


@functools.cache
def _connections(proxy: str) -> Any:
    """The kept connections, straight or through a proxy."""
    import urllib3

    class Noted:
        def request(self, *arguments: Any, **options: Any) -> Any:
            _here.sent.connection = self
            return super().request(*arguments, **options)  # type: ignore[misc]

    class Plain(Noted, urllib3.connection.HTTPConnection):
        pass

    class Secure(Noted, urllib3.connection.HTTPSConnection):
        pass

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    # More than any pool has in flight: one too many would be closed after its call.
    settings = {"maxsize": 512, "ssl_context": _certificates(), "retries": False}
    made = urllib3.ProxyManager(proxy, **settings) if proxy else urllib3.PoolManager(**settings)
    made.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return made


_PROXIES = tuple(n for name in ("http", "https", "all", "no") for n in (f"{name}_proxy", f"{name.upper()}_PROXY"))


def _proxy(url: str) -> str:
    """The proxy that the environment names for an address."""
    return _proxy_of(url, *(os.environ.get(name) for name in _PROXIES))


@functools.lru_cache(maxsize=64)
def _proxy_of(url: str, *_: str | None) -> str:
    # To read the whole environment for each call would be a third of our work for it.
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    found = getproxies()
    way = found.get(parts.scheme) or found.get("all") or ""
    return way if way.startswith("http") and not proxy_bypass(parts.hostname or "") else ""


def post(url: str, headers: dict[str, str], payload: dict[str, Any], seconds: float, flying: set[Any]) -> Answer:
    """Send JSON and read the whole answer, within ``seconds``. May be called from any thread.

    ``flying`` holds the :class:`Flight` while it lasts. Raises :class:`Broken` and :class:`TooSlow`.
    """
    import urllib3

    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    sent = _here.sent = _Sent(seconds)
    with _making:
        connections, watch = _connections(_proxy(url)), _watch()
    flying.add(sent)
    watch.add(sent)
    try:
        return _exchange(connections, url, headers, body, seconds)
    except (urllib3.exceptions.HTTPError, OSError, ValueError, Broken) as error:
        if sent.cancelled:
            raise Abandoned from None
        if sent.late or isinstance(error, urllib3.exceptions.ReadTimeoutError):
            raise TooSlow(f"no whole reply within {seconds:g} s") from None
        if isinstance(error, Broken):
            raise
        unsent = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError,
                  urllib3.exceptions.ProxyError)  # fmt: skip
        raise Broken(_why(error), sent=not isinstance(error, unsent)) from error
    finally:
        flying.discard(sent)
        with watch.change:
            watch.out.discard(sent)
        # The connection may serve another call now, which is not to be cut for this one.
        sent.connection = None


def _exchange(connections: Any, url: str, headers: dict[str, str], body: bytes, seconds: float) -> Answer:
    import urllib3

    response = connections.request(
        "POST",
        url,
        body=body,
        headers={"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"} | headers,
        timeout=urllib3.Timeout(connect=min(seconds, 30.0), read=seconds),
        preload_content=False,
        redirect=False,
    )
    try:
        raw = bytearray()
        for piece in response.stream(65536):
            raw += piece
            if len(raw) > LARGEST:
                raise Broken(f"the reply is longer than {LARGEST} bytes", sent=True)
        whole = True
    except BaseException:
        whole = False
        raise
    finally:
        if whole:
            response.release_conn()
        else:
            response.close()
    return Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, bytes(raw))


def _why(error: Exception) -> str:
    """An error of the connection in words, without the objects that urllib3 puts into its own."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, Exception):
        error = reason
    text = str(error.args[-1] if error.args else "").split(">: ")[-1]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _certificates() -> Any:
    """The system's certificates, or those of ``certifi`` where the system has none that Python can find."""
    import ssl

    context = ssl.create_default_context()
    if not context.get_ca_certs() and not any(os.environ.get(n) for n in ("SSL_CERT_FILE", "SSL_CERT_DIR")):
        try:
            import certifi
        except ImportError:
            return context
        context.load_verify_locations(certifi.where())
    return context


def address(provider: str) -> str:
    """The address of a plain provider, from the environment where it is set there."""
    names, _, otherwise = PLAIN[provider]
    return next((os.environ[n] for n in names if os.environ.get(n)), otherwise).rstrip("/")


def headers(provider: str) -> dict[str, str]:
    """The headers that say who asks."""
    out = {}
    if key := os.environ.get(PLAIN[provider][1]):
        out["Authorization"] = f"Bearer {key}"
    if provider == "openai":
        for name, header in (("OPENAI_ORGANIZATION", "OpenAI-Organization"), ("OPENAI_PROJECT", "OpenAI-Project")):
            if os.environ.get(name):
                out[header] = os.environ[name]
    return out
