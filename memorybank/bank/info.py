"""What the bank tells about itself: plain values, standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from memorybank.memory import Memory

if TYPE_CHECKING:
    from memorybank.writing.rhythm import Rhythm

__all__ = ["BankInfo", "CheckReport", "LogChange", "Page", "Pending", "Summary"]


@dataclass(frozen=True, slots=True)
class BankInfo:
    """A bank at one moment.

    Attributes:
        name: the bank's name.
        model: name of the embedding model of its vectors; None before the first write.
        dimensions: width of its vectors; None before the first write.
        counts: number of memories by state; states without any are left out.
        capacity: how many active memories it may have; None for any number.
        revision: grows with every write; 0 before the first.
        created: when it was first written to, in UTC; None before.
        version: changes with the bank's settings and with nothing else, see `Memory.version`; "" before then.
        rhythm: how often it writes a memory and the Story Summary; None before then.
    """

    name: str
    model: str | None
    dimensions: int | None
    counts: Mapping[str, int]
    capacity: int | None
    revision: int
    created: datetime | None
    version: str = ""
    rhythm: Rhythm | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some memories in the order of storing, and where the next ones begin.

    Attributes:
        memories: those of this page.
        cursor: hand it back for the next page; None when this is the last.
    """

    memories: tuple[Memory, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Whether database and index agree.

    Attributes:
        bank: the bank's name.
        memories: rows in the database, of any state.
        indexed: vectors in the index.
        problems: what is wrong, one line each; empty when all is well.
    """

    bank: str
    memories: int
    indexed: int
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class LogChange:
    """What became of a bank when its log changed.

    Attributes:
        length: actions in the log now.
        same: how many of them, from the first on, were there before.
        stale: ids of the memories that hold no longer.
        valid: ids of those that hold again.
        pending: memories that are due and not written yet.
    """

    length: int
    same: int
    stale: tuple[str, ...]
    valid: tuple[str, ...]
    pending: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A memory that is due and not written yet.

    Attributes:
        actions: ids of its source actions.
        attempts: how often somebody has tried.
        error: why the last try failed; "" if none has.
        retry_at: before this moment nobody tries again; None for at once.
    """

    actions: tuple[str, ...]
    attempts: int
    error: str
    retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A version of the Story Summary.

    Attributes:
        version: its number, from 1 on.
        text: what it says.
        author: the writer's name, or `player`.
        through: how many actions from the beginning on it tells.
        created: when it was written, in UTC.
    """

    version: int
    text: str
    author: str
    through: int
    created: datetime
