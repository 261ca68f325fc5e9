"""Every question that is asked of the database, inside one snapshot of it. Each is about one bank, but for a list."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeAlias

from sqlalchemy import ARRAY, BindParameter, ColumnElement, Select, and_, bindparam, func, or_, select

from memorybank.memory import State
from memorybank.storage.direct import Executor
from memorybank.storage.rows import BankState, StoredMemory, to_bank, to_memory
from memorybank.storage.schema import banks, deletions, memories
from memorybank.storage.story import StoryTable
from memorybank.terms import is_packed, packed
from memorybank.writing.rhythm import Rhythm

__all__ = ["CHUNK", "ONE_OF", "STATE", "Reader", "StoredTerms", "chunks"]

StoredTerms: TypeAlias = tuple[list[int], list[int | None], list[bytes]]
"""Of some memories: ordinals, spans, and the terms as `memorybank.terms.packed` makes them."""

CHUNK = 20_000
"""Values in one IN list. SQLite allows 32,766."""
BITE = 5_000
"""Vectors read at once when an index is built."""
ONE_OF: Mapping[str, Callable[[ColumnElement[Any]], ColumnElement[bool]]] = {
    "sqlite": lambda column: column.in_(bindparam("keys", expanding=True)),
    "postgresql": lambda column: column == func.any(bindparam("keys", type_=ARRAY(type(column.type)))),
}
"""By engine: whether a column is one of the values `keys`. PostgreSQL takes them as one array, and plans once."""

_BANK: BindParameter[str] = bindparam("of_bank")
_OF_BANK = memories.c.bank == _BANK
_ACTIVE = memories.c.state == "active"
_VECTORS = select(memories.c.ordinal, memories.c.vector)

# Built once: SQLAlchemy then finds their text in its cache by identity.
STATE = select(banks).where(banks.c.bank == _BANK)
_ALL = select(*(column for column in memories.c if column.name != "terms")).where(_OF_BANK)
_BY = {
    (engine, name): _ALL.where(one_of(memories.c[name]))
    for engine, one_of in ONE_OF.items()
    for name in ("id", "ordinal", "text_hash")
}
_VECTORS_BY = {engine: _VECTORS.where(_OF_BANK, one_of(memories.c.ordinal)) for engine, one_of in ONE_OF.items()}
_PINNED = select(memories.c.ordinal).where(_OF_BANK, _ACTIVE, memories.c.pinned.is_(True))
_LEAST_USED = (
    select(memories.c.use_count, memories.c.ordinal)
    .where(_OF_BANK, _ACTIVE, ~memories.c.pinned)
    .order_by(memories.c.use_count, memories.c.ordinal)
    .limit(bindparam("most"))
)
_COUNTS = select(memories.c.state, func.count()).where(_OF_BANK).group_by(memories.c.state)
_ANY = select(memories.c.ordinal).where(_OF_BANK).limit(1)
_ANY_ACTIVE = _ANY.where(_ACTIVE)
_ACTIVE_VECTORS = _VECTORS.where(_OF_BANK, _ACTIVE).order_by(memories.c.ordinal).execution_options(stream_results=True)
_CHANGED = _VECTORS.add_columns(memories.c.state).where(_OF_BANK, memories.c.revision > bindparam("since"))
_TERMS = select(memories.c.ordinal, memories.c.span, memories.c.terms, memories.c.state).where(_OF_BANK)
_ACTIVE_BOTH = (
    select(memories.c.ordinal, memories.c.span, memories.c.terms, memories.c.vector)
    .where(_OF_BANK, _ACTIVE)
    .order_by(memories.c.ordinal)
    .execution_options(stream_results=True)
)
_ACTIVE_TERMS = _TERMS.where(_ACTIVE).order_by(memories.c.ordinal).execution_options(stream_results=True)
_CHANGED_TERMS = _TERMS.where(memories.c.revision > bindparam("since"))
_TERMS_BY = {
    engine: select(memories.c.ordinal, memories.c.terms).where(_OF_BANK, one_of(memories.c.ordinal))
    for engine, one_of in ONE_OF.items()
}
_TEXTS_BY = {
    engine: select(memories.c.ordinal, memories.c.text).where(_OF_BANK, one_of(memories.c.ordinal))
    for engine, one_of in ONE_OF.items()
}
_TEXTS = select(memories.c.ordinal, memories.c.text).where(_OF_BANK, memories.c.revision > bindparam("since"))
_DELETED = select(deletions.c.ordinal).where(deletions.c.bank == _BANK, deletions.c.revision > bindparam("since"))
_BANKS = (
    select(banks)
    .where(banks.c.bank > bindparam("after"), banks.c.bank < bindparam("end"))
    .order_by(banks.c.bank)
    .limit(bindparam("most"))
)
_BANKS_OF_NONE = _BANKS.where(~banks.c.bank.contains("/"))
_COUNTS_OF = (
    select(memories.c.bank, memories.c.state, func.count())
    .where(memories.c.bank.in_(bindparam("keys", expanding=True)))
    .group_by(memories.c.bank, memories.c.state)
)
_OF_SPANS = _ALL.where(
    or_(
        and_(memories.c.span >= bindparam("since"), memories.c.span < bindparam("stop")),
        and_(memories.c.state == "stale", memories.c.span.is_not(None)),
    )
)
_TEXTS_OF_SPANS = (
    select(memories.c.text)
    .where(_OF_BANK, memories.c.span >= bindparam("since"), memories.c.span < bindparam("stop"))
    .where(memories.c.state != "stale")
    .order_by(memories.c.span, memories.c.ordinal)
)
_PAGE = _ALL.where(memories.c.ordinal > bindparam("after")).order_by(memories.c.ordinal).limit(bindparam("most"))
_PAGE_OF_STATE = _PAGE.where(memories.c.state == bindparam("of_state"))


def chunks(items: Sequence[Any], size: int = CHUNK) -> Iterator[Sequence[Any]]:
    """Return the items in pieces of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


class Reader:
    """Questions inside one transaction: all answers are of the same moment.

    Attributes:
        story: those about the bank's log and what is written from it.
    """

    def __init__(self, connection: Executor) -> None:
        self._connection = connection
        self._engine = connection.dialect.name
        self.story = StoryTable(connection)

    def bank(self, bank: str) -> BankState | None:
        """Return the bank's row, None if nothing was ever written to it."""
        row = self._connection.execute(STATE, {"of_bank": bank}).first()
        return None if row is None else to_bank(row)

    def banks(self, namespace: str, *, after: str, limit: int) -> list[tuple[BankState, dict[str, int], Rhythm]]:
        """Return the next banks of a namespace behind a name, in order, each with its counts by state and its rhythm.

        The only question that is not about one bank: with Citus it goes to all shards.
        """
        begin, end = (f"{namespace}/", f"{namespace}0") if namespace else ("", "\U0010ffff")  # `0` comes behind `/`
        statement = _BANKS if namespace else _BANKS_OF_NONE
        values = {"after": max(after, begin), "end": end, "most": limit}
        found = [to_bank(row) for row in self._connection.execute(statement, values)]
        counts: dict[str, dict[str, int]] = {state.bank: {} for state in found}
        for bank, state, number in self._connection.execute(_COUNTS_OF, {"keys": list(counts)}) if counts else ():
            counts[bank][state] = number
        rhythms = self.story.rhythms(list(counts))
        return [(state, counts[state.bank], rhythms[state.bank]) for state in found]

    def by_ids(self, bank: str, ids: Sequence[str]) -> list[StoredMemory]:
        """Return those of the memories that exist, in the order of storing."""
        return self._by("id", bank, ids)

    def by_ordinals(self, bank: str, ordinals: Sequence[int]) -> list[StoredMemory]:
        """Return those of the memories that exist, in the order of storing."""
        return self._by("ordinal", bank, ordinals)

    def by_hashes(self, bank: str, hashes: Sequence[str]) -> list[StoredMemory]:
        """Return all memories with one of these text hashes, in the order of storing."""
        return self._by("text_hash", bank, hashes)

    def vectors(self, bank: str, ordinals: Sequence[int]) -> list[tuple[int, bytes]]:
        """Return (ordinal, vector) of those of the memories that exist, in the order of storing."""
        statement = _VECTORS_BY[self._engine]
        found: list[tuple[int, bytes]] = [
            (ordinal, vector)
            for some in chunks(ordinals)
            for ordinal, vector in self._connection.execute(statement, {"of_bank": bank, "keys": list(some)})
        ]
        return sorted(found)

    def pinned(self, bank: str) -> list[int]:
        """Return the ordinals of all active memories that are pinned."""
        return list(self._connection.execute(_PINNED, {"of_bank": bank}).scalars())

    def of_spans(self, bank: str, since: int, stop: int) -> list[StoredMemory]:
        """Return the memories written from actions between two positions, and all stale ones, in no order."""
        return self._all(_OF_SPANS, of_bank=bank, since=since, stop=stop)

    def texts_of_spans(self, bank: str, start: int, stop: int) -> list[str]:
        """Return the texts of the memories that hold and were written from actions between two positions."""
        values = {"of_bank": bank, "since": start, "stop": stop}
        return list(self._connection.execute(_TEXTS_OF_SPANS, values).scalars())

    def page(self, bank: str, *, state: State | None, after: int, limit: int) -> list[StoredMemory]:
        """Return the next memories behind an ordinal, in the order of storing."""
        if state is None:
            return self._all(_PAGE, of_bank=bank, after=after, most=limit)
        return self._all(_PAGE_OF_STATE, of_bank=bank, after=after, most=limit, of_state=state)

    def rows(self, bank: str, *, after: int, limit: int) -> Sequence[Sequence[Any]]:
        """Return the next rows behind an ordinal as they are stored, for `to_memory`: some may be damaged."""
        found: Sequence[Sequence[Any]]
        found = self._connection.execute(_PAGE, {"of_bank": bank, "after": after, "most": limit}).all()
        return found

    def counts(self, bank: str) -> dict[str, int]:
        """Return how many memories there are by state."""
        return {row[0]: row[1] for row in self._connection.execute(_COUNTS, {"of_bank": bank})}

    def has_memories(self, bank: str, *, active: bool = False) -> bool:
        """Return whether there is any memory, or any active one: what `counts` says, without counting."""
        return self._connection.execute(_ANY_ACTIVE if active else _ANY, {"of_bank": bank}).first() is not None

    def least_used(self, bank: str, limit: int) -> list[tuple[int, int]]:
        """Return (use count, ordinal) of the active memories that may be forgotten, the first to go first."""
        rows = self._connection.execute(_LEAST_USED, {"of_bank": bank, "most": limit})
        return [(use_count, ordinal) for use_count, ordinal in rows]

    def active_vectors(self, bank: str) -> Generator[tuple[list[int], list[bytes]]]:
        """Return ordinals and vectors of all active memories, a bite at a time. Close it if you leave it early."""
        with closing(self._bites(_ACTIVE_VECTORS, bank)) as bites:
            for bite in bites:
                yield [row[0] for row in bite], [row[1] for row in bite]

    def _bites(self, statement: Select[Any], bank: str) -> Generator[Sequence[Any]]:
        """Return rows a bite at a time, by the driver's own cursor: 100,000 of SQLAlchemy's take as long as reading."""
        with closing(self._connection.execute(statement, {"of_bank": bank})) as result:
            first, cursor = result.fetchone(), result.cursor  # of a server's cursor, SQLAlchemy has read one row ahead
            if first is None or cursor is None:
                return
            bite: Sequence[Any] = [first, *cursor.fetchmany(BITE - 1)]
            while bite:
                yield bite
                bite = cursor.fetchmany(BITE)

    def changed(self, bank: str, since: int) -> tuple[list[int], list[tuple[int, bytes]]]:
        """Return what an index that has seen revision `since` must do: the ordinals to remove, the vectors to put."""
        values = {"of_bank": bank, "since": since}
        gone = list(self._connection.execute(_DELETED, values).scalars())
        put = []
        for ordinal, vector, state in self._connection.execute(_CHANGED, values):
            if state == "active":
                put.append((ordinal, vector))
            else:
                gone.append(ordinal)
        return gone, put

    def active_terms(self, bank: str) -> Generator[StoredTerms]:
        """Return the terms of all active memories, a bite at a time. Close it if you leave it early."""
        with closing(self._bites(_ACTIVE_TERMS, bank)) as bites:
            for bite in bites:
                yield self._terms(bank, bite)

    def active_both(self, bank: str) -> Generator[tuple[list[bytes], StoredTerms]]:
        """Return vectors and terms of all active memories, read once for both. Close it if you leave it early."""
        with closing(self._bites(_ACTIVE_BOTH, bank)) as bites:
            for bite in bites:
                yield [row[3] for row in bite], self._terms(bank, bite)

    def changed_terms(self, bank: str, since: int) -> tuple[list[int], StoredTerms]:
        """Return what a lexical index that has seen revision `since` must do: the ordinals to remove, what to put."""
        values = {"of_bank": bank, "since": since}
        gone = list(self._connection.execute(_DELETED, values).scalars())
        put = []
        for row in self._connection.execute(_CHANGED_TERMS, values):
            if row[3] == "active":
                put.append(row)
            else:
                gone.append(row[0])
        return gone, self._terms(bank, put)

    def _terms(self, bank: str, rows: Sequence[Sequence[Any]]) -> StoredTerms:
        ordinals, spans, terms = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
        unknown = [ordinal for ordinal, blob in zip(ordinals, terms, strict=True) if not is_packed(blob)]
        if unknown:
            made: dict[int, bytes] = {}
            for some in chunks(unknown):
                texts = self._connection.execute(_TEXTS_BY[self._engine], {"of_bank": bank, "keys": list(some)})
                made |= {ordinal: packed(text) for ordinal, text in texts}
            terms = [made.get(ordinal, blob) for ordinal, blob in zip(ordinals, terms, strict=True)]
        return ordinals, spans, terms

    def stored_terms(self, bank: str, ordinals: Sequence[int]) -> dict[int, Any]:
        """Return what is stored as the terms of memories, null and damaged ones included."""
        statement = _TERMS_BY[self._engine]
        return {
            ordinal: terms
            for some in chunks(ordinals)
            for ordinal, terms in self._connection.execute(statement, {"of_bank": bank, "keys": list(some)})
        }

    def texts(self, bank: str, since: int) -> list[tuple[int, str]]:
        """Return ordinal and text of all memories, of any state, that changed after revision `since`."""
        rows = self._connection.execute(_TEXTS, {"of_bank": bank, "since": since})
        return sorted((ordinal, text) for ordinal, text in rows)

    def _by(self, column: str, bank: str, keys: Sequence[Any]) -> list[StoredMemory]:
        found = [
            row for some in chunks(keys) for row in self._all(_BY[self._engine, column], of_bank=bank, keys=list(some))
        ]
        return sorted(found, key=lambda row: row.ordinal)  # ORDER BY would make SQLite walk the whole bank in order

    def _all(self, statement: Select[Any], **values: Any) -> list[StoredMemory]:
        return [to_memory(row) for row in self._connection.execute(statement, values)]
