"""`deploy/nginx.conf` before two real processes: every bank has its process, and the other takes over."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memorybank import InvalidInputError
from memorybank.client import ProtocolError, RateLimitedError, RemoteBank, UnavailableError
from memorybank.host import BankHost

ROOT = Path(__file__).parents[2]
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed: apt-get install nginx-light")

BANKS = [f"story {n}" for n in range(16)]


@dataclass
class Site:
    """nginx, two processes behind it, and a key."""

    url: str
    key: str
    processes: list[subprocess.Popen[str]]
    ports: list[int]

    def bank(self, name: str, **options: Any) -> RemoteBank:
        return RemoteBank(self.url, name, key=self.key, **options)

    def answered(self) -> list[int]:
        """Return how many calls about banks each process has answered; 0 for one that is gone."""
        return [_answered(port) for port in self.ports]

    def home(self, call: Callable[[], Any]) -> int:
        """Return which process answers a call."""
        before = self.answered()
        call()
        [place] = [n for n, (old, new) in enumerate(zip(before, self.answered(), strict=True)) if new > old]
        return place


def _answered(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
    except urllib.error.URLError:
        return 0
    counts = re.findall(r'^memorybank_requests_total\{.*route="([^"]*)".*\} (\S+)$', text, re.M)
    return sum(int(float(number)) for route, number in counts if route.startswith("/v1/"))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _serve(database: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "assembler", "serve", "--json", "--port", "0", "--model", "hashing-64"]
    command += ["--db", str(database), "--trusted-proxies", "127.0.0.1", "--rate", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)


def _configured(place: Path, port: int, ports: list[int], rate: str) -> Path:
    """Write the configuration as it is, but for addresses, places and a rate."""
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    changes = {
        "memorybank-1:8080": f"127.0.0.1:{ports[0]}",
        "memorybank-2:8080": f"127.0.0.1:{ports[1]}",
        "listen 8080;": f"listen 127.0.0.1:{port};",
        "rate=100r/s": f"rate={rate}",
        "/run/nginx.pid": str(place / "nginx.pid"),
        "/dev/stdout": str(place / "access.log"),
        "http {": "http {\n" + "".join(
            f"    {name}_temp_path {place / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        ),
    }  # fmt: skip
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = place / "nginx.conf"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    assert NGINX is not None
    database = tmp_path / "memories.sqlite"
    with BankHost.open(database) as host:
        _, key = host.keys.create(namespace="game", access="write")
    processes = [_serve(database) for _ in range(2)]
    try:
        ports = []
        for process in processes:
            assert process.stdout is not None
            ports.append(int(json.loads(process.stdout.readline())["url"].rpartition(":")[2]))
        port = _free_port()
        config = _configured(tmp_path, port, ports, getattr(request, "param", "100r/s"))
        command = [NGINX, "-p", str(tmp_path), "-c", str(config), "-e", str(tmp_path / "error.log")]
        processes.append(subprocess.Popen([*command, "-g", "daemon off;"], stderr=subprocess.DEVNULL, text=True))
        running = Site(f"http://127.0.0.1:{port}", key, processes, ports)
        _wait(running)
        yield running
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(60)
            if process.stdout is not None:
                process.stdout.close()


def _wait(site: Site) -> None:
    end = time.monotonic() + 60
    with site.bank("first", retries=0, timeout=30) as bank:
        while True:
            try:
                bank.count()
                return
            except UnavailableError:
                assert time.monotonic() < end, "nginx has not come up"
                assert site.processes[-1].poll() is None
                time.sleep(0.05)


def test_every_bank_has_its_process_and_the_other_takes_over(site: Site) -> None:
    homes: dict[str, int] = {}
    for name in BANKS:
        with site.bank(name) as bank:
            homes[name] = site.home(lambda bank=bank: bank.add("The gate opens."))  # type: ignore[misc]
            for call in (bank.list, lambda bank=bank: bank.search("gate"), lambda bank=bank: bank.mark_used(["m1"])):  # type: ignore[misc]
                assert site.home(call) == homes[name], "the same bank always reaches the same process"
    assert set(homes.values()) == {0, 1}, "both have something to do"

    site.processes[0].kill()
    site.processes[0].wait(60)
    before = site.answered()[1]
    for name in BANKS:
        with site.bank(name) as bank:
            assert bank.add("A wolf howls.").id == "m2"
            assert [memory.text for memory in bank.list()] == ["The gate opens.", "A wolf howls."]
            assert bank.search("wolf howls")[0].memory.id == "m2"
            assert bank.mark_used(["m1", "m2"]) == 2, "what may not be repeated has not begun"
    assert site.answered()[1] - before == 4 * len(BANKS)

    site.processes[1].kill()
    site.processes[1].wait(60)
    with site.bank("story 1", retries=0) as bank, pytest.raises(UnavailableError) as caught:
        bank.count()
    assert (caught.value.status, caught.value.problem_type) == (502, "unavailable")


def _ask(site: Site, path: str, **headers: str) -> tuple[int, str, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(site.url + path, headers=named)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_what_it_answers_itself(site: Site) -> None:
    assert _ask(site, "/healthz")[::2] == (200, '{"status":"ok"}')
    assert _ask(site, "/readyz")[0] == 200
    for path in ("/metrics", "/v1/../metrics", "/v1/%2e%2e/metrics", "/", "/etc/passwd"):
        status, kind, body = _ask(site, path)
        assert (status, kind) == (404, "application/problem+json"), path
        assert json.loads(body)["type"] == "urn:story-context:problem:not-found"
    assert _ask(site, "/v1/banks")[0] == 401
    large = {"text": "x", "actions": ["門" * 200] * 7_500}
    with site.bank("b") as bank, pytest.raises(InvalidInputError, match=r"8 MiB.* send it in several calls"):
        bank.add_many([large])
    with RemoteBank(f"{site.url}/nowhere", key=site.key) as bank, pytest.raises(ProtocolError):
        bank.count()


def test_contexts_go_where_their_bank_is_named(site: Site) -> None:
    def context(**headers: str) -> int:
        return site.home(lambda: _ask(site, "/v1/context", Authorization=f"Bearer {site.key}", **headers))

    homes = set()
    for name in BANKS:
        with site.bank(name) as bank:
            homes.add(home := site.home(bank.list))
        assert context(X_Bank=name) == home
    assert homes == {0, 1}
    assert len({context() for _ in range(5)}) == 1, "else those of a key stay together"


@pytest.mark.parametrize("site", ["1r/m"], indirect=True)
def test_too_many_calls_are_told_to_wait(site: Site) -> None:
    with site.bank("b", retries=0) as bank:
        for _ in range(150):
            bank.count()
        with pytest.raises(RateLimitedError, match="too many calls") as limited:
            [bank.count() for _ in range(100)]
    assert (limited.value.retry_after, limited.value.problem_type) == (1, "rate-limited")
