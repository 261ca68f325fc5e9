"""The JSON of a bank's story: its log, what is pending, the Story Summary, branches."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from memorybank import inputs
from memorybank.service.calls import checked_bank_name
from memorybank.service.schemas import MAX_BANK_NAME, NAME, WHOLE, Identifier, Taken, absent
from memorybank.story.log import MAX_ACTION_TEXT, ActionKind
from memorybank.text import join_surrogates

__all__ = [
    "MAX_LOG",
    "Action",
    "Actions",
    "Branch",
    "LogChange",
    "Pending",
    "PendingList",
    "Summary",
    "SummaryList",
    "SummaryText",
]

MAX_LOG = 100_000
"""Actions in one call; of a longer log, the new end is sent."""


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _joined(text: object) -> object:
    return join_surrogates(text) if isinstance(text, str) else text


class Action(Taken):
    """One action of the log (SPEC.md section 1)."""

    id: Identifier = Field(description="unique in the log", examples=["a1"])
    kind: ActionKind = Field(description="what it is", examples=["output"])
    text: Annotated[str, BeforeValidator(_joined)] = Field(
        "", description="what was typed or written", max_length=MAX_ACTION_TEXT, examples=["The gate opens."]
    )


class Actions(Taken):
    """The log as it stands now, or its new end."""

    actions: Annotated[list[Action], FailFast()] = Field(
        description="oldest first",
        max_length=MAX_LOG,
        examples=[[{"id": "a1", "kind": "output", "text": "The gate opens."}]],
    )
    after: Identifier | None = Field(
        None,
        description="the action behind which they stand; what stood there is gone. null: the whole log",
        examples=["a12"],
    )


class LogChange(_Given):
    """What became of the bank."""

    length: int = Field(description="actions in the log now", ge=0, examples=[12])
    same: int = Field(description="how many of them, from the first on, were there before", ge=0, examples=[11])
    stale: list[str] = Field(description="memories that hold no longer, and are not found any more", examples=[["m3"]])
    valid: list[str] = Field(description="memories that hold again", examples=[["m3"]])
    pending: int = Field(description="memories that are due and not written yet", ge=0, examples=[1])


class Pending(_Given):
    """A memory that is due and not written yet."""

    actions: list[str] = Field(description="its source actions", examples=[["a1", "a2"]])
    attempts: int = Field(description="how often somebody has tried", ge=0, examples=[0])
    error: str = Field(description="why the last try failed; empty if none has", examples=[""])
    retry_at: datetime | None = Field(
        description="before this moment nobody tries again; null for at once", examples=[None]
    )


class PendingList(_Given):
    """The memories that are due and not written yet, in the order of the story."""

    pending: list[Pending] = Field(description="one for each")


class SummaryText(Taken):
    """A Story Summary by the player's own hand: either a text, or an earlier version anew."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    text: Annotated[str, BeforeValidator(_joined), Field(max_length=inputs.MAX_TEXT)] = absent(
        "what it says; the next one that a writer makes brings it up to date", ["Mara is looking for the silver key."]
    )
    restore: Annotated[int, Field(ge=1, le=2**53), WHOLE] = absent(
        "the version that is to hold again; it tells what it told, and no more", [1]
    )

    @model_validator(mode="after")
    def _is_one(self) -> SummaryText:
        if len(self.model_fields_set) != 1:
            raise ValueError("give either text or restore")
        return self


class Summary(_Given):
    """A version of the Story Summary."""

    version: int = Field(description="its number, from 1 on", ge=1, examples=[3])
    text: str = Field(description="what it says", examples=["Mara is looking for the silver key."])
    author: str = Field(description="the writer's name, or `player`", examples=["extractive"])
    through: int = Field(description="how many actions from the beginning on it tells", ge=0, examples=[24])
    created: datetime = Field(description="when it was written, in UTC", examples=["2026-05-01T18:30:00+00:00"])


class SummaryList(_Given):
    """The Story Summary and its versions."""

    current: int | None = Field(description="the version that holds now; null if none does", examples=[3])
    versions: list[Summary] = Field(description="the newest first; all of them, or the current one alone")


class Branch(Taken):
    """A new bank with the past of this one."""

    name: Annotated[str, AfterValidator(checked_bank_name)] = Field(
        description="the new bank's name",
        examples=["story2"],
        json_schema_extra={"maxLength": MAX_BANK_NAME, "pattern": NAME},
    )
    upto: Identifier | None = Field(
        None, description="the last action that both have; null for the whole log", examples=["a12"]
    )
