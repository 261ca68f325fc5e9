"""What becomes of memories when the log changes under them (SPEC.md section 9; PITFALLS "Memories")."""

import hashlib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybank.errors import InvalidInputError
from memorybank.writing import Made, Plan, Rhythm, Source, Span, plan, source_hash, source_of


def log(*texts: str, first: int = 1) -> list[Source]:
    return [source_of(f"a{number}", text) for number, text in enumerate(texts, first)]


def numbered(count: int, first: int = 1, text: str = "text {}") -> list[Source]:
    return log(*(text.format(number) for number in range(first, first + count)), first=first)


class Bank:
    """Keeps what was made as a storage would: a due span is written, and what is stale stays for a redo."""

    def __init__(self, rhythm: Rhythm | None = None) -> None:
        self.rhythm = rhythm or Rhythm()
        self.made: dict[str, Made] = {}
        self.written = 0

    def see(self, now: list[Source], *, failing: bool = False) -> Plan:
        found = plan(now, self.made.values(), self.rhythm)
        for one in [] if failing else found.due:
            self.written += 1
            self.made[f"m{self.written}"] = Made(f"m{self.written}", one.sources)
        return found

    def valid(self, now: list[Source]) -> list[list[str]]:
        """The ids of the sources of what may be searched."""
        valid = plan(now, self.made.values(), self.rhythm).valid
        return [[source.id for source in self.made[key].sources] for key in valid]


def ids(first: int, last: int) -> list[str]:
    return [f"a{number}" for number in range(first, last + 1)]


def test_hashes_are_what_the_documentation_says():
    text_hash = hashlib.sha256("The gate\nopens 🙂".encode()).hexdigest()
    assert source_of("a1", "  The gate\r\nopens \ud83d\ude42 ") == Source("a1", text_hash)
    expected = json.dumps([["a1", text_hash], ["ä", source_of("ä", "x").text_hash]], separators=(",", ":"))
    assert source_hash([Source("a1", text_hash), source_of("ä", "x")]) == hashlib.sha256(expected.encode()).hexdigest()


def test_every_difference_changes_the_hash():
    sources = log("one", "two")
    others = [log("one", "two", first=2), log("one", "Two"), log("one"), log("two", "one"), log("onetwo", ""), []]
    assert len({source_hash(one) for one in [sources, *others]}) == 1 + len(others)
    assert source_hash(sources) == source_hash(log(" one", "two\r\n"))


def test_undo_and_other_actions_leave_nothing_of_the_undone():
    bank, first = Bank(), numbered(12)
    bank.see(first)
    assert bank.valid(first) == [ids(1, 6)]
    undone = first[:4]
    assert bank.see(undone) == Plan(valid=(), stale=("m1",), due=())
    typed = undone + numbered(8, first=101)
    found = bank.see(typed)
    assert [one.span for one in found.due] == [Span(1, 0, 6)]
    assert bank.valid(typed) == [["a1", "a2", "a3", "a4", "a101", "a102"]]
    assert bank.valid(first) == [ids(1, 6)], "a redo has it back"


def test_an_edit_is_stale_at_once_and_written_anew():
    bank, first = Bank(), numbered(18)
    bank.see(first)
    edited = [first[0], source_of("a2", "edited"), *first[2:]]
    found = bank.see(edited)
    assert (found.valid, found.stale) == (("m2",), ("m1",))
    assert [one.span for one in found.due] == [Span(1, 0, 6)]
    assert bank.valid(edited) == [ids(1, 6), ids(7, 12)]


def test_a_stale_span_waits_until_it_is_complete_again():
    bank, first = Bank(), numbered(12)
    bank.see(first)
    shorter = [source_of("a1", "edited"), *first[1:8]]
    assert bank.see(shorter) == Plan((), ("m1",), ())
    assert bank.see(shorter + numbered(3, first=50)).due == ()
    assert len(bank.see(shorter + numbered(4, first=50)).due) == 1


def test_a_redo_makes_it_valid_again_and_nothing_is_written():
    bank, first = Bank(), numbered(18)
    bank.see(first)
    bank.see(first[:3])
    assert bank.see(first) == Plan(("m1", "m2"), (), ())
    assert bank.written == 2


def test_what_failed_stays_due():
    bank, first = Bank(), numbered(18)
    assert [one.span.number for one in bank.see(first, failing=True).due] == [1, 2]
    assert [one.span.number for one in bank.see(first).due] == [1, 2]
    assert bank.see(first).due == ()


def test_a_span_without_text_makes_no_memory():
    bank = Bank()
    quiet = log(*[" \n"] * 6, *["text"] * 12)
    assert [one.span for one in bank.see(quiet).due] == [Span(2, 6, 12)]
    assert bank.see(quiet).due == ()


def test_actions_without_text_count():
    spoken = log("a", "", "b", "", "c", "", *["text"] * 6)
    assert [one.span for one in plan(spoken, [], Rhythm()).due] == [Span(1, 0, 6)]


def test_what_is_taken_out_of_the_middle_leaves_the_later_ones_alone():
    bank, first = Bank(), numbered(24)
    bank.see(first)
    shorter = first[:2] + first[3:]
    found = bank.see(shorter)
    assert (found.valid, found.stale) == (("m2", "m3"), ("m1",))
    assert [one.span for one in found.due] == [Span(1, 0, 5)]
    assert bank.valid(shorter) == [["a1", "a2", "a4", "a5", "a6"], ids(7, 12), ids(13, 18)]
    longer = shorter + numbered(7, first=25)
    assert [(one.span.start, one.span.stop) for one in bank.see(longer).due] == [(17, 23)]


def test_what_is_put_into_the_middle_is_told():
    bank, first = Bank(), numbered(18)
    bank.see(first)
    longer = [*first[:3], source_of("new", "A stranger comes."), *first[3:]]
    found = bank.see(longer)
    assert (found.valid, found.stale) == (("m2",), ("m1",))
    assert bank.valid(longer) == [["a1", "a2", "a3", "new", "a4", "a5"], ["a6"], ids(7, 12)]


def test_what_is_told_twice_is_valid_once():
    now = numbered(18)
    made = [Made("early", tuple(now[:6])), Made("across", tuple(now[3:9])), Made("late", tuple(now[6:12]))]
    found = plan(now, made, Rhythm())
    assert (found.valid, found.stale, found.due) == (("early", "late"), ("across",), ())


def test_a_deleted_memory_does_not_come_back():
    now = numbered(12)
    tombstone = Made("deleted", tuple(now[:6]))
    assert plan(now, [tombstone], Rhythm()).due == ()


def test_two_actions_with_one_id():
    with pytest.raises(InvalidInputError, match="'a2' is the id of two actions"):
        plan([*numbered(3), source_of("a2", "again")], [], Rhythm())


def test_a_long_log_is_quick():
    now = numbered(60_000)
    made = [Made(str(start), tuple(now[start : start + 6])) for start in range(0, 59_988, 6)]
    assert plan(now, made, Rhythm()).due == plan(now, made[:-1], Rhythm()).due[1:]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 9)),
        st.tuples(st.just("undo"), st.integers(1, 9)),
        st.tuples(st.just("redo"), st.just(0)),
        st.tuples(st.just("edit"), st.integers(0, 30)),
        st.tuples(st.just("fail"), st.just(0)),
    ),
    max_size=25,
)


@given(steps=STEPS, every=st.integers(1, 6), untouched=st.integers(0, 6), more=st.booleans())
def test_whatever_happens_the_log_is_told_once_and_as_it_is(steps, every, untouched, more):
    """With `more`, actions are taken out of the middle and put in, too."""
    bank, now, undone, number = Bank(Rhythm(every, untouched)), [], [], 0
    chance = random.Random(len(steps))
    for what, amount in steps:
        if what == "add":
            now, undone, number = now + numbered(amount, number + 1), [], number + amount
        elif what == "undo":
            undone, now = now[max(0, len(now) - amount) :] + undone, now[: max(0, len(now) - amount)]
        elif what == "redo":
            now, undone = now + undone, []
        elif what == "edit" and now:
            place = amount % len(now)
            if more and chance.random() < 0.5:
                number += 1
                now = now[:place] + numbered(1, number) * chance.randrange(2) + now[place + chance.randrange(2) :]
            else:
                now = [*now[:place], source_of(now[place].id, f"edited {chance.random()}"), *now[place + 1 :]]
        bank.see(now, failing=what == "fail")
    bank.see(now)
    again = bank.see(now)
    assert again.due == ()
    told = [now.index(source) for key in again.valid for source in bank.made[key].sources]
    assert told == sorted(set(told))  # once, in order, and as it stands
    assert all(place + every + untouched > len(now) for place in set(range(len(now))) - set(told))
    if not more:
        assert [len(bank.made[key].sources) for key in again.valid] == [every] * (len(told) // every)
        assert all(place % every == 0 for place in told[::every])


def test_an_old_edit_in_a_log_that_was_undone_waits_for_the_newest_to_be_left_alone():
    bank, first = Bank(), numbered(18)
    bank.see(first)
    shorter = [source_of("a1", "edited"), *first[1:11]]
    assert bank.see(shorter) == Plan((), ("m1", "m2"), ())
    again = [source_of("a1", "edited"), *first[1:12]]
    assert bank.see(again).valid == ("m2",)
    assert bank.valid(again) == [ids(1, 6), ids(7, 12)]
