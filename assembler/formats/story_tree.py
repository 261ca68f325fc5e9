"""Crowd-sourced story trees: `context`, `first_story_block`, and `action_results` inside each other.

The tree holds many adventures; the deepest branch is taken, the first among equals, and how many nodes stay behind is
reported. Each `action` is a `do`, each `result` an `output`. A `context` that is prose is the Plot Essentials; a code
without spaces is only kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.action_log import Action, ActionKind, ActionLog
from assembler.adventure import Adventure
from assembler.formats.fields import Fields, start
from assembler.formats.format import Format
from assembler.formats.kept import imported
from assembler.formats.report import Log
from assembler.formats.source import Source

__all__ = ["FORMATS"]

_NAME = "story-tree"
_KINDS: tuple[tuple[ActionKind, str], ...] = (("do", "action"), ("output", "result"))
Node = Mapping[str, Any]


def _recognises(source: Source) -> bool:
    return source.kind == "json" and isinstance(source.value, Mapping) and "first_story_block" in source.value


def _load(source: Source, log: Log) -> Adventure:
    top = Fields(source.value)
    context = top.text("context")
    path, count = _deepest(source.value)
    if count > len(path):
        log.skip("action_results", f"{count - len(path)} of {count} nodes are on other branches than the deepest")
    actions = list(start(top.text("first_story_block")))
    for node in path:
        for kind, name in _KINDS:
            text = Fields(node).text(name)
            if text.strip():
                actions.append(Action(f"a{len(actions) + 1}", kind, text))
    return Adventure(
        title=top.id("tree_id"),
        plot_essentials=context if " " in context.strip() else "",
        actions=ActionLog(actions),
        extra=imported(_NAME, top.rest("action_results", "first_story_block", "tree_id")),
    )


def _deepest(tree: Node) -> tuple[list[Node], int]:
    """The nodes of the longest branch, and how many nodes there are; breadth first, so no recursion."""
    parents: dict[int, tuple[Node, int]] = {}
    level: list[tuple[Node, int]] = [(tree, -1)]
    deepest = -1
    while level:
        children: list[tuple[Node, int]] = []
        for node, number in level:
            results = node.get("action_results")
            for child in results if isinstance(results, list) else ():
                if isinstance(child, Mapping):
                    parents[len(parents)] = (child, number)
                    children.append((child, len(parents) - 1))
        deepest = children[0][1] if children else deepest
        level = children
    path: list[Node] = []
    while deepest >= 0:
        node, deepest = parents[deepest]
        path.append(node)
    return path[::-1], len(parents)


FORMATS = (
    Format(
        name=_NAME,
        what="crowd-sourced story tree",
        recognises=_recognises,
        load=_load,
    ),
)
