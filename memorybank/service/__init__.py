"""The hosted memory bank: HTTP over all banks of one database (SPEC.md section 11). Needs the extra `service`.

::

    from memorybank.service import ServiceSettings, create_app, open_service_host

    settings = ServiceSettings(db="memories.sqlite")
    with open_service_host(settings) as host:
        uvicorn.run(create_app(host, settings))          # or: memorybank serve

Reading order: `settings.py`, `app.py` (what there is). On the way of a request: `observing.py` (identity, log line,
metrics, the last resort), `gate.py` with `access.py` and `limits.py` (who may come in, how often), `calls.py` (what a
route has at hand), `routes/`; `bodies.py`, `schemas.py`, `given.py` and `answers.py` (what comes in and goes out),
`conditions.py`, `cursors.py`, `quotas.py`, `problems.py` with `handling.py` (every error), `openapi.py`. Who works:
`workers.py` (threads and admission), `batching.py` with `embedding.py` (one embedding thread for all), `state.py`
(deadline and phases of a request). For operators: `readiness.py`, `metrics.py`, `logs.py`, `tracing.py`; `command.py`
with `flags.py` and `server.py` (the process).

Importing this package loads none of them: the names below are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorybank.service.app import create_app
    from memorybank.service.embedding import open_service_host
    from memorybank.service.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app", "open_service_host"]

_HOMES = {"ServiceSettings": "settings", "create_app": "app", "open_service_host": "embedding"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
