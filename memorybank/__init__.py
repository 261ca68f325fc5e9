"""A memory bank for AI stories: it keeps short texts about earlier events and finds them again by meaning.

::

    from memorybank import MemoryBank

    with MemoryBank.open("memories.sqlite") as bank:
        bank.add("Mara hid the silver key under the chapel floor.")
        bank.search("Where is the key?", limit=1)[0].memory.text

Importing this package is cheap: the database, FAISS and the embedding model load when they are first needed
(SPEC.md section 10).
"""

from __future__ import annotations

from memorybank.bank import MemoryBank
from memorybank.errors import (
    ActionNotFoundError,
    BankNotFoundError,
    InvalidInputError,
    MemoryBankError,
    MemoryNotFoundError,
    ModelError,
    ModelMismatchError,
    PreconditionError,
    StorageError,
    SummaryNotFoundError,
    TokenizerError,
)
from memorybank.memory import Memory, NewMemory, Recalled

__all__ = [
    "ActionNotFoundError",
    "BankNotFoundError",
    "InvalidInputError",
    "Memory",
    "MemoryBank",
    "MemoryBankError",
    "MemoryNotFoundError",
    "ModelError",
    "ModelMismatchError",
    "NewMemory",
    "PreconditionError",
    "Recalled",
    "StorageError",
    "SummaryNotFoundError",
    "TokenizerError",
]
