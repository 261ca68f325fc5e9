"""Between an adventure and a bank: the document's own memories as a bank, a bank's Story Summary in the document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assembler.adventure import Adventure
from assembler.dynamic.memory_bank import UNKNOWN_TIME
from memorybank.search.ranking import DEFAULT_RANKING

if TYPE_CHECKING:
    from memorybank import MemoryBank
    from memorybank.embedding import Embedder
    from memorybank.memory import Recalled
    from memorybank.search.reranking import Reranking

__all__ = ["EmptyBank", "bank_of", "with_story_summary"]


class EmptyBank:
    """A bank without memories, for a document that has none: the bank is on, and no library is loaded for it."""

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        ranking: str = DEFAULT_RANKING,
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        retellings: bool = False,
    ) -> tuple[Recalled, ...]:
        """Return nothing."""
        return ()


def bank_of(
    adventure: Adventure,
    embedder: Embedder | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    reranking: Reranking | None = None,
) -> MemoryBank:
    """Return a bank in memory that holds the document's memories.

    Their vectors are kept in the user's cache folder, so that a document seen before is not embedded again. Close the
    bank when it is no longer needed, or use it in a `with` statement.

    Args:
        adventure: its `memories` go in; it is not changed.
        embedder: makes the vectors; the default model if None.
        progress: called with the number of memories done and of all.
        reranking: the cross-encoder of the ranking `reranked`.

    Raises:
        memorybank.errors.MemoryBankError: a memory is empty or too long, or the model cannot be had.
    """
    from memorybank import MemoryBank

    bank = MemoryBank.open(":memory:", embedder=embedder, clock=lambda: UNKNOWN_TIME, reranking=reranking)
    try:
        # Without the document's unknown fields: the bank would hold them to its limits, and nothing here reads them.
        memories = (replace(memory, metadata={}) for memory in adventure.memories if memory.text.strip())
        bank.add_many(memories, progress=progress)
    except BaseException:
        bank.close()
        raise
    return bank


def with_story_summary(adventure: Adventure, bank: MemoryBank) -> Adventure:
    """Return the adventure with the Story Summary that the bank has written (SPEC.md section 9).

    The document's own text goes before it. `/v1/context` and `assembler build --bank` do the same.

    Raises:
        memorybank.errors.StorageError: the bank cannot be read.
    """
    if adventure.story_summary.strip():
        return adventure
    summary = bank.summary()
    return adventure if summary is None else replace(adventure, story_summary=summary.text)
