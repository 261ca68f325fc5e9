"""Targets that must be reached, beside those that must not be exceeded, and ratios of medians."""

from benchmarks.measuring import Recorder, Timer
from benchmarks.table import for_terminal


def timer(*milliseconds: float) -> Timer:
    found = Timer()
    for one in milliseconds:
        found.note(one, one / 2)
    return found


def verdict(recorder: Recorder) -> dict[str, object]:
    return recorder.to_dict()["targets"][0]


def test_a_ratio_is_that_of_the_medians() -> None:
    recorder = Recorder(cached="", across="x")
    recorder.ratio("times as long", timer(50, 60, 900), timer(1, 2, 3), x=1)
    (one,) = recorder.to_dict()["measurements"]
    assert (one["p50"], one["cpu"]["p50"], one["unit"], one["n"]) == (30, 30, "times", 1)


def test_at_least_takes_the_lowest() -> None:
    recorder = Recorder(cached="", across="x")
    recorder.ratio("times as long", timer(60), timer(1), x=1)
    recorder.ratio("times as long", timer(40), timer(1), x=2)
    recorder.at_least("50 times", 50, "times as long")
    assert (verdict(recorder)["found"], verdict(recorder)["met"]) == (40, False)
    assert verdict(recorder)["worst"] == {"name": "times as long", "x": 2}


def test_at_least_is_met_at_the_limit_and_shown_as_such() -> None:
    recorder = Recorder(cached="", across="x")
    recorder.ratio("times as long", timer(50), timer(1), x=1)
    recorder.at_least("50 times", 50, "times as long")
    assert verdict(recorder)["met"] is True
    machine = {"cpu": "", "cores": 1, "memory_gib": 1}
    shown = for_terminal(
        {
            "benchmark": "b",
            "summary": "s",
            "date": "2026-01-01T00",
            "quick": False,
            "commit": None,
            "python": "",
            "machine": machine,
            "threads": {},
            "load_average": {"before": None, "after": None},
        }
        | recorder.to_dict()
    )
    assert "at least 50 times" in shown
