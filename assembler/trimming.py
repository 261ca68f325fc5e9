"""Cut a text at a clean place (SPEC.md section 3, rule 3).

Clean is a boundary of words (Unicode Standard Annex 29) that is one of grapheme clusters too; between the characters
of scripts written without spaces every grapheme boundary is clean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

import regex

from memorybank.sentences import SENTENCE_END
from memorybank.tokenizer import Tokenizer

__all__ = ["UNSPACED", "clean_places", "cut"]

UNSPACED = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
    r"\p{Javanese}\p{Balinese}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}ー]"
)
"""Letters of scripts that are written without spaces between words."""

_GRAPHEME = regex.compile(r"\X")
_WORD_BOUNDARY = regex.compile(r"\b", regex.WORD)
_BESIDE_UNSPACED = regex.compile(rf"(?<={UNSPACED}\p{{M}}*)|(?={UNSPACED})")

_CLOSERS = 64
"""Characters that may stand between a full stop and the end of its sentence, for sure."""

_BATCH = 2048
"""Characters looked at in one go when searching for clean places."""

_ONE_BY_ONE = 24
"""Clean places tried one by one, from the estimate down."""

_BEYOND = 16
"""Clean places tried beyond the estimate: counts of prefixes are not monotone, a longer one can cost less."""


def cut(text: str, room: int, cost: Callable[[str], int], tokenizer: Tokenizer) -> str | None:
    """Return the longest prefix of `text` that ends at a clean place and costs at most `room`, or None.

    If a sentence ends in the second half of what fits, the prefix ends with the last such sentence.

    Args:
        text: a clean text.
        room: tokens that there are.
        cost: tokens of a prefix with all that is shown around it.
        tokenizer: gives the first estimate of where the room ends.
    """
    longest = _longest(text, room, cost, tokenizer)
    if longest is None:
        return None
    begin, beyond = max(0, len(longest) // 2 - _CLOSERS), min(len(text), len(longest) + _BATCH)
    ends = (match.end() for match in SENTENCE_END.finditer(text, begin, beyond))
    for end in sorted((end for end in ends if end <= len(longest) <= 2 * end), reverse=True):
        if _is_clean(text, end) and cost(text[:end]) <= room:
            return text[:end]
    return longest


def _longest(text: str, room: int, cost: Callable[[str], int], tokenizer: Tokenizer) -> str | None:
    end = _estimate(text, room, cost, tokenizer.starts(text))
    for tried, place in enumerate(clean_places(text, _beyond(text, end)), start=1):
        if cost(text[:place]) <= room:
            return text[:place]
        if tried == _ONE_BY_ONE:
            return _bisected(text, place, room, cost)
    return None


def _estimate(text: str, room: int, cost: Callable[[str], int], starts: list[int]) -> int:
    """Return a place near the one where the room ends: a few tokens behind it or before it."""
    tokens = min(max(room, 1), len(starts))
    while True:
        end = starts[tokens] if tokens < len(starts) else len(text)
        nearest = next(clean_places(text, end), None)
        over = cost(text[:nearest]) - room if nearest else 0
        if over <= 4 or tokens == 1:
            return end
        tokens = max(1, tokens - over + 2)  # what is shown around the text has its price


def _bisected(text: str, end: int, room: int, cost: Callable[[str], int]) -> str | None:
    """Return the longest prefix that fits, taking the costs as monotone.

    For texts whose tokens span many clean places, such as a thousand full stops, trying one by one takes too long.
    """
    places = list(clean_places(text, end))[::-1]
    fitting = bisect_right(places, room, key=lambda place: cost(text[:place]))
    return text[: places[fitting - 1]] if fitting else None


def _beyond(text: str, end: int) -> int:
    """Return the place a few clean places behind `end`."""
    window = min(len(text), end + _BATCH)
    places = [place for place in clean_places(text, window, down_to=end) if place > end]
    return places[-_BEYOND] if len(places) >= _BEYOND else window


def clean_places(text: str, end: int, *, down_to: int = 0) -> Iterator[int]:
    """Iterate over the clean places of `text` from `end` (inclusive) down to `down_to`, or a little further.

    A place right behind whitespace is not among them: a block has no whitespace at its end.
    """
    high = min(end, len(text))
    while high > down_to:
        low = _grapheme_start(text, max(0, high - _BATCH))
        yield from reversed(_places_between(text, low, high))
        high = low


def _places_between(text: str, low: int, high: int) -> list[int]:
    """Return the clean places in (low, high], `low` being the start of a grapheme."""
    beyond = min(len(text), high + 64)  # so that a cluster that crosses `high` does not seem to end there
    ends = (match.end() for match in _GRAPHEME.finditer(text, low, beyond))
    return [
        place
        for place in ends
        if place <= high
        and not text[place - 1].isspace()
        and (_WORD_BOUNDARY.match(text, place) or _BESIDE_UNSPACED.match(text, place))
    ]


def _grapheme_start(text: str, near: int) -> int:
    """Return a place at or before `near` where a grapheme cluster surely starts."""
    while near > 0 and not (text[near].isspace() or (_stands_alone(text[near]) and _stands_alone(text[near - 1]))):
        near -= 1
    return near


def _stands_alone(character: str) -> bool:
    """Whether no cluster joins this character to another of this kind: ASCII, Kana letters, ideographs."""
    return character.isascii() or ("\u3041" <= character <= "\u9fff" and character.isalpha())


def _is_clean(text: str, place: int) -> bool:
    return next(clean_places(text, place), None) == place
