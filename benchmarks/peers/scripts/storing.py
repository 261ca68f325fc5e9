"""One store of memories under test: filled, searched, written to; the same steps and the same clock for each.

Runs in a peer's environment and imports nothing of this project; `store_NAME.py` beside it drives one store. Memories
and queries are numbers of rows in a file of vectors, so that nobody waits for an embedding; see `stores_inputs.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from serving import serve, timed

__all__ = ["Inputs", "Items", "Store", "serve_store"]

LIMIT = 10
"""Results asked for."""


class Inputs:
    """The texts and vectors of all memories and queries.

    Args:
        folder: holds `vectors.npy`, float32 of shape (rows, dimensions), rows of length 1, and `texts.json`.
    """

    def __init__(self, folder: Path) -> None:
        self.vectors: NDArray[np.float32] = np.load(folder / "vectors.npy", mmap_mode="r")
        self._texts: list[str] = json.loads((folder / "texts.json").read_text(encoding="utf-8"))

    def text(self, row: int) -> str:
        """Return the text of a row, which ends with its number."""
        return f"{self._texts[row % len(self._texts)]} ({row})"

    def vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts made by `text`: the embedding model, in some microseconds."""
        rows = [int(text[text.rindex("(") + 1 : -1]) for text in texts]
        return np.asarray(self.vectors[rows])

    def items(self, start: int, stop: int) -> Items:
        """Return the memories from one row to before another."""
        texts = [self.text(row) for row in range(start, stop)]
        return Items([f"n{row}" for row in range(start, stop)], texts, np.array(self.vectors[start:stop]))


class Items:
    """Memories to be added: an id, a text and a row of `vectors` for each."""

    def __init__(self, ids: list[str], texts: list[str], vectors: NDArray[np.float32]) -> None:
        self.ids = ids
        self.texts = texts
        self.vectors = vectors


class Store(Protocol):
    """What is driven. `bank` is one of many, None where there is one alone."""

    batch: int
    """Memories in one call when it is filled."""

    def add(self, items: Items, bank: str | None) -> None:
        """Add memories."""

    def settle(self) -> None:
        """Do what its documentation advises after filling, an index above all."""

    def save(self) -> None:
        """Bring to disk what is not there yet, as far as the store knows how to."""

    def search(self, text: str, vector: NDArray[np.float32], bank: str | None) -> list[tuple[str, str]]:
        """Return id and text of the nearest `LIMIT` memories, best first."""

    def delete(self, id: str, bank: str | None) -> None:
        """Delete a memory."""

    def close(self) -> None:
        """Close it; what was added is on disk afterwards."""


class _Steps:
    """The steps that the other side asks for, each a method that takes and returns JSON values."""

    def __init__(self, open_store: Callable[[Path, Inputs], Store]) -> None:
        self._open = open_store
        self._store: Any = None
        self._inputs: Any = None

    def open(self, folder: str, inputs: str) -> dict[str, Any]:
        """Open the store, which may be there already."""
        self._inputs = Inputs(Path(inputs))
        times: dict[str, list[float]] = {}
        before = resident_mib()
        self._store = timed(lambda: self._open(Path(folder), self._inputs), times)
        return {"times": times, "resident": before}

    def fill(self, start: int, stop: int, limit: float, patience: float) -> dict[str, Any]:
        """Add rows, and let the store settle; stop early when it cannot be done in time."""
        batch = self._store.batch
        pieces = [(first, min(first + batch, stop)) for first in range(start, stop, batch)]
        return self._work_through([(self._inputs.items, piece, None) for piece in pieces], limit, patience)

    def fill_banks(self, start: int, stop: int, each: int, limit: float, patience: float) -> dict[str, Any]:
        """Add banks of `each` rows, as `fill` does."""
        pieces = [((bank * each, (bank + 1) * each), f"bank{bank}") for bank in range(start, stop)]
        return self._work_through([(self._inputs.items, piece, bank) for piece, bank in pieces], limit, patience)

    def _work_through(self, pieces: list[Any], limit: float, patience: float) -> dict[str, Any]:
        spent = 0.0
        for place, (make, rows, bank) in enumerate(pieces):
            items = make(*rows)
            begun = time.perf_counter()
            self._store.add(items, bank)
            spent += time.perf_counter() - begun
            expected = spent / (place + 1) * len(pieces)
            if place + 1 < len(pieces) and (spent > limit or (spent > patience and expected > limit)):
                return {"finished": False, "seconds": spent, "done": (place + 1) / len(pieces)}
        begun = time.perf_counter()
        self._store.settle()
        self._store.save()
        return {"finished": True, "seconds": spent + time.perf_counter() - begun, "done": 1.0}

    def search(self, queries: list[int], banks: list[str] | None, limit: float) -> dict[str, Any]:
        """Search for each query, in its bank if there are several, until the time is over."""
        times: dict[str, list[float]] = {}
        found: list[list[int]] = []
        begun = time.perf_counter()
        for place, row in enumerate(queries):
            if place and time.perf_counter() - begun > limit:
                break
            found.append(self._search(row, None if banks is None else banks[place], times))
        return {"times": times, "found": found, "resident": resident_mib()}

    def write(self, rows: list[int], banks: list[str] | None, limit: float) -> dict[str, Any]:
        """Add one memory, search for it, delete it, and look that it is gone, until the time is over."""
        adding: dict[str, list[float]] = {}
        searching: dict[str, list[float]] = {}
        deleting: dict[str, list[float]] = {}
        missed = kept = 0
        begun = time.perf_counter()
        for place, row in enumerate(rows):
            if place and time.perf_counter() - begun > limit:
                break
            bank = None if banks is None else banks[place]
            items = self._inputs.items(row, row + 1)
            timed(lambda items=items, bank=bank: (self._store.add(items, bank), self._store.save()), adding)
            missed += row not in self._search(row, bank, searching)
            timed(lambda items=items, bank=bank: (self._store.delete(items.ids[0], bank), self._store.save()), deleting)
            kept += row in self._search(row, bank, {})
        return {"adding": adding, "searching": searching, "deleting": deleting, "missed": missed, "kept": kept}

    def close(self, folder: str) -> dict[str, Any]:
        """Close the store and weigh it."""
        self._store.close()
        files = [file.stat() for file in Path(folder).rglob("*") if file.is_file()]
        return {"bytes": sum(file.st_size for file in files)}

    def _search(self, row: int, bank: str | None, times: dict[str, list[float]]) -> list[int]:
        text, vector = self._inputs.text(row), np.array(self._inputs.vectors[row])
        found = timed(lambda: self._store.search(text, vector, bank), times)
        rows = [int(id_[1:]) for id_, _ in found]
        wrong = [id_ for (id_, said), number in zip(found, rows, strict=True) if said != self._inputs.text(number)]
        if wrong:
            raise ValueError(f"the text that came with {wrong[0]} is not its text")
        return rows


def serve_store(open_store: Callable[[Path, Inputs], Store], packages: Sequence[str]) -> None:
    """Answer `{"step": name, …}` until there is no more."""
    steps = _Steps(open_store)
    serve(lambda work: getattr(steps, work.pop("step"))(**work), packages)


def resident_mib() -> float:
    """Return MiB of memory that this process has now; Linux only, 0 elsewhere."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
