"""Out and in again: equal as far as the format can hold it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler.action_log import Action, ActionLog
from assembler.adventure import MATCH_MODES, Adventure, StoryCard
from assembler.errors import AdventureError
from assembler.formats import FORMATS, export, import_bytes

# No characters that make a literal trigger look like a pattern to the other program.
WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="|{}[]()/#\\.*+?^$\r"), min_size=1, max_size=9
)
TRIGGERS = st.lists(WORDS.filter(lambda w: w == w.strip()), max_size=4, unique_by=str.casefold).map(tuple)
TEXTS = st.text(st.characters(exclude_characters="\r"), max_size=20).filter(lambda text: bool(text.strip()))
OPTIONAL = st.one_of(st.just(""), TEXTS)


@st.composite
def story_cards(draw: st.DrawFn) -> tuple[StoryCard, ...]:
    number = draw(st.integers(1, 4))
    return tuple(
        StoryCard(
            id=str(n),
            triggers=draw(TRIGGERS),
            entry=draw(TEXTS),
            title=draw(OPTIONAL),
            type=draw(OPTIONAL),
            match=draw(st.sampled_from(MATCH_MODES)),  # type: ignore[arg-type]
            notes=draw(OPTIONAL),
            enabled=n == 0 or draw(st.booleans()),
        )
        for n in range(number)
    )


def held(card: StoryCard, name: str) -> StoryCard:
    """The card as that format holds it."""
    target = FORMATS[name]
    notes = card.notes or (card.title if "title" not in target.holds else "")
    return replace(
        card,
        triggers=tuple(t for t in card.triggers if "commas" in target.holds or "," not in t),
        title=card.title if "title" in target.holds else "",
        type=card.type if "type" in target.holds else "",
        notes=notes if "notes" in target.holds else "",
        match=card.match if "match" in target.holds else target.matches,
        enabled=card.enabled if "enabled" in target.holds else True,
    )


WRITERS = [name for name, known in FORMATS.items() if known.save and "story_cards" in known.holds]
WITH_IDS = {"adventure", "aidungeon-worldinfo", "nativetavern-worldinfo", "sillytavern-worldinfo", "novelai-lorebook"}


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=40, deadline=None)
@given(cards=story_cards())
def test_cards_come_back(name: str, cards: tuple[StoryCard, ...]) -> None:
    expected = [held(card, name) for card in cards if card.enabled or "enabled" in FORMATS[name].holds]
    result = import_bytes(export(Adventure(story_cards=cards), name))
    found = [replace(card, extra={}) for card in result.adventure.story_cards]
    if name not in WITH_IDS:
        expected = [replace(card, id="") for card in expected]
        found = [replace(card, id="") for card in found]
    assert result.format == name
    assert found == expected
    assert not result.skipped


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=40, deadline=None)
@given(cards=story_cards(), title=OPTIONAL, essentials=OPTIONAL)
def test_what_came_from_a_file_is_written_the_same_again(
    name: str, cards: tuple[StoryCard, ...], title: str, essentials: str
) -> None:
    once = export(Adventure(story_cards=cards, title=title, plot_essentials=essentials), name)
    assert json.loads(export(import_bytes(once).adventure, name)) == json.loads(once)


@given(st.lists(st.sampled_from(["do", "output"]), max_size=5), st.text("abc ", min_size=1).filter(str.strip))
def test_kobold_actions_come_back(kinds: list[str], text: str) -> None:
    text = " ".join(text.split())
    log = [Action(f"a{n}", kind, text) for n, kind in enumerate(["start", *kinds], start=1)]  # type: ignore[arg-type]
    adventure = Adventure(actions=ActionLog(log), plot_essentials="M", authors_note="N")
    back = import_bytes(export(adventure, "kobold")).adventure
    assert (back.actions, back.plot_essentials, back.authors_note) == (adventure.actions, "M", "N")


@given(data=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
def test_no_bytes_whatsoever_break_the_import(data: bytes) -> None:
    for name in ("", "x.json", "x.jsonl", "memory.md"):
        with contextlib.suppress(AdventureError):
            assert import_bytes(data, name).imported


NAMES = [
    "keys",
    "key",
    "content",
    "text",
    "value",
    "entry",
    "comment",
    "constant",
    "forceActivation",
    "extensions",
    "id",
    "uid",
    "insertion_order",
]
NAMES += ["order", "insertionOrder", "selective", "keysecondary", "hidden", "contextConfig", "category", "name"]
TOP_NAMES = [
    "lorebookVersion",
    "spec",
    "data",
    "first_mes",
    "gamestarted",
    "worldinfo",
    "categories",
    "actions",
    "context",
    "world",
]
TOP_NAMES += [
    "characters",
    "first_story_block",
    "action_results",
    "prompt",
    "options",
    "storyContainerVersion",
    "lorebook",
]
TOP_NAMES += ["scenarioVersion", "content", "wifolders_d", "character_book", "firstMessage", "name"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)
VALUES = JSON | st.lists(st.text(max_size=3), max_size=3) | st.text(max_size=5)
ENTRIES = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8), max_size=3)


@given(entries=ENTRIES, top=st.dictionaries(st.sampled_from(TOP_NAMES), JSON, max_size=4))
def test_the_right_names_with_wrong_values_never_break_the_import(entries: list[Any], top: dict[str, Any]) -> None:
    for value in (entries, {"entries": entries} | top, {"worldinfo": entries, "gamestarted": 1} | top):
        with contextlib.suppress(AdventureError):
            adventure = import_bytes(json.dumps(value).encode()).adventure
            for name in WRITERS:
                assert isinstance(export(adventure, name), bytes), name
