"""What was acknowledged is there after anything: kill, term, errors in between, a full disk."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.kills import kill_rounds, lost
from memorybank import MemoryBank, StorageError

Opener = Callable[..., MemoryBank]


@pytest.mark.parametrize(("signal_", "databases"), [(signal.SIGKILL, 5), (signal.SIGTERM, 1)], ids=["kill", "term"])
def test_killed_while_writing(tmp_path: Path, signal_: signal.Signals, databases: int) -> None:
    """Twenty rounds on each database; the moment of the signal moves over the whole cycle of a write."""
    for number in range(databases):
        found = list(kill_rounds(str(tmp_path / f"{number}.sqlite"), 20, seed=number, by=signal_))
        assert [problem for one in found for problem in one.problems] == []
        assert len(found) == 20
        assert sum(one.acknowledged for one in found) > 20


def test_what_is_lost_would_be_seen(bank: MemoryBank) -> None:
    bank.add_many([{"id": f"r7-{n}{b}", "text": f"round 7 number {n}"} for n in range(5) for b in ("", "b")])
    told = {"r7-0": "add", "r7-1": "add", "r7-2": "edit", "r7-3": "delete", "r7-4": "add"}
    bank.edit("r7-2", text="edited r7-2")
    bank.delete("r7-3", "r7-3b")
    assert list(lost(bank, 7, told)) == []
    bank.edit("r7-2", text="round 7 number 2")
    bank.edit("r7-1", text="something else")
    bank.delete("r7-0")
    bank.add("round 7 number 3", id="r7-3")
    assert [line.split()[0] for line in lost(bank, 7, told)] == ["r7-0", "r7-1", "r7-2", "r7-3", "of", "of"]


@pytest.mark.parametrize("method", ["add", "changed", "remove"])
def test_an_error_between_store_and_index(open_bank: Opener, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    from memorybank.search.index import VectorIndex
    from memorybank.storage import Reader

    bank = open_bank()
    bank.add_many(["the gate opens", "rain falls"])
    bank.search("gate")
    bank.add("the wolf howls")
    bank.delete("m2")
    where: Any = Reader if method == "changed" else VectorIndex

    def fails(*_: object) -> None:
        raise MemoryError("no memory left")

    with monkeypatch.context() as patch:
        patch.setattr(where, method, fails)
        with pytest.raises(MemoryError):
            bank.search("wolf")
    assert [one.memory.text for one in bank.search("wolf howls")] == ["the wolf howls", "the gate opens"]
    assert bank.check().ok


def test_an_index_torn_by_an_error_is_built_anew(open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    from memorybank.search.index import VectorIndex

    bank = open_bank()
    bank.add("the gate opens")
    bank.search("gate")
    bank.add("the wolf howls")

    def tears(index: Any, ordinals: Any, vectors: Any) -> None:
        index._faiss.add_with_ids(vectors, np.array(ordinals))  # and the index's own books know nothing of it
        raise MemoryError("no memory left")

    with monkeypatch.context() as patch:
        patch.setattr(VectorIndex, "add", tears)
        with pytest.raises(MemoryError):
            bank.search("wolf")
    with bank._live.current() as (_, _, index):
        assert index is not None
        assert index._faiss.ntotal == len(index) == 2


def test_an_error_in_the_middle_of_a_write(open_bank: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    from memorybank.storage import Writer

    bank = open_bank()
    bank.add("the gate opens")
    before = bank.list(), bank.info()

    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "update", fails)  # after the inserts
        for call in (lambda: bank.add_many(["x", {"id": "m1", "text": "y"}]), lambda: bank.edit("m1", text="z")):
            with pytest.raises(KeyboardInterrupt):
                call()
    assert (bank.list(), bank.info()) == before
    assert bank.add("x").id == "m2"
    assert bank.check().ok


def test_disk_full_at_any_page(database: Path, open_bank: Opener) -> None:
    """The database may grow page by page; whatever was acknowledged stays, whatever was refused is not there."""
    bank = open_bank()
    bank.add("the gate opens")
    told = {"m1"}
    refused = 0
    for room in range(12):
        with bank._store._reading() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + room % 4}")
        try:
            told |= {one.id for one in bank.add_many(f"{room} {n} " + "long " * 400 for n in range(3))}
        except StorageError as error:
            refused += "disk is full" in str(error)
        assert {one.id for one in bank.list()} == told
    assert refused > 2
    assert bank.check().ok
    fresh = open_bank()
    assert {one.id for one in fresh.list()} == told
    assert fresh.search("the gate opens")[0].memory.id == "m1"
    assert fresh.check().ok


def test_a_lost_log_of_a_clean_database_costs_nothing(database: Path, open_bank: Opener) -> None:
    with open_bank() as bank:
        bank.add_many(["the gate opens", "rain falls"])
    for name in ("-wal", "-shm"):
        database.with_name(database.name + name).unlink(missing_ok=True)
    bank = open_bank()
    assert bank.count() == 2
    assert bank.check().ok
