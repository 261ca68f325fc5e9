"""The race of the stores: its steps, what is recorded of them, and how the stores are compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.measuring import Recorder, Timer
from benchmarks.peers.process import SCRIPTS
from benchmarks.stores import OURS, Parameters, measure
from benchmarks.stores_inputs import Inputs
from benchmarks.stores_ratios import RATIO, compare

SMALL = Parameters(stores=(OURS, "mem0"), sizes=(30,), banks=(2, 3), each=12, dimensions=16, searches=4, writes=2)


def timer(*milliseconds: float) -> Timer:
    """Return these times."""
    made = Timer()
    for one in milliseconds:
        made.note(one, one)
    return made


def of(recorder: Recorder, name: str, **factors: Any) -> list[Any]:
    """Return the medians of some measurements, or why there is none."""
    return [one["p50"] if one["n"] else one["missing"] for one in recorder.measurements(name, **factors)]


def test_our_own_bank_runs_through_every_step_where_no_peer_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYBANK_CACHE", str(tmp_path / "nothing" / "vectors.sqlite"))
    recorder = measure(SMALL)
    found = recorder.to_dict()
    assert [line for line in found["notes"] if line.startswith("Not measured: mem0")]
    assert recorder.unfinished() == 0
    assert of(recorder, "recall@10") == [1.0]
    assert of(recorder, "recall@10 in a bank") == [1.0, 1.0]
    assert [one["n"] for one in recorder.measurements("search")] == [4]
    assert [one["n"] for one in recorder.measurements("add one to a bank")] == [2, 2]
    assert of(recorder, "disk")[0] > 4 * SMALL.dimensions


@pytest.fixture
def storing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The peers' end, imported from its folder."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import storing

    yield storing
    for name in ("storing", "serving"):
        sys.modules.pop(name, None)


class Shelf:
    """A store that keeps memories in a dictionary and gives back the first ones."""

    batch = 10

    def __init__(self, spoil: str = "") -> None:
        self.kept: dict[str, str] = {}
        self.settled = 0
        self._spoil = spoil

    def add(self, items: Any, bank: str | None) -> None:
        self.kept.update(zip(items.ids, items.texts, strict=True))

    def settle(self) -> None:
        self.settled += 1

    def save(self) -> None:
        pass

    def search(self, text: str, vector: Any, bank: str | None) -> list[tuple[str, str]]:
        return [(id_, said + self._spoil) for id_, said in list(self.kept.items())[-2:]]

    def delete(self, id: str, bank: str | None) -> None:
        self.kept.pop(id)


def opened(storing: Any, folder: Path, shelf: Shelf) -> Any:
    """Return the steps on a shelf, with 40 rows of input."""
    np.save(folder / "vectors.npy", np.eye(40, dtype=np.float32))
    (folder / "texts.json").write_text(json.dumps(["a text"]), encoding="utf-8")
    steps = storing._Steps(lambda _folder, _inputs: shelf)
    steps.open(str(folder), str(folder))
    return steps


def test_a_filling_that_is_over_its_time_says_how_far_it_came(storing: Any, tmp_path: Path) -> None:
    shelf = Shelf()
    answer = opened(storing, tmp_path, shelf).fill(0, 30, limit=0.0, patience=0.0)
    assert (answer["finished"], answer["done"]) == (False, pytest.approx(1 / 3))
    assert len(shelf.kept) == 10
    assert shelf.settled == 0


def test_a_filling_settles_the_store_at_its_end(storing: Any, tmp_path: Path) -> None:
    shelf = Shelf()
    assert opened(storing, tmp_path, shelf).fill(0, 25, limit=60.0, patience=60.0)["finished"]
    assert list(shelf.kept)[-1] == "n24"
    assert shelf.settled == 1


def test_a_write_is_looked_for_and_a_deletion_too(storing: Any, tmp_path: Path) -> None:
    steps = opened(storing, tmp_path, Shelf())
    answer = steps.write([30, 31], None, limit=60.0)
    assert (answer["missed"], answer["kept"]) == (0, 0)
    assert len(answer["adding"]["wall"]) == len(answer["deleting"]["wall"]) == 2


def test_a_text_that_is_not_that_of_its_id_is_an_error(storing: Any, tmp_path: Path) -> None:
    steps = opened(storing, tmp_path, Shelf(spoil="!"))
    steps.fill(0, 5, limit=60.0, patience=60.0)
    with pytest.raises(ValueError, match="text that came with n3 is not its text"):
        steps.search([30], None, limit=60.0)


def test_recall_is_the_share_of_the_true_nearest(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path / "inputs", SMALL)
    vectors = np.load(tmp_path / "inputs" / "vectors.npy")
    [query, *_] = inputs.queries
    nearest = np.argsort(-(vectors[:30] @ vectors[query]))[:20].tolist()
    assert inputs.recall(30, [nearest[:10]])[0] == 1.0
    assert inputs.recall(30, [nearest[5:15]])[0] == 0.5
    assert inputs.recall(30, [[]])[0] == 0.0


def test_a_memory_of_another_bank_is_an_error(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path / "inputs", SMALL)
    with pytest.raises(ValueError, match="bank 1 gave a memory of another bank"):
        inputs.recall_in_banks(inputs.queries[:1], [1], [[13, 3]])


def test_ratios_say_how_many_times_better_ours_is_whatever_is_better() -> None:
    recorder = Recorder(cached="", across="memories")
    for store, rate, milliseconds in (("ours", 100.0, 2.0), ("fast", 50.0, 1.0), ("slow", 400.0, 20.0)):
        recorder.values("rate", [rate], "1/s", store=store, memories=10)
        recorder.times("time", timer(milliseconds), store=store, memories=10)
    recorder.missing("time", "not finished in 9 s", "ms", store="slow", memories=100)
    recorder.times("time", timer(7.0), store="ours", memories=100)
    compare(recorder, "ours", {"rate": True, "time": False})
    assert of(recorder, RATIO, row="rate") == [2.0, 0.25]
    assert of(recorder, RATIO, row="time") == [0.5, 10.0]
    found = recorder.to_dict()
    assert [(one["target"], one["found"], one["met"]) for one in found["targets"]] == [
        ("ahead of every peer: rate", 0.25, False),
        ("ahead of every peer: time", 0.5, False),
    ]
    assert found["notes"] == [
        "Behind in `rate`: slow at 10 memories (0.25).",
        "Behind in `time`: fast at 10 memories (0.5).",
    ]


def test_what_is_missing_is_no_value_for_a_target() -> None:
    recorder = Recorder(cached="", across="memories")
    recorder.missing("time", "failed", "ms", store="ours", memories=10)
    recorder.target("in under 5 ms", 5.0, "time")
    assert recorder.to_dict()["targets"] == []
    assert recorder.unfinished(store="ours") == 1
