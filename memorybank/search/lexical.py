"""BM25 over one bank: which memories share words with a query, and how rare these are (Robertson & Zaragoza 2009).

A memory counts with its neighbours in the story: a word that stands in the one before it counts half, and so on
(`AROUND`). What an event was about is often said just before it, and in memories made of a running log it is chance on
which side of the cut a word fell. On LoCoMo that alone is worth seven points of nDCG@10 (benchmarks/README.md).

All that a score depends on is the active memories themselves, never the order in which they came or what was deleted
meanwhile, so every process gives the same answer. Postings lie in two runs, each sorted by term: a large one, and what
came since; so adding is cheap, and a query reads the postings of its own terms only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from memorybank.search.postings import NO_POSTINGS, PACKED, Place, Postings, Texts
from memorybank.search.scores import NO_SCORES, Scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AROUND", "K1", "LENGTH", "LexicalIndex"]

_Float = TypeVar("_Float", np.float32, np.float64)

K1, LENGTH = 1.2, 0.4
"""BM25's parameters: how soon more of the same word counts no more, and how much a long text is held back."""
AROUND: Mapping[int, float] = {0: 1.0, 1: 0.5, 2: 0.25, 3: 0.12, -1: 0.25, -2: 0.12, -3: 0.06}
"""By distance: what a word counts that stands so many memories *before* one (negative: behind it)."""
SPREAD_LENGTH = 30.0
"""Words of a memory, in a bank's mean, up to which neighbours count in full. In a bank of longer ones, which tell more
of an event by themselves, they count less in proportion. Measured on summaries of 70 words: one more of 100 actions
finds its own among the first ten; turns of a talk, of 24 to 31 words, are found as before."""
_GAP = max(AROUND)
"""Empty positions between two lines, so that nothing reaches from one into the other."""
_MERGE_ABOVE, _MERGE_SHARE = 4_096, 0.25
"""The small run is merged into the large one when it has more postings than the first and than that share of it."""
_MANY_GONE = 64
"""So it is when more than half of the texts and that many are gone."""
_DENSE_SHARE = 0.02
"""Terms in more than that share of the memories are counted in whole rows."""
_CELLS = 2**18
"""Places times terms that are counted at once: as many as the processor's own memory holds."""
_BYTES_PER_POSTING, _BYTES_PER_MEMORY = 10, 200


class LexicalIndex:
    """Texts under stable 64-bit ordinals. Not safe by itself for a writer beside others.

    Args:
        around: what neighbours count; see `AROUND`, whose distances none may exceed.

    >>> from memorybank.terms import packed, terms
    >>> index = LexicalIndex()
    >>> index.add([3, 8], [packed("Mara hid the silver key."), packed("Rain fell.")], [(0, 3), (1, 8)])
    >>> found = index.scores({term: 1.0 for term in terms("silver keys")})
    >>> found.best(10), found.of([8]).tolist()
    ([3], [0.0])
    """

    def __init__(self, around: Mapping[int, float] = AROUND) -> None:
        self._around = around
        self._runs = (NO_POSTINGS, NO_POSTINGS)  # the large one, and what came since
        self._new: list[Postings] = []  # not sorted in yet
        self._slot_of: dict[int, int] = {}
        self._texts = Texts()  # by slot; those that are gone included
        self._story: _Story | None = None

    def __len__(self) -> int:
        return len(self._slot_of)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes, about."""
        postings = sum(len(run.terms) for run in (*self._runs, *self._new))
        return postings * _BYTES_PER_POSTING + len(self._slot_of) * _BYTES_PER_MEMORY

    def add(self, ordinals: Sequence[int], texts: Sequence[bytes], places: Sequence[Place]) -> None:
        """Add texts, or replace those that are there already.

        Args:
            ordinals: n whole numbers, none twice.
            texts: their terms, as `memorybank.terms.packed` makes them.
            places: where they stand.
        """
        if not ordinals:
            return
        self.remove(ordinals)
        columns = np.frombuffer(b"".join(text[1:] for text in texts), PACKED)
        rows = np.repeat(np.arange(len(texts)), [len(text) // PACKED.itemsize for text in texts])
        lengths = np.bincount(rows, columns["times"], minlength=len(texts)).tolist()
        first = len(self._texts)
        self._texts.extend(ordinals, places, lengths)
        self._slot_of |= zip(ordinals, range(first, len(self._texts)), strict=True)
        self._new.append(Postings(columns["term"], (rows + first).astype(np.int32), columns["times"]))
        self._story = None

    def remove(self, ordinals: Iterable[int]) -> None:
        """Remove texts; those that are not there are passed over. Their postings go with the next merge."""
        for ordinal in ordinals:
            slot = self._slot_of.pop(ordinal, None)
            if slot is not None:
                self._texts.is_there[slot] = False
                self._story = None

    def settle(self) -> None:
        """Sort in what has changed. `scores` may be called by several threads after that."""
        large, small = self._runs
        since = [small, *self._new]
        many_came = sum(len(run.terms) for run in since) > max(_MERGE_ABOVE, _MERGE_SHARE * len(large.terms))
        if many_came or len(self._texts) > 2 * len(self) + _MANY_GONE:
            self._runs = (self._compacted(Postings.joined([large, *since])), NO_POSTINGS)
        elif self._new:
            self._runs = (large, Postings.joined(since))
        self._new = []
        if self._story is None:
            self._story = _Story.of(self._texts, self._around)

    def scores(self, wanted: Mapping[int, float]) -> Scores:
        """Return the ordinals of all texts, in the order of their places, and the score of each, 0 or more.

        Args:
            wanted: what each term of the query weighs.
        """
        self.settle()
        story = self._story
        if story is None or not len(story.ordinals):
            return NO_SCORES
        keys = np.array(sorted(wanted), np.uint32)
        found = self._occurrences(keys, np.array([wanted[int(key)] for key in keys]), story)
        return Scores(story.ordinals, story.scores(found)[story.is_text], story.sorter)

    def _occurrences(self, keys: NDArray[np.uint32], weights: NDArray[np.float64], story: _Story) -> _Occurrences:
        rows, slots, counts = zip(*(run.of_terms(keys) for run in self._runs), strict=True)
        positions = story.position_of[np.concatenate(slots)]
        there = np.flatnonzero(positions >= 0)
        there = there[np.argsort(np.concatenate(rows)[there], kind="stable")]
        return _Occurrences(
            weights, np.concatenate(rows)[there], positions[there], np.concatenate(counts)[there].astype(np.float64)
        )

    def _compacted(self, postings: Postings) -> Postings:
        """Return the postings without those of texts that are gone, and number the slots anew."""
        kept = self._texts.there
        if len(kept) == len(self._texts):
            return postings
        slot_of = np.full(len(self._texts), -1, np.int32)
        slot_of[kept] = np.arange(len(kept), dtype=np.int32)
        self._texts = self._texts.of(kept)
        self._slot_of = {ordinal: slot for slot, ordinal in enumerate(self._texts.ordinals)}
        self._story = None
        return postings.renumbered(slot_of)


_NOWHERE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Occurrences:
    """Where the terms of a query stand: three columns of one length, term by term, and the weight of each term.

    Attributes:
        weights: by term.
        terms: which term, by its place in `weights`.
        positions: where it stands.
        times: how often it stands there.
    """

    weights: NDArray[np.float64]
    terms: NDArray[np.int64]
    positions: NDArray[np.int64]
    times: NDArray[np.float64]

    def of(self, chosen: NDArray[np.int64]) -> _Occurrences:
        """Return those of some terms, in ascending order, which are numbered anew."""
        starts, stops = np.searchsorted(self.terms, chosen), np.searchsorted(self.terms, chosen, "right")
        there = np.concatenate([np.arange(*ends) for ends in zip(starts, stops, strict=True)] or [_NOWHERE])
        number = np.repeat(np.arange(len(chosen)), stops - starts)
        return _Occurrences(self.weights[chosen], number, self.positions[there], self.times[there])


@dataclass(frozen=True, slots=True)
class _Story:
    """The texts side by side, line behind line.

    Attributes:
        ordinals: of the texts, in their order.
        sorter: what puts the ordinals in ascending order.
        is_text: for each position whether a text stands there; the others are gaps.
        position_of: by slot; -1 for what is gone.
        saturation: for each position how much of a word it takes for half its worth: longer texts take more.
        around: what neighbours count.
    """

    ordinals: NDArray[np.int64]
    sorter: NDArray[np.int64]
    is_text: NDArray[np.bool_]
    position_of: NDArray[np.int64]
    saturation: NDArray[np.float64]
    around: Mapping[int, float]

    @classmethod
    def of(cls, texts: Texts, around: Mapping[int, float]) -> _Story:
        slots = texts.there
        ordinals = np.array(texts.ordinals, np.int64)[slots]
        lines, places = np.array(texts.lines, np.int64)[slots], np.array(texts.places, np.int64)[slots]
        order = np.lexsort((ordinals, places, lines))
        slots, ordinals, lines = slots[order], ordinals[order], lines[order]
        positions = np.arange(len(slots)) + _GAP * (1 + np.searchsorted(np.unique(lines), lines))
        size = int(positions[-1]) + 1 + _GAP if len(slots) else 0
        position_of = np.full(len(texts), -1, np.int64)
        position_of[slots] = positions
        is_text = np.zeros(size, np.bool_)
        is_text[positions] = True
        lengths = np.zeros((1, size))
        lengths[0, positions] = np.array(texts.lengths)[slots]
        near = min(1.0, SPREAD_LENGTH / max(1.0, float(lengths.sum()) / max(1, len(slots))))
        around = {distance: share * (near if distance else 1.0) for distance, share in around.items()}
        spread = _with_neighbours(lengths, around)[0]
        mean = spread[is_text].mean() if len(slots) else 1.0
        saturation = K1 * (1 - LENGTH + LENGTH * spread / max(mean, 1.0))
        return cls(ordinals, np.argsort(ordinals), is_text, position_of, saturation, around)

    def scores(self, found: _Occurrences) -> NDArray[np.float64]:
        """Return what each position scores."""
        having = np.bincount(found.terms, minlength=len(found.weights))
        is_common = having > _DENSE_SHARE * len(self.ordinals)
        totals = np.zeros(len(self.is_text))
        at_once = max(1, _CELLS // len(self.is_text))
        for chosen, count in ((~is_common & (having > 0), self._sparse), (is_common, self._dense)):
            terms = np.flatnonzero(chosen)
            for start in range(0, len(terms), at_once):
                totals += count(found.of(terms[start : start + at_once]))
        return totals

    def _dense(self, found: _Occurrences) -> NDArray[np.float64]:
        """Count each term in a row of all positions."""
        counts = np.zeros((len(found.weights), len(self.is_text)), np.float32)
        counts[found.terms, found.positions] = found.times
        around = _with_neighbours(counts, self.around)
        around[:, ~self.is_text] = 0.0
        worth = self._worth(found.weights, np.count_nonzero(around, axis=1)) * (K1 + 1)
        np.divide(around, around + self.saturation.astype(np.float32), out=around)
        scores: NDArray[np.float64] = (worth.astype(np.float32) @ around).astype(np.float64)
        return scores

    def _sparse(self, found: _Occurrences) -> NDArray[np.float64]:
        """The same, touching only where one of the terms stands, or near it."""
        size = len(self.is_text)
        distances, shares = np.array(list(self.around)), np.array(list(self.around.values()))
        cells = np.add.outer(distances, found.terms * size + found.positions).ravel()
        counts = np.bincount(cells, np.multiply.outer(shares, found.times).ravel())  # cell by cell, all gaps included
        touched = np.flatnonzero(counts > 0)  # of truth values, numpy finds them in a tenth of the time
        term, position = np.divmod(touched, size)
        there = self.is_text[position]
        term, position, around = term[there], position[there], counts[touched[there]]
        worth = self._worth(found.weights, np.bincount(term, minlength=len(found.weights)))
        scores = worth[term] * around * (K1 + 1) / (around + self.saturation[position])
        return np.bincount(position, scores, minlength=size).astype(np.float64)

    def _worth(self, weights: NDArray[np.float64], having: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each term is worth: the rarer, the more (BM25's inverse document frequency)."""
        inverse: NDArray[np.float64] = np.log1p((len(self.ordinals) - having + 0.5) / (having + 0.5))
        return weights * inverse


def _with_neighbours(rows: NDArray[_Float], around: Mapping[int, float]) -> NDArray[_Float]:
    """Return rows in which each position has the share of what stands around it; shape (n, positions)."""
    found, shares = np.zeros_like(rows), np.empty_like(rows)
    size = rows.shape[1]
    for distance, share in around.items():
        start, stop = max(0, distance), min(size, size + distance)
        there = shares[:, start:stop]
        np.multiply(rows[:, start - distance : stop - distance], share, out=there)
        found[:, start:stop] += there
    return found
