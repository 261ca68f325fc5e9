"""The statements about a bank's story: its log, the work that is due, the Story Summary. Each is about one bank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Insert,
    Table,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from memorybank.errors import InvalidInputError, StorageError
from memorybank.storage.direct import Executor
from memorybank.storage.rows import to_text
from memorybank.storage.story_rows import StoredAction, StoredStory, StoredSummary, StoredTask, What
from memorybank.storage.story_schema import actions, stories, summaries, tasks
from memorybank.writing.rhythm import Rhythm
from memorybank.writing.staleness import Source

__all__ = ["StoryTable"]

VERSIONS = 100
"""Versions of the Story Summary that are kept."""
CHUNK = 2_000
"""Actions written by one statement."""

_BANK: BindParameter[str] = bindparam("of_bank")
_STORY = select(stories).where(stories.c.bank == _BANK)
_RHYTHMS = select(stories.c.bank, stories.c.memory_every, stories.c.untouched, stories.c.summary_every).where(
    stories.c.bank.in_(bindparam("banks", expanding=True))
)
_SAVE = (
    update(stories)
    .where(stories.c.bank == _BANK)
    .values({column.name: bindparam(column.name) for column in stories.c if column.name != "bank"})
)
_DUE = (
    select(stories.c.bank)
    .where(stories.c.due_at <= bindparam("now"))
    .order_by(stories.c.due_at)
    .limit(bindparam("most"))
)
_ACTIONS = (
    select(actions.c.position, actions.c.id, actions.c.kind, actions.c.text, actions.c.hash, actions.c.chain)
    .where(actions.c.bank == _BANK, actions.c.position >= bindparam("start"), actions.c.position < bindparam("stop"))
    .order_by(actions.c.position)
)
_HEADS = (
    select(actions.c.id, actions.c.hash)
    .where(actions.c.bank == _BANK, actions.c.position >= bindparam("start"), actions.c.position < bindparam("stop"))
    .order_by(actions.c.position)
)
_ENTRIES = _HEADS.add_columns(actions.c.kind)
_CHAIN = select(actions.c.chain).where(actions.c.bank == _BANK, actions.c.position == bindparam("at"))
_POSITIONS = select(actions.c.id, actions.c.position).where(
    actions.c.bank == _BANK, actions.c.id.in_(bindparam("ids", expanding=True))
)
_CUT = delete(actions).where(actions.c.bank == _BANK, actions.c.position >= bindparam("start"))
_TASKS = select(tasks).where(
    tasks.c.bank == _BANK, tasks.c.what == bindparam("kind"), tasks.c.start >= bindparam("since")
)
_ONE_TASK = (tasks.c.bank == _BANK, tasks.c.what == bindparam("kind"), tasks.c.source == bindparam("of_source"))
_TASK = select(tasks).where(*_ONE_TASK)
_DROP_TASK = delete(tasks).where(*_ONE_TASK)


def _copied(table: Table, *which: ColumnElement[bool]) -> Insert:
    """Return the statement that copies some of a bank's rows to the bank `new_bank`."""
    names = [column.name for column in table.c]
    others = (column for column in table.c if column.name != "bank")
    new_bank = bindparam("new_bank", type_=table.c.bank.type).label("bank")
    return insert(table).from_select(names, select(new_bank, *others).where(table.c.bank == _BANK, *which))


_LENGTH: BindParameter[int] = bindparam("length")
_COPIES = (
    _copied(actions, actions.c.position < _LENGTH),
    _copied(tasks, tasks.c.status.in_(("empty", "dropped"))),
    _copied(summaries, or_(summaries.c.through <= _LENGTH, summaries.c.chain.is_(None))),
)
_OF_THE_LOG = exists().where(  # the log that a version was written from stands up to there
    actions.c.bank == summaries.c.bank,
    actions.c.position == summaries.c.through - 1,
    actions.c.chain == summaries.c.chain,
)
_CURRENT = (
    select(summaries)
    .where(summaries.c.bank == _BANK, or_(summaries.c.chain.is_(None), _OF_THE_LOG))
    .order_by(summaries.c.version.desc())
    .limit(1)
)
_SUMMARIES = select(summaries).where(summaries.c.bank == _BANK).order_by(summaries.c.version.desc())
_VERSION = select(summaries).where(summaries.c.bank == _BANK, summaries.c.version == bindparam("number"))
_OLD_SUMMARIES = delete(summaries).where(summaries.c.bank == _BANK, summaries.c.version <= bindparam("oldest"))
_CUT_SUMMARIES = (
    update(summaries)
    .where(summaries.c.bank == _BANK, summaries.c.chain.is_(None), summaries.c.through > bindparam("length"))
    .values(through=bindparam("length"))
)
_INSERT_STORY, _INSERT_ACTION = insert(stories), insert(actions)
_INSERT_TASK, _INSERT_SUMMARY = insert(tasks), insert(summaries)
_LAST_SUMMARY = select(func.max(summaries.c.version)).where(summaries.c.bank == _BANK)


class StoryTable:
    """Questions and changes inside one transaction."""

    def __init__(self, connection: Executor) -> None:
        self._connection = connection

    def story(self, bank: str) -> StoredStory | None:
        """Return the bank's row, None if it never had a log or settings of its own."""
        row = self._connection.execute(_STORY, {"of_bank": bank}).first()
        return None if row is None else StoredStory(**_named(stories, row, due_at=_moment))

    def rhythm(self, bank: str) -> Rhythm:
        """Return how often a bank writes."""
        return self.rhythms([bank])[bank]

    def rhythms(self, banks: Sequence[str]) -> dict[str, Rhythm]:
        """Return how often banks write, by name. With Citus this asks all shards, unless it is one bank.

        Raises:
            StorageError: a row is damaged.
        """
        found = dict.fromkeys(banks, Rhythm())
        for bank, *counts in self._connection.execute(_RHYTHMS, {"banks": list(banks)}) if banks else ():
            try:
                found[bank] = Rhythm(*counts)
            except InvalidInputError as error:
                raise StorageError(
                    f"bank {bank!r}: its rhythm in the database is damaged ({error}): restore a copy of the database"
                ) from error
        return found

    def create(self, bank: str, story: StoredStory) -> None:
        """Store a new row."""
        self._connection.execute(_INSERT_STORY, {"bank": bank, **_story_columns(story)})

    def save(self, bank: str, story: StoredStory) -> None:
        """Store a changed row."""
        self._connection.execute(_SAVE, {"of_bank": bank, **_story_columns(story)})

    def due(self, now: datetime, limit: int) -> list[str]:
        """Return banks that have work to be begun, the longest waiting first. With Citus this asks all shards."""
        return list(self._connection.execute(_DUE, {"now": to_text(now), "most": limit}).scalars())

    def actions(self, bank: str, start: int, stop: int) -> list[StoredAction]:
        """Return the actions at some positions, in their order."""
        rows = self._connection.execute(_ACTIONS, {"of_bank": bank, "start": start, "stop": stop})
        return [StoredAction(*row) for row in rows]

    def heads(self, bank: str, start: int, stop: int) -> list[Source]:
        """Return id and hash of the actions at some positions, in their order."""
        rows = self._connection.execute(_HEADS, {"of_bank": bank, "start": start, "stop": stop})
        return [Source(id_, hash_) for id_, hash_ in rows]

    def entries(self, bank: str, start: int, stop: int) -> list[tuple[str, str, str]]:
        """Return id, hash and kind of the actions at some positions, in their order."""
        rows = self._connection.execute(_ENTRIES, {"of_bank": bank, "start": start, "stop": stop})
        return [(id_, hash_, kind) for id_, hash_, kind in rows]

    def chain(self, bank: str, position: int) -> str | None:
        """Return the chain at a position; None if the log is shorter."""
        found: str | None = self._connection.execute(_CHAIN, {"of_bank": bank, "at": position}).scalar()
        return found

    def positions(self, bank: str, ids: Sequence[str]) -> dict[str, int]:
        """Return where those of the actions stand that are in the log."""
        found: dict[str, int] = {}
        for some in _pieces(ids):
            rows = self._connection.execute(_POSITIONS, {"of_bank": bank, "ids": list(some)})
            found.update((id_, position) for id_, position in rows)
        return found

    def replace_actions(self, bank: str, start: int, new: Sequence[StoredAction]) -> None:
        """Cut the log off at a position and put new actions behind it."""
        self._connection.execute(_CUT, {"of_bank": bank, "start": start})
        for some in _pieces(new):
            rows = [
                {
                    "bank": bank,
                    "position": action.position,
                    "id": action.id,
                    "kind": action.kind,
                    "text": action.text,
                    "hash": action.hash,
                    "chain": action.chain,
                }
                for action in some  # `asdict` takes twenty times as long, and a log can be long
            ]
            self._connection.execute(_INSERT_ACTION, rows)

    def copy(self, bank: str, name: str, length: int) -> None:
        """Copy the first actions to another bank, with the tasks and summaries that concern no others."""
        values = {"of_bank": bank, "new_bank": name, "length": length}
        for statement in _COPIES:
            self._connection.execute(statement, values)

    def tasks(self, bank: str, what: What, *, since: int = 0) -> dict[str, StoredTask]:
        """Return the tasks from a position on, by source."""
        rows = self._connection.execute(_TASKS, {"of_bank": bank, "kind": what, "since": since})
        return {task.source: task for task in map(_task, rows)}

    def task(self, bank: str, task: StoredTask) -> StoredTask | None:
        """Return what is known of a task by now."""
        key = {"of_bank": bank, "kind": task.what, "of_source": task.source}
        row = self._connection.execute(_TASK, key).first()
        return None if row is None else _task(row)

    def drop_task(self, bank: str, task: StoredTask) -> None:
        """Delete what is known of a task."""
        key = {"of_bank": bank, "kind": task.what, "of_source": task.source}
        self._connection.execute(_DROP_TASK, key)

    def put_task(self, bank: str, task: StoredTask) -> None:
        """Store a task in place of what was known of it."""
        self.drop_task(bank, task)
        until = None if task.until is None else to_text(task.until)
        self._connection.execute(_INSERT_TASK, {"bank": bank, **asdict(task), "until": until})

    def summaries(self, bank: str) -> list[StoredSummary]:
        """Return the versions of the Story Summary, the newest first."""
        return [_summary(row) for row in self._connection.execute(_SUMMARIES, {"of_bank": bank})]

    def summary(self, bank: str) -> StoredSummary | None:
        """Return the newest version of the Story Summary that holds: of this log, or of the player's own."""
        row = self._connection.execute(_CURRENT, {"of_bank": bank}).first()
        return None if row is None else _summary(row)

    def version(self, bank: str, version: int) -> StoredSummary | None:
        """Return one version of the Story Summary."""
        row = self._connection.execute(_VERSION, {"of_bank": bank, "number": version}).first()
        return None if row is None else _summary(row)

    def next_version(self, bank: str) -> int:
        """Return the number of the next version of the Story Summary, from 1 on."""
        return (self._connection.execute(_LAST_SUMMARY, {"of_bank": bank}).scalar() or 0) + 1

    def cut_summaries(self, bank: str, length: int) -> None:
        """Note that versions of the player's own know no more of the log than its first actions."""
        self._connection.execute(_CUT_SUMMARIES, {"of_bank": bank, "length": length})

    def insert_summary(self, bank: str, summary: StoredSummary) -> None:
        """Store a version of the Story Summary; the oldest goes when there are too many."""
        values = asdict(summary) | {"created": to_text(summary.created)}
        self._connection.execute(_INSERT_SUMMARY, {"bank": bank, **values})
        self._connection.execute(_OLD_SUMMARIES, {"of_bank": bank, "oldest": summary.version - VERSIONS})


def _story_columns(story: StoredStory) -> dict[str, Any]:
    return asdict(story) | {"due_at": None if story.due_at is None else to_text(story.due_at)}


def _named(table: Table, row: Sequence[Any], **convert: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the values of a whole row by name, but for the bank's, some of them converted."""
    values = {column.name: value for column, value in zip(table.c, row, strict=True) if column.name != "bank"}
    return values | {name: change(values[name]) for name, change in convert.items()}


def _task(row: Sequence[Any]) -> StoredTask:
    return StoredTask(**_named(tasks, row, until=_moment))


def _summary(row: Sequence[Any]) -> StoredSummary:
    return StoredSummary(**_named(summaries, row, created=_moment))


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _pieces(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))
