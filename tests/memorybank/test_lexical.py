"""BM25 with neighbours against a plain implementation of the formula, through any order of changes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from memorybank import MemoryBank
from memorybank.search import lexical
from memorybank.search.lexical import AROUND, K1, LENGTH, LexicalIndex
from memorybank.search.postings import Place
from memorybank.terms import packed, terms

Opener = Callable[..., MemoryBank]
Item = tuple[int, str, Place]

WORDS = [f"{letters}{number}" for number in range(40) for letters in ("xa", "yb", "zc")]
COMMON_FIRST = [1 / (place + 1) for place in range(len(WORDS))]


def by_the_formula(items: Iterable[Item], wanted: Mapping[int, float]) -> dict[int, float]:
    lines: dict[int, list[Any]] = {}
    for ordinal, text, place in sorted(items, key=lambda item: (item[2], item[0])):
        lines.setdefault(place[0], []).append((ordinal, terms(text)))
    where = [(ordinal, line, place) for line in lines for place, (ordinal, _) in enumerate(lines[line])]

    words = sum(counts.total() for told in lines.values() for _, counts in told)
    less = min(1.0, lexical.SPREAD_LENGTH / max(1.0, words / max(1, len(where))))

    def around(count: Callable[[Any], float], line: int, place: int) -> float:
        told = lines[line]
        near = ((distance, share) for distance, share in AROUND.items() if 0 <= place - distance < len(told))
        return sum((share * less if distance else share) * count(told[place - distance][1]) for distance, share in near)

    lengths = [around(lambda counts: counts.total(), line, place) for _, line, place in where]
    mean = max(1.0, sum(lengths) / max(1, len(lengths)))
    scores = dict.fromkeys((ordinal for ordinal, _, _ in where), 0.0)
    for one, weight in wanted.items():
        times = [around(lambda counts, one=one: counts[one], line, place) for _, line, place in where]
        having = sum(count > 0 for count in times)
        worth = weight * math.log1p((len(where) - having + 0.5) / (having + 0.5))
        for (ordinal, _, _), count, length in zip(where, times, lengths, strict=True):
            scores[ordinal] += worth * count * (K1 + 1) / (count + K1 * (1 - LENGTH + LENGTH * length / mean))
    return scores


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_changes_gives_the_scores_of_the_formula(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(lexical, "_MERGE_ABOVE", dice.choice([10, 200]))
    monkeypatch.setattr(lexical, "_DENSE_SHARE", dice.choice([0.0, 0.1, 1.0]))
    monkeypatch.setattr(lexical, "SPREAD_LENGTH", dice.choice([2.0, 30.0]))
    monkeypatch.setattr(lexical, "_CELLS", dice.choice([1, 2**18]))
    index, items = LexicalIndex(), dict[int, Item]()
    for _ in range(dice.randint(1, 25)):
        ordinals = dice.sample(range(120), dice.randint(0, 20))
        texts = [" ".join(dice.choices(WORDS, COMMON_FIRST, k=dice.randint(0, 12))) for _ in ordinals]
        places = [(dice.randint(0, 1), dice.randrange(60)) for _ in ordinals]
        index.add(ordinals, list(map(packed, texts)), places)
        items |= {item[0]: item for item in zip(ordinals, texts, places, strict=True)}
        gone = dice.sample(sorted(items), min(len(items), dice.randint(0, 6)))
        index.remove([*gone, 999])
        items = {ordinal: item for ordinal, item in items.items() if ordinal not in gone}
        if dice.random() < 0.4:
            wanted = {one: dice.random() for one in terms(" ".join(dice.choices(WORDS, k=8)))}
            scores = index.scores(wanted)
            assert len(index) == len(items)
            found = dict(zip(scores.ordinals.tolist(), scores.values.tolist(), strict=True))
            assert found == pytest.approx(by_the_formula(items.values(), wanted))
            assert scores.of([5, 999, 7]).tolist() == [found.get(5, 0.0), 0.0, found.get(7, 0.0)]
            best = sorted((one for one in found if found[one] > 0), key=lambda one: (-found[one], one))
            assert scores.best(4) == best[:4]


def test_an_empty_index_and_an_empty_query_have_no_scores() -> None:
    index = LexicalIndex()
    assert index.scores({1: 1.0}).ordinals.tolist() == []
    index.add([4], [packed("key")], [(0, 4)])
    assert index.scores({}).of([4]).tolist() == [0.0]
    index.remove([4])
    assert index.scores({1: 1.0}).best(3) == []


def test_neighbours_count_and_lines_do_not_reach_into_each_other() -> None:
    index = LexicalIndex()
    texts = ["key", "rain", "wind", "snow"]
    index.add([1, 2, 3, 4], list(map(packed, texts)), [(0, 1), (1, 0), (0, 2), (0, 0)])
    itself, other_line, behind, before = index.scores(dict.fromkeys(terms("key"), 1.0)).of([1, 2, 3, 4])
    assert other_line == 0.0
    assert itself > behind > before > 0.0, "what stands behind a word has more of it than what stands before it"


@pytest.mark.both_engines
def test_a_bank_that_has_followed_every_change_answers_like_one_that_looks_for_the_first_time(
    open_bank: Opener,
) -> None:
    """Two processes must agree, whatever each has seen on the way."""
    dice = random.Random(7)
    bank = open_bank()
    for step in range(60):
        text = " ".join(dice.choices(WORDS, COMMON_FIRST, k=10))
        change = dice.random()
        ids = [one.id for one in bank.list()]
        if change < 0.6 or len(ids) < 4:
            bank.add(text)
        elif change < 0.7:
            bank.edit(dice.choice(ids), text=text)
        elif change < 0.8:
            bank.delete(dice.choice(ids))
        elif change < 0.9:
            bank.forget(dice.choice(ids))
        else:
            bank.restore(dice.choice(ids))
        query, recent = " ".join(dice.choices(WORDS, k=4)), [" ".join(dice.choices(WORDS, k=4))]
        found = bank.search(query, recent=recent, limit=50, explain=True)
        assert found == open_bank().search(query, recent=recent, limit=50, explain=True), step


def test_words_find_what_meaning_does_not(open_bank: Opener, random_embedder: Any) -> None:
    bank = open_bank(embedder=random_embedder(16))
    bank.add_many([f"text {WORDS[place]}{WORDS[place + 1]} of nothing" for place in range(100)])
    bank.add("Mara hid the silver key under the chapel.", id="key")
    bank.add_many([f"more {WORDS[place]}{WORDS[place + 2]} of nothing" for place in range(100)])
    query = "Where did Mara hide the silver key?"
    assert "key" in {one.memory.id for one in bank.search(query, limit=3)}
    assert "key" not in {one.memory.id for one in bank.search(query, limit=3, ranking="semantic")}


def test_rows_of_an_older_version_are_read_by_their_texts(open_bank: Opener) -> None:
    bank = open_bank()
    bank.add_many(["Mara hid the silver key.", "Rain fell on the roof."])
    before = bank.search("silver key", explain=True)
    with bank._store.write_tables() as (_, connection):
        connection.exec_driver_sql("UPDATE memories SET terms = NULL WHERE id = 'm1'")
    assert open_bank().search("silver key", explain=True) == before


@pytest.mark.parametrize(
    "damage", [b"", b"\x02", b"\x01abc", packed("another text")], ids=["none", "old", "cut", "other"]
)
def test_check_finds_words_that_are_not_those_of_the_text(open_bank: Opener, damage: bytes) -> None:
    bank = open_bank()
    bank.add_many(["Mara hid the silver key.", "Rain fell on the roof."])
    before = bank.search("silver key", explain=True)
    with bank._store.write_tables() as (_, connection):
        connection.exec_driver_sql("UPDATE memories SET terms = ? WHERE id = 'm1'", (damage,))
    assert bank.check().problems == ("memory 'm1': its stored words are not those of its text",)
    if damage != packed("another text"):
        assert open_bank().search("silver key", explain=True) == before, "made anew from the text"


def test_what_is_deleted_gives_its_memory_back_without_anything_new() -> None:
    index = LexicalIndex()
    index.add(range(400), [packed(f"key {number} of {WORDS[number % 120]}") for number in range(400)], [(0, 0)] * 400)
    index.settle()
    before = index.nbytes
    index.remove(range(390))
    index.settle()
    assert index.nbytes < before / 10
    wanted = dict.fromkeys(terms("key"), 1.0)
    left = [(number, f"key {number} of {WORDS[number % 120]}", (0, 0)) for number in range(390, 400)]
    found = index.scores(wanted)
    assert dict(zip(found.ordinals.tolist(), found.values.tolist(), strict=True)) == pytest.approx(
        by_the_formula(left, wanted)
    )
