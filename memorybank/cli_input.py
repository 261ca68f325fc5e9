"""Memories out of files, for `memorybank add --file`: JSON Lines, or a text with one memory per line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memorybank.errors import InvalidInputError
from memorybank.inputs import checked_new
from memorybank.memory import NewMemory

__all__ = ["read_memories"]


def read_memories(name: str, kind: str | None = None) -> list[NewMemory]:
    """Return the memories of a file; blank lines are passed over.

    Args:
        name: path of the file, `-` for standard input.
        kind: `jsonl` or `txt`; None goes by the name's ending, and is `txt` for others.

    Raises:
        InvalidInputError: the file cannot be read, a line is no memory (the message names it), or there is none.
    """
    kind = kind or ("jsonl" if Path(name).suffix.lower() in (".jsonl", ".ndjson") else "txt")
    items = [
        checked_new(_parsed(line, where) if kind == "jsonl" else line, what=where)
        for line, where in _lines(name)
        if line.strip()
    ]
    if not items:
        raise InvalidInputError(f"{name}: there is no memory in it")
    return items


def _lines(name: str) -> Iterator[tuple[str, str]]:
    """Return each line, and what to call it. Only line feeds end one: JSON may hold U+2028."""
    if name == "-" and sys.stdin is None:
        raise InvalidInputError("-: standard input is closed")
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(f"{name}, line {line}: it is not UTF-8: save the file as UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InvalidInputError(f"{name}: it cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return ((line, f"{name}, line {number}") for number, line in enumerate(text.split("\n"), 1))


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{where}: it is not JSON: {error}") from None
