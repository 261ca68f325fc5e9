"""One bank's vector index, kept in step with the database.

Before every search the bank's revision is read; if it moved, what changed is applied, whoever wrote it: this object,
another one, another process. A write therefore never touches the index, and an index can never keep a write from being
acknowledged. Reading the revision, searching and fetching the rows see one snapshot of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import numpy as np

from memorybank.errors import InvalidInputError, StorageError
from memorybank.forking import renew_after_fork
from memorybank.search.index import ReadWriteLock, VectorIndex
from memorybank.search.index_exact import similarities
from memorybank.search.vectors import damaged, to_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memorybank.storage import BankState, Reader, Store, StoredMemory

__all__ = ["LiveIndex"]


class LiveIndex:
    """The index of one bank, for any number of threads.

    Args:
        store: the database.
        bank: the bank's name.
        make_index: makes an empty index for a number of dimensions.
        on_use: called after each search with this object and whether its index had to be built for it.
    """

    def __init__(
        self,
        store: Store,
        bank: str,
        make_index: Callable[[int], VectorIndex] = VectorIndex,
        *,
        on_use: Callable[[LiveIndex, bool], None] | None = None,
    ) -> None:
        self._store = store
        self._bank = bank
        self._make_index = make_index
        self._on_use = on_use
        self._lock = ReadWriteLock()
        renew_after_fork(self)
        self._index: VectorIndex | None = None
        self._vectors_of: tuple[str, str, int] | None = None
        self._revision = -1

    def renew(self) -> None:
        """Drop a lock that another thread of the parent may have held when this process was forked, and the index."""
        self._lock, self._index, self._revision = ReadWriteLock(), None, -1

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the index takes now, about."""
        index = self._index
        return 0 if index is None else index.nbytes

    def release(self) -> None:
        """Give the index's memory back; the next search builds it anew."""
        with self._lock.writing():
            self._index, self._revision = None, -1

    def is_empty(self) -> bool:
        """Return whether there is nothing to find, without asking the embedding model anything."""
        with self._lock.reading():
            if self._index is not None and len(self._index):
                return False
        with self._store.read() as reader:
            return not reader.has_memories(self._bank, active=True)

    def search(
        self,
        query: NDArray[np.float32],
        k: int,
        *,
        guard: Callable[[BankState], None],
        with_pinned: bool = False,
    ) -> list[tuple[StoredMemory, float]]:
        """Return memories, among them the k most similar, each with its similarity, in no order.

        Args:
            query: one vector of length 1, shape (dimensions,).
            k: how many, 1 or more.
            guard: called with the bank's row; raises when its vectors are of another model than the query.
            with_pinned: return all pinned memories as well.

        Raises:
            StorageError: the database cannot be read, or a stored vector is damaged.
        """
        was_there = self._index is not None
        try:
            return self._search(query, k, guard, with_pinned)
        finally:
            if self._on_use is not None:  # here no lock is held: it may release other indexes, or this one
                self._on_use(self, not was_there)

    def _search(
        self, query: NDArray[np.float32], k: int, guard: Callable[[BankState], None], with_pinned: bool
    ) -> list[tuple[StoredMemory, float]]:
        with self._lock.reading(), self._store.read() as reader:
            state = reader.bank(self._bank)
            if state is None:
                return []
            guard(state)
            if self._is_current(state):
                return self._find(reader, query, k, with_pinned)
        with self.current() as (reader, state, _):  # alone, so that new writes cannot keep this search waiting for ever
            if state is None:
                return []
            guard(state)
            return self._find(reader, query, k, with_pinned)

    @contextmanager
    def current(self) -> Iterator[tuple[Reader, BankState | None, VectorIndex | None]]:
        """Hold the index alone, in step with the snapshot and the bank's row given with it; None if there is none."""
        with self._lock.writing(), self._store.read() as reader:
            state = reader.bank(self._bank)
            if state is not None and not self._is_current(state):
                self._catch_up(reader, state)
            yield reader, state, None if state is None else self._index

    def _is_current(self, state: BankState) -> bool:
        return self._index is not None and (self._vectors_of, self._revision) == (_source(state), state.revision)

    def _catch_up(self, reader: Reader, state: BankState) -> None:
        index, self._index = self._index, None  # whatever fails from here on, the next search builds it anew
        if index is None or self._vectors_of != _source(state):
            index = self._build(reader, state)
        else:
            gone, put = reader.changed(self._bank, self._revision)
            index.remove(gone)
            self._add(index, reader, [key for key, _ in put], [vector for _, vector in put])
        self._index, self._vectors_of, self._revision = index, _source(state), state.revision

    def _build(self, reader: Reader, state: BankState) -> VectorIndex:
        index = self._make_index(state.dimensions)
        with closing(reader.active_vectors(self._bank)) as bites:
            for ordinals, vectors in bites:
                self._add(index, reader, ordinals, vectors)
        return index

    def _add(self, index: VectorIndex, reader: Reader, ordinals: list[int], vectors: list[bytes]) -> None:
        try:
            index.add(ordinals, to_matrix(vectors, index.dimensions))
        except (InvalidInputError, StorageError) as error:
            place, what = next(damaged(vectors, index.dimensions), (0, str(error)))
            [row] = reader.by_ordinals(self._bank, [ordinals[place]])
            raise self._damaged(row, what) from error

    def _damaged(self, row: StoredMemory, what: str) -> StorageError:
        return StorageError(
            f"bank {self._bank!r}, memory {row.memory.id!r}: the stored vector is damaged ({what}): `memorybank check` "
            "lists all such; `memorybank reembed` computes them anew"
        )

    def _find(
        self, reader: Reader, query: NDArray[np.float32], k: int, with_pinned: bool
    ) -> list[tuple[StoredMemory, float]]:
        if self._index is None or not len(self._index):
            return []
        rows = reader.by_ordinals(self._bank, self._index.candidates(query, k).tolist())
        if with_pinned:
            rows = list({row.ordinal: row for row in [*rows, *reader.pinned(self._bank)]}.values())
        stored = [row.vector for row in rows]
        try:
            vectors = to_matrix(stored, self._index.dimensions)
        except StorageError as error:
            place, what = next(damaged(stored, self._index.dimensions), (0, str(error)))
            raise self._damaged(rows[place], what) from error
        return list(zip(rows, similarities(vectors, query).tolist(), strict=True))


def _source(state: BankState) -> tuple[str, str, int]:
    return state.incarnation, state.model, state.dimensions
