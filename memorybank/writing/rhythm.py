"""When a memory is due, and when the Story Summary is: pure functions of how long the log is (SPEC.md section 9).

The log is cut into spans of `every` actions by position alone, and a span is due when `untouched` actions stand behind
it: with 6 and 6, actions 1-6 at action 12, 7-12 at action 18. So the spans are the same whatever the batches in which
the actions arrive, and after any number of restarts, undos and redos.

All entries of the log count, `continue` (no text) too: whether an action has text can change by an edit, and then all
later spans would move. A span in which no action has text makes no memory.

What may be done once memories exist and the log has changed under them is `staleness.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from memorybank.errors import InvalidInputError

__all__ = ["MOST", "RHYTHMS", "Rhythm", "Span", "SummaryUpdate", "due", "spans", "summary_due"]

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
        first: number of the first span that it tells and the summary does not yet.
        last: number of the last one.
    """

    at: int
    first: int
    last: int


def spans(count: int, rhythm: Rhythm) -> list[Span]:
    """Return the spans that are complete in a log of `count` actions, oldest first.

    >>> spans(18, Rhythm())
    [Span(number=1, start=0, stop=6), Span(number=2, start=6, stop=12)]
    """
    return [
        Span(number, (number - 1) * rhythm.every, number * rhythm.every)
        for number in range(1, _complete(count, rhythm) + 1)
    ]


def due(count: int, rhythm: Rhythm, done: Collection[int] = ()) -> list[Span]:
    """Return the complete spans that are not done yet, oldest first.

    Args:
        count: actions in the log.
        rhythm: the bank's.
        done: numbers of the spans that have their memory, or shall have none.
    """
    return [span for span in spans(count, rhythm) if span.number not in done]


def summary_due(count: int, rhythm: Rhythm, told: int = 0) -> list[SummaryUpdate]:
    """Return the updates of the Story Summary that are due, oldest first.

    Making them one after another gives the same summary whatever the batches in which the actions arrived. One update
    from the first's `first` to the last's `last` tells the same events at the price of one call.

    Args:
        count: actions in the log.
        rhythm: the bank's.
        told: number of the newest span that the summary tells already.

    >>> summary_due(31, Rhythm())
    [SummaryUpdate(at=15, first=1, last=1), SummaryUpdate(at=30, first=2, last=4)]
    """
    updates = []
    for at in range(rhythm.summary_every, count + 1, rhythm.summary_every):
        complete = _complete(at, rhythm)
        if complete > told:
            updates.append(SummaryUpdate(at, told + 1, complete))
            told = complete
    return updates


def _complete(count: int, rhythm: Rhythm) -> int:
    return max(0, count - rhythm.untouched) // rhythm.every
