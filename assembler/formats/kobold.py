"""KoboldAI saves (version 1): prompt, memory, author's note, actions, world info.

KoboldAI looks for its keys anywhere in the text: `substring`. `key` is one string, split at commas, and spaces around
a key count. `selective` entries want one of `keysecondary` too. `constant` ones are always in. Its world info was
often taken over from AI Dungeon with the patterns of scripts in it: see `keys.py`. The name of an entry's folder is
the card's type.

The prompt is the `start` action. The others are stored as they follow each other in the text, also in mid-sentence; one
that begins with `>` is the player's (`do`), and what follows in the same string on other lines is the AI's answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assembler.action_log import Action, ActionKind, ActionLog
from assembler.adventure import Adventure, StoryCard
from assembler.formats.cards import Entry, read_cards
from assembler.formats.fields import EntryError, Fields, as_json, items_of, joined, start
from assembler.formats.format import Format
from assembler.formats.kept import Dialect, always_of, cards_of, imported, kept_of, keys_of, without_always
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_DIALECT = Dialect("kobold", keys="key", syntax="loose", commas=True, keep_spaces=True)
_TAKEN = ("key", "content", "comment")
_TOP_TAKEN = ("prompt", "memory", "authorsnote", "actions", "worldinfo")


def _recognises(source: Source) -> bool:
    value = source.value
    if source.kind != "json" or not isinstance(value, Mapping):
        return False
    return "gamestarted" in value or ("actions" in value and "memory" in value and "prompt" in value)


def _load(source: Source, log: Log) -> Adventure:
    top = Fields(source.value)
    folders = top.raw.get("wifolders_d")

    def entry(fields: Fields) -> Entry:
        folder = folders.get(str(fields.raw.get("folder"))) if isinstance(folders, Mapping) else None
        return Entry(
            keys=fields.keys("key"),
            text=fields.text("content"),
            kept=fields.rest(*_TAKEN),
            type=Fields(folder).text("name") if isinstance(folder, Mapping) else "",
            match="substring",
            notes=fields.text("comment"),
            always=fields.flag("constant", default=False),
            conditional=fields.flag("selective", default=False) and bool(fields.text("keysecondary").strip()),
        )

    cards = read_cards(items_of(top.raw.get("worldinfo"), "worldinfo"), _DIALECT, entry, log)
    return Adventure(
        plot_essentials=joined(top.text("memory"), *cards.essentials),
        authors_note=top.text("authorsnote"),
        story_cards=cards.cards,
        actions=_actions(top, log),
        extra=imported(_DIALECT.format, top.rest(*_TOP_TAKEN) | cards.kept),
    )


def _actions(top: Fields, log: Log) -> ActionLog:
    actions = list(start(top.text("prompt")))
    texts = top.raw.get("actions") or []
    if not isinstance(texts, list):
        raise EntryError("actions: expected a list of texts; save with KoboldAI as a version 1 file")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            log.skip(f"actions[{number}]", "is no text")
            continue
        actions += [Action(f"a{len(actions) + n}", *part) for n, part in enumerate(_parts(text), start=1)]
    return ActionLog(actions)


def _parts(text: str) -> Iterator[tuple[ActionKind, str]]:
    text = text.replace("\r\n", "\n")
    if text.lstrip().startswith(">"):
        typed, _, answer = text.strip().removeprefix(">").partition("\n")
        yield "do", typed.strip()
        text = answer
    if text.strip():
        yield "output", text


def _save(adventure: Adventure) -> bytes:
    top = kept_of(adventure, _DIALECT.format)
    actions = [action for action in adventure.actions if action.has_text]
    prompt = actions.pop(0).text if actions and actions[0].kind == "start" else ""
    memory, always = without_always(adventure.plot_essentials, always_of(adventure, top, "content"), "content")
    world = [_raw(card) for card in cards_of(adventure, switch=False)] + always
    game = {"gamestarted": True, "prompt": prompt, "memory": memory, "authorsnote": adventure.authors_note}
    return as_json(game | {"actions": [_typed(action) for action in actions], "worldinfo": world} | top)


def _typed(action: Action) -> str:
    if action.kind not in ("do", "say"):
        return action.text
    return f"\n> {' '.join(action.text.removeprefix('>').split())}\n"


def _raw(card: StoryCard) -> dict[str, Any]:
    return (
        {"key": "", "keysecondary": "", "content": card.entry, "comment": card.notes or card.title}
        | {"folder": None, "selective": False, "constant": False}
        | kept_of(card, _DIALECT.format)
        | {"key": keys_of(card, _DIALECT)}
    )


FORMATS = (
    Format(
        name=_DIALECT.format,
        what="KoboldAI save (version 1)",
        recognises=_recognises,
        load=_load,
        save=_save,
        holds=frozenset({"story_cards", "notes", "plot_essentials", "authors_note", "actions"}),
        matches="substring",
    ),
)
