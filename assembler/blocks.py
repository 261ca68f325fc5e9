r"""Text whose costs add up (SPEC.md section 2).

A block is a text without surrounding whitespace, ended by one ``\n`` (the last block of a context by none). The
tokenizers in use never let a token cross from a line end into a character that is no space. So the tokens of a block
are the same wherever it stands, the cost of a context is the sum of its blocks, and a cost needs counting once.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from assembler.action_log import Action
from memorybank.text import clean
from memorybank.tokenizer import Tokenizer

__all__ = ["Block", "BlockMaker", "block_maker", "joins_line_end", "shown"]

QUOTE = "> "
"""Stands before what the player did or said, unless the text begins with `>` already."""

GENERATION = 32_000_000
"""Characters in one generation of the cache; two are kept."""


@dataclass(frozen=True, slots=True)
class Block:
    r"""A piece of text as it stands in the context.

    Attributes:
        text: clean, without the line end. Empty if there is nothing to show.
        tokens: the cost with the line end, or without it if the block is the context's last; 0 for an empty one.
    """

    text: str
    tokens: int


EMPTY = Block("", 0)


def shown(action: Action) -> str:
    """Return an action as it stands in a context: what the player did or said behind `> ` (SPEC.md section 5)."""
    text = clean(action.text)
    return QUOTE + text if action.kind in ("do", "say") and not text.startswith(">") else text


def joins_line_end(text: str) -> bool:
    """Whether a block of that text can have other tokens behind a line end than alone: with a slash, in o200k_base."""
    return text[:1] == "/"


class BlockMaker:
    """Makes blocks and remembers their costs, for one tokenizer.

    The cache has two generations: when the young one is full it becomes the old one, whose texts are forgotten if
    nobody asks for them in time. So memory is bounded and a look-up costs one dictionary access. Safe with threads.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._young: dict[tuple[str, str, str], Block] = {}
        self._old: dict[tuple[str, str, str], Block] = {}
        self._size = 0

    def __call__(self, text: str, prefix: str = "", suffix: str = "", *, last: bool = False) -> Block:
        """Return the block of a text with what is shown around it; an empty text has an empty block.

        Args:
            text: any text; it is cleaned.
            prefix: shown before it.
            suffix: shown behind it.
            last: whether the block is the context's last, which has no line end.
        """
        key = (text, prefix, suffix if last else suffix + "\n")
        block = self._young.get(key)
        return block if block is not None else self._remember(key, suffix)

    def action(self, action: Action, *, last: bool = False) -> Block:
        """Return the block of an action: what the player did or said stands behind `> ` (SPEC.md section 5)."""
        key = (action.text, QUOTE if action.kind in ("do", "say") else "", "" if last else "\n")
        block = self._young.get(key)
        return block if block is not None else self._remember(key, "")

    def _remember(self, key: tuple[str, str, str], suffix: str) -> Block:
        block = self._old.get(key) or self._make(*key, suffix)
        if self._size > GENERATION:
            self._young, self._old, self._size = {}, self._young, 0
        self._young[key] = block
        self._size += len(key[0]) + len(block.text) + 100
        return block

    def _make(self, text: str, prefix: str, end: str, suffix: str) -> Block:
        text = clean(text)
        if not text:
            return EMPTY
        if prefix == QUOTE and text.startswith(">"):
            prefix = ""
        return Block(prefix + text + suffix, self.tokenizer.count(prefix + text + end))


@functools.lru_cache(maxsize=8)
def block_maker(tokenizer: Tokenizer) -> BlockMaker:
    """Return the block maker of a tokenizer; counts made for one context serve the next."""
    return BlockMaker(tokenizer)
