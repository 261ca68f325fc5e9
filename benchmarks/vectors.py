"""An embedder that costs next to nothing: vectors from seeds, so that what is measured is the time beside embedding."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memorybank.embedding import Kind

__all__ = ["StubEmbedder"]

NOISE = 0.7
"""Length of the noise beside two centres of length 1: memories of one story are alike, but not the same."""


class StubEmbedder:
    """Gives a text a mixture of two of some centres and noise, from a seed that is the text's checksum.

    Args:
        dimensions: width of the vectors.
        centres: how many topics there are.
    """

    def __init__(self, dimensions: int = 384, centres: int = 256) -> None:
        self.dimensions = dimensions
        self.name = f"stub-{dimensions}-{centres}"
        self._centres = _unit(np.random.default_rng(centres).standard_normal((centres, dimensions)))
        self._ready: dict[str, NDArray[np.float32]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Make the vectors of some texts now, so that `embed` only looks them up."""
        self._ready.update((text, self._make(text)) for text in texts)

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), dimensions), rows of length 1."""
        made = [self._ready[text] if text in self._ready else self._make(text) for text in texts]
        return np.stack(made) if made else np.empty((0, self.dimensions), dtype=np.float32)

    def _make(self, text: str) -> NDArray[np.float32]:
        random = np.random.default_rng(zlib.crc32(text.encode()))
        two = self._centres[random.integers(len(self._centres), size=2)].sum(axis=0)
        noise = random.standard_normal(self.dimensions) * NOISE / np.sqrt(self.dimensions)
        made: NDArray[np.float32] = _unit((two + noise)[np.newaxis])[0].astype(np.float32)
        return made


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
