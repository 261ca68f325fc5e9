"""Which embedding models there are, where their files lie, and whether these are the published ones.

Reads `manifest.toml` and directories; loads no model and makes no connection (`hub.download` alone does).
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memorybank.embedding import hub
from memorybank.embedding.profile import ModelInfo, Package, Profile, of_directory
from memorybank.errors import InvalidInputError, ModelError

__all__ = ["ModelInfo", "Package", "Profile", "find", "how_to_get", "known", "locate", "models", "verify"]


@cache
def known() -> tuple[Profile, ...]:
    """Return the models of the manifest, in its order."""
    text = resources.files("memorybank.embedding").joinpath("manifest.toml").read_text(encoding="utf-8")
    return tuple(_profile(entry) for entry in tomllib.loads(text)["model"])


def find(model: str) -> Profile:
    """Return the profile of a name in the manifest, a directory, or a name on the hub.

    Raises:
        InvalidInputError: `model` is empty or not a string.
        ModelError: `model` looks like a directory and is none, or it is one without a model in it.
    """
    if not isinstance(model, str) or not model.strip() or "\0" in model:
        raise InvalidInputError(f"the embedding model must be a name or a directory, not {model!r}")
    for profile in known():
        if model in (profile.name, profile.hub):
            return profile
    directory = Path(model).expanduser()
    if directory.is_dir():
        return of_directory(model, directory)
    if directory.is_absolute() or model[0] in ".~" or model.count("/") > 1 or "\\" in model:
        raise ModelError(f"the embedding model '{model}' looks like a directory, and there is none of that name")
    # A bare name is looked for where sentence-transformers looks for it.
    return Profile(name=model, hub=model if "/" in model else f"sentence-transformers/{model}")


def locate(profile: Profile) -> Path | None:
    """Return the directory of the model's files on this machine, or None. Makes no connection."""
    if profile.directory is not None:
        return profile.directory
    if profile.package is not None and (directory := _inside(profile.package)) is not None:
        return directory
    return hub.snapshot(profile.hub, profile.revision) if profile.hub is not None else None


def models() -> list[ModelInfo]:
    """Return the models of the manifest and whether each works here and now, with no network."""
    return [_info(profile, locate(profile)) for profile in known()]


def verify(profile: Profile, directory: Path) -> None:
    """Check that the files are the published ones.

    Raises:
        ModelError: a file is missing or another one; the message names it, both hashes, and the way out.
    """
    for name, published in profile.sha256.items():
        try:
            with (directory / name).open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"{profile.name}: cannot read {directory / name} ({error}). {_remedy(profile)}") from error
        if actual != published:
            raise ModelError(
                f"{profile.name}: {directory / name} is not the published file: its sha256 is {actual}, "
                f"the published one is {published}. {_remedy(profile)}"
            )


def _remedy(profile: Profile) -> str:
    if profile.package is not None:
        return f"Install it anew: pip install --force-reinstall --no-deps {profile.package.pip}"
    return "Delete that directory, so that it is downloaded anew"


def _profile(entry: Mapping[str, Any]) -> Profile:
    package = Package(**entry["package"]) if "package" in entry else None
    # A packaged model never asks the network: where its package is missing, the error says what to install.
    return Profile(**{**entry, "package": package, "download": package is None})


def _inside(package: Package) -> Path | None:
    spec = find_spec(package.module)
    for root in (spec.submodule_search_locations or []) if spec is not None else []:
        directory = Path(root) / package.folder
        if directory.is_dir():
            return directory
    return None


def _info(profile: Profile, directory: Path | None) -> ModelInfo:
    where = str(directory) if directory is not None else how_to_get(profile)
    return ModelInfo(
        profile.name,
        profile.dimensions,
        profile.max_tokens,
        profile.licence,
        profile.languages,
        directory is not None,
        where,
    )


def how_to_get(profile: Profile) -> str:
    """Return in words how the files of a model that is not on this machine are had."""
    if profile.package is not None:
        return f"pip install {profile.package.pip}"
    return f"downloaded from the Hugging Face hub ({profile.hub}) on first use; needs the internet once"
