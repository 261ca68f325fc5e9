"""What one request carries along, from its first byte into every thread that works for it: identity, deadline, phases.

A leaf: the standard library only. `batching.py` and the routes read it; `observing.py` makes it and reports it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from memorybank.errors import DeadlineError

__all__ = ["Deadline", "Phase", "Phases", "RequestState", "Span", "current", "deadline", "phase"]

Phase = Literal["queue", "embed", "search", "store", "assemble"]


class Deadline:
    """A moment after which nobody waits for the answer any more."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, 0 or more."""
        return max(0.0, self._end - time.monotonic())

    def shorten(self, seconds: float) -> None:
        """Bring it forward to `seconds` from now, if that is earlier."""
        self._end = min(self._end, time.monotonic() + seconds)

    def check(self) -> None:
        """Raise DeadlineError if it has passed."""
        if not self.left:
            raise DeadlineError("the deadline passed before the work was done: repeat the call, or give it more time")


class Span(NamedTuple):
    """A phase from begin to end, in nanoseconds since the epoch."""

    name: Phase
    begin: int
    end: int


class Phases:
    """Where the time of a request goes. A phase inside another counts for itself alone."""

    def __init__(self) -> None:
        self.seconds: dict[Phase, float] = {}
        self.spans: list[Span] = []
        self._inside: list[float] = []

    def add(self, name: Phase, seconds: float) -> None:
        """Note a phase that has just ended."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        now = time.time_ns()
        self.spans.append(Span(name, now - int(seconds * 1e9), now))

    @contextmanager
    def measure(self, name: Phase) -> Iterator[None]:
        """Measure a phase."""
        begin, begin_ns = time.perf_counter(), time.time_ns()
        self._inside.append(0.0)
        try:
            yield
        finally:
            took = time.perf_counter() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + took - self._inside.pop()
            self.spans.append(Span(name, begin_ns, time.time_ns()))
            if self._inside:
                self._inside[-1] += took


@dataclass
class RequestState:
    """One request.

    Attributes:
        id: what the client, the log and a problem call it.
        deadline: when its client stops waiting.
        phases: where its time goes.
        key_id: of the API key that it came with.
        namespace: that key's.
        problem: slug of the problem that it was answered with.
    """

    id: str
    deadline: Deadline
    phases: Phases = field(default_factory=Phases)
    key_id: str | None = None
    namespace: str = ""
    problem: str | None = None


current: ContextVar[RequestState | None] = ContextVar("memorybank.service.request", default=None)
"""The request that this task or thread works for; None outside of requests."""


def deadline() -> Deadline | None:
    """Return the deadline of the request at hand, if there is one."""
    state = current.get()
    return None if state is None else state.deadline


@contextmanager
def phase(name: Phase) -> Iterator[None]:
    """Measure a phase of the request at hand, if there is one."""
    state = current.get()
    if state is None:
        yield
        return
    with state.phases.measure(name):
        yield
