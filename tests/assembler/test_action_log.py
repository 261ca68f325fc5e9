"""The log: immutable, grows at its end in constant time, knows where an action stands (SPEC.md section 1)."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from assembler import Action, ActionLog, Adventure, AdventureError


def action(number: int, text: str = "x") -> Action:
    return Action(f"a{number}", "output", text)


def log(count: int) -> ActionLog:
    return ActionLog(action(number) for number in range(count))


@pytest.mark.parametrize("kind", ["start", "do", "say", "story", "output", "continue"])
def test_kinds(kind):
    assert Action("a1", kind).kind == kind


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (("a1", "dance"), "a1.*dance.*start, do, say, story, output, continue"),
        (("a1", "DO"), "DO"),
        (("a1", None), "None"),
        (("", "do"), "id"),
        ((5, "do"), "id.*5"),
        ((None, "do"), "id"),
        (("a1", "do", 5), "a1.*text.*int"),
        (("a1", "do", None), "a1.*text.*NoneType"),
    ],
)
def test_what_is_no_action_is_refused_by_name(fields, says):
    with pytest.raises(AdventureError, match=says):
        Action(*fields)


@pytest.mark.parametrize(
    ("text", "has"), [("", False), (" \n\t\u3000", False), ("\r\n", False), ("x", True), ("\0", True), ("\ud83d", True)]
)
def test_has_text(text, has):
    assert Action("a1", "do", text).has_text is has


@pytest.mark.parametrize(
    ("texts", "last"),
    [
        (["a", "b"], "a1"),
        (["a", "b", ""], "a1"),
        (["a", "", " ", "\n"], "a0"),
        (["", ""], None),
        ([], None),
    ],
)
def test_the_last_action_is_the_newest_with_text(texts, last):
    adventure = Adventure([action(number, text) for number, text in enumerate(texts)])
    assert (adventure.last_action.id if adventure.last_action else None) == last


def test_newest_first_passes_over_what_has_no_text():
    actions = ActionLog([action(0), action(1, ""), action(2), action(3, " "), action(4)])
    assert [found.id for found in actions.newest_first()] == ["a4", "a2", "a0"]


def test_it_is_a_sequence():
    actions = log(5)
    assert isinstance(actions, Sequence)
    assert len(actions) == 5
    assert actions[0].id == "a0"
    assert actions[-1].id == "a4"
    assert [a.id for a in actions[1:3]] == ["a1", "a2"]
    assert [a.id for a in actions[::-2]] == ["a4", "a2", "a0"]
    assert [a.id for a in actions] == [f"a{n}" for n in range(5)]
    assert action(3) in actions
    assert list(reversed(actions)) == list(actions)[::-1]
    for outside in (5, -6):
        with pytest.raises(IndexError):
            actions[outside]


def test_appending_makes_a_new_log():
    short = log(2)
    longer = short.append(action(2))
    assert [len(short), len(longer)] == [2, 3]
    assert [a.id for a in short] == ["a0", "a1"]
    assert [short.position("a2"), longer.position("a2")] == [None, 2]
    with pytest.raises(IndexError):
        short[2]
    assert [a.id for a in short.newest_first()] == ["a1", "a0"]


def test_branches_do_not_see_each_other():
    trunk = log(3)
    left = trunk.append(Action("left", "do", "x")).append(Action("same", "do", "l"))
    right = trunk.append(Action("right", "do", "x")).append(Action("same", "do", "r"))
    assert [a.id for a in left] == ["a0", "a1", "a2", "left", "same"]
    assert [a.id for a in right] == ["a0", "a1", "a2", "right", "same"]
    assert [left.position("right"), right.position("left")] == [None, None]
    assert [left[4].text, right[4].text] == ["l", "r"]
    assert len(trunk) == 3
    assert trunk.append(action(3)).position("left") is None


def test_an_undone_action_can_be_made_again():
    before = log(2)
    undone = before.append(Action("a2", "do", "old"))
    again = before.append(Action("a2", "do", "new"))
    assert [undone[2].text, again[2].text] == ["old", "new"]


def test_equal_by_their_actions():
    assert log(3) == log(2).append(action(2))
    assert log(3) != log(2)
    assert log(2) != list(log(2))
    with pytest.raises(TypeError):
        hash(log(1))


def test_duplicate_ids_are_refused_by_place():
    with pytest.raises(AdventureError, match=r"actions\[2\]\.id: 'a0'.*actions\[0\]"):
        ActionLog([action(0), action(1), action(0)])
    with pytest.raises(AdventureError, match=r"'a1'.*already"):
        log(3).append(action(1))
    grown = log(3)
    with pytest.raises(AdventureError):
        grown.append(action(0))
    assert len(grown) == 3  # a refused call has changed nothing
    assert len(grown.append(action(3))) == 4


def test_identical_texts_are_told_apart_by_id():
    actions = ActionLog(Action(f"a{n}", "output", "You wait.") for n in range(50))
    assert [actions.position(f"a{n}") for n in range(50)] == list(range(50))


def test_an_adventure_grows_with_its_log():
    adventure = Adventure([action(0)], title="T")
    grown = adventure.with_actions([action(1), action(2)])
    assert [len(adventure.actions), len(grown.actions)] == [1, 3]
    assert grown.title == "T"


def test_appending_takes_constant_time():
    def seconds(length: int) -> float:
        actions = log(length)
        began = time.process_time()
        for number in range(1000):
            actions = actions.append(action(length + number))
        return time.process_time() - began

    assert seconds(50_000) < 20 * seconds(100) + 0.05


def test_branches_made_in_threads():
    trunk = log(1000)

    def branch(name: int) -> list[str]:
        grown = trunk
        for number in range(50):
            grown = grown.append(Action(f"b{name}-{number}", "do", "x"))
        return [a.id for a in grown]

    with ThreadPoolExecutor(8) as pool:
        grown = list(pool.map(branch, range(16)))
    for name, ids in enumerate(grown):
        assert ids == [f"a{n}" for n in range(1000)] + [f"b{name}-{number}" for number in range(50)]
    assert len(trunk) == 1000
