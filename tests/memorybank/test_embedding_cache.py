"""Vectors on disk: kept, shared, bounded, and never a reason to fail."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memorybank.embedding import cache as cache_module
from memorybank.embedding.cache import CachedEmbedder, VectorCache, cache_file
from memorybank.embedding.testing import HashingEmbedder, RecordingEmbedder

TEXTS = ["The gate opens.", "A wolf howls.", "Bread.", "A wolf howls."]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "new" / "vectors.sqlite"


@pytest.fixture
def inner():
    return RecordingEmbedder()


def vectors_of(texts=TEXTS):
    return HashingEmbedder().embed(texts)


def run(code: str, **environment: str) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_text_is_embedded_once(file, inner):
    with VectorCache(file) as cache:
        embedder = CachedEmbedder(inner, cache)
        np.testing.assert_array_equal(embedder.embed(TEXTS), vectors_of())
        np.testing.assert_array_equal(embedder.embed(["New.", *TEXTS]), vectors_of(["New.", *TEXTS]))
    assert inner.texts == ["The gate opens.", "A wolf howls.", "Bread.", "New."]


def test_another_cache_on_the_file_knows_them(file, inner):
    with VectorCache(file) as cache:
        CachedEmbedder(RecordingEmbedder(), cache).embed(TEXTS)
    with VectorCache(file) as cache:
        np.testing.assert_array_equal(CachedEmbedder(inner, cache).embed(TEXTS), vectors_of())
    assert inner.calls == []


def test_texts_equal_after_repair_are_one(file, inner):
    with VectorCache(file) as cache:
        CachedEmbedder(inner, cache).embed(["a\r\nb", "a\nb", "\ud83d\udc4d", "👍", "\ud83d", "\ufffd"])
    assert inner.texts == ["a\nb", "👍", "\ufffd"]


def test_kinds_and_models_are_kept_apart(file, inner):
    other = RecordingEmbedder(HashingEmbedder(64, name="other"))
    with VectorCache(file) as cache:
        CachedEmbedder(inner, cache).embed(["a"], kind="query")
        CachedEmbedder(inner, cache).embed(["a"], kind="passage")
        CachedEmbedder(other, cache).embed(["a"], kind="passage")
    assert [kind for _, kind in inner.calls] == ["query", "passage"]
    assert other.texts == ["a"]


def test_the_file_holds_no_text_and_little_endian_floats(file, inner):
    with VectorCache(file) as cache:
        CachedEmbedder(inner, cache).embed(["A secret wolf."])
    assert b"secret" not in file.read_bytes()
    connection = sqlite3.connect(file)
    [(key, raw)] = connection.execute("SELECT key, vector FROM vectors").fetchall()
    connection.close()
    assert len(key) == 32
    np.testing.assert_array_equal(np.frombuffer(raw, "<f4"), vectors_of(["A secret wolf."])[0])


@pytest.mark.parametrize(
    "raw",
    [b"", b"abc", b"\0" * 256, np.full(64, np.nan, "<f4").tobytes(), np.ones(64, "<f4").tobytes()],
    ids=["empty", "short", "zero", "NaN", "not of unit length"],
)
def test_a_damaged_vector_is_computed_anew(file, inner, raw):
    with VectorCache(file) as cache:
        embedder = CachedEmbedder(inner, cache)
        embedder.embed(["a"])
        cache._open().execute("UPDATE vectors SET vector = ?", (raw,))
        np.testing.assert_array_equal(embedder.embed(["a"]), vectors_of(["a"]))
        np.testing.assert_array_equal(embedder.embed(["a"]), vectors_of(["a"]))
    assert inner.texts == ["a", "a"]


def broken_bytes(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(os.urandom(8192))


def directory_in_its_place(file: Path) -> None:
    file.mkdir(parents=True)


def file_above_it(file: Path) -> None:
    file.parent.write_text("in the way")


def foreign_table(file: Path) -> None:
    file.parent.mkdir()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE vectors (something INTEGER)")
    connection.close()


@pytest.mark.parametrize("damage", [broken_bytes, directory_in_its_place, file_above_it, foreign_table])
def test_an_unusable_cache_is_a_warning(file, inner, caplog, damage):
    damage(file)
    with VectorCache(file) as cache:
        embedder = CachedEmbedder(inner, cache)
        for _ in range(2):
            np.testing.assert_array_equal(embedder.embed(TEXTS), vectors_of())
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert str(file) in record.getMessage()
    assert "MEMORYBANK_CACHE" in record.getMessage()


def test_damage_while_open_is_a_warning(file, inner, caplog):
    with VectorCache(file) as cache:
        embedder = CachedEmbedder(inner, cache)
        embedder.embed(TEXTS)
        cache._open().execute("DROP TABLE vectors")
        np.testing.assert_array_equal(embedder.embed(TEXTS), vectors_of())
    assert len(caplog.records) == 1


def test_a_locked_cache_is_tried_again_later(file, inner, caplog, monkeypatch):
    monkeypatch.setattr(cache_module, "PATIENCE", 0.05)
    with VectorCache(file) as cache:
        embedder = CachedEmbedder(inner, cache)
        embedder.embed(["a"])
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        np.testing.assert_array_equal(embedder.embed(["a", "b"]), vectors_of(["a", "b"]))
        assert "locked" in caplog.text
        holder.execute("ROLLBACK")
        holder.close()
        embedder.embed(["a", "b"])
        embedder.embed(["a", "b"])
    assert inner.texts == ["a", "b", "b"]


def test_size_is_bounded_and_the_oldest_used_go_first(file):
    now = [0.0]
    with VectorCache(file, max_bytes=400_000, clock=lambda: now[0]) as cache:
        for number in range(400):
            now[0] += 10_000
            cache.put({number.to_bytes(4, "big"): b"v" * 1536})
            assert cache.get([(0).to_bytes(4, "big")]), "the first is used all the time"
        kept = set(cache.get([number.to_bytes(4, "big") for number in range(400)]))
        assert 100 < len(kept) < 260
        assert {0, 399, 398} <= {int.from_bytes(key, "big") for key in kept}
        assert (1).to_bytes(4, "big") not in kept
        cache.put({number.to_bytes(4, "big"): b"v" * 1536 for number in range(1000, 3000)})
        assert cache_module._size(cache._open()) <= 400_000


def test_reading_does_not_write_within_the_hour(file):
    now = [10_000.0]
    with VectorCache(file, clock=lambda: now[0]) as cache:
        cache.put({b"k": b"v"})
        for later, used in ((1800, 10_000), (3700, 13_700)):
            now[0] = 10_000.0 + later
            cache.get([b"k"])
            assert cache._open().execute("SELECT used FROM vectors").fetchone() == (used,)


def test_threads(file, inner):
    texts = [f"Text number {number}." for number in range(60)]
    with VectorCache(file) as cache:
        embedder = CachedEmbedder(inner, cache)

        def work(thread):
            return embedder.embed(texts[thread:] + texts[:thread])

        with ThreadPoolExecutor(8) as pool:
            for thread, got in enumerate(pool.map(work, range(8))):
                np.testing.assert_array_equal(got, vectors_of(texts[thread:] + texts[:thread]))
        calls = len(inner.calls)
        embedder.embed(texts)
        assert len(inner.calls) == calls


WRITER = """
import logging, sys
logging.basicConfig(level="WARNING", stream=sys.stdout)
from pathlib import Path
from memorybank.embedding.cache import CachedEmbedder, VectorCache
from memorybank.embedding.testing import HashingEmbedder
with VectorCache(Path({file!r})) as cache:
    embedder = CachedEmbedder(HashingEmbedder(), cache)
    for number in range({start}, {start} + 200):
        embedder.embed([f"Text {{number}}."])
"""


def test_processes_write_at_once(file, inner):
    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda n: run(WRITER.format(file=str(file), start=200 * n)), range(3)))
    assert said == ["", "", ""]
    with VectorCache(file) as cache:
        CachedEmbedder(inner, cache).embed([f"Text {number}." for number in range(600)])
    assert inner.calls == []


FRESH_MACHINE = """
import json, socket, sys
attempts = []
def refuse(*arguments, **_):
    attempts.append(str(arguments))
    raise OSError("no network in this test")
socket.socket.connect = socket.getaddrinfo = refuse
from memorybank.embedding import open_embedder
light = not {"numpy", "torch", "faiss"} & set(sys.modules)
told = []
embedder = open_embedder(on_wait=told.append)
rows = embedder.embed(["The gate opens.", "A wolf howls."])
query = embedder.embed(["wolf"], kind="query")
print(json.dumps({"rows": rows.tolist(), "query": query.tolist(), "told": told, "attempts": attempts, "light": light,
                  "torch": "torch" in sys.modules}))
"""


def test_a_fresh_machine_without_network_then_a_second_start_without_torch(tmp_path):
    environment = {
        "MEMORYBANK_CACHE": str(tmp_path / "cache"),
        "HF_HOME": str(tmp_path / "hf"),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "xdg"),
    }
    first = json.loads(run(FRESH_MACHINE, **environment))
    second = json.loads(run(FRESH_MACHINE, **environment))
    assert first["attempts"] == second["attempts"] == []
    assert first["light"]
    assert second["light"]
    assert first["torch"]
    assert len(first["told"]) == 1
    assert not second["torch"]
    assert second["told"] == []
    assert second["rows"] == first["rows"]
    assert second["query"] == first["query"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"MEMORYBANK_CACHE": "/somewhere"}, "/somewhere/vectors.sqlite"),
        ({"MEMORYBANK_CACHE": "OFF"}, None),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/story-context/vectors.sqlite"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/mara/.cache/story-context/vectors.sqlite"),
        ({}, "/home/mara/.cache/story-context/vectors.sqlite"),
    ],
    ids=["named", "off", "XDG", "relative XDG", "default"],
)
def test_where_the_cache_is(monkeypatch, environment, expected):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("MEMORYBANK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/mara")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_file() == (Path(expected) if expected else None)


def test_windows_keeps_it_in_local_appdata(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delenv("MEMORYBANK_CACHE", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", "/AppData/Local")
    assert cache_file() == Path("/AppData/Local/story-context/vectors.sqlite")
