"""What the command line prints: tables for people, tab-separated lines for pipes, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from memorybank.console import shown

__all__ = ["plain_json", "print_json", "print_rows"]


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


def plain_json(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON, its times in ISO 8601."""
    return {name: _plain(found) for name, found in asdict(value).items()}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
