"""What the command line prints: tables for people, tab-separated lines for pipes, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from memorybank.console import shown
from memorybank.memory import Memory, Recalled

__all__ = ["memory_json", "plain_json", "print_json", "print_rows", "recalled_json"]


def print_json(value: Mapping[str, Any]) -> None:
    """Print an object."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table to a terminal, and lines with tabs to anything else. The last column may wrap."""
    lines = [[shown(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for line in lines:
            print("\t".join(line))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, no_wrap=name != names[-1], overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    Console().print(table)


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return a memory as JSON: times in ISO 8601, and nothing of how it is stored."""
    return {
        **{name: value for name, value in asdict(memory).items() if name != "ordinal"},
        "created": memory.created.isoformat(),
        "last_used": None if memory.last_used is None else memory.last_used.isoformat(),
    }


def plain_json(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON, its times in ISO 8601."""
    return {name: _plain(found) for name, found in asdict(value).items()}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def recalled_json(found: Recalled) -> dict[str, Any]:
    """Return a search result as JSON; `parts` only when they were asked for."""
    parts = {} if found.parts is None else {"parts": dict(found.parts)}
    return {"memory": memory_json(found.memory), "similarity": found.similarity, "rank": found.rank, **parts}
