"""What is due to be written from the log, and who writes it: in the database, so that nothing is lost or done twice.

A memory is due for each span of `memory_every` actions once `untouched` more have followed; the Story Summary every
`summary_every` actions. That is a function of the log alone. What has been done about a span is a task, kept under the
hash of what the span holds. A task is claimed for some minutes by one process; if that dies, the claim runs out and
another process takes it. A writer that fails leaves its task to be tried again, later each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from memorybank.storage.story import StoredAction, StoredStory, StoredSummary, StoredTask
from memorybank.story.log import source_of

if TYPE_CHECKING:
    from memorybank.storage import Reader, Writer

__all__ = ["Claim", "Due", "claim", "current_summary", "due", "fail", "finish", "is_claimed", "next_work"]

LEASE = timedelta(minutes=5)
"""How long a claim holds: longer than any writer may take."""
FIRST_RETRY, LAST_RETRY = timedelta(seconds=10), timedelta(hours=1)
"""How long a failed task waits: twice as long each time."""


@dataclass(frozen=True, slots=True)
class Due:
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
        due: what it is.
        actions: what it is written from.
        previous: for a summary, the version that it brings up to date; "" for none.
    """

    due: Due
    actions: tuple[StoredAction, ...]
    previous: str = ""


def due(reader: Reader, bank: str, story: StoredStory) -> Iterator[Due]:
    """Return what is to be written, memories first, each kind in the order of the story."""
    every, first = story.memory_every, story.settled
    last = max(0, story.length - story.untouched) // every
    if last > first:
        heads = reader.story.heads(bank, first * every, last * every)
        known = reader.story.tasks(bank, "memory", since=first)
        for number in range(first, last):
            begin = (number - first) * every
            source = source_of(heads[begin : begin + every])
            task = known.get((number, source)) or StoredTask("memory", number, source, "failed")
            if not task.is_done:
                yield Due(task, number * every, (number + 1) * every)
    yield from _due_summary(reader, bank, story)


def _due_summary(reader: Reader, bank: str, story: StoredStory) -> Iterator[Due]:
    known_to = _through(current_summary(reader, bank))
    stop = (known_to // story.summary_every + 1) * story.summary_every
    source = reader.story.chain(bank, stop - 1)
    if stop <= story.length and source is not None:
        tasks = reader.story.tasks(bank, "summary", since=stop)
        task = tasks.get((stop, source)) or StoredTask("summary", stop, source, "failed")
        if not task.is_done:
            yield Due(task, known_to, stop)


def current_summary(reader: Reader, bank: str) -> StoredSummary | None:
    """Return the newest version of the Story Summary that holds: of this log, or of the player's own."""
    for summary in reader.story.summaries(bank):
        if summary.chain is None or summary.chain == reader.story.chain(bank, summary.through - 1):
            return summary
    return None


def _through(summary: StoredSummary | None) -> int:
    return 0 if summary is None else summary.through


def next_work(reader: Reader, bank: str, story: StoredStory) -> tuple[StoredStory, int]:
    """Return the story's row with what is settled and when the next work may begin, and how many memories are due."""
    open_ = list(due(reader, bank, story))
    numbers = [one.task.number for one in open_ if one.task.what == "memory"]
    all_due = max(0, story.length - story.untouched) // story.memory_every
    settled = max(story.settled, min(numbers, default=all_due))
    moments = [one.task.until or datetime.min.replace(tzinfo=UTC) for one in open_]
    return replace(story, settled=settled, due_at=min(moments, default=None)), len(numbers)


def claim(writer: Writer, bank: str, story: StoredStory, *, owner: str, now: datetime) -> Claim | None:
    """Take the first work that may begin; None if there is none."""
    for one in due(writer, bank, story):
        if one.may_begin(now):
            task = replace(
                one.task, status="claimed", owner=owner, until=now + LEASE, attempts=one.task.attempts + 1, error=""
            )
            writer.story.put_task(bank, task)
            taken = replace(one, task=task)
            summary = current_summary(writer, bank) if task.what == "summary" else None
            actions = tuple(writer.story.actions(bank, one.start, one.stop))
            return Claim(taken, actions, "" if summary is None else summary.text)
    return None


def is_claimed(writer: Writer, bank: str, task: StoredTask) -> bool:
    """Whether the claim still holds: nobody else has taken the work since."""
    known = writer.story.tasks(bank, task.what, since=task.number).get((task.number, task.source))
    return known is not None and (known.status, known.owner, known.attempts) == ("claimed", task.owner, task.attempts)


def finish(writer: Writer, bank: str, task: StoredTask, *, is_empty: bool) -> None:
    """Note that the work is done."""
    writer.story.put_task(bank, replace(task, status="empty" if is_empty else "written", owner=None, until=None))


def fail(writer: Writer, bank: str, task: StoredTask, *, error: str, now: datetime, pause: timedelta | None) -> None:
    """Note that the work failed, and when to try again.

    Args:
        writer: the transaction.
        bank: its name.
        task: the work.
        error: what went wrong.
        now: the present time.
        pause: how long to wait at least; None leaves it to the number of attempts.
    """
    usual = min(LAST_RETRY, FIRST_RETRY * 2 ** min(task.attempts - 1, 20))
    until = now + max(usual, pause or timedelta())
    writer.story.put_task(bank, replace(task, status="failed", owner=None, until=until, error=error[:1_000]))
