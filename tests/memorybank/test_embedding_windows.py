"""How long texts are cut, with a tokenizer of three characters a piece."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorybank.embedding.windows import MAX_WINDOWS, STRETCH, evenly, squeeze, windows

TEXTS = st.text(alphabet=st.sampled_from("ab c\n哈한é.-"), max_size=400)


def pieces(text):
    return [match.span() for match in re.finditer(r"\S{1,3}", text)]


def test_a_short_text_is_one_window_as_it_is():
    assert [(w.text, w.weight) for w in windows("  The gate\nopens. ", pieces, 20)] == [("  The gate\nopens. ", 5)]


def test_windows_end_at_word_starts():
    assert [w.text for w in windows("aaa bbb ccccccccc ddd", pieces, 4)] == ["aaa bbb", "ccccccccc ddd"]


def test_a_tokenizer_that_counts_the_space_to_the_word():
    def with_space(text):
        return [match.span() for match in re.finditer(r"\s?\S{1,3}", text)]

    assert [w.text for w in windows("aaa bbb ccccccccc ddd", with_space, 4)] == ["aaa bbb", " ccccccccc ddd"]


def test_a_word_longer_than_a_window_is_cut_with_room_to_spare():
    assert [w.weight for w in windows("a" * 48, pieces, 8)] == [6, 6, 4]


@pytest.mark.parametrize("text", ["", " ", "\n" * 500])
def test_nothing_to_read_is_one_window(text):
    assert [w.weight for w in windows(text, pieces, 8)] == [1]


@given(TEXTS, st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_windows_fit_and_nothing_is_lost(text, room):
    found = windows(text, pieces, room)
    assert 1 <= len(found) <= MAX_WINDOWS
    assert all(1 <= w.weight <= room for w in found)
    if len(found) < MAX_WINDOWS:
        assert "".join("".join(w.text for w in found).split()) == "".join(text.split())


def test_many_windows_are_chosen_evenly_with_first_and_last():
    words = [f"w{n:04}" for n in range(1000)]
    found = [w.text for w in windows(" ".join(words), pieces, 2)]
    assert len(found) == MAX_WINDOWS
    assert (found[0], found[-1]) == (words[0], words[-1])
    steps = [int(b[1:]) - int(a[1:]) for a, b in pairwise(found)]
    assert set(steps) <= {15, 16}


def test_a_huge_text_is_tokenized_in_bounded_stretches():
    asked = []

    def watched(text):
        asked.append(len(text))
        return pieces(text)

    text = "first " + "the wolf ran home " * 200_000 + " last"
    found = windows(text, watched, 250)
    assert len(asked) <= MAX_WINDOWS
    assert max(asked) <= STRETCH
    assert found[0].text.startswith("first")
    assert found[-1].text.endswith("last")


def test_evenly():
    assert evenly([1, 2, 3], 3) == [1, 2, 3]
    assert evenly(range(10), 4) == [0, 3, 6, 9]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" + " " * 100 + "y", "x" + " " * 100 + "y"),
        ("x" + " " * 101 + "y", "x y"),
        ("a" * 100, "a" * 100),
        ("a" * 101, " ".join(["a" * 32] * 3 + ["a" * 5])),
        ("a" * 100 + ".", "a" * 100 + "."),
        ("한" * 40 + "b" * 80, " ".join(["한" * 32, "한" * 8 + "b" * 24, "b" * 32, "b" * 24])),
        ("한" * 32, "한" * 32),
        ("한" * 65, "한" * 32 + " " + "한" * 32 + " 한"),
        ("https://example.com/" + "ab/" * 60, "https://example.com/" + "ab/" * 60),
    ],
    ids=[
        "100 spaces",
        "101 spaces",
        "100 letters",
        "101 letters",
        "a full stop",
        "mixed",
        "32 Hangul",
        "65 Hangul",
        "a long address",
    ],
)
def test_squeeze(text, expected):
    assert squeeze(text) == expected
