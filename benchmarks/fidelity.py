"""How true contexts are to their budget: none over its limit, and no room unused that something would have filled.

The contexts of random adventures are counted once more, whole, and their reports are read by `fidelity_check.py`, which
knows the rules (SPEC.md sections 3 and 4) and nothing of the packers. Beside it the history of the same adventures,
packed by other programs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from assembler import Action, Adventure, Settings, assemble
from assembler.blocks import shown
from assembler.errors import ContextTooSmallError
from benchmarks.adventures import RandomAdventure, random_adventure
from benchmarks.assembly import StubBank
from benchmarks.fidelity_check import could_have_gone_in, exact_count, is_really_too_small
from benchmarks.measuring import Progress, Recorder, silent
from benchmarks.peers import Peer, PeerFailedError, PeerMissingError, PeerTooSlowError
from memorybank.embedding.registry import find, locate
from memorybank.tokenizer import Tokenizer, open_tokenizer

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

CACHED = "counts only, no times"
MODEL = "all-MiniLM-L6-v2"
PEERS = {
    "trim_messages, each message counted": ("langchain", "langchain_trim", "alone"),
    "trim_messages, with its line end": ("langchain", "langchain_trim", "cached"),
    "trim_messages, approximate": ("langchain", "langchain_trim", "approximate"),
    "ChatMemoryBuffer": ("llama_index", "llama_index_memory", "ChatMemoryBuffer"),
    "Memory": ("llama_index", "llama_index_memory", "Memory"),
}
OVER, UNUSED = "over their limit", "with room for more"
HEAD = "Recent Story:\n"
"""Stands before the history here, and is counted with it."""

REFUSED = (
    "Refused though they fit: Front Memory, header and last action, counted as one text, are not above the context "
    "size, but their costs are, each counted by itself (SPEC.md section 2). An estimate rounds each of them up."
)
_Work: TypeAlias = tuple[list[str], int]
"""A log and a context size."""


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        adventures: for each tokenizer.
        tokenizers: encodings, the estimate, and the default model's own by the model's name.
        histories: that are packed by each program.
        encodings: that the programs count with.
    """

    adventures: int = 10_000
    tokenizers: tuple[str, ...] = ("o200k_base", "cl100k_base", "chars/4", MODEL)
    histories: int = 1_000
    encodings: tuple[str, ...] = ("o200k_base", "cl100k_base")


FULL = Parameters()
QUICK = Parameters(adventures=60, histories=10, encodings=("o200k_base",))


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Pack random adventures with each tokenizer, and their histories with each program."""
    recorder = Recorder(cached=CACHED, across="tokenizer")
    tokenizers = _tokenizers(parameters, recorder)
    found: dict[str, Counter[str]] = {name: Counter() for name in tokenizers}
    for number in range(parameters.adventures):
        if number % 1_000 == 0:
            progress(f"{number:,} adventures")
        one = random_adventure(f"fidelity/{number}")
        for name, place in tokenizers.items():
            _pack(one, place, found[name])
    for name, counts in found.items():
        for what in ("packed", OVER, UNUSED, "refused", "refused though they fit"):
            recorder.values(f"adventures: {what}", [counts[what]], "in all", tokenizer=name)
    _histories(recorder, parameters, progress)
    if any(counts["refused though they fit"] for counts in found.values()):
        recorder.note(REFUSED)
    for what in (OVER, UNUSED):
        recorder.target(f"of {parameters.adventures:,} random adventures: {what}", 1, f"adventures: {what}")
    for what in (OVER, UNUSED):
        recorder.target(f"histories: {what}", 1, f"histories: {what}", program="assemble")
    return recorder


def _tokenizers(parameters: Parameters, recorder: Recorder) -> dict[str, str]:
    """Return what to open by the name to show; the model's own tokenizer lies in its folder."""
    found = {}
    for name in parameters.tokenizers:
        folder = locate(find(MODEL)) if name == MODEL else None
        if name != MODEL or folder is not None:
            found[name] = str(folder or name)
        else:
            recorder.note(f"The tokenizer of {MODEL} was not measured: install the project with its extra `model`.")
    return found


def _pack(one: RandomAdventure, tokenizer: str, counts: Counter[str]) -> None:
    settings = one.settings_for(tokenizer)
    counter = open_tokenizer(tokenizer)
    try:
        context = assemble(one.adventure, StubBank.of(one.ranking), settings)
    except ContextTooSmallError:
        counts["refused"] += 1
        counts["refused though they fit"] += not is_really_too_small(one.adventure, settings.context_size, counter)
        return
    counts["packed"] += 1
    tokens = exact_count(counter, context.text)
    left_out = could_have_gone_in(context.report, settings.context_size - tokens, one.adventure, counter)
    counts[OVER] += tokens > settings.context_size
    counts[UNUSED] += bool(left_out)


def _histories(recorder: Recorder, parameters: Parameters, progress: Progress) -> None:
    logs = [_log(f"fidelity/{number}") for number in range(parameters.histories)]
    for encoding in parameters.encodings:
        tokenizer = open_tokenizer(encoding)
        work: list[_Work] = [(log, _size(log, number, tokenizer)) for number, log in enumerate(logs) if log]
        progress(f"histories, {encoding}")
        _judge(recorder, "assemble", tokenizer, [_packed_here(log, size, encoding) for log, size in work], work)
        for program, (environment, script, way) in PEERS.items():
            try:
                with Peer(environment, script) as peer:
                    packed = [_packed_there(peer, way, log, size, encoding) for log, size in work]
                _judge(recorder, program, tokenizer, packed, work)
            except (PeerMissingError, PeerTooSlowError, PeerFailedError) as error:
                recorder.note(f"{program} was not measured with {encoding}: {error}")


def _log(seed: str) -> list[str]:
    """Return the log of a random adventure as it is shown, oldest first."""
    return list(map(shown, random_adventure(seed).adventure.actions.newest_first()))[::-1]


def _size(log: Sequence[str], number: int, tokenizer: Tokenizer) -> int:
    """Return a context size of its own for each log, into which at least the newest message fits.

    As blocks whose costs are added up: where a message begins with a slash, the whole can be a token less.
    """
    chance = random.Random(f"size/{number}")
    least = max(exact_count(tokenizer, HEAD + log[-1]), tokenizer.count(HEAD) + tokenizer.count(log[-1]))
    return max(least, round(chance.random() * exact_count(tokenizer, HEAD + "\n".join(log))))


def _packed_here(log: Sequence[str], size: int, encoding: str) -> list[str]:
    actions = [Action(f"a{number}", "story", text) for number, text in enumerate(log)]
    context = assemble(
        Adventure(actions=actions),  # type: ignore[arg-type]  # kept as an ActionLog
        None,
        Settings(context_size=size, tokenizer=encoding),
    )
    given = list(log[-sum(line.kept and line.item != "header" for line in context.report.lines) :])
    assert context.text == HEAD + "\n".join(given)
    return given


def _packed_there(peer: Peer, way: str, log: Sequence[str], size: int, encoding: str) -> list[str]:
    row = {"way": way, "size": size, "encoding": encoding}
    peer.ask({"log": log[:-1]}, limit=60)
    peer.ask(row, limit=60)
    answer = peer.ask(row | {"new": log[-1:], "seconds": 60, "give": True}, limit=120)
    given: list[str] = answer["given"][0]
    return given


def _judge(
    recorder: Recorder, program: str, tokenizer: Tokenizer, packed: Sequence[list[str]], work: Sequence[_Work]
) -> None:
    """Count each history whole, as one text, and with the next older message."""
    head = HEAD if program == "assemble" else ""
    counts: Counter[str] = Counter()
    unused = []
    for given, (log, size) in zip(packed, work, strict=True):
        tokens = exact_count(tokenizer, head + "\n".join(given))
        counts[OVER] += tokens > size
        older = log[: len(log) - len(given)]
        if older and exact_count(tokenizer, head + "\n".join([older[-1], *given])) <= size:
            counts[UNUSED] += 1
            unused.append(100 * (size - tokens) / size)
    factors = {"program": program, "tokenizer": tokenizer.name}
    recorder.values("histories: packed", [len(work)], "in all", **factors)
    for what in (OVER, UNUSED):
        recorder.values(f"histories: {what}", [counts[what]], "in all", **factors)
    if unused:
        recorder.values("histories: of their limit unused though more would fit", unused, "percent", **factors)
