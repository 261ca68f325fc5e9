"""The pieces that the extractive writer chooses from, and how chosen ones are put together (SPEC.md section 9).

A unit is a sentence as it stands in its source. Of a line that begins with a speaker's name (`Mara: …`) every sentence
knows the speaker, and what the player did or said stands behind `> `, so that a sentence torn out of its place still
says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex

from memorybank.embedding.windows import evenly
from memorybank.sentences import LONGEST, paragraphs, sentences
from memorybank.tokenizer import Tokenizer
from memorybank.writing.port import SpanAction

__all__ = ["MAX_UNITS", "Unit", "joined", "units_of", "units_of_texts"]

MAX_UNITS = 200
"""Sentences of a span that are looked at; of more, so many evenly spaced ones. A hundred take MiniLM a second."""
MAX_SUMMARY = 1_000
"""Sentences of a summary that are looked at: the newest."""
MAX_READ = 100_000
"""Characters of an action that are read."""

_NAME = r"\p{Lu}[\p{L}\p{M}'’-]*+"
_SPEAKER = regex.compile(rf"((?:{_NAME}(?:\ {_NAME}){{0,2}}|\p{{Lo}}{{1,8}})[:：])\s*(?=\S)")
_NO_SPACE = frozenset("。！？｡．」』")
_ENDS = frozenset(".!?…؟۔।॥።։。！？｡．\"'”’“»«)]）】」』*_")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or a part of a very long one.

    Attributes:
        text: as it stands in the source, whitespace runs made one space.
        source: which action or passage it is from.
        line: which line of it.
        place: its number in the order of the story.
        by_player: whether it tells what the player did or said.
        speaker: the speaker's name and its colon, where the line begins with them and the text does not; else empty.
    """

    text: str
    source: int
    line: int
    place: int
    by_player: bool = False
    speaker: str = ""


def units_of(actions: Sequence[SpanAction], tokenizer: Tokenizer, max_tokens: int) -> list[Unit]:
    """Return the units of a span, in story order; none has more than `max_tokens` tokens if it can be cut."""
    texts = [(action.text[:MAX_READ], action.kind in ("do", "say")) for action in actions]
    return evenly(_units(texts, tokenizer, max_tokens), MAX_UNITS)


def units_of_texts(texts: Iterable[str], tokenizer: Tokenizer, max_tokens: int) -> list[Unit]:
    """Return the units of memories or of a summary; a line behind `> ` tells what the player did."""
    return _units([(text[:MAX_READ], False) for text in texts], tokenizer, max_tokens)[-MAX_SUMMARY:]


def joined(units: Iterable[Unit], *, keep_lines: bool = False) -> str:
    """Return units as one text.

    In one paragraph, with lines of their own for what the player did and for speakers; with `keep_lines` in the lines
    of their sources.
    """
    parts: list[str] = []
    before: Unit | None = None
    for unit in units:
        goes_on = before is not None and (before.source, before.line) == (unit.source, unit.line)
        if before is not None:
            parts.append("\n" if keep_lines and not goes_on else _between(before, unit, goes_on))
        parts.append(unit.text if goes_on else _opened(unit))
        before = unit
    return "".join(parts)


def _opened(unit: Unit) -> str:
    text = f"{unit.speaker} {unit.text}" if unit.speaker else unit.text
    return f"> {text}" if unit.by_player and not text.startswith(">") else text


def _between(before: Unit, unit: Unit, goes_on: bool) -> str:
    new_line = not goes_on and (before.by_player or unit.by_player or unit.speaker or _begins_line(unit))
    if new_line or not (before.text[-1] in _ENDS or (goes_on and unit.place == before.place + 1)):
        return "\n"
    return "" if before.text[-1] in _NO_SPACE else " "


def _begins_line(unit: Unit) -> bool:
    return _SPEAKER.match(unit.text) is not None


def _units(texts: Sequence[tuple[str, bool]], tokenizer: Tokenizer, max_tokens: int) -> list[Unit]:
    found = [
        (source, line, sentence, by_player or paragraph.startswith(">"), speaker)
        for source, (text, by_player) in enumerate(texts)
        for line, paragraph in enumerate(paragraphs(text))
        for sentence, speaker in _spoken(paragraph, tokenizer, max_tokens)
    ]
    return [
        Unit(text=sentence, source=source, line=line, place=place, by_player=by_player, speaker=speaker)
        for place, (source, line, sentence, by_player, speaker) in enumerate(found)
    ]


def _spoken(paragraph: str, tokenizer: Tokenizer, max_tokens: int) -> Iterator[tuple[str, str]]:
    """Iterate over the sentences of a line, each with the speaker where its own text does not say."""
    label = _SPEAKER.match(paragraph, 2 if paragraph.startswith("> ") else 0)
    for number, sentence in enumerate(_short(sentences(paragraph), tokenizer, max_tokens)):
        yield sentence, label[1] if label and number else ""


def _short(whole: Iterable[str], tokenizer: Tokenizer, max_tokens: int) -> Iterator[str]:
    """Iterate over the sentences, those that are too long for a memory cut in parts."""
    for sentence in whole:
        tokens = tokenizer.count(sentence) if len(sentence) > max_tokens // 4 else 0
        if tokens <= max_tokens:
            yield sentence
        else:
            yield from sentences(sentence, max(1, min(LONGEST, len(sentence)) * max_tokens * 3 // (4 * tokens)))
