"""The embedder that runs an exported graph with ONNX Runtime: the vectors of torch, without torch.

It is ready in less than a second and has less than half of torch's memory. `onnx_export.py` makes the graph.
"""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybank.embedding.exported import Export, remedy, sha256_of
from memorybank.embedding.loaded import BATCH, PIECES, Loaded, steps
from memorybank.embedding.local import LocalEmbedder
from memorybank.embedding.registry import Profile
from memorybank.embedding.threads import inference_threads
from memorybank.embedding.tokenizing import opened, pieces_by
from memorybank.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

__all__ = ["ENCODED", "INT8_SUFFIX", "PROBES", "OnnxEmbedder", "filled", "load_graph", "probed"]

log = logging.getLogger(__name__)

INT8_SUFFIX = "+int8"
"""Ends the name of a model with weights of 8 bits: its vectors are not those of the model. No hub name has a plus."""

ENCODED = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""What of a tokenizer's answer goes into which input of the graph."""

PROBES = ("A wolf howls.", "Mara hid the silver key under the chapel floor; nobody saw her.", "Où est la clé ? 哈哈")
SAME = 0.9999
"""Cosine between a probe's vectors here and where the graph was exported."""


class OnnxEmbedder(LocalEmbedder):
    """A model of sentence-transformers, exported to ONNX and run on the processor, behind the `Embedder` port.

    Vectors of `fp32` are those of `SentenceTransformerEmbedder` to 1e-6, so name, fingerprint and kept vectors are the
    same, and a bank can be used with either. Those of `int8` are near (a cosine of about 0.99) and not the same, so
    that model has a name of its own. For how texts are read, see `LocalEmbedder`.

    Args:
        profile: what the registry knows of the model.
        folder: where the export lies.
        export: its record.
        fallback: what loads the model when the graph turns out to be unusable; None makes that an error.
        on_wait: told, in words for people, before something that takes seconds, and why the fallback is used.
    """

    def __init__(
        self,
        profile: Profile,
        folder: Path,
        export: Export,
        *,
        fallback: LocalEmbedder | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        own = replace(profile, name=profile.name + INT8_SUFFIX) if export.precision == "int8" else profile
        super().__init__(own, on_wait=on_wait)
        self.folder = folder
        self.export = export
        self._fallback = fallback
        self._inherited: list[Loaded] = []

    def renew(self) -> None:
        """Load anew in a forked child: the threads of the runtime are not there, and to free it would wait for them."""
        super().renew()
        if self._loaded is not None and self._loaded.directory == self.folder:
            self._inherited.append(self._loaded)
            self._loaded = None

    def _open(self) -> Loaded:
        try:
            loaded = load_graph(self.folder, self.export)
            _check_probes(self.folder, self.export, loaded)
            return loaded
        except ModelError as error:
            if self._fallback is None:
                raise
            log.warning("%s; torch runs the model instead", error)
            self._on_wait(f"{error}; torch runs the model instead")
            return self._fallback.load()


def load_graph(folder: Path, export: Export) -> Loaded:
    """Load an exported graph, once its files are those of the record.

    Raises:
        ModelError: ONNX Runtime is missing, or a file is missing, another one, or no graph.
    """
    try:
        for name, wanted in export.sha256.items():
            if sha256_of(folder / name) != wanted:
                raise ModelError(f"{folder / name} is damaged (its sha256 is another): {remedy(export)}")
        session = _session(folder / export.graph)
        text = (folder / "tokenizer.json").read_text(encoding="utf-8")
        tokenizer = opened(text, limit=export.limit)
        pieces = pieces_by(text)
    except ImportError as error:
        raise ModelError(f"ONNX Runtime cannot be imported ({error}): pip install 'story-context[model]'") from error
    except ModelError:
        raise
    except Exception as error:  # those of the system and of two libraries that raise plain exceptions
        raise ModelError(
            f"{folder / export.graph} cannot be loaded ({type(error).__name__}: {error}): {remedy(export)}"
        ) from error
    encode = _encoder(session, tokenizer, export)
    return Loaded(encode, pieces, export.limit, export.dimensions, folder, dict(export.prompts), BATCH, session)


def probed(loaded: Loaded) -> str:
    """Return what a graph makes of `PROBES`, as a record keeps it."""
    return base64.b64encode(loaded.encode(list(PROBES), "").astype("<f4").tobytes()).decode()


def _session(graph: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = inference_threads()
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the cores from FAISS and numpy: see `set_thread_defaults`.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_mem_pattern = False  # it keeps a plan for every shape, and every batch has another
    options.log_severity_level = 3  # errors; they are raised as well
    return onnxruntime.InferenceSession(os.fspath(graph), options, providers=["CPUExecutionProvider"])


def _encoder(session: Any, tokenizer: Tokenizer, export: Export) -> Callable[[list[str], str], NDArray[np.float32]]:
    import numpy as np

    inputs = [one.name for one in session.get_inputs()]
    # A graph with weights of 8 bits finds the range of its numbers in all that a step has, so that what stands beside a
    # text would change its vector (measured: down to a cosine of 0.98). Each text has a step of its own.
    most = 0 if export.precision == "int8" else PIECES

    def encode(texts: list[str], prefix: str) -> NDArray[np.float32]:
        # One by one: for a list, the tokenizer starts threads that a forked child would not have.
        read = [tokenizer.encode(prefix + text) for text in texts]
        out = np.empty((len(texts), export.dimensions), dtype=np.float32)
        for step in steps([len(one.ids) for one in read], most):
            out[step] = session.run(None, filled([read[place] for place in step], inputs, export.pad_id))[0]
        return out

    return encode


def filled(read: Sequence[Encoding], inputs: Sequence[str], pad_id: int) -> dict[str, NDArray[np.int64]]:
    """Return what the graph takes, each of shape (texts, word pieces of the longest), filled up at the right."""
    import numpy as np

    shape = (len(read), max(len(one.ids) for one in read))
    given = {name: np.full(shape, pad_id if name == "input_ids" else 0, dtype=np.int64) for name in inputs}
    for row, one in enumerate(read):
        for name in inputs:
            given[name][row, : len(one.ids)] = getattr(one, ENCODED[name])
    return given


def _check_probes(folder: Path, export: Export, loaded: Loaded) -> None:
    """Compare what the graph makes of `PROBES` here with what it made of them when it was exported.

    Raises:
        ModelError: it is something else.
    """
    import numpy as np

    then = np.frombuffer(base64.b64decode(export.probes), dtype="<f4").reshape(len(PROBES), -1).astype(np.float64)
    now = np.frombuffer(base64.b64decode(probed(loaded)), dtype="<f4").reshape(len(PROBES), -1).astype(np.float64)
    cosines = (then * now).sum(axis=1) / np.linalg.norm(then, axis=1) / np.linalg.norm(now, axis=1)
    if not cosines.min() >= SAME:
        raise ModelError(
            f"{folder / export.graph} gives other vectors here than where it was made (cosine {cosines.min():.4f}), "
            f"because of another processor or another version of ONNX Runtime: {remedy(export)}"
        )
