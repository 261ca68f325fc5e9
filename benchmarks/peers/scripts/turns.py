"""Turns of a game as a peer plays them: one new message each, then the newest that fit. Times and tokenizer calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from serving import timed
from vocabulary import Counter

__all__ = ["play"]


def play(turn: Callable[[str], list[Any]], work: dict[str, Any], counter: Counter) -> dict[str, Any]:
    """Play turns until there are no more new messages, or two were played and the time is up.

    Args:
        turn: takes a new message in and returns the messages that fit; each has its text in `content`.
        work: `new`, the texts; `seconds` after which no other turn is begun; `give`, whether to return the texts.
        counter: the tokenizer that the turn uses.
    """
    times: dict[str, list[float]] = {}
    answer: dict[str, Any] = {"times": times, "calls": [], "kept": [], "given": []}
    end = time.monotonic() + work["seconds"]
    for text in work["new"]:
        before = counter.calls
        messages = timed(partial(turn, text), times)
        answer["calls"].append(counter.calls - before)
        answer["kept"].append(len(messages))
        if work.get("give"):
            answer["given"].append([message.content for message in messages])
        if len(answer["kept"]) > 1 and time.monotonic() > end:
            break
    return answer
