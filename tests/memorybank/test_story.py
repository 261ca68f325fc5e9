"""Memories are written from the log and hold as long as it does (SPEC.md section 9; PITFALLS: Memories)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorybank import MemoryBank
from memorybank.bank import story_writer
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import (
    ActionNotFoundError,
    InvalidInputError,
    ModelError,
    PreconditionError,
    StorageError,
    SummaryNotFoundError,
)
from memorybank.host import BankHost
from memorybank.writing.errors import WriterUnavailableError
from memorybank.writing.port import SpanText
from memorybank.writing.rhythm import RHYTHMS, Rhythm

Opener = Callable[..., MemoryBank]


class Scribe:
    """Writes down the span word for word, after a word of its own; does as it is told first."""

    name = "scribe"

    def __init__(self, *behaviour: Any) -> None:
        self.behaviour = list(behaviour)
        self.spans: list[str] = []
        self.summaries: list[tuple[str, tuple[str, ...]]] = []

    def write_memory(self, span: SpanText) -> str | None:
        if self.behaviour:
            found = self.behaviour.pop(0)
            if isinstance(found, BaseException):
                raise found
            return found() if callable(found) else found
        self.spans.append(span.text)
        return "Told: " + " ".join(span.text.split("\n"))

    def write_summary(self, previous: str, passages: Sequence[str], limit_tokens: int) -> str:
        self.summaries.append((previous, tuple(passages)))
        return f"{previous} + {len(passages)}".strip()


def log(count: int, *, start: int = 1, word: str = "event", ids: str = "a") -> list[dict[str, str]]:
    return [{"id": f"{ids}{n}", "kind": "output", "text": f"{word} {n}"} for n in range(start, start + count)]


def spans(bank: MemoryBank, state: Any = "active") -> list[tuple[str, ...]]:
    return [memory.actions for memory in bank.list(state) if memory.writer]


def ids(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"a{n}" for n in range(first, last + 1))


@pytest.fixture
def bank(open_bank: Opener) -> MemoryBank:
    """A bank for which time stands still: what has failed waits."""
    return open_bank(clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))


class TestRhythm:
    def test_the_first_memory_comes_at_action_12_from_1_to_6(self, bank: MemoryBank) -> None:
        for count in range(1, 19):
            bank.put_actions(log(count))
            bank.write_due(Scribe())
            assert len(spans(bank)) == (count >= 12) + (count >= 18)
        assert spans(bank) == [ids(1, 6), ids(7, 12)]

    @pytest.mark.parametrize("batches", [[40], [1] * 40, [5, 7, 1, 20, 7], [12, 12, 16]])
    def test_spans_do_not_depend_on_the_batches(self, bank: MemoryBank, batches: list[int]) -> None:
        count = 0
        for more in batches:
            after = None if count == 0 else f"a{count}"
            bank.put_actions(log(more, start=count + 1), after=after)
            count += more
            bank.write_due(Scribe())
        assert spans(bank) == [ids(n, n + 5) for n in range(1, 35, 6)][:5]

    def test_the_same_batch_twice_with_a_restart_in_between(self, open_bank: Opener) -> None:
        for _ in range(2):
            with open_bank() as bank:
                bank.put_actions(log(18))
                bank.put_actions(log(6, start=13), after="a12")
                bank.write_due(Scribe())
        assert spans(open_bank()) == [ids(1, 6), ids(7, 12)]

    def test_the_older_rhythm_is_a_preset_and_each_bank_has_its_own(self, bank: MemoryBank, open_bank: Opener) -> None:
        bank.set_rhythm(RHYTHMS["4/8"])
        bank.put_actions(log(12))
        bank.write_due(Scribe())
        assert spans(bank) == [ids(1, 4), ids(5, 8)]
        other = open_bank("other")
        other.put_actions(log(12))
        assert len(other.pending()) == 1

    def test_another_rhythm_leaves_what_was_written(self, bank: MemoryBank) -> None:
        bank.put_actions(log(18))
        bank.write_due(Scribe())
        bank.set_rhythm(Rhythm(3, 0, 15))
        bank.write_due(Scribe())
        assert spans(bank) == [ids(1, 6), ids(7, 12), ids(13, 15), ids(16, 18)]

    def test_an_action_without_text_counts_and_a_span_of_them_makes_no_memory(self, bank: MemoryBank) -> None:
        actions = [*log(6), *({"id": f"c{n}", "kind": "continue"} for n in range(6)), *log(6, start=7)]
        bank.put_actions(actions)
        writer = Scribe()
        bank.write_due(writer)
        assert [len(span) for span in spans(bank)] == [6]
        assert bank.pending() == []
        assert len(writer.spans) == 1


class TestStaleness:
    @pytest.fixture
    def told(self, bank: MemoryBank) -> MemoryBank:
        bank.put_actions(log(24))
        bank.write_due(Scribe())
        assert len(spans(bank)) == 3
        return bank

    def found(self, bank: MemoryBank, text: str) -> list[str]:
        return [one.memory.text for one in bank.search(text, limit=100) if text in one.memory.text]

    def test_undo_and_other_actions(self, told: MemoryBank) -> None:
        change = told.put_actions([*log(4), *log(8, start=5, word="other", ids="b")])
        assert len(change.stale) == 3
        assert change.same == 4
        assert self.found(told, "event 5") == []
        assert spans(told) == []
        told.write_due(Scribe())
        assert self.found(told, "event 5") == []
        assert len(self.found(told, "other 5")) == 1

    def test_an_edit_is_seen_at_once_and_the_span_written_anew(self, told: MemoryBank) -> None:
        edited = log(24)
        edited[1] = {**edited[1], "text": "a dragon came"}
        change = told.put_actions(edited)
        assert len(change.stale) == 1
        assert change.pending == 1
        assert self.found(told, "event 2") == []
        assert told.pending()[0].actions == ids(1, 6)
        told.write_due(Scribe())
        assert len(self.found(told, "a dragon came")) == 1
        assert len(spans(told)) == 3

    def test_redo_makes_valid_again_and_nothing_is_written(self, told: MemoryBank) -> None:
        before = told.list("active")
        told.put_actions(log(7))
        assert len(spans(told)) == 1
        change = told.put_actions(log(24))
        assert len(change.valid) == 2
        writer = Scribe()
        assert told.write_due(writer) == []
        assert writer.spans == []
        assert told.list("active") == before

    def test_a_memory_whose_actions_are_all_there_holds_while_the_newest_are_undone(self, told: MemoryBank) -> None:
        change = told.put_actions(log(8))
        assert spans(told) == [ids(1, 6)]
        assert len(change.stale) == 2

    def test_reordered_actions(self, told: MemoryBank) -> None:
        actions = log(24)
        actions[0], actions[1] = actions[1], actions[0]
        assert len(told.put_actions(actions).stale) == 1

    def test_an_action_taken_out_of_the_middle_leaves_later_memories(self, told: MemoryBank) -> None:
        actions = [action for action in log(24) if action["id"] != "a8"]
        assert len(told.put_actions(actions).stale) == 1
        told.write_due(Scribe())
        assert spans(told) == [ids(1, 6), ids(13, 18), ("a7", *ids(9, 12))]
        assert told.put_actions(log(24)).valid
        assert sorted(spans(told), key=lambda span: int(span[0][1:])) == [ids(1, 6), ids(7, 12), ids(13, 18)]

    def test_hand_written_ones_are_never_stale(self, told: MemoryBank) -> None:
        told.add("Mara hid the key.", actions=["a5"])
        told.put_actions(log(2))
        assert [one.text for one in told.list("active")] == ["Mara hid the key."]

    def test_a_stale_memory_says_so_and_cannot_be_restored(self, told: MemoryBank) -> None:
        told.put_actions(log(2))
        stale = told.list("stale")[0]
        assert (stale.state, stale.reason, stale.writer) == (
            "stale",
            "its source actions have changed or are gone",
            "scribe",
        )
        with pytest.raises(InvalidInputError, match="add its text as a memory of its own"):
            told.restore(stale.id)

    def test_a_forgotten_one_is_forgotten_again_after_undo_and_redo(self, told: MemoryBank) -> None:
        told.forget("m2")
        told.put_actions(log(7))
        told.put_actions(log(24))
        assert told.get("m2").state == "forgotten"
        assert told.pending() == [], "a forgotten memory is a memory"

    def test_a_deleted_one_is_not_written_again(self, told: MemoryBank) -> None:
        told.delete("m2")
        assert told.put_actions(log(30)).pending == 1
        told.write_due(Scribe())
        assert spans(told) == [ids(1, 6), ids(13, 18), ids(19, 24)]
        told.put_actions([*log(6), *log(18, start=7, word="other")])
        told.write_due(Scribe())
        assert ids(7, 12) in spans(told), "another text is another memory"

    def test_an_unknown_end_is_refused_and_nothing_changed(self, told: MemoryBank) -> None:
        with pytest.raises(ActionNotFoundError, match="'nowhere'"):
            told.put_actions(log(1, start=99), after="nowhere")
        for actions, after in (
            (log(1), "a3"),
            ([*log(1), *log(1)], None),
            ([{"id": "x", "kind": "dream", "text": ""}], None),
            ([{"id": "x", "kind": "do", "text": 5}], None),
            ([{"kind": "do", "text": "x"}], None),
            ("a1", None),
        ):
            with pytest.raises(InvalidInputError):
                told.put_actions(actions, after=after)
        assert told.put_actions(log(24)).same == 24
        assert len(spans(told)) == 3

    def test_capacity_holds_for_what_is_written(self, bank: MemoryBank) -> None:
        bank.set_capacity(2)
        bank.put_actions(log(30))
        bank.write_due(Scribe())
        assert (bank.count("active"), bank.count("forgotten")) == (2, 2)
        assert bank.list("forgotten")[0].reason == "the bank has room for 2"


class TestWork:
    @pytest.mark.parametrize(
        "behaviour",
        ["", None, 5, "x" * 200_000, RuntimeError("broken"), WriterUnavailableError("down"), "echo"],
        ids=["empty", "nothing", "no text", "too long", "raises", "away", "echo"],
    )
    def test_a_writer_that_fails_loses_nothing(self, bank: MemoryBank, behaviour: Any) -> None:
        bank.put_actions(log(12))
        if behaviour == "echo":
            behaviour = "\n".join(action["text"] for action in log(6))
        assert bank.write_due(Scribe(behaviour)) == []
        if behaviour is None:
            assert bank.pending() == [], "the writer found nothing to tell"
            return
        assert [(one.actions, one.attempts) for one in bank.pending()] == [(ids(1, 6), 1)]
        assert bank.pending()[0].error
        assert bank.write_due(Scribe()) == [], "it waits before it is tried again"

    def test_it_is_tried_again_later_each_time(self, open_bank: Opener) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        bank = open_bank(clock=lambda: now[0])
        bank.put_actions(log(12))
        waits = []
        for _ in range(4):
            bank.write_due(Scribe(WriterUnavailableError("down")))
            retry_at = bank.pending()[0].retry_at
            assert retry_at is not None
            waits.append((retry_at - now[0]).total_seconds())
            now[0] = retry_at
        assert waits == [10, 20, 40, 80]
        bank.write_due(Scribe(WriterUnavailableError("down", retry_after=600)))
        assert bank.pending()[0].retry_at == now[0] + timedelta(seconds=600)
        now[0] += timedelta(seconds=600)
        assert len(bank.write_due(Scribe())) == 1

    def test_a_failing_span_does_not_hold_up_the_others(self, bank: MemoryBank) -> None:
        bank.put_actions(log(24))
        bank.write_due(Scribe(RuntimeError("broken")))
        assert spans(bank) == [ids(7, 12), ids(13, 18)]

    def test_a_writer_that_hangs_is_left_alone(self, bank: MemoryBank) -> None:
        bank.put_actions(log(12))
        never = threading.Event()
        assert bank.write_due(Scribe(never.wait), seconds=0.05) == []
        never.set()
        assert "within 0.05 seconds" in bank.pending()[0].error

    def test_a_dead_writer_process_loses_nothing(self, open_bank: Opener) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        bank = open_bank(clock=lambda: now[0])
        bank.put_actions(log(12))
        with pytest.raises(KeyboardInterrupt):
            bank.write_due(Scribe(KeyboardInterrupt()))
        assert bank.write_due(Scribe()) == [], "it is claimed"
        now[0] += timedelta(minutes=6)
        assert len(bank.write_due(Scribe())) == 1

    def test_a_span_that_changes_while_it_is_written_is_not_found(self, bank: MemoryBank) -> None:
        bank.put_actions(log(12))

        def change() -> str:
            bank.put_actions([*log(3), *log(9, start=4, word="other")])
            return "Told: event 4"

        bank.write_due(Scribe(change), limit=1)
        assert bank.search("event 4") == []
        assert len(bank.pending()) == 1
        assert bank.put_actions(log(12)).pending == 0, "what was written holds when its text is back"
        assert [one.memory.text for one in bank.search("event 4")] == ["Told: event 4"]

    def test_many_processes_write_each_span_once(self, open_bank: Opener) -> None:
        banks = [open_bank() for _ in range(4)]
        banks[0].put_actions(log(120))
        writers = [Scribe() for _ in banks]
        threads = [
            threading.Thread(target=bank.write_due, args=(writer,)) for bank, writer in zip(banks, writers, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        written = [span for writer in writers for span in writer.spans]
        assert len(written) == len(set(written)) == 19
        assert sorted(spans(banks[0]), key=lambda span: int(span[0][1:])) == [ids(n, n + 5) for n in range(1, 115, 6)]

    def test_a_long_log_is_written_piece_by_piece(self, bank: MemoryBank) -> None:
        bank.put_actions(log(2_000))
        assert len(bank.write_due(Scribe(), limit=5)) == 5
        seen: list[tuple[int, int]] = []
        bank.write_due(Scribe(), limit=3, progress=lambda done, total: seen.append((done, total)))
        assert [done for done, _ in seen] == [1, 2, 3]
        assert spans(bank) == [ids(n, n + 5) for n in range(1, 44, 6)]


class TestBeyondTheWindow:
    """Only some of a long log is looked at to find the next work; nothing may be lost for that."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(story_writer, "WINDOW", 18)

    def test_actions_without_text_in_front(self, bank: MemoryBank) -> None:
        silent = [{"id": f"c{n}", "kind": "continue"} for n in range(6)]
        bank.put_actions([*silent, *log(60)])
        assert len(bank.write_due(Scribe())) == 9
        assert bank.pending() == []
        told = {"id": "c0", "kind": "story", "text": "After all."}
        assert bank.put_actions([told, *silent[1:], *log(60)]).pending == 1

    def test_a_span_that_always_fails_in_front(self, bank: MemoryBank) -> None:
        bank.put_actions(log(90))
        assert len(bank.write_due(Scribe(RuntimeError("broken")))) == 13
        assert [one.actions for one in bank.pending()] == [ids(1, 6)]

    def test_the_summary_does_not_wait_for_ever(self, open_bank: Opener) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        bank = open_bank(clock=lambda: now[0])
        bank.put_actions(log(15))
        writer = Scribe(*[RuntimeError("broken")] * 20)
        for _ in range(5):
            bank.write_due(writer)
            assert not writer.summaries
            now[0] += timedelta(hours=2)
        bank.put_actions(log(30))
        writer.behaviour = [RuntimeError("broken")]
        bank.write_due(writer)
        told = ["Told: " + " ".join(f"event {n}" for n in range(start, start + 6)) for start in (7, 13, 19)]
        assert writer.summaries == [("", tuple(told))]

    def test_what_waits_is_not_asked_for_all_the_time(self, database: Path) -> None:
        with BankHost.open(database, embedder=HashingEmbedder()) as host:
            bank = host.bank("a")
            bank.put_actions(log(12))
            assert host.due_banks() == ["a"]
            bank.write_due(Scribe(RuntimeError("broken")))
            assert host.due_banks() == []
            bank.put_actions(log(13))
            assert host.due_banks() == [], "it waits still"


def test_the_same_log_again_writes_nothing(bank: MemoryBank, database: Path) -> None:
    bank.put_actions(log(12))
    bank.write_due(Scribe())
    before = Path(f"{database}-wal").read_bytes()
    assert bank.put_actions(log(12)).same == 12
    assert Path(f"{database}-wal").read_bytes() == before


def test_another_kind_with_the_same_text_is_stored(bank: MemoryBank) -> None:
    bank.put_actions([{"id": "x", "kind": "do", "text": "open it"}, *log(11)])
    assert bank.put_actions([{"id": "x", "kind": "output", "text": "open it"}, *log(11)]).same == 0
    writer = Scribe()
    bank.write_due(writer)
    assert writer.spans[0].startswith("open it")


def test_what_is_told_of_an_error_names_no_file(bank: MemoryBank) -> None:
    bank.put_actions(log(12))
    bank.write_due(Scribe(ModelError("model x is not installed at /srv/models")))
    assert bank.pending()[0].error == "ModelError: see the log"


class TestSummary:
    def test_a_mended_typo_loses_no_events(self, bank: MemoryBank) -> None:
        bank.put_actions(log(15))
        bank.write_due(Scribe())
        bank.put_actions(log(29))
        assert bank.edit_summary("Mended.").through == 6
        bank.put_actions(log(45))
        writer = Scribe()
        bank.write_due(writer)
        assert [(previous, len(passages)) for previous, passages in writer.summaries] == [
            ("Mended.", 3),
            ("Mended. + 3", 2),
        ]
        assert bank.restore_summary(1).through == 6

    def test_one_beyond_its_limit_is_not_stored(self, bank: MemoryBank) -> None:
        class Endless(Scribe):
            def write_summary(self, previous: str, passages: Sequence[str], limit_tokens: int) -> str:
                return "word " * (limit_tokens + 1)

        bank.put_actions(log(15))
        bank.write_due(Endless())
        assert bank.summary() is None

    def test_a_branch_has_no_summary_that_knows_more_than_it(self, bank: MemoryBank, open_bank: Opener) -> None:
        bank.put_actions(log(45))
        bank.write_due(Scribe())
        bank.edit_summary("All of it.")
        bank.branch("other", upto="a10")
        found = open_bank("other").summary()
        assert found is not None
        assert (found.text, found.through) == ("All of it.", 10)

    def test_old_versions_go(self, bank: MemoryBank) -> None:
        for n in range(105):
            bank.edit_summary(f"version {n}")
        assert [one.version for one in bank.summaries()][::99] == [105, 6]

    def test_it_is_brought_up_to_date_every_15_actions_from_what_is_complete_then(self, bank: MemoryBank) -> None:
        assert bank.summary() is None
        writer = Scribe()
        for count in range(1, 46):
            bank.put_actions(log(count))
            bank.write_due(writer)
            found = bank.summary()
            assert (0 if found is None else found.through) == {0: 0, 1: 6, 2: 24, 3: 36}[count // 15]
        assert [(previous, len(passages)) for previous, passages in writer.summaries] == [
            ("", 1),
            ("+ 1", 3),
            ("+ 1 + 3", 2),
        ]

    def test_it_does_not_depend_on_the_batches(self, bank: MemoryBank) -> None:
        bank.put_actions(log(45))
        bank.write_due(Scribe())
        found = bank.summary()
        assert found is not None
        assert (found.text, found.through, found.author) == ("+ 1 + 3 + 2", 36, "scribe")

    def test_it_rewinds_with_the_log(self, bank: MemoryBank) -> None:
        bank.put_actions(log(45))
        bank.write_due(Scribe())
        bank.put_actions(log(26))
        found = bank.summary()
        assert found is not None
        assert found.text == "+ 1 + 3"
        bank.put_actions(log(3))
        assert bank.summary() is None
        bank.put_actions(log(45))
        back = bank.summary()
        assert back is not None
        assert back.text == "+ 1 + 3 + 2"
        assert bank.write_due(Scribe()) == []
        assert len(bank.summaries()) == 3

    def test_the_players_own_goes_into_the_next_one_and_earlier_ones_come_back(self, bank: MemoryBank) -> None:
        bank.put_actions(log(15))
        bank.write_due(Scribe())
        bank.edit_summary("Mara is my sister.")
        writer = Scribe()
        bank.put_actions(log(45))
        bank.write_due(writer)
        assert writer.summaries[0][0] == "Mara is my sister."
        versions = bank.summaries()
        assert [one.author for one in versions] == ["scribe", "scribe", "player", "scribe"]
        assert bank.restore_summary(1).text == "+ 1"
        newest = bank.summary()
        assert newest is not None
        assert (newest.text, newest.author, newest.version) == ("+ 1", "player", 5)
        with pytest.raises(SummaryNotFoundError, match="no version 99"):
            bank.restore_summary(99)
        for wrong in (0, -1, "1", True, 1.0):
            with pytest.raises(InvalidInputError, match="version"):
                bank.restore_summary(wrong)  # type: ignore[arg-type]
        assert len(bank.summaries()) == 5

    def test_a_damaged_rhythm_is_named_with_its_bank(self, bank: MemoryBank) -> None:
        bank.put_actions(log(3))
        with bank._store.write() as writer:
            found = writer.story.story(bank.name)
            assert found is not None
            writer.story.save(bank.name, replace(found, memory_every=0))
        with pytest.raises(StorageError, match=f"bank '{bank.name}': its rhythm .* damaged .every must be"):
            bank.info()


class TestBranch:
    def test_the_two_have_one_past_and_live_apart(self, bank: MemoryBank, open_bank: Opener) -> None:
        bank.put_actions(log(30))
        bank.write_due(Scribe())
        bank.add("Early by hand.", actions=["a3"])
        bank.add("Late by hand.", actions=["a25"])
        bank.add("Of no action.")
        bank.branch("other", upto="a14")
        other = open_bank("other")
        assert spans(other) == [ids(1, 6), ids(7, 12)]
        assert [one.text for one in other.list() if not one.writer] == ["Early by hand.", "Of no action."]
        assert other.check().ok
        assert len(other.search("event 3")) == 4
        other.put_actions([*log(14), *log(16, start=15, word="elsewhere", ids="b")])
        other.write_due(Scribe())
        assert len(spans(other)) == 4
        assert [one for one in bank.list("active") if "elsewhere" in one.text] == []
        assert len(spans(bank)) == 4
        bank.put_actions(log(2))
        assert len(spans(other)) == 4

    def test_the_past_is_not_written_again(self, bank: MemoryBank, open_bank: Opener) -> None:
        bank.put_actions(log(45))
        bank.write_due(Scribe())
        bank.delete("m1")
        bank.branch("other")
        writer = Scribe()
        other = open_bank("other")
        assert other.write_due(writer) == []
        assert writer.summaries == []
        assert other.summary() == bank.summary()

    def test_a_name_that_is_taken_and_an_action_that_is_not_there(self, bank: MemoryBank, open_bank: Opener) -> None:
        bank.put_actions(log(3))
        open_bank("taken").add("Something.")
        with pytest.raises(PreconditionError, match="already"):
            bank.branch("taken")
        with pytest.raises(ActionNotFoundError, match="'a9'"):
            bank.branch("new", upto="a9")
        assert open_bank("new").info().created is None
        assert open_bank("taken").count() == 1
