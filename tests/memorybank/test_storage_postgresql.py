"""What holds for PostgreSQL alone: reaching a server, losing it, waiting for others, and what it cannot hold itself."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import URL, make_url

import memorybank.storage
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import InvalidInputError, ModelMismatchError, StorageError
from memorybank.storage import Writer, open_store, postgresql
from memorybank.storage.upgrading import upgrade
from tests.support.postgres import PostgresServer

Opener = Callable[..., MemoryBank]
PASSWORD = "s3cret/@:word"  # noqa: S105
LOCKED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'tests'"
SCHEMA = """
    SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, collation_name, column_default
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2;
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2;
    SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname
"""


@pytest.fixture
def engine() -> str:
    return "postgresql"


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


@contextmanager
def in_a_thread(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Run something beside the block; the list holds what it returned or raised, once the block is over."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield result
    thread.join(60)
    assert result, "it hangs"


def test_a_new_database_has_the_schema_that_the_migrations_lead_to(postgres: PostgresServer) -> None:
    open_store(postgres.fresh("blank")).close()
    engine = postgresql.make_engine(postgresql.checked(make_url(postgres.fresh("other"))))
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    for statement in SCHEMA.split(";"):
        new = postgres.execute(statement, "blank")
        assert new == postgres.execute(statement, "other")
        assert len(new) > 8


def test_texts_are_compared_by_their_bytes(postgres: PostgresServer, database: str) -> None:
    columns = "SELECT DISTINCT collation_name FROM information_schema.columns WHERE collation_name IS NOT NULL AND "
    columns += "table_name IN ('banks', 'memories', 'deletions')"
    assert postgres.execute(columns, "tests") == [("C",)]


def test_transactions_are_what_they_promise_and_nothing_waits_for_ever(postgres: PostgresServer) -> None:
    url = postgres.fresh("blank")
    for careless in ("synchronous_commit = off", "default_transaction_isolation = 'serializable'"):
        postgres.execute(f"ALTER DATABASE blank SET {careless}")
    store = open_store(url)
    names = ("transaction_isolation", "transaction_read_only", "synchronous_commit", "client_encoding")
    names += ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    found = []
    for begin in (store._reading, store._writing, store._reading):
        with begin() as connection:
            found.append([connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names])
    store.close()
    always = ["on", "UTF8", "2min", "30s", "5min"]
    assert found == [["repeatable read", "on", *always], ["read committed", "off", *always], found[0]]


def test_a_stronger_promise_of_the_server_is_kept(postgres: PostgresServer) -> None:
    url = postgres.fresh("blank")
    postgres.execute("ALTER DATABASE blank SET synchronous_commit = remote_apply")
    store = open_store(url)
    with store._reading() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "remote_apply"
    store.close()


def test_a_reader_cannot_write(open_bank: Opener) -> None:
    bank = open_bank()
    bank.add("one")
    with pytest.raises(StorageError, match="takes no writes"), bank._store._reading() as connection:
        connection.exec_driver_sql("DELETE FROM banks")
    assert bank.count() == 1


class TestPlaces:
    @pytest.mark.parametrize("scheme", ["postgresql+psycopg", "postgresql", "postgres"])
    def test_all_names_of_the_scheme_are_the_same_database(
        self, database: str, embedder: HashingEmbedder, scheme: str
    ) -> None:
        url = make_url(database).set(drivername=scheme, query={**make_url(database).query, "connect_timeout": "7"})
        with MemoryBank.open(url.render_as_string(hide_password=False), embedder=embedder) as bank:
            assert bank.add("x").id == "m1"
            assert bank._store.where.startswith("postgresql://postgres@/tests?connect_timeout=7&host=")

    def test_the_driver_is_an_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(memorybank.storage, "postgresql")
        monkeypatch.delitem(sys.modules, "memorybank.storage.postgresql")
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(StorageError, match=r"pip install 'story-context\[postgresql\]'"):
            open_store("postgresql://localhost/x")

    @pytest.mark.parametrize(
        "place",
        [
            "postgresql://player:s3cret@host:port/name",
            "postgresql://player:s3cret@host/name?password=s3cret",
            "postgresql://host/name?user=player&password=s3cret",
            "postgresql://player:s3cret@host/name?options=-csynchronous_commit%3Doff",
            "postgresql+asyncpg://player:s3cret@host/name",
            "mysql://player:s3cret@host/name",
            "postgresql://player:s3cret@#/s3cret@host:port/name",
            "sqlite://player:s3cret@host/name",
        ],
    )
    def test_what_is_refused_does_not_show_the_password(self, place: str) -> None:
        with pytest.raises(InvalidInputError) as caught:
            open_store(place)
        assert "s3cret" not in repr(caught.value)
        assert "give" in str(caught.value) or "belongs behind the user" in str(caught.value)


class TestUnreachable:
    """One clear line, soon, without the password."""

    def refused(self, url: URL | str, says: str, within: float = 20) -> str:
        """Open what cannot be opened; return the one line that says so."""
        started = time.monotonic()
        place = url if isinstance(url, str) else url.render_as_string(hide_password=False)
        with pytest.raises(StorageError, match=says) as caught:
            open_store(place)
        assert time.monotonic() - started < within
        assert "\n" not in str(caught.value)
        shown: BaseException | None = caught.value
        while shown is not None:
            assert PASSWORD not in str(shown)
            assert "s3cret" not in repr(shown)
            shown = shown.__cause__
        return str(caught.value)

    def test_wrong_password_and_too_few_rights(self, postgres: PostgresServer) -> None:
        url = make_url(postgres.fresh("blank"))
        postgres.ask_password("player", PASSWORD)
        for wrong in ("s3cret", None):
            self.refused(url.set(username="player", password=wrong), "password")
        self.refused(url.set(username="player", password=PASSWORD), "the user may not do that: grant it the right")
        postgres.execute("GRANT CREATE ON SCHEMA public TO player", "blank")
        store = open_store(url.set(username="player", password=PASSWORD).render_as_string(hide_password=False))
        assert "s3cret" not in f"{store!r} {store.where} {store._engine!r}"
        store.close()

    def test_unknown_database(self, postgres: PostgresServer) -> None:
        said = self.refused(postgres.url("atlantis"), r'database "atlantis" does not exist.*name of the database')
        assert said.endswith("then repeat the call")

    def test_no_server_there(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        url = URL.create("postgresql", "player", PASSWORD, "127.0.0.1", port, "x")
        said = self.refused(url, "cannot be reached.*refused.*check that it runs, and host, port")
        assert f"127.0.0.1:{port}" in said

    def test_a_server_that_never_answers(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            url = URL.create("postgresql", "player", PASSWORD, "127.0.0.1", port, "x", {"connect_timeout": "2"})
            said = self.refused(url, "timeout")
        assert f"127.0.0.1:{port}" in said

    def test_a_database_of_another_encoding(self, postgres: PostgresServer) -> None:
        url = postgres.fresh("blank", options="ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        said = self.refused(url, "its encoding is LATIN1, which cannot hold every text")
        assert "createdb --encoding=UTF8" in said


class TestLosingTheServer:
    def test_killed_and_restarted_in_the_middle_of_work(self, postgres: PostgresServer, open_bank: Opener) -> None:
        """What was acknowledged is there, what was refused is not or whole, and nobody opens anything again."""
        bank, other = open_bank(), open_bank()
        told: list[str] = []
        failed: list[StorageError] = []
        recovered = threading.Event()

        def write(thread: int) -> None:
            for number in range(100_000):
                try:
                    told.append(bank.add(f"thread {thread} number {number}").text)
                except StorageError as error:
                    failed.append(error)
                    recovered.wait(60)
                else:
                    if recovered.is_set():
                        return

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(told) > 20)
        postgres.kill()
        try:
            wait_for(lambda: len(failed) >= 3)
            with pytest.raises(StorageError, match="cannot be reached"):
                other.search("number 7")
        finally:
            postgres.start()
            recovered.set()
        for thread in threads:
            thread.join(60)
        assert all("repeat the call" in str(error) for error in failed)
        texts = [one.text for one in bank.list()]
        assert set(told) <= set(texts)
        assert len(texts) == len(set(texts)) <= len(told) + len(failed)
        assert other.search(told[-1], limit=1)[0].memory.text == told[-1]
        assert bank.check().ok
        assert other.check().ok

    def test_idle_connections_that_were_ended_are_replaced_unseen(
        self, postgres: PostgresServer, open_bank: Opener
    ) -> None:
        bank = open_bank()
        bank.add("x")
        postgres.disconnect("tests")
        assert bank.add("y").id == "m2"
        postgres.disconnect("tests")
        assert bank.search("y")[0].memory.text == "y"

    def test_a_transaction_that_was_ended_has_changed_nothing(
        self, postgres: PostgresServer, open_bank: Opener
    ) -> None:
        bank = open_bank()
        bank.add("x")

        def write() -> None:
            with bank._store.write() as writer:
                writer.delete("default", [1], 2)
                postgres.disconnect("tests")

        with pytest.raises(StorageError, match="repeat the call"):
            write()
        assert bank.count() == 1


class TestWaiting:
    def test_writers_of_other_banks_wait_for_nobody(self, open_bank: Opener) -> None:
        one, other = open_bank("one"), open_bank("other")
        same = MemoryBank(one._store, "third", embedder=HashingEmbedder())
        one.add("x")
        with one._store.write() as writer:
            assert writer.bank("one") is not None
            for bank in (other, same):
                assert in_another_thread(lambda bank=bank: bank.add("y").id) == "m1"
                assert in_another_thread(lambda bank=bank: bank.search("y")[0].memory.text) == "y"

    def test_writers_of_one_bank_wait_and_see_what_the_other_wrote(
        self, postgres: PostgresServer, open_bank: Opener
    ) -> None:
        bank, other = open_bank(), open_bank()
        bank.add("x")
        with ExitStack() as until_it_has_ended, bank._store.write() as writer:
            state = writer.bank("default")
            assert state is not None
            result = until_it_has_ended.enter_context(in_a_thread(lambda: other.add("y")))  # only now, or it is faster
            wait_for(lambda: postgres.execute(LOCKED) == [(1,)])
            writer.count_use("default", ["m1"], state.created)
        assert result[0].id == "m2"
        assert bank.get("m1").use_count == 1

    def test_who_waits_for_too_long_is_told_so(self, open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgresql, "_SETTINGS", "SELECT set_config('lock_timeout', '100ms', false)")
        bank, other = open_bank(), open_bank()
        bank.add("x")
        with bank._store.write() as writer:
            assert writer.bank("default") is not None
            with pytest.raises(StorageError, match="another program kept it locked for 30 seconds"):
                other.add("y")
            assert other.search("x")  # reading goes on
        assert other.add("y").id == "m2"

    def test_a_statement_that_takes_too_long_is_ended(self, open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgresql, "_SETTINGS", "SELECT set_config('statement_timeout', '3s', false)")
        store = open_bank()._store
        with pytest.raises(StorageError, match="took longer than 120 seconds"), store._reading() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(30)")

    def test_all_connections_are_busy(self, open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in (("CONNECTIONS", 1), ("MORE_CONNECTIONS", 0), ("BUSY_SECONDS", 0.1)):
            monkeypatch.setattr(postgresql, name, value)
        bank = open_bank()
        with bank._store.read(), pytest.raises(StorageError, match="all 1 connections of this program were busy"):
            in_another_thread(bank.list)
        assert bank.list() == []


def in_another_thread(work: Callable[[], Any]) -> Any:
    with in_a_thread(work) as result:
        pass
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]


class TestTwoCreators:
    """Two processes write to a bank that is not there: one bank comes of it, with both memories."""

    def test_the_other_one_is_about_to_commit(self, postgres: PostgresServer, open_bank: Opener) -> None:
        bank, other = open_bank(), open_bank()
        with ExitStack() as until_it_has_ended, bank._store.write() as writer:
            new = writer.create_bank(bank._writer._new_bank(HashingEmbedder(), bank._writer._clock()))
            result = until_it_has_ended.enter_context(in_a_thread(lambda: other.add("y")))
            wait_for(lambda: postgres.execute(LOCKED) == [(1,)])
        assert result[0].id == "m1"
        with bank._store.read() as reader:
            found = reader.bank("default")
        assert found is not None
        assert found.incarnation == new.incarnation

    def test_the_other_one_fails(self, postgres: PostgresServer, open_bank: Opener) -> None:
        bank, other = open_bank(), open_bank()

        def fail(until_it_has_ended: ExitStack) -> None:
            with bank._store.write() as writer:
                writer.create_bank(bank._writer._new_bank(HashingEmbedder(), bank._writer._clock()))
                until_it_has_ended.enter_context(in_a_thread(lambda: found.append(other.add("y"))))
                wait_for(lambda: postgres.execute(LOCKED) == [(1,)])
                raise ZeroDivisionError

        found: list[Any] = []
        with ExitStack() as until_it_has_ended, pytest.raises(ZeroDivisionError):
            fail(until_it_has_ended)
        assert found[0].id == "m1"
        assert [one.text for one in bank.list()] == ["y"]

    def test_the_other_one_was_faster(self, open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        bank, other = open_bank(), open_bank()
        create = Writer.create_bank

        def late(writer: Writer, state: Any) -> Any:
            monkeypatch.setattr(Writer, "create_bank", create)
            in_another_thread(lambda: other.add("theirs"))
            return create(writer, state)

        monkeypatch.setattr(Writer, "create_bank", late)
        assert bank.add("ours").id == "m2"
        assert [one.text for one in bank.list()] == ["theirs", "ours"]
        assert other.search("ours", limit=1)[0].similarity == 1.0
        assert bank.check().ok

    def test_the_other_one_was_faster_and_deleted_it_again(
        self, open_bank: Opener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bank = open_bank()
        seen = []
        find = Writer.bank

        def gone_once(writer: Writer, name: str) -> Any:
            seen.append(name)
            return None if len(seen) in (1, 2) else find(writer, name)

        monkeypatch.setattr(Writer, "bank", gone_once)
        assert bank.add("ours").id == "m1"
        assert bank.check().ok

    def test_with_another_model(self, open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        bank, other = open_bank(embedder=HashingEmbedder(32)), open_bank()
        create = Writer.create_bank

        def late(writer: Writer, state: Any) -> Any:
            monkeypatch.setattr(Writer, "create_bank", create)
            in_another_thread(lambda: other.add("theirs"))
            return create(writer, state)

        monkeypatch.setattr(Writer, "create_bank", late)
        with pytest.raises(ModelMismatchError, match=r"64 dimensions.*32 dimensions"):
            bank.add("ours")
        assert other.count() == 1


def test_what_a_player_can_type_comes_back(open_bank: Opener) -> None:
    """PostgreSQL holds no U+0000; the way around it must not be in the way of what looks like it."""
    texts = [
        "a\0b",
        "\x1a",
        "\x1a0",
        "\x1a1",
        "\x1a\x1a0",
        "\0\x1a\0001",
        "x\x1a",
        "\ud83d",
        "\ud83d\udc4d",
        "\\0 \\x00",
    ]
    bank = open_bank()
    metadata = {"\0": "\0", "half": "\ud83d", "deep": ["\x1a0"]}
    stored = bank.add_many({"text": text + ".", "metadata": metadata} for text in texts)
    assert [one.text for one in stored] == [*(f"{text}." for text in texts[:7]), "\ufffd.", "👍.", "\\0 \\x00."]
    assert bank.list() == open_bank().list() == stored
    assert all(one.metadata == metadata for one in bank.list())
    assert [bank.add(f"{text}.").id for text in texts] == [one.id for one in stored]
    assert bank.search("a\0b.", limit=1)[0].memory.id == "m1"
    assert bank.edit("m1", text="\0x\0").text == bank.get("m1").text == "\0x\0"
    assert bank.check().ok


def test_a_model_may_have_any_name(open_bank: Opener) -> None:
    bank = open_bank(embedder=HashingEmbedder(64, name="odd\0name"))
    bank.add("x")
    assert bank.info().model == bank.list()[0].model == "odd\0name"


def test_an_index_that_the_server_calls_unsound_is_reported(
    postgres: PostgresServer, embedder: HashingEmbedder
) -> None:
    with MemoryBank.open(postgres.fresh("blank"), embedder=embedder) as bank:
        bank.add("x")
        assert bank.check().ok
        unsound = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_memories_text'::regclass"
        postgres.execute(unsound, "blank")
        assert bank.check().problems == (
            "the index ix_memories_text is not valid: make it anew with `REINDEX INDEX ix_memories_text`",
        )


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("08006", "the connection to the server was lost"),
        ("40001", "another transaction was in the way: repeat the call"),
        ("40P01", "another transaction was in the way: repeat the call"),
        ("53100", "the server's disk is full: free some space"),
        ("53300", "no connection left: raise its max_connections"),
        ("57P01", "shutting down or starting: repeat the call when it runs"),
        ("25006", "the server takes no writes"),
        ("28P01", "check user and password"),
        ("3D000", "the server has no database of that name"),
        ("XX001", "it is damaged: see the server's log, restore a copy"),
        ("42P01", "a table is gone"),
        ("22P02", r"SQLSTATE 22P02"),
    ],
)
def test_errors_say_what_to_do(state: str, says: str) -> None:
    error = psycopg.errors.lookup(state)("as the server puts it")
    assert str(postgresql.explain(error, "postgresql://h/db")).startswith("database postgresql://h/db: ")
    with pytest.raises(StorageError, match=says):
        raise postgresql.explain(error, "postgresql://h/db")
