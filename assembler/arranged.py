"""A context in its order: a few lines before History, History as one run of blocks, a few lines behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from assembler.blocks import joins_line_end
from assembler.dynamic.ledger import Run
from assembler.report import Line

__all__ = ["Arranged"]


@dataclass
class Arranged:
    """All blocks of a context; a block has a number, from 0.

    Attributes:
        before: the lines before History.
        run: History.
        behind: the lines behind it.
    """

    before: list[Line]
    run: Run
    behind: list[Line]

    @cached_property
    def texts(self) -> list[str]:
        """The blocks, without their line ends."""
        return [*(line.block for line in self.before), *self.run.texts, *(line.block for line in self.behind)]

    @cached_property
    def text(self) -> str:
        """The whole context."""
        before, behind = (line.block for line in self.before), (line.block for line in self.behind)
        return "\n".join([*before, *self.run.pieces, *behind])

    @cached_property
    def cost(self) -> int:
        """What the blocks cost, each by itself."""
        return self.run.tokens + sum(line.used for line in self.before) + sum(line.used for line in self.behind)

    @cached_property
    def seams(self) -> list[int]:
        """The numbers of the blocks that may join with the line end of the block before them."""
        first = len(self.before)
        behind = first + len(self.run)
        found = [number for number, line in enumerate(self.before) if joins_line_end(line.block)]
        found += [first + number for number in self.run.seams]
        found += [number for number, line in enumerate(self.behind, behind) if joins_line_end(line.block)]
        return found[1:] if found[:1] == [0] else found  # nothing stands before the first block

    def cost_of(self, number: int) -> int:
        """Return what a block costs by itself."""
        line = self._line(number)
        return self.run.cost(number - len(self.before)) if line is None else line.used

    def use(self, number: int, tokens: int) -> None:
        """Note what a block costs in this context."""
        line = self._line(number)
        if line is None:
            self.run.used[number - len(self.before)] = tokens
        else:
            line.used = tokens

    def _line(self, number: int) -> Line | None:
        """Return the line of a block, None if it stands in History."""
        if number < len(self.before):
            return self.before[number]
        number -= len(self.before) + len(self.run)
        return self.behind[number] if number >= 0 else None
