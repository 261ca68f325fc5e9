"""The child of `search`: opens a bank in a fresh process, searches once, and prints what that took."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.memory import peak, resident


def main(file: str, dimensions: int, limit: int) -> None:
    """Open the bank in `file` with the stub embedder and search it."""
    begun = time.perf_counter()
    from benchmarks.vectors import StubEmbedder
    from memorybank import MemoryBank

    embedder = StubEmbedder(dimensions)
    embedder.prepare(["first", "second"])
    imported = time.perf_counter()
    with MemoryBank.open(file, embedder=embedder) as bank:
        opened = time.perf_counter()
        before = resident()
        bank.search("first", limit=limit)
        found = time.perf_counter()
        bank.search("second", limit=limit)
        again = time.perf_counter()
        times = {"open": opened - imported, "first search": found - opened, "second search": again - found}
        memory = {"before the first search": before, "with the index": resident(), "at the most": peak()}
    print(json.dumps({"import": imported - begun, "times": times, "memory": memory}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
