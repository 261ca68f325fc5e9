"""Required: Front Memory and Last Action whole, then the other four under the limit (SPEC.md section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from assembler.adventure import Adventure
from assembler.blocks import BlockMaker
from assembler.errors import ContextTooSmallError
from assembler.layout import FRAMES, HEADERS, last_of
from assembler.report import Line, Section
from assembler.settings import Layout
from assembler.trimming import cut
from memorybank.text import clean

__all__ = ["OVER_LIMIT", "PRIORITY", "SECTION_WAS_CUT", "pack_required"]

PRIORITY: tuple[Section, ...] = ("authors_note", "plot_essentials", "ai_instructions", "story_summary")
"""The components under the limit, the most important first."""

OVER_LIMIT = "over the required limit"
SECTION_WAS_CUT = "a higher-priority section was cut"


def pack_required(
    adventure: Adventure, *, context_size: int, limit: int, layout: Layout, blocks: BlockMaker
) -> list[Line]:
    """Pack the required part: its lines in order of priority.

    Args:
        adventure: what the game knows.
        context_size: tokens that there are.
        limit: tokens that the four components may bring the part to.
        layout: decides which block is the last one and has no line end.
        blocks: makes and counts blocks.

    Raises:
        ContextTooSmallError: Front Memory and Last Action alone exceed the context size.
    """
    must = _front_memory_and_last_action(adventure, blocks)
    used = sum(line.used for line in must)
    if used > context_size and _counted_as_one(must, blocks) > context_size:
        front = sum(line.used for line in must if line.section == "front_memory")
        raise ContextTooSmallError(front_memory=front, last_action=used - front, context_size=context_size)
    components = _components(adventure)
    if must:
        return must + _pack_components(components, limit - used, None, blocks)
    return _pack_without_end(components, limit, layout, blocks)


def _front_memory_and_last_action(adventure: Adventure, blocks: BlockMaker) -> list[Line]:
    lines: list[Line] = []
    front = blocks(adventure.front_memory, last=True)
    if front.text:
        lines.append(Line("front_memory", "text", front.text, front.tokens))
    action = adventure.last_action
    if action is not None:
        header = blocks(HEADERS["last_action"])
        shown = blocks.action(action, last=not front.text)
        lines.append(Line("last_action", "header", header.text, header.tokens))
        lines.append(Line("last_action", "text", shown.text, shown.tokens, details={"action": action.id}))
    for line in lines:
        line.keep()
    return lines


def _counted_as_one(must: list[Line], blocks: BlockMaker) -> int:
    """Return the exact count of Front Memory and Last Action: an estimate rounds each block up, and not their sum."""
    texts = [line.block for line in must if line.section == "last_action"]
    texts += [line.block for line in must if line.section == "front_memory"]
    return blocks.tokenizer.count("\n".join(texts))


def _components(adventure: Adventure) -> list[tuple[Section, str]]:
    """Return the components that are not empty, clean, in order of priority."""
    texts = [(section, clean(cast(str, getattr(adventure, section)))) for section in PRIORITY]
    return [(section, text) for section, text in texts if text]


def _pack_components(
    components: Sequence[tuple[Section, str]], room: int, last: Section | None, blocks: BlockMaker
) -> list[Line]:
    """Take the components in while they fit; cut the first that does not; leave out the rest."""
    lines: list[Line] = []
    was_cut = False
    for section, text in components:
        prefix, suffix = FRAMES.get(section, ("", ""))
        block = blocks(text, prefix, suffix, last=section == last)
        line = Line(section, "text", block.text, block.tokens)
        lines.append(line)
        if was_cut:
            line.drop(SECTION_WAS_CUT)
        elif block.tokens <= room:
            line.keep()
            room -= block.tokens
        else:
            _cut_to(line, text, room, last=section == last, blocks=blocks)
            was_cut = True
    return lines


def _pack_without_end(
    components: Sequence[tuple[Section, str]], limit: int, layout: Layout, blocks: BlockMaker
) -> list[Line]:
    """Pack the components of an adventure in which nothing stands behind them.

    The last one that goes in has no line end. Which one that is depends on what fits, and what fits on that; so each
    is tried as the last one, from the end of the layout on. If none goes in, any attempt says so.
    """
    present = [section for section, _ in components]
    attempts: list[list[Line]] = []
    while present:
        last = last_of(present, layout)
        attempts.append(_pack_components(components, limit, last, blocks))
        if last_of([line.section for line in attempts[-1] if line.kept], layout) == last:
            return attempts[-1]
        present = [section for section in present if section != last]
    return attempts[0] if attempts else []


def _cut_to(line: Line, text: str, room: int, *, last: bool, blocks: BlockMaker) -> None:
    prefix, suffix = FRAMES.get(line.section, ("", ""))
    count = blocks.tokenizer.count
    end = suffix if last else suffix + "\n"
    part = cut(text, room, lambda part: count(prefix + part + end), blocks.tokenizer)
    if part is None:
        line.drop(OVER_LIMIT)
    else:
        line.trim(prefix + part + suffix, count(prefix + part + end), OVER_LIMIT)
