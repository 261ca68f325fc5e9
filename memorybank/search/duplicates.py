"""Which of the memories found tell the same event as another one: nearly the same vector (SPEC.md section 9).

Measured with all-MiniLM-L6-v2: the same sentence reworded comes to 0.93 to 0.99, another event of a similar sentence
(the leg and not the arm, found and not hidden) to 0.94 or 0.95, two chapters of one campaign to 0.85 at the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEAST", "retellings"]

LEAST = 0.9
"""Cosine from which on two memories are told to be alike; what is done about it is the caller's threshold."""


def retellings(
    vectors: NDArray[np.float32], precedence: Sequence[tuple[bool, int]]
) -> list[tuple[tuple[int, float], ...]]:
    """Return for each memory those that tell nearly the same and take precedence over it, with the cosine.

    Args:
        vectors: shape (n, dimensions), rows of length 1.
        precedence: for each memory whether it is pinned, and its place in the order of storing: pinned ones come
            before others, and newer ones before older ones.

    Returns:
        For each row the rows that come before it, the nearest first, equal ones by precedence.
    """
    alike = vectors @ vectors.T
    found: list[list[tuple[int, float]]] = [[] for _ in precedence]
    for row, other in np.argwhere(np.triu(alike, 1) >= LEAST).tolist():
        older, newer = (row, other) if precedence[row] < precedence[other] else (other, row)
        found[older].append((newer, round(float(alike[row, other]), 6)))
    return [
        tuple(sorted(each, key=lambda one: (-one[1], not precedence[one[0]][0], -precedence[one[0]][1])))
        for each in found
    ]
