"""Rows about a bank's story as values. No statements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Self

from memorybank.writing.rhythm import Rhythm

__all__ = ["StoredAction", "StoredStory", "StoredSummary", "StoredTask", "TaskStatus", "What"]

What = Literal["memory", "summary"]
TaskStatus = Literal["claimed", "failed", "empty", "dropped"]


@dataclass(frozen=True, slots=True)
class StoredStory:
    """A bank's row of `stories`; see `story_schema.py`."""

    memory_every: int
    untouched: int
    summary_every: int
    length: int = 0
    settled: int = 0
    due_at: datetime | None = None

    @classmethod
    def of(cls, rhythm: Rhythm) -> Self:
        """Return the row of a log without actions."""
        return cls(rhythm.every, rhythm.untouched, rhythm.summary_every)

    @property
    def most_due(self) -> int:
        """How many memories are due, if nothing is written behind what is settled."""
        return max(0, self.length - self.untouched - self.settled) // self.memory_every

    def in_rhythm(self, rhythm: Rhythm) -> StoredStory:
        """Return the row with another rhythm."""
        return replace(self, memory_every=rhythm.every, untouched=rhythm.untouched, summary_every=rhythm.summary_every)


@dataclass(frozen=True, slots=True)
class StoredAction:
    """An action of the log, with its place and its hashes."""

    position: int
    id: str
    kind: str
    text: str
    hash: str
    chain: str


@dataclass(frozen=True, slots=True)
class StoredTask:
    """What was or is to be written from a source; see `story_schema.py`.

    Attributes:
        what: `memory` or `summary`.
        source: hash of what it is written from.
        start: position of its first action.
        sources: id and hash of each action of a span, as JSON; "[]" for a summary.
        status: `claimed` by `owner` until `until`; `failed`, to be tried again at `until`; done without a memory as
            `empty` (nothing to tell) or `dropped` (it was deleted by hand, and is not wanted again).
        owner: who works on it.
        until: see `status`.
        attempts: how often it was begun.
        error: why it failed.
    """

    what: What
    source: str
    start: int
    sources: str
    status: TaskStatus
    owner: str | None = None
    until: datetime | None = None
    attempts: int = 0
    error: str = ""

    @property
    def is_done(self) -> bool:
        """Whether nobody has to work on it any more."""
        return self.status in ("empty", "dropped")


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A version of the Story Summary; see `story_schema.py`."""

    version: int
    through: int
    chain: str | None
    text: str
    author: str
    created: datetime
