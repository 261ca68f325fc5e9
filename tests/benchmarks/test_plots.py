"""Pictures of results: what is drawn, and that the same result gives the same bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from benchmarks import plots
from benchmarks.pictures import PICTURES, Panel, panels_of, series_of
from benchmarks.suite import RESULTS, SUMMARIES, stored
from tests.support.results import missing, one, result

STORES = result(
    "stores",
    ["memories", "banks"],
    [
        one("search", 1.0, store="ours", memories=100),
        one("search", 2.0, store="ours", memories=1_000),
        one("search", 0.5, store="theirs", memories=100),
        missing("search", "not finished in 9 s", store="theirs", memories=1_000),
        one("search in a bank, cold", 3.0, store="ours", banks=10),
    ],
)


def chunks(file: Path) -> dict[bytes, bytes]:
    """Return the chunks of a PNG by type, the last of each."""
    data, place, found = file.read_bytes(), 8, {}
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        found[data[place + 4 : place + 8]] = data[place + 8 : place + 8 + length]
        place += length + 12
    return found


def test_it_is_900_pixels_wide_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    first = plots.draw(STORES, tmp_path / "first.png")
    second = plots.draw(STORES, tmp_path / "second.png")
    assert first.read_bytes() == second.read_bytes()
    assert struct.unpack(">I", chunks(first)[b"IHDR"][:4]) == (900,)


def test_no_date_and_no_version_is_in_the_file(tmp_path: Path) -> None:
    assert set(chunks(plots.draw(STORES, tmp_path / "a.png"))) <= {b"IHDR", b"pHYs", b"IDAT", b"IEND"}


def test_another_value_is_another_picture(tmp_path: Path) -> None:
    other = result("stores", "memories", [*STORES["measurements"][1:], one("search", 9.0, store="ours", memories=100)])
    pictures = [plots.draw(one, tmp_path / "a.png").read_bytes() for one in (STORES, other)]
    assert pictures[0] != pictures[1]


def test_a_line_for_each_store_with_what_was_not_finished() -> None:
    series = series_of(STORES, Panel("", ("search",), "memories", ("store",)))
    assert {label: [one["n"] for one in found] for label, found in series.items()} == {"ours": [5, 5], "theirs": [5, 0]}


def test_nothing_is_drawn_where_nothing_was_finished() -> None:
    only = result("stores", "memories", [missing("search", "failed", store="ours", memories=100)])
    assert series_of(only, Panel("", ("search",), "memories", ("store",))) == {}


def test_labels_leave_out_what_all_lines_share_and_name_numbers() -> None:
    found = [one("a", 1.0, model="m", limit=limit, size=size) for limit in (10, 1_000) for size in (1, 2)]
    panel = Panel("", ("a",), "size", ("model", "limit"))
    assert list(series_of(result("x", "size", found), panel)) == ["limit 10", "limit 1,000"]


def test_only_values_that_a_panel_asks_for_are_drawn() -> None:
    found = [one("a", 1.0, kind=kind, size=size) for kind in ("x", "y") for size in (1, 2)]
    [line] = series_of(result("x", "size", found), Panel("", ("a",), "size", where={"kind": "y"})).values()
    assert [measured["factors"]["kind"] for measured in line] == ["y", "y"]


@pytest.mark.parametrize("across", ["size", "nothing"])
def test_a_benchmark_that_no_picture_is_planned_for_is_drawn_all_the_same(tmp_path: Path, across: str) -> None:
    unknown = result("a new one", across, [one("a", float(size), size=size, kind="k") for size in (1, 10)])
    [panel] = panels_of(unknown)
    assert panel.across == ("size" if across == "size" else "")
    assert plots.draw(unknown, tmp_path / "a.png").stat().st_size > 1_000


def test_a_result_without_measurements_is_an_empty_picture(tmp_path: Path) -> None:
    assert plots.draw(result("empty", "size", []), tmp_path / "a.png").is_file()


def test_pictures_are_planned_for_benchmarks_that_there_are() -> None:
    assert set(PICTURES) <= set(SUMMARIES)


def test_every_stored_result_has_something_to_show() -> None:
    for found in stored(RESULTS):
        assert any(series_of(found, panel) for panel in panels_of(found)), found["benchmark"]
