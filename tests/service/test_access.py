"""Who may come in: keys, namespaces, this machine, other sites, and how often."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from starlette.testclient import TestClient

from memorybank.errors import StorageError
from memorybank.service import limits
from memorybank.service.limits import Buckets, address_of
from memorybank.service.logs import JsonFormatter

BODY = {"memories": [{"text": "The gate opens."}]}


def key(client: TestClient, namespace: str = "acme", access: Any = "write") -> dict[str, str]:
    _, token = client.host.keys.create(namespace=namespace, access=access)  # type: ignore[attr-defined]
    return {"Authorization": f"Bearer {token}"}


def slug(answer: Any) -> str:
    return str(answer.json()["type"]).removeprefix("urn:story-context:problem:")


def test_without_any_key_none_is_needed_and_with_one_it_is(client: TestClient) -> None:
    assert client.post("/v1/banks/a/memories", json=BODY).status_code == 200
    headers = key(client, "")
    answer = client.get("/v1/banks")
    assert (answer.status_code, slug(answer)) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/v1/banks", headers=headers).json()["banks"][0]["name"] == "a"
    assert client.get("/v1/anything").status_code == 401, "also where there is nothing"


def test_a_key_made_by_another_process_counts_at_once_and_a_revoked_one_no_more(serve: Any) -> None:
    here, there = serve(), serve()
    assert here.get("/v1/banks").status_code == 200
    made, token = there.host.keys.create(namespace="", access="write")
    headers = {"Authorization": f"Bearer {token}"}
    assert here.get("/v1/banks").status_code == 401
    assert here.get("/v1/banks", headers=headers).status_code == 200
    there.host.keys.revoke(made.id)
    assert here.get("/v1/banks", headers=headers).status_code == 401
    assert here.get("/v1/banks").status_code == 401, "once there was a key, nobody gets in without one"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer x{token}",
        "Bearer {token} more",
        "Bearer mb_000000000000_{secret}",
        "Bearer {upper}",
        "Bearer mb__",
        "Bearer é",
        "Bearer \x00",
        "Bearer " + "x" * 10_000,
    ],
)
def test_what_is_no_key_opens_nothing(client: TestClient, value: str) -> None:
    token = key(client)["Authorization"].removeprefix("Bearer ")
    value = value.format(token=token, secret=token.split("_", 2)[2], upper=token.upper())
    answer = client.get("/v1/banks", headers={"Authorization": value.encode()})
    assert (answer.status_code, slug(answer)) == (401, "unauthorized")
    assert token not in answer.text
    assert client.get("/v1/banks", headers={"Authorization": f"bearer   {token}"}).status_code == 200


def test_two_keys_in_one_request_are_none(client: TestClient) -> None:
    first, second = key(client), key(client, "other")
    both = [("Authorization", first["Authorization"]), ("Authorization", second["Authorization"])]
    assert client.get("/v1/banks", headers=both).status_code == 401


def test_namespaces_do_not_see_one_another(client: TestClient) -> None:
    acme, other, outside = key(client, "acme"), key(client, "other"), key(client, "")
    for number, headers in enumerate((acme, other, outside)):
        body = {"memories": [{"text": f"Owner {number} hid the key."}]}
        assert client.post("/v1/banks/story1/memories", json=body, headers=headers).status_code == 200
    for number, headers in enumerate((acme, other, outside)):
        listed = client.get("/v1/banks", headers=headers).json()["banks"]
        assert [bank["name"] for bank in listed] == ["story1"]
        found = client.post("/v1/banks/story1/search", json={"query": "key"}, headers=headers).json()["results"]
        assert [one["memory"]["text"] for one in found] == [f"Owner {number} hid the key."]
    assert client.delete("/v1/banks/story1", headers=acme).status_code == 204
    assert client.get("/v1/banks/story1", headers=acme).status_code == 404
    assert client.get("/v1/banks/story1", headers=other).status_code == 200
    assert client.host.bank("acme/story1").count() == 0  # type: ignore[attr-defined]
    assert client.host.bank("other/story1").count() == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "path", ["acme%2Fstory1", "acme/story1", "..%2Facme%2Fstory1", "acme%252Fstory1", "%61cme%2fstory1"]
)
def test_no_spelling_leads_into_another_namespace(client: TestClient, path: str) -> None:
    acme = key(client, "acme")
    client.post("/v1/banks/story1/memories", json=BODY, headers=acme)
    for namespace in ("", "other"):
        headers = key(client, namespace)
        for answer in (
            client.get(f"/v1/banks/{path}", headers=headers),
            client.get(f"/v1/banks/{path}/memories/m1", headers=headers),
            client.delete(f"/v1/banks/{path}", headers=headers),
        ):
            assert answer.status_code in (404, 422)
            assert "gate" not in answer.text
    assert client.get("/v1/banks/story1", headers=acme).json()["counts"] == {"active": 1}


def test_messages_call_a_bank_as_its_owner_does(client: TestClient) -> None:
    headers = key(client, "acme")
    answer = client.get("/v1/banks/story1/memories/m9", headers=headers)
    assert answer.json()["detail"] == "bank 'story1' has no memory 'm9': nothing was changed"
    assert "acme" not in client.get("/v1/banks/it's", headers=headers).text


READS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/banks", None),
    ("GET", "/v1/banks/a", None),
    ("HEAD", "/v1/banks/a", None),
    ("GET", "/v1/banks/a/memories", None),
    ("GET", "/v1/banks/a/memories/m1", None),
    ("POST", "/v1/banks/a/search", {"query": "gate"}),
    ("GET", "/v1/banks/a/pending", None),
    ("GET", "/v1/banks/a/summary", None),
    ("POST", "/v1/context", {"adventure": {"format": "adventure/1"}}),
    ("POST", "/v1/context", {"adventure": {"format": "adventure/1"}, "bank": "a"}),
]
WRITES: list[tuple[str, str, Any]] = [
    ("PUT", "/v1/banks/a", {}),
    ("PUT", "/v1/banks/b", {"capacity": 1}),
    ("DELETE", "/v1/banks/a", None),
    ("POST", "/v1/banks/a/memories", BODY),
    ("PATCH", "/v1/banks/a/memories", {"memories": [{"id": "m1", "pinned": True}]}),
    ("PATCH", "/v1/banks/a/memories/m1", {"pinned": True}),
    ("DELETE", "/v1/banks/a/memories/m1", None),
    ("POST", "/v1/banks/a/memories/delete", {"ids": ["m1"]}),
    ("POST", "/v1/banks/a/memories/used", {"ids": ["m1"]}),
    ("PUT", "/v1/banks/a/actions", {"actions": []}),
    ("PUT", "/v1/banks/a/summary", {"text": "Mine."}),
    ("POST", "/v1/banks/a/branches", {"name": "c"}),
    ("POST", "/v1/context", {"adventure": {"format": "adventure/1"}, "bank": "a", "commit": True}),
]


def test_a_key_to_read_reads_and_searches_and_no_more(serve: Any) -> None:
    client = serve(with_context=True)
    reader, writer = key(client, access="read"), key(client, access="write")
    client.post("/v1/banks/a/memories", json=BODY, headers=writer)
    before = client.get("/v1/banks/a/memories", headers=writer).json()
    for method, path, body in READS:
        answer = client.request(method, path, json=body, headers=reader)
        assert answer.status_code == 200, (method, path, answer.text)
    for method, path, body in WRITES:
        answer = client.request(method, path, json=body, headers=reader)
        assert (answer.status_code, slug(answer)) == (403, "forbidden"), (method, path)
    assert client.get("/v1/banks/a/memories", headers=writer).json() == before
    assert {bank["name"] for bank in client.get("/v1/banks", headers=writer).json()["banks"]} == {"a"}


def test_every_route_under_v1_is_read_or_write(serve: Any) -> None:
    """A route that is added must be put into one of the two lists above."""
    app = serve(with_context=True).app
    routes = {(method, route.path) for route in app.routes for method in route.methods if route.path.startswith("/v1")}
    listed = {
        (method, path.replace("/banks/a", "/banks/{bank}").replace("/banks/b", "/banks/{bank}").replace("m1", "{id}"))
        for method, path, _ in READS + WRITES
        if method != "HEAD"
    }
    assert listed == routes


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "localhost:80", "127.0.0.1:80"])
def test_an_open_server_answers_to_its_own_names(client: TestClient, host: str) -> None:
    assert client.get("/v1/banks", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "localhost:81",
        "",
        "127.0.0.2",
        "0.0.0.0",
        "[::1",
        "localhost:x",
        "::1",
    ],
)
def test_an_open_server_does_not_answer_to_other_names(client: TestClient, host: str) -> None:
    for path in ("/v1/banks", "/openapi.json", "/metrics", "/v1/nothing"):
        answer = client.get(path, headers={"Host": host})
        assert (answer.status_code, slug(answer)) == (403, "forbidden"), path
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "https://localhost", ""])
def test_an_open_server_answers_to_no_page_of_another_site(client: TestClient, origin: str) -> None:
    answer = client.post("/v1/banks/a/memories", json=BODY, headers={"Origin": origin})
    assert (answer.status_code, slug(answer)) == (403, "forbidden")
    assert "access-control-allow-origin" not in answer.headers
    assert client.options("/v1/banks", headers={"Origin": origin}).status_code == 403
    own = client.post("/v1/banks/a/memories", json=BODY, headers={"Origin": "http://localhost"})
    assert own.status_code == 200


@pytest.mark.parametrize("address", ["203.0.113.9", "2001:db8::1", "10.0.0.1", "::ffff:203.0.113.9"])
def test_an_open_server_serves_its_own_machine_only(serve: Any, address: str) -> None:
    client = serve(address=address)
    answer = client.get("/v1/banks")
    assert (answer.status_code, "memorybank keys create" in answer.json()["detail"]) == (403, True)
    headers = key(client)
    assert client.get("/v1/banks", headers=headers | {"Host": "memory.example"}).status_code == 200


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_this_machine_has_many_addresses(serve: Any, address: str) -> None:
    assert serve(address=address).get("/v1/banks").status_code == 200


def test_metrics_are_for_this_machine_and_for_keys(serve: Any) -> None:
    local, remote, public = serve(), serve(address="203.0.113.9"), serve(address="203.0.113.9", metrics_public=True)
    headers = key(local, access="read")
    assert local.get("/metrics").status_code == public.get("/metrics").status_code == 200
    assert local.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"}).status_code == 401
    assert remote.get("/metrics").status_code == 401
    assert remote.get("/metrics", headers=headers).status_code == 200
    assert remote.get("/healthz").status_code == remote.get("/readyz").status_code == 200


def test_wrong_keys_are_counted_by_address_and_right_ones_get_through(serve: Any) -> None:
    client, elsewhere = serve(address="203.0.113.9"), serve(address="203.0.113.10")
    headers = key(client)
    assert client.get("/v1/banks", headers=headers).status_code == 200
    wrong = {"Authorization": f"Bearer mb_0123456789ab_{'x' * 43}"}
    statuses = [client.get("/v1/banks", headers=wrong).status_code for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    answer = client.get("/v1/banks", headers=wrong)
    assert (slug(answer), int(answer.headers["retry-after"]) >= 1) == ("rate-limited", True)
    assert client.get("/v1/banks", headers=headers).status_code == 200, "a key that has worked before still does"
    assert elsewhere.get("/v1/banks", headers=wrong).status_code == 401
    assert 'memorybank_rejections_total{reason="unauthorized"} 10.0' in client.get("/metrics", headers=headers).text


def test_calls_are_counted_by_key(serve: Any) -> None:
    client = serve(rate=0.5, burst=5)
    first, second = key(client), key(client)
    statuses = [client.get("/v1/banks", headers=first).status_code for _ in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    answer = client.get("/v1/banks", headers=first)
    assert (slug(answer), answer.headers["retry-after"]) == ("rate-limited", "2")
    assert client.get("/v1/banks", headers=second).status_code == 200
    assert client.get("/healthz").status_code == 200


def test_calls_without_keys_are_counted_by_address(serve: Any) -> None:
    client = serve(rate=0.5, burst=3)
    assert [client.get("/v1/banks").status_code for _ in range(5)] == [200] * 3 + [429] * 2
    key(client)
    assert [client.get("/v1/banks").status_code for _ in range(5)] == [401] * 3 + [429] * 2


def test_a_bucket_fills_up_again() -> None:
    now = [100.0]
    buckets = Buckets(2, 3, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    assert (buckets.wait("a"), buckets.wait("b")) == (0.5, 0)
    now[0] += 0.5
    assert [buckets.take("a"), buckets.take("a")] == [0, 0.5]
    now[0] += 1000
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert Buckets(0, 1).take("a") == 0


def test_buckets_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BUCKETS", 10)
    buckets = Buckets(1, 1)
    for number in range(100):
        buckets.take(str(number))
    assert len(buckets._buckets) == 10


def test_addresses_of_one_customer_count_together() -> None:
    assert address_of("203.0.113.9") == "203.0.113.9"
    assert address_of("2001:db8:1:2::1") == address_of("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert address_of("::ffff:203.0.113.9") == "203.0.113.9"
    assert address_of("testclient") == "testclient"


def test_a_database_that_is_away_lets_nobody_in(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> Any:
        raise StorageError("database /srv/secret/place.sqlite: the disk is gone")

    monkeypatch.setattr(client.host.keys, "any", away)  # type: ignore[attr-defined]
    answer = client.get("/v1/banks")
    assert (answer.status_code, slug(answer)) == (503, "storage-unavailable")
    assert "secret" not in answer.text
    assert client.get("/healthz").status_code == 200


def test_a_token_is_in_no_log_no_error_and_no_metric(
    client: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    headers = key(client)
    token = headers["Authorization"].removeprefix("Bearer ")
    key_id, secret = token.split("_", 2)[1:]

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"unexpected {token}")

    answers: list[Any] = [
        client.get("/v1/banks", headers=headers),
        client.get("/v1/banks", headers=headers | {"x": token}),
    ]
    answers += [client.get("/v1/banks", headers={"Authorization": f"Bearer {token[:-1]}"})]
    monkeypatch.setattr(client.host.keys, "authenticate", broken)  # type: ignore[attr-defined]
    answers += [client.get("/v1/banks", headers=headers)]
    assert [answer.status_code for answer in answers] == [200, 200, 401, 500]
    formatted = [JsonFormatter().format(record) for record in caplog.records]
    said = "\n".join([*formatted, *(answer.text for answer in answers), client.get("/metrics").text])
    assert secret[:-1] not in said
    known = [json.loads(line) for line in formatted]
    assert [line["key_id"] for line in known if line["message"] == "request"][:2] == [key_id, key_id]
    assert key_id not in client.get("/metrics").text
