"""FAISS over one bank: vectors under stable 64-bit ordinals, searched by inner product (SPEC.md section 9).

The index is a cache; the database is the truth. Up to `HALF_ABOVE` vectors it is flat float32, above that half
precision, which is scanned about twice as fast and takes half the memory. Neither is trusted for the answer: FAISS
gives *candidates*, certified to contain the k best (see `VectorIndex.candidates`), and their similarities are then
computed from float32 vectors. So the answer is that of `ExactIndex`, to the last digit, whatever the kind.

What FAISS does if it is let (each is guarded here): it pads short answers with id -1, adds an id twice, returns equal
scores in no order, stores NaN, and gives wrong ids when it is searched while something is added.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import faiss
import numpy as np

from memorybank.search.index_exact import (
    DECIMALS,
    ExactIndex,
    best,
    checked_ordinals,
    checked_query,
    checked_vectors,
    similarities,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HALF_ABOVE", "ExactIndex", "ReadWriteLock", "VectorIndex"]

HALF_ABOVE = 8_000
"""Vectors above which half precision is used. Measured at width 384: below, both kinds take the same; from here on a
scan of float32 takes twice as long, as the vectors (12 MB) outgrow the processor's own memory."""
BYTES_PER_KEY = 120
"""What a key takes beside its vector: a Python set's entry with its number, and FAISS's map from key to place."""
MARGIN_CANDIDATES = 48
"""Candidates fetched beyond k at first; nearly always enough to see the end of those that k could depend on."""

_threads = threading.local()


def _one_thread() -> None:
    """Let FAISS use one core in this thread: OpenMP's setting holds only for the thread that made it.

    With its own pool beside torch's, both spin against each other and a search takes ten times as long.
    """
    if not getattr(_threads, "pinned", False):
        faiss.omp_set_num_threads(1)
        _threads.pinned = True


class VectorIndex:
    """Unit vectors under ordinals. Not safe by itself for a writer beside others: see `ReadWriteLock`.

    Args:
        dimensions: width of the vectors.
        half_above: number of vectors above which it changes to half precision; it does not change back.
    """

    def __init__(self, dimensions: int, *, half_above: int = HALF_ABOVE) -> None:
        self.dimensions = dimensions
        self.is_half = False
        self._half_above = half_above
        self._held: set[int] = set()
        self._faiss: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, ordinal: int) -> bool:
        return ordinal in self._held

    def __repr__(self) -> str:
        kind = "float16" if self.is_half else "float32"
        return f"VectorIndex(dimensions={self.dimensions}, vectors={len(self)}, kind={kind!r})"

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes, about: the vectors, and what FAISS and this object keep for each key."""
        return len(self._held) * (self.dimensions * (2 if self.is_half else 4) + BYTES_PER_KEY)

    @property
    def ordinals(self) -> NDArray[np.int64]:
        """The ordinals held, in ascending order."""
        return np.array(sorted(self._held), dtype=np.int64)

    def add(self, ordinals: Sequence[int] | NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, or replace those that are there already. A refused call has changed nothing.

        Args:
            ordinals: n whole numbers, 0 or more, none twice.
            vectors: shape (n, dimensions), finite, of length 1.

        Raises:
            InvalidInputError: something else.
        """
        keys = checked_ordinals(ordinals)
        rows = checked_vectors(vectors, len(keys), self.dimensions)
        if not len(keys):
            return
        _one_thread()
        self.remove(keys)
        if not self.is_half and len(self) + len(keys) > self._half_above:
            self._to_half()
        self._faiss.add_with_ids(rows, keys)
        self._held.update(keys.tolist())

    def remove(self, ordinals: Sequence[int] | NDArray[np.int64]) -> int:
        """Remove vectors; return how many were there. FAISS moves up all that follow, so give many in one call."""
        keys = [key for key in checked_ordinals(ordinals).tolist() if key in self._held]
        if keys:
            _one_thread()
            self._faiss.remove_ids(np.array(keys, dtype=np.int64))
            self._held.difference_update(keys)
        return len(keys)

    def vectors(self, ordinals: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors as held, shape (n, dimensions): float32 ones, or half precision ones widened again."""
        if not len(ordinals):
            return np.empty((0, self.dimensions), dtype=np.float32)
        found: NDArray[np.float32] = self._faiss.reconstruct_batch(ordinals)
        return found

    def candidates(self, query: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return ordinals among which the k nearest certainly are, all ties at the k-th place included.

        A score of FAISS differs from the true one by `error` at most. So the k-th best true score is no less than
        the k-th best score here minus `error`, and whatever was not fetched is no better than the last one fetched
        plus `error`. While these two overlap, more is fetched.
        """
        row = checked_query(query, self.dimensions, k)
        if not self._held:
            return np.empty(0, dtype=np.int64)
        _one_thread()
        margin = 2 * self._error + 2 * 10.0**-DECIMALS
        fetch = k + max(MARGIN_CANDIDATES, k // 4)
        while True:
            fetch = min(fetch, len(self))
            scores, ids = (found[0] for found in self._faiss.search(row[np.newaxis], fetch))
            needed = scores >= scores[min(k, fetch) - 1] - margin
            if fetch == len(self) or not needed[-1]:
                kept: NDArray[np.int64] = ids[needed]
                return kept
            fetch *= 4

    def search(
        self,
        query: NDArray[np.float32],
        k: int,
        *,
        fetch: Callable[[NDArray[np.int64]], NDArray[np.float32]] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the ordinals and similarities of the k nearest, best first, equal ones by ordinal.

        Args:
            query: one vector of length 1, shape (dimensions,) or (1, dimensions).
            k: how many, 1 or more; fewer come back when there are fewer.
            fetch: gives the float32 vectors of ordinals. Without it, those held are used, which for a half
                precision index makes the similarities right to about 5e-4 only.

        Raises:
            InvalidInputError: the query is not one finite vector of that width, or k is below 1.
        """
        row = checked_query(query, self.dimensions, k)
        keys = self.candidates(row, k)
        return best(keys, similarities((fetch or self.vectors)(keys), row), k)

    @property
    def _error(self) -> float:
        """Bound on what FAISS's score of two unit vectors is off: rounding of float16 and of a float32 sum."""
        return 1.01 * ((2.0**-11 + 2.0**-20 if self.is_half else 0.0) + (self.dimensions + 1) * 2.0**-24)

    def _to_half(self) -> None:
        keys = self.ordinals
        held = self.vectors(keys)
        quantizer = faiss.IndexScalarQuantizer(
            self.dimensions, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        self._faiss = faiss.IndexIDMap2(quantizer)
        self.is_half = True
        if len(keys):
            self._faiss.add_with_ids(held, keys)


class ReadWriteLock:
    """Any number of readers, or one writer. A waiting writer holds back new readers, so it never starves."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock together with other readers. Not reentrant."""
        with self._free:
            self._free.wait_for(lambda: not self._writing and not self._writers_waiting)
            self._readers += 1
        try:
            yield
        finally:
            with self._free:
                self._readers -= 1
                self._free.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone. Not reentrant."""
        with self._free:
            self._writers_waiting += 1
            try:
                self._free.wait_for(lambda: not self._writing and not self._readers)
            finally:
                self._writers_waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._free:
                self._writing = False
                self._free.notify_all()
