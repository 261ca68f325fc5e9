"""Foreign entries as story cards, by the same rules for every program.

An entry without text is skipped, an id that is missing or taken gets a number, keys become literal triggers. An entry
that is always in the context over there (`constant`, `forceActivation`) has no trigger: its text goes to Plot
Essentials, in the order of insertion. What a card has no field for is kept under
`extra["imported"][format]`, so that an export to the same format gives it back; a text meant for the author
(`comment`, `description`) goes to the card's notes, which no context shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assembler.adventure import Adventure, MatchMode, StoryCard
from assembler.formats.fields import EntryError, Fields, Items, joined
from assembler.formats.kept import Dialect, Ids, imported
from assembler.formats.report import Log

__all__ = ["Cards", "Entry", "lore_of", "read_cards"]


@dataclass(slots=True)
class Entry:
    """One foreign entry, before it is a card.

    Attributes:
        keys: as they were written.
        text: what goes into the context.
        kept: the fields that have no other place.
        id: its own, or "".
        always: it needs no key to be in the context.
        order: among those that are always in, the lowest first.
        conditional: a further condition (secondary keys) is kept and not obeyed.
    """

    keys: str | list[str]
    text: str
    kept: dict[str, Any]
    id: str = ""
    title: str = ""
    type: str = ""
    match: MatchMode = "word_start"
    notes: str = ""
    enabled: bool = True
    always: bool = False
    order: float = 0
    conditional: bool = False


@dataclass(frozen=True)
class Cards:
    """The cards of a file, and the entries that need no trigger with their fields as they were."""

    cards: tuple[StoryCard, ...]
    always: list[tuple[Entry, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def essentials(self) -> list[str]:
        """The texts of the entries that are always in, in the order of insertion."""
        return [entry.text for entry, _ in self.always]

    @property
    def kept(self) -> dict[str, Any]:
        """What an export needs to give those entries back."""
        return {"always": [dict(raw) for _, raw in self.always]} if self.always else {}


def lore_of(cards: Cards, dialect: Dialect, fields: Mapping[str, Any], title: str = "") -> Adventure:
    """The adventure that a file of lore alone is; `fields` are those of the file around its entries."""
    return Adventure(
        title=title,
        plot_essentials=joined(*cards.essentials),
        story_cards=cards.cards,
        extra=imported(dialect.format, {**fields, **cards.kept}),
    )


def read_cards(items: Items, dialect: Dialect, read: Callable[[Fields], Entry], log: Log) -> Cards:
    """Make cards of all entries that can be cards; the others are skipped, with their reasons in `log`."""
    cards: list[StoryCard] = []
    always: list[tuple[Entry, Mapping[str, Any]]] = []
    ids = Ids()
    for place, raw in items:
        try:
            if not isinstance(raw, Mapping):
                raise EntryError("is no object")
            entry = read(Fields(raw))
            if not entry.text.strip():
                raise EntryError("has no text")
        except EntryError as error:
            log.skip(place, str(error))
            continue
        if entry.always and entry.enabled:
            always.append((entry, raw))
        else:
            cards.append(_card(entry, dialect, ids.give(entry.id or f"c{len(cards) + 1}"), log))
    always.sort(key=lambda pair: pair[0].order)
    for entry, _ in always:
        log.note("entries that are always in the context: their text is in the Plot Essentials", _name(entry))
    return Cards(tuple(cards), always)


def _card(entry: Entry, dialect: Dialect, id: str, log: Log) -> StoryCard:
    keys = dialect.read(entry.keys)
    kept = dict(entry.kept)
    if keys.patterns or keys.expanded or not _is_plain(entry.keys, keys.triggers):
        kept[dialect.keys] = entry.keys
    for key in keys.expanded:
        log.note("patterns written out as literal triggers", key)
    for key in keys.patterns:
        log.note("patterns are kept but match nothing, triggers are literal", key)
    if entry.conditional:
        log.note("secondary keys are kept but not obeyed, the card matches by its triggers alone", _name(entry) or id)
    return StoryCard(
        id=id,
        triggers=keys.triggers,
        entry=entry.text,
        title=entry.title,
        type=entry.type,
        match=entry.match,
        notes=entry.notes,
        enabled=entry.enabled,
        extra=imported(dialect.format, kept),
    )


def _is_plain(keys: str | list[str], triggers: tuple[str, ...]) -> bool:
    return keys == ",".join(triggers) if isinstance(keys, str) else tuple(keys) == triggers


def _name(entry: Entry) -> str:
    keys = entry.keys if isinstance(entry.keys, str) else ", ".join(entry.keys)
    return entry.title or entry.notes.partition("\n")[0] or keys or entry.text[:30]
