"""What can be read of a bank without a model and without an index: one memory, pages, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from memorybank import inputs
from memorybank.bank.info import BankInfo, Page, Summary
from memorybank.errors import MemoryNotFoundError
from memorybank.memory import Memory, State

if TYPE_CHECKING:
    from memorybank.storage import BankState, Store
    from memorybank.storage.story_rows import StoredSummary
    from memorybank.writing.rhythm import Rhythm

__all__ = ["BankReads", "info_of", "not_found", "summary_of"]

Memories: TypeAlias = list[Memory]  # inside the class, `list` is a method


class BankReads:
    """The reading half of `MemoryBank`. Each call sees one moment of the database.

    Attributes:
        name: the bank's name.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.name = inputs.checked_id(name, what="the bank's name")
        self._store = store

    def get(self, id: str) -> Memory:
        """Return a memory.

        Raises:
            MemoryNotFoundError: there is no such memory.
        """
        with self._store.read() as reader:
            for row in reader.by_ids(self.name, [inputs.checked_id(id)]):
                return row.memory
        raise not_found(self.name, [id])

    def list(self, state: State | None = None) -> Memories:
        """Return all memories, or all of one state, in the order of storing. For many, see `page`."""
        found: Memories = []
        cursor = None
        while True:
            page = self.page(state=state, limit=inputs.MAX_LIMIT, cursor=cursor)
            found += page.memories
            if (cursor := page.cursor) is None:
                return found

    def page(self, *, state: State | None = None, limit: int = 100, cursor: str | None = None) -> Page:
        """Return the next memories in the order of storing, from 1 to 10,000, and the cursor of those behind them.

        What is deleted or added between two pages makes none of the others appear twice or be left out.
        """
        known = None if state is None else inputs.checked_state(state)
        after = inputs.checked_cursor(cursor)
        most = inputs.checked_limit(limit)
        with self._store.read() as reader:
            rows = reader.page(self.name, state=known, after=after, limit=most + 1)
        more = str(rows[most - 1].ordinal) if len(rows) > most else None
        return Page(tuple(row.memory for row in rows[:most]), more)

    def count(self, state: State | None = None) -> int:
        """Return the number of memories, or of those of one state."""
        with self._store.read() as reader:
            counts = reader.counts(self.name)
        return sum(counts.values()) if state is None else counts.get(inputs.checked_state(state), 0)

    def exists(self) -> bool:
        """Return whether the bank was ever written to: what `info` says, without counting its memories."""
        with self._store.read() as reader:
            return reader.bank(self.name) is not None

    def info(self) -> BankInfo:
        """Return what there is to know of the bank as a whole."""
        with self._store.read() as reader:
            state = reader.bank(self.name)
            counts = reader.counts(self.name)
            rhythm = reader.story.rhythm(self.name)
        if state is None:
            return BankInfo(self.name, None, None, counts, None, 0, None)
        return info_of(state, counts, rhythm)


def info_of(state: BankState, counts: Mapping[str, int], rhythm: Rhythm) -> BankInfo:
    """Return what there is to know of a bank that has been written to."""
    return BankInfo(
        name=state.bank,
        model=state.model,
        dimensions=state.dimensions,
        counts=counts,
        capacity=state.capacity,
        revision=state.revision,
        created=state.created,
        version=state.version(rhythm),
        rhythm=rhythm,
    )


def summary_of(stored: StoredSummary) -> Summary:
    """Return a version of the Story Summary as the caller sees it."""
    return Summary(stored.version, stored.text, stored.author, stored.through, stored.created)


def not_found(bank: str, ids: Sequence[str]) -> MemoryNotFoundError:
    """Return the error for ids that no memory has."""
    more = f" and {len(ids) - 5:,} more" if len(ids) > 5 else ""
    return MemoryNotFoundError(
        f"bank {bank!r} has no memory {', '.join(map(repr, ids[:5]))}{more}: nothing was changed"
    )
