"""A request until it is answered: what to do next, and when to give up. Pure: somebody else sends and waits.

The steps are generators. They yield what has to be done, `Send` or `Wait`, and are sent what came of it; so the client
that blocks and the one that awaits share all but the doing.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from memorybank.client.refusals import Refusal, refusal
from memorybank.client.wire import Answer, Request
from memorybank.errors import MemoryNotFoundError

__all__ = ["Patience", "Send", "Steps", "Wait", "exchange"]

FIRST_PAUSE = 0.1
"""Seconds before the second attempt, at most; twice as many each time."""
LONGEST_PAUSE = 10.0
"""Seconds between two attempts, at most, unless the service asks for more."""
LONGEST_ASKED = 30.0
"""Seconds that the service may ask to wait. When it asks for more, the call fails and says so."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request, and wait so many seconds for its answer."""

    request: Request
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait so many seconds."""

    seconds: float


T = TypeVar("T")
Steps: TypeAlias = Generator[Send | Wait, Any, T]
"""Yields what has to be done; is sent an `Answer` or a `NoAnswer` for each `Send`, and returns what is asked for."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is repeated, and how long it may take.

    Attributes:
        timeout: seconds for an answer.
        retries: attempts after the first.
        deadline: seconds in all, pauses included.
        clock: gives seconds that only grow.
        chance: gives a number from 0 to 1.
    """

    timeout: float
    retries: int
    deadline: float
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = field(default=random.random)

    def pause(self, attempt: int, refused: Refusal) -> float:
        """Return the seconds before the next attempt: what the service asks for, else some part of a growing span.

        By chance, so that many clients that failed together do not come back together.
        """
        if refused.retry_after is not None:
            return refused.retry_after
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt) * self.chance()


def exchange(request: Request, service: str, patience: Patience) -> Steps[Answer]:
    """Return the answer to a request, a success.

    A request that is not repeatable is repeated only where nothing can have been done: the connection was never made,
    or the service refused before it began.

    Args:
        request: what is asked.
        service: what messages call the service.
        patience: how often it is repeated.

    Raises:
        MemoryBankError: it was refused, or there was no answer.
    """
    end = patience.clock() + patience.deadline
    maybe_done = False
    for attempt in itertools.count():
        outcome = yield Send(request, min(patience.timeout, max(0.001, end - patience.clock())))
        if isinstance(outcome, Answer) and outcome.status // 100 == 2:
            return outcome
        refused = refusal(outcome, service)
        if maybe_done and request.gone_is_done and isinstance(refused.error, MemoryNotFoundError):
            return Answer(204, {}, b"")
        pause = patience.pause(attempt, refused)
        if not _worth_it(request, refused, pause, end - patience.clock()) or attempt == patience.retries:
            raise refused.throw()
        maybe_done = maybe_done or refused.maybe_done
        yield Wait(pause)
    raise AssertionError("the attempts have no end")


def _worth_it(request: Request, refused: Refusal, pause: float, left: float) -> bool:
    harmless = request.repeatable or not refused.maybe_done
    return refused.again and harmless and pause <= LONGEST_ASKED and pause < left
