"""Many threads, many processes, one bank: no crash, no lost write, no wrong answer."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder

pytestmark = pytest.mark.both_engines

Opener = Callable[..., MemoryBank]


def in_threads(number: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work` in so many threads at once; raise what any of them raised."""
    start = threading.Barrier(number)

    def run(place: int) -> Any:
        start.wait()
        return work(place)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))


def test_eight_threads_500_searches_500_adds(open_bank: Opener, random_embedder: Any) -> None:
    bank = open_bank(embedder=random_embedder(16))
    add_and_search(bank, each=63)
    assert open_bank(embedder=random_embedder(16)).count("active") == 8 * 63, "another look at the database"


def test_eight_threads_on_a_bank_in_memory(random_embedder: Any) -> None:
    with MemoryBank.open(embedder=random_embedder(16)) as bank:
        add_and_search(bank, each=25)
        assert bank.count("active") == 8 * 25


def add_and_search(bank: MemoryBank, each: int) -> None:
    def work(thread: int) -> None:
        for number in range(each):
            text = f"thread {thread} number {number}"
            stored = bank.add(text)
            found = bank.search(text, limit=3)
            assert (found[0].memory.id, found[0].similarity) == (stored.id, 1.0)
            assert len({one.memory.id for one in found}) == len(found)

    in_threads(8, work)
    assert bank.count() == 8 * each
    assert sorted(int(one.id[1:]) for one in bank.list()) == list(range(1, 8 * each + 1))
    assert bank.check().ok


def test_threads_that_delete_what_others_search(open_bank: Opener, random_embedder: Any) -> None:
    bank = open_bank(embedder=random_embedder(16))
    bank.add_many(f"kept {n}" for n in range(20))

    def work(thread: int) -> None:
        for number in range(30):
            if thread % 2:
                stored = bank.add(f"brief {thread} {number}")
                bank.edit(stored.id, text=f"brief {thread} {number} changed")
                bank.forget(stored.id)
                bank.restore(stored.id)
                bank.delete(stored.id)
                bank.mark_used(["m1"])
            else:
                found = bank.search(f"kept {number % 20}", limit=15)
                assert found[0].memory.text == f"kept {number % 20}"
                assert len(found) == 15

    in_threads(4, work)
    assert bank.count() == 20
    assert bank.get("m1").use_count == 60
    assert bank.check().ok


def test_the_same_text_from_all_threads_is_one_memory(open_bank: Opener) -> None:
    bank = open_bank()
    assert set(in_threads(8, lambda _: bank.add("the gate opens").id)) == {"m1"}
    assert set(in_threads(8, lambda _: bank.add("a wolf howls", id="w").id)) == {"w"}
    assert bank.count() == 2


def test_forty_threads_on_banks_of_their_own_and_on_one(open_bank: Opener) -> None:
    banks = [open_bank(name) for name in "abcd"]

    def work(place: int) -> list[str]:
        bank = banks[place % 4]
        return [bank.add(f"{place} says {number}").id for number in range(5)]

    given = in_threads(40, work)
    for bank in banks:
        assert bank.count() == 50
        assert bank.check().ok
    assert all(ids == sorted(ids, key=lambda id_: int(id_[1:])) for ids in given)


def test_two_processes_write_at_once(
    open_bank: Opener, database: Any, child: Callable[..., subprocess.Popen[str]]
) -> None:
    program = """
        import sys
        from memorybank import MemoryBank
        from memorybank.embedding.testing import HashingEmbedder
        with MemoryBank.open(sys.argv[1], embedder=HashingEmbedder()) as bank:
            for number in range(40):
                text = f"process {sys.argv[2]} number {number}"
                stored = bank.add(text)
                assert any(one.memory.id == stored.id for one in bank.search(text, limit=5)), text
        print("done")
    """
    processes = [child(program, database, name) for name in "ab"]
    results = [process.communicate(timeout=120) for process in processes]
    assert [out.strip() for out, _ in results] == ["done"] * 2, results
    bank = open_bank()
    assert bank.count() == 80
    assert {one.id for one in bank.list()} == {f"m{n}" for n in range(1, 81)}
    assert [one.ordinal for one in bank.list()] == list(range(1, 81))
    for name in "ab":  # each one's memories in the order in which it wrote them
        numbers = [int(one.text.split()[-1]) for one in bank.list() if one.text.startswith(f"process {name}")]
        assert numbers == list(range(40))
    assert bank.check().ok


def test_a_slow_model_holds_up_neither_readers_nor_writers(open_bank: Opener) -> None:
    asked, go = threading.Event(), threading.Event()

    class Slow(HashingEmbedder):
        def embed(self, texts: Any, *, kind: Any = "passage") -> Any:
            if "slow" in texts:
                asked.set()
                assert go.wait(20)
            return super().embed(texts, kind=kind)

    bank = open_bank(embedder=Slow())
    bank.add("the gate opens")
    waiting = [threading.Thread(target=call, args=("slow",)) for call in (bank.add, bank.search)]
    for thread in waiting:
        thread.start()
    assert asked.wait(20)
    bank.add("a wolf howls")
    assert len(bank.search("wolf")) == 2
    bank.pin("m1")
    assert bank.check().ok
    assert all(thread.is_alive() for thread in waiting), "they wait still"
    go.set()
    for thread in waiting:
        thread.join()
    assert bank.count() == 3


def test_reembedding_beside_searches_and_writes(open_bank: Opener, random_embedder: Any) -> None:
    from memorybank import ModelMismatchError

    bank = open_bank(embedder=random_embedder(16, "one"))
    bank.add_many(f"text {n}" for n in range(200))
    stop = threading.Event()
    wrong: list[Any] = []

    def work(thread: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                bank.add(f"thread {thread} number {number}")
                found = bank.search(f"text {number % 200}", limit=1)[0]
            except ModelMismatchError:
                continue  # said by a call that had asked the old model just before
            if (found.memory.text, found.similarity) != (f"text {number % 200}", 1.0):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for name in ("two", "three", "four"):
        other = random_embedder(16, name, fixed={f"text {n}": [0.0] * n + [1.0] + [0.0] * (15 - n) for n in range(16)})
        bank.reembed(other)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert {one.model for one in bank.list()} == {"four"}
    assert bank.check().ok
