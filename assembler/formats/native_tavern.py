"""NativeTavern's files, camelCase relatives of SillyTavern's: world info (`{"entries": [{…}]}`) and character cards.

Entries match as in SillyTavern: a key is one literal text, spaces around it do not count; the file has no setting for
whole words, so cards take the default, `word_start` (next to a letter of a script without spaces a boundary always
holds). `insertionOrder` orders the entries that are always in; `secondaryKeys` count if `selective` is true.
The world's `name` is the adventure's title, its `description` is for people. A character card is read as a V2 card is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.adventure import Adventure, StoryCard
from assembler.formats.cards import Entry, lore_of, read_cards
from assembler.formats.fields import Fields, as_json, first_object, items_of, joined, note_unused, start
from assembler.formats.format import Format
from assembler.formats.kept import Dialect, always_of, cards_of, imported, kept_of, keys_of
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_DIALECT = Dialect("nativetavern-worldinfo", keys="keys")
_TAKEN = ("id", "keys", "content", "comment", "enabled")
_CARD = "nativetavern-card"
_CARD_TAKEN = ("name", "firstMessage", "systemPrompt", "postHistoryInstructions", "personality", "scenario")
_UNUSED = {
    "exampleDialogue": "example dialogue is kept, not used",
    "alternateGreetings": "alternate greetings are kept, not used",
    "creatorNotes": "creator's notes are kept, never in the context",
}


def _is_world(source: Source) -> bool:
    if source.kind != "json" or not isinstance(source.value, Mapping):
        return False
    first = first_object(source.value.get("entries"))
    return "keys" in first and "content" in first and ("insertionOrder" in first or "worldInfoId" in first)


def _load_world(source: Source, log: Log) -> Adventure:
    world = Fields(source.value)
    cards = read_cards(items_of(source.value["entries"], "entries"), _DIALECT, _entry, log)
    return lore_of(cards, _DIALECT, world.rest("entries", "name"), title=world.text("name"))


def _entry(fields: Fields) -> Entry:
    return Entry(
        keys=fields.keys("keys"),
        text=fields.text("content"),
        kept=fields.rest(*_TAKEN),
        id=fields.id("id"),
        notes=fields.text("comment"),
        enabled=fields.flag("enabled", default=True),
        always=fields.flag("constant", default=False),
        order=fields.number("insertionOrder"),
        conditional=fields.flag("selective", default=True) and bool(fields.keys("secondaryKeys")),
    )


def _save_world(adventure: Adventure) -> bytes:
    top = kept_of(adventure, _DIALECT.format)
    always = always_of(adventure, top, "content")
    entries = [_raw(card) for card in cards_of(adventure, switch=True)] + always
    return as_json(top | {"name": adventure.title, "entries": entries})


def _raw(card: StoryCard) -> dict[str, Any]:
    return (
        {"id": card.id, "keys": [], "content": card.entry, "enabled": card.enabled, "constant": False}
        | {"position": 1, "insertionOrder": 100, "comment": card.notes or card.title}
        | kept_of(card, _DIALECT.format)
        | {"keys": keys_of(card, _DIALECT)}
    )


def _is_card(source: Source) -> bool:
    return source.kind == "json" and isinstance(source.value, Mapping) and "firstMessage" in source.value


def _load_card(source: Source, log: Log) -> Adventure:
    fields = Fields(source.value)
    note_unused(fields, _UNUSED, log)
    return Adventure(
        title=fields.text("name"),
        ai_instructions=fields.text("systemPrompt"),
        plot_essentials=joined(*map(fields.text, ("description", "personality", "scenario"))),
        front_memory=fields.text("postHistoryInstructions"),
        actions=start(fields.text("firstMessage")),
        extra=imported(_CARD, fields.rest(*_CARD_TAKEN, "description")),
    )


FORMATS = (
    Format(
        name=_DIALECT.format,
        what="NativeTavern world info",
        recognises=_is_world,
        load=_load_world,
        save=_save_world,
        holds=frozenset({"story_cards", "enabled", "notes", "commas"}),
        matches="word_start",
    ),
    Format(
        name=_CARD,
        what="NativeTavern character card",
        recognises=_is_card,
        load=_load_card,
    ),
)
