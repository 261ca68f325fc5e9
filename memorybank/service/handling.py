"""Errors that routes raise, and those of finding one, as answers."""

from __future__ import annotations

import logging

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memorybank.service.problems import Problem, fields_at_fault, problem_response, to_problem
from memorybank.service.state import current

__all__ = ["answer_error", "problem_of"]

log = logging.getLogger(__name__)

_OF_THE_SERVER = frozenset({"model-unavailable", "model-mismatch", "storage-unavailable"})


async def answer_error(request: Request, error: Exception) -> Response:
    """Return the answer to a request whose route raised, or that has none."""
    if isinstance(error, RequestValidationError):
        found = fields_at_fault(error.errors())
        where, what = found[0]
        problem = Problem("invalid-request", f"{where}: {what}", errors=found)
    else:
        problem = problem_of(error) or Problem("internal", "the log of the server says more")
    if problem.status_code == 405:
        methods = _methods(request)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": methods})
        problem.headers = {"Allow": methods}
    return problem_response(problem, current.get())


def problem_of(error: Exception) -> Problem | None:
    """Return how an exception is answered, and log what the client is not told of it; None for an unexpected one."""
    problem = to_problem(error)
    if problem is not None and problem.slug in _OF_THE_SERVER:
        log.warning("%s", problem.slug, exc_info=error)
    return problem


def _methods(request: Request) -> str:
    """Return what an address answers. The router knows the methods of the first route alone that has this path."""
    found = {"OPTIONS"}
    for route in request.app.routes:
        if isinstance(route, Route) and route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))
