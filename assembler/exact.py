"""The finished context is counted once, whole; its exact count never exceeds the context size (SPEC.md section 2).

With the tokenizers in use the blocks' costs add up and this is one count. With a tokenizer that breaks additivity
the count comes out lower or higher: what is over goes out again, what is free is filled, and each line of the report
gets the tokens that begin in its block, so that the lines add up to the exact count all the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from assembler.report import Line
from memorybank.tokenizer import Tokenizer

__all__ = ["count_exactly"]


def count_exactly(
    arranged: Callable[[], list[Line]],
    *,
    size: int,
    tokenizer: Tokenizer,
    take_more: Callable[[int], bool],
    give_up: Callable[[int], None],
) -> tuple[str, int, list[Line]]:
    """Return the context's text, its exact count and its lines in order.

    Args:
        arranged: returns what is in the context, in its order.
        size: the context size.
        tokenizer: counts.
        take_more: takes in more items, given the tokens that there are; whether it took any.
        give_up: leaves out one item, given the exact count; raises if there is none that may go.
    """
    may_grow = True
    while True:
        lines = arranged()
        text = "\n".join(line.block for line in lines)
        tokens = tokenizer.count(text)
        expected = sum(line.used for line in lines)
        if tokens > size:
            give_up(tokens)
            may_grow = False  # or an item would go in and out for ever
        elif tokens < expected and may_grow and take_more(size - tokens):
            continue
        else:
            break
    if tokens != expected:
        _attribute(lines, text, tokenizer)
    return text, tokens, lines


def _attribute(lines: list[Line], text: str, tokenizer: Tokenizer) -> None:
    """Give each line the tokens that begin in its block or in the line end behind it."""
    starts = tokenizer.starts(text)
    end, counted = 0, 0
    for line in lines:
        end += len(line.block) + 1
        begun = len(starts) if line is lines[-1] else bisect_left(starts, end)
        line.used = begun - counted
        counted = begun
