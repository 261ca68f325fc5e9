"""Each program's entries as story cards: matching, switches, conditions, notes, and the way back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from assembler.adventure import Adventure, StoryCard
from assembler.formats import export, import_bytes


def read(value: Any, name: str = "") -> Any:
    return import_bytes(json.dumps(value).encode(), name)


def again(adventure: Adventure, name: str) -> Any:
    return json.loads(export(adventure, name))


def plain(card: StoryCard) -> StoryCard:
    return replace(card, extra={})


LORE = [
    ("dragon", "wyrm", "Dragons sleep.", "who: me"),
    ("Moon Gate", "gate", "The gate opens at night.", ""),
    ("ix", "nine", "Ninth legion.", "numbers"),
    ("龙胆", "竜胆", "花。", ""),
]


def world_info() -> dict[str, Any]:
    entries = {
        str(n): {"uid": n, "key": [a, b], "keysecondary": [], "comment": note, "content": text, "constant": False}
        | {"selective": True, "order": 100, "position": 0, "disable": n == 2, "matchWholeWords": n == 1 or None}
        for n, (a, b, text, note) in enumerate(LORE)
    }
    return {"entries": entries}


def book() -> dict[str, Any]:
    entries = [
        {"id": n, "keys": [a, b], "secondary_keys": [], "comment": note, "content": text, "constant": False}
        | {"selective": True, "insertion_order": 100, "position": "before_char", "enabled": n != 2}
        | {"extensions": {"match_whole_words": n == 1 or None}}
        for n, (a, b, text, note) in enumerate(LORE)
    ]
    return {
        "spec": "chara_card_v2",
        "data": {"name": "Ash", "first_mes": "Hi.", "character_book": {"entries": entries}},
    }


def test_world_info_by_uid_and_a_book_as_a_list_give_equal_cards() -> None:
    by_uid = read(world_info()).adventure.story_cards
    in_card = read(book()).adventure.story_cards
    alone = read(book()["data"]["character_book"]).adventure.story_cards
    assert [*map(plain, by_uid)] == [*map(plain, in_card)] == [*map(plain, alone)]
    assert [card.match for card in by_uid] == ["word_start", "word", "word_start", "word_start"]
    assert [card.enabled for card in by_uid] == [True, True, False, True]
    assert by_uid[0].notes == "who: me"


def test_sillytavern_gives_back_what_it_brought() -> None:
    source = world_info()
    source["entries"]["0"] |= {
        "probability": 50,
        "depth": 7,
        "tokenBudget": 3,
        "selectiveLogic": 3,
        "unknown": {"a": []},
    }
    source["entries"]["0"]["keysecondary"] = ["asleep"]
    source["entries"]["3"]["key"] = ["/drag{1,2}on/i", " 龙胆 ", "a, b"]
    source |= {"name": "Lore", "extensions": {"x": 1}}
    result = read(source)
    assert again(result.adventure, "sillytavern-worldinfo") == source
    assert result.adventure.story_cards[3].triggers == ("龙胆", "a, b")
    assert any(note.startswith("secondary keys are kept but not obeyed") for note in result.notes)
    assert "patterns are kept but match nothing, triggers are literal (1: /drag{1,2}on/i)" in result.notes


def test_edited_triggers_win_and_patterns_stay() -> None:
    source = world_info()
    source["entries"]["0"]["key"] = ["/(a+)+$/", "old"]
    adventure = read(source).adventure
    card = replace(adventure.story_cards[0], triggers=("new",))
    edited = replace(adventure, story_cards=(card, *adventure.story_cards[1:]))
    assert again(edited, "sillytavern-worldinfo")["entries"]["0"]["key"] == ["new", "/(a+)+$/"]


def test_an_entry_of_patterns_alone_comes_in_and_never_matches() -> None:
    result = read({"entries": {"0": {"key": ["/.*/"], "content": "Always?"}}})
    assert result.adventure.story_cards[0].triggers == ()
    assert result.adventure.plot_essentials == ""
    assert any("match nothing until" in note for note in result.notes)


def test_entries_that_are_always_in_go_to_the_plot_essentials_in_order() -> None:
    source = {
        "entries": {
            "0": {"uid": 0, "key": [], "content": "Second.", "constant": True, "order": 20},
            "1": {"uid": 1, "key": ["k"], "content": "First.\r\nLine.", "constant": True, "order": 10},
            "2": {"uid": 2, "key": ["k"], "content": "Off.", "constant": True, "disable": True},
            "3": {"uid": 3, "key": ["k"], "content": "Card."},
        }
    }
    result = read(source)
    assert result.adventure.plot_essentials == "First.\nLine.\nSecond."
    assert [(card.enabled, card.triggers) for card in result.adventure.story_cards] == [(False, ("k",)), (True, ("k",))]
    assert result.imported == {"story_cards": 2, "plot_essentials": 1}
    back = again(result.adventure, "sillytavern-worldinfo")["entries"]
    assert back["1"] == source["entries"]["1"]
    assert back["2"]["constant"] is True
    assert back["2"]["key"] == ["k"]
    removed = replace(result.adventure, plot_essentials="Second.")
    assert {e["content"] for e in again(removed, "sillytavern-worldinfo")["entries"].values()} == {
        "Second.",
        "Off.",
        "Card.",
    }


def test_aidungeon_story_cards() -> None:
    source = [
        {"keys": "Club, Big Club,,Club", "value": "A club.", "type": "weapon", "title": "Club"}
        | {"description": "2,1d4,0", "useForCharacterCreation": True, "more": [1]},
    ]
    result = read(source)
    (card,) = result.adventure.story_cards
    assert (card.triggers, card.match, card.notes, card.type) == (
        ("Club", " Big Club"),
        "substring",
        "2,1d4,0",
        "weapon",
    )
    assert again(result.adventure, "aidungeon-cards") == source
    assert result.notes == ["spaces around a trigger count, as they do in the program that the file is from (1: Club)"]
    assert read([{"keys": "a", "entry": "E", "type": "t"}]).format == "aidungeon-cards"


def test_aidungeon_world_info_and_its_scripts() -> None:
    source = [
        {"id": "0.745118808720757", "keys": "Ungvid,Jarl", "entry": "A jarl.", "hidden": False, "attributes": {}},
        {"id": "7.1", "keys": "(|the )emp(ress|eror)#[t=5l=5f=2S=2]", "entry": "Rules.", "hidden": True},
    ]
    result = read(source)
    assert result.format == "aidungeon-worldinfo"
    assert [card.enabled for card in result.adventure.story_cards] == [True, False]
    assert result.adventure.story_cards[1].triggers == ("empress", "emperor", "the empress", "the emperor")
    assert again(result.adventure, "aidungeon-worldinfo") == source


def test_nativetavern_world() -> None:
    entry = {"id": "entry_1", "worldInfoId": "w", "keys": ["境界", "宗"], "content": "文。", "enabled": False}
    entry |= {"constant": False, "position": 1, "insertionOrder": 90, "comment": "memo"}
    second = entry | {"id": "entry_2", "enabled": True, "secondaryKeys": ["x"], "selective": True}
    source = {"id": "w", "name": "World", "description": "for people", "isGlobal": False, "entries": [entry, second]}
    result = read(source)
    assert (result.format, result.adventure.title) == ("nativetavern-worldinfo", "World")
    assert result.adventure.story_cards[0] == replace(result.adventure.story_cards[0], enabled=False, notes="memo")
    assert any(note.startswith("secondary keys") for note in result.notes)
    assert again(result.adventure, "nativetavern-worldinfo") == source


def test_novelai_lorebook() -> None:
    entry = {
        "text": "Rome.",
        "displayName": "Rome",
        "id": "u-1",
        "keys": [" Rome ", "/em(peror|press)/"],
        "enabled": True,
    }
    entry |= {
        "searchRange": 1000,
        "forceActivation": False,
        "category": "cat",
        "contextConfig": {"prefix": "", "suffix": "\n"},
    }
    always = {"text": "Always.", "keys": [], "forceActivation": True, "displayName": "A", "id": "u-2"}
    source = {"lorebookVersion": 4, "entries": [entry, always], "settings": {"x": 1}}
    source["categories"] = [{"id": "cat", "name": "Places"}]
    result = read(source, "x.lorebook")
    (card,) = result.adventure.story_cards
    assert (card.triggers, card.match, card.type, card.title) == (
        ("Rome", "emperor", "empress"),
        "word",
        "Places",
        "Rome",
    )
    assert result.adventure.plot_essentials == "Always."
    assert again(result.adventure, "novelai-lorebook") == source


@pytest.mark.parametrize(("selective", "noted"), [(True, True), (False, False)])
def test_kobold_world_info(selective: bool, noted: bool) -> None:
    source = {"gamestarted": True, "prompt": "P", "memory": "M", "authorsnote": "N", "actions": ["\n> go\n", " on."]}
    source["worldinfo"] = [
        {"key": "cat, dog", "keysecondary": "asleep", "content": "Pets.", "comment": "memo", "folder": 5}
        | {"selective": selective, "constant": False, "num": 0},
        {
            "key": "k",
            "keysecondary": "",
            "content": "Sea.",
            "comment": "",
            "folder": None,
            "selective": False,
            "constant": True,
        },
    ]
    source["wifolders_d"] = {"5": {"name": "Animals", "collapsed": False}}
    result = read(source)
    (card,) = result.adventure.story_cards
    assert (card.triggers, card.match, card.type, card.notes) == (("cat", " dog"), "substring", "Animals", "memo")
    assert result.adventure.plot_essentials == "M\nSea."
    assert any(note.startswith("secondary keys") for note in result.notes) is noted
    assert again(result.adventure, "kobold") == source


def test_ampersands_and_prefixes_of_novelai_are_noted() -> None:
    entry = {
        "text": "T",
        "keys": ["king & queen"],
        "displayName": "K",
        "contextConfig": {"prefix": "[", "suffix": "]\n"},
    }
    result = read({"lorebookVersion": 5, "entries": [entry]})
    assert result.adventure.story_cards[0].triggers == ("king & queen",)
    assert len(result.notes) == 2


def test_a_book_on_its_own_keeps_what_is_always_in() -> None:
    lone = {"name": "B", "extensions": {}, "entries": book()["data"]["character_book"]["entries"][:2]}
    lone["entries"][1]["constant"] = True
    result = read(lone)
    assert result.adventure.plot_essentials == "The gate opens at night."
    assert again(result.adventure, "character-card-v2")["data"]["character_book"] == lone


def test_a_book_keeps_its_unknown_fields() -> None:
    source = book()
    entries = source["data"]["character_book"]["entries"]
    entries[0] |= {"priority": 3, "name": "Dragons", "use_regex": True}
    entries[0]["extensions"] |= {"depth": 4, "match_whole_words": False}
    source["data"]["character_book"] |= {"name": "Book", "scan_depth": 2, "extensions": {"y": 2}}
    result = read(source)
    assert result.adventure.story_cards[0].match == "substring"
    assert again(result.adventure, "character-card-v2")["data"]["character_book"] == source["data"]["character_book"]
