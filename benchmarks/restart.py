"""The child of `search`: opens a bank in a fresh process, searches once, and prints what that took."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path


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
        resident = _resident()
        bank.search("first", limit=limit)
        found = time.perf_counter()
        bank.search("second", limit=limit)
        again = time.perf_counter()
        times = {"open": opened - imported, "first search": found - opened, "second search": again - found}
        memory = {"before the first search": resident, "with the index": _resident(), "at the most": _peak()}
    print(json.dumps({"import": imported - begun, "times": times, "memory": memory}))


def _resident() -> float:
    """Return MiB of memory that this process has now; its peak where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return _peak()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _peak() -> float:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
