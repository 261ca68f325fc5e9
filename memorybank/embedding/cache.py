"""Vectors kept on disk, so that a text is embedded once, and a program whose texts are all known starts without torch.

The file is SQLite: `vectors(key BLOB PRIMARY KEY, vector BLOB, used INTEGER)`, where `key` is the sha256 of
`fingerprint NUL kind NUL text` in UTF-8 (no text can be read from the file), `vector` is little-endian float32, and
`used` is when it was last asked for, in seconds, to the hour. A cache is never a reason to fail: what goes wrong with
it is logged, and the work goes on without it.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memorybank.embedding.port import Embedder, Kind, fingerprint_of, prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CachedEmbedder", "VectorCache", "cache_file", "cache_folder", "default_cache"]

log = logging.getLogger(__name__)

MAX_BYTES = 512 * 1024 * 1024
"""About 250,000 vectors of 384 numbers."""

FRESH = 3600
"""Seconds for which a use is not written down again: reading should not mean writing."""

PATIENCE = 2.0
"""Seconds to wait for another process that writes, before going on without the cache."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS vectors_used ON vectors (used);
"""

DROP_OLDEST = """
DELETE FROM vectors WHERE rowid IN
    (SELECT rowid FROM vectors ORDER BY used, rowid LIMIT 1 + (SELECT count(*) FROM vectors) / 10)
"""


def cache_folder() -> Path | None:
    """Return the folder of what is kept for the user, or None when `MEMORYBANK_CACHE` is `off`.

    `MEMORYBANK_CACHE` names it. Without it: `story-context` in `XDG_CACHE_HOME`, on Windows in `LOCALAPPDATA`, else in
    `~/.cache`.
    """
    named = os.environ.get("MEMORYBANK_CACHE", "")
    if named.lower() == "off":
        return None
    if named:
        return Path(named).expanduser()
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a path that is not absolute.
    root = Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()
    return root / "story-context"


def cache_file() -> Path | None:
    """Return where the user's vectors are kept, or None when `MEMORYBANK_CACHE` is `off`."""
    folder = cache_folder()
    return None if folder is None else folder / "vectors.sqlite"


def default_cache() -> VectorCache | None:
    """Return the user's cache, one per process and file, or None when it is turned off."""
    file = cache_file()
    return _opened(file) if file is not None else None


class VectorCache:
    """Vectors by key in one file, for any number of threads and processes.

    When the file grows past `max_bytes`, the tenth of the vectors whose last use is longest ago is dropped.

    Args:
        file: the SQLite file; it and its directory are made when first needed.
        max_bytes: how large it may grow.
        clock: seconds, for tests.
    """

    def __init__(self, file: Path, *, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time) -> None:
        self.file = Path(file)
        self.max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inherited: sqlite3.Connection | None = None
        self._process = 0
        self._broken = False

    def __repr__(self) -> str:
        return f"VectorCache({str(self.file)!r})"

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the vectors of those keys that are known, as bytes."""
        wanted = list(keys)
        return self._safely(lambda connection: self._read(connection, wanted)) or {}

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors, given as bytes by key."""
        self._safely(lambda connection: self._write(connection, vectors))

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. The next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _safely(self, work: Callable[[sqlite3.Connection], dict[bytes, bytes]]) -> dict[bytes, bytes] | None:
        with self._lock:
            if self._broken:
                return None
            try:
                return work(self._open())
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)
                return None

    def _give_up(self, error: Exception) -> None:
        """Log what is wrong; a file that is merely busy is tried again next time."""
        busy = isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))
        self._broken = not busy
        log.warning(
            "the vector cache %s cannot be used (%s); going on without it%s",
            self.file,
            error,
            "" if busy else ". Delete the file if this stays, or set MEMORYBANK_CACHE to another directory or 'off'",
        )

    def _open(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():
            # A connection must be neither used nor closed by a child of the process that opened it, so it is kept.
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = sqlite3.connect(self.file, timeout=PATIENCE, check_same_thread=False, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(SCHEMA)
            except sqlite3.Error:
                connection.close()
                raise
            self._inherited = self._connection
            self._connection, self._process = connection, os.getpid()
        return self._connection

    def _read(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        now = int(self._clock())
        found: dict[bytes, bytes] = {}
        stale = []
        for key in keys:
            row = connection.execute("SELECT vector, used FROM vectors WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found[key] = bytes(row[0])
                if row[1] < now - FRESH:
                    stale.append((now, key))
        if stale:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("UPDATE vectors SET used = ? WHERE key = ?", stale)
        return found

    def _write(self, connection: sqlite3.Connection, vectors: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        now = int(self._clock())
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            rows = [(key, vector, now) for key, vector in vectors.items()]
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            while _size(connection) > self.max_bytes and connection.execute(DROP_OLDEST).rowcount > 0:
                pass
        return {}


class CachedEmbedder:
    """An embedder that computes no vector twice.

    A text seen before, in this process or another, comes from the cache; equal texts in one call are embedded once;
    and when all are known, the inner embedder is not asked and so not loaded.

    Args:
        embedder: what embeds a text not seen before.
        cache: where its vectors are kept. Vectors of different models, of queries and of passages are kept apart.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self.embedder = embedder
        self.cache = cache

    def __repr__(self) -> str:
        return f"CachedEmbedder({self.embedder!r}, {self.cache!r})"

    @property
    def name(self) -> str:
        """As the inner embedder."""
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        """As the inner embedder."""
        return self.embedder.dimensions

    @property
    def fingerprint(self) -> str:
        """As the inner embedder."""
        return fingerprint_of(self.embedder)

    def embed(self, texts: Sequence[str], *, kind: Kind = "passage") -> NDArray[np.float32]:
        """As the inner embedder, from the cache where it can."""
        import numpy as np

        whole = prepared(texts, kind)
        if not whole:
            return np.empty((0, self.dimensions), dtype=np.float32)
        keys = [_key(self.fingerprint, kind, text) for text in whole]
        texts_by_key = dict(zip(keys, whole, strict=True))
        vectors = _sound(self.cache.get(texts_by_key), self.dimensions)
        missing = [key for key in texts_by_key if key not in vectors]
        if missing:
            made = self.embedder.embed([texts_by_key[key] for key in missing], kind=kind)
            vectors.update(zip(missing, made, strict=True))
            self.cache.put({key: vectors[key].astype("<f4").tobytes() for key in missing})
        return np.stack([vectors[key] for key in keys])


@cache
def _opened(file: Path) -> VectorCache:
    opened = VectorCache(file)
    atexit.register(opened.close)
    return opened


def _key(fingerprint: str, kind: Kind, text: str) -> bytes:
    return hashlib.sha256(f"{fingerprint}\0{kind}\0{text}".encode()).digest()


def _sound(stored: Mapping[bytes, bytes], dimensions: int) -> dict[bytes, NDArray[np.float32]]:
    """Return the stored vectors that are what a vector must be; a damaged one is computed anew."""
    from memorybank.search.vectors import is_unit, to_matrix

    keys = [key for key, raw in stored.items() if len(raw) == 4 * dimensions]
    rows = to_matrix([stored[key] for key in keys], dimensions)
    return {key: row for key, row, unit in zip(keys, rows, is_unit(rows).tolist(), strict=True) if unit}


def _size(connection: sqlite3.Connection) -> int:
    numbers = [
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    ]
    return int((numbers[0] - numbers[1]) * numbers[2])
