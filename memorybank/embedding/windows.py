"""How a text of any length is read by a model whose input is short. Pure: no model, no numpy.

The rule, in four steps (also told in `SentenceTransformerEmbedder`):

1. A run of more than 100 whitespace characters is one space. A run of more than 100 characters without whitespace and
   ASCII punctuation (32 in Hangul, whose syllables a model may take apart in three) is cut into parts of 32. WordPiece
   would give up on it and read `[UNK]`, so that all such runs would be the same; and its time grows with the square.
2. Text beyond `64 * 16,384` characters is read in 64 evenly spaced stretches, first and last included.
3. The text is cut into windows that fit the model, at word starts, without overlap.
4. Of more than 64 windows, 64 evenly spaced ones count, first and last included.

Steps 2 and 4 bound time and memory; what lies between the chosen windows of a text of more than some 60,000 characters
is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["MAX_WINDOWS", "Pieces", "Window", "evenly", "squeeze", "windows"]

T = TypeVar("T")

MAX_WINDOWS = 64
STRETCH = 16_384
"""Characters given to the tokenizer at once: it needs some 500 bytes for each."""

Pieces = Callable[[str], Sequence[tuple[int, int]]]
"""The tokenizer: the (start, end) of each word piece of a text, in characters, in order."""

_GAP = re.compile(r"\s{101,}")
_LETTER = r"[^\s!-/:-@\[-`{-~]"
_RUN = re.compile(rf"(?<!{_LETTER}){_LETTER}{{101,}}|[가-힣]{{33,}}")
_PART = 32


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a text that fits the model, and its weight: how many word pieces it has, at least 1."""

    text: str
    weight: int


def squeeze(text: str) -> str:
    """Return the text without runs that no tokenizer can use (step 1); an ordinary text is returned as it is."""
    return _RUN.sub(_parts, _GAP.sub(" ", text))


def _parts(run: re.Match[str]) -> str:
    return " ".join(run[0][start : start + _PART] for start in range(0, len(run[0]), _PART))


def windows(text: str, pieces: Pieces, room: int) -> list[Window]:
    """Return the windows of a text, in order (steps 1 to 4).

    Args:
        text: any text.
        pieces: the model's tokenizer.
        room: word pieces that a window may have, at least 1.

    Returns:
        From 1 to `MAX_WINDOWS` windows. A text that fits is one window, unchanged but for step 1.
    """
    stretches = evenly(list(_stretches(squeeze(text))), MAX_WINDOWS)
    found = [window for stretch in stretches for window in _cut(stretch, pieces(stretch), room)]
    return evenly(found, MAX_WINDOWS) or [Window(stretches[0], 1)]


def evenly(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of the items, evenly spaced, first and last included."""
    if len(items) <= most:
        return list(items)
    return [items[place * (len(items) - 1) // (most - 1)] for place in range(most)]


def _stretches(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > STRETCH:
        gap = max(text.rfind(space, start + STRETCH // 2, start + STRETCH) for space in " \n")
        end = gap + 1 if gap >= 0 else start + STRETCH
        yield text[start:end]
        start = end
    yield text[start:]


def _cut(text: str, pieces: Sequence[tuple[int, int]], room: int) -> Iterator[Window]:
    if pieces and len(pieces) <= room:
        yield Window(text, len(pieces))
        return
    first = 0
    while first < len(pieces):
        last = _end(text, pieces, first, room)
        yield Window(text[pieces[first][0] : pieces[last - 1][1]], last - first)
        first = last


def _end(text: str, pieces: Sequence[tuple[int, int]], first: int, room: int) -> int:
    """Return where the window that begins at piece `first` ends: at a word start, or else inside the long word."""
    if len(pieces) - first <= room:
        return len(pieces)
    for end in range(first + room, max(first, first + room // 2 - 1), -1):
        start = pieces[end][0]
        # Some tokenizers count the space before a word to the word, others to nothing.
        if text[start].isspace() or text[start - 1].isspace():
            return end
    # Inside a word: what is read alone may take more pieces than it had, so leave a quarter of the room.
    return first + max(1, room * 3 // 4)
