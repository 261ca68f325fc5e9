"""Writing processes that are killed at random: is everything that was acknowledged there afterwards?"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.machine import ROOT
from benchmarks.measuring import Progress, Recorder, Timer, silent
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder

__all__ = ["FULL", "QUICK", "Nursery", "Parameters", "Round", "kill_rounds", "lost", "measure"]

CACHED = "the database's pages in the system's cache; each writer is forked from a process that has imported everything"

Told = dict[str, str]
"""For each memory of a round the last change that was acknowledged: add, edit or delete."""


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        kills: writers that are killed.
        renew_every: rounds on one database; then it is a new one.
    """

    kills: int = 1_000
    renew_every: int = 100


FULL = Parameters()
QUICK = Parameters(kills=5, renew_every=3)


@dataclass(frozen=True)
class Round:
    """What was found after one kill.

    Attributes:
        acknowledged: changes that the writer had been told were made.
        problems: what was lost, or is wrong with database and index; empty when all is well.
        reopened: seconds to open the bank again and search it.
    """

    acknowledged: int
    problems: tuple[str, ...]
    reopened: float


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Kill writers, and look at the bank after each."""
    recorder = Recorder(cached=CACHED, across="rounds")
    acknowledged, problems, timer = 0, 0, Timer()
    with tempfile.TemporaryDirectory(prefix="benchmark-kills-") as folder:
        for start in range(0, parameters.kills, parameters.renew_every):
            progress(f"kill {start + 1:,} of {parameters.kills:,}")
            rounds = min(parameters.renew_every, parameters.kills - start)
            for found in kill_rounds(str(Path(folder) / f"{start}.sqlite"), rounds, seed=start):
                acknowledged += found.acknowledged
                problems += len(found.problems)
                timer.note(1000 * found.reopened, 1000 * found.reopened)
                for line in found.problems[:3]:
                    recorder.note(f"after a kill: {line}")
    recorder.values("killed writers", [parameters.kills], "processes", engine="SQLite")
    recorder.values("acknowledged changes", [acknowledged], "changes", engine="SQLite")
    recorder.values("lost or wrong afterwards", [problems], "changes", engine="SQLite")
    recorder.times("opening and searching again", timer, engine="SQLite")
    recorder.target("no acknowledged change is lost", 1.0, "lost or wrong afterwards")
    return recorder


def kill_rounds(place: str, rounds: int, *, seed: int = 0, by: signal.Signals = signal.SIGKILL) -> Iterator[Round]:
    """Kill writers of one bank at random moments; after each, look with new eyes and with those that saw it before.

    Args:
        place: the database, as `MemoryBank.open` takes it.
        rounds: how many writers.
        seed: of the moments.
        by: the signal.
    """
    dice = random.Random(seed)
    with Nursery() as nursery, MemoryBank.open(place, embedder=HashingEmbedder()) as before:
        for number in range(rounds):
            told = nursery.kill(place, number, after=dice.randint(1, 25), pause=dice.random() * 0.004, by=by)
            begun = time.perf_counter()
            with MemoryBank.open(place, embedder=HashingEmbedder()) as fresh:
                fresh.search(f"round {number}")
                reopened = time.perf_counter() - begun
                problems = [line for bank in (before, fresh) for line in (*lost(bank, number, told), *_wrong(bank))]
            yield Round(len(told), tuple(problems), reopened)


def _wrong(bank: MemoryBank) -> tuple[str, ...]:
    return bank.check().problems


def lost(bank: MemoryBank, round_: int, told: Told) -> Iterator[str]:
    """Say of each memory of a round what is not as it was acknowledged, and of each pair that is only half there."""
    there = {one.id: one.text for one in bank.list() if one.id.startswith(f"r{round_}-")}
    last = list(told)[-1] if told else ""
    for id_, change in told.items():
        number = int(id_.split("-")[1])
        if change == "delete":
            if id_ in there:
                yield f"{id_} was deleted and is there"
        elif id_ not in there:
            # The newest one may have been deleted without the writer having lived to say so.
            if not (id_ == last and number % 5 == 4):
                yield f"{id_} was stored ({change}) and is gone"
        elif there[id_] != f"edited {id_}" and (change == "edit" or there[id_] != f"round {round_} number {number}"):
            yield f"{id_} has the text {there[id_]!r} after {change}"
    halves = {id_.removesuffix("b") for id_ in there if (f"{id_}b" if id_[-1] != "b" else id_[:-1]) not in there}
    yield from (f"of the pair {id_}, written by one call, one is there" for id_ in sorted(halves))


class Nursery:
    """The process that forks the writers."""

    def __enter__(self) -> Nursery:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kill_writer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # a writer that still lives, too
        self._process.communicate()

    def kill(self, place: str, round_: int, *, after: int, pause: float, by: signal.Signals) -> Told:
        """Start a writer, kill it when it has said something `after` times and `pause` seconds more have passed."""
        orders, words = self._process.stdin, self._process.stdout
        if orders is None or words is None:
            raise RuntimeError("the nursery was not started")
        orders.write(f"{place} {round_}\n")
        orders.flush()
        lines, writer = _until(words, "pid")
        lines += [words.readline().strip() for _ in range(after)]
        time.sleep(pause)
        os.kill(int(writer), by)
        more, code = _until(words, "ended")
        if int(code) != -by:
            raise RuntimeError(f"a writer ended by itself, exit code {code}: {lines[-1:]}")
        return _acknowledged([*lines, *more])


def _until(words: IO[str], first: str) -> tuple[list[str], str]:
    """Return the lines before the one that begins with a word, and the rest of that one."""
    lines: list[str] = []
    for line in words:
        word, _, rest = line.strip().partition(" ")
        if word == first:
            return lines, rest
        lines.append(line.strip())
    raise RuntimeError(f"the nursery is gone: {lines[-3:]}")


def _acknowledged(lines: Iterable[str]) -> Told:
    return {id_: change for change, id_ in (line.split() for line in lines if line.count(" ") == 1)}
