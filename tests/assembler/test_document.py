"""The adventure document: what is read, what is kept, and errors that name the place (SPEC.md section 8)."""

import json
import time
import warnings
from pathlib import Path

import pytest

from assembler import (
    Action,
    Adventure,
    AdventureError,
    Settings,
    StoryCard,
    UnknownFieldWarning,
    assemble,
    dumps,
    from_dict,
    load,
    loads,
    to_dict,
)
from memorybank.memory import NewMemory

FULL = {
    "format": "adventure/1",
    "id": "adv",
    "title": "The gate",
    "ai_instructions": "Write.",
    "plot_essentials": "A knight.",
    "story_summary": "Long ago.",
    "authors_note": "Dark.",
    "front_memory": "Go on.",
    "memory_bank": False,
    "story_cards": [
        {
            "id": "c9",
            "title": "Fenrir",
            "type": "character",
            "triggers": ["Fenrir", "wolf"],
            "match": "word",
            "entry": "A wolf.",
            "notes": "Secret.",
            "enabled": False,
        }
    ],
    "actions": [{"id": "a1", "kind": "start", "text": "You wake."}, {"id": "a2", "kind": "continue", "text": ""}],
    "memories": [{"id": "m7", "text": "You slept.", "actions": ["a1"], "pinned": True}],
}


def read(**fields: object) -> Adventure:
    return from_dict({"format": "adventure/1", **fields})


def test_every_field_is_read():
    assert from_dict(FULL) == Adventure(
        id="adv",
        title="The gate",
        ai_instructions="Write.",
        plot_essentials="A knight.",
        story_summary="Long ago.",
        authors_note="Dark.",
        front_memory="Go on.",
        memory_bank=False,
        story_cards=(
            StoryCard("c9", ("Fenrir", "wolf"), "A wolf.", "Fenrir", "character", "word", "Secret.", enabled=False),
        ),
        actions=[Action("a1", "start", "You wake."), Action("a2", "continue")],
        memories=(NewMemory("You slept.", "m7", ("a1",), pinned=True),),
    )


def test_every_field_is_written():
    assert to_dict(from_dict(FULL)) == FULL
    assert json.loads(dumps(from_dict(FULL))) == FULL
    assert loads(dumps(from_dict(FULL))) == from_dict(FULL)


def test_only_the_format_is_required():
    assert read() == Adventure()
    assert to_dict(Adventure()) == {"format": "adventure/1"}


@pytest.mark.parametrize("field", [name for name in FULL if name != "format"])
def test_null_counts_as_missing(field):
    assert read(**{field: None}) == Adventure()


@pytest.mark.parametrize(
    ("list_name", "entry", "missing"),
    [
        ("story_cards", {"id": "c1", "triggers": ["x"], "entry": "e"}, "title type match notes enabled"),
        ("story_cards", {"id": "c1", "title": "t"}, "triggers entry"),
        ("actions", {"id": "a1", "kind": "do"}, "text"),
        ("memories", {"id": "m1", "text": "t"}, "actions pinned"),
    ],
)
def test_null_in_an_entry_counts_as_missing(list_name, entry, missing):
    with_nulls = entry | dict.fromkeys(missing.split())
    adventure = read(**{list_name: [with_nulls]})
    assert adventure == read(**{list_name: [entry]})
    assert not any(word in dumps(adventure).lower() for word in ("none", "null", "undefined"))


def test_null_never_shows_in_a_context():
    adventure = read(
        ai_instructions=None,
        story_cards=[{"triggers": None, "entry": None}, {"triggers": ["hi"], "entry": None}],
        actions=[{"kind": "output", "text": None}, {"kind": "say", "text": "hi"}],
    )
    assert assemble(adventure, None, Settings(100)).text == "Recent Story:\n> hi"


@pytest.mark.parametrize(
    ("list_name", "prefix", "entry"),
    [("story_cards", "c", {"triggers": []}), ("actions", "a", {"kind": "do"}), ("memories", "m", {"text": "t"})],
)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([None, None, None], ["1", "2", "3"]),
        (["x", None, None], ["x", "2", "3"]),
        (["2", None, None], ["2", "3", "4"]),
        ([None, "1", None], ["2", "1", "3"]),
        ([None, None, "2"], ["1", "3", "2"]),
    ],
    ids=str,
)
def test_missing_ids_are_given_and_unique(list_name, prefix, entry, given, expected):
    named = {"x": "x"} | {number: prefix + number for number in "1234"}
    entries = [entry | ({} if id is None else {"id": named[id]}) for id in given]
    adventure = read(**{list_name: entries})
    assert [item.id for item in getattr(adventure, list_name)] == [named[id] for id in expected]


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"ai_instructions": 5}, ["ai_instructions", "a string", "a number"]),
        ({"title": ["x"]}, ["title", "a string", "a list"]),
        ({"memory_bank": "yes"}, ["memory_bank", "true or false", "a string"]),
        ({"memory_bank": 1}, ["memory_bank", "true or false", "a number"]),
        ({"actions": {}}, ["actions", "a list", "an object"]),
        ({"actions": "x"}, ["actions", "a list", "a string"]),
        ({"actions": ["x"]}, ["actions[0]", "an object", "a string"]),
        (
            {"actions": [{"kind": "do"}, {"kind": "dance"}]},
            ["actions[1].kind", "dance", "start, do, say, story, output"],
        ),
        ({"actions": [{"kind": "Do"}]}, ["actions[0].kind", '"Do"']),
        ({"actions": [{"text": "x"}]}, ["actions[0].kind", "null"]),
        ({"actions": [{"kind": 5}]}, ["actions[0].kind", "a string", "a number"]),
        ({"actions": [{"kind": "do", "text": 5}]}, ["actions[0].text", "a string", "a number"]),
        ({"actions": [{"kind": "do", "id": 5}]}, ["actions[0].id", "a string", "a number"]),
        ({"actions": [{"kind": "do", "id": ""}]}, ["actions[0].id", "empty"]),
        ({"actions": [{"kind": "do", "id": "a"}, {"kind": "do", "id": "a"}]}, ["actions[1].id", '"a"', "already"]),
        ({"story_cards": [{"id": "c"}, {"id": "b"}, {"id": "c"}]}, ["story_cards[2].id", '"c"', "already", "0"]),
        ({"memories": [{"id": "m"}, {"id": "m"}]}, ["memories[1].id", '"m"', "already"]),
        ({"story_cards": [{"triggers": 5}]}, ["story_cards[0].triggers", "a number"]),
        ({"story_cards": [{"triggers": ["x", 5]}]}, ["story_cards[0].triggers[1]", "a string", "a number"]),
        ({"story_cards": [{"match": "regex"}]}, ["story_cards[0].match", "regex", "word_start, word, substring"]),
        ({"story_cards": [{"enabled": 0}]}, ["story_cards[0].enabled", "true or false"]),
        ({"story_cards": [{"entry": {}}]}, ["story_cards[0].entry", "a string", "an object"]),
        ({"memories": [{"text": []}]}, ["memories[0].text", "a string", "a list"]),
        ({"memories": [{"actions": "a1"}]}, ["memories[0].actions", "a list"]),
        ({"memories": [{"actions": [1]}]}, ["memories[0].actions[0]", "a string", "a number"]),
        ({"memories": [{"pinned": "no"}]}, ["memories[0].pinned", "true or false"]),
        ({"format": "adventure/2"}, ["format", "adventure/1", "adventure/2"]),
        ({"format": None}, ["format", "adventure/1"]),
        ({"format": 1}, ["format", "a string"]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_error_names_the_place(fields, places):
    with pytest.raises(AdventureError) as caught:
        read(**fields)
    message = str(caught.value)
    assert all(place in message for place in places), message
    assert "\n" not in message


@pytest.mark.parametrize("document", [[], "x", 5, None, True, [1]], ids=repr)
def test_the_document_is_an_object(document):
    with pytest.raises(AdventureError, match="expected an object"):
        from_dict(document)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "line 1, column 1"),
        (b'{"format": "adventure/1",\n "actions": [', "line 2, column"),
        (b'{"format": "adventure/1",}', "line 1, column"),
        (b"\xff\xfe{\x00}\x00", "byte 0: not UTF-8"),
        (b'{"format": "adventure/1", "title": "\xe9"}', "byte 36: not UTF-8"),
        (b"[" * 100_000, "not usable JSON"),
        (b"1" * 5000, "not usable JSON"),
        ('{"title": "a\nb"}', "line 1, column"),
    ],
    ids=["empty", "truncated", "comma", "UTF-16", "Latin-1", "deep", "a huge number", "line end in a string"],
)
def test_broken_json_names_line_or_byte(data, says):
    with pytest.raises(AdventureError, match=says):
        loads(data)


@pytest.mark.parametrize("data", [json.dumps(FULL), json.dumps(FULL).encode()], ids=["str", "bytes"])
@pytest.mark.parametrize("mark", [False, True], ids=["plain", "byte-order mark"])
def test_text_or_bytes_with_or_without_a_byte_order_mark(data, mark):
    bom = "\ufeff" if isinstance(data, str) else b"\xef\xbb\xbf"
    assert loads(bom + data if mark else data) == from_dict(FULL)


def test_a_file(tmp_path):
    path = tmp_path / "adventure.json"
    path.write_text(json.dumps(FULL), encoding="utf-8")
    assert load(path) == load(str(path)) == from_dict(FULL)


@pytest.mark.parametrize("kind", ["missing", "folder", "broken", "wrong"])
def test_a_file_that_is_no_document_is_named(tmp_path, kind):
    path: Path = tmp_path / "adventure.json"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text("{" if kind == "broken" else '{"format": "x"}')
    with pytest.raises(AdventureError, match=r"adventure\.json: ."):
        load(path)


UNKNOWN = {
    "format": "adventure/1",
    "version": 7,
    "nested": {"a": [1, None, "x"]},
    "story_cards": [{"id": "c1", "triggers": ["x"], "entry": "e", "color": "red"}],
    "actions": [{"id": "a1", "kind": "do", "text": "x", "at": 1.5}],
    "memories": [{"id": "m1", "text": "t", "mood": None, "tags": ["x"]}],
}


def test_unknown_fields_are_kept_and_named_in_a_warning():
    with pytest.warns(UnknownFieldWarning) as caught:
        adventure = from_dict(UNKNOWN)
    assert len(caught) == 1
    for name in ("version", "nested", "story_cards[].color", "actions[].at", "memories[].tags"):
        assert name in str(caught[0].message)
    assert to_dict(adventure) == UNKNOWN
    with pytest.warns(UnknownFieldWarning):
        again = loads(dumps(adventure))
    assert to_dict(again) == UNKNOWN


def test_unknown_fields_change_nothing_else():
    known = {
        name: [{k: v for k, v in entry.items() if k not in ("color", "at", "mood", "tags")} for entry in value]
        for name, value in UNKNOWN.items()
        if isinstance(value, list)
    }
    with pytest.warns(UnknownFieldWarning):
        adventure = from_dict(UNKNOWN)
    assert assemble(adventure, None, Settings(100)).to_dict() == assemble(read(**known), None, Settings(100)).to_dict()


def test_no_warning_where_all_is_known():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not from_dict(FULL).extra


def test_reading_changes_nothing_in_the_document():
    before = json.dumps(UNKNOWN)
    with pytest.warns(UnknownFieldWarning):
        adventure = from_dict(UNKNOWN)
    to_dict(adventure)
    assert json.dumps(UNKNOWN) == before


@pytest.mark.parametrize("triggers", ["wolf, Fenrir", ["wolf", " Fenrir"]], ids=["one string", "list"])
def test_triggers_are_a_list_or_one_string_with_commas(triggers):
    adventure = read(
        story_cards=[{"triggers": triggers, "entry": "A wolf."}], actions=[{"kind": "do", "text": "call Fenrir"}]
    )
    assert "A wolf." in assemble(adventure, None, Settings(100)).text
    assert assemble(loads(dumps(adventure)), None, Settings(100)).text == assemble(adventure, None, Settings(100)).text


@pytest.mark.parametrize(
    ("escaped", "shown"),
    [
        ("\\ud83d\\udc4d", "👍"),
        ("half \\ud83d here", "half \ufffd here"),
        ("half \\udc4d here", "half \ufffd here"),
        ("\\u0000", "\0"),
        ("a\\r\\nb", "a\nb"),
        ("<|endoftext|>", "<|endoftext|>"),
    ],
    ids=["pair", "high half", "low half", "NUL", "CRLF", "control token"],
)
def test_text_may_hold_anything(escaped, shown):
    text = f'{{"format": "adventure/1", "actions": [{{"id": "a1", "kind": "output", "text": "{escaped}"}}]}}'
    adventure = loads(text)
    assert assemble(adventure, None, Settings(100)).text == f"Recent Story:\n{shown}"
    written = dumps(adventure)
    written.encode()  # it can always be saved as UTF-8
    assert assemble(loads(written.encode()), None, Settings(100)).text == f"Recent Story:\n{shown}"


def test_a_large_document_is_read_in_bounded_time():
    entries = [{"kind": "output", "text": f"You wait {n}. " * 20} for n in range(20_000)]
    data = json.dumps({"format": "adventure/1", "actions": entries})
    began = time.process_time()
    adventure = loads(data)
    assert len(adventure.actions) == 20_000
    loads(dumps(adventure))
    assert time.process_time() - began < 10


def test_one_string_of_triggers_survives_another_program():
    from assembler.formats import export, import_bytes

    adventure = from_dict(
        {"format": "adventure/1", "story_cards": [{"triggers": "heron, clockwork bird", "entry": "x"}]}
    )
    assert adventure.story_cards[0].triggers == ("heron", "clockwork bird")
    again = import_bytes(export(adventure, "aidungeon-cards")).adventure
    assert again.story_cards[0].triggers == ("heron", "clockwork bird")
