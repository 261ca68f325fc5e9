"""In which order memories come, and with what score: pure functions, the standard library only (SPEC.md section 9).

`semantic` is the cosine of the embeddings. `hybrid` adds to it what BM25 says (`lexical.py`), each on a scale from 0 to
1: a convex combination, which was measured ahead of reciprocal rank fusion (Bruch et al., An Analysis of Fusion
Functions for Hybrid Retrieval, 2023). Similarities arrive rounded (`index_exact.similarities`), so that equal means
equal; equal ones stand in the order in which they were stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memorybank.errors import InvalidInputError

__all__ = [
    "DEFAULT_RANKING",
    "FEW",
    "LEXICAL",
    "POOL",
    "RANKINGS",
    "Candidate",
    "Ranked",
    "checked_ranking",
    "fill",
    "rank",
]

POOL = 200
"""How many of each arm's best are looked at in `hybrid`, or as many as are asked for, if that is more."""
LEXICAL, FEW = 0.8, 50
"""The share of the lexical part in a score of `hybrid` is `LEXICAL * n / (n + FEW)` in a bank of n active memories; the
semantic part has the rest. How rare a word is says little in a handful of texts, and there meaning decides. The limit
was chosen on half of the data (benchmarks/README.md)."""
SAME = 0.9995
"""Similarity from which on a memory says just what was asked for: in `hybrid` such ones come first."""
DEFAULT_RANKING = "hybrid"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be in the answer.

    Attributes:
        ordinal: its place in the order of storing.
        similarity: cosine with the query, from -1 to 1, rounded.
        pinned: whether it is pinned.
        lexical: BM25 with the query, 0 or more; in `semantic` nobody asks for it.
    """

    ordinal: int
    similarity: float
    pinned: bool = False
    lexical: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score, which is the sum of its parts."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]


def _semantic(candidates: Sequence[Candidate], size: int) -> list[Ranked]:
    return [Ranked(one, one.similarity, {"semantic": one.similarity}) for one in candidates]


def _hybrid(candidates: Sequence[Candidate], size: int) -> list[Ranked]:
    if not candidates:
        return []
    similarities = sorted((one.similarity for one in candidates), reverse=True)
    best, least = similarities[0], similarities[min(POOL, len(similarities)) - 1]
    most = max(one.lexical for one in candidates)
    share = LEXICAL * size / (size + FEW)
    ranked = []
    for one in candidates:
        semantic = max(0.0, one.similarity - least) / (best - least) if best > least else 1.0
        lexical = one.lexical / most if most > 0 else 0.0
        parts = {"semantic": round((1 - share) * semantic, 6), "lexical": round(share * lexical, 6)}
        if one.similarity >= SAME:
            parts["same"] = 1.0
        ranked.append(Ranked(one, round(sum(parts.values()), 6), parts))
    return ranked


RANKINGS: Mapping[str, Callable[[Sequence[Candidate], int], list[Ranked]]] = {"semantic": _semantic, "hybrid": _hybrid}
"""Ranking modes by name: each scores all candidates of one search together, in a bank of so many memories."""


def checked_ranking(name: object) -> str:
    """Return the name of a ranking mode.

    Raises:
        InvalidInputError: there is no such mode; the message lists them.
    """
    if not isinstance(name, str) or name not in RANKINGS:
        raise InvalidInputError(f"ranking must be one of {', '.join(RANKINGS)}, not {name!r}")
    return name


def rank(
    candidates: Iterable[Candidate],
    *,
    ranking: str,
    size: int,
    min_similarity: float | None = None,
    pinned_first: bool = False,
) -> list[Ranked]:
    """Return the candidates in their order: highest score first, equal ones by ordinal.

    Args:
        candidates: in any order, none twice.
        ranking: the mode.
        size: how many active memories the bank has.
        min_similarity: those below it are left out; pinned ones stay when `pinned_first`.
        pinned_first: put pinned ones before all others, in the same order among themselves.
    """
    ranked = [
        one
        for one in RANKINGS[checked_ranking(ranking)](list(candidates), size)
        if min_similarity is None
        or one.candidate.similarity >= min_similarity
        or (pinned_first and one.candidate.pinned)
    ]
    return sorted(
        ranked, key=lambda one: (pinned_first and not one.candidate.pinned, -one.score, one.candidate.ordinal)
    )


def fill(costs: Iterable[int], budget: int, limit: int) -> list[int]:
    """Return the places of the items that are taken, in order, while they fit (SPEC.md section 4).

    One that does not fit is passed over and the next is tried; costs are asked for one by one, only while there is
    room for another item.

    >>> fill([90, 60, 8, 2], 100, 10)
    [0, 2, 3]
    """
    taken: list[int] = []
    for place, cost in enumerate(costs):
        if cost <= budget:
            taken.append(place)
            budget -= cost
        if budget <= 0 or len(taken) == limit:
            break
    return taken
