"""Every error that the service answers with: `application/problem+json` (RFC 9457), the same shape for all.

What the client did is said exactly; what the server suffers (a path, a driver's message) goes to the log and not out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from memorybank import errors
from memorybank.service.state import RequestState

__all__ = ["KINDS", "Kind", "Problem", "fields_at_fault", "problem_response", "to_problem"]

MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 20
"""Fields at fault that are listed; a thousand of them help nobody."""
LONGEST = 1_000
"""Characters of a detail: what was sent is not sent back whole."""


class Kind(NamedTuple):
    """A kind of problem: the status that it usually has, and its title."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "invalid-request": Kind(422, "The request is not valid"),
    "unauthorized": Kind(401, "A valid API key is needed"),
    "forbidden": Kind(403, "This is not allowed"),
    "not-found": Kind(404, "There is nothing at this address"),
    "bank-not-found": Kind(404, "There is no such bank"),
    "memory-not-found": Kind(404, "There is no such memory"),
    "action-not-found": Kind(404, "There is no such action in the log"),
    "summary-not-found": Kind(404, "There is no such version of the Story Summary"),
    "method-not-allowed": Kind(405, "This address does not answer that method"),
    "conflict": Kind(409, "This would break a limit"),
    "bank-exists": Kind(409, "There is a bank of that name already"),
    "model-mismatch": Kind(409, "The bank has vectors of another embedding model"),
    "no-reranker": Kind(409, "This server has no cross-encoder"),
    "precondition-failed": Kind(412, "It has changed since it was read"),
    "body-too-large": Kind(413, "The body is too large"),
    "unsupported-media-type": Kind(415, "The body must be JSON"),
    "context-too-small": Kind(422, "What must be in the context does not fit into it"),
    "rate-limited": Kind(429, "Too many requests"),
    "headers-too-large": Kind(431, "The headers are too large"),
    "internal": Kind(500, "The server has made a mistake"),
    "model-unavailable": Kind(503, "The embedding model does not work at the moment"),
    "storage-unavailable": Kind(503, "The database does not work at the moment"),
    "overloaded": Kind(503, "Too much is waiting already"),
    "deadline-exceeded": Kind(503, "The answer did not come in time"),
}
"""All kinds by their slug: `type` of a problem is `urn:story-context:problem:<slug>`."""

_OF_STATUS = {400: "invalid-request", 404: "not-found", 405: "method-not-allowed", 413: "body-too-large"}

_UNAVAILABLE = {
    errors.ModelMismatchError: (
        "model-mismatch",
        "the bank's vectors come from another embedding model than the one in use: `memorybank reembed` moves it",
    ),
    errors.ModelError: (
        "model-unavailable",
        "no vector could be made, so nothing was changed: the log of the server says why",
    ),
    errors.StorageError: (
        "storage-unavailable",
        "the database could not be read or written: what was acknowledged before is safe; repeat the call",
    ),
}
_RETRY = {"deadline-exceeded": 1.0, "model-unavailable": 5.0, "storage-unavailable": 5.0}
"""Seconds after which it is worth another try, where nothing better is known."""


class Problem(HTTPException):
    """An answer that is an error.

    Args:
        slug: one of `KINDS`.
        detail: what is wrong with this request and what to do.
        status: if it is not the usual one of its kind.
        errors: fields at fault, each with a message.
        retry_after: seconds after which the same call may work.
        headers: further headers.
    """

    def __init__(
        self,
        slug: str,
        detail: str,
        *,
        status: int | None = None,
        errors: Sequence[tuple[str, str]] = (),
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if retry_after is None and slug in _RETRY:
            retry_after = _RETRY[slug]
        more = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
        super().__init__(status or KINDS[slug].status, detail, {**(headers or {}), **more})
        self.slug = slug
        self.errors = errors


def to_problem(error: Exception) -> Problem | None:
    """Return how an exception is answered; None for one that nobody expected."""
    match error:
        case Problem():
            return error
        case HTTPException():
            slug = _OF_STATUS.get(error.status_code, "invalid-request")
            return Problem(slug, _of_router(error), status=error.status_code, headers=error.headers)
        case errors.SummaryNotFoundError():
            return Problem("summary-not-found", str(error))
        case errors.ActionNotFoundError():
            return Problem("action-not-found", str(error))
        case errors.MemoryNotFoundError():
            return Problem("memory-not-found", str(error))
        case errors.BankNotFoundError():
            return Problem("bank-not-found", str(error))
        case errors.PreconditionError():
            return Problem("precondition-failed", str(error))
        case errors.NoRerankerError():
            return Problem("no-reranker", str(error))
        case errors.InvalidInputError() | errors.TokenizerError():
            return Problem("invalid-request", str(error))
        case errors.OverloadedError():
            return Problem("overloaded", str(error), retry_after=error.retry_after)
        case errors.DeadlineError():
            return Problem("deadline-exceeded", str(error))
    for kind, (slug, detail) in _UNAVAILABLE.items():
        if isinstance(error, kind):
            return Problem(slug, detail)
    return None


def problem_response(problem: Problem, state: RequestState | None) -> Response:
    """Return the answer, and note its kind for the log."""
    kind = KINDS[problem.slug]
    detail = str(problem.detail)
    if state is not None:
        state.problem = problem.slug
        # The key's own banks are called by the names under which it knows them.
        detail = detail.replace(f"'{state.namespace}/", "'") if state.namespace else detail
    body: dict[str, Any] = {
        "type": f"urn:story-context:problem:{problem.slug}",
        "title": kind.title,
        "status": problem.status_code,
        "detail": detail if len(detail) <= LONGEST else f"{detail[:LONGEST]}…",
        "instance": f"urn:request:{state.id if state is not None else 'none'}",
    }
    if problem.errors:
        body["errors"] = [{"field": field, "message": message} for field, message in problem.errors]
    return Response(json.dumps(body), problem.status_code, dict(problem.headers or {}), MEDIA_TYPE)


def fields_at_fault(found: Iterable[Mapping[str, Any]], *, inside: str = "") -> list[tuple[str, str]]:
    """Return pydantic's errors as fields (`memories[3].text`) and messages, without what was sent."""
    listed = list(found)
    named = [
        (_place(one["loc"], inside), str(one["msg"]).removeprefix("Value error, ")) for one in listed[:MOST_ERRORS]
    ]
    return named + ([("…", f"and {len(listed) - MOST_ERRORS} more")] if len(listed) > MOST_ERRORS else [])


def _place(location: Sequence[int | str], inside: str) -> str:
    place = inside
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f".{step[:100]}" if place else step[:100]
    return place or "body"


def _of_router(error: HTTPException) -> str:
    if error.status_code == 404:
        return "there is nothing at this address: /openapi.json lists all"
    if error.status_code == 405:
        return "this address does not answer that method: the header Allow lists those that it does"
    return str(error.detail)
