"""Vectors on their way: from the embedder (checked), to the database (bytes), and back (one matrix).

The byte format is little-endian float32 (`storage/schema.py`), on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memorybank.errors import ModelError, StorageError
from memorybank.search.index_exact import UNIT_TOLERANCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memorybank.embedding import Embedder, Kind

__all__ = ["BATCH", "damaged", "embed", "is_unit", "to_bytes", "to_matrix"]

BATCH = 64
"""Texts in one call of the embedder: enough to be fast, few enough to show progress."""


def embed(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    kind: Kind = "passage",
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """Return the vectors of some texts, shape (len(texts), dimensions), and trust the embedder in nothing.

    They are embedded longest first: texts of like length go through the model together (one that is filled up to the
    length of another costs as much), and what is left to do takes less time than progress lets fear, not more.

    Args:
        embedder: what embeds.
        texts: at least one.
        kind: what they are for.
        progress: told the number of texts done, after each batch.

    Raises:
        ModelError: the embedder gave another shape, or a vector that is not finite or not of length 1.
    """
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]), reverse=True)
    out = np.empty((len(texts), embedder.dimensions), dtype=np.float32)
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        out[places] = _checked(embedder, embedder.embed([texts[place] for place in places], kind=kind), len(places))
        if progress is not None:
            progress(start + len(places))
    return out


def _checked(embedder: Embedder, vectors: object, rows: int) -> NDArray[np.float32]:
    array = np.asarray(vectors)
    if array.shape != (rows, embedder.dimensions) or array.dtype.kind != "f":
        raise ModelError(
            f"model {embedder.name}: it gave {array.dtype} of shape {array.shape} for {rows} texts, "
            f"where floats of shape ({rows}, {embedder.dimensions}) were due: nothing was stored"
        )
    array = np.ascontiguousarray(array, dtype=np.float32)
    if not is_unit(array).all():
        raise ModelError(
            f"model {embedder.name}: it gave a vector that is not finite or not of length 1: nothing was stored"
        )
    return array


def is_unit(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return for each row whether it is finite and of length 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    found: NDArray[np.bool_] = np.abs(lengths - 1.0) <= UNIT_TOLERANCE  # false for NaN
    return found


def to_bytes(vectors: NDArray[np.float32]) -> list[bytes]:
    """Return each row as it is stored."""
    return [row.tobytes() for row in np.ascontiguousarray(vectors, dtype="<f4")]


def to_matrix(stored: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Return stored vectors as one matrix, shape (len(stored), dimensions).

    Raises:
        StorageError: one is not as long as it must be; see `damaged`.
    """
    width = 4 * dimensions
    if not all(isinstance(one, bytes) and len(one) == width for one in stored):
        raise StorageError(f"a stored vector does not have {width} bytes")
    return np.frombuffer(b"".join(stored), dtype="<f4").reshape(-1, dimensions).astype(np.float32, copy=False)


def damaged(stored: Sequence[bytes], dimensions: int) -> Iterator[tuple[int, str]]:
    """Return the places of vectors that cannot be ones of these dimensions, and what is wrong with each."""
    width = 4 * dimensions
    whole = [isinstance(one, bytes) and len(one) == width for one in stored]
    filled = [one if sound else bytes(width) for one, sound in zip(stored, whole, strict=True)]
    units = is_unit(to_matrix(filled, dimensions)).tolist()
    for place, (one, sound, unit) in enumerate(zip(stored, whole, units, strict=True)):
        if not isinstance(one, bytes):
            yield place, f"its vector is of type {type(one).__name__}"
        elif not sound:
            yield place, f"its vector has {len(one)} bytes, not {width}"
        elif not unit:
            yield place, "its vector is not finite or not of length 1"
