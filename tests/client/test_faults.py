"""What the clients make of a service that misbehaves: one clear error of their own, and no key given away."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from memorybank import InvalidInputError, MemoryBankError, MemoryNotFoundError, ModelError, StorageError
from memorybank.client import (
    ForbiddenError,
    ProtocolError,
    RateLimitedError,
    RemoteBank,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
)
from memorybank.errors import (
    ActionNotFoundError,
    BankNotFoundError,
    DeadlineError,
    ModelMismatchError,
    NoRerankerError,
    OverloadedError,
    PreconditionError,
    SummaryNotFoundError,
)
from memorybank.writing.rhythm import Rhythm
from tests.support.fake_service import (
    MEMORY,
    FakeService,
    Hanging,
    broken_off,
    half,
    memories,
    ok,
    problem,
    raw,
)

KEY = "mb_id_secret"


@pytest.mark.parametrize(
    ("status", "slug", "error"),
    [
        (422, "invalid-request", InvalidInputError),
        (400, "invalid-request", InvalidInputError),
        (413, "body-too-large", InvalidInputError),
        (401, "unauthorized", UnauthorizedError),
        (403, "forbidden", ForbiddenError),
        (404, "memory-not-found", MemoryNotFoundError),
        (404, "bank-not-found", BankNotFoundError),
        (412, "precondition-failed", PreconditionError),
        (409, "model-mismatch", ModelMismatchError),
        (409, "no-reranker", NoRerankerError),
        (409, "bank-exists", PreconditionError),
        (404, "action-not-found", ActionNotFoundError),
        (404, "summary-not-found", SummaryNotFoundError),
        (409, "conflict", ServiceError),
        (500, "internal", ServiceError),
        (404, "not-found", ProtocolError),
        (405, "method-not-allowed", ProtocolError),
        (415, "unsupported-media-type", ProtocolError),
        (418, "made-up-tomorrow", ServiceError),
    ],
)
def test_a_refusal_is_the_exception_of_the_bank_and_is_not_repeated(
    remote: RemoteBank, service: FakeService, status: int, slug: str, error: type[MemoryBankError]
) -> None:
    service.will(problem(status, slug, "what is wrong"))
    with pytest.raises(error) as caught:
        remote.add("x")
    assert type(caught.value) is error
    assert len(service.asked) == 1
    told = caught.value if isinstance(caught.value, ServiceError) else caught.value.__cause__
    assert isinstance(told, ServiceError)
    assert (told.status, told.request_id) == (status, "r7")
    if error is not ProtocolError:
        assert told.problem_type == slug
        assert "what is wrong" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "slug", "error"),
    [
        (429, "rate-limited", RateLimitedError),
        (503, "overloaded", OverloadedError),
        (503, "storage-unavailable", StorageError),
        (503, "model-unavailable", ModelError),
        (503, "deadline-exceeded", DeadlineError),
        (503, "something-new", UnavailableError),
    ],
)
def test_what_may_succeed_later_is_repeated_when_the_service_says(
    connect: Callable[..., RemoteBank], service: FakeService, status: int, slug: str, error: type[MemoryBankError]
) -> None:
    bank = connect(retries=2)
    service.will(*[problem(status, slug, Retry_After="0")] * 2, memories(1))
    assert bank.add("The gate opens.").id == "m1"
    service.will(*[problem(status, slug, Retry_After="0")] * 3)
    with pytest.raises(error) as caught:
        bank.add("x")
    assert len(service.asked) == 6
    told = caught.value if isinstance(caught.value, ServiceError) else caught.value.__cause__
    assert isinstance(told, ServiceError)
    assert told.retry_after == 0


def test_overload_and_limits_say_when_to_come_back(connect: Callable[..., RemoteBank], service: FakeService) -> None:
    bank = connect()
    service.will(problem(429, "rate-limited", Retry_After="3600"))
    with pytest.raises(RateLimitedError) as limited:
        bank.add("x")
    assert limited.value.retry_after == 3600
    service.will(problem(503, "overloaded", Retry_After="90"))
    with pytest.raises(OverloadedError) as overloaded:
        bank.add("x")
    assert overloaded.value.retry_after == 90
    assert len(service.asked) == 2, "nobody waits an hour inside a call"


def test_the_fields_at_fault_are_named(remote: RemoteBank, service: FakeService) -> None:
    service.will(problem(422, "invalid-request", "two", errors=[{"field": "memories.0.text", "message": "too odd"}, 3]))
    with pytest.raises(InvalidInputError, match=r"^two; memories\.0\.text: too odd$"):
        remote.add("x")


@pytest.mark.parametrize("behaviour", [broken_off, half], ids=["without a word", "half a body"])
def test_a_broken_connection(connect: Callable[..., RemoteBank], service: FakeService, behaviour: Any) -> None:
    bank = connect(retries=1)
    service.will(behaviour, memories(1))
    assert bank.add("The gate opens.").text == "The gate opens."
    service.will(behaviour, behaviour)
    with pytest.raises(UnavailableError, match="it broke off") as caught:
        bank.add("x")
    assert isinstance(caught.value, StorageError)
    assert len(service.asked) == 4


def test_a_service_that_hangs(connect: Callable[..., RemoteBank], service: FakeService, hanging: Hanging) -> None:
    bank = connect(timeout=2, retries=1, deadline=60)
    service.will(hanging, memories(1))
    assert bank.add("x").id == "m1"
    service.will(hanging, hanging)
    with pytest.raises(DeadlineError, match=r"no answer within 2 seconds") as caught:
        bank.add("x")
    assert isinstance(caught.value.__cause__, UnavailableError)


def test_the_deadline_is_for_all_attempts(
    connect: Callable[..., RemoteBank], service: FakeService, hanging: Hanging
) -> None:
    bank = connect(timeout=60, retries=100, deadline=2)
    service.usual = hanging
    started = time.monotonic()
    with pytest.raises(DeadlineError):
        bank.add("x")
    assert time.monotonic() - started < 20
    assert len(service.asked) <= 1


def test_a_body_that_drips(connect: Callable[..., RemoteBank], service: FakeService, hanging: Hanging) -> None:
    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not hanging.over.wait(0.05):
            handler.wfile.write(b" ")

    bank = connect(timeout=0.4, retries=0)
    service.will(drip)
    with pytest.raises(DeadlineError):
        bank.add("x")


def test_nobody_is_there(connect: Callable[..., RemoteBank]) -> None:
    with socket.socket() as bound:  # and never listening
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(UnavailableError, match="cannot be reached") as caught:
            connect(url=url, retries=2, key=KEY).mark_used(["m1"])
    assert url in str(caught.value)


def test_what_may_not_be_done_twice_is_repeated_only_if_it_was_not_done(
    connect: Callable[..., RemoteBank], service: FakeService
) -> None:
    bank = connect(retries=1)
    calls: list[Callable[[], Any]] = [
        lambda: bank.mark_used(["m1"]),
        lambda: bank.delete("m1", "m2"),
        lambda: bank.delete("m1", if_match="0" * 16),
        lambda: bank.edit("m1", pinned=True, if_match="0" * 16),
        lambda: bank.set_capacity(3, if_match="0" * 16),
        lambda: bank.set_capacity(3, only_new=True),
        lambda: bank.set_rhythm(Rhythm(), only_new=True),
        lambda: bank.branch("c"),
    ]
    for call in calls:
        service.asked.clear()
        service.will(problem(503, "storage-unavailable", Retry_After="0"))
        with pytest.raises(StorageError):
            call()
        service.will(broken_off)
        with pytest.raises(UnavailableError):
            call()
        assert len(service.asked) == 2
    service.will(problem(503, "overloaded", Retry_After="0"), problem(429, "rate-limited", Retry_After="0"))
    with pytest.raises(RateLimitedError):
        bank.mark_used(["m1"])
    service.will(problem(429, "rate-limited", Retry_After="0"), ok({"used": 1}))
    assert bank.mark_used(["m1"]) == 1


def test_a_deletion_whose_answer_was_lost_is_done(connect: Callable[..., RemoteBank], service: FakeService) -> None:
    bank = connect(retries=1)
    service.will(broken_off, problem(404, "memory-not-found"))
    bank.delete("m1")
    assert len(service.asked) == 2
    service.will(problem(404, "memory-not-found"))
    with pytest.raises(MemoryNotFoundError):
        bank.delete("m1")
    service.will(problem(503, "overloaded", Retry_After="0"), problem(404, "memory-not-found"))
    with pytest.raises(MemoryNotFoundError):
        bank.delete("m1")


CHANGE = {"length": 1, "same": 0, "stale": [], "valid": [], "pending": 0}
SUMMARY = {"version": 2, "text": "x", "author": "player", "through": 1, "created": "2026-01-01T00:00:00+00:00"}


def test_what_follows_the_log_is_repeated_where_that_is_the_same(
    connect: Callable[..., RemoteBank], service: FakeService
) -> None:
    bank = connect(retries=1)
    calls: list[tuple[Callable[[], Any], Any]] = [
        (lambda: bank.put_actions([{"id": "a1", "kind": "do", "text": "x"}]).length, CHANGE),
        (lambda: bank.pending_count() + 1, {"pending": []}),
        (lambda: bank.edit_summary("x").through, SUMMARY),
        (lambda: bank.summary().through, {"current": 2, "versions": [SUMMARY]}),  # type: ignore[union-attr]
        (lambda: bank.restore_summary(2).through, SUMMARY),
    ]
    for call, value in calls:
        service.asked.clear()
        service.will(broken_off, ok(value))
        assert call() == 1
        assert service.asked[-1].body == service.asked[-2].body
        assert len(service.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"current": 1, "versions": []},
        {"current": 1},
        {"current": 2, "versions": [{**SUMMARY, "created": "yesterday"}]},
        {"current": 2, "versions": [{**SUMMARY, "text": None}]},
        {"versions": [SUMMARY]},
    ],
)
def test_a_summary_that_is_none(remote: RemoteBank, service: FakeService, answer: Any) -> None:
    service.will(ok(answer))
    with pytest.raises(ProtocolError):
        remote.summary()


def test_a_log_that_something_on_the_way_finds_too_large(remote: RemoteBank, service: FakeService) -> None:
    service.will(raw(413, b"<html>nginx</html>"))
    with pytest.raises(InvalidInputError, match="after=` the id of the action before it") as caught:
        remote.put_actions([{"id": "a1", "kind": "do", "text": "x"}])
    assert isinstance(caught.value.__cause__, ServiceError)
    service.will(problem(422, "invalid-request", "another fault"))
    with pytest.raises(InvalidInputError, match=r"^another fault$"):
        remote.put_actions([{"id": "a1", "kind": "do", "text": "x"}])


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(raw(200, b"<html>hello</html>"), id="HTML"),
        pytest.param(raw(200, b"{half", "application/json"), id="no JSON"),
        pytest.param(raw(200, b"", "application/json"), id="nothing"),
        pytest.param(raw(200, b"[" * 100_000, "application/json"), id="deep JSON"),
        pytest.param(ok([]), id="no object"),
        pytest.param(ok({"memories": None}), id="null"),
        pytest.param(ok({"memories": [{"id": "m1"}]}), id="a field is missing"),
        pytest.param(ok({"memories": [{**MEMORY, "created": "yesterday"}]}), id="no time"),
        pytest.param(ok({"memories": [{**MEMORY, "text": 7}]}), id="a wrong type"),
        pytest.param(raw(404, b"<html>nginx</html>"), id="another server's 404"),
        pytest.param(raw(400, b"no", "text/plain"), id="another server's 400"),
    ],
)
def test_an_answer_that_is_none_of_this_service(remote: RemoteBank, service: FakeService, behaviour: Any) -> None:
    service.will(behaviour)
    with pytest.raises(ProtocolError, match="check that the URL is that of the service") as caught:
        remote.add("x")
    assert len(service.asked) == 1
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (raw(500, b"Internal Server Error", "text/plain"), ServiceError),
        (raw(500, b"{", "application/problem+json"), ServiceError),
        (raw(500, b'{"type": 3}', "application/problem+json"), ServiceError),
        (raw(413, b"<html>nginx</html>"), InvalidInputError),
        (raw(401, b"<html>nginx</html>"), UnauthorizedError),
    ],
)
def test_an_error_without_a_problem_document(
    remote: RemoteBank, service: FakeService, behaviour: Any, error: type[Exception]
) -> None:
    service.will(behaviour)
    with pytest.raises(error) as caught:
        remote.add("x")
    assert type(caught.value) is error


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_whose_service_is_away(connect: Callable[..., RemoteBank], service: FakeService, status: int) -> None:
    bank = connect(retries=1)
    service.will(raw(status, b"<html>nginx</html>", Retry_After="0"), memories(1))
    assert bank.add("x").id == "m1"
    service.will(raw(status, b"<html>nginx</html>", Retry_After="0"))
    with pytest.raises(UnavailableError):
        bank.mark_used(["m1"])


def test_a_redirect_is_not_followed_and_the_key_stays(remote: RemoteBank, service: FakeService) -> None:
    other = FakeService()
    try:
        for status in (301, 302, 303, 307, 308):
            service.will(raw(status, Location=f"{other.url}/v1/banks/b/memories"))
            with pytest.raises(ProtocolError, match="redirects to"):
                remote.add("x")
        assert len(service.asked) == 5
        assert other.asked == []
    finally:
        other.server_close()


def test_the_key_is_sent_and_never_shown(remote: RemoteBank, service: FakeService) -> None:
    said = [repr(remote), str(remote)]
    for behaviour in (problem(401, "unauthorized"), raw(200, b"<html>"), raw(302, Location="/x"), problem(500, "x")):
        service.will(behaviour)
        with pytest.raises(ServiceError) as caught:
            remote.get("m1")
        said += [repr(caught.value), str(caught.value)]
    assert {one.headers["authorization"] for one in service.asked} == {f"Bearer {KEY}"}
    assert all("secret" not in text for text in said)


def test_no_exception_of_the_http_library_is_behind_ours(
    connect: Callable[..., RemoteBank], service: FakeService
) -> None:
    bank = connect(retries=0)
    service.will(broken_off)
    with pytest.raises(UnavailableError) as caught:
        bank.info()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_after_closing(connect: Callable[..., RemoteBank], service: FakeService) -> None:
    bank = connect()
    bank.close()
    with pytest.raises(UnavailableError, match="was closed"):
        bank.info()
    assert service.asked == []
