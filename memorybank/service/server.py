"""The process around the application: its socket, its signals, its end."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from memorybank.errors import InvalidInputError
from memorybank.service.embedding import open_service_host
from memorybank.service.logs import set_up_logging

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memorybank.host import BankHost
    from memorybank.service.settings import ServiceSettings

__all__ = ["PromptProtocol", "run"]

KEEP_ALIVE = 75
"""Seconds that an idle connection stays: longer than proxies and clients keep theirs, so that these close first."""
HEAD_SECONDS = 30.0
"""Seconds within which the first request of a connection has to begin: idle ones would use up the open files."""
SPARE = 16 * 1024
"""Bytes of a head beyond its limit that are still read, so that it can be answered with a problem."""


def run(
    settings: ServiceSettings, make_app: Callable[[BankHost, ServiceSettings], FastAPI], *, as_json: bool = False
) -> None:
    """Serve until a signal says to end; then finish what was accepted.

    Args:
        settings: all of them.
        make_app: makes the application.
        as_json: say where it listens in JSON.

    Raises:
        MemoryBankError: the database, the model or the address cannot be used.
    """
    set_up_logging(settings.log_level)
    with open_service_host(settings) as host, _socket(settings) as listening:
        needs_key = host.keys.any()
        if not needs_key and not _is_local(listening):
            raise InvalidInputError(
                f"--host {settings.host}: without any API key only this machine is served. Make a key first, "
                f"`memorybank keys create --db {host.where}`, or use --host 127.0.0.1"
            )
        server = uvicorn.Server(_config(make_app(host, settings), settings))
        listening.listen(2048)
        print(_announced(listening, host, needs_key, as_json), flush=True)
        with _signals(server):
            server.run([listening])


def _config(app: FastAPI, settings: ServiceSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="on",
        http=PromptProtocol,
        h11_max_incomplete_event_size=settings.header_bytes + SPARE,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds),
    )


class PromptProtocol(H11Protocol):
    """HTTP by h11, which bounds the size of a head; a connection that brings no first request in time is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self.loop.call_later(HEAD_SECONDS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()


@contextmanager
def _socket(settings: ServiceSettings) -> Iterator[socket.socket]:
    """Bind, and do not listen yet."""
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInputError(f"--host {settings.host}: there is no such address: {error.strerror}") from None
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
        except OSError as error:
            raise InvalidInputError(
                f"--host {settings.host} --port {settings.port}: cannot listen there: {error.strerror}"
            ) from None
        yield listening


def _is_local(listening: socket.socket) -> bool:
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def _announced(listening: socket.socket, host: BankHost, needs_key: bool, as_json: bool) -> str:
    name, port = listening.getsockname()[:2]
    url = f"http://[{name}]:{port}" if listening.family == socket.AF_INET6 else f"http://{name}:{port}"
    if as_json:
        return json.dumps({"url": url, "database": host.where, "needs_key": needs_key})
    keys = "an API key is needed" if needs_key else "no API key is needed, and only this machine is served"
    return f"listening on {url}, database {host.where}, {keys}"


@contextmanager
def _signals(server: uvicorn.Server) -> Iterator[None]:
    """Let a signal end the server and not the process. uvicorn sends what it got to these once more when it is done."""

    def end(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
