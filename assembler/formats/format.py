"""What a format is to the registry: how it is told apart, read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assembler.adventure import COMPONENTS, Adventure, MatchMode
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["ALL_TEXTS", "CARD_FIELDS", "Format"]

ALL_TEXTS = frozenset(COMPONENTS)
CARD_FIELDS = ("title", "type", "match", "notes", "enabled", "commas")


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file.

    Attributes:
        name: for `--as` and for reports.
        what: for people, in a few words.
        recognises: whether a file is of this format, by its content.
        load: makes an adventure of it; says in the log what was skipped.
        save: makes a file of an adventure, or None where there is no sense in it.
        holds: what a saved file can hold: plot components by name, `actions`, `memories`, and of the `story_cards`
            their `title`, `type`, `match`, `notes`, the switch (`enabled`) and `commas` in triggers.
        matches: the one match mode of its program, where a file cannot hold the mode of each card.
        many: a file may hold several adventures, of which `select` picks one.
    """

    name: str
    what: str
    recognises: Callable[[Source], bool]
    load: Callable[[Source, Log], Adventure]
    save: Callable[[Adventure], bytes] | None = None
    holds: frozenset[str] = frozenset()
    matches: MatchMode | None = None
    many: bool = False
