"""Faults that memory layers are known for: PITFALLS, *Search* and *Memories*, and the rules of a search."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from memorybank import InvalidInputError, MemoryBank

pytestmark = pytest.mark.both_engines

Opener = Callable[..., MemoryBank]


def ids(found: Sequence[Any]) -> list[str]:
    return [one.memory.id for one in found]


def texts(found: Sequence[Any]) -> list[str]:
    return [one.memory.text for one in found]


def test_banks_in_one_database_never_mix(open_bank: Opener) -> None:
    near, far = open_bank("A"), open_bank("B")
    near.add_many(f"the wolf howls at moon {n}" for n in range(15))
    far.add_many(f"bread recipe {n}" for n in range(5))
    for bank, count in ((near, 15), (far, 5)):
        found = bank.search("the wolf howls at the moon", limit=5)
        assert len(found) == 5
        assert set(texts(found)) <= {one.text for one in bank.list()}
        assert bank.count() == bank.check().memories == count
    far.delete("m1")
    assert near.get("m1").text == "the wolf howls at moon 0"


def test_banks_may_share_a_store(open_bank: Opener, embedder: Any) -> None:
    one = open_bank("A")
    two = MemoryBank(one._store, "B", embedder=embedder)
    one.add("x")
    two.add("y")
    assert texts(one.search("y")) == ["x"]
    assert texts(two.search("x")) == ["y"]


def test_every_memory_finds_itself_after_deletion(bank: MemoryBank) -> None:
    bank.add_many([{"id": f"m{n}", "text": f"the {word} tower"} for n, word in enumerate(["red", "blue", "green"], 1)])
    bank.delete("m1")
    found = bank.search("the blue tower")
    assert (found[0].memory.id, found[0].similarity) == ("m2", 1.0)
    bank.add("the golden tower", id="m4")
    found = bank.search("the golden tower")
    assert (found[0].memory.id, found[0].similarity) == ("m4", 1.0)
    assert ids(bank.search("the red tower")) == ids(bank.search("the red tower", limit=3))


def test_the_ten_nearest_deleted(bank: MemoryBank) -> None:
    bank.add_many(f"the wolf number {n} howls" for n in range(20))
    nearest = ids(bank.search("the wolf howls", limit=10))
    bank.delete(*nearest)
    rest = ids(bank.search("the wolf howls", limit=10))
    assert len(rest) == len(set(rest)) == 10
    assert not set(rest) & set(nearest)


def test_ten_asked_where_two_exist(bank: MemoryBank) -> None:
    bank.add_many(["one", "two"])
    assert sorted(ids(bank.search("one", limit=10))) == ["m1", "m2"]


@pytest.mark.parametrize("query", ["", " \n\t ", "\u3000"])
def test_an_empty_query_finds_nothing_and_asks_no_model(open_bank: Opener, random_embedder: Any, query: str) -> None:
    bank = open_bank(embedder=random_embedder())
    bank.add("x")
    asked = len(bank._model.embedder().asked)  # type: ignore[attr-defined]
    assert bank.search(query) == []
    assert len(bank._model.embedder().asked) == asked  # type: ignore[attr-defined]


@pytest.mark.parametrize("query", ["...", "🐺", "\0", "\ud83d", "<|endoftext|>", "a" * 437_595, " " * 1_500_000 + "x"])
def test_odd_queries_find_what_there_is(bank: MemoryBank, query: str) -> None:
    bank.add_many(["one", "two"])
    assert len(bank.search(query)) == 2


def test_an_empty_bank_and_one_emptied_again_ask_no_model(open_bank: Opener, random_embedder: Any) -> None:
    model = random_embedder()
    bank = open_bank(embedder=model)
    assert bank.search("x") == []
    bank.add_many(["x", "y"])
    assert len(bank.search("x")) == 2
    bank.delete("m1", "m2")
    assert bank.search("x") == []
    assert bank.search("x", pinned_first=True, max_tokens=10, count_tokens=len) == []
    bank.add("z")
    bank.forget("m3")
    before = len(model.asked)
    assert bank.search("x") == []
    assert len(model.asked) == before


def test_the_exact_text_among_fifty(bank: MemoryBank) -> None:
    bank.add_many(f"In year {n} the {n}th king of the hills built tower {n * 7}." for n in range(50))
    found = bank.search("In year 31 the 31th king of the hills built tower 217.")
    assert (found[0].memory.id, found[0].rank) == ("m32", 1)
    assert found[0].similarity == pytest.approx(1.0, abs=1e-6)


def test_add_delete_search_restart_search_check_search(open_bank: Opener) -> None:
    bank = open_bank()
    bank.add_many(["the gate opens", "the wolf howls"])
    bank.delete("m1")
    assert texts(bank.search("gate")) == ["the wolf howls"]
    bank.close()
    bank = open_bank()
    assert texts(bank.search("gate")) == ["the wolf howls"]
    assert bank.check().ok
    bank.reembed()
    assert texts(bank.search("gate")) == ["the wolf howls"]


def test_the_same_text_twice_and_once_with_a_space(bank: MemoryBank) -> None:
    for text in ("The gate opens.", "The gate opens.", "The gate opens. "):
        bank.add(text)
    assert ids(bank.search("gate")) == ["m1"]


def test_equal_vectors_come_in_the_order_of_storing(open_bank: Opener, random_embedder: Any) -> None:
    same = {f"t{n}": [1.0, 0.0] for n in range(30)}
    bank = open_bank(embedder=random_embedder(2, fixed=same | {"q": [1.0, 0.0]}))
    bank.add_many(sorted(same, reverse=True))
    expected = sorted(same, reverse=True)
    for limit in (1, 5, 29, 100):
        assert texts(bank.search("q", limit=limit)) == expected[:limit]
    bank.edit("m1", metadata={"edited": True})
    bank.forget("m1")
    bank.restore("m1")
    assert texts(bank.search("q", limit=3)) == expected[:3]


def test_similarities_that_differ_below_the_sixth_place_are_equal(open_bank: Opener, random_embedder: Any) -> None:
    fixed = {"q": [1, 0], "a": [0.6, 0.8], "b": [0.6 + 1e-7, 0.8], "c": [0.60001, 0.8]}
    bank = open_bank(embedder=random_embedder(2, fixed=fixed))
    bank.add_many(["a", "b", "c"])
    assert texts(bank.search("q")) == ["c", "a", "b"]
    assert bank.search("q")[1].similarity == bank.search("q")[2].similarity == 0.6


def test_the_answer_is_the_same_with_half_precision(open_bank: Opener, random_embedder: Any) -> None:
    from memorybank.search.index import VectorIndex
    from memorybank.search.live_index import LiveIndex

    model = random_embedder(48)
    bank = open_bank(embedder=model)
    bank.add_many(f"text {n}" for n in range(600))
    queries = [f"query {n}" for n in range(20)]
    expected = [bank.search(query, limit=25) for query in queries]
    bank._live = LiveIndex(bank._store, "default", lambda width: VectorIndex(width, half_above=100))
    assert [bank.search(query, limit=25) for query in queries] == expected
    bank.edit("m5", text="query 3")
    assert (bank.search("query 3")[0].memory.id, bank.search("query 3")[0].similarity) == ("m5", 1.0)


class TestOptions:
    @pytest.fixture
    def filled(self, open_bank: Opener, random_embedder: Any) -> MemoryBank:
        """Ten memories; that of n tenths is that similar to the query "q"."""
        fixed = {f"{n} tenths": [n / 10, np.sqrt(1 - n * n / 100)] for n in range(10)} | {"q": [1.0, 0.0]}
        bank = open_bank(embedder=random_embedder(2, fixed=fixed))
        bank.add_many([{"id": f"t{n}", "text": f"{n} tenths", "pinned": n in (0, 5)} for n in range(10)])
        return bank

    def test_rank_similarity_and_parts(self, filled: MemoryBank) -> None:
        found = filled.search("q", explain=True, ranking="semantic")
        assert [(one.memory.id, one.rank, one.similarity) for one in found] == [
            (f"t{9 - n}", n + 1, pytest.approx((9 - n) / 10, abs=1e-6)) for n in range(10)
        ]
        assert all(one.parts == {"semantic": one.similarity} for one in found)
        assert all(one.parts is None for one in filled.search("q"))

    def test_limit(self, filled: MemoryBank) -> None:
        assert ids(filled.search("q", limit=2)) == ["t9", "t8"]
        assert len(filled.search("q", limit=10_000)) == 10
        for limit in (0, -5, 10_001, True, 2.0, "3"):
            with pytest.raises(InvalidInputError, match="limit must be a whole number from 1 to 10,000"):
                filled.search("q", limit=limit)  # type: ignore[arg-type]

    def test_ten_is_the_usual_limit(self, bank: MemoryBank) -> None:
        bank.add_many(f"{n}" for n in range(12))
        assert len(bank.search("x")) == 10

    def test_min_similarity(self, filled: MemoryBank) -> None:
        assert ids(filled.search("q", min_similarity=0.8)) == ["t9", "t8"]
        assert filled.search("q", min_similarity=1) == []
        for value in (1.1, float("nan"), float("inf"), "0.5", True):
            with pytest.raises(InvalidInputError, match="min_similarity"):
                filled.search("q", min_similarity=value)  # type: ignore[arg-type]

    def test_pinned_first_however_far_they_are(self, filled: MemoryBank) -> None:
        found = filled.search("q", pinned_first=True, limit=4)
        assert [(one.memory.id, one.rank) for one in found] == [("t5", 1), ("t0", 2), ("t9", 3), ("t8", 4)]
        assert ids(filled.search("q", pinned_first=True, limit=1)) == ["t5"]
        assert ids(filled.search("q", pinned_first=True, min_similarity=0.85)) == ["t5", "t0", "t9"]
        assert ids(filled.search("q", min_similarity=0.85)) == ["t9"]
        filled.forget("t5")
        assert ids(filled.search("q", pinned_first=True, limit=1)) == ["t0"]

    def test_ranking(self, filled: MemoryBank) -> None:
        assert filled.search("q", ranking="semantic")
        assert filled.search("q", ranking="hybrid") == filled.search("q")
        with pytest.raises(InvalidInputError, match="ranking must be one of semantic, hybrid, reranked, not 'words'"):
            filled.search("q", ranking="words")

    @pytest.mark.parametrize("query", [None, 3, b"q", ["q"]])
    def test_a_query_is_a_text(self, filled: MemoryBank, query: Any) -> None:
        with pytest.raises(InvalidInputError, match="query must be a string"):
            filled.search(query)

    def test_max_tokens_passes_over_what_does_not_fit(self, open_bank: Opener, random_embedder: Any) -> None:
        fixed = {"x" * 90: [1.0, 0.0], "y" * 60: [0.9, 0.1], "z" * 8: [0.8, 0.2], "w" * 2: [0.7, 0.3], "q": [1.0, 0.0]}
        bank = open_bank(embedder=random_embedder(2, fixed=fixed))
        bank.add_many(text for text in fixed if text != "q")
        options: dict[str, Any] = {"count_tokens": lambda text: len(text) - 1}
        assert [(one.rank, len(one.memory.text)) for one in bank.search("q", max_tokens=100, **options)] == [
            (1, 90),
            (3, 8),
            (4, 2),
        ]
        assert [one.rank for one in bank.search("q", max_tokens=100, limit=2, **options)] == [1, 3]
        assert bank.search("q", max_tokens=0, **options) == bank.search("q", max_tokens=1, **options) == []
        for value in (-1, True, 1.5, "100"):
            with pytest.raises(InvalidInputError, match="max_tokens"):
                bank.search("q", max_tokens=value, **options)
        for cost in (-1, 1.5, None):
            with pytest.raises(InvalidInputError, match="count_tokens must return"):
                bank.search("q", max_tokens=5, count_tokens=lambda _, cost=cost: cost)

    def test_max_tokens_looks_far_down(self, bank: MemoryBank) -> None:
        bank.add_many([f"the wolf howls {n} " + "far away " * 50 for n in range(300)] + ["bread"])
        found = bank.search("the wolf howls", max_tokens=30, count_tokens=len)
        assert texts(found) == ["bread"]
        assert found[0].rank > 200

    def test_a_memory_costs_its_text_and_a_line_end(self, bank: MemoryBank) -> None:
        bank.add("The gate opens.")
        asked: list[str] = []

        def count(text: str) -> int:
            asked.append(text)
            return 5

        assert bank.search("gate", max_tokens=5, count_tokens=count)
        assert asked == ["The gate opens.\n"]

    def test_tokens_are_those_of_o200k_unless_told_otherwise(self, bank: MemoryBank) -> None:
        from memorybank.tokenizer import open_tokenizer

        bank.add_many(["The gate opens.", "word " * 5000])
        cost = open_tokenizer("o200k_base").count("The gate opens.\n")
        assert texts(bank.search("gate", max_tokens=cost + 200)) == ["The gate opens."]
        assert bank.search("gate", max_tokens=cost - 1) == []


def test_two_objects_and_a_process_see_each_others_writes(
    open_bank: Opener, database: Any, child: Callable[..., subprocess.Popen[str]]
) -> None:
    one, other = open_bank(), open_bank()
    one.add("the gate opens")
    assert texts(other.search("gate")) == ["the gate opens"]
    program = """
        import sys
        from memorybank import MemoryBank
        from memorybank.embedding.testing import HashingEmbedder
        bank = MemoryBank.open(sys.argv[1], embedder=HashingEmbedder())
        for line in sys.stdin:
            name, *rest = line.split(maxsplit=1)
            if name == "search":
                print("|".join(one.memory.text for one in bank.search(rest[0])), flush=True)
            else:
                getattr(bank, name)(rest[0].strip())
                print("done", flush=True)
    """
    process = child(program, database)

    def tell(line: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    assert tell("search gate") == "the gate opens"
    assert tell("add the gate falls") == "done"
    assert len(one.search("gate")) == len(other.search("gate")) == 2
    other.delete("m1")
    assert tell("search gate") == "the gate falls"
    one.edit("m2", text="a wolf howls")
    assert tell("search wolf") == "a wolf howls"
    assert tell("forget m2") == "done"
    assert one.search("wolf") == other.search("wolf") == []
    assert tell("restore m2") == "done"
    assert one.search("wolf howls")[0].memory.text == "a wolf howls"
    one.delete("m2")
    one.add("bread")
    assert tell("search x") == "bread"
    assert one.check().ok
    assert other.check().ok


def test_a_bank_deleted_and_made_anew_elsewhere_is_not_mistaken(open_bank: Opener) -> None:
    """Same name, same revision, other memories: what an index must not be told apart by alone."""
    one = open_bank()
    one.add_many(["the gate opens", "the wolf howls"])
    assert len(one.search("gate")) == 2
    with one._store._writing() as connection:
        connection.exec_driver_sql("DELETE FROM banks")
    assert one.search("gate") == []
    open_bank().add_many(["bread", "rain falls"])
    assert set(texts(one.search("gate"))) == {"bread", "rain falls"}
    assert one.check().ok
