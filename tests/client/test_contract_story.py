"""The log, what is due, the Story Summary, branches, the rhythm: one scenario, three banks, as in `test_contract`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assembler import Action
from memorybank import InvalidInputError, Memory
from memorybank.bank.info import LogChange, Pending, Summary
from memorybank.client import RemoteBank, ServiceError
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import ActionNotFoundError, BankNotFoundError, PreconditionError, SummaryNotFoundError
from memorybank.host import BankHost
from memorybank.writing.errors import WriterUnavailableError
from memorybank.writing.rhythm import RHYTHMS, Rhythm
from tests.support.awaited import AwaitedBank
from tests.support.live_service import live_service

KINDS = ["in process", "http", "http awaited"]
TIME = datetime(2026, 1, 1, tzinfo=UTC)


class Banks:
    """Opens banks of a kind, and writes what is due in them: the service has no writer of its own."""

    def __init__(self, url: str, service: BankHost, own: BankHost) -> None:
        self._url = url
        self._hosts = {"in process": own, "http": service, "http awaited": service}
        self._opened: list[Any] = []

    def open(self, kind: str, name: str) -> Any:
        if kind == "in process":
            return self._hosts[kind].bank(name)
        self._opened.append({"http": RemoteBank, "http awaited": AwaitedBank}[kind](self._url, name))
        return self._opened[-1]

    def write_due(self, kind: str, name: str, writer: Any = None) -> list[Memory]:
        return self._hosts[kind].bank(name).write_due(writer)

    def close(self) -> None:
        for bank in self._opened:
            bank.close()


@pytest.fixture
def banks(tmp_path: Path) -> Iterator[Banks]:
    with (
        live_service(tmp_path / "service.sqlite", rate=0, writer="none") as running,
        BankHost.open(tmp_path / "own.sqlite", embedder=HashingEmbedder()) as own,
    ):
        found = Banks(running.url, running.host, own)
        yield found
        found.close()


def log(count: int, *, start: int = 1, word: str = "The wolf of the north howled at gate") -> list[dict[str, str]]:
    return [{"id": f"a{n}", "kind": "output", "text": f"{word} {n}."} for n in range(start, start + count)]


def same_for_all(banks: Banks, scenario: Callable[[Any, Callable[..., list[Memory]]], list[Any]]) -> list[Any]:
    """Run a scenario with a bank of each kind; return what it has seen, which must be the same for all."""
    seen = []
    for kind in KINDS:
        write_due = lambda writer=None, kind=kind: banks.write_due(kind, kind, writer)  # noqa: E731
        seen.append(scenario(banks.open(kind, kind), write_due))
    assert seen[0] == seen[1] == seen[2]
    return seen[0]


def without_times(memory: Memory) -> Memory:
    return replace(memory, created=TIME, last_used=None)


def untimed(summary: Summary | None) -> Summary | None:
    if summary is None:
        return None
    assert summary.created.tzinfo is not None
    return replace(summary, created=TIME)


def test_memories_are_written_rewind_and_come_back(banks: Banks) -> None:
    def scenario(bank: Any, write_due: Callable[..., list[Memory]]) -> list[Any]:
        seen: list[Any] = [bank.pending(), bank.pending_count(), bank.put_actions([])]
        seen += [bank.put_actions(log(12)), bank.pending(), bank.pending_count()]
        write_due()
        seen += [bank.pending(), [without_times(memory) for memory in bank.list()]]
        seen += [bank.put_actions(log(2)), bank.search("wolf"), [memory.reason for memory in bank.list("stale")]]
        seen += [bank.put_actions(iter(log(10, start=3)), after="a2"), len(bank.search("wolf"))]
        seen += [bank.put_actions(log(12, word="An owl slept at gate")), bank.count("stale")]
        return seen

    seen = same_for_all(banks, scenario)
    assert seen[:3] == [[], 0, LogChange(0, 0, (), (), 0)]
    actions = tuple(f"a{n}" for n in range(1, 7))
    assert seen[3:6] == [LogChange(12, 0, (), (), 1), [Pending(actions, 0, "", None)], 1]
    assert seen[6] == []
    [memory] = seen[7]
    assert (memory.actions, memory.writer, memory.state) == (actions, "extractive", "active")
    assert seen[8:11] == [
        LogChange(2, 2, (memory.id,), (), 0), [], ["its source actions have changed or are gone"],
    ]  # fmt: skip
    assert seen[11:13] == [LogChange(12, 2, (), (memory.id,), 0), 1]
    assert seen[13:] == [LogChange(12, 0, (memory.id,), (), 1), 1]


def test_any_log_that_the_bank_takes(banks: Banks) -> None:
    odd = ["<|endoftext|> \x1b \0 👍 \u2028 \ud83d half", "  x \r\n", "", "哈" * 30_000]
    kinds = ["start", "do", "say", "continue"]
    as_objects = [Action(f"a/{n}?", kind, text) for n, (kind, text) in enumerate(zip(kinds, odd, strict=True))]  # type: ignore[arg-type]
    as_mappings = [{"id": one.id, "kind": one.kind, "text": one.text} for one in as_objects]

    def scenario(bank: Any, _: Any) -> list[Any]:
        return [bank.put_actions(as_objects), bank.put_actions(as_mappings), bank.put_actions([], after="a/1?")]

    assert same_for_all(banks, scenario) == [
        LogChange(4, 0, (), (), 0), LogChange(4, 4, (), (), 0), LogChange(2, 2, (), (), 0),
    ]  # fmt: skip


def test_a_writer_that_failed_is_told(banks: Banks) -> None:
    class Away:
        name = "away"

        def write_memory(self, *_: Any, **__: Any) -> str:
            raise WriterUnavailableError("nobody is there", retry_after=300.0)

        write_summary = write_memory

    def scenario(bank: Any, write_due: Callable[..., list[Memory]]) -> list[Any]:
        bank.put_actions(log(12))
        assert write_due(Away()) == []
        [one] = bank.pending()
        assert one.retry_at - datetime.now(UTC) > timedelta(seconds=100)
        return [replace(one, retry_at=None)]

    [one] = same_for_all(banks, scenario)
    assert (one.attempts, one.error) == (1, "nobody is there")


def test_the_summary_and_the_players_own(banks: Banks) -> None:
    def scenario(bank: Any, write_due: Callable[..., list[Memory]]) -> list[Any]:
        seen: list[Any] = [bank.summary(), bank.summaries()]
        bank.put_actions(log(15))
        write_due()
        seen += [bank.summary(), bank.edit_summary("Mara is my \ud83d\udc4d sister.\r\n"), bank.edit_summary("")]
        seen += [bank.edit_summary(""), bank.restore_summary(1), bank.summary()]
        bank.put_actions(log(3))
        seen += [bank.summary(), *bank.summaries()]
        return [untimed(one) if isinstance(one, Summary) else one for one in seen]

    seen = same_for_all(banks, scenario)
    assert seen[:2] == [None, []]
    first = seen[2]
    assert (first.version, first.author, first.through) == (1, "extractive", 6)
    assert seen[3] == Summary(2, "Mara is my 👍 sister.\r\n", "player", 6, TIME), "it tells what the one before told"
    assert seen[4] == seen[5] == Summary(3, "", "player", 6, TIME), "the same again is still one"
    assert seen[6] == seen[7] == Summary(4, first.text, "player", 6, TIME)
    assert seen[8] == replace(seen[6], through=3), "a version of the player's own holds whatever happens"
    assert [one.version for one in seen[9:]] == [4, 3, 2, 1]


def test_a_restored_version_tells_what_it_told_and_no_more(banks: Banks) -> None:
    def scenario(bank: Any, write_due: Callable[..., list[Memory]]) -> list[Any]:
        for count in (15, 30):
            bank.put_actions(log(count))
            write_due()
        told = [one.through for one in bank.summaries()]
        again = bank.restore_summary(1)
        return [told, again.text == bank.summaries()[-1].text, again.through, again.author, again.version]

    assert same_for_all(banks, scenario) == [[24, 6], True, 6, "player", 3]
    for kind in KINDS:
        with pytest.raises(SummaryNotFoundError, match="no version 9"):
            banks.open(kind, f"{kind} ünï?").restore_summary(9)


def test_the_same_summary_again_is_one_however_long_the_log_is(banks: Banks) -> None:
    def scenario(bank: Any, _: Any) -> list[Any]:
        versions = [bank.edit_summary("Mara.").version, bank.edit_summary("Mara.").version]
        bank.put_actions(log(3))
        return [*versions, bank.edit_summary("Mara.").version, bank.edit_summary("Mara.").through]

    assert same_for_all(banks, scenario) == [1, 1, 1, 0]


def test_a_branch(banks: Banks) -> None:
    for kind in KINDS:
        bank = banks.open(kind, kind)
        bank.set_settings({"rhythm": Rhythm(2, 1, 4), "capacity": 9})
        bank.put_actions(log(9))
        banks.write_due(kind, kind)
        assert bank.branch(f"{kind} ünï?", upto="a3") is None
        other = banks.open(kind, f"{kind} ünï?")
        assert [memory.actions for memory in other.list()] == [("a1", "a2")]
        assert (other.info().capacity, other.info().rhythm) == (9, Rhythm(2, 1, 4))
        assert other.put_actions(log(3)).same == 3
        assert other.info().version != bank.info().version
        bank.branch(f"{kind} whole")
        assert banks.open(kind, f"{kind} whole").count() == bank.count() == 4
        with pytest.raises(PreconditionError, match="there is a bank") as caught:
            bank.branch(f"{kind} ünï?")
        if kind != "in process":
            assert isinstance(caught.value.__cause__, ServiceError)
            assert caught.value.__cause__.problem_type == "bank-exists"
        with pytest.raises(ActionNotFoundError, match="nowhere"):
            bank.branch(f"{kind} new", upto="nowhere")
        with pytest.raises(BankNotFoundError):
            banks.open(kind, f"{kind} new").branch(f"{kind} newer")


def test_the_rhythm(banks: Banks) -> None:
    def scenario(bank: Any, write_due: Callable[..., list[Memory]]) -> list[Any]:
        seen = [bank.info().rhythm]
        made = bank.set_rhythm(RHYTHMS["4/8"], only_new=True)
        seen += [made.rhythm, bank.info().rhythm, bank.put_actions(log(12)).pending]
        assert bank.info().version == made.version, "the log is no setting"
        write_due()
        changed = bank.set_rhythm(Rhythm(2, 0, 3), if_match=made.version)
        assert changed.version == bank.info().version != made.version
        seen += [bank.pending_count(), [memory.actions[0] for memory in bank.list()]]
        for options in ({"if_match": made.version}, {"only_new": True}):
            with pytest.raises(PreconditionError):
                bank.set_rhythm(Rhythm(), **options)
            with pytest.raises(PreconditionError):
                bank.set_settings({"capacity": 1, "rhythm": Rhythm()}, **options)
        both = bank.set_settings({"capacity": 3, "rhythm": Rhythm()}, if_match=changed.version)
        seen += [both.capacity, both.rhythm, bank.set_capacity(None).rhythm, bank.set_settings({}).capacity]
        assert bank.set_rhythm(Rhythm()).version == bank.info().version
        return seen

    assert same_for_all(banks, scenario) == [
        None, Rhythm(4, 4, 8), Rhythm(4, 4, 8), 2, 2, ["a1", "a5"], 3, Rhythm(), Rhythm(), None,
    ]  # fmt: skip


def test_a_bank_that_nobody_gave_a_rhythm_has_the_usual_one(banks: Banks) -> None:
    for kind in KINDS:
        bank = banks.open(kind, kind)
        bank.add("The gate opens.")
        before = bank.info()
        assert before.rhythm == Rhythm()
        bank.put_actions(log(3))
        assert bank.info().version == before.version


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_at_fault_changes_nothing(banks: Banks, kind: str) -> None:
    bank = banks.open(kind, kind)
    bank.put_actions(log(3))
    before = bank.info()
    invalid: list[Callable[[], Any]] = [
        lambda: bank.put_actions("x"),
        lambda: bank.put_actions([{"id": "a1"}]),
        lambda: bank.put_actions([{"id": "a1", "kind": "dream", "text": ""}]),
        lambda: bank.put_actions([{"id": "a\n1", "kind": "do", "text": ""}]),
        lambda: bank.put_actions([{"id": "a1", "kind": "do", "text": 3}]),
        lambda: bank.put_actions([{"id": "a1", "kind": "do", "text": "x" * 1_000_001}]),
        lambda: bank.put_actions(log(1) + log(1)),
        lambda: bank.put_actions(log(1), after="a2"),
        lambda: bank.put_actions([], after=""),
        lambda: bank.edit_summary(None),
        lambda: bank.edit_summary("x" * 100_001),
        lambda: bank.restore_summary(0),
        lambda: bank.restore_summary("1"),
        lambda: bank.branch(""),
        lambda: bank.branch("c", upto=""),
        lambda: bank.set_rhythm("4/8"),
        lambda: bank.set_settings({"capacity": 3, "rhythm": None}),
        lambda: bank.set_settings({"colour": "blue"}),
    ]
    for call in invalid:
        with pytest.raises(InvalidInputError):
            call()
    with pytest.raises(ActionNotFoundError, match="no action 'nowhere'"):
        bank.put_actions(log(1), after="nowhere")
    assert bank.put_actions(log(3)).same == 3
    assert (bank.info(), bank.summaries()) == (before, [])


def test_a_log_that_is_too_large_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with live_service(tmp_path / "memories.sqlite", rate=0, body_bytes=2_000, writer="none") as running:
        for kind in (RemoteBank, AwaitedBank):
            bank = kind(running.url, kind.__name__)
            bank.put_actions(log(10))
            with pytest.raises(InvalidInputError, match=r"2,000 bytes.*`after=`"):
                bank.put_actions(log(100))
            for start in range(11, 101, 10):
                change = bank.put_actions(log(10, start=start), after=f"a{start - 1}")
            assert (change.length, change.same) == (100, 90)
            bank.close()
