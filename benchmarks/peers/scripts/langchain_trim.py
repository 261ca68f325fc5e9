"""LangChain's `trim_messages`: the newest messages that fit, with two ways to give it the counts.

`list`: a counter of a list of messages, which encodes each of them anew, as its documentation shows. `cached`: a
counter of one message that remembers; LangChain sums it up. Runs in the environment `langchain`.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, trim_messages
from serving import serve, timed
from vocabulary import Counter

_counter = Counter("o200k_base")
_messages: list[BaseMessage] = []
_known: dict[str, int] = {}


def _count_list(messages: list[BaseMessage]) -> int:
    return sum(len(_counter(message.content + "\n")) for message in messages)


def _count_cached(message: BaseMessage) -> int:
    text = message.content
    count = _known.get(text)
    if count is None:
        count = _known[text] = len(_counter(text + "\n"))
    return count


# The kind of a counter is read from this very object; a quoted annotation is taken for that of a list.
_count_cached.__annotations__["message"] = BaseMessage
_COUNTERS = {"list": _count_list, "cached": _count_cached}


def _trim(counter: str, size: int) -> list[BaseMessage]:
    return trim_messages(_messages, max_tokens=size, token_counter=_COUNTERS[counter], strategy="last")


def handle(work: dict[str, Any]) -> Any:
    """Take a log (`texts`), or play turns: one new message each, then `trim_messages`."""
    if "texts" in work:
        _messages[:] = map(HumanMessage, work["texts"])
        _known.clear()
        return len(_messages)
    times: dict[str, list[float]] = {}
    calls, kept = [], []
    for text in work["new"]:
        _messages.append(HumanMessage(text))
        before = _counter.calls
        kept.append(timed(lambda: len(_trim(work["counter"], work["size"])), times))
        calls.append(_counter.calls - before)
    return {"times": times, "calls": calls, "kept": kept}


serve(handle, ["langchain-core", "tiktoken"])
