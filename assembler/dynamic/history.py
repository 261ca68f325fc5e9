"""History: whole actions, newest first, an unbroken run (SPEC.md section 4), with an anchor where one is given.

With an anchor (section 5, cache-friendly layout) the run begins with the action it began with on the previous turn
for as long as that fits. When it no longer fits, the beginning moves on by at least `anchor_step` tokens, so that the
prompt keeps its beginning over many turns and not just one. Where History has no room for that step, and nothing of it
would be left, the newer half of what fits stays.
"""

from __future__ import annotations

from itertools import repeat

from assembler.action_log import Action, ActionLog
from assembler.blocks import BlockMaker
from assembler.dynamic.ledger import Run, ledger_of
from assembler.report import Line, Section, Verdict, no_room

__all__ = ["History", "InContext"]


class InContext:
    """The ids of the actions that stand in the context: History's and the last action's."""

    def __init__(self, log: ActionLog, oldest: int) -> None:
        """Hold all actions with text from the place of the oldest one on."""
        self._log = log
        self._oldest = oldest

    def __contains__(self, action_id: object) -> bool:
        place = self._log.position(str(action_id))
        return place is not None and place >= self._oldest and self._log[place].has_text


class History:
    """The section `history`. Reads no more of the log than what fits and the first that does not.

    Actions have the indexes of the log's ledger: those from `_start` to before `_end`, the last action, are in.
    """

    def __init__(self, log: ActionLog, blocks: BlockMaker, *, anchor: str | None, anchor_step: int) -> None:
        self._log = log
        self._ledger = ledger = ledger_of(log, blocks)
        behind = ledger.end(len(log))
        self._has_last = ledger.has(behind - 1)
        self._end = self._start = behind - 1 if self._has_last else behind
        self._oldest: int | None = None  # the index to which it goes back at most once its beginning has moved on
        self._step = anchor_step
        self._anchor = self._place_of(anchor) if anchor is not None else None
        self._why_not: str | None = None  # why the next older action is out; None if there is none
        self._is_held = False  # whether something else than its cost keeps that action out
        self.tokens = 0

    def _place_of(self, anchor: str) -> int | None:
        """Return where in the log the anchor stands, None if it is no action of history."""
        place = self._log.position(anchor)
        if place is None or not self._has_last or place >= self._ledger.place(self._end):
            return None
        return place if self._log[place].has_text else None

    @property
    def in_context(self) -> InContext:
        """Which actions stand in the context."""
        return InContext(self._log, self._ledger.place(self._start) if self._has_last else len(self._log))

    @property
    def first(self) -> str | None:
        """The id of the oldest action kept: the anchor for the next turn."""
        return self._oldest_kept.id if self._start < self._end else None

    @property
    def _oldest_kept(self) -> Action:
        return self._ledger.actions[self._ledger.place(self._start)]

    @property
    def _begins_at_anchor(self) -> bool:
        return self._start < self._end and self._ledger.place(self._start) == self._anchor

    def run(self) -> Run:
        """Return what is in the context."""
        return Run(self._ledger, self._start, self._end)

    def fill(self, room: int) -> int:
        """Extend the run to older actions as far as the room goes; return the tokens that this took.

        Args:
            room: tokens for all of history, what is in already included.
        """
        if self._begins_at_anchor:
            return 0
        before = self.tokens
        start = min(self._start, self._ledger.reach(self._end, room, self._anchor))
        self._begin_at(start if self._oldest is None else max(start, self._oldest))
        self.explain(room - self.tokens)
        return self.tokens - before

    def _begin_at(self, start: int) -> None:
        self._start = start
        self.tokens = self._ledger.before(self._end) - self._ledger.before(start)

    def explain(self, left: int) -> None:
        """Say why the next older action is not in, given the tokens that are left."""
        self._is_held = True
        if not self._ledger.has(self._start - 1):
            self._why_not = None
        elif self._start == self._oldest:
            self._why_not = f"history's beginning moved on, by {self._step} tokens or more"
        elif self._begins_at_anchor:
            self._why_not = "older than the anchor, where history began on the previous turn"
        else:
            self._why_not = no_room(self._ledger.cost(self._start - 1), left)
            self._is_held = False

    def moves_on(self) -> bool:
        """Whether the anchor no longer fits and so many actions must go that history has to be packed again.

        If so, nothing is kept, and from now on history holds no more actions than a whole step leaves.
        """
        if self._anchor is None or self._begins_at_anchor:
            return False
        oldest = self._left_by_a_step(self._anchor)
        if oldest <= self._start:
            return False
        self._oldest = oldest
        self._begin_at(self._end)
        return True

    def _left_by_a_step(self, anchor: int) -> int:
        """Return where history begins if its beginning moves on from the anchor by a whole step."""
        passed, index = 0, self._start
        while passed < self._step and self._ledger.place(index) != anchor:
            index -= 1
            self._ledger.has(index)  # it is read
            passed += self._ledger.cost(index)
        index = self._start
        while passed < self._step and index < self._end:
            passed += self._ledger.cost(index)
            index += 1
        return index if index < self._end else self._newer_half()

    def _newer_half(self) -> int:
        """Return where those of the newest actions begin that cost at most half of what is kept."""
        return max(self._start, self._ledger.reach(self._end, self.tokens // 2))

    @property
    def candidate(self) -> Line | None:
        """The next older action, if its cost alone keeps it out."""
        return None if self._why_not is None or self._is_held else self._next_older(self._why_not)

    def take_next(self) -> None:
        """Take in the next older action, whatever it costs."""
        self._begin_at(self._start - 1)

    def give_up_oldest(self, reason: str) -> bool:
        """Leave out the oldest action kept; False if there is none."""
        if self._start == self._end:
            return False
        self._begin_at(self._start + 1)
        self._why_not, self._is_held = reason, False
        return True

    def _next_older(self, reason: str) -> Line:
        ledger, index = self._ledger, self._start - 1
        id = ledger.actions[ledger.place(index)].id
        return Line("history", id, ledger.text(index), ledger.cost(index), 0, "dropped", reason)

    def lines(self, used: dict[int, int]) -> list[Line]:
        """Return every action kept, newest first, and the first that is not.

        Args:
            used: the tokens of those that cost something else here than elsewhere, by their numbers in the run.
        """
        ledger, start, end = self._ledger, self._start, self._end
        ids, texts, costs = ledger.ids(start, end), ledger.texts(start, end), ledger.costs(start, end)
        section: Section = "history"
        kept: Verdict = "kept"
        lines = list(map(Line, repeat(section), ids, texts, costs, costs, repeat(kept)))
        for number, tokens in used.items():
            lines[number].used = tokens
        lines.reverse()
        return lines if self._why_not is None else [*lines, self._next_older(self._why_not)]
