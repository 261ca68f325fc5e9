"""What a request passes before any of it is read: its head, who sent it, how often he comes, whether there is room."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memorybank.service.access import ANYBODY, Caller, check_site, is_local
from memorybank.service.bodies import BODY_LIMIT
from memorybank.service.handling import problem_of
from memorybank.service.limits import Buckets, address_of
from memorybank.service.problems import Problem, problem_response
from memorybank.service.state import RequestState, current

if TYPE_CHECKING:
    from memorybank.service.calls import Service

__all__ = ["CALLER", "SLASH", "Gate"]

CALLER = "memorybank.caller"
"""The key of a request's scope under which its `Caller` stands."""

SLASH = "\0"
"""Stands for an encoded slash (`%2F`) in a path: part of an id, and no separator. No path may contain it otherwise."""

_HEALTH = frozenset({"/healthz", "/readyz"})
DEADLINE = "x-deadline-ms"


class Gate:
    """The middleware inside `observing.Observer`, and around everything else."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        settings = service.settings
        self._calls = Buckets(settings.rate, settings.burst)
        self._strangers = Buckets(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        state = current.get()
        if scope["type"] != "http" or state is None:
            await self._app(scope, receive, send)
            return
        with ExitStack() as inside:
            try:
                await self._let_in(scope, state, inside)
            except Exception as error:
                problem = problem_of(error)
                if problem is None:
                    raise
                await problem_response(problem, state)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    async def _let_in(self, scope: Scope, state: RequestState, inside: ExitStack) -> None:
        _check_head(scope, self._service.settings.header_bytes)
        if (wanted := Headers(scope=scope).get(DEADLINE)) is not None:
            state.deadline.shorten(_milliseconds(wanted) / 1000)
        scope["path"] = path = _path(scope)
        scope[BODY_LIMIT] = self._service.body_limit(path)
        scope[CALLER] = caller = await self._caller(path.removeprefix(scope.get("root_path", "")), scope, state)
        if caller is ANYBODY:
            return
        state.key_id, state.namespace = caller.key_id, caller.namespace
        if seconds := self._calls.take(caller.who):
            raise Problem("rate-limited", "too many calls: see the header Retry-After", retry_after=seconds)
        inside.enter_context(self._service.pool.admitted(caller.who if caller.key_id else None))

    async def _caller(self, path: str, scope: Scope, state: RequestState) -> Caller:
        door, settings = self._service.door, self._service.settings
        if path in _HEALTH:
            return ANYBODY
        anybody_may = path == "/metrics" and (settings.metrics_public or is_local(scope))
        if path == "/v1" or path.startswith("/v1/") or (path == "/metrics" and not anybody_may):
            return await self._identified(scope, state)
        if await door.is_open(state):
            check_site(scope)
        return ANYBODY

    async def _identified(self, scope: Scope, state: RequestState) -> Caller:
        try:
            return await self._service.door.caller(scope, state)
        except Problem as problem:
            client = scope.get("client")
            who = address_of(client[0]) if client is not None else "unknown"
            if problem.slug == "unauthorized" and (seconds := self._strangers.take(who)):
                raise Problem("rate-limited", "too many calls without a key", retry_after=seconds) from None
            raise


def _check_head(scope: Scope, limit: int) -> None:
    size = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    if size > limit:
        raise Problem("headers-too-large", f"address and headers have {size:,} bytes, the limit is {limit:,}")


def _path(scope: Scope) -> str:
    """Return the path with what stands encoded in it, but for slashes; those would be taken for separators."""
    raw = scope.get("raw_path")
    if not isinstance(raw, bytes):
        return str(scope["path"])
    try:
        decoded = [unquote_to_bytes(part).decode() for part in raw.replace(b"%2f", b"%2F").split(b"%2F")]
    except UnicodeDecodeError:
        raise Problem("invalid-request", "the address is not UTF-8 behind its percent signs", status=400) from None
    if any(SLASH in part for part in decoded):
        raise Problem("invalid-request", "the address contains a NUL")
    return SLASH.join(decoded)


def _milliseconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise Problem("invalid-request", "the header X-Deadline-Ms must be a whole number of milliseconds, 1 or more")
    return int(text)
