"""Rows of the database as values, and back. No statements and no numpy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from memorybank.memory import Memory, State, fingerprint

__all__ = [
    "BankState",
    "StoredMemory",
    "bank_columns",
    "memory_columns",
    "text_hash",
    "to_bank",
    "to_memory",
    "to_text",
]


@dataclass(frozen=True, slots=True)
class BankState:
    """A bank's own row.

    Attributes:
        bank: its name.
        incarnation: tells it from an earlier bank of that name.
        model: name of the embedding model of all its vectors.
        dimensions: their width.
        revision: grows with every write.
        next_ordinal: of the next new memory.
        next_number: of the next id that the bank gives (`m1`, `m2`, …).
        capacity: how many active memories it may have; None for any number.
        created: when the bank was first written to.
    """

    bank: str
    incarnation: str
    model: str
    dimensions: int
    revision: int
    next_ordinal: int
    next_number: int
    capacity: int | None
    created: datetime

    @property
    def version(self) -> str:
        """Changes with the bank's settings; another bank of the same name has another one."""
        return fingerprint(self.incarnation, self.capacity)


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory with what only the store knows of it.

    Attributes:
        ordinal: its place in the order of storing; its id in FAISS.
        revision: the bank's revision when its text, vector or state last changed.
        text_hash: SHA-256 of its text; of what was read, as it was stored.
        vector: little-endian float32.
        memory: what the caller sees.
    """

    ordinal: int
    revision: int
    text_hash: str
    vector: bytes
    memory: Memory


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def to_text(moment: datetime) -> str:
    """Return a moment as it is stored: always as long, so that later ones sort later."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def bank_columns(state: BankState) -> dict[str, Any]:
    """Return a bank's row."""
    return {
        "bank": state.bank,
        "incarnation": state.incarnation,
        "model": state.model,
        "dimensions": state.dimensions,
        "revision": state.revision,
        "next_ordinal": state.next_ordinal,
        "next_number": state.next_number,
        "capacity": state.capacity,
        "created": to_text(state.created),
    }


def to_bank(row: Sequence[Any]) -> BankState:
    """Return the value of a row of `banks`, columns in the order of the table."""
    names = [field.name for field in fields(BankState)]
    values = dict(zip(names, row, strict=True))
    return BankState(**values | {"created": datetime.fromisoformat(values["created"])})


def memory_columns(bank: str, stored: StoredMemory) -> dict[str, Any]:
    """Return a memory's row."""
    memory = stored.memory
    return {
        "bank": bank,
        "ordinal": stored.ordinal,
        "id": memory.id,
        "revision": stored.revision,
        "state": memory.state,
        "pinned": memory.pinned,
        "use_count": memory.use_count,
        "last_used": None if memory.last_used is None else to_text(memory.last_used),
        "created": to_text(memory.created),
        "model": memory.model,
        "text_hash": stored.text_hash,
        "text": memory.text,
        "actions": json.dumps(memory.actions),
        "metadata": json.dumps(dict(memory.metadata)),
        "vector": stored.vector,
    }


def to_memory(row: Sequence[Any]) -> StoredMemory:
    """Return the value of a row of `memories`, columns in the order of the table."""
    (
        _,
        ordinal,
        id_,
        revision,
        state,
        pinned,
        use_count,
        last_used,
        created,
        model,
        hashed,
        text,
        actions,
        meta,
        vector,
    ) = row
    known: State = state
    memory = Memory(
        id=id_,
        text=text,
        actions=() if actions == "[]" else tuple(json.loads(actions)),
        pinned=bool(pinned),
        metadata={} if meta == "{}" else json.loads(meta),
        state=known,
        model=model,
        created=datetime.fromisoformat(created),
        last_used=None if last_used is None else datetime.fromisoformat(last_used),
        use_count=use_count,
        ordinal=ordinal,
    )
    return StoredMemory(ordinal, revision, hashed, bytes(vector), memory)
