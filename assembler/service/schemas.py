"""What `/v1/context` takes and gives (SPEC.md section 11)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from assembler.report import Section, Verdict
from assembler.settings import MOST_TOKENS, Layout
from memorybank.inputs import MAX_RECENT
from memorybank.search.ranking import DEFAULT_RANKING, RANKINGS
from memorybank.service.calls import checked_bank_name
from memorybank.service.schemas import MAX_BANK_NAME, NAME, WHOLE

__all__ = ["Context", "ContextRequest"]

ADVENTURE: dict[str, Any] = {
    "format": "adventure/1",
    "ai_instructions": "You are the narrator.",
    "story_cards": [{"triggers": ["Fenrir", "wolf"], "entry": "Fenrir is a wolf the size of a barn."}],
    "actions": [{"kind": "start", "text": "You stand before the gate."}, {"kind": "do", "text": "call the wolf"}],
    "memories": [{"text": "You once pulled a thorn from Fenrir's paw."}],
}


class ContextRequest(BaseModel):
    """An adventure, and how its context shall be made."""

    model_config = ConfigDict(strict=True, extra="forbid")

    adventure: dict[str, Any] = Field(description="an `adventure/1` document", examples=[ADVENTURE])
    bank: Annotated[str, AfterValidator(checked_bank_name)] | None = Field(
        None,
        description="recall from this stored bank, whose Story Summary stands in where the document has none; null: "
        "from the document's own memories",
        examples=["story1"],
        json_schema_extra={"minLength": 1, "maxLength": MAX_BANK_NAME, "pattern": NAME},
    )
    context_size: Annotated[int, Field(ge=1, le=MOST_TOKENS), WHOLE] = Field(
        4096, description="tokens of the whole prompt, the answer's room included", examples=[4096]
    )
    reserve: Annotated[int, Field(ge=0, le=MOST_TOKENS), WHOLE] = Field(
        0, description="tokens of it kept free for the answer", examples=[500]
    )
    tokenizer: str = Field(
        "o200k_base",
        max_length=100,
        description="o200k_base, cl100k_base, o200k_harmony, chars/4, or one that the operator has named",
        examples=["o200k_base"],
    )
    layout: Layout = Field(
        "classic", description="cache_friendly lets a model server reuse the prompt's beginning", examples=["classic"]
    )
    anchor: str | None = Field(
        None,
        max_length=10_000,
        description="that of the previous turn's context; goes with cache_friendly",
        examples=[None],
    )
    memory_bank: bool | None = Field(
        None, description="whether memories are recalled; null: what the document says", examples=[True]
    )
    ranking: str = Field(
        DEFAULT_RANKING,
        description="how memories are ranked: by meaning and by words, or by meaning alone",
        examples=["hybrid"],
        json_schema_extra={"enum": list(RANKINGS)},
    )
    recent_actions: Annotated[int, Field(ge=0, le=MAX_RECENT), WHOLE] = Field(
        4, description="how many of the actions before the last one are a weaker part of the query", examples=[4]
    )
    commit: bool = Field(
        False,
        description="count a use of each memory that went in; goes with `bank` and needs a key that may write",
        examples=[False],
    )
    waiting: bool = Field(
        False, description="list the cards that did not match, and what they wait for", examples=[False]
    )


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ChatMessage(_Given):
    """A message for a chat API."""

    role: str = Field(description="`system` or `user`", examples=["system"])
    content: str = Field(description="its text", examples=["You are the narrator."])


class RequiredPart(_Given):
    """What Required might use and used, in tokens."""

    limit: int = Field(description="at most", ge=0, examples=[2867])
    used: int = Field(description="really", ge=0, examples=[1200])


class SharedPart(_Given):
    """What a dynamic part was sure of and used, in tokens; what others could not use may have flowed to it."""

    share: int = Field(description="at least, if it has use for it", ge=0, examples=[724])
    used: int = Field(description="really", ge=0, examples=[690])


class Parts(_Given):
    """The four parts of a context."""

    required: RequiredPart = Field(description="plot components and the last action")
    story_cards: SharedPart = Field(description="lore whose triggers occur")
    history: SharedPart = Field(description="the actions before the last one")
    memory_bank: SharedPart = Field(description="what happened long ago and matters again")


class ReportLine(BaseModel):
    """What became of one offered item. A card also has `trigger`, `action`, `score`; a memory `rank`, `similarity`.

    And as far as it is known, a memory has `pinned`, `actions`, `made`, `writer`, `use_count`, `last_used`.
    """

    model_config = ConfigDict(extra="allow")

    section: Section = Field(description="where it belongs", examples=["story_cards"])
    item: str = Field(description="`text`, `header`, or its id", examples=["c7"])
    verdict: Verdict = Field(description="whether it is in", examples=["dropped"])
    offered: int = Field(description="what it costs whole, in tokens", ge=0, examples=[212])
    used: int = Field(description="what it costs in this context", ge=0, examples=[0])
    reason: str = Field(description="why it is not in, or not whole", examples=["no room: needs 212, 40 left"])


class ContextReport(_Given):
    """Why the context is as it is."""

    tokenizer: str = Field(description="what counted", examples=["o200k_base"])
    estimate: bool = Field(
        default_factory=bool, description="there, and true, if its counts are estimates", examples=[True]
    )
    layout: Layout = Field(description="the order of the sections", examples=["classic"])
    context_size: int = Field(description="tokens that there were, without the reserve", ge=1, examples=[4096])
    required_limit: int = Field(description="tokens that Required could have", ge=0, examples=[2867])
    parts: Parts = Field(description="allowed and used")
    cards_not_matched: int = Field(description="cards that waited or were switched off", ge=0, examples=[12])
    lines: list[ReportLine] = Field(description="one for every offered item; `used` adds up to the context's tokens")
    card_window: int = Field(
        default_factory=int, description="how many actions were searched for triggers, if `waiting`", examples=[4]
    )
    memories_pending: int = Field(
        default_factory=int, description="there if memories are due in the bank and not written yet", ge=0, examples=[1]
    )
    cards_waiting: dict[str, list[str] | None] = Field(
        default_factory=dict,
        description="triggers of the cards that did not match, by id, if `waiting`; null for one that is switched off",
        examples=[{"c2": ["fox"], "c3": None}],
    )


class Context(_Given):
    """What the model should see now, and why."""

    text: str = Field(description="the context as one text", examples=["Recent Story:\nYou wake.\n> look around"])
    messages: list[ChatMessage] = Field(description="the same as messages; joined with a line end they are `text`")
    tokens: int = Field(description="the exact count of `text`", ge=0, examples=[4011])
    anchor: str | None = Field(description="hand it back on the next turn; null in the classic layout", examples=[None])
    report: ContextReport = Field(description="why it is as it is")
