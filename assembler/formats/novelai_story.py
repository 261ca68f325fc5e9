"""NovelAI's scenarios and stories (container version 1); their lorebooks are in `novelai.py`.

A story's `context` holds Memory (inserted at position 0) and Author's Note (counted from the end). Its text is one
`start` action, or, where the file tells who wrote what, one action for each fragment: the prompt `start`, the AI's
`output`, the player's prose `story`. Newer stories keep their text in a packed `document`, which is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.action_log import Action, ActionKind, ActionLog
from assembler.adventure import Adventure
from assembler.errors import AdventureError
from assembler.formats.fields import Fields, items_of, joined, note_unused, start
from assembler.formats.format import Format
from assembler.formats.kept import imported
from assembler.formats.novelai import read_lorebook
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_KINDS: dict[str, ActionKind] = {"ai": "output", "user": "story", "edit": "story", "prompt": "start", "root": "start"}
_UNUSED = {
    "ephemeralContext": "ephemeral context is kept, not used",
    "placeholders": "placeholders have no form to fill in here",
}


def _load_scenario(source: Source, log: Log) -> Adventure:
    fields = Fields(source.value)
    note_unused(fields, _UNUSED | {"description": "the description is kept, never in the context"}, log)
    kept = fields.rest("title", "prompt", "context", "lorebook")
    return _adventure(fields, fields, start(fields.text("prompt")), imported("novelai-scenario", kept), log)


def _load_story(source: Source, log: Log) -> Adventure:
    metadata, content = (_object(source.value, name) for name in ("metadata", "content"))
    note_unused(Fields(content), _UNUSED, log)
    return _adventure(Fields(metadata), Fields(content), _actions(content), imported("novelai-story", metadata), log)


def _adventure(names: Fields, content: Fields, log: ActionLog, extra: dict[str, Any], report: Log) -> Adventure:
    cards = read_lorebook(_object(content.raw, "lorebook"), report)
    memory, note = _contexts(content.raw.get("context"))
    return Adventure(
        title=names.text("title"),
        plot_essentials=joined(*memory, *cards.essentials),
        authors_note=joined(*note),
        story_cards=cards.cards,
        actions=log,
        extra=extra,
    )


def _contexts(contexts: Any) -> tuple[list[str], list[str]]:
    """Memory and Author's Note: one is inserted at the very beginning, the other counted from the end."""
    memory: list[str] = []
    note: list[str] = []
    for _, context in items_of(contexts, "context"):
        if isinstance(context, Mapping):
            position = _object(context, "contextConfig").get("insertionPosition")
            (note if position else memory).append(Fields(context).text("text"))
    return memory, note


def _actions(content: Mapping[str, Any]) -> ActionLog:
    story = _object(content, "story")
    if "document" in content and not story:
        raise AdventureError("content.document: newer NovelAI stories are packed; export the story as plain text")
    actions: list[Action] = []
    for _, fragment in items_of(story.get("fragments"), "content.story.fragments"):
        text = Fields(fragment).text("data") if isinstance(fragment, Mapping) else ""
        if text.strip():
            kind = _KINDS.get(str(fragment.get("origin")), "story") if actions else "start"
            actions.append(Action(f"a{len(actions) + 1}", "story" if actions and kind == "start" else kind, text))
    return ActionLog(actions) if actions else start(Fields(story).text("text"))


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _has(source: Source, *names: str) -> bool:
    return source.kind == "json" and isinstance(source.value, Mapping) and all(name in source.value for name in names)


FORMATS = (
    Format(
        name="novelai-scenario",
        what="NovelAI scenario",
        recognises=lambda source: _has(source, "scenarioVersion"),
        load=_load_scenario,
    ),
    Format(
        name="novelai-story",
        what="NovelAI story (container version 1)",
        recognises=lambda source: _has(source, "storyContainerVersion"),
        load=_load_story,
    ),
)
