"""Foreign keys: what becomes a trigger, and what is a pattern and never half of one."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler.formats.keys import read_keys, split_keys
from assembler.formats.patterns import MAX_WORDS, expand


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("katariah|(|the )emp(ress|eror)", ["katariah", "empress", "emperor", "the empress", "the emperor"]),
        ("colou?r", ["colour", "color"]),
        ("(?:big )?wolf", ["big wolf", "wolf"]),
        (r"Dr\. Moss", ["Dr. Moss"]),
        ("el(f|ves)", ["elf", "elves"]),
        ("plain", ["plain"]),
        ("((a|b)(c|d)|e)", ["ac", "ad", "bc", "bd", "e"]),
    ],
)
def test_small_finite_patterns_are_written_out(pattern: str, words: list[str]) -> None:
    assert expand(pattern) == words
    assert all(re.fullmatch(pattern, word) for word in words)


@pytest.mark.parametrize(
    "pattern",
    ["drag{1,2}on", "(a+)+$", ".*", "a.b", "[ab]c", r"\bcat\b", "(?=x)y", "(?i)x", "(open", "close)", "a**", "", "x\\"],
)
def test_real_patterns_are_none_or_nothing(pattern: str) -> None:
    assert not any(expand(pattern) or [])


def test_expansion_is_bounded_in_words_length_and_depth() -> None:
    assert len(expand("(a|b)" * 6) or []) == MAX_WORDS
    assert expand("(a|b)" * 7) is None
    assert expand("(" * 500 + "a" + ")" * 500) is None
    assert expand("(a|" * 5000) is None


def test_an_empty_alternative_never_matches_everything() -> None:
    assert read_keys("(grey fox|)#[t=5]", "loose").triggers == ("grey fox",)
    assert read_keys(["/(|)/"], "slashes").triggers == ()


def test_slashed_patterns_and_their_neighbours() -> None:
    keys = read_keys("/drag{1,2}on/i, wyrm", "slashes")
    assert (keys.triggers, keys.patterns) == (("wyrm",), ("/drag{1,2}on/i",))
    assert read_keys("/drag{1,2}on/i, wyrm", "loose").patterns == ("/drag{1,2}on/i",)
    assert read_keys(["AC/DC", "/(a+)+$/", "a, b"], "slashes").triggers == ("AC/DC", "a, b")
    assert read_keys(["/wyrms?/gi"], "slashes").triggers == ("wyrms", "wyrm")
    assert read_keys("/stats,/skills", "loose").triggers == ("/stats", "/skills")


def test_a_key_with_attributes_is_one_pattern() -> None:
    keys = read_keys("Karth River#[t=5l=5f=2S=2]", "loose", keep_spaces=True)
    assert (keys.triggers, keys.expanded) == (("Karth River",), ("Karth River#[t=5l=5f=2S=2]",))
    assert read_keys("(you).*(look|see)#[t=0]", "loose").patterns == ("(you).*(look|see)#[t=0]",)
    assert read_keys("one, two#[t=1]", "loose").triggers == ("one, two",)


def test_commas_inside_of_patterns_do_not_separate() -> None:
    assert split_keys("drag{1,2}on,(a, b|c),d", "loose") == ["drag{1,2}on", "(a, b|c)", "d"]
    assert split_keys("smile :), hat, (odd", "loose") == ["smile :)", " hat", " (odd"]


def test_literal_brackets_stay_literal() -> None:
    keys = ["dan heng (imbibitor lunae)", "Ammunition +1", "Dr. Who", "c++", "what?"]
    assert read_keys(keys, "slashes").triggers == tuple(keys)
    assert read_keys(",".join(keys), "loose").triggers == tuple(keys)


def test_blank_and_repeated_keys() -> None:
    assert read_keys(" a ,, ,A,b,", "loose").triggers == ("a", "b")
    assert read_keys(" a ,, b ,A,", "loose", keep_spaces=True).triggers == (" a ", " b ", "A")


@given(st.lists(st.text(st.characters(exclude_characters=",|{}[]#/\\.", exclude_categories=["Cs"])), max_size=6))
def test_plain_comma_lists_are_split_at_every_comma(keys: list[str]) -> None:
    assert split_keys(",".join(keys), "loose") == (keys or [""])


@given(st.text("ab|()?.*{},[]/\\#i", max_size=40))
def test_whatever_the_key_nothing_breaks_and_no_trigger_is_blank(key: str) -> None:
    for syntax in ("slashes", "loose"):
        keys = read_keys(key, syntax)  # type: ignore[arg-type]
        assert all(trigger.strip() for trigger in keys.triggers)
        assert len({trigger.casefold() for trigger in keys.triggers}) == len(keys.triggers)


@pytest.mark.parametrize("piece", ["/[a,", "(a|b),", "{1,2},", "#[", "/a\\", "(((", "a,"])
def test_hostile_lists_take_no_time(piece: str) -> None:
    began = time.perf_counter()
    for size in (2_000, 200_000):
        read_keys(piece * (size // len(piece)), "loose")
    assert time.perf_counter() - began < 3
