"""Automatic memories: when they are due, who writes them, and when they no longer hold (SPEC.md section 9).

Nothing here knows of a database: the log and what was made of it come in as values, and go out as what is to be done.

::

    plan(log, made, Rhythm())          # which memories hold, which are stale, which spans are due
    memory_from(writer, SpanText(…))   # the text to be stored, or None, or an error that leaves the span pending

Reading order: `rhythm.py` (when), `staleness.py` (what of it still holds), `port.py` (what a writer is) with
`limits.py`, `errors.py`; the default writer `extractive.py` over `units.py`, `wording.py`, `centrality.py`; the chat
writer `chat.py` over `chat_settings.py`, `server.py` (`breaker.py`, `retrying.py`), `templates.py` (and the texts in
`prompts/`), `answers.py` (`refusals.py`, `language.py`). The writers load when they are first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memorybank.writing.errors import RejectedTextError, WriterError, WriterUnavailableError
from memorybank.writing.port import MemoryWriter, SpanAction, SpanText, memory_from, summary_from
from memorybank.writing.rhythm import RHYTHMS, Rhythm, Span, SummaryUpdate, next_summary, spans
from memorybank.writing.staleness import Due, Made, Plan, Source, plan, source_hash, source_of

if TYPE_CHECKING:
    from memorybank.writing.chat import ChatWriter
    from memorybank.writing.chat_settings import ChatSettings
    from memorybank.writing.extractive import ExtractiveWriter

__all__ = [
    "RHYTHMS",
    "ChatSettings",
    "ChatWriter",
    "Due",
    "ExtractiveWriter",
    "Made",
    "MemoryWriter",
    "Plan",
    "RejectedTextError",
    "Rhythm",
    "Source",
    "Span",
    "SpanAction",
    "SpanText",
    "SummaryUpdate",
    "WriterError",
    "WriterUnavailableError",
    "memory_from",
    "next_summary",
    "plan",
    "source_hash",
    "source_of",
    "spans",
    "summary_from",
]

_WRITERS = {"ChatSettings": "chat_settings", "ChatWriter": "chat", "ExtractiveWriter": "extractive"}


def __getattr__(name: str) -> Any:
    if name not in _WRITERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WRITERS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
