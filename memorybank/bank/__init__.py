"""The memory bank of one adventure: store first, index second (SPEC.md section 9).

The face of the package: `MemoryBank`, with what it inherits from `settings.py`, `story.py`, `edits.py` and `reads.py`.
Changes are worked out in `draft.py` and made by `writer.py` and `story_writer.py`; `reembedding.py` and `checking.py`
do what their names say, `model.py` knows which embedding model is in use, `info.py` what a bank tells of itself. Search
is `memorybank.search`. SQLAlchemy, FAISS and numpy load when a bank is opened and not before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from memorybank import inputs
from memorybank.bank.info import CheckReport
from memorybank.bank.model import ModelInUse
from memorybank.bank.settings import BankSettings
from memorybank.errors import InvalidInputError, NoRerankerError
from memorybank.memory import Progress, Recalled
from memorybank.search.answer import LAST_POOL, Question, answer
from memorybank.search.ranking import DEFAULT_RANKING, RERANKED, checked_ranking
from memorybank.text import clean

if TYPE_CHECKING:
    from memorybank.embedding import Embedder
    from memorybank.search.live_index import LiveIndex
    from memorybank.search.reranking import Reranking
    from memorybank.storage import Store

__all__ = ["MemoryBank"]

Results: TypeAlias = list[Recalled]  # inside the class, `list` is a method

DEFAULT_LIMIT = 10


class MemoryBank(BankSettings):
    """A bank of memories, for any number of threads; other processes may use the same bank at the same time.

    A write is on disk when its call returns, and the next search by anyone finds it. A call that raises has changed
    nothing. All ids, texts and numbers are checked first and refused with `InvalidInputError`.

    >>> from memorybank.embedding.testing import HashingEmbedder
    >>> with MemoryBank.open(embedder=HashingEmbedder()) as bank:
    ...     _ = bank.add("Mara hid the silver key under the chapel floor.")
    ...     bank.search("Where is the silver key?")[0].memory.id
    'm1'
    """

    def __init__(
        self,
        store: Store,
        name: str = "default",
        *,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] | None = None,
        live: LiveIndex | None = None,
        reranking: Reranking | None = None,
    ) -> None:
        """See `open`; this is for several banks on one store (`memorybank.host`), which `close` closes for all."""
        from memorybank.bank.story_writer import StoryWriter
        from memorybank.search.live_index import LiveIndex

        model = ModelInUse(store, embedder)
        super().__init__(store, name, StoryWriter(store, name, model, _zoned(clock) if clock else _now), model)
        self._live = LiveIndex(store, name) if live is None else live
        self._reranking = reranking

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str] = ":memory:",
        bank: str = "default",
        *,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] | None = None,
        create: bool = True,
        verify_model: bool = True,
        reranking: Reranking | None = None,
    ) -> Self:
        """Open a bank. It comes into being with its first memory.

        Args:
            place: path of an SQLite file, `:memory:`, or a URL: `sqlite:///…`, `postgresql://…`.
            bank: its name: 1 to 200 printable characters. Banks in one database never mix.
            embedder: the embedding model; None for the default one, which loads when the first vector is needed and is
                shared by all banks of the process.
            clock: gives the present time with its zone; None for the computer's clock.
            create: make the file and its tables when they are not there.
            verify_model: False opens a bank of another model as well, to look at it, to tidy it up or to `reembed`
                it; what needs the model raises `ModelMismatchError` then.
            reranking: the cross-encoder of the ranking `reranked`, with its deadline.

        Raises:
            InvalidInputError: an argument is not what it should be.
            ModelMismatchError: the bank's vectors come from another model; the message names both, and the command.
            StorageError: the database cannot be opened, or is not one of this program.
        """
        from memorybank.storage import open_store

        inputs.checked_id(bank, what="the bank's name")
        store = open_store(place, create=create)
        try:
            opened = cls(store, bank, embedder=embedder, clock=clock, reranking=reranking)
            if verify_model:
                opened._model.verify(bank)
        except BaseException:
            store.close()
            raise
        return opened

    def __repr__(self) -> str:
        return f"MemoryBank({self._store!r}, {self.name!r}, embedder={self._model!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database. Nothing has to be saved; further calls raise `StorageError`."""
        self._store.close()

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        max_tokens: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        min_similarity: float | None = None,
        ranking: str = DEFAULT_RANKING,
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        explain: bool = False,
        retellings: bool = False,
    ) -> Results:
        """Return the active memories that fit a query best, best first (SPEC.md sections 4 and 9).

        Equal ones stand in the order of storing. The answer is exact: no index may lose a neighbour.

        Args:
            query: a text; only whitespace finds nothing. Of a very long one, `inputs.MAX_TEXT` characters are read.
            limit: at most so many results, 1 to 10,000. None is 10, or with `max_tokens` as many as fit.
            max_tokens: take results in their order while they fit into so many tokens; one that does not fit is
                passed over. A memory costs the tokens of its text and a line end. 1,000 are looked at.
            count_tokens: counts the tokens of a text; None counts those of o200k_base.
            min_similarity: leave out what is less similar, from -1 to 1.
            ranking: `hybrid`: by meaning and by words, the cosine of the embeddings and BM25 fused; `semantic`, the
                cosine alone; or `reranked`, for which the bank must be opened with `reranking`: a cross-encoder reads
                the best of `hybrid`, as far as its deadline allows.
            recent: the texts before the query, oldest first, as a weaker part of it: at most 16, and of each the last
                2,000 characters.
            pinned_first: put all pinned memories before the others, however similar they are.
            explain: give the parts of each score by name.
            retellings: say of each result which others of the answer tell nearly the same and are newer, or pinned.

        Returns:
            At most `limit` results; `rank` is the place in the whole ranking, so ranks passed over are missing.

        Raises:
            InvalidInputError: an argument is not what it should be.
            NoRerankerError: `reranked` was asked for, and there is no cross-encoder.
            ModelError: the query could not be embedded.
            ModelMismatchError: the bank was moved to another model meanwhile.
            StorageError: the database could not be read.
        """
        if not isinstance(query, str):
            raise InvalidInputError(f"query must be a string, not {type(query).__name__}")
        usual = DEFAULT_LIMIT if max_tokens is None else LAST_POOL
        question = Question(
            limit=usual if limit is None else inputs.checked_limit(limit),
            ranking=self._possible(checked_ranking(ranking)),
            min_similarity=None if min_similarity is None else inputs.checked_similarity(min_similarity),
            pinned_first=inputs.checked_flag(pinned_first, what="pinned_first"),
            explain=inputs.checked_flag(explain, what="explain"),
            retellings=inputs.checked_flag(retellings, what="retellings"),
            recent=inputs.checked_recent(recent),
        )
        budget = None if max_tokens is None else inputs.checked_tokens(max_tokens)
        text = clean(query)[: inputs.MAX_TEXT]
        if not text or self._live.is_empty():
            return []
        return answer(
            self._live,
            self._model,
            text,
            question,
            max_tokens=budget,
            count_tokens=count_tokens,
            reranking=self._reranking,
        )

    def _possible(self, ranking: str) -> str:
        """Return the ranking; raise `NoRerankerError` if it needs a cross-encoder and there is none."""
        if ranking == RERANKED and self._reranking is None:
            raise NoRerankerError(
                "the ranking 'reranked' needs a cross-encoder, and there is none: open the bank with reranking=…, or "
                "give the command, or `serve`, one with --reranker"
            )
        return ranking

    def reembed(self, embedder: Embedder | None = None, *, progress: Progress | None = None) -> int:
        """Compute all vectors anew, with another model or with the same: all or none.

        Others may read and write meanwhile; those that use the old model are then told so by `ModelMismatchError`.

        Args:
            embedder: the model that the bank has from now on; None for the one in use.
            progress: called with (texts embedded, texts in all) as the work goes on.

        Returns:
            The number of memories.
        """
        from memorybank.bank.reembedding import reembed

        model = embedder if embedder is not None else self._model.embedder()
        number = reembed(self._store, self.name, model, progress)
        self._model.use(model)
        return number

    def check(self) -> CheckReport:
        """Prove that database and index agree: the same memories, equal vectors of length 1, sound rows and file."""
        from memorybank.bank.checking import check

        return check(self._store, self._live, self.name)


def _now() -> datetime:
    return datetime.now(UTC)


def _zoned(clock: Callable[[], datetime]) -> Callable[[], datetime]:
    def now() -> datetime:
        moment = clock()
        if moment.tzinfo is None:
            raise InvalidInputError("the clock must give times with a zone: use datetime.now(UTC)")
        return moment.astimezone(UTC)

    return now
