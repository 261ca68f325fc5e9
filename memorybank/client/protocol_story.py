"""The calls of a bank that follow the log, as the requests that they take; see `protocol.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memorybank import inputs
from memorybank.bank.info import LogChange, Summary
from memorybank.bank.story import Due, Summaries
from memorybank.client import answers
from memorybank.client.bodies import checked_name, segment
from memorybank.client.errors import ServiceError
from memorybank.client.exchange import Steps
from memorybank.client.protocol import Protocol
from memorybank.client.wire import Request
from memorybank.errors import BankNotFoundError, InvalidInputError, PreconditionError

__all__ = ["StoryProtocol"]


class StoryProtocol(Protocol):
    """All calls of one bank of one service."""

    def put_actions(self, actions: Iterable[Any], after: str | None) -> Steps[LogChange]:
        """See `MemoryBank.put_actions`. It goes in one request: a call for each part would make the rest stale."""
        from memorybank.story.log import checked_log

        log = [{"id": one.id, "kind": one.kind, "text": one.text} for one in checked_log(actions)]
        body: dict[str, Any] = {"actions": log}
        if after is not None:
            body["after"] = inputs.checked_id(after)
        request = Request("PUT", f"{self.place}/actions", body)
        return answers.read((yield from self.exchange(request)), answers.log_change)

    def pending(self) -> Steps[Due]:
        """See `MemoryBank.pending`."""
        answer = yield from self.or_none(Request("GET", f"{self.place}/pending"))
        return [] if answer is None else answers.read(answer, answers.pending)

    def pending_count(self) -> Steps[int]:
        """See `MemoryBank.pending_count`."""
        return len((yield from self.pending()))

    def summary(self) -> Steps[Summary | None]:
        """See `MemoryBank.summary`."""
        return (yield from self._summaries())[0]

    def summaries(self) -> Steps[Summaries]:
        """See `MemoryBank.summaries`."""
        return (yield from self._summaries())[1]

    def edit_summary(self, text: str) -> Steps[Summary]:
        """See `MemoryBank.edit_summary`. Done twice, it makes two versions."""
        if not isinstance(text, str) or len(text) > inputs.MAX_TEXT:
            raise InvalidInputError(f"the summary must be a text of at most {inputs.MAX_TEXT:,} characters")
        request = Request("PUT", f"{self.place}/summary", {"text": text}, repeatable=False)
        return answers.read((yield from self.exchange(request)), answers.summary)

    def restore_summary(self, version: int) -> Steps[Summary]:
        """See `MemoryBank.restore_summary`."""
        for one in (yield from self.summaries()):
            if one.version == version:
                return (yield from self.edit_summary(one.text))
        raise InvalidInputError(f"bank {self.bank!r} has no version {version!r} of the summary: see `summaries()`")

    def branch(self, name: str, upto: str | None) -> Steps[None]:
        """See `MemoryBank.branch`."""
        body = {"name": checked_name(name)} | ({} if upto is None else {"upto": inputs.checked_id(upto, what="upto")})
        try:
            yield from self.exchange(Request("POST", f"{self.place}/branches", body, repeatable=False))
        except ServiceError as error:
            # The service's limits are a conflict too, and something else than a bank that is there.
            if error.problem_type != "conflict" or not (yield from self._is_there(name)):
                raise
            raise PreconditionError(f"there is a bank {name!r} already: nothing was changed") from error

    def _summaries(self) -> Steps[tuple[Summary | None, Summaries]]:
        answer = yield from self.or_none(Request("GET", f"{self.place}/summary"))
        return (None, []) if answer is None else answers.read(answer, answers.summaries)

    def _is_there(self, name: str) -> Steps[bool]:
        try:
            yield from self.exchange(Request("GET", f"/v1/banks/{segment(name)}"))
        except BankNotFoundError:
            return False
        return True
