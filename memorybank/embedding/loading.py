"""A model's files to a model in memory: the one place that imports sentence-transformers (and so torch)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybank.embedding.loaded import BATCH, PIECES, Loaded, steps
from memorybank.embedding.registry import Profile
from memorybank.embedding.tokenizing import pieces_by, pieces_by_length
from memorybank.embedding.windows import Pieces
from memorybank.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["load", "quiet"]


def load(profile: Profile, directory: Path) -> Loaded:
    """Load the model in `directory`, with no connection to anywhere.

    Raises:
        ModelError: sentence-transformers is missing, the files are no model, or its vectors have another width than
            the profile says.
    """
    model = _open(profile.name, directory)
    # Renamed in sentence-transformers 6.
    width = int((getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension)())
    if profile.dimensions not in (None, width):
        raise ModelError(
            f"the embedding model '{profile.name}' in {directory} gives vectors of width {width}, "
            f"but its files say {profile.dimensions}"
        )
    pieces = _pieces_of(model)
    encode = _encoder(model, pieces, width)
    return Loaded(encode, pieces, model.max_seq_length, width, directory, dict(model.prompts or {}), BATCH, model)


def _encoder(model: Any, pieces: Pieces, width: int) -> Callable[[list[str], str], NDArray[np.float32]]:
    import numpy as np

    def step(texts: list[str], prefix: str) -> NDArray[np.float32]:
        found: NDArray[np.float32] = model.encode(
            texts, prompt=prefix, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True
        )
        return found

    def encode(texts: list[str], prefix: str) -> NDArray[np.float32]:
        if model.device.type != "cpu":
            return step(texts, prefix)
        out = np.empty((len(texts), width), dtype=np.float32)
        for places in steps([len(pieces(prefix + text)) for text in texts], PIECES):
            out[places] = step([texts[place] for place in places], prefix)
        return out

    return encode


def _open(name: str, directory: Path) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ModelError(
            f"the embedding model '{name}' needs sentence-transformers, which cannot be imported ({error}). "
            f"Install it: pip install 'sentence-transformers>=5'"
        ) from error
    try:
        with quiet():
            model = SentenceTransformer(str(directory), local_files_only=True)
    except Exception as error:  # whatever a broken model directory makes of torch, transformers and safetensors
        raise ModelError(
            f"the embedding model '{name}' in {directory} cannot be loaded ({type(error).__name__}: {error})"
        ) from error
    model.eval()
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing a progress bar over the program's own output."""
    logging: Any = import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _pieces_of(model: Any) -> Pieces:
    """Return the model's tokenizer as offsets, on a copy of its own: the model's is changed by every call."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        return pieces_by_length
    model.tokenizer.split_special_tokens = True  # what a player types is text, also "[CLS]"
    return pieces_by(backend.to_str())
