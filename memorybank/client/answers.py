"""JSON of the service as the values that the bank gives in process: pure. What is unknown in it is passed over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from memorybank.bank.info import BankInfo, Page
from memorybank.client.wire import Answer
from memorybank.memory import Memory, Recalled

__all__ = ["info", "memories", "memory", "page", "read", "results", "used"]

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


def used(value: Any) -> int:
    """Return how many memories were counted as used."""
    return int(value["used"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a string was expected, not {value!r:.60}")
    return value
