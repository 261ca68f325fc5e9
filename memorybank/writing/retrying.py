"""How long to wait before trying again, and what a server says about it: pure functions, the standard library only.

Exponential backoff with jitter: each wait is twice the one before, and a random part of it is left out, so that many
clients of a server that comes back do not come back at the same moment.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["backoff", "seconds_asked_for"]

FIRST = 0.5
MOST = 30.0
"""Seconds of the first wait and of the longest, before the jitter."""


def backoff(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after a failed attempt.

    Args:
        attempt: 1 for the first.
        jitter: a random number from 0 to 1; 1 waits for the whole time, 0 for half of it.

    >>> [backoff(attempt, 1.0) for attempt in (1, 2, 3, 99)]
    [0.5, 1.0, 2.0, 30.0]
    """
    whole: float = min(MOST, FIRST * 2.0 ** min(attempt - 1, 60))
    return whole * (0.5 + jitter / 2)


def seconds_asked_for(header: str | None, now: datetime) -> float | None:
    """Return the seconds in a `Retry-After` header (RFC 9110): a number, or a date; None if it says neither.

    >>> seconds_asked_for("120", datetime.now(UTC))
    120.0
    >>> seconds_asked_for("Wed, 21 Oct 2015 07:28:00 GMT", datetime(2015, 10, 21, 7, 27, 30, tzinfo=UTC))
    30.0
    """
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit():
        return float(min(int(header[:20]), 10**9))
    try:
        moment = parsedate_to_datetime(header)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
