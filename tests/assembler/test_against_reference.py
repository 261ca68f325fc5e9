"""`assemble` against a second implementation of SPEC.md, built apart from it (tests/support/reference.py)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from assembler import Action, Adventure, ContextTooSmallError, Settings, StoryCard, assemble
from memorybank.memory import NewMemory
from tests.support import strategies_reference as strategies
from tests.support.banks import RankedBank
from tests.support.reference import reference_assemble

FACTOR = int(os.environ.get("REFERENCE_FACTOR", "1"))
"""How many times the examples that are run by default."""

slowly = settings(
    deadline=None,
    database=None,
    derandomize=os.environ.get("REFERENCE_FACTOR") is None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # no shrinking: the reference is so slow that it takes many minutes
)


def both(
    adventure: Adventure, bank: RankedBank | None, how: Settings, anchor: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return what `assemble` and the reference make of it, or None if both refuse it alike."""
    try:
        expected = reference_assemble(adventure, bank, how, anchor)
    except ContextTooSmallError as error:
        refusal = str(error)
    else:
        return assemble(adventure, bank=bank, settings=how, anchor=anchor).to_dict(), expected
    with pytest.raises(ContextTooSmallError) as refused:
        assemble(adventure, bank=bank, settings=how, anchor=anchor)
    assert str(refused.value) == refusal
    return None


def plain_lines(report: dict[str, Any], anchored: bool = False) -> list[tuple[Any, ...]]:
    """The lines of a report, without the details of cards and memories, sorted: SPEC.md gives them no order.

    Free are, with an anchor, the words for the first action that is left out; and, if no text always goes in, whether
    the offered tokens of a section that is left out count a line end.
    """
    always = any(line["section"] in ("front_memory", "last_action") for line in report["lines"])
    return sorted(
        (
            line["section"],
            line["item"],
            line["verdict"],
            line["offered"] if always or line["used"] else -1,
            line["used"],
            "" if anchored and line["section"] == "history" else line["reason"],
        )
        for line in report["lines"]
    )


def assert_equals_reference(
    adventure: Adventure, bank: RankedBank | None, how: Settings, anchor: str | None = None
) -> dict[str, Any] | None:
    """Hold what `assemble` makes of it against the reference."""
    results = both(adventure, bank, how, anchor)
    if results is None:
        event("too small")
        return None
    found, expected = results
    for name in ("text", "messages", "tokens", "anchor"):
        assert found[name] == expected[name], name
    anchored = anchor is not None
    assert plain_lines(found["report"], anchored) == plain_lines(expected["report"], anchored)
    for name in ("tokenizer", "layout", "context_size", "required_limit", "parts", "cards_not_matched"):
        assert found["report"][name] == expected["report"][name], name
    assert sum(line["used"] for line in found["report"]["lines"]) == found["tokens"] <= how.context_size
    return found


@settings(slowly, max_examples=150 * FACTOR)
@given(strategies.adventures(), strategies.settings())
def test_one_turn(adventure_and_bank: tuple[Adventure, RankedBank | None], how: Settings) -> None:
    adventure, bank = adventure_and_bank
    assert_equals_reference(adventure, bank, how)


@settings(slowly, max_examples=40 * FACTOR)
@given(st.data())
def test_many_turns(data: st.DataObject) -> None:
    adventure, bank = data.draw(strategies.adventures(10))
    how = data.draw(strategies.settings("cache_friendly"))
    anchor: str | None = None
    for turn in range(data.draw(st.integers(2, 6))):
        found = assert_equals_reference(adventure, bank, how, anchor)
        if found is not None:
            anchor = found["anchor"]
        if data.draw(st.integers(0, 5)) == 0:  # undo
            adventure = replace(adventure, actions=list(adventure.actions)[:-2])  # type: ignore[arg-type]
        adventure = adventure.with_actions(data.draw(strategies.actions(3, f"t{turn}-")))


@settings(slowly, max_examples=40 * FACTOR)
@given(strategies.adventures(), strategies.settings(), st.text("acgtm1234567890-", max_size=3))
def test_any_anchor(adventure_and_bank: tuple[Adventure, RankedBank | None], how: Settings, anchor: str) -> None:
    adventure, bank = adventure_and_bank
    assert_equals_reference(adventure, bank, how, anchor)


@settings(slowly, max_examples=40 * FACTOR)
@given(strategies.components(), strategies.settings(), st.integers(1, 150))
def test_components_alone(components: dict[str, str], how: Settings, size: int) -> None:
    components.pop("front_memory", None)
    assert_equals_reference(Adventure(**components), None, replace(how, context_size=size))


# What was found by the tests above, one by one.


def story(*texts: str) -> list[Action]:
    return [Action(f"a{number}", "output", text) for number, text in enumerate(texts, start=1)]


@pytest.mark.parametrize(
    "text",
    [
        "The gate opens.  slowly, the guard looks at them all and says nothing.",
        "They went on.\n\nso did the rain, and so did the night and the wolves.",
        "He asked: Is it I? Then he went out and it was night and it was cold.",
        "What a plan B! Then they went out and it was night and it was cold.",
        "He said (and meant it.) Now they are here",
        "It rained.) Now we go on and on and on again",
        "It rained.”’) Now we go on and on and on again",
        "„Geh.“ Dann ging sie hinaus in die kalte Nacht und kam nicht zurück.",
        "‹Viens.› Puis elle sortit dans la nuit froide et ne revint pas.",
        '他说："走。"然后他们在夜里离开了村子再也没有回来',
        "【注意。】然后他们在夜里离开了村子再也没有回来",
        "Mr. Smith met Dr. J. R. Jones and St. George in the old town hall",
        "Wait... what is that? A wolf! Run?! Run to the gate… now",
    ],
)
def test_cut(text: str) -> None:
    for size in range(1, 40):
        assert_equals_reference(
            Adventure(ai_instructions=text), None, Settings(context_size=size, required_percent=100)
        )


def test_nothing_was_cut_when_what_always_goes_in_is_over_the_limit() -> None:
    adventure = Adventure(actions=story("The wolf waits at the gate."), authors_note="Dark.", plot_essentials="Mud.")
    assert_equals_reference(adventure, None, Settings(context_size=12))


def test_equal_scores_are_equal() -> None:
    """2/3 + 1/5 is 1/2 + 1/5 + 1/6, so the card with the more recent mention comes first."""
    newest_first = ["Rain.", "garm", "fenrir fenrir", "Mud.", "garm fenrir", "garm", "Fog."]
    cards = (StoryCard("c1", ("fenrir",), "A wolf."), StoryCard("c2", ("garm",), "A dog."))
    adventure = Adventure(actions=story(*reversed(newest_first)), story_cards=cards)  # type: ignore[arg-type]
    assert_equals_reference(adventure, None, Settings(context_size=4096))


@pytest.mark.parametrize("around", ["", "é "])
@pytest.mark.parametrize("trigger", ["gate\nwolf", "gate\r\nwolf"])
@pytest.mark.parametrize("text", ["The gate\nwolf", "The gate\r\nwolf", "The gate\rwolf"])
def test_line_ends_in_triggers(around: str, trigger: str, text: str) -> None:
    cards = (StoryCard("c1", (trigger,), "A wolf."),)
    assert_equals_reference(Adventure(actions=story(around + text), story_cards=cards), None, Settings())  # type: ignore[arg-type]


def test_spaces_around_it_do_not_make_a_letter_a_name() -> None:
    cards = (
        StoryCard("c1", (" a ",), "A letter.", match="substring"),
        StoryCard("c2", ("Fenrir",), "A wolf."),
    )
    text = "Fenrir saw a cat and a dog and a gate."
    assert_equals_reference(Adventure(actions=story(text), story_cards=cards), None, Settings())  # type: ignore[arg-type]


def test_the_anchor_stays_while_it_fits_with_what_the_memories_leave() -> None:
    """Shares: memories 25 %, and the only memory does not fit what history leaves; so history has the room."""
    log = story(*(f"The wolf came nearer, it was night number {number}." for number in range(1, 9)))
    bank = RankedBank.of([NewMemory("Mara hid the silver key under the chapel floor. " * 4, "m1")])
    adventure = Adventure(actions=log)  # type: ignore[arg-type]
    for size in range(20, 140):
        how = Settings(context_size=size, layout="cache_friendly", anchor_step=30)
        for anchor in (None, "a1", "a4"):
            assert_equals_reference(adventure, bank, how, anchor)
