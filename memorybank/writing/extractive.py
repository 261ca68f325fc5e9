"""The default writer: a span's most telling sentences, offline, always the same, no invented word (SPEC.md section 9).

A sentence tells much if it is central to its span (`centrality.py`), names someone, and says what neither the sentences
chosen before it nor the latest memories say (MMR, Carbonell & Goldstein 1998). One that begins with a pronoun, or is
nothing but speech, takes the sentence before it along and is left out where that does not fit: nobody would know who
did it. They stand in story order.

Measured by `benchmarks/writers.py` with all-MiniLM-L6-v2 and 80 tokens against memories that people wrote of the same
actions, 43 of a real campaign (`most_actions=75`) and 18 of the examples: mean cosine 0.45 and 0.52; the first
sentences have 0.35 and 0.45, the longest 0.35 and 0.48. Theirs have 50 to 85 tokens in the main, hence 80.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from memorybank.errors import InvalidInputError
from memorybank.inputs import checked_limit
from memorybank.text import clean
from memorybank.tokenizer import Tokenizer, open_tokenizer
from memorybank.writing.port import SpanText
from memorybank.writing.units import Unit, joined, units_of, units_of_texts
from memorybank.writing.wording import leans_back, names_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorybank.embedding import Embedder

__all__ = ["MAX_TOKENS", "ExtractiveWriter"]

MAX_TOKENS = 80
LEAST_TOKENS = 8
"""Of a memory, and of a summary: with less there is no room for a sentence."""

NAME, NAMES = 0.04, 3
"""What a name adds to the score of its sentence, and how many count."""
SHORT, SHORT_TOKENS = 0.4, 8
"""What a sentence of nearly no tokens loses, and how many are no loss: `Four cords.` tells nobody anything."""
LONG_TOKENS = 40
"""A sentence weighs as many tokens as it has in what its span is about, but no more than these."""
REPETITION, LEAST = 0.3, 0.1
"""What being like the chosen ones costs, and what must remain: room is not filled for its own sake."""
LEANING = 2
"""How many sentences before it one may take along."""
NEWS, LATEST = 0.2, 4
"""What being like one of the latest memories costs, and how many of these are looked at."""
RECENCY = 0.3
"""What the newest sentence of a summary has ahead of the oldest."""
SLACK = 16
"""Tokens by which a short text can differ from the sum of its parts."""


class ExtractiveWriter:
    """Makes memories of the sentences of their source. May be used by several threads.

    >>> from memorybank.embedding.testing import HashingEmbedder
    >>> from memorybank.writing.port import SpanAction
    >>> writer = ExtractiveWriter(HashingEmbedder(), max_tokens=12)
    >>> told = SpanAction("output", "Mara hid the silver key under the chapel floor. Rain. The rain goes on.")
    >>> print(writer.write_memory(SpanText((SpanAction("do", "follow Mara"), told))))
    Mara hid the silver key under the chapel floor.

    Args:
        embedder: the bank's.
        max_tokens: tokens of a memory, 8 to 10,000.
        tokenizer: name or path of what counts them, or the tokenizer itself.

    Raises:
        InvalidInputError: `max_tokens` is out of range.
        TokenizerError: there is no such tokenizer.
    """

    name = "extractive"
    quotes_source = True

    def __init__(self, embedder: Embedder, *, max_tokens: int = MAX_TOKENS, tokenizer: Tokenizer | str = "o200k_base"):
        self.max_tokens = _checked_tokens(max_tokens, "max_tokens")
        self._embedder = embedder
        self._tokenizer = open_tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer

    def __repr__(self) -> str:
        return f"ExtractiveWriter({self._embedder!r}, max_tokens={self.max_tokens}, tokenizer={self._tokenizer.name!r})"

    def write_memory(self, span: SpanText) -> str | None:
        """Return the memory of a span, or None if it has no text that fits.

        Raises:
            ModelError: the sentences could not be embedded.
        """
        units = [unit for unit in self._units_of(span) if self._fits(self.max_tokens, [unit])]
        if not units:
            return None
        latest = [text for text in map(clean, span.memories_before[-LATEST:]) if text]
        vectors = self._vectors([unit.text for unit in units] + latest)
        own, others = vectors[: len(units)], vectors[len(units) :]
        return joined(self._choose(units, own, others))

    def write_summary(self, previous: str, passages: Sequence[str], limit_tokens: int) -> str:
        """Return the previous summary with the new passages behind it, shortened to its limit.

        While all fits, all stays, word for word. Then the sentences go that say least of the whole, the older the
        sooner, and last of all the best one of each new passage. What the summary tells already is not told twice.

        Raises:
            InvalidInputError: `limit_tokens` is out of range.
            ModelError: the sentences could not be embedded.
        """
        limit = _checked_tokens(limit_tokens, "limit_tokens")
        previous = clean(previous)
        texts = [previous, *(text for text in map(clean, passages) if text and text not in previous)]
        whole = "\n".join(dict.fromkeys(text for text in texts if text))
        if self._tokenizer.count(whole) <= limit:
            return whole
        units = _distinct(units_of_texts(texts, self._tokenizer, limit))
        vectors = self._vectors([unit.text for unit in units])
        return self._shortened(units, vectors, limit)

    def _units_of(self, span: SpanText) -> list[Unit]:
        return _distinct(units_of(span.actions, self._tokenizer, self.max_tokens))

    def _choose(self, units: list[Unit], vectors: NDArray[np.float32], latest: NDArray[np.float32]) -> list[Unit]:
        from memorybank.writing.centrality import centrality, chosen, nearness

        tokens = [self._tokenizer.count(unit.text) for unit in units]
        names = names_in([unit.text for unit in units])
        central = centrality(vectors, [max(1, min(count, LONG_TOKENS)) for count in tokens])
        news = nearness(vectors, latest)
        scores = [
            float(central[place])
            + NAME * min(names[place], NAMES)
            - SHORT * max(0, SHORT_TOKENS - tokens[place]) / SHORT_TOKENS
            - NEWS * float(news[place])
            for place in range(len(units))
        ]
        fits = partial(self._fit, self.max_tokens, units)
        take = partial(chosen, vectors, scores, REPETITION, LEAST, fits=fits)
        places = take(groups=partial(_groups, units)) or take(groups=lambda place: [[place]])
        return [units[place] for place in places]

    def _shortened(self, units: list[Unit], vectors: NDArray[np.float32], limit: int) -> str:
        from memorybank.writing.centrality import centrality

        tokens = [self._tokenizer.count(unit.text) for unit in units]
        central = centrality(vectors, [max(1, min(count, LONG_TOKENS)) for count in tokens])
        worth = [float(value) + RECENCY * place / len(units) for place, value in enumerate(central)]
        for place in _best_of_each_passage(units, worth):
            worth[place] += 1.0
        kept, whole = set(range(len(units))), sum(tokens)
        for place in sorted(kept, key=lambda place: (worth[place], place)):
            if whole <= limit * 3 // 2 + SLACK:  # above that it need not be counted to be too long
                text = joined([units[place] for place in sorted(kept)], keep_lines=True)
                if self._tokenizer.count(text) <= limit:
                    return text
            kept.remove(place)
            whole -= tokens[place]
        return ""

    def _fit(self, limit: int, units: list[Unit], places: Sequence[int]) -> bool:
        return self._fits(limit, [units[place] for place in places])

    def _fits(self, limit: int, units: list[Unit]) -> bool:
        return self._tokenizer.count(joined(units)) <= limit

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        from memorybank.search.vectors import embed

        return embed(self._embedder, texts)


def _groups(units: list[Unit], place: int) -> list[list[int]]:
    """Return what to take for a unit, dearest first: with those that it leans on, and alone only if there are none."""
    group = [place]
    groups: list[list[int]] = []
    while len(group) <= LEANING and _leans(units, group[0]):
        group = [group[0] - 1, *group]
        groups.insert(0, group)
    return groups or [group]


def _leans(units: list[Unit], place: int) -> bool:
    unit = units[place]
    has_one_before = place > 0 and units[place - 1].place == unit.place - 1
    return has_one_before and not unit.speaker and leans_back(unit.text)


def _best_of_each_passage(units: list[Unit], worth: list[float]) -> list[int]:
    """Return for each passage behind the previous summary the place of its best sentence."""
    best: dict[int, int] = {}
    for place, unit in enumerate(units):
        if unit.source > 0 and (unit.source not in best or worth[place] > worth[best[unit.source]]):
            best[unit.source] = place
    return list(best.values())


def _distinct(units: list[Unit]) -> list[Unit]:
    """Return the units without those that repeat an earlier one, for whoever waits fifty times has waited."""
    seen: set[tuple[str, str]] = set()
    found = []
    for unit in units:
        key = (unit.speaker, unit.text.casefold())
        if key not in seen:
            seen.add(key)
            found.append(unit)
    return found


def _checked_tokens(value: int, what: str) -> int:
    if checked_limit(value, what=what) < LEAST_TOKENS:
        raise InvalidInputError(f"{what} must be {LEAST_TOKENS} or more, not {value}: no sentence fits into less")
    return value
