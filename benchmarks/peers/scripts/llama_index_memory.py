"""LlamaIndex's `ChatMemoryBuffer` and `Memory`: the newest messages that fit. Runs in the environment `llama_index`.

All messages have the role `user`, so that no rule about who speaks first takes messages away. `Memory` gets all of its
limit for history (`chat_history_token_ratio=1`) and flushes as little as it can at a time (`token_flush_size=1`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.memory.memory import get_default_chat_store
from llama_index.core.storage.chat_store.base_db import MessageStatus
from serving import serve
from turns import play
from vocabulary import Counter

_counters = {name: Counter(name) for name in ("o200k_base", "cl100k_base")}
_loop = asyncio.new_event_loop()  # one loop, as in a server; `Memory.put` would look for one in every call


def _message(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


class _Log:
    """A log as the two keep it; what one of them adds the other does not see."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._store: Any = None

    def buffer(self, size: int, counter: Counter) -> Any:
        """Return what plays a turn with a `ChatMemoryBuffer`."""
        memory = ChatMemoryBuffer.from_defaults(
            list(map(_message, self._texts)), token_limit=size, tokenizer_fn=counter
        )

        def turn(text: str) -> list[ChatMessage]:
            memory.put(_message(text))
            return memory.get()

        return turn

    def memory(self, size: int, counter: Counter) -> Any:
        """Return what plays a turn with a `Memory` over its default store, SQLite in memory.

        In a game that goes on, what did not fit was archived on earlier turns; the store is as those have left it.
        Sizes have to come in descending order, and `take_back` after the turns.
        """
        _loop.run_until_complete(self._archive_down_to(size, counter))
        memory = Memory(
            token_limit=size,
            tokenizer_fn=counter,
            chat_history_token_ratio=1.0,
            token_flush_size=1,
            sql_store=self._store,
            session_id="game",
        )

        async def put_and_get(text: str) -> list[ChatMessage]:
            await memory.aput(_message(text))
            return await memory.aget()

        return lambda text: _loop.run_until_complete(put_and_get(text))

    def take_back(self, count: int) -> None:
        """Take the newest messages out of the store again."""
        for number in range(count):  # rows are numbered from 1 on, and SQLite gives a number again
            _loop.run_until_complete(self._store.delete_message("game", len(self._texts) + 1 + number))

    async def _archive_down_to(self, size: int, counter: Counter) -> None:
        if self._store is None:
            self._store = get_default_chat_store()
            for begin in range(0, len(self._texts), 200):  # a statement has room for so many
                await self._store.add_messages("game", list(map(_message, self._texts[begin : begin + 200])))
        active = await self._store.get_messages("game", status=MessageStatus.ACTIVE)
        first, left = len(active), size
        while first and (left := left - len(counter(active[first - 1].content or ""))) >= 0:
            first -= 1
        first = min(first, len(active) - 1)
        for begin in range(0, first, 5_000):
            await self._store.archive_oldest_messages("game", n=min(5_000, first - begin))


_log = _Log([])
_ready: dict[str, Any] = {}


def handle(work: dict[str, Any]) -> Any:
    """Take a log, make ready for turns on it with one of the two, or play them."""
    global _log
    if "log" in work:
        _log = _Log(work["log"])
        return len(work["log"])
    counter = _counters[work.get("encoding", "o200k_base")]
    if "new" not in work:
        make = {"ChatMemoryBuffer": _log.buffer, "Memory": _log.memory}[work["way"]]
        _ready["turn"] = make(work["size"], counter)
        return None
    answer = play(_ready["turn"], work, counter)
    if work["way"] == "Memory":
        _log.take_back(len(answer["kept"]))
    return answer


def _warm_up() -> None:
    """Let the library and the tokenizers do what they do once in a process."""
    for counter in _counters.values():
        log = _Log(["Once."])
        for make in (log.buffer, log.memory):
            make(100, counter)("More.")


_warm_up()
serve(handle, ["llama-index-core", "tiktoken"])
