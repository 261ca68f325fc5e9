"""A branch: another bank that has this one's past up to an action (SPEC.md section 9, *branch*).

Rows are copied by the database, vectors included; nothing is embedded or written anew. With Citus this is the one write
that touches two shards.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from memorybank.errors import ActionNotFoundError, BankNotFoundError, PreconditionError
from memorybank.story.work import survey

if TYPE_CHECKING:
    from memorybank.storage import Store, StoredMemory, Writer
    from memorybank.storage.story_rows import StoredStory

__all__ = ["branch"]


def branch(store: Store, bank: str, name: str, upto: str | None) -> None:
    """Copy a bank up to an action; see `BankStory.branch`."""
    with store.write() as writer:
        state = writer.bank(bank)
        if state is None:
            raise BankNotFoundError(f"there is no bank {bank!r}: nothing was changed")
        story = writer.story.story(bank)
        length = _length(writer, bank, story, upto)
        new = replace(state, bank=name, incarnation=uuid.uuid4().hex)
        if writer.bank(name) is not None or writer.create_bank(new).incarnation != new.incarnation:
            raise PreconditionError(f"there is a bank {name!r} already: nothing was changed")
        writer.insert(name, _kept(writer, bank, length))
        if story is not None:
            writer.story.copy(bank, name, length)
            writer.story.cut_summaries(name, length)
            copied = replace(story, length=length, settled=story.settled if length >= story.settled else 0)
            writer.story.create(name, survey(writer, name, copied).story)


def _length(writer: Writer, bank: str, story: StoredStory | None, upto: str | None) -> int:
    if upto is None:
        return 0 if story is None else story.length
    position = writer.story.positions(bank, [upto]).get(upto)
    if position is None:
        raise ActionNotFoundError(f"there is no action {upto!r} in the log of bank {bank!r}")
    return position + 1


def _kept(writer: Writer, bank: str, length: int) -> list[StoredMemory]:
    """Return the memories that belong to the first actions of the log: stale ones belong to none."""
    rows, after = [], 0
    while page := writer.page(bank, state=None, after=after, limit=1_000):
        rows += page
        after = page[-1].ordinal
    named = sorted({action for row in rows if row.span is None for action in row.memory.actions})
    later = {id_ for id_, position in writer.story.positions(bank, named).items() if position >= length}
    return [
        row
        for row in rows
        if row.memory.state != "stale"
        and (
            row.span + len(row.source_hashes) <= length
            if row.span is not None
            else not any(action in later for action in row.memory.actions)
        )
    ]
