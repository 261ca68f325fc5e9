"""The only file that knows SQLite: how it is opened, how its transactions begin, what its errors mean.

Write-ahead log, so that searches go on while something is written; `synchronous=FULL`, so that what is committed
survives a loss of power; `BEGIN IMMEDIATE`, so that two writers queue at the start and never fail halfway. A file is
switched to the write-ahead log once it has our tables, so one that is refused stays as it was.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from memorybank.errors import InvalidInputError, StorageError
from memorybank.storage.dialects import Queue
from memorybank.storage.direct import Direct
from memorybank.storage.schema import VERSION_TABLE

__all__ = [
    "BUSY_SECONDS",
    "DRIVER_ERROR",
    "READING",
    "WRITING",
    "begin_upgrade",
    "called",
    "checked",
    "explain",
    "integrity",
    "is_discreet",
    "make_engine",
    "missing",
    "queue",
    "settle",
    "transaction",
]

READING: Mapping[str, Any] = {}
WRITING: Mapping[str, Any] = {"immediate": True}
DRIVER_ERROR: type[Exception] = sqlite3.Error

BUSY_SECONDS = 30.0
"""How long a call waits for another program's transaction."""

_BEGINNING = {False: "BEGIN", True: "BEGIN IMMEDIATE"}
"""By whether it writes: how a transaction begins."""
_OPTIONS = frozenset({"cache", "immutable", "mode", "nolock", "uri", "vfs"})
"""What a URL may ask of SQLite itself; the driver's own options are this program's business."""

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


def checked(url: URL) -> URL:
    """Return the URL as it is."""
    if url.host or not _OPTIONS.issuperset(url.query):
        raise InvalidInputError(f"{url!r} is not supported: give a path, or sqlite:///PATH without a host")
    return url


def called(url: URL) -> str:
    """Return the path of the file."""
    return url.database or ":memory:"


def missing(url: URL) -> bool:
    """Return whether the database's file is not there yet; not known of one that is named by an SQLite URI."""
    return not _is_memory(url) and not called(url).startswith("file:") and not Path(called(url)).exists()


def queue(url: URL) -> Queue:
    """Return who waits for whom in this process.

    SQLite lets writers sleep and try again, the unlucky ones for long. In memory there is one connection, and so one
    transaction at a time of any kind.
    """
    return "all" if _is_memory(url) else "writers"


def make_engine(url: URL) -> Engine:
    """Return an engine whose transactions read one snapshot, or with the options `WRITING` write alone."""
    if _is_memory(url):  # one connection for all threads, or each would see a database of its own
        engine = create_engine(
            url, poolclass=StaticPool, connect_args={"check_same_thread": False}, hide_parameters=True
        )
    else:
        engine = create_engine(url, pool_size=8, max_overflow=56, pool_timeout=BUSY_SECONDS, hide_parameters=True)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    _File().watch(engine)
    return engine


class _File:
    """The file that is open, which may be deleted or replaced meanwhile: what is written to it then would be lost."""

    def __init__(self) -> None:
        self._path = ""
        self._identity: tuple[int, int] | None = None

    def watch(self, engine: Engine) -> None:
        """Look before a connection is made, and before a transaction begins and is committed."""
        event.listen(engine, "do_connect", lambda *_: self.verify())
        event.listen(engine, "connect", self.found)
        event.listen(engine, "begin", lambda _: self.verify())
        event.listen(engine, "commit", lambda _: self.verify())

    def found(self, connection: Any, record: Any) -> None:
        """Take note of the file that the first connection has opened, and let each one know who watches it."""
        record.info["file"] = self
        if self._identity is None:
            self._path = connection.execute("PRAGMA database_list").fetchone()[2]
            self._identity = self._now()

    def verify(self) -> None:
        """Raise StorageError if there is another file by now, or none."""
        if self._identity is not None and self._now() != self._identity:
            raise StorageError(
                f"database {self._path}: the file was deleted or replaced while it was open, nothing is read from it "
                "or written to it any more: put it back, or open the bank again"
            )

    def _now(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - before each transaction, and a Path takes longer to make
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _is_memory(url: URL) -> bool:
    return url.database in (None, "", ":memory:")


def _set_up(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions of its own
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)).fetchone():
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
    connection.exec_driver_sql(_BEGINNING[bool(immediate)])


@contextmanager
def transaction(engine: Engine) -> Iterator[Direct]:
    """Begin a transaction of the driver's own; what SQLAlchemy does at its begin and end is done here."""
    with closing(engine.raw_connection()) as pooled:
        connection: Any = pooled.dbapi_connection
        file: _File = pooled.info["file"]
        file.verify()
        connection.execute(_BEGINNING[bool(engine.get_execution_options().get("immediate"))])
        try:
            yield Direct(connection)
            file.verify()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite has ended it by itself where it could not go on
                connection.execute("ROLLBACK")
            raise


def begin_upgrade(connection: Connection) -> None:
    """Do nothing: a transaction that writes is alone."""


def settle(engine: Engine) -> None:
    """Let all connections be made anew, now that the file has our tables."""
    if not isinstance(engine.pool, StaticPool):
        engine.dispose()


def explain(error: BaseException, where: str) -> StorageError:
    """Return what a driver's error means, where, and what to do."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    reason = None if code is None else _REASONS.get(code & 0xFF)
    if not is_discreet(error):
        reason = "it is damaged: a text in it is not UTF-8: restore a copy, or correct it with SQL"
    return StorageError(f"database {where}: {reason or cause}")


def is_discreet(error: BaseException) -> bool:
    """Return whether the driver's text shows nothing of what is stored: of a damaged text, it does."""
    return "Could not decode to UTF-8" not in str(error)


def integrity(connection: Connection) -> list[str]:
    """Return what SQLite itself finds wrong with the file; nothing when it is sound."""
    found = connection.exec_driver_sql("PRAGMA quick_check").scalars().all()
    return [] if found == ["ok"] else [str(line) for line in found]
