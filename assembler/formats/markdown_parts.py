"""Text files: the parts of an AI Dungeon scenario as its author keeps them, and any other prose.

The file's name says which part it is (`AI_Instructions.md`, `authors_note.md`, `memory.md`, `story_summary.txt`, …);
`[Author's note: …]` around the whole text is taken off, because the context writes it. Blocks that begin with a line
`Title:` and go on with `Type:`, `Triggers:` and `Entry:`, bold or bulleted or as headings, are story cards; the entry
goes on to the next `Title:`, heading or rule. Their triggers are AI Dungeon's: split at commas, found inside words.
What stands around the cards is the text of the part. Text in a file of any other name is lore that its author
wants the model to know: it goes to the Plot Essentials, whole.

Written is a plain transcript of the actions, for people.
"""

from __future__ import annotations

import re
from typing import Any

from assembler.adventure import Adventure
from assembler.blocks import shown
from assembler.formats.cards import Entry, read_cards
from assembler.formats.fields import Fields
from assembler.formats.format import Format
from assembler.formats.kept import Dialect
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_DIALECT = Dialect("aidungeon-markdown", keys="triggers", syntax="loose", commas=True, keep_spaces=True)
_PARTS = {
    "aiinstructions": "ai_instructions",
    "instructions": "ai_instructions",
    "memory": "plot_essentials",
    "plotessentials": "plot_essentials",
    "authorsnote": "authors_note",
    "storysummary": "story_summary",
    "summary": "story_summary",
    "frontmemory": "front_memory",
    "storycards": "plot_essentials",
}
_LABEL = re.compile(r"[\s*_#>-]*(Title|Type|Triggers|Keys|Entry)[*_]*\s*:[*_]*[ \t]*(.*)", re.IGNORECASE)
_END = re.compile(r"\s*([-*_])(\s*\1){2,}\s*|#{1,6}\s.*")
_NOTE = re.compile(r"\[\s*author[’']?s note\s*:\s*(.*)\]", re.IGNORECASE | re.DOTALL)


def _part(source: Source) -> str | None:
    return _PARTS.get(re.sub("[^a-z]", "", source.stem))


def _is_part(source: Source) -> bool:
    return source.kind == "text" and (_part(source) is not None or bool(_split(source.text)[1]))


def _load(source: Source, log: Log) -> Adventure:
    text, blocks = _split(source.text)
    items = [(f"line {block['line']}", block) for block in blocks]
    cards = read_cards(items, _DIALECT, _entry, log).cards
    part = _part(source)
    if part == "authors_note" and (note := _NOTE.fullmatch(text.strip())):
        text = note[1]
    if part is None and text.strip():
        log.note(f"the text ({len(text):,} characters) is in the Plot Essentials")
    texts: dict[str, Any] = {part or "plot_essentials": text.strip()}
    return Adventure(story_cards=cards, **texts)


def _split(text: str) -> tuple[str, list[dict[str, str]]]:
    """The prose around the cards, and the cards with their values by label."""
    prose: list[str] = []
    blocks: list[dict[str, list[str]]] = []
    label = ""
    for number, line in enumerate(text.split("\n"), start=1):
        found = _LABEL.fullmatch(line)
        name = found[1].lower().replace("keys", "triggers") if found else ""
        if found and name == "title":
            blocks.append({"line": [str(number)], "raw": [], name: [found[2].strip("*_ ")]})
        elif label == "entry":
            name = "end" if _END.fullmatch(line) else label
            blocks[-1][label] += [line] if name == label else []
        elif found and label not in ("", "end"):
            blocks[-1][name] = [found[2]]
        else:
            name = label
            prose.append(line)
        label = name
        if label not in ("", "end"):
            blocks[-1]["raw"].append(line)
    cards = [{name: "\n".join(lines).strip() for name, lines in b.items()} for b in blocks if "entry" in b]
    for block in blocks:
        prose += block["raw"] if "entry" not in block else []
    return ("\n".join(prose), cards) if cards else (text, [])


def _entry(fields: Fields) -> Entry:
    return Entry(
        keys=fields.text("triggers"),
        text=fields.text("entry"),
        kept={},
        title=fields.text("title"),
        type=fields.text("type"),
        match="substring",
    )


def _transcript(adventure: Adventure) -> bytes:
    return ("\n".join(shown(action) for action in adventure.actions if action.has_text) + "\n").encode()


FORMATS = (
    Format(
        name=_DIALECT.format,
        what="AI Dungeon scenario parts as Markdown (AI_Instructions.md, memory.md, authors_note.md, cards)",
        recognises=_is_part,
        load=_load,
    ),
    Format(
        name="text",
        what="plain text: read as Plot Essentials, written as a transcript",
        recognises=lambda source: source.kind == "text",
        load=_load,
        save=_transcript,
        holds=frozenset({"actions"}),
    ),
)
