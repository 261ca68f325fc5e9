"""A search from the query to the answer: its vector, the index's candidates, their order, a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from memorybank.errors import InvalidInputError
from memorybank.memory import Recalled
from memorybank.search.ranking import POOL, RERANKED, Candidates, Ranked, fill, rank

if TYPE_CHECKING:
    from memorybank.bank.model import ModelInUse
    from memorybank.search.live_index import Asked, LiveIndex
    from memorybank.search.reranking import Reranking
    from memorybank.storage import StoredMemory

__all__ = ["LAST_POOL", "Costs", "Question", "answer"]

FIRST_POOL = 64
"""Memories looked at first for a token budget; four times as many each time that it could hold more."""
LAST_POOL = 1_000
"""Memories looked at for a token budget in all, or `limit` if that is more: the last tokens are not worth seconds."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, checked already; see `MemoryBank.search`."""

    limit: int
    ranking: str
    min_similarity: float | None
    pinned_first: bool
    explain: bool
    retellings: bool = False
    recent: tuple[str, ...] = ()


def answer(
    live: LiveIndex,
    model: ModelInUse,
    query: str,
    question: Question,
    *,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
    reranking: Reranking | None = None,
) -> list[Recalled]:
    """Return what `MemoryBank.search` returns, for a query with something in it."""
    from memorybank.search.live_index import Asked
    from memorybank.search.query import query_terms, query_vector

    embedder = model.embedder()
    asked = Asked(
        query_vector(embedder, query, question.recent),
        k=POOL,
        guard=partial(model.guard, model=embedder),
        terms=query_terms(query, question.recent) if question.ranking != "semantic" else None,
        with_pinned=question.pinned_first,
    )
    ranked: Callable[[int], list[Recalled]] = partial(_ranked, live, asked, question)
    if question.ranking == RERANKED and reranking is not None:
        from memorybank.search.reranking import Reranked

        read = " ".join([*question.recent, query])
        ranked = Reranked(ranked, read, reranking, pinned_first=question.pinned_first, explain=question.explain)
    if max_tokens is None:
        return ranked(question.limit)
    return _within(ranked, question.limit, max_tokens, Costs(count_tokens or _default_counter()))


def _within(ranked: Callable[[int], list[Recalled]], limit: int, max_tokens: int, costs: Costs) -> list[Recalled]:
    """Fill a token budget from the best k, and from more while there may be more that fits."""
    pool, most = FIRST_POOL, max(LAST_POOL, limit)
    while True:
        found = ranked(pool)
        taken = [found[place] for place in fill(costs.of(found), max_tokens, limit)]
        full = len(taken) == limit or sum(costs.of(taken)) >= max_tokens
        if full or len(found) < pool or pool == most:
            return taken
        pool = min(pool * 4, most)


def _ranked(live: LiveIndex, asked: Asked, question: Question, k: int) -> list[Recalled]:
    def choose(candidates: Candidates, size: int) -> list[Ranked]:
        return rank(
            candidates,
            ranking=question.ranking,
            size=size,
            min_similarity=question.min_similarity,
            pinned_first=question.pinned_first,
            limit=k,
        )

    pool = k if asked.terms is None else max(k, POOL)  # the scale of `hybrid` does not depend on how many are asked for
    found = live.search(replace(asked, k=pool), choose)
    retold = _retold([row for row, _ in found], len(asked.vector)) if question.retellings and found else ()
    return [
        Recalled(row.memory, one.similarity, place, dict(one.parts) if question.explain else None, newer)
        for place, ((row, one), newer) in enumerate(zip(found, retold or [()] * len(found), strict=True), 1)
    ]


def _retold(stored: Sequence[StoredMemory], dimensions: int) -> list[tuple[tuple[str, float], ...]]:
    from memorybank.search.duplicates import retellings
    from memorybank.search.vectors import to_matrix

    vectors = to_matrix([row.vector for row in stored], dimensions)
    found = retellings(vectors, [(row.memory.pinned, row.ordinal) for row in stored])
    return [tuple((stored[place].memory.id, cosine) for place, cosine in each) for each in found]


def _default_counter() -> Callable[[str], int]:
    from memorybank.tokenizer import open_tokenizer

    return open_tokenizer().count


class Costs:
    """What memories cost as blocks (SPEC.md section 2); each text is counted once."""

    def __init__(self, count_tokens: Callable[[str], int]) -> None:
        self._count = count_tokens
        self._known: dict[str, int] = {}

    def of(self, found: Sequence[Recalled]) -> Iterator[int]:
        """Return the cost of each result, counted when it is asked for."""
        return (self._cost(one.memory.text) for one in found)

    def _cost(self, text: str) -> int:
        if text not in self._known:
            cost = self._count(f"{text}\n")
            if isinstance(cost, bool) or not isinstance(cost, int) or cost < 0:
                raise InvalidInputError(f"count_tokens must return a whole number, 0 or more, not {cost!r}")
            self._known[text] = cost
        return self._known[text]
