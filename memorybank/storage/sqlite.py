"""The only file that knows SQLite: how it is opened, how its transactions begin, what its errors mean.

Write-ahead log, so that searches go on while something is written; `synchronous=FULL`, so that what is committed
survives a loss of power; `BEGIN IMMEDIATE`, so that two writers queue at the start and never fail halfway.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from memorybank.errors import StorageError

__all__ = ["BUSY_SECONDS", "explain", "file_of", "integrity", "is_memory", "make_engine", "missing"]

BUSY_SECONDS = 30.0
"""How long a call waits for another program's transaction."""

_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space and repeat the call",
    sqlite3.SQLITE_BUSY: f"another program kept it locked for {BUSY_SECONDS:.0f} seconds: close that program or repeat",
    sqlite3.SQLITE_LOCKED: "another part of this program keeps it locked: repeat the call",
    sqlite3.SQLITE_READONLY: "it is read-only: allow writing to the file and to its folder, or use another file",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database: give another file, or a new one",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore a copy, or save what is left with `sqlite3 FILE .recover`",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check that the folder exists, that it may be written to, and that "
    "this is no folder itself",
    sqlite3.SQLITE_IOERR: "reading or writing failed: check the disk, then repeat the call",
    sqlite3.SQLITE_PERM: "access is denied: allow reading and writing the file and its folder",
    sqlite3.SQLITE_AUTH: "access is denied: allow reading and writing the file and its folder",
}


def is_memory(url: URL) -> bool:
    """Return whether the database lives in this process only."""
    return url.database in (None, "", ":memory:")


def file_of(url: URL) -> Path | None:
    """Return the database's file; None if it is in memory or named by an SQLite URI."""
    if url.database is None or is_memory(url) or url.database.startswith("file:"):
        return None
    return Path(url.database)


def missing(url: URL) -> bool:
    """Return whether the database's file is not there yet."""
    file = file_of(url)
    return file is not None and not file.exists()


def make_engine(url: URL) -> Engine:
    """Return an engine whose transactions read one snapshot, or with the option `immediate` write alone."""
    if is_memory(url):  # one connection for all threads, or each would see a database of its own
        engine = create_engine(
            url, poolclass=StaticPool, connect_args={"check_same_thread": False}, hide_parameters=True
        )
    else:
        engine = create_engine(url, pool_size=8, max_overflow=56, pool_timeout=BUSY_SECONDS, hide_parameters=True)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions of its own
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _write_ahead(connection: Any) -> None:
    """Switch to the write-ahead log. While another process does so too, SQLite says "locked" without waiting."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def explain(error: BaseException, where: str) -> StorageError:
    """Return what a driver's error means, where, and what to do."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    reason = None if code is None else _REASONS.get(code & 0xFF)
    return StorageError(f"database {where}: {reason or cause}")


def integrity(connection: Connection) -> list[str]:
    """Return what SQLite itself finds wrong with the file; nothing when it is sound."""
    found = connection.exec_driver_sql("PRAGMA quick_check").scalars().all()
    return [] if found == ["ok"] else [str(line) for line in found]
