"""Reads a finished context and its report by the rules of SPEC.md, apart from the packers.

What may be left out though there is room: a component over the limit of Required, history older than the first action
that does not fit, a card that did not match or is empty, a memory that tells what stands in the context already.
"""

from __future__ import annotations

from typing import cast

from assembler import Adventure
from assembler.blocks import shown
from assembler.layout import HEADERS, ORDERS, RECENT_STORY
from assembler.report import Line, Report, Section
from assembler.settings import Layout
from memorybank.memory import NewMemory
from memorybank.text import clean
from memorybank.tokenizer import Tokenizer

__all__ = ["could_have_gone_in", "exact_count", "is_really_too_small", "text_of"]

MOST_JOINED = 8
"""Tokens that an item costs less at its place than by itself, at most: more than any tokenizer here joins."""


def exact_count(tokenizer: Tokenizer, text: str) -> int:
    """Return the tokens of a text, encoded whole: by another way than the one the assembler counts by."""
    return len(tokenizer.starts(text))


def is_really_too_small(adventure: Adventure, size: int, tokenizer: Tokenizer) -> bool:
    """Whether Front Memory and the last action exceed a context size, counted as one text."""
    last = next(adventure.actions.newest_first(), None)
    parts = [HEADERS["last_action"], shown(last)] if last is not None else []
    return exact_count(tokenizer, "\n".join(filter(None, [*parts, clean(adventure.front_memory)]))) > size


def could_have_gone_in(report: Report, room: int, adventure: Adventure, tokenizer: Tokenizer) -> list[str]:
    """Return the items that were left out though they would have fitted, by a count of the whole with each of them.

    Args:
        report: of the context.
        room: tokens that the context has left.
        adventure: that was packed.
        tokenizer: that counted.
    """
    memories = {memory.id: memory for memory in adventure.memories}
    in_context = {line.item for line in report.lines if line.section == "history" and line.kept}
    last = next(adventure.actions.newest_first(), None)
    if last is not None:
        in_context.add(last.id)
    newest_out = next((line for line in report.lines if line.section == "history" and not line.kept), None)
    tokens = exact_count(tokenizer, text_of(report, adventure))
    found = []
    for line in report.lines:
        if line.kept or not line.block or line.section not in ("story_cards", "history", "memory_bank"):
            continue
        if line.section == "history" and line is not newest_out:  # an unbroken run ends with the first that is out
            continue
        if line.section == "memory_bank" and _is_told(memories[line.item], adventure, in_context):
            continue
        if line.offered > room + MOST_JOINED:
            continue
        if exact_count(tokenizer, text_of(report, adventure, line)) - tokens <= room:
            found.append(line.item)
    return found


def text_of(report: Report, adventure: Adventure, other: Line | None = None) -> str:
    """Return the text of a context by its report, with one line more if one is given, at its place."""
    lines = [line for line in report.lines if line.item != "header" and (line.kept or line is other)]
    headed = {line.section for line in report.lines if line.item == "header" and line.kept}
    if other is not None and other.section in HEADERS:
        headed.add(other.section)
    blocks: list[str] = []
    for place in ORDERS[cast(Layout, report.layout)]:
        found = [line for line in lines if line.section == place]
        if place == "history":
            found.reverse()
        elif place == "memory_bank":
            found.sort(key=lambda line: _place_in_story(line, adventure))
        section = cast(Section, "last_action" if place == RECENT_STORY else place)
        if section in headed and place != "last_action":  # whose header stands apart
            blocks.append(HEADERS[section])
        blocks += [line.block for line in found]
    return "\n".join(blocks)


def _place_in_story(line: Line, adventure: Adventure) -> tuple[int, str]:
    """Return what orders memories: the place of the first source action, -1 without one, and when it was made."""
    places = (adventure.actions.position(source) for source in line.details.get("actions", ()))
    return next((place for place in places if place is not None), -1), line.details.get("made", "")


def _is_told(memory: NewMemory, adventure: Adventure, in_context: set[str]) -> bool:
    """Whether all source actions of a memory stand in the context; those without text need not."""
    texts = {action.id: action.text.strip() for action in adventure.actions}
    sources = [source for source in memory.actions if texts.get(source, "gone")]
    return bool(sources) and all(source in in_context for source in sources)
