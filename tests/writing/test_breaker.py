"""The circuit breaker with many threads, and the waits between attempts."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybank.writing import RejectedTextError, WriterUnavailableError
from memorybank.writing.breaker import CircuitBreaker
from memorybank.writing.retrying import backoff, seconds_asked_for
from tests.writing.conftest import Time


def attempt(breaker: CircuitBreaker, error: BaseException | None = None) -> None:
    with breaker.attempt():
        if error is not None:
            raise error


def fail(breaker: CircuitBreaker) -> None:
    with pytest.raises(WriterUnavailableError, match=r"^no$"):
        attempt(breaker, WriterUnavailableError("no"))


@pytest.fixture
def breaker(clock: Time) -> CircuitBreaker:
    return CircuitBreaker("server", failures=2, seconds=60, clock=clock)


def test_only_failures_in_a_row_open_it(breaker: CircuitBreaker) -> None:
    fail(breaker)
    attempt(breaker)
    fail(breaker)
    assert breaker.state == "closed"
    fail(breaker)
    assert breaker.state == "open"


def test_a_failed_trial_opens_it_for_as_long_again(breaker: CircuitBreaker, clock: Time) -> None:
    fail(breaker)
    fail(breaker)
    clock.now += 60
    assert breaker.state == "half_open"
    fail(breaker)
    assert breaker.state == "open"
    clock.now += 59
    with pytest.raises(WriterUnavailableError, match="server: it failed 3 times") as caught:
        attempt(breaker)
    assert caught.value.retry_after == 1
    clock.now += 1
    attempt(breaker)
    assert breaker.state == "closed"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("a fault of this program")], ids=repr)
def test_what_says_nothing_about_the_server_changes_nothing(
    breaker: CircuitBreaker, clock: Time, error: BaseException
) -> None:
    fail(breaker)
    fail(breaker)
    clock.now += 60
    with pytest.raises(type(error)):
        attempt(breaker, error)
    assert breaker.state == "half_open"
    with pytest.raises(RejectedTextError):
        attempt(breaker, RejectedTextError("empty", "nothing"))
    assert breaker.state == "closed"


def test_one_trial_at_a_time(breaker: CircuitBreaker, clock: Time) -> None:
    fail(breaker)
    fail(breaker)
    clock.now += 60
    entered, release = threading.Event(), threading.Event()
    through = []

    def trial(number: int) -> None:
        try:
            with breaker.attempt():
                through.append(number)
                entered.set()
                release.wait(30)
        except WriterUnavailableError:
            assert entered.wait(30)

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(trial, number) for number in range(8)]
        assert entered.wait(30)
        with pytest.raises(WriterUnavailableError, match="left alone"):
            attempt(breaker)
        release.set()
        for future in futures:
            future.result(30)
    assert breaker.state == "closed"
    assert through


def test_many_threads_count_every_failure(clock: Time) -> None:
    breaker = CircuitBreaker("server", failures=200, seconds=60, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: fail(breaker), range(199)))
    assert breaker.state == "closed"
    fail(breaker)
    assert breaker.state == "open"


@given(attempt=st.integers(1, 1_000), jitter=st.floats(0, 1))
def test_waits_grow_and_are_bounded(attempt, jitter):
    assert 0.25 <= backoff(attempt, jitter) <= backoff(attempt, 1.0) <= backoff(attempt + 1, 1.0) <= 30
    assert backoff(attempt, 0.0) == backoff(attempt, 1.0) / 2


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0),
        (" 12 ", 12),
        ("9" * 400, 1e9),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30),
        ("Thu, 01 Jan 2026 00:00:30 -0000", 30),
        ("Thu, 01 Jan 2025 00:00:30 GMT", 0),
        ("Thu, 99 Jan 2026 00:00:30 GMT", None),
    ],
)
def test_what_a_server_asks_for(header, seconds):
    assert seconds_asked_for(header, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
