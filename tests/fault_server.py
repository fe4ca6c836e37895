"""A model server on 127.0.0.1 that speaks OpenAI's form and does wrong on request (standard library only).

Give it a list of acts: each request takes the next one; when the list is spent, ``otherwise`` answers.
An act is a function of the request handler; the functions below make the usual ones.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Act = Callable[[BaseHTTPRequestHandler], None]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One packet an answer: two would wait 40 ms for each other.
    wbufsize = 65536

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        server: Any = self.server
        with server.turn:
            server.requests.append(body)
            server.headers_seen.append(dict(self.headers))
            act = server.acts.pop(0) if server.acts else server.otherwise
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
        #: What this request asks, for acts that answer by it.
        self.asked = body
        # The client may have given up on a slow answer.
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                act(self)
        finally:
            with server.turn:
                server.in_flight -= 1

    def log_message(self, *_: object) -> None:
        pass


class FaultServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.turn = threading.Lock()
        self.closing = threading.Event()
        self.script()

    def script(self, *acts: Act, otherwise: Act | None = None) -> None:
        """Forget what was asked and set what comes next. Beyond the acts every request is answered with 599."""
        self.requests: list[dict[str, Any]] = []
        self.headers_seen: list[dict[str, str]] = []
        self.in_flight = self.most_in_flight = 0
        self.acts = list(acts)
        self.otherwise = otherwise or status(599, "nothing is planned for this request")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error of the server."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextlib.contextmanager
def serving() -> Iterator[FaultServer]:
    server = FaultServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()


def completion(message: Any, finish: str | None = "stop", **rest: Any) -> dict[str, Any]:
    """The body of a chat completion with one choice; usage is 7 tokens in and 3 out."""
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake-served",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    } | rest


def text(content: str | None, finish: str = "stop", **message: Any) -> Act:
    return body(completion({"role": "assistant", "content": content} | message, finish))


def body(value: Any, code: int = 200, headers: dict[str, str] | None = None) -> Act:
    """Answer with JSON, or with bytes as they are."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, content in (
            {"Content-Type": "application/json", "Content-Length": str(len(raw))} | (headers or {})
        ).items():
            handler.send_header(name, content)
        handler.end_headers()
        handler.wfile.write(raw)

    return act


def status(number: int, message: str = "no", *, retry_after: str | None = None, **error: Any) -> Act:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return body({"error": {"message": message, "type": "error"} | error}, number, headers)


def slow(seconds: float, then: Act) -> Act:
    """Wait, then answer."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.server.closing.wait(seconds)  # type: ignore[attr-defined]
        then(handler)

    return act


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Take the request and say nothing."""
    handler.server.closing.wait(20)  # type: ignore[attr-defined]


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Send a blank ten times a second and never the reply: every single read is in time."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    end = time.monotonic() + 20
    while time.monotonic() < end and not handler.server.closing.is_set():  # type: ignore[attr-defined]
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Promise a long reply, send its beginning, hang up."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "c-1", "choices": [{"index": 0, "message": {"role"')
    handler.wfile.flush()
    handler.close_connection = True
