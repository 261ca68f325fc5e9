"""What a route has at hand: the service, the caller with the banks that there are for him, and a thread to work in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Depends, Path
from pydantic import AfterValidator, BeforeValidator
from starlette.requests import Request

from memorybank import inputs
from memorybank.errors import InvalidInputError
from memorybank.service.access import Caller, Doorkeeper
from memorybank.service.conditions import Conditions
from memorybank.service.gate import CALLER, SLASH
from memorybank.service.metrics import Metrics
from memorybank.service.problems import Problem
from memorybank.service.quotas import BankCounts
from memorybank.service.readiness import Readiness
from memorybank.service.schemas import MAX_BANK_NAME, NAME, PRINTABLE
from memorybank.service.state import RequestState, current
from memorybank.service.story_work import StoryWork
from memorybank.service.workers import WorkerPool

if TYPE_CHECKING:
    from memorybank import MemoryBank
    from memorybank.host import BankHost
    from memorybank.service.settings import ServiceSettings
    from memorybank.service.tracing import Tracing

__all__ = ["BankName", "Call", "MemoryId", "Reading", "Service", "Writing", "checked_bank_name", "service_of"]

Result = TypeVar("Result")


@dataclass
class Service:
    """The parts of one application, which live as long as it.

    Attributes:
        body_limits: largest bodies by path, where it is not the usual one.
    """

    host: BankHost
    settings: ServiceSettings
    pool: WorkerPool
    door: Doorkeeper
    metrics: Metrics
    readiness: Readiness
    bank_counts: BankCounts
    story_work: StoryWork
    tracing: Tracing | None
    body_limits: Mapping[str, int]

    def body_limit(self, path: str) -> int:
        """Return how many bytes a body may have."""
        return self.body_limits.get(path, self.settings.body_bytes)

    def close(self) -> None:
        """Let all threads end but those of the pool, which ends first."""
        self.story_work.close()
        self.door.close()
        self.readiness.close()
        if self.tracing is not None:
            self.tracing.close()


class Call:
    """One call of one caller."""

    def __init__(self, service: Service, caller: Caller, state: RequestState, conditions: Conditions) -> None:
        self.service = service
        self.caller = caller
        self.conditions = conditions
        self._state = state

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns, from a thread of the pool."""
        return await self.service.pool.run(work, self._state)

    def stored_name(self, name: str) -> str:
        """Return the name under which the database knows a bank of the caller."""
        return f"{self.caller.namespace}/{name}" if self.caller.namespace else name

    def own_name(self, stored: str) -> str:
        """Return the name under which the caller knows a bank."""
        return stored.removeprefix(f"{self.caller.namespace}/") if self.caller.namespace else stored

    def bank(self, name: str) -> MemoryBank:
        """Return a bank of the caller. Other callers' banks of that name are others."""
        return self.service.host.bank(self.stored_name(name))

    def may_make(self, name: str) -> None:
        """Raise a 409 problem if a write would make a bank, and the caller may have no other."""
        if not self.bank(name).exists():
            self.service.bank_counts.check(self.caller.namespace)

    def must_write(self) -> None:
        """Raise a 403 problem if the caller may only read."""
        if self.caller.access != "write":
            raise Problem("forbidden", "this API key may read and search, and not write")


def service_of(request: Request) -> Service:
    """Return the parts of the application that serves a request."""
    service: Service = request.app.state.service
    return service


async def _reading(request: Request) -> Call:
    state = current.get()
    if state is None or CALLER not in request.scope:
        raise RuntimeError("a route under /v1 was reached around the gate")
    return Call(service_of(request), request.scope[CALLER], state, Conditions.of(request.headers))


async def _writing(call: Annotated[Call, Depends(_reading)]) -> Call:
    call.must_write()
    return call


Reading = Annotated[Call, Depends(_reading)]
"""A call that any key may make."""
Writing = Annotated[Call, Depends(_writing)]
"""A call that needs a key which may write."""


def checked_bank_name(name: str) -> str:
    """Return a bank's name as it may stand in a path or a body."""
    if "/" in name or SLASH in name:
        raise ValueError("a bank's name has no slash")
    if len(name) > MAX_BANK_NAME:
        raise ValueError(f"a bank's name has at most {MAX_BANK_NAME} characters")
    return _checked(name, "the bank's name")


def _checked(value: str, what: str) -> str:
    if value in (".", ".."):  # programs on the way here shorten such paths
        raise ValueError(f"{what} cannot be {value!r} in an address")
    try:
        return inputs.checked_id(value, what=what)
    except InvalidInputError as error:
        raise ValueError(str(error)) from None


BankName = Annotated[
    str,
    Path(
        description="the bank's name",
        examples=["story1"],
        json_schema_extra={"maxLength": MAX_BANK_NAME, "pattern": NAME},
    ),
    AfterValidator(checked_bank_name),
]
MemoryId = Annotated[
    str,
    Path(
        description="the memory's id; a slash in it is sent as %2F",
        examples=["m1"],
        json_schema_extra={"maxLength": inputs.MAX_ID, "pattern": PRINTABLE},
    ),
    BeforeValidator(lambda id_: id_.replace(SLASH, "/")),
    AfterValidator(lambda id_: _checked(id_, "the memory's id")),
]
