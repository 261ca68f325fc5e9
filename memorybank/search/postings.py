"""What the lexical index holds, in columns: which term stands in which text how often, and what each text is."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NO_POSTINGS", "PACKED", "Place", "Postings", "Texts"]

Place: TypeAlias = tuple[int, int]
"""Where a memory stands: on which line, and at which place of it. Only memories of one line are neighbours."""

PACKED = np.dtype([("term", "<u4"), ("times", "<u2")])
"""See `memorybank.terms.packed`."""


class Texts:
    """What is known of each text, by slot, in columns that numpy can look at without a copy."""

    def __init__(self) -> None:
        self.ordinals, self.lines, self.places, self.lengths = array("q"), array("q"), array("q"), array("d")
        self.is_there = bytearray()

    def __len__(self) -> int:
        return len(self.ordinals)

    @property
    def there(self) -> NDArray[np.int64]:
        """The slots of those that are not gone."""
        return np.flatnonzero(np.frombuffer(self.is_there, np.bool_))

    def extend(self, ordinals: Sequence[int], places: Sequence[Place], lengths: Sequence[float]) -> None:
        """Add texts."""
        self.ordinals.extend(ordinals)
        self.lines.extend([line for line, _ in places])
        self.places.extend([place for _, place in places])
        self.lengths.extend(lengths)
        self.is_there += b"\1" * len(ordinals)

    def of(self, slots: NDArray[np.int64]) -> Texts:
        """Return some of them."""
        chosen = slots.tolist()
        made = Texts()
        places = [(self.lines[slot], self.places[slot]) for slot in chosen]
        made.extend([self.ordinals[slot] for slot in chosen], places, [self.lengths[slot] for slot in chosen])
        return made


@dataclass(frozen=True, slots=True)
class Postings:
    """Which term occurs in which slot, and how often, in the order of terms: three columns of one length."""

    terms: NDArray[np.uint32]
    slots: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def joined(cls, runs: Sequence[Postings]) -> Postings:
        """Return the postings of all, sorted."""
        terms, slots, counts = map(
            np.concatenate, zip(*((run.terms, run.slots, run.counts) for run in runs), strict=True)
        )
        # The term with its place behind it, as one number: sorted several times as fast as `argsort` finds the order.
        keys = terms.astype(np.uint64) << np.uint64(32) | np.arange(len(terms), dtype=np.uint64)
        keys.sort()
        order = (keys & np.uint64(0xFFFF_FFFF)).astype(np.int64)
        return cls((keys >> np.uint64(32)).astype(np.uint32), slots[order], counts[order])

    def renumbered(self, slot_of: NDArray[np.int32]) -> Postings:
        """Return the postings with other slots, without those whose slot is -1."""
        slots = slot_of[self.slots]
        there = slots >= 0
        return Postings(self.terms[there], slots[there], self.counts[there])

    def of_terms(self, keys: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint16]]:
        """Return the postings of some terms: which of the terms, in which slot, how often."""
        starts, stops = np.searchsorted(self.terms, keys), np.searchsorted(self.terms, keys, "right")
        lengths = stops - starts
        rows = np.repeat(np.arange(len(keys)), lengths)
        at = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return rows, self.slots[at], self.counts[at]


NO_POSTINGS = Postings(np.empty(0, np.uint32), np.empty(0, np.int32), np.empty(0, np.uint16))
