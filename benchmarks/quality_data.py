"""What retrieval is judged by: memories, queries, and which memories each of them is about.

Both sets are real and lie in `../shared/data`. LoCoMo (Maharana et al. 2024): a memory is a turn of a long talk,
a query is a question about it, asked by itself. CRD3 (Rameshkumar & Bailey 2020), campaign 2: a memory is a piece of a
summary that people wrote of a campaign of table-top role-playing, a query is what somebody said or did, with up to four
utterances before it; which piece it belongs to was aligned by a program, so part of it is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT

__all__ = ["Collection", "Query", "campaign", "conversations"]

DATA = ROOT.parent / "shared" / "data"
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Query:
    """What is asked.

    Attributes:
        text: the question, or the action.
        recent: the utterances before it, oldest first.
        relevant: places of the memories that it is about.
        half: 0 for the half on which settings were chosen, 1 for the other.
    """

    text: str
    recent: tuple[str, ...]
    relevant: tuple[int, ...]
    half: int


@dataclass(frozen=True)
class Collection:
    """Memories in the order of the story, and queries."""

    memories: tuple[str, ...]
    queries: tuple[Query, ...]


def conversations(folder: Path = DATA) -> list[Collection] | None:
    """Return LoCoMo's ten conversations, None if they are not there. Every other one is of the half for choosing."""
    path = folder / "locomo10.json"
    if not path.is_file():
        return None
    return [_conversation(sample, number % 2) for number, sample in enumerate(json.loads(path.read_text("utf-8")))]


def _conversation(sample: dict[str, Any], half: int) -> Collection:
    spoken = sample["conversation"]
    sessions = sorted((name for name in spoken if re.fullmatch(r"session_\d+", name)), key=lambda name: int(name[8:]))
    turns = [turn for session in sessions for turn in spoken[session]]
    place = {_number(turn["dia_id"]): number for number, turn in enumerate(turns)}
    queries = []
    for asked in sample["qa"]:
        found = [_EVIDENCE.findall(evidence) for evidence in asked.get("evidence", ())]
        known = {place.get((int(one), int(two))) for pairs in found for one, two in pairs} - {None}
        relevant = tuple(sorted(number for number in known if number is not None))
        if relevant:
            queries.append(Query(asked["question"], (), relevant, half))
    return Collection(tuple(map(_told, turns)), tuple(queries))


def _number(dia_id: str) -> tuple[int, int]:
    [(session, turn)] = _EVIDENCE.findall(dia_id)
    return int(session), int(turn)


def _told(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [shares {caption}]" if caption else "")


def campaign(folder: Path = DATA) -> list[Collection] | None:
    """Return the campaign as one collection, None if it is not there. Every other query is of the half for choosing."""
    path = folder / "crd3_c2.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text("utf-8"))
    memories = [memory for memory in data["memories"] if memory["text"].strip()]  # one says nothing
    place = {memory["id"]: number for number, memory in enumerate(memories)}
    queries = [
        Query(one["action"], _texts(one["before"]), tuple(place[id_] for id_ in one["relevant"]), number % 2)
        for number, one in enumerate(data["queries"])
    ]
    return [Collection(tuple(memory["text"] for memory in memories), tuple(queries))]


def _texts(before: Sequence[dict[str, str]]) -> tuple[str, ...]:
    return tuple(one["text"] for one in before)
