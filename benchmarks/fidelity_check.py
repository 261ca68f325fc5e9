"""Reads a finished context and its report by the rules of SPEC.md, apart from the packers.

What may be left out though there is room: a component over the limit of Required, history older than the first action
that does not fit, a card that did not match or is empty, a memory that tells what stands in the context already.
"""

from __future__ import annotations

from assembler import Adventure
from assembler.blocks import shown
from assembler.layout import HEADERS
from assembler.report import Line, Report
from memorybank.memory import NewMemory
from memorybank.text import clean
from memorybank.tokenizer import Tokenizer

__all__ = ["could_have_gone_in", "exact_count", "is_really_too_small"]


def exact_count(tokenizer: Tokenizer, text: str) -> int:
    """Return the tokens of a text, encoded whole: by another way than the one the assembler counts by."""
    return len(tokenizer.starts(text))


def is_really_too_small(adventure: Adventure, size: int, tokenizer: Tokenizer) -> bool:
    """Whether Front Memory and the last action exceed a context size, counted as one text."""
    last = next(adventure.actions.newest_first(), None)
    parts = [HEADERS["last_action"], shown(last)] if last is not None else []
    return exact_count(tokenizer, "\n".join(filter(None, [*parts, clean(adventure.front_memory)]))) > size


def could_have_gone_in(report: Report, room: int, adventure: Adventure, tokenizer: Tokenizer) -> list[str]:
    """Return the items that were left out though they would have fitted.

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
    found = []
    for line in report.lines:
        if line.kept or not line.block or line.section not in ("story_cards", "history", "memory_bank"):
            continue
        if line.section == "history" and line is not newest_out:  # an unbroken run ends with the first that is out
            continue
        if line.section == "memory_bank" and _is_told(memories[line.item], adventure, in_context):
            continue
        if line.offered + _header_missing(report, line, tokenizer) <= room:
            found.append(line.item)
    return found


def _header_missing(report: Report, line: Line, tokenizer: Tokenizer) -> int:
    """Return what the section's header would cost in addition, 0 if it stands in the context or there is none."""
    if line.section == "history" or any(one.section == line.section and one.kept for one in report.lines):
        return 0
    return tokenizer.count(HEADERS[line.section] + "\n")


def _is_told(memory: NewMemory, adventure: Adventure, in_context: set[str]) -> bool:
    """Whether all source actions of a memory stand in the context; those without text need not."""
    texts = {action.id: action.text.strip() for action in adventure.actions}
    sources = [source for source in memory.actions if texts.get(source, "gone")]
    return bool(sources) and all(source in in_context for source in sources)
