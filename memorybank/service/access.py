"""Who calls: an API key, or anybody on this machine as long as no key was ever made.

A server without keys trusts this machine and not the pages that a browser on it shows: it answers only to its own names
(a page that has its own name point to 127.0.0.1 sends that name as Host), and to no page of another site (Origin).
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from starlette.datastructures import Headers
from starlette.types import Scope

from memorybank.errors import DeadlineError
from memorybank.service.limits import Buckets, address_of
from memorybank.service.problems import Problem

if TYPE_CHECKING:
    from memorybank.host import Access, KeyRing
    from memorybank.service.state import RequestState

__all__ = ["ANYBODY", "Caller", "Doorkeeper", "check_site", "is_local"]

Result = TypeVar("Result")

FAILURES = 10
"""Wrong keys from one address at once; one more every `FAILURE_SECONDS`."""
FAILURE_SECONDS = 5.0
MOST_KNOWN = 1_000

OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and what for.

    Attributes:
        who: the key's id, or the address of a caller without one; whose calls are counted together.
        key_id: None without a key.
        namespace: of the banks that there are for this caller.
        access: what may be done.
    """

    who: str
    key_id: str | None
    namespace: str
    access: Access


ANYBODY = Caller("", None, "", "read")
"""Who asks for what holds no data."""


class Doorkeeper:
    """Finds out who calls. The database is asked in threads of its own, so that a busy pool keeps nobody outside."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys
        self._has_keys = False
        self._failures = Buckets(1 / FAILURE_SECONDS, FAILURES)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="memorybank-door")

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def is_open(self, state: RequestState) -> bool:
        """Return whether no key was ever made."""
        if not self._has_keys:  # once there is one, there is for ever
            self._has_keys = await self._ask(self._keys.any, state)
        return not self._has_keys

    async def caller(self, scope: Scope, state: RequestState) -> Caller:
        """Return who calls.

        Raises:
            Problem: 401 for no or a wrong key, 403 for another site, 429 after many wrong keys.
        """
        if await self.is_open(state):
            check_site(scope)
            return Caller(_address(scope), None, "", "write")
        token = _token(Headers(scope=scope))
        address = _address(scope)
        digest = hashlib.sha256(token.encode()).digest()
        # A key that has worked before works also from an address from which somebody else tries wrong ones.
        if digest not in self._known and (seconds := self._failures.wait(address)):
            raise Problem("rate-limited", "too many wrong keys came from this address", retry_after=seconds)
        key = await self._ask(lambda: self._keys.authenticate(token), state)
        if key is None:
            self._known.pop(digest, None)
            self._failures.take(address)
            raise _unauthorized("the API key is unknown or was revoked")
        self._known[digest] = None
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return Caller(key.id, key.id, key.namespace, key.access)

    async def _ask(self, question: Callable[[], Result], state: RequestState) -> Result:
        answer = asyncio.get_running_loop().run_in_executor(self._threads, question)
        done, _ = await asyncio.wait({answer}, timeout=state.deadline.left)
        if not done:
            answer.cancel()
            raise DeadlineError("the database did not say in time who may come in: repeat the call")
        return answer.result()


def check_site(scope: Scope) -> None:
    """Raise a 403 problem if a call may come from another machine, or from a page of another site."""
    headers = Headers(scope=scope)
    client = scope.get("client")
    if client is not None and not _is_loopback(client[0]):
        raise Problem(
            "forbidden",
            "this server has no API keys and so serves its own machine only: `memorybank keys create` makes one",
        )
    host = headers.get("host", "")
    name, port = _split(host)
    server = scope.get("server")
    if name not in OWN_NAMES or (port and server is not None and server[1] is not None and port != str(server[1])):
        raise Problem(
            "forbidden", "this server has no API keys and so answers to localhost, 127.0.0.1 and [::1] only (Host)"
        )
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"{scope.get('scheme', 'http')}://{host}".lower():
        raise Problem("forbidden", "this server has no API keys and so answers to no page of another site (Origin)")


def is_local(scope: Scope) -> bool:
    """Return whether a call comes from this machine, and not through a proxy on it."""
    client = scope.get("client")
    passed_on = {b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"} & {name for name, _ in scope["headers"]}
    return client is not None and _is_loopback(client[0]) and not passed_on


def _split(host: str) -> tuple[str, str]:
    if host.startswith("["):
        name, end, port = host.partition("]")
        return f"{name.lower()}{end}", port.removeprefix(":")
    name, _, port = host.partition(":")
    return name.lower(), port


def _is_loopback(client: str) -> bool:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:  # no address at all: a test client, or a socket in the file system
        return True
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return address_of(client[0]) if client is not None else "unknown"


def _token(headers: Headers) -> str:
    given = headers.getlist("authorization")
    if not given:
        raise _unauthorized("this server needs an API key: send it as `Authorization: Bearer mb_…`")
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise _unauthorized("the header Authorization must be `Bearer` and an API key, once")
    return token.strip()


def _unauthorized(detail: str) -> Problem:
    return Problem("unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
