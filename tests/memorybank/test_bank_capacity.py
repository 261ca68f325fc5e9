"""A full bank forgets the least used memory, among equals the oldest, and never a pinned one (SPEC.md section 9)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from memorybank import InvalidInputError, MemoryBank
from memorybank.bank.draft import evicted

pytestmark = pytest.mark.both_engines


def active(bank: MemoryBank) -> list[str]:
    return [one.text for one in bank.list("active")]


def test_off_by_default(bank: MemoryBank) -> None:
    bank.add_many(f"{n}" for n in range(50))
    assert bank.count("active") == 50
    assert bank.info().capacity is None


def test_the_oldest_of_the_least_used_goes(bank: MemoryBank) -> None:
    bank.set_capacity(3)
    bank.add_many(["a", "b", "c"])
    bank.mark_used(["m1"])
    bank.add("d")
    assert active(bank) == ["a", "c", "d"]
    assert [one.text for one in bank.list("forgotten")] == ["b"]
    bank.mark_used(["m3", "m3"])
    bank.mark_used(["m4"])
    bank.mark_used(["m4"])
    bank.add("e")
    assert active(bank) == ["c", "d", "e"]


def test_a_new_memory_is_not_the_one_that_goes(bank: MemoryBank) -> None:
    bank.set_capacity(2)
    bank.add_many(["a", "b"])
    bank.mark_used(["m1", "m2"])
    bank.add("c")
    assert active(bank) == ["b", "c"]
    assert bank.search("c")[0].memory.text == "c"


def test_pinned_ones_never_go(bank: MemoryBank) -> None:
    bank.set_capacity(2)
    bank.add_many([{"text": "a", "pinned": True}, "b", "c"])
    assert active(bank) == ["a", "c"]
    bank.pin("m3")
    bank.add("d")
    assert active(bank) == ["a", "c", "d"]
    bank.add("e")
    assert active(bank) == ["a", "c", "e"]


def test_one_pinned_in_the_same_call_does_not_go(bank: MemoryBank) -> None:
    bank.set_capacity(2)
    bank.add_many(["a", "b"])
    bank.add_many([{"text": "a", "pinned": True}, "c"])
    assert active(bank) == ["a", "c"]


def test_many_at_once_are_as_if_one_by_one(bank: MemoryBank) -> None:
    bank.set_capacity(3)
    stored = bank.add_many(f"{n}" for n in range(10))
    assert active(bank) == ["7", "8", "9"]
    assert [one.state for one in stored] == ["forgotten"] * 7 + ["active"] * 3
    assert bank.check().ok


def test_the_same_again_forgets_nothing(bank: MemoryBank) -> None:
    bank.set_capacity(2)
    bank.add_many(["a", "b"])
    bank.add_many(["a", "b"])
    bank.edit("m1", text="c")
    assert active(bank) == ["c", "b"]


def test_restoring_into_a_full_bank_forgets_another(bank: MemoryBank) -> None:
    bank.set_capacity(2)
    bank.add_many(["a", "b", "c"])
    assert bank.restore("m1")[0].state == "active"
    assert active(bank) == ["a", "c"]
    bank.forget("m1")
    bank.add("d")
    assert active(bank) == ["c", "d"]


def test_a_lower_capacity_holds_at_once_and_none_lifts_it(bank: MemoryBank) -> None:
    bank.set_capacity(None)
    bank.add_many(["a", "b", {"text": "c", "pinned": True}, "d"])
    bank.mark_used(["m1"])
    bank.set_capacity(2)
    assert active(bank) == ["a", "c"]
    bank.set_capacity(1)
    assert active(bank) == ["c"]
    bank.set_capacity(None)
    assert bank.restore("m1", "m2", "m4")
    assert bank.count("active") == 4


def test_it_is_kept_with_the_bank(open_bank: Callable[..., MemoryBank]) -> None:
    open_bank("a").set_capacity(1)
    bank = open_bank("a")
    bank.add_many(["x", "y"])
    assert active(bank) == ["y"]
    other = open_bank("b")
    other.add_many(["x", "y"])
    assert active(other) == ["x", "y"]


@pytest.mark.parametrize("capacity", [0, -1, True, 1.5, "3"])
def test_it_is_checked(bank: MemoryBank, capacity: object) -> None:
    with pytest.raises(InvalidInputError, match="capacity"):
        bank.set_capacity(capacity)  # type: ignore[arg-type]


def one_by_one(
    there: list[tuple[int, int]], arrivals: list[tuple[int, int, bool]], active: int, capacity: int
) -> list[int]:
    left, gone = sorted(there), []

    def room(more: int) -> None:
        while left and active - len(gone) + more > capacity:
            gone.append(left.pop(0)[1])

    room(0)
    for use_count, ordinal, is_pinned in arrivals:
        room(1)
        active += 1
        left = left if is_pinned else sorted([*left, (use_count, ordinal)])
    return gone


def test_evicted_agrees_with_doing_it_one_by_one() -> None:
    dice = random.Random(1)
    for _ in range(300):
        there = [(dice.randint(0, 3), ordinal) for ordinal in range(dice.randint(0, 8))]
        active = len(there) + dice.randint(0, 3)
        arrivals = [(dice.randint(0, 2), 100 + n, dice.random() < 0.3) for n in range(dice.randint(0, 6))]
        capacity = dice.randint(1, 8)
        assert evicted(there, arrivals, active, capacity) == one_by_one(there, arrivals, active, capacity)
