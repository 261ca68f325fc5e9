"""How many banks a namespace and how many memories a bank may have. They bound what a caller can fill the disk with.

Both are looked at before something is made, not in the same transaction: calls at the same moment may overshoot by as
many as there are.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from memorybank.bank.info import BankInfo
from memorybank.inputs import MAX_LIMIT
from memorybank.service.problems import Problem

if TYPE_CHECKING:
    from memorybank.host import BankHost

__all__ = ["BankCounts", "check_room"]

FRESH_SECONDS = 10.0


def check_room(info: BankInfo, more: int, most: int) -> None:
    """Raise a 409 problem if a bank cannot take so many more memories."""
    there = sum(info.counts.values())
    if more and there + more > most:
        raise Problem(
            "conflict", f"the bank has {there:,} memories and may have {most:,}: {more:,} more do not fit; delete some"
        )


class BankCounts:
    """Counts the banks of a namespace, and remembers that for some seconds: making many must not mean counting all."""

    def __init__(self, host: BankHost, most: int) -> None:
        self._host = host
        self._most = most
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, int]] = {}

    def check(self, namespace: str) -> None:
        """Raise a 409 problem if a namespace may have no other bank."""
        with self._lock:
            since, number = self._known.get(namespace, (0.0, self._most))
            if number >= self._most or time.monotonic() - since > FRESH_SECONDS:
                since, number = time.monotonic(), self._count(namespace)
            self._known[namespace] = since, number + 1
        if number >= self._most:
            raise Problem("conflict", f"there are {number:,} banks, and no more are allowed: delete some")

    def _count(self, namespace: str) -> int:
        number, cursor = 0, None
        while number < self._most:
            page = self._host.banks(namespace=namespace, limit=min(MAX_LIMIT, self._most), cursor=cursor)
            number += len(page.banks)
            if (cursor := page.cursor) is None:
                break
        return number
