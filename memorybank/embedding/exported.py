"""The ONNX files that were exported from a model's weights: where they lie, and which of them may be used.

In the user's cache folder (`cache.cache_folder`), `onnx/KEY/` holds what comes from one set of files; KEY is half of a
sha256 over the sha256 of the weights and of all else that decides the vectors, so other weights never use it. In it,
`fp32.onnx` and `int8.onnx` are graphs from word pieces to vectors, `tokenizer.json` is the tokenizer, and beside each
graph a record (`fp32.json`) says what it was made from, how near its vectors are to those of torch, and with which
versions. The record is written last: without one, there is no export.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal, get_args

from memorybank.embedding import registry
from memorybank.embedding.cache import cache_folder
from memorybank.embedding.registry import Profile
from memorybank.errors import ModelError

__all__ = ["LEAST_COSINE", "Export", "Precision", "export_folder", "find_export", "remedy", "sha256_of", "source_of"]

Precision = Literal["fp32", "int8"]
"""`fp32` has the vectors of torch to 1e-6; `int8` has weights of 7 bits, and so vectors of its own."""

LEAST_COSINE: Mapping[Precision, float] = {"fp32": 0.9999, "int8": 0.95}
"""How near to torch's each vector of a test must be, for a file to be used."""

FORMAT = "onnx-export/1"
WEIGHTS = (".safetensors", ".bin")
DECIDING = ("*.json", "*.txt", "*.model", *(f"*{suffix}" for suffix in WEIGHTS))
"""Files of a model's directory that have a part in its vectors."""


@dataclass(frozen=True, slots=True)
class Export:
    """One exported graph: the content of its record.

    Attributes:
        precision: of its weights.
        model: the name of the model when it was made.
        source: the sha256 of the files it was made from, by name, and the revision of the model if there is one.
        sha256: of the graph and the tokenizer, by name.
        dimensions: width of a vector.
        limit: longest input in word pieces with the special ones; None when there is no limit.
        prompts: what the model itself says to put before texts, by kind.
        pad_id: the word piece that fills a batch up.
        probes: what it makes of `onnx.PROBES`, so that another processor or library that makes something else of them
            is noticed: base64 of little-endian float32.
        texts: texts with which it was compared with torch.
        least_cosine: the smallest cosine of a vector to that of torch.
        largest_difference: the largest difference in any component of unit vectors.
        versions: of the libraries with which it was made.
        made: when, in UTC.
        format: of this record.
    """

    precision: Precision
    model: str
    source: Mapping[str, str]
    sha256: Mapping[str, str]
    dimensions: int
    limit: int | None
    prompts: Mapping[str, str]
    pad_id: int
    probes: str
    texts: int
    least_cosine: float
    largest_difference: float
    versions: Mapping[str, str]
    made: str
    format: str = FORMAT

    @property
    def graph(self) -> str:
        """Name of the file with the graph."""
        return f"{self.precision}.onnx"

    def write(self, folder: Path) -> None:
        """Write the record into a folder."""
        said = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / f"{self.precision}.json").write_text(said + "\n", encoding="utf-8")


def export_folder(root: Path, source: Mapping[str, str]) -> Path:
    """Return where in the cache folder the exports of these files lie."""
    key = hashlib.sha256(repr(sorted(source.items())).encode()).hexdigest()
    return root / "onnx" / key[:32]


def find_export(profile: Profile, precision: Precision) -> tuple[Path, Export] | None:
    """Return the folder and the record of a model's export; None when there is none. The graph itself is not read.

    Raises:
        ModelError: the record is damaged, or was made from other files.
    """
    root = cache_folder()
    if root is None or not (root / "onnx").is_dir():
        return None
    source = source_of(profile, registry.locate(profile))
    if source is None:
        return None
    folder = export_folder(root, source)
    if not (folder / f"{precision}.json").is_file():
        return None
    export = _read(profile, folder / f"{precision}.json")
    if export.source != source or export.precision != precision:
        raise ModelError(f"{folder / export.graph} was not made from the files of {profile.name}: {remedy(export)}")
    if not export.least_cosine >= LEAST_COSINE[precision]:
        raise ModelError(f"{folder / export.graph} differs from the model by {export.least_cosine}: {remedy(export)}")
    return folder, export


def remedy(export: Export) -> str:
    """Return in words how an export that cannot be used is made anew."""
    int8 = " --int8" if export.precision == "int8" else ""
    return f"make it anew with `memorybank export-onnx --force{int8} {export.model}`"


def source_of(profile: Profile, directory: Path | None) -> dict[str, str] | None:
    """Return the sha256 of the files that decide a model's vectors, by name; None when it is not on this machine.

    For a model whose weights have a published sha256 that is taken: `registry.verify` has compared them before an
    export. Files of other models are read, which takes about a second for a gigabyte.
    """
    revision = {} if profile.revision is None else {"revision": profile.revision}
    if any(name.endswith(WEIGHTS) for name in profile.sha256):
        return {**profile.sha256, **revision}
    if directory is None:
        return None
    files = sorted({path for pattern in DECIDING for path in directory.rglob(pattern) if path.is_file()})
    names = [path.relative_to(directory) for path in files]
    named = {name.as_posix(): directory / name for name in names if name.parts[0] not in ("onnx", "openvino")}
    return {**{name: sha256_of(path) for name, path in named.items()}, **revision}


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(profile: Profile, path: Path) -> Export:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        export = Export(**{one.name: said[one.name] for one in fields(Export)})
        if said["format"] != FORMAT or export.precision not in get_args(Precision):
            raise ValueError(f"its format is {said['format']}, not {FORMAT}")
        return export
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} cannot be used ({type(error).__name__}: {error}): make it anew with "
            f"`memorybank export-onnx --force {profile.name}`"
        ) from error
