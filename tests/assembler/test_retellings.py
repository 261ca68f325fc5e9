"""The same event told twice takes one slot of a context (SPEC.md section 9): newest telling, pinned before newest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from assembler import Action, Adventure, AssembledContext, Settings, assemble
from assembler.errors import SettingsError
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
from memorybank.memory import NewMemory, Recalled
from tests.support.banks import RankedBank
from tests.support.words import Words


class RetoldBank(RankedBank):
    """Recalls its memories in their order and says which are retold by which."""

    alike: Mapping[frozenset[str], float]

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        ranking: str = "hybrid",
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        retellings: bool = False,
    ) -> list[Recalled]:
        found = super().search(query, limit=limit, pinned_first=pinned_first)
        assert retellings
        key = {one.memory.id: (one.memory.pinned, one.memory.ordinal) for one in found}

        def retold_by(id: str) -> tuple[tuple[str, float], ...]:
            others = [(o, self.alike.get(frozenset((id, o)), 0.0)) for o in key if o != id and key[o] > key[id]]
            return tuple(sorted((one for one in others if one[1] >= 0.9), key=lambda one: -one[1]))

        return [replace(one, retold_by=retold_by(one.memory.id)) for one in found]


def build(
    sizes: dict[str, int], alike: dict[str, float], left: int, order: str = "", **more: object
) -> AssembledContext:
    """Memories with these costs, stored in this order and ranked in `order`; `alike` has keys like "ab"."""
    pinned = str(more.pop("pinned", ""))
    actions = more.pop("actions", {})
    assert isinstance(actions, dict)
    made = RankedBank.of(
        NewMemory(" ".join([id] * size), id, actions.get(id, ()), id in pinned) for id, size in sizes.items()
    )
    stored = {one.id: replace(one, ordinal=place) for place, one in enumerate(made.memories, 1)}
    bank = RetoldBank(tuple(stored[id] for id in order or sizes))
    object.__setattr__(bank, "alike", {frozenset(pair): cosine for pair, cosine in alike.items()})
    log = [Action("old", "output", "then"), Action("last", "output", "go")]
    return assemble(Adventure(log), bank, Settings(left + 3, Words(), **more))  # type: ignore[arg-type]


def verdicts(context: AssembledContext) -> dict[str, tuple[str, str]]:
    return {
        line.item: (line.verdict, line.reason)
        for line in context.report.lines
        if line.section == "memory_bank" and line.item != "header"
    }


IN = ("kept", "")


def test_the_newest_telling_takes_the_place_of_the_better_ranked_one():
    context = build({"a": 3, "b": 4, "c": 2}, {"ab": 0.97}, 100)
    assert verdicts(context) == {"a": ("dropped", "tells the same as b, which is in (cosine 0.97)"), "b": IN, "c": IN}
    assert context.recalled == ("b", "c")


def test_an_older_telling_that_ranks_behind_is_passed_over_too():
    context = build({"a": 3, "b": 4}, {"ab": 0.96}, 100, order="ba")
    assert verdicts(context) == {"b": IN, "a": ("dropped", "tells the same as b, which is in (cosine 0.96)")}


def test_below_the_threshold_both_are_in_and_the_threshold_is_a_setting():
    assert verdicts(build({"a": 3, "b": 4}, {"ab": 0.949}, 100)) == {"a": IN, "b": IN}
    assert verdicts(build({"a": 3, "b": 4}, {"ab": 0.97}, 100, near_duplicate=0.98)) == {"a": IN, "b": IN}
    assert verdicts(build({"a": 3, "b": 4}, {"ab": 0.91}, 100, near_duplicate=0.9))["a"][0] == "dropped"


def test_where_the_newest_does_not_fit_the_older_one_tells_it():
    context = build({"a": 3, "b": 40}, {"ab": 0.97}, 10)
    assert verdicts(context) == {"a": IN, "b": ("dropped", "tells the same as a, which is in (cosine 0.97)")}


def test_of_three_tellings_one_is_in():
    context = build({"a": 3, "b": 3, "c": 3}, {"ab": 0.97, "bc": 0.98, "ac": 0.96}, 100)
    assert [id for id, verdict in verdicts(context).items() if verdict == IN] == ["c"]
    too_long = build({"a": 3, "b": 3, "c": 300}, {"ab": 0.97, "bc": 0.98, "ac": 0.96}, 100)
    assert [id for id, verdict in verdicts(too_long).items() if verdict == IN] == ["a"]


def test_a_chain_is_not_one_event():
    context = build({"a": 3, "b": 3, "c": 3}, {"ab": 0.97, "bc": 0.97}, 100)
    assert [id for id, verdict in verdicts(context).items() if verdict == IN] == ["a", "c"]


def test_a_pinned_telling_stays_and_the_newer_one_goes():
    context = build({"a": 3, "b": 4}, {"ab": 0.97}, 100, pinned="a")
    assert verdicts(context) == {"a": IN, "b": ("dropped", "tells the same as a, which is in (cosine 0.97)")}


def test_what_history_tells_is_not_told_by_an_older_memory():
    context = build({"a": 3, "b": 4}, {"ab": 0.97}, 100, actions={"b": ("old",)})
    assert verdicts(context) == {
        "a": ("dropped", "tells the same as b, which history tells already (cosine 0.97)"),
        "b": ("dropped", "already in history"),
    }


@pytest.mark.parametrize("value", [0.5, 1.1, True, "high", float("nan")])
def test_a_threshold_out_of_range_is_refused(value):
    with pytest.raises(SettingsError, match="near_duplicate"):
        Settings(near_duplicate=value)


def test_with_a_real_bank_nothing_is_deleted_for_it():
    with MemoryBank.open(embedder=HashingEmbedder()) as bank:
        bank.add("Mara hid the silver key under the old chapel floor at night")
        bank.add("The wolf bit Jonas")
        bank.add("Mara hid the silver key under the old chapel floor at night!")
        found = bank.search("Where is the silver key?", retellings=True)
        assert {one.memory.id: [id for id, _ in one.retold_by] for one in found} == {"m1": ["m3"], "m2": [], "m3": []}
        assert bank.search("Where is the silver key?")[0].retold_by == ()
        story = Adventure([Action("a1", "do", "Where is the silver key?")])
        context = assemble(story, bank, Settings(2048))
        assert sorted(context.recalled) == ["m2", "m3"]
        assert len(assemble(story, bank, Settings(2048, near_duplicate=None)).recalled) == 3
        assert bank.count("active") == 3
