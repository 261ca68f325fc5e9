"""How lorebook front ends look for keys: one regular expression for each, searched for in every text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assembler.action_log import Action
from assembler.adventure import StoryCard

__all__ = ["Expressions"]


class Expressions:
    """One compiled expression for each trigger, from a word start on and without case.

    It says which cards match and no more: where, how often and how recently is not asked of it. A card is done with
    its first hit, and what was found in a text is kept, as a front end could.
    """

    def __init__(self, cards: Sequence[StoryCard]) -> None:
        self._keys = [
            (card.id, [re.compile(rf"\b{re.escape(trigger)}", re.IGNORECASE) for trigger in card.triggers])
            for card in cards
        ]
        self._known: dict[str, frozenset[str]] = {}

    def match(self, actions: Sequence[Action]) -> set[str]:
        """Return the ids of the cards of which a trigger occurs in one of the texts."""
        found: set[str] = set()
        for action in actions:
            cards = self._known.get(action.text)
            if cards is None:
                cards = self._known[action.text] = self._search(action.text)
            found |= cards
        return found

    def _search(self, text: str) -> frozenset[str]:
        return frozenset(card for card, keys in self._keys if any(key.search(text) for key in keys))
