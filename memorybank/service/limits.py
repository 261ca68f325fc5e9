"""How often somebody may come: token buckets, one for each API key or address, in bounded memory."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Buckets", "address_of"]

MOST_BUCKETS = 10_000
"""Buckets that are remembered; who has not come for longest is forgotten, which gives him a full one."""


class Buckets:
    """Token buckets: each fills at `rate` per second up to `burst`.

    Args:
        rate: tokens per second; 0 for any number.
        burst: what a bucket holds.
        clock: seconds, for tests.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> float:
        """Take one token; return 0, or the seconds until there is one if there is none now."""
        if not self._rate:
            return 0.0
        with self._lock:
            level = self._level(who)
            missing = max(0.0, 1.0 - level)
            self._put(who, level if missing else level - 1.0)
        return missing / self._rate

    def wait(self, who: str) -> float:
        """Return the seconds until there is a token, and take none."""
        if not self._rate:
            return 0.0
        with self._lock:
            return max(0.0, 1.0 - self._level(who)) / self._rate

    def _level(self, who: str) -> float:
        level, since = self._buckets.get(who, (self._burst, self._clock()))
        return min(self._burst, level + (self._clock() - since) * self._rate)

    def _put(self, who: str, level: float) -> None:
        self._buckets[who] = level, self._clock()
        self._buckets.move_to_end(who)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)


def address_of(client: str) -> str:
    """Return by what a client's address is counted: of IPv6 the half that a provider gives to one customer."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped is not None else str(ipaddress.ip_network((address, 64), strict=False))
    return client
