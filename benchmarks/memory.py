"""How much memory this process has."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["peak", "resident"]


def resident() -> float:
    """Return MiB of memory that this process has now; its peak where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return peak()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def peak() -> float:
    """Return the MiB that it had at the most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 1024)
