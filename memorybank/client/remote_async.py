"""`AsyncRemoteBank`: a bank of a service, with the calls of `MemoryBank`. Each call is awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from memorybank.bank.info import BankInfo, LogChange, Page, Summary
from memorybank.bank.reads import Memories
from memorybank.bank.story import Due, Summaries
from memorybank.client.connection import Connection
from memorybank.client.exchange import Send, Steps, Wait
from memorybank.client.transport import AsyncTransport
from memorybank.client.wire import Answer, NoAnswer
from memorybank.memory import Memory, NewMemory, Progress, Recalled, State
from memorybank.search.ranking import DEFAULT_RANKING
from memorybank.writing.rhythm import Rhythm

__all__ = ["AsyncRemoteBank"]

T = TypeVar("T")
Results: TypeAlias = list[Recalled]  # inside the class, `list` is a method


class AsyncRemoteBank(Connection):
    """A bank of a service, for the tasks of one event loop; what a call does is said at `memorybank.MemoryBank`.

    ::

        async with AsyncRemoteBank("https://memories.example.com", "story-1", key=key) as bank:
            await bank.add("Mara hid the silver key under the chapel floor.")
            (await bank.search("Where is the key?", limit=1))[0].memory.text

    What differs is said in the docstring of the package.
    """

    def renew(self) -> None:
        """Make new connections: a child that was forked must not use its parent's."""
        self._transport = AsyncTransport(self.url, self._key)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; further calls raise `UnavailableError`."""
        self._closed = True
        await self._transport.close()

    async def add(
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
        return await self._run(self._calls.add(item))

    async def add_many(
        self, items: Iterable[NewMemory | Mapping[str, Any] | str], *, progress: Progress | None = None
    ) -> Memories:
        """Store memories, 1,000 at a time, each thousand all or none."""
        return await self._run(self._calls.add_many(items, progress))

    async def edit(
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
        return await self._run(self._calls.edit(id, changes, if_match))

    async def edit_many(self, edits: Iterable[Mapping[str, Any]], *, progress: Progress | None = None) -> Memories:
        """Change memories, 1,000 at a time, each thousand all or none."""
        return await self._run(self._calls.edit_many(edits, progress))

    async def delete(self, *ids: str, if_match: str | Iterable[str] | None = None) -> None:
        """Delete memories for good, 1,000 at a time, each thousand all or none."""
        await self._run(self._calls.delete(ids, if_match))

    async def delete_many(self, ids: Iterable[str]) -> None:
        """Delete memories; see `delete`."""
        await self._run(self._calls.delete(ids))

    async def pin(self, *ids: str) -> Memories:
        """Pin memories."""
        return await self._run(self._calls.change(ids, pinned=True))

    async def unpin(self, *ids: str) -> Memories:
        """Take the pins off."""
        return await self._run(self._calls.change(ids, pinned=False))

    async def forget(self, *ids: str) -> Memories:
        """Forget memories: still listed and restorable, not searched."""
        return await self._run(self._calls.change(ids, state="forgotten"))

    async def restore(self, *ids: str) -> Memories:
        """Make forgotten memories active again."""
        return await self._run(self._calls.change(ids, state="active"))

    async def mark_used(self, ids: Iterable[str]) -> int:
        """Count one use of each memory that went into a committed context; return how many there were."""
        return await self._run(self._calls.mark_used(ids))

    async def set_capacity(
        self, capacity: int | None, *, if_match: str | Iterable[str] | None = None, only_new: bool = False
    ) -> BankInfo:
        """Limit the number of active memories; None lifts the limit. Makes the bank if it is not there."""
        return await self._run(self._calls.set_settings({"capacity": capacity}, if_match, only_new))

    async def set_rhythm(
        self, rhythm: Rhythm, *, if_match: str | Iterable[str] | None = None, only_new: bool = False
    ) -> BankInfo:
        """Set how often a memory and the summary are written. Makes the bank if it is not there."""
        return await self._run(self._calls.set_settings({"rhythm": rhythm}, if_match, only_new))

    async def set_settings(
        self,
        settings: Mapping[str, Any],
        *,
        if_match: str | Iterable[str] | None = None,
        only_new: bool = False,
    ) -> BankInfo:
        """Change several settings at once, `capacity` and `rhythm`: all or none."""
        return await self._run(self._calls.set_settings(settings, if_match, only_new))

    async def put_actions(self, actions: Iterable[Any], *, after: str | None = None) -> LogChange:
        """Tell the bank what the log is now, in one request; what is due is written by the service afterwards."""
        return await self._run(self._calls.put_actions(actions, after))

    async def pending(self) -> Due:
        """Return the memories that are due and not written yet, in the order of the story."""
        return await self._run(self._calls.pending())

    async def pending_count(self) -> int:
        """Return how many memories are due and not written yet."""
        return await self._run(self._calls.pending_count())

    async def summary(self) -> Summary | None:
        """Return the Story Summary that holds now."""
        return await self._run(self._calls.summary())

    async def summaries(self) -> Summaries:
        """Return all versions of the Story Summary, the newest first."""
        return await self._run(self._calls.summaries())

    async def edit_summary(self, text: str) -> Summary:
        """Store a version of the player's own."""
        return await self._run(self._calls.edit_summary(text))

    async def restore_summary(self, version: int) -> Summary:
        """Store an earlier version's text as the newest version, as the player's own."""
        return await self._run(self._calls.restore_summary(version))

    async def branch(self, name: str, *, upto: str | None = None) -> None:
        """Copy this bank, as it was when the log ended with an action, to a new one of the same service and key."""
        await self._run(self._calls.branch(name, upto))

    async def get(self, id: str) -> Memory:
        """Return a memory."""
        return await self._run(self._calls.get(id))

    async def list(self, state: State | None = None) -> Memories:
        """Return all memories, or all of one state, in the order of storing."""
        return await self._run(self._calls.list(state))

    async def page(self, *, state: State | None = None, limit: int = 100, cursor: str | None = None) -> Page:
        """Return the next memories in the order of storing, and the cursor of those behind them."""
        return await self._run(self._calls.page(state, limit, cursor))

    async def count(self, state: State | None = None) -> int:
        """Return the number of memories, or of those of one state."""
        return await self._run(self._calls.count(state))

    async def exists(self) -> bool:
        """Return whether the bank was ever written to."""
        return await self._run(self._calls.exists())

    async def info(self) -> BankInfo:
        """Return what there is to know of the bank as a whole."""
        return await self._run(self._calls.info())

    async def search(
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
        return await self._run(self._calls.search(query, max_tokens=max_tokens, count_tokens=count_tokens, **how))

    async def _run(self, steps: Steps[T]) -> T:
        self._check_open()
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as finished:
                returned: T = finished.value
                return returned
            outcome = await self._do(step)

    async def _do(self, step: Send | Wait) -> Answer | NoAnswer | None:
        if isinstance(step, Wait):
            import anyio

            await anyio.sleep(step.seconds)
            return None
        return await self._transport.send(step.request, step.seconds)
