"""A writer that asks an OpenAI-compatible chat server (SPEC.md section 9).

The story's text is data: it goes into the prompt between marks, and what comes back is checked before anyone stores it
(`answers.py`). The server may fail in every way; a call ends within its time limit with a text or a `WriterError`.
"""

from __future__ import annotations

import random as _random
import time
from collections.abc import Callable, Sequence

from memorybank.inputs import checked_limit
from memorybank.text import clean
from memorybank.tokenizer import open_tokenizer
from memorybank.writing.answers import Expected, checked_answer
from memorybank.writing.breaker import CircuitState
from memorybank.writing.chat_settings import ChatSettings
from memorybank.writing.port import SpanText
from memorybank.writing.server import ChatServer
from memorybank.writing.templates import Prompt, fenced, load_prompt

__all__ = ["ChatWriter"]

MAX_READ = 32_000
"""Characters of the story that are sent, evenly taken from the actions; more costs money and attention."""
BEFORE = 3
"""How many of the memories before a span the model is shown."""
LEFT_OUT = " […] "


class ChatWriter:
    """Writes with a chat server, for any number of threads.

    Args:
        settings: the server, and how it is used.
        clock: gives the time in seconds, for the time limits.
        sleep: waits before another attempt.
        random: gives a number from 0 to 1 for the jitter.

    Raises:
        InvalidInputError: a prompt in `settings.prompts` is not sound.
        TokenizerError: there is no such tokenizer.
        WriterUnavailableError: httpx is not installed.
    """

    def __init__(
        self,
        settings: ChatSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = _random.random,
    ) -> None:
        self._settings = settings
        self._memory = load_prompt("memory", settings.prompts)
        self._summary = load_prompt("summary", settings.prompts)
        self._tokenizer = open_tokenizer(settings.tokenizer)
        self._server = ChatServer(settings, clock, sleep, random)

    def __repr__(self) -> str:
        return f"ChatWriter({self._settings!r})"

    @property
    def name(self) -> str:
        """`chat:` and the model's name, stored with each memory."""
        return f"chat:{self._settings.model}"

    @property
    def state(self) -> CircuitState:
        """`closed` while the server answers, `open` while it is left alone, `half_open` before it is tried again."""
        return self._server.state

    def write_memory(self, span: SpanText) -> str | None:
        """Return the memory of a span, or None if it has no text.

        Raises:
            WriterUnavailableError: no answer came in time.
            RejectedTextError: the answer is no memory of this span.
        """
        if not span.has_text:
            return None
        story = _shortened([action.shown for action in span.actions if action.text])
        before = _shortened([text for text in map(clean, span.memories_before[-BEFORE:]) if text])
        return self._asked(
            self._memory,
            self._settings.max_tokens,
            sources=story,
            old=["\n".join(story), *before],
            language=span.language,
            story=fenced(story),
            memories=fenced(before) if before else "(none)",
        )

    def write_summary(self, previous: str, passages: Sequence[str], limit_tokens: int) -> str:
        """Return the Story Summary brought up to date.

        Raises:
            InvalidInputError: `limit_tokens` is out of range.
            WriterUnavailableError: no answer came in time.
            RejectedTextError: the answer is no summary of these texts.
        """
        limit = checked_limit(limit_tokens, what="limit_tokens", most=1_000_000)
        news = _shortened([text for text in map(clean, passages) if text])
        previous = clean(previous)
        if not news:
            return previous
        kept = _shortened([previous]) if previous else []
        return self._asked(
            self._summary,
            limit,
            sources=[*kept, *news],
            old=kept,
            language=None,
            story=fenced(news),
            summary=fenced(kept) if kept else "(empty)",
        )

    def _asked(
        self, prompt: Prompt, limit: int, *, sources: list[str], old: list[str], language: str | None, **values: str
    ) -> str:
        words = max(5, limit * 3 // 5)
        messages = prompt.messages(words=str(words), language=_named(language), **values)
        raw = self._server.answer(self._settings.request_body(messages))
        expected = Expected(limit, sources, old, f"{prompt.system}\n{prompt.user}", language)
        return checked_answer(raw, expected, self._tokenizer)


def _named(language: str | None) -> str:
    known = language is not None and len(language) <= 35 and language.replace("-", "").isalnum()
    return f"the story's own language ({language})" if known else "the story's own language"


def _shortened(texts: list[str]) -> list[str]:
    """Return the texts, the longest of them without their middle if all together are too long."""
    over = sum(map(len, texts)) > MAX_READ
    if not over:
        return texts
    share = _share(sorted(map(len, texts)))
    return [text if len(text) <= share else _without_middle(text, share) for text in texts]


def _share(lengths: list[int]) -> int:
    """Return how long a text may be so that all have room; what the short ones do not need, the long ones get."""
    left = MAX_READ
    for place, length in enumerate(lengths):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return MAX_READ


def _without_middle(text: str, share: int) -> str:
    half = max(0, share - len(LEFT_OUT)) // 2
    head, tail = text[:half], text[len(text) - half :]
    return f"{head.rstrip()}{LEFT_OUT}{tail.lstrip()}"
