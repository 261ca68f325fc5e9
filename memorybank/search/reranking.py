"""The ranking mode `reranked`: a cross-encoder reads the query with each of the best memories (SPEC.md section 9).

A cross-encoder (Nogueira & Cho, Passage Re-ranking with BERT, 2019) judges better than two vectors do, and takes as
long as embedding each memory anew. So it reads at most `MOST_CANDIDATES` of them, within a deadline, and is never
needed: when time runs out, when another search has it, or when it fails, the order is that of `hybrid`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from memorybank.errors import InvalidInputError
from memorybank.memory import Recalled

__all__ = ["BATCH", "MOST_CANDIDATES", "Reranked", "Reranker", "Reranking", "open_reranking"]

log = logging.getLogger(__name__)

SECONDS = 0.5
MOST_CANDIDATES = 30
BATCH = 5
"""Memories read at once: the deadline is looked at between two batches."""


@runtime_checkable
class Reranker(Protocol):
    """A model that reads a query and a memory together. For any number of threads.

    Attributes:
        name: what messages call it.
    """

    name: str

    def load(self) -> None:
        """Return when it can read at once; the first time, that takes seconds. Raise if it cannot be had."""
        ...

    def scores(self, query: str, texts: Sequence[str], *, wait: float) -> Sequence[float] | None:
        """Return for each text how well it answers the query, a finite number, the higher the better.

        Args:
            query: the action, with those before it.
            texts: of memories, at most `BATCH`.
            wait: seconds that it may wait for other searches; None is returned when that was not enough.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reranking:
    """A cross-encoder and what it may cost.

    Attributes:
        model: reads query and memory together.
        seconds: that it may take for a search, once it is loaded.
        candidates: memories that it reads, the best of `hybrid`; 1 to 30.

    Raises:
        InvalidInputError: one of them is not what it should be.
    """

    model: Reranker
    seconds: float = SECONDS
    candidates: int = MOST_CANDIDATES

    def __post_init__(self) -> None:
        if not isinstance(self.model, Reranker):
            raise InvalidInputError(f"the model of Reranking must have a name and scores(), {self.model!r} has not")
        if (
            isinstance(self.candidates, bool)
            or not isinstance(self.candidates, int)
            or not (1 <= self.candidates <= MOST_CANDIDATES)
        ):
            raise InvalidInputError(f"candidates must be 1 to {MOST_CANDIDATES}, not {self.candidates!r}")
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not 0 < self.seconds < 3600:
            raise InvalidInputError(f"seconds must be a number above 0 and below 3600, not {self.seconds!r}")


def open_reranking(model: str, *, seconds: float = SECONDS, on_wait: Callable[[str], None] | None = None) -> Reranking:
    """Return a cross-encoder of sentence-transformers, not loaded yet, for `MemoryBank.open(…, reranking=…)`.

    Args:
        model: its folder, or its name on the Hugging Face hub; none comes in a package.
        seconds: that it may take for a search.
        on_wait: told, in words for people, before something that takes seconds.

    Raises:
        InvalidInputError: `seconds` is out of its range.
        ModelError: it is no name and no folder with a model.
    """
    from memorybank.embedding.reranker import open_reranker

    return Reranking(open_reranker(model, on_wait=on_wait), seconds)


class Reranked:
    """The results of one search, put in the order of the cross-encoder; what it has read once it does not read again.

    Args:
        ranked: returns the k best of `hybrid`.
        query: what the cross-encoder reads.
        reranking: the cross-encoder.
        pinned_first: whether pinned ones stay before all others.
        explain: whether results tell their parts.
    """

    def __init__(
        self,
        ranked: Callable[[int], list[Recalled]],
        query: str,
        reranking: Reranking,
        *,
        pinned_first: bool,
        explain: bool,
    ) -> None:
        self._ranked = ranked
        self._query = query
        self._reranking = reranking
        self._pinned_first = pinned_first
        self._explain = explain
        self._scores: dict[str, float] | None = None

    def __call__(self, k: int) -> list[Recalled]:
        """Return the k best, ranks counted anew."""
        found = self._ranked(max(k, self._reranking.candidates))
        if self._scores is None:
            self._scores = self._read({one.memory.text for one in found[: self._reranking.candidates]})
        scores = self._scores
        if not scores:
            return found[:k]
        # Where more is asked for, other memories may be among the best: what was read stays ahead all the same.
        head = [one for one in found if one.memory.text in scores]
        tail = [one for one in found if one.memory.text not in scores]
        ordered = sorted(
            head, key=lambda one: (self._pinned_first and not one.memory.pinned, -scores[one.memory.text], one.rank)
        )
        told = [self._told(one, scores[one.memory.text]) for one in ordered]
        return [replace(one, rank=place) for place, one in enumerate([*told, *tail][:k], 1)]

    def _told(self, one: Recalled, score: float) -> Recalled:
        return replace(one, parts={"reranked": round(score, 6), **(one.parts or {})}) if self._explain else one

    def _read(self, texts: set[str]) -> dict[str, float]:
        """Return a score for each text, none at all if there was no time for every one of them, or the model failed."""
        model = self._reranking.model
        scores: dict[str, float] = {}
        order = sorted(texts, key=len)  # of like length together, as in embedding
        try:
            model.load()
            end, took = time.monotonic() + self._reranking.seconds, 0.0
            for start in range(0, len(order), BATCH):
                begun = time.monotonic()
                some = order[start : start + BATCH]
                found = model.scores(self._query, some, wait=end - begun) if begun + took < end else None
                if found is None or time.monotonic() > end:
                    return {}
                scores.update(zip(some, map(float, found), strict=True))
                took = time.monotonic() - begun
            if not all(map(math.isfinite, scores.values())):
                raise ValueError("a score is not a finite number")
        except Exception as error:  # whatever a model raises: a search must not fail for it
            log.warning("reranker %s failed, memories stay in the order of hybrid: %s", model.name, error)
            return {}
        return scores
