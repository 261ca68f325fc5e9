"""What the lexical arm of a search compares: the words of a text, as 32-bit terms; and their bytes in the database.

A word counts by its first five letters, which is the plainest stemmer there is and needs to know no language: in
Turkish it is as good as a real one (F5; Can et al., Information retrieval on Turkish texts, JASIST 2008), and on the
English of LoCoMo it loses one point of nDCG to Porter's. Numbers count whole. Case, accents and Unicode form do not
count; `I i İ ı` are equal. Scripts that are written without spaces, and Hangul, count by pairs of letters.
"""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

__all__ = ["PREFIX", "VERSION", "is_packed", "packed", "term", "terms", "words"]

PREFIX = 5
"""Letters of a word that count."""
VERSION = 1
"""Of the rule that makes terms of texts. What was stored by another one is made anew from the text."""
_MOST_TIMES = 2**16 - 1
_KNOWN = 2**16
"""Words whose terms are remembered, over all banks of the process."""

_ASCII_WORD = re.compile(r"[^\W_]+")
_ACCENTS = dict.fromkeys(range(768, 880))
"""Combining marks of Latin, Greek and Cyrillic. Those of other scripts are letters to their readers."""
_DOTLESS = {ord("ı"): "i"}
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"


def terms(text: str) -> Counter[int]:
    """Return how often each term occurs in a text.

    >>> terms("The towers, the TOWER") == terms("tower the towers the")
    True
    """
    return Counter(map(term, words(text)))


def packed(text: str) -> bytes:
    """Return the terms of a text as they are stored: `VERSION`, then for each the term and how often it occurs.

    Six bytes each, little-endian: a 32-bit and a 16-bit number. More than 65,535 times counts as that.
    """
    found: Mapping[int, int] = terms(text)
    if found and max(found.values()) > _MOST_TIMES:
        found = {one: min(times, _MOST_TIMES) for one, times in found.items()}
    return _layout(len(found)).pack(VERSION, *chain.from_iterable(found.items()))


def is_packed(blob: object) -> bool:
    """Return whether these are terms as `packed` makes them now; what is not is made anew from the text."""
    return type(blob) is bytes and len(blob) % 6 == 1 and blob[0] == VERSION


def words(text: str) -> list[str]:
    """Return the words of a text, folded; pairs of letters where a script has no spaces.

    >>> words("Işık'ın Café"), words("佐藤は")
    (['isik', 'in', 'cafe'], ['佐藤', '藤は'])
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    word_pattern, unspaced = _patterns()
    found = []
    for word in word_pattern.findall(_folded(text)):
        if not unspaced.match(word):
            found.append(word)
        else:
            found += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
    return found


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    plain = decomposed.translate(_ACCENTS).translate(_DOTLESS)
    return unicodedata.normalize("NFC", plain)


@lru_cache(maxsize=_KNOWN)
def term(word: str) -> int:
    """Return the term of a word that `words` has found."""
    kept = word if word[0].isdigit() else word[:PREFIX]
    return zlib.crc32(kept.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1_024)
def _layout(number: int) -> struct.Struct:
    return struct.Struct("<B" + "IH" * number)


@lru_cache(maxsize=1)
def _patterns() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """Return what finds a word, and what begins one that is written without spaces."""
    import regex

    unspaced = rf"[{_UNSPACED}]"
    found = regex.compile(rf"{unspaced}[{_UNSPACED}\p{{M}}]*+|[[\p{{L}}\p{{N}}\p{{M}}]--{unspaced}]++", regex.V1)
    return found, regex.compile(unspaced)
