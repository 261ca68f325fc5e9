"""Bodies that are no JSON, no UTF-8, too deep, too large, or full of what no player should be able to type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from memorybank.embedding.testing import HashingEmbedder
from memorybank.host import BankHost
from memorybank.service import ServiceSettings, create_app
from memorybank.service.bodies import MAX_DEPTH, parsed
from memorybank.service.embedding import ServiceEmbedder
from memorybank.service.problems import Problem

MEMORIES = "/v1/banks/a/memories"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """One server for all tests that store nothing."""
    place: Path = tmp_path_factory.mktemp("bodies") / "memories.sqlite"
    with BankHost.open(place, embedder=ServiceEmbedder(HashingEmbedder())) as host:
        settings = ServiceSettings(rate=0, body_bytes=100_000)
        with TestClient(create_app(host, settings), base_url="http://localhost") as client:
            yield client


def post(client: TestClient, content: Any, headers: dict[str, str] | None = None) -> Any:
    return client.post(MEMORIES, content=content, headers=JSON if headers is None else headers)


def deep(levels: int) -> bytes:
    return b'{"memories":[{"text":"x","metadata":{"n":' + b"[" * levels + b"]" * levels + b"}}]}"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the body is missing"),
        (b"{", "line 1, column 2"),
        (b'{"memories":\n[,]}', "line 2, column 2"),
        (b"\xff\xfe{}", "byte 0 is not UTF-8"),
        (b'{"memories":"\xed\xa0\xbd"}', "byte 13 is not UTF-8"),
        (b"NaN", "NaN is no JSON value"),
        (b'{"n":-Infinity}', "-Infinity is no JSON value"),
        (b'{"n":1e999}', "the number 1e999 is too large"),
        (b'{"memories":[],"memories":[]}', "the name 'memories' occurs twice"),
        (b'{"n":' + b"9" * 5000 + b"}", "digits"),
        (b"[" * 50_000, f"more than {MAX_DEPTH}"),
        (b'{"a":' * 10_000, f"more than {MAX_DEPTH}"),
        (deep(MAX_DEPTH), f"more than {MAX_DEPTH}"),
        (b'{"memories":[]} {}', "Extra data"),
        (b"'x'", "line 1, column 1"),
        (b"\x00", "line 1, column 1"),
    ],
)
def test_what_is_no_json_is_a_400(shared: TestClient, content: bytes, says: str) -> None:
    answer = post(shared, content)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:story-context:problem:invalid-request"
    assert says in answer.json()["detail"]


@pytest.mark.parametrize("content", [b"null", b"1", b'"x"', b"[]", b"true", b"{}", "\ufeff{}".encode()])
def test_json_of_another_kind_is_a_422(shared: TestClient, content: bytes) -> None:
    assert post(shared, content).status_code == 422


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": ""},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/jsonx"},
        {"Content-Type": "\x00"},
        JSON | {"Content-Encoding": "gzip"},
    ],
)
def test_other_kinds_of_bodies_are_a_415(shared: TestClient, headers: dict[str, str]) -> None:
    answer = post(shared, b'{"memories":[{"text":"x"}]}', headers)
    assert answer.status_code == 415, answer.text
    assert answer.json()["type"] == "urn:story-context:problem:unsupported-media-type"


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/vnd.story+json"])
def test_json_has_many_names(shared: TestClient, kind: str) -> None:
    assert post(shared, b'{"memories":[]}', {"Content-Type": kind}).status_code == 422


def test_a_body_without_a_length_is_read_to_its_end(shared: TestClient) -> None:
    whole = json.dumps({"memories": [{"text": "x", "id": "chunked"}]}).encode()
    answer = post(shared, iter([whole[:10], whole[10:]]))
    assert "content-length" not in answer.request.headers
    assert answer.json()["memories"][0]["id"] == "chunked"


@pytest.mark.parametrize("said", ["100001", "9" * 30])
def test_a_length_over_the_limit_is_refused_unread(shared: TestClient, said: str) -> None:
    answer = post(shared, b"x", JSON | {"Content-Length": said})
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert answer.json()["detail"] == "the limit is 100,000 bytes: send it in several calls"


def test_a_body_over_the_limit_is_not_read_to_its_end(shared: TestClient) -> None:
    assert post(shared, iter([b"x" * 50_000] * 3)).status_code == 413
    assert post(shared, b'"' + b"x" * 99_998 + b'"').status_code == 422, "one of just the limit is read"


def test_halves_of_surrogate_pairs_never_raise(client: TestClient) -> None:
    half, pair = "\\ud83d", "\\ud83d\\udc4d"
    body = f'{{"memories":[{{"text":"{half} {pair}","metadata":{{"{half}":"{half}","b":"{pair}"}}}}]}}'
    answer = post(client, body)
    assert answer.status_code == 200, answer.text
    stored = answer.json()["memories"][0]
    assert stored["text"] == "\ufffd 👍"
    assert stored["metadata"] == {"\ud83d": "\ud83d", "b": "👍"}
    for call in (
        client.get(MEMORIES),
        client.post("/v1/banks/a/search", content=f'{{"query":"{half}"}}', headers=JSON),
    ):
        assert call.status_code == 200
        assert half in call.text
    for wrong in (
        f'{{"memories":[{{"text":"x","id":"{half}"}}]}}',
        f'{{"memories":[{{"text":"x","actions":["{half}"]}}]}}',
        f'{{"memories":[{{"text":"x","{half}":1}}]}}',
        f'{{"{half}":1}}',
        f'"{half}"',
    ):
        assert post(client, wrong).status_code == 422, wrong


@pytest.mark.parametrize(
    "text",
    [
        "nul \0 nul",
        "<|endoftext|><|im_start|>",
        "\u2028\u2029\x1b[2J",
        " " * 90_000 + "x",
        "哈" * 20_000,
        "a" * 90_000,
        "👩‍👩‍👧‍👦" * 1_000,
        "\u202eright to left",
    ],
)
def test_texts_that_players_type(shared: TestClient, text: str) -> None:
    answer = shared.post("/v1/banks/players/memories", json={"memories": [{"text": text}]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["memories"][0]["text"] == text.strip()
    found = shared.post("/v1/banks/players/search", json={"query": text, "limit": 1, "max_tokens": 200_000})
    assert found.status_code == 200
    assert found.json()["results"][0]["memory"]["text"] == text.strip()


def test_deep_metadata_that_is_taken_can_be_read_again(client: TestClient) -> None:
    assert post(client, deep(MAX_DEPTH - 5)).status_code == 200
    assert client.get(MEMORIES).status_code == 200
    assert len(client.post("/v1/banks/a/search", json={"query": "x"}).json()["results"]) == 1


def test_depth_counts_lists_and_objects_alike() -> None:
    assert parsed(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(Problem, match="more than"):
        parsed(b'{"a":[' * 51 + b"]}" * 51)
