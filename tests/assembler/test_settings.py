"""Settings are obeyed to the letter or refused with their range (SPEC.md section 7)."""

import dataclasses

import pytest

from assembler import Action, Adventure, AssemblerError, Settings, SettingsError, assemble
from memorybank import TokenizerError
from memorybank.tokenizer import open_tokenizer


def test_the_defaults_are_those_of_the_specification():
    assert dataclasses.asdict(Settings()) == {
        "context_size": 4096,
        "tokenizer": "o200k_base",
        "layout": "classic",
        "required_percent": 70,
        "story_cards_percent": 25,
        "memory_bank_percent": 25,
        "anchor_step": 512,
        "memory_candidates": None,
        "ranking": "hybrid",
        "recent_actions": 4,
        "near_duplicate": 0.95,
        "list_unmatched": False,
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().context_size = 5


@pytest.mark.parametrize(("name", "value"), [("ranking", "words"), ("ranking", None), ("recent_actions", -1)])
def test_how_memories_are_ranked_is_checked(name, value):
    with pytest.raises(SettingsError, match=name):
        Settings(**{name: value})


@pytest.mark.parametrize("size", [0, -5, "4096", 4096.5, 4096.0, None, True, [], float("nan"), 2**31, 10**30], ids=repr)
def test_a_context_size_that_is_none_is_refused_with_its_range(size):
    with pytest.raises(SettingsError, match=r"context_size.* 1 to 2147483647"):
        Settings(context_size=size)


@pytest.mark.parametrize("size", [1, 2, 4096, 10**9, 2**31 - 1])
def test_a_context_size_is_taken_as_it_is(size):
    assert Settings(context_size=size).context_size == size


RANGES = {
    "required_percent": (0, 100),
    "story_cards_percent": (0, 75),
    "memory_bank_percent": (0, 75),
    "anchor_step": (1, 2**31 - 1),
    "memory_candidates": (1, 10_000),
}


@pytest.mark.parametrize("name", RANGES)
def test_the_ends_of_a_range_are_inside_and_beyond_them_is_refused(name):
    least, most = RANGES[name]
    for value in (least, most):
        assert getattr(Settings(**{name: value}), name) == value
    for value in (least - 1, -(10**9), most + 1):
        with pytest.raises(SettingsError, match=name):
            Settings(**{name: value})


@pytest.mark.parametrize("value", ["5", 5.0, True, [5]], ids=repr)
@pytest.mark.parametrize("name", RANGES)
def test_a_wrong_type_is_refused_by_name(name, value):
    with pytest.raises(SettingsError, match=name):
        Settings(**{name: value})


@pytest.mark.parametrize("name", [name for name in RANGES if name != "memory_candidates"])
def test_none_is_no_number(name):
    with pytest.raises(SettingsError, match=name):
        Settings(**{name: None})


@pytest.mark.parametrize(("room", "asked"), [(0, 100), (1000, 100), (1010, 101), (50_000, 5000), (10**9, 10_000)])
def test_how_many_memories_the_bank_is_asked_for(room, asked):
    assert Settings().candidates(room) == asked
    assert Settings(memory_candidates=7).candidates(room) == 7


def test_shares_over_100_together_are_refused_with_both_numbers():
    assert Settings(story_cards_percent=60, memory_bank_percent=40).story_cards_percent == 60
    with pytest.raises(SettingsError, match=r"60.*41"):
        Settings(story_cards_percent=60, memory_bank_percent=41)


@pytest.mark.parametrize("layout", ["", "Classic", "cache-friendly", "fast", None, 5, ["classic"]], ids=repr)
def test_an_unknown_layout_is_refused_with_those_there_are(layout):
    with pytest.raises(SettingsError, match=r"layout.*classic, cache_friendly"):
        Settings(layout=layout)


@pytest.mark.parametrize("value", [0, 1, "yes", None], ids=repr)
def test_list_unmatched_is_true_or_false(value):
    with pytest.raises(SettingsError, match="list_unmatched"):
        Settings(list_unmatched=value)


@pytest.mark.parametrize("tokenizer", [None, 5, {}, b"o200k_base"], ids=repr)
def test_what_is_no_tokenizer_is_refused(tokenizer):
    with pytest.raises(SettingsError, match="tokenizer"):
        Settings(tokenizer=tokenizer)


@pytest.mark.parametrize("name", ["", "gpt-9", "O200K_BASE", "/nowhere/tokenizer.json"], ids=repr)
def test_an_unknown_tokenizer_is_an_error_when_it_is_opened(name):
    with pytest.raises(TokenizerError):
        Settings(tokenizer=name).open_tokenizer()


def test_a_tokenizer_can_be_an_object():
    tokenizer = open_tokenizer("cl100k_base")
    adventure = Adventure([Action("a1", "do", "go")])
    by_object = assemble(adventure, None, Settings(tokenizer=tokenizer))
    assert by_object.to_dict() == assemble(adventure, None, Settings(tokenizer="cl100k_base")).to_dict()


def test_one_tree_of_exceptions():
    assert issubclass(SettingsError, AssemblerError)
    assert issubclass(SettingsError, ValueError)
