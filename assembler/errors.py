"""The exceptions of `assembler`.

::

    AssemblerError
    ├── AdventureError (ValueError)   an adventure document, or a foreign file, is at fault; names the place
    ├── SettingsError (ValueError)    a setting is of the wrong type or out of its range
    └── ContextTooSmallError          Front Memory and Last Action alone exceed the context size

Each message says what is wrong, where, and what to do (SPEC.md section 7).
"""

from __future__ import annotations

__all__ = ["AdventureError", "AssemblerError", "ContextTooSmallError", "SettingsError"]


class AssemblerError(Exception):
    """Base of all errors raised by `assembler`."""


class AdventureError(AssemblerError, ValueError):
    """An adventure document or a foreign file is at fault. The message names the field, line or id."""


class SettingsError(AssemblerError, ValueError):
    """A setting is of the wrong type or out of its range."""


class ContextTooSmallError(AssemblerError):
    """Front Memory and Last Action go in whole or not at all, and they exceed the context size.

    Attributes:
        front_memory: tokens of the Front Memory.
        last_action: tokens of the last action with its header.
        context_size: tokens that there are.
    """

    def __init__(self, *, front_memory: int, last_action: int, context_size: int) -> None:
        self.front_memory = front_memory
        self.last_action = last_action
        self.context_size = context_size
        super().__init__(
            f"Front Memory ({front_memory} tokens) and the last action with its header ({last_action}) need "
            f"{front_memory + last_action} tokens, but the context size is {context_size}; "
            f"raise the context size or shorten the texts"
        )
