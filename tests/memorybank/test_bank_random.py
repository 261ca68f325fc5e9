"""A thousand random steps against a model that is a dictionary and a matrix product, with restarts in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from memorybank import MemoryBank
from memorybank.search.index import VectorIndex
from memorybank.search.live_index import LiveIndex

pytestmark = pytest.mark.both_engines


class Model:
    """What a bank is, without a database and without an index."""

    def __init__(self, embedder: Any) -> None:
        self.embedder = embedder
        self.rows: dict[str, dict[str, Any]] = {}
        self.next_ordinal = 1

    def add(self, id_: str, text: str) -> None:
        if id_ in self.rows:
            self.rows[id_]["text"] = text
        else:
            self.rows[id_] = {"ordinal": self.next_ordinal, "text": text, "state": "active", "pinned": False}
            self.next_ordinal += 1

    def ranking(self, query: str, limit: int, *, pinned_first: bool) -> list[tuple[str, float]]:
        active = {id_: row for id_, row in self.rows.items() if row["state"] == "active"}
        if not active:
            return []
        vectors = self.embedder.embed([row["text"] for row in active.values()]).astype(np.float64)
        similarities = np.round(vectors @ self.embedder.embed([query])[0].astype(np.float64), 6)
        rows = zip(active.items(), similarities.tolist(), strict=True)
        ordered = sorted(
            (pinned_first and not row["pinned"], -similarity, row["ordinal"], id_) for (id_, row), similarity in rows
        )
        return [(id_, pytest.approx(-minus, abs=2e-6)) for _, minus, _, id_ in ordered[:limit]]


def step(dice: random.Random, bank: MemoryBank, model: Model) -> None:
    words = ["gate", "wolf", "rain", "king", "tower", "river", "night", "song"]
    text = " ".join(dice.sample(words, dice.randint(1, 3))) + f" {dice.randint(0, 99)}"
    known = list(model.rows)
    some = dice.sample(known, min(len(known), dice.randint(1, 3)))
    action = dice.choices(["add", "edit", "delete", "forget", "restore", "pin", "unpin"], [6, 2, 2, 1, 1, 1, 1])[0]
    if action == "add" or not known:
        id_ = f"i{dice.randint(0, 150)}"
        bank.add(text, id=id_)
        model.add(id_, text)
    elif action == "edit":
        bank.edit_many([{"id": id_, "text": f"{text} {id_}"} for id_ in some])
        for id_ in some:
            model.rows[id_]["text"] = f"{text} {id_}"
    elif action == "delete":
        bank.delete(*some)
        for id_ in some:
            del model.rows[id_]
    else:
        getattr(bank, action)(*some)
        for id_ in some:
            changed = {"pinned": action == "pin"} if "pin" in action else {}
            changed |= {"forget": {"state": "forgotten"}, "restore": {"state": "active"}}.get(action, {})
            model.rows[id_].update(changed)


@pytest.mark.parametrize(("seed", "half_above", "steps"), [(1, [20_000, 30], 1000), (2, [30], 100)])
def test_the_same_nearest_at_every_step(
    open_bank: Callable[..., MemoryBank],
    random_embedder: Any,
    engine: str,
    seed: int,
    half_above: list[int],
    steps: int,
) -> None:
    dice, embedder = random.Random(seed), random_embedder(24)
    steps = min(steps, 300) if engine == "postgresql" else steps  # a step takes twice as long there
    model = Model(embedder)
    thresholds = cycle(half_above)

    def fresh() -> MemoryBank:
        bank = open_bank(embedder=embedder)
        above = next(thresholds)  # an index of single precision, then one that turns to half
        bank._live = LiveIndex(bank._store, "default", lambda width: VectorIndex(width, half_above=above))
        return bank

    bank, other = fresh(), fresh()
    for number in range(steps):
        step(dice, dice.choice([bank, other]), model)
        query = (
            dice.choice([row["text"] for row in model.rows.values()] or ["x"]) if dice.random() < 0.5 else f"q{number}"
        )
        pinned_first = dice.random() < 0.3
        limit = dice.choice([1, 3, 10])
        found = bank.search(query, limit=limit, pinned_first=pinned_first, ranking="semantic")
        expected = model.ranking(query, limit, pinned_first=pinned_first)
        assert [(one.memory.id, one.similarity) for one in found] == expected, number
        if number % 250 == 249:
            assert bank.check().ok
            assert other.check().ok
            listed = {one.id: (one.text, one.state, one.pinned) for one in bank.list()}
            assert listed == {id_: (row["text"], row["state"], row["pinned"]) for id_, row in model.rows.items()}
            bank.close()
            bank = fresh()
