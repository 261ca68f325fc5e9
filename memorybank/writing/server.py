"""One call of an OpenAI-compatible chat server: within its time limits, tried again, and bounded in what it may send.

What `httpx` limits is single steps; a server that sends a byte now and then would never be stopped by that. So a call
runs in a thread of its own, and when the time is up its connection is cut. Nothing here logs or repeats what was sent,
what came back, or the key.
"""

from __future__ import annotations

import functools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memorybank.forking import renew_after_fork
from memorybank.writing.breaker import CircuitBreaker, CircuitState
from memorybank.writing.chat_settings import ChatSettings
from memorybank.writing.errors import RejectedTextError, WriterUnavailableError
from memorybank.writing.limits import TimeIsUpError, within
from memorybank.writing.retrying import backoff, seconds_asked_for

if TYPE_CHECKING:
    import httpx

__all__ = ["ChatServer"]

MAX_BODY = 1_048_576
"""Bytes of an answer that are read: a memory has some hundred."""
_AGAIN = frozenset({408, 409, 425, 429})
_HINTS = {
    401: "check the key",
    403: "check the key and what it may do",
    404: "check base_url and the model's name",
}


class _FailedError(Exception):
    """One attempt that gave no answer; `again` says whether another one makes sense. Never leaves this file."""

    def __init__(self, message: str, *, again: bool = True, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.again = again
        self.retry_after = retry_after


class ChatServer:
    """A chat server, for any number of threads.

    Args:
        settings: where it is, and how long to wait for it.
        clock: gives the time in seconds.
        sleep: waits for some seconds.
        random: gives a number from 0 to 1 for the jitter.
    """

    def __init__(
        self,
        settings: ChatSettings,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        random: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._breaker = CircuitBreaker(
            f"chat server {settings.place}", settings.breaker_failures, settings.breaker_seconds, clock
        )
        self._client = _client()
        renew_after_fork(self)

    def renew(self) -> None:
        """Make the client anew, whose locks another thread of the parent may have held."""
        self._client = _client()

    @property
    def state(self) -> CircuitState:
        """The state of its circuit breaker."""
        return self._breaker.state

    def answer(self, body: Mapping[str, Any]) -> str:
        """Return the text that the server gives for the body of a request.

        Raises:
            WriterUnavailableError: it gave none in time.
            RejectedTextError: it gave an answer that is not finished or not a text.
        """
        deadline = self._clock() + self._settings.total_seconds
        content = json.dumps(body).encode()
        with self._breaker.attempt():
            return _text_of(self._tried(content, deadline))

    def _tried(self, content: bytes, deadline: float) -> Mapping[str, Any]:
        for attempt in range(1, self._settings.attempts + 1):
            try:
                return self._attempt(content, deadline)
            except _FailedError as failed:
                wait = failed.retry_after if failed.retry_after is not None else backoff(attempt, self._random())
                in_time = self._clock() + wait < deadline
                if not failed.again or attempt == self._settings.attempts or not in_time:
                    raise WriterUnavailableError(
                        f"chat server {self._settings.place}: {failed.message} (attempt {attempt})", failed.retry_after
                    ) from None
            self._sleep(wait)
        raise AssertionError("attempts are at least 1")

    def _attempt(self, content: bytes, deadline: float) -> Mapping[str, Any]:
        left = deadline - self._clock()
        call = _Call(self._client, self._settings, content, left)
        try:
            status, retry_after, received = within(left, call.run, call.abort)
        except TimeIsUpError:
            raise _FailedError(f"no answer within {self._settings.total_seconds:g} seconds", again=False) from None
        if status != 200:
            raise _failed_status(status, seconds_asked_for(retry_after, datetime.now(UTC)))
        return _parsed(received)


class _Call:
    """One request on one connection, which can be cut from another thread."""

    def __init__(self, client: httpx.Client, settings: ChatSettings, content: bytes, left: float) -> None:
        self._client = client
        self._settings = settings
        self._content = content
        self._left = max(0.001, left)
        self._socket: socket.socket | None = None
        self._aborted = threading.Event()

    def run(self) -> tuple[int, str | None, bytes]:
        """Return the status, the `Retry-After` header, and the body if the status is 200."""
        import httpx

        settings = self._settings
        read, connect = min(settings.read_seconds, self._left), min(settings.connect_seconds, self._left)
        try:
            with self._client.stream(
                "POST",
                settings.url,
                content=self._content,
                headers=settings.request_headers(),
                timeout=httpx.Timeout(read, connect=connect),
                extensions={"trace": self._watch},
            ) as response:
                body = self._read(response) if response.status_code == 200 else b""
                return response.status_code, response.headers.get("retry-after"), body
        except httpx.ConnectTimeout:
            raise _FailedError(f"no connection within {connect:g} seconds") from None
        except httpx.TimeoutException:
            raise _FailedError(f"nothing came within {read:g} seconds") from None
        except httpx.HTTPError as error:
            raise _FailedError(f"the connection failed ({type(error).__name__})") from None

    def abort(self) -> None:
        """Cut the connection, so that the thread that reads from it ends."""
        self._aborted.set()
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _read(self, response: httpx.Response) -> bytes:
        body = bytearray()
        for part in response.iter_raw():  # raw: what is packed small could be anything unpacked
            body += part
            if len(body) > MAX_BODY:
                raise _FailedError(f"its answer is longer than {MAX_BODY:,} bytes", again=False)
        return bytes(body)

    def _watch(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._aborted.is_set():
                self.abort()


def _client() -> httpx.Client:
    try:
        import httpx
    except ImportError:
        raise WriterUnavailableError(
            "writing with a chat server needs httpx: pip install 'story-context[writer]'"
        ) from None
    # No connection is kept: one that is kept was opened where nobody watched, and a call takes seconds anyway.
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(limits=limits, follow_redirects=False, verify=_certificates())


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Return what hosts are checked with; reading all certificates takes a while, and is done once."""
    import httpx

    return httpx.create_ssl_context()


def _failed_status(status: int, retry_after: float | None) -> _FailedError:
    if 300 <= status < 400:
        return _FailedError(f"it answered {status}, a redirect: set base_url to where it leads", again=False)
    again = status in _AGAIN or status >= 500
    hint = _HINTS.get(status)
    return _FailedError(f"it answered {status}{f': {hint}' if hint else ''}", again=again, retry_after=retry_after)


def _parsed(received: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(received)
    except (ValueError, RecursionError):
        raise _FailedError("it answered with something that is not JSON: check base_url") from None
    if not isinstance(answer, dict) or (answer.get("error") and not answer.get("choices")):
        raise _FailedError("it answered with an error or with JSON that is no chat completion")
    return answer


def _text_of(answer: Mapping[str, Any]) -> str:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        raise RejectedTextError("empty", "the chat server's answer has no choice with a message in it")
    reason = first.get("finish_reason")
    if reason == "length":
        raise RejectedTextError("cut off", "the chat server's answer was cut off: raise answer_tokens")
    if reason == "content_filter":
        raise RejectedTextError("filtered", "the chat server's content filter kept the answer back")
    content = first["message"].get("content")
    if isinstance(content, list):  # as parts
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if not isinstance(content, str):
        raise RejectedTextError("empty", "the chat server's answer has no text in it")
    return content
