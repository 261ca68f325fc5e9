"""The memories of a bank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from memorybank.memory import Memory as StoredMemory
from memorybank.memory import State
from memorybank.service.answers import etag, json_response
from memorybank.service.bodies import Json, ServiceRoute
from memorybank.service.calls import BankName, Call, MemoryId, Reading, Writing
from memorybank.service.cursors import opened, sealed
from memorybank.service.given import Memory, MemoryList, Stored, Used
from memorybank.service.openapi import described
from memorybank.service.quotas import check_room
from memorybank.service.routes.banks import Cursor, Limit
from memorybank.service.schemas import Ids, MemoryEdit, MemoryEdits, NewMemories
from memorybank.service.state import phase

if TYPE_CHECKING:
    from memorybank import MemoryBank

__all__ = ["router"]

router = APIRouter(route_class=ServiceRoute, tags=["memories"])

MEMORIES = "/v1/banks/{bank}/memories"
MEMORY = "/v1/banks/{bank}/memories/{id}"
VECTORS = ("model-unavailable", "model-mismatch")

PAGE_CHARACTERS = 4_000_000
"""Of texts and metadata in one page: a page of very long memories is shorter than it was asked to be."""
CHUNK = 100


@router.post(
    MEMORIES,
    **described("Store memories: all or none", Stored, problems=[*VECTORS, "conflict"], body=True),
)
async def add_memories(call: Writing, bank: BankName, body: Json[NewMemories]) -> Response:
    """The same memory again is still one: with the same id and text it is left alone, with another text it is edited.

    So a call whose answer was lost can be repeated. The bank is made if it is not there.
    """

    def work() -> Response:
        new = [item.to_new() for item in body.read().memories]
        info = call.bank(bank).info()
        check_room(info, len(new), call.service.settings.max_memories)
        if info.created is None:
            call.service.bank_counts.check(call.caller.namespace)
        with phase("store"):
            return _stored(call.bank(bank).add_many(new))

    return await call.run(work)


@router.get(MEMORIES, **described("List memories in the order of storing", MemoryList))
async def list_memories(
    call: Reading,
    bank: BankName,
    limit: Limit = 100,
    cursor: Cursor = None,
    state: Annotated[State | None, Query(description="those of this state", examples=["active"])] = None,
) -> Response:
    """A page at a time. What is added or deleted meanwhile makes no other appear twice or be left out.

    A bank that was never written to has an empty list.
    """

    def work() -> Response:
        list_ = "memories", call.stored_name(bank), state or ""
        memories, more = _page(call.bank(bank), state, limit, opened(cursor, *list_))
        return json_response({"memories": memories, "cursor": sealed(more, *list_)})

    return await call.run(work)


def _page(
    bank: MemoryBank, state: State | None, limit: int, cursor: str | None
) -> tuple[list[dict[str, object]], str | None]:
    """Return the next memories, fewer than `limit` if they are very long, and the cursor of those behind them."""
    memories: list[dict[str, object]] = []
    characters = 0
    while len(memories) < limit:
        page = bank.page(state=state, limit=min(CHUNK, limit - len(memories)), cursor=cursor)
        cursor = page.cursor
        for memory in page.memories:
            memories.append(memory.to_dict())
            characters += len(memory.text) + len(str(memory.metadata))
            if characters > PAGE_CHARACTERS:
                last = memory is page.memories[-1] and page.cursor is None
                return memories, None if last else str(memory.ordinal)
        if cursor is None:
            break
    return memories, cursor


@router.patch(
    MEMORIES,
    **described("Change memories: all or none", Stored, problems=["memory-not-found", *VECTORS], body=True),
)
async def edit_memories(call: Writing, bank: BankName, body: Json[MemoryEdits]) -> Response:
    """Each item has an id and the fields to change; the changes are made in order."""

    def work() -> Response:
        edits = [{"id": edit.id, **edit.changes()} for edit in body.read().memories]
        with phase("store"):
            return _stored(call.bank(bank).edit_many(edits))

    return await call.run(work)


@router.post(
    f"{MEMORIES}/delete",
    **described("Delete memories for good: all or none", None, problems=["memory-not-found"], status=204, body=True),
)
async def delete_memories(call: Writing, bank: BankName, body: Json[Ids]) -> Response:
    """If one of them is not there, none is deleted."""

    def work() -> Response:
        ids = body.read().ids
        with phase("store"):
            call.bank(bank).delete_many(ids)
        return Response(status_code=204)

    return await call.run(work)


@router.post(f"{MEMORIES}/used", **described("Count a use of memories that went into a context", Used, body=True))
async def mark_used(call: Writing, bank: BankName, body: Json[Ids]) -> Response:
    """Call it once for each context that is really sent. Memories that are gone by now are passed over."""

    def work() -> Response:
        ids = body.read().ids
        with phase("store"):
            return json_response({"used": call.bank(bank).mark_used(ids)})

    return await call.run(work)


@router.get(
    MEMORY,
    **described(
        "A memory",
        Memory,
        problems=["memory-not-found"],
        also={304: "it is one of the versions in If-None-Match"},
        conditions=["If-None-Match"],
        etag=True,
    ),
)
async def get_memory(call: Reading, bank: BankName, id: MemoryId) -> Response:
    """Its use counters are not part of its version."""

    def work() -> Response:
        memory = call.bank(bank).get(id)
        if call.conditions.is_known(memory.version):
            return Response(status_code=304, headers=etag(memory.version))
        return json_response(memory.to_dict(), headers=etag(memory.version))

    return await call.run(work)


@router.patch(
    MEMORY,
    **described(
        "Change a memory",
        Memory,
        problems=["memory-not-found", "precondition-failed", *VECTORS],
        conditions=["If-Match", "If-None-Match"],
        etag=True,
        body=True,
    ),
)
async def edit_memory(call: Writing, bank: BankName, id: MemoryId, body: Json[MemoryEdit]) -> Response:
    """What is not given stays; another text is embedded anew. With If-Match, nobody else's change is overwritten."""

    def work() -> Response:
        changes = body.read().changes()
        settled = _settled(call, bank, id)
        with phase("store"):
            memory = call.bank(bank).edit(id, **changes, if_match=settled)
        return json_response(memory.to_dict(), headers=etag(memory.version))

    return await call.run(work)


@router.delete(
    MEMORY,
    **described(
        "Delete a memory for good",
        None,
        problems=["memory-not-found", "precondition-failed"],
        status=204,
        conditions=["If-Match", "If-None-Match"],
    ),
)
async def delete_memory(call: Writing, bank: BankName, id: MemoryId) -> Response:
    """An id that the bank gave never comes back."""

    def work() -> Response:
        settled = _settled(call, bank, id)
        with phase("store"):
            call.bank(bank).delete(id, if_match=settled)
        return Response(status_code=204)

    return await call.run(work)


def _settled(call: Call, bank: str, id_: str) -> str | None:
    """Return which version of a memory may be changed; None for any, without reading it."""
    if not call.conditions.any:
        return None
    return call.conditions.settled(call.bank(bank).get(id_).version)


def _stored(memories: list[StoredMemory]) -> Response:
    return json_response({"memories": [memory.to_dict() for memory in memories]})
