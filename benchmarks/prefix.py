"""How much of a prompt a model server can reuse: the part that equals the beginning of the previous turn's prompt.

A real campaign is played turn by turn, two new actions each, with memories recalled from a bank of its own, in both
layouts and with several anchor steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from assembler import Adventure, Settings, assemble, bank_of, load
from assembler.context import AssembledContext
from assembler.settings import Layout
from benchmarks.assembly import REAL
from benchmarks.measuring import Progress, Recorder, silent
from benchmarks.story import Writer
from memorybank import MemoryBank
from memorybank.embedding import open_embedder
from memorybank.memory import NewMemory
from memorybank.tokenizer import Tokenizer, open_tokenizer

__all__ = ["FULL", "QUICK", "Parameters", "measure", "shared_tokens"]

CACHED = "no times; vectors come from the user's cache where they were computed before"
PER_TURN = 2
"""New actions in a turn: the player's and the AI's."""


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        turns: that are compared with the one before.
        context_size: tokens.
        anchor_steps: tokens by which History's beginning moves on at least; 0 for a caller who hands no anchor on.
        model: the embedding model that recalls.
        tokenizer: that counts.
    """

    turns: int = 300
    context_size: int = 8_192
    anchor_steps: tuple[int, ...] = (0, 128, 256, 512, 1_024, 2_048)
    model: str = "all-MiniLM-L6-v2"
    tokenizer: str = "o200k_base"


FULL = Parameters()
QUICK = Parameters(turns=8, context_size=1_024, anchor_steps=(0, 512), model="hashing-64")


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Play the same turns in the classic layout, and in the cache-friendly one with each anchor step."""
    recorder = Recorder(cached=CACHED, across="anchor step")
    recorder.note(
        "Reusable are the tokens that end in the beginning which the prompt has in common with the one before."
    )
    recorder.note("Anchor step none: the caller hands no anchor on, and History is filled exactly.")
    story = _story(recorder)
    start = len(story.actions) - PER_TURN * (parameters.turns + 1)
    with bank_of(_known_by(story, start), open_embedder(parameters.model)) as bank:
        runs: list[tuple[Layout, int]] = [
            ("classic", 0),
            *(("cache_friendly", step) for step in parameters.anchor_steps),
        ]
        for layout, step in runs:
            progress(f"{layout}, anchor step {step or 'none'}")
            settings = Settings(
                context_size=parameters.context_size,
                tokenizer=parameters.tokenizer,
                layout=layout,
                anchor_step=step or 512,
            )
            contexts = _play(story, start, bank, settings, hand_on=step > 0)
            _record(recorder, contexts, open_tokenizer(parameters.tokenizer), layout, step or "none")
    return recorder


def _story(recorder: Recorder) -> Adventure:
    """Return the real campaign, or a synthetic one where it is not there."""
    if REAL.is_file():
        return load(REAL)
    recorder.note(f"Not the real campaign but a synthetic one: there is no file {REAL.name} beside this repository.")
    writer = Writer("prefix")
    actions = writer.actions(2_000, 18)
    spans = (actions[begin : begin + 6] for begin in range(0, 2_000, 40))
    return Adventure(
        actions=actions,  # type: ignore[arg-type]  # kept as an ActionLog
        memories=tuple(NewMemory(writer.text(45), actions=tuple(action.id for action in span)) for span in spans),
        ai_instructions=writer.text(40),
    )


def _known_by(story: Adventure, start: int) -> Adventure:
    """Return the story with the memories of what has happened when the game starts."""
    past = {action.id for action in story.actions[:start]}
    return replace(story, memories=tuple(memory for memory in story.memories if past.issuperset(memory.actions)))


def _play(
    story: Adventure, start: int, bank: MemoryBank, settings: Settings, *, hand_on: bool
) -> Iterator[AssembledContext]:
    """Yield the context of each turn."""
    game = replace(story, actions=story.actions[:start])  # type: ignore[arg-type]  # kept as an ActionLog
    anchor: str | None = None
    for begin in range(start, len(story.actions), PER_TURN):
        game = game.with_actions(story.actions[begin : begin + PER_TURN])
        context = assemble(game, bank, settings, anchor=anchor)
        anchor = context.anchor if hand_on else None
        yield context


def _record(
    recorder: Recorder, contexts: Iterator[AssembledContext], tokenizer: Tokenizer, layout: str, step: int | str
) -> None:
    previous = next(contexts).text
    shares, computed, kept, moves, tokens = [], [], [], 0, []
    for context in contexts:
        shared = shared_tokens(previous, context.text, tokenizer)
        shares.append(100 * shared / context.tokens)
        computed.append(context.tokens - shared)
        kept.append(context.report.parts["history"].used)
        tokens.append(context.tokens)
        moves += shares[-1] < 50
        previous = context.text
    factors = {"layout": layout, "anchor step": step}
    recorder.values("share of the prompt reusable, mean", [fmean(shares)], "%", **factors)
    recorder.values("share of the prompt reusable, turn by turn", shares, "%", **factors)
    recorder.values("tokens to compute, mean", [fmean(computed)], "tokens", **factors)
    recorder.values("turns that share less than half", [moves], "turns", **factors)
    recorder.values("tokens in the prompt", tokens, "tokens", **factors)
    recorder.values("tokens of history in it", kept, "tokens", **factors)


def shared_tokens(previous: str, text: str, tokenizer: Tokenizer) -> int:
    """Return how many of the tokens of `text` end in the beginning that it has in common with `previous`."""
    differs = (place for place, pair in enumerate(zip(previous, text, strict=False)) if pair[0] != pair[1])
    common = next(differs, min(len(previous), len(text)))
    starts = tokenizer.starts(text)
    ends = [*starts[1:], len(text)]
    return sum(end <= common for end in ends)
