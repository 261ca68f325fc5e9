"""Random adventures with everything that a player can type: scripts, emoji, control characters, oddities of Unicode.

`random.Random` with a string as its seed gives the same adventures everywhere. They are small, and context sizes are
such that the budgets bite most of the time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from assembler import Action, Adventure, Settings, StoryCard
from assembler.action_log import KINDS, ActionKind
from assembler.settings import LAYOUTS
from memorybank.memory import NewMemory

__all__ = ["RandomAdventure", "random_adventure"]

WORDS = (
    *("the", "a", "you", "and", "river", "opens", "Greta", "heron", "heron's", "brass bell", "waits", "north", "1,204"),
    *("She", "said:", "“Not", "yet.”", "Then", "nothing.", "Mr.", "well-kept", "isn't", "re-entered", "unbelievably"),
    *("değirmen", "IRMAK", "ırmak", "İğne", "così", "perche\u0301", "Straße", "Ünal", "naïve", "z\u030c\u0323"),
    *("灯台守は", "夜明け", "船が来た。", "「誰だ」", "河边", "钟声", "กระท่อม", "ริมน้ำ", "방앗간", "강\u11a8"),
    *("мельница", "ръка", "ποταμός", "نهر", "גשר", "नदी", "გემი", "ገበያ"),
    *("🦆", "🧙🏽‍♀️", "👩‍🌾", "🇫🇮🇪🇪", "❤️‍🔥", "…", "—", "?!", "::", "**bold**", "`code`", "/", "/roll", "//", "\\n"),
    *("<|endoftext|>", "<|im_start|>", "[Author's note: no]", "World Lore:", "Memories:", "> go", ">", "{}", "%s"),
    *(
        "\x00",
        "\x1b[0m",
        "\u200b",
        "\u202e",
        "\ufeff",
        "\ud83c",
        "\udfff",
        "\u00ad",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
)
SPACES = (*[" "] * 14, "\n", "\n\n", "\r\n", "\r", "\t", "   ", "\u00a0", "\u3000", "")
TRIGGERS = (
    "Greta",
    "heron",
    "bell",
    "ırmak",
    "irmak",
    "değirmen",
    "straße",
    "河",
    "ริม",
    "мельниц",
    "🦆",
    "e",
    ".",
    " a ",
)
COMPONENTS = ("ai_instructions", "plot_essentials", "story_summary", "authors_note", "front_memory")
PERCENTS = (*[(70, 25, 25)] * 5, (70, 50, 50), (50, 0, 30), (100, 25, 0), (0, 100, 0), (20, 5, 95))


@dataclass(frozen=True)
class RandomAdventure:
    """An adventure, its memories in the order in which a bank ranks them, and settings without a tokenizer.

    Attributes:
        adventure: what is packed.
        ranking: its memories, pinned ones first, the rest in a random order.
        settings: what `Settings` takes besides the tokenizer.
    """

    adventure: Adventure
    ranking: tuple[NewMemory, ...]
    settings: dict[str, object]

    def settings_for(self, tokenizer: str) -> Settings:
        """Return the settings with a tokenizer."""
        return Settings(tokenizer=tokenizer, **self.settings)  # type: ignore[arg-type]


def random_adventure(seed: str) -> RandomAdventure:
    """Return the adventure of a seed: up to 30 actions, 10 cards and 8 memories."""
    chance = random.Random(seed)
    actions = _actions(chance)
    memories = _memories(chance, actions)
    components = {name: _text(chance, 40) for name in COMPONENTS if chance.random() < 0.6}
    if "front_memory" in components:
        components["front_memory"] = components["front_memory"][:80]
    adventure = Adventure(
        actions=actions,  # type: ignore[arg-type]  # kept as an ActionLog
        story_cards=_cards(chance),
        memories=memories,
        memory_bank=chance.random() < 0.8,
        **components,  # type: ignore[arg-type]  # all of them texts
    )
    ranking = chance.sample(memories, len(memories))
    ranking.sort(key=lambda memory: not memory.pinned)
    return RandomAdventure(adventure, tuple(ranking), _settings(chance))


def _text(chance: random.Random, most: int) -> str:
    """Return a text of up to so many words, mostly short."""
    count = round(most * chance.random() ** 2)
    return "".join(chance.choice(WORDS) + chance.choice(SPACES) for _ in range(count))


def _actions(chance: random.Random) -> list[Action]:
    kinds = [cast(ActionKind, chance.choice(KINDS)) for _ in range(chance.randrange(31))]
    return [
        Action(f"a{number}", kind, "" if kind == "continue" else _text(chance, 40))
        for number, kind in enumerate(kinds, start=1)
    ]


def _cards(chance: random.Random) -> tuple[StoryCard, ...]:
    return tuple(
        StoryCard(
            id=f"c{number}",
            triggers=tuple(chance.sample(TRIGGERS, chance.randrange(4))),
            entry=_text(chance, 30),
            match=chance.choice(("word_start", "word_start", "word", "substring")),
            enabled=chance.random() < 0.9,
        )
        for number in range(1, chance.randrange(11) + 1)
    )


def _memories(chance: random.Random, actions: Sequence[Action]) -> tuple[NewMemory, ...]:
    """Return memories with sources anywhere in the log, or gone from it, or none."""
    found = []
    for number in range(1, chance.randrange(9) + 1):
        first = chance.randrange(len(actions) + 1)
        sources = [action.id for action in actions[first : first + chance.randrange(5)]]
        gone = ["gone"] if chance.random() < 0.1 else []
        text = _text(chance, 20).strip() or "The bell rang."
        found.append(NewMemory(text, id=f"m{number}", actions=(*sources, *gone), pinned=chance.random() < 0.2))
    return tuple(found)


def _settings(chance: random.Random) -> dict[str, object]:
    low, high = chance.choice(((1, 80), (80, 500), (80, 500), (500, 1_500), (1_500, 5_000)))
    required, cards, memories = chance.choice(PERCENTS)
    return {
        "context_size": chance.randint(low, high),
        "layout": chance.choice(LAYOUTS),
        "required_percent": required,
        "story_cards_percent": cards,
        "memory_bank_percent": memories,
    }
