"""The log over HTTP: memories are written in the background, and rewind with the story (SPEC.md sections 9 and 11)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from tests.support.service import LONG, Server

ACTIONS = "/v1/banks/a/actions"


def log(count: int, *, start: int = 1, word: str = "The wolf of the north howled at gate") -> list[dict[str, str]]:
    return [{"id": f"a{n}", "kind": "output", "text": f"{word} {n}."} for n in range(start, start + count)]


def until(found: Callable[[], Any]) -> Any:
    """Return what `found` returns as soon as that is something."""
    for _ in range(int(LONG * 20)):
        if value := found():
            return value
        threading.Event().wait(0.05)
    raise AssertionError("it never came")


def written(client: TestClient | httpx2.Client, bank: str = "a", state: str = "active") -> list[dict[str, Any]]:
    answer = client.get(f"/v1/banks/{bank}/memories", params={"state": state}).json()
    return [memory for memory in answer["memories"] if memory["writer"]]


def test_memories_of_the_log_are_written_in_the_background(client: TestClient) -> None:
    answer = client.put(ACTIONS, json={"actions": log(12)})
    assert answer.status_code == 200
    assert answer.json() == {"length": 12, "same": 0, "stale": [], "valid": [], "pending": 1}
    memory = until(lambda: written(client))[0]
    assert (memory["writer"], memory["actions"]) == ("extractive", [f"a{n}" for n in range(1, 7)])
    assert memory["reason"] == ""
    until(lambda: client.get("/v1/banks/a/pending").json() == {"pending": []})


def test_they_rewind_at_once_and_come_back(client: TestClient) -> None:
    client.put(ACTIONS, json={"actions": log(12)})
    memory = until(lambda: written(client))[0]
    change = client.put(ACTIONS, json={"actions": log(2)}).json()
    assert (change["stale"], change["same"]) == ([memory["id"]], 2)
    found = client.post("/v1/banks/a/search", json={"query": memory["text"]}).json()
    assert found == {"results": []}
    stale = written(client, state="stale")[0]
    assert stale["reason"] == "its source actions have changed or are gone"
    change = client.put(ACTIONS, json={"actions": log(10, start=3), "after": "a2"}).json()
    assert change == {"length": 12, "same": 2, "stale": [], "valid": [memory["id"]], "pending": 0}
    assert written(client)[0]["text"] == memory["text"]


def test_the_same_log_again_changes_nothing(client: TestClient) -> None:
    client.put(ACTIONS, json={"actions": log(5)})
    before = client.get("/v1/banks/a").json()
    assert client.put(ACTIONS, json={"actions": log(5)}).json()["same"] == 5
    assert client.get("/v1/banks/a").json() == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"actions": None},
        {"actions": [{"id": "a1"}]},
        {"actions": [{"id": "a1", "kind": "dream"}]},
        {"actions": [{"id": "", "kind": "do"}]},
        {"actions": [{"id": "a1", "kind": "do", "text": None}]},
        {"actions": log(1) + log(1)},
        {"actions": log(1), "extra": 1},
    ],
)
def test_a_bad_log_is_refused_and_nothing_changes(client: TestClient, body: Any) -> None:
    client.put(ACTIONS, json={"actions": log(3)})
    answer = client.put(ACTIONS, json=body)
    assert answer.status_code == 422
    assert client.put(ACTIONS, json={"actions": log(3)}).json()["same"] == 3


def test_an_end_behind_an_unknown_action(client: TestClient) -> None:
    answer = client.put(ACTIONS, json={"actions": log(1), "after": "nowhere"})
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (404, "action-not-found")


def test_any_text_may_stand_in_it(client: TestClient) -> None:
    texts = ["\0", "\\ud83d", "<|endoftext|>", "", "哈" * 1_000, "é" * 10]
    actions = [f'{{"id":"a{n}","kind":"do","text":"{text}"}}' for n, text in enumerate(texts)]
    body = ",".join(actions).replace("\0", "\\u0000")
    answer = client.put(
        ACTIONS, content=f'{{"actions":[{body}]}}'.encode(), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["length"] == len(texts)


def test_the_summary(client: TestClient) -> None:
    assert client.get("/v1/banks/a/summary").json() == {"current": None, "versions": []}
    client.put(ACTIONS, json={"actions": log(15)})
    found = until(lambda: client.get("/v1/banks/a/summary").json()["versions"])
    assert (found[0]["version"], found[0]["author"], found[0]["through"]) == (1, "extractive", 6)
    own = client.put("/v1/banks/a/summary", json={"text": "Mara is my sister."})
    assert own.status_code == 200
    assert (own.json()["version"], own.json()["author"]) == (2, "player")
    assert client.put("/v1/banks/a/summary", json={"text": "Mara is my sister."}).json() == own.json()
    answer = client.get("/v1/banks/a/summary").json()
    assert (answer["current"], [one["version"] for one in answer["versions"]]) == (2, [2, 1])
    current = client.get("/v1/banks/a/summary", params={"versions": "current"})
    assert current.json() == {"current": 2, "versions": [own.json()]}
    assert client.get("/v1/banks/a/summary", params={"versions": "newest"}).status_code == 422
    back = client.put("/v1/banks/a/summary", json={"restore": 1})
    assert (back.json()["version"], back.json()["text"]) == (3, found[0]["text"])
    gone = client.put("/v1/banks/a/summary", json={"restore": 99})
    assert (gone.status_code, gone.json()["type"].rpartition(":")[2]) == (404, "summary-not-found")
    for wrong in ({}, {"text": "x", "restore": 1}, {"restore": 0}, {"restore": None}, {"text": None}):
        assert client.put("/v1/banks/a/summary", json=wrong).status_code == 422, wrong


def test_what_is_due_in_another_rhythm_is_written(client: TestClient) -> None:
    assert client.put(ACTIONS, json={"actions": log(8)}).json()["pending"] == 0
    changed = client.put("/v1/banks/a", json={"rhythm": {"every": 4, "untouched": 4, "summary_every": 8}})
    assert changed.status_code == 200
    assert until(lambda: written(client))[0]["actions"] == ["a1", "a2", "a3", "a4"]


def test_a_branch(client: TestClient) -> None:
    client.put(ACTIONS, json={"actions": log(24)})
    until(lambda: len(written(client)) == 3)
    answer = client.post("/v1/banks/a/branches", json={"name": "b", "upto": "a13"})
    assert answer.status_code == 201
    assert answer.json()["name"] == "b"
    assert len(written(client, "b")) == 2
    again = client.post("/v1/banks/a/branches", json={"name": "b"})
    assert (again.status_code, again.json()["type"].rpartition(":")[2]) == (409, "bank-exists")
    assert client.post("/v1/banks/nobody/branches", json={"name": "c"}).status_code == 404
    assert client.post("/v1/banks/a/branches", json={"name": "c", "upto": "zzz"}).status_code == 404
    assert client.post("/v1/banks/a/branches", json={"name": "x/y"}).status_code == 422


def test_two_processes_write_each_span_once(tmp_path: Path, start: Callable[..., Server]) -> None:
    database = tmp_path / "memories.sqlite"
    with start(database).client() as one, start(database).client() as other:
        for client, bank in ((one, "x"), (other, "y")):
            assert client.put(f"/v1/banks/{bank}/actions", json={"actions": log(120)}).status_code == 200
        for bank in ("x", "y"):
            until(lambda bank=bank: len(written(one, bank)) >= 19)
            spans = [memory["actions"][0] for memory in written(other, bank)]
            assert sorted(spans) == sorted({f"a{n}" for n in range(1, 115, 6)})


def test_what_was_left_undone_is_written_after_a_restart(tmp_path: Path, start: Callable[..., Server]) -> None:
    database = tmp_path / "memories.sqlite"
    idle = start(database, "--writer", "none")
    with idle.client() as client:
        assert client.put(ACTIONS, json={"actions": log(12)}).json()["pending"] == 1
    idle.end(9)
    with start(database).client() as client:
        assert until(lambda: written(client))[0]["actions"][0] == "a1"
