"""How a bank follows its log: what changes in it, in one transaction each, and the writing of what is due."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memorybank.bank.draft import Draft
from memorybank.bank.info import BankInfo, LogChange, Summary
from memorybank.bank.reads import info_of, summary_of
from memorybank.bank.writer import BankWriter
from memorybank.errors import BankNotFoundError, MemoryBankError, SummaryNotFoundError
from memorybank.memory import Memory, NewMemory, Progress
from memorybank.storage import StoredMemory, Writer
from memorybank.storage.story_rows import StoredStory, StoredSummary
from memorybank.story.change import change_log
from memorybank.story.log import LoggedAction
from memorybank.story.work import AT_ONCE, Claim, Survey, claim, fail, finish, is_claimed, survey
from memorybank.tokenizer import open_tokenizer
from memorybank.writing.errors import RejectedTextError, WriterError
from memorybank.writing.port import SpanAction, SpanText, memory_from, summary_from
from memorybank.writing.rhythm import Rhythm
from memorybank.writing.staleness import source_of

if TYPE_CHECKING:
    from memorybank.writing.port import MemoryWriter

__all__ = ["PLAYER", "StoryWriter"]

log = logging.getLogger(__name__)

PLAYER = "player"
"""The author of a summary that was edited by hand."""
WINDOW = 60
"""Actions that are looked at first to find the next work: the less, the cheaper each piece of a long log."""
SUMMARY_TOKENS = 500
"""Tokens that the Story Summary may have."""


class StoryWriter(BankWriter):
    """All changes to one bank, its log and its summary included, for any number of threads."""

    def put_actions(self, new: Sequence[LoggedAction], after: str | None) -> LogChange:
        """Store the log as it stands now; what was written from actions that are gone is stale when this returns."""
        heads = [source_of(action.id, action.text) for action in new]
        with self._write([], create=True) as (writer, draft):
            before = self._story(writer)
            story, same = change_log(writer, self._bank, before, new, heads, after)
            found = self._survey(writer, story, draft)
        held = {row.memory.id: row.memory.state for row in found.rows}
        now = {id_: draft.memory(id_).state for id_ in held}
        return LogChange(
            length=story.length,
            same=same,
            stale=tuple(id_ for id_ in held if held[id_] != "stale" and now[id_] == "stale"),
            valid=tuple(id_ for id_ in held if held[id_] == "stale" and now[id_] != "stale"),
            pending=len(found.memories),
        )

    def set_settings(
        self, settings: Mapping[str, Any], *, versions: Set[str] | None = None, only_new: bool = False
    ) -> BankInfo:
        """Store checked settings of a bank that is among `versions`.

        What is too much for a smaller capacity is forgotten at once. What was written before holds as it did.
        """
        with self._write([], create=True, versions=versions, only_new=only_new) as (writer, draft):
            if "capacity" in settings:
                draft.set_capacity(settings["capacity"])
            if "rhythm" in settings:
                self._survey(writer, self._story(writer).in_rhythm(settings["rhythm"]), draft)
        with self._store.read() as reader:
            state = reader.bank(self._bank) or draft.state
            return info_of(state, reader.counts(self._bank), reader.story.rhythm(self._bank))

    def put_summary(self, text: str) -> Summary:
        """Store a version of the Story Summary by the player's own hand; it tells as much as the one before it."""
        with self._write([], create=True) as (writer, _):
            current = writer.story.summary(self._bank)
            return self._put_summary(writer, text, 0 if current is None else current.through)

    def restore_summary(self, version: int) -> Summary:
        """Store an earlier version anew, as the player's own: what happened since is told again by the next one."""
        with self._store.write() as writer:
            found = None if writer.bank(self._bank) is None else writer.story.version(self._bank, version)
            if found is None:
                raise SummaryNotFoundError(
                    f"bank {self._bank!r} has no version {version!r} of the summary: nothing was changed"
                )
            return self._put_summary(writer, found.text, found.through)

    def _put_summary(self, writer: Writer, text: str, through: int) -> Summary:
        """Store a version by the player's own hand; the newest one again is still one."""
        story = self._story(writer)
        told = min(through, story.length)
        newest = next(iter(writer.story.summaries(self._bank)), None)
        if newest is not None and (newest.author, newest.text, newest.through) == (PLAYER, text, told):
            return summary_of(newest)
        stored = self._insert_summary(writer, text, PLAYER, through=told, chain=None)
        self._look_on(writer, story)
        return stored

    def write_due(
        self, writer: MemoryWriter, *, owner: str, limit: int | None, seconds: float | None, progress: Progress | None
    ) -> list[Memory]:
        """Do the work that may begin, piece by piece; return the memories that were written."""
        written: list[Memory] = []
        done = 0
        while limit is None or done < limit:
            taken, left = self._claim(owner)
            if taken is None:
                break
            written += self._do(writer, taken, seconds)
            done += 1
            if progress is not None:
                progress(done, done + left - 1)
        return written

    def _claim(self, owner: str) -> tuple[Claim | None, int]:
        """Take a piece of work, if there is any; return it with the number of those that are due, about."""
        with self._store.write() as writer:
            story = None if writer.bank(self._bank) is None else writer.story.story(self._bank)
            if story is None:
                return None, 0
            now = self._clock()
            found = survey(writer, self._bank, story, window=WINDOW, now=now)
            taken, left = claim(writer, self._bank, found, owner=owner, now=now)
            self._save_story(writer, left)
        return taken, max(left.most_due, len(list(found.work)))

    def _do(self, writer: MemoryWriter, taken: Claim, seconds: float | None) -> list[Memory]:
        try:
            if taken.work.task.what == "summary":
                text = summary_from(writer, taken.previous, taken.before, SUMMARY_TOKENS, seconds=seconds)
                if open_tokenizer().count(text) > SUMMARY_TOKENS:
                    raise RejectedTextError(
                        "too long", f"writer {writer.name}: its summary has more than {SUMMARY_TOKENS} tokens"
                    )
                self._store_summary(writer, taken, text)
                return []
            actions = tuple(SpanAction(action.kind, action.text) for action in taken.actions)
            memory = memory_from(writer, SpanText(actions, memories_before=taken.before), seconds=seconds)
            return self._store_memory(writer, taken, memory)
        except BankNotFoundError:  # it was deleted while this was written, and stays so
            return []
        except MemoryBankError as error:
            self._fail(taken, error)
            return []

    def _store_memory(self, by: MemoryWriter, taken: Claim, text: str | None) -> list[Memory]:
        item = None if text is None else NewMemory(text, actions=tuple(action.id for action in taken.actions))
        model = None if item is None else self._model.embedder()
        vectors = {} if item is None or model is None else self._vectors([item.text], model, None)
        with self._write([], model=model, must_exist=True) as (writer, draft):
            if not is_claimed(writer, self._bank, taken.work.task):
                return []  # it took so long that somebody else has done it
            finish(writer, self._bank, taken.work.task, is_empty=item is None)
            story = self._story(writer)
            if item is None:
                self._look_on(writer, story)
                return []
            id_ = draft.write(item, vectors[item.text], writer=by.name, span=taken.work.start, sources=taken.sources)
            now = writer.story.heads(self._bank, taken.work.start, taken.work.stop)
            if now != taken.sources:  # the log has changed meanwhile
                draft.age(draft.row(id_), None)
            self._look_on(writer, story, [draft.row(id_)])
        memory = draft.memory(id_)
        return [memory] if memory.state != "stale" else []

    def _store_summary(self, by: MemoryWriter, taken: Claim, text: str) -> None:
        with self._write([], must_exist=True) as (writer, _):
            if not is_claimed(writer, self._bank, taken.work.task):
                return
            finish(writer, self._bank, taken.work.task, is_empty=not taken.before)
            if taken.before:
                stop = taken.work.stop
                self._insert_summary(writer, text, by.name[:200], through=stop, chain=taken.work.task.source)
            self._look_on(writer, self._story(writer))

    def _fail(self, taken: Claim, error: MemoryBankError) -> None:
        log.warning("bank %r: a %s could not be written: %s", self._bank, taken.work.task.what, error)
        # Only a writer's own errors are made to be shown to anybody; others may name files of this machine.
        told = str(error) if isinstance(error, WriterError) else f"{type(error).__name__}: see the log"
        with suppress(BankNotFoundError), self._write([], must_exist=True) as (writer, _):
            if is_claimed(writer, self._bank, taken.work.task):
                pause = getattr(error, "retry_after", None)
                fail(writer, self._bank, taken.work.task, error=told, now=self._clock(), pause=pause)
                self._look_on(writer, self._story(writer))

    def _story(self, writer: Writer) -> StoredStory:
        """Return the bank's story, which is made with the first thing that is said about it."""
        found = writer.story.story(self._bank)
        if found is None:
            found = StoredStory.of(Rhythm())
            writer.story.create(self._bank, found)
        return found

    def _survey(self, writer: Writer, story: StoredStory, draft: Draft) -> Survey:
        """Make memories stale or valid as the log says, and store what is settled and when the next work may begin."""
        found = survey(writer, self._bank, story)
        draft.load(found.rows)
        for row in sorted(found.rows, key=lambda row: row.ordinal):
            draft.age(row, found.places.get(row.ordinal))
        self._save_story(writer, found.story)
        return found

    def _look_on(self, writer: Writer, story: StoredStory, new: Sequence[StoredMemory] = ()) -> None:
        """Store what is settled and when the next work may begin; the log is the same as before."""
        now = self._clock()
        self._save_story(writer, survey(writer, self._bank, story, window=WINDOW, now=now, new=new).story)

    def _save_story(self, writer: Writer, story: StoredStory) -> None:
        """Store the row if it has changed: the same log again costs no write."""
        stored = writer.story.story(self._bank)
        if story.due_at == AT_ONCE:  # since when it waits, so that the longest waiting bank comes first
            is_waiting = stored is not None and stored.due_at is not None and stored.settled == story.settled
            story = replace(story, due_at=stored.due_at if is_waiting and stored is not None else self._clock())
        if stored != story:
            writer.story.save(self._bank, story)

    def _insert_summary(self, writer: Writer, text: str, author: str, *, through: int, chain: str | None) -> Summary:
        version = writer.story.next_version(self._bank)
        stored = StoredSummary(version, through, chain, text, author, self._clock())
        writer.story.insert_summary(self._bank, stored)
        return summary_of(stored)
