"""The service in this process, over a database of its own and a model without weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from assembler.service import create_app as create_context_app
from memorybank.embedding.testing import HashingEmbedder
from memorybank.host import BankHost
from memorybank.service import ServiceSettings, create_app
from memorybank.service.embedding import ServiceEmbedder
from tests.support.service import Server

Serve = Callable[..., TestClient]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memories.sqlite"


@pytest.fixture
def serve(database: Path) -> Iterator[Serve]:
    """Make clients of applications, each over the same database; `client.host` is the host behind it."""
    with ExitStack() as opened:

        def make(
            embedder: Any = None, *, address: str = "127.0.0.1", with_context: bool = False, **settings: Any
        ) -> TestClient:
            shared = ServiceEmbedder(embedder or HashingEmbedder(), max_queued=settings.get("max_queued_texts", 2048))
            host = opened.enter_context(BankHost.open(database, embedder=shared))
            settings = {"rate": 0, "shutdown_seconds": 5, **settings}
            app = (create_context_app if with_context else create_app)(host, ServiceSettings(**settings))
            client = TestClient(app, base_url="http://localhost", client=(address, 50_000))
            client.host = host
            return opened.enter_context(client)

        yield make


@pytest.fixture
def client(serve: Serve) -> TestClient:
    return serve()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Start servers; those that still run at the end are killed."""
    started: list[Server] = []

    def starts(*arguments: Any, **options: Any) -> Server:
        started.append(Server(*arguments, **options))
        return started[-1]

    yield starts
    for server in started:
        server.end(9)
