"""What the bank tells about itself: plain values, standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from memorybank.memory import Memory

__all__ = ["BankInfo", "CheckReport", "Page"]


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
    """

    name: str
    model: str | None
    dimensions: int | None
    counts: Mapping[str, int]
    capacity: int | None
    revision: int
    created: datetime | None
    version: str = ""


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
