"""The statements about API keys, which belong to no bank."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, insert, select, update

from memorybank.storage.rows import to_text
from memorybank.storage.schema import api_keys

__all__ = ["Access", "ApiKey", "KeyTable"]

Access = Literal["read", "write"]

_SHOWN = [column for column in api_keys.c if column.name != "secret_hash"]
_ALL = select(*_SHOWN).order_by(api_keys.c.created, api_keys.c.id)
_ANY = select(api_keys.c.id).limit(1)
_ONE = select(*_SHOWN, api_keys.c.secret_hash).where(api_keys.c.id == bindparam("key"))
_REVOKE = (
    update(api_keys)
    .where(api_keys.c.id == bindparam("key"), api_keys.c.revoked.is_(None))
    .values(revoked=bindparam("moment"))
)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What may be done with a key. Its secret was shown once and is nowhere.

    Attributes:
        id: names it, in lists and in logs.
        label: what its owner calls it.
        namespace: it sees the banks whose names begin with this and a slash; "" sees those without a slash.
        access: `read` or `write`; who may write may read.
        created: when it was made, in UTC.
        revoked: since when it opens nothing any more, in UTC; None as long as it does.
    """

    id: str
    label: str
    namespace: str
    access: Access
    created: datetime
    revoked: datetime | None


class KeyTable:
    """Questions and changes inside one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[ApiKey]:
        """Return all keys, the oldest first."""
        return [_to_key(row) for row in self._connection.execute(_ALL)]

    def any(self) -> bool:
        """Return whether there is any key, revoked ones included."""
        return self._connection.execute(_ANY).first() is not None

    def find(self, key_id: str) -> tuple[ApiKey, str] | None:
        """Return a key and the hash of its secret."""
        row = self._connection.execute(_ONE, {"key": key_id}).first()
        return None if row is None else (_to_key(row), row.secret_hash)

    def insert(self, key: ApiKey, secret_hash: str) -> None:
        """Store a new key."""
        values = asdict(key) | {"created": to_text(key.created), "revoked": None, "secret_hash": secret_hash}
        self._connection.execute(insert(api_keys), values)

    def revoke(self, key_id: str, moment: datetime) -> None:
        """Note since when a key opens nothing any more; the first time counts."""
        self._connection.execute(_REVOKE, {"key": key_id, "moment": to_text(moment)})


def _to_key(row: Any) -> ApiKey:
    return ApiKey(
        id=row.id,
        label=row.label,
        namespace=row.namespace,
        access=row.access,
        created=datetime.fromisoformat(row.created),
        revoked=None if row.revoked is None else datetime.fromisoformat(row.revoked),
    )
