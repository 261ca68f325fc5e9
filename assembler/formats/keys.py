"""Other programs' keys as literal triggers (SPEC.md section 4: triggers are never patterns).

A pattern that stands for a small finite set of words is written out: `katariah|(|the )emp(ress|eror)` becomes five
triggers. Any other pattern stays whole and is told apart; it never becomes a trigger, nor half of one. An alternative
that is empty would match everything and is left out.

Two syntaxes: `SLASHES`, where only `/…/flags` is a pattern (SillyTavern, NovelAI), and `LOOSE` for AI Dungeon and
KoboldAI, whose own keys are literal but whose script authors write alternations, `.*` and attributes
(`river#[t=5l=5f=2S=2]`, the EWIJSON script) into them. There, a key with attributes is one pattern, commas included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from assembler.formats.patterns import SPECIAL, expand

__all__ = ["Keys", "Syntax", "read_keys", "split_keys"]

Syntax = Literal["slashes", "loose"]

_MAX_LIST = 10_000
_SLASHED = re.compile(r"\s*/((?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/[dgimsuvy]*\s*(?=,|$)")
_ATTRIBUTES = re.compile(r"#\[[^\[\]]*\]\s*$")
_COUNT = re.compile(r"\{\d*,?\d*\}")
_LOOSE_PATTERN = re.compile(r"\||\.[*+]|\\[bwdsBWDS]|\{\d+,?\d*\}")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one entry.

    Attributes:
        triggers: the literal ones, each once.
        patterns: those that are real patterns, as they were written.
        expanded: those that were patterns and are triggers now, as they were written.
    """

    triggers: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    expanded: tuple[str, ...] = ()


def read_keys(keys: str | Sequence[str], syntax: Syntax, *, keep_spaces: bool = False) -> Keys:
    """Sort the keys of an entry into literal triggers and patterns; a string is split at its commas."""
    triggers: list[str] = []
    patterns: list[str] = []
    expanded: list[str] = []
    for key in split_keys(keys, syntax) if isinstance(keys, str) else keys:
        pattern = _pattern(key, syntax)
        words = [key] if pattern is None else expand(pattern)
        if words is None:
            patterns.append(key)
        elif pattern is not None:
            expanded.append(key)
        triggers += [word if keep_spaces else word.strip() for word in words or () if word.strip()]
    once: dict[str, str] = {}
    for trigger in triggers:
        once.setdefault(trigger.casefold(), trigger)
    return Keys(tuple(once.values()), tuple(patterns), tuple(expanded))


def split_keys(keys: str, syntax: Syntax) -> list[str]:
    """Split a comma list; commas inside a pattern do not separate (looked for in lists of up to `_MAX_LIST`)."""
    if syntax == "loose" and _ATTRIBUTES.search(keys):
        return [keys]
    if len(keys) > _MAX_LIST:
        return keys.split(",")
    separators = _without_inner_commas(keys)
    items: list[str] = []
    start = 0
    while start <= len(keys):
        slashed = _SLASHED.match(keys, start)
        if slashed and _pattern(slashed[0], syntax):
            end = slashed.end()
        else:
            comma = separators.find(",", start)
            end = comma if comma >= 0 else len(keys)
        items.append(keys[start:end])
        start = end + 1
    return items


def _without_inner_commas(keys: str) -> str:
    """The list, as long as it was, with the commas inside of patterns blotted out."""
    blotted = keys
    for start, end in _pattern_spans(keys):
        blotted = blotted[:start] + " " * (end - start) + blotted[end:]
    return blotted


def _pattern_spans(keys: str) -> list[tuple[int, int]]:
    """Where `{1,2}` and groups with an alternation stand; brackets that are never closed are plain text."""
    spans = [match.span() for match in _COUNT.finditer(keys)]
    opened: list[int] = []
    for position, char in enumerate(keys):
        if char == "(":
            opened.append(position)
        elif char == ")" and opened:
            start = opened.pop()
            if not opened and "|" in keys[start:position]:
                spans.append((start, position + 1))
    return spans


def _pattern(key: str, syntax: Syntax) -> str | None:
    """The pattern that a key is, or None for a literal one."""
    slashed = _SLASHED.fullmatch(key)
    if syntax == "slashes":
        return slashed[1] if slashed else None
    if slashed and not SPECIAL.isdisjoint(slashed[1]):
        return slashed[1]
    if attributes := _ATTRIBUTES.search(key):
        return key[: attributes.start()]
    return key if _LOOSE_PATTERN.search(key) else None
