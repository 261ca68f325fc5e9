"""The JSON that the service takes, as models. Limits come from `memorybank/inputs.py`; `given.py` is what it gives.

The models check types, names and lengths; `inputs.py` then checks what they cannot know, in the words of the library.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from memorybank import inputs
from memorybank.memory import NewMemory, Settable
from memorybank.search.ranking import DEFAULT_RANKING, RANKINGS
from memorybank.text import join_surrogates
from memorybank.writing import rhythm as rhythms

__all__ = [
    "ACTIONS",
    "ID",
    "MAX_BANK_NAME",
    "MAX_BATCH",
    "NAME",
    "PRINTABLE",
    "TEXT",
    "TIME",
    "VERSION",
    "WHOLE",
    "BankSettings",
    "IdentifiedEdit",
    "Identifier",
    "Ids",
    "MemoryEdit",
    "MemoryEdits",
    "MemoryInput",
    "NewMemories",
    "Rhythm",
    "SearchRequest",
    "Taken",
    "absent",
]

MAX_BANK_NAME = 128
MANY_NAMES = 100
"""Names in one object; no object here has so many."""
MAX_BATCH = 1_000
"""Memories in one call."""

PRINTABLE = r"^[^\u0000-\u001f\u007f-\u00a0\u00ad\u2028\u2029]+$"
"""Printable characters, as far as every program's patterns can say it; `inputs.py` has the whole rule."""

SAYS_SOMETHING = r"[^\s\u001c-\u001f\u0085]"

NAME = PRINTABLE.replace("[^", "[^/")
"""The name of a bank over HTTP."""

ID = "m1"
TEXT = "Mara hid the silver key under the chapel floor."
TIME = "2026-05-01T18:30:00+00:00"
VERSION = "9f86d081884c7d65"


class Taken(BaseModel):
    """What is taken: no unknown name, no number for a text."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_names(cls, value: object) -> object:
        """Refuse a heap of unknown names at once: to tell all of them takes seconds, in which nobody else is served."""
        if isinstance(value, dict) and len(value) > MANY_NAMES:
            unknown = next(name for name in value if name not in cls.model_fields)
            raise ValueError(
                f"there are {len(value):,} names in one object, and {unknown[:100]!r} is none of those known"
            )
        return value


def _joined(text: object) -> object:
    """Join surrogate halves: those that are alone in a text that is read or searched become U+FFFD."""
    return join_surrogates(text) if isinstance(text, str) else text


def absent(description: str, examples: list[Any]) -> Any:
    """A field that need not be there, and must not be null."""
    # A factory, because a plain default would stand in the document, and null is none of the values.
    return Field(default_factory=lambda: None, description=description, examples=examples)


def _whole(number: object) -> object:
    """Take 64.0 for 64: the same number in JSON, and there are game engines that write it so."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


WHOLE = BeforeValidator(_whole)
"""Stands behind a number's limits: before them, they would be missing in the document."""
Identifier = Annotated[
    str, Field(min_length=1, max_length=inputs.MAX_ID, json_schema_extra={"pattern": PRINTABLE}, examples=[ID])
]
Text = Annotated[
    str,
    BeforeValidator(_joined),
    # Counted without the whitespace around it, so only `inputs.py` can refuse what is longer.
    Field(json_schema_extra={"minLength": 1, "maxLength": inputs.MAX_TEXT, "pattern": SAYS_SOMETHING}, examples=[TEXT]),
]
Actions = Annotated[list[Identifier], FailFast(), Field(max_length=inputs.MAX_ACTIONS, examples=[["a3", "a4"]])]
Metadata = Annotated[dict[str, Any], Field(examples=[{"chapter": 2}])]
_METADATA = f"anything; only kept; at most {inputs.MAX_METADATA:,} characters as JSON; replaced as a whole"
ACTIONS = "ids of the actions that it was made from, oldest first"


class MemoryInput(Taken):
    """A memory to be stored. The same text, or the same id with the same text, is still one memory."""

    text: Text = Field(description="what happened; kept without whitespace around it")
    id: Identifier | None = Field(None, description="unique in its bank; given if it is missing", examples=[ID])
    actions: Actions = Field([], description=ACTIONS)
    pinned: bool = Field(False, description="before all others in a context, never forgotten", examples=[False])
    metadata: Metadata = Field({}, description=_METADATA)

    def to_new(self) -> NewMemory:
        """Return it as the bank takes it."""
        return NewMemory(self.text, self.id, tuple(self.actions), self.pinned, self.metadata)


class NewMemories(Taken):
    """Memories to be stored: all or none, in this order."""

    memories: Annotated[list[MemoryInput], FailFast()] = Field(
        description="what is to be stored", min_length=1, max_length=MAX_BATCH, examples=[[{"text": TEXT}]]
    )


class MemoryEdit(Taken):
    """What to change of a memory; the rest stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    text: Text = absent("what happened; another text is embedded anew", [TEXT])
    actions: Actions = absent(ACTIONS, [["a3"]])
    pinned: bool = absent("before all others in a context, never forgotten", [True])
    state: Settable = absent("forgotten memories are listed and not searched", ["forgotten"])
    metadata: Metadata = absent(_METADATA, [{"chapter": 3}])

    @model_validator(mode="after")
    def _says_something(self) -> MemoryEdit:
        if not self.changes():
            raise ValueError("there is nothing to change: give text, actions, pinned, state or metadata")
        return self

    def changes(self) -> dict[str, Any]:
        """Return the fields that were given, but for an id."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set - {"id"})}


class IdentifiedEdit(MemoryEdit):
    """A change of one among several memories."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2})

    id: Identifier = Field(description="which memory")


class MemoryEdits(Taken):
    """Changes of several memories: all or none."""

    memories: Annotated[list[IdentifiedEdit], FailFast()] = Field(
        description="what is to be changed",
        min_length=1,
        max_length=MAX_BATCH,
        examples=[[{"id": ID, "pinned": True}]],
    )


class Ids(Taken):
    """Several memories by their ids."""

    ids: Annotated[list[Identifier], FailFast()] = Field(
        description="which memories; one that is named twice counts once",
        min_length=1,
        max_length=MAX_BATCH,
        examples=[["m1", "m2"]],
    )


class Rhythm(Taken):
    """How often a bank writes memories and the Story Summary from its log."""

    every: Annotated[int, Field(ge=1, le=rhythms.MOST), WHOLE] = Field(
        description="actions of one memory", examples=[6]
    )
    untouched: Annotated[int, Field(ge=0, le=rhythms.MOST), WHOLE] = Field(
        description="newest actions that no memory is made of", examples=[6]
    )
    summary_every: Annotated[int, Field(ge=1, le=rhythms.MOST), WHOLE] = Field(
        description="actions from one update of the Story Summary to the next", examples=[15]
    )


class BankSettings(Taken):
    """The settings of a bank; what is missing stays as it is."""

    capacity: Annotated[int, Field(ge=1, le=2**53), WHOLE] | None = Field(
        None, description="how many active memories it may have; null for any number", examples=[200]
    )
    rhythm: Rhythm = absent(
        "how often it writes; memories that were written in another rhythm stay",
        [{"every": 4, "untouched": 4, "summary_every": 8}],
    )

    def given(self) -> dict[str, Any]:
        """Return the settings that were given, as the bank takes them."""
        return {
            name: getattr(self, name) if name != "rhythm" else rhythms.Rhythm(**self.rhythm.model_dump())
            for name in sorted(self.model_fields_set)
        }


class SearchRequest(Taken):
    """What to look for."""

    query: Annotated[str, BeforeValidator(_joined)] = Field(
        description=f"a text; of a long one, {inputs.MAX_TEXT:,} characters are read", examples=["Where is the key?"]
    )
    limit: Annotated[int, Field(ge=1, le=MAX_BATCH), WHOLE] | None = Field(
        None, description="at most so many; null for 10, or with `max_tokens` for as many as fit", examples=[10]
    )
    max_tokens: Annotated[int, Field(ge=0, le=2**53), WHOLE] | None = Field(
        None, description="take what fits into so many tokens of o200k_base, best first", examples=[500]
    )
    min_similarity: Annotated[float, Field(ge=-1, le=1)] | None = Field(
        None, description="leave out what is less similar", examples=[0.2]
    )
    recent: list[Annotated[str, BeforeValidator(_joined)]] = Field(
        default_factory=list,
        max_length=inputs.MAX_RECENT,
        description="the texts before the query, oldest first, as a weaker part of it; of each, the last "
        f"{inputs.RECENT_LENGTH:,} characters are read",
        examples=[["Mara locks the chapel.", "She hides something under the floor."]],
    )
    ranking: str = Field(
        DEFAULT_RANKING,
        description="by meaning and by words; by meaning alone; or the best of the first in the order of the server's "
        "cross-encoder, if it was started with one",
        examples=["hybrid"],
        json_schema_extra={"enum": list(RANKINGS)},
    )
    pinned_first: bool = Field(False, description="all pinned memories before the others", examples=[False])
    explain: bool = Field(False, description="give the parts of each score", examples=[False])
    retellings: bool = Field(
        False, description="say of each result which newer or pinned others tell nearly the same", examples=[False]
    )
