"""From the weights on this machine to an ONNX file in the user's cache, compared with torch before it may be used.

It takes some ten seconds, once for each set of weights, and is never done unasked: it writes a file as large as the
weights and needs a gigabyte of memory meanwhile, which nobody expects of a search.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memorybank.embedding import registry
from memorybank.embedding.cache import cache_folder
from memorybank.embedding.exported import (
    LEAST_COSINE,
    Export,
    Precision,
    export_folder,
    find_export,
    sha256_of,
    source_of,
)
from memorybank.embedding.loaded import Loaded
from memorybank.embedding.local import LocalEmbedder, model_files
from memorybank.embedding.onnx import INT8_SUFFIX, OnnxEmbedder, load_graph, probed
from memorybank.embedding.onnx_graphs import quantise, refuse, tokenizer_text, trace
from memorybank.embedding.registry import Profile
from memorybank.embedding.sentence_transformer import SentenceTransformerEmbedder
from memorybank.errors import InvalidInputError, ModelError
from memorybank.memory import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorybank.embedding.port import Kind

__all__ = ["TEXTS", "export_onnx"]

NEEDED = ("torch", "sentence_transformers", "onnx", "onnxruntime")
LIBRARIES = ("torch", "transformers", "sentence-transformers", "onnx", "onnxruntime", "tokenizers")
MAKING = ".making-"
ABANDONED = 3600
"""Seconds after which a folder that an export was made in belongs to a process that was killed."""

SENTENCES = (
    "Mara hid the silver key under the chapel floor, and nobody saw her.",
    "You once pulled a thorn from Fenrir's paw; the wolf has not forgotten.",
    "Die Königin schloß das Tor, ehe der Schnee kam.",
    "La nave è salpata all'alba senza il capitano.",
    "Işık söndü ve İlkyarın kıyıda yalnız kaldı.",
    "La clé d'argent est tombée dans le puits.",
    "El lobo cruzó el río helado con la niña a cuestas.",
    "Волк вышел из леса и лёг у ворот.",
    "Ο βασιλιάς πέθανε στον ύπνο του.",
    "狼在夜里嚎叫，村民们点起了火把。",
    "夜になると、古い灯台に明かりがともった。",
    "늑대가 울자 마을 사람들이 횃불을 들었다.",
    "أغلقت الملكة البوابة قبل أن يأتي الثلج.",
)
ODD = ("", " \n\t ", ".", "a", "I", "42", "???", "😀🐺", "[CLS] [SEP] <|endoftext|>", "e\u0301" * 30, "x" * 300)
TEXTS = (*SENTENCES, *ODD, *(" ".join(SENTENCES[:count]) for count in (3, 5, 8)), " ".join(SENTENCES * 3))
"""What both have to read alike: several languages, hardly anything, and texts of one window and of more."""


def export_onnx(
    model: str,
    *,
    int8: bool = False,
    force: bool = False,
    on_wait: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> list[tuple[Path, Export]]:
    """Export a model and compare the result with torch; what is there already is left as it is.

    Args:
        model: as for `open_embedder`.
        int8: make the graph with weights of 8 bits too; a name that ends in `+int8` asks for it as well.
        force: make them anew.
        on_wait: told, in words for people, before something that takes seconds.
        progress: told how many steps of how many are done.

    Returns:
        For each graph its folder and its record.

    Raises:
        InvalidInputError: the cache is off, so there is no place for it; or the model is run by its own package.
        ModelError: the model cannot be had or exported, a package is missing, or the vectors are not near enough.
    """
    root = cache_folder()
    if root is None:
        raise InvalidInputError("MEMORYBANK_CACHE is off, so there is no place for an export: let it name a folder")
    profile = registry.find(model.removesuffix(INT8_SUFFIX))
    if profile.package is not None and profile.package.runs:
        raise InvalidInputError(f"{profile.name} is run by the package that it comes with and needs no export")
    wanted: list[Precision] = ["fp32", "int8"] if int8 or model.endswith(INT8_SUFFIX) else ["fp32"]
    found = {} if force else {one: there for one in wanted if (there := _present(profile, one)) is not None}
    missing = [one for one in wanted if one not in found]
    if missing:
        _require_packages(profile)
        found |= _Work(profile, root, on_wait, progress).make(missing)
    return [found[one] for one in wanted]


class _Work:
    """One export, step by step."""

    def __init__(
        self, profile: Profile, root: Path, on_wait: Callable[[str], None] | None, progress: Progress | None
    ) -> None:
        self._profile = profile
        self._root = root
        self._on_wait = on_wait or (lambda _: None)
        self._progress = progress or (lambda _done, _total: None)
        self._done = self._steps = 0

    def make(self, precisions: list[Precision]) -> dict[Precision, tuple[Path, Export]]:
        """Make these graphs in a folder of their own, and put each in its place once it has been compared."""
        source = source_of(self._profile, model_files(self._profile, self._on_wait)) or {}
        folder = export_folder(self._root, source)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clean(folder)
        self._steps = 1 + 2 * len(precisions)
        self._progress(0, self._steps)
        torch = SentenceTransformerEmbedder(self._profile, on_wait=self._on_wait)
        loaded = torch.load()
        refuse(self._profile.name, loaded.model)
        self._step()
        made = {}
        with tempfile.TemporaryDirectory(dir=folder, prefix=MAKING, ignore_cleanup_errors=True) as making:
            for precision in precisions:
                self._graph(precision, loaded, folder, Path(making))
                export = self._compared(precision, torch, source, Path(making))
                _put(export, Path(making), folder)
                made[precision] = (folder, export)
        return made

    def _step(self) -> None:
        self._done += 1
        self._progress(self._done, self._steps)

    def _graph(self, precision: Precision, loaded: Loaded, folder: Path, making: Path) -> None:
        self._on_wait(f"exporting {self._profile.name} to ONNX, {precision} …")
        (making / "tokenizer.json").write_text(tokenizer_text(loaded.model), encoding="utf-8")
        if precision == "fp32":
            trace(self._profile.name, loaded, making / "fp32.onnx")
        else:
            quantise(folder / "fp32.onnx", making / "int8.onnx")
        self._step()

    def _compared(self, precision: Precision, torch: LocalEmbedder, source: dict[str, str], making: Path) -> Export:
        self._on_wait(f"comparing its vectors of {len(TEXTS)} texts with those of torch …")
        draft = _draft(precision, self._profile, torch.load(), source, making)
        export = replace(draft, probes=probed(load_graph(making, draft)))
        least, largest = _agreement(torch, OnnxEmbedder(self._profile, making, export))
        self._step()
        if not least >= LEAST_COSINE[precision]:
            raise ModelError(
                f"the {precision} export of {self._profile.name} is not used: the smallest cosine of its vectors to "
                f"those of torch is {least:.6f}, and must be {LEAST_COSINE[precision]}. torch runs it as before"
            )
        return replace(export, least_cosine=least, largest_difference=largest, texts=len(TEXTS))


def _draft(precision: Precision, profile: Profile, loaded: Loaded, source: dict[str, str], making: Path) -> Export:
    """Return the record without what comparing finds."""
    files = (f"{precision}.onnx", "tokenizer.json")
    pad = loaded.model.tokenizer.pad_token_id
    return Export(
        precision=precision,
        model=profile.name,
        source=source,
        sha256={name: sha256_of(making / name) for name in files},
        dimensions=loaded.dimensions,
        limit=loaded.limit,
        prompts=loaded.prompts,
        pad_id=0 if pad is None else int(pad),
        probes="",
        texts=0,
        least_cosine=0.0,
        largest_difference=0.0,
        versions={name: version(name) for name in LIBRARIES},
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _agreement(torch: LocalEmbedder, other: LocalEmbedder) -> tuple[float, float]:
    """Return the smallest cosine and the largest difference of `TEXTS`, as queries too if these have another prefix."""
    import numpy as np

    profile = torch.profile
    one = profile.query_prefix is not None and profile.query_prefix == profile.passage_prefix
    kinds: tuple[Kind, ...] = ("passage",) if one else ("passage", "query")

    def both(embedder: LocalEmbedder) -> NDArray[np.float64]:
        return np.concatenate([embedder.embed(TEXTS, kind=kind) for kind in kinds]).astype(np.float64)

    theirs, ours = both(torch), both(other)
    cosines = (theirs * ours).sum(axis=1) / np.linalg.norm(theirs, axis=1) / np.linalg.norm(ours, axis=1)
    return float(cosines.min()), float(np.abs(theirs - ours).max())


def _present(profile: Profile, precision: Precision) -> tuple[Path, Export] | None:
    """Return an export that is there and whole; a damaged one is made anew."""
    try:
        found = find_export(profile, precision)
        sound = found is not None and all(sha256_of(found[0] / name) == said for name, said in found[1].sha256.items())
    except (ModelError, OSError):
        return None
    return found if sound else None


def _put(export: Export, making: Path, folder: Path) -> None:
    """Move a graph to its place. Who looks meanwhile finds no record, and so no export."""
    record = f"{export.precision}.json"
    (folder / record).unlink(missing_ok=True)
    for name in export.sha256:
        (making / name).replace(folder / name)
    export.write(making)
    (making / record).replace(folder / record)


def _clean(folder: Path) -> None:
    for left in folder.glob(f"{MAKING}*"):
        if time.time() - left.stat().st_mtime > ABANDONED:
            shutil.rmtree(left, ignore_errors=True)


def _require_packages(profile: Profile) -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ModelError(f"exporting {profile.name} needs {' and '.join(missing)}: pip install 'story-context[model]'")
