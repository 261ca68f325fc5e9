"""LanceDB: a table with a column of vectors, cosine. Banks: a column `bank` with an index, filtered before the search.

Up to `EXACT` rows it compares with all of them, as its documentation advises; above, it has an IVF-PQ index, and looks
again at ten times as many as asked for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("LANCE_LOG", "error")

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import BTree, IvfPq
from numpy.typing import NDArray
from storing import LIMIT, Inputs, Items, serve_store

EXACT = 100_000
REFINE = 10


class LanceStore:
    """A table of fragments. A write is in new files when its call returns, without fsync."""

    batch = 50_000

    def __init__(self, folder: Path, inputs: Inputs) -> None:
        self._database = lancedb.connect(folder)
        width = inputs.vectors.shape[1]
        fields = [("id", pa.string()), ("bank", pa.string()), ("text", pa.string())]
        self._schema = pa.schema([*fields, ("vector", pa.list_(pa.float32(), width))])
        self._table = self._database.create_table("memories", schema=self._schema, exist_ok=True)
        self._indexed = self._table.count_rows() > EXACT
        self._waiting: list[tuple[Items, str]] = []

    def add(self, items: Items, bank: str | None) -> None:
        """Add memories; those of many banks are collected, as they would make a file each."""
        if bank is None or len(items.ids) == 1:
            self._put([(items, bank or "one")])
            return
        self._waiting.append((items, bank))
        if len(self._waiting) * len(items.ids) >= self.batch:
            self._put(self._waiting)
            self._waiting = []

    def _put(self, parts: list[tuple[Items, str]]) -> None:
        vectors = np.concatenate([items.vectors for items, _ in parts])
        columns = {
            "id": [id_ for items, _ in parts for id_ in items.ids],
            "bank": [bank for items, bank in parts for _ in items.ids],
            "text": [text for items, _ in parts for text in items.texts],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
        }
        self._table.add(pa.table(columns, schema=self._schema))

    def settle(self) -> None:
        """Index the vectors of a large table, and the banks if there are any."""
        if self._waiting:
            self._put(self._waiting)
            self._waiting = []
        self._table.optimize()
        if self._table.head(1)["bank"][0].as_py() != "one":
            self._table.create_index("bank", config=BTree())
        elif self._table.count_rows() > EXACT:
            self._table.create_index("vector", config=IvfPq(distance_type="cosine"))
            self._indexed = True

    def save(self) -> None:
        """Nothing: it is in files."""

    def search(self, text: str, vector: NDArray[np.float32], bank: str | None) -> list[tuple[str, str]]:
        """Return id and text of the nearest."""
        query: Any = self._table.search(vector).distance_type("cosine").select(["id", "text", "_distance"]).limit(LIMIT)
        if bank is not None:
            query = query.where(f"bank = '{bank}'", prefilter=True)
        elif self._indexed:
            query = query.refine_factor(REFINE)
        found = query.to_arrow()
        return list(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))

    def delete(self, id: str, bank: str | None) -> None:
        """Delete a memory."""
        self._table.delete(f"id = '{id}'" + ("" if bank is None else f" AND bank = '{bank}'"))

    def close(self) -> None:
        """Nothing: there is no call that must be made, and nothing to save."""


if __name__ == "__main__":
    serve_store(LanceStore, ["lancedb", "pyarrow"])
