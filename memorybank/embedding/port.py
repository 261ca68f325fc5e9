"""What an embedder is: the port that every embedder of this package fills (SPEC.md section 9).

A leaf: numpy is imported by type checkers only, so that `import memorybank` stays light (SPEC.md section 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, get_args, runtime_checkable

from memorybank.errors import InvalidInputError
from memorybank.text import repair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "Kind", "fingerprint_of", "prepared"]

Kind = Literal["query", "passage"]
"""`query` for what is searched with, `passage` for what is stored; some models are trained to tell them apart."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors whose inner product says how close their meanings are.

    Every embedder of this package may be used by several threads at once, repairs its texts first
    (`memorybank.text.repair`) and gives a text the same vector whatever else is in the call.

    Attributes:
        name: stored with every vector; two embedders with one name must give the same vectors.
        dimensions: the width of a vector.
    """

    @property
    def name(self) -> str:
        """Name of the model, as stored with every vector."""

    @property
    def dimensions(self) -> int:
        """Width of a vector."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """Return one vector per text, in the order of `texts`.

        Args:
            texts: any texts; a long one is read as its embedder's docstring says. `[]` gives shape (0, dimensions).
            kind: what the texts are for.

        Returns:
            float32 of shape (len(texts), dimensions), finite, each row of length 1. The caller may change it.

        Raises:
            InvalidInputError: `texts` is one string, holds something else than strings, or `kind` is unknown.
            ModelError: the model cannot be found or loaded, or its files are not the published ones.
        """


def prepared(texts: Sequence[str], kind: Kind) -> list[str]:
    """Return the texts, repaired, or say what is wrong with the call.

    Raises:
        InvalidInputError: as in `Embedder.embed`.
    """
    if isinstance(texts, (str, bytes)):
        raise InvalidInputError("embed takes a list of texts, not one text: write embed([text])")
    if kind not in get_args(Kind):
        raise InvalidInputError(f"kind must be 'query' or 'passage', not {kind!r}")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(f"texts[{position}] must be a string, not {type(text).__name__}")
    return [repair(text) for text in texts]


def fingerprint_of(embedder: Embedder) -> str:
    """Return what tells this embedder's vectors from all others': its `fingerprint`, or else its name."""
    return str(getattr(embedder, "fingerprint", embedder.name))
