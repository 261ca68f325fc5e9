"""The log's actions as the bank keeps them, and the hashes that tell whether one of them has changed: pure.

Only actions with text are kept: a `continue` without text tells nothing, and must not change what is written from the
others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memorybank import inputs
from memorybank.errors import InvalidInputError
from memorybank.text import clean

__all__ = [
    "FIRST_CHAIN",
    "MAX_ACTION_TEXT",
    "ActionKind",
    "LoggedAction",
    "action_hash",
    "chained",
    "checked_log",
    "common_prefix",
    "source_of",
]

ActionKind = Literal["start", "do", "say", "story", "output", "continue"]
_KINDS: tuple[str, ...] = get_args(ActionKind)

MAX_ACTION_TEXT = 1_000_000
"""Characters of one action's text."""
FIRST_CHAIN = ""
"""The chain before the first action."""

Head = tuple[str, str]
"""Id and hash of an action."""


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
    """Return the actions with text, in their order, cleaned; say what is wrong with the others.

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
        if action.text:
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


def action_hash(action: LoggedAction) -> str:
    """Return the SHA-256 of an action's kind and text."""
    return _sha256(action.kind, action.text)


def chained(chain: str, head: Head) -> str:
    """Return the chain after one more action."""
    return _sha256(chain, *head)


def source_of(heads: Sequence[Head]) -> str:
    """Return the hash of what a memory is written from: ids and hashes of its actions, in their order."""
    return _sha256(*(part for head in heads for part in head))


def common_prefix(stored: Sequence[Head], new: Sequence[Head]) -> int:
    """Return how many actions from the first on are the same."""
    for place, (one, other) in enumerate(zip(stored, new, strict=False)):
        if one != other:
            return place
    return min(len(stored), len(new))


def _sha256(*parts: str) -> str:
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode()
        whole.update(len(data).to_bytes(8, "big") + data)  # or "ab" and "c" would be "a" and "bc"
    return whole.hexdigest()
