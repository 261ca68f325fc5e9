"""When a request is repeated, and how long that takes: the steps alone, with a clock of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import cycle

import pytest

from memorybank.client.errors import UnavailableError
from memorybank.client.exchange import FIRST_PAUSE, LONGEST_PAUSE, Patience, Send, Wait, exchange
from memorybank.client.refusals import refusal
from memorybank.client.wire import Answer, NoAnswer, Request
from memorybank.errors import MemoryBankError

AWAY = NoAnswer("it cannot be reached", maybe_done=False)
FINE = Answer(200, {}, b"{}")


class Run:
    """Plays the steps of one request on a clock that only the steps move."""

    def __init__(self, *outcomes: Answer | NoAnswer, takes: float = 0.0, **patience: float) -> None:
        self.now = 100.0
        self.waited: list[float] = []
        self.allowed: list[float] = []
        self._outcomes = cycle(outcomes)
        self._takes = takes
        self._patience = patience

    def __call__(self, chance: Callable[[], float] = lambda: 1.0) -> Answer:
        given = {"timeout": 10.0, "retries": 3, "deadline": 60.0, **self._patience}
        patience = Patience(**given, clock=lambda: self.now, chance=chance)  # type: ignore[arg-type]
        steps = exchange(Request("GET", "/"), "the service", patience)
        outcome: Answer | NoAnswer | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as finished:
                answer: Answer = finished.value
                return answer
            if isinstance(step, Wait):
                self.waited.append(step.seconds)
                self.now += step.seconds
                outcome = None
            else:
                assert isinstance(step, Send)
                self.allowed.append(step.seconds)
                self.now += self._takes
                outcome = next(self._outcomes)


def busy(retry_after: str | None = None, status: int = 503) -> Answer:
    return Answer(status, {} if retry_after is None else {"retry-after": retry_after}, b"")


def test_pauses_grow_up_to_a_limit() -> None:
    run = Run(AWAY, retries=12, deadline=1000.0)
    with pytest.raises(UnavailableError):
        run()
    assert run.waited == [min(LONGEST_PAUSE, FIRST_PAUSE * 2**n) for n in range(12)]


def test_pauses_are_some_part_of_that_by_chance() -> None:
    run = Run(AWAY, AWAY, AWAY, FINE)
    parts = iter([0.5, 0.0, 0.25])
    assert run(lambda: next(parts)) is FINE
    assert run.waited == [FIRST_PAUSE * 0.5, 0.0, FIRST_PAUSE * 4 * 0.25]


def test_what_the_service_asks_for_is_done_up_to_a_limit() -> None:
    run = Run(busy("7"), busy("30", 429), FINE)
    assert run() is FINE
    assert run.waited == [7, 30]
    run = Run(busy("31"))
    with pytest.raises(MemoryBankError):
        run()
    assert run.waited == []


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_there_is_one_attempt_more_than_retries(retries: int) -> None:
    run = Run(AWAY, retries=retries)
    with pytest.raises(UnavailableError):
        run()
    assert len(run.allowed) == retries + 1


def test_the_deadline_shortens_the_last_attempt_and_no_pause_outlasts_it() -> None:
    run = Run(AWAY, takes=7.0, deadline=20.0, retries=9)
    with pytest.raises(UnavailableError):
        run(lambda: 0.0)
    assert run.allowed == [10.0, 10.0, 6.0]
    run = Run(busy("25"), deadline=20.0)
    with pytest.raises(MemoryBankError):
        run()
    assert run.waited == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 422, 500, 501])
def test_what_will_not_succeed_is_not_repeated(status: int) -> None:
    run = Run(busy(status=status))
    with pytest.raises(MemoryBankError):
        run()
    assert len(run.allowed) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        (" 12 ", 12.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("1.5", None),
        ("9" * 400, 999999999.0),
        ("²", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    found = refusal(busy(value), "the service", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    assert found.retry_after == seconds


def outcomes() -> Sequence[tuple[Answer | NoAnswer, bool]]:
    problem = {"content-type": "application/problem+json"}
    body = b'{"type": "urn:story-context:problem:%s", "detail": "d"}'
    return [
        (AWAY, False),
        (NoAnswer("it broke off", maybe_done=True), True),
        (busy(status=429), False),
        (Answer(503, problem, body % b"overloaded"), False),
        (Answer(503, problem, body % b"storage-unavailable"), True),
        (Answer(503, problem, body % b"deadline-exceeded"), True),
        (busy(status=502), True),
        (busy(status=404), False),
    ]


@pytest.mark.parametrize(("outcome", "maybe"), outcomes())
def test_whether_it_may_have_been_done(outcome: Answer | NoAnswer, maybe: bool) -> None:
    assert refusal(outcome, "the service").maybe_done is maybe
