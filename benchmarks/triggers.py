"""What it costs to build a trigger index, and to find the cards that a window of actions mentions.

Beside it what lorebook front ends do: one regular expression for each trigger (`expressions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from assembler.action_log import Action
from assembler.adventure import StoryCard
from assembler.dynamic.triggers import TriggerIndex
from benchmarks.expressions import Expressions
from benchmarks.measuring import Progress, Recorder, Timer, silent
from benchmarks.story import Writer, card_set

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

CACHED = (
    "in `build` nothing but the classes of single characters; in `match, cold` the index, and no text was seen before; "
    "in `match, warm` also the mentions in all actions of the window but the new one, as in a game; in `expressions` "
    "the compiled expressions, and the results for the actions seen before where it says `warm`"
)


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        cards: how many cards, each time.
        triggers: triggers of one card.
        languages: of cards and texts.
        window: actions searched.
        words: of an action's text.
        cast: cards that the texts speak of.
        mentions: share of the sentences that speak of one of them.
        builds: repetitions of building.
        cold: repetitions with texts that are all new.
        warm: turns with one new text each.
        expressions: windows that the expressions are searched for in, and a fifth of the turns.
    """

    cards: tuple[int, ...] = (10, 100, 1_000, 10_000)
    triggers: int = 4
    languages: tuple[str, ...] = ("english", "turkish", "italian")
    window: int = 40
    words: int = 40
    cast: int = 60
    mentions: float = 0.3
    builds: int = 10
    cold: int = 50
    warm: int = 200
    expressions: int = 2


FULL = Parameters()
QUICK = Parameters(cards=(10, 100), builds=2, cold=2, warm=5, expressions=1)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Measure building and matching for each language and number of cards."""
    recorder = Recorder(cached=CACHED, across="cards")
    for language in parameters.languages:
        for count in parameters.cards:
            progress(f"{count:,} cards, {language}")
            _measure_one(recorder, parameters, language, count)
    recorder.target("match cold in under 10 ms once built", 10.0, "match, cold")
    recorder.target("match warm in under 10 ms once built", 10.0, "match, warm")
    return recorder


def _measure_one(recorder: Recorder, parameters: Parameters, language: str, count: int) -> None:
    cards, names = card_set(count, language, parameters.triggers)
    factors = {"language": language, "cards": count}
    recorder.times("build", _building(parameters, language, count), **factors)
    index = TriggerIndex(cards)
    cast = names[: parameters.cast]
    cold, matched, characters = _cold(parameters, index, _writer(parameters, "cold", language, cast))
    recorder.times("match, cold", cold, **factors)
    warm = _warm(parameters, index, _writer(parameters, "warm", language, cast))
    recorder.times("match, warm", warm, **factors)
    _compare(recorder, parameters, cards, cast, factors, cold=cold, warm=warm)
    recorder.values("cards matched in a window", matched, "cards", **factors)
    recorder.values("characters in a window", characters, "characters", **factors)


def _writer(parameters: Parameters, seed: str, language: str, cast: Sequence[str]) -> Writer:
    return Writer(f"{seed}/{language}/{len(cast)}", language, names=cast, mentions=parameters.mentions)


def _building(parameters: Parameters, language: str, count: int) -> Timer:
    """Return the times of building, each time from cards that were never seen."""
    timer = Timer()
    for number in range(parameters.builds + 1):
        cards: tuple[StoryCard, ...] = card_set(count, language, parameters.triggers, words=1, seed=str(number))[0]
        if number == 0:
            TriggerIndex(cards)  # warm up
        else:
            timer.time(partial(TriggerIndex, cards))
    return timer


def _cold(parameters: Parameters, index: TriggerIndex, writer: Writer) -> tuple[Timer, list[int], list[int]]:
    """Return the times with windows of new texts, the numbers of matches and the lengths of the windows."""
    timer, matched, characters = Timer(), [], []
    index.match(_window(parameters, writer))  # warm up
    for _ in range(parameters.cold):
        window = _window(parameters, writer)
        matched.append(len(timer.time(partial(index.match, window))))
        characters.append(sum(len(action.text) for action in window))
    return timer, matched, characters


def _warm(parameters: Parameters, index: TriggerIndex, writer: Writer) -> Timer:
    """Return the times of turns: the window moves on by one action each time."""
    window = _window(parameters, writer)
    index.match(window)
    timer = Timer()
    for action in writer.actions(parameters.warm, parameters.words, first=parameters.window):
        window = [action, *window[:-1]]
        timer.time(partial(index.match, window))
    return timer


def _window(parameters: Parameters, writer: Writer) -> list[Action]:
    return writer.actions(parameters.window, parameters.words)[::-1]


def _compare(
    recorder: Recorder,
    parameters: Parameters,
    cards: tuple[StoryCard, ...],
    cast: Sequence[str],
    factors: dict[str, Any],
    *,
    cold: Timer,
    warm: Timer,
) -> None:
    """Search the same texts with expressions, and say how many of the cards that match here they find."""
    peer, index = Expressions(cards), TriggerIndex(cards)
    writer = _writer(parameters, "cold", factors["language"], cast)
    _window(parameters, writer)  # the one that warmed up
    windows, turns, shares = Timer(), Timer(), []
    for _ in range(parameters.expressions):
        window = _window(parameters, writer)
        found = windows.time(partial(peer.match, window))
        ours = {match.card.id for match in index.match(window)}
        shares.append(100 * len(found & ours) / len(ours) if ours else 100.0)
    writer = _writer(parameters, "warm", factors["language"], cast)
    window = _window(parameters, writer)
    peer.match(window)
    for action in writer.actions(5 * parameters.expressions, parameters.words, first=parameters.window):
        window = [action, *window[:-1]]
        turns.time(partial(peer.match, window))
    recorder.times("expressions, cold", windows, **factors)
    recorder.times("expressions, warm", turns, **factors)
    recorder.ratio("expressions, cold, times as long as here", windows, cold, **factors)
    recorder.ratio("expressions, warm, times as long as here", turns, warm, **factors)
    recorder.values("of the cards that match here, found by expressions", shares, "percent", **factors)
