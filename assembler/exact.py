"""The finished context has one exact count, which never exceeds the context size (SPEC.md section 2).

With the tokenizers in use the blocks' costs add up. Where a tokenizer is known to begin anew behind a line end, the
exact count is the sum of the blocks' exact counts, and only what stands around a block that may join with the line end
before it is counted once more; any other tokenizer counts the whole text. Where the count comes out lower or higher
than the costs, what is over goes out again, and what is free is filled. What is left out for a few tokens more than are
free is tried then: at its place it may cost less than alone. Each line of the report gets the tokens that begin in its
block, so that the lines add up to the exact count all the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from assembler.arranged import Arranged
from assembler.report import Line, no_room
from memorybank.tokenizer import Tokenizer

__all__ = ["OVER_EXACTLY", "Candidate", "Packed", "count_exactly"]

OVER_EXACTLY = "the exact count of the whole context was over its size"

SLACK = 3
"""Tokens that an item may cost less at its place than alone. A token each where it joins with the block before it and
where the next block joins with it, and one that was lost where those two had joined; with an estimate, a token for its
block and one for its header."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that is not in and could be.

    Attributes:
        line: what the report says of it.
        needs: what it costs by itself, in tokens, with its header where that is missing.
        take: takes it in.
        leave: leaves it out again, for a reason.
    """

    line: Line
    needs: int
    take: Callable[[], None]
    leave: Callable[[str], object]


class Packed(Protocol):
    """What packs the context and can change it."""

    def arranged(self) -> Arranged:
        """Return what is in."""
        ...

    def take_more(self, room: int) -> bool:
        """Take in more items whose costs fit the room; whether it took any."""
        ...

    def give_up(self, tokens: int) -> None:
        """Leave out one item, given the exact count; raises if there is none that may go."""
        ...

    def candidates(self, most: int, *, joining: bool) -> Iterable[Candidate]:
        """Return what could go in and needs at most so many tokens; all, or those that may join with a line end."""
        ...

    def explain(self, room: int) -> None:
        """Say why history ends where it does, after an action has gone in as a candidate."""
        ...


def count_exactly(packed: Packed, *, size: int, tokenizer: Tokenizer) -> tuple[Arranged, int]:
    """Return what is in the context, and its exact count.

    Args:
        packed: what packs it.
        size: the context size.
        tokenizer: counts.
    """
    fitting = _Fitting(packed, size, tokenizer)
    context, tokens = fitting.fit()
    if tokens != context.cost:
        _attribute(context, tokenizer, whole=fitting.whole)
    return context, tokens


class _Fitting:
    """Brings a packed context to its size by exact counts.

    Attributes:
        whole: whether the text has to be counted as one piece.
    """

    def __init__(self, packed: Packed, size: int, tokenizer: Tokenizer) -> None:
        self._packed = packed
        self._size = size
        self._tokenizer = tokenizer
        self._has_given_up = False
        self.whole = not getattr(tokenizer, "cuts_at_line_ends", False)

    def fit(self) -> tuple[Arranged, int]:
        """Return the context and its exact count."""
        while True:
            context = self._packed.arranged()
            tokens = self._count(context)
            if tokens > self._size:
                self._packed.give_up(tokens)
                # What is the last block now may have been paid for with a line end.
                self._has_given_up = self.whole = True
            elif tokens < context.cost and not self._has_given_up and self._packed.take_more(self._size - tokens):
                continue  # once something was given up, an item would go in and out for ever
            elif not self._try(context, tokens):
                return context, tokens

    def _count(self, context: Arranged) -> int:
        if self.whole:
            return self._tokenizer.count(context.text)
        count, cost = self._tokenizer.count, context.cost_of
        groups = _groups(context)
        return context.cost + sum(count(_text(context, *group)) - sum(map(cost, range(*group))) for group in groups)

    def _try(self, context: Arranged, tokens: int) -> bool:
        """Take in one item of which the exact count finds that it fits; whether there was one."""
        room = self._size - tokens
        adds_up = tokens == context.cost and not context.seams and not self._has_given_up
        adds_up = adds_up and not self._tokenizer.is_estimate  # which rounds each block
        for candidate in self._packed.candidates(room + SLACK, joining=adds_up):
            if candidate.line.reason == OVER_EXACTLY:
                continue  # it was given up, in the order of the rules
            reason = candidate.line.reason
            candidate.take()
            found = self._count(self._packed.arranged())
            if found <= self._size:
                if candidate.line.section == "history":
                    self._packed.explain(self._size - found)
                return True
            candidate.leave(no_room(found - tokens, room) if candidate.needs <= room else reason)
        return False


def _groups(context: Arranged) -> list[tuple[int, int]]:
    """Return the runs of blocks in which each but the first may join with the one before it."""
    groups: list[tuple[int, int]] = []
    for seam in context.seams:
        if groups and groups[-1][1] == seam:
            groups[-1] = (groups[-1][0], seam + 1)
        else:
            groups.append((seam - 1, seam + 1))
    return groups


def _text(context: Arranged, start: int, end: int) -> str:
    """Return the text of some blocks as it stands in the context."""
    return "\n".join(context.texts[start:end]) + ("\n" if end < len(context.texts) else "")


def _attribute(context: Arranged, tokenizer: Tokenizer, *, whole: bool) -> None:
    """Give each line the tokens that begin in its block or in the line end behind it."""
    for start, last in [(0, len(context.texts))] if whole else _groups(context):
        starts = tokenizer.starts(_text(context, start, last))
        end, counted = 0, 0
        for number in range(start, last):
            end += len(context.texts[number]) + 1
            begun = len(starts) if number == last - 1 else bisect_left(starts, end)
            context.use(number, begun - counted)
            counted = begun
