"""Conditional requests: nobody overwrites what he has not read, and nobody reads twice what has not changed."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from memorybank.service.conditions import Conditions
from memorybank.service.problems import Problem

A = "/v1/banks/a"
MEMORY = f"{A}/memories/m1"


def conditions(**headers: str | list[str]) -> Conditions:
    raw = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return Conditions.of(Headers(raw=raw))


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ('"a"', {"a"}),
        ('"a", "b"', {"a", "b"}),
        (['"a"', '"b","c"'], {"a", "b", "c"}),
        (' ,, "a" ,\t"b", ', {"a", "b"}),
        ('"a,b"', {"a,b"}),
        ('""', {""}),
        ('"é"', {"é"}),
        ("*", "*"),
        (" * ", "*"),
    ],
)
def test_lists_of_tags(header: Any, tags: Any) -> None:
    assert conditions(if_match=header).match == tags
    assert conditions(if_none_match=header).none_match == tags


@pytest.mark.parametrize("header", ["", " ", ",", "a", '"a', '"a" "b"', '*, "a"', 'w/"a"', '"a"x', "'a'", '"a b"'])
def test_garbled_tags_are_refused(header: str) -> None:
    for name in ("if_match", "if_none_match"):
        with pytest.raises(Problem, match="must be") as raised:
            conditions(**{name: header})
        assert raised.value.status_code == 422


def test_weak_tags_compare_weakly_only() -> None:
    assert conditions(if_match='W/"a", "b"').match == {"b"}
    assert conditions(if_none_match='W/"a"').is_known("a")


@pytest.mark.parametrize("header", ['"a"' + ", " * 8_000 + "x", " " * 16_000 + "x", '"a"' * 5_000, '"a' * 8_000])
def test_no_header_takes_long(header: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(Problem):
        conditions(if_match=header)
    assert time.perf_counter() - begin < 1


def test_what_settled_says() -> None:
    assert conditions().settled("v") is None
    assert conditions().settled(None) is None
    assert conditions(if_match='"v"').settled("v") == "v"
    assert conditions(if_match="*").settled("v") == "v"
    assert conditions(if_none_match='"w"').settled("v") == "v"
    assert conditions(if_none_match="*").settled(None) is None
    for wrong, version in [
        (conditions(if_match='"w"'), "v"),
        (conditions(if_match="*"), None),
        (conditions(if_match='W/"v"'), "v"),
        (conditions(if_none_match="*"), "v"),
        (conditions(if_none_match='W/"v"'), "v"),
    ]:
        with pytest.raises(Problem) as raised:
            wrong.settled(version)
        assert raised.value.slug == "precondition-failed"


@pytest.fixture
def memory(client: TestClient) -> dict[str, Any]:
    answer = client.post(f"{A}/memories", json={"memories": [{"text": "The gate opens."}]})
    found: dict[str, Any] = answer.json()["memories"][0]
    return found


@pytest.mark.parametrize("path", [A, MEMORY])
def test_what_is_known_is_not_sent_again(client: TestClient, memory: dict[str, Any], path: str) -> None:
    tag = client.get(path).headers["etag"]
    for header in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        answer = client.get(path, headers={"If-None-Match": header})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert client.get(path, headers={"If-None-Match": '"x"'}).status_code == 200
    assert client.get(path, headers={"If-None-Match": "x"}).status_code == 422


def test_a_memory_is_changed_in_the_version_that_was_read(client: TestClient, memory: dict[str, Any]) -> None:
    tag = f'"{memory["version"]}"'
    assert client.patch(MEMORY, json={"pinned": True}, headers={"If-Match": tag}).status_code == 200
    for call in (
        client.patch(MEMORY, json={"pinned": False}, headers={"If-Match": tag}),
        client.patch(MEMORY, json={"pinned": False}, headers={"If-None-Match": "*"}),
        client.delete(MEMORY, headers={"If-Match": f'"x", W/{client.get(MEMORY).headers["etag"]}'}),
    ):
        assert (call.status_code, call.json()["type"]) == (412, "urn:story-context:problem:precondition-failed")
    assert client.get(MEMORY).json()["pinned"]
    assert client.patch(MEMORY, json={"pinned": False}, headers={"If-Match": "*"}).status_code == 200
    now = client.get(MEMORY).headers["etag"]
    assert client.delete(MEMORY, headers={"If-Match": f'"x", {now}'}).status_code == 204
    for gone in ("*", now):
        assert client.patch(MEMORY, json={"pinned": True}, headers={"If-Match": gone}).status_code == 404


def test_a_bank_is_changed_in_the_version_that_was_read(client: TestClient) -> None:
    assert client.put(A, json={}, headers={"If-Match": "*"}).status_code == 412
    assert client.get(A).status_code == 404
    made = client.put(A, json={"capacity": 3}, headers={"If-None-Match": "*"})
    assert made.status_code == 201
    assert client.put(A, json={"capacity": 4}, headers={"If-None-Match": "*"}).status_code == 412
    tag = made.headers["etag"]
    assert client.put(A, json={"capacity": 5}, headers={"If-Match": tag}).status_code == 200
    assert client.put(A, json={"capacity": 6}, headers={"If-Match": tag}).status_code == 412
    assert client.delete(A, headers={"If-Match": tag}).status_code == 412
    assert client.get(A).json()["capacity"] == 5
    assert client.delete(A, headers={"If-Match": client.get(A).headers["etag"]}).status_code == 204


def test_of_many_who_make_or_change_at_once_one_comes_first(client: TestClient, memory: dict[str, Any]) -> None:
    """Eight callers with the same version each: one is served, seven are told, whatever the threads do."""
    statuses: dict[str, list[int]] = {"bank": [], "memory": []}
    barrier = threading.Barrier(8)
    tag = f'"{memory["version"]}"'

    def race(number: int) -> None:
        barrier.wait()
        made = client.put("/v1/banks/b", json={"capacity": number + 1}, headers={"If-None-Match": "*"})
        changed = client.patch(MEMORY, json={"metadata": {"by": number}}, headers={"If-Match": tag})
        statuses["bank"].append(made.status_code)
        statuses["memory"].append(changed.status_code)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses["bank"]) == [201] + [412] * 7
    assert sorted(statuses["memory"]) == [200] + [412] * 7


def test_uses_do_not_count_as_changes(client: TestClient, memory: dict[str, Any]) -> None:
    client.post(f"{A}/memories/used", json={"ids": ["m1"]})
    tag = f'"{memory["version"]}"'
    assert client.get(MEMORY, headers={"If-None-Match": tag}).status_code == 304
    assert client.delete(MEMORY, headers={"If-Match": tag}).status_code == 204
