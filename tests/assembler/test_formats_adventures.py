"""Formats that hold whole adventures: cards of characters, saves, stories, chats, scenarios, trees, text files."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from typing import Any

import pytest

from assembler.action_log import Action, ActionLog
from assembler.adventure import Adventure
from assembler.errors import AdventureError
from assembler.formats import export, import_bytes


def read(value: Any, name: str = "", **more: Any) -> Any:
    return import_bytes(json.dumps(value).encode(), name, **more)


def log(adventure: Adventure) -> list[tuple[str, str]]:
    return [(action.kind, action.text) for action in adventure.actions]


CARD: dict[str, Any] = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {
        "name": "Ash",
        "description": "{{char}} is a smith.",
        "personality": "gruff",
        "scenario": "",
        "first_mes": "Hello,\r\n{{user}}.",
        "mes_example": "<START>",
        "creator_notes": "Secret note of the author",
        "system_prompt": "Be brief.",
        "post_history_instructions": "Stay in role.",
        "alternate_greetings": ["Hm?"],
        "tags": ["x"],
        "creator": "me",
        "character_version": "1",
        "extensions": {"depth_prompt": {"prompt": "Rain.", "depth": 4, "role": "system"}, "odd": 1},
        "unknown": [1],
    },
}


def png(chunks: dict[bytes, bytes]) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    texts = b"".join(chunk(b"tEXt", name + b"\0" + text) for name, text in chunks.items())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes(13)) + texts + chunk(b"IEND", b"")


def test_a_character_card_becomes_an_adventure() -> None:
    result = read(CARD)
    adventure = result.adventure
    assert (adventure.title, adventure.plot_essentials) == ("Ash", "{{char}} is a smith.\ngruff")
    assert (adventure.ai_instructions, adventure.front_memory) == ("Be brief.", "Stay in role.")
    assert (adventure.authors_note, log(adventure)) == ("Rain.", [("start", "Hello,\n{{user}}.")])
    assert "Secret" not in repr(adventure)
    assert len(result.notes) == 4


def test_a_character_card_comes_back_with_all_its_fields() -> None:
    back = json.loads(export(read(CARD).adventure, "character-card-v2"))
    expected = CARD | {"data": CARD["data"] | {"first_mes": "Hello,\n{{user}}."}}
    assert back == expected


def test_an_edited_character_card_is_written_as_it_is_now() -> None:
    adventure = replace(read(CARD).adventure, plot_essentials="New.", authors_note="Snow.")
    data = json.loads(export(adventure, "character-card-v2"))["data"]
    assert (data["description"], data["personality"], data["extensions"]["depth_prompt"]["prompt"]) == (
        "New.",
        "",
        "Snow.",
    )


def test_v1_and_v3_cards() -> None:
    flat = {name: CARD["data"][name] for name in ("name", "description", "personality", "scenario", "first_mes")}
    assert read(flat).adventure.title == "Ash"
    third = CARD | {"spec": "chara_card_v3", "spec_version": "3.0"}
    assert json.loads(export(read(third).adventure, "character-card-v2"))["spec"] == "chara_card_v3"


def test_cards_in_pictures() -> None:
    def packed(value: Any) -> bytes:
        return base64.b64encode(json.dumps(value).encode())

    old = CARD | {"data": CARD["data"] | {"name": "Old"}}
    both = import_bytes(png({b"chara": packed(old), b"ccv3": packed(CARD)}), "a.png")
    assert (both.format, both.adventure.title) == ("character-card-png", "Ash")
    assert import_bytes(png({b"Chara": packed(old)})).adventure.title == "Old"
    whole = png({b"chara": packed(CARD)})
    for data, words in [
        (whole[:60], "cut short"),
        (png({b"comment": b"hi"}), "no tEXt chunk"),
        (png({b"chara": b"?!"}), "chara"),
        (png({b"chara": base64.b64encode(b"{")}), "chara: line 1"),
        (png({b"chara": packed([1])}), "no character card"),
        (whole[:8] + b"\xff\xff\xff\xfftEXt", "cut short"),
    ]:
        with pytest.raises(AdventureError) as caught:
            import_bytes(data, "a.png")
        assert words in str(caught.value)


def test_a_card_with_a_wrong_text_names_the_field() -> None:
    with pytest.raises(AdventureError, match="first_mes: expected a string"):
        read({"spec": "chara_card_v2", "data": {"name": "A", "first_mes": ["x"]}})


def test_nativetavern_card() -> None:
    card = {
        "name": "模拟器",
        "description": "世界。",
        "personality": "公正",
        "scenario": "开始。",
        "firstMessage": "你好。",
    }
    result = read(card | {"systemPrompt": "主持。", "exampleDialogue": "x", "alternateGreetings": ["y"]})
    assert result.adventure.plot_essentials == "世界。\n公正\n开始。"
    assert (result.adventure.ai_instructions, log(result.adventure)) == ("主持。", [("start", "你好。")])
    assert len(result.notes) == 2


def test_kobold_actions() -> None:
    save = {
        "gamestarted": True,
        "prompt": "You wake",
        "actions": [" up.", "\n> look around\n", "\n> go\nYou go.", None, " "],
    }
    result = read(save)
    assert log(result.adventure) == [
        ("start", "You wake"),
        ("output", " up."),
        ("do", "look around"),
        ("do", "go"),
        ("output", "You go."),
    ]
    assert [str(skip) for skip in result.skipped] == ["actions[3]: is no text"]
    with pytest.raises(AdventureError, match="actions: expected a list"):
        read(save | {"actions": {"0": "x"}})


def test_novelai_scenario_and_story() -> None:
    context = [{"text": "Memory.", "contextConfig": {"insertionPosition": 0}}]
    context += [{"text": "Note.", "contextConfig": {"insertionPosition": -4}}]
    lorebook = {"entries": [{"text": "Lore.", "keys": ["k"], "displayName": "L"}]}
    scenario = {"scenarioVersion": 1, "title": "T", "description": "D", "prompt": "Once ${who}", "context": context}
    result = read(scenario | {"lorebook": lorebook, "placeholders": [{"key": "who"}]})
    assert (result.adventure.plot_essentials, result.adventure.authors_note) == ("Memory.", "Note.")
    assert result.imported == {"story_cards": 1, "actions": 1, "plot_essentials": 1, "authors_note": 1}

    def story(content: dict[str, Any]) -> Any:
        top = {"storyContainerVersion": 1, "metadata": {"title": "S"}}
        return read(top | {"content": {"context": context[1:], "lorebook": lorebook} | content})

    assert log(story({"story": {"text": "All.", "fragments": []}}).adventure) == [("start", "All.")]
    origins = ["prompt", "ai", "user", "edit", "odd", "prompt"]
    fragments = [{"data": f"{n}", "origin": origin} for n, origin in enumerate(origins)] + [
        {"data": " ", "origin": "ai"}
    ]
    kinds = [kind for kind, _ in log(story({"story": {"fragments": fragments}}).adventure)]
    assert kinds == ["start", "output", "story", "story", "story", "story"]
    with pytest.raises(AdventureError, match="packed"):
        story({"document": "AAAA"})


def test_sillytavern_chat_and_the_way_back() -> None:
    lines: list[dict[str, Any]] = [
        {"user_name": "You", "character_name": "Ash", "chat_metadata": {"note_prompt": "Grim.", "note_depth": 4}},
        {"name": "Ash", "is_user": False, "mes": "Hello.", "send_date": 5, "swipes": ["Hello.", "Hi."]},
        {"name": "You", "is_user": True, "mes": "Hi!"},
        {"name": "Ash", "is_user": False, "is_system": True, "mes": "hidden"},
        {"name": "Ash", "is_user": False, "mes": "So."},
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines) + '{"mes": "cut'
    result = import_bytes(data.encode(), "chat.jsonl")
    assert log(result.adventure) == [("start", "Hello."), ("say", "Hi!"), ("output", "So.")]
    assert (result.adventure.title, result.adventure.authors_note) == ("Ash", "Grim.")
    assert [skip.place for skip in result.skipped] == ["line 4", "line 6"]
    assert "column" in result.skipped[1].reason
    back = [json.loads(line) for line in export(result.adventure, "sillytavern-chat").splitlines()]
    assert back == [lines[0], lines[1], lines[2], lines[4]]
    with pytest.raises(AdventureError, match="nothing to import"):
        import_bytes(b'{"user_name": "You", "character_name": "Ash"}\n', "chat.jsonl")


def test_a_scenario_is_chosen_by_its_cards_or_by_name() -> None:
    def scenario(title: str, cards: int, *options: Any) -> dict[str, Any]:
        world = [{"id": str(n), "keys": f"k{n}", "entry": "E", "hidden": False} for n in range(cards)]
        texts = {"prompt": f"{title} begins.", "memory": "M", "authorsNote": "N", "description": "D"}
        return texts | {"title": title, "worldInfo": world, "options": list(options)}

    value = [scenario("A", 0, scenario("A1", 2), scenario("A2", 1)), scenario("B", 2)]
    result = read(value)
    assert (result.adventure.title, result.imported["story_cards"]) == ("A1", 2)
    assert [skip.place for skip in result.skipped] == ["scenario 1 'A'", "scenario 3 'A2'", "scenario 4 'B'"]
    assert read(value, select="4").adventure.title == read(value, select="B").adventure.title == "B"
    assert read(value[1]).adventure.plot_essentials == "M"
    with pytest.raises(AdventureError, match="use a number from 1 to 4"):
        read(value, select="9")
    with pytest.raises(AdventureError, match="select: a file of this kind"):
        read(CARD, select="1")


def test_a_story_tree_gives_its_deepest_branch() -> None:
    def node(name: str, *children: Any) -> dict[str, Any]:
        return {"action": f"do {name}", "result": f"so {name}", "action_results": list(children) or None}

    tree = {"tree_id": "t1", "context": "Long ago.", "first_story_block": "You stand."}
    tree |= {"action_results": [node("a"), node("b", node("c"), node("d")), node("e", node("f"))]}
    result = read(tree)
    kinds = ["start", "do", "output", "do", "output"]
    assert [kind for kind, _ in log(result.adventure)] == kinds
    assert [text for _, text in log(result.adventure)] == ["You stand.", "do b", "so b", "do c", "so c"]
    assert "4 of 6 nodes" in result.skipped[0].reason
    assert result.adventure.plot_essentials == "Long ago."
    assert read(tree | {"context": "apoc_1"}).adventure.plot_essentials == ""
    deep: Any = []
    for _ in range(100):
        deep = [{"action": "go", "result": "gone", "action_results": deep}]
    assert len(read(tree | {"action_results": deep}).adventure.actions) == 201


def test_a_world_with_characters() -> None:
    world = {
        "name": "Мир",
        "description": "Лес.",
        "intro_scene": "Ты тут.",
        "system_prompt": "Веди.",
        "user_name": "Аня",
    }
    cat = {"name": "Кот", "prompt": "Ты — кот.", "description": "улыбка", "emoji": "x"}
    result = read({"world": world, "characters": {"cat": cat, "nobody": {"name": "Н"}}})
    (card,) = result.adventure.story_cards
    assert (card.triggers, card.entry, card.notes, card.match) == (("Кот",), "Ты — кот.", "улыбка", "word_start")
    assert result.adventure.plot_essentials == "Лес.\nАня"
    assert [str(skip) for skip in result.skipped] == ["characters.nobody: has no text"]


CARDS_MD = """# World

Laws of the land.

---

**Title:** The Guild
**Type:** Custom — Lore
**Triggers:** guild,guild rank
**Entry:**
First line.

Second line: with a colon.

## Title: Ada
Type: character
Keys: Ada
Entry: A smith.
---
Afterword.
"""


def test_markdown_parts_go_where_their_names_say() -> None:
    assert import_bytes(b"Be brief.\r\n", "AI_Instructions.md").adventure.ai_instructions == "Be brief."
    note = import_bytes(b"[Author's note: Dark.\n\nGrim.]\n", "authors_note.md").adventure
    assert note.authors_note == "Dark.\n\nGrim."
    assert import_bytes(b"Title: only a title\nText.", "plot essentials.txt").adventure.plot_essentials.startswith(
        "Title:"
    )


def test_markdown_cards() -> None:
    result = import_bytes(CARDS_MD.encode(), "memory.md")
    assert result.adventure.plot_essentials == "# World\n\nLaws of the land.\n\n---\n\nAfterword."
    guild, ada = result.adventure.story_cards
    assert (guild.title, guild.type, guild.triggers) == ("The Guild", "Custom — Lore", ("guild", "guild rank"))
    assert guild.entry == "First line.\n\nSecond line: with a colon."
    assert (ada.title, ada.type, ada.triggers, ada.entry) == ("Ada", "character", ("Ada",), "A smith.")


def test_any_other_text_is_lore_and_a_transcript_is_written() -> None:
    result = import_bytes("Su Düzlükleri\r\nbir bölgedir.".encode(), "Genel.md")
    assert result.adventure.plot_essentials == "Su Düzlükleri\nbir bölgedir."
    assert result.notes == ["the text (27 characters) is in the Plot Essentials"]
    actions = [
        Action("1", "start", "You wake. "),
        Action("2", "do", "look"),
        Action("3", "continue"),
        Action("4", "say", "> hi"),
    ]
    assert export(Adventure(actions=ActionLog(actions)), "text") == b"You wake.\n> look\n> hi\n"


def test_our_own_document_is_a_format_too() -> None:
    result = read({"format": "adventure/1", "title": "T", "actions": [{"kind": "do", "text": "go"}]})
    assert (result.format, result.imported) == ("adventure", {"actions": 1})
    assert import_bytes(export(result.adventure, "adventure")).adventure == result.adventure
