"""A stand-in for a memory bank: ranks memories in the order in which they were given."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memorybank.memory import Memory, NewMemory, Recalled
from memorybank.search.ranking import DEFAULT_RANKING

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RankedBank:
    """Recalls all its memories, best first, the pinned ones before all others; needs no model."""

    memories: tuple[Memory, ...]

    @classmethod
    def of(cls, memories: Iterable[NewMemory]) -> "RankedBank":
        return cls(
            tuple(
                Memory(
                    id=memory.id or f"m{number}",
                    text=memory.text,
                    actions=memory.actions,
                    pinned=memory.pinned,
                    metadata={},
                    state="active",
                    model="none",
                    created=START + timedelta(seconds=number),
                )
                for number, memory in enumerate(memories, start=1)
            )
        )

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        ranking: str = DEFAULT_RANKING,
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        retellings: bool = False,
    ) -> list[Recalled]:
        ranked = sorted(self.memories, key=lambda memory: not memory.pinned) if pinned_first else self.memories
        return [Recalled(memory, 1 - rank / 1000, rank) for rank, memory in enumerate(ranked[:limit], start=1)]
