"""What a format cannot hold of an adventure, for the one who exports it."""

from __future__ import annotations

from assembler.adventure import COMPONENTS, Adventure
from assembler.formats.format import Format

__all__ = ["losses"]

_LISTS = ("story_cards", "actions", "memories")


def losses(adventure: Adventure, target: Format) -> list[str]:
    """One line for each kind of thing that a file of that format leaves out."""
    cards = adventure.story_cards if "story_cards" in target.holds else ()
    of_cards = {
        "enabled": ("cards that are switched off", [not card.enabled for card in cards]),
        "commas": ("triggers with a comma", ["," in trigger for card in cards for trigger in card.triggers]),
        "match": ("match modes", [card.match != target.matches for card in cards]),
        "title": ("titles", [bool(card.title) for card in cards]),
        "type": ("types", [bool(card.type) for card in cards]),
        "notes": ("notes", [bool(card.notes) for card in cards]),
    }
    lost = [(name, len(getattr(adventure, name))) for name in _LISTS if name not in target.holds]
    lost += [(what, sum(cases)) for name, (what, cases) in of_cards.items() if name not in target.holds]
    texts = [name for name in COMPONENTS if getattr(adventure, name) and name not in target.holds]
    return [f"{what}: {number}" for what, number in lost if number] + texts
