"""A circuit breaker: a server that fails and fails is left alone for a while (Nygard, Release It!, 2007).

Closed: calls go through. After so many failures one after another it opens: calls are refused at once. After a while it
is half open: one call goes through, and decides whether it closes or opens again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from memorybank.forking import renew_after_fork
from memorybank.writing.errors import RejectedTextError, WriterUnavailableError

__all__ = ["CircuitBreaker", "CircuitState"]

CircuitState = Literal["closed", "open", "half_open"]

_log = logging.getLogger(__name__)


class CircuitBreaker:
    """Guards one server, for any number of threads.

    Args:
        name: of the server, for messages.
        failures: how many in a row open it.
        seconds: how long it stays open.
        clock: gives the time in seconds; need not be that of day.
    """

    def __init__(self, name: str, failures: int, seconds: float, clock: Callable[[], float]) -> None:
        self._name = name
        self._limit = failures
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened: float | None = None
        self._trying = False
        renew_after_fork(self)

    def renew(self) -> None:
        """Make the lock anew, and forget a trial that only the parent goes on with."""
        self._lock, self._trying = threading.Lock(), False

    @property
    def state(self) -> CircuitState:
        """`closed`, `open`, or `half_open` when the next call will be a trial or one is on its way."""
        with self._lock:
            return self._state()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Let one call through: what is raised in the block decides. An answer that is rejected is an answer.

        Raises:
            WriterUnavailableError: it is open, or half open with a trial on its way.
        """
        trial = self._enter()
        try:
            yield
        except WriterUnavailableError:
            self._leave(trial, failed=True)
            raise
        except RejectedTextError:
            self._leave(trial, failed=False)
            raise
        except BaseException:  # it says nothing about the server
            self._leave(trial, failed=None)
            raise
        self._leave(trial, failed=False)

    def _state(self) -> CircuitState:
        if self._opened is None:
            return "closed"
        return "open" if self._clock() < self._opened + self._seconds else "half_open"

    def _enter(self) -> bool:
        with self._lock:
            state = self._state()
            if state == "open" or (state == "half_open" and self._trying):
                left = self._seconds if self._opened is None else self._opened + self._seconds - self._clock()
                raise WriterUnavailableError(
                    f"{self._name}: it failed {self._failures} times in a row and is left alone for a while",
                    retry_after=max(0.0, left),
                )
            self._trying = state == "half_open"
            return self._trying

    def _leave(self, trial: bool, *, failed: bool | None) -> None:
        with self._lock:
            if trial:
                self._trying = False
            if failed is None:
                return
            before = self._opened
            self._failures = self._failures + 1 if failed else 0
            if not failed:
                self._opened = None
            elif trial or self._failures == self._limit:
                self._opened = self._clock()
        if self._opened != before:
            _log.warning("%s: %s", self._name, "left alone for a while" if failed else "answers again")
