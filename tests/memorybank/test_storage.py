"""The database, on both engines: its versions, its transactions, its statements, and what is said when it cannot."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import InvalidInputError, StorageError
from memorybank.storage import Store, open_store, reading
from memorybank.storage.citus import statements
from memorybank.storage.direct import Direct, _compiled
from memorybank.storage.schema import HEAD, metadata
from memorybank.storage.upgrading import MIGRATIONS, current_version

pytestmark = pytest.mark.both_engines

Opener = Callable[..., MemoryBank]
Sql = Callable[..., list[Any]]
TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
    "postgresql": "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename",
}


@pytest.fixture
def blank(engine: str, database: Any, request: pytest.FixtureRequest) -> Any:
    """The place of a database without any table."""
    return database if engine == "sqlite" else request.getfixturevalue("postgres").fresh("blank")


@pytest.fixture
def sql(engine: str) -> Sql:
    """Run statements on a database without this program; return the rows of the last."""

    def run(place: Any, *statements: str) -> list[Any]:
        connection: Any = sqlite3.connect(place) if engine == "sqlite" else psycopg.connect(place)
        for statement in statements:
            cursor = connection.execute(statement)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
        connection.close()
        return rows

    return run


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = sorted(file.name[:4] for file in (MIGRATIONS / "versions").glob("[0-9]*.py"))
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
    assert numbers[-1] == HEAD


def test_an_older_database_is_upgraded_on_opening(blank: Any, sql: Sql) -> None:
    sql(blank, "CREATE TABLE memorybank_schema (version_num VARCHAR(32) NOT NULL)")
    store = open_store(blank)
    with store._reading() as connection:
        assert current_version(connection) == HEAD
    with store.read() as reader:
        assert reader.counts("default") == {}
    store.close()


def test_a_failed_upgrade_leaves_the_database_as_it_was(blank: Any, engine: str, sql: Sql) -> None:
    in_the_way = "CREATE TABLE deletions (x INTEGER)"  # the last table of the first migration
    before = sql(
        blank,
        "CREATE TABLE memorybank_schema (version_num VARCHAR(32) NOT NULL)",
        in_the_way,
        TABLES[engine],
    )
    with pytest.raises(StorageError, match=r"already exists|of that name is there already"):
        open_store(blank)
    assert sql(blank, TABLES[engine]) == before
    assert len(before) == 2


def test_a_newer_database_is_refused(blank: Any, sql: Sql) -> None:
    open_store(blank).close()
    sql(blank, "UPDATE memorybank_schema SET version_num = '0999'")
    with pytest.raises(StorageError, match=rf"version 0999, this program knows {HEAD}: install a newer"):
        open_store(blank)


def test_the_database_of_another_program_is_not_touched(blank: Any, engine: str, sql: Sql) -> None:
    before = sql(blank, "CREATE TABLE memories (note VARCHAR(10))", TABLES[engine])
    with pytest.raises(StorageError, match=r"belongs to another program.*'memories'"):
        open_store(blank)
    assert sql(blank, TABLES[engine]) == before


def test_a_bank_may_live_beside_other_tables(blank: Any, embedder: HashingEmbedder, sql: Sql) -> None:
    sql(blank, "CREATE TABLE saves (game VARCHAR(10))", "INSERT INTO saves VALUES ('one')")
    with MemoryBank.open(blank, embedder=embedder) as bank:
        bank.add("The gate opens.")
    assert sql(blank, "SELECT * FROM saves") == [("one",)]


def test_a_database_without_a_bank_is_none_unless_it_may_become_one(blank: Any, engine: str, sql: Sql) -> None:
    sql(blank, "CREATE TABLE saves (game VARCHAR(10))")
    before = sql(blank, TABLES[engine])
    with pytest.raises(StorageError, match="no memory bank in it"):
        open_store(blank, create=False)
    assert sql(blank, TABLES[engine]) == before
    open_store(blank).close()
    open_store(blank, create=False).close()


def test_three_processes_open_a_new_database_at_once(blank: Any, child: Callable[..., subprocess.Popen[str]]) -> None:
    program = """
        import sys
        from memorybank.storage import open_store
        sys.stdin.readline()
        open_store(sys.argv[1]).close()
        print("done")
    """
    processes = [child(program, blank) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    results = [process.communicate(timeout=60) for process in processes]
    assert [out.strip() for out, _ in results] == ["done"] * 3, results


def test_vectors_and_texts_are_written_as_documented(
    database: Any, engine: str, open_bank: Opener, embedder: HashingEmbedder, sql: Sql
) -> None:
    text = "The gate\0opens. 門 \x1a0"
    open_bank().add(text + "\n", id="g", actions=["a1"], metadata={"k": "é\0"})
    [row] = sql(database, "SELECT text, text_hash, actions, metadata, created, vector FROM memories")
    assert row[0] == (text if engine == "sqlite" else "The gate\x1a0opens. 門 \x1a10")
    assert row[1] == hashlib.sha256(text.encode()).hexdigest()
    assert row[2:5] == ('["a1"]', '{"k": "\\u00e9\\u0000"}', "2026-01-01T00:00:01.000000+00:00")
    assert bytes(row[5]) == embedder.embed([text])[0].astype("<f4").tobytes()


def test_what_raises_inside_a_transaction_undoes_it(open_bank: Opener) -> None:
    bank = open_bank()
    bank.add("The gate opens.")

    def fails() -> None:
        with bank._store.write_tables() as (_, connection):
            connection.exec_driver_sql("DROP TABLE deletions")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with bank._store.read() as reader:
        assert reader.changed("default", 1) == ([], [])


def test_a_reader_sees_one_moment_while_others_write(open_bank: Opener) -> None:
    bank = open_bank()
    bank.add("one")
    with bank._store.read() as reader:
        assert reader.counts("default") == {"active": 1}
        open_bank().add("two")
        open_bank().set_capacity(1)
        assert reader.counts("default") == {"active": 1}
        assert [row.memory.text for row in reader.page("default", state=None, after=0, limit=9)] == ["one"]
    assert bank.count() == 2


def test_the_index_is_built_from_all_bites(open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BITE", 7)
    bank = open_bank()
    for number in (1, 6, 7, 8, 20):  # also where a bite ends with the last one
        bank.add_many(f"memory {number} {n}" for n in range(number))
        fresh = open_bank()
        assert fresh.search(f"memory {number} 0", limit=1)[0].similarity == 1.0
        assert fresh.check().ok
        fresh.close()


def test_any_number_of_ids_and_texts_in_one_call(open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 1_000)
    bank = open_bank()
    bank.add_many({"id": f"i{n}", "text": f"memory {n % 50}"} for n in range(100))
    given = [f"i{n}" for n in range(70_000)]
    assert bank.mark_used(given) == 100
    with bank._store.read() as reader:
        assert len(reader.by_ids("default", given)) == 100
        assert len(reader.by_ordinals("default", range(1, 70_000))) == 100
    bank.delete_many(given[:100])
    assert bank.count() == 0


class TestKeys:
    """Keys begin with the bank and statements name it, so that a bank's rows can lie on a node of their own."""

    def test_every_primary_and_foreign_key_and_index_begins_with_the_bank(self) -> None:
        for table in metadata.tables.values():
            if "bank" in table.c:
                assert next(iter(table.primary_key.columns)).name == "bank"
                assert all(next(iter(key.columns)).name == "bank" for key in table.foreign_key_constraints)
                assert all(next(iter(index.columns)).name == "bank" for index in table.indexes)

    def test_the_tables_of_banks_are_distributed_by_it(self) -> None:
        expected = {table.name for table in metadata.tables.values() if "bank" in table.c}
        found = [re.search(r"create_distributed_table\('(\w+)', 'bank'", line) for line in statements()]
        assert {match[1] for match in found if match} == expected
        assert found[0] is not None
        assert found[0][1] == "banks"
        assert all("colocate_with => 'banks'" in line for line in statements()[1:])

    def test_every_statement_names_the_bank(self, open_bank: Opener) -> None:
        bank, other = open_bank("mine"), open_bank("other")
        other.add("a wolf howls")
        seen: list[tuple[str, Any]] = []
        with statements_of(bank._store, seen):
            work_out(bank)
        ours = [one for one in seen if re.search(r"\b(banks|memories|deletions)\b", one[0])]
        assert {statement.split()[0] for statement, _ in ours} == {"SELECT", "INSERT", "UPDATE", "DELETE"}
        assert len({statement for statement, _ in ours}) > 15
        for statement, values in ours:
            table = re.search(r"(?:FROM|INTO|UPDATE) (\w+)", statement)
            assert table is not None
            if statement.startswith("INSERT"):
                assert re.match(r"INSERT INTO \w+ \(bank, ", statement), statement
            else:
                assert re.search(rf"WHERE {table[1]}\.bank = (\?|%\(of_bank\)s)", statement), statement
            assert " JOIN " not in statement
            assert statement.replace(" FROM json_each(?)", "").count(" FROM ") <= 1, statement
            for row in values if isinstance(values, list) else [values]:
                assert "mine" in (row.values() if isinstance(row, dict) else row), statement
        assert other.count() == 1


@contextmanager
def statements_of(store: Store, seen: list[tuple[str, Any]]) -> Iterator[None]:
    """Note what is executed, with its values: by SQLAlchemy, or past it by SQLite's driver."""

    def by_sqlalchemy(_connection: Any, _cursor: Any, statement: str, values: Any, _context: Any, _many: bool) -> None:
        seen.append((statement, values))

    def by_driver(direct: Direct, statement: Any, values: Any = None, /) -> Any:
        text, plan = _compiled(statement)
        many = isinstance(values, list)
        seen.append((text, list(map(plan.arguments, values)) if many else tuple(plan.arguments(values))))
        return execute(direct, statement, values)

    execute = Direct.execute
    event.listen(store._engine, "before_cursor_execute", by_sqlalchemy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Direct, "execute", by_driver)
        yield
    event.remove(store._engine, "before_cursor_execute", by_sqlalchemy)


def work_out(bank: MemoryBank) -> None:
    """Call everything that a bank can do, on paths that differ in their statements."""
    assert bank.search("wolf") == []
    assert bank.info().created is None
    bank.set_capacity(4)
    bank.add("the gate opens", pinned=True)
    bank.add_many([*(f"memory {n}" for n in range(9)), "the gate opens", {"id": "rain", "text": "rain falls"}])
    assert bank.search("gate")
    bank.edit("m2", text="bread", metadata={"k": 1})
    bank.pin("m3")
    bank.unpin("m3")
    bank.forget("m9")
    bank.restore("m2")
    bank.delete("rain", "m5")
    assert bank.mark_used(["m1", "m2"]) == 2
    assert bank.search("gate", pinned_first=True, max_tokens=100, count_tokens=len)
    assert bank.get("m1").use_count == 1
    assert len(bank.list()) == bank.count() == 9
    assert bank.list("forgotten")
    assert len(bank.page(limit=3, cursor="2").memories) == 3
    assert bank.check().ok
    model = HashingEmbedder(32)
    assert bank.reembed(model) == 9
    bank.set_capacity(None)
    fresh = MemoryBank(bank._store, "mine", embedder=model)
    assert fresh.search("bread")[0].memory.text == "bread"
    assert fresh.check().ok


class TestMessages:
    @pytest.fixture
    def filled(self, open_bank: Opener) -> Iterator[MemoryBank]:
        bank = open_bank()
        bank.add("The gate opens.")
        yield bank
        assert [memory.text for memory in bank.list()] == ["The gate opens."]

    def test_closed(self, database: Any, embedder: HashingEmbedder) -> None:
        bank = MemoryBank.open(database, embedder=embedder)
        bank.close()
        bank.close()
        for call in (bank.list, lambda: bank.add("x"), lambda: bank.search("x"), bank.check):
            with pytest.raises(StorageError, match="was closed"):
                call()

    @pytest.mark.parametrize(
        "place", ["", None, 3, "mysql://x/y", "nonsense://", "postgresql+psycopg2://h/db", "sqlite://host/x", "a\0b"]
    )
    def test_no_place(self, place: Any) -> None:
        with pytest.raises(InvalidInputError):
            open_store(place)

    def test_messages_never_show_what_was_stored(self, filled: MemoryBank, engine: str) -> None:
        spoil, mend = {
            "sqlite": (
                "CREATE TRIGGER guard BEFORE INSERT ON memories BEGIN SELECT RAISE(ABORT, 'no'); END",
                "DROP TRIGGER guard",
            ),
            "postgresql": (
                "ALTER TABLE memories ADD CONSTRAINT guard CHECK (length(text) < 20)",  # says the whole row
                "ALTER TABLE memories DROP CONSTRAINT guard",
            ),
        }[engine]
        with filled._store._writing() as connection:
            connection.exec_driver_sql(spoil)
        with pytest.raises(StorageError) as caught:
            filled.add("a secret of the player")
        with filled._store._writing() as connection:
            connection.exec_driver_sql(mend)
        shown: BaseException | None = caught.value
        while shown is not None:
            assert "secret" not in str(shown)
            shown = shown.__cause__
