"""NovelAI's lorebooks.

NovelAI looks for a key as a whole word, case aside: `word`. `/…/flags` is a pattern; spaces around a key do not count.
A key with `&` wants all its parts at once; as a literal trigger it matches only where it stands as written, which is
never too much. `forceActivation` is "always in". `displayName` is the title, the name of the category the type.
`contextConfig` (budget, position, prefix, suffix), `searchRange` and biases are kept for the export of a lorebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.adventure import Adventure, StoryCard
from assembler.formats.cards import Cards, Entry, lore_of, read_cards
from assembler.formats.fields import Fields, as_json, first_object, items_of
from assembler.formats.format import Format
from assembler.formats.kept import Dialect, always_of, cards_of, kept_of, keys_of
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS", "read_lorebook"]

_DIALECT = Dialect("novelai-lorebook", keys="keys")
_TAKEN = ("id", "keys", "text", "displayName", "enabled")


def read_lorebook(book: Mapping[str, Any], log: Log) -> Cards:
    """Read the entries of a lorebook, also of one inside a story."""
    categories = book.get("categories")
    listed = categories if isinstance(categories, list) else []
    names = {c["id"]: c.get("name") for c in listed if isinstance(c, Mapping) and isinstance(c.get("id"), str)}

    def entry(fields: Fields) -> Entry:
        keys = fields.keys("keys")
        config = fields.raw.get("contextConfig")
        if isinstance(config, Mapping) and (str(config.get("prefix") or "") + str(config.get("suffix") or "")).strip():
            log.note("a prefix or suffix around an entry's text is kept, not used", fields.text("displayName"))
        if any("&" in key for key in keys):
            log.note("keys with & match only as they are written", fields.text("displayName"))
        return Entry(
            keys=keys,
            text=fields.text("text"),
            kept=fields.rest(*_TAKEN),
            id=fields.id("id"),
            title=fields.text("displayName"),
            type=str(names.get(fields.id("category")) or ""),
            match="word",
            enabled=fields.flag("enabled", default=True),
            always=fields.flag("forceActivation", default=False),
        )

    return read_cards(items_of(book.get("entries"), "entries"), _DIALECT, entry, log)


def _load_book(source: Source, log: Log) -> Adventure:
    return lore_of(read_lorebook(source.value, log), _DIALECT, Fields(source.value).rest("entries"))


def _save_book(adventure: Adventure) -> bytes:
    top = kept_of(adventure, _DIALECT.format)
    always = always_of(adventure, top, "text")
    entries = [_raw(card) for card in cards_of(adventure, switch=True)] + always
    empty = {"lorebookVersion": 4, "settings": {"orderByKeyLocations": False}, "categories": []}
    return as_json(empty | top | {"entries": entries})


def _raw(card: StoryCard) -> dict[str, Any]:
    return (
        {"text": card.entry, "displayName": card.title, "id": card.id, "keys": []}
        | {"searchRange": 1000, "forceActivation": False, "category": ""}
        | kept_of(card, _DIALECT.format)
        | {"keys": keys_of(card, _DIALECT), "enabled": card.enabled}
    )


def _is_book(source: Source) -> bool:
    if source.kind != "json" or not isinstance(source.value, Mapping):
        return False
    first = first_object(source.value.get("entries"))
    return "lorebookVersion" in source.value or ("keys" in first and "text" in first)


FORMATS = (
    Format(
        name=_DIALECT.format,
        what="NovelAI lorebook",
        recognises=_is_book,
        load=_load_book,
        save=_save_book,
        holds=frozenset({"story_cards", "enabled", "title", "commas"}),
        matches="word",
    ),
)
