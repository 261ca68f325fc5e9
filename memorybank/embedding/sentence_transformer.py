"""The embedder of every model of sentence-transformers, loaded when the first vector is needed (`loading.py`)."""

from __future__ import annotations

from memorybank.embedding.loaded import Loaded
from memorybank.embedding.loading import load
from memorybank.embedding.local import LocalEmbedder, model_files

__all__ = ["SentenceTransformerEmbedder"]


class SentenceTransformerEmbedder(LocalEmbedder):
    """A model of sentence-transformers (Reimers and Gurevych 2019) behind the `Embedder` port, run by torch.

    The model is checked against its published sha256 before it is loaded. A model on this machine is loaded without any
    connection. A GPU is used when torch sees one. For how texts are read, see `LocalEmbedder`.
    """

    def _open(self) -> Loaded:
        directory = model_files(self.profile, self._on_wait)
        self._on_wait(f"loading the embedding model {self.name} …")
        return load(self.profile, directory)
