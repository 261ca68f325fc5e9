"""A model in memory, whatever runs it, and how a text of several windows becomes one vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybank.embedding.windows import Pieces, Window, windows
from memorybank.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BATCH", "PIECES", "Loaded", "mean_of", "room", "steps", "windows_of"]

BATCH = 32
"""Texts for which the model is held at once; a step of a GPU."""

PIECES = 384
"""Word pieces in a step of a CPU, filled up ones included. More do not fit into its caches: on an AMD EPYC, 2,048 take
torch and ONNX Runtime a third to a half more time for each text."""

LONGEST_WINDOW = 512
"""Word pieces in a window also of models that read more: the memory of a step grows with the square."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory.

    Attributes:
        encode: texts and what is put before each to their vectors, shape (len(texts), dimensions), of any length; for
            one thread at a time, with the GIL released while the model works.
        pieces: the tokenizer as offsets; for any number of threads.
        limit: the longest input in word pieces with the special ones; None when it has no limit.
        dimensions: width of a vector.
        directory: its files.
        prompts: what the model itself says to put before texts, by kind.
        batch: texts to give to `encode` at once.
        model: the library's own object.
    """

    encode: Callable[[list[str], str], NDArray[np.float32]]
    pieces: Pieces
    limit: int | None
    dimensions: int
    directory: Path
    prompts: Mapping[str, str]
    batch: int
    model: Any


def steps(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Cut the places of texts into steps of one text, or of several that together have at most so many word pieces.

    Args:
        lengths: word pieces of each text, at least one text.
        most: word pieces in a step, when all its texts are filled up to the length of the longest.
    """
    step: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if step and (len(step) + 1) * lengths[place] > most:
            yield step
            step = []
        step.append(place)
    yield step


def room(loaded: Loaded, prefix: str) -> int | None:
    """Return how many word pieces of a text fit into the model behind a prefix; None for any number."""
    if loaded.limit is None:
        return None
    # Two for the special pieces at both ends.
    return max(8, min(loaded.limit, LONGEST_WINDOW) - 2 - len(loaded.pieces(prefix)))


def windows_of(text: str, pieces: Pieces, fits: int | None) -> list[Window]:
    """Return the windows of a text (`windows.py`); a model without a limit reads it whole."""
    return windows(text, pieces, fits) if fits is not None else [Window(text, 1)]


def mean_of(vectors: NDArray[np.float32], parts: list[Window]) -> NDArray[np.float32]:
    """Return the mean of a text's window vectors, weighted and of length 1; shape (1, dimensions)."""
    import numpy as np

    weights = np.array([part.weight for part in parts], dtype=np.float64)
    mean: NDArray[np.float32] = _unit((weights @ _unit(vectors.astype(np.float64)))[np.newaxis]).astype(np.float32)
    return mean


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    if not np.isfinite(rows).all():
        raise ModelError(
            "the embedding model gave a vector that is not finite; its files or the GPU's driver are broken"
        )
    rows[np.linalg.norm(rows, axis=1) < 1e-12] = 1.0
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
