"""The story of a bank: its log, what is pending, the Story Summary, branches (SPEC.md section 9)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from memorybank.errors import PreconditionError
from memorybank.service.answers import bank_json, change_json, etag, json_response, pending_json, summary_json
from memorybank.service.bodies import Json, ServiceRoute
from memorybank.service.calls import BankName, Reading, Writing
from memorybank.service.given import Bank
from memorybank.service.openapi import described
from memorybank.service.problems import Problem
from memorybank.service.state import phase
from memorybank.service.story_schemas import (
    Actions,
    Branch,
    LogChange,
    PendingList,
    Summary,
    SummaryList,
    SummaryText,
)

__all__ = ["router"]

Versions = Annotated[Literal["all", "current"], Query(description="which of them to give", examples=["all"])]

router = APIRouter(route_class=ServiceRoute, tags=["story"])


@router.put(
    "/v1/banks/{bank}/actions",
    **described("Say what the log is now", LogChange, problems=["action-not-found", "conflict"], body=True),
)
async def put_actions(call: Writing, bank: BankName, body: Json[Actions]) -> Response:
    """Memories of actions that changed or are gone are stale when this is answered; what is due is written afterwards.

    The same log again changes nothing. The bank is made if it is not there.
    """

    def work() -> Response:
        given = body.read()
        call.may_make(bank)
        with phase("store"):
            change = call.bank(bank).put_actions(given.actions, after=given.after)
        call.service.story_work.wake()
        return json_response(change_json(change))

    return await call.run(work)


@router.get("/v1/banks/{bank}/pending", **described("List the memories that are due", PendingList))
async def list_pending(call: Reading, bank: BankName) -> Response:
    """With what went wrong, if a writer has failed."""
    return await call.run(lambda: json_response({"pending": list(map(pending_json, call.bank(bank).pending()))}))


@router.get("/v1/banks/{bank}/summary", **described("The Story Summary and its versions", SummaryList))
async def get_summary(call: Reading, bank: BankName, versions: Versions = "all") -> Response:
    """A version holds as long as the log that it was written from; one of the player's own always does."""

    def work() -> Response:
        current = call.bank(bank).summary()
        only = [] if current is None else [current]
        shown = call.bank(bank).summaries() if versions == "all" else only
        answer = {"current": None if current is None else current.version, "versions": list(map(summary_json, shown))}
        return json_response(answer)

    return await call.run(work)


@router.put(
    "/v1/banks/{bank}/summary",
    **described("Write the Story Summary by hand", Summary, problems=["conflict", "summary-not-found"], body=True),
)
async def put_summary(call: Writing, bank: BankName, body: Json[SummaryText]) -> Response:
    """Earlier versions stay, and each can be restored. The newest version again is still one."""

    def work() -> Response:
        given = body.read()
        call.may_make(bank)
        with phase("store"):
            mine = call.bank(bank)
            kept = mine.edit_summary(given.text) if given.restore is None else mine.restore_summary(given.restore)
            return json_response(summary_json(kept))

    return await call.run(work)


@router.post(
    "/v1/banks/{bank}/branches",
    **described(
        "Copy a bank up to an action",
        Bank,
        problems=["action-not-found", "bank-not-found", "bank-exists", "conflict"],
        status=201,
        etag=True,
        body=True,
    ),
)
async def branch(call: Writing, bank: BankName, body: Json[Branch]) -> Response:
    """The two have one past and live apart from then on. Nothing is embedded or written anew."""

    def work() -> Response:
        given = body.read()
        call.service.bank_counts.check(call.caller.namespace)
        try:
            with phase("store"):
                call.bank(bank).branch(call.stored_name(given.name), upto=given.upto)
        except PreconditionError:
            raise Problem("bank-exists", f"there is a bank {given.name!r} already: nothing was changed") from None
        info = call.bank(given.name).info()
        return json_response(bank_json(info, given.name), 201, etag(info.version))

    return await call.run(work)
