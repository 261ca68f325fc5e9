"""The database: its schema and versions, its transactions, and what it says when it cannot."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from memorybank import MemoryBank
from memorybank.errors import InvalidInputError, StorageError
from memorybank.storage import open_store, sqlite
from memorybank.storage.schema import HEAD
from memorybank.storage.upgrading import MIGRATIONS, current_version, upgrade

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
    assert new.execute(SCHEMA).fetchall() == old.execute(SCHEMA).fetchall()
    assert len(new.execute(SCHEMA).fetchall()) > 8
    new.close()
    old.close()


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = sorted(file.name[:4] for file in (MIGRATIONS / "versions").glob("[0-9]*.py"))
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
    assert numbers[-1] == HEAD


def test_an_older_database_is_upgraded_on_opening(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE memorybank_schema (version_num VARCHAR(32) NOT NULL)")
    connection.commit()
    connection.close()
    store = open_store(database)
    with store._reading() as reading:
        assert current_version(reading) == HEAD
    store.close()


def test_a_failed_upgrade_leaves_the_database_as_it_was(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE memorybank_schema (version_num VARCHAR(32) NOT NULL)")
    connection.execute("CREATE TABLE deletions (x)")  # the last table of the migration is in the way
    connection.commit()
    before = connection.execute(SCHEMA).fetchall()
    with pytest.raises(StorageError, match="already exists"):
        open_store(database)
    assert connection.execute(SCHEMA).fetchall() == before
    connection.close()


def test_a_newer_database_is_refused(database: Path) -> None:
    open_store(database).close()
    connection = sqlite3.connect(database)
    connection.execute("UPDATE memorybank_schema SET version_num = '0999'")
    connection.commit()
    connection.close()
    with pytest.raises(StorageError, match=r"version 0999, this program knows 0002: install a newer"):
        open_store(database)


def test_the_database_of_another_program_is_not_touched(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE memories (note)")
    connection.commit()
    with pytest.raises(StorageError, match=r"belongs to another program.*'memories'"):
        open_store(database)
    assert len(connection.execute(SCHEMA).fetchall()) == 1
    connection.close()


def test_a_bank_may_live_beside_other_tables(database: Path, open_bank: Opener) -> None:
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE saves (game)")
    connection.execute("INSERT INTO saves VALUES ('one')")
    connection.commit()
    open_bank().add("The gate opens.")
    assert connection.execute("SELECT * FROM saves").fetchall() == [("one",)]
    connection.close()


def test_sqlite_is_set_to_lose_nothing(database: Path) -> None:
    store = open_store(database)
    with store._reading() as connection:
        values = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
    store.close()


def test_vectors_and_texts_are_written_as_documented(database: Path, open_bank: Opener, embedder: Any) -> None:
    open_bank().add("The gate\0opens. 門\n", id="g", actions=["a1"], metadata={"k": "é"})
    connection = sqlite3.connect(database)
    row = connection.execute("SELECT text, text_hash, actions, metadata, created, vector FROM memories").fetchone()
    expected = embedder.embed(["The gate\0opens. 門"])[0]
    assert row[0] == "The gate\0opens. 門"
    assert row[1] == __import__("hashlib").sha256(row[0].encode()).hexdigest()
    assert row[2:5] == ('["a1"]', '{"k": "\\u00e9"}', "2026-01-01T00:00:01.000000+00:00")
    assert row[5] == expected.astype("<f4").tobytes()
    connection.close()


def test_every_primary_and_foreign_key_of_a_banks_rows_begins_with_the_bank() -> None:
    from memorybank.storage.schema import metadata

    assert {name for name, table in metadata.tables.items() if "bank" not in table.c} == {"api_keys"}
    for table in (table for name, table in metadata.tables.items() if name != "api_keys"):
        assert next(iter(table.primary_key.columns)).name == "bank"
        assert all(next(iter(key.columns)).name == "bank" for key in table.foreign_key_constraints)
        assert all(next(iter(index.columns)).name == "bank" for index in table.indexes)


def test_what_raises_inside_a_transaction_undoes_it(database: Path) -> None:
    store = open_store(database)

    def fails() -> None:
        with store.write() as writer:
            writer._connection.exec_driver_sql("DROP TABLE deletions")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with store.read() as reader:
        assert reader.changed("default", 0) == ([], [])
    store.close()


def test_a_reader_sees_one_moment_while_others_write(open_bank: Opener) -> None:
    bank = open_bank()
    bank.add("one")
    with bank._store.read() as reader:
        assert reader.counts("default") == {"active": 1}
        open_bank().add("two")
        assert reader.counts("default") == {"active": 1}
    assert bank.count() == 2


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

    def test_closed(self, database: Path, embedder: Any) -> None:
        bank = MemoryBank.open(database, embedder=embedder)
        bank.close()
        bank.close()
        for call in (bank.list, lambda: bank.add("x"), lambda: bank.search("x"), bank.check):
            with pytest.raises(StorageError, match="was closed"):
                call()

    @pytest.mark.parametrize("place", ["", None, 3, "mysql://x/y", "nonsense://", "postgresql+psycopg://h/db", "a\0b"])
    def test_no_place(self, place: Any) -> None:
        with pytest.raises(InvalidInputError):
            open_store(place)

    def test_messages_never_show_what_was_stored(self, filled: MemoryBank) -> None:
        with filled._store._reading() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
        with pytest.raises(StorageError) as caught:
            filled.add("a secret of the player")
        shown: BaseException | None = caught.value
        while shown is not None:
            assert "secret" not in str(shown)
            shown = shown.__cause__
        with filled._store._reading() as connection:
            connection.exec_driver_sql("PRAGMA query_only = OFF")


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


def test_three_processes_open_a_new_database_at_once(
    database: Path, child: Callable[..., subprocess.Popen[str]]
) -> None:
    program = """
        import sys
        from memorybank.storage import open_store
        sys.stdin.readline()
        open_store(sys.argv[1]).close()
        print("done")
    """
    processes = [child(program, database) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    results = [process.communicate(timeout=60) for process in processes]
    assert [out.strip() for out, _ in results] == ["done"] * 3, results
