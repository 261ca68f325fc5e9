"""LangChain's `trim_messages`: the newest messages that fit. Runs in the environment `langchain`.

It can be given the counts in several ways. `list`: a counter of a list of messages, which encodes each of them anew, as
its documentation shows. `cached`: a counter of one message that remembers, which LangChain sums up. `approximate`: its
own estimate, which it recommends where speed matters. `alone`: as `cached`, without the line end behind each message.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, trim_messages
from serving import serve
from turns import play
from vocabulary import Counter

_counters = {name: Counter(name) for name in ("o200k_base", "cl100k_base")}
_messages: list[BaseMessage] = []
_ready: dict[str, Any] = {}


class _Counts:
    """The ways to count with one encoding.

    The annotations are objects and not strings: by them LangChain tells a counter of one message from one of a list.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}
        self.ways = {"list": self._list, "approximate": "approximate", "cached": self._of("\n"), "alone": self._of("")}

    def _list(self, messages: list[BaseMessage]) -> int:
        return sum(len(self._counter(message.content + "\n")) for message in messages)

    def _of(self, end: str) -> Any:
        known, counter = self._known, self._counter

        def count(message: BaseMessage) -> int:
            text = message.content + end
            found = known.get(text)
            if found is None:
                found = known[text] = len(counter(text))
            return found

        count.__annotations__["message"] = BaseMessage
        return count


def handle(work: dict[str, Any]) -> Any:
    """Take a log, make ready for turns on it with one way of counting, or play them."""
    if "log" in work:
        _messages[:] = map(HumanMessage, work["log"])
        return len(_messages)
    counter = _counters[work.get("encoding", "o200k_base")]
    if "new" in work:
        return play(_ready["turn"], work, counter)
    way = _Counts(counter).ways[work["way"]]
    messages = list(_messages)

    def turn(text: str) -> list[BaseMessage]:
        messages.append(HumanMessage(text))
        return trim_messages(messages, max_tokens=work["size"], token_counter=way, strategy="last")

    _ready["turn"] = turn
    return None


def _warm_up() -> None:
    """Let the library and the tokenizers do what they do once in a process."""
    for counter in _counters.values():
        for way in _Counts(counter).ways.values():
            trim_messages([HumanMessage("Once.")], max_tokens=100, token_counter=way, strategy="last")


_warm_up()
serve(handle, ["langchain-core", "tiktoken"])
