"""How a time is taken and kept: wall and processor time of each repetition, garbage collection as in production."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

__all__ = ["Progress", "Recorder", "Timer", "quantiles", "silent"]

T = TypeVar("T")
Progress = Callable[[str], None]


def silent(_line: str) -> None:
    """Say nothing."""


class Timer:
    """Times of one kind of work, in milliseconds, one entry per repetition.

    >>> timer = Timer()
    >>> timer.time(lambda: 1 + 1), len(timer.wall), len(timer.cpu)
    (2, 1, 1)
    """

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def time(self, work: Callable[[], T]) -> T:
        """Do the work once and note how long it took."""
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        wall_end, cpu_end = time.perf_counter(), time.process_time()
        self.note(1000 * (wall_end - wall), 1000 * (cpu_end - cpu))
        return result

    def note(self, wall: float, cpu: float) -> None:
        """Take in times that were measured elsewhere."""
        self.wall.append(wall)
        self.cpu.append(cpu)


def quantiles(values: Sequence[float], *, digits: int = 4) -> dict[str, float]:
    """Return the least, the median and the 95th percentile by nearest rank.

    >>> quantiles([3.0, 1.0, 2.0])
    {'min': 1.0, 'p50': 2.0, 'p95': 3.0}
    """
    ordered = sorted(values)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    found = {"min": ordered[0], "p50": statistics.median(ordered), "p95": p95}
    return {name: float(f"{value:.{digits}g}") for name, value in found.items()}


def _growth(medians: Sequence[float]) -> float:
    return float(f"{max(medians) / medians[0]:.3g}")


class Recorder:
    """What one benchmark has found.

    Args:
        cached: which caches were warm, in words.
        across: the factor whose values are the columns of the tables; of several, the first that a measurement has.
    """

    def __init__(self, *, cached: str, across: str | Sequence[str]) -> None:
        self._cached = cached
        self._across = (across,) if isinstance(across, str) else tuple(across)
        self._measurements: list[dict[str, Any]] = []
        self._targets: list[dict[str, Any]] = []
        self._notes: list[str] = []

    def times(self, name: str, timer: Timer, **factors: Any) -> None:
        """Keep the times of one measurement; factors say which one it is."""
        found = {"unit": "ms", "n": len(timer.wall), **quantiles(timer.wall), "cpu": quantiles(timer.cpu)}
        self._measurements.append({"name": name, "factors": factors, **found})

    def values(self, name: str, values: Sequence[float], unit: str, **factors: Any) -> None:
        """Keep values that are no times."""
        found = {"unit": unit, "n": len(values), **quantiles(values, digits=8)}
        self._measurements.append({"name": name, "factors": factors, **found})

    def missing(self, name: str, why: str, unit: str, **factors: Any) -> None:
        """Keep that there is no value, and why, in a few words that stand in its place."""
        self._measurements.append({"name": name, "factors": factors, "unit": unit, "n": 0, "missing": why})

    def measurements(self, name: str, /, **factors: Any) -> list[dict[str, Any]]:
        """Return what was kept under a name with these factors, whatever the others are."""
        return [one for one in self._measurements if one["name"] == name and factors.items() <= one["factors"].items()]

    def unfinished(self, **factors: Any) -> int:
        """Return how many measurements with these factors are missing."""
        return sum(not one["n"] and factors.items() <= one["factors"].items() for one in self._measurements)

    def ratio(self, name: str, theirs: Timer, ours: Timer, **factors: Any) -> None:
        """Keep how many times the median of some times another one is."""
        wall, cpu = (
            quantiles([statistics.median(their) / max(statistics.median(our), 1e-6)])
            for their, our in ((theirs.wall, ours.wall), (theirs.cpu, ours.cpu))
        )
        self._measurements.append({"name": name, "factors": factors, "unit": "times", "n": 1, **wall, "cpu": cpu})

    def note(self, line: str) -> None:
        """Keep a remark for the reader."""
        self._notes.append(line)

    def target(self, text: str, limit: float, name: str, /, **factors: Any) -> None:
        """Compare the worst median of some measurements with a limit. Call it after they are taken.

        Args:
            text: the target in words.
            limit: what the median must stay under, in the measurements' unit.
            name: which measurements.
            factors: values that these must have; the others may be any.
        """
        chosen = self._chosen(name, factors)
        if chosen:
            worst = max(chosen, key=lambda one: float(one["p50"]))
            cpu = worst["cpu"]["p50"] if "cpu" in worst else None
            self._compare(text, limit, worst["p50"], worst["unit"], {"name": name, **worst["factors"]}, cpu)

    def at_least(self, text: str, limit: float, name: str, /, **factors: Any) -> None:
        """Compare the lowest median of some measurements with a limit that it must reach, as `target` does."""
        chosen = self._chosen(name, factors)
        if chosen:
            worst = min(chosen, key=lambda one: float(one["p50"]))
            cpu = worst["cpu"]["p50"] if "cpu" in worst else None
            of = {"name": name, **worst["factors"]}
            self._compare(text, limit, worst["p50"], worst["unit"], of, cpu, least=True)

    def flat(self, text: str, limit: float, name: str, /, *, since: int, **factors: Any) -> None:
        """Compare by what factor a median grows from column `since` on with a limit, for each row; keep the worst."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for one in self._chosen(name, factors):
            across = next(factor for factor in self._across if factor in one["factors"])
            if one["factors"][across] >= since:
                row = {key: value for key, value in one["factors"].items() if key != across}
                rows.setdefault(", ".join(map(str, row.values())), []).append(one)
        growth = {row: _growth([one["p50"] for one in found]) for row, found in rows.items() if len(found) > 1}
        if growth:
            worst = max(growth, key=lambda row: growth[row])
            cpu = max(_growth([one["cpu"]["p50"] for one in rows[row]]) for row in growth)
            self._compare(text, limit, growth[worst], "times", {"name": name, "row": worst}, cpu)

    def _chosen(self, name: str, factors: dict[str, Any]) -> list[dict[str, Any]]:
        return [one for one in self.measurements(name, **factors) if one["n"]]

    def _compare(
        self,
        text: str,
        limit: float,
        found: float,
        unit: str,
        of: dict[str, Any],
        cpu: float | None = None,
        *,
        least: bool = False,
    ) -> None:
        met = found >= limit if least else found < limit
        verdict = {"limit": limit, "unit": unit, "found": found, "cpu": cpu, "least": least, "met": met}
        self._targets.append({"target": text, **verdict, "worst": of})

    def to_dict(self) -> dict[str, Any]:
        """Return what was found, as JSON values."""
        return {
            "cached": self._cached,
            "across": self._across[0] if len(self._across) == 1 else list(self._across),
            "notes": self._notes,
            "targets": self._targets,
            "measurements": self._measurements,
        }
