"""A chat server on this machine that misbehaves as it is told, and writers that ask it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memorybank.writing import ChatSettings, ChatWriter

Behaviour = Callable[[socket.socket, threading.Event], None]


def http(body: bytes | str, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """Return a whole HTTP answer."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(content) if length is None else length}", *headers]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + content


def completion(text: Any, **choice: Any) -> str:
    """Return the JSON of a chat completion."""
    message = {"role": "assistant", "content": text}
    return json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": message, **choice}]})


def sends(answer: bytes) -> Behaviour:
    return lambda connection, over: connection.sendall(answer)


def says(text: Any, **choice: Any) -> Behaviour:
    return sends(http(completion(text, **choice)))


def hangs(connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def drips(answer: bytes, seconds: float) -> Behaviour:
    def behave(connection: socket.socket, over: threading.Event) -> None:
        for place in range(len(answer)):
            connection.sendall(answer[place : place + 1])
            if over.wait(seconds):
                return

    return behave


class ChatServerStub:
    """Does for each request what comes next in `script`; the last of it for all further ones.

    Attributes:
        requests: what came in: the head as text, and the body.
    """

    def __init__(self) -> None:
        self.script: list[Behaviour] = []
        self.requests: list[tuple[str, Any]] = []
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(self._socket.getsockname(), timeout=5).close()  # wakes up accept()
        for thread in self._threads:
            thread.join(30)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            if self._over.is_set():
                connection.close()
                return
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(30)
            head, body = _request(connection)
            behave = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append((head, json.loads(body)))
            behave(connection, self._over)


def _request(connection: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return head.decode("latin-1"), body


class Time:
    """A clock that goes only while someone sleeps, and writes down how long."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServerStub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    stub = ChatServerStub()
    yield stub
    stub.close()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def writer(server: ChatServerStub, clock: Time) -> Callable[..., ChatWriter]:
    """Make a writer that asks the server; waits between attempts take no time."""

    def make(**settings: Any) -> ChatWriter:
        chosen = {"base_url": server.base_url, "model": "storyteller", "api_key": "sk-secret", **settings}
        return ChatWriter(ChatSettings(**chosen), clock=clock, sleep=clock.sleep, random=lambda: 1.0)

    return make
