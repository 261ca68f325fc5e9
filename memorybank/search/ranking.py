"""In which order memories come, and with what score: pure functions (SPEC.md section 9).

`semantic` is the cosine of the embeddings. `hybrid` adds to it what BM25 says (`lexical.py`), each on a scale from 0 to
1: a convex combination, which was measured ahead of reciprocal rank fusion (Bruch et al., An Analysis of Fusion
Functions for Hybrid Retrieval, 2023). Similarities arrive rounded (`index_exact.similarities`), so that equal means
equal; equal ones stand in the order in which they were stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from memorybank.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "DEFAULT_RANKING",
    "FEW",
    "LEXICAL",
    "POOL",
    "RANKINGS",
    "RERANKED",
    "Candidates",
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
DECIMALS = 6
"""Scores and their parts are rounded to this."""
SAME = 0.9995
"""Similarity from which on a memory says just what was asked for: in `hybrid` such ones come first."""
DEFAULT_RANKING = "hybrid"
RERANKED = "reranked"
"""The mode in which a cross-encoder reads the best of `hybrid` (`reranking.py`)."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Memories that may be in the answer: four columns of one length.

    Attributes:
        ordinals: their places in the order of storing, none twice.
        similarities: cosine with the query, from -1 to 1, rounded.
        lexical: BM25 with the query, 0 or more; in `semantic` nobody looks at it.
        pinned: whether they are pinned.
    """

    ordinals: NDArray[np.int64]
    similarities: NDArray[np.float64]
    lexical: NDArray[np.float64]
    pinned: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ordinals)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A memory of the answer with its score, which is the sum of its parts."""

    ordinal: int
    similarity: float
    score: float
    parts: Mapping[str, float]


Parts: TypeAlias = "Mapping[str, NDArray[np.float64]]"
"""What each score consists of, by name: a column for all candidates."""


def _semantic(given: Candidates, size: int) -> Parts:
    return {"semantic": given.similarities}


def _hybrid(given: Candidates, size: int) -> Parts:
    import numpy as np

    count = len(given)
    best = given.similarities.max()
    least = np.partition(given.similarities, count - POOL)[count - POOL] if count > POOL else given.similarities.min()
    most = given.lexical.max()
    share = LEXICAL * size / (size + FEW)
    semantic = np.maximum(0.0, given.similarities - least) / (best - least) if best > least else np.ones(count)
    lexical = given.lexical / most if most > 0 else np.zeros(count)
    return {
        "semantic": np.round((1 - share) * semantic, DECIMALS),
        "lexical": np.round(share * lexical, DECIMALS),
        "same": np.where(given.similarities >= SAME, 1.0, 0.0),
    }


RANKINGS: Mapping[str, Callable[[Candidates, int], Parts]] = {
    "semantic": _semantic,
    "hybrid": _hybrid,
    RERANKED: _hybrid,
}
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
    given: Candidates,
    *,
    ranking: str,
    size: int,
    min_similarity: float | None = None,
    pinned_first: bool = False,
    limit: int | None = None,
) -> list[Ranked]:
    """Return the candidates in their order: highest score first, equal ones by ordinal.

    Args:
        given: the candidates, in any order.
        ranking: the mode.
        size: how many active memories the bank has.
        min_similarity: those below it are left out; pinned ones stay when `pinned_first`.
        pinned_first: put pinned ones before all others, in the same order among themselves.
        limit: how many are wanted; None for all.
    """
    import numpy as np

    score_of = RANKINGS[checked_ranking(ranking)]
    if not len(given):
        return []
    parts = score_of(given, size)
    scores = np.round(np.sum(list(parts.values()), axis=0), DECIMALS)
    first = given.pinned if pinned_first else np.zeros(len(given), np.bool_)
    order = np.lexsort((given.ordinals, -scores, ~first))
    if min_similarity is not None:
        order = order[(given.similarities[order] >= min_similarity) | first[order]]
    order = order[:limit]
    kept = zip(given.ordinals[order].tolist(), given.similarities[order].tolist(), scores[order].tolist(), strict=True)
    columns = [part[order].tolist() for part in parts.values()]
    return [
        Ranked(*one, {name: value for name, value in zip(parts, each, strict=True) if value or name != "same"})
        for one, each in zip(kept, zip(*columns, strict=True), strict=True)
    ]


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
