"""For operators: readiness, metrics, logs, traces, and what becomes of errors that nobody expected."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from memorybank.errors import InvalidInputError, ModelError, StorageError
from memorybank.service import readiness
from memorybank.service.logs import JsonFormatter
from memorybank.service.tracing import Tracing, open_tracing
from tests.support.service import PoisonedEmbedder

BODY = {"memories": [{"text": "The gate opens."}]}
TOLD = "the queen is a wolf"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    """Return the lines that were logged so far, parsed."""
    caplog.set_level(logging.INFO, logger="memorybank")
    formatted: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            formatted.append(JsonFormatter().format(record))  # while the request goes on, as in a real handler

    handler = Keep()
    logging.getLogger("memorybank").addHandler(handler)
    yield lambda: [json.loads(line) for line in formatted]
    logging.getLogger("memorybank").removeHandler(handler)


def numbers(client: TestClient) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def test_readiness_names_what_is_wrong(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0.0)
    client.post("/v1/banks/a/memories", json=BODY)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ready", "checks": {"database": "ok", "model": "ok", "queue": "ok"}},
    )

    def away() -> None:
        raise StorageError("database /srv/secret/place.sqlite: the disk is gone")

    monkeypatch.setattr(client.host, "ping", away)  # type: ignore[attr-defined]
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not-ready")
    assert answer.json()["checks"]["database"] == "it does not answer: see the log"
    assert "secret" not in answer.text
    assert client.get("/healthz").status_code == 200


def test_a_database_that_hangs_is_not_waited_for(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    ended = threading.Event()
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(readiness, "PATIENCE", 0.05)
    monkeypatch.setattr(client.host, "ping", lambda: ended.wait(30))  # type: ignore[attr-defined]
    assert "no answer within" in client.get("/readyz").json()["checks"]["database"]
    ended.set()


def test_it_is_not_ready_before_the_model_is_loaded(serve: Any) -> None:
    class Missing(PoisonedEmbedder):
        def embed(self, texts: Any, *, kind: Any = "passage") -> Any:
            raise ModelError("the embedding model 'x' is not installed at /srv/secret")

    client = serve(Missing())
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["model"]) == (503, "it is not loaded yet")
    stored = client.post("/v1/banks/a/memories", json=BODY)
    assert (stored.status_code, stored.json()["type"]) == (503, "urn:story-context:problem:model-unavailable")
    assert "secret" not in stored.text
    assert int(stored.headers["retry-after"]) >= 1
    assert client.get("/v1/banks/a").status_code == 404, "nothing was changed"


def test_a_bank_of_another_model_is_a_conflict(serve: Any) -> None:
    from memorybank.embedding.testing import HashingEmbedder

    serve().post("/v1/banks/a/memories", json=BODY)
    other = serve(HashingEmbedder(64, name="another-of-the-same-width"))
    for answer in (
        other.post("/v1/banks/a/search", json={"query": "gate"}),
        other.post("/v1/banks/a/memories", json={"memories": [{"text": "More."}]}),
    ):
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:story-context:problem:model-mismatch")
        assert "reembed" in answer.json()["detail"]
        assert "sqlite" not in answer.text


def test_numbers_are_counted(client: TestClient) -> None:
    client.post("/v1/banks/a/memories", json=BODY)
    for _ in range(3):
        client.post("/v1/banks/a/search", json={"query": "gate"})
    client.get("/v1/banks/nobody")
    client.get("/nowhere")
    client.request("BREW", "/v1/banks")
    found = numbers(client)

    def count(name: str, **labels: str) -> float:
        return found[name, tuple(sorted(labels.items()))]

    search = "/v1/banks/{bank}/search"
    assert count("memorybank_requests_total", route=search, method="POST", status="200") == 3
    assert count("memorybank_requests_total", route="/v1/banks/{bank}", method="GET", status="404") == 1
    assert count("memorybank_requests_total", route="unmatched", method="GET", status="404") == 1
    assert count("memorybank_requests_total", route="/v1/banks", method="other", status="405") == 1
    assert count("memorybank_request_seconds_count", route=search, method="POST") == 3
    for phase, times in {"search": 3, "embed": 4, "store": 1, "queue": 5}.items():
        assert count("memorybank_phase_seconds_count", phase=phase) == times, phase
    assert count("memorybank_in_flight") == count("memorybank_queued_calls") == 0
    assert count("memorybank_banks_in_memory") == 2
    assert (count("memorybank_index_misses_total"), count("memorybank_index_hits_total")) == (1, 2)
    assert count("memorybank_index_bytes") > 0
    assert count("memorybank_embedding_texts_total") == 4
    assert count("memorybank_embedding_batch_texts_sum") == 5, "four texts, and one to load the model"


def test_each_application_has_numbers_of_its_own(serve: Any) -> None:
    first, second = serve(), serve()
    first.get("/v1/banks")
    assert "/v1/banks" in first.get("/metrics").text
    assert "/v1/banks" not in second.get("/metrics").text


def test_no_label_holds_what_a_client_chose(client: TestClient) -> None:
    for name in ("wolf", "fox", "hare"):
        client.put(f"/v1/banks/{name}", json={})
        client.get(f"/v1/banks/{name}/memories/{name}")
        client.get(f"/{name}")
        client.request(name.upper(), "/healthz")
    text = client.get("/metrics").text
    assert not re.search("wolf|fox|hare", text, re.IGNORECASE)


def test_a_request_is_one_line(client: TestClient, log: Any) -> None:
    client.post("/v1/banks/a/memories", json=BODY, headers={"X-Request-Id": "mine"})
    client.get("/v1/banks/b", headers={"X-Request-Id": "theirs"})
    first, second = (line for line in log() if line["message"] == "request")
    assert {name: first[name] for name in ("request_id", "method", "route", "status", "key_id", "level")} == {
        "request_id": "mine",
        "method": "POST",
        "route": "/v1/banks/{bank}/memories",
        "status": 200,
        "key_id": None,
        "level": "info",
    }
    assert set(first["phases_ms"]) == {"queue", "embed", "store"}
    assert first["ms"] >= sum(first["phases_ms"].values()) - 0.1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", first["time"])
    assert (second["request_id"], second["status"], second["problem"]) == ("theirs", 404, "bank-not-found")
    client.get("/v1/banks/b/memories", headers={"Host": "evil.example"})
    last = log()[-1]
    assert (last["route"], last["status"], last["problem"]) == ("/v1/banks/{bank}/memories", 403, "forbidden")


def test_no_text_of_a_player_is_logged(serve: Any, log: Any) -> None:
    client = serve(PoisonedEmbedder(RuntimeError(f"cannot embed poison: {TOLD}")))
    for path, body in [
        (f"/v1/banks/{TOLD}/memories", {"memories": [{"text": TOLD, "id": TOLD, "metadata": {TOLD: TOLD}}]}),
        ("/v1/banks/a/memories", {"memories": [{"text": f"poison {TOLD}"}]}),
        ("/v1/banks/a/memories", {"memories": [{"text": TOLD, TOLD: TOLD}]}),
        (f"/v1/banks/{TOLD}/search", {"query": TOLD}),
        ("/v1/banks/a/search", {"query": f"poison {TOLD}", "ranking": TOLD}),
    ]:
        client.post(path, json=body)
    client.get(f"/v1/banks/{TOLD}/memories/{TOLD}", params={"cursor": TOLD})
    client.get(f"/{TOLD}")
    lines = log()
    assert len(lines) >= 7
    assert any(line["message"] == "model-unavailable" for line in lines)
    assert TOLD not in json.dumps(lines)
    assert TOLD.replace(" ", "%20") not in json.dumps(lines)


def test_an_unexpected_error_is_logged_and_not_told(
    client: TestClient, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError(TOLD)

    monkeypatch.setattr(client.host, "banks", broken)  # type: ignore[attr-defined]
    answer = client.get("/v1/banks", headers={"X-Request-Id": "mine"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "urn:story-context:problem:internal",
        "title": "The server has made a mistake",
        "status": 500,
        "detail": "the log of the server says more, under this instance",
        "instance": "urn:request:mine",
    }
    error, request = log()
    assert (error["request_id"], error["level"], error["error"][0]["type"]) == ("mine", "error", "builtins.KeyError")
    assert any("in broken" in frame for frame in error["error"][0]["traceback"])
    assert (request["status"], request["problem"]) == (500, "internal")
    assert TOLD not in json.dumps([error, request])


def formatted(message: str, *arguments: object, error: BaseException | None = None) -> str:
    info = None if error is None else (type(error), error, error.__traceback__)
    return JsonFormatter().format(logging.LogRecord("x", logging.INFO, __file__, 1, message, arguments, info))


@pytest.mark.parametrize(
    "text", ["a\nb\r\x0b\x0c\x85\u2028", "\x1b[2J", '"}\n{"', "\ud83d", "\0", "é" * 10, "x" * 9_000]
)
def test_any_text_is_one_line(text: str) -> None:
    line = formatted("%s", text)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["message"] == text[:2000]


def test_messages_of_errors_are_logged_where_they_quote_no_input() -> None:
    try:
        try:
            raise sqlite3.OperationalError("disk I/O error")
        except sqlite3.Error as error:
            raise StorageError("database x: reading failed") from error
    except StorageError as error:
        said = json.loads(formatted("failed", error=error))["error"]
    assert [(one["type"], one["message"]) for one in said] == [
        ("memorybank.errors.StorageError", "database x: reading failed"),
        ("sqlite3.OperationalError", "disk I/O error"),
    ]
    assert "message" not in json.loads(formatted("failed", error=ValueError(TOLD)))["error"][0]


def test_traces_have_a_span_for_each_request_and_phase(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    tracing = Tracing(exporter, "memorybank")
    monkeypatch.setattr(client.app.state.service, "tracing", tracing)  # type: ignore[attr-defined]
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = {"traceparent": f"00-{trace}-{parent}-01", "X-Request-Id": "mine"}
    client.post("/v1/banks/secret/memories", json={"memories": [{"text": TOLD}]}, headers=headers)
    client.get("/nowhere", headers={"traceparent": "garbled"})
    tracing.close()
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"POST /v1/banks/{bank}/memories", "queue", "store", "embed", "GET unmatched"}
    whole = spans["POST /v1/banks/{bank}/memories"]
    assert f"{whole.context.trace_id:032x}" == trace
    assert f"{whole.parent.span_id:016x}" == parent
    assert dict(whole.attributes) == {
        "http.request.method": "POST",
        "http.route": "/v1/banks/{bank}/memories",
        "http.response.status_code": 200,
        "request.id": "mine",
    }
    for name in ("queue", "store", "embed"):
        assert spans[name].parent.span_id == whole.context.span_id
        assert whole.start_time - 50_000_000 <= spans[name].start_time <= spans[name].end_time
    assert spans["GET unmatched"].parent is None
    assert "secret" not in "".join(span.to_json() for span in spans.values())
    assert TOLD not in "".join(span.to_json() for span in spans.values())


def test_traces_that_cannot_be_had_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'story-context\[otel\]'"):
        open_tracing("http://localhost:1/v1/traces", "x")


def test_without_an_endpoint_there_are_no_traces(client: TestClient) -> None:
    assert client.app.state.service.tracing is None  # type: ignore[attr-defined]
