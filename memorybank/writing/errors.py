"""What can go wrong with a writer: a branch of `memorybank.errors`.

::

    MemoryBankError
    └── WriterError                    the writer gave no text; the span stays pending and nothing is lost
        ├── WriterUnavailableError     it could not be asked: no connection, too slow, overloaded, not installed
        └── RejectedTextError          it answered, and the answer is no memory

No message contains a text of the story, of the writer, or a key, so each may be logged and shown (SPEC.md section 9).
"""

from __future__ import annotations

from memorybank.errors import MemoryBankError

__all__ = ["RejectedTextError", "WriterError", "WriterUnavailableError"]


class WriterError(MemoryBankError):
    """A writer gave no text. The span stays pending and is tried again."""


class WriterUnavailableError(WriterError):
    """A writer could not be asked, or did not answer in time.

    Attributes:
        retry_after: seconds after which asking again makes sense, as far as that is known.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RejectedTextError(WriterError):
    """A writer's answer cannot be stored.

    Attributes:
        reason: one of `empty`, `cut off`, `filtered`, `too long`, `refusal`, `echo`, `language`, `format`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
