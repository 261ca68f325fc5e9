"""Text as matching sees it (SPEC.md section 4): without case, in one Unicode form, with positions that lead back.

`I i İ ı` are all equal, so that Turkish works; `ß` equals `ss`; NFC and NFD are equal; the apostrophes ' ’ ʼ are equal.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from memorybank.text import repair

__all__ = ["Folded", "fold"]

_SAME = str.maketrans({"İ": "i", "ı": "i", "’": "'", "ʼ": "'"})
_DOT_ABOVE = "\u0307"
_MOST_MARKS = 64
_MANY_MARKS = regex.compile(rf"\p{{M}}{{{_MOST_MARKS}}}")
_CLUSTER = regex.compile("[\ud800-\udbff][\udc00-\udfff]|(?P<plain>[ -~]+(?=[ -~]))|\\X")
"""A surrogate pair, a run of ASCII that nothing can join, or a grapheme cluster."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text.

    Attributes:
        text: what is compared.
        starts: for each character of `text` where its cluster starts in the original; None if the places are equal.
        ends: likewise where it ends.
    """

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text that the span of the folded text came from."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def fold(text: str) -> Folded:
    """Fold a text.

    >>> fold("IŞIK").text == fold("ışık").text == fold("Işık").text
    True
    >>> fold("WEISSER").text == fold("weißer").text
    True
    >>> fold("İz").original(0, 1)
    (0, 1)
    """
    quick = _fold_in_place(text) if "\r" not in text else None  # CRLF, LF and CR are equal
    return Folded(quick) if quick is not None else _fold_by_cluster(text)


def _fold_in_place(text: str) -> str | None:
    """Fold a text whose every character stays one character; None if there is one that does not."""
    if text.isascii():
        return text.lower()
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return None
    if _MANY_MARKS.search(text):
        return None
    text = text.translate(_SAME)
    folded = text.casefold()
    same_places = len(folded) == len(text) and _DOT_ABOVE not in folded  # casefold never shortens a character
    is_composed = unicodedata.is_normalized("NFC", text) and unicodedata.is_normalized("NFC", folded)
    return folded if same_places and is_composed else None


def _fold_by_cluster(text: str) -> Folded:
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _CLUSTER.finditer(text):
        start, end = match.span()
        part = match[0].lower() if match["plain"] else _fold_pieces(match[0])
        parts.append(part)
        if match["plain"]:
            starts += range(start, end)
            ends += range(start + 1, end + 1)
        else:
            starts += [start] * len(part)
            ends += [end] * len(part)
    return Folded("".join(parts), starts, ends)


def _fold_pieces(cluster: str) -> str:
    """Fold a cluster; one of hundreds of marks in pieces, because sorting them takes the square of their number."""
    pieces = (cluster[begin : begin + _MOST_MARKS] for begin in range(0, len(cluster), _MOST_MARKS))
    return "".join(map(_fold_cluster, pieces))


@functools.lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    folded = unicodedata.normalize("NFD", repair(cluster)).casefold()
    folded = unicodedata.normalize("NFD", folded).translate(_SAME).replace("i" + _DOT_ABOVE, "i")
    return unicodedata.normalize("NFC", folded)
