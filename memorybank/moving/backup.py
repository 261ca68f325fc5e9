"""A copy of an SQLite file while it is in use, by SQLite's own online backup: proven, on disk, whole or not there.

The copy is made beside its place under another name, checked, written through to the disk, and only then given its
name. So whatever happens, the name never stands for half a backup, and the file that had it before is there until the
new one is sound. Restoring is the same call in the other direction.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from memorybank.bank.checking import check_rows
from memorybank.errors import InvalidInputError, StorageError
from memorybank.moving.tables import UnsoundCopyError
from memorybank.storage import Store, open_store
from memorybank.storage.schema import banks
from memorybank.storage.sqlite import explain

__all__ = ["Backup", "back_up"]


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was checked.

    Attributes:
        file: where it is.
        banks: how many it holds.
        memories: how many, of any state, in all banks.
        bytes: size of the file.
    """

    file: str
    banks: int
    memories: int
    bytes: int


def back_up(store: Store, file: str | os.PathLike[str], *, force: bool = False) -> Backup:
    """Copy a database file, as it is at one moment, while others read and write it.

    All that was acknowledged before the call is in the copy.

    Args:
        store: an SQLite file.
        file: where the copy goes; its folder must be there.
        force: replace a file of that name, which must be in use by nobody.

    Raises:
        InvalidInputError: `file` is there, or cannot be a file; or the database is no SQLite file.
        StorageError: copying failed; there is no backup then.
        UnsoundCopyError: the copy is damaged, as the database is; there is no backup then.
    """
    place = _checked_place(store, file, force)
    with _beside(place) as partial:
        _copy(store, partial)
        found = _check(partial, store.where)
        with suppress(OSError):  # a file system without modes
            shutil.copymode(store.where, partial)
        _to_disk(partial)
        size = partial.stat().st_size
        _give_name(partial, place, force)
        _to_disk(place.parent)
    return Backup(str(place), *found, size)


def _checked_place(store: Store, file: str | os.PathLike[str], force: bool) -> Path:
    with store.read_tables() as (_, connection):
        engine = connection.dialect.name
    if engine != "sqlite":
        raise InvalidInputError(
            f"{store.where} is backed up by its server: with `pg_dump`, or continuously with `pg_basebackup` and an "
            "archive of its log; docs/operators.md says how"
        )
    if not Path(store.where).is_file():
        raise InvalidInputError(f"{store.where} is no file: only a database file can be backed up")
    place = Path(file)
    if not place.name or place.is_dir() or not place.parent.is_dir():
        raise InvalidInputError(f"{place} cannot be a file: give a file in a folder that is there")
    if place.exists() and place.samefile(store.where):
        raise InvalidInputError(f"{place} is the database itself: give another file")
    if place.exists() and not force:
        raise InvalidInputError(f"{place} is there already: give another name, or --force to replace it")
    used = [name for suffix in ("-wal", "-shm", "-journal") if (name := Path(f"{place}{suffix}")).exists()]
    if used:
        raise InvalidInputError(
            f"{used[0]} is there, so {place} is in use, or its last program has crashed: end the programs that have it "
            "open, or move both files away"
        )
    return place


@contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """Give a name beside a file's place, and leave nothing under it."""
    partial = place.with_name(f"{place.name[:200]}.{secrets.token_hex(6)}.partial")
    try:
        yield partial
    except OSError as error:
        raise StorageError(
            f"backup {place}: {error.strerror or error}: free space or check the disk; none was made"
        ) from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{partial}{suffix}").unlink(missing_ok=True)


def _copy(store: Store, partial: Path) -> None:
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # from the start, nobody else may read it
    with store.read_tables() as (_, connection), closing(sqlite3.connect(partial)) as target:
        source: Any = connection.connection.dbapi_connection
        try:
            source.backup(target)  # all pages in one step, so that no writer can make it begin again
        except sqlite3.Error as error:
            raise explain(error, str(partial)) from error


def _check(partial: Path, where: str) -> tuple[int, int]:
    """Return the numbers of banks and memories of a copy that is sound."""
    store = open_store(partial, create=False)
    try:
        problems = store.integrity()
        memories = 0
        with store.read_tables() as (reader, connection):
            names = list(connection.execute(select(banks.c.bank)).scalars())
            for name in names:
                report = check_rows(reader, name)
                memories += report.memories
                problems += (f"bank {name!r}: {line}" for line in report.problems)
    finally:
        store.close()
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise UnsoundCopyError(
            f"{where} is damaged, so no backup was made: {problems[0]}{more}; `memorybank check` says more of each bank"
        )
    return len(names), memories


def _to_disk(path: Path) -> None:
    """Return when a file, or the names in a folder, would survive a loss of power."""
    if path.is_dir() and os.name == "nt":
        return  # a folder cannot be opened there
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give_name(partial: Path, place: Path, force: bool) -> None:
    if force:
        partial.replace(place)
        return
    try:
        os.link(partial, place)  # which, other than renaming, replaces nothing that came meanwhile
    except FileExistsError:
        raise InvalidInputError(f"{place} was made by somebody else meanwhile: give another name") from None
    except OSError:  # a file system without links
        partial.rename(place)
