"""A world with its characters, as chat bots for role play keep them: `{"world": {…}, "characters": {id: {…}}}`.

The world's `system_prompt` is the AI Instructions, its `description` and the player's role are the Plot Essentials,
`intro_scene` starts the adventure. A character is a card that its `name` triggers at word starts (so that endings of
inflected languages match); its `prompt` is the entry, its one-line `description` a note of the author's.
"""

from __future__ import annotations

from collections.abc import Mapping

from assembler.adventure import Adventure
from assembler.formats.cards import Entry, read_cards
from assembler.formats.fields import Fields, items_of, joined, start
from assembler.formats.format import Format
from assembler.formats.kept import Dialect, imported
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_DIALECT = Dialect("world-characters", keys="name")
_TAKEN = ("name", "description", "intro_scene", "system_prompt", "user_name", "user_role")


def _recognises(source: Source) -> bool:
    value = source.value
    if source.kind != "json" or not isinstance(value, Mapping) or not isinstance(value.get("world"), Mapping):
        return False
    return isinstance(value.get("characters"), dict | list) and not value["world"].keys().isdisjoint(_TAKEN[:4])


def _load(source: Source, log: Log) -> Adventure:
    world = Fields(source.value["world"])
    items = items_of(source.value["characters"], "characters")
    player = ": ".join(filter(None, (world.text("user_name"), world.text("user_role"))))
    return Adventure(
        title=world.text("name"),
        ai_instructions=world.text("system_prompt"),
        plot_essentials=joined(world.text("description"), player),
        story_cards=read_cards(items, _DIALECT, _entry, log).cards,
        actions=start(world.text("intro_scene")),
        extra=imported(_DIALECT.format, world.rest(*_TAKEN)),
    )


def _entry(fields: Fields) -> Entry:
    name = fields.text("name")
    return Entry(
        keys=[name],
        text=fields.text("prompt"),
        kept=fields.rest("name", "prompt", "description"),
        title=name,
        type="character",
        notes=fields.text("description"),
    )


FORMATS = (
    Format(
        name=_DIALECT.format,
        what="world and characters of a role-play bot",
        recognises=_recognises,
        load=_load,
    ),
)
