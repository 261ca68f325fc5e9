"""A real service on a port of its own, in threads of the test process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from assembler.service.app import create_app as create_app_with_contexts
from memorybank.host import BankHost
from memorybank.service import ServiceSettings, create_app, open_service_host


@dataclass
class LiveService:
    """A service that runs.

    Attributes:
        url: where.
        host: its banks, as they are in process.
    """

    url: str
    host: BankHost


@contextmanager
def live_service(database: Path | str, *, with_contexts: bool = False, **settings: Any) -> Iterator[LiveService]:
    """Run a service over a database, with a model without weights."""
    known = ServiceSettings(db=str(database), model="hashing-64", **settings)
    with open_service_host(known) as host:
        app = (create_app_with_contexts if with_contexts else create_app)(host, known)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server has not come up"
                thread.join(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield LiveService(f"http://127.0.0.1:{port}", host)
        finally:
            server.should_exit = True
            thread.join()
