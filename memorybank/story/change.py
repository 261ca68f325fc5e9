"""The log as it stands now: only what changed is stored anew (SPEC.md section 9).

What that makes of the memories is `work.py`'s to tell and `bank/story_writer.py`'s to store, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memorybank.errors import ActionNotFoundError, InvalidInputError
from memorybank.storage.story_rows import StoredAction, StoredStory
from memorybank.story.log import FIRST_CHAIN, MAX_LENGTH, LoggedAction, chained, common_prefix
from memorybank.writing.staleness import Source

if TYPE_CHECKING:
    from memorybank.storage import Writer

__all__ = ["change_log"]


def change_log(
    writer: Writer,
    bank: str,
    story: StoredStory,
    new: Sequence[LoggedAction],
    heads: Sequence[Source],
    after: str | None,
) -> tuple[StoredStory, int]:
    """Store the log's new end; return the story's row and how many actions, from the first on, are the same.

    Args:
        writer: the transaction.
        bank: its name.
        story: its row.
        new: the actions.
        heads: their ids with the hashes of their texts, made before the transaction began.
        after: id of the action behind which they stand; None for the whole log.

    Raises:
        ActionNotFoundError: there is no action `after`.
        InvalidInputError: a new id stands in the part that stays.
    """
    start = _start(writer, bank, after)
    entries = [(*head, action.kind) for head, action in zip(heads, new, strict=True)]
    same = start + common_prefix(writer.story.entries(bank, start, story.length), entries)
    length = start + len(new)
    if length > MAX_LENGTH:
        raise InvalidInputError(f"the log would have {length:,} actions, the limit is {MAX_LENGTH:,}")
    if same == length == story.length:
        return story, same
    tail, tail_heads = new[same - start :], heads[same - start :]
    for id_, position in writer.story.positions(bank, [action.id for action in tail]).items():
        if position < same:
            raise InvalidInputError(f"action {id_!r} stands in the log already, before {after!r}: nothing was changed")
    chain = FIRST_CHAIN if same == 0 else writer.story.chain(bank, same - 1) or FIRST_CHAIN
    stored = []
    for position, (action, head) in enumerate(zip(tail, tail_heads, strict=True), same):
        chain = chained(chain, head)
        stored.append(StoredAction(position, action.id, action.kind, action.text, head.text_hash, chain))
    writer.story.replace_actions(bank, same, stored)
    writer.story.cut_summaries(bank, same)
    return replace(story, length=length, settled=story.settled if same >= story.settled else 0), same


def _start(writer: Writer, bank: str, after: str | None) -> int:
    if after is None:
        return 0
    position = writer.story.positions(bank, [after]).get(after)
    if position is None:
        raise ActionNotFoundError(
            f"there is no action {after!r} in the log of bank {bank!r}: name another one, or give the whole log"
        )
    return position + 1
