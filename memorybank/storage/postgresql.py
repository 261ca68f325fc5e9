"""The only file that knows PostgreSQL: how it is reached, what its transactions see, what its errors mean.

Readers see one snapshot (`REPEATABLE READ`, read only) and wait for nobody. Writers lock the row of their bank first
(`Writer.bank`) and then read what is newest (`READ COMMITTED`): one at a time for each bank, and none waits for another
bank's. What is committed is on the server's disk. Nothing waits for ever: not for a connection, a lock, a statement, or
a server that does not answer any more. A connection that was lost is replaced at the next call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from memorybank.errors import InvalidInputError, StorageError
from memorybank.storage.dialects import Queue
from memorybank.storage.schema import metadata

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

READING: Mapping[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
WRITING: Mapping[str, Any] = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}
DRIVER_ERROR: type[Exception] = psycopg.Error

BUSY_SECONDS = 30
"""How long a call waits for another one's lock, or for a free connection of this process."""
STATEMENT_SECONDS = 120
"""How long one statement may take. The longest stores the vectors of a large bank anew."""
IDLE_SECONDS = 300
"""How long a transaction may do nothing before the server ends it: its process was stopped, and others wait."""
CONNECTIONS = 8
MORE_CONNECTIONS = 24
"""Opened when all of `CONNECTIONS` are busy, and closed again."""

_CONNECTING: Mapping[str, Any] = {
    "application_name": "memorybank",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_OPTIONS = frozenset(_CONNECTING.keys() - {"client_encoding"}) | {
    *("channel_binding", "gssencmode", "host", "load_balance_hosts", "passfile", "port", "require_auth", "service"),
    *("sslcert", "sslcrl", "sslkey", "sslmode", "sslnegotiation", "sslrootcert", "target_session_attrs"),
}
"""What a URL may ask of the driver. What a transaction is, is this program's business."""
_SETTINGS = (
    f"SELECT set_config('statement_timeout', '{STATEMENT_SECONDS}s', false), "
    f"set_config('lock_timeout', '{BUSY_SECONDS}s', false), "
    f"set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', false), "
    "set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)"
)
_UPGRADE_LOCK = int.from_bytes(b"memories", "big")
_UNSOUND_INDEXES = text(
    "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid AND indrelid IN "
    "(SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)"
)

_AGAIN = "repeat the call"
_REASONS = {
    "08": f"the connection to the server was lost: check that it runs, then {_AGAIN}",
    "25006": "the server takes no writes, it is a copy or set to read only: give the address of the primary",
    "25P03": f"the server ended a transaction that did nothing for {IDLE_SECONDS} seconds: {_AGAIN}",
    "28": "the server does not let this user in: check user and password",
    "3D000": "the server has no database of that name: make it with `createdb`, or correct the name",
    "3F000": "there is no schema for the tables: make one, or set the user's search_path",
    "40": f"another transaction was in the way: {_AGAIN}",
    "42501": "the user may not do that: grant it the right to read, to write and to make tables there",
    "42P01": "a table is gone: restore a copy, or open the bank again to make new tables",
    "42P07": "a table of that name is there already: use another database",
    "53100": f"the server's disk is full: free some space and {_AGAIN}",
    "53200": f"the server has no memory left: {_AGAIN} later",
    "53300": "the server has no connection left: raise its max_connections, or run fewer programs",
    "55P03": f"another program kept it locked for {BUSY_SECONDS} seconds: end that program or {_AGAIN}",
    "57014": f"a statement took longer than {STATEMENT_SECONDS} seconds or was cancelled: {_AGAIN} when the server is "
    "less busy",
    "57P": f"the server is shutting down or starting: {_AGAIN} when it runs",
    "58": "the server cannot read or write its files: see its log, check the disk",
    "XX001": "it is damaged: see the server's log, restore a copy",
    "XX002": "an index is damaged: make it anew with `REINDEX`, see the server's log",
}
"""By SQLSTATE or its beginning, https://www.postgresql.org/docs/current/errcodes-appendix.html."""


def checked(url: URL) -> URL:
    """Return the URL for psycopg 3."""
    if "@" in (url.database or ""):
        raise InvalidInputError(
            "the URL of the database has an @ behind its host: give postgresql://USER:PASSWORD@HOST:PORT/NAME, and "
            "in the password %40 for @, %2F for /, %3A for :, %23 for #"
        )
    if unknown := sorted(url.query.keys() - _OPTIONS):
        raise InvalidInputError(
            f"{called(url.set(query={}))}: the option {unknown[0]!r} is not supported; known are "
            f"{', '.join(sorted(_OPTIONS))}; a password belongs behind the user, as in postgresql://USER:PASSWORD@HOST"
        )
    return url.set(drivername="postgresql+psycopg")


def called(url: URL) -> str:
    """Return the URL without its password."""
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
    return shown.render_as_string()


def missing(url: URL) -> bool:
    """Return False: connecting tells."""
    return False


def queue(url: URL) -> Queue:
    """Return nobody: the server lets wait those that have to."""
    return "nobody"


def make_engine(url: URL) -> Engine:
    """Return an engine for transactions with the options `READING` or `WRITING`."""
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_size=CONNECTIONS,
        max_overflow=MORE_CONNECTIONS,
        pool_timeout=BUSY_SECONDS,
        hide_parameters=True,
        use_native_hstore=False,
        connect_args={key: value for key, value in _CONNECTING.items() if key not in url.query},
    )
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "before_cursor_execute", _in_binary)
    return engine


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction of SQLAlchemy's."""
    with engine.connect() as connection, connection.begin():
        yield connection


def _set_up(connection: Any, _record: object) -> None:
    name, encoding = connection.info.dbname, connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        connection.close()
        raise StorageError(
            f"database {name!r}: its encoding is {encoding}, which cannot hold every text: make one with "
            "`createdb --encoding=UTF8 --template=template0`"
        )
    connection.execute(_SETTINGS)
    connection.commit()


def _in_binary(
    _connection: Connection, cursor: Any, _statement: str, _values: object, context: Any, _many: bool
) -> None:
    """Fetch vectors as they are, where many are fetched: as text they are twice as long."""
    if context is not None and context.execution_options.get("stream_results"):
        cursor.format = psycopg.pq.Format.BINARY


def begin_upgrade(connection: Connection) -> None:
    """Let other processes that make or change the tables wait; give large ones the time that they need."""
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})


def settle(engine: Engine) -> None:
    """Do nothing: a server needs nothing more."""


def explain(error: BaseException, where: str) -> StorageError:
    """Return what a driver's error means, where, and what to do. What was stored is in no message."""
    cause: Any = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None)
    if isinstance(cause, PoolTimeoutError):
        most = CONNECTIONS + MORE_CONNECTIONS
        reason = f"all {most} connections of this program were busy for {BUSY_SECONDS} seconds: {_AGAIN}"
    elif state is not None:
        found = next((_REASONS[state[:size]] for size in (5, 3, 2) if state[:size] in _REASONS), None)
        reason = found or f"{cause.diag.message_primary} (SQLSTATE {state})"
    elif isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        reason = (
            f"the server cannot be reached, or the connection was lost ({' '.join(str(cause).split())}): check that it "
            f"runs, and host, port, user, password and name of the database, then {_AGAIN}"
        )
    else:
        reason = str(cause)
    return StorageError(f"database {where}: {reason}")


def is_discreet(error: BaseException) -> bool:
    """Return whether the driver's text shows nothing of what is stored: with a detail, that may be a whole row."""
    cause = getattr(error, "orig", None) or error
    return not isinstance(cause, psycopg.Error) or cause.diag.message_detail is None


def integrity(connection: Connection) -> list[str]:
    """Return which indexes the server itself calls unsound. It proves its pages whenever one is read."""
    found = connection.execute(_UNSOUND_INDEXES, {"tables": list(metadata.tables)}).scalars()
    return [f"the index {name} is not valid: make it anew with `REINDEX INDEX {name}`" for name in found]
