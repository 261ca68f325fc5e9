"""Results written by hand, small, for what shows results."""

from __future__ import annotations

from typing import Any


def one(name: str, p50: float, unit: str = "ms", n: int = 5, **factors: Any) -> dict[str, Any]:
    """Return a measurement of times whose 95th percentile is twice the median."""
    return {"name": name, "factors": factors, "unit": unit, "n": n, "min": p50 / 2, "p50": p50, "p95": 2 * p50}


def missing(name: str, why: str, unit: str = "ms", **factors: Any) -> dict[str, Any]:
    """Return a measurement that was not finished."""
    return {"name": name, "factors": factors, "unit": unit, "n": 0, "missing": why}


def result(benchmark: str, across: str | list[str], measurements: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a result with these measurements."""
    return {
        "benchmark": benchmark,
        "summary": "what is measured",
        "date": "2026-11-30T12:00:00+00:00",
        "quick": False,
        "commit": None,
        "machine": {"cpu": "a processor", "cores": 2, "memory_gib": 16, "system": "an operating system"},
        "python": "CPython 3.11",
        "threads": {},
        "load_average": {"before": None, "after": None},
        "cached": "nothing",
        "across": across,
        "notes": [],
        "targets": [],
        "measurements": measurements,
    }
