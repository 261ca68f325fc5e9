"""Which banks' indexes stay in memory: the ones used last, within a number of bytes.

An index is a cache of the database, so nothing is lost with it: the next search of its bank builds it anew, in 60 µs
for 200 memories and half a second for 100,000.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from memorybank.forking import renew_after_fork
from memorybank.search.live_index import LiveIndex

__all__ = ["IndexLedger", "LedgerStats"]


@dataclass(frozen=True, slots=True)
class LedgerStats:
    """What the ledger has seen since it was made.

    Attributes:
        held: how many are in memory.
        bytes: what they take, about.
        hits: searches that found their index in memory.
        misses: searches that had to build it.
        evictions: indexes that had to go.
    """

    held: int
    bytes: int
    hits: int
    misses: int
    evictions: int


class IndexLedger:
    """Releases the indexes that were not used for longest. For any number of threads.

    The index used last stays, also when it alone is over the limit: it has to be somewhere while it is searched.
    """

    def __init__(self, limit: int) -> None:
        """Keep at most `limit` bytes."""
        self._limit = limit
        self._sizes: OrderedDict[LiveIndex, int] = OrderedDict()
        self._total = self._hits = self._misses = self._evictions = 0
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Drop a lock that another thread of the parent may have held when this process was forked."""
        self._lock = threading.Lock()

    def used(self, live: LiveIndex, was_built: bool) -> None:
        """Note a search, and release what is too much. Call it with no index's lock held."""
        with self._lock:
            self._hits += not was_built
            self._misses += was_built
            self._put(live, live.nbytes)
            victims = self._take_victims()
        for victim in victims:
            victim.release()

    def forget(self, live: LiveIndex) -> None:
        """Release an index whose bank is gone or no longer looked after."""
        with self._lock:
            self._put(live, 0)
        live.release()

    def stats(self) -> LedgerStats:
        """Return what there is in memory, and what has been."""
        with self._lock:
            return LedgerStats(len(self._sizes), self._total, self._hits, self._misses, self._evictions)

    def _put(self, live: LiveIndex, size: int) -> None:
        self._total += size - self._sizes.pop(live, 0)
        if size:
            self._sizes[live] = size

    def _take_victims(self) -> list[LiveIndex]:
        victims = []
        while self._total > self._limit and len(self._sizes) > 1:
            victim, size = self._sizes.popitem(last=False)
            self._total -= size
            self._evictions += 1
            victims.append(victim)
        return victims
