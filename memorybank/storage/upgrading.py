"""Which version the database's schema has, and how it becomes the newest.

A new database gets the tables straight from `schema.py` and a note of the version; a test proves that the migrations
lead to the same. Alembic takes a third of a second to import and is asked only when there is something to upgrade.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from memorybank.errors import StorageError
from memorybank.storage import story_schema  # noqa: F401 - its tables belong to `metadata`
from memorybank.storage.schema import HEAD, metadata, version

__all__ = ["current_version", "prepare", "upgrade"]

MIGRATIONS = Path(__file__).parent / "migrations"


def current_version(connection: Connection) -> str | None:
    """Return the schema's version: "" before the first migration, None when this was never a memory bank."""
    if not inspect(connection).has_table(version.name):
        return None
    return connection.execute(select(version.c.version_num)).scalar() or ""


def prepare(connection: Connection, where: str) -> None:
    """Make the schema the newest one, inside the caller's write transaction.

    Raises:
        StorageError: the database was written by a newer version of this program, or by another program.
    """
    found = current_version(connection)
    if found is None:
        _create(connection, where)
    elif found > HEAD:
        raise StorageError(
            f"database {where}: its schema has version {found}, this program knows {HEAD}: install a newer version "
            "of story-context, or use another file"
        )
    elif found < HEAD:
        upgrade(connection)


def _create(connection: Connection, where: str) -> None:
    taken = sorted(set(metadata.tables) & set(inspect(connection).get_table_names()))
    if taken:
        raise StorageError(
            f"database {where}: it belongs to another program, which has a table {taken[0]!r}: use another file"
        )
    metadata.create_all(connection, checkfirst=False)
    version.create(connection)
    connection.execute(insert(version), {"version_num": HEAD})


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations that are missing, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, revision)
