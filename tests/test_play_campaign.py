"""The example that plays an adventure into a bank: what it prints, and what it leaves behind."""

from pathlib import Path

import pytest

from examples.play_campaign import main, stops
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
from memorybank.writing.rhythm import Rhythm, spans


@pytest.mark.parametrize(
    ("length", "count", "places"), [(82, 3, [0, 27, 54, 82]), (2, 5, [0, 1, 2]), (0, 4, [0]), (13, 1, [0, 13])]
)
def test_the_story_pauses_at_even_distances(length: int, count: int, places: list[int]) -> None:
    assert stops(length, count) == places


def test_all_memories_are_written_and_a_second_run_writes_none(
    examples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "played.sqlite"
    call = [str(examples / "the_cormorant_light.json"), "--db", str(database), "--contexts", "4"]
    call += ["--context", "2048", "--model", "hashing-64", "--report"]
    assert main(call) == 0
    out = capsys.readouterr().out
    assert "agrees with itself: True" in out
    with MemoryBank.open(database, embedder=HashingEmbedder()) as bank:
        memories = bank.list()
        told = [list(one.actions) for one in memories]
        assert [len(actions) for actions in told] == [6] * len(spans(82, Rhythm()))
        assert [id_ for actions in told for id_ in actions] == [f"a{number}" for number in range(1, 73)]
        assert {one.writer for one in memories} == {"extractive"}
        summary = bank.summary()
        assert summary is not None
        assert summary.through == 66, "at action 75, of which the newest 6 are untouched"
    lines = [line.split() for line in out.splitlines() if "from" in line and "ago" in line]
    assert [line[0] for line in lines] == ["20", "41", "61", "82"]
    assert "memory_bank" in out.partition("agrees with itself")[2], "the report of the last context"

    assert main(call) == 0
    with MemoryBank.open(database, embedder=HashingEmbedder()) as bank:
        assert [one.version for one in bank.list()] == [one.version for one in memories]
