"""Moving a bank to another embedding model (SPEC.md section 9): all of it in one transaction, or nothing.

The texts are embedded while others go on reading and writing. What changed meanwhile is embedded too, round by round,
until a round finds nothing new while it holds the write lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memorybank.memory import Progress
from memorybank.search.vectors import embed, to_bytes

if TYPE_CHECKING:
    from memorybank.embedding import Embedder
    from memorybank.storage import Store

__all__ = ["reembed"]


def reembed(store: Store, bank: str, embedder: Embedder, progress: Progress | None = None) -> int:
    """Compute all vectors of a bank anew with `embedder`; return the number of memories.

    Raises:
        ModelError: the model failed; the bank is as it was.
        StorageError: the database failed; the bank is as it was.
    """
    vectors: dict[int, bytes] = {}
    seen = -1
    while True:
        with store.read() as reader:
            state = reader.bank(bank)
            changed = reader.texts(bank, seen)
            seen = seen if state is None else state.revision
        if changed:
            new = embed(embedder, [text for _, text in changed], progress=_told(progress, len(vectors), len(changed)))
            vectors |= zip([ordinal for ordinal, _ in changed], to_bytes(new), strict=True)
        with store.write() as writer:
            now = writer.bank(bank)
            if now is None:
                return 0
            if writer.texts(bank, seen):
                continue
            moved = replace(now, model=embedder.name, dimensions=embedder.dimensions, revision=now.revision + 1)
            writer.revector(moved, vectors.items())
            writer.save_bank(moved)
            return sum(writer.counts(bank).values())


def _told(progress: Progress | None, before: int, more: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(before + done, before + more)
