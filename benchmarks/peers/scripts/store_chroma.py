"""Chroma in process, on disk, cosine, with the embeddings given. Banks: a collection each.

Its cookbook's strategies for tenants begin with a collection for each user.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings
from numpy.typing import NDArray
from storing import LIMIT, Inputs, Items, serve_store


class ChromaStore:
    """An HNSW index for each collection. A write is in its SQLite file when its call returns."""

    def __init__(self, folder: Path, _inputs: Inputs) -> None:
        self._client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        self._collections: dict[str, Any] = {}
        self.batch = self._client.get_max_batch_size()

    def _collection(self, bank: str | None) -> Any:
        name = bank or "one"
        if name not in self._collections:
            self._collections[name] = self._client.get_or_create_collection(
                name, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
            )
        return self._collections[name]

    def add(self, items: Items, bank: str | None) -> None:
        """Add memories."""
        self._collection(bank).add(ids=items.ids, embeddings=items.vectors, documents=items.texts)

    def settle(self) -> None:
        """Nothing: the index is built as it is written to."""

    def save(self) -> None:
        """Nothing: it is on disk."""

    def search(self, text: str, vector: NDArray[Any], bank: str | None) -> list[tuple[str, str]]:
        """Return id and text of the nearest."""
        found = self._collection(bank).query(query_embeddings=[vector], n_results=LIMIT, include=["documents"])
        return list(zip(found["ids"][0], found["documents"][0], strict=True))

    def delete(self, id: str, bank: str | None) -> None:
        """Delete a memory."""
        self._collection(bank).delete(ids=[id])

    def close(self) -> None:
        """Nothing: there is no call for it, and nothing to save."""


if __name__ == "__main__":
    serve_store(ChromaStore, ["chromadb"])
