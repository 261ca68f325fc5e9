"""Memories and summaries that are due are written in the background, a few at a time for each bank (SPEC.md section 9).

What is due stands in the database, so any process may write it, and what one leaves behind another takes up. No call
waits for it. A writer that hangs is left alone after `SECONDS`; until then this process writes nothing else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from memorybank.errors import MemoryBankError

if TYPE_CHECKING:
    from memorybank.host import BankHost
    from memorybank.writing.port import MemoryWriter

__all__ = ["StoryWork"]

log = logging.getLogger(__name__)

PAUSE = 5.0
"""Seconds until the database is asked again, unless a log has changed here before."""
LONGEST_PAUSE = 600.0
"""Seconds for which a bank that fails again and again is left alone."""
BANKS = 32
"""Banks that are looked at in one round."""
PIECES = 8
"""Memories written of one bank in one round, so that a long log does not keep the others waiting."""
LAST_SECONDS = 5.0
"""How long the text at hand may take when the server ends."""
SECONDS = 120.0
"""How long a writer may take for one text."""


class StoryWork:
    """A thread that writes what is due.

    Args:
        host: the banks.
        make_writer: makes the writer when there is something to write; None writes nothing here.
    """

    def __init__(self, host: BankHost, make_writer: Callable[[], MemoryWriter] | None) -> None:
        self._host = host
        self._make_writer = make_writer
        self._writer: MemoryWriter | None = None
        self._awake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._left_alone: dict[str, tuple[float, float]] = {}  # banks that failed: until when, and for how long

    def start(self) -> None:
        """Begin; what another process has left behind is written first."""
        if self._make_writer is not None:
            self._thread = threading.Thread(target=self._work, name="memorybank-writing", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Look at once: a log has changed."""
        self._awake.set()

    def close(self) -> None:
        """End after the text at hand. One that takes too long is written by another process when the claim runs out."""
        self._ended.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join(LAST_SECONDS)

    def _work(self) -> None:
        while not self._ended.is_set():
            self._awake.clear()
            is_more = False
            try:
                is_more = self._round()
            except Exception as error:
                self._failed("", error)
            if not is_more:
                self._awake.wait(PAUSE)

    def _round(self) -> bool:
        """Write a little of each bank that has something due; return whether anything was tried."""
        tried = 0
        now = time.monotonic()
        # Who has been let be for long enough is no longer known: it may be gone.
        self._left_alone = {
            name: (until, pause) for name, (until, pause) in self._left_alone.items() if now < until + LONGEST_PAUSE
        }
        for name in self._host.due_banks(limit=BANKS + len(self._left_alone)):
            if self._ended.is_set():
                return False
            if now < self._left_alone.get(name, (0.0, 0.0))[0]:
                continue
            try:
                tried += self._write(name)
                self._left_alone.pop(name, None)
            except Exception as error:  # of one bank: the others are written all the same
                self._failed(name, error)
        return tried > 0

    def _write(self, name: str) -> int:
        """Write a little of one bank; return how many pieces were tried."""
        if self._writer is None and self._make_writer is not None:
            self._writer = self._make_writer()
        tried: list[int] = []
        bank = self._host.bank(name)
        while len(tried) < PIECES and not self._ended.is_set():
            before = len(tried)
            bank.write_due(self._writer, limit=1, seconds=SECONDS, progress=lambda done, _: tried.append(done))
            if len(tried) == before:
                break
        return len(tried)

    def _failed(self, name: str, error: Exception) -> None:
        pause = min(LONGEST_PAUSE, 2 * self._left_alone.get(name, (0.0, PAUSE / 2))[1])
        self._left_alone[name] = time.monotonic() + pause, pause
        if isinstance(error, MemoryBankError):
            log.warning("what is due cannot be written now: %s", error)
        else:
            log.error("writing what is due has failed", exc_info=error)
