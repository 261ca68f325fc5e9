"""The OpenAPI document: what each route adds to FastAPI's own, and what is the same for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from memorybank.search.ranking import RERANKED
from memorybank.service.given import ProblemBody
from memorybank.service.problems import KINDS, MEDIA_TYPE
from memorybank.service.schemas import VERSION

__all__ = ["describe", "described"]

ALWAYS = ("invalid-request", "not-found", "headers-too-large", "internal")
BEHIND_THE_GATE = (
    "unauthorized",
    "forbidden",
    "rate-limited",
    "overloaded",
    "deadline-exceeded",
    "storage-unavailable",
)
WITH_BODY = ("body-too-large", "unsupported-media-type")
TAG = {"type": "string", "examples": [f'"{VERSION}"']}
ONE_TAG = r'(W/)?"[!#-~]*"'
TAGS = TAG | {"pattern": rf"^(\*|{ONE_TAG}( *, *{ONE_TAG})*)$"}

HEADERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ETag": ("the version of what is in the body", TAG),
    "Location": ("where it is", {"type": "string"}),
    "Retry-After": ("seconds after which the same call may work", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("how to identify yourself", {"type": "string", "examples": ["Bearer"]}),
    "Allow": ("the methods that this address answers", {"type": "string", "examples": ["GET, HEAD, OPTIONS"]}),
    "X-Request-Id": (
        "what the server's log calls this request: the client's own, or a new one",
        {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    ),
}

PARAMETERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "If-Match": ("only if it is still one of these versions, or `*` for any", TAGS),
    "If-None-Match": ("only if it is none of these versions; `*`: only if it is not there", TAGS),
    "X-Deadline-Ms": (
        "how long the caller waits, in milliseconds; the server's own limit holds too",
        {"type": "integer", "minimum": 1, "maximum": 999_999_999},
    ),
    "X-Request-Id": (
        "1 to 64 letters, digits, dots, dashes and underscores; replaced if it is not",
        {"type": "string"},
    ),
}

NEEDED = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}

PROBLEM = {"$ref": "#/components/schemas/ProblemBody"}


def described(
    summary: str,
    answer: type[BaseModel] | None,
    *,
    problems: Iterable[str] = (),
    status: int = 200,
    also: Mapping[int, str] | None = None,
    conditions: Iterable[str] = (),
    etag: bool = False,
    body: bool = False,
    gate: bool = True,
) -> dict[str, Any]:
    """Return what FastAPI has to be told about a route.

    Args:
        summary: what it does, in a line.
        answer: what it answers with; None for nothing.
        problems: kinds of problems that it may answer with, beside those that all routes have.
        status: of its answer.
        also: further statuses of success, each with what it means.
        conditions: the conditional headers that it honours.
        etag: whether its answer has a version.
        body: whether it takes a body.
        gate: whether it is behind the gate, as all of `/v1` is.
    """
    slugs = {*ALWAYS, *problems, *(BEHIND_THE_GATE if gate else ()), *(WITH_BODY if body else ())}
    headers = {"headers": _headers("ETag")} if etag else {}
    responses: dict[int | str, dict[str, Any]] = {
        status: headers,
        **{code: {"description": means, **headers} for code, means in (also or {}).items()},
        **_problem_responses(slugs),
    }
    named = [*conditions, *(("X-Deadline-Ms",) if gate else ()), "X-Request-Id"]
    extra: dict[str, Any] = {"parameters": [_parameter(name) for name in named]}
    if gate:
        extra["security"] = [{"key": []}, {}]
    return {
        "summary": summary,
        "response_model": answer,
        "status_code": status,
        "responses": responses,
        "openapi_extra": extra,
        "response_description": "done" if answer is None else str(answer.__doc__).partition("\n")[0],
    }


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the whole document."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
    )
    problem = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= problem.pop("$defs") | {ProblemBody.__name__: problem}
    document["components"].setdefault("securitySchemes", {})["key"] = {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "mb_<key id>_<secret>",
        "description": "an API key; not needed as long as none was ever made, and then for this machine only",
    }
    for path in document["paths"].values():
        for operation in path.values():
            for response in operation["responses"].values():
                response.setdefault("headers", {}).update(_headers("X-Request-Id"))
    if app.state.service.host.reranking is None:
        _without_reranked(document)
    return document


def _without_reranked(document: dict[str, Any]) -> None:
    """Take the ranking out that a server without a cross-encoder refuses."""
    for schema in document["components"]["schemas"].values():
        ranking = schema.get("properties", {}).get("ranking", {})
        if RERANKED in ranking.get("enum", ()):
            ranking["enum"] = [mode for mode in ranking["enum"] if mode != RERANKED]


def _problem_responses(slugs: Iterable[str]) -> dict[int | str, dict[str, Any]]:
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for slug in sorted(slugs):
        by_status[KINDS[slug].status].append(slug)
    by_status[400].append("invalid-request")
    return {status: _problem_response(status, found) for status, found in sorted(by_status.items())}


def _problem_response(status: int, slugs: list[str]) -> dict[str, Any]:
    examples = {
        slug: {
            "value": {
                "type": f"urn:story-context:problem:{slug}",
                "title": KINDS[slug].title,
                "status": status,
                "detail": "what is wrong with this request, and what to do",
                "instance": "urn:request:7f3a91c2d4e5b608",
            }
        }
        for slug in slugs
    }
    described: dict[str, Any] = {
        "description": "; ".join(f"`{slug}`: {KINDS[slug].title}" for slug in slugs),
        "content": {MEDIA_TYPE: {"schema": PROBLEM, "examples": examples}},
    }
    if status in NEEDED:
        described["headers"] = _headers(NEEDED[status])
    return described


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"description": HEADERS[name][0], "schema": HEADERS[name][1]} for name in names}


def _parameter(name: str) -> dict[str, Any]:
    says, schema = PARAMETERS[name]
    return {"name": name, "in": "header", "required": False, "description": says, "schema": schema}
