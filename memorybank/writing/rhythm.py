"""When a memory is due, and when the Story Summary is: pure functions of how long the log is (SPEC.md section 9).

The log is cut into spans of `every` actions by position alone, and a span is due when `untouched` actions stand behind
it: with 6 and 6, actions 1-6 at action 12, 7-12 at action 18. So the spans are the same whatever the batches in which
the actions arrive, and after any number of restarts, undos and redos.

All entries of the log count, `continue` (no text) too: whether an action has text can change by an edit, and then all
later spans would move. A span in which no action has text makes no memory.

What may be done once memories exist and the log has changed under them is `staleness.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from memorybank.errors import InvalidInputError

__all__ = ["MOST", "RHYTHMS", "Rhythm", "Span", "SummaryUpdate", "next_summary", "spans"]

MOST = 10_000
"""The largest count that a rhythm may have, which is what one memory may have as source actions."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often something is written; a setting of each bank.

    Attributes:
        every: actions of one memory, 1 to 10,000.
        untouched: newest actions that no memory is made of, 0 to 10,000.
        summary_every: actions from one update of the Story Summary to the next, 1 to 10,000.

    Raises:
        InvalidInputError: a number out of range.
    """

    every: int = 6
    untouched: int = 6
    summary_every: int = 15

    def __post_init__(self) -> None:
        for name, least in (("every", 1), ("untouched", 0), ("summary_every", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
                raise InvalidInputError(f"{name} must be a whole number from {least} to {MOST:,}, not {value!r}")


RHYTHMS: Mapping[str, Rhythm] = MappingProxyType({"6/15": Rhythm(), "4/8": Rhythm(4, 4, 8)})
"""Presets by name. `6/15` is the default: a memory of every 6 actions, the Story Summary every 15. `4/8` is the older
rhythm: a memory of every 4 actions, of which the newest 4 are left alone, and the Story Summary every 8."""


@dataclass(frozen=True, slots=True)
class Span:
    """A run of actions that one memory is made of.

    Attributes:
        number: its place among the spans of the log, from 1.
        start: position of its first action, from 0.
        stop: position behind its last action.
    """

    number: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class SummaryUpdate:
    """One time that the Story Summary is brought up to date.

    Attributes:
        at: the length of the log at which it is due, a multiple of `summary_every`.
        stop: position behind the last action that it tells: of the last span that is complete then.
    """

    at: int
    stop: int


def spans(count: int, rhythm: Rhythm) -> list[Span]:
    """Return the spans that are complete in a log of `count` actions, oldest first.

    >>> spans(18, Rhythm())
    [Span(number=1, start=0, stop=6), Span(number=2, start=6, stop=12)]
    """
    return [
        Span(number, (number - 1) * rhythm.every, number * rhythm.every)
        for number in range(1, _complete(count, rhythm) + 1)
    ]


def next_summary(rhythm: Rhythm, told: int = 0) -> SummaryUpdate:
    """Return the first update of the Story Summary that has something to tell beyond what is told.

    Made one after another, they give the same summary whatever the batches in which the actions arrived.

    Args:
        rhythm: the bank's.
        told: how many actions from the beginning on the summary tells already.

    >>> next_summary(Rhythm()), next_summary(Rhythm(), told=6)
    (SummaryUpdate(at=15, stop=6), SummaryUpdate(at=30, stop=24))
    """
    least = rhythm.untouched + (told // rhythm.every + 1) * rhythm.every
    at = -(-least // rhythm.summary_every) * rhythm.summary_every
    return SummaryUpdate(at, _complete(at, rhythm) * rhythm.every)


def _complete(count: int, rhythm: Rhythm) -> int:
    return max(0, count - rhythm.untouched) // rhythm.every
