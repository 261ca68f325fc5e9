"""Real files of players: the counts were verified by looking at the files.

They are test input beside the project and not part of it, so the tests skip where they are missing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assembler.errors import AdventureError
from assembler.formats import FORMATS, Imported, export, import_file

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the real files are not here: there is no ../shared/cases")

STORY = "novelai_tamriel_the_reign_of_katariah_create_character_20210622.story"
COUNTS = {
    "adventures/crowdsourcedstory0.json": ("story-tree", {"actions": 21}, 0),
    "adventures/crowdsourcedstory16.json": ("story-tree", {"actions": 15, "plot_essentials": 1}, 1),
    "aidungeon_scenario/javaman_scenarios.json": (
        "aidungeon-scenario",
        {"story_cards": 98, "actions": 1, "authors_note": 1},
        7,
    ),
    "aidungeon_scenario_parts/AI_Instructions.md": ("aidungeon-markdown", {"ai_instructions": 1}, 0),
    "aidungeon_scenario_parts/authors_note.md": ("aidungeon-markdown", {"authors_note": 1}, 0),
    "aidungeon_scenario_parts/memory.md": ("aidungeon-markdown", {"plot_essentials": 1}, 0),
    "aidungeon_storycards/story-cards.json": ("aidungeon-cards", {"story_cards": 975}, 0),
    "aidungeon_worldinfo/7-landmarks.json": ("aidungeon-worldinfo", {"story_cards": 31}, 46),
    "aidungeon_worldinfo/SKYRIM_WORLD_INFO.json": ("aidungeon-worldinfo", {"story_cards": 78}, 0),
    "character_cards/Seraphina_card_data.json": (
        "character-card-v2",
        {"story_cards": 4, "actions": 1, "plot_essentials": 1},
        0,
    ),
    "character_cards/cultivation_survival_game.json": (
        "nativetavern-card",
        {"actions": 1, "ai_instructions": 1, "plot_essentials": 1},
        0,
    ),
    "german_world/PromptHelpers.world_strings.txt": ("text", {"plot_essentials": 1}, 0),
    "italian_adventure/sheets/NPC.village.mara.txt": ("text", {"plot_essentials": 1}, 0),
    "kobold_save/create_character_20210621.json": (
        "kobold",
        {"story_cards": 177, "actions": 1, "authors_note": 1},
        0,
    ),
    "kobold_save/sample_story.json": ("kobold", {"actions": 4, "plot_essentials": 1, "authors_note": 1}, 0),
    "nativetavern_worldinfo/mortal_cultivation.json": ("nativetavern-worldinfo", {"story_cards": 7}, 0),
    "nativetavern_worldinfo/zelda_legend.json": ("nativetavern-worldinfo", {"story_cards": 8}, 0),
    "novelai/frankenstein.scenario": (
        "novelai-scenario",
        {"actions": 1, "plot_essentials": 1, "authors_note": 1},
        0,
    ),
    f"novelai/{STORY}": ("novelai-story", {"story_cards": 98, "actions": 1, "authors_note": 1}, 0),
    "novelai/sherlock/lorebook_generated.lorebook": ("novelai-lorebook", {"story_cards": 41}, 1),
    "novelai/starter.lorebook": ("novelai-lorebook", {"story_cards": 4}, 0),
    "russian_scenarios/alice_world.json": (
        "world-characters",
        {"story_cards": 6, "actions": 1, "ai_instructions": 1, "plot_essentials": 1},
        0,
    ),
    "sillytavern_chat/1673181146000.jsonl": ("sillytavern-chat", {"actions": 1}, 0),
    "sillytavern_chat/1673323621108.jsonl": ("sillytavern-chat", {"actions": 1}, 0),
    "sillytavern_worldinfo/Eldoria.json": ("sillytavern-worldinfo", {"story_cards": 4}, 0),
    "sillytavern_worldinfo/HSR.json": ("sillytavern-worldinfo", {"story_cards": 251}, 0),
    "turkish_world/Genel.md": ("text", {"plot_essentials": 1}, 0),
}
REFUSED = {
    "novelai/Ripple (Mon Oct 17 2022).lorebook": "line 56, column 28: not valid JSON",
    "italian_adventure/NPCs/tavern.jorin.json": "not a format that is known: a JSON object with the fields name, area",
}


def noted(result: Imported, words: str) -> str:
    (note,) = [note for note in result.notes if words in note]
    return note


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    result = import_file(CASES / name)
    assert (result.format, dict(result.imported), len(result.skipped)) == COUNTS[name]
    assert all(card.entry.strip() for card in result.adventure.story_cards)
    assert all(trigger.strip() for card in result.adventure.story_cards for trigger in card.triggers)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    with pytest.raises(AdventureError) as caught:
        import_file(CASES / name)
    assert REFUSED[name] in str(caught.value)


def test_every_file_is_covered() -> None:
    files = {str(path.relative_to(CASES)) for path in CASES.rglob("*") if path.is_file()}
    assert files - {"README.md"} == COUNTS.keys() | REFUSED.keys()


def test_hsr_switches_and_secondary_keys() -> None:
    result = import_file(CASES / "sillytavern_worldinfo/HSR.json")
    assert sum(not card.enabled for card in result.adventure.story_cards) == 14
    assert "(18: " in noted(result, "secondary keys")
    assert "dan heng (imbibitor lunae)" in {t.lower() for card in result.adventure.story_cards for t in card.triggers}


def test_kobold_patterns() -> None:
    result = import_file(CASES / "kobold_save/create_character_20210621.json")
    first = result.adventure.story_cards[0]
    assert first.triggers == ("Katariah", "empress", "emperor", "the empress", "the emperor")
    assert "(2: (you).*(look" in noted(result, "patterns are kept")
    assert "(2: " in noted(result, "match nothing until")
    triggers = {trigger for card in result.adventure.story_cards for trigger in card.triggers}
    assert not [trigger for trigger in triggers if set("|#[]()*") & set(trigger)]
    assert ("gray fox",) in {card.triggers for card in result.adventure.story_cards}


def test_landmarks_lose_their_attributes_and_stray_spaces_count() -> None:
    cards = import_file(CASES / "aidungeon_worldinfo/7-landmarks.json").adventure.story_cards
    assert cards[0].triggers == ("Karth River",)
    assert cards[0].id == "7.1"
    skyrim = import_file(CASES / "aidungeon_worldinfo/SKYRIM_WORLD_INFO.json")
    assert skyrim.adventure.story_cards[0].triggers == ("Ungvid", "Jarl of Winterhold", "Ruler of Winterhold")
    assert "(11: " in noted(skyrim, "spaces around a trigger")


def test_the_scenario_with_the_cards_is_taken_and_another_can_be_asked_for() -> None:
    path = CASES / "aidungeon_scenario/javaman_scenarios.json"
    assert import_file(path).adventure.title == "Tamriel: The Reign of Katariah (random character)"
    other = import_file(path, select="7")
    assert other.adventure.title == "Tamriel: The Reign of Katariah (create character)"
    assert "${character.name}" in noted(other, "placeholders")


def test_seraphinas_book_equals_eldoria() -> None:
    book = import_file(CASES / "character_cards/Seraphina_card_data.json").adventure.story_cards
    world = import_file(CASES / "sillytavern_worldinfo/Eldoria.json").adventure.story_cards
    assert [(c.id, c.triggers, c.entry, c.match, c.notes, c.enabled) for c in book] == [
        (c.id, c.triggers, c.entry, c.match, c.notes, c.enabled) for c in world
    ]


def test_sherlocks_many_keys_and_frankensteins_length() -> None:
    lore = import_file(CASES / "novelai/sherlock/lorebook_generated.lorebook").adventure
    assert max(len(card.triggers) for card in lore.story_cards) == 180
    assert len(import_file(CASES / "novelai/frankenstein.scenario").adventure.actions[0].text) == 437_595


def test_the_authors_note_loses_its_brackets() -> None:
    note = import_file(CASES / "aidungeon_scenario_parts/authors_note.md").adventure.authors_note
    assert note.startswith("Write in second person.")
    assert note.endswith("chose to be here.")


@pytest.mark.parametrize(
    "name",
    [
        "sillytavern_worldinfo/HSR.json",
        "sillytavern_worldinfo/Eldoria.json",
        "aidungeon_storycards/story-cards.json",
        "aidungeon_worldinfo/SKYRIM_WORLD_INFO.json",
        "nativetavern_worldinfo/mortal_cultivation.json",
        "nativetavern_worldinfo/zelda_legend.json",
        "novelai/starter.lorebook",
        "kobold_save/sample_story.json",
        "character_cards/Seraphina_card_data.json",
    ],
)
def test_a_real_file_comes_back_whole(name: str) -> None:
    def sorted_lines(value: object) -> object:
        return json.loads(json.dumps(value, sort_keys=True).replace("\\r\\n", "\\n"))

    result = import_file(CASES / name)
    before = json.loads((CASES / name).read_bytes().decode("utf-8-sig"))
    after = json.loads(export(result.adventure, result.format))
    missing = {field: before[field] for field in before if field not in after} if isinstance(before, dict) else {}
    assert missing == {}
    if name.endswith("sample_story.json"):
        after.pop("worldinfo")
    assert sorted_lines(after) == sorted_lines(before)


@pytest.mark.parametrize("name", COUNTS)
def test_every_real_file_can_be_written_in_every_format(name: str) -> None:
    adventure = import_file(CASES / name).adventure
    for target, known in FORMATS.items():
        if known.save:
            assert export(adventure, target)
