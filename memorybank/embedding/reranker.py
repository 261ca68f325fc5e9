"""A cross-encoder of sentence-transformers as the `Reranker` of a search, loaded when it is first asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memorybank.embedding import hub
from memorybank.embedding.loading import quiet
from memorybank.errors import ModelError
from memorybank.forking import renew_after_fork

__all__ = ["CrossEncoderReranker", "open_reranker"]

TRY_AGAIN = 60.0
"""Seconds after a failure before it is tried again to load the model."""
MOST_TOKENS = 512
"""Word pieces of query and memory together; what is beyond is cut off."""


def open_reranker(model: str, *, on_wait: Callable[[str], None] | None = None) -> CrossEncoderReranker:
    """Return a cross-encoder, not loaded yet. There is none in any package: it is a folder, or comes from the hub once.

    Args:
        model: folder of a cross-encoder, or its name on the Hugging Face hub, as `cross-encoder/ms-marco-MiniLM-L6-v2`.
        on_wait: told what a caller waits for.

    Raises:
        ModelError: it is no name and no folder with a model.
    """
    folder = Path(model).expanduser()
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no cross-encoder: there is no config.json in it")
    if not folder.is_dir() and (model.count("/") != 1 or not all(model.split("/")) or model.startswith((".", "~"))):
        raise ModelError(f"{model!r} is no folder, and no name of a model on the hub (owner/name)")
    return CrossEncoderReranker(model, on_wait)


class CrossEncoderReranker:
    """Reads a query and a text together (Nogueira & Cho 2019); one search at a time, the others wait or do without.

    Attributes:
        name: the folder or the name that it was opened with.
    """

    def __init__(self, model: str, on_wait: Callable[[str], None] | None = None) -> None:
        self.name = model
        self._on_wait = on_wait or (lambda _: None)
        self._model: Any = None
        self._failed: tuple[float, ModelError] | None = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Drop a lock that another thread of the parent may have held when this process was forked."""
        self._lock, self._loading = threading.Lock(), threading.Lock()

    def __repr__(self) -> str:
        return f"CrossEncoderReranker({self.name!r})"

    def load(self) -> None:
        """Load the model, unless it is there; a name that is not on this machine is downloaded.

        Raises:
            ModelError: it cannot be had.
        """
        with self._loading:
            if self._model is not None:
                return
            if self._failed is not None and time.monotonic() < self._failed[0]:
                raise self._failed[1]  # at once: a try takes seconds, and each search would make one
            try:
                self._model = self._open()
            except ModelError as error:
                self._failed = time.monotonic() + TRY_AGAIN, error
                raise

    def scores(self, query: str, texts: Sequence[str], *, wait: float) -> list[float] | None:
        """Return how well each text answers the query; None when the model was not free for so long."""
        self.load()
        if not self._lock.acquire(timeout=max(0.0, wait)):
            return None
        try:
            pairs = [(query, text) for text in texts]
            found: list[float] = self._model.predict(pairs, batch_size=len(pairs), show_progress_bar=False).tolist()
            return found
        finally:
            self._lock.release()

    def _open(self) -> Any:
        folder = Path(self.name).expanduser()
        if not folder.is_dir():
            found = hub.snapshot(self.name, None)
            if found is None:
                self._on_wait(f"downloading the cross-encoder {self.name} …")
            folder = hub.download(self.name, None) if found is None else found
        self._on_wait(f"loading the cross-encoder {self.name} …")
        try:
            from sentence_transformers import CrossEncoder

            with quiet():
                model: Any = CrossEncoder(str(folder), max_length=MOST_TOKENS, local_files_only=True)
        except Exception as error:  # transformers, tokenizers, safetensors and torch each have their own
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ModelError(f"the cross-encoder in {folder} cannot be loaded: {reason}") from error
        if getattr(model, "num_labels", 1) != 1:
            raise ModelError(
                f"the cross-encoder in {folder} gives {model.num_labels} numbers for a pair, not one score"
            )
        return model
