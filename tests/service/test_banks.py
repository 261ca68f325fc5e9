"""Banks over HTTP: making, reading, changing, listing, deleting."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

A = "/v1/banks/a"
USUAL = {"every": 6, "untouched": 6, "summary_every": 15}
OLDER = {"every": 4, "untouched": 4, "summary_every": 8}
FIELDS = {"name", "model", "dimensions", "counts", "capacity", "revision", "created", "version", "rhythm"}


def add(client: TestClient, bank: str, *texts: str) -> None:
    answer = client.post(f"/v1/banks/{bank}/memories", json={"memories": [{"text": text} for text in texts]})
    assert answer.status_code == 200, answer.text


def slug(answer: object) -> str:
    body = answer.json()  # type: ignore[attr-defined]
    return str(body["type"]).removeprefix("urn:story-context:problem:")


def test_a_bank_is_made_read_changed_and_deleted(client: TestClient) -> None:
    assert slug(client.get(A)) == "bank-not-found"
    made = client.put(A, json={"capacity": 5})
    assert made.status_code == 201
    assert set(made.json()) == FIELDS
    assert made.json() | {"created": 0, "version": 0, "revision": 0} == {
        "name": "a",
        "model": "hashing-64",
        "dimensions": 64,
        "counts": {},
        "capacity": 5,
        "revision": 0,
        "created": 0,
        "version": 0,
        "rhythm": USUAL,
    }
    assert made.headers["etag"] == f'"{made.json()["version"]}"'
    assert client.get(A).json() == made.json()
    changed = client.put(A, json={"capacity": None})
    assert (changed.status_code, changed.json()["capacity"]) == (200, None)
    assert changed.headers["etag"] != made.headers["etag"]
    assert client.delete(A).status_code == 204
    assert client.get(A).status_code == client.delete(A).status_code == 404


def test_put_without_fields_makes_a_bank_and_changes_none(client: TestClient) -> None:
    assert client.put(A, json={}).status_code == 201
    client.put(A, json={"capacity": 7})
    again = client.put(A, json={})
    assert (again.status_code, again.json()["capacity"]) == (200, 7)


def test_the_rhythm_is_a_setting_like_the_capacity(client: TestClient) -> None:
    made = client.put(A, json={"rhythm": OLDER, "capacity": 7})
    assert (made.status_code, made.json()["rhythm"], made.json()["capacity"]) == (201, OLDER, 7)
    assert client.get("/v1/banks").json()["banks"] == [client.get(A).json()]
    tag = made.headers["etag"]
    changed = client.put(A, json={"rhythm": USUAL | {"untouched": 0.0}}, headers={"If-Match": tag})
    assert (changed.json()["rhythm"], changed.json()["capacity"]) == (USUAL | {"untouched": 0}, 7)
    assert changed.headers["etag"] == client.get(A).headers["etag"] != tag
    late = client.put(A, json={"rhythm": OLDER, "capacity": 1}, headers={"If-Match": tag})
    assert (late.status_code, slug(late)) == (412, "precondition-failed")
    assert client.delete(A, headers={"If-Match": tag}).status_code == 412
    assert client.get(A).json() == changed.json() | {"revision": client.get(A).json()["revision"]}
    assert client.put(A, json={"capacity": None}).json()["rhythm"]["untouched"] == 0
    assert client.delete(A, headers={"If-Match": client.get(A).headers["etag"]}).status_code == 204


@pytest.mark.parametrize(
    "rhythm",
    [
        None,
        "4/8",
        {},
        {"every": 4},
        OLDER | {"every": 0},
        OLDER | {"untouched": -1},
        OLDER | {"summary_every": 10_001},
        OLDER | {"every": 2.5},
        OLDER | {"every": True},
        OLDER | {"more": 1},
    ],
)
def test_a_rhythm_that_is_none_changes_nothing(client: TestClient, rhythm: object) -> None:
    before = client.put(A, json={"capacity": 7}).json()
    answer = client.put(A, json={"capacity": 1, "rhythm": rhythm})
    assert (answer.status_code, slug(answer)) == (422, "invalid-request")
    assert answer.json()["errors"][0]["field"].startswith("rhythm")
    assert client.get(A).json() == before


def test_a_first_memory_makes_the_bank(client: TestClient) -> None:
    add(client, "a", "The gate opens.", "The gate closes.")
    assert client.get(A).json()["counts"] == {"active": 2}


def test_a_smaller_capacity_forgets_at_once(client: TestClient) -> None:
    add(client, "a", "One.", "Two.", "Three.")
    assert client.put(A, json={"capacity": 1}).json()["counts"] == {"active": 1, "forgotten": 2}


@pytest.mark.parametrize(
    "body", [{"capacity": 0}, {"capacity": 2**60}, {"capacity": "5"}, {"capacity": True}, {"x": 1}]
)
def test_settings_that_are_none_change_nothing(client: TestClient, body: object) -> None:
    answer = client.put(A, json=body)
    assert (answer.status_code, slug(answer)) == (422, "invalid-request")
    assert answer.json()["errors"][0]["field"] in ("capacity", "x")
    assert client.get(A).status_code == 404


def test_banks_are_listed_by_name_page_by_page(client: TestClient) -> None:
    names = [f"bank {number:02}" for number in range(7)]
    for name in reversed(names):
        add(client, name, "The gate opens.")
    found, cursor = [], None
    while True:
        page = client.get("/v1/banks", params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        found += [bank["name"] for bank in page["banks"]]
        if (cursor := page["cursor"]) is None:
            break
        assert not cursor.isdigit()
        assert "bank" not in cursor
    assert found == names
    assert client.get("/v1/banks/bank 03").json() == client.get("/v1/banks").json()["banks"][3]


@pytest.mark.parametrize("cursor", ["", "x", "====", "é", "A" * 900, "MDA"])
def test_a_cursor_that_is_none_is_refused(client: TestClient, cursor: str) -> None:
    for path in ("/v1/banks", f"{A}/memories"):
        answer = client.get(path, params={"cursor": cursor})
        assert (answer.status_code, slug(answer)) == (422, "invalid-request")


def test_a_cursor_is_good_for_its_own_list_alone(client: TestClient) -> None:
    for bank in ("a", "b"):
        add(client, bank, "One.", "Two.", "Three.")
    of_banks = client.get("/v1/banks", params={"limit": 1}).json()["cursor"]
    of_a = client.get(f"{A}/memories", params={"limit": 1}).json()["cursor"]
    assert client.get(f"{A}/memories", params={"cursor": of_a}).status_code == 200
    for path, parameters in [
        ("/v1/banks/b/memories", {"cursor": of_a}),
        (f"{A}/memories", {"cursor": of_a, "state": "active"}),
        (f"{A}/memories", {"cursor": of_banks}),
        ("/v1/banks", {"cursor": of_a}),
    ]:
        assert client.get(path, params=parameters).status_code == 422, path


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "1.5", "", "9" * 30])
def test_a_limit_out_of_range_is_refused(client: TestClient, limit: str) -> None:
    answer = client.get("/v1/banks", params={"limit": limit})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.limit")


def test_a_deleted_bank_that_is_made_again_is_another_one(client: TestClient) -> None:
    add(client, "a", "The gate opens.")
    first = client.get(A).headers["etag"]
    client.delete(A)
    assert client.post(f"{A}/search", json={"query": "gate"}).json() == {"results": []}
    add(client, "a", "A grey seal led the skiff.")
    assert client.get(A).headers["etag"] != first
    assert len(client.post(f"{A}/search", json={"query": "gate"}).json()["results"]) == 1


def test_limits_of_banks_and_memories(serve: object) -> None:
    client = serve(max_banks=2, max_memories=3)  # type: ignore[operator]
    add(client, "a", "One.", "Two.")
    assert client.put("/v1/banks/b", json={}).status_code == 201
    for answer in (
        client.put("/v1/banks/c", json={}),
        client.post("/v1/banks/c/memories", json={"memories": [{"text": "x"}]}),
        client.post(f"{A}/memories", json={"memories": [{"text": "Three."}, {"text": "Four."}]}),
    ):
        assert (answer.status_code, slug(answer)) == (409, "conflict")
    assert client.get(A).json()["counts"] == {"active": 2}
    add(client, "a", "Three.")
    client.delete("/v1/banks/b")
    assert client.put("/v1/banks/c", json={}).status_code == 201
