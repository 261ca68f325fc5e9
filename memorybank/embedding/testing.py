"""Embedders for tests: without weights, and one that writes down what it was asked.

Public: a program that uses a memory bank can test itself in milliseconds with these.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from memorybank.embedding.port import Embedder, Kind, fingerprint_of, prepared
from memorybank.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["HashingEmbedder", "RecordingEmbedder", "hashing_dimensions"]

MAX_DIMENSIONS = 4096
WORD_WEIGHT = 3  # a whole word says more than a piece of one


def hashing_dimensions(model: str) -> int | None:
    """Return N of the model name `hashing-N`, or None when it is another name."""
    found = re.fullmatch(r"hashing-([1-9][0-9]{0,3})", model) if isinstance(model, str) else None
    return int(found[1]) if found else None


class HashingEmbedder:
    """Signed feature hashing (Weinberger et al. 2009) of words and of their character trigrams.

    Texts that share words or parts of words are similar, others nearly orthogonal; case, Unicode form, punctuation
    and the order of words do not count. A text without any word gets a unit vector made of its bytes. A text of any
    length is read whole. `kind` makes no difference. The same text has the same bits in every process and on every
    machine: sums are whole numbers, and nothing depends on Python's `hash`.

    >>> HashingEmbedder(8).embed(["The wolf howls.", "the WOLF howls"]).shape
    (2, 8)
    """

    def __init__(self, dimensions: int = 64, name: str | None = None) -> None:
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise InvalidInputError(f"dimensions must be from 1 to {MAX_DIMENSIONS}, not {dimensions}")
        self.dimensions = dimensions
        self.name = name if name is not None else f"hashing-{dimensions}"

    def __repr__(self) -> str:
        return f"HashingEmbedder(dimensions={self.dimensions}, name={self.name!r})"

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), dimensions), rows of length 1."""
        import numpy as np

        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(prepared(texts, kind)):
            out[row] = self._vector(text)
        return out

    def _vector(self, text: str) -> NDArray[np.float64]:
        sums = [0] * self.dimensions
        for feature, count in Counter(_features(text)).items():
            place, sign = _slot(feature, self.dimensions)
            # The number of bits grows like the logarithm: a word said 200 times does not drown all others.
            sums[place] += sign * count.bit_length() * (WORD_WEIGHT if feature[0] == "w" else 1)
        return _unit(sums if any(sums) else _from_bytes(text, self.dimensions))


def _features(text: str) -> Iterator[str]:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    for word in re.findall(r"\w+", folded):
        yield f"w{word}"
        padded = f" {word} "
        for start in range(len(padded) - 2):
            yield f"g{padded[start : start + 3]}"


@lru_cache(maxsize=4_096)
def _slot(feature: str, dimensions: int) -> tuple[int, int]:
    number = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little")
    return (number >> 1) % dimensions, 1 if number & 1 else -1


def _from_bytes(text: str, dimensions: int) -> list[int]:
    stream = hashlib.shake_256(text.encode()).digest(2 * dimensions)
    # Odd numbers only: the sum of their squares is never 0.
    return [int.from_bytes(stream[at : at + 2], "little", signed=True) | 1 for at in range(0, 2 * dimensions, 2)]


def _unit(sums: list[int]) -> NDArray[np.float64]:
    import numpy as np

    return np.array(sums, dtype=np.float64) / math.sqrt(sum(value * value for value in sums))


class RecordingEmbedder:
    """Passes calls on and writes them down: `calls` is a list of (texts, kind)."""

    def __init__(self, inner: Embedder | None = None) -> None:
        self.inner: Embedder = inner if inner is not None else HashingEmbedder()
        self.name = self.inner.name
        self.dimensions = self.inner.dimensions
        self.fingerprint = fingerprint_of(self.inner)
        self.calls: list[tuple[tuple[str, ...], Kind]] = []

    @property
    def texts(self) -> list[str]:
        """All texts embedded so far, in order."""
        return [text for texts, _ in self.calls for text in texts]

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """As the inner embedder."""
        self.calls.append((tuple(texts), kind))
        return self.inner.embed(texts, kind=kind)
