"""Story Cards: which actions are looked at, what goes in, and in which order (SPEC.md section 4)."""

import time

import pytest

from assembler import Action, Adventure, AssembledContext, Settings, StoryCard, assemble
from assembler.table import render
from tests.support.words import Words

WORDS = Words()
REQUIRED = 3
"""`Recent Story:` is two words, and the last action one."""


def lore(words: int, name: str = "lore") -> str:
    return " ".join([name] * words)


def card(id: str, words: int = 1, trigger: str = "Mara", **fields: object) -> StoryCard:
    return StoryCard(id, [trigger], lore(words, id), **fields)


def build(
    cards: list[StoryCard], *, left: int, older: list[str] = (), last: str = "Mara", **settings: int
) -> AssembledContext:
    """Assemble with `left` tokens for Dynamic, and no memory bank."""
    actions = [Action(f"a{number}", "output", text) for number, text in enumerate([*older, last], start=1)]
    context_size = left + 2 + WORDS.count(last)
    return assemble(Adventure(actions, tuple(cards)), None, Settings(context_size, WORDS, **settings))


def lines(context: AssembledContext) -> dict[str, tuple[str, int, int, str]]:
    return {
        line.item: (line.verdict, line.offered, line.used, line.reason)
        for line in context.report.lines
        if line.section == "story_cards"
    }


def in_context(context: AssembledContext) -> list[str]:
    return [line.item for line in context.report.lines if line.section == "story_cards" and line.used]


def test_a_card_that_does_not_fit_is_passed_over_and_the_next_is_tried():
    # left 408 → share 102 = header 2 + 90 + 8 + 2; history has 306 and uses them all, so nothing flows back.
    cards = [card("c90", 90), card("c60", 60), card("c8", 8), card("c2", 2)]
    context = build(cards, left=408, older=[lore(50), lore(306)])
    assert lines(context) == {
        "header": ("kept", 2, 2, ""),
        "c90": ("kept", 90, 90, ""),
        "c60": ("dropped", 60, 0, "no room: needs 60, 0 left"),
        "c8": ("kept", 8, 8, ""),
        "c2": ("kept", 2, 2, ""),
    }
    assert context.report.parts["story_cards"].used == 102
    assert context.tokens == 411


def test_the_header_is_paid_for_with_the_first_card():
    # left 400 → share 100 = header 2 + 90 + 8: the card of 2 has no room any more.
    cards = [card("c90", 90), card("c60", 60), card("c8", 8), card("c2", 2)]
    context = build(cards, left=400, older=[lore(50), lore(300)])
    assert in_context(context) == ["header", "c90", "c8"]


def test_three_match_and_there_is_room_for_two():
    # left 40 → share 10 = header 2 + 4 + 4; history uses the other 30.
    cards = [card("c1", 4), card("c2", 4), card("c3", 4, trigger="mara")]
    context = build(cards, left=40, older=[lore(30), lore(30)])
    line = next(line for line in context.report.lines if line.item == "c3")
    assert line.to_dict() == {
        "section": "story_cards",
        "item": "c3",
        "verdict": "dropped",
        "offered": 4,
        "used": 0,
        "reason": "no room: needs 4, 0 left",
        "trigger": "mara",
        "action": "a3",
        "score": 1,
    }


def test_what_history_cannot_use_goes_to_cards_that_had_no_room():
    context = build([card("c1", 50), card("c2", 40)], left=92)  # share 23
    assert in_context(context) == ["header", "c1", "c2"]
    assert context.tokens == 95


def test_history_comes_before_cards_that_had_no_room():
    context = build([card("c1", 50)], left=92, older=[lore(41)])
    assert lines(context)["c1"] == ("dropped", 50, 0, "no room: needs 52, 51 left (2 of it for the header)")
    assert context.report.parts["history"].used == 41


def test_a_card_is_whole_or_absent():
    context = build([card("c1", 91)], left=92)
    assert context.text == "Recent Story:\nMara"
    whole = build([card("c1", 90)], left=92)
    assert whole.text == f"World Lore:\n{lore(90, 'c1')}\nRecent Story:\nMara"


def test_cards_stand_in_the_order_of_rank():
    cards = [card("one", trigger="wolf"), card("three", trigger="Mara"), card("two", trigger="gate")]
    context = build(cards, left=100, last="Mara saw Mara call Mara at the gate, the gate of the wolf")
    assert context.text.startswith("World Lore:\nthree\ntwo\none\nRecent Story:\n")
    assert in_context(context) == ["header", "three", "two", "one"]


def test_a_later_card_taken_in_step_4_still_stands_in_the_order_of_rank():
    # Share 10: c1 (30) is passed over, c2 (4) goes in; then c1 goes in with what is left, and stands first.
    context = build([card("c1", 30), card("c2", 4)], left=40)
    assert context.text == f"World Lore:\n{lore(30, 'c1')}\n{lore(4, 'c2')}\nRecent Story:\nMara"


@pytest.mark.parametrize(
    ("left", "window"),
    [
        pytest.param(40, 4, id="share 10"),
        pytest.param(2000, 4, id="share 500"),
        pytest.param(2003, 4, id="share 500, rounded down"),
        pytest.param(2004, 5, id="share 501"),
        pytest.param(2396, 5, id="share 599"),
        pytest.param(2400, 6, id="share 600"),
        pytest.param(3600, 9, id="share 900"),
        pytest.param(40_000, 100, id="share 10,000"),
    ],
)
@pytest.mark.parametrize("beyond", [0, 1], ids=["inside", "outside"])
def test_the_window_of_actions_that_are_looked_at(left, window, beyond):
    after = window - 1 + beyond  # actions behind the one with the trigger
    context = build([card("c1", trigger="wolf")], left=left, older=["wolf", *["walk"] * (after - 1)])
    assert context.report.cards_not_matched == beyond
    assert in_context(context) == ([] if beyond else ["header", "c1"])
    if not beyond:
        line = next(line for line in context.report.lines if line.item == "c1")
        assert line.details == {"trigger": "wolf", "action": "a1", "score": pytest.approx(1 / window, abs=1e-6)}


def test_actions_without_text_take_no_place_in_the_window():
    actions = [Action("a1", "output", "wolf"), *(Action(f"w{n}", "output", "walk") for n in range(3))]
    actions += [Action(f"c{n}", "continue") for n in range(9)] + [Action("e", "do", " \n ")]
    context = assemble(Adventure(actions, (card("c1", trigger="wolf"),)), None, Settings(50, WORDS))
    assert in_context(context) == ["header", "c1"]


@pytest.mark.parametrize("kind", ["start", "do", "say", "story", "output"])
@pytest.mark.parametrize("age", [0, 1, 3])
def test_actions_of_every_kind_are_looked_at(kind, age):
    actions = [Action("a1", kind, "wolf"), *(Action(f"w{n}", "output", "walk") for n in range(age))]
    context = assemble(Adventure(actions, (card("c1", trigger="wolf"),)), None, Settings(50, WORDS))
    assert in_context(context) == ["header", "c1"]


def test_only_actions_are_searched():
    adventure = Adventure(
        [Action("a1", "output", "Mara")],
        (StoryCard("c1", ["Mara"], "the wolf"), StoryCard("c2", ["wolf"], "grey", title="wolf", notes="wolf")),
        ai_instructions="wolf",
        plot_essentials="wolf",
        story_summary="wolf",
        authors_note="wolf",
        front_memory="wolf",
    )
    context = assemble(adventure, None, Settings(200, WORDS, list_unmatched=True))
    assert in_context(context) == ["header", "c1"]
    assert context.report.cards_waiting == {"c2": ("wolf",)}


def test_title_type_and_notes_never_reach_the_context():
    cards = [StoryCard("c1", ["Mara"], "entry", title="title", type="type", notes="notes")]
    assert build(cards, left=50).text == "World Lore:\nentry\nRecent Story:\nMara"


def test_cards_that_did_not_match_are_counted_and_listed_on_request():
    cards = [
        card("c1"),
        StoryCard("c2", "wolf, bear ", "x"),
        StoryCard("c3", ["Mara"], "x", enabled=False),
        StoryCard("c4", [], "x"),
    ]
    context = build(cards, left=50)
    assert context.report.cards_not_matched == 3
    assert context.report.cards_waiting is None
    assert "cards_waiting" not in context.report.to_dict()
    asked = build(cards, left=50, list_unmatched=True).report
    assert asked.to_dict()["cards_waiting"] == {"c2": ["wolf", "bear"], "c3": None, "c4": []}
    assert asked.to_dict()["card_window"] == 4
    table = [row.split() for row in render(asked).splitlines()]
    assert ["c3", "(switched", "off)"] in table
    assert ["c4", "(it", "has", "no", "trigger)"] in table


@pytest.mark.parametrize("entry", ["", " \n\t "])
def test_a_card_with_nothing_in_it_costs_nothing(entry):
    context = build([StoryCard("c1", ["Mara"], entry)], left=50)
    assert context.text == "Recent Story:\nMara"
    assert (context.tokens, context.report.parts["story_cards"].used) == (3, 0)


def test_a_huge_card_is_passed_over_at_once():
    cards = [StoryCard("c1", ["Mara"], ("Lore of the wolf. " * 4500)[:81_000]), card("c2", 5)]
    adventure = Adventure([Action("a1", "do", "Mara")], cards)
    began = time.process_time()
    context = assemble(adventure, None, Settings(2000))
    assert time.process_time() - began < 5
    assert in_context(context) == ["header", "c2"]
    assert lines(context)["c1"][0] == "dropped"


def test_105_matches_of_975_cards_at_100000_tokens():
    cards = tuple(StoryCard(f"c{n}", [f"being{n:03}"], f"Being {n} lives in the hills.") for n in range(975))
    text = " ".join(f"being{n:03}" for n in range(104, -1, -1))
    adventure = Adventure([Action("a1", "do", text)], cards)
    began = time.process_time()
    contexts = [assemble(adventure, None, Settings(100_000)) for _ in range(3)]
    assert time.process_time() - began < 5
    assert in_context(contexts[0]) == ["header", *(f"c{n}" for n in range(105))]
    assert contexts[0].report.cards_not_matched == 870
    assert contexts[0].to_dict() == contexts[1].to_dict() == contexts[2].to_dict()


def test_1589_triggers_on_one_card_and_a_huge_action_at_2000_tokens():
    triggers = [f"name{number}" for number in range(1589)]
    action = ("You walk on and name1588 waits. " * 14_000)[:437_595]
    adventure = Adventure(
        [Action("a1", "output", action), Action("a2", "do", "go")], (StoryCard("c1", triggers, "Lore."),)
    )
    began = time.process_time()
    context = assemble(adventure, None, Settings(2000))
    assert time.process_time() - began < 5
    assert in_context(context) == ["header", "c1"]
    assert context.text == "World Lore:\nLore.\nRecent Story:\n> go"
