"""The application: that of the memory bank, and one route more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from assembler.service.context import PATH, router
from assembler.service.packing import Tokenizers
from memorybank.service.app import create_app as create_retrieval_app

if TYPE_CHECKING:
    from memorybank.host import BankHost
    from memorybank.service.settings import ServiceSettings

__all__ = ["create_app"]


def create_app(host: BankHost, settings: ServiceSettings) -> FastAPI:
    """Return the ASGI application over the banks of a host; see `memorybank.service.app.create_app`.

    Raises:
        TokenizerError: one of the settings' tokenizers cannot be had.
        InvalidInputError: traces are asked for, and OpenTelemetry is not installed.
    """
    tokenizers = Tokenizers(settings.tokenizers)
    limits = {PATH: settings.context_body_bytes}
    app = create_retrieval_app(host, settings, title="assembler", routers=[router], body_limits=limits)
    tokenizers.warm_up()
    app.state.tokenizers = tokenizers
    return app
