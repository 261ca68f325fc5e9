"""What the stores are given: texts, vectors like those of a story, and the true neighbours of the queries."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.story import Writer
from benchmarks.vectors import NOISE

if TYPE_CHECKING:
    from benchmarks.stores import Parameters

__all__ = ["Inputs", "K", "write_vectors"]

K = 10
"""Results asked for, as in `peers/scripts/storing.py`."""
BLOCK = 50_000
"""Rows made or compared at once."""
CENTRES = 256
TEXTS = 2_000
ROUNDING = 1e-5
"""Two scores that differ by less are one: a float32 sum says no more."""


class Inputs:
    """Texts and vectors in a folder, by the number of their row: first the memories, then what is added, then queries.

    Args:
        folder: is made, and gets `vectors.npy` and `texts.json`.
        parameters: how much of everything.

    Attributes:
        spare: rows to be added one by one.
        warm_up: queries whose times do not count.
        queries: those whose times do.
    """

    def __init__(self, folder: Path, parameters: Parameters) -> None:
        self.folder = folder
        self.parameters = parameters
        memories = max([*parameters.sizes, *(count * parameters.each for count in parameters.banks)])
        ends = [memories, parameters.writes, 2, parameters.searches, parameters.searches]
        places = [sum(ends[: place + 1]) for place in range(len(ends))]
        self.spare, self.warm_up, self.queries, self._second = (
            list(range(*pair)) for pair in itertools.pairwise(places)
        )
        folder.mkdir(parents=True)
        writer = Writer("stores")
        texts = [writer.text(parameters.words) for _ in range(min(TEXTS, memories))]
        (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        self._vectors = write_vectors(folder / "vectors.npy", places[-1], parameters.dimensions)
        self._least: dict[tuple[int, int], NDArray[np.float32]] = {}

    def some_banks(self, count: int) -> list[int]:
        """Return as many banks as there are queries, or all of fewer, in an order of chance."""
        chance = random.Random(count)
        return chance.sample(range(count), min(count, len(self.queries)))

    def two_rounds(self) -> tuple[list[int], list[int]]:
        """Return queries for a first and for a second search in each of some banks."""
        return self.queries, self._second

    def recall(self, size: int, found: list[list[int]]) -> list[float]:
        """Return for each query which part of its true `K` nearest among the first rows was found."""
        if (0, size) not in self._least:
            self._least[0, size] = self._least_of(self.queries, 0, size)
        return self._shares(self.queries, found, self._least[0, size])

    def recall_in_banks(self, queries: list[int], banks: list[int], found: list[list[int]]) -> list[float]:
        """Return the same for queries that were asked each in a bank of its own."""
        each = self.parameters.each
        least = [
            self._least_of([query], bank * each, (bank + 1) * each) for query, bank in zip(queries, banks, strict=False)
        ]
        for rows, bank in zip(found, banks, strict=False):
            if any(row // each != bank for row in rows):
                raise ValueError(f"a search in bank {bank} gave a memory of another bank")
        return self._shares(queries, found, np.concatenate(least))

    def _least_of(self, queries: list[int], start: int, stop: int) -> NDArray[np.float32]:
        """Return the K-th best score of each query among the rows from `start` to before `stop`."""
        asked = np.array(self._vectors[queries])
        best = np.full((len(queries), K), -2.0, dtype=np.float32)
        for first in range(start, stop, BLOCK):
            scores = asked @ np.array(self._vectors[first : min(first + BLOCK, stop)]).T
            best = np.partition(np.concatenate([best, scores], axis=1), -K, axis=1)[:, -K:]
        least: NDArray[np.float32] = best.min(axis=1)
        return least

    def _shares(self, queries: list[int], found: list[list[int]], least: NDArray[np.float32]) -> list[float]:
        """A neighbour counts if it is as good as the K-th best: among equals any will do."""
        shares = []
        for query, rows, score in zip(queries, found, least.tolist(), strict=False):  # a slow store answered some only
            scores = np.array(self._vectors[rows]) @ self._vectors[query] if rows else np.zeros(0)
            shares.append(min(1.0, int((scores >= score - ROUNDING).sum()) / K))
        return shares


def write_vectors(file: Path, rows: int, dimensions: int) -> NDArray[np.float32]:
    """Write vectors to a file and return them, mapped from it: mixtures of two of some centres with noise.

    They are distributed as those of `vectors.StubEmbedder`, but are made many at once.
    """
    chance = np.random.default_rng(CENTRES)
    centres = _unit(chance.standard_normal((CENTRES, dimensions), dtype=np.float32))
    made = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(rows, dimensions))
    for start in range(0, rows, BLOCK):
        size = min(BLOCK, rows - start)
        two = centres[chance.integers(CENTRES, size=(size, 2))].sum(axis=1)
        noise = chance.standard_normal((size, dimensions), dtype=np.float32) * np.float32(NOISE / dimensions**0.5)
        made[start : start + size] = _unit(two + noise)
    made.flush()
    mapped: NDArray[np.float32] = np.load(file, mmap_mode="r")
    return mapped


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
