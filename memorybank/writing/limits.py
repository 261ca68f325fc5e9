"""Waiting no longer than one wants to for work that cannot be stopped: a leaf, the standard library only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["TimeIsUpError", "within"]

T = TypeVar("T")


class TimeIsUpError(Exception):
    """The work was not done in time. It may still be going on."""


def within(seconds: float, work: Callable[[], T], abort: Callable[[], None] | None = None) -> T:
    """Return what `work()` returns, or raise what it raises, within `seconds`.

    It runs in a thread of its own, which does not keep the program from ending: no time limit of a library covers all
    that can hang, such as looking up a host's name.

    Args:
        seconds: how long to wait.
        work: what to do.
        abort: called when the time is up, or when the wait is broken off; makes the work end soon.

    Raises:
        TimeIsUpError: it was not done in time.
    """
    done = threading.Event()
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:  # raised again where the result is wanted
            outcome["error"] = error
        finally:
            done.set()

    threading.Thread(target=run, name="memorybank-writer", daemon=True).start()
    finished = False
    try:
        finished = done.wait(min(max(0.0, seconds), threading.TIMEOUT_MAX))
    finally:
        if not finished and abort is not None:
            abort()
    if not finished:
        raise TimeIsUpError
    if "error" in outcome:
        raise outcome["error"]
    result: T = outcome["result"]
    return result
