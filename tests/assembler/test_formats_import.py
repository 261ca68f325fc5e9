"""What holds for every format: broken files, odd entries, the report, importing into an adventure."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from assembler.adventure import Adventure, StoryCard
from assembler.errors import AdventureError
from assembler.formats import FORMATS, export, import_bytes, import_file, left_out, sniff
from assembler.formats.source import MAX_BYTES


def world(*entries: dict[str, Any] | None, **fields: Any) -> bytes:
    numbered = {str(number): entry for number, entry in enumerate(entries)}
    return json.dumps({"entries": numbered} | fields).encode()


def deep(levels: int) -> bytes:
    return b'{"entries": ' + b"[" * levels + b"]" * levels + b"}"


WOLF = {"key": ["wolf"], "content": "A wolf."}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"  \n\t", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"[]", "nothing to import"),
        (b"{}", "not a format that is known: a JSON object"),
        (b'{"entries": {}}', "no entries"),
        (b'{"entries": []}', "no entries"),
        (b'[{"keys": "a", "value": ""}]', "1 skipped: [0]: has no text"),
        (b'{"entries": {"0": {"key": ["a"],\n "content": "x"', "line 2, column"),
        (b"[1, 2]", "a JSON list of 2"),
        (b'{"name": "Jo", "area": "Tavern"}', "fields name, area"),
        (b"\x89PNG\r\n\x1a\n", "no character card"),
        (b"\xff\xfe\x00", "byte"),
        (b"PK\x03\x04\xff\xff", "ZIP"),
        (b"\x00\x01\x02 rubbish", "NUL"),
        ('{"entries": {}}'.encode("utf-16-le"), "NUL"),
        (deep(257), "deep"),
        (deep(100_000), "not usable JSON"),
        (b'{"entries": 7}', "not a format"),
        (b'{"gamestarted": true, "worldinfo": 7}', "worldinfo: expected a list"),
        (b'{"format": "adventure/2"}', "adventure/1"),
    ],
)
def test_broken_files_are_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(AdventureError, match=re.escape(words)):
        import_bytes(data, "file.json" if data[:1] in b"{[" else "file")


def test_the_error_names_the_file_and_a_missing_one_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "cut.lorebook"
    broken.write_bytes(b'{"lorebookVersion": 4,\n "entries": [{"text": ')
    with pytest.raises(AdventureError, match=r"cut\.lorebook: line 2, column"):
        import_file(broken)
    with pytest.raises(AdventureError, match=r"none\.json: cannot be read"):
        import_file(tmp_path / "none.json")
    with pytest.raises(AdventureError, match="cannot be read"):
        import_file(tmp_path)


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(AdventureError, match="larger than"):
        import_file(large)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks(encoding: str) -> None:
    data = json.dumps({"entries": {"0": {"key": ["çay"], "content": "Tea."}}}, ensure_ascii=False).encode(encoding)
    assert import_bytes(data).adventure.story_cards[0].triggers == ("çay",)


def test_two_hundred_levels_of_unknown_fields_survive_the_way_back() -> None:
    odd: Any = "bottom"
    for _ in range(200):
        odd = [odd]
    read = import_bytes(world(WOLF | {"odd": odd}))
    assert json.loads(export(read.adventure, "sillytavern-worldinfo"))["entries"]["0"]["odd"] == odd
    assert export(read.adventure, "adventure")


def test_odd_entries_are_skipped_with_place_and_reason() -> None:
    read = import_bytes(
        world(
            WOLF,
            None,
            {"key": ["x"], "content": None},
            {"key": ["x"], "content": ["list"]},
            {"key": [], "content": "?"},
        )
    )
    assert read.imported == {"story_cards": 2}
    assert [str(skip) for skip in read.skipped] == [
        "entries.1: is no object",
        "entries.2: has no text",
        'entries.3: content: expected a string, got ["list"]',
    ]
    assert read.notes == ["cards without a trigger match nothing until they are given one (1: c2)"]


def test_null_fields_are_missing_and_never_words() -> None:
    entry = {"uid": None, "key": [None, "elf"], "comment": None, "content": "An elf.", "disable": None, "order": None}
    (card,) = import_bytes(world(entry)).adventure.story_cards
    assert (card.id, card.triggers, card.notes, card.enabled) == ("c1", ("elf",), "", True)


def test_ids_are_strings_and_made_unique() -> None:
    cards = [
        {"id": id, "keys": "k", "entry": f"e{n}", "hidden": False} for n, id in enumerate([0.5, "0.5", "", None, 7])
    ]
    read = import_bytes(json.dumps(cards).encode())
    assert [card.id for card in read.adventure.story_cards] == ["0.5", "0.5-2", "c3", "c4", "7"]


def test_line_ends_become_one_kind() -> None:
    (card,) = import_bytes(world(WOLF | {"content": "one\r\ntwo"})).adventure.story_cards
    assert card.entry == "one\ntwo"


def test_placeholders_stay_and_are_noted() -> None:
    read = import_bytes(world(WOLF | {"content": "{{char}} greets {{user}} in ${Your town}. {{char}} bows."}))
    assert read.adventure.story_cards[0].entry.startswith("{{char}} greets {{user}}")
    assert read.notes == ["placeholders stay as they are (4: {{char}}, {{user}}, ${Your town})"]


def test_lone_surrogates_are_kept_and_can_be_written() -> None:
    read = import_bytes(b'{"entries": {"0": {"key": ["\\ud83d"], "content": "half \\ud83d"}}}')
    for name, known in FORMATS.items():
        if known.save:
            assert b"\xed" not in export(read.adventure, name)


def test_importing_into_an_adventure_adds_and_overwrites_nothing() -> None:
    old = StoryCard("0", ("bear",), "A bear.")
    base = Adventure(story_cards=(old,), plot_essentials="You are a ranger.", authors_note="Dark.", title="Mine")
    always = {"key": [], "content": "Winter never ends.", "constant": True}
    read = import_bytes(world(WOLF | {"uid": 0}, always), into=base)
    assert base.story_cards == (old,)
    assert [card.id for card in read.adventure.story_cards] == ["0", "0-2"]
    assert read.adventure.plot_essentials == "You are a ranger.\n\nWinter never ends."
    assert read.imported == {"story_cards": 1, "plot_essentials": 1}
    with pytest.raises(AdventureError, match="has this card already"):
        import_bytes(world(WOLF | {"uid": 0}, always), into=read.adventure)


def test_texts_and_log_that_exist_stay_and_the_new_ones_are_reported() -> None:
    base = import_bytes(b'{"gamestarted": true, "prompt": "A.", "authorsnote": "Dark.", "actions": []}').adventure
    other = b'{"gamestarted": true, "prompt": "B.", "authorsnote": "Light.", "memory": "M.", "actions": []}'
    read = import_bytes(other, into=base)
    assert (read.adventure.actions, read.adventure.authors_note) == (base.actions, "Dark.")
    assert read.imported == {"plot_essentials": 1}
    assert [skip.place for skip in read.skipped] == ["authors_note", "actions"]


def test_sniffing_goes_by_content() -> None:
    assert sniff(world(WOLF), "misnamed.txt").name == "sillytavern-worldinfo"
    assert sniff(b"Just prose.", "x").name == "text"
    assert sniff(b"[Author's note: dark]", "authors_note.md").name == "aidungeon-markdown"
    with pytest.raises(AdventureError, match="line 1, column 1"):
        sniff(b"Just prose.", "x.json")


def test_the_registry_is_complete_and_its_writers_are_told() -> None:
    assert list(FORMATS) == [known.name for known in FORMATS.values()]
    assert {name for name, known in FORMATS.items() if known.save} == {
        "adventure",
        "aidungeon-cards",
        "aidungeon-worldinfo",
        "character-card-v2",
        "kobold",
        "nativetavern-worldinfo",
        "novelai-lorebook",
        "sillytavern-chat",
        "sillytavern-worldinfo",
        "text",
    }
    with pytest.raises(AdventureError, match="'nonsense' is unknown; write one of adventure"):
        export(Adventure(), "nonsense")
    with pytest.raises(AdventureError, match="is only read"):
        export(Adventure(), "story-tree")


def test_what_an_export_loses_is_told() -> None:
    cards = (StoryCard("1", ("a, b", "c"), "E", notes="n", enabled=False), StoryCard("2", ("d",), "F"))
    adventure = Adventure(story_cards=cards, actions=[], front_memory="f")  # type: ignore[arg-type]
    assert left_out(adventure, "adventure") == []
    assert left_out(adventure, "aidungeon-cards") == [
        "cards that are switched off: 1",
        "triggers with a comma: 1",
        "match modes: 2",
        "front_memory",
    ]
    assert left_out(adventure, "text") == ["story_cards: 2", "front_memory"]


WORSE = {name: {"always": [{}, 7, {"text": 7, "content": []}], "data": {"extensions": 7}} for name in FORMATS}


def test_spoilt_extra_fields_never_crash_an_export() -> None:
    for spoilt in (
        7,
        "x",
        [1],
        {"kobold": 3},
        {name: {"always": 7, "keys": {}, "extensions": 5} for name in FORMATS},
        WORSE,
    ):
        card = StoryCard("1", ("a",), "E", extra={"imported": spoilt})
        adventure = Adventure(story_cards=(card,), plot_essentials="p", extra={"imported": spoilt})
        for name, known in FORMATS.items():
            if known.save:
                assert isinstance(export(adventure, name), bytes), (name, spoilt)


def test_twenty_thousand_entries_of_one_id_take_seconds_at_most() -> None:
    data = json.dumps([{"id": "x", "keys": "k", "entry": "e", "hidden": False}] * 20_000).encode()
    began = time.perf_counter()
    cards = import_bytes(data).adventure.story_cards
    assert time.perf_counter() - began < 15
    assert len({card.id for card in cards}) == 20_000
