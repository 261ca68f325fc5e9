"""Which sentences say most of what a text says: centrality of embeddings, chosen without repetition. Pure; numpy.

Centrality is the cosine of a sentence with the centroid of all, each weighing as much as it is long: the centroid
method as compared in LexRank (Erkan & Radev 2004), whose random walk did worse here. Repetition is kept out by maximal
marginal relevance (MMR, Carbonell & Goldstein 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["centrality", "chosen", "nearness"]

DIGITS = 6
"""Scores are rounded, so that the last bits of a matrix product on another machine decide nothing."""


def centrality(vectors: NDArray[np.float32], weights: Sequence[float]) -> NDArray[np.float64]:
    """Return for each vector its cosine with the weighted mean of all.

    Args:
        vectors: of length 1, shape (n, dimensions), n at least 1.
        weights: one for each, above 0.
    """
    exact = vectors.astype(np.float64)
    centroid = np.asarray(weights, dtype=np.float64) @ exact
    length = float(np.linalg.norm(centroid))
    cosines: NDArray[np.float64] = exact @ (centroid / length if length > 0 else centroid)
    return np.round(cosines, DIGITS)


def nearness(vectors: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return for each vector the greatest cosine with one of the others; 0 if there are none or all are opposite."""
    if not len(others):
        return np.zeros(len(vectors))
    cosines = vectors.astype(np.float64) @ others.astype(np.float64).T
    nearest: NDArray[np.float64] = np.maximum(cosines.max(axis=1), 0.0)
    return np.round(nearest, DIGITS)


def chosen(
    vectors: NDArray[np.float32],
    scores: Sequence[float],
    repetition: float,
    least: float,
    groups: Callable[[int], Sequence[Sequence[int]]],
    fits: Callable[[Sequence[int]], bool],
) -> list[int]:
    """Return the places of the vectors that are chosen, ascending.

    The best goes first; each further one is the best by its score minus `repetition` times its greatest cosine with
    those chosen already. Equal ones go in their order.

    Args:
        vectors: of length 1.
        scores: one for each; more is better.
        repetition: how much being like the others costs.
        least: what a further one must have after that, so that room is not filled for its own sake.
        groups: for a place, what to take with it, in the order in which to try: the first group that fits is taken.
        fits: whether these places together are not too much.
    """
    exact = vectors.astype(np.float64)
    cosines = np.round(exact @ exact.T, DIGITS)
    left = list(range(len(exact)))
    likeness = np.zeros(len(exact))
    taken: set[int] = set()
    while left:
        worth = np.round(np.asarray(scores) - repetition * likeness, DIGITS)
        best = max(left, key=lambda place: (worth[place], -place))
        if taken and worth[best] < least:
            break
        left.remove(best)
        new = next((set(group) - taken for group in groups(best) if fits(sorted(taken.union(group)))), set())
        if new:
            taken |= new
            left = [place for place in left if place not in taken]
            likeness = np.maximum(likeness, cosines[:, sorted(new)].max(axis=1))
    return sorted(taken)
