"""Every change that is made in the database, inside one transaction: all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, delete, insert, update
from sqlalchemy.dialects import sqlite

from memorybank.storage.reading import ONE_OF, STATE, Reader, chunks
from memorybank.storage.rows import BankState, StoredMemory, bank_columns, memory_columns, to_bank, to_text
from memorybank.storage.schema import banks, deletions, memories

__all__ = ["Writer"]

_INSERT, _INSERT_DELETION = insert(memories), insert(deletions)
_KEY_COLUMNS = ("bank", "ordinal")
_LOCKED_STATE = STATE.with_for_update()  # SQLite knows no such clause, and its whole database is locked already
# Without its key: an assignment to it, even of the same value, makes SQLite look at every memory that refers to it.
_UPDATE_BANK = (
    update(banks)
    .where(banks.c.bank == bindparam("of_bank"))
    .values({column.name: bindparam(column.name) for column in banks.c if column.name != "bank"})
)
_UPDATE = (
    update(memories)
    .where(memories.c.bank == bindparam("of_bank"), memories.c.ordinal == bindparam("of_ordinal"))
    .values({column.name: bindparam(column.name) for column in memories.c if column.name not in _KEY_COLUMNS})
)
_DROP = tuple(delete(table).where(table.c.bank == bindparam("of_bank")) for table in (deletions, memories, banks))
_DELETE = {
    engine: delete(memories).where(memories.c.bank == bindparam("of_bank"), one_of(memories.c.ordinal))
    for engine, one_of in ONE_OF.items()
}
_USE = {
    engine: update(memories)
    .where(memories.c.bank == bindparam("of_bank"), one_of(memories.c.id))
    .values(use_count=memories.c.use_count + 1, last_used=bindparam("moment"))
    for engine, one_of in ONE_OF.items()
}
_REVECTOR = (
    update(memories)
    .where(memories.c.bank == bindparam("of_bank"), memories.c.ordinal == bindparam("of_ordinal"))
    .values(model=bindparam("new_model"), vector=bindparam("new_vector"), revision=bindparam("new_revision"))
)


@lru_cache(maxsize=2)
def _create_bank(engine: str) -> Any:
    """Return the statement that stores a bank's row if there is none. Loading PostgreSQL's takes 30 ms."""
    if engine == "sqlite":
        return sqlite.insert(banks).on_conflict_do_nothing()
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(banks).on_conflict_do_nothing()


class Writer(Reader):
    """Changes inside one transaction. The caller has raised the bank's revision and saves the bank's row too."""

    def bank(self, bank: str) -> BankState | None:
        """Return the bank's row, and let others that want to change the bank wait until this transaction ends."""
        row = self._connection.execute(_LOCKED_STATE, {"of_bank": bank}).first()
        return None if row is None else to_bank(row)

    def create_bank(self, state: BankState) -> BankState:
        """Store a new bank's row unless another process was faster; return the row that is there, locked."""
        statement = _create_bank(self._engine)
        while True:
            self._connection.execute(statement, bank_columns(state))
            if (found := self.bank(state.bank)) is not None:
                return found

    def save_bank(self, state: BankState) -> None:
        """Store a bank's changed row."""
        values = bank_columns(state)
        self._connection.execute(_UPDATE_BANK, {"of_bank": values.pop("bank"), **values})

    def delete_bank(self, bank: str) -> None:
        """Delete a bank with all that is in it."""
        for statement in _DROP:
            self._connection.execute(statement, {"of_bank": bank})

    def insert(self, bank: str, rows: Sequence[StoredMemory]) -> None:
        """Store new memories."""
        if rows:
            self._connection.execute(_INSERT, [memory_columns(bank, row) for row in rows])

    def update(self, bank: str, rows: Sequence[StoredMemory]) -> None:
        """Store changed memories, whole."""
        if rows:
            keys = [{"of_bank": bank, "of_ordinal": row.ordinal} for row in rows]
            values = [memory_columns(bank, row) | key for row, key in zip(rows, keys, strict=True)]
            self._connection.execute(_UPDATE, values)

    def delete(self, bank: str, ordinals: Sequence[int], revision: int) -> None:
        """Delete memories and note that they went, for indexes in other processes."""
        for some in chunks(ordinals):
            self._connection.execute(_DELETE[self._engine], {"of_bank": bank, "keys": list(some)})
        if ordinals:
            gone = [{"bank": bank, "ordinal": ordinal, "revision": revision} for ordinal in ordinals]
            self._connection.execute(_INSERT_DELETION, gone)

    def revector(self, state: BankState, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Replace the vectors of memories by those of the bank's model; one that is gone by now is passed over."""
        same = {"of_bank": state.bank, "new_model": state.model, "new_revision": state.revision}
        rows = [same | {"of_ordinal": ordinal, "new_vector": vector} for ordinal, vector in vectors]
        if rows:
            self._connection.execute(_REVECTOR, rows)

    def count_use(self, bank: str, ids: Sequence[str], moment: datetime) -> int:
        """Count one use of each of the memories; return how many of them there are."""
        values = {"of_bank": bank, "moment": to_text(moment)}
        return sum(
            self._connection.execute(_USE[self._engine], values | {"keys": list(some)}).rowcount for some in chunks(ids)
        )
