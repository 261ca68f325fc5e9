"""SPEC.md sections 2 to 6 and 11 once more, built apart from `assembler`: as simple and as slow as can be.

No caches and no cleverness: a thing fits if the whole text with it, counted whole, is not above the limit; a section is
cut by trying every clean place from the end on; triggers are looked for at every position of the text. It works for
tokenizers whose costs add up. Where SPEC.md is silent a comment that begins with "Silent:" says what was chosen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import regex

from assembler import Action, Adventure, ContextTooSmallError, Settings, StoryCard
from memorybank.memory import Memory, Recalled
from tests.support.banks import RankedBank

__all__ = ["reference_assemble"]

CUT = "over the required limit"
LATER = "a higher-priority section was cut"
REDUNDANT = "already in history"
EMPTY = "the entry is empty"
ANCHORED = "kept out by the anchor"


# --- blocks -----------------------------------------------------------------------------------------------------------


def tidy(text: str) -> str:
    """Return the text of a block without its line end (section 2)."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def shown(action: Action) -> str:
    """Return an action as it stands in the context (section 5)."""
    text = tidy(action.text)
    return f"> {text}" if action.kind in ("do", "say") and not text.startswith(">") else text


# --- clean places (section 3) -----------------------------------------------------------------------------------------

UNSPACED = regex.compile(
    r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Thai}\p{Script=Lao}"
    r"\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Script=Yi}ーｰ]"
)
TERMINATORS = ".!?…‼⁇⁈⁉।॥۔؟"
CJK_TERMINATORS = "。！？｡．"
# Silent: which abbreviations there are. The tests use these alone.
ABBREVIATIONS = {"mr", "mrs", "ms", "dr", "st", "prof", "vs"}


def is_closer(character: str) -> bool:
    # Silent: the stars and underscores of emphasis close, too, and “ does in German.
    return character in "\"'“‘*_" or unicodedata.category(character) in ("Pe", "Pf")


def is_unspaced(character: str) -> bool:
    return UNSPACED.match(character) is not None


def clean_places(text: str) -> list[int]:
    """Return every index inside `text` at which it may be cut."""
    characters = {match.end() for match in regex.finditer(r"\X", text)}
    words = {match.start() for match in regex.finditer(r"(?w)\b", text)}
    return [
        i
        for i in range(1, len(text))
        if i in characters and not text[i - 1].isspace() and (i in words or beside_unspaced(text, i))
    ]


def beside_unspaced(text: str, i: int) -> bool:
    """Say whether one of the two characters around `i` is of an unspaced script; marks belong to what they mark.

    Silent: one is enough. Both or one, the difference is between Katakana and an underscore or a half-width ﾞ.
    """
    before = i - 1
    while before > 0 and unicodedata.category(text[before])[0] == "M":
        before -= 1
    return is_unspaced(text[before]) or is_unspaced(text[i - 1]) or is_unspaced(text[i])


def ends_sentence(text: str, i: int) -> bool:
    """Say whether a sentence ends right before index `i`: behind the mark that ends it and all that it closes."""
    stop = i
    while stop > 0 and is_closer(text[stop - 1]):
        stop -= 1
    rest = text[i:]
    if stop == 0 or (rest and is_closer(rest[0])):
        return False
    if text[stop - 1] in CJK_TERMINATORS:
        return not rest or rest[0] not in CJK_TERMINATORS
    if text[stop - 1] not in TERMINATORS:
        return False
    if rest and not rest[0].isspace():
        return False
    if rest.strip() and rest.strip()[0].islower():
        return False
    begin = stop
    while begin > 0 and text[begin - 1] in TERMINATORS:
        begin -= 1
    if text[begin:stop] != ".":
        return True
    # Silent: an abbreviation has a full stop behind it; `Is it I?` and `Plan B...` end.
    letters = begin
    while letters > 0 and text[letters - 1].isalpha():
        letters -= 1
    word = text[letters:begin]
    return not ((len(word) == 1 and word.isupper()) or word.lower() in ABBREVIATIONS)


def longest_prefix(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest prefix that ends at a clean place and fits, or one that ends a sentence; else nothing."""
    places = clean_places(text)
    for place in reversed(places):
        if fits(text[:place]):
            # Silent: halves are measured in characters.
            for end in reversed([i for i in places if i <= place <= 2 * i]):
                if ends_sentence(text, end) and fits(text[:end]):
                    return text[:end]
            return text[:place]
    return ""


# --- triggers (section 4) ---------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Return the text with everything made equal that a trigger takes for equal."""
    text = unicodedata.normalize("NFD", text.replace("\r\n", "\n").replace("\r", "\n"))
    # The dotless i and the dot of İ and i̇; I becomes i below.
    text = text.replace("ı", "i").casefold()
    text = unicodedata.normalize("NFD", text).replace("i\u0307", "i")
    for apostrophe in "’ʼ":
        text = text.replace(apostrophe, "'")
    # Composed again, so that 가 does not occur in 각.
    return unicodedata.normalize("NFC", text)


def is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


def is_diacritic(character: str) -> bool:
    return (
        re.match("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u3099\u309a]", character)
        is not None
    )


def boundary(text: str, i: int) -> bool:
    """Say whether a word boundary is at index `i` of a folded text."""
    if i in (0, len(text)):
        return True
    if is_unspaced(text[i - 1]) or is_unspaced(text[i]):
        return True
    return not (is_word(text[i - 1]) and is_word(text[i]))


def is_weak(trigger: str) -> bool:
    # Silent: one character is one code point of what is compared (not a grapheme cluster, which SPEC.md calls by its
    # name), and the spaces around it do not make it longer.
    folded = fold(trigger.strip())
    return len(folded) == 1 or not any(unicodedata.category(character)[0] in "LN" for character in folded)


def triggers_of(card: StoryCard) -> list[str]:
    assert not isinstance(card.triggers, str)
    kept = [trigger for trigger in card.triggers if trigger.strip()]
    # Silent: in mode substring a trigger of nothing but spaces is empty, too.
    return kept if card.match == "substring" else [trigger.strip() for trigger in kept]


def occurrences(trigger: str, mode: str, text: str) -> list[tuple[int, int]]:
    """Return the spans of the folded `text` in which the trigger occurs."""
    wanted = fold(trigger)
    spans = []
    for begin in range(len(text) - len(wanted) + 1):
        end = begin + len(wanted)
        if text[begin:end] != wanted:
            continue
        if end < len(text) and is_diacritic(text[end]):
            continue
        if mode != "substring" and not boundary(text, begin):
            continue
        if (mode == "word" or (mode == "word_start" and is_weak(trigger))) and not boundary(text, end):
            continue
        spans.append((begin, end))
    return spans


def mentions(spans: list[tuple[int, int, bool]]) -> list[bool]:
    """Return for every mention whether it is weak; spans that overlap are one mention, weak if all of them are."""
    found: list[bool] = []
    reach = -1
    for begin, end, weak in sorted(spans):
        if begin < reach:
            found[-1] = found[-1] and weak
        else:
            found.append(weak)
        reach = max(reach, end)
    return found


@dataclass
class Match:
    score: Fraction
    only_weak: bool
    newest: int


def match_card(card: StoryCard, window: list[Action]) -> Match | None:
    """Return how a card matches in the window, newest action first, or None."""
    if not card.enabled:
        return None
    found: list[list[bool]] = []
    for action in window:
        text = fold(action.text)
        spans = []
        for trigger in triggers_of(card):
            spans += [(begin, end, is_weak(trigger)) for begin, end in occurrences(trigger, card.match, text)]
        found.append(mentions(spans))
    if not any(found):
        return None
    # Silent: weak mentions count only on a card that has no other, and of them the newest alone: a card with the
    # triggers `e, ., 的` shall not outrank a name. One that overlaps a strong mention is part of that.
    strong = [weaknesses.count(False) for weaknesses in found]
    if any(strong):
        score = sum((Fraction(count, 1 + age) for age, count in enumerate(strong)), Fraction(0))
        return Match(score, False, next(age for age, count in enumerate(strong) if count))
    newest = next(age for age, weaknesses in enumerate(found) if weaknesses)
    return Match(Fraction(1, 1 + newest), True, newest)


# --- the context ------------------------------------------------------------------------------------------------------

ORDER = {
    "classic": [
        "ai_instructions",
        "plot_essentials",
        "story_cards",
        "story_summary",
        "memory_bank",
        "recent_header",
        "history",
        "authors_note",
        "last_action",
        "front_memory",
    ],
    "cache_friendly": [
        "ai_instructions",
        "plot_essentials",
        "story_summary",
        "recent_header",
        "history",
        "memory_bank",
        "story_cards",
        "authors_note",
        "last_action",
        "front_memory",
    ],
}


@dataclass
class Line:
    section: str
    item: str
    verdict: str
    offered: int
    used: int
    reason: str


class Context:
    """What has gone in so far."""

    def __init__(self, adventure: Adventure, settings: Settings) -> None:
        self.layout = settings.layout
        self.count = settings.open_tokenizer().count
        self.texts: dict[str, str] = {}
        self.last_action: Action | None = None
        self.cards: list[StoryCard] = []
        self.history: list[Action] = []  # oldest first
        self.memories: list[Memory] = []  # as they stand

    def copy(self) -> Context:
        twin = object.__new__(Context)
        twin.__dict__.update(self.__dict__)
        twin.texts, twin.cards = dict(self.texts), list(self.cards)
        twin.history, twin.memories = list(self.history), list(self.memories)
        return twin

    def blocks(self) -> list[tuple[str, str, str]]:
        """Return section, item and text of every block, as they stand."""
        found: list[tuple[str, str, str]] = []
        for name in ORDER[self.layout]:
            if name == "recent_header" and self.last_action:
                found.append(("last_action", "header", "Recent Story:"))
            elif name == "last_action" and self.last_action:
                # Silent: the last action's item is `text`, not its id.
                found.append(("last_action", "text", shown(self.last_action)))
            elif name == "history":
                found += [("history", action.id, shown(action)) for action in self.history]
            elif name == "story_cards" and self.cards:
                found.append(("story_cards", "header", "World Lore:"))
                found += [("story_cards", card.id, tidy(card.entry)) for card in self.cards]
            elif name == "memory_bank" and self.memories:
                found.append(("memory_bank", "header", "Memories:"))
                found += [("memory_bank", memory.id, tidy(memory.text)) for memory in self.memories]
            elif self.texts.get(name):
                found.append((name, "text", self.text_block(name, self.texts[name])))
        return found

    @staticmethod
    def text_block(name: str, text: str) -> str:
        if name == "story_summary":
            return f"Story Summary:\n{text}"
        return f"[Author's note: {text}]" if name == "authors_note" else text

    def text(self) -> str:
        return "\n".join(text for _, _, text in self.blocks())

    def tokens(self) -> int:
        return self.count(self.text())

    def used(self, *sections: str) -> int:
        blocks = self.blocks()
        return sum(
            self.count(text + "\n" * (number < len(blocks)))
            for number, (section, _, text) in enumerate(blocks, start=1)
            if section in sections
        )

    def cost(self, section: str, text: str) -> int:
        """Return what a block of the section costs; the very last of the context has no line end."""
        order = ORDER[self.layout]
        behind = any(order.index(other) > order.index(section) for other, _, _ in self.blocks() if other in order)
        return self.count(text + "\n" * behind)


def no_room(needs: int, left: int, header: int) -> str:
    return f"no room: needs {needs}, {left} left" + (f" ({header} of it for the header)" if header else "")


def reference_assemble(
    adventure: Adventure, bank: RankedBank | None, settings: Settings, anchor: str | None = None
) -> dict[str, Any]:
    """Return the object of section 11.

    Raises:
        ContextTooSmallError: Front Memory and Last Action alone exceed the context size.
    """
    size = settings.context_size
    limit = size * settings.required_percent // 100
    with_text = [action for action in adventure.actions if tidy(action.text)]
    lines: list[Line] = []
    context = Context(adventure, settings)

    # Section 3: Front Memory and Last Action always go in whole.
    context.texts["front_memory"] = tidy(adventure.front_memory)
    context.last_action = with_text[-1] if with_text else None
    if context.tokens() > size:
        raise ContextTooSmallError(
            front_memory=context.used("front_memory"), last_action=context.used("last_action"), context_size=size
        )
    # Then the other four until the limit is reached.
    cut = False
    dropped: list[tuple[str, str]] = []
    trimmed: list[str] = []
    for name in ("authors_note", "plot_essentials", "ai_instructions", "story_summary"):
        whole = tidy(getattr(adventure, name))
        if not whole:
            continue
        if cut:
            dropped.append((name, LATER))
            continue

        def fits(text: str, name: str = name) -> bool:
            trial = context.copy()
            trial.texts[name] = text
            return trial.tokens() <= limit

        if fits(whole):
            context.texts[name] = whole
            continue
        cut = True
        context.texts[name] = longest_prefix(whole, fits)
        (trimmed if context.texts[name] else dropped).append(name if context.texts[name] else (name, CUT))  # type: ignore[arg-type]

    for section, item, block in context.blocks():
        used = context.cost(section, block) if item != "header" else context.count(block + "\n")
        offered = used
        if section in trimmed:
            offered = context.cost(section, context.text_block(section, tidy(getattr(adventure, section))))
        verdict = "trimmed" if section in trimmed else "kept"
        lines.append(Line(section, item, verdict, offered, used, CUT if section in trimmed else ""))
    for name, reason in dropped:
        block = context.text_block(name, tidy(getattr(adventure, name)))
        # Only the very last block of the context has no line end; what is not in it costs one.
        lines.append(Line(name, "text", "dropped", context.count(block + "\n"), 0, reason))

    # Section 4. Silent: without a bank the bank is off.
    required_used = context.tokens()
    left = size - required_used
    cards_share = left * settings.story_cards_percent // 100
    bank_on = adventure.memory_bank and bank is not None
    memory_share = left * settings.memory_bank_percent // 100 if bank_on else 0
    history_share = left - cards_share - memory_share

    n = 4 if cards_share <= 500 else cards_share // 100
    window = with_text[::-1][:n]
    matches = {card.id: match_card(card, window) for card in adventure.story_cards}
    ranked = [card for card in adventure.story_cards if matches[card.id]]
    ranked.sort(key=lambda card: _rank(matches[card.id]))

    recalled: list[Recalled] = []
    if bank_on and bank is not None and context.last_action:
        recalled = bank.search(context.last_action.text, limit=settings.memory_candidates, pinned_first=True)

    older = with_text[:-1]
    ids = [action.id for action in older]

    def pack(start: int) -> tuple[Context, list[Line]]:
        """Run the four steps with the history from `start` on."""
        return _pack(
            context.copy(),
            adventure,
            ranked,
            older[start:],
            recalled,
            size=size,
            cards_limit=required_used + cards_share,
            history_limit=size - memory_share,
        )

    # Silent: the classic layout has no anchor; one that is no longer in the history counts as none.
    start = 0
    held = settings.layout == "cache_friendly" and anchor in ids
    if held:
        first = ids.index(str(anchor))
        count = context.count
        starts = [
            later
            for later in range(first, len(older) + 1)
            if later == first
            or sum(count(shown(action) + "\n") for action in older[first:later]) >= settings.anchor_step
        ]
        start = next((later for later in starts if len(pack(later)[0].history) == len(older) - later), len(older))
        fits = pack(first)[0].history
        if start == len(older) and fits:
            # Silent: where a whole step would leave nothing, the newest actions that cost half of what fits stay.
            costs = [count(shown(action) + "\n") for action in reversed(fits)]
            start -= sum(2 * sum(costs[: n + 1]) <= sum(costs) for n in range(len(costs)))
    packed, dynamic = pack(start)
    lines += dynamic
    if start and start == len(older) - len(packed.history):
        # Silent: the first action that the anchor keeps out is listed like the first that does not fit.
        cost = packed.count(shown(older[start - 1]) + "\n")
        lines.append(Line("history", older[start - 1].id, "dropped", cost, 0, ANCHORED))

    messages = []
    system = packed.texts.get("ai_instructions", "")
    if system:
        messages.append({"role": "system", "content": system})
    user = "\n".join(text for section, _, text in packed.blocks() if section != "ai_instructions")
    if user:
        messages.append({"role": "user", "content": user})
    return {
        "text": packed.text(),
        "messages": messages,
        "tokens": packed.tokens(),
        "anchor": packed.history[0].id if packed.history and settings.layout == "cache_friendly" else None,
        "report": {
            "tokenizer": settings.open_tokenizer().name,
            "layout": settings.layout,
            "context_size": size,
            "required_limit": limit,
            "parts": {
                "required": {"limit": limit, "used": required_used},
                "story_cards": {"share": cards_share, "used": packed.used("story_cards")},
                "history": {"share": history_share, "used": packed.used("history")},
                "memory_bank": {"share": memory_share, "used": packed.used("memory_bank")},
            },
            "cards_not_matched": len(adventure.story_cards) - len(ranked),
            "lines": [line.__dict__ for line in lines],
        },
    }


def _rank(match: Match | None) -> tuple[Fraction, bool, int]:
    assert match is not None
    return (-match.score, match.only_weak, match.newest)


def _pack(
    context: Context,
    adventure: Adventure,
    ranked: list[StoryCard],
    older: list[Action],
    recalled: list[Recalled],
    *,
    size: int,
    cards_limit: int,
    history_limit: int,
) -> tuple[Context, list[Line]]:
    count = context.count
    reasons: dict[str, str] = {}

    def take_cards(limit: int) -> None:
        for card in ranked:
            if card in context.cards:
                continue
            if not tidy(card.entry):
                reasons[card.id] = EMPTY
                continue
            trial = context.copy()
            trial.cards = [other for other in ranked if other in context.cards or other is card]
            if trial.tokens() <= limit:
                context.cards = trial.cards
            else:
                header = 0 if context.cards else count("World Lore:\n")
                needs = header + count(tidy(card.entry) + "\n")
                reasons[card.id] = no_room(needs, limit - context.tokens(), header)

    def take_history(limit: int) -> None:
        reasons.pop("history", None)
        while len(context.history) < len(older):
            action = older[-1 - len(context.history)]
            trial = context.copy()
            trial.history = [action, *context.history]
            if trial.tokens() > limit:
                reasons["history"] = no_room(count(shown(action) + "\n"), limit - context.tokens(), 0)
                return
            context.history = trial.history

    position = {action.id: place for place, action in enumerate(adventure.actions)}
    rank = {each.memory.id: number for number, each in enumerate(recalled)}

    def story_order(memory: Memory) -> tuple[int, Any, int]:
        places = [position[source] for source in memory.actions if source in position]
        return (min(places, default=-1), memory.created, rank[memory.id])

    def is_redundant(memory: Memory) -> bool:
        standing = {action.id for action in [*context.history, context.last_action] if action}
        silent = {action.id for action in adventure.actions if not tidy(action.text)}
        spoken = [source for source in memory.actions if source not in silent]
        return bool(spoken) and all(source in standing for source in spoken)

    def take_memories(limit: int) -> None:
        for memory in (each.memory for each in recalled):
            if is_redundant(memory):
                reasons[memory.id] = REDUNDANT
                continue
            trial = context.copy()
            trial.memories = sorted([*context.memories, memory], key=story_order)
            if trial.tokens() <= limit:
                context.memories = trial.memories
            else:
                header = 0 if context.memories else count("Memories:\n")
                needs = header + count(tidy(memory.text) + "\n")
                reasons[memory.id] = no_room(needs, limit - context.tokens(), header)

    take_cards(cards_limit)
    take_history(history_limit)
    take_memories(size)
    take_history(size)
    take_cards(size)

    lines: list[Line] = []

    def line(section: str, item: str, text: str, kept: bool, reason: str = "") -> None:
        cost = count(text + "\n")
        lines.append(
            Line(section, item, "kept" if kept else "dropped", cost, cost if kept else 0, "" if kept else reason)
        )

    if context.cards:
        line("story_cards", "header", "World Lore:", True)
    for card in ranked:
        if tidy(card.entry):
            line("story_cards", card.id, tidy(card.entry), card in context.cards, reasons.get(card.id, ""))
        else:
            lines.append(Line("story_cards", card.id, "dropped", 0, 0, EMPTY))
    for action in reversed(context.history):
        line("history", action.id, shown(action), True)
    if "history" in reasons:
        action = older[-1 - len(context.history)]
        line("history", action.id, shown(action), False, reasons["history"])
    if context.memories:
        line("memory_bank", "header", "Memories:", True)
    for memory in (each.memory for each in recalled):
        line("memory_bank", memory.id, tidy(memory.text), memory in context.memories, reasons.get(memory.id, ""))
    return context, lines
