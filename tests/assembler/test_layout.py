"""Golden contexts: the whole text, messages and report of small adventures, in both layouts (SPEC.md section 5)."""

import re
from dataclasses import replace

import pytest

from assembler import Action, Adventure, AssembledContext, Message, Settings, StoryCard, assemble
from memorybank.memory import NewMemory
from tests.support.banks import RankedBank
from tests.support.words import Words

WORDS = Words()

ADVENTURE = Adventure(
    actions=[
        Action("a1", "start", "You stand before the black gate.\r\n"),
        Action("a2", "do", "knock"),
        Action("a3", "output", "  Nobody answers.\n\nThe wind howls."),
        Action("a4", "say", "Fenrir, are you there?"),
        Action("a5", "output", "A wolf growls behind the gate."),
        Action("a6", "do", "> draw the sword"),
        Action("a7", "continue"),
    ],
    story_cards=(
        StoryCard("c1", "gate", "The gate is of black iron.", title="The gate"),
        StoryCard("c2", ["Fenrir", "wolf"], "Fenrir is a wolf.\nHe guards the gate.", notes="Do not tell."),
        StoryCard("c3", ["dragon"], "Dragons are asleep."),
    ),
    memories=(
        NewMemory("You found a silver key.", "m1", ("a0",)),
        NewMemory("Mara left for the north.", "m2"),
        NewMemory("You knocked at the gate.", "m3", ("a1", "a2")),
    ),
    ai_instructions="Write in the second person.\n",
    plot_essentials="You are a knight.",
    story_summary="You rode for days.",
    authors_note="Dark and terse.",
    front_memory="The sword glows.",
)

CLASSIC = """\
Write in the second person.
You are a knight.
World Lore:
Fenrir is a wolf.
He guards the gate.
The gate is of black iron.
Story Summary:
You rode for days.
Memories:
You found a silver key.
Mara left for the north.
Recent Story:
You stand before the black gate.
> knock
Nobody answers.

The wind howls.
> Fenrir, are you there?
A wolf growls behind the gate.
[Author's note: Dark and terse.]
> draw the sword
The sword glows."""

CACHE_FRIENDLY = """\
Write in the second person.
You are a knight.
Story Summary:
You rode for days.
Recent Story:
You stand before the black gate.
> knock
Nobody answers.

The wind howls.
> Fenrir, are you there?
A wolf growls behind the gate.
Memories:
You found a silver key.
Mara left for the north.
World Lore:
Fenrir is a wolf.
He guards the gate.
The gate is of black iron.
[Author's note: Dark and terse.]
> draw the sword
The sword glows."""

REQUIRED_LINES = [
    ("front_memory", "text", "kept", 3, 3, ""),
    ("last_action", "header", "kept", 2, 2, ""),
    ("last_action", "text", "kept", 4, 4, ""),
    ("authors_note", "text", "kept", 5, 5, ""),
    ("plot_essentials", "text", "kept", 4, 4, ""),
    ("ai_instructions", "text", "kept", 5, 5, ""),
    ("story_summary", "text", "kept", 6, 6, ""),
]
CARD_LINES = [
    # The share is over 600, so the window holds all six: Fenrir or wolf in a5 (1/2) and a4 (1/3), gate in a5 (1/2)
    # and a1 (1/6).
    ("story_cards", "header", "kept", 2, 2, ""),
    ("story_cards", "c2", "kept", 8, 8, ""),
    ("story_cards", "c1", "kept", 6, 6, ""),
]
HISTORY_LINES = [
    ("history", "a5", "kept", 6, 6, ""),
    ("history", "a4", "kept", 5, 5, ""),
    ("history", "a3", "kept", 5, 5, ""),
    ("history", "a2", "kept", 2, 2, ""),
    ("history", "a1", "kept", 6, 6, ""),
]
MEMORY_LINES = [
    ("memory_bank", "header", "kept", 1, 1, ""),
    ("memory_bank", "m1", "kept", 5, 5, ""),
    ("memory_bank", "m2", "kept", 5, 5, ""),
    ("memory_bank", "m3", "dropped", 5, 0, "already in history"),
]


def lines(context: AssembledContext) -> list[tuple[str, str, str, int, int, str]]:
    return [
        (line.section, line.item, line.verdict, line.offered, line.used, line.reason) for line in context.report.lines
    ]


def with_bank(adventure: Adventure, **settings: object) -> AssembledContext:
    # m2 has no source action in the log and m1 none either: both stand at the beginning, by time made.
    return assemble(adventure, RankedBank.of(adventure.memories), Settings(tokenizer=WORDS, **settings))


@pytest.mark.parametrize(("layout", "text"), [("classic", CLASSIC), ("cache_friendly", CACHE_FRIENDLY)])
def test_everything_fits(layout, text):
    context = with_bank(ADVENTURE, layout=layout)
    assert context.text == text
    system, _, user = text.partition("\n")
    assert context.messages == (Message("system", system), Message("user", user))
    assert lines(context) == REQUIRED_LINES + CARD_LINES + HISTORY_LINES + MEMORY_LINES
    assert context.tokens == len(text.split()) == 80
    assert context.anchor == (None if layout == "classic" else "a1")
    assert context.report.cards_not_matched == 1
    assert context.report.layout == layout
    details = {line.item: line.details for line in context.report.lines if line.details}
    assert details["c2"] == {"trigger": "wolf", "action": "a5", "score": pytest.approx(1 / 2 + 1 / 3, abs=1e-6)}
    assert details["c1"] == {"trigger": "gate", "action": "a5", "score": pytest.approx(1 / 2 + 1 / 6, abs=1e-6)}


@pytest.mark.parametrize(("layout", "text"), [("classic", CLASSIC), ("cache_friendly", CACHE_FRIENDLY)])
def test_with_the_bank_off(layout, text):
    context = assemble(ADVENTURE, None, Settings(tokenizer=WORDS, layout=layout))
    assert context.text == text.replace("Memories:\nYou found a silver key.\nMara left for the north.\n", "", 1)
    assert lines(context) == REQUIRED_LINES + CARD_LINES + HISTORY_LINES


def test_a_tight_one_in_the_classic_layout():
    # Required may have 28 of 40 and uses 9 + 5 + 4 + 5 = 23; Story Summary is cut to 3 words, 5 with its header,
    # so 28. left 12: cards 3 (no card with its header), history 12 − 0 − 3 = 9 (a5), memories 12 − 6 = 6 (m1).
    context = with_bank(replace(ADVENTURE, story_summary="You rode for many days."), context_size=40)
    assert context.text == (
        "Write in the second person.\nYou are a knight.\nStory Summary:\nYou rode for\n"
        "Memories:\nYou found a silver key.\n"
        "Recent Story:\nA wolf growls behind the gate.\n"
        "[Author's note: Dark and terse.]\n> draw the sword\nThe sword glows."
    )
    assert context.tokens == 40
    assert lines(context) == [
        *REQUIRED_LINES[:6],
        ("story_summary", "text", "trimmed", 7, 5, "over the required limit"),
        ("story_cards", "c2", "dropped", 8, 0, "no room: needs 10, 0 left (2 of it for the header)"),
        ("story_cards", "c1", "dropped", 6, 0, "no room: needs 8, 0 left (2 of it for the header)"),
        ("history", "a5", "kept", 6, 6, ""),
        ("history", "a4", "dropped", 5, 0, "no room: needs 5, 0 left"),
        ("memory_bank", "header", "kept", 1, 1, ""),
        ("memory_bank", "m1", "kept", 5, 5, ""),
        ("memory_bank", "m2", "dropped", 5, 0, "no room: needs 5, 0 left"),
        ("memory_bank", "m3", "dropped", 5, 0, "no room: needs 5, 0 left"),
    ]


def test_a_second_turn_in_the_cache_friendly_layout():
    # Without components or cards: header 2 + last action 4 + Front Memory 3; left 11 of 20.
    adventure = replace(
        ADVENTURE,
        story_cards=(),
        ai_instructions="",
        plot_essentials="",
        story_summary="",
        authors_note="",
    )
    first = assemble(adventure, None, Settings(20, WORDS, layout="cache_friendly", anchor_step=3))
    assert first.text == (
        "Recent Story:\n> Fenrir, are you there?\nA wolf growls behind the gate.\n> draw the sword\nThe sword glows."
    )
    assert first.anchor == "a4"
    longer = adventure.with_actions([Action("a8", "output", "It sings.")])
    second = assemble(longer, None, Settings(20, WORDS, layout="cache_friendly", anchor_step=3), anchor=first.anchor)
    # left 20 − 2 − 2 − 3 = 13; from a4 on it would be 5 + 6 + 4 = 15, so a4's 5 tokens go.
    assert second.text == (
        "Recent Story:\nA wolf growls behind the gate.\n> draw the sword\nIt sings.\nThe sword glows."
    )
    assert second.anchor == "a5"


ONE_SECTION = {
    "ai_instructions": ("text here", "ai_instructions", "text"),
    "plot_essentials": ("text here", "plot_essentials", "text"),
    "story_summary": ("Story Summary:\ntext here", "story_summary", "text"),
    "authors_note": ("[Author's note: text here]", "authors_note", "text"),
    "front_memory": ("text here", "front_memory", "text"),
}


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
@pytest.mark.parametrize("component", ONE_SECTION)
def test_one_component_alone_is_there_and_in_the_report(component, layout):
    text, section, item = ONE_SECTION[component]
    context = assemble(Adventure(**{component: "text here"}), RankedBank(()), Settings(tokenizer=WORDS, layout=layout))
    count = len(text.split())
    assert context.text == text
    assert lines(context) == [(section, item, "kept", count, count, "")]
    assert context.tokens == count
    role = "system" if component == "ai_instructions" else "user"
    assert context.messages == (Message(role, text),)
    assert context.anchor is None


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
def test_one_action_alone(layout):
    context = assemble(
        Adventure([Action("a1", "say", "Hello.")]), RankedBank(()), Settings(tokenizer=WORDS, layout=layout)
    )
    assert context.text == "Recent Story:\n> Hello."
    assert lines(context) == [
        ("last_action", "header", "kept", 2, 2, ""),
        ("last_action", "text", "kept", 2, 2, ""),
    ]
    assert context.messages == (Message("user", context.text),)
    assert context.anchor is None


def test_history_alone_with_the_last_action():
    context = assemble(
        Adventure([Action("a1", "start", "One."), Action("a2", "do", "two")]), None, Settings(tokenizer=WORDS)
    )
    assert context.text == "Recent Story:\nOne.\n> two"


def test_story_cards_alone_with_the_last_action():
    cards = (StoryCard("c1", ["two"], "Lore."),)
    context = assemble(Adventure([Action("a2", "do", "two")], cards), None, Settings(tokenizer=WORDS))
    assert context.text == "World Lore:\nLore.\nRecent Story:\n> two"


def test_memories_alone_with_the_last_action():
    bank = RankedBank.of([NewMemory("Long ago.")])
    context = assemble(Adventure([Action("a2", "do", "two")]), bank, Settings(tokenizer=WORDS))
    assert context.text == "Memories:\nLong ago.\nRecent Story:\n> two"


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
def test_nothing_at_all(layout):
    context = assemble(Adventure(), RankedBank.of([NewMemory("m")]), Settings(tokenizer=WORDS, layout=layout))
    assert (context.text, context.messages, context.tokens, context.anchor) == ("", (), 0, None)
    assert context.report.lines == ()


@pytest.mark.parametrize("actions", [[], [Action("a1", "continue")], [Action("a1", "output", " \n")]], ids=len)
def test_without_an_action_with_text_there_is_no_last_action(actions):
    cards = (StoryCard("c1", ["e", "text", "front"], "Lore."),)
    adventure = replace(ADVENTURE, actions=actions, story_cards=cards)
    context = with_bank(adventure)
    assert context.text == (
        "Write in the second person.\nYou are a knight.\nStory Summary:\nYou rode for days.\n"
        "[Author's note: Dark and terse.]\nThe sword glows."
    )
    assert context.report.cards_not_matched == 1
    assert {line.section for line in context.report.lines} == {
        "front_memory",
        "authors_note",
        "plot_essentials",
        "ai_instructions",
        "story_summary",
    }


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
@pytest.mark.parametrize("left_out", ["ai_instructions", "plot_essentials", "front_memory", "authors_note"])
@pytest.mark.parametrize("size", [12, 30, 60, 4096])
def test_the_messages_joined_are_the_text(size, left_out, layout):
    context = with_bank(replace(ADVENTURE, **{left_out: ""}), context_size=size, layout=layout)
    assert "\n".join(message.content for message in context.messages) == context.text
    assert [message.role for message in context.messages] in (["system", "user"], ["user"])
    assert all(message.content for message in context.messages)


def test_nothing_says_none():
    context = assemble(Adventure([Action("a1", "start", "x"), Action("a2", "continue")], (StoryCard("c1", ["x"], ""),)))
    assert not re.search("none|null|undefined", context.text, re.IGNORECASE)


def test_front_memory_is_the_very_last_text():
    assert with_bank(ADVENTURE, layout="cache_friendly").text.endswith("\nThe sword glows.")
