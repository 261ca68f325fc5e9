"""Addresses: encoded, over-long, with dots, slashes and controls; methods; the shape of every error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from memorybank.embedding.testing import HashingEmbedder
from memorybank.host import BankHost
from memorybank.service import ServiceSettings, create_app
from memorybank.service.embedding import ServiceEmbedder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    place: Path = tmp_path_factory.mktemp("addresses") / "memories.sqlite"
    with BankHost.open(place, embedder=ServiceEmbedder(HashingEmbedder())) as host:
        host.bank("a").add("The gate opens.")
        host.bank("acme/story1").add("A secret.")
        with TestClient(create_app(host, ServiceSettings(rate=0)), base_url="http://localhost") as client:
            yield client


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/banks/%2E%2E", 422),
        ("/v1/banks/%2e", 422),
        ("/v1/banks/a%2Fmemories", 422),
        ("/v1/banks/acme%2Fstory1", 422),
        ("/v1/banks/acme%2fstory1/memories", 422),
        ("/v1/banks/a%00", 422),
        ("/v1/banks/a%0A", 422),
        ("/v1/banks/%C2%85", 422),
        ("/v1/banks/%E2%80%A8", 422),
        ("/v1/banks/%FF", 400),
        ("/v1/banks/%ED%A0%BD", 400),
        ("/v1/banks/" + "a" * 129, 422),
        ("/v1/banks/" + "a" * 5_000, 422),
        ("/v1/banks/a/memories/" + "a" * 201, 422),
        ("/v1/banks/a/memories/%2E%2E", 422),
        ("/v1/banks/a/memories/a%09", 422),
        ("/v1/banks/a/memories/..%2F..%2Fb", 404),
        ("/v1/banks/%25", 404),
        ("/v1/banks/%", 404),
        ("/v1/banks/", 404),
        ("/v1/banks//", 404),
        ("/v1/banks//memories", 404),
        ("/v1/banks/a/", 404),
        ("/v1//banks", 404),
        ("//v1/banks", 404),
        ("/V1/banks", 404),
        ("/v1", 404),
        ("/docs", 404),
        ("/redoc", 404),
        ("/", 404),
    ],
)
def test_addresses_that_lead_nowhere(shared: TestClient, path: str, status: int) -> None:
    request = shared.build_request("GET", "http://localhost/")
    request.url = request.url.copy_with(raw_path=path.encode())  # httpx would tidy it up
    answer = shared.send(request)
    assert answer.status_code == status, answer.text
    check_problem(answer)


@pytest.mark.parametrize("name", ["a b", "Işık", "日本", "a:b;c", "50%", "a+b", "x" * 128, "☃", "a?b#c", "..."])
def test_any_printable_name_is_a_bank(shared: TestClient, name: str) -> None:
    path = f"/v1/banks/{quote(name, safe='')}"
    assert shared.put(path, json={}).json()["name"] == name
    assert name in [bank["name"] for bank in shared.get("/v1/banks", params={"limit": 1000}).json()["banks"]]
    assert shared.delete(path).status_code == 204


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/banks", "GET, HEAD, OPTIONS"),
        ("/v1/banks/a", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("/v1/banks/a/memories", "GET, HEAD, OPTIONS, PATCH, POST"),
        ("/v1/banks/a/memories/m1", "DELETE, GET, HEAD, OPTIONS, PATCH"),
        ("/v1/banks/a/search", "OPTIONS, POST"),
        ("/healthz", "GET, HEAD, OPTIONS"),
    ],
)
def test_methods(shared: TestClient, path: str, allowed: str) -> None:
    options = shared.options(path)
    assert (options.status_code, options.headers["allow"], options.content) == (204, allowed, b"")
    for method in {"GET", "PUT", "POST", "PATCH", "DELETE", "TRACE", "BREW"} - set(allowed.split(", ")):
        answer = shared.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), method
        check_problem(answer)


@pytest.mark.parametrize("path", ["/v1/banks", "/v1/banks/a", "/v1/banks/a/memories/m1", "/healthz", "/v1/banks/none"])
def test_head_is_get_without_the_body(shared: TestClient, path: str) -> None:
    head, get = shared.head(path), shared.get(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    for name in ("content-length", "content-type", "etag"):
        assert head.headers.get(name) == get.headers.get(name)


def test_answers_carry_an_identity(shared: TestClient) -> None:
    for given in ("a", "A-1_b.c", "x" * 64):
        assert shared.get("/healthz", headers={"X-Request-Id": given}).headers["x-request-id"] == given
    for given in ("", "x" * 65, "a b", "é", "a\tb", "{}"):
        made = shared.get("/v1/banks/none", headers={"X-Request-Id": given.encode()})
        assert made.headers["x-request-id"] not in ("", given)
        assert made.json()["instance"] == f"urn:request:{made.headers['x-request-id']}"


def test_a_longer_address_than_the_limit_of_heads(shared: TestClient) -> None:
    for answer in (shared.get("/v1/banks/" + "a" * 17_000), shared.get("/v1/banks", headers={"X-Big": "x" * 17_000})):
        assert answer.status_code == 431
        check_problem(answer)


def check_problem(answer: object) -> None:
    headers, body = answer.headers, answer.json()  # type: ignore[attr-defined]
    assert headers["content-type"] == "application/problem+json"
    assert body["type"].startswith("urn:story-context:problem:")
    assert body["status"] == answer.status_code  # type: ignore[attr-defined]
    assert body["instance"] == f"urn:request:{headers['x-request-id']}"
    assert set(body) <= {"type", "title", "status", "detail", "instance", "errors"}
    assert headers["x-content-type-options"] == "nosniff"
