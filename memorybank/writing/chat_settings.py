"""Where a chat server is, how it is asked and how long to wait: checked when made. The standard library only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from memorybank.errors import InvalidInputError
from memorybank.inputs import checked_limit

__all__ = ["ChatSettings"]

MAX_SECONDS = 86_400.0


@dataclass(frozen=True)
class ChatSettings:
    """An OpenAI-compatible chat server and how it is used.

    Attributes:
        base_url: such as `https://api.openai.com/v1` or `http://localhost:11434/v1`; `/chat/completions` is added.
        model: the model's name there.
        api_key: sent as `Authorization: Bearer …`; empty sends none. Never shown.
        headers: further headers, never shown; they win over the usual ones.
        extra_body: further fields of the request; they win over the usual ones, and None leaves a field out.
        max_tokens: tokens of a memory.
        answer_tokens: `max_tokens` of the request: room for a memory or a summary, and for a model that thinks first.
        tokenizer: what counts the tokens of an answer, by name or path.
        prompts: a folder with `memory.txt` or `summary.txt` to be used instead of the package's.
        connect_seconds: to get a connection.
        read_seconds: to wait for the next bytes; most servers send none before the answer is finished.
        total_seconds: for all of one memory, with all attempts and the waits between.
        attempts: how often to ask before giving up.
        breaker_failures: calls in a row that fail before the server is left alone.
        breaker_seconds: how long it is left alone.

    Raises:
        InvalidInputError: a field is not what it should be.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    max_tokens: int = 80
    answer_tokens: int = 1024
    tokenizer: str = "o200k_base"
    prompts: Path | None = None
    connect_seconds: float = 5.0
    read_seconds: float = 60.0
    total_seconds: float = 120.0
    attempts: int = 3
    breaker_failures: int = 3
    breaker_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise InvalidInputError("model must be the name of a model on the chat server")
        _checked_url(self.base_url)
        for name in ("connect_seconds", "read_seconds", "total_seconds", "breaker_seconds"):
            _checked_seconds(getattr(self, name), name)
        for name in ("max_tokens", "answer_tokens", "attempts", "breaker_failures"):
            checked_limit(getattr(self, name), what=name, most=1_000_000)
        if not isinstance(self.api_key, str) or not (self.api_key.isascii() and self.api_key.isprintable()):
            raise InvalidInputError("api_key must be printable ASCII, as it comes from the server's operator")
        object.__setattr__(self, "headers", _checked_headers(self.headers))
        object.__setattr__(self, "extra_body", _checked_body(self.extra_body))
        object.__setattr__(self, "prompts", None if self.prompts is None else Path(self.prompts))

    @property
    def url(self) -> str:
        """The whole address that is asked."""
        parts = _checked_url(self.base_url)
        path = parts.path.rstrip("/")
        if not path.endswith("/chat/completions"):
            path += "/chat/completions"
        return urlunsplit(parts._replace(path=path, fragment=""))

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        return _checked_url(self.base_url).netloc

    def request_headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        return headers | {name.lower(): value for name, value in self.headers.items()}

    def request_body(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        """Return the fields of a request."""
        usual = {
            "model": self.model,
            "messages": messages,
            "max_tokens": self.answer_tokens,
            "temperature": 0.3,
            "stream": False,
        }
        return {name: value for name, value in (usual | dict(self.extra_body)).items() if value is not None}


def _checked_url(value: object) -> SplitResult:
    parts: SplitResult | None = None
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() and " " not in value else None
        sound = parts is not None and bool(parts.hostname) and parts.port != 0  # asking for a bad port raises
    except ValueError:
        sound = False
    if parts is None or not sound or parts.scheme not in ("http", "https"):
        raise InvalidInputError("base_url must be an address such as http://localhost:11434/v1")
    if parts.username is not None or parts.password is not None:
        raise InvalidInputError("base_url must not contain a name and a password: use api_key or headers")
    return parts


def _checked_seconds(value: object, what: str) -> None:
    sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not sound or not 0 < float(value) <= MAX_SECONDS:  # type: ignore[arg-type]
        raise InvalidInputError(f"{what} must be a number of seconds above 0, at most {MAX_SECONDS:g}, not {value!r}")


def _checked_headers(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidInputError("headers must be a mapping of names to texts")
    for name, text in value.items():
        if not isinstance(name, str) or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise InvalidInputError(f"headers: {name!r} is not the name of a header")
        if not isinstance(text, str) or not (text.isascii() and text.isprintable()):
            raise InvalidInputError(f"headers: the value of {name!r} must be printable ASCII")
    return dict(value)


def _checked_body(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidInputError("extra_body must be a mapping of field names to values")
    if {"messages", "stream"} & set(value):
        raise InvalidInputError("extra_body must not contain messages or stream: they are the writer's own")
    try:
        json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"extra_body must be something that JSON can hold: {error}") from None
    return dict(value)
