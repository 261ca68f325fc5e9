"""What it costs to build a trigger index, and to find the cards that a window of actions mentions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from assembler.action_log import Action
from assembler.adventure import StoryCard
from assembler.dynamic.triggers import TriggerIndex
from benchmarks.measuring import Progress, Recorder, Timer, silent
from benchmarks.story import Writer, card_set

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

CACHED = (
    "in `build` nothing but the classes of single characters; in `match, cold` the index, and no text was seen before; "
    "in `match, warm` also the mentions in all actions of the window but the new one, as in a game"
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
    """

    cards: tuple[int, ...] = (10, 100, 1_000, 5_000)
    triggers: int = 4
    languages: tuple[str, ...] = ("english", "turkish", "italian")
    window: int = 40
    words: int = 40
    cast: int = 60
    mentions: float = 0.3
    builds: int = 20
    cold: int = 50
    warm: int = 200


FULL = Parameters()
QUICK = Parameters(cards=(10, 100), builds=2, cold=2, warm=5)


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
    recorder.times("match, warm", _warm(parameters, index, _writer(parameters, "warm", language, cast)), **factors)
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
