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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import ahocorasick_rs
import regex

from assembler.action_log import Action
from assembler.adventure import MatchMode, StoryCard
from assembler.dynamic.folding import Folded, fold
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


_Variant = tuple[str, MatchMode]
"""A folded trigger with the mode in which it is searched: what cards can share."""

_LONG = 200
"""Characters from which on a trigger is searched apart: the automaton's hits would grow with its length."""
_WINDOW = 4096
"""Characters searched at once, so that the hits of a huge action never stand in memory together."""
_MOST_HITS = 200_000
"""Hits in one action after which it is searched no further; a novel has fewer, a hostile text can have billions."""


@dataclass(frozen=True, slots=True)
class _Mentions:
    """All mentions of one set of variants in one text: how many strong ones, and the first of each kind."""

    strong: int
    first_strong: Mention | None
    first_weak: Mention | None


class TriggerIndex:
    """The triggers of a set of cards, ready to be searched for. Cards with the same triggers share the work."""

    def __init__(self, cards: Sequence[StoryCard]) -> None:
        _refuse_duplicates(cards)
        self._cards = cards
        self._cards_of: defaultdict[frozenset[_Variant], list[int]] = defaultdict(list)
        for number, card in enumerate(cards):
            if variants := frozenset((fold(trigger).text, card.match) for trigger in _active(card)):
                self._cards_of[variants].append(number)
        self._groups_of: defaultdict[_Variant, list[frozenset[_Variant]]] = defaultdict(list)
        for group in self._cards_of:
            for variant in group:
                self._groups_of[variant].append(group)
        variants_of: defaultdict[str, list[_Variant]] = defaultdict(list)
        for variant in sorted(self._groups_of):
            variants_of[variant[0]].append(variant)
        short = [text for text in variants_of if len(text) < _LONG]
        self._long = [(text, variants_of[text]) for text in variants_of if len(text) >= _LONG]
        self._short = [variants_of[text] for text in short]
        self._automaton = ahocorasick_rs.AhoCorasick(short) if short else None
        self._mentions = functools.lru_cache(maxsize=512)(self._find_mentions)

    def match(self, actions: Sequence[Action]) -> list[Match]:
        """Return the cards that match, best first.

        Args:
            actions: the newest actions with text, the last action first.
        """
        scores: defaultdict[frozenset[_Variant], float] = defaultdict(float)
        newest: dict[frozenset[_Variant], tuple[int, Mention]] = {}
        newest_weak: dict[frozenset[_Variant], tuple[int, Mention]] = {}
        for age, action in enumerate(actions):
            for group, mentions in self._mentions(action.text).items():
                if mentions.first_strong:
                    scores[group] += mentions.strong / (1 + age)
                    newest.setdefault(group, (age, mentions.first_strong))
                elif mentions.first_weak:
                    newest_weak.setdefault(group, (age, mentions.first_weak))
        weak = newest_weak.keys() - newest.keys()
        for group in weak:
            newest[group] = newest_weak[group]
            scores[group] = 1 / (1 + newest[group][0])
        # Rounded, because 1/3 + 1/3 + 1/5 and 1/2 + 1/5 + 1/6 are equal, but not as sums of floats.
        ranked = sorted(
            (-round(score, 9), group in weak, newest[group][0], card, group)
            for group, score in scores.items()
            for card in self._cards_of[group]
        )
        return [self._to_match(card, scores[group], actions, *newest[group]) for *_, card, group in ranked]

    def _to_match(self, card: int, score: float, actions: Sequence[Action], age: int, mention: Mention) -> Match:
        spelt = next(t for t in triggers_of(self._cards[card]) if fold(t).text == mention.trigger)
        return Match(self._cards[card], score, spelt, actions[age].id, replace(mention, trigger=spelt))

    def _find_mentions(self, text: str) -> dict[frozenset[_Variant], _Mentions]:
        """Return the mentions of every group of cards that is mentioned in the text."""
        folded = fold(text)
        spans: defaultdict[_Variant, list[tuple[int, int]]] = defaultdict(list)
        for variants, start, end in islice(self._hits(folded.text), _MOST_HITS):
            for variant in variants:
                if _holds(folded.text, start, end, variant):
                    spans[variant].append((start, end))
        groups = dict.fromkeys(group for variant in spans for group in self._groups_of[variant])
        return {group: _summed(group, spans, folded) for group in groups}

    def _hits(self, text: str) -> Iterator[tuple[list[_Variant], int, int]]:
        """Iterate over all places where the text of a trigger stands."""
        if self._automaton is not None:
            for begin in range(0, len(text), _WINDOW):
                window = text[begin : begin + _WINDOW + _LONG]
                for number, start, end in self._automaton.find_matches_as_indexes(window, overlapping=True):
                    if start < _WINDOW:
                        yield self._short[number], begin + start, begin + end
        for long, variants in self._long:
            start = text.find(long)
            while start >= 0:
                end = start + len(long)
                yield variants, start, end
                # Of those that overlap this one the last is enough: what lies between is the same mention.
                overlapping = text.rfind(long, start + 1, end + len(long) - 1)
                start = overlapping if overlapping >= 0 else text.find(long, end)


def _summed(group: frozenset[_Variant], spans: Mapping[_Variant, list[tuple[int, int]]], folded: Folded) -> _Mentions:
    """Join the spans that overlap, of all triggers of a card, and sum the mentions up."""
    hits = sorted((start, -end, variant) for variant in group for start, end in spans.get(variant, ()))
    joined: list[tuple[int, int, str, bool]] = []
    for start, minus_end, (trigger, _) in hits:
        weak = _is_weak(trigger)
        if joined and start < joined[-1][1]:
            begin, end, leading, all_weak = joined[-1]
            joined[-1] = (begin, max(end, -minus_end), leading, all_weak and weak)
        else:
            joined.append((start, -minus_end, trigger, weak))

    def first(kind: bool) -> Mention | None:
        found = next((m for m in joined if m[3] == kind), None)
        return Mention(*folded.original(found[0], found[1]), found[2], kind) if found else None

    return _Mentions(sum(not weak for *_, weak in joined), first(False), first(True))


@functools.lru_cache(maxsize=65536)
def _is_weak(folded: str) -> bool:
    bare = folded.strip()
    return len(bare) == 1 or not any(map(_is_word, bare))


def _active(card: StoryCard) -> list[str]:
    return triggers_of(card) if card.enabled else []


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


def _holds(text: str, start: int, end: int, variant: _Variant) -> bool:
    """Whether the boundaries that the mode asks for are there."""
    trigger, mode = variant
    if end < len(text) and _MARKS_THAT_JOIN.match(text, end):
        return False
    if mode == "substring":
        return True
    ends_too = mode == "word" or _is_weak(trigger)
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
