"""Packs an AI adventure into an exact token budget and says why each item is in or out.

>>> from assembler import Action, Adventure, Settings, assemble
>>> adventure = Adventure(actions=[Action("a1", "start", "You wake."), Action("a2", "do", "look around")])
>>> print(assemble(adventure, settings=Settings(context_size=100)).text)
Recent Story:
You wake.
> look around
"""

from __future__ import annotations

from assembler.action_log import Action, ActionLog
from assembler.adventure import Adventure, StoryCard
from assembler.assemble import AssembledContext, Message, assemble
from assembler.bank import bank_of
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
]
