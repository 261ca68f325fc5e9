"""AI Dungeon's story cards, and the World Info that they were called before 2023: one list of entries.

AI Dungeon looks for its keys anywhere in the text, case aside, so the cards match as `substring`; the keys are one
string, split at every comma, and a space next to a comma is part of the key. `description` is the author's. World
Info has `entry` and `hidden` where story cards have `value`, `type` and `title`; a hidden entry is switched off.
Scripts of that time (EWIJSON) take patterns with attributes as keys: see `keys.py`.
"""

from __future__ import annotations

from typing import Any

from assembler.adventure import Adventure
from assembler.formats.cards import Cards, Entry, read_cards
from assembler.formats.fields import Fields, as_json, first_object, items_of
from assembler.formats.format import Format
from assembler.formats.kept import Dialect, cards_of, kept_of, keys_of
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS", "read_story_cards"]

_STORY_CARDS = Dialect("aidungeon-cards", keys="keys", syntax="loose", commas=True, keep_spaces=True)
_WORLD_INFO = Dialect("aidungeon-worldinfo", keys="keys", syntax="loose", commas=True, keep_spaces=True)
_TAKEN = ("id", "keys", "value", "entry", "type", "title", "description", "hidden")


def read_story_cards(value: Any, place: str, log: Log) -> Cards:
    """Read a list of story cards or of World Info."""
    dialect = _WORLD_INFO if _is_world_info(value) else _STORY_CARDS
    return read_cards(items_of(value, place), dialect, _entry, log)


def _entry(fields: Fields) -> Entry:
    return Entry(
        keys=fields.keys("keys"),
        text=fields.text("value", "entry"),
        kept=fields.rest(*_TAKEN),
        id=fields.id("id"),
        title=fields.text("title"),
        type=fields.text("type"),
        match="substring",
        notes=fields.text("description"),
        enabled=not fields.flag("hidden", default=False),
    )


def _is_world_info(value: Any) -> bool:
    first = first_object(value)
    return "keys" in first and "entry" in first and "type" not in first


def _is_story_cards(source: Source) -> bool:
    value = source.value
    if source.kind != "json" or not isinstance(value, list):
        return False
    first = first_object(value)
    return not value or ("keys" in first and ("value" in first or "entry" in first))


def _load(source: Source, log: Log) -> Adventure:
    return Adventure(story_cards=read_story_cards(source.value, "", log).cards)


def _save_cards(adventure: Adventure) -> bytes:
    return as_json(
        [
            kept_of(card, _STORY_CARDS.format)
            | {"keys": keys_of(card, _STORY_CARDS), "value": card.entry, "type": card.type, "title": card.title}
            | {"description": card.notes}
            | {"useForCharacterCreation": bool(kept_of(card, _STORY_CARDS.format).get("useForCharacterCreation"))}
            for card in cards_of(adventure, switch=False)
        ]
    )


def _save_world_info(adventure: Adventure) -> bytes:
    return as_json(
        [
            {"id": card.id, "keys": keys_of(card, _WORLD_INFO), "entry": card.entry, "hidden": not card.enabled}
            | kept_of(card, _WORLD_INFO.format)
            | {"keys": keys_of(card, _WORLD_INFO)}
            for card in cards_of(adventure, switch=True)
        ]
    )


FORMATS = (
    Format(
        name=_WORLD_INFO.format,
        what="AI Dungeon World Info (until 2023)",
        recognises=lambda source: _is_story_cards(source) and _is_world_info(source.value),
        load=_load,
        save=_save_world_info,
        holds=frozenset({"story_cards", "enabled"}),
        matches="substring",
    ),
    Format(
        name=_STORY_CARDS.format,
        what="AI Dungeon story cards",
        recognises=_is_story_cards,
        load=_load,
        save=_save_cards,
        holds=frozenset({"story_cards", "title", "type", "notes"}),
        matches="substring",
    ),
)
