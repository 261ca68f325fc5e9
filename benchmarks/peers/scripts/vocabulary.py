"""tiktoken in a peer's environment, with no network: it reads the same vocabulary files as this project.

The folder `PEER_VOCABULARIES` has them as `NAME.tiktoken.gz`. Importing this module replaces tiktoken's downloading
loader in this process, so that a peer which opens an encoding by itself finds the same one.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from pathlib import Path

import tiktoken
import tiktoken_ext.openai_public as published

__all__ = ["Counter"]


def _read_ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    packed = Path(os.environ["PEER_VOCABULARIES"]) / f"{url.rpartition('/')[2]}.gz"
    data = gzip.decompress(packed.read_bytes())
    if expected_hash is not None and hashlib.sha256(data).hexdigest() != expected_hash:
        raise ValueError(f"{packed.name} is not the published vocabulary")
    pairs = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


published.load_tiktoken_bpe = _read_ranks


class Counter:
    """Encodes texts and counts how often that was asked for and of how many characters."""

    def __init__(self, name: str) -> None:
        self._encoding = tiktoken.get_encoding(name)
        self.calls = 0
        self.characters = 0

    def __call__(self, text: str) -> list[int]:
        """Return the tokens of a text, taken as ordinary text."""
        self.calls += 1
        self.characters += len(text)
        return self._encoding.encode_ordinary(text)
