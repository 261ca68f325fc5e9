"""What an import says about itself: what came in, what was skipped and why, what is kept but has no effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assembler.adventure import Adventure

__all__ = ["Imported", "Log", "Skip"]

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that was not imported.

    Attributes:
        place: where in the file, in its own words (`entries.7`, `line 3`).
        reason: why, in words.
    """

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True)
class Imported:
    """The outcome of an import.

    Attributes:
        adventure: what was read, merged into the adventure that was given, if one was.
        format: the name of the format that the file has.
        imported: how many of each kind came in: `story_cards`, `actions`, `memories`, and 1 for each plot component.
        skipped: what did not.
        notes: what was kept but has no effect here, or has another one than in the program that the file is from.
    """

    adventure: Adventure
    format: str
    imported: Mapping[str, int]
    skipped: list[Skip]
    notes: list[str]


@dataclass
class Log:
    """Collects skips, and notes of one kind under one line."""

    skipped: list[Skip] = field(default_factory=list)
    _places: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, place: str, reason: str) -> None:
        """Note that what stands at `place` is not imported."""
        self.skipped.append(Skip(place, reason))

    def note(self, text: str, place: str = "") -> None:
        """Note `text`; the same text at other places makes one line with a count."""
        places = self._places.setdefault(text, [])
        if place:
            places.append(place)

    @property
    def notes(self) -> list[str]:
        """One line for each kind of note, in the order of first occurrence."""
        return [text + _shown(places) for text, places in self._places.items()]


def _shown(places: list[str]) -> str:
    if not places:
        return ""
    different = list(dict.fromkeys(place[:60] for place in places))
    more = ", …" if len(different) > _SHOWN else ""
    return f" ({len(places)}: {', '.join(different[:_SHOWN])}{more})"
