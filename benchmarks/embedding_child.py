"""The child of `embedding`: loads the model by one backend in a fresh process, and prints what everything took."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

PIECES = "by pieces"

Bare = Callable[[Sequence[str]], None]


def main(folder: Path, backend: str, parameters: dict[str, Any]) -> None:
    """Measure one backend; nothing is imported before the clock runs."""
    begun = time.perf_counter()
    from memorybank.embedding import open_embedder

    embedder: Any = open_embedder(backend=backend, cache=None)  # type: ignore[arg-type]
    loaded = embedder.load()
    ready = time.perf_counter()
    embedder.embed(["Where is the silver key?"], kind="query")
    found: dict[str, Any] = {"load": ready - begun, "first": time.perf_counter() - ready}
    from benchmarks.memory import peak, resident

    found["loaded_mib"] = resident()
    found["queries"] = list(_queries(embedder, parameters["queries"]))
    ways = dict(_bare(loaded, embedder, parameters["batches"]))
    found["rates"] = _rates(ways, _texts("sample", parameters["sample"], parameters["words"]))
    if parameters["memories"]:
        best = ways[max(found["rates"], key=found["rates"].__getitem__)]
        found |= _adding(embedder, best, parameters)
    if parameters["compared"]:
        _keep(embedder, folder / f"{backend}.npy", parameters["compared"])
    print(json.dumps(found | {"peak_mib": peak()}))


def _texts(seed: str, count: int, words: int) -> list[str]:
    from benchmarks.story import Writer

    writer = Writer(f"embedding/{seed}")
    return [writer.text(max(8, min(120, writer.skewed(words)))) for _ in range(count)]


def _queries(embedder: Any, count: int) -> Iterator[tuple[float, float]]:
    from benchmarks.measuring import Timer

    timer = Timer()
    for number in range(count):
        timer.time(partial(embedder.embed, [f"Who hid the silver key of room {number}?"], kind="query"))
    return zip(timer.wall, timer.cpu, strict=True)


def _bare(loaded: Any, embedder: Any, batches: Sequence[int]) -> Iterator[tuple[str, Bare]]:
    """Give each way to run the model alone on texts, by its name."""
    if not hasattr(loaded.model, "run"):
        for size in batches:
            yield str(size), partial(loaded.model.encode, batch_size=size)
        yield PIECES, lambda texts: loaded.encode(sorted(texts, key=len), "")
        return
    from memorybank.embedding.onnx import filled
    from memorybank.embedding.tokenizing import opened

    tokenizer = opened((loaded.directory / "tokenizer.json").read_text(encoding="utf-8"), limit=loaded.limit)
    inputs = [one.name for one in loaded.model.get_inputs()]

    def run(texts: Sequence[str], *, size: int) -> None:
        for start in range(0, len(texts), size):
            read = [tokenizer.encode(text) for text in texts[start : start + size]]
            loaded.model.run(None, filled(read, inputs, embedder.export.pad_id))

    for size in batches:
        yield str(size), partial(run, size=size)
    if embedder.export.precision == "fp32":
        yield PIECES, lambda texts: loaded.encode(list(texts), "")


def _rate(work: Callable[[Sequence[str]], object], texts: Sequence[str]) -> float:
    """Return texts in a second."""
    begun = time.perf_counter()
    work(texts)
    return len(texts) / (time.perf_counter() - begun)


def _rates(ways: dict[str, Bare], texts: list[str]) -> dict[str, float]:
    """Return the best of two rounds for each way."""
    ordered = sorted(texts, key=len)
    rounds = [{name: _rate(way, ordered) for name, way in ways.items()} for _ in range(2)] if texts else []
    return {name: max(one[name] for one in rounds) for name in rounds[0]} if rounds else {}


def _adding(embedder: Any, bare: Bare, parameters: dict[str, Any]) -> dict[str, list[float]]:
    """Add memories to a bank in a file, chunk by chunk, in turn with the bare model."""
    from memorybank import MemoryBank
    from memorybank.embedding.cache import CachedEmbedder, VectorCache

    texts = _texts("memories", parameters["memories"], parameters["words"])
    chunks = [texts[start : start + parameters["chunk"]] for start in range(0, len(texts), parameters["chunk"])]
    rates: dict[str, list[float]] = {"adding": [], "bare": []}
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-adding-") as folder,
        VectorCache(Path(folder) / "vectors.sqlite") as cache,
        MemoryBank.open(Path(folder) / "bank.sqlite", embedder=CachedEmbedder(embedder, cache)) as bank,
    ):
        for number, chunk in enumerate(chunks):
            turns: list[tuple[str, Callable[[Sequence[str]], object], Sequence[str]]] = [
                ("adding", bank.add_many, chunk),
                ("bare", bare, sorted(chunk, key=len)),
            ]
            for name, work, given in turns if number % 2 else reversed(turns):
                rates[name].append(_rate(work, given))
    return rates


def _keep(embedder: Any, file: Path, count: int) -> None:
    import numpy as np

    from benchmarks.story import LANGUAGES, Writer

    writers = [Writer(f"compared/{name}", name) for name in LANGUAGES]
    texts = [writers[number % len(writers)].text(1 + number * number % 400) for number in range(count)]
    np.save(file, embedder.embed(texts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
