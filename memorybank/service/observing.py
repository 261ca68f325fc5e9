"""The outermost middleware: a request gets its identity and its deadline, a line in the log, a place in the metrics.

Also the last resort: an exception that nobody expected is logged here, and answered without saying what it was.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import MutableMapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorybank.service.logs import FIELDS
from memorybank.service.metrics import METHODS
from memorybank.service.problems import Problem, problem_response, to_problem
from memorybank.service.state import Deadline, RequestState, current

if TYPE_CHECKING:
    from memorybank.service.calls import Service

__all__ = ["Observer"]

log = logging.getLogger(__name__)

REQUEST_ID = "x-request-id"
_OWN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

UNMATCHED = "unmatched"


class Observer:
    """See the module."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Watch a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        request_id = given if _OWN_ID.fullmatch(given) else secrets.token_hex(8)
        state = RequestState(request_id, Deadline(self._service.settings.deadline_seconds))
        token = current.set(state)
        begin = time.perf_counter()
        method = str(scope["method"])
        tracing = self._service.tracing
        answer = _Answer(scope, receive, send, state)
        try:
            with nullcontext() if tracing is None else tracing.request(_known(method), headers) as span:
                await self._answer(answer, scope)
                route = _route_of(scope)
                if span is not None and tracing is not None:
                    tracing.finish(span, _known(method), route, answer.status, state)
            self._report(state, method, route, answer.status, time.perf_counter() - begin)
        finally:
            current.reset(token)

    async def _answer(self, answer: _Answer, scope: Scope) -> None:
        if scope["method"] == "HEAD":
            scope["method"] = "GET"  # the same answer, and `_Answer` leaves its body out
        try:
            await self._app(scope, answer.receive, answer.send)
        except Exception as error:
            if to_problem(error) is None:
                log.error("unexpected exception", exc_info=error)
            if answer.status:  # it has begun, and cannot become another one
                raise
            problem = to_problem(error) or Problem("internal", "the log of the server says more, under this instance")
            await problem_response(problem, answer.state)(scope, answer.receive, answer.send)

    def _report(self, state: RequestState, method: str, route: str, status: int, seconds: float) -> None:
        self._service.metrics.answered(route, method, status, seconds, state)
        fields: dict[str, Any] = {
            "method": _known(method),
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 2),
            "key_id": state.key_id,
            "phases_ms": {name: round(took * 1000, 2) for name, took in list(state.phases.seconds.items())},
        }
        if state.problem is not None:
            fields["problem"] = state.problem
        log.info("request", extra={FIELDS: fields})


def _route_of(scope: Scope) -> str:
    """Return the template of the route that a request had, or would have had if it had been let in."""
    if isinstance(found := scope.get("route"), Route):
        return str(found.path_format)
    for route in scope["app"].routes:
        if isinstance(route, Route) and route.path_regex.match(scope["path"]):
            return str(route.path_format)
    return UNMATCHED


def _known(method: str) -> str:
    return method if method in METHODS else "other"


class _Answer:
    """An answer on its way out: it gets the headers that all have, and is left without a body for HEAD."""

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, state: RequestState) -> None:
        self.state = state
        self.status = 0
        self._receive = receive
        self._send = send
        self._without_body = scope["method"] == "HEAD"
        headers = Headers(scope=scope)
        self._unread = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._unread = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.state.id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "private, no-cache")
            if self._unread:  # nobody is going to read the rest of the body
                headers["Connection"] = "close"
        elif self._without_body:
            message = {**message, "body": b""}
        await self._send(message)
