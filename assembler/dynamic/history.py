"""History: whole actions, newest first, an unbroken run (SPEC.md section 4), with an anchor where one is given.

With an anchor (section 5, cache-friendly layout) the run begins with the action it began with on the previous turn
for as long as that fits. When it no longer fits, the beginning moves on by at least `anchor_step` tokens, so that the
prompt keeps its beginning over many turns and not just one. Where History has no room for that step, and nothing of it
would be left, the newer half of what fits stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from assembler.adventure import Adventure
from assembler.blocks import BlockMaker
from assembler.report import Line, no_room

__all__ = ["History"]


class History:
    """The section `history`. Reads no more of the log than what fits and the first that does not."""

    def __init__(self, adventure: Adventure, blocks: BlockMaker, *, anchor: str | None, anchor_step: int) -> None:
        self._older = self._read(adventure, blocks)
        self._read_lines: list[Line] = []
        self._kept = 0
        self._most: int | None = None
        self._step = anchor_step
        self._anchor = anchor if anchor is not None and adventure.actions.position(anchor) is not None else None
        self.tokens = 0

    @staticmethod
    def _read(adventure: Adventure, blocks: BlockMaker) -> Iterator[Line]:
        actions = adventure.actions.newest_first()
        next(actions, None)  # the last action is no history
        for action in actions:
            block = blocks.action(action)
            yield Line("history", action.id, block.text, block.tokens)

    def _line(self, index: int) -> Line | None:
        """Return the line of the action that is `index` actions older than the newest of history."""
        lines = self._read_lines
        while len(lines) <= index:
            line = next(self._older, None)
            if line is None:
                return None
            lines.append(line)
        return lines[index]

    @property
    def kept(self) -> list[Line]:
        """What is in the context, newest first."""
        return self._read_lines[: self._kept]

    @property
    def lines(self) -> list[Line]:
        """Every action kept, newest first, and the first that is not."""
        return self._read_lines[: self._kept + 1]

    @property
    def first(self) -> str | None:
        """The id of the oldest action kept: the anchor for the next turn."""
        return self.kept[-1].item if self._kept else None

    def fill(self, room: int) -> int:
        """Extend the run to older actions as far as the room goes; return the tokens that this took.

        Args:
            room: tokens for all of history, what is in already included.
        """
        before, left, index = self.tokens, room - self.tokens, self._kept
        if self._kept and self.first == self._anchor:
            return 0
        while (line := self._line(index)) is not None:
            if index == self._most:
                line.drop(f"history's beginning moved on, by {self._step} tokens or more")
                break
            if line.offered > left:
                line.drop(no_room(line.offered, left))
                break
            left -= line.offered
            index += 1
            if line.item == self._anchor:
                if (older := self._line(index)) is not None:
                    older.drop("older than the anchor, where history began on the previous turn")
                break
        for line in self._read_lines[self._kept : index]:
            line.keep()
            self.tokens += line.used
        self._kept = max(self._kept, index)
        return self.tokens - before

    def moves_on(self) -> bool:
        """Whether the anchor no longer fits and so many actions must go that history has to be packed again.

        If so, nothing is kept, and from now on history holds no more actions than a whole step leaves.
        """
        if self._anchor is None or (self._kept and self.first == self._anchor):
            return False
        most = self._left_by_a_step()
        if most >= self._kept:
            return False
        self._most, self._kept, self.tokens = most, 0, 0
        return True

    def _left_by_a_step(self) -> int:
        """Return how many of the kept actions stay if the beginning moves on by a whole step."""
        passed, index = 0, self._kept
        while passed < self._step:
            line = self._line(index)
            if line is None:  # the anchor is not among the actions before the last one: filled exactly
                return self._kept
            passed += line.offered
            index += 1
            if line.item == self._anchor:
                break
        count = self._kept
        while passed < self._step and count:
            count -= 1
            passed += self._read_lines[count].offered
        return count or self._newer_half()

    def _newer_half(self) -> int:
        """Return how many of the newest actions cost at most half of what is kept."""
        tokens = accumulate(line.offered for line in self.kept)
        return sum(2 * cost <= self.tokens for cost in tokens)

    def give_up_oldest(self, reason: str) -> bool:
        """Leave out the oldest action kept; False if there is none."""
        if not self._kept:
            return False
        self._kept -= 1
        line = self._read_lines[self._kept]
        self.tokens -= line.used
        line.drop(reason)
        return True
