"""Where things stand in the context (SPEC.md section 5): orders and headers as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assembler.report import Line, Section
from assembler.settings import Layout

__all__ = ["FRAMES", "HEADERS", "ORDERS", "arrange", "last_of"]

RECENT_STORY = "recent_story_header"
"""The header of the Last Action, which stands apart from it: before History."""

ORDERS: Mapping[Layout, tuple[str, ...]] = {
    "classic": (
        "ai_instructions",
        "plot_essentials",
        "story_cards",
        "story_summary",
        "memory_bank",
        RECENT_STORY,
        "history",
        "authors_note",
        "last_action",
        "front_memory",
    ),
    "cache_friendly": (
        "ai_instructions",
        "plot_essentials",
        "story_summary",
        RECENT_STORY,
        "history",
        "memory_bank",
        "story_cards",
        "authors_note",
        "last_action",
        "front_memory",
    ),
}

HEADERS: Mapping[Section, str] = {
    "story_cards": "World Lore:",
    "memory_bank": "Memories:",
    "last_action": "Recent Story:",
}
"""Header lines: blocks of their own."""

FRAMES: Mapping[Section, tuple[str, str]] = {
    "story_summary": ("Story Summary:\n", ""),
    "authors_note": ("[Author's note: ", "]"),
}
"""What is shown around a section's text and is part of it."""


def arrange(lines: Iterable[Line], layout: Layout) -> tuple[list[Line], list[Line]]:
    """Return what was kept before History and behind it, in the order of the context.

    Within a section the given order stays.
    """
    places: dict[str, list[Line]] = {place: [] for place in ORDERS[layout]}
    for line in lines:
        if line.verdict == "dropped":
            continue
        header_of_action = line.item == "header" and line.section == "last_action"
        places[RECENT_STORY if header_of_action else line.section].append(line)
    before: list[Line] = []
    behind: list[Line] = []
    part = before
    for place, found in places.items():
        if place == "history":
            part = behind
        else:
            part += found
    return before, behind


def last_of(sections: Sequence[Section], layout: Layout) -> Section | None:
    """Return which of the sections stands last."""
    return max(sections, key=ORDERS[layout].index, default=None)
