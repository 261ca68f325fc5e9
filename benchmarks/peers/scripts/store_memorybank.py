"""This project's own bank, driven like the others; runs in this project's environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # this checkout, whatever is installed

import numpy as np
from numpy.typing import NDArray
from storing import LIMIT, Inputs, Items, serve_store

from memorybank import NewMemory
from memorybank.embedding import Kind
from memorybank.host import BankHost


class _Embedder:
    name, dimensions = "ready", 0

    def __init__(self, inputs: Inputs) -> None:
        self.dimensions = inputs.vectors.shape[1]
        self._inputs = inputs

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        return self._inputs.vectors_of(texts)


class MemoryBankStore:
    """Banks in one SQLite file. A write is on disk (fsync) when its call returns."""

    batch = 10_000

    def __init__(self, folder: Path, inputs: Inputs) -> None:
        self._host = BankHost.open(folder / "banks.sqlite", embedder=_Embedder(inputs))

    def add(self, items: Items, bank: str | None) -> None:
        """Add memories."""
        memories = [NewMemory(text, id=id_) for id_, text in zip(items.ids, items.texts, strict=True)]
        self._host.bank(bank or "one").add_many(memories)

    def settle(self) -> None:
        """Nothing: the index follows the database by itself."""

    def save(self) -> None:
        """Nothing: it is on disk."""

    def search(self, text: str, vector: NDArray[np.float32], bank: str | None) -> list[tuple[str, str]]:
        """Return id and text of the nearest."""
        found = self._host.bank(bank or "one").search(text, limit=LIMIT, ranking="semantic")
        return [(one.memory.id, one.memory.text) for one in found]

    def delete(self, id: str, bank: str | None) -> None:
        """Delete a memory."""
        self._host.bank(bank or "one").delete(id)

    def close(self) -> None:
        """Close the database."""
        self._host.close()


if __name__ == "__main__":
    serve_store(MemoryBankStore, ["faiss-cpu", "numpy", "sqlalchemy"])
