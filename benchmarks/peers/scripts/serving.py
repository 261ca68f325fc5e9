"""The peer's end of `process.py`: reads work in lines of JSON, answers in lines of JSON, takes times.

Runs in a peer's environment and imports nothing of this project: `peers/process.py` starts it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

__all__ = ["serve", "timed"]


def serve(handle: Callable[[dict[str, Any]], Any], packages: Sequence[str]) -> None:
    """Answer every piece of work until there is no more.

    Args:
        handle: does one piece of work and returns JSON values.
        packages: the peer's packages; the first answer is their versions.
    """
    # What a library prints must not stand among the answers: from here on stdout is stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _write(answers, {"answer": {name: version(name) for name in packages}})
    for line in sys.stdin:
        try:
            answer = {"answer": handle(json.loads(line))}
        except Exception as error:  # whatever a peer raises is its answer
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        _write(answers, answer)


def _write(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def timed(work: Callable[[], Any], times: dict[str, list[float]]) -> Any:
    """Do the work once, add how long it took in milliseconds to `wall` and `cpu` of `times`, return its result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    wall_end, cpu_end = time.perf_counter(), time.process_time()
    times.setdefault("wall", []).append(1000 * (wall_end - wall))
    times.setdefault("cpu", []).append(1000 * (cpu_end - cpu))
    return result
