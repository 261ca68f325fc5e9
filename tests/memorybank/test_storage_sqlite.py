"""What holds for SQLite alone: its files, its settings, and what it says when it cannot."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import make_url

from memorybank import MemoryBank
from memorybank.errors import StorageError
from memorybank.storage import open_store, sqlite
from memorybank.storage.upgrading import upgrade

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
Opener = Callable[..., MemoryBank]


def migrated(place: str) -> Any:
    engine = sqlite.make_engine(make_url(place)).execution_options(immediate=True)
    with engine.begin() as connection:
        upgrade(connection)
    return engine


def test_a_new_database_has_the_schema_that_the_migrations_lead_to(tmp_path: Path) -> None:
    open_store(tmp_path / "new.sqlite").close()
    migrated(f"sqlite:///{tmp_path}/old.sqlite").dispose()
    new, old = (sqlite3.connect(tmp_path / name) for name in ("new.sqlite", "old.sqlite"))
    assert structure(new) == structure(old)
    assert len(structure(new)) > 8
    new.close()
    old.close()


def structure(connection: sqlite3.Connection) -> dict[str, Any]:
    """Each table's columns in their order, indexes, foreign keys and constraints: a column that was added stands last
    in the text of its table, behind the constraints, so the text itself says less."""
    found: dict[str, Any] = {}
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        asked = ("table_info", "index_list", "foreign_key_list")
        columns, indexes, keys = (connection.execute(f"PRAGMA {name}({table})").fetchall() for name in asked)
        parts = {row[1]: connection.execute(f"PRAGMA index_info({row[1]})").fetchall() for row in indexes}
        found[table] = columns, sorted(row[1:] for row in indexes), parts, keys
    return found


def test_sqlite_is_set_to_lose_nothing(database: Path) -> None:
    store = open_store(database)
    with store._reading() as connection:
        values = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
    store.close()


class TestMessages:
    """Each failure names the file and says what to do, and nothing was changed."""

    @pytest.fixture
    def filled(self, database: Path, open_bank: Opener) -> Iterator[MemoryBank]:
        bank = open_bank()
        bank.add("The gate opens.")
        yield bank
        assert [memory.text for memory in bank.list()] == ["The gate opens."]

    def test_no_database(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"typo\.sqlite: there is no such file"):
            open_store(tmp_path / "typo.sqlite", create=False)
        assert list(tmp_path.iterdir()) == []

    def test_an_empty_file_is_no_bank_unless_it_may_become_one(self, database: Path) -> None:
        database.touch()
        with pytest.raises(StorageError, match="no memory bank in it"):
            open_store(database, create=False)
        open_store(database).close()

    @pytest.mark.parametrize("place", ["missing/memories.sqlite", "."])
    def test_no_folder_or_only_a_folder(self, tmp_path: Path, place: str) -> None:
        with pytest.raises(StorageError, match="cannot be opened: check that the folder exists"):
            open_store(tmp_path / place)

    def test_not_a_database(self, database: Path) -> None:
        database.write_bytes(b"Dear diary, " * 500)
        with pytest.raises(StorageError, match=r"memories\.sqlite: it is not an SQLite database"):
            open_store(database)
        assert database.read_bytes() == b"Dear diary, " * 500

    def test_damaged(self, database: Path, open_bank: Opener) -> None:
        with open_bank() as bank:
            bank.add_many(f"memory {number}" for number in range(200))
        size = database.stat().st_size
        with database.open("r+b") as file:
            file.seek(4096 * 2)
            file.write(b"\xff" * (size - 4096 * 3))
        with pytest.raises(StorageError, match="damaged"), open_bank() as bank:
            bank.list()

    def test_read_only(self, database: Path, filled: MemoryBank, open_bank: Opener) -> None:
        reader = open_bank(place=f"sqlite:///file:{database}?mode=ro&uri=true")
        assert reader.search("gate")[0].memory.text == "The gate opens."
        with pytest.raises(StorageError, match="it is read-only: allow writing"):
            reader.add("The gate closes.")

    def test_locked(self, filled: MemoryBank, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        other = sqlite3.connect(database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with filled._store._reading() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 50")
        with pytest.raises(StorageError, match="another program kept it locked"):
            filled.add("The gate closes.")
        assert filled.search("gate")  # reading goes on
        other.execute("ROLLBACK")
        other.close()

    def test_disk_full(self, filled: MemoryBank) -> None:
        with filled._store._reading() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StorageError, match="the disk is full: free some space and repeat the call"):
            filled.add_many(f"{number} " + "long " * 2000 for number in range(5))
        assert filled.check().ok
        assert filled.search("gate")[0].memory.text == "The gate opens."


@pytest.mark.parametrize("place", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_in_memory_each_bank_is_one_of_its_own(place: str, embedder: Any) -> None:
    with MemoryBank.open(place, embedder=embedder) as one, MemoryBank.open(place, embedder=embedder) as other:
        one.add("x")
        assert (one.count(), other.count()) == (1, 0)


def test_a_url_and_a_path_are_the_same_file(database: Path, embedder: Any) -> None:
    with MemoryBank.open(f"sqlite:///{database}", embedder=embedder) as bank:
        bank.add("x")
    with MemoryBank.open(str(database), embedder=embedder) as bank:
        assert bank.count() == 1


def test_a_copy_of_the_closed_file_is_a_backup(database: Path, tmp_path: Path, open_bank: Opener) -> None:
    with open_bank() as bank:
        bank.add("The gate opens.")
    shutil.copy(database, tmp_path / "copy.sqlite")
    copy = open_bank(place=tmp_path / "copy.sqlite")
    assert copy.search("gate")[0].similarity > 0.3
    assert copy.check().ok


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_refused_stays_as_it_was(database: Path, create: bool) -> None:
    """Byte by byte: the switch to the write-ahead log would be a change of the file of another program."""
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE memories (note)")
    connection.commit()
    connection.close()
    before = database.read_bytes()
    with pytest.raises(StorageError, match=r"belongs to another program|no memory bank in it"):
        open_store(database, create=create)
    assert database.read_bytes() == before
    assert [file.name for file in database.parent.iterdir()] == [database.name]


class TestFileThatGoesAway:
    """What is written to a file that nobody can find any more would be lost without a word."""

    @pytest.fixture
    def filled(self, open_bank: Opener) -> MemoryBank:
        bank = open_bank()
        bank.add("The gate opens.")
        return bank

    def refused(self, bank: MemoryBank) -> None:
        for call in (lambda: bank.add("A wolf howls."), lambda: bank.mark_used(["m1"]), bank.list, bank.check):
            with pytest.raises(
                StorageError, match=r"memories\.sqlite: the file was deleted or replaced while it was open"
            ):
                call()

    def test_deleted(self, database: Path, filled: MemoryBank) -> None:
        database.unlink()
        self.refused(filled)
        assert not database.exists()

    def test_replaced(self, database: Path, tmp_path: Path, filled: MemoryBank, open_bank: Opener) -> None:
        other = open_bank(place=tmp_path / "other.sqlite")
        other.add("Rain falls.")
        other.close()
        theirs = (tmp_path / "other.sqlite").read_bytes()
        (tmp_path / "other.sqlite").rename(database)
        self.refused(filled)
        assert database.read_bytes() == theirs, "nothing was written to the other file"

    def test_put_back(self, database: Path, filled: MemoryBank) -> None:
        database.rename(database.with_name("away"))
        self.refused(filled)
        database.with_name("away").rename(database)
        filled.add("A wolf howls.")
        assert filled.count() == 2

    def test_deleted_in_the_middle_of_a_write(self, database: Path, filled: MemoryBank) -> None:
        def write() -> None:
            with filled._store.write() as writer:
                writer.delete("default", [1], 2)
                database.rename(database.with_name("away"))

        with pytest.raises(StorageError, match="deleted or replaced"):
            write()
        database.with_name("away").rename(database)
        assert filled.count() == 1

    def test_new_connections_do_not_make_the_file_anew(self, database: Path, filled: MemoryBank) -> None:
        database.unlink()
        filled._store._engine.dispose()
        self.refused(filled)
        assert not database.exists()

    def test_the_look_takes_no_time(self, filled: MemoryBank) -> None:
        """Microseconds, where a write takes a thousand: a bound that no machine is too busy for."""
        look = sqlite._File()
        with filled._store._reading() as connection:
            look.found(connection.connection.driver_connection, SimpleNamespace(info={}))
        started = time.perf_counter()
        for _ in range(1_000):
            look.verify()
        assert time.perf_counter() - started < 0.5


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ("text = x'ff'", "text is of type bytes"),
        ("actions = 5.5", "actions is not JSON|actions is no list"),
        ("metadata = x'7b7d'", "metadata is of type bytes"),
        ("created = x'00'", "created is of type bytes"),
        ("use_count = 'often'", "use_count is of type str"),
        ("revision = 1.5", "revision is of type float"),
        ("vector = 'abc'", "vector is of type str"),
        ("vector = 5", "vector is of type int"),
        ("id = x'00'", "id is of type bytes"),
    ],
)
def test_a_value_of_another_type_is_named(database: Path, open_bank: Opener, changes: str, says: str) -> None:
    """SQLite keeps whatever it is given, in any column."""
    bank = open_bank()
    bank.add_many(["The gate opens.", "A wolf howls."])
    connection = sqlite3.connect(database)
    connection.execute(f"UPDATE memories SET {changes} WHERE ordinal = 2")  # noqa: S608
    connection.commit()
    connection.close()
    named = rf"bank 'default', memory .*: its row in the database is damaged \(({says})"
    with pytest.raises(StorageError, match=named):
        bank.list()
    report = open_bank().check()
    assert report.memories == 2
    assert any(re.search(named, line) for line in report.problems), report
    assert bank.get("m1").text == "The gate opens."


def test_a_text_that_is_not_utf_8_is_reported_and_not_shown(database: Path, open_bank: Opener) -> None:
    bank = open_bank()
    bank.add("The gate opens.")
    connection = sqlite3.connect(database)
    connection.execute("UPDATE memories SET text = CAST(x'736563726574ff' AS TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(StorageError, match="a text in it is not UTF-8") as caught:
        bank.list()
    assert "secret" not in str(caught.value)
    assert any("not UTF-8" in line for line in bank.check().problems)
