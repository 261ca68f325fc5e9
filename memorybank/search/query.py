"""What is looked for: a query, and the actions before it as a weaker part, as one vector and as weighted terms.

What a player does next is often clear from the turns before it alone ("I open it"). The recent texts and the query are
embedded as one text, and mixed with the vector of the query by itself; of the terms, each text gives its own. Measured
on actions of a campaign (benchmarks/README.md): with the four actions before it, an action finds its memory among the
first ten in 60 of 100 cases, without them in 43.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from memorybank.search.function_words import FUNCTION_WORDS
from memorybank.terms import term, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorybank.embedding import Embedder

__all__ = ["RECENT_TERMS", "RECENT_VECTOR", "query_terms", "query_vector"]

RECENT_VECTOR = 0.5
"""Share of the vector of all texts together in the query's vector; the query by itself has the rest."""
RECENT_TERMS = 0.9
"""What a term of a recent text weighs; one of the query weighs 1."""
MOST_WORDS = 1_000
"""Words that are read of each text, from its beginning: a whole book as a query must not keep others waiting."""


def query_vector(embedder: Embedder, query: str, recent: Sequence[str]) -> NDArray[np.float32]:
    """Return the vector that is searched with: of length 1, shape (dimensions,).

    Args:
        embedder: the bank's.
        query: a text with something in it.
        recent: the texts before it, oldest first.
    """
    import numpy as np

    from memorybank.search.vectors import embed

    if not recent:
        alone: NDArray[np.float32] = embed(embedder, [query], kind="query")[0]
        return alone
    own: NDArray[np.float32]
    own, together = embed(embedder, [query, " ".join([*recent, query])], kind="query")
    mixed = (1 - RECENT_VECTOR) * own.astype(np.float64) + RECENT_VECTOR * together.astype(np.float64)
    length = float(np.linalg.norm(mixed))
    if length < 1e-6:  # opposite vectors, which no real model makes of texts of which one holds the other
        return own
    found: NDArray[np.float32] = (mixed / length).astype(np.float32)
    return found


def query_terms(query: str, recent: Sequence[str], *, untold: Set[str] = FUNCTION_WORDS) -> dict[int, float]:
    """Return what each term of the query and of the recent texts weighs: the root of the sum of its squared weights.

    Args:
        query: a text.
        recent: the texts before it.
        untold: words that do not count, unless a text has no others.

    >>> from memorybank.terms import terms
    >>> [kept] = query_terms("Where is the key?", [])
    >>> kept == next(iter(terms("key")))
    True
    """
    squares: defaultdict[int, float] = defaultdict(float)
    for text, weight in ((query, 1.0), *((text, RECENT_TERMS) for text in recent)):
        found = words(text)[:MOST_WORDS]
        telling = [word for word in found if word not in untold] or found
        for one in {term(word) for word in telling}:
            squares[one] += weight * weight
    return {one: math.sqrt(square) for one, square in squares.items()}
