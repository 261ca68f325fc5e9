"""The proof that database and index agree: every row, every vector (SPEC.md section 11, `memorybank check`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memorybank.bank.info import CheckReport
from memorybank.errors import StorageError
from memorybank.search.vectors import is_unit, to_matrix
from memorybank.storage.rows import text_hash

if TYPE_CHECKING:
    from memorybank.search.index import VectorIndex
    from memorybank.search.live_index import LiveIndex
    from memorybank.storage import BankState, Reader, Store, StoredMemory

__all__ = ["check", "wrong_rows"]

PAGE = 5_000


def check(store: Store, live: LiveIndex, bank: str) -> CheckReport:
    """Compare a bank's rows with what they must be, and the index with the rows; nothing is changed."""
    problems = store.integrity()
    rows = active = indexed = 0
    try:
        with live.current() as (reader, state, index):
            if state is None or index is None:
                return CheckReport(bank, 0, 0, tuple(problems))
            for page in _pages(reader, bank):
                rows += len(page)
                active += sum(row.memory.state == "active" for row in page)
                problems += _wrong_rows(page, state)
                problems += _wrong_vectors(page, state, index)
            indexed = len(index)
            if indexed != active:
                problems.append(f"the index holds {indexed} vectors, the database {active} active memories")
    except StorageError as error:
        with store.read() as reader:
            problems += wrong_rows(reader, bank) or [str(error)]
    return CheckReport(bank, rows, indexed, tuple(problems))


def wrong_rows(reader: Reader, bank: str) -> list[str]:
    """Return what is wrong with a bank's rows in themselves, whatever its index holds."""
    state = reader.bank(bank)
    return [] if state is None else [line for page in _pages(reader, bank) for line in _wrong_rows(page, state)]


def _pages(reader: Reader, bank: str) -> Iterator[list[StoredMemory]]:
    after = 0
    while page := reader.page(bank, state=None, after=after, limit=PAGE):
        yield page
        after = page[-1].ordinal


def _wrong_rows(page: Sequence[StoredMemory], state: BankState) -> Iterator[str]:
    width = 4 * state.dimensions
    whole = [row.vector if len(row.vector) == width else bytes(width) for row in page]
    for row, unit in zip(page, is_unit(to_matrix(whole, len(page), state.dimensions)).tolist(), strict=True):
        name = f"memory {row.memory.id!r}"
        if row.text_hash != text_hash(row.memory.text):
            yield f"{name}: its text is not the one whose hash is stored"
        if row.memory.model != state.model:
            yield f"{name}: its vector is of model {row.memory.model}, the bank's model is {state.model}"
        if len(row.vector) != width:
            yield f"{name}: its vector has {len(row.vector)} bytes, not {width}"
        elif not unit:
            yield f"{name}: its vector is not finite or not of length 1"
        if row.revision > state.revision or row.ordinal >= state.next_ordinal:
            yield f"{name}: it is newer than its bank"


def _wrong_vectors(page: Sequence[StoredMemory], state: BankState, index: VectorIndex) -> Iterator[str]:
    active = [row for row in page if row.memory.state == "active"]
    for row in page:
        if (row.ordinal in index) != (row.memory.state == "active"):
            where = "in the index" if row.ordinal in index else "not in the index"
            yield f"memory {row.memory.id!r} is {row.memory.state}, but {where}"
    held = [row for row in active if row.ordinal in index]
    if not held:
        return
    stored = to_matrix([row.vector for row in held], len(held), state.dimensions)
    found = index.vectors(np.array([row.ordinal for row in held], dtype=np.int64))
    rounding = np.abs(stored) * 2.0**-11 + 2.0**-25 if index.is_half else 0.0
    for place in np.flatnonzero((np.abs(found - stored) > rounding).any(axis=1)).tolist():
        yield f"memory {held[place].memory.id!r}: its vector in the index is not the stored one"
