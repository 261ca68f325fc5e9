"""SillyTavern chats: JSON lines, a header with `user_name` and `character_name`, then one message on each line.

The character's first message, before the user said anything, is the `start` action; the user's are `say`, which the
context shows behind `> `, so that turns stay apart without names; all others are `output`. Messages that are hidden
from the model over there (`is_system`) are skipped. A note in the chat's metadata is the Author's Note. Names, dates
and other swipes are kept for the export.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from assembler.action_log import Action, ActionKind, ActionLog
from assembler.adventure import Adventure
from assembler.formats.fields import EntryError, Fields
from assembler.formats.format import Format
from assembler.formats.kept import imported, kept_of
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_NAME = "sillytavern-chat"


def _recognises(source: Source) -> bool:
    if source.kind != "lines":
        return False
    marks = [value.keys() for _, value in source.value[:2] if isinstance(value, Mapping)]
    return any("mes" in names or {"user_name", "character_name"} <= names for names in marks)


def _load(source: Source, log: Log) -> Adventure:
    lines = source.value
    header: Mapping[str, Any] = {}
    if isinstance(lines[0][1], Mapping) and "mes" not in lines[0][1]:
        header, lines = lines[0][1], lines[1:]
    actions: list[Action] = []
    for number, value in lines:
        try:
            actions.append(_action(value, len(actions)))
        except EntryError as error:
            log.skip(f"line {number}", str(error))
    return Adventure(
        title=Fields(header).text("character_name"),
        authors_note=_note(header),
        actions=ActionLog(actions),
        extra=imported(_NAME, header),
    )


def _action(value: Any, number: int) -> Action:
    if not isinstance(value, Mapping):
        raise EntryError(value if isinstance(value, str) else "is no object")
    fields = Fields(value)
    text = fields.text("mes")
    if fields.flag("is_system", default=False):
        raise EntryError("is hidden from the model")
    if not text.strip():
        raise EntryError("has no text")
    kind: ActionKind = "say" if fields.flag("is_user", default=False) else "output" if number else "start"
    return Action(f"a{number + 1}", kind, text, extra=imported(_NAME, fields.rest("mes", "is_user")))


def _note(header: Mapping[str, Any]) -> str:
    metadata = header.get("chat_metadata")
    return Fields(metadata).text("note_prompt") if isinstance(metadata, Mapping) else ""


def _save(adventure: Adventure) -> bytes:
    header = {"user_name": "You", "character_name": adventure.title or "Narrator"} | kept_of(adventure, _NAME)
    metadata = header.get("chat_metadata")
    if adventure.authors_note != _note(header):
        metadata = metadata if isinstance(metadata, Mapping) else {}
        header["chat_metadata"] = {**metadata, "note_prompt": adventure.authors_note}
    lines = [header]
    for action in adventure.actions:
        if action.has_text:
            is_user = action.kind in ("do", "say", "story")
            name = header["user_name" if is_user else "character_name"]
            message = {"name": name, "is_user": is_user, "mes": action.text}
            lines.append(message | kept_of(action, _NAME))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


FORMATS = (
    Format(
        name=_NAME,
        what="SillyTavern chat",
        recognises=_recognises,
        load=_load,
        save=_save,
        holds=frozenset({"authors_note", "actions"}),
    ),
)
