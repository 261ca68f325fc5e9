"""One line for every offered item: in or out, what it cost, and why (SPEC.md section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

__all__ = ["SECTIONS", "Line", "Part", "Report", "Section", "UnreadLines", "Verdict", "no_room"]

Section = Literal[
    "front_memory",
    "last_action",
    "authors_note",
    "plot_essentials",
    "ai_instructions",
    "story_summary",
    "story_cards",
    "history",
    "memory_bank",
]
SECTIONS: tuple[Section, ...] = get_args(Section)

Verdict = Literal["kept", "trimmed", "dropped"]


@dataclass(slots=True)
class Line:
    """What became of one offered item. The packers write in it until the context is finished.

    Attributes:
        section: where it belongs.
        item: `text`, `header`, or an id.
        block: its text as it stands in the context or would stand there, without the line end.
        offered: what it costs whole, in tokens.
        used: what it costs in this context.
        verdict: whether it is in.
        reason: why it is not, or not whole, in words.
        details: what else there is to say: for a card `trigger`, `action` and `score`; for a memory `rank` and
            `similarity`, and as far as it is known `pinned`, `actions`, `made`, `writer`, `use_count`, `last_used`.
    """

    section: Section
    item: str
    block: str = field(repr=False)
    offered: int
    used: int = 0
    verdict: Verdict = "dropped"
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether any of it is in the context."""
        return self.verdict != "dropped"

    def keep(self) -> None:
        """Take it in whole."""
        self.verdict, self.used, self.reason = "kept", self.offered, ""

    def drop(self, reason: str) -> None:
        """Leave it out."""
        self.verdict, self.used, self.reason = "dropped", 0, reason

    def trim(self, block: str, used: int, reason: str) -> None:
        """Take in a part of it."""
        self.verdict, self.block, self.used, self.reason = "trimmed", block, used, reason

    def to_dict(self) -> dict[str, Any]:
        """Return the line as JSON values, details beside the fields."""
        return {
            "section": self.section,
            "item": self.item,
            "verdict": self.verdict,
            "offered": self.offered,
            "used": self.used,
            "reason": self.reason,
            **self.details,
        }


def no_room(needs: int, left: int, header: int = 0) -> str:
    """Return the reason of an item that did not fit.

    >>> no_room(212, 40)
    'no room: needs 212, 40 left'
    >>> no_room(216, 40, header=4)
    'no room: needs 216, 40 left (4 of it for the header)'
    """
    return f"no room: needs {needs}, {left} left" + (f" ({header} of it for the header)" if header else "")


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of the context was allowed (a limit or a share) and used, in tokens."""

    allowed: int
    used: int


@dataclass(frozen=True, slots=True)
class UnreadLines:
    """The lines of a report, with those of History to be made when they are read.

    Attributes:
        before: the lines before them.
        history: makes the lines of History; every call makes the same.
        behind: the lines behind them.
    """

    before: Sequence[Line]
    history: Callable[[], list[Line]]
    behind: Sequence[Line]

    def read(self) -> tuple[Line, ...]:
        """Return all of them."""
        return (*self.before, *self.history(), *self.behind)


@dataclass(frozen=True)
class Report:
    """Why the context is as it is.

    History has hundreds of lines, of which most programs read none: they are made when `lines` is first read. Until
    then the report holds on to the log that it tells of.

    Attributes:
        tokenizer: what counted.
        is_estimate: whether its counts are estimates.
        layout: the order of the context.
        context_size: tokens that there were.
        required_limit: tokens that Required could have.
        parts: `required`, `story_cards`, `history`, `memory_bank`.
        cards_not_matched: how many cards waited for a trigger or were switched off.
        card_window: in how many of the newest actions triggers were looked for.
        lines: one for every offered item; `used` summed over them is the context's exact token count.
        cards_waiting: for every card that did not match its id and what it waits for, None if it is switched off;
            there if that was asked for.
        memories_pending: memories that are due and that no writer has written yet, as far as the bank can tell.
    """

    tokenizer: str
    is_estimate: bool
    layout: str
    context_size: int
    required_limit: int
    parts: Mapping[str, Part]
    cards_not_matched: int
    card_window: int
    lines: tuple[Line, ...]
    cards_waiting: Mapping[str, tuple[str, ...] | None] | None = None
    memories_pending: int = 0

    @classmethod
    def unread(cls, lines: UnreadLines, **fields: Any) -> Report:
        """Return a report whose lines are made when they are first read.

        Args:
            lines: the lines.
            fields: all other attributes.
        """
        report = cls(lines=(), **fields)
        del report.__dict__["lines"]
        report.__dict__["_unread"] = lines
        return report

    if not TYPE_CHECKING:  # to a type checker `lines` is there

        def __getattr__(self, name: str) -> tuple[Line, ...]:
            """Make the lines when they are first read; two threads that do so at once get the same ones."""
            unread = self.__dict__.get("_unread")
            if name != "lines" or unread is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self.__dict__.setdefault("lines", unread.read())

    def __getstate__(self) -> dict[str, Any]:
        """A copy has its lines, and nothing of the log."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def lines_of(self, section: Section) -> tuple[Line, ...]:
        """Return the lines of one section; those of History are made only for `history`."""
        unread = self.__dict__.get("_unread") if section != "history" and "lines" not in self.__dict__ else None
        lines = self.lines if unread is None else (*unread.before, *unread.behind)
        return tuple(line for line in lines if line.section == section)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values (SPEC.md section 11)."""
        report: dict[str, Any] = {"tokenizer": self.tokenizer}
        if self.is_estimate:
            report["estimate"] = True
        report |= {name: getattr(self, name) for name in ("layout", "context_size", "required_limit")}
        report["parts"] = {
            name: {"limit" if name == "required" else "share": part.allowed, "used": part.used}
            for name, part in self.parts.items()
        }
        report["cards_not_matched"] = self.cards_not_matched
        if self.memories_pending:
            report["memories_pending"] = self.memories_pending
        report["lines"] = [line.to_dict() for line in self.lines]
        if self.cards_waiting is not None:
            report["card_window"] = self.card_window
            report["cards_waiting"] = {
                id: None if triggers is None else list(triggers) for id, triggers in self.cards_waiting.items()
            }
        return report
