"""The order of memories, by hand."""

from __future__ import annotations

import random

import pytest

from memorybank.errors import InvalidInputError
from memorybank.search.ranking import Candidate, checked_ranking, fill, rank


def ordinals(found: list) -> list[int]:
    return [one.candidate.ordinal for one in found]


def test_best_first_and_equal_ones_by_ordinal() -> None:
    given = [Candidate(5, 0.5), Candidate(2, 0.9), Candidate(9, 0.5), Candidate(1, 0.5), Candidate(7, -0.2)]
    for seed in range(20):
        random.Random(seed).shuffle(given)
        assert ordinals(rank(given)) == [2, 1, 5, 9, 7]


def test_the_score_is_the_sum_of_its_parts() -> None:
    [one] = rank([Candidate(1, 0.25)])
    assert one.score == sum(one.parts.values()) == 0.25
    assert one.parts == {"semantic": 0.25}


def test_min_similarity_keeps_what_is_just_as_similar() -> None:
    given = [Candidate(1, 0.3), Candidate(2, 0.299999), Candidate(3, 0.31)]
    assert ordinals(rank(given, min_similarity=0.3)) == [3, 1]
    assert ordinals(rank(given, min_similarity=-1.0)) == [3, 1, 2]


def test_pinned_ones_do_not_jump_unless_asked() -> None:
    given = [Candidate(1, 0.9), Candidate(2, 0.1, pinned=True), Candidate(3, 0.2, pinned=True)]
    assert ordinals(rank(given)) == [1, 3, 2]
    assert ordinals(rank(given, pinned_first=True)) == [3, 2, 1]
    assert ordinals(rank(given, pinned_first=True, min_similarity=0.95)) == [3, 2]
    assert ordinals(rank(given, min_similarity=0.15)) == [1, 3]


@pytest.mark.parametrize("name", ["hybrid", "", "Semantic", None, 3])
def test_an_unknown_mode_is_refused_with_the_list(name: object) -> None:
    with pytest.raises(InvalidInputError, match="one of semantic"):
        checked_ranking(name)
    with pytest.raises(InvalidInputError):
        rank([], ranking=name)  # type: ignore[arg-type]


def test_fill_passes_over_what_does_not_fit() -> None:
    assert fill([90, 60, 8, 2], 100, 10) == [0, 2, 3]
    assert fill([5000, 10, 20], 200, 10) == [1, 2]
    assert fill([1, 1, 1], 10, 2) == [0, 1]
    assert fill([1], 0, 5) == []
    assert fill([], 5, 5) == []


def test_fill_asks_for_no_cost_that_it_does_not_need() -> None:
    asked = []

    def costs():
        for cost in [3, 7, 1]:
            asked.append(cost)
            yield cost

    assert fill(costs(), 10, 5) == [0, 1]
    assert asked == [3, 7]
