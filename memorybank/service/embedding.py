"""The embedder of the service: vectors that are known come from the cache, all others from the one embedding thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memorybank.embedding import Embedder, Kind, open_embedder
from memorybank.embedding.cache import CachedEmbedder, VectorCache, default_cache
from memorybank.embedding.port import fingerprint_of
from memorybank.errors import MemoryBankError
from memorybank.service.batching import MAX_QUEUED, BatchingEmbedder
from memorybank.service.state import phase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorybank.host import BankHost
    from memorybank.search.reranking import Reranking
    from memorybank.service.settings import ServiceSettings

__all__ = ["ServiceEmbedder", "load_reranker", "open_service_host"]

log = logging.getLogger(__name__)

LONGEST_PAUSE = 60.0
"""Seconds between two tries to load a model that does not load."""


class ServiceEmbedder:
    """What all banks of a service share.

    Args:
        embedder: the model.
        cache: where vectors are kept; None keeps none.
        max_queued: texts that may wait for the model.

    Attributes:
        batching: what embeds the texts that are not in the cache.
        asked: texts asked for since the start.
        missed: those of them that were not in the cache.
    """

    def __init__(self, embedder: Embedder, *, cache: VectorCache | None = None, max_queued: int = MAX_QUEUED) -> None:
        self.batching = BatchingEmbedder(embedder, max_queued=max_queued)
        self._embedder: Embedder = self.batching if cache is None else CachedEmbedder(_Missed(self), cache)
        self.has_cache = cache is not None
        self.asked = self.missed = 0
        self._counting = threading.Lock()
        self._ended = threading.Event()

    def __repr__(self) -> str:
        return f"ServiceEmbedder({self._embedder!r})"

    @property
    def name(self) -> str:
        """As the model."""
        return self.batching.name

    @property
    def dimensions(self) -> int:
        """As the model."""
        return self.batching.dimensions

    @property
    def fingerprint(self) -> str:
        """As the model."""
        return self.batching.fingerprint

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """As `BatchingEmbedder.embed`; measured as a phase of the request."""
        with phase("embed"):
            self.count(asked=len(texts))
            return self._embedder.embed(texts, kind=kind)

    def count(self, *, asked: int = 0, missed: int = 0) -> None:
        """Add to the numbers."""
        with self._counting:
            self.asked += asked
            self.missed += missed

    def warm_up(self) -> None:
        """Load the model in the background, and try again for as long as that fails."""
        threading.Thread(target=self._load, name="memorybank-warm-up", daemon=True).start()

    def close(self) -> None:
        """Let the threads end."""
        self._ended.set()
        self.batching.close()

    def _load(self) -> None:
        pause = 1.0
        while not self._ended.is_set():
            try:
                self.batching.embed(["The server is getting ready."], kind="query")
                return
            except MemoryBankError as error:
                if self._ended.is_set():
                    return
                log.error("the embedding model cannot be used, trying again in %.0f seconds: %s", pause, error)
            self._ended.wait(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)


class _Missed:
    """What the cache asks for the texts that it does not know."""

    def __init__(self, whole: ServiceEmbedder) -> None:
        self._whole = whole
        self.name = whole.batching.name

    @property
    def dimensions(self) -> int:
        return self._whole.batching.dimensions

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self._whole.batching)

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        self._whole.count(missed=len(texts))
        return self._whole.batching.embed(texts, kind=kind)


def open_service_host(settings: ServiceSettings) -> BankHost:
    """Open the database of the settings with their model; the model is not loaded yet.

    Raises:
        MemoryBankError: the model or the database cannot be had.
    """
    from memorybank.host import BankHost

    model = open_embedder(settings.model, backend=settings.backend, cache=None)
    cache = None if settings.model.startswith("hashing-") else default_cache()
    embedder = ServiceEmbedder(model, cache=cache, max_queued=settings.max_queued_texts)
    return BankHost.open(
        settings.db, embedder=embedder, index_bytes=settings.index_bytes, reranking=_reranking(settings)
    )


def _reranking(settings: ServiceSettings) -> Reranking | None:
    if settings.reranker is None:
        return None
    from memorybank.search.reranking import open_reranking

    return open_reranking(settings.reranker, seconds=settings.rerank_seconds)


def load_reranker(reranking: Reranking) -> None:
    """Load a cross-encoder in the background, so that the first searches need not wait for it."""

    def load() -> None:
        try:
            reranking.model.load()
        except Exception as error:  # a search goes without it, and it is tried again
            log.error("the reranker cannot be used: %s", error)

    threading.Thread(target=load, name="memorybank-reranker", daemon=True).start()
