"""Memory Bank: ranked by relevance to the last action, taken while they fit, in story order (SPEC.md section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from assembler import Action, Adventure, AssembledContext, Settings, assemble
from memorybank.memory import NewMemory, Recalled
from tests.support.banks import RankedBank
from tests.support.words import Words

WORDS = Words()
REDUNDANT = "already in history"


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


def memory(id: str, size: int = 1, *actions: str, pinned: bool = False) -> NewMemory:
    return NewMemory(words(size, id), id, actions, pinned)


def build(memories: list[NewMemory], left: int, *older: Action, **settings: int) -> AssembledContext:
    """Assemble with `left` tokens for Dynamic and the memories in the order of their rank."""
    adventure = Adventure([*older, Action("last", "output", "go")])
    return assemble(adventure, RankedBank.of(memories), Settings(left + 3, WORDS, **settings))


def lines(context: AssembledContext) -> dict[str, tuple[str, int, int, str]]:
    return {
        line.item: (line.verdict, line.offered, line.used, line.reason)
        for line in context.report.lines
        if line.section == "memory_bank"
    }


def test_taken_in_the_order_of_rank_while_they_fit():
    # Header 1 + 50 + 8 + 1 of 60; 30 does not fit and is passed over.
    context = build([memory("m1", 50), memory("m2", 30), memory("m3", 8), memory("m4", 1)], 60)
    assert lines(context) == {
        "header": ("kept", 1, 1, ""),
        "m1": ("kept", 50, 50, ""),
        "m2": ("dropped", 30, 0, "no room: needs 30, 9 left"),
        "m3": ("kept", 8, 8, ""),
        "m4": ("kept", 1, 1, ""),
    }


def test_the_header_is_paid_for_with_the_first_memory():
    context = build([memory("m1", 60), memory("m2", 59)], 60)
    assert lines(context)["m1"] == ("dropped", 60, 0, "no room: needs 61, 60 left (1 of it for the header)")
    assert lines(context)["m2"] == ("kept", 59, 59, "")


def test_a_memory_of_5000_tokens_with_200_left():
    context = build([memory("m1", 5000), memory("m2", 10)], 200)
    assert lines(context)["m1"] == ("dropped", 5000, 0, "no room: needs 5001, 200 left (1 of it for the header)")
    assert lines(context)["m2"][0] == "kept"
    assert context.tokens == 14


def test_the_report_has_similarity_and_rank():
    context = build([memory("m1"), memory("m2", pinned=True)], 60)
    details = {line.item: line.details for line in context.report.lines if line.item in ("m1", "m2")}
    made = {name: one.pop("made") for name, one in ((id, dict(found)) for id, found in details.items())}
    assert made == {"m1": "2026-01-01T00:00:01+00:00", "m2": "2026-01-01T00:00:02+00:00"}
    assert details["m2"] == {"rank": 1, "similarity": pytest.approx(0.999), "pinned": True, "made": made["m2"]}
    assert details["m1"] == {"rank": 2, "similarity": pytest.approx(0.998), "made": made["m1"]}


def test_a_pinned_memory_comes_before_all_others():
    context = build([memory("m1", 6), memory("m2", 6), memory("m3", 6, pinned=True)], 13)
    assert {id: line[0] for id, line in lines(context).items()} == {
        "header": "kept",
        "m3": "kept",
        "m1": "kept",
        "m2": "dropped",
    }


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(
    ("actions", "redundant"),
    [
        pytest.param(["a2"], True, id="one action of history"),
        pytest.param(["a2", "a3"], True, id="two of history"),
        pytest.param(["a3", "last"], True, id="the last action is in the context too"),
        pytest.param(["last"], True, id="the last action alone"),
        pytest.param(["a1", "a2"], False, id="one is not in the context"),
        pytest.param(["a1"], False, id="none is in the context"),
        pytest.param(["gone", "a2"], False, id="one is not in the log"),
        pytest.param([], False, id="written by hand"),
        pytest.param(["a2", "c", "a3"], True, id="a continue has no text that could be missing"),
    ],
)
def test_a_memory_whose_actions_all_stand_in_the_context_is_redundant(actions, redundant, pinned):
    # Dynamic has 40: history's 30 are a2 and a3; a1 does not fit at all.
    log = [Action("a1", "output", words(50)), Action("a2", "output", words(10))]
    log += [Action("c", "continue"), Action("a3", "output", words(10))]
    context = build([memory("m1", 2, *actions, pinned=pinned)], 40, *log)
    assert lines(context).get("m1") == (("dropped", 2, 0, REDUNDANT) if redundant else ("kept", 2, 2, ""))
    assert ("Memories:" in context.text) is not redundant


def test_a_redundant_memory_leaves_its_room_to_the_next():
    log = [Action("a1", "output", words(10))]
    context = build([memory("m1", 20, "a1"), memory("m2", 25)], 40, *log)
    assert lines(context)["m2"] == ("kept", 25, 25, "")


def test_in_the_context_they_stand_in_story_order():
    log = [Action(f"a{n}", "output", words(90)) for n in range(1, 10)]
    memories = [
        memory("late", 1, "a7", "a8"),
        memory("early", 1, "a1", "a2"),
        memory("middle", 1, "a4", "a1"),  # its first source action is a4
        memory("pinned", 1, "a9", pinned=True),
        memory("again", 1, "a1"),
    ]
    context = build(memories, 40, *log)
    assert context.text == "Memories:\nearly\nagain\nmiddle\nlate\npinned\nRecent Story:\ngo"


def test_memories_from_the_same_place_stand_by_time_made_whatever_their_rank():
    bank = RankedBank.of(memory(f"m{n}", 1, "a1") for n in range(1, 4))
    backwards = RankedBank(tuple(reversed(bank.memories)))
    adventure = Adventure([Action("a1", "output", words(90)), Action("last", "output", "go")])
    context = assemble(adventure, backwards, Settings(43, WORDS))
    assert context.text == "Memories:\nm1\nm2\nm3\nRecent Story:\ngo"
    assert [id for id in lines(context) if id != "header"] == ["m3", "m2", "m1"]


@dataclass
class Watched:
    """A bank that tells what it was asked."""

    inner: RankedBank
    queries: list[str]

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        ranking: str = "hybrid",
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        retellings: bool = False,
    ) -> list[Recalled]:
        self.queries.append(query)
        return self.inner.search(query, limit=limit, pinned_first=pinned_first)


def test_the_query_is_the_text_of_the_last_action():
    bank = Watched(RankedBank.of([memory("m1")]), [])
    log = [Action("a1", "output", "A gate."), Action("a2", "do", "ask for the key"), Action("a3", "continue")]
    assemble(Adventure(log), bank, Settings(50, WORDS))
    assert bank.queries == ["ask for the key"]


@pytest.mark.parametrize(
    "log", [[], [Action("a1", "continue")], [Action("a1", "do", " ")]], ids=["none", "continue", "blank"]
)
def test_without_a_last_action_no_memory_is_ranked(log):
    bank = Watched(RankedBank.of([memory("m1")]), [])
    context = assemble(Adventure(log, front_memory="front"), bank, Settings(50, WORDS))
    assert bank.queries == []
    assert context.text == "front"


@pytest.mark.parametrize("off", ["document", "call"])
def test_with_the_bank_off_nothing_is_recalled(off):
    bank = Watched(RankedBank.of([memory("m1")]), [])
    adventure = Adventure([Action("a1", "output", "go")], memories=(memory("m1"),), memory_bank=off == "call")
    context = assemble(adventure, None if off == "call" else bank, Settings(50, WORDS))
    assert bank.queries == []
    assert lines(context) == {}
    assert context.report.parts["memory_bank"].allowed == 0


def test_how_many_are_considered_is_a_setting():
    assert len(lines(build([memory(f"m{n}") for n in range(20)], 60, memory_candidates=5))) == 5 + 1
    assert len(lines(build([memory(f"m{n}") for n in range(20)], 60))) == 20 + 1


def test_identical_texts_are_told_apart_by_id():
    context = build([replace(memory("m1"), text="same"), replace(memory("m2"), text="same")], 60)
    assert list(lines(context)) == ["header", "m1", "m2"]
    assert context.text == "Memories:\nsame\nsame\nRecent Story:\ngo"


@pytest.mark.parametrize("text", ["", " \n "])
def test_a_memory_with_nothing_in_it_leaves_no_blank_line(text):
    context = build([NewMemory(text, "m1")], 60)
    assert context.text == "Recent Story:\ngo"


def test_the_ids_to_be_counted_as_used_are_those_in_the_context() -> None:
    context = build([memory("m1", 3), memory("m2", 50), memory("m3", 2, pinned=True)], 20)
    assert context.recalled == ("m3", "m1")
    assert build([], 20).recalled == ()
