"""The command `serve`: settings from flags and environment, a socket, one process until a signal ends it.

A light module: what the service needs is imported once it is known to be there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memorybank.console import note
from memorybank.embedding.threads import set_thread_defaults
from memorybank.errors import InvalidInputError
from memorybank.service.flags import given_settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memorybank.host import BankHost
    from memorybank.service.settings import ServiceSettings

    MakeApp = Callable[["BankHost", "ServiceSettings"], "FastAPI"]

__all__ = ["serve"]

NEEDED = ("fastapi", "uvicorn", "pydantic_settings", "prometheus_client")


def serve(call: argparse.Namespace, find_app: Callable[[], MakeApp]) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code.

    Args:
        call: the flags of `flags.py` that were given, and `json`.
        find_app: imports and returns what makes the application.

    Raises:
        MemoryBankError: the settings, the database, the model or the address is at fault.
    """
    if any(find_spec(name) is None for name in NEEDED):
        note("serve needs packages that are not installed: pip install 'story-context[service]'")
        return 2
    set_thread_defaults()
    from memorybank.service.server import run

    run(_settings(given_settings(call)), find_app(), as_json=call.json)
    return 0


def _settings(given: dict[str, Any]) -> ServiceSettings:
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from memorybank.service.settings import ServiceSettings

    try:
        return ServiceSettings(**given)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found]
        raise InvalidInputError(f"settings (flags of serve, or MEMORYBANK_…): {'; '.join(wrong)}") from None
    except SettingsError as error:
        raise InvalidInputError(f"settings: {error}") from None
