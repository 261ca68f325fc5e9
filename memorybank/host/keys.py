"""API keys: made, listed, revoked, recognised. A secret is shown once and stored as its SHA-256.

A token is `mb_<key id>_<secret>`. The secret has 256 random bits, so a plain hash is as good as a slow one: there is
nothing to guess. It is compared in constant time, and an unknown key id takes the same comparison.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from memorybank import inputs
from memorybank.errors import InvalidInputError, KeyNotFoundError
from memorybank.storage import Access, ApiKey, Store

__all__ = ["Access", "ApiKey", "KeyRing"]

_TOKEN = re.compile(r"mb_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{0,64}")
_NOBODY = hashlib.sha256(b"no key has this secret").hexdigest()


class KeyRing:
    """The API keys of a database. For any number of threads; what is revoked is revoked for all processes at once."""

    def __init__(self, store: Store, clock: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._clock = clock or (lambda: datetime.now(UTC))

    def create(self, *, namespace: str, access: Access, label: str = "") -> tuple[ApiKey, str]:
        """Make a key; return it and its token, which nobody can show again.

        Args:
            namespace: the key sees the banks whose names begin with this and a slash; "" sees those without a slash.
                At most 64 letters, digits, dots, dashes and underscores.
            access: `read` or `write`; who may write may read.
            label: what its owner calls it, at most 200 printable characters.

        Raises:
            InvalidInputError: an argument is not what it should be.
            StorageError: it could not be stored.
        """
        if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
            raise InvalidInputError(
                f"namespace must have at most 64 letters, digits, dots, dashes and underscores, not {namespace!r}"
            )
        if access not in ("read", "write"):
            raise InvalidInputError(f"access must be read or write, not {access!r}")
        if label:
            inputs.checked_id(label, what="label")
        key = ApiKey(secrets.token_hex(6), label, namespace, access, self._clock().astimezone(UTC), None)
        secret = secrets.token_urlsafe(32)
        with self._store.write_keys() as table:
            table.insert(key, _hashed(secret))
        return key, f"mb_{key.id}_{secret}"

    def list(self) -> list[ApiKey]:
        """Return all keys, revoked ones included, the oldest first."""
        with self._store.read_keys() as table:
            return table.all()

    def any(self) -> bool:
        """Return whether a key was ever made. From then on nobody gets in without one."""
        with self._store.read_keys() as table:
            return table.any()

    def revoke(self, key_id: str) -> ApiKey:
        """Close a key for good; doing it twice is doing it once.

        Raises:
            KeyNotFoundError: there is no such key.
        """
        inputs.checked_id(key_id, what="key id")
        with self._store.write_keys() as table:
            table.revoke(key_id, self._clock())
            found = table.find(key_id)
        if found is None:
            raise KeyNotFoundError(f"there is no API key {key_id!r}: `memorybank keys list` shows all")
        return found[0]

    def authenticate(self, token: str) -> ApiKey | None:
        """Return the key that a token opens; None if it is unknown, wrong or revoked."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        with self._store.read_keys() as table:
            found = table.find(match[1])
        key, expected = found if found is not None else (None, _NOBODY)
        is_right = hmac.compare_digest(_hashed(match[2]), expected)
        return key if is_right and key is not None and key.revoked is None else None


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
