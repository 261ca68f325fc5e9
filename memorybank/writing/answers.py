"""What a chat server's answer must pass before it is stored as a memory or as the Story Summary. Pure.

Models think aloud, quote themselves, refuse, repeat what they were given, or answer in another language. What is
around the text is taken off; a text that is none is rejected, and the span stays pending (SPEC.md section 9).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from memorybank.sentences import SENTENCE_END, sentences
from memorybank.text import clean
from memorybank.tokenizer import Tokenizer
from memorybank.writing.errors import RejectedTextError
from memorybank.writing.language import same_language
from memorybank.writing.refusals import is_refusal
from memorybank.writing.templates import MARK

__all__ = ["Expected", "checked_answer", "unwrapped"]

SLIGHTLY = 2
"""How many times its limit a text may have, if it can be cut at the end of a sentence."""
ECHO = 40
"""Characters of an instruction that no memory has by chance."""

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[^\n`]*\n(.*?)\n?```\Z", re.DOTALL)
_CONTROL = re.compile(r"(?:<\|[a-z_]{1,30}\|>|</s>|<end_of_turn>|\[/?INST\])\Z", re.IGNORECASE)
_HEADING = regex.compile(
    r"\A[#*_\s]*+(?:(?:new|the|updated|story)\s+){0,2}(?:memory|summary|paragraph)[*_\s]*+:[*_\s]*+", regex.IGNORECASE
)
_QUOTES = {'"': '"', "“": "”", "«": "»", "„": "“", "「": "」", "'": "'", "‘": "’", "`": "`"}


@dataclass(frozen=True, slots=True)
class Expected:
    """What an answer is measured by.

    Attributes:
        limit: tokens that it may have.
        sources: the texts that it retells, as the model saw them.
        old: what it must not give back: all of the span, a memory that is there, the previous summary.
        instructions: the prompt's own words.
        language: the story's language, if it is known.
    """

    limit: int
    sources: Sequence[str]
    old: Sequence[str]
    instructions: str
    language: str | None = None


def checked_answer(raw: str, expected: Expected, tokenizer: Tokenizer) -> str:
    """Return the text in an answer, as it can be stored.

    Raises:
        RejectedTextError: there is none; `reason` says why.
    """
    text = unwrapped(raw)
    if not any(character.isalnum() for character in text):
        raise RejectedTextError("empty", "the chat server gave an empty text")
    if text[0] in "{[" and text[-1] in "}]" and '"' in text:
        raise RejectedTextError("format", "the chat server gave JSON where a text was due")
    source = "\n".join(expected.sources)
    if is_refusal(text, source):
        raise RejectedTextError("refusal", "the chat server refused to retell this passage")
    if _is_echo(text, expected):
        raise RejectedTextError("echo", "the chat server gave back what it was shown")
    if not same_language(text, source, expected.language):
        raise RejectedTextError("language", "the chat server answered in another language or script than the story's")
    return _within(text, expected.limit, tokenizer)


def unwrapped(raw: str) -> str:
    r"""Return an answer without thoughts, code fences, a heading, control words and quotation marks around it.

    >>> unwrapped("<think>Who is Mara?</think>**Memory:** \"Mara left.\"")
    'Mara left.'
    """
    text = clean(_THOUGHT.sub("", _THINKING.sub("", clean(raw))))
    while control := _CONTROL.search(text, max(0, len(text) - 40)):
        text = clean(text[: control.start()])
    fence = _FENCE.match(text)
    text = clean(fence[1]) if fence else text
    text = clean(_HEADING.sub("", text, count=1))
    closing = _QUOTES.get(text[:1])
    if closing and len(text) > 1 and text[-1] == closing and not set(text[1:-1]) & {text[0], closing}:
        text = clean(text[1:-1])
    return text


def _is_echo(text: str, expected: Expected) -> bool:
    if MARK.strip() in text:
        return True
    answer = _bare(text)
    lines = (_bare(line) for line in sentences(expected.instructions))
    if any(len(line) >= ECHO and line in answer for line in lines):
        return True
    return any(answer in old and 2 * len(answer) > len(old) for old in map(_bare, expected.old))


def _within(text: str, limit: int, tokenizer: Tokenizer) -> str:
    tokens = tokenizer.count(text)
    if tokens <= limit:
        return text
    if tokens <= SLIGHTLY * limit:
        for end in sorted((match.end() for match in SENTENCE_END.finditer(text)), reverse=True):
            if tokenizer.count(text[:end]) <= limit:
                return text[:end]
    raise RejectedTextError("too long", f"the chat server gave {tokens} tokens, {limit} were asked for")


def _bare(text: str) -> str:
    """Return the words alone, so that case, punctuation and line ends make no difference."""
    return " ".join(re.findall(r"\w+", text.casefold()))
