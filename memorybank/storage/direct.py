"""Statements of SQLAlchemy, run by SQLite's own driver: it takes a tenth of the time of SQLAlchemy's execution.

A search of a bank is four statements of some microseconds each; run by SQLAlchemy they took half of its time. It still
says what SQL a statement is, once; only the values go past it. That is right for SQLite alone, whose column types are
all plain (`column_types.py`): nothing has to be converted on the way. PostgreSQL's are not, and there the network takes
the time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from sqlalchemy import Executable
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.sql.compiler import SQLCompiler

__all__ = ["Direct", "Executor", "Found", "Values"]

Values: TypeAlias = Mapping[str, Any]
"""Values of a statement's parameters, by name."""


class Executor(Protocol):
    """What runs statements inside a transaction: SQLAlchemy's `Connection`, or `Direct`."""

    @property
    def dialect(self) -> Any:
        """The engine, whose `name` decides between statements."""

    def execute(self, statement: Any, values: Any = None, /) -> Any:
        """Run a statement, or the same one for each of a list of values."""


class Direct:
    """One transaction of SQLite's driver, for the statements of `Reader`, `Writer` and `StoryTable`.

    Args:
        connection: the driver's, in a transaction.
    """

    dialect = sqlite.dialect()

    def __init__(self, connection: DBAPIConnection) -> None:
        self._connection = connection

    def execute(self, statement: Executable, values: Values | Sequence[Values] | None = None, /) -> Found:
        """Run a statement; with a list of values, once for each of them.

        Raises:
            sqlite3.Error: it failed.
        """
        text, plan = _compiled(statement)
        cursor: Any = self._connection.cursor()
        if isinstance(values, Sequence):
            return Found(cursor.executemany(text, map(plan.arguments, values)))
        return Found(cursor.execute(text, plan.arguments(values or {})))


class Found:
    """The rows that a statement has found, as tuples; each can be read once.

    Attributes:
        cursor: the driver's.
    """

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self.cursor = cursor

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cursor)

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""
        return self.cursor.rowcount

    def fetchone(self) -> Any:
        """Return the next row, None at the end."""
        return self.cursor.fetchone()

    def first(self) -> Any:
        """Return the first row, None if there is none, and let the others be."""
        row = self.cursor.fetchone()
        self.cursor.close()
        return row

    def all(self) -> list[Any]:
        """Return all rows."""
        return self.cursor.fetchall()

    def scalar(self) -> Any:
        """Return the first value of the first row, None if there is none."""
        row = self.first()
        return None if row is None else row[0]

    def scalars(self) -> Iterator[Any]:
        """Return the first value of each row."""
        return (row[0] for row in self.cursor)

    def close(self) -> None:
        """Let the rows be that were not read."""
        self.cursor.close()


class _Plan:
    """In which order the driver wants a statement's values, and those that the statement brings along."""

    def __init__(self, compiled: SQLCompiler) -> None:
        self._order = tuple(compiled.positiontup or ())
        self._lists = frozenset(name for name, bound in compiled.binds.items() if bound.expanding)
        self._own = {name: compiled.binds[name].value for name in self._order if not compiled.binds[name].required}

    def arguments(self, values: Values) -> list[Any]:
        known = {**self._own, **values} if self._own else values
        if not self._lists:
            return [known[name] for name in self._order]
        return [json.dumps(list(known[name])) if name in self._lists else known[name] for name in self._order]


@lru_cache(maxsize=512)
def _compiled(statement: Any) -> tuple[str, _Plan]:
    """Return a statement's SQL and what it wants. Statements are the same as long as they are the same object.

    A list of keys goes in as one value, as JSON: so the SQL is the same however many there are.
    """
    compiled: SQLCompiler = statement.compile(dialect=Direct.dialect)
    text = str(compiled)
    for name, bound in compiled.binds.items():
        if bound.expanding:
            text = text.replace(f"(__[POSTCOMPILE_{name}])", "(SELECT value FROM json_each(?))")
    return text, _Plan(compiled)
