"""A process forked from one that has a bank open, as a preloading server does it, loses nothing and hangs nowhere."""

import os
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import multiprocessing, sys, threading
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder

bank = MemoryBank.open(sys.argv[1], embedder=HashingEmbedder())
bank.add("before the fork")
bank.search("fork")
closed = multiprocessing.get_context("fork").Event()

def child():
    closed.wait(20)
    for number in range(20):
        bank.add(f"child {number}")
    assert bank.search("child 7")[0].memory.text == "child 7"

if sys.argv[2] == "locked":
    held, go = threading.Event(), threading.Event()
    def hold():
        with bank._store._write_lock:
            held.set()
            go.wait(20)
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
if sys.argv[2] == "locked":
    go.set()
    thread.join()
bank.add("parent")
bank.close()
closed.set()
process.join(30)
assert process.exitcode == 0, process.exitcode
with MemoryBank.open(sys.argv[1], embedder=HashingEmbedder()) as again:
    print(again.count(), again.check().ok)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("engine", "state"),
    [("sqlite", "idle"), ("sqlite", "locked"), ("postgresql", "idle")],  # which has no lock of the process
    indirect=["engine"],
)
def test_a_forked_child_writes_to_the_same_database(database: Any, state: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(database), state],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("22 True\n", "", 0)
