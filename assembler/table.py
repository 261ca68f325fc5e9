"""The report as a table for people (SPEC.md section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from assembler.report import Line, Report

__all__ = ["render"]

_SHOWN_IN_A_ROW = 8


def render(report: Report, *, full: bool = False) -> str:
    """Return the report as text.

    Args:
        report: of an assembled context.
        full: a line for every item; otherwise long runs of history and of what was dropped are summed up.
    """
    used = sum(line.used for line in report.lines)
    about = "estimated with" if report.is_estimate else "counted with"
    blocks = [
        f"{used:,} of {report.context_size:,} tokens, {about} {report.tokenizer}, {report.layout} layout",
        _columns([("part", "allowed", "used"), *_parts(report)], right={1, 2}),
        _columns([("section", "item", "verdict", "offered", "used", "why"), *_rows(report, full)], right={3, 4}),
    ]
    if report.memories_pending:
        blocks.append(f"memories that are due and not written yet: {report.memories_pending}")
    if report.cards_not_matched:
        window = f"triggers were looked for in the newest {report.card_window} actions"
        blocks.append(f"story cards that did not match: {report.cards_not_matched} ({window})")
    if report.cards_waiting:
        rows = [(id, _waits_for(triggers)) for id, triggers in report.cards_waiting.items()]
        blocks.append(_columns([("card", "waits for"), *rows], right=set()))
    return "\n\n".join(blocks)


def _waits_for(triggers: tuple[str, ...] | None) -> str:
    return "(switched off)" if triggers is None else ", ".join(triggers) or "(it has no trigger)"


def _parts(report: Report) -> Iterator[tuple[str, ...]]:
    for name, part in report.parts.items():
        yield name, f"{part.allowed:,}", f"{part.used:,}"


def _rows(report: Report, full: bool) -> Iterator[tuple[str, ...]]:
    for (section, verdict), group in groupby(report.lines, key=lambda line: (line.section, line.verdict)):
        lines = list(group)
        if full or len(lines) <= _SHOWN_IN_A_ROW:
            yield from (_row(line, full) for line in lines)
        elif section == "history":
            yield _summed(lines, f"{lines[0].item} … {lines[-1].item}", f"{len(lines)} actions, newest first")
        elif verdict == "dropped":
            yield from (_row(line, full) for line in lines[: _SHOWN_IN_A_ROW - 1])
            rest = lines[_SHOWN_IN_A_ROW - 1 :]
            yield _summed(rest, "…", f"{len(rest)} more that were {verdict}")
        else:
            yield from (_row(line, full) for line in lines)


def _row(line: Line, full: bool) -> tuple[str, ...]:
    why = "; ".join(filter(None, (_why(line), _origin(line) if full else "")))
    return (line.section, line.item, line.verdict, f"{line.offered:,}", f"{line.used:,}", why)


def _summed(lines: list[Line], item: str, why: str) -> tuple[str, ...]:
    offered, used = sum(line.offered for line in lines), sum(line.used for line in lines)
    return (lines[0].section, item, lines[0].verdict, f"{offered:,}", f"{used:,}", why)


def _why(line: Line) -> str:
    details = line.details
    words = [line.reason] if line.reason else []
    if "trigger" in details:
        words.append(f"“{details['trigger']}” in {details['action']}, score {details['score']:.3g}")
    elif "action" in details:
        words.append(str(details["action"]))
    if "rank" in details:
        pinned = "pinned, " if details.get("pinned") else ""
        words.append(f"{pinned}rank {details['rank']}, similarity {details['similarity']:.3f}")
    return "; ".join(words)


def _origin(line: Line) -> str:
    """Return from what, by what and when a memory was made, and its use."""
    actions = line.details.get("actions", ()) if line.section == "memory_bank" else ()
    words = [f"from {actions[0]} … {actions[-1]}" if len(actions) > 1 else f"from {actions[0]}"] if actions else []
    words += [f"by {line.details['writer']}"] if "writer" in line.details else []
    words += [f"made {line.details['made'][:16]}"] if "made" in line.details else []
    if "use_count" in line.details:
        words.append(f"used {line.details['use_count']}, last {line.details['last_used'][:16]}")
    return ", ".join(words)


def _columns(rows: Iterable[tuple[str, ...]], right: set[int]) -> str:
    """Return the rows in columns, those in `right` aligned to the right."""
    table = [[_on_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )


def _on_one_line(cell: str) -> str:
    """Return a cell that cannot break the table or steer a terminal, whatever an author called a card."""
    return "".join(character if character.isprintable() else "�" for character in cell)[:120]
