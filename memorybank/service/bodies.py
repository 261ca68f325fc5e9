"""What comes in: a body is read within its limit on the event loop, and parsed and checked in the thread that needs it.

So a large body never holds up the other requests. JSON is read by the standard library, strictly: no NaN, no name
twice, no nesting beyond `MAX_DEPTH`. Half a surrogate pair is let through; the models say where it may stand.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Coroutine
from typing import Any, Generic, NoReturn, TypeVar, get_args

from fastapi.routing import APIRoute
from pydantic import BaseModel, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from memorybank.service.problems import Problem, fields_at_fault
from memorybank.service.state import deadline

__all__ = ["BODY_LIMIT", "Json", "ServiceRoute", "parsed"]

MAX_DEPTH = 100
"""Lists and objects inside one another; what is deeper could be stored here and not be read there."""

BODY_LIMIT = "memorybank.body_limit"
"""The key of a request's scope under which its limit stands, in bytes."""

Model = TypeVar("Model", bound=BaseModel)


class Json(Generic[Model]):
    """A body that has not been parsed yet. To FastAPI and its OpenAPI document it looks like its model."""

    def __init__(self, raw: bytes, model: type[Model]) -> None:
        self._raw = raw
        self._model = model

    def read(self) -> Model:
        """Parse and check it.

        Raises:
            Problem: it is no JSON (400), or not what the model says (422).
        """
        try:
            return self._model.model_validate(parsed(self._raw))
        except ValidationError as error:
            found = fields_at_fault(error.errors(include_input=False, include_url=False, include_context=False))
            more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
            where, what = found[0]
            raise Problem("invalid-request", f"{where}: {what}{more}", errors=found) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Keep the bytes; the model's own schema is there for the document."""
        model: type[Model] = get_args(source)[0]
        return core_schema.no_info_wrap_validator_function(
            lambda raw, _: cls(raw, model), handler.generate_schema(model)
        )


class ServiceRoute(APIRoute):
    """A route whose body is read by the rules of this file."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, given a request that reads bodies so."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return strict


class _JsonRequest(Request):
    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            _check_type(self)
            limit = deadline()
            try:
                async with asyncio.timeout(None if limit is None else limit.left):
                    self._body = await _read(self, self.scope[BODY_LIMIT])
            except TimeoutError:  # a Problem, because FastAPI makes a 400 of whatever else is raised here
                raise Problem("deadline-exceeded", "the deadline passed before the whole body had come") from None
        return self._body

    async def json(self) -> Any:
        return await self.body()


def _check_type(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        said = f"not {kind[:100]!r}" if kind else "and this request has none"
        raise Problem("unsupported-media-type", f"the header Content-Type must be application/json, {said}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem("unsupported-media-type", "the body is compressed: send it as it is, without Content-Encoding")


async def _read(request: Request, limit: int) -> bytes:
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and (len(said) > 18 or int(said) > limit):
        _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > limit:
                _too_large(limit)
    except ClientDisconnect:
        raise Problem("invalid-request", "the connection ended before the whole body had come", status=400) from None
    if not size:
        raise Problem("invalid-request", "the body is missing: this call needs a JSON object", status=400)
    return b"".join(parts)


def _too_large(limit: int) -> NoReturn:
    raise Problem("body-too-large", f"the limit is {limit:,} bytes: send it in several calls")


def parsed(raw: bytes) -> Any:
    """Return the JSON value in a body.

    Raises:
        Problem: it is no JSON, 400.
    """
    try:
        value = json.loads(
            raw.decode("utf-8-sig"),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_each_once,
        )
    except UnicodeDecodeError as error:
        _unreadable(f"byte {error.start} is not UTF-8")
    except json.JSONDecodeError as error:
        _unreadable(f"line {error.lineno}, column {error.colno}: {error.msg}")
    except RecursionError:
        _unreadable(f"more than {MAX_DEPTH} lists and objects inside one another")
    except ValueError as error:  # ours, and an integer of thousands of digits
        _unreadable(str(error))
    _check_depth(value)
    return value


def _unreadable(what: str) -> NoReturn:
    raise Problem("invalid-request", f"the body is not usable JSON: {what}", status=400) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for twice, _ in pairs:
            if twice in seen:
                break
            seen.add(twice)
        raise ValueError(f"the name {twice[:100]!r} occurs twice in one object")
    return fields


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    _unreadable(f"more than {MAX_DEPTH} lists and objects inside one another")
