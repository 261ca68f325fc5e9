"""What is due to be written from the log, and who writes it: in the database, so that nothing is lost or done twice.

Which spans are due follows from the log and from what was made of it (`writing/staleness.py`). A span is claimed for
some minutes by one process; if that dies, the claim runs out and another process takes it. A writer that fails leaves
its span to be tried again, later each time. A memory that was written is the record of it; a task stays only of what
has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from memorybank.storage.story_rows import StoredAction, StoredStory, StoredTask
from memorybank.writing.rhythm import Rhythm, next_summary
from memorybank.writing.staleness import Made, Source, plan, source_hash

if TYPE_CHECKING:
    from memorybank.storage import Reader, StoredMemory, Writer

__all__ = [
    "AT_ONCE",
    "Claim",
    "Survey",
    "Work",
    "claim",
    "dropped",
    "fail",
    "finish",
    "is_claimed",
    "sources_of",
    "survey",
]

LEASE = timedelta(minutes=5)
"""How long a claim holds: longer than any writer may take."""
FIRST_RETRY, LAST_RETRY = timedelta(seconds=10), timedelta(hours=1)
"""How long a failed task waits: twice as long each time."""
LAST = 2**62
"""Behind every position: a memory may be of actions that the log does not reach any more."""
BEFORE = 8
"""Spans before one whose memories its writer is shown."""
PATIENCE = 5
"""Attempts after which the Story Summary no longer waits for a memory that it would tell."""
AT_ONCE = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Work:
    """Something that is to be written.

    Attributes:
        task: what is known of it; `attempts` is 0 if nobody has tried yet.
        start: position of its first action.
        stop: position behind its last one.
    """

    task: StoredTask
    start: int
    stop: int

    def may_begin(self, now: datetime) -> bool:
        """Whether nobody works on it, and it does not wait to be tried again."""
        return self.task.until is None or self.task.until <= now


@dataclass(frozen=True, slots=True)
class Claim:
    """Work that this process has taken.

    Attributes:
        work: what it is.
        actions: what a memory is written from.
        before: texts of the memories before it; for a summary, of those that it is to tell, oldest first.
        previous: for a summary, the text that it brings up to date.
    """

    work: Work
    actions: tuple[StoredAction, ...] = ()
    before: tuple[str, ...] = ()
    previous: str = ""

    @property
    def sources(self) -> list[Source]:
        """The ids of the actions with the hashes of their texts."""
        return [Source(action.id, action.hash) for action in self.actions]


@dataclass(frozen=True, slots=True)
class Survey:
    """How things stand between a bank's log and what was written from it.

    Attributes:
        story: the story's row, with what is settled and when the next work may begin.
        rows: the memories that were looked at: those of actions that are not settled, and all stale ones.
        places: for those that hold, by ordinal, where their first action stands.
        memories: memories that are due, in the order of the story.
        summary: the Story Summary's next version, if it is due and what it tells is written.
    """

    story: StoredStory
    rows: tuple[StoredMemory, ...]
    places: dict[int, int]
    memories: tuple[Work, ...]
    summary: Work | None

    @property
    def work(self) -> Iterator[Work]:
        """All that is due, memories first."""
        yield from self.memories
        if self.summary is not None:
            yield self.summary


def survey(
    reader: Reader,
    bank: str,
    story: StoredStory,
    *,
    window: int | None = None,
    now: datetime | None = None,
    new: Sequence[StoredMemory] = (),
) -> Survey:
    """Find out what holds, what does not, and what is due.

    Args:
        reader: the transaction.
        bank: its name.
        story: its row.
        window: look only so many actions ahead of what is settled, and further while there is no work that may begin.
            None looks at all, which is needed when the log has changed.
        now: the present time; with `window`.
        new: memories written in this transaction, which are not stored yet.
    """
    while True:
        found = _survey(reader, bank, story, window, new)
        may_begin = now is not None and any(work.may_begin(now) for work in found.work)
        if window is None or may_begin or story.settled + window >= story.length:
            return found
        if found.story.settled == story.settled:  # what stands there waits: look behind it
            window *= 2
        story = found.story


def _survey(reader: Reader, bank: str, story: StoredStory, window: int | None, new: Sequence[StoredMemory]) -> Survey:
    base = story.settled
    end = story.length if window is None else min(story.length, base + window)
    heads = reader.story.heads(bank, base, end)
    rows = [*reader.of_spans(bank, base, LAST if window is None else end), *new]
    tasks = reader.story.tasks(bank, "memory")
    made = {f"memory {row.ordinal}": Made(f"memory {row.ordinal}", sources_of(row)) for row in rows}
    made |= {
        f"task {task.source}": Made(f"task {task.source}", _sources(task)) for task in tasks.values() if task.is_done
    }
    rhythm = Rhythm(story.memory_every, story.untouched, story.summary_every)
    found = plan(heads, made.values(), rhythm)
    position = {source.id: base + place for place, source in enumerate(heads)}
    start_of = {key: position[made[key].sources[0].id] for key in found.valid}
    memories = tuple(
        Work(_task(tasks, one.sources, base + one.span.start), base + one.span.start, base + one.span.stop)
        for one in found.due
    )
    told = [(start_of[key], start_of[key] + len(made[key].sources)) for key in found.valid]
    told += [(base + span.start, base + span.stop) for span in found.silent]
    settled = base
    for start, stop in sorted(told):
        settled = stop if start == settled else settled
    places = {row.ordinal: start_of[key] for row in rows if (key := f"memory {row.ordinal}") in start_of}
    summary = _summary_due(reader, bank, story, rhythm, memories)
    if summary is not None and end < min(story.length, summary.stop + story.untouched):
        summary = None  # what it is to tell may not all have been looked at
    due_at = _next_moment([*memories, *([] if summary is None else [summary])])
    return Survey(replace(story, settled=settled, due_at=due_at), tuple(rows), places, memories, summary)


def _next_moment(work: Iterable[Work]) -> datetime | None:
    return min((one.task.until or AT_ONCE for one in work), default=None)


def _task(tasks: dict[str, StoredTask], sources: Sequence[Source], start: int) -> StoredTask:
    source = source_hash(sources)
    return tasks.get(source) or StoredTask("memory", source, start, json.dumps(sources), "failed")


def _sources(task: StoredTask) -> tuple[Source, ...]:
    return tuple(Source(id_, hash_) for id_, hash_ in json.loads(task.sources))


def sources_of(row: StoredMemory) -> tuple[Source, ...]:
    """Return what a memory was written from."""
    return tuple(map(Source, row.memory.actions, row.source_hashes))


def dropped(row: StoredMemory) -> StoredTask:
    """Return the task that says that nobody wants the memory of a span, because it was deleted by hand."""
    sources = sources_of(row)
    return StoredTask("memory", source_hash(sources), row.span or 0, json.dumps(sources), "dropped")


def _summary_due(reader: Reader, bank: str, story: StoredStory, rhythm: Rhythm, open_: Sequence[Work]) -> Work | None:
    summary = reader.story.summary(bank)
    through = 0 if summary is None else summary.through
    done = reader.story.tasks(bank, "summary", since=through)
    while True:
        update = next_summary(rhythm, through)
        stop, source = update.stop, reader.story.chain(bank, update.stop - 1)
        if (
            update.at > story.length
            or source is None
            or any(work.start < stop and work.task.attempts < PATIENCE for work in open_)
        ):
            return None
        task = done.get(source) or StoredTask("summary", source, stop, "[]", "failed")
        if not task.is_done:
            return Work(task, 0 if summary is None else summary.through, stop)
        through = stop


def claim(writer: Writer, bank: str, found: Survey, *, owner: str, now: datetime) -> tuple[Claim | None, StoredStory]:
    """Take the first work that may begin, None if there is none; return it with the story's row as it is then."""
    work = next((one for one in found.work if one.may_begin(now)), None)
    if work is None:
        return None, found.story
    task = replace(
        work.task, status="claimed", owner=owner, until=now + LEASE, attempts=work.task.attempts + 1, error=""
    )
    writer.story.put_task(bank, task)
    taken = replace(work, task=task)
    due_at = _next_moment(taken if one is work else one for one in found.work)
    return _claimed(writer, bank, taken), replace(found.story, due_at=due_at)


def _claimed(writer: Writer, bank: str, work: Work) -> Claim:
    if work.task.what == "summary":
        summary = writer.story.summary(bank)
        texts = writer.texts_of_spans(bank, work.start, work.stop)
        return Claim(work, before=tuple(texts), previous="" if summary is None else summary.text)
    actions = writer.story.actions(bank, work.start, work.stop)
    before = writer.texts_of_spans(bank, max(0, work.start - BEFORE * len(actions)), work.start)
    return Claim(work, tuple(actions), tuple(before))


def is_claimed(writer: Writer, bank: str, task: StoredTask) -> bool:
    """Whether the claim still holds: nobody else has taken the work since."""
    known = writer.story.task(bank, task)
    return known is not None and (known.status, known.owner, known.attempts) == ("claimed", task.owner, task.attempts)


def finish(writer: Writer, bank: str, task: StoredTask, *, is_empty: bool) -> None:
    """Note that the work is done: by the memory alone, or where there is none, by the task."""
    if is_empty:
        writer.story.put_task(bank, replace(task, status="empty", owner=None, until=None))
    else:
        writer.story.drop_task(bank, task)


def fail(writer: Writer, bank: str, task: StoredTask, *, error: str, now: datetime, pause: float | None = None) -> None:
    """Note that the work failed, and that it is tried again, in `pause` seconds at the earliest."""
    usual = min(LAST_RETRY, FIRST_RETRY * 2 ** min(task.attempts - 1, 20))
    until = now + max(usual, timedelta(seconds=pause or 0.0))
    writer.story.put_task(bank, replace(task, status="failed", owner=None, until=until, error=error[:1_000]))
