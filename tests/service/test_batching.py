"""The one embedding thread: batches, order, bounds, deadlines, and what breaks whom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from memorybank.embedding import Embedder
from memorybank.embedding.cache import VectorCache
from memorybank.embedding.testing import HashingEmbedder, RecordingEmbedder
from memorybank.errors import DeadlineError, InvalidInputError, ModelError, OverloadedError
from memorybank.service import batching
from memorybank.service.batching import BATCH, BatchingEmbedder
from memorybank.service.embedding import ServiceEmbedder
from memorybank.service.state import Deadline, RequestState, current
from tests.support.service import LONG, GatedEmbedder, PoisonedEmbedder


class Callers:
    """Threads that call an embedder, and are known to wait in it before the test goes on."""

    def __init__(self, embedder: BatchingEmbedder) -> None:
        self.embedder = embedder
        self.pool = ThreadPoolExecutor(64)

    def call(self, *texts: str, kind: Any = "passage", seconds: float | None = None) -> Future[Any]:
        def run() -> Any:
            if seconds is not None:
                current.set(RequestState("x", Deadline(seconds)))
            return self.embedder.embed(list(texts), kind=kind)

        return self.pool.submit(run)

    def until_queued(self, number: int) -> None:
        wait_for(lambda: self.embedder.queued == number)


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


@pytest.fixture
def gated() -> Any:
    embedder = GatedEmbedder()
    yield embedder
    embedder.gate.set()


def test_it_is_an_embedder_like_the_one_inside() -> None:
    inner = HashingEmbedder(32)
    embedder = BatchingEmbedder(inner)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimensions, embedder.fingerprint) == ("hashing-32", 32, "hashing-32")
    texts = [f"The wolf number {number} howls." for number in range(100)] + ["\ud83d", "a\r\nb"]
    for kind in ("query", "passage"):
        np.testing.assert_array_equal(embedder.embed(texts, kind=kind), inner.embed(texts, kind=kind))  # type: ignore[arg-type]
    assert embedder.embed([]).shape == (0, 32)
    with pytest.raises(InvalidInputError):
        embedder.embed("one text")
    embedder.close()


def test_what_waits_is_embedded_together(gated: GatedEmbedder) -> None:
    callers = Callers(BatchingEmbedder(gated))
    first = callers.call("first", kind="query")
    assert gated.entered.wait(LONG)
    others = [callers.call(f"query {number}", kind="query") for number in range(40)]
    callers.until_queued(40)
    gated.gate.set()
    for number, other in enumerate(others):
        np.testing.assert_array_equal(other.result(LONG), HashingEmbedder().embed([f"query {number}"], kind="query"))
    assert first.result(LONG).shape == (1, 64)
    assert [len(texts) for texts, _ in gated.steps] == [1, BATCH, 8]


def test_queries_come_before_passages_but_not_for_ever(gated: GatedEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCH", 1)
    callers = Callers(BatchingEmbedder(gated))
    calls = [callers.call("first")]
    assert gated.entered.wait(LONG)
    calls.append(callers.call("p1", "p2"))
    callers.until_queued(2)
    calls += [callers.call(f"q{number}", kind="query") for number in range(6)]
    callers.until_queued(8)
    gated.gate.set()
    for call in calls:
        call.result(LONG)
    kinds = "".join(kind[0] for _, kind in gated.steps)
    assert kinds == "p" + "qqqq" + "p" + "qq" + "p"


def test_long_passages_go_in_small_steps(gated: GatedEmbedder) -> None:
    callers = Callers(BatchingEmbedder(gated))
    gated.gate.set()
    texts = [f"{number} {'x' * 7_000}" for number in range(5)]
    callers.call(*texts, "y" * 50_000, "z").result(LONG)
    assert [len(step) for step, _ in gated.steps] == [2, 2, 1, 1, 1]


def test_the_same_text_is_embedded_once_for_all_who_ask(gated: GatedEmbedder) -> None:
    callers = Callers(BatchingEmbedder(gated))
    calls = [callers.call("begun")]
    assert gated.entered.wait(LONG)
    calls += [callers.call("begun", "waiting"), callers.call("waiting", "waiting"), callers.call("begun")]
    begun, waiting = callers.embedder._begun, callers.embedder._waiting["passage"]
    wait_for(
        lambda: begun["passage", "begun"].waiters == 3 and "waiting" in waiting and waiting["waiting"].waiters == 2
    )
    gated.gate.set()
    rows = [call.result(LONG) for call in calls]
    assert [texts for texts, _ in gated.steps] == [("begun",), ("waiting",)]
    np.testing.assert_array_equal(rows[1], HashingEmbedder().embed(["begun", "waiting"]))
    assert rows[2].shape == (2, 64)
    rows[2][0] = 0
    assert rows[1][1].any(), "each caller may change what he has got"


def test_a_poisonous_text_fails_only_those_who_sent_it(gated: GatedEmbedder) -> None:
    embedder = BatchingEmbedder(PoisonedEmbedder())
    embedder._embedder.embed = gate(gated, embedder._embedder.embed)  # type: ignore[method-assign]
    callers = Callers(embedder)
    calls = [callers.call("first")]
    assert gated.entered.wait(LONG)
    calls += [callers.call("good"), callers.call("poison"), callers.call("good too", "poison"), callers.call("fine")]
    callers.until_queued(4)
    gated.gate.set()
    for place in (0, 1, 4):
        assert calls[place].result(LONG).shape == (1, 64)
    for place in (2, 3):
        with pytest.raises(ModelError, match="it failed with RuntimeError") as raised:
            calls[place].result(LONG)
        assert "poison" not in str(raised.value)
        assert isinstance(raised.value.__cause__, RuntimeError)


def gate(gated: GatedEmbedder, embed: Any) -> Any:
    def waits(texts: Any, *, kind: Any = "passage") -> Any:
        gated.entered.set()
        assert gated.gate.wait(LONG)
        return embed(texts, kind=kind)

    return waits


class Panic(BaseException):
    """What a Rust library raises: no Exception."""


@pytest.mark.parametrize("error", [Panic("a run of spaces"), KeyboardInterrupt(), ModelError("the files are gone")])
def test_no_error_ends_the_thread(error: BaseException) -> None:
    embedder = BatchingEmbedder(PoisonedEmbedder(error))
    for _ in range(2):
        with pytest.raises(ModelError):
            embedder.embed(["poison"])
    assert embedder.embed(["fine"]).shape == (1, 64)


def test_a_model_that_gives_too_few_vectors_is_found_out() -> None:
    class Short(HashingEmbedder):
        def embed(self, texts: Any, *, kind: Any = "passage") -> Any:
            return super().embed(texts, kind=kind)[:1]

    embedder = BatchingEmbedder(Short())
    assert embedder.embed(["one", "two"]).shape == (2, 64), "one by one it gives them all"

    class Nothing(HashingEmbedder):
        def embed(self, texts: Any, *, kind: Any = "passage") -> Any:
            return super().embed(texts, kind=kind)[:0]

    with pytest.raises(ModelError, match="0 vectors for 1 texts"):
        BatchingEmbedder(Nothing()).embed(["one"])


def test_who_comes_when_too_many_wait_is_sent_away(gated: GatedEmbedder) -> None:
    callers = Callers(BatchingEmbedder(gated, max_queued=10))
    calls = [callers.call("first")]
    assert gated.entered.wait(LONG)
    calls.append(callers.call(*[f"p{number}" for number in range(8)]))
    callers.until_queued(8)
    with pytest.raises(OverloadedError, match="8 texts wait") as raised:
        callers.call("q1", "q2", "q3", kind="query").result(LONG)
    assert 0 < raised.value.retry_after <= 60
    calls.append(callers.call("p1", "p2", "new one", "new two"))
    callers.until_queued(10)
    gated.gate.set()
    assert [call.result(LONG).shape[0] for call in calls] == [1, 8, 4]
    many = callers.call(*[f"n{number}" for number in range(50)])
    assert many.result(LONG).shape == (50, 64), "with nothing in the queue, one call may have any length"


def test_a_deadline_frees_the_caller_and_drops_what_has_not_begun(gated: GatedEmbedder) -> None:
    embedder = BatchingEmbedder(gated)
    callers = Callers(embedder)
    first = callers.call("first", seconds=2)
    assert gated.entered.wait(LONG)
    late, kept = callers.call("late", "both", seconds=1), callers.call("both", seconds=LONG)
    for call in (first, late):
        with pytest.raises(DeadlineError):
            call.result(LONG)
    callers.until_queued(1)
    assert embedder.step_seconds > 0
    gated.gate.set()
    assert kept.result(LONG).shape == (1, 64)
    assert [texts for texts, _ in gated.steps] == [("first",), ("both",)]
    wait_for(lambda: embedder.step_seconds == 0)


def test_a_deadline_that_has_passed_embeds_nothing() -> None:
    inner = RecordingEmbedder()
    callers = Callers(BatchingEmbedder(inner))
    with pytest.raises(DeadlineError):
        callers.call(*map(str, range(500)), seconds=0).result(LONG)


def test_patience_is_for_those_outside_of_requests(gated: GatedEmbedder) -> None:
    with pytest.raises(DeadlineError):
        BatchingEmbedder(gated, patience=0.05).embed(["x"])


def test_closing_tells_those_who_wait(gated: GatedEmbedder) -> None:
    callers = Callers(BatchingEmbedder(gated))
    begun = callers.call("begun")
    assert gated.entered.wait(LONG)
    waiting = callers.call("waiting")
    callers.until_queued(1)
    callers.embedder.close()
    gated.gate.set()
    assert begun.result(LONG).shape == (1, 64)
    with pytest.raises(ModelError, match="closed"):
        waiting.result(LONG)
    with pytest.raises(ModelError, match="closed"):
        callers.call("later").result(LONG)


def test_many_threads_get_their_own_vectors() -> None:
    """16 threads with 50 calls each, half of them the same texts: the same vectors as one thread."""
    embedder, plain = BatchingEmbedder(HashingEmbedder()), HashingEmbedder()
    wrong = []

    def work(number: int) -> None:
        for call in range(50):
            texts = [f"thread {number} call {call}", f"call {call} of all", "x" * (call + 1)]
            if not np.array_equal(embedder.embed(texts), plain.embed(texts)):
                wrong.append(texts)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert embedder.queued == 0


def test_known_vectors_wait_for_nobody(gated: GatedEmbedder, tmp_path: Any) -> None:
    with VectorCache(tmp_path / "vectors.sqlite") as cache:
        embedder = ServiceEmbedder(gated, cache=cache)
        gated.gate.set()
        embedder.embed(["known", "known too"])
        gated.gate.clear()
        callers = Callers(embedder)  # type: ignore[arg-type]
        waits = callers.call("new")
        wait_for(lambda: len(gated.steps) == 2)
        assert callers.call("known", "known too").result(LONG).shape == (2, 64)
        gated.gate.set()
        waits.result(LONG)
        assert (embedder.asked, embedder.missed) == (5, 3)


def test_the_model_is_loaded_in_the_background_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    class Late(HashingEmbedder):
        tries = 0

        def embed(self, texts: Any, *, kind: Any = "passage") -> Any:
            self.tries += 1
            if self.tries == 1:
                raise ModelError("the files are not there yet")
            return super().embed(texts, kind=kind)

    embedder = ServiceEmbedder(Late())
    embedder.warm_up()
    wait_for(lambda: embedder.batching.has_embedded)
    assert "the files are not there yet" in caplog.text
    embedder.close()
