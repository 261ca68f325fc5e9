"""The flags of `serve`: a table of plain values, so that the command line knows them without loading the service.

Each flag is a setting (`settings.py`) and goes before its environment variable, `MEMORYBANK_` and its name. A test
compares the two.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

__all__ = ["FLAGS", "FROM_ENVIRONMENT", "SERVICE_FLAGS", "SETTINGS", "Flag", "add_flags", "given_settings"]


class Flag(NamedTuple):
    """One setting on the command line: the name of its value, and what it says."""

    metavar: str
    says: str


FLAGS: dict[str, Flag] = {
    "db": Flag("PATH", "database: an SQLite file or a URL (memories.sqlite)"),
    "host": Flag("ADDRESS", "where to listen; others than this machine need an API key (127.0.0.1)"),
    "port": Flag("N", "port to listen at; 0 takes a free one (8080)"),
    "model": Flag("NAME", "embedding model of all banks; see `memorybank models` (all-MiniLM-L6-v2)"),
    "backend": Flag("NAME", "what runs the model: auto, torch, onnx or onnx-int8 (auto)"),
    "reranker": Flag("NAME", "cross-encoder of the ranking reranked: a folder, or a name on the hub (none)"),
    "rerank_seconds": Flag("N", "that it may take for a search; beyond, the order is that of hybrid (0.5)"),
    "index_bytes": Flag("N", "memory for indexes, in bytes (1 GiB)"),
    "threads": Flag("N", "calls that run at the same time (8)"),
    "waiting": Flag("N", "calls that may wait (128)"),
    "deadline_seconds": Flag("N", "for how long a call is worked on (30)"),
    "shutdown_seconds": Flag("N", "for how long calls are finished after a signal to end (30)"),
    "max_queued_texts": Flag("N", "texts that may wait to be embedded (2048)"),
    "body_bytes": Flag("N", "largest body of a call (8 MiB)"),
    "context_body_bytes": Flag("N", "largest body of /v1/context (32 MiB)"),
    "header_bytes": Flag("N", "largest head of a call (16 KiB)"),
    "rate": Flag("N", "calls per second of one key or address; 0 for any number (100)"),
    "burst": Flag("N", "calls of one key or address at once (200)"),
    "max_banks": Flag("N", "banks of one namespace (10000)"),
    "max_memories": Flag("N", "memories of one bank (100000)"),
    "metrics_public": Flag("BOOL", "whether anybody may read /metrics (false)"),
    "trusted_proxies": Flag("LIST", "addresses whose X-Forwarded-For is believed, with commas (none)"),
    "otlp_endpoint": Flag("URL", "where traces go, as http://localhost:4318/v1/traces (nowhere)"),
    "writer": Flag("NAME", "writes memories that are due: extractive, chat, or none for others to do it (extractive)"),
    "chat_url": Flag("URL", "chat server of the writer chat, as http://localhost:11434/v1 (none)"),
    "chat_model": Flag("NAME", "its model; the key is read from MEMORYBANK_CHAT_KEY (none)"),
    "chat_prompts": Flag("DIR", "a folder with prompts of your own (none)"),
    "log_level": Flag("LEVEL", "debug, info, warning or error (info)"),
    "tokenizers": Flag("JSON", 'further tokenizers for /v1/context, as {"name": "path of a tokenizer.json"} (none)'),
}


FROM_ENVIRONMENT = ("chat_key",)
"""Those that are no flags: a command line can be read by other users of the machine."""

OF_CONTEXT = ("context_body_bytes", "tokenizers")
"""Those that mean something to `assembler serve` alone."""

SERVICE_FLAGS = tuple(name for name in FLAGS if name not in OF_CONTEXT)
"""Those of `memorybank serve`."""

SETTINGS = "Each can also be given in the environment, as MEMORYBANK_PORT=8080; a flag goes before that."


def add_flags(parser: argparse.ArgumentParser, names: tuple[str, ...] = tuple(FLAGS)) -> None:
    """Give a parser these flags. What is not given stays out of the result."""
    for name in names:
        flag = FLAGS[name]
        parser.add_argument(
            f"--{name.replace('_', '-')}", metavar=flag.metavar, help=flag.says, default=argparse.SUPPRESS
        )


def given_settings(call: argparse.Namespace) -> dict[str, str]:
    """Return the settings that a command line gave, as texts."""
    return {name: value for name, value in vars(call).items() if name in FLAGS}
