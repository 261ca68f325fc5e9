"""What was acknowledged is there after anything: kill, term, errors in between, a full disk."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from memorybank import MemoryBank, StorageError

Opener = Callable[..., MemoryBank]

NURSERY = """
    # Imports everything once, then forks a writer for each line: path, seed. Says how each writer ended.
    import os, signal, sys
    import faiss, numpy, sqlalchemy
    from memorybank import MemoryBank
    from memorybank.bank.writer import BankWriter
    from memorybank.embedding.testing import HashingEmbedder

    def write(path, seed):
        bank = MemoryBank.open(path, embedder=HashingEmbedder())
        for number in range(100_000):
            id_ = f"r{seed}-{number}"
            bank.add_many([
                {"id": id_, "text": f"round {seed} number {number}"}, {"id": id_ + "b", "text": f"twin {id_}"},
            ])
            print("add", id_, flush=True)
            if number % 3 == 2:
                bank.edit(id_, text=f"edited {id_}")
                print("edit", id_, flush=True)
            if number % 5 == 4:
                bank.delete(id_, id_ + "b")
                print("delete", id_, flush=True)
            if number % 7 == 6:
                bank.search(f"round {seed}")

    for line in sys.stdin:
        path, seed = line.split()
        pid = os.fork()
        if pid == 0:
            write(path, int(seed))
        print("pid", pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""


def acknowledged(lines: list[str]) -> dict[str, str]:
    """Return for each id the last thing that was acknowledged about it."""
    return {id_: action for action, id_ in (line.split() for line in lines if line.count(" ") == 1)}


def survives(bank: MemoryBank, seed: int, told: dict[str, str]) -> None:
    there = {one.id: one.text for one in bank.list()}
    for id_, action in told.items():
        number = int(id_.split("-")[1])
        if action == "delete":
            assert id_ not in there
        elif id_ in there:
            assert there[id_] in (f"round {seed} number {number}", f"edited {id_}")
            assert action == "add" or there[id_] == f"edited {id_}"
        else:  # a deletion may have been done and not been told any more; nothing else may be missing
            assert number % 5 == 4
            assert id_ == list(told)[-1]
    twins = {id_ for id_ in there if id_.startswith(f"r{seed}-") and not id_.endswith("b")}
    assert {f"{id_}b" for id_ in twins} == {id_ for id_ in there if id_.startswith(f"r{seed}-") and id_.endswith("b")}


def lines_until(stream: IO[str], first_word: str) -> tuple[list[str], str]:
    """Return the lines before one that begins with a word, and the rest of that one."""
    lines: list[str] = []
    for line in stream:
        word, _, rest = line.strip().partition(" ")
        if word == first_word:
            return lines, rest
        lines.append(line.strip())
    raise AssertionError(f"the writers are gone: {lines}")


@pytest.mark.parametrize(("signal_", "rounds"), [(signal.SIGKILL, 8), (signal.SIGTERM, 2)])
def test_killed_while_writing(
    database: Path, open_bank: Opener, child: Callable[..., subprocess.Popen[str]], signal_: int, rounds: int
) -> None:
    """Rounds on one database; the moment of the signal moves over the whole cycle of a write."""
    dice, written, process = random.Random(5), 0, child(NURSERY)
    bank = open_bank()
    assert process.stdin is not None
    assert process.stdout is not None
    for seed in range(rounds):
        process.stdin.write(f"{database} {seed}\n")
        process.stdin.flush()
        lines, pid = lines_until(process.stdout, "pid")
        lines += [process.stdout.readline().strip() for _ in range(dice.randint(1, 25))]
        time.sleep(dice.random() * 0.004)
        os.kill(int(pid), signal_)
        rest, code = lines_until(process.stdout, "ended")
        assert int(code) == -signal_
        told = acknowledged([*lines, *rest])
        written += len(told)
        fresh = open_bank()
        for seen in (bank, fresh):
            survives(seen, seed, told)
            assert seen.check().ok
        fresh.close()
    assert written > rounds


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
