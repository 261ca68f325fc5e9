"""Which memories are found when question and memory are in English, Italian or Turkish, by embedding model.

One story (`multilingual.json`): 30 memories and a question or action about each, all of it in three languages. No
question has a word of its memory, but for the names in some of them: what is found by words is found by a name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.measuring import Progress, Recorder, Timer, silent
from benchmarks.writers import Remembering
from memorybank import MemoryBank, NewMemory
from memorybank.embedding import DEFAULT_MODEL, Embedder, open_embedder
from memorybank.embedding.registry import known, locate
from memorybank.terms import words

__all__ = ["FULL", "QUICK", "Event", "Parameters", "Story", "figures", "measure", "story"]

CACHED = "the model is loaded, and embeds every query anew"


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        models: names of embedding models.
        questions: at most so many, about the first memories.
    """

    models: tuple[str, ...] = (DEFAULT_MODEL, "multilingual-e5-small-4bit", "use-multilingual-v3")
    questions: int | None = None


FULL = Parameters()
QUICK = Parameters(models=("hashing-64",), questions=6)


@dataclass(frozen=True)
class Event:
    """A memory and what is asked about it, each by language; `named` if the question has a name from the story."""

    memory: Mapping[str, str]
    asked: Mapping[str, str]
    named: bool


@dataclass(frozen=True)
class Story:
    """Events in the order of the story, the languages in which they are told, and the names in them."""

    languages: tuple[str, ...]
    names: tuple[str, ...]
    events: tuple[Event, ...]


def story() -> Story:
    """Return the story of `multilingual.json`."""
    told: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    names = {word for name in told["names"] for word in words(name)}
    events = [
        Event(one["memory"], one["asked"], any(not names.isdisjoint(words(asked)) for asked in one["asked"].values()))
        for one in told["events"]
    ]
    return Story(tuple(told["languages"]), tuple(told["names"]), tuple(events))


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Search each language's memories with each language's questions, by meaning alone and by words as well."""
    recorder = Recorder(cached=CACHED, across="memories in")
    told = story()
    asked = told.events[: parameters.questions]
    recorder.note(
        f"{len(told.events)} memories in a bank, {len(asked)} questions, of which {sum(one.named for one in asked)} "
        f"name somebody or a place. By chance, recall@5 is {500 / len(told.events):.0f} %."
    )
    for model in parameters.models:
        if not _is_here(model):
            recorder.note(
                f"{model}: not measured, it is not on this machine: pip install 'story-context[multilingual]'."
            )
            continue
        progress(f"{model}: queries, one by one")
        embedder = open_embedder(model, cache=None)
        _time(recorder, model, embedder, told, asked)
        progress(f"{model}: {len(told.languages) ** 2} pairs of languages")
        _search(recorder, model, Remembering(embedder), told, asked)
    return recorder


def _is_here(model: str) -> bool:
    return next((locate(one) is not None for one in known() if one.name == model), True)


def _time(recorder: Recorder, model: str, embedder: Embedder, told: Story, asked: Sequence[Event]) -> None:
    embedder.embed(["warm"], kind="query")
    timer = Timer()
    for event, language in product(asked, told.languages):
        timer.time(lambda text=event.asked[language]: embedder.embed([text], kind="query"))  # type: ignore[misc]
    recorder.times("embedding a query", timer, model=model)


def _search(recorder: Recorder, model: str, embedder: Embedder, told: Story, asked: Sequence[Event]) -> None:
    for stored in told.languages:
        memories = [event.memory[stored] for event in told.events]
        _likeness(recorder, model, embedder, stored, memories)
        with MemoryBank.open(embedder=embedder) as bank:
            bank.add_many(NewMemory(text, id=str(place)) for place, text in enumerate(memories))
            for language, ranking in product(told.languages, ("semantic", "hybrid")):
                ranks = [_rank(bank, event.asked[language], place, ranking) for place, event in enumerate(asked)]
                factors = {"model": model, "ranking": ranking, "asked in": language, "memories in": stored}
                for figure, value in figures(ranks, [event.named for event in asked]).items():
                    recorder.values(figure, [100 * value], "%", **factors)


def _likeness(recorder: Recorder, model: str, embedder: Embedder, language: str, memories: Sequence[str]) -> None:
    """Note the largest cosine of two memories, which says whether a limit for near-duplicates suits the model."""
    vectors = embedder.embed(memories)
    cosines = vectors @ vectors.T
    most = max(float(cosines[row, column]) for row in range(len(memories)) for column in range(row))
    recorder.values(
        "likeness of the two memories most alike", [most], "cosine", model=model, **{"memories in": language}
    )


def _rank(bank: MemoryBank, question: str, wanted: int, ranking: str) -> int:
    """Return at which place the memory is found, from 1."""
    found = [one.memory.id for one in bank.search(question, limit=bank.count(), ranking=ranking)]
    return found.index(str(wanted)) + 1


def figures(ranks: Sequence[int], named: Sequence[bool]) -> dict[str, float]:
    """Return the shares of questions whose memory is first, or among the first 5, and the mean reciprocal rank.

    >>> figures([1, 2, 8], [True, False, False])["recall@5, questions without a name"]
    0.5
    """
    each: dict[str, list[float]] = {
        "recall@1": [rank <= 1 for rank in ranks],
        "recall@5": [rank <= 5 for rank in ranks],
        "MRR": [1 / rank for rank in ranks],
        "recall@5, questions with a name": [rank <= 5 for rank, name in zip(ranks, named, strict=True) if name],
        "recall@5, questions without a name": [rank <= 5 for rank, name in zip(ranks, named, strict=True) if not name],
    }
    return {figure: sum(values) / len(values) for figure, values in each.items() if values}
