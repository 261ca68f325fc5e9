"""Anything may happen to a log; what is found is always of the log as it stands (SPEC.md section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memorybank import MemoryBank
from memorybank.bank import story_writer
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import MemoryBankError
from memorybank.host import BankHost
from memorybank.writing.port import SpanText
from memorybank.writing.rhythm import Rhythm

Log = list[tuple[str, str]]
EVERY, UNTOUCHED = 3, 2


class Copyist:
    """Copies the words of its span; every word stands in one version of one action."""

    name = "copyist"

    def __init__(self, fails: int = 0, dies: int = 0) -> None:
        self.fails, self.dies = fails, dies

    def write_memory(self, span: SpanText) -> str:
        if self.dies:
            self.dies -= 1
            raise KeyboardInterrupt
        if self.fails:
            self.fails -= 1
            raise RuntimeError("broken")
        return "told " + span.text.replace("\n", " ")

    def write_summary(self, previous: str, passages: Sequence[str], limit_tokens: int) -> str:
        return f"{previous} {' '.join(passages)}".strip()


class Story(RuleBasedStateMachine):
    """Plays with the logs of some banks; a plain list is what each log is."""

    @initialize()
    def begin(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.words = 0
        self.host = BankHost.open(":memory:", embedder=HashingEmbedder(32), clock=self.clock)
        self.logs: dict[str, Log] = {"b0": []}
        self.earlier: list[tuple[str, Log]] = []
        self.by_hand: dict[str, set[str]] = {"b0": set()}
        self.with_deleted: set[str] = set()
        self.window, story_writer.WINDOW = story_writer.WINDOW, 9  # less than most logs here have
        self.host.bank("b0").set_rhythm(Rhythm(EVERY, UNTOUCHED, 5))

    def clock(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def teardown(self) -> None:
        self.host.close()
        story_writer.WINDOW = self.window

    def bank(self, choice: int) -> tuple[str, MemoryBank]:
        name = sorted(self.logs)[choice % len(self.logs)]
        return name, self.host.bank(name)

    def word(self) -> str:
        self.words += 1
        return f"w{self.words}"

    def put(self, choice: int, log: Log, after: int | None = None) -> None:
        name, bank = self.bank(choice)
        self.earlier.append((name, self.logs[name]))
        new = [{"id": id_, "kind": "output", "text": text} for id_, text in log]
        if after:
            bank.put_actions(new[after:], after=log[after - 1][0])
        else:
            bank.put_actions(new)
        self.logs[name] = log

    @rule(choice=st.integers(0, 3), count=st.integers(1, 9), whole=st.booleans())
    def append(self, choice: int, count: int, whole: bool) -> None:
        log = self.logs[self.bank(choice)[0]]
        new = [(f"a{self.word()}", self.word()) for _ in range(count)]
        self.put(choice, [*log, *new], None if whole else len(log))

    @rule(choice=st.integers(0, 3), count=st.integers(1, 4))
    def go_on_without_text(self, choice: int, count: int) -> None:
        log = self.logs[self.bank(choice)[0]]
        self.put(choice, [*log, *((f"a{self.word()}", "") for _ in range(count))])

    @rule(choice=st.integers(0, 3))
    def mend_the_summary(self, choice: int) -> None:
        bank = self.bank(choice)[1]
        summary = bank.summary()
        assert bank.edit_summary("").through == (0 if summary is None else summary.through)

    @rule(choice=st.integers(0, 3), count=st.integers(1, 12))
    def undo(self, choice: int, count: int) -> None:
        self.put(choice, self.logs[self.bank(choice)[0]][:-count])

    @rule(choice=st.integers(0, 3), place=st.integers(0, 40))
    def edit(self, choice: int, place: int) -> None:
        log = list(self.logs[self.bank(choice)[0]])
        if log:
            log[place % len(log)] = (log[place % len(log)][0], self.word())
            self.put(choice, log)

    @rule(choice=st.integers(0, 3), place=st.integers(0, 40), taken_out=st.booleans())
    def in_the_middle(self, choice: int, place: int, taken_out: bool) -> None:
        log = list(self.logs[self.bank(choice)[0]])
        place %= len(log) + 1
        if taken_out:
            del log[place : place + 1]
        else:
            log.insert(place, (f"a{self.word()}", self.word()))
        self.put(choice, log)

    @rule(choice=st.integers(0, 3), one=st.integers(0, 40), other=st.integers(0, 40))
    def reorder(self, choice: int, one: int, other: int) -> None:
        log = list(self.logs[self.bank(choice)[0]])
        if log:
            one, other = one % len(log), other % len(log)
            log[one], log[other] = log[other], log[one]
            self.put(choice, log)

    @rule(choice=st.integers(0, 40))
    def redo(self, choice: int) -> None:
        if self.earlier:
            name, log = self.earlier[choice % len(self.earlier)]
            self.put(sorted(self.logs).index(name), log)

    @rule(choice=st.integers(0, 3), fails=st.integers(0, 2), limit=st.integers(1, 6))
    def write_some(self, choice: int, fails: int, limit: int) -> None:
        self.bank(choice)[1].write_due(Copyist(fails), limit=limit)

    @rule(choice=st.integers(0, 3))
    def a_writer_dies(self, choice: int) -> None:
        try:
            self.bank(choice)[1].write_due(Copyist(dies=1), limit=1)
        except KeyboardInterrupt:
            self.now += timedelta(minutes=10)

    @rule(choice=st.integers(0, 3), place=st.integers(0, 40))
    def branch(self, choice: int, place: int) -> None:
        name, bank = self.bank(choice)
        log = self.logs[name]
        if log and len(self.logs) < 4:
            place %= len(log)
            new = f"b{len(self.logs)}"
            bank.branch(new, upto=log[place][0])
            self.logs[new] = log[: place + 1]
            self.by_hand[new] = set(self.by_hand[name])
            if name in self.with_deleted:
                self.with_deleted.add(new)

    @rule(
        choice=st.integers(0, 3), place=st.integers(0, 40), what=st.sampled_from(["pin", "forget", "restore", "delete"])
    )
    def handle(self, choice: int, place: int, what: str) -> None:
        name, bank = self.bank(choice)
        memories = bank.list()
        if memories:
            memory = memories[place % len(memories)]
            try:
                getattr(bank, what)(memory.id)
            except MemoryBankError:
                assert (memory.state, what) == ("stale", "restore")
            if what == "delete":
                self.by_hand[name].discard(memory.text)
                self.with_deleted.add(name)

    @rule(choice=st.integers(0, 3))
    def add_by_hand(self, choice: int) -> None:
        name, bank = self.bank(choice)
        self.by_hand[name].add(bank.add(f"by hand {self.word()}").text)

    @rule(choice=st.integers(0, 3), capacity=st.sampled_from([None, 2, 5]))
    def limit(self, choice: int, capacity: int | None) -> None:
        self.bank(choice)[1].set_capacity(capacity)

    @rule(choice=st.integers(0, 3))
    def write_all(self, choice: int) -> None:
        name, bank = self.bank(choice)
        self.now += timedelta(hours=2)
        bank.write_due(Copyist())
        assert bank.pending() == []
        if name not in self.with_deleted:
            assert len(self.untold(name, bank)) < EVERY + UNTOUCHED

    def untold(self, name: str, bank: MemoryBank) -> list[int]:
        told = {id_ for one in bank.list() if one.writer and one.state != "stale" for id_ in one.actions}
        return [place for place, (id_, text) in enumerate(self.logs[name]) if text and id_ not in told]

    @invariant()
    def what_is_found_is_of_the_log_as_it_stands(self) -> None:
        for name, log in self.logs.items():
            bank = self.host.bank(name)
            words = {text for _, text in log}
            for found in bank.search("told by hand", limit=1_000):
                memory = found.memory
                assert memory.state == "active"
                if memory.writer:
                    assert set(memory.text.split()) - {"told"} <= words
                else:
                    assert memory.text in self.by_hand[name]
            summary = bank.summary()
            assert summary is None or set(summary.text.split()) - {"told"} <= words

    @invariant()
    def no_action_is_told_twice_and_none_is_torn_apart(self) -> None:
        for name, log in self.logs.items():
            ids = [id_ for id_, _ in log]
            told: list[str] = []
            for memory in self.host.bank(name).list():
                if memory.writer and memory.state != "stale":
                    first = ids.index(memory.actions[0])
                    assert ids[first : first + len(memory.actions)] == list(memory.actions)
                    assert 1 <= len(memory.actions) <= EVERY
                    told += memory.actions
            assert len(told) == len(set(told))

    @invariant()
    def database_and_index_agree(self) -> None:
        for name in self.logs:
            assert self.host.bank(name).check().ok


Story.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestStory = Story.TestCase
