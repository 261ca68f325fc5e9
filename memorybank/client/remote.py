"""`RemoteBank`: a bank of a service, with the calls of `MemoryBank`. Each call blocks until it is answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from memorybank.bank.info import BankInfo, LogChange, Page, Summary
from memorybank.bank.reads import Memories
from memorybank.bank.story import Due, Summaries
from memorybank.client.connection import Connection
from memorybank.client.exchange import Send, Steps, Wait
from memorybank.client.transport import Transport
from memorybank.client.wire import Answer, NoAnswer
from memorybank.memory import Memory, NewMemory, Progress, Recalled, State
from memorybank.search.ranking import DEFAULT_RANKING
from memorybank.writing.rhythm import Rhythm

__all__ = ["RemoteBank"]

T = TypeVar("T")
Results: TypeAlias = list[Recalled]  # inside the class, `list` is a method


class RemoteBank(Connection):
    """A bank of a service, for any number of threads; what a call does is said at `memorybank.MemoryBank`.

    ::

        with RemoteBank("https://memories.example.com", "story-1", key=key) as bank:
            bank.add("Mara hid the silver key under the chapel floor.")
            bank.search("Where is the key?", limit=1)[0].memory.text

    What differs is said in the docstring of the package.
    """

    def renew(self) -> None:
        """Make new connections: a child that was forked must not use its parent's."""
        self._transport = Transport(self.url, self._key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; further calls raise `UnavailableError`."""
        self._closed = True
        self._transport.close()

    def add(
        self,
        text: str,
        *,
        id: str | None = None,
        actions: Iterable[str] = (),
        pinned: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store a memory; the same one written again is still one."""
        item = {"text": text, "id": id, "actions": actions, "pinned": pinned, "metadata": metadata or {}}
        return self._run(self._calls.add(item))

    def add_many(
        self, items: Iterable[NewMemory | Mapping[str, Any] | str], *, progress: Progress | None = None
    ) -> Memories:
        """Store memories, 1,000 at a time, each thousand all or none."""
        return self._run(self._calls.add_many(items, progress))

    def edit(
        self,
        id: str,
        *,
        text: str | None = None,
        actions: Iterable[str] | None = None,
        pinned: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        state: State | None = None,
        if_match: str | Iterable[str] | None = None,
    ) -> Memory:
        """Change what is given of a memory."""
        changes = {"text": text, "actions": actions, "pinned": pinned, "metadata": metadata, "state": state}
        return self._run(self._calls.edit(id, changes, if_match))

    def edit_many(self, edits: Iterable[Mapping[str, Any]], *, progress: Progress | None = None) -> Memories:
        """Change memories, 1,000 at a time, each thousand all or none."""
        return self._run(self._calls.edit_many(edits, progress))

    def delete(self, *ids: str, if_match: str | Iterable[str] | None = None) -> None:
        """Delete memories for good, 1,000 at a time, each thousand all or none."""
        self._run(self._calls.delete(ids, if_match))

    def delete_many(self, ids: Iterable[str]) -> None:
        """Delete memories; see `delete`."""
        self._run(self._calls.delete(ids))

    def pin(self, *ids: str) -> Memories:
        """Pin memories."""
        return self._run(self._calls.change(ids, pinned=True))

    def unpin(self, *ids: str) -> Memories:
        """Take the pins off."""
        return self._run(self._calls.change(ids, pinned=False))

    def forget(self, *ids: str) -> Memories:
        """Forget memories: still listed and restorable, not searched."""
        return self._run(self._calls.change(ids, state="forgotten"))

    def restore(self, *ids: str) -> Memories:
        """Make forgotten memories active again."""
        return self._run(self._calls.change(ids, state="active"))

    def mark_used(self, ids: Iterable[str]) -> int:
        """Count one use of each memory that went into a committed context; return how many there were."""
        return self._run(self._calls.mark_used(ids))

    def set_capacity(
        self, capacity: int | None, *, if_match: str | Iterable[str] | None = None, only_new: bool = False
    ) -> BankInfo:
        """Limit the number of active memories; None lifts the limit. Makes the bank if it is not there."""
        return self._run(self._calls.set_settings({"capacity": capacity}, if_match, only_new))

    def set_rhythm(
        self, rhythm: Rhythm, *, if_match: str | Iterable[str] | None = None, only_new: bool = False
    ) -> BankInfo:
        """Set how often a memory and the summary are written. Makes the bank if it is not there."""
        return self._run(self._calls.set_settings({"rhythm": rhythm}, if_match, only_new))

    def set_settings(
        self,
        settings: Mapping[str, Any],
        *,
        if_match: str | Iterable[str] | None = None,
        only_new: bool = False,
    ) -> BankInfo:
        """Change several settings at once, `capacity` and `rhythm`: all or none."""
        return self._run(self._calls.set_settings(settings, if_match, only_new))

    def put_actions(self, actions: Iterable[Any], *, after: str | None = None) -> LogChange:
        """Tell the bank what the log is now, in one request; what is due is written by the service afterwards."""
        return self._run(self._calls.put_actions(actions, after))

    def pending(self) -> Due:
        """Return the memories that are due and not written yet, in the order of the story."""
        return self._run(self._calls.pending())

    def pending_count(self) -> int:
        """Return how many memories are due and not written yet."""
        return self._run(self._calls.pending_count())

    def summary(self) -> Summary | None:
        """Return the Story Summary that holds now."""
        return self._run(self._calls.summary())

    def summaries(self) -> Summaries:
        """Return all versions of the Story Summary, the newest first."""
        return self._run(self._calls.summaries())

    def edit_summary(self, text: str) -> Summary:
        """Store a version of the player's own."""
        return self._run(self._calls.edit_summary(text))

    def restore_summary(self, version: int) -> Summary:
        """Store an earlier version's text as the newest version, as the player's own."""
        return self._run(self._calls.restore_summary(version))

    def branch(self, name: str, *, upto: str | None = None) -> None:
        """Copy this bank, as it was when the log ended with an action, to a new one of the same service and key."""
        self._run(self._calls.branch(name, upto))

    def get(self, id: str) -> Memory:
        """Return a memory."""
        return self._run(self._calls.get(id))

    def list(self, state: State | None = None) -> Memories:
        """Return all memories, or all of one state, in the order of storing."""
        return self._run(self._calls.list(state))

    def page(self, *, state: State | None = None, limit: int = 100, cursor: str | None = None) -> Page:
        """Return the next memories in the order of storing, and the cursor of those behind them."""
        return self._run(self._calls.page(state, limit, cursor))

    def count(self, state: State | None = None) -> int:
        """Return the number of memories, or of those of one state."""
        return self._run(self._calls.count(state))

    def exists(self) -> bool:
        """Return whether the bank was ever written to."""
        return self._run(self._calls.exists())

    def info(self) -> BankInfo:
        """Return what there is to know of the bank as a whole."""
        return self._run(self._calls.info())

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        max_tokens: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        min_similarity: float | None = None,
        ranking: str = DEFAULT_RANKING,
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        explain: bool = False,
        retellings: bool = False,
    ) -> Results:
        """Return the active memories that fit a query best, best first."""
        how = {"limit": limit, "min_similarity": min_similarity, "ranking": ranking, "recent": recent}
        how |= {"pinned_first": pinned_first, "explain": explain, "retellings": retellings}
        return self._run(self._calls.search(query, max_tokens=max_tokens, count_tokens=count_tokens, **how))

    def _run(self, steps: Steps[T]) -> T:
        self._check_open()
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as finished:
                returned: T = finished.value
                return returned
            outcome = self._do(step)

    def _do(self, step: Send | Wait) -> Answer | NoAnswer | None:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        return self._transport.send(step.request, step.seconds)
