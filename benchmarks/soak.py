"""A service under mixed load for half an hour: does its memory stay flat?"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.http_load import Call, load, serving
from benchmarks.measuring import Progress, Recorder, silent
from benchmarks.service import fill
from benchmarks.story import Writer

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

CACHED = "as in service. Every bank has at most twice the memories that it began with: what is added is deleted again"


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        model: the embedding model; a hash of the words gives the most calls.
        minutes: of load.
        slice_seconds: load between two looks at the memory.
        clients: how many at once.
        banks: among which each call chooses.
        memories: in each bank at first.
        index_bytes: less than all indexes take, so that some have to go all the time.
    """

    model: str = "hashing-384"
    minutes: float = 30.0
    slice_seconds: float = 30.0
    clients: int = 8
    banks: int = 300
    memories: int = 100
    index_bytes: int = 20_000_000


FULL = Parameters()
QUICK = Parameters(minutes=0.1, slice_seconds=2.0, clients=4, banks=5, memories=10)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Add, edit, delete, list and search, and note the server's memory, threads and files."""
    recorder = Recorder(cached=CACHED, across="minute")
    with tempfile.TemporaryDirectory(prefix="benchmark-soak-") as folder:
        file = Path(folder) / "banks.sqlite"
        progress("filling")
        fill(file, parameters.model, parameters.banks, parameters.memories, 45)
        flags = ("--model", parameters.model, "--index-bytes", str(parameters.index_bytes))
        with serving(str(file), *flags) as server:
            calls, failed, resident = 0, 0, []
            slices = max(2, round(60 * parameters.minutes / parameters.slice_seconds))
            for number in range(slices):
                found = load(server.port, parameters.clients, parameters.slice_seconds, _Mix(parameters, number))
                calls += sum(found.statuses.values())
                failed += sum(count for status, count in found.statuses.items() if status >= 500 or status == 0)
                resident.append(server.resident_mib())
                minute = round((number + 1) * parameters.slice_seconds / 60, 1)
                progress(f"minute {minute}: {resident[-1]:.0f} MiB, {calls:,} calls")
                recorder.values("resident memory", [resident[-1]], "MiB", minute=minute)
                recorder.values("threads", [server.threads()], "threads", minute=minute)
                recorder.values("open files", [server.files()], "files", minute=minute)
    recorder.values("calls", [calls], "calls", minute="all")
    recorder.values("calls answered 5xx or not at all", [failed], "calls", minute="all")
    third = len(resident) // 3 or 1
    growth = _mean(resident[-third:]) / _mean(resident[third : 2 * third])
    recorder.values("growth from the second third to the last", [growth], "times", minute="all")
    recorder.target("memory is flat: grows less than 1.05 times", 1.05, "growth from the second third to the last")
    recorder.target("no call fails", 1.0, "calls answered 5xx or not at all")
    return recorder


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


class _Mix:
    """The calls of one slice: half of them searches; of what is added, all but the newest few is deleted again."""

    def __init__(self, parameters: Parameters, number: int) -> None:
        self._parameters = parameters
        self._dice = random.Random(number)
        self._writer = Writer(f"soak/{number}")
        self._added: list[tuple[str, str]] = []
        self._number = number

    def __call__(self, client: int, call: int) -> Call:
        bank = f"/v1/banks/bank{self._dice.randrange(self._parameters.banks)}"
        choice = self._dice.random()
        if choice < 0.5:
            return "POST", f"{bank}/search", {"query": self._writer.text(15), "limit": 10}
        if choice < 0.65:
            id_ = f"s{self._number}-{client}-{call}"
            self._added.append((bank, id_))
            return "POST", f"{bank}/memories", {"memories": [{"id": id_, "text": self._writer.text(30)}]}
        if choice < 0.75:
            return "PATCH", f"{bank}/memories/m{self._dice.randint(1, 10)}", {"text": self._writer.text(30)}
        if choice < 0.77:
            return "PATCH", f"{bank}/memories/m1", {"pinned": self._dice.random() < 0.5}
        if choice < 0.82:
            return "GET", f"{bank}/memories?limit=50", None
        if len(self._added) > 8:  # the newest may not have been answered yet
            where, id_ = self._added.pop(0)
            return "DELETE", f"{where}/memories/{id_}", None
        return "GET", bank, None
