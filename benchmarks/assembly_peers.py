"""The same work as in other programs: the newest messages that fit, on each turn of a growing game.

"Fit" is into so many tokens of o200k_base. The others: LangChain's `trim_messages` and LlamaIndex's `ChatMemoryBuffer`
and `Memory`, each in an environment of its own (`peers/`). Here it is `assemble()` of an adventure of nothing but
actions, with its exact count of the whole and its report, which the others do not have. The report's totals are there
with the context, its lines of history when they are first read; a row apart reads them all on every turn.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from assembler import Action, Adventure, Settings, assemble
from assembler.blocks import shown
from assembler.context import AssembledContext
from assembler.report import Report
from benchmarks.measuring import Progress, Recorder, Timer, silent
from benchmarks.peers import Peer, PeerFailedError, PeerMissingError, PeerTooSlowError
from benchmarks.peers.process import timer_of
from benchmarks.story import Writer
from memorybank.tokenizer import DEFAULT_TOKENIZER, TiktokenTokenizer

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

CACHED = (
    "in `a turn` what each program itself keeps from turn to turn, after one turn that is not counted; in `first turn` "
    "nothing, no text was seen before; the log is in memory, what does not fit archived already by `Memory`"
)
OURS = "assemble"
OURS_READ = "assemble, every report line read"
PEERS = {
    "trim_messages, each count kept": ("langchain", "langchain_trim", "cached"),
    "trim_messages, counting lists": ("langchain", "langchain_trim", "list"),
    "ChatMemoryBuffer": ("llama_index", "llama_index_memory", "ChatMemoryBuffer"),
    "Memory": ("llama_index", "llama_index_memory", "Memory"),
}
"""What is compared: the environment, the script in it and the way that the script is to take."""


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        log_lengths: actions, each time.
        context_sizes: tokens, each time.
        words: of an action's text, in the mean.
        turns: that are played, each with one new action.
        seconds: of one row of a peer, after which it begins no other turn, if it has played two.
        limit: seconds in which a peer must have finished such a row; it is ended then.
    """

    log_lengths: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    context_sizes: tuple[int, ...] = (131_072, 32_768, 8_192, 2_048)
    words: int = 18
    turns: int = 30
    seconds: float = 2.0
    limit: float = 20.0


FULL = Parameters()
QUICK = Parameters(log_lengths=(50, 200), context_sizes=(4_096, 1_024), turns=3, seconds=0.5, limit=5.0)


class CountingTokenizer(TiktokenTokenizer):
    """The tokenizer with the number of texts that it has really encoded."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls = 0

    def _count_piece(self, piece: str) -> int:
        self.calls += 1
        return super()._count_piece(piece)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Measure turns of games that grow from logs of several lengths, here and in the peers."""
    recorder = Recorder(cached=CACHED, across="actions")
    contenders = _contenders(recorder)
    writer = Writer("peers")
    log = writer.actions(max(parameters.log_lengths), parameters.words)
    new = writer.actions(parameters.turns + 1, parameters.words, first=len(log))
    for length in parameters.log_lengths:
        old = log[len(log) - length :]
        for contender in contenders:
            contender.take(list(map(shown, old)))
        for size in parameters.context_sizes:
            progress(f"{length:,} actions, {size:,} tokens")
            _row(recorder, parameters, contenders, old, new, size)
    progress("all lengths in turn")
    _lengths_in_turn(recorder, parameters, log, new)
    for contender in contenders:
        contender.close(recorder)
    _targets(recorder, parameters)
    return recorder


def _contenders(recorder: Recorder) -> list[_Contender]:
    found = []
    for name, (environment, script, way) in PEERS.items():
        try:
            found.append(_Contender(name, Peer(environment, script), way))
        except PeerMissingError as error:
            recorder.note(f"{name} was not measured: {error}")
    return found


class _Contender:
    """A peer that takes one way, and up to which length it was fast enough."""

    def __init__(self, name: str, peer: Peer, way: str) -> None:
        self.name = name
        self._peer = peer
        self._way = way
        self._log: list[str] = []
        self._has_log = False
        self._too_slow: dict[int, str] = {}

    def take(self, log: list[str]) -> None:
        """Use this log from now on."""
        self._log, self._has_log = log, False

    def play(self, parameters: Parameters, new: Sequence[str], size: int) -> dict[str, Any] | None:
        """Return the answer of the peer to a row, None if it did not finish it, or a shorter one before."""
        if size in self._too_slow:
            return None
        row = {"way": self._way, "size": size}
        try:
            if not self._has_log:
                self._peer.ask({"log": self._log}, limit=300)
            self._has_log = True
            self._peer.ask(row, limit=300)
            work = row | {"new": list(new), "seconds": parameters.seconds}
            answer: dict[str, Any] = self._peer.ask(work, limit=parameters.limit)
        except (PeerTooSlowError, PeerFailedError) as error:
            self._has_log = False
            self._too_slow[size] = f"{self.name}, {size:,} tokens: {error} from {len(self._log):,} actions on"
            return None
        return answer

    def close(self, recorder: Recorder) -> None:
        """End it, and say what it was and what it could not do."""
        versions = ", ".join(f"{package} {version}" for package, version in self._peer.versions.items())
        recorder.note(f"{self.name}: {versions}")
        for note in self._too_slow.values():
            recorder.note(note)
        self._peer.close()


class _Game:
    """A game of ours that grows by one action a turn."""

    def __init__(self, log: Sequence[Action], size: int, tokenizer: CountingTokenizer) -> None:
        self._story = Adventure(actions=log)  # type: ignore[arg-type]  # kept as an ActionLog
        self._settings = Settings(context_size=size, tokenizer=tokenizer)

    def turn(self, action: Action) -> AssembledContext:
        self._story = self._story.with_actions([action])
        return assemble(self._story, None, self._settings)

    def turn_read(self, action: Action) -> AssembledContext:
        """Play a turn and read every line of its report."""
        context = self.turn(action)
        assert sum(line.used for line in context.report.lines) == context.tokens
        return context


class _Played:
    """A game of ours with what is asked of a peer: times, calls of the tokenizer, messages that fit."""

    def __init__(self, log: Sequence[Action], size: int, *, read: bool) -> None:
        """Go on from a log; with `read`, the reading of all report lines is a part of every turn."""
        self._tokenizer = CountingTokenizer(DEFAULT_TOKENIZER)
        game = _Game(log, size, self._tokenizer)
        self._turn = game.turn_read if read else game.turn
        self._times = Timer()
        self._calls: list[int] = []
        self._reports: list[Report] = []

    def play(self, action: Action) -> None:
        """Play a turn, timed."""
        before = self._tokenizer.calls
        self._reports.append(self._times.time(partial(self._turn, action)).report)  # a game keeps no old texts
        self._calls.append(self._tokenizer.calls - before)

    def answer(self) -> dict[str, Any]:
        """Return what a peer answers; only now are the lines of the reports read."""
        kept = [sum(line.kept and line.item != "header" for line in report.lines) for report in self._reports]
        return {"calls": self._calls, "kept": kept, "times": {"wall": self._times.wall, "cpu": self._times.cpu}}


def _row(
    recorder: Recorder,
    parameters: Parameters,
    contenders: Sequence[_Contender],
    old: Sequence[Action],
    new: Sequence[Action],
    size: int,
) -> None:
    factors = {"context": size, "actions": len(old)}
    texts = list(map(shown, new))
    ours = _ours(recorder, old, new, factors)
    theirs = {}
    for contender in contenders:
        answer = contender.play(parameters, texts, size)
        if answer is not None:
            theirs[contender.name] = _record(recorder, contender.name, answer, factors)
            recorder.ratio("times as long as here", theirs[contender.name], ours, program=contender.name, **factors)
    if theirs:
        fastest = min(theirs, key=lambda name: statistics.median(theirs[name].wall))
        recorder.ratio("the fastest peer, times as long as here", theirs[fastest], ours, **factors)


def _ours(recorder: Recorder, old: Sequence[Action], new: Sequence[Action], factors: dict[str, Any]) -> Timer:
    """Play a game, and another one in which every report line is read; return the times of the first."""
    found = {}
    for name in (OURS, OURS_READ):
        game = _Played(old, factors["context"], read=name == OURS_READ)
        for action in new:
            game.play(action)
        found[name] = _record(recorder, name, game.answer(), factors)
    return found[OURS]


def _record(recorder: Recorder, program: str, answer: dict[str, Any], factors: dict[str, Any]) -> Timer:
    """Keep what a program did in a row; return the times of its turns but the first, if there are others."""
    first, turns = Timer(), timer_of(answer["times"])
    first.note(turns.wall[0], turns.cpu[0])
    skipped = 1 if len(turns.wall) > 1 else 0
    turns.wall, turns.cpu = turns.wall[skipped:], turns.cpu[skipped:]
    recorder.times("a turn", turns, program=program, **factors)
    recorder.times("first turn", first, program=program, **factors)
    recorder.values("tokenizer calls in a turn", answer["calls"][skipped:], "calls", program=program, **factors)
    recorder.values("messages that fit", answer["kept"][skipped:], "messages", program=program, **factors)
    return turns


def _lengths_in_turn(recorder: Recorder, parameters: Parameters, log: Sequence[Action], new: Sequence[Action]) -> None:
    """Time our turns of all lengths in turn: what the machine does meanwhile meets all of them alike."""
    for size in parameters.context_sizes:
        tokenizer = CountingTokenizer(DEFAULT_TOKENIZER)
        games = {n: _Game(log[len(log) - n :], size, tokenizer) for n in parameters.log_lengths}
        timers = {n: Timer() for n in games}
        for number, action in enumerate(new):
            for length, game in games.items():
                (timers[length] if number else Timer()).time(partial(game.turn, action))
        for length, timer in timers.items():
            recorder.times("a turn here, lengths in turn", timer, context=size, actions=length)


def _targets(recorder: Recorder, parameters: Parameters) -> None:
    ratio = "the fastest peer, times as long as here"
    for size in parameters.context_sizes:
        text = f"at 10,000 actions and {size:,} tokens, 50 times faster than the fastest peer"
        recorder.at_least(text, 50.0, ratio, actions=10_000, context=size)
    for size in parameters.context_sizes:
        text = f"flat from 10,000 to 100,000 actions, {size:,} tokens: grows less than 1.25 times"
        recorder.flat(text, 1.25, "a turn here, lengths in turn", since=10_000, context=size)
