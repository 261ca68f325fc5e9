"""What happens when more comes than can be done: admission, deadlines, a slow or a stuck model."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from memorybank.errors import DeadlineError, OverloadedError
from memorybank.service.state import Deadline, RequestState
from memorybank.service.workers import WorkerPool
from tests.support.service import LONG, GatedEmbedder

SEARCH = "/v1/banks/a/search"


@pytest.fixture
def gated() -> Any:
    embedder = GatedEmbedder()
    embedder.gate.set()
    yield embedder
    embedder.gate.set()


def filled(client: TestClient) -> TestClient:
    """Store a memory, so that a search has to embed; and wait until the model is loaded."""
    answer = client.post("/v1/banks/a/memories", json={"memories": [{"text": "The gate opens."}]})
    assert answer.status_code == 200, answer.text
    wait_for(lambda: client.get("/readyz").status_code == 200)
    return client


def wait_for(is_so: Any) -> None:
    end = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def search(client: TestClient, pool: ThreadPoolExecutor, query: str, **headers: str) -> Future[Any]:
    return pool.submit(client.post, SEARCH, json={"query": query}, headers=headers)


def test_health_answers_at_once_while_the_model_sleeps(serve: Any, gated: GatedEmbedder) -> None:
    client = filled(serve(gated))
    with ThreadPoolExecutor(10) as pool:
        gated.entered.clear()
        gated.gate.clear()
        searches = [search(client, pool, f"query {number}") for number in range(10)]
        assert gated.entered.wait(LONG)
        wait_for(lambda: client.app.state.service.pool.inside == 10)  # type: ignore[attr-defined]
        fastest = min(timed(client) for _ in range(10))
        gated.gate.set()
        assert [call.result(LONG).status_code for call in searches] == [200] * 10
    assert fastest < 0.1
    assert len([texts for texts, kind in gated.steps if kind == "query"]) < 10, "what waited was embedded together"


def timed(client: TestClient) -> float:
    begin = time.perf_counter()
    assert client.get("/healthz").json() == {"status": "ok"}
    return time.perf_counter() - begin


def test_beyond_those_who_may_wait_calls_are_sent_away(serve: Any, gated: GatedEmbedder) -> None:
    client = filled(serve(gated, threads=2, waiting=3))
    with ThreadPoolExecutor(8) as pool:
        gated.gate.clear()
        inside = [search(client, pool, f"query {number}") for number in range(5)]
        wait_for(lambda: client.app.state.service.pool.inside == 5)  # type: ignore[attr-defined]
        answer = client.post(SEARCH, json={"query": "one too many"})
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:story-context:problem:overloaded")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        wait_for(lambda: client.get("/readyz").status_code == 503)
        assert client.get("/readyz").json()["checks"]["queue"] == "all threads are busy and nobody else may wait"
        assert client.get("/healthz").status_code == 200
        numbers = client.get("/metrics").text
        assert "memorybank_in_flight 5.0" in numbers
        assert "memorybank_queued_calls 3.0" in numbers
        assert 'memorybank_rejections_total{reason="overloaded"} 1.0' in numbers
        gated.gate.set()
        assert [call.result(LONG).status_code for call in inside] == [200] * 5
    assert client.post(SEARCH, json={"query": "now there is room"}).status_code == 200


def test_too_many_texts_before_the_model(serve: Any, gated: GatedEmbedder) -> None:
    client = filled(serve(gated, max_queued_texts=2))
    with ThreadPoolExecutor(8) as pool:
        gated.entered.clear()
        gated.gate.clear()
        calls = [search(client, pool, "first")]
        assert gated.entered.wait(LONG)
        calls += [search(client, pool, "second"), search(client, pool, "third")]
        embedder = client.host.embedder  # type: ignore[attr-defined]
        wait_for(lambda: embedder.batching.queued == 2)
        answer = client.post(SEARCH, json={"query": "fourth"})
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:story-context:problem:overloaded")
        assert "memorybank_queued_texts 2.0" in client.get("/metrics").text
        gated.gate.set()
        assert [call.result(LONG).status_code for call in calls] == [200] * 3


def test_a_stuck_model_lets_callers_go_and_is_seen(
    serve: Any, gated: GatedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = filled(serve(gated))  # what is to succeed has all the time that it needs
    client = serve(gated, deadline_seconds=0.3)
    monkeypatch.setattr(client.app.state.service.readiness, "_stuck_seconds", 0.05)  # type: ignore[attr-defined]
    gated.gate.clear()
    answer = client.post(SEARCH, json={"query": "anybody there?"})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:story-context:problem:deadline-exceeded")
    assert answer.headers["retry-after"] == "1"
    wait_for(lambda: client.get("/readyz").status_code == 503)
    assert "busy with one step" in client.get("/readyz").json()["checks"]["queue"]
    assert patient.get("/v1/banks/a").status_code == 200, "what needs no model still works"
    gated.gate.set()
    wait_for(lambda: client.get("/readyz").status_code == 200)
    assert patient.post(SEARCH, json={"query": "anybody there?"}).status_code == 200


def test_a_caller_can_have_less_patience_and_not_more(serve: Any, gated: GatedEmbedder) -> None:
    client = filled(serve(gated, deadline_seconds=LONG))
    gated.gate.clear()
    begin = time.monotonic()
    assert client.post(SEARCH, json={"query": "x"}, headers={"X-Deadline-Ms": "100"}).status_code == 503
    assert time.monotonic() - begin < LONG / 2
    gated.gate.set()
    hasty = serve(gated, deadline_seconds=0.2)
    gated.gate.clear()
    assert hasty.post(SEARCH, json={"query": "y"}, headers={"X-Deadline-Ms": "600000"}).status_code == 503
    for wrong in ("0", "-1", "1.5", "soon", "", "9" * 12):
        assert client.get("/v1/banks", headers={"X-Deadline-Ms": wrong}).status_code == 422, wrong


def test_a_call_that_timed_out_in_the_queue_is_never_begun(serve: Any, gated: GatedEmbedder) -> None:
    client = filled(serve(gated, threads=1, waiting=5))
    with ThreadPoolExecutor(2) as pool:
        gated.entered.clear()
        gated.gate.clear()
        first = search(client, pool, "first")
        assert gated.entered.wait(LONG)
        late = client.put("/v1/banks/late", json={}, headers={"X-Deadline-Ms": "50"})
        assert late.status_code == 503
        gated.gate.set()
        assert first.result(LONG).status_code == 200
    assert client.get("/v1/banks/late").status_code == 404


def state(seconds: float = LONG) -> RequestState:
    return RequestState("x", Deadline(seconds))


def test_a_thread_that_is_not_back_yet_counts() -> None:
    pool, gate = WorkerPool(1, 0), threading.Event()

    async def main() -> None:
        with pool.admitted(), pytest.raises(DeadlineError):
            await pool.run(lambda: gate.wait(LONG), state(0.05))
        assert pool.is_full
        with pytest.raises(OverloadedError), pool.admitted():
            pass
        gate.set()
        while pool.is_full:
            await asyncio.sleep(0.01)
        with pool.admitted():
            assert await pool.run(lambda: "back", state()) == "back"

    asyncio.run(main())
    assert pool.close(LONG)


def test_what_work_raises_is_raised_where_it_is_awaited() -> None:
    pool = WorkerPool(1, 0)

    def fails() -> None:
        raise TimeoutError("the work's own")

    async def main() -> None:
        with pytest.raises(TimeoutError, match="the work's own"):
            await pool.run(fails, state())

    asyncio.run(main())
    assert (pool.inside, pool.queued) == (0, 0)
    assert pool.close(LONG)


def test_a_pool_that_closes_waits_no_longer_than_it_is_told() -> None:
    pool, gate = WorkerPool(1, 0), threading.Event()

    async def main() -> None:
        with pytest.raises(DeadlineError):
            await pool.run(lambda: gate.wait(LONG), state(0.01))

    asyncio.run(main())
    assert not pool.close(0.05)
    gate.set()
    assert pool.close(LONG)


def test_forty_posts_at_once_are_all_answered_in_order(client: TestClient) -> None:
    """Each caller stores its own memories one after the other; none is lost, and each caller's are in their order."""

    def post(number: int) -> int:
        for step in range(3):
            body = {"memories": [{"text": f"caller {number} step {step}", "id": f"{number}-{step}"}]}
            answer = client.post(f"/v1/banks/{number % 4}/memories", json=body)
            assert answer.status_code == 200, answer.text
        return answer.status_code

    with ThreadPoolExecutor(40) as pool:
        assert list(pool.map(post, range(40))) == [200] * 40
    for bank in range(4):
        memories = client.get(f"/v1/banks/{bank}/memories", params={"limit": 1000}).json()["memories"]
        assert len(memories) == 30
        for caller in range(bank, 40, 4):
            mine = [memory["id"] for memory in memories if memory["id"].startswith(f"{caller}-")]
            assert mine == [f"{caller}-{step}" for step in range(3)]
