"""All rows of a bank, whatever table they are in, and a checksum that is the same wherever they are.

Rows are taken as SQLAlchemy gives them, not as memories: a copy must be exact in what this version of the program does
not look at, too. The checksum is the sum of the hashes of all rows, so it does not depend on their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, select, tuple_

from memorybank.errors import MemoryBankError
from memorybank.storage.schema import metadata

__all__ = ["BANK_TABLES", "Checksum", "UnsoundCopyError", "checksum_of", "pages"]

PAGE = 1_000
"""Rows held in memory at once: some megabytes, with their vectors."""

BANK_TABLES: Sequence[Table] = [table for table in metadata.sorted_tables if "bank" in table.c]
"""The tables that hold banks, each behind those that it refers to."""


class UnsoundCopyError(MemoryBankError):
    """A copy is not what it must be, and was not kept: the original, a disk or this program is at fault."""


@dataclass(slots=True)
class Checksum:
    """What a bank's rows come to.

    Attributes:
        rows: how many there are.
        total: the sum of their hashes.
    """

    rows: int = 0
    total: int = 0

    def add(self, table: Table, rows: Sequence[Row[Any]]) -> None:
        """Take in rows of a table."""
        for row in rows:
            self.total = (self.total + _hashed(table.name, row)) % 2**256
        self.rows += len(rows)

    def __str__(self) -> str:
        return f"{self.total:064x}"


def pages(connection: Connection, table: Table, bank: str) -> Iterator[Sequence[Row[Any]]]:
    """Return a bank's rows in a table, in the order of their key, some at a time."""
    key = [column for column in table.primary_key if column.name != "bank"]
    places = [list(table.c).index(column) for column in key]
    statement = select(table).where(table.c.bank == bank).order_by(*key).limit(PAGE)
    after = statement
    while rows := connection.execute(after).all():
        yield rows
        if not key or len(rows) < PAGE:
            return
        after = statement.where(tuple_(*key) > tuple_(*(rows[-1][place] for place in places)))


def checksum_of(connection: Connection, bank: str) -> Checksum:
    """Return the checksum of a bank as it is stored."""
    found = Checksum()
    for table in BANK_TABLES:
        for rows in pages(connection, table, bank):
            found.add(table, rows)
    return found


def _hashed(table: str, row: Row[Any]) -> int:
    """Return the hash of a row. Each value goes in with its kind and its length, so that none runs into the next."""
    hashed = hashlib.sha256(table.encode())
    for value in row:
        kind, written = _written(value)
        hashed.update(b"%s%d:" % (kind, len(written)))
        hashed.update(written)
    return int.from_bytes(hashed.digest(), "big")


def _written(value: object) -> tuple[bytes, bytes]:
    if isinstance(value, str):
        return b"s", value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | memoryview):
        return b"b", bytes(value)
    if value is None or isinstance(value, bool | int | float):
        return b"v", repr(value).encode()
    raise TypeError(f"no checksum is defined for {type(value).__name__}")
