"""What a game knows about an adventure (SPEC.md sections 1 and 8): plain values.

`document.py` reads and writes them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from assembler.action_log import Action, ActionLog
from assembler.errors import AdventureError
from memorybank.memory import NewMemory

__all__ = ["COMPONENTS", "MATCH_MODES", "Adventure", "MatchMode", "StoryCard"]

MatchMode = Literal["word_start", "word", "substring"]
MATCH_MODES: tuple[str, ...] = get_args(MatchMode)

COMPONENTS = ("ai_instructions", "plot_essentials", "story_summary", "authors_note", "front_memory")
"""The plot components, by their field names."""


@dataclass(frozen=True, slots=True)
class StoryCard:
    """Lore that goes in when one of its triggers occurs in the recent actions.

    Attributes:
        id: unique in its adventure.
        triggers: literal texts, or one string with commas; surrounding spaces count in mode `substring` alone.
        entry: the text that goes into the context.
        title: for people; never in the context.
        type: for people (`character`, `location`, …); never in the context.
        match: `word_start` (a trigger begins at a word start), `word` (and ends at a word end) or `substring`.
        notes: the author's own; never in the context.
        enabled: a card that is switched off never matches.
        extra: fields of the document that are not ours, kept for the round trip.

    Raises:
        AdventureError: a field of the wrong type, or an unknown match mode.
    """

    id: str
    triggers: tuple[str, ...] | str
    entry: str
    title: str = ""
    type: str = ""
    match: MatchMode = "word_start"
    notes: str = ""
    enabled: bool = True
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            raise AdventureError(f"story card id: expected a string, got {self.id!r}")
        if not isinstance(self.triggers, str | Iterable):
            raise AdventureError(f"story card {self.id!r}: triggers: expected strings, or one string with commas")
        if isinstance(self.triggers, str):
            parts = self.triggers.split(",")
            object.__setattr__(self, "triggers", parts if self.match == "substring" else map(str.strip, parts))
        object.__setattr__(self, "triggers", tuple(self.triggers))
        if not isinstance(self.enabled, bool):
            raise AdventureError(f"story card {self.id!r}: enabled: expected True or False, got {self.enabled!r}")
        for name in ("entry", "title", "type", "notes"):
            if not isinstance(getattr(self, name), str):
                raise AdventureError(f"story card {self.id!r}: {name}: expected a string")
        if not all(isinstance(trigger, str) for trigger in self.triggers):
            raise AdventureError(f"story card {self.id!r}: triggers: expected strings")
        if self.match not in MATCH_MODES:
            raise AdventureError(
                f"story card {self.id!r}: match {self.match!r} is unknown; use one of {', '.join(MATCH_MODES)}"
            )


@dataclass(frozen=True)
class Adventure:
    """Everything that a context can be made of. Assembling changes nothing in it.

    Attributes:
        actions: the log, oldest first. Any iterable is taken; it is kept as an `ActionLog`.
        story_cards: in the document's order, which breaks ties. The trigger index is built once per tuple.
        memories: the document's own memories; a bank made from them (`bank_of`) ranks them.
        memory_bank: whether the Memory Bank has a share of the context.
        id: the adventure's name for the caller.
        title: for people; never in the context.
        ai_instructions: goes to the system message.
        plot_essentials: what must never be forgotten.
        story_summary: shown behind `Story Summary:`.
        authors_note: shown as `[Author's note: …]` right before the last action.
        front_memory: the last text of the context; always whole.
        extra: fields of the document that are not ours, kept for the round trip.
    """

    actions: ActionLog = field(default_factory=ActionLog)
    story_cards: tuple[StoryCard, ...] = ()
    memories: tuple[NewMemory, ...] = ()
    memory_bank: bool = True
    id: str = ""
    title: str = ""
    ai_instructions: str = ""
    plot_essentials: str = ""
    story_summary: str = ""
    authors_note: str = ""
    front_memory: str = ""
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.actions, ActionLog):
            object.__setattr__(self, "actions", ActionLog(self.actions))
        object.__setattr__(self, "story_cards", tuple(self.story_cards))
        object.__setattr__(self, "memories", tuple(self.memories))
        for name, kind in (("story_cards", StoryCard), ("memories", NewMemory)):
            for number, item in enumerate(getattr(self, name)):
                if not isinstance(item, kind):
                    raise AdventureError(f"{name}[{number}]: expected a {kind.__name__}, got {type(item).__name__}")
        if not isinstance(self.memory_bank, bool):
            raise AdventureError(f"memory_bank: expected True or False, got {self.memory_bank!r}")
        for name in ("id", "title", *COMPONENTS):
            if not isinstance(getattr(self, name), str):
                raise AdventureError(f"{name}: expected a string, got {type(getattr(self, name)).__name__}")

    def with_actions(self, actions: Iterable[Action]) -> Adventure:
        """Return the adventure with `actions` appended to its log, in constant time for each."""
        log = self.actions
        for action in actions:
            log = log.append(action)
        grown = copy.copy(self)  # all the rest was checked when this one was made
        object.__setattr__(grown, "actions", log)
        return grown

    @property
    def last_action(self) -> Action | None:
        """The newest action with text, or None."""
        return next(self.actions.newest_first(), None)
