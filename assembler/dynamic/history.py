"""History: whole actions, newest first, an unbroken run (SPEC.md section 4), with an anchor where one is given.

With an anchor (section 5, cache-friendly layout) the run begins with the action it began with on the previous turn
for as long as that fits. When it no longer fits, the beginning moves on by at least `anchor_step` tokens, so that the
prompt keeps its beginning over many turns and not just one.
"""

from __future__ import annotations

from collections.abc import Iterator

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
        while len(self._read_lines) <= index:
            line = next(self._older, None)
            if line is None:
                return None
            self._read_lines.append(line)
        return self._read_lines[index]

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
            if line.offered > left:
                line.drop(no_room(line.offered, left))
                break
            left -= line.offered
            index += 1
            if line.item == self._anchor:
                if (older := self._line(index)) is not None:
                    older.drop("older than the anchor, where history began on the previous turn")
                break
        for line in self._read_lines[self._kept : self._move_on(index)]:
            line.keep()
            self._kept += 1
            self.tokens += line.used
        return self.tokens - before

    def _move_on(self, count: int) -> int:
        """Return how many of the `count` newest actions may stay: the beginning stays or moves by a whole step."""
        if self._anchor is None or (count and self._read_lines[count - 1].item == self._anchor):
            return count
        passed, index = 0, count
        while passed < self._step:
            line = self._line(index)
            if line is None:
                return count  # the anchor is not among the actions before the last one: filled exactly
            passed += line.offered
            if line.item == self._anchor:
                break
            index += 1
        while passed < self._step and count:
            count -= 1
            line = self._read_lines[count]
            passed += line.offered
            line.drop(f"left out so that the beginning of history moves on by {self._step} tokens")
        return count

    def give_up_oldest(self, reason: str) -> bool:
        """Leave out the oldest action kept; False if there is none."""
        if not self._kept:
            return False
        self._kept -= 1
        line = self._read_lines[self._kept]
        self.tokens -= line.used
        line.drop(reason)
        return True
