"""The log: one line of JSON for each event, on stderr.

A line says who asked for what and how that went. It holds no text of a player, no token, and no character that could
begin another line: everything is escaped to ASCII. Of an unexpected exception it has the kinds and the places; the
messages only where they are known to quote no input.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from memorybank.errors import MemoryBankError
from memorybank.service.state import current

__all__ = ["JsonFormatter", "described", "set_up_logging"]

FIELDS = "fields"
"""The attribute of a log record that holds what the line says beside its message."""

LONGEST = 2_000
FRAMES = 40


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        state = current.get()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:LONGEST],
        }
        if state is not None:
            line["request_id"] = state.id
        line |= getattr(record, FIELDS, {})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = described(record.exc_info[1])
        return json.dumps(line, default=str)


def described(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception and those that it came from: kind, message if that is safe, and where it was raised."""
    chain: list[dict[str, Any]] = []
    one: BaseException | None = error
    while one is not None and len(chain) < 5:
        frames = traceback.extract_tb(one.__traceback__)[-FRAMES:]
        entry: dict[str, Any] = {"type": f"{type(one).__module__}.{type(one).__qualname__}"}
        if isinstance(one, OSError | MemoryBankError | sqlite3.Error | MemoryError):
            entry["message"] = str(one)[:LONGEST]
        entry["traceback"] = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        chain.append(entry)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return chain


def set_up_logging(level: str) -> None:
    """Send the log of this process to stderr in this form, uvicorn's included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("memorybank").setLevel(level.upper())
    logging.captureWarnings(True)
