"""What an operator can set: by an argument, a flag of `serve`, or the environment (`MEMORYBANK_…`), in this order.

Nothing is read when this is imported: the environment is read when a `ServiceSettings` is made.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from memorybank.embedding import DEFAULT_MODEL
from memorybank.inputs import MAX_LIMIT
from memorybank.service.batching import MAX_QUEUED

__all__ = ["ServiceSettings"]

MIB = 1 << 20


class ServiceSettings(BaseSettings):
    """The settings of a service; `flags.py` says in a few words what each is for.

    Attributes:
        db: path of an SQLite file, or a URL.
        host: address or name to listen at. Without any API key, only this machine's own are allowed.
        port: 0 takes a free one.
        model: embedding model of all banks.
        backend: what runs it; `auto` is ONNX Runtime where there is no GPU and `memorybank export-onnx` was run.
        reranker: cross-encoder of the ranking `reranked`: a folder, or a name on the model hub; without one, a search
            that asks for that ranking is refused.
        rerank_seconds: that it may take for a search; beyond, the order is that of `hybrid`.
        index_bytes: memory for indexes.
        threads: calls that run at the same time.
        waiting: calls that may wait; one more is answered 503 with `Retry-After`.
        deadline_seconds: for how long a call is worked on; a client may shorten it with `X-Deadline-Ms`.
        shutdown_seconds: for how long calls are finished after SIGTERM or SIGINT.
        max_queued_texts: texts that may wait to be embedded.
        body_bytes: largest body of a call.
        context_body_bytes: largest body of `/v1/context`.
        header_bytes: largest head of a call: its address and all headers.
        rate: calls per second of one API key, or of one address where there are no keys; 0 for any number.
        burst: calls that it may make at once.
        max_banks: banks of one namespace.
        max_memories: memories of one bank, of any state.
        metrics_public: whether anybody may read `/metrics`; else this machine and holders of a key.
        trusted_proxies: addresses whose `X-Forwarded-For` is believed; one text with commas in the environment.
        otlp_endpoint: where traces go; needs the extra `otel`.
        writer: what writes the memories and summaries that are due: `extractive` needs no network, `chat` asks a chat
            server, `none` leaves them to other processes.
        chat_url: an OpenAI-compatible server, such as http://localhost:11434/v1.
        chat_model: the model's name there.
        chat_key: its key; only from the environment, because a command line can be read by others.
        chat_prompts: a folder with prompts of one's own.
        log_level: the least level that is logged; requests are at `info`.
        tokenizers: tokenizers of `/v1/context` beside the built-in ones: name to path.
    """

    model_config = SettingsConfigDict(
        env_prefix="MEMORYBANK_", env_ignore_empty=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    db: str = "memories.sqlite"
    host: str = Field("127.0.0.1", min_length=1)
    port: int = Field(8080, ge=0, le=65_535)
    model: str = DEFAULT_MODEL
    backend: Literal["auto", "torch", "onnx", "onnx-int8"] = "auto"
    reranker: str | None = None
    rerank_seconds: float = Field(0.5, gt=0, lt=3600)
    index_bytes: int = Field(1 << 30, ge=1, le=2**53)
    threads: int = Field(8, ge=1, le=256)
    waiting: int = Field(128, ge=0, le=100_000)
    deadline_seconds: float = Field(30.0, gt=0, le=3600)
    shutdown_seconds: float = Field(30.0, ge=0, le=3600)
    max_queued_texts: int = Field(MAX_QUEUED, ge=1)
    body_bytes: int = Field(8 * MIB, ge=1)
    context_body_bytes: int = Field(32 * MIB, ge=1)
    header_bytes: int = Field(16 * 1024, ge=1024, le=MIB)
    rate: float = Field(100.0, ge=0)
    burst: int = Field(200, ge=1)
    max_banks: int = Field(MAX_LIMIT, ge=1)
    max_memories: int = Field(100_000, ge=1)
    metrics_public: bool = False
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    otlp_endpoint: str | None = None
    writer: Literal["extractive", "chat", "none"] = "extractive"
    chat_url: str | None = None
    chat_model: str | None = None
    chat_key: SecretStr | None = None
    chat_prompts: str | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    tokenizers: Annotated[dict[str, str], NoDecode] = {}

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("tokenizers", mode="before")
    @classmethod
    def _parse(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value
