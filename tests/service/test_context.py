"""`POST /v1/context`: the same bytes as in process, from a document or a stored bank."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from assembler import Settings, assemble, bank_of, from_dict
from memorybank.embedding.testing import HashingEmbedder
from tests.support.strategies import byte_level_bpe

CONTEXT = "/v1/context"


@pytest.fixture
def document(examples: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((examples / "the_cormorant_light.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def client(serve: Any) -> TestClient:
    made: TestClient = serve(with_context=True)
    return made


def small(**fields: Any) -> dict[str, Any]:
    actions = [{"kind": "start", "text": "You wake by the gate."}, {"kind": "do", "text": "look for the silver key"}]
    return {"format": "adventure/1", "actions": actions, **fields}


def post(client: TestClient, adventure: Any, **fields: Any) -> Any:
    return client.post(CONTEXT, json={"adventure": adventure, **fields})


def ok(client: TestClient, adventure: Any, **fields: Any) -> dict[str, Any]:
    answer = post(client, adventure, **fields)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(answer: Any, slug: str = "invalid-request", status: int = 422) -> str:
    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:story-context:problem:{slug}"), answer.text
    return str(answer.json().get("errors", [{"field": ""}])[0]["field"])


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
def test_it_is_what_assemble_gives(client: TestClient, document: dict[str, Any], layout: Any) -> None:
    adventure = from_dict(document)
    settings = Settings(context_size=2048 - 100, layout=layout)
    with bank_of(adventure, HashingEmbedder()) as bank:
        expected = assemble(adventure, bank, settings).to_dict()
    answer = ok(client, document, context_size=2048, reserve=100, layout=layout)
    assert answer == json.loads(json.dumps(expected))
    assert [line for line in answer["report"]["lines"] if line["section"] == "memory_bank"]


def test_a_stored_bank_takes_the_place_of_the_documents_memories(client: TestClient, document: dict[str, Any]) -> None:
    body = {"memories": [{"text": "The silver key lies under the floor.", "id": "stored"}]}
    client.post("/v1/banks/story1/memories", json=body)
    answer = ok(client, document | small(), bank="story1")
    recalled = [
        line["item"] for line in answer["report"]["lines"] if line["section"] == "memory_bank" and "rank" in line
    ]
    assert recalled == ["stored"]
    assert ok(client, small(), bank="never written to")["report"]["parts"]["memory_bank"]["used"] == 0


def test_the_banks_story_summary_stands_in_where_the_document_has_none(serve: Any) -> None:
    client = serve(with_context=True, writer="none")
    log = [{"id": f"a{n}", "kind": "output", "text": f"The wolf passes gate {n}."} for n in range(1, 13)]
    client.put("/v1/banks/s/actions", json={"actions": log})
    client.put("/v1/banks/s/summary", json={"text": "Mara is my sister."})
    document = {"format": "adventure/1", "actions": log}
    context = client.post("/v1/context", json={"adventure": document, "bank": "s"}).json()
    assert "Story Summary:\nMara is my sister.\n" in context["text"]
    assert context["report"]["memories_pending"] == 1
    own = client.post("/v1/context", json={"adventure": document | {"story_summary": "My own."}, "bank": "s"}).json()
    assert "My own." in own["text"]
    assert "Mara is my sister." not in own["text"]


def test_a_use_is_counted_when_it_is_committed(client: TestClient) -> None:
    client.post("/v1/banks/a/memories", json={"memories": [{"text": "The silver key lies under the floor."}]})
    for commit, count in ((False, 0), (True, 1), (True, 2)):
        ok(client, small(), bank="a", commit=commit)
        assert client.get("/v1/banks/a/memories/m1").json()["use_count"] == count


def test_the_memory_bank_can_be_turned_on_and_off(client: TestClient) -> None:
    memories = [{"text": "The silver key lies under the floor."}]

    def share(adventure: dict[str, Any], **fields: Any) -> int:
        return int(ok(client, adventure, **fields)["report"]["parts"]["memory_bank"]["share"])

    assert share(small(memories=memories)) > 0
    assert share(small(memories=memories), memory_bank=False) == 0
    assert share(small(memories=memories, memory_bank=False)) == 0
    assert share(small(memories=memories, memory_bank=False), memory_bank=True) > 0
    assert share(small()) > 0, "a bank without memories is on"


def test_waiting_cards_are_listed(client: TestClient) -> None:
    cards = [{"triggers": ["wolf"], "entry": "A wolf."}, {"triggers": ["fox"], "entry": "A fox.", "enabled": False}]
    report = ok(client, small(story_cards=cards), waiting=True)["report"]
    assert (report["cards_waiting"], report["card_window"]) == ({"c1": ["wolf"], "c2": None}, 10)
    assert "cards_waiting" not in ok(client, small(story_cards=cards))["report"]


def test_the_anchor_goes_there_and_back(client: TestClient, document: dict[str, Any]) -> None:
    first = ok(client, document, context_size=1500, layout="cache_friendly")
    assert first["anchor"]
    again = ok(client, document, context_size=1500, layout="cache_friendly", anchor=first["anchor"])
    assert again["text"] == first["text"]


def test_tokenizers_go_by_name(serve: Any, tmp_path: Path) -> None:
    path = byte_level_bpe()
    client = serve(with_context=True, tokenizers={"our model": path})
    assert ok(client, small(), tokenizer="our model")["report"]["tokenizer"] == "our model"
    assert ok(client, small(), tokenizer="chars/4")["report"]["estimate"] is True
    assert ok(client, small(), tokenizer="cl100k_base")["report"]["tokenizer"] == "cl100k_base"
    for wrong in (path, str(tmp_path), "/etc/passwd", "../x", "", "gpt2", "p50k_base", "\0"):
        answer = post(client, small(), tokenizer=wrong)
        assert refused(answer) == "tokenizer"
        assert "our model" in answer.json()["errors"][0]["message"]


def test_a_tokenizer_of_the_operator_that_is_not_there_is_found_at_once(serve: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"there is no file .*missing\.json"):
        serve(with_context=True, tokenizers={"x": str(tmp_path / "missing.json")})


@pytest.mark.parametrize(
    ("adventure", "field"),
    [
        ({}, "adventure.format"),
        ({"format": "adventure/2"}, "adventure.format"),
        (small(actions=[{"kind": "sing"}]), "adventure.actions[0].kind"),
        (small(actions=[{"kind": "do", "text": 1}]), "adventure.actions[0].text"),
        (small(actions=[{"kind": "do", "id": "a"}, {"kind": "do", "id": "a"}]), "adventure.actions[1].id"),
        (small(story_cards=[{"triggers": [1], "entry": "x"}]), "adventure.story_cards[0].triggers[0]"),
        (small(memories=[{"text": ["x"]}]), "adventure.memories[0].text"),
        (small(memory_bank="yes"), "adventure.memory_bank"),
        ("x", "adventure"),
        (None, "adventure"),
        ([], "adventure"),
    ],
)
def test_a_wrong_document_says_where(client: TestClient, adventure: Any, field: str) -> None:
    assert refused(post(client, adventure)) == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"context_size": 0}, "context_size"),
        ({"context_size": -5}, "context_size"),
        ({"context_size": "4096"}, "context_size"),
        ({"context_size": 4096.5}, "context_size"),
        ({"context_size": None}, "context_size"),
        ({"context_size": 10**400}, "context_size"),
        ({"context_size": 100, "reserve": 100}, "reserve"),
        ({"context_size": 100, "reserve": 101}, "reserve"),
        ({"reserve": -1}, "reserve"),
        ({"layout": "best"}, "layout"),
        ({"anchor": "a1"}, "anchor"),
        ({"commit": True}, "commit"),
        ({"bank": "a/b"}, "bank"),
        ({"bank": ""}, "bank"),
        ({"bank": "a", "memory_bank": False}, "bank"),
        ({"budget": 1}, "budget"),
    ],
)
def test_wrong_settings_say_which(client: TestClient, fields: dict[str, Any], field: str) -> None:
    assert refused(post(client, small(), **fields)) == field


def test_what_must_be_in_and_does_not_fit(client: TestClient) -> None:
    answer = post(client, small(front_memory="x " * 500), context_size=100)
    refused(answer, "context-too-small")
    assert "raise the context size" in answer.json()["detail"]
    assert ok(client, small(), context_size=10**9)["report"]["context_size"] == 10**9


def test_unknown_fields_of_a_document_are_no_error(client: TestClient) -> None:
    assert ok(client, small(mood="grim", actions=[{"kind": "do", "text": "look", "mood": 1}]))["tokens"] > 0


def test_halves_of_surrogate_pairs_never_raise(client: TestClient) -> None:
    half = "\ud83d"
    adventure = small(
        id=half,
        ai_instructions=half,
        actions=[{"kind": "do", "text": f"{half} look", "id": half}],
        story_cards=[{"id": f"c{half}", "triggers": [half, "look"], "entry": half}],
        memories=[{"id": f"m{half}", "text": f"{half} look"}],
    )
    del adventure["memories"][0]["id"]
    answer = client.post(
        CONTEXT,
        content=json.dumps({"adventure": adventure, "waiting": True}),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    assert half not in answer.json()["text"]


def test_a_body_may_be_larger_than_elsewhere_but_not_any_size(serve: Any) -> None:
    client = serve(with_context=True, body_bytes=1_000, context_body_bytes=100_000)
    assert ok(client, small(notes="x" * 90_000))["tokens"] > 0
    refused(post(client, small(notes="x" * 110_000)), "body-too-large", 413)
    refused(client.post("/v1/banks/a/search", json={"query": "x" * 2_000}), "body-too-large", 413)


def test_many_at_once_give_what_each_gives_alone(client: TestClient, document: dict[str, Any]) -> None:
    sizes = [600, 900, 1_500, 3_000]
    alone = {size: ok(client, document, context_size=size) for size in sizes}
    wrong: list[int] = []

    def work(number: int) -> None:
        size = sizes[number % len(sizes)]
        if ok(client, document, context_size=size) != alone[size]:
            wrong.append(size)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_its_time_is_told_by_phases(client: TestClient, document: dict[str, Any]) -> None:
    ok(client, document)
    text = client.get("/metrics").text
    for phase in ("queue", "search", "embed", "assemble"):
        assert f'memorybank_phase_seconds_count{{phase="{phase}"}} 1.0' in text


def test_the_retrieval_api_alone_has_no_contexts(serve: Any) -> None:
    client = serve()
    refused(post(client, small()), "not-found", 404)
    assert "/v1/context" not in client.get("/openapi.json").json()["paths"]
