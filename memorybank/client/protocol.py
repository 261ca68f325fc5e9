"""Each call of a bank as the requests that it takes (the table in docs/http.md): pure, for both clients.

What is given is checked here with the checks that the bank itself has, so a call at fault goes nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

from memorybank import inputs
from memorybank.bank.info import BankInfo, Page
from memorybank.bank.reads import Memories, not_found
from memorybank.client import answers
from memorybank.client.bodies import (
    MAX_BATCH,
    batches,
    checked_cursor,
    checked_name,
    edit_body,
    if_match_header,
    new_body,
    search_body,
    segment,
    settings_body,
)
from memorybank.client.exchange import Patience, Steps, exchange
from memorybank.client.wire import Answer, Request
from memorybank.errors import BankNotFoundError, InvalidInputError, PreconditionError
from memorybank.memory import Memory, Progress, Recalled, State
from memorybank.search.answer import LAST_POOL, Costs
from memorybank.search.ranking import fill

__all__ = ["Protocol"]

Results: TypeAlias = list[Recalled]  # inside the class, `list` is a method


class Protocol:
    """The calls of one bank of one service; each method returns the steps that it takes.

    Args:
        service: what messages call the service.
        bank: the bank's name.
        patience: how often a request is repeated.
    """

    def __init__(self, service: str, bank: str, patience: Patience) -> None:
        self.bank = checked_name(bank)
        self._service = service
        self._patience = patience
        self._place = f"/v1/banks/{segment(bank)}"

    def add(self, item: Mapping[str, Any]) -> Steps[Memory]:
        """See `MemoryBank.add`."""
        [memory] = yield from self._add([new_body(item, "memory")])
        return memory

    def add_many(self, items: Iterable[Any], progress: Progress | None) -> Steps[Memories]:
        """See `MemoryBank.add_many`."""
        checked = [new_body(item, f"memory {place}") for place, item in enumerate(inputs.listed(items, "items"), 1)]
        return (yield from self._in_batches(self._add, checked, progress))

    def edit(self, id_: str, changes: Mapping[str, Any], if_match: str | Iterable[str] | None) -> Steps[Memory]:
        """See `MemoryBank.edit`."""
        versions = inputs.checked_versions(if_match)
        item = {"id": id_} | {name: value for name, value in changes.items() if value is not None}
        edit = edit_body(item, "edit")
        if len(edit) == 1:
            return (yield from self._unchanged(id_, versions))
        if versions is None:
            [memory] = yield from self._edit([edit])
            return memory
        del edit["id"]
        request = Request("PATCH", self._memory(id_), edit, if_match_header(versions), repeatable=False)
        return answers.read((yield from self._about([id_], request)), answers.memory)

    def edit_many(self, edits: Iterable[Any], progress: Progress | None) -> Steps[Memories]:
        """See `MemoryBank.edit_many`."""
        checked = [edit_body(edit, f"edit {place}") for place, edit in enumerate(inputs.listed(edits, "edits"), 1)]
        return (yield from self._in_batches(self._edit, checked, progress))

    def change(self, ids: Iterable[str], **fields: Any) -> Steps[Memories]:
        """Give several memories the same value of a field: `pin`, `unpin`, `forget`, `restore`."""
        edits = [{"id": id_, **fields} for id_ in inputs.checked_ids(ids)]
        return (yield from self._in_batches(self._edit, edits, None))

    def delete(self, ids: Iterable[str], if_match: str | Iterable[str] | None = None) -> Steps[None]:
        """See `MemoryBank.delete`."""
        versions = inputs.checked_versions(if_match)
        checked = inputs.checked_ids(ids)
        if versions is not None and len(checked) > 1:
            raise InvalidInputError("if_match goes with one id over HTTP: delete them one by one, or without it")
        if versions is not None and checked:
            request = Request("DELETE", self._memory(checked[0]), None, if_match_header(versions), repeatable=False)
            yield from self._about(checked, request)
            return
        for batch in batches(checked):
            # Of several, some of which were not there, a repetition could not tell whether the others went.
            lone = len(batch) == 1
            target = f"{self._place}/memories/delete"
            request = Request("POST", target, {"ids": batch}, repeatable=lone, gone_is_done=lone)
            yield from self._about(batch, request)

    def mark_used(self, ids: Iterable[str]) -> Steps[int]:
        """See `MemoryBank.mark_used`."""
        number = 0
        for batch in batches(inputs.checked_ids(ids)):
            request = Request("POST", f"{self._place}/memories/used", {"ids": batch}, repeatable=False)
            answer = yield from self._or_none(request)
            number += 0 if answer is None else answers.read(answer, answers.used)
        return number

    def set_settings(
        self, settings: Mapping[str, Any], if_match: str | Iterable[str] | None, only_new: bool
    ) -> Steps[BankInfo]:
        """See `MemoryBank.set_settings`."""
        versions = inputs.checked_versions(if_match)
        body = settings_body(settings)
        conditions = {} if versions is None else if_match_header(versions)
        conditions |= {"If-None-Match": "*"} if only_new else {}
        request = Request("PUT", self._place, body, conditions, repeatable=not conditions)
        return answers.read((yield from self._exchange(request)), answers.info)

    def get(self, id_: str) -> Steps[Memory]:
        """See `MemoryBank.get`."""
        request = Request("GET", self._memory(inputs.checked_id(id_)))
        return answers.read((yield from self._about([id_], request)), answers.memory)

    def list(self, state: State | None) -> Steps[Memories]:
        """See `MemoryBank.list`."""
        found: Memories = []
        cursor = None
        while True:
            page = yield from self.page(state, inputs.MAX_LIMIT, cursor)
            found += page.memories
            if (cursor := page.cursor) is None:
                return found

    def page(self, state: State | None, limit: int, cursor: str | None) -> Steps[Page]:
        """See `MemoryBank.page`."""
        query: dict[str, str] = {} if state is None else {"state": inputs.checked_state(state)}
        query |= {} if cursor is None else {"cursor": checked_cursor(cursor)}
        left = inputs.checked_limit(limit)
        found: Memories = []
        while True:
            query["limit"] = str(min(left, MAX_BATCH))
            answer = yield from self._or_none(Request("GET", f"{self._place}/memories?{urlencode(query)}"))
            if answer is None:
                return Page((), None)
            page = answers.read(answer, answers.page)
            if page.cursor is not None and (not page.memories or page.cursor == query.get("cursor")):
                raise answer.not_understood("a page that leads nowhere")
            found += page.memories
            left -= len(page.memories)
            if page.cursor is None or left <= 0:
                return Page(tuple(found), page.cursor)
            query["cursor"] = page.cursor

    def count(self, state: State | None) -> Steps[int]:
        """See `MemoryBank.count`."""
        known = None if state is None else inputs.checked_state(state)
        counts = (yield from self.info()).counts
        return sum(counts.values()) if known is None else counts.get(known, 0)

    def exists(self) -> Steps[bool]:
        """See `MemoryBank.exists`."""
        return (yield from self.info()).created is not None

    def info(self) -> Steps[BankInfo]:
        """See `MemoryBank.info`."""
        answer = yield from self._or_none(Request("GET", self._place))
        return (
            BankInfo(self.bank, None, None, {}, None, 0, None) if answer is None else answers.read(answer, answers.info)
        )

    def search(
        self, query: str, *, count_tokens: Callable[[str], int] | None, max_tokens: int | None, **how: Any
    ) -> Steps[Results]:
        """See `MemoryBank.search`. With `count_tokens` the budget is filled here, from the best 1,000."""
        question = search_body(query, how)
        budget = None if max_tokens is None else inputs.checked_tokens(max_tokens)
        if not question["query"]:
            return []
        limit = question.get("limit")
        if budget is not None and count_tokens is None:
            question["max_tokens"] = budget
        elif budget is not None:
            question["limit"] = LAST_POOL
        request = Request("POST", f"{self._place}/search", question)
        found = answers.read((yield from self._exchange(request)), answers.results)
        if budget is None or count_tokens is None:
            return found
        costs = Costs(count_tokens).of(found)
        return [found[place] for place in fill(costs, budget, limit or LAST_POOL)]

    def _add(self, items: Sequence[Mapping[str, Any]]) -> Steps[Memories]:
        request = Request("POST", f"{self._place}/memories", {"memories": items})
        return answers.read((yield from self._exchange(request)), answers.memories)

    def _edit(self, edits: Sequence[Mapping[str, Any]]) -> Steps[Memories]:
        request = Request("PATCH", f"{self._place}/memories", {"memories": edits})
        answer = yield from self._about([edit["id"] for edit in edits], request)
        return answers.read(answer, answers.memories)

    def _unchanged(self, id_: str, versions: Collection[str] | None) -> Steps[Memory]:
        """Return a memory that is to be changed in nothing, which the service would refuse."""
        memory = yield from self.get(id_)
        if versions is not None and memory.version not in versions:
            raise PreconditionError(f"memory {id_!r} of bank {self.bank!r} has version {memory.version} by now")
        return memory

    def _in_batches(
        self,
        send: Callable[[Sequence[Mapping[str, Any]]], Steps[Memories]],
        items: Sequence[Mapping[str, Any]],
        progress: Progress | None,
    ) -> Steps[Memories]:
        done: Memories = []
        for batch in batches(items):
            done += yield from send(batch)
            if progress is not None:
                progress(len(done), len(items))
        return done

    def _about(self, ids: Sequence[str], request: Request) -> Steps[Answer]:
        """Ask about memories that must be there: where the bank is not, they are not."""
        try:
            return (yield from self._exchange(request))
        except BankNotFoundError as error:
            raise not_found(self.bank, ids) from error.__cause__

    def _or_none(self, request: Request) -> Steps[Answer | None]:
        """Ask about a bank that need not be there."""
        try:
            return (yield from self._exchange(request))
        except BankNotFoundError:
            return None

    def _exchange(self, request: Request) -> Steps[Answer]:
        return (yield from exchange(request, self._service, self._patience))

    def _memory(self, id_: str) -> str:
        return f"{self._place}/memories/{segment(id_)}"
