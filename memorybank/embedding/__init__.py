"""Texts to vectors: the embedder port, its kinds, and how one is opened by name.

::

    embedder = open_embedder()                      # all-MiniLM-L6-v2, from the installed package, no network
    embedder.embed(["The gate opens."]).shape       # (1, 384); loads the model on the first text that is not cached

Reading order: `port.py` (what an embedder is), `registry.py` over `profile.py` and `hub.py` (which models there are and
where they lie), `sentence_transformer.py` (the real one) with `windows.py` (long texts) and `loading.py`, `cache.py`
(no vector is computed twice), `testing.py` (an embedder without weights). Importing this package loads neither numpy
nor torch (SPEC.md section 10).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from memorybank.embedding.port import Embedder, Kind

if TYPE_CHECKING:
    from memorybank.embedding.cache import VectorCache

__all__ = ["DEFAULT_MODEL", "Embedder", "Kind", "default_embedder", "open_embedder"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
"""English, 384 wide; comes from PyPI with the extra `story-context[model]`, so it needs no model hub."""

_sharing = threading.Lock()


def open_embedder(
    model: str = DEFAULT_MODEL,
    *,
    cache: VectorCache | Literal["default"] | None = "default",
    on_wait: Callable[[str], None] | None = None,
) -> Embedder:
    """Return the embedder of a model. Nothing slow happens yet: the model is loaded when a vector is needed.

    Args:
        model: a name of `memorybank/embedding/manifest.toml`, a directory in the format of sentence-transformers,
            a name on the Hugging Face hub, or `hashing-N` (N dimensions, no weights: `testing.HashingEmbedder`).
        cache: where vectors are kept; "default" is one file in the user's cache directory, None keeps none.
        on_wait: told, in words for people, before something that takes seconds.

    Returns:
        An embedder for any number of threads. Its `dimensions` may load or even download the model when `model` is
        a hub name that is neither in the manifest nor on this machine; else it is known at once.

    Raises:
        InvalidInputError: `model` is empty or not a string.
        ModelError: `model` looks like a directory and is none, or it is one without a model in it.
    """
    from memorybank.embedding.cache import CachedEmbedder, default_cache
    from memorybank.embedding.registry import find
    from memorybank.embedding.sentence_transformer import SentenceTransformerEmbedder
    from memorybank.embedding.testing import HashingEmbedder, hashing_dimensions
    from memorybank.embedding.threads import set_thread_defaults

    if (width := hashing_dimensions(model)) is not None:
        return HashingEmbedder(width)
    set_thread_defaults()
    embedder = SentenceTransformerEmbedder(find(model), on_wait=on_wait)
    kept = default_cache() if cache == "default" else cache
    return embedder if kept is None else CachedEmbedder(embedder, kept)


def default_embedder() -> Embedder:
    """Return the embedder of the default model, the same one at every call: its weights are hundreds of megabytes."""
    with _sharing:
        return _shared()


@functools.cache
def _shared() -> Embedder:
    return open_embedder()
