"""Load on a service of this machine: a server process, and clients that cost little beside it.

Only loopback, only for a number of seconds. The clients are one thread of asyncio with connections of its own, and
speak just as much HTTP/1.1 as is needed: a client library takes longer for a call than the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks.machine import ROOT

__all__ = ["Call", "Load", "Server", "load", "serving"]

Call = tuple[str, str, Any]
"""Method, path, and what is sent as JSON."""


@dataclass
class Load:
    """What the clients saw.

    Attributes:
        seconds: how long it went on.
        milliseconds: of each call that was answered 2xx.
        statuses: how many answers there were of each status; 0 stands for none.
        health: milliseconds of each `/healthz` meanwhile.
    """

    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    health: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        port: where it listens, on 127.0.0.1.
        process: its process.
    """

    port: int
    process: subprocess.Popen[bytes]

    def resident_mib(self) -> float:
        """Return MiB of memory that it has now."""
        return self._status("VmRSS:") / 1024

    def threads(self) -> int:
        """Return its number of threads."""
        return self._status("Threads:")

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition(name)[2].split()[0])

    def files(self) -> int:
        """Return its number of open files and connections."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())


@contextmanager
def serving(database: str, *flags: str, log: IO[bytes] | None = None) -> Iterator[Server]:
    """Run `memorybank serve` on a free port until the block ends; wait until it is ready."""
    command = [sys.executable, "-m", "memorybank", "serve", "--db", database, "--port", "0", "--json", "--rate", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*command, *flags], stdout=subprocess.PIPE, stderr=log or subprocess.DEVNULL, env=environment, cwd=ROOT
    )
    try:
        if process.stdout is None or not (line := process.stdout.readline()):
            raise RuntimeError("the server did not start")
        server = Server(int(json.loads(line)["url"].rpartition(":")[2]), process)
        _wait_until_ready(server.port)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(port: int, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            if asyncio.run(_once(port, ("GET", "/readyz", None))) == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the server was not ready after {seconds:.0f} seconds")


def load(port: int, clients: int, seconds: float, next_call: Callable[[int, int], Call]) -> Load:
    """Let a number of clients call, each one call after the other, for some seconds.

    Args:
        port: on 127.0.0.1.
        clients: how many connections.
        seconds: after these, no call is begun.
        next_call: given a client's number and that of its call, returns the call.
    """
    return asyncio.run(_load(port, clients, seconds, next_call))


async def _load(port: int, clients: int, seconds: float, next_call: Callable[[int, int], Call]) -> Load:
    found = Load()
    begun = time.perf_counter()
    end = begun + seconds
    health = asyncio.create_task(_watch(port, end, found))
    await asyncio.gather(*(_client(port, number, end, next_call, found) for number in range(clients)))
    found.seconds = time.perf_counter() - begun
    await health
    return found


async def _client(port: int, number: int, end: float, next_call: Callable[[int, int], Call], found: Load) -> None:
    connection = await asyncio.open_connection("127.0.0.1", port)
    calls = 0
    while time.perf_counter() < end:
        call = next_call(number, calls)
        calls += 1
        sent = time.perf_counter()
        try:
            status = await _answered(*connection, call)
        except (OSError, EOFError):
            status = 0
            connection[1].close()
            connection = await asyncio.open_connection("127.0.0.1", port)
        if 200 <= status < 300:
            found.milliseconds.append(1000 * (time.perf_counter() - sent))
        found.statuses[status] = found.statuses.get(status, 0) + 1
    connection[1].close()


async def _watch(port: int, end: float, found: Load) -> None:
    """Ask every 50 ms whether the server is alive."""
    connection = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < end:
        sent = time.perf_counter()
        await _answered(*connection, ("GET", "/healthz", None))
        found.health.append(1000 * (time.perf_counter() - sent))
        await asyncio.sleep(0.05)
    connection[1].close()


async def _once(port: int, call: Call) -> int:
    connection = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await _answered(*connection, call)
    finally:
        connection[1].close()


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, call: Call) -> int:
    """Send a call and read its answer to the end; return the status."""
    method, path, sent = call
    body = b"" if sent is None else json.dumps(sent).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    if body:
        head += "Content-Type: application/json\r\n"
    writer.write(head.encode() + b"\r\n" + body)
    await writer.drain()
    answer = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = answer.partition(b"content-length:")[2].split(b"\r\n", 1)[0].strip()
    if length:
        await reader.readexactly(int(length))
    return int(answer.split(b" ", 2)[1])
