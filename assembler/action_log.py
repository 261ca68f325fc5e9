"""The log of an adventure: grows at its end in constant time, answers where an action stands (SPEC.md section 1)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from assembler.errors import AdventureError

if TYPE_CHECKING:
    from assembler.dynamic.ledger import Ledger
    from memorybank.tokenizer import Tokenizer

__all__ = ["KINDS", "Action", "ActionKind", "ActionLog"]

ActionKind = Literal["start", "do", "say", "story", "output", "continue"]
KINDS: tuple[str, ...] = get_args(ActionKind)

_appending = threading.Lock()


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of the log.

    Attributes:
        id: unique in its log. Identical texts are told apart by it.
        kind: `start`, `do`, `say`, `story` (the player's), `output` (the AI's) or `continue` (no text).
        text: what was typed or written; may be empty.
        extra: fields of the document that are not ours, kept for the round trip.

    Raises:
        AdventureError: an empty id, an unknown kind, or a text that is no string.
    """

    id: str
    kind: ActionKind
    text: str = ""
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise AdventureError(f"action id: expected a string that is not empty, got {self.id!r}")
        if self.kind not in KINDS:
            raise AdventureError(f"action {self.id!r}: kind {self.kind!r} is unknown; use one of {', '.join(KINDS)}")
        if not isinstance(self.text, str):
            raise AdventureError(f"action {self.id!r}: text: expected a string, got {type(self.text).__name__}")

    @property
    def has_text(self) -> bool:
        """Whether anything but whitespace is in it."""
        return bool(self.text) and not self.text.isspace()


class ActionLog(Sequence[Action]):
    """An immutable sequence of actions, oldest first, that shares its storage with the logs grown from it.

    Appending copies nothing, so a game can make a new log every turn however long its adventure is. Appending
    twice to the same log (a branch) copies once.

    >>> log = ActionLog([Action("a1", "start", "You wake.")])
    >>> longer = log.append(Action("a2", "do", "look around"))
    >>> len(log), len(longer), longer.position("a2"), log.position("a2")
    (1, 2, 1, None)
    """

    __slots__ = ("_actions", "_length", "_positions", "ledgers")

    ledgers: dict[Tokenizer, Ledger]
    """What its actions cost, by tokenizer: shared as the storage is. `dynamic/ledger.py` writes in it."""

    def __init__(self, actions: Iterable[Action] = ()) -> None:
        self._actions = list(actions)
        self._length = len(self._actions)
        self._positions = {action.id: position for position, action in enumerate(self._actions)}
        self.ledgers = {}
        if len(self._positions) < self._length:
            self._raise_duplicate()

    def _raise_duplicate(self) -> None:
        first: dict[str, int] = {}
        for position, action in enumerate(self._actions):
            if action.id in first:
                raise AdventureError(
                    f"actions[{position}].id: {action.id!r} is already the id of actions[{first[action.id]}]; "
                    f"give every action its own"
                )
            first[action.id] = position

    def append(self, action: Action) -> ActionLog:
        """Return a log with `action` at its end; this one stays as it is.

        Raises:
            AdventureError: the log has an action of that id already.
        """
        with _appending:
            if self.position(action.id) is not None:
                raise AdventureError(f"action {action.id!r}: that id is already in the log; give every action its own")
            if self._length < len(self._actions):  # somebody has grown this log already: a branch
                return ActionLog([*self._actions[: self._length], action])
            grown = ActionLog.__new__(ActionLog)
            grown._actions, grown._positions, grown._length = self._actions, self._positions, self._length + 1
            grown.ledgers = self.ledgers
            self._actions.append(action)
            self._positions[action.id] = self._length
            return grown

    @property
    def storage(self) -> Sequence[Action]:
        """The actions of this log and, behind them, of those that have grown from it. It grows at its end alone."""
        return self._actions

    def position(self, action_id: str) -> int | None:
        """Return where the action with that id stands, counted from 0, or None."""
        position = self._positions.get(action_id)
        return position if position is not None and position < self._length else None

    def newest_first(self) -> Iterator[Action]:
        """Iterate over the actions with text from the newest on; reads no more of the log than is asked for."""
        actions = self._actions
        for position in range(self._length - 1, -1, -1):
            action = actions[position]
            text = action.text
            if text and not text.isspace():  # `has_text`, without a call for each action of a long history
                yield action

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Action: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Action]: ...
    def __getitem__(self, index: int | slice) -> Action | Sequence[Action]:
        if isinstance(index, slice):
            return [self._actions[i] for i in range(*index.indices(self._length))]
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(f"the log has {self._length} actions, there is no number {index}")
        return self._actions[position]

    def __iter__(self) -> Iterator[Action]:
        return iter(self._actions[: self._length])

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, ActionLog) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[ActionLog], tuple[list[Action]]]:
        """A copy has its own actions, and no ledger."""
        return ActionLog, (list(self),)

    def __repr__(self) -> str:
        return f"<ActionLog of {self._length} actions>"
