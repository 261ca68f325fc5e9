"""What a bank does with memories: add, edit, delete, pin, forget, restore, list, search (SPEC.md section 9)."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from memorybank import (
    InvalidInputError,
    Memory,
    MemoryBank,
    MemoryNotFoundError,
    ModelError,
    ModelMismatchError,
    NewMemory,
    StorageError,
)
from memorybank.embedding.testing import HashingEmbedder
from memorybank.inputs import MAX_ACTIONS, MAX_ID, MAX_METADATA, MAX_TEXT
from memorybank.search.index import VectorIndex
from memorybank.search.live_index import Asked

pytestmark = pytest.mark.both_engines

Opener = Callable[..., MemoryBank]


def ids(found: Any) -> list[str]:
    return [getattr(one, "memory", one).id for one in found]


def revision(bank: MemoryBank) -> int:
    return bank.info().revision


class TestAdd:
    def test_it_is_stored_whole(self, bank: MemoryBank) -> None:
        stored = bank.add(
            "  The gate opens.\r\nA wolf.\n", actions=["a1", "a2"], pinned=True, metadata={"by": [1, None]}
        )
        assert stored == Memory(
            id="m1",
            text="The gate opens.\nA wolf.",
            actions=("a1", "a2"),
            pinned=True,
            metadata={"by": [1, None]},
            state="active",
            model="hashing-64",
            created=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
        )
        assert bank.get("m1") == stored

    def test_ids_are_counted_and_never_given_again(self, bank: MemoryBank) -> None:
        assert ids(bank.add_many(["one", "two"])) == ["m1", "m2"]
        bank.delete("m2")
        assert bank.add("three").id == "m3"
        bank.add("four", id="m9")
        bank.delete("m9")
        assert bank.add("five").id == "m10"
        bank.add("six", id="m12345678901234567890")
        assert bank.add("seven").id == "m11"

    def test_an_id_of_the_caller_is_not_given_to_another_in_the_same_call(self, bank: MemoryBank) -> None:
        stored = bank.add_many(["one", {"id": "m1", "text": "two"}])
        assert [(one.id, one.text) for one in stored] == [("m2", "one"), ("m1", "two")]

    def test_the_same_again_changes_nothing(self, bank: MemoryBank) -> None:
        first = bank.add("The gate opens.", id="g", actions=["a1"], pinned=True, metadata={"k": 1})
        before = revision(bank)
        assert bank.add("The gate opens. ", id="g") == first
        assert bank.add("\n The gate opens.") == first
        assert bank.add("The gate opens.", id="g", actions=["a1"], pinned=True, metadata={"k": 1}) == first
        assert revision(bank) == before

    def test_the_same_again_takes_what_is_given(self, bank: MemoryBank) -> None:
        bank.add("The gate opens.", id="g", metadata={"k": 1})
        again = bank.add("The gate opens.", actions=["a1"], pinned=True, metadata={"k": True})
        assert (again.id, again.actions, again.pinned, again.metadata["k"]) == ("g", ("a1",), True, True)
        assert bank.get("g") == again
        assert bank.get("g").metadata["k"] is True

    def test_the_same_text_of_other_actions_is_another_memory(self, bank: MemoryBank) -> None:
        bank.add("They rest.", actions=["a1", "a2"])
        assert bank.add("They rest.", actions=["a7"]).id == "m2"
        assert [(one.id, one.actions) for one in bank.list()] == [("m1", ("a1", "a2")), ("m2", ("a7",))]
        before = revision(bank)
        assert bank.add("They rest.", actions=["a7"]).id == "m2"
        assert bank.add("They rest. ").id == "m1"
        assert revision(bank) == before
        bank.add("They leave.")
        assert ids(bank.add_many(NewMemory("They leave.", actions=(one,)) for one in ("b1", "b2", "b1"))) == [
            "m3",
            "m4",
            "m3",
        ]
        assert [one.actions for one in bank.list()[2:]] == [("b1",), ("b2",)]

    def test_the_same_id_with_another_text_is_an_edit(self, bank: MemoryBank) -> None:
        first = bank.add("The gate opens.", id="g", actions=["a1"])
        second = bank.add("A wolf howls.", id="g")
        assert (second.created, second.actions, second.text) == (first.created, ("a1",), "A wolf howls.")
        assert bank.count() == 1
        assert bank.search("wolf howls")[0].similarity > 0.5

    def test_one_text_under_two_ids_is_two_memories(self, bank: MemoryBank) -> None:
        bank.add("The gate opens.", id="a")
        bank.add("The gate opens.", id="b")
        assert ids(bank.search("gate", ranking="semantic")) == ["a", "b"]
        assert sorted(ids(bank.search("gate"))) == ["a", "b"]
        assert bank.add("The gate opens.").id == "a"

    def test_a_forgotten_one_stays_forgotten(self, bank: MemoryBank) -> None:
        bank.add("The gate opens.")
        bank.forget("m1")
        assert bank.add("The gate opens.").state == "forgotten"
        assert bank.add("The gate closes.", id="m1").state == "forgotten"
        assert bank.search("gate") == []
        assert bank.restore("m1")[0].text == "The gate closes."
        assert ids(bank.search("gate")) == ["m1"]

    def test_many_as_if_one_by_one(self, bank: MemoryBank) -> None:
        stored = bank.add_many(["x", NewMemory("y"), {"text": "x "}, {"id": "m2", "text": "z"}, {"text": "y"}])
        assert [(one.id, one.text) for one in stored] == [
            ("m3", "x"),
            ("m4", "y"),
            ("m3", "x"),
            ("m2", "z"),
            ("m4", "y"),
        ]
        assert bank.add_many([]) == []
        assert bank.add_many(text for text in "ab")[1].text == "b"

    def test_all_or_none(self, bank: MemoryBank) -> None:
        with pytest.raises(InvalidInputError, match="memory 2: text is empty"):
            bank.add_many(["x", " "])
        assert bank.count() == 0
        assert revision(bank) == 0

    def test_what_is_stored_already_is_not_embedded_again(self, open_bank: Opener, random_embedder: Any) -> None:
        model = random_embedder()
        bank = open_bank(embedder=model)
        bank.add_many(["x", "y", "x"])
        bank.add_many(["y", "z"])
        bank.add("x", id="other")
        bank.edit("m1", text="y")
        assert model.asked == ["x", "y", "z"]

    def test_progress_ends_at_the_number_of_texts(self, bank: MemoryBank) -> None:
        told: list[tuple[int, int]] = []
        bank.add("text 0")
        bank.add_many([f"text {n}" for n in range(150)], progress=lambda *pair: told.append(pair))
        assert told[0] == (1, 150)
        assert told[-1] == (150, 150)
        assert told == sorted(told)

    def test_the_write_lock_is_not_held_while_embedding(self, open_bank: Opener, random_embedder: Any) -> None:
        other = open_bank(embedder=random_embedder())

        class Meanwhile(random_embedder):  # type: ignore[misc]
            def embed(self, texts: Any, *, kind: str = "passage") -> Any:
                other.add("meanwhile")
                return super().embed(texts, kind=kind)

        bank = open_bank(embedder=Meanwhile())
        bank.add("x")
        bank.edit("m2", text="y")
        bank.reembed()
        assert [one.text for one in bank.list()] == ["meanwhile", "y"]


class TestInput:
    @pytest.mark.parametrize("text", ["", " \n\t", "\u3000"])
    def test_empty(self, bank: MemoryBank, text: str) -> None:
        with pytest.raises(InvalidInputError, match="text is empty"):
            bank.add(text)

    def test_too_long(self, bank: MemoryBank) -> None:
        bank.add(" " + "a" * MAX_TEXT + "\n")
        with pytest.raises(InvalidInputError, match="text has 100,001 characters, the limit is 100,000"):
            bank.add("a" * (MAX_TEXT + 1))

    @pytest.mark.parametrize("text", [None, 3, b"x", ["x"]])
    def test_no_text(self, bank: MemoryBank, text: Any) -> None:
        with pytest.raises(InvalidInputError, match="text must be a string"):
            bank.add(text)

    @pytest.mark.parametrize("id_", ["", "a" * (MAX_ID + 1), "a\nb", "a\0", "\ud83d", "\x1b[31m", 3, b"m1"])
    def test_ids(self, bank: MemoryBank, id_: Any) -> None:
        for call in (
            lambda: bank.add("x", id=id_),
            lambda: bank.get(id_),
            lambda: bank.delete(id_),
            lambda: bank.pin(id_),
            lambda: bank.mark_used([id_]),
            lambda: bank.edit(id_, text="x"),
            lambda: bank.add("x", actions=[id_]),
        ):
            with pytest.raises(InvalidInputError):
                call()
        with pytest.raises(InvalidInputError):
            MemoryBank.open(bank=id_)

    @pytest.mark.parametrize(
        "id_", ["a", "x" * MAX_ID, "m 1", "Ünïcödé-門", "../../etc", "'; DROP TABLE memories; --", "%"]
    )
    def test_ids_that_are_fine(self, bank: MemoryBank, id_: str) -> None:
        bank.add("x", id=id_)
        assert bank.get(id_).id == bank.search("x")[0].memory.id == id_
        bank.delete(id_)
        assert bank.count() == 0

    def test_actions(self, bank: MemoryBank) -> None:
        many = tuple(f"a{n}" for n in range(MAX_ACTIONS))
        assert bank.add("x", actions=many).actions == many
        with pytest.raises(InvalidInputError, match=f"actions has {MAX_ACTIONS + 1:,} ids"):
            bank.add("y", actions=(*many, "b"))
        for bad in ("a1", {"a": 1}, 3, [None]):
            with pytest.raises(InvalidInputError, match="actions"):
                bank.add("y", actions=bad)  # type: ignore[arg-type]

    def test_metadata(self, bank: MemoryBank) -> None:
        given: dict[str, Any] = {"n": 1.5, "deep": [{"é\ud83d": None}], "t": True}
        assert bank.add("x", metadata=given).metadata == given
        assert bank.get("m1").metadata == given
        given["deep"].append("changed by the caller")
        assert len(bank.get("m1").metadata["deep"]) == 1
        loop: dict[str, Any] = {}
        loop["self"] = loop
        for bad in ({"x": math.nan}, {"x": object()}, loop, [1], "x", {"x": "a" * MAX_METADATA}):
            with pytest.raises(InvalidInputError, match="metadata"):
                bank.add("y", metadata=bad)  # type: ignore[arg-type]

    @pytest.mark.parametrize("pinned", [1, 0, "false", None])
    def test_flags(self, bank: MemoryBank, pinned: Any) -> None:
        with pytest.raises(InvalidInputError, match="pinned must be true or false"):
            bank.add("x", pinned=pinned)

    def test_mappings(self, bank: MemoryBank) -> None:
        for bad, says in [
            ({"id": "x"}, "memory 1: the field 'text' is missing"),
            ({"text": "x", "txt": 1}, "memory 1: unknown field 'txt'"),
            ({"text": "x", "id": 3}, "memory 1: id must be a string"),
            (3, "memory 1 must be a NewMemory, a mapping or a text"),
        ]:
            with pytest.raises(InvalidInputError, match=says):
                bank.add_many([bad])  # type: ignore[list-item]
        for not_many in ("x", {"text": "x"}, None, 3):
            with pytest.raises(InvalidInputError, match="items must be a list"):
                bank.add_many(not_many)  # type: ignore[arg-type]

    def test_what_a_player_can_type(self, bank: MemoryBank) -> None:
        texts = [
            "a\0b",
            "\ud83d",
            "\ud83d\udc4d",
            "<|endoftext|>",
            "哈" * 20_000,
            "x" + " " * 90_000 + "y",
            "👨‍👩‍👧",
            "None",
        ]
        stored = bank.add_many(texts)
        assert [one.text for one in stored] == ["a\0b", "\ufffd", "👍", *texts[3:]]
        assert bank.list() == stored
        assert ids(bank.search("a\0b", limit=1)) == ["m1"]
        assert bank.check().ok


class TestChanges:
    @pytest.fixture
    def filled(self, bank: MemoryBank) -> MemoryBank:
        bank.add_many(["The gate opens.", "A wolf howls.", "Rain falls."])
        return bank

    def test_edit(self, filled: MemoryBank) -> None:
        edited = filled.edit("m2", text=" A dragon sleeps. ", actions=["a9"], pinned=True, metadata={"k": 2})
        assert (edited.text, edited.actions, edited.pinned, edited.metadata) == (
            "A dragon sleeps.",
            ("a9",),
            True,
            {"k": 2},
        )
        assert filled.get("m2") == edited
        assert filled.search("dragon sleeps")[0].memory == edited
        assert filled.search("wolf howls")[0].similarity < 0.5

    def test_an_edit_that_changes_nothing(self, filled: MemoryBank) -> None:
        before = revision(filled), filled.list()
        filled.edit("m1", text="The gate opens.\n", pinned=False)
        filled.edit("m1")
        assert (revision(filled), filled.list()) == before

    def test_edit_many(self, filled: MemoryBank) -> None:
        filled.edit_many([{"id": "m1", "text": "x"}, {"id": "m2", "pinned": True}, {"id": "m1", "text": "y"}])
        assert [one.text for one in filled.list()] == ["y", "A wolf howls.", "Rain falls."]
        assert filled.edit_many([{"id": "m3", "state": "forgotten"}])[0].state == "forgotten"
        assert filled.search("rain falls", min_similarity=0.9) == []
        wrong = (
            {"text": "x"},
            {"id": "m1", "state": "asleep"},
            {"id": "m1", "ordinal": 9},
            {"id": "m1", "text": ""},
            3,
        )
        for bad in (*([one] for one in wrong), "m1"):
            with pytest.raises(InvalidInputError):
                filled.edit_many(bad)  # type: ignore[arg-type]
        assert filled.edit_many([]) == []

    def test_delete(self, filled: MemoryBank) -> None:
        filled.delete("m1", "m3", "m1")
        assert ids(filled.list()) == ids(filled.search("gate")) == ["m2"]
        filled.delete()

    @pytest.mark.parametrize("call", ["delete", "pin", "unpin", "forget", "restore"])
    def test_one_unknown_id_and_nothing_happens(self, filled: MemoryBank, call: str) -> None:
        before = filled.list(), revision(filled)
        with pytest.raises(MemoryNotFoundError, match="bank 'default' has no memory 'm7', 'm8': nothing was changed"):
            getattr(filled, call)("m1", "m7", "m2", "m8")
        assert (filled.list(), revision(filled)) == before
        with pytest.raises(InvalidInputError, match="id must be a string"):
            getattr(filled, call)(["m1"])

    def test_unknown_ids_elsewhere(self, filled: MemoryBank, open_bank: Opener) -> None:
        for call in (
            lambda: filled.get("m7"),
            lambda: filled.edit("m7", text="x"),
            lambda: filled.edit_many([{"id": "m1", "text": "x"}, {"id": "m7", "pinned": True}]),
            lambda: open_bank("never written").pin("m1"),
            lambda: open_bank("never written").get("m1"),
        ):
            with pytest.raises(MemoryNotFoundError):
                call()
        assert filled.get("m1").text == "The gate opens."

    def test_pin_and_unpin(self, filled: MemoryBank) -> None:
        assert [one.pinned for one in filled.pin("m1", "m2")] == [True, True]
        before = revision(filled)
        filled.pin("m1")
        assert revision(filled) == before
        filled.unpin("m1")
        assert [one.pinned for one in filled.list()] == [False, True, False]

    def test_forget_and_restore(self, filled: MemoryBank) -> None:
        assert filled.forget("m2")[0].state == "forgotten"
        before = revision(filled)
        filled.forget("m2")
        assert revision(filled) == before
        assert ids(filled.search("wolf howls")) == ["m1", "m3"] or ids(filled.search("wolf howls")) == ["m3", "m1"]
        assert ids(filled.list("forgotten")) == ["m2"]
        assert ids(filled.list("active")) == ["m1", "m3"]
        assert filled.restore("m2", "m1")[0].state == "active"
        assert ids(filled.search("wolf howls", limit=1)) == ["m2"]
        assert ids(filled.list()) == ["m1", "m2", "m3"]

    def test_use_is_counted_when_told_and_not_by_searching(self, filled: MemoryBank) -> None:
        filled.search("gate")
        assert filled.mark_used(["m1", "m3", "m1", "gone"]) == 2
        assert filled.mark_used(["m1"]) == 1
        used = filled.get("m1")
        assert used.use_count == 2
        assert used.last_used is not None
        assert used.last_used > used.created
        assert filled.get("m2").use_count == 0
        assert filled.mark_used([]) == 0

    def test_counting_use_moves_no_vector(self, filled: MemoryBank) -> None:
        filled.search("gate")
        before = revision(filled)
        filled.mark_used(["m1"])
        filled.pin("m2")
        assert revision(filled) == before + 2
        with filled._store.read() as reader:
            assert reader.changed("default", before) == ([], [])
        assert filled.search("gate", limit=1)[0].memory.use_count == 1

    def test_times_have_a_zone(self, open_bank: Opener) -> None:
        bank = open_bank(clock=lambda: datetime(2026, 1, 1))
        with pytest.raises(InvalidInputError, match="zone"):
            bank.add("x")
        eastern = datetime.fromisoformat("2026-01-01T05:00:00+05:00")
        assert open_bank(clock=lambda: eastern).add("x").created.isoformat() == "2026-01-01T00:00:00+00:00"


class TestReading:
    def test_pages(self, bank: MemoryBank) -> None:
        bank.add_many(f"text {n}" for n in range(25))
        bank.forget("m3", "m20")
        seen, cursor = [], None
        while True:
            page = bank.page(limit=10, cursor=cursor)
            seen += ids(page.memories)
            if (cursor := page.cursor) is None:
                break
            bank.delete(seen[-1])  # also the one at the edge
            bank.add(f"new at {len(seen)}")
        assert seen[:25] == [f"m{n}" for n in range(1, 26)]
        assert len(seen) == len(set(seen)) == 27
        assert ids(bank.page(state="forgotten", limit=1).memories) == ["m3"]
        assert bank.page(limit=10_000).cursor is None

    @pytest.mark.parametrize(
        "options", [{"limit": 0}, {"limit": 10_001}, {"limit": True}, {"limit": 2.0}, {"cursor": "x"}, {"cursor": "-1"}]
    )
    def test_pages_are_checked(self, bank: MemoryBank, options: Any) -> None:
        with pytest.raises(InvalidInputError):
            bank.page(**options)

    def test_states_are_checked(self, bank: MemoryBank) -> None:
        for call in (bank.list, bank.count, lambda state: bank.page(state=state)):
            with pytest.raises(InvalidInputError, match="one of active, forgotten, stale, not"):
                call("gone")

    def test_info_and_counts(self, bank: MemoryBank) -> None:
        assert bank.info().model is None
        bank.add_many(["x", "y", "z"])
        bank.forget("m1")
        info = bank.info()
        assert (info.name, info.model, info.dimensions) == ("default", "hashing-64", 64)
        assert info.counts == {"active": 2, "forgotten": 1}
        assert (bank.count(), bank.count("active"), bank.count("forgotten")) == (3, 2, 1)

    def test_nothing_is_made_by_looking(self, bank: MemoryBank) -> None:
        assert (bank.list(), bank.search("x"), bank.count(), bank.check().ok) == ([], [], 0, True)
        assert bank.info().created is None


class TestModels:
    def test_another_model_is_noticed_on_opening_by_name(self, open_bank: Opener) -> None:
        bank = open_bank()
        bank.add("x")
        with pytest.raises(ModelMismatchError) as caught:
            open_bank(embedder=HashingEmbedder(64, name="other"))
        place = shlex.quote(bank._store.where)
        for part in ("'hashing-64'", "'other'", f"memorybank reembed --db {place} --bank default --model other"):
            assert part in str(caught.value)

    def test_and_by_width(self, open_bank: Opener) -> None:
        open_bank().add("x")
        with pytest.raises(ModelMismatchError, match=r"64 dimensions.*32 dimensions"):
            open_bank(embedder=HashingEmbedder(32, name="hashing-64"))

    def test_an_unverified_bank_can_be_tidied_but_not_searched(self, open_bank: Opener) -> None:
        open_bank().add_many(["x", "y"])
        bank = open_bank(embedder=HashingEmbedder(64, name="other"), verify_model=False)
        bank.pin("m1")
        bank.forget("m1")
        bank.restore("m1")
        bank.edit("m1", metadata={"k": 1})
        bank.set_capacity(5)
        assert bank.check().ok
        for call in (lambda: bank.search("x"), lambda: bank.add("z"), lambda: bank.edit("m2", text="z")):
            with pytest.raises(ModelMismatchError):
                call()
        assert bank.reembed() == 2
        assert ids(bank.search("x", limit=1)) == ["m1"]
        assert {one.model for one in bank.list()} == {"other"}

    def test_an_emptied_bank_takes_any_model(self, open_bank: Opener) -> None:
        with open_bank() as bank:
            bank.add("x")
            bank.delete("m1")
        bank = open_bank(embedder=HashingEmbedder(32))
        assert bank.search("y") == []
        assert bank.add("y").id == "m2"
        assert bank.search("y")[0].similarity == 1.0
        assert bank.check().ok

    def test_reembed_keeps_everything_else(self, open_bank: Opener) -> None:
        bank = open_bank()
        bank.add_many([{"text": "x", "pinned": True}, {"text": "y", "actions": ["a1"]}, "z"])
        bank.forget("m3")
        before = bank.list()
        told: list[Any] = []
        assert bank.reembed(HashingEmbedder(32), progress=lambda *pair: told.append(pair)) == 3
        assert told[-1] == (3, 3)
        assert [(a.id, a.text, a.pinned, a.actions, a.state) for a in bank.list()] == [
            (b.id, b.text, b.pinned, b.actions, b.state) for b in before
        ]
        assert bank.info().dimensions == 32
        assert bank.restore("m3")[0].model == "hashing-32"
        assert bank.search("z", limit=1)[0].similarity == 1.0
        assert bank.check().ok

    def test_a_reembedding_that_fails_changes_nothing(self, open_bank: Opener, random_embedder: Any) -> None:
        bank = open_bank()
        bank.add_many(f"text {n}" for n in range(100))
        before = bank.list()

        class Fails(random_embedder):  # type: ignore[misc]
            def embed(self, texts: Any, *, kind: str = "passage") -> Any:
                if "text 99" in texts:
                    raise ModelError("out of memory")
                return super().embed(texts, kind=kind)

        with pytest.raises(ModelError, match="out of memory"):
            bank.reembed(Fails())
        assert bank.list() == before
        assert bank.search("text 7")[0].similarity == 1.0

    def test_others_notice_a_reembedding(self, open_bank: Opener) -> None:
        one, other = open_bank(), open_bank()
        one.add_many(["x", "y"])
        assert other.search("x")
        one.reembed(HashingEmbedder(64, name="other"))
        for call in (lambda: other.search("x"), lambda: other.add("z")):
            with pytest.raises(ModelMismatchError):
                call()
        other.pin("m1")
        assert one.search("x", limit=1)[0].memory.pinned

    def test_the_model_is_compared_in_the_snapshot_that_is_searched(self, open_bank: Opener, embedder: Any) -> None:
        """The bank may be moved to another model between the first look and the one that brings the index up."""
        bank = open_bank()
        bank.add("x")
        seen: list[Any] = []

        def guard(state: Any) -> None:
            seen.append(state)
            if len(seen) == 2:
                raise ModelMismatchError("moved meanwhile")

        with pytest.raises(ModelMismatchError, match="moved meanwhile"):
            bank._live.search(Asked(embedder.embed(["x"])[0], 1, guard), lambda candidates, _: [])

    @pytest.mark.parametrize("broken", ["nan", "long", "zero", "shape", "integers", "list"])
    def test_vectors_that_are_none_are_refused(self, open_bank: Opener, random_embedder: Any, broken: str) -> None:
        class Broken(random_embedder):  # type: ignore[misc]
            def embed(self, texts: Any, *, kind: str = "passage") -> Any:
                vectors = super().embed(texts, kind=kind)
                if "bad" not in texts:
                    return vectors
                spoiled = {
                    "nan": lambda: np.where(vectors > 0.1, np.nan, vectors),
                    "long": lambda: vectors * 1.01,
                    "zero": lambda: vectors * 0,
                    "shape": lambda: vectors[:, :-1],
                    "integers": lambda: vectors.astype(int),
                    "list": lambda: ["vector"],
                }
                return spoiled[broken]()

        bank = open_bank(embedder=Broken())
        bank.add("good")
        for call in (
            lambda: bank.add_many(["fine", "bad"]),
            lambda: bank.edit("m1", text="bad"),
            lambda: bank.search("bad"),
        ):
            with pytest.raises(ModelError, match="model random: it gave"):
                call()
        assert [one.text for one in bank.list()] == ["good"]


class TestCheck:
    @pytest.fixture
    def filled(self, open_bank: Opener) -> MemoryBank:
        bank = open_bank()
        bank.add_many(["The gate opens.", "A wolf howls.", "Rain falls."])
        bank.forget("m3")
        bank.search("gate")
        return bank

    def spoil(self, bank: MemoryBank, changes: str, id_: str, **values: Any) -> None:
        with bank._store._writing() as connection:
            connection.execute(text(f"UPDATE memories SET {changes} WHERE id = :id"), {"id": id_, **values})  # noqa: S608

    def test_all_is_well(self, filled: MemoryBank) -> None:
        report = filled.check()
        assert (report.ok, report.memories, report.indexed) == (True, 3, 2)

    @pytest.mark.parametrize(
        ("id_", "changes", "says"),
        [
            ("m1", {"text": "changed"}, "memory 'm1': its text is not the one"),
            ("m3", {"model": "x"}, "memory 'm3': its vector is of model x"),
            ("m3", {"vector": b"\0"}, "memory 'm3': its vector has 1 bytes, not 256"),
            ("m3", {"vector": bytes(256)}, "memory 'm3': its vector is not finite or not"),
            ("m1", {"state": "forgotten"}, "memory 'm1' is forgotten, but in the index"),
            ("m3", {"state": "active"}, "memory 'm3' is active, but not in the index"),
            ("m1", {"revision": 99}, "memory 'm1': it is newer than its bank"),
            ("m1", {"vector": HashingEmbedder().embed(["x"])[0].tobytes()}, "memory 'm1': its vector in the index is"),
        ],
    )
    def test_what_was_changed_behind_its_back_is_found(
        self, filled: MemoryBank, id_: str, changes: dict[str, Any], says: str
    ) -> None:
        [(column, value)] = changes.items()
        self.spoil(filled, f"{column} = :value", id_, value=value)
        assert says in "\n".join(filled.check().problems)

    def test_a_row_that_went_behind_its_back_is_found(self, filled: MemoryBank) -> None:
        with filled._store._writing() as connection:
            connection.exec_driver_sql("DELETE FROM memories WHERE id = 'm1'")
        assert "the index holds 2 vectors, the database 1 active memories" in filled.check().problems

    @pytest.mark.parametrize("half_above", [0, 8_000])
    def test_a_row_that_went_behind_its_back_is_left_out(self, filled: MemoryBank, half_above: int) -> None:
        filled._live._make_index = lambda dimensions: VectorIndex(dimensions, half_above=half_above)
        filled._live.release()
        filled.pin("m2")
        assert ids(filled.search("wolf", pinned_first=True)) == ["m2", "m1"]
        with filled._store._writing() as connection:
            connection.exec_driver_sql("DELETE FROM memories WHERE id = 'm1'")
        assert ids(filled.search("wolf", pinned_first=True)) == ids(filled.search("wolf")) == ["m2"]

    @pytest.mark.parametrize(
        ("vector", "says"),
        [(b"\0", "has 1 bytes, not 256"), (bytes(252) + b"\0\0\xc0\x7f", "is not finite or not of length 1")],
    )
    def test_a_damaged_vector_is_named_and_reembedding_mends_it(
        self, filled: MemoryBank, open_bank: Opener, vector: bytes, says: str
    ) -> None:
        self.spoil(filled, "vector = :vector", "m2", vector=vector)
        fresh = open_bank()
        with pytest.raises(
            StorageError, match=rf"bank 'default', memory 'm2': .*its vector {says}.*memorybank reembed"
        ):
            fresh.search("wolf")
        assert any(f"memory 'm2': its vector {says}" in line for line in fresh.check().problems)
        fresh.reembed()
        assert ids(fresh.search("wolf howls", limit=1)) == ["m2"]
        assert fresh.check().ok

    def test_vectors_whose_wrong_lengths_add_up_are_not_mixed(self, filled: MemoryBank, open_bank: Opener) -> None:
        self.spoil(filled, "vector = :vector", "m1", vector=bytes(252))
        self.spoil(filled, "vector = :vector", "m2", vector=bytes(260))
        with pytest.raises(StorageError, match=r"memory 'm1': .*has 252 bytes"):
            open_bank().search("wolf")

    def test_a_vector_damaged_after_it_was_indexed_is_named(self, filled: MemoryBank) -> None:
        self.spoil(filled, "vector = :vector", "m2", vector=bytes(3))
        with pytest.raises(StorageError, match=r"memory 'm2': .*has 3 bytes, not 256"):
            filled.search("wolf")

    def test_a_damaged_vector_is_not_given_to_another_memory_of_that_text(self, filled: MemoryBank) -> None:
        self.spoil(filled, "vector = :vector", "m2", vector=bytes(3))
        filled.add("A wolf howls.", id="other")
        assert [line for line in filled.check().problems if "other" in line] == []

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"actions": '["a1"'}, "actions is not JSON: Expecting"),
            ({"actions": '{"a": 1}'}, "actions is no list of strings"),
            ({"actions": "[1]"}, "actions is no list of strings"),
            ({"metadata": "[]"}, "metadata is no JSON object"),
            ({"metadata": '{"a": NaN}'}, "metadata is not JSON: NaN is no number of JSON"),
            ({"metadata": "[" * 200_000}, "metadata is not JSON|recursion"),
            ({"created": "yesterday"}, "Invalid isoformat string: 'yesterday'"),
            ({"created": "2026-01-01T00:00:00"}, "the time '2026-01-01T00:00:00' has no zone"),
            ({"last_used": ""}, "Invalid isoformat string: ''"),
            ({"state": "lost"}, "state is 'lost'"),
        ],
    )
    def test_a_damaged_row_is_named_and_the_others_can_be_read(
        self, filled: MemoryBank, open_bank: Opener, changes: dict[str, Any], says: str
    ) -> None:
        [(column, value)] = changes.items()
        self.spoil(filled, f"{column} = :value", "m2", value=value)
        named = rf"(?s)bank 'default', memory 'm2': its row in the database is damaged \(.*({says})"
        fresh = open_bank()
        for call in (lambda: fresh.get("m2"), fresh.list, lambda: fresh.pin("m2"), lambda: filled.search("wolf howls")):
            with pytest.raises(StorageError, match=named):
                call()
        assert fresh.get("m1").text == "The gate opens."
        report = fresh.check()
        assert report.memories == 3
        assert [line for line in report.problems if "memory 'm2'" in line and re.search(named, line)]

    @pytest.mark.parametrize(("column", "value"), [("created", "yesterday"), ("dimensions", 0)])
    def test_a_damaged_row_of_the_bank_is_named(
        self, filled: MemoryBank, open_bank: Opener, column: str, value: Any
    ) -> None:
        with filled._store._writing() as connection:
            connection.execute(text(f"UPDATE banks SET {column} = :value"), {"value": value})  # noqa: S608
        named = "bank 'default': its row in the database is damaged"
        for call in (filled.info, lambda: filled.add("x"), lambda: filled.search("x"), open_bank):
            with pytest.raises(StorageError, match=named):
                call()
        assert any(named in line for line in filled.check().problems)

    def test_half_precision_agrees_too(self, filled: MemoryBank) -> None:
        from memorybank.search.index import VectorIndex
        from memorybank.search.live_index import LiveIndex

        filled._live = LiveIndex(filled._store, "default", lambda width: VectorIndex(width, half_above=0))
        assert filled.check().ok
        with filled._live.current() as (_, _, index):
            assert index is not None
            assert index.is_half
        assert filled.search("The gate opens.")[0].similarity == 1.0
