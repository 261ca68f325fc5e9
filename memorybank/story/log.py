"""The log's actions as the bank keeps them, and the hashes that tell whether one of them has changed: pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memorybank import inputs
from memorybank.errors import InvalidInputError
from memorybank.text import clean
from memorybank.writing.staleness import Source

__all__ = [
    "FIRST_CHAIN",
    "MAX_ACTION_TEXT",
    "MAX_LENGTH",
    "ActionKind",
    "LoggedAction",
    "chained",
    "checked_log",
    "common_prefix",
]

ActionKind = Literal["start", "do", "say", "story", "output", "continue"]
_KINDS: tuple[str, ...] = get_args(ActionKind)

MAX_ACTION_TEXT = 1_000_000
"""Characters of one action's text."""
MAX_LENGTH = 1_000_000
"""Actions of one log."""
FIRST_CHAIN = ""
"""The chain before the first action."""


@dataclass(frozen=True, slots=True)
class LoggedAction:
    """One action of the log (SPEC.md section 1). Anything with these three attributes will do in its place.

    Attributes:
        id: unique in its log.
        kind: `start`, `do`, `say`, `story`, `output` or `continue`.
        text: what was typed or written.
    """

    id: str
    kind: str
    text: str


def checked_log(items: Iterable[Any]) -> list[LoggedAction]:
    """Return the actions in their order, cleaned, or say what is wrong with one of them.

    Args:
        items: objects with `id`, `kind` and `text`, or mappings with these keys.

    Raises:
        InvalidInputError: an id is missing, not printable, too long or there twice, or a kind or a text is none.
    """
    found: list[LoggedAction] = []
    places: dict[str, int] = {}
    for place, item in enumerate(inputs.listed(items, "actions")):
        action = _checked(item, f"actions[{place}]")
        if action.id in places:
            raise InvalidInputError(
                f"actions[{place}]: id {action.id!r} is already that of actions[{places[action.id]}]: give every "
                "action its own"
            )
        places[action.id] = place
        found.append(action)
    return found


def _checked(item: Any, what: str) -> LoggedAction:
    if isinstance(item, Mapping):
        if unknown := [repr(key) for key in item if key not in ("id", "kind", "text")]:
            raise InvalidInputError(f"{what}: unknown field {', '.join(unknown)}; known are id, kind, text")
        given = [item.get(name, "" if name == "text" else None) for name in ("id", "kind", "text")]
    else:
        given = [getattr(item, name, None) for name in ("id", "kind", "text")]
    id_, kind, text = given
    inputs.checked_id(id_, what=f"{what}: id")
    if kind not in _KINDS:
        raise InvalidInputError(f"{what}: kind must be one of {', '.join(_KINDS)}, not {kind!r}")
    if not isinstance(text, str):
        raise InvalidInputError(f"{what}: text must be a string, not {type(text).__name__}")
    cleaned = clean(text)
    if len(cleaned) > MAX_ACTION_TEXT:
        raise InvalidInputError(f"{what}: text has {len(cleaned):,} characters, the limit is {MAX_ACTION_TEXT:,}")
    return LoggedAction(id_, kind, cleaned)


def chained(chain: str, head: Source) -> str:
    """Return the chain after one more action: the SHA-256 of the chain before, the action's id and its text's hash."""
    return hashlib.sha256(json.dumps([chain, *head]).encode()).hexdigest()


def common_prefix(stored: Sequence[object], new: Sequence[object]) -> int:
    """Return how many actions from the first on are the same."""
    for place, (one, other) in enumerate(zip(stored, new, strict=False)):
        if one != other:
            return place
    return min(len(stored), len(new))
