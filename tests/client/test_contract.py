"""One scenario, three banks: in process, over HTTP, over HTTP awaited. Programs cannot tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assembler import Action, Adventure, Settings, assemble
from memorybank import InvalidInputError, Memory, MemoryBank, MemoryNotFoundError, ModelMismatchError, NewMemory
from memorybank.client import ForbiddenError, RateLimitedError, RemoteBank, ServiceError, UnauthorizedError
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import PreconditionError
from tests.support.awaited import AwaitedBank
from tests.support.live_service import LiveService, live_service

KINDS = ["in process", "http", "http awaited"]
Banks = Callable[..., Any]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    with live_service(tmp_path_factory.mktemp("service") / "memories.sqlite", rate=0, writer="none") as running:
        yield running


@pytest.fixture
def banks(service: LiveService, tmp_path: Path) -> Iterator[Banks]:
    """Open a bank of a kind; a name is the same bank for all kinds of a test but not for another test."""
    opened: list[Any] = []

    def opens(kind: str, name: str = "b") -> Any:
        unique = f"{name} {tmp_path.name}"[-100:]
        if kind == "in process":
            opened.append(MemoryBank.open(tmp_path / "own.sqlite", unique, embedder=HashingEmbedder()))
        else:
            opened.append({"http": RemoteBank, "http awaited": AwaitedBank}[kind](service.url, unique))
        return opened[-1]

    yield opens
    for bank in opened:
        bank.close()


@pytest.fixture(params=KINDS)
def bank(request: pytest.FixtureRequest, banks: Banks) -> Any:
    return banks(request.param)


def without_times(memory: Memory) -> Memory:
    assert memory.created.tzinfo is not None
    return replace(memory, created=datetime(2026, 1, 1, tzinfo=UTC), last_used=None)


def test_what_is_stored_comes_back_the_same(banks: Banks) -> None:
    odd = "<|endoftext|> \x1b \0 👍 \u2028 \ud83d half"
    items: list[Any] = [
        "  The gate opens.\r\n",
        {"text": "A wolf howls.", "id": "w/o?#%", "actions": ["a1", "a 2"], "pinned": True},
        NewMemory(odd, "odd", metadata={"n": [1, 1.5, None, True], "ü": {"half": "\ud83d"}}),
        {"text": "x" * 100_000},
    ]
    stored = []
    for kind in KINDS:
        bank = banks(kind, kind)
        found = bank.add_many(items)
        assert found == bank.list() == [bank.get(memory.id) for memory in found]
        assert [memory.version for memory in found] == [memory.version for memory in bank.list()]
        stored.append([without_times(memory) for memory in found])
    assert stored[0] == stored[1] == stored[2]
    assert [memory.id for memory in stored[0]] == ["m1", "w/o?#%", "odd", "m2"]
    assert [[memory.ordinal for memory in some] for some in stored] == [[1, 2, 3, 4]] * 3


def test_a_life(bank: Any) -> None:
    assert (bank.count(), bank.list(), bank.search("wolf"), bank.mark_used(["m1"])) == (0, [], [], 0)
    assert bank.exists() is (bank.info().created is not None)
    info = bank.info()
    assert (info.name, info.model, info.counts, info.revision, info.created) == (bank.name, None, {}, 0, None)
    one = bank.add("The gate opens.", actions=["a1"], metadata={"k": 1})
    assert (one.id, one.state, one.model, one.use_count, one.last_used) == ("m1", "active", "hashing-64", 0, None)
    assert bank.add("The gate opens.").id == "m1", "the same again is still one"
    assert bank.add("A wolf howls.", id="w", pinned=True).pinned
    assert bank.edit("w", text="A dragon sleeps.", actions=("a2",), state="forgotten").state == "forgotten"
    assert bank.edit("w") == bank.get("w")
    assert [one.state for one in bank.restore("w")] == ["active"]
    assert [one.pinned for one in bank.unpin("w", "m1")] == [False, False]
    assert [one.pinned for one in bank.pin("w")] == [True]
    assert [one.id for one in bank.forget("m1", "w", "m1")] == ["m1", "w"]
    assert (bank.count(), bank.count("active"), bank.count("forgotten")) == (2, 0, 2)
    assert [one.id for one in bank.list("forgotten")] == ["m1", "w"]
    bank.restore("m1")
    assert [one.text for one in bank.edit_many([{"id": "w", "text": "x"}, {"id": "m1", "text": "y"}])] == ["x", "y"]
    assert bank.mark_used(["m1", "gone", "w"]) == 2
    assert bank.get("m1").use_count == 1
    assert bank.get("m1").last_used > bank.get("m1").created
    info = bank.info()
    assert (info.model, info.dimensions, info.counts, info.capacity) == (
        "hashing-64", 64, {"active": 1, "forgotten": 1}, None,
    )  # fmt: skip
    assert bank.set_capacity(5).capacity == bank.info().capacity == 5
    assert bank.set_capacity(None).capacity is None
    assert bank.delete("w") is None
    bank.delete_many(["m1"])
    assert bank.list() == []
    assert bank.add("z").id == "m2", "ids that were given never come back"


def test_search(banks: Banks) -> None:
    texts = [f"{animal} {verb} near the {place}" for animal in ("wolf", "fox") for verb in ("howls", "sleeps")
             for place in ("gate", "river", "tower", "chapel")]  # fmt: skip
    questions: list[dict[str, Any]] = [
        {},
        {"limit": 3},
        {"min_similarity": 0.3},
        {"pinned_first": True, "limit": 2},
        {"explain": True, "ranking": "semantic"},
        {"retellings": True},
        {"max_tokens": 30},
        {"max_tokens": 30, "limit": 2},
        {"max_tokens": 0},
        {"max_tokens": 40, "count_tokens": len},
        {"max_tokens": 120, "count_tokens": len, "limit": 2, "pinned_first": True},
    ]
    answers = []
    for kind in KINDS:
        bank = banks(kind, kind)
        bank.add_many(texts)
        bank.add("the wolf howls howls near the gate")
        bank.pin("m9")
        bank.forget("m2")
        found = [bank.search("the wolf howls", **question) for question in questions]
        answers.append([[replace(one, memory=without_times(one.memory)) for one in some] for some in found])
        assert bank.search("") == bank.search(" \n") == []
    assert answers[0] == answers[1] == answers[2]
    assert [len(found) for found in answers[0]][:4] == [10, 3, len(answers[0][2]), 2]
    assert answers[0][3][0].memory.id == "m9"
    assert any(one.retold_by for one in answers[0][5])
    assert answers[0][8] == []


def test_pages(bank: Any) -> None:
    bank.add_many(f"text {n}" for n in range(25))
    bank.forget("m3")
    ids, cursor = [], None
    while True:
        page = bank.page(limit=10, cursor=cursor)
        ids += [memory.id for memory in page.memories]
        assert len(page.memories) <= 10
        if (cursor := page.cursor) is None:
            break
    assert ids == [f"m{n}" for n in range(1, 26)]
    assert [one.id for one in bank.page(state="forgotten").memories] == ["m3"]
    with pytest.raises(InvalidInputError, match="cursor"):
        bank.page(cursor="not one")


def test_thousands(bank: Any) -> None:
    told: list[tuple[int, int]] = []
    stored = bank.add_many((f"text {n}" for n in range(2500)), progress=lambda *numbers: told.append(numbers))
    assert [one.id for one in stored] == [f"m{n}" for n in range(1, 2501)]
    assert told[-1] == (2500, 2500)
    assert bank.count() == len(bank.list()) == len(bank.page(limit=2500).memories) == 2500
    assert len(bank.page(limit=2400).memories) == 2400
    assert len(bank.edit_many({"id": one.id, "pinned": True} for one in stored)) == 2500
    assert bank.mark_used(one.id for one in stored) == 2500
    bank.delete(*(one.id for one in stored))
    assert bank.count() == 0


def test_versions(bank: Any) -> None:
    first = bank.add("one", id="a/b")
    second = bank.edit("a/b", text="two", if_match=first.version)
    assert second.version != first.version
    assert bank.get("a/b").version == second.version
    for call in (
        lambda: bank.edit("a/b", text="three", if_match=first.version),
        lambda: bank.edit("a/b", text="three", if_match=[]),
        lambda: bank.edit("a/b", text="three", if_match="*"),
        lambda: bank.edit("a/b", if_match=first.version),
        lambda: bank.delete("a/b", if_match=first.version),
        lambda: bank.set_capacity(3, only_new=True),
        lambda: bank.set_capacity(3, if_match="0" * 16),
    ):
        with pytest.raises(PreconditionError):
            call()
    assert bank.edit("a/b", if_match=second.version) == second
    info = bank.set_capacity(3, if_match=bank.info().version)
    assert info.version == bank.info().version
    bank.delete("a/b", if_match=[first.version, second.version])
    assert bank.count() == 0
    with pytest.raises(MemoryNotFoundError):
        bank.delete("a/b", if_match=second.version)


def test_a_new_bank_with_a_capacity(bank: Any) -> None:
    with pytest.raises(PreconditionError):
        bank.set_capacity(2, if_match="0" * 16)
    assert bank.set_capacity(2, only_new=True).capacity == 2
    bank.add_many(["one", "two", "three"])
    assert bank.info().counts == {"active": 2, "forgotten": 1}


def test_a_call_at_fault_changes_nothing(bank: Any) -> None:
    bank.add("one")
    before = bank.info()
    not_found: list[Callable[[], Any]] = [
        lambda: bank.get("gone"),
        lambda: bank.edit("gone", text="x"),
        lambda: bank.edit_many([{"id": "m1", "text": "x"}, {"id": "gone", "text": "y"}]),
        lambda: bank.pin("m1", "gone"),
        lambda: bank.forget("m1", "gone"),
        lambda: bank.delete("m1", "gone"),
        lambda: bank.edit("gone", text="x", if_match="0" * 16),
    ]
    for call in not_found:
        with pytest.raises(MemoryNotFoundError, match="gone"):
            call()
    invalid: list[Callable[[], Any]] = [
        lambda: bank.add(""),
        lambda: bank.add(None),
        lambda: bank.add("x" * 100_001),
        lambda: bank.add("x", id="a\nb"),
        lambda: bank.add("x", metadata={"x": float("nan")}),
        lambda: bank.add("x", metadata={"x": "y" * 100_000}),
        lambda: bank.add_many("x"),
        lambda: bank.add_many([{"text": "x"}, {"txt": "y"}]),
        lambda: bank.edit("m1", text=" "),
        lambda: bank.edit("m1", state="lost"),
        lambda: bank.edit_many([{"text": "x"}]),
        lambda: bank.set_capacity(0),
        lambda: bank.set_capacity(True),
        lambda: bank.search(3),
        lambda: bank.search("x", limit=0),
        lambda: bank.search("x", ranking="odd"),
        lambda: bank.page(limit=10_001),
        lambda: bank.page(state="lost"),
    ]
    said = []
    for call in invalid:
        with pytest.raises(InvalidInputError) as caught:
            call()
        said.append(str(caught.value))
    assert bank.info() == before
    assert all(said)


def test_a_bank_that_is_not_there(bank: Any) -> None:
    for call in (lambda: bank.get("m1"), lambda: bank.pin("m1"), lambda: bank.delete("m1"), lambda: bank.edit("m1")):
        with pytest.raises(MemoryNotFoundError, match="has no memory 'm1'"):
            call()
    assert bank.info().created is None


@pytest.mark.parametrize("name", ["a b", "%41", "a?b#c&d=e", "ünï 門", "a+b", "...", "~!@$'()*,:;"])
def test_names(banks: Banks, name: str) -> None:
    for kind in KINDS:
        bank = banks(kind, f"{kind} {name}")
        bank.add("x", id=name)
        assert (bank.name, bank.info().name) == (bank.name, bank.name)
        assert bank.get(name).text == "x"
        assert bank.edit(name, text="y", if_match=bank.get(name).version).text == "y"
        bank.delete(name)


def test_another_model_is_a_mismatch(service: LiveService, tmp_path: Path) -> None:
    MemoryBank(service.host._store, tmp_path.name, embedder=HashingEmbedder(32)).add("of another model")
    for kind in (RemoteBank, AwaitedBank):
        bank = kind(service.url, tmp_path.name)
        with pytest.raises(ModelMismatchError, match="memorybank reembed"):
            bank.search("model")
        with pytest.raises(ModelMismatchError, match="memorybank reembed"):
            bank.add("x")
        assert bank.count() == 1
        bank.close()


def test_a_context_is_assembled_from_either(banks: Banks) -> None:
    adventure = Adventure(
        [Action(f"a{n}", "output", f"The party walks on to the tower, day {n}.") for n in range(40)]
        + [Action("last", "do", "look for the silver key that Mara hid")]
    )
    contexts = []
    for kind in ("in process", "http"):
        bank = banks(kind, kind)
        bank.add("Mara hid the silver key under the chapel floor.", actions=["a1"])
        bank.add_many(f"The {who} looks for a silver key." for who in ("sexton", "wolf", "captain", "seal", "queen"))
        bank.add("The sexton rings the bell at dusk.", pinned=True)
        contexts.append(assemble(adventure, bank, Settings(context_size=300)))
    assert contexts[0].text == contexts[1].text
    plain = [context.to_dict() for context in contexts]
    for line in (line for context in plain for line in context["report"]["lines"]):
        assert ("rank" in line) == (line.pop("made", None) is not None), "each bank was filled at a time of its own"
    assert plain[0] == plain[1]
    assert "silver key under the chapel" in contexts[1].text
    assert contexts[1].recalled


def test_keys_and_namespaces(tmp_path: Path) -> None:
    database = tmp_path / "memories.sqlite"
    with live_service(database) as running:
        _, write = running.host.keys.create(namespace="acme", access="write")
        revoked, gone = running.host.keys.create(namespace="acme", access="write")
        _, read = running.host.keys.create(namespace="acme", access="read")
        _, other = running.host.keys.create(namespace="", access="write")
        running.host.keys.revoke(revoked.id)
        for kind in (RemoteBank, AwaitedBank):
            banks = {key: kind(running.url, "story", key=key) for key in (write, read, other, gone, None, "mb_x_y")}
            assert banks[write].add("x").id == banks[read].get("m1").id == "m1"
            assert banks[write].info().name == "story"
            assert banks[other].list() == []
            with pytest.raises(ForbiddenError) as forbidden:
                banks[read].add("y")
            assert (forbidden.value.status, forbidden.value.problem_type) == (403, "forbidden")
            for key in (gone, None, "mb_x_y"):
                with pytest.raises(UnauthorizedError) as caught:
                    banks[key].list()
                assert caught.value.request_id
                assert "secret" not in str(caught.value)
            for bank in banks.values():
                bank.close()
        assert [info.name for info in running.host.banks(namespace="acme").banks] == ["acme/story"]


def test_limits_of_the_service(tmp_path: Path) -> None:
    with live_service(tmp_path / "memories.sqlite", body_bytes=2_000, max_memories=3, rate=0.01, burst=6) as running:
        for kind in (RemoteBank, AwaitedBank):
            bank = kind(running.url, kind.__name__)
            with pytest.raises(InvalidInputError, match="limit is 2,000 bytes"):
                bank.add("x" * 3_000)
            with pytest.raises(ServiceError) as full:
                bank.add_many(["a", "b", "c", "d"])
            assert (full.value.status, full.value.problem_type) == (409, "conflict")
            if kind is AwaitedBank:
                bank.count()
                bank.count()
                with pytest.raises(RateLimitedError) as limited:
                    bank.count()
                assert limited.value.retry_after is not None
                assert limited.value.retry_after > 30
            bank.close()
