"""Makes the graphs: torch writes down what a model of sentence-transformers does, ONNX Runtime takes it to 8 bits."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memorybank.embedding.loaded import Loaded
from memorybank.embedding.onnx import ENCODED
from memorybank.embedding.tokenizing import opened
from memorybank.errors import ModelError

__all__ = ["quantise", "refuse", "tokenizer_text", "trace"]

OPSET = 17
EXAMPLE = ["A wolf howls.", "At night, the wolf howled over the snow."]
"""Two lengths, so that what is written down has a batch that is filled up."""


def refuse(name: str, model: Any) -> None:
    """Say why a model of sentence-transformers cannot be exported, if it cannot.

    Raises:
        ModelError: it asks for something that is not in the graph.
    """
    tokenizer = model.tokenizer
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        reason = "its tokenizer has no tokenizer.json"
    elif tokenizer.padding_side != "right":
        reason = "its batches are filled up at the left"
    elif unknown := set(_inputs(model)) - set(ENCODED):
        reason = f"it takes {', '.join(sorted(unknown))}"
    elif any(getattr(module, "include_prompt", True) is False for module in model):
        reason = "it leaves prompts out when it pools"
    else:
        return
    raise ModelError(f"the embedding model '{name}' cannot be exported: {reason}. torch runs it as before")


def tokenizer_text(model: Any) -> str:
    """Return the content of a `tokenizer.json` for the tokenizer that the model really uses.

    Without what a call leaves behind in it: how far the last batch was filled up, and where it was cut off.
    """
    return str(opened(model.tokenizer.backend_tokenizer.to_str()).to_str())


def trace(name: str, loaded: Loaded, graph: Path) -> None:
    """Write the whole model, pooling and all, as an ONNX graph.

    Raises:
        ModelError: torch cannot do that.
    """
    import torch

    class Whole(torch.nn.Module):  # type: ignore[misc]
        """From word pieces to vectors."""

        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(loaded.model)

        def forward(self, *given: Any) -> Any:
            features: dict[str, Any] = dict(zip(inputs, given, strict=True))
            for part in self.parts:
                features = part(features)
            return features["sentence_embedding"]

    inputs = _inputs(loaded.model)
    loaded.model.to("cpu")
    example = loaded.model.tokenizer(EXAMPLE, padding=True, return_tensors="pt")
    free = {one: {0: "texts", 1: "pieces"} for one in inputs} | {"vectors": {0: "texts"}}
    try:
        with _quiet(), torch.no_grad():
            torch.onnx.export(
                # In training a model forgets at random; what is wrapped anew is in training.
                Whole().eval(),
                tuple(example[one] for one in inputs),
                str(graph),
                input_names=inputs,
                output_names=["vectors"],
                dynamic_axes=free,
                opset_version=OPSET,
                dynamo=False,  # needs no further package, and four seconds where the newer way needs thirteen
            )
    except Exception as error:  # whatever a model makes of torch's tracing
        raise ModelError(
            f"the embedding model '{name}' cannot be exported ({type(error).__name__}: {error}). "
            f"torch runs it as before"
        ) from error


def quantise(source: Path, graph: Path) -> None:
    """Write a graph anew with weights of 8 bits.

    They use 7 of them: processors without VNNI add pairs of products in 16 bits, where 8 would overflow (measured: the
    smallest cosine to torch's vectors is 0.979 and not 0.957 there), and a bank may move from one to the other.
    """
    with _quiet():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(source, graph, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)


def _inputs(model: Any) -> list[str]:
    return [str(one) for one in model.tokenizer.model_input_names]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep remarks for developers of exporters from the user, and from turning logging on."""
    silent = logging.NullHandler()
    root = logging.getLogger()
    root.addHandler(silent)
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.setLevel(level)
        root.removeHandler(silent)
