"""The only file that knows the HTTP library: requests go out, answers come in, and nothing of httpx is seen outside.

Redirects are not followed: they would carry the key to wherever the answer says.
"""

from __future__ import annotations

import time
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memorybank.client.errors import ServiceError
from memorybank.client.wire import Answer, NoAnswer, Request
from memorybank.errors import InvalidInputError

if TYPE_CHECKING:
    import ssl

    import httpx

__all__ = ["AsyncTransport", "Transport", "checked_key", "checked_url"]

CONNECT_SECONDS = 10.0
"""How long making a connection may take."""
IDLE_SECONDS = 30.0
"""After which an unused connection is closed: before the server does it, while something is on its way."""
CONNECTIONS = 100
"""At one time; further calls wait their turn."""


class Transport:
    """Sends requests and waits for their answers; for any number of threads.

    Args:
        url: of the service, checked.
        key: checked, or None.
    """

    def __init__(self, url: str, key: str | None) -> None:
        library = _library()
        self._url = url
        self._client: httpx.Client = library.Client(**_options(library, key))

    def send(self, request: Request, seconds: float) -> Answer | NoAnswer:
        """Send a request and return what came of it within so many seconds."""
        httpx = _library()
        end = time.monotonic() + seconds
        try:
            with self._client.stream(**_arguments(httpx, self._url, request, seconds)) as response:
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if time.monotonic() > end:
                        return _too_late(seconds)
                return _answer(response, bytes(body))
        except httpx.HTTPError as error:
            return _no_answer(httpx, error, seconds)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


class AsyncTransport:
    """Sends requests and awaits their answers; for any number of tasks of one event loop."""

    def __init__(self, url: str, key: str | None) -> None:
        library = _library()
        self._url = url
        self._client: httpx.AsyncClient = library.AsyncClient(**_options(library, key))

    async def send(self, request: Request, seconds: float) -> Answer | NoAnswer:
        """Send a request and return what came of it within so many seconds."""
        import anyio

        httpx = _library()
        try:
            with anyio.move_on_after(seconds):
                async with self._client.stream(**_arguments(httpx, self._url, request, seconds)) as response:
                    return _answer(response, await response.aread())
        except httpx.HTTPError as error:
            return _no_answer(httpx, error, seconds)
        return _too_late(seconds)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def checked_url(url: object) -> str:
    """Return the URL of a service without the slash at its end."""
    if not isinstance(url, str):
        raise InvalidInputError(f"the service's URL must be a string, not {type(url).__name__}")
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInputError(f"the service's URL cannot be read: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidInputError("the service's URL must not hold a name or a password: give the key as `key=`")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise InvalidInputError(
            f"the service's URL must be like https://memories.example.com, perhaps with a path, not {url!r}"
        )
    return url.strip().rstrip("/")


def checked_key(key: object) -> str | None:
    """Return the key, or None; what is wrong with it is said without showing it."""
    if key is None:
        return None
    if not isinstance(key, str) or not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInputError("the key must be a token like mb_…, as `memorybank keys create` has shown it")
    return key


def _library() -> ModuleType:
    try:
        import httpx
    except ModuleNotFoundError:
        raise ServiceError(
            "the client needs the package httpx, which is not installed: pip install 'story-context[client]'"
        ) from None
    return httpx


@cache
def _trust() -> ssl.SSLContext:
    """Return whom to trust, for all clients: reading the certificates takes a tenth of a second."""
    context: ssl.SSLContext = _library().create_ssl_context()
    return context


def _options(httpx: Any, key: str | None) -> dict[str, Any]:
    headers = {"Accept": "application/json", "User-Agent": "story-context"}
    return {
        "headers": headers | ({} if key is None else {"Authorization": f"Bearer {key}"}),
        "follow_redirects": False,
        "verify": _trust(),
        "limits": httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=IDLE_SECONDS),
    }


def _arguments(httpx: Any, url: str, request: Request, seconds: float) -> dict[str, Any]:
    content = request.content()
    headers = {} if content is None else {"Content-Type": "application/json"}
    headers["X-Deadline-Ms"] = str(max(1, int(seconds * 1000)))  # nobody needs to work on it any longer
    return {
        "method": request.method,
        "url": url + request.target,
        "content": content,
        "headers": {**headers, **request.conditions},
        "timeout": httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
    }


def _answer(response: httpx.Response, body: bytes) -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


def _no_answer(httpx: Any, error: Exception, seconds: float) -> NoAnswer:
    unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    if isinstance(error, httpx.TimeoutException):
        return NoAnswer("no connection could be made in time", False, True) if unsent else _too_late(seconds)
    reason = " ".join(str(error).split()) or type(error).__name__
    return NoAnswer(f"it cannot be reached ({reason})" if unsent else f"it broke off ({reason})", not unsent)


def _too_late(seconds: float) -> NoAnswer:
    return NoAnswer(f"no answer within {seconds:.3g} seconds", maybe_done=True, timed_out=True)
