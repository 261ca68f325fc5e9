"""Story Cards: matched by their triggers, ranked by how often and how recently, taken while they fit.

SPEC.md section 4, paragraph *Story Cards*. What a trigger matches is in `triggers.py`.
"""

from __future__ import annotations

from assembler.blocks import BlockMaker
from assembler.dynamic.headed import HeadedSection
from assembler.dynamic.triggers import Match
from assembler.report import Line

__all__ = ["StoryCards"]


class StoryCards(HeadedSection):
    """The section `story_cards`: cards are whole or absent, and stand in the order of rank."""

    def __init__(self, matches: list[Match], blocks: BlockMaker) -> None:
        super().__init__("story_cards", blocks)
        for match in matches:
            block = blocks(match.card.entry)
            details = {"trigger": match.trigger, "action": match.action_id, "score": round(match.score, 6)}
            self.items.append(Line("story_cards", match.card.id, block.text, block.tokens, details=details))

    def fill(self, room: int) -> int:
        """Take the cards that are not in yet, in the order of rank, while they fit; return the tokens that it took."""
        used = 0
        for line in self.items:
            if line.kept:
                continue
            if not line.block:
                line.drop("the entry is empty")
            else:
                used += self.take(line, room - used)
        return used
