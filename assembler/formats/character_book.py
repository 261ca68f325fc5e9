"""A character book: the lore of a V2 or V3 card, or a file of its own.

Entries match as in `sillytavern_world_info.py`, whose further fields stand in `extensions` here: `match_whole_words`
true is `word`, false `substring`, missing `word_start`. `name` is the title, `comment` the author's memo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.adventure import StoryCard
from assembler.formats.cards import Cards, Entry, read_cards
from assembler.formats.fields import Fields, first_object, items_of
from assembler.formats.kept import Dialect, kept_of, keys_of
from assembler.formats.report import Log
from assembler.formats.sillytavern_world_info import match_of, whole_words_of

__all__ = ["DIALECT", "book_in", "entry_of", "read_book"]

DIALECT = Dialect("character-card-v2", keys="keys")
_TAKEN = ("id", "keys", "name", "content", "comment", "enabled")


def book_in(value: Any) -> Mapping[str, Any] | None:
    """The book, if the file is one and no card: on its own, or in a V3 lorebook file."""
    book = value.get("data") if isinstance(value, Mapping) and "spec" in value else value
    first = first_object(book.get("entries")) if isinstance(book, Mapping) else {}
    return book if {"keys", "content", "insertion_order"} <= first.keys() else None


def read_book(book: Mapping[str, Any], log: Log) -> Cards:
    """Read the entries of a book."""
    return read_cards(items_of(book.get("entries"), "character_book.entries"), DIALECT, _entry, log)


def _entry(fields: Fields) -> Entry:
    extensions = fields.raw.get("extensions")
    whole_words = extensions.get("match_whole_words") if isinstance(extensions, Mapping) else None
    return Entry(
        keys=fields.keys("keys"),
        text=fields.text("content"),
        kept=fields.rest(*_TAKEN),
        id=fields.id("id"),
        title=fields.text("name"),
        match=match_of(whole_words),
        notes=fields.text("comment"),
        enabled=fields.flag("enabled", default=True),
        always=fields.flag("constant", default=False),
        order=fields.number("insertion_order"),
        conditional=fields.flag("selective", default=True) and bool(fields.keys("secondary_keys")),
    )


def entry_of(card: StoryCard) -> dict[str, Any]:
    """The entry of a book that a card is."""
    kept = kept_of(card, DIALECT.format)
    extensions = kept.get("extensions")
    extensions = dict(extensions) if isinstance(extensions, Mapping) else {}
    words = whole_words_of(card.match, extensions.get("match_whole_words"))
    if words is not None or "match_whole_words" in extensions:
        extensions["match_whole_words"] = words
    return (
        {"keys": [], "secondary_keys": [], "comment": card.notes, "content": card.entry, "constant": False}
        | {"selective": False, "insertion_order": 100, "position": "before_char"}
        | kept
        | {"keys": keys_of(card, DIALECT), "enabled": card.enabled, "extensions": extensions}
        | ({"name": card.title} if card.title else {})
    )
