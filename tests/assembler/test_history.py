"""History: whole actions, newest first, unbroken, and the anchor of the cache-friendly layout (SPEC.md 4, 5)."""

import itertools
import random
import re
import time

import pytest

from assembler import Action, ActionLog, Adventure, AssembledContext, Settings, StoryCard, assemble
from memorybank.memory import NewMemory
from memorybank.tokenizer import open_tokenizer
from tests.support.banks import RankedBank
from tests.support.words import CountedWords, Words

WORDS = Words()


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


def log(*sizes: int) -> list[Action]:
    """Actions a1, a2, … of so many words each, oldest first."""
    return [Action(f"a{n}", "output", words(size, f"a{n}")) for n, size in enumerate(sizes, start=1)]


def build(actions: list[Action], room: int, *, anchor: str | None = None, step: int = 512) -> AssembledContext:
    """Assemble with `room` tokens for History alone, in the cache-friendly layout."""
    size = room + 2 + WORDS.count(actions[-1].text)
    return assemble(
        Adventure(actions), None, Settings(size, WORDS, layout="cache_friendly", anchor_step=step), anchor=anchor
    )


def kept(context: AssembledContext) -> list[str]:
    """Ids of the actions kept, oldest first."""
    lines = [line for line in context.report.lines if line.section == "history" and line.verdict == "kept"]
    return [line.item for line in reversed(lines)]


def history(context: AssembledContext) -> list[tuple[str, str, int, int, str]]:
    return [
        (line.item, line.verdict, line.offered, line.used, line.reason)
        for line in context.report.lines
        if line.section == "history"
    ]


@pytest.mark.parametrize(
    ("room", "expected"),
    [(0, []), (9, []), (10, ["a4"]), (15, ["a3", "a4"]), (34, ["a3", "a4"]), (35, ["a2", "a3", "a4"]), (36, None)],
)
@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
def test_newest_first_and_unbroken(room, expected, layout):
    # Oldest first 1, 20, 5, 10 words and the last action.
    actions = log(1, 20, 5, 10, 1)
    context = assemble(Adventure(actions), None, Settings(room + 3, WORDS, layout=layout))
    assert kept(context) == (["a1", "a2", "a3", "a4"] if expected is None else expected)
    assert context.text == "\n".join(["Recent Story:", *(a.text for a in actions if a.id in kept(context)), "a5"])


def test_the_report_lists_every_action_kept_and_the_first_that_did_not_fit():
    assert history(build(log(1, 20, 5, 10, 1), 15)) == [
        ("a4", "kept", 10, 10, ""),
        ("a3", "kept", 5, 5, ""),
        ("a2", "dropped", 20, 0, "no room: needs 20, 0 left"),
    ]


def test_the_last_action_is_no_history_and_after_a_continue_it_is_the_newest_output():
    actions = [Action("a1", "do", "look"), Action("a2", "output", "A gate."), Action("a3", "continue")]
    context = build(actions, 100)
    assert context.text == "Recent Story:\n> look\nA gate."
    assert kept(context) == ["a1"]


def test_actions_without_text_stand_nowhere():
    actions = [Action("a1", "start", "One."), Action("a2", "continue"), Action("a3", "do", " \r\n ")]
    actions += [Action("a4", "output", "Two."), Action("a5", "do", "")]
    context = build(actions, 100)
    assert context.text == "Recent Story:\nOne.\nTwo."
    assert [line[0] for line in history(context)] == ["a1"]


@pytest.mark.parametrize("room", [50, 77, 400])
def test_identical_texts_are_told_apart_by_id(room):
    actions = [Action(f"a{n}", "output", "You wait.") for n in range(1, 51)]
    context = build(actions, room)
    fit = min(49, room // 2)
    assert kept(context) == [f"a{n}" for n in range(50 - fit, 50)]
    assert context.text.count("You wait.") == fit + 1


def test_30_actions_and_40_memories_at_400_tokens():
    actions = [Action(f"a{n}", "output", f"Part {n}: " + "the wolf runs on. " * 5) for n in range(1, 31)]
    bank = RankedBank.of(NewMemory(f"Memory {n} of the wolf in the hills.", f"m{n}") for n in range(1, 41))
    context = assemble(Adventure(actions), bank, Settings(400))
    assert context.tokens == open_tokenizer().count(context.text) <= 400
    assert context.text.endswith("\n" + actions[-1].text.strip())
    numbers = [int(number) for number in re.findall(r"Part (\d+):", context.text)]
    assert numbers == list(range(numbers[0], 31))
    assert len(numbers) > 1
    assert "Memories:\nMemory 1 " in context.text


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
def test_assembling_leaves_its_input_as_it_is(layout):
    actions = log(1, 20, 5, 10, 1)
    adventure = Adventure(actions, (StoryCard("c1", ["a5"], "x"),), memories=(NewMemory("m"),))
    bank = RankedBank.of(adventure.memories)
    before = repr((adventure, list(adventure.actions), bank))
    contexts = [assemble(adventure, bank, Settings(30, WORDS, layout=layout)).to_dict() for _ in range(3)]
    assert repr((adventure, list(adventure.actions), bank)) == before
    assert contexts[0] == contexts[1] == contexts[2]


def test_a_long_log_is_not_read_to_its_end():
    counted = CountedWords()
    actions = [Action(f"a{n}", "output", f"{n} goes") for n in range(100_000)]
    adventure = Adventure(actions)
    began = time.process_time()
    assemble(adventure, None, Settings(100, counted))
    assert time.process_time() - began < 5
    assert counted.texts < 100


def test_a_huge_action_ends_history_at_2000_tokens():
    huge = ("You go on and on. " * 25_000)[:437_595]
    actions = [Action("a1", "output", "Old."), Action("a2", "output", huge), Action("a3", "do", "go")]
    began = time.process_time()
    context = assemble(Adventure(actions), None, Settings(2000))
    assert time.process_time() - began < 5
    assert context.text == "Recent Story:\n> go"
    assert [line[:2] for line in history(context)] == [("a2", "dropped")]


# The anchor.


def test_the_classic_layout_has_no_anchor_and_ignores_one():
    adventure = Adventure(log(5, 5, 5, 5, 1))
    without = assemble(adventure, None, Settings(13, WORDS))
    assert without.anchor is None
    assert assemble(adventure, None, Settings(13, WORDS), anchor="a3").to_dict() == without.to_dict()


@pytest.mark.parametrize(("room", "anchor"), [(20, "a1"), (19, "a2"), (5, "a4"), (4, None)])
def test_the_anchor_is_the_first_action_of_history(room, anchor):
    assert build(log(5, 5, 5, 5, 1), room).anchor == anchor


@pytest.mark.parametrize("anchor", ["gone", "", "a6", "A2", "a5"], ids=lambda id: id or "empty")
def test_an_unknown_anchor_is_as_none_filled_exactly(anchor):
    # a5 is the last action: after an undo the anchor may stand there, and is no history.
    actions = log(5, 5, 5, 5, 1)
    assert build(actions, 15, anchor=anchor).to_dict() == build(actions, 15).to_dict()
    assert kept(build(actions, 15, anchor=anchor)) == ["a2", "a3", "a4"]


def test_none_is_filled_exactly_as_the_classic_layout_is():
    adventure = Adventure(log(7, 3, 9, 5, 5, 5, 1))
    for size in range(3, 50):
        new = assemble(adventure, None, Settings(size, WORDS, layout="cache_friendly"))
        assert kept(new) == kept(assemble(adventure, None, Settings(size, WORDS)))


@pytest.mark.parametrize("room", [10, 12, 15, 20, 1000])
def test_the_anchor_is_kept_for_as_long_as_it_fits(room):
    context = build(log(5, 5, 5, 5, 1), room, anchor="a3")
    assert kept(context) == ["a3", "a4"]
    assert context.anchor == "a3"
    assert history(context)[2][:4] == ("a2", "dropped", 5, 0)
    assert "anchor" in history(context)[2][4]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(1, ["a2", "a3", "a4", "a5", "a6"], id="1: what is over is enough"),
        pytest.param(5, ["a2", "a3", "a4", "a5", "a6"], id="5: exactly one action"),
        pytest.param(6, ["a3", "a4", "a5", "a6"], id="6: whole actions only"),
        pytest.param(10, ["a3", "a4", "a5", "a6"], id="10: exactly two"),
        pytest.param(11, ["a4", "a5", "a6"], id="11: three"),
    ],
)
def test_where_it_no_longer_fits_it_moves_on_by_at_least_the_step(step, expected):
    context = build(log(5, 5, 5, 5, 5, 5, 1), 29, anchor="a1", step=step)  # 30 words and room for 29
    assert kept(context) == expected
    assert context.anchor == expected[0]


def test_the_step_is_512_by_default():
    actions = log(*[100] * 20, 1)
    context = build(actions, 1999, anchor="a1")
    assert context.anchor == "a7"  # 600 tokens on: five actions would be 500


@pytest.mark.parametrize("size", [0, 3, 40], ids="{} words in the bank".format)
@pytest.mark.parametrize("seed", range(3))
def test_over_40_turns_the_beginning_of_the_prompt_is_stable(seed, size):
    chance = random.Random(seed)
    step, context_size = 60, 400
    settings = Settings(context_size, WORDS, layout="cache_friendly", anchor_step=step)
    bank = RankedBank.of(NewMemory(words(size, f"m{n}"), f"m{n}") for n in range(3)) if size else None
    adventure = Adventure(
        [Action("a0", "start", words(30, "start"))], ai_instructions="Be kind.", plot_essentials="A wolf."
    )
    previous: AssembledContext | None = None
    moved, stable = 0, 0
    for turn in range(1, 41):
        adventure = adventure.with_actions(
            [
                Action(f"d{turn}", "do", words(chance.randint(1, 12), f"d{turn}")),
                Action(f"o{turn}", "output", words(chance.randint(5, 40), f"o{turn}")),
            ]
        )
        context = assemble(adventure, bank, settings, anchor=previous.anchor if previous else None)
        assert context.tokens <= context_size
        beginning = through_history(context, adventure.actions)
        if previous is not None and previous.anchor is not None:
            if context.anchor == previous.anchor:
                stable += 1
                assert context.text.startswith(through_history(previous, adventure.actions))
                assert beginning.startswith(through_history(previous, adventure.actions))
            else:
                moved += 1
                assert distance(adventure.actions, previous.anchor, context.anchor) >= step
                if not size:  # nothing but history: it moves on only where the old beginning does not fit
                    whole = distance(adventure.actions, previous.anchor, f"o{turn}")
                    assert whole > context_size - context.report.parts["required"].used
        previous = context
    assert moved >= 2  # it was put to the test
    assert stable > moved


def through_history(context: AssembledContext, actions: ActionLog) -> str:
    """The context's text up to the end of its History."""
    newest = kept(context)[-1]
    action = actions[actions.position(newest)]
    end = context.text.index(action.text) + len(action.text)
    return context.text[:end]


def distance(actions: ActionLog, old: str, new: str) -> int:
    """Tokens from one action to another; what was done has `>` before it."""
    between = itertools.islice(actions, actions.position(old), actions.position(new))
    return sum(WORDS.count(action.text) + (action.kind == "do") for action in between)


def test_an_anchor_that_flows_back_in_with_what_the_memories_leave_is_kept():
    # Room 100: the memories are sure of 25 and use 6. History had 90 on the previous turn and still has.
    actions = log(*[10] * 9, 1)
    settings = Settings(103, WORDS, layout="cache_friendly", anchor_step=20)
    bank = RankedBank.of([NewMemory(words(5, "m"), "m1")])
    first = assemble(Adventure(actions), bank, settings)
    assert first.anchor == "a1"
    assert assemble(Adventure(actions), bank, settings, anchor="a1").to_dict()["text"] == first.text


def test_the_same_turn_again_keeps_its_anchor():
    # A retry: the log is the same and the anchor is handed back, so the old beginning still fits. Room 100; the
    # memories are sure of 25, history of 75; m1 (11 with the header) goes in and m2 (29) does not, so history goes on
    # to a1 with 85. That it was taken in step 4 must not let m2 push it out now.
    actions = log(15, *[10] * 7, 1)
    settings = Settings(103, WORDS, layout="cache_friendly", anchor_step=20)
    bank = RankedBank.of([NewMemory(words(10, "m1"), "m1"), NewMemory(words(29, "m2"), "m2")])
    first = assemble(Adventure(actions), bank, settings)
    assert first.anchor == "a1"
    assert first.report.parts["history"].used == 85
    again = assemble(Adventure(actions), bank, settings, anchor=first.anchor)
    assert again.anchor == "a1"
    assert again.text == first.text
