"""Rows of the database as values, and back. No statements and no numpy.

What is read is checked, for it may be damaged: SQLite stores any type in any column, and other programs write too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from memorybank.errors import StorageError
from memorybank.memory import Memory, State, fingerprint
from memorybank.terms import packed

if TYPE_CHECKING:
    from memorybank.writing.rhythm import Rhythm

__all__ = [
    "MEMORY_COLUMNS",
    "BankState",
    "StoredMemory",
    "bank_columns",
    "memory_columns",
    "text_hash",
    "to_bank",
    "to_memory",
    "to_text",
]


_BANK_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("bank", "incarnation", "model"), str),
    **dict.fromkeys(("dimensions", "revision", "next_ordinal", "next_number"), int),
    "capacity": (int, type(None)),
    "created": str,
}
_MEMORY_KINDS: Mapping[str, Any] = {
    "bank": str,
    "ordinal": int,
    "id": str,
    "revision": int,
    "state": str,
    "pinned": (bool, int),
    "use_count": int,
    "last_used": (str, type(None)),
    **dict.fromkeys(("created", "model", "text_hash", "text", "actions", "metadata"), str),
    "vector": (bytes, memoryview),
    "writer": (str, type(None)),
    "span": (int, type(None)),
    **dict.fromkeys(("source", "source_hashes", "held_state", "reason"), (str, type(None))),
}
MEMORY_COLUMNS = tuple(_MEMORY_KINDS)
"""Columns of the rows that `to_memory` reads, in their order."""
_STATES: tuple[State, ...] = get_args(State)


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

    def version(self, rhythm: Rhythm) -> str:
        """Return what changes with the bank's settings; another bank of the same name has another one.

        Args:
            rhythm: the bank's, which is not in its own row.
        """
        return fingerprint(self.incarnation, self.capacity, rhythm.every, rhythm.untouched, rhythm.summary_every)


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory with what only the store knows of it.

    Attributes:
        ordinal: its place in the order of storing; its id in FAISS.
        revision: the bank's revision when its text, vector or state last changed.
        text_hash: SHA-256 of its text; of what was read, as it was stored.
        vector: little-endian float32.
        memory: what the caller sees.
        span: the position of its first action in the log; None if it was written by hand.
        source: hash of the span that it was written from.
        source_hashes: hashes of the texts of its actions.
        held_state: its state before it became stale.
    """

    ordinal: int
    revision: int
    text_hash: str
    vector: bytes
    memory: Memory
    span: int | None = None
    source: str | None = None
    source_hashes: tuple[str, ...] = ()
    held_state: State | None = None


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
    """Return the value of a row of `banks`, columns in the order of the table.

    Raises:
        StorageError: the row is damaged.
    """
    values = dict(zip(_BANK_KINDS, row, strict=True))
    try:
        _check_kinds(row, _BANK_KINDS)
        if values["dimensions"] < 1:
            raise ValueError(f"dimensions is {values['dimensions']}")
        return BankState(**values | {"created": _moment(values["created"])})
    except ValueError as error:
        raise StorageError(
            f"bank {row[0]!r}: its row in the database is damaged ({error}): restore a copy of the database"
        ) from error


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
        "actions": json.dumps(memory.actions) if memory.actions else "[]",
        "metadata": json.dumps(dict(memory.metadata)) if memory.metadata else "{}",
        "vector": stored.vector,
        "writer": memory.writer,
        "span": stored.span,
        "source": stored.source,
        "source_hashes": json.dumps(stored.source_hashes) if stored.source_hashes else None,
        "held_state": stored.held_state,
        "reason": memory.reason or None,
        "terms": packed(memory.text),
    }


def to_memory(row: Sequence[Any]) -> StoredMemory:
    """Return the value of a row of `memories`, columns in the order of the table.

    Raises:
        StorageError: the row is damaged.
    """
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
        writer,
        span,
        source,
        source_hashes,
        held_state,
        reason,
    ) = row
    try:
        _check_kinds(row, _MEMORY_KINDS)
        memory = Memory(
            id=id_,
            text=text,
            actions=() if actions == "[]" else _actions(actions),
            pinned=bool(pinned),
            metadata={} if meta == "{}" else _metadata(meta),
            state=_state(state),
            model=model,
            created=_moment(created),
            last_used=None if last_used is None else _moment(last_used),
            use_count=use_count,
            ordinal=ordinal,
            writer=writer,
            reason=reason or "",
        )
        held = None if held_state is None else _state(held_state)
        hashes = () if source_hashes is None else _actions(source_hashes)
    except (ValueError, RecursionError) as error:
        raise StorageError(
            f"bank {row[0]!r}, memory {id_!r}: its row in the database is damaged ({error}): `memorybank check` lists "
            "all such rows; restore a copy of the database, or correct or delete the row with SQL"
        ) from error
    return StoredMemory(ordinal, revision, hashed, bytes(vector), memory, span, source, hashes, held)


def _check_kinds(row: Sequence[Any], kinds: Mapping[str, Any]) -> None:
    if not all(map(isinstance, row, kinds.values())):
        name, value = next(pair for pair in zip(kinds, row, strict=True) if not isinstance(pair[1], kinds[pair[0]]))
        raise ValueError(f"{name} is of type {type(value).__name__}")


def _state(stored: str) -> State:
    for known in _STATES:
        if stored == known:
            return known
    raise ValueError(f"state is {stored!r}")


def _moment(stored: str) -> datetime:
    moment = datetime.fromisoformat(stored)
    if moment.tzinfo is None:
        raise ValueError(f"the time {stored!r} has no zone")
    return moment


def _actions(stored: str) -> tuple[str, ...]:
    found = _json("actions", stored)
    if not isinstance(found, list) or not all(isinstance(action, str) for action in found):
        raise ValueError("actions is no list of strings")
    return tuple(found)


def _metadata(stored: str) -> dict[str, Any]:
    found = _json("metadata", stored)
    if not isinstance(found, dict):
        raise ValueError("metadata is no JSON object")
    return found


def _json(name: str, stored: str) -> Any:
    try:
        return _DECODER.decode(stored)
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
