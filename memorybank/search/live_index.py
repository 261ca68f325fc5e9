"""One bank's indexes, the vectors' and the words', kept in step with the database.

Before every search the bank's revision is read; if it moved, what changed is applied, whoever wrote it: this object,
another one, another process. A write therefore never touches the index, and an index can never keep a write from being
acknowledged. Reading the revision, searching and fetching the rows see one snapshot of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from memorybank.errors import InvalidInputError, StorageError
from memorybank.forking import renew_after_fork
from memorybank.search.index import ReadWriteLock, VectorIndex
from memorybank.search.index_exact import similarities
from memorybank.search.lexical import LexicalIndex
from memorybank.search.ranking import Candidates, Ranked
from memorybank.search.scores import NO_SCORES
from memorybank.search.vectors import damaged, to_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memorybank.storage import BankState, Reader, Store, StoredMemory
    from memorybank.storage.reading import StoredTerms

__all__ = ["Asked", "Choose", "LiveIndex"]

Choose: TypeAlias = Callable[[Candidates, int], list[Ranked]]
"""Is given candidates and how many active memories there are; returns those that are wanted, in their order."""

_Seen: TypeAlias = tuple[str, str, int, int]
"""What an index holds: incarnation, model, dimensions and revision of the bank."""
_NOTHING: _Seen = ("", "", 0, -1)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to look for.

    Attributes:
        vector: of length 1, shape (dimensions,).
        k: how many of the nearest, and of those that share words, are candidates; 1 or more.
        guard: called with the bank's row; raises when its vectors are of another model than the query's.
        terms: what each term weighs; None asks for the nearest alone.
        with_pinned: make all pinned memories candidates as well.
    """

    vector: NDArray[np.float32]
    k: int
    guard: Callable[[BankState], None]
    terms: Mapping[int, float] | None = None
    with_pinned: bool = False


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
        self._lexical: LexicalIndex | None = None
        self._seen = self._seen_lexical = _NOTHING

    def renew(self) -> None:
        """Drop a lock that another thread of the parent may have held when this process was forked, and the indexes."""
        self._lock = ReadWriteLock()
        self._drop()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the indexes take now, about."""
        index, lexical = self._index, self._lexical
        return (0 if index is None else index.nbytes) + (0 if lexical is None else lexical.nbytes)

    def release(self) -> None:
        """Give the indexes' memory back; the next search builds them anew."""
        with self._lock.writing():
            self._drop()

    def _drop(self) -> None:
        self._index = self._lexical = None
        self._seen = self._seen_lexical = _NOTHING

    def is_empty(self) -> bool:
        """Return whether there is nothing to find, without asking the embedding model anything."""
        with self._lock.reading():
            if self._index is not None and len(self._index):
                return False
        with self._store.read() as reader:
            return not reader.has_memories(self._bank, active=True)

    def search(self, asked: Asked, choose: Choose) -> list[tuple[StoredMemory, Ranked]]:
        """Return the memories that are chosen from the best candidates of each index, in their order.

        Args:
            asked: what to look for.
            choose: is given the candidates and returns those that are wanted, in their order.

        Raises:
            StorageError: the database cannot be read, or a stored vector is damaged.
        """
        was_there = self._index is not None
        try:
            return self._search(asked, choose)
        finally:
            if self._on_use is not None:  # here no lock is held: it may release other indexes, or this one
                self._on_use(self, not was_there)

    def _search(self, asked: Asked, choose: Choose) -> list[tuple[StoredMemory, Ranked]]:
        lexical = asked.terms is not None
        with self._lock.reading(), self._store.read() as reader:
            state = reader.bank(self._bank)
            if state is None:
                return []
            asked.guard(state)
            if self._is_current(state, lexical=lexical):
                return self._find(reader, state, asked, choose)
        # Alone, so that new writes cannot keep this search waiting for ever.
        with self.current(lexical=lexical) as (reader, state, _):
            if state is None:
                return []
            asked.guard(state)
            return self._find(reader, state, asked, choose)

    @contextmanager
    def current(self, *, lexical: bool = False) -> Iterator[tuple[Reader, BankState | None, VectorIndex | None]]:
        """Hold the index alone, in step with the snapshot and the bank's row given with it; None if there is none."""
        with self._lock.writing(), self._store.read() as reader:
            state = reader.bank(self._bank)
            if state is not None and not self._is_current(state, lexical=lexical):
                if lexical and self._seen == self._seen_lexical == _NOTHING:
                    self._build_both(reader, state)
                self._catch_up(reader, state)
                if lexical:
                    self._catch_up_lexical(reader, state)
            yield reader, state, None if state is None else self._index

    def _is_current(self, state: BankState, *, lexical: bool) -> bool:
        now = _seen(state)
        return self._seen == now and (not lexical or self._seen_lexical == now)

    def _catch_up(self, reader: Reader, state: BankState) -> None:
        index, before, now = self._index, self._seen, _seen(state)
        self._index, self._seen = None, _NOTHING  # whatever fails from here on, the next search builds it anew
        if index is None or before[:-1] != now[:-1]:
            index = self._build(reader, state)
        elif before != now:
            gone, put = reader.changed(self._bank, before[-1])
            index.remove(gone)
            self._add(index, reader, [key for key, _ in put], [vector for _, vector in put])
        self._index, self._seen = index, now

    def _catch_up_lexical(self, reader: Reader, state: BankState) -> None:
        index, before, now = self._lexical, self._seen_lexical, _seen(state)
        self._lexical, self._seen_lexical = None, _NOTHING
        if index is None or before[0] != now[0]:  # another model changes nothing here
            index = LexicalIndex()
            with closing(reader.active_terms(self._bank)) as bites:
                for bite in bites:
                    _add_terms(index, bite)
        elif before != now:
            gone, put = reader.changed_terms(self._bank, before[-1])
            index.remove(gone)
            _add_terms(index, put)
        index.settle()
        self._lexical, self._seen_lexical = index, now

    def _build_both(self, reader: Reader, state: BankState) -> None:
        """Build both indexes from one reading of the bank: half of what a restart takes is reading."""
        index, lexical = self._make_index(state.dimensions), LexicalIndex()
        with closing(reader.active_both(self._bank)) as bites:
            for vectors, found in bites:
                self._add(index, reader, found[0], vectors)
                _add_terms(lexical, found)
        lexical.settle()
        self._index, self._lexical = index, lexical
        self._seen = self._seen_lexical = _seen(state)

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
            raise self._damaged(reader, ordinals, vectors, index.dimensions, error) from error

    def _damaged(
        self, reader: Reader, ordinals: Sequence[int], vectors: Sequence[bytes], dimensions: int, error: Exception
    ) -> StorageError:
        place, what = next(damaged(vectors, dimensions), (0, str(error)))
        [row] = reader.by_ordinals(self._bank, [ordinals[place]])
        return StorageError(
            f"bank {self._bank!r}, memory {row.memory.id!r}: the stored vector is damaged ({what}): `memorybank check` "
            "lists all such; `memorybank reembed` computes them anew"
        )

    def _find(
        self, reader: Reader, state: BankState, asked: Asked, choose: Choose
    ) -> list[tuple[StoredMemory, Ranked]]:
        if self._index is None or not len(self._index):
            return []
        by_words = NO_SCORES if asked.terms is None or self._lexical is None else self._lexical.scores(asked.terms)
        wanted = sorted({*self._index.candidates(asked.vector, asked.k).tolist(), *by_words.best(asked.k)})
        pinned = [one for one in reader.pinned(self._bank) if one in self._index] if asked.with_pinned else []
        wanted, vectors = self._vectors(reader, self._index, sorted({*wanted, *pinned}) if pinned else wanted)
        near = similarities(vectors, asked.vector)
        ordinals = np.array(wanted, np.int64)
        candidates = Candidates(ordinals, near, by_words.of(wanted), np.isin(ordinals, pinned))
        chosen = choose(candidates, len(self._index))
        stored = self._rows(reader, state, [one.ordinal for one in chosen])
        return [(stored[one.ordinal], one) for one in chosen if one.ordinal in stored]

    def _rows(self, reader: Reader, state: BankState, ordinals: list[int]) -> dict[int, StoredMemory]:
        """Return the rows of memories; the index may still hold the right vector of one that was damaged meanwhile."""
        rows = reader.by_ordinals(self._bank, ordinals)
        vectors = [row.vector for row in rows]
        if any(len(vector) != 4 * state.dimensions for vector in vectors):
            error = StorageError("a vector has another length")
            raise self._damaged(reader, [row.ordinal for row in rows], vectors, state.dimensions, error)
        return {row.ordinal: row for row in rows}

    def _vectors(self, reader: Reader, index: VectorIndex, wanted: list[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return those of the memories that are there, with their float32 vectors, the index's own if it has them."""
        if not index.is_half:
            return wanted, index.vectors(np.array(wanted, dtype=np.int64))
        found = reader.vectors(self._bank, wanted)
        ordinals, vectors = [ordinal for ordinal, _ in found], [vector for _, vector in found]
        try:
            return ordinals, to_matrix(vectors, index.dimensions)
        except StorageError as error:
            raise self._damaged(reader, ordinals, vectors, index.dimensions, error) from error


def _add_terms(index: LexicalIndex, found: StoredTerms) -> None:
    """Add memories at their places: those written from the log where their span begins, the others as stored."""
    ordinals, spans, terms = found
    places = [(0, ordinal) if span is None else (1, span) for ordinal, span in zip(ordinals, spans, strict=True)]
    index.add(ordinals, terms, places)


def _seen(state: BankState) -> _Seen:
    return state.incarnation, state.model, state.dimensions, state.revision
