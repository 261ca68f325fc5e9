"""The same event told twice takes one slot of a context: the newest telling, or a pinned one (SPEC.md section 9)."""

from __future__ import annotations

from collections.abc import Sequence

from memorybank.memory import Recalled

__all__ = ["newest_tellings"]


def newest_tellings(recalled: Sequence[Recalled], threshold: float | None) -> dict[str, tuple[str, float]]:
    """Return for each memory that is told again the telling that stands for it, with the cosine of the two.

    What stands for another is told again by nobody. So a memory that is like one which is told again itself, but not
    like the newest, stays: it may be another event.

    Args:
        recalled: the bank's answer; each result names the newer or pinned ones that are like it, nearest first.
        threshold: the cosine from which on two memories tell the same; None for never.
    """
    if threshold is None:
        return {}
    found: dict[str, tuple[str, float]] = {}
    for result in sorted(recalled, key=lambda one: (not one.memory.pinned, -one.memory.ordinal)):
        for other, cosine in result.retold_by:
            if cosine >= threshold and other not in found:
                found[result.memory.id] = other, cosine
                break
    return found
