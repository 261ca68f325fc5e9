"""AI Dungeon scenarios as exported from an account: one or a list, each with options that are scenarios themselves.

`prompt` starts the adventure, `memory` is the Plot Essentials, `authorsNote` the Author's Note; `description` is for
the players who browse and stays out of the context. The cards are as in `aidungeon_cards.py`.

An adventure is one scenario. Of several, the one with the most story cards is taken, the first among equals; the
others are listed as skipped, with the number by which they can be asked for (`select`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assembler.adventure import Adventure
from assembler.errors import AdventureError
from assembler.formats.aidungeon_cards import read_story_cards
from assembler.formats.fields import Fields, first_object, note_unused, start
from assembler.formats.format import Format
from assembler.formats.kept import imported
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_NAME = "aidungeon-scenario"
_CARDS = ("storyCards", "worldInfo")
_TAKEN = ("prompt", "memory", "plotEssentials", "authorsNote", "aiInstructions", "storySummary", "title", "user")


def _recognises(source: Source) -> bool:
    if source.kind != "json":
        return False
    scenario = source.value if isinstance(source.value, Mapping) else first_object(source.value)
    marks = {"authorsNote", "worldInfo", "storyCards", "options", "plotEssentials"} & scenario.keys()
    return bool(marks) and ("prompt" in scenario or "memory" in scenario or len(marks) > 1)


def _load(source: Source, log: Log) -> Adventure:
    scenarios = list(_flat(source.value))
    chosen = _choose(scenarios, source.select)
    for number, scenario in enumerate(scenarios):
        if number != chosen:
            count = len(_cards(scenario))
            reason = f"another scenario of this file, with {count} cards; ask for it with select={number + 1}"
            log.skip(f"scenario {number + 1} {_title(scenario)!r}", reason)
    return _adventure(scenarios[chosen], log)


def _adventure(scenario: Mapping[str, Any], log: Log) -> Adventure:
    fields = Fields(scenario)
    kept = fields.rest(*_TAKEN, *_CARDS, "options")
    note_unused(fields, {"description": "the description is for players who browse: kept, never in the context"}, log)
    return Adventure(
        title=fields.text("title"),
        ai_instructions=fields.text("aiInstructions"),
        plot_essentials=fields.text("plotEssentials", "memory"),
        story_summary=fields.text("storySummary"),
        authors_note=fields.text("authorsNote"),
        story_cards=read_story_cards(_cards(scenario), "cards", log).cards,
        actions=start(fields.text("prompt")),
        extra=imported(_NAME, kept),
    )


def _flat(value: Any) -> Iterator[Mapping[str, Any]]:
    """The scenarios and their options, each before its own options, in the order of the file."""
    waiting = [value] if isinstance(value, Mapping) else list(reversed(value))
    while waiting:
        scenario = waiting.pop()
        if isinstance(scenario, Mapping):
            yield scenario
            options = scenario.get("options")
            waiting += reversed(options) if isinstance(options, list) else []


def _choose(scenarios: list[Mapping[str, Any]], select: str | None) -> int:
    if select is None:
        return max(range(len(scenarios)), key=lambda number: (len(_cards(scenarios[number])), -number))
    for number, scenario in enumerate(scenarios):
        if select in (str(number + 1), _title(scenario)):
            return number
    raise AdventureError(f"select: there is no scenario {select!r}; use a number from 1 to {len(scenarios)} or a title")


def _title(scenario: Mapping[str, Any]) -> str:
    return str(scenario.get("title") or "")


def _cards(scenario: Mapping[str, Any]) -> list[Any]:
    return [card for name in _CARDS if isinstance(cards := scenario.get(name), list) for card in cards]


FORMATS = (
    Format(
        name=_NAME,
        what="AI Dungeon scenarios, as an account exports them",
        recognises=_recognises,
        load=_load,
        many=True,
    ),
)
