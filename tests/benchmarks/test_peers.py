"""A peer is asked in lines of JSON: answers, errors, and what is not answered in time."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers import Peer, PeerFailedError, PeerMissingError, PeerTooSlowError, environment, process

SCRIPT = """
import sys, time
sys.path.insert(0, {scripts!r})
from serving import serve, timed

seen = []

def handle(work):
    print("a library prints this")
    seen.append(work)
    if "wait" in work:
        time.sleep(work["wait"])
    if "times" in work:
        times = {{}}
        for _ in range(work["times"]):
            timed(lambda: None, times)
        return times
    return [len(seen), 1 / work["number"]]

serve(handle, ["pip"])
"""


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    (tmp_path / "answering.py").write_text(SCRIPT.format(scripts=str(process.SCRIPTS)), encoding="utf-8")
    monkeypatch.setattr(process, "SCRIPTS", tmp_path)
    monkeypatch.setattr(process, "python_of", lambda name: Path(sys.executable))
    with Peer("any", "answering") as peer:
        yield peer


def test_it_keeps_what_it_has_from_question_to_question(peer: Peer) -> None:
    assert peer.ask({"number": 2}, limit=30) == [1, 0.5]
    assert peer.ask({"number": 4}, limit=30) == [2, 0.25]
    assert peer.versions.keys() == {"pip"}


def test_times_come_as_a_timer(peer: Peer) -> None:
    timer = process.timer_of(peer.ask({"times": 3}, limit=30))
    assert len(timer.wall) == len(timer.cpu) == 3
    assert all(0 <= time < 1000 for time in timer.wall)


def test_its_error_names_the_script_and_what_was_wrong(peer: Peer) -> None:
    with pytest.raises(PeerFailedError, match=r"answering\.py: ZeroDivisionError"):
        peer.ask({"number": 0}, limit=30)
    assert peer.ask({"number": 1}, limit=30) == [1, 1.0]  # a new one


def test_one_that_is_too_slow_is_ended_and_the_next_question_starts_a_new_one(peer: Peer) -> None:
    assert peer.ask({"number": 1}, limit=30) == [1, 1.0]
    with pytest.raises(PeerTooSlowError, match=r"no answer in 0\.2 s"):
        peer.ask({"number": 1, "wait": 60}, limit=0.2)
    assert peer.ask({"number": 1}, limit=30) == [1, 1.0]


def test_an_environment_that_was_not_made_is_named_with_what_to_do() -> None:
    for name in environment.names():
        with pytest.raises(PeerMissingError, match=f"{name} .*python -m benchmarks peers"):
            Peer(name, "any")
    with pytest.raises(PeerMissingError, match="there is no peer 'nobody'"):
        Peer("nobody", "any")


def test_every_requirement_is_pinned() -> None:
    for name in environment.names():
        lines = (environment.REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert lines
        assert all("==" in line for line in lines if line and not line.startswith(("#", "--")))
