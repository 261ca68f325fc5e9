"""Embedders that are slow, broken or stuck, and a server as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2

from memorybank.embedding.port import Kind
from memorybank.embedding.testing import HashingEmbedder

ROOT = Path(__file__).parents[2]
LONG = 60.0
"""Seconds for which tests wait for what should happen at once: the machine may be busy."""


class GatedEmbedder(HashingEmbedder):
    """Works only while its gate is open; `entered` is set as soon as somebody waits there."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.steps: list[tuple[tuple[str, ...], Kind]] = []

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> Any:
        self.steps.append((tuple(texts), kind))
        self.entered.set()
        assert self.gate.wait(LONG), "the test never opened the gate"
        return super().embed(texts, kind=kind)


class PoisonedEmbedder(HashingEmbedder):
    """Fails on texts with the word poison in them, however many others come along."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.error = error or RuntimeError("the tensor is on the wrong device")

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> Any:
        if any("poison" in text for text in texts):
            raise self.error
        return super().embed(texts, kind=kind)


class Server:
    """`memorybank serve` (or `assembler serve`, or a program that ends in either) on a free port of this machine."""

    def __init__(
        self,
        database: Path | str,
        *flags: object,
        program: str = "memorybank",
        code: str | None = None,
        model: str = "hashing-64",
    ) -> None:
        python = [sys.executable, "-W", "error", *(["-m", program] if code is None else ["-c", code])]
        command = [*python, "serve", "--db", database, "--port", 0, "--json", "--model", model, *flags]
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT,
        )
        # The pipe of stderr is read all the time: a full one would stop the server.
        self.log: list[str] = []
        assert self.process.stderr is not None
        self._reader = threading.Thread(target=self.log.extend, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.end(9)
        self.said = json.loads(line)
        self.url: str = self.said["url"]

    def client(self, **options: Any) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=LONG, trust_env=False, **options)

    def wait_until_ready(self) -> Server:
        with self.client() as client:
            for _ in range(600):
                if client.get("/readyz").status_code == 200:
                    return self
                threading.Event().wait(0.1)
        raise AssertionError(f"not ready: {self.end(9)}")

    def end(self, number: int = 15) -> tuple[int, list[str]]:
        """Send a signal, wait for the end, and return exit code and log."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(LONG)
        self._reader.join(LONG)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code, self.log
