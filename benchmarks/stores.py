"""Adding, searching and deleting memories in this project's bank and in other stores, on the same vectors."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import Progress, Recorder, silent
from benchmarks.peers import PeerFailedError, PeerMissingError, PeerTooSlowError
from benchmarks.peers.process import versions_of
from benchmarks.stores_contest import IN_BANKS, IN_ONE, RACES, Contest
from benchmarks.stores_inputs import Inputs
from benchmarks.stores_ratios import RATIO, compare

__all__ = ["FULL", "OURS", "QUICK", "Parameters", "measure"]

CACHED = (
    "files in the system's cache; queries are new each time, and two go before those that count; no store waits for an "
    "embedding: vectors come from a file in some microseconds. `first answer` is a fresh process from its start, "
    "imports included. In `cold`, no bank was searched before by that process; in `warm`, each was once"
)
OURS = "memorybank"
ABOUT = {
    OURS: "a write is on disk (fsync) when its call returns; search is exact; a bank is a bank",
    "mem0": "its FAISS store, cosine, exact; it writes its whole index and all texts after every call, without fsync, "
    "so it is filled by one call; banks are told apart by `user_id`, as documented, which this store looks at only "
    "after the nearest 2 k of all users were taken",
    "chroma": "a write is in its SQLite file when its call returns; HNSW, cosine, as it comes; a bank is a collection",
    "txtai": "its default index (FAISS, IVF from 5,000 on, trained on 5 % of a million) with content; a write is in "
    "files after `save`, which writes all of the bank without fsync and is part of `add one` and `delete one`; "
    "a bank is an index of its own, as its SQL filters after the nearest were taken",
    "lancedb": "a write is in new files when its call returns, without fsync; up to 100,000 rows it compares with all, "
    "above with an IVF-PQ index and a refine factor of 10; banks are a column with an index, filtered before the "
    "search; they are filled together, in batches of 50,000 rows",
}


@dataclass(frozen=True)
class Parameters:
    """What is measured; see README.md.

    Attributes:
        stores: names of the scripts `peers/scripts/store_NAME.py`; a peer that is not installed is left out.
        sizes: memories in one bank.
        banks: how many banks there are, ascending.
        each: memories in each of them.
        dimensions: width of the vectors.
        words: of a memory's text.
        searches: repetitions.
        writes: repetitions of adding one memory, searching and deleting it.
        fill_seconds: a filling that takes longer is not finished.
        patience: seconds after which a filling is given up that would take longer at the rate so far.
        row_seconds: of repetitions in one row; what is then done counts, once at the least.
    """

    stores: tuple[str, ...] = tuple(ABOUT)
    sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000)
    banks: tuple[int, ...] = (100, 1_000, 10_000)
    each: int = 200
    dimensions: int = 384
    words: int = 45
    searches: int = 100
    writes: int = 20
    fill_seconds: float = 400.0
    patience: float = 20.0
    row_seconds: float = 15.0


FULL = Parameters()
QUICK = Parameters(sizes=(100, 1_000), banks=(5,), each=20, searches=5, writes=3, fill_seconds=20.0, row_seconds=3.0)


def measure(parameters: Parameters = FULL, progress: Progress = silent) -> Recorder:
    """Drive each store through the same steps, one after another, each in processes of its own."""
    recorder = Recorder(cached=CACHED, across=("memories", "banks"))
    with tempfile.TemporaryDirectory(prefix="benchmark-stores-") as name:
        progress("making the vectors")
        inputs = Inputs(Path(name) / "inputs", parameters)
        for store in _present(parameters, recorder):
            contest = Contest(recorder, inputs, store, _environment(store), Path(name) / "store")
            for size in parameters.sizes:
                progress(f"{store}, {size:,} memories")
                contest.one_bank(size)
            progress(f"{store}, up to {max(parameters.banks, default=0):,} banks of {parameters.each}")
            contest.many_banks(parameters.banks)
    compare(recorder, OURS, {name: RACES[name] for name in IN_ONE if name in RACES})
    compare(recorder, OURS, {name: RACES[name] for name in IN_BANKS if name in RACES}, f"{RATIO}, in many banks")
    unfinished = recorder.unfinished(store=OURS)
    recorder.values("rows that ours did not finish", [unfinished], "rows")
    recorder.target("ours finishes every row", 1.0, "rows that ours did not finish")
    return recorder


def _environment(store: str) -> str | None:
    return None if store == OURS else store


def _present(parameters: Parameters, recorder: Recorder) -> list[str]:
    """Return the stores that are installed, and note what each is, and which are missing."""
    present = []
    for store in parameters.stores:
        try:
            versions = versions_of(_environment(store), f"store_{store}")
        except (PeerMissingError, PeerFailedError, PeerTooSlowError) as error:
            recorder.note(f"Not measured: {store}. {error}.")
            continue
        recorder.note(
            f"{store} ({', '.join(f'{name} {number}' for name, number in versions.items())}): {ABOUT[store]}."
        )
        present.append(store)
    return present
