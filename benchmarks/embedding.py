"""The embedding model run by torch, by ONNX Runtime, and with weights of 8 bits: start, speed, memory, agreement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import ROOT, THREADS
from benchmarks.measuring import Progress, Recorder, Timer, silent

__all__ = ["FULL", "QUICK", "Parameters", "measure"]

CACHED = (
    "all files in the system's cache; no vector of a text: each backend has a vector cache of its own that begins "
    "empty, and queries are new each time. Threads are as a user has them: OMP_NUM_THREADS and the like are taken out "
    "of the environment"
)
BARE = (
    "The bare model is the tokenizer and the model alone (`encode` of sentence-transformers, `run` of ONNX Runtime), "
    "on texts sorted by length; `by pieces` puts as many texts into a step as have 384 pieces, filled up ones too."
)
PAIRS = (
    "Adding memories and the bare model in its best batch size take turns on the same texts, so that what else the "
    "machine does falls on both; `time of adding` is the one's time divided by the other's."
)


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        backends: what runs the model.
        starts: fresh processes of each, for what a start costs.
        queries: repetitions of embedding one query.
        sample: texts with which the batch sizes are compared.
        batches: batch sizes; those above the first with which a backend gets slower tell little.
        memories: how many are added to a bank.
        chunk: of them in one `add_many`.
        words: of a memory's text, in the mean.
        compared: texts whose vectors are compared with those of torch.
    """

    backends: tuple[str, ...] = ("torch", "onnx", "onnx-int8")
    starts: int = 5
    queries: int = 100
    sample: int = 400
    batches: tuple[int, ...] = (1, 8, 32, 64)
    memories: int = 10_000
    chunk: int = 1_000
    words: int = 35
    compared: int = 300


FULL = Parameters()
QUICK = Parameters(starts=1, queries=5, sample=24, batches=(1, 32), memories=64, chunk=32, compared=9)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Export the model, and measure each backend in processes of its own."""
    recorder = Recorder(cached=CACHED, across="backend")
    recorder.note(BARE)
    recorder.note(PAIRS)
    with tempfile.TemporaryDirectory(prefix="benchmark-embedding-") as name:
        folder = Path(name)
        progress("exporting")
        begun = time.perf_counter()
        _run(folder, "-m", "memorybank", "export-onnx", "--int8")
        recorder.values("export, both precisions", [time.perf_counter() - begun], "s", backend="all")
        for backend in parameters.backends:
            progress(backend)
            _measure_one(recorder, parameters, backend, folder)
        _compare(recorder, parameters, folder)
    recorder.target("a memory is added in 1 / 0.9 of the bare model's time", 1 / 0.9, "time of adding")
    recorder.target("ONNX agrees with torch to 0.9999", 1e-4, "1 - smallest cosine to torch", backend="onnx")
    return recorder


def _measure_one(recorder: Recorder, parameters: Parameters, backend: str, folder: Path) -> None:
    short = {"queries": 1, "sample": 0, "memories": 0, "compared": 0}
    starts = [_child(folder, backend, vars(parameters) | short) for _ in range(parameters.starts)]
    whole = _child(folder, backend, dict(vars(parameters)))
    for name in ("load", "first"):
        recorder.values(name, [1000 * one[name] for one in starts], "ms", backend=backend)
    recorder.values("resident memory, loaded", [one["loaded_mib"] for one in starts], "MiB", backend=backend)
    recorder.values("peak of resident memory, after all", [whole["peak_mib"]], "MiB", backend=backend)
    queries = Timer()
    for wall, cpu in whole["queries"]:
        queries.note(wall, cpu)
    recorder.times("a query", queries, backend=backend)
    for batch, rate in whole["rates"].items():
        recorder.values("bare model, texts in a second", [rate], "1/s", batch=batch, backend=backend)
    recorder.values("adding, memories in a second", whole["adding"], "1/s", backend=backend)
    recorder.values("bare model meanwhile, texts in a second", whole["bare"], "1/s", backend=backend)
    ratios = [bare / adding for bare, adding in zip(whole["bare"], whole["adding"], strict=True)]
    recorder.values("time of adding", ratios, "times", backend=backend)


def _compare(recorder: Recorder, parameters: Parameters, folder: Path) -> None:
    """Compare with torch's vectors; texts are in three languages, of 1 to 400 words."""
    vectors = {one: np.load(folder / f"{one}.npy").astype(np.float64) for one in parameters.backends}
    for backend in parameters.backends:
        cosines = (vectors[backend] * vectors["torch"]).sum(axis=1)
        recorder.values("1 - smallest cosine to torch", [max(0.0, 1 - cosines.min())], "", backend=backend)
        recorder.values("1 - cosine to torch", [max(0.0, 1 - one) for one in cosines], "", backend=backend)


def _child(folder: Path, backend: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        _run(folder, "-m", "benchmarks.embedding_child", str(folder), backend, json.dumps(parameters))
    )
    return found


def _run(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    environment |= {"MEMORYBANK_CACHE": str(folder), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
