"""OWASP API Security Top 10 (2023), one test or more for each item, named after it."""

from __future__ import annotations

import json
import socket
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from memorybank.embedding.testing import HashingEmbedder

MEMORIES = "/v1/banks/story1/memories"
BODY = {"memories": [{"text": "The queen hid the crown.", "id": "m1"}]}


def key(client: TestClient, namespace: str, access: Any = "write") -> dict[str, str]:
    _, token = client.host.keys.create(namespace=namespace, access=access)  # type: ignore[attr-defined]
    return {"Authorization": f"Bearer {token}"}


def test_api1_broken_object_level_authorization(serve: Any) -> None:
    """Knowing the name of somebody's bank and the id of his memory is of no use: for others they do not exist."""
    client = serve(with_context=True)
    owner, stranger = key(client, "owner"), key(client, "stranger")
    assert client.post(MEMORIES, json=BODY, headers=owner).status_code == 200
    before = client.get(MEMORIES, headers=owner).json()
    cursor = client.get("/v1/banks", params={"limit": 1}, headers=owner).json()["cursor"]
    context = {"adventure": {"format": "adventure/1", "actions": [{"kind": "do", "text": "crown"}]}, "bank": "story1"}
    for method, path, body, expected in [
        ("GET", "/v1/banks/story1", None, 404),
        ("DELETE", "/v1/banks/story1", None, 404),
        ("GET", f"{MEMORIES}/m1", None, 404),
        ("PATCH", f"{MEMORIES}/m1", {"text": "Mine now."}, 404),
        ("DELETE", f"{MEMORIES}/m1", None, 404),
        ("POST", f"{MEMORIES}/delete", {"ids": ["m1"]}, 404),
        ("PATCH", MEMORIES, {"memories": [{"id": "m1", "pinned": True}]}, 404),
        ("POST", f"{MEMORIES}/used", {"ids": ["m1"]}, 200),
        ("POST", "/v1/banks/story1/search", {"query": "crown"}, 200),
        ("POST", "/v1/context", context | {"commit": True}, 200),
        ("GET", MEMORIES, None, 200),
        ("GET", "/v1/banks", None, 200),
    ]:
        answer = client.request(method, path, json=body, headers=stranger)
        assert answer.status_code == expected, (method, path, answer.text)
        assert "queen" not in answer.text
        assert "owner" not in answer.text
    assert cursor is None
    assert client.get(MEMORIES, headers=owner).json() == before


def test_api2_broken_authentication(serve: Any) -> None:
    """A token counts in one place, in one form; guesses are slowed down; a revoked one is worth nothing at once."""
    client = serve(address="203.0.113.7")
    made, token = client.host.keys.create(namespace="", access="write")
    for parameters in (
        {"token": token},
        {"api_key": token},
        {"access_token": token},
        {"Authorization": f"Bearer {token}"},
    ):
        assert client.get("/v1/banks", params=parameters).status_code == 401
    for headers in ({"X-Api-Key": token}, {"Cookie": f"token={token}"}, {"Proxy-Authorization": f"Bearer {token}"}):
        assert client.get("/v1/banks", headers=headers).status_code == 401
    good = {"Authorization": f"Bearer {token}"}
    assert client.get("/v1/banks", headers=good).status_code == 200
    client.host.keys.revoke(made.id)
    assert client.get("/v1/banks", headers=good).status_code == 401
    guesses = [client.get("/v1/banks", headers={"Authorization": f"Bearer mb_{made.id}_{n:043}"}) for n in range(20)]
    assert [answer.status_code for answer in guesses][-1] == 429
    assert "retry-after" in guesses[-1].headers


READ_ONLY: dict[str, Any] = {
    "use_count": 99,
    "last_used": "2020-01-01T00:00:00Z",
    "created": "2020-01-01T00:00:00Z",
    "version": "0" * 16,
    "model": "another",
    "ordinal": 7,
    "vector": [1.0],
    "bank": "other",
    "__proto__": {},
}


@pytest.mark.parametrize("field", list(READ_ONLY))
def test_api3_broken_object_property_level_authorization(client: TestClient, field: str) -> None:
    """What the server keeps cannot be set, and what it keeps to itself is not shown."""
    client.post(MEMORIES, json=BODY)
    before = client.get(f"{MEMORIES}/m1").json()
    extra = {field: READ_ONLY[field]}
    for answer in (
        client.post(MEMORIES, json={"memories": [{"text": "More.", **extra}]}),
        client.patch(f"{MEMORIES}/m1", json={"pinned": True, **extra}),
        client.patch(MEMORIES, json={"memories": [{"id": "m1", "pinned": True, **extra}]}),
        client.put("/v1/banks/story1", json={"capacity": 5, **extra}),
    ):
        assert answer.status_code == 422, answer.text
    assert client.get(f"{MEMORIES}/m1").json() == before
    assert not {"vector", "text_hash", "revision", "bank"} & set(before)


def test_api4_unrestricted_resource_consumption(serve: Any) -> None:
    """Everything that a call can ask for has a limit, and so has the number of calls."""
    client = serve(rate=0.01, burst=20, body_bytes=300_000, max_memories=5, max_banks=2)
    post = {"Content-Type": "application/json"}
    refused = [
        client.post(MEMORIES, content=b"x" * 300_001, headers=post),
        client.post(MEMORIES, json={"memories": [{"text": "x"}] * 1_001}),
        client.post(MEMORIES, json={"memories": [{"text": "x" * 100_001}]}),
        client.post(MEMORIES, json={"memories": [{"text": f"{n}"} for n in range(6)]}),
        client.post(MEMORIES, json={"memories": [{"text": "x", "actions": [str(n) for n in range(10_001)]}]}),
        client.post(MEMORIES, json={"memories": [{"text": "x", "metadata": {"x": "x" * 100_001}}]}),
        client.post(MEMORIES, content=b"[" * 100_000, headers=post),
        client.get(MEMORIES, params={"limit": 1_001}),
        client.post("/v1/banks/story1/search", json={"query": "x", "limit": 1_001}),
        client.get("/v1/banks", headers={"X-Big": "x" * 20_000}),
        client.get("/v1/banks/" + "x" * 129),
    ]
    assert [answer.status_code for answer in refused] == [413, 422, 422, 409, 422, 422, 400, 422, 422, 431, 422]
    assert client.get("/v1/banks").json()["banks"] == []
    assert [client.get("/v1/banks").status_code for _ in range(12)][-1] == 429


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-HTTP-Method-Override": "GET"},
        {"X-Original-URL": "/healthz"},
        {"X-Rewrite-URL": "/healthz"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Role": "write"},
    ],
)
def test_api5_broken_function_level_authorization(client: TestClient, headers: dict[str, str]) -> None:
    """A key to read does not write, whatever else it sends; nor does a header make one call into another."""
    reader, writer = key(client, "a", "read"), key(client, "a")
    client.post(MEMORIES, json=BODY, headers=writer)
    for method, path, body in [
        ("POST", MEMORIES, BODY),
        ("PUT", "/v1/banks/x", {}),
        ("DELETE", "/v1/banks/story1", None),
        ("PATCH", f"{MEMORIES}/m1", {"pinned": True}),
    ]:
        assert client.request(method, path, json=body, headers=reader | headers).status_code == 403
    override = {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE"}
    assert client.get(f"{MEMORIES}/m1", headers=writer | override).status_code == 200
    assert client.get(f"{MEMORIES}/m1?_method=DELETE", headers=writer).status_code == 200


def test_api6_unrestricted_access_to_sensitive_business_flows(serve: Any) -> None:
    """The one flow that somebody might automate is filling banks: it is limited by key, and by what a key may own."""
    client = serve(rate=0.01, burst=6, max_banks=3)
    bot, other = key(client, "bot"), key(client, "other")
    statuses = [client.put(f"/v1/banks/{number}", json={}, headers=bot).status_code for number in range(8)]
    assert statuses == [201, 201, 201, 409, 409, 409, 429, 429]
    assert client.put("/v1/banks/0", json={}, headers=other).status_code == 201


@pytest.mark.parametrize(
    "address",
    ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "//evil.example/x", "gopher://x", "/etc/passwd"],
)
def test_api7_server_side_request_forgery(serve: Any, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """No address or path in a request is ever followed: texts are texts, and tokenizers are names."""
    client = serve(with_context=True)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("the server opened a connection")

    adventure = {
        "format": "adventure/1",
        "url": address,
        "ai_instructions": address,
        "actions": [{"kind": "do", "text": address}],
        "memories": [{"text": address}],
    }
    monkeypatch.setattr(socket.socket, "connect", never)
    monkeypatch.setattr(socket, "getaddrinfo", never)
    assert client.post("/v1/context", json={"adventure": adventure}).status_code == 200
    refused = client.post("/v1/context", json={"adventure": adventure, "tokenizer": address})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "tokenizer")
    assert (
        client.post(
            MEMORIES, json={"memories": [{"text": address, "id": "x", "metadata": {"url": address}}]}
        ).status_code
        == 200
    )
    assert client.post("/v1/banks/story1/search", json={"query": address}).status_code == 200
    assert client.post("/v1/context", json={"adventure": adventure, "model": address}).status_code == 422


def test_api8_security_misconfiguration(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the inside is shown, no foreign page is let in, nothing is guessed from content."""

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("/srv/secret/path")

    answers = [client.get(path) for path in ("/v1/banks", "/healthz", "/nowhere", "/v1/banks/none")]
    monkeypatch.setattr(client.host, "banks", broken)  # type: ignore[attr-defined]
    answers += [client.get("/v1/banks")]
    assert answers[-1].status_code == 500
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "private" in answer.headers["cache-control"]
        assert not {"server", "x-powered-by", "access-control-allow-origin", "set-cookie"} & set(answer.headers)
        assert not any(word in answer.text for word in ("Traceback", "File ", "secret", "ZeroDivision", ".py"))
    for path in ("/docs", "/redoc", "/docs/oauth2-redirect", "/.env", "/debug", "/admin"):
        assert client.get(path).status_code == 404
    assert client.request("TRACE", "/v1/banks").status_code == 405
    assert client.get("/v1/banks", headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.get("/v1/banks", headers={"Host": "evil.example"}).status_code == 403


def test_api9_improper_inventory_management(serve: Any) -> None:
    """Each route is in the document, in one version; there is no other."""
    client = serve(with_context=True)
    documented = {
        (method.upper(), path)
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    routes = {(method, route.path) for route in client.app.routes for method in route.methods}
    assert routes - documented == {("GET", "/openapi.json"), ("HEAD", "/openapi.json")}
    assert documented <= routes
    assert {path for _, path in documented if not path.startswith("/v1/")} == {"/healthz", "/readyz", "/metrics"}
    for path in ("/v0/banks", "/v2/banks", "/api/v1/banks", "/banks", "/v1beta/banks"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, 2.0])
def test_api10_unsafe_consumption_of_apis(serve: Any, bad: float) -> None:
    """What the model gives is checked like anything from outside: a vector that is none is never stored."""

    class Broken(HashingEmbedder):
        def embed(self, texts: Any, *, kind: Any = "passage") -> Any:
            return np.full((len(texts), self.dimensions), bad, dtype=np.float32)

    client = serve(Broken())
    answer = client.post(MEMORIES, json=BODY)
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:story-context:problem:model-unavailable")
    assert client.get("/v1/banks/story1").status_code == 404


def test_problems_never_repeat_a_whole_body(client: TestClient) -> None:
    text = "s3cret " * 20_000
    answer = client.post(MEMORIES, json={"memories": [{"text": text, "id": text}, {"text": text, text: 1}]})
    assert answer.status_code == 422
    assert len(json.dumps(answer.json())) < 5_000
