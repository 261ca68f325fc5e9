"""What one context costs when the texts' token counts are known, and what a turn of a long game costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from assembler import Action, Adventure, Settings, assemble, load
from assembler.context import AssembledContext
from benchmarks.machine import ROOT
from benchmarks.measuring import Progress, Recorder, Timer, silent
from benchmarks.story import Writer, card_set
from memorybank.memory import Memory, NewMemory, Recalled
from memorybank.tokenizer import open_tokenizer

__all__ = ["FULL", "QUICK", "Parameters", "StubBank", "measure"]

REAL = ROOT.parent / "shared" / "data" / "adventure_crd3.json"
"""A real table-top campaign, if it is there."""

MEMORY_WORDS = 45

CACHED = (
    "the counts of all texts but the new ones of a growing game, the trigger index, the mentions in actions seen "
    "before, the tokenizers; the bank is a stub that gives a ready ranking, so embedding and search cost nothing; "
    "in `first context` no text was seen before"
)


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md."""

    log_lengths: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    context_sizes: tuple[int, ...] = (2_048, 8_192, 32_768)
    tokenizers: tuple[str, ...] = ("o200k_base", "cl100k_base")
    words: int = 18
    cards: int = 40
    memories: int = 61
    many_memories: int = 1_000
    repeat: int = 40
    turns: int = 200
    turn_context: int = 8_192
    first_contexts: int = 10


FULL = Parameters()
QUICK = Parameters(
    log_lengths=(50, 200),
    context_sizes=(1_024,),
    many_memories=100,
    repeat=3,
    turns=5,
    turn_context=1_024,
    first_contexts=2,
)


@dataclass(frozen=True)
class StubBank:
    """Gives the memories in one fixed ranking at once."""

    ranking: tuple[Recalled, ...]

    @classmethod
    def of(cls, memories: Iterable[NewMemory]) -> StubBank:
        """Return a bank that ranks the memories in the order given."""
        start = datetime(2026, 1, 1, tzinfo=UTC)
        ranking = [
            Recalled(
                Memory(
                    id=memory.id or f"m{rank}",
                    text=memory.text,
                    actions=memory.actions,
                    pinned=memory.pinned,
                    metadata={},
                    state="active",
                    model="stub",
                    created=start + timedelta(minutes=rank),
                ),
                similarity=1 - rank / 1000,
                rank=rank,
            )
            for rank, memory in enumerate(memories, start=1)
        ]
        return cls(tuple(ranking))

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        ranking: str = "hybrid",
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        retellings: bool = False,
    ) -> Sequence[Recalled]:
        """Return the first `limit` of the ranking."""
        return self.ranking[:limit]


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Measure contexts of synthetic logs, of the real campaign, of games that grow, and first contexts."""
    recorder = Recorder(cached=CACHED, across="actions")
    stories = {length: _adventure(parameters, length, f"log/{length}") for length in parameters.log_lengths}
    note_tokens(recorder, parameters, [action for story in stories.values() for action in story.actions])
    for length, story in stories.items():
        progress(f"contexts of {length:,} actions")
        _contexts(recorder, parameters, story, _banks(parameters, story), log="synthetic")
    if REAL.is_file():
        progress("contexts of the real campaign")
        campaign = load(REAL)
        stub = StubBank.of(campaign.memories)
        banks = {"off": None, f"{len(campaign.memories):,} memories": stub}
        _contexts(recorder, parameters, campaign, banks, log="real campaign")
    else:
        recorder.note(f"The real campaign was not measured: there is no file {REAL.name} beside this repository.")
    progress("all lengths in turn")
    _lengths_in_turn(recorder, parameters, stories)
    for length, story in stories.items():
        progress(f"games that grow from {length:,} actions")
        _games(recorder, parameters, story)
    progress("first contexts")
    _first_contexts(recorder, parameters)
    _targets(recorder, parameters)
    return recorder


def note_tokens(recorder: Recorder, parameters: Parameters, actions: Sequence[Action]) -> None:
    """Say how long the synthetic actions are."""
    sample = actions[:: max(1, len(actions) // 2_000)]
    for name in parameters.tokenizers:
        mean = sum(map(open_tokenizer(name).count, (action.text for action in sample))) / len(sample)
        recorder.note(f"A synthetic action has {mean:.1f} tokens of {name} in the mean of {len(sample):,}.")


def _adventure(parameters: Parameters, length: int, seed: str) -> Adventure:
    cards, names = card_set(parameters.cards, "english", seed=seed)
    writer = Writer(seed, names=names, mentions=0.1)
    actions = writer.actions(length, parameters.words)
    spans = [actions[number * length // parameters.memories :][:6] for number in range(parameters.memories)]
    memories = [
        NewMemory(writer.text(MEMORY_WORDS), id=f"m{number}", actions=tuple(action.id for action in span))
        for number, span in enumerate(spans)
    ]
    return Adventure(
        actions=actions,  # type: ignore[arg-type]  # kept as an ActionLog
        story_cards=cards,
        memories=tuple(memories[::2] + memories[1::2]),
        ai_instructions=writer.text(120),
        plot_essentials=writer.text(90),
        story_summary=writer.text(150),
        authors_note=writer.text(20),
    )


def _banks(parameters: Parameters, story: Adventure) -> dict[str, StubBank | None]:
    """Return no bank, one with the story's memories, and one with as many as the assembler asks for."""
    writer = Writer(f"many memories/{len(story.actions)}")
    many = [NewMemory(writer.text(MEMORY_WORDS)) for _ in range(parameters.many_memories)]
    banks = (StubBank.of(memories) for memories in (story.memories, many))
    return {"off": None} | {f"{len(bank.ranking):,} memories": bank for bank in banks}


def _contexts(
    recorder: Recorder, parameters: Parameters, adventure: Adventure, banks: Mapping[str, StubBank | None], *, log: str
) -> None:
    for tokenizer in parameters.tokenizers:
        for size in parameters.context_sizes:
            for name, bank in banks.items():
                settings = Settings(context_size=size, tokenizer=tokenizer)
                factors = {"log": log, "tokenizer": tokenizer, "context": size, "bank": name}
                work = partial(assemble, adventure, bank, settings)
                _context(recorder, work, settings, parameters.repeat, factors | {"actions": len(adventure.actions)})


def _context(
    recorder: Recorder,
    work: Callable[[], AssembledContext],
    settings: Settings,
    repeat: int,
    factors: dict[str, object],
) -> None:
    context = work()
    count = partial(settings.open_tokenizer().count, context.text)
    for _ in range(2):  # warm up
        work()
    whole, counting = Timer(), Timer()
    for _ in range(repeat):  # in turn, so that both see the same machine
        whole.time(work)
        counting.time(count)
    recorder.times("assemble", whole, **factors)
    recorder.times("of it the one exact count", counting, **factors)
    recorder.values("tokens in the context", [context.tokens], "tokens", **factors)


def _lengths_in_turn(recorder: Recorder, parameters: Parameters, stories: Mapping[int, Adventure]) -> None:
    """Time the same context of every length in turn: what the machine does meanwhile meets all of them alike."""
    for tokenizer in parameters.tokenizers:
        settings = Settings(context_size=parameters.turn_context, tokenizer=tokenizer)
        for name in ("off", f"{parameters.memories:,} memories"):
            timers = {length: Timer() for length in stories}
            works = {
                length: partial(assemble, story, StubBank.of(story.memories) if name != "off" else None, settings)
                for length, story in stories.items()
            }
            for work in works.values():
                work()
            for _ in range(2 * parameters.repeat):
                for length, work in works.items():
                    timers[length].time(work)
            for length, timer in timers.items():
                factors = {"tokenizer": tokenizer, "context": parameters.turn_context, "bank": name}
                recorder.times("assemble, lengths in turn", timer, **factors, actions=length)


def _games(recorder: Recorder, parameters: Parameters, story: Adventure) -> None:
    for tokenizer in parameters.tokenizers:
        for bank in (None, StubBank.of(story.memories)):
            shown = f"{len(bank.ranking):,} memories" if bank else "off"
            factors = {"tokenizer": tokenizer, "context": parameters.turn_context, "bank": shown}
            game = _Game(story, bank, Settings(context_size=parameters.turn_context, tokenizer=tokenizer))
            seed = f"game/{len(story.actions)}/{tokenizer}/{shown}"
            new = Writer(seed).actions(2 * parameters.turns, parameters.words, first=len(story.actions))
            timer = Timer()
            for turn in range(parameters.turns):
                timer.time(partial(game.play, new[2 * turn : 2 * turn + 2]))
            recorder.times("a turn of a growing game", timer, **factors, actions=len(story.actions))


class _Game:
    """A game that goes on from a story: each turn has the player's action and the AI's."""

    def __init__(self, story: Adventure, bank: StubBank | None, settings: Settings) -> None:
        self._story, self._bank, self._settings = story, bank, settings
        assemble(story, bank, settings)

    def play(self, actions: Sequence[Action]) -> AssembledContext:
        self._story = self._story.with_actions(actions)
        return assemble(self._story, self._bank, self._settings)


def _first_contexts(recorder: Recorder, parameters: Parameters) -> None:
    """Contexts of adventures of which no text was ever seen; only the tokenizer is loaded."""
    length = min(1_000, max(parameters.log_lengths))
    for tokenizer in parameters.tokenizers:
        settings = Settings(context_size=parameters.turn_context, tokenizer=tokenizer)
        timer = Timer()
        for number in range(parameters.first_contexts):
            story = _adventure(parameters, length, f"first/{tokenizer}/{number}")
            timer.time(partial(assemble, story, StubBank.of(story.memories), settings))
        factors = {"tokenizer": tokenizer, "context": parameters.turn_context, "memories": parameters.memories}
        recorder.times("first context", timer, **factors, actions=length)


def _targets(recorder: Recorder, parameters: Parameters) -> None:
    for tokenizer in parameters.tokenizers:
        for bank in ("off", f"{parameters.memories:,} memories"):
            factors = {"context": 8_192, "tokenizer": tokenizer, "bank": bank}
            for name in ("assemble", "a turn of a growing game"):
                recorder.target(f"{name}, 8,192 tokens, in under 5 ms", 5.0, name, **factors)
    if len(parameters.log_lengths) > 2:
        lengths = parameters.log_lengths
        text = f"flat from {lengths[1]:,} to {lengths[-1]:,} actions: grows less than 1.25 times"
        # The shortest log does not fill the context.
        recorder.flat(text, 1.25, "assemble, lengths in turn", since=lengths[1], context=parameters.turn_context)
