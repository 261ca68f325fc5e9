"""Patterns that stand for a small finite set of words, written out: alternations, groups, `?` and escapes, no more."""

from __future__ import annotations

__all__ = ["MAX_WORDS", "SPECIAL", "expand"]

MAX_WORDS = 64
"""So many triggers may one pattern become."""

SPECIAL = frozenset(".*+?[]{}^$)|(")
"""What makes a text a pattern."""

_MAX_PATTERN = 1000
_MAX_GROUPS = 20


def expand(pattern: str) -> list[str] | None:
    """Return the words that a pattern of alternations, groups and `?` stands for, or None if it is more than that.

    >>> expand("katariah|(|the )emp(ress|eror)")
    ['katariah', 'empress', 'emperor', 'the empress', 'the emperor']
    >>> expand("drag{1,2}on") is None
    True
    """
    if len(pattern) > _MAX_PATTERN:
        return None
    try:
        expander = _Expander(pattern)
        words = expander.choice(0)
    except _NotFiniteError:
        return None
    return words if expander.position == len(pattern) else None


class _NotFiniteError(Exception):
    """The pattern is more than a small set of words."""


class _Expander:
    """Walks through a pattern once; whatever it does not know makes the pattern a real one."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.position = 0

    def _at(self, char: str) -> bool:
        return self._pattern.startswith(char, self.position)

    def choice(self, depth: int) -> list[str]:
        words = self._sequence(depth)
        while self._at("|"):
            self.position += 1
            words = _few(words + self._sequence(depth))
        return words

    def _sequence(self, depth: int) -> list[str]:
        words = [""]
        while self.position < len(self._pattern) and not self._at("|") and not self._at(")"):
            piece = self._piece(depth)
            words = _few([word + end for word in words for end in piece])
        return words

    def _piece(self, depth: int) -> list[str]:
        char = self._pattern[self.position]
        self.position += 1
        if char == "(":
            piece = self._group(depth + 1)
        elif char == "\\":
            piece = [self._escaped()]
        elif char in SPECIAL:
            raise _NotFiniteError
        else:
            piece = [char]
        if self._at("?"):
            self.position += 1
            piece = [*piece, ""]
        return piece

    def _group(self, depth: int) -> list[str]:
        if self._at("?:"):
            self.position += 2
        words = self.choice(depth) if depth <= _MAX_GROUPS and not self._at("?") else []
        if not words or not self._at(")"):
            raise _NotFiniteError
        self.position += 1
        return words

    def _escaped(self) -> str:
        char = self._pattern[self.position : self.position + 1]
        if not char or char.isalnum():
            raise _NotFiniteError
        self.position += 1
        return char


def _few(words: list[str]) -> list[str]:
    few = list(dict.fromkeys(words))
    if len(few) > MAX_WORDS:
        raise _NotFiniteError
    return few
