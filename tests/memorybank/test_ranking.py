"""The order of memories, by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from memorybank.errors import InvalidInputError
from memorybank.search.ranking import FEW, LEXICAL, POOL, Candidates, checked_ranking, fill
from memorybank.search.ranking import rank as rank_columns


class Candidate(NamedTuple):
    ordinal: int
    similarity: float
    pinned: bool = False
    lexical: float = 0.0


def ranked_by(given: Sequence[Candidate], **options: Any) -> list:
    columns = [np.array([getattr(one, name) for one in given]) for name in ("ordinal", "similarity", "lexical")]
    return rank_columns(Candidates(*columns, np.array([one.pinned for one in given], np.bool_)), **options)


rank = partial(ranked_by, ranking="semantic", size=5)
hybrid = partial(ranked_by, ranking="hybrid", size=FEW)  # the lexical part has half of its share in a bank of so many


def ordinals(found: list) -> list[int]:
    return [one.ordinal for one in found]


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


@pytest.mark.parametrize("name", ["hybrids", "", "Semantic", None, 3])
def test_an_unknown_mode_is_refused_with_the_list(name: object) -> None:
    with pytest.raises(InvalidInputError, match="one of semantic, hybrid"):
        checked_ranking(name)
    with pytest.raises(InvalidInputError):
        rank([], ranking=name)


def test_hybrid_adds_both_arms_each_on_a_scale_from_0_to_1() -> None:
    given = [Candidate(1, 0.6), Candidate(2, 0.2, lexical=8.0), Candidate(3, 0.4, lexical=4.0)]
    found = {one.ordinal: one.parts for one in hybrid(given)}
    share = LEXICAL / 2
    assert found == {
        1: {"semantic": pytest.approx(1 - share), "lexical": 0.0},
        2: {"semantic": 0.0, "lexical": pytest.approx(share)},
        3: {"semantic": pytest.approx((1 - share) / 2), "lexical": pytest.approx(share / 2)},
    }
    assert ordinals(hybrid(given)) == [1, 3, 2]
    assert ordinals(ranked_by(given, ranking="hybrid", size=10**6)) == [2, 3, 1], "in a large bank words say more"


def test_what_says_just_that_comes_first_whatever_its_neighbours_say() -> None:
    given = [Candidate(1, 0.99, lexical=9.0), Candidate(2, 1.0, lexical=1.0), Candidate(3, 0.1)]
    assert ordinals(ranked_by(given, ranking="hybrid", size=10**6)) == [2, 1, 3]


def test_without_a_shared_word_hybrid_is_the_order_of_meaning() -> None:
    given = [Candidate(5, 0.5), Candidate(2, 0.9), Candidate(9, 0.5), Candidate(7, -0.2)]
    assert ordinals(hybrid(given)) == ordinals(rank(given)) == [2, 5, 9, 7]
    assert [one.score for one in hybrid([Candidate(1, 0.3)])] == [pytest.approx(1 - LEXICAL / 2)]
    assert hybrid([]) == []


def test_the_scale_of_hybrid_ends_where_the_pool_does() -> None:
    """So that a bank of any size has one scale, and more results change no score."""
    many = [Candidate(place, 0.9 - place / 1000) for place in range(2 * POOL)]
    few = hybrid(many[:POOL])
    assert {one.ordinal: one.score for one in few}.items() <= {one.ordinal: one.score for one in hybrid(many)}.items()


def test_min_similarity_does_not_move_the_scale() -> None:
    given = [Candidate(1, 0.6), Candidate(2, 0.2, lexical=8.0), Candidate(3, 0.4, lexical=4.0)]
    assert hybrid(given, min_similarity=0.3) == [one for one in hybrid(given) if one.ordinal != 2]


def test_a_limit_keeps_the_best() -> None:
    given = [Candidate(place, 0.5 + place / 1000, lexical=place % 7) for place in range(50)]
    assert hybrid(given, limit=3) == hybrid(given)[:3]
    assert hybrid(given, limit=90) == hybrid(given)


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
