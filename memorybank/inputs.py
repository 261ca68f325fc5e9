"""What a call to the bank may contain: each check returns the value in its one form or says what is wrong with it.

A leaf: the standard library only. Nothing here knows of databases or vectors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from memorybank.errors import InvalidInputError
from memorybank.memory import NewMemory, Settable, State
from memorybank.text import clean

__all__ = [
    "MAX_ACTIONS",
    "MAX_ID",
    "MAX_LIMIT",
    "MAX_METADATA",
    "MAX_RECENT",
    "MAX_TEXT",
    "checked_actions",
    "checked_cursor",
    "checked_edit",
    "checked_flag",
    "checked_id",
    "checked_ids",
    "checked_limit",
    "checked_metadata",
    "checked_new",
    "checked_recent",
    "checked_settable",
    "checked_similarity",
    "checked_state",
    "checked_text",
    "checked_tokens",
    "checked_versions",
    "listed",
]

MAX_TEXT = 100_000
"""Characters of one memory's text. A run of a million spaces stops tiktoken, and no memory is that long."""
MAX_ID = 200
"""Characters of an id: of a memory, an action or a bank."""
MAX_ACTIONS = 10_000
"""Source actions of one memory."""
MAX_METADATA = 100_000
"""Characters of a memory's metadata, written as JSON."""
MAX_LIMIT = 10_000
"""Results of one search, and memories of one page."""
MAX_RECENT = 16
"""Texts before a query that are a part of it."""
RECENT_LENGTH = 2_000
"""Characters that are read of each of them, from its end."""


def checked_text(text: object, *, what: str = "text") -> str:
    """Return the text as it is stored: repaired, without surrounding whitespace (SPEC.md section 2)."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{what} must be a string, not {_kind(text)}")
    cleaned = clean(text)
    if not cleaned:
        raise InvalidInputError(f"{what} is empty: a memory needs at least one character that is no whitespace")
    if len(cleaned) > MAX_TEXT:
        raise InvalidInputError(f"{what} has {len(cleaned):,} characters, the limit is {MAX_TEXT:,}: split it")
    return cleaned


def checked_id(value: object, *, what: str = "id") -> str:
    """Return an id: 1 to `MAX_ID` printable characters."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{what} must be a string, not {_kind(value)}")
    if not 1 <= len(value) <= MAX_ID:
        raise InvalidInputError(f"{what} has {len(value):,} characters, it must have 1 to {MAX_ID}")
    if not value.isprintable():
        raise InvalidInputError(f"{what} {value!r} contains a character that is not printable")
    return value


def checked_ids(values: Iterable[object]) -> list[str]:
    """Return ids without repetition, in their order."""
    return list(dict.fromkeys(checked_id(value) for value in listed(values, "ids")))


def checked_actions(values: object, *, what: str = "actions") -> tuple[str, ...]:
    """Return the ids of source actions, at most `MAX_ACTIONS`."""
    if values == ():
        return ()
    actions = tuple(listed(values, what))
    if len(actions) > MAX_ACTIONS:
        raise InvalidInputError(f"{what} has {len(actions):,} ids, the limit is {MAX_ACTIONS:,}")
    return tuple(checked_id(action, what=f"{what}[{place}]") for place, action in enumerate(actions))


def checked_flag(value: object, *, what: str) -> bool:
    """Return a truth value; 0, 1, "" and "false" are none."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"{what} must be true or false, not {value!r}")
    return value


def checked_state(value: object, *, what: str = "state") -> State:
    """Return a state."""
    return _one_of(get_args(State), value, what)


def checked_settable(value: object, *, what: str = "state") -> State:
    """Return a state that a caller may give to a memory."""
    return _one_of(get_args(Settable), value, what)


def _one_of(states: Sequence[State], value: object, what: str) -> State:
    for known in states:
        if value == known:
            return known
    raise InvalidInputError(f"{what} must be one of {', '.join(states)}, not {value!r}")


def checked_versions(value: object) -> frozenset[str] | None:
    """Return the versions that the caller would change; None for any."""
    if value is None:
        return None
    versions = [value] if isinstance(value, str) else listed(value, "if_match")
    if not all(isinstance(version, str) for version in versions):
        raise InvalidInputError(f"if_match must be a version or a list of versions, not {value!r}")
    return frozenset(versions)


def checked_metadata(value: object, *, what: str = "metadata") -> dict[str, Any]:
    """Return a copy of the metadata as JSON would give it back, so that what is stored is what was shown."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{what} must be a mapping, not {_kind(value)}")
    if not value:
        return {}
    try:
        written = json.dumps(dict(value), allow_nan=False)
        kept = json.loads(written)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"{what} must be something that JSON can hold: {error}") from None
    if len(written) > MAX_METADATA:
        raise InvalidInputError(f"{what} has {len(written):,} characters as JSON, the limit is {MAX_METADATA:,}")
    return dict(kept)


def checked_limit(value: object, *, what: str = "limit", most: int = MAX_LIMIT) -> int:
    """Return a whole number from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidInputError(f"{what} must be a whole number from 1 to {most:,}, not {value!r}")
    return value


def checked_tokens(value: object) -> int:
    """Return a token budget: a whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInputError(f"max_tokens must be a whole number, 0 or more, not {value!r}")
    return value


def checked_similarity(value: object) -> float:
    """Return a cosine: a number from -1 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 1:
        raise InvalidInputError(f"min_similarity must be a number from -1 to 1, not {value!r}")
    return float(value)


def checked_recent(value: object) -> tuple[str, ...]:
    """Return the texts before a query that have something in them, cleaned, of each its end."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise InvalidInputError(f"recent must be a list of texts, oldest first, not {value!r:.80}")
    if len(value) > MAX_RECENT:
        raise InvalidInputError(f"recent has {len(value)} texts; give the last {MAX_RECENT} at most")
    return tuple(text for text in (clean(one)[-RECENT_LENGTH:] for one in value) if text)


def checked_new(item: object, *, what: str) -> NewMemory:
    """Return a new memory from a `NewMemory`, a mapping with the same fields, or a text alone."""
    if isinstance(item, str):
        item = NewMemory(item)
    if isinstance(item, Mapping):
        item = _from_mapping(item, what)
    if not isinstance(item, NewMemory):
        raise InvalidInputError(f"{what} must be a NewMemory, a mapping or a text, not {_kind(item)}")
    return NewMemory(
        text=checked_text(item.text, what=f"{what}: text"),
        id=None if item.id is None else checked_id(item.id, what=f"{what}: id"),
        actions=checked_actions(item.actions, what=f"{what}: actions"),
        pinned=checked_flag(item.pinned, what=f"{what}: pinned"),
        metadata=checked_metadata(item.metadata, what=f"{what}: metadata"),
    )


def checked_edit(item: object, *, what: str) -> tuple[str, dict[str, Any]]:
    """Return the id of an edit and the fields to change, in the form in which they are stored."""
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"{what} must be a mapping with an id and the fields to change, not {_kind(item)}")
    if "id" not in item:
        raise InvalidInputError(f"{what}: the field 'id' is missing")
    unknown = [repr(key) for key in item if key != "id" and key not in _EDITABLE]
    if unknown:
        raise InvalidInputError(f"{what}: unknown field {', '.join(unknown)}; known are id, {', '.join(_EDITABLE)}")
    changes = {key: _EDITABLE[key](value, what=f"{what}: {key}") for key, value in item.items() if key != "id"}
    return checked_id(item["id"], what=f"{what}: id"), changes


def checked_cursor(value: object) -> int:
    """Return the ordinal in a page's cursor, 0 for None."""
    if value is None:
        return 0
    if not isinstance(value, str) or not value.isascii() or not value.isdigit() or len(value) > 18:
        raise InvalidInputError(f"cursor must be one that a page came with, not {value!r}")
    return int(value)


def _from_mapping(item: Mapping[Any, Any], what: str) -> NewMemory:
    known = [field.name for field in fields(NewMemory)]
    unknown = [repr(key) for key in item if key not in known]
    if unknown:
        raise InvalidInputError(f"{what}: unknown field {', '.join(unknown)}; known are {', '.join(known)}")
    if "text" not in item:
        raise InvalidInputError(f"{what}: the field 'text' is missing")
    return NewMemory(**item)


def listed(values: object, what: str) -> list[Any]:
    """Return the items of a list or other iterable. A lone string is an iterable of its letters, which nobody means."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInputError(f"{what} must be a list, not {_kind(values)}")
    return list(values)


_EDITABLE: Mapping[str, Callable[..., Any]] = {
    "text": checked_text,
    "actions": checked_actions,
    "pinned": checked_flag,
    "metadata": checked_metadata,
    "state": checked_settable,
}


def _kind(value: object) -> str:
    return "nothing (null)" if value is None else type(value).__name__
