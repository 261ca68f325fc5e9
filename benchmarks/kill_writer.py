"""The child of `kills`: imports everything once, then forks a writer for each line of its input (place, round).

A writer changes a bank for ever and says of each change, once the call has returned, that it is done: that is the
acknowledgement. The parent learns the writer's process id, kills it, and reads how it ended.
"""

from __future__ import annotations

import os
import sys
from itertools import count

import memorybank.bank.writer
import memorybank.search.index  # noqa: F401 - what a writer would load is loaded once, before it is forked
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder


def write(place: str, round_: str) -> None:
    """Add, edit, delete and search, and say what was acknowledged."""
    bank = MemoryBank.open(place, embedder=HashingEmbedder())
    for number in count():
        id_ = f"r{round_}-{number}"
        bank.add_many(
            [{"id": id_, "text": f"round {round_} number {number}"}, {"id": f"{id_}b", "text": f"twin {id_}"}]
        )
        _say("add", id_)
        if number % 3 == 2:
            bank.edit(id_, text=f"edited {id_}")
            _say("edit", id_)
        if number % 5 == 4:
            bank.delete(id_, f"{id_}b")
            _say("delete", id_)
        if number % 7 == 6:
            bank.search(f"round {round_}")


def main() -> None:
    """Fork the writers, one after the other."""
    for line in sys.stdin:
        place, round_ = line.split()
        writer = os.fork()
        if not writer:
            write(place, round_)
        _say("pid", writer)
        _, status = os.waitpid(writer, 0)
        _say("ended", os.waitstatus_to_exitcode(status))


def _say(word: str, value: object) -> None:
    """Say it in one piece: two processes speak into the same pipe, and `print` may hand over word by word."""
    os.write(1, f"{word} {value}\n".encode())


if __name__ == "__main__":
    main()
