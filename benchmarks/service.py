"""Searches over HTTP: how many in a second, and how long each takes, for one client and for many, over 1,000 banks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.http_load import Call, Load, load, serving
from benchmarks.measuring import Progress, Recorder, silent
from benchmarks.story import Writer
from benchmarks.vectors import StubEmbedder
from memorybank import NewMemory
from memorybank.host import BankHost

__all__ = ["FULL", "QUICK", "Parameters", "fill", "measure"]

CACHED = (
    "the database's pages in the system's cache; the indexes of the banks that were searched before, as in service; no "
    "vector of a query: every query is a new text. Clients and server share the machine's cores"
)


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        models: embedding models; the first is a hash of the words, which costs nothing, so that the service itself is
            what is measured.
        clients: how many at once.
        banks: among which each call chooses.
        memories: in each bank.
        words: of a memory's text.
        seconds: of load for each number of clients.
    """

    models: tuple[str, ...] = ("hashing-384", "all-MiniLM-L6-v2")
    clients: tuple[int, ...] = (1, 8, 32, 128)
    banks: int = 1_000
    memories: int = 200
    words: int = 45
    seconds: float = 15.0


FULL = Parameters()
QUICK = Parameters(models=("hashing-384",), clients=(1, 4), banks=5, memories=10, seconds=1.0)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Fill a database for each model, serve it, and search."""
    recorder = Recorder(cached=CACHED, across="clients")
    for model in parameters.models:
        with tempfile.TemporaryDirectory(prefix="benchmark-service-") as folder:
            file = Path(folder) / "banks.sqlite"
            progress(f"filling {parameters.banks:,} banks for {model}")
            fill(file, model, parameters.banks, parameters.memories, parameters.words)
            with serving(str(file), "--model", model) as server:
                for clients in parameters.clients:
                    progress(f"{clients} clients, {model}")
                    _measure_one(recorder, parameters, server.port, model, clients)
                recorder.values("resident memory", [server.resident_mib()], "MiB", model=model)
    recorder.target("no search fails", 1.0, "searches not answered 200")
    recorder.target("/healthz in under 50 ms (median) under any load", 50.0, "/healthz meanwhile")
    return recorder


def _measure_one(recorder: Recorder, parameters: Parameters, port: int, model: str, clients: int) -> None:
    writer = Writer(f"queries/{model}/{clients}")

    def search(client: int, number: int) -> Call:
        bank = (client * 7_919 + number * 104_729) % parameters.banks
        return "POST", f"/v1/banks/bank{bank}/search", {"query": f"{writer.text(20)} {client} {number}", "limit": 10}

    load(port, clients, parameters.seconds / 5, search)  # the first searches build the indexes
    found = load(port, clients, parameters.seconds, search)
    factors = {"model": model, "clients": clients}
    _note(recorder, found, factors)


def _note(recorder: Recorder, found: Load, factors: dict[str, object]) -> None:
    ordered = sorted(found.milliseconds)
    recorder.values("searches in a second", [len(ordered) / found.seconds], "1/s", **factors)
    for name, values in (("a search", found.milliseconds), ("/healthz meanwhile", found.health)):
        recorder.values(name, values, "ms", **factors)
    recorder.values("99th percentile of a search", [ordered[int(0.99 * (len(ordered) - 1))]], "ms", **factors)
    failed = sum(number for status, number in found.statuses.items() if status != 200)
    recorder.values("searches not answered 200", [failed], "searches", **factors)


def fill(file: Path, model: str, banks: int, memories: int, words: int) -> None:
    """Make banks whose vectors look like the model's and come from a stub: only their number and width matter here."""
    stub = StubEmbedder(384)
    stub.name = model
    writer = Writer("service")
    texts = [writer.text(words) for _ in range(memories)]
    with BankHost.open(file, embedder=stub) as host:
        for number in range(banks):
            host.bank(f"bank{number}").add_many(NewMemory(f"{text} ({number})") for text in texts)
