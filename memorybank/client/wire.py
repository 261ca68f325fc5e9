"""What goes over the wire, as values: a request, an answer, or none. No HTTP library and no waiting in here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memorybank.client.errors import ProtocolError
from memorybank.text import repair

__all__ = ["Answer", "NoAnswer", "Request"]

SHOWN = 120
"""Characters of an answer that are shown in a message."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the service.

    Attributes:
        method: of HTTP.
        target: path and query behind the service's URL, percent-encoded.
        body: the JSON object sent along; None for none.
        conditions: the headers `If-Match` and `If-None-Match`.
        repeatable: whether doing it twice is the same as doing it once.
        gone_is_done: whether a repetition that finds no such memory has been done by the attempt before.
    """

    method: str
    target: str
    body: Mapping[str, Any] | None = None
    conditions: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    gone_is_done: bool = False

    def content(self) -> bytes | None:
        """Return the body as it is sent."""
        return None if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered.

    Attributes:
        status: of HTTP.
        headers: their names in lower case.
        body: as it came, decompressed.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body's value.

        Raises:
            ProtocolError: it is not JSON.
        """
        kind = self.headers.get("content-type", "")
        media_type = kind.split(";")[0].strip().lower()
        try:
            if media_type == "application/json" or media_type.endswith("+json"):
                return json.loads(self.body)
        except (ValueError, RecursionError):
            pass
        raise self.not_understood(f"{kind or 'no content type'}, {_beginning(self.body)}")

    def not_understood(self, what: str) -> ProtocolError:
        """Return the error for an answer that this client does not understand."""
        return ProtocolError(
            f"the service's answer with status {self.status} is not what this client understands ({what}): check that "
            "the URL is that of the service, without /v1, and that both are of the same version",
            status=self.status,
            request_id=self.headers.get("x-request-id"),
        )


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """There was none.

    Attributes:
        reason: in words.
        maybe_done: whether the service may have got the request all the same.
        timed_out: whether the time was up.
    """

    reason: str
    maybe_done: bool
    timed_out: bool = False


def _beginning(body: bytes) -> str:
    text = " ".join(repair(body[: 4 * SHOWN].decode("utf-8", "replace")).split())
    return f"beginning with {text[:SHOWN]!r}" if text else "empty"
