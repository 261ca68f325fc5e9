"""The banks of one database as objects that are made once, and their indexes within a limit of memory."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from memorybank import inputs
from memorybank.bank import MemoryBank
from memorybank.bank.info import BankInfo
from memorybank.bank.reads import info_of
from memorybank.errors import BankNotFoundError, PreconditionError
from memorybank.forking import renew_after_fork
from memorybank.host.index_ledger import IndexLedger, LedgerStats
from memorybank.host.keys import KeyRing
from memorybank.search.live_index import LiveIndex
from memorybank.storage import Store, open_store

if TYPE_CHECKING:
    from memorybank.embedding import Embedder
    from memorybank.search.reranking import Reranking

__all__ = ["BankHost", "BankPage", "HostStats"]

INDEX_BYTES = 1 << 30
"""Bytes of indexes kept in memory: 3,000 banks of 200 memories, or one of 1,200,000 in half precision."""
MOST_BANKS = 10_000
"""Banks whose objects are kept; one without its index takes some kilobytes."""


@dataclass(frozen=True, slots=True)
class BankPage:
    """Some banks in the order of their names, and where the next ones begin.

    Attributes:
        banks: those of this page.
        cursor: hand it back for the next page; None when this is the last.
    """

    banks: tuple[BankInfo, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class HostStats:
    """What is in memory now, and what has been since the start.

    Attributes:
        banks: bank objects at hand.
        indexes: of their indexes.
    """

    banks: int
    indexes: LedgerStats


class BankHost:
    """All banks of one database, for any number of threads; other processes may use the same database.

    Attributes:
        where: what messages call the database; without a password.
        embedder: the embedding model of all banks; None for the default one.
        reranking: the cross-encoder of all banks, if there is one.
        keys: its API keys.
    """

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None = None,
        index_bytes: int = INDEX_BYTES,
        clock: Callable[[], datetime] | None = None,
        reranking: Reranking | None = None,
    ) -> None:
        """See `open`."""
        self.where = store.where
        self.keys = KeyRing(store, clock)
        self._store = store
        self.embedder = embedder
        self.reranking = reranking
        self._clock = clock
        self._ledger = IndexLedger(inputs.checked_limit(index_bytes, what="index_bytes", most=2**53))
        self._banks: OrderedDict[str, tuple[MemoryBank, LiveIndex]] = OrderedDict()
        self.renew()
        renew_after_fork(self)

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        *,
        embedder: Embedder | None = None,
        index_bytes: int = INDEX_BYTES,
        clock: Callable[[], datetime] | None = None,
        create: bool = True,
        reranking: Reranking | None = None,
    ) -> Self:
        """Open a database.

        Args:
            place: as in `MemoryBank.open`.
            embedder: the embedding model of all banks; None for the default one.
            index_bytes: memory for the indexes of the banks used last.
            clock: gives the present time with its zone; None for the computer's clock.
            create: make the database and its tables when they are not there.
            reranking: the cross-encoder of the ranking `reranked`, for all banks.

        Raises:
            InvalidInputError: an argument is not what it should be.
            StorageError: the database cannot be opened, or is not one of this program.
        """
        store = open_store(place, create=create)
        try:
            return cls(store, embedder=embedder, index_bytes=index_bytes, clock=clock, reranking=reranking)
        except BaseException:
            store.close()
            raise

    def renew(self) -> None:
        """Drop a lock that another thread of the parent may have held when this process was forked."""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"BankHost({self._store!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bank(self, name: str) -> MemoryBank:
        """Return a bank, the same object for the same name. It need not exist; do not close it."""
        with self._lock:
            if name not in self._banks:
                live = LiveIndex(self._store, name, on_use=self._ledger.used)
                bank = MemoryBank(
                    self._store,
                    name,
                    embedder=self.embedder,
                    clock=self._clock,
                    live=live,
                    reranking=self.reranking,
                )
                self._banks[name] = bank, live
            self._banks.move_to_end(name)
            bank = self._banks[name][0]
            surplus = self._banks.popitem(last=False)[1] if len(self._banks) > MOST_BANKS else None
        if surplus is not None:
            self._ledger.forget(surplus[1])
        return bank

    def banks(self, *, namespace: str = "", limit: int = 100, cursor: str | None = None) -> BankPage:
        """Return the next banks of a namespace in the order of their names, 1 to 10,000, as they are stored.

        Args:
            namespace: those whose names begin with this and a slash; "" for those without a slash.
            limit: how many at most.
            cursor: that of the page before.
        """
        most = inputs.checked_limit(limit)
        after = "" if cursor is None else inputs.checked_id(cursor, what="cursor")
        with self._store.read() as reader:
            found = reader.banks(namespace, after=after, limit=most + 1)
        page = tuple(info_of(*one) for one in found[:most])
        return BankPage(page, page[-1].name if len(found) > most else None)

    def due_banks(self, *, limit: int = 100) -> list[str]:
        """Return banks that have memories or a summary to be written now, the longest waiting first."""
        with self._store.read() as reader:
            return reader.story.due(self._now(), inputs.checked_limit(limit))

    def _now(self) -> datetime:
        return datetime.now(UTC) if self._clock is None else self._clock()

    def delete_bank(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a bank with all its memories, for good.

        Raises:
            BankNotFoundError: there is no such bank.
            PreconditionError: `if_match` is given and is not the bank's `version` any more.
        """
        inputs.checked_id(name, what="the bank's name")
        versions = inputs.checked_versions(if_match)
        with self._store.write() as writer:
            state = writer.bank(name)
            if state is None:
                raise BankNotFoundError(f"there is no bank {name!r}: nothing was changed")
            if versions is not None and (version := state.version(writer.story.rhythm(name))) not in versions:
                raise PreconditionError(
                    f"bank {name!r} has version {version} by now: read it again and repeat the call"
                )
            writer.delete_bank(name)
        with self._lock:
            gone = self._banks.pop(name, None)
        if gone is not None:
            self._ledger.forget(gone[1])

    def ping(self) -> None:
        """Ask the database anything at all.

        Raises:
            StorageError: it does not answer.
        """
        self._store.ping()

    def stats(self) -> HostStats:
        """Return what is in memory now, and what has been since the start."""
        return HostStats(len(self._banks), self._ledger.stats())

    def close(self) -> None:
        """Close the database. Nothing has to be saved."""
        self._store.close()
