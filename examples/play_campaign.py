"""Play a long adventure into a bank, let it write its memories, and build contexts along the way.

    python examples/play_campaign.py examples/the_cormorant_light.json
    python examples/play_campaign.py campaign.json --db campaign.sqlite --contexts 8 --context 4096 --report

What a game does turn by turn happens here in leaps: the log goes into the bank up to a point, the bank writes what is
due, offline and with a progress bar, and a context is built for the last action of that point. The memories that the
document brings along are left out: only what the bank has written by itself can be recalled. Run it again on the same
database, and nothing is written twice.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from assembler import ActionLog, Adventure, AssembledContext, Settings, assemble, load, with_story_summary
from assembler.table import render
from memorybank import MemoryBank
from memorybank.console import progress_bar
from memorybank.embedding import DEFAULT_MODEL, open_embedder


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, and say what came of it."""
    call = parser().parse_args(arguments)
    adventure = replace(load(call.file), memories=())
    settings = Settings(context_size=call.context)
    begun = time.perf_counter()
    with MemoryBank.open(call.db, embedder=open_embedder(call.model)) as bank:
        print(f"{'actions':>8} {'memories':>9} {'summary':>8} {'tokens':>7}  recalled, best first")
        context = None
        for start, stop in pairwise(stops(len(adventure.actions), call.contexts)):
            so_far = play(adventure, bank, start, stop)
            context = assemble(with_story_summary(so_far, bank), bank, settings)
            bank.mark_used(context.recalled)
            print(told(so_far, bank, context), flush=True)
        print(f"played in {time.perf_counter() - begun:,.0f} s; {call.db} agrees with itself: {bank.check().ok}")
        if call.report and context is not None:
            print(f"\n{render(context.report)}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(description="Play an adventure into a bank and build contexts along the way.")
    made.add_argument("file", type=Path, metavar="FILE", help="an adventure/1 document")
    made.add_argument("--db", default=":memory:", metavar="DATABASE", help="where the bank is kept (nowhere)")
    made.add_argument("--contexts", type=int, default=8, metavar="N", help="how many contexts are built (8)")
    made.add_argument("--context", type=int, default=4096, metavar="N", help="tokens of each (4096)")
    made.add_argument("--model", default=DEFAULT_MODEL, metavar="NAME", help=f"embedding model ({DEFAULT_MODEL})")
    made.add_argument("--report", action="store_true", help="print the report of the last context")
    return made


def stops(length: int, count: int) -> list[int]:
    """Return where the story pauses: `count` evenly spaced places behind the beginning, the last one at its end."""
    return sorted({length * number // count for number in range(count + 1)})


def play(adventure: Adventure, bank: MemoryBank, start: int, stop: int) -> Adventure:
    """Put the next part of the log into the bank, let it write what is due, and return the story so far."""
    new = adventure.actions[start:stop]
    bank.put_actions(new, after=adventure.actions[start - 1].id if start else None)
    with progress_bar(f"writing the memories up to action {stop:,}") as progress:
        bank.write_due(progress=progress)
    return replace(adventure, actions=ActionLog(adventure.actions[:stop]))


def told(adventure: Adventure, bank: MemoryBank, context: AssembledContext) -> str:
    """Return a line about a context: how large, and from how long ago its memories come."""
    here, summary = len(adventure.actions), bank.summary()
    ages = []
    for line in context.report.lines:
        if line.section == "memory_bank" and line.kept and "rank" in line.details:
            place = adventure.actions.position(bank.get(line.item).actions[0])
            ages.append(f"{line.details['similarity']:.2f} from {here - (place or 0):,} ago")
    words = "none yet" if summary is None else f"v{summary.version}"
    shown = ", ".join(ages[:3]) + (f" and {len(ages) - 3} more" if len(ages) > 3 else "")
    count = bank.info().counts.get("active", 0)
    return f"{here:>8,} {count:>9,} {words:>8} {context.tokens:>7,}  {shown}"


if __name__ == "__main__":
    sys.exit(main())
