"""SillyTavern's World Info: `{"entries": {uid: {…}}}`.

SillyTavern matches an entry by its keys, case aside: `matchWholeWords` true is `word`, false is `substring`; null
leaves it to a setting that is not in the file, so the card takes this project's own default, `word_start`. Only a
`/…/flags` key is a pattern there. Keys are a list; a key with a comma is one key. Spaces around a key do not count.
Secondary keys (with AND or NOT by `selectiveLogic`) are in force if `selective` is true.
`comment` is the author's memo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.adventure import Adventure, MatchMode, StoryCard
from assembler.formats.cards import Entry, lore_of, read_cards
from assembler.formats.fields import Fields, as_json, first_object, items_of
from assembler.formats.format import Format
from assembler.formats.kept import Dialect, always_of, cards_of, kept_of, keys_of, number_ids
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS", "match_of", "whole_words_of"]

_DIALECT = Dialect("sillytavern-worldinfo", keys="key")
_TAKEN = ("uid", "key", "content", "comment", "disable")
_MODES: dict[Any, MatchMode] = {True: "word", False: "substring"}


def match_of(whole_words: Any) -> MatchMode:
    """The match mode of SillyTavern's true, false or null."""
    return _MODES.get(whole_words, "word_start") if isinstance(whole_words, bool) else "word_start"


def whole_words_of(match: MatchMode, kept: Any) -> bool | None:
    """SillyTavern's true, false or null for a match mode; `kept` stays where it says the same."""
    if match_of(kept) == match:
        return kept if isinstance(kept, bool) else None
    return next((words for words, mode in _MODES.items() if mode == match), None)


def _recognises(source: Source) -> bool:
    value = source.value
    if source.kind != "json" or not isinstance(value, Mapping) or not isinstance(value.get("entries"), dict | list):
        return False
    first = first_object(value["entries"])
    return not value["entries"] or ("key" in first and "content" in first)


def _load(source: Source, log: Log) -> Adventure:
    cards = read_cards(items_of(source.value["entries"], "entries"), _DIALECT, _entry, log)
    return lore_of(cards, _DIALECT, Fields(source.value).rest("entries"))


def _entry(fields: Fields) -> Entry:
    return Entry(
        keys=fields.keys("key"),
        text=fields.text("content"),
        kept=fields.rest(*_TAKEN),
        id=fields.id("uid"),
        match=match_of(fields.raw.get("matchWholeWords")),
        notes=fields.text("comment"),
        enabled=not fields.flag("disable", default=False),
        always=fields.flag("constant", default=False),
        order=fields.number("order"),
        conditional=fields.flag("selective", default=True) and bool(fields.keys("keysecondary")),
    )


def _save(adventure: Adventure) -> bytes:
    top = kept_of(adventure, _DIALECT.format)
    always = always_of(adventure, top, "content")
    cards = list(cards_of(adventure, switch=True))
    uids = number_ids([card.id for card in cards] + [str(raw.get("uid")) for raw in always])
    raws = [_raw(card) for card in cards] + always
    return as_json(top | {"entries": {str(uid): raw | {"uid": uid} for uid, raw in zip(uids, raws, strict=True)}})


def _raw(card: StoryCard) -> dict[str, Any]:
    kept = kept_of(card, _DIALECT.format)
    words = whole_words_of(card.match, kept.get("matchWholeWords"))
    return (
        {"uid": 0, "key": [], "keysecondary": [], "comment": card.notes or card.title, "content": card.entry}
        | {"constant": False, "selective": True, "order": 100, "position": 0}
        | kept
        | ({} if words is None and "matchWholeWords" not in kept else {"matchWholeWords": words})
        | {"key": keys_of(card, _DIALECT), "disable": not card.enabled}
    )


FORMATS = (
    Format(
        name=_DIALECT.format,
        what="SillyTavern World Info",
        recognises=_recognises,
        load=_load,
        save=_save,
        holds=frozenset({"story_cards", "enabled", "match", "notes", "commas"}),
    ),
)
