"""Transactions on one database: any number that read a snapshot each, and one at a time that writes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import SQLAlchemyError

from memorybank.errors import StorageError
from memorybank.forking import renew_after_fork
from memorybank.storage.dialects import Dialect, Queue, database_url, dialect_of
from memorybank.storage.keys import KeyTable
from memorybank.storage.reading import Reader
from memorybank.storage.schema import HEAD
from memorybank.storage.upgrading import current_version, prepare
from memorybank.storage.writing import Writer

__all__ = ["Store", "open_store"]


def open_store(place: str | os.PathLike[str] = ":memory:", *, create: bool = True) -> Store:
    """Open a database, and make it when it is not there.

    Args:
        place: path of an SQLite file, `:memory:`, or a URL: `sqlite:///…`, `postgresql://…`.
        create: make the file and its tables when they are not there. A PostgreSQL database itself must be there.

    Raises:
        InvalidInputError: `place` is none of these.
        StorageError: the database cannot be opened, is not there, or is not one of this program.
    """
    url = database_url(place)
    dialect = dialect_of(url)
    url = dialect.checked(url)
    where = dialect.called(url)
    if not create and dialect.missing(url):
        raise StorageError(f"database {where}: there is no such file: check the path, or add a memory to make it")
    store = Store(dialect, dialect.make_engine(url), where, dialect.queue(url))
    try:
        store.prepare(create=create)
    except BaseException:
        store.close()
        raise
    return store


QUEUE_SECONDS = 30.0
"""How long a call waits for the other writers of this process."""


class Store:
    """One database. For any number of threads; other processes may use it at the same time.

    Attributes:
        where: what messages call it.
    """

    def __init__(self, dialect: Dialect, engine: Engine, where: str, queue: Queue) -> None:
        self.where = where
        self._dialect = dialect
        self._engine = engine
        self._reading_engine = engine.execution_options(**dialect.READING)
        self._writing_engine = engine.execution_options(**dialect.WRITING)
        self._queue = queue
        self._make_locks()
        self._closed = False
        renew_after_fork(self)

    def _make_locks(self) -> None:
        lock = threading.RLock()
        self._write_lock = None if self._queue == "nobody" else lock
        self._read_lock: AbstractContextManager[object] = lock if self._queue == "all" else nullcontext()

    def renew(self) -> None:
        """Leave the parent's connections to it after a fork; a database in memory is the child's own copy."""
        self._make_locks()
        if self._queue != "all":
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
            self._dialect.begin_upgrade(connection)
            prepare(connection, self.where)
        self._dialect.settle(self._engine)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Begin a transaction that sees one moment of the database."""
        with self._read_lock, self._translated(), self._dialect.transaction(self._reading_engine) as executor:
            yield Reader(executor)

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Begin a transaction that changes it; on disk when the block ends, undone when it raises."""
        with self._queued(), self._translated(), self._dialect.transaction(self._writing_engine) as executor:
            yield Writer(executor)

    @contextmanager
    def read_tables(self) -> Iterator[tuple[Reader, Connection]]:
        """Begin a transaction like `read`, for what goes beyond single banks (`memorybank.moving`)."""
        with self._reading() as connection:
            yield Reader(connection), connection

    @contextmanager
    def write_tables(self) -> Iterator[tuple[Writer, Connection]]:
        """Begin a transaction like `write`, for what goes beyond single banks."""
        with self._writing() as connection:
            yield Writer(connection), connection

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
            return self._dialect.integrity(connection)

    def close(self) -> None:
        """Close all connections. Closing twice is closing once."""
        self._closed = True
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._read_lock, self._translated(), self._reading_engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._queued(), self._translated(), self._writing_engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _queued(self) -> Iterator[None]:
        """Wait for this process's other writers, as long as one would wait for another process's."""
        lock = self._write_lock
        if lock is None:
            yield
            return
        if not lock.acquire(timeout=QUEUE_SECONDS):
            raise StorageError(
                f"database {self.where}: other calls of this program kept it busy for {QUEUE_SECONDS:.0f} seconds: "
                "repeat the call"
            )
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        if self._closed:
            raise StorageError(f"database {self.where}: it was closed: open the bank again")
        try:
            yield
        except (SQLAlchemyError, self._dialect.DRIVER_ERROR) as error:
            explained = self._dialect.explain(error, self.where)
            raise explained from (error if self._dialect.is_discreet(error) else None)
