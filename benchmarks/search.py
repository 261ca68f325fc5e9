"""What `MemoryBank.search` costs beside the embedding, and what it costs to open a bank again."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks.machine import ROOT
from benchmarks.measuring import Progress, Recorder, Timer, silent
from benchmarks.story import Writer
from benchmarks.vectors import StubEmbedder
from memorybank import MemoryBank, NewMemory

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

CACHED = (
    "the index is in memory and the database's pages in the system's cache; queries are new each time; vectors come "
    "from a stub in some microseconds. The restarts are fresh processes on a file in the system's cache"
)


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        sizes: memories in the bank, ascending.
        limits: results asked for; with `pinned_first`, as the assembler does.
        rankings: the modes.
        dimensions: width of the vectors.
        words: of a memory's text.
        pinned: every how many-th memory is pinned.
        batch: memories in one `add_many`.
        searches: repetitions.
        writes: repetitions of adding one memory and searching after it.
        restarts: fresh processes.
    """

    sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    limits: tuple[int, ...] = (10, 1_000)
    rankings: tuple[str, ...] = ("semantic", "hybrid")
    dimensions: int = 384
    words: int = 45
    pinned: int = 20_000
    batch: int = 1_000
    searches: int = 100
    writes: int = 20
    restarts: int = 5


FULL = Parameters()
QUICK = Parameters(sizes=(50, 200), searches=3, writes=2, restarts=1, batch=100)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Fill a bank step by step in a temporary folder, and measure at each size."""
    recorder = Recorder(cached=CACHED, across="memories")
    with tempfile.TemporaryDirectory(prefix="benchmark-search-") as folder:
        file = Path(folder) / "bank.sqlite"
        writer = Writer("memories")
        stored = 0
        for size in parameters.sizes:
            progress(f"filling up to {size:,} memories")
            _fill(recorder, parameters, file, _memories(parameters, writer, stored, size), size)
            progress(f"searching {size:,} memories")
            _search(recorder, parameters, file, size)
            progress(f"opening {size:,} memories again")
            _restart(recorder, parameters, file, size)
            stored = size
    for limit in parameters.limits:
        text = f"search by meaning in under 15 ms beside the embedding, limit {limit:,}"
        recorder.target(text, 15.0, "search", limit=limit, ranking="semantic")
    return recorder


def _memories(parameters: Parameters, writer: Writer, first: int, end: int) -> Iterator[list[NewMemory]]:
    for start in range(first, end, parameters.batch):
        numbers = range(start, min(start + parameters.batch, end))
        yield [
            NewMemory(
                writer.text(parameters.words),
                actions=tuple(f"a{6 * number + place}" for place in range(6)),
                pinned=number % parameters.pinned == 0,
            )
            for number in numbers
        ]


def _fill(
    recorder: Recorder, parameters: Parameters, file: Path, batches: Iterator[list[NewMemory]], size: int
) -> None:
    timer, embedder = Timer(), StubEmbedder(parameters.dimensions)
    with MemoryBank.open(file, embedder=embedder) as bank:
        for batch in batches:
            embedder.prepare([memory.text for memory in batch])
            timer.time(partial(bank.add_many, batch))
    recorder.times("add_many, a batch on the way to this size", timer, batch=parameters.batch, memories=size)


def _search(recorder: Recorder, parameters: Parameters, file: Path, size: int) -> None:
    embedder = StubEmbedder(parameters.dimensions)
    writer = Writer(f"queries/{size}")
    with MemoryBank.open(file, embedder=embedder) as bank:
        for limit, ranking in product(parameters.limits, parameters.rankings):
            queries = [writer.text(25) for _ in range(parameters.searches + 2)]
            embedder.prepare(queries)
            search = partial(bank.search, limit=limit, ranking=ranking, pinned_first=True)
            timer = Timer()
            for query in queries[:2]:  # warm up
                search(query)
            for query in queries[2:]:
                timer.time(partial(search, query))
            recorder.times("search", timer, ranking=ranking, limit=limit, memories=size)
        _write(recorder, parameters, bank, embedder, size)


def _write(recorder: Recorder, parameters: Parameters, bank: MemoryBank, embedder: StubEmbedder, size: int) -> None:
    """Add one memory and search, which is what brings the index up to date; then take it out again."""
    writer = Writer(f"written/{size}")
    adding, searching, deleting = Timer(), Timer(), Timer()
    for _ in range(parameters.writes):
        text, query = writer.text(parameters.words), writer.text(25)
        embedder.prepare([text, query])
        added = adding.time(partial(bank.add, text))
        searching.time(partial(bank.search, query, limit=min(parameters.limits), pinned_first=True))
        deleting.time(partial(bank.delete, added.id))
    recorder.times("add one", adding, memories=size)
    recorder.times("search after one was added", searching, limit=min(parameters.limits), memories=size)
    recorder.times("delete one", deleting, memories=size)


def _restart(recorder: Recorder, parameters: Parameters, file: Path, size: int) -> None:
    command = [sys.executable, "-m", "benchmarks.restart", file, parameters.dimensions, max(parameters.limits)]
    whole: list[float] = []
    found = []
    for _ in range(parameters.restarts):
        begun = time.perf_counter()
        done = subprocess.run([str(part) for part in command], cwd=ROOT, check=True, capture_output=True, text=True)
        whole.append(time.perf_counter() - begun)
        found.append(json.loads(done.stdout))
    steps = {name: [1000 * one["times"][name] for one in found] for name in found[0]["times"]}
    steps = {"import": [1000 * one["import"] for one in found], **steps, "whole process": [1000 * t for t in whole]}
    for step, times in steps.items():
        recorder.values("restart", times, "ms", step=step, memories=size)
    for when in found[0]["memory"]:
        recorder.values("resident memory", [one["memory"][when] for one in found], "MiB", when=when, memories=size)
