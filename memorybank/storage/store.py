"""Transactions on one database: any number that read a snapshot each, and one at a time that writes."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from sqlalchemy import URL, Connection, Engine, make_url, select
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from memorybank.errors import InvalidInputError, StorageError
from memorybank.forking import renew_after_fork
from memorybank.storage import sqlite
from memorybank.storage.keys import KeyTable
from memorybank.storage.reading import Reader
from memorybank.storage.schema import HEAD
from memorybank.storage.upgrading import current_version, prepare
from memorybank.storage.writing import Writer

__all__ = ["Store", "open_store"]


_OPTIONS = frozenset({"cache", "immutable", "mode", "nolock", "uri", "vfs"})
"""What a URL may ask of SQLite itself; the driver's own options are this program's business."""


def open_store(place: str | os.PathLike[str] = ":memory:", *, create: bool = True) -> Store:
    """Open a database, and make it when it is not there.

    Args:
        place: path of an SQLite file, `:memory:`, or a URL `sqlite:///…`.
        create: make the file and its tables when they are not there.

    Raises:
        InvalidInputError: `place` is none of these.
        StorageError: the database cannot be opened, is not there, or is not one of this program.
    """
    url = _url(place)
    where = str(sqlite.file_of(url) or url.database or ":memory:")
    if not create and sqlite.missing(url):
        raise StorageError(f"database {where}: there is no such file: check the path, or add a memory to make it")
    store = Store(sqlite.make_engine(url), where, alone=sqlite.is_memory(url))
    try:
        store.prepare(create=create)
    except BaseException:
        store.close()
        raise
    return store


def _url(place: str | os.PathLike[str]) -> URL:
    if not isinstance(place, str | os.PathLike) or not os.fspath(place) or "\0" in str(place):
        raise InvalidInputError(f"the database must be a path or a URL, not {place!r}")
    text = os.fspath(place)
    if "://" not in text:
        return URL.create("sqlite", database=None if text == ":memory:" else text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise InvalidInputError(f"{text!r} is not the URL of a database: {error}") from None
    if url.drivername not in ("sqlite", "sqlite+pysqlite") or url.host or not _OPTIONS.issuperset(url.query):
        raise InvalidInputError(f"{text!r} is not supported: give a path, or sqlite:///PATH without a host")
    return url


class Store:
    """One database. For any number of threads; other processes may use it at the same time.

    Attributes:
        where: what messages call it.
    """

    def __init__(self, engine: Engine, where: str, *, alone: bool) -> None:
        self.where = where
        self._engine = engine
        self._writing_engine = engine.execution_options(immediate=True)
        # Threads queue here and not in SQLite, which would let them sleep and try again, the unlucky ones for long.
        self._alone = alone
        self._make_locks()
        self._closed = False
        renew_after_fork(self)

    def _make_locks(self) -> None:
        self._write_lock = threading.RLock()
        # In memory there is one connection, and so one transaction at a time of any kind.
        self._read_lock: AbstractContextManager[object] = self._write_lock if self._alone else nullcontext()

    def renew(self) -> None:
        """Leave the parent's connections to it after a fork; a database in memory is the child's own copy."""
        self._make_locks()
        if not self._alone:
            self._engine.dispose(close=False)

    def __repr__(self) -> str:
        return f"Store(where={self.where!r})"

    def prepare(self, *, create: bool) -> None:
        """Bring the schema to the newest version; see `upgrading.prepare`."""
        with self._reading() as connection:
            found = current_version(connection)
        if found == HEAD:
            return
        if found is None and not create:
            raise StorageError(f"database {self.where}: there is no memory bank in it: check the path")
        with self._writing() as connection:
            prepare(connection, self.where)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Begin a transaction that sees one moment of the database."""
        with self._reading() as connection:
            yield Reader(connection)

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Begin a transaction that changes it; on disk when the block ends, undone when it raises."""
        with self._writing() as connection:
            yield Writer(connection)

    @contextmanager
    def read_keys(self) -> Iterator[KeyTable]:
        """Begin a transaction that sees the API keys of one moment."""
        with self._reading() as connection:
            yield KeyTable(connection)

    @contextmanager
    def write_keys(self) -> Iterator[KeyTable]:
        """Begin a transaction that changes API keys."""
        with self._writing() as connection:
            yield KeyTable(connection)

    def ping(self) -> None:
        """Ask the database anything at all; raise `StorageError` if it does not answer."""
        with self._reading() as connection:
            connection.execute(select(1))

    def integrity(self) -> list[str]:
        """Return what the database's own check finds wrong; nothing when it is sound."""
        with self._reading() as connection:
            return sqlite.integrity(connection)

    def close(self) -> None:
        """Close all connections. Closing twice is closing once."""
        self._closed = True
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._read_lock, self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._write_lock, self._translated(), self._writing_engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        if self._closed:
            raise StorageError(f"database {self.where}: it was closed: open the bank again")
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise sqlite.explain(error, self.where) from error
