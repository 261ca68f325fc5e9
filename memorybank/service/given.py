"""The JSON that the service gives, as models: for the OpenAPI document. `answers.py` writes it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memorybank.memory import State
from memorybank.service.schemas import ACTIONS, ID, TEXT, TIME, VERSION, Rhythm, absent

__all__ = [
    "Bank",
    "BankList",
    "FieldError",
    "Health",
    "Memory",
    "MemoryList",
    "ProblemBody",
    "Readiness",
    "Retelling",
    "SearchResult",
    "SearchResults",
    "Stored",
    "Used",
]

VERSIONS = "^[0-9a-f]{16}$"
STORED: dict[str, Any] = {
    "id": ID,
    "text": TEXT,
    "actions": ["a3", "a4"],
    "pinned": False,
    "metadata": {"chapter": 2},
    "state": "active",
    "reason": "",
    "writer": None,
    "model": "all-MiniLM-L6-v2",
    "ordinal": 1,
    "created": TIME,
    "last_used": None,
    "use_count": 0,
    "version": VERSION,
}
BANK: dict[str, Any] = {
    "name": "story1",
    "model": "all-MiniLM-L6-v2",
    "dimensions": 384,
    "counts": {"active": 12},
    "capacity": None,
    "revision": 14,
    "created": TIME,
    "version": VERSION,
    "rhythm": {"every": 6, "untouched": 6, "summary_every": 15},
}


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Memory(_Given):
    """A stored memory."""

    model_config = ConfigDict(json_schema_extra={"examples": [STORED]})

    id: str = Field(description="unique in its bank")
    text: str = Field(description="what happened")
    actions: list[str] = Field(description=ACTIONS)
    pinned: bool = Field(description="before all others in a context, never forgotten")
    metadata: dict[str, Any] = Field(description="kept for the caller")
    state: State = Field(description="only `active` memories are searched")
    reason: str = Field(description="why it is in its state; empty for an active one")
    writer: str | None = Field(description="what wrote it from its source actions; null if it was written by hand")
    model: str = Field(description="the embedding model of its vector")
    ordinal: int = Field(description="its place in the order of storing", ge=1)
    created: datetime = Field(description="when it was first stored, in UTC")
    last_used: datetime | None = Field(description="when it last went into a committed context, in UTC")
    use_count: int = Field(description="how often it went into a committed context", ge=0)
    version: str = Field(description="its ETag: changes with all that can be edited", pattern=VERSIONS)


class Stored(_Given):
    """Memories as they are after the call, one for each item that was sent."""

    memories: list[Memory] = Field(description="in the order of the call")


class MemoryList(_Given):
    """Memories in the order of storing."""

    memories: list[Memory] = Field(description="those of this page; a page of very long ones may be shorter than asked")
    cursor: str | None = Field(description="hand it back for the next page; null on the last", examples=[None])


class Bank(_Given):
    """A bank: all memories of one adventure."""

    model_config = ConfigDict(json_schema_extra={"examples": [BANK]})

    name: str = Field(description="its name")
    model: str = Field(description="the embedding model of its vectors")
    dimensions: int = Field(description="the width of its vectors", ge=1)
    counts: dict[str, int] = Field(description="how many memories there are of each state")
    capacity: int | None = Field(description="how many active memories it may have; null for any number")
    revision: int = Field(description="grows with every write", ge=0)
    created: datetime = Field(description="when it was first written to, in UTC")
    version: str = Field(description="its ETag: changes with its settings", pattern=VERSIONS)
    rhythm: Rhythm = Field(description="how often it writes memories and the Story Summary from its log")


class BankList(_Given):
    """Banks in the order of their names."""

    banks: list[Bank] = Field(description="those of this page")
    cursor: str | None = Field(description="hand it back for the next page; null on the last", examples=[None])


class Retelling(_Given):
    """Another result that tells nearly the same."""

    id: str = Field(description="which memory", examples=["m7"])
    cosine: float = Field(description="of the vectors of the two", ge=-1, le=1, examples=[0.93])


class SearchResult(_Given):
    """A memory that was found."""

    memory: Memory = Field(description="the memory")
    similarity: float = Field(description="cosine of its vector and the query's", ge=-1, le=1, examples=[0.71])
    rank: int = Field(description="its place in the whole ranking, 1 for the best", ge=1, examples=[1])
    parts: dict[str, float] = absent("the parts of the score, if `explain` was asked for", [{"semantic": 0.71}])
    retold_by: list[Retelling] = absent(
        "newer or pinned others that tell nearly the same, nearest first, if `retellings` was asked for", [[]]
    )


class SearchResults(_Given):
    """What was found, best first."""

    results: list[SearchResult] = Field(description="none for a bank that was never written to")


class Used(_Given):
    """How many memories were there to be counted."""

    used: int = Field(description="memories whose use was counted", ge=0, examples=[2])


class Health(_Given):
    """The process answers."""

    status: Literal["ok"] = Field(description="always `ok`", examples=["ok"])


class Readiness(_Given):
    """Whether calls can be served, and what is in the way if not."""

    status: Literal["ready", "not-ready"] = Field(description="the whole", examples=["ready"])
    checks: dict[str, str] = Field(
        description="`ok` or what is wrong, for `database`, `model` and `queue`",
        examples=[{"database": "ok", "model": "ok", "queue": "ok"}],
    )


class FieldError(_Given):
    """What is wrong with one field."""

    field: str = Field(description="where it is", examples=["memories[3].text"])
    message: str = Field(description="what is wrong", examples=["Field required"])


class ProblemBody(_Given):
    """An error (RFC 9457)."""

    type: str = Field(description="its kind", examples=["urn:story-context:problem:invalid-request"])
    title: str = Field(description="its kind, in words", examples=["The request is not valid"])
    status: int = Field(description="the status code", ge=400, le=599, examples=[422])
    detail: str = Field(description="what is wrong here, and what to do", examples=["memories[3].text: Field required"])
    instance: str = Field(description="this request, as the server's log calls it", examples=["urn:request:7f3a"])
    errors: list[FieldError] = absent("fields at fault", [[{"field": "memories[3].text", "message": "…"}]])
