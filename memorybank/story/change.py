"""The log as it stands now, and what that makes of the memories written from it (SPEC.md section 9).

Only what changed is stored anew: the log up to the first difference stays, and so do the memories of its spans. A
memory holds as long as its span, counted from the beginning of the log, holds the same actions with the same texts. If
not, it is stale in the same transaction; when they are back, it is what it was, and nothing is written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memorybank.errors import InvalidInputError
from memorybank.storage.story import StoredAction, StoredStory
from memorybank.story.log import FIRST_CHAIN, LoggedAction, action_hash, chained, common_prefix, source_of

if TYPE_CHECKING:
    from memorybank.bank.draft import Draft
    from memorybank.storage import Writer

__all__ = ["LogChange", "age_memories", "change_log"]


@dataclass(frozen=True, slots=True)
class LogChange:
    """What became of a bank when its log changed.

    Attributes:
        length: actions with text in the log now.
        same: how many of them, from the first on, were there before.
        stale: ids of the memories that hold no longer.
        valid: ids of those that hold again.
        pending: memories that are due and not written yet.
    """

    length: int
    same: int
    stale: tuple[str, ...]
    valid: tuple[str, ...]
    pending: int


def change_log(
    writer: Writer, bank: str, story: StoredStory, new: Sequence[LoggedAction], after: str | None
) -> tuple[StoredStory, int] | None:
    """Store the log's new end; return the story's row and the first position that differs, None if nothing does.

    Raises:
        InvalidInputError: there is no action `after`, or a new id stands in the part that stays.
    """
    start = _start(writer, bank, after)
    heads = [(action.id, action_hash(action)) for action in new]
    same = start + common_prefix(writer.story.heads(bank, start, story.length), heads)
    if same == story.length == start + len(new):
        return None
    tail, tail_heads = new[same - start :], heads[same - start :]
    for id_, position in writer.story.positions(bank, [action.id for action in tail]).items():
        if position < same:
            raise InvalidInputError(f"action {id_!r} stands in the log already, before {after!r}: nothing was changed")
    chain = FIRST_CHAIN if same == 0 else writer.story.chain(bank, same - 1) or FIRST_CHAIN
    stored = []
    for position, (action, head) in enumerate(zip(tail, tail_heads, strict=True), same):
        chain = chained(chain, head)
        stored.append(StoredAction(position, action.id, action.kind, action.text, head[1], chain))
    writer.story.replace_actions(bank, same, stored)
    settled = min(story.settled, same // story.memory_every)
    writer.story.cut_summaries(bank, same)
    return replace(story, length=start + len(new), settled=settled), same


def _start(writer: Writer, bank: str, after: str | None) -> int:
    if after is None:
        return 0
    position = writer.story.positions(bank, [after]).get(after)
    if position is None:
        raise InvalidInputError(
            f"there is no action {after!r} with text in the log of bank {bank!r}: name another one, or give the whole "
            "log"
        )
    return position + 1


def age_memories(writer: Writer, bank: str, story: StoredStory, draft: Draft, since: int) -> None:
    """Make stale what was written from actions that are no longer there, from a position on, and valid what is back."""
    every = story.memory_every
    rows = writer.of_spans(bank, since // every)
    if not rows:
        return
    first, last = since // every, max(row.span or 0 for row in rows)
    heads = writer.story.heads(bank, first * every, (last + 1) * every)
    draft.load(rows)
    for row in sorted(rows, key=lambda row: row.ordinal):
        begin = ((row.span or 0) - first) * every
        whole = heads[begin : begin + every]
        draft.age(row, source_of(whole) if len(whole) == every else None)
