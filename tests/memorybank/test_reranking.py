"""The mode `reranked`: what the cross-encoder says decides, and whatever it does, a search has its answer."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assembler.cli import main as assembler_command
from memorybank import MemoryBank
from memorybank.cli import main as memorybank_command
from memorybank.embedding.reranker import CrossEncoderReranker, open_reranker
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import InvalidInputError, ModelError
from memorybank.host import BankHost
from memorybank.search.reranking import BATCH, MOST_CANDIDATES, Reranked, Reranking, open_reranking
from memorybank.service import ServiceSettings, create_app, open_service_host

EMBEDDER = HashingEmbedder()
LOCAL = ("127.0.0.1", 50_000)
WORDS = ("gate", "wolf", "bread", "river", "tower", "crown", "salt", "lamp")


class Judge:
    """Prefers the shortest text, and notes what it was given."""

    name = "judge"

    def __init__(self, score: Callable[[str], float] = lambda text: -float(len(text)), pause: float = 0.0) -> None:
        self.given: list[tuple[str, tuple[str, ...]]] = []
        self._score, self._pause = score, pause

    def load(self) -> None:
        """Nothing to load."""

    def scores(self, query: str, texts: Sequence[str], *, wait: float) -> list[float] | None:
        assert wait > 0
        self.given.append((query, tuple(texts)))
        time.sleep(self._pause)
        return [self._score(text) for text in texts]


def bank_with(reranking: Reranking | None, number: int = 40) -> MemoryBank:
    bank = MemoryBank.open(embedder=EMBEDDER, reranking=reranking)
    bank.add_many(f"the gate of {WORDS[n % 8]} " + "opens " * (1 + 7 * n % number) for n in range(number))
    return bank


def ids(bank: MemoryBank, **options: Any) -> list[str]:
    return [one.memory.id for one in bank.search("the gate of wolf", **options)]


def test_the_best_of_hybrid_come_in_the_order_of_the_cross_encoder() -> None:
    judge = Judge()
    with bank_with(Reranking(judge, seconds=60)) as bank:
        hybrid = bank.search("the gate of wolf", limit=40)
        found = bank.search("the gate of wolf", limit=40, ranking="reranked")
        head = sorted(hybrid[:MOST_CANDIDATES], key=lambda one: (len(one.memory.text), one.rank))
        assert [one.memory.id for one in found] == [one.memory.id for one in [*head, *hybrid[MOST_CANDIDATES:]]]
        assert [one.rank for one in found] == list(range(1, 41))
        assert {query for query, _ in judge.given} == {"the gate of wolf"}
        assert max(len(texts) for _, texts in judge.given) == BATCH
        assert sum(len(texts) for _, texts in judge.given) == MOST_CANDIDATES
        assert ids(bank, ranking="reranked", limit=3) == [one.memory.id for one in found[:3]]


def test_it_reads_the_texts_before_the_query_too() -> None:
    judge = Judge()
    with bank_with(Reranking(judge, seconds=60, candidates=2), 6) as bank:
        bank.search("it opens", recent=["We reach the tower.", "Night falls."], ranking="reranked")
    assert judge.given[0][0] == "We reach the tower. Night falls. it opens"


def test_its_score_is_told_and_pinned_ones_stay_first() -> None:
    with bank_with(Reranking(Judge(), seconds=60), 12) as bank:
        longest = max(bank.list(), key=lambda memory: len(memory.text))
        bank.pin(longest.id)
        found = bank.search("the gate of wolf", ranking="reranked", pinned_first=True, explain=True)
        assert found[0].memory.id == longest.id
        assert found[1].parts is not None
        assert found[1].parts["reranked"] == -len(found[1].memory.text)
        assert {"semantic", "lexical"} <= found[1].parts.keys()
        assert ids(bank, ranking="reranked")[0] != longest.id


def test_a_budget_is_filled_in_its_order_and_each_text_read_once() -> None:
    judge = Judge()
    with bank_with(Reranking(judge, seconds=60), 200) as bank:
        whole = ids(bank, ranking="reranked", limit=200)
        judge.given.clear()
        assert ids(bank, ranking="reranked", max_tokens=10_000, count_tokens=lambda _: 10) == whole
        assert sum(len(texts) for _, texts in judge.given) == MOST_CANDIDATES


def test_what_was_read_stays_ahead_when_more_is_asked_for() -> None:
    with bank_with(None, 8) as bank:
        found = bank.search("the gate of wolf", limit=8)
    orders = iter([found[:4], [*found[4:], *found[:4]]])
    session = Reranked(lambda _: next(orders), "q", Reranking(Judge(), 60, 3), pinned_first=False, explain=False)
    first = session(3)
    assert session(8)[:3] == first
    assert sorted(len(one.memory.text) for one in first) == [len(one.memory.text) for one in first]


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        (Judge(pause=0.2), None),
        (Judge(score=lambda _: float("nan")), "not a finite number"),
        (Judge(score=lambda text: 1 / 0), "division by zero"),
    ],
)
def test_without_time_or_with_a_fault_the_order_is_that_of_hybrid(
    judge: Judge, says: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with bank_with(Reranking(judge, seconds=0.3)) as bank, caplog.at_level(logging.WARNING):
        assert ids(bank, ranking="reranked") == ids(bank)
    assert (says is None) == (not caplog.messages)
    assert says is None or says in caplog.text


def test_a_search_does_not_outlast_its_deadline_by_more_than_a_batch() -> None:
    judge = Judge(pause=0.15)
    with bank_with(Reranking(judge, seconds=0.4)) as bank:
        ids(bank, ranking="reranked")
    assert len(judge.given) == 2, "the third batch would have ended after 0.45 s"


def test_it_is_refused_where_there_is_none() -> None:
    with bank_with(None, 3) as bank, pytest.raises(InvalidInputError, match=r"needs a cross-encoder.*--reranker"):
        bank.search("gate", ranking="reranked")


@pytest.mark.parametrize(
    "given", [{"candidates": 0}, {"candidates": 31}, {"seconds": 0}, {"seconds": "1"}, {"model": 3}]
)
def test_what_it_may_cost_is_checked(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        Reranking(**({"model": Judge()} | given))


def test_all_banks_of_a_host_have_it(tmp_path: Path) -> None:
    with BankHost.open(tmp_path / "banks.sqlite", embedder=EMBEDDER, reranking=Reranking(Judge(), 60)) as host:
        host.bank("one").add_many(["the gate opens wide", "the gate"])
        assert ids(host.bank("one"), ranking="reranked") == ["m2", "m1"]


@pytest.fixture(scope="session")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real one in the format of sentence-transformers, tiny and with weights by chance."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "of", "opens", *WORDS]
    raw = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token=words[1]))
    raw.pre_tokenizer = Whitespace()
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=raw, **special).save_pretrained(folder)
    torch.manual_seed(7)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(words), num_labels=1, max_position_embeddings=512, **sizes)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_a_real_cross_encoder_is_loaded_and_asked(cross_encoder: Path, caplog: pytest.LogCaptureFixture) -> None:
    reranking = open_reranking(str(cross_encoder), seconds=60)
    with bank_with(reranking, 20) as bank:
        found = bank.search("the gate of wolf", limit=20, ranking="reranked", explain=True)
    assert not caplog.messages
    scores = [(one.parts or {})["reranked"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 1
    model = reranking.model
    one_by_one = [(model.scores("the gate of wolf", [one.memory.text], wait=60) or [0.0])[0] for one in found]
    assert scores == pytest.approx(one_by_one, abs=1e-5)


def test_who_cannot_have_it_in_time_does_without(cross_encoder: Path) -> None:
    model = CrossEncoderReranker(str(cross_encoder))
    model.load()
    with model._lock:
        assert model.scores("gate", ["a gate"], wait=0.01) is None
    model.renew()
    assert model.scores("gate", ["a gate"], wait=5) is not None


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    for name in ("nowhere", "./nowhere/model", "a/b/c", "/x"):
        with pytest.raises(ModelError, match="no folder, and no name"):
            open_reranker(name)
    with pytest.raises(ModelError, match=r"no config\.json"):
        open_reranker(str(tmp_path))


def test_a_model_that_cannot_be_loaded_is_told_and_not_tried_at_each_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}), "utf-8")
    model = open_reranker(str(tmp_path))
    tries: list[int] = []
    opening = model._open
    monkeypatch.setattr(model, "_open", lambda: (tries.append(1), opening())[1])
    with bank_with(Reranking(model), 6) as bank:
        assert ids(bank, ranking="reranked") == ids(bank, ranking="reranked") == ids(bank)
    assert len(tries) == 1
    assert "cannot be loaded" in caplog.text


def test_any_number_of_threads_may_search(cross_encoder: Path) -> None:
    with bank_with(open_reranking(str(cross_encoder), seconds=60), 20) as bank:
        expected = ids(bank, ranking="reranked")
        found: list[list[str]] = []
        threads = [threading.Thread(target=lambda: found.append(ids(bank, ranking="reranked"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [expected] * 4


def test_the_command_lines_take_one(cross_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--db", str(tmp_path / "m.sqlite"), "--model", "hashing-64"]
    assert memorybank_command(["add", "the gate opens", "the wolf opens", *place]) == 0
    search = ["search", "the wolf", "--ranking", "reranked", "--explain", *place]
    capsys.readouterr()
    assert memorybank_command([*search, "--reranker", str(cross_encoder)]) == 0
    assert "reranked=" in capsys.readouterr().out
    assert memorybank_command(search) == 2
    assert "--reranker" in capsys.readouterr().err
    story = tmp_path / "story.json"
    document = {
        "format": "adventure/1",
        "actions": [{"id": "a1", "kind": "do", "text": "the gate"}],
        "memories": [{"id": "m1", "text": "the wolf of salt"}, {"id": "m2", "text": "the bread"}],
    }
    story.write_text(json.dumps(document), "utf-8")
    build = ["build", str(story), "--model", "hashing-64", "--ranking", "reranked"]
    assert assembler_command([*build, "--reranker", str(cross_encoder)]) == 0
    assert assembler_command(build) == 2
    assert assembler_command([*build, "--reranker", str(tmp_path)]) == 2
    assert "no config.json" in capsys.readouterr().err


def modes(client: TestClient) -> list[str]:
    document = client.get("/openapi.json").json()
    found: list[str] = document["components"]["schemas"]["SearchRequest"]["properties"]["ranking"]["enum"]
    return found


def test_a_service_takes_one(cross_encoder: Path, tmp_path: Path) -> None:
    settings = ServiceSettings(
        db=str(tmp_path / "m.sqlite"), model="hashing-64", writer="none", reranker=str(cross_encoder), rerank_seconds=60
    )
    body = {"query": "the wolf", "ranking": "reranked", "explain": True}
    with (
        open_service_host(settings) as host,
        TestClient(create_app(host, settings), base_url="http://localhost", client=LOCAL) as client,
    ):
        host.bank("one").add_many(["the gate opens", "the wolf opens"])
        assert "reranked" in modes(client)
        [first, second] = client.post("/v1/banks/one/search", json=body).raise_for_status().json()["results"]
        assert first["parts"]["reranked"] >= second["parts"]["reranked"]
    without = settings.model_copy(update={"reranker": None})
    with (
        open_service_host(without) as host,
        TestClient(create_app(host, without), base_url="http://localhost", client=LOCAL) as client,
    ):
        assert modes(client) == ["semantic", "hybrid"], "what it would refuse is not described"
        refused = client.post("/v1/banks/one/search", json=body)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:story-context:problem:no-reranker")
        assert "cross-encoder" in refused.json()["detail"]
