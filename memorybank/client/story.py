"""The calls about a bank's log as the requests that they take: pure, as `protocol.py`, to which this belongs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memorybank import inputs
from memorybank.bank.info import LogChange, Summary
from memorybank.bank.story import Due, Summaries, checked_summary
from memorybank.client import answers
from memorybank.client.bodies import checked_name
from memorybank.client.errors import ServiceError
from memorybank.client.exchange import Steps
from memorybank.client.protocol import Protocol
from memorybank.client.wire import Request
from memorybank.errors import InvalidInputError
from memorybank.story.log import checked_log

__all__ = ["MAX_LOG", "StoryProtocol"]

MAX_LOG = 100_000
"""Actions in one request."""
TOO_LONG = (
    "give the new end alone, with `after=` the id of the action before it; a log that the bank does not know yet goes "
    "in several such ends, the oldest first"
)


class StoryProtocol(Protocol):
    """The calls of one bank of one service, those about its log included."""

    def put_actions(self, actions: Iterable[Any], after: str | None) -> Steps[LogChange]:
        """See `MemoryBank.put_actions`.

        A long log is not sent in pieces: the first would be the whole log until the next came, and what was written
        from the rest would be stale for that long.
        """
        log = checked_log(actions)
        if len(log) > MAX_LOG:
            raise InvalidInputError(f"{len(log):,} actions are more than {MAX_LOG:,}, which is one request: {TOO_LONG}")
        body: dict[str, Any] = {"actions": [{"id": one.id, "kind": one.kind, "text": one.text} for one in log]}
        if after is not None:
            body["after"] = inputs.checked_id(after)
        try:
            answer = yield from self._exchange(Request("PUT", f"{self._place}/actions", body))
        except InvalidInputError as error:
            if isinstance(error.__cause__, ServiceError) and error.__cause__.status == 413:
                raise InvalidInputError(f"the log is too large for one request ({error}): {TOO_LONG}") from (
                    error.__cause__
                )
            raise
        return answers.read(answer, answers.change)

    def pending(self) -> Steps[Due]:
        """See `MemoryBank.pending`."""
        answer = yield from self._exchange(Request("GET", f"{self._place}/pending"))
        return answers.read(answer, answers.pending)

    def pending_count(self) -> Steps[int]:
        """See `MemoryBank.pending_count`."""
        return len((yield from self.pending()))

    def summary(self) -> Steps[Summary | None]:
        """See `MemoryBank.summary`."""
        answer = yield from self._exchange(Request("GET", f"{self._place}/summary?versions=current"))
        return answers.read(answer, answers.current_summary)

    def summaries(self) -> Steps[Summaries]:
        """See `MemoryBank.summaries`."""
        answer = yield from self._exchange(Request("GET", f"{self._place}/summary"))
        return answers.read(answer, answers.summaries)

    def edit_summary(self, text: str) -> Steps[Summary]:
        """See `MemoryBank.edit_summary`."""
        request = Request("PUT", f"{self._place}/summary", {"text": checked_summary(text)})
        return answers.read((yield from self._exchange(request)), answers.summary)

    def restore_summary(self, version: int) -> Steps[Summary]:
        """See `MemoryBank.restore_summary`."""
        number = inputs.checked_limit(version, what="version", most=2**53)
        request = Request("PUT", f"{self._place}/summary", {"restore": number})
        return answers.read((yield from self._exchange(request)), answers.summary)

    def branch(self, name: str, upto: str | None) -> Steps[None]:
        """See `MemoryBank.branch`. Of a repetition that finds a bank of the name, nobody could tell whose it is."""
        body = {"name": checked_name(name, what="the new bank's name")}
        if upto is not None:
            body["upto"] = inputs.checked_id(upto, what="upto")
        yield from self._exchange(Request("POST", f"{self._place}/branches", body, repeatable=False))
