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
        """Return the lines of history from the newest action on, each as it is when the action is in."""
        actions = adventure.actions.newest_first()
        next(actions, None)  # the last action is no history
        for action, block in blocks.actions(actions):
            yield Line("history", action.id, block.text, block.tokens, block.tokens, "kept")

    def _from(self, index: int) -> Iterator[Line]:
        """Return the lines from that one on, 0 being the newest of history; older ones are read when asked for."""
        lines = self._read_lines
        yield from lines[index:]
        for line in self._older:
            lines.append(line)
            yield line

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
        before, left = self.tokens, room - self.tokens
        if self._kept and self.first == self._anchor:
            return 0
        most, anchor, last = self._most, self._anchor, ""
        for line in self._from(self._kept):  # hundreds of them in every context, so little is called for each
            if self._kept == most:
                line.drop(f"history's beginning moved on, by {self._step} tokens or more")
                break
            if last == anchor:
                line.drop("older than the anchor, where history began on the previous turn")
                break
            if line.offered > left:
                line.drop(no_room(line.offered, left))
                break
            if line.verdict != "kept":  # it did not fit before
                line.keep()
            left -= line.offered
            last = line.item
            self._kept += 1
        self.tokens = room - left
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
        passed = 0
        for line in self._from(self._kept):
            passed += line.offered
            if passed >= self._step or line.item == self._anchor:
                break
        else:  # the anchor is not among the actions before the last one: filled exactly
            return self._kept
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
