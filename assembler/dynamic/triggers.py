"""What a trigger matches (SPEC.md section 4): literal text, in one pass over the recent actions for all cards.

Triggers are folded and searched with an Aho-Corasick automaton, built once per set of cards. Rules beyond the spec's:

- A match never ends inside a character: *cafe* is not in *café*, in whatever Unicode form.
- A trigger of one character, or without a letter or digit, is *weak*. Weak mentions count only on a card that has no
  other, of them the newest alone, and among equal scores such a card comes last; so frequency never makes *e* or *.*
  outrank a name. In mode `word_start` a weak letter has to be a whole word.
"""

from __future__ import annotations

import functools
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import ahocorasick_rs
import regex

from assembler.action_log import Action
from assembler.adventure import MatchMode, StoryCard
from assembler.dynamic.folding import fold
from assembler.errors import AdventureError
from assembler.trimming import UNSPACED

__all__ = ["Match", "Mention", "TriggerIndex", "trigger_index", "triggers_of"]


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a card is mentioned in an action's text; overlapping triggers of one card are one mention.

    Attributes:
        start: index of its first character in the action's own text.
        end: index behind its last character.
        trigger: the first trigger in it, as the author wrote it.
        weak: whether only weak triggers are in it.
    """

    start: int
    end: int
    trigger: str
    weak: bool


@dataclass(frozen=True, slots=True)
class Match:
    """A card that matched.

    Attributes:
        card: the card.
        score: how often and how recently it is mentioned.
        action_id: the newest action that mentions it; mentions in the same action are equally recent.
        mention: the first mention in that action.
        trigger: the trigger of that mention.
    """

    card: StoryCard
    score: float
    trigger: str
    action_id: str
    mention: Mention


@dataclass(frozen=True, slots=True)
class _Pattern:
    card: int
    trigger: str
    mode: MatchMode
    weak: bool


class TriggerIndex:
    """The triggers of a set of cards, ready to be searched for."""

    def __init__(self, cards: Sequence[StoryCard]) -> None:
        _refuse_duplicates(cards)
        self._cards = cards
        by_text: defaultdict[str, list[_Pattern]] = defaultdict(list)
        for number, card in enumerate(cards):
            for trigger in triggers_of(card) if card.enabled else ():
                folded = fold(trigger).text
                bare = folded.strip()
                weak = len(bare) == 1 or not any(map(_is_word, bare))
                by_text[folded].append(_Pattern(number, trigger, card.match, weak))
        self._patterns = list(by_text.values())
        self._automaton = ahocorasick_rs.AhoCorasick(list(by_text)) if by_text else None
        self._mentions = functools.lru_cache(maxsize=512)(self._find_mentions)

    def match(self, actions: Sequence[Action]) -> list[Match]:
        """Return the cards that match, best first.

        Args:
            actions: the newest actions with text, the last action first.
        """
        scores: defaultdict[int, float] = defaultdict(float)
        newest: dict[int, tuple[int, Mention]] = {}
        newest_weak: dict[int, tuple[int, Mention]] = {}
        for age, action in enumerate(actions):
            for card, mentions in self._mentions(action.text).items():
                strong = [mention for mention in mentions if not mention.weak]
                if strong:
                    scores[card] += len(strong) / (1 + age)
                    newest.setdefault(card, (age, strong[0]))
                else:
                    newest_weak.setdefault(card, (age, mentions[0]))
        weak = newest_weak.keys() - newest.keys()
        for card in weak:
            newest[card] = newest_weak[card]
            scores[card] = 1 / (1 + newest[card][0])
        # Rounded, because 1/3 + 1/3 + 1/5 and 1/2 + 1/5 + 1/6 are equal, but not as sums of floats.
        ranked = sorted(scores, key=lambda card: (-round(scores[card], 9), card in weak, newest[card][0], card))
        return [self._to_match(card, scores[card], actions, *newest[card]) for card in ranked]

    def _to_match(self, card: int, score: float, actions: Sequence[Action], age: int, mention: Mention) -> Match:
        return Match(self._cards[card], score, mention.trigger, actions[age].id, mention)

    def _find_mentions(self, text: str) -> dict[int, list[Mention]]:
        """Return for each card that is mentioned in the text its mentions, in the text's order."""
        if self._automaton is None:
            return {}
        folded = fold(text)
        found: defaultdict[int, list[tuple[int, int, _Pattern]]] = defaultdict(list)
        for number, start, end in self._automaton.find_matches_as_indexes(folded.text, overlapping=True):
            for pattern in self._patterns[number]:
                if _holds(folded.text, start, end, pattern):
                    found[pattern.card].append((start, end, pattern))
        return {
            card: [Mention(*folded.original(start, end), trigger, weak) for start, end, trigger, weak in _joined(spans)]
            for card, spans in found.items()
        }


def _joined(spans: list[tuple[int, int, _Pattern]]) -> Iterable[tuple[int, int, str, bool]]:
    """Join the spans that overlap."""
    spans.sort(key=lambda span: (span[0], -span[1]))
    joined: list[tuple[int, int, str, bool]] = []
    for start, end, pattern in spans:
        if joined and start < joined[-1][1]:
            first, last, trigger, weak = joined[-1]
            joined[-1] = (first, max(last, end), trigger, weak and pattern.weak)
        else:
            joined.append((start, end, pattern.trigger, pattern.weak))
    return joined


def triggers_of(card: StoryCard) -> list[str]:
    """Return the triggers that a card waits for: no empty ones, and spaces around them in mode `substring` alone."""
    return [t if card.match == "substring" else t.strip() for t in card.triggers if t.strip()]


def _refuse_duplicates(cards: Sequence[StoryCard]) -> None:
    first: dict[str, int] = {}
    for number, card in enumerate(cards):
        if card.id in first:
            raise AdventureError(
                f"story_cards[{number}].id: {card.id!r} is already the id of story_cards[{first[card.id]}]; "
                f"give every card its own"
            )
        first[card.id] = number


_MARKS_THAT_JOIN = regex.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u3099\u309a]")
_UNSPACED = regex.compile(UNSPACED)


def _holds(text: str, start: int, end: int, pattern: _Pattern) -> bool:
    """Whether the boundaries that the pattern's mode asks for are there."""
    if end < len(text) and _MARKS_THAT_JOIN.match(text, end):
        return False
    if pattern.mode == "substring":
        return True
    ends_too = pattern.mode == "word" or pattern.weak
    return _is_boundary(text, start) and (not ends_too or _is_boundary(text, end))


def _is_boundary(text: str, place: int) -> bool:
    if place in (0, len(text)):
        return True
    before, after = text[place - 1], text[place]
    return not (_is_word(before) and _is_word(after)) or _is_unspaced(before) or _is_unspaced(after)


@functools.cache
def _is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


@functools.cache
def _is_unspaced(character: str) -> bool:
    return _UNSPACED.match(character) is not None


_KEPT_INDEXES = 16
_indexes: dict[int, tuple[tuple[StoryCard, ...], TriggerIndex]] = {}
_building = threading.Lock()


def trigger_index(cards: tuple[StoryCard, ...]) -> TriggerIndex:
    """Return the index of a set of cards, built once for each tuple object.

    A game that keeps its tuple of cards from turn to turn pays nothing; the entry holds the tuple, so its identity
    cannot pass to another one.
    """
    with _building:
        entry = _indexes.get(id(cards))
        if entry is None or entry[0] is not cards:
            if len(_indexes) >= _KEPT_INDEXES:
                del _indexes[next(iter(_indexes))]
            entry = _indexes[id(cards)] = (cards, TriggerIndex(cards))
        return entry[1]
