"""What a database engine has to offer here, and which one a URL asks for. All else is the same for both of them.

`sqlite.py` and `postgresql.py` are modules of the form `Dialect`; the second loads its driver, so it is imported when a
URL asks for it. What a message shows of a URL is free of its password.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError

from memorybank.errors import InvalidInputError, StorageError
from memorybank.storage.direct import Executor

__all__ = ["Dialect", "Queue", "database_url", "dialect_of"]

Queue: TypeAlias = Literal["all", "writers", "nobody"]
"""Which threads of this process wait for each other: all transactions, those that write, or none."""


class Dialect(Protocol):
    """One database engine.

    Attributes:
        READING: execution options of transactions that see one moment.
        WRITING: execution options of transactions that change something.
        DRIVER_ERROR: what the driver raises where SQLAlchemy does not translate it.
    """

    READING: Mapping[str, Any]
    WRITING: Mapping[str, Any]
    DRIVER_ERROR: type[Exception]

    def checked(self, url: URL) -> URL:
        """Return the URL as SQLAlchemy needs it; raise InvalidInputError for what is not supported."""
        ...

    def called(self, url: URL) -> str:
        """Return what messages call the database: no password in it."""
        ...

    def missing(self, url: URL) -> bool:
        """Return whether the database is certainly not there yet."""
        ...

    def queue(self, url: URL) -> Queue:
        """Return who has to wait in this process, because the engine lets them wait less well."""
        ...

    def make_engine(self, url: URL) -> Engine:
        """Return the source of connections."""
        ...

    def transaction(self, engine: Engine) -> AbstractContextManager[Executor]:
        """Begin a transaction, of the kind that the engine's options ask for; it is undone when the block raises."""
        ...

    def begin_upgrade(self, connection: Connection) -> None:
        """Hold off others that would make or change the tables too, until the transaction ends."""
        ...

    def settle(self, engine: Engine) -> None:
        """Do what can be done only once the tables are there."""
        ...

    def explain(self, error: BaseException, where: str) -> StorageError:
        """Return what a driver's error means, where, and what to do."""
        ...

    def is_discreet(self, error: BaseException) -> bool:
        """Return whether the driver's own text holds nothing of what is stored, so that it may stand in a log."""
        ...

    def integrity(self, connection: Connection) -> list[str]:
        """Return what the engine itself finds wrong; nothing when it is sound."""
        ...


def database_url(place: str | os.PathLike[str]) -> URL:
    """Return the URL of a path, of `:memory:` or of a URL.

    Raises:
        InvalidInputError: it is none of these.
    """
    if not isinstance(place, str | os.PathLike) or not os.fspath(place) or "\0" in str(place):
        raise InvalidInputError(f"the database must be a path or a URL, not {place!r}")
    text = os.fspath(place)
    if "://" not in text:
        return URL.create("sqlite", database=None if text == ":memory:" else text)
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        scheme, _, rest = text.partition("://")
        shown = f"{scheme}://…@{rest.rpartition('@')[2]}" if "@" in rest else text
        raise InvalidInputError(
            f"{shown!r} is not the URL of a database: give sqlite:///PATH or postgresql://USER@HOST:PORT/NAME; "
            "what is no letter or digit in a password is written as %40 and the like"
        ) from None


def dialect_of(url: URL) -> Dialect:
    """Return the engine that a URL asks for.

    Raises:
        InvalidInputError: none of the two.
        StorageError: its driver is not installed.
    """
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        from memorybank.storage import sqlite

        return sqlite
    if url.drivername in ("postgresql", "postgresql+psycopg", "postgres"):
        try:
            from memorybank.storage import postgresql
        except ImportError as error:
            raise StorageError(
                f"a PostgreSQL database needs the driver psycopg, which cannot be loaded ({error}): "
                "pip install 'story-context[postgresql]'"
            ) from error
        return postgresql
    raise InvalidInputError(
        f"{url.drivername}:// is not supported: give the path of a file, sqlite:///PATH or postgresql://HOST/NAME"
    )
