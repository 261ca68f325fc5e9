"""mem0's FAISS vector store with the vectors given; its language model and its history are never touched.

It writes its whole index and all payloads after every call, so one call fills it. Banks: `user_id`, as its
documentation has it, a filter that this store applies to the nearest 2 k of all users.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = os.environ.get("PEER_HOME", "")

import numpy as np
from mem0.vector_stores.faiss import FAISS
from numpy.typing import NDArray
from storing import LIMIT, Inputs, Items, serve_store


class Mem0Store:
    """A flat index and a dictionary of payloads. A write is in the files when its call returns, without fsync."""

    batch = 10_000_000

    def __init__(self, folder: Path, inputs: Inputs) -> None:
        self._store = FAISS("memories", str(folder), "cosine", embedding_model_dims=inputs.vectors.shape[1])

    def add(self, items: Items, bank: str | None) -> None:
        """Add memories."""
        user = {} if bank is None else {"user_id": bank}
        self._store.insert(items.vectors, [{"data": text, **user} for text in items.texts], items.ids)

    def settle(self) -> None:
        """Nothing."""

    def save(self) -> None:
        """Nothing: every write has saved all."""

    def search(self, text: str, vector: NDArray[np.float32], bank: str | None) -> list[tuple[str, str]]:
        """Return id and text of the nearest."""
        found = self._store.search(text, vector[np.newaxis], LIMIT, None if bank is None else {"user_id": bank})
        return [(one.id, one.payload["data"]) for one in found]

    def delete(self, id: str, bank: str | None) -> None:
        """Delete a memory."""
        self._store.delete(id)

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve_store(Mem0Store, ["mem0ai", "faiss-cpu"])
