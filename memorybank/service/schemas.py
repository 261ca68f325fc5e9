"""The JSON of the service as models: what is taken, and what is given. Limits come from `memorybank/inputs.py`.

The models check types, names and lengths; `inputs.py` then checks what they cannot know, in the words of the library.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from memorybank import inputs
from memorybank.memory import NewMemory, Settable, State
from memorybank.search.ranking import RANKINGS
from memorybank.text import join_surrogates

__all__ = [
    "MAX_BANK_NAME",
    "MAX_BATCH",
    "NAME",
    "PRINTABLE",
    "WHOLE",
    "Bank",
    "BankList",
    "BankSettings",
    "Health",
    "Identifier",
    "Ids",
    "Memory",
    "MemoryEdit",
    "MemoryEdits",
    "MemoryList",
    "NewMemories",
    "ProblemBody",
    "Readiness",
    "SearchRequest",
    "SearchResults",
    "Stored",
    "Used",
]

MAX_BANK_NAME = 128
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
VERSIONS = "^[0-9a-f]{16}$"
STORED: dict[str, Any] = {
    "id": ID,
    "text": TEXT,
    "actions": ["a3", "a4"],
    "pinned": False,
    "metadata": {"chapter": 2},
    "state": "active",
    "model": "all-MiniLM-L6-v2",
    "created": TIME,
    "last_used": None,
    "use_count": 0,
    "version": VERSION,
}
BANK: dict[str, Any] = {
    "name": "story1",
    "model": "all-MiniLM-L6-v2",
    "dimensions": 384,
    "counts": {"active": 12},
    "capacity": None,
    "revision": 14,
    "created": TIME,
    "version": VERSION,
}


class _Taken(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _joined(text: object) -> object:
    """Join surrogate halves: those that are alone in a text that is read or searched become U+FFFD."""
    return join_surrogates(text) if isinstance(text, str) else text


def _absent(description: str, examples: list[Any]) -> Any:
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
Actions = Annotated[list[Identifier], Field(max_length=inputs.MAX_ACTIONS, examples=[["a3", "a4"]])]
Metadata = Annotated[dict[str, Any], Field(examples=[{"chapter": 2}])]
_METADATA = f"anything; only kept; at most {inputs.MAX_METADATA:,} characters as JSON; replaced as a whole"
_ACTIONS = "ids of the actions that it was made from, oldest first"


class MemoryInput(_Taken):
    """A memory to be stored. The same text, or the same id with the same text, is still one memory."""

    text: Text = Field(description="what happened; kept without whitespace around it")
    id: Identifier | None = Field(None, description="unique in its bank; given if it is missing", examples=[ID])
    actions: Actions = Field([], description=_ACTIONS)
    pinned: bool = Field(False, description="before all others in a context, never forgotten", examples=[False])
    metadata: Metadata = Field({}, description=_METADATA)

    def to_new(self) -> NewMemory:
        """Return it as the bank takes it."""
        return NewMemory(self.text, self.id, tuple(self.actions), self.pinned, self.metadata)


class NewMemories(_Taken):
    """Memories to be stored: all or none, in this order."""

    memories: list[MemoryInput] = Field(
        description="what is to be stored", min_length=1, max_length=MAX_BATCH, examples=[[{"text": TEXT}]]
    )


class MemoryEdit(_Taken):
    """What to change of a memory; the rest stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    text: Text = _absent("what happened; another text is embedded anew", [TEXT])
    actions: Actions = _absent(_ACTIONS, [["a3"]])
    pinned: bool = _absent("before all others in a context, never forgotten", [True])
    state: Settable = _absent("forgotten memories are listed and not searched", ["forgotten"])
    metadata: Metadata = _absent(_METADATA, [{"chapter": 3}])

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


class MemoryEdits(_Taken):
    """Changes of several memories: all or none."""

    memories: list[IdentifiedEdit] = Field(
        description="what is to be changed",
        min_length=1,
        max_length=MAX_BATCH,
        examples=[[{"id": ID, "pinned": True}]],
    )


class Ids(_Taken):
    """Several memories by their ids."""

    ids: list[Identifier] = Field(
        description="which memories; one that is named twice counts once",
        min_length=1,
        max_length=MAX_BATCH,
        examples=[["m1", "m2"]],
    )


class BankSettings(_Taken):
    """The settings of a bank; what is missing stays as it is."""

    capacity: Annotated[int, Field(ge=1, le=2**53), WHOLE] | None = Field(
        None, description="how many active memories it may have; null for any number", examples=[200]
    )


class SearchRequest(_Taken):
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
    ranking: str = Field(
        "semantic",
        description="how results are ranked",
        examples=["semantic"],
        json_schema_extra={"enum": list(RANKINGS)},
    )
    pinned_first: bool = Field(False, description="all pinned memories before the others", examples=[False])
    explain: bool = Field(False, description="give the parts of each score", examples=[False])
    retellings: bool = Field(
        False,
        description="say of each result which others tell nearly the same and are newer, or pinned",
        examples=[False],
    )


class Memory(_Given):
    """A stored memory."""

    model_config = ConfigDict(json_schema_extra={"examples": [STORED]})

    id: str = Field(description="unique in its bank")
    text: str = Field(description="what happened")
    actions: list[str] = Field(description=_ACTIONS)
    pinned: bool = Field(description="before all others in a context, never forgotten")
    metadata: dict[str, Any] = Field(description="kept for the caller")
    state: State = Field(description="only `active` memories are searched")
    model: str = Field(description="the embedding model of its vector")
    created: datetime = Field(description="when it was first stored, in UTC")
    last_used: datetime | None = Field(description="when it last went into a committed context, in UTC")
    use_count: int = Field(description="how often it went into a committed context", ge=0)
    version: str = Field(description="its ETag: changes with all that can be edited", pattern=VERSIONS)


class Stored(_Given):
    """Memories as they are after the call, one for each item that was sent."""

    memories: list[Memory] = Field(description="in the order of the call")


class MemoryList(_Given):
    """Memories in the order of storing."""

    memories: list[Memory] = Field(description="those of this page; a page of very long ones may be shorter than asked")
    cursor: str | None = Field(description="hand it back for the next page; null on the last", examples=[None])


class Bank(_Given):
    """A bank: all memories of one adventure."""

    model_config = ConfigDict(json_schema_extra={"examples": [BANK]})

    name: str = Field(description="its name")
    model: str = Field(description="the embedding model of its vectors")
    dimensions: int = Field(description="the width of its vectors", ge=1)
    counts: dict[str, int] = Field(description="how many memories there are of each state")
    capacity: int | None = Field(description="how many active memories it may have; null for any number")
    revision: int = Field(description="grows with every write", ge=0)
    created: datetime = Field(description="when it was first written to, in UTC")
    version: str = Field(description="its ETag: changes with its settings", pattern=VERSIONS)


class BankList(_Given):
    """Banks in the order of their names."""

    banks: list[Bank] = Field(description="those of this page")
    cursor: str | None = Field(description="hand it back for the next page; null on the last", examples=[None])


class Retelling(_Given):
    """Another result that tells nearly the same and is newer, or pinned."""

    id: str = Field(description="which memory", examples=[ID])
    cosine: float = Field(description="of the two memories' vectors", ge=-1, le=1, examples=[0.97])


class SearchResult(_Given):
    """A memory that was found."""

    memory: Memory = Field(description="the memory")
    similarity: float = Field(description="cosine of its vector and the query's", ge=-1, le=1, examples=[0.71])
    rank: int = Field(description="its place in the whole ranking, 1 for the best", ge=1, examples=[1])
    parts: dict[str, float] = _absent("the parts of the score, if `explain` was asked for", [{"semantic": 0.71}])
    retold_by: list[Retelling] = _absent(
        "the nearest first, if `retellings` was asked for", [[{"id": "m9", "cosine": 0.97}]]
    )


class SearchResults(_Given):
    """What was found, best first."""

    results: list[SearchResult] = Field(description="none for a bank that was never written to")


class Used(_Given):
    """How many memories were there to be counted."""

    used: int = Field(description="memories whose use was counted", ge=0, examples=[2])


class Health(_Given):
    """The process answers."""

    status: Literal["ok"] = Field(description="always `ok`", examples=["ok"])


class Readiness(_Given):
    """Whether calls can be served, and what is in the way if not."""

    status: Literal["ready", "not-ready"] = Field(description="the whole", examples=["ready"])
    checks: dict[str, str] = Field(
        description="`ok` or what is wrong, for `database`, `model` and `queue`",
        examples=[{"database": "ok", "model": "ok", "queue": "ok"}],
    )


class FieldError(_Given):
    """What is wrong with one field."""

    field: str = Field(description="where it is", examples=["memories[3].text"])
    message: str = Field(description="what is wrong", examples=["Field required"])


class ProblemBody(_Given):
    """An error (RFC 9457)."""

    type: str = Field(description="its kind", examples=["urn:story-context:problem:invalid-request"])
    title: str = Field(description="its kind, in words", examples=["The request is not valid"])
    status: int = Field(description="the status code", ge=400, le=599, examples=[422])
    detail: str = Field(description="what is wrong here, and what to do", examples=["memories[3].text: Field required"])
    instance: str = Field(description="this request, as the server's log calls it", examples=["urn:request:7f3a"])
    errors: list[FieldError] = _absent("fields at fault", [[{"field": "memories[3].text", "message": "…"}]])
