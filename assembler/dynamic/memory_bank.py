"""Memory Bank: recalled memories by relevance to the last action, pinned ones first, taken while they fit.

SPEC.md section 4, paragraph *Memory Bank*. Whether a memory is redundant is judged against the history that stands
when the memories are taken (step 3); history that comes in later with what is left (step 4) does not throw one out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Protocol

from assembler.action_log import ActionLog
from assembler.blocks import BlockMaker
from assembler.dynamic.headed import HeadedSection
from assembler.report import Line
from memorybank.memory import Memory, Recalled

__all__ = ["Bank", "Memories"]


class Bank(Protocol):
    """What the assembler needs of a memory bank; `memorybank.MemoryBank` is one."""

    def search(self, query: str, *, limit: int = ..., pinned_first: bool = ...) -> Sequence[Recalled]:
        """Return memories by relevance to `query`, best first, the pinned ones before all others."""
        ...


class Memories(HeadedSection):
    """The section `memory_bank`: memories are whole or absent; in the context they stand in story order."""

    def __init__(self, log: ActionLog, blocks: BlockMaker) -> None:
        super().__init__("memory_bank", blocks)
        self._log = log
        self._blocks = blocks
        self._recalled: Sequence[Recalled] = ()

    def offer(self, recalled: Sequence[Recalled]) -> None:
        """Offer the memories that the bank has recalled, best first."""
        self._recalled = recalled
        self.items.clear()
        for rank, result in enumerate(recalled, start=1):
            block = self._blocks(result.memory.text)
            details: dict[str, Any] = {"rank": rank, "similarity": round(result.similarity, 6)}
            if result.memory.pinned:
                details["pinned"] = True
            self.items.append(Line("memory_bank", result.memory.id, block.text, block.tokens, details=details))

    def fill(self, room: int, in_context: Collection[str]) -> int:
        """Take memories in the order of rank while they fit; return the tokens that it took.

        Args:
            room: tokens that there are.
            in_context: ids of the actions that stand in the context already.
        """
        used = 0
        for line, result in zip(self.items, self._recalled, strict=True):
            if line.verdict == "kept":
                continue
            if not line.block:
                line.drop("the text is empty")
            elif self._is_redundant(result.memory, in_context):
                line.drop("already in history")
            else:
                used += self.take(line, room - used)
        return used

    def _is_redundant(self, memory: Memory, in_context: Collection[str]) -> bool:
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
