"""The bank and the log: memories that are written from it, hold as long as it does, and the Story Summary."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from memorybank import inputs
from memorybank.bank.edits import BankEdits
from memorybank.bank.info import LogChange, Pending, Summary
from memorybank.bank.reads import Memories, summary_of
from memorybank.errors import InvalidInputError
from memorybank.memory import Progress
from memorybank.text import join_surrogates

if TYPE_CHECKING:
    from memorybank.bank.model import ModelInUse
    from memorybank.bank.story_writer import StoryWriter
    from memorybank.storage import Store
    from memorybank.writing.port import MemoryWriter

__all__ = ["BankStory", "Due", "Summaries", "checked_summary"]

Summaries: TypeAlias = list[Summary]  # inside the class, `list` is a method
Due: TypeAlias = list[Pending]


class BankStory(BankEdits):
    """The part of `MemoryBank` that follows the log (SPEC.md section 9)."""

    def __init__(self, store: Store, name: str, writer: StoryWriter, model: ModelInUse) -> None:
        super().__init__(store, name, writer)
        self._story_writer = writer
        self._model = model

    def put_actions(self, actions: Iterable[Any], *, after: str | None = None) -> LogChange:
        """Tell the bank what the log is now; memories of actions that changed or are gone are stale from then on.

        Call it whenever the log has changed: after a turn, an edit, an undo, a retry. What is the same as before costs
        a comparison. Nothing is written by a writer here; see `write_due`.

        Args:
            actions: objects or mappings with `id`, `kind` and `text`: the log as it stands, or its new end.
            after: id of the action behind which they stand; what stood there before is gone. None for the whole log.

        Raises:
            ActionNotFoundError: `after` is not in the log.
            InvalidInputError: an action is not what it should be.
            StorageError: it could not be stored.
        """
        from memorybank.story.log import checked_log

        return self._story_writer.put_actions(checked_log(actions), None if after is None else inputs.checked_id(after))

    def pending(self) -> Due:
        """Return the memories that are due and not written yet, in the order of the story."""
        from memorybank.story.work import survey

        with self._store.read() as reader:
            story = reader.story.story(self.name)
            found = () if story is None else survey(reader, self.name, story).memories
        return [
            Pending(
                tuple(id_ for id_, _ in json.loads(work.task.sources)),
                work.task.attempts,
                work.task.error,
                work.task.until,
            )
            for work in found
        ]

    def pending_count(self) -> int:
        """Return how many memories are due and not written yet."""
        from memorybank.story.work import survey

        with self._store.read() as reader:
            story = reader.story.story(self.name)
            return 0 if story is None else len(survey(reader, self.name, story).memories)

    def write_due(
        self,
        writer: MemoryWriter | None = None,
        *,
        limit: int | None = None,
        seconds: float | None = None,
        progress: Progress | None = None,
    ) -> Memories:
        """Write what is due: memories, and the Story Summary.

        Any number of processes may do so at the same time; each piece of work is done by one of them. A writer that
        fails leaves its work to be tried again later, and the next is done all the same.

        Args:
            writer: what writes; None for the extractive one, which needs no network.
            limit: how many pieces of work at most; None for all that may begin.
            seconds: how long to wait for the writer each time; None for as long as it takes.
            progress: called with (pieces done, pieces due in all, about) as the work goes on.

        Returns:
            The memories that were written and hold.
        """
        if writer is None:
            from memorybank.writing.extractive import ExtractiveWriter

            writer = ExtractiveWriter(self._model.embedder())
        owner = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        return self._story_writer.write_due(writer, owner=owner, limit=limit, seconds=seconds, progress=progress)

    def summary(self) -> Summary | None:
        """Return the Story Summary that holds now: the newest version that is of this log, or the player's own."""
        with self._store.read() as reader:
            found = reader.story.summary(self.name)
        return None if found is None else summary_of(found)

    def summaries(self) -> Summaries:
        """Return all versions of the Story Summary, the newest first, those of a log that is gone included."""
        with self._store.read() as reader:
            return [summary_of(one) for one in reader.story.summaries(self.name)]

    def edit_summary(self, text: str) -> Summary:
        """Store a version of the player's own. The next one that a writer makes brings it up to date.

        The same text again is still one version, as long as nobody has written another one meanwhile.

        Raises:
            InvalidInputError: the text is no string or too long. An empty one is a summary that says nothing.
        """
        return self._story_writer.put_summary(checked_summary(text))

    def restore_summary(self, version: int) -> Summary:
        """Store an earlier version anew, as the newest and the player's own. It tells what it told, and no more.

        Raises:
            InvalidInputError: the version is no whole number, 1 or more.
            SummaryNotFoundError: there is no such version.
        """
        return self._story_writer.restore_summary(inputs.checked_limit(version, what="version", most=2**53))

    def branch(self, name: str, *, upto: str | None = None) -> None:
        """Copy this bank, as it was when the log ended with an action, to a new one; the two then live apart.

        Memories written from actions behind that one stay out, and so do those written by hand that name one of them.

        Args:
            name: of the new bank, in the same database.
            upto: id of the last action that both have; None for the whole log.

        Raises:
            ActionNotFoundError: there is no such action.
            BankNotFoundError: nothing was ever written to this bank.
            PreconditionError: there is a bank of that name already.
        """
        from memorybank.story.branching import branch

        inputs.checked_id(name, what="the new bank's name")
        branch(self._store, self.name, name, None if upto is None else inputs.checked_id(upto, what="upto"))


def checked_summary(text: object) -> str:
    """Return the text of a summary: sound Unicode; it may be empty."""
    if not isinstance(text, str) or len(text) > inputs.MAX_TEXT:
        raise InvalidInputError(f"the summary must be a text of at most {inputs.MAX_TEXT:,} characters")
    return join_surrogates(text)
