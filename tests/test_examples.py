"""The examples, with the real model: what the README shows, and the matching that each language needs."""

from pathlib import Path

import pytest

from assembler import Adventure, Settings, assemble, bank_of, load
from assembler.table import render


def matched(adventure: Adventure) -> dict[str, str]:
    """Which cards match in the last action, and by which trigger."""
    last = adventure.last_action
    assert last is not None
    context = assemble(adventure, None, Settings(context_size=8192))
    details = {line.item: line.details for line in context.report.lines if line.section == "story_cards"}
    return {id: d["trigger"] for id, d in details.items() if d and d["action"] == last.id}


def test_the_readme_shows_the_report_of_the_first_command(examples: Path) -> None:
    adventure = load(examples / "the_cormorant_light.json")
    context = assemble(adventure, bank_of(adventure), Settings(context_size=2048))
    readme = (examples.parent / "README.md").read_text(encoding="utf-8")
    assert render(context.report) in readme


def test_an_event_of_long_ago_comes_back_by_meaning(examples: Path) -> None:
    adventure = load(examples / "the_cormorant_light.json")
    context = assemble(adventure, bank_of(adventure), Settings(context_size=2048))
    recalled = {line.item: line for line in context.report.lines if line.section == "memory_bank"}
    assert recalled["m2"].kept
    assert recalled["m2"].details["rank"] == 2, "right behind the pinned one"
    assert "seal" in context.text.partition("Memories:")[2].partition("Recent Story:")[0]


def test_italian_triggers(examples: Path) -> None:
    found = matched(load(examples / "ombra_di_pietrachiara.json"))
    assert sorted(found) == ["c10", "c2", "c3", "c4", "c7", "c8", "c9"]


def test_turkish_triggers(examples: Path) -> None:
    found = matched(load(examples / "ilkyarin_isigi.json"))
    assert sorted(found) == ["c1", "c10", "c2", "c3", "c7"]


@pytest.mark.parametrize("name", ["the_cormorant_light", "ombra_di_pietrachiara", "ilkyarin_isigi"])
def test_an_example_is_as_large_as_its_page_says(examples: Path, name: str) -> None:
    adventure = load(examples / f"{name}.json")
    size = f"{len(adventure.actions)} actions, {len(adventure.story_cards)} cards, {len(adventure.memories)} memories"
    row = next(row for row in (examples / "README.md").read_text(encoding="utf-8").splitlines() if name in row)
    assert size in row
