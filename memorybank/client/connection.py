"""What both clients are: a place, a bank, a key that nobody sees, and so much patience."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from memorybank.client.errors import UnavailableError
from memorybank.client.exchange import Patience
from memorybank.client.protocol_story import StoryProtocol
from memorybank.client.transport import checked_key, checked_url
from memorybank.errors import InvalidInputError
from memorybank.forking import renew_after_fork

__all__ = ["Connection"]

TIMEOUT = 60.0
RETRIES = 3
DEADLINE = 180.0
MAX_RETRIES = 100


class Connection(ABC):
    """The half of a client that does nothing yet.

    Attributes:
        name: the bank's name.
        url: the service's.
    """

    def __init__(
        self,
        url: str,
        bank: str = "default",
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        deadline: float = DEADLINE,
    ) -> None:
        """Name a bank of a service. Nothing is sent before the first call.

        Args:
            url: of the service, as `https://memories.example.com`, perhaps with a path before its `/v1`.
            bank: the bank's name as the key sees it: 1 to 128 printable characters without a slash.
            key: the API key, if the service wants one.
            timeout: seconds to wait for an answer, more than 0. Embedding 1,000 texts can take a minute.
            retries: how often a request is repeated that may succeed later, 0 to 100: when the service is busy or
                cannot be reached, and only where repeating it does no harm.
            deadline: seconds in all for a request with its repetitions.

        Raises:
            InvalidInputError: an argument is not what it should be.
            ServiceError: the package httpx is missing.
        """
        patience = Patience(
            timeout=_checked_seconds(timeout, "timeout"),
            retries=_checked_retries(retries),
            deadline=_checked_seconds(deadline, "deadline"),
        )
        self.url = checked_url(url)
        self.name = bank
        self._key = checked_key(key)
        self._closed = False
        self._calls = StoryProtocol(f"the service at {self.url}", bank, patience)
        self.renew()
        renew_after_fork(self)

    @abstractmethod
    def renew(self) -> None:
        """Make new connections: a child that was forked must not use its parent's."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {self.name!r})"

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError(f"{self!r} was closed: open it again")


def _checked_seconds(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise InvalidInputError(f"{what} must be a number of seconds above 0, not {value!r}")
    return float(value)


def _checked_retries(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_RETRIES:
        raise InvalidInputError(f"retries must be a whole number from 0 to {MAX_RETRIES}, not {value!r}")
    return value
