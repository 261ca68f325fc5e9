"""One store taken through its steps, each in a limited time, and what came of it; the other side is `storing.py`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.measuring import Recorder
from benchmarks.peers import Peer, PeerFailedError, PeerTooSlowError
from benchmarks.peers.process import timer_of
from benchmarks.stores_inputs import Inputs

__all__ = ["ADD", "ADD_BANKS", "IN_BANKS", "IN_ONE", "RACES", "Contest", "NotDoneError"]

ADD, ADD_BANKS = "add in bulk", "add banks in bulk"
IN_ONE: Mapping[str, str] = {
    ADD: "memories/s",
    "disk": "bytes/memory",
    "first answer": "ms",
    "resident memory": "MiB",
    "resident memory for each memory": "bytes/memory",
    "search": "ms",
    "recall@10": "of the true 10, mean",
    "add one": "ms",
    "search after it": "ms",
    "delete one": "ms",
}
"""What is measured in one bank, in this order, and its unit."""
IN_BANKS: Mapping[str, str] = {
    ADD_BANKS: "banks/s",
    "search in a bank, cold": "ms",
    "search in a bank, warm": "ms",
    "recall@10 in a bank": "of the true 10, mean",
    "resident memory with many banks": "MiB",
    "add one to a bank": "ms",
    "delete one from a bank": "ms",
}
"""What is measured in many banks."""
RACES: Mapping[str, bool] = {
    name: name in (ADD, ADD_BANKS)
    for name in (*IN_ONE, *IN_BANKS)
    if not name.startswith("recall") and name != "resident memory"
}
"""The rows in which the stores are compared, and whether more is better."""
GRACE = 90.0
"""Seconds beyond a row's limit after which a store that does not answer is ended: one repetition may be under way."""
OPENING = 300.0
SMALL = 10_000
"""Memories below which the memory of a process is that of its libraries, and says nothing about a vector."""


class NotDoneError(Exception):
    """A step was not finished; the message is what stands in the table."""


class Contest:
    """One store on one folder, which is there from `begin` to the end of the block.

    Args:
        recorder: takes what is measured.
        inputs: what the store is given.
        store: its name.
        environment: where it is installed; None for the environment of this process.
        folder: where it puts its files; need not exist.
    """

    def __init__(self, recorder: Recorder, inputs: Inputs, store: str, environment: str | None, folder: Path) -> None:
        self._recorder = recorder
        self._inputs = inputs
        self._parameters = inputs.parameters
        self._store = store
        self._environment = environment
        self._folder = folder

    def one_bank(self, size: int) -> None:
        """Fill one bank, and measure what a user does with it."""
        with self._folder_made(), self._rows(IN_ONE, memories=size) as record:
            with self._process() as peer:
                self._open(peer)
                seconds = self._fill(peer, step="fill", start=0, stop=size)
                record[ADD] = [size / seconds]
                record["disk"] = [self._ask(peer, OPENING, step="close", folder=str(self._folder))["bytes"] / size]
            with self._process() as peer:
                self._first_answer(peer, size, record)
                self._search(peer, size, record)
                self._write(peer, None, record, ("add one", "search after it", "delete one"))

    def many_banks(self, counts: tuple[int, ...]) -> None:
        """Fill more and more banks, and search and write in some of them."""
        with self._folder_made():
            filled = 0
            for count in counts:
                with self._rows(IN_BANKS, banks=count) as record:
                    if filled < 0:
                        raise NotDoneError("not tried: fewer were too many")
                    start, filled = filled, -1
                    with self._process() as peer:
                        self._open(peer)
                        each = self._parameters.each
                        seconds = self._fill(peer, step="fill_banks", start=start, stop=count, each=each)
                        record[ADD_BANKS] = [(count - start) / seconds]
                        self._ask(peer, OPENING, step="close", folder=str(self._folder))
                    filled = count
                    with self._process() as peer:
                        self._banks(peer, count, record)

    def _banks(self, peer: Peer, count: int, record: dict[str, Any]) -> None:
        banks = self._inputs.some_banks(count)
        shares: list[float] = []
        self._open(peer)
        for kind, queries in zip(("cold", "warm"), self._inputs.two_rounds(), strict=True):
            answer = self._found(peer, queries[: len(banks)], [f"bank{bank}" for bank in banks])
            record[f"search in a bank, {kind}"] = timer_of(answer["times"])
            shares += self._inputs.recall_in_banks(queries, banks, answer["found"])
        record["recall@10 in a bank"] = [fmean(shares)]
        record["resident memory with many banks"] = [answer["resident"]]
        self._write(peer, banks, record, ("add one to a bank", "", "delete one from a bank"))

    def _first_answer(self, peer: Peer, size: int, record: dict[str, Any]) -> None:
        begun = time.perf_counter()
        before = self._open(peer)["resident"]
        answer = self._found(peer, self._inputs.warm_up[:1], None)
        record["first answer"] = [1000 * (time.perf_counter() - begun)]
        record["resident memory"] = [answer["resident"]]
        if size >= SMALL:
            record["resident memory for each memory"] = [(answer["resident"] - before) * 2**20 / size]

    def _search(self, peer: Peer, size: int, record: dict[str, Any]) -> None:
        self._found(peer, self._inputs.warm_up, None)
        answer = self._found(peer, self._inputs.queries, None)
        record["search"] = timer_of(answer["times"])
        record["recall@10"] = [fmean(self._inputs.recall(size, answer["found"]))]

    def _write(self, peer: Peer, banks: list[int] | None, record: dict[str, Any], names: tuple[str, str, str]) -> None:
        limit = self._parameters.row_seconds
        chosen = None if banks is None else [f"bank{bank}" for bank in banks[: len(self._inputs.spare)]]
        rows = self._inputs.spare if chosen is None else self._inputs.spare[: len(chosen)]
        answer = self._ask(peer, limit + GRACE, step="write", rows=rows, banks=chosen, limit=limit)
        for name, kind in zip(names, ("adding", "searching", "deleting"), strict=True):
            if name:
                record[name] = timer_of(answer[kind])
        for number, what in (
            (answer["missed"], "not found after it was added"),
            (answer["kept"], "found when deleted"),
        ):
            if number:
                self._recorder.note(f"{self._store}: a memory was {what}, {number} times of {len(rows)}.")

    def _open(self, peer: Peer) -> Any:
        return self._ask(peer, OPENING, step="open", folder=str(self._folder), inputs=str(self._inputs.folder))

    def _fill(self, peer: Peer, **work: Any) -> float:
        limit = self._parameters.fill_seconds
        answer = self._ask(peer, limit + GRACE, limit=limit, patience=self._parameters.patience, **work)
        if not answer["finished"]:
            raise NotDoneError(f"not finished in {answer['seconds']:.0f} s ({100 * answer['done']:.0f} % done)")
        return float(answer["seconds"])

    def _found(self, peer: Peer, queries: list[int], banks: list[str] | None) -> Any:
        limit = self._parameters.row_seconds
        return self._ask(peer, limit + GRACE, step="search", queries=queries, banks=banks, limit=limit)

    def _ask(self, peer: Peer, seconds: float, **work: Any) -> Any:
        try:
            return peer.ask(work, limit=seconds)
        except PeerTooSlowError as error:
            raise NotDoneError(f"not finished in {seconds:.0f} s") from error
        except PeerFailedError as error:
            self._recorder.note(f"{self._store}: {work['step']} failed: {error}.")
            raise NotDoneError("failed") from error

    def _process(self) -> Peer:
        return Peer(self._environment, f"store_{self._store}")

    @contextmanager
    def _folder_made(self) -> Iterator[None]:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        try:
            yield
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _rows(self, names: Mapping[str, str], **factors: Any) -> Iterator[dict[str, Any]]:
        """Give a place for what is measured, and record it at the end; what is missing then is recorded as such."""
        record: dict[str, Any] = {}
        why = ""
        try:
            yield record
        except NotDoneError as error:
            why = str(error)
        for name, unit in names.items():
            found = record.get(name)
            if isinstance(found, list):
                self._recorder.values(name, found, unit, store=self._store, **factors)
            elif found is not None:
                self._recorder.times(name, found, store=self._store, **factors)
            elif why:
                self._recorder.missing(name, why, unit, store=self._store, **factors)
