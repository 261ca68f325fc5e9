"""Character cards: V1 (flat), V2 and V3 (`spec`, `data`), as JSON or inside a PNG, and a character book on its own.

| card | adventure |
|---|---|
| name | title |
| description, personality, scenario; book entries that are always in | Plot Essentials, in this order |
| system prompt | AI Instructions |
| post-history instructions | Front Memory: both are the last text that the model sees |
| depth prompt ("character's note") | Author's Note |
| first message | the `start` action |
| character book | story cards |

The book is in `character_book.py`. Creator's notes never reach the context; example dialogue and alternate greetings
are kept for the export. `{{char}}` and `{{user}}` stay as they are: a card's book then equals the same world info.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.adventure import Adventure
from assembler.errors import AdventureError
from assembler.formats.cards import Cards, lore_of
from assembler.formats.character_book import DIALECT, book_in, entry_of, read_book
from assembler.formats.fields import Fields, as_json, joined, note_unused, start
from assembler.formats.format import ALL_TEXTS, Format
from assembler.formats.kept import always_of, cards_of, imported, kept_of, number_ids, without_always
from assembler.formats.png import card_in_png
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_NAME = DIALECT.format
_LORE = ("description", "personality", "scenario")
_DATA_TAKEN = ("name", "first_mes", "system_prompt", "post_history_instructions")
_UNUSED = {
    "mes_example": "example dialogue is kept, not used",
    "alternate_greetings": "alternate greetings are kept, not used",
    "creator_notes": "creator's notes are kept, never in the context",
}


def _data(value: Any) -> Mapping[str, Any] | None:
    """The card's own object, or None if this is no character card."""
    if not isinstance(value, Mapping):
        return None
    data = value.get("data")
    if isinstance(data, Mapping) and ("spec" in value or "first_mes" in data):
        return data
    return value if "first_mes" in value else None


def _recognises(source: Source) -> bool:
    value = source.value
    return source.kind == "json" and (_data(value) is not None or book_in(value) is not None)


def _load(source: Source, log: Log) -> Adventure:
    value = source.value
    if (book := book_in(value)) is not None:
        cards = read_book(book, log)
        return lore_of(cards, DIALECT, {"book": Fields(book).rest("entries")})
    return _adventure(value, log)


def _load_png(source: Source, log: Log) -> Adventure:
    value = card_in_png(source.data)
    if _data(value) is None:
        raise AdventureError("the text in the PNG is no character card: there is no first_mes")
    return _adventure(value, log)


def _adventure(value: Mapping[str, Any], log: Log) -> Adventure:
    fields = Fields(_data(value) or {})
    book = fields.raw.get("character_book")
    cards = read_book(book, log) if isinstance(book, Mapping) else Cards(())
    note_unused(fields, _UNUSED, log)
    return Adventure(
        title=fields.text("name"),
        ai_instructions=fields.text("system_prompt"),
        plot_essentials=joined(*map(fields.text, _LORE), *cards.essentials),
        authors_note=_depth_prompt(fields),
        front_memory=fields.text("post_history_instructions"),
        story_cards=cards.cards,
        actions=start(fields.text("first_mes")),
        extra=imported(_NAME, _kept(value, fields, cards)),
    )


def _kept(value: Mapping[str, Any], fields: Fields, cards: Cards) -> dict[str, Any]:
    """All that an export needs: the top without `data`, the data, the book without its entries."""
    top = Fields(value).rest("data") if value.get("data") else {}
    data = fields.rest(*_DATA_TAKEN, "character_book")
    book = fields.raw.get("character_book")
    kept: dict[str, Any] = {"top": top, "data": data} | cards.kept
    return kept | ({"book": Fields(book).rest("entries")} if isinstance(book, Mapping) else {})


def _depth_prompt(fields: Fields) -> str:
    extensions = fields.raw.get("extensions")
    prompt = extensions.get("depth_prompt") if isinstance(extensions, Mapping) else None
    return Fields(prompt).text("prompt") if isinstance(prompt, Mapping) else ""


def _save(adventure: Adventure) -> bytes:
    kept = kept_of(adventure, _NAME)
    top, data, book = (dict(part) if isinstance(part := kept.get(n), Mapping) else {} for n in ("top", "data", "book"))
    own, always = without_always(adventure.plot_essentials, always_of(adventure, kept, "content"), "content")
    if own != joined(*map(Fields(data).text, _LORE)):
        data |= {"description": own, "personality": "", "scenario": ""}
    cards = list(cards_of(adventure, switch=True))
    ids = number_ids([card.id for card in cards] + [str(raw.get("id")) for raw in always])
    raws = [entry_of(card) for card in cards] + always
    entries = [raw | {"id": id} for id, raw in zip(ids, raws, strict=True)]
    data = _save_data(adventure, data)
    if entries or book:
        data["character_book"] = (book or {"extensions": {}}) | {"entries": entries}
    return as_json({"spec": "chara_card_v2", "spec_version": "2.0"} | top | {"data": data})


def _save_data(adventure: Adventure, kept: dict[str, Any]) -> dict[str, Any]:
    start = next((action.text for action in adventure.actions if action.kind == "start"), "")
    empty: dict[str, Any] = {"mes_example": "", "creator_notes": "", "alternate_greetings": [], "tags": []}
    empty |= {"creator": "", "character_version": "", "personality": "", "scenario": "", "extensions": {}}
    data = empty | kept | {"name": adventure.title, "first_mes": start, "system_prompt": adventure.ai_instructions}
    data["post_history_instructions"] = adventure.front_memory
    if adventure.authors_note != _depth_prompt(Fields(data)):
        extensions = dict(data["extensions"]) if isinstance(data["extensions"], Mapping) else {}
        prompt = extensions.get("depth_prompt")
        prompt = prompt if isinstance(prompt, Mapping) else {"depth": 4, "role": "system"}
        data["extensions"] = extensions | {"depth_prompt": {**prompt, "prompt": adventure.authors_note}}
    return data


_HOLDS = (ALL_TEXTS - {"story_summary"}) | {"story_cards", "enabled", "match", "notes", "title", "commas"}

FORMATS = (
    Format(
        name=_NAME,
        what="character card V1, V2 or V3 with its book",
        recognises=_recognises,
        load=_load,
        save=_save,
        holds=_HOLDS,
    ),
    Format(
        name="character-card-png",
        what="character card inside a PNG picture",
        recognises=lambda source: source.kind == "png",
        load=_load_png,
    ),
)
