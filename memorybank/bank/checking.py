"""The proof that database and index agree: every row, every vector (SPEC.md section 11, `memorybank check`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from memorybank.bank.info import CheckReport
from memorybank.errors import StorageError
from memorybank.search.vectors import damaged, to_matrix
from memorybank.storage.rows import MEMORY_COLUMNS, text_hash, to_memory
from memorybank.terms import packed

if TYPE_CHECKING:
    from memorybank.search.index import VectorIndex
    from memorybank.search.live_index import LiveIndex
    from memorybank.storage import BankState, Reader, Store, StoredMemory

__all__ = ["check", "check_rows"]

PAGE = 5_000
_ORDINAL, _STATE = MEMORY_COLUMNS.index("ordinal"), MEMORY_COLUMNS.index("state")


def check(store: Store, live: LiveIndex, bank: str) -> CheckReport:
    """Compare a bank's rows with what they must be, and the index with the rows; nothing is changed."""
    problems = store.integrity()
    try:
        with live.current() as (reader, state, index):
            return _compared(bank, reader, state, index, problems)
    except StorageError as error:
        trouble = str(error)
    try:  # without the index, which cannot be made: its trouble may be one of the rows' or one beside them
        with store.read() as reader:
            report = check_rows(reader, bank, problems)
    except StorageError as error:
        return CheckReport(bank, 0, 0, (*problems, str(error)))
    return report if not report.ok else replace(report, problems=(trouble,))


def check_rows(reader: Reader, bank: str, problems: Sequence[str] = ()) -> CheckReport:
    """Compare a bank's rows with what they must be, whatever its index holds."""
    return _compared(bank, reader, reader.bank(bank), None, problems)


def _compared(
    bank: str, reader: Reader, state: BankState | None, index: VectorIndex | None, problems: Sequence[str]
) -> CheckReport:
    found = list(problems)
    rows = active = 0
    for page in _pages(reader, bank) if state is not None else ():
        rows += len(page)
        active += sum(row[_STATE] == "active" for row in page)
        sound = _sound(page, found)
        if state is not None:
            found += _wrong_rows(sound, state)
            found += _wrong_terms(sound, reader.stored_terms(bank, [row.ordinal for row in sound]))
            found += _wrong_vectors(sound, state, index) if index is not None else ()
    if index is not None and len(index) != active:
        found.append(f"the index holds {len(index)} vectors, the database {active} active memories")
    return CheckReport(bank, rows, 0 if index is None else len(index), tuple(found))


def _pages(reader: Reader, bank: str) -> Iterator[Sequence[Sequence[Any]]]:
    after = 0
    while page := reader.rows(bank, after=after, limit=PAGE):
        yield page
        after = page[-1][_ORDINAL]


def _sound(page: Sequence[Sequence[Any]], problems: list[str]) -> list[StoredMemory]:
    """Return the rows that can be read, and add to the problems those that cannot."""
    sound = []
    for row in page:
        try:
            sound.append(to_memory(row))
        except StorageError as error:
            problems.append(str(error))
    return sound


def _wrong_rows(page: Sequence[StoredMemory], state: BankState) -> Iterator[str]:
    for row in page:
        name = f"memory {row.memory.id!r}"
        if row.text_hash != text_hash(row.memory.text):
            yield f"{name}: its text is not the one whose hash is stored"
        if row.memory.model != state.model:
            yield f"{name}: its vector is of model {row.memory.model}, the bank's model is {state.model}"
        if row.revision > state.revision or row.ordinal >= state.next_ordinal:
            yield f"{name}: it is newer than its bank"
    for place, what in damaged([row.vector for row in page], state.dimensions):
        yield f"memory {page[place].memory.id!r}: {what}"


def _wrong_terms(page: Sequence[StoredMemory], stored: Mapping[int, Any]) -> Iterator[str]:
    """Null is right: what was stored by an older version has none, and its words are taken from the text."""
    for row in page:
        terms = stored.get(row.ordinal)
        if terms is not None and bytes(terms) != packed(row.memory.text):
            yield f"memory {row.memory.id!r}: its stored words are not those of its text"


def _wrong_vectors(page: Sequence[StoredMemory], state: BankState, index: VectorIndex) -> Iterator[str]:
    active = [row for row in page if row.memory.state == "active"]
    for row in page:
        if (row.ordinal in index) != (row.memory.state == "active"):
            where = "in the index" if row.ordinal in index else "not in the index"
            yield f"memory {row.memory.id!r} is {row.memory.state}, but {where}"
    held = [row for row in active if row.ordinal in index]
    if not held:
        return
    stored = to_matrix([row.vector for row in held], state.dimensions)
    found = index.vectors(np.array([row.ordinal for row in held], dtype=np.int64))
    rounding = np.abs(stored) * 2.0**-11 + 2.0**-25 if index.is_half else 0.0
    for place in np.flatnonzero((np.abs(found - stored) > rounding).any(axis=1)).tolist():
        yield f"memory {held[place].memory.id!r}: its vector in the index is not the stored one"
