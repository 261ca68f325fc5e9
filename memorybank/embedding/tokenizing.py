"""A model's fast tokenizer, as its `tokenizer.json` says: what a player types is text to it, also `[CLS]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memorybank.embedding.windows import Pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["opened", "pieces_by", "pieces_by_length"]

LENGTH = 3
"""Characters of a word piece of a tokenizer that does not tell; no language needs more pieces than that, but for those
in which a character is a word."""


def opened(text: str, *, limit: int | None = None) -> Tokenizer:
    """Return a tokenizer of its own, without padding.

    Args:
        text: the content of a `tokenizer.json`.
        limit: word pieces at which a text is cut off, special ones included; None for never.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if limit is not None:
        tokenizer.enable_truncation(limit)
    tokenizer.encode_special_tokens = True
    return tokenizer


def pieces_by(text: str) -> Pieces:
    """Return the tokenizer with that `tokenizer.json` as offsets (`windows.py`)."""
    tokenizer = opened(text)
    return lambda text: tokenizer.encode(text, add_special_tokens=False).offsets


def pieces_by_length(text: str) -> list[tuple[int, int]]:
    """Return offsets where a tokenizer has none (`windows.py`): three characters are a piece."""
    return [(at, min(at + LENGTH, len(text))) for at in range(0, len(text), LENGTH)]
