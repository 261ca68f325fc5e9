"""Every change that is made in the database, inside one transaction: all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, bindparam, delete, insert, update

from memorybank.storage.reading import Reader, chunks
from memorybank.storage.rows import BankState, StoredMemory, bank_columns, memory_columns, to_text
from memorybank.storage.schema import banks, deletions, memories

__all__ = ["Writer"]

_KEYS: BindParameter[Any] = bindparam("keys", expanding=True)
_KEY_COLUMNS = ("bank", "ordinal")
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
_DELETE = delete(memories).where(memories.c.bank == bindparam("of_bank"), memories.c.ordinal.in_(_KEYS))
_DROP = tuple(delete(table).where(table.c.bank == bindparam("of_bank")) for table in (deletions, memories, banks))
_USE = (
    update(memories)
    .where(memories.c.bank == bindparam("of_bank"), memories.c.id.in_(_KEYS))
    .values(use_count=memories.c.use_count + 1, last_used=bindparam("moment"))
)
_REVECTOR = (
    update(memories)
    .where(memories.c.bank == bindparam("of_bank"), memories.c.ordinal == bindparam("of_ordinal"))
    .values(model=bindparam("new_model"), vector=bindparam("new_vector"), revision=bindparam("new_revision"))
)


class Writer(Reader):
    """Changes inside one transaction. The caller has raised the bank's revision and saves the bank's row too."""

    def create_bank(self, state: BankState) -> None:
        """Store a new bank's row."""
        self._connection.execute(insert(banks), bank_columns(state))

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
            self._connection.execute(insert(memories), [memory_columns(bank, row) for row in rows])

    def update(self, bank: str, rows: Sequence[StoredMemory]) -> None:
        """Store changed memories, whole."""
        if rows:
            keys = [{"of_bank": bank, "of_ordinal": row.ordinal} for row in rows]
            values = [memory_columns(bank, row) | key for row, key in zip(rows, keys, strict=True)]
            self._connection.execute(_UPDATE, values)

    def delete(self, bank: str, ordinals: Sequence[int], revision: int) -> None:
        """Delete memories and note that they went, for indexes in other processes."""
        for some in chunks(ordinals):
            self._connection.execute(_DELETE, {"of_bank": bank, "keys": list(some)})
        if ordinals:
            gone = [{"bank": bank, "ordinal": ordinal, "revision": revision} for ordinal in ordinals]
            self._connection.execute(insert(deletions), gone)

    def revector(self, state: BankState, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Replace the vectors of memories by those of the bank's model; one that is gone by now is passed over."""
        same = {"of_bank": state.bank, "new_model": state.model, "new_revision": state.revision}
        rows = [same | {"of_ordinal": ordinal, "new_vector": vector} for ordinal, vector in vectors]
        if rows:
            self._connection.execute(_REVECTOR, rows)

    def count_use(self, bank: str, ids: Sequence[str], moment: datetime) -> int:
        """Count one use of each of the memories; return how many of them there are."""
        return sum(
            self._connection.execute(_USE, {"of_bank": bank, "keys": list(some), "moment": to_text(moment)}).rowcount
            for some in chunks(ids)
        )
