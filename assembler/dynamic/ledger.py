"""What the actions of a log cost, with running sums, so that a turn pays for its new actions alone.

How much of a history fits is a search in the sums, and its text a slice: nothing is done for each action of a context.
A log that grows shares its ledger with the logs it has grown from, as it shares its storage (`action_log.py`); one that
was edited has a storage of its own, and so a ledger of its own. Nothing that was read is ever changed.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import neg, sub
from typing import TypeVar

from assembler.action_log import Action, ActionLog
from assembler.blocks import Block, BlockMaker, joins_line_end

__all__ = ["Ledger", "Run", "ledger_of"]

CHUNK = 64
"""Blocks that are joined once."""
MOST_LEDGERS = 4
"""Ledgers of one log, each for a tokenizer of its own; the oldest one goes."""

T = TypeVar("T")
_making = threading.Lock()


class _Side:
    """The actions with text in one direction from where the ledger begins, nearest first: three words for each.

    The texts of whole chunks are joined once, for as long as a context holds them: to touch thousands of short texts
    on every turn takes longer than to copy them.

    Attributes:
        texts: of their blocks.
        places: where they stand in the log.
        sums: before each one and behind the last, the tokens of those before it.
        seams: indexes of those that may join with the line end before them.
    """

    __slots__ = ("_chunks", "_step", "places", "seams", "sums", "texts")

    def __init__(self, step: int) -> None:
        """Begin with nothing; `step` is 1 where the nearest action is the oldest, -1 where it is the newest."""
        self._step = step
        self._chunks: dict[int, str] = {}
        self.texts: list[str] = []
        self.places = array("q")
        self.sums = array("q", [0])
        self.seams: list[int] = []

    def settle(self) -> None:
        """Take back what a call left half done that was interrupted, by Ctrl-C say."""
        count = len(self.sums) - 1
        del self.texts[count:], self.places[count:]
        if self.seams and self.seams[-1] >= count:
            self.seams.pop()

    def add(self, place: int, block: Block) -> None:
        if joins_line_end(block.text):
            self.seams.append(len(self.texts))
        self.texts.append(block.text)
        self.places.append(place)
        self.sums.append(self.sums[-1] + block.tokens)

    def costs(self, start: int, end: int) -> list[int]:
        """Return the tokens of the blocks between two indexes."""
        return list(map(sub, self.sums[start + 1 : end + 1], self.sums[start:end]))[:: self._step]

    def pieces(self, start: int, end: int) -> list[str]:
        """Return the texts of the blocks between two indexes, oldest first, many in one piece where that is at hand."""
        first, last = -(-start // CHUNK), end // CHUNK
        if first >= last:
            return self.texts[start:end][:: self._step]
        pieces = self.texts[start : first * CHUNK]
        pieces += [self._chunks.get(number) or self._join(number) for number in range(first, last)]
        pieces += self.texts[last * CHUNK : end]
        if len(self._chunks) > 2 * (last - first) + 4:  # the game has gone on: what it has left behind may go
            self._chunks = {number: self._join(number) for number in range(first, last)}
        return pieces[:: self._step]

    def _join(self, number: int) -> str:
        texts = self.texts[number * CHUNK : (number + 1) * CHUNK]
        chunk = self._chunks[number] = "\n".join(texts[:: self._step])
        return chunk


class Ledger:
    """The blocks of a log's actions with text, for one tokenizer. Safe with threads.

    An action has an index: 0 and up from where the ledger begins, -1 and down before it. Indexes never change, however
    the ledger grows: at its newer end with the log, at its older end where more of it is asked for.
    """

    def __init__(self, actions: Sequence[Action], blocks: BlockMaker, begin: int) -> None:
        """Begin between two places of a log.

        Args:
            actions: the storage of the log, which may grow at its end.
            blocks: makes and counts blocks.
            begin: the place of the first action on the newer side.
        """
        self.actions = actions
        self.begin = begin
        self._blocks = blocks
        self._newer, self._older = _Side(1), _Side(-1)
        self._ahead, self._behind = begin, begin - 1  # the places to be read next
        self._lock = threading.Lock()

    def end(self, length: int) -> int:
        """Return the index behind the newest action with text of the first `length`, no fewer than `begin`."""
        with self._lock:
            if self._ahead < length:
                self._read_ahead(length)
            return bisect_left(self._newer.places, length)

    def _read_ahead(self, length: int) -> None:
        newer = self._newer
        newer.settle()
        for place in range(self._ahead, length):
            action = self.actions[place]
            if action.has_text and place not in newer.places[-1:]:
                newer.add(place, self._blocks.action(action))
            self._ahead = place + 1

    def has(self, index: int) -> bool:
        """Whether there is an action of that index; not more than one action older than those that were read."""
        with self._lock:
            if index <= -len(self._older.sums):
                self._read_back(self._older.sums[-1], 0)
            return index > -len(self._older.sums)

    def reach(self, end: int, room: int, floor: int | None = None) -> int:
        """Return the index of the oldest action of the longest unbroken run that costs at most `room` tokens.

        It reads no more of the log than the run and one older action.

        Args:
            end: the index behind the run, up to which there are actions (`has`).
            room: tokens.
            floor: the place in the log of an action than which the run has no older one.
        """
        with self._lock:
            goal = self.before(end) - room  # the tokens that may stand before the run
            if goal > 0:
                found = bisect_left(self._newer.sums, goal)
            else:
                self._read_back(-goal, floor or 0)
                found = 1 - bisect_right(self._older.sums, -goal)
            if floor is not None:
                found = max(found, self._index(floor))
            return min(found, end)

    def _read_back(self, tokens: int, floor: int) -> None:
        """Read older actions until they cost more than so many tokens, or until one is older than the floor."""
        older, make = self._older, self._blocks.action
        older.settle()
        sums, places = older.sums, older.places
        while self._behind >= 0 and sums[-1] <= tokens and not (places and places[-1] < floor):
            action = self.actions[self._behind]
            if action.has_text and self._behind not in places[-1:]:
                older.add(self._behind, make(action))
            self._behind -= 1

    def _index(self, place: int) -> int:
        """Return the index of the action at that place; one that is not there if it was not read."""
        if place >= self.begin:
            return bisect_left(self._newer.places, place)
        return -1 - bisect_left(self._older.places, -place, key=neg)

    def before(self, index: int) -> int:
        """Return the tokens from where the ledger begins up to an action; less than 0 on the older side."""
        return self._newer.sums[index] if index >= 0 else -self._older.sums[-index]

    def cost(self, index: int) -> int:
        """Return the tokens of an action's block."""
        return self.before(index + 1) - self.before(index)

    def place(self, index: int) -> int:
        """Return where an action stands in the log."""
        return self._newer.places[index] if index >= 0 else self._older.places[-1 - index]

    def text(self, index: int) -> str:
        """Return the text of an action's block."""
        return self._newer.texts[index] if index >= 0 else self._older.texts[-1 - index]

    def texts(self, start: int, end: int) -> Sequence[str]:
        """Return the texts of a run of blocks, oldest first."""
        return _between(self._newer.texts, self._older.texts, start, end)

    def pieces(self, start: int, end: int) -> list[str]:
        """Return the texts of a run of blocks, oldest first, some of them joined."""
        older = self._older.pieces(max(0, -end), -start) if start < 0 else []
        return older + self._newer.pieces(max(0, start), end) if end > 0 else older

    def ids(self, start: int, end: int) -> list[str]:
        """Return the ids of a run of actions, oldest first."""
        actions = self.actions
        return [actions[place].id for place in _between(self._newer.places, self._older.places, start, end)]

    def costs(self, start: int, end: int) -> list[int]:
        """Return the tokens of each block of a run, oldest first."""
        older = self._older.costs(max(0, -end), -start) if start < 0 else []
        return older + self._newer.costs(max(0, start), end) if end > 0 else older

    def seams(self, start: int, end: int) -> list[int]:
        """Return which blocks of a run may join with the line end before them, by their numbers in the run."""
        if not self._older.seams and not self._newer.seams:
            return []
        found = [-1 - index for index in reversed(self._older.seams)] + self._newer.seams
        return [index - start for index in found[bisect_left(found, start) : bisect_left(found, end)]]


def _between(newer: Sequence[T], older: Sequence[T], start: int, end: int) -> Sequence[T]:
    if start >= 0:
        return newer[start:end]
    back = older[-start - 1 : -end - 1 if end < 0 else None : -1]
    return [*back, *newer[:end]] if end > 0 else back


class Run:
    """The actions of History that are in a context: there are hundreds, so nothing is kept for each of them.

    Attributes:
        used: what those cost here that cost something else here than by themselves, by their numbers: 0 is the oldest.
    """

    def __init__(self, ledger: Ledger, start: int, end: int) -> None:
        """Hold the actions from one index of a ledger to before another."""
        self._ledger = ledger
        self._start, self._end = start, end
        self.used: dict[int, int] = {}

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def tokens(self) -> int:
        """What they cost, each by itself."""
        return self._ledger.before(self._end) - self._ledger.before(self._start)

    @property
    def tokens_used(self) -> int:
        """What they cost here."""
        return self.tokens + sum(used - self.cost(number) for number, used in self.used.items())

    def cost(self, number: int) -> int:
        """Return what one of them costs by itself."""
        return self._ledger.cost(self._start + number)

    @property
    def texts(self) -> Sequence[str]:
        """Their blocks, oldest first."""
        return self._ledger.texts(self._start, self._end)

    @property
    def pieces(self) -> list[str]:
        """Their blocks, oldest first, some of them joined."""
        return self._ledger.pieces(self._start, self._end)

    @property
    def seams(self) -> list[int]:
        """The numbers of the blocks that may join with the line end before them."""
        return self._ledger.seams(self._start, self._end)


def ledger_of(log: ActionLog, blocks: BlockMaker) -> Ledger:
    """Return the ledger of a log and of all logs that share its storage."""
    ledgers, tokenizer = log.ledgers, blocks.tokenizer
    ledger = ledgers.get(tokenizer)
    if ledger is None or ledger.begin > len(log):  # made for a log that had grown from this one
        with _making:
            while len(ledgers) >= MOST_LEDGERS:
                del ledgers[next(iter(ledgers))]
            ledger = ledgers[tokenizer] = Ledger(log.storage, blocks, len(log))
    return ledger
