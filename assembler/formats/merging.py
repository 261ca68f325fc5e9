"""An import into an adventure that exists: nothing of it is overwritten, and what finds no place is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assembler.adventure import COMPONENTS, Adventure, StoryCard
from assembler.formats.kept import IMPORTED, Ids
from assembler.formats.report import Log

__all__ = ["counts", "merge"]


def merge(base: Adventure, new: Adventure, log: Log) -> Adventure:
    """Return `base` with what `new` brings.

    Cards are added, with new ids where theirs are taken; one with the same triggers and entry is there already. Plot
    Essentials are appended; the other texts, the log and the memories fill what is empty and are skipped otherwise.
    """
    merged = replace(
        base,
        id=base.id or new.id,
        title=base.title or new.title,
        story_cards=base.story_cards + _new_cards(base, new, log),
        plot_essentials=_appended(base.plot_essentials, new.plot_essentials),
        extra=_merged_extra(base.extra, new.extra),
    )
    for name in (*COMPONENTS, "actions", "memories"):
        here, there = getattr(base, name), getattr(new, name)
        if not there or name == "plot_essentials" or here == there:
            continue
        if here:
            log.skip(name, "the adventure has its own already; empty it first, or import into a new adventure")
        else:
            merged = replace(merged, **{name: there})
    return merged


def _new_cards(base: Adventure, new: Adventure, log: Log) -> tuple[StoryCard, ...]:
    present = {(card.triggers, card.entry) for card in base.story_cards}
    ids = Ids(card.id for card in base.story_cards)
    cards: list[StoryCard] = []
    for card in new.story_cards:
        if (card.triggers, card.entry) in present:
            log.skip(f"card {card.id}", "the adventure has this card already")
            continue
        cards.append(replace(card, id=ids.give(card.id)))
    return tuple(cards)


def _appended(here: str, there: str) -> str:
    if not there or there in here:
        return here
    return f"{here}\n\n{there}" if here else there


def _merged_extra(here: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**there, **here}
    formats = [extra[IMPORTED] for extra in (there, here) if isinstance(extra.get(IMPORTED), Mapping)]
    if formats:
        merged[IMPORTED] = {name: fields for kept in formats for name, fields in kept.items()}
    return merged


def counts(before: Adventure, after: Adventure) -> dict[str, int]:
    """How many of each kind came in; kinds of which none came are left out."""
    found = {name: len(getattr(after, name)) - len(getattr(before, name)) for name in _LISTS}
    found |= {name: int(getattr(after, name) != getattr(before, name)) for name in COMPONENTS}
    return {name: number for name, number in found.items() if number}


_LISTS = ("story_cards", "actions", "memories")
