"""How good extractive memories are: against what people wrote of the same actions, and at being found again."""

from __future__ import annotations

import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from assembler import Action, Adventure, load
from benchmarks.machine import ROOT
from benchmarks.measuring import Progress, Recorder, Timer, silent
from memorybank.embedding import Embedder, Kind, open_embedder
from memorybank.sentences import sentences
from memorybank.tokenizer import open_tokenizer
from memorybank.writing import ExtractiveWriter, SpanAction, SpanText
from memorybank.writing.units import Unit, joined, units_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

REAL = ROOT.parent / "shared" / "data" / "adventure_crd3.json"
"""A real table-top campaign, if it is there."""
EXAMPLES = ("the_cormorant_light", "ombra_di_pietrachiara", "ilkyarin_isigi")

CACHED = (
    "vectors: each text is embedded once, before the clock starts, so that times are those of everything but the "
    "embedding; token counts are warm"
)


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        max_tokens: of a memory.
        model: the embedding model that writes, and that judges.
        most_actions: memories of the campaign that were made of more actions are left out.
        least_characters: so are those of less text: the automatic alignment of the data is wrong there.
        spans: of six actions each, in which memories are searched for.
        first: where in the campaign these begin.
        examples: which of the example adventures.
    """

    max_tokens: tuple[int, ...] = (60, 80)
    model: str = "all-MiniLM-L6-v2"
    most_actions: int = 60
    least_characters: int = 600
    spans: int = 240
    first: int = 4_332
    examples: tuple[str, ...] = EXAMPLES


FULL = Parameters()
QUICK = Parameters(max_tokens=(60,), model="hashing-64", most_actions=6, spans=120, examples=EXAMPLES[:1])

Write = Callable[[SpanText], str]


class Remembering:
    """Embeds no text twice."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.name, self.dimensions = inner.name, inner.dimensions
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """As any embedder."""
        import numpy as np

        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), 64):
            batch = new[start : start + 64]
            self._known |= zip(batch, self._inner.embed(batch, kind=kind), strict=True)
        return np.stack([self._known[text] for text in texts])


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Write memories of spans that have one by a person, and of a part of the campaign; compare and search."""
    recorder = Recorder(cached=CACHED, across="writer")
    embedder = Remembering(open_embedder(parameters.model, cache=None))
    recorder.note(f"Written and judged with {parameters.model}.")
    sets = {name: _pairs(load(ROOT / "examples" / f"{name}.json"), parameters) for name in parameters.examples}
    campaign = load(REAL) if REAL.is_file() else None
    if campaign is None:
        recorder.note(
            "The real campaign (../shared/data/adventure_crd3.json) is not here: only the examples were measured."
        )
    else:
        sets["real campaign"] = _pairs(campaign, parameters)
    for name, pairs in sets.items():
        progress(f"{name}: {len(pairs)} memories by people")
        _against_people(recorder, parameters, embedder, name, pairs)
    if campaign is not None:
        progress(f"finding {parameters.spans} memories of the campaign again")
        _found_again(recorder, parameters, embedder, campaign)
    return recorder


def _writers(parameters: Parameters, embedder: Embedder, max_tokens: int) -> dict[str, Write]:
    extractive = ExtractiveWriter(embedder, max_tokens=max_tokens)
    return {
        "extractive": lambda span: extractive.write_memory(span) or "",
        "first sentences": partial(_until_full, max_tokens, lambda units: range(len(units))),
        "longest": partial(_until_full, max_tokens, _longest_first),
        "random": partial(_until_full, max_tokens, _shuffled),
    }


def _until_full(max_tokens: int, order: Callable[[Sequence[Unit]], Sequence[int]], span: SpanText) -> str:
    """Take sentences in an order while they fit, passing over those that do not."""
    tokenizer = open_tokenizer()
    units = units_of(span.actions, tokenizer, max_tokens)
    taken: list[int] = []
    for place in order(units):
        places = sorted([*taken, place])
        if tokenizer.count(joined(units[place] for place in places)) <= max_tokens:
            taken = places
    return joined(units[place] for place in taken)


def _longest_first(units: Sequence[Unit]) -> list[int]:
    return sorted(range(len(units)), key=lambda place: -len(units[place].text))


def _shuffled(units: Sequence[Unit]) -> list[int]:
    return random.Random(units[0].text if units else "").sample(range(len(units)), len(units))


def _pairs(adventure: Adventure, parameters: Parameters) -> list[tuple[SpanText, str]]:
    """Return spans with the memory that a person wrote of each."""
    pairs = []
    for memory in adventure.memories:
        places = [adventure.actions.position(id_) for id_ in memory.actions]
        known = [place for place in places if place is not None]
        span = _span(adventure.actions[known[0] : known[-1] + 1]) if known else SpanText(())
        if 0 < len(known) <= parameters.most_actions and len(span.text) >= parameters.least_characters:
            pairs.append((span, memory.text))
    return pairs


def _span(actions: Sequence[Action], before: Sequence[str] = ()) -> SpanText:
    return SpanText(tuple(SpanAction(one.kind, one.text) for one in actions), memories_before=tuple(before))


def _against_people(
    recorder: Recorder, parameters: Parameters, embedder: Embedder, name: str, pairs: Sequence[tuple[SpanText, str]]
) -> None:
    for max_tokens in parameters.max_tokens:
        for writer, write in _writers(parameters, embedder, max_tokens).items():
            texts = [write(span) for span, _ in pairs]
            cosines = [_cosine(embedder, text, human) for text, (_, human) in zip(texts, pairs, strict=True)]
            rouge = [_rouge_1(text, human) for text, (_, human) in zip(texts, pairs, strict=True)]
            factors = {"memories": name, "of": len(pairs), "max_tokens": max_tokens, "writer": writer}
            recorder.values("mean cosine with a person's memory", [statistics.fmean(cosines)], "cosine", **factors)
            recorder.values("mean ROUGE-1 (F1) with a person's memory", [statistics.fmean(rouge)], "F1", **factors)


def _found_again(recorder: Recorder, parameters: Parameters, embedder: Embedder, campaign: Adventure) -> None:
    """Search memories of six actions each for the sentences of people's memories, and for an action of each span."""
    grid = [(start, start + 6) for start in range(parameters.first, parameters.first + 6 * parameters.spans, 6)]
    asked = _questions(campaign, grid)
    for max_tokens in parameters.max_tokens:
        for writer, write in _writers(parameters, embedder, max_tokens).items():
            texts: list[str] = []
            timer = Timer()
            for start, stop in grid:
                span = _span(campaign.actions[start:stop], texts[-4:])
                text = write(span)
                if writer == "extractive":
                    timer.time(partial(write, span))  # again: now all is embedded
                texts.append(text)
            known = embedder.embed([text or " " for text in texts])
            for kind, questions in asked.items():
                ranks = [_rank(known @ embedder.embed([text])[0], right) for text, right in questions]
                factors = {"query": kind, "of": len(ranks), "max_tokens": max_tokens, "writer": writer}
                recorder.values("found among the first 10", [_share(ranks, 10)], "share", **factors)
                recorder.values(
                    "mean reciprocal rank", [statistics.fmean(1 / rank for rank in ranks)], "MRR", **factors
                )
            if timer.wall:
                recorder.times("one memory, beside the embedding", timer, max_tokens=max_tokens, writer=writer)
    recorder.target("one memory in under 25 ms beside the embedding", 25.0, "one memory, beside the embedding")


def _questions(campaign: Adventure, grid: Sequence[tuple[int, int]]) -> dict[str, list[tuple[str, set[int]]]]:
    people = []
    for memory in campaign.memories:
        places = [place for id_ in memory.actions if (place := campaign.actions.position(id_)) is not None]
        right = {number for number, (start, stop) in enumerate(grid) if places[0] < stop and places[-1] >= start}
        if right and len(places) <= 130:
            people += [(sentence, right) for sentence in sentences(memory.text) if len(sentence) > 25]
    chance = random.Random("actions")
    own = []
    for number, (start, stop) in enumerate(grid):
        long = [action.text for action in campaign.actions[start:stop] if len(action.text) >= 50]
        own += [(chance.choice(long), {number})] if long else []
    return {"a sentence of a person's memory": people, "one of its actions": own}


def _rank(scores: NDArray[np.float32], right: set[int]) -> int:
    """Return the rank of the best of the right ones."""
    best = max(float(scores[number]) for number in right)
    return 1 + int((scores > best).sum())


def _share(ranks: Sequence[int], most: int) -> float:
    return sum(rank <= most for rank in ranks) / len(ranks)


def _cosine(embedder: Embedder, one: str, other: str) -> float:
    first, second = embedder.embed([one or " ", other])
    return float(first @ second)


def _rouge_1(text: str, human: str) -> float:
    """Return the F1 of the words that both have (Lin 2004)."""
    ours, theirs = (Counter(re.findall(r"\w+", one.casefold())) for one in (text, human))
    shared = sum((ours & theirs).values())
    return 2 * shared / max(1, ours.total() + theirs.total())
