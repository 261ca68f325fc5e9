"""One contract for every index; the exact one is the oracle."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import pytest

from memorybank.errors import InvalidInputError
from memorybank.search.index import HALF_ABOVE, ExactIndex, ReadWriteLock, VectorIndex

D = 16
KINDS: dict[str, Callable[[], Any]] = {
    "exact": lambda: ExactIndex(D),
    "flat": lambda: VectorIndex(D),
    "half": lambda: VectorIndex(D, half_above=0),
    "grows": lambda: VectorIndex(D, half_above=25),
}


def unit(rng: np.random.Generator, n: int, d: int = D) -> Any:
    vectors = rng.standard_normal((n, d)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]()


def searched(index: Any, oracle: ExactIndex, query: Any, k: int) -> list[tuple[int, float]]:
    """Search, with the stored float32 vectors at hand as a bank has them."""
    options = {} if isinstance(index, ExactIndex) else {"fetch": lambda keys: rows_of(oracle, keys)}
    keys, scores = index.search(query, k, **options)
    return list(zip(keys.tolist(), scores.tolist(), strict=True))


def rows_of(oracle: ExactIndex, keys: Any) -> Any:
    return np.stack([oracle._rows[key] for key in keys.tolist()]) if len(keys) else np.empty((0, D), np.float32)


def test_random_changes_give_the_oracles_answers(index: Any) -> None:
    rng, dice, oracle = np.random.default_rng(1), random.Random(1), ExactIndex(D)
    for step in range(400):
        if dice.random() < 0.7 or not len(oracle):
            keys = dice.sample(range(60), dice.randint(1, 4))
            vectors = unit(rng, len(keys))
            index.add(keys, vectors)
            oracle.add(keys, vectors)
        else:
            keys = dice.sample(range(70), dice.randint(1, 6))
            assert index.remove(keys) == oracle.remove(keys)
        query = unit(rng, 1)[0]
        k = dice.choice([1, 2, 5, 100])
        assert searched(index, oracle, query, k) == searched(oracle, oracle, query, k), step
        assert index.ordinals.tolist() == oracle.ordinals.tolist()
        assert len(index) == len(oracle)


def test_the_answer_is_ordered_by_similarity_then_ordinal(index: Any) -> None:
    vector = unit(np.random.default_rng(2), 1)
    for key in [9, 3, 7, 1, 5]:
        index.add([key], vector)
    for k in (1, 2, 3, 5, 9):
        assert index.search(vector[0], k)[0].tolist() == [1, 3, 5, 7, 9][:k]


def test_five_hundred_equal_vectors_at_the_cut(index: Any) -> None:
    rng = np.random.default_rng(3)
    same, other = unit(rng, 1)[0], unit(rng, 500)
    keys = np.random.default_rng(4).permutation(1000)
    index.add(keys, np.concatenate([np.tile(same, (500, 1)), other]))
    assert index.search(same, 7)[0].tolist() == sorted(keys[:500].tolist())[:7]


def test_never_padded(index: Any) -> None:
    vectors = unit(np.random.default_rng(5), 2)
    assert index.search(vectors[0], 10)[0].tolist() == []
    index.add([4, 8], vectors)
    assert index.search(vectors[0], 10)[0].tolist() == [4, 8]
    index.remove([4, 8])
    keys, scores = index.search(vectors[0], 10)
    assert keys.tolist() == scores.tolist() == []
    assert keys.dtype == np.int64


def test_replacing_is_no_second_copy(index: Any) -> None:
    vectors = unit(np.random.default_rng(6), 2)
    index.add([1], vectors[:1])
    index.add([1], vectors[1:])
    keys, scores = index.search(vectors[1], 5)
    assert keys.tolist() == [1]
    assert scores[0] == pytest.approx(1.0, abs=1e-3)
    assert index.remove([1]) == 1
    assert index.remove([1]) == 0


def test_ordinals_of_63_bits(index: Any) -> None:
    vectors = unit(np.random.default_rng(7), 2)
    index.add([2**62, 0], vectors)
    assert index.search(vectors[0], 1)[0].tolist() == [2**62]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(index: Any, value: float) -> None:
    vectors = unit(np.random.default_rng(8), 3)
    index.add([1], vectors[:1])
    bad = vectors[1:].copy()
    bad[1, 3] = value
    with pytest.raises(InvalidInputError, match=r"vector 1 .*not a finite"):
        index.add([2, 1], bad)
    with pytest.raises(InvalidInputError, match="finite"):
        index.search(bad[1], 1)
    assert index.ordinals.tolist() == [1]
    assert index.search(vectors[0], 5)[0].tolist() == [1]


@pytest.mark.parametrize(
    ("keys", "vectors"),
    [
        ([1], np.ones((1, D + 1), np.float32)),
        ([1, 2], np.ones((1, D), np.float32)),
        ([1], np.ones(D, np.float32)),
        ([1], np.ones((1, D), np.int64)),
        ([1], [["a"] * D]),
        ([1, 1], np.ones((2, D), np.float32)),
        ([-1], np.ones((1, D), np.float32)),
        ([1.5], np.ones((1, D), np.float32)),
        ([[1]], np.ones((1, D), np.float32)),
    ],
)
def test_other_shapes_and_kinds_are_refused(index: Any, keys: Any, vectors: Any) -> None:
    with pytest.raises(InvalidInputError):
        index.add(keys, vectors)
    assert len(index) == 0


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_checked(index: Any, k: Any) -> None:
    with pytest.raises(InvalidInputError, match="k must be"):
        index.search(np.ones(D, np.float32), k)


def test_nothing_to_do(index: Any) -> None:
    index.add([], np.empty((0, D), np.float32))
    assert index.remove([]) == 0
    assert "vectors=0" in repr(index)


def test_float64_and_strided_vectors_are_taken(index: Any) -> None:
    vectors = unit(np.random.default_rng(9), 4).astype(np.float64)
    index.add([1, 2], vectors[::2])
    assert index.search(np.asfortranarray(vectors)[2], 1)[0].tolist() == [2]


def test_a_crowd_within_half_precision_is_told_apart() -> None:
    """4,000 vectors whose similarities differ by less than float16 can say: the true best are found, in order."""
    rng, d = np.random.default_rng(10), 384
    centre = unit(rng, 1, d)[0]
    crowd = centre + 2e-4 * rng.standard_normal((4000, d)).astype(np.float32)
    crowd = (crowd / np.linalg.norm(crowd, axis=1, keepdims=True)).astype(np.float32)
    half, exact = VectorIndex(d, half_above=0), ExactIndex(d)
    keys = rng.permutation(4000)
    half.add(keys, crowd)
    exact.add(keys, crowd)
    query = unit(rng, 1, d)[0]
    for k in (1, 10, 200):
        found = half.search(query, k, fetch=lambda wanted: np.stack([exact._rows[key] for key in wanted.tolist()]))
        expected = exact.search(query, k)
        assert found[0].tolist() == expected[0].tolist()
        assert found[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("d", [1, 8, 64, 384, 1024])
def test_the_bound_on_half_precision_holds(d: int) -> None:
    rng = np.random.default_rng(d)
    vectors = unit(rng, 3000, d)
    vectors[:1000] *= np.abs(vectors[:1000]) > 0.5 / np.sqrt(d)  # sparse ones, and large components
    vectors[1000:1100] = np.eye(d, dtype=np.float32)[rng.integers(d, size=100)]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    half = VectorIndex(d, half_above=0)
    half.add(np.arange(3000), vectors)
    query = np.sign(unit(rng, 1, d)) / np.sqrt(d)  # all components alike: errors add up
    scores, keys = half._faiss.search(query.astype(np.float32), 3000)
    true = vectors.astype(np.float64) @ query[0].astype(np.float64)
    assert np.abs(scores[0] - true[keys[0]]).max() <= half._error


def test_it_changes_to_half_precision_above_its_limit() -> None:
    assert HALF_ABOVE == 8_000
    index = VectorIndex(D, half_above=10)
    vectors = unit(np.random.default_rng(11), 11)
    index.add(range(10), vectors[:10])
    assert not index.is_half
    index.add([10], vectors[10:])
    assert index.is_half
    assert index.search(vectors[3], 1)[0].tolist() == [3]


def test_faiss_uses_one_thread_in_every_thread() -> None:
    seen: list[int] = []

    def work() -> None:
        index = VectorIndex(D)
        index.add([1], unit(np.random.default_rng(12), 1))
        index.search(np.ones(D, np.float32), 1)
        seen.append(faiss.omp_get_max_threads())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1]


def test_adding_while_searching_gives_right_answers_under_the_lock() -> None:
    rng, lock, index = np.random.default_rng(13), ReadWriteLock(), VectorIndex(D)
    vectors = unit(rng, 400)
    index.add(range(200), vectors[:200])
    wrong: list[int] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            for key in range(0, 200, 7):
                with lock.reading():
                    if index.search(vectors[key], 1)[0].tolist() != [key]:
                        wrong.append(key)

    readers = [threading.Thread(target=search) for _ in range(3)]
    for reader in readers:
        reader.start()
    for key in range(200, 400):
        with lock.writing():
            index.add([key], vectors[key : key + 1])
        with lock.writing():
            index.remove([key - 1] if key % 2 else [])
            index.add([key - 1] if key % 2 else [], vectors[key - 1 : key] if key % 2 else vectors[:0])
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(index) == 400


def test_readers_share_and_writers_are_alone_and_never_starve() -> None:
    lock, inside, most, events = ReadWriteLock(), [0], [0], []
    together = threading.Barrier(3, timeout=5)
    stop = threading.Event()

    def share() -> None:
        with lock.reading():
            together.wait()

    def read() -> None:
        while not stop.is_set():
            with lock.reading():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0005)
                inside[0] -= 1

    def write() -> None:
        for _ in range(20):
            with lock.writing():
                events.append(inside[0])
        stop.set()

    sharing = [threading.Thread(target=share) for _ in range(3)]
    for thread in sharing:
        thread.start()
    for thread in sharing:
        thread.join()
    threads = [threading.Thread(target=read) for _ in range(3)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert stop.is_set()
    assert events == [0] * 20


def test_the_lock_is_free_again_after_an_error() -> None:
    lock = ReadWriteLock()
    for hold in (lock.reading, lock.writing, lock.reading, lock.writing):
        with pytest.raises(ZeroDivisionError), hold():
            raise ZeroDivisionError
