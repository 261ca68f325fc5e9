"""How a bank is changed: each call checks what it is given, then changes all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from memorybank import inputs
from memorybank.bank.reads import BankReads, Memories
from memorybank.memory import Memory, NewMemory, Progress, State

if TYPE_CHECKING:
    from memorybank.bank.writer import BankWriter
    from memorybank.storage import Store

__all__ = ["BankEdits"]


class BankEdits(BankReads):
    """The writing half of `MemoryBank`. A change is on disk when its call returns."""

    def __init__(self, store: Store, name: str, writer: BankWriter) -> None:
        super().__init__(store, name)
        self._writer = writer

    def add(
        self,
        text: str,
        *,
        id: str | None = None,
        actions: Iterable[str] = (),
        pinned: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store a memory; the same one written again is still one.

        With an `id` that exists: the same text changes nothing, another text is an edit. Without: if the bank has a
        memory of that text from the same actions, or one of the two says nothing of actions, it is that one; else it
        gets the next of `m1`, `m2`, …, which are never given twice. `actions`, `pinned` and `metadata` of a memory
        that exists are replaced by what is given here, and kept where nothing is. A forgotten memory stays forgotten
        (`restore`).

        Args:
            text: at most `inputs.MAX_TEXT` characters without surrounding whitespace, not empty.
            id: 1 to 200 printable characters.
            actions: ids of the actions that it was made from, oldest first, at most 10,000.
            pinned: put it before all others in a context, and never forget it for lack of room.
            metadata: anything JSON can hold, at most 100,000 characters of it.

        Returns:
            The memory as it is stored now.

        Raises:
            InvalidInputError: an argument is not what it should be.
            ModelError: no vector could be made.
            StorageError: it could not be stored.
        """
        item = {"text": text, "id": id, "actions": actions, "pinned": pinned, "metadata": metadata or {}}
        return self._writer.add([inputs.checked_new(item, what="memory")])[0]

    def add_many(
        self, items: Iterable[NewMemory | Mapping[str, Any] | str], *, progress: Progress | None = None
    ) -> Memories:
        """Store memories, all or none, as if added one by one in this order; see `add`.

        Args:
            items: `NewMemory`, mappings with its fields, or texts.
            progress: called with (texts embedded, texts in all) as the work goes on.

        Returns:
            For each item its memory as it is after the call.
        """
        checked = [
            inputs.checked_new(item, what=f"memory {place}")
            for place, item in enumerate(inputs.listed(items, "items"), 1)
        ]
        return self._writer.add(checked, progress) if checked else []

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
        """Change what is given of a memory; another text is embedded anew. `metadata` is replaced as a whole.

        Args:
            id: of the memory.
            text: what happened.
            actions: ids of its source actions.
            pinned: whether it comes before all others.
            metadata: kept for the caller.
            state: `active` or `forgotten`.
            if_match: the `version` that the caller has read, or several; the memory is changed only if it is still
                that one.

        Raises:
            InvalidInputError: an argument is not what it should be.
            MemoryNotFoundError: there is no such memory.
            ModelError: no vector could be made.
            PreconditionError: it is another version by now.
            StorageError: it could not be stored.
        """
        versions = inputs.checked_versions(if_match)
        given = {"text": text, "actions": actions, "pinned": pinned, "metadata": metadata, "state": state}
        item = {"id": id} | {name: value for name, value in given.items() if value is not None}
        return self._writer.edit([inputs.checked_edit(item, what="edit")], versions=versions)[0]

    def edit_many(self, edits: Iterable[Mapping[str, Any]], *, progress: Progress | None = None) -> Memories:
        """Change memories, all or none: each item has an `id` and the fields to change; see `edit`."""
        checked = [
            inputs.checked_edit(edit, what=f"edit {place}")
            for place, edit in enumerate(inputs.listed(edits, "edits"), 1)
        ]
        return self._writer.edit(checked, progress) if checked else []

    def delete(self, *ids: str, if_match: str | Iterable[str] | None = None) -> None:
        """Delete memories for good, all or none. Their ordinals and the ids that the bank gave never come back.

        Args:
            ids: of the memories.
            if_match: the `version` that the caller has read, or several; each memory must still be one of them.

        Raises:
            MemoryNotFoundError: one of them does not exist.
            PreconditionError: one of them is another version by now.
        """
        versions = inputs.checked_versions(if_match)
        if checked := inputs.checked_ids(ids):
            self._writer.delete(checked, versions=versions)

    def delete_many(self, ids: Iterable[str]) -> None:
        """Delete memories; see `delete`."""
        self.delete(*inputs.listed(ids, "ids"))

    def pin(self, *ids: str) -> Memories:
        """Pin memories, all or none: they come before all others in a context and are never forgotten for room."""
        return self.edit_many({"id": id_, "pinned": True} for id_ in inputs.checked_ids(ids))

    def unpin(self, *ids: str) -> Memories:
        """Take the pins off, all or none."""
        return self.edit_many({"id": id_, "pinned": False} for id_ in inputs.checked_ids(ids))

    def forget(self, *ids: str) -> Memories:
        """Forget memories, all or none: still listed and restorable, not searched. Pinned ones too, if you say so."""
        checked = inputs.checked_ids(ids)
        return self._writer.set_state(checked, "forgotten") if checked else []

    def restore(self, *ids: str) -> Memories:
        """Make forgotten memories active again, all or none. A full bank then forgets its least used others."""
        checked = inputs.checked_ids(ids)
        return self._writer.set_state(checked, "active") if checked else []

    def mark_used(self, ids: Iterable[str]) -> int:
        """Count one use of each memory that went into a committed context; call it once per context.

        Returns:
            How many there were. One that was deleted meanwhile is passed over: a turn must not fail for that.
        """
        checked = inputs.checked_ids(ids)
        return self._writer.count_use(checked) if checked else 0
