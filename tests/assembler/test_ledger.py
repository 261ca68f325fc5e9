"""What is remembered of a log changes nothing: a log with a past gives what a new one of the same actions gives."""

import copy
import pickle
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from assembler import (
    Action,
    ActionLog,
    Adventure,
    AssembledContext,
    ContextTooSmallError,
    Settings,
    StoryCard,
    assemble,
)
from assembler.dynamic.ledger import CHUNK, MOST_LEDGERS
from assembler.report import Line
from memorybank.memory import NewMemory
from memorybank.tokenizer import open_tokenizer
from tests.support.banks import RankedBank
from tests.support.words import CountedWords, Words

TEXTS = (
    "You wait.",
    "/look",
    "A gate; the wolf //",
    "",
    "  ",
    "> go",
    "The wolf runs on.\n\nFar off, a bell.",
    "灯台守は",
)
KINDS = ("do", "say", "story", "output", "continue")
BANK = RankedBank.of(
    [
        NewMemory("The wolf is old.", "m1", actions=("s1", "s2")),
        NewMemory("/A bell.", "m2", actions=("t3",)),
        NewMemory("A gate.", "m3"),
    ]
)


def pickled(value: object) -> object:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - made right here


def given(adventure: Adventure, bank: RankedBank | None, settings: Settings, anchor: str | None) -> object:
    """All that a context says, or the error."""
    try:
        context = assemble(adventure, bank, settings, anchor=anchor)
    except ContextTooSmallError as error:
        return str(error)
    assert sum(line.used for line in context.report.lines) == context.tokens
    return context.to_dict(), [line.block for line in context.report.lines], context.recalled


def action(chance: random.Random, id: str) -> Action:
    kind = chance.choice(KINDS)
    return Action(id, kind, "" if kind == "continue" else chance.choice(TEXTS) + chance.choice(("", f" {id}")))


def changed(chance: random.Random, adventure: Adventure, turn: int) -> Adventure:
    """The adventure after something that happens in a game."""
    actions = list(adventure.actions)
    what = chance.randrange(10)
    if what < 5 or not actions:  # it goes on
        return adventure.with_actions(action(chance, f"t{turn}-{n}") for n in range(chance.randrange(1, 4)))
    place = chance.randrange(len(actions))
    if what == 5:  # undone
        return replace(adventure, actions=actions[: len(actions) - chance.randrange(3)])
    if what == 6:  # edited
        actions[place] = replace(actions[place], text="Edited.", kind="story")
    elif what == 7:  # inserted
        actions.insert(place, action(chance, f"i{turn}"))
    elif what == 8:  # deleted
        del actions[place]
    else:  # another action under the same id
        actions[place] = action(chance, actions[place].id)
    return replace(adventure, actions=actions)


@pytest.mark.parametrize("seed", range(40))
def test_a_log_with_a_past_gives_what_a_new_one_gives(seed):
    chance = random.Random(seed)
    start = [action(chance, f"s{n}") for n in range(chance.choice((0, 1, 5, 200)))]
    past = [Adventure(start, (StoryCard("c1", ["wolf"], "The wolf."),))]
    anchor = None
    for turn in range(60):
        # Now and then a version of long ago, which may share its storage with those that have grown from it.
        adventure = chance.choice(past) if chance.random() < 0.2 else past[-1]
        adventure = adventure if chance.random() < 0.2 else changed(chance, adventure, turn)
        past.append(adventure)
        settings = Settings(
            chance.choice((6, 20, 60, 200, 1000, 5000)),
            chance.choice(("o200k_base", "cl100k_base", "chars/4")),
            layout=chance.choice(("classic", "cache_friendly")),
            anchor_step=chance.choice((1, 30, 512)),
        )
        bank = chance.choice((None, BANK))
        new = replace(adventure, actions=list(adventure.actions))
        found = given(adventure, bank, settings, anchor)
        assert found == given(new, bank, settings, anchor)
        assert found == given(adventure, bank, settings, anchor)
        anchor = found[0]["anchor"] if isinstance(found, tuple) and chance.random() < 0.8 else anchor


def test_threads_that_play_one_story_on():
    start = Adventure([Action(f"s{n}", "output", f"Gate {n} is shut.") for n in range(400)])
    grown = [start]
    for n in range(200):
        grown.append(grown[-1].with_actions([Action(f"t{n}", "do", f"/open gate {n}" if n % 7 == 0 else f"go {n}")]))
    # A context of each length and size, made on a log of its own.
    work = [(number, size) for number in range(0, 201, 10) for size in (60, 700, 3000, 6000)]
    expected = {
        (number, size): given(Adventure(list(grown[number].actions)), None, Settings(size), None)
        for number, size in work
    }
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for seed in range(5):
            story = Adventure(list(start.actions))
            stories = [story]
            for added in grown[-1].actions[400:]:
                stories.append(stories[-1].with_actions([added]))
            order = random.Random(seed).sample(work, len(work))
            with ThreadPoolExecutor(8) as pool:
                adventures = [stories[number] for number, _ in order]
                found = pool.map(
                    lambda adventure, one: given(adventure, None, Settings(one[1]), None), adventures, order
                )
                assert dict(zip(order, found, strict=True)) == expected
    finally:
        sys.setswitchinterval(interval)


def test_what_was_read_is_not_counted_again():
    counted = CountedWords()
    adventure = Adventure([Action(f"s{n}", "output", f"{n} goes") for n in range(1000)])
    assemble(adventure, None, Settings(500, counted))
    for n in range(20):
        adventure = adventure.with_actions([Action(f"t{n}", "output", f"{n} comes")])
        before = counted.texts
        assemble(adventure, None, Settings(500, counted))
        assert counted.texts - before <= 3  # the new one as the last action, the one before it as history, the whole


def test_a_tokenizer_that_fails_leaves_nothing_half_done():
    class Failing(Words):
        fails = True

        def count(self, text: str) -> int:
            if self.fails and "a50" in text:
                raise ValueError("no count")
            return super().count(text)

    failing = Failing()
    adventure = Adventure([Action(f"a{n}", "output", f"a{n} goes") for n in range(100)])
    for _ in range(2):
        with pytest.raises(ValueError, match="no count"):
            assemble(adventure, None, Settings(1000, failing))
    failing.fails = False
    assert assemble(adventure, None, Settings(1000, failing)).text.count("goes") == 100


def test_what_an_interrupt_left_half_done_is_taken_back():
    adventure = Adventure([Action(f"a{n}", "output", f"/{n} goes") for n in range(100)])
    assemble(adventure, None, Settings(60))
    ledger = adventure.actions.ledgers[open_tokenizer()]
    for side in (ledger._older, ledger._newer):
        side.seams.append(len(side.texts))
        side.texts.append("half")
        side.places.append(3)
    adventure = adventure.with_actions([Action("b1", "output", "One."), Action("b2", "output", "Two.")])
    assert adventure.actions.ledgers == {open_tokenizer(): ledger}
    new = Adventure(list(adventure.actions))
    for size in (60, 1000):
        assert given(adventure, None, Settings(size), None) == given(new, None, Settings(size), None)


def test_ledgers_and_chunks_are_bounded():
    actions = ActionLog(Action(f"a{n}", "output", f"{n} goes") for n in range(10 * CHUNK))
    adventure = Adventure(actions)
    for _ in range(3 * MOST_LEDGERS):
        assemble(adventure, None, Settings(200, Words()))
    assert len(actions.ledgers) == MOST_LEDGERS
    words = Words()
    for n in range(40 * CHUNK):
        adventure = adventure.with_actions([Action(f"t{n}", "output", f"{n} goes")])
        assemble(adventure, None, Settings(6 * CHUNK, words))
    ledger = adventure.actions.ledgers[words]
    assert len(ledger._newer._chunks) + len(ledger._older._chunks) < 25


def long_context() -> AssembledContext:
    adventure = Adventure([Action(f"a{n}", "output", f"{n} goes") for n in range(500)])
    return assemble(adventure, BANK, Settings(600, Words()))


def test_lines_are_made_when_they_are_read_and_once():
    context = long_context()
    with ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)
        found = list(pool.map(lambda _: (barrier.wait(), context.report.lines)[1], range(8)))
    assert all(lines is found[0] for lines in found)
    assert isinstance(found[0], tuple)
    assert all(isinstance(line, Line) for line in found[0])


@pytest.mark.parametrize("read", [True, False])
def test_the_lines_of_a_section(read):
    report = long_context().report
    lines = report.lines if read else long_context().report.lines
    for section in ("memory_bank", "last_action", "history", "story_cards"):
        assert report.lines_of(section) == tuple(line for line in lines if line.section == section)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_of_a_report_is_equal_and_stands_alone(copied):
    report = long_context().report
    again = copied(report)
    assert again == report
    assert replace(report, lines=()).lines == ()
    assert "_unread" not in vars(again)
    with pytest.raises(AttributeError, match="nothing"):
        _ = report.nothing


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_of_a_log_has_no_ledger(copied):
    adventure = Adventure([Action(f"a{n}", "output", f"{n} goes") for n in range(10)])
    assemble(adventure.with_actions([Action("b", "output", "more")]), None, Settings(100))
    again = copied(adventure.actions)
    assert again == adventure.actions
    assert again.ledgers == {}
    assert again.append(Action("c", "output", "other")).position("b") is None
