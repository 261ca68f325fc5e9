"""What a memory is (SPEC.md sections 1 and 9): plain values, standard library only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

__all__ = ["Memory", "NewMemory", "Progress", "Recalled", "Settable", "State", "fingerprint"]

State = Literal["active", "forgotten", "stale"]
"""`active` memories are searched; `forgotten` ones are only listed, and so are `stale` ones: written from actions that
have changed or are gone."""

Settable = Literal["active", "forgotten"]
"""The states that a caller may give; a memory becomes stale, and valid again, by what happens to the log."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (texts done, texts in all) while something long goes on."""


def fingerprint(*parts: object) -> str:
    """Return 64 bits of a hash of values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to be stored.

    Attributes:
        text: what happened; kept without surrounding whitespace, at most `MAX_TEXT` characters.
        id: unique in its bank; None lets the bank give one.
        actions: ids of the actions that it was made from, oldest first; empty when written by hand.
        pinned: comes before all others in a context and is never forgotten.
        metadata: anything JSON can hold; the bank only keeps it.
    """

    text: str
    id: str | None = None
    actions: tuple[str, ...] = ()
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory.

    Attributes:
        id: unique in its bank.
        text: what happened.
        actions: ids of its source actions, oldest first.
        pinned: comes before all others in a context and is never forgotten.
        metadata: kept for the caller.
        state: `active`, `forgotten` or `stale`.
        model: name of the embedding model that made its vector.
        created: when it was first stored, in UTC.
        last_used: when it last went into a committed context, in UTC; None if never.
        use_count: how often it went into a committed context.
        ordinal: its place in the order of storing; tells apart what was stored at the same time.
        writer: what wrote it from its source actions; None if it was written by hand.
        reason: why it is in its state; "" for an active one.
    """

    id: str
    text: str
    actions: tuple[str, ...]
    pinned: bool
    metadata: Mapping[str, Any]
    state: State
    model: str
    created: datetime
    last_used: datetime | None = None
    use_count: int = 0
    ordinal: int = field(default=0, compare=False, repr=False)
    writer: str | None = None
    reason: str = ""

    @property
    def version(self) -> str:
        """Changes with everything that a caller can change, and with nothing else: 16 hexadecimal digits.

        Hand it back with a change (`if_match`), and the change is refused if somebody else came first. Use counters
        are not part of it: a memory that went into a context is still the one that was read.
        """
        parts = (self.id, self.text, self.actions, self.pinned, dict(self.metadata), self.state, str(self.created))
        return fingerprint(*parts)

    def to_dict(self) -> dict[str, Any]:
        """Return it as the command line prints it and the HTTP API sends it: times in ISO 8601."""
        return {
            "id": self.id,
            "text": self.text,
            "actions": list(self.actions),
            "pinned": self.pinned,
            "metadata": dict(self.metadata),
            "state": self.state,
            "reason": self.reason,
            "writer": self.writer,
            "model": self.model,
            "ordinal": self.ordinal,
            "created": self.created.isoformat(),
            "last_used": None if self.last_used is None else self.last_used.isoformat(),
            "use_count": self.use_count,
            "version": self.version,
        }


@dataclass(frozen=True, slots=True)
class Recalled:
    """One search result.

    Attributes:
        memory: the memory found.
        similarity: cosine of its vector and the query's, from -1 to 1.
        rank: 1 for the best of the ranking.
        parts: the parts of the score by name, if they were asked for.
        retold_by: other results that tell nearly the same and are newer, or pinned, with the cosine of the two, the
            nearest first; if that was asked for.
    """

    memory: Memory
    similarity: float
    rank: int
    parts: Mapping[str, float] | None = None
    retold_by: tuple[tuple[str, float], ...] = ()

    def to_dict(self, *, retellings: bool = False) -> dict[str, Any]:
        """Return it as JSON; `parts` only if there are some, `retold_by` only if `retellings` were asked for."""
        result: dict[str, Any] = {"memory": self.memory.to_dict(), "similarity": self.similarity, "rank": self.rank}
        if self.parts is not None:
            result["parts"] = dict(self.parts)
        if retellings:
            result["retold_by"] = [{"id": id_, "cosine": cosine} for id_, cosine in self.retold_by]
        return result
