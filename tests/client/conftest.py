"""A service that answers as it is told, and both clients of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memorybank.client import RemoteBank
from tests.support.awaited import AwaitedBank
from tests.support.fake_service import FakeService, Hanging


@pytest.fixture
def service() -> Iterator[FakeService]:
    server = FakeService()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    behaviour = Hanging()
    yield behaviour
    behaviour.over.set()


@pytest.fixture(params=[RemoteBank, AwaitedBank], ids=["sync", "async"])
def connect(request: pytest.FixtureRequest, service: FakeService) -> Iterator[Callable[..., RemoteBank]]:
    """Open banks of the service; all are closed at the end."""
    opened: list[RemoteBank] = []

    def opens(bank: str = "b", url: str = "", **options: Any) -> RemoteBank:
        opened.append(request.param(url or service.url, bank, **options))
        return opened[-1]

    yield opens
    for bank in opened:
        bank.close()


@pytest.fixture
def remote(connect: Callable[..., RemoteBank]) -> RemoteBank:
    """A bank of the service with a key."""
    return connect(key="mb_id_secret")
