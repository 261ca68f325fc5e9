"""Reading the fields of one foreign entry: `null` is missing, line ends become one kind, a wrong type is an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from assembler.action_log import Action, ActionLog
from assembler.errors import AdventureError
from assembler.formats.report import Log

__all__ = ["EntryError", "Fields", "Items", "as_json", "first_object", "items_of", "joined", "note_unused", "start"]

Items = Iterable[tuple[str, Any]]
"""Entries, each with its place in the file."""


class EntryError(Exception):
    """An entry cannot be read; the message is the reason to skip it, or, of the file's own texts, to refuse it."""


class Fields:
    """One JSON object of a foreign file."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    def text(self, *names: str) -> str:
        """The first of these fields that is there, as text (a number in digits); "" if none is."""
        for name in names:
            value = self.raw.get(name)
            if isinstance(value, str):
                return value.replace("\r\n", "\n")
            if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
            if value is not None:
                raise EntryError(f"{name}: expected a string, got {json.dumps(value)[:40]}")
        return ""

    def id(self, name: str) -> str:
        """A text or a number, as text."""
        value = self.raw.get(name)
        return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self.raw.get(name)
        return default if value is None else bool(value)

    def number(self, name: str) -> float:
        """A number; 0 for anything else."""
        value = self.raw.get(name)
        return value if isinstance(value, int | float) else 0

    def keys(self, name: str) -> str | list[str]:
        """A comma list as a string, or a list without its `null`s."""
        value = self.raw.get(name)
        if isinstance(value, list):
            if any(isinstance(key, dict | list) for key in value):
                raise EntryError(f"{name}: expected a list of strings")
            return [str(key) for key in value if key is not None]
        return self.text(name)

    def rest(self, *taken: str) -> dict[str, Any]:
        """The fields that are not among `taken`."""
        return {name: value for name, value in self.raw.items() if name not in taken}


def items_of(value: Any, place: str) -> list[tuple[str, Any]]:
    """The entries of a list, or of an object by their names, each with its place.

    Raises:
        AdventureError: it is neither.
    """
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [(f"{place}.{name}", item) for name, item in value.items()]
    if isinstance(value, list):
        return [(f"{place}[{number}]", item) for number, item in enumerate(value)]
    raise AdventureError(f"{place}: expected a list or an object of entries, got {json.dumps(value)[:40]}")


def first_object(value: Any) -> Mapping[str, Any]:
    """The first object among the entries; an empty one if there is none. For telling formats apart."""
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((entry for entry in entries if isinstance(entry, Mapping)), {})


def joined(*texts: str) -> str:
    """The texts that are not blank, one after the other."""
    return "\n".join(text for text in texts if text.strip())


def start(text: str) -> ActionLog:
    """The log of an adventure that begins with `text`, if there is any."""
    return ActionLog([Action("a1", "start", text)] if text.strip() else [])


def note_unused(fields: Fields, notes: Mapping[str, str], log: Log) -> None:
    """Note which of these fields are filled: they are kept, and do nothing here."""
    for name, note in notes.items():
        if fields.raw.get(name):
            log.note(note)


def as_json(value: Any) -> bytes:
    """The bytes of a foreign JSON file; a lone surrogate is written as its escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=2) + "\n").encode()
