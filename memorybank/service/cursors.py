"""Cursors as clients see them: opaque, and good for the one list that they came from.

They hold where the next page begins and a checksum over that and the list's name. Nothing in them is secret, and a
made-up one opens nothing: it only begins a list, which the key must be allowed to read anyway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from memorybank.service.problems import Problem

__all__ = ["opened", "sealed"]

_SUM = 8


def sealed(cursor: str | None, *list_: str) -> str | None:
    """Return a cursor of the bank for the client of a list; None stays None.

    Args:
        cursor: where the next page begins.
        list_: what tells the list from all others.
    """
    if cursor is None:
        return None
    raw = cursor.encode()
    return base64.urlsafe_b64encode(_checksum(raw, list_) + raw).decode().rstrip("=")


def opened(cursor: str | None, *list_: str) -> str | None:
    """Return the cursor that a client handed back. Raises a 422 problem if it is not one of this list."""
    if cursor is None:
        return None
    try:
        joined = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        text = joined[_SUM:].decode()
    except (binascii.Error, ValueError):
        joined, text = b"", ""
    if joined[:_SUM] != _checksum(joined[_SUM:], list_) or sealed(text, *list_) != cursor:
        raise Problem(
            "invalid-request", "cursor: it is not one that this list came with: begin without one", errors=[_FIELD]
        )
    return text


_FIELD = ("cursor", "not a cursor of this list")


def _checksum(raw: bytes, list_: tuple[str, ...]) -> bytes:
    parts = b"\0".join([raw, *(part.encode() for part in list_)])
    return hashlib.blake2b(parts, digest_size=_SUM, person=b"memorybank").digest()
