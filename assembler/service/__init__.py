"""The hosted context engine: the retrieval API of `memorybank.service` with `POST /v1/context` on top.

Needs the extra `service`. Importing this package loads nothing: `create_app` is imported when it is first used.

Reading order: `app.py`, `context.py` (the route), `packing.py` (the work behind it), `schemas.py`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assembler.service.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = importlib.import_module(f"{__name__}.app").create_app
    return value
