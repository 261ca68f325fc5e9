"""The independent reading of a report finds what a packer would have to answer for, and nothing else."""

from dataclasses import replace

import pytest

from assembler import Action, Adventure, ContextTooSmallError, Settings, StoryCard, assemble
from assembler.report import Line, Report
from benchmarks.adventures import random_adventure
from benchmarks.assembly import StubBank
from benchmarks.fidelity_check import could_have_gone_in, exact_count, is_really_too_small, text_of
from memorybank import NewMemory
from memorybank.tokenizer import open_tokenizer

TOKENIZER = open_tokenizer("o200k_base")
STORY = Adventure(
    actions=[Action(f"a{number}", "story", f"The heron waits at gate {number}.") for number in range(1, 9)],  # type: ignore[arg-type]
    story_cards=(StoryCard(id="c1", triggers=("heron",), entry="The heron is a clockwork bird."),),
    memories=(
        NewMemory("Greta has wound up the bird.", id="m1", actions=("a1", "a2")),
        NewMemory("Greta waits at the last gate.", id="m2", actions=("a7",)),
    ),
)


def packed(size: int) -> Report:
    return assemble(STORY, StubBank.of(STORY.memories), Settings(context_size=size)).report


def without(report: Report, section: str, item: str) -> Report:
    """Return the report as if one item had been left out."""

    def changed(line: Line) -> Line:
        return replace(line, verdict="dropped", used=0) if (line.section, line.item) == (section, item) else line

    return replace(report, lines=tuple(map(changed, report.lines)))


@pytest.mark.parametrize(("section", "item"), [("story_cards", "c1"), ("history", "a7"), ("memory_bank", "m1")])
def test_what_was_left_out_though_it_fits_is_found(section: str, item: str) -> None:
    report = packed(75)
    line = next(line for line in report.lines if (line.section, line.item) == (section, item))
    assert line.kept
    assert item in could_have_gone_in(without(report, section, item), line.used, STORY, TOKENIZER)
    assert item not in could_have_gone_in(without(report, section, item), line.used - 1, STORY, TOKENIZER)


def test_older_history_has_no_claim_while_a_newer_action_is_out() -> None:
    report = packed(75)
    out = next(line.item for line in report.lines if line.section == "history" and not line.kept)
    assert could_have_gone_in(report, 100, STORY, TOKENIZER) == [out]
    assert out not in could_have_gone_in(without(report, "history", "a7"), 100, STORY, TOKENIZER)


def test_a_memory_of_what_stands_in_the_context_may_be_left_out() -> None:
    report = packed(1000)
    assert not next(line for line in report.lines if line.item == "m2").kept
    assert could_have_gone_in(report, 500, STORY, TOKENIZER) == []


def test_the_header_is_paid_for_with_the_first_item() -> None:
    report = without(without(packed(75), "story_cards", "c1"), "story_cards", "header")
    cost = next(line.offered for line in report.lines if line.item == "c1") + TOKENIZER.count("World Lore:\n")
    assert "c1" in could_have_gone_in(report, cost, STORY, TOKENIZER)
    assert "c1" not in could_have_gone_in(report, cost - 1, STORY, TOKENIZER)


def test_an_item_is_counted_at_its_place() -> None:
    # Alone the slash costs a token more than behind the line end of `Recent Story:`.
    story = Adventure(
        actions=[Action("a1", "story", "/roll the dice"), Action("a2", "story", "Rain.")]  # type: ignore[arg-type]
    )
    least = exact_count(TOKENIZER, "Recent Story:\n/roll the dice\nRain.")
    report = without(assemble(story, None, Settings(context_size=100)).report, "history", "a1")
    without_it = exact_count(TOKENIZER, "Recent Story:\nRain.")
    assert least - without_it < TOKENIZER.count("/roll the dice\n")
    assert could_have_gone_in(report, least - without_it, story, TOKENIZER) == ["a1"]
    assert could_have_gone_in(report, least - without_it - 1, story, TOKENIZER) == []


def test_a_text_is_made_again_from_its_report() -> None:
    made = 0
    for number in range(200):
        one = random_adventure(f"text/{number}")
        try:
            context = assemble(one.adventure, StubBank.of(one.ranking), one.settings_for("o200k_base"))
        except ContextTooSmallError:
            continue
        assert text_of(context.report, one.adventure) == context.text
        made += 1
    assert made > 100


def test_too_small_is_judged_by_one_count() -> None:
    least = TOKENIZER.count("Recent Story:\nThe heron waits at gate 8.")
    assert is_really_too_small(STORY, least - 1, TOKENIZER)
    assert not is_really_too_small(STORY, least, TOKENIZER)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "chars/4"])
def test_the_exact_count_is_that_of_the_text_encoded_whole(name: str) -> None:
    tokenizer = open_tokenizer(name)
    for number in range(20):
        text = "\n".join(action.text for action in random_adventure(f"count/{number}").adventure.actions)
        assert exact_count(tokenizer, text) == tokenizer.count(text)


def test_a_seed_gives_the_same_adventure() -> None:
    assert random_adventure("x") == random_adventure("x")
    assert random_adventure("x") != random_adventure("y")
