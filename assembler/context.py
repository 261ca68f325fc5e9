"""The one orchestrator: state → budget → sections → context (SPEC.md section 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from assembler.adventure import Adventure
from assembler.arranged import Arranged
from assembler.blocks import BlockMaker, block_maker, joins_line_end
from assembler.budget import Shares, card_window, required_limit, split
from assembler.dynamic.history import History
from assembler.dynamic.memory_bank import Bank, Memories
from assembler.dynamic.story_cards import StoryCards
from assembler.dynamic.triggers import Match, trigger_index, triggers_of
from assembler.errors import ContextTooSmallError
from assembler.exact import OVER_EXACTLY, Candidate, count_exactly
from assembler.layout import arrange
from assembler.report import Line, Part, Report, UnreadLines
from assembler.required import PRIORITY, pack_required
from assembler.settings import Settings

__all__ = ["AssembledContext", "Message", "assemble"]


@dataclass(frozen=True, slots=True)
class Message:
    """A chat message: `role` is `system` or `user`."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """What the model sees, and why.

    Attributes:
        text: the context as one text.
        messages: the same as chat messages: AI Instructions as `system`, the rest as `user`. Their contents joined
            with a line end are `text`.
        tokens: the exact count of `text`.
        anchor: where History began; hand it back on the next turn. None in the classic layout.
        report: one line for every offered item.
    """

    text: str
    messages: tuple[Message, ...]
    tokens: int
    anchor: str | None
    report: Report

    @property
    def recalled(self) -> tuple[str, ...]:
        """The ids of the memories in it; `MemoryBank.mark_used` counts them once the context is really sent."""
        return tuple(line.item for line in self.report.lines_of("memory_bank") if "rank" in line.details and line.kept)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that the command line prints with `--json` (SPEC.md section 11)."""
        return {
            "text": self.text,
            "messages": [{"role": message.role, "content": message.content} for message in self.messages],
            "tokens": self.tokens,
            "anchor": self.anchor,
            "report": self.report.to_dict(),
        }


def assemble(
    adventure: Adventure, bank: Bank | None = None, settings: Settings | None = None, *, anchor: str | None = None
) -> AssembledContext:
    """Pack an adventure into the context for the next AI call.

    The same input gives the same bytes, and nothing in the input is changed.

    Args:
        adventure: what the game knows.
        bank: ranks the memories; None, or an adventure with `memory_bank=False`, turns the Memory Bank off.
        settings: context size, tokenizer, layout, shares; the defaults if None.
        anchor: the `anchor` of the previous turn's context. The classic layout has none and ignores it.

    Raises:
        ContextTooSmallError: Front Memory and Last Action alone exceed the context size.
        AdventureError: two story cards have the same id.
        memorybank.errors.TokenizerError: the tokenizer cannot be had.
        memorybank.errors.MemoryBankError: whatever the bank's search raises.
    """
    settings = settings or Settings()
    blocks = block_maker(settings.open_tokenizer())
    size, layout = settings.context_size, settings.layout
    bank = bank if adventure.memory_bank else None
    limit = required_limit(size, settings.required_percent)

    required = pack_required(adventure, context_size=size, limit=limit, layout=layout, blocks=blocks)
    left = max(0, size - sum(line.used for line in required))
    shares = split(
        left,
        memory_bank=bank is not None,
        story_cards_percent=settings.story_cards_percent,
        memory_bank_percent=settings.memory_bank_percent,
    )
    matches = _matches(adventure, shares)
    packed = _Packed(adventure, bank, required, matches, settings, blocks, anchor)
    packed.pack(left, shares)
    context, tokens = count_exactly(packed, size=size, tokenizer=blocks.tokenizer)
    return AssembledContext(
        text=context.text,
        messages=_messages(context),
        tokens=tokens,
        anchor=packed.history.first if layout == "cache_friendly" else None,
        report=_report(adventure, settings, blocks, limit, shares, matches, packed, context, _pending(bank)),
    )


def _matches(adventure: Adventure, shares: Shares) -> list[Match]:
    if not adventure.story_cards:
        return []
    window = list(islice(adventure.actions.newest_first(), card_window(shares.story_cards)))
    return trigger_index(adventure.story_cards).match(window)


class _Packed:
    """Required as it is packed, and Story Cards, History and Memory Bank while they are being packed."""

    def __init__(
        self,
        adventure: Adventure,
        bank: Bank | None,
        required: list[Line],
        matches: list[Match],
        settings: Settings,
        blocks: BlockMaker,
        anchor: str | None,
    ) -> None:
        self._adventure = adventure
        self._bank = bank
        self._settings = settings
        anchor = anchor if settings.layout == "cache_friendly" else None
        self.required = required
        self.cards = StoryCards(matches, blocks)
        self.history = History(adventure.actions, blocks, anchor=anchor, anchor_step=settings.anchor_step)
        self.memories = Memories(adventure.actions, blocks, near_duplicate=settings.near_duplicate)

    def pack(self, left: int, shares: Shares) -> None:
        """Steps 1 to 4 of SPEC.md section 4; once more if history's anchor no longer fits and has to move on."""
        self._pack(left, shares)
        if self.history.moves_on():
            self.cards.reset()
            self.memories.reset()
            self._pack(left, shares)

    def _pack(self, left: int, shares: Shares) -> None:
        self.cards.fill(shares.story_cards)
        self.history.fill(left - self.cards.tokens - shares.memory_bank)
        self._recall(left - self.cards.tokens - self.history.tokens)
        self.memories.fill(left - self.cards.tokens - self.history.tokens, self.history.in_context)
        self.history.fill(left - self.cards.tokens - self.memories.tokens)
        self.cards.fill(left - self.cards.tokens - self.history.tokens - self.memories.tokens)

    def _recall(self, room: int) -> None:
        last_action = self._adventure.last_action if self._bank is not None else None
        if self._bank is None or last_action is None:
            return
        before = islice(self._adventure.actions.newest_first(), 1, 1 + self._settings.recent_actions)
        recalled = self._bank.search(
            last_action.text,
            limit=self._settings.candidates(room),
            ranking=self._settings.ranking,
            recent=[action.text for action in before][::-1],
            pinned_first=True,
            retellings=self._settings.near_duplicate is not None,
        )
        self.memories.offer(recalled)

    def lines(self, context: Arranged) -> UnreadLines:
        """Return all lines, in the order of the report."""
        history = partial(self.history.lines, context.run.used)
        return UnreadLines([*self.required, *self.cards.lines], history, self.memories.lines)

    def arranged(self) -> Arranged:
        """Return what is in, in the order of the context."""
        lines = [*self.required, *self.cards.lines, *self.memories.in_story_order()]
        before, behind = arrange(lines, self._settings.layout)
        return Arranged(before, self.history.run(), behind)

    def take_more(self, room: int) -> bool:
        """Take in what fits into room that the exact count has found; whether anything did."""
        used = self.history.fill(self.history.tokens + room)
        used += self.memories.fill(room - used, self.history.in_context)
        used += self.cards.fill(room - used)
        return used > 0

    def candidates(self, most: int, *, joining: bool) -> Iterator[Candidate]:
        """Return what nothing but a lack of room keeps out, in the order in which room is given to it."""
        history, memories, cards = self.history, self.memories, self.cards
        line = history.candidate
        if line is not None and line.offered <= most and not (joining and not joins_line_end(line.block)):
            yield Candidate(line, line.offered, history.take_next, history.give_up_oldest)
        for section, lines in (
            (memories, memories.candidates(most, history.in_context)),
            (cards, [line for line in cards.items if cards.may_go_in(line) and cards.needs(line) <= most]),
        ):
            for line in lines:
                if not joining or joins_line_end(line.block):
                    take, leave = partial(section.put_in, line), partial(section.give_up, line)
                    yield Candidate(line, section.needs(line), take, leave)

    def explain(self, room: int) -> None:
        """Say why history ends where it does, given the tokens that are left."""
        self.history.explain(room)

    def give_up(self, tokens: int) -> None:
        """Leave out the oldest history block, then the lowest-ranked memory, card, component: the first there is."""
        if self.history.give_up_oldest(OVER_EXACTLY):
            return
        for section in (self.memories, self.cards):
            for line in reversed(section.items):
                if line.kept:
                    section.give_up(line, OVER_EXACTLY)
                    return
        for line in reversed(self.required):
            if line.kept and line.section in PRIORITY:
                line.drop(OVER_EXACTLY)
                return
        front = sum(line.used for line in self.required if line.section == "front_memory")
        size = self._settings.context_size
        raise ContextTooSmallError(front_memory=front, last_action=tokens - front, context_size=size)


def _messages(context: Arranged) -> tuple[Message, ...]:
    """Split the text behind AI Instructions, which stand first in every layout."""
    text, first = context.text, next(iter(context.before), None)
    if first is None or first.section != "ai_instructions":
        return (Message("user", text),) if text else ()
    system, user = Message("system", first.block), text[len(first.block) + 1 :]
    return (system, Message("user", user)) if user else (system,)


def _report(
    adventure: Adventure,
    settings: Settings,
    blocks: BlockMaker,
    limit: int,
    shares: Shares,
    matches: list[Match],
    packed: _Packed,
    context: Arranged,
    pending: int,
) -> Report:
    lines = packed.lines(context)
    used: defaultdict[str, int] = defaultdict(int)
    for line in (*lines.before, *lines.behind):
        used[line.section] += line.used
    used["history"] = context.run.tokens_used
    dynamic = used["story_cards"] + used["history"] + used["memory_bank"]
    waiting = None
    if settings.list_unmatched:
        matched = {match.card.id for match in matches}
        cards = (card for card in adventure.story_cards if card.id not in matched)
        waiting = {card.id: tuple(triggers_of(card)) if card.enabled else None for card in cards}
    return Report.unread(
        lines,
        tokenizer=blocks.tokenizer.name,
        is_estimate=blocks.tokenizer.is_estimate,
        layout=settings.layout,
        context_size=settings.context_size,
        required_limit=limit,
        parts={
            "required": Part(limit, sum(used.values()) - dynamic),
            "story_cards": Part(shares.story_cards, used["story_cards"]),
            "history": Part(shares.history, used["history"]),
            "memory_bank": Part(shares.memory_bank, used["memory_bank"]),
        },
        cards_not_matched=len(adventure.story_cards) - len(matches),
        card_window=card_window(shares.story_cards),
        cards_waiting=waiting,
        memories_pending=pending,
    )


def _pending(bank: Bank | None) -> int:
    """Return how many memories are due in a bank that follows a log; other banks know of none."""
    count = getattr(bank, "pending_count", None)
    return count() if callable(count) else 0
