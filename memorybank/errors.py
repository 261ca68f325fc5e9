"""The exceptions of `memorybank`.

::

    MemoryBankError
    ├── InvalidInputError (ValueError)      an argument is of the wrong type, out of range or too long
    ├── MemoryNotFoundError (LookupError)   no memory with that id is in the bank
    ├── TokenizerError (ValueError)         a tokenizer cannot be found or its vocabulary is not the published one
    ├── ModelError                          an embedding model cannot be found, loaded, or is not what it should be
    │   └── ModelMismatchError              the bank's vectors come from another model
    └── StorageError                        the database cannot be opened, read or written

Each message says what is wrong, where, and what to do (SPEC.md section 7).
"""

from __future__ import annotations

__all__ = [
    "InvalidInputError",
    "MemoryBankError",
    "MemoryNotFoundError",
    "ModelError",
    "ModelMismatchError",
    "StorageError",
    "TokenizerError",
]


class MemoryBankError(Exception):
    """Base of all errors raised by `memorybank`."""


class InvalidInputError(MemoryBankError, ValueError):
    """An argument is of the wrong type, out of range or too long. Nothing was changed."""


class MemoryNotFoundError(MemoryBankError, LookupError):
    """No memory with that id is in the bank. Nothing was changed."""


class TokenizerError(MemoryBankError, ValueError):
    """A tokenizer cannot be found, or its vocabulary is not the published one."""


class ModelError(MemoryBankError):
    """An embedding model cannot be found or loaded, or its files are not the published ones."""


class ModelMismatchError(ModelError):
    """The vectors stored in the bank were made by another model than the one in use."""


class StorageError(MemoryBankError):
    """The database cannot be opened, read or written. What was acknowledged before is safe."""
