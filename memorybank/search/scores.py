"""What the lexical arm says of every memory of a bank, and how the best of them, or certain ones, are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NO_SCORES", "Scores"]


@dataclass(frozen=True, slots=True)
class Scores:
    """Three columns of one length.

    Attributes:
        ordinals: of all texts, in the order of the story.
        values: the score of each, 0 or more.
        sorter: what puts the ordinals in ascending order.
    """

    ordinals: NDArray[np.int64]
    values: NDArray[np.float64]
    sorter: NDArray[np.int64]

    def best(self, k: int) -> list[int]:
        """Return the ordinals with the k highest scores above 0; of equal ones at the end, those stored first."""
        there = np.flatnonzero(self.values > 0)
        if not len(there):
            return []
        values = self.values[there]
        if len(there) > k:
            kept = values >= np.partition(values, len(there) - k)[len(there) - k]
            there, values = there[kept], values[kept]
        order = np.lexsort((self.ordinals[there], -values))
        found: list[int] = self.ordinals[there[order[:k]]].tolist()
        return found

    def of(self, wanted: Sequence[int]) -> NDArray[np.float64]:
        """Return the scores of some ordinals, 0 for those that have none."""
        if not len(self.ordinals):
            return np.zeros(len(wanted))
        at = np.minimum(np.searchsorted(self.ordinals, wanted, sorter=self.sorter), len(self.ordinals) - 1)
        found = self.sorter[at]
        matching: NDArray[np.float64] = np.where(self.ordinals[found] == wanted, self.values[found], 0.0)
        return matching


_NOTHING = np.empty(0, np.int64)
NO_SCORES = Scores(_NOTHING, np.empty(0, np.float64), _NOTHING)
