"""The exact twin of `VectorIndex`, in numpy and a few lines: the oracle of the tests, and what defines the answer.

The answer of a search is: every vector's cosine with the query, in double precision, rounded to `DECIMALS`; best
first, equal ones by ordinal. `similarities` is the one place where a cosine is computed for an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memorybank.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "DECIMALS",
    "UNIT_TOLERANCE",
    "ExactIndex",
    "best",
    "checked_ordinals",
    "checked_query",
    "checked_vectors",
    "similarities",
]

DECIMALS = 6
"""Similarities are rounded to this before they are compared: below it, float32 vectors say nothing."""
UNIT_TOLERANCE = 1e-3
"""How far from 1 a vector's length may be. Half precision models end at about 5e-4."""


def similarities(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the rounded cosines, shape (n,), of unit vectors, shape (n, d), with a unit query, shape (d,).

    Summed row by row, not by BLAS: a row's value must not depend on which other rows were asked for.
    """
    products = np.einsum("ij,j->i", vectors, query, dtype=np.float64, casting="unsafe")
    rounded: NDArray[np.float64] = np.clip(np.round(products, DECIMALS), -1.0, 1.0) + 0.0  # -0.0 becomes 0.0
    return rounded


def best(
    ordinals: NDArray[np.int64], scores: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the k best ordinals and their scores: highest score first, equal ones by ordinal."""
    order = np.lexsort((ordinals, -scores))[:k]
    return ordinals[order], scores[order]


def checked_query(query: object, dimensions: int, k: int) -> NDArray[np.float32]:
    """Return the query as one row of float32, or say what is wrong with it or with k.

    Raises:
        InvalidInputError: k is below 1, or the query is not one finite vector of that width.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInputError(f"k must be a whole number, 1 or more, not {k!r}")
    row: NDArray[np.float32] = checked_vectors(np.atleast_2d(np.asarray(query)), 1, dimensions)[0]
    return row


def checked_vectors(vectors: object, rows: int, dimensions: int) -> NDArray[np.float32]:
    """Return the vectors as contiguous float32 of shape (rows, dimensions), or say what is wrong with them.

    Raises:
        InvalidInputError: another shape or kind, or a value that is not finite (FAISS would store a NaN silently).
    """
    array = np.asarray(vectors)
    if array.shape != (rows, dimensions) or array.dtype.kind != "f":
        raise InvalidInputError(
            f"vectors must be floats of shape ({rows}, {dimensions}), not {array.dtype} of shape {array.shape}"
        )
    array = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InvalidInputError(f"vector {bad} holds a value that is not a finite number")
    return array


def checked_ordinals(ordinals: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ordinals as int64, 0 or more each (-1 is what FAISS pads with), without repetition.

    Raises:
        InvalidInputError: something else.
    """
    array = np.asarray(ordinals)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or int(array.min()) < 0 or int(array.max()) > 2**63 - 1:
        raise InvalidInputError("ordinals must be a list of whole numbers from 0 to 2**63 - 1")
    if np.unique(array).size != array.size:
        raise InvalidInputError("an ordinal occurs twice in one call")
    return np.ascontiguousarray(array, dtype=np.int64)


class ExactIndex:
    """Vectors under stable ordinals, searched by comparing with every one of them."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._rows: dict[int, NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, ordinal: int) -> bool:
        return ordinal in self._rows

    def __repr__(self) -> str:
        return f"ExactIndex(dimensions={self.dimensions}, vectors={len(self)})"

    @property
    def ordinals(self) -> NDArray[np.int64]:
        """The ordinals held, in ascending order."""
        return np.array(sorted(self._rows), dtype=np.int64)

    def add(self, ordinals: Sequence[int] | NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, or replace those that are there already."""
        keys = checked_ordinals(ordinals)
        rows = checked_vectors(vectors, len(keys), self.dimensions)
        self._rows.update(zip(keys.tolist(), rows.copy(), strict=True))

    def remove(self, ordinals: Sequence[int] | NDArray[np.int64]) -> int:
        """Remove vectors; return how many were there."""
        return sum(self._rows.pop(key, None) is not None for key in checked_ordinals(ordinals).tolist())

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the ordinals and similarities of the k nearest, fewer when there are fewer."""
        row = checked_query(query, self.dimensions, k)
        if not self._rows:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        keys = self.ordinals
        return best(keys, similarities(np.stack([self._rows[key] for key in keys.tolist()]), row), k)
