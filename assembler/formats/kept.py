"""What foreign files had and an adventure has not: kept under `extra["imported"][format]` for the way back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from assembler.action_log import Action
from assembler.adventure import Adventure, StoryCard
from assembler.document import IMPORTED
from assembler.formats.keys import Keys, Syntax, read_keys

__all__ = [
    "IMPORTED",
    "Dialect",
    "Ids",
    "always_of",
    "cards_of",
    "imported",
    "kept_of",
    "keys_of",
    "number_ids",
    "without_always",
]

_NUMBER = re.compile("0|[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a format writes its entries.

    Attributes:
        format: the name of the format.
        keys: the field with the keys.
        syntax: which keys are patterns.
        commas: keys are written as one string with commas.
        keep_spaces: spaces around a key count over there.
    """

    format: str
    keys: str
    syntax: Syntax = "slashes"
    commas: bool = False
    keep_spaces: bool = False

    def read(self, keys: str | list[str]) -> Keys:
        """Return the keys as triggers and patterns."""
        return read_keys(keys, self.syntax, keep_spaces=self.keep_spaces)


def imported(name: str, kept: Mapping[str, Any]) -> dict[str, Any]:
    """The `extra` of a card or an adventure that comes from a file of that format."""
    return {IMPORTED: {name: dict(kept)}} if kept else {}


def kept_of(thing: Adventure | Action | StoryCard, name: str) -> dict[str, Any]:
    """The fields that an adventure, an action or a card had in a file of that format."""
    kept = thing.extra.get(IMPORTED)
    fields = kept.get(name) if isinstance(kept, Mapping) else None
    return dict(fields) if isinstance(fields, Mapping) else {}


def keys_of(card: StoryCard, dialect: Dialect) -> Any:
    """The card's keys for an export: as they were written, unless the triggers were edited since."""
    kept = kept_of(card, dialect.format).get(dialect.keys)
    keys: list[str] = list(card.triggers)
    if isinstance(kept, str) or (isinstance(kept, list) and all(isinstance(key, str) for key in kept)):
        read = dialect.read(kept)
        if read.triggers == card.triggers:
            return kept
        keys += read.patterns
    return ",".join(key for key in keys if "," not in key or key not in card.triggers) if dialect.commas else keys


def always_of(adventure: Adventure, fields: dict[str, Any], text: str) -> list[dict[str, Any]]:
    """Take the entries that are always in out of `fields`: those whose text still is in the Plot Essentials."""
    entries = fields.pop("always", [])
    known = [dict(e) for e in entries if isinstance(e, Mapping)] if isinstance(entries, list) else []
    return [e for e in known if e.get(text) and _lines(e[text]) in adventure.plot_essentials]


def without_always(essentials: str, always: list[dict[str, Any]], text: str) -> tuple[str, list[dict[str, Any]]]:
    """Split Plot Essentials into what the author wrote and the entries at its end; none where that was edited."""
    end = "\n".join(_lines(entry[text]) for entry in always)
    if not always or not essentials.endswith(end):
        return essentials, []
    return essentials.removesuffix(end).removesuffix("\n"), always


def _lines(text: Any) -> str:
    return str(text).replace("\r\n", "\n")


class Ids:
    """Gives ids that are unique; of those that are wanted again, the second is `x-2`."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._copies: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """Return the wanted id, or that with the next number that is free."""
        id = wanted
        while id in self._taken:
            self._copies[wanted] = self._copies.get(wanted, 1) + 1
            id = f"{wanted}-{self._copies[wanted]}"
        self._taken.add(id)
        return id


def number_ids(ids: list[str]) -> list[int]:
    """Ids for a program that wants numbers: those that are numbers as they are, the others the next that are free."""
    own: dict[int, int] = {}
    for place, id in enumerate(ids):
        if _NUMBER.fullmatch(id):
            own.setdefault(int(id), place)
    places = {place: number for number, place in own.items()}
    free = (number for number in count() if number not in own)
    return [places[place] if place in places else next(free) for place in range(len(ids))]


def cards_of(adventure: Adventure, *, switch: bool) -> Iterable[StoryCard]:
    """The cards for a format; where it has no switch for them, those that are enabled."""
    return (card for card in adventure.story_cards if switch or card.enabled)
