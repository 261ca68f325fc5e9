"""Memory Bank: recalled memories by relevance to the last action, pinned ones first, taken while they fit.

SPEC.md section 4, paragraph *Memory Bank*. Whether a memory is redundant is judged against the history that stands
when the memories are taken (step 3); history that comes in later with what is left (step 4) does not throw one out.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from assembler.action_log import ActionLog
from assembler.blocks import BlockMaker
from assembler.dynamic.headed import HeadedSection
from assembler.dynamic.retellings import newest_tellings
from assembler.report import Line
from memorybank.memory import Memory, Recalled

__all__ = ["UNKNOWN_TIME", "Bank", "Memories"]

UNKNOWN_TIME = datetime.fromtimestamp(0, UTC)
"""When the memories of a document were made: nobody knows."""


class Bank(Protocol):
    """What the assembler needs of a memory bank; `memorybank.MemoryBank` is one."""

    def search(
        self,
        query: str,
        *,
        limit: int = ...,
        ranking: str = ...,
        recent: Sequence[str] = ...,
        pinned_first: bool = ...,
        retellings: bool = ...,
    ) -> Sequence[Recalled]:
        """Return memories by relevance to `query`, best first, the pinned ones before all others.

        `recent` are the texts before the query, oldest first, a weaker part of it; `ranking` is the mode.
        With `retellings`, each says which others of the answer tell the same: see `Recalled.retold_by`.
        """
        ...


def _origin(memory: Memory) -> dict[str, Any]:
    """Return what the report says of a memory besides: from what, when and by what it was made, and its use.

    A document's own memories were made at no known time, and the same document gives the same bytes.
    """
    known: dict[str, Any] = {"pinned": True} if memory.pinned else {}
    if memory.actions:
        known["actions"] = list(memory.actions)
    if memory.created > UNKNOWN_TIME:
        known["made"] = memory.created.isoformat()
    if memory.writer is not None:
        known["writer"] = memory.writer
    if memory.last_used is not None:
        known |= {"use_count": memory.use_count, "last_used": memory.last_used.isoformat()}
    return known


class Memories(HeadedSection):
    """The section `memory_bank`: memories are whole or absent; in the context they stand in story order."""

    def __init__(self, log: ActionLog, blocks: BlockMaker, *, near_duplicate: float | None = None) -> None:
        super().__init__("memory_bank", blocks)
        self._near_duplicate = near_duplicate
        self._log = log
        self._blocks = blocks
        self._recalled: Sequence[Recalled] = ()
        self._retold_by: dict[str, tuple[str, float]] = {}
        self._told: dict[str, str] = {}  # by the newest telling of an event: the telling that stands in the context

    def offer(self, recalled: Sequence[Recalled]) -> None:
        """Offer the memories that the bank has recalled, best first."""
        self._recalled = recalled
        self._retold_by = newest_tellings(recalled, self._near_duplicate)
        self._told.clear()
        self.items.clear()
        for rank, result in enumerate(recalled, start=1):
            block = self._blocks(result.memory.text)
            details: dict[str, Any] = {"rank": rank, "similarity": round(result.similarity, 6)}
            details |= _origin(result.memory)
            self.items.append(Line("memory_bank", result.memory.id, block.text, block.tokens, details=details))

    def fill(self, room: int, in_context: Container[str]) -> int:
        """Take memories in the order of rank while they fit; return the tokens that it took.

        Args:
            room: tokens that there are.
            in_context: ids of the actions that stand in the context already.
        """
        used = 0
        offered = list(zip(self.items, self._recalled, strict=True))
        by_id = {line.item: (line, result) for line, result in offered} if self._retold_by else {}
        for line, result in offered:
            if line.verdict == "kept":
                continue
            newest, cosine = self._retold_by.get(line.item, (line.item, 0.0))
            if newest != line.item:  # it takes the place of the better ranked one, if there is room for it
                used += self._offer(*by_id[newest], room - used, in_context)
            told = self._told.get(newest)
            if told is None or told == line.item:
                used += self._offer(line, result, room - used, in_context)
            else:
                where = "which is in" if by_id[told][0].verdict == "kept" else "which history tells already"
                line.drop(f"tells the same as {told}, {where} (cosine {cosine or self._retold_by[told][1]:.2f})")
        return used

    def _offer(self, line: Line, result: Recalled, room: int, in_context: Container[str]) -> int:
        """Take a memory in if there is no reason not to; return the tokens that it took."""
        if line.verdict == "kept":
            return 0
        if not line.block:
            line.drop("the text is empty")
        elif self._is_redundant(result.memory, in_context):
            line.drop("already in history")
            self._told[self._event(line)] = line.item
        else:
            return self.take(line, room)
        return 0

    def candidates(self, most: int, in_context: Container[str]) -> list[Line]:
        """Return the memories, best first, that nothing but a lack of room keeps out and that need at most so much.

        Args:
            most: tokens.
            in_context: ids of the actions that stand in the context already.
        """
        return [
            line
            for line, result in zip(self.items, self._recalled, strict=True)
            if line.offered <= most
            and self.needs(line) <= most
            and self.may_go_in(line)
            and self._told.get(self._event(line), line.item) == line.item
            and not self._is_redundant(result.memory, in_context)
        ]

    def _event(self, line: Line) -> str:
        """Return the newest telling of what a memory tells: itself, if nothing tells the same."""
        return self._retold_by.get(line.item, (line.item, 0.0))[0]

    def put_in(self, line: Line) -> None:
        """Take a memory in, whatever it costs, as the telling of its event."""
        super().put_in(line)
        self._told[self._event(line)] = line.item

    def give_up(self, line: Line, reason: str) -> None:
        """Leave out a memory that was in; another telling of its event may go in."""
        super().give_up(line, reason)
        self._told.pop(self._event(line), None)

    def reset(self) -> None:
        """Leave everything out, to be packed again."""
        super().reset()
        self._told.clear()

    def _is_redundant(self, memory: Memory, in_context: Container[str]) -> bool:
        """Whether all source actions that have a text stand in the context; there must be one."""
        found = False
        for action in memory.actions:
            if action in in_context:
                found = True
            elif self._may_have_text(action):
                return False
        return found

    def _may_have_text(self, action_id: str) -> bool:
        position = self._log.position(action_id)
        return position is None or self._log[position].has_text

    def in_story_order(self) -> list[Line]:
        """Return the lines sorted by first source action in the log, then by time made.

        A memory without a source action in the log belongs to no place in the story; it stands before all others.
        """

        def place(index: int) -> tuple[int, datetime, int]:
            memory = self._recalled[index].memory
            positions = (self._log.position(action) for action in memory.actions)
            return next((p for p in positions if p is not None), -1), memory.created, memory.ordinal

        kept = sorted((index for index, line in enumerate(self.items) if line.kept), key=place)
        return [self._header, *(self.items[index] for index in kept)] if kept else []
