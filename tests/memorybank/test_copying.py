"""Banks copied from database to database: exact, whole or not at all, and never over something else."""

from __future__ import annotations

import itertools
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from memorybank import InvalidInputError, MemoryBank, StorageError
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import BankNotFoundError
from memorybank.host import BankHost
from memorybank.moving import UnsoundCopyError, copy_database, copying
from memorybank.moving.tables import BANK_TABLES, PAGE, checksum_of
from memorybank.storage import Store, open_store
from memorybank.storage.schema import api_keys, metadata

EMBEDDER = HashingEmbedder()
Places = Callable[..., str]

PAIRS = [("sqlite", "sqlite"), ("sqlite", "postgresql"), ("postgresql", "sqlite")]
every_pair = pytest.mark.parametrize("engines", PAIRS, ids=" to ".join, indirect=True)


@pytest.fixture
def engines(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The engines of source and target."""
    pair: tuple[str, str] = getattr(request, "param", ("sqlite", "sqlite"))
    return pair


@pytest.fixture
def places(engines: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Places:
    """Give the place of a database that is not there yet, or on a server, that is empty; `which` is 0 for a source."""
    numbers = itertools.count()

    def place(which: int = 1) -> str:
        number = next(numbers)
        if engines[which] == "sqlite":
            return str(tmp_path / f"{number}.sqlite")
        url: str = request.getfixturevalue("postgres").fresh(f"copying_{number}")
        return url

    return place


@pytest.fixture
def opened() -> Iterator[Callable[[str], Store]]:
    stores: list[Store] = []

    def opens(place: str) -> Store:
        stores.append(open_store(place))
        return stores[-1]

    yield opens
    for store in stores:
        store.close()


@pytest.fixture
def source(places: Places) -> str:
    """A database with all that there is: states, pins, uses, deletions, capacities, odd texts, namespaces, keys."""
    place = places(0)
    with BankHost.open(place, embedder=EMBEDDER) as host:
        for name in ("default", "acme/one", "acme/two", "other/one", "ünï 門"):
            bank = host.bank(name)
            bank.add_many(
                [{"text": f"{name} {n}", "actions": [f"a{n}"], "metadata": {"n": [n, None]}} for n in range(9)]
            )
            bank.add_many(["<|endoftext|> \x1b 👍 \u2028", "nul \0 and \x1a", "x" * 100_000])
            bank.delete("m2", "m5")
            bank.forget("m3")
            bank.pin("m4")
            bank.mark_used(["m1", "m4"])
            bank.edit("m1", text="another text", metadata={"half": "\ud83d", "one": 1.0})
            bank.set_capacity(1000)
        host.bank("empty").set_capacity(3)
        host.keys.create(namespace="acme", access="write", label="a")
        revoked, _ = host.keys.create(namespace="other", access="read")
        host.keys.revoke(revoked.id)
        fill_the_rest(host._store)
    return place


def fill_the_rest(store: Store) -> None:
    """Put a row of some values into the tables that nothing above fills."""
    with store.write_tables() as (_, connection):
        for table in BANK_TABLES:
            if not connection.execute(select(table)).first():
                values = {column.name: 7 if column.type.python_type is int else "7" for column in table.c}
                connection.execute(insert(table), values | {"bank": "default"})


def rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    with store.read_tables() as (_, connection):
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
        }


def copied(source: Store, target: Store, **options: Any) -> list[tuple[str, bool]]:
    return [(one.bank, one.was_there) for one in copy_database(source, target, **options).banks]


BANKS = ["acme/one", "acme/two", "default", "empty", "other/one", "ünï 門"]


def test_every_table_is_copied() -> None:
    assert {table.name for table in BANK_TABLES} | {"api_keys"} == set(metadata.tables)


@every_pair
def test_a_copy_is_exact(source: str, places: Places, opened: Callable[[str], Store]) -> None:
    place = places()
    original, target = opened(source), opened(place)
    before = rows(original)
    assert all(before.values()), "there is something in every table"
    told: list[tuple[int, int]] = []
    report = copy_database(original, target, progress=lambda *numbers: told.append(numbers))
    assert rows(target) == before == rows(original)
    assert [(one.bank, one.memories, one.was_there) for one in report.banks] == [
        (name, 0 if name == "empty" else 10, False) for name in BANKS
    ]
    assert report.keys == 2
    assert told == [(n, 50) for n in (10, 20, 30, 40, 50)]
    with target.read_tables() as (_, connection):
        assert [str(checksum_of(connection, one.bank)) for one in report.banks] == [
            one.checksum for one in report.banks
        ]
    with MemoryBank.open(place, "acme/one", embedder=EMBEDDER) as bank:
        assert bank.check().ok
        assert bank.search("acme/one 7")[0].memory.text == "acme/one 7"
        assert bank.add("a new one").id == "m13"


@every_pair
def test_there_and_back(source: str, places: Places, opened: Callable[[str], Store]) -> None:
    original, middle, back = opened(source), opened(places(1)), opened(places(0))
    copy_database(original, middle)
    copy_database(middle, back)
    assert rows(back) == rows(original)


@every_pair
def test_more_than_one_page(places: Places, opened: Callable[[str], Store]) -> None:
    place = places(0)
    with MemoryBank.open(place, embedder=EMBEDDER) as bank:
        bank.add_many(f"text {n}" for n in range(2 * PAGE + 1))
        bank.delete(*(f"m{n}" for n in range(1, PAGE + 2)))
    original, target = opened(place), opened(places())
    told: list[tuple[int, int]] = []
    copy_database(original, target, progress=lambda *numbers: told.append(numbers))
    assert rows(target) == rows(original)
    assert told == [(PAGE, PAGE)]


def test_some_banks_only(source: str, places: Places, opened: Callable[[str], Store]) -> None:
    original = opened(source)
    assert copied(original, opened(places()), names=["other/one", "default", "default"]) == [
        ("default", False),
        ("other/one", False),
    ]
    target = opened(places())
    assert copied(original, target, namespace="acme") == [("acme/one", False), ("acme/two", False)]
    assert [row[1:4] for row in rows(target)["api_keys"]] == [("a", "acme", "write")]
    assert [name for name, _ in copied(original, opened(places()), namespace="")] == ["default", "empty", "ünï 門"]
    with pytest.raises(BankNotFoundError, match="no bank 'nowhere'"):
        copy_database(original, target, names=["nowhere"])


def test_what_is_there_already_is_compared(source: str, places: Places, opened: Callable[[str], Store]) -> None:
    original, target = opened(source), opened(places())
    copy_database(original, target, names=["default"])
    assert copied(original, target) == [(name, name == "default") for name in BANKS]
    assert copied(original, target) == [(name, True) for name in BANKS]
    assert rows(target) == rows(original)


@pytest.mark.parametrize("changed", ["source", "target", "namesake", "not its bank's row"])
def test_another_bank_in_the_target_is_refused_and_kept(
    source: str, places: Places, opened: Callable[[str], Store], changed: str
) -> None:
    original, target = opened(source), opened(places())
    if changed == "namesake":
        with MemoryBank.open(target.where, "other/one", embedder=EMBEDDER) as bank:
            bank.add("of somebody else")
    else:
        copy_database(original, target, names=["other/one"])
        if changed == "not its bank's row":
            with target.write_tables() as (_, connection):
                connection.exec_driver_sql("UPDATE memories SET use_count = 7 WHERE id = 'm1'")
        else:
            place = source if changed == "source" else target.where
            with MemoryBank.open(place, "other/one", embedder=EMBEDDER) as bank:
                bank.add("something new")
    before = rows(target)
    with pytest.raises(InvalidInputError, match="bank 'other/one' already, and it is not the same one"):
        copy_database(original, target)
    if changed == "not its bank's row":  # which is seen when its turn comes
        assert {row[0] for row in rows(target)["banks"]} == set(BANKS) - {"ünï 門"}
        assert [row for row in rows(target)["memories"] if row[0] == "other/one"] == before["memories"]
    else:
        assert rows(target) == before, "nothing was copied"


@every_pair
def test_keys_are_never_opened_again(source: str, places: Places, opened: Callable[[str], Store]) -> None:
    place = places()
    original, target = opened(source), opened(place)
    copy_database(original, target)
    with BankHost.open(source) as here, BankHost.open(place) as there:
        [open_one, revoked] = here.keys.list()
        with target.write_tables() as (_, connection):
            connection.execute(api_keys.update().where(api_keys.c.id == revoked.id).values(revoked=None))
        here.keys.revoke(open_one.id)
        copy_database(original, target)
        assert there.keys.list() == here.keys.list()
        with target.write_tables() as (_, connection):
            connection.execute(api_keys.update().values(secret_hash="0" * 64))
        with pytest.raises(InvalidInputError, match="another API key"):
            copy_database(original, target)


def test_a_database_is_not_copied_into_itself(source: str, opened: Callable[[str], Store]) -> None:
    link = Path(source).with_name("link.sqlite")
    link.symlink_to(source)
    for place in (source, str(link)):
        with pytest.raises(InvalidInputError, match="into itself"):
            copy_database(opened(source), opened(place))


@every_pair
def test_a_copy_that_fails_leaves_whole_banks_and_goes_on(
    source: str, places: Places, opened: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, target = opened(source), opened(places())
    calls = 0

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 5:  # in the middle of a bank
            raise StorageError("the disk is full")
        return checksum_of(*arguments)

    monkeypatch.setattr(copying, "checksum_of", failing)
    with pytest.raises(StorageError, match="disk is full"):
        copy_database(original, target)
    assert [row[0] for row in rows(target)["banks"]] == BANKS[:4]
    monkeypatch.undo()
    assert copied(original, target) == [(name, name in BANKS[:4]) for name in BANKS]
    assert rows(target) == rows(original)


def test_what_is_not_what_was_read_is_not_stored(source: str, places: Places, opened: Callable[[str], Store]) -> None:
    original, target = opened(source), opened(places())
    with target.write_tables() as (_, connection):
        connection.exec_driver_sql(
            "CREATE TRIGGER flip AFTER INSERT ON memories WHEN new.bank = 'default' BEGIN "
            "UPDATE memories SET use_count = use_count + 1 WHERE bank = new.bank AND ordinal = new.ordinal; END"
        )
    with pytest.raises(UnsoundCopyError, match=r"bank 'default': \d+ rows with the checksum"):
        copy_database(original, target)
    assert [row[0] for row in rows(target)["banks"]] == ["acme/one", "acme/two"]


KILLED = """
    import sys
    from memorybank.moving import copy_database
    from memorybank.storage import open_store

    source, target, stop_at = open_store(sys.argv[1]), open_store(sys.argv[2]), int(sys.argv[3])

    def progress(done, total):
        if done == stop_at:
            print("now", flush=True)
            sys.stdin.read()

    copy_database(source, target, progress=progress)
    print("never")
"""


@every_pair
@pytest.mark.parametrize("stop_at", [10, 50])
def test_a_copy_that_is_killed_goes_on(
    source: str,
    places: Places,
    opened: Callable[[str], Store],
    child: Callable[..., subprocess.Popen[str]],
    stop_at: int,
) -> None:
    place = places()
    process = child(KILLED, source, place, stop_at)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.kill()
    process.wait(60)
    original, target = opened(source), opened(place)
    whole = [row[0] for row in rows(target)["banks"]]
    assert whole == BANKS[: {10: 0, 50: 5}[stop_at]], "no bank is there in part"
    assert copied(original, target) == [(name, name in whole) for name in BANKS]
    assert rows(target) == rows(original)


@every_pair
def test_a_bank_that_is_written_to_is_copied_as_it_was_at_one_moment(
    places: Places, opened: Callable[[str], Store]
) -> None:
    place = places(0)
    with MemoryBank.open(place, embedder=EMBEDDER) as bank:
        bank.add_many(f"text {n}" for n in range(1500))
        stop = threading.Event()

        def write() -> None:
            for number in range(10_000):
                if stop.is_set():
                    return
                bank.edit_many([{"id": f"m{n}", "metadata": {"turn": number}} for n in (1, 700, 1400)])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            copies = [places() for _ in range(3)]
            for copy in copies:
                copy_database(opened(place), opened(copy))
        finally:
            stop.set()
            writer.join()
    for copy in copies:
        with MemoryBank.open(copy, embedder=EMBEDDER) as found:
            assert found.check().ok
            turns = {found.get(f"m{n}").metadata.get("turn") for n in (1, 700, 1400)}
            assert len(turns) == 1, "all changes of one write, or none"
