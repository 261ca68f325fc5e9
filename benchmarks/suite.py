"""Which benchmarks there are, and how one is run: measured, described, written down."""

from __future__ import annotations

import dataclasses
import importlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.measuring import Progress, Recorder, silent

__all__ = ["RESULTS", "SUMMARIES", "run", "stored", "write"]

RESULTS = Path(__file__).resolve().parent / "results"

SUMMARIES = {
    "assembly": "one assemble() with counts cached, by context size and by length of the log",
    "assembly_peers": "the newest messages that fit: assemble() beside LangChain and LlamaIndex",
    "fidelity": "contexts over their limit and room left unused, in 10,000 random adventures for each tokenizer",
    "prefix": "how much of a prompt begins as on the turn before, by layout and anchor step, in a real campaign",
    "triggers": "building a trigger index and matching actions with it, beside one regular expression per key",
    "search": "MemoryBank.search beside the embedding, in banks of up to 100,000 memories",
    "stores": "adding, searching and deleting, beside mem0, Chroma, txtai and LanceDB, up to 1,000,000 memories",
    "embedding": "the embedding model run by torch and by ONNX Runtime: start, speed, memory, and adding memories",
    "quality": "which memories are found: by meaning, by words, by both; LoCoMo and a campaign, step by step",
    "multilingual": "which memories are found in English, Italian and Turkish, and across them, by embedding model",
    "service": "searches over HTTP, for one client and for many, over 1,000 banks",
    "soak": "a service under mixed load for half an hour, and its memory",
    "kills": "writing processes killed at random, and what is lost by it",
    "writers": "extractive memories against those that people wrote, and at being found again",
    "startup": "fresh processes from start to exit, and their memory",
}
"""The names, each that of a module here with `FULL`, `QUICK` and `measure`; one line on each."""


def run(name: str, *, quick: bool = False, parameters: Any = None, progress: Progress = silent) -> dict[str, Any]:
    """Run a benchmark and return what is written to `results/NAME.json`.

    Args:
        name: one of `SUMMARIES`.
        quick: use the benchmark's small parameters.
        parameters: use these (a `Parameters` of the benchmark's module) and neither its full nor its small ones.
        progress: told in words how far it is.
    """
    module = importlib.import_module(f"benchmarks.{name}")
    chosen = parameters or (module.QUICK if quick else module.FULL)
    described = machine.describe()
    recorder: Recorder = module.measure(chosen, progress)
    described["load_average"]["after"] = machine.load_average()
    return {
        "benchmark": name,
        "summary": SUMMARIES[name],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        **described,
        "parameters": dataclasses.asdict(chosen),
        **recorder.to_dict(),
    }


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write a result to its file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['benchmark']}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def stored(folder: Path) -> list[dict[str, Any]]:
    """Return the results in `folder`, in the order of `SUMMARIES`."""
    paths = [folder / f"{name}.json" for name in SUMMARIES]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]
