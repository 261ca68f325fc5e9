"""How good the ranking of memories is, step by step: what meaning finds, what words find, and both together.

The steps are the parts of the product, put together here one by one; the last ones are `MemoryBank.search` itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.measuring import Progress, Recorder, silent
from benchmarks.quality_data import Collection, Query, campaign, conversations
from memorybank import MemoryBank, NewMemory
from memorybank.embedding import Embedder, open_embedder
from memorybank.search.ranking import Candidates, fill, rank
from memorybank.terms import packed
from memorybank.tokenizer import open_tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FULL", "QUICK", "Parameters", "figures", "measure"]

CACHED = "nothing is timed here"
BUDGET = 500
"""Tokens of the budget in which memories are counted as found."""
MOST = 200
"""Results that are looked at."""

Order: TypeAlias = "Sequence[int]"
Step: TypeAlias = Callable[[Query], Order]
"""Ranks the memories of a collection for a query: their places, best first."""


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        model: the embedding model.
        queries: of each collection, at most so many.
    """

    model: str = "all-MiniLM-L6-v2"
    queries: int | None = None


FULL = Parameters()
QUICK = Parameters(model="hashing-64", queries=20)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Rank the memories of both sets by each step; note the figures of both halves and of all."""
    recorder = Recorder(cached=CACHED, across="step")
    embedder = open_embedder(parameters.model)
    recorder.note(f"Embedded with {parameters.model}. Settings were chosen on the half called `chosen on`.")
    for name, sets in (("LoCoMo turns", conversations()), ("CRD3 campaign 2", campaign())):
        if sets is None:
            recorder.note(f"{name}: not measured, its file is not in ../shared/data.")
            continue
        found: dict[str, list[tuple[Query, Order, Collection]]] = {}
        for number, collection in enumerate(sets, 1):
            progress(f"{name}: collection {number} of {len(sets)}")
            asked = collection.queries[: parameters.queries]
            with _Bench(collection, embedder) as bench:
                for step, ranked in bench.steps():
                    found.setdefault(step, []).extend((query, ranked(query), collection) for query in asked)
        for step, results in found.items():
            _note(recorder, name, step, results)
    recorder.at_least(
        "LoCoMo turns: nDCG@10 of 58 or more", 58.0, "nDCG@10", set="LoCoMo turns", step=ALONE, half="all"
    )
    goals = {"set": "CRD3 campaign 2", "step": RECENT, "half": "all"}
    recorder.at_least("CRD3 campaign 2: recall@10 of 65 or more", 65.0, "recall@10", **goals)
    recorder.at_least("CRD3 campaign 2: recall@1 of 40 or more", 40.0, "recall@1", **goals)
    return recorder


SEMANTIC = "MemoryBank.search, semantic"
ALONE = "MemoryBank.search, hybrid: the default"
RECENT = f"{ALONE}, with the utterances before it"


class _Bench:
    """One collection in a bank, and its parts by themselves."""

    def __init__(self, collection: Collection, embedder: Embedder) -> None:
        from memorybank.search.lexical import LexicalIndex
        from memorybank.search.vectors import embed

        self._embedder, self._embed = embedder, embed
        self._collection = collection
        self._bank = MemoryBank.open(embedder=embedder)
        self._bank.add_many(NewMemory(text, id=str(place)) for place, text in enumerate(collection.memories))
        self._vectors: NDArray[np.float32] = embed(embedder, collection.memories)
        self._by_words = {}
        for name, around in (("alone", {0: 1.0}), ("with neighbours", None)):
            index = LexicalIndex() if around is None else LexicalIndex(around)
            places = range(len(collection.memories))
            index.add(places, list(map(packed, collection.memories)), [(0, place) for place in places])
            self._by_words[name] = index

    def __enter__(self) -> _Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._bank.close()

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Return the steps with their names."""
        yield SEMANTIC, lambda query: self._searched(query, ranking="semantic")
        yield "BM25, all words", lambda query: self._lexical(query, "alone", all_words=True)
        yield "BM25, without function words", lambda query: self._lexical(query, "alone")
        yield "BM25, and with the neighbours", lambda query: self._lexical(query, "with neighbours")
        yield "meaning and BM25 of all words, fused", lambda query: self._fused(query, "alone", all_words=True)
        yield ALONE, lambda query: self._searched(query)
        yield f"{ALONE}, newer ones up to 10 % ahead of older ones", lambda query: self._newer_first(query)
        if any(query.recent for query in self._collection.queries):
            yield (
                f"{SEMANTIC}, with the utterances before it",
                lambda query: self._searched(query, ranking="semantic", recent=query.recent),
            )
            yield RECENT, lambda query: self._searched(query, recent=query.recent)

    def _searched(self, query: Query, *, ranking: str = "hybrid", recent: Sequence[str] = ()) -> Order:
        return [int(one.memory.id) for one in self._bank.search(query.text, limit=MOST, ranking=ranking, recent=recent)]

    def _scores(self, query: Query, index: str, *, all_words: bool) -> list[float]:
        from memorybank.search.query import query_terms

        wanted = query_terms(query.text, (), untold=frozenset()) if all_words else query_terms(query.text, ())
        scores: list[float] = self._by_words[index].scores(wanted).of(range(len(self._collection.memories))).tolist()
        return scores

    def _lexical(self, query: Query, index: str, *, all_words: bool = False) -> Order:
        scores = self._scores(query, index, all_words=all_words)
        return sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:MOST]

    def _fused(self, query: Query, index: str, *, all_words: bool) -> Order:
        scores = self._scores(query, index, all_words=all_words)
        near = self._vectors @ self._embed(self._embedder, [query.text], kind="query")[0]
        places = np.arange(len(scores))
        candidates = Candidates(places, near.astype(np.float64), np.array(scores), np.zeros(len(scores), np.bool_))
        return [one.ordinal for one in rank(candidates, ranking="hybrid", size=len(scores), limit=MOST)]

    def _newer_first(self, query: Query) -> Order:
        """Return the order with each score times a factor from 0.9, for the oldest, to 1.1, for the newest."""
        found = self._bank.search(query.text, limit=MOST, explain=True)
        newest = max(1, len(self._collection.memories) - 1)
        scores = {
            int(one.memory.id): sum((one.parts or {}).values()) * (0.9 + 0.2 * int(one.memory.id) / newest)
            for one in found
        }
        return sorted(scores, key=lambda place: (-scores[place], place))


def _note(recorder: Recorder, name: str, step: str, results: Sequence[tuple[Query, Order, Collection]]) -> None:
    for half, wanted in (("chosen on", {0}), ("the other", {1}), ("all", {0, 1})):
        chosen = [(query, order, collection) for query, order, collection in results if query.half in wanted]
        if chosen:
            for figure, value in figures(chosen).items():
                recorder.values(figure, [100 * value], "%", set=name, step=step, half=half, of=len(chosen))


def figures(results: Sequence[tuple[Query, Order, Collection]]) -> dict[str, float]:
    """Return the means over queries: recall, nDCG@10 with gains of 0 and 1, MRR, and recall in a budget of tokens."""
    each: dict[str, list[float]] = {}
    for query, order, collection in results:
        ranks = sorted(place for place, memory in enumerate(order) if memory in query.relevant)
        for most in (1, 5, 10, 20):
            each.setdefault(f"recall@{most}", []).append(sum(one < most for one in ranks) / len(query.relevant))
        gained = sum(1 / math.log2(one + 2) for one in ranks if one < 10)
        ideal = sum(1 / math.log2(one + 2) for one in range(min(10, len(query.relevant))))
        each.setdefault("nDCG@10", []).append(gained / ideal)
        each.setdefault("MRR", []).append(1 / (ranks[0] + 1) if ranks else 0.0)
        taken = _within(order, collection)
        each.setdefault(f"recall in {BUDGET} tokens", []).append(len(taken & set(query.relevant)) / len(query.relevant))
    return {name: sum(values) / len(values) for name, values in each.items()}


def _within(order: Order, collection: Collection) -> set[int]:
    """Return the memories that fit into the budget, taken as a context takes them."""
    count = open_tokenizer().count
    return {order[place] for place in fill((count(f"{collection.memories[one]}\n") for one in order), BUDGET, MOST)}
