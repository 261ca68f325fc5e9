"""Which writer the service works with, from its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memorybank.errors import InvalidInputError

if TYPE_CHECKING:
    from memorybank.host import BankHost
    from memorybank.service.settings import ServiceSettings
    from memorybank.writing.port import MemoryWriter

__all__ = ["writer_of"]


def writer_of(host: BankHost, settings: ServiceSettings) -> Callable[[], MemoryWriter] | None:
    """Return what makes the writer, when there is something to write; None if others write.

    Raises:
        InvalidInputError: the chat server's address or model is missing or none.
        MemoryBankError: a prompt file is not sound, or httpx is not installed.
    """
    if settings.writer == "none":
        return None
    if settings.writer == "chat":
        chat = _chat_writer(settings)  # at once, so that a wrong setting ends the start and not the first memory
        return lambda: chat

    def extractive() -> MemoryWriter:
        from memorybank.embedding import default_embedder
        from memorybank.writing.extractive import ExtractiveWriter

        return ExtractiveWriter(host.embedder or default_embedder())

    return extractive


def _chat_writer(settings: ServiceSettings) -> MemoryWriter:
    from memorybank.writing.chat import ChatWriter
    from memorybank.writing.chat_settings import ChatSettings

    if settings.chat_url is None or settings.chat_model is None:
        raise InvalidInputError("the writer chat needs --chat-url and --chat-model: where it is, and which model")
    key = "" if settings.chat_key is None else settings.chat_key.get_secret_value()
    prompts = None if settings.chat_prompts is None else Path(settings.chat_prompts)
    return ChatWriter(ChatSettings(settings.chat_url, settings.chat_model, api_key=key, prompts=prompts))
