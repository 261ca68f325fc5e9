"""Packs an AI adventure into an exact token budget and says why each item is in or out.

>>> from assembler import Action, Adventure, Settings, assemble
>>> adventure = Adventure(actions=[Action("a1", "start", "You wake."), Action("a2", "do", "look around")])
>>> print(assemble(adventure, settings=Settings(context_size=100)).text)
Recent Story:
You wake.
> look around

The names below are imported when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assembler.action_log import Action, ActionLog
    from assembler.adventure import Adventure, StoryCard
    from assembler.bank import bank_of, with_story_summary
    from assembler.context import AssembledContext, Message, assemble
    from assembler.document import UnknownFieldWarning, dumps, from_dict, load, loads, to_dict
    from assembler.errors import AdventureError, AssemblerError, ContextTooSmallError, SettingsError
    from assembler.report import Line, Part, Report
    from assembler.settings import Settings

__all__ = [
    "Action",
    "ActionLog",
    "Adventure",
    "AdventureError",
    "AssembledContext",
    "AssemblerError",
    "ContextTooSmallError",
    "Line",
    "Message",
    "Part",
    "Report",
    "Settings",
    "SettingsError",
    "StoryCard",
    "UnknownFieldWarning",
    "assemble",
    "bank_of",
    "dumps",
    "from_dict",
    "load",
    "loads",
    "to_dict",
    "with_story_summary",
]

_MODULES = {
    "action_log": ("Action", "ActionLog"),
    "adventure": ("Adventure", "StoryCard"),
    "bank": ("bank_of", "with_story_summary"),
    "context": ("AssembledContext", "Message", "assemble"),
    "document": ("UnknownFieldWarning", "dumps", "from_dict", "load", "loads", "to_dict"),
    "errors": ("AdventureError", "AssemblerError", "ContextTooSmallError", "SettingsError"),
    "report": ("Line", "Part", "Report"),
    "settings": ("Settings",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
