"""How a context size is divided (SPEC.md sections 3 and 4): integer arithmetic, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Shares", "card_window", "required_limit", "split"]


@dataclass(frozen=True, slots=True)
class Shares:
    """What each dynamic part is sure of, in tokens; the three add up to what Required leaves."""

    story_cards: int
    history: int
    memory_bank: int


def required_limit(context_size: int, percent: int = 70) -> int:
    """Return the tokens that Required may have.

    >>> required_limit(4096)
    2867
    """
    return context_size * percent // 100


def split(left: int, *, memory_bank: bool, story_cards_percent: int = 25, memory_bank_percent: int = 25) -> Shares:
    """Divide what Required leaves; History has the rest, so nothing is lost to rounding.

    >>> split(2896, memory_bank=True)
    Shares(story_cards=724, history=1448, memory_bank=724)
    >>> split(2896, memory_bank=False)
    Shares(story_cards=724, history=2172, memory_bank=0)
    """
    story_cards = left * story_cards_percent // 100
    memories = left * memory_bank_percent // 100 if memory_bank else 0
    return Shares(story_cards, left - story_cards - memories, memories)


def card_window(share: int) -> int:
    """Return how many of the newest actions are searched for triggers, given the cards' share in tokens.

    >>> card_window(500), card_window(900), card_window(0)
    (4, 9, 4)
    """
    return 4 if share <= 500 else share // 100
