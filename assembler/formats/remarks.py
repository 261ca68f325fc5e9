"""What is worth a note about any imported adventure, whatever file it came from."""

from __future__ import annotations

import re

from assembler.adventure import COMPONENTS, Adventure
from assembler.formats.report import Log

__all__ = ["remark"]

_PLACEHOLDER = re.compile(r"\{\{[^{}\n]{1,80}\}\}|\$\{[^{}\n]{1,200}\}")


def remark(adventure: Adventure, log: Log) -> None:
    """Note the placeholders that stay in the texts, the cards that match nothing, and triggers whose spaces count."""
    texts = [getattr(adventure, name) for name in COMPONENTS]
    texts += [card.entry for card in adventure.story_cards]
    texts += [action.text for action in adventure.actions]
    for text in texts:
        for placeholder in _PLACEHOLDER.findall(text):
            log.note("placeholders stay as they are", placeholder)
    for card in adventure.story_cards:
        name = card.title or next((trigger for trigger in card.triggers if trigger.strip()), card.id)
        if card.enabled and not any(trigger.strip() for trigger in card.triggers):
            log.note("cards without a trigger match nothing until they are given one", name)
        if card.match == "substring" and any(trigger != trigger.strip() for trigger in card.triggers):
            log.note("spaces around a trigger count, as they do in the program that the file is from", name)
