"""JSON of the service as the values that the bank gives in process: pure. What is unknown in it is passed over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from memorybank.bank.info import BankInfo, LogChange, Page, Pending, Summary
from memorybank.client.wire import Answer
from memorybank.memory import Memory, Recalled

__all__ = [
    "info",
    "log_change",
    "memories",
    "memory",
    "page",
    "pending",
    "read",
    "results",
    "summaries",
    "summary",
    "used",
]

T = TypeVar("T")


def read(answer: Answer, reader: Callable[[Any], T]) -> T:
    """Return what a reader below makes of an answer's body.

    Raises:
        ProtocolError: something is missing in it, or of another type.
    """
    value = answer.json()
    try:
        return reader(value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise answer.not_understood(f"{type(error).__name__}: {error}") from None


def memory(value: Any) -> Memory:
    """Return a memory."""
    return Memory(
        id=_text(value["id"]),
        text=_text(value["text"]),
        actions=tuple(map(_text, value["actions"])),
        pinned=bool(value["pinned"]),
        metadata=dict(value["metadata"]),
        state=value["state"],
        model=_text(value["model"]),
        created=datetime.fromisoformat(value["created"]),
        last_used=None if value["last_used"] is None else datetime.fromisoformat(value["last_used"]),
        use_count=int(value["use_count"]),
        ordinal=int(value["ordinal"]),
        writer=None if value["writer"] is None else _text(value["writer"]),
        reason=_text(value["reason"]),
    )


def memories(value: Any) -> list[Memory]:
    """Return the memories of `{"memories": […]}`."""
    return [memory(one) for one in value["memories"]]


def page(value: Any) -> Page:
    """Return a page of memories."""
    cursor = value["cursor"]
    return Page(tuple(memories(value)), None if cursor is None else _text(cursor))


def results(value: Any) -> list[Recalled]:
    """Return the results of a search."""
    return [
        Recalled(
            memory=memory(one["memory"]),
            similarity=float(one["similarity"]),
            rank=int(one["rank"]),
            parts=one.get("parts"),
            retold_by=tuple((_text(other["id"]), float(other["cosine"])) for other in one.get("retold_by", ())),
        )
        for one in value["results"]
    ]


def info(value: Any) -> BankInfo:
    """Return what there is to know of a bank."""
    return BankInfo(
        name=_text(value["name"]),
        model=value["model"],
        dimensions=value["dimensions"],
        counts=dict(value["counts"]),
        capacity=value["capacity"],
        revision=int(value["revision"]),
        created=None if value["created"] is None else datetime.fromisoformat(value["created"]),
        version=_text(value["version"]),
    )


def log_change(value: Any) -> LogChange:
    """Return what became of a bank when its log changed."""
    return LogChange(
        length=int(value["length"]),
        same=int(value["same"]),
        stale=tuple(map(_text, value["stale"])),
        valid=tuple(map(_text, value["valid"])),
        pending=int(value["pending"]),
    )


def pending(value: Any) -> list[Pending]:
    """Return the memories that are due."""
    return [
        Pending(
            actions=tuple(map(_text, one["actions"])),
            attempts=int(one["attempts"]),
            error=_text(one["error"]),
            retry_at=None if one["retry_at"] is None else datetime.fromisoformat(one["retry_at"]),
        )
        for one in value["pending"]
    ]


def summary(value: Any) -> Summary:
    """Return a version of the Story Summary."""
    return Summary(
        version=int(value["version"]),
        text=_text(value["text"]),
        author=_text(value["author"]),
        through=int(value["through"]),
        created=datetime.fromisoformat(value["created"]),
    )


def summaries(value: Any) -> tuple[Summary | None, list[Summary]]:
    """Return the version that holds now, and all of them."""
    versions = [summary(one) for one in value["versions"]]
    return next((one for one in versions if one.version == value["current"]), None), versions


def used(value: Any) -> int:
    """Return how many memories were counted as used."""
    return int(value["used"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a string was expected, not {value!r:.60}")
    return value
