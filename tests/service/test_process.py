"""Servers as processes: two on one database, a signal in the middle of writes, a slow model, raw sockets."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
from tests.support.service import LONG, Server

Start = Callable[..., Server]
MEMORIES = "/v1/banks/a/memories"


def test_two_processes_see_each_others_writes_at_once(start: Start, tmp_path: Path) -> None:
    place = tmp_path / "memories.sqlite"
    servers = [start(place), start(place)]
    with servers[0].client() as first, servers[1].client() as second:
        for step in range(20):
            writer, reader = (first, second) if step % 2 else (second, first)
            text = f"In step {step} the wolf came back."
            body = {"memories": [{"text": text, "id": f"s{step}"}]}
            assert writer.post(MEMORIES, json=body).status_code == 200
            assert reader.get(f"{MEMORIES}/s{step}").json()["text"] == text
            best = reader.post("/v1/banks/a/search", json={"query": text, "limit": 1}).json()["results"][0]
            assert best["memory"]["id"] == f"s{step}"
        assert first.delete(f"{MEMORIES}/s3").status_code == 204
        assert second.get(f"{MEMORIES}/s3").status_code == 404
        found = second.post("/v1/banks/a/search", json={"query": "wolf", "limit": 100}).json()["results"]
        assert "s3" not in {one["memory"]["id"] for one in found}
        with ThreadPoolExecutor(40) as pool:  # both write at the same time: nobody finds the database locked

            def post(number: int) -> int:
                client = (first, second)[number % 2]
                return client.post(MEMORIES, json={"memories": [{"text": f"Number {number}."}]}).status_code

            assert list(pool.map(post, range(40))) == [200] * 40
        assert first.get("/v1/banks/a").json()["counts"] == {"active": 59}
    for server in servers:
        assert server.end()[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_what_was_accepted_is_finished_before_the_end(start: Start, tmp_path: Path) -> None:
    """Writes in flight when the signal comes are all answered, and what was answered is on disk."""
    place = tmp_path / "memories.sqlite"
    server = start(place).wait_until_ready()
    answered: list[int] = []
    refused = threading.Event()

    def write(caller: int) -> None:
        with server.client() as client:
            for step in range(10_000):
                body = {"memories": [{"text": f"caller {caller} step {step} {'x' * 500}", "id": f"{caller}-{step}"}]}
                try:
                    answer = client.post(MEMORIES, json=body)
                except (httpx2.NetworkError, httpx2.RemoteProtocolError):  # nobody answers any more
                    refused.set()
                    return
                assert answer.status_code == 200, answer.text
                answered.append(step)

    threads = [threading.Thread(target=write, args=(caller,)) for caller in range(8)]
    for thread in threads:
        thread.start()
    while len(answered) < 40:
        time.sleep(0.01)
    code, log = server.end(15)
    for thread in threads:
        thread.join(LONG)
    assert code == 0
    assert refused.is_set()
    lines = [json.loads(line) for line in log]
    statuses = [line["status"] for line in lines if line.get("route") == "/v1/banks/{bank}/memories"]
    assert set(statuses) == {200}
    with MemoryBank.open(place, "a", embedder=HashingEmbedder(), create=False) as bank:
        assert bank.count() == len(statuses), "each write that the server accepted is on disk, and no other"
        assert bank.count() >= len(answered)
        assert bank.check().ok


SLOW = """
import sys, time
from memorybank.embedding.testing import HashingEmbedder
from memorybank.service import embedding
class Slow(HashingEmbedder):
    def embed(self, texts, *, kind="passage"):
        if kind == "query" and "ready" not in texts[0]:
            time.sleep(2)
        return super().embed(texts, kind=kind)
embedding.open_embedder = lambda *a, **k: Slow()
from memorybank.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_health_in_milliseconds_while_a_model_takes_seconds(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path / "memories.sqlite", code=SLOW).wait_until_ready()
    with server.client() as client, ThreadPoolExecutor(10) as pool:
        client.post(MEMORIES, json={"memories": [{"text": "The gate opens."}]})

        def search(query: int) -> int:
            with server.client() as own:
                return own.post("/v1/banks/a/search", json={"query": f"query {query}"}).status_code

        begin = time.perf_counter()
        searches = [pool.submit(search, query) for query in range(10)]
        times = []
        while not all(one.done() for one in searches):
            asked = time.perf_counter()
            assert client.get("/healthz").status_code == 200
            times.append(time.perf_counter() - asked)
            time.sleep(0.05)
        assert [one.result() for one in searches] == [200] * 10
        took = time.perf_counter() - begin
    assert min(times) < 0.1, times
    assert took < 15, "ten searches of two seconds were embedded together, not one after the other"


def raw(server: Server, *parts: bytes) -> bytes:
    """Send bytes as they are and return all that comes back until the server closes."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=LONG) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:  # it has answered and closed before it has read all
                break
        answer = b""
        try:
            while part := connection.recv(65_536):
                answer += part
        except ConnectionResetError:
            pass
    return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    started = Server(tmp_path_factory.mktemp("raw") / "memories.sqlite", "--body-bytes", 100_000)
    yield started
    code, log = started.end()
    assert code == 0
    assert not [line for line in log if "unexpected exception" in line]


HEAD = b"Host: localhost\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET /v1/../v1/banks HTTP/1.1", 404),
        (b"GET /v1/banks/../../etc/passwd HTTP/1.1", 404),
        (b"GET /v1/banks/.. HTTP/1.1", 422),
        (b"GET /v1/banks/%2e%2e/memories HTTP/1.1", 422),
        (b"GET /v1/banks/%zz HTTP/1.1", 404),
        (b"GET //v1/banks HTTP/1.1", 404),
        (b"GET http://localhost/v1/banks HTTP/1.1", 404),
        (b"OPTIONS * HTTP/1.1", 404),
        (b"GET /v1/banks?limit=1&limit=2 HTTP/1.1", 200),
        (b"GET /healthz HTTP/1.0", 200),
    ],
)
def test_request_lines_as_no_library_sends_them(server: Server, line: bytes, status: int) -> None:
    answer = raw(server, line + b"\r\n" + HEAD + b"\r\n")
    assert int(answer.split(b" ")[1]) == status, answer


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET /\x00 HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_refused_and_survived(server: Server, garbage: bytes) -> None:
    assert raw(server, garbage + b"\r\n\r\n").startswith((b"HTTP/1.1 400", b"HTTP/1.1 505"))
    assert b" 200 " in raw(server, b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n").partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: x\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
    ],
)
def test_lengths_that_contradict_are_refused(server: Server, headers: bytes) -> None:
    request = b"POST /v1/banks/a/search HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n" + headers
    answer = raw(server, request + b"\r\n0\r\n\r\n")
    assert int(answer.split(b" ")[1]) in (400, 501), answer


def test_a_large_body_is_answered_before_it_is_read(server: Server) -> None:
    head = b"POST /v1/banks/a/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    answer = raw(server, head + b"Content-Length: 100000000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"\r\nconnection: close\r\n" in answer.lower()
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    answer = raw(server, head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 11)
    assert answer.startswith(b"HTTP/1.1 413"), (
        "ten chunks are within the limit, the eleventh is not, and no end ever comes"
    )


def test_heads_without_end_are_refused(server: Server) -> None:
    answer = raw(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", *[b"x" * 10_000] * 20)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")), answer[:200]


def test_a_body_that_does_not_come_is_not_waited_for(server: Server) -> None:
    head = b"POST /v1/banks/a/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    answer = raw(server, head + b"X-Deadline-Ms: 200\r\nContent-Length: 50\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"deadline-exceeded" in answer


def test_clients_that_leave_halfway_leave_nothing_behind(server: Server) -> None:
    address = urlsplit(server.url)
    head = b"POST /v1/banks/a/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(20):
        with socket.create_connection((address.hostname, address.port), timeout=LONG) as connection:
            connection.sendall(head + b"Content-Length: 50\r\n\r\n{")
    with server.client() as client:
        end = time.monotonic() + LONG
        while "memorybank_in_flight 0.0" not in client.get("/metrics").text:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_two_requests_in_one_packet_are_two(server: Server) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    answer = raw(server, one + b"\r\n" + one + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200") == 2
