"""What can go wrong between a program and a service, beside what can go wrong with a bank.

::

    MemoryBankError
    └── ServiceError                     the service failed, or refused for a reason that the bank does not know
        ├── UnauthorizedError            no key was given, or the service does not know it
        ├── ForbiddenError               the key may not do this
        ├── RateLimitedError             too many calls; `retry_after` says when to go on
        ├── UnavailableError (StorageError)   the service cannot be reached, or something before it says so
        └── ProtocolError                what answers is not this service, or not this version of it

A refusal that the bank itself knows (`memorybank.errors`) is raised as what it is in process, with a `ServiceError`
as its `__cause__` that holds the particulars.
"""

from __future__ import annotations

from memorybank.errors import MemoryBankError, StorageError

__all__ = [
    "ForbiddenError",
    "ProtocolError",
    "RateLimitedError",
    "ServiceError",
    "UnauthorizedError",
    "UnavailableError",
]


class ServiceError(MemoryBankError):
    """The service failed, or refused for a reason that the bank does not know.

    Attributes:
        problem_type: the last part of the problem's `type`, `internal` for example; None if there was no problem
            document.
        status: the HTTP status; None if there was no answer.
        request_id: names the call in the service's log; None if there was no answer.
        retry_after: seconds after which the service wants to be asked again; None if it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        problem_type: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.problem_type = problem_type
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after


class UnauthorizedError(ServiceError):
    """No key was given, or the service does not know it, or it was revoked."""


class ForbiddenError(ServiceError):
    """The key may not do this: it may only read, for example."""


class RateLimitedError(ServiceError):
    """Too many calls in a short time. Nothing was changed."""


class UnavailableError(ServiceError, StorageError):
    """The service cannot be reached, or broke off. A write may have been made or not: read, or write it again."""


class ProtocolError(ServiceError):
    """What answers is not this service, or not this version of it: check the URL."""
