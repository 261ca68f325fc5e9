"""One store beside the others: how many times as good it is as each of them, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.measuring import Recorder

__all__ = ["RATIO", "compare"]

RATIO = "how many times as fast or as small ours is"


def compare(recorder: Recorder, ours: str, races: Mapping[str, bool], title: str = RATIO) -> None:
    """Record ours against each other store in each row, set the target that none is ahead, and note where one is.

    Args:
        recorder: holds the measurements, which have the factor `store`.
        ours: the store that is compared with the others.
        races: the rows, and whether more is better in them. Above 1, ours is ahead.
        title: the name of the measurement that the ratios become.
    """
    for name, more_is_better in races.items():
        behind = []
        for mine, theirs in _pairs(recorder.measurements(name), ours):
            ratio = mine["p50"] / theirs["p50"] if more_is_better else theirs["p50"] / mine["p50"]
            recorder.values(title, [ratio], "times", row=name, **theirs["factors"])
            if ratio < 1:
                where = ", ".join(f"{value:,} {key}" for key, value in _rest(theirs).items())
                behind.append(f"{theirs['factors']['store']} at {where} ({ratio:.3g})")
        recorder.at_least(f"ahead of every peer: {name}", 1.0, title, row=name)
        if behind:
            recorder.note(f"Behind in `{name}`: {'; '.join(behind)}.")


def _pairs(found: list[dict[str, Any]], ours: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return our measurement with each of another store that has the same other factors; both were finished."""
    done = [one for one in found if one["n"]]
    return [
        (mine, theirs)
        for mine in done
        for theirs in done
        if mine["factors"]["store"] == ours != theirs["factors"]["store"] and _rest(mine) == _rest(theirs)
    ]


def _rest(measurement: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in measurement["factors"].items() if key != "store"}
