"""The exceptions of `memorybank`.

::

    MemoryBankError
    ├── InvalidInputError (ValueError)      an argument is of the wrong type, out of range or too long
    ├── MemoryNotFoundError (LookupError)   no memory with that id is in the bank
    ├── ActionNotFoundError (LookupError)   no action with that id is in the bank's log
    ├── BankNotFoundError (LookupError)     no bank of that name is in the database
    ├── SummaryNotFoundError (LookupError)  no version of the Story Summary has that number
    ├── KeyNotFoundError (LookupError)      no API key with that id is in the database
    ├── PreconditionError                   what was to be changed is not the version that the caller had seen
    ├── TokenizerError (ValueError)         a tokenizer cannot be found or its vocabulary is not the published one
    ├── ModelError                          an embedding model cannot be found, loaded, or is not what it should be
    │   └── ModelMismatchError              the bank's vectors come from another model
    ├── StorageError                        the database cannot be opened, read or written
    ├── OverloadedError                     too much is waiting already; `retry_after` says when to try again
    └── DeadlineError                       the answer did not come in time

Each message says what is wrong, where, and what to do (SPEC.md section 7).
"""

from __future__ import annotations

__all__ = [
    "ActionNotFoundError",
    "BankNotFoundError",
    "DeadlineError",
    "InvalidInputError",
    "KeyNotFoundError",
    "MemoryBankError",
    "MemoryNotFoundError",
    "ModelError",
    "ModelMismatchError",
    "NoRerankerError",
    "OverloadedError",
    "PreconditionError",
    "StorageError",
    "SummaryNotFoundError",
    "TokenizerError",
]


class MemoryBankError(Exception):
    """Base of all errors raised by `memorybank`."""


class InvalidInputError(MemoryBankError, ValueError):
    """An argument is of the wrong type, out of range or too long. Nothing was changed."""


class MemoryNotFoundError(MemoryBankError, LookupError):
    """No memory with that id is in the bank. Nothing was changed."""


class ActionNotFoundError(MemoryBankError, LookupError):
    """No action with that id is in the bank's log. Nothing was changed."""


class BankNotFoundError(MemoryBankError, LookupError):
    """No bank of that name is in the database. Nothing was changed."""


class SummaryNotFoundError(MemoryBankError, LookupError):
    """No version of the Story Summary has that number. Nothing was changed."""


class KeyNotFoundError(MemoryBankError, LookupError):
    """No API key with that id is in the database. Nothing was changed."""


class PreconditionError(MemoryBankError):
    """What was to be changed is not the version that the caller had seen. Nothing was changed."""


class TokenizerError(MemoryBankError, ValueError):
    """A tokenizer cannot be found, or its vocabulary is not the published one."""


class ModelError(MemoryBankError):
    """An embedding model cannot be found or loaded, or its files are not the published ones."""


class NoRerankerError(InvalidInputError):
    """The ranking `reranked` was asked for where there is no cross-encoder."""


class ModelMismatchError(ModelError):
    """The vectors stored in the bank were made by another model than the one in use."""


class StorageError(MemoryBankError):
    """The database cannot be opened, read or written. What was acknowledged before is safe."""


class OverloadedError(MemoryBankError):
    """Too much is waiting already. Nothing was changed.

    Attributes:
        retry_after: seconds after which there may be room.
    """

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeadlineError(MemoryBankError):
    """The answer did not come in time. A write may have been made or not: read, or write the same again."""
