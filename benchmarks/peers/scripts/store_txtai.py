"""txtai with content, its default index (FAISS) and an external function as the model. Banks: an index each.

Its SQL can filter by a field as well, but it does so after the nearest of all were taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from storing import LIMIT, Inputs, Items, serve_store
from txtai import Embeddings

MANY, SAMPLE = 1_000_000, 0.05
"""From how many on, and on which part of them, its index is trained: as documented for a million rows and more."""


class TxtaiStore:
    """An index in memory and a database of the texts, each in its folder. A write is in files when it was saved."""

    batch = 10_000_000

    def __init__(self, folder: Path, inputs: Inputs) -> None:
        self._folder = folder
        self._transform = lambda texts: inputs.vectors_of(texts)
        self._open: dict[str, Any] = {}
        self._changed: set[str] = set()
        if (folder / "one").exists():
            self._embeddings("one")

    def _embeddings(self, bank: str) -> Any:
        if bank not in self._open:
            made = Embeddings(method="external", transform=self._transform, content=True)
            if (self._folder / bank).exists():
                made.load(str(self._folder / bank), config={"transform": self._transform})
            self._open[bank] = made
        return self._open[bank]

    def add(self, items: Items, bank: str | None) -> None:
        """Add memories: many build the index, with parameters that fit their number; later ones are appended."""
        embeddings = self._embeddings(bank or "one")
        if len(items.ids) >= MANY:
            embeddings.config["faiss"] = {"sample": SAMPLE}
        embeddings.upsert(zip(items.ids, items.texts, strict=True))
        self._changed.add(bank or "one")
        if bank is not None:
            self.save()

    def settle(self) -> None:
        """Nothing."""

    def save(self) -> None:
        """Write what was changed, whole."""
        for bank in self._changed:
            self._open[bank].save(str(self._folder / bank))
        self._changed.clear()

    def search(self, text: str, vector: NDArray[Any], bank: str | None) -> list[tuple[str, str]]:
        """Return id and text of the nearest."""
        return [(one["id"], one["text"]) for one in self._embeddings(bank or "one").search(text, LIMIT)]

    def delete(self, id: str, bank: str | None) -> None:
        """Delete a memory."""
        self._embeddings(bank or "one").delete([id])
        self._changed.add(bank or "one")

    def close(self) -> None:
        """Close all that is open."""
        self.save()
        for embeddings in self._open.values():
            embeddings.close()


if __name__ == "__main__":
    serve_store(TxtaiStore, ["txtai", "torch", "faiss-cpu"])
