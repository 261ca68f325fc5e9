"""The finished context is counted once, whole; its exact count never exceeds the context size (SPEC.md section 2).

With the tokenizers in use the blocks' costs add up and this is one count. With a tokenizer that breaks additivity
the count comes out lower or higher: what is over goes out again, what is free is filled, and each line of the report
gets the tokens that begin in its block, so that the lines add up to the exact count all the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from assembler.report import Offer
from memorybank.tokenizer import Tokenizer

__all__ = ["count_exactly"]


def count_exactly(
    arranged: Callable[[], list[Offer]],
    *,
    size: int,
    tokenizer: Tokenizer,
    take_more: Callable[[int], bool],
    give_up: Callable[[], bool],
) -> tuple[str, int, list[Offer]]:
    """Return the context's text, its exact count and its offers in order.

    Args:
        arranged: returns what is in the context, in its order.
        size: the context size.
        tokenizer: counts.
        take_more: takes in more items, given the tokens that there are; whether it took any.
        give_up: leaves out one item; False if there is none to leave out.
    """
    may_grow = True
    while True:
        offers = arranged()
        text = "\n".join(offer.block for offer in offers)
        tokens = tokenizer.count(text)
        expected = sum(offer.used for offer in offers)
        if tokens > size and give_up():
            may_grow = False  # or an item would go in and out for ever
        elif tokens < expected and may_grow and take_more(size - tokens):
            continue
        else:
            break
    if tokens != expected:
        _attribute(offers, text, tokenizer)
    return text, tokens, offers


def _attribute(offers: list[Offer], text: str, tokenizer: Tokenizer) -> None:
    """Give each offer the tokens that begin in its block or in the line end behind it."""
    starts = tokenizer.starts(text)
    end, counted = 0, 0
    for offer in offers:
        end += len(offer.block) + 1
        begun = len(starts) if offer is offers[-1] else bisect_left(starts, end)
        offer.used = begun - counted
        counted = begun
