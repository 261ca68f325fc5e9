"""From an answer that is a refusal, or from none, to the exception that it is: pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from memorybank.client.errors import (
    ForbiddenError,
    ProtocolError,
    RateLimitedError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
)
from memorybank.client.wire import Answer, NoAnswer
from memorybank.errors import (
    ActionNotFoundError,
    BankNotFoundError,
    DeadlineError,
    InvalidInputError,
    MemoryBankError,
    MemoryNotFoundError,
    ModelError,
    ModelMismatchError,
    NoRerankerError,
    OverloadedError,
    PreconditionError,
    StorageError,
    SummaryNotFoundError,
)

__all__ = ["Refusal", "refusal"]

PROBLEM = "urn:story-context:problem:"
AGAIN = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
NOT_DONE = frozenset({"rate-limited", "overloaded"})
"""Problems with which the service refuses before it begins."""
WRONG_PLACE = frozenset({"not-found", "method-not-allowed", "unsupported-media-type"})
"""Problems of a call that this service does not know."""

_OF_THE_BANK: dict[str, Callable[[str], MemoryBankError]] = {
    "invalid-request": InvalidInputError,
    "body-too-large": InvalidInputError,
    "bank-not-found": BankNotFoundError,
    "memory-not-found": MemoryNotFoundError,
    "action-not-found": ActionNotFoundError,
    "summary-not-found": SummaryNotFoundError,
    "precondition-failed": PreconditionError,
    "bank-exists": PreconditionError,
    "model-mismatch": ModelMismatchError,
    "no-reranker": NoRerankerError,
    "model-unavailable": ModelError,
    "storage-unavailable": StorageError,
    "deadline-exceeded": DeadlineError,
}
_OF_THE_SERVICE: dict[int, type[ServiceError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    429: RateLimitedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request has failed.

    Attributes:
        error: to be raised, with `cause` behind it.
        cause: the particulars; None if `error` has them itself.
        again: whether the same request may succeed later.
        maybe_done: whether it may have been done all the same.
        retry_after: seconds that the service asks to wait.
    """

    error: MemoryBankError
    cause: ServiceError | None
    again: bool
    maybe_done: bool
    retry_after: float | None

    def throw(self) -> MemoryBankError:
        """Return the error with its cause, to be raised."""
        self.error.__cause__ = self.cause
        return self.error


def refusal(outcome: Answer | NoAnswer, service: str, now: Callable[[], datetime] | None = None) -> Refusal:
    """Return what is wrong.

    Args:
        outcome: no answer, or one whose status is no success.
        service: what messages call the service.
        now: gives the present time; None for the computer's clock.
    """
    if isinstance(outcome, NoAnswer):
        return _unanswered(outcome, service)
    retry_after = _seconds(outcome.headers.get("retry-after"), now or (lambda: datetime.now(UTC)))
    slug, detail = _problem(outcome)
    kind = _OF_THE_SERVICE.get(outcome.status, ServiceError)
    if slug in WRONG_PLACE or (slug is None and kind is ServiceError and outcome.status not in (413, *range(500, 600))):
        return Refusal(_unknown(outcome), None, again=False, maybe_done=False, retry_after=None)
    request_id = outcome.headers.get("x-request-id")
    said = f"{service} answered {outcome.status}: {detail}" + (f" (request {request_id})" if request_id else "")
    cause = kind(said, problem_type=slug, status=outcome.status, request_id=request_id, retry_after=retry_after)
    error = _as_in_process(slug, outcome.status, detail, retry_after)
    return Refusal(
        error=cause if error is None else error,
        cause=None if error is None else cause,
        again=outcome.status in AGAIN,
        maybe_done=outcome.status in AGAIN and outcome.status != 429 and slug not in NOT_DONE,
        retry_after=retry_after,
    )


def _unanswered(outcome: NoAnswer, service: str) -> Refusal:
    cause = UnavailableError(f"{service}: {outcome.reason}")
    error = DeadlineError(str(cause)) if outcome.timed_out and outcome.maybe_done else None
    return Refusal(
        error=cause if error is None else error,
        cause=None if error is None else cause,
        again=True,
        maybe_done=outcome.maybe_done,
        retry_after=None,
    )


def _as_in_process(slug: str | None, status: int, detail: str, retry_after: float | None) -> MemoryBankError | None:
    if slug == "overloaded":
        return OverloadedError(detail, retry_after=1.0 if retry_after is None else retry_after)
    if slug is None and status == 413:
        return InvalidInputError("the request is larger than something before the service lets through: send less")
    return _OF_THE_BANK[slug](detail) if slug in _OF_THE_BANK else None


def _problem(answer: Answer) -> tuple[str | None, str]:
    """Return the slug of a problem document and what it says; None for the slug if the answer is none."""
    kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/problem+json":
        return None, "no more is said"
    try:
        value = answer.json()
    except ProtocolError:
        return None, "no more is said"
    type_ = value.get("type") if isinstance(value, dict) else None
    if not isinstance(type_, str) or not type_.startswith(PROBLEM):
        return None, "no more is said"
    said = str(value.get("detail") or value.get("title") or type_)
    more = (one for one in _fields(value.get("errors")) if one not in said)
    return type_.removeprefix(PROBLEM), "; ".join([said, *more])


def _fields(errors: Any) -> list[str]:
    if not isinstance(errors, list):
        return []
    return [f"{one.get('field')}: {one.get('message')}" for one in errors if isinstance(one, dict)]


def _unknown(answer: Answer) -> ServiceError:
    if answer.status // 100 == 3:
        where = answer.headers.get("location", "")
        return answer.not_understood(f"it redirects to {where[:200]!r}, which is not followed")
    return answer.not_understood(answer.headers.get("content-type") or "no content type")


def _seconds(value: str | None, now: Callable[[], datetime]) -> float | None:
    """Return the seconds of a `Retry-After`, which holds them or a date."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now()).total_seconds())
