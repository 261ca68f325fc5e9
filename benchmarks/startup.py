"""What a fresh process costs, from its start to its exit: imports, help, a context with and without recall."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import launch
from benchmarks.machine import ROOT, THREADS
from benchmarks.measuring import Progress, Recorder, Timer, silent

__all__ = ["COMMANDS", "FULL", "QUICK", "Parameters", "measure"]

EXAMPLE = "examples/the_cormorant_light.json"
COLD, WARM = "recall, no vector known", "recall, all vectors known"

BUILD = ("assembler", "build", EXAMPLE)
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "python alone": ("python", "-c", "pass"),
    "import assembler": ("python", "-c", "import assembler"),
    "import memorybank": ("python", "-c", "import memorybank"),
    "from assembler import assemble": ("python", "-c", "from assembler import assemble"),
    "assembler --help": ("assembler", "--help"),
    "memorybank --help": ("memorybank", "--help"),
    "build --no-memory-bank": (*BUILD, "--no-memory-bank"),
    WARM: BUILD,
    COLD: BUILD,
}
"""What is started; the programs are those beside this Python."""

CACHED = (
    "all files, compiled modules included, in the system's cache. The vector cache (`MEMORYBANK_CACHE`) is a new "
    f"folder each time in `{COLD}`, and in `{WARM}` one that holds the vectors of this context. Threads are as a user "
    "has them: OMP_NUM_THREADS and the like are taken out of the environment"
)


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        commands: which of `COMMANDS`.
        repeat: processes of each.
        repeat_cold: processes that load the embedding model.
    """

    commands: tuple[str, ...] = tuple(COMMANDS)
    repeat: int = 5
    repeat_cold: int = 5


FULL = Parameters()
QUICK = Parameters(commands=tuple(COMMANDS)[:7], repeat=1, repeat_cold=1)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Start each command some times, one after the other."""
    recorder = Recorder(cached=CACHED, across="what")
    with tempfile.TemporaryDirectory(prefix="benchmark-startup-") as folder:
        for name in parameters.commands:
            progress(name)
            _measure_one(recorder, parameters, name, Path(folder))
    limits = (
        ("import in under 0.2 s", 200.0, ("import assembler", "import memorybank")),
        ("--help in under 0.3 s", 300.0, ("assembler --help", "memorybank --help")),
        ("a context without recall in under 1 s", 1_000.0, ("build --no-memory-bank",)),
    )
    for text, limit, commands in limits:
        for command in commands:
            recorder.target(text, limit, "process", command=command)
    return recorder


def _measure_one(recorder: Recorder, parameters: Parameters, name: str, folder: Path) -> None:
    program, *arguments = COMMANDS[name]
    try:
        command = [str(_program(program)), *arguments]
        runs = _runs(command, name, parameters, folder)
    except RuntimeError as error:
        recorder.note(f"`{name}` was not measured: {error}")
        return
    timer = Timer()
    for run in runs:
        timer.note(1000 * run["wall"], 1000 * run["cpu"])
    recorder.times("process", timer, command=name)
    recorder.values("peak of resident memory", [run["peak_mib"] for run in runs], "MiB", command=name)


def _runs(command: Sequence[str], name: str, parameters: Parameters, folder: Path) -> list[dict[str, Any]]:
    if name == COLD:
        return [_run(command, folder / f"cold{number}") for number in range(parameters.repeat_cold)]
    _run(command, folder / "warm")  # fills the caches
    return [_run(command, folder / "warm") for _ in range(parameters.repeat)]


def _run(command: Sequence[str], cache: Path) -> dict[str, Any]:
    """Run a command once.

    Raises:
        RuntimeError: it failed.
    """
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    environment |= {"MEMORYBANK_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    launcher = [sys.executable, "-I", "-S", str(launch.__file__), *command]
    done = subprocess.run(launcher, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if found["exit"] != 0:
        last = (found["errors"].strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"exit code {found['exit']}: {last}")
    return found


def _program(name: str) -> Path:
    if name == "python":
        return Path(sys.executable)
    path = Path(sys.executable).parent / name
    if not path.is_file():
        raise RuntimeError(f"there is no program {path}; install the project first")
    return path
