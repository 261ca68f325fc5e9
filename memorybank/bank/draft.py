"""What a write will do to a bank, worked out on the rows that it concerns before anything is stored: pure.

A draft is made inside the write transaction from the bank's row and the memories in question, is changed by the calls
below in their order, as if each item were written alone, and is then stored as a whole.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from memorybank.bank.reads import not_found
from memorybank.errors import InvalidInputError, PreconditionError
from memorybank.memory import Memory, NewMemory, State
from memorybank.storage.rows import BankState, StoredMemory, text_hash
from memorybank.writing.staleness import Source, source_hash

__all__ = ["Draft", "evicted"]

BY_HAND = "forgotten by hand"
STALE = "its source actions have changed or are gone"

_GIVEN_ID = re.compile(r"m([1-9][0-9]{0,14})")


class Draft:
    """A bank's row and some of its memories, with the changes that are to be stored.

    Attributes:
        arrived: ordinals of memories that became active, in order: new ones and restored ones.
        dropped: ordinals of memories to be deleted.
        unwanted: those among them that were written from the log, and are not to be written again.
    """

    def __init__(self, state: BankState, rows: Iterable[StoredMemory], now: datetime) -> None:
        self._state = replace(state, revision=state.revision + 1)
        self._next_ordinal, self._next_number = state.next_ordinal, state.next_number
        self.arrived: list[int] = []
        self.dropped: list[int] = []
        self.unwanted: list[StoredMemory] = []
        self._now = now
        self._rows: dict[str, StoredMemory] = {}
        self._ids_of_text: dict[str, list[str]] = {}
        self._stored: dict[int, StoredMemory] = {}
        self.load(rows)

    @property
    def state(self) -> BankState:
        """The bank's row as it will be; its revision is already the one that this write gets."""
        return replace(self._state, next_ordinal=self._next_ordinal, next_number=self._next_number)

    def set_capacity(self, capacity: int | None) -> None:
        """Give the bank room for so many memories."""
        self._state = replace(self._state, capacity=capacity)

    def load(self, rows: Iterable[StoredMemory]) -> None:
        """Take in more rows of the database; those known already stay as they are."""
        for row in sorted(rows, key=lambda row: row.ordinal):
            if row.ordinal not in self._stored:
                self._stored[row.ordinal] = row
                self._put(row)

    def memory(self, id: str) -> Memory:
        """Return a memory as it will be."""
        return self._rows[id].memory

    def row(self, id: str) -> StoredMemory:
        """Return a memory's row as it will be."""
        return self._rows[id]

    def require(self, ids: Iterable[str]) -> None:
        """Raise MemoryNotFoundError unless all of these memories exist."""
        missing = [id_ for id_ in ids if id_ not in self._rows]
        if missing:
            raise not_found(self.state.bank, missing)

    def match(self, ids: Iterable[str], versions: Set[str] | None) -> None:
        """Raise PreconditionError unless each of these memories is one of the versions; None is any."""
        for id_ in ids if versions is not None else ():
            found = self._rows[id_].memory.version
            if found not in (versions or ()):
                raise PreconditionError(
                    f"memory {id_!r} of bank {self.state.bank!r} has version {found} by now: read it again and repeat "
                    "the change"
                )

    def reserve(self, ids: Iterable[str | None]) -> None:
        """Keep ids like `m7` that the caller uses from being given to another memory, now or later."""
        numbers = [int(match[1]) for id_ in ids if id_ is not None and (match := _GIVEN_ID.fullmatch(id_))]
        self._next_number = max([self._next_number, *(n + 1 for n in numbers)])

    def add(self, item: NewMemory, vector: bytes) -> str:
        """Add a memory, or change the one that it is; return its id.

        What an item leaves at its default (no actions, not pinned, no metadata) changes nothing in a memory that is
        there, so that writing the same again is always harmless. Its state stays as it is, too.
        """
        id_ = item.id if item.id is not None else self._same(item)
        if id_ is not None and id_ in self._rows:
            given: dict[str, Any] = {"pinned": True} if item.pinned else {}
            given |= {"actions": item.actions} if item.actions else {}
            given |= {"metadata": item.metadata} if item.metadata else {}
            self.edit(id_, vector, text=item.text, **given)
            return id_
        return self._insert(item, id_, vector)

    def edit(self, id: str, vector: bytes | None = None, **changes: Any) -> None:
        """Change fields of a memory. `vector` is that of `changes["text"]`, used only if the text is another one."""
        row = self._rows[id]
        if row.source is not None and changes.get("actions", row.memory.actions) != row.memory.actions:
            raise InvalidInputError(
                f"memory {id!r} was written from its actions, which cannot be changed: add another memory instead"
            )
        if "state" in changes:
            row, changes = _with_state(row, changes)
        memory = replace(row.memory, **changes)
        if vector is not None and memory.text != row.memory.text:
            memory = replace(memory, model=self.state.model)
            row = replace(row, vector=vector, text_hash=text_hash(memory.text))
        if memory.state == "active" != row.memory.state:
            self.arrived.append(row.ordinal)
        self._put(replace(row, memory=memory))

    def drop(self, ids: Iterable[str]) -> None:
        """Delete memories."""
        gone = [self._rows.pop(id_) for id_ in ids]
        self.dropped += [row.ordinal for row in gone]
        self.unwanted += [row for row in gone if row.source is not None]

    def forget(self, ordinals: Iterable[int]) -> None:
        """Make memories forgotten, for lack of room, that were loaded or inserted before."""
        ids = {row.ordinal: id_ for id_, row in self._rows.items()}
        for ordinal in ordinals:
            self.edit(ids[ordinal], state="forgotten", reason=f"the bank has room for {self.state.capacity}")

    def age(self, row: StoredMemory, span: int | None) -> None:
        """Make a memory stale, or what it was before it became so.

        Args:
            row: a memory written from the log.
            span: where its actions stand in the log now; None if they do not.
        """
        memory = self._rows[row.memory.id].memory
        if span is None:
            if memory.state != "stale":
                stale = replace(memory, state="stale", reason=STALE)
                self._put(replace(row, memory=stale, held_state=memory.state))
                self.arrived = [ordinal for ordinal in self.arrived if ordinal != row.ordinal]
        elif memory.state != "stale":
            self._put(replace(row, span=span))
        else:
            state: State = row.held_state or "active"
            valid = replace(memory, state=state, reason="" if state == "active" else BY_HAND)
            self._put(replace(row, memory=valid, span=span, held_state=None))
            if state == "active":
                self.arrived.append(row.ordinal)

    def write(self, item: NewMemory, vector: bytes, *, writer: str, span: int, sources: Sequence[Source]) -> str:
        """Add a memory written from a span of the log; return its id."""
        id_ = self._insert(item, None, vector)
        row = self._rows[id_]
        hashes = tuple(source.text_hash for source in sources)
        memory = replace(row.memory, writer=writer)
        self._put(replace(row, memory=memory, span=span, source=source_hash(sources), source_hashes=hashes))
        return id_

    def change_of_active(self, arrived: Iterable[int]) -> int:
        """Return how many more memories are active than are stored so, leaving out those that have just become so."""
        before = sum(row.memory.state == "active" for row in self._stored.values())
        return sum(row.memory.state == "active" for row in self._rows.values()) - len(set(arrived)) - before

    def rows(self) -> dict[int, StoredMemory]:
        """Return all rows of the draft, as they will be, by ordinal."""
        return {row.ordinal: row for row in self._rows.values()}

    def inserts(self) -> list[StoredMemory]:
        """Return the new rows."""
        return [self._stamped(row) for row in self._rows.values() if row.ordinal not in self._stored]

    def updates(self) -> list[StoredMemory]:
        """Return the rows that differ from what is stored."""
        return [
            self._stamped(row)
            for row in self._rows.values()
            if row.ordinal in self._stored and _differ(row, self._stored[row.ordinal])
        ]

    def _insert(self, item: NewMemory, id_: str | None, vector: bytes) -> str:
        ordinal = self._next_ordinal
        self._next_ordinal += 1
        if id_ is None:
            id_ = f"m{self._next_number}"
            self._next_number += 1
        memory = Memory(
            id=id_,
            text=item.text,
            actions=item.actions,
            pinned=item.pinned,
            metadata=item.metadata,
            state="active",
            model=self._state.model,
            created=self._now,
            ordinal=ordinal,
        )
        self._put(StoredMemory(ordinal, self._state.revision, text_hash(item.text), vector, memory))
        self.arrived.append(ordinal)
        return id_

    def _put(self, row: StoredMemory) -> None:
        self._rows[row.memory.id] = row
        ids = self._ids_of_text.setdefault(row.memory.text, [])
        if row.memory.id not in ids:
            ids.append(row.memory.id)

    def _same(self, item: NewMemory) -> str | None:
        """Return the id of the memory that an item without an id is: the oldest with its text and its source actions.

        Where none has just these actions, it is the oldest that has none, or any if the item has none. The same words
        about other actions tell of another event.
        """
        memories = [self._rows[id_].memory for id_ in self._ids_of_text.get(item.text, [])]
        same = [memory for memory in memories if memory.text == item.text]
        alike = [memory for memory in same if memory.actions == item.actions] if item.actions else same
        found = alike or [memory for memory in same if not memory.actions]
        return found[0].id if found else None

    def _stamped(self, row: StoredMemory) -> StoredMemory:
        """Return the row with this write's revision, if an index has to know of the change."""
        if row.revision == self._state.revision:
            return row
        before = self._stored.get(row.ordinal)
        same = before is not None and _indexed(before) == _indexed(row)
        return row if same else replace(row, revision=self._state.revision)


def _with_state(row: StoredMemory, changes: dict[str, Any]) -> tuple[StoredMemory, dict[str, Any]]:
    """Return the row and the changes with what a new state brings along."""
    state, reason = changes["state"], changes.get("reason", BY_HAND)
    if row.memory.state != "stale":
        same = state == row.memory.state
        return row, changes | {"reason": row.memory.reason if same else "" if state == "active" else reason}
    if state == "active":
        raise InvalidInputError(
            f"memory {row.memory.id!r} is stale, {STALE}: it is active again when they are back; to keep it whatever "
            "happens, add its text as a memory of its own"
        )
    return replace(row, held_state=state), {name: value for name, value in changes.items() if name != "state"}


def evicted(
    least_used: Iterable[tuple[int, int]], arrivals: Iterable[tuple[int, int, bool]], active: int, capacity: int
) -> list[int]:
    """Return the ordinals of the memories that are forgotten so that a bank keeps its capacity (SPEC.md section 9).

    Before each arrival into a full bank the least used memory goes, among equals the oldest. Where only pinned ones
    are left, nothing goes and the bank has more than its capacity.

    Args:
        least_used: (use count, ordinal) of the unpinned active memories that were there, at least of the first to go.
        arrivals: (use count, ordinal, pinned) of those that become active, in order.
        active: number of active memories before the arrivals.
        capacity: how many there may be.

    >>> evicted([(0, 1), (0, 2), (5, 3)], [(0, 4, False), (0, 5, True)], active=3, capacity=3)
    [1, 2]
    """
    heap = list(least_used)
    heapq.heapify(heap)
    gone: list[int] = []

    def make_room(for_more: int) -> None:
        while heap and active - len(gone) + for_more > capacity:
            gone.append(heapq.heappop(heap)[1])

    make_room(0)
    for use_count, ordinal, pinned in arrivals:
        make_room(1)
        active += 1
        if not pinned:
            heapq.heappush(heap, (use_count, ordinal))
    return gone


def _indexed(row: StoredMemory) -> tuple[object, ...]:
    """Return what an index holds of a row."""
    return row.memory.text, row.memory.state, row.vector, row.span


def _differ(one: StoredMemory, other: StoredMemory) -> bool:
    """Return whether two rows are stored differently. Python calls 1, 1.0 and True equal, JSON does not."""
    return one != other or json.dumps(one.memory.metadata) != json.dumps(other.memory.metadata)
