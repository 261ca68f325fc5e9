r"""The exact token count of a long text, line by line, each line counted once.

tiktoken cuts a text into pieces by a regular expression and encodes each piece by itself. In the expressions of
cl100k_base and o200k_base a piece that contains a line end consists of whitespace, or of punctuation followed by line
ends (and slashes, in o200k_base). So behind a line end that is followed by neither whitespace nor a slash a piece
always ends, what stands before and behind it has the tokens that it has alone, and the count of the whole is the sum.
A finished context has hundreds of lines of which a new turn brings two: with this its one exact count (SPEC.md
section 2) costs a tenth. `tests/memorybank/test_tokenizer.py` compares it with tiktoken's own on every kind of text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

__all__ = ["LineCounts", "cuts_at_line_ends"]

LONGEST = 1_000_000
"""Characters of the longest text that is looked at by lines: a book is counted once and never again."""
GENERATION = 16_000_000
"""Characters in one generation of the counts that are remembered; two are kept."""

_CUT = re.compile(r"\n(?![\s/])")  # Python's \s holds all that tiktoken's does, and more
_CUTTING = {
    "f021c3d976978e62ee64cdad150cc3405c2e3d6e3b40407850bb9e8d9eb65899",  # cl100k_base
    "2d1b8dc11e89af71459b36004f698ab3693f59fd84f63e8ec2b49564ab857420",  # o200k_base, o200k_harmony
}


def cuts_at_line_ends(pattern: str) -> bool:
    """Whether that expression is one of those for which the rule holds, by the SHA-256 of its text."""
    return hashlib.sha256(pattern.encode()).hexdigest() in _CUTTING


class LineCounts:
    """Counts texts by their lines and remembers the lines' counts. Safe with threads."""

    def __init__(self, count: Callable[[str], int]) -> None:
        """Use `count` for a text that cannot be cut any further."""
        self._count = count
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._size = 0

    def __call__(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        if len(text) > LONGEST:
            return self._count(text)
        begin, tokens, young = 0, 0, self._young.get
        for cut in _CUT.finditer(text):
            end = cut.end()
            line = text[begin:end]
            known = young(line)
            tokens += self._remember(line) if known is None else known
            begin = end
        return tokens + self._count(text[begin:]) if begin < len(text) else tokens

    def _remember(self, line: str) -> int:
        tokens = self._old.get(line)
        if tokens is None:
            tokens = self._count(line)
        if self._size > GENERATION:
            self._young, self._old, self._size = {}, self._young, 0
        self._young[line] = tokens
        self._size += len(line) + 100
        return tokens
