"""The adventure document `adventure/1` (SPEC.md section 8): reading with errors that name the place, and writing."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

from assembler.action_log import KINDS, Action, ActionKind, ActionLog
from assembler.adventure import COMPONENTS, MATCH_MODES, Adventure, MatchMode, StoryCard
from assembler.errors import AdventureError
from memorybank.memory import NewMemory

__all__ = ["FORMAT", "UnknownFieldWarning", "dumps", "from_dict", "load", "loads", "parse_json", "to_dict"]

FORMAT = "adventure/1"

IMPORTED = "imported"
"""The field in which `assembler import` keeps what only the file's own program understands; no cause for a warning."""

_OTHER_FILES = "other programs' files are read by `assembler import`"

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class UnknownFieldWarning(UserWarning):
    """The document has fields that are kept on a round trip and otherwise ignored."""


def load(path: str | Path) -> Adventure:
    """Read an adventure document from a file.

    Raises:
        AdventureError: the file cannot be read or is not a valid document; the message names the place.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a ValueError for a NUL in the path
        raise AdventureError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        return loads(data)
    except AdventureError as error:
        raise AdventureError(f"{path}: {error}") from error


def loads(data: bytes | str) -> Adventure:
    """Read an adventure document from its JSON text. Raises `AdventureError`, which names line or field."""
    return from_dict(parse_json(data))


def parse_json(data: bytes | str) -> Any:
    """Parse JSON, with or without a byte-order mark. Raises `AdventureError`, which names line and column."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data.removeprefix("\ufeff")
        return json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise AdventureError(f"byte {error.start}: not UTF-8; save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        raise AdventureError(f"line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise AdventureError(f"not usable JSON: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def dumps(adventure: Adventure) -> str:
    """Write an adventure as an `adventure/1` document: indented JSON that can always be encoded as UTF-8."""
    text = json.dumps(to_dict(adventure), ensure_ascii=False, indent=2) + "\n"
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def from_dict(document: object, *, warn: bool = True) -> Adventure:
    """Make an adventure from a parsed document.

    Args:
        document: what `parse_json` returns.
        warn: whether to warn of unknown fields.

    Raises:
        AdventureError: a field of the wrong type, a duplicate id, an unknown kind; the message names the place.

    Warns:
        UnknownFieldWarning: once, naming the fields that are kept but not used.
    """
    if not isinstance(document, Mapping):
        raise AdventureError(f"the document: expected an object, got {_kind_of(document)}; {_OTHER_FILES}")
    top = _Reader(document, "")
    version = top.text("format")
    if version != FORMAT:
        raise AdventureError(
            f'format: expected "{FORMAT}", got {json.dumps(document.get("format"), default=str)[:80]}; {_OTHER_FILES}'
        )
    fields: dict[str, Any] = {name: top.text(name) for name in ("id", "title", *COMPONENTS)}
    adventure = Adventure(
        memory_bank=top.flag("memory_bank", default=True),
        story_cards=tuple(_card(reader, id) for reader, id in top.entries("story_cards", "c")),
        actions=ActionLog(_action(reader, id) for reader, id in top.entries("actions", "a")),
        memories=tuple(_memory(reader, id) for reader, id in top.entries("memories", "m")),
        extra=top.rest(),
        **fields,
    )
    if warn:
        _warn_of_unknown_fields(adventure)
    return adventure


def _card(reader: _Reader, id: str) -> StoryCard:
    return StoryCard(
        id=id,
        title=reader.text("title"),
        type=reader.text("type"),
        triggers=reader.triggers(),
        match=cast(MatchMode, reader.choice("match", MATCH_MODES, default="word_start")),
        entry=reader.text("entry"),
        notes=reader.text("notes"),
        enabled=reader.flag("enabled", default=True),
        extra=reader.rest(),
    )


def _action(reader: _Reader, id: str) -> Action:
    kind = cast(ActionKind, reader.choice("kind", KINDS))
    return Action(id=id, kind=kind, text=reader.text("text"), extra=reader.rest())


def _memory(reader: _Reader, id: str) -> NewMemory:
    return NewMemory(
        id=id,
        text=reader.text("text"),
        actions=reader.texts("actions"),
        pinned=reader.flag("pinned", default=False),
        metadata=reader.rest(),
    )


def to_dict(adventure: Adventure) -> dict[str, Any]:
    """Return the document of an adventure: JSON values, unknown fields included, empty ones left out."""
    cards = [
        _without_empty(id=c.id, title=c.title, type=c.type)
        | {"triggers": list(c.triggers)}
        | ({} if c.match == "word_start" else {"match": c.match})
        | {"entry": c.entry}
        | _without_empty(notes=c.notes)
        | ({} if c.enabled else {"enabled": False})
        | c.extra
        for c in adventure.story_cards
    ]
    memories = [
        {"id": m.id, "text": m.text}
        | _without_empty(actions=list(m.actions))
        | ({"pinned": True} if m.pinned else {})
        | dict(m.metadata)
        for m in adventure.memories
    ]
    actions = [{"id": a.id, "kind": a.kind, "text": a.text} | a.extra for a in adventure.actions]
    texts = {name: getattr(adventure, name) for name in ("id", "title", *COMPONENTS)}
    return (
        {"format": FORMAT}
        | _without_empty(**texts)
        | ({} if adventure.memory_bank else {"memory_bank": False})
        | _without_empty(story_cards=cards, actions=actions, memories=memories)
        | adventure.extra
    )


def _without_empty(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _warn_of_unknown_fields(adventure: Adventure) -> None:
    places = [key for key in adventure.extra if key != IMPORTED]
    for name, extras in (
        ("story_cards", (card.extra for card in adventure.story_cards)),
        ("actions", (action.extra for action in adventure.actions)),
        ("memories", (memory.metadata for memory in adventure.memories)),
    ):
        places += sorted({f"{name}[].{key}" for extra in extras for key in extra if key != IMPORTED})
    if places:
        shown = ", ".join(places[:10]) + (f" and {len(places) - 10} more" if len(places) > 10 else "")
        warnings.warn(f"unknown fields are kept but not used: {shown}", UnknownFieldWarning, stacklevel=3)


class _Reader:
    """Takes fields out of one JSON object; knows its place; `null` counts as missing."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        self._left = dict(fields)
        self._where = where

    def _take(self, name: str, expected: type | tuple[type, ...], what: str) -> Any:
        value = self._left.pop(name, None)
        if value is not None and not isinstance(value, expected):
            self._fail(name, f"expected {what}, got {_kind_of(value)}")
        return value

    def _fail(self, name: str, problem: str) -> NoReturn:
        raise AdventureError(f"{self._where}.{name}: {problem}".lstrip("."))

    def text(self, name: str) -> str:
        return self._take(name, str, "a string") or ""

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._take(name, bool, "true or false")
        return default if value is None else value

    def choice(self, name: str, choices: tuple[str, ...], *, default: str | None = None) -> str:
        value: str | None = self._take(name, str, "a string")
        value = default if value is None else value
        if value is None or value not in choices:
            self._fail(name, f"{json.dumps(value)[:80]} is not known; use one of {', '.join(choices)}")
        return value

    def triggers(self) -> tuple[str, ...] | str:
        """Return a list of triggers, or the one string with commas as it is."""
        return self._left.pop("triggers") if isinstance(self._left.get("triggers"), str) else self.texts("triggers")

    def texts(self, name: str) -> tuple[str, ...]:
        items = self._take(name, list, "a list of strings") or []
        for number, item in enumerate(items):
            if not isinstance(item, str):
                self._fail(f"{name}[{number}]", f"expected a string, got {_kind_of(item)}")
        return tuple(items)

    def entries(self, name: str, prefix: str) -> list[tuple[_Reader, str]]:
        """Readers of the objects in a list, each with its own or a given id."""
        readers = []
        for number, item in enumerate(self._take(name, list, "a list") or []):
            if not isinstance(item, Mapping):
                self._fail(f"{name}[{number}]", f"expected an object, got {_kind_of(item)}")
            readers.append(_Reader(item, f"{self._where}.{name}[{number}]".lstrip(".")))
        return list(zip(readers, _ids(readers, prefix), strict=True))

    def rest(self) -> dict[str, Any]:
        """What nobody took."""
        return self._left


def _ids(readers: list[_Reader], prefix: str) -> list[str]:
    """The readers' own ids, checked; where one is missing, `prefix` and its place, or the next number that is free."""
    own = [cast("str | None", reader._take("id", str, "a string")) for reader in readers]
    first: dict[str, int] = {}
    for number, (reader, id) in enumerate(zip(readers, own, strict=True)):
        if id == "":
            reader._fail("id", "is empty; leave it out to be given one")
        if id is not None and id in first:
            reader._fail("id", f"{json.dumps(id)} is already the id of entry {first[id]}; give every entry its own")
        if id is not None:
            first[id] = number
    taken = set(first)
    ids: list[str] = []
    for number, id in enumerate(own, start=1):
        if id is None:
            free = number
            while f"{prefix}{free}" in taken:
                free += 1
            id = f"{prefix}{free}"
            taken.add(id)
        ids.append(id)
    return ids


def _kind_of(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
