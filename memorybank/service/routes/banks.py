"""Banks and their settings."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from memorybank.bank.info import BankInfo
from memorybank.errors import BankNotFoundError, PreconditionError
from memorybank.service.answers import bank_json, etag, json_response
from memorybank.service.bodies import Json, ServiceRoute
from memorybank.service.calls import BankName, Call, Reading, Writing
from memorybank.service.cursors import opened, sealed
from memorybank.service.given import Bank, BankList
from memorybank.service.openapi import described
from memorybank.service.schemas import MAX_BATCH, BankSettings
from memorybank.service.state import phase

__all__ = ["Cursor", "Limit", "existing", "router"]

router = APIRouter(route_class=ServiceRoute, tags=["banks"])

Limit = Annotated[int, Query(ge=1, le=MAX_BATCH, description="how many at most", examples=[100])]
Cursor = Annotated[str | None, Query(max_length=2_000, description="where the page before ended")]


def existing(call: Call, name: str) -> BankInfo:
    """Return what there is to know of a bank that has been written to."""
    info = call.bank(name).info()
    if info.created is None:
        raise BankNotFoundError(f"there is no bank {name!r}: it comes into being with its first memory, or with PUT")
    return info


@router.get("/v1/banks", **described("List the banks of this key, in the order of their names", BankList))
async def list_banks(call: Reading, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """A page at a time. What is made or deleted meanwhile makes no other appear twice or be left out."""

    def work() -> Response:
        namespace = call.caller.namespace
        page = call.service.host.banks(namespace=namespace, limit=limit, cursor=opened(cursor, "banks", namespace))
        banks = [bank_json(info, call.own_name(info.name)) for info in page.banks]
        return json_response({"banks": banks, "cursor": sealed(page.cursor, "banks", namespace)})

    return await call.run(work)


@router.get(
    "/v1/banks/{bank}",
    **described(
        "A bank and its settings",
        Bank,
        problems=["bank-not-found"],
        also={304: "it is one of the versions in If-None-Match"},
        conditions=["If-None-Match"],
        etag=True,
    ),
)
async def get_bank(call: Reading, bank: BankName) -> Response:
    """Its counts and its revision are not part of its version: these change with every memory."""

    def work() -> Response:
        info = existing(call, bank)
        if call.conditions.is_known(info.version):
            return Response(status_code=304, headers=etag(info.version))
        return json_response(bank_json(info, bank), headers=etag(info.version))

    return await call.run(work)


@router.put(
    "/v1/banks/{bank}",
    **described(
        "Make a bank, or change its settings",
        Bank,
        problems=["precondition-failed", "conflict"],
        also={201: "it was made"},
        conditions=["If-Match", "If-None-Match"],
        etag=True,
        body=True,
    ),
)
async def put_bank(call: Writing, bank: BankName, body: Json[BankSettings]) -> Response:
    """A smaller capacity forgets the least used memories at once; they stay restorable. What is missing stays."""

    def work() -> Response:
        info, made = _put(call, bank, body.read())
        return json_response(bank_json(info, bank), 201 if made else 200, etag(info.version))

    return await call.run(work)


def _put(call: Call, name: str, settings: BankSettings) -> tuple[BankInfo, bool]:
    """Change a bank, or make it; another call may do the one or the other at the same moment."""
    bank = call.bank(name)
    while True:
        info = bank.info()
        is_new = info.created is None
        call.conditions.settled(info.version or None)
        if not is_new and not settings.model_fields_set:
            return info, False
        if is_new:
            call.service.bank_counts.check(call.caller.namespace)
        try:
            with phase("store"):
                changed = bank.set_settings(settings.given(), if_match=info.version or None, only_new=is_new)
            call.service.story_work.wake()  # in another rhythm, more may be due
            return changed, is_new
        except PreconditionError:
            if call.conditions.any:
                raise


@router.delete(
    "/v1/banks/{bank}",
    **described(
        "Delete a bank with all its memories, for good",
        None,
        problems=["bank-not-found", "precondition-failed"],
        status=204,
        conditions=["If-Match", "If-None-Match"],
    ),
)
async def delete_bank(call: Writing, bank: BankName) -> Response:
    """A bank of the same name that is made later is another one, with another version."""

    def work() -> Response:
        settled = call.conditions.settled(existing(call, bank).version)
        with phase("store"):
            call.service.host.delete_bank(call.stored_name(bank), if_match=settled)
        return Response(status_code=204)

    return await call.run(work)
