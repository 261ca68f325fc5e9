"""Memories over HTTP: adding, reading, changing, deleting, using; searching."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from memorybank.service.routes import memories

MEMORIES = "/v1/banks/a/memories"
KEY = "Mara hid the silver key under the chapel floor."
SEAL = "A grey seal led the skiff through the Teeth."
FIELDS = {
    "id",
    "text",
    "actions",
    "pinned",
    "metadata",
    "state",
    "model",
    "created",
    "last_used",
    "use_count",
    "writer",
    "reason",
    "version",
    "ordinal",
}


def add(client: TestClient, *memories: Any) -> list[dict[str, Any]]:
    items = [{"text": memory} if isinstance(memory, str) else memory for memory in memories]
    answer = client.post(MEMORIES, json={"memories": items})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["memories"]
    return found


def slug(answer: Any) -> str:
    return str(answer.json()["type"]).removeprefix("urn:story-context:problem:")


def test_memories_are_stored_whole(client: TestClient) -> None:
    sent = {"id": "x 1", "text": f"  {KEY}\r\n", "actions": ["a1", "a2"], "pinned": True, "metadata": {"n": [1, None]}}
    stored = add(client, sent)[0]
    assert set(stored) == FIELDS
    assert {name: stored[name] for name in sent} == sent | {"text": KEY}
    assert (stored["state"], stored["use_count"], stored["last_used"]) == ("active", 0, None)
    answer = client.get(f"{MEMORIES}/x 1")
    assert answer.json() == stored
    assert answer.headers["etag"] == f'"{stored["version"]}"'


def test_the_same_call_twice_makes_no_second_memory(client: TestClient) -> None:
    first = add(client, KEY, {"text": SEAL, "id": "seal"})
    assert add(client, KEY, {"text": SEAL, "id": "seal"}) == first
    assert client.get(MEMORIES).json()["memories"] == first


def test_all_or_none(client: TestClient) -> None:
    for bad in ({"text": " "}, {"text": "x", "id": ""}, {"text": "x", "metadata": {"n": "x" * 100_001}}, {"text": 1}):
        assert client.post(MEMORIES, json={"memories": [{"text": KEY}, bad]}).status_code == 422
    assert client.get(MEMORIES).json() == {"memories": [], "cursor": None}
    assert client.get("/v1/banks/a").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "memories"),
        ({"memories": []}, "memories"),
        ({"memories": None}, "memories"),
        ({"memories": [{"text": "x"}] * 1001}, "memories"),
        ({"memories": [{}]}, "memories[0].text"),
        ({"memories": ["x"]}, "memories[0]"),
        ({"memories": [{"text": "x"}, {"text": None}]}, "memories[1].text"),
        ({"memories": [{"text": "x", "pinned": 1}]}, "memories[0].pinned"),
        ({"memories": [{"text": "x", "actions": "a1"}]}, "memories[0].actions"),
        ({"memories": [{"text": "x", "actions": ["a", 2]}]}, "memories[0].actions[1]"),
        ({"memories": [{"text": "x", "metadata": []}]}, "memories[0].metadata"),
        ({"memories": [{"text": "x", "id": "a" * 201}]}, "memories[0].id"),
        ({"memories": [{"text": "x", "state": "active"}]}, "memories[0].state"),
        ({"memories": [{"text": "x"}], "more": 1}, "more"),
        ([], "body"),
        ("x", "body"),
    ],
)
def test_a_wrong_body_says_where(client: TestClient, body: Any, field: str) -> None:
    answer = client.post(MEMORIES, json=body)
    assert (answer.status_code, slug(answer)) == (422, "invalid-request")
    assert answer.json()["errors"][0]["field"] == field


def test_what_only_the_library_knows_is_refused_in_its_words(client: TestClient) -> None:
    answer = client.post(MEMORIES, json={"memories": [{"text": "ok"}, {"text": "x" * 100_001}]})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "memory 2: text has 100,001 characters, the limit is 100,000: split it"


def test_a_thousand_memories_in_one_call(client: TestClient) -> None:
    stored = add(client, *[f"The wolf number {number} howls." for number in range(1000)])
    assert [memory["id"] for memory in stored] == [f"m{number}" for number in range(1, 1001)]


def test_pages_follow_the_order_of_storing(client: TestClient) -> None:
    add(client, *[f"The wolf number {number} howls." for number in range(250)])
    client.patch(f"{MEMORIES}/m3", json={"state": "forgotten"})
    found, cursor, calls = [], None, 0
    while True:
        page = client.get(MEMORIES, params={"limit": 120, "state": "active"} | ({"cursor": cursor} if cursor else {}))
        found += [memory["id"] for memory in page.json()["memories"]]
        calls += 1
        if (cursor := page.json()["cursor"]) is None:
            break
    assert found == [f"m{number}" for number in range(1, 251) if number != 3]
    assert calls == 3
    assert [memory["id"] for memory in client.get(MEMORIES, params={"state": "forgotten"}).json()["memories"]] == ["m3"]
    assert client.get(MEMORIES, params={"state": "lost"}).status_code == 422


def test_a_page_of_very_long_memories_is_shorter_and_none_is_left_out(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "PAGE_CHARACTERS", 40_000)
    add(client, *[f"{number:02} {'x' * 997}" for number in range(60)])
    found, cursor = [], None
    while True:
        page = client.get(MEMORIES, params={"limit": 1000} | ({"cursor": cursor} if cursor else {})).json()
        assert 1 <= len(page["memories"]) <= 41
        found += [memory["id"] for memory in page["memories"]]
        if (cursor := page["cursor"]) is None:
            break
    assert found == [f"m{number}" for number in range(1, 61)]


def test_an_edit_changes_what_is_given(client: TestClient) -> None:
    add(client, {"text": KEY, "actions": ["a1"], "metadata": {"n": 1}}, SEAL)
    answer = client.patch(f"{MEMORIES}/m1", json={"pinned": True, "metadata": {"n": 2}})
    assert answer.status_code == 200
    assert answer.headers["etag"] == f'"{answer.json()["version"]}"'
    assert {name: answer.json()[name] for name in ("text", "actions", "pinned", "metadata", "state")} == {
        "text": KEY,
        "actions": ["a1"],
        "pinned": True,
        "metadata": {"n": 2},
        "state": "active",
    }
    client.patch(f"{MEMORIES}/m1", json={"text": "A red fox crossed the ice."})
    best = client.post("/v1/banks/a/search", json={"query": "red fox ice"}).json()["results"][0]
    assert best["memory"]["id"] == "m1"


@pytest.mark.parametrize(
    "body", [{}, {"text": None}, {"pinned": None}, {"state": "lost"}, {"id": "m2"}, {"text": ""}, {"actions": None}]
)
def test_an_edit_that_is_none_changes_nothing(client: TestClient, body: Any) -> None:
    before = add(client, KEY)[0]
    assert client.patch(f"{MEMORIES}/m1", json=body).status_code == 422
    assert client.get(f"{MEMORIES}/m1").json() == before


def test_several_edits_are_all_or_none(client: TestClient) -> None:
    add(client, KEY, SEAL)
    answer = client.patch(MEMORIES, json={"memories": [{"id": "m1", "pinned": True}, {"id": "m9", "pinned": True}]})
    assert (answer.status_code, slug(answer)) == (404, "memory-not-found")
    assert "'m9'" in answer.json()["detail"]
    assert not client.get(f"{MEMORIES}/m1").json()["pinned"]
    body = {"memories": [{"id": "m2", "pinned": True}, {"id": "m1", "text": "Another text."}]}
    assert [memory["id"] for memory in client.patch(MEMORIES, json=body).json()["memories"]] == ["m2", "m1"]


def test_deleting_one_or_many(client: TestClient) -> None:
    add(client, KEY, SEAL, "The bell rang twice.")
    assert client.post(f"{MEMORIES}/delete", json={"ids": ["m1", "m9"]}).status_code == 404
    assert len(client.get(MEMORIES).json()["memories"]) == 3
    assert client.post(f"{MEMORIES}/delete", json={"ids": ["m1", "m3", "m1"]}).status_code == 204
    assert client.delete(f"{MEMORIES}/m2").status_code == 204
    again = client.delete(f"{MEMORIES}/m2")
    assert (again.status_code, slug(again)) == (404, "memory-not-found")
    assert client.get(MEMORIES).json()["memories"] == []


def test_uses_are_counted_for_those_that_are_there(client: TestClient) -> None:
    before = add(client, KEY, SEAL)[0]
    assert client.post(f"{MEMORIES}/used", json={"ids": ["m1", "gone"]}).json() == {"used": 1}
    after = client.get(f"{MEMORIES}/m1").json()
    assert (after["use_count"], after["last_used"] is None) == (1, False)
    assert after["version"] == before["version"], "a memory that was used is still the one that was read"
    assert client.post("/v1/banks/nobody/memories/used", json={"ids": ["m1"]}).json() == {"used": 0}


def test_an_id_with_a_slash_is_sent_encoded(client: TestClient) -> None:
    add(client, {"text": KEY, "id": "2026/05/01"}, {"text": SEAL, "id": "a%2Fb"})
    assert client.get(f"{MEMORIES}/2026%2F05%2f01").json()["text"] == KEY
    assert client.get(f"{MEMORIES}/a%252Fb").json()["text"] == SEAL
    assert client.get(f"{MEMORIES}/2026/05/01").status_code == 404


def test_search_ranks_and_explains(client: TestClient) -> None:
    add(client, KEY, SEAL)
    found = client.post("/v1/banks/a/search", json={"query": KEY, "explain": True}).json()["results"]
    assert [(one["memory"]["id"], one["rank"]) for one in found] == [("m1", 1), ("m2", 2)]
    assert found[0]["similarity"] == pytest.approx(1.0, abs=1e-4)
    assert sum(found[0]["parts"].values()) == pytest.approx(2.0), "the best of both arms, and just what was asked for"
    assert set(found[0]["parts"]) == {"semantic", "lexical", "same"}
    assert set(found[1]["parts"]) == {"semantic", "lexical"}
    assert set(found[0]["memory"]) == FIELDS
    plain = client.post("/v1/banks/a/search", json={"query": KEY, "limit": 1}).json()["results"]
    assert plain == [{name: value for name, value in found[0].items() if name != "parts"}]


def test_search_says_what_is_told_again(client: TestClient) -> None:
    add(client, {"text": KEY, "id": "old"}, SEAL, {"text": f"{KEY} Again.", "id": "new"})
    found = client.post("/v1/banks/a/search", json={"query": KEY, "retellings": True}).json()["results"]
    retold = {one["memory"]["id"]: [other["id"] for other in one["retold_by"]] for one in found}
    assert retold == {"old": ["new"], "new": [], "m1": []}
    assert 0.8 < found[0]["retold_by"][0]["cosine"] <= 1


def test_search_takes_what_the_library_takes(client: TestClient) -> None:
    add(client, KEY, SEAL, {"text": "The bell rang twice.", "pinned": True})

    def ids(**body: Any) -> list[str]:
        answer = client.post("/v1/banks/a/search", json={"query": KEY, **body})
        assert answer.status_code == 200, answer.text
        return [one["memory"]["id"] for one in answer.json()["results"]]

    assert ids(pinned_first=True)[0] == "m3"
    assert ids(min_similarity=0.99) == ["m1"]
    assert ids(max_tokens=12) == ["m1"]
    assert ids(max_tokens=0) == []
    assert ids(limit=2.0) == ids(limit=2)
    assert ids(query=" \n") == ids(query="") == []
    assert len(ids(query="...")) == 3
    assert client.post("/v1/banks/nobody/search", json={"query": KEY}).json() == {"results": []}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": 1},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 1001},
        {"query": "x", "limit": 1.5},
        {"query": "x", "limit": True},
        {"query": "x", "limit": 10**400},
        {"query": "x", "max_tokens": -1},
        {"query": "x", "min_similarity": 1.1},
        {"query": "x", "min_similarity": "0"},
        {"query": "x", "ranking": "best"},
        {"query": "x", "pinned_first": "yes"},
        {"query": "x", "top": 5},
    ],
)
def test_a_search_that_is_none_is_refused(client: TestClient, body: Any) -> None:
    add(client, KEY)
    answer = client.post("/v1/banks/a/search", json=body)
    assert (answer.status_code, slug(answer)) == (422, "invalid-request")


def test_banks_never_mix(client: TestClient) -> None:
    add(client, *[f"The wolf number {number} howls." for number in range(15)])
    client.post("/v1/banks/b/memories", json={"memories": [{"text": f"A fox, {number}."} for number in range(5)]})
    found = client.post("/v1/banks/b/search", json={"query": "The wolf howls.", "limit": 10}).json()["results"]
    assert len(found) == 5
    assert all("fox" in one["memory"]["text"] for one in found)
