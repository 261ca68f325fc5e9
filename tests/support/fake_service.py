"""A small HTTP server that answers as it is told, well or badly, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MEMORY = {
    "id": "m1",
    "text": "The gate opens.",
    "actions": ["a1"],
    "pinned": False,
    "metadata": {"k": 1},
    "state": "active",
    "model": "hashing-64",
    "created": "2026-01-01T00:00:00+00:00",
    "last_used": None,
    "use_count": 0,
    "ordinal": 1,
    "writer": None,
    "reason": "",
    "version": "0123456789abcdef",
}
PROBLEM = "urn:story-context:problem:"


@dataclass
class Asked:
    method: str
    target: str
    headers: dict[str, str]
    body: Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeService

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Asked(self.command, self.path, headers, json.loads(raw) if raw else None))
        behaviour = self.server.behaviours.pop(0) if self.server.behaviours else self.server.usual
        behaviour(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - as the base class calls them

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def answer(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "X-Request-Id": "r7", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


Behaviour = Callable[[Handler], None]


def ok(value: Any) -> Behaviour:
    return lambda handler: handler.answer(200, json.dumps(value).encode(), "application/json")


def memories(number: int) -> Behaviour:
    return ok({"memories": [MEMORY] * number, "cursor": None})


def raw(status: int, body: bytes = b"", kind: str = "text/html", **headers: str) -> Behaviour:
    return lambda handler: handler.answer(status, body, kind, **headers)


def problem(status: int, slug: str, detail: str = "said by the service", **headers: Any) -> Behaviour:
    more = {"errors": headers.pop("errors")} if "errors" in headers else {}
    body = {"type": PROBLEM + slug, "title": "T", "status": status, "detail": detail, "instance": "urn:request:r7"}
    return raw(status, json.dumps(body | more).encode(), "application/problem+json", **headers)


def broken_off(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True
    handler.connection.shutdown(2)


def half(handler: Handler) -> None:
    """Send half of what was promised."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"memories": [')
    broken_off(handler)


@dataclass
class Hanging:
    """Answer only when the test is over."""

    over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, handler: Handler) -> None:
        self.over.wait(60)
        handler.close_connection = True


class FakeService(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[Asked] = []
        self.behaviours: list[Behaviour] = []
        self.usual: Behaviour = raw(500, b"unexpected", "text/plain")

    def will(self, *behaviours: Behaviour) -> None:
        self.behaviours += behaviours

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that left."""
