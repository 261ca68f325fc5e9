"""What a writer is: the port between the memory bank and whoever puts a span of actions into words (SPEC.md section 9).

`memory_from` and `summary_from` ask a writer and trust it in nothing: whatever it does, the caller gets a text that can
be stored, None for "there is nothing to remember", or a `MemoryBankError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memorybank.errors import InvalidInputError, MemoryBankError
from memorybank.inputs import MAX_TEXT
from memorybank.text import clean
from memorybank.writing.errors import RejectedTextError, WriterUnavailableError
from memorybank.writing.limits import TimeIsUpError, within

__all__ = ["MemoryWriter", "SpanAction", "SpanText", "memory_from", "summary_from"]

_KINDS = ("start", "do", "say", "story", "output", "continue")


@dataclass(frozen=True, slots=True)
class SpanAction:
    """An action as a writer sees it.

    Attributes:
        kind: as in SPEC.md section 1.
        text: what was typed or written; may be empty.

    Raises:
        InvalidInputError: an unknown kind, or a text that is no string.
    """

    kind: str
    text: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InvalidInputError(f"kind must be one of {', '.join(_KINDS)}, not {self.kind!r}")
        if not isinstance(self.text, str):
            raise InvalidInputError(f"the text of an action must be a string, not {type(self.text).__name__}")
        object.__setattr__(self, "text", clean(self.text))

    @property
    def shown(self) -> str:
        """The text as a context shows it: what the player did or said behind `> ` (SPEC.md section 5)."""
        quoted = self.kind in ("do", "say") and self.text and not self.text.startswith(">")
        return f"> {self.text}" if quoted else self.text


@dataclass(frozen=True, slots=True)
class SpanText:
    """What a memory is to be made of.

    Attributes:
        actions: the actions of the span, oldest first.
        language: the story's language if the game knows it, a tag such as `it`; else None.
        memories_before: texts of the memories before it, the newest last, so that a writer need not tell them again.
    """

    actions: tuple[SpanAction, ...]
    language: str | None = None
    memories_before: tuple[str, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether there is anything to make a memory of."""
        return any(action.text for action in self.actions)

    @property
    def text(self) -> str:
        """All actions with text as a context shows them, one below the other."""
        return "\n".join(action.shown for action in self.actions if action.text)


@runtime_checkable
class MemoryWriter(Protocol):
    """Puts a span of actions into a memory, and memories into the Story Summary. May be called by several threads.

    A writer whose texts are sentences of the source itself sets `quotes_source` to True: then a text that is the whole
    (short) source is no fault of its.

    Attributes:
        name: stored with every memory that it wrote.
    """

    @property
    def name(self) -> str:
        """The name under which its memories are stored."""

    def write_memory(self, span: SpanText) -> str | None:
        """Return the memory of a span, or None if there is nothing in it to remember.

        Raises:
            WriterError: no text came about; the span stays pending.
        """

    def write_summary(self, previous: str, passages: Sequence[str], limit_tokens: int) -> str:
        """Return the Story Summary, brought up to date and within its limit.

        Args:
            previous: the summary as it stands, with what the player changed in it; may be empty.
            passages: the new memories, oldest first.
            limit_tokens: tokens that it may have.

        Raises:
            WriterError: no text came about; the summary stays as it is.
        """


def memory_from(writer: MemoryWriter, span: SpanText, *, seconds: float | None = None) -> str | None:
    """Return the memory that a writer makes of a span, as it can be stored, or None if it shall have none.

    Args:
        writer: any.
        span: what happened. One without text is not shown to the writer.
        seconds: how long to wait for it; its thread goes on if it does not return. None waits for as long as it takes.

    Raises:
        RejectedTextError: it gave no text, an empty one, one too long to be stored, or its input.
        WriterError: whatever else went wrong.
        MemoryBankError: the embedding model that it uses failed.
    """
    if not span.has_text:
        return None
    text = _asked(writer, lambda: writer.write_memory(span), seconds)
    if text is None:
        return None
    text = _checked(writer, text)
    if not getattr(writer, "quotes_source", False) and _bare(text) in (_bare(span.text), _bare(_joined(span))):
        raise RejectedTextError("echo", f"writer {writer.name}: it gave back the actions that it was shown")
    return text


def summary_from(
    writer: MemoryWriter, previous: str, passages: Sequence[str], limit_tokens: int, *, seconds: float | None = None
) -> str:
    """Return the Story Summary that a writer makes; as `memory_from`. Without passages it is `previous`."""
    if not any(passage.strip() for passage in passages):
        return previous
    return _checked(writer, _asked(writer, lambda: writer.write_summary(previous, passages, limit_tokens), seconds))


def _asked(writer: MemoryWriter, ask: Callable[[], object], seconds: float | None) -> object:
    try:
        return ask() if seconds is None else within(seconds, ask)
    except MemoryBankError:
        raise
    except TimeIsUpError:
        raise WriterUnavailableError(f"writer {writer.name}: no answer within {seconds:g} seconds") from None
    except Exception as error:  # anyone's code
        raise WriterUnavailableError(f"writer {writer.name}: it failed with {type(error).__name__}") from error


def _checked(writer: MemoryWriter, text: object) -> str:
    if not isinstance(text, str):
        raise RejectedTextError("format", f"writer {writer.name}: it gave {type(text).__name__}, not a text")
    text = clean(text)
    if not text:
        raise RejectedTextError("empty", f"writer {writer.name}: it gave an empty text")
    if len(text) > MAX_TEXT:
        raise RejectedTextError(
            "too long", f"writer {writer.name}: it gave {len(text):,} characters, a memory may have {MAX_TEXT:,}"
        )
    return text


def _joined(span: SpanText) -> str:
    return "\n".join(action.text for action in span.actions)


def _bare(text: str) -> str:
    return " ".join(text.casefold().split())
