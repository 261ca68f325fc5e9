"""The settings of a context. What is given is obeyed to the letter or refused with its range (SPEC.md section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assembler.errors import SettingsError
from memorybank.inputs import MAX_RECENT
from memorybank.search.ranking import DEFAULT_RANKING, RANKINGS
from memorybank.tokenizer import DEFAULT_TOKENIZER, Tokenizer, open_tokenizer

__all__ = ["LAYOUTS", "MOST_TOKENS", "Layout", "Settings"]

Layout = Literal["classic", "cache_friendly"]
LAYOUTS: tuple[Layout, ...] = ("classic", "cache_friendly")

MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """How a context is assembled.

    Attributes:
        context_size: tokens that the whole prompt may have; the answer's room is already subtracted.
        tokenizer: an encoding's name, the path of a Hugging Face `tokenizer.json`, `chars/4`, or an object with
            `name`, `is_estimate`, `count` and `starts`.
        layout: `classic`, or `cache_friendly` so that a model server can reuse the beginning of the prompt.
        required_percent: how much of the context size Required may have.
        story_cards_percent: the cards' share of what Required leaves.
        memory_bank_percent: the memories' share of what Required leaves; 0 in effect when the bank is off.
        anchor_step: tokens by which History's beginning moves on at least, in the cache-friendly layout.
        memory_candidates: how many memories, best first, are considered; None for 100, or one for every ten tokens
            of room if that is more.
        ranking: how memories are ranked: `hybrid`, by meaning and by words; `semantic`, by meaning alone; or
            `reranked`, by the cross-encoder that the bank was opened with.
        recent_actions: how many of the actions before the last one are a weaker part of the query, 0 to 16.
        near_duplicate: cosine of two memories from which on they tell the same event and only one of them goes in;
            0.9 to 1, or None to let all of them in.
        list_unmatched: whether the report lists the cards that did not match with what they wait for.

    Raises:
        SettingsError: a setting is of the wrong type or out of its range.
    """

    context_size: int = 4096
    tokenizer: str | Tokenizer = DEFAULT_TOKENIZER
    layout: Layout = "classic"
    required_percent: int = 70
    story_cards_percent: int = 25
    memory_bank_percent: int = 25
    anchor_step: int = 512
    memory_candidates: int | None = None
    ranking: str = DEFAULT_RANKING
    recent_actions: int = 4
    near_duplicate: float | None = 0.95
    list_unmatched: bool = False

    def __post_init__(self) -> None:
        self._check("context_size", 1, MOST_TOKENS)
        self._check("required_percent", 0, 100)
        self._check("story_cards_percent", 0, 100)
        self._check("memory_bank_percent", 0, 100)
        self._check("anchor_step", 1, MOST_TOKENS)
        if self.memory_candidates is not None:
            self._check("memory_candidates", 1, 10_000)
        self._check("recent_actions", 0, MAX_RECENT)
        if self.ranking not in RANKINGS:
            raise SettingsError(f"ranking: {self.ranking!r} is unknown; use one of {', '.join(RANKINGS)}")
        if self.near_duplicate is not None:
            self._check_cosine(self.near_duplicate)
        if self.story_cards_percent + self.memory_bank_percent > 100:
            raise SettingsError(
                f"story_cards_percent ({self.story_cards_percent}) and memory_bank_percent "
                f"({self.memory_bank_percent}) exceed 100 together; History has what they leave"
            )
        if self.layout not in LAYOUTS:
            raise SettingsError(f"layout: {self.layout!r} is unknown; use one of {', '.join(LAYOUTS)}")
        if not isinstance(self.list_unmatched, bool):
            raise SettingsError(f"list_unmatched: expected True or False, got {self.list_unmatched!r}")
        if not isinstance(self.tokenizer, str | Tokenizer):
            raise SettingsError(f"tokenizer: expected a name, a path or a Tokenizer, got {self.tokenizer!r}")

    def _check(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise SettingsError(f"{name}: expected an integer from {least} to {most}, got {value!r}")
        if not least <= value <= most:
            raise SettingsError(f"{name}: {value} is out of range; use {least} to {most}")

    def _check_cosine(self, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.9 <= value <= 1:
            raise SettingsError(f"near_duplicate: expected a number from 0.9 to 1, or None, got {value!r}")

    def candidates(self, room: int) -> int:
        """Return how many memories to ask the bank for, given the tokens that there are for them."""
        return self.memory_candidates or min(max(100, room // 10), 10_000)

    def open_tokenizer(self) -> Tokenizer:
        """Return the tokenizer. Raises `memorybank.errors.TokenizerError` if it cannot be had."""
        return open_tokenizer(self.tokenizer) if isinstance(self.tokenizer, str) else self.tokenizer
