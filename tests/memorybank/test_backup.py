"""A database file backed up while it is in use."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memorybank import InvalidInputError, MemoryBank, StorageError
from memorybank.embedding.testing import HashingEmbedder
from memorybank.moving import UnsoundCopyError, back_up, backup
from memorybank.storage import Store, open_store
from tests.support.postgres import PostgresServer

EMBEDDER = HashingEmbedder()


@pytest.fixture
def store(database: Path, open_bank: Callable[..., MemoryBank]) -> Store:
    open_bank().add_many(f"text {n}" for n in range(50))
    open_bank("another").add("x")
    return open_bank()._store


def texts(place: Path) -> list[str]:
    with MemoryBank.open(place, embedder=EMBEDDER, create=False) as bank:
        assert bank.check().ok
        return [memory.text for memory in bank.list()]


def beside(place: Path) -> list[str]:
    return sorted(file.name for file in place.parent.iterdir() if file.name.startswith(place.name))


def test_a_backup_is_whole_and_alone(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "backup.sqlite"
    made = back_up(store, place)
    assert (made.file, made.banks, made.memories, made.bytes) == (str(place), 2, 51, place.stat().st_size)
    assert beside(place) == ["backup.sqlite"]
    assert texts(place) == [f"text {n}" for n in range(50)]


def test_a_backup_is_restored_by_backing_it_up(store: Store, tmp_path: Path) -> None:
    back_up(store, tmp_path / "backup.sqlite")
    kept = open_store(tmp_path / "backup.sqlite", create=False)
    try:
        back_up(kept, tmp_path / "restored.sqlite")
    finally:
        kept.close()
    assert texts(tmp_path / "restored.sqlite") == texts(tmp_path / "backup.sqlite")


WRITER = """
    import sys
    from memorybank import MemoryBank
    from memorybank.embedding.testing import HashingEmbedder

    with MemoryBank.open(sys.argv[1], embedder=HashingEmbedder()) as bank:
        for number in range(100_000):
            bank.add_many([f"{number} one", f"{number} two"])
            print(number, flush=True)
"""


def test_all_that_was_acknowledged_before_is_in_it(
    database: Path, tmp_path: Path, child: Callable[..., subprocess.Popen[str]]
) -> None:
    process = child(WRITER, database)
    assert process.stdout is not None
    for round_ in range(4):
        for _ in range(5):
            acknowledged = int(process.stdout.readline())
        store = open_store(database)
        try:
            back_up(store, tmp_path / f"{round_}.sqlite")
        finally:
            store.close()
        found = texts(tmp_path / f"{round_}.sqlite")
        assert len(found) >= 2 * (acknowledged + 1)
        assert found == [f"{n} {half}" for n in range(len(found) // 2) for half in ("one", "two")], "no half write"
    assert process.poll() is None, "it was writing all the time"


def test_what_is_there_is_replaced_only_by_force(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "backup.sqlite"
    place.write_text("something else", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="is there already"):
        back_up(store, place)
    assert place.read_text(encoding="utf-8") == "something else"
    back_up(store, place, force=True)
    assert len(texts(place)) == 50
    assert beside(place) == ["backup.sqlite"]


def test_one_that_came_meanwhile_is_not_replaced(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "backup.sqlite"
    monkeypatch.setattr(backup, "_to_disk", lambda _: place.write_text("theirs", encoding="utf-8"))
    with pytest.raises(InvalidInputError, match="meanwhile"):
        back_up(store, place)
    assert place.read_text(encoding="utf-8") == "theirs"
    assert beside(place) == ["backup.sqlite"]


def test_a_file_system_without_links(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refused)
    back_up(store, tmp_path / "backup.sqlite")
    assert beside(tmp_path / "backup.sqlite") == ["backup.sqlite"]


def test_a_file_in_use_is_not_replaced_even_by_force(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "other.sqlite"
    with MemoryBank.open(place, embedder=EMBEDDER) as other:
        other.add("x")
        with pytest.raises(InvalidInputError, match=r"other\.sqlite-(wal|shm) is there"):
            back_up(store, place, force=True)
    place.unlink()
    Path(f"{place}-wal").write_bytes(b"left by a crash")
    with pytest.raises(InvalidInputError, match=r"other\.sqlite-wal is there"):
        back_up(store, place)


def test_where_it_cannot_go(store: Store, database: Path, tmp_path: Path) -> None:
    (tmp_path / "link.sqlite").symlink_to(database)
    for place, says in {
        tmp_path / "nowhere" / "x.sqlite": "folder that is there",
        tmp_path: "cannot be a file",
        database: "the database itself",
        tmp_path / "link.sqlite": "the database itself",
    }.items():
        with pytest.raises(InvalidInputError, match=says):
            back_up(store, place, force=True)
    assert len(texts(database)) == 50


def test_what_is_in_memory_is_not_backed_up(tmp_path: Path, bank: MemoryBank) -> None:
    with pytest.raises(InvalidInputError, match="no file"):
        back_up(bank._store, tmp_path / "x.sqlite")


def test_nobody_else_may_read_it_who_may_not_read_the_database(
    store: Store, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    checked = backup._check

    def watched(partial: Path, where: str) -> Any:
        modes.append(stat.S_IMODE(partial.stat().st_mode))
        return checked(partial, where)

    monkeypatch.setattr(backup, "_check", watched)
    for mode in (0o600, 0o640):
        database.chmod(mode)
        back_up(store, tmp_path / f"{mode}.sqlite")
        assert stat.S_IMODE((tmp_path / f"{mode}.sqlite").stat().st_mode) == mode
    assert modes == [0o600, 0o600]


def test_a_damaged_database_replaces_no_good_backup(store: Store, database: Path, tmp_path: Path) -> None:
    place = tmp_path / "backup.sqlite"
    back_up(store, place)
    with store.write_tables() as (_, connection):
        connection.exec_driver_sql("UPDATE memories SET text = 'other' WHERE id = 'm7' AND bank = 'default'")
    with pytest.raises(UnsoundCopyError, match="bank 'default': memory 'm7': its text"):
        back_up(store, place, force=True)
    assert texts(place)[6] == "text 6"
    assert beside(place) == ["backup.sqlite"]


@pytest.mark.parametrize("step", ["_to_disk", "_check"])
def test_whatever_fails_leaves_nothing_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, step, full)
    with pytest.raises(StorageError, match="No space left"):
        back_up(store, tmp_path / "backup.sqlite")
    assert beside(tmp_path / "backup.sqlite") == []


def test_a_full_disk(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def small(place: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(place, *arguments, **options)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(StorageError, match="disk is full"):
        back_up(store, tmp_path / "backup.sqlite")
    assert beside(tmp_path / "backup.sqlite") == []


def test_the_database_stays_as_it_was(store: Store, database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        before = list(connection.iterdump())
    back_up(store, tmp_path / "backup.sqlite")
    with closing(sqlite3.connect(database)) as connection:
        assert list(connection.iterdump()) == before
    with closing(sqlite3.connect(tmp_path / "backup.sqlite")) as connection:
        assert list(connection.iterdump()) == before


def test_a_server_is_backed_up_with_its_own_means(postgres: PostgresServer, tmp_path: Path) -> None:
    store = open_store(postgres.emptied())
    try:
        with pytest.raises(InvalidInputError, match=r"pg_dump.*docs/operators\.md"):
            back_up(store, tmp_path / "backup.sqlite")
    finally:
        store.close()
    assert list(tmp_path.iterdir()) == []
