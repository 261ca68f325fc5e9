"""Stories that nobody wrote: texts of realistic length and words, the same on every machine.

`random.Random` with a string as its seed gives the same numbers everywhere. Names come from syllables, so that there
are as many as there are triggers; sentences come from a few templates in three languages (`words.json`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assembler.action_log import Action, ActionKind
from assembler.adventure import StoryCard

__all__ = ["LANGUAGES", "Language", "Writer", "card_set"]


@dataclass(frozen=True, slots=True)
class Language:
    """What sentences and names are made of.

    Attributes:
        who: subjects.
        does: verbs with what belongs to them.
        where: ends of sentences.
        meets: how a sentence speaks of a name; `{}` is the name.
        syllables: what names are made of.
        triggers: the shapes of a card's triggers; `{}` is a name.
        capital_i: what a name that begins with `i` begins with.
    """

    who: Sequence[str]
    does: Sequence[str]
    where: Sequence[str]
    meets: Sequence[str]
    syllables: Sequence[str]
    triggers: Sequence[str]
    capital_i: str = "I"


LANGUAGES = {
    name: Language(**words)
    for name, words in json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8")).items()
}

KINDS: tuple[ActionKind, ...] = ("do", "output", "say", "output", "story", "output")


class Writer:
    """Writes texts, actions and memories; the same seed writes the same.

    Args:
        seed: any text.
        language: one of `LANGUAGES`.
        names: names that are dropped in; none if it is empty.
        mentions: how many of the sentences speak of one of the names, from 0 to 1.
    """

    def __init__(
        self, seed: str, language: str = "english", *, names: Sequence[str] = (), mentions: float = 0.0
    ) -> None:
        self._random = random.Random(seed)
        self._language = LANGUAGES[language]
        self._names = names
        self._mentions = mentions if names else 0.0

    def text(self, words: int) -> str:
        """Return sentences of about so many words; a number makes each text one of its own."""
        sentences = [f"({self._random.randrange(10**6)})"]
        count = 0
        while count < words:
            sentences.append(self._sentence())
            count += sentences[-1].count(" ") + 1
        return " ".join(sentences)

    def _sentence(self) -> str:
        choice, language = self._random.choice, self._language
        if self._random.random() < self._mentions:
            return f"{choice(language.meets).format(choice(self._names))} {choice(language.where)}."
        return f"{choice(language.who)} {choice(language.does)} {choice(language.where)}."

    def skewed(self, mean: float) -> int:
        """Return a number of words: mostly few, sometimes very many, as in the log of a campaign."""
        return max(1, round(self._random.lognormvariate(0, 1) * mean / 1.6487))

    def actions(self, count: int, words: float, *, first: int = 0) -> list[Action]:
        """Return actions with ids `a{first}`, …, with so many words in the mean."""
        kinds = [KINDS[number % len(KINDS)] for number in range(first, first + count)]
        return [Action(f"a{first + n}", kind, self.text(self.skewed(words))) for n, kind in enumerate(kinds)]


def card_set(
    count: int, language: str, triggers: int = 4, *, words: int = 40, seed: str = ""
) -> tuple[tuple[StoryCard, ...], list[str]]:
    """Return story cards and for each card the name in its first trigger."""
    made = LANGUAGES[language]
    writer = Writer(f"cards/{language}/{seed}", language)
    names = _names(count * triggers, made)
    cards = []
    for number in range(count):
        own = names[number * triggers : (number + 1) * triggers]
        shapes = [made.triggers[place % len(made.triggers)] for place in range(triggers)]
        cards.append(
            StoryCard(
                id=f"c{number}",
                triggers=tuple(shape.format(name) for shape, name in zip(shapes, own, strict=True)),
                entry=f"{own[0]}: {writer.text(words)}",
            )
        )
    return tuple(cards), names[::triggers]


def _names(count: int, language: Language) -> list[str]:
    """Return different names of four syllables, in an order without order."""
    base = len(language.syllables)
    names = []
    for number in random.Random("names").sample(range(base**4), count):
        name = "".join(language.syllables[number // base**place % base] for place in range(4))
        first = language.capital_i if name[0] == "i" else name[0].upper()
        names.append(first + name[1:])
    return names
