"""One thread that embeds for all requests: what waits at the same time is embedded together.

Queries come before passages, but not for ever; long lists of passages go in small steps, so that a query gets in
between. What waits is bounded, the same text is embedded once however many ask for it, and a text that breaks the model
fails only those who sent it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from memorybank.embedding.port import Embedder, Kind, fingerprint_of, prepared
from memorybank.errors import DeadlineError, MemoryBankError, ModelError, OverloadedError
from memorybank.forking import renew_after_fork
from memorybank.service.state import deadline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BatchingEmbedder"]

BATCH = 32
"""Texts in one step: more make a step of the model no faster."""
STEP_CHARACTERS = 16_000
"""Characters in one step, unless its first text has more: a step of passages is what a query may have to wait for."""
QUERY_STEPS = 4
"""Steps of queries in a row while passages wait."""
MAX_QUEUED = 2_048
FIRST_GUESS = 0.02
"""Seconds that a text takes, before there is any experience."""
LONGEST_RETRY = 60.0


class _Entry:
    """A text that somebody waits for."""

    __slots__ = ("begun", "done", "error", "kind", "text", "vector", "waiters")

    def __init__(self, text: str, kind: Kind) -> None:
        self.text = text
        self.kind = kind
        self.waiters = 0
        self.begun = False
        self.done = threading.Event()
        self.vector: NDArray[np.float32] | None = None
        self.error: BaseException | None = None


class BatchingEmbedder:
    """An embedder for any number of threads, around one that works in a thread of its own.

    A caller waits until its request's deadline (`state.py`), or for `patience` seconds outside of requests.

    Args:
        embedder: what embeds.
        max_queued: texts that may wait.
        patience: seconds that a caller without a deadline waits; None for as long as it takes.
        on_step: told the number of texts of each step.

    Attributes:
        has_embedded: whether it ever has: the model is loaded then.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        max_queued: int = MAX_QUEUED,
        patience: float | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        self._embedder = embedder
        self._max_queued = max_queued
        self._patience = patience
        self.on_step = on_step
        self.has_embedded = False
        self._seconds_per_text = FIRST_GUESS
        self._closed = False
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Begin anew, without the thread and the callers of the parent, when this process was forked."""
        self._changed = threading.Condition()
        self._waiting: dict[Kind, OrderedDict[str, _Entry]] = {"query": OrderedDict(), "passage": OrderedDict()}
        self._begun: dict[tuple[Kind, str], _Entry] = {}
        self._thread: threading.Thread | None = None
        self._step_began: float | None = None

    def __repr__(self) -> str:
        return f"BatchingEmbedder({self._embedder!r})"

    @property
    def name(self) -> str:
        """As the inner embedder."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """As the inner embedder."""
        return self._embedder.dimensions

    @cached_property
    def fingerprint(self) -> str:
        """As the inner embedder; asked for once, because it may look at files."""
        return fingerprint_of(self._embedder)

    @property
    def queued(self) -> int:
        """Texts that wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def step_seconds(self) -> float:
        """For how long the present step has been going on; 0 if there is none."""
        began = self._step_began
        return 0.0 if began is None else time.monotonic() - began

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """As the inner embedder, together with what others ask for.

        Raises:
            OverloadedError: too many texts wait already.
            DeadlineError: the vectors were not there in time.
            ModelError: the model failed on one of these texts.
        """
        import numpy as np

        whole = prepared(texts, kind)
        if not whole:
            return np.empty((0, self.dimensions), dtype=np.float32)
        limit = deadline()
        end = None if limit is None else time.monotonic() + limit.left
        if end is None and self._patience is not None:
            end = time.monotonic() + self._patience
        entries = self._enter(dict.fromkeys(whole), kind)
        try:
            for entry in entries.values():
                if not entry.done.wait(None if end is None else max(0.0, end - time.monotonic())):
                    raise DeadlineError("the vectors were not there in time: repeat the call, or give it more time")
        finally:
            self._leave(entries.values())
        return np.stack([self._vector_of(entries[text]) for text in whole])

    def _vector_of(self, entry: _Entry) -> NDArray[np.float32]:
        if entry.vector is None:
            raise _error_of(self.name, entry.error)
        return entry.vector

    def close(self) -> None:
        """End the thread, once the step at hand is done. Who still waits gets a ModelError."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enter(self, texts: dict[str, None], kind: Kind) -> dict[str, _Entry]:
        with self._changed:
            if self._closed:
                raise ModelError("the embedder was closed: the server is going down")
            waiting = self._waiting[kind]
            known = {text: waiting.get(text) or self._begun.get((kind, text)) for text in texts}
            new = sum(entry is None for entry in known.values())
            if self.queued and self.queued + new > self._max_queued:
                raise OverloadedError(
                    f"{self.queued} texts wait to be embedded already: try again a little later",
                    retry_after=min(LONGEST_RETRY, self.queued * self._seconds_per_text),
                )
            entries = {text: entry or _Entry(text, kind) for text, entry in known.items()}
            for text, entry in entries.items():
                entry.waiters += 1
                if known[text] is None:
                    waiting[text] = entry
            self._start()
            self._changed.notify()
        return entries

    def _leave(self, entries: Iterable[_Entry]) -> None:
        with self._changed:
            for entry in entries:
                entry.waiters -= 1
                if not entry.waiters and not entry.begun:
                    self._waiting[entry.kind].pop(entry.text, None)

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="memorybank-embedding", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        queries_in_a_row = 0
        while True:
            with self._changed:
                while not self.queued and not self._closed:
                    self._changed.wait()
                if self._closed:
                    self._give_up()
                    return
                passages_turn = self._waiting["passage"] and queries_in_a_row >= QUERY_STEPS
                kind: Kind = "query" if self._waiting["query"] and not passages_turn else "passage"
                step = self._take(kind)
            queries_in_a_row = queries_in_a_row + 1 if kind == "query" else 0
            self._embed_step(step, kind)

    def _take(self, kind: Kind) -> list[_Entry]:
        step: list[_Entry] = []
        characters = 0
        waiting = self._waiting[kind]
        while waiting and len(step) < BATCH:
            text = next(iter(waiting))
            characters += len(text)
            if step and characters > STEP_CHARACTERS:
                break
            entry = waiting.pop(text)
            entry.begun = True
            self._begun[kind, text] = entry
            step.append(entry)
        return step

    def _embed_step(self, step: list[_Entry], kind: Kind) -> None:
        began = self._step_began = time.monotonic()
        if self.on_step is not None:
            self.on_step(len(step))
        if not self._embed_together(step, kind):
            for entry in step:
                self._embed_together([entry], kind)
        self._step_began = None
        per_text = (time.monotonic() - began) / len(step)
        self._seconds_per_text += 0.2 * (per_text - self._seconds_per_text)
        with self._changed:
            for entry in step:
                del self._begun[kind, entry.text]
        for entry in step:
            entry.done.set()

    def _embed_together(self, step: list[_Entry], kind: Kind) -> bool:
        """Embed some texts; return whether they are through: a single one is, whatever becomes of it."""
        try:
            vectors = self._embedder.embed([entry.text for entry in step], kind=kind)
            if len(vectors) != len(step):
                raise ModelError(f"model {self.name}: it gave {len(vectors)} vectors for {len(step)} texts")
        except BaseException as error:  # a tokenizer's panic is no Exception, and must not end this thread either
            step[0].error = error if len(step) == 1 else None
            return len(step) == 1
        for entry, vector in zip(step, vectors, strict=True):
            entry.vector = vector
        self.has_embedded = True
        return True

    def _give_up(self) -> None:
        for waiting in self._waiting.values():
            for entry in waiting.values():
                entry.error = ModelError("the embedder was closed: the server is going down")
                entry.done.set()
            waiting.clear()


def _error_of(name: str, error: BaseException | None) -> Exception:
    """Return the error for one of those who wait; a foreign one may quote their text, so only its kind is told."""
    if isinstance(error, MemoryBankError):
        return error.with_traceback(None)
    made = ModelError(f"model {name}: it failed with {type(error).__name__}")
    made.__cause__ = error
    return made
