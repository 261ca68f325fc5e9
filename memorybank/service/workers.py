"""The threads that do the work, and who is let in to wait for one.

The event loop never works itself. At most `threads` calls run and `waiting` more wait, also when the clients of some
have gone: a call whose deadline has passed is answered at once, but counts until its thread is free again.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from memorybank.errors import DeadlineError, OverloadedError
from memorybank.service.state import RequestState

__all__ = ["WorkerPool"]

Result = TypeVar("Result")

FIRST_GUESS = 0.05
"""Seconds that a call takes, before there is any experience."""
LONGEST_RETRY = 60.0


class WorkerPool:
    """A bounded number of threads with a bounded number of calls before them.

    Args:
        threads: calls that run at the same time.
        waiting: calls that may wait.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self.threads = threads
        self._most = threads + waiting
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="memorybank-worker")
        self._lock = threading.Lock()
        self._inside = self._queued = self._abandoned = 0
        self._of: Counter[str] = Counter()
        self._usual = FIRST_GUESS

    @property
    def inside(self) -> int:
        """Calls that were let in and not yet answered."""
        return self._inside

    @property
    def queued(self) -> int:
        """Calls that wait for a thread."""
        return self._queued

    @property
    def is_full(self) -> bool:
        """Whether nobody else would be let in."""
        return self._inside + self._abandoned >= self._most

    @contextmanager
    def admitted(self, who: str | None = None) -> Iterator[None]:
        """Count a call while it is inside.

        Args:
            who: whose it is. No caller has more than three quarters of all places, so that one who sends nothing but
                heads cannot keep all others out; None is not counted so.

        Raises:
            OverloadedError: there are too many already.
        """
        with self._lock:
            load = self._inside + self._abandoned
            if load >= self._most or (who is not None and self._of[who] >= max(1, self._most * 3 // 4)):
                seconds = min(LONGEST_RETRY, self._usual * load / self.threads)
                raise OverloadedError(
                    f"{load} calls are being served or wait already: try again a little later", retry_after=seconds
                )
            self._inside += 1
            if who is not None:
                self._of[who] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if who is not None:
                    self._of[who] -= 1
                    if not self._of[who]:
                        del self._of[who]

    async def run(self, work: Callable[[], Result], state: RequestState) -> Result:
        """Return what `work` returns, from a thread that has the caller's context.

        Raises:
            DeadlineError: the request's deadline passed; what has begun goes on all the same.
        """
        begin = time.perf_counter()

        def timed() -> Result:
            with self._lock:
                self._queued -= 1
            state.phases.add("queue", time.perf_counter() - begin)
            state.deadline.check()
            started = time.perf_counter()
            try:
                return work()
            finally:
                self._learn(time.perf_counter() - started)

        with self._lock:
            self._queued += 1
        future = self._executor.submit(contextvars.copy_context().run, timed)
        waiter = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait({waiter}, timeout=state.deadline.left)
        except asyncio.CancelledError:
            self._abandon(future, waiter)
            raise
        if done:
            return waiter.result()
        self._abandon(future, waiter)
        raise DeadlineError(
            "the deadline passed before the work was done; what was to be written may still be written: "
            "repeat the call, the same memory twice is one memory"
        )

    def close(self, seconds: float) -> bool:
        """Take no more calls, and wait so long for those that run; return whether all have ended."""
        ending = threading.Thread(target=self._executor.shutdown, kwargs={"cancel_futures": True}, daemon=True)
        ending.start()
        ending.join(seconds)
        return not ending.is_alive()

    def _abandon(self, future: Future[Result], waiter: asyncio.Future[Result]) -> None:
        """Forget a call: it is taken out of the queue, or counts until its thread has done with it."""
        with self._lock:
            if future.cancel():
                self._queued -= 1
            elif not future.done():
                self._abandoned += 1
                future.add_done_callback(self._came_back)
        waiter.cancel()

    def _came_back(self, _: Future[Result]) -> None:
        with self._lock:
            self._abandoned -= 1

    def _learn(self, seconds: float) -> None:
        self._usual += 0.05 * (seconds - self._usual)
