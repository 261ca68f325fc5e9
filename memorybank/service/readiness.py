"""Whether calls can be served now: the database answers, the model is loaded, nothing is stuck.

Looked at no more than once a second, however often it is asked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from memorybank.errors import MemoryBankError

if TYPE_CHECKING:
    from memorybank.host import BankHost
    from memorybank.service.embedding import ServiceEmbedder
    from memorybank.service.workers import WorkerPool

__all__ = ["OK", "Readiness"]

log = logging.getLogger(__name__)

OK = "ok"
FRESH_SECONDS = 1.0
PATIENCE = 2.0
"""Seconds that the database has for its answer."""
STUCK_SECONDS = 60.0
"""A step of the model takes a second or two, and loading it some ten; what takes longer is stuck."""


class Readiness:
    """The checks of `/readyz`.

    Args:
        host: whose database is asked.
        pool: whose queue is looked at.
        embedder: whose model is looked at; None if it is not of the service.
        stuck_seconds: after which a step of the model counts as stuck.
    """

    def __init__(
        self,
        host: BankHost,
        pool: WorkerPool,
        embedder: ServiceEmbedder | None,
        *,
        stuck_seconds: float = STUCK_SECONDS,
    ) -> None:
        self._host = host
        self._pool = pool
        self._embedder = embedder
        self._stuck_seconds = stuck_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memorybank-ready")
        self._lock = asyncio.Lock()
        self._known: tuple[float, Mapping[str, str]] | None = None

    async def checks(self) -> Mapping[str, str]:
        """Return `ok` or what is wrong for each part."""
        async with self._lock:
            if self._known is None or time.monotonic() - self._known[0] > FRESH_SECONDS:
                found = {"database": await self._database(), "model": self._model(), "queue": self._queue()}
                self._known = time.monotonic(), found
            return self._known[1]

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _database(self) -> str:
        answer = asyncio.get_running_loop().run_in_executor(self._thread, self._host.ping)
        done, _ = await asyncio.wait({answer}, timeout=PATIENCE)
        if not done:
            answer.cancel()
            return f"no answer within {PATIENCE:.0f} seconds"
        try:
            answer.result()
        except MemoryBankError as error:
            log.warning("the database does not answer: %s", error)
            return "it does not answer: see the log"
        return OK

    def _model(self) -> str:
        if self._embedder is None or self._embedder.batching.has_embedded:
            return OK
        return "it is not loaded yet"

    def _queue(self) -> str:
        if self._embedder is not None and self._embedder.batching.step_seconds > self._stuck_seconds:
            return f"the model has been busy with one step for more than {self._stuck_seconds:.0f} seconds"
        if self._pool.is_full:
            return "all threads are busy and nobody else may wait"
        return OK
