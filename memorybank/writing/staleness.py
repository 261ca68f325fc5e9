"""What becomes of memories when the log changes under them: edit, undo, retry, branch (SPEC.md section 9). Pure.

A memory knows its sources: the ids of its actions, each with the hash of its text. It is valid while they stand in the
log as one unbroken run with these hashes, else stale; if they come back (redo) it is valid again. What no valid memory
covers is cut into spans by `rhythm.py`'s rule.

While the log is only appended to, edited, undone, retried and branched, spans are therefore `rhythm.spans` of its
length. Where actions were taken out of the middle or put in, the memories behind that place stay what they are: their
sources have not changed, although they no longer stand at multiples of `every`. What lies between two of them is cut
from its beginning; a rest of fewer than `every` actions makes a memory of its own. No action is told twice or lost.

Hashes, as other programs may rely on them: an action's is the SHA-256 of its text in UTF-8, repaired and without
surrounding whitespace (`memorybank.text.clean`), in hexadecimal. A span's is the SHA-256 of the JSON
`[["id","hash"],…]` of its actions, in ASCII, without spaces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memorybank.errors import InvalidInputError
from memorybank.text import clean
from memorybank.writing.rhythm import Rhythm, Span

__all__ = ["Due", "Made", "Plan", "Source", "plan", "source_hash", "source_of"]


class Source(NamedTuple):
    """An action as a memory knows it: its id and the hash of its text."""

    id: str
    text_hash: str


@dataclass(frozen=True, slots=True)
class Made:
    """A span that is done: it has its memory, or had one that the player deleted.

    Attributes:
        key: the caller's name for it, such as the memory's id.
        sources: what it was made of, oldest first.
    """

    key: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Due:
    """A span that wants its memory.

    Attributes:
        span: where it stands in the log.
        sources: its actions, oldest first.
    """

    span: Span
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How things stand between a log and its memories.

    Attributes:
        valid: keys of the memories that may be searched, in the order of the log.
        stale: keys of those that may not, in the order given.
        due: spans to be written now, oldest first. One without any text is not among them.
        silent: spans without any text, of which nothing is to be written.
    """

    valid: tuple[str, ...]
    stale: tuple[str, ...]
    due: tuple[Due, ...]
    silent: tuple[Span, ...] = ()


def source_of(id: str, text: str) -> Source:
    """Return an action as a memory knows it."""
    return Source(id, hashlib.sha256(clean(text).encode()).hexdigest())


NO_TEXT = source_of("", "").text_hash


def source_hash(sources: Iterable[Source]) -> str:
    """Return what tells a span with these texts from all others; equal after an undo and a redo."""
    return hashlib.sha256(json.dumps(list(sources), separators=(",", ":")).encode()).hexdigest()


def plan(log: Sequence[Source], made: Iterable[Made], rhythm: Rhythm) -> Plan:
    """Return which memories hold, which do not, and which spans are due.

    Args:
        log: all actions as they stand now, oldest first.
        made: what was made so far, in any order; what is pending is not among it.
        rhythm: the bank's.

    Raises:
        InvalidInputError: two actions of the log have the same id.
    """
    positions = {source.id: position for position, source in enumerate(log)}
    if len(positions) < len(log):
        raise InvalidInputError(f"actions: {_first_twice(log)!r} is the id of two actions; give every action its own")
    made = list(made)
    kept = _without_overlap(_standing(log, positions, made))
    valid = {key for _, _, key in kept}
    stale = [one for one in made if one.key not in valid]
    open_spans = _uncovered([(start, stop) for start, stop, _ in kept], len(log), rhythm)
    due: list[Due] = []
    silent: list[Span] = []
    for span in open_spans:
        sources = tuple(log[span.start : span.stop])
        if all(source.text_hash == NO_TEXT for source in sources):
            silent.append(span)
        else:
            due.append(Due(span, sources))
    return Plan(
        valid=tuple(key for _, _, key in kept),
        stale=tuple(one.key for one in stale),
        due=tuple(due),
        silent=tuple(silent),
    )


def _first_twice(log: Sequence[Source]) -> str:
    seen: set[str] = set()
    for source in log:
        if source.id in seen:
            return source.id
        seen.add(source.id)
    return ""


def _standing(log: Sequence[Source], positions: dict[str, int], made: Iterable[Made]) -> Iterator[tuple[int, int, str]]:
    """Iterate over (start, stop, key) of what is valid by itself."""
    for one in made:
        start = positions.get(one.sources[0].id) if one.sources else None
        if start is not None and tuple(log[start : start + len(one.sources)]) == one.sources:
            yield start, start + len(one.sources), one.key


def _without_overlap(standing: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return them in the order of the log, without those that tell again what the one before tells."""
    kept: list[tuple[int, int, str]] = []
    for one in sorted(standing):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def _uncovered(covered: Sequence[tuple[int, int]], count: int, rhythm: Rhythm) -> Iterator[Span]:
    """Iterate over the spans in what is not covered and not among the newest actions."""
    number = begin = 0
    for start, stop in [*covered, (count, count)]:
        last = start == count
        while begin < start:
            end = begin + rhythm.every if last else min(begin + rhythm.every, start)
            number += 1
            if end + rhythm.untouched > count:
                break
            yield Span(number, begin, end)
            begin = end
        number += 1
        begin = stop
