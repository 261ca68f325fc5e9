"""Memories and summaries that are due are written in the background, a few at a time for each bank (SPEC.md section 9).

What is due stands in the database, so any process may write it, and what one leaves behind another takes up. No call
waits for it, and a writer that fails or hangs holds up nobody but itself.
"""

from __future__ import annotations

import logging
import threading
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
LONGEST_PAUSE = 60.0
"""The same after errors in a row."""
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

    Attributes:
        written: memories that were written since the start.
    """

    def __init__(self, host: BankHost, make_writer: Callable[[], MemoryWriter] | None) -> None:
        self._host = host
        self._make_writer = make_writer
        self._writer: MemoryWriter | None = None
        self._awake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.written = 0

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
        errors = 0
        while not self._ended.is_set():
            self._awake.clear()
            try:
                is_more = self._round()
                errors = 0
            except MemoryBankError as error:
                errors += 1
                is_more = False
                log.warning("what is due cannot be written now: %s", error)
            except Exception:
                errors += 1
                is_more = False
                log.exception("writing what is due has failed")
            if not is_more:
                self._awake.wait(min(LONGEST_PAUSE, PAUSE * 2 ** min(errors, 10)))

    def _round(self) -> bool:
        """Write a little of each bank that has something due; return whether there may be more."""
        names = self._host.due_banks(limit=BANKS)
        for name in names:
            if self._ended.is_set():
                return False
            if self._writer is None and self._make_writer is not None:
                self._writer = self._make_writer()
            for _ in range(PIECES):
                if self._ended.is_set():
                    return False
                done = self._host.bank(name).write_due(self._writer, limit=1, seconds=SECONDS)
                self.written += len(done)
                if not done:
                    break
        return bool(names)
