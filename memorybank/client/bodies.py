"""What goes into requests: the JSON of a call and the parts of its address, checked. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar
from urllib.parse import quote

from memorybank import inputs
from memorybank.bank.settings import checked_settings
from memorybank.errors import InvalidInputError
from memorybank.search.ranking import checked_ranking
from memorybank.text import clean

__all__ = [
    "MAX_BATCH",
    "batches",
    "checked_cursor",
    "checked_name",
    "edit_body",
    "if_match_header",
    "new_body",
    "search_body",
    "segment",
    "settings_body",
]

MAX_BATCH = 1_000
"""Memories in one request, and results of one search."""
MAX_BATCH_BYTES = 4 << 20
"""Bytes of JSON in one request, unless one memory alone has more; a service takes 8 MiB if nobody has set less."""
MAX_NAME = 128
"""Characters of a bank's name over HTTP."""

T = TypeVar("T")

_VERSION = re.compile(r"[0-9a-f]{16}")


def search_body(query: str, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a search, what is left at its default left out."""
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a string, not {type(query).__name__}")
    checks: dict[str, Callable[[Any], Any]] = {
        "limit": lambda value: inputs.checked_limit(value, most=MAX_BATCH),
        "ranking": checked_ranking,
        "recent": lambda value: list(inputs.checked_recent(value)),
        "min_similarity": inputs.checked_similarity,
        "pinned_first": lambda value: inputs.checked_flag(value, what="pinned_first"),
        "explain": lambda value: inputs.checked_flag(value, what="explain"),
        "retellings": lambda value: inputs.checked_flag(value, what="retellings"),
    }
    given = {name: check(how[name]) for name, check in checks.items() if how[name] is not None}
    asked = {name: value for name, value in given.items() if value is not False and value != []}
    return {"query": clean(query)[: inputs.MAX_TEXT], **asked}


def new_body(item: Any, what: str) -> dict[str, Any]:
    """Return a new memory as it is sent, what is left at its default left out."""
    new = inputs.checked_new(item, what=what)
    given = {"id": new.id, "actions": list(new.actions), "pinned": new.pinned, "metadata": dict(new.metadata)}
    return {"text": new.text} | {name: value for name, value in given.items() if value}


def edit_body(item: Any, what: str) -> dict[str, Any]:
    """Return a change of a memory as it is sent."""
    id_, changes = inputs.checked_edit(item, what=what)
    return {"id": id_, **changes}


def settings_body(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a bank as they are sent."""
    checked = checked_settings(settings)
    return {name: asdict(value) if name == "rhythm" else value for name, value in checked.items()}


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Return the items in pieces that go into one request."""
    start = size = 0
    for place, item in enumerate(items):
        weight = len(json.dumps(item))
        if place - start == MAX_BATCH or (size + weight > MAX_BATCH_BYTES and place > start):
            yield items[start:place]
            start, size = place, 0
        size += weight
    if items:
        yield items[start:]


def if_match_header(versions: Collection[str]) -> dict[str, str]:
    """Return the condition. What cannot be a version matches nothing, and must not break out of the header."""
    known = sorted(version for version in versions if _VERSION.fullmatch(version))
    return {"If-Match": ", ".join(f'"{version}"' for version in known) or '""'}


def segment(name: str) -> str:
    """Return a name as one part of a path; `.` and `..` would otherwise be taken for directions."""
    return quote(name, safe="").replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def checked_cursor(cursor: object) -> str:
    """Return a cursor; only the service knows whether it is one."""
    if not isinstance(cursor, str):
        raise InvalidInputError(f"cursor must be one that a page came with, not {cursor!r}")
    return cursor


def checked_name(bank: str, *, what: str = "the bank's name") -> str:
    """Return a bank's name that a service takes."""
    name = inputs.checked_id(bank, what=what)
    if len(name) > MAX_NAME or "/" in name or name in (".", ".."):
        raise InvalidInputError(
            f"{what} {name!r} is not one for a service: it must have 1 to {MAX_NAME} characters and no slash, "
            "and be more than one or two dots"
        )
    return name
